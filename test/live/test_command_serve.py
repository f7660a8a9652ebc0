#!/usr/bin/python3
"""divvy serve over HTTP, against a real server. SPDX-License-Identifier: Apache-2.0

Shows HTTP: hosts, methods, slow readers, many pages.

usage: test_command_serve.py BUILD_FOLDER [TEST...]     a TEST is a name such as Answers.test_metrics
"""
import json
import os
import re
import signal
import socket
import struct
import tempfile
import time
from unittest import mock

from kazoo.client import KazooClient
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics

from command_harness import DEADLINE_S, NOWHERE, Server, Setting, check_by_promtool, main, wait_for
from look_harness import DivvyMember, run, tree
from serve_harness import ServeCase


class Answers(ServeCase):
    # The page and its files come with a policy that allows nothing from elsewhere, and they name nothing from
    # elsewhere; HEAD has the same headers and no body.
    def test_page(self):
        served = self.serve()
        self.assertRegex(served.told, r"^divvy: serve: http://127\.0\.0\.1:[0-9]+/ for this machine alone\n$")
        page = served.ask("/")[2].decode()
        files = re.findall(r'(?:src|href)="(/[^"]+)"', page)
        self.assertEqual(sorted(set(files)), ["/draw.css", "/icon.svg", "/metrics", "/serve.css", "/serve.js"])
        files = {"/serve.js"}
        for name in (name for _ in range(3) for name in sorted(files)):
            files |= {"/" + one for one in re.findall(r' from "\./([a-z]+\.js)"', served.ask(name)[2].decode())}
        self.assertNotRegex(page, r"<style|style=|<script>| on[a-z]+=|https?://")
        self.assertIn("/ticks.js", files)
        scripts = [(name, "text/javascript") for name in sorted(files)]
        for path, kind in (("/", "text/html"), ("/serve.css", "text/css"), ("/draw.css", "text/css"), *scripts,
                           ("/icon.svg", "image/svg+xml"), ("/metrics", "text/plain"),
                           ("/state", "application/json"), ("/rows?table=items", "application/json")):
            status, headers, body = served.ask(path)
            self.assertEqual((status, headers["Content-Type"].split(";")[0]), (200, kind))
            self.assertIn("default-src 'none'; script-src 'self'; style-src 'self'", headers["Content-Security-Policy"])
            self.assertNotIn("unsafe", headers["Content-Security-Policy"])
            self.assertEqual((headers["X-Content-Type-Options"], headers["Cache-Control"]), ("nosniff", "no-store"))
            self.assertTrue(body)
            self.assertNotRegex(body.decode(), r"innerHTML|insertAdjacentHTML|document\.write|eval\(")
            status, again, body = served.ask(path, "HEAD")
            self.assertEqual((status, again["Content-Type"], body), (200, headers["Content-Type"], b""))
        self.assertEqual(served.ask("/events", "HEAD")[::2], (200, b""))

    # What loads, tags, caps and operators do is in the rows of items and members, in the heat map, in the findings, and
    # in metrics. What is paused is not without an owner.
    def test_rules(self):
        wishes = [{"kind": kind, "name": name, "value": value, "by": "anna", "at_ms": 1769860800000, "why": "disk"}
                  for kind, name, value in (("pause", "i3", ""), ("pin", "i1", "a"))]
        self.make_pool(["a", "b"], [("a", False), ("b", False)], ["i1", "i2", "i3", "i4"], "00z1",
                       {"a": {"tags": "gpu,ssd", "cap": 9}}, 3, algorithm=2, wishes=wishes,
                       loads={"unit": "cores", "classes": "64646464", "moved": []})
        served = self.serve()
        self.wait_read(served, lambda pool: pool["items"] == 4)
        rows = {row["item"]: row for row in served.json("/rows?table=items&limit=9")["rows"]}
        self.assertEqual([(rows[item]["state"], rows[item].get("rule")) for item in sorted(rows)],
                         [("unowned", "pinned"), ("unowned", None), ("paused", "paused"), ("unowned", None)])
        self.assertEqual(rows["i3"]["why"], "paused by anna since 2026-01-31T12:00:00Z: disk")
        members = {row["member"]: row for row in served.json("/rows?table=members")["rows"]}
        self.assertEqual([members["a"].get(key) for key in ("share", "tags", "cap")], [1.33, "gpu,ssd", 9])
        self.assertEqual([members["b"].get(key) for key in ("share", "tags", "cap")], [0.67, None, None])
        self.assertEqual([row[6] for row in served.json("/heat")["members"]], [1.33, 0.67])
        metrics, pool = served.ask("/metrics")[2].decode(), '{pool="%s"' % self.path
        for line in ('items%s,state="unowned"} 3' % pool, 'items%s,state="paused"} 1' % pool,
                     "items_pinned%s} 1" % pool, "load_share_most%s} 1.33" % pool):
            self.assertIn("\ndivvy_serve_pool_%s" % line, metrics)
        self.assertEqual([served.pool()[key] for key in ("unowned", "paused", "pinned")], [3, 1, 1])
        checks = {one["check"]: one for one in served.json("/findings")["findings"]}
        self.assertIn("in force: 1 pinned, 0 moved, 1 paused", checks["wishes"]["what"])
        found = json.loads(run("doctor", "--path", self.path, "--json").stdout)["findings"]
        told = {one["check"]: one["what"] for one in found if one["check"] in ("wishes", "unowned", "members")}
        self.assertEqual({check: checks[check]["what"] for check in told}, told)

    # Metrics tell of the members, items, moves, waiters and plan of a pool, of locks and of the registry, in both
    # formats.
    def test_metrics(self):
        clients = self.make_pool(["a", "b"], [("a", False), ("b", False), ("c", True)], ["i1", "i2", "i3", "i4"],
                                 "0112")
        self.place(clients["a"], "i1", b"a")
        self.place(clients["a"], "i2", b"a")
        self.place(clients["b"], "i2", b"b", 1)
        self.place(self.client(), "i3", b"x")
        self.make(self.path + "-divvy/services/web/w1", b'{"role":"web","id":"w1","ttl":3600}')
        self.make(self.path + "-divvy/services/web/bad", b"[")
        self.make(self.path + "-divvy/locks/nightly")
        served = self.serve()
        self.wait_read(served, lambda pool: pool["items"] == 4)
        wait_for(lambda: served.json("/state")["services"], "the registry")
        status, headers, body = served.ask("/metrics")
        self.assertEqual((status, headers["Content-Type"]), (200, "text/plain; version=0.0.4; charset=utf-8"))
        text = body.decode()
        pool = '{pool="%s"' % self.path
        for line in ("up%s} 1" % pool, 'members%s,state="live"} 2' % pool, 'members%s,state="absent"} 1' % pool,
                     'items%s,state="owned"} 3' % pool, 'items%s,state="unowned"} 1' % pool,
                     "moves_in_progress%s} 2" % pool, "items_of_strangers%s} 1" % pool, "waiters%s} 1" % pool,
                     "items_least%s} 0" % pool, "items_most%s} 2" % pool, "plan_generation%s} 7" % pool,
                     "plan_in_force%s} 1" % pool, "ownership_changes_total%s} 0" % pool):
            self.assertIn("\ndivvy_serve_pool_%s\n" % line, "\n" + text)
        check_by_promtool(self.file(body))
        age = float(re.search(r"plan_age_seconds\{.*\} ([0-9.]+)\n", text).group(1))
        self.assertTrue(0 < age < 10 * DEADLINE_S, age)
        for line in ('locks{kind="lock"} 1', 'lock_holders{kind="lock"} 0', 'registry_entries{health="healthy"} 1',
                     "registry_malformed 1"):
            self.assertIn("\ndivvy_serve_%s\n" % line, text)
        status, headers, body = served.ask("/metrics", Accept="application/openmetrics-text; version=1.0.0")
        self.assertEqual(headers["Content-Type"], "application/openmetrics-text; version=1.0.0; charset=utf-8")
        families = {family.name: family.type for family in parse_openmetrics(body.decode())}
        self.assertEqual(families["divvy_serve_pool_ownership_changes"], "counter")

    # Rows can be asked for by a part of a name, by a whole name, by state, in parts and by their last change; what is
    # no such question is refused.
    def test_rows(self):
        client = self.member("worker")
        for number in range(5):
            self.place(client, "item%d" % number, b"worker")
        self.make(self.path + "/locks/lonely")
        served = self.serve("--path", self.path + "_other")
        self.wait_read(served, lambda pool: pool["items"] == 6)

        def names(**question):
            return [row["item"] for row in served.rows("items", **question)["rows"]]
        self.assertEqual(names(), ["item%d" % number for number in range(5)] + ["lonely"])
        self.assertEqual(names(text="m3"), ["item3"])
        self.assertEqual(names(text="worker", offset=3), ["item3", "item4"])
        self.assertEqual(names(exact="item"), [])
        self.assertEqual(names(exact="item2"), ["item2"])
        self.assertEqual(names(state="unowned"), ["lonely"])
        self.assertEqual(names(limit=2, offset=1), ["item1", "item2"])
        self.assertEqual(sorted(names(order="newest")[:5]), ["item%d" % number for number in range(5)])
        told = served.rows("items", text="item", limit=1)
        self.assertEqual((told["total"], told["matched"], len(told["rows"])), (6, 5, 1))
        row = told["rows"][0]
        self.assertEqual((row["owner"], row["state"], row["waiting"]), ("worker", "owned", 0))
        self.assertLess(abs(time.time() * 1000 - row["since_ms"]), 10000 * DEADLINE_S)
        self.assertEqual(served.rows("members")["rows"][0]["items"], 5)
        self.assertEqual(served.pool(1)["found"], False)
        self.assertEqual(served.rows("items", pool=1)["rows"], [])
        for question in ("", "table=nothing", "table=items&pool=2", "table=items&limit=501", "table=items&limit=-1",
                         "table=items&offset=x", "table=items&offset=12345678901", "table=items&text=" + "x" * 5000):
            self.assertEqual(served.ask("/rows?" + question)[0], 400, question)

    # Who holds a lock, and what the registry has, are shown with the names that stand there.
    def test_locks_and_registry(self):
        client = self.client()
        root = self.path + "-divvy"
        client.ensure_path(root + "/locks/nightly")
        for number, name in ((0, b"one"), (1, b"two")):
            client.create("%s/locks/nightly/%s__lock__%010d" % (root, "0" * 23, number), name, ephemeral=True)
        self.make(root + "/services/web/w1", b'{"role":"web","id":"w1","ttl":3600,"load":0.5,"host":"h","port":80}')
        served = self.serve()
        wait_for(lambda: served.json("/state")["services"], "the registry")
        lock = served.rows("locks")["rows"][0]
        self.assertEqual((lock["name"], lock["held"], lock["waiting"], [h["who"] for h in lock["holders"]]),
                         ("nightly", 1, 1, ["one"]))
        service = served.rows("services")["rows"][0]
        self.assertEqual((service["role"], service["id"], service["health"], service["load"], service["address"]),
                         ("web", "w1", "healthy", 0.5, "h:80"))

    # Whatever stands in ZooKeeper is JSON when it is told: a line, without control characters, and the same text.
    def test_hostile_names(self):
        names = ["<script>alert(1)</script>", "</td><img src=x onerror=alert(1)>", "quote\"'`", "\u202eright to left",
                 "a&b=c#d", "line\nbreak\u2028", "back\\slash", "é漢字"]
        client = self.member("<b>bold")
        for name in names:
            node = name.replace("%", "%25").replace("/", "%2F").replace("\n", "%0A")
            self.place(client, node, b"<b>bold")
        self.place(self.client(), "stranger", b"\xff\x1b[31m<i>")
        served = self.serve()
        self.wait_read(served, lambda pool: pool["items"] == len(names) + 1)
        rows = {row["item"]: row for row in served.rows("items")["rows"]}
        self.assertEqual(sorted(rows), sorted(names + ["stranger"]))
        self.assertEqual(rows["stranger"]["owner"], "%FF\x1b[31m<i>")
        self.assertEqual(rows[names[0]]["owner"], "<b>bold")
        body = served.ask("/rows?table=items")[2]
        self.assertNotRegex(body.rstrip(b"\n").decode(), "[\x00-\x1f\x7f\u2028\u202e]")
        for name in names:
            self.assertEqual(served.rows("items", exact=name)["matched"], 1, name)
        self.assertEqual(served.rows("items", owner="<b>bold")["matched"], len(names))
        self.assertEqual(served.rows("items", owner="<b>bol")["matched"], 0)
        self.assertEqual(served.ask("/rows?table=items&owner=" + "o" * 5000)[0], 400)
        stream = self.stream(served)
        self.place(client, "new%0Aline%0A%0Adata: {}", b"<b>bold")
        change = stream.next(lambda change: "items" in change)
        self.assertEqual(change["items"][0]["item"], "new\nline\n\ndata: {}")
        self.assertEqual(served.ask("/metrics")[0], 200)


class Changes(ServeCase):
    # A page that listens is told of the one item that changed, and of nothing else: of who got it, when nobody had it,
    # and of the figures that differ. The timeline keeps all of it.
    def test_ownership(self):
        one, two = self.member("one", 1), self.member("two", 2)
        for number in range(20):
            self.place(one, "item%02d" % number, b"one")
        served = self.serve()
        self.wait_read(served, lambda pool: pool["owned"] == 20)
        stream = self.stream(served)
        self.assertEqual(stream.headers["Content-Type"], "text/event-stream")
        one.delete(self.path + "/locks/item07/%s__lock__0000000000" % ("0" * 23))
        # What was read first may come once more.
        change = stream.next(lambda change: any(row["state"] != "owned" for row in change.get("items", [])))
        self.assertEqual([(row["item"], row["owner"], row["state"]) for row in change["items"]],
                         [("item07", None, "unowned")])
        self.assertEqual((change["figures"]["unowned"], change["figures"]["owned"]), (1, 19))
        self.assertNotIn("members", change["figures"])
        before = stream.bytes
        self.place(two, "item07", b"two", 1)
        change = stream.next(lambda change: change.get("items"))
        self.assertEqual([(row["item"], row["owner"], row["seen"]) for row in change["items"]],
                         [("item07", "two", True)])
        self.assertEqual([(member["member"], member["items"]) for member in change["members_changed"]], [("two", 1)])
        self.assertLess(stream.bytes - before, 1500)
        events = [(e["kind"], e["what"], e.get("from"), e.get("to")) for e in served.rows("timeline")["rows"]]
        self.assertEqual(events, [("item", "item07", None, "two"), ("item", "item07", "one", None)])
        metrics = served.ask("/metrics")[2].decode()
        self.assertIn('divvy_serve_pool_ownership_changes_total{pool="%s"} 2\n' % self.path, metrics)
        self.assertIn("divvy_serve_pages_open 1\n", metrics)

    # Items that come and go are seen, kazoo's with slashes too, as are members.
    def test_comings_and_goings(self):
        served = self.serve()
        self.wait_read(served)
        self.assertIs(served.pool()["found"], False)
        client = self.member("one")
        self.wait_read(served, lambda pool: pool["found"] and pool["members"] == 1)
        place = self.place(client, "plain", b"one")
        client.ensure_path(self.path + "/locks/with/slash")
        self.wait_read(served, lambda pool: (pool["items"], pool["owned"]) == (2, 1))
        self.place(client, "with/slash", b"one")
        self.wait_read(served, lambda pool: pool["owned"] == 2)
        self.assertEqual([row["item"] for row in served.rows("items")["rows"]], ["plain", "with/slash"])
        client.delete(place)
        client.delete(self.path + "/locks/plain")
        self.wait_read(served, lambda pool: pool["items"] == 1)
        client.stop()
        self.wait_read(served, lambda pool: pool["members"] == 0 and pool["owned"] == 0)
        told = [(e["kind"], e["what"]) for e in served.rows("timeline")["rows"]]
        self.assertIn(("joined", "one"), told)
        self.assertIn(("left", "one"), told)

    # Who died is an event when a death watch has said so: each death once, and none that was told before the page was.
    def test_deaths(self):
        def text(*names):
            deaths = [{"name": name, "session": "1f", "at_ms": 1700000000000, "seen_ms": 40} for name in names]
            return json.dumps({"deaths": deaths}, separators=(",", ":")).encode()
        self.member("one")
        self.client().create(self.path + "/deaths", text("old"))
        served = self.serve()
        self.wait_read(served, lambda pool: pool["members"] == 1)

        def died():
            return [(e["what"], e["to"]) for e in served.rows("timeline")["rows"] if e["kind"] == "died"]
        Setting.zookeeper.set(self.path + "/deaths", text("old", "two"))
        wait_for(died, "the death")
        self.assertEqual(died(), [("two", "40ms")])
        Setting.zookeeper.set(self.path + "/deaths", b"nonsense")
        Setting.zookeeper.set(self.path + "/deaths", text("old", "two", "three", "four"))
        wait_for(lambda: len(died()) == 3, "the deaths", died)
        self.assertEqual(died(), [("four", "40ms"), ("three", "40ms"), ("two", "40ms")])

    # With members at work the page follows a plan: who joins, what moves, who leaves.
    def test_members_at_work(self):
        items = ["item%02d" % number for number in range(12)]
        members = []

        def join(name):
            members.append(DivvyMember(self.path, name, items))
            self.addCleanup(members[-1].stop)
        join("one")
        wait_for(lambda: len(members[0].owned) == 12, "the first share")
        served = self.serve()
        self.wait_read(served, lambda pool: pool["owned"] == 12 and pool["in_force"])
        stream = self.stream(served)
        join("two")
        self.assertIsNotNone(stream.next(lambda change: change.get("figures", {}).get("reason") == "join"))
        self.wait_read(served, lambda pool: (pool["least"], pool["most"], pool["moving"]) == (6, 6, 0))
        members[0].stop()
        self.wait_read(served, lambda pool: pool["members"] == 1 and pool["owned"] == 12 and pool["least"] == 12)
        told = [(e["kind"], e["what"]) for e in served.rows("timeline", limit=500)["rows"]]
        self.assertIn(("joined", "two"), told)
        self.assertIn(("left", "one"), told)
        self.assertEqual({what for kind, what in told if kind == "item"}, set(items))

    # While no server answers, what was read stays, and the page is told why nothing is new; then it goes on.
    def test_servers_away(self):
        server = Server()
        self.addCleanup(server.do, "stop")
        client = KazooClient(server.plain)
        client.start()
        client.ensure_path(self.path + "/locks/item")
        client.stop()
        client.close()
        served = self.serve("--timeout", "500ms", connect=server.connect)
        self.wait_read(served, lambda pool: pool["items"] == 1)
        wait_for(lambda: "divvy_serve_looks_total 0\n" not in served.ask("/metrics")[2].decode(), "a whole look")
        stream = self.stream(served)
        server.do("pause", "1")
        self.addCleanup(server.do, "resume", "1")
        self.assertTrue(stream.next(lambda change: change.get("trouble")))
        self.assertEqual(served.pool()["items"], 1)
        metrics = served.ask("/metrics")[2].decode()
        self.assertNotIn("divvy_serve_failed_looks_total 0\n", metrics)
        self.assertIn('divvy_serve_pool_up{pool="%s"} 0\n' % self.path, metrics)
        server.do("resume", "1")
        self.assertTrue(stream.next(lambda change: change.get("trouble", 0) is None))
        code, said = served.end()
        self.assertEqual(code, 0, said)
        self.assertIn("divvy: serve: the servers answer again\n", said)

    # Servers that refuse the credentials end it, as no later look would be let in.
    def test_refused(self):
        server = Server()
        self.addCleanup(server.do, "stop")
        served = self.serve(connect=server.connect)
        wait_for(lambda: served.looks(), "a look")
        os.environ["JAVA_TOOL_OPTIONS"] = \
            "-Dzookeeper.enforce.auth.enabled=true -Dzookeeper.enforce.auth.schemes=digest"
        try:
            server.do("kill", "1")
            server.do("restart", "1")
        finally:
            del os.environ["JAVA_TOOL_OPTIONS"]
        self.assertEqual(served.process.wait(DEADLINE_S), 1)

    # Looking changes no node.
    def test_read_only(self):
        client = self.member("one")
        self.place(client, "item", b"one")
        before = tree(self.path)
        served = self.serve()
        self.wait_read(served, lambda pool: pool["owned"] == 1)
        self.assertEqual(served.end()[0], 0)
        self.assertEqual(tree(self.path), before)
        self.assertIsNone(Setting.zookeeper.exists(self.path + "-divvy"))


class Guard(ServeCase):
    # A Host that is not this machine's is refused, as a name server may have led a foreign page here; so is what
    # another site's page asks for, but for a link to the page.
    def test_host(self):
        served = self.serve()
        for host, status in (("localhost", 200), ("LOCALHOST:1", 200), ("127.0.0.1:%d" % served.port, 200),
                             ("127.1.2.3", 200), ("[::1]:80", 200), ("evil.example", 421),
                             ("localhost.evil.example", 421), ("127.0.0.1.evil.example", 421), ("127.0.0.1:80x", 421),
                             ("10.0.0.1", 421), ("", 421)):
            for path in ("/", "/metrics", "/state", "/events" if status != 200 else "/"):
                self.assertEqual(served.ask(path, Host=host)[0], status, (host, path))
        self.assertEqual(served.ask("/state", Sec_Fetch_Site="cross-site")[0], 403)
        self.assertEqual(served.ask("/state", Sec_Fetch_Site="same-origin")[0], 200)
        self.assertEqual(served.ask("/", Sec_Fetch_Site="cross-site")[0], 200)

    # It is only read: other methods, bodies and paths are refused.
    def test_methods(self):
        served = self.serve()
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "NONSENSE"):
            for path in ("/", "/state", "/nothing"):
                status, headers, _ = served.ask(path, method)
                self.assertEqual((status, headers["Allow"]), (405, "GET, HEAD"))
        self.assertEqual(served.ask("/", "POST", b"a body")[0], 405)
        self.assertEqual(served.ask("/", "GET", b"x")[0], 400)
        for path in ("/nothing", "/index.html", "/../serve.js", "//", "/serve.js/", "/%2e%2e/etc/passwd"):
            self.assertEqual(served.ask(path)[0], 404, path)
        with served.connect() as raw:
            raw.sendall(b"\x00\xff nonsense\r\n\r\n")
            self.assertNotIn(b"200 OK", raw.makefile("rb").read())
        with served.connect() as raw:
            try:
                raw.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 100000 + b"\r\n\r\n")
                self.assertIn(b" 431 ", raw.makefile("rb").readline())
            except ConnectionError:
                pass  # closed before all was read
        self.assertEqual(served.ask("/")[0], 200)

    # Pages beyond a number are told to come later, and those that wait for changes get them.
    def test_many_pages(self):
        self.member("one")
        served = self.serve()
        self.wait_read(served, lambda pool: pool["members"] == 1)
        streams = [self.stream(served) for _ in range(32)]
        self.assertEqual({stream.status for stream in streams}, {200})
        self.assertEqual(self.stream(served).status, 503)
        self.member("two", 2)
        for stream in streams:
            self.assertEqual(stream.next(lambda change: "figures" in change)["figures"]["members"], 2)
        streams[0].close()

        def place_is_free():
            Setting.zookeeper.create(self.path + "/party/stray", sequence=True)  # who has gone is met when told
            return "divvy_serve_pages_open 32\n" not in served.ask("/metrics")[2].decode()
        wait_for(place_is_free, "a place")
        self.assertEqual(self.stream(served).status, 200)

    # Pages that have gone are met between two looks, too.
    def test_pages_of_a_long_rest(self):
        served = self.serve(interval="1h")
        streams = [self.stream(served) for _ in range(32)]
        self.assertEqual(self.stream(served).status, 503)
        for stream in streams:
            stream.close()
        wait_for(lambda: "divvy_serve_pages_open 32\n" not in served.ask("/metrics")[2].decode(), "a place")

    # A client that sends requests byte by byte, on as many connections as there may be, is ended; others are answered.
    def test_slow_requests(self):
        self.assert_ends_slow(self.serve(), 128)

    # So it is while the wall clock is set back: it is an hour ahead of the one by which the kernel waits.
    def test_clock_set_back(self):
        library = os.path.join(os.path.dirname(Setting.divvy), "..", "test", "wall_clock.so")
        with tempfile.NamedTemporaryFile(buffering=0) as clock:
            clock.write(struct.pack("=q", 3600))
            jump = {"LD_PRELOAD": library, "DIVVY_TEST_WALL_CLOCK": clock.name}
            with mock.patch.dict(os.environ, jump if os.path.exists(library) else {}):  # not where a sanitizer is
                served = self.serve()
            self.assert_ends_slow(served, 1)

    def assert_ends_slow(self, served, count):
        slow = [served.connect() for _ in range(count)]
        for connection in slow:
            self.addCleanup(connection.close)
            connection.sendall(b"GET / HTTP/1.1\r\n")

        def drip():
            left = 0
            for connection in slow:
                try:
                    connection.send(b"x")
                    connection.setblocking(False)
                    left += connection.recv(1) != b""
                except BlockingIOError:
                    left += 1
                except OSError:
                    pass
            time.sleep(0.2)
            return left == 0
        wait_for(drip, "the end of slow connections")
        self.assertEqual(served.ask("/state")[0], 200)

    # A signal ends it at once, with pages and connections open; their streams end.
    def test_end(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            served = self.serve()
            stream, idle = self.stream(served), served.connect()
            self.assertEqual(served.end(number), (0, ""))
            self.assertIsNone(stream.next(lambda change: False))  # behind what was sent before
            try:
                self.assertEqual(idle.recv(1), b"")
            except ConnectionResetError:
                pass  # it had not even been accepted
            idle.close()


class Options(ServeCase):
    # Without --public it listens for this machine alone, and refuses other addresses; what is no address is refused.
    def test_listen(self):
        for address in ("0.0.0.0:0", "[::]:0", "10.1.2.3:80"):
            self.assert_fails(2, ["serve", "--path", "/p", "--listen", address], "--listen: at " + address, "--public")
        for address in ("", ":", "nonsense", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536", "[::1]", "[::1:80",
                        "::1:80", "example.org:80", "1.2.3:80", "x" * 200 + ":80"):
            self.assert_fails(2, ["serve", "--path", "/p", "--listen", address], "is no address")
        served = self.serve("--public", listen="0.0.0.0:0")
        self.assertIn("for everybody who reaches it, without a password", served.told)
        self.assertEqual(served.ask("/state", Host="any.name.example")[0], 200)
        self.assertEqual(served.end()[0], 0)
        served = self.serve(listen="localhost:0")
        taken = "127.0.0.1:%d" % served.port
        self.assert_fails(1, ["serve", "--path", "/p", "--listen", taken], "cannot listen at " + taken, "in use")
        with socket.socket(socket.AF_INET6) as probe:
            try:
                probe.bind(("::1", 0))
            except OSError:
                return  # this machine has no IPv6
        served = self.serve(listen="[::1]:0")
        self.assertIn("http://[::1]:", served.told)
        self.assertEqual(served.ask("/state")[0], 200)

    # What is missing, doubled or malformed is told, as is that no server answers.
    def test_usage(self):
        self.assert_fails(2, ["serve"], "--path or --below is required")
        self.assert_fails(2, ["serve", "--path", "p"], "--path")
        self.assert_fails(2, ["serve", "--path", "/p", "--path", "/p"], "/p is given twice")
        self.assert_fails(2, ["serve", "--path", "/p", "--root", "x"], "--root")
        paths = [word for n in range(65) for word in ("--path", "/p%d" % n)]
        self.assert_fails(2, ["serve", *paths], "64 are the most")
        done = run("serve", "--path", "/p", "--listen", "127.0.0.1:0", "--timeout", "300ms", connect=NOWHERE)
        self.assertEqual(done.returncode, 3)
        self.assertIn("no ZooKeeper server answered", done.stderr)


if __name__ == "__main__":
    main(__file__)
