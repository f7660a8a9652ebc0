"""divvy.kazoo beside what kazoo's own suite does not ask. SPDX-License-Identifier: Apache-2.0"""
import copy
import gc
import os
import pickle
import signal
import threading

import kazoo.client
import kazoo.exceptions
import kazoo.recipe.lock
import kazoo.recipe.partitioner
import pytest

import divvy
from conftest import DEADLINE_S, wait_for
from divvy.kazoo import KazooClient, Lock, Party, PartitionState, Semaphore, SetPartitioner, ShallowParty
from divvy.kazoo._session import options, session_of


@pytest.fixture
def zk(server):
    client = KazooClient(server.connect)
    client.start()
    yield client
    client.stop()
    client.close()


@pytest.fixture
def plain(server):
    client = kazoo.client.KazooClient(server.connect)
    client.start()
    yield client
    client.stop()
    client.close()


# The classes are given any KazooClient; kazoo's own stand in one queue with them, and see their names.
def test_lock_beside_kazoos(plain, path):
    ours, theirs = Lock(plain, path, "ours"), kazoo.recipe.lock.Lock(plain, path, "theirs")
    with ours:
        assert not theirs.acquire(blocking=False)
        assert theirs.contenders()[0] == "ours" and ours.node in plain.get_children(path)
        with pytest.raises(kazoo.exceptions.LockTimeout):
            theirs.acquire(timeout=0.05)
    with theirs:
        assert ours.acquire(blocking=False) is False
        with pytest.raises(kazoo.exceptions.LockTimeout):
            ours.acquire(timeout=0.05)
    assert ours.release() is False


# Members of kazoo's and of divvy's divide a pool of integers by kazoo's rule.
def test_mixed_pool(plain, path):
    ours = SetPartitioner(plain, path, set=range(12), time_boundary=0.1, identifier="a")
    theirs = kazoo.recipe.partitioner.SetPartitioner(plain, path, set=range(12), time_boundary=0.1, identifier="b")

    def divided():
        for member in (ours, theirs):
            if member.release:
                member.release_set()
            member.wait_for_acquire(0.05)
        return ours.acquired and theirs.acquired and len(list(ours)) == len(list(theirs)) == 6
    wait_for(divided, "both have half")
    assert (list(ours), list(theirs)) == (list(range(0, 12, 2)), list(range(1, 12, 2)))
    theirs.finish()
    ours.finish()
    assert ours.failed and ours.state == PartitionState.FAILURE and list(ours) == []


# A user's own function decides, with kazoo's arguments; items that are neither strings nor integers are divided, too.
@pytest.mark.parametrize("func", [None, lambda identifier, members, items: sorted(items, reverse=True)])
def test_partition_func(zk, path, func):
    items = [(1, "a"), (2, "b")]
    event = threading.Event()
    partitioner = zk.SetPartitioner(path, set=items, partition_func=func, time_boundary=0, identifier="me",
                                    state_change_event=event)
    wait_for(lambda: partitioner.wait_for_acquire(1) or partitioner.acquired, "acquired")
    assert sorted(partitioner) == items and event.wait(DEADLINE_S) and partitioner.state_id > 0
    partitioner.finish()


# A cancel ends the acquire that waits in another thread, and no later one.
@pytest.mark.parametrize("kind", ["Lock", "Semaphore"])
def test_cancel(zk, plain, path, kind):
    recipe = getattr(zk, kind)
    held, waits = recipe(path), recipe(path)
    held.acquire()
    ended = []

    def wait():
        try:
            waits.acquire()
        except kazoo.exceptions.CancelledError as error:
            ended.append(error)
    for _ in range(20):
        thread = threading.Thread(target=wait)
        thread.start()
        wait_for(lambda: waits._acquiring or ended, "it has begun")
        waits.cancel()
        thread.join(DEADLINE_S)
        assert ended.pop()
    held.release()
    waits.cancel()
    if kind == "Lock":  # as kazoo: a semaphore forgets a cancel that comes before its acquire, a lock does not
        with pytest.raises(kazoo.exceptions.CancelledError):
            waits.acquire(timeout=DEADLINE_S)
    assert waits.acquire(timeout=DEADLINE_S) is True
    waits.release()
    theirs = getattr(plain, kind)(path)
    theirs.cancel()
    if kind == "Lock":
        with pytest.raises(kazoo.exceptions.CancelledError):
            theirs.acquire(timeout=DEADLINE_S)
    assert theirs.acquire(timeout=DEADLINE_S) is True


# All recipes on one KazooClient share one divvy client, which ends with it; then they say what kazoo's say.
def test_one_client(server, path):
    zk = KazooClient(server.connect)
    with pytest.raises(kazoo.exceptions.ConnectionClosedError):
        zk.Lock(path).acquire()
    zk.start()
    lock, semaphore = zk.Lock(path), zk.Semaphore(path + "s")
    assert lock.acquire() and semaphore.acquire()
    client = session_of(zk).get()
    assert lock._thing._client is client and semaphore._thing._client is client
    zk.stop()
    assert client.closed and not lock.is_acquired
    assert not [node for node in server.ephemerals() if node.startswith(path)]
    zk.start()
    assert lock.acquire() and session_of(zk).get() is not client
    zk.stop()
    zk.close()


# Hosts, chroot, session timeout and credentials are those of the KazooClient.
def test_options(server):
    zk = kazoo.client.KazooClient("h1:1,[::1]:2/root", timeout=7, randomize_hosts=False, auth_data=[("digest", "u:p")])
    assert options(zk) == {"hosts": "h1:1,[::1]:2/root", "session_timeout": 7, "auth": "u:p", "acl": divvy.Acl.OPEN,
                           "ensemble_tick_ms": None}
    with pytest.raises(divvy.Unsupported, match="scheme"):
        options(kazoo.client.KazooClient(auth_data=[("ip", "x")]))


# Without $DIVVY_ENSEMBLE_TICK_MS the tick is asked of the server.
def test_tick_of_the_server(zk, monkeypatch):
    tick = int(os.environ["DIVVY_ENSEMBLE_TICK_MS"])
    monkeypatch.delenv("DIVVY_ENSEMBLE_TICK_MS")
    assert options(zk)["ensemble_tick_ms"] == tick


# What divvy.kazoo cannot do it refuses, with the reason.
def test_refusals(zk, path):
    with pytest.raises(divvy.Unsupported, match="extra_lock_patterns"):
        Lock(zk, path, extra_lock_patterns=["-lock-"])
    with pytest.raises(divvy.Unsupported, match="ephemeral"):
        Lock(zk, path).acquire(ephemeral=False)


# Parties of both kinds list kazoo's members and are listed by them.
@pytest.mark.parametrize("shallow", [False, True])
def test_party_beside_kazoos(zk, plain, path, shallow):
    ours = (ShallowParty if shallow else Party)(zk, path, "ours")
    theirs = (plain.ShallowParty if shallow else plain.Party)(path, "theirs")
    assert len(ours) == 0 and not ours.participating
    theirs.join()
    assert list(ours) == ["theirs"]
    ours.join()
    assert sorted(theirs) == sorted(ours) == ["ours", "theirs"] and ours.participating
    assert ours.leave() is True and ours.leave() is False and list(theirs) == ["theirs"]


# A member whose session is lost while it leaves has left: the servers delete its node.
def test_leave_of_a_lost_session(zk, path, monkeypatch):
    def lost():
        raise divvy.SessionLost
    party = zk.Party(path, "ours")
    party.join()
    monkeypatch.setattr(party._party, "leave", lost)
    assert party.leave() is True and not party.participating


# What is held, or takes part, goes on when the program forgets the object, as with kazoo.
def test_forgotten(zk, path):
    zk.Lock(path + "l").acquire()
    zk.Party(path + "p", "a").join()
    zk.SetPartitioner(path + "s", set=["a"], time_boundary=0, identifier="a")
    gc.collect()
    assert not zk.Lock(path + "l").acquire(blocking=False) and list(zk.Party(path + "p")) == ["a"]
    wait_for(lambda: len(zk.ShallowParty(path + "s/party")) == 1, "it takes part")


# When the KazooClient stops, a partitioner has failed, and its event says that something has changed.
def test_partitioner_fails(server, path):
    zk = KazooClient(server.connect)
    zk.start()
    partitioner = zk.SetPartitioner(path, set=["a"], time_boundary=0)
    wait_for(lambda: partitioner.acquired, "acquired")
    wait_for(partitioner.state_change_event.is_set, "its event")
    partitioner.state_change_event.clear()
    zk.stop()
    assert partitioner.failed and partitioner.state_change_event.wait(DEADLINE_S) and list(partitioner) == []
    zk.close()


# A semaphore with another number of leases is a ValueError, as with kazoo.
def test_semaphore(zk, path):
    assert Semaphore(zk, path, "a", max_leases=2).acquire()
    with pytest.raises(ValueError):
        Semaphore(zk, path, max_leases=3).acquire()
    assert Semaphore(zk, path, max_leases=2).lease_holders() == ["a"]


# A handler of a signal may stop the KazooClient while a lock of it waits, which then says so.
def test_stop_in_a_handler(zk, plain, path):
    stopped = []

    def stop(number, frame):
        zk.stop()
        stopped.append(number)

    def send():
        wait_for(lambda: len(theirs.contenders()) == 2, "it waits")
        os.kill(os.getpid(), signal.SIGUSR1)

    ours, theirs = zk.Lock(path, "ours"), kazoo.recipe.lock.Lock(plain, path, "theirs")
    before = signal.signal(signal.SIGUSR1, stop)
    try:
        with theirs:
            thread = threading.Thread(target=send)
            thread.start()
            with pytest.raises(kazoo.exceptions.ConnectionClosedError):
                ours.acquire(timeout=DEADLINE_S)
            thread.join()
            assert stopped
            wait_for(lambda: theirs.contenders() == ["theirs"], "its place is given up")
    finally:
        signal.signal(signal.SIGUSR1, before)


# What stands for one thing is not copied.
def test_copies(zk, path):
    for thing in (zk.Lock(path), zk.Semaphore(path), zk.Party(path), zk.SetPartitioner(path, set=["a"])):
        for make in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match="cannot be copied or pickled"):
                make(thing)


# An own rule is given the user's own set, as kazoo's is.
@pytest.mark.parametrize("recipe", [SetPartitioner, kazoo.recipe.partitioner.SetPartitioner])
def test_own_set(plain, path, recipe):
    mine, seen = {"a", "b"}, []

    def share(identifier, members, items):
        seen.append(items)
        return sorted(items)
    partitioner = recipe(plain, path, set=mine, partition_func=share, time_boundary=0.1)
    wait_for(lambda: partitioner.wait_for_acquire(1) or partitioner.acquired, "acquired")
    assert sorted(partitioner) == ["a", "b"] and seen[0] is mine
    partitioner.finish()


# Of nothing a member has nothing, at once, as with kazoo; here it takes no place in the pool.
@pytest.mark.parametrize("recipe", [SetPartitioner, kazoo.recipe.partitioner.SetPartitioner])
def test_empty_set(plain, path, recipe):
    partitioner = recipe(plain, path, set=(), time_boundary=0.1)
    wait_for(lambda: partitioner.wait_for_acquire(1) or partitioner.acquired, "acquired")
    assert list(partitioner) == [] and partitioner.state_change_event.is_set()
    partitioner.release_set()
    partitioner.finish()
    assert partitioner.failed or recipe is not SetPartitioner


# Two items of one name are refused, and so is what is no set, no function, no number of leases.
@pytest.mark.parametrize("make, error, match", [
    (lambda zk: zk.SetPartitioner("/a", set=[1, "1"]), ValueError, "the items 1 and '1' have one name"),
    (lambda zk: zk.SetPartitioner("/a", set=["a", "a"]), ValueError, "give each item once"),
    (lambda zk: zk.SetPartitioner("/a", set="abc"), TypeError, "set must be a list"),
    (lambda zk: zk.SetPartitioner("/a", set=None), TypeError, "set must be a list"),
    (lambda zk: zk.SetPartitioner("/a", set=["a"], partition_func=1), TypeError, "partition_func must be a function"),
    (lambda zk: zk.SetPartitioner("/a", set=["a"], time_boundary="1"), TypeError, "time_boundary must be a number"),
    (lambda zk: zk.SetPartitioner(None, set=["a"]), TypeError, "path must be a str"),
    (lambda zk: zk.Semaphore("/a", max_leases=0), ValueError, "max_leases is 0"),
    (lambda zk: zk.Semaphore("/a", max_leases=-1), ValueError, "max_leases is -1"),
    (lambda zk: zk.Semaphore("/a", max_leases=1 << 40), ValueError, "max_leases is 1099511627776"),
    (lambda zk: zk.Semaphore("/a", max_leases="2"), TypeError, "max_leases must be an int"),
    (lambda zk: zk.Semaphore(b"/a"), TypeError, "path must be a str"),
    (lambda zk: zk.Lock(None), TypeError, "path must be a str"),
    (lambda zk: zk.Lock("/a\0"), ValueError, "path has a NUL"),
    (lambda zk: zk.Lock("/a").acquire(timeout="1"), TypeError, "timeout must be a number"),
    (lambda zk: zk.Lock("/a").acquire(timeout=float("nan")), ValueError, "timeout is nan"),
    (lambda zk: zk.Lock("/").acquire(), ValueError, 'path is "/"'),
    (lambda zk: zk.Party(3), TypeError, "path must be a str"),
    (lambda zk: zk.ShallowParty(None), TypeError, "path must be a str"),
])
def test_arguments(zk, make, error, match):
    with pytest.raises(error, match=match):
        make(zk)
