#!/usr/bin/python3
"""`divvy lock` as its users drive it. SPDX-License-Identifier: Apache-2.0

usage: test_command_lock.py BUILD_FOLDER [TEST...]     a TEST is a name such as Ends.test_frozen

docs/consul-locker.md names the tests that show each sentence of consul-locker's README.
"""
import contextlib
import errno
import fcntl
import os
import pty
import re
import select
import signal
import sqlite3
import subprocess
import sys
import tempfile
import termios
import threading
import time
import unittest

from kazoo.client import KazooClient

from test_command import DEADLINE_S, NOWHERE, SOURCE_DIR, Server, wait_for

DIVVY = None  # set from the command line
TOOLS = os.path.join(SOURCE_DIR, "tools", "divvy")
EXAMPLES = os.path.join(SOURCE_DIR, "docs", "examples")
T = 3  # seconds, the session timeout of tests that wait for its end
HELD, NOT_HELD, USAGE, UNREACHABLE, TIMED_OUT, LOST, OVERRUN, TROUBLE = 0, 4, 2, 3, 4, 5, 124, 125


def environment(**more):
    """What the command is run with: as a user's, but for what the test's own may say."""
    kept = {key: value for key, value in os.environ.items() if key not in ("DEBUG", "DIVVY_CONNECT")}
    folders = os.path.dirname(DIVVY) + ":" + kept.get("PATH", os.defpath)
    return {**kept, "DIVVY_CONNECT": SERVER.connect, "PATH": folders, "DIVVY_SHARE": TOOLS, **more}



def processes_of_session(session):
    """The numbers of the processes that belong to it, but for those that have ended and wait to be asked for."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/stat" % name) as file:
                fields = file.read().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(int(name))
    return found


class Running:
    """A program under test that runs in the background, and what it has printed so far."""

    made = []

    def __init__(self, *command, env=None, stdin=subprocess.DEVNULL, **options):
        self.output, self.errors = "", ""
        self.process = subprocess.Popen(command, env=env or environment(), stdin=stdin, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, encoding="utf-8", errors="surrogateescape", **options)
        self.pid = self.process.pid
        # A process that a fault has left behind may hold their pipes: that is not to hold us.
        self.readers = [threading.Thread(target=self._read, args=[name], daemon=True) for name in ("output", "errors")]
        for reader in self.readers:
            reader.start()
        Running.made.append(self)

    def _read(self, name):
        for line in self.process.stdout if name == "output" else self.process.stderr:
            setattr(self, name, getattr(self, name) + line)

    def says(self, text):
        """Waits until it has printed the text as a line."""
        wait_for(lambda: text in self.output.splitlines(), "it prints " + text, self)
        return self

    def end(self):
        status = self.process.wait(DEADLINE_S)
        for reader, pipe in zip(self.readers, (self.process.stdout, self.process.stderr)):
            reader.join(DEADLINE_S)
            if not reader.is_alive():
                pipe.close()
        return status

    def __str__(self):
        return "pid %d, %s, has printed:\n%s%s" % (self.pid, self.process.args, self.output, self.errors)


def lock(*arguments, **options):
    """Runs `divvy lock` to its end."""
    env = environment(**options.pop("env", {}))
    return subprocess.run([DIVVY, "lock", *arguments], stdin=options.pop("stdin", subprocess.DEVNULL), env=env,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", errors="surrogateescape",
                          timeout=DEADLINE_S, check=False, **options)


def alive(pid):
    """Whether the process is there, and no zombie."""
    try:
        with open("/proc/%d/stat" % pid, encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def fire(*pids):
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


class Case(unittest.TestCase):
    """Every test has a lock of its own, a folder of its own, and leaves no process."""

    def setUp(self):
        self.name = self.id().split(".")[-1]
        self.folder = tempfile.mkdtemp()
        self.addCleanup(subprocess.run, ["rm", "-rf", self.folder], check=True)
        self.addCleanup(self.clear_up)

    def clear_up(self):
        made, Running.made = Running.made, []
        for running in made:
            if running.process.poll() is None:
                running.process.send_signal(signal.SIGCONT)
                running.process.kill()
            running.end()

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, content, mode=0o755):
        with open(self.path(name), "wb") as file:
            file.write(content.encode())
        os.chmod(self.path(name), mode)
        return self.path(name)

    def read(self, name):
        """The file's lines; none while it is not there."""
        try:
            with open(self.path(name), encoding="utf-8") as file:
                return file.read().splitlines()
        except FileNotFoundError:
            return []

    def start(self, *arguments, **options):
        """`divvy lock` in the background; env is what is added to its environment."""
        return Running(DIVVY, "lock", *arguments, env=environment(**options.pop("env", {})), **options)

    def script(self, *arguments, text, **options):
        """A shell script under the test's lock, in the background; its $1 is the test's folder."""
        return self.start(*arguments, self.name, "/bin/sh", "-c", text, "sh", self.folder, **options)

    def pids(self, name, count=1):
        """Process numbers that a script has written into a file."""
        wait_for(lambda: len(self.read(name)) >= count, "%d numbers in %s" % (count, name))
        return [int(line) for line in self.read(name)]

    def contenders(self, kind="locks", name=None):
        return children("/divvy/%s/%s" % (kind, name or self.name))


def children(path):
    return ZOOKEEPER.get_children(path) if ZOOKEEPER.exists(path) else []


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
            with self.subTest(arguments=arguments):
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
        done = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", DIVVY, "lock", self.name, "sh", "-c", "exit 6"],
                              env=environment(), stderr=subprocess.PIPE, check=False)
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
        self.assertIsNone(ZOOKEEPER.exists("/divvy/locks/" + self.name))

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
                self.assertIsNotNone(ZOOKEEPER.exists("/divvy/locks/" + node))
        # The queue of a semaphore is no semaphore.
        for name, node in (("s", "s"), ("s-__lock__", "s%2D__lock__")):
            self.assertEqual(lock("-n", "2", name, "true").returncode, 0)
            self.assertIsNotNone(ZOOKEEPER.exists("/divvy/semaphores/" + node))

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
        self.assertEqual(subprocess.run(["bash", "-c", '"$0" lock "$1" cat <(echo passed)', DIVVY, self.name],
                                        env=environment(), stdout=subprocess.PIPE, check=True).stdout, b"passed\n")

    # Signals that our caller ignores are ignored by the command, all others are not, and none is blocked.
    def test_dispositions(self):
        show = ["grep", "-E", "Sig(Blk|Ign)", "/proc/self/status"]
        plain = subprocess.run(show, stdout=subprocess.PIPE, check=True, text=True).stdout
        self.assertEqual(lock(self.name, *show).stdout, plain)
        done = subprocess.run(["sh", "-c", 'trap "" HUP USR1; exec "$@"', "sh", DIVVY, "lock", self.name, *show],
                              env=environment(), stdout=subprocess.PIPE, check=True, text=True)
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

    # A lock that is for other credentials is refused, with 125 and one line; --verbose does not show ours.
    def test_credentials(self):
        root = ["--root", "/credentials"]  # its nodes are for nobody else
        right = self.write("right", "user:secret word\n", mode=0o600)
        wrong = self.write("wrong", "user:guessed\n", mode=0o600)
        self.assertEqual(lock(*root, "--auth-file", right, self.name, "true").returncode, 0)
        for arguments in ([], ["--auth-file", wrong], ["--no-wait"]):
            done = lock(*root, *arguments, self.name, "true")
            self.assertEqual(done.returncode, TROUBLE)
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
            self.assertEqual(requests, set(re.findall(r"answer ([0-9]+): ", done.stderr)), done.stderr)
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


class Losses(Case):
    def own_server(self):
        server = Server()
        self.addCleanup(server.do, "stop")
        return server

    # The server freezes: the command gets SIGTERM, then SIGKILL, and is gone before the session can have ended; 5.
    def test_frozen(self):
        server = self.own_server()
        text = ('trap "date +%s.%N >>$1/term" TERM; echo $$ >"$1/pid"; sleep 60 & echo $! >>"$1/pid"\n'
                'while :; do date +%s.%N >"$1/now"; mv "$1/now" "$1/last"; sleep 0.02; done')
        running = self.script("--session-timeout", "%ds" % T, "--connect", server.connect, text=text)
        pids = self.pids("pid", 2)
        frozen = time.time()
        server.do("pause", "1")
        self.assertEqual(running.end(), LOST, running)
        last = float(self.read("last")[0])
        # The session's last sign of life came before the server froze.
        self.assertLess(last, frozen + T)
        self.assertEqual(len(self.read("term")), 1)
        self.assertLess(float(self.read("term")[0]), last)
        self.assertFalse(any(map(alive, pids)))
        self.assertRegex(running.errors, r'(?m)^divvy: the lock "test_frozen" could not be kept')
        server.do("resume", "1")
        zookeeper = KazooClient(server.connect)
        zookeeper.start()
        self.addCleanup(zookeeper.close)
        self.addCleanup(zookeeper.stop)
        wait_for(lambda: zookeeper.get_children("/divvy/locks/" + self.name) == [], "no node is left")

    # A server that comes back soon enough changes nothing.
    def test_outage(self):
        server = self.own_server()
        running = self.script("--session-timeout", "30s", "--connect", server.connect,
                              text='echo held; while [ ! -e "$1/go" ]; do sleep 0.02; done; exit 7').says("held")
        server.do("kill", "1")
        wait_for(lambda: "the lock ends in" in running.errors, "it tells of the outage", running)
        server.do("restart", "1")
        wait_for(lambda: "is back" in running.errors, "it tells of the return", running)
        self.write("go", "")
        self.assertEqual(running.end(), 7, running)

    # Somebody deletes our node: the command is ended at once, with 5.
    def test_deleted(self):
        text = 'trap "" TERM; echo $$ >"$1/pid"; while :; do sleep 0.1; done'
        running = self.script("--session-timeout", "30s", text=text)
        pids = self.pids("pid")
        ZOOKEEPER.delete("/divvy/locks/%s/%s" % (self.name, self.contenders()[0]))
        self.assertEqual(running.end(), LOST, running)
        # A heartbeat has found it: of a deadline that has passed it would say that the lock could not be kept.
        self.assertRegex(running.errors, r'(?m)^divvy: the lock "test_deleted" is lost')
        self.assertFalse(any(map(alive, pids)))

    # A command that is to end because its lock was lost early gets SIGTERM, and a moment to act on it.
    def test_deleted_moment(self):
        text = 'trap "echo TERM; exit 3" TERM; echo ready; while :; do sleep 0.01; done'
        # The moment is short, and a busy machine may let it pass: but not each time.
        for _ in range(20):
            running = self.script("--session-timeout", "10s", text=text).says("ready")
            ZOOKEEPER.delete("/divvy/locks/%s/%s" % (self.name, self.contenders()[0]))
            self.assertEqual(running.end(), LOST, running)
            if running.output == "ready\nTERM\n":
                return
        self.fail("it never came to act on SIGTERM")

    # divvy itself is stopped: its guardian ends the command in time nevertheless, and exit code 5 follows.
    def test_stopped(self):
        text = 'echo $$ >"$1/pid"; while :; do date +%s.%N >"$1/now"; mv "$1/now" "$1/last"; sleep 0.02; done'
        running = self.script("--session-timeout", "%ds" % T, text=text)
        pids = self.pids("pid")
        stopped = time.time()
        running.process.send_signal(signal.SIGSTOP)
        wait_for(lambda: not any(map(alive, pids)), "the command is ended", running)
        self.assertLess(float(self.read("last")[0]), stopped + T)
        running.process.send_signal(signal.SIGCONT)
        self.assertEqual(running.end(), LOST, running)
        wait_for(lambda: self.contenders() == [], "no node is left", running)

    # The guardian is stopped too: once it goes on it ends the command at once, and not by asking first.
    def test_both_stopped(self):
        running = self.script("--session-timeout", "9s", "--grace", "3s",
                              text='trap "echo TERM >>$1/log" TERM; echo $PPID >"$1/guardian"; echo $$ >"$1/pid"; '
                                   'while :; do sleep 0.05; done')
        pids, guardian = self.pids("pid"), self.pids("guardian")[0]
        running.process.send_signal(signal.SIGSTOP)
        os.kill(guardian, signal.SIGSTOP)
        wait_for(lambda: self.contenders() == [], "the servers have ended the session")
        self.assertTrue(alive(pids[0]))
        os.kill(guardian, signal.SIGCONT)
        resumed = time.monotonic()
        wait_for(lambda: not alive(pids[0]), "the command is ended", running)
        self.assertLess(time.monotonic() - resumed, 3)  # the grace, which it does not get
        running.process.send_signal(signal.SIGCONT)
        self.assertEqual(running.end(), LOST, running)

    # divvy is killed by -9: all that the command has started is gone before the lock can be another's, daemons and what
    # ignores SIGTERM too, and the lock is free when the session has timed out.
    def test_killed(self):
        text = ('trap "" TERM; echo $$ >>"$1/pid"; sleep 60 & echo $! >>"$1/pid"\n'
                'setsid sh -c \'echo $$ >>"$0/pid"; exec sleep 60\' "$1" &\n'
                '(setsid sh -c \'trap "" TERM; echo $$ >>"$0/pid"; while :; do sleep 0.1; done\' "$1" &)\n'
                'while :; do sleep 0.1; done')
        running = self.script("--session-timeout", "%ds" % (3 * T), text=text)
        pids = self.pids("pid", 4)
        self.assertTrue(all(map(alive, pids)))
        running.process.kill()
        wait_for(lambda: not any(map(alive, pids)), "they are gone")
        self.assertEqual(len(self.contenders()), 1)
        self.assertEqual(lock(self.name, "true").returncode, 0)
        self.assertEqual(self.contenders(), [])

    # The guardian is killed by -9: so is the command with what it has started, the lock is given back, and 125.
    def test_guardian_killed(self):
        text = ('trap "" TERM; echo $PPID >>"$1/guardian"; echo $$ >>"$1/pid"; sleep 60 & echo $! >>"$1/pid"\n'
                '(setsid sh -c \'echo $$ >>"$0/pid"; exec sleep 60\' "$1" &)\nwait')
        running = self.script(text=text)
        pids = self.pids("pid", 3)
        os.kill(self.pids("guardian")[0], signal.SIGKILL)
        self.assertEqual(running.end(), TROUBLE, running)
        self.assertFalse(any(map(alive, pids)))
        self.assertEqual(self.contenders(), [])

    # A command that runs for longer than --max-run is ended, with 124; by SIGKILL if SIGTERM does not do.
    def test_max_run(self):
        for trap, grace in (("", "3s"), ('trap "" TERM;', "200ms")):
            begun = time.monotonic()
            running = self.script("--max-run", "300ms", "--grace", grace, text=trap + "while :; do sleep 0.05; done")
            self.assertEqual(running.end(), OVERRUN, running)
            self.assertGreaterEqual(time.monotonic() - begun, 0.3)
            self.assertRegex(running.errors, r"\Adivvy: the command has run for 300 ms, and was ended\n\Z")
            self.assertEqual(self.contenders(), [])
        self.assertEqual(lock("--max-run", "1m", self.name, "sh", "-c", "exit 3").returncode, 3)

    # What a command leaves behind in the background may finish, and is ended before the lock is given back; a daemon in
    # a session of its own goes on.
    def test_left_behind(self):
        text = ('(while [ ! -e "$1/go" ]; do sleep 0.02; done; echo finished) &\n'
                'sh -c \'trap "" TERM; while :; do sleep 0.05; done\' & echo $! >>"$1/pid"\n'
                'setsid sh -c \'echo $$ >"$0/daemon"; exec sleep 60\' "$1" >/dev/null 2>&1 &\n'
                'while [ ! -s "$1/daemon" ]; do sleep 0.02; done; echo $$ >"$1/command"; exit 9')
        running = self.script("--grace", "4s", text=text)
        command = self.pids("command")[0]
        wait_for(lambda: not alive(command), "the command has ended", running)
        self.write("go", "")
        self.assertEqual(running.end(), 9, running)
        self.assertEqual(running.output, "finished\n")
        self.assertFalse(alive(self.pids("pid")[0]))
        daemon = self.pids("daemon")[0]
        self.addCleanup(fire, daemon)
        self.assertTrue(alive(daemon))
        self.assertEqual(self.contenders(), [])


class Signals(Case):
    # Each signal that is sent to divvy reaches the command's group, once, and the command decides what it means.
    def test_forwarded(self):
        names = ("TERM", "INT", "HUP", "QUIT", "USR1", "USR2", "WINCH")
        text = "".join("trap 'echo %s >>\"$1/%s\"' %s; " % (name, "log", name) for name in names)
        text += 'echo ready; while [ ! -e "$1/go" ]; do sleep 0.02; done; exit 33'
        running = self.script(text=text).says("ready")
        for count, name in enumerate(names):
            running.process.send_signal(getattr(signal, "SIG" + name))
            wait_for(lambda count=count: len(self.read("log")) > count, name + " arrives", running)
        self.write("go", "")
        self.assertEqual(running.end(), 33, running)
        self.assertEqual(self.read("log"), list(names))

    # A stop and the end of it reach the command, and divvy goes on to hold the lock where there is no terminal.
    def test_stop_and_continue(self):
        running = self.script(text='echo $$ >"$1/pid"; echo ready; exec sleep 60').says("ready")
        pid = self.pids("pid")[0]
        running.process.send_signal(signal.SIGTSTP)
        wait_for(lambda: state(pid) == "T", "the command is stopped", running)
        running.process.send_signal(signal.SIGCONT)
        wait_for(lambda: state(pid) == "S", "the command goes on", running)
        running.process.terminate()
        self.assertEqual(running.end(), 128 + signal.SIGTERM)

    # SIGHUP that nohup has ignored is neither acted upon nor passed on.
    def test_nohup(self):
        running = Running("sh", "-c", 'trap "" HUP; exec "$@"', "sh", DIVVY, "lock", self.name, "sh", "-c",
                          "echo ready; exec sleep 60").says("ready")
        running.process.send_signal(signal.SIGHUP)
        running.process.terminate()
        self.assertEqual(running.end(), 128 + signal.SIGTERM)


def state(pid):
    with open("/proc/%d/stat" % pid, encoding="utf-8", errors="replace") as file:
        return file.read().rpartition(")")[2].split()[0]


class Terminal:
    """A program in a terminal of its own, as a login shell has it."""

    def __init__(self, *command):
        self.shown = ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(command[0], command, environment(PS1="$ ", TERM="dumb", HISTFILE="/dev/null"))
        Terminal.current = self

    def read(self):
        """Takes what it shows now; false when it has ended."""
        try:
            while select.select([self.fd], [], [], 0)[0]:
                self.shown += os.read(self.fd, 65536).decode(errors="replace")
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            return False
        return True

    def type(self, text):
        os.write(self.fd, text.encode())

    def shows(self, pattern):
        def there():
            self.read()
            return re.search(pattern, self.shown)
        wait_for(there, "the terminal shows " + pattern, self)
        self.shown = self.shown[re.search(pattern, self.shown).end():]

    def end(self):
        wait_for(lambda: not self.read() or not alive(self.pid), "it ends", self)
        self.read()
        os.close(self.fd)
        return os.waitpid(self.pid, 0)[1]

    def foreground(self):
        return os.tcgetpgrp(self.fd)

    def __str__(self):
        return "the terminal shows: " + self.shown


class Terminals(Case):
    def open(self, *command):
        terminal = Terminal(*command)
        self.addCleanup(fire, terminal.pid)
        return terminal

    # ^C in a terminal reaches the command, once, the lock is given back at once, and the exit status is 130.
    def test_interrupt(self):
        count = 'trap "echo INT >>$1/log; trap - INT; kill -INT \\$\\$" INT; echo ready; while :; do sleep 0.05; done'
        terminal = self.open(DIVVY, "lock", self.name, "/bin/sh", "-c", count, "sh", self.folder)
        terminal.shows("ready")
        terminal.type("\x03")
        status = terminal.end()
        self.assertTrue(os.WIFEXITED(status), status)
        self.assertEqual(os.WEXITSTATUS(status), 130, terminal)
        self.assertEqual(self.read("log"), ["INT"])
        self.assertEqual(self.contenders(), [])
        # At once: not after a session timeout, nor after a grace.
        self.assertEqual(lock("--no-wait", self.name, "true").returncode, 0)

    # ^C while it waits ends the wait, with 130, and no place in the queue is left.
    def test_interrupt_waiting(self):
        holder = self.script(text="echo held; exec sleep 60").says("held")
        terminal = self.open(DIVVY, "lock", self.name, "/bin/true")
        wait_for(lambda: len(self.contenders()) == 2, "it waits")
        terminal.type("\x03")
        self.assertEqual(os.waitstatus_to_exitcode(terminal.end()), 130)
        self.assertEqual(len(self.contenders()), 1)
        self.assertIsNone(holder.process.poll())

    # In a script ^C ends the command, once, and the script, as it would without us.
    def test_interrupt_script(self):
        for wait in (False, True):
            holder = self.script(text="echo held; exec sleep 60").says("held") if wait else None
            script = ('"$0" lock "$1" sh -c \'trap "echo INT >>$0/log; trap - INT; kill -INT \\$\\$" INT; echo ready; '
                      'while :; do sleep 0.05; done\' "$2"; echo "wrong $?"')
            terminal = self.open("/bin/bash", "-c", script, DIVVY, self.name, self.folder)
            if wait:
                wait_for(lambda: len(self.contenders()) == 2, "it waits", terminal)
            else:
                terminal.shows("ready")
            terminal.type("\x03")
            self.assertEqual(os.waitstatus_to_exitcode(terminal.end()), -signal.SIGINT, terminal)
            self.assertNotIn("wrong", terminal.shown)
            self.assertEqual(self.read("log"), ["INT"])
            self.assertEqual(len(self.contenders()), 1 if wait else 0)
        holder.process.kill()

    # In an interactive shell ^C ends a function under a lock, which is given back at once.
    def test_interrupt_function(self):
        shell = self.open("/bin/bash", "--norc", "--noprofile", "-i")
        shell.shows(r"\$ ")
        shell.type('. "$DIVVY_SHARE/divvy-lock.bash"; f() { sh -c "echo ready; exec sleep 60"; echo wrong; }\n')
        shell.type("divvyLock --session-timeout 60s %s f\n" % self.name)
        shell.shows("\nready")
        shell.type("\x03")
        wait_for(lambda: self.contenders() == [], "the lock is given back", shell)
        shell.type("echo status $?; divvyLock %s echo again; exit\n" % self.name)
        shell.shows("status 130\r\nagain")
        shell.end()
        self.assertNotIn("\nwrong", shell.shown)
        wait_for(lambda: processes_of_session(shell.pid) == [], "nothing is left of it", shell)

    # The command can read from the terminal and ask it for a password, and has it in the foreground.
    def test_input(self):
        terminal = self.open(DIVVY, "lock", self.name, "/bin/sh", "-c",
                             'stty -echo; echo ready; read line; stty echo; echo "got $line"')
        terminal.shows("ready")
        self.assertNotEqual(terminal.foreground(), terminal.pid)
        terminal.type("secret\n")
        terminal.shows("got secret")
        self.assertEqual(terminal.end(), 0)

    # Where divvy is part of a pipeline the command gets the foreground when it reads, and ^C reaches all, it once.
    def test_pipeline(self):
        shell = self.open("/bin/bash", "--norc", "--noprofile", "-i")
        shell.shows(r"\$ ")
        shell.type("\"%s\" lock %s sh -c 'echo ready; read line; echo got $line; "
                   "trap \"echo INT >>%s/log; exit 3\" INT; echo set; while :; do sleep 0.05; done' | cat; "
                   "echo ${PIPESTATUS[0]}-$?\n" % (DIVVY, self.name, self.folder))
        shell.shows("\nready")
        shell.type("a line\n")
        shell.shows("got a line\r\nset")
        shell.type("\x03")
        wait_for(lambda: self.read("log"), "^C reaches it", shell)
        shell.type("exit 0\n")
        shell.end()
        self.assertEqual(self.read("log"), ["INT"])
        self.assertEqual(self.contenders(), [])

    # ^Z stops the command and divvy, so that the shell notices; fg lets both go on, with the terminal.
    def test_stop(self):
        shell = self.open("/bin/bash", "--norc", "--noprofile", "-i")
        shell.shows(r"\$ ")
        shell.type("\"%s\" lock --session-timeout 60s %s "
                   "sh -c 'echo $$ >%s/pid; echo ready; read line; echo got $line'\n" % (DIVVY, self.name, self.folder))
        shell.shows("\nready")
        pid = self.pids("pid")[0]
        shell.type("\x1a")
        shell.shows("Stopped")
        wait_for(lambda: state(pid) == "T", "the command is stopped", shell)
        self.assertEqual(shell.foreground(), shell.pid)
        shell.type("echo here $((40 + 2))\n")
        shell.shows("here 42")
        shell.type("fg\n")
        wait_for(lambda: shell.foreground() == pid, "the command has the foreground", shell)
        shell.type("a line\n")
        shell.shows("got a line")
        shell.shows(r"\$ ")
        shell.type("exit $?\n")
        self.assertEqual(shell.end(), 0, shell)

    # Started in the background it runs there, until it reads from the terminal; fg lets it.
    def test_background(self):
        shell = self.open("/bin/bash", "--norc", "--noprofile", "-i")
        shell.shows(r"\$ ")
        shell.type("\"%s\" lock --session-timeout 60s %s sh -c 'echo $$ >%s/pid; read line; echo got $line' &\n"
                   % (DIVVY, self.name, self.folder))
        pid = self.pids("pid")[0]
        wait_for(lambda: state(pid) == "T", "the command is stopped", shell)
        # divvy stops after its command, and the shell tells of it with the first prompt behind that.
        wait_for(lambda: shell.type("\n") or not shell.read() or "Stopped" in shell.shown, "the shell tells", shell)
        shell.type("fg\n")
        wait_for(lambda: shell.foreground() == pid, "the command has the foreground", shell)
        shell.type("a line\n")
        shell.shows("got a line")
        shell.type("exit $?\n")
        self.assertEqual(shell.end(), 0, shell)

    # The terminal's modes are restored when a command dies that has changed them.
    def test_modes(self):
        shell = self.open("/bin/bash", "--norc", "--noprofile", "-i")
        shell.shows(r"\$ ")
        shell.type("sh -c '\"$0\" lock %s sh -c \"stty raw -echo; kill -9 \\$\\$\"; stty -a; echo done' \"%s\"\n"
                   % (self.name, DIVVY))
        shell.shows(r" icanon ")
        shell.shows(r" echo ")
        shell.type("exit\n")
        shell.end()


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

    # Told to end, it says that the lock is lost, leaves some time, and exits as if the signal had ended it.
    def test_told_to_end(self):
        for number, last in ((signal.SIGTERM, "lost"), (signal.SIGHUP, "lost"), (signal.SIGINT, None)):
            grace_s = 0.3 if last else 20
            holder = self.start("--hold", "--session-timeout", "60s", "--grace", "%dms" % (1000 * grace_s), self.name,
                                stdin=subprocess.PIPE)
            wait_for(lambda holder=holder: holder.output, "it holds the lock", holder)
            begun = time.monotonic()
            holder.process.send_signal(number)
            self.assertEqual(holder.end(), 128 + number, holder)
            self.assertEqual(holder.output.splitlines()[1:], [last] if last else [])
            self.assertEqual(time.monotonic() - begun >= grace_s, bool(last))
            holder.process.stdin.close()
        self.assertEqual(self.contenders(), [])

    # When the lock is lost it says so, and leaves some time, but no more than there is.
    def test_lost(self):
        holder = self.start("--hold", "--session-timeout", "10s", self.name, stdin=subprocess.PIPE)
        wait_for(lambda: holder.output, "it holds the lock", holder)
        ZOOKEEPER.delete("/divvy/locks/%s/%s" % (self.name, self.contenders()[0]))
        holder.says("lost")
        self.assertEqual(holder.end(), LOST)
        holder.process.stdin.close()


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
                         'divvyLock --no-wait -E 9 "$2" echo wrong; echo $?; divvyLock -n 2 "$2" echo right; echo $?\n'
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
        ZOOKEEPER.delete("/divvy/locks/%s/%s" % (self.name, self.contenders()[0]))
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
    # Five machines boot at the same time: one founds the cluster, and the others join it, one at a time.
    def test_bootstrap(self):
        script = os.path.join(EXAMPLES, "bootstrap.sh")
        nodes = [Running(script, self.folder, "node-%d" % number) for number in range(5)]
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


def main():
    global DIVVY, SERVER, ZOOKEEPER
    if len(sys.argv) < 2:
        sys.exit("usage: test_command_lock.py BUILD_FOLDER [TEST...]")
    build = os.path.abspath(sys.argv[1])
    DIVVY = os.path.join(build, "tools", "divvy")
    SERVER = Server()
    ZOOKEEPER = KazooClient(SERVER.connect)
    ZOOKEEPER.start()
    try:
        outcome = unittest.main(argv=[sys.argv[0], *sys.argv[2:]], exit=False, verbosity=2).result
    finally:
        ZOOKEEPER.stop()
        ZOOKEEPER.close()
        SERVER.do("stop")
    sys.exit(not outcome.wasSuccessful())


if __name__ == "__main__":
    main()
