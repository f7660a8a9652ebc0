#!/usr/bin/python3
"""The tables and the plot of what test/holders/run has found.  SPDX-License-Identifier: Apache-2.0

usage: test/holders/report.py [--doc FILE] [--plot FILE] JSON

Prints the tables of the JSON lines that `test/holders/run --json JSON` has written, of all rounds that are in it. --doc
puts them into a document, each in the place of the table that has the same first column's title. --plot draws, for each
peer and fault, a stripe for each round that shows who holds over time, as SVG by gnuplot.
"""
import argparse
import json
import os
import sys

sys.dont_write_bytecode = True  # the checkout stays as it is
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench"))
import plot  # noqa: E402
from expected import EXPECTED, FORCED, PEERS  # noqa: E402

OF_HOLDER, OF_SERVERS = ("cut", "stopped", "ahead", "behind"), ("frozen", "killed", "leader", "slow")
MEASURES = (("both_s", "both hold, s"), ("nobody_s", "nobody holds, s"))
COLOURS = (("#d9d9d9", "nobody holds"), (plot.DONE, "one holds"), (plot.UNDONE, "both hold"))
FAULT_S, WINDOW_S, COLUMN_S = 8, 14, 15.5
STRIPE, WIDTH, TOP, BOTTOM, ROW, LEFT = 0.8, 960, 30, 50, 24, 250  # a row's part that is drawn on; the rest in pixels


def of(results, fault, peer):
    return [result for result in results if (result["fault"], result["peer"]) == (fault, peer)]


def cell(results, measure):
    """Returns the least and most of the rounds, with what was expected; in bold where that did not come."""
    if not results:
        return ""
    values = [result[measure] for result in results]
    (least, most), (low, high) = ("%.2f" % min(values), "%.2f" % max(values)), results[0]["expected_" + measure]
    found = least if least == most else "%s to %s" % (least, most)
    expected = "%g" % low if low == high else "%g to %g" % (low, high)
    return ("%s (%s)" if low <= min(values) and max(values) <= high else "**%s** (%s)") % (found, expected)


def table(title, columns, rows):
    """Returns the lines of a table without the rows that have nothing in it."""
    rows = [row for row in rows if any(row[1:])]
    lines = ["| %s |" % " | ".join([title, *columns]), "| %s |" % " | ".join(["---"] * (len(columns) + 1))]
    return lines + ["| %s |" % " | ".join(row) for row in rows] if rows else []


def forced_table(results):
    """Returns the table of the faults in which an assumption is broken: a line for each round."""
    rows = [["%s, %d" % (fault, number + 1), cell([result], "both_s"), cell([result], "nobody_s"),
             *("%d and %d" % tuple(result[what]) for what in ("taken", "refused"))]
            for fault in FORCED for number, result in enumerate(of(results, fault, "divvy"))]
    return table("assumption broken, round", [title for _, title in MEASURES] +
                 ["the store took, of the first and second holder", "it refused"], rows)


def tables(results):
    """Returns the lines of all tables, with an empty line after each."""
    lines = []
    for measure, title in MEASURES:
        for whose, faults in (("of the holder", OF_HOLDER), ("of the servers", OF_SERVERS)):
            faults = [fault for fault in faults if any(result["fault"] == fault for result in results)]
            rows = [[PEERS[peer][0], *(cell(of(results, fault, peer), measure) for fault in faults)] for peer in PEERS]
            found = table("%s; faults %s" % (title, whose), faults, rows)
            lines += [*found, ""] if found else []
    return lines + forced_table(results)


def replace_tables(document, lines):
    """Returns the document's lines with each of the tables in place of the one that begins alike."""
    kept, fresh, begins = [], {}, None
    for line in lines:
        begins = (begins or line.split("|")[1]) if line else None
        if begins:
            fresh.setdefault(begins, []).append(line)
    skips = False
    for line in document:
        skips = skips and line.startswith("|")
        begins = line.split("|")[1] if line.startswith("| ") else None
        if not skips and begins in fresh:
            kept += fresh.pop(begins)
            skips = True
        if not skips:
            kept.append(line)
    if fresh:
        sys.exit("holders: the document has no table %s" % list(fresh))
    return kept


def stripes(results, faults, peers):
    """Yields (how many hold, x, y, x's begin, end, y's begin, end) for each part of each round."""
    for column, fault in enumerate(faults):
        for row, peer in enumerate(peers):
            rounds = of(results, fault, peer)
            for number, result in enumerate(rounds):
                low = -row - STRIPE / 2 + STRIPE * number / len(rounds)
                for begin, end, count in result["parts"]:
                    yield (count, begin, low, COLUMN_S * column + begin, COLUMN_S * column + end, low,
                           low + STRIPE / len(rounds))


def plot_commands(results):
    faults = [fault for fault in (*OF_HOLDER, *OF_SERVERS) if any(result["fault"] == fault for result in results)]
    peers = [peer for peer in PEERS if any(result["peer"] == peer for result in results)]
    yield "set multiplot"  # write_svg() ends it.
    height = TOP + BOTTOM + ROW * len(peers)
    yield "set lmargin at screen %g\nset rmargin at screen 0.99" % (LEFT / WIDTH)
    yield "set tmargin at screen %g\nset bmargin at screen %g" % (1 - TOP / height, BOTTOM / height)
    yield "unset border\nset style fill solid 1 noborder\nset tics scale 0\nset key at screen 0.99,0.05 horizontal"
    yield "set xrange [-0.5:%g]\nset yrange [%g:0.6]" % (COLUMN_S * len(faults), 0.4 - len(peers))
    yield "set ytics (%s) noenhanced" % ", ".join("'%s' %d" % (PEERS[peer][0], -row) for row, peer in enumerate(peers))
    yield "set xtics (%s) offset 0,0.4" % ", ".join(
        "'%g' %g" % (at, COLUMN_S * column + at) for column in range(len(faults)) for at in (0, FAULT_S))
    yield "set label 'seconds from the fault on, of %d' at screen 0.01,0.06 left" % WINDOW_S
    for column, fault in enumerate(faults):
        x = COLUMN_S * column
        yield "set label '%s' at %g, graph 1.03 center" % (fault, x + WINDOW_S / 2)
        if fault not in ("killed", "leader"):  # These last.
            yield "set arrow from %g, graph 0 to %g, graph 1 nohead linecolor rgb '#404040' dashtype 3 front" % (
                x + FAULT_S, x + FAULT_S)
    drawn = list(stripes(results, faults, peers))
    for count in range(len(COLOURS)):
        yield "$H%d << END" % count
        yield from (" ".join("%.10g" % value for value in part[1:]) for part in drawn if part[0] == count)
        yield "0 9 0 0 9 9\nEND"  # out of sight, so that each colour is in the key
    yield "plot " + ", ".join("$H%d using 1:2:3:4:5:6 with boxxyerror fillcolor rgb '%s' title '%s'" % (
        count, colour, title) for count, (colour, title) in enumerate(COLOURS))


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1][len("usage: "):])
    parser.add_argument("--doc")
    parser.add_argument("--plot")
    parser.add_argument("json")
    options = parser.parse_args()
    with open(options.json, encoding="utf-8") as file:
        results = [json.loads(line) for line in file]
    if not results or {result["fault"] for result in results} - set(EXPECTED):
        sys.exit("holders: %s has no results, or those of unknown faults" % options.json)
    lines = tables(results)
    print("\n".join(lines))
    if options.doc:
        with open(options.doc, encoding="utf-8") as file:
            document = replace_tables(file.read().splitlines(), lines)
        with open(options.doc, "w", encoding="utf-8") as file:
            file.writelines(line + "\n" for line in document)
    if options.plot:
        peers = len({result["peer"] for result in results})
        plot.write_svg(options.plot, (WIDTH, TOP + BOTTOM + ROW * peers), plot_commands(results))


if __name__ == "__main__":
    main()
