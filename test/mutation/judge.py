"""Runs tests on mutants, and adds up what they found. SPDX-License-Identifier: Apache-2.0"""
import collections
import json
import math
import os
import pathlib
import random
import re
import signal
import subprocess
import threading
import time

EQUIVALENTS = pathlib.Path(__file__).resolve().parent / "equivalents"
CPU_MAX_S = 60  # of a test that is used
Run = collections.namedtuple("Run", "name command cpu_s wall_s reached is_simulation")
Verdict = collections.namedtuple("Verdict", "number mutant outcome by")


def compact(text):
    return re.sub(r"\s+", " ", text).strip()


def key(mutant):
    """Returns the name of a mutant, which stays as long as the function has the same text there."""
    new = compact(mutant.new)
    if mutant.is_statement and new in ("", "{}"):
        new = "nothing"
    return "%s: %s: %s => %s" % (mutant.file, mutant.function, compact(mutant.old), new)


def equivalents(text):
    """Returns the reasons by the names of the mutants: a name begins a line, and its reason is indented below it."""
    found, name = {}, None
    for line in text.splitlines():
        if line.startswith("#") or not line.strip():
            continue
        if not line.startswith(" "):
            name = line.strip()
            if name in found:
                raise SystemExit("equivalents: twice: %s" % name)
            found[name] = ""
        elif name is None:
            raise SystemExit("equivalents: a reason of nothing: %s" % line.strip())
        else:
            found[name] = (found[name] + " " + line.strip()).strip()
    for name, reason in found.items():
        if not reason:
            raise SystemExit("equivalents: no reason: %s" % name)
    return found


def wilson(hits, count):
    """Returns the 95 % interval of a share, after Wilson."""
    if count == 0:
        return 0.0, 1.0
    z, share = 1.959964, hits / count
    middle = share + z * z / (2 * count)
    half = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    return (middle - half) / (1 + z * z / count), (middle + half) / (1 + z * z / count)


def environment(**more):
    """Returns the environment of a test. What is drawn from a commit or the time elsewhere is the same each time."""
    return {**os.environ, "DIVVY_FRESH_SEED": "1", **more}


def execute(command, variables, cpu_s, wall_s, folder):
    """Returns "passed", "failed" or "timeout", and the seconds of processor and clock that it took."""
    wrapped = ["nice", "-n", "5", "prlimit", "--cpu=%d" % math.ceil(cpu_s), "--core=0", "--", *command]
    begin = time.monotonic()
    process = subprocess.Popen(wrapped, env=variables, cwd=folder, stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    late = []

    def stop():
        late.append(True)
        os.killpg(process.pid, signal.SIGKILL)

    timer = threading.Timer(wall_s, stop)
    timer.start()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = status  # it has been waited for
    timer.cancel()
    try:
        os.killpg(process.pid, signal.SIGKILL)  # what it has left
    except ProcessLookupError:
        pass
    seconds = usage.ru_utime + usage.ru_stime, time.monotonic() - begin
    if late or (os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL)):
        return "timeout", *seconds
    return ("passed" if status == 0 else "failed"), *seconds


class Judge:
    """Runs tests on one mutant after the other."""

    def __init__(self, runs, killers):
        self.runs = runs
        self.killers = killers  # by the names of mutants: what found them the last time, which is tried first
        self.hits = collections.Counter()

    def order(self, number, mutant):
        """Returns the runs that reach the mutant: unit tests first, of these the quick ones, and what found others."""
        found = [run for run in self.runs if run.reached[number]]
        last = self.killers.get(key(mutant))
        stem = pathlib.Path(mutant.file).stem

        def rank(run):
            hits = self.hits[mutant.file, run.name] + 2 * (stem in run.name)
            return run.is_simulation, run.name != last, (run.cpu_s + 0.02) / (1 + 20 * hits)

        return sorted(found, key=rank)

    def judge(self, number, mutant, folder):
        variables = environment(DIVVY_MUTANT=str(number))
        for run in self.order(number, mutant):
            # Thrice its time of processor, however busy the machine is; by the clock much more.
            outcome, _, _ = execute(run.command, variables, 2 + 3 * run.cpu_s, 30 + 10 * run.wall_s, folder)
            if outcome != "passed":
                self.hits[mutant.file, run.name] += 1
                found = "simulation" if run.is_simulation else "unit"
                return Verdict(number, mutant, "%s timeout" % found if outcome == "timeout" else found, run.name)
        return Verdict(number, mutant, "survived", "")


def reach(name, command, is_simulation, count, folder):
    """Runs a test on no mutant. Returns it with the mutants that it reaches, or None if it fails by itself."""
    path = folder / "reached"
    path.write_bytes(bytes(count + 1))
    outcome, cpu_s, wall_s = execute(command, environment(DIVVY_MUTANT_MAP=str(path)), CPU_MAX_S, 600, folder)
    return Run(name, command, cpu_s, wall_s, path.read_bytes(), is_simulation) if outcome == "passed" else None


def reach_once(name, command, is_simulation, count, folder, kept):
    """Does the same, and keeps what it finds in the folder `kept`, as long as the program stays as it is."""
    status = os.stat(command[0])
    state = json.dumps([command, status.st_mtime_ns, status.st_size, count])
    note = kept / ("%s.json" % name.replace(" ", "_"))
    if note.is_file() and json.loads(note.read_text())["state"] == state:
        old = json.loads(note.read_text())
        return Run(name, command, old["cpu_s"], old["wall_s"], note.with_suffix(".reached").read_bytes(), is_simulation)
    run = reach(name, command, is_simulation, count, folder)
    if run is not None:
        kept.mkdir(exist_ok=True)
        note.with_suffix(".reached").write_bytes(run.reached)
        note.write_text(json.dumps({"state": state, "cpu_s": run.cpu_s, "wall_s": run.wall_s}))
    return run


def sample(numbered, count, seed):
    """Returns some of the mutants, in an order that changes elsewhere do not change."""
    ordered = sorted(numbered, key=lambda pair: random.Random("%d %s %d" % (
        seed, key(pair[1]), pair[1].line)).random())
    return ordered[:count] if count else ordered


def report(verdicts, reasons, reached, seed):
    """Returns the lines of the report."""
    outcomes = collections.Counter()
    survivors, equal = [], []
    for verdict in verdicts:
        name = key(verdict.mutant)
        if verdict.outcome == "survived" and name in reasons:
            equal.append(verdict)
            outcomes["equivalent"] += 1
            continue
        outcomes[verdict.outcome] += 1
        if verdict.outcome == "survived":
            survivors.append(verdict)
    lines = ["%s:%d: survived: %s" % (v.mutant.file, v.mutant.line, key(v.mutant).split(": ", 1)[1])
             for v in sorted(survivors, key=lambda v: (v.mutant.file, v.mutant.line))]
    lines += ["%s:%d: equivalent: %s" % (v.mutant.file, v.mutant.line, key(v.mutant).split(": ", 1)[1])
              for v in sorted(equal, key=lambda v: (v.mutant.file, v.mutant.line))]
    unit = outcomes["unit"] + outcomes["unit timeout"]
    simulation = outcomes["simulation"] + outcomes["simulation timeout"]
    judged = len(verdicts) - outcomes["equivalent"]
    low, high = wilson(unit + simulation, judged)
    lines.append("mutation: seed %d, %d of %d mutants on covered lines; found %d by unit tests (%d by time), %d by "
                 "simulation alone (%d by time), %d equivalent, %d survived" % (
                     seed, len(verdicts), reached, unit, outcomes["unit timeout"], simulation,
                     outcomes["simulation timeout"], outcomes["equivalent"], outcomes["survived"]))
    lines.append("mutation: found %.1f %% of those that are not equivalent, 95 %% interval %.1f to %.1f %%; "
                 "%.1f %% of all" % (100 * (unit + simulation) / max(judged, 1), 100 * low, 100 * high,
                                    100 * (unit + simulation) / max(len(verdicts), 1)))
    return lines
