#!/usr/bin/python3
"""Print a table, and draw, what bench_balance has measured.  SPDX-License-Identifier: Apache-2.0

usage: balance.py [--plot FILE] RUNS     RUNS: the JSON lines of bench_balance --curves --seeds N

README.md beside this file says what the columns mean. Numbers are medians over the seeds.
Exit status: 0; 1 when a peer's rule had a worst member no higher than ours with no more moves, on some trace.
"""
import json
import statistics
import sys

from plot import block, write_svg

OURS = "divvy"
COLORS = ("#c03020", "#888888", "#30a050", "#2060b0", "#a060c0", "#e09020", "#40b0b0")
WIDTH, HEIGHT = 900, 330


def load(name):
    with open(name, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def in_order(runs, key):
    return list(dict.fromkeys(run[key] for run in runs))


def median(runs, key):
    return statistics.median(run[key] for run in runs)


def print_table(runs):
    """Prints moves and the worst member of each trace. Returns whether no peer was as good as ours in both at once."""
    good = True
    traces = in_order(runs, "trace")
    for loads in in_order(runs, "loads"):
        print("| %s | %s | moved load | back | CPU a step, ms |" % (loads, " | ".join(traces)))
        print("| --- |%s" % (" ---: |" * (len(traces) + 3)))
        ours = {}
        for rule in in_order(runs, "rule"):
            usual = [run for run in runs if run["usual"] and (run["loads"], run["rule"]) == (loads, rule)]
            cells = []
            for trace in traces:
                those = [run for run in usual if run["trace"] == trace]
                moves, worst = median(those, "moves"), median(those, "worst_mean")
                ours.setdefault(trace, (moves, worst))
                if rule != OURS and moves <= ours[trace][0] and worst <= ours[trace][1]:
                    good = False
                    print("balance.py: %s is as good on %s, %s" % (rule, loads, trace), file=sys.stderr)
                cells.append("%s, %.2f" % (f"{moves:,.0f}", worst))
            each = len(traces) / len(usual)
            print("| %s | %s | %s | %s | %.1f |" % (
                rule, " | ".join(cells), f"{each * sum(run['moved_load'] for run in usual):,.0f}",
                f"{each * sum(run['reversals'] for run in usual):,.0f}", statistics.mean(
                    run["step_ms"] for run in usual)))
        print()
    return good


def panel(runs, loads):
    """For each rule the sum of moves and the mean of the worst members over all traces, by threshold."""
    lines = []
    for rule in in_order(runs, "rule"):
        those = [run for run in runs if (run["loads"], run["rule"], run["seed"]) == (loads, rule, 1)]
        points = []
        for threshold in sorted({run["threshold"] for run in those}):
            at = [run for run in those if run["threshold"] == threshold]
            points.append((max(sum(run["moves"] for run in at), 1), statistics.mean(run["worst_mean"] for run in at)))
        lines.append((rule, points))
    return lines


def plot_commands(runs):
    kinds = in_order(runs, "loads")
    yield "set multiplot layout 1,%d" % len(kinds)
    yield "set logscale x\nset format x '%.0s%c'\nset grid\nset yrange [1:*]\nset xlabel 'moves, all traces'"
    for number, loads in enumerate(kinds):
        yield "set title '%s'" % loads
        yield "set ylabel 'worst member, of its fair share'" if number == 0 else "unset ylabel"
        yield "set key at graph 0.98,0.5 right top" if number == 1 else "unset key"  # where no curve is
        lines = panel(runs, loads)
        for line, (_, points) in enumerate(lines):
            yield from block("K%dL%d" % (number, line), points)
        style = "linespoints pointtype 7 pointsize 0.5 linewidth 1.5"
        yield "plot " + ", ".join(
            "$K%dL%d using 1:2 with %s linecolor rgb '%s' title '%s'" % (number, line, style, COLORS[line], rule)
            for line, (rule, _) in enumerate(lines) if rule != "counts alone")


def main():
    arguments, plot = sys.argv[1:], None
    if arguments[:1] == ["--plot"]:
        plot, arguments = arguments[1], arguments[2:]
    if len(arguments) != 1 or arguments[0].startswith("-"):
        sys.exit(__doc__)
    runs = load(arguments[0])
    good = print_table(runs)
    if plot:
        write_svg(plot, (WIDTH, HEIGHT), plot_commands(runs))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
