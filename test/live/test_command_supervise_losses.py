#!/usr/bin/python3
"""`divvy partition ... -- COMMAND` when something is lost. SPDX-License-Identifier: Apache-2.0

Shows workers that must end before a real session is over.

usage: test_command_supervise_losses.py BUILD_FOLDER [TEST...]     a TEST is a name such as Losses.test_frozen
"""
import signal

from command_harness import Server, Setting, alive, fire, main, wait_for
from supervise_harness import Case, T, uptime


class Losses(Case):
    session_s = T

    def own_server(self):
        server = Server()
        self.addCleanup(server.do, "stop")
        return server

    # The server freezes: all commands are gone before the session can have ended. When it is back the member takes part
    # again, by itself, with larger tokens.
    def test_frozen(self):
        server = self.own_server()
        member = self.start_script('trap "" TERM; sleep 1001 & echo $$ $! >"$1/pids-$2"; echo >>"$1/ready"; '
                                   'while :; do read -r up _ </proc/uptime; echo $up >>"$1/beats"; sleep 0.02; done',
                                   "--drain", "500ms", items=["a", "b", "c"], connect=server.connect)
        wait_for(lambda: len(self.read("ready")) == 3, "all are ready", member)
        pids = [int(pid) for item in "abc" for pid in self.read("pids-" + item)[0].split()]
        first = member.wait_started(3).ledger.tokens
        server.do("pause", "1")
        frozen = uptime()
        wait_for(lambda: not any(map(alive, pids)), "all commands are gone", member)
        self.assertLess(max(map(float, self.read("beats"))), frozen + T, member)
        member.wait(lambda me: len(me.of("ended")) == 3, "it is told")
        self.assertLessEqual({line["reason"] for line in member.of("ended")}, {"deadline", "lost"})
        member.wait(lambda me: "RELEASE" in me.states(), "the loss is told")
        self.assertEqual(len(member.of("started")), 3)
        server.do("resume", "1")
        member.wait_started(6)
        member.wait(lambda me: me.states()[-1] == "ACQUIRED" and len(me.owned()) == 3, "it is back")
        self.assertTrue(all(int(member.ledger.tokens[item]) > int(first[item]) for item in "abc"), member)
        self.assertNotIn("FAILURE", member.states())
        self.assertEqual(member.stop(), 0)

    # A break that the session outlives ends nothing.
    def test_outage(self):
        server = self.own_server()
        member = self.start_script("exec sleep 1000", "--session-timeout", "2m", items=["a", "b"],
                                   connect=server.connect)
        pids = member.wait_started(2).pids()
        server.do("kill", "1")
        wait_for(lambda: "the connection to" in member.text("err"), "the break is told", member)
        server.do("restart", "1")
        wait_for(lambda: "is back" in member.text("err"), "the return is told", member)
        self.assertTrue(all(map(alive, pids)))
        self.assertEqual(member.stop(), 0)
        self.assertEqual(len(member.of("started")), 2)

    # divvy itself is stopped: its guardians end the commands in time; let go on, it takes part again.
    def test_stopped(self):
        member = self.start_worker(items=["a", "b"]).wait_started(2)
        pids = member.pids()
        fire(signal.SIGSTOP, member.pid)
        stopped = uptime()
        wait_for(lambda: not any(map(alive, pids)), "all commands are gone", member)
        self.assertLess(max(up for up, *_ in self.log()), stopped + T, member)
        other = self.start_worker(items=["a", "b"]).wait_started(2)
        fire(signal.SIGCONT, member.pid)
        member.wait(lambda me: me.states()[-1] == "ACQUIRED" and len(me.owned()) == 1, "it is back")
        member.wait_started(3)
        self.assertEqual((member.stop(), other.stop()), (0, 0))
        self.assert_one_at_a_time()

    # divvy is killed: all that it has started is gone before its session ends, which then does not take its hour.
    def test_killed(self):
        member = self.start_script('trap "" TERM; setsid sleep 1000 & p=$!; sleep 1001 & echo $$ $p $! >"$1/pids-$2"; '
                                   'echo >>"$1/ready"; while :; do sleep 0.05; done', "--session-timeout", "1h",
                                   items=["a", "b"])
        wait_for(lambda: len(self.read("ready")) == 2, "both are ready", member)
        pids = [int(pid) for item in "ab" for pid in self.read("pids-" + item)[0].split()]
        member.process.kill()
        wait_for(lambda: self.nodes_left() == [], "its session is over", member)
        self.assertFalse(any(map(alive, pids)))

    # Somebody deletes the node of one item: its command is ended at once, whatever it does, and started again when the
    # item is had again; the others go on.
    def test_deleted(self):
        member = self.start_script('trap "" TERM; echo >>"$1/ready"; while :; do sleep 0.05; done', "--drain", "1h",
                                   items=["a", "b"])
        wait_for(lambda: len(self.read("ready")) == 2, "both are ready", member)
        place = self.path + "/locks/a"
        Setting.zookeeper.delete(place + "/" + Setting.zookeeper.get_children(place)[0])
        member.wait_started(2, "a")
        self.assertEqual([(line["item"], line["reason"]) for line in member.of("ended")], [("a", "lost")])
        self.assertEqual(len(member.of("started", "b")), 1)
        starts = member.of("started", "a")
        self.assertGreater(int(starts[1]["token"]), int(starts[0]["token"]))
        self.assertNotIn("FAILURE", [line.get("state") for line in member.lines])
        member.process.kill()

    # Without a command a lost session is the end, with 1, unless --rejoin is given.
    def test_without_command(self):
        server = self.own_server()
        failing = self.start(connect=server.connect, items=["a", "b"])
        staying = self.start("--rejoin", items=["a", "b"], connect=server.connect)
        for member in failing, staying:
            member.wait(lambda me: me.states()[-1:] == ["ACQUIRED"] and len(me.owned()) == 1, "it has its share")
        server.do("pause", "1")
        self.assertEqual(failing.end(), 1)
        self.assertEqual(failing.states()[-1], "FAILURE")
        staying.wait(lambda me: me.states()[-1] == "RELEASE" or "ALLOCATING" in me.states()[2:], "the loss is told")
        self.assertEqual(staying.owned(), [])
        server.do("resume", "1")
        staying.wait(lambda me: me.owned() == ["a", "b"], "it has all")
        self.assertNotIn("FAILURE", [line["state"] for line in staying.lines])
        self.assertEqual(staying.stop(), 0)


if __name__ == "__main__":
    main(__file__)
