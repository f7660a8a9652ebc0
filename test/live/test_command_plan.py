#!/usr/bin/python3
"""`divvy plan`. SPDX-License-Identifier: Apache-2.0

Shows what the command foresees for members that are made up, and for live pools, where it then happens.

usage: test_command_plan.py BUILD_FOLDER [TEST...]     a TEST is a name such as Pool.test_rounds
"""
import collections
import json

from kazoo.security import make_digest_acl

from command_harness import NOWHERE, Setting, main, wait_for
from look_harness import Case, DivvyMember, KazooMember, run, tree

ITEMS = ["item-%02d" % number for number in range(1, 13)]


class Model(Case):
    def plan(self, members, items, *arguments):
        path = self.file("\n".join("item-%05d" % number for number in range(items)))
        return self.shown("plan", "--members", str(members), "--items-from", path, "--verbose", *arguments)

    def check(self, plan, members, items, join, leave):
        """What is true of every plan."""
        rows = plan["members"]
        self.assertEqual([row["identifier"] for row in rows],
                         ["member-%d" % (number + 1) for number in range(members + join)])
        self.assertEqual([row["before"] is None for row in rows], [False] * members + [True] * join)
        self.assertEqual([row["after"] is None for row in rows], [True] * leave + [False] * (members + join - leave))
        for key, count in (("before", members), ("after", members + join - leave)):
            loads = [row[key] for row in rows if row[key] is not None]
            self.assertEqual(sum(loads), items)
            self.assertLessEqual({items // count, items // count + bool(items % count)} | set(loads),
                                 {items // count, items // count + 1})
        for row in rows:
            self.assertEqual((row["before"] or 0) + row["gains"] - row["loses"], row["after"] or 0)
        self.assertEqual(len(plan["moved"]), plan["moves"])
        self.assertTrue(all(move["from"] != move["to"] for move in plan["moved"]))
        self.assertEqual(collections.Counter(move["from"] for move in plan["moved"]),
                         collections.Counter({row["identifier"]: row["loses"] for row in rows if row["loses"]}))
        self.assertEqual(sum(row["gains"] for row in rows), plan["moves"])
        self.assertLessEqual(plan["floor"], plan["moves"])

    # Every plan adds up for all joins and leaves; the floor of a join is floor(K / (M + 1)) where loads were even, of
    # a leave what the leaver had.
    def test_sums(self):
        for assign in ("plan", "rendezvous", "round_robin", "sticky"):
            for members, items, join, leave in ((3, 24, 1, 0), (3, 24, 0, 1), (4, 10, 2, 1), (2, 1, 3, 0),
                                                (5, 100, 0, 0),
                                                (1, 7, 1, 1), (7, 100, 0, 3)):
                with self.subTest(assign=assign, members=members, items=items, join=join, leave=leave):
                    plan = self.plan(members, items, "--join", str(join), "--leave", str(leave), "--assign", assign)
                    self.check(plan, members, items, join, leave)
                    if (join, leave) == (1, 0):
                        self.assertEqual(plan["floor"], items // (members + 1))
                    if join == 0:
                        self.assertEqual(plan["floor"], sum(row["before"] for row in plan["members"][:leave]))
                    self.assertEqual((plan["assign"], plan["max_moves"]), (assign, 0))
                    self.assertEqual(plan["rounds"], int(plan["moves"] > 0))
                    if assign in ("plan", "sticky"):
                        self.assertEqual(plan["moves"], plan["floor"])

    # Round robin is kazoo's sorted(items)[i::n], whose members are sorted as strings.
    def test_round_robin(self):
        plan = self.plan(11, 50, "--join", "1", "--assign", "round-robin")
        items = ["item-%05d" % number for number in range(50)]

        def owners(count):
            members = sorted("member-%d" % (number + 1) for number in range(count))
            return {item: members[number % count] for number, item in enumerate(items)}
        before, after = owners(11), owners(12)
        self.assertEqual(plan["moved"], [{"item": item, "from": before[item], "to": after[item]} for item in items
                                         if before[item] != after[item]])

    # Rendezvous moves little more than must be.
    def test_rendezvous(self):
        plan = self.plan(100, 10000, "--join", "1", "--assign", "rendezvous")
        self.assertEqual(plan["floor"], 10000 // 101)
        self.assertLess(plan["moves"], 4 * plan["floor"])

    # For people: a summary, a line a member, and with --verbose a line a move.
    def test_page(self):
        arguments = ["plan", "--members", "2", "--join", "1", "--item", "b", "--item", "a", "--item", "c", "--assign",
                     "round_robin"]
        self.assertEqual(run(*arguments).stdout.splitlines(), [
            "3 items by round_robin: from 2 to 3 members",
            "1 item moves (33.3 %); the least that can be is 1",
            "the fullest member has 1.33 of its share before, 1.00 after",
            "",
            "MEMBER    BEFORE  AFTER  GAINS  LOSES",
            "member-1       2      1      0      1",
            "member-2       1      1      0      0",
            "member-3   joins      1      1      0"])
        self.assertEqual(run(*arguments, "--verbose").stdout.splitlines()[-3:], [
            "", "ITEM  FROM      TO", "c     member-1  member-3"])
        self.assertEqual(run(*arguments, "--leave", "1").stdout.splitlines()[5].split(),
                         ["member-1", "2", "leaves", "0", "2"])

    # A member that is drained has nothing, others have by their weights, and who joins may have one, too.
    def test_weights(self):
        for assign in ("plan", "sticky"):
            plan = self.plan(4, 24, "--assign", assign, "--drain", "member-1", "--weight", "member-2=2000")
            self.assertEqual([row["after"] for row in plan["members"]], [0, 12, 6, 6])
            self.assertEqual([row["weight"] for row in plan["members"]], [0, 2000, 1000, 1000])
            self.assertEqual((plan["moves"], plan["floor"], plan["balance"]), (6, 6, {"before": 1, "after": 1}))
        plan = self.plan(2, 12, "--join=1", "--weight=member-3=4000", "--leave=1")
        self.assertEqual([(row["weight"], row["after"]) for row in plan["members"]],
                         [(None, None), (1000, 3), (4000, 9)])
        # 3 of 4 items at one of two members of equal weight are 1.5 of its share.
        balance = self.plan(2, 4, "--weight", "member-1=3000", "--join", "0")["balance"]
        self.assertEqual(balance, {"before": 1, "after": 1})
        self.assertEqual(self.plan(2, 3)["balance"], {"before": 1.3333, "after": 1.3333})

    # With a limit of moves it comes about in rounds, which end where one without does; what leavers had moves at once.
    def test_rounds(self):
        whole = self.plan(4, 24, "--drain", "member-1")
        self.assertEqual((whole["moves"], whole["rounds"]), (6, 1))
        for most, rounds in ((1, 6), (2, 3), (4, 2), (6, 1)):
            plan = self.plan(4, 24, "--drain", "member-1", "--max-moves", str(most))
            self.assertEqual((plan["max_moves"], plan["rounds"], plan["moves"], plan["floor"]), (most, rounds, 6, 6))
            self.assertEqual([row["after"] for row in plan["members"]], [0, 8, 8, 8])
        self.assertEqual(self.plan(4, 24, "--leave", "1", "--max-moves", "1")["rounds"], 1)
        page = run("plan", "--members", "2", "--drain", "member-1", "--max-moves", "1", "--item", "a", "--item", "b",
                   "--item", "c", "--item", "d").stdout.splitlines()
        self.assertEqual(page[:3], ["4 items by plan: from 2 to 2 members",
                                    "2 items move (50.0 %); the least that can be is 2",
                                    "in 2 rounds of at most 1; items of members that leave go at once"])

    # By loads the first deal is by count, and then evens out as pools do; what joins takes load, not items. Lines of
    # other items are passed over; items without a line have the mean, and that is told.
    def test_loads(self):
        items = ["item-%05d" % number for number in range(200)]
        loads = self.file("".join("%s %.3f\n" % (item, 1000 / rank) for rank, item in enumerate(items, 1)) +
                          "other x\n", "loads")
        plan = self.plan(4, 200, "--join", "1", "--loads", loads)
        self.assertLess(plan["balance"]["before"], 1.2)
        self.assertLess(plan["balance"]["after"], 1.25)
        self.assertEqual((plan["floor"], plan["unowned"], len(plan["moved"])), (None, 0, plan["moves"]))
        joins = plan["members"][4]
        self.assertEqual((joins["share_before"], joins["gains"]), (None, joins["after"]))
        self.assertGreater(joins["share_after"], 0.85)
        moved = sum(1000 / (items.index(move["item"]) + 1) for move in plan["moved"])
        self.assertAlmostEqual(plan["moved_load"], moved / sum(1000 / (n + 1) for n in range(200)), delta=0.05)
        words = ["plan", "--members", "2", "--item", "a", "--item", "b"]
        done = run(*words, "--loads", self.file("a 5\n"))
        self.assertIn("of the load before, 1.00 after\n", done.stdout)
        self.assertRegex(done.stderr, r"\Adivvy: warning: --loads .*: 1 of 2 items have no line, .* first is b\n\Z")
        for content, fragment in (("a x", 'the load of a is no number: "x"'), ("a -1", "is below 0"),
                                  ("b inf", "the load of b is not finite"), ("c 1", "no line has a load of any"),
                                  ("", "no line has a load of any")):
            with self.subTest(content):
                done = run(*words, "--loads", self.file(content))
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertIn(fragment, done.stderr)

    # Wrong usage is told in one line, with exit code 2; so is a list that cannot be used.
    def test_usage(self):
        good = ["plan", "--members", "2", "--item", "a"]
        for arguments, fragment in (
                (["plan", "--item", "a"], "--members is missing"),
                (["plan", "--members", "2"], "items are missing"),
                (["plan", "--members", "0", "--item", "a"], '"0"'),
                (["plan", "--members", "x", "--item", "a"], '"x"'),
                (["plan", "--members", "10001", "--item", "a"], "10000"),
                (good + ["--leave", "3"], "--leave"),
                (good + ["--leave", "2"], "nobody"),
                (good + ["--leave", "member-1"], '"member-1" is not a number'),
                (good + ["--leave", "1", "--leave", "1"], "--leave is given twice"),
                (good + ["--weight", "member-1"], '"member-1" is not MEMBER=W'),
                (good + ["--weight", "member-1=-1"], "is not MEMBER=W"),
                (good + ["--weight", "member-1=4294967296"], "is not MEMBER=W"),
                (good + ["--weight", "=1"], "name is empty"),
                (good + ["--weight", "member-3=1"], 'no member "member-3"; there are member-1 to member-2'),
                (good + ["--weight", "member-1=1", "--drain", "member-1"], 'weight of "member-1" is given twice'),
                (good + ["--leave", "1", "--drain", "member-1"], "member-1 leaves by --leave"),
                (good + ["--drain", "member-1", "--drain", "member-2"], "nobody would be left that weighs more"),
                (good + ["--assign", "rendezvous", "--drain", "member-1"], "only plan and sticky heed weights"),
                (good + ["--assign", "sticky", "--max-moves", "1"], "--max-moves is for --assign plan"),
                (good + ["--zone", "z"], "--zone is for a live pool"),
                (good + ["--tags", "ssd"], "--tags and --cap are for a live pool"),
                (good + ["--cap", "3"], "--tags and --cap are for a live pool"),
                (good + ["--loads", "x", "--assign", "sticky"], "only a plan heeds loads"),
                (good + ["--connect", "nowhere:1"], "no server is asked"),
                (good + ["--assign", "auto"], "rendezvous"),
                (good + ["--items-from", "/dev/null"], "not both"),
                (good + ["word"], '"word"')):
            with self.subTest(arguments=arguments):
                self.assert_fails(2, arguments, fragment)
        done = run("plan", "--members", "1", "--items-from", "/nonexistent")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("/nonexistent", done.stderr)
        self.assert_fails(1, good + ["--join", "9999"], "more members than a plan can have")


class Pool(Case):
    """A live pool: what is foreseen is what then happens."""

    def start(self, *identifiers, options=()):
        members = [DivvyMember(self.path, identifier, ITEMS, *options) for identifier in identifiers]
        for member in members:
            self.addCleanup(member.stop)
        return members

    def owners(self):
        """By item, as status shows them."""
        return {item["item"]: item["owner"] for item in self.shown("status", "--path", self.path)["items"]}

    def wait_loads(self, **loads):
        """Until status shows each member with so many items, and the plan has settled."""
        wanted = {name: load for name, load in loads.items() if load}

        def reached():
            done = run("status", "--path", self.path, "--json")
            page = json.loads(done.stdout) if done.returncode == 0 else {}
            entries = {entry["identifier"] for entry in (page.get("plan") or {}).get("members", [])
                       if entry["state"] not in ("leaving", "left", "gone", "absent")}
            return entries == set(loads) and collections.Counter(item["owner"] for item in page["items"]) == wanted
        wait_for(reached, "the loads", loads)

    def foreseen(self, *arguments):
        """A forecast, and the owners that it comes to."""
        owners = self.owners()
        seen = self.shown("plan", "--path", self.path, "--verbose", *arguments)
        self.assertEqual((seen["assign"], seen["path"], seen["settled"], seen["items"]),
                         ("plan", self.path, True, len(ITEMS)))
        self.assertEqual(seen["generation"], self.shown("status", "--path", self.path)["plan"]["generation"])
        loads = collections.Counter(owners.values())
        self.assertEqual({row["identifier"]: row["before"] for row in seen["members"] if row["before"] is not None},
                         {row["identifier"]: loads[row["identifier"]] for row in seen["members"]
                          if row["before"] is not None})
        for move in seen["moved"]:
            self.assertEqual(owners[move["item"]], move["from"])
            owners[move["item"]] = move["to"]
        loads = collections.Counter(owners.values())
        for row in seen["members"]:
            self.assertEqual(row["after"] or 0, loads[row["identifier"]])
        self.assertEqual(len(seen["moved"]), seen["moves"])
        return seen, owners

    # Members join, leave, are drained, and have other weights: each item goes where it was foreseen to.
    def test_comes_true(self):
        _, b, _ = self.start("a", "b", "c")
        self.wait_loads(a=4, b=4, c=4)
        seen, owners = self.foreseen("--join", "1")
        self.assertEqual((seen["moves"], seen["floor"], seen["rounds"]), (3, 3, 1))
        self.assertEqual([row["identifier"] for row in seen["members"]], ["a", "b", "c", "new-1"])
        self.start("d")
        self.wait_loads(a=3, b=3, c=3, d=3)
        self.assertEqual(self.owners(), {item: "d" if owner == "new-1" else owner for item, owner in owners.items()})

        seen, owners = self.foreseen("--leave", "b")
        self.assertEqual((seen["moves"], seen["floor"], seen["rounds"]), (3, 3, 1))
        b.stop()
        self.wait_loads(a=4, c=4, d=4)
        self.assertEqual(self.owners(), owners)

        for wish, change, loads in ((["--drain", "c"], ["c"], {"a": 6, "c": 0, "d": 6}),
                                    (["--weight", "c=2000"], ["--weight", "2000", "c"], {"a": 3, "c": 6, "d": 3}),
                                    (["--weight", "c=1000"], ["--undo", "c"], {"a": 4, "c": 4, "d": 4})):
            with self.subTest(wish=wish):
                seen, owners = self.foreseen(*wish)
                self.assertEqual(seen["moves"], seen["floor"])
                self.assertEqual({row["identifier"]: row["after"] for row in seen["members"]}, loads)
                run_good = run("drain", "--path", self.path, *change)
                self.assertEqual(run_good.returncode, 0, run_good.stderr)
                self.wait_loads(**loads)
                self.assertEqual(self.owners(), owners)

    # The pool's limit of moves makes rounds of it, which end where they were foreseen to.
    def test_rounds(self):
        self.start("a", "b", "c", options=["--max-moves", "2"])
        self.wait_loads(a=4, b=4, c=4)
        seen, owners = self.foreseen("--drain", "b")
        self.assertEqual((seen["max_moves"], seen["rounds"], seen["moves"]), (2, 2, 4))
        self.assertEqual(run("drain", "--path", self.path, "b").returncode, 0)
        self.wait_loads(a=6, b=0, c=6)
        self.assertEqual(self.owners(), owners)
        seen, owners = self.foreseen("--weight", "b=1000") # The last round is over, and keeps nobody waiting.
        self.assertEqual((seen["rounds"], seen["moves"]), (2, 4))
        self.assertEqual(run("drain", "--path", self.path, "--undo", "b").returncode, 0)
        self.wait_loads(a=4, b=4, c=4)
        self.assertEqual(self.owners(), owners)

    # Nobody waits for a static member that is said to leave: so it is once its delay has passed.
    def test_static(self):
        members = self.start("a", "b", "c", options=["--rejoin-delay", "1s"])
        self.wait_loads(a=4, b=4, c=4)
        _, owners = self.foreseen("--leave", "b")
        members[1].stop()
        self.wait_loads(a=6, c=6)
        self.assertEqual(self.owners(), owners)

    # What is kept for a member that is absent stays, unless that is said to leave. To ask changes nothing.
    def test_absent(self):
        self.make_pool(("a", "c"), [("a", False), ("b", True), ("c", False)], ITEMS[:6], "001122")
        there = tree(self.path)
        for arguments, before, after in ((["--leave", "c"], [2, 2, 2], [4, 2, None]),
                                         (["--leave", "b"], [2, 2, 2], [3, None, 3]),
                                         ([], [2, 2, 2], [2, 2, 2])):
            seen = self.shown("plan", "--path", self.path, *arguments)
            self.assertTrue(seen["settled"])
            self.assertEqual([row["before"] for row in seen["members"]], before)
            self.assertEqual([row["after"] for row in seen["members"]], after)
            self.assertEqual(seen["floor"], seen["moves"])
        self.assertEqual(tree(self.path), there)

    # Who joins has the zone that it is given: zones share equally.
    def test_zones(self):
        self.start("a", "b", options=["--zone", "east"])
        self.wait_loads(a=6, b=6)
        seen, _ = self.foreseen("--join", "1", "--zone", "east")
        self.assertEqual([row["after"] for row in seen["members"]], [4, 4, 4])
        seen, _ = self.foreseen("--join", "1", "--zone", "west")
        self.assertEqual([row["after"] for row in seen["members"]], [3, 3, 6])
        done = run("plan", "--path", self.path, "--join", "1")
        self.assertEqual(done.returncode, 0)
        self.assertIn("have zones, and those that join have none; give --zone", done.stderr)

    # A plan that still has a member who has gone is carried on first. Names that are taken are passed over, and of two
    # members of one name the node says which.
    def test_made_up(self):
        self.make_pool(("a", "new-1"), [("a", False), ("new-1", True), ("a", False), ("c", False)], ITEMS[:9],
                       "000111233")
        arguments = ("plan", "--path", self.path)
        self.assertIn("this plan is not carried out yet", run(*arguments).stdout)
        seen = self.shown(*arguments, "--join", "1")
        self.assertFalse(seen["settled"])
        self.assertEqual([(row["identifier"], row["before"]) for row in seen["members"]],
                         [("a", 3), ("a", 3), ("new-1", 3), ("new-2", None)])
        self.assert_fails(1, (*arguments, "--leave", "b"), "has no member b; there are: a, a, new-1")
        node = "0000000000%d000000000001,a=2,s=00000000-a"
        self.assert_fails(1, (*arguments, "--drain", "a"), "several members", "are a; say which by its node: ",
                          node % 1 + ", " + node % 3)
        seen = self.shown(*arguments, "--drain", node % 3)
        self.assertEqual([row["weight"] for row in seen["members"]], [1000, 0, 1000])

    # Items without an owner, as all members are at their caps, are counted where one that joins gets them.
    def test_given(self):
        member, = self.start("a", options=("--cap", "5"))
        wait_for(lambda: member.acquired() and len(member.owned) == 5, "it has as many as it takes", member)
        arguments = ("plan", "--path", self.path, "--join", "1")
        self.assertIn("\n0 items move (0.0 %); 7 items without one get an owner\n", run(*arguments).stdout)
        self.assertIn("; 1 item without one gets an owner\n", run(*arguments, "--cap", "1").stdout)
        self.assertEqual((self.shown(*arguments)["given"], self.shown(*arguments)["moves"]), (7, 0))

    # Each thing that stands in the way is told.
    def test_refused(self):
        self.assert_fails(1, ("plan", "--path", self.path), "there is no pool at " + self.path)
        self.start("a", "b")
        self.wait_loads(a=6, b=6)
        for arguments, fragment in (
                (["--leave", "1"], "has no member 1; there are: a, b"),
                (["--drain", "c"], "has no member c; there are: a, b"),
                (["--leave", "a", "--leave", "a"], "a is named twice"),
                (["--leave", "a", "--drain", "a"], "a leaves by --leave"),
                (["--join", "1", "--leave", "new-1"], "new-1 only joins"),
                (["--leave", "a", "--leave", "b"], "nobody would be left in the pool"),
                (["--drain", "a", "--weight", "b=0"], "that weighs more than 0; divvy drain refuses that"),
                (["--join", "10000"], "more members than a plan can have")):
            with self.subTest(arguments=arguments):
                self.assert_fails(1, ["plan", "--path", self.path, *arguments], fragment)
        for arguments, fragment in (
                (["--members", "2"], "--path or --members, not both"),
                (["--item", "a"], "--path or items, not both"),
                (["--assign", "sticky"], "a pool's members go by its plan"),
                (["--items-order", "numeric"], "--items-order is for --assign round_robin"),
                (["--max-moves", "1"], "the pool's plan says it"),
                (["--zone", "z"], "--zone is of those that join"),
                (["--join", "1", "--zone", ""], "the zone is empty"),
                (["--weight", "a"], "is not MEMBER=W")):
            with self.subTest(arguments=arguments):
                self.assert_fails(2, ["plan", "--path", self.path, *arguments], fragment)
        self.assert_fails(2, ["plan", "--path", "pool"], "must begin with a slash")
        self.assert_fails(2, ["plan", "--path", "/a//b"], '"/a//b"')
        self.assert_fails(3, ["plan", "--path", self.path, "--timeout", "300ms"], "300 ms", connect=NOWHERE)
        kazoo = KazooMember(self.path, "k", ITEMS)
        self.addCleanup(kazoo.stop)
        self.assert_fails(1, ["plan", "--path", self.path], "follows no plan: its member ", " is kazoo's")

    # A plan that cannot be followed is none, nor is that of a pool that all have left.
    def test_no_plan(self):
        clients = self.make_pool(("a",), [("a", True)], ITEMS[:1], "0")
        text = Setting.zookeeper.get(self.path + "/plan")[0]
        for data, fragment in ((b'{"v":2}', "a later release of divvy wrote"), (b"{", "is broken")):
            Setting.zookeeper.set(self.path + "/plan", data)
            self.assert_fails(1, ["plan", "--path", self.path], fragment)
        Setting.zookeeper.set_acls(self.path + "/plan", [make_digest_acl("u", "p", all=True)])
        self.assert_fails(1, ["plan", "--path", self.path], "may not be read")
        Setting.zookeeper.delete(self.path + "/plan")
        self.assert_fails(1, ["plan", "--path", self.path], "have no plan yet")
        self.make(self.path + "/plan", text)
        self.shown("plan", "--path", self.path)
        clients["a"].stop()
        self.assert_fails(1, ["plan", "--path", self.path], "nobody is in the pool")


if __name__ == "__main__":
    main(__file__)
