"""Draws as SVG, by gnuplot.  SPDX-License-Identifier: Apache-2.0"""
import os
import subprocess
from collections import namedtuple

WIDTH, HEIGHT = 720, 220  # of a panel
GRID_WIDTH, GRID_HEIGHT, GRID_LEFT, GRID_TOP, GRID_BOTTOM = 900, 105, 150, 46, 40  # in all; of a row; of the margins
DONE, UNDONE = "#8fbce0", "#e8604c"
INSTALL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "test", "install_packages")

# lines: [(label, [(x, y), ...])], from point to point; both axes are logarithmic.
Panel = namedtuple("Panel", "title lines")


def block(name, points):
    yield "$%s << END" % name
    yield from ("%.10g %.10g" % tuple(point) for point in points)
    yield "END"


def steps(points):
    """The corners of steps from each point to the next."""
    for (x, y), (next_x, _) in zip(points, points[1:]):
        yield from ((x, y), (next_x, y))


def panel_commands(panels):
    """Panels of lines, one below the other."""
    yield "set key outside right top Left reverse noenhanced"
    yield "set grid ytics"
    yield "set multiplot layout %d,1" % len(panels)
    yield "set logscale xy\nset format '%.0s%c'\nset autoscale"
    for number, panel in enumerate(panels):
        yield "set title '%s' left noenhanced" % panel.title
        for line, (_, points) in enumerate(panel.lines):
            yield from block("P%dL%d" % (number, line), points)
        style = "linespoints pointtype 7 pointsize 0.4 linewidth 1.5"
        yield "plot " + ", ".join("$P%dL%d using 1:2 with %s title '%s'" % (number, line, style, label)
                                  for line, (label, _) in enumerate(panel.lines))


def grid_commands(y_max, columns, rows, cells):
    """For each row and column an area below steps, on a ground of another colour."""
    height = GRID_HEIGHT * len(rows) + GRID_TOP + GRID_BOTTOM
    width = (GRID_WIDTH - GRID_LEFT) / len(columns)
    yield "unset key\nset style fill solid 1 noborder\nset multiplot\nset tics out scale 0.5"
    yield "set yrange [0:%g]\nset object 1 rectangle from graph 0,0 to graph 1,1 fillcolor rgb '%s' behind" % (
        y_max, UNDONE)
    for c, column in enumerate(columns):
        of_column = [row[c] for row in cells if row[c]]
        ends_at = max([points[-1][0] for _, points in of_column], default=1) * 1.03
        for r, row in enumerate(rows):
            if not cells[r][c]:
                continue
            label, points = cells[r][c]
            yield "unset label"
            top = 1 - (GRID_TOP + GRID_HEIGHT * r) / height
            yield "set lmargin at screen %g\nset rmargin at screen %g" % (
                (GRID_LEFT + width * c) / GRID_WIDTH, (GRID_LEFT + width * (c + 1) - 22) / GRID_WIDTH)
            yield "set tmargin at screen %g\nset bmargin at screen %g" % (top, top - (GRID_HEIGHT - 22) / height)
            yield "set title '%s' offset 0,0.5" % column if r == 0 else "unset title"
            last = r == len(rows) - 1
            yield "set xlabel 'seconds' offset 0,0.5\nset format x" if last else "unset xlabel\nset format x ''"
            if c == 0:
                yield "set label 2 '%s' at screen 0.01,%g left" % (row, top - (GRID_HEIGHT - 22) / height / 2)
            yield "set ytics (0, %g)" % y_max if c == 0 else "set ytics ('' 0, '' %g)" % y_max
            yield "set xrange [%g:%g]\nset xtics %d" % (points[0][0], ends_at, 1 if ends_at < 8 else 10)
            yield "set label 1 '%s' at graph 1,1.1 right front" % label
            name = "R%dC%d" % (r, c)
            yield from block(name, steps([*points, (ends_at, points[-1][1])]))
            yield "plot $%s using 1:2 with filledcurves y1=0 fillcolor rgb '%s'" % (name, DONE)


def write_svg(name, size, commands):
    subprocess.run([INSTALL, "gnuplot-nox"], check=True)
    lines = ["set terminal svg size %d,%d font 'sans-serif,11' background 'white'" % size, "set output '%s'" % name,
             "set border 3", "set tics nomirror", *commands, "unset multiplot", ""]
    subprocess.run(["gnuplot"], input="\n".join(lines), text=True, check=True)


def write_panels(name, panels):
    write_svg(name, (WIDTH, HEIGHT * len(panels)), panel_commands(panels))


def write_grid(name, y_max, columns, rows, cells):
    """cells[row][column]: (label, [(x, y), ...]), or None."""
    height = GRID_HEIGHT * len(rows) + GRID_TOP + GRID_BOTTOM
    write_svg(name, (GRID_WIDTH, height), grid_commands(y_max, columns, rows, cells))


def share_commands(lines, moves):
    """For each member its load, as a part of the fair share, over minutes; a mark where items have moved."""
    yield "set grid ytics\nset key outside right top Left reverse noenhanced\nset yrange [0:2]"
    yield "set xlabel 'minutes'\nset ylabel 'processor time, as a part of the fair share'"
    yield "set object 1 rectangle from graph 0, first 0.8 to graph 1, first 1.2 fillcolor rgb '#eef5ee' behind"
    for x in moves:
        yield "set arrow from %g, graph 0 to %g, graph 0.04 nohead linecolor rgb '%s' linewidth 2" % (x, x, UNDONE)
    for number, points in enumerate(lines.values()):
        yield from block("M%d" % number, points)
    yield "plot " + ", ".join("$M%d using 1:2 with lines linewidth 1.5 title '%s'" % (number, name)
                              for number, name in enumerate(lines))


def write_shares(name, lines, moves):
    """lines: {member: [(minute, share), ...]}; moves: the minutes in which items have moved."""
    write_svg(name, (WIDTH, 2 * HEIGHT), share_commands(lines, moves))


def rates(samples, key, scale=1):
    """What grew, a second: [(x, y), ...]."""
    return [(b["at"], (b[key] - a[key]) / (b["at"] - a["at"]) * scale) for a, b in zip(samples, samples[1:])]


def pool_commands(pools):
    """pools: [(title, {"samples", ...}, changes), ...]: a column for each, of what is used over time."""
    yield "set multiplot layout %d,%d columnsfirst" % (len(POOL_ROWS), len(pools))
    yield "set grid ytics\nset lmargin 8\nset rmargin 2\nset tics font ',8'"
    yield "set key at graph 1,1.25 right top horizontal noenhanced samplen 1"
    for p, (title, pool, changes) in enumerate(pools):
        samples = pool["samples"]
        yield "unset arrow\nunset label"
        for change in changes:
            x = change["began_at"]
            yield "set arrow from %g, graph 0 to %g, graph 1 nohead linecolor rgb '#bbbbbb'" % (x, x)
        for r, (name, curves) in enumerate(POOL_ROWS):
            for number, change in enumerate(changes):
                yield "set label %d '%s' at %g, graph 1.05 left font ',8'" % (
                    number + 1, change["change"] if r == 0 else "", change["began_at"])
            head = "%s, %d x %d: " % (title, pool["members"], pool["items"])
            yield "set title '%s%s' offset 0,%g font ',10' noenhanced" % (
                head if r == 0 else "", name, 0.8 if r == 0 else 0)
            yield "set xlabel '%s'" % ("seconds" if r == len(POOL_ROWS) - 1 else "")
            yield "set yrange [0:*]\nset xrange [0:%g]" % max(samples[-1]["at"], 1)
            plots = []
            for c, (label, colour, points) in enumerate(curves):
                block_name = "P%dR%dC%d" % (p, r, c)
                yield from block(block_name, points(samples))
                plots.append("$%s using 1:2 with lines linewidth 1.4 linecolor rgb '%s' title '%s'" % (
                    block_name, colour, label))
            yield "plot " + ", ".join(plots)


POOL_ROWS = (
    ("items worked on", (("", DONE, lambda s: [(x["at"], x["working"]) for x in s]),)),
    ("cores in use", (("members", DONE, lambda s: rates(s, "member_cpu_s")),
                      ("servers", UNDONE, lambda s: rates(s, "server_cpu_s")))),
    ("MB/s", (("from servers", DONE, lambda s: rates(s, "server_sent", 1e-6)),
              ("to servers", UNDONE, lambda s: rates(s, "server_received", 1e-6)))),
    ("resident memory, MB", (("members", DONE, lambda s: [(x["at"], x["member_kib"] / 1024) for x in s]),
                             ("servers", UNDONE, lambda s: [(x["at"], x["server_kib"] / 1024) for x in s]))))


def write_pools(name, pools):
    """Draws pools over time, one beside the other."""
    write_svg(name, (max(WIDTH, 460 * len(pools)), 170 * len(POOL_ROWS)), pool_commands(pools))


def bar_commands(panels):
    yield "set multiplot layout 1,%d" % len(panels)
    yield "set pointintervalbox 0\nset style fill solid 0.7 noborder\nset boxwidth 0.6\nunset key"
    yield "set grid ytics\nset tics font ',9'"
    for number, (title, logarithmic, bars) in enumerate(panels):
        yield "set title '%s' font ',10' noenhanced" % title
        yield "set logscale y\nset yrange [*:*]" if logarithmic else "unset logscale\nset yrange [0:*]"
        yield "set xrange [-0.6:%g]\nset xtics rotate by -30 noenhanced" % (len(bars) - 0.4)
        yield "$B%d << END" % number
        yield from ('%d "%s" %.10g %.10g %.10g' % (at, *bar) for at, bar in enumerate(bars))
        yield "END"
        yield "plot $B%d using 1:3:xtic(2) with boxes linecolor rgb '%s', $B%d using 1:3:4:5 with yerrorbars " \
              "pointtype -1 linecolor rgb '#404040'" % (number, DONE, number)


def write_bars(name, panels):
    """panels: [(title, whether the axis is logarithmic, [(label, median, least, most), ...]), ...]"""
    write_svg(name, (360 * len(panels), 260), bar_commands(panels))
