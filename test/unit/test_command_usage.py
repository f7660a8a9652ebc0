#!/usr/bin/python3
"""The command's help, and calls that are wrong whatever the servers say. SPDX-License-Identifier: Apache-2.0

usage: test_command_usage.py BUILD_FOLDER [TEST...]     a TEST is a name such as Usage.test_help
"""
import os
import subprocess
import sys
import unittest

BUILD = None  # set from the command line
SUBCOMMANDS = ("lock elect partition status explain history doctor locks services announce plan bucket drain pin unpin "
               "move pause resume need set forget").split()
MEMBER = ["partition", "--path", "/p", "--item", "a"]
WRONG = (
    (["lock", "--no-death-watch", "--failover-delay", "1s", "x", "true"], "needs the death watch"),
    (["lock", "--acl", "creator", "x", "true"], "need credentials"),
    (["lock", "--acl", "readable", "x", "true"], "need credentials"),
    (MEMBER + ["--rejoin-delay", "1m"], "--rejoin-delay needs an --identifier"),
    (MEMBER + ["--identifier", "m", "--replace"], "--replace is for a static member"),
    (MEMBER + ["--identifier", "m", "--rejoin-delay", "1001h"], "out of range; it may be 1ms to 1000h"),
    (["lock", "--grace", "30m", "x", "true"], "out of range; it may be 0ms to 20m"),
    (MEMBER + ["--identifier", "m", "--rejoin-delay", "1m", "--replace", "--handover-timeout", "0"],
     "--replace cannot work with --handover-timeout 0"),
    (MEMBER + ["--items-interval", "5s"], "--items-interval is for --items-from-command"),
    (MEMBER + ["--drain", "5s"], "--drain is for a command"),
    (MEMBER + ["--failover-delay", "1s"], "--failover-delay is for a command"),
    (MEMBER + ["--restart", "always"], "--restart is for a command"),
    (MEMBER + ["--", "sh", "-c", "work {item}"], "would run what stands in an item's name"),
    (["status", "--path", "p"], "must begin with a slash"),
    (["status", "--path", "/p/"], "--path: the path"),
    (["status", "--path", "/p", "--json", "--format", "{item}"], "not both"),
    (["history", "--path", "/p", "--json", "--format", "{at}"], "not both"),
    (["doctor", "--path", "p"], "must begin with a slash"),
    (["doctor", "--path", "/p//q"], "--path: the path"),
    (["set", "--path", "/p", "max-moves"], "is not NAME=VALUE"),
    (["set", "--path", "/p", "round-timeout=soon"], "round-timeout: \"soon\" is not"),
    (["need", "--path", "/p", "a", "a b"], "is no tag"),
    (["pin", "--path", "/p", "a"], "MEMBER is missing"),
    (["pin", "--path", "/p", "a", "b", "c"], "one word too many"),
    (["pin", "--path", "/p", "", "m"], "ITEM is empty"),
    (["staus"], "status"),
    (["help", "status", "x"], "is not expected here"),
    (["--version", "x"], "is not expected here"),
)


def run(program, *words):
    return subprocess.run([os.path.join(BUILD, "tools", program), *words], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, check=False, text=True)


class Usage(unittest.TestCase):
    # A subcommand's --help says what `divvy help` says of it, and the options of no other.
    def test_help(self):
        seen = set()
        for name in SUBCOMMANDS:
            done, page = run("divvy", name, "--help"), run("divvy", "help", name)
            self.assertEqual((done.returncode, done.stderr), (0, ""), name)
            self.assertEqual(done.stdout, page.stdout)
            self.assertTrue(done.stdout.startswith("usage: divvy %s " % name), name)
            seen.add(done.stdout)
        self.assertEqual(len(seen), len(SUBCOMMANDS))

    # A call that is wrong ends with code 2 and the reason, before any server is asked, and prints nothing else.
    def test_wrong(self):
        for words, reason in WRONG:
            with self.subTest(words=words):
                done = run("divvy", *words)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertIn(reason, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1)

    # The death watch tells its version. Started by hand, it says which library starts it.
    def test_death_watch(self):
        version = run("divvy", "--version").stdout.split()[1]
        done = run("divvy-death-watch", "--version")
        self.assertEqual((done.returncode, done.stdout), (0, "divvy-death-watch %s\n" % version))
        done = run("divvy-death-watch")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("libdivvy starts this program", done.stderr)


if __name__ == "__main__":
    BUILD = sys.argv.pop(1)
    unittest.main()
