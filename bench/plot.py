"""Draws panels of lines as a small SVG, with nothing but Python.  SPDX-License-Identifier: Apache-2.0"""
import math
from collections import namedtuple
from html import escape

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 220, 70, 190, 30, 30
POINTS_MAX = 400  # of a line: more of them nobody sees
COLOURS = ("#0b6e4f", "#3a86c8", "#c77d0a", "#b3261e", "#6a4c93", "#555555")

# lines: [(label, [(x, y), ...])], drawn as steps, or, with `curve`, from point to point; log: both axes are logarithmic.
Panel = namedtuple("Panel", "title y_max lines curve log", defaults=(False, False))


def thin(points):
    """As many points as can be seen; of those that fall together the lowest and the last."""
    if len(points) <= POINTS_MAX:
        return points
    first, last = points[0][0], points[-1][0]
    width, kept, bucket, at = (last - first) / (POINTS_MAX / 2) or 1, [], [], None
    for point in points + [(math.inf, 0)]:
        place = math.inf if point[0] == math.inf else int((point[0] - first) / width)
        if bucket and place != at:
            lowest = min(bucket, key=lambda p: p[1])
            kept += [lowest] if lowest is bucket[-1] else [lowest, bucket[-1]]
            bucket = []
        at = place
        bucket.append(point)
    return kept


def ticks(most, log, least=1):
    if log:
        return [10 ** e for e in range(math.floor(math.log10(least)), math.ceil(math.log10(most)) + 1)]
    step = 10 ** math.floor(math.log10(most or 1))
    while most / step < 4:
        step /= 2
    while most / step > 8:
        step *= 2
    return [step * n for n in range(int(most / step) + 1)]


def label_of(value):
    for factor, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if value >= factor and value % (factor / 10) == 0:
            return "%g%s" % (value / factor, unit)
    return "%g" % value


def draw_panel(panel, top):
    points = [point for _, line in panel.lines for point in line]
    if panel.log:
        points = [(x, y) for x, y in points if x > 0 and y > 0]
    least_x, least_y = (min(p[0] for p in points), min(p[1] for p in points)) if panel.log else (0, 0)
    x_ticks = ticks(max(p[0] for p in points), panel.log, least_x)
    y_ticks = ticks(panel.y_max, panel.log, least_y)
    x_range = (x_ticks[0], x_ticks[-1] if panel.log else max(p[0] for p in points))
    y_range = (y_ticks[0], y_ticks[-1] if panel.log else panel.y_max)

    def place(value, bounds, begin, length):
        if panel.log:
            value, bounds = math.log10(value), tuple(map(math.log10, bounds))
        return begin + length * (value - bounds[0]) / ((bounds[1] - bounds[0]) or 1)

    def x_of(x):
        return place(x, x_range, LEFT, WIDTH - LEFT - RIGHT)

    def y_of(y):
        return top + HEIGHT - BOTTOM - place(y, y_range, 0, HEIGHT - TOP - BOTTOM)

    out = ['<text x="%d" y="%d" font-weight="bold">%s</text>' % (LEFT, top + 18, escape(panel.title))]
    for y in y_ticks:
        out.append('<path d="M%d %.1fH%d" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%s</text>' % (
            LEFT, y_of(y), WIDTH - RIGHT, LEFT - 6, y_of(y) + 4, label_of(y)))
    for x in x_ticks:
        out.append('<text x="%.1f" y="%d" text-anchor="middle">%s</text>' % (x_of(x), top + HEIGHT - BOTTOM + 16,
                                                                         label_of(x)))
    for n, (label, line) in enumerate(panel.lines):
        colour = COLOURS[n % len(COLOURS)]
        path, last_y = [], None
        for x, y in thin(line):
            if path and not panel.curve:
                path.append("H%.1f" % x_of(x))
                if y != last_y:
                    path.append("V%.1f" % y_of(y))
            else:
                path.append("%s%.1f %.1f" % ("L" if path else "M", x_of(x), y_of(y)))
            last_y = y
        out.append('<path d="%s" fill="none" stroke="%s" stroke-width="1.5"/>' % ("".join(path), colour))
        at = top + TOP + 14 + 18 * n
        out.append('<path d="M%d %dh18" stroke="%s" stroke-width="3"/><text x="%d" y="%d">%s</text>' % (
            WIDTH - RIGHT + 12, at - 4, colour, WIDTH - RIGHT + 36, at, escape(label)))
    return out


def write_svg(name, panels):
    height = HEIGHT * len(panels)
    lines = ['<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" '
             'font-family="sans-serif" font-size="12">' % (WIDTH, height, WIDTH, height),
             '<rect width="100%" height="100%" fill="white"/>']
    for n, panel in enumerate(panels):
        lines += draw_panel(panel, n * HEIGHT)
    with open(name, "w", encoding="utf-8") as file:
        file.write("\n".join(lines + ["</svg>", ""]))
