#!/usr/bin/python3
"""divvy serve with many pools: found below a path, in one table, and a pool's members at a glance.
SPDX-License-Identifier: Apache-2.0

usage: test_command_serve_pools.py BUILD_FOLDER [TEST...]     a TEST is a name such as Below.test_found
"""
from kazoo.security import OPEN_ACL_UNSAFE, make_digest_acl

from command_harness import Setting, check_by_promtool, main, wait_for
from look_harness import Case, run, tree
from serve_harness import Serve, Stream

MEMBER = "%022d1,a=2,s=00000000-%s"
POOLS_MAX, CHILDREN_MAX, NODES_MAX, HEAT_MAX = 64, 10000, 10000, 5000  # serve_options.h, serve_find.h, serve_overview.h
DENIED = "the access list of the node denies this"
HIDDEN = [make_digest_acl("user", "secret", all=True)]


class PoolsCase(Case):
    def serve(self, *arguments, root=None, **options):
        served = Serve("--root", root or self.path + "-divvy", *arguments, **options)
        self.addCleanup(served.end)
        return served

    def stream(self, served):
        stream = Stream(served)
        self.addCleanup(stream.close)
        return stream

    def pool(self, name, items=(), member=None):
        """A pool below the test's path: its items have a queue, and nobody in it. Returns its path."""
        path = self.path + "/" + name if name else self.path
        for item in items:
            self.make(path + "/locks/" + item)
        self.make(path + "/party")  # By this it is found, with all its items.
        if member:
            client = self.client()
            client.create(path + "/party/" + MEMBER % (1, member), b"{}", ephemeral=True)
            for item in items:
                client.create("%s/locks/%s/%s__lock__0000000000" % (path, item, "0" * 23), member.encode(),
                              ephemeral=True)
        return path

    def make_children(self, path, count):
        self.make(path)
        for at in range(0, count, 500):
            transaction = Setting.zookeeper.transaction()
            for number in range(at, min(at + 500, count)):
                transaction.create("%s/n%05d" % (path, number))
            self.assertFalse([one for one in transaction.commit() if isinstance(one, Exception)])

    def wait_paths(self, served, paths):
        seen = []

        def looks_so():
            seen[:] = [pool["path"] for pool in served.json("/state")["pools"]]
            return seen == paths
        wait_for(looks_so, "the pools %s" % paths, seen)


class Below(PoolsCase):
    # Each node with a party is found, three levels below the path at most, and not inside of a pool or among the locks;
    # what is given is not found a second time. Nothing is written, and names are shown as they stand there.
    def test_found(self):
        names = ["a", "deep/er/est", "odd/quote\"'", "odd/<script>alert(1)<", "odd/left\u202eright", "odd/\u6f22 %2F\\"]
        paths = [self.pool(name, ["one"]) for name in names]
        self.pool("a/inner")
        self.pool("deep/er/than/three")
        self.make(self.path + "/empty/party-like")
        self.pool("divvy/locks/taken")
        given = self.pool("given")
        before = tree(self.path)
        served = self.serve("--path", given, "--below", self.path, root=self.path + "/divvy")
        found = [given] + sorted(paths, key=lambda path: path.encode())
        self.wait_paths(served, found)
        wait_for(lambda: all(row["read"] for row in served.rows("pools")["rows"]), "all to be read")
        self.assertEqual({row["path"]: row["pool"] for row in served.rows("pools")["rows"]},
                         {path: number for number, path in enumerate(found)})
        self.assertEqual([row["path"] for row in served.rows("pools", text="<script>")["rows"]],
                         [path for path in found if "<script>" in path])
        self.assertEqual(served.rows("items", pool=2)["rows"][0]["item"], "one")
        check_by_promtool(self.file(served.ask("/metrics")[2]))
        self.assertEqual(served.end(), (0, ""))
        self.assertEqual(tree(self.path), before)

    # The path itself may be a pool; then nothing below it is.
    def test_path_itself(self):
        self.pool("")
        self.pool("inner")
        served = self.serve("--below", self.path)
        self.wait_paths(served, [self.path])

    # Pools come below a path that was not there, and one that goes stays in the list as absent; it has its number when
    # it comes again. An open page is told of those that come.
    def test_come_and_go(self):
        served = self.serve("--below", self.path)
        state = served.json("/state")
        self.assertEqual((state["pools"], state["more_pools"], state["trouble"]), ([], 0, None))
        rows = served.rows("pools")
        self.assertGreaterEqual(rows.pop("sequence"), state["sequence"])
        self.assertEqual(rows, {"rows": [], "total": 0, "matched": 0})
        self.assertEqual(served.rows("locks")["rows"], [])
        for question in ("/rows?table=items", "/rows?table=members", "/heat", "/rows?table=pools&pool=1"):
            self.assertEqual(served.ask(question)[0], 400, question)
        self.assertEqual(served.ask("/metrics")[0], 200)
        stream = self.stream(served)
        second = self.pool("z", ["one"])
        self.assertEqual(stream.next(lambda change: "pool_count" in change), {"pool_count": 1, "more_pools": 0})
        self.wait_paths(served, [second])
        self.assertEqual(stream.next(lambda change: "items" in change.get("figures", {}))["figures"]["items"], 1)
        first = self.pool("a", ["one"])
        self.assertEqual(stream.next(lambda change: "pool_count" in change), {"pool_count": 2, "more_pools": 0})
        self.wait_paths(served, [second, first])
        Setting.zookeeper.delete(second, recursive=True)
        wait_for(lambda: served.pool(0)["read"] and not served.pool(0)["found"], "the pool that has gone")
        self.wait_paths(served, [second, first])
        self.assertEqual({row["pool"]: row["state"] for row in served.rows("pools")["rows"]}[0], "absent")
        self.pool("z", ["one", "two"])
        wait_for(lambda: served.pool(0)["items"] == 2, "the pool that is there again")
        self.wait_paths(served, [second, first])
        self.assertEqual(served.end(), (0, ""))

    # Of more pools than there is room for it says so once, and shows the others.
    def test_too_many(self):
        paths = sorted(self.pool("p%02d" % number) for number in range(POOLS_MAX + 3))
        served = self.serve("--below", self.path)
        self.wait_paths(served, paths[:POOLS_MAX])
        state = served.json("/state")
        self.assertEqual(state["more_pools"], 3)
        self.assertEqual(served.rows("pools", limit=500)["matched"], POOLS_MAX)
        Setting.zookeeper.delete(paths[-1], recursive=True)
        wait_for(lambda: served.json("/state")["more_pools"] == 2, "another search")
        code, said = served.end()
        self.assertEqual((code, said), (0, "divvy: serve: 3 more pools are there; 64 are shown, and no more can be\n"))

    # A node with too many children, one that may not be listed, and a pool that may not be read hold up nothing, and
    # each is told of once.
    def test_hostile(self):
        good = self.pool("good", ["one"], "worker")
        wide, hidden, closed = self.path + "/wide", self.path + "/hidden", self.pool("closed", ["one"])
        self.make(hidden + "/pool/party")
        self.make_children(wide, CHILDREN_MAX + 1)
        Setting.zookeeper.set_acls(hidden, HIDDEN)
        Setting.zookeeper.set_acls(closed + "/party", HIDDEN)
        served = self.serve("--below", self.path)
        self.wait_paths(served, [closed, good])
        wait_for(lambda: served.pool(1)["read"] and served.pool(0)["trouble"], "the pool that may be read")
        rows = served.rows("pools")["rows"]
        self.assertEqual([(row["path"], row["state"], row["read"]) for row in rows],
                         [(closed, "trouble", False), (good, "well", True)])
        self.assertEqual((rows[0]["trouble"], rows[1]["trouble"], served.json("/state")["trouble"]),
                         (DENIED, None, None))
        self.pool("good2")
        self.wait_paths(served, [closed, good, self.path + "/good2"])
        owner = self.client()
        owner.add_auth("digest", "user:secret")
        owner.set_acls(closed + "/party", OPEN_ACL_UNSAFE)
        wait_for(lambda: served.pool(0)["read"] and not served.pool(0)["trouble"], "the pool that may be read again")
        up = 'divvy_serve_pool_up{pool="%s"} ' % closed
        self.assertIn(up + "1\n", served.ask("/metrics")[2].decode())
        owner.set_acls(closed + "/party", HIDDEN)
        owner.create(closed + "/party/new")  # so that it has to be listed again
        wait_for(lambda: up + "0\n" in served.ask("/metrics")[2].decode(), "the pool that may be read no longer")
        code, said = served.end()
        self.assertEqual(code, 0)
        self.assertCountEqual(said.splitlines(), [
            "divvy: serve: %s: %s" % (closed, DENIED),
            "divvy: serve: %s can be read again" % closed,
            "divvy: serve: %s has more than %d children: pools below it are not found" % (wide, CHILDREN_MAX),
            "divvy: serve: %s may not be listed, so pools below it are not found" % hidden,
            "divvy: serve: %s: %s" % (closed, DENIED)], said)

    # Of more nodes than a search asks about it says so once; what lies near the path is found.
    def test_many_nodes(self):
        near = self.pool("a/near")
        for name in ("a", "b"):
            self.make_children("%s/wide-%s" % (self.path, name), NODES_MAX // 2)
        served = self.serve("--below", self.path)
        self.wait_paths(served, [near])
        self.assertEqual(served.end(), (0, "divvy: serve: there are more than %d nodes where pools are looked for: "
                                           "some pools are not found\n" % NODES_MAX))

    # A pool that cannot be read within --timeout holds up no other.
    def test_slow(self):
        slow, quick = self.path + "/a-slow", self.pool("b-quick", ["one"])
        self.make(slow + "/party")
        self.make_children(slow + "/locks", 3 * NODES_MAX)
        served = self.serve("--path", slow, "--path", quick, "--timeout", "400ms")
        wait_for(lambda: served.pool(1)["read"], "the pool behind it")
        wait_for(lambda: served.pool(0)["trouble"] and not served.json("/state")["trouble"], "its own trouble")

    # A lock and a service that may not be read are told of once. They hide nothing else, and are no trouble.
    def test_hidden(self):
        root = self.path + "-divvy"
        for path in ("/locks/open", "/locks/closed", "/services/web", "/services/db/d1"):
            self.make(root + path)
        held = "/locks/open/%s__lock__0000000000" % ("0" * 23)
        self.make(root + held, ephemeral=True)
        for path in ("/locks/closed", "/services/web", held):
            Setting.zookeeper.set_acls(root + path, HIDDEN)
        served = self.serve("--path", self.pool("good", ["one"], "worker"))
        wait_for(lambda: served.json("/state")["pools"][0]["read"], "the pool")
        wait_for(lambda: served.json("/state")["malformed"], "the registry")
        looks = served.looks()
        wait_for(lambda: served.looks() > looks + 30, "looks that read them again")
        state = served.json("/state")
        self.assertEqual((state["trouble"], state["hidden"], state["pools"][0]["state"]), (None, 3, "well"))
        self.assertIn("divvy_serve_failed_looks_total 0\n", served.ask("/metrics")[2].decode())
        self.assertEqual([(row["name"], row["held"], row["holders"]) for row in served.rows("locks")["rows"]],
                         [("open", 1, [{"who": "(unreadable)"}])])
        code, said = served.end()
        self.assertEqual((code, said.count("closed cannot be read"), said.count("cannot be read")), (0, 1, 1), said)

    # What is no path, or given too often, is refused; so is to serve nothing.
    def test_usage(self):
        self.assert_fails(2, ["serve"], "--path or --below is required")
        self.assert_fails(2, ["serve", "--below", "pools"], "--below", "pools")
        self.assert_fails(2, ["serve", "--below", "/a", "--below", "/a"], "--below: /a is given twice")
        many = [word for number in range(POOLS_MAX + 1) for word in ("--below", "/p%d" % number)]
        self.assert_fails(2, ["serve"] + many, "--below is given 65 times; 64 are the most")
        self.assertIn("--below PATH", run("help", "serve").stdout)


class Overview(PoolsCase):
    # The worst pool comes first, each with its state in a word, and when something happened in it.
    def test_rows(self):
        well = self.pool("well", ["one"], "worker")
        bad = self.pool("bad", ["one", "two"])
        worse = self.pool("worse", ["one", "two", "three"])
        absent = self.path + "/absent"
        served = self.serve("--path", well, "--path", bad, "--path", worse, "--path", absent)
        wait_for(lambda: all(row["read"] for row in served.rows("pools")["rows"]), "all to be read")
        rows = served.rows("pools")["rows"]
        self.assertEqual([(row["pool"], row["path"], row["state"]) for row in rows],
                         [(2, worse, "unowned"), (1, bad, "unowned"), (3, absent, "absent"), (0, well, "well")])
        self.assertEqual([(row["members"], row["items"], row["unowned"], row["moving"], row["found"]) for row in rows],
                         [(0, 3, 3, 0, True), (0, 2, 2, 0, True), (0, 0, 0, 0, False), (1, 1, 0, 0, True)])
        self.assertEqual([row["changed_ms"] for row in rows], [None] * 4)
        self.make(bad + "/locks/four")
        client = self.client()
        client.create(bad + "/party/" + MEMBER % (2, "new"), b"{}", ephemeral=True)
        wait_for(lambda: served.rows("pools", text="bad")["rows"][0]["changed_ms"], "the member that came")
        self.assertGreaterEqual(served.rows("pools", text="bad")["rows"][0]["changed_ms"],
                                served.json("/state")["started_ms"])
        Setting.zookeeper.delete(worse, recursive=True)
        wait_for(lambda: served.rows("pools")["rows"][0]["pool"] == 1, "another order")

    # All members at a glance: what each has, what the plan gives it, and what its share would be.
    def test_heat(self):
        members = [("a", False), ("b", False), ("c", True)]
        clients = self.make_pool(["a", "b"], members, ["i1", "i2", "i3", "i4"], "0012")
        for item in ("i1", "i2"):
            clients["a"].ensure_path(self.path + "/locks/" + item)
            clients["a"].create("%s/locks/%s/%s__lock__0000000000" % (self.path, item, "0" * 23), b"a", ephemeral=True)
        served = self.serve("--path", self.path)
        wait_for(lambda: served.pool()["items"] == 4, "the pool")
        heat = served.json("/heat?pool=0")
        self.assertEqual(heat["fair"], 2)
        self.assertEqual([row[:3] + row[4:] for row in heat["members"]],
                         [["a", 2, 2, 1000, ""], ["b", 0, 1, 1000, ""], ["c", 0, 1, 1000, ""]])
        self.assertEqual([row[3] for row in heat["members"]],
                         [row["state"] for row in served.rows("members")["rows"]])
        self.assertNotIn("more", heat)
        for question in ("pool=1", "pool=x", "pool=-1", "pool=99999999999"):
            self.assertEqual(served.ask("/heat?" + question)[0], 400, question)

    # Of a pool with more members than a page can show the answer has a bound, and says how many are left out.
    def test_heat_is_bounded(self):
        client = self.client()
        client.ensure_path(self.path + "/party")
        for at in range(0, HEAT_MAX + 2, 500):
            transaction = client.transaction()
            for number in range(at, min(at + 500, HEAT_MAX + 2)):
                transaction.create(self.path + "/party/" + MEMBER % (number, "m%05d" % number), b"{}", ephemeral=True)
            self.assertFalse([one for one in transaction.commit() if isinstance(one, Exception)])
        served = self.serve("--path", self.path)
        wait_for(lambda: served.pool()["members"] == HEAT_MAX + 2, "the pool")
        heat = served.json("/heat")
        self.assertEqual((len(heat["members"]), heat["more"], heat["fair"]), (HEAT_MAX, 2, 0))
        self.assertEqual(heat["members"][0], ["m00000", 0, None, "new", 1000, ""])


if __name__ == "__main__":
    main(__file__)
