#!/usr/bin/python3
"""What a command leaves behind keeps its lock, its item or its leadership. SPDX-License-Identifier: Apache-2.0

Shows what the kernel knows of processes that a command leaves behind.

usage: test_command_left_behind.py BUILD_FOLDER [TEST...]     a TEST is a name such as LeftBehind.test_lock

Each command locks a file, and hands the open file down a chain of processes: each starts the next one and exits. The
last one stays until it is ended. So somebody who looks at all processes, one after the other, easily misses the one
that lives just then. The kernel knows better: the file is locked while one of them has it open.

DIVVY_TEST_RUNS=n runs each test n times, instead of 16.
"""
import concurrent.futures
import fcntl
import os

import lock_harness
import supervise_harness
from command_harness import Setting, main, run_to_end, wait_for

RUNS = int(os.environ.get("DIVVY_TEST_RUNS") or 16)
AT_ONCE = 4
BATCH = 8  # items of a member

BEGIN = 'exec 9>>"$1" >/dev/null 2>&1; flock -n 9 || exit 3; '
SHORT = BEGIN + '( ( exec sleep 60 ) & ) & exit 0'
LONG = (BEGIN + 'next() { if [ "$1" -gt 0 ]; then next $(($1 - 1)) & else exec sleep 60; fi; }; next 40 & exit 0')


def is_locked(path):
    """Returns whether a process has the file locked; the file is there."""
    with open(path, "rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


class LeftBehind(lock_harness.Case):
    def run_each(self, *words):
        """Runs the words with all commands, some at a time. Returns which of them were over too early."""
        def is_early(number):
            path = self.path("file-%d" % number)
            command = ["sh", "-c", LONG if number % 2 else SHORT, "sh", path]
            done = run_to_end([Setting.divvy, *words, "--grace", "200ms", "%s-%d" % (self.name, number), *command],
                              env=lock_harness.environment())
            early = is_locked(path)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            return early
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            early = list(pool.map(is_early, range(RUNS)))
        print("%d of %d early" % (sum(early), RUNS), flush=True)
        return [number for number in range(RUNS) if early[number]]

    # A lock is given back when the last process in its command's session has gone.
    def test_lock(self):
        self.assertEqual(self.run_each("lock"), [])

    # So is leadership.
    def test_elect(self):
        self.assertEqual(self.run_each("elect", "--once"), [])


class Items(supervise_harness.Case):
    # An item's command has finished when the last process in its session has gone, and not before.
    def test_partition(self):
        early = []
        for first in range(0, RUNS, BATCH):
            self.finish_all(["%d" % number for number in range(first, min(first + BATCH, RUNS))], early)
        print("%d of %d early" % (len(early), RUNS), flush=True)
        self.assertEqual(early, [])

    def finish_all(self, items, early):
        """Has a member run the commands of the items, and looks at each one's file as soon as it has finished."""
        script = 'set -- "$1/$2"; if [ $((DIVVY_ITEM %% 2)) = 0 ]; then %s; fi; %s' % (SHORT, LONG)
        member = self.start_script(script, "--restart", "never", items=items)
        seen = set()
        def look():
            for line in member.of("finished"):
                if line["item"] not in seen and is_locked(self.file_name(line["item"])):
                    early.append(line["item"])
                seen.add(line["item"])
            return len(seen) == len(items)
        wait_for(look, "all have finished", member)
        self.assertEqual(member.stop(), 0, member)


if __name__ == "__main__":
    main(__file__)
