"""divvy.aio's Partitioner.run(): a task for each item, on a real server. SPDX-License-Identifier: Apache-2.0"""
import asyncio
import contextlib
import signal
import subprocess
import sys

import pytest

import divvy
from conftest import DEADLINE_S
from divvy import _jobs, aio
from test_aio import run, until
from test_run import note_loads

ITEMS = [f"item-{i}" for i in range(6)]
FAST = {"time_boundary": 0.05, "rejoin": True}


class Pool:
    """Who works on what; two jobs of one item at a time are an error."""

    def __init__(self):
        self.at, self.jobs, self.doubles, self.held_back = {}, [], [], {}

    def worker(self, name):
        async def work(job):
            if job.item in self.at:
                self.doubles.append((job.item, self.at[job.item], name))
            self.at[job.item] = name
            self.jobs.append((name, job))
            try:
                await job.stop.wait()
                if name in self.held_back:
                    await self.held_back[name].wait()
            finally:
                del self.at[job.item]
        return work

    def count(self, name):
        return list(self.at.values()).count(name)


@contextlib.asynccontextmanager
async def member(path, worker, items=ITEMS, session_timeout=5, keywords={}, **options):
    """A run, as a task; with its partitioner and the event that ends it."""
    async with aio.Client(session_timeout=session_timeout) as client:
        partitioner = client.partitioner(path, items, **{**FAST, **keywords})
        stop = asyncio.Event()
        task = asyncio.ensure_future(partitioner.run(worker, stop=stop, **options))
        task.partitioner, task.stop = partitioner, stop
        try:
            yield task
        finally:
            stop.set()
            await asyncio.wait([task])


# A run is told of all that it has to know, and does not look by itself.
@pytest.fixture(autouse=True)
def only_told(monkeypatch):
    monkeypatch.setattr(_jobs, "LOOK_S", 3600)


# Two members share the items; the end of a job, which is no change, confirms RELEASE; the one that ends hands over.
def test_pool(server, path):
    async def main():
        pool = Pool()
        pool.held_back["a"] = asyncio.Event()
        async with member(path, pool.worker("a")) as first:
            await until(lambda: pool.count("a") == 6)
            async with member(path, pool.worker("b")) as second:
                await until(lambda: sum(job.stop.is_set() for _, job in pool.jobs) == 3)
                for _ in range(30):
                    await asyncio.sleep(0.01)
                    assert (pool.count("a"), pool.count("b")) == (6, 0)
                    assert first.partitioner.state == divvy.PartitionState.RELEASE
                pool.held_back["a"].set()
                await until(lambda: (pool.count("a"), pool.count("b")) == (3, 3))
                assert all(job.owns() is not job.stop.is_set() and job.token > 0 for _, job in pool.jobs)
                first.stop.set()
                assert await first is None
                await until(lambda: pool.count("b") == 6)
                assert pool.doubles == [] and not second.done()
            assert await second is None
        assert pool.at == {}
    run(main())


# A worker tells the load of its own item; one that is none is refused.
def test_set_load(server, path, monkeypatch):
    told = []
    monkeypatch.setattr(aio.Partitioner, "set_load", note_loads(aio.Partitioner.set_load, told))

    async def work(job):
        with pytest.raises(divvy.InvalidArgument, match="from 0 up"):
            job.set_load(-1)
        job.set_load(len(job.item) + 0.5)
        await job.stop.wait()

    async def main():
        async with member(path, work, ["a", "bb"]) as task:
            await until(lambda: sorted(load for _, _, load in told) == [1.5, 2.5])
            assert {(who, item) for who, item, _ in told} == {(task.partitioner, "a"), (task.partitioner, "bb")}
    run(main())


# A job that goes on for longer than the grace time is canceled; its item waits for what it does then, too.
def test_grace(server, path):
    async def main():
        canceled, cleaned, has = asyncio.Event(), asyncio.Event(), []

        async def work(job):
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                assert job.stop.is_set()
                canceled.set()
                await cleaned.wait()
                raise

        async def other(job):
            has.append(job.item)
            await job.stop.wait()
        async with member(path, work, ["a"], grace=0.1) as first:
            await until(lambda: first.partitioner.state == divvy.PartitionState.ACQUIRED)
            async with member(path, other, ["a"]):
                first.partitioner.set_weight(0)
                await canceled.wait()
                for _ in range(20):
                    await asyncio.sleep(0.01)
                    assert has == []
                cleaned.set()
                await until(lambda: has == ["a"])
    run(main())


# A run that is canceled stops its jobs, waits for them, and leaves the pool.
def test_cancel(server, path):
    async def main():
        pool = Pool()
        pool.held_back["a"] = asyncio.Event()
        async with member(path, pool.worker("a")) as first:
            await until(lambda: pool.count("a") == 6)
            first.cancel()
            await until(lambda: all(job.stop.is_set() for _, job in pool.jobs))
            assert pool.count("a") == 6 and not first.done()
            pool.held_back["a"].set()
            await asyncio.wait([first])
            assert first.cancelled() and pool.at == {}
            assert first.partitioner.state == divvy.PartitionState.FAILURE and not first.partitioner.joined
        pool.held_back["a"].clear()
        async with member(path, pool.worker("a")) as first:
            await until(lambda: pool.count("a") == 6)
            first.cancel()
            await until(lambda: all(job.stop.is_set() for _, job in pool.jobs))
            first.cancel()  # the second cancels the jobs
            await asyncio.wait([first])
            assert first.cancelled() and pool.at == {}
    run(main())


# What a lost session had is canceled without a grace time, as others may have it; the run goes on.
def test_lost_session(server, path):
    async def main():
        pool = Pool()
        pool.held_back["a"] = asyncio.Event()
        async with member(path, pool.worker("a"), session_timeout=1, grace=3600) as first:
            await until(lambda: pool.count("a") == 6)
            await asyncio.to_thread(server.control, "pause")
            try:
                await until(lambda: pool.at == {})
            finally:
                await asyncio.to_thread(server.control, "resume")
            await until(lambda: pool.count("a") == 6)
            assert len(pool.jobs) == 12 and not first.done()
            pool.held_back["a"].set()
    run(main())


# So is what was told to stop before, when its items were to move or the run was to end; once, so that it can clean up.
@pytest.mark.parametrize("how", ["revoked", "ends", "canceled"])
def test_lost_session_while_stopping(server, path, how):
    async def main():
        begun, canceled, stopped, cleaned = asyncio.Event(), [], [], []

        async def work(job):
            begun.set()
            await job.stop.wait()
            stopped.append(job.item)
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                canceled.append(job.item)
                await asyncio.sleep(0.05)
                cleaned.append(job.item)
                raise
        async with contextlib.AsyncExitStack() as stack:
            first = await stack.enter_async_context(
                member(path, work, ["a"], session_timeout=1, grace=3600, hand_over=False))
            await begun.wait()
            if how == "revoked":
                first.partitioner.set_weight(0)
                await stack.enter_async_context(member(path, work, ["a"]))
            elif how == "ends":
                first.stop.set()
            else:
                first.cancel()
            await until(lambda: stopped == ["a"])
            await asyncio.to_thread(server.control, "pause")
            try:
                await until(lambda: cleaned == ["a"])
            finally:
                await asyncio.to_thread(server.control, "resume")
            assert canceled == ["a"]
    run(main())


# So is what somebody gives up, who closes the partitioner or its client while jobs are at work.
@pytest.mark.parametrize("closes", ["partitioner", "client"])
def test_closed_while_working(server, path, closes):
    async def main():
        pool = Pool()
        pool.held_back["a"] = asyncio.Event()
        async with member(path, pool.worker("a"), ["a"], grace=3600) as first:
            await until(lambda: pool.count("a") == 1)
            async with member(path, pool.worker("b"), ["a"]):
                (first.partitioner if closes == "partitioner" else first.partitioner._client).close()
                await asyncio.wait([first])
                assert isinstance(first.exception(), divvy.Closed)
                await until(lambda: pool.count("b") == 1)
                assert pool.doubles == []
    run(main())


# A coroutine prepares for an item while its owner works on; what it gives is the job's.
def test_prepare(server, path):
    async def main():
        pool, ready, asked = Pool(), asyncio.Event(), []

        async def prepare(item):
            asked.append(item)
            await ready.wait()
            return "ready for " + item
        async with member(path, pool.worker("a")) as first:
            await until(lambda: pool.count("a") == 6)
            async with member(path, pool.worker("b"), keywords={"prepare_timeout": 25}, prepare=prepare):
                await until(lambda: len(asked) == 3)
                first.stop.set()
                await until(lambda: len(asked) == 6)
                assert pool.count("a") == 6
                ready.set()
                await until(lambda: pool.count("b") == 6)
                assert await first is None and pool.doubles == []
                assert all(job.prepared == "ready for " + job.item for name, job in pool.jobs if name == "b")
    run(main())


# A member that is asked to end while it prepares cancels that, and waits for what it does then: that is no failure.
def test_end_while_preparing(server, path):
    async def main():
        pool, canceled, cleaned = Pool(), asyncio.Event(), asyncio.Event()
        begun = asyncio.Event()

        async def prepare(item):
            try:
                begun.set()
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                canceled.set()
                await cleaned.wait()
                raise
        async with member(path, pool.worker("a"), ["x"]) as first:
            await until(lambda: pool.count("a") == 1)
            async with member(path, pool.worker("b"), ["x"], keywords={"prepare_timeout": 25},
                              prepare=prepare) as second:
                first.partitioner.set_weight(0)
                await begun.wait()
                second.stop.set()
                await canceled.wait()
                await asyncio.sleep(0)
                assert second.partitioner.state == divvy.PartitionState.FAILURE and not second.done()
                cleaned.set()
                assert await second is None
    run(main())


# What no worker gets is closed before the run returns: by aclose(), or close(), which may be a coroutine or not. One
# that takes longer than the grace time is canceled. `prepare` that raised is called again.
@pytest.mark.parametrize("kind", ["aclose", "close", "plain", "slow", "canceled"])
def test_closed(server, path, caplog, kind):
    async def main():
        pool, closed, asked = Pool(), [], []

        class Prepared:
            if kind == "aclose":
                async def aclose(self):
                    await asyncio.sleep(0)
                    closed.append(kind)
            if kind in ("plain", "canceled"):
                def close(self):
                    closed.append(kind)
            else:
                async def close(self):
                    await asyncio.sleep(3600 if kind == "slow" else 0)
                    closed.append("close")

        async def prepare(item):
            asked.append(item)
            if len(asked) == 1:
                raise ValueError("no luck")
            return Prepared()
        pool.held_back["a"] = asyncio.Event()
        async with member(path, pool.worker("a"), ["x"]) as first:
            await until(lambda: pool.count("a") == 1)
            async with member(path, pool.worker("b"), ["x"], keywords={"prepare_timeout": 25}, prepare=prepare,
                              grace=0.1) as second:
                first.partitioner.set_weight(0)
                await until(lambda: pool.jobs[0][1].stop.is_set())
                assert asked == ["x", "x"] and closed == []
                if kind == "canceled":
                    second.cancel()
                    await asyncio.wait([second])
                    assert second.cancelled()
                else:
                    second.stop.set()
                    assert await second is None
                assert closed == [] if kind == "slow" else closed == [kind]
            pool.held_back["a"].set()
        assert "prepare of x failed, and is called again in 0.1 s: ValueError('no luck')" in caplog.text
        assert ("could not be closed: CancelledError" in caplog.text) is (kind == "slow")
    run(main())


# A worker that raises, or cancels itself, is started again, or ends the run; a plain function is refused.
def test_errors(server, path, caplog):
    async def main():
        begun = []

        async def work(job):
            begun.append(job.item)
            if len(begun) == 1:
                raise ValueError("no luck")
            if len(begun) == 2:
                asyncio.current_task().cancel()
            await job.stop.wait()
        async with member(path, work, ["a"], backoff=0.05) as first:
            await until(lambda: len(begun) == 3)
            assert "worker of a failed, and is started again in 0.05 s: ValueError('no luck')" in caplog.text
            assert "CancelledError" in caplog.text and not first.done()
            with pytest.raises(divvy.WrongState, match="runs already"):
                await first.partitioner.run(work)
        begun.clear()
        async with member(path, work, ["a"], on_error="fail") as first:
            with pytest.raises(ValueError, match="no luck"):
                await first
        async with member(path, print, ["a"]) as first:
            with pytest.raises(TypeError, match="async def"):
                await first
        async with member(path, lambda: work, ["a"]) as first:
            with pytest.raises(TypeError, match=r"worker is called as worker\(job\), and "):
                await first
    run(main())


# The partitioner's failure is raised when all jobs have ended. They are canceled, as their items are given up by then.
def test_failure(server, path):
    async def main():
        at_work, canceled, goes_on = [], [], asyncio.Event()

        async def work(job):
            at_work.append(job)
            try:
                await asyncio.sleep(3600)
            finally:
                canceled.append(job)
                await goes_on.wait()
                at_work.remove(job)
        async with member(path, work, grace=3600) as first:
            await until(lambda: len(at_work) == 6)
            await first.partitioner.finish(DEADLINE_S)
            await until(lambda: len(canceled) == 6)
            await asyncio.sleep(0.01)
            assert not first.done()
            goes_on.set()
            with pytest.raises(divvy.Canceled):
                await first
            assert at_work == []
    run(main())


PROGRAM = """
import asyncio, divvy, divvy.aio
async def work(job):
    print("begin", job.item, flush=True)
    await job.stop.wait()
    print("end", job.item, flush=True)
async def main():
    async with divvy.aio.Client(session_timeout=5) as client:
        pools = [client.partitioner({path!r} + name, ["x"], time_boundary=0.05) for name in "ab"]
        await asyncio.gather(*(pool.run(work) for pool in pools))
        print("over", flush=True)
asyncio.run(main())
"""


# SIGTERM and SIGINT end all runs of a process in an orderly way, under asyncio.run() too.
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal(server, path, number):
    made = subprocess.Popen([sys.executable, "-c", PROGRAM.format(path=path)], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)
    try:
        assert [made.stdout.readline() for _ in range(2)] == ["begin x\n"] * 2
        made.send_signal(number)
        assert made.communicate(timeout=DEADLINE_S) == ("end x\nend x\nover\n", "")
        assert made.returncode == 0
    finally:
        made.kill()
        made.communicate()
