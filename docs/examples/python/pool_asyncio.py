#!/usr/bin/env python3
"""A pool of workers in asyncio, with a task for each item that is ours. SPDX-License-Identifier: Apache-2.0

Try it: run this in two or three terminals, with the same path and the same items, then stop one with Ctrl-C.

    export DIVVY_ENSEMBLE_TICK_MS=2000     # the servers' tickTime, or more
    pool_asyncio.py 127.0.0.1:2181 /example alpha beta gamma delta

A member that is asked to end hands its items over. A job that does not end within $GRACE_S seconds after `job.stop` is
set is canceled; its item waits until that is done. $SESSION_TIMEOUT_S is the session's timeout.
"""
import asyncio
import logging
import os
import sys

import divvy
from divvy import aio


async def prepare(item: str) -> str:
    """Called while the item's present owner still works on it: the time to connect, or to fill a cache."""
    print("prepare", item, flush=True)
    return f"cache of {item}"


async def work(job: aio.Job) -> None:
    """Works on an item until it is told to stop. A database that is shown the token can refuse all earlier owners."""
    cache = f"new cache of {job.item}" if job.prepared is None else job.prepared
    print("begin", job.item, job.token, cache, flush=True)
    try:
        while job.owns():
            await job.until_stop(asyncio.sleep(0.2))  # or the receive of a message, and then a piece of work
    finally:
        print("end", job.item, job.token, flush=True)


async def take_part(hosts: str, path: str, items: list[str]) -> None:
    async with aio.Client(hosts, session_timeout=float(os.environ.get("SESSION_TIMEOUT_S", "10"))) as client:
        await client.wait_connected(10)
        partitioner = client.partitioner(path, items, rejoin=True, prepare_timeout=25)
        await partitioner.run(work, prepare=prepare, grace=float(os.environ.get("GRACE_S", "10")))


def main() -> None:
    if len(sys.argv) < 4:
        print("usage: pool_asyncio.py HOSTS PATH ITEM...", file=sys.stderr)
        sys.exit(2)
    logging.basicConfig(level=logging.WARNING)
    try:
        asyncio.run(take_part(sys.argv[1], sys.argv[2], sys.argv[3:]))
    except divvy.Error as error:
        sys.exit(f"pool_asyncio.py: {error}")


if __name__ == "__main__":
    main()
