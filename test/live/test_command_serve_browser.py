#!/usr/bin/python3
"""The page of divvy serve, in a headless Chromium. SPDX-License-Identifier: Apache-2.0

Shows the page as a browser runs it.

usage: test_command_serve_browser.py BUILD_FOLDER [TEST...]     a TEST is a name such as Page.test_live
"""
from browser_harness import WithBrowser
from command_harness import main, wait_for
from look_harness import Case, DivvyMember
from serve_harness import Serve

HOSTILE = "<img src=x onerror=document.title='owned'>"


class Page(WithBrowser, Case):
    def serve(self, *arguments):
        served = Serve("--path", self.path, "--root", self.path + "-divvy", *arguments)
        self.addCleanup(served.end)
        return served

    def open(self, served, hash=""):
        """Opens the page, and waits until it changes by itself."""
        self.browser.open_afresh(served.url + hash)
        self.browser.wait_for("document.querySelector('#live')?.innerText === 'connected'", "the page is connected")

    def make_items(self, count, name="item%03d"):
        """Items that one member owns, and its client."""
        client = self.client()
        client.ensure_path(self.path + "/party")
        client.create(self.path + "/party/000000000010000000000011,a=2,s=00000000-one", b"{}", ephemeral=True)
        client.ensure_path(self.path + "/locks")
        for number in range(count):
            client.create(self.path + "/locks/" + name % number)
            client.create("%s/locks/%s/%s__lock__0000000000" % (self.path, name % number, "0" * 23), b"one",
                          ephemeral=True)
        return client

    def item(self, name):
        """The cells of an item's row."""
        return self.browser.run("const row = [...document.querySelectorAll('#table tbody tr')]"
                                ".find((row) => row.cells[0].innerText === arguments[0]);"
                                "return row ? [...row.cells].map((cell) => cell.innerText) : null", name)

    # The page shows who owns an item, and by itself that nobody does, in the row and in the summary; of a long table it
    # has one part, and the filter finds the rest. Nothing that it does is against its policy, and it is quiet.
    def test_live(self):
        client = self.make_items(250)
        served = self.serve()
        self.open(served)
        self.browser.wait_for("document.querySelectorAll('#table tbody tr').length === 100", "a part of the items")
        self.assertEqual(self.item("item007")[1:3], ["owned", "one"])
        self.assertIn("1 to 100 of 250", self.browser.text("#position"))
        client.delete(self.path + "/locks/item007/%s__lock__0000000000" % ("0" * 23))
        wait_for(lambda: self.item("item007")[1:3] == ["unowned", "nobody"], "the change in the row")
        self.browser.wait_for("document.querySelector('#summary').innerText.includes('0.4 % of all')", "the summary")
        self.assertTrue(self.browser.run("return document.title").startswith("(1 unowned)"))
        self.browser.run("document.querySelector('#text').value = 'm249';"
                         "document.querySelector('#text').dispatchEvent(new Event('input'))")
        wait_for(lambda: self.item("item249"), "the filter")
        self.assertEqual(self.browser.run("return document.querySelectorAll('#table tbody tr').length"), 1)
        self.assertEqual(self.browser.said(), [])

    # What stands in ZooKeeper is shown as text, whatever it is.
    def test_hostile(self):
        client = self.make_items(1, HOSTILE + "%d")
        client.ensure_path(self.path + "-divvy/locks/" + HOSTILE)
        served = self.serve()
        self.open(served)
        wait_for(lambda: self.item(HOSTILE + "0"), "the item")
        self.assertEqual(self.browser.run("return document.querySelectorAll('#table img').length"), 0)
        self.browser.run("document.querySelector('#tab-locks').click()")
        wait_for(lambda: self.item(HOSTILE), "the lock")
        self.assertNotIn("owned", self.browser.run("return document.title"))
        self.assertEqual(self.browser.said(), [])

    # The keyboard is enough: it reaches the tabs, goes from one to the next, and opens and closes an item's details,
    # whose dialog says who owned it. Each control has a name.
    def test_keyboard(self):
        client = self.make_items(2)
        served = self.serve()
        self.open(served)
        wait_for(lambda: self.item("item000"), "the items")
        client.delete(self.path + "/locks/item000/%s__lock__0000000000" % ("0" * 23))
        wait_for(lambda: self.item("item000")[1] == "unowned", "the change")

        def tab_to(selector):
            for _ in range(30):
                self.browser.press("TAB")
                if self.browser.run("return document.activeElement.matches(arguments[0])", selector):
                    return
            self.fail("the keyboard does not reach " + selector)
        tab_to("[role=tab][aria-selected=true]")
        self.browser.press("RIGHT", "RIGHT")
        self.assertEqual(self.browser.run("return document.activeElement.id"), "tab-members")
        wait_for(lambda: self.item("one"), "the members")
        self.browser.press("LEFT", "LEFT")
        wait_for(lambda: self.item("item000"), "the items again")
        tab_to("#table button")
        self.browser.press("ENTER")
        self.browser.wait_for("document.querySelector('#item').open", "the details")
        wait_for(lambda: "nobody" in self.browser.text("#item"), "the explanation")
        self.assertTrue(self.browser.run("return document.querySelector('#item-lane .gap') !== null"))
        self.browser.press("ESCAPE")
        self.browser.wait_for("!document.querySelector('#item').open", "the end of the details")
        nameless = self.browser.run(
            "const all = document.querySelectorAll('button, input, select, svg, dialog, nav, [role=tabpanel]');"
            "return [...all].filter((e) => !e.closest('dialog:not([open]), [hidden], [aria-hidden]')"
            "&& !(e.innerText?.trim()"
            "|| e.labels?.length || e.getAttribute('aria-label')"
            "|| e.getAttribute('aria-labelledby'))).map((e) => e.outerHTML)")
        self.assertEqual(nameless, [])
        self.assertEqual(self.browser.said(), [])

    # A static member that is started again is told as that, in words: by itself, and for each item that it has again.
    # An owner that takes an item again, without a restart, is not.
    def test_restart(self):
        client = self.client()
        client.ensure_path(self.path + "/locks/item000")
        client.ensure_path(self.path + "/party")

        def start(number, pid, identifier="m3"):
            process = self.client()
            member = '{"id":"%s","host":"h","pid":%d,"since":"2026-01-01T00:00:0%dZ","static":true}'
            process.create("%s/party/0000000000%d000000000011,a=2,s=00000000-%s" % (self.path, number, identifier),
                           (member % (identifier, pid, number)).encode(), ephemeral=True)
            return process

        def take(process, sequence):
            return process.create("%s/locks/item000/%s__lock__%010d" % (self.path, "0" * 23, sequence), b"m3",
                                  ephemeral=True)
        old = start(1, 11)
        place = take(old, 0)
        served = self.serve()
        self.open(served, "#timeline")
        wait_for(lambda: served.rows("items")["rows"][0]["owner"] == "m3", "the owner")
        with_token = old.transaction()
        with_token.delete(place)
        with_token.create(place[:-1] + "1", b"m3", ephemeral=True)
        with_token.commit()

        def said():
            return self.browser.run("return [...document.querySelectorAll('#table tbody tr')]"
                                    ".map((row) => [...row.cells].slice(1).map((cell) => cell.innerText).join(' '))")
        wait_for(lambda: said() == ["item000 m3 took it again"], "the new token", said)
        new = start(2, 22)
        take(new, 2)
        wait_for(lambda: said()[:1] == ["m3 restarted"], "the new process", said)
        old.stop()
        wait_for(lambda: said() == ["item000 m3 restarted", "m3 restarted", "item000 m3 took it again"], "the item",
                 said)
        self.browser.run("document.querySelector('#table tbody button').click()")
        wait_for(lambda: "m3 restarted" in self.browser.text("#item-events"), "the item's changes")
        self.assertEqual(self.browser.said(), [])

    # The tabs count the rows that they show, members that are away among them. Nothing on the page is green, or says
    # that nothing is wrong, while items have no owner.
    def test_counts(self):
        items = ["item%04d" % number for number in range(2000)]
        names = ["m%02d" % number for number in range(12)]
        self.make_pool(names[:9], [(name, True) for name in names], items, "0" * 2000)
        served = self.serve()
        self.open(served, "#members")
        self.browser.wait_for("document.querySelectorAll('#table tbody tr').length === 12", "the members")
        self.assertEqual(self.browser.text("#tab-members"), "Members 12")
        self.assertEqual(self.browser.text("#tab-items"), "Items 2,000")
        self.assertRegex(self.browser.text("#summary"), r"(?s)Members\s+9\s+3 away.*Unowned\s+2,000\s+100\.0 %")
        green = self.browser.run(
            "const green = (colour) => { const [r, g, b] = (colour.match(/[0-9.]+/g) ?? []).map(Number);"
            "                            return g > r + 40 && g > b + 40; };"
            "return [...document.querySelectorAll('header *')].filter((e) => [null, '::before'].some((part) => {"
            "  const style = getComputedStyle(e, part);"
            "  return green(style.backgroundColor) || green(style.color); })).map((e) => e.outerHTML)")
        self.assertEqual(green, [])
        self.assertEqual(self.browser.said(), [])

    # By day and by night, members at work: the colours follow the system's, and text stays readable on them.
    def test_schemes(self):
        items = ["queue-%02d" % number for number in range(18)]
        served = self.serve()
        members = []
        for name in ("worker-1", "worker-2", "worker-3"):
            members.append(DivvyMember(self.path, name, items))
            self.addCleanup(members[-1].stop)
        wait_for(lambda: served.pool()["owned"] == 18 and served.pool()["most"] == 6, "the members")
        self.open(served, "#timeline")
        members[1].process.kill()
        wait_for(lambda: served.pool()["least"] == 9 and served.pool()["owned"] == 18, "the two that are left")
        self.browser.wait_for("document.querySelectorAll('#lanes .gap').length > 0", "a gap in the timeline")
        colours = []
        for scheme in ("light", "dark"):
            self.browser.prefer(scheme)
            colours.append(self.browser.run("const style = getComputedStyle(document.body);"
                                            "return [style.color, style.backgroundColor]"))
            levels = [sum(map(int, colour[4:-1].split(", "))) for colour in colours[-1]]
            self.assertGreater(abs(levels[0] - levels[1]), 400, colours)
            self.assertTrue(self.browser.screenshot().startswith(b"\x89PNG"))
        self.assertNotEqual(colours[0], colours[1])
        self.assertEqual(self.browser.said(), [])


if __name__ == "__main__":
    main(__file__)
