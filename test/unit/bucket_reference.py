#!/usr/bin/python3
"""The buckets of docs/protocol.md, rule A11, written as plainly as the rule reads. SPDX-License-Identifier: Apache-2.0

Shares no line with the library. Prints bucket_vectors.txt, which the tests of the library, of the command and of the
package for Python read: lines COUNT, BUCKET and the key, which is the rest of the line.
"""

from rendezvous_reference import BITS_64, fnv1a, mix

COUNTS = [1, 2, 3, 7, 10, 64, 100, 1000, 1024, 4096, 17000, 65536, 1000000, 2**31 - 1, 2**31, 2**31 + 1, 2**32 - 1]
KEYS = ["a", "b", "0", "1", "tenant-000001", "tenant-000002", "customer/4711", "two words", "tab\tbed",
        "zo\u00eb", "\u65e5\u672c", "\U0001f600", "5nr7f1oj3v0", "3i72bi44o5M", "k" * 90]


def bucket(key, count):
    """A11."""
    state, chosen, jump = mix(fnv1a(b"b" + key)), 0, 0
    while jump < count:
        chosen = jump
        state = (state * 2862933555777941757 + 1) & BITS_64
        jump = (chosen + 1) * 2**31 // ((state >> 33) + 1)
    return chosen


if __name__ == "__main__":
    for number in COUNTS:
        for text in KEYS:
            print(number, bucket(text.encode(), number), text)
