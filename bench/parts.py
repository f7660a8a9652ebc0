"""The parts of bench/all: what each runs, and what its section shows.  SPDX-License-Identifier: Apache-2.0

run(kit) runs programs, whose records the kit keeps; show(records, kit) returns the lines of the section.
"""
import json
import pathlib
import subprocess
import tempfile
from collections import namedtuple

import pool
from page import bar, quoted, spread, table
from plot import write_bars

Part = namedtuple("Part", "name title about run show usual", defaults=(True,))

SETUPS = (("one server", ""), ("one server, fsync", "--fsync"), ("three servers", "--servers 3"),
          ("three servers, fsync", "--servers 3 --fsync"))
PYTHON = ("/usr/bin/python3",)
SCALE = ("build/bench/bench_scale", "--restarts", "3")
SCALE_SIZES = ("10 10000", "30 10000", "100 10000", "300 10000", "10 100000", "30 100000")
SCALE_NAMES = ("10 10000", "30 10000", "100 10000", "300 10000")
SCALE_LARGE = ("1000 3000", "1000 100000")


def lines_of(records):
    return [line for record in records for line in record["lines"]]


def outputs(records):
    return [line for record in records for line in quoted(record["out"])]


def picture(kit, name, words):
    return ["![%s](%s)" % (words, name), ""] if kit.has_plot(name) else []


# ---- a change of membership ----


def run_membership(kit):
    kit.run(["bench/run.sh", "--repeats", kit.choose("3", "1"), *kit.choose([], ["--quick"])], json=True, build=True)


def column_of(line):
    how = line.get("mode", line.get("members_as", ""))
    return line["peer"] + ", " + (line["assign"] if how == "incremental" else how)


def show_membership(records, kit):
    lines = [line for line in lines_of(records) if "items" in line]
    columns = list(dict.fromkeys(column_of(line) for line in lines))
    most = max(line["items"] for line in lines)
    rows, panels = [], []
    for key, words in (("join_beyond_boundary_s", "a join, s"), ("first_beyond_boundary_s", "first allocation, s")):
        for items in sorted({line["items"] for line in lines}):
            values = {c: [line[key] for line in lines if column_of(line) == c and line["items"] == items]
                      for c in columns}
            rows.append(["%s, %s items" % (words, f"{items:,}"), *(spread(values[c], "{:.3f}") for c in columns)])
            if items == most:
                panels.append((rows[-1][0], True, [bar(c, values[c]) for c in columns if values[c]]))
    kit.plot("bench-membership.svg", write_bars, panels)
    return [*table(["beyond the boundary", *columns], rows),
            *picture(kit, "bench-membership.svg", "times of a join and of a first allocation"), *outputs(records)]


def run_join(kit):
    kit.run(["bench/join_path.py", *kit.choose([], ["--items", "1000", "--repeats", "2"])], json=True, build=True,
            plot="join.svg")


def show_join(records, kit):
    return [*outputs(records), *picture(kit, "join.svg", "the requests of each member at a join")]


# ---- the same on other servers ----


def run_setups(kit):
    for _, options in SETUPS:
        with kit.server(options) as hosts:
            for _ in range(kit.choose(3, 1)):
                kit.run(["build/bench/bench_raw_limit", hosts, kit.choose("4000", "1000")], setup=options)
                kit.run(["build/bench/bench_rebalance", hosts, "4", kit.choose("10000", "1000"), "500"], setup=options)
                kit.run(["bench/peers/kazoo_partition.py", "--processes", hosts, "4", "1000", "500"], setup=options)
            kit.run([*PYTHON, "bench/locks.py", "--rounds", kit.choose("2", "1"), "--seconds", "1",
                     "floor=build/bench/bench_raw_locks " + hosts, "divvy=build/bench/bench_locks " + hosts,
                     "kazoo=%s bench/locks_kazoo.py %s" % (PYTHON[0], hosts)], json=True, setup=options)


def show_setups(records, kit):
    heads = [words for words, _ in SETUPS]
    of = {words: [line for r in records if r["setup"] == options for line in r["lines"]] for words, options in SETUPS}

    def row(words, form, wanted):
        return [words, *(spread([wanted(line) for line in of[head]], form) for head in heads)]

    def number(key, **have):
        return lambda line: line.get(key) if all(line.get(k) == v for k, v in have.items()) else None

    count = next((line["items"] for line in lines_of(records) if line.get("peer") == "divvy"), 0)
    rows = [row("raw C client: round trip, us", "{:,.0f}", number("round_trip_us")),
            row("raw C client: creates a second, pipelined", "{:,.0f}", number("pipelined_creates_per_s")),
            row("raw C client: creates a second, in multis", "{:,.0f}", number("multi_creates_per_s"))]
    for key, words in (("first_beyond_boundary_s", "first allocation"), ("join_beyond_boundary_s", "join")):
        rows.append(row("divvy: %s, %s items, s" % (words, f"{count:,}"), "{:.3f}", number(key, peer="divvy")))
        rows.append(row("kazoo, processes: %s, 1,000 items, s" % words, "{:.3f}", number(key, peer="kazoo")))
    for recipe in ("lock", "semaphore"):
        for peer in ("floor", "divvy", "kazoo"):
            rows.append(row("%s: pairs a second, %s" % (recipe, peer), "{:,.0f}",
                            number(peer, recipe=recipe, what="pairs_per_s")))
    return table(["", *heads], rows)


# ---- programs that print their own table ----


def run_timeline(kit):
    quick = ["--items", "200", "--members", "3", "--warm-up", "500", "standby"]
    kit.run(["bench/timeline.py", *kit.choose([], quick)], json=True, build=True, plot="rebalance.svg")


def show_timeline(records, kit):
    return [*outputs(records), *picture(kit, "rebalance.svg", "items worked on over time")]


def run_locks(kit):
    kit.run(["bench/locks.sh", "--rounds", kit.choose("3", "1"), "--seconds", kit.choose("2", "0.5")], json=True,
            build=True)


def show_locks(records, kit):
    lines = [line for line in lines_of(records) if "what" in line]
    peers = [name for name in ("floor", "divvy", "kazoo", "curator") if any(name in line for line in lines)]
    rows, panels = [], []
    for recipe in ("lock", "semaphore"):
        for what in dict.fromkeys(line["what"] for line in lines):
            of = [line for line in lines if (line["recipe"], line["what"]) == (recipe, what)]
            values = {peer: [line[peer] for line in of if peer in line] for peer in peers}
            rows.append(["%s: %s" % (recipe, what.replace("pairs_per_s", "pairs a second").replace("_", " ")),
                         *(spread(values[peer]) for peer in peers)])
            if what == "pairs_per_s":
                panels.append((rows[-1][0], False, [bar(peer, values[peer]) for peer in peers if values[peer]]))
    kit.plot("bench-locks.svg", write_bars, panels)
    return [*table(["", *peers], rows), *picture(kit, "bench-locks.svg", "pairs a second"), *outputs(records)]


def run_elections(kit):
    kit.run(["bench/election.sh", "--rounds", kit.choose("3", "1"), "--turns", kit.choose("100", "20")], build=True)


def show_elections(records, _):
    return [line for record in records for line in [*record["out"].strip().split("\n"), ""]]


def run_registry(kit):
    kit.run(["bench/registry.sh", "--rounds", kit.choose("3", "1"), "--seconds", kit.choose("1.5", "0.5")], json=True,
            build=True)


def show_registry(records, _):
    lines = [line for line in lines_of(records) if "what" in line]
    peers = [name for name in ("floor", "divvy", "curator") if any(name in line for line in lines)]
    rows = []
    for what in dict.fromkeys(line["what"] for line in lines):
        of = [line for line in lines if line["what"] == what]
        rows.append([what.replace("_", " "), *(spread([line[p] for line in of if p in line]) for p in peers)])
    return [*table(["by the names of its lines", *peers], rows), *outputs(records)]


def run_owns(kit):
    for _ in range(kit.choose(2, 1)):  # Each is the median of 15 rounds.
        kit.run(["build/bench/bench_owns"])


def show_owns(records, _):
    found = {}  # (row, items): [(one thread, eight, ratio), ...]
    for record in records:
        items, rows = "", []
        for line in record["out"].splitlines():
            words = line.split()
            if "items" in words:
                items = words[words.index("items") - 1]
            elif len(words) == 4:
                rows.append((words[0], items, tuple(map(float, words[1:]))))
        for name, of, values in rows:
            found.setdefault((name, of), []).append(values)
    rows = [["%s, %s items" % name, *(spread([v[at] for v in values], "{:.2f}" if at == 2 else "{:.1f}")
                                      for at in range(3))] for name, values in found.items()]
    return table(["ns of processor time for each call", "one thread", "eight threads", "ratio"], rows)


def run_heartbeats(kit):
    with kit.server("") as hosts:
        for timeout_ms, items in ((10000, 16), (10000, 10000), (30000, 16)):
            kit.run(["build/bench/bench_heartbeat_cost", hosts, str(timeout_ms), "100", str(items),
                     kit.choose("10", "5")])


def show_heartbeats(records, _):
    keys = ("requests_per_s", "bytes_sent_per_s", "bytes_received_per_s", "server_packets_per_s",
            "server_transactions_per_s")
    rows = [["timeout %g s, %s items" % (line["timeout_ms"] / 1000, f"{line['items']:,}"),
             *("%.2f" % line[key] for key in keys)] for line in lines_of(records)]
    return table(["a second", "requests", "bytes sent", "bytes received", "packets at the server", "transactions"],
                 rows)


def run_metrics(kit):
    for items in ("1", "1000", "10000", "100000"):
        for _ in range(kit.choose(3, 1)):
            kit.run(["build/bench/bench_metrics_cost", items])


def show_metrics(records, _):
    lines = [line for line in lines_of(records) if "write_us" in line]
    rows = []
    for items in sorted({line["items"] for line in lines}):
        of = [line for line in lines if line["items"] == items]
        rows.append([f"{items:,}", spread([line["write_us"] for line in of], "{:,.1f}"), f"{of[0]['text_bytes']:,}",
                     spread([line["core_percent_at_1_per_s"] for line in of], "{:.4f}")])
    rows += [["requests of a lock", spread([line["request_us"] for line in lines_of(records) if "request_us" in line],
                                           "{:.2f}"), "", ""]]
    return table(["items", "one write, us", "text, bytes", "% of a core, written every second"], rows)


def run_serve(kit):
    kit.run(["bench/serve.py", *kit.choose([], ["--members", "50", "--items", "2000"])], build=True)


def run_python(kit):
    kit.run(["bench/python.py", "--rounds", kit.choose("3", "1"), "--items", kit.choose("2000", "500"), "--seconds",
             kit.choose("1.5", "0.5")], build=True)


def show_output(records, _):
    return outputs(records)


def run_pool(kit):
    kit.run(["bench/pool.py", *kit.choose([], ["--sizes", "10x500", "--kazoo", "10x500", "--batch", "5"])], json=True,
            build=True, plot="pool.svg")


def show_pool(records, kit):
    return [*pool.tables(lines_of(records)), *picture(kit, "pool.svg", "what pools use over time")]


def run_deaths(kit):
    kit.run(["bench/death_watch.py", *kit.choose([], ["--peer-kills", "4", "--pairs", "4", "--peer-pool-kills", "2",
                                                      "--pools", "2", "--pool-kills", "10"])], build=True)


# ---- in the simulator ----


def run_scale(kit):
    sizes = [[*SCALE, *size.split()] for size in kit.choose(SCALE_SIZES, SCALE_SIZES[:1])]
    kit.run_together(sizes + [[*SCALE, "--names", *size.split()] for size in kit.choose(SCALE_NAMES, ())])


def run_scale_large(kit):
    kit.run_together([[*SCALE, *size.split()] for size in SCALE_LARGE])


def scale_table(lines, plot=None):
    """Returns the rows that bench/scale.py prints of these lines, its head first."""
    with tempfile.NamedTemporaryFile("w", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)
        file.flush()
        program = pathlib.Path(__file__).with_name("scale.py")
        command = [program, *(["--plot", plot] if plot else []), file.name]
        text = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return [row for row in text.splitlines() if row.startswith("|")]


def show_scale(records, _):
    return ["These are counts, by a virtual clock: a busy machine does not change them.", "",
            *scale_table(lines_of(records)), ""]


PARTS = (
    Part("membership", "A change of membership",
         ["Four members divide items, then one more joins: divvy, kazoo and the raw C client in turn on one server."],
         run_membership, show_membership),
    Part("join", "A join, step by step",
         ["A fifth member joins four that share 10,000 items, each in a process of its own; beside the raw C client."],
         run_join, show_join),
    Part("setups", "One and three servers, with and without fsync",
         ["The same join, and locks, on each kind of server: `DIVVY_BENCH_SERVER` is empty, `--fsync`, `--servers 3`,",
          "or both. HOSTS are what `bench/start-server build PID` prints. All share one machine, its disk and cores."],
         run_setups, show_setups),
    Part("timeline", "Items worked on over time",
         ["Five members divide 1,000 items whose workers warm up for 2 s, while the pool changes."],
         run_timeline, show_timeline),
    Part("pool", "A pool of 200 processes",
         ["200 member processes divide 20,000 items on three servers; the same with kazoo's SetPartitioner."],
         run_pool, show_pool),
    Part("locks", "Locks and semaphores",
         ["Uncontended pairs of acquire and release, and hand-overs to a waiter, in slices that take turns."],
         run_locks, show_locks),
    Part("elections", "Elections", ["The time from a resignation to the next leader's callback."], run_elections,
         show_elections),
    Part("deaths", "Deaths", ["The time from `kill -9` of an owner to the start of the next one."], run_deaths,
         show_output, False),
    Part("registry", "The registry", ["1,000 services in ten roles, read and watched."], run_registry, show_registry),
    Part("owns", "Owns", ["One call of `divvy_partitioner_owns()`, beside the clock and plain tables."], run_owns,
         show_owns),
    Part("heartbeats", "Heartbeats", ["What an idle owner costs, for each second."], run_heartbeats, show_heartbeats),
    Part("metrics", "Metrics", ["One write of a member's metrics, and the time of a lock's requests in memory."],
         run_metrics, show_metrics),
    Part("serve", "divvy serve", ["The page of a pool of 1,000 members and 100,000 items."], run_serve, show_output),
    Part("python", "From Python", ["The package for Python beside kazoo."], run_python, show_output),
    Part("scale", "Scale", ["What a change costs each member, in the simulator; [scale.md](scale.md) has all rows."],
         run_scale, show_scale),
    Part("scale-large", "Scale, 1,000 members",
         ["The same for the largest pools. It needs 8 GB of memory and many minutes, so `bench/all` leaves it out."],
         run_scale_large, show_scale, False))
