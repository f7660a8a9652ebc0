#!/usr/bin/python3
"""What a page of divvy serve asks of ZooKeeper beyond what is followed. SPDX-License-Identifier: Apache-2.0

Shows the desk: explanations, changes and findings equal those of the commands, and a slow answer holds up nobody.

usage: test_command_serve_desk.py BUILD_FOLDER [TEST...]     a TEST is a name such as Questions.test_explain
"""
import json
import re
import socket
import time
import urllib.parse

from kazoo.client import KazooClient

import test_command_faults
from command_harness import DEADLINE_S, Server, Setting, main, wait_for
from look_harness import DivvyMember, run, tree
from test_command_serve import ServeCase

ITEMS = ["i1", "i2", "i3", "i4"]


class Asked:
    """A question on a connection of its own, whose answer is read later."""

    def __init__(self, served, path):
        self.socket = served.connect()
        self.socket.sendall(b"GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n" % path.encode())

    def is_told(self, served):
        """Whether there was an answer at once."""
        settle(served)
        self.socket.setblocking(False)
        try:
            return bool(self.socket.recv(1, socket.MSG_PEEK))
        except BlockingIOError:
            return False
        finally:
            self.socket.settimeout(DEADLINE_S)

    def answer(self):
        """The status and the body; None where the connection ended without an answer."""
        try:
            with self.socket.makefile("rb") as file:
                said = file.read()
        except ConnectionResetError:
            said = b""
        self.socket.close()
        head, _, body = said.partition(b"\r\n\r\n")
        return (int(head.split()[1]), body) if head else None


def settle(served):
    """Has it deal with all questions that were asked before: whatever can be told without ZooKeeper is told then."""
    for _ in range(3):  # connections that came at the same moment have no order
        served.json("/state")


def without_ages(told):
    """What was told, but for how long ago it was."""
    if isinstance(told, dict):
        return {key: without_ages(value) for key, value in told.items() if key != "age_ms"}
    return [without_ages(value) for value in told] if isinstance(told, list) else told


class DeskCase(ServeCase):
    def serve(self, *arguments, **options):
        served = super().serve(*arguments, **options)
        self.addCleanup(self.assert_ends, served)
        return served

    def assert_ends(self, served):
        """It ends well, whatever was asked; a sanitizer may have another opinion."""
        code, said = served.end()
        self.assertEqual(code, 0, said)

    def pool_at_rest(self):
        """A pool of two members whose items all have the owners that they should."""
        clients = self.make_pool(["a", "b"], [("a", False), ("b", False)], ITEMS, "0011")
        for number, item in enumerate(ITEMS):
            name = "aabb"[number]
            self.place(clients[name], item, name.encode())
        return clients

    def asked(self, served, path):
        question = Asked(served, path)
        self.addCleanup(question.socket.close)
        return question

    def refused(self, served, path):
        """The status, and the line that says why."""
        status, headers, body = served.ask(path)
        self.assertEqual(headers["Content-Type"], "text/plain; charset=utf-8")
        self.assertRegex(body.decode(), r"\A[^\n]+\n\Z")
        return status, body.decode()


class Questions(DeskCase):
    # An item is explained as the command explains it.
    def test_explain(self):
        self.pool_at_rest()
        served = self.serve()
        for item in ITEMS:
            told = served.json("/explain?pool=0&item=" + item)
            self.assertEqual(without_ages(told), without_ages(self.shown("explain", "--path", self.path, item)))
            self.assertEqual((told["state"], told["owner"]), ("settled", "aabb"[ITEMS.index(item)]))
        self.assertEqual(served.ask("/explain?item=i1", "HEAD")[::2], (200, b""))

    # What there is now is told, a second later at the latest.
    def test_explain_changes(self):
        clients = self.pool_at_rest()
        served = self.serve()
        self.assertEqual(served.json("/explain?item=i1")["owner"], "a")
        clients["a"].delete(self.path + "/locks/i1/%s__lock__0000000000" % ("0" * 23))
        began = time.monotonic()
        wait_for(lambda: served.json("/explain?item=i1")["owner"] is None, "the new state")
        self.assertLess(time.monotonic() - began, DEADLINE_S / 2)

    # What cannot be explained is refused with the reason: an item or a pool that is not there.
    def test_explain_nothing(self):
        self.pool_at_rest()
        served = self.serve("--path", self.path + "_other")
        self.assertEqual(self.refused(served, "/explain?item=nothing"),
                         (404, 'the pool at %s has no item "nothing"\n' % self.path))
        self.assertEqual(self.refused(served, "/explain?pool=1&item=i1"),
                         (404, "there is no pool at %s_other: it has neither members nor locks\n" % self.path))

    # The changes of the plan are those that the command tells, which members at work have made.
    def test_changes(self):
        members = []
        for name in ("one", "two"):
            members.append(DivvyMember(self.path, name, ITEMS))
            self.addCleanup(members[-1].stop)
            wait_for(lambda: sorted(item for member in members for item in member.owned) == ITEMS, "all are owned")
        wait_for(lambda: len(members[0].owned) == 2, "the second has its share")
        served = self.serve()

        def is_told():
            shown[:] = [served.json("/changes?pool=0"), self.shown("history", "--path", self.path)]
            return without_ages(shown[0]) == without_ages(shown[1])
        shown = []
        wait_for(is_told, "the same history", shown)
        self.assertGreaterEqual(len(shown[0]["changes"]), 2)
        self.assertEqual(shown[0]["changes"][-1]["joined"]["names"], ["two"])

    # A pool without a plan has no changes.
    def test_no_changes(self):
        self.member("one")
        served = self.serve("--path", self.path + "_other")
        status, why = self.refused(served, "/changes")
        self.assertEqual(status, 404)
        self.assertIn("the pool at %s has no plan" % self.path, why)
        status, why = self.refused(served, "/changes?pool=1")
        self.assertEqual(status, 404)
        self.assertIn("there is no pool at %s_other" % self.path, why)

    # What is no question is refused.
    def test_bad_questions(self):
        served = self.serve()
        for path in ("/findings?pool=1", "/findings?pool=x", "/explain", "/explain?item=", "/explain?pool=1&item=i1",
                     "/explain?pool=x&item=i1", "/explain?pool=-1&item=i1", "/explain?item=" + "x" * 4097,
                     "/changes?pool=1", "/changes?pool=1234567890"):
            self.assertEqual(served.ask(path)[0], 400, path)
        self.assertEqual(served.ask("/explain?item=" + "x" * 4096)[0], 404)

    # Names are what they are, also those that a URL has to escape.
    def test_hostile_names(self):
        client = self.member("<b>bold")
        for name in ("a&b=c#d", "line\nbreak", "é漢字", "quote\"'"):
            self.place(client, name.replace("\n", "%0A"), b"<b>bold")
            served = self.serve()
            told = served.json("/explain?" + urllib.parse.urlencode({"item": name}))
            self.assertEqual((told["item"], told["owner"]), (name, "<b>bold"))
            self.assertEqual(served.end()[0], 0)


def without_times(findings):
    """Findings, but for times: how long something took, and how old it is."""
    def timeless(text):
        return re.sub(r"[0-9.]+ ?(ms|s|m|h|d)\b", "T", text or "")
    return [[finding["level"], finding["check"], finding["where"]] +
            [timeless(finding[key]) for key in ("what", "why", "do")] for finding in findings]


def as_printed(findings):
    """Findings as the command prints them for people."""
    def line(level, check, text):
        return "%-8s %-11s %s\n" % (level, check, text)
    return "".join(line(one["level"], one["check"], ": ".join(filter(None, (one["where"], one["what"])))) +
                   line("", "  why", one["why"]) + line("", "  do", one["do"]) for one in findings)


# Each fault that the doctor's tests put into a pool, while it is followed: the page's findings are the doctor's.
class Findings(test_command_faults.Faults, DeskCase):
    # These are not of a pool, or have no findings that last.
    test_frozen_member = test_credentials = test_host_name = test_tick = test_timeouts = test_no_server = None
    test_servers = test_tree = test_read_only = test_too_many_connections = test_lock = test_refused = None
    test_static_namesakes = test_well = test_empty_pool = None
    served = None

    def pool(self, *arguments, **options):
        clients = super().pool(*arguments, **options)
        self.follow()
        return clients

    def follow(self):
        self.served = self.serve()
        wait_for(lambda: self.served.pool()["read"], "the first look")

    def assert_named(self, fault, words, sentence, code=1):
        if words[0][0] == "doctor":
            self.assert_same(fault, sentence)

    def assert_same(self, fault, sentence):
        """Waits until the page's findings are the doctor's, with the fault among them."""
        shown = []

        def is_same():
            told = self.served.json("/findings?pool=0")
            found = [json.loads(run(*self.doctor("--json")[0]).stdout)["findings"], told["findings"]]
            shown[:] = [json.dumps(without_times(findings), indent=1) for findings in found]
            counts = [len([None for one in told["findings"] if one["level"] == level])
                      for level in ("error", "warning", "note")]
            self.assertEqual((counts, 0), ([told["errors"], told["warnings"], told["notes"]], told["pool"]))
            return shown[0] == shown[1] and re.search(sentence, as_printed(told["findings"]))
        wait_for(is_same, fault, shown)

    # A pool that is not there, and one that nobody is in.
    def test_nobody(self):
        self.follow()
        self.assert_same("no pool", r"pool +%s: there is no pool: it has neither members nor locks" % self.path)
        Setting.zookeeper.ensure_path(self.path + "/party")
        Setting.zookeeper.ensure_path(self.path + "/locks/x")
        self.assert_same("nobody", r"members +%s: nobody is in the pool" % self.path)

    # Looking changes nothing, whatever is asked.
    def test_read_only_questions(self):
        self.pool()
        before = tree(self.path)
        self.assert_same("none", r"ok +items +%s: all %d have the owner" % (self.path, len(test_command_faults.ITEMS)))
        for path in ("/explain?item=item-00001", "/changes"):
            self.assertEqual(self.served.ask(path)[0], 200)
        self.assertEqual(tree(self.path), before)

    # An item that is given back by the plan holds up nobody; when it is asked for again, it counts from then.
    def test_asked_again(self):
        def rows():
            return self.served.rows("holdups")["rows"]
        self.pool()
        self.ask_for_an_item()
        wait_for(rows, "a holdup")
        first = rows()[0]
        self.assertEqual((first["holder"], first["waiter"], first["items"], first["first"]),
                         ("alpha", "beta", 1, "item-00000"))
        self.set_plan("".join(str(number % 3) for number in range(test_command_faults.ITEM_COUNT)))
        wait_for(lambda: not rows(), "none")
        self.ask_for_an_item()
        wait_for(rows, "a holdup again")
        self.assertGreater(rows()[0]["since_ms"], first["since_ms"])

    # What was found is told again for a while, without another examination.
    def test_fresh(self):
        self.pool()
        first = self.served.json("/findings?pool=0")["read_at_ms"]
        self.assertLess(abs(time.time() * 1000 - first), 1000 * DEADLINE_S)
        wait_for(lambda: self.served.json("/findings?pool=0")["read_at_ms"] != first, "another examination")
        self.assertGreaterEqual(self.served.json("/findings?pool=0")["read_at_ms"] - first, 2000)


class Holdups(DeskCase):
    # Who has what the plan gives to another, or to nobody: told from memory, those with the most items first, and since
    # when that was seen. What is given up is told no longer, and what is asked later counts from then.
    def test_holdups(self):
        owners = "001111z1"
        items = ["i%d" % number for number in range(len(owners))]
        clients = self.make_pool(["a", "b"], [("a", False), ("b", False)], items, owners)
        for item in items:
            client = self.client() if item == "i7" else clients["a"]
            self.place(client, item, b"old" if item == "i7" else b"a")
        began_ms = time.time() * 1000
        served = self.serve()
        self.wait_read(served, lambda pool: pool["owned"] == 8 and pool["in_force"])
        rows = served.rows("holdups")["rows"]
        self.assertEqual([(row["holder"], row["waiter"], row["items"], row["first"]) for row in rows],
                         [("a", "b", 4, "i2"), ("a", None, 1, "i6"), ("old", "b", 1, "i7")])
        self.assertEqual([row["items"] for row in served.rows("holdups", limit=1, offset=1)["rows"]], [1])
        self.assertEqual(served.rows("holdups", text="old")["matched"], 1)
        since = rows[0]["since_ms"]
        self.assertTrue(began_ms - 1 <= since <= time.time() * 1000, (began_ms, since))
        for item in ("i2", "i6"):
            clients["a"].delete("%s/locks/%s/%s__lock__0000000000" % (self.path, item, "0" * 23))
        wait_for(lambda: len(served.rows("holdups")["rows"]) == 2, "what is given up")
        rows = served.rows("holdups")["rows"]
        self.assertEqual([(row["holder"], row["items"], row["first"]) for row in rows],
                         [("a", 3, "i3"), ("old", 1, "i7")])
        self.assertEqual(rows[0]["since_ms"], since)
        self.place(clients["a"], "i6", b"a", 1)
        wait_for(lambda: len(served.rows("holdups")["rows"]) == 3, "what is asked later")
        later = next(row for row in served.rows("holdups")["rows"] if not row["waiter"])
        self.assertEqual((later["holder"], later["first"]), ("a", "i6"))
        self.assertGreater(later["since_ms"], since)

    # Where names decide, nobody is asked for anything.
    def test_no_plan(self):
        self.place(self.member("one"), "item", b"one")
        served = self.serve()
        self.wait_read(served, lambda pool: pool["owned"] == 1)
        self.assertEqual(served.rows("holdups")["rows"], [])


class Away(DeskCase):
    def setUp(self):
        super().setUp()
        self.server = Server()
        self.addCleanup(self.server.do, "stop")
        self.addCleanup(self.server.do, "resume", "1")
        client = KazooClient(self.server.plain)
        client.start()
        client.ensure_path(self.path + "/locks/item")
        client.stop()
        client.close()

    def serve_there(self, *arguments):
        served = self.serve(*arguments, connect=self.server.connect)
        self.wait_read(served, lambda pool: pool["items"] == 1)
        wait_for(lambda: served.ask("/explain?item=item")[0] == 200, "an answer")
        return served

    # While no server answers, a question ends with the reason, and everything else is answered; then it goes on.
    def test_no_answer(self):
        served = self.serve_there("--timeout", "500ms")
        self.server.do("pause", "1")
        wait_for(lambda: served.ask("/explain?item=item")[0] == 503, "the end of what was fresh")
        self.assertEqual(self.refused(served, "/changes"),
                         (503, "the servers have not told all of it within 500 ms\n"))
        self.assertEqual(served.pool()["items"], 1)
        wait_for(lambda: ("error", "connection", self.server.connect, True) in
                 [(*one[:3], "has not answered within 1000 ms" in one[3]) for one in self.found(served)],
                 "what is wrong with the server")
        self.server.do("resume", "1")
        # Only members are missed.
        wait_for(lambda: [what for level, *_, what in self.found(served) if level == "error"] in
                 ([], ["nobody is in the pool"]), "nothing is wrong")
        wait_for(lambda: served.ask("/explain?item=item")[0] == 200, "an answer again")

    def found(self, served):
        """Level, check, where and what of all that was found. On a busy machine that may not be told in time."""
        status, _, body = served.ask("/findings")
        if status != 200:
            return [("error", "", "", body.decode())]
        return [[one[key] for key in ("level", "check", "where", "what")] for one in json.loads(body)["findings"]]

    # Equal questions that wait are one: each connection has the same answer. The others are answered in the meantime.
    def test_equal_questions(self):
        served = self.serve_there("--timeout", "60s")
        self.server.do("pause", "1")
        wait_for(lambda: served.json("/state") and self.waits(served), "that a question has to wait")
        asked = [self.asked(served, "/explain?item=item") for _ in range(50)]
        for path in ("/", "/state", "/rows?table=items", "/metrics"):
            self.assertEqual(served.ask(path)[0], 200)
        self.server.do("resume", "1")
        answers = {question.answer() for question in asked}
        self.assertEqual([status for status, _ in answers], [200], answers)
        self.assertEqual(json.loads(answers.pop()[1])["item"], "item")

    def waits(self, served, path="/explain?item=item"):
        """Asks once, and returns whether there is no answer yet: what was fresh is no longer."""
        return not self.asked(served, path).is_told(served)

    # Of different questions no more wait than there are places; then a signal ends it at once, with all of them.
    def test_full(self):
        served = self.serve_there("--timeout", "1h")
        self.server.do("pause", "1")
        wait_for(lambda: self.waits(served), "that a question has to wait")
        asked = [self.asked(served, "/explain?item=other%d" % number) for number in range(31)]
        settle(served)
        self.assertTrue(self.refused_at_once(served))
        self.assertEqual(served.ask("/state")[0], 200)
        self.assertEqual(served.end(), (0, ""))
        for question in asked:
            answer = question.answer()
            self.assertTrue(answer is None or answer[0] == 503, answer)

    def refused_at_once(self, served):
        question = self.asked(served, "/explain?item=one-too-many")
        return question.is_told(served) and question.answer() == (503, b"too many questions wait for an answer\n")

    # A signal ends it at once while a question is under way: a read of ZooKeeper, or questions to its servers.
    def test_end(self):
        for path in ("/explain?item=item", "/findings"):
            served = self.serve_there("--timeout", "1h")
            self.server.do("pause", "1")
            wait_for(lambda served=served, path=path: self.waits(served, path), "that a question has to wait")
            self.assertEqual(served.end(), (0, ""))
            self.server.do("resume", "1")


if __name__ == "__main__":
    main(__file__)
