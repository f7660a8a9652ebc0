#!/usr/bin/python3
"""`divvy history`. SPDX-License-Identifier: Apache-2.0

Shows the history of live pools, with nodes that nobody of ours wrote.

usage: test_command_history.py BUILD_FOLDER [TEST...]     a TEST is a name such as History.test_changes
"""
import json
import re
import signal
import time

from command_harness import NOWHERE, Setting, main, wait_for
from look_harness import Case, CommandMember, DivvyMember, KazooMember, run, set_of, tree, width_of

ITEMS = ["x", "y", "z"]
EPOCH = "00000000009000000000001"
NODE = "0000000000%d00000000000%d,a=2,s=00000000-%s"


def change(generation, reason="join", at_ms=1700000000000, took_ms=-1, moved=0, joined=(), left=()):
    """A change as a writer tells it (docs/protocol.md, D44)."""
    return {"generation": generation, "reason": reason, "at_ms": at_ms, "took_ms": took_ms, "moved": moved,
            "joined": {"count": len(joined), "names": list(joined)}, "left": {"count": len(left), "names": list(left)}}


def history_text(changes):
    return json.dumps({"changes": changes}, separators=(",", ":")).encode()


class History(Case):
    def history(self):
        return self.shown("history", "--path", self.path)

    def changes(self):
        return self.history()["changes"]

    def member(self, name):
        member = DivvyMember(self.path, name, ITEMS)
        self.addCleanup(member.stop)
        return member

    def settle(self, *members):
        wait_for(lambda: sorted(item for member in members for item in member.owned) == ITEMS and
                 all(member.acquired() for member in members), "all items are owned")

    def epoch(self):
        """The path of the epoch child."""
        root = json.loads(Setting.zookeeper.get(self.path + "/plan")[0])
        return "%s/plan/%s" % (self.path, root["epoch"])

    def pool(self):
        """A pool of one member that is there, whose plan of generation 7 a test has written."""
        clients = self.make_pool({"a"}, (("a", False),), ITEMS, "000")
        self.make(self.path + "/plan/" + EPOCH)
        return clients

    # A real pool: who came and went, and why; times are those of the plans; a handover is timed, by the last plan's
    # notes and then by its next writer. Nothing is changed.
    def test_changes(self):
        first = self.member("alpha")
        self.settle(first)
        second = self.member("beta")
        self.settle(first, second)
        plan = Setting.zookeeper.get(self.path + "/plan")[1]
        wait_for(lambda: self.changes()[-1]["took_ms"] is not None, "the handover is over")
        before = tree(self.path)
        seen = self.history()
        self.assertEqual((seen["path"], seen["readable"], seen["missing"]), (self.path, True, []))
        self.assertEqual([(c["generation"], c["reason"], c["joined"], c["left"]) for c in seen["changes"]],
                         [(1, "create", {"count": 1, "names": ["alpha"]}, {"count": 0, "names": [], "died": []}),
                          (2, "join", {"count": 1, "names": ["beta"]}, {"count": 0, "names": [], "died": []})])
        created, joined = seen["changes"]
        self.assertEqual((created["moved"], created["took_ms"], joined["moved"], joined["under_way"]),
                         (0, None, 1, False))
        page = run("history", "--path", self.path, "--wide")
        self.assertEqual((page.returncode, page.stderr), (0, ""))
        rows = [re.split(r" {2,}", line.strip()) for line in page.stdout.splitlines()]
        self.assertEqual(rows[0], ["PLAN", "WHEN", "AGE", "REASON", "MOVED", "TOOK", "JOINED", "LEFT"])
        self.assertEqual([(row[0], row[1], row[3], row[4], *row[6:]) for row in rows[1:]],
                         [("1", created["at"], "create", "0", "alpha", "-"),
                          ("2", joined["at"], "join", "1", "beta", "-")])
        self.assertRegex(rows[2][5], r"\A\d+(ms|\.\ds)\Z")
        self.assertEqual(tree(self.path), before)
        first.stop()
        self.settle(second)
        told = json.loads(Setting.zookeeper.get(self.epoch())[0])["changes"]
        self.assertEqual([(c["reason"], c["at_ms"] == 0) for c in told[1:]], [("join", False), ("leave", True)])
        self.assertEqual((told[1]["at_ms"], told[1]["took_ms"]), (plan.mtime, joined["took_ms"]))
        left = self.changes()[-1]
        self.assertEqual((left["reason"], left["left"], left["moved"]),
                         ("leave", {"count": 1, "names": ["alpha"], "died": []}, 2))

    # A member that is killed has died: what watches its death says so, with how long its session went on. One that
    # ended in good order has left, and so has one that came back and ended so.
    def test_died(self):
        members = {}
        for name in ("anna", "bert", "carl"):
            members[name] = CommandMember(self.path, name, ITEMS)
            self.addCleanup(members[name].stop)
            wait_for(lambda: any(name in c["joined"]["names"] for c in self.told()), name + " has joined")

        def left(name):
            return [c["left"] for c in self.told() if name in c["left"]["names"]]
        killed = time.monotonic()
        members["anna"].stop(signal.SIGKILL)
        wait_for(lambda: Setting.zookeeper.exists(self.path + "/deaths"), "the death is told")
        took_ms = (time.monotonic() - killed) * 1000
        wait_for(lambda: left("anna"), "anna has left")
        died = left("anna")[0]["died"]
        self.assertEqual([(death["name"], list(death)) for death in died], [("anna", ["name", "seen_ms", "session"])])
        self.assertTrue(0 <= died[0]["seen_ms"] <= took_ms, (died, took_ms))
        members["bert"].stop()
        wait_for(lambda: left("bert"), "bert has left")
        self.assertEqual(left("bert")[0]["died"], [])
        again = CommandMember(self.path, "anna", ITEMS)
        self.addCleanup(again.stop)
        wait_for(lambda: self.told()[-1]["joined"]["names"] == ["anna"], "anna is back")
        again.stop()
        wait_for(lambda: len(left("anna")) == 2, "anna has left again")
        self.assertEqual([len(entry["died"]) for entry in left("anna")], [1, 0])
        page = run("history", "--path", self.path, "--wide").stdout
        self.assertRegex(page, r"(?m)  anna \(died, [0-9.]+m?s\)$")
        self.assertRegex(page, r"(?m)  bert$")
        format_of = run("history", "--path", self.path, "--format", "{reason} {left.died}").stdout
        self.assertIn('[{"name":"anna","seen_ms":', format_of)

    def told(self):
        """The changes whose writer has told of them; none where there is no pool yet."""
        done = run("history", "--path", self.path, "--json")
        return [c for c in json.loads(done.stdout)["changes"] if c["left"]] if done.returncode == 0 else []

    # What is written of deaths is not believed: nonsense is nothing, and a name breaks no line.
    def test_hostile_deaths(self):
        self.pool()
        evil = "\x1b[31mred\n\u202eevil"
        at_ms = 1700000000000
        Setting.zookeeper.set(self.path + "/plan/" + EPOCH, history_text([change(7, at_ms=at_ms, left=[evil])]))
        death = {"name": evil, "session": "1f", "at_ms": at_ms - 100, "seen_ms": 90071992547409}
        text = json.dumps({"deaths": [death]}).replace(" ", "").encode()
        self.make(self.path + "/deaths", text)
        self.assertEqual(self.changes()[0]["left"]["died"],
                         [{"name": evil, "seen_ms": 90071992547409, "session": "0x1f"}])
        lines = run("history", "--path", self.path).stdout.split("\n")
        self.assertTrue(all(line.isascii() and line.isprintable() for line in lines), lines)
        for text in (b"", b"nonsense", b"{}", b"[" * 20000, b"\xff" * 900000, b'{"deaths":[{}]}'):
            Setting.zookeeper.set(self.path + "/deaths", text)
            self.assertEqual(self.changes()[0]["left"]["died"], [], text[:100])

    # Nonsense beside the plan is no error: it is told, the plan is shown, and the next change puts it right. A change
    # of an older release, which tells nothing, is a hole that stays.
    def test_holes(self):
        first = self.member("alpha")
        self.settle(first)
        Setting.zookeeper.set(self.epoch(), b'{"changes":[{"generation":')
        done = run("history", "--path", self.path, "--json")
        self.assertEqual(done.returncode, 0)
        self.assertIn("cannot be read; the next change puts another in its place", done.stderr)
        seen = json.loads(done.stdout)
        self.assertEqual((seen["readable"], seen["missing"], len(seen["changes"])), (False, [], 1))
        only = seen["changes"][0]
        self.assertEqual((only["generation"], only["reason"], only["moved"], only["joined"], only["left"]),
                         (1, "create", None, None, None))
        second = self.member("beta")
        self.settle(first, second)
        seen = self.history()
        self.assertEqual((seen["readable"], seen["missing"]), (True, []))  # Its writer remembers the history.
        self.assertEqual([c["generation"] for c in seen["changes"]], [1, 2])
        text, stat = Setting.zookeeper.get(self.path + "/plan")
        Setting.zookeeper.set(self.path + "/plan", text.replace(b'"generation":2,', b'"generation":4,'), stat.version)
        seen = self.history()
        self.assertEqual(seen["missing"], [{"from": 3, "to": 3}])
        self.assertEqual([(c["generation"], c["moved"] is None) for c in seen["changes"]],
                         [(1, False), (2, False), (4, True)])
        first.stop()
        self.settle(second)
        seen = self.history()
        self.assertEqual(seen["missing"], [{"from": 3, "to": 4}])
        self.assertEqual([(c["generation"], c["at"] is None) for c in seen["changes"]],
                         [(1, False), (2, False), (5, False)])
        page = run("history", "--path", self.path, "--wide").stdout.splitlines()
        self.assertRegex(page[3], r"\A +3-4  - +-  not written down ")

    # Names can neither break a line nor send a terminal anything, however many there are; 64 changes are shown.
    def test_hostile(self):
        self.pool()
        evil = "\x1b[31mred\n\u202eevil"
        changes = [change(g, "later" if g % 2 else "join", moved=1000000, joined=[evil]) for g in range(100, 164)]
        changes[3]["left"] = {"count": 10000, "names": []}
        changes[4]["at_ms"] = 9007199254740991
        changes[5]["took_ms"] = 9007199254740991
        Setting.zookeeper.set(self.path + "/plan/" + EPOCH, history_text(changes))
        page = run("history", "--path", self.path, "--wide")
        self.assertEqual((page.returncode, page.stderr), (0, ""))
        narrow = run("history", "--path", self.path).stdout
        self.assertTrue(narrow.isascii() and all(line.isprintable() for line in narrow.split("\n")), narrow)
        lines = page.stdout.split("\n")
        self.assertTrue(page.stdout.isascii() and all(line.isprintable() for line in lines), lines)
        self.assertEqual(len([line for line in lines if "%1B[31mred%0A%E2%80%AEevil" in line]), 64)
        self.assertIn("10000", lines[4])
        self.assertEqual(self.changes()[0]["joined"]["names"], [evil])
        for text in (history_text(changes + changes), b"[" * 20000, b"{}", b"\xff" * 900000, history_text([{}])):
            Setting.zookeeper.set(self.path + "/plan/" + EPOCH, text)
            done = run("history", "--path", self.path, "--json")
            self.assertEqual((done.returncode, json.loads(done.stdout)["readable"]), (0, False), text[:100])
        Setting.zookeeper.delete(self.path + "/plan/" + EPOCH)
        self.assertEqual([c["generation"] for c in self.changes()], [7])

    # A line fits 80 columns, however many members join and leave, and however long and wide their names are; the names
    # that are left out are counted, and a long one is shortened in its middle. --wide shows all names that are known.
    def test_narrow(self):
        self.pool()
        pods = ["queue-worker-7c9b4d5f8-x%04d" % number for number in range(8)]
        wide = ["\u5de5" * 20 + str(number) for number in range(8)]
        long = ["a" * 60 + "-%02d" % number for number in range(8)]
        evil = ["\x1b" * 64]
        rows = [change(100, joined=pods, left=pods), change(101, joined=wide, left=wide),
                change(102, "absence", moved=1000000, joined=long, left=long), change(103, joined=evil, left=evil),
                change(104, joined=["a", "b", "c"], left=long[:1])]
        rows[2]["joined"]["count"] = rows[2]["left"]["count"] = 10000
        Setting.zookeeper.set(self.path + "/plan/" + EPOCH, history_text(rows))
        lines = run("history", "--path", self.path).stdout.splitlines()
        for line in lines:
            self.assertLessEqual(width_of(line), 80, line)
        self.assertEqual(lines[0].split(), ["PLAN", "AGE", "REASON", "MOVED", "TOOK", "JOINED", "LEFT"])
        self.assertRegex(lines[2], r"  (q\w+\.\.\.[0-9a-f-]*-x0000 \+7 *){2}\Z")
        self.assertRegex(lines[4], r"  (a+\.\.\.a+-00 \+9999 *){2}\Z")
        self.assertRegex(lines[6], r"  a, b, c +a+\.\.\.a+-00\Z")
        self.assertEqual(lines[-1], "Shortened to 80 columns: --wide and --json show all.")
        whole = run("history", "--path", self.path, "--wide").stdout.splitlines()
        self.assertIn("WHEN", whole[0])
        self.assertEqual(whole[2].split("  ")[-1], ", ".join(pods))
        self.assertIn("  %s +9992  " % ", ".join(long), whole[4])
        self.assertEqual(self.changes()[0]["joined"]["names"], pods)

    # A change is under way as long as some note says that an item is leaving. It took until the last note that gave
    # one.
    def test_duration(self):
        client = self.pool()["a"]
        Setting.zookeeper.set(self.path + "/plan/" + EPOCH, history_text([change(7, at_ms=0)]))
        self.assertEqual((self.changes()[-1]["under_way"], self.changes()[-1]["took_ms"]), (False, None))
        client.ensure_path(self.path + "/notes")
        note = self.path + "/notes/" + NODE % (1, 1, "a")

        def text(leaving, given):
            return json.dumps({"v": 1, "set": set_of(ITEMS), "leaving": leaving, "ready": [1], "given": given},
                              separators=(",", ":")).encode()
        client.create(note, text([], [["1a", [0, 3]]]), ephemeral=True)
        self.assertEqual(self.changes()[-1]["took_ms"], None)  # It was made so, with what was given before.
        client.set(note, text([2], [["1a", [0, 3]]]))
        self.assertEqual((self.changes()[-1]["under_way"], self.changes()[-1]["took_ms"]), (True, None))
        self.assertIn("under way", run("history", "--path", self.path).stdout)
        client.set(note, text([], [["1a", [0, 3, 2, 4]]]))
        took = client.get(note)[1].mtime - client.get(self.path + "/plan")[1].mtime
        self.assertEqual((self.changes()[-1]["under_way"], self.changes()[-1]["took_ms"]), (False, took))

    # Pools without a plan that can be followed have no history, and it is said why.
    def test_no_plan(self):
        ask = ["history", "--path", self.path]
        self.assert_fails(1, ask, "there is no pool at " + self.path)
        kazoo = KazooMember(self.path, "k", ITEMS)
        self.addCleanup(kazoo.stop)
        wait_for(kazoo.acquired, "the member of kazoo's has acquired")
        self.assert_fails(1, ask, "has no plan, and only plans have a history")
        self.make(self.path + "/plan", b"nonsense")
        self.assert_fails(1, ask, "is broken")
        Setting.zookeeper.set(self.path + "/plan", b'{"v":2}')
        self.assert_fails(1, ask, "a later release of divvy wrote the plan")

    # A pool that kazoo has joined keeps its history, and it goes on when kazoo has left.
    def test_kazoo_joins(self):
        first = self.member("alpha")
        self.settle(first)
        kazoo = KazooMember(self.path, "k", ITEMS)
        self.addCleanup(kazoo.stop)
        wait_for(lambda: kazoo.acquired() and kazoo.owned, "the member of kazoo's has its share")
        self.assertEqual([c["reason"] for c in self.changes()], ["create"])
        kazoo.stop()
        self.settle(first)
        second = self.member("beta")
        self.settle(first, second)
        self.assertEqual(self.changes()[-1]["joined"]["names"], ["beta"])
        self.assertEqual(self.changes()[0]["reason"], "create")

    # What cannot be asked so.
    def test_refused(self):
        for arguments, fragment in (([], "--path is missing"), (["--path", "q"], "begin with a slash"),
                                    (["--path", "/q", "x"], '"x"'), (["--path", "/q//r"], "/q//r")):
            self.assert_fails(2, ["history", *arguments], fragment)
        self.assert_fails(3, ["history", "--path", self.path, "--timeout", "300ms"], connect=NOWHERE)


if __name__ == "__main__":
    main(__file__)
