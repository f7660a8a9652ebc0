"""ZooKeeper's transaction logs as the truth: what was committed, in the order of the zxids. SPDX-License-Identifier:
Apache-2.0

A log file is a header and records: a checksum of 8 bytes, a length, as many bytes, and the letter B. Behind the last
one there are zeros, for files are made longer in advance, or half a record, of a server that was killed while it wrote.

Of three servers each has a part: one that was too far behind got a snapshot in place of what it had missed. What was
proposed and never committed is cut off its log when a server joins the others again, unless it gets a snapshot: then it
stays there. So the whole is what any of them has, but for what another server, whose log goes on without a break in a
later epoch, does not have: what was committed is in all later epochs. Where two have the same zxid it must be the same
transaction. A disk that has failed may lack some of the middle, so that nothing follows from what it lacks.
"""

import glob
import os
import struct

CREATE, DELETE, SET_DATA, CHECK, MULTI, CREATE2 = 1, 2, 5, 13, 14, 15
CREATE_CONTAINER, CREATE_TTL = 19, 21
OPEN_SESSION, CLOSE_SESSION, ERROR = -10, -11, -1
HEADER_BYTES = 32  # session, cxid, zxid, time, kind
CREATES = (CREATE, CREATE2, CREATE_CONTAINER, CREATE_TTL)


class Op:
    """One change within a transaction."""

    def __init__(self, kind, path=None, data=b'', ephemeral=False):
        self.kind, self.path, self.data, self.ephemeral = kind, path, data, ephemeral


class Txn:
    """A transaction. The cxid of a session's end is 0 if the leader expired it."""

    def __init__(self, zxid, session, cxid, time_ms, ops):
        self.zxid, self.session, self.cxid, self.time_ms, self.ops = zxid, session, cxid, time_ms, ops


class Reader:
    """Reads the fields of a record."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, form):
        values = struct.unpack_from(form, self.data, self.at)
        self.at += struct.calcsize(form)
        return values[0]

    def int(self):
        return self.take('>i')

    def long(self):
        return self.take('>q')

    def buffer(self):
        size = self.int()
        if size < 0:
            return b''
        if self.at + size > len(self.data):
            raise struct.error('a buffer is longer than its record')
        self.at += size
        return bytes(self.data[self.at - size:self.at])

    def text(self):
        return self.buffer().decode()


def read_ops(kind, reader):
    """The changes of a transaction's body."""
    if kind in CREATES:
        path, data = reader.text(), reader.buffer()
        for _ in range(reader.int()):
            reader.int(), reader.text(), reader.text()
        ephemeral = kind in (CREATE, CREATE2) and reader.take('>?')
        return [Op('create', path, data, ephemeral)]
    if kind == DELETE:
        return [Op('delete', reader.text())]
    if kind == SET_DATA:
        return [Op('set', reader.text(), reader.buffer())]
    if kind == OPEN_SESSION:
        return [Op('open')]
    if kind == CLOSE_SESSION:
        return [Op('close')]
    if kind == MULTI:
        # One that has failed keeps the operations before the one that failed, and none of them was applied.
        parts = [(reader.int(), reader.buffer()) for _ in range(reader.int())]
        failed = any(part == ERROR for part, _ in parts)
        return [] if failed else [op for part, body in parts for op in read_ops(part, Reader(body))]
    return []


def read_record(data):
    reader = Reader(data)
    session, cxid, zxid, time_ms, kind = (reader.long(), reader.int(), reader.long(), reader.long(), reader.int())
    return Txn(zxid, session & (1 << 64) - 1, cxid, time_ms, read_ops(kind, reader))


def read_file(path):
    """Yields (zxid, bytes of the record) of one log, as far as it goes."""
    with open(path, 'rb') as file:
        data = memoryview(file.read())
    at = 16
    while at + 12 <= len(data):
        size = struct.unpack_from('>i', data, at + 8)[0]
        end = at + 12 + size
        if size <= 0 or end >= len(data) or data[end] != 0x42:
            return
        record = bytes(data[at + 12:end])
        yield struct.unpack_from('>q', record, 12)[0], record
        at = end + 1


def gaps_of(server, zxids):
    """Yields (a, b) where the server went on from zxid a into the epoch that begins at b, by its log alone."""
    names = glob.glob(os.path.join(server, '**', 'snapshot.*'), recursive=True)
    snapshots = [int(name.rsplit('.', 1)[1], 16) for name in names]
    for before, after in zip(zxids, zxids[1:]):
        if before >> 32 != after >> 32 and not any(before < zxid < after for zxid in snapshots):
            yield before, after >> 32 << 32


def read_logs(directory):
    """All transactions of a round's folder, by zxid; and zxids for which two servers have different ones. Disks that
    failed are in disk.N."""
    records, conflicts, gaps = {}, [], []
    servers = sorted(glob.glob(os.path.join(directory, 'server*')))
    for place in servers + sorted(glob.glob(os.path.join(directory, 'disk.*'))):
        own = set()
        for path in sorted(glob.glob(os.path.join(place, '**', 'log.*'), recursive=True)):
            for zxid, record in read_file(path):
                own.add(zxid)
                # Behind the header a server may have written down a failed multi in another way.
                if records.setdefault(zxid, record)[:HEADER_BYTES] != record[:HEADER_BYTES]:
                    conflicts.append(zxid)
        if place in servers:
            gaps += gaps_of(place, sorted(own))
    kept = [zxid for zxid in sorted(records) if not any(a < zxid < b for a, b in gaps)]
    return [read_record(records[zxid]) for zxid in kept], conflicts


class Version:
    """What stood in a node, from a zxid on."""

    def __init__(self, txn, data):
        self.zxid, self.time_ms, self.data, self.until_ms = txn.zxid, txn.time_ms, data, None


class Node:
    """One life of a node. `end_kind` is delete, expired, or closed; None while it lives."""

    def __init__(self, txn, op):
        self.path, self.owner = op.path, txn.session if op.ephemeral else 0
        self.czxid, self.created_ms = txn.zxid, txn.time_ms
        self.end_zxid = self.end_ms = self.end_kind = self.ended_by = None
        self.versions = [Version(txn, op.data)]

    @property
    def name(self):
        return self.path.rsplit('/', 1)[1]


class Truth:
    """All nodes and sessions that ever were, from transactions in their order."""

    def __init__(self, txns):
        self.txns, self.nodes, self.alive, self.sessions = txns, [], {}, {}
        self.by_parent = {}
        self.foreign = []  # (txn, node): an ephemeral node of another session was deleted
        for txn in txns:
            for op in txn.ops:
                self.apply(txn, op)

    def apply(self, txn, op):
        if op.kind == 'create':
            node = Node(txn, op)
            self.alive[op.path] = node
            self.nodes.append(node)
            self.by_parent.setdefault(op.path.rsplit('/', 1)[0], []).append(node)
        elif op.kind == 'delete' and op.path in self.alive:
            node = self.alive[op.path]
            if node.owner != txn.session:
                self.foreign.append((txn, node))
            self.end(node, txn, 'deleted')
        elif op.kind == 'set' and op.path in self.alive:
            versions = self.alive[op.path].versions
            versions[-1].until_ms = txn.time_ms
            versions.append(Version(txn, op.data))
        elif op.kind == 'open':
            self.sessions.setdefault(txn.session, [txn, None])
        elif op.kind == 'close':
            self.sessions.setdefault(txn.session, [None, None])[1] = txn
            for node in [n for n in self.alive.values() if n.owner == txn.session]:
                self.end(node, txn, 'expired' if txn.cxid == 0 else 'closed')

    def end(self, node, txn, kind):
        node.end_zxid, node.end_ms, node.end_kind, node.ended_by = txn.zxid, txn.time_ms, kind, txn.session
        node.versions[-1].until_ms = txn.time_ms
        del self.alive[node.path]

    def children(self, path):
        return self.by_parent.get(path, [])
