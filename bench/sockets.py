"""What the TCP connections of this machine have carried, from the kernel.  SPDX-License-Identifier: Apache-2.0"""
import os
import socket
import struct
from collections import namedtuple

NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY, REQUEST_DUMP = 4, 20, 0x301
DONE, FAILED, ESTABLISHED, INFO = 3, 2, 1, 2
HEADER, MESSAGE_BYTES, INODE_AT = struct.Struct("=IHHII"), 72, 68
ACKED_AT, RECEIVED_AT = 120, 128  # in struct tcp_info

# `key` is one connection's for as long as it lives; bytes are those of the streams, without headers.
Connection = namedtuple("Connection", "key port peer_port inode sent received")


def messages(answer):
    while answer:
        length, kind, _, _, _ = HEADER.unpack_from(answer)
        yield kind, answer[HEADER.size:length]
        answer = answer[(length + 3) & ~3:]


def attribute(body, wanted):
    at = MESSAGE_BYTES
    while at + 4 <= len(body):
        length, kind = struct.unpack_from("=HH", body, at)
        if kind == wanted:
            return body[at + 4:at + length]
        at += (length + 3) & ~3
    return b""


def connections():
    """Yields each established connection over IPv4, once for each of its ends on this machine."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_SOCK_DIAG) as link:
        request = struct.pack("=BBBBI48x", socket.AF_INET, socket.IPPROTO_TCP, 1 << (INFO - 1), 0, 1 << ESTABLISHED)
        link.send(HEADER.pack(HEADER.size + len(request), SOCK_DIAG_BY_FAMILY, REQUEST_DUMP, 1, 0) + request)
        while True:
            for kind, body in messages(link.recv(1 << 20)):
                if kind == DONE:
                    return
                if kind == FAILED:
                    raise OSError(-struct.unpack_from("=i", body)[0], "the kernel does not tell of sockets")
                port, peer_port = struct.unpack_from("!HH", body, 4)
                info = attribute(body, INFO)
                if len(info) >= RECEIVED_AT + 8:
                    sent, received = struct.unpack_from("=QQ", info, ACKED_AT)
                    yield Connection(body[44:52], port, peer_port, struct.unpack_from("=I", body, INODE_AT)[0], sent,
                                     received)


def inodes(pid):
    """Returns the inodes of a process's sockets; none if it has gone."""
    folder, found = "/proc/%d/fd" % pid, set()
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return found
    for name in names:
        try:
            where = os.readlink(os.path.join(folder, name))
        except FileNotFoundError:
            continue
        if where.startswith("socket:["):
            found.add(int(where[len("socket:["):-1]))
    return found
