#!/usr/bin/env python3
"""apply_mutants.py puts all known bugs in, and refuses what does not fit. SPDX-License-Identifier: Apache-2.0"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
APPLY = ROOT / "test/sim/apply_mutants.py"
SOURCE = """\
int add(int a, int b) {
    int sum = a;
    sum += b;
    return sum;
}

int twice(int a) {
    int sum = a;
    sum += a;
    return sum;
}
"""


def patch(*lines):
    return "--- lib/base/sum.c\n+++ lib/base/sum.c\n" + "".join(line + "\n" for line in lines)


# Inserts a line below `int add`; its head names a line that it does not stand at.
FORGETS = patch("@@ -7,2 +7,3 @@", " int add(int a, int b) {", "+    if (DV_MUTANT(forgets)) return a;",
                "     int sum = a;")
# Inserts another one there.
ZERO = patch("@@ -1,2 +1,3 @@", " int add(int a, int b) {", "+    if (DV_MUTANT(zero)) return 0;", "     int sum = a;")
# Changes the line `sum += b`.
MINUS = patch("@@ -2,3 +2,3 @@", "     int sum = a;", "-    sum += b;", "+    sum += DV_MUTANT(minus) ? -b : b;",
              "     return sum;")
# Inserts a line just above that one.
ABOVE = patch("@@ -2,2 +2,3 @@", "     int sum = a;", "+    if (DV_MUTANT(above)) sum = 0;", "     sum += b;")
# Changes the same line as MINUS.
TIMES = patch("@@ -3 +3 @@", "-    sum += b;", "+    sum = DV_MUTANT(times) ? sum * b : sum + b;")


class OnATree(unittest.TestCase):
    """A library of one file, with patches and a list."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)
        self.write("lib/base/sum.c", SOURCE)
        self.write("test/sim/mutants/.keep", "")

    def write(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def apply(self, listed=None, **patches):
        for name, text in patches.items():
            self.write(f"test/sim/mutants/{name}.patch", text)
        names = patches if listed is None else listed
        self.write("test/sim/mutant.h", "".join(f'    X({name}, "text") \\\n' for name in names))
        return subprocess.run([sys.executable, APPLY, "--root", self.root, self.root / "out"], text=True,
                              capture_output=True, check=False)

    def copy(self):
        return (self.root / "out/lib/base/sum.c").read_text()

    def check_refused(self, result, *words):
        self.assertEqual(result.returncode, 1)
        for word in words:
            self.assertIn(word, result.stderr)
        self.assertNotIn("Traceback", result.stderr)
        self.assertFalse((self.root / "out").exists())

    # All go in at once. What is inserted at one place stands in the order of names.
    def test_all_at_once(self):
        result = self.apply(zero=ZERO, minus=MINUS, forgets=FORGETS, above=ABOVE)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(self.copy(), '#include "sim/mutant.h"\n' + textwrap.dedent("""\
            int add(int a, int b) {
                if (DV_MUTANT(forgets)) return a;
                if (DV_MUTANT(zero)) return 0;
                int sum = a;
                if (DV_MUTANT(above)) sum = 0;
                sum += DV_MUTANT(minus) ? -b : b;
                return sum;
            }
            """) + SOURCE.partition("}\n")[2])

    # A copy that would say the same is not written again, so that nothing is compiled for it.
    def test_same_copy_is_left_alone(self):
        self.apply(zero=ZERO)
        os.utime(self.root / "out/lib/base/sum.c", (1, 1))
        self.apply(zero=ZERO)
        self.assertEqual((self.root / "out/lib/base/sum.c").stat().st_mtime, 1)
        self.apply(zero=ZERO, minus=MINUS)
        self.assertIn("minus", self.copy())

    # The file has changed since the patch was written.
    def test_another_context(self):
        self.write("lib/base/sum.c", SOURCE.replace("sum += b;", "sum += 1 * b;"))
        self.check_refused(self.apply(minus=MINUS), "test/sim/mutants/minus.patch:3:", "lib/base/sum.c:3 is",
                           "sum += 1 * b;", "write the patch again")

    def test_no_such_file(self):
        (self.root / "lib/base/sum.c").unlink()
        self.check_refused(self.apply(minus=MINUS), "minus.patch:3:", "there is no lib/base/sum.c")

    def test_two_places(self):
        ambiguous = patch("@@ -4 +4,2 @@", "+    if (DV_MUTANT(ambiguous)) sum = 0;", "     return sum;")
        self.check_refused(self.apply(ambiguous=ambiguous), "ambiguous.patch:3:", "at the lines 4 and 10")

    def test_one_line_twice(self):
        self.check_refused(self.apply(minus=MINUS, times=TIMES), "minus.patch and test/sim/mutants/times.patch",
                           "both change lib/base/sum.c:3")

    # A line cannot be put between two that another patch replaces.
    def test_inside_of_what_another_changes(self):
        both = patch("@@ -2,2 +2 @@", "-    int sum = a;", "-    sum += b;",
                     "+    int sum = DV_MUTANT(both) ? 0 : a + b;")
        self.check_refused(self.apply(both=both, above=ABOVE), "both change lib/base/sum.c:3")

    def test_name_that_nobody_lists(self):
        self.check_refused(self.apply(listed=["minus"], minus=MINUS, zero=ZERO),
                           "zero.patch: test/sim/mutant.h does not know zero")

    def test_listed_without_patch(self):
        self.check_refused(self.apply(listed=["minus", "zero"], minus=MINUS), "zero has neither a patch")

    # The simulator has bugs of its own.
    def test_listed_for_the_simulator(self):
        self.write("test/sim/kazoo.c", "if (DV_MUTANT(zero)) return;\n")
        self.assertEqual(self.apply(listed=["minus", "zero"], minus=MINUS).returncode, 0)

    def test_name_of_another(self):
        self.check_refused(self.apply(listed=["minus", "zero"], minus=MINUS, zero=MINUS), "zero.patch:3:",
                           "may only add DV_MUTANT(zero)")

    def test_always_in_force(self):
        self.check_refused(self.apply(zero=ZERO.replace("if (DV_MUTANT(zero)) ", "")), "would always be in force")

    def test_not_a_patch(self):
        cases = [
            ("", "has no hunk"),
            (ZERO.partition("@@")[0], "has no hunk"),
            (ZERO.replace("lib/base", "a/lib/base"), "names no file"),
            (ZERO.replace("@@ -1,2", "@@ -1,3"), "as its head says"),
            (ZERO.replace(" int", "int"), "is no line"),
            ("@@" + ZERO.partition("@@")[2], "of no file"),
        ]
        for text, words in cases:
            self.check_refused(self.apply(zero=text), "zero.patch", words)


class OnOurs(unittest.TestCase):
    # What the library has is what users run: its bugs are all in the patches.
    def test_library_knows_of_none(self):
        for path in ROOT.glob("lib/**/*.[ch]"):
            self.assertNotIn("DV_MUTANT", path.read_text(), path)

    def test_ours_fit(self):
        with tempfile.TemporaryDirectory() as folder:
            result = subprocess.run([sys.executable, APPLY, folder], text=True, capture_output=True, check=False)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            copies = "".join(path.read_text() for path in pathlib.Path(folder).rglob("*.c"))
        names = [path.stem for path in ROOT.glob("test/sim/mutants/*.patch")]
        self.assertGreater(len(names), 60)
        for name in names:
            self.assertIn(f"DV_MUTANT({name})", copies)

    # `sim-mutants --list` tells of each bug what it is, and what finds it: an invariant in the history of a seed, or a
    # test of test/unit.
    # Those of test/replay/bugs are plain patches, for builds of their own.
    def test_bugs_of_the_replay_fit(self):
        bugs = sorted((ROOT / "test/replay/bugs").glob("*.patch"))
        self.assertTrue(bugs)
        for bug in bugs:
            words = ["git", "apply", "--check", "-p0", str(bug)]
            done = subprocess.run(words, cwd=ROOT, stderr=subprocess.PIPE, text=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_each_is_described(self):
        listed = re.findall(r'^\s*X\((\w+), "(.*)"\)', (ROOT / "test/sim/mutant.h").read_text(), re.MULTILINE)
        records = (ROOT / "test/sim/mutants.c").read_text()
        linked = re.search(r"set\(shown ([^)]*)\)", (ROOT / "test/sim/CMakeLists.txt").read_text()).group(1).split()
        shown = "".join((ROOT / "test/sim" / path).read_text() for path in linked)
        self.assertGreater(len(listed), 100)
        for name, text in listed:
            record = rf"\[DV_MUTANT_{name}\] = "
            seeds = re.findall(record + r"\{(\d+), [\d.]+, SIM_OF_\w+, (.*)\},", records)
            tests = re.findall(record + r'"(\w+)",', records)
            self.assertGreater(len(text.split()), 3, name)
            self.assertEqual(len(seeds), 1, f"{name} has no record in test/sim/mutants.c")
            seed, invariant = seeds[0]
            if tests:
                self.assertEqual((seed, invariant), ("0", "NULL"), name)
                self.assertRegex(shown, rf"TEST(_IN)?\({tests[0]}\b")
            else:
                self.assertGreater(int(seed), 0, f"{name} has neither a seed nor a test")
                self.assertRegex(invariant, r'^"([A-Z][1-9][0-9]?|crash)"$', name)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])  # not the build folder
