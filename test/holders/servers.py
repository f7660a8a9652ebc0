"""The servers of test/holders/run: an ensemble of ZooKeeper and a cluster of etcd. SPDX-License-Identifier: Apache-2.0

Both have three servers on this machine, and can be frozen, and lose one. With a Disk (disk.py) they flush what they
write, and each flush asks it.
"""
import base64
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
START_S = 60
MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None  # A folder that no other process can make slow.
TICK_MS = 200
SYNC_TICKS = 20  # with a Disk: for how long a server may lag behind its leader, as long as a session
WRITE_EVERY_S = 0.2


def wait_for(met, what, timeout_s=START_S):
    deadline = time.monotonic() + timeout_s
    while not met():
        if time.monotonic() > deadline:
            raise SystemExit("holders: no %s after %d s" % (what, timeout_s))
        time.sleep(0.02)


def sleep_until(phase_s, period_s):
    """Sleeps until the monotonic clock is so far into a period. The periods follow each other from its zero on."""
    time.sleep((phase_s - time.monotonic()) % period_s)


class ZooKeeper:
    tool = os.path.join(ROOT, "tools", "zookeeper-local")

    def __init__(self, disk, tick_ms=TICK_MS):
        self.tick_s = tick_ms / 1000
        words = [self.tool, "start", "--servers", "3", "--tick", str(tick_ms), "--timeout", str(START_S), "--parent",
                 str(os.getpid())]
        environment = dict(os.environ)
        if disk:
            words = disk.wrap([*words, "--fsync", "--sync-limit", str(SYNC_TICKS)])
            environment.update(TMPDIR=MEMORY or "/tmp")
        lines = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout
        said = dict(line.split("=", 1) for line in lines.split())
        self.folder = said["ZOOKEEPER_LOCAL_DIR"]
        os.environ["DIVVY_ENSEMBLE_TICK_MS"] = said["DIVVY_ENSEMBLE_TICK_MS"]
        self.servers = [(host, int(port)) for host, port in
                        (one.rsplit(":", 1) for one in said["DIVVY_CONNECT"].split(","))]

    def _do(self, verb, *servers):
        subprocess.run([self.tool, verb, self.folder, *servers], check=True, stdout=subprocess.DEVNULL)

    def freeze(self):
        self._do("pause", "all")

    def resume(self):
        self._do("resume", "all")

    def _signal(self, server, number):
        with open(os.path.join(self.folder, server, "pid"), encoding="ascii") as file:
            os.kill(int(file.read().split()[0]), number)

    def _leader(self):
        lines = subprocess.run([self.tool, "status", self.folder], stdout=subprocess.PIPE, text=True).stdout
        return next(line.split()[0] for line in lines.splitlines() if line.endswith(" leader"))

    def kill_first(self):
        self._signal("1", signal.SIGKILL)

    def kill_leader(self):
        self._do("kill", self._leader())

    def align_pings(self, phase_s):
        """Has the leader ping its followers at that phase of its tick, and half a tick later.

        It pings each half of a tick, counted from the last time. So it is stopped for longer than that, and pings as
        it goes on.
        """
        leader = self._leader()
        if leader == "1":
            raise SystemExit("holders: the holder's own server leads")
        sleep_until(phase_s - 0.6 * self.tick_s, self.tick_s)
        self._signal(leader, signal.SIGSTOP)
        sleep_until(phase_s, self.tick_s)
        self._signal(leader, signal.SIGCONT)

    def write_until(self, stopping):
        """Sets a node again and again."""
        client = KazooClient(",".join("%s:%d" % server for server in self.servers))
        client.start(START_S)
        client.ensure_path("/writer")
        while not stopping.wait(WRITE_EVERY_S):
            try:
                client.set("/writer", b"x")
            except KazooException:
                pass  # It tries again soon.
        client.stop()

    def close(self):
        self._do("stop")


def free_ports(count):
    """Returns ports that were free a moment ago."""
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Etcd:
    def __init__(self, disk):
        self.folder, ports = tempfile.mkdtemp(dir=MEMORY), free_ports(6)
        self.servers = [("127.0.0.1", port) for port in ports[:3]]
        cluster = ",".join("e%d=http://127.0.0.1:%d" % (i, ports[3 + i]) for i in range(3))
        self.processes = []
        for i in range(3):
            client, peer = "http://127.0.0.1:%d" % ports[i], "http://127.0.0.1:%d" % ports[3 + i]
            words = ["etcd", "--name", "e%d" % i, "--data-dir", os.path.join(self.folder, str(i)),
                     "--listen-client-urls", client, "--advertise-client-urls", client, "--listen-peer-urls", peer,
                     "--initial-advertise-peer-urls", peer, "--initial-cluster", cluster]
            self.processes.append(subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "--", *(disk.wrap(words) if disk else words)],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        for port in ports[:3]:
            wait_for(lambda port=port: self._is_healthy(port), "healthy etcd")

    @staticmethod
    def _ask(port, what, data=None):
        """Returns the answer, or nothing."""
        try:
            with urllib.request.urlopen("http://127.0.0.1:%d/%s" % (port, what), data, timeout=1) as answer:
                return answer.read()
        except (OSError, urllib.error.URLError):
            return b""

    def _is_healthy(self, port):
        return b"true" in self._ask(port, "health")

    def _signal(self, processes, number):
        for process in processes:
            process.send_signal(number)

    def freeze(self):
        self._signal(self.processes, signal.SIGSTOP)

    def resume(self):
        self._signal(self.processes, signal.SIGCONT)

    def kill_first(self):
        self._signal(self.processes[:1], signal.SIGKILL)

    def kill_leader(self):
        leads = [b"\netcd_server_is_leader 1\n" in self._ask(port, "metrics") for _, port in self.servers]
        self._signal([self.processes[leads.index(True)]], signal.SIGKILL)

    def write_until(self, stopping):
        """Puts a key again and again."""
        key = base64.b64encode(b"writer").decode()
        while not stopping.wait(WRITE_EVERY_S):
            self._ask(self.servers[1][1], "v3/kv/put", json.dumps({"key": key, "value": key}).encode())

    def close(self):
        self._signal(self.processes, signal.SIGKILL)
        for process in self.processes:
            process.wait()
        shutil.rmtree(self.folder)
