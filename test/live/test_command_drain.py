#!/usr/bin/python3
"""`divvy drain`. SPDX-License-Identifier: Apache-2.0

Shows what the command writes into a live pool's plan, and how it waits for it.

usage: test_command_drain.py BUILD_FOLDER [TEST...]     a TEST is a name such as Drain.test_drained
"""
import contextlib
import json
import re
import signal
import subprocess

from kazoo.exceptions import NoNodeError
from kazoo.security import make_acl, make_digest_acl

from command_harness import DEADLINE_S, NOWHERE, Setting, main, no_credentials, wait_for
from look_harness import Case, DivvyMember, KazooMember, command, run

ITEMS = ["item-%02d" % number for number in range(1, 13)]


class Drain(Case):
    def start(self, *identifiers, kind=DivvyMember, options=()):
        members = [kind(self.path, identifier, ITEMS, *options) for identifier in identifiers]
        for member in members:
            self.addCleanup(member.stop)
        return members

    def wait_divided(self, members):
        wait_for(lambda: all(member.acquired() for member in members) and
                 sorted(item for member in members for item in member.owned) == ITEMS, "all items are owned",
                 *[(member.identifier, member.state, member.owned) for member in members])

    def wait_loads(self, loads):
        """Of each member how many items."""
        wait_for(lambda: all(member.acquired() and len(member.owned) == load for member, load in loads.items()) and
                 sum(loads.values()) == len({item for member in loads for item in member.owned}), "the loads",
                 *[(member.identifier, load) for member, load in loads.items()])

    def generation(self):
        data = Setting.zookeeper.get(self.path + "/plan")[0].decode()
        return int(re.search(r'"generation":([0-9]+)', data).group(1))

    def drain(self, *arguments):
        """What a successful call says, in one line."""
        done = run("drain", "--path", self.path, *arguments)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        self.assertEqual(done.stdout.count("\n"), 1, done.stdout)
        return done.stdout.rstrip("\n")

    # A drained member has nothing, and stays; others take over what it had, keep what they have, and --undo gives it a
    # share again. What is so already writes nothing.
    def test_drained(self):
        members = a, b, c = self.start("a", "b", "c")
        self.wait_divided(members)
        kept = {member: set(member.owned) for member in (a, c)}
        before = self.generation()
        self.assertEqual(self.drain("b"), "b: weight 0 (before: 1000); 0 items by plan %d (before: 4)" % (before + 1))
        self.wait_loads({a: 6, b: 0, c: 6})
        for member in (a, c):
            self.assertLessEqual(kept[member], set(member.owned))
        self.assertEqual(self.drain("b"), "b: weight 0 already; 0 items by plan %d" % (before + 1))
        self.assertEqual(self.generation(), before + 1)
        self.assertEqual(self.drain("--undo", "b"),
                         "b: weight 1000 (before: 0); 4 items by plan %d (before: 0)" % (before + 2))
        self.wait_loads({a: 4, b: 4, c: 4})

    # --wait returns when others hold all that it had.
    def test_wait(self):
        members = a, b, c = self.start("a", "b", "c")
        self.wait_divided(members)
        had = set(b.owned)
        self.assertRegex(self.drain("--wait", "b"), r"\Ab: weight 0 \(before: 1000\); 0 items by plan ")
        locks = Setting.zookeeper
        session = {member.identifier: locks.exists(self.path + "/party/" + node).ephemeralOwner
                   for member in members for node in locks.get_children(self.path + "/party")
                   if node.split("-", 1)[1] == member.identifier}
        for item in had:
            self.assertIn(self.holder(item), (session["a"], session["c"]), item)
        # Once more: it is so at once.
        self.assertRegex(self.drain("--wait", "b"), r"\Ab: weight 0 already; 0 items by plan ")

    def holder(self, item):
        """The session that is first in the queue of an item."""
        locks = Setting.zookeeper
        places = sorted(locks.get_children(self.path + "/locks/" + item), key=lambda name: name[-10:])
        return locks.exists(self.path + "/locks/" + item + "/" + places[0]).ephemeralOwner

    # Where the plan limits moves, what is told is the whole change, and --wait waits for all of its rounds: for the
    # others at a drain, for the member itself at an undo.
    def test_rounds(self):
        members = a, b, c = self.start("a", "b", "c")
        self.wait_divided(members)
        self.assertEqual(run("set", "--path", self.path, "max-moves=1").returncode, 0)
        told = run("drain", "--path", self.path, "--dry-run", "b").stdout.split("\n")
        self.assertRegex(told[0], r"\Adry run: b: weight 0 \(before: 1000\); 0 items in the end, in rounds of 1 from "
                         r"plan [0-9]+ on \(before: 4\)\Z")
        self.assertEqual(sorted(line.split()[0] for line in told[2:-1]), sorted(b.owned))
        told = json.loads(run("drain", "--path", self.path, "--dry-run", "--json", "b").stdout)
        self.assertEqual((told["moved"], len(told["moves"]), told["rounds"], told["items"]), (4, 4, 4, 0))
        node = next(node for node in Setting.zookeeper.get_children(self.path + "/party") if node.endswith("-b"))
        session = Setting.zookeeper.exists(self.path + "/party/" + node).ephemeralOwner
        done = run("drain", "--path", self.path, "--wait", "b")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"\Ab: weight 0 .* in rounds of 1 from plan .*\n"
                         r"b: others hold all its items; 0 items by plan [0-9]+\n\Z")
        self.assertNotIn(session, [self.holder(item) for item in ITEMS])
        self.assertRegex(self.drain("--undo", "--wait", "b"), r"\Ab: weight 1000 \(before: 0\); 4 items in the end, in "
                         r"rounds of 1 from plan [0-9]+ on \(before: 0\)\Z")
        self.assertEqual([self.holder(item) for item in ITEMS].count(session), 4)

    # There is nothing to wait for at a member that is absent.
    def test_undo_of_absent(self):
        members = a, b = self.start("a", "b", options=("--rejoin-delay", "10m"))
        self.wait_divided(members)
        self.drain("--wait", "b")
        b.process.send_signal(signal.SIGKILL)
        b.stop()
        wait_for(lambda: re.search(r'"absent":"[1-9a-f]', Setting.zookeeper.get(self.path + "/plan")[0].decode()),
                 "the plan says that it is away")
        done = run("drain", "--path", self.path, "--undo", "--wait", "b")
        self.assertEqual((done.returncode, done.stderr), (1, "divvy: b is absent, so there is nothing to wait for: it "
                                                          "has items again when it is back\n"))
        self.assertRegex(done.stdout, r"\Ab: weight 1000 \(before: 0\); 0 items by plan ")

    # Any weight can be given: items follow it.
    def test_weight(self):
        members = a, b = self.start("a", "b")
        self.wait_divided(members)
        self.assertRegex(self.drain("--weight", "3000", "a"),
                         r"\Aa: weight 3000 \(before: 1000\); 9 items by plan [0-9]+ \(before: 6\)\Z")
        self.wait_loads({a: 9, b: 3})
        self.assertRegex(self.drain("--weight=0", "a"), r"\Aa: weight 0 \(before: 3000\); 0 items ")
        self.wait_loads({a: 0, b: 12})

    # The last one keeps its items, as there is nobody to take them, and its weight: the plan stays as it is.
    def test_last(self):
        members = a, b = self.start("a", "b")
        self.wait_divided(members)
        self.drain("--wait", "a")
        self.wait_loads({a: 0, b: 12})
        before = Setting.zookeeper.get(self.path + "/plan")
        for arguments in (["--wait"], []):
            self.assert_fails(1, ("drain", "--path", self.path, *arguments, "b"),
                              "b keeps its 12 items: no other member is left that weighs more than 0; "
                              "nothing was changed")
        self.assertEqual(Setting.zookeeper.get(self.path + "/plan"), before)
        self.drain("--undo", "a")
        self.wait_loads({a: 6, b: 6})

    @contextlib.contextmanager
    def waiting_drain(self, member, *options):
        """`drain --wait` of the member "a", which is stopped: it releases and takes nothing, so the wait goes on."""
        member.process.send_signal(signal.SIGSTOP)
        words = command("drain", "--path", self.path, "--wait", *options, "a")
        waiting = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True)
        try:
            self.assertRegex(waiting.stdout.readline(), r"\Aa: weight [0-9]+ \(before: [0-9]+\)")
            yield waiting
        finally:
            member.process.send_signal(signal.SIGCONT)
            if waiting.poll() is None:
                waiting.kill()
                waiting.communicate()

    # Where the others go while it waits, the member has its weight again.
    def test_last_while_waiting(self):
        members = a, b = self.start("a", "b")
        self.wait_divided(members)
        with self.waiting_drain(a) as waiting:
            b.process.send_signal(signal.SIGINT)  # It cannot hand over to a process that is stopped.
            b.stop()
            a.process.send_signal(signal.SIGCONT)
            _, errors = waiting.communicate(timeout=DEADLINE_S)
        self.assertEqual(waiting.returncode, 1, errors)
        self.assertIn("no member is left that weighs more than 0; its weight is what it was", errors)
        plan = Setting.zookeeper.get(self.path + "/plan")[0].decode()
        self.assertIn('"weight":1000', plan)
        wait_for(lambda: a.acquired() and len(a.owned) == 12, "it has all items")

    # Where somebody undoes the drain while it waits, there is nothing left to wait for.
    def test_undone_while_waiting(self):
        members = a, b = self.start("a", "b")
        self.wait_divided(members)
        with self.waiting_drain(a) as waiting:
            self.assertRegex(self.drain("--weight", "500", "a"), r"\Aa: weight 500 \(before: 0\)")
            _, errors = waiting.communicate(timeout=DEADLINE_S)
        self.assertEqual((waiting.returncode, errors), (1, "divvy: somebody has given a the weight 500\n"))
        wait_for(lambda: a.acquired() and len(a.owned) == 4, "it has the share of that weight")

    # Where somebody drains the member again while an undo waits, it will not have its items: that is said at once, also
    # where the plan limits moves. So it is where somebody gives it any other weight.
    def test_drained_while_undo_waits(self):
        members = a, b = self.start("a", "b")
        self.wait_divided(members)
        for moves, options, weight in ((0, (), 0), (1, (), 0), (1, ("--weight", "500"), 500)):
            with self.subTest(moves=moves, weight=weight):
                self.assertEqual(run("set", "--path", self.path, "max-moves=%d" % moves).returncode, 0)
                self.assertEqual(run("drain", "--path", self.path, "--wait", "a").returncode, 0)
                with self.waiting_drain(a, "--undo") as waiting:
                    self.assertRegex(self.drain(*options, "a"), r"\Aa: weight %d \(before: 1000\)" % weight)
                    _, errors = waiting.communicate(timeout=DEADLINE_S)
                self.assertEqual((waiting.returncode, errors),
                                 (1, "divvy: somebody has given a the weight %d\n" % weight))

    # Nor will it have them where it leaves the pool.
    def test_left_while_undo_waits(self):
        members = a, b = self.start("a", "b")
        self.wait_divided(members)
        self.drain("--wait", "a")
        with self.waiting_drain(a, "--undo") as waiting:
            a.process.send_signal(signal.SIGTERM)
            a.process.send_signal(signal.SIGCONT)
            _, errors = waiting.communicate(timeout=DEADLINE_S)
        self.assertEqual((waiting.returncode, errors),
                         (1, "divvy: a leaves the pool, so there is nothing to wait for\n"))

    # A limit of the waiting ends it, with a code of its own: a member whose process is stopped releases nothing.
    def test_wait_timeout(self):
        members = a, b = self.start("a", "b")
        self.wait_divided(members)
        a.process.send_signal(signal.SIGSTOP)
        try:
            done = run("drain", "--path", self.path, "--wait-timeout", "6s", "a")
        finally:
            a.process.send_signal(signal.SIGCONT)
        self.assertEqual(done.returncode, 4, done)
        self.assertRegex(done.stderr, r"\Adivvy: others do not hold all items of a within 6000 ms: "
                                      r"by the plan it has 0, and 6 "
                         r"wait for their owners\n\Z")
        self.wait_loads({a: 0, b: 12})

    # A member that is not there, and an identifier that several have, are told with those that there are.
    def test_whom(self):
        members = self.start("a", "b")
        self.wait_divided(members)
        self.assert_fails(1, ("drain", "--path", self.path, "x"),
                          "the pool %s has no member x; there are: a, b" % self.path)
        twin = self.start("b")
        wait_for(lambda: twin[0].acquired() and len(twin[0].owned) == 4, "the twin has its share")
        nodes = [node for node in Setting.zookeeper.get_children(self.path + "/party") if node.endswith("-b")]
        self.assertEqual(len(nodes), 2)
        self.assert_fails(1, ("drain", "--path", self.path, "b"), "several members", *nodes)
        self.assertRegex(self.drain(nodes[0]), r": weight 0 \(before: 1000\); 0 items ")
        wait_for(lambda: sorted([len(members[1].owned), len(twin[0].owned)]) == [0, 6], "one of them is drained")

    # A pool that follows no plan is told: no pool, nobody in it, a member of kazoo's.
    def test_no_plan(self):
        self.assert_fails(1, ("drain", "--path", self.path, "a"), "there is no pool at " + self.path)
        Setting.zookeeper.ensure_path(self.path + "/party")
        self.assert_fails(1, ("drain", "--path", self.path, "a"), "nobody is in the pool")
        divvy, kazoo = self.start("a") + self.start("k", kind=KazooMember)
        wait_for(lambda: divvy.acquired() and kazoo.acquired(), "both have a share")
        self.assert_fails(1, ("drain", "--path", self.path, "a"), "follows no plan", "its member k is kazoo's")

    # One whose members have a rule of names by choice is told so, too.
    def test_rule_of_names(self):
        words = command("partition", "--path", self.path, "--identifier", "a", "--item", "x", "--assign", "rendezvous")
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        try:
            wait_for(lambda: self.in_party() == 1, "it is in the party")
            self.assert_fails(1, ("drain", "--path", self.path, "a"), "follows no plan", "its member a")
        finally:
            process.terminate()
            process.wait(DEADLINE_S)

    def in_party(self):
        try:
            return len(Setting.zookeeper.get_children(self.path + "/party"))
        except NoNodeError:
            return 0

    # A chroot in --connect stands before the pool's path.
    def test_chroot(self):
        base, self.path = self.path, self.path + "/pool"
        members = a, b = self.start("a", "b")
        self.wait_divided(members)
        done = run("drain", "--path", "/pool", "--wait", "a", connect=Setting.server.connect + base)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        self.wait_loads({a: 0, b: 12})

    # A member that has just come is waited for: it is in the party before it is in the plan.
    def test_just_come(self):
        self.wait_divided(self.start("a"))
        late, = self.start("late")
        wait_for(lambda: self.in_party() == 2, "it is in the party")
        self.assertRegex(self.drain("late"), r"\Alate: weight 0 \(before: 1000\); 0 items ")
        wait_for(lambda: late.acquired() and not late.owned, "it has nothing")

    # Where the plan may not be written, that is the reason.
    def test_denied(self):
        members = self.start("a", "b")
        self.wait_divided(members)
        owner = self.client()
        owner.add_auth("digest", "owner:secret")
        owner.set_acls(self.path + "/plan", [make_digest_acl("owner", "secret", all=True),
                                             make_acl("world", "anyone", read=True)])
        self.assert_fails(1, ("drain", "--path", self.path, "a"), "may not be written")
        for member in members:
            self.assertEqual(len(member.owned), 6)

    # Wrong usage, and no server.
    def test_usage(self):
        here = ("drain", "--path", "/pool")
        self.assert_fails(2, ("drain", "a"), "--path is missing")
        self.assert_fails(2, here, "the member is missing")
        self.assert_fails(2, (*here, ""), "is empty")
        self.assert_fails(2, (*here, "a", "b"), "one member too many")
        self.assert_fails(2, (*here, "--undo", "--weight", "5", "a"), "not both")
        self.assert_fails(2, (*here, "--weight", "-1", "a"), "--weight")
        self.assert_fails(2, (*here, "--weight", "4294967296", "a"), "--weight")
        self.assert_fails(2, ("drain", "--path", "pool", "a"), "must begin with a slash")
        with no_credentials():
            self.assert_fails(2, (*here, "--acl", "creator", "a"), "need credentials")
        self.assert_fails(3, (*here, "--timeout", "200ms", "a"), "no ZooKeeper server answered", connect=NOWHERE)


if __name__ == "__main__":
    main(__file__)
