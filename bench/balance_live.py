#!/usr/bin/python3
"""A pool of commands that need very different amounts of processor time evens out.  SPDX-License-Identifier: Apache-2.0

usage: balance_live.py [--members M] [--items K] [--top SHARE] [--minutes T] [--build DIR] [--json FILE] [--plot FILE]

Starts a private ZooKeeper and M (8) processes of `divvy partition --balance cpu`. They divide K (48) items, each with a
worker that uses a fixed part of a core: the first one SHARE (0.09), the others less and less, by a Zipf law of 0.65.
The pool begins by count. For T (14) minutes the script reads the processor time of each worker from /proc, and not from
divvy. It prints the fullest and the emptiest member, by the fair share, at the beginning and at the end, with the moves
in between; writes what it has read to FILE; and draws the load of each member over time.
"""
import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from plot import write_shares

HERE = os.path.dirname(os.path.abspath(__file__))
ZOOKEEPER_LOCAL = os.path.join(HERE, "..", "tools", "zookeeper-local")
ZIPF, SAMPLE_S, WINDOW_S = 0.65, 5, 30
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
MARK = "balance-live-worker"

# Uses $1 of a core, by its own clock of processor time: where the machine is busy, it catches up later.
WORKER = """
import sys, time
share, begun = float(sys.argv[1]), time.monotonic()
spent = time.process_time() # to get here
while True:
    while time.process_time() - spent < share * (time.monotonic() - begun):
        pass
    time.sleep(0.2)
"""


def parse():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1][len("usage: "):], add_help=True)
    parser.add_argument("--members", type=int, default=8)
    parser.add_argument("--items", type=int, default=48)
    parser.add_argument("--top", type=float, default=0.09)
    parser.add_argument("--minutes", type=float, default=14)
    parser.add_argument("--build", default=os.path.join(HERE, "..", "build"))
    parser.add_argument("--json")
    parser.add_argument("--plot")
    return parser.parse_args()


def start_server():
    start = [ZOOKEEPER_LOCAL, "start", "--parent", str(os.getpid())]
    lines = subprocess.run(start, check=True, text=True, stdout=subprocess.PIPE).stdout.splitlines()
    return dict(line.split("=", 1) for line in (line.removeprefix("export ").split(" ")[0] for line in lines)
                if "=" in line)


def read_ticks():
    """The ticks that each worker has used: {(pid, its start): (member, item, ticks)}."""
    found = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/cmdline" % name, "rb") as file:
                words = file.read().decode(errors="replace").split("\0")
            if MARK not in words:
                continue
            with open("/proc/%s/stat" % name, encoding="utf-8", errors="replace") as file:
                fields = file.read().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        at = words.index(MARK)
        found[int(name), int(fields[19])] = (words[at + 1], words[at + 2], int(fields[11]) + int(fields[12]))
    return found


class Readings:
    """The processor time of members, in cores, over windows of WINDOW_S."""

    def __init__(self, members):
        self.members, self.begun_s, self.looks = members, time.monotonic(), []
        self.used = dict.fromkeys(members, 0.0) # seconds, since the beginning
        self.before = {}

    def look(self):
        now = read_ticks()
        for key, (member, _, ticks) in now.items():
            if member in self.used:
                self.used[member] += (ticks - self.before.get(key, (0, 0, 0))[2]) / TICKS_PER_S
        self.before = now
        self.looks.append((time.monotonic() - self.begun_s, dict(self.used)))

    def owners(self):
        return {item: member for member, item, _ in self.before.values()}

    def cores(self, at):
        """The cores of each member in the window that ends with look `at`."""
        ends_s, used = self.looks[at]
        from_s, before = next(look for look in self.looks if look[0] >= ends_s - WINDOW_S - SAMPLE_S / 2)
        if ends_s - from_s < WINDOW_S / 2:
            return None
        return {name: (used[name] - before[name]) / (ends_s - from_s) for name in self.members}

    def lines(self):
        """By member: how much of the fair share it had, over time in minutes."""
        lines = {name: [] for name in self.members}
        for at, (ends_s, _) in enumerate(self.looks):
            cores = self.cores(at)
            if not cores:
                continue
            fair = sum(cores.values()) / len(cores)
            for name in self.members:
                lines[name].append(((ends_s - WINDOW_S / 2) / 60, cores[name] / fair))
        return lines


def shares(items, top):
    return {"q%02d" % n: top / (n + 1) ** ZIPF for n in range(items)}


def run_pool(arguments, folder):
    values = start_server()
    environment = {**os.environ, "DIVVY_ENSEMBLE_TICK_MS": values["DIVVY_ENSEMBLE_TICK_MS"]}
    items, names = shares(arguments.items, arguments.top), ["m%d" % n for n in range(1, arguments.members + 1)]
    with open(os.path.join(folder, "worker.py"), "w", encoding="utf-8") as file:
        file.write(WORKER)
    with open(os.path.join(folder, "run.sh"), "w", encoding="utf-8") as file:
        file.write("case $DIVVY_ITEM in\n%sesac\nexec %s %s/worker.py $share %s \"$1\" \"$DIVVY_ITEM\"\n" % (
            "".join("%s) share=%.6f ;;\n" % pair for pair in items.items()), sys.executable, folder, MARK))
    words = [os.path.join(arguments.build, "tools", "divvy"), "partition", "--connect", values["DIVVY_CONNECT"],
             "--path", "/balance", "--balance", "cpu", "--load-interval", "1s", "--load-floor", "0.01", "--min-members",
             str(arguments.members)]
    words += [word for item in items for word in ("--item", item)]
    with open(os.path.join(folder, "log"), "w", encoding="utf-8") as log:
        processes = [subprocess.Popen([*words, "--identifier", name, "--", "sh", os.path.join(folder, "run.sh"), name],
                                      stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)
                     for name in names]
    try:
        readings = Readings(names)
        wait_for_all(readings, len(items))
        return watch(readings, arguments.minutes * 60)
    finally:
        for process in processes:
            process.send_signal(signal.SIGTERM)
        for process in processes:
            process.wait()
        subprocess.run([ZOOKEEPER_LOCAL, "stop", values["ZOOKEEPER_LOCAL_DIR"]], check=True, stdout=subprocess.DEVNULL)


def wait_for_all(readings, count):
    deadline_s = time.monotonic() + 120
    while len(read_ticks()) < count:
        if time.monotonic() > deadline_s:
            raise SystemExit("not all workers run after 120 s")
        time.sleep(0.1)
    readings.begun_s = time.monotonic()
    readings.before = read_ticks()


def watch(readings, seconds):
    """Reads until the time is over. Returns the readings and the moves: (minute, item, from, to)."""
    moves, owners = [], readings.owners()
    while readings.begun_s + seconds > time.monotonic():
        readings.look()
        now = readings.owners()
        for item, member in now.items():
            if owners.get(item, member) != member:
                moves.append((readings.looks[-1][0] / 60, item, owners[item], member))
        owners.update(now)
        time.sleep(SAMPLE_S)
    return readings, moves


def main():
    arguments = parse()
    folder = tempfile.mkdtemp()
    try:
        readings, moves = run_pool(arguments, folder)
    finally:
        shutil.rmtree(folder)
    lines = readings.lines()
    # The beginning: the minute before the first move. The end: the last two minutes.
    first = moves[0][0] if moves else arguments.minutes
    last = max(x for x, _ in lines[readings.members[0]])
    for label, begins, ends in (("before", max(first - 1.5, 0), first - 0.5), ("after", last - 2, last)):
        means = {}
        for name in readings.members:
            values = [y for x, y in lines[name] if begins <= x <= ends]
            means[name] = sum(values) / max(len(values), 1)
        print("%-7s fullest %.2f of the fair share, emptiest %.2f" % (label, max(means.values()), min(means.values())))
    print("%d moves of %d items, the first after %.1f min, the last after %.1f min" % (
        len(moves), len({move[1] for move in moves}), first, moves[-1][0] if moves else 0))
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump({"lines": lines, "moves": moves}, file)
    if arguments.plot:
        write_shares(arguments.plot, lines, sorted({round(move[0], 1) for move in moves}))


if __name__ == "__main__":
    main()
