#!/usr/bin/python3
"""From Python: a join, and pairs of locks, of divvy beside kazoo, in one run. SPDX-License-Identifier: Apache-2.0

usage: python.py [--rounds N] [--items N] [--members N] [--processes] [--seconds S] [--build DIR]

Starts a private ZooKeeper. In each round a lock and a semaphore that nobody else wants are acquired and released, in
slices of 100 ms that take turns; then members divide the items, and one more joins. Members are threads of one process,
or with --processes a process each. The peers are kazoo; divvy.kazoo, which is kazoo's loop with another import line;
and divvy's own API. Ratios are taken within a round; what is printed is the median. README.md beside this has an
example. With 10,000 items a round takes a minute.

Exit status: 0 done, whatever the figures; 1 a run failed; 2 wrong usage, or something is missing.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

from locks import RECIPES, SLICE_MS, WARM_UP_MS, Peer, in_turn, pairs_per_s

ROOT = pathlib.Path(__file__).resolve().parents[1]
BENCH = ROOT / "bench"
NAMES = ("kazoo", "divvy.kazoo", "divvy")
BOUNDARY_MS = 500
WANTED = {("join", "divvy"): 30, ("lock", "divvy"): 2}  # times faster than kazoo


def prepare(build):
    """Builds the package in its place, and starts the server. Returns the lines that the server's start prints."""
    environment = {**os.environ, "DIVVY_BUILD_DIR": str(build)}
    subprocess.run(["cmake", "--build", build, "--target", "divvy", "--target", "bench_raw_limit"], check=True,
                   stdout=sys.stderr)
    subprocess.run([sys.executable, "setup.py", "-q", "build_ext", "--inplace"], cwd=ROOT / "python", env=environment,
                   check=True, stdout=sys.stderr, stderr=subprocess.DEVNULL)
    started = subprocess.run([BENCH / "start-server", build, str(os.getpid())], check=True, stdout=subprocess.PIPE,
                             text=True)
    return dict(line.split("=", 1) for line in started.stdout.split())


def partition(name, hosts, arguments):
    """Returns the seconds of a first allocation and of a join, beyond the boundary."""
    on = [] if name == "kazoo" else ["--on", name]
    processes = ["--processes"] if arguments.processes else []
    command = [sys.executable, "-B", BENCH / "peers" / "kazoo_partition.py", *processes, *on, hosts,
               *map(str, (arguments.members, arguments.items, BOUNDARY_MS))]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    line = json.loads(done.stdout.splitlines()[-1])
    return {"first": line["first_beyond_boundary_s"], "join": line["join_beyond_boundary_s"]}


def start_peers(hosts):
    python = f"{sys.executable} -B {BENCH}"
    commands = {"kazoo": f"{python}/locks_kazoo.py {hosts}",
                "divvy.kazoo": f"{python}/locks_kazoo.py {hosts} divvy.kazoo",
                "divvy": f"{python}/peers/divvy_locks.py {hosts}"}
    peers = [Peer(name, commands[name]) for name in NAMES]
    for recipe in RECIPES:
        for peer in in_turn(peers, 4):
            peer.ask("pairs", recipe, WARM_UP_MS)
    return peers


def measure(hosts, arguments):
    """A dictionary for each round: what to {name: value}."""
    peers = start_peers(hosts)
    runs = []
    for number in range(arguments.rounds):
        print(f"bench/python: round {number + 1} of {arguments.rounds}", file=sys.stderr)
        slices = max(1, round(arguments.seconds * 1000 / SLICE_MS))
        run = {recipe: pairs_per_s(peers, recipe, slices) for recipe in RECIPES}
        shares = {name: partition(name, hosts, arguments) for name in NAMES[number % 3:] + NAMES[:number % 3]}
        for what in ("first", "join"):
            run[what] = {name: shares[name][what] for name in NAMES}
        runs.append(run)
    for peer in peers:
        peer.end()
    return runs


def ratio(run, what, name):
    """How many times faster than kazoo."""
    mine, kazoo = run[what][name], run[what]["kazoo"]
    return mine / kazoo if what in RECIPES else kazoo / mine


def show(runs, arguments):
    kind = "processes" if arguments.processes else "threads"
    print(f"\n{arguments.members} members ({kind}), {arguments.items:,} items; medians of {len(runs)} rounds\n")
    heads = [f"{name} / kazoo" for name in NAMES[1:]]
    print("%-36s" % "" + "".join("%13s" % name for name in NAMES) + "".join("%21s" % head for head in heads))
    rows = (("first", "first allocation, s", "%13.3f"), ("join", "join, s", "%13.3f"),
            ("lock", "lock, pairs a second", "%13.0f"), ("semaphore", "semaphore, pairs a second", "%13.0f"))
    for what, words, form in rows:
        values = [statistics.median(run[what][name] for run in runs) for name in NAMES]
        times = [statistics.median(ratio(run, what, name) for run in runs) for name in NAMES[1:]]
        print("%-36s" % words + "".join(form % value for value in values) + "".join("%20.1fx" % time for time in times))
    print()
    for (what, name), wanted in WANTED.items():
        found = [ratio(run, what, name) for run in runs]
        middle = statistics.median(found)
        print("%-36s>= %-6g%9.1f   %-7s(%s)" % (f"{what}, {name} / kazoo", wanted, middle,
                                                "met" if middle >= wanted else "MISSED",
                                                " ".join("%.1f" % value for value in found)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--items", type=int, default=10000)
    parser.add_argument("--members", type=int, default=4)
    parser.add_argument("--processes", action="store_true")
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    arguments = parser.parse_args()
    if not (arguments.build / "CMakeCache.txt").exists():
        sys.exit(f"bench/python: {arguments.build} is no build folder: cmake --preset default")
    lines = prepare(arguments.build.resolve())
    os.environ.update(DIVVY_ENSEMBLE_TICK_MS=lines["DIVVY_ENSEMBLE_TICK_MS"], PYTHONPATH=str(ROOT / "python" / "src"))
    try:
        show(measure(lines["DIVVY_CONNECT"], arguments), arguments)
    finally:
        subprocess.run([ROOT / "tools" / "zookeeper-local", "stop", lines["ZOOKEEPER_LOCAL_DIR"]], check=True)


if __name__ == "__main__":
    main()
