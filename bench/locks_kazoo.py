#!/usr/bin/python3
"""kazoo's Lock: pairs of acquire and release a second, and hand-overs. SPDX-License-Identifier: Apache-2.0

usage: locks_kazoo.py HOSTS PAIRS. Prints a JSON line like those of locks.c. A hand-over is the time from the call of
release until acquire has returned in the thread of the next one; all threads are on one client.
"""
import json
import logging
import statistics
import sys
import threading
import time

from kazoo.client import KazooClient

CHAINS = 5


def pairs_per_s(client, pairs):
    lock = client.Lock("/kazoo-lock", "me")
    for _ in range(pairs // 10):
        lock.acquire()
        lock.release()
    start = time.monotonic()
    for _ in range(pairs):
        lock.acquire()
        lock.release()
    return pairs / (time.monotonic() - start)


def chain(client, path, waiters, gaps):
    locks = [client.Lock(path, str(i)) for i in range(waiters + 1)]
    got = [threading.Event() for _ in locks]
    released = [0.0]

    def run(i):
        locks[i].acquire()
        if released[0]:
            gaps.append(time.monotonic() - released[0])
        got[i].set()

    threads = []
    for i in range(len(locks)):
        threads.append(threading.Thread(target=run, args=(i,), daemon=True))
        threads[i].start()
        while len(client.get_children(path) if client.exists(path) else []) < i + 1:
            time.sleep(0.001)
    time.sleep(0.2)  # in which the last of them sets its watch
    for i, lock in enumerate(locks):
        got[i].wait()
        released[0] = time.monotonic()
        lock.release()
    for thread in threads:
        thread.join()


def hand_over_us(client, waiters):
    gaps = []
    for _ in range(CHAINS):
        chain(client, "/kazoo-chain-%d" % waiters, waiters, gaps)
    return statistics.median(gaps) * 1e6


def main():
    logging.basicConfig(level=logging.CRITICAL)
    client = KazooClient(sys.argv[1])
    client.start()
    line = {"peer": "kazoo", "recipe": "lock", "pairs_per_s": round(pairs_per_s(client, int(sys.argv[2]))),
            "hand_over_2_us": round(hand_over_us(client, 2)), "hand_over_50_us": round(hand_over_us(client, 50))}
    print(json.dumps(line), flush=True)
    client.stop()
    client.close()


if __name__ == "__main__":
    main()
