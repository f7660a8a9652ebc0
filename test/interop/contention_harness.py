"""Processes of divvy and kazoo that contend for one lock or semaphore. SPDX-License-Identifier: Apache-2.0"""
import json
import os
import random
import subprocess
import sys
import tempfile
import time

import harness
from harness import DEADLINE_S, HERE, check

given_seed = os.environ.get("DIVVY_TEST_SEED") or os.environ.get("DIVVY_FRESH_SEED")
seed = int(given_seed or random.randrange(1 << 32))


def library(world):
    path = os.path.join(world.build, "lib", "libdivvy.so")
    check(os.path.exists(path), "there is no %s: build the target divvy", path)
    return path


def wait_for(met, message, *arguments):
    deadline = time.monotonic() + DEADLINE_S
    while not met():
        check(time.monotonic() < deadline, message, *arguments)
        time.sleep(0.005)


class Member:
    """A process of lock_member.py or semaphore_member.py, which holds it `count` times."""

    def __init__(self, script, world, kind, path, mode, identifier, count):
        self.kind, self.mode, self.identifier, self.count = kind, mode, identifier, count
        self.errors = tempfile.TemporaryFile()
        arguments = [sys.executable, "-B", os.path.join(HERE, script), kind, library(world), world.hosts, path,
                     str(mode), identifier, str(count), str(seed)]
        self.process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "--"] + arguments, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self.errors, text=True)

    def end(self):
        """Returns one line for each time in which it held the lock or its slots."""
        try:
            output, _ = self.process.communicate(timeout=4 * DEADLINE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            output, _ = self.process.communicate()
        self.errors.seek(0)
        check(self.process.returncode == 0, "%s ended with %d after %d lines: %s", self.identifier,
              self.process.returncode, output.count("\n"), self.errors.read().decode()[-2000:])
        lines = [json.loads(line) for line in output.splitlines()]
        check(len(lines) == self.count, "%s held it %d times, not %d", self.identifier, len(lines), self.count)
        return lines


def contend(members, *fields):
    """Lets the members contend. Returns (begin, end, the fields, member) of each time, by begin; and the seconds."""
    for member in members:
        check(member.process.stdout.readline() == "ready\n", "%s is not ready", member.identifier)
    began = time.monotonic()
    for member in members:
        member.process.stdin.write("go\n")
        member.process.stdin.flush()
    held = [(line["begin"], line["end"], *(line[field] for field in fields), member)
            for member in members for line in member.end()]
    return sorted(held, key=lambda hold: hold[0]), time.monotonic() - began


def main(doc, tests):
    """Runs those tests whose names contain one of the words of the command line, or all."""
    if len(sys.argv) < 2:
        sys.exit(doc)
    words = sys.argv[2:]
    print("seed %d; again with: DIVVY_TEST_SEED=%d %s" % (seed, seed, " ".join(sys.argv)), flush=True)
    return harness.run([test for test in tests if not words or any(word in test.__name__ for word in words)],
                       sys.argv[1])
