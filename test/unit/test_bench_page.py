#!/usr/bin/python3
"""The page of bench/all is written of stored runs. SPDX-License-Identifier: Apache-2.0

No benchmark runs here: the records are as Kit.run() of bench/all keeps them.
"""
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "bench"))

import page  # noqa: E402
import parts  # noqa: E402

PARTS = {part.name: part for part in parts.PARTS}


class Kit:
    """Draws nothing, and keeps what it was asked to draw."""

    def __init__(self):
        self.drawn = {}

    def plot(self, name, _, *what):
        self.drawn[name] = what

    def has_plot(self, name):
        return name in self.drawn


def record(lines=(), out="", command="bench/some", status=0, setup=""):
    return {"command": command, "setup": setup, "status": status, "out": out, "lines": list(lines)}


def run_of(*records):
    return {"commit": "abc1234", "date": "2026-11-26 10:50 UTC", "took_s": 95.2, "load": 0.1, "records": list(records)}


class Spread(unittest.TestCase):
    # The median comes with the least and the most, and alone where there is one value.
    def test_spread(self):
        self.assertEqual(page.spread([3, 1, 2], "{:.1f}"), "2.0 (1.0 to 3.0)")
        self.assertEqual(page.spread([1234.5]), "1,234")
        self.assertEqual(page.spread([None]), "-")


class Sections(unittest.TestCase):
    # A part that is run again replaces its own section; the others stay, in the order of the parts.
    def test_replaced(self):
        first = {name: page.section(PARTS[name], run_of(record()), ["old " + name]) for name in ("locks", "owns")}
        old = page.assemble("", [["memory", "24 GiB"]], list(PARTS), first, "a while")
        new = {"locks": page.section(PARTS["locks"], run_of(record()), ["new locks"]),
               "metrics": page.section(PARTS["metrics"], run_of(record()), ["new metrics"])}
        text = page.assemble(old, [["memory", "24 GiB"]], list(PARTS), new, "a while")
        places = [text.find(words) for words in ("24 GiB", "new locks", "old owns", "new metrics")]
        self.assertEqual(places, sorted(places))
        self.assertNotIn(-1, places)
        self.assertNotIn("old locks", text)
        self.assertEqual(text.count("## Locks and semaphores"), 1)

    # A section has its command once, the commit, and which program failed.
    def test_says_where_from(self):
        text = page.section(PARTS["locks"], run_of(record(), record(status=1)), [])
        self.assertEqual(text.count("    bench/some\n"), 1)
        self.assertIn("Commit abc1234, 2026-11-26 10:50 UTC, 95 s", text)
        self.assertIn("**`bench/some` ended with 1.**", text)


class Documents(unittest.TestCase):
    # README.md gets the two figures of the rolling restart, and a text without that line is an error.
    def test_readme(self):
        lines = [{"peer": "standby", "change": "rolling restart", "unowned_s": 7.6},
                 {"peer": "kazoo", "change": "rolling restart", "unowned_s": 12345.2}]
        text = page.update_readme("items lack a worker for 9 item-seconds, with kazoo for 26,857:\n", lines)
        self.assertEqual(text, "items lack a worker for 8 item-seconds, with kazoo for 12,345:\n")
        with self.assertRaises(ValueError):
            page.update_readme("nothing\n", lines)

    # The README of this checkout has that line.
    def test_our_readme(self):
        self.assertRegex((ROOT / "README.md").read_text(encoding="utf-8"), page.README_LINE)

    # Rows replace those of the same name, and come in order; a table with another head is not touched.
    def test_merged_rows(self):
        head = ["| change | rule | members | items | kB |", "| --- | --- | ---: | ---: | ---: |"]
        text = "\n".join(["before", *head, "| join | plan | 10 | 10 | 1 |", "| crash | plan | 10 | 10 | 2 |", "after"])
        rows = [*head, "| join | plan | 10 | 10 | 3 |", "| join | plan | 1,000 | 10 | 4 |"]
        order = lambda name: (("join", "crash").index(name[0]), int(name[2].replace(",", "")))  # noqa: E731
        merged = page.merge_rows(text, rows, order).split("\n")
        self.assertEqual(merged, ["before", *head, rows[2], rows[3], "| crash | plan | 10 | 10 | 2 |", "after"])
        with self.assertRaises(ValueError):
            page.merge_rows(text, ["| other |", "| --- |"], order)


class Shown(unittest.TestCase):
    # Lines of several rounds become medians, a picture and a quotation.
    def test_locks(self):
        lines = [{"round": at, "recipe": recipe, "what": "pairs_per_s", "floor": 1000 + at, "divvy": 1100 + at}
                 for at in range(3) for recipe in ("lock", "semaphore")]
        kit = Kit()
        shown = PARTS["locks"].show([record(lines, "a table\n")], kit)
        self.assertIn("| lock: pairs a second | 1,001 (1,000 to 1,002) | 1,101 (1,100 to 1,102) |", shown)
        self.assertIn("a table", shown)
        self.assertEqual(kit.drawn["bench-locks.svg"][0][0][2][1], ("divvy", 1101, 1100, 1102))

    def test_membership(self):
        lines = [{"peer": "divvy", "assign": "sticky", "mode": "incremental", "items": 1000,
                  "join_beyond_boundary_s": 0.1, "first_beyond_boundary_s": 0.2}, {"peer": "raw C client"}]
        shown = PARTS["membership"].show([record(lines)], Kit())
        self.assertIn("| a join, s, 1,000 items | 0.100 |", shown)

    # A kind of server shows its own runs only.
    def test_setups(self):
        records = [record([{"peer": "divvy", "items": 10, "join_beyond_boundary_s": 0.5}], setup="--fsync")]
        shown = PARTS["setups"].show(records, Kit())
        self.assertIn("| divvy: join, 10 items, s | - | 0.500 | - | - |", shown)

    def test_owns(self):
        out = "   1 thread  8 threads  ratio  ns of each call, 16 items\nowns      41.3       42.4   1.03\n"
        self.assertIn("| owns, 16 items | 41.3 | 42.4 | 1.03 |", PARTS["owns"].show([record(out=out)], Kit()))

    # A pool that ended before its changes were over is shown with what it has.
    def test_pool(self):
        change = {"peer": "kazoo", "change": "start", "members": 10, "items": 500, "took_s": 1, "moved": 0,
                  "interrupted": 0, "unowned_s": 1, "longest_s": 1, "member_cpu_s": 1, "server_cpu_s": 1,
                  "packets_received": 1, "packets_sent": 1, "server_sent": 1, "server_received": 1,
                  "between_servers": 1, "member_pss_kib": 1024, "server_rss_kib": 1024, "failure": "not borne"}
        shown = PARTS["pool"].show([record([change, {"peer": "kazoo", "members": 10, "items": 500, "samples": []}])],
                                   Kit())
        self.assertIn("| kazoo, 10 members, 500 items | all start (not borne) |", shown)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
