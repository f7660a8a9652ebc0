#!/usr/bin/python3
"""Checks one round of the chaos test: check.py DIRECTORY. SPDX-License-Identifier: Apache-2.0

Its last line is for the driver; the exit status is 0 if no violation was found.
"""

import collections
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from history import read_history  # noqa: E402
from rules import Checker  # noqa: E402
from txnlog import Truth, read_logs  # noqa: E402

SHOWN = 40
OURS_ALONE = ('L2', 'S7', 'S8', 'S11', 'END', 'LOG', 'VOID')  # whatever a server shows


def judge(history, found):
    """Returns what is a violation, and what is excused: all that a server can bring about that has said, in this round,
    that its tree is not its leader's. No client can know."""
    excused = [one for one in found if history.diverged and one[0] not in OURS_ALONE]
    return [one for one in found if one not in excused], excused


def main():
    if len(sys.argv) != 2:
        sys.exit('usage: check.py DIRECTORY')
    history = read_history(sys.argv[1])
    txns, conflicts = read_logs(sys.argv[1])
    checker = Checker(history, Truth(txns))
    checker.run()
    for zxid in conflicts:
        checker.violate('LOG', f'two servers have different transactions {zxid:#x}')
    kinds = collections.Counter(b.kind for b in history.beliefs)
    claims = sum(len(log.claims) for log in history.logs.values())
    lookups = sum(len(log.lookups) for log in history.logs.values())
    print(f'{len(txns)} transactions; beliefs: ' + ', '.join(f'{n} {kind}' for kind, n in sorted(kinds.items())) +
          f'; {claims} claims, {lookups} entries found; clocks within {checker.slack} ms')
    print(f'{checker.handovers} items handed over')
    print(f'{len(checker.recoveries)} quiet times, well again after {max(checker.recoveries, default=0)} ms at most; '
          f'{checker.inconclusive} inconclusive, {checker.slow_calls} slow calls, '
          f'{checker.under_limit} ended under a memory limit; '
          f'{sum(log.jumps for log in history.logs.values())} jumps of the wall clock')
    violations, excused = judge(history, checker.found)
    for line in history.diverged[:1]:
        print(f'a server had another tree than its leader: {line}')
    for kind, found in (('excused', excused), ('violation', violations)):
        for rule, text in found[:SHOWN]:
            print(f'{kind}: {rule}: {text}')
    print(f'checked: ownerships {len(history.beliefs)}, violations {len(violations)}')
    return len(violations) > 0


if __name__ == '__main__':
    sys.exit(main())
