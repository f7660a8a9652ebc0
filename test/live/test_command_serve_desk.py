#!/usr/bin/python3
"""What a page of divvy serve asks of ZooKeeper beyond what is followed. SPDX-License-Identifier: Apache-2.0

Shows the desk: explanations, changes and findings equal those of the commands, and a slow answer holds up nobody.

usage: test_command_serve_desk.py BUILD_FOLDER [TEST...]     a TEST is a name such as Questions.test_explain
"""
import json
import time
import urllib.parse

from kazoo.client import KazooClient

from command_harness import DEADLINE_S, Server, main, wait_for
from look_harness import DivvyMember
from test_command_serve import ServeCase

ITEMS = ["i1", "i2", "i3", "i4"]


class Asked:
    """A question on a connection of its own, whose answer is read later."""

    def __init__(self, served, path):
        self.socket = served.connect()
        self.socket.sendall(b"GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n" % path.encode())

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


def without_ages(told):
    """What was told, but for how long ago it was."""
    if isinstance(told, dict):
        return {key: without_ages(value) for key, value in told.items() if key != "age_ms"}
    return [without_ages(value) for value in told] if isinstance(told, list) else told


class DeskCase(ServeCase):
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
        for path in ("/explain", "/explain?item=", "/explain?pool=1&item=i1", "/explain?pool=x&item=i1",
                     "/explain?pool=-1&item=i1", "/explain?item=" + "x" * 4097, "/changes?pool=1",
                     "/changes?pool=1234567890"):
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
        self.assertEqual(served.ask("/explain?item=item")[0], 200)
        return served

    # While no server answers, a question ends with the reason, and everything else is answered; then it goes on.
    def test_no_answer(self):
        served = self.serve_there("--timeout", "500ms")
        self.server.do("pause", "1")
        wait_for(lambda: served.ask("/explain?item=item")[0] == 503, "the end of what was fresh")
        self.assertEqual(self.refused(served, "/changes"),
                         (503, "the servers have not told all of it within 500 ms\n"))
        self.assertEqual(served.pool()["items"], 1)
        self.server.do("resume", "1")
        wait_for(lambda: served.ask("/explain?item=item")[0] == 200, "an answer again")

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

    def waits(self, served):
        """Asks once, and returns whether there is no answer yet: what was fresh is no longer."""
        question = self.asked(served, "/explain?item=item")
        question.socket.settimeout(0.2)
        try:
            question.socket.recv(1)
            return False
        except TimeoutError:
            return True

    # Of different questions no more wait than there are places; then a signal ends it at once, with all of them.
    def test_full(self):
        served = self.serve_there("--timeout", "60s")
        self.server.do("pause", "1")
        wait_for(lambda: self.waits(served), "that a question has to wait")
        asked = [self.asked(served, "/explain?item=other%d" % number) for number in range(31)]
        wait_for(lambda: self.refused_at_once(served), "a full queue")
        self.assertEqual(served.ask("/state")[0], 200)
        began = time.monotonic()
        self.assertEqual(served.end(), (0, ""))
        self.assertLess(time.monotonic() - began, 5)
        for question in asked:
            answer = question.answer()
            self.assertTrue(answer is None or answer[0] == 503, answer)

    def refused_at_once(self, served):
        question = self.asked(served, "/explain?item=one-too-many")
        question.socket.settimeout(0.2)
        try:
            return question.answer() == (503, b"too many questions wait for an answer\n")
        except TimeoutError:
            return False

    # A signal ends it at once while a question is under way.
    def test_end(self):
        served = self.serve_there("--timeout", "60s")
        self.server.do("pause", "1")
        wait_for(lambda: self.waits(served), "that a question has to wait")
        began = time.monotonic()
        code, _ = served.end()
        self.assertEqual(code, 0)
        self.assertLess(time.monotonic() - began, 5)


if __name__ == "__main__":
    main(__file__)
