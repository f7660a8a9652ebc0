#!/usr/bin/python3
"""A member of a pool that is kazoo's own: its SetPartitioner and its documented polling loop.

usage: kazoo_member.py HOSTS PATH ITEMS_FILE IDENTIFIER BOUNDARY_S SESSION_TIMEOUT_S [STOP_WORK_S] [--integers]

Prints JSON lines like those of `divvy partition --json`, each with "t", a time of the monotonic clock: a gain is told
after kazoo said "acquired", a loss before the locks are given back. With STOP_WORK_S it takes so long from kazoo's
"release" until work on the items has stopped, and says only then that they are revoked. With --integers the items are
integers, as of range(12), which Python sorts by number. SIGTERM leaves the pool and
exits 0.

SPDX-License-Identifier: Apache-2.0
"""
import json
import logging
import signal
import sys
import time

from kazoo.client import KazooClient

POLL_S = 0.02


class Reporter:
    def __init__(self):
        self.owned = []
        self.generation = 0

    def say(self, event, state, gained=(), revoked=(), lost=()):
        gone, gained = set(revoked) | set(lost), set(gained) - set(self.owned)
        if gained or gone:
            self.generation += 1
        self.owned = sorted((set(self.owned) - gone) | set(gained))
        line = {"event": event, "state": state, "generation": self.generation, "gained": sorted(gained),
                "revoked": sorted(revoked), "lost": sorted(lost), "owned": self.owned, "tokens": {},
                "t": time.monotonic()}
        # One write for a line, so that the reader of the pipe never waits for half of it.
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()


def take_part(partitioner, reporter, stopping, stop_work_s):
    """The loop of kazoo's documentation. Returns whether it was asked to stop."""
    told = None
    while not stopping:
        # Cleared before the state is looked at, so that no change between the two is slept through.
        partitioner.state_change_event.clear()
        state_id, state = partitioner.state_id, partitioner.state
        if state_id != told:
            told = state_id
            if state == "ACQUIRED":
                reporter.say("items", state, gained=[str(item) for item in partitioner])
            elif state == "RELEASE":
                time.sleep(stop_work_s if reporter.owned else 0)
                reporter.say("items", state, revoked=reporter.owned)
            elif state == "FAILURE":
                reporter.say("items", state, lost=reporter.owned)
            reporter.say("state", state)
        if state == "FAILURE":
            return False
        if state == "RELEASE":
            partitioner.release_set()
            continue
        partitioner.state_change_event.wait(POLL_S)
    return True


def main():
    hosts, path, items_file, identifier, boundary_s, timeout_s = sys.argv[1:7]
    options = sys.argv[7:]
    integers = "--integers" in options
    stop_work_s = sum(float(option) for option in options if option != "--integers")
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s %(message)s")
    with open(items_file, encoding="utf-8") as lines:
        items = [int(line) if integers else line for line in lines.read().splitlines()]
    stopping = []
    signal.signal(signal.SIGTERM, lambda number, frame: stopping.append(number))
    client = KazooClient(hosts, timeout=float(timeout_s))
    client.start(timeout=60)
    partitioner = client.SetPartitioner(path, set=items, identifier=identifier, time_boundary=float(boundary_s))
    reporter = Reporter()
    asked = take_part(partitioner, reporter, stopping, stop_work_s)
    if asked:
        if reporter.owned:
            reporter.say("items", partitioner.state, revoked=reporter.owned)
        partitioner.finish()
    # The session must end too: finish() while allocating leaves a lock node behind (fault 1 of PITFALLS.md).
    client.stop()
    client.close()
    return 0 if asked else 1


if __name__ == "__main__":
    sys.exit(main())
