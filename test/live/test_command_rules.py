#!/usr/bin/python3
"""What `divvy` shows of loads, tags, caps and operators' wishes. SPDX-License-Identifier: Apache-2.0

usage: test_command_rules.py BUILD_FOLDER [TEST...]     a TEST is a name such as Shown.test_status
"""
import json

from command_harness import main, wait_for
from look_harness import Case, DivvyMember, run

ITEMS = ["i%d" % number for number in range(6)]
AT_MS = 1769860800000  # 2026-01-31T12:00:00Z
FAILED = "failed 5 times in 10 min, last: exit 1"
SINCE = "since 2026-01-31T12:00:00Z"
WISHES = [
    {"kind": "need", "name": "i4", "value": "ssd", "by": "", "at_ms": AT_MS, "why": ""},
    {"kind": "pause", "name": "i3", "value": "", "by": "bob", "at_ms": AT_MS, "why": FAILED},
    {"kind": "pin", "name": "i0", "value": "a", "by": "anna", "at_ms": AT_MS, "why": "new disk"},
    {"kind": "pin", "name": "i1", "value": "m9", "by": "anna", "at_ms": AT_MS, "why": ""},
]
# i2 went from b to a; each item is a load of 1, but i5, which is 64.
LOADS = {"unit": "cores", "classes": "64646464647c", "moved": [["b", 1310, 2]]}


class Shown(Case):
    def pool(self, **options):
        self.make_pool({"a", "b"}, (("a", False), ("b", False)), ITEMS, "000zz1",
                       **{"extra": {"a": {"tags": "gpu,hdd", "cap": 3}, "b": {"cap": 4}}, "loads": LOADS,
                          "wishes": WISHES, "algorithm": 2, "level": 3, **options})

    def page(self, *arguments):
        done = run(*arguments, "--path", self.path, "--wide")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    # The heading says what is pinned and paused, and what cannot be done; columns have shares, tags and caps, and why
    # an item has no owner. JSON says the same.
    def test_status(self):
        self.pool()
        page = self.page("status", *["--item=" + item for item in ITEMS])
        for line in ("plan 7, absence: 2 pinned, 1 paused, 1 need of a tag",
                     "1 item is pinned to a member that is not there; the first is i1, which m9 is to have: "
                     "others have it until then",
                     "no member has the tag ssd, which 1 item needs; the first is i4",
                     "1 item is more than a fair share of the load; the most is i5 with"):
            self.assertIn("\n" + line, page)
        for words in ("SHARE", "TAGS", "CAP", "gpu,hdd", "WHY", f"pinned to a by anna {SINCE}: new disk",
                      f"paused by bob {SINCE}: {FAILED}", "no member has the tag ssd"):
            self.assertIn(words, page)
        self.assertIn("6 items, 5 unowned", page)
        self.assertRegex(page, r"(?m)^i2 +\(unowned\) .*\ni3 +\(paused\) ")
        seen = self.shown("status", "--path", self.path, *["--item=" + item for item in ITEMS])
        self.assertEqual(seen["unowned"], 5)  # nobody is to have i3
        items = {item["item"]: item for item in seen["items"]}
        self.assertEqual([items[item].get("rule") for item in ITEMS],
                         ["pinned", "pinned", None, "paused", "tag", None])
        rules = seen["plan"]["rules"]
        self.assertEqual([rules[key] for key in ("in_force", "pinned", "moved", "paused", "load_unit")],
                         [True, 2, 0, 1, "cores"])
        self.assertEqual((len(rules["notes"]), [wish["name"] for wish in rules["wishes"]]),
                         (3, ["i4", "i3", "i0", "i1"]))
        members = {member["identifier"]: member for member in seen["plan"]["members"]}
        self.assertEqual((members["a"]["tags"], members["a"]["cap"]), (["gpu", "hdd"], 3))
        self.assertGreater(members["b"]["share"], members["a"]["share"])

    # An item that no member may take has never had a directory, and is shown all the same.
    def test_never_owned(self):
        items = ["q%d" % number for number in range(5)]
        members = [DivvyMember(self.path, name, items, "--cap", "2") for name in ("a", "b")]
        for member in members:
            self.addCleanup(member.stop)

        def seen():
            done = run("status", "--path", self.path, "--json")
            return json.loads(done.stdout) if done.returncode == 0 else {"unowned": None}
        wait_for(lambda: seen()["unowned"] == 1 and len(seen()["items"]) == 5, "four items are owned")
        self.assertEqual([item["why"] for item in seen()["items"] if not item["owner"]],
                         ["all members are at their cap"])
        self.assertIn("\nthe caps of all members allow 4 items, and there are 5\n", self.page("status"))
        done = run("doctor", "--path", self.path, "--json")
        found = {one["check"]: one["what"] for one in json.loads(done.stdout)["findings"]}
        self.assertIn("cap", found)
        self.assertNotIn("unowned", found)
        self.assertEqual(found["items"], "4 of 5 have the owner that they should, and nobody is to have the rest")

    # A pin beats a tag: to wait for it is not to wait for the tag, and the override is told.
    def test_pin_beats_tag(self):
        member = DivvyMember(self.path, "a", ["x1", "x2"])
        self.addCleanup(member.stop)
        wait_for(lambda: member.owned == ["x1", "x2"] and member.acquired(), "both are owned")
        self.ask("need", "x*", "gpu")
        wait_for(lambda: member.owned == [] and member.acquired(), "none is owned")
        self.ask("pin", "--wait", "--wait-timeout", "30s", "x1", "a")
        wait_for(lambda: member.owned == ["x1"], "the pinned one is owned")
        seen = self.page("explain", "x1")
        self.assertIn("that overrides the tag gpu, which a does not have\n", seen)
        self.assertRegex(self.page("status"), r"\nx\* needs the tag gpu, asked for by [^\n]* since ")

    def ask(self, name, *arguments):
        done = run(name, "--path", self.path, *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)

    # A member of an earlier release is named as the one that they wait for; then no item has a rule's reason.
    def test_waits(self):
        self.pool(level=2, algorithm=1)
        page = self.page("status")
        self.assertIn("\nloads and operators' wishes wait: the member a is of an earlier release\n", page)
        self.assertRegex(self.page("status", "--item=i3"), r"(?m)^i3 +\(unowned\) ")
        self.assertFalse(self.shown("status", "--path", self.path)["plan"]["rules"]["in_force"])
        explained = self.shown("explain", "--path", self.path, "i4")
        self.assertEqual((explained["state"], explained.get("rule")), ("unassigned", None))

    # An item's explanation has the reason, as a word and in a sentence.
    def test_explain(self):
        self.pool()
        for item, state, rule, fragment in (("i0", "taking", "pinned", f"pinned to a by anna {SINCE}: new disk"),
                                            ("i1", "taking", "pinned", "that waits: that member is not there"),
                                            ("i2", "taking", "load", "moved for load: b was at 1.31 of its share"),
                                            ("i3", "paused", "paused", f"paused by bob {SINCE}"),
                                            ("i4", "unassigned", "tag", "no member has the tag ssd")):
            with self.subTest(item):
                explained = self.shown("explain", "--path", self.path, item)
                self.assertEqual((explained["state"], explained["rule"]), (state, rule))
                self.assertIn(fragment, explained["now"])
        self.assertIn("divvy resume --path", self.page("explain", "i3"))
        self.assertRegex(self.page("explain", "i5"), r"\nload +[0-9.]+ cores by the plan, [0-9.]+ % of all\n")
        load = self.shown("explain", "--path", self.path, "i5")["load"]
        self.assertEqual(load["unit"], "cores")
        self.assertTrue(load["value"] > 0 and 0 < load["part"] <= 1)

    # The forecast of a live pool goes by its loads, tags, caps and wishes. A member that joins without the tag does not
    # help the item that needs it; one with the tag does.
    def test_plan(self):
        self.pool(loads={"unit": "cores", "classes": "64" * 6, "moved": []})
        for options, unowned, why in (((), 1, "no member has the tag ssd"), (("--tags", "ssd,x"), 0, None)):
            seen = self.shown("plan", "--path", self.path, "--join", "1", "--verbose", *options)
            self.assertEqual((seen["unowned"], seen["unowned_why"], seen["floor"]), (unowned, why, None))
            members = {member["identifier"]: member for member in seen["members"]}
            self.assertGreater(members["a"]["share_before"], 0.5)
            self.assertIsNone(members["new-1"]["share_before"])
            self.assertNotIn("i0", [move["item"] for move in seen["moved"]])  # It is pinned.
        self.assertIn("1 item has no owner then: no member has the tag ssd\n", run("plan", "--path", self.path).stdout)
        for options, fragment in ((["--tags", "a b", "--join", "1"], 'a tag of "a b" is none'),
                                  (["--tags", "a"], "give --join, too"), (["--cap", "2"], "give --join, too"),
                                  (["--loads", "x"], "the pool's plan has its own loads")):
            self.assert_fails(2, ["plan", "--path", self.path, *options], fragment)

    # The doctor finds what cannot be done, and what has been in quarantine for long, each with a command that helps.
    def test_doctor(self):
        self.pool()
        done = run("doctor", "--path", self.path, "--json")
        found = {one["check"]: one for one in json.loads(done.stdout)["findings"]}
        commands = (("pin", "divvy unpin --path %s i1"), ("tag", "divvy need --path %s --undo i4"),
                    ("paused", "divvy resume --path %s i3"))
        self.assertIn("split the item", found["load"]["do"])
        for check, helps in commands:
            self.assertIn(helps % self.path, found[check]["do"])

    # What operators asked for stands below the table of changes, whole, and in JSON with its change.
    def test_history(self):
        self.pool()
        told = "anna pinned i0 to a: new disk"
        change = {"generation": 7, "reason": "operator", "at_ms": 0, "took_ms": -1, "moved": 1,
                  "joined": {"count": 0, "names": []}, "left": {"count": 0, "names": []}}
        first = {**change, "generation": 6, "at_ms": AT_MS}
        self.make(self.path + "/plan/" + "0" * 10 + "9" + "0" * 10 + "01",
                  json.dumps({"changes": [first, {**change, "told": told}]}, separators=(",", ":")).encode())
        self.assertTrue(self.page("history").endswith(f"\n\n7: {told}\n"))
        changes = self.shown("history", "--path", self.path)["changes"]
        self.assertEqual([one.get("told") for one in changes[:2]], [None, told])


if __name__ == "__main__":
    main(__file__)
