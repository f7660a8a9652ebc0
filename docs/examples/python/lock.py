#!/usr/bin/env python3
"""One at a time: a job that only one process may run, under a lock. SPDX-License-Identifier: Apache-2.0

Try it: run this in two or three terminals, then kill one with SIGKILL while it works. A kazoo process that uses
Lock("/example-lock") stands in the same queue.

    export DIVVY_ENSEMBLE_TICK_MS=2000     # the servers' tickTime, or more
    lock.py 127.0.0.1:2181 /example-lock

The job runs in steps. Before each of them the program asks whether it still holds the lock, which sends nothing. With
each it shows its token to what it works on: a storage that refuses smaller tokens than it has seen is safe from a step
that was held up on its way there.
"""
import sys
import time

import divvy

STEPS = 5
PATIENCE_S = 60


def tell(*words: object) -> None:
    """Prints a line as a whole, as several threads do."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def store(token: int, step: int) -> None:
    """Stands for the protected resource: in a real program a row of a database, with a column for the token."""
    tell("step", step, "under", token)


def main() -> None:
    if len(sys.argv) != 3:
        print("usage: lock.py HOSTS PATH", file=sys.stderr)
        sys.exit(2)
    hosts, path = sys.argv[1:]
    try:
        with divvy.Client(hosts) as client:
            lock = client.lock(path, on_lost=lambda lock: tell("lost"))
            lock.acquire(PATIENCE_S)
            tell("acquired")
            for step in range(1, STEPS + 1):
                token = lock.token
                if token == 0:
                    sys.exit("lock.py: the lock was lost on the way; somebody else will do the job")
                store(token, step)
                time.sleep(0.2)
            lock.release()
            tell("released")
    except divvy.Error as error:
        sys.exit(f"lock.py: {error}")


if __name__ == "__main__":
    main()
