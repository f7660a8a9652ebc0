"""What a type checker makes of a user's program; mypy --strict reads it. SPDX-License-Identifier: Apache-2.0"""
import asyncio
import threading
from typing import List, Optional

from typing_extensions import assert_type

import divvy
from divvy import aio


def blocking(client: divvy.Client) -> None:
    assert_type(client.lock("/a", mode=divvy.LockMode.READ), divvy.Lock)
    assert_type(client.semaphore("/a", limit=2).holders(1.5), List[divvy.Holder])
    partitioner = client.partitioner("/a", ["b"], rejoin=True, time_boundary=0.5)
    assert_type(partitioner.look().state, divvy.PartitionState)
    assert_type([entry.token for entry in partitioner.partition()], List[int])
    assert_type(client.election("/a").leader(), Optional[divvy.Leader])
    partitioner.run(work, prepare=len, on_error="fail")
    assert_type(client.pool_pause("/a", "b", why="poisoned"), divvy.PoolChange)
    client.lock("/a", limit=2)  # type: ignore[call-arg]
    client.lock(b"/a")  # type: ignore[arg-type]


def work(job: divvy.Job) -> None:
    assert_type(job.token, int)
    assert_type(job.stop, threading.Event)
    job.set_load(2.5)
    job.set_load("2.5")  # type: ignore[arg-type]


async def work_in_loop(job: aio.Job) -> None:
    assert_type(job.stop, asyncio.Event)
    job.set_load(2)
    assert_type(await job.until_stop(asyncio.Queue[int]().get()), Optional[int])


async def looped() -> None:
    async with aio.Client("h:1", ensemble_tick_ms=2000) as client, client.lock("/a") as lock:
        assert_type(await lock.contenders(), List[str])
        async for view in client.partitioner("/a", ["b"]):
            assert_type(view, divvy.View)
        assert_type(await client.pool_set_option("/a", "imbalance-max", 0.3), divvy.PoolChange)
        async with client.election("/a") as election:
            assert_type(election, aio.Election)
        await client.partitioner("/a", ["b"]).run(work_in_loop, grace=5)
        await client.partitioner("/a", ["b"]).run(work)  # type: ignore[arg-type]
        async for change in client.registry().changes("web"):
            assert_type(change, divvy.ServiceChange)


assert_type(divvy.TimedOut().retryable, bool)
