#!/usr/bin/python3
"""A process that acquires a slot of one semaphore again and again: divvy's, by libdivvy.so, or kazoo's own.

usage: semaphore_member.py divvy|kazoo LIBRARY HOSTS PATH LIMIT IDENTIFIER COUNT SEED

It prints a JSON line for each time that it held a slot: "begin" and "end", times of the monotonic clock between which
it did, "token", the czxid of its node, and "slot", -1 for kazoo, whose slots have no number. Reads "go" from its
standard input first, once it has printed "ready".

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

POLICIES = {"error": 0, "stored": 1, "provided": 2}
ETIMEDOUT, EDIFFERS, EBUSY, ESTATE = -3, -29, -18, -5
ON_LOST = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)


class SemaphoreConfig(ctypes.Structure):
    """divvy_semaphore_config of include/divvy/semaphore.h."""
    _fields_ = [("size", ctypes.c_size_t), ("path", ctypes.c_char_p), ("identifier", ctypes.c_char_p),
                ("limit", ctypes.c_uint32), ("count", ctypes.c_uint32), ("limit_policy", ctypes.c_int),
                ("on_lost", ON_LOST), ("user", ctypes.c_void_p)]


def load(library):
    lib = ctypes.CDLL(library)
    pointer, ms, number = ctypes.c_void_p, ctypes.c_int64, ctypes.c_size_t
    to_pointer = ctypes.POINTER(pointer)
    for name, result, arguments in [
            ("client_open", ctypes.c_int, [to_pointer, pointer]), ("client_close", None, [pointer]),
            ("client_wait_connected", ctypes.c_int, [pointer, ms]), ("client_error", ctypes.c_char_p, [pointer]),
            ("semaphore_create", ctypes.c_int, [to_pointer, pointer, ctypes.POINTER(SemaphoreConfig)]),
            ("semaphore_acquire", ctypes.c_int, [pointer, ms]), ("semaphore_release", ctypes.c_int, [pointer]),
            ("semaphore_slot", ctypes.c_int, [pointer]), ("semaphore_token", ctypes.c_int64, [pointer]),
            ("semaphore_resize", ctypes.c_int, [pointer, ctypes.c_uint32, ms]),
            ("semaphore_holders", ctypes.c_int, [pointer, to_pointer, ms]),
            ("semaphore_contenders", ctypes.c_int, [pointer, to_pointer, ms]), ("semaphore_destroy", None, [pointer]),
            ("holders_count", number, [pointer]), ("holders_identifier", ctypes.c_char_p, [pointer, number]),
            ("holders_slot", ctypes.c_int, [pointer, number]), ("holders_free", None, [pointer])]:
        function = getattr(lib, "divvy_" + name)
        function.restype, function.argtypes = result, arguments
    return lib


class DivvyError(Exception):
    """What a call returned, with what it says of that."""

    def __init__(self, error, text):
        super().__init__("divvy: %d, %s" % (error, text))
        self.error = error


class DivvySemaphore:
    """divvy's semaphore on a client of its own."""

    def __init__(self, library, hosts, path, limit, identifier, count=1, policy="error"):
        os.environ["DIVVY_CONNECT"] = hosts
        self.lib = load(library)
        self.client, self.semaphore, self.lost = ctypes.c_void_p(), ctypes.c_void_p(), 0
        self.on_lost = ON_LOST(self._count)
        self._check(self.lib.divvy_client_open(ctypes.byref(self.client), None))
        self._check(self.lib.divvy_client_wait_connected(self.client, 30000))
        config = SemaphoreConfig(ctypes.sizeof(SemaphoreConfig), path.encode(), identifier.encode(), limit, count,
                                 POLICIES[policy], self.on_lost, None)
        self._check(self.lib.divvy_semaphore_create(ctypes.byref(self.semaphore), self.client, ctypes.byref(config)))

    def _count(self, _semaphore, _user):
        self.lost += 1

    def _check(self, error):
        if error:
            raise DivvyError(error, self.lib.divvy_client_error(self.client).decode())

    def acquire(self, timeout_s):
        """Whether a slot is held now. None: for ever; 0: a try."""
        error = self.lib.divvy_semaphore_acquire(self.semaphore, -1 if timeout_s is None else int(timeout_s * 1000))
        if error not in (ETIMEDOUT, EBUSY):
            self._check(error)
        return error == 0

    def token(self):
        return self.lib.divvy_semaphore_token(self.semaphore)

    def slot(self):
        return self.lib.divvy_semaphore_slot(self.semaphore)

    def release(self):
        self._check(self.lib.divvy_semaphore_release(self.semaphore))

    def resize(self, limit):
        self._check(self.lib.divvy_semaphore_resize(self.semaphore, limit, 30000))

    def _list(self, ask):
        found = ctypes.c_void_p()
        self._check(ask(self.semaphore, ctypes.byref(found), 30000))
        names = [self.lib.divvy_holders_identifier(found, i).decode()
                 for i in range(self.lib.divvy_holders_count(found))]
        self.lib.divvy_holders_free(found)
        return names

    def holders(self):
        return self._list(self.lib.divvy_semaphore_holders)

    def contenders(self):
        return self._list(self.lib.divvy_semaphore_contenders)

    def close(self):
        self.lib.divvy_semaphore_destroy(self.semaphore)
        self.lib.divvy_client_close(self.client)


class KazooSemaphore:
    """kazoo's semaphore on a client of its own."""

    def __init__(self, hosts, path, limit, identifier):
        self.client = KazooClient(hosts, timeout=30)
        self.client.start(60)
        self.semaphore, self.lost = self.client.Semaphore(path, identifier, max_leases=limit), 0

    def acquire(self, timeout_s):
        try:
            return self.semaphore.acquire(blocking=timeout_s != 0, timeout=timeout_s or None)
        except LockTimeout:
            return False

    def token(self):
        return self.client.exists(self.semaphore.create_path).czxid

    def slot(self):
        return -1

    def release(self):
        self.semaphore.release()

    def holders(self):
        """The identifiers, out of divvy's records too, as a reader of kazoo's list would take them."""
        return [json.loads(text)["id"] if text.startswith("{") else text for text in self.semaphore.lease_holders()]

    def contenders(self):
        texts = self.client.Lock(self.semaphore.lock_path).contenders()
        return [json.loads(text)["id"] if text.startswith("{") else text[2:-1] for text in texts]

    def close(self):
        self.client.stop()
        self.client.close()


def open_semaphore(kind, library, hosts, path, limit, identifier):
    if kind == "divvy":
        return DivvySemaphore(library, hosts, path, limit, identifier)
    return KazooSemaphore(hosts, path, limit, identifier)


def main():
    kind, library, hosts, path, limit, identifier, count, seed = sys.argv[1:]
    chance = random.Random(seed + identifier)
    semaphore = open_semaphore(kind, library, hosts, path, int(limit), identifier)
    print("ready", flush=True)
    sys.stdin.readline()
    held = 0
    while held < int(count):
        if semaphore.acquire(chance.choice([None, None, None, 0, 0.005, 0.5])):
            line = {"begin": time.monotonic(), "token": semaphore.token(), "slot": semaphore.slot()}
            time.sleep(chance.choice([0, 0, 0.0005, 0.003, 0.01]))
            line["end"] = time.monotonic()
            semaphore.release()
            print(json.dumps(line), flush=True)
            held += 1
        time.sleep(chance.choice([0, 0, 0.001, 0.005]))
    lost = semaphore.lost
    semaphore.close()
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
