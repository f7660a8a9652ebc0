"""What the tests of `divvy lock` share. SPDX-License-Identifier: Apache-2.0"""
import os
import signal
import subprocess
import tempfile
import threading
import unittest

from command_harness import DEADLINE_S, SOURCE_DIR, Setting, children, run_to_end, wait_for

TOOLS = os.path.join(SOURCE_DIR, "tools", "divvy")
EXAMPLES = os.path.join(SOURCE_DIR, "docs", "examples")
T = 3  # seconds, the session timeout of tests that wait for its end
HELD, NOT_HELD, USAGE, UNREACHABLE, TIMED_OUT, LOST, OVERRUN, TROUBLE = 0, 4, 2, 3, 4, 5, 124, 125


def environment(**more):
    """What the command is run with: as a user's, but for what the test's own may say."""
    kept = {key: value for key, value in os.environ.items() if key not in ("DEBUG", "DIVVY_CONNECT")}
    folders = os.path.dirname(Setting.divvy) + ":" + kept.get("PATH", os.defpath)
    return {**kept, "DIVVY_CONNECT": Setting.server.connect, "PATH": folders, "DIVVY_SHARE": TOOLS, **more}


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
        wait_for(lambda: self.process.poll() is not None, "it ends", self)
        status = self.process.returncode
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
    return run_to_end([Setting.divvy, "lock", *arguments], env=env, **options)


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
        return Running(Setting.divvy, "lock", *arguments, env=environment(**options.pop("env", {})), **options)

    def script(self, *arguments, text, **options):
        """A shell script under the test's lock, in the background; its $1 is the test's folder."""
        return self.start(*arguments, self.name, "/bin/sh", "-c", text, "sh", self.folder, **options)

    def pids(self, name, count=1):
        """Process numbers that a script has written into a file."""
        wait_for(lambda: len(self.read(name)) >= count, "%d numbers in %s" % (count, name))
        return [int(line) for line in self.read(name)]

    def contenders(self, kind="locks", name=None):
        return children("/divvy/%s/%s" % (kind, name or self.name))
