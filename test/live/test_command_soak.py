#!/usr/bin/python3
"""A pool of `divvy partition --standby --replace` under faults of all kinds. SPDX-License-Identifier: Apache-2.0

Shows processes, guardians and workers that die and stop in any order; the kernel's locks judge.

usage: test_command_soak.py BUILD_FOLDER [--seconds N]     DIVVY_TEST_SEED=n replays the choice of faults

Five static members divide 20 items on three servers. Members, guardians and workers are killed and stopped, members are
told to end, rolled over to a newer process, also while the older one is stopped, and told of other items; servers are
frozen. A worker holds its item's file locked, some with a child that outlives it, so the kernel finds a second one.

Claims: no item has two workers; a member's newest process ends only when it was told to or killed, and with 0 when it
was told to; in the end each member has one process left, and each item a worker; when all are told to end, nothing of
them is left.

A machine that stands still for half a session proves nothing when two workers were found: the soak then runs again,
twice at most.
"""
import argparse
import fcntl
import heapq
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

from command_harness import Server, alive, fire, parent_of, wait_for

MEMBERS, ITEMS = 5, 20
SESSION_S = 4
STALL_S = SESSION_S / 2
REPLACES_S = 3 * SESSION_S
RUNS_MAX = 3

WORKER = r"""#!/usr/bin/python3 -SE
import fcntl, os, random, signal, socket, sys, time
folder, item = sys.argv[1:]
def say(what):
    os.write(log, b"%.3f %s %s %d %s\n" % (time.time(), item.encode(), token.encode(), os.getpid(), what))
def end(*_):
    if random.random() < 0.3 and os.fork() == 0:  # a child takes a little longer, with the lock
        time.sleep(random.random() * 0.3)
    else:
        say(b"end")
    os._exit(0)
time.sleep(random.random() * 0.2)
name = os.environ["NOTIFY_SOCKET"].replace("@", "\0", 1)
socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"READY=1", name)
token = os.fdopen(int(os.environ["DIVVY_START_FD"])).readline().strip()
if not token:
    sys.exit(0)
log = os.open(folder + "/log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
lock = os.open(folder + "/lock." + item, os.O_RDWR | os.O_CREAT)
try:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    say(b"double")
    fcntl.flock(lock, fcntl.LOCK_EX)
say(b"begin")
signal.signal(signal.SIGTERM, end)
if random.random() < 0.05:
    time.sleep(random.random() * 3)
    os.kill(os.getpid(), signal.SIGKILL)
while True:
    signal.pause()
"""


class Process:
    """One process of a member: `divvy partition`, with what it runs."""

    def __init__(self, soak, name, number):
        self.name, self.told, self.killed = "%s.%d" % (name, number), False, False
        self.errors = soak.path(self.name + ".err")
        words = [soak.divvy, "partition", "--connect", soak.server.connect, "--path", "/soak", "--identifier", name,
                 "--items-from", soak.path("items"), "--rejoin-delay", "5s", "--replace", "--standby",
                 "--session-timeout", "%ds" % SESSION_S, "--handover-timeout", "3s", "--prepare-timeout", "2s",
                 "--drain", "2s", "--time-boundary", "100ms", "--restart", "always", "--timestamps", "--events",
                 soak.path(self.name + ".events"), "--", soak.path("worker"), soak.folder, "{item}"]
        with open(self.errors, "wb") as errors:
            self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stderr=errors, start_new_session=True)
        self.pid = self.process.pid

    def ended(self):
        return self.process.poll() is not None

    def hears_hangup(self):
        """Returns whether it has come so far that it handles SIGHUP."""
        try:
            with open("/proc/%d/status" % self.pid, encoding="utf-8") as file:
                caught = [int(line.split()[1], 16) for line in file if line.startswith("SigCgt:")]
        except OSError:
            return False
        return bool(caught and caught[0] >> (signal.SIGHUP - 1) & 1)

    def was_replaced(self):
        with open(self.errors, encoding="utf-8") as file:
            return "has taken over; this one ends" in file.read()

    def below(self):
        """Returns the processes that it has: the forker, guardians, workers."""
        found, everyone = {self.pid}, sorted(int(name) for name in os.listdir("/proc") if name.isdigit())
        parents = {pid: parent_of(pid) for pid in everyone}
        while True:
            new = {pid for pid in everyone if parents[pid] in found} - found
            if not new:
                return found - {self.pid}
            found |= new


class Soak:
    def __init__(self, build, seed, seconds):
        self.random, self.seconds = random.Random(seed), seconds
        self.divvy = os.path.join(build, "tools", "divvy")
        self.server = Server("--servers", "3")
        self.folder = tempfile.mkdtemp()
        self.write("items", "".join("item-%02d\n" % number for number in range(ITEMS)))
        self.write("worker", WORKER)
        os.chmod(self.path("worker"), 0o755)
        self.members = {"m%d" % number: [] for number in range(1, MEMBERS + 1)}
        self.begun, self.counts, self.faults = 0, {}, []
        self.last_end = {name: -REPLACES_S for name in self.members}
        self.later = []  # a heap: when, number, what to do then
        self.frozen = set()  # servers
        self.over, self.stall_s = threading.Event(), 0.0

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path("new"), "w", encoding="utf-8") as file:
            file.write(text)
        os.rename(self.path("new"), self.path(name))

    def items(self):
        with open(self.path("items"), encoding="utf-8") as file:
            return file.read().split()

    def log(self, what):
        """The lines of workers that say this."""
        if not os.path.exists(self.path("log")):
            return []
        with open(self.path("log"), encoding="utf-8") as file:
            return [line for line in file if line.split()[-1] == what]

    def is_owned(self, item):
        """Returns whether a worker has the item's file locked."""
        lock = os.open(self.path("lock." + item), os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return False
        except BlockingIOError:
            return True
        finally:
            os.close(lock)

    def watch_stalls(self):
        while not self.over.wait(0):
            before = time.monotonic()
            time.sleep(0.05)
            self.stall_s = max(self.stall_s, time.monotonic() - before - 0.05)

    # ---- members ----

    def begin(self, name):
        self.begun += 1
        self.members[name].append(Process(self, name, self.begun))

    def look(self):
        """Forgets the processes that have ended, and begins one for a member that has none left."""
        for name, processes in self.members.items():
            for process in [process for process in processes if process.ended()]:
                status, now = process.process.returncode, time.monotonic()
                # The one that joined last replaces the others, in whichever order they began. It counts as long as its
                # session, also when it was killed.
                other = len(processes) > 1 or now - self.last_end[name] < REPLACES_S
                processes.remove(process)
                self.last_end[name] = now
                expected = process.told or (other and process.was_replaced())
                if not process.killed and (status != 0 or not expected):
                    self.faults.append("%s ended with %d%s, see %s" % (
                        process.name, status, "" if expected else ", untold", process.errors))
            if not processes:
                self.begin(name)

    def after(self, seconds, action):
        heapq.heappush(self.later, (time.monotonic() + seconds, len(self.later), self.random.random(), action))

    def act_late(self, until):
        """Does what is due until then, and looks after the members."""
        while time.monotonic() < until:
            self.look()
            while self.later and self.later[0][0] <= time.monotonic():
                heapq.heappop(self.later)[-1]()
            time.sleep(0.02)

    # ---- faults ----

    def some(self):
        processes = self.random.choice(list(self.members.values()))
        return self.random.choice(processes) if processes else None

    def kill(self, process):
        process.killed = True
        fire(signal.SIGKILL, process.pid)

    def kill_part(self, process):
        below = sorted(process.below())[1:]  # without the forker
        if below:
            fire(signal.SIGKILL, self.random.choice(below))

    def stop(self, process):
        fire(signal.SIGSTOP, process.pid)
        self.after(self.random.uniform(0.2, 9), lambda: fire(signal.SIGCONT, process.pid))

    def stop_part(self, process):
        below = sorted(process.below())[1:]
        if below:
            pid = self.random.choice(below)
            fire(signal.SIGSTOP, pid)
            self.after(self.random.uniform(0.1, 1), lambda: fire(signal.SIGCONT, pid))

    def term(self, process):
        """Tells it to end, once: told again, it would wait for nothing, and end by the signal."""
        if not process.told:
            process.told = True
            fire(signal.SIGTERM, process.pid)

    def roll_over(self, process):
        self.begin(process.name.split(".")[0])

    def roll_over_stopped(self, process):
        """The new process comes while the old one stands still, for longer than its session."""
        fire(signal.SIGSTOP, process.pid)
        self.after(self.random.uniform(0, 3), lambda: self.roll_over(process))
        self.after(self.random.uniform(1, 9), lambda: fire(signal.SIGCONT, process.pid))

    def hang_up(self, process):
        """Gives the pool another list of items, by one of its members."""
        number = self.random.randrange(ITEMS)
        items = set(self.items()) ^ {"item-%02d" % number} or {"item-00"}
        self.write("items", "".join(item + "\n" for item in sorted(items)))
        if process.hears_hangup():
            fire(signal.SIGHUP, process.pid)

    def freeze(self, _):
        servers = self.random.choice((["1"], ["2"], ["3"], ["1", "2", "3"]))
        if self.frozen:
            return
        self.frozen.update(servers)
        self.server.do("pause", *servers)
        self.after(self.random.uniform(0.2, 6), lambda: self.thaw(servers))

    def thaw(self, servers):
        self.server.do("resume", *servers)
        self.frozen.difference_update(servers)

    # ---- the soak ----

    def run(self):
        kinds = [self.kill, self.kill_part, self.stop, self.stop_part, self.term, self.roll_over,
                 self.roll_over_stopped, self.hang_up, self.freeze]
        watcher = threading.Thread(target=self.watch_stalls)
        watcher.start()
        try:
            self.look()
            wait_for(lambda: all(map(self.is_owned, self.items())), "each item has a worker at first")
            until = time.monotonic() + self.seconds
            while time.monotonic() < until and not self.log("double"):
                self.act_late(time.monotonic() + self.random.choice((0.1, 0.5, 1, 3)))
                kind, process = self.random.choice(kinds), self.some()
                if process and len(self.members[process.name.split(".")[0]]) < 4:
                    self.counts[kind.__name__] = self.counts.get(kind.__name__, 0) + 1
                    kind(process)
            self.act_late(time.monotonic() + 10)
            self.settle()
        finally:
            self.over.set()
            watcher.join()
            self.clear_up()

    def settle(self):
        """Checks that the pool comes to rest: a process for each member, a worker for each item; and that it ends."""
        for processes in self.members.values():  # all read the newest items
            if processes[-1].hears_hangup():
                fire(signal.SIGHUP, processes[-1].pid)
        wait_for(lambda: self.look() or all(len(processes) == 1 for processes in self.members.values()),
                 "each member has one process", self)
        wait_for(lambda: self.look() or all(map(self.is_owned, self.items())), "each item has a worker", self)
        everyone = [processes[0] for processes in self.members.values()]
        left = set().union(*(process.below() for process in everyone))
        for process in everyone:
            self.term(process)
        wait_for(lambda: all(process.ended() for process in everyone), "all have ended", self)
        self.faults += ["%s: status %d at the end" % (process.name, process.process.returncode)
                        for process in everyone if process.process.returncode != 0]
        wait_for(lambda: not any(map(alive, left)), "what ran below them has ended", left)

    def clear_up(self):
        for processes in self.members.values():
            for process in processes:
                fire(signal.SIGKILL, process.pid)
                process.process.wait()
        self.server.do("stop")

    def __str__(self):
        said = ["%s: %s" % (name, [process.pid for process in processes]) for name, processes in self.members.items()]
        said += ["without a worker: %s" % [item for item in self.items() if not self.is_owned(item)]]
        return "\n".join(said + ["kept: " + self.folder])


def soak(build, seed, seconds):
    """Returns whether the run is to be believed."""
    run = Soak(build, seed, seconds)
    try:
        run.run()
    finally:
        double = run.log("double")
        print("seed %d: %d s, %d processes, %d workers, faults %s (%d); two workers %d times; stalls up to %.1f s" % (
            seed, seconds, run.begun, len(run.log("begin")), run.counts, sum(run.counts.values()), len(double),
            run.stall_s), flush=True)
        if double or run.faults:
            print("kept: %s\n%s" % (run.folder, "".join(double) + "\n".join(run.faults)), flush=True)
    if double and run.stall_s > STALL_S:
        return False
    assert not double and not run.faults, "see above; again: DIVVY_TEST_SEED=%d" % seed
    shutil.rmtree(run.folder)
    return True


def main():
    parser = argparse.ArgumentParser(usage="test_command_soak.py BUILD_FOLDER [--seconds N]")
    parser.add_argument("build")
    parser.add_argument("--seconds", type=int, default=20)
    options = parser.parse_args()
    seed = int(os.environ.get("DIVVY_TEST_SEED") or os.environ.get("DIVVY_FRESH_SEED") or time.time())
    for _ in range(RUNS_MAX):
        if soak(os.path.abspath(options.build), seed, options.seconds):
            return
    sys.exit("the machine stood still in each of %d runs" % RUNS_MAX)


if __name__ == "__main__":
    main()
