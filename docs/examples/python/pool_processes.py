#!/usr/bin/env python3
"""A pool of workers, with a process for each item that is ours. SPDX-License-Identifier: Apache-2.0

Try it: run this in two or three terminals, with the same path and the same items, then stop one with Ctrl-C.

    export DIVVY_ENSEMBLE_TICK_MS=2000     # the servers' tickTime, or more
    pool_processes.py 127.0.0.1:2181 /example alpha beta gamma delta

A thread of this process stands for each item: it starts the process, ends it by SIGTERM, then by SIGKILL, and waits
until it is gone. Only then does the item go to another member. The session belongs to this process, and no other is
forked from it: "spawn" starts a new interpreter.

There is no death watch here. When this process is killed, its processes see that and end by themselves. One that is
stopped or stuck then does not, and works on beside the item's next owner. `divvy partition -- COMMAND` has guardians,
which end it in time. $SESSION_TIMEOUT_S is the session's timeout.
"""
import logging
import multiprocessing
import multiprocessing.connection
import os
import signal
import sys

import divvy

GRACE_S = 10

context = multiprocessing.get_context("spawn")


def tell(*words: object) -> None:
    """Prints a line as a whole, as several processes do."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def work_alone(item: str, token: int) -> None:
    """The main function of an item's process. Works until SIGTERM, or until its parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all processes of a terminal; the parent decides
    parent = multiprocessing.parent_process()
    assert parent
    tell("begin", item, token, os.getpid())
    while not multiprocessing.connection.wait([parent.sentinel], 0.2):
        pass  # a piece of work


def work(job: divvy.Job) -> None:
    """Has a process until the job has to stop. A process that fails is an error, after which another one begins."""
    process = context.Process(target=work_alone, args=(job.item, job.token), daemon=True)
    process.start()
    while process.is_alive() and not job.stop.wait(0.1):
        pass
    process.terminate()
    process.join(GRACE_S)
    process.kill()
    process.join()
    tell("end", job.item, job.token)
    if not job.stop.is_set() and process.exitcode:
        raise RuntimeError(f"the process of {job.item} has ended with {process.exitcode}")


def main() -> None:
    if len(sys.argv) < 4:
        print("usage: pool_processes.py HOSTS PATH ITEM...", file=sys.stderr)
        sys.exit(2)
    hosts, path, *items = sys.argv[1:]
    logging.basicConfig(level=logging.WARNING)
    try:
        with divvy.Client(hosts, session_timeout=float(os.environ.get("SESSION_TIMEOUT_S", "10"))) as client:
            client.wait_connected(10)
            client.partitioner(path, items, rejoin=True).run(work)
    except divvy.Error as error:
        sys.exit(f"pool_processes.py: {error}")


if __name__ == "__main__":
    main()
