#!/usr/bin/python3
"""The page of divvy serve in a headless Chromium, of pools that are as bad as a test wants (serve_stub.py).

test_command_serve_browser.py has the page with the real divvy serve. SPDX-License-Identifier: Apache-2.0

usage: test_command_serve_page.py BUILD_FOLDER [TEST...]     a TEST is a name such as Incident.test_bad_hour
"""
import re
import threading
import urllib.parse

from command_harness import main, wait_for
from page_harness import KILL, PHONE, WIDE, PageCase, bad_hour
from serve_stub import PATH, Hour, Stub, finding


class Incident(PageCase):
    # The first screen of the bad hour, on a desk and on a phone: the pool's state, what is wrong with its remedy as a
    # command, who holds whom up, what changed last and who died.
    def test_bad_hour(self):
        for size in (WIDE, PHONE):
            self.open(bad_hour(), size=size)
            self.assertEqual(self.browser.text("#state strong"), "Unowned")
            wait_for(lambda: self.browser.text("#state span") ==
                     "2 of 12 items have no owner, 1 moves. 1 error, 1 warning.", "the state in words")
            self.assertEqual(self.run_js("return document.querySelectorAll('#state svg.icon.bad').length"), 1)
            found = self.browser.text("#findings")
            for text in ("Error", "the plan gave to worker-2", "its process may hang", "kill 4711", "Warning",
                         "zk-3:2181"):
                self.assertIn(text, found)
            self.assertNotIn("mntr", found)
            self.assertEqual(self.texts("#findings code"), ["kill 4711", "systemctl start zookeeper"])
            self.assertRegex(self.browser.text("#holdups"),
                             r"(?s)worker-1\s+holds up.*worker-2.*1 item, queue-00.*for 1 min 3")
            self.assertRegex(self.browser.text("#changes"), r"(?s)death.*worker-4 died.*under way.*join.*worker-3")
            for part in ("#state", "#findings .finding", "#holdups li", "#changes li"):
                self.assertLess(self.bottom(part), size[1], part)
            self.assertTrue(self.run_js("return document.title").startswith("(2 unowned)"))
            self.assertEqual(self.browser.said(), [])

    # A quiet hour is told in few words, with its notes folded.
    def test_quiet_hour(self):
        hour = Hour()
        hour.findings = [finding("note", "mntr is not allowed")]
        self.open(hour)
        self.assertEqual(self.browser.text("#state strong"), "Well")
        self.assertIn("Nothing is wrong.", self.browser.text("#findings"))
        self.assertRegex(self.browser.text("#findings"), r"examined \d s ago")
        self.assertIn("Nobody holds anybody up.", self.browser.text("#holdups"))
        self.assertLess(self.bottom("#findings"), 250)
        self.assertNotIn("mntr", self.browser.text("#findings"))
        self.click("#findings summary")
        self.assertIn("mntr is not allowed", self.browser.text("#findings"))

    # A finding makes the state of a pool that seems well worse; a button copies the command.
    def test_remedy(self):
        hour = Hour()
        hour.findings = [finding("error", "a member hangs", KILL)]
        self.open(hour)
        self.browser.wait_for("document.querySelector('#state strong').innerText === 'Trouble'", "the state")
        self.browser.tell("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
        self.browser.wait_for("document.querySelector('#findings .copy') !== null", "the button")
        self.click("#findings .copy")
        self.browser.wait_for("document.querySelector('#findings .copy').innerText === 'Copied'", "the copy")
        self.assertEqual(self.run_js("return navigator.clipboard.readText()"), "kill 4711")
        self.run_js("navigator.clipboard.writeText = () => Promise.reject(new Error('no'))")
        self.click("#findings .copy")
        self.browser.wait_for("getSelection().toString() === 'kill 4711'", "the selection")

    # A part that divvy serve does not answer says so, and why; the others are there.
    def test_unanswered(self):
        hour = bad_hour()
        hour.refused = {"/findings": (503, "the desk is busy\n"), "/changes": (404, "no history is kept\n"),
                        "/heat": (404, "no heat\n"), "/samples": (503, "no samples\n")}
        self.open(hour)
        for part, why in (("findings", "the desk is busy"), ("changes", "no history is kept"), ("heat", "no heat"),
                          ("counts-unknown", "no samples")):
            self.run_js("document.querySelector('#' + arguments[0]).scrollIntoView()", part)
            wait_for(lambda: "not known: " + why in self.browser.text("#" + part), "why %s is not known" % part)
        self.assertIn("worker-1", self.browser.text("#holdups"))
        self.assertEqual(self.run_js("return document.querySelectorAll('#table tbody tr').length"), 12)
        hour.refused = {}
        wait_for(lambda: "kill 4711" in self.browser.text("#findings"), "the findings, later")

    # A page asks for what it shows, the findings every 5 s at most, and for nothing while nobody sees it.
    def test_requests(self):
        stub = self.open(bad_hour())
        self.run_js("Object.defineProperty(document, 'hidden', {get: () => window.away, configurable: true});"
                    "window.away = true")
        wait_for(lambda: self.run_js("return document.hidden"), "nobody sees it")
        begun = len(stub.asked)
        for number in range(20):
            stub.tell(pool=0, ms=stub.hour.now, figures={"unowned": number}, events=[{}], gone=True)
        wait_for(lambda: "19 of 12" in self.browser.text("#state"), "the changes")
        began = self.run_js("return performance.now()")
        wait_for(lambda: self.run_js("return performance.now()") > began + 6000, "more than the findings' 5 s")
        self.assertEqual(stub.asked[begun:], [])
        self.run_js("window.away = false; document.dispatchEvent(new Event('visibilitychange'))")
        wait_for(lambda: any("table=items" in path for path in stub.asked[begun:]), "the table again")
        whole = [path for path in stub.asked if "limit=" in path and int(urllib.parse.parse_qs(path)["limit"][0]) > 500]
        self.assertEqual(whole, [])

    # The overview of pools is there when there are several: the worst one comes first, is shown, and a click shows
    # another one, which the address tells.
    def test_pools(self):
        hour = bad_hour()
        hour.other_pools = [{"path": "/shop/mail", "state": "well"},
                            {"path": "/shop/orders", "state": "moving", "moving": 3}]
        self.open(hour)
        self.browser.wait_for("document.querySelectorAll('#pools tbody tr').length === 3", "the pools")
        self.assertEqual([row.split()[0:2] for row in self.texts("#pools tbody tr")],
                         [[PATH, "unowned"], ["/shop/orders", "moving"], ["/shop/mail", "well"]])
        self.assertEqual(self.run_js("return document.querySelectorAll('#pools tbody svg.icon').length"), 3)
        self.run_js("[...document.querySelectorAll('#pools button')].find((b) => b.innerText === '/shop/mail').click()")
        wait_for(lambda: self.browser.text("#pools [aria-current]").startswith("/shop/mail"), "the pool")
        self.assertIn("pool=%2Fshop%2Fmail", self.run_js("return location.hash"))
        self.assertEqual(self.browser.text("#state strong"), "Well")
        self.open(Hour())
        self.assertTrue(self.run_js("return document.querySelector('#pools').hidden"))


    # What ZooKeeper has is text, wherever it stands on the page.
    def test_hostile(self):
        text = "<img src=x onerror=document.title='owned'>"
        hour = bad_hour()
        hour.members[0] = text
        hour.findings = [finding("error", text, "divvy explain --path /p " + text, text, text, text)]
        hour.holdups = [{"holder": text, "waiter": text, "items": 1, "first": text, "since_ms": hour.now}]
        hour.change(hour.now, text, joined=[text], left=[text], died=[text])
        hour.event(hour.now - 1000, text, text, None)
        hour.other_pools = [{"path": text, "state": text}, {"path": "/b", "state": "well"}]
        hour.refused = {"/explain": (404, text)}
        self.open(hour)
        self.click("#holdups .held button")
        wait_for(lambda: text in self.browser.text("#item-explained"), "the dialog")
        self.run_js("document.querySelector('#heat').scrollIntoView()")
        self.browser.wait_for("document.querySelectorAll('#heat-map .cell').length === 3", "the cells")
        self.assertEqual(self.run_js("return document.querySelectorAll('main img, dialog img').length"), 0)
        self.assertIn(PATH, self.run_js("return document.title"))
        self.assertEqual([one for one in self.browser.said() if "/explain?" not in one], [])

    # The connection is told of only when it is gone, and when it is back the page has what is new.
    def test_connection(self):
        hour = bad_hour()
        stub = self.open(hour)
        self.assertTrue(self.run_js("return document.querySelector('#live').hidden"))
        hour.refused = {"/events": (503, "too many pages\n"), "/state": (503, "no\n")}
        stub.hang_up()
        wait_for(lambda: not self.run_js("return document.querySelector('#live').hidden"), "the connection is gone")
        self.assertIn("not connected", self.browser.text("#live"))
        self.assertEqual(self.browser.text("#state strong"), "Unowned")
        hour.states, hour.refused = {}, {}
        wait_for(lambda: self.run_js("return document.querySelector('#live').hidden"), "the connection is back")
        wait_for(lambda: self.browser.text("#state strong") == "Trouble", "the new state")

    # Where no pool has been found yet the page says so, and begins when there is one.
    def test_no_pool(self):
        hour = bad_hour()
        hour.paths = []
        stub = Stub(hour)
        self.addCleanup(stub.end)
        self.browser.open(stub.url)
        wait_for(lambda: "No pool has been found yet" in self.browser.text("#state"), "no pool")
        self.assertIn("no pool to examine", self.browser.text("#findings"))
        hour.paths = [PATH]
        well, hour.states = hour.states, {}
        hour.held = threading.Event()  # What changes while the state is on its way is not lost.
        stub.tell(pool_count=1, more_pools=0)
        wait_for(lambda: stub.asked[-1] == "/state", "the question for the state")
        hour.states = well
        stub.tell(pool=0, ms=hour.now, figures={"unowned": 2, "moving": 1, "state": "unowned"})
        stub.tell(pool=0, ms=hour.now, figures={"items": 13})
        wait_for(stub.all_told, "the changes are under way")
        hour.held.set()
        wait_for(lambda: "2 of 13 items have no owner" in self.browser.text("#state"), "the pool")
        wait_for(lambda: "kill 4711" in self.browser.text("#findings"), "its findings")


class Time(PageCase):
    def window(self):
        """The ends of the time that the chart shows, in seconds."""
        return self.run_js("const svg = document.querySelector('#counts');"
                           "return ['min', 'max'].map((end) => Number(svg.getAttribute('aria-value' + end)))")

    # A drag over the chart zooms in, by mouse and by finger, and the page says that it shows the past; the table has
    # the owners of then; a button goes back to now.
    def test_drag(self):
        for touch in (False, True):
            stub = self.open(bad_hour(), size=PHONE if touch else WIDE)
            before = self.window()
            self.assertAlmostEqual(before[1] - before[0], 300, delta=1)
            self.browser.drag(self.place("#counts", 0.5), self.place("#counts", 0.75), touch)
            self.browser.wait_for("!document.querySelector('#moment').hidden", "the bar")
            low, high = self.window()
            self.assertAlmostEqual(low, before[0] + 150, delta=4)
            self.assertAlmostEqual(high, before[0] + 225, delta=4)
            self.assertRegex(self.browser.text("#moment"), r"You look at \d\d:\d\d:\d\d of .* ago – not at now")
            wait_for(lambda: any("table=items" in path and "at=" in path for path in stub.asked), "the items of then")
            wait_for(lambda: "of-then" in self.browser.text("#table"), "the owners of then")
            self.assertIn("of now", self.browser.text("#findings"))
            self.click("#moment-now")
            self.browser.wait_for("document.querySelector('#moment').hidden", "now")
            self.assertAlmostEqual(self.window()[1] - self.window()[0], 300, delta=1)
            wait_for(lambda: "of-then" not in self.browser.text("#table"), "the owners of now")

    # The keyboard does the same on the chart: it zooms, and goes to moments of the past and back.
    def test_keyboard(self):
        self.open(bad_hour())
        self.run_js("document.querySelector('#counts').focus()")
        self.browser.press("+")
        self.assertAlmostEqual(self.window()[1] - self.window()[0], 150, delta=1)
        self.browser.press("-", "-")
        self.assertAlmostEqual(self.window()[1] - self.window()[0], 600, delta=1)
        self.browser.press("LEFT", "LEFT")
        self.assertFalse(self.run_js("return document.querySelector('#moment').hidden"))
        self.browser.press("ESCAPE")
        self.assertTrue(self.run_js("return document.querySelector('#moment').hidden"))
        self.assertEqual(self.run_js("return document.activeElement.id"), "counts")

    # Ranges are chosen by buttons. The address names what is shown, and another page that opens it shows the same.
    def test_address(self):
        hour = bad_hour()
        stub = self.open(hour)
        for button, seconds in (("1m", 60), ("1h", 3600), ("all", 7200)):
            self.click("#range-" + button)
            self.assertAlmostEqual(self.window()[1] - self.window()[0], seconds, delta=60 if button == "all" else 1)
            self.assertEqual(self.run_js("return document.querySelector('#range [aria-pressed=true]').innerText"),
                             {"1m": "1 min", "1h": "1 h", "all": "all"}[button])
        self.click("#range-1m")
        self.click("#tab-timeline")
        self.click("#changes .when")
        self.browser.wait_for("!document.querySelector('#moment').hidden", "the moment")
        address, shown = self.run_js("return location.hash"), self.browser.text("#moment-text").split(" ago")[0]
        self.assertRegex(address, r"^#timeline&range=1m&to=\d+&at=%d$" % (hour.now - 60000))
        window = self.window()
        self.browser.open("about:blank")
        self.browser.open(stub.url + address)
        self.browser.wait_for("document.querySelector('#moment')?.hidden === false", "the moment again")
        wait_for(lambda: self.window() == window, "the same range")
        self.assertEqual(self.browser.text("#moment-text").split(",")[:2], shown.split(",")[:2])
        wait_for(lambda: re.search(r"Unowned\s+2\s", self.browser.text("#summary")), "the figures of then")
        for wrong in ("#items&range=nonsense", "#items&to=-5&at=1e99", "#%%%", "#items&pool=%zz"):
            self.open(hour, wrong)
            self.assertTrue(self.run_js("return document.querySelector('#moment').hidden"), wrong)
            self.assertEqual(self.browser.said(), [])

    # Ticks stand at round times, and a date is told where the day changes, or where the range is of another day.
    def test_ticks(self):
        def ticks(start, end, most):
            return self.run_js("return import('/ticks.js').then((m) => m.ticks(...arguments[0]))"
                               "  .then((all) => all.map((tick) => [tick.text, tick.date]))", [start, end, most, noon])
        self.open(Hour())
        noon = 1795608000000  # 2026-11-25, 12:00 in UTC, which is the browser's time
        self.assertEqual(ticks(noon + 1300, noon + 11300, 6),
                         [["12:00:%02d" % second, ""] for second in range(2, 12, 2)])
        self.assertEqual(ticks(noon, noon + 300000, 6), [["12:0%d" % minute, ""] for minute in range(6)])
        midnight = noon + 12 * 3600000
        self.assertEqual(ticks(midnight - 3600000, midnight + 3600000, 5),
                         [["23:00", "25 Nov"], ["23:30", ""], ["00:00", "26 Nov"], ["00:30", ""], ["01:00", ""]])
        self.assertEqual(ticks(noon - 86400000, noon - 82800000, 3)[0], ["12:00", "24 Nov"])
        self.assertEqual(ticks(noon, noon + 3 * 86400000, 4), [["%d Nov" % day, ""] for day in (26, 27, 28)])

    # Unowned and moving are stacked, as no item is both; they differ by more than their colour.
    def test_chart(self):
        self.open(bad_hour())
        self.browser.wait_for("document.querySelector('#counts .moving')?.getAttribute('d')", "the areas")
        unowned, moving = self.run_js(
            "return ['unowned', 'moving'].map((name) => document.querySelector(`#counts .${name}`).getBBox())"
            "  .map((box) => [box.y, box.height])")
        self.assertAlmostEqual(unowned[1] * 1.5, moving[1], delta=1)  # 2 at most, and 3
        self.assertIn("hatch", self.run_js("return getComputedStyle(document.querySelector('#counts .moving')).fill"))
        self.assertIn("2 unowned and 1 moving; in this range at most 3",
                      self.run_js("return document.querySelector('#counts').getAttribute('aria-valuetext')"))


if __name__ == "__main__":
    main(__file__)
