#!/usr/bin/python3
"""Print a table, and draw, what bench_scale has measured.  SPDX-License-Identifier: Apache-2.0

usage: scale.py [--plot FILE] RUNS...      RUNS: files of bench_scale's JSON lines

docs/scale.md says what the columns mean.
"""
import json
import sys

from plot import Panel, write_panels

CHANGES = (("join", "join"), ("crash", "crash"), ("rolling", "rolling restart"))


def load(names):
    runs = []
    for name in names:
        with open(name, encoding="utf-8") as lines:
            runs += [json.loads(line) for line in lines]
    return sorted(runs, key=lambda run: (run["assign"], run["items"], run["members"]))


def print_table(runs):
    print("| change | rule | members | items | moved | settled after, s | requests | lists | kB, mean | kB, most | "
          "joiner: requests | kB |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for change, title in CHANGES:
        for run in (run for run in runs if run["change"] == change):
            of, self = run["others"], run.get("self")
            joiner = (f"{self['requests']:,.0f}", f"{self['bytes'] / 1000:,.0f}") if self else ("", "")
            print("| %s | %s | %s | %s | %s | %.2f | %.0f | %.1f | %.1f | %.1f | %s | %s |" % (
                title, run["assign"], f"{run['members']:,}", f"{run['items']:,}", f"{run['moved']:,}",
                run["took_ms"] / 1000, of["requests"], of["lists"], of["bytes"] / 1000, of["bytes_max"] / 1000,
                *joiner))


def draw(name, runs):
    panels = []
    for change, title in CHANGES:
        lines = []
        for rule in ("plan", "rendezvous"):
            for items in sorted({run["items"] for run in runs}):
                points = [(run["members"], run["others"]["bytes"]) for run in runs
                          if (run["change"], run["assign"], run["items"]) == (change, rule, items)]
                if len(points) > 1:
                    lines.append(("%s, %s items" % (rule, f"{items:,}"), points))
        panels.append(Panel("%s: bytes of a member, over members" % title, lines))
    write_panels(name, panels)


def main():
    arguments, plot = sys.argv[1:], None
    if arguments[:1] == ["--plot"]:
        plot, arguments = arguments[1], arguments[2:]
    if not arguments or arguments[0].startswith("-"):
        sys.exit(__doc__)
    runs = load(arguments)
    print_table(runs)
    if plot:
        draw(plot, runs)


if __name__ == "__main__":
    main()
