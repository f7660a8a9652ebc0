#!/usr/bin/python3
"""Who owns what while a pool changes: a join, a crash, a rolling restart.  SPDX-License-Identifier: Apache-2.0

usage: timeline.py [--items K] [--members M] [--boundary MS] [--build DIR] [--json FILE] [--plot FILE] [PEER...]

Runs each PEER (sticky, rendezvous, eager, kazoo; all of them by default) on a private ZooKeeper, its members as a
process each: M members (4) divide K items (1,000); one more joins; that one is killed; it comes back; then all, one
after the other, end in good order and are started again (with `sticky` they are static members by then). Prints a
table, writes a JSON line for each peer and change to FILE, and draws the items owned over time.

README.md beside this file says what each column means.
"""
import argparse
import heapq
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time

from plot import Panel, write_svg

HERE = os.path.dirname(os.path.abspath(__file__))
PEERS = ("sticky", "rendezvous", "eager", "kazoo")
LABELS = {"sticky": "divvy, sticky", "rendezvous": "divvy, rendezvous", "eager": "divvy, eager round robin",
          "kazoo": "kazoo"}
SESSION_TIMEOUT_MS, SETTLE_TIMEOUT_S, CALM_S, ORDER_S = 10000, 300, 0.5, 0.2


def parse():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1][len("usage: "):], add_help=True)
    parser.add_argument("--items", type=int, default=1000)
    parser.add_argument("--members", type=int, default=4)
    parser.add_argument("--boundary", type=int, default=500)
    parser.add_argument("--build", default=os.path.join(HERE, "..", "build"))
    parser.add_argument("--json")
    parser.add_argument("--plot")
    parser.add_argument("peers", nargs="*", metavar="PEER")
    arguments = parser.parse_args()
    if set(arguments.peers) - set(PEERS):
        parser.error("a PEER is one of " + ", ".join(PEERS))
    arguments.peers = arguments.peers or list(PEERS)
    return arguments


class Pool:
    """The members' processes, and what they have said."""

    def __init__(self, options, peer, hosts):
        self.options, self.peer, self.hosts = options, peer, hosts
        self.path = "/timeline-%s-%d" % (peer, os.getpid())
        self.said, self.heard, self.acted_at = queue.Queue(), [], time.monotonic()
        self.running = {}  # identifier: process
        self.generation = {}  # identifier: how often it was started
        self.acquired = set()
        self.owner = [None] * options.items
        self.last_owner = [None] * options.items
        self.unowned_since = [time.monotonic()] * options.items
        self.owned = 0
        self.steps = []  # (time, items owned)
        self.begin()

    def begin(self):
        self.began = time.monotonic()
        self.moved = self.given_up = self.failed = 0
        self.gaps = []
        self.fewest = self.owned

    def command(self, identifier, static):
        o = self.options
        what = [self.hosts, self.path, identifier, str(o.items), str(o.boundary), str(SESSION_TIMEOUT_MS)]
        if self.peer == "kazoo":
            return [os.environ.get("PYTHON", sys.executable), os.path.join(HERE, "peers", "kazoo_member.py")] + what
        rule = "static" if static and self.peer == "sticky" else self.peer
        return [os.path.join(o.build, "bench", "bench_timeline_member")] + what + [rule]

    def start(self, identifier, static=False):
        process = subprocess.Popen(self.command(identifier, static), stdout=subprocess.PIPE, text=True)
        self.running[identifier] = process
        generation = self.generation[identifier] = self.generation.get(identifier, 0) + 1

        def listen():
            for line in process.stdout:
                at, what, *items = line.split()
                self.said.put((float(at), identifier, generation, what, items))

        threading.Thread(target=listen, daemon=True).start()

    def end(self, identifier, how):
        """Ends a member, and counts what it still owned as given up, now."""
        process = self.running.pop(identifier)
        process.send_signal(how)
        if process.wait() not in (0, -how):
            sys.exit("timeline: %s ended with %d" % (identifier, process.returncode))
        ended_at = time.monotonic()
        while time.monotonic() < ended_at + 2 * ORDER_S:  # what it had said before
            self.hear(ORDER_S / 4)
        self.generation[identifier] += 1
        self.acquired.discard(identifier)
        self.lose(identifier, [i for i, owner in enumerate(self.owner) if owner == identifier], ended_at)

    def gain(self, identifier, items, at):
        for i in items:
            if self.owner[i] is not None:
                sys.exit("timeline: item %d has two owners, %s and %s" % (i, self.owner[i], identifier))
            self.moved += self.last_owner[i] not in (None, identifier)
            self.owner[i] = self.last_owner[i] = identifier
            self.gaps.append(at - self.unowned_since[i])
            self.owned += 1
        self.step(at)

    def lose(self, identifier, items, at):
        for i in items:
            if self.owner[i] == identifier:
                self.owner[i] = None
                self.unowned_since[i] = at
                self.given_up += 1
                self.owned -= 1
        self.step(at)

    def step(self, at):
        self.steps.append((at, self.owned))
        self.fewest = min(self.fewest, self.owned)

    def hear(self, timeout):
        """Takes in what comes, and acts upon what is old enough for nothing earlier to come yet: each has a pipe of its
        own."""
        try:
            heapq.heappush(self.heard, self.said.get(timeout=timeout))
        except queue.Empty:
            pass
        while self.heard and self.heard[0][0] < time.monotonic() - ORDER_S:
            self.act(*heapq.heappop(self.heard))

    def act(self, at, identifier, generation, what, items):
        if generation != self.generation[identifier]:
            return  # It was killed since.
        self.acted_at = time.monotonic()
        if what == "+":
            self.gain(identifier, map(int, items), at)
        elif what == "-":
            self.lose(identifier, map(int, items), at)
        elif what == "acquired":
            self.acquired.add(identifier)
        elif what in ("release", "failed"):
            self.acquired.discard(identifier)
            self.failed += what == "failed"

    def settle(self):
        """Until they own all of it, and nothing more is heard for a while; how long it took to get there."""
        until, settled_at = time.monotonic() + SETTLE_TIMEOUT_S, None
        while time.monotonic() < until:
            self.hear(ORDER_S / 4)
            if self.owned != self.options.items or self.acquired != set(self.running):
                settled_at = None
            elif settled_at is None:
                settled_at = self.steps[-1][0] if self.steps else time.monotonic()
            elif time.monotonic() - self.acted_at > CALM_S:
                return settled_at - self.began
            for identifier, process in self.running.items():
                if process.poll() is not None:
                    sys.exit("timeline: %s has died" % identifier)
        sys.exit("timeline: %s did not settle in %d s" % (self.peer, SETTLE_TIMEOUT_S))

    def report(self, change, took_s):
        steps = [(at - self.began, owned) for at, owned in self.steps if at >= self.began]
        self.steps.clear()
        return {"peer": self.peer, "change": change, "members": self.options.members, "items": self.options.items,
                "boundary_ms": self.options.boundary, "took_s": round(took_s, 3), "moved": self.moved,
                "failed": self.failed,
                "given_up": self.given_up, "fewest_owned": self.fewest,
                "unowned_s": round(sum(self.gaps), 3), "unowned_max_s": round(max(self.gaps, default=0), 3),
                "steps": steps}


def run(options, peer, hosts):
    pool = Pool(options, peer, hosts)
    names = ["w%d" % i for i in range(options.members + 1)]
    try:
        for name in names[:-1]:
            pool.start(name, static=True)
        pool.settle()
        time.sleep(1)
        pool.begin()
        pool.start(names[-1])
        yield pool.report("join", pool.settle())
        pool.begin()
        pool.end(names[-1], signal.SIGKILL)
        yield pool.report("crash", pool.settle())
        pool.start(names[-1], static=True)
        pool.settle()
        pool.steps.clear()
        pool.begin()
        for name in names:
            pool.end(name, signal.SIGTERM)
            pool.start(name, static=True)
            took_s = pool.settle()
        yield pool.report("rolling restart", took_s)
    finally:
        for process in pool.running.values():
            process.terminate()
        for process in pool.running.values():
            process.wait()


def draw(options, lines):
    panels = []
    for change in ("join", "crash", "rolling restart"):
        of_change = [line for line in lines if line["change"] == change]
        panels.append(Panel("%s: items owned, of %d, over time in s" % (change, options.items), options.items,
                            [(LABELS[line["peer"]], [(0, options.items)] + line["steps"] + [(line["took_s"] * 1.05,
                              options.items)]) for line in of_change]))
    write_svg(options.plot, panels)


def main():
    options = parse()
    started = subprocess.run([os.path.join(HERE, "start-server"), options.build, str(os.getpid())], check=True,
                             stdout=subprocess.PIPE, text=True).stdout
    server = dict(line.split("=", 1) for line in started.split())
    lines = []
    print("%-12s %-16s %8s %8s %9s %8s %12s %10s %7s" % ("peer", "change", "took s", "moved", "given up", "fewest",
                                                         "unowned s", "longest s", "failed"))
    try:
        for peer in options.peers:
            for line in run(options, peer, server["DIVVY_CONNECT"]):
                lines.append(line)
                print("%-12s %-16s %8.2f %8d %9d %8d %12.1f %10.2f %7d" % (
                    peer, line["change"], line["took_s"], line["moved"], line["given_up"], line["fewest_owned"],
                    line["unowned_s"], line["unowned_max_s"], line["failed"]), flush=True)
    finally:
        subprocess.run([os.path.join(HERE, "..", "tools", "zookeeper-local"), "stop", server["ZOOKEEPER_LOCAL_DIR"]],
                       check=False)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)
    if options.plot:
        draw(options, lines)


if __name__ == "__main__":
    main()
