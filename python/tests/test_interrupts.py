"""^C at the moments at which it could be lost, or what a call has made. SPDX-License-Identifier: Apache-2.0"""
import os
import signal
import threading

import pytest

import divvy
from conftest import DEADLINE_S, wait_for
from divvy import _box, _core
from divvy._cffi import ffi

NOBODY = {"hosts": "127.0.0.1:1", "ensemble_tick_ms": 100, "session_timeout": 5, "on_log": lambda *_: None}


class Replaced:
    """A module with some names replaced."""

    def __init__(self, module, **names):
        self._module = module
        self.__dict__.update(names)

    def __getattr__(self, name):
        return getattr(self._module, name)


# A ^C ends the wait of a close for a callback, which the close itself may have called. The session ends all the same.
def test_interrupted_close(run_python):
    done = run_python("""
import os, signal, threading
import divvy
over = threading.Event()
def on_state(partitioner, change):
    if change.state == divvy.PartitionState.FAILURE:
        os.kill(os.getpid(), signal.SIGINT)
        over.wait()
client = divvy.Client(hosts="127.0.0.1:1", ensemble_tick_ms=100, on_log=lambda *_: None)
partitioner = client.partitioner("/a", ["b"], on_state=on_state)
try:
    client.close()
except KeyboardInterrupt:
    print("interrupted", client.closed)
over.set()
client.close()
print("closed", client._closer.done.is_open)
""")
    assert done.stdout == "interrupted True\nclosed True\n" and not done.stderr, done.stdout + done.stderr


# A ^C that comes while the close of an object waits for a callback comes out of that close.
def test_interrupted_close_of_an_object(client, path):
    begun, over = threading.Event(), threading.Event()
    partitioner = client.partitioner(path, ["a"], time_boundary=0, on_state=lambda *_: (begun.set(), over.wait()))
    assert begun.wait(DEADLINE_S)

    def send():
        wait_for(lambda: partitioner.closed, "the close has begun")
        os.kill(os.getpid(), signal.SIGINT)
        over.set()
    thread = threading.Thread(target=send)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        partitioner.close()
    thread.join()
    client.lock(path + "-lock").acquire(DEADLINE_S)


# One that comes while the library writes metrics comes out of that call.
def test_interrupted_metrics(monkeypatch):
    with divvy.Client(**NOBODY) as client:
        write = ffi.from_handle

        def interrupted(handle):
            os.kill(os.getpid(), signal.SIGINT)
            return write(handle)
        monkeypatch.setattr(divvy.client, "ffi", Replaced(ffi, from_handle=interrupted))
        with pytest.raises(KeyboardInterrupt):
            client.metrics()


# A program that is interrupted at its end ends all its clients, also where one waits for a callback that does not end.
def test_interrupted_end(run_python, server):
    done = run_python("""
import os, signal, threading
import divvy
def on_state(partitioner, change):
    if change.state == divvy.PartitionState.FAILURE:
        os.kill(os.getpid(), signal.SIGINT)
        threading.Event().wait()
stuck = divvy.Client(hosts="127.0.0.1:1", ensemble_tick_ms=100, on_log=lambda *_: None)
partitioner = stuck.partitioner("/a", ["b"], on_state=on_state)
client = divvy.Client(session_timeout=60)
client.lock("/interrupted_end").acquire(30)
print("held", flush=True)
""")
    assert done.stdout == "held\n" and "KeyboardInterrupt" in done.stderr, done.stderr
    assert not [node for node in server.ephemerals() if node.startswith("/interrupted_end")]


# Where no thread can be had, a close ends the client itself.
def test_close_without_threads(monkeypatch):
    client = divvy.Client(**NOBODY)

    def refuse(*_):
        raise RuntimeError("can't start new thread")
    with monkeypatch.context() as context:
        context.setattr(_core._thread, "start_new_thread", refuse)
        client.close()
    assert client._closer.done.is_open


def interrupt_making(monkeypatch, when):
    """Has the making of each thing be interrupted when the library has made it: before Python has it, or after."""
    fill = _box.Box.fill

    def interrupted(box, *arguments):
        if when == "after":
            fill(box, *arguments)
        raise KeyboardInterrupt
    monkeypatch.setattr(_box.Box, "fill", interrupted)


# A ^C at the moment at which a client or another thing is made leaves nothing of it, and no callback waits for it.
@pytest.mark.parametrize("when", ["before", "after"])
def test_interrupted_making(client, path, monkeypatch, server, when):
    tasks, told = len(os.listdir("/proc/self/task")), threading.Event()
    with monkeypatch.context() as context:
        interrupt_making(context, when)
        with pytest.raises(KeyboardInterrupt):
            divvy.Client(session_timeout=60)
        with pytest.raises(KeyboardInterrupt):
            client.partitioner(path, ["a"], time_boundary=0, on_state=print)
    wait_for(lambda: len(os.listdir("/proc/self/task")) <= tasks, "the threads of the client have ended")
    partitioner = client.partitioner(path, ["a"], time_boundary=0, on_state=lambda *_: told.set())
    assert told.wait(DEADLINE_S)
    wait_for(lambda: partitioner.owns("a"), "the item is no other's")


# A program that ends by such a ^C leaves no session behind.
def test_program_is_interrupted_as_it_opens(run_python, server):
    before = server.sessions()
    done = run_python(f"""
import os, signal, sys
sys.path.insert(0, {os.path.dirname(__file__)!r})
import conftest, divvy
from divvy import _box
server = conftest.Server({server.connect!r})
def interrupted(box, *arguments):
    conftest.wait_for(lambda: server.sessions() > {before}, "the session has begun")
    os.kill(os.getpid(), signal.SIGINT)
_box.Box.fill = interrupted
client = divvy.Client(session_timeout=60)
""")
    assert done.stderr.strip().endswith("KeyboardInterrupt"), done.stderr
    assert server.sessions() == before


# What a ^C finds granted, as it comes out of the call, is given back: nobody would know of it.
@pytest.mark.parametrize("kind,options,contenders", [("lock", {}, 2), ("semaphore", {"limit": 1}, 1)])
def test_interrupted_as_it_is_granted(client, make_client, path, kind, options, contenders):
    holder, waiter = (getattr(each, kind)(path, **options) for each in (make_client(), client))
    for _ in range(5):
        holder.acquire(DEADLINE_S)

        def send():
            wait_for(lambda: len(holder.contenders(DEADLINE_S)) == contenders, "it waits")
            os.kill(os.getpid(), signal.SIGINT)  # looked at when a slice of the wait has passed, or the call returns
            holder.release()
        thread = threading.Thread(target=send)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            waiter.acquire(DEADLINE_S)
        thread.join()
        assert not waiter.held
        waiter.wait_gone(DEADLINE_S)
