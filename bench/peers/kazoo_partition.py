#!/usr/bin/python3
"""Measure kazoo's SetPartitioner: first allocation, then one member joining.  SPDX-License-Identifier: Apache-2.0

usage: kazoo_partition.py [--processes] [--on divvy|divvy.kazoo] HOSTS MEMBERS ITEMS BOUNDARY_MS
(needs Debian's python3-kazoo, and the last two need the package divvy of ../../python)

The scenario and the clock are those of ../rebalance.c: time runs from the moment before the first (or the joining)
member is started until all members say that they have acquired, and own every item exactly once.
Members are threads of this process, or with --processes a process each, so that they need not share one interpreter.
--on divvy.kazoo puts divvy's stand-in into the same loop; --on divvy takes part by divvy's own loop.
Prints one JSON line; README.md beside ../rebalance.c says what each field means.
"""
import json
import logging
import multiprocessing
import os
import queue
import re
import signal
import socket
import sys
import threading
import time

import kazoo
from kazoo.client import KazooClient

IDLE_S = 0.002
SETTLE_TIMEOUT_S = 300
DELETES_IN_FLIGHT = 500

logging.basicConfig(level=logging.CRITICAL)
arguments = sys.argv[1:]
as_processes = arguments[:1] == ["--processes"]
if as_processes:
    del arguments[0]
peer = "kazoo"
if arguments[:1] == ["--on"] and arguments[1] in ("divvy", "divvy.kazoo"):
    peer = arguments[1]
    del arguments[:2]
    import divvy
    if peer == "divvy.kazoo":
        from divvy.kazoo import KazooClient
if len(arguments) != 4:
    sys.exit(__doc__)
hosts, members, count, boundary_ms = arguments[0], *map(int, arguments[1:])
items = ["item-%06d" % i for i in range(count)]
path = "/kazoo-%d" % os.getpid()
if as_processes:
    context = multiprocessing.get_context("fork")
    Worker, told, stopping = context.Process, context.Queue(), context.Event()
else:
    Worker, told, stopping = threading.Thread, queue.Queue(), threading.Event()
workers = []
shares = {}  # of each member that was heard of: its items while it is ACQUIRED, else None


def ask_server():
    host, port = hosts.split(",")[0].rsplit(":", 1)
    with socket.create_connection((host, int(port)), 10) as connection:
        connection.sendall(b"srvr")
        return b"".join(iter(lambda: connection.recv(4096), b"")).decode()


def server_version():
    return re.search(r"^Zookeeper version: ([0-9.]+)", ask_server(), re.M).group(1)


def server_counters():
    """Packets that the server has received, and transactions that it has put in order (see ../server_counters.h)."""
    answer = ask_server()
    packets = int(re.search(r"^Received: (\d+)", answer, re.M).group(1))
    zxid = int(re.search(r"^Zxid: 0x([0-9a-f]+)", answer, re.M).group(1), 16)
    return {"packets": packets, "transactions": zxid & 0xFFFFFFFF}


# --- members ---


def take_part(index, client):
    """kazoo's loop, of a user without work: nothing has to be stopped, so a release is answered at once."""
    p = client.SetPartitioner(path, set=items, time_boundary=boundary_ms / 1000, identifier="w%04d" % index)
    acquired = False
    while not stopping.is_set():
        if p.failed:
            raise RuntimeError("the partitioner has failed")
        elif p.release:
            acquired = False
            told.put((index, time.monotonic(), None))
            p.release_set()
        elif p.acquired:
            if not acquired:
                acquired = True
                told.put((index, time.monotonic(), list(p)))
            time.sleep(IDLE_S)
        elif p.allocating:
            p.wait_for_acquire(0.01)


def take_part_in_divvy(index):
    """divvy's loop, of a user without work."""
    with divvy.Client(hosts) as client:
        p = client.partitioner(path, items, time_boundary=boundary_ms / 1000, identifier="w%04d" % index)
        last = None
        while not stopping.is_set():
            view = p.look()
            if view.state == divvy.PartitionState.FAILURE:
                raise RuntimeError(p.failure)
            if view.state == divvy.PartitionState.RELEASE:
                p.release_set(view.state_id)
            if view.state_id != last:
                last = view.state_id
                acquired = view.state == divvy.PartitionState.ACQUIRED
                told.put((index, time.monotonic(), view.partition.items() if acquired else None))
            p.wait_change(view.state_id, 0.1)


def work(index):
    try:
        if peer == "divvy":
            take_part_in_divvy(index)
            if as_processes:
                told.cancel_join_thread()  # as below
            return
        client = KazooClient(hosts)
        client.start()
        take_part(index, client)
        # A session left to expire would trouble the next peer's run.
        client.stop()
        client.close()
        if as_processes:
            told.cancel_join_thread()  # Nobody reads from here on, so the end must not wait for it.
    except Exception as error:  # It would otherwise pass unseen, and the pool would wait for a dead member.
        told.put((index, time.monotonic(), error))


def start_member():
    worker = Worker(target=work, args=(len(workers),), daemon=True)
    workers.append(worker)
    worker.start()


def hear(until):
    """Take in what the next member tells, and return when it was."""
    try:
        index, at, share = told.get(timeout=max(until - time.monotonic(), 0))
    except queue.Empty:
        sys.exit("kazoo_partition: did not settle in %d s" % SETTLE_TIMEOUT_S)
    if isinstance(share, Exception):
        sys.exit("kazoo_partition: member %d: %r" % (index, share))
    shares[index] = share
    return at


def grow_to(n):
    """Start members until there are n, and wait until they own every item once.

    Returns the seconds beyond the boundary, the fewest items owned meanwhile, and what the server has received.
    """
    before, fewest = server_counters(), count
    begin = latest = time.monotonic()
    while len(workers) < n:
        start_member()
    while True:
        latest = max(latest, hear(begin + SETTLE_TIMEOUT_S))
        owned = [item for share in shares.values() for item in share or ()]
        distinct = len(set(owned))
        fewest = min(fewest, distinct)
        if len(shares) == n and None not in shares.values() and len(owned) == count == distinct:
            break
    after = server_counters()
    return round(latest - begin - boundary_ms / 1000, 3), fewest, {key: after[key] - before[key] for key in after}


def owners():
    return {item: index for index, share in shares.items() for item in share}


def clean_up():
    """Leave nothing behind that the next peer's run would have to carry along."""
    stopping.set()
    for worker in workers:
        worker.join()
    client = KazooClient(hosts)
    client.start()
    names = client.get_children(path + "/locks") if client.exists(path + "/locks") else []
    for at in range(0, len(names), DELETES_IN_FLIGHT):
        deletes = [client.delete_async(path + "/locks/" + name) for name in names[at : at + DELETES_IN_FLIGHT]]
        for delete in deletes:
            delete.get()
    client.delete(path, recursive=True)
    client.stop()
    client.close()


# The default action would leave the members' processes behind.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
first_s, _, first = grow_to(members)
before_join = owners()
time.sleep(boundary_ms / 1000)  # a read of the party keeps divvy's next one off for a quarter of this
join_s, fewest, join = grow_to(members + 1)
after_join = owners()
moved = sum(before_join[item] != after_join[item] for item in items)
clean_up()
print(json.dumps({
    "peer": peer, "version": kazoo.__version__ if peer == "kazoo" else divvy.__version__,
    "server_version": server_version(),
    "members_as": "processes" if as_processes else "threads",
    "members": members, "items": count, "boundary_ms": boundary_ms,
    "first_beyond_boundary_s": first_s, "join_beyond_boundary_s": join_s,
    "moved": moved, "moved_floor": count // (members + 1), "fewest_owned_during_join": fewest,
    "first": first, "join": join}))
