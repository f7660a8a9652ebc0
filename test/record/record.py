"""The record of long runs, one JSON object a line, and what they add up to. SPDX-License-Identifier: Apache-2.0

A run that is too long for one night is made in parts. Each part ends with a line of counts, which `add` keeps with the
commit, the date and the seed. `show` adds the parts up. A run without its last line counts for nothing, and nothing
counts twice: a part that has seeds of another part, at the same commit, is refused. That happens easily. The simulator
begins at the seed of the time and takes one a history, so parts that begin within an hour have most seeds in common.
Fuzzers do not print their seeds, so their parts are taken as they come.
"""
import collections
import datetime
import json
import pathlib
import re
import subprocess

import ci

ROOT = pathlib.Path(__file__).resolve().parents[2]
FILE = ROOT / "test" / "record" / "runs.jsonl"

Kind = collections.namedtuple("Kind", "line counts bad more")
# For each kind its last line of counts, what the table tells of it, the count that has to be 0, and a line that may
# stand beside it, whose number is bad as well.
KINDS = {
    "sim": Kind(r"histories (?P<histories>\d+), events (?P<events>\d+), .*violations (?P<violations>\d+)",
                ["histories", "events"], "violations", None),
    "conformance": Kind(r"conformance: operations (?P<operations>\d+), sessions (?P<sessions>\d+), "
                        r"servers (?P<servers>\d+), differences (?P<differences>\d+)",
                        ["operations", "sessions"], "differences", None),
    "chaos": Kind(r"chaos: minutes (?P<minutes>[\d.]+), faults (?P<faults>\d+) of \d+ kinds, "
                  r"ownerships (?P<ownerships>\d+), violations (?P<violations>\d+)",
                  ["minutes", "faults", "ownerships"], "violations", r"chaos: (\d+) rounds were not checked"),
    "fuzz": Kind(r"fuzz: (?P<target>\w+): executions (?P<executions>\d+), crashes (?P<crashes>\d+), .*",
                 ["executions"], "crashes", None),
    "sweep": Kind(r"sweep: scenarios (?P<scenarios>\d+), runs (?P<runs>\d+), .*", ["runs"], "failed_runs",
                  r"sweep: (\d+) runs FAILED"),
    "ci": Kind(ci.LINE, ["seconds"], "failed", None),
}
TEXTS = {"target", "commit", "began", "load"}
COMMIT = re.compile(r"^sim: commit (\S+), seed", re.M)
SEED = re.compile(r"^(?:sim: commit \S*|conformance|chaos)[:,] seed (\d+)$", re.M)
FRESH = re.compile(r"^sim: (\d+) fresh ones from seed (\d+);", re.M)


class Refused(Exception):
    """A run that does not count, and why."""


def number(text):
    return float(text) if "." in text else int(text)


def read_counts(text):
    """Returns a run for each last line of counts: one, and for fuzzers one for each target."""
    runs = {}
    lines = [line.rstrip() for line in text.splitlines()]
    for kind, what in KINDS.items():
        for line in lines:
            match = re.fullmatch(what.line, line)
            if not match:
                continue
            run = {"kind": kind}
            run.update((key, value if key in TEXTS else number(value)) for key, value in match.groupdict().items())
            if what.more:
                beside = [int(found) for found in re.findall(f"^{what.more}$", text, re.M)]
                run[what.bad] = run.get(what.bad, 0) + sum(beside)
            runs[kind, run.get("target")] = run
    if ("ci", None) in runs:  # its stages have printed what else is there
        runs = {("ci", None): runs["ci", None]}
        ci.read_more(text, runs["ci", None])
    if not runs:
        raise Refused("there is no last line of counts; a run that was cut off counts for nothing")
    if len({kind for kind, _ in runs}) > 1:
        raise Refused("there are lines of several kinds of runs; add them one by one")
    return list(runs.values())


def read_seeds(text, run):
    """Adds the seed, and the ranges of seeds that the run can have had: as first and number."""
    seed = SEED.search(text)
    if not seed or run["kind"] == "ci":
        return
    run["seed"] = int(seed[1])
    if run["kind"] == "sim":
        fresh = FRESH.search(text)
        own = run["histories"] - (int(fresh[1]) if fresh else 0)
        ranges = [[run["seed"], own]] + ([[int(fresh[2]), int(fresh[1])]] if fresh else [])
        run["ranges"] = [part for part in ranges if part[1] > 0]
    elif run["kind"] == "conformance":
        run["ranges"] = [[run["seed"], run["sessions"]]]  # a trace has a seed, and a session at least
    else:
        run["ranges"] = [[run["seed"], 1]]


def overlap(one, other):
    return any(a < c + d and c < a + b for a, b in one.get("ranges", []) for c, d in other.get("ranges", []))


def check_new(run, runs):
    """Refuses a run that is in the record already, whole or in part."""
    for other in runs:
        if any(run.get(key) != other.get(key) for key in ("kind", "with", "commit", "servers")):
            continue
        if run["kind"] == "ci" and run["began"] == other["began"]:
            raise Refused(f"the run that began at {run['began']} is there already")
        if overlap(run, other) or run["kind"] == "sweep" and run["runs"] == other["runs"]:
            raise Refused(f"a run of {other['date']} has some of its seeds, from {run.get('seed')} on, at the same "
                          "commit; they would count twice: give --seed")


def load(path):
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


def current_commit():
    """Names the commit of the checkout, with a plus behind it if files that git tracks have changed."""
    def git(*words):
        return subprocess.run(["git", "-C", ROOT, *words], capture_output=True, text=True, check=True).stdout.strip()
    changed = git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!test/record/runs.jsonl")
    return git("rev-parse", "--short=12", "HEAD") + ("+" if changed else "")


def add(text, path=FILE, commit=None, options="", now=None):
    """Keeps what a run has printed, and returns what was added."""
    told = COMMIT.search(text)  # of the last time that CMake was run
    now = now or datetime.datetime.now(datetime.timezone.utc)
    runs, added = load(path), read_counts(text)
    for run in added:
        run["commit"] = commit or run.get("commit") or (told[1] if told else current_commit())
        run["date"] = now.strftime("%Y-%m-%dT%H:%M:%SZ")
        if options:
            run["with"] = options
        read_seeds(text, run)
        check_new(run, runs)
        runs.append(run)
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(run, sort_keys=True) + "\n" for run in added)
    return added


def sums(runs):
    """Adds up the runs of each kind, and of each target or choice of options within it."""
    groups = {}
    for run in runs:
        what = KINDS[run["kind"]]
        name = ci.name_of(run) if run["kind"] == "ci" else run.get("target") or run.get("with", "")
        group = groups.setdefault((list(KINDS).index(run["kind"]), run["kind"], name), collections.Counter())
        group["parts"] += 1
        group["bad"] += run[what.bad]
        for key in what.counts:
            group[key] += run[key]
    return [(kind, name, group) for (_, kind, name), group in sorted(groups.items())]


def table(runs):
    """Returns the lines of docs/testing.md's table."""
    lines = ["| runs | parts | what they did | against us |", "| --- | --- | --- | --- |"]
    for kind, name, group in sums(runs):
        what = KINDS[kind]
        did = ", ".join(f"{key} {group[key]:,.0f}" for key in what.counts)
        lines.append(f"| {kind}{' ' + name if name else ''} | {group['parts']} | {did} | "
                     f"{what.bad.replace('_', ' ')} {group['bad']:,} |")
    if runs:
        dates, commits = sorted(run["date"][:10] for run in runs), {run["commit"] for run in runs}
        lines += ["", f"{len(runs)} parts from {dates[0]} to {dates[-1]}, of {len(commits)} "
                  f"commit{'s' if len(commits) > 1 else ''}."]
    return lines + ci.table([run for run in runs if run["kind"] == "ci"])
