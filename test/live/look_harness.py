"""What the tests of the looking subcommands share. SPDX-License-Identifier: Apache-2.0"""
import collections
import json
import os
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unicodedata
import unittest
import zlib

from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError, NoNodeError
from kazoo.recipe.partitioner import SetPartitioner

from command_harness import DEADLINE_S, Setting, run_to_end


def command(subcommand, *arguments, connect=None):
    """The words of a command line; without --connect for what needs no server."""
    words = [Setting.divvy, subcommand]
    if subcommand != "help" and (subcommand != "plan" or "--path" in arguments):
        words += ["--connect", connect or Setting.server.connect]
    return words + list(arguments)


def width_of(line):
    """How many columns a terminal takes for a line."""
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in line)


def run(*arguments, connect=None, **options):
    """Runs the command to its end."""
    return run_to_end(command(*arguments, connect=connect), **options)


class DivvyMember:
    """A running `divvy partition`."""

    def __init__(self, path, identifier, items, *options):
        self.identifier, self.owned, self.tokens, self.state, self.errors = identifier, [], {}, None, ""
        words = command("partition", "--path", path, "--identifier", identifier, "--json", "--time-boundary", "300ms",
                        *options)
        words += [word for item in items for word in ("--item", item)]
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL)
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _read(self):
        for text in self.process.stdout:
            line = json.loads(text)
            self.owned, self.tokens, self.state = line["owned"], line["tokens"], line["state"]

    def acquired(self):
        return self.state == "ACQUIRED"

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait(DEADLINE_S)
        self.reader.join()
        self.process.stdout.close()


class CommandMember:
    """A running `divvy partition` with a command, which ends with it; so it has a death watch."""

    def __init__(self, path, identifier, items, *options, work=("sleep", "1000")):
        words = command("partition", "--path", path, "--identifier", identifier, "--time-boundary", "300ms", *options)
        words += [word for item in items for word in ("--item", item)]
        self.process = subprocess.Popen([*words, "--", *work], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def stop(self, with_signal=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(with_signal)
        self.process.wait(DEADLINE_S)


class KazooMember:
    """A partitioner of kazoo's, on a session of its own."""

    def __init__(self, path, identifier, items):
        self.identifier, self.ended = identifier, False
        self.client = KazooClient(Setting.server.plain)
        self.client.start()
        self.partitioner = SetPartitioner(self.client, path, tuple(items), identifier=identifier, time_boundary=0.3)
        self.thread = threading.Thread(target=self._work)
        self.thread.start()

    def _work(self):
        while not self.ended:
            if self.partitioner.release:
                self.partitioner.release_set()
            elif self.partitioner.allocating:
                self.partitioner.wait_for_acquire(0.2)
            else:
                time.sleep(0.02)

    def acquired(self):
        return self.partitioner.acquired

    @property
    def owned(self):
        return list(self.partitioner) if self.partitioner.acquired else []

    def stop(self):
        self.ended = True
        self.thread.join()
        self.client.stop()
        self.client.close()


class Delay:
    """Passes bytes on to a server, each way after a while."""

    def __init__(self, connect, delay_s):
        host, port = connect.split(":")
        self.delay_s, self.target = delay_s, (host, int(port))
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.connect = "127.0.0.1:%d" % self.listener.getsockname()[1]
        self.sockets, self.ended = [], False
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while not self.ended:
            try:
                near = self.listener.accept()[0]
                far = socket.create_connection(self.target)
            except OSError:
                return
            self.sockets += [near, far]
            for source, sink in ((near, far), (far, near)):
                waiting = collections.deque()
                ready = threading.Semaphore(0)
                threading.Thread(target=self._read, args=[source, waiting, ready], daemon=True).start()
                threading.Thread(target=self._write, args=[sink, waiting, ready], daemon=True).start()

    def _read(self, source, waiting, ready):
        data = b"x"
        while data:
            try:
                data = source.recv(65536)
            except OSError:
                data = b""
            waiting.append((time.monotonic() + self.delay_s, data))
            ready.release()

    def _write(self, sink, waiting, ready):
        while True:
            ready.acquire()
            due, data = waiting.popleft()
            time.sleep(max(0, due - time.monotonic()))
            try:
                if not data:
                    sink.shutdown(socket.SHUT_WR)
                    return
                sink.sendall(data)
            except OSError:
                return

    def stop(self):
        self.ended = True
        for one in [self.listener] + self.sockets:
            one.close()


class Case(unittest.TestCase):
    """Every test has a path of its own, and leaves nobody."""

    def setUp(self):
        self.path = "/" + "_".join(self.id().split(".")[-2:])
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def file(self, content, name="file"):
        path = os.path.join(self.folder.name, name)
        with open(path, "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
        os.chmod(path, 0o600)  # as files of credentials must be
        return path

    def client(self, server=None, **options):
        client = KazooClient(**{"hosts": (server or Setting.server).plain, **options})
        client.start()
        self.addCleanup(client.close)
        self.addCleanup(client.stop)
        return client

    def make_pool(self, live, members, items, owners, extra=None, level=2, **parts):
        """A pool with these members, of whom `live` are in the party, and a plan. Of each live one its client.

        `extra` has more fields of members by name; `parts` are those of plan_text().
        """
        node, clients, made = "0000000000%d00000000000%d,a=" + str(level) + ",s=00000000-%s", {}, []
        for number, (name, is_static) in enumerate(members, 1):
            key = node % (number, 1, name)
            made.append({"slot": number - 1, "key": name if is_static else key, "static": int(is_static),
                         "weight": 1000,
                         "zone": "", "rejoin_delay_ms": 20000 if is_static else 0,
                         "absent": "1a" if is_static and name not in live else "0", "leaving": "",
                         **(extra or {}).get(name, {})})
            if name in live:
                clients[name] = self.client()
                clients[name].ensure_path(self.path + "/party")
                facts = {"id": name, "static": True, "rejoin_delay_ms": 20000} if is_static else {}
                fields = dict((extra or {}).get(name, {}))
                if "tags" in fields:
                    fields["tags"] = fields["tags"].split(",")
                data = json.dumps({**facts, **fields}).encode()
                clients[name].create(self.path + "/party/" + key, data, ephemeral=True)
        self.make(self.path + "/plan", plan_text(items, made, owners, **parts))
        return clients

    def make(self, path, data=b"", **options):
        """Makes a node with its parents, which are empty."""
        parent = path.rsplit("/", 1)[0]
        if parent:
            Setting.zookeeper.ensure_path(parent)
        return Setting.zookeeper.create(path, data, **options)

    def shown(self, *arguments, **options):
        """What the subcommand shows with --json."""
        done = run(*arguments, "--json", **options)
        self.assertEqual((done.returncode, done.stderr), (0, ""), arguments)
        self.assertEqual(done.stdout.count("\n"), 1, done.stdout)
        return json.loads(done.stdout)

    def assert_fails(self, code, arguments, *fragments, connect=None):
        """One line on stderr that says why, nothing on stdout, and the exit code."""
        done = run(*arguments, connect=connect)
        shown = (arguments, done.stdout, done.stderr)
        self.assertEqual(done.returncode, code, shown)
        self.assertEqual(done.stdout, "", shown)
        self.assertRegex(done.stderr, r"\Adivvy: [^\n]*\n\Z", shown)
        if code == 2:
            self.assertIn("(see: divvy help %s)" % arguments[0], done.stderr, shown)
        for fragment in fragments:
            self.assertIn(fragment, done.stderr, shown)


def set_of(items):
    """How plans and notes name a set of items (docs/protocol.md, D2)."""
    block, hashed = b"".join(item.encode() + b"\0" for item in items), 0xcbf29ce484222325
    for byte in block:
        hashed = (hashed ^ byte) * 0x100000001b3 % 2 ** 64
    return {"count": len(items), "crc": "%08x" % zlib.crc32(block), "hash": "%016x" % hashed}


def plan_text(items, members, owners, moved=(), loads=None, wishes=None, algorithm=1):
    """A plan in one node, by docs/protocol.md, D2 to D8, D48 and D49."""
    def text(value):
        return json.dumps(value, separators=(",", ":"))
    base = text({"members": members, "width": 1, "owners": owners})
    plain = [{key: value for key, value in member.items() if key not in ("tags", "cap")} for member in members]
    summed = text({"members": plain, "width": 1, "owners": owners})
    root = {"v": 1, "generation": 7, "guid": "0000000000900000000000" + "2", "after": "",
            "epoch": "0000000000900000000000" + "1",
            "pzxid": "1a", "reason": "absence",
            "options": {"algorithm": algorithm, "max_moves": 1, "spread_zones": 1, "round_timeout_ms": 60000},
            "tag": "00000000",
            "set": set_of(items),
            "items": {"inline": items}, "base": {"inline": json.loads(base)}, "base_guid": "00000000009000000000002",
            "deltas": [], "moved": list(moved), "sum": "%08x" % zlib.crc32(summed.encode())}
    for name, part in (("loads", loads), ("wishes", wishes)):
        if part is not None:
            root[name] = {"inline": part}
    return text(root).encode()


def tree(path="/"):
    """Each node's data and the parts of its Stat that a change changes."""
    nodes = {}
    try:
        data, stat = Setting.zookeeper.get(path)
        children = Setting.zookeeper.get_children(path)
    except NoNodeError:
        return nodes
    except NoAuthError:
        return {path: None}
    nodes[path] = (data, stat.mzxid, stat.pzxid, stat.aversion)
    for child in children:
        nodes.update(tree(path.rstrip("/") + "/" + child))
    return nodes
