#!/usr/bin/python3
"""Pages fit 80 columns, or the terminal. SPDX-License-Identifier: Apache-2.0

Shows the pages of `divvy status`, `explain` and `history` of a pool with long names, in a pipe and on terminals.

usage: test_command_columns.py BUILD_FOLDER [TEST...]     a TEST is a name such as Columns.test_pipe
"""
import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
import threading

from command_harness import DEADLINE_S, main
from look_harness import Case, command, run, width_of

EPOCH = "00000000009000000000001"
ITEMS = ["queue", "tenant-" + "x" * 120 + "-orders", "\u65e5\u672c\u8a9e" * 12]
MEMBERS = ["deployment-checkout-queue-worker-7c9b4d5f8-x0000", "deployment-checkout-queue-worker-7c9b4d5f8-x0001",
           "host-with-a-name-that-is-long-but-common.eu-central-1.compute.internal"]
PLAIN = {key: value for key, value in os.environ.items() if key != "COLUMNS"}


class Columns(Case):
    """A pool of long names: an item that is owned, one that is to be released, and one that nobody owns."""

    def setUp(self):
        super().setUp()
        # Of a length like those of real pools; the names of all pages have it in their first lines.
        self.path = "/production/eu-central-1/checkout/" + "_".join(self.id().split(".")[-2:]) + "/work_queues"
        static = MEMBERS[2]
        self.clients = self.make_pool(set(MEMBERS[:2]), [(name, name == static) for name in MEMBERS], sorted(ITEMS),
                                      "012")
        for item in ITEMS[:2]:
            self.clients[MEMBERS[0]].ensure_path("%s/locks/%s" % (self.path, item))
            self.clients[MEMBERS[0]].create("%s/locks/%s/%032x__lock__0000000001" % (self.path, item, 1),
                                            MEMBERS[0].encode(), ephemeral=True)
        self.make(self.path + "/locks/" + ITEMS[2])
        names = {"count": 3, "names": [name[:64] for name in MEMBERS]}
        change = {"generation": 7, "reason": "absence", "at_ms": 1700000000000, "took_ms": -1, "moved": 1000,
                  "joined": names, "left": names}
        text = str([change]).replace("'", '"').replace(" ", "")
        self.make(self.path + "/plan/" + EPOCH, ('{"changes":%s}' % text).encode())

    def calls(self):
        yield ["status", "--path", self.path]
        yield ["history", "--path", self.path]
        for item in ITEMS:
            yield ["explain", "--path", self.path, item]

    def assert_fits(self, page, columns):
        self.assertTrue(page)
        for line in page.splitlines():
            self.assertLessEqual(width_of(line), columns, page)

    # In a pipe no line takes more than 80 columns; what was left out is told, and --wide and --json have all of it.
    def test_pipe(self):
        for call in self.calls():
            done = run(*call, env=PLAIN)
            self.assertEqual((done.returncode, done.stderr), (0, ""), call)
            self.assert_fits(done.stdout, 80)
            whole = run(*call, "--wide", env=PLAIN).stdout
            for name in MEMBERS if call[0] == "status" else []:
                self.assertIn(name, whole)
            self.assertGreater(max(map(width_of, whole.splitlines())), 80, whole)
            if call[0] != "explain":
                self.assertEqual(done.stdout.splitlines()[-1], "Shortened to 80 columns: --wide and --json show all.")
                self.assertNotIn("Shortened", whole)
        shown = self.shown("status", "--path", self.path)
        self.assertEqual(sorted(item["item"] for item in shown["items"]), sorted(ITEMS))

    # A sentence of explain is wrapped and loses nothing: its words are those of --wide.
    def test_wrapped(self):
        for item in ITEMS:
            call = ["explain", "--path", self.path, item]
            narrow, whole = run(*call, env=PLAIN).stdout, run(*call, "--wide", env=PLAIN).stdout
            self.assertGreater(narrow.count("\n"), whole.count("\n"))
            plain = [re.sub(r"\d+s\b|\s+", "", text) for text in (narrow, whole)]  # but for ages
            self.assertEqual(*plain)

    # A look of --watch fits, too, with the marks of what has changed.
    def test_watch(self):
        process = subprocess.Popen(command("status", "--watch", "--interval", "100ms", "--path", self.path), text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=PLAIN)
        page = []
        try:
            for line in process.stdout:
                page.append(line)
                if line.startswith("----") and len(page) < 100:
                    self.make("%s/locks/%s" % (self.path, "new-" * 20 + str(len(page))))
                if line.startswith("+ new-"):
                    break
        finally:
            process.terminate()
            process.stdout.close()
            process.wait(DEADLINE_S)
        self.assert_fits("".join(page), 80)

    # $COLUMNS makes the pages of a pipe wider, and a terminal its own.
    def test_wider(self):
        narrow, wide = self.on_terminal(80), self.on_terminal(150)
        self.assert_fits(narrow, 80)
        self.assert_fits(wide, 150)
        self.assertNotIn(MEMBERS[0], narrow)
        self.assertIn(MEMBERS[0], wide)
        page = run("status", "--path", self.path, env={**PLAIN, "COLUMNS": "150"}).stdout
        self.assert_fits(page, 150)
        self.assertEqual(re.sub(r"\d+s\b", "", page), re.sub(r"\d+s\b", "", wide))

    def on_terminal(self, columns):
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        output = []

        def read():
            try:
                while data := os.read(master, 65536):
                    output.append(data)
            except OSError:  # nobody has the terminal any longer
                pass
        reader = threading.Thread(target=read)
        reader.start()
        done = run("status", "--path", self.path, stdout=slave, env={**PLAIN, "TERM": "xterm"})
        os.close(slave)
        reader.join(DEADLINE_S)
        os.close(master)
        self.assertEqual(done.returncode, 0, done.stderr)
        return b"".join(output).decode().replace("\r\n", "\n")


if __name__ == "__main__":
    main(__file__)
