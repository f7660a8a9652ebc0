"""Garbage, closes in the handlers of signals, and copies. SPDX-License-Identifier: Apache-2.0"""
import copy
import os
import pickle
import signal
import sys
import threading

import pytest

import divvy
from conftest import DEADLINE_S, wait_for

NOBODY = {"hosts": "127.0.0.1:1", "ensemble_tick_ms": 100, "session_timeout": 5, "on_log": lambda *_: None}

# A program that makes cycles of everything, which finalizers of its own use.
CYCLES = """
import asyncio, gc, sys, warnings
import divvy
from divvy import aio
gc.disable()
warned, used = [], []
warnings.simplefilter("always")
warnings.showwarning = lambda message, *_, **__: warned.append(str(message))

class Worker:
    def __init__(self, client):
        self.client, client.worker = client, self
        if isinstance(client, divvy.Client):
            client.wait_connected(30)
        self.lock = client.lock("/{path}-lock")
        self.semaphore = client.semaphore("/{path}-semaphore")
        self.partitioner = client.partitioner("/{path}", ["a", "b"], on_items=lambda *_: self)
        self.partition, self.prepare = self.partitioner.partition(), self.partitioner.to_prepare()
        self.party = client.party("/{path}-party")
        self.election = client.election("/{path}-election", on_elected=lambda *_: self)
        self.registry = client.registry("/{path}-registry", on_load=lambda *_: self)
        self.registry.watch(None, lambda *_: self)

    def __del__(self):
        assert self.client._closer.done.wait(30)
        calls = [lambda: repr(self.client), lambda: self.client.state, lambda: self.client.time_left,
                 lambda: self.client.metrics(), lambda: self.lock.held, lambda: self.lock.release(),
                 lambda: self.lock.node, lambda: self.semaphore.slots, lambda: self.partitioner.look(),
                 lambda: self.partitioner.owns("a"), lambda: list(self.partition), lambda: len(self.prepare),
                 lambda: self.partition.generation, lambda: self.party.node, lambda: self.election.leads,
                 lambda: self.registry.unwatch(None), lambda: self.registry.malformed,
                 lambda: self.client.lock("/{path}"), lambda: self.lock.close(), lambda: self.client.close()]
        for call in calls:
            try:
                call()
            except divvy.Closed:
                pass
        used.append(len(calls))

def pointers(thing, depth=3):
    found = [thing] if "CDataGCP" in type(thing).__name__ else []
    inner = gc.get_referents(thing) if depth and not isinstance(thing, type) else []
    return found + [pointer for each in inner for pointer in pointers(each, depth - 1)]

def order(made):
    # A collection puts pointers before objects. In that order the next one ends them.
    things = [each for worker in made for each in vars(worker).values()]
    kept = [[pointer for each in things for pointer in pointers(each)], [[[made]]]]
    del things
    assert len(kept[0]) >= len(made), kept
    del made
    gc.collect()
    return kept

def forget(made):
    kept = order(made)
    del made
    kept.clear()
    gc.collect()
"""


# Finalizers in cycles, also the user's, never reach what was freed: whichever Python calls first.
def test_cycles(run_asan, server):
    done = run_asan(CYCLES.replace("{path}", "cycles") + """
for _ in range(2):
    forget([Worker(divvy.Client(session_timeout=60)) for _ in range(5)])
async def main():
    return [Worker(aio.Client(session_timeout=60)) for _ in range(5)]
forget(asyncio.run(main()))
assert len(used) == 15, used
assert len(warned) == 15 and "unclosed client of 127.0.0.1:" in warned[0] and "close()" in warned[0], warned
""")
    assert "xception" not in done.stderr, done.stderr
    wait_for(lambda: not [node for node in server.ephemerals() if "cycles" in node], "their sessions have ended")


# So it is at the interpreter's end, where nobody collects the cycles before.
def test_cycles_at_the_end(run_asan, server):
    done = run_asan(CYCLES.replace("{path}", "cycles_end") + """
kept = order([Worker(divvy.Client(session_timeout=60)) for _ in range(5)])
kept.pop(0)
""")
    assert done.stderr == ""
    assert not [node for node in server.ephemerals() if "cycles_end" in node]


# What is collected in callbacks, while threads make garbage of their own, breaks nothing.
def test_garbage_in_callbacks(run_asan, server):
    done = run_asan("""
import gc, threading, warnings
import divvy
warnings.simplefilter("ignore")
def make():
    for _ in range(5):
        client = divvy.Client(session_timeout=60, on_session=lambda c, s: gc.collect())
        client.wait_connected(30)
        client.lock("/garbage")
        p = client.partitioner("/garbage-p", ["a"], time_boundary=0, on_items=lambda p, _: (p.look(), gc.collect()))
        p.wait_for_acquire(0.02) if p.state_id == 0 else None
        client.itself = [client, p, p.partition()]
def work():
    try:
        make()
    except divvy.TimedOut:
        pass
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
""")
    assert done.stderr == ""


def close_in_handler(client, call):
    """Makes a call that waits, closes the client in the handler of a signal then, and returns what comes out of it."""
    main = threading.main_thread().ident
    handled = []

    def handle(number, frame):
        client.close()
        handled.append(client.closed)

    def send():
        def waits():
            frame = sys._current_frames()[main]
            while frame and frame.f_code.co_name != "_drive":
                frame = frame.f_back
            return frame
        wait_for(waits, "the wait has begun")
        os.kill(os.getpid(), signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, handle)
    thread = threading.Thread(target=send)
    try:
        thread.start()
        with pytest.raises(divvy.Error) as caught:
            call()
        thread.join()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert handled == [True]
    return caught.value


def wait_change(partitioner):
    partitioner.wait_change(partitioner.state_id)


STATUS = {"role": "web", "load": 1, "ttl": 30}
WAITS = {
    "wait_connected": lambda c: c.wait_connected(),
    "lock.acquire": lambda c: c.lock("/a").acquire(),
    "with lock": lambda c: c.lock("/a").__enter__(),
    "lock.try_acquire": lambda c: c.lock("/a").try_acquire(),
    "lock.contenders": lambda c: c.lock("/a").contenders(),
    "semaphore.acquire": lambda c: c.semaphore("/a").acquire(),
    "semaphore.resize": lambda c: c.semaphore("/a").resize(2),
    "semaphore.holders": lambda c: c.semaphore("/a").holders(),
    "semaphore.contenders": lambda c: c.semaphore("/a").contenders(),
    "wait_change": lambda c: wait_change(c.partitioner("/a", ["b"])),
    "wait_for_acquire": lambda c: c.partitioner("/a", ["b"]).wait_for_acquire(),
    "party.members": lambda c: c.party("/a").members(),
    "party_members": lambda c: c.party_members("/a"),
    "pool_pause": lambda c: c.pool_pause("/a", "b"),
    "election.leader": lambda c: c.election("/a").leader(),
    "election.candidates": lambda c: c.election("/a").candidates(),
    "election.ask_step_down": lambda c: c.election("/a").ask_step_down(),
    "heartbeat": lambda c: c.registry("/a").heartbeat(STATUS),
    "unregister": lambda c: c.registry("/a").unregister("web", "id"),
    "healthy_service": lambda c: c.registry("/a").healthy_service("web"),
    "healthy_services": lambda c: c.registry("/a").healthy_services(),
    "services": lambda c: c.registry("/a").services(),
    "unique_service": lambda c: c.registry("/a").unique_service("web", STATUS),
    "purge_stale_services": lambda c: c.registry("/a").purge_stale_services(),
}


# Each call that waits ends with Closed when the handler of a signal closes the client.
@pytest.mark.parametrize("what", WAITS)
def test_close_in_a_handler(what):
    client = divvy.Client(**NOBODY)
    error = close_in_handler(client, lambda: WAITS[what](client))
    assert type(error) is divvy.Closed and "this Client was closed during the call" in str(error)
    assert client._closer.done.is_open


# With a server, the session has ended when the call raises Closed, and so has the place in the queue.
def test_close_in_a_handler_with_a_server(client, make_client, path, server):
    other = make_client(session_timeout=60)
    lock = other.lock(path)
    with client.lock(path):
        assert isinstance(close_in_handler(other, lock.acquire), divvy.Closed)
        assert len([node for node in server.ephemerals() if node.startswith(path + "/")]) == 1
        other.close()


# So do calls that wait for nodes to go, when the server says nothing.
@pytest.mark.parametrize("what", ["lock.wait_gone", "partitioner.finish", "partitioner.leave", "party.leave"])
def test_close_in_a_handler_while_the_server_stops(make_client, path, server, what):
    client = make_client(session_timeout=60)
    lock, party = client.lock(path + "l"), client.party(path + "p")
    partitioner = client.partitioner(path, ["a"], time_boundary=0)
    lock.acquire(DEADLINE_S)
    party.members(DEADLINE_S)
    partitioner.wait_for_acquire(DEADLINE_S)
    server.control("pause")
    try:
        lock.release()
        names = {"lock": lock, "partitioner": partitioner, "party": party}
        thing, name = what.split(".")
        assert isinstance(close_in_handler(client, getattr(names[thing], name)), divvy.Closed)
    finally:
        server.control("resume")


# An object that is closed in the handler of a signal ends its own wait, and the client goes on.
def test_close_of_a_lock_in_a_handler(client, path):
    with client.lock(path) as holder:
        waiter = client.lock(path)
        before = signal.signal(signal.SIGUSR1, lambda *_: waiter.close())
        try:
            def send():
                wait_for(lambda: len(holder.contenders(DEADLINE_S)) == 2, "it waits")
                os.kill(os.getpid(), signal.SIGUSR1)
            thread = threading.Thread(target=send)
            thread.start()
            with pytest.raises(divvy.Closed, match="this Lock was closed"):
                waiter.acquire()
            thread.join()
        finally:
            signal.signal(signal.SIGUSR1, before)
        wait_for(lambda: len(holder.contenders(DEADLINE_S)) == 1, "its place is given up")


# A handler may close a client at any moment of calls that do not wait, too.
def test_close_in_handlers_of_a_busy_thread(run_python, server):
    done = run_python("""
import os, signal, threading
import divvy
options = dict(hosts="127.0.0.1:1", ensemble_tick_ms=100, on_log=lambda *_: None)
handled, over = 0, threading.Event()
def handle(number, frame):
    global handled
    client.close()
    handled += 1
def send():
    while not over.is_set():
        seen = handled
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGUSR1)
        while handled == seen and not over.is_set():
            over.wait(0.0003)
signal.signal(signal.SIGUSR1, handle)
client = divvy.Client(**options)
lock = client.lock("/a")
threading.Thread(target=send, daemon=True).start()
closed = 0
while closed < 150:
    try:
        client.stats(), client.state, lock.held, lock.node, client.session_id, client.lock("/b"), client.metrics()
    except divvy.Closed:
        closed += 1
        client = divvy.Client(**options)
over.set()
print(closed, handled >= closed)
""", 2 * DEADLINE_S)
    assert done.stdout.split() == ["150", "True"], done.stderr


# One that comes as the call is left, before the client has gone, does not wait for what it has interrupted.
def test_close_in_a_handler_as_a_call_is_left(run_python):
    done = run_python("""
import divvy
from divvy import _core
client = divvy.Client(hosts="127.0.0.1:1", ensemble_tick_ms=100, on_log=lambda *_: None)
kind = type(_core._local.leaving)
handled = 0
class Interrupted(kind):
    def __iter__(self):
        global handled
        for each in list(kind.__iter__(self)):
            yield each
            handled += 1
            if handled == 1:
                client.close()
def close():
    client.close()
    _core._local.leaving = Interrupted(_core._local.leaving)
_core.inside(client, close)
print(client.closed, handled)
""")
    assert done.stdout.split()[:1] == ["True"], done.stderr


# Nothing that stands for one thing can be copied or pickled, and it is as before after the attempt.
def test_copies(client, path):
    partitioner = client.partitioner(path, ["a"], time_boundary=0)
    things = [client, client.lock(path), client.semaphore(path + "s"), partitioner, partitioner.partition(),
              partitioner.look(), client.party(path + "p"), client.election(path + "e"), client.registry(path + "r")]
    for thing in things:
        for make in (copy.copy, copy.deepcopy, pickle.dumps):
            if isinstance(thing, divvy.View) and make is copy.copy:  # a tuple, in effect
                continue
            with pytest.raises(TypeError, match="cannot be copied or pickled"):
                make(thing)
    with client.lock(path):
        pass
    client.close()
