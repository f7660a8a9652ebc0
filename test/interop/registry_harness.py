"""Processes of divvy and of Curator that share a registry, led by JSON lines. SPDX-License-Identifier: Apache-2.0"""
import collections
import json
import os
import signal
import subprocess
import tempfile
import threading
import time

from harness import DEADLINE_S, HERE, check

ROOT = "/registry/services"
# Other jars than those of the installed packages are chosen by the first. The second names the files that Curator must
# have been loaded from.
CLASSES = os.environ.get("DIVVY_CURATOR_CLASSPATH") or ":".join(
    "/usr/share/java/%s.jar" % jar for jar in ("curator-x-discovery", "curator-recipes", "jackson-core"))
EXPECTED = os.environ.get("DIVVY_TEST_CURATOR")
JAVA = [os.path.join(os.environ["JAVA_HOME"], "bin", "java") if os.environ.get("JAVA_HOME") else "java",
        "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m", "-cp", CLASSES]
CURATOR_SESSION_MS = 6000  # long enough for a busy machine, and short enough to wait for its end
BRIEF_SESSION_MS = 2000

ended_badly = []  # processes of divvy that did not end by themselves, with 0, when their input ended


def wait_for(met, message, *arguments):
    """The first true value of met(). Arguments that are functions are called when the wait has failed."""
    deadline = time.monotonic() + DEADLINE_S
    while True:
        value = met()
        if value:
            return value
        check(time.monotonic() < deadline, message, *(a() if callable(a) else a for a in arguments))
        time.sleep(0.01)


class Peer:
    """A process that answers JSON lines, and may tell of events between them."""

    def __init__(self, name, arguments):
        self.name, self.events = name, []
        self.answers, self.condition = collections.deque(), threading.Condition()
        self.errors = tempfile.TemporaryFile()
        # Whatever ends this test ends its processes. The main thread starts them, and it lives as long as the test.
        self.process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "--"] + arguments, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self.errors, text=True, encoding="utf-8")
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for text in self.process.stdout:
            line = json.loads(text)
            with self.condition:
                (self.events if "event" in line else self.answers).append(line)
                self.condition.notify_all()
        with self.condition:
            self.answers.append(None)
            self.condition.notify_all()

    def answer(self):
        with self.condition:
            check(self.condition.wait_for(lambda: self.answers, DEADLINE_S), "%s gives no answer: %s", self.name,
                  self.warnings())
            line = self.answers.popleft()
        check(line is not None, "%s has ended: %s", self.name, self.warnings())
        return line

    def ask(self, verb, **fields):
        self.process.stdin.write(json.dumps(dict(fields, do=verb)) + "\n")
        self.process.stdin.flush()
        return self.answer()

    def warnings(self):
        # Not by seek(): the file's place is the process's as well.
        return os.pread(self.errors.fileno(), 1 << 16, 0).decode("utf-8", "replace")

    def close(self):
        self.process.kill()
        self.process.wait()


class Divvy(Peer):
    """A process of registry_member.c."""

    def __init__(self, world, name="divvy", session_ms=30000):
        program = os.path.join(world.build, "test", "registry_member")
        check(os.path.exists(program), "there is no %s: build the target registry_member", program)
        super().__init__(name, [program, world.hosts, ROOT, str(session_ms)])
        self.killed_by = 0
        world.pools.append(self)  # closed after the test
        check(self.answer() == {"ready": True}, "%s is not ready", name)

    def ask(self, verb, expect=0, **fields):  # pylint: disable=arguments-differ
        line = super().ask(verb, **fields)
        check(line["result"] == expect, "%s: %s %s: %s", self.name, verb, fields, line)
        return line

    def heartbeat(self, persistent=False, **status):
        return self.ask("heartbeat", status=status, persistent=persistent)["entry"]

    def kill(self):
        """Its session stays for a while, and with it its ephemeral entries."""
        self.killed_by = -signal.SIGKILL
        self.process.kill()
        self.process.wait()

    def close(self):
        if self.process.poll() is None:
            self.process.stdin.close()
            try:
                self.process.wait(DEADLINE_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
        if self.process.wait() not in (0, self.killed_by):
            ended_badly.append("%s ended with %d: %s" % (self.name, self.process.returncode, self.warnings()))

    def list(self, role=None):
        return self.ask("list", role=role)["entries"]

    def ids(self, role=None):
        return [entry["id"] for entry in self.list(role)]

    def session(self):
        return int(self.ask("session")["session"])

    def await_event(self, kind, service):
        """The first event of that kind for a service, which is taken off. Of different services any may come first."""
        def find():
            for i, event in enumerate(self.events):
                if event["event"] == kind and (event["after"] or event["before"])["id"] == service:
                    return self.events.pop(i)
            return None
        with self.condition:
            event = find()
            while not event:
                check(self.condition.wait(DEADLINE_S), "%s is not told that %s was %s: %s", self.name, service, kind,
                      self.events)
                event = find()
        return event


class Curator(Peer):
    """The process of CuratorDiscovery.java."""

    def __init__(self, hosts):
        super().__init__("Curator", JAVA + [os.path.join(HERE, "CuratorDiscovery.java"), hosts, ROOT,
                                            str(CURATOR_SESSION_MS)])

    def ask(self, verb, expect_error=False, **fields):  # pylint: disable=arguments-differ
        line = super().ask(verb, **fields)
        check(("error" in line) == expect_error, "Curator: %s %s: %s", verb, fields, line)
        return line

    def register(self, mode="new", **instance):
        return self.ask("register", mode=mode, instance=instance)

    def instances(self, role, mode="new"):
        return {one["id"]: one for one in self.ask("instances", role=role, mode=mode)["instances"]}

    def cached(self, role):
        return {one["id"]: one for one in self.ask("cached", role=role)["instances"]}

    def await_cached(self, role, ids):
        wait_for(lambda: sorted(self.cached(role)) == sorted(ids), "Curator's cache of %s has %s, not %s", role,
                 lambda: sorted(self.cached(role)), sorted(ids))


def curator(world):
    """The one Java process of all tests, which takes longer to start than most of them."""
    if not hasattr(world, "curator"):
        for jar in CLASSES.split(":"):
            check(os.path.exists(jar), "no %s: install libcurator-discovery-java and libcurator-recipes-java", jar)
        world.curator = Curator(world.hosts)
        answer = world.curator.answer()
        check(answer.get("ready") is True, "Curator is not ready: %s", answer)
        for part in ("discovery", "recipes", "framework", "client", "zookeeper") if EXPECTED else ():
            check(answer[part] in EXPECTED.split(":"), "Curator's %s is %s, none of %s", part, answer[part], EXPECTED)
    return world.curator
