#!/usr/bin/python3
"""`divvy partition` that tells loads, and pauses poisonous items. SPDX-License-Identifier: Apache-2.0

usage: test_command_balance.py BUILD_FOLDER [TEST...]     a TEST is a name such as LoadCommand.test_once
"""
import os

from command_harness import NOWHERE, alive, main, wait_for
from partition_harness import run
from supervise_harness import Case

UNREACHABLE = ["partition", "--connect", NOWHERE, "--path", "/q", "--item", "a"]


class Usage(Case):
    # Each wrong value has its own message, which says what would be right; nothing is begun.
    def test_options(self):
        command = ["--", "true"]
        rows = (
            (["--balance", "ram", *command], '"ram" is not one of cpu'),
            (["--balance", "cpu"], "--balance cpu measures a command"),
            (["--balance", "cpu", "--load-command", "x", *command], "not both"),
            (["--balance", "cpu", "--load-unit", "x", *command], "--balance cpu measures cores"),
            (["--load-command", ""], "cannot be empty"),
            (["--load-command", "x", "--load-interval", "0"], '"0" is out of range; it may be 1000ms to 1h'),
            (["--load-command", "x", "--load-unit", "Messages"], '"Messages" is no unit; give 1 to 16 of a-z'),
            (["--load-command", "x", "--load-floor", "-1"], '"-1" is no load; give a number from 0 up'),
            (["--load-command", "x", "--load-floor", "nan"], '"nan" is no load'),
            (["--load-interval", "10s"], "give --balance cpu or --load-command, too"),
            (["--load-floor", "1"], "give --balance cpu or --load-command, too"),
            (["--load-unit", "x"], "give --load-command, too"),
            (["--tags", "a b"], 'a tag of "a b" is none: it has 1 to 64 of'),
            (["--tags", "a,,b"], 'a tag of "a,,b" is none'),
            (["--tags", ""], "there is no tag in it"),
            (["--cap", "-1"], '"-1" is not a number from 1 to'),
            (["--min-members", "0"], '"0" is not a number from 1 to 10000'),
            (["--min-members-wait", "1s"], "--min-members-wait is for --min-members"),
            (["--tags", "a", "--assign", "rendezvous"], "--tags needs a pool that follows a plan"),
        )
        for words, fragment in rows:
            with self.subTest(words):
                done = run(*UNREACHABLE, *words)
                self.assertEqual((done.returncode, done.stdout), (2, ""), done)
                self.assertRegex(done.stderr, r"\Adivvy: [^\n]*\(see: divvy help partition\)\n\Z")
                self.assertIn(fragment, done.stderr)


class LoadCommand(Case):
    def member(self, script, *options, items=("a", "b c", "d"), env=None):
        """A member whose load command is `script`, with $F the folder."""
        return self.start("--load-command", script, "--load-interval", "1s", *options, items=items,
                          env={**os.environ, "F": self.folder, **(env or {})})

    def replace(self, name, content):
        """Writes a file, of which nobody reads a part."""
        os.rename(self.write("next-" + name, content), self.file_name(name))

    # It has the names of the owned items on its input, one a line, runs again and again, and never twice at a time.
    def test_runs(self):
        member = self.member('exec 9>"$F/lock"; flock -n 9 || echo double >>"$F/log"; sort >"$F/in-$$"; '
                             'echo run >>"$F/log"; sleep 1.5; echo a 5')
        wait_for(lambda: len(self.read()) >= 3, "it has run three times", member)
        self.assertEqual(set(self.read()), {"run"})
        for name in os.listdir(self.folder):
            if name.startswith("in-"):
                self.assertEqual(self.read(name), ["a", "b c", "d"])
        self.assertEqual(member.stop(), 0)

    # Each kind of trouble is told once, with the item, what was printed, and what to do. Lines of other items, and a
    # heading, are passed over. When a run is in order again the next trouble is told again.
    def test_trouble(self):
        self.replace("say", "a abc\nb c -3\nd inf\nname messages\nother xyz\n")
        member = self.member('cat "$F/say"; echo run >>"$F/log"; exit "$(cat "$F/code" 2>/dev/null || echo 0)"')

        def pass_runs():
            count = len(self.read()) + 2 # The one that is under way may have printed before.
            wait_for(lambda: len(self.read()) > count, "it runs", member)

        def told(fragment):
            return [line for line in member.text("err").splitlines() if fragment in line]
        pass_runs()
        for fragment in ('for the item "a" the load "abc", which is no number; print ITEM NUMBER on a line',
                         'for the item "b c" the load "-3", which is negative; a load is 0 or more',
                         'for the item "d" the load "inf", which is not finite'):
            self.assertEqual(len(told(fragment)), 1, member)
        self.assertEqual(told("other"), [])
        self.replace("say", "a %s\nb c 1\n" % ("1" * 70))
        pass_runs()
        self.assertEqual(len(told('for the item "a" the load "%s" and more; a number has at most 64 bytes' % ("1" * 64))), 1, member)
        self.assertEqual(len(told('no line for 1 of the 3 items, such as "d"')), 1, member)
        self.replace("code", "3")
        pass_runs()
        self.assertEqual(len(told("--load-command exited with 3; the loads stay as they are")), 1, member)
        lines = len(member.text("err").splitlines())
        os.remove(self.file_name("code"))
        self.replace("say", "a 1\nb c 2\nd 3\n")
        pass_runs()
        self.assertEqual(len(member.text("err").splitlines()), lines, member)
        self.replace("say", "a abc\nb c 2\nd 3\n")
        pass_runs()
        self.assertEqual(len(told('for the item "a" the load "abc"')), 2, member)
        self.assertEqual(member.stop(), 0)

    # A run that goes on at the end is killed with all that it has started.
    def test_killed_at_the_end(self):
        member = self.member('sleep 1000 & echo $$ $! >"$F/log"; wait')
        wait_for(self.read, "it runs", member)
        pids = [int(word) for word in self.read()[0].split()]
        self.assertTrue(all(map(alive, pids)))
        self.assertEqual(member.stop(), 0)
        wait_for(lambda: not any(map(alive, pids)), "they are gone", pids)


if __name__ == "__main__":
    main(__file__)
