"""^C at the moments at which it could be lost, or what a call has made. SPDX-License-Identifier: Apache-2.0"""
import os
import signal
import threading

import pytest

import divvy
from conftest import DEADLINE_S, wait_for
from divvy import _core
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
