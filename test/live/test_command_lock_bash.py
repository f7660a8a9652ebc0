#!/usr/bin/python3
"""`divvy lock` in scripts: as a function of Bash's, and in the examples. SPDX-License-Identifier: Apache-2.0

Shows the function of Bash's, in shells of several kinds.

usage: test_command_lock_bash.py BUILD_FOLDER [TEST...]     a TEST is a name such as Bash.test_function

docs/consul-locker.md names the tests that show each sentence of consul-locker's README.
"""
import contextlib
import os
import re
import signal
import sqlite3
import subprocess

from command_harness import DEADLINE_S, Setting, alive, main, wait_for
from lock_harness import Case, EXAMPLES, Running, TOOLS, environment, lock


class Bash(Case):
    def bash(self, text, **options):
        """Runs a script that has sourced divvy-lock.bash to its end."""
        text = '. "$DIVVY_SHARE/divvy-lock.bash"\n' + text
        return subprocess.run(["bash", "-c", text, "bash", self.folder, self.name], env=environment(),
                              stdin=options.pop("stdin", subprocess.DEVNULL), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=DEADLINE_S, check=False, **options)

    # A function runs under the lock, with its arguments, the lock's environment, and the shell's own variables.
    def test_function(self):
        done = self.bash('mine="a variable" name=n folder=f status=s pid=p word=w; set -fu; IFS=:\n'
                         'show() { echo "$#|$1|$mine $name$folder$status$pid$word|$IFS$-|$DIVVY_LOCK_NAME|'
                         '$DIVVY_LOCK_SLOT|$DIVVY_LOCK_TOKEN"\n'
                         '    divvy lock --no-wait "$DIVVY_LOCK_NAME" true; echo "inside $?"; }\n'
                         'divvyLock "$2" show "a b" c; echo "outside $?"\n'
                         'divvy lock --no-wait "$2" true; echo "after $?"')
        lines = done.stdout.splitlines()
        self.assertRegex(lines[0], r"\A2\|a b\|a variable nfspw\|:\w*fu?\w*\|%s\|0\|[0-9]+\Z" % self.name)
        self.assertEqual((lines[1:], done.stderr), (["inside 4", "outside 0", "after 0"], ""))

    # The exit status of the function is that of divvyLock, also when it exits, fails under set -e, or is killed.
    def test_status(self):
        done = self.bash('give() { return $1; }; leave() { exit $1; }; fail() { false; echo wrong; }\n'
                         'die() { sh -c \'kill -9 $PPID\'; echo wrong; }\n'
                         'for s in 0 1 77 255; do\n'
                         'divvyLock "$2" give $s; echo $?; divvyLock "$2" leave $s; echo $?; done\n'
                         'divvyLock "$2" die; echo $?\n'
                         '(set -e; divvyLock "$2" fail; echo wrong); echo $?\n'
                         '(set -eu; divvyLock "$2" true; echo right)')
        self.assertEqual(done.stdout.split(), ["0", "0", "1", "1", "77", "77", "255", "255", "137", "1", "right"])

    # Options stand before NAME, as for the command; what cannot be is told, with the exit codes of the command.
    def test_options(self):
        holder = self.script(text="echo held; exec sleep 60").says("held")
        done = self.bash('divvyLock --no-wait "$2" echo wrong; echo $?\n'
                         'divvyLock --timeout 4s "$2" echo wrong; echo $?\n'
                         'divvyLock --no-wait -E 9 "$2" echo wrong; echo $?\n'
                         'divvyLock -n 2 --no-death-watch "$2" echo right; echo $?\n'
                         'divvyLock --shared --root=/other/bash -- "$2" echo right; echo $?\n'
                         'divvyLock "$2"; echo $?; divvyLock --nonsense x "$2" echo wrong; echo $?')
        self.assertEqual(done.stdout.split(), ["4", "4", "9", "right", "0", "right", "0", "2", "2"])
        self.assertIsNone(holder.process.poll())

    # Standard input is the function's, nothing of ours is open in it, and nothing is left in the folder for files.
    def test_descriptors(self):
        self.write("input", "the input\n")
        done = self.bash('export TMPDIR=$1; exec 9>"$1/nine"\n'
                         'count() { ls -l /proc/self/fd | grep -c -e pipe -e fifo -e divvy-lock; }\n'
                         'use() { count; cat; echo nine >&9; }\n'
                         'count; divvyLock "$2" use <"$1/input"; ls "$1"; cat "$1/nine"')
        lines = done.stdout.splitlines()
        self.assertEqual(lines[1:], [lines[0], "the input", "input", "nine", "nine"], done)

    def function(self, trap, *options):
        """A function that never ends, in the background, and the processes that are at work in it."""
        text = ('. "$DIVVY_SHARE/divvy-lock.bash"; f() { %s\nsleep 60 & echo $! >>"$1/pid"; sh -c \'echo $PPID\' '
                '>>"$1/pid"; sh -c \'trap "" TERM; echo $$ >>"$0/pid"; while :; do sleep 0.05; done\' "$1" & '
                'while :; do sleep 0.05; done; }\n'
                'divvyLock %s "$2" f "$1"; echo "status $?"' % (trap, " ".join(options)))
        running = Running("bash", "-c", text, "bash", self.folder, self.name)
        return running, self.pids("pid", 3)

    # When the lock is lost, the function and what it has started are ended, with little ado; status 5.
    def test_lost(self):
        running, pids = self.function("trap '' TERM", "--session-timeout 10s")
        Setting.zookeeper.delete("/divvy/locks/%s/%s" % (self.name, self.contenders()[0]))
        self.assertEqual((running.end(), running.output), (0, "status 5\n"), running)
        self.assertFalse(any(map(alive, pids)))

    # When the function must end, and there is time, it gets SIGTERM first, and SIGKILL when the grace is over.
    def test_grace(self):
        for trap, seen in (("trap 'echo TERM >>\"$1/log\"; exit 3' TERM", ["TERM"]), ("trap '' TERM", [])):
            with self.subTest(trap=trap):
                subprocess.run(["rm", "-f", self.path("pid"), self.path("log")], check=True)
                grace = "10s" if seen else "300ms"
                running, pids = self.function(trap, "--session-timeout 30s", "--max-run 4s", "--grace", grace)
                self.assertEqual((running.end(), running.output), (0, "status 124\n"), running)
                self.assertFalse(any(map(alive, pids)))
                self.assertEqual(self.read("log"), seen)

    # When the job is told to end, the lock is given back, and not just by the end of its session.
    def test_ended(self):
        text = ('. "$DIVVY_SHARE/divvy-lock.bash"; f() { sleep 60 & echo "$!"; wait; }\n'
                'divvyLock --session-timeout 60s "$1" f')
        running = Running("bash", "-c", text, "bash", self.name, start_new_session=True)
        wait_for(lambda: running.output, "it runs", running)
        os.killpg(running.pid, signal.SIGTERM)
        wait_for(lambda: self.contenders() == [], "the lock is free", running)
        wait_for(lambda: not alive(int(running.output)), "what the function has started is gone", running)

    # The file uses nothing that Bash 3 does not have.
    def test_bash_3(self):
        with open(os.path.join(TOOLS, "divvy-lock.bash"), encoding="utf-8") as file:
            code = "\n".join(line for line in file.read().splitlines() if not line.lstrip().startswith("#"))
        self.assertEqual(subprocess.run(["bash", "-n"], input=code, text=True, check=True).returncode, 0)
        for newer in (r"\b(mapfile|readarray|coproc)\b", r"\b(declare|local|typeset) -\w*[Ang]", r"BASHPID", r"&>>",
                      r"\|&", r";;?&", r"\{\w+\}[<>]", r"\$\{\w+(\[[^]]*\])?(,,?|\^\^?|@\w)\}", r"wait -\w",
                      r"\[\[ -v", r"\+=", r"printf '%\(", r"\bread -\w*[Nit]", r"\blastpipe\b", r"EPOCH"):
            self.assertIsNone(re.search(newer, code), newer)


class Examples(Case):
    # Five machines boot at the same time: one founds the cluster, and the others join it, one at a time. One of them
    # has bash run the script, by a name that the PATH does not find.
    def test_bootstrap(self):
        script = os.path.join(EXAMPLES, "bootstrap.sh")
        nodes = [Running(script, self.folder, "node-%d" % number) for number in range(4)]
        nodes.append(Running("bash", "bootstrap.sh", self.folder, "node-4", cwd=EXAMPLES))
        self.assertEqual([node.end() for node in nodes], [0] * 5, "\n".join(map(str, nodes)))
        self.assertEqual(sum("founding" in node.output for node in nodes), 1)
        founder = self.read("primary")[0]
        self.assertEqual(sum("joining the cluster of %s\n" % founder in node.output for node in nodes), 4)
        self.assertEqual(sorted(self.read("members")), ["node-%d" % number for number in range(5)])

    # Four machines start the report at the same time: one makes it, and the others find it made.
    def test_hourly_report(self):
        self.write("a.count", "1\n2\n")
        self.write("b.count", "39\n")
        script = os.path.join(EXAMPLES, "hourly-report.sh")
        machines = [Running(script, self.folder, "noon") for _ in range(4)]
        self.assertEqual([machine.end() for machine in machines], [0] * 4, "\n".join(map(str, machines)))
        self.assertEqual(sum("made the report" in machine.output for machine in machines), 1)
        self.assertEqual(sum("there already" in machine.output for machine in machines), 3)
        self.assertRegex(self.read("report-noon")[0], r"\A42 [0-9]+\Z")

    # A store that remembers the largest token refuses an earlier owner, who comes late, whatever names and values there
    # are. When the ensemble begins from scratch, tokens are small again: the next era lets them in, and keeps the old
    # ones out.
    def test_fencing(self):
        script, store = os.path.join(EXAMPLES, "fencing.sh"), self.path("results.db")
        self.name = "it's; DROP TABLE fence"

        def write_late(token, value, era="0"):
            settings = {**os.environ, "DIVVY_ITEM": self.name, "DIVVY_TOKEN": str(token), "ERA": era}
            done = subprocess.run([script, store, value], stderr=subprocess.PIPE, text=True, check=False, env=settings)
            self.assertIn((done.returncode, done.stderr), ((0, ""),
                                                           (1, "fencing.sh: refused, a later owner has been there\n")))
            return done.returncode == 0

        def stored():
            with contextlib.closing(sqlite3.connect(store)) as database:
                return (database.execute("SELECT value FROM results WHERE item = ?", [self.name]).fetchone()[0],
                        database.execute("SELECT token FROM fence WHERE item = ?", [self.name]).fetchone()[0])

        for token in ("", "1/2", "-1"):
            settings = {**os.environ, "DIVVY_ITEM": self.name, "DIVVY_TOKEN": token}
            done = subprocess.run([script, store, "none"], stderr=subprocess.PIPE, text=True, check=False, env=settings)
            self.assertEqual((done.returncode, done.stderr),
                             (2, 'fencing.sh: "%s" and "0" are to be numbers\n' % token))
        tokens = []
        for value in ("first", "se'cond"):
            done = lock(self.name, script, store, value)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertEqual(stored()[0], value)
            tokens.append(stored()[1])
        self.assertLess(tokens[0], tokens[1])
        self.assertFalse(write_late(tokens[0], "late"))
        self.assertEqual(stored(), ("se'cond", tokens[1]))
        self.assertTrue(write_late(tokens[1], "once more"))
        self.assertFalse(write_late(5, "by the new ensemble"))
        self.assertTrue(write_late(5, "by the new ensemble", era="1"))
        self.assertFalse(write_late(tokens[1] + 1, "by the old one"))
        self.assertEqual(stored(), ("by the new ensemble", 5))

    # All say how they are used.
    def test_usage(self):
        for name in ("bootstrap.sh", "fencing.sh", "hourly-report.sh"):
            done = subprocess.run([os.path.join(EXAMPLES, name)], stderr=subprocess.PIPE, text=True, check=False)
            self.assertEqual((done.returncode, done.stderr.split(":")[0]), (2, "usage"))


if __name__ == "__main__":
    main(__file__)
