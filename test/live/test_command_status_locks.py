#!/usr/bin/python3
"""`divvy locks` and `divvy plan`. SPDX-License-Identifier: Apache-2.0

Shows live locks, queues and plans as the command prints them.

usage: test_command_status_locks.py BUILD_FOLDER [TEST...]     a TEST is a name such as Locks.test_list
"""
import collections
import json
import re
import subprocess
import threading

from kazoo.exceptions import KazooException

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


class Plan(Case):
    def plan(self, members, items, *arguments):
        path = self.file("\n".join("item-%05d" % number for number in range(items)))
        return self.shown("plan", "--members", str(members), "--items-from", path, "--verbose", *arguments)

    def check(self, plan, members, items, join, leave):
        """What is true of every plan."""
        rows = plan["members"]
        self.assertEqual([row["identifier"] for row in rows],
                         ["member-%d" % (number + 1) for number in range(members + join)])
        self.assertEqual([row["before"] is None for row in rows], [False] * members + [True] * join)
        self.assertEqual([row["after"] is None for row in rows], [True] * leave + [False] * (members + join - leave))
        for key, count in (("before", members), ("after", members + join - leave)):
            loads = [row[key] for row in rows if row[key] is not None]
            self.assertEqual(sum(loads), items)
            self.assertLessEqual({items // count, items // count + bool(items % count)} | set(loads),
                                 {items // count, items // count + 1})
        for row in rows:
            self.assertEqual((row["before"] or 0) + row["gains"] - row["loses"], row["after"] or 0)
        self.assertEqual(len(plan["moved"]), plan["moves"])
        self.assertTrue(all(move["from"] != move["to"] for move in plan["moved"]))
        self.assertEqual(collections.Counter(move["from"] for move in plan["moved"]),
                         collections.Counter({row["identifier"]: row["loses"] for row in rows if row["loses"]}))
        self.assertEqual(sum(row["gains"] for row in rows), plan["moves"])
        self.assertLessEqual(plan["floor"], plan["moves"])

    # Every plan adds up for all joins and leaves; the floor of a join is floor(K / (M + 1)) where loads were even, of
    # a leave what the leaver had.
    def test_sums(self):
        for assign in ("rendezvous", "round_robin", "sticky"):
            for members, items, join, leave in ((3, 24, 1, 0), (3, 24, 0, 1), (4, 10, 2, 1), (2, 1, 3, 0),
                                                (5, 100, 0, 0),
                                                (1, 7, 1, 1), (7, 100, 0, 3)):
                with self.subTest(assign=assign, members=members, items=items, join=join, leave=leave):
                    plan = self.plan(members, items, "--join", str(join), "--leave", str(leave), "--assign", assign)
                    self.check(plan, members, items, join, leave)
                    if (join, leave) == (1, 0):
                        self.assertEqual(plan["floor"], items // (members + 1))
                    if join == 0:
                        self.assertEqual(plan["floor"], sum(row["before"] for row in plan["members"][:leave]))
                    if assign == "sticky":
                        self.assertEqual(plan["moves"], plan["floor"])

    # Round robin is kazoo's sorted(items)[i::n], whose members are sorted as strings.
    def test_round_robin(self):
        plan = self.plan(11, 50, "--join", "1", "--assign", "round-robin")
        items = ["item-%05d" % number for number in range(50)]

        def owners(count):
            members = sorted("member-%d" % (number + 1) for number in range(count))
            return {item: members[number % count] for number, item in enumerate(items)}
        before, after = owners(11), owners(12)
        self.assertEqual(plan["moved"], [{"item": item, "from": before[item], "to": after[item]} for item in items
                                         if before[item] != after[item]])

    # Rendezvous moves little more than must be.
    def test_rendezvous(self):
        plan = self.plan(100, 10000, "--join", "1")
        self.assertEqual(plan["floor"], 10000 // 101)
        self.assertLess(plan["moves"], 4 * plan["floor"])

    # For people: a summary, a line a member, and with --verbose a line a move.
    def test_page(self):
        arguments = ["plan", "--members", "2", "--join", "1", "--item", "b", "--item", "a", "--item", "c", "--assign",
                     "round_robin"]
        self.assertEqual(run(*arguments).stdout.splitlines(), [
            "3 items by round_robin: from 2 to 3 members",
            "1 item moves (33.3 %); the least that can be is 1",
            "",
            "MEMBER    BEFORE  AFTER  GAINS  LOSES",
            "member-1       2      1      0      1",
            "member-2       1      1      0      0",
            "member-3   joins      1      1      0"])
        self.assertEqual(run(*arguments, "--verbose").stdout.splitlines()[-3:], [
            "", "ITEM  FROM      TO", "c     member-1  member-3"])
        self.assertEqual(run(*arguments, "--leave", "1").stdout.splitlines()[4].split(),
                         ["member-1", "2", "leaves", "0", "2"])

    # Wrong usage is told in one line, with exit code 2; so is a list that cannot be used.
    def test_usage(self):
        good = ["plan", "--members", "2", "--item", "a"]
        for arguments, fragment in (
                (["plan", "--item", "a"], "--members is missing"),
                (["plan", "--members", "2"], "items are missing"),
                (["plan", "--members", "0", "--item", "a"], '"0"'),
                (["plan", "--members", "x", "--item", "a"], '"x"'),
                (["plan", "--members", "10001", "--item", "a"], "10000"),
                (good + ["--leave", "3"], "--leave"),
                (good + ["--leave", "2"], "nobody"),
                (good + ["--assign", "auto"], "rendezvous"),
                (good + ["--items-from", "/dev/null"], "not both"),
                (good + ["word"], '"word"')):
            with self.subTest(arguments=arguments):
                self.assert_fails(2, arguments, fragment)
        done = run("plan", "--members", "1", "--items-from", "/nonexistent")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("/nonexistent", done.stderr)


if __name__ == "__main__":
    main(__file__)
