#!/usr/bin/python3
"""Goes through docs/guide.md as its reader would, on a real server. SPDX-License-Identifier: Apache-2.0

Shows the guide, word for word, on a real server.

usage: test_guide.py BUILD_FOLDER

Claims, for each step: the program does what the guide says of it. Of the work in threads: what is written of a queue
has tokens that never go back, and one process for each token, also over a lost session; a store that has seen a larger
token refuses. Each command that this test runs stands in the guide word for word.
"""
import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

from command_harness import DEADLINE_S, SOURCE_DIR, wait_for
from test_examples import Example, Server, check

QUEUES = ["alpha", "beta", "delta", "gamma"]
LATER = 2 ** 62  # a token that no owner of this server ever has
with open(os.path.join(SOURCE_DIR, "docs", "guide.md"), encoding="utf-8") as guide_file:
    GUIDE = guide_file.read()


class Commands:
    """Runs commands of the guide where its reader stands: in the checkout, with the build's tools in the PATH."""

    def __init__(self, build, server):
        self.environment = {**os.environ, "DIVVY_CONNECT": server.connect,
                            "PATH": os.path.join(build, "tools") + ":" + os.environ["PATH"]}

    def start(self, command):
        check("\n%s\n" % command in GUIDE, "the guide has the command: " + command)
        return subprocess.Popen(command.split("  #")[0].split(), cwd=SOURCE_DIR, env=self.environment, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def run(self, command, status=0):
        process = self.start(command)
        output, _ = process.communicate(timeout=DEADLINE_S)
        check(process.returncode == status, "%s ends with %d, and says %s" % (command, process.returncode, output))
        return output


def check_one(folder):
    program = Example(folder, "connect")
    check(program.end() == 0 and re.match(r"session [0-9a-f]+$", program.lines[0]), "there is a session", program)
    program = Example(folder, "one_member")
    check(program.end() == 0, "a pool of one", program)
    found = [re.match(r"(\w+), token (\d+)$", line) for line in program.lines]
    check([match.group(1) for match in found] == QUEUES, "one alone owns all", program)
    check(all(int(match.group(2)) > 0 for match in found), "there are tokens", program)


def check_members(folder, name):
    """Two share the queues, what stays is never interrupted, and the one that stays takes over all."""
    first = Example(folder, name)
    second = None
    try:
        wait_for(lambda: sorted(first.owned) == QUEUES, "one alone owns all", first)
        alone = len(first.history)
        second = Example(folder, name)
        wait_for(lambda: (len(first.owned), len(second.owned)) == (2, 2), "each has two", first, second)
        check(sorted(first.owned | second.owned) == QUEUES, "each queue has one owner", first, second)
        check(all(first.owned <= owned for owned in first.history[alone:]), "what stays never stops", first)
        first.stop(signal.SIGTERM)
        check(first.end() == 0, "a clean end", first)
        wait_for(lambda: sorted(second.owned) == QUEUES, "the other one has all", second)
        second.stop(signal.SIGINT)
        check(second.end() == 0, "a clean end", second)
        check(not first.errors and not second.errors, "no complaint", first, second)
    finally:
        first.kill()
        if second:
            second.kill()


def check_lost(folder, name, server):
    """A member whose session is lost says so, and ends, with nobody to tell it to."""
    member = Example(folder, name)
    try:
        wait_for(lambda: sorted(member.owned) == QUEUES, "one alone owns all", member)
        server.freeze(True)
        check(member.end() == 1 and member.errors, "it has failed", member)
    finally:
        server.freeze(False)
        member.kill()


class Store:
    """The files that the jobs of several processes write to."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="divvy-guide-")

    def lines(self, queue):
        try:
            with open(os.path.join(self.folder, queue), encoding="utf-8") as file:
                return [(int(token), int(pid)) for token, pid in (line.split() for line in file.read().splitlines())]
        except FileNotFoundError:
            return []

    def check(self):
        for queue in QUEUES:
            owners = {}
            newest = 0
            for token, pid in self.lines(queue):
                check(token >= newest, "the tokens of %s never go back" % queue, self)
                check(owners.setdefault(token, pid) == pid, "each token of %s has one process" % queue, self)
                newest = token

    def newest(self, queue):
        return self.lines(queue)[-1][0] if self.lines(queue) else 0

    def pids(self):
        return {self.lines(queue)[-1][1] for queue in QUEUES if self.lines(queue)}

    def __str__(self):
        return "\n".join("%s: %s" % (queue, self.lines(queue)[-5:]) for queue in QUEUES)


def check_work(folder):
    """One works on all queues; a second one gets two of them, and all when the first is stopped."""
    first, second = Example(folder, "work"), None

    def worked(program, since=0):
        return {line.split()[0] for line in program.lines[since:]}

    try:
        wait_for(lambda: sorted(worked(first)) == QUEUES, "one works on all", first)
        second = Example(folder, "work")
        wait_for(lambda: len(worked(second)) == 2, "the other one works on two", first, second)
        first.stop(signal.SIGTERM)
        check(first.end() == 0 and not first.errors, "a clean end", first)
        since = len(second.lines)
        wait_for(lambda: sorted(worked(second, since)) == QUEUES, "the other one works on all", second)
        newest = {line.split()[0]: int(line.split()[1]) for line in first.lines}
        moved = [line.split() for line in second.lines]
        check(all(int(token) > newest[queue] for queue, token in moved), "tokens grow", first, second)
        second.stop(signal.SIGINT)
        check(second.end() == 0 and not second.errors, "a clean end", second)
    finally:
        first.kill()
        if second:
            second.kill()


def check_loads(folder):
    """Each worker tells the load of its queue: a load that is refused would end it with another status."""
    program = Example(folder, "loads")
    try:
        wait_for(lambda: {"alpha 50", "beta 5", "delta 5", "gamma 5"} <= set(program.lines), "all loads", program)
        program.stop(signal.SIGTERM)
        check(program.end() == 0 and not program.errors, "a clean end", program)
    finally:
        program.kill()


def check_buckets(folder, commands):
    """Each tenant is worked on in the bucket that the command says."""
    program = Example(folder, "buckets")
    try:
        tenants = ("anna", "bert", "carla", "dora", "emil", "frida")
        wait_for(lambda: {line.split()[0] for line in program.lines} == set(tenants), "all tenants", program)
        found = dict(line.split() for line in program.lines)
        check(commands.run("divvy bucket 16 anna bert").split() == [found["anna"], found["bert"]],
              "the command says the same", program)
        program.stop(signal.SIGTERM)
        check(program.end() == 0 and not program.errors, "a clean end", program)
    finally:
        program.kill()


def check_jobs(folder, server):
    store = Store()
    first = Example(folder, "jobs", store.folder)
    second = None
    try:
        wait_for(lambda: all(store.lines(queue) for queue in QUEUES), "all queues are worked on", store, first)
        second = Example(folder, "jobs", store.folder)
        wait_for(lambda: store.pids() == {first.process.pid, second.process.pid}, "both work", store, first, second)
        before = {queue: store.newest(queue) for queue in QUEUES}
        server.freeze(True)
        try:
            for program in (first, second):
                wait_for(lambda: "session: LOST" in program.lines, "the loss is told", program)
        finally:
            server.freeze(False)
        wait_for(lambda: all(store.newest(queue) > before[queue] for queue in QUEUES), "both take part again", store,
                 first, second)
        check("state: RELEASE" in first.lines and "state: RELEASE" in second.lines, "by a RELEASE", first, second)
        second.stop(signal.SIGTERM)
        check(second.end() == 0, "a clean end", second)
        wait_for(lambda: store.pids() == {first.process.pid}, "one has all", store, first)
        store.check()
        with open(os.path.join(store.folder, "alpha"), "a", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # as the jobs do: no piece that looked before us is written behind us
            file.write("%d 0\n" % LATER)
        count = len(store.lines("beta"))
        wait_for(lambda: len(store.lines("beta")) > count + 5, "work on other queues goes on", store, first)
        check(store.newest("alpha") == LATER, "the store refuses a smaller token", store, first)
        first.stop(signal.SIGTERM)
        check(first.end() == 0, "a clean end", first)
    finally:
        first.kill()
        if second:
            second.kill()
        shutil.rmtree(store.folder)


def check_lock(folder):
    both = [Example(folder, "lock"), Example(folder, "lock")]
    try:
        tokens = set()
        for program in both:
            check(program.end() == 0, "the lock is had, and given back", program)
            found = [re.match(r"page (\d), token (\d+)$", line).groups() for line in program.lines]
            check([page for page, _ in found] == ["1", "2", "3"], "three pages", program)
            check(len({token for _, token in found}) == 1, "one token", program)
            tokens.add(found[0][1])
        check(len(tokens) == 2, "each holder has a token of its own: %s" % tokens)
    finally:
        for program in both:
            program.kill()


def check_commands(build, server):
    commands = Commands(build, server)
    status = "divvy status --path /shop --json"
    worker = commands.start("divvy partition --path /shop --items-from docs/examples/queues.txt "
                            "--identifier one -- docs/examples/worker.sh {item}")
    lines = commands.start("divvy partition --path /shop --items-from docs/examples/queues.txt "
                           "--identifier two --json")
    owners = {}

    def shared(*names):
        try:
            page = json.loads(commands.run(status))
        except AssertionError:  # there is no pool yet
            return False
        owners["found"] = {item["owner"] for item in page["items"]}
        return owners["found"] == set(names)

    try:
        wait_for(lambda: shared("one", "two"), "both have queues", owners)
        commands.run("divvy drain --path /shop --wait two")
        check(shared("one"), "two is drained", owners)
        commands.run("divvy drain --path /shop --undo two")
        wait_for(lambda: shared("one", "two"), "both have queues", owners)
        page = commands.run("divvy status --path /shop")
        check("one" in page and "two" in page, "the page has both: " + page)
        said = commands.run("divvy lock guide-report echo done")
        check(said == "done\n", "the command ran under a lock: " + said)
        said = commands.run("divvy plan --path /shop --leave two")
        check("from 2 to 1 member" in said, "the live plan is shown: " + said)
        said = commands.run("divvy plan --members 4 --join 1 --items-from docs/examples/queues.txt")
        check("24" in said, "the plan is shown: " + said)
        for process in (lines, worker):
            process.send_signal(signal.SIGTERM)
            output, _ = process.communicate(timeout=DEADLINE_S)
            check(process.returncode == 0, "a clean end: " + output)
            events = [line for line in output.splitlines() if line.startswith("{")]
            if process is lines:
                check(events and all("state" in json.loads(line) for line in events), "JSON lines: " + output)
            else:
                check("a piece of work, with token" in output and ": stopped" in output, "workers: " + output)
    finally:
        for process in (worker, lines):
            if process.poll() is None:
                process.kill()
                process.communicate()


def main():
    build = os.path.abspath(sys.argv[1])
    folder = os.path.join(build, "docs", "examples", "guide")
    with Server() as server:
        os.environ["DIVVY_CONNECT"] = server.connect
        check_work(folder)
        check_loads(folder)
        check_buckets(folder, Commands(build, server))
        check_one(folder)
        check_members(folder, "members")
        check_members(folder, "callbacks")
        check_lost(folder, "members", server)
        check_lost(folder, "callbacks", server)
        check_jobs(folder, server)
        check_lock(folder)
        check_commands(build, server)
        check(not server.ephemerals(), "nothing is left behind: %s" % server.ephemerals())


if __name__ == "__main__":
    main()
