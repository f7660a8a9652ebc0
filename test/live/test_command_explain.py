#!/usr/bin/python3
"""`divvy explain`. SPDX-License-Identifier: Apache-2.0

Shows what the command reads of a live pool, sentence by sentence.

usage: test_command_explain.py BUILD_FOLDER [TEST...]     a TEST is a name such as Explain.test_settled
"""
import json
import re
import signal

from command_harness import NOWHERE, Setting, main, wait_for
from look_harness import Case, CommandMember, DivvyMember, run, set_of, tree
from serve_harness import Serve

ITEMS = ["x", "y", "z"]


class Explain(Case):
    def explain(self, item):
        return self.shown("explain", "--path", self.path, item)

    def page(self, item):
        done = run("explain", "--path", self.path, "--wide", item)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return dict(line.split(None, 1) for line in done.stdout.splitlines())

    def place(self, client, item, name, number=1):
        client.ensure_path("%s/locks/%s" % (self.path, item))
        node = "%s/locks/%s/%032x__lock__%010d" % (self.path, item, number, number)
        client.create(node, name.encode(), ephemeral=True)
        return node

    def note(self, client, name, leaving=(), ready=()):
        node = next(node for node in Setting.zookeeper.get_children(self.path + "/party") if node.endswith("-" + name))
        text = {"v": 1, "set": set_of(ITEMS), "leaving": list(leaving), "ready": list(ready), "given": []}
        client.ensure_path(self.path + "/notes")
        client.create(self.path + "/notes/" + node, json.dumps(text, separators=(",", ":")).encode(), ephemeral=True)

    # A real pool at rest: who owns it, by which token, and the plan that says so. Nothing is changed.
    def test_settled(self):
        members = [DivvyMember(self.path, name, ITEMS) for name in ("alpha", "beta")]
        for member in members:
            self.addCleanup(member.stop)
        wait_for(lambda: sorted(item for member in members for item in member.owned) == ITEMS, "all items are owned")
        plan = self.shown("status", "--path", self.path)["plan"]
        before = tree(self.path)
        for member in members:
            for item in member.owned:
                seen = self.explain(item)
                self.assertEqual((seen["path"], seen["item"], seen["state"], seen["owner"], seen["next"]),
                                 (self.path, item, "settled", member.identifier, None))
                self.assertEqual([(place["member"], place["in_party"], place["token"]) for place in seen["queue"]],
                                 [(member.identifier, True, member.tokens[item])])
                self.assertEqual((seen["plan"]["generation"], seen["plan"]["reason"], seen["plan"]["owner"]),
                                 (plan["generation"], plan["reason"], member.identifier))
                page = self.page(item)
                self.assertTrue(page["owner"].startswith("%s on " % member.identifier), page)
                self.assertIn(", token %s, for " % member.tokens[item], page["owner"])
                self.assertRegex(page["plan"], r"\A%d, .* ago: gives it to %s\Z" % (plan["generation"],
                                                                                  member.identifier))
        self.assertEqual(tree(self.path), before)

    # An owner that was asked to release and has not is named, with since when, and so is who waits; who hands over is
    # not asked before the next owner is ready.
    def test_move(self):
        clients = self.make_pool({"a", "b"}, (("a", False), ("b", False)), ITEMS, "011")
        for item in ITEMS:
            self.place(clients["a"], item, "a")
        self.place(clients["b"], "z", "b", 2)
        self.assertEqual(self.explain("x")["state"], "settled")
        seen = self.explain("y")
        self.assertEqual((seen["state"], seen["plan"]["owner"], len(seen["queue"])), ("releasing", "b", 1))
        self.assertRegex(seen["now"], r"\Aa was asked to release it at least \d+s ago, and has not\Z")
        seen = self.explain("z")
        self.assertEqual((seen["state"], [place["member"] for place in seen["queue"]]), ("releasing", ["a", "b"]))
        page = self.page("z")
        self.assertTrue(page["waits"].startswith("b, in the queue for "), page)
        self.assertIn("b owns it as soon as a has released it", page["next"])
        self.note(clients["a"], "a", leaving=[1, 2])
        self.note(clients["b"], "b", ready=[2])
        seen = self.explain("y")
        self.assertEqual((seen["state"], seen["now"]), ("preparing", "a works on it until b is ready for it"))
        self.assertIn("--prepare-timeout", seen["next"])
        self.assertEqual(self.explain("z")["state"], "releasing")

    def deaths(self, name, at_ms=0):
        """What a death watch writes of one member (docs/protocol.md, D45)."""
        death = {"name": name, "session": "1f", "at_ms": at_ms, "seen_ms": 40}
        return json.dumps({"deaths": [death]}, separators=(",", ":")).encode()

    # Who is to have an item, and is not there or has not asked for it; who has it, and is not in the pool.
    def test_away(self):
        clients = self.make_pool({"c"}, (("host-1", True), ("b", False), ("c", False)), ITEMS, "012")
        seen = self.explain("x")
        self.assertEqual((seen["state"], seen["owner"], seen["now"]),
                         ("absent", None, "it is kept for host-1, which is not there"))
        self.assertIn("away for longer than 20s", seen["next"])
        self.assertEqual(self.page("x")["owner"], "nobody")
        seen = self.explain("y")
        self.assertEqual((seen["state"], seen["now"]), ("gone", "b, to which the plan gives it, has gone"))
        died = r"died \ds ago \(its session ended 40ms later\)\Z"
        self.make(self.path + "/deaths", self.deaths("host-1"))
        self.assertRegex(self.explain("x")["now"], r"\Ait is kept for host-1, which " + died)
        self.assertEqual(self.explain("y")["now"], "b, to which the plan gives it, has gone")
        Setting.zookeeper.set(self.path + "/deaths", self.deaths("b"))
        self.assertRegex(self.explain("y")["now"], r"\Ab, to which the plan gives it, " + died)
        Setting.zookeeper.set(self.path + "/deaths", self.deaths("host-1", 1700000000000))  # long ago: another death
        self.assertEqual(self.explain("x")["now"], "it is kept for host-1, which is not there")
        seen = self.explain("z")
        self.assertEqual(seen["state"], "taking")
        self.assertIn("c, to which the plan of ", seen["now"])
        other = self.client()
        self.place(other, "z", "old")
        seen = self.explain("z")
        self.assertEqual((seen["state"], seen["owner"], seen["queue"][0]["in_party"]), ("stranger", "old", False))
        self.assertIn("session 0x%x ends" % other.client_id[0], seen["next"])
        self.place(clients["c"], "w", "c")
        seen = self.explain("w")
        self.assertEqual((seen["state"], seen["plan"]["owner"]), ("removed", None))
        self.assertIn("and c has not released it yet", seen["now"])

    # A static member that is killed: its items are kept for it, and it is said that it died.
    def test_killed(self):
        member = CommandMember(self.path, "host-1", ITEMS, "--rejoin-delay", "60s")
        self.addCleanup(member.stop)
        other = CommandMember(self.path, "host-2", ITEMS, "--rejoin-delay", "60s")
        self.addCleanup(other.stop)

        def state(item):
            done = run("explain", "--path", self.path, "--json", item)
            return json.loads(done.stdout) if done.returncode == 0 else {"state": None, "owner": None}
        wait_for(lambda: {state(item)["owner"] for item in ITEMS} == {"host-1", "host-2"} and
                 all(state(item)["state"] == "settled" for item in ITEMS), "both own something")
        item = next(item for item in ITEMS if state(item)["owner"] == "host-1")
        member.stop(signal.SIGKILL)
        wait_for(lambda: "host-1, which died" in (state(item).get("now") or ""), "the death", state(item))
        self.assertRegex(state(item)["now"], r"\Ait is kept for host-1, which died \d+s ago "
                                             r"\(its session ended [0-9.]+m?s later\)\Z")

    # A plan that gives an item to nobody; members that follow no plan, as those of kazoo; nobody at all.
    def test_no_plan_decides(self):
        clients = self.make_pool({"a"}, (("a", False), ("b", False)), ITEMS, "0z1")
        seen = self.explain("y")
        self.assertEqual((seen["state"], seen["plan"]["owner"]), ("unassigned", None))
        kazoo = self.client()
        kazoo.create(self.path + "/party/%032x-k" % 1, b"k", ephemeral=True)
        seen = self.explain("y")
        self.assertEqual((seen["state"], seen["plan"]["in_force"]), ("unowned", False))
        self.assertIn("since k follows none (it is kazoo's)", seen["now"])
        self.place(kazoo, "y", "")
        seen = self.explain("y")
        self.assertEqual((seen["state"], seen["owner"]), ("by_names", "k"))
        self.assertIn("k, of kazoo, token ", self.page("y")["owner"])
        for client in (kazoo, clients["a"]):
            client.stop()
        seen = self.explain("y")
        self.assertEqual((seen["state"], seen["now"]), ("unowned", "nobody is in the pool"))
        Setting.zookeeper.set(self.path + "/plan", b"nonsense")
        seen = self.explain("y")
        self.assertEqual((seen["state"], seen["plan"]), ("unowned", None))

    # What is not there, and what cannot be asked so.
    def test_refused(self):
        self.assert_fails(1, ["explain", "--path", self.path, "x"], "there is no pool at " + self.path)
        self.make_pool({"a"}, (("a", False),), ITEMS, "000")
        self.assert_fails(1, ["explain", "--path", self.path, "nothing"], 'has no item "nothing"')
        self.make(self.path + "/locks/bare")
        self.assertEqual(self.explain("bare")["state"], "unknown")
        for arguments, fragment in ((["x"], "--path is missing"), (["--path", "q", "x"], "begin with a slash"),
                                    (["--path", "/q"], "ITEM is missing"), (["--path", "/q", ""], "ITEM is missing"),
                                    (["--path", "/q", "x", "y"], '"y" is not expected'),
                                    (["--path", "/q//r", "x"], "/q//r")):
            self.assert_fails(2, ["explain", *arguments], fragment)
        self.assert_fails(3, ["explain", "--path", self.path, "--timeout", "300ms", "x"], connect=NOWHERE)


class Persistent(Case):
    # A node in a queue that no session made, as some tool restored it, has none that could end. Each look says so, and
    # which node somebody has to delete; so does one in the party, among leases and in a lock's queue.
    def test_persistent(self):
        clients = self.make_pool({"a"}, (("a", False),), ["x", "y"], "00")
        place = self.make(self.path + "/locks/x/%s__lock__0000000000" % ("0" * 23), b"old")
        nameless = self.make(self.path + "/locks/y/%s__lock__0000000000" % ("0" * 23))
        for item, node in (("x", place), ("y", nameless)):
            seen = self.shown("explain", "--path", self.path, item)
            self.assertEqual((seen["state"], seen["queue"][0]["session"]), ("stranger", None))
            self.assertIn("a persistent node stands first in the queue", seen["now"])
            self.assertTrue(seen["next"].endswith("only when somebody deletes it: zkCli.sh delete " + node), seen)
        page = run("explain", "--path", self.path, "--wide", "x").stdout
        self.assertRegex(page, r"(?m)^owner +old, persistent, token ")
        below = run("explain", "--path", "/", "--wide", "x", connect=Setting.server.connect + self.path).stdout
        self.assertRegex(below, r"(?m)^next .* zkCli\.sh delete %s$" % re.escape(place))  # with the chroot
        status = run("status", "--path", self.path, "--wide").stdout
        self.assertRegex(status, r"(?m)^x +old \(persistent\) .*\n^y +a node without a name \(persistent\) ")
        root = self.path + "-divvy"
        held = self.make(root + "/locks/l/%s__lock__0000000000" % ("0" * 23), b"old")
        clients["a"].create(root + "/locks/l/%s__lock__0000000001" % ("0" * 23), b"me", ephemeral=True)
        waits = self.make(root + "/semaphores/s-__lock__/%s__lock__0000000000" % ("0" * 23), b"old")
        self.make(root + "/semaphores/s", b"2")
        for name, node in (("l", held), ("s", waits)):
            shown = run("locks", "--root", root, name).stdout
            self.assertEqual(re.findall("(?m)^persistent, .*$", shown),
                             ["persistent, goes only when somebody deletes it: " + node], shown)
        queue = self.shown("locks", "--root", root, "l")["lock"]
        self.assertEqual((queue["holders"][0]["session"], queue["queue"][0]["session"]),
                         (None, "0x%x" % clients["a"].client_id[0]))
        served = Serve("--path", self.path, "--root", root)
        self.addCleanup(served.end)
        wait_for(lambda: served.pool()["items"] == 2 and served.json("/state")["locks"], "the pool")
        self.assertEqual([(row["owner"], row["state"]) for row in served.rows("items")["rows"]],
                         [("old (persistent)", "moving"), ("a node without a name (persistent)", "moving")])
        self.assertEqual([row["holders"] for row in served.rows("locks")["rows"] if row["name"] == "l"],
                         [[{"who": "old", "host": None, "persistent": True}]])

    # A queue inside of the item's directory, as only a stranger makes one, is not the item's.
    def test_nested(self):
        self.make_pool({"a"}, (("a", False),), ["a/b"], "0")
        self.make("%s/locks/a%%2Fb/c/%s__lock__0000000000" % (self.path, "0" * 23), b"else")
        seen = self.shown("explain", "--path", self.path, "a/b")
        self.assertEqual((seen["item"], seen["state"], seen["queue"]), ("a/b", "unowned", []))


if __name__ == "__main__":
    main(__file__)
