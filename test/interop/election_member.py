"""Candidates of divvy, kazoo and Curator, in one shape. SPDX-License-Identifier: Apache-2.0

Each has open, leads(), leader() (who it says leads; None: nobody) and close().
"""
import ctypes
import os
import threading

from kazoo.client import KazooClient

from harness import HERE, check
from registry_harness import JAVA, Peer

LOCK, LATCH = 0, 1
POINTER, MS = ctypes.c_void_p, ctypes.c_int64
ON_ELECTED = ctypes.CFUNCTYPE(None, POINTER, ctypes.c_int64, POINTER)
ON_LOST = ctypes.CFUNCTYPE(None, POINTER, POINTER)
ON_LEADER = ctypes.CFUNCTYPE(None, POINTER, POINTER, POINTER)
ON_STEP_DOWN = ctypes.CFUNCTYPE(None, POINTER, ctypes.c_char_p, ctypes.c_size_t, POINTER)
ON_FAILED = ctypes.CFUNCTYPE(None, POINTER, ctypes.c_int, POINTER)


class Config(ctypes.Structure):
    """divvy_election_config of include/divvy/election.h."""
    _fields_ = [("size", ctypes.c_size_t), ("path", ctypes.c_char_p), ("data", ctypes.c_char_p),
                ("names", ctypes.c_int), ("preference", ctypes.c_int), ("container", ctypes.c_int),
                ("on_elected", ON_ELECTED), ("on_lost", ON_LOST), ("on_leader", ON_LEADER),
                ("on_step_down", ON_STEP_DOWN), ("on_failed", ON_FAILED), ("user", POINTER)]


class Leader(ctypes.Structure):
    """divvy_leader."""
    _fields_ = [("token", ctypes.c_int64), ("data", ctypes.c_char_p), ("data_bytes", ctypes.c_size_t)]


def load(library):
    lib = ctypes.CDLL(library)
    for name, result, arguments in [
            ("divvy_client_open", ctypes.c_int, [ctypes.POINTER(POINTER), POINTER]),
            ("divvy_client_close", None, [POINTER]), ("divvy_client_wait_connected", ctypes.c_int, [POINTER, MS]),
            ("divvy_strerror", ctypes.c_char_p, [ctypes.c_int]),
            ("divvy_election_create", ctypes.c_int, [ctypes.POINTER(POINTER), POINTER, ctypes.POINTER(Config)]),
            ("divvy_election_stand", ctypes.c_int, [POINTER]), ("divvy_election_resign", ctypes.c_int, [POINTER]),
            ("divvy_election_leads", ctypes.c_int, [POINTER]), ("divvy_election_token", ctypes.c_int64, [POINTER]),
            ("divvy_election_leader", ctypes.c_int, [POINTER, ctypes.POINTER(ctypes.POINTER(Leader)), MS]),
            ("divvy_election_ask_step_down", ctypes.c_int, [POINTER, MS]),
            ("divvy_leader_free", None, [ctypes.POINTER(Leader)]), ("divvy_election_destroy", None, [POINTER])]:
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    return lib


class Divvy:
    """divvy's election on a client of its own. It agrees to step down, and stands again."""

    def __init__(self, library, hosts, path, name, names=LOCK, preference=0):
        os.environ["DIVVY_CONNECT"] = hosts
        self.lib, self.name, self.asked_by = load(library), name, []
        self.client, self.election = POINTER(), POINTER()
        self._check(self.lib.divvy_client_open(ctypes.byref(self.client), None))
        self._check(self.lib.divvy_client_wait_connected(self.client, 30000))
        self.on_step_down = ON_STEP_DOWN(self._agree)  # which must live as long
        config = Config(ctypes.sizeof(Config), path.encode(), name.encode(), names, preference, 0, ON_ELECTED(),
                        ON_LOST(), ON_LEADER(), self.on_step_down, ON_FAILED(), None)
        self._check(self.lib.divvy_election_create(ctypes.byref(self.election), self.client, ctypes.byref(config)))
        self._check(self.lib.divvy_election_stand(self.election))

    def _check(self, error):
        check(error == 0, "divvy: %s", self.lib.divvy_strerror(error).decode())

    def _agree(self, election, who, _bytes, _user):
        self.asked_by.append(who.decode())
        self.lib.divvy_election_resign(election)
        self.lib.divvy_election_stand(election)

    def leads(self):
        return self.lib.divvy_election_leads(self.election) == 1

    def leader(self):
        found = ctypes.POINTER(Leader)()
        self._check(self.lib.divvy_election_leader(self.election, ctypes.byref(found), 30000))
        name = found.contents.data.decode() if found else None
        self.lib.divvy_leader_free(found)
        return name

    def ask(self, timeout_ms):
        """Asks the leader to step down. Returns the library's result."""
        return self.lib.divvy_election_ask_step_down(self.election, timeout_ms)

    def close(self):
        self.lib.divvy_election_destroy(self.election)
        self.lib.divvy_client_close(self.client)


class Kazoo:
    """kazoo's Election, whose function runs until the candidate is closed."""

    def __init__(self, hosts, path, name):
        self.client, self.name = KazooClient(hosts, timeout=30), name
        self.client.start(60)
        self.election = self.client.Election(path, name)
        self.leading, self.over = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self.election.run, args=[self._lead], daemon=True)
        self.thread.start()

    def _lead(self):
        self.leading.set()
        self.over.wait()
        self.leading.clear()

    def leads(self):
        return self.leading.is_set()

    def leader(self):
        contenders = self.election.contenders()
        return contenders[0] if contenders else None

    def close(self):
        self.over.set()
        if not self.leading.is_set():
            self.election.cancel()
        self.thread.join(60)
        self.client.stop()
        self.client.close()


class Curator:
    """Curator's LeaderLatch, in the one Java process of all tests."""

    def __init__(self, java, path, name):
        self.java, self.name = java, name
        self._ask("open", path=path)

    def _ask(self, verb, **fields):
        line = self.java.ask(verb, id=self.name, **fields)
        check("error" not in line, "Curator: %s: %s", verb, line)
        return line

    def leads(self):
        return self._ask("leads")["leads"]

    def leader(self):
        return self._ask("leader")["leader"] or None

    def close(self):
        self._ask("close")


def curator(world):
    """Starts Java once."""
    if not hasattr(world, "latches"):
        world.latches = Peer("Curator", JAVA + [os.path.join(HERE, "CuratorLatch.java"), world.hosts, "6000"])
        check(world.latches.answer() == {"ready": True}, "Curator is not ready")
    return world.latches
