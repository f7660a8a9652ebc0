#!/usr/bin/python3
"""`divvy partition --sessions`: several members in one process. SPDX-License-Identifier: Apache-2.0

usage: test_command_sessions.py BUILD_FOLDER [TEST...]     a TEST is a name such as Sessions.test_share
"""
import json
import os
import signal

from command_harness import Setting, alive, check_by_promtool, children, main, run_to_end, wait_for
from death_watch_harness import close_session
from partition_harness import Ledger
from supervise_harness import Case, parent

ITEMS = ["item-%02d" % number for number in range(1, 25)]


class Process:
    """What the lines of a process say, for each of its members; a supervise_harness.Member reads them."""

    def __init__(self, member):
        self.member, self.used, self.ledgers = member, 0, {}

    def look(self):
        self.member.look()
        for line in self.member.lines[self.used:]:
            assert list(line)[-1] == "member", line
            if line["event"] != "child":
                name = line.pop("member")
                self.ledgers.setdefault(name, Ledger()).read(json.dumps(line))
                line["member"] = name
        self.used = len(self.member.lines)
        return self

    def owned(self, name=None):
        return sorted(item for one in self.look().ledgers if name in (None, one) for item in self.ledgers[one].owned)

    def states(self):
        return {name: ledger.state for name, ledger in self.look().ledgers.items()}

    def pids(self, name):
        """Of the commands that run at one member, by their items."""
        running = {}
        for line in self.member.look().children:
            if line["member"] == name and line["child"] == "started":
                running[line["item"]] = line["pid"]
            elif line["member"] == name and line["child"] in ("exited", "finished", "ended"):
                running.pop(line["item"], None)
        return running

    def wait(self, condition, what):
        wait_for(lambda: condition(self), what, self.member.look())
        return self

    def wait_owned(self, count):
        return self.wait(lambda me: len(me.owned()) == count and set(me.states().values()) == {"ACQUIRED"},
                         "it has %d items" % count)


class Sessions(Case):
    session_s = 60  # none ends because the machine is busy

    def setUp(self):
        super().setUp()
        self.processes = []
        self.addCleanup(self.check_lines)

    def check_lines(self):
        for process in self.processes:
            for name, ledger in process.look().ledgers.items():
                self.assertEqual(ledger.faults, [], (name, process.member))

    def start_process(self, *arguments, worker=True, items=ITEMS, **options):
        start = self.start_worker if worker else self.start
        member = start(*arguments, items=items, **options)
        member.ledger.read = lambda _: None  # it would take all lines for those of one member
        self.processes.append(Process(member))
        return self.processes[-1]

    def status(self):
        done = run_to_end([Setting.divvy, "status", "--connect", Setting.server.connect, "--path", self.path, "--json"])
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    # A process of two sessions has the share of one member, in two halves, each under a session of its own. Every line
    # says whose it is.
    def test_share(self):
        two = self.start_process("--sessions", "2", "--identifier", "two", "--weight", "1001", "--cap", "25",
                                 worker=False)
        one = self.start("--identifier", "one", "--weight", "1001", items=ITEMS)
        one.wait(lambda me: len(me.owned()) == 12 and me.states()[-1] == "ACQUIRED", "one has half")
        two.wait_owned(12)
        self.assertEqual(set(two.states()), {"two-1", "two-2"})
        # The shares are 6.006 and 5.994.
        self.assertIn([len(two.owned(name)) for name in ("two-1", "two-2")], ([6, 6], [7, 5]))
        self.assertEqual(sorted(two.owned() + one.owned()), ITEMS)
        status = self.status()
        self.assertEqual({row["identifier"]: (row["weight"], row.get("cap")) for row in status["plan"]["members"]},
                         {"one": (1001, None), "two-1": (501, 13), "two-2": (500, 12)})
        rows = {row["identifier"]: row for row in status["members"]}
        self.assertEqual({rows["two-1"]["pid"], rows["two-2"]["pid"]}, {two.member.pid})
        owners = {Setting.zookeeper.exists(self.path + "/party/" + node).ephemeralOwner
                  for node in children(self.path + "/party")}
        self.assertEqual(len(owners), 3)
        self.assertEqual((two.member.stop(), one.stop()), (0, 0))
        self.assertEqual(self.nodes_left(), [])

    # Commands run under both; at the end both hand over, and no item has two workers at any time.
    def test_commands(self):
        two = self.start_process("--sessions", "2", "--identifier", "two").wait_owned(24)
        two.wait(lambda me: len(me.member.of("started")) >= 24, "all are worked on")
        other = self.start_process("--sessions", "3")
        other.wait_owned(12)
        two.wait_owned(12)
        self.assertEqual(sorted(len(other.owned(name)) for name in other.states()), [4, 4, 4])
        self.assertEqual(two.member.stop(), 0)
        self.assertEqual(two.states(), {"two-1": "FAILURE", "two-2": "FAILURE"})
        self.assertEqual({line.get("reason") for line in two.member.lines
                          if line["event"] == "state" and line["state"] == "FAILURE"}, {"finished"})
        other.wait_owned(24)
        self.assertEqual(other.member.stop(), 0)
        self.assertEqual(self.nodes_left(), [])
        self.assert_one_at_a_time()
        self.assertEqual((two.member.text("err"), other.member.text("err")), ("", ""))

    # A guardian of one member is killed: its command ends, and is started again. Then its forker is killed, too: the
    # process ends. Meanwhile nothing happens to the commands of the other member, which come from another forker.
    def test_guardian_killed(self):
        two = self.start_process("--sessions", "2", "--identifier", "two", items=ITEMS[:8]).wait_owned(8)
        two.wait(lambda me: len(me.member.of("started")) == 8, "all are worked on")
        kept = dict(two.pids("two-2"))
        self.assertEqual(len(kept), 4)
        item, pid = sorted(two.pids("two-1").items())[0]
        forker = parent(parent(pid))
        os.kill(parent(pid), signal.SIGKILL)
        two.wait(lambda me: len(me.member.of("started", item)) == 2, "it is started again")
        self.assertFalse(alive(pid))
        self.assertEqual(two.pids("two-2"), kept)
        victims = list(two.pids("two-1").values())
        os.kill(forker, signal.SIGKILL)
        os.kill(parent(victims[0]), signal.SIGKILL)
        wait_for(lambda: not alive(victims[0]), "its command has ended", two.member)
        self.assertEqual(two.member.end(), 1)
        self.assertEqual({line["item"]: (line["pid"], line["reason"]) for line in two.look().member.of("ended")
                          if line["member"] == "two-2"}, {name: (kept[name], "leaving") for name in kept})
        self.assertIn("two-1: no more commands can be started", two.member.text("err"))
        self.assertFalse(any(map(alive, victims + list(kept.values()))))
        reasons = {line["member"]: line["reason"] for line in two.look().member.lines
                   if line["event"] == "state" and line["state"] == "FAILURE"}
        self.assertIn("another session", reasons["two-2"])
        self.assert_one_at_a_time()

    # The process is killed: all commands of both members end, and so do both sessions, at once and not in an hour.
    def test_killed(self):
        two = self.start_process("--sessions", "2", "--session-timeout", "1h", items=ITEMS[:4]).wait_owned(4)
        two.wait(lambda me: len(me.member.of("started")) == 4, "all are worked on")
        pids = [line["pid"] for line in two.member.of("started")]
        two.member.process.kill()
        wait_for(lambda: self.nodes_left() == [], "both sessions are over", two.member)
        self.assertFalse(any(map(alive, pids)))

    # One of two sessions is ended by somebody else: its commands end, and it takes part again. Those of the other
    # session go on.
    def test_session_lost(self):
        two = self.start_process("--sessions", "2", "--identifier", "two", "--handover-timeout", "0",
                                 items=ITEMS[:8]).wait_owned(8)
        two.wait(lambda me: len(me.member.of("started")) == 8, "all are worked on")
        kept = dict(two.pids("two-2"))
        victims = list(two.pids("two-1").values())
        node = self.path + "/locks/" + two.owned("two-1")[0]
        session = Setting.zookeeper.exists(node + "/" + children(node)[0]).ephemeralOwner

        def ended(_):
            if all(map(alive, victims)):
                close_session(Setting.server.plain, session)  # its client may have taken it back before it was closed
            return not any(map(alive, victims))
        two.wait(ended, "its commands have ended")
        two.wait(lambda me: "RELEASE" in [line["state"] for line in me.look().ledgers["two-1"].lines],
                 "the loss is told")
        two.wait_owned(8)
        self.assertEqual([len(two.owned(name)) for name in ("two-1", "two-2")], [4, 4])
        # Until the other member was back, and items moved to it, nothing of this one has ended.
        lines = [line for line in two.member.lines if line["member"] == "two-2"]
        moves = [number for number, line in enumerate(lines) if line.get("revoked")]
        ends = [number for number, line in enumerate(lines) if line.get("child") in ("ended", "exited", "finished")]
        self.assertTrue(all(number > moves[0] for number in ends), lines)
        moved = {item for line in lines for item in line.get("revoked", [])}
        self.assertEqual({item: pid for item, pid in two.pids("two-2").items() if item in set(kept) - moved},
                         {item: pid for item, pid in kept.items() if item not in moved})
        self.assertEqual(two.member.stop(), 0)

    # Static members find their items again, each its own.
    def test_static(self):
        arguments = ("--sessions", "2", "--identifier", "two", "--rejoin-delay", "1m")
        first = self.start_process(*arguments).wait_owned(24)
        before = {name: first.owned(name) for name in ("two-1", "two-2")}
        self.assertEqual(first.member.stop(), 0)
        again = self.start_process(*arguments).wait_owned(24)
        self.assertEqual({name: again.owned(name) for name in ("two-1", "two-2")}, before)
        replacing = self.start_process(*arguments, "--replace")
        replacing.member.process.kill()
        replacing.member.end()
        self.assertEqual(again.member.stop(), 0)

    # A later process of the identifier takes over from both.
    def test_replaced(self):
        arguments = ("--sessions", "2", "--identifier", "two", "--rejoin-delay", "1m", "--replace")
        first = self.start_process(*arguments).wait_owned(24)
        second = self.start_process(*arguments)
        self.assertEqual(first.member.end(), 0)
        self.assertIn("has the identifier two, and has taken over", first.member.text("err"))
        second.wait_owned(24)
        self.assertEqual(second.member.stop(), 0)
        self.assert_one_at_a_time()

    # SIGHUP reads the items once, for all.
    def test_items(self):
        listed = self.write("items", "\n".join(ITEMS[:8]))
        two = self.start_process("--sessions", "2", "--items-from", listed, items=()).wait_owned(8)
        self.write("items", "\n".join(ITEMS))
        two.member.process.send_signal(signal.SIGHUP)
        two.wait_owned(24)
        self.assertEqual(two.member.text("err").count("asked for its 24 items"), 1)
        self.assertEqual(two.member.stop(), 0)

    # A member is drained as any other: the rest of the process has its items.
    def test_drained(self):
        two = self.start_process("--sessions", "2", "--identifier", "two").wait_owned(24)
        done = run_to_end([Setting.divvy, "drain", "--connect", Setting.server.connect, "--path", self.path, "--wait",
                           "two-1"])
        self.assertEqual(done.returncode, 0, done.stderr)
        two.wait(lambda me: (len(me.owned("two-1")), len(me.owned("two-2"))) == (0, 24), "the other one has all")
        self.assertEqual(two.member.stop(), 0)
        self.assert_one_at_a_time()

    # Each session has a file of metrics, with its number; loads are measured under each.
    def test_metrics(self):
        two = self.start_process("--sessions", "2", "--metrics", self.file_name("m.prom"), "--balance", "cpu",
                                 "--load-interval", "1s").wait_owned(24)
        files = [self.file_name("m-%d.prom" % number) for number in (1, 2)]
        wait_for(lambda: all('state="acquired"} 1' in "\n".join(self.read(name)) for name in files), "they are written")
        for name in files:
            check_by_promtool(name)
        samples = [line.rsplit(" ", 1)[0] for name in files for line in self.read(name) if not line.startswith("#")]
        self.assertEqual(len(samples), len(set(samples)))
        self.assertFalse(os.path.exists(self.file_name("m.prom")))
        self.assertEqual(two.member.stop(), 0)

    # For people a line begins with its member, and so does what is said of a session.
    def test_readable(self):
        done = run_to_end([Setting.divvy, "partition", "--connect", "127.0.0.1:1", "--path", self.path, "--item", "a",
                           "--ensemble-tick", "100ms", "--sessions", "2", "--identifier", "two", "--connect-timeout",
                           "200ms"])
        self.assertEqual(done.returncode, 3)
        self.assertEqual(done.stderr, "divvy: two-1: no ZooKeeper server answered at 127.0.0.1:1 within 200 ms\n")
        lines = done.stdout.splitlines()
        self.assertEqual(lines[:2], ["two-1  ALLOCATING  owned 0", "two-2  ALLOCATING  owned 0"])
        self.assertEqual(sorted(line.split("  ")[0] for line in lines), ["two-1"] * 2 + ["two-2"] * 2)

    # A share that does not fit one session, with names of 2,900 bytes that fill it like 10,000 short ones: the warning,
    # status and doctor say how many items that are, and how many sessions hold all. With these nothing is said.
    def test_short(self):
        listed = self.write("items", "\n".join("%s-%03d" % ("n" * 2900, number) for number in range(500)))
        arguments = ("--items-from", listed, "--identifier", "one")
        look = ("--connect", Setting.server.connect, "--path", self.path)
        doctor = [Setting.divvy, "doctor", "--server-timeout", "30s", "--timeout", "50s", *look]
        one = self.start(*arguments, items=())
        one.wait(lambda me: "do not fit" in me.text("err") and me.states()[-1] == "ACQUIRED", "it is warned")
        fits = len(one.owned())
        self.assertTrue(320 <= fits < 360, fits)
        self.assertIn("%d of the 500 items of this member's share do not fit its session" % (500 - fits),
                      one.text("err"))
        self.assertIn("or sessions, 2 in all for this share", one.text("err"))
        shown = run_to_end([Setting.divvy, "status", "--wide", *look]).stdout
        self.assertIn("full: the session of one holds %d of the 500 items of its share, and has no room for more; "
                      "start more members, or it with --sessions 2;" % fits, shown)
        row = self.status()["members"][0]
        self.assertEqual((row["items"], row["short"]), (fits, 500 - fits))
        self.assertTrue(1020000 < row["path_bytes"] <= 1048576, row)
        found = run_to_end(doctor).stdout
        self.assertRegex(found, r"limits +one: its session holds %d items" % fits)
        self.assertIn("%d more items of its share stay unowned" % (500 - fits), found)
        self.assertIn("or divvy partition --sessions 2; or divide fewer, larger items: divvy help bucket", found)
        self.assertIn("its session has no room for them", found)
        self.assertEqual(one.stop(), 0)

        two = self.start_process(*arguments, "--sessions", "2", worker=False, items=()).wait_owned(500)
        self.assertNotIn("fit", two.member.text("err"))
        self.assertNotIn("full:", run_to_end([Setting.divvy, "status", *look]).stdout)
        self.assertEqual({(row["items"], row["short"]) for row in self.status()["members"]}, {(250, 0)})
        self.assertNotIn("unowned", run_to_end(doctor).stdout)
        self.assertEqual(two.member.stop(), 0)

    # What cannot be divided is refused.
    def test_usage(self):
        base = [Setting.divvy, "partition", "--path", "/x", "--item", "a"]
        for arguments, message in ((["--sessions", "0"], "--sessions"), (["--sessions", "65"], "--sessions"),
                                   (["--sessions", "3", "--weight", "2"], "--weight is smaller than --sessions"),
                                   (["--sessions", "3", "--cap", "2"], "--cap is smaller than --sessions"),
                                   (["--sessions", "2", "--assign", "round_robin"], "follows a plan")):
            done = run_to_end(base + arguments)
            self.assertEqual((done.returncode, done.stdout), (2, ""), arguments)
            self.assertIn(message, done.stderr)


if __name__ == "__main__":
    main(__file__)
