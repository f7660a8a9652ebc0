#!/usr/bin/python3
"""A disk that can be made slow, for test/holders/run. SPDX-License-Identifier: Apache-2.0

usage: disk.py SOCKET COMMAND [ARGUMENT...]

Runs COMMAND so that the kernel asks the listener of SOCKET before each fsync() and fdatasync() of it and of all that
descend from it (seccomp's user notification, Linux 5.5). The listener, a Disk, lets each of them go on, after a while
where the disk is slow. It needs no privilege, and works for programs that do not use the C library, as Go's.
"""
import ctypes
import errno
import fcntl
import os
import platform
import select
import socket
import struct
import sys
import threading

PYTHON = "/usr/bin/python3"
PR_SET_NO_NEW_PRIVS, SECCOMP_SET_MODE_FILTER, NEW_LISTENER, CONTINUE = 38, 1, 8, 1
RECEIVE, SEND, NOTICE_BYTES = 0xC0502100, 0xC0182101, 80
ALLOW, ASK = 0x7FFF0000, 0x7FC00000
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06  # instructions of the filter
CALLS = {"x86_64": (317, 74, 75), "aarch64": (277, 82, 83)}  # seccomp, fsync, fdatasync


class Disk:
    """Lets flushes go on, each after slow_s seconds."""

    def __init__(self, path):
        self.path, self.slow_s, self.flushes, self.slowed = path, 0.0, 0, 0
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def wrap(self, words):
        return [PYTHON, "-B", os.path.abspath(__file__), self.path, *words]

    def _accept(self):
        while True:
            connection = self.listener.accept()[0]
            notices = socket.recv_fds(connection, 1, 1)[1]
            connection.close()
            for fd in notices:
                threading.Thread(target=self._serve, args=(fd,), daemon=True).start()

    def _serve(self, fd):
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        while poll.poll()[0][1] & select.POLLIN:  # until all of the processes have ended
            notice = bytearray(NOTICE_BYTES)
            try:
                fcntl.ioctl(fd, RECEIVE, notice, True)
            except OSError as error:
                if error.errno not in (errno.ENOENT, errno.EINTR):
                    raise
                continue  # The process was killed.
            number, delay_s = struct.unpack_from("Q", notice)[0], self.slow_s
            self.flushes += 1
            self.slowed += delay_s > 0
            if delay_s:
                threading.Timer(delay_s, self._let_go, (fd, number)).start()
            else:
                self._let_go(fd, number)

    @staticmethod
    def _let_go(fd, number):
        try:
            fcntl.ioctl(fd, SEND, struct.pack("QqiI", number, 0, 0, CONTINUE))
        except OSError as error:
            if error.errno != errno.ENOENT:  # The process was killed.
                raise


class Instruction(ctypes.Structure):
    """struct sock_filter"""
    _fields_ = [("code", ctypes.c_uint16), ("jump_true", ctypes.c_uint8), ("jump_false", ctypes.c_uint8),
                ("value", ctypes.c_uint32)]


class Program(ctypes.Structure):
    """struct sock_fprog"""
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.POINTER(Instruction))]


def ask_before_flushes():
    """Sets this process's filter, for good. Returns the descriptor that answers the kernel's questions."""
    seccomp, *flushes = CALLS[platform.machine()]
    libc = ctypes.CDLL(None, use_errno=True)
    lines = [(LOAD, 0, 0, 0), (EQUAL, 1, 0, flushes[0]), (EQUAL, 0, 1, flushes[1]), (RETURN, 0, 0, ASK),
             (RETURN, 0, 0, ALLOW)]
    program = Program(len(lines), (Instruction * len(lines))(*[Instruction(*line) for line in lines]))
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")
    fd = libc.syscall(seccomp, SECCOMP_SET_MODE_FILTER, NEW_LISTENER, ctypes.byref(program))
    if fd < 0:
        raise OSError(ctypes.get_errno(), "seccomp")
    return fd


def main():
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(sys.argv[1])
    socket.send_fds(connection, [b"x"], [ask_before_flushes()])
    os.execvp(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
