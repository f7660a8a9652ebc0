#!/usr/bin/python3
"""`divvy partition` where the set of items changes. SPDX-License-Identifier: Apache-2.0

Shows signals, files and deploys of running members.

usage: test_command_items.py BUILD_FOLDER [TEST...]     a TEST is a name such as Hangup.test_read_again
"""
import fcntl
import json
import os
import pty
import signal
import subprocess
import termios

from command_harness import DEADLINE_S, Setting, main, wait_for
from partition_harness import Case, Member, run, wait_divided

OLD = ["queue-%02d" % number for number in range(1, 13)]
NEW = OLD[2:] + ["queue-%02d" % number for number in range(20, 24)]
SHELL = ["--", "/bin/sh", "-c", "exec sleep 1000"]


def lines(items):
    return "".join(item + "\n" for item in items)


class Pool(Case):
    def start(self, name, items, *arguments):
        """A member with a file of its own."""
        file = self.file(lines(items), "items-" + name)
        member = Member(self.path, "--identifier", name, "--items-from", file, *arguments, items=[])
        member.file, member.items = file, items
        return member

    def hang_up(self, member, content):
        with open(member.file, "w", encoding="utf-8") as file:
            file.write(content if isinstance(content, str) else lines(content))
        member.process.send_signal(signal.SIGHUP)

    @staticmethod
    def tokens(members):
        return {item: token for member in members for item, token in member.ledger.tokens.items()}


class Static(Pool):
    # Members that are known by their identifiers are restarted one after the other: nothing moves, not one item is
    # revoked from those who stay, and each has its own items again.
    def test_rolling_restart(self):
        arguments = ["--rejoin-delay", "10m"]
        members = [self.start(name, OLD, *arguments) for name in "abc"]
        wait_divided(members, OLD)
        for number, name in enumerate("abc"):
            before = [sorted(member.ledger.owned) for member in members]
            lines_before = [len(member.ledger.lines) for member in members]
            self.assertEqual(members[number].stop(), 0)
            members[number] = self.start(name, OLD, *arguments)
            wait_divided(members, OLD)
            self.assertEqual([sorted(member.ledger.owned) for member in members], before)
            for other, member in enumerate(members):
                changes = [line for line in member.ledger.lines[lines_before[other]:] if line["revoked"]
                           or line["lost"]]
                self.assertTrue(other == number or not changes, changes)

    # Shares are in proportion to weights.
    def test_weight(self):
        members = [self.start("a", OLD), self.start("b", OLD, "--weight", "3000")]
        wait_divided(members, OLD)
        wait_for(lambda: [len(member.ledger.owned) for member in members] == [3, 9], "3 and 9 items", *members)

    # It needs a name by which it is known when it comes back.
    def test_static_needs_identifier(self):
        process = run("partition", "--path", self.path, "--item", "x", "--rejoin-delay", "1m")
        self.assertEqual(process.returncode, 2)
        self.assertIn("--identifier", process.stderr)


class Hangup(Pool):
    # A member that reads its file again changes the set for all: new items have owners, removed ones have none, and
    # nothing that is in both sets is interrupted. Members that join later with the old file follow, and are told.
    def test_read_again(self):
        members = [self.start(name, OLD) for name in "abc"]
        wait_divided(members, OLD)
        before, told = self.tokens(members), [len(member.ledger.lines) for member in members]
        self.hang_up(members[1], NEW)
        wait_divided(members, NEW)
        after = self.tokens(members)
        self.assertEqual({item: after[item] for item in OLD[2:]}, {item: before[item] for item in OLD[2:]})
        self.assertIn("asked for its 14 items", members[1].errors)
        released = [item for member, count in zip(members, told) for line in member.ledger.lines[count:]
                    for item in line["revoked"]]
        self.assertEqual(sorted(released), OLD[:2])

        members.append(self.start("d", OLD))
        wait_divided(members, NEW)
        wait_for(lambda: "was configured with" in members[3].errors, "it is told", members[3])
        self.assert_no_double_owner(members)

    # A file that is no good is told, and all stays as it was; so does the member. The same file again changes nothing.
    def test_bad_file(self):
        members = [self.start(name, OLD) for name in "ab"]
        wait_divided(members, OLD)
        line_count = len(members[0].ledger.lines)
        for content, fragment in ((lines(OLD + OLD[:1]), "is given twice, in lines 1 and 13"), ("# none\n", "no items"),
                                  ("a\0b\n", "NUL byte")):
            members[0].errors = ""
            self.hang_up(members[0], content)
            wait_for(lambda fragment=fragment: fragment in members[0].errors and
                     "the items stay as they are" in members[0].errors, fragment, members[0])
        os.remove(members[0].file)
        members[0].process.send_signal(signal.SIGHUP)
        wait_for(lambda: "cannot be opened" in members[0].errors, "it is told", members[0])
        self.hang_up(members[0], OLD)
        wait_for(lambda: "asked for its 12 items" in members[0].errors, "it is told", members[0])
        self.hang_up(members[1], OLD[:11])
        wait_divided(members, OLD[:11])
        kept = [line for line in members[0].ledger.lines[line_count:] if line["event"] == "items"]
        self.assertTrue(all(set(line["revoked"] + line["lost"] + line["gained"]) <= {OLD[11]} for line in kept),
                        members[0])

    # Where a member does not follow plans, each goes by its own items, and is told why nothing changes.
    def test_refused(self):
        members = [self.start("a", OLD), self.start("b", OLD, "--assign", "rendezvous")]
        wait_divided(members, OLD)
        for member, fragment in zip(members, ("does not follow plans", "goes by a rule of names")):
            self.hang_up(member, NEW)
            wait_for(lambda member=member, fragment=fragment: fragment in member.errors, fragment, member)
            self.assertIn("the items stay as they are", member.errors)
        wait_divided(members, OLD)

    # Without a file, SIGHUP ends the member, as does SIGTERM.
    def test_without_file(self):
        member = Member(self.path, items=OLD)
        wait_divided([member], OLD)
        self.assertEqual(member.stop(signal.SIGHUP), 0, member)
        self.assertEqual(self.nodes_left(), [])

    # The end of its terminal makes a member leave, though it has a file.
    def test_terminal_gone(self):
        master, slave = pty.openpty()
        file, output = self.file(lines(OLD)), self.file("", "output")
        with open(output, "wb") as to:
            process = subprocess.Popen([Setting.divvy, "partition", "--connect", Setting.server.connect, "--path",
                                        self.path,
                                        "--items-from", file, "--time-boundary", "100ms"], stdin=slave, stdout=to,
                                        stderr=to,
                                       start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY))
        os.close(slave)

        def said(words):
            with open(output, encoding="utf-8") as lines_of_it:
                return words in lines_of_it.read()

        try:
            wait_for(lambda: said("ACQUIRED"), "it has its share")
            process.send_signal(signal.SIGHUP)
            wait_for(lambda: said("asked for its 12 items"), "the file is read again")
            os.close(master)
            self.assertEqual(process.wait(DEADLINE_S), 0)
        finally:
            process.kill()
            process.wait()
        self.assertEqual(self.nodes_left(), [])

    # Commands of items that come with another set are started, by members that never had them in a file, too; those of
    # removed items have ended before the item is released.
    def test_commands(self):
        members = [self.start(name, OLD[:4], "--events", "-", "--drain", "5s", *SHELL) for name in "ab"]
        running = {}

        def children():
            for member in members:
                running[member] = {}
                for text in member.output.splitlines():
                    if '"event":"child"' not in text:
                        continue
                    line = json.loads(text)
                    if line["child"] == "started":
                        running[member][line["item"]] = line["pid"]
                    else:
                        running[member].pop(line["item"], None)
            return sorted(item for items in running.values() for item in items)

        wait_for(lambda: children() == OLD[:4], "the commands run", *members)
        pids = {item: pid for items in running.values() for item, pid in items.items()}
        self.hang_up(members[0], OLD[1:8])
        wait_for(lambda: children() == OLD[1:8], "the others run", *members)
        now = {item: pid for items in running.values() for item, pid in items.items()}
        self.assertEqual({item: now[item] for item in OLD[1:4]}, {item: pids[item] for item in OLD[1:4]})
        self.assertTrue(all(running[member] for member in members))
        wait_for(lambda: not os.path.exists("/proc/%d" % pids[OLD[0]]), "the command of the removed item has gone")
        for member in members:
            self.assertEqual(member.stop(), 0, member)
            member.ledger.faults = [fault for fault in member.ledger.faults if '"event":"child"' not in fault]


class Deploy(Pool):
    # A new set comes with new processes, one after the other, each with the new file in place of one with the old. As
    # long as one of the old is there the old set is divided, and the new ones are told that theirs differs; when the
    # last one has gone the new set is, without a stand-still. What is in both sets is only ever interrupted where its
    # owner was ended.
    def test_rolling(self):
        members = [self.start("old-%d" % number, OLD) for number in range(3)]
        wait_divided(members, OLD)
        for number in range(3):
            members.append(self.start("new-%d" % number, NEW))
            wait_divided(members, OLD)
            wait_for(lambda: "was configured with" in members[-1].errors, "it is told that its items differ",
                     members[-1])
            before = self.tokens(members)
            leaver = members.pop(0)
            owned_by_leaver = list(leaver.ledger.owned)
            self.assertEqual(leaver.stop(), 0, leaver)
            wait_divided(members, OLD if number < 2 else NEW)
            after = self.tokens(members)
            stays = [item for item in after if item in OLD and item not in owned_by_leaver]
            self.assertEqual({item: after[item] for item in stays}, {item: before[item] for item in stays})
        self.assert_no_double_owner(members)

    # Half of the members have the old set and half the new one (kazoo #392, #386): all are busy with one of the two.
    def test_half_and_half(self):
        members = [self.start("old-%d" % number, OLD) for number in range(2)]
        members += [self.start("new-%d" % number, NEW) for number in range(2)]

        def wanted(members):
            return sorted(item for member in members for item in member.ledger.owned)

        def divided():
            return all(member.ledger.state == "ACQUIRED" for member in members) and wanted(members) in (OLD, NEW)

        wait_for(divided, "one of the sets is divided among all", *members)
        others = [member for member in members if sorted(member.items) != wanted(members)]
        self.assertEqual(len(others), 2)
        for member in others:
            wait_for(lambda member=member: "was configured with" in member.errors, "one with the other set is told",
                     member)
        for member in members[:2]:
            self.assertEqual(member.stop(), 0, member)
        wait_divided(members[2:], NEW)
        self.assert_no_double_owner(members)


if __name__ == "__main__":
    main(__file__)
