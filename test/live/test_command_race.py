#!/usr/bin/python3
"""60 processes race for one lock of `divvy lock`, over 360 short commands. SPDX-License-Identifier: Apache-2.0

Shows hundreds of processes at one lock, killed and restarted at any instruction.

usage: test_command_race.py BUILD_FOLDER     DIVVY_TEST_SEED=n replays the choice of victims

Each command reads a counter, sleeps, and writes it by rename: two at the same time would write the same number.
Meanwhile holders and waiters are killed with -9, and the server is killed and started again.

Claims: no number is written twice; the fencing tokens grow in the order of the numbers; each
command that exits with 0 has written its number; nothing but kills and losses keeps a command from that; in the end no
contender, no command and no guardian is left.

A machine that stands still for half a session may let a command end its write when the next one has begun: then the
race proves nothing, and is run again, twice at most. One that is too slow for all commands runs as many as it can.
"""
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time

from kazoo.client import KazooClient

from command_harness import Server, wait_for

RACERS, ROUNDS = 60, 6
HOLDER_KILLS, WAITER_KILLS, RESTARTS = 3, 10, 2
SESSION_TIMEOUT = "2s"
DEADLINE_S = 200  # no more commands are begun then
STALL_S = 1.0
RUNS_MAX = 3
ENOUGH = RACERS * ROUNDS // 4  # commands, on a slow machine
LOST = 5  # the exit code

STEP = """#!/bin/sh
echo "$RACER" >"$1/holder"
read number <"$1/counter"
sleep 0.005
number=$((number + 1))
echo "$number" >"$1/new.$$"
mv "$1/new.$$" "$1/counter"
echo "$number $DIVVY_LOCK_TOKEN $RACER" >>"$1/log"
"""


class Stalled(Exception):
    """The machine stood still for so long that what was found may be its doing."""


class Race:
    def __init__(self, build, seed):
        self.random = random.Random(seed)
        self.divvy = os.path.join(build, "tools", "divvy")
        self.server = Server()
        self.folder = tempfile.mkdtemp()
        self.write("counter", "0\n")
        self.write("step", STEP)
        os.chmod(self.path("step"), 0o755)
        self.running = {}  # by racer: the process of its present command
        self.killed = set()  # process numbers
        self.done = 0  # commands that have exited with 0
        self.lost = 0
        self.wrong = []  # exit statuses, with what was said, that are none of those that are to be expected
        self.mutex = threading.Lock()
        self.stop_at = time.monotonic() + DEADLINE_S
        self.over, self.stall_s = threading.Event(), 0.0

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)

    def read(self, name):
        try:
            with open(self.path(name), encoding="utf-8") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def race(self, racer):
        """One of the processes: as many commands as it takes to have run all rounds."""
        left = ROUNDS
        while left > 0 and time.monotonic() < self.stop_at:
            command = [self.divvy, "lock", "--connect", self.server.connect, "--session-timeout", SESSION_TIMEOUT,
                       "--connect-timeout", "1m", "race", self.path("step"), self.folder]
            process = subprocess.Popen(command, env={**os.environ, "RACER": str(racer)}, stdin=subprocess.DEVNULL,
                                       stderr=subprocess.PIPE, text=True)
            with self.mutex:
                self.running[racer] = process
            _, said = process.communicate()
            with self.mutex:
                del self.running[racer]
                if process.returncode == 0:
                    left -= 1
                    self.done += 1
                elif process.returncode == LOST:
                    self.lost += 1
                elif process.returncode != -signal.SIGKILL or process.pid not in self.killed:
                    self.wrong.append("%d: %s" % (process.returncode, said))

    def kill(self, racer):
        """Kills what the racer runs now, if anything."""
        with self.mutex:
            process = self.running.get(racer)
            if process and process.poll() is None:
                self.killed.add(process.pid)
                process.kill()

    def watch_machine(self):
        """Notes for how long we do not get to run, at most."""
        before = time.monotonic()
        while not self.over.wait(0.02):
            now = time.monotonic()
            self.stall_s = max(self.stall_s, now - before)
            before = now

    def disturb(self):
        """All kills and restarts, each when a certain part of the commands is done."""
        deeds = ["holder"] * HOLDER_KILLS + ["waiter"] * WAITER_KILLS + ["server"] * RESTARTS
        self.random.shuffle(deeds)
        for number, deed in enumerate(deeds):
            due = (number + 1) * RACERS * ROUNDS // (len(deeds) + 1)
            while self.done < due and time.monotonic() < self.stop_at:
                time.sleep(0.005)
            if deed == "holder":
                self.kill(int(self.read("holder") or 0))
            elif deed == "waiter":
                self.kill(self.random.randrange(RACERS))
            else:
                self.server.do("kill", "1")
                self.server.do("restart", "1")

    def run(self):
        threads = [threading.Thread(target=self.race, args=[racer]) for racer in range(RACERS)]
        witness = threading.Thread(target=self.watch_machine)
        for thread in [witness, *threads]:
            thread.start()
        self.disturb()
        for thread in threads:
            thread.join()
        self.over.set()
        witness.join()

    def check(self):
        lines = [list(map(int, line.split())) for line in self.read("log").splitlines()]
        numbers, tokens = [line[0] for line in lines], [line[1] for line in lines]
        counter = int(self.read("counter"))
        assert not self.wrong, self.wrong
        slow = time.monotonic() > self.stop_at
        assert self.done >= (ENOUGH if slow else RACERS * ROUNDS), "only %d commands were run" % self.done
        assert slow or len(self.killed) > HOLDER_KILLS, "hardly anything was killed"
        twice = [a for a, b in zip(numbers, numbers[1:]) if a >= b]
        if twice and self.stall_s > STALL_S:
            raise Stalled("numbers written twice: %s" % twice)
        assert not twice, "a number was written twice: %s" % numbers
        assert all(a < b for a, b in zip(tokens, tokens[1:])), "a token that did not grow: %s" % tokens
        # A command that was ended between its two writes has left a gap in the log, but none in the counter.
        assert counter == numbers[-1] or counter == numbers[-1] + 1, (counter, numbers[-1])
        assert self.done <= len(numbers) <= counter, (self.done, len(numbers), counter)
        assert counter <= self.done + len(self.killed) + self.lost, (counter, self.done, self.killed, self.lost)
        zookeeper = KazooClient(self.server.plain)
        zookeeper.start()
        wait_for(lambda: zookeeper.get_children("/divvy/locks/race") == [], "no contender is left")
        zookeeper.stop()
        zookeeper.close()
        wait_for(lambda: not self.users(), "no process is left", self.users())

    def users(self):
        """Processes that have our folder among their arguments."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/cmdline" % pid, "rb") as file:
                    if self.folder.encode() in file.read() and int(pid) != os.getpid():
                        found.append(pid)
            except (FileNotFoundError, ProcessLookupError):
                pass
        return found

    def clear_up(self):
        self.server.do("stop")
        subprocess.run(["rm", "-rf", self.folder], check=True)


def main():
    if len(sys.argv) < 2:
        sys.exit("usage: test_command_race.py BUILD_FOLDER")
    seed = int(os.environ.get("DIVVY_TEST_SEED") or os.environ.get("DIVVY_FRESH_SEED") or time.time())
    print("again with DIVVY_TEST_SEED=%d" % seed, flush=True)
    for _ in range(RUNS_MAX):
        try:
            run(os.path.abspath(sys.argv[1]), seed)
            return
        except Stalled as stalled:
            print("run again, for the machine stood still; %s" % stalled, flush=True)
    sys.exit("the machine stood still in all of %d runs" % RUNS_MAX)


def run(build, seed):
    race = Race(build, seed)
    begun = time.monotonic()
    try:
        race.run()
        print("%d commands in %.1f s; %d killed, %d lost; the machine stood still for %.2f s at most" % (
            race.done, time.monotonic() - begun, len(race.killed), race.lost, race.stall_s), flush=True)
        race.check()
    finally:
        race.clear_up()


if __name__ == "__main__":
    main()
