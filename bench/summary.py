#!/usr/bin/python3
"""Print a table of the JSON lines of bench/run.sh.  SPDX-License-Identifier: Apache-2.0

usage: summary.py FILE

Numbers of repeated runs are medians. README.md beside this file says what each row means.
Exit status: 0; 1 when divvy, sticky or by rendezvous, disturbed an item that did not move, or when lines are missing.
"""
import json
import os
import statistics
import sys

COLUMNS = ("kazoo threads", "kazoo processes", "divvy eager", "divvy rendezvous", "divvy sticky")
OURS = COLUMNS[-1]
# Than kazoo's threads, and its processes.
JOIN_TIMES_FASTER, FIRST_TIMES_FASTER, MOVED_TO_FLOOR = (100, 60), (40, 25), 1
JOIN_TIMES_RAW, JOIN_PACKETS = 3, 200
TIMES_SET_AT = 10000  # With few items the time is round trips and spacing, and both have as many of them.
# A few writes belong to the members themselves: sessions' nodes and paths, not items.
WRITES_PER_ITEM, READS_PER_ITEM, MEMBERS_SHARE = 4, 0.1, 0.02  # Q11: its directory is checked, and made again


def load(name):
    with open(name, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def column_of(run):
    how = run.get("mode", run.get("members_as", ""))
    return run["peer"] + " " + (run["assign"] if how == "incremental" else how)


def middle(runs, *path):
    """The median over runs of the number at `path`; None where this peer does not report it."""
    values = []
    for run in runs:
        for key in path:
            run = run.get(key) if run is not None else None
        values.append(run)
    return None if not values or None in values else statistics.median(values)


def writes(runs, phase):
    """kazoo has no multis, so each of its writes is a transaction of its own."""
    counted = middle(runs, phase, "writes")
    return middle(runs, phase, "transactions") if counted is None else counted


def beyond_moves(runs):
    """Writes of old members that no item that moved accounts for: what the kept items cost."""
    written, moved = middle(runs, "join_old_members", "writes"), middle(runs, "moved")
    return None if written is None else written - moved - middle(runs, "moved_between_old")


def rows(floor):
    """Name of a row, its number of digits, and how to get it from the runs of one column."""
    return [
        ("first allocation beyond the boundary, s", 3, lambda r: middle(r, "first_beyond_boundary_s")),
        ("join beyond the boundary, s", 3, lambda r: middle(r, "join_beyond_boundary_s")),
        ("join: items moved", 0, lambda r: middle(r, "moved")),
        ("join: moved / floor of %s" % f"{floor:,}", 2, lambda r: middle(r, "moved") / floor),
        ("join: fewest items owned", 0, lambda r: middle(r, "fewest_owned_during_join")),
        ("join: kept items that were revoked", 0, lambda r: middle(r, "kept_revoked")),
        ("join: kept items once missing", 0, lambda r: middle(r, "kept_missing")),
        ("join: kept items with another token", 0, lambda r: middle(r, "kept_token_changed")),
        ("join: writes of old members for kept items", 0, beyond_moves),
        ("packets at the server, first allocation", 0, lambda r: middle(r, "first", "packets")),
        ("packets at the server, join", 0, lambda r: middle(r, "join", "packets")),
        ("transactions, first allocation", 0, lambda r: middle(r, "first", "transactions")),
        ("transactions, join", 0, lambda r: middle(r, "join", "transactions")),
        ("nodes written, first allocation", 0, lambda r: writes(r, "first")),
        ("nodes written, join", 0, lambda r: writes(r, "join")),
        ("known paths: beyond the boundary, s", 3, lambda r: middle(r, "known_beyond_boundary_s")),
        ("known paths: writes an item", 3, lambda r: middle(r, "known_writes_per_item")),
        ("known paths: reads an item", 3, lambda r: middle(r, "known_reads_per_item")),
    ]


# Only of these is it better to have less, so that a ratio means something.
RATIO_ROWS = ("beyond the boundary", "items moved", "packets", "transactions", "nodes written")


def print_line(name, cells):
    print(f"{name:<43}" + "".join(f"{cell:>11}" for cell in cells))


def print_table(items, columns):
    floor = middle(columns[OURS], "moved_floor")
    print_line("", [column.split()[0] for column in COLUMNS] + ["threads /", "procs /"])
    print_line("K = %s" % f"{items:,}", [column.split()[1] for column in COLUMNS] + ["sticky", "sticky"])
    for name, digits, value in rows(int(floor)):
        values = [value(columns[column]) for column in COLUMNS]
        cells = ["-" if v is None else f"{v:,.{digits}f}" for v in values]
        if values[-1] and any(words in name for words in RATIO_ROWS):
            cells += [f"{v / values[-1]:,.1f}x" for v in values[:2] if v is not None]
        print_line(name, cells)
    print()


def least_join(raw, floor):
    """Seconds that the raw C client needs for the deletes and creates alone."""
    return floor / middle(raw, "multi_creates_per_s") + floor / middle(raw, "multi_deletes_per_s")


def print_floor(raw, moves):
    creates, deletes = middle(raw, "multi_creates_per_s"), middle(raw, "multi_deletes_per_s")
    print("Raw C client: round trip %.0f us; pipelined %s creates/s; in multis %s creates/s, %s deletes/s:" % (
        middle(raw, "round_trip_us"), f"{middle(raw, 'pipelined_creates_per_s'):,.0f}", f"{creates:,.0f}",
        f"{deletes:,.0f}"))
    for items, floor in moves:
        print("    the least join of K = %s, %s deletes and creates, takes it %.3f s" % (
            f"{items:,}", f"{floor:,}", least_join(raw, floor)))
    print()


def targets(items, columns, raw):
    """Name, wanted, measured, met."""
    ours = columns[OURS]
    found = []
    times_wanted = (("join", JOIN_TIMES_FASTER, "join_beyond_boundary_s"),
                    ("first allocation", FIRST_TIMES_FASTER, "first_beyond_boundary_s"))
    for what, wanted, key in times_wanted if items >= TIMES_SET_AT else ():
        for peer, least in zip(COLUMNS, wanted):
            times = middle(columns[peer], key) / max(middle(ours, key), 0.001)
            found.append(("%s, times faster than %s" % (what, peer), ">= %d" % least, "%.1f" % times, times >= least))
    if items >= TIMES_SET_AT:
        times = middle(ours, "join_beyond_boundary_s") / least_join(raw, middle(ours, "moved_floor"))
        found.append(("join, times the raw C client's least", "<= %d" % JOIN_TIMES_RAW, "%.1f" % times,
                      times <= JOIN_TIMES_RAW))
        packets = middle(ours, "join", "packets")
        found.append(("join, packets at the server", "<= %d" % JOIN_PACKETS, "%d" % packets, packets <= JOIN_PACKETS))
    moved = middle(ours, "moved") / middle(ours, "moved_floor")
    found.append(("join, moved / floor", "<= %.1f" % MOVED_TO_FLOOR, "%.3f" % moved, moved <= MOVED_TO_FLOOR))
    for name, wanted, key in (("known paths, writes an item", WRITES_PER_ITEM, "known_writes_per_item"),
                              ("known paths, reads an item", READS_PER_ITEM, "known_reads_per_item")):
        each = middle(ours, key)
        found.append((name, "<= %g" % wanted, "%.3f" % each, each <= wanted + MEMBERS_SHARE))
    kept = beyond_moves(ours)
    of = middle(ours, "kept")
    found.append(("join, writes for kept items", "0 an item", "%d for %s items" % (kept, f"{of:,.0f}"),
                  kept <= MEMBERS_SHARE * of))
    return found


def disturbed(runs):
    """Any run counts here, not the median: a kept item must never be disturbed."""
    return sum(run["kept_revoked"] + run["kept_missing"] + run["kept_token_changed"] for run in runs)


def main():
    runs = load(sys.argv[1])
    raw = [run for run in runs if run["peer"] == "raw C client"]
    sizes = sorted({run["items"] for run in runs if "items" in run})
    tables = {}
    for items in sizes:
        tables[items] = {column: [r for r in runs if r.get("items") == items and column_of(r) == column]
                         for column in COLUMNS}
    if not raw or not sizes or not all(all(columns.values()) for columns in tables.values()):
        sys.exit("summary: some peer has left no line in " + sys.argv[1])
    kazoo = tables[sizes[0]][COLUMNS[0]]
    print("%d members, boundary %d ms, one ZooKeeper %s server, kazoo %s, %d cores; medians of %d runs\n" % (
        kazoo[0]["members"], kazoo[0]["boundary_ms"], kazoo[0]["server_version"], kazoo[0]["version"],
        len(os.sched_getaffinity(0)), len(kazoo)))
    for items in sizes:
        print_table(items, tables[items])
    print_floor(raw, [(items, tables[items][OURS][0]["moved_floor"]) for items in sizes])
    ours = [run for items in sizes for column in COLUMNS[-2:] for run in tables[items][column]]
    print("Targets, at K = %s" % f"{sizes[-1]:,}")
    for name, wanted, measured, met in targets(sizes[-1], tables[sizes[-1]], raw):
        print(f"    {name:<54}{wanted:>12}{measured:>22}   {'met' if met else 'MISSED'}")
    bad = disturbed(ours)
    print(f"    {'kept items disturbed, in any run':<54}{'0':>12}{bad:>22,}   {'MISSED' if bad else 'met'}")
    sys.exit(1 if bad else 0)


if len(sys.argv) != 2:
    sys.exit(__doc__)
main()
