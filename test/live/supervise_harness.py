"""What the tests of `divvy partition ... -- COMMAND` share. SPDX-License-Identifier: Apache-2.0"""
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from command_harness import DEADLINE_S, Setting, children, fire, wait_for
from partition_harness import Ledger

T = 2  # seconds, the session timeout

# Works on an item, with a child of its own, and tells of it in a log that all append to: when (CLOCK_BOOTTIME), which
# item, by which token, by which process, what. As long as one of the processes of a worker lives, it has the item's
# file locked; so a worker that begins while another one is there is found out by the kernel. It takes up to 0.7 s to
# end.
WORKER = r"""#!/bin/bash
exec 3>>"$1/log" 9>>"$1/$2.lock"
item=$2
say() { read -r up _ </proc/uptime; echo "$up $item $DIVVY_TOKEN $$ $1" >&3; }
flock -n 9 || say double
say start
trap 'sleep 0.$((RANDOM % 8)); say end; exit 0' TERM
sleep 1000 8>&- &
exec 8<> <(:)
while :; do read -r -t 0.2 -u 8; say beat; done
"""


def uptime():
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def parent(pid):
    with open("/proc/%d/stat" % pid, encoding="utf-8", errors="replace") as file:
        return int(file.read().rpartition(")")[2].split()[1])


class Member:
    """A running `divvy partition` with a command; what it and its commands print goes to files."""

    made = []

    def __init__(self, case, *arguments, items=("a",), command=(), connect=None, **options):
        self.base = case.file_name("member-%d" % len(Member.made))
        self.ledger, self.children, self.lines, self.read_bytes = Ledger(), [], [], 0
        words = [Setting.divvy, "partition", "--connect", connect or Setting.server.connect, "--path", case.path,
                 "--json", "--timestamps", "--time-boundary", "100ms", "--ensemble-tick", "100ms", "--events",
                 self.base + ".events"]
        if "--session-timeout" not in arguments:
            words += ["--session-timeout", "%ds" % case.session_s]
        for item in items:
            words += ["--item", item]
        words += [*arguments, *(["--", *command] if command else [])]
        with open(self.base + ".out", "wb") as out, open(self.base + ".err", "wb") as err:
            self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=err, **options)
        self.pid = self.process.pid
        Member.made.append(self)

    def text(self, name):
        with open(self.base + "." + name, "rb") as file:
            return os.fsdecode(file.read())

    def look(self):
        """Reads the lines that are new."""
        if not os.path.exists(self.base + ".events"):
            return self
        with open(self.base + ".events", "rb") as file:
            file.seek(self.read_bytes)
            new = file.read()
        new = new[:new.rfind(b"\n") + 1]
        self.read_bytes += len(new)
        for line in new.splitlines():
            parsed = json.loads(line)
            self.lines.append(parsed)
            if parsed["event"] == "child":
                self.children.append(parsed)
            else:
                self.ledger.read(os.fsdecode(line))
        return self

    def of(self, word, item=None):
        """The lines about commands of one kind."""
        self.look()
        return [line for line in self.children if line["child"] == word and item in (None, line["item"])]

    def owned(self):
        return self.look().ledger.owned

    def states(self):
        return [line["state"] for line in self.look().lines if line["event"] == "state"]

    def wait(self, condition, what):
        wait_for(lambda: condition(self.look()), what, self, *(one.look() for one in Member.made if one is not self))
        return self

    def wait_started(self, count=1, item=None):
        return self.wait(lambda me: len(me.of("started", item)) >= count, "%d commands are started" % count)

    def pids(self):
        """Of the commands that run."""
        gone = {line.get("pid") for word in ("exited", "finished", "ended") for line in self.of(word)}
        begun = self.of("started") + self.of("standby")
        return [line["pid"] for line in begun if line["pid"] not in gone]

    def end(self):
        wait_for(lambda: self.process.poll() is not None, "it ends", self)
        return self.process.returncode

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return self.end()

    def __str__(self):
        return "pid %d, %s:\n%s\n%s" % (self.pid, " ".join(self.process.args), self.text("err"),
                                        "\n".join(map(json.dumps, self.lines)))


class Case(unittest.TestCase):
    """Every test has a pool of its own, a folder of its own, and leaves no process."""

    session_s = 15  # so that a machine that is busy for some seconds ends no session

    def setUp(self):
        self.path = "/" + self.id().split(".")[-1]
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.worker = self.write("worker.sh", WORKER)
        self.addCleanup(self.clear_up)

    def clear_up(self):
        members, Member.made = Member.made, []
        for member in members:
            if member.process.poll() is None:
                fire(signal.SIGCONT, member.pid)
                member.process.kill()
            member.end()
        for member in members:
            self.assertEqual(member.look().ledger.faults, [], member)

    def file_name(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, content):
        with open(self.file_name(name), "w", encoding="utf-8") as file:
            file.write(content)
        os.chmod(self.file_name(name), 0o755)
        return self.file_name(name)

    def read(self, name="log"):
        """The complete lines of a file that is being appended to; none while it is not there."""
        try:
            with open(self.file_name(name), encoding="utf-8", errors="surrogateescape") as file:
                return [line[:-1] for line in file if line.endswith("\n")]
        except FileNotFoundError:
            return []

    def log(self):
        """(time, item, token, process, what) for each line of the workers."""
        for line in self.read():
            up, item, token, process, what = line.split()
            yield float(up), item, int(token), int(process), what

    def start(self, *arguments, **options):
        return Member(self, *arguments, **options)

    def start_worker(self, *arguments, **options):
        return self.start(*arguments, command=[self.worker, self.folder, "{item}"], **options)

    def start_script(self, script, *arguments, **options):
        """A member whose commands are `script`, with $1 the folder and $2 the item."""
        return self.start(*arguments, command=["/bin/bash", "-c", script, "bash", self.folder, "{item}"], **options)

    def assert_one_at_a_time(self):
        """By the order of the lines in the log, which is that of writing; and by the locked files."""
        newest, tokens = {}, {}
        for up, item, token, process, what in self.log():
            shown = "%s at %.2f: %s of process %d, token %d" % (item, up, what, process, token)
            self.assertNotEqual(what, "double", "%s beside process %s" % (shown, newest.get(item)))
            self.assertGreaterEqual(token, tokens.get(item, 0), shown)
            if what == "start":
                newest[item], tokens[item] = process, token
            self.assertEqual(newest.get(item), process, shown)

    def nodes_left(self):
        locks = self.path + "/locks"
        return children(self.path + "/party") + [node for item in children(locks)
                                                 for node in children(locks + "/" + item)]
