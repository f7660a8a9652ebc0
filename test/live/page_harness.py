"""What the tests of divvy serve's page share, that show it what they want. SPDX-License-Identifier: Apache-2.0"""
import unittest

from browser_harness import WithBrowser
from command_harness import wait_for
from serve_stub import Hour, Stub, finding

WIDE, PHONE = (1280, 1000), (390, 844)
KILL = "look at process 4711 on app-05; ending it frees all that it has: kill 4711"


def bad_hour():
    """Worker-1 does not release an item of worker-2's, and two items have no owner since the death of worker-4."""
    hour = Hour()
    hour.states.update({"queue-00": "moving", "queue-01": "unowned", "queue-04": "unowned"})
    hour.next["queue-00"] = "worker-2"
    hour.owners.update({"queue-01": None, "queue-04": None})
    hour.samples += [[hour.now - 100000, 12, 0, 3, 4], [hour.now - 60000, 12, 2, 1, 3]]
    hour.findings = [finding("error", "worker-1 owns an item that the plan gave to worker-2 94 s ago", KILL,
                             "its process may hang", check="releases"),
                     finding("warning", "the server does not answer", "start it, as by systemctl start zookeeper; or "
                             "take it out of --connect", where="zk-3:2181", check="server"),
                     finding("note", "mntr is not allowed", "set 4lw.commands.whitelist in zoo.cfg", where="zk-1:2181")]
    hour.holdups = [{"holder": "worker-1", "waiter": "worker-2", "items": 1, "first": "queue-00",
                     "since_ms": hour.now - 94000}]
    hour.change(hour.now - 3600000, "join", joined=["worker-3"])
    hour.change(hour.now - 60000, "death", left=["worker-4"], died=["worker-4"], took=None)
    for item, ms in (("queue-01", 59000), ("queue-04", 58000)):
        hour.event(hour.now - ms, item, "worker-4", None)
    return hour


class PageCase(WithBrowser, unittest.TestCase):
    def open(self, hour, hash="", size=WIDE):
        """Opens the page of an hour, and waits until it has been told all that it asks for first."""
        stub = Stub(hour)
        self.addCleanup(stub.end)
        self.browser.resize(*size)
        self.browser.open_afresh(stub.url + hash)
        self.browser.wait_for("document.querySelector('#live')?.hidden && !document.querySelector('#state.wait')",
                              "the page has begun")
        wait_for(lambda: not any("being " in text for text in self.texts("main .unknown")), "all parts")
        return stub

    def run_js(self, script, *arguments):
        return self.browser.run(script, *arguments)

    def texts(self, selector):
        return self.run_js("return [...document.querySelectorAll(arguments[0])].map((e) => e.innerText)", selector)

    def click(self, selector):
        self.run_js("document.querySelector(arguments[0]).click()", selector)

    def bottom(self, selector):
        """Where an element ends, in the window."""
        return self.run_js("return document.querySelector(arguments[0]).getBoundingClientRect().bottom", selector)

    def place(self, selector, part, height=0.5):
        """A place on a drawing, at a part of its time."""
        box = self.run_js("const svg = document.querySelector(arguments[0]); svg.scrollIntoView({block: 'center'});"
                          "const r = svg.getBoundingClientRect(); return [r.left, r.top, r.width, r.height]", selector)
        left = 72 if self.run_js("return innerWidth <= 640") else 148
        return [box[0] + left + (box[2] - left - 8) * part, box[1] + box[3] * height]
