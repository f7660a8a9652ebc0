#!/usr/bin/python3
"""`divvy services` and `divvy announce`. SPDX-License-Identifier: Apache-2.0

Shows entries that processes announce, and what ends them.

usage: test_command_services.py BUILD_FOLDER [TEST...]     a TEST is a name such as Announce.test_command
"""
import json
import os
import signal
import subprocess
import threading
import time

from kazoo.exceptions import NoNodeError
from kazoo.security import make_digest_acl

from command_harness import DEADLINE_S, NOWHERE, Server, Setting, main, no_credentials, stat, state, wait_for
from look_harness import Case, command, run, tree


class Registry(Case):
    def setUp(self):
        super().setUp()
        self.root = ["--root", self.path]

    def services(self, *arguments, **options):
        return self.shown("services", *arguments, *self.root, **options)["services"]

    def entries(self):
        """What stands in the registry, by role and id, whatever the command says."""
        found = {}
        try:
            for role in Setting.zookeeper.get_children(self.path + "/services"):
                for node in Setting.zookeeper.get_children(self.path + "/services/" + role):
                    data = Setting.zookeeper.get("%s/services/%s/%s" % (self.path, role, node))[0]
                    found[role, node] = json.loads(data)
        except NoNodeError:
            pass
        return found


class Services(Registry):
    def put(self, role, node, **fields):
        entry = {"name": role, "id": node, "address": None, "port": None, "sslPort": None, "payload": None,
                 "registrationTimeUTC": 0, "serviceType": "DYNAMIC", "uriSpec": None}
        entry.update(fields)
        node = node.replace("/", "%2F")
        self.make("%s/services/%s/%s" % (self.path, role.replace("/", "%2F"), node), json.dumps(entry).encode(),
                  ephemeral=True)

    # Each service is shown with its health, load, age and entry: the least loaded of a role first.
    def test_list(self):
        self.put("web", "b", load=2.5, ttl=60, host="h1", pid=12)
        self.put("web", "a", load=7, ttl=60)
        self.put("web", "c/d", load=-1, ttl=60)
        self.put("db", "old", load=0, ttl=0.001)
        self.put("db", "off", load=0, ttl=60, enabled=False)
        self.put("db", "curator", address="10.0.0.1", port=5432)
        shown = self.shown("services", *self.root)
        self.assertEqual((shown["path"], shown["malformed"]), (self.path + "/services", 0))
        rows = shown["services"]
        self.assertEqual([(row["role"], row["id"], row["load"], row["ttl"]) for row in rows if row["role"] == "web"],
                         [("web", "c/d", -1, 60), ("web", "b", 2.5, 60), ("web", "a", 7, 60)])
        self.assertEqual([row["role"] for row in rows], ["db"] * 3 + ["web"] * 3)
        self.assertEqual({row["id"]: row["health"] for row in rows},
                         {"b": "healthy", "a": "healthy", "c/d": "healthy", "old": "stale", "off": "disabled",
                          "curator": "healthy"})
        for row in rows:
            self.assertEqual(row["entry"], self.entries()[row["role"], row["id"].replace("/", "%2F")])
            self.assertLess(row["age_ms"], DEADLINE_S * 1000)
        self.assertEqual([row["id"] for row in self.services("db", "--healthy")], ["curator"])
        self.assertEqual(len(self.services("web")), 3)
        self.assertEqual(self.services("nothing"), [])
        page = run("services", *self.root).stdout
        self.assertRegex(page, r"\AROLE +ID +HEALTH +LOAD +AGE +TTL +ADDRESS +PID\n")
        self.assertRegex(page, r"(?m)^web +b +healthy +2\.5 +[0-9]+s +60s +h1 +12$")
        self.assertRegex(page, r"(?m)^db +curator +healthy +0 +[0-9]+s +- +10\.0\.0\.1:5432 +-$")
        self.assertIn("no healthy services of the role nothing",
                      run("services", "nothing", "--healthy", *self.root).stdout)

    # What is no entry is left out and counted, and nothing in an entry can break a line of the page.
    def test_hostile(self):
        self.put("web", "good", load=1, ttl=60, host="h\x1b[2J\nx", pid="none", port="8080")
        for number, data in enumerate((b"", b"{", b"[]", b"\xff", b'{"name":"db","id":"x4"}', b"[" * 50000)):
            self.make("%s/services/web/x%d" % (self.path, number), data)
        shown = self.shown("services", *self.root)
        self.assertEqual(([row["id"] for row in shown["services"]], shown["malformed"]), (["good"], 6))
        page = run("services", "web", *self.root).stdout
        self.assertNotIn("\x1b", page)
        self.assertEqual(page.splitlines()[2:], ["6 nodes in it are no entries"])

    # Looking changes nothing, makes no registry, and tells what is wrong in one line.
    def test_failures(self):
        self.put("web", "a", load=1, ttl=60)
        before = tree()
        self.services()
        self.assertEqual(self.shown("services", "--root", "/no/registry")["services"], [])
        self.assertEqual(tree(), before)
        self.assert_fails(3, ["services", "--timeout", "200ms"], NOWHERE, connect=NOWHERE)
        self.assert_fails(2, ["services", "a", "b"], '"b"')
        self.assert_fails(2, ["services", ""], "ROLE cannot be empty")
        self.assert_fails(2, ["services", "--root", "x"], '"x"')
        Setting.zookeeper.set_acls(self.path + "/services/web", [make_digest_acl("user", "secret", all=True)])
        self.put("db", "b", load=1, ttl=60)
        done = run("services", *self.root)
        self.assertEqual((done.returncode, len(done.stdout.splitlines())), (1, 2), done.stdout)
        self.assertIn(self.path + "/services/web cannot be read: ", done.stderr)
        self.assert_fails(1, ["services", "web", *self.root], self.path + "/services/web cannot be read")
        self.assertEqual(len(self.services("--auth-file", self.file("user:secret\n"))), 2)


def command_lines():
    """Of all processes on this machine."""
    lines = []
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/cmdline" % process, encoding="utf-8", errors="replace") as file:
                lines.append(file.read().replace("\0", " "))
        except OSError:
            pass  # it has ended
    return lines


class Announcer:
    """A running `divvy announce`."""

    def __init__(self, case, *arguments, connect=None, program=()):
        words = command("announce", *case.root, "--role", "web", *arguments, connect=connect)
        self.process = subprocess.Popen(words + (["--", *program] if program else []), stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.output = self.errors = ""
        self.readers = [threading.Thread(target=self._read_output), threading.Thread(target=self._read_errors)]
        for reader in self.readers:
            reader.start()
        case.addCleanup(self.end)

    def _read_output(self):
        for line in self.process.stdout:
            self.output += line

    def _read_errors(self):
        for line in self.process.stderr:
            self.errors += line

    def wait(self):
        self.process.wait(DEADLINE_S)
        for reader in self.readers:
            reader.join()
        return self.process.returncode

    def end(self):
        if self.process.poll() is None:
            self.process.terminate()
        self.wait()
        self.process.stdout.close()
        self.process.stderr.close()

    def __str__(self):
        return self.output + self.errors


class Announce(Registry):
    def healthy(self):
        return [row for row in self.services("web") if row["health"] == "healthy"]

    def wait_registered(self, announcer):
        wait_for(self.entries, "the service is registered", announcer)

    # The entry stands before the command starts and until it has ended; its exit status is returned.
    def test_command(self):
        go = os.path.join(self.folder.name, "go")
        script = 'echo "$DIVVY_SERVICE_ROLE/$DIVVY_SERVICE_ID"; while [ ! -e %s ]; do sleep 0.05; done; exit 7' % go
        announcer = Announcer(self, "--load", "2.5", "--ttl", "30", "--id", "one", "--port", "8080", "--address", "a.b",
                              program=["sh", "-c", script])
        wait_for(lambda: announcer.output == "web/one\n", "the command runs", announcer)
        row, = self.healthy()
        self.assertEqual((row["id"], row["load"], row["ttl"]), ("one", 2.5, 30))
        entry = row["entry"]
        self.assertEqual([entry[key] for key in ("name", "address", "port", "host", "pid", "serviceType")],
                         ["web", "a.b", 8080, os.uname().nodename, announcer.process.pid, "DYNAMIC"])
        self.file("", "go")
        self.assertEqual(announcer.wait(), 7, announcer)
        self.assertEqual((self.entries(), announcer.errors), ({}, ""))

    # A made-up id stays the same, and so does the first heartbeat, while others follow; SIGTERM ends it with 0.
    def test_heartbeats(self):
        announcer = Announcer(self, "--load", "1", "--ttl", "9s")
        self.wait_registered(announcer)
        (_, node), = self.entries()
        first = self.entries()["web", node]
        wait_for(lambda: self.entries()["web", node]["last_heartbeat"] != first["last_heartbeat"], "a heartbeat",
                 announcer)
        entry = self.entries()["web", node]
        self.assertEqual((entry["id"], entry["first_heartbeat"]), (node, first["first_heartbeat"]))
        announcer.process.send_signal(signal.SIGTERM)
        self.assertEqual(announcer.wait(), 0, announcer)
        self.assertEqual((self.entries(), announcer.errors), ({}, ""))

    # The load is what the command prints, asked again for each heartbeat; when it fails there is a warning, and the
    # last load stays.
    def test_load_command(self):
        load = self.file("3.5\n", "load")
        announcer = Announcer(self, "--load-command", "cat %s" % load, "--ttl", "900ms")
        self.wait_registered(announcer)
        self.assertEqual([entry["load"] for entry in self.entries().values()], [3.5])
        os.replace(self.file(" -2 \n", "new"), load)
        wait_for(lambda: [entry["load"] for entry in self.entries().values()] == [-2], "the new load", announcer)
        os.remove(load)
        wait_for(lambda: announcer.errors.count("--load-command exited with 1") > 1, "it is told", announcer)
        beaten = [entry["last_heartbeat"] for entry in self.entries().values()]
        wait_for(lambda: [entry["last_heartbeat"] for entry in self.entries().values()] != beaten, "a heartbeat",
                 announcer)
        self.assertEqual([entry["load"] for entry in self.entries().values()], [-2])

    # What load commands leave in the background stays no zombie for longer than until the next one has ended.
    def test_load_command_leaves(self):
        log = self.file("", "log")
        announcer = Announcer(self, "--load-command", "echo >>%s; sleep 0.01 >/dev/null & echo 1" % log,
                              "--ttl", "300ms")
        wait_for(lambda: os.path.getsize(log) > 20, "it is asked for often", announcer)
        dead = [number for number in map(int, filter(str.isdigit, os.listdir("/proc")))
                if stat(number) == ("Z", announcer.process.pid)]
        self.assertLess(len(dead), 8, announcer)

    # A load command that hangs is ended with its children, and the service stays healthy.
    def test_load_command_hangs(self):
        mark = "%d.%d" % (86400, os.getpid())  # seconds that nobody else sleeps
        flag = self.file("", "flag")
        announcer = Announcer(self, "--load-command", "echo 1; [ -e %s ] || { sleep %s; }" % (flag, mark), "--ttl",
                              "900ms")
        self.wait_registered(announcer)
        os.remove(flag)
        wait_for(lambda: announcer.errors.count("--load-command took too long") > 1, "it is told", announcer)
        announcer.end()
        self.assertEqual([line for line in command_lines() if mark in line], [])

    # A first load that is not to be had is a failure, and the command is not started.
    def test_no_load(self):
        for load_command, fragment in (("exit 3", "exited with 3"), ("echo many", '"many'), ("true", '""'),
                                       ("echo nan", '"nan'), ("kill -9 $$", "signal 9")):
            with self.subTest(load_command):
                announcer = Announcer(self, "--load-command", load_command, program=["echo", "started"])
                self.assertEqual(announcer.wait(), 125, announcer)
                self.assertEqual(announcer.output, "")
                self.assertIn(fragment, announcer.errors)
        self.assertEqual(self.entries(), {})

    # SIGTERM is the command's, which may take its time; the entry goes at once, also where another signal follows. A
    # signal that ends the command is told as shells tell it.
    def test_signals(self):
        go = os.path.join(self.folder.name, "go")
        script = 'trap "end=1" TERM; echo ready; while [ -z "$end" ] || [ ! -e %s ]; do sleep 0.05; done; exit 42' % go
        announcer = Announcer(self, "--load", "1", "--ttl", "6s", program=["sh", "-c", script])
        wait_for(lambda: announcer.output == "ready\n", "the command runs", announcer)
        self.assertEqual(len(self.entries()), 1)
        announcer.process.send_signal(signal.SIGSTOP)
        wait_for(lambda: state(announcer.process.pid) == "T", "it is stopped", announcer)
        for number in (signal.SIGTERM, signal.SIGWINCH, signal.SIGCONT):
            announcer.process.send_signal(number)
        wait_for(lambda: not self.entries(), "the entry is gone", announcer)
        time.sleep(2.5)  # more than an interval between heartbeats: none may bring it back
        self.assertEqual((self.entries(), announcer.process.poll()), ({}, None))
        self.file("", "go")
        self.assertEqual(announcer.wait(), 42, announcer)
        self.assertNotIn("divvy:", announcer.errors)
        announcer = Announcer(self, "--load", "1", program=["sh", "-c", "kill -KILL $$"])
        self.assertEqual(announcer.wait(), 128 + 9, announcer)
        self.assertEqual(self.entries(), {})

    # Killed by -9 it takes the command with it, and the entry goes when the session times out.
    def test_killed(self):
        announcer = Announcer(self, "--load", "1", "--session-timeout", "1s",
                              program=["sh", "-c", "echo $$; while :; do sleep 0.05; done"])
        wait_for(lambda: announcer.output, "the command runs", announcer)
        announcer.process.kill()
        wait_for(lambda: not os.path.exists("/proc/" + announcer.output.strip()), "the command is gone", announcer)
        wait_for(lambda: not self.entries(), "the entry is gone", announcer)

    # While the servers are away, longer than the session lasts, the command goes on; then its entry stands again.
    def test_server_away(self):
        server = Server()
        self.addCleanup(server.do, "stop")
        announcer = Announcer(self, "--load", "1", "--session-timeout", "500ms", "--ttl", "1s", "--id", "one",
                              connect=server.connect, program=["sh", "-c", "echo $$; while :; do sleep 0.05; done"])
        wait_for(lambda: announcer.output, "the command runs", announcer)
        server.do("kill", "1")
        wait_for(lambda: "no heartbeat" in announcer.errors, "it tells that there is no heartbeat", announcer)
        server.do("restart", "1")

        def registered():
            done = run("services", "web", "--healthy", "--json", *self.root, connect=server.connect)
            return done.returncode == 0 and [row["id"] for row in json.loads(done.stdout)["services"]] == ["one"]
        wait_for(registered, "it is registered again", announcer)
        announcer.process.terminate()
        self.assertEqual(announcer.wait(), 128 + 15, announcer)
        self.assertEqual(len(announcer.output.split()), 1, announcer)

    # What cannot be begun is told in one line with the code of its kind, and no command is started.
    def test_failures(self):
        good = ["announce", "--role", "web", "--load", "1"]
        for arguments, fragment in (
                (["announce", "--load", "1"], "--role is missing"),
                (["announce", "--role", "", "--load", "1"], "--role cannot be empty"),
                (["announce", "--role", "web"], "load is missing"),
                (["announce", "--role", "web", "--load", "x"], '--load: "x" is not a number'),
                (["announce", "--role", "web", "--load", "inf"], '--load: "inf" is not a number'),
                (good + ["--load-command", "echo 1"], "not both"),
                (good + ["--ttl", "0"], "--ttl"),
                (good + ["--port", "65536"], "65535"),
                (good + ["--id", ""], "--id cannot be empty"),
                (good + ["--root", "x"], '"x"'),
                (good + ["--acl", "creator"], "--auth-file"),
                (good + ["--role", "\udcff"], "--role is given twice"),
                (["announce", "--role", "\udcff", "--load", "1"], "--role is not UTF-8"),
                (good + ["word"], "behind --")):
            with self.subTest(arguments=arguments), no_credentials():
                self.assert_fails(2, arguments, fragment)
        touched = os.path.join(self.folder.name, "touched")
        self.assert_fails(3, good + ["--connect-timeout", "200ms", "--", "touch", touched], NOWHERE, connect=NOWHERE)
        self.assert_fails(127, good + ["--", "no-such-command"], "no-such-command")
        self.assert_fails(126, good + ["--", "/etc/passwd"], "/etc/passwd")
        self.make(self.path + "/services/web", acl=[make_digest_acl("user", "secret", all=True)])
        self.assert_fails(125, good + [*self.root, "--", "touch", touched], self.path + "/services/web")
        self.assert_fails(1, good + self.root, self.path + "/services/web")
        self.assertFalse(os.path.exists(touched))


if __name__ == "__main__":
    main(__file__)
