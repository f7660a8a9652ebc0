#!/usr/bin/python3
"""A member of a pool of kazoo's SetPartitioner that says what it owns, when.  SPDX-License-Identifier: Apache-2.0

usage: kazoo_member.py HOSTS PATH IDENTIFIER ITEMS BOUNDARY_MS SESSION_TIMEOUT_MS      (needs Debian's python3-kazoo)

Its lines are those of ../timeline_member.c, and it ends by SIGTERM or SIGUSR1; both are the same to it. It looks at its
state every 2 ms, or as many seconds apart as $DIVVY_BENCH_LOOK_S says.
"""
import logging
import os
import signal
import sys
import time

from kazoo.client import KazooClient

LOOK_S = float(os.environ.get("DIVVY_BENCH_LOOK_S", "0.002"))

logging.basicConfig(level=logging.CRITICAL)
if len(sys.argv) != 7:
    sys.exit(__doc__)
hosts, path, identifier = sys.argv[1:4]
count, boundary_ms, timeout_ms = map(int, sys.argv[4:])
ending = False


def end(*_):
    global ending
    ending = True


def tell(what):
    print("%.6f %s" % (time.monotonic(), what), flush=True)


for how in (signal.SIGTERM, signal.SIGUSR1):
    signal.signal(how, end)
client = KazooClient(hosts, timeout=timeout_ms / 1000)
client.start()
items = ["item-%06d" % i for i in range(count)]


def join():
    return client.SetPartitioner(path, set=items, time_boundary=boundary_ms / 1000, identifier=identifier)


p = join()
share = []
acquired = False


def give_up():
    global share
    if share:
        tell("- " + " ".join(share))
    share = []


while not ending:
    if p.failed:  # as its documentation asks: start again
        give_up()
        tell("failed")
        acquired = False
        p.finish()
        p = join()
    elif p.release:
        give_up()
        tell("release")
        acquired = False
        p.release_set()
    elif p.acquired:
        if not acquired:
            acquired = True
            share = ["%d" % int(item[len("item-"):]) for item in p]
            tell("+ " + " ".join(share))
            tell("acquired")
        time.sleep(LOOK_S)
    elif p.allocating:
        p.wait_for_acquire(max(LOOK_S, 0.01))
give_up()
p.finish()
client.stop()
client.close()
