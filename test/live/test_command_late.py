#!/usr/bin/python3
"""`divvy partition`, `lock` and `elect` whose command outlives the deadline. SPDX-License-Identifier: Apache-2.0

Shows that a session is not closed while a command works under it.

usage: test_command_late.py BUILD_FOLDER [TEST...]     a TEST is a name such as Late.test_all
"""
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import unittest

from command_harness import DEADLINE_S, Setting, alive, children, fire, main, run_to_end, wait_for

T = 4  # seconds, the session timeout
SCRIPT = 'echo $PPID $$ >"$0-$DIVVY_ITEM.new"; mv "$0-$DIVVY_ITEM.new" "$0-$DIVVY_ITEM"; exec sleep 1000'


class Valve:
    """A pipe. While it is shut, its writer waits where it writes, and does nothing else."""

    def __init__(self):
        self.text = ""
        self.out, self.into = os.pipe()

    def shut(self):
        full = os.open("/proc/self/fd/%d" % self.into, os.O_WRONLY | os.O_NONBLOCK)
        for size in 4096, 1:
            try:
                while True:
                    os.write(full, b"\n" * size)
            except BlockingIOError:
                pass
        os.close(full)

    def open(self):
        os.close(self.into)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        with open(self.out, encoding="utf-8", errors="surrogateescape") as file:
            for line in file:
                self.text += line


class Holder:
    """`divvy COMMAND ...` with a command of its own, which holds something; and what it says."""

    def __init__(self, case, place, *words, item=""):
        self.place, self.valve, self.script = place, Valve(), os.path.join(case.folder, words[0])
        self.words = [Setting.divvy, words[0], "--connect", Setting.server.connect, "--session-timeout", "%ds" % T,
                      "--verbose", *words[1:], "sh", "-c", SCRIPT, self.script]
        self.process = subprocess.Popen(self.words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=self.valve.into)
        case.addCleanup(self.process.wait, DEADLINE_S)
        case.addCleanup(self.process.kill)
        self.guardian, self.command = self.processes(item)
        case.addCleanup(fire, signal.SIGCONT, self.guardian)
        self.held, = children(place)

    def processes(self, item=""):
        """The guardian and the command, once that runs."""
        name = self.script + "-" + item
        wait_for(lambda: os.path.exists(name), "the command runs", self)
        with open(name, encoding="utf-8") as file:
            return map(int, file.read().split())

    def __str__(self):
        return " ".join(self.words) + "\n" + self.valve.text

    def holds(self):
        return self.held in children(self.place)


class Late(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(self.remove_folder)

    def remove_folder(self):
        """Commands that end just now may still write into it."""
        def is_gone():
            shutil.rmtree(self.folder, ignore_errors=True)
            return not os.path.exists(self.folder)
        wait_for(is_gone, "the folder has gone")

    # A process that could do nothing until its deadline had passed gives its session up. When the guardian was as late,
    # the session ends only when the command has ended.
    def test_all(self):
        pool = Holder(self, "/late/locks/a", "partition", "--path", "/late", "--time-boundary", "0", "--item", "a",
                      "--item", "b", "--", item="a")
        _, other = pool.processes("b")
        elector = Holder(self, "/divvy/locks/elect", "elect", "--once", "elect")
        locker = Holder(self, "/divvy/locks/lock", "lock", "lock")
        holders = [pool, elector, locker]
        for holder in holders:
            fire(signal.SIGSTOP, holder.guardian)
            holder.valve.shut()
        # Each has something to say, and waits with that: `lock` tells of its heartbeats. The native client pings on.
        shut = time.monotonic()
        fire(signal.SIGKILL, other)
        asked = run_to_end([Setting.divvy, "elect", "--connect", Setting.server.connect, "--timeout", "500ms",
                            "--step-down", "elect"])
        self.assertEqual(asked.returncode, 4, asked)
        time.sleep(max(0, shut + T + 1 - time.monotonic()))
        for holder in holders:
            self.assertTrue(holder.holds(), holder)
            holder.valve.open()
        for holder in holders:
            wait_for(lambda: "has ended: no server has proven" in holder.valve.text, "it gives the session up", holder)
            self.assertTrue(holder.holds(), holder)
            self.assertTrue(alive(holder.command), holder)
        for holder in holders:
            fire(signal.SIGCONT, holder.guardian)
            wait_for(lambda: not holder.holds(), "it is free", holder)
            self.assertFalse(alive(holder.command), holder)


if __name__ == "__main__":
    main(__file__)
