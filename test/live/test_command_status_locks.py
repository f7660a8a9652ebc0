#!/usr/bin/python3
"""`divvy locks`. SPDX-License-Identifier: Apache-2.0

Shows live locks and queues as the command prints them.

usage: test_command_status_locks.py BUILD_FOLDER [TEST...]     a TEST is a name such as Locks.test_list
"""
import collections
import json
import re
import subprocess
import threading

from kazoo.exceptions import KazooException
from kazoo.security import make_digest_acl

from command_harness import DEADLINE_S, Setting, main, wait_for
from look_harness import Case, command, run


class Locks(Case):
    def setUp(self):
        super().setUp()
        self.root = ["--root", self.path]

    def acquire(self, lock):
        """Begins to acquire, in the background; ends with the test."""
        def work():
            try:
                lock.acquire(timeout=DEADLINE_S)
            except KazooException:
                pass  # the client ended first
        threading.Thread(target=work, daemon=True).start()

    def contenders(self, name, count):
        path = self.path + "/" + name
        wait_for(lambda: Setting.zookeeper.exists(path) and len(Setting.zookeeper.get_children(path)) == count,
                 "%d in %s" % (count, path))

    # An exclusive lock's first in the queue holds it, the others wait, in the order in which they came.
    def test_exclusive(self):
        clients = [self.client() for _ in range(3)]
        for number, client in enumerate(clients):
            self.acquire(client.Lock(self.path + "/locks/dep%loy", "contender %d" % number))
            self.contenders("locks/dep%loy", number + 1)
        seen = self.shown("locks", "dep%loy", *self.root)
        self.assertEqual((seen["name"], seen["semaphore"]), ("dep%loy", None))
        lock = seen["lock"]
        self.assertEqual((lock["held"], lock["waiting"]), (1, 2))
        self.assertEqual([place["identifier"] for place in lock["holders"] + lock["queue"]],
                         ["contender 0", "contender 1", "contender 2"])
        self.assertEqual([place["session"] for place in lock["holders"] + lock["queue"]],
                         ["0x%x" % client.client_id[0] for client in clients])
        for place in lock["holders"] + lock["queue"]:
            self.assertEqual(place["kind"], "exclusive")
        page = run("locks", "dep%loy", *self.root).stdout.splitlines()
        self.assertEqual(page[0], "lock dep%loy: held by 1, 2 waiting")
        self.assertEqual([line.split("  ")[:2] for line in page[2:]], [
            ["holds", "contender 0"], ["waits", "contender 1"], ["waits", "contender 2"]])

    # Readers hold together up to the first writer; the writer and the readers behind it wait.
    def test_readers(self):
        clients = [self.client() for _ in range(4)]
        kinds = ["ReadLock", "ReadLock", "WriteLock", "ReadLock"]
        for number, (client, kind) in enumerate(zip(clients, kinds)):
            self.acquire(getattr(client, kind)(self.path + "/locks/rw", "c%d" % number))
            self.contenders("locks/rw", number + 1)
        lock = self.shown("locks", *self.root, "rw")["lock"]
        self.assertEqual([(place["identifier"], place["kind"]) for place in lock["holders"]],
                         [("c0", "shared"), ("c1", "shared")])
        self.assertEqual([(place["identifier"], place["kind"]) for place in lock["queue"]],
                         [("c2", "exclusive"), ("c3", "shared")])

    # A semaphore: the limit, who holds which slots, kazoo's holders too, and who waits.
    def test_semaphore(self):
        pool = self.path + "/semaphores/web"
        record = {"id": "d\u00fc", "host": "h1", "pid": 77, "since": "2026-01-31T12:00:00Z", "count": 3}
        self.make(pool, b"5")
        self.make(pool + "/guid,n=0,c=3,x=3+0", json.dumps(record).encode(), ephemeral=True)
        self.acquire(self.client().Semaphore(pool, "kazoo one", 5))
        self.contenders("semaphores/web", 2)
        self.make(pool + "-__lock__/guid__lock__0000000007", json.dumps({**record, "id": "next"}).encode(),
                  ephemeral=True)
        self.make(pool + "-__lock__/" + "a" * 32 + "__lock__0000000008", b"b'kazoo two'", ephemeral=True)
        semaphore = self.shown("locks", "web", *self.root)["semaphore"]
        self.assertEqual([semaphore[key] for key in ("limit", "held", "waiting")], [5, 4, 2])
        one, other = semaphore["holders"]
        self.assertEqual([one[key] for key in ("identifier", "host", "pid", "since", "count", "slots")],
                         ["d\u00fc", "h1", 77, "2026-01-31T12:00:00Z", 3,
                          [{"first": 0, "count": 2}, {"first": 3, "count": 1}]])
        self.assertEqual([other[key] for key in ("identifier", "host", "pid", "count", "slots")],
                         ["kazoo one", None, None, 1, []])
        self.assertEqual([(place["identifier"], place["count"]) for place in semaphore["queue"]],
                         [("next", 3), ("kazoo two", 1)])
        page = run("locks", "web", *self.root).stdout
        self.assertRegex(page, r"\Asemaphore web: 4 of 5 slots held, 2 waiting\n")
        self.assertRegex(page, r"(?m)^holds  d\u00fc +0-1,3 +3  h1 +77 ")
        self.assertRegex(page, r"(?m)^waits  kazoo two +- +1 +- ")

    # What `divvy lock` holds is shown as it tells its command.
    def test_divvy_lock(self):
        def hold(*arguments):
            process = subprocess.Popen(command("lock", *self.root, *arguments, "--hold", "job"), text=True,
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            self.addCleanup(process.stdout.close)
            self.addCleanup(process.wait)
            self.addCleanup(process.stdin.close)
            return process

        def token(process):
            return re.fullmatch("held ([0-9]+)(?: [0-9]+)?\n", process.stdout.readline()).group(1)
        holder = hold()
        first = token(holder)
        waiter = hold()
        self.contenders("locks/job", 2)
        slots = [hold("-n", "3"), hold("-n", "3")]
        tokens = [token(process) for process in slots]
        seen = self.shown("locks", "job", *self.root)
        self.assertEqual([place["token"] for place in seen["lock"]["holders"]], [first])
        for place, process in zip(seen["lock"]["holders"] + seen["lock"]["queue"], (holder, waiter)):
            self.assertIn("-%d-" % process.pid, place["identifier"])
        semaphore = seen["semaphore"]
        self.assertEqual([(place["token"], place["pid"]) for place in semaphore["holders"]],
                         sorted(zip(tokens, [process.pid for process in slots]), key=lambda pair: int(pair[0])))
        self.assertEqual(sorted(place["slots"][0]["first"] for place in semaphore["holders"]), [0, 1])
        self.assertEqual((semaphore["limit"], semaphore["held"], semaphore["waiting"]), (3, 2, 0))

    # Without a name all are listed, with how many hold and wait; queues of semaphores are none of their own.
    def test_list(self):
        self.assertEqual(self.shown("locks", *self.root)["locks"], [])
        self.assertIn("no locks and no semaphores below " + self.path, run("locks", *self.root).stdout)
        self.make(self.path + "/locks/a%2Fb/x__lock__0000000001", ephemeral=True)
        self.make(self.path + "/locks/a%2Fb/y__lock__0000000002", ephemeral=True)
        self.make(self.path + "/locks/free")
        self.make(self.path + "/semaphores/s", b"3")
        self.make(self.path + "/semaphores/s/guid,n=1,c=2", b"{}", ephemeral=True)
        self.make(self.path + "/semaphores/s-__lock__/x__lock__0000000001", ephemeral=True)
        self.make(self.path + "/semaphores/bad", b"many")
        self.make(self.path + "/semaphores/s%2D__lock__", b"9")  # docs/protocol.md, G1
        seen = self.shown("locks", *self.root)
        self.assertEqual(seen["locks"], [{"name": "a/b", "held": 1, "waiting": 1},
                                         {"name": "free", "held": 0, "waiting": 0}])
        self.assertEqual(seen["semaphores"], [{"name": "bad", "limit": None, "held": 0, "waiting": 0},
                                              {"name": "s", "limit": 3, "held": 2, "waiting": 1},
                                              {"name": "s-__lock__", "limit": 9, "held": 0, "waiting": 0}])
        self.assertEqual(self.shown("locks", "s-__lock__", *self.root)["semaphore"]["limit"], 9)
        lines = [line.split() for line in run("locks", *self.root).stdout.splitlines()]
        self.assertEqual(lines, [["NAME", "KIND", "LIMIT", "HELD", "WAITING"], ["a/b", "lock", "-", "1", "1"],
                                 ["bad", "semaphore", "-", "0", "0"], ["free", "lock", "-", "0", "0"],
                                 ["s", "semaphore", "3", "2", "1"],
                                 ["s-__lock__", "semaphore", "9", "0", "0"]])

    # What may not be read is named, and hides nothing else. A persistent child of a semaphore holds nothing.
    def test_list_hidden(self):
        hidden = [make_digest_acl("user", "secret", all=True)]
        for path in ("/locks/closed", "/locks/other", "/locks/open/x__lock__0000000001", "/semaphores/s/backup,n=0,c=2",
                     "/semaphores/s/old"):
            self.make(self.path + path)
        Setting.zookeeper.set(self.path + "/semaphores/s", b"3")
        Setting.zookeeper.set_acls(self.path + "/locks/closed", hidden)
        denied = "cannot be read: the access list of the node denies this\n"
        done = run("locks", *self.root)
        self.assertEqual((done.returncode, done.stderr), (1, "divvy: %s/locks/closed %s" % (self.path, denied)))
        self.assertEqual([line.split() for line in done.stdout.splitlines()[1:]],
                         [["open", "lock", "-", "1", "0"], ["other", "lock", "-", "0", "0"],
                          ["s", "semaphore", "3", "0", "0"]])
        Setting.zookeeper.set_acls(self.path + "/locks/other", hidden)
        slot = self.make(self.path + "/semaphores/s/taken,n=2,c=1", ephemeral=True)
        Setting.zookeeper.set_acls(slot, hidden)
        done = run("locks", "--json", *self.root)
        self.assertEqual(done.returncode, 1)
        self.assertIn(", and others like it: the access list", done.stderr)
        seen = json.loads(done.stdout)
        self.assertEqual([lock["name"] for lock in seen["locks"]], ["open"])
        self.assertEqual([semaphore["held"] for semaphore in seen["semaphores"]], [1])
        self.assert_fails(1, ["locks", "closed", *self.root], self.path + "/locks/closed cannot be read")

    # A lock and a semaphore of one name are both shown; records that cannot be read are told as such; a name that is
    # not there is a failure.
    def test_names(self):
        self.make(self.path + "/locks/both/__lock__0000000001", b"\xff\xfe", ephemeral=True)
        self.make(self.path + "/semaphores/both", b"")
        self.make(self.path + "/semaphores/both/guid,n=0,c=1", b"no json", ephemeral=True)
        seen = self.shown("locks", "both", *self.root)
        self.assertEqual(seen["lock"]["holders"][0]["identifier"], None)
        self.assertEqual((seen["semaphore"]["limit"], seen["semaphore"]["holders"][0]["identifier"]), (None, None))
        page = run("locks", "both", *self.root).stdout
        self.assertEqual(page.count("(unreadable)"), 2)
        self.assertIn("no limit yet", page)
        self.assert_fails(1, ["locks", "neither", *self.root], '"neither"', self.path)


if __name__ == "__main__":
    main(__file__)
