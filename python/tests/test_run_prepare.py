"""Partitioner.run() and `prepare`, and the ends that a run does not fail by. SPDX-License-Identifier: Apache-2.0"""
import threading
import time

import pytest

import divvy
from conftest import DEADLINE_S, wait_for
from divvy import _run
from steps import Entries, Script, Steps
from test_run import Pool, only_told, start  # noqa: F401: fixtures

ACQUIRED, RELEASE, FAILURE = divvy.PartitionState.ACQUIRED, divvy.PartitionState.RELEASE, divvy.PartitionState.FAILURE


class Prepared:
    """What `prepare` returns; it counts how often it was closed."""

    closed = 0

    def __init__(self, error=None):
        self.error = error

    def close(self):
        self.closed += 1
        if self.error:
            raise self.error


@pytest.fixture
def stopped(monkeypatch):
    """An event: a run has told its workers to stop, and begins nothing."""
    seen, stop = threading.Event(), _run.Run.stop

    def noted(run, *arguments):
        stop(run, *arguments)
        seen.set()
    monkeypatch.setattr(_run.Run, "stop", noted)
    return seen


# A member that is asked to end while it prepares hands over, and waits for `prepare`: that is no failure. What that
# returns then is closed before the run returns.
def test_end(start, stopped):
    pool, begun, ready, made = Pool(), threading.Event(), threading.Event(), Prepared()

    def prepare(item):
        begun.set()
        assert ready.wait(DEADLINE_S)
        return made
    first = start(pool.worker("a"), ["x"])
    wait_for(lambda: pool.count("a") == 1, "one has it")
    second = start(pool.worker("b"), ["x"], keywords={"prepare_timeout": 25}, prepare=prepare)
    first.partitioner.set_weight(0)
    assert begun.wait(DEADLINE_S)
    second.stop.set()
    assert stopped.wait(DEADLINE_S)
    assert second.partitioner.state == FAILURE and second.thread.is_alive() and made.closed == 0
    ready.set()
    assert second.end() is None
    assert made.closed == 1 and pool.count("a") == 1


# Once it was asked to hand over, the end of the partitioner is no failure, at whichever step it is seen; else it is.
@pytest.mark.parametrize("asked", [0, 1, 2])
def test_finished(asked):
    p = Script()
    steps = Steps(p, print)
    p.shown.append((ACQUIRED, Entries()))
    p.awaited = ["x"]
    assert not steps.step() and steps._places["x"].preparing
    if asked:
        steps.ask()
        assert not steps.step()
    p.awaited, p.failure = [], divvy.Canceled("finished")
    p.shown.append((FAILURE, Entries()))
    for _ in range(asked - 1):
        steps.ask()
    assert not steps.step() and not steps.step()
    steps.take_prepared(steps._places["x"], None, None)
    assert steps.step() and p.ready == []
    assert (steps.error is None) is (asked > 0)


# A session that is lost during the hand-over is a failure without `rejoin` alone; the items are lost in any case.
@pytest.mark.parametrize("rejoin", [True, False])
def test_lost_while_handing_over(rejoin):
    p = Script()
    p.rejoin = rejoin
    steps = Steps(p)
    p.shown.append((ACQUIRED, Entries([divvy.Item("x", 1)])))
    assert not steps.step()
    job = steps._places["x"].job
    steps.ask()
    assert not steps.step() and not job.stop.is_set()
    p.failure = divvy.SessionLost("lost")
    p.shown.append((FAILURE, Entries()))
    assert not steps.step()
    assert job.stop.is_set() and job.lost
    steps.take_end(steps._places["x"], None)
    assert steps.step()
    assert steps.error is (None if rejoin else p.failure)


# A RELEASE that another state has followed since the look is not confirmed, and the run goes on.
def test_release_too_late():
    p = Script()
    steps = Steps(p)

    def refuse(state_id):
        raise divvy.WrongState("the state is another")
    p.release_set = refuse
    p.shown.append((RELEASE, Entries([divvy.Item("x", 1)])))
    assert not steps.step() and steps.error is None and steps._places["x"].job


# A run sleeps while nothing can begin: while an item waits for the end of `prepare`, or is revoked and has no worker.
def test_sleeps():
    p = Script()
    steps = Steps(p, print)
    p.awaited = ["x"]
    p.shown.append((ACQUIRED, Entries([divvy.Item("y", 1), divvy.Item("z", 2)])))
    assert not steps.step()
    p.awaited = []
    p.shown.append((RELEASE, Entries([divvy.Item("x", 3), divvy.Item("y", 1, True), divvy.Item("z", 2, True)])))
    assert not steps.step()
    steps.take_end(steps._places["y"], None)
    assert not steps.step() and p.released is None
    assert steps._places["x"].preparing and steps._places["z"].stopping and not steps._places["y"].busy
    assert steps.wait_s() > 60


# What was prepared for an item that then did not come is closed, also where `prepare` ends after that; when it comes,
# `prepare` is called again, and what that returns is the worker's to close.
def test_in_vain(start):
    pool, ready, made = Pool(), threading.Event(), []

    def prepare(item):
        made.append(Prepared())
        assert ready.wait(DEADLINE_S)
        return made[-1]
    first = start(pool.worker("a"), ["x"])
    wait_for(lambda: pool.count("a") == 1, "one has it")
    second = start(pool.worker("b"), ["x"], keywords={"prepare_timeout": 25}, prepare=prepare)
    first.partitioner.set_weight(0)
    wait_for(lambda: len(made) == 1, "it is prepared for")
    first.partitioner.set_weight(1000)
    second.partitioner.set_weight(0)
    wait_for(lambda: not second.partitioner.to_prepare(), "it stays")
    ready.set()
    wait_for(lambda: made[0].closed, "it is closed")
    second.partitioner.set_weight(1000)
    first.partitioner.set_weight(0)
    wait_for(lambda: pool.count("b") == 1, "it comes")
    assert len(made) == 2 and pool.jobs[-1][1].prepared is made[1] and pool.doubles == []
    assert second.end() is None
    assert [one.closed for one in made] == [1, 0]


# What waits for its item when the run ends is closed before that returns. A close that raises is logged.
@pytest.mark.parametrize("raises", [True, False])
def test_end_prepared(start, caplog, raises):
    pool, made = Pool(), Prepared(ValueError("no luck") if raises else None)
    pool.held_back["a"] = threading.Event()
    first = start(pool.worker("a"), ["x"])
    wait_for(lambda: pool.count("a") == 1, "one has it")
    second = start(pool.worker("b"), ["x"], keywords={"prepare_timeout": 25}, prepare=lambda item: made)
    first.partitioner.set_weight(0)
    wait_for(lambda: pool.jobs[0][1].stop.is_set(), "the other is ready")
    assert made.closed == 0
    assert second.end() is None and made.closed == 1
    assert ("what was prepared for x could not be closed: ValueError('no luck')" in caplog.text) is raises
    pool.held_back["a"].set()


# The same while the run goes on, and at its end, step by step; without a thread a worker waits, and keeps it.
def test_who_has_it():
    p = Script()
    steps = Steps(p, print)
    p.shown.append((ACQUIRED, Entries()))
    p.awaited = ["x", "y", "z"]
    assert not steps.step()
    for item in p.awaited:
        steps.take_prepared(steps._places[item], "for " + item, None)
    assert p.ready == p.awaited and not steps.step()
    p.awaited = ["z"]  # y stays where it is
    steps.no_thread = True
    p.shown.append((ACQUIRED, Entries([divvy.Item("x", 1)])))
    assert not steps.step()
    assert steps.closed == ["for y"] and steps._places["x"].job is None and 0 < steps.wait_s() <= 0.1
    steps.no_thread = False
    wait_for(lambda: not steps.step() and steps._places["x"].job, "the start is tried again")
    assert steps._places["x"].job.prepared == "for x"
    steps.take_lost(("z",))
    assert steps.closed == ["for y", "for z"]
    assert not steps.step() and steps._places["z"].preparing
    steps.stop()
    steps.take_prepared(steps._places["z"], "for z", None)
    assert steps.closed == ["for y", "for z", "for z"] and p.ready == ["x", "y", "z"]


# `prepare` that raises is called again, after the pauses of a worker; the owner goes on, and the item waits for it.
def test_fails(start, caplog):
    pool, times = Pool(), []

    def prepare(item):
        times.append(time.monotonic())
        if len(times) < 4:
            raise ValueError("no luck")
        return "ready"
    first = start(pool.worker("a"), ["x"])
    wait_for(lambda: pool.count("a") == 1, "one has it")
    start(pool.worker("b"), ["x"], keywords={"prepare_timeout": 25}, prepare=prepare, backoff=0.05, backoff_max=0.1)
    first.partitioner.set_weight(0)
    wait_for(lambda: pool.count("b") == 1, "the other has it")
    pauses = [b - a for a, b in zip(times, times[1:])]
    assert len(pauses) == 3 and all(pause >= least for pause, least in zip(pauses, [0.05, 0.1, 0.1]))
    assert "prepare of x failed, and is called again in 0.05 s: ValueError('no luck')" in caplog.text
    assert caplog.text.count("prepare of x failed, and is called again in 0.1 s") == 2
    assert pool.jobs[-1][1].prepared == "ready"


# It is called no longer when its item has come by `prepare_timeout`, nor with restart="never".
@pytest.mark.parametrize("restart", ["always", "never"])
def test_fails_until_it_comes(start, caplog, restart):
    pool, asked = Pool(), []

    def prepare(item):
        asked.append(item)
        raise ValueError("no luck")
    first = start(pool.worker("a"), ["x"])
    wait_for(lambda: pool.count("a") == 1, "one has it")
    start(pool.worker("b"), ["x"], keywords={"prepare_timeout": 0.5}, prepare=prepare, restart=restart)
    first.partitioner.set_weight(0)
    wait_for(lambda: pool.count("b") == 1, "the other has it")
    assert pool.jobs[-1][1].prepared is None and (len(asked) == 1) is (restart == "never")
    assert ("and is not called again" in caplog.text) is (restart == "never")


# Functions that cannot be called as a run calls them are refused at once; so is `prepare` without prepare_timeout. What
# has no signature is left alone.
def test_refused(client, path):
    partitioner = client.partitioner(path, ["a"], prepare_timeout=25)
    for name, wrong in (("worker", lambda: 0), ("worker", lambda job, more: 0), ("prepare", lambda *, item: 0)):
        given = {"worker": print, "prepare": print, name: wrong}
        with pytest.raises(TypeError, match=rf"^{name} is called as {name}\((job|item)\), and "):
            partitioner.run(given["worker"], prepare=given["prepare"])
    with pytest.raises(divvy.InvalidArgument, match="prepare_timeout"):
        client.partitioner(path + "2", ["a"]).run(print, prepare=print)

    class Silent:
        __signature__ = 0  # inspect refuses that

        def __call__(self, job):
            pass
    stop = threading.Event()
    stop.set()
    partitioner.run(Silent(), prepare=Silent(), stop=stop)
