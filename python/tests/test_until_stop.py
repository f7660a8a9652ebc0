"""job.until_stop() of divvy.aio: it ends at once when the job has to stop, and loses nothing.
SPDX-License-Identifier: Apache-2.0
"""
import asyncio
import sys
import warnings

import pytest

from divvy import aio
from test_aio import run, until
from test_run_aio import member

KNOWS_CANCELS = sys.version_info >= (3, 11)


class Owned:
    """A partitioner that owns all."""

    def owns(self, _item, _token):
        return True


def make_job():
    return aio._job.Job(Owned(), "x", 1, None)


# Consumers whose queues are idle give their items back at once, and no message is lost or handled twice.
def test_consumers(server, path):
    async def main():
        queues = {f"item-{i}": asyncio.Queue() for i in range(6)}
        done, at = [], {}

        def worker(name):
            async def work(job):
                at[job.item] = name
                while (message := await job.until_stop(queues[job.item].get())) is not None:
                    done.append((job.item, message))
                assert job.stop.is_set() and not job.owns()
            return work
        async with member(path, worker("a"), list(queues), grace=3600) as first:
            await until(lambda: len(at) == 6)
            async with member(path, worker("b"), list(queues), grace=3600):
                sent = 0
                while list(at.values()).count("b") < 3:
                    queues[f"item-{sent % 6}"].put_nowait(sent)
                    sent += 1
                    await asyncio.sleep(0.001)
                first.stop.set()
                await first
                await until(lambda: len(done) == sent and set(at.values()) == {"b"})
                assert sorted(done) == sorted((f"item-{i % 6}", i) for i in range(sent))
    run(main())


# A message that comes in the same turn of the loop as the stop, before it or after, is given or stays in the queue.
@pytest.mark.parametrize("order", ["stop first", "message first"])
@pytest.mark.parametrize("turns", range(4))
def test_same_moment(order, turns):
    async def main():
        job, queue = make_job(), asyncio.Queue()
        task = asyncio.ensure_future(job.until_stop(queue.get()))
        for _ in range(2):
            await asyncio.sleep(0)
        steps = [job.stop.set, lambda: queue.put_nowait("m")]
        for step in steps if order == "stop first" else reversed(steps):
            step()
            for _ in range(turns):
                await asyncio.sleep(0)
        got = await task
        assert got == "m" and queue.empty() or got is None and queue.qsize() == 1
        assert got == "m" or order == "stop first" or turns == 0
        assert await job.until_stop(queue.get()) is None
    run(main())


# The same where the task is canceled, as by a run whose item was lost: it ends by the cancel.
@pytest.mark.parametrize("message", [True, False])
@pytest.mark.parametrize("stop", [True, False])
def test_canceled(stop, message):
    async def main():
        job, queue = make_job(), asyncio.Queue()
        task = asyncio.ensure_future(job.until_stop(queue.get()))
        await asyncio.sleep(0)
        if message:
            queue.put_nowait("m")
        if stop:
            job.stop.set()
        task.cancel()
        await asyncio.wait([task])
        assert queue.qsize() == message
        assert task.cancelled() if KNOWS_CANCELS or not stop else task.cancelled() or task.result() is None
    run(main())


# What is awaited may turn a cancel into a value or an error; the worker goes on uncanceled after either.
def test_cancel_is_taken():
    async def main():
        job = make_job()

        async def stubborn(answer):
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                if answer is None:
                    raise ValueError("no luck") from None
                return answer

        async def work(answer):
            try:
                got = await job.until_stop(stubborn(answer))
            except ValueError as error:
                got = str(error)
            await asyncio.sleep(0.001)
            assert not KNOWS_CANCELS or asyncio.current_task().cancelling() == 0
            return got
        tasks = [asyncio.ensure_future(work(answer)) for answer in ("m", None)]
        await asyncio.sleep(0)
        job.stop.set()
        assert await asyncio.gather(*tasks) == ["m", "no luck"]
        assert job._stop.waits == set()
    run(main())


# A stop by what is awaited itself comes too late to cancel anything.
def test_stop_from_inside():
    async def main():
        job = make_job()

        async def receive():
            job.stop.set()
            return "m"
        assert await job.until_stop(receive()) == "m"
        await asyncio.sleep(0.001)
    run(main())


# Where the job has to stop already, nothing begins, and nothing is left behind; what is done is still given.
def test_stopped_before():
    async def main():
        job, future, done = make_job(), asyncio.Future(), asyncio.Future()
        done.set_result("m")
        job.stop.set()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert await job.until_stop(asyncio.sleep(3600)) is None
            assert await job.until_stop(future) is None
        assert future.cancelled()
        assert await job.until_stop(done) == "m"
    run(main())


# The value None is given as such, and so are errors and timeouts of what is awaited.
def test_passes():
    async def main():
        job = make_job()
        assert await job.until_stop(asyncio.sleep(0)) is None and job.owns()
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(job.until_stop(asyncio.sleep(3600)), 0.01)
        with pytest.raises(asyncio.TimeoutError):
            await job.until_stop(asyncio.wait_for(asyncio.sleep(3600), 0.01))
        assert job._stop.waits == set() and job.owns()
    run(main())
