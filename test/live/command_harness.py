"""What the tests of the command share: a server, the command's path, waiting. SPDX-License-Identifier: Apache-2.0"""
import os
import shlex
import subprocess
import sys
import time
import unittest
from unittest import mock

from kazoo.client import KazooClient

SOURCE_DIR = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ZOOKEEPER_LOCAL = os.path.join(SOURCE_DIR, "tools", "zookeeper-local")
DEADLINE_S = 60
NOWHERE = "127.0.0.1:1"  # nobody serves the port tcpmux here


class Setting:
    """The command, the server and a client of the server, as main() has found or made them."""
    divvy = server = zookeeper = None


class Server:
    """A private ZooKeeper, which ends with this process however it ends."""

    def __init__(self, *options):
        start = [ZOOKEEPER_LOCAL, "start", "--parent", str(os.getpid()), *options]
        start += shlex.split(os.environ.get("DIVVY_TEST_SERVER", ""))  # as --production, to measure something
        if "DIVVY_TEST_TLS" in os.environ:  # the command comes over TLS, and kazoo without
            start += ["--tls-files", os.environ["DIVVY_TEST_TLS"]]
        lines = subprocess.run(start, check=True, text=True, stdout=subprocess.PIPE).stdout.splitlines()
        values = dict(shlex.split(line)[0].split("=", 1) for line in lines)
        self.connect = values["DIVVY_CONNECT"]
        self.plain = values.get("ZOOKEEPER_LOCAL_PLAIN", self.connect)
        os.environ["DIVVY_ENSEMBLE_TICK_MS"] = values["DIVVY_ENSEMBLE_TICK_MS"]  # for all that is run
        self.folder = values["ZOOKEEPER_LOCAL_DIR"]

    def do(self, verb, *arguments):
        subprocess.run([ZOOKEEPER_LOCAL, verb, self.folder, *arguments], check=True, stdout=subprocess.DEVNULL)


def wait_for(condition, what, *shown):
    """Waits until the condition holds; fails with its name and what is shown."""
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError("%s: not within %d s\n%s" % (what, DEADLINE_S, "\n".join(map(str, shown))))
        time.sleep(0.01)


def run_to_end(words, *, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, **options):
    """Runs a program to its end. Where a sanitizer ends it, the test fails with its report."""
    done = subprocess.run(words, stdin=stdin, stdout=stdout, stderr=subprocess.PIPE, timeout=DEADLINE_S, check=False,
                          encoding="utf-8", errors="surrogateescape", **options)
    if "Sanitizer" in done.stderr:
        raise AssertionError("%s: exit code %d\n%s" % (words, done.returncode, done.stderr))
    return done


def check_by_promtool(path):
    """The older text format of Prometheus, as its own tool wants it."""
    promtool = run_to_end([os.path.join(SOURCE_DIR, "test", "lib", "find_promtool")])
    assert promtool.returncode == 0, promtool.stderr
    with open(path, "rb") as file:
        done = run_to_end([promtool.stdout.strip(), "check", "metrics"], stdin=file)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", ""), done.stderr + done.stdout


def no_credentials():
    """Within it a command has no credentials but those that it is given; over TLS the tests' environment has some."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("DIVVY_TLS_")}
    return mock.patch.dict(os.environ, kept, clear=True)


def tls_environment():
    """What a command needs of the tests' environment over TLS; nothing without."""
    tls = "DIVVY_TEST_TLS" in os.environ
    return {name: value for name, value in os.environ.items()
            if tls and (name.startswith("DIVVY_TLS_") or name == "LD_LIBRARY_PATH")}


def as_commands_come(server):
    """What kazoo needs to come to a server as commands do: over TLS, if the tests' environment has it."""
    folder = os.environ.get("DIVVY_TEST_TLS")
    files = {"ca": "ca.pem", "certfile": "client.pem", "keyfile": "client.key"}
    return {"hosts": server.connect, "use_ssl": True, **{key: os.path.join(folder, files[key]) for key in files}} \
        if folder else {}


def another_certificate():
    """Within it, over TLS, a command has a certificate of another identity."""
    folder = os.environ.get("DIVVY_TEST_TLS")
    names = {"DIVVY_TLS_CERTIFICATE_FILE": "next.pem", "DIVVY_TLS_KEY_FILE": "next.key"}
    return mock.patch.dict(os.environ, {key: os.path.join(folder, names[key]) for key in names} if folder else {})


def creators(*entries):
    """The access list of a creator with a digest: over TLS the certificate has its entry, too."""
    return ([("x509", 31)] if "DIVVY_TEST_TLS" in os.environ else []) + [("digest", 31), *entries]


def children(path):
    """Returns the names below a node; none while the node is not there."""
    return Setting.zookeeper.get_children(path) if Setting.zookeeper.exists(path) else []


def stat(pid):
    """Returns the state's letter and the parent; Z and 0 for a process that is gone."""
    try:
        with open("/proc/%d/stat" % pid, encoding="utf-8", errors="replace") as file:
            letter, parent = file.read().rpartition(")")[2].split()[:2]
            return letter, int(parent)
    except (FileNotFoundError, ProcessLookupError):
        return "Z", 0


def state(pid):
    """Returns the letter of the process's state; Z for a zombie, and for a process that is gone."""
    return stat(pid)[0]


def parent_of(pid):
    """Returns the process's parent; 0 for a process that is gone."""
    return stat(pid)[1]


def alive(pid):
    """Returns whether the process is there, and is no zombie."""
    return state(pid) not in "ZX"


def fire(number, *pids):
    """Sends the signal to the processes that are still there."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass


def main(script):
    """Runs the test cases of the script, with a server of their own."""
    if len(sys.argv) < 2:
        sys.exit("usage: %s BUILD_FOLDER [TEST...]" % os.path.basename(script))
    Setting.divvy = os.path.join(os.path.abspath(sys.argv[1]), "tools", "divvy")
    Setting.server = Server()
    Setting.zookeeper = KazooClient(Setting.server.plain)
    Setting.zookeeper.start()
    try:
        outcome = unittest.main(argv=[sys.argv[0], *sys.argv[2:]], exit=False, verbosity=2).result
    finally:
        Setting.zookeeper.stop()
        Setting.zookeeper.close()
        Setting.server.do("stop")
    sys.exit(not outcome.wasSuccessful())
