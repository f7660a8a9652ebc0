#!/usr/bin/env python3
"""So many at a time: processes that share a few licences, each with a number. SPDX-License-Identifier: Apache-2.0

Try it: run this in four terminals with a limit of 2, then kill one with SIGKILL while it works. A kazoo process that
uses Semaphore("/example-semaphore", "me", max_leases=2) counts as one more.

    export DIVVY_ENSEMBLE_TICK_MS=2000     # the servers' tickTime, or more
    semaphore.py 127.0.0.1:2181 /example-semaphore 2

The number of the slot says which licence is ours: no two holders have the same one.
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


def main() -> None:
    if len(sys.argv) != 4 or not sys.argv[3].isdigit():
        print("usage: semaphore.py HOSTS PATH LIMIT", file=sys.stderr)
        sys.exit(2)
    hosts, path, limit = sys.argv[1:]
    try:
        with divvy.Client(hosts) as client:
            semaphore = client.semaphore(path, limit=int(limit), on_lost=lambda _: tell("lost"))
            semaphore.acquire(PATIENCE_S)
            tell("slot", *semaphore.slots)
            for holder in semaphore.holders(PATIENCE_S):
                tell("holder:", holder.identifier, "slot", holder.slot)
            for step in range(1, STEPS + 1):
                if not semaphore.held:
                    sys.exit("semaphore.py: the slot was lost on the way")
                tell("step", step)
                time.sleep(0.2)
            semaphore.release()
            tell("released")
    except divvy.Error as error:
        sys.exit(f"semaphore.py: {error}")


if __name__ == "__main__":
    main()
