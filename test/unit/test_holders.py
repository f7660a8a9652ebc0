#!/usr/bin/env python3
"""The arithmetic of test/holders/run. SPDX-License-Identifier: Apache-2.0

usage: test_holders.py [BUILD_FOLDER]

Claims: seconds in which both hold, and in which nobody does, are those of lines whose answer is known by hand; a yes of
a process that is stopped or has ended counts for one period; what lies outside of the window counts nothing.
"""
import pathlib
import sys

sys.dont_write_bytecode = True  # the checkout stays as it is
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "holders"))
import score  # noqa: E402


def lines(begin_ms, end_ms, word):
    return "".join("%.3f %s 7\n" % (ms / 1000, word) for ms in range(begin_ms, end_ms, 10))


def check(name, found, wanted):
    if abs(found - wanted) > 1e-9:
        sys.exit("%s: %r, and not %r" % (name, found, wanted))


def main():
    first = score.parse(lines(0, 3000, "yes") + lines(3000, 5000, "no"))
    second = score.parse(lines(0, 2000, "no") + lines(2000, 5000, "yes"))
    late = score.parse(lines(0, 3500, "no") + lines(3500, 5000, "yes"))
    one, other, third = score.spans(first), score.spans(second), score.spans(late)
    check("both", score.both_s(one, other, 0, 5), 1)
    check("both, a part of the window", score.both_s(one, other, 2.5, 5), 0.5)
    check("both, outside of the window", score.both_s(one, other, 3, 5), 0)
    check("nobody between two that overlap", score.nobody_s(one, other, 0, 5), 0)
    check("nobody between two with a gap", score.nobody_s(one, third, 0, 5), 0.5)
    check("both of two with a gap", score.both_s(one, third, 0, 5), 0)

    stopped = score.spans(score.parse(lines(0, 1000, "yes") + lines(4000, 4500, "yes")))
    check("a stopped process claims nothing", score.held_s(stopped, 0, 5), 1.5)
    check("its spans", len(stopped), 2)
    check("both, as it goes on", score.both_s(stopped, other, 0, 5), 0.5)
    check("a line that is not whole", len(score.parse("1.000 yes 7\n1.010 ye")), 1)
    print("the arithmetic of test/holders is right")


if __name__ == "__main__":
    main()
