#!/usr/bin/python3
"""Runs what docs/migrate.md shows, on a real server. SPDX-License-Identifier: Apache-2.0

usage: test_migrate.py BUILD_FOLDER

Claims: each block of C stands in a program that runs as the page says, and each line of a block of sh is run as it
stands; so is the line of flock(1) beside it, which ends alike when the lock is free and when somebody else has it. Each
function, constant, field and option of divvy that the tables name exists. python/tests/test_migrate.py takes the blocks
of Python. A block of another kind, or one that nothing has run, fails.
"""
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import tempfile

from command_harness import DEADLINE_S, SOURCE_DIR, wait_for
from test_examples import Example, Server, check

ROOT = pathlib.Path(SOURCE_DIR)
PAGE = (ROOT / "docs" / "migrate.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.M | re.S)
HEADERS = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "include" / "divvy").glob("*.h"))
# The commands that the lines run, each with what it does behind a line in the file `ran`.
COMMANDS = {"app": "", "report.sh": "", "consume.sh": "exec sleep 1000", "worker.sh": "exec sleep 1000",
            "controller": "exec sleep 1000", "scheduler": "exec sleep 1000"}
LISTS = {"list-shards.sh": ["shard-1", "shard-2"], "list-tenants.sh": ["north", "south"]}


def group(folder):
    """Two members share, and one that is back in time has its items again, while nothing moves at the other one."""
    members = {}
    try:
        for name in ("one", "two"):
            members[name] = Example(folder, "group", name)
        one, two = members["one"], members["two"]
        wait_for(lambda: (len(one.owned), len(two.owned)) == (2, 2) and len(one.owned | two.owned) == 4, "each has two",
                 one, two)
        had, told = one.owned, len(two.history)
        one.stop(signal.SIGTERM)
        check(one.end() == 0, "a clean end", one)
        members["again"] = Example(folder, "group", "one")
        wait_for(lambda: members["again"].owned == had, "it has its items again", members["again"])
        check(len(two.history) == told, "nothing has moved at the other one", two)
        for name in ("again", "two"):
            members[name].stop(signal.SIGTERM)
            check(members[name].end() == 0 and not members[name].errors, "a clean end", members[name])
    finally:
        for member in members.values():
            member.kill()


def latch(folder):
    """Of two one leads, and the other does when the first has ended."""
    with tempfile.TemporaryDirectory(prefix="divvy-migrate-") as place:
        said = [pathlib.Path(place, name) for name in ("anna", "bert")]
        programs = []
        for path in said:
            with path.open("w", encoding="utf-8") as output:
                programs.append(subprocess.Popen([os.path.join(folder, "latch"), path.name], stdin=subprocess.PIPE,
                                                 stdout=output))

        def leads():
            return [bool(re.fullmatch(r"elected, token \d+\n", path.read_text(encoding="utf-8"))) for path in said]
        try:
            wait_for(lambda: any(leads()), "one leads")
            check(leads().count(True) == 1, "one leads at a time")
            first = leads().index(True)
            for i in (first, 1 - first):
                wait_for(lambda i=i: leads()[i], "the other one leads")
                programs[i].stdin.close()
                check(programs[i].wait(DEADLINE_S) == 0, "a clean end")
        finally:
            for program in programs:
                program.kill()
                program.wait()


class Shell:
    """Runs lines of the page where its reader stands: beside the commands that they name, with divvy in the PATH."""

    def __init__(self, build, server, folder):
        self.folder = pathlib.Path(folder)
        self.environment = {**os.environ, "DIVVY_CONNECT": server.connect,
                            "PATH": os.path.join(build, "tools") + ":" + os.environ["PATH"]}
        for name, then in COMMANDS.items():
            self._write(name, 'echo "%s $DIVVY_ITEM$*" >>"%s/ran"\n%s' % (name, folder, then))
        for name, items in LISTS.items():
            self._write(name, "printf '%%s\\n' %s" % " ".join(items))
        (self.folder / "ran").touch()

    def _write(self, name, text):
        (self.folder / name).write_text("#!/bin/sh\n" + text + "\n")
        (self.folder / name).chmod(0o755)

    def ran(self):
        """Returns what ran since the last call, and forgets it."""
        lines = (self.folder / "ran").read_text().splitlines()
        (self.folder / "ran").write_text("")
        return lines

    def start(self, line, **options):
        return subprocess.Popen(["sh", "-c", "exec " + line if line.startswith("divvy") else line], cwd=self.folder,
                                env=self.environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                **options)

    def run(self, line):
        process = self.start(line)
        output, errors = process.communicate(timeout=DEADLINE_S)
        return process.returncode, output + errors

    def hold(self, name):
        """Holds a lock until its standard input is closed."""
        holder = self.start("divvy lock --hold " + shlex.quote(name), stdin=subprocess.PIPE)
        check(holder.stdout.readline().startswith("held "), "somebody else has it")
        return holder

    def release(self, holder):
        holder.communicate(timeout=DEADLINE_S)
        check(holder.returncode == 0, "it is given back")

    def lasting(self, line):
        """Runs a line that goes on until it is told to end."""
        words = line.split()
        listed = [name for name in LISTS if "./" + name in words]
        expected = {"%s %s%s" % (name, item, item if "{item}" in words else "") for name in COMMANDS
                    if "./" + name in words for item in (LISTS[listed[0]] if listed else [""])}
        process = self.start(line)
        try:
            if expected:
                wait_for(lambda: expected <= set((self.folder / "ran").read_text().splitlines()), line, expected)
            else:
                said = process.stdout.readline()
                check(re.match(r"leader \d+ |nobody$", said), line + " says " + said)
        finally:
            process.send_signal(signal.SIGTERM)
            output, errors = process.communicate(timeout=DEADLINE_S)
        check(process.returncode == 0, "%s ends with %d: %s%s" % (line, process.returncode, output, errors))
        self.ran()


def check_lock(shell, line, other):
    """Runs a line of `divvy lock`, and the line of flock(1) that stands beside it."""
    other = other.replace("/run/", str(shell.folder) + "/lock-") if other.startswith("flock ") else None
    for code in (shell.run(line), shell.run(other) if other else (0, "")):
        check(code[0] == 0, "%s: %s" % (line, code))
    ran = shell.ran()
    check(len(ran) == len(set(ran)) * (2 if other else 1) > 0, "%s ran %s" % (line, ran))
    if not other or "-E" not in line.split():
        return
    holder = shell.hold("nightly")
    with subprocess.Popen(["flock", str(shell.folder / "lock-nightly"), "sh", "-c", "echo; read _"], text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as flock:
        check(flock.stdout.readline() == "\n", "flock holds it, too")
        codes = [shell.run(line)[0], shell.run(other)[0]]
        flock.stdin.close()
    shell.release(holder)
    check(codes == [1, 1] and not shell.ran(), "%s ends as flock does: %s" % (line, codes))


def check_block(shell, block):
    for line in block.splitlines():
        command, _, other = line.partition("  #")
        subcommand = command.split()[1]
        if subcommand == "lock":
            check_lock(shell, command.strip(), other.strip())
        else:
            check(subcommand in ("elect", "partition"), "the test knows how to run " + line)
            shell.lasting(command.strip())


def helps(shell):
    names = re.findall(r"^  (\w+)  ", shell.run("divvy help")[1], re.M)
    return {name: set(re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", shell.run("divvy help " + name)[1]))
            for name in names if name != "help"}


def is_known(span, options):
    """Returns whether divvy has what stands in backquotes, or None if it does not look like divvy's."""
    words = span.split()
    if words[0] == "divvy" and len(words) > 1:
        return words[1] in options and all(word in options[words[1]] for word in words[2:] if word.startswith("-"))
    if re.fullmatch(r"divvy_\w+\(\)", span):
        return re.search(r"\b%s\(" % span[:-2], HEADERS) is not None
    if span.startswith("DIVVY_"):
        return re.search(r"\b%s\b" % span, HEADERS + (ROOT / "docs/man/divvy.1").read_text()) is not None
    if span.startswith("--"):
        return any(span in found for found in options.values())
    return None


def check_tables(shell):
    """Looks up each name of divvy's. All of the second column is divvy's; the kazoo table's Python has its own test."""
    options = helps(shell)
    looked = 0
    for part in PAGE.split("\n## ")[1:]:
        for line in part.splitlines():
            cells = line.strip("|").split(" | ") if line.startswith("| ") else ["", "", line]
            for column, cell in list(enumerate(cells))[1:]:
                for span in re.findall(r"`([^`]+)`", cell):
                    known = is_known(span, options)
                    if known is None and column == 1 and not part.startswith("From kazoo"):
                        known = span in options["lock"] or re.search(r"\b%s\b" % re.escape(span), HEADERS) is not None \
                            or span in (ROOT / "tools/divvy/divvy-lock.bash").read_text()
                    check(known is not False, "divvy has " + span)
                    looked += known is True
    check(looked > 80, "names are found: %d" % looked)


def main():
    build = os.path.abspath(sys.argv[1])
    folder = os.path.join(build, "docs", "examples", "migrate")
    programs = {"group": group, "latch": latch}
    sources = {name: (ROOT / "docs/examples/migrate" / (name + ".c")).read_text(encoding="utf-8") for name in programs}
    check(PAGE.count("```") == 2 * len(BLOCKS), "each block is found: %d" % len(BLOCKS))
    with Server() as server, tempfile.TemporaryDirectory(prefix="divvy-migrate-") as place:
        os.environ["DIVVY_CONNECT"] = server.connect
        shell = Shell(build, server, place)
        check_tables(shell)
        for kind, block in BLOCKS:
            check(kind in ("c", "sh", "python"), "a test takes this: " + block)
            if kind == "c":
                found = [name for name, source in sources.items() if block in source]
                check(len(found) == 1, "this stands in a program: " + block)
                programs.pop(found[0])(folder)
            elif kind == "sh":
                check_block(shell, block)
        check(not programs, "each program is quoted: %s" % list(programs))
        check(not server.ephemerals(), "nothing is left behind: %s" % server.ephemerals())


if __name__ == "__main__":
    main()
