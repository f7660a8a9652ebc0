#!/usr/bin/python3
"""A pool of 200 processes on three servers: what changes cost all of them.  SPDX-License-Identifier: Apache-2.0

usage: pool.py [--sizes MxK,...] [--kazoo MxK,...] [--boundary MS] [--warm-up MS] [--batch N] [--limit SECONDS]
               [--build DIR] [--json FILE] [--plot FILE]

Starts M member processes on three private servers, which divide K items (200x20000 by default; several sizes are run
one after the other), and makes changes: one more joins; a tenth is killed at once by SIGKILL; as many join at once;
then each process is replaced by a new one with the same name, a fifth of them at a time (--batch). Does the same with
kazoo's SetPartitioner at the sizes of --kazoo. A worker warms up for a second (--warm-up). Samples the processor time,
the memory and the bytes of members and servers, prints tables, writes JSON lines to FILE, and draws. A change that
does not settle within the limit (120 s, and 360 s for the restart of all) ends its pool: that size is not borne.

README.md beside this file says what each column means.
"""
import argparse
import heapq
import json
import os
import signal
import socket
import subprocess
import sys
import time

import timeline
from plot import write_pools
from sockets import connections, inodes
from timeline import FINISH, HERE, build_member

TICK_MS, SAMPLE_S, SESSION_TIMEOUT_MS, LOOK_S, NICE = 1000, 0.5, 20000, 0.1, 10
LABELS = {"pool": "divvy", "kazoo": "kazoo"}
PAGE_KIB, CPU_CLOCK = os.sysconf("SC_PAGE_SIZE") // 1024, 2  # the latter as clock_getcpuclockid() has it
CHANGES = ("start", "join", "crash", "return", "restart")


class NotBorne(Exception):
    """The pool did not settle in time."""


def sizes(text):
    return [tuple(map(int, size.split("x"))) for size in text.split(",") if size]


def parse():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1][len("usage: "):])
    parser.add_argument("--sizes", type=sizes, default=[(200, 20000)])
    parser.add_argument("--kazoo", type=sizes, default=[(200, 20000)])
    parser.add_argument("--boundary", type=int, default=3000)
    parser.add_argument("--warm-up", type=int, default=1000)
    parser.add_argument("--batch", type=int, default=0)
    parser.add_argument("--limit", type=float, default=120)
    parser.add_argument("--build", default=os.path.join(HERE, "..", "build"))
    parser.add_argument("--json")
    parser.add_argument("--plot")
    return parser.parse_args()


# ---- what processes use ----


def cpu_s(pid):
    """Returns the processor time of a process, from its own clock, or None if it has gone."""
    try:
        return time.clock_gettime((~pid << 3) | CPU_CLOCK)
    except OSError:
        return None


def resident_kib(pid):
    try:
        with open("/proc/%d/statm" % pid, encoding="ascii") as file:
            return int(file.read().split()[1]) * PAGE_KIB
    except (FileNotFoundError, ProcessLookupError):
        return 0


def proportional_kib(pid):
    """Returns the memory of a process and its children, with a part of what it shares."""
    total = 0
    try:
        with open("/proc/%d/smaps_rollup" % pid, encoding="ascii") as file:
            total = next(int(line.split()[1]) for line in file if line.startswith("Pss:"))
        with open("/proc/%d/task/%d/children" % (pid, pid), encoding="ascii") as file:
            total += sum(proportional_kib(int(child)) for child in file.read().split())
    except (FileNotFoundError, ProcessLookupError, StopIteration):
        pass
    return total


class Servers:
    """An ensemble of three, and what it tells of itself."""

    def __init__(self, options):
        environment = {**os.environ, "DIVVY_BENCH_SERVER": "--servers 3 --tick %d" % TICK_MS,
                       "DIVVY_BENCH_WARM_UPS": "2"}
        command = [*options.nice, os.path.join(HERE, "start-server"), options.build, str(os.getpid())]
        started = subprocess.run(command, check=True, env=environment, stdout=subprocess.PIPE, text=True).stdout
        told = dict(line.split("=", 1) for line in started.split())
        self.hosts, self.folder = told["DIVVY_CONNECT"], told["ZOOKEEPER_LOCAL_DIR"]
        self.ports = [int(host.rpartition(":")[2]) for host in self.hosts.split(",")]
        self.pids = [int(self.read(number, "pid").split()[0]) for number in (1, 2, 3)]
        lines = [line for line in self.read(1, "zoo.cfg").splitlines() if line.startswith("server.")]
        self.peer_ports = {int(line.split(":")[1]) for line in lines}

    def read(self, number, name):
        with open(os.path.join(self.folder, str(number), name), encoding="utf-8") as file:
            return file.read()

    def monitor(self):
        """Returns what each server answers to `mntr`."""
        answers = []
        for port in self.ports:
            with socket.create_connection(("127.0.0.1", port), 30) as connection:
                connection.sendall(b"mntr")
                text = b"".join(iter(lambda: connection.recv(65536), b"")).decode()
            answers.append(dict(line.split("\t", 1) for line in text.splitlines() if "\t" in line))
        return answers

    def stop(self):
        subprocess.run([os.path.join(HERE, "..", "tools", "zookeeper-local"), "stop", self.folder], check=False)


class Usage:
    """Sums of processor time and bytes that only grow, whatever ends on the way."""

    def __init__(self, servers):
        self.servers, self.cpu, self.carried = servers, {}, {}
        self.members = {}  # pid: member
        self.began = time.monotonic()
        self.next_sample = self.began
        self.samples = []

    def look(self):
        """Looks at all processes and connections. Returns {"what": sum}."""
        for pid in [*self.members, *self.servers.pids]:
            used = cpu_s(pid)
            if used is not None:
                self.cpu[pid] = used
        for c in connections():
            if c.port in self.servers.ports or c.port in self.servers.peer_ports:
                self.carried[c.key] = (c.port, c.sent, c.received)
        of_servers = [self.cpu.get(pid, 0) for pid in self.servers.pids]
        to_clients = [c for c in self.carried.values() if c[0] in self.servers.ports]
        between = [c for c in self.carried.values() if c[0] in self.servers.peer_ports]
        return {"server_cpu_s": sum(of_servers), "member_cpu_s": sum(self.cpu.values()) - sum(of_servers),
                "server_sent": sum(c[1] for c in to_clients), "server_received": sum(c[2] for c in to_clients),
                "between_servers": sum(c[1] + c[2] for c in between)}

    def sample(self, working):
        now = time.monotonic()
        if now < self.next_sample:
            return
        self.next_sample = now + SAMPLE_S
        self.samples.append({
            "at": round(now - self.began, 3), "working": working,
            "member_kib": sum(map(resident_kib, self.members)),
            "server_kib": sum(map(resident_kib, self.servers.pids)), **self.look()})

    def by_member(self):
        """Returns {pid: {connection: bytes}} of the members that live."""
        ends = {c.inode: c for c in connections() if c.peer_port in self.servers.ports}
        return {pid: {ends[i].key: ends[i].sent + ends[i].received for i in inodes(pid) & ends.keys()}
                for pid in self.members}


# ---- the pool ----


class Pool(timeline.Pool):
    def __init__(self, options, peer, usage, hosts):
        self.usage, self.batch = usage, options.batch or max(1, options.members // 5)
        super().__init__(options, peer, hosts)

    def command(self, identifier):
        return [*self.options.nice, *super().command(identifier)]

    def begin(self):
        super().begin()
        for item in self.items:
            if not item.working:
                item.idle_since = self.began

    def start(self, identifier=None):
        super().start(identifier)
        member = self.running[-1]
        member.killed = False
        self.usage.members[member.process.pid] = member
        self.usage.sample(self.working)

    def take_over_all(self, members):
        """New processes in the place of these: beside them where there are handovers, else after them."""
        for member in members:
            if self.peer == "pool":
                member.ending = True
            else:
                self.end(member, FINISH)
        if self.peer != "pool":
            for member in members:
                member.process.wait()
        for member in members:
            self.start(member.identifier)

    def kill(self, members):
        for member in members:
            member.killed = member.ending = True
            heapq.heappush(self.heard, (time.monotonic(), next(self.order), member, "killed", []))
            member.process.kill()

    def act(self, at, member, what, items):
        if what in ("killed", "ended"):
            if what == "ended" and (not member.ending or member.process.wait() != 0) and not member.killed:
                sys.exit("pool: %s has died" % member.identifier)
            if member in self.running:
                self.running.remove(member)
                self.lose(member, [i for i, item in enumerate(self.items) if item.owner is member], at)
            if what == "ended":
                self.usage.members.pop(member.process.pid, None)
        elif not member.killed:
            super().act(at, member, what, items)
        self.acted_at = time.monotonic()
        if self.working != self.steps[-1][1]:
            self.steps.append((at, self.working))

    def hear(self):
        super().hear()
        while not self.said.empty():
            heapq.heappush(self.heard, self.said.get())
        self.usage.sample(self.working)
        if time.monotonic() > self.until:
            raise NotBorne("not borne: %d of %d items worked on" % (self.working, self.options.items))

    def rest(self, seconds):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.hear()

    def make(self, change):
        many = max(1, self.options.members // 10)
        if change == "start":
            for _ in range(self.options.members):
                self.start()
        elif change == "join":
            self.start()
        elif change == "crash":
            self.kill(self.running[:many * 10:10])
        elif change == "return":
            for _ in range(many):
                self.start()
        elif change == "restart":
            batch, members = self.batch, list(self.running)
            for at in range(0, len(members), batch):
                self.take_over_all(members[at:at + batch])
                self.settle()
        self.settle()

    def measure(self, change):
        """Makes a change, and returns what it has cost."""
        self.until = time.monotonic() + self.options.limit * (3 if change == "restart" else 1)
        before, monitored, members = self.usage.look(), self.usage.servers.monitor(), self.usage.by_member()
        began_at = time.monotonic() - self.usage.began
        self.begin()
        failure = None
        try:
            self.make(change)
        except NotBorne as error:
            failure = str(error)
        elapsed = time.monotonic() - self.began
        line = {**self.report(change), "processes": len(self.running), "began_at": round(began_at, 3),
                "elapsed_s": round(elapsed, 3), "failure": failure, "batch": self.batch}
        after, now = self.usage.look(), self.usage.by_member()
        line.update({key: round(after[key] - before[key], 3) for key in after})
        carried = [sum(ends.values()) - sum(members[pid].values()) for pid, ends in now.items()
                   if pid in members and ends.keys() == members[pid].keys()]
        if carried:
            line.update(stayed=len(carried), stayed_bytes=sum(carried) / len(carried), stayed_bytes_max=max(carried))
        for key in ("packets_received", "packets_sent"):
            line[key] = sum(int(b["zk_" + key]) - int(a["zk_" + key])
                            for a, b in zip(monitored, self.usage.servers.monitor()))
        memory = [proportional_kib(pid) for pid in self.usage.members]
        line.update(member_pss_kib=sum(memory) / max(len(memory), 1), member_pss_kib_max=max(memory, default=0))
        line["server_rss_kib"] = max(map(resident_kib, self.usage.servers.pids))
        return line

    def end_all(self):
        for member in self.running:
            member.ending = True
            member.process.terminate()
        until = time.monotonic() + 30
        for member in self.usage.members.values():
            try:
                member.process.wait(max(until - time.monotonic(), 0.01))
            except subprocess.TimeoutExpired:
                member.process.kill()
                member.process.wait()


def run(options, peer, size):
    """Yields a line for each change, on servers of its own, so that nothing of an earlier pool counts."""
    options.members, options.items = size
    servers = Servers(options)
    os.environ.update(DIVVY_ENSEMBLE_TICK_MS=str(TICK_MS), DIVVY_BENCH_LOOK_S=str(LOOK_S))
    usage = Usage(servers)
    pool = Pool(options, peer, usage, servers.hosts)
    try:
        for change in CHANGES:
            line = pool.measure(change)
            pool.until = time.monotonic() + options.limit
            if not line["failure"]:
                pool.rest(options.boundary / 1000)
            yield line
            if line["failure"]:
                break
    finally:
        pool.end_all()
        servers.stop()
    yield {"peer": peer, "members": size[0], "items": size[1], "samples": usage.samples}


def be_heard():
    """Puts this process before those that it measures, if it may. Returns what has them start as it did."""
    try:
        os.nice(-NICE)
    except PermissionError:
        return []
    return ["nice", "-n", str(NICE)]


ROWS = (
    ("took, s", lambda r: "%.1f" % r["took_s"]),
    ("items that moved", lambda r: f"{r['moved']:,}"),
    ("interruptions of items", lambda r: f"{r['interrupted']:,}"),
    ("nobody worked, item-seconds", lambda r: f"{r['unowned_s']:,.0f}"),
    ("longest such time of an item, s", lambda r: "%.2f" % r["longest_s"]),
    ("processor time of all members, s", lambda r: "%.1f" % r["member_cpu_s"]),
    ("processor time of the servers, s", lambda r: "%.1f" % r["server_cpu_s"]),
    ("packets from and to members", lambda r: f"{r['packets_received'] + r['packets_sent']:,}"),
    ("MB from and to members", lambda r: "%.1f" % ((r["server_sent"] + r["server_received"]) / 1e6)),
    ("MB between servers", lambda r: "%.1f" % (r["between_servers"] / 1e6)),
    ("kB of a member that stays: mean", lambda r: "%.1f" % (r["stayed_bytes"] / 1e3) if "stayed" in r else ""),
    ("kB of a member that stays: most", lambda r: "%.1f" % (r["stayed_bytes_max"] / 1e3) if "stayed" in r else ""),
    ("MB of memory of a member, after it", lambda r: "%.1f" % (r["member_pss_kib"] / 1024)),
    ("MB of memory of a server, after it", lambda r: "%.0f" % (r["server_rss_kib"] / 1024)))
TITLES = {"start": "all start", "join": "one joins", "crash": "a tenth is killed", "return": "as many join",
          "restart": "all are replaced"}


def pools(lines):
    """Yields of each pool (name, line with its samples, lines of its changes)."""
    changes = []
    for line in lines:
        if "samples" in line:
            yield LABELS[line["peer"]], line, changes
            changes = []
        else:
            changes.append(line)


def title_of(line):
    return TITLES[line["change"]] + (" (%s)" % line["failure"] if line["failure"] else "")


def tables(lines):
    """Yields the lines of a table in Markdown for each pool."""
    for name, pool, changes in pools(lines):
        yield "| %s, %s members, %s items | %s |" % (
            name, f"{pool['members']:,}", f"{pool['items']:,}", " | ".join(map(title_of, changes)))
        yield "| --- |" + " ---: |" * len(changes)
        for what, cell in ROWS:
            yield "| %s | %s |" % (what, " | ".join(map(cell, changes)))
        yield ""


def main():
    options = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # The default action would leave the members behind.
    build_member(options.build)
    subprocess.run(["cmake", "--build", options.build, "--target", "divvy-death-watch"], check=True,
                   stdout=subprocess.DEVNULL)
    os.environ["DIVVY_LIBEXEC"] = os.path.abspath(os.path.join(options.build, "tools"))
    timeline.SESSION_TIMEOUT_MS, timeline.SETTLE_TIMEOUT_S = SESSION_TIMEOUT_MS, 3600
    options.nice = be_heard()
    lines = []
    for peer, size in [("pool", size) for size in options.sizes] + [("kazoo", size) for size in options.kazoo]:
        for line in run(options, peer, size):
            lines.append(line)
            if "change" in line:
                print("pool: %s, %d x %d, %s: %.1f s (%.1f s in all)" % (
                    LABELS[peer], *size, title_of(line), line["took_s"], line["elapsed_s"]), file=sys.stderr)
    print("\n".join(tables(lines)))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)
    if options.plot:
        write_pools(options.plot, [pool for pool in pools(lines) if len(pool[1]["samples"]) > 1])


if __name__ == "__main__":
    main()
