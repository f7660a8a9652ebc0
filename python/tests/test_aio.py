"""asyncio, on a real server. SPDX-License-Identifier: Apache-2.0"""
import asyncio
import concurrent.futures
import gc
import os
import threading

import pytest

import divvy
from conftest import DEADLINE_S, wait_for
from divvy import _core, aio
from divvy._cffi import lib


def run(main):
    """Runs a coroutine in a loop of its own; it may take DEADLINE_S."""
    async def limited():
        return await asyncio.wait_for(main, DEADLINE_S)
    return asyncio.run(limited(), debug=True)


async def until(condition):
    """Waits until a condition holds; the loop goes on."""
    while not condition():
        await asyncio.sleep(0.005)


@pytest.fixture
def connect(server):
    """Makes a client of asyncio, connected."""
    async def make(**options):
        client = aio.Client(**{"session_timeout": 5, **options})
        await client.wait_connected(DEADLINE_S)
        return client
    return make


# No thread is started for what has an asynchronous form; callbacks run in the loop; the session lives while it rests.
def test_loop_serves(connect, path):
    async def main():
        seen = []
        client = aio.Client(session_timeout=1, on_session=lambda _, state: seen.append((state, threading.get_ident())))
        before = threading.active_count()
        async with client, client.lock(path) as lock:
            assert seen == [(divvy.SessionState.CONNECTED, threading.get_ident())]
            assert threading.active_count() == before
            requests = client.stats()["requests"]
            await until(lambda: client.stats()["requests"] > requests + 20)  # two heartbeats in a tenth of the timeout
            assert lock.held and client.time_left > 0
        assert client.closed
    run(main())


# A client that is closed leaves the loop's other descriptors alone: one of them may have the number that it had. That
# is free when the last thing on the client is closed.
def test_closed_descriptor():
    async def main():
        client = aio.Client("127.0.0.1:1", ensemble_tick_ms=100)
        lock, number = client.lock("/a"), client._fd
        client.close()
        lock.close()
        with pytest.raises(OSError):
            os.fstat(number)
        event = os.eventfd(0)
        other = event if event == number else os.dup2(event, number)
        loop = asyncio.get_running_loop()
        loop.add_reader(other, lambda: None)
        client.close()
        await client.aclose()
        with pytest.raises(divvy.Closed):
            await lock.contenders()
        assert loop.remove_reader(other)
        for descriptor in {event, other}:
            os.close(descriptor)
    run(main())


# Where all threads of the executor are busy, the loop serves the session, and closes it. A second close waits, too.
def test_busy_executor(connect, path):
    async def main():
        client, loop = await connect(session_timeout=1), asyncio.get_running_loop()
        threads, over = concurrent.futures.ThreadPoolExecutor(1), threading.Event()
        loop.set_default_executor(threads)
        busy = loop.run_in_executor(None, over.wait)
        try:
            task = asyncio.ensure_future(client.lock(path).contenders())
            await until(lambda: threads._work_queue.qsize() == 1)
            requests = client.stats()["requests"]
            await until(lambda: client.stats()["requests"] > requests + 20)  # two heartbeats in a tenth of the timeout
            closes = [asyncio.ensure_future(client.aclose()) for _ in range(2)]
            await asyncio.wait(closes, return_when=asyncio.FIRST_COMPLETED)
            assert client.closed
            await asyncio.gather(*closes)
            assert not task.done()
        finally:
            over.set()
        await busy
        with pytest.raises(divvy.Closed):
            await task
    run(main())


# A call that waits for a loop ends when that is closed, so that its thread does not keep the program from ending.
def test_closed_loop():
    async def make():
        return aio.Client("127.0.0.1:1", ensemble_tick_ms=100)
    loop = asyncio.new_event_loop()
    client = loop.run_until_complete(make())
    with concurrent.futures.ThreadPoolExecutor(1) as threads:
        call = threads.submit(client._serve_by, lambda: None)
        wait_for(call.running, "the call waits")
        loop.close()
        with pytest.raises(RuntimeError, match="closed"):
            call.result(DEADLINE_S)
    client.close()


# Where a call that waits cannot be made, as the executor has ended, the loop serves the session all the same.
def test_no_executor():
    async def main():
        client, ended = aio.Client("127.0.0.1:1", ensemble_tick_ms=100), concurrent.futures.ThreadPoolExecutor()
        ended.shutdown()
        asyncio.get_running_loop().set_default_executor(ended)
        with pytest.raises(RuntimeError):
            await client.wait_connected(0)
        assert not client._paused
        client.close()
    run(main())


# A lock is held in its block; others time out; the list of contenders does not stop the session from being served.
def test_lock(connect, path):
    async def main():
        async with await connect() as client:
            async with client.lock(path, identifier="a") as lock:
                assert lock.held and lock.node.startswith(path + "/")
                with pytest.raises(divvy.TimedOut, match=path):
                    await client.lock(path).acquire(0.05)
                with pytest.raises(divvy.Busy):
                    await client.lock(path).acquire(0)
                assert await lock.contenders(DEADLINE_S) == ["a"]
                with pytest.raises(divvy.AlreadyHeld):
                    await lock.acquire()
            await lock.wait_gone(DEADLINE_S)
            assert not lock.held and await lock.contenders() == [] and not client._answers
    run(main())


# A task that is canceled gives its place up, whether its acquire waited or had the lock already.
def test_canceled_acquire(connect, path):
    async def main():
        async with await connect() as client:
            holder, waiter = client.lock(path), client.lock(path)
            await holder.acquire()
            task = asyncio.ensure_future(waiter.acquire())
            await until(lambda: waiter.node)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await waiter.wait_gone(DEADLINE_S)
            for turns in range(20):  # the cancel comes before the answer, with it, or after it
                holder.release()
                task = asyncio.ensure_future(waiter.acquire())
                for _ in range(turns):
                    await asyncio.sleep(0)
                task.cancel()
                await asyncio.wait([task])
                if not task.cancelled():
                    waiter.release()
                await holder.acquire()
            assert not client._answers or not waiter.held
    run(main())


# A call in the executor ends when its task is canceled, and the loop serves the session again.
def test_canceled_in_executor(connect, path):
    async def main():
        async with await connect() as client:
            partitioner = client.partitioner(path, ["a"], time_boundary=3600)
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(partitioner.wait_for_acquire(), 0.1)
            async with client.lock(path + "-lock") as lock:
                assert lock.held
    run(main())


GIVES = {
    "divvy_lock_contenders": lambda c, path: c.lock(path).contenders(),
    "divvy_party_list": lambda c, path: c.party_members(path),
    "divvy_semaphore_holders": lambda c, path: c.semaphore(path).holders(),
    "divvy_election_leader": lambda c, path: c.election(path).leader(),
    "divvy_registry_services": lambda c, path: c.registry(path).services(),
    "divvy_registry_healthy_services": lambda c, path: c.registry(path).healthy_services(),
}


# What a call gives as its task is canceled is freed, though nobody waits for it.
@pytest.mark.parametrize("name", GIVES)
def test_canceled_as_it_gives(connect, path, monkeypatch, freed, name):
    ask, has_given, goes_on = _core.Handle._ask, threading.Event(), threading.Event()

    def asked(handle, function, *arguments, **keywords):
        result = ask(handle, function, *arguments, **keywords)
        if function == getattr(lib, name):
            has_given.set()
            goes_on.wait(DEADLINE_S)
        return result
    monkeypatch.setattr(_core.Handle, "_ask", asked)

    def is_freed():
        gc.collect()
        return freed

    async def main():
        async with await connect() as client:
            async with client.election(path) as election:
                if name == "divvy_election_leader":
                    election.stand()
                    await until(lambda: election.leads)
                task = asyncio.ensure_future(GIVES[name](client, path))
                await until(has_given.is_set)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                goes_on.set()
                await until(is_freed)
    run(main())
    assert len(freed) == 1


# `async for` shows each state of a member until it has failed; two members divide the items.
def test_partitioner(connect, path):
    items = [f"item-{i}" for i in range(6)]

    async def take_part(client, shares, index):
        async with client.partitioner(path, items, time_boundary=0.05) as partitioner:
            async for view in partitioner:
                shares[index] = set(view.partition.items())
                if view.state == divvy.PartitionState.RELEASE:
                    partitioner.release_set(view.state_id)
                if index == 1 and len(shares[1]) == 3 and view.state == divvy.PartitionState.ACQUIRED:
                    await partitioner.finish(DEADLINE_S)
            return partitioner.failure

    async def main():
        async with await connect() as first, await connect() as second:
            shares = [set(), set()]
            stays = asyncio.ensure_future(take_part(first, shares, 0))
            await until(lambda: len(shares[0]) == 6)
            assert isinstance(await take_part(second, shares, 1), divvy.Canceled)
            await until(lambda: len(shares[0]) == 6)
            stays.cancel()
            await asyncio.wait([stays])
    run(main())


# An operator's program asks a pool, while the loop works; a task that is canceled meanwhile harms nobody.
def test_pool(connect, path):
    async def main():
        async with await connect() as first, await connect() as second:
            partitioner = first.partitioner(path, ["a", "b"], identifier="one", time_boundary=0.05)
            await partitioner.wait_for_acquire()
            asked = asyncio.ensure_future(second.pool_pause(path, "a"))
            while not asked.done():
                if partitioner.state == divvy.PartitionState.RELEASE:
                    partitioner.release_set()
                await asyncio.sleep(0.01)
            assert asked.result().changed
            with pytest.raises(divvy.NoNode):
                await second.pool_pin(path, "x", "one")
            canceled = asyncio.ensure_future(second.pool_resume(path, "b"))
            await asyncio.sleep(0)
            canceled.cancel()
            await asyncio.wait([canceled])
            assert not (await second.pool_resume(path, "b")).changed
    run(main())


# The other recipes: slots, members, a leader, services, and changes of these.
def test_other_recipes(connect, path):
    async def main():
        async with await connect() as client:
            async with client.semaphore(path + "s", identifier="a", limit=2) as semaphore:
                assert semaphore.slots == [0]
                assert [holder.identifier for holder in await semaphore.holders()] == ["a"]
                await semaphore.resize(3)
            async with client.party(path + "p", identifier="a") as party:
                assert await party.members() == ["a"] == await client.party_members(path + "p")
                await party.leave()
            elected = asyncio.Event()
            async with client.election(path + "e", data="a", on_elected=lambda *_: elected.set()) as election:
                election.stand()
                await elected.wait()
                while await election.leader() != divvy.Leader(election.token, b"a"):
                    await asyncio.sleep(0.005)
                assert await election.candidates() == ["a"]
            assert election.closed
            with pytest.raises(divvy.Closed):
                await election.__aenter__()
            registry = client.registry(path + "r")
            changes = registry.changes("web")
            entry = await registry.heartbeat({"role": "web", "load": 1, "ttl": 30})
            change = await changes.__anext__()
            assert (change.kind, change.after) == (divvy.ChangeKind.ADDED, entry)
            await changes.aclose()
            assert await registry.healthy_service("web") == entry and await registry.healthy_services() == [entry]
            assert list(await registry.services("web")) == [entry]
            assert registry.is_ours(await registry.unique_service("one", {"ttl": 30}))
            await registry.unregister("web", entry["id"])
            assert await registry.purge_stale_services() == 0
            with pytest.raises(divvy.InvalidArgument, match="load"):
                await registry.heartbeat({"role": "web", "ttl": 30})
            async with registry as inside:
                assert inside is registry
            assert registry.closed
            with pytest.raises(divvy.Closed):
                await registry.__aenter__()
    run(main())


# What a callback raises comes to the handler of the loop, and the client goes on.
def test_callback_raises(connect, path):
    async def main():
        client, raised, told = await connect(), [], asyncio.Event()
        asyncio.get_running_loop().set_exception_handler(lambda _, context: (raised.append(context), told.set()))
        async with client, client.election(path, on_elected=lambda *_: 1 / 0) as election:
            election.stand()
            await told.wait()
            assert isinstance(raised[0]["exception"], ZeroDivisionError) and len(raised) == 1 and election.leads
    run(main())


# `async for` ends when what it goes through is closed, or its client.
@pytest.mark.parametrize("closes", ["it", "client"])
def test_close_ends_iterations(connect, path, closes):
    async def take(changes, given):
        async for change in changes:
            given.append(change)

    async def main():
        client, changes, views = await connect(), [], []
        registry, partitioner = client.registry(path + "r"), client.partitioner(path, ["a"], time_boundary=0.05)
        tasks = [asyncio.ensure_future(take(registry.changes(), changes)),
                 asyncio.ensure_future(take(partitioner, views))]
        await until(lambda: views and views[-1].state == divvy.PartitionState.ACQUIRED)
        await registry.heartbeat({"role": "web", "load": 1, "ttl": 30})
        await until(lambda: changes)
        for closed in (registry, partitioner) if closes == "it" else (client,):
            closed.close()
        with pytest.raises(divvy.Closed, match=("Registry" if closes == "it" else "Client") + " is closed"):
            await tasks[0]
        if closes == "it":
            with pytest.raises(divvy.Closed, match="Partitioner is closed"):
                await tasks[1]
        else:
            await tasks[1]
            assert views[-1].state == divvy.PartitionState.FAILURE
        await client.aclose()
    run(main())


# What waits when the client is closed ends with Closed.
def test_close_ends_waits(connect, path):
    async def main():
        client = await connect()
        holder, waiter = client.lock(path), client.lock(path)
        await holder.acquire()
        task = asyncio.ensure_future(waiter.acquire())
        await until(lambda: waiter.node)
        await client.aclose()
        with pytest.raises(divvy.Error) as caught:
            await task
        assert isinstance(caught.value, (divvy.Closed, divvy.Canceled))
        with pytest.raises(divvy.Closed):
            await holder.acquire()
    run(main())


def spin(client, condition):
    """Drives the client until a condition holds, while the loop calls nothing."""
    def turn():
        client._turn()
        return condition()
    wait_for(turn, "it has come about")


# No callback is called when a close has returned: those of an object that is closed are not, those of a client before.
@pytest.mark.parametrize("closes", ["election", "client", "aclose"])
def test_no_callback_after_a_close(connect, path, closes):
    async def main():
        client, told = await connect(), []
        election = client.election(path, on_elected=lambda _, token: told.append(token))
        election.stand()
        spin(client, lambda: election.leads)
        assert told == []
        if closes == "aclose":
            await client.aclose()
        else:
            {"election": election, "client": client}[closes].close()
        before = list(told)
        await asyncio.sleep(0.02)
        assert told == before and bool(told) == (closes != "election")
        await client.aclose()
    run(main())


# A close inside a callback leaves the others until that has returned; one that raises does not keep the others back.
def test_close_in_a_callback(connect, path):
    async def main():
        client, told, raised = await connect(), [], []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: raised.append(context["exception"]))

        def elected(election, token):
            told.append(token)
            if len(told) == 1:
                client.close()
                assert len(told) == 1
            1 / 0
        elections = [client.election(path + name, on_elected=elected) for name in ("a", "b", "c")]
        for election in elections:
            election.stand()
        spin(client, lambda: all(election.leads for election in elections))
        await until(lambda: client.closed)
        await client.aclose()
        assert len(told) == 3
        assert [type(error) for error in raised] == [ZeroDivisionError] * 3
    run(main())


# Nor is the callback of a view when that has ended.
def test_no_callback_after_an_unwatch(connect, make_client, path, monkeypatch):
    async def main():
        client, told, sent = await connect(), [], []
        registry, dispatch = client.registry(path), client._dispatch
        registry.watch("web", lambda _, change: told.append(change))
        announcer = make_client().registry(path)
        announcer.heartbeat({"role": "web", "load": 1, "ttl": 30}, DEADLINE_S)
        monkeypatch.setattr(client, "_dispatch", lambda *call: (sent.append(call), dispatch(*call)))
        spin(client, lambda: sent)
        registry.unwatch("web")
        await asyncio.sleep(0.02)
        assert told == []
        registry.watch("web", lambda _, change: told.append(change))
        await until(lambda: told)
        await client.aclose()
    run(main())
