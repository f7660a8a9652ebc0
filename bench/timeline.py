#!/usr/bin/python3
"""How many items are worked on while a pool changes, by workers that must warm up.  SPDX-License-Identifier: Apache-2.0

usage: timeline.py [--items K] [--members M] [--boundary MS] [--warm-up MS] [--build DIR] [--json FILE] [--plot FILE]
                   [PEER...]

Runs each PEER (standby, divvy, eager, kazoo; all of them by default) on a private ZooKeeper, its members as a process
each: M members (5) divide K items (1,000); one more joins; one leaves; then each is replaced, one after the other: by a
new process that joins before the old one leaves, and by a new process with the same name. Prints a table and the
targets, writes a JSON line for each peer and change to FILE, and draws the items worked on over time.

README.md beside this file says what each column means.
"""
import argparse
import heapq
import itertools
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time

from plot import write_grid

HERE = os.path.dirname(os.path.abspath(__file__))
LABELS = {"standby": "divvy, standby", "divvy": "divvy", "eager": "stop-then-start", "kazoo": "kazoo"}
CHANGES = ("join", "leave", "rolling restart", "restart in place")
SESSION_TIMEOUT_MS, SETTLE_TIMEOUT_S, CALM_S, ORDER_S = 10000, 300, 0.5, 0.2
TARGET_CHANGE, UNOWNED_S_MAX, P99_MS_MAX = "rolling restart", 20, 10
LEAVE, FINISH = signal.SIGUSR1, signal.SIGTERM


def parse():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1][len("usage: "):], add_help=True)
    parser.add_argument("--items", type=int, default=1000)
    parser.add_argument("--members", type=int, default=5)
    parser.add_argument("--boundary", type=int, default=500)
    parser.add_argument("--warm-up", type=int, default=2000)
    parser.add_argument("--build", default=os.path.join(HERE, "..", "build"))
    parser.add_argument("--json")
    parser.add_argument("--plot")
    parser.add_argument("peers", nargs="*", metavar="PEER")
    arguments = parser.parse_args()
    if set(arguments.peers) - set(LABELS):
        parser.error("a PEER is one of " + ", ".join(LABELS))
    arguments.peers = arguments.peers or list(LABELS)
    return arguments


class Member:
    """A member's process, and what it has said."""

    def __init__(self, identifier, process):
        self.identifier, self.process = identifier, process
        self.acquired = self.ending = False
        self.warm_at = {}  # item: when its worker in this process is warm


class Item:
    def __init__(self, now):
        self.owner = self.last_worker = None
        self.working = False
        self.idle_since = now


class Pool:
    def __init__(self, options, peer, hosts):
        self.options, self.peer, self.hosts = options, peer, hosts
        self.path = "/timeline-%s-%d" % (peer, os.getpid())
        self.said, self.heard, self.order = queue.Queue(), [], itertools.count()
        self.running = []
        self.names = ("w%03d" % number for number in itertools.count())
        self.items = [Item(time.monotonic()) for _ in range(options.items)]
        self.working = 0
        self.begin()

    def begin(self):
        self.began = self.acted_at = time.monotonic()
        self.interrupted = self.failed = 0
        self.gaps, self.moved_gaps = [], []
        self.steps = [(self.began, self.working)]

    # ---- members ----

    def command(self, identifier):
        o = self.options
        what = [self.hosts, self.path, identifier, str(o.items), str(o.boundary), str(SESSION_TIMEOUT_MS)]
        if self.peer == "kazoo":
            return [os.environ.get("PYTHON", sys.executable), os.path.join(HERE, "peers", "kazoo_member.py")] + what
        return [os.path.join(o.build, "bench", "bench_timeline_member")] + what + [str(o.warm_up), self.peer]

    def start(self, identifier=None):
        identifier = identifier or next(self.names)
        member = Member(identifier, subprocess.Popen(self.command(identifier), stdout=subprocess.PIPE, text=True))
        self.running.append(member)

        def listen():
            for line in member.process.stdout:
                at, what, *items = line.split()
                self.said.put((float(at), next(self.order), member, what, items))
            self.said.put((time.monotonic(), next(self.order), member, "ended", []))

        threading.Thread(target=listen, daemon=True).start()

    def end(self, member, how):
        member.ending = True
        member.process.send_signal(how)

    def take_over(self, member):
        """A new process in the place of this one: beside it where there are handovers, else after it."""
        if self.peer == "standby":
            member.ending = True
        else:
            self.end(member, FINISH)
            member.process.wait()
        self.start(member.identifier)

    # ---- what they say ----

    def gain(self, member, items, at):
        warm = {}
        for i in items:
            item = self.items[i]
            if item.owner:
                sys.exit("timeline: item %d has two owners, %s and %s" % (i, item.owner.identifier, member.identifier))
            item.owner = member
            for other in self.running:
                if other is not member:
                    other.warm_at.pop(i, None)
            warm_at = member.warm_at.setdefault(i, at + self.options.warm_up / 1000)
            warm.setdefault(max(at, warm_at), []).append(i)
        for warm_at, those in warm.items():
            heapq.heappush(self.heard, (warm_at, next(self.order), member, "warm", those))

    def begin_work(self, member, items, at):
        for i in items:
            item = self.items[i]
            if item.owner is not member or item.working or member.warm_at.get(i, at) > at:
                continue  # It was lost before.
            self.gaps.append(at - item.idle_since)
            if item.last_worker is not member:
                self.moved_gaps.append(self.gaps[-1])
            item.working, item.last_worker = True, member
            self.working += 1

    def lose(self, member, items, at):
        for i in items:
            item = self.items[i]
            if item.owner is not member:
                member.warm_at.pop(i, None)  # no longer to prepare for
                continue
            item.owner = None
            if item.working:
                item.working, item.idle_since = False, at
                self.working -= 1
                self.interrupted += 1

    def act(self, at, member, what, items):
        items = list(map(int, items))
        if what == "+":
            self.gain(member, items, at)
        elif what == "warm":
            self.begin_work(member, items, at)
        elif what == "-":
            self.lose(member, items, at)
        elif what == "?":
            member.warm_at.update((i, at + self.options.warm_up / 1000) for i in items)
        elif what == "acquired":
            member.acquired = True
        elif what in ("release", "failed"):
            member.acquired = False
            self.failed += what == "failed"
        elif what == "ended":
            if not member.ending or member.process.wait() != 0:
                sys.exit("timeline: %s has died" % member.identifier)
            self.running.remove(member)
            self.lose(member, [i for i, item in enumerate(self.items) if item.owner is member], at)
        self.acted_at = time.monotonic()
        if self.working != self.steps[-1][1]:
            self.steps.append((at, self.working))

    def hear(self):
        """Takes in what comes, and acts upon what is old enough for nothing earlier to come yet: each has a pipe of its
        own."""
        try:
            heapq.heappush(self.heard, self.said.get(timeout=ORDER_S / 4))
        except queue.Empty:
            pass
        while self.heard and self.heard[0][0] < time.monotonic() - ORDER_S:
            at, _, *said = heapq.heappop(self.heard)
            self.act(at, *said)

    def settle(self):
        """Until all of it is worked on, and nothing more is heard for a while."""
        until = time.monotonic() + SETTLE_TIMEOUT_S
        while time.monotonic() < until:
            self.hear()
            if self.working == self.options.items and all(m.acquired and not m.ending for m in self.running):
                if not self.heard and time.monotonic() - self.acted_at > CALM_S:
                    return
        sys.exit("timeline: %s did not settle in %d s" % (self.peer, SETTLE_TIMEOUT_S))

    def report(self, change):
        moved = sorted(self.moved_gaps)
        steps = [(round(at - self.began, 4), working) for at, working in self.steps]
        return {"peer": self.peer, "change": change, "members": self.options.members, "items": self.options.items,
                "boundary_ms": self.options.boundary, "warm_up_ms": self.options.warm_up, "took_s": steps[-1][0],
                "moved": len(moved), "interrupted": self.interrupted, "failed": self.failed,
                "fewest": min(working for _, working in steps), "unowned_s": round(sum(self.gaps), 3),
                "moved_p99_ms": round(moved[(len(moved) - 1) * 99 // 100] * 1000, 3) if moved else 0,
                "longest_s": round(max(self.gaps, default=0), 3), "steps": steps}


def make_change(pool, change):
    if change == "join":
        pool.start()
    elif change == "leave":
        pool.end(pool.running[0], LEAVE)
    for member in list(pool.running) if change == "rolling restart" else ():
        pool.start()
        pool.settle()
        pool.end(member, LEAVE)
        pool.settle()
    for member in list(pool.running) if change == "restart in place" else ():
        pool.take_over(member)
        pool.settle()
    pool.settle()


def run(options, peer, hosts):
    pool = Pool(options, peer, hosts)
    try:
        for _ in range(options.members):
            pool.start()
        pool.settle()
        for change in CHANGES:
            time.sleep(CALM_S)
            pool.begin()
            make_change(pool, change)
            yield pool.report(change)
    finally:
        for member in pool.running:
            member.process.terminate()
        for member in pool.running:
            member.process.wait()


def draw(options, lines):
    def cell(peer, change):
        line = next((line for line in lines if line["peer"] == peer and line["change"] == change), None)
        return line and ("%s item-s unowned" % f"{line['unowned_s']:,.0f}", [(-1, options.items)] + line["steps"])

    write_grid(options.plot, options.items, CHANGES, [LABELS[peer] for peer in options.peers],
               [[cell(peer, change) for change in CHANGES] for peer in options.peers])


def print_targets(lines):
    for line in lines:
        if line["peer"] != "standby" or line["change"] != TARGET_CHANGE:
            continue
        for what, wanted, measured in (("unowned item-seconds", UNOWNED_S_MAX, line["unowned_s"]),
                                       ("99th percentile of a moved item's gap, ms", P99_MS_MAX,
                                        line["moved_p99_ms"])):
            print("%s, %-60s < %d %10.1f   %s" % (TARGET_CHANGE, what, wanted, measured,
                                                  "met" if measured < wanted else "MISSED"))


def build_member(build):
    if not os.path.exists(os.path.join(build, "CMakeCache.txt")):
        subprocess.run(["cmake", "-S", os.path.join(HERE, ".."), "-B", build], check=True, stdout=sys.stderr)
    if subprocess.run(["cmake", "--build", build, "--target", "bench_timeline_member", "bench_raw_limit"], check=False,
                      stdout=sys.stderr).returncode != 0:
        sys.exit("bench/timeline: the build in %s has failed" % build)


def main():
    options = parse()
    build_member(options.build)
    started = subprocess.run([os.path.join(HERE, "start-server"), options.build, str(os.getpid())], check=True,
                             stdout=subprocess.PIPE, text=True).stdout
    server = dict(line.split("=", 1) for line in started.split())
    lines = []
    print("%-16s %-16s %8s %8s %11s %8s %10s %13s %10s %7s" % ("peer", "change", "took s", "moved", "interrupted",
                                                              "fewest", "unowned s", "moved p99 ms", "longest s",
                                                              "failed"))
    try:
        for peer in options.peers:
            for line in run(options, peer, server["DIVVY_CONNECT"]):
                lines.append(line)
                print("%-16s %-16s %8.2f %8d %11d %8d %10.1f %13.1f %10.3f %7d" % (
                    LABELS[peer], line["change"], line["took_s"], line["moved"], line["interrupted"], line["fewest"],
                    line["unowned_s"], line["moved_p99_ms"], line["longest_s"], line["failed"]), flush=True)
    finally:
        subprocess.run([os.path.join(HERE, "..", "tools", "zookeeper-local"), "stop", server["ZOOKEEPER_LOCAL_DIR"]],
                       check=False)
    print_targets(lines)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)
    if options.plot:
        draw(options, lines)


if __name__ == "__main__":
    main()
