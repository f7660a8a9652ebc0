"""What the tests share: a server, and clients that end. SPDX-License-Identifier: Apache-2.0"""
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time

import pytest

import divvy
import divvy.aio
from divvy._cffi import ffi, lib

ROOT = pathlib.Path(__file__).resolve().parents[2]
LOCAL = ROOT / "tools" / "zookeeper-local"
DEADLINE_S = 30
SUMMARY = []  # lines that pytest prints at its end

# What a shell starts in the background ignores ^C, and so would these tests and their programs.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_terminal_summary(terminalreporter):
    for line in SUMMARY:
        terminalreporter.write_line(line)


def wait_for(condition, what):
    """Waits until a condition holds, and returns what it gives."""
    end = time.monotonic() + DEADLINE_S
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < end, f"not within {DEADLINE_S} s: {what}"
        time.sleep(0.005)


class Server:
    """A ZooKeeper of these tests' own, or of another process, which has its address."""

    def __init__(self, connect=None):
        self.connect = connect
        if not connect:
            self.start()

    def start(self):
        out = subprocess.run([LOCAL, "start", "--parent", str(os.getpid())], stdout=subprocess.PIPE, check=True,
                             text=True)
        self.lines = dict(line.split("=", 1) for line in out.stdout.split())
        self.connect = self.lines["DIVVY_CONNECT"]
        self.dir = self.lines["ZOOKEEPER_LOCAL_DIR"]
        os.environ.update(self.lines)

    def ask(self, word):
        host, port = self.connect.split(":")
        with socket.create_connection((host, int(port)), 10) as connection:
            connection.sendall(word)
            return b"".join(iter(lambda: connection.recv(4096), b"")).decode()

    def ephemerals(self):
        """Returns the paths of all ephemeral nodes."""
        return re.findall(r"^\t(/.*)$", self.ask(b"dump"), re.M)

    def sessions(self):
        """Returns how many sessions there are."""
        return int(re.search(r"^Session Sets \(\d+\)/\((\d+)\)", self.ask(b"dump"), re.M)[1])

    def control(self, verb):
        subprocess.run([LOCAL, verb, self.dir, "1"], check=True)

    def stop(self):
        subprocess.run([LOCAL, "stop", self.dir], check=True)


@pytest.fixture(scope="session")
def server():
    made = Server()
    yield made
    made.stop()


@pytest.fixture
def make_client(server):
    made = []

    def make(**options):
        made.append(divvy.Client(**{"session_timeout": 5, **options}))
        return made[-1]

    yield make
    for client in made:
        client.close()


@pytest.fixture
def client(make_client):
    made = make_client()
    made.wait_connected(DEADLINE_S)
    return made


@pytest.fixture
def path(request):
    """A path of this test's own."""
    return "/" + re.sub(r"\W", "_", f"{request.node.module.__name__}_{request.node.name}")


class Noting:
    """The library, with a note of each thing that a call has given, and that is freed."""

    FREES = {"divvy_strings_free", "divvy_holders_free", "divvy_leader_free", "divvy_services_unref", "cJSON_Delete"}

    def __init__(self, freed):
        self._freed = freed

    def __getattr__(self, name):
        found = getattr(lib, name)
        if name not in self.FREES:
            return found

        def free(pointer):
            if pointer != ffi.NULL:
                self._freed.append(name)
            found(pointer)
        return free


@pytest.fixture
def freed(monkeypatch):
    """A list of what is freed."""
    made = []
    for module in ("_core", "client", "election", "registry", "semaphore", "aio._client", "aio._objects"):
        monkeypatch.setattr(f"divvy.{module}.lib", Noting(made))
    return made


@pytest.fixture
def run_python(server):
    """Runs a program in a process of its own, and returns how it ended."""
    def run(program, timeout=DEADLINE_S, environment={}):
        return subprocess.run([sys.executable, "-X", "faulthandler", "-c", program], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=timeout, env={**os.environ, **environment})
    return run


@pytest.fixture
def run_asan(run_python):
    """The same, with a library that AddressSanitizer watches. $DIVVY_ASAN_BUILD_DIR is where that was built."""
    runtime = subprocess.run(["gcc", "-print-file-name=libasan.so"], stdout=subprocess.PIPE, check=True, text=True)
    environment = {"LD_LIBRARY_PATH": os.environ["DIVVY_ASAN_BUILD_DIR"] + "/lib", "LD_PRELOAD": runtime.stdout.strip(),
                   "PYTHONMALLOC": "malloc", "ASAN_OPTIONS": "detect_leaks=0"}  # Python has leaks of its own

    def run(program):
        shows = "\nprint([line for line in open('/proc/self/maps') if 'libasan' in line][0].strip())\n"
        done = run_python(program + shows, 120, environment)
        assert done.returncode == 0 and "libasan" in done.stdout.splitlines()[-1], done.stderr
        return done
    return run
