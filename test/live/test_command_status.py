#!/usr/bin/python3
"""`divvy status`. SPDX-License-Identifier: Apache-2.0

Shows the table of a live pool, of kazoo's members too, in all widths.

usage: test_command_status.py BUILD_FOLDER [TEST...]     a TEST is a name such as Status.test_mixed
"""
import json
import os
import re
import subprocess
import time

from kazoo.client import KazooClient
from kazoo.security import make_digest_acl

from command_harness import DEADLINE_S, NOWHERE, Setting, main, tls_environment, wait_for
from look_harness import Case, Delay, DivvyMember, KazooMember, plan_text, run, tree

ITEMS = ["item-%02d" % number for number in range(1, 13)]


def by(key, rows):
    return {row[key]: row for row in rows}


class Status(Case):
    def start(self, kind, *identifiers, items=ITEMS):
        members = [kind(self.path, identifier, items) for identifier in identifiers]
        for member in members:
            self.addCleanup(member.stop)
        return members

    def wait_divided(self, members, items=ITEMS):
        wait_for(lambda: all(member.acquired() for member in members) and
                 sorted(item for member in members for item in member.owned) == sorted(items), "all items are owned")

    # In a pool of divvy and kazoo members it tells who they are, and of each item the owner by his own word; items that
    # nobody owns are told, with a directory and without.
    def test_mixed(self):
        divvy = self.start(DivvyMember, "d one", "d-two")
        kazoo = self.start(KazooMember, "k1", "k-2")
        self.wait_divided(divvy + kazoo)
        self.make(self.path + "/locks/forsaken")
        expected = self.file("\n".join(ITEMS + ["missing"]))
        seen = self.shown("status", "--path", self.path, "--items-from", expected)
        self.assertEqual(seen["path"], self.path)
        self.assertEqual([member["identifier"] for member in seen["members"]], ["d one", "d-two", "k-2", "k1"])
        members = by("identifier", seen["members"])
        for member in divvy + kazoo:
            told = members[member.identifier]
            self.assertEqual(told["kind"], "divvy" if member in divvy else "kazoo")
            self.assertEqual(told["items"], len(member.owned))
            self.assertEqual(told["pid"], member.process.pid if member in divvy else None)
            self.assertEqual(told["host"], os.uname().nodename if member in divvy else None)
            self.assertRegex(told["since"], r"\A20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z\Z")
        for member in kazoo:
            self.assertEqual(members[member.identifier]["session"], "0x%x" % member.client.client_id[0])
        self.assertEqual([item["item"] for item in seen["items"]], sorted(ITEMS + ["forsaken", "missing"]))
        items = by("item", seen["items"])
        for member in divvy + kazoo:
            for item in member.owned:
                self.assertEqual((items[item]["owner"], items[item]["in_party"]), (member.identifier, True))
                self.assertEqual(items[item]["session"], members[member.identifier]["session"])
        for member in divvy:
            self.assertEqual({item: items[item]["token"] for item in member.owned}, member.tokens)
        for item in ITEMS:
            self.assertLess(items[item]["age_ms"], DEADLINE_S * 1000)
            self.assertEqual(items[item]["waiting"], 0)
        for item in ("forsaken", "missing"):
            self.assertEqual(items[item], {"item": item, "owner": None, "planned_owner": None, "waiting": 0})
        self.assertEqual([seen[key] for key in ("unowned", "strays", "least", "most", "imbalance")], [2, 0, 3, 3, 0])

    # The page for people has a line for each member and each item, and marks what nobody owns.
    def test_page(self):
        members = self.start(DivvyMember, "alpha")
        self.wait_divided(members)
        self.make(self.path + "/locks/forsaken")
        done = run("status", "--path", self.path, "--wide")
        lines = [re.split(r"  +", line) for line in done.stdout.splitlines()]
        self.assertEqual(done.stdout.splitlines()[0], self.path + ": 1 member, 13 items, 1 unowned, "
                         "12 to 12 items each (imbalance 0)")
        self.assertEqual(done.stdout.splitlines()[1], "plan 1, create")
        self.assertIn(["MEMBER", "KIND", "HOST", "PID", "SINCE", "ITEMS", "PLANNED", "WEIGHT", "ZONE", "STATE"], lines)
        self.assertEqual([line[5:] for line in lines if line[:2] == ["alpha", "divvy"]],
                         [["12", "12", "1000", "-", "-"]])
        self.assertEqual(len([line for line in lines if line[1:2] == ["alpha"]]), 12)
        self.assertIn(["forsaken", "(unowned)", "-", "-", "-", "0"], lines)
        self.assertIn(["ITEM", "OWNER", "NEXT", "TOKEN", "AGE", "WAITING"], lines)

    # Where the pool follows a plan, what that says of its members is shown: who is drained, and whose place is kept
    # while it is away; a plan that is not followed, and one that cannot be read, is said to be so.
    def test_plan(self):
        members = alpha, beta = self.start(DivvyMember, "alpha", "beta")
        self.wait_divided(members)
        seen = self.shown("status", "--path", self.path)["plan"]
        reason = seen["reason"]
        entry = {"static": False, "weight": 1000, "zone": None, "items": 6, "state": None, "rejoin_delay_ms": None,
                 "releasing": 0}
        nodes = {node.split("-", 1)[1]: node for node in Setting.zookeeper.get_children(self.path + "/party")}
        self.assertEqual(sorted(seen.pop("members"), key=lambda member: member["identifier"]),
                         [dict(entry, identifier=name, node=nodes[name]) for name in ("alpha", "beta")])
        self.assertEqual(seen, {"generation": seen["generation"], "reason": reason, "in_force": True, "items": 12,
                                "max_moves": 0, "moving": 0})
        self.assertIn(reason, ("create", "join"))
        done = run("drain", "--path", self.path, "--wait", "beta")
        self.assertEqual(done.returncode, 0, done.stderr)
        plan = self.shown("status", "--path", self.path)["plan"]
        self.assertEqual((plan["generation"], plan["reason"]), (seen["generation"] + 1, "drain"))
        told = by("identifier", plan["members"])
        self.assertEqual([(told[name]["items"], told[name]["weight"], told[name]["state"])
                          for name in ("alpha", "beta")],
                         [(12, 1000, None), (0, 0, "drained")])
        page = run("status", "--path", self.path, "--wide").stdout.splitlines()
        self.assertEqual(page[1], "plan %d, drain: 1 drained" % plan["generation"])
        self.assertTrue(any(re.match(r"beta .* 0 +0 +0 +- +drained\Z", line.rstrip()) for line in page), page)
        kazoo = self.start(KazooMember, "k")
        wait_for(lambda: all(member.acquired() for member in members + kazoo), "they share with kazoo")
        self.assertFalse(self.shown("status", "--path", self.path)["plan"]["in_force"])
        self.assertIn(", drain, not in force: 1 drained", run("status", "--path", self.path, "--wide").stdout)
        Setting.zookeeper.set(self.path + "/plan", b'{"v":7}')
        self.assertEqual(self.shown("status", "--path", self.path)["plan"], {"unusable": "of a later release"})
        Setting.zookeeper.set(self.path + "/plan", b'nonsense')
        self.assertIn("\nplan: broken\n", run("status", "--path", self.path).stdout)

    # What a plan can say of members, all at once: one away, one that leaves, one whose place another has taken, one
    # that is not in it yet, one of weight 0.
    def test_plan_states(self):
        party, node = self.path + "/party/", "0000000000%d00000000000%d,a=2,s=00000000-%s"
        static = b'{"id":"x","static":true,"rejoin_delay_ms":60000}'
        fenced, static_node, leaving, new, drained = (node % (1, 1, "host-1"), node % (2, 1, "host-1"),
                                                      node % (3, 1, "d"),
                                                      node % (4, 1, "n"), node % (5, 1, "w"))
        for name in (fenced, static_node, leaving, new, drained):
            self.make(party + name, static if name.endswith("host-1") else b"{}", ephemeral=True)
        members = [{"slot": slot, "key": key, "static": int(key.startswith("host")), "weight": weight, "zone": zone,
                    "rejoin_delay_ms": 60000 if key.startswith("host") else 0, "absent": absent, "leaving": leaves}
                   for slot, key, weight, zone, absent, leaves in (
                       (0, "host-1", 1000, "r1", "0", ""), (1, "host-2", 500, "r2", "1a", ""),
                       (2, leaving, 1000, "", "0", leaving), (3, drained, 0, "", "0", ""))]
        self.make(self.path + "/plan", plan_text(["x", "y", "z"], members, "001", moved=[1]))
        plan = self.shown("status", "--path", self.path)["plan"]
        self.assertEqual((plan["generation"], plan["reason"], plan["in_force"], plan["moving"]),
                         (7, "absence", True, 1))
        self.assertEqual([(member["identifier"], member["node"], member["static"], member["weight"], member["zone"],
                           member["items"], member["state"]) for member in plan["members"]],
                         [("host-1", static_node, True, 1000, "r1", 2, None),
                          ("host-2", None, True, 500, "r2", 1, "absent"),
                          ("d", leaving, False, 1000, None, 0, "leaving"),
                          ("w", drained, False, 0, None, 0, "drained")])
        lines = run("status", "--path", self.path, "--wide").stdout.splitlines()
        self.assertEqual(lines[1], "plan 7, absence: 1 on their way, 1 drained, 1 absent, 1 leaving")
        cells = [re.split(r"  +", line.rstrip()) for line in lines[4:10]]
        self.assertEqual([(row[0], row[1], row[-5:]) for row in cells],
                         [("d", "divvy", ["0", "0", "1000", "-", "leaving"]),
                          ("host-1", "divvy", ["0", "-", "-", "-", "fenced"]),
                          ("host-1", "divvy", ["0", "2", "1000", "r1", "-"]),
                          ("n", "divvy", ["0", "-", "-", "-", "new"]), ("w", "divvy", ["0", "0", "0", "-", "drained"]),
                          ("host-2", "-", ["-", "1", "500", "r2", "absent, 1 kept for it up to 1m00s"])])
        Setting.zookeeper.delete(party + leaving)  # It has left, and the plan names it until the next one.
        page = run("status", "--path", self.path, "--wide").stdout
        self.assertEqual(page.splitlines()[1], "plan 7, absence: 1 on their way, 1 drained, 1 absent")
        self.assertNotRegex(page, r"(?m)^d ")
        self.assertEqual([member["state"] for member in self.shown("status", "--path", self.path)["plan"]["members"]],
                         [None, "absent", "left", "drained"])
        self.assertIn("divides 3 items among 3 members", run("doctor", "--path", self.path).stdout)

    def cells(self, *arguments):
        page = run("status", "--path", self.path, "--wide", *arguments).stdout
        return page.splitlines()[1], [re.split(r"  +", line.rstrip()) for line in page.splitlines()]

    # A static member is absent though another process that is no static one has its identifier: it is told for how long
    # its place is kept, and how many items wait.
    def test_absent(self):
        clients = self.make_pool({"e1"}, (("d1", True), ("e1", True)), ["x", "y", "z"], "001")
        again = "0000000000900000000000" + "1,a=2,s=00000000-d1"
        clients["e1"].create(self.path + "/party/" + again, b'{"id":"d1"}', ephemeral=True)
        told = self.shown("status", "--path", self.path)["plan"]["members"]
        self.assertEqual([(entry["identifier"], entry["node"] is None, entry["items"], entry["state"],
                           entry["rejoin_delay_ms"])
                          for entry in told], [("d1", True, 2, "absent", 20000), ("e1", False, 1, None, 20000)])
        summary, lines = self.cells("--item", "x")
        self.assertTrue(summary.endswith(": 1 absent"), summary)
        self.assertIn(["d1", "-", "-", "-", "-", "-", "2", "1000", "-", "absent, 2 kept for it up to 20s"], lines)
        self.assertIn("new", [line[-1] for line in lines if line[:2] == ["d1", "divvy"]])
        self.assertIn(["x", "(unowned)", "d1", "-", "-", "0"], lines)

    # A member that still holds what the plan gives to another is releasing that, and it is told who comes next.
    def test_releasing(self):
        clients = self.make_pool({"a", "b"}, (("a", False), ("b", False)), ["x", "y", "z"], "011")
        for item in "xyz":
            clients["a"].ensure_path(self.path + "/locks/" + item)
            clients["a"].create(self.path + "/locks/" + item + "/__lock__0000000001", b"a", ephemeral=True)
        seen = self.shown("status", "--path", self.path)
        self.assertEqual([(item["owner"], item["planned_owner"]) for item in seen["items"]],
                         [("a", "a"), ("a", "b"), ("a", "b")])
        self.assertEqual([member["releasing"] for member in seen["plan"]["members"]], [2, 0])
        summary, lines = self.cells()
        self.assertTrue(summary.endswith(": 2 to be released"), summary)
        self.assertEqual({line[0]: line[-1] for line in lines if line[1:2] == ["divvy"]},
                         {"a": "releasing 2", "b": "-"})
        self.assertEqual([line[:3] for line in lines if line[0] in "xyz" and line[0]],
                         [["x", "a", "-"], ["y", "a", "b"], ["z", "a", "b"]])

    # A member that was killed has its identifier, not its node's name, and nobody waits for it; in a pool where nobody
    # is left it is not shown.
    def test_gone(self):
        clients = self.make_pool({"a"}, (("a", False), ("b", False)), ["x", "y"], "01")
        summary, lines = self.cells()
        self.assertTrue(summary.endswith(": 1 gone"), summary)
        self.assertIn(["b", "-", "-", "-", "-", "-", "1", "1000", "-", "gone"], lines)
        clients["a"].stop()
        summary, lines = self.cells()
        self.assertEqual(summary, "plan 7, absence, not in force: nobody is in the pool")
        self.assertEqual([line for line in lines if line[0] in ("a", "b")], [])
        self.assertEqual([entry["state"] for entry in self.shown("status", "--path", self.path)["plan"]["members"]],
                         ["gone", "gone"])

    # The first of a queue owns the item, by its number and not by its name; who has no node in the party is told so;
    # places that are no contenders' count for nothing.
    def test_queues(self):
        me = self.client()
        items = self.path + "/locks/"
        self.make(items + "a/x__lock__0000000012", b"later", ephemeral=True)
        self.make(items + "a/y__lock__0000000009", b"first", ephemeral=True)
        self.make(items + "a/z__lock__-2147483648", b"wrapped", ephemeral=True)
        self.make(items + "b/__lock__12", b"no number")
        self.make(items + "b/__lock__0000000001x", b"no number")
        Setting.zookeeper.ensure_path(items + "c")
        me.create(items + "c/" + "f" * 32 + "__lock__0000000000", b"", ephemeral=True)
        Setting.zookeeper.ensure_path(self.path + "/party")
        seen = by("item", self.shown("status", "--path", self.path)["items"])
        self.assertEqual((seen["a"]["owner"], seen["a"]["in_party"], seen["a"]["waiting"]), ("first", False, 2))
        self.assertEqual(int(seen["a"]["token"]), Setting.zookeeper.exists(items + "a/y__lock__0000000009").czxid)
        self.assertEqual(seen["b"]["owner"], None)
        self.assertEqual((seen["c"]["owner"], seen["c"]["in_party"]), ("session 0x%x" % me.client_id[0], False))
        page = run("status", "--path", self.path).stdout
        self.assertRegex(page, r"(?m)^a +first \(not in the party\) +[0-9]+ +[0-9]+s +2$")
        # Its session joins the party: it is a member of kazoo's.
        me.create(self.path + "/party/" + "0" * 32 + "-somebody", b"somebody", ephemeral=True)
        seen = by("item", self.shown("status", "--path", self.path)["items"])
        self.assertEqual((seen["c"]["owner"], seen["c"]["in_party"]), ("somebody", True))

    # kazoo writes names with slashes raw, as directories in directories: they are items all the same, by their names.
    def test_slashes(self):
        items = ["plain", "tenant/1", "tenant/2", "deep/er/still", "tenant"]
        members = self.start(KazooMember, "k1", "k2", items=items)
        self.wait_divided(members, items)
        self.make(self.path + "/locks/empty/of/all")
        for arguments in ([], ["--item", "tenant/1", "--item", "never"]):
            seen = self.shown("status", "--path", self.path, *arguments)
            self.assertEqual([(item["item"], item["owner"]) for item in seen["items"] if item["owner"]],
                             sorted((item, member.identifier) for member in members for item in member.owned))
            self.assertEqual([item["item"] for item in seen["items"] if not item["owner"]],
                             ["empty"] + ["never"][:len(arguments)])

    # Whatever stands in the party and in the locks, names and data alike, the page keeps its lines and JSON is JSON.
    def test_hostile(self):
        party, locks = self.path + "/party/", self.path + "/locks/"
        for name in ("stray", "0" * 31 + "-short", ",a=2-x", "guid,a-x"):
            self.make(party + name, ephemeral=True)
        self.make(party + "1" * 32 + "-persistent")
        for number, data in enumerate((b"", b"\xff\x00\n", b"{" * 100000, b'{"id":1}', b'{"id":"x","pid":"y","host":3}',
                                       b'{"id":"x","pid":-5,"since":"\x1b[2J","host":"a\\nb"}')):
            self.make(party + "guid%d,a=1,s=zz-name%d" % (number, number), data, ephemeral=True)
        self.make(locks + "one/__lock__0000000001", b"evil\x1b[2J\nMEMBER \xff", ephemeral=True)
        self.make(locks + "two/__lock__0000000001", b"x" * 100000, ephemeral=True)
        self.make(locks + "50%25/__lock__0000000001", b"", ephemeral=True)
        self.make(locks + "%00%2F")
        self.make(locks + "a%2Fb")
        seen = self.shown("status", "--path", self.path)
        self.assertEqual([member["identifier"] for member in seen["members"]], ["name%d" % i for i in range(6)])
        self.assertEqual(seen["strays"], 5)
        self.assertEqual([item["item"] for item in seen["items"]], ["%00%2F", "50%25", "a/b", "one", "two"])
        page = run("status", "--path", self.path, "--wide").stdout
        self.assertEqual(len(page.splitlines()), 1 + 1 + 1 + 6 + 1 + 1 + 5)
        self.assertNotIn("\x1b", page + run("status", "--path", self.path).stdout)

    # Two names never look the same: characters that are not seen are shown by their bytes, and escaped in JSON.
    def test_unseen(self):
        unseen = ("\u202a\u202e\u2066\u2069\u200b\u200d\u200f\u2028\u2060\ufeff\u061c"
                  "\u00ad\u034f\u180e\ufe0f\u0085\U000e0041")
        names = ["x"] + ["x" + character for character in unseen]
        for name in names:
            if name[1:] not in ("\U000e0041", "\u0085"):
                self.make(self.path + "/locks/" + name + "/__lock__0000000001", "o\u202ewner".encode(), ephemeral=True)
        named = [word for name in names for word in ("--item", name)]
        page = run("status", "--path", self.path, *named).stdout
        self.assertEqual(len(re.findall(r"(?m)^x", page)), len(names))
        self.assertTrue(page.isascii(), ascii(page))
        self.assertIn("\nx%E2%80%AE ", page)
        self.assertIn("\nx%F3%A0%81%81 ", page)
        self.assertIn(" o%E2%80%AEwner (not in the party) ", page)
        text = run("status", "--path", self.path, "--json", *named).stdout
        self.assertTrue(text.isascii(), ascii(text))
        self.assertEqual(sorted(item["item"] for item in json.loads(text)["items"]), sorted(names))
        self.assertIn(r"x\udb40\udc41", text)
        refused = run("status", "--path", "/a\u202eb")
        self.assertNotIn("\u202e", refused.stderr)

    # Columns stay columns with names of all scripts.
    def test_widths(self):
        for name in ("plain", "grün", "日本語", "x" * 30):
            self.make(self.path + "/locks/" + name + "/__lock__0000000001", b"me", ephemeral=True)
        lines = [line for line in run("status", "--path", self.path).stdout.splitlines() if " me " in line]
        self.assertEqual(len(lines), 4)
        width = {"日": 2, "本": 2, "語": 2}
        self.assertEqual({sum(width.get(character, 1) for character in line.split(" me ")[0]) for line in lines}, {31})

    # 10,000 items are looked at in a few round trips' time, and each has its owner.
    def test_many(self):
        count = 10000
        Setting.zookeeper.ensure_path(self.path + "/locks")
        Setting.zookeeper.ensure_path(self.path + "/party")
        Setting.zookeeper.create(self.path + "/party/" + "a" * 32 + "-me", b"me", ephemeral=True)
        for first in range(0, count, 250):
            made = Setting.zookeeper.transaction()
            for number in range(first, first + 250):
                made.create("%s/locks/item-%05d" % (self.path, number))
                made.create("%s/locks/item-%05d/__lock__0000000000" % (self.path, number), ephemeral=True)
            made.commit()
        seen = self.shown("status", "--path", self.path, "--timeout", "50s")
        self.assertEqual([item["owner"] for item in seen["items"]], ["me"] * count)
        self.assertEqual((seen["members"][0]["items"], seen["imbalance"]), (count, 0))

    # Over a connection of 20 ms each way, 400 items take far less than the 800 round trips of one read after the other:
    # less than half of what as many would take that are as slow as the machine makes them just now.
    def test_pipelined(self):
        count, delay_s = 400, 0.02
        for number in range(count):
            self.make("%s/locks/item-%03d/__lock__0000000000" % (self.path, number), ephemeral=True)
        slow = Delay(Setting.server.connect, delay_s)
        self.addCleanup(slow.stop)
        plain = Delay(Setting.server.plain, delay_s)  # for kazoo, over TLS too
        self.addCleanup(plain.stop)
        single = KazooClient(plain.connect)
        single.start(DEADLINE_S)
        self.addCleanup(single.close)
        self.addCleanup(single.stop)
        sample, begun = 20, time.monotonic()
        for _ in range(sample):
            single.exists(self.path)
        round_trip_s = (time.monotonic() - begun) / sample
        self.assertGreaterEqual(round_trip_s, 2 * delay_s)
        begun = time.monotonic()
        self.assertEqual(len(self.shown("status", "--path", self.path, connect=slow.connect)["items"]), count)
        self.assertLess(time.monotonic() - begun, 2 * count * round_trip_s / 2)

    # Looking changes nothing: no node is made, a pool's, a root's or a chroot's that is missing neither.
    def test_changes_nothing(self):
        self.make(self.path + "/locks/x/__lock__0000000001", b"me", ephemeral=True)
        before = tree()
        self.shown("status", "--path", self.path)
        run("status", "--path", "/nowhere/at/all")
        run("status", "--path", "/x", connect=Setting.server.connect + "/no/chroot")
        self.shown("locks")
        self.shown("locks", "--root", "/no/root")
        run("locks", "name", "--root", "/no/root")
        self.assertEqual(tree(), before)

    # Below a chroot, it is the chroot's pool that is shown.
    def test_chroot(self):
        self.make(self.path + "/deep/pool/locks/x/__lock__0000000001", b"me", ephemeral=True)
        seen = self.shown("status", "--path", "/pool", connect=Setting.server.connect + self.path + "/deep")
        self.assertEqual((seen["path"], seen["items"][0]["owner"]), ("/pool", "me"))
        self.assert_fails(2, ["status", "--path", "/x"], "chroot", connect=Setting.server.connect + "/a//b")

    # $DIVVY_CONNECT is where to connect to without --connect; --verbose logs to stderr, and leaves stdout as it is.
    def test_environment(self):
        self.make(self.path + "/locks/x")
        done = subprocess.run([Setting.divvy, "status", "--path", self.path, "--verbose"], text=True, check=True,
                              env={"DIVVY_CONNECT": Setting.server.connect, **tls_environment()},
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=DEADLINE_S)
        self.assertEqual(done.stdout, run("status", "--path", self.path).stdout)
        self.assertRegex(done.stderr, r"(?m)^divvy: log info: connected: session 0x[0-9a-f]+")

    # What cannot be shown is told in one line, with the exit code of its kind.
    def test_failures(self):
        self.assert_fails(1, ["status", "--path", "/nowhere"], "no pool at /nowhere")
        for subcommand in (["status", "--path", "/q"], ["locks"], ["locks", "name"]):
            self.assert_fails(3, subcommand + ["--timeout", "200ms"], NOWHERE, "200 ms", connect=NOWHERE)
            self.assert_fails(3, subcommand + ["--timeout", "200ms"], "resolved", connect="no.such.host.invalid:2181")
        # Who may not read is told which node it is; with the credentials it can be read.
        acl = make_digest_acl("user", "secret", all=True)
        self.make(self.path + "/locks/x/__lock__0000000001", b"me", ephemeral=True)
        Setting.zookeeper.set_acls(self.path + "/locks", [acl])
        self.assert_fails(1, ["status", "--path", self.path], self.path + "/locks cannot be read")
        auth = self.file("user:secret\n")
        seen = self.shown("status", "--path", self.path, "--auth-file", auth)
        self.assertEqual(seen["items"][0]["owner"], "me")
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = run("status", "--path", self.path, "--auth-file", auth, stdout=full)
        self.assertEqual(done.returncode, 1)
        self.assertIn("standard output", done.stderr)

    # Wrong usage is told in one line that names the mistake, with exit code 2.
    def test_usage(self):
        for arguments, fragment in (
                (["status"], "--path is missing"),
                (["status", "--path", "q"], "begin with a slash"),
                (["status", "--path", "/q/"], '"/q/"'),
                (["status", "--path", "/q", "word"], '"word"'),
                (["status", "--path", "/q", "--interval", "1ms"], "--interval"),
                (["status", "--path", "/q", "--timeout", "0"], "--timeout"),
                (["status", "--path", "/q", "--item", "a", "--items-from", "/dev/null"], "not both"),
                (["status", "--path", "/q", "--auth-file", "/nonexistent"], "/nonexistent"),
                (["locks", "a", "b"], '"b"'),
                (["locks", ""], "NAME cannot be empty"),
                (["locks", "--root", "x"], '"x"'),
                (["locks", "--nonsense"], "--nonsense")):
            with self.subTest(arguments=arguments):
                self.assert_fails(2, arguments, fragment)


if __name__ == "__main__":
    main(__file__)
