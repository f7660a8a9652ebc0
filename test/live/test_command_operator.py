#!/usr/bin/python3
"""`divvy pin`, `unpin`, `move`, `pause`, `resume`, `need`, `set`, `forget`. SPDX-License-Identifier: Apache-2.0

Shows what the commands change in a live pool, what they print, and how they wait.

usage: test_command_operator.py BUILD_FOLDER [TEST...]     a TEST is a name such as Operator.test_pin
"""
import json
import re
import signal

from kazoo.security import make_acl, make_digest_acl

from command_harness import NOWHERE, Setting, main, no_credentials, wait_for
from look_harness import Case, DivvyMember, KazooMember, run

ITEMS = ["item-%02d" % number for number in range(1, 13)]
ITEM = "item-05"


class Operator(Case):
    def start(self, *identifiers, kind=DivvyMember, options=()):
        members = [kind(self.path, identifier, ITEMS, *options) for identifier in identifiers]
        for member in members:
            self.addCleanup(member.stop)
        return members

    def wait_divided(self, members, items=None):
        """All of the items are owned, once each."""
        items = ITEMS if items is None else items
        wait_for(lambda: all(member.acquired() for member in members) and
                 sorted(item for member in members for item in member.owned) == items, "the items are owned",
                 *[(member.identifier, member.state, member.owned) for member in members])

    def wait_owned(self, member, item=ITEM):
        wait_for(lambda: item in member.owned and member.acquired(), "%s has %s" % (member.identifier, item))

    def root(self):
        return Setting.zookeeper.get(self.path + "/plan")[0].decode()

    def ask(self, name, *arguments, warning=""):
        """What a successful call says."""
        done = run(name, "--path", self.path, *arguments)
        self.assertEqual((done.returncode, done.stderr), (0, warning), done.stdout)
        return done.stdout.rstrip("\n")

    def refused(self, code, message, name, *arguments):
        self.assert_fails(code, (name, "--path", self.path, *arguments), message)

    def owner(self, members, item=ITEM):
        return next(member for member in members if item in member.owned)

    # A pinned item goes to its member, and comes back to it after a restart of the member. What is so already is said,
    # and changes nothing. An unpinned item stays where it is.
    def test_pin(self):
        members = self.start("a", "b", "c")
        self.wait_divided(members)
        had = self.owner(members)
        to = next(member for member in members if member is not had)
        line = self.ask("pin", "--wait", "--reason", "new disk", ITEM, to.identifier)
        self.assertRegex(line, r"\Aitem-05: pinned to %s; %s by plan [0-9]+ \(before: %s\)(; 1 other item moves)?\Z" %
                         (to.identifier, to.identifier, had.identifier))
        self.wait_owned(to)
        self.assertIn("new disk", self.root())
        self.assertRegex(run("history", "--path", self.path).stdout,
                         r"\n[0-9]+: .*@.* pinned item-05 to %s: new disk\n" % to.identifier)
        self.assertIn("new disk", run("explain", "--path", self.path, ITEM).stdout)
        before = Setting.zookeeper.get(self.path + "/plan")
        self.assertRegex(self.ask("pin", ITEM, to.identifier), r"\Aitem-05: pinned to . already; . by plan [0-9]+\Z")
        self.assertEqual(Setting.zookeeper.get(self.path + "/plan"), before)
        to.stop()
        self.wait_divided([member for member in members if member is not to])
        again, = self.start(to.identifier)
        self.wait_owned(again)
        self.assertRegex(self.ask("unpin", ITEM), r"\Aitem-05: no longer pinned; %s by plan " % to.identifier)
        self.assertRegex(self.ask("unpin", ITEM), r"\Aitem-05: not pinned, nor moved \(a move ends with its member\); "
                         r"%s by plan [0-9]+\Z" % to.identifier)

    # A pin to a member that is not there is kept, with a warning.
    def test_pin_to_absent(self):
        members = self.start("a")
        self.wait_divided(members)
        line = self.ask("pin", ITEM, "late", warning="divvy: warning: late is not in the pool %s; until it comes, the "
                        "owner of item-05 is a; there are: a\n" % self.path)
        self.assertRegex(line, r"\Aitem-05: pinned to late; a by plan ")
        late, = self.start("late")
        self.wait_owned(late)
        self.ask("pin", ITEM, "lade", warning="divvy: warning: lade is not in the pool %s; until it comes, the owner "
                 "of item-05 is late; there are: a, late; did you mean late?\n" % self.path)

    # An item that is kept for an absent member is not waited for. All that was asked for is done before that is said.
    def test_wait_for_absent(self):
        members = a, b = self.start("a", "b", options=("--rejoin-delay", "10m"))
        self.wait_divided(members)
        kept, paused = b.owned[0], a.owned[0]
        b.process.send_signal(signal.SIGKILL)
        b.stop()
        wait_for(lambda: re.search(r'"absent":"[1-9a-f]', self.root()), "the plan says that it is away")
        self.ask("pause", "--wait", paused)
        for name, words in (("pin", (kept, "b")), ("unpin", (kept,)), ("resume", (kept, paused))):
            done = run(name, "--path", self.path, "--wait", *words)
            self.assertEqual((done.returncode, done.stderr.splitlines()[-1:]),
                             (1, ["divvy: %s is kept for b, which is absent, so it is not waited for" % kept]), done)
            self.assertRegex(done.stdout, r"\A%s: .*; b by plan " % kept)
        self.wait_owned(a, paused)

    # A move ends with its member, and an unpin undoes it before that.
    def test_move(self):
        members = a, b = self.start("a", "b")
        self.wait_divided(members)
        to = b if ITEM in a.owned else a
        self.assertRegex(self.ask("move", "--wait", ITEM, to.identifier), r"\Aitem-05: moved to %s; " % to.identifier)
        self.wait_owned(to)
        self.assertRegex(self.ask("unpin", ITEM), r"\Aitem-05: no longer moved; ")
        self.ask("move", ITEM, to.identifier)
        to.stop()
        self.wait_divided([a if to is b else b])
        self.assertRegex(self.ask("unpin", ITEM), r"\Aitem-05: not pinned, nor moved \(a move ends ")

    # Nobody has a paused item. It goes back where it was.
    def test_pause(self):
        members = self.start("a", "b")
        self.wait_divided(members)
        had = self.owner(members)
        self.assertRegex(self.ask("pause", "--wait", ITEM), r"\Aitem-05: paused; nobody by plan [0-9]+ \(before: %s\)" %
                         had.identifier)
        self.wait_divided(members, [item for item in ITEMS if item != ITEM])
        self.assertEqual(Setting.zookeeper.get_children(self.path + "/locks/" + ITEM), [])
        self.assertRegex(self.ask("pause", ITEM), r"\Aitem-05: paused already; nobody by plan ")
        self.assertRegex(self.ask("pin", "--reason", "two\nlines", ITEM, had.identifier),
                         r"\Aitem-05: pinned to %s; nobody by plan [0-9]+, as it is paused " % had.identifier)
        self.assertIn("two lines", self.root())
        self.ask("unpin", ITEM)
        self.assertRegex(self.ask("resume", "--wait", ITEM),
                         r"\Aitem-05: resumed; %s by plan [0-9]+ \(before: nobody\)" % had.identifier)
        self.wait_owned(had)
        self.assertRegex(self.ask("resume", ITEM), r"\Aitem-05: not paused; ")

    # Of several items all are paused, or none.
    def test_pause_several(self):
        members = self.start("a", "b")
        self.wait_divided(members)
        before = self.root()
        self.refused(1, "has no item item-55; did you mean item-05?", "pause", ITEM, "item-55")
        self.assertEqual(self.root(), before)
        self.refused(2, "ITEM is empty", "pause", ITEM, "")
        lines = self.ask("pause", "--wait", *ITEMS[:3]).split("\n")
        self.assertEqual([line.split(";")[0] for line in lines], [item + ": paused" for item in ITEMS[:3]])
        self.wait_divided(members, ITEMS[3:])
        self.ask("resume", "--wait", *ITEMS[:3])
        self.wait_divided(members)

    # Items that need a tag go to members that have it, and have no owner while there is none, which is warned of.
    def test_need(self):
        members = self.start("a", "b")
        self.wait_divided(members)
        line = self.ask("need", "item-0*", "gpu", warning="divvy: warning: no member of %s has the tag gpu; no member "
                        "has any\ndivvy: warning: of 9 items that need the tag gpu, 9 are without an owner\n" %
                        self.path)
        self.assertRegex(line, r"\Aitem-0\*: needs the tag gpu; 9 items move by plan ")
        self.wait_divided(members, ITEMS[9:])
        members += self.start("c", options=("--tags", "gpu"))
        self.wait_divided(members)
        self.assertLessEqual(set(ITEMS[:9]), set(members[2].owned))
        self.ask("need", "x*", "ssd", warning="divvy: warning: no member of %s has the tag ssd; there are: gpu\n"
                 "divvy: warning: no item of %s begins so yet: x*\n" % (self.path, self.path))
        self.assertRegex(self.ask("need", "--undo", "item-0*"), r"\Aitem-0\*: needs no tag; ")
        self.assertEqual(self.ask("need", "--undo", "item-0*"), "item-0*: needs no tag already")
        self.refused(1, "has no item item-5; did you mean item-05?", "need", "item-5", "gpu")
        self.ask("need", "item-0*", "gpu")
        rest = ", but item-0\\* needs gpu; undo that: divvy need --path %s --undo 'item-0\\*'\\Z" % self.path
        self.assertRegex(self.ask("need", "--undo", ITEM), r"\Aitem-05: needs no tag by itself already" + rest)
        self.ask("need", ITEM, "gpu")
        self.assertRegex(self.ask("need", "--undo", ITEM), r"\Aitem-05: no longer needs a tag by itself" +
                         rest.replace("\\Z", "; 0 items move by plan "))
        self.refused(2, '"a b" is no tag', "need", ITEM, "a b")

    # Options are set while the pool works, and set back.
    def test_set(self):
        members = self.start("a", "b")
        self.wait_divided(members)
        lines = self.ask("set", "max-moves=2", "round-timeout=30s", "imbalance-max=0.3").split("\n")
        self.assertEqual([re.sub("; 0 items move by plan [0-9]+", "", line) for line in lines],
                         ["max-moves: 2", "round-timeout: 30000", "imbalance-max: 0.3"])
        self.assertIn('"max_moves":2', self.root())
        self.assertIn('"round_timeout_ms":30000', self.root())
        self.assertEqual(self.ask("set", "max-moves=2"), "max-moves: 2 already")
        self.assertRegex(self.ask("set", "max-moves=default"), r"\Amax-moves: as the members were started; ")
        self.assertEqual(self.ask("set", "max-moves=default"), "max-moves: as the members were started, already")
        self.assertIn('"max_moves":0', self.root())
        for word, message in (("max_moves=2", "is unknown; there are"), ("max-moves", "is not NAME=VALUE"),
                              ("max-moves=two", "is a number of items"), ("round-timeout=x", "round-timeout: "),
                              ("imbalance-max=-1", "is a share above the mean")):
            before = self.root()
            self.refused(2, message, "set", "max-moves=7", word)
            self.assertEqual(self.root(), before)

    # Without a word `set` and `need` list what stands, and change nothing.
    def test_lists(self):
        self.refused(1, "no plan of %s can be read; is the path right?" % self.path, "set")
        self.wait_divided(self.start("a"))
        self.assertEqual(self.ask("need"), "no item needs a tag")
        self.ask("set", "--reason", "calm", "max-moves=2", "round-timeout=30s")
        self.ask("need", "--reason", "big", "x*", "gpu", warning="divvy: warning: no member of %s has the tag gpu; no "
                 "member has any\ndivvy: warning: no item of %s begins so yet: x*\n" % (self.path, self.path))
        before = Setting.zookeeper.get(self.path + "/plan")
        told = r"  \S+@\S+ +\d{4}-\d\d-\d\dT\S+Z  "
        self.assertRegex(self.ask("set"), r"\AOPTION +VALUE +SET BY +SINCE +REASON *\nimbalance-max +0.2 +- +- +-\n"
                         r"max-moves +2 *" + told + r"calm\nround-timeout +30s *" + told + r"calm\Z")
        self.assertRegex(self.ask("need"), r"\AITEM +TAG +SET BY +SINCE +REASON *\nx\* +gpu *" + told + r"big\Z")
        options = json.loads(self.ask("set", "--json"))["options"]
        self.assertEqual([(option["name"], option["value"], option["why"]) for option in options],
                         [("imbalance-max", "0.2", None), ("max-moves", "2", "calm"),
                          ("round-timeout", "30000", "calm")])
        need, = json.loads(self.ask("need", "--json"))["needs"]
        self.assertEqual((need["name"], need["value"], need["why"]), ("x*", "gpu", "big"))
        self.assertGreater(need["at_ms"], 0)
        self.assertEqual(Setting.zookeeper.get(self.path + "/plan"), before)

    # A static member that is away is forgotten: others have its items.
    def test_forget(self):
        members = a, b = self.start("a", "b", options=("--rejoin-delay", "10m"))
        self.wait_divided(members)
        self.refused(1, "b is there: only a static member that is absent can be forgotten", "forget", "b")
        b.process.send_signal(signal.SIGKILL)
        b.stop()
        wait_for(lambda: re.search(r'"absent":"[1-9a-f]', self.root()), "the plan says that it is away")
        self.assertRegex(self.ask("forget", "--wait", "b"), r"\Ab: no longer waited for; 6 items move by plan ")
        self.wait_divided([a])
        self.refused(1, "has no member b; there are: a", "forget", "b")
        self.assertRegex(run("history", "--path", self.path).stdout,
                         r"\n[0-9]+: .*@.* forgot b, which was absent: others get its items\n")

    # A dry run changes nothing, and tells the moves, which are those of the call itself.
    def test_dry_run(self):
        members = self.start("a", "b", "c")
        self.wait_divided(members)
        before = Setting.zookeeper.get(self.path + "/plan")
        had = self.owner(members)
        lines = self.ask("pause", "--dry-run", ITEM).split("\n")
        self.assertRegex(lines[0], r"\Adry run: item-05: paused; nobody by plan ")
        self.assertEqual([line.split() for line in lines[1:]],
                         [["ITEM", "FROM", "TO"], [ITEM, had.identifier, "nobody"]])
        told = json.loads(self.ask("drain", "--dry-run", "--json", "b"))
        self.assertEqual(Setting.zookeeper.get(self.path + "/plan"), before)
        self.assertEqual((told["dry_run"], told["changed"], told["moved"], len(told["moves"])), (True, True, 4, 4))
        self.ask("drain", "--reason", "rack 4 moves", "b")
        self.assertRegex(run("history", "--path", self.path).stdout, r"\n[0-9]+: .*@.* drained b: rack 4 moves\n")
        for move in told["moves"]:
            self.assertEqual(move["from"], "b")
            self.wait_owned(next(member for member in members if member.identifier == move["to"]), move["item"])

    # Where the plan limits moves, what is told is the whole change, and --wait waits for the last round.
    def test_rounds(self):
        members = self.start("a", "b", options=("--tags", "gpu")) + self.start("c")
        self.wait_divided(members)
        self.ask("set", "max-moves=1")
        had = len([item for item in members[2].owned if item.startswith("item-0")])
        self.assertGreater(had, 1)
        lines = self.ask("need", "--dry-run", "item-0*", "gpu").split("\n")
        found = re.match(r"dry run: item-0\*: needs the tag gpu; ([0-9]+) items move in the end, in rounds of 1 from ",
                         lines[0])
        self.assertTrue(found, lines)
        self.assertEqual(len(lines) - 2, int(found[1]))
        self.assertGreaterEqual(int(found[1]), had)
        self.ask("need", "--wait", "item-0*", "gpu")
        held = [Setting.zookeeper.get_children(self.path + "/locks/" + item) for item in ITEMS[:9]]
        node = next(node for node in Setting.zookeeper.get_children(self.path + "/party") if node.endswith("-c"))
        self.assertEqual([places for places in held if any(place.startswith(node[:22]) for place in places)], [])

    # As JSON, one object on one line; of several options one line each.
    def test_json(self):
        members = self.start("a", "b")
        self.wait_divided(members)
        had = self.owner(members).identifier
        told = json.loads(self.ask("pause", "--json", ITEM))
        generation = told.pop("generation")
        self.assertGreater(generation, 0)
        self.assertEqual(told, {"path": self.path, "command": "pause", "name": ITEM, "value": None, "undo": False,
                                "dry_run": False, "changed": True, "moved": 1, "owner": None, "owner_before": had,
                                "absent": False, "rounds": 1})
        told = json.loads(self.ask("drain", "--json", "b"))
        self.assertEqual((told["weight"], told["weight_before"], told["items"]), (0, 1000, 0))
        lines = self.ask("set", "--json", "max-moves=2", "imbalance-max=default").split("\n")
        self.assertEqual([json.loads(line)["name"] for line in lines], ["max-moves", "imbalance-max"])

    # A limit of the waiting ends it, with a code of its own: a member whose process is stopped releases nothing.
    def test_wait_timeout(self):
        members = self.start("a", "b")
        self.wait_divided(members)
        had = self.owner(members)
        had.process.send_signal(signal.SIGSTOP)
        try:
            done = run("pause", "--path", self.path, "--wait-timeout", "1s", ITEM)
        finally:
            had.process.send_signal(signal.SIGCONT)
        self.assertEqual((done.returncode, done.stderr),
                         (4, "divvy: item-05 is not where the plan wants it within 1000 ms\n"))

    # What is not there, or in the way, is told.
    def test_refused(self):
        self.refused(1, "there is no pool at " + self.path, "pause", ITEM)
        a, = self.start("a")
        self.wait_divided([a])
        self.refused(1, "has no item itme-05; did you mean item-05?", "pin", "itme-05", "a")
        self.refused(1, "has no member x; there are: a", "move", ITEM, "x")
        self.refused(1, "has no item a; that is a member: the item comes first", "pin", "a", ITEM)
        self.refused(1, "has no item item-*; only divvy need takes a prefix", "pause", "item-*")
        twin, = self.start("a")
        wait_for(lambda: twin.acquired() and len(twin.owned) == 6, "the twin has its share")
        nodes = [node for node in Setting.zookeeper.get_children(self.path + "/party") if node.endswith("-a")]
        self.refused(1, "several members of the pool", "pin", ITEM, "a")
        self.refused(1, "a move names its node", "pin", ITEM, nodes[0])
        self.ask("move", ITEM, nodes[0])
        kazoo, = self.start("k", kind=KazooMember)
        wait_for(kazoo.acquired, "it has a share")
        self.refused(1, "follows no plan: its member k is kazoo's; end it, or wait until it has left: until then "
                     "pauses and pins are not in force", "unpin", ITEM)

    # Where the plan may not be written, that is the reason.
    def test_denied(self):
        self.wait_divided(self.start("a"))
        owner = self.client()
        owner.add_auth("digest", "owner:secret")
        owner.set_acls(self.path + "/plan", [make_digest_acl("owner", "secret", all=True),
                                             make_acl("world", "anyone", read=True)])
        self.refused(1, "may not be written", "pause", ITEM)

    # Wrong usage, and no server.
    def test_usage(self):
        self.assert_fails(2, ("pin", "a", "b"), "--path is missing")
        self.assert_fails(2, ("pin", "--path", "pool", "a", "b"), "must begin with a slash")
        self.refused(2, "ITEM is missing", "pin")
        self.refused(2, "MEMBER is missing", "pin", "a")
        self.refused(2, "MEMBER is empty", "pin", "a", "")
        self.refused(2, '"c" is one word too many', "pin", "a", "b", "c")
        self.refused(2, '"gpu" is one word too many', "need", "--undo", "a", "gpu")
        self.refused(2, "NAME=VALUE is missing", "set", "--wait")
        self.refused(2, "ITEM is missing", "need", "--undo")
        self.refused(2, "--wait is of no use with --dry-run", "pause", "--wait", "--dry-run", "a")
        self.refused(2, "more than 512 bytes", "pause", "--reason", "x" * 513, "a")
        self.refused(2, "--undo", "pause", "--undo", "a")
        with no_credentials():
            self.refused(2, "need credentials", "pause", "--acl", "creator", "a")
        self.assert_fails(3, ("pause", "--path", "/pool", "--timeout", "200ms", "a"), "no ZooKeeper server answered",
                          connect=NOWHERE)


if __name__ == "__main__":
    main(__file__)
