#!/usr/bin/python3
"""`divvy bucket`, against the vectors of rule A11. SPDX-License-Identifier: Apache-2.0

usage: test_bucket_command.py BUILD_FOLDER [TEST...]     a TEST is a name such as Bucket.test_vectors
"""
import collections
import os
import subprocess
import sys
import tempfile
import unittest

from bucket_reference import bucket

VECTORS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bucket_vectors.txt")
DIVVY = None  # set from the command line


def divvy(*words, stdin=b"", **options):
    return subprocess.run([DIVVY, "bucket", *words], input=stdin, stderr=subprocess.PIPE, check=False, timeout=60,
                          **({"stdout": subprocess.PIPE} | options))


class Bucket(unittest.TestCase):
    def printed(self, *words, **options):
        done = divvy(*words, **options)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        return [int(line) for line in done.stdout.splitlines()]

    def refused(self, code, message, *words, **options):
        done = divvy(*words, **options)
        self.assertEqual(done.returncode, code)
        self.assertIn(message, done.stderr.decode())

    # The keys of the vectors have the same buckets here, as words and as lines, and the reference still says the same.
    def test_vectors(self):
        with open(VECTORS, encoding="utf-8") as file:
            rows = [line.rstrip("\n").split(" ", 2) for line in file]
        self.assertGreater(len(rows), 200)
        groups = collections.defaultdict(list)
        for count, expected, key in rows:
            groups[count].append((key, int(expected)))
            self.assertEqual(bucket(key.encode(), int(count)), int(expected))
        for count, pairs in groups.items():
            keys, buckets = zip(*pairs)
            self.assertEqual(self.printed(count, *keys), list(buckets))
            lines = "".join(key + "\n" for key in keys).encode()
            self.assertEqual(self.printed(count, "--keys-from", "-", stdin=lines), list(buckets))

    # A line is a key as it stands: an empty one too, one with blanks, a CR, a # or a NUL, and a last one without its
    # end. A word that begins with - stands behind --.
    def test_odd_keys(self):
        keys = [b"", b" a ", b"a\r", b"# a", b"a\0b", b"\xff", b"last"]
        expected = [bucket(key, 1000) for key in keys]
        self.assertEqual(self.printed("--keys-from", "-", "1000", stdin=b"\n".join(keys)), expected)
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"\n".join(keys) + b"\n")
            file.flush()
            self.assertEqual(self.printed("1000", "--keys-from=" + file.name), expected)
        self.assertEqual(self.printed("1000", "--", "-x", ""), [bucket(b"-x", 1000), bucket(b"", 1000)])
        self.assertEqual(self.printed("1000", "--keys-from", "/dev/null"), [])

    # What is wrong is said, with the code that the help promises.
    def test_refused(self):
        self.refused(2, "COUNT is missing")
        for count in ("0", "-1", "x", "", "4294967296", "1e3", "99999999999999999999"):
            self.refused(2, "COUNT", "--", count, "a")
        self.refused(2, "the keys are missing", "10")
        self.refused(2, "not both", "10", "a", "--keys-from", "-")
        self.refused(2, "/nowhere: cannot be opened", "10", "--keys-from", "/nowhere")
        self.refused(1, "/: cannot be read: Is a directory", "10", "--keys-from", "/")
        with open("/dev/full", "wb") as full:
            many = b"a\n" * 10000
            for words in (("10", "a"), ("10", *["a"] * 10000), ("10", "--keys-from", "-"), ("--help",)):
                self.refused(1, "cannot write to standard output", *words, stdin=many, stdout=full)

    # A reader that has seen enough is no failure.
    def test_reader_gone(self):
        with subprocess.Popen([DIVVY, "bucket", "10", "--keys-from", "/dev/stdin"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            process.stdout.close()
            try:
                process.stdin.write(b"a\n" * 1000000)
                process.stdin.close()
            except BrokenPipeError:
                pass
            self.assertEqual((process.stderr.read(), process.wait(60)), (b"", 0))


def main():
    global DIVVY
    if len(sys.argv) < 2:
        sys.exit("usage: test_bucket_command.py BUILD_FOLDER [TEST...]")
    DIVVY = os.path.join(os.path.abspath(sys.argv[1]), "tools", "divvy")
    outcome = unittest.main(argv=[sys.argv[0], *sys.argv[2:]], exit=False, verbosity=2).result
    sys.exit(not outcome.wasSuccessful())


if __name__ == "__main__":
    main()
