#!/usr/bin/python3
"""`divvy partition ... -- COMMAND` as its users drive it. SPDX-License-Identifier: Apache-2.0

Shows workers as processes: their ends, restarts, descendants, in any order.

usage: test_command_supervise.py BUILD_FOLDER [TEST...]     a TEST is a name such as Pool.test_random

Pool.test_random prints its seed; DIVVY_TEST_SEED=n replays its choices.
"""
import os
import random
import resource
import signal
import subprocess
import sys
import time

from command_harness import DEADLINE_S, NOWHERE, SOURCE_DIR, Setting, alive, fire, main, wait_for
from partition_harness import ITEMS, run
from supervise_harness import Case, Member, parent, uptime

EXAMPLE = os.path.join(SOURCE_DIR, "docs", "examples", "worker.sh")
UNREACHABLE = ["partition", "--connect", NOWHERE, "--path", "/q"]


class Commands(Case):
    # Each command has its item in place of each {item}, and in its environment with the token; its input is empty, its
    # output is ours, and it has no descriptor but those and what we were given ourselves.
    def test_what_it_has(self):
        items = ["a", "a b", "{item}", "100%", "\N{GREEK SMALL LETTER ALPHA}", "x;exit 1", "-n"]
        script = ('exec >"$1/of-$DIVVY_TOKEN-$$"; printf "%s\\n" "$DIVVY_ITEM" "$DIVVY_TOKEN" "$2" "$3" "$(wc -c)"; '
                  'printf "%s\\n" "$2" >&2; ls -m /proc/$$/fd; exec sleep 1000')
        first, second = os.pipe()
        member = self.start("--mode", "incremental", items=items, pass_fds=[second],
                            env={**os.environ, "DIVVY_ITEM": "x"},
                            command=["bash", "-c", script, "bash", self.folder, "{item}", "<{item}|{item}>{", "{item"])
        os.close(first)
        os.close(second)
        def complete():
            files = [name for name in os.listdir(self.folder) if name.startswith("of-")]
            return len(files) == len(items) and all(len(self.read(name)) == 6 for name in files)
        wait_for(complete, "all of them have told what they have", member)
        member.wait_started(len(items))
        told = {}
        for name in os.listdir(self.folder):
            if name.startswith("of-"):
                item, token, argument, twice, input_bytes, descriptors = self.read(name)
                told[item] = token
                self.assertEqual((argument, twice, input_bytes), (item, "<%s|%s>{" % (item, item), "0"))
                self.assertEqual(descriptors, "0, 1, 2, %d" % second)
        self.assertEqual(told, member.ledger.tokens)
        self.assertEqual(sorted(member.text("err").splitlines()), sorted(items))
        self.assertEqual(member.stop(), 0)

    # A member has more commands than its soft limit of open files allows; their own limit is as it was.
    def test_open_files(self):
        items = ["item-%02d" % number for number in range(40)]
        def limit():
            resource.setrlimit(resource.RLIMIT_NOFILE, (32, 4096))
        member = self.start(items=items, command=["sh", "-c", 'ulimit -Sn >>"$0/limits"; exec sleep 1000', self.folder],
                            preexec_fn=limit)
        member.wait_started(len(items))
        wait_for(lambda: self.read("limits") == ["32"] * len(items), "all of them have told their limit", member)
        self.assertEqual(member.stop(), 0, member)

    # The command is looked up before anything is done: 127 where there is none, 126 where it cannot be executed.
    def test_looked_up_first(self):
        for command, code, fragment in (("no-such-command", 127, "not found"), ("/nonexistent/x", 127, "not found"),
                                        ("/etc/passwd", 126, "Permission denied"), (self.folder, 126, "directory"),
                                        ("{item}", 127, "not found")):
            with self.subTest(command):
                done = run(*UNREACHABLE, "--item", "a", "--", command)
                self.assertEqual((done.returncode, done.stdout), (code, ""), done)
                self.assertRegex(done.stderr, r"\Adivvy: [^\n]*%s[^\n]*\n\Z" % fragment)

    # The name of an item never becomes code: {item} inside a script is refused before anything is done, with the way to
    # write it. Written that way the name is data.
    def test_no_injection(self):
        item = "a'; touch injected; echo '\"$(touch injected)"
        for words in (["sh", "-c", "echo '{item}'"], ["env", "bash", "-ec", 'echo "{item}"'],
                      ["python3", "-c", "'{item}'"]):
            with self.subTest(words):
                done = run(*UNREACHABLE, "--item", item, "--", *words)
                self.assertEqual((done.returncode, done.stdout), (2, ""), done)
                self.assertRegex(done.stderr, r"\Adivvy: [^\n]*\{item\}[^\n]*DIVVY_ITEM[^\n]*\n\Z")
        script = 'cd "$1" && printf %s "$DIVVY_ITEM" >of-name && mv of-name name; exec sleep 1000'
        member = self.start(items=[item], command=["sh", "-c", script, "sh", self.folder])
        wait_for(lambda: os.path.exists(os.path.join(self.folder, "name")), "the command has run", member)
        with open(os.path.join(self.folder, "name"), encoding="utf-8") as file:
            self.assertEqual(file.read(), item)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "injected")))
        self.assertEqual(member.stop(), 0)

    # What is said about commands needs one; a word that is no option needs -- in front; a file of lines must be
    # writable.
    def test_usage(self):
        for words, fragment in ((["--drain", "1s"], "--drain"), (["--restart", "never"], "--restart"),
                                (["sleep", "1"], '"sleep"'), (["--restart", "seldom", "--", "true"],
                                                              "always, on-failure, never"),
                                (["--events", "/nonexistent/x"], "/nonexistent/x")):
            with self.subTest(words):
                done = run(*UNREACHABLE, "--item", "a", *words)
                self.assertEqual((done.returncode, done.stdout), (2, ""), done)
                self.assertIn(fragment, done.stderr)

    # With a command its lines are on standard error, and without on standard output; --events - puts them there as
    # well.
    def test_where_lines_go(self):
        for words, with_command, name in (([], True, "err"), ([], False, "out"), (["--events", "-"], True, "out")):
            with self.subTest(words=words, with_command=with_command):
                names = {key: self.file_name(key) for key in ("out", "err")}
                command = ["--", "sh", "-c", "echo of the command; exec sleep 1000"] if with_command else []
                with open(names["out"], "w", encoding="utf-8") as out, open(names["err"], "w", encoding="utf-8") as err:
                    process = subprocess.Popen([Setting.divvy, "partition", "--connect", Setting.server.connect,
                                                "--path", self.path, "--time-boundary", "0", "--item", "a", *words,
                                                *command],
                                               stdin=subprocess.DEVNULL, stdout=out, stderr=err)
                self.addCleanup(process.wait)
                self.addCleanup(process.kill)
                last = "started" if with_command else "ACQUIRED"
                wait_for(lambda: any(line.startswith(last) for line in self.read(name)), last, names)
                if with_command:
                    wait_for(lambda: "of the command" in self.read("out"), "the command writes", names)
                process.terminate()
                self.assertEqual(process.wait(DEADLINE_S), 0)
                words = [line.split()[0] for line in self.read(name) if not line.startswith("of")]
                self.assertEqual(words[:3], ["ALLOCATING", "ALLOCATING", "ACQUIRED"])
                self.assertEqual("ended" in words, with_command)
                self.assertEqual(words[-1], "FINISHED")
                others = [line for line in self.read("err" if name == "out" else "out") if line != "of the command"]
                self.assertEqual(others, [])

    # The example in docs/examples does what it says: each piece that it begins is done, also the last one.
    def test_example(self):
        member = self.start(items=["a", "b"], command=[EXAMPLE, "{item}"], env={**os.environ, "PIECE_SECONDS": "0.3"})
        wait_for(lambda: member.text("out").count("a: a piece of work, with token ") > 1, "it works", member)
        member.wait_started(2)
        self.assertEqual(member.stop(), 0)
        for item in "ab":
            said = [line.split(",")[0] for line in member.text("out").splitlines() if line.startswith(item + ":")]
            piece = ["%s: a piece of work" % item, "%s: done" % item]
            self.assertEqual(said, piece * (len(said) // 2) + ["%s: stopped" % item])


class Restarts(Case):
    # always: after 100 ms, and twice that with each exit; from 100 ms on again when it has run for 5 s.
    def test_backoff(self):
        member = self.start_script('n=$(wc -l <"$1/log"); echo >>"$1/log"; [ $n -ne 3 ] || sleep 5.1; exit $n')
        self.write("log", "")
        member.wait(lambda me: len(me.of("exited")) >= 5, "it has exited five times")
        exits, starts = member.of("exited"), member.of("started")
        self.assertEqual([line["restart_ms"] for line in exits[:5]], [100, 200, 400, 100, 200])
        self.assertEqual([line["status"] for line in exits[:5]], [0, 1, 2, 3, 4])
        for ended, started in zip(exits, starts[1:]):
            # The line may have been written some time after the end.
            self.assertGreaterEqual(started["time_ms"], ended["time_ms"] + ended["restart_ms"] / 2)
        self.assertEqual(member.owned(), ["a"])
        self.assertEqual(member.stop(), 0)

    # on-failure: what exits with 0 has finished, what exits otherwise or is killed is started again.
    def test_on_failure(self):
        member = self.start_script('case $2 in good) exit 0;; bad) exit 3;; *) kill -KILL $$;; esac', "--restart",
                                   "on-failure", items=["good", "bad", "ugly"])
        member.wait(lambda me: len(me.of("exited", "bad")) > 1 and len(me.of("exited", "ugly")) > 1 and
                    me.of("finished", "good"), "all have exited")
        self.assertEqual(member.of("exited", "bad")[0]["status"], 3)
        self.assertEqual(member.of("exited", "ugly")[0]["status"], 128 + signal.SIGKILL)
        self.assertEqual(len(member.of("started", "good")), 1)
        self.assertEqual(member.of("finished", "good")[0]["status"], 0)
        self.assertNotIn("restart_ms", member.of("finished", "good")[0])
        self.assertEqual(member.stop(), 0)

    # never: what has exited stays so, and its item stays owned; the item's next owner runs the command again.
    def test_never(self):
        member = self.start_script("exit 5", "--restart", "never", items=["a", "b"])
        member.wait(lambda me: len(me.of("finished")) == 2, "both have finished")
        self.assertEqual([line["status"] for line in member.of("finished")], [5, 5])
        self.assertEqual(member.owned(), ["a", "b"])
        other = self.start_script("exit 6", "--restart", "never", items=["a", "b"])
        other.wait(lambda me: len(me.of("finished")) == 1, "it has finished there too")
        self.assertEqual(len(member.owned()), 1)
        self.assertEqual(other.stop(), 0)
        member.wait(lambda me: len(me.of("finished")) == 3, "and here again")
        self.assertEqual(len(member.of("started")), 3)
        self.assertEqual(member.stop(), 0)

    # What is there at first and cannot be executed later is tried again, whatever the policy.
    def test_not_executable_later(self):
        script = self.write("script", "#!/bin/sh\nexit 1\n")
        member = self.start("--restart", "on-failure", command=[script]).wait_started()
        os.unlink(script)
        member.wait(lambda me: len(me.of("failed")) > 1, "it cannot be started")
        failed = member.of("failed")
        self.assertRegex(failed[0]["reason"], "No such file")
        self.assertEqual(failed[1]["restart_ms"], 2 * failed[0]["restart_ms"])
        self.write("script", "#!/bin/sh\nexit 0\n")
        member.wait(lambda me: me.of("finished"), "it could be started again")
        self.assertEqual(member.stop(), 0)

    # A guardian that is killed takes its command with it; another one is started.
    def test_guardian_killed(self):
        member = self.start_worker().wait_started()
        wait_for(lambda: "start" in [line[4] for line in self.log()], "it works", member)
        pid = member.pids()[0]
        fire(signal.SIGKILL, parent(pid))
        member.wait_started(2)
        self.assertEqual([line["reason"] for line in member.of("ended")], ["its guardian was killed"])
        self.assertFalse(alive(pid))
        self.assertEqual(member.stop(), 0)
        self.assert_one_at_a_time()

    # Where it can no longer start commands the member leaves, with 1.
    def test_forker_killed(self):
        member = self.start_script('[ "$2" = a ] || sleep 1000', items=["a", "b"]).wait_started(2)
        pid = member.pids()[-1]
        forker = [int(name) for name in os.listdir("/proc") if name.isdigit() and alive(int(name)) and
                  parent(int(name)) == member.pid]
        self.assertEqual(len(forker), 1)
        fire(signal.SIGKILL, *forker)
        self.assertEqual(member.end(), 1)
        self.assertIn("no more commands can be started", member.text("err"))
        self.assertFalse(alive(pid))
        self.assertEqual(self.nodes_left(), [])


class Revoked(Case):
    def split(self, script, *arguments):
        """A member with two items, and another that comes and gets one of them; and which."""
        member = self.start_script(script, *arguments, items=["a", "b"]).wait_started(2)
        wait_for(lambda: len(self.read("ready")) >= 2, "both are ready", member)
        other = self.start_script(script, *arguments, items=["a", "b"]).wait_started(1)
        return member, other, other.of("started")[0]["item"]

    def places(self, member, item):
        """Where in its lines the item was revoked, its command ended, and the item lost."""
        def where(what):
            found = [i for i, line in enumerate(member.look().lines) if what(line)]
            self.assertTrue(found, member)
            return found[0]
        return (where(lambda line: item in line.get("revoked", [])),
                where(lambda line: line.get("child") == "ended" and line["item"] == item),
                where(lambda line: item in line.get("lost", [])))

    # A command that takes its time to end, within --drain, has it: its item is given back when it has ended.
    def test_drained(self):
        member, other, item = self.split('trap "sleep 0.5; echo $2 >>$1/drained; exit 7" TERM; echo >>"$1/ready"; '
                                         'while :; do sleep 0.05; done', "--handover-timeout", "0")
        revoked, ended, lost = self.places(member, item)
        self.assertTrue(revoked < ended < lost, member)
        line = member.lines[ended]
        self.assertEqual((line["status"], line["reason"]), (7, "revoked"))
        self.assertLessEqual(line["time_ms"], other.of("started", item)[0]["time_ms"])
        self.assertEqual(self.read("drained"), [item])
        self.assertNotIn("restart_ms", line)
        wait_for(lambda: len(self.read("ready")) >= 3, "the other one's is ready", member, other)
        fire(signal.SIGTERM, member.pid, other.pid)
        self.assertEqual((member.end(), other.end()), (0, 0))
        self.assertEqual(len(self.read("drained")), 3)

    # One that does not end is killed after --drain, with its children in whatever session, and only then the item goes.
    def test_killed(self):
        member, other, item = self.split('trap "" TERM; setsid sleep 1000 & p=$!; sleep 1001 & '
                                         'echo $$ $p $! >"$1/pids-$2"; '
                                         'echo >>"$1/ready"; while :; do sleep 0.05; done', "--drain", "700ms")
        revoked, ended, lost = self.places(member, item)
        self.assertTrue(revoked < ended < lost, member)
        line = member.lines[ended]
        self.assertEqual((line["status"], line["reason"]), (128 + signal.SIGKILL, "revoked"))
        self.assertGreater(line["time_ms"] - member.lines[revoked]["time_ms"], 650)
        self.assertLessEqual(line["time_ms"], other.of("started", item)[0]["time_ms"])
        self.assertEqual(other.stop(), 0)
        self.assertEqual(member.stop(), 0)
        for name in "a", "b":
            self.assertFalse(any(alive(int(pid)) for pid in self.read("pids-" + name)[0].split()), name)

    # Told to end without handovers: all commands are ended, then the items are given back, then we exit, with 0.
    def test_told_to_end(self):
        for number in signal.SIGTERM, signal.SIGINT, signal.SIGHUP:
            member = self.start_script('trap "sleep 0.3; exit 0" TERM; echo >>"$1/ready"; while :; do sleep 0.05; done',
                                       "--handover-timeout", "0", items=["a", "b"])
            wait_for(lambda: len(self.read("ready")) == 2, "both are ready", member)
            self.assertEqual(member.stop(number), 0, member)
            ended = [member.look().lines.index(line) for line in member.of("ended")]
            self.assertEqual([line["reason"] for line in member.of("ended")], ["leaving"] * 2)
            revoked = [i for i, line in enumerate(member.lines) if line.get("revoked")]
            self.assertEqual((len(ended), len(revoked)), (2, 1))
            self.assertLess(max(ended), revoked[0])
            self.assertEqual(member.lines[-1]["reason"], "finished")
            self.assertEqual(self.nodes_left(), [])
            os.unlink(self.file_name("ready"))

    # A second signal kills commands that do not end; the items are given back nevertheless.
    def test_told_twice(self):
        member = self.start_script('trap "echo >>$1/told" TERM; echo >>"$1/ready"; while :; do sleep 0.05; done',
                                   "--drain",
                                   "1h", items=["a", "b"])
        wait_for(lambda: len(self.read("ready")) == 2, "both are ready", member)
        pids = member.wait_started(2).pids()
        member.process.send_signal(signal.SIGTERM)
        wait_for(lambda: len(self.read("told")) == 2, "both were told", member)
        self.assertTrue(all(map(alive, pids)))
        self.assertEqual(member.stop(), 0)
        self.assertEqual([line["status"] for line in member.of("ended")], [128 + signal.SIGKILL] * 2)
        self.assertFalse(any(map(alive, pids)))
        self.assertEqual(self.nodes_left(), [])

    # While it drains an item it may be told to end; what was begun goes on.
    def test_told_while_draining(self):
        script = 'trap "echo $2 >>$1/told" TERM; echo >>"$1/ready"; while :; do sleep 0.05; done'
        member = self.start_script(script, "--drain", "2s", items=["a", "b"])
        wait_for(lambda: len(self.read("ready")) == 2, "both are ready", member)
        other = self.start_script(script, "--drain", "0", items=["a", "b"])
        wait_for(lambda: len(self.read("told")) == 1, "one was told", member, other)
        self.assertEqual(member.stop(), 0)
        self.assertEqual([line["reason"] for line in member.of("ended")], ["revoked", "revoked"])
        other.wait(lambda me: me.owned() == ["a", "b"], "all items are the other's")
        self.assertEqual(other.stop(), 0)


    # A share that is not complete in time is given back, with 1; but its commands have their time to end.
    def test_allocate_timeout(self):
        lock = Setting.zookeeper.Lock(self.path + "/locks/b")
        lock.acquire()
        member = self.start_script('trap "sleep 0.5; exit 7" TERM; while :; do sleep 0.05; done', "--allocate-timeout",
                                   "8s",
                                   items=["a", "b"]).wait_started()
        self.assertEqual(member.end(), 1)
        self.assertEqual([(line["item"], line["status"]) for line in member.of("ended")], [("a", 7)], member)
        self.assertEqual(member.states()[-1], "FAILURE")
        lock.release()


class Pool(Case):
    """Members that are killed, stopped, told to end, and that come, in any order."""

    STEPS = 10
    session_s = 6  # on a busy machine a guardian may be late by a second

    def kill(self):
        member = self.members.pop(self.dice.randrange(len(self.members)))
        member.process.kill()
        member.end()

    def leave(self):
        member = self.members.pop(self.dice.randrange(len(self.members)))
        self.assertEqual(member.stop(), 0, member)

    def freeze(self):
        """Past the session, or not quite."""
        member = self.dice.choice(self.members)
        fire(signal.SIGSTOP, member.pid)
        time.sleep(self.dice.choice((0.5, self.session_s * 0.9, self.session_s + 0.8)))
        fire(signal.SIGCONT, member.pid)

    def kill_worker(self):
        pids = [pid for member in self.members for pid in member.pids()]
        fire(signal.SIGKILL, *self.dice.sample(pids, min(3, len(pids))))

    def join(self):
        mode = self.dice.choice(("incremental", "incremental", "eager"))
        member = self.start_worker("--drain", "500ms", "--mode", mode, items=ITEMS)
        self.members.append(member.wait(Member.states, "it takes part"))

    def all_work(self):
        """Every item is owned by one member, and has been worked on since."""
        owned = sorted(item for member in self.members for item in member.owned())
        if owned != ITEMS or any(member.states()[-1] != "ACQUIRED" for member in self.members):
            self.since = uptime()
            return False
        return {item for up, item, _, _, what in self.log() if up > self.since and what == "beat"} == set(ITEMS)

    # An append-only log kept by the workers shows that no item is ever worked on by two at once, and that in the end
    # each is worked on again.
    def test_random(self):
        given = os.environ.get("DIVVY_TEST_SEED") or os.environ.get("DIVVY_FRESH_SEED")
        seed = int(given or random.randrange(1 << 32))
        print("DIVVY_TEST_SEED=%d" % seed, file=sys.stderr)
        self.dice = random.Random(seed)
        self.members, self.since = [], uptime()
        for _ in range(3):
            self.join()
        wait_for(self.all_work, "every item is worked on", *self.members)
        for _ in range(self.STEPS):
            steps = [self.join] if len(self.members) < 2 else [self.kill, self.leave, self.freeze, self.kill_worker]
            step = self.dice.choice(steps if len(self.members) > 3 else steps + [self.join])
            step()
            time.sleep(self.dice.choice((0, 0.2, 0.6)))
        while len(self.members) < 3:
            self.join()
        self.since = uptime()
        wait_for(self.all_work, "every item is worked on again", *self.members)
        for member in self.members:
            self.assertEqual(member.stop(), 0, member)
        self.assert_one_at_a_time()
        started = [line for line in self.log() if line[4] == "start"]
        self.assertGreater(len(started), len(ITEMS))


if __name__ == "__main__":
    main(__file__)
