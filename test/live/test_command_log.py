#!/usr/bin/python3
"""What goes to standard error: levels, fields, and the journal. SPDX-License-Identifier: Apache-2.0

Shows what a process writes to its standard error, and to the journal.

usage: test_command_log.py BUILD_FOLDER [TEST...]     a TEST is a name such as Log.test_levels
"""
import os
import re
import subprocess
import tempfile
import unittest

from command_harness import DEADLINE_S, NOWHERE, Setting, main, run_to_end, wait_for

TIME = r"time=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z "


def fields(line):
    """The fields of a line, by their names."""
    found = re.findall(r'(?:^| )([a-z_]+)=("(?:[^"\\]|\\.)*"|[^ "=\\]*)', line)
    assert " ".join("=".join(pair) for pair in found) == line, line
    return {key: re.sub(r"\\(.)", r"\1", value[1:-1]) if value.startswith('"') else value for key, value in found}


class Log(unittest.TestCase):
    def setUp(self):
        self.path = "/" + self.id().split(".")[-1]

    def run_divvy(self, *arguments, connect=None, **environment):
        words = [Setting.divvy, arguments[0], "--connect", connect or Setting.server.connect, *arguments[1:]]
        return run_to_end(words, env={**os.environ, **environment})

    # For people a message stays as it is; with DIVVY_LOG_FORMAT it is a list of fields, with its quotes escaped.
    def test_fields(self):
        words = ["status", "--path", "/p", "--format", '{"x"}']
        said = self.run_divvy(*words).stderr
        self.assertRegex(said, r'\Adivvy: --format: there is no field \{"x"\}, .*\(see: divvy help status\)\n\Z')
        line = self.run_divvy(*words, DIVVY_LOG_FORMAT="logfmt").stderr
        self.assertRegex(line, r"\A%slevel=error command=status msg=\"[^\n]*\n\Z" % TIME)
        self.assertEqual(fields(line[:-1])["msg"], said[len("divvy: "):-1])
        self.assertEqual(self.run_divvy(*words, DIVVY_LOG_FORMAT="text").stderr, said)

    # A value that is none is refused, with what may have been meant.
    def test_misused(self):
        for name, value, meant in (("DIVVY_LOG", "wran", "warn"), ("DIVVY_LOG_FORMAT", "logfmtt", "logfmt")):
            done = self.run_divvy("locks", **{name: value})
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertRegex(done.stderr,
                             r'\Adivvy: %s: "%s" is not one of .*; did you mean %s\?' % (name, value, meant))
        self.assertEqual(self.run_divvy("locks", DIVVY_LOG="", DIVVY_LOG_FORMAT="").returncode, 0)

    # Where standard error is the journal's stream a line has its priority in front, and no time; elsewhere it is text.
    def test_journal(self):
        with tempfile.TemporaryFile() as stream:
            status = os.fstat(stream.fileno())
            environment = {name: value for name, value in os.environ.items() if not name.startswith("DIVVY_TLS_")}
            environment["JOURNAL_STREAM"] = "%d:%d" % (status.st_dev, status.st_ino)
            words = [Setting.divvy, "partition", "--connect", NOWHERE, "--path", "/p", "--item", "a ", "--acl",
                     "creator"]
            subprocess.run(words, stdin=subprocess.DEVNULL, stderr=stream, env=environment, check=False,
                           timeout=DEADLINE_S)
            words[-2:] = ["--connect-timeout", "1ms"]
            subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stream, env=environment,
                           check=False, timeout=DEADLINE_S)
            subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stream, check=False,
                           timeout=DEADLINE_S, env={**environment, "DIVVY_LOG_FORMAT": "text"})
            stream.seek(0)
            lines = stream.read().decode().splitlines()
        self.assertRegex(lines[0], r'\A<3>level=error command=partition msg="--acl creator')
        self.assertRegex(lines[1], r'\A<4>level=warn command=partition msg="--item: the item \\"a \\" has blanks')
        self.assertRegex(lines[2], r'\A<3>level=error command=partition pool=/p msg="no ZooKeeper server answered')
        self.assertRegex(lines[3], r"\A<4>divvy: warning: --item: ")
        self.assertRegex(lines[4], r"\A<3>divvy: no ZooKeeper server")
        self.assertEqual(len(lines), 5)
        done = self.run_divvy("explain", connect=NOWHERE, JOURNAL_STREAM=environment["JOURNAL_STREAM"])
        self.assertRegex(done.stderr, r"\Adivvy: --path is missing")

    # DIVVY_LOG leaves out what is below its level; with debug the library's log is written, as with --verbose.
    def test_levels(self):
        words = ["partition", "--path", "/p", "--item", "a ", "--connect-timeout", "1ms"]
        for level, warned in (("error", False), ("warn", True), ("info", True)):
            done = self.run_divvy(*words, connect=NOWHERE, DIVVY_LOG=level)
            self.assertEqual("has blanks at its ends" in done.stderr, warned, level)
            self.assertIn("no ZooKeeper server answered", done.stderr)
            self.assertNotIn("log ", done.stderr)
        self.assertRegex(self.run_divvy("locks", DIVVY_LOG="debug").stderr, r"(?m)^divvy: log [a-z]+: ")
        for line in self.run_divvy("locks", "--verbose", DIVVY_LOG_FORMAT="logfmt").stderr.splitlines():
            self.assertEqual(fields(line)["from"], "library")

    # A member's lines have fields, too: one line for each item that changed, and for each command.
    def test_member(self):
        words = [Setting.divvy, "partition", "--connect", Setting.server.connect, "--path", self.path, "--identifier",
                 "m 1", "--item", "a", "--item", "b\nc", "--time-boundary", "100ms", "--", "sh", "-c",
                 'test "$DIVVY_ITEM" = a && exit 3; exec sleep 1000']
        with tempfile.TemporaryFile() as stream:
            member = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stream,
                                      env={**os.environ, "DIVVY_LOG_FORMAT": "logfmt"})

            def lines():
                text = os.pread(stream.fileno(), 1 << 20, 0).decode()
                return [fields(line) for line in text.splitlines()]

            def seen(**wanted):
                return [line for line in lines() if wanted.items() <= line.items()]

            try:
                wait_for(lambda: seen(event="exited", item="a", status="3", level="warn"), "the command has failed")
                wait_for(lambda: seen(event="started", item="b%0Ac", level="info"), "the other one runs")
                wait_for(lambda: seen(event="state", state="ACQUIRED", owned="2"), "it has its share")
            finally:
                member.terminate()
                member.wait(DEADLINE_S)
            gained = seen(event="gained", pool=self.path, member="m 1", command="partition")
            self.assertEqual(sorted(line["item"] for line in gained), ["a", "b%0Ac"])
            self.assertTrue(all(int(line["token"]) > 0 for line in gained))
            self.assertEqual(len(seen(event="revoked")), 2)
            ended = seen(event="state", state="FAILURE")[0]
            self.assertEqual((ended["reason"], ended["level"]), ("finished", "info"))

    # So has a warning of the library, with its name.
    def test_warning(self):
        Setting.zookeeper.create(self.path + "/party/stray", makepath=True)
        words = [Setting.divvy, "partition", "--connect", Setting.server.connect, "--path", self.path, "--item", "a",
                 "--assign", "round_robin", "--time-boundary", "100ms"]
        with tempfile.TemporaryFile() as stream:
            member = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stream,
                                      env={**os.environ, "DIVVY_LOG_FORMAT": "logfmt"})
            try:
                wait_for(lambda: b" level=warn command=partition pool=%s warning=STRAY msg=" %
                         self.path.encode() in os.pread(stream.fileno(), 1 << 20, 0), "it is warned")
            finally:
                member.terminate()
                member.wait(DEADLINE_S)


if __name__ == "__main__":
    main(__file__)
