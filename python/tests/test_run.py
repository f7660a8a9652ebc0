"""Partitioner.run(): a thread for each item, on a real server. SPDX-License-Identifier: Apache-2.0"""
import contextlib
import logging
import signal
import subprocess
import sys
import threading
import time

import pytest

import divvy
from conftest import DEADLINE_S, wait_for
from divvy import _jobs, _run
from steps import Entries, Script, Steps

ITEMS = [f"item-{i}" for i in range(6)]
FAST = {"time_boundary": 0.05, "rejoin": True}


class Pool:
    """Who works on what, for all members of a test; two jobs of one item at a time are an error."""

    def __init__(self):
        self.lock = threading.Lock()
        self.at = {}  # item: the member whose worker is at it
        self.jobs = []  # all that began
        self.doubles = []
        self.held_back = {}  # member: an event without which its workers do not return

    def worker(self, name):
        def work(job):
            with self.lock:
                if job.item in self.at:
                    self.doubles.append((job.item, self.at[job.item], name))
                self.at[job.item] = name
                self.jobs.append((name, job))
            job.stop.wait()
            if name in self.held_back:
                self.held_back[name].wait(DEADLINE_S)
            with self.lock:
                del self.at[job.item]
        return work

    def count(self, name):
        with self.lock:
            return list(self.at.values()).count(name)


class Member:
    """A run in a thread of its own."""

    def __init__(self, partitioner, worker, **options):
        self.partitioner = partitioner
        self.error = None
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self._run, args=(worker, {"stop": self.stop, **options}))
        self.thread.start()

    def _run(self, worker, options):
        try:
            self.partitioner.run(worker, **options)
        except BaseException as error:
            self.error = error

    def end(self):
        """Ends the run, and returns what it raised."""
        self.stop.set()
        self.thread.join(DEADLINE_S)
        assert not self.thread.is_alive()
        return self.error


def note_loads(set_load, told):
    """Returns what tells a load, and notes it when the library has taken it."""
    def noted(self, item, load):
        set_load(self, item, load)
        told.append((self, item, load))
    return noted


@pytest.fixture
def start(make_client, path):
    """Starts a member; all end with the test."""
    made = []

    def begin(worker, items=ITEMS, client=None, keywords={}, **options):
        partitioner = (client or make_client()).partitioner(path, items, **{**FAST, **keywords})
        made.append(Member(partitioner, worker, **options))
        return made[-1]
    yield begin
    for member in made:
        member.end()


# A run is told of all that it has to know, and does not look by itself.
@pytest.fixture(autouse=True)
def only_told(monkeypatch):
    monkeypatch.setattr(_jobs, "LOOK_S", 3600)


# Two members share the items, one job for each; the one that ends hands its items over, and its run returns.
def test_pool(start):
    pool = Pool()
    first = start(pool.worker("a"))
    wait_for(lambda: pool.count("a") == 6, "one has all")
    second = start(pool.worker("b"))
    wait_for(lambda: (pool.count("a"), pool.count("b")) == (3, 3), "each has half")
    for name, job in pool.jobs:
        assert job.token > 0 and job.owns() is (pool.at[job.item] == name and not job.stop.is_set())
    assert first.end() is None
    wait_for(lambda: pool.count("b") == 6, "the other has all")
    assert pool.doubles == [] and second.end() is None and pool.at == {}
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("divvy item")]


# A worker that asks owns() alone returns when it is asked to stop at once, though the item is still ours.
def test_owns_is_enough(start):
    begun = threading.Event()

    def work(job):
        begun.set()
        while job.owns():
            time.sleep(0.01)
    member = start(work, ["a"], hand_over=False)
    assert begun.wait(DEADLINE_S) and member.partitioner.owns("a")
    assert member.end() is None


# A worker tells the load of its own item; one that is none is refused.
def test_set_load(start, monkeypatch):
    told = []
    monkeypatch.setattr(divvy.Partitioner, "set_load", note_loads(divvy.Partitioner.set_load, told))

    def work(job):
        with pytest.raises(divvy.InvalidArgument, match="from 0 up"):
            job.set_load(-1)
        job.set_load(len(job.item) + 0.5)
        job.stop.wait()
    member = start(work, ["a", "bb"], keywords={"load_unit": "req/s"})
    wait_for(lambda: {entry[1:] for entry in told} == {("a", 1.5), ("bb", 2.5)}, "loads are told")
    assert {entry[0] for entry in told} == {member.partitioner}
    assert member.end() is None


# The end of the last job is no change of the partitioner, and yet RELEASE is confirmed then, and not before.
def test_release_waits(start):
    pool = Pool()
    pool.held_back["a"] = threading.Event()
    first = start(pool.worker("a"))
    wait_for(lambda: pool.count("a") == 6, "one has all")
    second = start(pool.worker("b"))
    wait_for(lambda: first.partitioner.state == divvy.PartitionState.RELEASE, "items are revoked")
    wait_for(lambda: sum(job.stop.is_set() for _, job in pool.jobs) == 3, "three are told to stop")
    state_id = first.partitioner.state_id
    assert not first.partitioner.wait_change(state_id, 0.3)
    assert pool.count("b") == 0
    pool.held_back["a"].set()
    wait_for(lambda: (pool.count("a"), pool.count("b")) == (3, 3), "each has half")
    assert pool.doubles == []


# A member that ends works until the other is ready: with preparation, the worker stops after `prepare` has returned.
def test_hands_over(start):
    pool, ready, asked = Pool(), threading.Event(), []

    def prepare(item):
        asked.append(item)
        assert ready.wait(DEADLINE_S)
        return "ready for " + item
    first = start(pool.worker("a"))
    wait_for(lambda: pool.count("a") == 6, "one has all")
    start(pool.worker("b"), keywords={"prepare_timeout": 25}, prepare=prepare)
    wait_for(lambda: len(asked) == 3, "three are prepared for")
    first.stop.set()
    wait_for(lambda: len(asked) == 6, "all are")
    assert pool.count("a") == 6 and first.thread.is_alive()
    ready.set()
    wait_for(lambda: pool.count("b") == 6, "the other has all")
    assert first.end() is None and pool.doubles == []
    assert {job.item: job.prepared for name, job in pool.jobs if name == "b"} == {i: "ready for " + i for i in ITEMS}


# A worker that raises, or returns, begins again after a pause that doubles up to the cap; what it raises is logged.
@pytest.mark.parametrize("raises", [True, False])
def test_restart(start, caplog, raises):
    caplog.set_level(logging.INFO, "divvy")
    times = []

    def work(job):
        times.append(time.monotonic())
        if len(times) == 5:
            job.stop.wait()
        elif raises:
            raise ValueError("no luck")
    start(work, ["a"], backoff=0.05, backoff_max=0.1)
    wait_for(lambda: len(times) == 5, "five starts")
    pauses = [b - a for a, b in zip(times, times[1:])]
    assert all(pause >= least for pause, least in zip(pauses, [0.05, 0.1, 0.1, 0.1]))
    told = [record.message for record in caplog.records if "again in" in record.message]
    assert ["0.05 s" in told[0], "0.1 s" in told[1], "0.1 s" in told[2]] == [True] * 3
    assert all(("ValueError('no luck')" in line) is raises for line in told)


# "on-failure" and "never": who has finished with an item begins again only when it comes again, under a new token.
def test_finished(start):
    counts = {"a": 0, "b": 0}
    tokens = []

    def work(job):
        counts[job.item] += 1
        if job.item == "a":
            tokens.append(job.token)
        elif counts["b"] < 3:
            raise ValueError
        else:
            job.stop.wait()
    member = start(work, ["a", "b"], restart="on-failure", backoff=0.05)
    wait_for(lambda: counts["b"] == 3, "what fails begins again")
    assert counts["a"] == 1
    other = start(lambda job: job.stop.wait(), ["a", "b"])
    member.partitioner.set_weight(0)
    wait_for(lambda: len(other.partitioner.partition()) == 2, "the other has both")
    member.partitioner.set_weight(1000)
    other.end()
    wait_for(lambda: counts["a"] == 2, "it came again")
    assert tokens[0] < tokens[1]
    assert member.end() is None


# on_error="fail": the run stops all others, and raises what the worker did when they have returned.
def test_fail(start):
    pool = Pool()
    fail = threading.Event()

    def work(job):
        if job.item == "item-0":
            fail.wait(DEADLINE_S)
            raise ValueError("no luck")
        pool.worker("a")(job)
    member = start(work, on_error="fail")
    wait_for(lambda: pool.count("a") == 5, "five work")
    fail.set()
    member.thread.join(DEADLINE_S)
    assert isinstance(member.error, ValueError) and pool.at == {}
    assert member.partitioner.state == divvy.PartitionState.FAILURE and not member.partitioner.joined


# The partitioner's failure is raised when all workers have returned, and so is Closed.
@pytest.mark.parametrize("close", [False, True])
def test_failure(start, make_client, close):
    pool = Pool()
    pool.held_back["a"] = threading.Event()
    client = make_client()
    member = start(pool.worker("a"), client=client)
    wait_for(lambda: pool.count("a") == 6, "all work")
    if close:
        client.close()
    else:
        member.partitioner.finish(DEADLINE_S)
    wait_for(lambda: all(job.stop.is_set() for _, job in pool.jobs), "all are told to stop")
    member.thread.join(0.3)  # a run that does not wait would be over
    assert member.thread.is_alive() and not any(job.owns() for _, job in pool.jobs)
    pool.held_back["a"].set()
    member.thread.join(DEADLINE_S)
    assert isinstance(member.error, divvy.Closed if close else divvy.Canceled) and pool.at == {}


# After the loss of a session all jobs are told to stop, and the run goes on, with new tokens.
def test_lost_session(start, make_client, server):
    pool = Pool()
    member = start(pool.worker("a"), client=make_client(session_timeout=1))
    wait_for(lambda: pool.count("a") == 6, "all work")
    server.control("pause")
    try:
        wait_for(lambda: all(job.stop.is_set() for _, job in pool.jobs), "all are told to stop")
        wait_for(lambda: pool.at == {}, "all stop")
    finally:
        server.control("resume")
    wait_for(lambda: pool.count("a") == 6, "all work again")
    assert len(pool.jobs) == 12 and pool.doubles == []
    assert max(job.token for _, job in pool.jobs[:6]) < min(job.token for _, job in pool.jobs[6:])
    assert member.end() is None


# An item that was lost and gained between two looks has another token: its job stops, and the next one begins when that
# has returned. RELEASE is confirmed then, by its number.
def test_other_token():
    p = Script()
    steps = Steps(p)
    p.shown.append((divvy.PartitionState.ACQUIRED, Entries([divvy.Item("a", 1)])))
    assert not steps.step()
    first = steps._places["a"].job
    p.shown.append((divvy.PartitionState.RELEASE, Entries([divvy.Item("a", 2)])))
    assert not steps.step()
    assert first.stop.is_set() and first.lost and steps._places["a"].job is first and p.released is None
    steps.take_end(steps._places["a"], None)
    assert not steps.step()
    assert p.released == 2 and steps._places["a"].job.token == 2 and not steps._places["a"].job.stop.is_set()


# What interrupts a run, such as ^C, comes out of it when all workers have returned, and the pool is left.
def test_interrupted(monkeypatch):
    monkeypatch.setattr(_jobs, "LOOK_S", 0.01)
    p, pool, begun = Script(), Pool(), threading.Event()
    pool.held_back["a"] = threading.Event()
    p._listener, p.finish = None, lambda timeout: p.shown.append(dict(pool.at))
    p.shown.append((divvy.PartitionState.ACQUIRED, Entries([divvy.Item("a", 1)])))
    look = p.look

    def interrupt():
        if pool.at:
            begun.set()
            raise KeyboardInterrupt
        return look()
    p.look = interrupt
    p.run = lambda worker, stop: _run.run(p, worker, None, stop, None, "always", "log", 0.1, 30.0, True, 5.0)
    member = Member(p, pool.worker("a"))
    assert begun.wait(DEADLINE_S)
    member.thread.join(0.3)
    assert member.thread.is_alive() and pool.count("a") == 1
    pool.held_back["a"].set()
    member.thread.join(DEADLINE_S)
    assert isinstance(member.error, KeyboardInterrupt) and p.shown[-1] == {}


# Where no thread can be had the start is tried again.
def test_no_thread(start, monkeypatch, caplog):
    pool, refused = Pool(), []
    begin = threading.Thread.start

    def refuse(thread):
        if thread.name == "divvy item-1" and len(refused) < 2:
            refused.append(thread)
            raise RuntimeError("can't start new thread")
        begin(thread)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    start(pool.worker("a"))
    wait_for(lambda: pool.count("a") == 6, "all work")
    assert len(refused) == 2 and caplog.text.count("can't start new thread") >= 2


# A second run of one partitioner is refused; so is a coroutine, and signals=True in another thread.
def test_refused(start, client, path):
    pool = Pool()
    member = start(pool.worker("a"))
    wait_for(lambda: pool.count("a") == 6, "it runs")
    with pytest.raises(divvy.WrongState, match="runs already"):
        member.partitioner.run(print, signals=False)

    async def work(job):
        pass
    with pytest.raises(TypeError, match="divvy.aio"):
        client.partitioner(path + "2", ["a"]).run(work)
    other = Member(client.partitioner(path + "3", ["a"]), print, signals=True)
    other.thread.join(DEADLINE_S)
    assert isinstance(other.error, divvy.InvalidArgument) and "main thread" in str(other.error)


PROGRAM = r"""
import signal, sys, threading, divvy
{before}
def work(job):
    print(f"begin {{job.item}}\n", end="", flush=True)
    job.stop.wait()
    {last}
    print(f"end {{job.item}}\n", end="", flush=True)
client = divvy.Client(session_timeout=5)
try:
    client.partitioner({path!r}, {items!r}, rejoin=True, time_boundary=0.05).run(work, {options})
    print("over", signal.getsignal(signal.SIGTERM) in (signal.SIG_DFL, globals().get("mine")), flush=True)
finally:
    client.close()
"""


@contextlib.contextmanager
def process(path, items, before="", last="pass", options=""):
    """A member in a process of its own, once it works on all items."""
    text = PROGRAM.format(path=path, items=items, before=before, last=last, options=options)
    made = subprocess.Popen([sys.executable, "-X", "faulthandler", "-c", text], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)
    try:
        begun = sorted(made.stdout.readline() for _ in items)
        assert begun == [f"begin {item}\n" for item in items], made.stderr.read() if made.poll() is not None else begun
        yield made
    finally:
        made.kill()
        made.communicate()


def rest(made):
    out, err = made.communicate(timeout=DEADLINE_S)
    return out.split("\n")[:-1], err


# SIGTERM and SIGINT hand over to the other member; the handlers are put back. Nothing of the member is left.
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal(server, start, path, number):
    pool = Pool()
    with process(path, ITEMS) as made:
        start(pool.worker("b"))
        wait_for(lambda: pool.count("b") == 3, "each has half")
        made.send_signal(number)
        lines, err = rest(made)
        assert (made.returncode, err, lines[-1]) == (0, "", "over True")
        assert sorted(lines[:-1]) == sorted("end " + item for item in ITEMS)
        wait_for(lambda: pool.count("b") == 6, "the other has all")


# With nobody to hand over to it ends at once.
def test_signal_alone(server, path):
    with process(path, ["a"]) as made:
        made.send_signal(signal.SIGTERM)
        begun = time.monotonic()
        assert rest(made) == (["end a", "over True"], "") and time.monotonic() - begun < 10
    assert not [node for node in server.ephemerals() if node.startswith(path)]


# The child of a fork has the handlers that were there before, and no run to ask: a first SIGTERM ends it.
def test_signal_to_child(server, path):
    before = "import multiprocessing, time\n" \
             "fork = multiprocessing.get_context('fork')\n" \
             "def work_on(ready): ready.set(); time.sleep(3600)"
    last = "ready = fork.Event(); child = fork.Process(target=work_on, args=(ready,)); child.start(); ready.wait(); " \
           "child.terminate(); child.join(10); print('child', child.exitcode, flush=True); child.kill()"
    with process(path, ["a"], before, last) as made:
        made.send_signal(signal.SIGTERM)
        assert rest(made) == (["child -15", "end a", "over True"], "")


# A second signal ends the hand-over; a third one is as without the run, here death.
def test_signal_thrice(server, start, path):
    ready, pool = threading.Event(), Pool()
    before = "stays = threading.Event()"
    with process(path, ["a", "b"], before, "print('stopping', flush=True); stays.wait()") as made:
        other = start(pool.worker("b"), ["a", "b"], keywords={"prepare_timeout": 25},
                      prepare=lambda item: ready.wait(DEADLINE_S))
        wait_for(lambda: len(other.partitioner.to_prepare()) == 1, "the first knows of it")
        made.send_signal(signal.SIGTERM)
        wait_for(lambda: len(other.partitioner.to_prepare()) == 2, "all is handed over")
        assert made.poll() is None
        made.send_signal(signal.SIGTERM)
        assert made.stdout.readline().startswith("stopping")
        made.send_signal(signal.SIGTERM)
        made.wait(DEADLINE_S)
        assert made.returncode == -signal.SIGTERM
    ready.set()


# A handler of the program's own stays, unless signals=True; signals=False takes none, and ^C still ends workers first.
def test_own_handler(server, path):
    before = "stop = threading.Event()\ndef mine(*_): print('mine', flush=True); stop.set()\n" \
             "signal.signal(signal.SIGTERM, mine)"
    with process(path, ["a"], before, options="stop=stop") as made:
        made.send_signal(signal.SIGTERM)
        assert rest(made) == (["mine", "end a", "over True"], "")
    with process(path, ["a"], before, options="signals=True") as made:
        made.send_signal(signal.SIGTERM)
        assert rest(made) == (["end a", "over True"], "")
    with process(path, ["a"], options="signals=False") as made:
        made.send_signal(signal.SIGINT)
        lines, err = rest(made)
        assert lines == ["end a"] and err.rstrip().endswith("KeyboardInterrupt")
    assert not [node for node in server.ephemerals() if node.startswith(path)]
