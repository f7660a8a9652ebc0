#!/usr/bin/python3
"""The first screen of divvy serve's page, in a headless Chromium. SPDX-License-Identifier: Apache-2.0

Shows that the page names faults, each with its cause and its remedy, where nobody has to scroll; and how it looks.

usage: test_command_serve_browser_faults.py BUILD_FOLDER [TEST...]     a TEST is a name such as FirstScreen.test_frozen
"""
import re
import signal
import struct
from unittest import mock

from browser_harness import WithBrowser
from command_harness import Setting, fire, main, wait_for
from fault_harness import ITEMS, Ensemble, FaultyPool
from serve_harness import Serve
from serve_screenshots import SIZES, SILENT, Hour, take_all

# The place of the innermost element with a text: of its first line, as many as there are.
PLACES = """
  const [text, within] = arguments, all = [...document.querySelectorAll(within + ' *')];
  const bare = (e) => e.innerText?.replace(/\\s+/g, ' ') ?? '';
  const found = all.filter((e) => bare(e).includes(text) && ![...e.children].some((c) => bare(c).includes(text)));
  return found.map((e) => { const r = e.getBoundingClientRect();
                            return {left: r.left, top: r.top, right: r.right, bottom: r.bottom}; });
"""
OVERFLOW = "return [document.documentElement.scrollWidth, innerWidth, scrollX, scrollY]"


class Window(WithBrowser, FaultyPool):
    def open(self, served):
        self.browser.open_afresh(served.url)

    def assert_fits(self, width):
        """Nothing is wider than the window, and it has not been scrolled."""
        wide, inner, left, top = self.browser.run(OVERFLOW)
        self.assertLessEqual(wide, inner)
        self.assertEqual((inner, left, top), (width, 0, 0))

    def assert_on_first_screen(self, text, height, within="#findings"):
        """The text is shown once at least, and all of it without scrolling."""
        places = []

        def is_there():
            places[:] = self.browser.run(PLACES, text, within)
            return places
        wait_for(is_there, text, lambda: self.browser.text("#findings"))
        width = self.browser.run("return innerWidth")
        self.assertTrue(any(0 <= p["left"] < p["right"] <= width and 0 <= p["top"] < p["bottom"] <= height
                            for p in places), (text, places, width, height))


class FirstScreen(Window):
    def check(self, check, cause, command, where=None):
        """The page says what is wrong, and what to type, on the first screen, of whatever size that is."""
        served = Serve("--path", self.path, "--root", self.path + "-divvy")
        self.addCleanup(served.end)
        told = []

        def find():
            told[:] = served.json("/findings")["findings"]
            return [finding for finding in told if finding["check"] == check and finding["level"] in
                    ("error", "warning") and (where is None or finding["where"] == where) and
                    re.search(cause, finding["what"])]
        wait_for(find, "the finding", told)  # A server that is just ending is told of in other words.
        finding = find()[0]
        remedy = re.search(command, finding["do"])
        self.assertTrue(remedy, finding["do"])
        for width, height in SIZES.values():
            self.browser.resize(width, height)
            self.open(served)
            # Ages and counts of seconds go on: what stands before the first of them stays.
            self.assert_on_first_screen(re.split(r",? for |[0-9.]+ m?s\b", finding["what"])[0], height)
            self.assert_on_first_screen(remedy.group(0), height)
            self.assert_fits(width)
            self.assertEqual(self.browser.said(), [])

    # A member keeps an item that it was asked to release.
    def test_not_released(self):
        self.pool()
        self.ask_for_an_item()
        self.check("release", "it was asked to release 1 item", r"divvy explain --path \S+ item-00000")

    # A member is frozen.
    def test_frozen(self):
        member = self.member("--session-timeout", SILENT)
        fire(signal.SIGSTOP, member.pid)
        self.check("silent", "it has sent nothing for at least", "kill -CONT %d" % member.pid)

    # Nobody may write the plan.
    def test_plan_closed(self):
        self.pool()
        self.close_plan()
        self.check("acl", "nobody may create below it", r"zkCli.sh setAcl %s/plan \S+" % self.path)

    # One server of three has stopped.
    def test_server_stopped(self):
        ensemble = Ensemble()
        self.addCleanup(ensemble.do, "stop")
        client = self.client(ensemble)
        with mock.patch.object(Setting, "server", ensemble), mock.patch.object(Setting, "zookeeper", client):
            self.pool()
            ensemble.do("kill", "2")
            self.check("connection", "the server cannot be reached at .*: Connection refused",
                       "systemctl start zookeeper", ensemble.connect.split(",")[1])

    # A static member is away, and its items wait for it.
    def test_absent(self):
        self.pool(static=("gamma",), live={"alpha", "beta"})
        self.check("absent", "it is away, and %d items wait for it" % len(ITEMS[2::3]),
                   "divvy forget --path %s gamma" % self.path)


class Overview(Window):
    # A page that is open learns by itself of pools that are found, the first one included. The worst stands first, can
    # be chosen, and stays in the list when it goes.
    def test_new_pools(self):
        served = Serve("--below", self.path, "--root", self.path + "-divvy")
        self.addCleanup(served.end)
        self.browser.resize(*SIZES["wide"])
        self.open(served)
        self.browser.wait_for("document.querySelector('#state').innerText.includes('No pool has been found')", "none")
        self.make(self.path + "/a/party")
        self.browser.wait_for("document.querySelector('#state').innerText.includes('The pool has no items')", "one")
        self.assertTrue(self.browser.run("return document.querySelector('#pools').hidden"))
        self.make(self.path + "/b/party")
        self.make(self.path + "/b/locks/item")

        def rows():
            return self.browser.run("return [...document.querySelectorAll('#pools tbody tr')].map("
                                    "(row) => [...row.cells].slice(0, 2).map((cell) => cell.innerText.trim()))")
        wait_for(lambda: rows() == [[self.path + "/b", "unowned"], [self.path + "/a", "well"]], "both", rows)
        self.browser.run("document.querySelector('#pools tbody button').click()")
        self.browser.wait_for("document.querySelector('#state').innerText.includes('1 of 1 item has no owner')", "it")
        Setting.zookeeper.delete(self.path + "/b", recursive=True)
        wait_for(lambda: rows()[0] == [self.path + "/b", "no pool"], "the pool that went", rows)
        self.assert_fits(SIZES["wide"][0])
        said = [text for text in self.browser.said() if "/changes" not in text]  # a pool without plan has none
        self.assertEqual(said, [])


class Pictures(Window):
    # The pictures of the documents can be taken: of the quiet and of the bad hour, by day and by night, wide and
    # narrow. Nothing is wider than its window, and the console stays quiet.
    def test_pictures(self):
        hour = Hour(self.browser)
        self.addCleanup(hour.end)
        names = set()
        self.browser.said()
        for name, (width, height), picture in take_all(hour):
            self.assert_fits(width)
            self.assertEqual(self.browser.said(), [], name)
            self.assertEqual((picture[:8], picture[12:16]), (b"\x89PNG\r\n\x1a\n", b"IHDR"))
            self.assertEqual(struct.unpack(">II", picture[16:24]), (width, height), name)
            names.add(name)
        self.assertEqual(len(names), 8)


if __name__ == "__main__":
    main(__file__)
