#!/usr/bin/python3
"""The command `divvy` as its users drive it. SPDX-License-Identifier: Apache-2.0
Shows the command as a process: arguments, files, signals, pipes, exit codes, on a real server.
usage: test_command.py BUILD_FOLDER [TEST...]     a TEST is a name such as Pool.test_join
"""
import array
import datetime
import fcntl
import os
import re
import signal
import subprocess
import termios
import time
from unittest import mock

from command_harness import (DEADLINE_S, NOWHERE, Server, Setting, another_certificate, creators, main, no_credentials,
                             wait_for)
from partition_harness import Case, ITEMS, Member, run, wait_divided


class Usage(Case):
    # Wrong usage is told in one line that names the mistake and where help is, with exit code 2 and nothing on stdout.
    def test_usage_errors(self):
        good = ["partition", "--path", "/q", "--item", "a"]
        for arguments, fragment in (
                (["part"], 'subcommand "part"'),
                (["--nonsense"], 'option "--nonsense"'),
                (["help", "nonsense"], 'subcommand "nonsense"'),
                (["help", "partition", "x"], '"x"'),
                (["--version", "x"], '"x"'),
                (["partition"], "--path is missing"),
                (["partition", "--path", "/q"], "items are missing"),
                (["partition", "--path", "q", "--item", "a"], "--path must begin with a slash"),
                (["partition", "--path", "/q/", "--item", "a"], '"/q/"'),
                (["partition", "--path", "/q//r", "--item", "a"], '"/q//r"'),
                (good + ["--nonsense"], "--nonsense"),
                (good + ["-x"], "-x"),
                (good + ["word"], '"word"'),
                (good + ["--json=1"], "--json takes no value"),
                (good + ["--path", "/r"], "--path is given twice"),
                (good + ["--mode"], "--mode needs a value"),
                (good + ["--mode", "lazy"], "incremental, eager"),
                (good + ["--assign", "sticky"], "auto, round_robin, rendezvous"),
                (good + ["--acl", "all"], "auto, open, creator, readable"),
                (good + ["--acl", "creator"], "--auth-file"),
                (good + ["--auth-file", "/nonexistent"], "/nonexistent"),
                (good + ["--items-from", "/dev/null"], "not both"),
                (good + ["--identifier", ""], "identifier"),
                (good + ["--identifier", "a/b"], "identifier"),
                (good + ["--connect", "host:port"], "host:port"),
                (good + ["--connect", "host:1/relative/"], "host:1/relative/"),
                (good + ["--session-timeout", "99ms"], "100ms to 1h"),
                (good + ["--session-timeout", "61m"], "100ms to 1h"),
                (good + ["--ti", "1s"], "--ti"),
                (good + ["--nonsense\x1b[2J"], "--nonsense%1B[2J")):
            with self.subTest(arguments=arguments), no_credentials():
                self.assert_misused(arguments, fragment)

    # Help that was asked for goes to stdout with exit code 0; the command alone says on stderr what it can do, with 2.
    def test_help(self):
        alone = run()
        self.assertEqual((alone.returncode, alone.stdout), (2, ""))
        for arguments in (["help"], ["--help"], ["-h"]):
            self.assertEqual((run(*arguments).returncode, run(*arguments).stdout), (0, alone.stderr))
        self.assertIn("partition", alone.stderr)
        about = run("help", "partition")
        self.assertEqual(about.returncode, 0)
        self.assertEqual(run("partition", "--json", "--help").stdout, about.stdout)
        self.assertTrue(all(len(line) <= 120 for line in about.stdout.splitlines()))
        self.assertRegex(run("--version").stdout, r"\Adivvy [0-9]+\.[0-9]+\.[0-9]+\n\Z")
        with open("/dev/full", "w", encoding="utf-8") as full:
            self.assertEqual(run("help", stdout=full).returncode, 1)

    # A duration is a plain number with ms, s, m, h or nothing (seconds) behind it, in its option's range.
    def test_durations(self):
        for text, ms in (("1ms", 1), ("20ms", 20), ("0.02s", 20), ("0.02", 20), ("0.001m", 60), ("0.00001h", 36),
                         ("1.2ms", 2), ("0.0200000000001", 21), ("0020ms", 20)):
            with self.subTest(text):
                done = run("partition", "--path", "/q", "--item", "a", "--connect", NOWHERE, "--connect-timeout", text)
                self.assertEqual(done.returncode, 3, done.stderr)
                self.assertIn(" within %d ms" % ms, done.stderr)
        arguments = ["partition", "--path", "/q", "--item", "a", "--connect", NOWHERE, "--connect-timeout", "1ms",
                     "--time-boundary"]
        for text in ("0", "0ms", "4s", "86400", "86400s", "1440m", "24h", "86400000ms"):
            with self.subTest(text):
                self.assertEqual(run(*arguments, text).returncode, 3)
        for text in ("86401", "1440.001m", "24.0001h", "86400001ms", "9" * 40, "9" * 40 + "h"):
            with self.subTest(text):
                self.assert_misused(arguments + [text], "out of range")
        for text in ("", "ms", "4x", "4 s", " 4s", "4s ", "-1", "+1", "1e3", "0x10", ".5", "5.", "1.5.5", "1,5", "4S",
                     "nan", "inf", "4ss"):
            with self.subTest(text):
                self.assert_misused(arguments + [text], "is not a duration", "300ms")


class Items(Case):
    def owned_alone(self, **options):
        """What a member with these items owns when it is alone."""
        member = Member(self.path, *options.pop("arguments", []), items=options.pop("items", []), **options)
        wait_for(lambda: member.ledger.state == "ACQUIRED", "it owns its items", member)
        self.assertEqual(member.stop(), 0, member)
        return member.ledger.lines[1]["gained"]

    # A file's lines are the items, but for empty lines, comments, the CR of CRLF and a byte order mark.
    def test_file(self):
        path = self.file(b"\xef\xbb\xbf# a comment\r\nplain\r\n\r\n \t \n  spaces  \n #no comment\n\ttab\nlast")
        self.assertEqual(self.owned_alone(arguments=["--items-from", path]),
                         sorted(["plain", "  spaces  ", " #no comment", "\ttab", "last"]))

    # Blanks at the ends of an item are a part of it, with a warning: of one that is like another item but for them, if
    # there is such a one.
    def test_blanks(self):
        warning = "divvy: warning: %s: the item \"%s\" has blanks at its ends, which are part of it%s\n"
        path = self.file("q1\n q2\nq1 \nq3\t\n")
        for arguments, items, told in (
                (["--items-from", path], [], warning % (path + ", line 3", "q1 ",
                                                        '; "q1" is another item; 2 more items are '
                                                        "like that")),
                ([], ["a", "b "], warning % ("--item", "b ", "")), ([], ["a", "b", "c d"], "")):
            member = Member("%s/%d" % (self.path, len(told)), *arguments, items=items)
            wait_for(lambda member=member: member.ledger.state == "ACQUIRED", "it owns its items", member)
            self.assertEqual(member.stop(), 0, member)
            self.assertEqual(member.errors, told)
            if not items:
                self.assertEqual(member.ledger.lines[1]["gained"], [" q2", "q1", "q1 ", "q3\t"])

    # The name - stands for standard input.
    def test_stdin(self):
        self.assertEqual(self.owned_alone(arguments=["--items-from", "-"], stdin=b"one\n#\ntwo\n"), ["one", "two"])

    # A list that cannot be used is refused with the file, the line and the reason, before anything is begun.
    def test_bad_lists(self):
        for content, fragments in ((b"a\nb\n# c\na\n", ['"a" is given twice', "lines 1 and 4"]),
                                   (b"# nothing\n\n", ["no items"]),
                                   (b"a\nb\0c\n", ["line 2", "NUL"]),
                                   (b"a\n" + b"x" * 300000 + b"\n", ["line 2", "65536"]),
                                   (b"x\n" * 1 + b"\xff\n\xff\n", ['"%FF" is given twice'])):
            with self.subTest(content=content[:20]):
                path = self.file(content)
                self.assert_misused(["partition", "--path", "/q", "--items-from", path], path, *fragments, hint=False)
        self.assert_misused(["partition", "--path", "/q", "--items-from", "/nonexistent"], "/nonexistent", hint=False)
        self.assert_misused(["partition", "--path", "/q", "--items-from", "/"], "directory", hint=False)
        self.assert_misused(["partition", "--path", "/q", "--items-from", "/dev/zero"], "NUL", hint=False)
        self.assert_misused(["partition", "--path", "/q", "--item", "a", "--item", "a"], '"a"', hint=False)
        self.assert_misused(["partition", "--path", "/q", "--item", ""], "empty", hint=False)

    # Names that are not UTF-8 are percent-encoded, so that they can be had back; all others are printed as they are.
    def test_names(self):
        names = {b"plain": "plain", b"50%25": "50%25", "grün/✓ 🐝".encode(): "grün/✓ 🐝",
                 b".": ".", b"..": "..", b"\x01\x1b[1m\x7f": "\x01\x1b[1m\x7f", b"\xff": "%FF", b"a\xc3": "a%C3",
                 b"%41\xe2\xc3\xa9": "%2541%E2é", b"50%\xed\xa0\x80": "50%%ED%A0%80", b"\xc0\xaf": "%C0%AF",
                 b'"quoted\\': '"quoted\\'}
        owned = self.owned_alone(items=[os.fsdecode(name) for name in names])
        self.assertEqual(sorted(owned), sorted(names.values()))

    # Lines for people encode control characters and those that are not seen, so that a name can neither break a line
    # nor steer a terminal, nor look like another; in JSON the latter are escaped.
    def test_readable_names(self):
        member = Member(self.path, text=True,
                        items=["a\nFAILURE", "\x1b[2J", "\u0085", "\udcff", "é", "é\u202e\u200b"])
        wait_for(lambda: "ACQUIRED" in member.output, "it owns its items", member)
        self.assertEqual(member.stop(signal.SIGINT), 0, member)
        self.assertEqual(member.output.splitlines()[2],
                         "ACQUIRED    owned 6: %1B[2J, a%0AFAILURE, %C2%85, é, é%E2%80%AE%E2%80%8B, %FF")
        self.assertEqual(len(member.output.splitlines()), 8)
        self.assertEqual(member.output.splitlines()[-1], "FINISHED    owned 0")
        member = Member(self.path, items=["\u202e\u200b\U000e0041"])
        wait_for(lambda: member.ledger.state == "ACQUIRED", "it owns its items", member)
        self.assertEqual(member.stop(), 0, member)
        self.assertEqual(member.ledger.lines[1]["gained"], ["\u202e\u200b\U000e0041"])
        self.assertTrue(member.output.isascii())


class Pool(Case):
    def start(self, *names, arguments=()):
        return [Member(self.path, "--identifier", name, *arguments) for name in names]

    # Three members divide 24 items so that each has one owner, evenly, and leave nothing behind when they are told to.
    def test_divide(self):
        members = self.start("a", "b", "c")
        wait_divided(members)
        self.assertEqual([len(member.ledger.owned) for member in members], [8, 8, 8])
        for member, number in zip(members, (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)):
            self.assertEqual(member.stop(number), 0, member)
            self.assertEqual(member.ledger.lines[-1]["reason"], "finished")
            self.assertEqual(member.errors, "")
        self.assert_no_double_owner(members)
        self.assertEqual(self.nodes_left(), [])

    # A member that joins gets its share, for which only as many items move as must, and the rest keep their tokens.
    def test_join(self):
        members = self.start("red", "green", "blue")
        wait_divided(members)
        before = [dict(member.ledger.tokens) for member in members]
        begun = [len(member.ledger.lines) for member in members]
        members += self.start("amber")
        wait_divided(members)
        kept = 0
        for member, tokens, line_count in zip(members, before, begun):
            kept += sum(1 for item, token in member.ledger.tokens.items() if tokens.get(item) == token)
            released = [line for line in member.ledger.lines[line_count:] if line["revoked"]]
            self.assertEqual(len(released), 1, member)
            self.assertEqual(released[0]["state"], "RELEASE")
            self.assertEqual(member.states()[-3:], ["RELEASE", "ALLOCATING", "ACQUIRED"])
        self.assertGreaterEqual(kept, 16)
        self.assertEqual([len(member.ledger.owned) for member in members], [6, 6, 6, 6])
        self.assert_no_double_owner(members)

    # What a leaving member owned has other owners soon, each with a larger token, and it told so before it let go.
    def test_leave(self):
        members = self.start("a", "b", "c")
        wait_divided(members)
        leaver, tokens = members[0], dict(members[0].ledger.tokens)
        self.assertEqual(leaver.stop(), 0, leaver)
        for what in "leaving", "revoked", "lost":
            self.assertEqual(sorted(i for line in leaver.ledger.lines for i in line.get(what, []) if i in tokens),
                             sorted(tokens), what)
        self.assertEqual(leaver.ledger.lines[-1]["reason"], "finished")
        wait_divided(members[1:])
        now = {**members[1].ledger.tokens, **members[2].ledger.tokens}
        self.assertTrue(all(int(now[item]) > int(token) for item, token in tokens.items()))
        self.assert_no_double_owner(members)

    # The items of a member that is killed with -9 have owners again once its session has ended.
    def test_kill(self):
        members = self.start("a", "b", "c", arguments=["--session-timeout", "4s"])
        wait_divided(members)
        kept = [set(member.ledger.owned) for member in members]
        members[1].kill()
        wait_divided([members[0], members[2]])
        self.assertTrue(kept[0] <= set(members[0].ledger.owned) and kept[2] <= set(members[2].ledger.owned))
        self.assert_no_double_owner(members)

    # With kazoo's ways chosen, shares are sorted(items)[i::n], and a join revokes everything.
    def test_kazoo_ways(self):
        arguments = ["--mode", "eager", "--assign", "round_robin"]
        members = self.start("a", arguments=arguments)
        wait_divided(members)
        members += self.start("b", arguments=arguments)
        wait_divided(members)
        self.assertEqual([member.ledger.owned for member in members], [ITEMS[0::2], ITEMS[1::2]])
        self.assertIn(ITEMS, [line["revoked"] for line in members[0].ledger.lines])
        self.assert_no_double_owner(members)

    # A join counts once the pool has stood still for --time-boundary, a leave once it has for --leave-boundary.
    def test_boundaries(self):
        arguments = ["--time-boundary", "1s", "--leave-boundary", "1.5s", "--handover-timeout", "0"]
        members = self.start("a", "b", arguments=arguments)
        wait_divided(members)
        for member in members:
            self.assertGreaterEqual(member.ledger.lines[1]["time_ms"] - member.ledger.lines[0]["time_ms"], 1000)
        left_ms = time.time() * 1000
        self.assertEqual(members[0].stop(), 0)
        wait_divided(members[1:])
        gained = [line for line in members[1].ledger.lines if line["gained"]][-1]
        self.assertGreaterEqual(gained["time_ms"] - left_ms, 1500)

    # The time of each line is told by the wall clock, in both forms.
    def test_timestamps(self):
        begun = time.time()
        members = [Member(self.path, items=["x"]), Member(self.path + "/text", "--timestamps", items=["x"], text=True)]
        wait_for(lambda: members[0].ledger.state == "ACQUIRED" and "ACQUIRED" in members[1].output, "ready", *members)
        for line in members[0].ledger.lines:
            self.assertTrue(int(begun * 1000) <= line["time_ms"] <= time.time() * 1000, line)
        for line in members[1].output.splitlines():
            told = datetime.datetime.fromisoformat(line.split()[0]).timestamp()
            self.assertTrue(begun - 0.001 <= told <= time.time(), line)

    # A chroot in the connect string is created, and the pool made below it.
    def test_chroot(self):
        member = Member("/pool", items=["x"], connect=Setting.server.connect + self.path + "/deep")
        wait_for(lambda: member.ledger.state == "ACQUIRED", "it owns its item", member)
        self.assertEqual(len(Setting.zookeeper.get_children(self.path + "/deep/pool/locks/x")), 1)

    # A chroot behind each host is refused by every command that connects, in the option and in $DIVVY_CONNECT. It would
    # be made as one chroot with a comma in it, and shared only by processes that write their hosts alike.
    def test_chroot_behind_each_host(self):
        hosts = Setting.server.connect
        twice = "%s%s/x,%s%s/x" % (hosts, self.path, hosts, self.path)
        for words in (["partition", "--path", "/q", "--item", "a"], ["status", "--path", "/q"], ["lock", "l", "true"],
                      ["elect", "e", "true"], ["announce", "--role", "s", "--load", "1"], ["doctor"], ["locks", "l"],
                      ["explain", "--path", "/q", "a"], ["services", "s"], ["history", "--path", "/q"],
                      ["drain", "--path", "/q", "m"], ["serve", "--path", "/q"]):
            with self.subTest(words=words):
                self.assert_misused([words[0], "--connect", twice, *words[1:]], "once, behind the last host: h1:2181")
                with mock.patch.dict(os.environ, {"DIVVY_CONNECT": twice}):
                    self.assert_misused(words, "once, behind the last host: h1:2181")
        self.assertFalse(Setting.zookeeper.exists(self.path))

    # $DIVVY_CONNECT is where to connect to when --connect is not given.
    def test_environment(self):
        done = run("partition", "--path", "/q", "--item", "a", "--connect-timeout", "1ms",
                   env={"DIVVY_CONNECT": "127.0.0.1:2", "DIVVY_ENSEMBLE_TICK_MS": "100"})
        self.assertEqual(done.returncode, 3)
        self.assertIn(" 127.0.0.1:2 ", done.stderr)

    # With --verbose the log of the library goes to stderr, and stdout stays what it is.
    def test_verbose(self):
        member = Member(self.path, "--verbose", "--session-timeout", "7s", items=["x"])
        wait_for(lambda: member.ledger.state == "ACQUIRED", "it owns its item", member)
        self.assertEqual(member.stop(), 0)
        self.assertRegex(member.errors, r"(?m)^divvy: log info: connected: session 0x[0-9a-f]+, timeout 7000 ms$")
        self.assertTrue(all(line.startswith("divvy: log ") for line in member.errors.splitlines()), member)

    # Warnings go to stderr, with --json too.
    def test_warning(self):
        members = [Member(self.path, items=["x"]), Member(self.path, items=["x", "y"])]
        # It is the one whose items are not those that are divided.
        wait_for(lambda: any("divvy: warning: " in member.errors for member in members), "one warns", *members)


class Access(Case):
    # With credentials the nodes are for those who have them too; these share a pool, others fail, with exit code 1.
    def test_credentials(self):
        auth = ["--auth-file", self.file("user:secret word\n")]
        members = [Member(self.path, "--verbose", *auth), Member(self.path, *auth)]
        wait_divided(members)
        Setting.zookeeper.add_auth("digest", "user:secret word")
        acls, _ = Setting.zookeeper.get_acls(self.path + "/locks")
        self.assertEqual([(acl.id.scheme, acl.perms) for acl in acls], creators())
        with another_certificate():
            stranger = Member(self.path)
        self.assertEqual(stranger.end(), 1, stranger)
        self.assertEqual(stranger.ledger.lines[-1]["state"], "FAILURE")
        self.assertRegex(stranger.errors, r"(?m)^divvy: FAILURE: [^(]*: the access list of the node denies this$")
        self.assertEqual([member.stop() for member in members], [0, 0], members)
        self.assertNotIn("secret", members[0].errors + members[0].output)

    # With --acl readable anyone may read the nodes, with --acl open anyone may do anything.
    def test_acls(self):
        auth = ["--auth-file", self.file("user:secret\n")]
        members = [Member(self.path + "/" + acl, "--acl", acl, *auth, items=["x"]) for acl in ("readable", "open")]
        for member in members:
            wait_for(lambda member=member: member.ledger.state == "ACQUIRED", "it owns its item", member)
        readable, opened = (Setting.zookeeper.get_acls(self.path + "/" + acl)[0] for acl in ("readable", "open"))
        self.assertEqual([(acl.id.scheme, acl.perms) for acl in readable], creators(("world", 1)))
        self.assertEqual([(acl.id.scheme, acl.perms) for acl in opened], [("world", 31)])

    # A file of credentials must be one line of user:password; what is in it is never printed.
    def test_bad_files(self):
        for content in ("", "\n", "secret", ":secret", "user:secret\nsecret\n", "user:sec\0ret\n",
                        "user:" + "secret" * 1000):
            with self.subTest(content=content[:20]):
                path = self.file(content)
                self.assert_misused(["partition", "--path", "/q", "--item", "a", "--auth-file", path], path)
                self.assertNotIn("secret", run("partition", "--path", "/q", "--item", "a", "--auth-file", path).stderr)

    # A file of credentials that others can read or change is refused, with what to do; so by the subcommands that look.
    def test_exposed_files(self):
        path = self.file("user:secret\n")
        for mode in (0o604, 0o640, 0o644, 0o620, 0o666):
            with self.subTest(mode=oct(mode)):
                os.chmod(path, mode)
                for arguments in (["partition", "--path", "/q", "--item", "a"], ["status", "--path", "/q"]):
                    self.assert_misused(arguments + ["--auth-file", path], path, "mode 0%o" % mode, "chmod 600")
        for mode in (0o600, 0o400):
            os.chmod(path, mode)
            done = run("status", "--path", "/q", "--connect", NOWHERE, "--timeout", "100ms", "--auth-file", path)
            self.assertEqual(done.returncode, 3, done.stderr)  # it is taken: what fails is the connection


class Ends(Case):
    # When the session is lost for good the exit code is 1, the reason on stderr, and nothing owned in the last line.
    def test_session_lost(self):
        server = Server()
        self.addCleanup(server.do, "stop")
        member = Member(self.path, "--session-timeout", "3s", connect=server.connect)
        wait_divided([member])
        server.do("kill", "1")
        self.assertEqual(member.end(), 1, member)
        self.assertEqual(member.ledger.lines[-2]["lost"], ITEMS)
        self.assertEqual(member.ledger.lines[-2]["state"], "FAILURE")
        self.assertEqual(member.states()[-1], "FAILURE")
        self.assertIn(member.ledger.lines[-1]["reason"], member.errors)
        self.assertRegex(member.errors, r"(?m)^divvy: warning: the connection to .* is down")
        self.assertRegex(member.errors, r"(?m)^divvy: FAILURE: ")

    # A short outage is told on stderr and changes nothing else.
    def test_outage(self):
        server = Server()
        self.addCleanup(server.do, "stop")
        member = Member(self.path, "--session-timeout", "30s", connect=server.connect)
        wait_divided([member])
        lines = len(member.ledger.lines)
        server.do("kill", "1")
        wait_for(lambda: "is down" in member.errors, "it tells of the outage", member)
        server.do("restart", "1")
        wait_for(lambda: "is back" in member.errors, "it tells of the return", member)
        self.assertEqual(len(member.ledger.lines), lines, member)
        self.assertEqual(member.stop(), 0, member)

    # A share that is not complete within --allocate-timeout is a failure, with exit code 1.
    def test_allocate_timeout(self):
        Setting.zookeeper.create(self.path + "/locks/queue-01/other__lock__", ephemeral=True, sequence=True,
                                 makepath=True)
        member = Member(self.path, "--allocate-timeout", "500ms")
        self.assertEqual(member.end(), 1, member)
        self.assertIn("allocate_timeout", member.errors)
        self.assertEqual(len(self.nodes_left()), 1)

    # Servers that cannot be reached are told with the time and the place, with exit code 3, in the time that was given.
    def test_connect_timeout(self):
        for connect in (NOWHERE, "127.0.0.1:1,127.0.0.1:2/chroot"):
            begun = time.monotonic()
            member = Member(self.path, "--connect-timeout", "300ms", connect=connect)
            self.assertEqual(member.end(), 3, member)
            self.assertGreaterEqual(time.monotonic() - begun, 0.3)
            self.assertEqual(member.errors, "divvy: no ZooKeeper server answered at %s within 300 ms\n" % connect)
            self.assertEqual(member.states(), ["ALLOCATING", "FAILURE"])

    # Without --connect-timeout it goes on trying, tells so after 5 s, and takes part once a server is there.
    def test_late_server(self):
        server = Server()
        self.addCleanup(server.do, "stop")
        server.do("kill", "1")
        member = Member(self.path, connect=server.connect)
        wait_for(lambda: member.errors, "it tells that nobody answers", member)
        self.assertTrue(member.errors.startswith("divvy: no ZooKeeper server answered at " + server.connect), member)
        self.assertGreaterEqual(float(re.search(r" for ([0-9.]+) s; still trying\n\Z", member.errors)[1]), 5)
        server.do("restart", "1")
        wait_divided([member])
        self.assertRegex(member.errors, r"(?m)^divvy: connected after [0-9.]+ s$")

    # Told to end while no server was ever there, it ends at once, with exit code 0.
    def test_stop_unconnected(self):
        member = Member(self.path, connect=NOWHERE)
        wait_for(lambda: member.ledger.lines, "it has begun", member)
        self.assertEqual(member.stop(), 0, member)

    # Told to end while the server hangs, it gives up after a while, with a warning; told once more, it ends at once.
    def test_stop_hung(self):
        server = Server()
        self.addCleanup(server.do, "stop")
        members = [Member(self.path, connect=server.connect), Member(self.path, connect=server.connect)]
        wait_divided(members)
        server.do("pause", "1")
        for member in members: # To hand over, and then to end without.
            member.process.send_signal(signal.SIGINT)
            member.process.terminate()
        wait_for(lambda: members[0].ledger.lines[-1]["state"] == "FAILURE", "it ends", members[0])
        self.assertEqual(members[0].stop(), -signal.SIGTERM, members[0])
        self.assertEqual(members[1].end(), 0, members[1])
        self.assertRegex(members[1].errors, r"(?m)^divvy: warning: no server has confirmed within 5 s")
        server.do("resume", "1")

    # When the reader of its output goes, it leaves the pool, and what it owned has other owners: exit code 0.
    def test_reader_gone(self):
        member = Member(self.path)
        reader, writer = os.pipe()
        other = subprocess.Popen([Setting.divvy, "partition", "--connect", Setting.server.connect, "--path", self.path,
                                  "--items-from", self.file("\n".join(ITEMS)), "--time-boundary", "100ms", "--json"],
                                 stdout=writer, stderr=subprocess.PIPE)
        self.addCleanup(other.stderr.close)
        os.close(writer)
        wait_for(lambda: len(member.ledger.owned) == len(ITEMS) // 2, "they share", member)
        os.close(reader)
        self.assertEqual(other.wait(DEADLINE_S), 0, other.stderr.read())
        wait_divided([member])

    # Output that cannot be written is a failure with exit code 1; so is none at all.
    def test_output_failure(self):
        arguments = ["partition", "--connect", Setting.server.connect, "--path", self.path, "--item", "a"]
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = run(*arguments, stdout=full)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("standard output: No space left", done.stderr)
        closed = subprocess.run(["/bin/sh", "-c", 'exec "$@" >&-', "sh", Setting.divvy, *arguments],
                                stderr=subprocess.PIPE, timeout=DEADLINE_S, check=False)
        self.assertEqual((closed.returncode, closed.stderr), (1, b"divvy: standard output is closed\n"))
        self.assertEqual(self.nodes_left(), [])

    # A reader that does not read makes releasing wait, but ending it does not.
    def test_reader_stuck(self):
        # A tenth of them makes lines that are longer than what a pipe holds.
        items = ["a-queue-whose-name-is-rather-long-%04d" % number for number in range(1500)]
        path = self.file("\n".join(items))
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        stuck = subprocess.Popen([Setting.divvy, "partition", "--connect", Setting.server.connect, "--path", self.path,
                                  "--items-from", path, "--time-boundary", "0", "--json"],
                                 stdout=writer, stderr=subprocess.PIPE)
        self.addCleanup(stuck.stderr.close)
        os.close(writer)
        # Blocked in poll(2) with a full pipe: it has no room for another page.
        wait_for(lambda: pipe_bytes(reader) > 32768 and self.nodes_left(), "the pipe is full")
        stuck.terminate()
        self.assertEqual(stuck.wait(DEADLINE_S), 0, stuck.stderr.read())
        self.assertEqual(self.nodes_left(), [])


def pipe_bytes(reader):
    """How many bytes wait in the pipe."""
    count = array.array("i", [0])
    fcntl.ioctl(reader, termios.FIONREAD, count)
    return count[0]


if __name__ == "__main__":
    main(__file__)
