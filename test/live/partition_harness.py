"""What the tests of `divvy partition` share: members, and what their lines must be. SPDX-License-Identifier: Apache-2.0

Each JSON line that any member prints in any test is checked against what its page promises: the keys, the order of the
states, and that `owned` and `tokens` are just what the changes so far make of them.
"""
import itertools
import json
import os
import re
import signal
import subprocess
import tempfile
import threading
import time
import unittest

from command_harness import DEADLINE_S, Setting, children, run_to_end, wait_for

ITEMS = ["queue-%02d" % number for number in range(1, 25)]
FOLLOWERS = {  # docs/protocol.md, P4
    None: {"ALLOCATING"},
    "ALLOCATING": {"ACQUIRED", "RELEASE", "FAILURE"},
    "ACQUIRED": {"ALLOCATING", "RELEASE", "FAILURE"},
    "RELEASE": {"ALLOCATING", "RELEASE", "FAILURE"},
    "FAILURE": set(),
}
KEYS = ["event", "state", "generation", "gained", "revoked", "lost", "owned", "tokens"]
HANDOVER_KEYS = ["leaving", "staying", "prepare"]


class Ledger:
    """What a member owns by its JSON lines, and what is wrong with these."""

    def __init__(self):
        self.lines, self.faults = [], []
        self.state, self.owned, self.tokens = None, [], {}

    def read(self, text):
        try:
            line = json.loads(text)
            self._check(line)
        except (ValueError, AssertionError, KeyError) as fault:
            self.faults.append("%s: %s" % (fault or repr(fault), text))
            return
        self.state, self.owned, self.tokens = line["state"], line["owned"], line["tokens"]
        self.lines.append(line)

    def _check(self, line):
        optional = [key for key in (*HANDOVER_KEYS, "reason", "time_ms") if key in line]
        assert list(line) == KEYS + optional, "its keys"
        assert isinstance(line["generation"], int), "its generation"
        last = self.lines[-1] if self.lines else None
        assert not last or line["generation"] >= last["generation"], "an older generation"
        handed = [item for key in HANDOVER_KEYS for item in line.get(key, [])]
        assert all(line.get(key, True) for key in HANDOVER_KEYS), "a list that is empty"
        changed = line["gained"] + line["revoked"] + line["lost"] + handed
        if line["event"] == "state":
            told = [old["state"] for old in self.lines if old["event"] == "state"]
            assert line["state"] in FOLLOWERS[told[-1] if told else None], "a state that cannot follow"
            assert changed == [], "a state that changes items"
            assert ("reason" in line) == (line["state"] == "FAILURE"), "its reason"
        else:
            assert line["event"] == "items" and changed, "an event of its own"
        owned = (set(self.owned) - set(line["lost"]) | set(line["gained"])) - set(line["revoked"])
        assert len(line["owned"]) == len(owned) and set(line["owned"]) == owned, "what it owns"
        # Items are in the order of their own bytes, which for those that are encoded cannot be seen.
        plain = [item for item in line["owned"] if "%" not in item]
        assert plain == sorted(plain, key=str.encode), "its order"
        assert list(line["tokens"]) == line["owned"], "its tokens"
        for item, token in line["tokens"].items():
            assert re.fullmatch("[0-9]+", token), "a token that is no number"
            assert item in line["gained"] or self.tokens[item] == token, "a token that changed"
        assert line["state"] != "FAILURE" or not owned, "a failure that owns"


class Member:
    """A running `divvy partition`."""

    made = []

    def __init__(self, path, *arguments, items=ITEMS, stdin=None, connect=None, text=False):
        self.ledger, self.output, self.errors = Ledger(), "", ""
        self.ended_ms = None
        command = [Setting.divvy, "partition", "--connect", connect or Setting.server.connect, "--path", path]
        command += itertools.chain.from_iterable(("--item", item) for item in items)
        command += arguments if text else ["--json", "--timestamps", *arguments]
        if not any(word.startswith("--time-boundary") for word in arguments):
            command += ["--time-boundary", "100ms"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if stdin is not None:
            self.process.stdin.write(stdin)
            self.process.stdin.close()
        self.readers = [threading.Thread(target=self._read_out, args=[text]), threading.Thread(target=self._read_err)]
        for reader in self.readers:
            reader.start()
        Member.made.append(self)

    def _read_out(self, text):
        for line in self.process.stdout:
            self.output += os.fsdecode(line)
            if not text:
                self.ledger.read(line)

    def _read_err(self):
        for line in self.process.stderr:
            self.errors += os.fsdecode(line)

    def end(self):
        """Waits for the end; returns the exit status."""
        wait_for(lambda: self.process.poll() is not None, "it ends", self)
        status = self.process.returncode
        for reader in self.readers:
            reader.join()
        self.process.stdout.close()
        self.process.stderr.close()
        return status

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return self.end()

    def kill(self):
        self.ended_ms = int(time.time() * 1000)
        self.process.kill()
        self.end()

    def states(self):
        return [line["state"] for line in self.ledger.lines if line["event"] == "state"]

    def __str__(self):
        return "pid %d has printed:\n%s%s" % (self.process.pid, self.output, self.errors)


def wait_divided(members, items=ITEMS):
    """Waits until the members say that they own each item once."""
    def divided():
        return (all(member.ledger.state == "ACQUIRED" for member in members) and
                sorted(itertools.chain.from_iterable(member.ledger.owned for member in members)) == sorted(items))
    wait_for(divided, "each item has one owner", *members)


def run(*arguments, **options):
    """Runs the command to its end."""
    return run_to_end([Setting.divvy, *arguments], **options)


class Case(unittest.TestCase):
    """Every test has a pool of its own, and leaves no process."""

    def setUp(self):
        self.path = "/" + self.id().split(".")[-1]
        self.addCleanup(self.clear_up)
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def clear_up(self):
        members, Member.made = Member.made, []
        for member in members:
            if member.process.poll() is None:
                member.process.kill()
            member.end()
        for member in members:
            self.assertEqual(member.ledger.faults, [], member)

    def file(self, content, name="file"):
        path = os.path.join(self.folder.name, name)
        with open(path, "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
        os.chmod(path, 0o600)  # as files of credentials must be
        return path

    def assert_misused(self, arguments, *fragments, hint=True):
        done = run(*arguments)
        shown = (arguments, done.stdout, done.stderr)
        self.assertEqual(done.returncode, 2, shown)
        self.assertEqual(done.stdout, "", shown)
        self.assertRegex(done.stderr, r"\Adivvy: [^\n]*\n\Z", shown)
        if hint:
            self.assertRegex(done.stderr, r"\(see: divvy help[ a-z]*\)\n\Z", shown)
        for fragment in fragments:
            self.assertIn(fragment, done.stderr, shown)

    def assert_no_double_owner(self, members):
        """By the times in the lines: nobody gains an item before the one who had it has told that it goes."""
        events = []
        for number, member in enumerate(members):
            for line in member.ledger.lines:
                events += [(line["time_ms"], 0, number, item) for item in line["revoked"] + line["lost"]]
                events += [(line["time_ms"], 1, number, item) for item in line["gained"]]
            if member.ended_ms:
                events += [(member.ended_ms, 0, number, item) for item in member.ledger.owned]
        owners = {}
        for _, moment in itertools.groupby(sorted(events), key=lambda event: event[0]):
            moment = list(moment)
            # Within one millisecond an item goes before it comes to another member, and may come and go at one.
            for comes, number, item in [event[1:] for event in moment] + [event[1:] for event in moment
                                                                          if not event[1]]:
                if comes:
                    self.assertIn(owners.get(item), (None, number), "%s has two owners" % item)
                    owners[item] = number
                elif owners.get(item) == number:
                    owners[item] = None

    def nodes_left(self):
        """All nodes of members in the pool, places and party alike."""
        left = []
        for parent in [self.path + "/party"] + [self.path + "/locks/" + item for item in self.children("/locks")]:
            left += [parent + "/" + child for child in self.children(parent[len(self.path):])]
        return left

    def children(self, below):
        return children(self.path + below)
