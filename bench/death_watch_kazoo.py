#!/usr/bin/python3
"""A contender of kazoo's for bench/death_watch.py. SPDX-License-Identifier: Apache-2.0

usage: death_watch_kazoo.py HOSTS lock|election PATH SESSION_TIMEOUT_MS

Waits for the lock, or to be elected, prints the monotonic clock in seconds and `+`, and keeps it until it is killed.
"""
import logging
import signal
import sys
import time

from kazoo.client import KazooClient


def own():
    print("%.6f +" % time.monotonic(), flush=True)
    while True:
        signal.pause()


def main():
    logging.basicConfig(level=logging.CRITICAL)
    hosts, recipe, path, timeout_ms = sys.argv[1:]
    client = KazooClient(hosts, timeout=int(timeout_ms) / 1000)
    client.start()
    if recipe == "election":
        client.Election(path).run(own)
    with client.Lock(path):
        own()


if __name__ == "__main__":
    main()
