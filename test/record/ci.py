"""Runs of the whole of .ci/run in the record: how long their stages took, and what failed. SPDX-License-Identifier:
Apache-2.0

The suite is to pass every time, on a machine with other work as well. So runs with load and without are counted apart.
"""
import re
import statistics

LINE = (r"ci: commit (?P<commit>\S+), began (?P<began>\S+), load (?P<load>yes|no), stages \d+, "
        r"seconds (?P<seconds>\d+), failed (?P<failed>\d+), unsteady (?P<unsteady>\d+)")
STAGE = re.compile(r"^([a-z-]+) +(passed|FAILED) +(\d+) s$", re.M)
FAILED_TEST = re.compile(r"^\s*\d+ - (\S+) \(", re.M)
UNSTEADY_TEST = re.compile(r"UNSTEADY, failed once and then passed three times: (.*)$", re.M)


def read_more(text, run):
    """Adds the table of stages, and the names of what failed."""
    stages = [found for found in STAGE.findall(text.rsplit("== summary", 1)[-1]) if found[0] != "total"]
    run["stages"] = {name: int(seconds) for name, _, seconds in stages}
    run["failed_stages"] = sorted(name for name, how, _ in stages if how == "FAILED")
    run["unsteady_tests"] = sorted({name for names in UNSTEADY_TEST.findall(text) for name in names.split()})
    run["failed_tests"] = sorted(set(FAILED_TEST.findall(text)) - set(run["unsteady_tests"]))


def name_of(run):
    return "with load" if run["load"] == "yes" else "without load"


def spread(values):
    return f"{statistics.median(values):,.0f} s, {max(values):,} s" if values else "-"


def table(runs):
    """Returns the lines of a table of stages: median and longest, without load and with it. Then what failed."""
    if not runs:
        return []
    halves = [[run for run in runs if run["load"] == load] for load in ("no", "yes")]
    stages = dict.fromkeys(name for run in runs for name in run["stages"])
    lines = ["", "| stage of CI | failed | without load: median, longest | with load: median, longest |",
             "| --- | --- | --- | --- |"]
    for stage in stages:
        failed = sum(stage in run["failed_stages"] for run in runs)
        cells = [spread([run["stages"][stage] for run in half if stage in run["stages"]]) for half in halves]
        lines.append(f"| {stage} | {failed} | {cells[0]} | {cells[1]} |")
    cells = [spread([run["seconds"] for run in half]) for half in halves]
    lines.append(f"| all | {sum(run['failed'] > 0 for run in runs)} of {len(runs)} | {cells[0]} | {cells[1]} |")
    told = [""]
    for run in runs:
        for what in ("failed", "unsteady"):
            names = run[f"{what}_tests"] + (run["failed_stages"] if what == "failed" else [])
            if names:
                told.append(f"- {run['began']}, {run['commit']}, {name_of(run)}, {what}: {', '.join(names)}")
    return lines + (told if len(told) > 1 else [])
