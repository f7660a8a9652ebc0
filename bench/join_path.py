#!/usr/bin/python3
"""Draws a join: who waits for whom.  SPDX-License-Identifier: Apache-2.0

usage: join_path.py [--items K] [--members M] [--repeats N] [--build DIR] [--plot FILE] [--json FILE]

M members (4) share K items (10,000), each in a process of its own, and one more joins. After a join that warms it up,
measures N joins (5) on a private ZooKeeper, each beside the raw C client's least in the same run (bench_raw_limit): all
that moves as deletes and creates in multis of 200. Tells also how much processor time the members and the server use
from the end of the boundary until all have settled. Then it has one more join write down its requests, and draws that
below the same join in the in-memory ensemble (bench_join_chain), where a message takes a millisecond and computing
nothing. Prints a table of the steps and the ratios, and writes a JSON line for each join to FILE.

Times are since the newcomer was started, less the boundary. README.md beside this file says what the steps are.
"""
import argparse
import glob
import json
import os
import re
import signal
import statistics
import subprocess
import tempfile
import time
from collections import namedtuple

from plot import write_svg

HERE = os.path.dirname(os.path.abspath(__file__))
BOUNDARY_S, REST_S, PATIENCE_S, RAW_COUNT = 0.5, 1, 60, 10000
WIDTH, HEIGHT, GAP = 900, 620, 0.12
REQUEST = re.compile(r"request (\d+): (?:all of (\d+): )?(\w+) ([^ ;,]*)[^;]*(?:; (\w+) ([^ ;,]*))?")
ANSWER = re.compile(r"answer (\d+): .*?(?:after ([\d.]+) ms)?$")

# A request of the member `who`, from `begin` to `end`, in seconds.
Request = namedtuple("Request", "who begin end kind path second count")
STEPS = (("connects, makes note and node", "#bbbbbb"), ("the party is read", "#8c8c8c"),
         ("the plan is written", "#e8604c"), ("the plan is read", "#f2a541"), ("owners say what they give", "#b48ad1"),
         ("places are made", "#4f8fc9"), ("the newcomer says that it is ready", "#57b894"),
         ("owners give", "#1f5f8b"), ("the newcomer takes", "#2f7d4f"))


def parse():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1][len("usage: "):])
    parser.add_argument("--items", type=int, default=10000)
    parser.add_argument("--members", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--build", default=os.path.join(HERE, "..", "build"))
    parser.add_argument("--plot")
    parser.add_argument("--json")
    return parser.parse_args()


# ---- what was requested ----


def take_line(open_ones, who, at, text, scale):
    """Returns the request that this line ends, or None. An answer may tell how long it took: its line may be late."""
    match = REQUEST.match(text)
    if match:
        number, count, kind, path, second, _ = match.groups()
        open_ones[who, number] = Request(who, at * scale, None, kind, path, second, int(count or 1))
    match = ANSWER.match(text)
    begun = open_ones.pop((who, match[1]), None) if match else None
    if not begun:
        return None
    return begun._replace(end=begun.begin + float(match[2]) / 1000 if match[2] else at * scale)


def simulate(options):
    """Returns the requests of a join in the in-memory ensemble, and how long it took."""
    program = os.path.join(options.build, "bench", "bench_join_chain")
    text = subprocess.run([program, str(options.members), str(options.items)], capture_output=True, text=True,
                          check=True).stdout
    requests, open_ones, start, end = [], {}, 0, 0
    for line in text.splitlines():
        at, _, rest = line.partition(" ")
        if rest == "start":
            start = int(at) / 1000
        elif rest == "settled":
            end = int(at) / 1000
        else:
            who, _, what = rest.partition(" ")
            requests.append(take_line(open_ones, int(who), int(at), what, 0.001))
    took = end - start - BOUNDARY_S
    return timed([r for r in requests if r], start, took), took


def timed(requests, start, took):
    """Takes the boundary out, what is sent while all wait for it, and what comes later."""
    kept = []
    for r in requests:
        begin = r.begin - start
        if begin < 0 or BOUNDARY_S / 10 < begin < BOUNDARY_S - 0.002:
            continue
        shift = start + (BOUNDARY_S if begin > BOUNDARY_S / 2 else 0)
        if r.begin - shift < took:
            kept.append(r._replace(begin=r.begin - shift, end=r.end - shift))
    return sorted(kept, key=lambda r: r.begin)


def step_of(r, newcomer, ready_at, given_at):
    """Returns which step the request is a part of; None: of none."""
    if r.path == "/" and r.who == newcomer or r.kind == "create" and r.path.find("/party/") >= 0:
        return 0
    if r.who == newcomer and (r.path.endswith("/locks") or (r.kind == "create" and "/notes/" in r.path)):
        return 0
    if "/party" in r.path:
        return 1 if r.path.endswith("/party") or r.who != newcomer else 0
    if r.path == "/" or "/plan" in r.path:
        return 3 if r.kind == "get" else 2
    if "/locks/" in r.path:
        return 5 if r.who == newcomer else None
    if "/notes/" in r.path:
        if r.kind == "set":
            return 6 if r.who == newcomer else 7 if r.second == "delete" else 4
        return (8 if r.begin >= given_at else 4) if r.who == newcomer else 6 if r.begin >= ready_at else 4
    return None


def by_step(requests, newcomer):
    """Returns a list of requests for each step."""
    notes = [r for r in requests if "/notes/" in r.path and r.kind == "set"]
    ready_at = min((r.begin for r in notes if r.who == newcomer), default=1)
    given_at = min((r.begin for r in notes if r.who != newcomer and r.second == "delete"), default=1)
    steps = [[] for _ in STEPS]
    for r in requests:
        step = step_of(r, newcomer, ready_at, given_at)
        if step is not None:
            steps[step].append(r)
    return steps


# ---- real processes ----


class Pool:
    """The members of one join, each with the file of its lines."""

    def __init__(self, options, hosts, path, folder):
        self.options, self.hosts, self.path, self.folder = options, hosts, path, folder
        self.processes, self.files = [], []

    def start(self, traced):
        number = len(self.processes)
        name = os.path.join(self.folder, "%s-%d" % (self.path.strip("/"), number))
        command = [os.path.join(self.options.build, "bench", "bench_join_member"), self.hosts, self.path,
                   "w%d" % number, str(self.options.items), "%d" % (BOUNDARY_S * 1000)]
        with open(name, "w", encoding="ascii") as out:
            self.processes.append(subprocess.Popen(command + [name + ".trace"] * traced, stdout=out))
        self.files.append(name)

    def lines(self, number):
        with open(self.files[number], encoding="ascii") as file:
            return [line.split() for line in file]

    def settled_at(self):
        """Returns when all had acquired all items; None: they have not."""
        owned, at = 0, 0
        for number in range(len(self.files)):
            lines = self.lines(number)
            own = [int(line[2]) for line in lines if line[1] == "own"]
            if not own or not any(line[1] == "acquired" for line in lines):
                return None
            owned += own[-1]
            at = max(at, float(lines[-1][0]))
        return at if owned == self.options.items else None

    def settle(self):
        until = time.monotonic() + PATIENCE_S
        while self.settled_at() is None:
            if time.monotonic() > until or any(p.poll() is not None for p in self.processes):
                raise SystemExit("join_path.py: the pool does not settle")
            time.sleep(0.05)
        return self.settled_at()

    def end(self):
        for process in self.processes:
            process.send_signal(signal.SIGTERM)
        for process in self.processes:
            process.wait()

    def requests(self):
        found, open_ones = [], {}
        for number, name in enumerate(self.files):
            with open(name + ".trace", encoding="ascii") as file:
                for line in file:
                    at, _, text = line.rstrip("\n").partition(" ")
                    found.append(take_line(open_ones, number, float(at), text, 1))
        return [r for r in found if r]


def processor_ms(pids):
    """Returns the processor time that these processes have used."""
    used = 0
    for pid in pids:
        for thread in glob.glob("/proc/%d/task/*/schedstat" % pid):
            with open(thread, encoding="ascii") as file:
                used += int(file.read().split()[0])
    return used / 1e6


def join(options, hosts, path, folder, traced, servers=()):
    """Returns how long a join took, its requests if it was traced, and the processor time of members and servers."""
    pool = Pool(options, hosts, path, folder)
    try:
        for _ in range(options.members):
            pool.start(traced)
        pool.settle()
        time.sleep(REST_S)
        pool.start(traced)
        time.sleep(BOUNDARY_S * 0.8)
        parts = [process.pid for process in pool.processes], servers
        before = [processor_ms(part) for part in parts]
        end = pool.settle()
        used = [processor_ms(part) - first for part, first in zip(parts, before)]
        start = float(pool.lines(options.members)[0][0])
    finally:
        pool.end()
    took = end - start - BOUNDARY_S
    return took, timed(pool.requests(), start, took) if traced else [], used


def least(options, hosts):
    """Returns how long the raw C client's multis take for what moves."""
    program = os.path.join(options.build, "bench", "bench_raw_limit")
    run = subprocess.run([program, hosts, str(RAW_COUNT)], capture_output=True, text=True, check=True)
    raw = json.loads(run.stdout)
    moves = options.items // (options.members + 1)
    return moves / raw["multi_creates_per_s"] + moves / raw["multi_deletes_per_s"]


def measure(options):
    """Returns a line for each join, and the requests of the last, traced one with its time."""
    lines = []
    text = subprocess.run([os.path.join(HERE, "start-server"), options.build, str(os.getpid())], capture_output=True,
                          text=True, check=True).stdout
    server = dict(line.split("=", 1) for line in text.splitlines())
    hosts = server["DIVVY_CONNECT"].strip("'")
    servers = [int(open(name, encoding="ascii").read().split()[0])
               for name in glob.glob(os.path.join(server["ZOOKEEPER_LOCAL_DIR"].strip("'"), "*", "pid"))]
    os.environ["DIVVY_ENSEMBLE_TICK_MS"] = server["DIVVY_ENSEMBLE_TICK_MS"].strip("'")
    try:
        with tempfile.TemporaryDirectory() as folder:
            join(options, hosts, "/join-warm-up", folder, False)
            for number in range(options.repeats):
                raw_s = least(options, hosts)
                took_s, _, used = join(options, hosts, "/join-%d" % number, folder, False, servers)
                lines.append({"peer": "divvy, processes", "members": options.members, "items": options.items,
                              "join_beyond_boundary_s": round(took_s, 4), "raw_least_s": round(raw_s, 4),
                              "ratio": round(took_s / raw_s, 2), "members_processor_ms": round(used[0], 1),
                              "server_processor_ms": round(used[1], 1)})
            return lines, join(options, hosts, "/join-traced", folder, True)[:2]
    finally:
        subprocess.run([os.path.join(HERE, "..", "tools", "zookeeper-local"), "stop",
                        server["ZOOKEEPER_LOCAL_DIR"].strip("'")], check=True)


# ---- what comes of it ----


def rows(name, points):
    yield "$%s << END" % name
    yield from (" ".join("%.6g" % value for value in point) for point in points)
    yield "END"


def commands(options, panels):
    """A lane for each member; a bar for each request."""
    yield "set multiplot layout 2,1\nset tmargin 3\nset rmargin 40\nset lmargin 12"
    yield "set key at graph 1.02, graph 1 left top Left reverse noenhanced samplen 1"
    newcomer = options.members
    names = ", ".join(["'newcomer' %d" % newcomer] + ["'member %d' %d" % (m, m) for m in range(newcomer)])
    yield "set ytics (%s)\nset yrange [-0.6:%g]\nset grid ytics" % (names, newcomer + 0.6)
    for p, (title, unit, steps, end, scale) in enumerate(panels):
        yield "set title '%s' left noenhanced\nset xlabel '%s'\nset xrange [0:%g]" % (title, unit, end * scale * 1.03)
        yield "unset arrow\nset arrow from %g, graph 0 to %g, graph 1 nohead linecolor rgb '#444444' dashtype 2" % (
            end * scale, end * scale)
        plots = []
        for number, (requests, (label, colour)) in enumerate(zip(steps, STEPS)):
            points = [(r.begin * scale, r.who + GAP * (number - 4) / 2, (r.end - r.begin) * scale) for r in requests]
            name = "P%dS%d" % (p, number)
            yield from rows(name, points or [(-9, 0, 0)])
            plots.append("$%s using 1:2:3:(0) with vectors nohead linewidth 5 linecolor rgb '%s' %s" % (
                name, colour, "title '%s'" % label if p == 0 else "notitle"))
        yield "plot " + ", ".join(plots)


def print_steps(simulated, real):
    print("%-36s %18s %22s" % ("step", "round trips", "real, ms"))
    for (label, _), a, b in zip(STEPS, simulated, real):
        cells = ["%5.1f to %5.1f" % (min(r.begin for r in s) * scale, max(r.end for r in s) * scale) if s else ""
                 for s, scale in ((a, 500), (b, 1000))]
        print("%-36s %18s %22s" % (label, *cells))


def main():
    options = parse()
    chain, chain_end = simulate(options)
    lines, (traced_s, requests) = measure(options)
    simulated, real = (by_step(r, options.members) for r in (chain, requests))
    print_steps(simulated, real)
    print("in all %.1f round trips in the in-memory ensemble; traced %.1f ms" % (chain_end * 500, traced_s * 1000))
    kinds = (("join_beyond_boundary_s", "ms", 1000), ("raw_least_s", "ms", 1000), ("ratio", "times", 1),
             ("members_processor_ms", "ms", 1), ("server_processor_ms", "ms", 1))
    for key, unit, scale in kinds:
        values = [line[key] * scale for line in lines]
        print("%-24s %6.1f %s (%.1f to %.1f)" % (key, statistics.median(values), unit, min(values), max(values)))
    if options.json:
        with open(options.json, "w", encoding="ascii") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)
    if options.plot:
        title = "a join of %d items among %d members" % (options.items // (options.members + 1), options.members)
        write_svg(options.plot, (WIDTH, HEIGHT), commands(options, [
            (title + ", a message takes half a round trip and computing nothing", "round trips", simulated,
             chain_end, 500),
            (title + ", on a real server", "ms", real, traced_s, 1000)]))


if __name__ == "__main__":
    main()
