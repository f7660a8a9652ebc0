#!/usr/bin/python3
"""Items that are followed: from a command, and from a znode's children. SPDX-License-Identifier: Apache-2.0

Shows commands and znodes that tell the items of a live pool, and how these fail.

usage: test_command_feed.py BUILD_FOLDER [TEST...]     a TEST is a name such as Command.test_followed
"""
import json
import os
import shlex
import signal
import subprocess
import tempfile

from command_harness import DEADLINE_S, Setting, alive, main, run_to_end, stat, wait_for
from partition_harness import Case, Member, run, wait_divided

OLD = ["queue-%02d" % number for number in range(1, 7)]
NEW = OLD[2:] + ["queue-%02d" % number for number in range(20, 24)]


def lines(items):
    return "".join(item + "\n" for item in items)


def status(*arguments):
    return run_to_end([Setting.divvy, "status", "--connect", Setting.server.connect, *arguments])


class Feed(Case):
    def tell(self, content):
        """The file that the command prints becomes this, at one moment."""
        os.replace(self.file(content if isinstance(content, str) else lines(content), "next"), self.source)

    def setUp(self):
        super().setUp()
        self.source = os.path.join(self.folder.name, "items")
        self.znode = self.path + "-items"

    def member(self, *arguments):
        return Member(self.path, *arguments, items=[])

    def by_command(self, *arguments, interval="100ms", command=None):
        command = command or "cat " + shlex.quote(self.source)
        return self.member("--items-from-command", command, "--items-interval", interval, *arguments)

    def wait_told(self, member, *fragments):
        for fragment in fragments:
            wait_for(lambda fragment=fragment: fragment in member.errors, fragment, member)


class Command(Feed):
    # What the command prints is divided, and so is what it prints later; items of both lists are not interrupted.
    def test_followed(self):
        self.tell(OLD)
        members = [self.by_command() for _ in range(2)]
        wait_divided(members, OLD)
        before = {item: token for member in members for item, token in member.ledger.tokens.items()}
        self.tell(NEW)
        wait_divided(members, NEW)
        after = {item: token for member in members for item, token in member.ledger.tokens.items()}
        self.assertEqual({item: after[item] for item in OLD[2:]}, {item: before[item] for item in OLD[2:]})
        self.assert_no_double_owner(members)
        for member in members:
            self.assertEqual(member.stop(), 0, member)

    # After a fault of any kind the items stay, it is told, and the member goes on to look.
    def test_faults(self):
        self.tell(OLD)
        member = self.by_command(command=". " + shlex.quote(self.file("", "script")))
        script = os.path.join(self.folder.name, "script")
        self.assertEqual(member.end(), 1, member)
        self.assertIn("printed nothing", member.errors)
        shown = "cat " + shlex.quote(self.source)
        self.file(shown, "script")
        member = self.by_command(command=". " + shlex.quote(script))
        wait_divided([member], OLD)
        for content, fragment in (("exit 3", "exited with 3"), ("kill -9 $$", "was ended by signal 9"),
                                  ("true", "printed nothing"), ("echo '# none'", "there are no items in it"),
                                  ("echo a; echo a", 'the item "a" is given twice, in lines 1 and 2')):
            member.errors = ""
            os.replace(self.file(content, "next script"), script)
            self.wait_told(member, fragment, "--items-from-command: the items stay as they are")
        self.assertEqual(sorted(member.ledger.owned), OLD)
        self.tell(NEW)
        os.replace(self.file(shown, "next script"), script)
        wait_divided([member], NEW)

    # A run that does not end is ended with the member, with all that it has started.
    def test_ends_with_member(self):
        pids = os.path.join(self.folder.name, "pids")
        member = self.by_command(command="sleep 1000 & echo $! $$ >%s; wait" % shlex.quote(pids))
        wait_for(lambda: os.path.exists(pids) and os.path.getsize(pids) > 0, "it runs", member)
        with open(pids, encoding="utf-8") as file:
            runs = [int(pid) for pid in file.read().split()]
        self.assertEqual(member.stop(), 0, member)
        wait_for(lambda: not any(map(alive, runs)), "all of it is gone")
        self.assertEqual(self.nodes_left(), [])

    # What runs leave in the background stays no zombie of a member that has commands.
    def test_leaves(self):
        self.tell(OLD[:1])
        log = self.file("", "log")
        command = "echo >>%s; sleep 0.01 >/dev/null & cat %s" % (shlex.quote(log), shlex.quote(self.source))
        member = self.by_command("--", "sh", "-c", "exec sleep 1000", command=command)
        wait_for(lambda: os.path.getsize(log) > 20, "it runs often", member)
        dead = [number for number in map(int, filter(str.isdigit, os.listdir("/proc")))
                if stat(number) == ("Z", member.process.pid)]
        self.assertLess(len(dead), 8, member)
        self.assertEqual(member.stop(), 0, member)

    # SIGHUP has it run at once, and its list asked for though it is the same.
    def test_hangup(self):
        self.tell(OLD)
        member = self.by_command(interval="1h")
        wait_divided([member], OLD)
        member.process.send_signal(signal.SIGHUP)
        self.wait_told(member, "asked for its 6 items")
        self.tell(NEW)
        member.process.send_signal(signal.SIGHUP)
        wait_divided([member], NEW)

    # Where a member does not follow plans, the list is refused once, and asked for again when that member has gone.
    def test_refused(self):
        self.tell(OLD)
        member = self.by_command("--assign", "auto")
        other = Member(self.path, "--assign", "rendezvous", items=OLD)
        wait_divided([member, other], OLD)
        self.tell(NEW)
        self.wait_told(member, "does not follow plans")
        self.assertEqual(other.stop(), 0, other)
        wait_divided([member], NEW)
        self.assertEqual(member.errors.count("does not follow plans"), 1, member)


class Znode(Feed):
    def make(self, *names):
        for name in names:
            Setting.zookeeper.create(self.znode + "/" + name, makepath=True)

    # The names of the children are divided, as they are now and as they become. Slashes in them are encoded.
    def test_followed(self):
        self.make("a", "b", "c%2Fd")
        members = [self.member("--items-from-znode", self.znode) for _ in range(2)]
        wait_divided(members, ["a", "b", "c/d"])
        self.make("e")
        Setting.zookeeper.delete(self.znode + "/a")
        wait_divided(members, ["b", "c/d", "e"])
        self.assert_no_double_owner(members)

    # A znode that is gone or empty is told once, changes nothing, and is followed again when it is back.
    def test_gone(self):
        self.make("a", "b")
        member = self.member("--items-from-znode", self.znode)
        wait_divided([member], ["a", "b"])
        Setting.zookeeper.delete(self.znode + "/a")
        Setting.zookeeper.delete(self.znode + "/b")
        self.wait_told(member, "there are no items in it", self.znode + ": the items stay as they are")
        Setting.zookeeper.delete(self.znode)
        self.wait_told(member, self.znode + " cannot be read: no such node")
        self.assertEqual(member.ledger.owned, ["a", "b"])
        self.make("b", "c")
        wait_divided([member], ["b", "c"])
        self.assertEqual(member.errors.count("cannot be read"), 1, member)

    # It is followed by the next session, too, where one is lost.
    def test_session_lost(self):
        self.make("a", "b")
        member = self.member("--items-from-znode", self.znode, "--rejoin", "--session-timeout", "2s")
        wait_divided([member], ["a", "b"])
        Setting.server.do("pause", "1")
        try:
            wait_for(lambda: member.ledger.owned == [], "what it owned is lost", member)
        finally:
            Setting.server.do("resume", "1")
        wait_divided([member], ["a", "b"])
        self.make("c")
        wait_divided([member], ["a", "b", "c"])

    # Where there is none at the start, the member does not join.
    def test_none(self):
        member = self.member("--items-from-znode", self.znode)
        self.assertEqual(member.end(), 1, member)
        self.assertIn(self.znode + " cannot be read: no such node", member.errors)
        self.assertEqual(self.children("/party"), [])


class Status(Feed):
    # It shows the items of a command, and of a znode, that nobody owns.
    def test_expected(self):
        Setting.zookeeper.create(self.path + "/party", makepath=True)
        Setting.zookeeper.create(self.znode + "/x%2Fy", makepath=True)
        self.tell(["a", "b"])
        for arguments, items in ((["--items-from-command", "cat " + shlex.quote(self.source)], ["a", "b"]),
                                 (["--items-from-znode", self.znode], ["x/y"])):
            done = status("--path", self.path, "--json", *arguments)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertEqual([item["item"] for item in json.loads(done.stdout)["items"]], items)

    # A caller that ignores SIGCHLD, as some supervisors do, does not keep us from the end of the command.
    def test_ignored_sigchld(self):
        Setting.zookeeper.create(self.path + "/party", makepath=True)
        done = run_to_end(["env", "--ignore-signal=CHLD", Setting.divvy, "status", "--connect", Setting.server.connect,
                           "--path", self.path, "--json", "--items-from-command", "echo a"])
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual([item["item"] for item in json.loads(done.stdout)["items"]], ["a"])

    # With --watch they are looked at again; after a fault, which is told, the last ones are shown.
    def test_watch(self):
        Setting.zookeeper.create(self.path + "/party", makepath=True)
        self.tell(["a"])
        words = [Setting.divvy, "status", "--connect", Setting.server.connect, "--path", self.path, "--watch",
                 "--interval", "100ms", "--format", "{item}", "--items-from-command",
                 "cat " + shlex.quote(self.source)]
        with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
            process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=output, stderr=errors)
            try:
                wait_for(lambda: os.pread(output.fileno(), 1 << 20, 0).startswith(b"a\na\n"), "its item is shown")
                self.tell(["b"])
                wait_for(lambda: os.pread(output.fileno(), 1 << 20, 0).endswith(b"\nb\n"), "the other one is")
                self.tell("")
                wait_for(lambda: b"printed nothing" in os.pread(errors.fileno(), 1 << 20, 0), "the fault is told")
                shown = os.fstat(output.fileno()).st_size
                wait_for(lambda: os.fstat(output.fileno()).st_size > shown, "it goes on")
                self.assertTrue(os.pread(output.fileno(), 1 << 20, 0).endswith(b"\nb\n"))
            finally:
                process.terminate()
                self.assertEqual(process.wait(DEADLINE_S), 0)

    # What cannot be had is told, and the exit code is 1.
    def test_faults(self):
        for arguments, fragment in ((["--items-from-command", "exit 7"], "exited with 7"),
                                    (["--items-from-znode", self.znode], "cannot be read: no such node")):
            done = status("--path", self.path, *arguments)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn(fragment, done.stderr)

    # Items come by one way.
    def test_one_way(self):
        for words in (["--items-from-command", "x", "--item", "a"], ["--items-from-znode", "/x", "--items-from", "f"]):
            for subcommand in ("partition", "status"):
                self.assert_misused([subcommand, "--path", "/p", *words], "give one of --items-from")
        self.assert_misused(["partition", "--path", "/p", "--items-from-znode", "x"], "must be an absolute znode path")
        self.assert_misused(["partition", "--path", "/p", "--items-from-command", ""], "cannot be empty")
        self.assert_misused(["partition", "--path", "/p", "--item", "a", "--items-interval", "3s"],
                            "--items-interval is for --items-from-command")
        self.assertEqual(run("help", "partition").returncode, 0)


if __name__ == "__main__":
    main(__file__)
