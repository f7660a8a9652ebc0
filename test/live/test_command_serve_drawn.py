#!/usr/bin/python3
"""What the page of divvy serve draws, and how it is on a phone and by night, in a headless Chromium.

SPDX-License-Identifier: Apache-2.0

usage: test_command_serve_drawn.py BUILD_FOLDER [TEST...]     a TEST is a name such as Drawn.test_heat
"""
from command_harness import main, wait_for
from page_harness import PHONE, WIDE, PageCase, bad_hour
from serve_stub import PATH, Hour, finding

LONG = "payments-eu-central-1-ip-10-32-117-204.compute.internal.example.org"

# Each text on the page that is seen, with the colours of text and ground, as [contrast, text].
CONTRASTS = """
const parse = (colour) => { const [r, g, b, a] = colour.match(/[0-9.]+/g).map(Number); return [r, g, b, a ?? 1]; };
const over = (top, under) => [0, 1, 2].map((i) => top[i] * top[3] + under[i] * (1 - top[3])).concat(1);
const linear = (v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
const light = (c) => [0, 1, 2].map((i) => linear(c[i] / 255))
  .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
const ground = (e) => !e ? [255, 255, 255, 1] : (() => {
  const own = parse(getComputedStyle(e).backgroundColor);
  return own[3] === 1 ? own : over(own, ground(e.parentElement));
})();
const behind = (text) => { // the shape that a text of a drawing stands on
  const box = text.getBoundingClientRect(), [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
  const on = [...text.ownerSVGElement.querySelectorAll('rect')].filter((r) => !r.closest('defs')).findLast((r) => {
    const at = r.getBoundingClientRect();
    return at.left <= x && x <= at.right && at.top <= y && y <= at.bottom;
  });
  const fill = on && getComputedStyle(on).fill;
  if (fill?.startsWith('url')) return parse(getComputedStyle(text).stroke);
  return fill && fill !== 'none' ? parse(fill) : ground(text.ownerSVGElement.parentElement);
};
const all = [...document.querySelectorAll('body *')].filter((e) => e.checkVisibility() &&
  [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()) &&
  !e.closest('.hidden, noscript, title, .skip'));
return all.filter((e) => !(e instanceof SVGElement) || e.tagName === 'text').map((e) => {
  const drawn = e instanceof SVGElement, style = getComputedStyle(e), under = drawn ? behind(e) : ground(e);
  const [a, b] = [over(parse(drawn ? style.fill : style.color), under), under].map(light).sort((p, q) => q - p);
  return [(a + 0.05) / (b + 0.05), e.textContent.trim().slice(0, 60), e.className.baseVal ?? e.className];
});
"""


class Drawn(PageCase):
    def cells(self):
        return self.run_js("return [...document.querySelectorAll('#heat-map .cell')].map((cell) =>"
                           "  [cell.dataset.member, cell.querySelector('rect').getAttribute('class'),"
                           "   cell.textContent])")

    def beyond(self):
        """By how much the cells go beyond the heat map."""
        return self.run_js("const end = (e) => e.getBoundingClientRect().right;"
                           "const ends = [...document.querySelectorAll('#heat-map rect')].map(end);"
                           "return Math.max(...ends) - end(document.querySelector('#heat-map'))")

    # The heat map has a cell for each member, shaded by its items beside the fair share, with its number, its name and
    # its state as a sign; a click shows the items of that member.
    def test_heat(self):
        hour = Hour(members=4, items=16)
        for item in ("queue-01", "queue-05", "queue-09"):
            hour.owners[item] = "worker-1"
        hour.words = {"worker-2": "stale"}
        hour.owners["queue-16"] = "worker-10"  # another one, whose name begins likewise
        self.open(hour)
        self.run_js("document.querySelector('#heat').scrollIntoView()")
        self.browser.wait_for("document.querySelectorAll('#heat-map .cell').length === 4", "the cells")
        cells = self.cells()
        self.assertEqual([cell[:2] for cell in cells],
                         [["worker-1", "s5"], ["worker-2", "s1"], ["worker-3", "s3"], ["worker-4", "s3"]])
        self.assertRegex(cells[0][2], r"worker-1: 7 items, 4 would be fair")
        self.assertRegex(cells[1][2], r"worker-2: 1 item, .*stale.*! stale")
        self.assertLess(self.beyond(), 0)
        self.assertTrue(self.run_js("return document.querySelector('#heat-load-label').hidden"))
        self.assertIn("! stale: 1", self.browser.text("#heat-legend"))
        self.run_js("document.querySelector('#heat-map .cell').dispatchEvent(new MouseEvent('click', {bubbles: true}))")
        wait_for(lambda: len(self.texts("#table tbody tr")) == 7, "the items of the member")
        self.assertIn("worker-1", self.browser.text("#owner"))
        self.assertIn("&owner=worker-1", self.run_js("return location.hash"))
        self.click("#owner")
        wait_for(lambda: len(self.texts("#table tbody tr")) == 17, "all items")

    # Where the plan has loads, a switch shades by each member's as a part of its fair share.
    def test_loads(self):
        hour = Hour(members=2, items=4)
        hour.loads = {"worker-1": 1.8, "worker-2": 0.2}
        self.open(hour)
        self.run_js("document.querySelector('#heat').scrollIntoView()")
        self.browser.wait_for("document.querySelectorAll('#heat-map .cell').length === 2", "the cells")
        self.assertEqual([cell[1] for cell in self.cells()], ["s3", "s3"])
        self.click("#heat-load")
        wait_for(lambda: [cell[1] for cell in self.cells()] == ["s5", "s1"], "the shades of loads")
        self.assertRegex(self.cells()[0][2], r"load 1\.80 of its fair share.*1\.80")

    # An item says by which rule it is where it is, a member's row its share of the load, and a change what was asked.
    def test_rules(self):
        hour = Hour(members=2, items=4)
        self.open(hour)
        self.assertNotIn("told", self.run_js("return document.querySelector('#changes-list').innerHTML"))
        hour.loads = {"worker-1": 1.31, "worker-2": 0.69}
        hour.rules = {"queue-00": {"rule": "pinned", "why": "pinned to worker-1 by anna"}}
        hour.change(hour.now - 5000, "operator", told="anna pinned queue-00 to worker-1: <b>disk</b>")
        self.open(hour)
        self.browser.wait_for("document.querySelectorAll('#table tbody tr').length === 4", "the items")
        marks = "return [...document.querySelectorAll('.rule')].map((mark) => [mark.textContent, mark.title])"
        self.assertEqual(self.run_js(marks), [[" pinned", "pinned to worker-1 by anna"]])
        self.browser.wait_for("document.querySelector('.change .told')", "the change")
        self.assertEqual(self.browser.text(".change .told"), "anna pinned queue-00 to worker-1: <b>disk</b>")
        self.click("#tab-members")
        self.browser.wait_for("document.querySelectorAll('#table th').length === 13", "the columns")
        self.assertIn("1.31", self.texts("#table tbody tr")[0])

    # A thousand members fit on one screen and into its width, on a phone too, and are drawn in half a second of
    # processor time; so do twelve.
    def test_many_members(self):
        for size, count in ((WIDE, 1000), (PHONE, 1000), (WIDE, 12), (PHONE, 12)):
            self.open(Hour(members=count, items=3000), size=size)
            self.run_js("document.querySelector('#heat').scrollIntoView()")
            self.browser.wait_for("document.querySelectorAll('#heat-map .cell').length === %d" % count, "the cells")
            high = self.run_js("return document.querySelector('#heat-map').getBoundingClientRect().height")
            self.assertLess(high, 700, size)
            self.assertLess(self.beyond(), 0, size)
            began = self.browser.used_ms()
            self.run_js("return import('/heat.js').then((heat) => heat.redrawHeat())")
            self.assertLess(self.browser.used_ms() - began, 500)

    def looks(self):
        """Of each lane how its bars are filled, and by whom, in the order of time."""
        return self.run_js(
            "const lanes = new Map();"
            "for (const bar of document.querySelectorAll('#lanes .bar')) {"
            "  const y = bar.getAttribute('y'), look = bar.getAttribute('fill') ?? bar.getAttribute('class');"
            "  lanes.set(y, [...lanes.get(y) ?? [], [bar.dataset.owner, look]]); }"
            "return [...lanes.values()]")

    # In no lane two owners look the same, however many there are, and all lanes agree on how an owner looks. Names
    # stand in the bars that they fit into, shortened in the middle where they must be.
    def test_lanes(self):
        hour = Hour(members=24, items=12)
        for turn in range(20):
            for item in range(3):
                before, after = (hour.members[(turn + step + 7 * item) % 24] for step in (0, 1))
                hour.event(hour.now - 200000 + turn * 9000, "queue-%02d" % item, before, after)
        hour.event(hour.now - 250000, "queue-03", LONG, "worker-1")
        hour.event(hour.now - 10000, "queue-03", "worker-1", None)
        self.open(hour)
        self.browser.wait_for("document.querySelectorAll('#lanes .bar').length > 60", "the bars")
        owners = {}
        for lane in self.looks():
            of_lane = dict(lane)
            self.assertEqual(len(set(of_lane.values())), len(of_lane), lane)
            for owner, look in lane:
                self.assertEqual(owners.setdefault(owner, look), look, owner)
        self.assertEqual(len(owners), 25)
        self.assertTrue(any(look.startswith("url(#") for look in owners.values()))
        texts = self.run_js("return [...document.querySelectorAll('#lanes .bar-text, #lanes .gap-text')]"
                            ".map((e) => e.textContent)")
        self.assertTrue(any(text.startswith("pay") and "…" in text and text.endswith("g") for text in texts), texts)
        self.assertIn("worker-1", texts)
        before = {owner: look for lane in self.looks() for owner, look in lane}
        self.click("#range-1m")
        self.click("#range-5m")
        wait_for(lambda: {owner: look for lane in self.looks() for owner, look in lane} == before, "the same looks")

    # Of more owners than there are looks those in one lane still differ; where a lane has too many, neighbours do.
    def test_colours(self):
        self.open(Hour())
        lanes = [["m%d" % ((7 * lane + 5 * step * step) % 90) for step in range(12)] for lane in range(60)]
        many = ["n%d" % (5 * step % 90) for step in range(90)] + ["n%d" % (step % 90) for step in range(90)]
        colour = "return import('/colours.js').then((m) => [...m.colour(arguments[0])])"
        looks, of_many = dict(self.run_js(colour, lanes)), dict(self.run_js(colour, [many]))
        self.assertEqual(sorted(set(looks.values())), list(range(32)))
        for lane in lanes:
            self.assertEqual(len({looks[owner] for owner in lane}), len(set(lane)), lane)
        for one, other in zip(many, many[1:]):
            self.assertNotEqual(of_many[one], of_many[other], (one, other))

    # A remedy has its commands to copy, whole, whatever is in their names, and nothing in a name is taken for one. What
    # the page itself makes a word of is quoted likewise, and the last one is no option.
    def test_commands(self):
        self.open(Hour())
        parts = ("return import('/text.js').then((m) => m.remedyParts(arguments[0])"
                 ".flatMap((part) => part.command ?? []))")
        for remedy, commands in (
                ("divvy explain --path /q x", ["divvy explain --path /q x"]),
                ("divvy explain --path /q 'a b; x, y: divvy z'", ["divvy explain --path /q 'a b; x, y: divvy z'"]),
                ("start 'x: divvy forget y'; or: divvy unpin --path /q -- '-it'\\''s ; x'",
                 ["divvy unpin --path /q -- '-it'\\''s ; x'"]),
                ("divvy explain --path /q $'a\\012b; x'", ["divvy explain --path /q $'a\\012b; x'"]),
                ("look at it on h; ending it frees it: kill 4", ["kill 4"]),
                ("ss -tnp dst 10.0.0.1 shows those from here", ["ss -tnp dst 10.0.0.1"])):
            with self.subTest(remedy):
                self.assertEqual(self.run_js(parts, remedy), commands)
        operands = "return import('/text.js').then((m) => arguments[0].map(m.operand))"
        self.assertEqual(self.run_js(operands, ["a-b", "-x", "it's", "a\n!", "=x", ""]),
                         ["a-b", "-- '-x'", "'it'\\''s'", "$'a\\012\\041'", "'=x'", "''"])

    # The dialog of an item says what divvy explain says, and its command to copy, quoted as a shell needs it.
    def test_item(self):
        hour = bad_hour()
        name = "it's odd"
        hour.owners = {name: "worker-1"}
        hour.explained[name] = {
            "path": PATH, "item": name, "state": "releasing", "owner": "worker-1",
            "queue": [{"member": who, "in_party": True, "session": "0x1", "token": token, "age_ms": 94000}
                      for who, token in (("worker-1", "77"), ("worker-2", "78"))],
            "plan": {"generation": 3, "reason": "join", "in_force": True, "age_ms": 94000, "owner": "worker-2"},
            "now": "worker-1 has not released it.", "next": "worker-2 takes it then."}
        stub = self.open(hour)
        self.browser.wait_for("document.querySelector('#table tbody button')", "the item")
        self.click("#table tbody button")
        wait_for(lambda: self.texts("#item .sentence"), "what is explained")
        self.assertEqual([" ".join(text.split()) for text in self.texts("#item .sentence")],
                         ["Now worker-1 has not released it.", "Next worker-2 takes it then."])
        text = self.browser.text("#item")
        for part in (name, "releasing", "77", "gives it to worker-2", "worker-2, for 1 min"):
            self.assertIn(part, text)
        self.assertEqual(self.texts("#item code"), ["divvy explain --path %s 'it'\\''s odd'" % PATH])
        self.click("#close")
        stub.hour.explained = {}
        self.click("#table tbody button")
        wait_for(lambda: "not known: there is no such item" in self.browser.text("#item"), "why it is not explained")
        wait_for(lambda: "worker-1" in self.browser.text("#item-facts"), "what the table knows")

    # On a phone nothing is wider than the screen, tables are cards, and long names are shortened in the middle, with a
    # way to the whole.
    def test_phone(self):
        hour = bad_hour()
        hour.members[2] = LONG
        hour.owners.update({"queue-02": LONG, LONG + "/item": "worker-1"})
        hour.words[LONG] = "stale"
        hour.findings.append(finding("warning", "a long remedy", "zkCli.sh delete /a/%s/b" % LONG))
        hour.findings = hour.findings[-1:] + hour.findings[:-1]
        self.open(hour, size=PHONE)
        for tab in ("items", "members", "timeline"):
            self.click("#tab-" + tab)
            self.browser.wait_for("document.querySelectorAll('#table tbody tr').length > 0", tab)
            wait_for(lambda: self.run_js("return document.documentElement.scrollWidth") <= PHONE[0], "no more width")
            beyond = self.run_js(
                "return [...document.querySelectorAll('main *')].filter((e) => e.checkVisibility() &&"
                "  !e.closest('.hidden') && e.getBoundingClientRect().right > innerWidth + 1)"
                "  .map((e) => e.outerHTML.slice(0, 200))")
            self.assertEqual(beyond, [], tab)
        self.click("#tab-items")
        self.browser.wait_for("document.querySelector('#table .name') !== null", "the shortened name")
        self.assertRegex(self.browser.text("#table .name"), r"^pay.*….*org$")
        self.assertEqual(self.run_js("return document.querySelector('#table .name').title"), LONG)
        self.click("#table .name")
        wait_for(lambda: self.browser.text("#table .name") == LONG, "the whole name")
        rows = self.run_js("return [...document.querySelectorAll('#table tbody td')].slice(0, 3).map((td) => "
                           "getComputedStyle(td).display)")
        self.assertEqual(set(rows), {"block"})
        self.assertIn("zkCli.sh delete /a/%s/b" % LONG, self.browser.text("#findings code"))

    # By day and by night each text stands out from its ground, on the drawings too.
    def test_contrast(self):
        hour = bad_hour()
        hour.words = {"worker-2": "stale"}
        for number in range(12):  # so many owners that each colour has its bar, and some a pattern
            hour.event(hour.now - 100000, "queue-%02d" % number, "first-%d" % number, "then-%d" % number)
        for scheme in ("light", "dark"):
            self.browser.prefer(scheme)
            for hash in ("#items", "#members", "#timeline&at=%d&to=%d" % (hour.now - 30000, hour.now - 20000)):
                self.open(hour, hash)
                self.browser.wait_for("document.querySelectorAll('#lanes .bar-text').length > 20", "the lanes")
                self.run_js("document.querySelector('#heat').scrollIntoView()")
                self.browser.wait_for("document.querySelectorAll('#heat-map .cell').length === 3", "the heat map")
                seen = self.run_js(CONTRASTS)
                self.assertGreater(len(seen), 80)
                self.assertEqual([one for one in seen if one[0] < 4.5], [], (scheme, hash))

    # Who wants no motion sees none.
    def test_motion(self):
        self.open(bad_hour())
        self.browser.tell("Emulation.setEmulatedMedia",
                          features=[{"name": "prefers-reduced-motion", "value": "reduce"}])
        moving = self.run_js("const row = document.querySelector('#table tbody tr'); row.className = 'changed';"
                             "return document.getAnimations().length + getComputedStyle(row).animationName")
        self.assertEqual(moving, "0none")


if __name__ == "__main__":
    main(__file__)
