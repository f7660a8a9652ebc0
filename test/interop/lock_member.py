#!/usr/bin/python3
"""A process that acquires one lock again and again: divvy's, by libdivvy.so, or kazoo's own.

usage: lock_member.py divvy|kazoo LIBRARY HOSTS PATH MODE IDENTIFIER COUNT SEED

MODE is exclusive, read or write. It prints a JSON line for each time that it held the lock: "begin" and "end", times of
the monotonic clock between which it did, and "token", the czxid of its node. Reads "go" from its standard input first,
once it has printed "ready".

SPDX-License-Identifier: Apache-2.0
"""
import ctypes
import json
import os
import random
import sys
import time

from kazoo.client import KazooClient
from kazoo.exceptions import LockTimeout

MODES = {"exclusive": 0, "read": 1, "write": 2}
ETIMEDOUT, EBUSY = -3, -18
ON_LOST = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)


class LockConfig(ctypes.Structure):
    """divvy_lock_config of include/divvy/lock.h."""
    _fields_ = [("size", ctypes.c_size_t), ("path", ctypes.c_char_p), ("identifier", ctypes.c_char_p),
                ("mode", ctypes.c_int), ("on_lost", ON_LOST), ("user", ctypes.c_void_p)]


def load(library):
    lib = ctypes.CDLL(library)
    pointer, ms = ctypes.c_void_p, ctypes.c_int64
    for name, result, arguments in [
            ("divvy_client_open", ctypes.c_int, [ctypes.POINTER(pointer), pointer]),
            ("divvy_client_close", None, [pointer]), ("divvy_client_wait_connected", ctypes.c_int, [pointer, ms]),
            ("divvy_strerror", ctypes.c_char_p, [ctypes.c_int]),
            ("divvy_lock_create", ctypes.c_int, [ctypes.POINTER(pointer), pointer, ctypes.POINTER(LockConfig)]),
            ("divvy_lock_acquire", ctypes.c_int, [pointer, ms]), ("divvy_lock_release", ctypes.c_int, [pointer]),
            ("divvy_lock_held", ctypes.c_int, [pointer]), ("divvy_lock_token", ctypes.c_int64, [pointer]),
            ("divvy_lock_contenders", ctypes.c_int, [pointer, ctypes.POINTER(pointer), ms]),
            ("divvy_lock_destroy", None, [pointer]), ("divvy_strings_count", ctypes.c_size_t, [pointer]),
            ("divvy_strings_get", ctypes.c_char_p, [pointer, ctypes.c_size_t]),
            ("divvy_strings_free", None, [pointer])]:
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    return lib


class DivvyLock:
    """divvy's lock on a client of its own."""

    def __init__(self, library, hosts, path, mode, identifier):
        os.environ["DIVVY_CONNECT"] = hosts
        self.lib = load(library)
        self.client, self.lock, self.lost = ctypes.c_void_p(), ctypes.c_void_p(), 0
        self.on_lost = ON_LOST(self._count)
        self._check(self.lib.divvy_client_open(ctypes.byref(self.client), None))
        self._check(self.lib.divvy_client_wait_connected(self.client, 30000))
        config = LockConfig(ctypes.sizeof(LockConfig), path.encode(), identifier.encode(), MODES[mode], self.on_lost,
                            None)
        self._check(self.lib.divvy_lock_create(ctypes.byref(self.lock), self.client, ctypes.byref(config)))

    def _count(self, _lock, _user):
        self.lost += 1

    def _check(self, error):
        if error:
            raise RuntimeError("divvy: %s" % self.lib.divvy_strerror(error).decode())

    def acquire(self, timeout_s):
        """Whether it is held now. None: for ever; 0: a try."""
        error = self.lib.divvy_lock_acquire(self.lock, -1 if timeout_s is None else int(timeout_s * 1000))
        if error not in (ETIMEDOUT, EBUSY):
            self._check(error)
        return error == 0

    def token(self):
        return self.lib.divvy_lock_token(self.lock)

    def release(self):
        self._check(self.lib.divvy_lock_release(self.lock))

    def contenders(self):
        strings = ctypes.c_void_p()
        self._check(self.lib.divvy_lock_contenders(self.lock, ctypes.byref(strings), 30000))
        found = [self.lib.divvy_strings_get(strings, i).decode() for i in range(self.lib.divvy_strings_count(strings))]
        self.lib.divvy_strings_free(strings)
        return found

    def close(self):
        self.lib.divvy_lock_destroy(self.lock)
        self.lib.divvy_client_close(self.client)


class KazooLock:
    """kazoo's lock on a client of its own."""

    def __init__(self, hosts, path, mode, identifier):
        self.client = KazooClient(hosts, timeout=30)
        self.client.start(60)
        kind = {"exclusive": self.client.Lock, "read": self.client.ReadLock, "write": self.client.WriteLock}[mode]
        self.lock, self.mode, self.lost = kind(path, identifier), mode, 0

    def acquire(self, timeout_s):
        if self.mode == "read":  # kazoo #649: a reader that waits can wait for a writer behind it, which waits for it
            deadline = None if timeout_s is None else time.monotonic() + timeout_s
            while not self.lock.acquire(blocking=False):
                if deadline is not None and time.monotonic() >= deadline:
                    return False
                time.sleep(0.002)
            return True
        try:
            return self.lock.acquire(blocking=timeout_s != 0, timeout=timeout_s or None)
        except LockTimeout:
            return False

    def token(self):
        return self.client.exists(self.lock.path + "/" + self.lock.node).czxid

    def release(self):
        self.lock.release()

    def contenders(self):
        return self.lock.contenders()

    def close(self):
        self.client.stop()
        self.client.close()


def open_lock(kind, library, hosts, path, mode, identifier):
    if kind == "divvy":
        return DivvyLock(library, hosts, path, mode, identifier)
    return KazooLock(hosts, path, mode, identifier)


def main():
    kind, library, hosts, path, mode, identifier, count, seed = sys.argv[1:]
    chance = random.Random(seed + identifier)
    lock = open_lock(kind, library, hosts, path, mode, identifier)
    print("ready", flush=True)
    sys.stdin.readline()
    held = 0
    while held < int(count):
        if lock.acquire(chance.choice([None, None, None, 0, 0.005, 0.5])):
            begin, token = time.monotonic(), lock.token()
            time.sleep(chance.choice([0, 0, 0.0005, 0.003]))
            line = {"begin": begin, "end": time.monotonic(), "token": token}
            lock.release()
            print(json.dumps(line), flush=True)
            held += 1
        time.sleep(chance.choice([0, 0, 0.001, 0.01]))
    lost = lock.lost
    lock.close()
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
