#!/usr/bin/python3
"""kazoo's Lock and Semaphore: pairs of acquire and release, and hand-overs. SPDX-License-Identifier: Apache-2.0

usage: locks_kazoo.py HOSTS [divvy.kazoo], and commands as in locks_peer.h. A hand-over is the time from the call of
release until acquire has returned in the thread of the next one; all threads are on one client. With "divvy.kazoo" the
recipes are those of divvy's stand-in.
"""
import json
import logging
import sys
import threading
import time

from kazoo.client import KazooClient

POOL_LIMIT = 4


def pairs(thing, milliseconds):
    count, start = 0, time.monotonic()
    while (time.monotonic() - start) * 1000 < milliseconds:
        thing.acquire()
        thing.release()
        count += 1
    return {"pairs": count, "seconds": time.monotonic() - start}


def count_children(client, path):
    return len(client.get_children(path)) if client.exists(path) else 0


def chain(client, things, contenders):
    """`contenders` tells how many have come: the one that holds and those that wait."""
    got = [threading.Event() for _ in things]
    times = [0.0] * len(things)

    def run(i):
        things[i].acquire()
        times[i] = time.monotonic()
        got[i].set()

    threads = []
    for i in range(len(things)):
        threads.append(threading.Thread(target=run, args=(i,), daemon=True))
        threads[i].start()
        if i == 0:
            got[0].wait()
        while contenders() < i + 1:
            time.sleep(0.001)
    time.sleep(0.2)  # in which the last of them sets its watch
    us = []
    for i, thing in enumerate(things):
        got[i].wait()
        if i > 0:
            us.append((times[i] - released) * 1e6)
        released = time.monotonic()
        thing.release()
    for thread in threads:
        thread.join()
    return {"us": us}


def hand_over(client, recipe, waiters):
    path = "/kazoo-chain-" + recipe
    if recipe == "lock":
        things = [client.Lock(path, str(i)) for i in range(waiters + 1)]
        return chain(client, things, lambda: count_children(client, path))
    things = [client.Semaphore(path, str(i)) for i in range(waiters + 1)]
    queue = path + "-__lock__"

    def contenders():  # Who has just been admitted may stand in the queue still.
        waiting = count_children(client, queue)
        return waiting + 1 if count_children(client, path) else 0

    return chain(client, things, contenders)


def main():
    logging.basicConfig(level=logging.CRITICAL)
    make = KazooClient
    if sys.argv[2:] == ["divvy.kazoo"]:
        from divvy.kazoo import KazooClient as make
    client = make(sys.argv[1], timeout=60)
    client.start()
    things = {"lock": client.Lock("/kazoo-lock", "me"),
              "semaphore": client.Semaphore("/kazoo-semaphore", "me", max_leases=POOL_LIMIT)}
    for line in sys.stdin:
        verb, recipe, number = line.split()
        if verb == "pairs":
            answer = pairs(things[recipe], int(number))
        else:
            answer = hand_over(client, recipe, int(number))
        print(json.dumps(answer), flush=True)
    client.stop()
    client.close()


if __name__ == "__main__":
    main()
