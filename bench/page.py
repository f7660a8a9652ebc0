"""The page that bench/all writes, and what other documents take from its runs.  SPDX-License-Identifier: Apache-2.0

A section stands between two comments, so that a part that is run again replaces its own section and no other.
"""
import re
import statistics
import textwrap

COLUMNS = 118
BEGIN, END = "<!-- part: %s -->", "<!-- end of part -->"
SECTION = re.compile(r"<!-- part: ([a-z0-9-]+) -->\n.*?<!-- end of part -->\n", re.DOTALL)
README_LINE = re.compile(r"(items lack a worker for )[\d,.]+( item-seconds, with kazoo for )[\d,.]+")

HEAD = """# Benchmarks

`bench/all` writes this page; nobody edits it. Each section has the commands that it ran, the commit, the time, and the
load of the machine before it. Figures are medians, with the least and the most behind them. Programs that print their
own table are quoted as they are. [bench/README.md](../bench/README.md) says what each row means.

    bench/all                        # all of it, %s
    bench/all --only locks,owns      # some parts; the other sections stay
    bench/all --quick                # a first look, into the build folder

"""


def plain(value):
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def spread(values, form=None):
    """Returns the median, and the least and the most where there are several."""
    values = [value for value in values if value is not None]
    if not values:
        return "-"
    show = form.format if form else plain
    middle = show(statistics.median(values))
    return middle if len(values) == 1 else "%s (%s to %s)" % (middle, show(min(values)), show(max(values)))


def bar(label, values):
    return (label, statistics.median(values), min(values), max(values))


def table(heads, rows):
    """Returns lines of Markdown: the first column is text, and the others are numbers."""
    return ["| %s |" % " | ".join(heads), "| --- |" + " ---: |" * (len(heads) - 1),
            *("| %s |" % " | ".join(row) for row in rows), ""]


def quoted(text):
    lines = [part for line in text.strip("\n").split("\n") for part in textwrap.wrap(
        line.rstrip(), COLUMNS, drop_whitespace=False, break_on_hyphens=False) or [""]]
    return ["```", *lines, "```", ""]


def command_lines(command):
    """Returns a command as a block, on several lines if it is long."""
    lines = textwrap.wrap(command, COLUMNS - 6, subsequent_indent="    ", break_long_words=False,
                          break_on_hyphens=False)
    return ["    " + line + " \\" for line in lines[:-1]] + ["    " + lines[-1]]


def section(part, run, body):
    """Returns a part's section as text. `run` is what bench/all has kept of it."""
    lines = [BEGIN % part.name, "## " + part.title, "", *part.about, ""]
    for command in dict.fromkeys(record["command"] for record in run["records"]):
        lines += command_lines(command)
    lines += ["", "Commit %s, %s, %.0f s; load of the machine before it %.1f." % (
        run["commit"], run["date"], run["took_s"], run["load"]), ""]
    for record in run["records"]:
        if record["status"] != 0:
            lines += ["**`%s` ended with %d.**" % (record["command"].split(" --")[0], record["status"]), ""]
    return "\n".join([*lines, *body, END, ""])


def assemble(old, machine, names, new, took):
    """Returns the page: sections of `new`, and else of `old`, in the order of `names`."""
    kept = {found.group(1): found.group(0) for found in SECTION.finditer(old)}
    sections = {**kept, **new}
    text = HEAD % took + "\n".join(table(("machine", ""), machine)).replace("---: |", "--- |") + "\n"
    return text + "\n".join(sections[name] for name in names if name in sections)


def update_readme(text, lines):
    """Returns README.md with the two figures of the timeline."""
    lost = {line["peer"]: line["unowned_s"] for line in lines if line["change"] == "rolling restart"}
    if "standby" not in lost or "kazoo" not in lost:
        return text
    text, count = README_LINE.subn(r"\g<1>%s\g<2>%s" % (f"{lost['standby']:,.0f}", f"{lost['kazoo']:,.0f}"), text)
    if count != 1:
        raise ValueError("README.md has no line for the timeline's figures, or several")
    return text


def cells(row):
    return [cell.strip() for cell in row.strip().strip("|").split("|")]


def merge_rows(text, rows, order):
    """Returns a document whose table has `rows`; its other rows stay. rows[0] is the head, by which it is found.

    The first four cells are a row's name, and `order` sorts by them.
    """
    lines = text.split("\n")
    begin = next((at for at, line in enumerate(lines) if cells(line) == cells(rows[0])), None)
    if begin is None:
        raise ValueError("no table has this head: " + rows[0])
    end = begin
    while end < len(lines) and lines[end].startswith("|"):
        end += 1
    named = {tuple(cells(row)[:4]): row for row in lines[begin + 2:end] + rows[2:]}
    return "\n".join(lines[:begin + 2] + [named[name] for name in sorted(named, key=order)] + lines[end:])
