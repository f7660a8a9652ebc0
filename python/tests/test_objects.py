"""The blocking classes, on a real server. SPDX-License-Identifier: Apache-2.0"""
import gc
import os
import pathlib
import threading
import time
import weakref

import pytest

import divvy
from conftest import DEADLINE_S, wait_for


# A client tells its state, its session and its figures, and is closed at the end of its block.
def test_client(make_client):
    states = []
    with make_client(on_session=lambda client, state: states.append((client, state))) as client:
        client.wait_connected(DEADLINE_S)
        assert client.state == divvy.SessionState.CONNECTED and client.session_id and 0 < client.time_left <= 5
        assert client.stats()["connects"] == 1
        assert client.metrics().endswith("# EOF\n") and "divvy_" in client.metrics_prometheus()
        wait_for(lambda: states, "on_session")
        assert states[0] == (client, divvy.SessionState.CONNECTED)
    assert client.closed and client.state == divvy.SessionState.CLOSED and client.time_left == 0
    with pytest.raises(divvy.Closed):
        client.session_id
    client.close()


# An operator's program pauses, pins, drains and sets what a pool does. The result tells what it changed.
def test_pool(make_client, path):
    members = [make_client().partitioner(path, ["a", "b", "c", "d"], identifier=name, time_boundary=0.05)
               for name in ("one", "two")]
    client = make_client()

    def owned():
        for member in members:
            if member.state == divvy.PartitionState.RELEASE:
                member.release_set()
        return [sorted(member.partition().items()) for member in members]

    wait_for(lambda: sorted(map(len, owned())) == [2, 2], "the items are divided")
    item = owned()[0][0]
    told = client.pool_pause(path, item, by="anna", why="poisoned", timeout=DEADLINE_S)
    assert (told.changed, told.moves, told.absent) == (True, 1, False)
    wait_for(lambda: item not in sum(owned(), []), "nobody has it")
    assert not client.pool_pause(path, item).changed
    assert client.pool_resume(path, item, dry_run=True).moves == 1
    assert client.pool_resume(path, item).generation > told.generation
    wait_for(lambda: item in owned()[0], "it is back")
    assert client.pool_pin(path, item, "two").changed and client.pool_pin(path, item, "three").absent
    assert client.pool_unpin(path, item).changed and client.pool_move(path, item, "two").changed
    wait_for(lambda: item in owned()[1], "it has moved")
    assert client.pool_set_weight(path, "one", 0).items == 0
    assert client.pool_set_weight(path, "one", None).weight == 1000
    assert client.pool_set_option(path, "round-timeout", 30).changed
    assert client.pool_set_option(path, "imbalance-max", 0.3).changed
    assert not client.pool_set_option(path, "max-moves", None).changed
    assert client.pool_need(path, "x*", "gpu").changed and client.pool_need(path, "x*", None).changed
    asked = [threading.Thread(target=client.pool_pause, args=(path, one)) for one in ("a", "b", "c", "d")]
    for thread in asked:  # who comes second to the plan begins again
        thread.start()
    wait_for(lambda: owned() == [[], []] and not any(thread.is_alive() for thread in asked), "all are paused")
    with pytest.raises(divvy.NoNode, match="has no item x"):
        client.pool_pause(path, "x")
    with pytest.raises(divvy.WrongState, match="one is there"):
        client.pool_forget(path, "one")
    with pytest.raises(divvy.InvalidArgument, match="there are: imbalance-max"):
        client.pool_set_option(path, "colour", 1)


# Arguments that the library, or Python, refuses raise InvalidArgument with the reason.
def test_invalid_arguments(client):
    with pytest.raises(divvy.InvalidArgument, match="nope"):
        client.lock("nope")
    with pytest.raises(divvy.InvalidArgument, match="NUL"):
        client.lock("/a\0b")
    with pytest.raises(divvy.InvalidArgument, match="seconds"):
        client.lock("/a").acquire(-1)
    with pytest.raises(divvy.InvalidArgument, match="tick"):
        divvy.Client(ensemble_tick_ms=-1)
    with pytest.raises(divvy.InvalidArgument, match="once, behind the last host"):
        divvy.Client("h1:2181/x,h2:2181/x", ensemble_tick_ms=100)


# Without callbacks of the user's the library's lines go to Python's logging.
def test_log_goes_to_logging(make_client, caplog):
    with caplog.at_level("DEBUG", "divvy"):
        make_client(log_requests=True).wait_connected(DEADLINE_S)
        wait_for(lambda: any(record.name == "divvy" for record in caplog.records), "a line in the log")


# A lock is held in its block and no longer; others time out, find it busy, and see who holds it.
def test_lock(client, path):
    with client.lock(path, identifier="a") as lock:
        assert lock.held and lock.token > 0
        other = client.lock(path)
        with pytest.raises(divvy.TimedOut):
            other.acquire(0.05)
        assert not other.try_acquire()
        assert lock.contenders(DEADLINE_S) == ["a"]
        with pytest.raises(divvy.AlreadyHeld):
            lock.acquire()
        token = lock.token
    assert not lock.held and lock.token == 0
    with pytest.raises(divvy.NotHeld):
        lock.release()
    with other:
        assert other.token > token


# Readers share; a writer does not.
def test_lock_modes(client, path):
    with client.lock(path, mode=divvy.LockMode.READ), client.lock(path, mode=divvy.LockMode.READ):
        assert not client.lock(path, mode=divvy.LockMode.WRITE).try_acquire()


# An acquire in another thread ends with Canceled by a cancel of its number, also if that comes before it.
def test_lock_cancel(client, path):
    lock = client.lock(path)
    lock.cancel(lock.attempt_id)
    with pytest.raises(divvy.Canceled):
        lock.acquire()
    lock.cancel()
    with lock:
        pass


# on_lost is called when somebody deletes the node.
def test_lock_lost(client, make_client, path):
    lost = threading.Event()
    lock = client.lock(path, on_lost=lambda _: lost.set())
    lock.acquire(DEADLINE_S)
    import kazoo.client
    zk = kazoo.client.KazooClient(client_hosts())
    zk.start()
    zk.delete(path, recursive=True)
    assert lost.wait(DEADLINE_S) and not lock.held
    zk.stop()
    zk.close()


def client_hosts():
    import os
    return os.environ["DIVVY_CONNECT"]


# A semaphore gives numbered slots, up to its limit, and tells who has them; another limit is an error.
def test_semaphore(client, path):
    with client.semaphore(path, identifier="a", limit=3, count=2) as semaphore:
        assert semaphore.held and semaphore.slots == [0, 1] and semaphore.slot == 0 and semaphore.token
        holder, = semaphore.holders(DEADLINE_S)
        assert (holder.identifier, holder.slots, holder.token) == ("a", 2, semaphore.token)
        one = client.semaphore(path, limit=3)
        assert one.try_acquire() and one.slots == [2]
        assert not client.semaphore(path, limit=3).try_acquire()
        with pytest.raises(divvy.Differs):
            client.semaphore(path, limit=4).acquire(DEADLINE_S)
        one.release()
    semaphore.resize(5, DEADLINE_S)
    with client.semaphore(path, limit=1, limit_policy=divvy.LimitPolicy.STORED, count=5) as five:
        assert five.slots == [0, 1, 2, 3, 4]


# Two members divide the items; what callbacks and snapshots say is the same; one that finishes leaves all to the other.
def test_partitioner(client, make_client, path):
    told = []
    items = [f"item-{i}" for i in range(10)]
    first = client.partitioner(path, items, time_boundary=0.05, on_items=lambda _, change: told.append(change),
                               on_state=lambda _, change: told.append(change))
    first.wait_for_acquire(DEADLINE_S)
    assert sorted(entry.item for entry in first.partition()) == items
    acquired = divvy.StateChange(divvy.PartitionState.ALLOCATING, divvy.PartitionState.ACQUIRED)
    wait_for(lambda: acquired in told, "on_state")
    gained = {}
    for change in told:
        gained.update(getattr(change, "gained", {}))
    assert gained == {entry.item: entry.token for entry in first.partition()}
    second = make_client().partitioner(path, items, time_boundary=0.05)

    def divided():
        view = first.look()
        if view.state == divvy.PartitionState.RELEASE:
            assert any(entry.revoked for entry in view.partition)
            first.release_set(view.state_id)
        return len(first.partition().items()) == len(second.partition().items()) == 5

    wait_for(divided, "both have half")
    mine = first.partition()[0]
    assert first.owns(mine.item) and first.owns(mine.item, mine.token) and not first.owns(mine.item, mine.token + 1)
    assert not second.owns(mine.item)
    second.finish(DEADLINE_S)
    assert second.state == divvy.PartitionState.FAILURE and isinstance(second.failure, divvy.Canceled)
    wait_for(lambda: len(first.partition()) == 10, "all is back")


# wait_change returns whether the state has changed.
def test_wait_change(client, path):
    partitioner = client.partitioner(path, ["a"], time_boundary=0)
    wait_for(lambda: partitioner.wait_change(partitioner.state_id, 0.01) or partitioner.state ==
             divvy.PartitionState.ACQUIRED, "acquired")
    assert partitioner.wait_change(partitioner.state_id, 0.01) is False


# A member tells loads of what it owns; a load that is none, and an item that the pool does not have, are refused.
def test_set_load(client, path):
    partitioner = client.partitioner(path, ["a"], time_boundary=0, load_unit="req/s", load_interval=1, load_floor=0.5,
                                     tags="ssd,gpu", item_cap=5, min_members=1, min_members_wait=1)
    partitioner.wait_for_acquire(DEADLINE_S)
    partitioner.set_load("a", 2.5)
    partitioner.set_load("a", 0)
    with pytest.raises(divvy.InvalidArgument, match="from 0 up"):
        partitioner.set_load("a", -1)
    with pytest.raises(divvy.NoNode):
        partitioner.set_load("b", 1)
    for interval in (0.999, 0, 4000):
        with pytest.raises(divvy.InvalidArgument, match=f"^load_interval is {interval}: give 1 to 3600 seconds$"):
            client.partitioner(path, ["a"], load_interval=interval)
    with pytest.raises(divvy.InvalidArgument, match="tag"):
        client.partitioner(path, ["a"], tags="not a tag")


# A rule in Python divides the pool; one that raises makes the member fail, and the exception is reported.
def test_own_rule(client, path, monkeypatch):
    hooked = []
    monkeypatch.setattr(threading, "excepthook", hooked.append)
    everything = client.partitioner(path, ["a", "b"], time_boundary=0, func=lambda me, members, items: items)
    everything.wait_for_acquire(DEADLINE_S)
    assert everything.partition().items() == ["a", "b"]
    broken = client.partitioner(path + "2", ["a"], time_boundary=0, func=lambda me, members, items: 1 / 0)
    wait_for(lambda: broken.state == divvy.PartitionState.FAILURE, "it fails")
    assert hooked[0].exc_type is ZeroDivisionError


# Members of a party are listed with and without joining; leaving is leaving.
@pytest.mark.parametrize("shallow", [False, True])
def test_party(client, path, shallow):
    with client.party(path, identifier="a", shallow=shallow) as party:
        assert party.members(DEADLINE_S) == ["a"]
        assert client.party_members(path, shallow=shallow, timeout=DEADLINE_S) == ["a"]
        party.leave(DEADLINE_S)
    assert client.party_members(path, shallow=shallow, timeout=DEADLINE_S) == []


# One candidate leads; when asked to step down it can; the next one follows.
def test_election(client, path):
    asked, elected, leaders = [], [], []

    def resign(election, who):
        asked.append(who)
        election.resign()

    first = client.election(path, data="first", on_step_down=resign)
    second = client.election(path, data="second", on_elected=lambda election, token: elected.append(token),
                             on_leader=lambda election, leader: leaders.append(leader and leader.data))
    first.stand()
    wait_for(lambda: first.leads, "the first leads")
    second.stand()
    wait_for(lambda: second.leader(DEADLINE_S) == divvy.Leader(first.token, b"first"), "the second knows")
    wait_for(lambda: second.candidates(DEADLINE_S) == ["first", "second"], "both stand")
    second.ask_step_down(DEADLINE_S)
    assert asked == [b"second"]
    wait_for(lambda: elected == [second.token], "the second leads")
    wait_for(lambda: leaders[-1] == b"second", "on_leader says so")


# A service is announced, found, watched, and removed; JSON goes through unchanged.
def test_registry(client, path):
    changes = []
    registry = client.registry(path)
    registry.watch("web", lambda _, change: changes.append(change))
    extra = {"tags": ["ä", None, 1.5, True], "nested": {"a": []}}
    entry = registry.heartbeat({"role": "web", "load": 1, "ttl": 30, **extra}, DEADLINE_S)
    assert registry.is_ours(entry) and {key: entry[key] for key in extra} == extra
    wait_for(lambda: registry.healthy_service("web", DEADLINE_S) == entry, "the view has it")
    assert registry.healthy_services(timeout=DEADLINE_S) == [entry]
    listed = registry.services("web", DEADLINE_S)
    assert list(listed) == [entry] and listed[0] is listed[-1] and listed[:1] == [entry] and len(listed) == 1
    with pytest.raises(IndexError):
        listed[1]
    wait_for(lambda: changes, "on_change")
    assert (changes[0].kind, changes[0].before, changes[0].after) == (divvy.ChangeKind.ADDED, None, entry)
    registry.unregister("web", entry["id"], DEADLINE_S)
    wait_for(lambda: changes[-1].kind == divvy.ChangeKind.REMOVED, "removed")
    registry.unwatch("web")
    assert list(listed) == [entry] and not registry.services(timeout=DEADLINE_S)
    assert registry.healthy_services("web", DEADLINE_S) == [] and registry.purge_stale_services() == 0
    unique = registry.unique_service("one", {"ttl": 30}, DEADLINE_S)
    assert registry.is_ours(unique) and registry.unique_service("one", timeout=DEADLINE_S) == unique
    with pytest.raises(divvy.NoNode):
        registry.unregister("web", "nobody", DEADLINE_S)
    with pytest.raises(divvy.InvalidArgument, match="load"):
        registry.heartbeat({"role": "web", "ttl": 30})
    whole = {"role": "web", "load": 1, "ttl": 30, "largest": 10**15 - 1, "least": 1 - 10**15}
    assert registry.heartbeat(whole, DEADLINE_S).items() >= whole.items()
    for changed in (10**15, -10**15, 2**63):
        with pytest.raises(divvy.InvalidArgument, match="more than 15 digits would change"):
            registry.heartbeat({**whole, "deep": [{"number": changed}]})


# A view needs no function of the program's: lookups, and its end, are as with one.
def test_registry_view_alone(client, path):
    registry = client.registry(path)
    registry.watch("web")
    registry.heartbeat({"role": "web", "load": 1, "ttl": 30, "id": "a"}, DEADLINE_S)
    wait_for(lambda: registry.services("web", DEADLINE_S), "the view has it")
    listed = [registry.services("web", DEADLINE_S) for _ in range(2)]
    assert [[entry["id"] for entry in services] for services in listed] == [["a"], ["a"]]
    registry.unwatch("web")
    registry.watch("web", None)
    with pytest.raises(divvy.AlreadyHeld):
        registry.watch("web")


# The load of a service that sends its heartbeats by itself comes from Python.
def test_registry_load(client, path):
    registry = client.registry(path, heartbeat=True, on_load=lambda _, role, id, load: load + 1)
    registry.heartbeat({"role": "web", "load": 1, "ttl": 0.3}, DEADLINE_S)
    wait_for(lambda: (registry.healthy_service("web", DEADLINE_S) or {"load": 0})["load"] > 2, "loads that grow")


# Where `on_load` raises, or gives no number, the load stays as it was told last.
def test_registry_load_fails(client, path, monkeypatch):
    hooked, asked = [], []
    monkeypatch.setattr(threading, "excepthook", hooked.append)

    def on_load(_registry, _role, _id, load):
        asked.append(load)
        return None if len(asked) % 2 else 1 / 0
    registry = client.registry(path, heartbeat=True, on_load=on_load)
    registry.heartbeat({"role": "web", "load": 7, "ttl": 0.3}, DEADLINE_S)
    wait_for(lambda: len(asked) > 3, "heartbeats that are sent by themselves")
    assert set(asked) == {7.0}
    assert {told.exc_type for told in hooked} == {TypeError, ZeroDivisionError}


# The assignments are those of the library.
def test_assign():
    assert divvy.assign_round_robin(["b", "a"], ["1", "10", "2"]) == [1, 0, 1]
    assert divvy.assign_round_robin(["b", "a"], ["1", "10", "2"], numeric=True) == [1, 1, 0]
    assert sorted(divvy.assign_rendezvous(["a", "b"], ["1", "2", "3", "4"])) == [0, 0, 1, 1]
    assert divvy.assign_sticky(["a", "b"], ["1", "2", "3"], [0, 0, None]) == [0, 0, 1]
    assert divvy.assign_sticky(["a", "b"], iter(["1", "2", "3"]), iter([0, 0, None])) == [0, 0, 1]
    drained = [divvy.Member("a", weight=0), divvy.Member("b", zone="z")]
    assert divvy.assign_sticky(drained, ["1", "2"], [0, 0], max_moves=1).count(1) == 1
    with pytest.raises(divvy.InvalidArgument):
        divvy.assign_round_robin([], ["1"])
    with pytest.raises(divvy.InvalidArgument):
        divvy.assign_sticky(["a"], ["1"], [])


# A key belongs to the same bucket as in C, and in the command: A11 of docs/protocol.md. A str is its UTF-8.
def test_bucket():
    vectors = (pathlib.Path(__file__).parents[2] / "test/unit/bucket_vectors.txt").read_text(encoding="utf-8")
    rows = [line.split(" ", 2) for line in vectors.splitlines()]
    assert len(rows) > 200
    for count, bucket, key in rows:
        assert divvy.bucket(key, int(count)) == divvy.bucket(key.encode(), int(count)) == int(bucket), (key, count)
    assert divvy.bucket("", 1000) == divvy.bucket(b"", 1000)
    assert divvy.bucket(bytearray(4), 1000) == divvy.bucket(b"\0\0\0\0", 1000) == 454
    assert divvy.bucket(os.fsdecode(b"\xff"), 1000) == divvy.bucket(b"\xff", 1000)
    with pytest.raises(divvy.InvalidArgument, match="count is 0"):
        divvy.bucket("a", 0)


# What a callback raises goes to threading.excepthook, and the next callback is called all the same.
def test_callback_raises(make_client, path, monkeypatch):
    hooked, states = [], []
    monkeypatch.setattr(threading, "excepthook", hooked.append)

    def fail(client, state):
        states.append(state)
        raise KeyError(state)

    client = make_client(on_session=fail)
    client.wait_connected(DEADLINE_S)
    wait_for(lambda: hooked, "the hook")
    assert hooked[0].exc_type is KeyError and states == [divvy.SessionState.CONNECTED]
    with client.lock(path) as lock:
        assert lock.held


# A waiting call in a callback raises Deadlock; closing the client there does not wait.
def test_calls_in_callbacks(make_client, path):
    seen = []

    def deadlock(client, state):
        try:
            client.lock(path).acquire()
        except divvy.Deadlock as error:
            seen.append(error)
        client.close()
        seen.append("closed")

    client = make_client(on_session=deadlock)
    wait_for(lambda: len(seen) == 2, "both calls have returned")
    assert isinstance(seen[0], divvy.Deadlock) and client.closed


# close() ends the calls that wait in other threads, with Closed.
@pytest.mark.parametrize("close", ["lock", "client"])
def test_close_ends_waits(client, make_client, path, close):
    ended = []
    other = make_client()

    def wait():
        try:
            lock.acquire()
        except divvy.Error as error:
            ended.append(error)

    with client.lock(path):
        lock = other.lock(path)
        thread = threading.Thread(target=wait, daemon=True)
        thread.start()
        wait_for(lambda: len(lock.contenders(DEADLINE_S)) == 2, "it waits")
        (lock if close == "lock" else other).close()
        thread.join(DEADLINE_S)
    assert isinstance(ended[0], divvy.Closed)


# What Python forgets is destroyed: a lock that was held is free, a client that nobody closed ends its session.
def test_forgotten(client, path, server, recwarn):
    lock = client.lock(path)
    lock.acquire(DEADLINE_S)
    gone = weakref.ref(lock)
    del lock
    gc.collect()
    assert gone() is None
    client.lock(path).acquire(DEADLINE_S)
    forgotten = divvy.Client(session_timeout=60)
    forgotten.wait_connected(DEADLINE_S)
    lock = forgotten.lock(path + "2")
    lock.acquire(DEADLINE_S)
    assert any(node.startswith(path + "2/") for node in server.ephemerals())
    del forgotten, lock
    gc.collect()
    assert any(issubclass(warning.category, ResourceWarning) for warning in recwarn)
    wait_for(lambda: not any(node.startswith(path + "2/") for node in server.ephemerals()), "its session has ended")


# An exception that somebody keeps, with its frames, keeps no client from closing.
def test_kept_exceptions(client, path):
    kept = []
    for call in (lambda: client.lock("nope"), lambda: client.lock(path).release(), lambda: client.wait_connected(-1)):
        with pytest.raises(divvy.Error) as caught:
            call()
        kept.append(caught.value)
    began = threading.Thread(target=client.close)
    began.start()
    began.join(DEADLINE_S)
    assert not began.is_alive() and all(error.__traceback__ for error in kept)


# A partitioner that is forgotten while its callback waits for what this thread holds does not make this thread wait; it
# goes when the callback has ended.
def test_forgotten_in_callback(client, path, server):
    held, entered = threading.Lock(), threading.Event()

    def on_state(_partitioner, _change):
        entered.set()
        with held:
            pass

    with held:
        partitioner = client.partitioner(path, ["a"], time_boundary=0, on_state=on_state)
        assert entered.wait(DEADLINE_S)
        gone = weakref.ref(partitioner)
        del partitioner
        gc.collect()
        assert gone() is not None
    wait_for(lambda: gone() is None, "the object is gone")
    wait_for(lambda: not [node for node in server.ephemerals() if node.startswith(path + "/")], "so are its nodes")
