#!/usr/bin/python3
"""How long nobody works after kill -9: divvy with and without its death watch, kazoo, Curator.
SPDX-License-Identifier: Apache-2.0

usage: death_watch.py [--kills N] [--peer-kills N] [--pool-kills N] [--peer-pool-kills N] [--pairs N] [--pools N]
                      [--items K] [--members M] [--boundary MS] [--session MS] [--rest S] [--build DIR] [--json FILE]
                      [--without-curator] [--seed N] [PART...]

PART is lock, election, pool or rest; all of them by default. One private ZooKeeper serves all. README.md beside this
file says what is measured. Prints a table and the targets; writes a JSON line for each row to FILE.
"""
import argparse
import json
import math
import os
import queue
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from kazoo.client import KazooClient

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
PYTHON = os.environ.get("PYTHON", "/usr/bin/python3")
CURATOR = os.environ.get("CURATOR", "/usr/share/java/curator-recipes.jar")
PARTS = ("lock", "election", "pool", "rest")
WATCHED, DEADLINE_S, CALM_S, WATCH_SET_S = "divvy", 120, 0.5, 0.2
LABELS = {"kazoo": {"lock": "kazoo Lock", "election": "kazoo Election", "pool": "kazoo SetPartitioner"},
          "curator": {"lock": "Curator InterProcessMutex", "election": "Curator LeaderLatch"},
          "without": {"lock": "divvy lock --no-death-watch", "election": "divvy elect --no-death-watch",
                      "pool": "divvy's library without"},
          WATCHED: {"lock": "divvy lock", "election": "divvy elect", "pool": "divvy's library, death_watch = 1"}}
P99_S_MAX = {"lock": 0.15, "election": 0.15, "pool": 0.5}
RATIO_MIN = 50
WATCHED_PAIRS, WATCHED_POOLS = 4, 2  # at once; few, as their times are so short that they would disturb each other


def parse():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1][len("usage: "):], add_help=True)
    for name, default in (("kills", 200), ("peer-kills", 32), ("pool-kills", 200), ("peer-pool-kills", 30),
                          ("pairs", 16), ("pools", 6), ("items", 1000), ("members", 5), ("boundary", 500),
                          ("session", 10000), ("rest", 10), ("seed", int(time.time()))):
        parser.add_argument("--" + name, type=int, default=default)
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--json")
    parser.add_argument("--without-curator", action="store_true")
    parser.add_argument("parts", nargs="*", metavar="PART")
    arguments = parser.parse_args()
    if set(arguments.parts) - set(PARTS):
        parser.error("a PART is one of " + ", ".join(PARTS))
    arguments.parts = arguments.parts or list(PARTS)
    arguments.build = os.path.abspath(arguments.build)
    return arguments


def wait_for(condition, what):
    until = time.monotonic() + DEADLINE_S
    while not condition():
        if time.monotonic() > until:
            raise RuntimeError("%s: not within %d s" % (what, DEADLINE_S))
        time.sleep(0.002)


class Process:
    """A process whose lines, the monotonic clock and words, go to a function."""

    made = []

    def __init__(self, words, take):
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)
        Process.made.append(self)
        self.killed, self.acquired, self.owns_at, self.take = False, False, None, take
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        for line in self.process.stdout:
            at, *said = line.split()
            self.take(self, float(at), *said)

    def kill(self):
        """Kills it. Returns the time before that."""
        assert self.process.poll() is None, self.process.args
        self.killed = True
        began = time.monotonic()
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        return began

    @classmethod
    def end_all(cls):
        for one in cls.made:
            if one.process.poll() is None:
                one.process.terminate()
        for one in cls.made:
            try:
                one.process.wait(5)
            except subprocess.TimeoutExpired:
                one.process.kill()
                one.process.wait()
        cls.made = []


class Bench:
    """A server, a client that looks at it, and what is run."""

    def __init__(self, options):
        self.options = options
        self.folder = tempfile.mkdtemp()
        self.server = self.zookeeper = None

    def start(self):
        lines = subprocess.run([os.path.join(HERE, "start-server"), self.options.build, str(os.getpid())], check=True,
                               stdout=subprocess.PIPE, text=True).stdout
        self.server = dict(line.split("=", 1) for line in lines.split())
        os.environ["DIVVY_ENSEMBLE_TICK_MS"] = self.server["DIVVY_ENSEMBLE_TICK_MS"]
        os.environ["DIVVY_LIBEXEC"] = self.built("tools")
        self.hosts = self.server["DIVVY_CONNECT"]
        self.zookeeper = KazooClient(self.hosts)
        self.zookeeper.start()
        if not self.options.without_curator:
            subprocess.run(["javac", "-cp", CURATOR, "-d", self.folder, os.path.join(HERE, "death_watch_curator.java")],
                           check=True)

    def stop(self):
        Process.end_all()
        if self.zookeeper:
            self.zookeeper.stop()
            self.zookeeper.close()
        if self.server:
            subprocess.run([os.path.join(ROOT, "tools", "zookeeper-local"), "stop",
                            self.server["ZOOKEEPER_LOCAL_DIR"]], check=False)
        subprocess.run(["rm", "-r", self.folder], check=False)

    def built(self, *names):
        return os.path.join(self.options.build, *names)

    def contender(self, peer, recipe, name):
        """Returns the words of a process that owns the thing `name` some day, and the znode of the queue."""
        path, session = "/%s-%s" % (recipe, name), str(self.options.session)
        if peer == "kazoo":
            return [PYTHON, "-B", os.path.join(HERE, "death_watch_kazoo.py"), self.hosts, recipe, path, session], path
        if peer == "curator":
            classes = ":".join([self.folder, CURATOR, os.path.join(os.path.dirname(CURATOR), "slf4j-nop.jar")])
            return ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx64m", "-cp", classes,
                    "DeathWatchCurator", self.hosts, recipe, path, session], path
        words = [self.built("tools", "divvy"), "elect" if recipe == "election" else "lock", "--connect", self.hosts,
                 "--session-timeout", "%dms" % self.options.session, "--root", "/" + recipe]
        words += ["--no-death-watch"] if peer == "without" else []
        return words + [name, self.built("bench", "bench_started")], "/%s/locks/%s" % (recipe, name)

    def member(self, peer, path, identifier):
        o = self.options
        what = [self.hosts, path, identifier, str(o.items), str(o.boundary), str(o.session)]
        if peer == "kazoo":
            return [PYTHON, "-B", os.path.join(HERE, "peers", "kazoo_member.py")] + what
        kind = "watched" if peer == WATCHED else "mortal"
        return [self.built("bench", "bench_timeline_member")] + what + ["0", kind]


def pause_before_kill(bench, peer, draw):
    """A session's end depends on how old its last heartbeat is: a third of the timeout at most."""
    time.sleep(WATCH_SET_S + draw.uniform(0, 0.2 if peer == WATCHED else bench.options.session / 3000))


class Pair:
    """Two contenders for one thing. The owner is killed, the next one owns, and another one comes."""

    def __init__(self, bench, peer, recipe, number, seed):
        self.bench, self.peer, self.recipe = bench, peer, recipe
        self.name = "%s-%d" % (peer, number)
        self.draw = random.Random(seed)
        self.queue = bench.contender(peer, recipe, self.name)[1]

    def start(self):
        return Process(self.bench.contender(self.peer, self.recipe, self.name)[0], self.take)

    @staticmethod
    def take(process, at, _):
        process.owns_at = process.owns_at or at

    def wait_queued(self):
        zookeeper = self.bench.zookeeper
        wait_for(lambda: zookeeper.exists(self.queue) and len(zookeeper.get_children(self.queue)) == 2,
                 "two at " + self.queue)

    def run(self, kills):
        owner = self.start()
        wait_for(lambda: owner.owns_at, "an owner of " + self.name)
        for _ in range(kills):
            following = self.start()
            self.wait_queued()
            pause_before_kill(self.bench, self.peer, self.draw)
            assert not following.owns_at, "two owners"
            began = owner.kill()
            wait_for(lambda: following.owns_at, "the next owner of " + self.name)  # pylint: disable=cell-var-from-loop
            owner = following
            yield owner.owns_at - began
        owner.process.terminate()


class Pool:
    """Members that divide the items. One is killed, the others have its items, and another one comes."""

    def __init__(self, bench, peer, recipe, number, seed):
        assert recipe == "pool"
        self.bench, self.peer = bench, peer
        self.name = "%s-%d" % (peer, number)
        self.draw = random.Random(seed)
        self.begun, self.said_at = 0, 0
        self.members, self.owners = [], {}  # owners: item: (member, since when)
        self.mutex = threading.Lock()

    def start(self):
        self.begun += 1
        words = self.bench.member(self.peer, "/pool-" + self.name, "m%04d" % self.begun)
        with self.mutex:
            self.members.append(Process(words, self.take))

    def take(self, member, at, what, *items):
        with self.mutex:
            self.said_at = time.monotonic()
            for item in items:
                if what == "+":
                    self.owners[item] = (member, at)
                elif what == "-" and self.owners.get(item, (None,))[0] is member:
                    del self.owners[item]
            if not items:
                member.acquired = what == "acquired"

    def is_settled(self):
        with self.mutex:
            return (time.monotonic() - self.said_at > CALM_S and all(one.acquired for one in self.members) and
                    sum(not one.killed for one, _ in self.owners.values()) == self.bench.options.items)

    def moved_at(self, items):
        """Returns when the last of the items had another owner than a dead one; None: it has none yet."""
        with self.mutex:
            owned = [self.owners.get(item) for item in items]
        if all(one and not one[0].killed for one in owned):
            return max(at for _, at in owned)
        return None

    def run(self, kills):
        for _ in range(self.bench.options.members):
            self.start()
        for kill in range(kills):
            wait_for(self.is_settled, "owners of all items of " + self.name)
            pause_before_kill(self.bench, self.peer, self.draw)
            victim = self.draw.choice(self.members)
            self.members.remove(victim)
            began = victim.kill()
            time.sleep(0.01)  # in which its last lines are read
            with self.mutex:
                items = [item for item, (owner, _) in self.owners.items() if owner is victim]
            assert items, "a member without items"
            wait_for(lambda: self.moved_at(items) is not None,  # pylint: disable=cell-var-from-loop
                     "owners of a dead member's items in " + self.name)
            yield self.moved_at(items) - began - self.bench.options.boundary / 1000
            if kill + 1 < kills:
                self.start()
        for member in self.members:
            member.process.terminate()


def measure(bench, peer, recipe, kills, workers):
    """Kills in several pairs or pools at once. Returns the times in seconds."""
    times, outcome = [], queue.Queue()

    def run(number):
        try:
            mine = kills // workers + (number < kills % workers)
            kind = Pool if recipe == "pool" else Pair
            if mine:
                times.extend(kind(bench, peer, recipe, number, "%s %s %d %d" % (
                    peer, recipe, number, bench.options.seed)).run(mine))
            outcome.put(None)
        except Exception as error:  # pylint: disable=broad-exception-caught
            outcome.put("%s %s: %r" % (peer, recipe, error))

    for number in range(workers):
        threading.Thread(target=run, args=(number,), daemon=True).start()
    for _ in range(workers):
        failed = outcome.get()
        if failed:
            sys.exit("bench/death_watch: " + failed)
    Process.end_all()
    return times


def percentile(times, percent):
    return sorted(times)[min(len(times) - 1, math.ceil(len(times) * percent / 100) - 1)]


def measure_recipe(bench, recipe):
    o, rows = bench.options, []
    peers = ["kazoo"] + (["curator"] if recipe != "pool" and not o.without_curator else []) + ["without", WATCHED]
    for peer in peers:
        if recipe == "pool":
            kills, workers = (o.pool_kills, WATCHED_POOLS) if peer == WATCHED else (o.peer_pool_kills, o.pools)
        else:
            kills, workers = (o.kills, WATCHED_PAIRS) if peer == WATCHED else (o.peer_kills, o.pairs)
        times = measure(bench, peer, recipe, kills, workers)
        rows.append({"recipe": recipe, "peer": peer, "label": LABELS[peer][recipe], "kills": len(times),
                     "median_s": statistics.median(times), "p99_s": percentile(times, 99), "max_s": max(times),
                     "times_s": [round(one, 4) for one in times]})
    watched = rows[-1]
    for row in rows:
        row["ratio"] = row["median_s"] / watched["median_s"]
        print("%-34s %6d %10.3f %12.3f %10.3f %9.0f" % (row["label"], row["kills"], row["median_s"], row["p99_s"],
                                                      row["max_s"], row["ratio"]), flush=True)
    return rows


# ---- at rest ----


def watchers_of(pid):
    """Returns the processes that hold a pidfd of the process."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        folder = "/proc/%s/fdinfo" % name
        try:
            infos = [open(os.path.join(folder, fd), encoding="ascii").read() for fd in os.listdir(folder)]
        except OSError:
            continue
        if int(name) != pid and any(re.search(r"^Pid:\s*%d$" % pid, info, re.MULTILINE) for info in infos):
            found.append(int(name))
    return found


def children_of(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid), encoding="ascii") as file:
        return list(map(int, file.read().split()))


def read_cost(pid):
    """Returns resident and proportional memory in KiB, descriptors and context switches."""
    with open("/proc/%d/smaps_rollup" % pid, encoding="ascii") as file:
        memory = dict(re.findall(r"^(\w+):\s+(\d+) kB$", file.read(), re.MULTILINE))
    with open("/proc/%d/status" % pid, encoding="ascii") as file:
        switches = dict(re.findall(r"^(\w+_ctxt_switches):\s+(\d+)$", file.read(), re.MULTILINE))
    return {"rss_kib": int(memory["Rss"]), "pss_kib": int(memory["Pss"]), "dirty_kib": int(memory["Private_Dirty"]),
            "descriptors": len(os.listdir("/proc/%d/fd" % pid)),
            "switches": sum(map(int, switches.values()))}


def measure_rest(bench):
    """Looks at the processes that wait for a death, while nothing happens."""
    owners = {}
    for peer, label in (("without", "guardian of divvy lock --no-death-watch"), (WATCHED, "guardian of divvy lock")):
        pair = Pair(bench, peer, "lock", 999, 0)
        owners[label] = owner = pair.start()
        wait_for(lambda: owner.owns_at, "an owner at rest")  # pylint: disable=cell-var-from-loop
    pool = Pool(bench, WATCHED, "pool", 999, 0)
    pool.start()
    wait_for(pool.is_settled, "a pool at rest")
    member = pool.members[0].process.pid
    watched = {label: children_of(owner.process.pid)[0] for label, owner in owners.items()}
    watched.update(("divvy-death-watch, of the library", pid) for pid in watchers_of(member))
    time.sleep(1)
    before = {label: read_cost(pid) for label, pid in watched.items()}
    time.sleep(bench.options.rest)
    print("\n%-42s %8s %8s %10s %12s %14s" % ("at rest", "RSS KiB", "PSS KiB", "dirty KiB", "descriptors",
                                            "woken in %d s" % bench.options.rest))
    rows = []
    for label, pid in watched.items():
        cost = read_cost(pid)
        cost["switches"] -= before[label]["switches"]
        rows.append({"label": label, **cost})
        print("%-42s %8d %8d %10d %12d %14d" % (label, cost["rss_kib"], cost["pss_kib"], cost["dirty_kib"],
                                             cost["descriptors"], cost["switches"]), flush=True)
    Process.end_all()
    return rows


def print_targets(rows):
    print()
    for recipe in ("lock", "election", "pool"):
        those = {row["peer"]: row for row in rows if row.get("recipe") == recipe}
        if not those:
            continue
        p99 = those[WATCHED]["p99_s"]
        print("%-9s 99th percentile, s            < %-6g %8.3f   %s" % (
            recipe, P99_S_MAX[recipe], p99, "met" if p99 < P99_S_MAX[recipe] else "MISSED"))
        for peer in ("kazoo", "curator", "without"):
            if peer in those:
                ratio = those[peer]["ratio"]
                print("%-9s median, %-7s / divvy      >= %-6d %8.0f   %s" % (
                    recipe, peer, RATIO_MIN, ratio, "met" if ratio >= RATIO_MIN else "MISSED"))


def main():
    options = parse()
    targets = ["divvy_command", "bench_timeline_member", "bench_raw_limit", "bench_started",
               "divvy_death_watch"]
    if subprocess.run(["cmake", "--build", options.build, "--target", *targets], check=False,
                      stdout=sys.stderr).returncode != 0:
        sys.exit("bench/death_watch: the build in %s has failed" % options.build)
    bench, rows = Bench(options), []
    try:
        bench.start()
        print("from kill -9 to the next owner's start; sessions of %g s; pools of %d items and %d members, less their "
              "boundary of %g s; seed %d" % (options.session / 1000, options.items, options.members,
                                             options.boundary / 1000, options.seed))
        print("%-34s %6s %10s %12s %10s %9s" % ("", "kills", "median s", "99th % s", "most s", "/ divvy"))
        for recipe in [part for part in options.parts if part != "rest"]:
            rows += measure_recipe(bench, recipe)
        if "rest" in options.parts:
            rows += measure_rest(bench)
    finally:
        bench.stop()
    print_targets(rows)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)


if __name__ == "__main__":
    main()
