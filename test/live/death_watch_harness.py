"""What test_death_watch_attack.py attacks, and how it looks at it. SPDX-License-Identifier: Apache-2.0

A *thing* is a lock, an election or a pool of items, with a queue of contenders: `divvy lock`, `divvy elect` or
`divvy partition` with a command, or a program on the library with a death watch.
"""
import ctypes
import os
import signal
import socket
import struct
import subprocess
import threading
import time

from command_harness import alive, fire, stat, wait_for

ITEMS = {"lock": ("item",), "elect": ("item",), "pool": ("a", "b", "c", "d")}
PR_SET_CHILD_SUBREAPER = 36
SHAPES = (("c", 0.6), ("g", 0.5), ("i", 0.4), ("t", 0.4))  # letter of death_watch_worker.c, and how often
LIBRARY_SHARE = 0.35
CALM_S = 0.25  # a pool is settled when nothing begins for so long; its boundary is 0.1 s


def become_subreaper():
    """Has all that loses its parent below us become our child, as does each divvy-death-watch."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def name_of(pid):
    try:
        with open("/proc/%d/comm" % pid, encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""


def family():
    """Returns the children of each process that has some."""
    children = {}
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        children.setdefault(stat(pid)[1], []).append(pid)
    return children


def below(pid):
    children, found, new = family(), [], [pid]
    while new:
        new = [child for parent in new for child in children.get(parent, [])]
        found += new
    return found


def belongs(pid, contender):
    """Returns whether the process, or the one that it was forked from, was started for the contender."""
    try:
        with open("/proc/%d/environ" % pid, "rb") as file:
            return b"DIVVY_CONTENDER=" + contender.encode() in file.read().split(b"\0")
    except OSError:
        return False


def reap(known):
    """Reaps those that came to us by the death of their parents. `known` are reaped by others."""
    for pid in family().get(os.getpid(), []):
        if pid not in known and not alive(pid):
            try:
                os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                pass


def close_session(hosts, session_id):
    """Closes a session that is not ours, as a death watch would. The server makes the password from the id."""
    state = (session_id ^ 0xB3415C00) & (1 << 64) - 1
    state = (state ^ 0x5DEECE66D) & (1 << 48) - 1
    password = b""
    for _ in range(4):
        state = (state * 0x5DEECE66D + 0xB) & (1 << 48) - 1
        password += struct.pack("<I", state >> 16 & 0xFFFFFFFF)
    body = struct.pack(">iqiqi", 0, 0, 10000, session_id, len(password)) + password + b"\0"
    address = hosts.split(",")[0].rpartition(":")
    with socket.create_connection((address[0], int(address[2])), timeout=10) as connection:
        connection.sendall(struct.pack(">i", len(body)) + body + struct.pack(">iii", 8, 1, -11))
        while connection.recv(4096):
            pass


class Contender:
    """One process that stands in the queue of a thing, with what runs below it."""

    made, mutex = 0, threading.Lock()

    def __init__(self, thing, library, shape):
        # One program on the library starts at a time, so that its death watch is known.
        with Contender.mutex:
            Contender.made += 1
            self.thing, self.library = thing, library
            self.name = "c%05d" % Contender.made
            self.shape = "" if library else shape
            before = set(family().get(os.getpid(), [])) if library else set()
            environment = dict(os.environ, DIVVY_CONTENDER=self.name, DIVVY_SHAPE=self.shape)
            errors = os.path.join(thing.folder, "errors")
            with open(errors, "ab") as file:
                self.process = subprocess.Popen(thing.words(library, self.name), stdin=subprocess.DEVNULL,
                                                stdout=file, stderr=file, env=environment)
            self.pid, self.killed, self.helper = self.process.pid, False, None
            if library:
                wait_for(lambda: self.process.poll() is not None or thing.opened(self.name), "a client", errors)
                new = set(family().get(os.getpid(), [])) - before - {self.pid}
                self.helper = next((pid for pid in new if name_of(pid).startswith("divvy-death")), None)
                assert self.helper, "no death watch, see " + errors

    def roles(self):
        """Returns the processes by what they are. Of `divvy lock` the forker is the guardian, too."""
        if self.library:
            return {"member": [self.pid], "watch": [self.helper]}
        roles = {"member": [self.pid], "watch": [], "guardian": [], "command": [], "child": [], "daemon": []}
        commands = {line.pid for line in self.thing.lines() if line.contender == self.name and line.what == "begin"}
        for pid in below(self.pid):
            if pid in commands:
                roles["command"].append(pid)
            elif name_of(pid).startswith("divvy"):
                roles["watch" if stat(pid)[1] == self.pid else "guardian"].append(pid)
            elif name_of(pid).startswith("death_watch_wor"):
                roles["child" if stat(pid)[1] in commands else "daemon"].append(pid)
        return roles

    def left(self):
        """Returns the processes of its commands that are still there."""
        return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc")))
                if pid != self.pid and name_of(pid).startswith("death_watch_wor") and alive(pid) and
                belongs(pid, self.name)]


def end_everything():
    """Ends all that is below us, after a test that has failed."""
    for pid in below(os.getpid()):
        fire(signal.SIGKILL, pid)


class Line:
    def __init__(self, text):
        up, self.item, self.contender, pid, self.what = text.split()
        self.at, self.pid = float(up), int(pid)


class Thing:
    """A lock, an election or a pool, and those that contend for it."""

    def __init__(self, kind, name, folder, setting):
        self.kind, self.name, self.setting = kind, name, setting
        self.folder = os.path.join(folder, name)
        os.mkdir(self.folder)
        self.items = ITEMS[kind]
        self.contenders, self._lines, self._read = [], [], 0

    def words(self, library, name):
        hosts, session = self.setting.hosts, "%dms" % self.setting.session_ms
        worker = self.setting.worker
        if library:
            path = "/attack-" + self.name if self.kind == "pool" else "/divvy/locks/" + self.name
            items = self.items if self.kind == "pool" else ()
            return [worker, self.kind, hosts, path, session[:-2], self.folder, *items]
        verb = "partition" if self.kind == "pool" else self.kind
        words = [self.setting.divvy, verb, "--connect", hosts, "--session-timeout", session]
        if self.kind == "pool":
            words += ["--path", "/attack-" + self.name, "--identifier", name, "--time-boundary", "100ms",
                      "--handover-timeout", "0", "--drain", "1s", "--events", os.path.join(self.folder, "events")]
            for item in self.items:
                words += ["--item", item]
            return words + ["--", worker, "work", self.folder, "{item}"]
        return words + [self.name, worker, "work", self.folder, "item"]

    def lines(self):
        """Returns all that was written to the log."""
        try:
            with open(os.path.join(self.folder, "log"), encoding="ascii") as file:
                file.seek(self._read)
                new = file.read()
        except FileNotFoundError:
            return self._lines
        new = new[:new.rfind("\n") + 1]
        self._read += len(new)
        self._lines += map(Line, new.splitlines())
        return self._lines

    def opened(self, name):
        return any(line.contender == name and line.what == "open" for line in self.lines())

    def doubles(self):
        return [line for line in self.lines() if line.what == "double"]

    def owners(self):
        """Returns the last line of a beginning, for each item that somebody has begun."""
        return {line.item: line for line in self.lines() if line.what == "begin"}

    def begun_since(self, items, began, other_than=None):
        """Returns when the last of the items was begun, since then, by another one; None while one was not."""
        owners = self.owners()
        lines = [owners.get(item) for item in items]
        if all(line and line.at > began and line.contender != other_than for line in lines):
            return max(line.at for line in lines)
        return None

    def fill(self, count, draw):
        """Sees to it that so many contend, and that the thing is owned."""
        def ready():
            self.contenders = [one for one in self.contenders if one.process.poll() is None]
            while len(self.contenders) < count:
                shape = "".join(letter for letter, share in SHAPES if draw.random() < share)
                self.contenders.append(Contender(self, draw.random() < LIBRARY_SHARE, shape))
            return self.is_ready()

        wait_for(ready, "%s is owned, and others wait" % self.name, self.folder)

    def queue(self):
        path = "/divvy/locks/" + self.name
        zookeeper = self.setting.zookeeper
        return sorted(zookeeper.get_children(path), key=lambda name: name[-10:]) if zookeeper.exists(path) else []

    def is_ready(self):
        names = {one.name for one in self.contenders if one.process.poll() is None}
        owners = self.owners()
        if set(owners) != set(self.items) or not all(line.contender in names for line in owners.values()):
            return False
        if self.kind != "pool":
            return len(self.queue()) == len(names) and alive(owners["item"].pid)
        calm = time.monotonic() - max(line.at for line in owners.values()) > CALM_S
        return calm and len({line.contender for line in owners.values()}) == len(names) and all(
            alive(line.pid) for line in owners.values())

    def session(self):
        """Returns the session of the owner of a lock."""
        node = "/divvy/locks/%s/%s" % (self.name, self.queue()[0])
        return self.setting.zookeeper.exists(node).ephemeralOwner

    def owner(self, draw):
        """Returns a contender that owns something, and what."""
        owners = self.owners()
        name = owners[draw.choice(self.items)].contender
        one = next(one for one in self.contenders if one.name == name)
        return one, [item for item, line in owners.items() if line.contender == one.name]

    def end(self):
        """Ends all, and waits until nothing is left of them."""
        for one in self.contenders:
            if one.process.poll() is None:
                one.process.send_signal(signal.SIGKILL)
                one.process.wait()
        wait_for(lambda: not any(one.left() for one in self.contenders), "nothing is left", self.folder)
