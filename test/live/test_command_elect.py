#!/usr/bin/python3
"""`divvy elect`, on a real server. SPDX-License-Identifier: Apache-2.0

Shows processes that lead one after the other, with the commands that they run.

usage: test_command_elect.py BUILD_FOLDER [TEST...]     a TEST is a name such as Elect.test_in_turn
"""
import signal

from command_harness import NOWHERE, Setting, alive, main, run_to_end, wait_for
from lock_harness import Case, LOST, NOT_HELD, Running, UNREACHABLE, USAGE, environment

LEAD = 'echo "$2 $DIVVY_ELECTION_NAME $DIVVY_ELECTION_TOKEN" >>"$1/log"; echo leads; exec sleep 60'


class Elect(Case):
    def elect(self, *arguments, **options):
        """Runs `divvy elect` to its end."""
        return run_to_end([Setting.divvy, "elect", *arguments], env=environment(), **options)

    def candidate(self, data, *arguments, text=LEAD):
        return Running(Setting.divvy, "elect", "--session-timeout", "9s", "--data", data, *arguments, self.name,
                       "/bin/sh", "-c", text, "sh", self.folder, data, env=environment())

    def stands(self, count):
        wait_for(lambda: len(self.contenders()) == count, "%d candidates" % count)

    def leaders(self):
        return [line.split()[0] for line in self.read("log")]

    def wait_for_leaders(self, *wanted):
        wait_for(lambda: self.leaders() == list(wanted), "%s lead" % (wanted,), self.leaders(), *Running.made)

    # The first leads; a candidate that ends is followed by the next, with a greater token; SIGTERM ends divvy with 0.
    def test_in_turn(self):
        first = self.candidate("a").says("leads")
        second = self.candidate("b")
        self.stands(2)
        first.process.send_signal(signal.SIGTERM)
        self.assertEqual(first.end(), 0, first)
        self.wait_for_leaders("a", "b")
        tokens = [int(line.split()[2]) for line in self.read("log")]
        self.assertLess(tokens[0], tokens[1])
        self.assertEqual(self.read("log")[0].split()[1], self.name)
        second.process.send_signal(signal.SIGTERM)
        self.assertEqual(second.end(), 0, second)
        wait_for(lambda: self.contenders() == [], "no node is left")

    # When the command has ended, the candidate stands again, behind the others; with --once divvy ends as the command.
    def test_again(self):
        first = self.candidate("a", text='echo $2 >>"$1/log"; while [ ! -e "$1/go" ]; do sleep 0.02; done')
        wait_for(lambda: self.leaders() == ["a"], "a leads", first)
        second = self.candidate("b", "--once", text='echo $2 >>"$1/log"; exit 7')
        self.stands(2)
        self.write("go", "")
        self.assertEqual(second.end(), 7, second)
        wait_for(lambda: self.leaders()[:3] == ["a", "b", "a"], "a leads again", self.leaders(), first)
        first.process.send_signal(signal.SIGTERM)
        self.assertEqual(first.end(), 0, first)

    # A command may exit with any code, also with one that divvy has for its own failures: the candidate stands again.
    def test_any_code(self):
        first = self.candidate("a", text='echo $2 >>"$1/log"; exit 125')
        wait_for(lambda: self.leaders()[:2] == ["a", "a"], "a leads again", self.leaders(), first)
        first.process.send_signal(signal.SIGTERM)
        self.assertEqual(first.end(), 0, first)

    # SIGINT to divvy is passed on, and ends divvy with 0, whatever the command makes of it.
    def test_interrupted(self):
        first = self.candidate("a", text="trap 'exit 3' INT; echo leads; while :; do sleep 0.02; done").says("leads")
        first.process.send_signal(signal.SIGINT)
        self.assertEqual(first.end(), 0, first)

    # So it does where another signal follows before the command ends.
    def test_interrupted_before(self):
        first = self.candidate("a", text="trap 'echo interrupted' INT; trap 'exit 3' USR1; echo leads; "
                                         "while :; do sleep 0.02; done").says("leads")
        first.process.send_signal(signal.SIGINT)
        first.says("interrupted").process.send_signal(signal.SIGUSR1)
        self.assertEqual(first.end(), 0, first)

    # An operator asks: the command gets SIGTERM, the next one leads, and the one that was asked stands again.
    def test_step_down(self):
        first = self.candidate("a").says("leads")
        self.candidate("b")
        self.stands(2)
        asked = self.elect("--step-down", "--data", "the operator", self.name)
        self.assertEqual(asked.returncode, 0, asked.stderr)
        self.wait_for_leaders("a", "b")
        self.assertIn('divvy: the operator asks the leader of "%s" to step down' % self.name, first.errors)
        self.stands(2)
        self.assertIsNone(first.process.poll())
        self.assertEqual(self.elect("--step-down", self.name).returncode, 0)
        self.wait_for_leaders("a", "b", "a")

    # A leader that hears of no request (kazoo's) leads on: 4. So where nobody leads.
    def test_step_down_in_vain(self):
        self.assertEqual(self.elect("--step-down", self.name).returncode, NOT_HELD)
        lock = Setting.zookeeper.Lock("/divvy/locks/" + self.name, "kazoo")
        lock.acquire()
        asked = self.elect("--step-down", "--timeout", "300ms", self.name)
        self.assertEqual(asked.returncode, NOT_HELD)
        self.assertIn("has not stepped down within 300 ms", asked.stderr)
        wait_for(lambda: len(self.contenders()) == 1, "the request is gone")
        lock.release()

    # A preferred candidate takes over from the leader, before those that stand between them. When it is asked to step
    # down itself it is not next again.
    def test_prefer(self):
        self.candidate("a").says("leads")
        self.candidate("b")
        self.stands(2)
        self.candidate("c", "--prefer", "5").says("leads")
        self.wait_for_leaders("a", "c")
        self.stands(3)
        self.assertEqual(self.elect("--step-down", self.name).returncode, 0)
        wait_for(lambda: len(self.leaders()) == 3, "the next one leads", *Running.made)
        self.assertIn(self.leaders()[2], ["a", "b"])  # Both stood again when c passed them.

    # --watch tells who leads, and each change of it; control characters of others reach no terminal.
    def test_watch(self):
        watch = Running(Setting.divvy, "elect", "--watch", self.name, env=environment()).says("nobody")
        first = self.candidate("a\033[2J").says("leads")
        token = self.read("log")[0].split()[-1]
        watch.says("leader %s a%%1B[2J" % token)
        first.process.send_signal(signal.SIGTERM)
        wait_for(lambda: watch.output.splitlines()[-1:] == ["nobody"], "nobody leads", watch)
        watch.process.send_signal(signal.SIGTERM)
        self.assertEqual(watch.end(), 0, watch)

    # Somebody deletes the node: the command is ended, and the candidate stands again; with --once divvy exits with 5.
    def test_lost(self):
        text = 'echo $2 >>"$1/log"; echo $$ >>"$1/pid"; exec sleep 60'
        first, once = self.candidate("a", text=text), None
        pids = self.pids("pid")
        Setting.zookeeper.delete("/divvy/locks/%s/%s" % (self.name, self.contenders()[0]))
        self.wait_for_leaders("a", "a")
        self.assertFalse(alive(pids[0]))
        self.assertIn('divvy: leadership of "%s" is lost; the command was ended' % self.name, first.errors)
        first.process.send_signal(signal.SIGTERM)
        self.assertEqual(first.end(), 0, first)
        once = self.candidate("b", "--once").says("leads")
        Setting.zookeeper.delete("/divvy/locks/%s/%s" % (self.name, self.contenders()[0]))
        self.assertEqual(once.end(), LOST, once)

    # `divvy locks` shows who leads, and a lock of the same name excludes the election.
    def test_is_a_lock(self):
        self.candidate("the leader").says("leads")
        shown = run_to_end([Setting.divvy, "locks", self.name], env=environment())
        self.assertIn("the leader", shown.stdout)
        taken = run_to_end([Setting.divvy, "lock", "--no-wait", self.name, "true"], env=environment())
        self.assertEqual(taken.returncode, NOT_HELD)

    # What is wrong with the call is told, before anything begins.
    def test_usage(self):
        for words in (["--watch", "--step-down", "x"], [], ["x"], ["", "true"], ["--watch", "x", "true"],
                      ["--once", "--watch", "x"], ["--timeout", "1s", "x", "true"], ["--data", "", "x", "true"],
                      ["--prefer", "1001", "x", "true"], ["--grace", "6s", "x", "true"], ["--root", "r", "x", "true"]):
            self.assertEqual(self.elect(*words).returncode, USAGE, words)
        done = self.elect("--connect", NOWHERE, "--connect-timeout", "200ms", "x", "true")
        self.assertEqual(done.returncode, UNREACHABLE)
        self.assertEqual(self.elect("x", "/no/such/command").returncode, 127)


if __name__ == "__main__":
    main(__file__)
