#!/usr/bin/python3
"""divvy's Lock and Semaphore from Python: pairs of acquire and release. SPDX-License-Identifier: Apache-2.0

usage: divvy_locks.py HOSTS, and the command `pairs` of ../locks_peer.h.
"""
import json
import sys
import time

import divvy

POOL_LIMIT = 4


def pairs(thing, milliseconds):
    count, start = 0, time.monotonic()
    while (time.monotonic() - start) * 1000 < milliseconds:
        thing.acquire()
        thing.release()
        count += 1
    return {"pairs": count, "seconds": time.monotonic() - start}


def main():
    with divvy.Client(sys.argv[1], session_timeout=60) as client:
        things = {"lock": client.lock("/divvy-lock"),
                  "semaphore": client.semaphore("/divvy-semaphore", limit=POOL_LIMIT)}
        for line in sys.stdin:
            _, recipe, number = line.split()
            print(json.dumps(pairs(things[recipe], int(number))), flush=True)


if __name__ == "__main__":
    main()
