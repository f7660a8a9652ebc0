#!/usr/bin/python3
"""`divvy status`, `divvy locks` and `divvy plan`. SPDX-License-Identifier: Apache-2.0

usage: test_command_status.py BUILD_FOLDER [TEST...]     a TEST is a name such as Status.test_mixed
"""
import collections
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import threading
import time
import zlib

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.security import make_digest_acl

from look_harness import (Case, DEADLINE_S, DivvyMember, KazooMember, NOWHERE, Server, Setting, command, main, run,
                          tree, wait_for)

ITEMS = ["item-%02d" % number for number in range(1, 13)]


def by(key, rows):
    return {row[key]: row for row in rows}


def plan_text(items, members, owners, moved=()):
    """A plan in one node, by docs/protocol.md, D2 to D8."""
    def text(value):
        return json.dumps(value, separators=(",", ":"))
    block, hashed = b"".join(item.encode() + b"\0" for item in items), 0xcbf29ce484222325
    for byte in block:
        hashed = (hashed ^ byte) * 0x100000001b3 % 2 ** 64
    base = text({"members": members, "width": 1, "owners": owners})
    root = {"v": 1, "generation": 7, "guid": "0000000000900000000000" + "2", "after": "",
            "epoch": "0000000000900000000000" + "1",
            "pzxid": "1a", "reason": "absence",
            "options": {"algorithm": 1, "max_moves": 1, "spread_zones": 1, "round_timeout_ms": 60000},
            "tag": "00000000",
            "set": {"count": len(items), "crc": "%08x" % zlib.crc32(block), "hash": "%016x" % hashed},
            "items": {"inline": items}, "base": {"inline": json.loads(base)}, "base_guid": "00000000009000000000002",
            "deltas": [], "moved": list(moved), "sum": "%08x" % zlib.crc32(base.encode())}
    return text(root).encode()


class Viewer:
    """A running `divvy status --watch` whose output is a pipe."""

    def __init__(self, *arguments, connect=None):
        self.output = self.errors = ""
        self.process = subprocess.Popen(command("status", "--watch", "--interval", "100ms", *arguments,
                                                connect=connect),
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True)
        self.readers = [threading.Thread(target=self._read_output), threading.Thread(target=self._read_errors)]
        for reader in self.readers:
            reader.start()

    def _read_output(self):
        for line in self.process.stdout:
            self.output += line

    def _read_errors(self):
        for line in self.process.stderr:
            self.errors += line

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        self.process.wait(DEADLINE_S)
        for reader in self.readers:
            reader.join()
        self.process.stdout.close()
        self.process.stderr.close()
        return self.process.returncode


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
        done = run("status", "--path", self.path)
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
        page = run("status", "--path", self.path).stdout.splitlines()
        self.assertEqual(page[1], "plan %d, drain: 1 drained" % plan["generation"])
        self.assertTrue(any(re.match(r"beta .* 0 +0 +0 +- +drained\Z", line.rstrip()) for line in page), page)
        kazoo = self.start(KazooMember, "k")
        wait_for(lambda: all(member.acquired() for member in members + kazoo), "they share with kazoo")
        self.assertFalse(self.shown("status", "--path", self.path)["plan"]["in_force"])
        self.assertIn(", drain, not in force: 1 drained", run("status", "--path", self.path).stdout.splitlines()[1])
        Setting.zookeeper.set(self.path + "/plan", b'{"v":7}')
        self.assertEqual(self.shown("status", "--path", self.path)["plan"], {"unusable": "of a later release"})
        Setting.zookeeper.set(self.path + "/plan", b'nonsense')
        self.assertEqual(run("status", "--path", self.path).stdout.splitlines()[1], "plan: broken")

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
        lines = run("status", "--path", self.path).stdout.splitlines()
        self.assertEqual(lines[1], "plan 7, absence: 1 on their way, 1 drained, 1 absent, 1 leaving")
        cells = [re.split(r"  +", line.rstrip()) for line in lines[4:10]]
        self.assertEqual([(row[0], row[1], row[-5:]) for row in cells],
                         [("d", "divvy", ["0", "0", "1000", "-", "leaving"]),
                          ("host-1", "divvy", ["0", "-", "-", "-", "fenced"]),
                          ("host-1", "divvy", ["0", "2", "1000", "r1", "-"]),
                          ("n", "divvy", ["0", "-", "-", "-", "new"]), ("w", "divvy", ["0", "0", "0", "-", "drained"]),
                          ("host-2", "-", ["-", "1", "500", "r2", "absent, 1 kept 1m00s for it"])])

    def make_pool(self, live, members, items, owners):
        """A pool with these members, of whom `live` are in the party, and a plan. Of each live one its client."""
        node, clients, made = "0000000000%d00000000000%d,a=2,s=00000000-%s", {}, []
        for number, (name, is_static) in enumerate(members, 1):
            key = node % (number, 1, name)
            made.append({"slot": number - 1, "key": name if is_static else key, "static": int(is_static),
                         "weight": 1000,
                         "zone": "", "rejoin_delay_ms": 20000 if is_static else 0,
                         "absent": "1a" if is_static and name not in live else "0", "leaving": ""})
            if name in live:
                clients[name] = self.client()
                clients[name].ensure_path(self.path + "/party")
                data = b'{"id":"%s","static":true,"rejoin_delay_ms":20000}' % name.encode() if is_static else b"{}"
                clients[name].create(self.path + "/party/" + key, data, ephemeral=True)
        self.make(self.path + "/plan", plan_text(items, made, owners))
        return clients

    def cells(self, *arguments):
        page = run("status", "--path", self.path, *arguments).stdout
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
        self.assertIn(["d1", "-", "-", "-", "-", "-", "2", "1000", "-", "absent, 2 kept 20s for it"], lines)
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

    # With --watch the file of items is read again when it has changed; one that is no good is told once, and changes
    # nothing.
    def test_watch_file(self):
        self.make(self.path + "/locks/one")
        file = self.file("one\n")
        viewer = Viewer("--path", self.path, "--items-from", file, "--json")

        def newest():
            return [item["item"] for item in json.loads(viewer.output.splitlines()[-1])["items"]]

        try:
            wait_for(lambda: viewer.output.endswith("\n") and newest() == ["one"], "one item")
            os.replace(self.file("one\ntwo\n", "new"), file)
            wait_for(lambda: viewer.output.endswith("\n") and newest() == ["one", "two"], "the new list")
            with open(file, "w", encoding="utf-8") as to:
                to.write("two\ntwo\n")
            wait_for(lambda: "given twice" in viewer.errors, "it is told")
            looks = viewer.output.count("\n")
            wait_for(lambda: viewer.output.count("\n") > looks + 3 and viewer.output.endswith("\n"), "more looks")
            self.assertEqual(newest(), ["one", "two"])
            self.assertEqual(viewer.errors.count("given twice"), 1)
        finally:
            self.assertEqual(viewer.stop(), 0)

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
        page = run("status", "--path", self.path).stdout
        self.assertNotIn("\x1b", page)
        self.assertEqual(len(page.splitlines()), 1 + 1 + 1 + 6 + 1 + 1 + 5)

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
        single = KazooClient(slow.connect)
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

    # With --watch and a pipe there is a block a look, with a line in between; what is new, changed or gone is marked in
    # the block that shows it first; SIGTERM ends it with 0.
    def test_watch(self):
        self.make(self.path + "/party/" + "a" * 32 + "-first", ephemeral=True)
        place = self.make(self.path + "/locks/moving/__lock__0000000001", b"one", ephemeral=True)
        viewer = Viewer("--path", self.path)
        try:
            wait_for(lambda: "----\n" in viewer.output, "a second look")
            Setting.zookeeper.delete(place)
            wait_for(lambda: "(unowned)" in viewer.output, "the change is shown")
            self.make(self.path + "/locks/new")
            Setting.zookeeper.delete(self.path + "/party/" + "a" * 32 + "-first")
            wait_for(lambda: re.search(r"(?m)^\+ new ", viewer.output) and re.search(r"(?m)^- first ", viewer.output),
                     "what is new and what is gone are shown")
        finally:
            self.assertEqual(viewer.stop(), 0, viewer.output)
        self.assertEqual(viewer.errors, "")
        blocks = re.split(r"(?m)^-+\n", viewer.output)
        self.assertTrue(all(block.startswith(self.path + ": ") for block in blocks), viewer.output)
        self.assertEqual([mark for block in blocks for mark in re.findall(r"(?m)^(.) moving ", block) if mark != " "],
                         ["*"])
        for mark, name in (("+", "new"), ("-", "first")):
            self.assertEqual(viewer.output.count("\n%s %s " % (mark, name)), 1, viewer.output)

    # With --watch a pool that is not there yet is waited for, and with --json each look is a line of its own.
    def test_watch_json(self):
        viewer = Viewer("--path", self.path, "--json")
        try:
            wait_for(lambda: viewer.output.count("\n") > 1, "two looks")
            self.make(self.path + "/locks/x")
            wait_for(lambda: '"x"' in viewer.output, "the item is shown")
        finally:
            self.assertEqual(viewer.stop(signal.SIGINT), 0)
        lines = [json.loads(line) for line in viewer.output.splitlines()]
        self.assertEqual((lines[0]["items"], lines[-1]["unowned"]), ([], 1))

    # A server that goes away while it watches is told on stderr; when it is back, so is the page.
    def test_watch_reconnects(self):
        server = Server()
        self.addCleanup(server.do, "stop")
        viewer = Viewer("--path", "/", "--timeout", "2s", "--json", connect=server.connect)
        try:
            wait_for(lambda: viewer.output, "a look")
            server.do("kill", "1")
            told = "divvy: the servers at %s have not told all of it within 2000 ms\n" % server.connect
            wait_for(lambda: told in viewer.errors, "it tells that there is no answer")
            server.do("restart", "1")
            seen = len(viewer.output)
            wait_for(lambda: len(viewer.output) > seen, "it looks again")
        finally:
            self.assertEqual(viewer.stop(), 0)

    # On a terminal the page is drawn in its own place, cut to the screen, with changed lines in bold; Ctrl-C ends it.
    def test_watch_terminal(self):
        for number in range(30):
            self.make(self.path + "/locks/item-%02d" % number)
        self.make(self.path + "/locks/0" + "日本語" * 6)
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 20, 30, 0, 0))
        process = subprocess.Popen(command("status", "--watch", "--interval", "200ms", "--path", self.path),
                                   stdin=slave, stdout=slave, stderr=subprocess.PIPE,
                                   env={**os.environ, "TERM": "xterm"}, start_new_session=True,
                                   preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(slave)
        self.addCleanup(os.close, master)
        output = b""

        def read_until(fragment):
            nonlocal output
            deadline = time.monotonic() + DEADLINE_S
            while fragment not in output:
                self.assertLess(time.monotonic(), deadline, output[-3000:])
                if select.select([master], [], [], 0.1)[0]:
                    output += os.read(master, 65536)

        try:
            read_until(b"lines more\x1b[K\r\n\x1b[J\x1b[H")
            self.make(self.path + "/locks/item-00/__lock__0000000000", b"somebody", ephemeral=True)
            read_until(b"\x1b[1m* item-00 ")
            os.write(master, b"\x03")
            self.assertEqual(process.wait(DEADLINE_S), 0)
        finally:
            if process.poll() is None:
                process.kill()
            process.stderr.close()
            process.wait()
        self.assertTrue(output.startswith(b"\x1b[2J\x1b[H" + self.path.encode()), output[:300])
        for screen in output.split(b"\x1b[H")[1:]:
            lines = re.sub(rb"\x1b\[[0-9]*[mKJ]", b"", screen).decode(errors="ignore").split("\r\n")
            self.assertLessEqual(len(lines), 20)
            widths = [sum(2 if character in "日本語" else 1 for character in line) for line in lines]
            self.assertLessEqual(max(widths), 30, lines)

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
                              env={"DIVVY_CONNECT": Setting.server.connect}, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=DEADLINE_S)
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


class Delay:
    """Passes bytes on to a server, each way after a while."""

    def __init__(self, connect, delay_s):
        import socket
        host, port = connect.split(":")
        self.delay_s, self.target = delay_s, (host, int(port))
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.connect = "127.0.0.1:%d" % self.listener.getsockname()[1]
        self.sockets, self.ended = [], False
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        import socket
        while not self.ended:
            try:
                near = self.listener.accept()[0]
                far = socket.create_connection(self.target)
            except OSError:
                return
            self.sockets += [near, far]
            for source, sink in ((near, far), (far, near)):
                waiting = collections.deque()
                ready = threading.Semaphore(0)
                threading.Thread(target=self._read, args=[source, waiting, ready], daemon=True).start()
                threading.Thread(target=self._write, args=[sink, waiting, ready], daemon=True).start()

    def _read(self, source, waiting, ready):
        data = b"x"
        while data:
            try:
                data = source.recv(65536)
            except OSError:
                data = b""
            waiting.append((time.monotonic() + self.delay_s, data))
            ready.release()

    def _write(self, sink, waiting, ready):
        import socket
        while True:
            ready.acquire()
            due, data = waiting.popleft()
            time.sleep(max(0, due - time.monotonic()))
            try:
                if not data:
                    sink.shutdown(socket.SHUT_WR)
                    return
                sink.sendall(data)
            except OSError:
                return

    def stop(self):
        self.ended = True
        for socket in [self.listener] + self.sockets:
            socket.close()


class Locks(Case):
    def setUp(self):
        super().setUp()
        self.root = ["--root", self.path]

    def acquire(self, lock):
        """Begins to acquire, in the background; ends with the test."""
        def work():
            try:
                lock.acquire(timeout=DEADLINE_S)
            except KazooException:
                pass  # the client ended first
        threading.Thread(target=work, daemon=True).start()

    def contenders(self, name, count):
        path = self.path + "/" + name
        wait_for(lambda: Setting.zookeeper.exists(path) and len(Setting.zookeeper.get_children(path)) == count,
                 "%d in %s" % (count, path))

    # An exclusive lock's first in the queue holds it, the others wait, in the order in which they came.
    def test_exclusive(self):
        clients = [self.client() for _ in range(3)]
        for number, client in enumerate(clients):
            self.acquire(client.Lock(self.path + "/locks/dep%loy", "contender %d" % number))
            self.contenders("locks/dep%loy", number + 1)
        seen = self.shown("locks", "dep%loy", *self.root)
        self.assertEqual((seen["name"], seen["semaphore"]), ("dep%loy", None))
        lock = seen["lock"]
        self.assertEqual((lock["held"], lock["waiting"]), (1, 2))
        self.assertEqual([place["identifier"] for place in lock["holders"] + lock["queue"]],
                         ["contender 0", "contender 1", "contender 2"])
        self.assertEqual([place["session"] for place in lock["holders"] + lock["queue"]],
                         ["0x%x" % client.client_id[0] for client in clients])
        for place in lock["holders"] + lock["queue"]:
            self.assertEqual(place["kind"], "exclusive")
        page = run("locks", "dep%loy", *self.root).stdout.splitlines()
        self.assertEqual(page[0], "lock dep%loy: held by 1, 2 waiting")
        self.assertEqual([line.split("  ")[:2] for line in page[2:]], [
            ["holds", "contender 0"], ["waits", "contender 1"], ["waits", "contender 2"]])

    # Readers hold together up to the first writer; the writer and the readers behind it wait.
    def test_readers(self):
        clients = [self.client() for _ in range(4)]
        kinds = ["ReadLock", "ReadLock", "WriteLock", "ReadLock"]
        for number, (client, kind) in enumerate(zip(clients, kinds)):
            self.acquire(getattr(client, kind)(self.path + "/locks/rw", "c%d" % number))
            self.contenders("locks/rw", number + 1)
        lock = self.shown("locks", *self.root, "rw")["lock"]
        self.assertEqual([(place["identifier"], place["kind"]) for place in lock["holders"]],
                         [("c0", "shared"), ("c1", "shared")])
        self.assertEqual([(place["identifier"], place["kind"]) for place in lock["queue"]],
                         [("c2", "exclusive"), ("c3", "shared")])

    # A semaphore: the limit, who holds which slots, kazoo's holders too, and who waits.
    def test_semaphore(self):
        pool = self.path + "/semaphores/web"
        record = {"id": "d\u00fc", "host": "h1", "pid": 77, "since": "2026-01-31T12:00:00Z", "count": 3}
        self.make(pool, b"5")
        self.make(pool + "/guid,n=0,c=3,x=3+0", json.dumps(record).encode(), ephemeral=True)
        self.acquire(self.client().Semaphore(pool, "kazoo one", 5))
        self.contenders("semaphores/web", 2)
        self.make(pool + "-__lock__/guid__lock__0000000007", json.dumps({**record, "id": "next"}).encode(),
                  ephemeral=True)
        self.make(pool + "-__lock__/" + "a" * 32 + "__lock__0000000008", b"b'kazoo two'", ephemeral=True)
        semaphore = self.shown("locks", "web", *self.root)["semaphore"]
        self.assertEqual([semaphore[key] for key in ("limit", "held", "waiting")], [5, 4, 2])
        one, other = semaphore["holders"]
        self.assertEqual([one[key] for key in ("identifier", "host", "pid", "since", "count", "slots")],
                         ["d\u00fc", "h1", 77, "2026-01-31T12:00:00Z", 3,
                          [{"first": 0, "count": 2}, {"first": 3, "count": 1}]])
        self.assertEqual([other[key] for key in ("identifier", "host", "pid", "count", "slots")],
                         ["kazoo one", None, None, 1, []])
        self.assertEqual([(place["identifier"], place["count"]) for place in semaphore["queue"]],
                         [("next", 3), ("kazoo two", 1)])
        page = run("locks", "web", *self.root).stdout
        self.assertRegex(page, r"\Asemaphore web: 4 of 5 slots held, 2 waiting\n")
        self.assertRegex(page, r"(?m)^holds  d\u00fc +0-1,3 +3  h1 +77 ")
        self.assertRegex(page, r"(?m)^waits  kazoo two +- +1 +- ")

    # What `divvy lock` holds is shown as it tells its command.
    def test_divvy_lock(self):
        def hold(*arguments):
            process = subprocess.Popen(command("lock", *self.root, *arguments, "--hold", "job"), text=True,
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            self.addCleanup(process.stdout.close)
            self.addCleanup(process.wait)
            self.addCleanup(process.stdin.close)
            return process

        def token(process):
            return re.fullmatch("held ([0-9]+)(?: [0-9]+)?\n", process.stdout.readline()).group(1)
        holder = hold()
        first = token(holder)
        waiter = hold()
        self.contenders("locks/job", 2)
        slots = [hold("-n", "3"), hold("-n", "3")]
        tokens = [token(process) for process in slots]
        seen = self.shown("locks", "job", *self.root)
        self.assertEqual([place["token"] for place in seen["lock"]["holders"]], [first])
        for place, process in zip(seen["lock"]["holders"] + seen["lock"]["queue"], (holder, waiter)):
            self.assertIn("-%d-" % process.pid, place["identifier"])
        semaphore = seen["semaphore"]
        self.assertEqual([(place["token"], place["pid"]) for place in semaphore["holders"]],
                         sorted(zip(tokens, [process.pid for process in slots]), key=lambda pair: int(pair[0])))
        self.assertEqual(sorted(place["slots"][0]["first"] for place in semaphore["holders"]), [0, 1])
        self.assertEqual((semaphore["limit"], semaphore["held"], semaphore["waiting"]), (3, 2, 0))

    # Without a name all are listed, with how many hold and wait; queues of semaphores are none of their own.
    def test_list(self):
        self.assertEqual(self.shown("locks", *self.root)["locks"], [])
        self.assertIn("no locks and no semaphores below " + self.path, run("locks", *self.root).stdout)
        self.make(self.path + "/locks/a%2Fb/x__lock__0000000001", ephemeral=True)
        self.make(self.path + "/locks/a%2Fb/y__lock__0000000002", ephemeral=True)
        self.make(self.path + "/locks/free")
        self.make(self.path + "/semaphores/s", b"3")
        self.make(self.path + "/semaphores/s/guid,n=1,c=2", b"{}", ephemeral=True)
        self.make(self.path + "/semaphores/s-__lock__/x__lock__0000000001", ephemeral=True)
        self.make(self.path + "/semaphores/bad", b"many")
        self.make(self.path + "/semaphores/s%2D__lock__", b"9")  # docs/protocol.md, G1
        seen = self.shown("locks", *self.root)
        self.assertEqual(seen["locks"], [{"name": "a/b", "held": 1, "waiting": 1},
                                         {"name": "free", "held": 0, "waiting": 0}])
        self.assertEqual(seen["semaphores"], [{"name": "bad", "limit": None, "held": 0, "waiting": 0},
                                              {"name": "s", "limit": 3, "held": 2, "waiting": 1},
                                              {"name": "s-__lock__", "limit": 9, "held": 0, "waiting": 0}])
        self.assertEqual(self.shown("locks", "s-__lock__", *self.root)["semaphore"]["limit"], 9)
        lines = [line.split() for line in run("locks", *self.root).stdout.splitlines()]
        self.assertEqual(lines, [["NAME", "KIND", "LIMIT", "HELD", "WAITING"], ["a/b", "lock", "-", "1", "1"],
                                 ["bad", "semaphore", "-", "0", "0"], ["free", "lock", "-", "0", "0"],
                                 ["s", "semaphore", "3", "2", "1"],
                                 ["s-__lock__", "semaphore", "9", "0", "0"]])

    # A lock and a semaphore of one name are both shown; records that cannot be read are told as such; a name that is
    # not there is a failure.
    def test_names(self):
        self.make(self.path + "/locks/both/__lock__0000000001", b"\xff\xfe", ephemeral=True)
        self.make(self.path + "/semaphores/both", b"")
        self.make(self.path + "/semaphores/both/guid,n=0,c=1", b"no json", ephemeral=True)
        seen = self.shown("locks", "both", *self.root)
        self.assertEqual(seen["lock"]["holders"][0]["identifier"], None)
        self.assertEqual((seen["semaphore"]["limit"], seen["semaphore"]["holders"][0]["identifier"]), (None, None))
        page = run("locks", "both", *self.root).stdout
        self.assertEqual(page.count("(unreadable)"), 2)
        self.assertIn("no limit yet", page)
        self.assert_fails(1, ["locks", "neither", *self.root], '"neither"', self.path)


class Plan(Case):
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
        for assign in ("rendezvous", "round_robin", "sticky"):
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
                    if assign == "sticky":
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
        plan = self.plan(100, 10000, "--join", "1")
        self.assertEqual(plan["floor"], 10000 // 101)
        self.assertLess(plan["moves"], 4 * plan["floor"])

    # For people: a summary, a line a member, and with --verbose a line a move.
    def test_page(self):
        arguments = ["plan", "--members", "2", "--join", "1", "--item", "b", "--item", "a", "--item", "c", "--assign",
                     "round_robin"]
        self.assertEqual(run(*arguments).stdout.splitlines(), [
            "3 items by round_robin: from 2 to 3 members",
            "1 item moves (33.3 %); the least that can be is 1",
            "",
            "MEMBER    BEFORE  AFTER  GAINS  LOSES",
            "member-1       2      1      0      1",
            "member-2       1      1      0      0",
            "member-3   joins      1      1      0"])
        self.assertEqual(run(*arguments, "--verbose").stdout.splitlines()[-3:], [
            "", "ITEM  FROM      TO", "c     member-1  member-3"])
        self.assertEqual(run(*arguments, "--leave", "1").stdout.splitlines()[4].split(),
                         ["member-1", "2", "leaves", "0", "2"])

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
                (good + ["--assign", "auto"], "rendezvous"),
                (good + ["--items-from", "/dev/null"], "not both"),
                (good + ["word"], '"word"')):
            with self.subTest(arguments=arguments):
                self.assert_fails(2, arguments, fragment)
        done = run("plan", "--members", "1", "--items-from", "/nonexistent")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("/nonexistent", done.stderr)


if __name__ == "__main__":
    main(__file__)
