"""Signals, forks, and the end of the interpreter. SPDX-License-Identifier: Apache-2.0"""
import gc
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import divvy
from conftest import DEADLINE_S, wait_for
from divvy import _core
from divvy._cffi import lib


def interrupt_when(condition):
    """Sends SIGINT to this process when a condition holds."""
    def send():
        wait_for(condition, "the wait has begun")
        os.kill(os.getpid(), signal.SIGINT)
    thread = threading.Thread(target=send)
    thread.start()
    return thread


# ^C ends an acquire, whose place in the queue is given up.
def test_interrupted_acquire(client, path):
    lock = client.lock(path, identifier="waits")
    with client.lock(path, identifier="holds") as holder:
        thread = interrupt_when(lambda: len(holder.contenders(DEADLINE_S)) == 2)
        began = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            lock.acquire(DEADLINE_S)
        assert time.monotonic() - began < DEADLINE_S / 2  # and not at its end
        thread.join()
        wait_for(lambda: holder.contenders(DEADLINE_S) == ["holds"], "its place is given up")
    with lock:
        pass


# An open that fails after it has written a line of the log returns: no descriptor is left for the native client's pipe.
@pytest.mark.parametrize("kind", ["divvy", "divvy.aio"])
def test_failed_open(run_python, kind):
    done = run_python(f"""
import asyncio, os, resource, {kind}
lines = []
async def main():
    lowest = os.dup(0)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + 1, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    try:
        {kind}.Client("127.0.0.1:1", ensemble_tick_ms=100, on_log=lambda *line: lines.append(line))
    except divvy.SystemRefused as error:
        await asyncio.sleep(0)
        print("refused", bool(lines))
asyncio.run(main())
""")
    assert done.stdout == "refused True\n", done.stdout + done.stderr


# What a handler of a signal raises comes out of the wait; one that raises nothing does not end it.
def test_handlers(client, path):
    caught = []

    class Alarm(Exception):
        pass

    def raise_second(number, frame):
        caught.append(number)
        if len(caught) == 2:
            raise Alarm
    before = signal.signal(signal.SIGUSR1, raise_second)
    try:
        partitioner = client.partitioner(path, ["a"], time_boundary=0)
        partitioner.wait_for_acquire(DEADLINE_S)
        state_id = partitioner.state_id

        def send():
            for count in (1, 2):
                os.kill(os.getpid(), signal.SIGUSR1)
                wait_for(lambda: len(caught) >= count, "the handler has run")
        thread = threading.Thread(target=send)
        thread.start()
        began = time.monotonic()
        with pytest.raises(Alarm):
            partitioner.wait_change(state_id, DEADLINE_S)
        assert time.monotonic() - began < DEADLINE_S / 2
        thread.join()
        assert len(caught) == 2
    finally:
        signal.signal(signal.SIGUSR1, before)


GIVES = {
    "divvy_lock_contenders": lambda c, path: c.lock(path).contenders(DEADLINE_S),
    "divvy_party_list": lambda c, path: c.party_members(path, timeout=DEADLINE_S),
    "divvy_semaphore_holders": lambda c, path: c.semaphore(path).holders(DEADLINE_S),
    "divvy_election_leader": lambda c, path: c.election(path).leader(DEADLINE_S),
    "divvy_registry_services": lambda c, path: c.registry(path).services(None, DEADLINE_S),
    "divvy_registry_healthy_services": lambda c, path: c.registry(path).healthy_services(None, DEADLINE_S),
}


# What a call has given is freed, once, also where the handler of a signal raises as the call ends.
@pytest.mark.parametrize("name", GIVES)
def test_given_is_freed(client, path, monkeypatch, freed, name):
    ask, raises = _core.Handle._ask, []
    with client.election(path) as election:
        if name == "divvy_election_leader":
            election.stand()
            wait_for(lambda: election.leads, "it leads")

        def asked(handle, function, *arguments, **keywords):
            result = ask(handle, function, *arguments, **keywords)
            if raises and function == getattr(lib, name):
                _core._local.raised = KeyboardInterrupt()
            return result
        monkeypatch.setattr(_core.Handle, "_ask", asked)
        GIVES[name](client, path)
        gc.collect()
        assert len(freed) == 1
        raises.append(True)
        with pytest.raises(KeyboardInterrupt):
            GIVES[name](client, path)
        gc.collect()
        assert len(freed) == 2


# In the child of a fork every object raises ForkError, finalizers do nothing, and a new client works.
def test_fork(client, path, server):
    lock = client.lock(path)
    lock.acquire(DEADLINE_S)
    partitioner = client.partitioner(path + "p", ["a"], time_boundary=0)
    partitioner.wait_for_acquire(DEADLINE_S)
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            for call in (lock.release, lock.acquire, lambda: lock.held, lambda: client.lock(path), client.metrics,
                         lambda: client.state, lambda: partitioner.state, partitioner.partition,
                         lambda: partitioner.owns("a"), partitioner.finish):
                with pytest.raises(divvy.ForkError):
                    call()
            lock.close()
            client.close()
            del lock, partitioner
            with divvy.Client(session_timeout=5) as own:
                with own.lock(path + "2"):
                    status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert lock.held and partitioner.owns("a")


BUSY = """
import atexit, sys, threading, time
import divvy
client = divvy.Client(session_timeout=60, on_session=lambda c, s: None)
client.wait_connected(30)
calls = threading.Event()
def on_state(p, change):
    calls.set()
    time.sleep(0.05)
partitioner = client.partitioner("/{path}", ["a", "b"], time_boundary=0, on_state=on_state, on_items=on_state)
lock = client.lock("/{path}-lock")
lock.acquire(30)
"""
ENDS = {
    "normally": ("calls.wait(30)", 0),
    "by_an_exception": ("calls.wait(30); raise RuntimeError('wanted')", 1),
    "by_exit": ("calls.wait(30); sys.exit(3)", 3),
    "while_a_callback_exits": (
        "def leave(p, change):\n"
        "    calls.set(); sys.exit(5)\n"
        "p = client.partitioner('/{path}-2', ['a'], time_boundary=0, on_state=leave)\n"
        "calls.wait(30)", 0),
    "with_daemon_threads": (
        "def wait():\n"
        "    divvy.Client(session_timeout=60).lock('/{path}-lock').acquire()\n"
        "for _ in range(3): threading.Thread(target=wait, daemon=True).start()\n"
        "while len(lock.contenders(30)) < 4: time.sleep(0.01)", 0),
    "with_a_cycle": ("partitioner.itself = partitioner; client.itself = client; lock.itself = [lock]", 0),
    "and_uses_it_at_exit": ("atexit.register(lambda: (lock.release(), print('released')))", 0),
}


# A program that leaves everything open ends at once, with its own status, and leaves no node behind.
@pytest.mark.parametrize("how", ENDS)
def test_interpreter_ends(how, run_python, server):
    last, status = ENDS[how]
    path = f"ends_{how}"
    done = run_python((BUSY + last).replace("{path}", path))
    assert done.returncode == status, done.stderr
    assert ("released" in done.stdout) == (how == "and_uses_it_at_exit")
    expected = "RuntimeError: wanted" if how == "by_an_exception" else ""
    assert done.stderr.strip().endswith(expected) and bool(done.stderr) == bool(expected), done.stderr
    assert not [node for node in server.ephemerals() if path in node]


# A process of multiprocessing that leaves its client open leaves no node either.
def test_multiprocessing(run_python, server):
    done = run_python("""
import multiprocessing
import divvy
kept = []
def work():
    client = divvy.Client(session_timeout=60)
    lock = client.lock("/multiprocessing")
    lock.acquire(30)
    kept.extend([client, lock])
    print("held", flush=True)
process = multiprocessing.get_context("fork").Process(target=work)
process.start()
process.join()
print(process.exitcode)
""")
    assert done.stdout.split() == ["held", "0"], done.stderr
    assert not [node for node in server.ephemerals() if node.startswith("/multiprocessing")]


# ^C in a program of asyncio ends it as asyncio does: its tasks are canceled, and the client is closed.
def test_asyncio_is_interrupted(run_python, server):
    done = run_python("""
import asyncio, os, signal
from divvy import aio
async def main():
    async with aio.Client(session_timeout=60) as client:
        async with client.lock("/asyncio_is_interrupted"):
            waiter = client.lock("/asyncio_is_interrupted")
            task = asyncio.ensure_future(waiter.acquire())
            while not waiter.node:
                await asyncio.sleep(0.01)
            os.kill(os.getpid(), signal.SIGINT)
            await task
asyncio.run(main())
""")
    assert done.returncode == -signal.SIGINT and done.stderr.strip().endswith("KeyboardInterrupt"), done.stderr
    assert not [node for node in server.ephemerals() if node.startswith("/asyncio_is_interrupted")]


# A ^C in a program that waits ends it as Python ends programs by ^C.
def test_program_is_interrupted(run_python):
    done = run_python(BUSY.replace("{path}", "program") + """
import os, signal
def send():
    while len(lock.contenders(30)) < 2: time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=send).start()
client.lock("/program-lock").acquire()
""")
    assert done.returncode == -signal.SIGINT and done.stderr.strip().endswith("KeyboardInterrupt"), done.stderr


# Threads that use objects while others close them get results or divvy's errors, and nothing breaks.
def test_closed_while_used(make_client, path):
    faults, stop = [], threading.Event()

    def use(client, objects):
        lock, semaphore, partitioner, party, election = objects
        calls = [lambda: lock.acquire(0.01), lambda: lock.release(), lambda: lock.held, lambda: semaphore.try_acquire(),
                 lambda: semaphore.release(), lambda: partitioner.look().partition.items(),
                 lambda: partitioner.wait_change(partitioner.state_id, 0.01), lambda: party.members(0.01),
                 lambda: election.candidates(0.01), lambda: client.stats(), lambda: client.time_left,
                 lambda: client.metrics(), lambda: client.lock(path), lambda: lock.node, lambda: lock.cancel()]
        while not stop.is_set():
            for call in calls:
                try:
                    call()
                except divvy.Error:
                    pass
                except BaseException as error:
                    faults.append(error)

    for turn in range(6):
        stop.clear()
        client = make_client()
        partitioner = client.partitioner(path + "p", ["a", "b"], time_boundary=0, on_items=lambda *_: None)
        objects = [client.lock(path, on_lost=lambda _: None), client.semaphore(path + "s"), partitioner,
                   client.party(path + "party"), client.election(path + "e", on_elected=lambda *_: None)]
        objects[-1].stand()
        threads = [threading.Thread(target=use, args=(client, objects)) for _ in range(4)]
        for thread in threads:
            thread.start()
        partitioner.wait_for_acquire(DEADLINE_S)
        for handle in (objects if turn % 2 else []):
            handle.close()
        client.close()
        stop.set()
        for thread in threads:
            thread.join(DEADLINE_S)
            assert not thread.is_alive()
    assert faults == []


# With a death watch what a killed process held is free at once, and not after its session's timeout.
def test_death_watch(server, client, path):
    program = f"""
import divvy, os, signal
client = divvy.Client(session_timeout=30, death_watch=True, failover_delay=0.01)
client.lock({path!r}).acquire({DEADLINE_S})
os.kill(os.getpid(), signal.SIGKILL)
"""
    environment = {**os.environ, "DIVVY_LIBEXEC": os.environ["DIVVY_BUILD_DIR"] + "/tools"}
    done = subprocess.run([sys.executable, "-c", program], stderr=subprocess.PIPE, text=True, env=environment)
    assert (done.returncode, done.stderr) == (-signal.SIGKILL, "")
    began = time.monotonic()
    client.lock(path).acquire(DEADLINE_S)
    assert time.monotonic() - began < 10  # a session of 30 s lives for 20 s after its last sign of life, at least
