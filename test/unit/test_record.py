#!/usr/bin/env python3
"""The record of long runs in parts (test/record). SPDX-License-Identifier: Apache-2.0

usage: test_record.py [BUILD_FOLDER]

Claims: each program's last line of counts is taken, and what lacks it is refused; parts add up; none counts twice; a
violation is never lost in a sum.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "test" / "record"))
import record  # noqa: E402

SIM = "sim: commit 0123abc, seed {seed}\n" \
      "histories {histories}, events 40, events/s 9, violations {bad}\n"
FRESH = "sim: commit 0123abc, seed 5\n" \
        "sim: 7 fresh ones from seed {fresh}; again: sim --locks --histories 7 --seed 1\n" \
        "histories 7, events 90, events/s 9, violations 0\n"
CONFORMANCE = "conformance: seed {seed}\nconformance: the real servers are ZooKeeper 3.8.0\n" \
              "conformance: operations 200123, sessions 4100, servers 1, differences 0\n"
CHAOS = "chaos: seed {seed}\nchaos: 10 s of 60, round 1, 2 faults; held\n" \
        "chaos: minutes 10.5, faults 31 of 20 kinds, ownerships 812, violations {bad}\n"
FUZZ = "fuzz: names: executions 5000000, crashes 0, corpus 120 files\n" \
       "fuzz: entry: executions 3000000, crashes 1, corpus 80 files\n"
SWEEP = "sweep: scenarios 40, runs 9000, allocations 800, requests 300, failures 9000; places of the library that " \
        "allocate: 500\n"
CI = "== tests\n{told}chaos: minutes 1.5, faults 6 of 6 kinds, ownerships 9, violations 0\n" \
     "== summary\ntests        {tests}   840 s\nclang-tidy   passed   {seconds} s\ntotal        {tests}  1700 s\n" \
     "ci: commit 0123abc-dirty, began {began}, load {load}, stages 2, seconds 1700, failed {failed}, unsteady 1\n"
UNSTEADY = "test/run: default: UNSTEADY, failed once and then passed three times: live.lock \n"
# Where each program prints the line that is read here.
PRINTED = {"sim": "test/sim/main.c", "conformance": "test/conformance/main.c", "chaos": "test/chaos/chaos.c",
           "sweep": "test/sweep/main.c"}


class Record(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = pathlib.Path(folder.name) / "runs.jsonl"

    def add(self, text, **more):
        return record.add(text, self.file, **{"commit": None if ": commit" in text else "c0ffee", **more})

    def command(self, name, *words, text=""):
        return subprocess.run([ROOT / "test" / "record" / name, *words], input=text, capture_output=True, text=True,
                              timeout=60, check=False)

    # Each kind's line is taken, with its commit, its seed and its counts.
    def test_kinds(self):
        (sim,) = self.add(SIM.format(seed=7, histories=100, bad=0))
        self.assertEqual((sim["commit"], sim["seed"], sim["histories"], sim["ranges"]), ("0123abc", 7, 100, [[7, 100]]))
        (conformance,) = self.add(CONFORMANCE.format(seed=3))
        self.assertEqual((conformance["operations"], conformance["servers"]), (200123, 1))
        (chaos,) = self.add(CHAOS.format(seed=9, bad=0))
        self.assertEqual((chaos["minutes"], chaos["faults"]), (10.5, 31))
        self.assertEqual([run["target"] for run in self.add(FUZZ)], ["names", "entry"])
        (sweep,) = self.add(SWEEP + "sweep: 2 runs FAILED\n")
        self.assertEqual((sweep["runs"], sweep["failed_runs"]), (9000, 2))
        self.assertEqual(len(record.load(self.file)), 6)

    # The lines above are those that the programs print: their formats stand in their sources.
    def test_as_printed(self):
        examples = {"sim": SIM.format(seed=1, histories=1, bad=0), "conformance": CONFORMANCE.format(seed=1),
                    "chaos": CHAOS.format(seed=1, bad=0), "sweep": SWEEP}
        for kind, source in PRINTED.items():
            code = re.sub(r'"\s*\n\s*"', "", (ROOT / source).read_text(encoding="utf-8"))
            code = re.sub(r'" PRIu64 "', "%u", code)
            formats = re.findall(r'printf\("((?:[^"\\]|\\.)*)\\n"', code)
            last = examples[kind].rstrip("\n").split("\n")[-1]
            patterns = [re.sub(r"%(?:zu|llu|u|d|\\?\.\d+f)", r"[\\d.]+", re.escape(text)).replace("%s", r"\w+")
                        for text in formats]
            self.assertTrue(any(re.fullmatch(pattern, last) for pattern in patterns), (kind, last))
        self.assertIn('echo "fuzz: $target: executions ${executions:-unknown}, crashes $count, corpus $corpus files"',
                      (ROOT / "test/fuzz/run").read_text(encoding="utf-8"))

    # A run of CI keeps its stages, and what failed; a run counts once; load and none are told apart.
    def test_ci(self):
        (run,) = self.add(CI.format(told=UNSTEADY, tests="passed", seconds=500, began="T1", load="no", failed=0))
        self.assertEqual((run["kind"], run["commit"], run["seconds"]), ("ci", "0123abc-dirty", 1700))
        self.assertEqual(run["stages"], {"tests": 840, "clang-tidy": 500})
        with self.assertRaisesRegex(record.Refused, "there already"):
            self.add(CI.format(told="", tests="passed", seconds=500, began="T1", load="no", failed=0))
        self.add(CI.format(told="", tests="passed", seconds=300, began="T2", load="no", failed=0))
        self.assertEqual(self.command("show", self.file).returncode, 0)
        self.add(CI.format(told="\t 12 - live.lock (Failed)\n", tests="FAILED", seconds=900, began="T3", load="yes",
                           failed=1))
        shown = self.command("show", self.file)
        self.assertEqual(shown.returncode, 1)
        for line in ("| ci without load | 2 | seconds 3,400 | failed 0 |",
                     "| ci with load | 1 | seconds 1,700 | failed 1 |",
                     "| tests | 1 | 840 s, 840 s | 840 s, 840 s |", "| clang-tidy | 0 | 400 s, 500 s | 900 s, 900 s |",
                     "| all | 1 of 3 | 1,700 s, 1,700 s | 1,700 s, 1,700 s |",
                     "- T1, 0123abc-dirty, without load, unsteady: live.lock",
                     "- T3, 0123abc-dirty, with load, failed: live.lock, tests"):
            self.assertIn(line, shown.stdout.splitlines())

    # The line is the one that .ci/run prints, with its numbers and words in.
    def test_ci_as_printed(self):
        code = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
        form = re.search(r"printf '(ci: .*)\\n' ", code)[1]
        line = CI.format(told="", tests="passed", seconds=1, began="T", load="no", failed=0).splitlines()[-1]
        self.assertRegex(line, "^" + re.escape(form).replace("%s", r"\S+").replace("%d", r"\d+") + "$")

    # What was cut off, or did not say how much it did, is refused, and nothing is kept.
    def test_cut_off(self):
        for text in ("", "sim: commit 0123abc, seed 7\n", CHAOS.format(seed=1, bad=0).rsplit("chaos: minutes", 1)[0],
                     "fuzz: names: executions unknown, crashes 1, corpus 0 files\n", FUZZ + SWEEP):
            with self.assertRaises(record.Refused):
                self.add(text)
            self.assertFalse(self.file.exists())

    # A history counts once: ranges of seeds may touch, and not overlap, unless commit or options differ.
    def test_counts_once(self):
        self.add(SIM.format(seed=100, histories=50, bad=0))
        self.add(SIM.format(seed=150, histories=50, bad=0))
        for seed, histories in ((100, 50), (99, 2), (199, 5), (120, 1), (0, 1000)):
            with self.assertRaisesRegex(record.Refused, "count twice"):
                self.add(SIM.format(seed=seed, histories=histories, bad=0))
        self.add(SIM.format(seed=100, histories=50, bad=0), options="--locks")
        self.add(SIM.format(seed=100, histories=50, bad=0).replace("0123abc", "4567def"))
        self.add(FRESH.format(fresh=1000))
        with self.assertRaises(record.Refused):
            self.add(SIM.format(seed=1006, histories=1, bad=0))
        self.add(SIM.format(seed=5, histories=1, bad=0))  # that one had fresh seeds only

    # conformance begins at seed 1 if nobody says otherwise, so that two runs of it are one.
    def test_conformance_counts_once(self):
        self.add(CONFORMANCE.format(seed=1))
        for seed in (1, 4000):
            with self.assertRaises(record.Refused):
                self.add(CONFORMANCE.format(seed=seed))
        self.add(CONFORMANCE.format(seed=4101))
        self.add(CONFORMANCE.format(seed=1).replace("servers 1", "servers 3"))
        self.add(CHAOS.format(seed=9, bad=0))
        with self.assertRaises(record.Refused):
            self.add(CHAOS.format(seed=9, bad=0))

    # The simulator's commit is as git describes it, and may be unknown.
    def test_commits(self):
        text = SIM.format(seed=1, histories=10, bad=0)
        (run,) = self.add(text.replace("0123abc", "v0.3-12-g0123abc-dirty"))
        self.assertEqual((run["commit"], run["seed"]), ("v0.3-12-g0123abc-dirty", 1))
        (run,) = self.add(text.replace("0123abc", ""), commit="c0ffee")
        self.assertEqual((run["commit"], run["seed"]), ("c0ffee", 1))

    # Rounds of chaos that were not checked count against us.
    def test_not_checked(self):
        text = CHAOS.format(seed=4, bad=1)
        (run,) = self.add(text.replace("chaos: minutes", "chaos: 2 rounds were not checked\nchaos: minutes"))
        self.assertEqual(run["violations"], 3)

    # Parts add up by kind, options and target; a violation in one of them shows, and is the exit status.
    def test_sums(self):
        self.add(SIM.format(seed=1, histories=600000, bad=0), options="--plans")
        self.add(SIM.format(seed=600001, histories=400000, bad=0), options="--plans")
        self.add(CHAOS.format(seed=1, bad=0))
        self.add(CHAOS.format(seed=2, bad=0))
        lines = record.table(record.load(self.file))
        self.assertIn("| sim --plans | 2 | histories 1,000,000, events 80 | violations 0 |", lines)
        self.assertIn("| chaos | 2 | minutes 21, faults 62, ownerships 1,624 | violations 0 |", lines)
        self.assertIn("4 parts from ", lines[-1])
        self.assertEqual(self.command("show", self.file).returncode, 0)
        self.add(SIM.format(seed=5000000, histories=10, bad=1), options="--plans")
        shown = self.command("show", self.file)
        self.assertEqual(shown.returncode, 1)
        self.assertIn("| sim --plans | 3 | histories 1,000,010, events 120 | violations 1 |", shown.stdout)
        self.assertEqual(self.command("show", self.file, "c0ffee").returncode, 0)

    # The command takes files and standard input, passes the latter on, and takes options that begin with hyphens.
    def test_command(self):
        text = SIM.format(seed=1, histories=10, bad=0)
        done = self.command("add", "--record", self.file, "--with", "--plans --rolls", text=text)
        self.assertEqual((done.returncode, done.stdout), (0, text), done.stderr)
        self.assertEqual(json.loads(self.file.read_text())["with"], "--plans --rolls")
        again = self.command("add", "--record", self.file, "--with", "--plans --rolls", text=text)
        self.assertEqual(again.returncode, 1)
        self.assertIn("count twice", again.stderr)
        output = self.file.with_name("output")
        output.write_text(FUZZ)
        self.assertEqual(self.command("add", "--record", self.file, output, "--commit", "abc").returncode, 0)
        self.assertEqual(self.command("add", "--no-such-option").returncode, 2)
        self.assertEqual(self.command("show", "--no-such-option").returncode, 2)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
