#!/usr/bin/python3
"""A process that wants one lock, and says every 10 ms whether it has it. SPDX-License-Identifier: Apache-2.0

usage: holder.py KIND LIBRARY HOSTS PATH SESSION_TIMEOUT_MS

Prints lines "TIME yes|no TOKEN" by the monotonic clock, which all processes of a machine share. The time is taken
before the question, so a process that was stopped in between claims nothing for later. The token is 0 where there is
none. It acquires once. An acquire that fails while it waits, since its session has ended, is called again; a lock that
it had and lost it does not want back.

KIND   divvy           divvy_lock_held() of LIBRARY, which is libdivvy.so
       kazoo           Lock.is_acquired
       kazoo-listener  the same, while the listener that kazoo's documentation asks for has heard neither SUSPENDED nor
                       LOST
       divvy-partitioner, kazoo-partitioner
                       divvy_partitioner_owns(), and SetPartitioner.acquired with the item in the set: of a pool for the
                       item that is the name of the lock, with a time boundary of 1 s. The loop beside it is that of
                       kazoo's documentation. A member that has failed before it had the item is made again
       etcd            `etcdctl lock NAME`, from the key that it prints to its end
       command         it is a command that another program runs while that holds the lock: always yes
"""
import ctypes
import logging
import os
import socket
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True  # the checkout stays as it is
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "interop"))
import lock_member  # noqa: E402
from kazoo.client import KazooClient, KazooState  # noqa: E402
from kazoo.exceptions import KazooException  # noqa: E402

PERIOD_S, AGAIN_S, BOUNDARY_S = 0.01, 0.1, 1.0
ITEM = "item"
CONFIG_WORDS = 28  # 8 bytes each: divvy_client_config of include/divvy/client.h


def member_name():
    """Returns a name for a member of a pool. The first one to start has the lowest, and so kazoo's only item."""
    return "%020d-%d" % (time.monotonic_ns(), os.getpid())


class DivvyClient:
    """A client of divvy's library."""

    def __init__(self, library, hosts, timeout_ms):
        self.lib = lock_member.load(library)
        self.lib.divvy_client_config_init.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        config, name = (ctypes.c_int64 * CONFIG_WORDS)(), ctypes.create_string_buffer(hosts.encode())
        self.lib.divvy_client_config_init(config, ctypes.sizeof(config))
        config[1], config[2] = ctypes.addressof(name), timeout_ms
        self.client = ctypes.c_void_p()
        self._check(self.lib.divvy_client_open(ctypes.byref(self.client), config))
        self._check(self.lib.divvy_client_wait_connected(self.client, 30000))

    def _check(self, error):
        if error:
            sys.exit("divvy: %s" % self.lib.divvy_strerror(error).decode())


class Divvy(DivvyClient):
    """divvy's lock, by the library."""

    def __init__(self, library, hosts, path, timeout_ms):
        super().__init__(library, hosts, timeout_ms)
        self.lock = ctypes.c_void_p()
        lock = lock_member.LockConfig(ctypes.sizeof(lock_member.LockConfig), path.encode(), b"holder")
        self._check(self.lib.divvy_lock_create(ctypes.byref(self.lock), self.client, ctypes.byref(lock)))

    def acquire(self):
        self._check(self.lib.divvy_lock_acquire(self.lock, -1))

    def held(self):
        return self.lib.divvy_lock_held(self.lock)

    def token(self):
        return self.lib.divvy_lock_token(self.lock)


class PartitionerConfig(ctypes.Structure):
    """The head of divvy_partitioner_config, of include/divvy/partitioner_config.h. The rest keeps its defaults."""
    _fields_ = [("size", ctypes.c_size_t), ("path", ctypes.c_char_p), ("items", ctypes.POINTER(ctypes.c_char_p)),
                ("item_count", ctypes.c_size_t), ("identifier", ctypes.c_char_p), ("mode", ctypes.c_int),
                ("assign", ctypes.c_int), ("func", ctypes.c_void_p), ("func_name", ctypes.c_char_p),
                ("items_order", ctypes.c_int), ("time_boundary_ms", ctypes.c_int64)]


class DivvyPartitioner(DivvyClient):
    """divvy's partitioner, by the library."""
    RELEASE, FAILURE = 2, 3  # divvy_partition_state

    def __init__(self, library, hosts, path, timeout_ms):
        super().__init__(library, hosts, timeout_ms)
        for name, result, arguments in [
                ("config_init", None, [ctypes.POINTER(PartitionerConfig), ctypes.c_size_t]),
                ("create", ctypes.c_int, [ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(PartitionerConfig)]),
                ("state", ctypes.c_int, [ctypes.c_void_p]), ("state_id", ctypes.c_uint64, [ctypes.c_void_p]),
                ("wait_change", ctypes.c_int, [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_int64]),
                ("release_set", ctypes.c_int, [ctypes.c_void_p]),
                ("owns", ctypes.c_int, [ctypes.c_void_p, ctypes.c_char_p])]:
            function = getattr(self.lib, "divvy_partitioner_" + name)
            function.restype, function.argtypes = result, arguments
        config = PartitionerConfig()
        self.lib.divvy_partitioner_config_init(config, ctypes.sizeof(config))
        config.path, config.identifier = path.encode(), member_name().encode()
        config.items, config.item_count = (ctypes.c_char_p * 1)(ITEM.encode()), 1
        config.time_boundary_ms = int(BOUNDARY_S * 1000)
        self.config, self.had = config, False
        self._make()

    def _make(self):
        """Makes a member. An older one stays, since another thread may ask it."""
        partitioner = ctypes.c_void_p()
        self._check(self.lib.divvy_partitioner_create(ctypes.byref(partitioner), self.client, self.config))
        self.partitioner = partitioner

    def acquire(self):
        while True:
            state_id = self.lib.divvy_partitioner_state_id(self.partitioner)
            state = self.lib.divvy_partitioner_state(self.partitioner)
            if state == self.FAILURE:
                if self.had:
                    return
                self._make()
            elif state == self.RELEASE:
                self.lib.divvy_partitioner_release_set(self.partitioner)
            else:
                self.lib.divvy_partitioner_wait_change(self.partitioner, state_id, -1)

    def held(self):
        owns = self.lib.divvy_partitioner_owns(self.partitioner, ITEM.encode())
        self.had |= bool(owns)
        return owns

    def token(self):
        return 0


class Kazoo:
    """kazoo's Lock, as its documentation uses it."""

    def __init__(self, _, hosts, path, timeout_ms):
        self.client = KazooClient(hosts, timeout=timeout_ms / 1000)
        self.client.add_listener(self.listen)
        self.client.start(30)
        self.lock = self.client.Lock(path, "holder")

    def listen(self, state):
        """Hears nothing."""

    def acquire(self):
        self.lock.acquire()

    def held(self):
        return self.lock.is_acquired

    def token(self):
        return 0


class KazooListener(Kazoo):
    """kazoo's Lock with the listener: SUSPENDED pauses the work, LOST ends it."""
    state, losses, losses_before = None, 0, None

    def listen(self, state):
        self.state = state
        self.losses += state == KazooState.LOST

    def acquire(self):
        super().acquire()
        self.losses_before = self.losses  # A session that ended while it waited is no loss of the lock.

    def held(self):
        return self.lock.is_acquired and self.state == KazooState.CONNECTED and self.losses == self.losses_before


class KazooPartitioner(Kazoo):
    """kazoo's SetPartitioner, in the loop of its documentation."""

    def __init__(self, library, hosts, path, timeout_ms):
        super().__init__(library, hosts, path, timeout_ms)
        self.path, self.had = path, False
        self._make()

    def _make(self):
        self.partitioner = self.client.SetPartitioner(self.path, (ITEM,), identifier=member_name(),
                                                      time_boundary=BOUNDARY_S)

    def acquire(self):
        while not self.had:
            if self.partitioner.failed:
                self._make()
            self._take_part()

    def _take_part(self):
        partitioner = self.partitioner
        while not partitioner.failed:
            partitioner.state_change_event.clear()  # before the state is looked at, so that no change is missed
            if partitioner.release:
                partitioner.release_set()
            elif partitioner.allocating:
                partitioner.wait_for_acquire(AGAIN_S)
            else:
                partitioner.state_change_event.wait()

    def held(self):
        partitioner = self.partitioner
        owns = partitioner.acquired and ITEM in list(partitioner)
        self.had |= owns
        return owns


class Etcd:
    """`etcdctl lock` without a command: it holds from the line with its key on until it ends."""

    def __init__(self, _, hosts, path, timeout_ms):
        self.words = ["setpriv", "--pdeathsig", "KILL", "--", "etcdctl", "--endpoints", hosts, "lock", "--ttl",
                      str(timeout_ms // 1000), path]
        self.process, self.printed = None, False

    def acquire(self):
        self.process = subprocess.Popen(self.words, stdout=subprocess.PIPE, text=True)
        self.printed = bool(self.process.stdout.readline())
        if not self.printed:
            raise ConnectionError("etcdctl ended before it had the lock")

    def held(self):
        return self.printed and self.process.poll() is None

    def token(self):
        return 0


class Command:
    """What runs has the lock, or should."""

    def __init__(self, *_):
        pass

    def acquire(self):
        pass

    def held(self):
        return True

    def token(self):
        return 0


KINDS = {"divvy": Divvy, "divvy-partitioner": DivvyPartitioner, "kazoo": Kazoo, "kazoo-listener": KazooListener,
         "kazoo-partitioner": KazooPartitioner, "etcd": Etcd, "command": Command}


def acquire(holder):
    """Acquires, and tries again where a session ended before."""
    while True:
        try:
            holder.acquire()
            threading.Event().wait()  # The thread stays, since etcdctl dies with the thread that has started it.
        except (KazooException, ConnectionError) as error:
            print("holder: acquires again after %r" % error, file=sys.stderr)
            time.sleep(AGAIN_S)


def connect_store():
    """Returns the store of HOLDERS_STORE, to which a holder writes at each poll; None without it."""
    if "HOLDERS_STORE" not in os.environ:
        return None
    store = socket.socket(socket.AF_UNIX)
    store.connect(os.environ["HOLDERS_STORE"])
    return store.makefile("rw")


def main():
    logging.basicConfig(level=logging.CRITICAL)
    kind, library, hosts, path, timeout_ms = sys.argv[1:]
    holder, store = KINDS[kind](library, hosts, path, int(timeout_ms)), connect_store()
    threading.Thread(target=acquire, args=(holder,), daemon=True).start()
    due = time.monotonic()
    while True:
        now = time.monotonic()
        token = holder.token()
        held = holder.held()
        print("%.6f %s %d" % (now, "yes" if held else "no", token), flush=True)
        if store and held and token:
            store.write("%d\n" % token)
            store.flush()
            store.readline()
        due = max(due + PERIOD_S, time.monotonic())
        time.sleep(max(0, due - time.monotonic()))


if __name__ == "__main__":
    sys.exit(main())
