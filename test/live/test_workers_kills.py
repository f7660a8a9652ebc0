#!/usr/bin/python3
"""Members with workers are killed, told to end, and lose their sessions; the kernel's locks judge.
SPDX-License-Identifier: Apache-2.0

usage: test_workers_kills.py BUILD_FOLDER [--deeds N] [--items N]
       DIVVY_TEST_SEED=n replays what is drawn

Three processes of workers_member share a pool on one server. In each round one is killed, or ended by SIGTERM, or the
server stands still for longer than a session. Each worker has its item locked by flock(2).

Claims: no item ever has two workers; after each deed each item has one again, under a token that is larger than all
before; a member that is told to end does so with status 0; in the end nothing is left behind.
"""
import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from command_harness import wait_for
from test_examples import Server, check

MEMBERS, TWO_WORKERS, SESSION_S = 3, 3, 2
DEEDS = {"kill": 5, "end": 4, "end twice": 1, "lose sessions": 2}


class Pool:
    """The processes, and what they have recorded."""

    def __init__(self, program, server, items):
        self.folder = tempfile.mkdtemp(prefix="divvy-workers-")
        self.words = [program, server.connect, "/workers", self.folder, str(items)]
        self.items = items
        self.members = [self.start() for _ in range(MEMBERS)]

    def start(self):
        return subprocess.Popen(self.words)

    def lines(self):
        try:
            with open(os.path.join(self.folder, "record"), encoding="ascii") as file:
                return [line.split() for line in file.read().split("\n")[:-1]]
        except FileNotFoundError:
            return []

    def workers(self):
        """Returns the last process that began each item, if it lives."""
        lives = {member.pid for member in self.members if member.poll() is None}
        last = {item: int(pid) for item, pid, _ in self.lines()}
        return {item: pid for item, pid in last.items() if pid in lives}

    def locked(self):
        """Returns how many items are locked now, as the kernel has it."""
        with open("/proc/locks", encoding="ascii") as file:
            inodes = [int(line.split()[5].rpartition(":")[2]) for line in file if "FLOCK" in line and "->" not in line]
        files = [os.path.join(self.folder, name) for name in os.listdir(self.folder) if name != "record"]
        return sum(os.stat(file).st_ino in inodes for file in files)

    def is_whole(self):
        """Returns whether each item has a worker, but for those that fail now and then, and each member has one."""
        workers = self.workers()
        return len(workers) == self.items and self.locked() >= self.items - (self.items + 9) // 10 and \
            len(set(workers.values())) == MEMBERS

    def check(self):
        newest = {}
        for item, pid, token in self.lines():
            owner = newest.get(item, (0, None))
            check(int(token) > owner[0] or (int(token), pid) == owner, "the tokens of %s grow" % item, self)
            newest[item] = (int(token), pid)
        for member in self.members:
            check(member.poll() is None, "a member has ended: %s" % member.returncode, self)

    def kill_all(self):
        for member in self.members:
            if member.poll() is None:
                member.kill()
            member.wait()
        shutil.rmtree(self.folder)

    def __str__(self):
        return "\n".join(map(" ".join, self.lines()[-40:]))


def do(deed, pool, server, draw):
    number = draw.randrange(MEMBERS)
    member = pool.members[number]
    if deed == "lose sessions":
        server.freeze(True)
        time.sleep(SESSION_S * 1.5)  # So long the server stands still: it is what is tested, and no wait.
        server.freeze(False)
        return
    if deed == "kill":
        member.kill()
    else:
        member.send_signal(signal.SIGTERM)
    if deed == "end twice":
        time.sleep(draw.random() / 10)
        member.send_signal(signal.SIGTERM)
    status = member.wait(60)
    expected = (-signal.SIGKILL,) if deed == "kill" else (0, -signal.SIGTERM) if deed == "end twice" else (0,)
    check(status in expected, "%s ends with %d" % (deed, status), pool)
    pool.members[number] = pool.start()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--deeds", type=int, default=12)
    parser.add_argument("--items", type=int, default=12)
    arguments = parser.parse_args()
    seed = int(os.environ.get("DIVVY_TEST_SEED") or random.randrange(2 ** 32))
    print("DIVVY_TEST_SEED=%d" % seed, flush=True)
    draw = random.Random(seed)
    begun = time.monotonic()
    with Server() as server:
        pool = Pool(os.path.join(os.path.abspath(arguments.build), "test", "workers_member"), server, arguments.items)
        try:
            wait_for(pool.is_whole, "each item has a worker", pool)
            deeds = list(DEEDS) + draw.choices(list(DEEDS), DEEDS.values(), k=max(0, arguments.deeds - len(DEEDS)))
            for deed in deeds:
                do(deed, pool, server, draw)
                wait_for(pool.is_whole, "each item has a worker after: %s" % deed, pool)
                pool.check()
            for member in pool.members:
                member.send_signal(signal.SIGTERM)
            for member in pool.members:
                check(member.wait(60) == 0, "a clean end: %s" % member.returncode, pool)
            check(not server.ephemerals(), "nothing is left behind: %s" % server.ephemerals())
            print("%d deeds, %d jobs, no item with two workers, %.0f s" %
                  (len(deeds), len(pool.lines()), time.monotonic() - begun))
        finally:
            pool.kill_all()


if __name__ == "__main__":
    sys.exit(main())
