#!/usr/bin/python3
"""`divvy lock` as its users drive it. SPDX-License-Identifier: Apache-2.0

Shows a command under a lock: exit codes, descriptors, environment, other processes that wait.

usage: test_command_lock.py BUILD_FOLDER [TEST...]     a TEST is a name such as Waiting.test_shared

docs/consul-locker.md names the tests that show each sentence of consul-locker's README.
"""
import os
import re
import signal
import subprocess
import sys
import time

from kazoo.client import KazooClient

from command_harness import NOWHERE, Server, Setting, another_certificate, children, main, no_credentials, wait_for
from lock_harness import (Case, EXAMPLES, LOST, NOT_HELD, Running, T, TIMED_OUT, TROUBLE, UNREACHABLE, USAGE,
                          environment, lock)


class Usage(Case):
    # Wrong usage is told in one line that names the mistake and where help is, with exit code 2.
    def test_errors(self):
        for arguments, fragment in (
                ([], "NAME is missing"),
                (["x"], "COMMAND is missing"),
                (["", "true"], "NAME is empty"),
                (["--nonsense", "x", "true"], "--nonsense"),
                (["-q", "x", "true"], "-q"),
                (["--no-wait=1", "x", "true"], "--no-wait takes no value"),
                (["--timeout"], "--timeout needs a value"),
                (["-E"], "-E needs a value"),
                (["--timeout", "0", "x", "true"], "out of range"),
                (["--no-wait", "--timeout", "1s", "x", "true"], "not both"),
                (["--shared", "-n", "2", "x", "true"], "not both"),
                (["--limit-policy", "stored", "x", "true"], "--slots"),
                (["--limit-policy", "none", "-n", "2", "x", "true"], "error, stored, provided"),
                (["-n", "0", "x", "true"], "--slots"),
                (["-n", "2x", "x", "true"], "--slots"),
                (["-n", "99999999999999999999", "x", "true"], "--slots"),
                (["-n", "2", "--slots", "2", "x", "true"], "given twice"),
                (["-E", "256", "x", "true"], "--conflict-exit-code"),
                (["-E", "-1", "x", "true"], "--conflict-exit-code"),
                (["--grace", "6s", "x", "true"], "5000 ms"),
                (["--root", "divvy", "x", "true"], "--root"),
                (["--root", "/zookeeper", "x", "true"], "--root"),
                (["--auth-file", "/nonexistent", "x", "true"], "/nonexistent"),
                (["--acl", "creator", "x", "true"], "--auth-file"),
                (["--connect", "host:port", "x", "true"], "host:port"),
                (["--hold", "x", "true"], "--hold")):
            with self.subTest(arguments=arguments), no_credentials():
                done = lock(*arguments)
                self.assertEqual((done.returncode, done.stdout), (USAGE, ""), done.stderr)
                self.assertRegex(done.stderr, r"\Adivvy: [^\n]*\(see: divvy help lock\)\n\Z")
                self.assertIn(fragment, done.stderr)

    # Help is printed with --help and with -h, in DEBUG too, fits a terminal, and lists each option and exit code.
    def test_help(self):
        about = lock("--help")
        self.assertEqual((about.returncode, about.stderr), (0, ""))
        for arguments, env in ((["-h"], {}), (["--help"], {"DEBUG": "true"}), (["--no-wait", "-h", "x"], {})):
            self.assertEqual(lock(*arguments, env=env).stdout, about.stdout)
        self.assertTrue(all(len(line) <= 110 for line in about.stdout.splitlines()))
        for word in ("--no-wait", "-n, --slots", "-E, --conflict-exit-code", "124", "125", "126", "127"):
            self.assertIn(word, about.stdout)

    # An option behind NAME is the command's; "--" may stand before NAME and behind it.
    def test_where_options_end(self):
        show = ["printf", "<%s>", "--help"]
        for arguments in ([self.name, *show], ["--", self.name, *show], [self.name, "--", *show]):
            self.assertEqual(lock(*arguments).stdout, "<--help>")


class Command(Case):
    # The exit status of the command is returned as it is, and 128 and the signal if one has ended it.
    def test_status(self):
        for status in (0, 1, 2, 3, 5, 77, 124, 127, 255):
            self.assertEqual(lock(self.name, "sh", "-c", "exit %d" % status).returncode, status)
        for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGRTMIN):
            done = lock(self.name, "sh", "-c", "ulimit -c 0; kill -%d $$" % number)
            self.assertEqual((done.returncode, done.stderr), (128 + number, ""))

    # The command gets its arguments as they are, and standard input, output and error are its own.
    def test_arguments_and_stdio(self):
        arguments = ["", "a b", "*", "-x", "--", "new\nline", "\udcff", "'\""]
        done = lock(self.name, "printf", "[%s]", *arguments)
        self.assertEqual(done.stdout, "".join("[%s]" % word for word in arguments))
        many = ["x" * 100000] * 15
        self.assertEqual(lock(self.name, "sh", "-c", "echo $#", "sh", *many).stdout, "15\n")
        with open(self.write("input", "one\ntwo\n"), encoding="utf-8") as file:
            done = lock(self.name, "sh", "-c", "cat; echo three >&2", stdin=file)
        self.assertEqual((done.stdout, done.stderr), ("one\ntwo\n", "three\n"))

    # Standard output that is closed is none of our business.
    def test_closed_output(self):
        done = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", Setting.divvy, "lock", self.name, "sh", "-c",
                               "exit 6"], env=environment(), stderr=subprocess.PIPE, check=False)
        self.assertEqual((done.returncode, done.stderr), (6, b""))

    # A file without #! is run by the shell, as a shell would.
    def test_script_without_interpreter(self):
        self.assertEqual(lock(self.name, self.write("plain", "echo $1 $#\n"), "a", "b").stdout, "a 2\n")

    # The command is looked up before anything is locked: 127 and 126, one line, and no server is needed.
    def test_looked_up_first(self):
        self.write("not-executable", "#!/bin/sh\n", 0o644)
        os.mkdir(self.path("folder"))
        for command, code, reason in (("no-such-command", 127, "not found"), ("/no/such/file", 127, "not found"),
                                      ("", 127, "not found"), ("not-executable", 126, "Permission denied"),
                                      (self.path("not-executable"), 126, "Permission denied"),
                                      (self.path("folder"), 126, "directory"), ("/etc/passwd/x", 127, "directory")):
            with self.subTest(command=command):
                path = self.folder + ":" + os.environ["PATH"]
                done = lock("--connect", NOWHERE, self.name, command, env={"PATH": path})
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertRegex(done.stderr, r"\Adivvy: [^\n]*%s\n\Z" % reason)
        self.assertIsNone(Setting.zookeeper.exists("/divvy/locks/" + self.name))

    # What turns out only when it is executed has the same codes, and the lock is given back.
    def test_cannot_be_executed(self):
        for content, code in (("#!/no/such/interpreter\n", 127), ("#!/etc/passwd\n", 126)):
            done = lock(self.name, self.write("bad", content))
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn("cannot execute", done.stderr)
        self.assertEqual(self.contenders(), [])

    # The name of the lock, a token that grows, and the slot are in the environment of the command.
    def test_environment(self):
        show = ["sh", "-c", 'echo "$DIVVY_LOCK_NAME|$DIVVY_LOCK_TOKEN|${DIVVY_LOCK_SLOT-none}"']
        tokens = []
        for arguments, slot in (([], "0"), ([], "0"), (["--shared"], "none"), (["-n", "2"], "0")):
            done = lock(*arguments, self.name, *show, env={"DIVVY_LOCK_SLOT": "9"})
            name, token, got = done.stdout.strip().split("|")
            self.assertEqual((name, got), (self.name, slot))
            tokens.append(int(token))
        self.assertTrue(0 < tokens[0] < tokens[1] < tokens[2], tokens)

    # NAME is any string: it is escaped in the node's name, and names that differ are locks that differ.
    def test_any_name(self):
        for name, node in (("a/b c", "a%2Fb c"), ("..", "%2E%2E"), ("ü✓", "ü✓"), ("%41", "%2541"),
                           ("\x01", "%01"), ("--help", "--help"), ("🐝", "%F0%9F%90%9D"), ("x" * 300, "x" * 300)):
            with self.subTest(name=name):
                self.assertEqual(lock("--", name, "sh", "-c", 'printf %s "$DIVVY_LOCK_NAME"').stdout, name)
                self.assertIsNotNone(Setting.zookeeper.exists("/divvy/locks/" + node))
        # The queue of a semaphore is no semaphore.
        for name, node in (("s", "s"), ("s-__lock__", "s%2D__lock__")):
            self.assertEqual(lock("-n", "2", name, "true").returncode, 0)
            self.assertIsNotNone(Setting.zookeeper.exists("/divvy/semaphores/" + node))

    # The command inherits what its caller has passed on, and no descriptor of ours.
    def test_descriptors(self):
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        show = [sys.executable, "-c", "import os; print(*os.listdir('/proc/self/fd'))"]
        done = lock(self.name, *show, pass_fds=[writer])
        os.close(writer)
        plain = subprocess.run(show, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, pass_fds=[reader], check=True,
                               text=True)
        self.assertEqual(len(done.stdout.split()), len(plain.stdout.split()), done.stdout)
        self.assertIn(str(writer), done.stdout.split())
        self.assertEqual(subprocess.run(["bash", "-c", '"$0" lock "$1" cat <(echo passed)', Setting.divvy, self.name],
                                        env=environment(), stdout=subprocess.PIPE, check=True).stdout, b"passed\n")

    # Signals that our caller ignores are ignored by the command, all others are not, and none is blocked.
    def test_dispositions(self):
        show = ["grep", "-E", "Sig(Blk|Ign)", "/proc/self/status"]
        plain = subprocess.run(show, stdout=subprocess.PIPE, check=True, text=True).stdout
        self.assertEqual(lock(self.name, *show).stdout, plain)
        done = subprocess.run(["sh", "-c", 'trap "" HUP USR1; exec "$@"', "sh", Setting.divvy, "lock", self.name,
                               *show], env=environment(), stdout=subprocess.PIPE, check=True, text=True)
        ignored = int(re.search("SigIgn:\\s*(\\w+)", done.stdout).group(1), 16)
        expected = int(re.search("SigIgn:\\s*(\\w+)", plain).group(1), 16) | 1 << 0 | 1 << signal.SIGUSR1 - 1
        self.assertEqual(ignored, expected)


class Waiting(Case):
    # The second one of two that each take their time runs after the first; a function from a sourced file likewise.
    def test_second_wait(self):
        wait = os.path.join(EXAMPLES, "10-second-wait")
        begun = time.monotonic()
        sourced = '. "$DIVVY_SHARE/divvy-lock.bash"; f() { echo "Waiting"; sleep 1; echo "Done"; }; divvyLock "$1" f'
        both = [self.start(self.name, wait, "1"), Running("bash", "-c", sourced, "bash", self.name)]
        self.assertEqual([one.end() for one in both], [0, 0])
        self.assertGreaterEqual(time.monotonic() - begun, 2)
        self.assertEqual([one.output for one in both], ["Waiting 1 seconds\nDone\n", "Waiting\nDone\n"])

    # Two run one after the other; with --no-wait one that would have to wait exits with 4 at once, or as -E says, and
    # says nothing.
    def test_wait(self):
        # It waits for us instead of for ten seconds.
        wait = self.write("wait", '#!/bin/sh\necho begin $2 >>"$1/log"\nwhile [ ! -e "$1/go" ]; do sleep 0.02; done\n'
                                  'echo end $2 >>"$1/log"\n')
        first = self.start(self.name, wait, self.folder, "1")
        wait_for(lambda: self.read("log") == ["begin 1"], "it has begun")
        second = self.start(self.name, wait, self.folder, "2")
        wait_for(lambda: len(self.contenders()) == 2, "the second one waits")
        for arguments, code in (([], 4), (["-E", "42"], 42), (["--conflict-exit-code", "0"], 0), (["--shared"], 4),
                                (["-E", "1"], 1)):
            done = lock("--no-wait", *arguments, self.name, "touch", self.path("wrong"))
            self.assertEqual((done.returncode, done.stdout, done.stderr), (code, "", ""))
        self.assertEqual(self.read("log"), ["begin 1"])
        self.assertFalse(os.path.exists(self.path("wrong")))
        self.write("go", "")
        self.assertEqual([first.end(), second.end()], [0, 0])
        self.assertEqual(self.read("log"), ["begin 1", "end 1", "begin 2", "end 2"])
        self.assertEqual(self.contenders(), [])
        self.assertEqual(lock("--no-wait", self.name, "true").returncode, 0)

    # A wait that lasts longer than --timeout ends with 4, or as -E says, one line, and no place in the queue.
    def test_timeout(self):
        holder = self.script(text="echo held; exec sleep 60").says("held")
        begun = time.monotonic()
        done = lock("--timeout", "4s", self.name, "true")  # in which it must have come to wait
        self.assertGreaterEqual(time.monotonic() - begun, 4)
        self.assertEqual(done.returncode, TIMED_OUT)
        self.assertRegex(done.stderr, r'\Adivvy: the lock "test_timeout" was not to be had within 4000 ms\n\Z')
        self.assertEqual(lock("--timeout", "4s", "-E", "77", self.name, "true").returncode, 77)
        self.assertEqual(len(self.contenders()), 1)
        holder.process.terminate()
        self.assertEqual(holder.end(), 128 + signal.SIGTERM)

    # Told to end while it waits, it leaves the queue and exits as if the signal had ended it.
    def test_signal(self):
        holder = self.script(text="echo held; exec sleep 60").says("held")
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
            waiting = self.start(self.name, "true")
            wait_for(lambda: len(self.contenders()) == 2, "it waits")
            waiting.process.send_signal(signal.SIGUSR1)
            waiting.process.send_signal(number)
            self.assertEqual((waiting.end(), waiting.errors), (128 + number, ""))
            self.assertEqual(len(self.contenders()), 1)
        self.assertIsNone(holder.process.poll())

    # Shared locks are held together; one that is not shared waits for all of them, and they for it.
    def test_shared(self):
        readers = [self.script("--shared", text="echo held; exec sleep 60").says("held") for _ in range(2)]
        self.assertEqual(lock("--no-wait", self.name, "true").returncode, NOT_HELD)
        writer = self.script(text="echo held; exec sleep 60")
        wait_for(lambda: len(self.contenders()) == 3, "the writer waits")
        self.assertEqual(lock("--no-wait", "--shared", self.name, "true").returncode, NOT_HELD)
        for reader in readers:
            reader.process.terminate()
        writer.says("held")

    # With -n so many run at a time, each in a slot of its own; another number is an error, or not, by --limit-policy.
    def test_slots(self):
        text = 'echo "slot $DIVVY_LOCK_SLOT"; exec sleep 60'
        holders = [self.script("-n", "2", text=text) for _ in range(2)]
        wait_for(lambda: sorted(holder.output for holder in holders) == ["slot 0\n", "slot 1\n"], "both run", *holders)
        self.assertEqual(lock("--no-wait", "-n", "2", self.name, "true").returncode, NOT_HELD)
        third = self.script("-n", "2", text=text)
        wait_for(lambda: self.contenders("semaphores", self.name + "-__lock__"), "the third one waits")
        done = lock("-n", "3", self.name, "true")
        self.assertEqual(done.returncode, TROUBLE)
        self.assertRegex(done.stderr, r"\Adivvy: [^\n]*\b2, not 3\n\Z")
        freed = holders[0].output
        holders[0].process.terminate()
        third.says(freed.strip())
        for policy, code in (("stored", NOT_HELD), ("provided", 0)):
            done = lock("--no-wait", "-n", "3", "--limit-policy", policy, self.name, "true")
            self.assertEqual(done.returncode, code, done.stderr)

    # --root says where the locks are, and what is there besides is left alone.
    def test_root(self):
        self.assertEqual(lock("--root", "/other/place", self.name, "true").returncode, 0)
        self.assertEqual(children("/other/place"), ["locks"])
        self.assertEqual(children("/other/place/locks"), [self.name])


class Servers(Case):
    # Where no server answers the exit code is 3, in the time that was given, with one line.
    def test_unreachable(self):
        for arguments in (["--connect-timeout", "300ms"], ["--timeout", "300ms"],
                          ["--no-wait", "--connect-timeout", "300ms"]):
            begun = time.monotonic()
            done = lock("--connect", NOWHERE, *arguments, self.name, "true")
            self.assertGreaterEqual(time.monotonic() - begun, 0.3)
            self.assertEqual((done.returncode, done.stderr),
                             (UNREACHABLE, "divvy: no ZooKeeper server answered at %s within 300 ms\n" % NOWHERE))

    # One that waits while the server goes exits with 3: nobody knows whether somebody else has the lock.
    def test_away_while_waiting(self):
        server = Server()
        self.addCleanup(server.do, "stop")
        patient = ["--session-timeout", "2m", "--connect", server.connect]
        self.script(*patient, text="echo held; exec sleep 60").says("held")
        waiting = self.start(*patient, "--timeout", "20s", self.name, "true")
        zookeeper = KazooClient(server.plain)
        zookeeper.start()
        wait_for(lambda: len(zookeeper.get_children("/divvy/locks/" + self.name)) == 2, "it waits", waiting)
        zookeeper.stop()
        zookeeper.close()
        server.do("kill", "1")
        self.assertEqual(waiting.end(), UNREACHABLE, waiting)
        self.assertIn("divvy: the servers at %s do not answer" % server.connect, waiting.errors)

    # A lock that is for other credentials is refused, with 125 and one line; --verbose does not show ours.
    def test_credentials(self):
        root = ["--root", "/credentials"]  # its nodes are for nobody else
        right = self.write("right", "user:secret word\n", mode=0o600)
        wrong = self.write("wrong", "user:guessed\n", mode=0o600)
        self.assertEqual(lock(*root, "--auth-file", right, self.name, "true").returncode, 0)
        for arguments in ([], ["--auth-file", wrong], ["--no-wait"]):
            with another_certificate():
                done = lock(*root, *arguments, self.name, "true")
            self.assertEqual(done.returncode, TROUBLE, done.stderr)
            self.assertRegex(done.stderr, r"\Adivvy: [^\n]*access list[^\n]*\n\Z")
        done = lock(*root, "--verbose", "--auth-file", right, self.name, "true", env={"DEBUG": "true"})
        self.assertEqual(done.returncode, 0)
        self.assertIn("request", done.stderr)
        self.assertNotIn("secret", done.stderr)
        self.assertNotIn("word", done.stderr)

    # With --verbose, or DEBUG, each request and each answer is on stderr; without, nothing is, and DEBUG may say no.
    def test_verbose(self):
        for arguments, env in ((["--verbose"], {}), ([], {"DEBUG": "true"}), ([], {"DEBUG": "1"})):
            done = lock(*arguments, self.name, "echo", "out", env=env)
            self.assertEqual((done.returncode, done.stdout), (0, "out\n"))
            self.assertTrue(all(line.startswith("divvy: ") for line in done.stderr.splitlines()), done.stderr)
            requests = set(re.findall(r"request ([0-9]+): ", done.stderr))
            self.assertGreaterEqual(len(requests), 3)
            # The client may close before a heartbeat is answered.
            heartbeats = set(re.findall(r"request ([0-9]+): all of 1: check /\n", done.stderr))
            answers = set(re.findall(r"answer ([0-9]+): ", done.stderr))
            self.assertLessEqual(requests - heartbeats, answers, done.stderr)
            self.assertLessEqual(answers, requests, done.stderr)
            self.assertRegex(done.stderr, r"request [0-9]+: [^\n]*create /divvy/locks/test_verbose/")
            self.assertRegex(done.stderr, r"request [0-9]+: [^\n]*delete /divvy/locks/test_verbose/")
        for env in ({}, {"DEBUG": ""}, {"DEBUG": "false"}, {"DEBUG": "0"}):
            self.assertEqual(lock(self.name, "true", env=env).stderr, "")

    # The session times out after 15 s where nothing else is asked for.
    def test_session_timeout(self):
        for arguments, ms in (([], 15000), (["--session-timeout", "4s"], 4000)):
            done = lock("--verbose", *arguments, self.name, "true")
            self.assertRegex(done.stderr, r"connected: session 0x[0-9a-f]+, timeout %d ms" % ms)

    # The command may run for longer than the session timeout, and the lock stays ours all along.
    def test_long_run(self):
        text = 'echo held; while [ ! -e "$1/done" ]; do sleep 0.05; done'
        running = self.script("--session-timeout", "%ds" % T, text=text).says("held")
        node = self.contenders()
        over = time.monotonic() + 2.5 * T
        while time.monotonic() < over:
            time.sleep(1)  # not for luck: it is to last for several timeouts
            self.assertEqual(lock("--no-wait", self.name, "true").returncode, NOT_HELD)
            self.assertEqual(self.contenders(), node)
        self.write("done", "")
        self.assertEqual(running.end(), 0, running)
        self.assertEqual(self.contenders(), [])


class Holding(Case):
    # --hold says when it holds the lock, holds it until its input ends, and exits with 0.
    def test_hold(self):
        holder = self.start("--hold", self.name, stdin=subprocess.PIPE)
        wait_for(lambda: re.fullmatch(r"held [0-9]+ 0\n", holder.output), "it holds the lock", holder)
        self.assertEqual(lock("--no-wait", self.name, "true").returncode, NOT_HELD)
        waiting = self.start("--hold", self.name, stdin=subprocess.PIPE)
        wait_for(lambda: len(self.contenders()) == 2, "another one waits")
        waiting.process.stdin.close()
        self.assertEqual((waiting.end(), waiting.output), (NOT_HELD, ""))
        holder.process.stdin.close()
        self.assertEqual(holder.end(), 0)
        self.assertEqual(self.contenders(), [])

    # A caller that cannot be told that it holds the lock does not hold it: 125, and nothing is left.
    def test_output_failure(self):
        reader, writer = os.pipe()
        with os.fdopen(reader), os.fdopen(writer, "w"), open("/dev/full", "w", encoding="utf-8") as full:
            done = lock("--hold", self.name, stdin=reader, stdout=full)
        self.assertEqual(done.returncode, TROUBLE)
        self.assertEqual(done.stderr, "divvy: cannot write to standard output: No space left on device\n")
        self.assertEqual(self.contenders(), [])

    # Told to end, it says that the lock is lost, leaves some time, and exits as if the signal had ended it. Signals
    # that ask for something else change nothing.
    def test_told_to_end(self):
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
            holder = self.start("--hold", "--session-timeout", "60s", "--grace", "300ms", self.name,
                                stdin=subprocess.PIPE)
            wait_for(lambda holder=holder: holder.output, "it holds the lock", holder)
            begun = time.monotonic()
            for other in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGWINCH, number):
                holder.process.send_signal(other)
            self.assertEqual(holder.end(), 128 + number, holder)
            self.assertEqual(holder.output.splitlines()[1:], ["lost"])
            self.assertGreaterEqual(time.monotonic() - begun, 0.3)
            holder.process.stdin.close()
        self.assertEqual(self.contenders(), [])

    # When the lock is lost it says so, and leaves some time, but no more than there is.
    def test_lost(self):
        holder = self.start("--hold", "--session-timeout", "10s", self.name, stdin=subprocess.PIPE)
        wait_for(lambda: holder.output, "it holds the lock", holder)
        Setting.zookeeper.delete("/divvy/locks/%s/%s" % (self.name, self.contenders()[0]))
        holder.says("lost")
        self.assertEqual(holder.end(), LOST)
        holder.process.stdin.close()


if __name__ == "__main__":
    main(__file__)
