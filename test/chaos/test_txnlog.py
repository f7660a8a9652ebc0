#!/usr/bin/python3
"""The reader of transaction logs, and of what names say. SPDX-License-Identifier: Apache-2.0"""

import os
import struct
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from rules import slots_of  # noqa: E402
from txnlog import Truth, read_logs  # noqa: E402

WALL = 1_000_000
SESSION = 0xa1


def record(zxid, kind, body, session=SESSION):
    data = struct.pack('>qiqqi', session, 1, zxid, WALL, kind) + body
    return struct.pack('>qi', 0, len(data)) + data + b'B'


def text(value):
    return struct.pack('>i', len(value)) + value.encode()


def create(path):
    return text(path) + text('data') + struct.pack('>i', 0) + b'\x01' + struct.pack('>i', 0)


class Logs(unittest.TestCase):
    def write(self, directory, server, *records):
        self.write_below(os.path.join(directory, f'server{server}', 'data', 'version-2'), *records)

    def write_below(self, folder, *records):
        os.makedirs(folder)
        with open(os.path.join(folder, 'log.1'), 'wb') as file:
            file.write(b'ZKLG' + bytes(12) + b''.join(records))

    # Parts of three servers make a whole; half a record and zeros end a file; a failed multi has done nothing.
    def test_read(self):
        sub = create('/b')
        good = struct.pack('>iii', 1, 1, len(sub)) + sub
        failed = struct.pack('>iii', 2, 1, len(sub)) + sub + struct.pack('>iii', -1, 4, -101)
        with tempfile.TemporaryDirectory() as directory:
            self.write(directory, 1, record(1, 1, create('/a')), record(2, 14, good), bytes(100))
            self.write(directory, 2, record(2, 14, good), record(3, 14, failed), record(4, 2, text('/a'))[:30])
            self.write(directory, 3, record(4, -11, b''))
            txns, conflicts = read_logs(directory)
        self.assertEqual([t.zxid for t in txns], [1, 2, 3, 4])
        self.assertEqual([[(op.kind, op.path) for op in t.ops] for t in txns],
                         [[('create', '/a')], [('create', '/b')], [], [('close', None)]])
        self.assertEqual((txns[0].ops[0].data, txns[0].ops[0].ephemeral, conflicts), (b'data', True, []))
        self.assertTrue(all(n.end_kind == 'closed' for n in Truth(txns).nodes))

    # What one server proposed, and the others went on without, was never committed, though it stands in its log; but
    # for what another may have got by a snapshot.
    def test_never_committed(self):
        first, lost, later = 1 << 32, 1 << 32 | 1, 2 << 32 | 1
        for snapshot in (False, True):
            with tempfile.TemporaryDirectory() as directory:
                self.write(directory, 1, record(first, 1, create('/a')), record(later, 1, create('/c')))
                self.write(directory, 2, record(first, 1, create('/a')), record(lost, 1, create('/b')))
                if snapshot:
                    open(os.path.join(directory, 'server1', 'data', 'snapshot.%x' % lost), 'wb').close()
                self.assertEqual([t.zxid for t in read_logs(directory)[0]],
                                 [first, lost, later] if snapshot else [first, later])

    # A disk that has failed tells what was committed before, and its holes say nothing.
    def test_failed_disk(self):
        first, second, later = 1 << 32, 1 << 32 | 1, 2 << 32 | 1
        with tempfile.TemporaryDirectory() as directory:
            self.write(directory, 1, record(second, 1, create('/b')), record(later, 1, create('/c')))
            self.write_below(os.path.join(directory, 'disk.0'), record(first, 1, create('/a')),
                             record(later, 1, create('/c')))
            self.assertEqual([t.zxid for t in read_logs(directory)[0]], [first, second, later])

    # Two servers that do not agree.
    def test_conflict(self):
        with tempfile.TemporaryDirectory() as directory:
            self.write(directory, 1, record(1, 1, create('/a')))
            self.write(directory, 2, record(1, 2, text('/a')))
            self.assertEqual(read_logs(directory)[1], [1])

    def test_slots(self):
        self.assertEqual(slots_of('abc,n=1,c=2'), [1, 2])
        self.assertEqual(slots_of('abc,n=0,c=4,x=3+1.9+0'), [0, 3, 4, 9])
        self.assertIsNone(slots_of('0123'))


if __name__ == '__main__':
    unittest.main()
