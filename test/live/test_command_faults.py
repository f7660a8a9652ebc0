#!/usr/bin/python3
"""Faults in a pool, each with the one command that names it. SPDX-License-Identifier: Apache-2.0

Shows faults of live pools, servers and machines, each named by one command.

usage: test_command_faults.py BUILD_FOLDER [TEST...]     a TEST is a name such as Faults.test_stray

Each fault is put into a pool that was well before. The command does not name it before, and does afterwards. The last
lines are a table: the fault, the command, what that says, and how long it took in milliseconds. With
DIVVY_FAULTS_ITEMS=10000, the size of the pool, each command runs five times, and the shortest time counts, as others
may use the machine. DIVVY_TEST_SERVER=--production gives the server the settings of one in production.
"""
import glob
import json
import os
import re
import shutil
import signal
import struct
import time
import zlib
from unittest import mock

from kazoo.security import READ_ACL_UNSAFE, make_digest_acl

from command_harness import (DEADLINE_S, NOWHERE, Server, Setting, as_commands_come, fire, main, no_credentials,
                             wait_for)
from fault_harness import ITEM_COUNT, ITEMS, TLS, Ensemble, FaultyPool
from look_harness import run, tree

MEASURES = "DIVVY_FAULTS_ITEMS" in os.environ
# A machine that others use may be slow. Only a server that is silent by intention is not waited for.
PATIENT = [] if MEASURES else ["--server-timeout", "20s"]
IMPATIENT = [] if MEASURES else ["--server-timeout", "3s"]
TABLE = []


def falsify(path, old, new):
    """Changes what transactions in a server's log say, and the sums over them."""
    with open(path, "r+b") as log:
        data, at = bytearray(log.read()), 16
        while at + 12 <= len(data):
            size, = struct.unpack_from(">i", data, at + 8)
            if size == 0:  # what is left of the file is not written yet
                break
            body = data[at + 12:at + 12 + size].replace(old, new)
            data[at:at + 12 + size] = struct.pack(">qi", zlib.adler32(body), size) + body
            at += 12 + size + 1
        log.seek(0)
        log.write(data)


class Faults(FaultyPool):
    def doctor(self, *arguments, **options):
        return ["doctor", "--path", self.path, *PATIENT, *arguments], options

    def says(self, words, sentence):
        """Runs a command. Returns what it says that matches, or None, with its time in milliseconds."""
        arguments, options = words
        began = time.monotonic()
        done = run(*arguments, **options)
        taken_ms = (time.monotonic() - began) * 1000
        found = re.search(sentence, done.stdout + done.stderr)
        return found and found.group(0), taken_ms, done

    def assert_named(self, fault, words, sentence, code=1):
        said, taken_ms, done = self.says(words, sentence)
        self.assertTrue(said, "%s\n%s%s" % (fault, done.stdout, done.stderr))
        if code is not None:
            self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        taken_ms = min([taken_ms] + [self.says(words, sentence)[1] for _ in range(4 if MEASURES else 0)])
        shown = ["divvy"] + [word for word in words[0] if word not in PATIENT + IMPATIENT]
        TABLE.append((fault, re.sub(r"--path \S+", "--path P", " ".join(shown)), " ".join(said.split()), taken_ms))

    def assert_not_named(self, words, sentence):
        said, _, done = self.says(words, sentence)
        self.assertIsNone(said, done.stdout)

    def check(self, fault, sentence, inject, code=1, words=None):
        """The doctor does not say it before, and does once the fault is there."""
        words = words or self.doctor()
        self.assert_not_named(words, sentence)
        inject()
        self.assert_named(fault, words, sentence, code)

    # Nothing is found in a pool that is well, and nothing is changed by looking at it; so JSON says.
    def test_well(self):
        self.pool()
        before = tree(self.path)
        arguments, _ = self.doctor("--json")
        done = run(*arguments)
        seen = json.loads(done.stdout)
        self.assertEqual((done.returncode, done.stderr, seen["path"], seen["errors"], seen["warnings"]),
                         (0, "", self.path, 0, 0), done.stdout)
        self.assertEqual({finding["level"] for finding in seen["findings"]}, {"ok", "note"} if TLS else {"ok"})
        self.assertLessEqual({"connection", "tick", "timeouts", "latency", "clock", "acl", "plan", "limits", "members",
                              "items"}, {finding["check"] for finding in seen["findings"]})
        done = run("doctor", *PATIENT)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("0 errors, 0 warnings, %d note" % TLS, done.stdout)
        self.assertNotIn(self.path, done.stdout)
        self.assertEqual(tree(self.path), before)

    # ---- items ----

    def test_not_released(self):
        self.pool()
        self.check("a member does not release an item",
                   r"release +alpha: it was asked to release 1 item, for \d+s now, and has not; the first is item-0",
                   self.ask_for_an_item, code=0)
        self.assert_named("the same, asked for by item", (["explain", "--path", self.path, "item-00000"], {}),
                          "alpha was asked to release it at least .* ago, and has not", code=0)

    def test_unowned(self):
        clients = self.pool()
        self.check("an item that its owner has not taken",
                   r"unowned +beta: it is to have 1 item that nobody owns, and has not taken; the first is item-00001",
                   lambda: clients["beta"].delete(self.place("item-00001", 2)), code=0)

    def test_stranger(self):
        clients = self.pool()
        other = self.client()

        def inject():
            clients["alpha"].delete(self.place("item-00000", 1))
            other.create(self.place("item-00000", 9), b"old-worker", ephemeral=True)
        self.check("an item held by one that has left the pool",
                   r"stranger +old-worker: 1 item is held by one that is not in the party; the first is item-00000",
                   inject)

    def test_persistent(self):
        clients = self.pool()

        def inject():
            clients["alpha"].delete(self.place("item-00000", 1))
            Setting.zookeeper.create(self.place("item-00000", 9), b"alpha")
        node = self.place("item-00000", 9)
        self.check("a place that a backup tool has restored",
                   r"persistent +\S+: a persistent node stands first in the queue of 1 item; the first is item-00000",
                   inject)
        self.assertTrue(self.says(self.doctor(), "they go only when somebody deletes them")[0])
        self.assertTrue(self.says(self.doctor(), "zkCli.sh delete " + re.escape(node))[0])
        self.assert_not_named(self.doctor(), r"0x0\b")

    def test_all_drained(self):
        self.pool(owners="z" * ITEM_COUNT)
        self.assert_named("all members are drained", self.doctor(),
                          r"unowned +%s: the plan gives %d items to nobody" % (self.path, ITEM_COUNT), code=0)

    def test_absent(self):
        self.pool(static=("gamma",), live={"alpha", "beta"})
        count = len(ITEMS[2::3])
        self.assert_named("a static member is away", self.doctor(),
                          r"absent +gamma: it is away, and %d items wait for it" % count, code=0)

    def test_left_directory(self):
        self.pool()
        self.check("a directory of an item that is no more",
                   r"left over +%s/locks/old: 1 directory is left" % self.path,
                   lambda: self.make(self.path + "/locks/old"), code=0)

    # ---- members ----

    def test_stray(self):
        self.pool()
        self.check("a stray in the party", r"stray +%s/party/README: 1 node in the party is no member's" % self.path,
                   lambda: self.make(self.path + "/party/README"))

    def test_namesakes(self):
        self.pool()
        self.check("two members of one identifier",
                   r"identifier +beta: two members go by this identifier: on .*, and on .*",
                   lambda: self.join("beta"))

    # At a restart of a static member the advice is to wait, not another identifier alone.
    def test_static_namesakes(self):
        self.pool()
        for number in (7, 8):
            self.join("s", number, data=b'{"static":true}')
        said = " ".join(run("doctor", "--path", self.path, *PATIENT).stdout.split())
        self.assertRegex(said, r"identifier s: two members go by this identifier.*if it has --replace")

    def test_item_sets(self):
        self.pool()
        self.check("members with different items", r"items +%s: alpha and delta were started with other items" %
                   self.path, lambda: self.join("delta", tags="a=2,s=12345678"))

    def test_kazoo(self):
        self.pool()

        def inject():
            self.client().create(self.path + "/party/%032x-k" % 1, b"k", ephemeral=True)
        self.check("a member of kazoo's among those of divvy",
                   r"plan +k: it follows no plan \(it is kazoo's\), so that names decide who owns what", inject, code=0)

    def test_member_clock(self):
        self.pool()
        since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600))
        data = json.dumps({"id": "delta", "host": "hostd", "pid": 12, "since": since}).encode()
        self.check("a machine whose clock is wrong",
                   r"clock +hostd: the clock of the machine of delta is \d+ s ahead of that of the servers",
                   lambda: self.join("delta", data=data))

    # ---- the processes of members ----

    def test_ghost(self):
        if TLS:
            self.pool()
            self.assert_named("servers with two ports", self.doctor(), "list those of our kind only", code=0)
            return
        member = self.member("--session-timeout", "60s")
        sentence = r"ghost +worker-1: its node is there, and its session 0x[0-9a-f]+ has no connection to any server"
        self.assert_not_named(self.doctor(), sentence)
        member.kill()
        member.wait(DEADLINE_S)
        wait_for(lambda: self.says(self.doctor(), sentence)[0], "the server sees that the connection has gone")
        self.assert_named("a member that was killed", self.doctor(), sentence)

    def test_frozen_member(self):
        member = self.member("--session-timeout", "12s" if MEASURES else "6s")
        sentence = r"silent +worker-1: it has sent nothing for at least [\d.]+ s; its session ends after [\d.]+ s"
        self.assert_not_named(self.doctor(), sentence)
        gone = self.member_node_gone(member)
        fire(signal.SIGSTOP, member.pid)
        named = []
        wait_for(lambda: gone() or named.append(self.says(self.doctor(), sentence)) or named[-1][0],
                 "it is named before its session ends")
        more = [self.says(self.doctor(), sentence) for _ in range(4 if MEASURES else 0)]
        fire(signal.SIGCONT, member.pid)
        if named[-1][0]:
            TABLE.append(("a member that is frozen (SIGSTOP)", "divvy doctor --path P", " ".join(named[-1][0].split()),
                          min([named[-1][1]] + [taken_ms for said, taken_ms, _ in more if said])))
        self.assertTrue(named[-1][0], named[-1][2].stdout)

    # ---- the pool's nodes ----

    def test_acl(self):
        self.pool()
        node = self.path + "/locks/item-00003"
        self.check("a wrong ACL on a node", r"acl +%s: nobody may create below it: the access list is r world:anyone\n"
                   r" +why +members cannot stand in this item's queue\n +do +zkCli.sh setAcl %s world:anyone:cdrwa" %
                   (node, node), lambda: Setting.zookeeper.set_acls(node, READ_ACL_UNSAFE))

    def test_acl_unreadable(self):
        self.pool()
        node = self.path + "/locks/item-00003"
        self.check("a node of other credentials", r"acl +%s: we may not read it" % node,
                   lambda: Setting.zookeeper.set_acls(node, [make_digest_acl("eve", "secret", all=True)]))

    def test_plan_read_only(self):
        self.pool()
        self.check("a plan that cannot be written", r"acl +%s/plan: nobody may create below it" % self.path,
                   self.close_plan)

    def test_plan_broken(self):
        self.pool()
        self.check("a plan that is damaged", r"plan +%s/plan: what stands there is no plan" % self.path,
                   lambda: Setting.zookeeper.set(self.path + "/plan", b'{"v":1,"generation":7,'))

    def test_plan_newer(self):
        self.pool()
        self.check("a plan of a later release", r"plan +%s/plan: a later release of divvy wrote the plan" % self.path,
                   lambda: Setting.zookeeper.set(self.path + "/plan", b'{"v":2}'))

    # Names of 2,900 bytes fill a session like 10,000 short ones.
    def test_limits(self):
        self.pool()
        room = 900 * 1024 - len(ITEMS[::3]) * 100
        names = ["%s-%03d" % ("n" * 2900, number) for number in range(room // 3000)]

        def inject():
            for first in range(0, len(names), 100):
                some = names[first:first + 100]
                self.in_multis(Setting.zookeeper, [(self.path + "/locks/" + name, b"", False) for name in some])
                self.in_multis(self.clients["alpha"], [(self.place(name, 1), b"alpha", True) for name in some])
        self.check("a session near its limit",
                   r"limits +alpha: its session holds \d+ items, whose paths take \d+ KiB of 1024 KiB", inject)

    def test_credentials(self):
        acl = [make_digest_acl("alice", "wonder", all=True)]
        Setting.zookeeper.create(self.path, b"")
        for node in ("party", "locks"):
            Setting.zookeeper.create("%s/%s" % (self.path, node), b"", acl=acl)
        with no_credentials():
            self.assert_named("wrong credentials", self.doctor("--auth-file", self.file("bob:builder\n"),
                                                               connect=Setting.server.plain),
                              r"acl +%s/party: we may not read it, as bob" % self.path)
            good = self.doctor("--auth-file", self.file("alice:wonder\n"), connect=Setting.server.plain)
            self.assert_not_named(good, r"we may not")

    # ---- servers and session ----

    def test_host_name(self):
        connect = "zk1.does-not-exist.invalid:2181," + Setting.server.connect
        self.assert_named("a wrong host name", (["doctor", *PATIENT], {"connect": connect}),
                          r"connection +zk1.does-not-exist.invalid:2181: the host name cannot be resolved", code=None)

    def test_tick(self):
        self.assert_named("a wrong tick", (["doctor", *PATIENT, "--ensemble-tick", "50ms"], {}),
                          r"tick +DIVVY_ENSEMBLE_TICK_MS: we are told a tick of 50 ms, and the servers have 100 ms")

    def test_timeouts(self):
        self.assert_named("a session timeout that the servers do not grant",
                          (["doctor", *PATIENT, "--session-timeout", "2m"], {}),
                          r"timeouts +a session that asks for 120000 ms gets 60000 ms")
        self.assert_named("a session timeout that is too short",
                          (["doctor", *PATIENT, "--session-timeout", "250ms"], {}),
                          r"timeouts +a session timeout of 250 ms is short for a tick of 100 ms", code=None)

    def test_no_server(self):
        sentence = r"connection +%s: the server cannot be reached at %s: Connection refused" % (NOWHERE, NOWHERE)
        self.assert_named("no server", (["doctor", *PATIENT], {"connect": NOWHERE}), sentence, code=3)

    def test_servers(self):
        ensemble = Ensemble()
        self.addCleanup(ensemble.do, "stop")
        hosts = ensemble.connect.split(",")
        words = (["doctor", *PATIENT], {"connect": ensemble.connect})
        short = (["doctor", *IMPATIENT], {"connect": ensemble.connect})
        frozen = r"connection +%s: the server takes connections, and has not answered within \d+ ms" % hosts[0]
        self.assert_not_named(words, frozen)
        if not TLS:
            self.assert_named("a list without all servers", (["doctor", *PATIENT], {"connect": hosts[0]}),
                              r"connection +the ensemble has 3 servers, and we have seen the clients of 1", code=None)
        ensemble.do("pause", "1")
        self.assert_named("a server that is frozen (SIGSTOP)", short, frozen, code=None)
        ensemble.do("resume", "1")
        wait_for(lambda: self.says(words, "0 errors, 0 warnings")[0], "it serves again")
        ensemble.do("kill", "2")
        stopped = r"connection +%s: the server cannot be reached at %s: Connection refused" % (hosts[1], hosts[1])
        wait_for(lambda: self.says(words, stopped)[0], "its port is closed")
        self.assert_named("a server of three that has stopped", words, stopped, code=None)
        ensemble.do("kill", "3")
        alone = r"connection +%s: the server is up and serves nobody: it sees no majority" % hosts[0]
        wait_for(lambda: self.says(words, alone)[0], "the server that is left knows that it is alone")
        self.assert_named("two servers of three have stopped", words, alone, code=3)

    # A follower's log says that nodes have other names. It goes on from there, until its disk is emptied.
    def test_tree(self):
        ensemble = Ensemble()
        self.addCleanup(ensemble.do, "stop")
        client = self.client(ensemble)
        for number in range(5):  # the last ones need not be in its log yet
            client.create("/ours%d" % number)
        words = (["doctor", *PATIENT], {"connect": ensemble.connect})
        host = self.says(words, r"connection +\S+: follower")[0].split()[1][:-1]
        number = ensemble.connect.split(",").index(host) + 1
        disk = "%s/%d/data/version-2" % (ensemble.folder, number)
        differs = r"tree +%s: after \d+ transactions its tree was not its leader's" % host
        self.assert_not_named(words, differs)
        ensemble.do("kill", str(number))
        for log in glob.glob(disk + "/log.*"):
            falsify(log, b"/ours", b"/OURS")
        ensemble.do("restart", str(number))
        self.assert_named("a server with another tree than its leader", words, differs)
        ensemble.do("kill", str(number))
        shutil.rmtree(disk)
        ensemble.do("restart", str(number))
        wait_for(lambda: self.says(words, "0 errors, 0 warnings")[0], "it has taken over its leader's tree")

    # Java takes its options from this variable. A server alone serves those that do not write, which no member is.
    def test_read_only(self):
        with mock.patch.dict(os.environ, {"JAVA_TOOL_OPTIONS": "-Dreadonlymode.enabled=true"}):
            ensemble = Ensemble()
        self.addCleanup(ensemble.do, "stop")
        words = (["doctor", *PATIENT], {"connect": ensemble.connect})
        alone = r"connection +%s: the server is read-only: it sees no majority" % ensemble.connect.split(",")[0]
        self.assert_not_named(words, alone)
        ensemble.do("kill", "2", "3")
        wait_for(lambda: self.says(words, alone)[0], "the server that is left is read-only")
        self.assert_named("a server that is left alone, and read-only", words, alone, code=3)

    # A server with as many connections of a machine as it takes closes each further one.
    def test_too_many_connections(self):
        server = Server()
        self.addCleanup(server.do, "stop")
        words = (["doctor", *PATIENT], {"connect": server.connect})
        full = r"connection +%s: the server closes each connection at once" % server.connect
        self.assert_not_named(words, full)
        with open(server.folder + "/1/zoo.cfg", "a", encoding="utf-8") as config:
            config.write("maxClientCnxns=2\n")  # the last line of a name counts
        server.do("kill", "1")
        server.do("restart", "1")
        for _ in range(2):  # Sessions: each is sure of its place, also if a look of "restart" had one until just now.
            self.client(server, **as_commands_come(server))
        self.assert_named("a server that has no room for more connections", words, full, code=3)

    # Nobody is in the pool: that is said, and nothing is said to be well with its items.
    def test_empty_pool(self):
        Setting.zookeeper.ensure_path(self.path + "/party")
        Setting.zookeeper.ensure_path(self.path + "/locks/x")
        self.assert_named("a pool that nobody is in", self.doctor(), r"members +%s: nobody is in the pool" % self.path)
        self.assert_not_named(self.doctor(), "owner that they should|the fullest session")

    # ---- locks ----

    def test_lock(self):
        holder = self.client()
        holder.ensure_path("/divvy/locks/faulty")
        holder.create("/divvy/locks/faulty/%032x__lock__%010d" % (1, 1), b"host9-4711", ephemeral=True)
        self.assert_named("a lock that somebody keeps", (["locks", "faulty"], {}), r"host9-4711\b.*", code=0)

    # What cannot be asked so.
    def test_refused(self):
        for arguments, fragment in ((["--path", "q"], "begin with a slash"), (["--path", "/q//r"], "/q//r"),
                                    (["x"], '"x" is not expected'), (["--connect", "h:99999"], "--connect: ")):
            done = run("doctor", *arguments) if "--connect" not in arguments else run("doctor", connect="h:99999")
            self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
            self.assertIn(fragment, done.stderr)
        self.assert_named("a pool that is not there", self.doctor(),
                          r"pool +%s: there is no pool: it has neither members nor locks" % self.path)


def print_table():
    print("%d items in the pool, %d faults" % (ITEM_COUNT, len(TABLE)))
    for fault, shown, said, taken_ms in sorted(TABLE):
        print("| %s | `%s` | %s | %.0f |" % (fault, shown, said, taken_ms))


if __name__ == "__main__":
    try:
        main(__file__)
    finally:
        print_table()
