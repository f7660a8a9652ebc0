#!/usr/bin/env python3
"""A pool of workers, with a thread for each item that is ours. SPDX-License-Identifier: Apache-2.0

Try it: run this in two or three terminals, with the same path and the same items, then stop one with Ctrl-C.

    export DIVVY_ENSEMBLE_TICK_MS=2000     # the servers' tickTime, or more
    pool_threads.py 127.0.0.1:2181 /example alpha beta gamma delta

A member that is asked to end hands its items over. Nothing interrupts a worker: it has to look at `job.stop`, and its
item waits until it has returned. $SESSION_TIMEOUT_S is the session's timeout.
"""
import logging
import os
import sys

import divvy


def tell(*words: object) -> None:
    """Prints a line as a whole, as several threads do."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def prepare(item: str) -> str:
    """Called while the item's present owner still works on it: the time to open files, or to fill a cache."""
    tell("prepare", item)
    return f"cache of {item}"


def work(job: divvy.Job) -> None:
    """Works on an item until it is told to stop. A database that is shown the token can refuse all earlier owners."""
    cache = f"new cache of {job.item}" if job.prepared is None else job.prepared
    tell("begin", job.item, job.token, cache)
    while job.owns():
        job.stop.wait(0.2)  # a piece of work
    tell("end", job.item, job.token)


def main() -> None:
    if len(sys.argv) < 4:
        print("usage: pool_threads.py HOSTS PATH ITEM...", file=sys.stderr)
        sys.exit(2)
    hosts, path, *items = sys.argv[1:]
    logging.basicConfig(level=logging.WARNING)
    try:
        with divvy.Client(hosts, session_timeout=float(os.environ.get("SESSION_TIMEOUT_S", "10"))) as client:
            client.wait_connected(10)
            client.partitioner(path, items, rejoin=True, prepare_timeout=25).run(work, prepare=prepare)
    except divvy.Error as error:
        sys.exit(f"pool_threads.py: {error}")


if __name__ == "__main__":
    main()
