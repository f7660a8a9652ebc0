#!/usr/bin/python3
"""`divvy status --watch`. SPDX-License-Identifier: Apache-2.0

Shows a terminal that is redrawn, and a connection that comes back.

usage: test_command_status_watch.py BUILD_FOLDER [TEST...]     a TEST is a name such as Watch.test_watch_terminal
"""
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import threading
import time

from command_harness import DEADLINE_S, Server, Setting, main, wait_for
from look_harness import Case, command


class Viewer:
    """A running `divvy status --watch` whose output is a pipe."""

    def __init__(self, *arguments, connect=None):
        self.output = self.errors = ""
        self.process = subprocess.Popen(command("status", "--watch", "--interval", "100ms", *arguments,
                                                connect=connect),
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True)
        self.readers = [threading.Thread(target=self._read_output), threading.Thread(target=self._read_errors)]
        for reader in self.readers:
            reader.start()

    def _read_output(self):
        for line in self.process.stdout:
            self.output += line

    def _read_errors(self):
        for line in self.process.stderr:
            self.errors += line

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        self.process.wait(DEADLINE_S)
        for reader in self.readers:
            reader.join()
        self.process.stdout.close()
        self.process.stderr.close()
        return self.process.returncode


class Watch(Case):
    # With --watch the file of items is read again when it has changed; one that is no good is told once, and changes
    # nothing.
    def test_watch_file(self):
        self.make(self.path + "/locks/one")
        file = self.file("one\n")
        viewer = Viewer("--path", self.path, "--items-from", file, "--json")

        def newest():
            return [item["item"] for item in json.loads(viewer.output.splitlines()[-1])["items"]]

        try:
            wait_for(lambda: viewer.output.endswith("\n") and newest() == ["one"], "one item")
            os.replace(self.file("one\ntwo\n", "new"), file)
            wait_for(lambda: viewer.output.endswith("\n") and newest() == ["one", "two"], "the new list")
            with open(file, "w", encoding="utf-8") as to:
                to.write("two\ntwo\n")
            wait_for(lambda: "given twice" in viewer.errors, "it is told")
            looks = viewer.output.count("\n")
            wait_for(lambda: viewer.output.count("\n") > looks + 3 and viewer.output.endswith("\n"), "more looks")
            self.assertEqual(newest(), ["one", "two"])
            self.assertEqual(viewer.errors.count("given twice"), 1)
        finally:
            self.assertEqual(viewer.stop(), 0)

    # With --watch and a pipe there is a block a look, with a line in between; what is new, changed or gone is marked in
    # the block that shows it first; SIGTERM ends it with 0.
    def test_watch(self):
        self.make(self.path + "/party/" + "a" * 32 + "-first", ephemeral=True)
        place = self.make(self.path + "/locks/moving/__lock__0000000001", b"one", ephemeral=True)
        viewer = Viewer("--path", self.path)
        try:
            wait_for(lambda: "----\n" in viewer.output, "a second look")
            Setting.zookeeper.delete(place)
            wait_for(lambda: "(unowned)" in viewer.output, "the change is shown")
            self.make(self.path + "/locks/new")
            Setting.zookeeper.delete(self.path + "/party/" + "a" * 32 + "-first")
            wait_for(lambda: re.search(r"(?m)^\+ new ", viewer.output) and re.search(r"(?m)^- first ", viewer.output),
                     "what is new and what is gone are shown")
        finally:
            self.assertEqual(viewer.stop(), 0, viewer.output)
        self.assertEqual(viewer.errors, "")
        blocks = re.split(r"(?m)^-+\n", viewer.output)
        self.assertTrue(all(block.startswith(self.path + ": ") for block in blocks), viewer.output)
        self.assertEqual([mark for block in blocks for mark in re.findall(r"(?m)^(.) moving ", block) if mark != " "],
                         ["*"])
        for mark, name in (("+", "new"), ("-", "first")):
            self.assertEqual(viewer.output.count("\n%s %s " % (mark, name)), 1, viewer.output)

    # With --watch a pool that is not there yet is waited for, and with --json each look is a line of its own.
    def test_watch_json(self):
        viewer = Viewer("--path", self.path, "--json")
        try:
            wait_for(lambda: viewer.output.count("\n") > 1, "two looks")
            self.make(self.path + "/locks/x")
            wait_for(lambda: '"x"' in viewer.output, "the item is shown")
        finally:
            self.assertEqual(viewer.stop(signal.SIGINT), 0)
        lines = [json.loads(line) for line in viewer.output.splitlines()]
        self.assertEqual((lines[0]["items"], lines[-1]["unowned"]), ([], 1))

    # A server that goes away while it watches is told on stderr; when it is back, so is the page.
    def test_watch_reconnects(self):
        server = Server()
        self.addCleanup(server.do, "stop")
        viewer = Viewer("--path", "/", "--timeout", "2s", "--json", connect=server.connect)
        try:
            wait_for(lambda: viewer.output, "a look")
            server.do("kill", "1")
            told = "divvy: the servers at %s have not told all of it within 2000 ms\n" % server.connect
            wait_for(lambda: told in viewer.errors, "it tells that there is no answer")
            server.do("restart", "1")
            seen = len(viewer.output)
            wait_for(lambda: len(viewer.output) > seen, "it looks again")
        finally:
            self.assertEqual(viewer.stop(), 0)

    # On a terminal the page is drawn in its own place, cut to the screen, with changed lines in bold; Ctrl-C ends it.
    def test_watch_terminal(self):
        for number in range(30):
            self.make(self.path + "/locks/item-%02d" % number)
        self.make(self.path + "/locks/0" + "日本語" * 6)
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 20, 30, 0, 0))
        process = subprocess.Popen(command("status", "--watch", "--interval", "200ms", "--path", self.path),
                                   stdin=slave, stdout=slave, stderr=subprocess.PIPE,
                                   env={**os.environ, "TERM": "xterm"}, start_new_session=True,
                                   preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(slave)
        self.addCleanup(os.close, master)
        output = b""

        def read_until(fragment):
            nonlocal output
            deadline = time.monotonic() + DEADLINE_S
            while fragment not in output:
                self.assertLess(time.monotonic(), deadline, output[-3000:])
                if select.select([master], [], [], 0.1)[0]:
                    output += os.read(master, 65536)

        try:
            read_until(b"lines more\x1b[K\r\n\x1b[J\x1b[H")
            self.make(self.path + "/locks/item-00/__lock__0000000000", b"somebody", ephemeral=True)
            read_until(b"\x1b[1m* item-00 ")
            os.write(master, b"\x03")
            self.assertEqual(process.wait(DEADLINE_S), 0)
        finally:
            if process.poll() is None:
                process.kill()
            process.stderr.close()
            process.wait()
        self.assertTrue(output.startswith(b"\x1b[2J\x1b[H" + self.path.encode()), output[:300])
        for screen in output.split(b"\x1b[H")[1:]:
            lines = re.sub(rb"\x1b\[[0-9]*[mKJ]", b"", screen).decode(errors="ignore").split("\r\n")
            self.assertLessEqual(len(lines), 20)
            widths = [sum(2 if character in "日本語" else 1 for character in line) for line in lines]
            self.assertLessEqual(max(widths), 30, lines)


if __name__ == "__main__":
    main(__file__)
