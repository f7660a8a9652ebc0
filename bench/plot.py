"""Draws panels of lines, one below the other, as SVG by gnuplot.  SPDX-License-Identifier: Apache-2.0"""
import os
import subprocess
from collections import namedtuple

WIDTH, HEIGHT = 720, 220  # of a panel
INSTALL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "test", "install_packages")

# lines: [(label, [(x, y), ...])], drawn as steps, or, with `curve`, from point to point; log: both axes are
# logarithmic.
Panel = namedtuple("Panel", "title y_max lines curve log", defaults=(False, False))


def commands(name, panels):
    yield "set terminal svg size %d,%d font 'sans-serif,11' background 'white'" % (WIDTH, HEIGHT * len(panels))
    yield "set output '%s'" % name
    yield "set key outside right top Left reverse noenhanced"
    yield "set grid ytics"
    yield "set border 3"
    yield "set tics nomirror"
    yield "set multiplot layout %d,1" % len(panels)
    for number, panel in enumerate(panels):
        yield "set title '%s' left noenhanced" % panel.title
        yield "set logscale xy\nset format '%.0s%c'\nset autoscale" if panel.log else "set yrange [0:%g]" % panel.y_max
        for line, (_, points) in enumerate(panel.lines):
            yield "$P%dL%d << END" % (number, line)
            yield from ("%.10g %.10g" % point for point in map(tuple, points))
            yield "END"
        style = "linespoints pointtype 7 pointsize 0.4" if panel.curve else "steps"
        yield "plot " + ", ".join("$P%dL%d using 1:2 with %s linewidth 1.5 title '%s'" % (number, line, style, label)
                                  for line, (label, _) in enumerate(panel.lines))
    yield "unset multiplot"


def write_svg(name, panels):
    subprocess.run([INSTALL, "gnuplot-nox"], check=True)
    subprocess.run(["gnuplot"], input="\n".join([*commands(name, panels), ""]), text=True, check=True)
