#!/usr/bin/env python3
"""The tools of test/mutation. SPDX-License-Identifier: Apache-2.0

usage: test_mutation.py [BUILD_FOLDER]

Claims: a program with mutants behaves as it did, unless it is told one; tests that look find each of them, and a test
that looks at less lets exactly those live that it does not look at; what has to be constant is left alone. The interval
is Wilson's. Each judged equivalent still fits the library.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # the checkout stays as it is
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test" / "mutation"))
import judge  # noqa: E402
import mutate  # noqa: E402

SAMPLE = """#include <assert.h>
#include <stdbool.h>
enum { MOST = 3 };
static int calls;
static void note(int kind) {
    switch (kind) {
    case 1 + 1: calls += 2; break;
    default: calls++;
    }
}
int clamp(int value) {
    static const int least = 1 + 1;
    char room[4 + 4];
    assert(value < 1000);
    if (value > MOST) return MOST;
    note(2);
    return value < least || sizeof room != 8 ? least : value;
}
int noted(void) {
    return calls;
}
"""
# The first looks at the bounds, the second at all that there is.
WEAK = "return clamp(2) != 2 || clamp(4) != 3;"
STRONG = WEAK[:-1] + " || clamp(1) != 2 || clamp(3) != 3 || noted() != 6;"


def check(what, found, wanted):
    if found != wanted:
        sys.exit("%s: %r, and not %r" % (what, found, wanted))


def check_arithmetic():
    low, high = judge.wilson(90, 100)
    check("Wilson's interval of 90 of 100", (round(low, 4), round(high, 4)), (0.8256, 0.9448))
    check("that of nothing", judge.wilson(0, 0), (0.0, 1.0))
    text = "# a comment\nlib/a.c: f: x => y\n    as it\n    is\n"
    check("a reason", judge.equivalents(text), {"lib/a.c: f: x => y": "as it is"})
    mutant = mutate.Mutant("lib/a.c", 3, "f", 0, 1, "x", "y", False)
    verdicts = [judge.Verdict(1, mutant, "survived", ""), judge.Verdict(2, mutant._replace(new="z"), "survived", ""),
                judge.Verdict(3, mutant, "unit", "unit.a"), judge.Verdict(4, mutant, "simulation timeout", "sim")]
    lines = judge.report(verdicts, {"lib/a.c: f: x => y": "as it is"}, 9, 1)
    check("a survivor", lines[0], "lib/a.c:3: survived: f: x => z")
    check("an equivalent", lines[1], "lib/a.c:3: equivalent: f: x => y")
    check("the sum", "found 66.7 %" in lines[3] and "50.0 % of all" in lines[3], True)


def build(folder, text, body):
    """Returns a program that has the text, and fails unless `body` says 0."""
    (folder / "sample.c").write_text(text)
    (folder / "main.c").write_text("int clamp(int value);\nint noted(void);\nint main(void) { %s }\n" % body)
    subprocess.run(["cc", "-std=c11", "-D_GNU_SOURCE", "-I", ROOT / "test", "-o", folder / "program",
                    folder / "sample.c", folder / "main.c", ROOT / "test/mutation/mutant.c"], check=True)
    return [str(folder / "program")]


def survivors(folder, source, found, body):
    command = build(folder, mutate.rewrite(source, list(enumerate(found, 1))), body)
    run = judge.reach("unit.sample", command, False, len(found), folder)
    if run is None:
        sys.exit("the program fails without a mutant")
    judges = judge.Judge([run], {})
    verdicts = [judges.judge(number, mutant, folder) for number, mutant in enumerate(found, 1)]
    return {"%d %s" % (v.mutant.line, judge.key(v.mutant).split(": ", 2)[2]) for v in verdicts
            if v.outcome == "survived"}


def check_mutants():
    if mutate.CursorKind is None:
        print("python3-clang is not installed: no mutants were made")
        return
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "plain.c").write_text(SAMPLE)
        source = mutate.Source(folder / "plain.c", "plain.c", mutate.arguments())
        once = mutate.one_a_line(source, 1)
        check("lines with a mutant", [m.line for m in once], [7, 8, 15, 16, 17, 20])
        source.found = []
        found = [m for m in mutate.mutants(source) if m.line not in (7, 8)]
        outer = [m for at, m in enumerate(found) if all(m.start >= b.end for b in found[:at])]
        check("mutants of whole statements", len(outer) >= 5, True)
        left = survivors(folder, source, outer, STRONG)
        check("what a strong test leaves", left, set())
        left = survivors(folder, source, outer, WEAK)
        check("what a weak test leaves", left, {"16 note(2) => nothing", "20 calls => 0"})


def check_equivalents():
    for name in judge.equivalents(judge.EQUIVALENTS.read_text()):
        file, function, change = name.split(": ", 2)
        old = change.split(" => ")[0]
        text = judge.compact((ROOT / file).read_text())
        if old not in text or not re.search(r"\b%s\(" % function, text):
            sys.exit("equivalents: does not fit: %s" % name)


def main():
    check_arithmetic()
    check_equivalents()
    check_mutants()


if __name__ == "__main__":
    main()
