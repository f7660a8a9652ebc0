"""The programs of docs/examples/python, as their readers run them. SPDX-License-Identifier: Apache-2.0"""
import importlib.util
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading

import pytest
from kazoo.client import KazooClient
from kazoo.security import READ_ACL_UNSAFE

from conftest import DEADLINE_S, ROOT, wait_for

FOLDER = ROOT / "docs" / "examples" / "python"
POOLS = ["pool_threads", "pool_asyncio", "pool_processes"]
OTHERS = ["lock", "semaphore", "election", "election_asyncio", "registry"]
ITEMS = ["alpha", "beta", "gamma", "delta"]


class Example:
    """One running example, and the lines that it has printed so far."""

    def __init__(self, name, *arguments):
        self.process = subprocess.Popen([sys.executable, FOLDER / f"{name}.py", *arguments], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.lines, self.errors = [], []
        self.readers = [threading.Thread(target=self._read, args=pair) for pair in
                        ((self.process.stdout, self.lines), (self.process.stderr, self.errors))]
        for reader in self.readers:
            reader.start()

    @staticmethod
    def _read(pipe, lines):
        with pipe:
            for line in pipe:
                lines.append(line.rstrip("\n"))

    def working(self):
        """Returns the items that it works on: with the begin of one, and no end of it."""
        found = {}
        for line in list(self.lines):
            what, *rest = line.split()
            if what in ("begin", "end"):
                found[tuple(rest[:2])] = what
        return sorted(item for (item, _), what in found.items() if what == "begin")

    def tokens(self):
        return [int(line.split()[-1]) for line in list(self.lines) if line.startswith("I lead")]

    def has(self, pattern):
        return next((match for match in map(re.compile(pattern).fullmatch, list(self.lines)) if match), None)

    def wait_line(self, pattern):
        try:
            return wait_for(lambda: self.has(pattern), repr(pattern))
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.lines} {self.errors}") from None

    def end(self, number=None):
        """Waits for its end, maybe after a signal, and returns the exit code."""
        if number is not None:
            self.process.send_signal(number)
        self.process.wait(DEADLINE_S)
        for reader in self.readers:
            reader.join(DEADLINE_S)
        return self.process.returncode


@pytest.fixture
def begin(server):
    made = []

    def make(name, *arguments):
        made.append(Example(name, *arguments))
        return made[-1]
    yield make
    for example in made:
        example.process.kill()
        example.end()
        example.process.stdin.close()


# Each example of the folder is run here.
def test_complete():
    assert sorted(path.stem for path in FOLDER.glob("*.py")) == sorted(POOLS + OTHERS)
    assert all(os.access(path, os.X_OK) for path in FOLDER.glob("*.py"))


# Wrong usage and a server that is not there are told as such.
@pytest.mark.parametrize("name", POOLS + OTHERS)
def test_usage(begin, name):
    wrong = begin(name)
    assert wrong.end() == 2 and wrong.errors[0].startswith(f"usage: {name}.py HOSTS ")
    bad = begin(name, "127.0.0.1:99999", "find" if name == "registry" else "/a", "2" if name == "semaphore" else "x",
                *(["1"] if name == "registry" else ["y"] if name in POOLS else []))
    if name == "lock":
        bad = begin(name, "127.0.0.1:99999", "/a")
    assert bad.end() == 1 and bad.errors[-1].startswith(f"{name}.py: "), bad.errors


# Two members share the items; the one that is told to end hands over; at the end nothing is left.
@pytest.mark.parametrize("name", POOLS)
def test_pool(begin, server, path, name, monkeypatch):
    monkeypatch.setenv("SESSION_TIMEOUT_S", "5")
    first = begin(name, server.connect, path, *ITEMS)
    wait_for(lambda: first.working() == sorted(ITEMS), f"one has all: {first.lines} {first.errors}")
    second = begin(name, server.connect, path, *ITEMS)
    wait_for(lambda: len(first.working()) == len(second.working()) == 2 and
             sorted(first.working() + second.working()) == sorted(ITEMS), "each has half")
    assert first.end(signal.SIGTERM) == 0 and first.errors == [] and first.working() == []
    wait_for(lambda: second.working() == sorted(ITEMS), "the other has all")
    if name != "pool_processes":
        assert sum(line.startswith("prepare ") for line in second.lines) == len(ITEMS)
        assert all(line.split()[3] == "cache" for line in second.lines if line.startswith("begin "))
    tokens = [{line.split()[1]: int(line.split()[2]) for line in lines if line.startswith("begin ")}
              for lines in (first.lines, second.lines)]
    assert all(tokens[0][item] < tokens[1][item] for item in ITEMS)
    assert second.end(signal.SIGINT) == 0 and second.errors == []
    assert not [node for node in server.ephemerals() if node.startswith(path + "/")]


# The processes of a killed member end by themselves; one of them that is killed is started again.
def test_processes_die(begin, server, path):
    def exists(pid):
        try:
            state = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return False
        return state != "Z"

    member = begin("pool_processes", server.connect, path, "x")
    pid = int(member.wait_line(r"begin x \d+ (\d+)")[1])
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: sum(line.startswith("begin x") for line in member.lines) == 2, "another one begins")
    wait_for(lambda: any("the process of x has ended with -9" in line for line in list(member.errors)), "it says so")
    pid = int(member.lines[-1].split()[3])
    assert exists(pid)
    member.end(signal.SIGKILL)
    wait_for(lambda: not exists(pid), "its process ends")


# One after the other has the lock, under growing tokens.
def test_lock(begin, server, path):
    both = [begin("lock", server.connect, path) for _ in range(2)]
    assert [example.end() for example in both] == [0, 0]
    assert [example.lines[0] for example in both] == ["acquired"] * 2
    assert all(example.lines[-1] == "released" and example.errors == [] for example in both)
    tokens = [{int(line.split()[3]) for line in example.lines if line.startswith("step")} for example in both]
    assert [len(found) for found in tokens] == [1, 1] and tokens[0] != tokens[1]


# Two of three have the two slots, and the third gets one when it is free.
def test_semaphore(begin, server, path):
    three = [begin("semaphore", server.connect, path, "2") for _ in range(3)]
    assert [example.end() for example in three] == [0, 0, 0]
    assert sorted({example.lines[0] for example in three}) == ["slot 0", "slot 1"]
    assert all(example.lines[-1] == "released" and example.errors == [] for example in three)
    assert all(1 <= sum(line.startswith("holder") for line in example.lines) <= 2 for example in three)


# One leads; it steps down when it is asked to; the other follows when the leader ends.
@pytest.mark.parametrize("name", ["election", "election_asyncio"])
def test_election(begin, server, path, name):
    alice = begin(name, server.connect, path, "alice")
    alice.wait_line(r"I lead, under \d+")
    bob = begin(name, server.connect, path, "bob")
    bob.wait_line("alice leads")
    bob.process.stdin.write("\n")
    bob.process.stdin.flush()
    bob.wait_line(r"I lead, under \d+")
    alice.wait_line("bob leads")
    steps = [alice.lines.index(line) for line in
             ("somebody asks me to step down, and I do", "I no longer lead", "bob leads")]
    assert steps == sorted(steps), alice.lines
    assert bob.end(signal.SIGTERM) == 0 and bob.errors == [] and bob.lines[-1] == "I no longer lead"
    wait_for(lambda: len(alice.tokens()) == 2, "alice leads again")
    alice.process.stdin.close()
    assert alice.end() == 0 and alice.errors == []
    (first, third), (second,) = alice.tokens(), bob.tokens()
    assert first < second < third


# One that an access list keeps from standing says so.
@pytest.mark.parametrize("name", ["election", "election_asyncio"])
def test_election_denied(begin, server, path, name):
    client = KazooClient(server.connect)
    client.start()
    client.create(path, acl=READ_ACL_UNSAFE)
    client.stop()
    alice = begin(name, server.connect, path, "alice")
    alice.wait_line("I stand no longer: .*")
    alice.process.stdin.close()
    assert alice.end() == 0


# A candidate whose turn comes between the end of its work and that of its place begins no more.
def test_election_at_the_end(monkeypatch):
    spec = importlib.util.spec_from_file_location("election", FOLDER / "election.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    begun = []
    monkeypatch.setattr(module.Work, "_run", lambda _, token: begun.append(token))

    class Client:
        def election(self, _path, *, on_elected, **_):
            self.stand = lambda: on_elected(self, 1)
            self.close = lambda: on_elected(self, 2)
            return self

    monkeypatch.setattr(sys, "stdin", [])
    module.take_part(Client(), "/election", "alice")
    assert begun == [1]


# A worker is found, watched and gone; of two that want a unique role one leads.
def test_registry(begin, server):
    watcher = begin("registry", server.connect, "watch", "web", "60")
    worker = begin("registry", server.connect, "work", "web", "60")
    found = worker.wait_line(r"announced (\S+) pid (\d+) load .*")
    assert int(found[2]) == worker.process.pid
    finder = begin("registry", server.connect, "find", "web")
    assert finder.end() == 0 and finder.has(rf"found {re.escape(found[1])} pid {found[2]} load .*")
    watcher.wait_line(rf"added {re.escape(found[1])} .*")
    worker.end(signal.SIGKILL)
    watcher.wait_line(rf"removed {re.escape(found[1])} .*")
    leaders = [begin("registry", server.connect, "lead", "mailer", "2") for _ in range(2)]
    assert [example.end() for example in leaders] == [0, 0]
    assert sorted(example.lines[0].split()[0] for example in leaders) == ["following", "leading"]
