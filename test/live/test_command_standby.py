#!/usr/bin/python3
"""`divvy partition --standby`: the next worker of an item warms up before the last one stops.
SPDX-License-Identifier: Apache-2.0

Shows workers as processes: descriptors, readiness, signals, gaps.

usage: test_command_standby.py BUILD_FOLDER [TEST...]     a TEST is a name such as Standby.test_join
"""
import os
import signal

import test_command_supervise
from command_harness import NOWHERE, alive, fire, main, wait_for
from partition_harness import ITEMS as POOL_ITEMS, run
from supervise_harness import WORKER as UNPREPARED, Case, Member, T

WARM_UP_S = 1
ITEMS = ["item-%d" % number for number in range(8)]
UNREACHABLE = ["partition", "--connect", NOWHERE, "--path", "/q", "--item", "a"]

# Says READY=1, as systemd-notify(1) does.
READY = r"""#!/usr/bin/python3
import os, socket
name = os.environ["NOTIFY_SOCKET"]
socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"STATUS=warm\nREADY=1\n", name.replace("@", "\0", 1))
"""

# Warms up, says that it is ready, and works on its item from the moment that it has the token. It tells of it in a log
# that all append to. While it works it has the item's file locked, so a second worker is found out by the kernel.
WORKER = r"""#!/bin/bash
exec 8>>"$1/log" 9>>"$1/$2.lock"
item=$2 token=-
say() { echo "$EPOCHREALTIME $item $token $$ $1 ${DIVVY_TOKEN-none}" >&8; }
say start
sleep $3
"$1/ready"
if ! read -r token <&"$DIVVY_START_FD"; then
    say unneeded
    exit 0
fi
flock -n 9 || say double
trap 'say end; exit 0' TERM
say begin
exec 7<> <(:)
while :; do read -r -t 0.2 -u 7; done
"""


class Standby(Case):
    def setUp(self):
        super().setUp()
        self.write("ready", READY)
        self.standby = self.write("standby.sh", WORKER)

    def join(self, *arguments, items=ITEMS, warm_up_s=WARM_UP_S):
        if "--handover-timeout" not in arguments:
            arguments = ["--handover-timeout", "1h", *arguments] # A slow machine must not run into it.
        return Member(self, "--standby", *arguments, items=items,
                      command=[self.standby, self.folder, "{item}", str(warm_up_s)])

    def log(self, word=None):
        """The lines of the workers: when, item, token, pid, what, DIVVY_TOKEN."""
        if not os.path.exists(self.file_name("log")):
            return []
        lines = [(float(line[0]), *line[1:]) for line in map(str.split, self.read("log"))]
        return [line for line in lines if word in (None, line[4])]

    def wait_log(self, word, count, member):
        wait_for(lambda: len(self.log(word)) >= count, "%d workers say %s" % (count, word), member)

    def read(self, name):
        with open(self.file_name(name), encoding="utf-8") as file:
            return file.read().splitlines()

    # A worker that closes its descriptor before it is told to begin has failed, and another one works on the item.
    def test_closed_descriptor(self):
        script = ('if [[ ! $DIVVY_TOKEN ]]; then eval "exec $DIVVY_START_FD<&-"; "$1/ready"; exec sleep 1000; fi; '
                  'read -r token <&"$DIVVY_START_FD"; echo "$token" >>"$1/works"; exec sleep 1000')
        first = self.join(items=["a", "b"], warm_up_s=0)
        first.wait(lambda me: len(me.owned()) == 2, "it has all")
        second = Member(self, "--standby", "--handover-timeout", "1h", items=["a", "b"],
                        command=["/bin/bash", "-c", script, "bash", self.folder])
        second.wait(lambda me: me.of("started"), "another one is started")
        self.assertEqual([line["child"] for line in second.children], ["standby", "ready", "failed", "started"], second)
        self.assertIn("DIVVY_START_FD", second.of("failed")[0]["reason"])
        wait_for(lambda: os.path.exists(self.file_name("works")) and self.read("works"), "it works", second)
        self.assertEqual(self.read("works"), list(second.ledger.tokens.values()))
        self.assertEqual((second.stop(signal.SIGINT), first.stop()), (0, 0))

    # A join moves items without a gap of the warm-up's length: the new worker has warmed up before the last one is told
    # to stop. What stays is not interrupted, no two work on one item, and each begins with the token of its member.
    def test_join(self):
        first = self.join()
        self.wait_log("begin", len(ITEMS), first)
        first.wait(lambda me: len(me.owned()) == len(ITEMS), "it has all")
        second = self.join()
        second.wait(lambda me: len(me.owned()) == len(ITEMS) // 2, "half of them move")
        self.wait_log("begin", len(ITEMS) * 3 // 2, second)
        moved = second.owned()
        gaps = []
        for item in moved:
            lines = [line for line in self.log() if line[1] == item]
            self.assertEqual([line[4] for line in lines], ["start", "begin", "start", "end", "begin"], lines)
            gaps.append(lines[4][0] - lines[3][0])
            self.assertGreater(lines[3][0] - lines[2][0], WARM_UP_S, "the last one works while the next one warms up")
            self.assertEqual([line[2:3] + line[5:] for line in (lines[2], lines[4])],
                             [("-", "none"), (second.ledger.tokens[item], "none")])
            self.assertEqual([len(second.of(word, item)) for word in ("standby", "ready", "begun", "started")],
                             [1, 1, 1, 0])
        print("gaps of %d items, ms: %s; the warm-up takes %d" % (
            len(gaps), ", ".join("%.0f" % (gap * 1000) for gap in sorted(gaps)), WARM_UP_S * 1000))
        self.assertEqual(self.log("double"), [])
        self.assertEqual(len(self.log("end")), len(moved))
        self.assertEqual(first.stop(), 0)
        self.assertEqual(second.stop(), 0)

    # SIGTERM hands over: the workers go on until those of the other member have warmed up, and then divvy ends.
    def test_hands_over(self):
        first = self.join(warm_up_s=0)
        self.wait_log("begin", len(ITEMS), first)
        second = self.join(warm_up_s=0)
        second.wait(lambda me: len(me.owned()) == len(ITEMS) // 2, "half of them move")
        self.wait_log("begin", len(ITEMS) * 3 // 2, second)
        ended = len(self.log("end"))
        second.stop()
        self.wait_log("begin", len(ITEMS) * 2, first)
        self.assertEqual(len(self.log("end")), ended + len(ITEMS) // 2)
        self.assertEqual({line["reason"] for line in second.of("ended")}, {"revoked"})
        self.assertEqual(len(first.of("begun")), len(ITEMS) // 2, first)
        self.assertEqual(self.log("double"), [])
        self.assertEqual(second.lines[-1]["reason"], "finished")
        self.assertEqual(first.stop(), 0)

    # A second signal ends the handing over, which waits for workers that are not ready: workers end at once.
    def test_told_twice(self):
        first = self.join(warm_up_s=0)
        self.wait_log("begin", len(ITEMS), first)
        second = self.join(warm_up_s=1000)
        second.wait(lambda me: len(me.of("standby")) == len(ITEMS) // 2, "half of them stand by")
        first.process.send_signal(signal.SIGTERM)
        second.wait(lambda me: len(me.of("standby")) == len(ITEMS), "all of them do")
        self.assertEqual(first.look().of("ended"), [])
        self.assertEqual(first.stop(), 0)
        self.assertEqual({line["reason"] for line in first.of("ended")}, {"leaving"})
        self.assertEqual(len(first.of("ended")), len(ITEMS))
        self.assertEqual(second.stop(), 0)

    # Restart in place: the next process with the identifier takes over as its workers warm up, and the last one ends by
    # itself. No item of another member moves.
    def test_replace(self):
        static = ["--rejoin-delay", "1m", "--replace", "--identifier"]
        members = [self.join(*static, name, warm_up_s=0) for name in ("a", "b")]
        for member in members:
            member.wait(lambda me: len(me.owned()) == len(ITEMS) // 2, "half of them is each one's")
        self.wait_log("begin", len(ITEMS), members[0])
        lines, owned = len(members[1].look().lines), members[0].owned()
        following = self.join(*static, "a")
        self.assertEqual(members[0].end(), 0, members[0])
        self.assertIn("a process that was started later has the identifier a", members[0].text("err"))
        for member in (members[0], following):
            self.assertNotIn("two live members", member.text("err"))
        following.wait(lambda me: me.owned() == owned, "it has what the last one had")
        self.wait_log("begin", len(ITEMS) + len(owned), following)
        self.assertEqual(len(following.of("begun")), len(owned))
        for line in members[1].look().lines[lines:]:
            self.assertFalse(any(line.get(what) for what in ("revoked", "lost", "leaving", "gained")), line)
        self.assertEqual(self.log("double"), [])
        self.assertEqual((members[1].stop(), following.stop()), (0, 0))

    # A process that was stopped beyond its session goes on beside its successor, with a younger node. It takes nothing
    # back, says why, and ends; the successor works on.
    def test_replace_stalled(self):
        static = ["--rejoin-delay", "1m", "--replace", "--session-timeout", "4s", "--identifier", "a"]
        old = self.join(*static, warm_up_s=0)
        old.wait(lambda me: len(me.owned()) == len(ITEMS), "it has all")
        self.wait_log("begin", len(ITEMS), old)
        old.process.send_signal(signal.SIGSTOP)
        self.addCleanup(old.process.send_signal, signal.SIGCONT)
        following = self.join(*static, warm_up_s=0)
        following.wait(lambda me: len(me.owned()) == len(ITEMS), "its successor has all")
        self.wait_log("begin", 2 * len(ITEMS), following)
        tokens = dict(following.ledger.tokens)
        old.process.send_signal(signal.SIGCONT)
        self.assertEqual(old.end(), 0, old)
        self.assertIn("a process that was started later has the identifier a", old.text("err"))
        self.assertIsNone(following.process.poll(), following)
        self.assertEqual(following.look().ledger.tokens, tokens)
        self.assertEqual(following.of("ended"), [])
        self.assertEqual(self.log("double"), [])
        self.assertEqual(following.stop(), 0)

    # A worker of an item that is gained without notice is told at once, and has both variables and one descriptor more.
    def test_alone(self):
        script = ('read -r token <&"$DIVVY_START_FD"; echo "$token $DIVVY_TOKEN $DIVVY_START_FD ${NOTIFY_SOCKET:0:7}" '
                  '>"$1/told.new"; ls -m /proc/$$/fd >>"$1/told.new"; mv "$1/told.new" "$1/told"; exec sleep 1000')
        member = Member(self, "--standby", items=["a"], command=["bash", "-c", script, "bash", self.folder])
        wait_for(lambda: os.path.exists(self.file_name("told")), "it is told", member)
        token = member.look().ledger.tokens["a"]
        self.assertEqual(self.read("told"), ["%s %s 3 @divvy/" % (token, token), "0, 1, 2, 3"])
        self.assertEqual(member.stop(), 0)

    # A descriptor of the caller's keeps its number.
    def test_descriptors(self):
        given, other = os.pipe()
        self.addCleanup(os.close, other)
        self.addCleanup(os.close, given)
        script = ('read -r token <&"$DIVVY_START_FD"; echo "$token $DIVVY_TOKEN" >"$1/told.new"; '
                  'ls -m /proc/$$/fd >>"$1/told.new"; mv "$1/told.new" "$1/told"; exec sleep 1000')
        member = Member(self, "--standby", items=["a"], pass_fds=[given],
                        command=["bash", "-c", script, "bash", self.folder])
        wait_for(lambda: os.path.exists(self.file_name("told")), "it is told", member)
        self.assertEqual(self.read("told")[0], "%s %s" % ((member.look().ledger.tokens["a"],) * 2))
        start = 3 if given != 3 else 4
        self.assertEqual(self.read("told")[1], ", ".join(map(str, sorted((0, 1, 2, given, start)))))
        self.assertEqual(member.stop(), 0)

    # A standby that dies is started again, and is told to begin when it is ready. One that is not needed, since the
    # member leaves, ends.
    def test_dies(self):
        first = self.join(warm_up_s=0)
        self.wait_log("begin", len(ITEMS), first)
        second = self.join(warm_up_s=1000)
        second.wait(lambda me: len(me.of("standby")) == len(ITEMS) // 2, "half of them stand by")
        os.kill(second.of("standby")[0]["pid"], signal.SIGKILL)
        second.wait(lambda me: len(me.of("standby")) == len(ITEMS) // 2 + 1, "it is started again")
        self.assertEqual(second.of("exited")[0]["status"], 128 + signal.SIGKILL)
        self.assertNotIn("token", second.of("exited")[0])
        self.assertEqual(second.owned(), [])
        self.assertEqual(first.look().of("ended"), [])
        self.assertEqual(second.stop(), 0)
        self.assertEqual(len(second.of("ended")), len(ITEMS) // 2)
        first.wait(lambda me: sum(len(line.get("staying", [])) for line in me.lines) == len(ITEMS) // 2, "all stay")
        self.assertEqual(first.of("ended"), [])
        self.assertEqual(first.stop(), 0)

    # A worker that is never ready holds a handover up for the time that was said, and no longer.
    def test_never_ready(self):
        first = self.join(warm_up_s=0)
        self.wait_log("begin", len(ITEMS), first)
        second = self.join("--prepare-timeout", "1s", warm_up_s=5)
        second.wait(lambda me: len(me.owned()) == len(ITEMS) // 2, "half of them move")
        self.assertEqual(second.of("ready"), [])
        self.wait_log("begin", len(ITEMS) * 3 // 2, second)
        self.assertEqual(self.log("double"), [])
        self.assertEqual(second.stop(), 0)
        self.assertEqual(first.stop(), 0)

    # The time to prepare follows the time of handovers: a member asks for an item before an owner with the same options
    # would let it go. This owner would wait for an hour.
    def test_follows(self):
        first = self.join("--handover-timeout", "1h", warm_up_s=0)
        self.wait_log("begin", len(ITEMS), first)
        second = self.join("--handover-timeout", "6s", warm_up_s=1000)
        second.wait(lambda me: len(me.owned()) == len(ITEMS) // 2, "half of them move")
        leaving = next(line for line in first.look().lines if line.get("leaving"))
        revoked = next(line for line in first.lines if line.get("revoked"))
        kept_ms = revoked["time_ms"] - leaving["time_ms"]
        self.assertGreater(kept_ms, 4000, "it is asked for when 5 s of 6 have passed")
        self.assertEqual(second.stop(), 0)
        self.assertEqual(first.stop(), 0)

    # A worker that has begun ends before the session may be over, like any other, though it was started as a standby.
    # One that stands by ends then, too. When the session is lost the member has others.
    def test_frozen(self):
        self.session_s = T
        first = self.join(warm_up_s=0)
        self.wait_log("begin", len(ITEMS), first)
        second = self.join(warm_up_s=0)
        second.wait(lambda me: len(me.of("begun")) == len(ITEMS) // 2, "half of them have begun")
        third = self.join(warm_up_s=1000)
        third.wait(lambda me: len(me.of("standby")) > 1, "some stand by")
        pids = second.pids() + third.pids()
        fire(signal.SIGSTOP, second.pid, third.pid)
        first.wait(lambda me: len(me.owned()) == len(ITEMS), "it has all")
        self.assertFalse(any(alive(pid) for pid in pids))
        fire(signal.SIGCONT, second.pid, third.pid)
        second.wait(lambda me: len(me.owned()) > 1, "it takes part again")
        self.assertEqual(self.log("double"), [])
        for member in third, second, first: # Nobody is ready for what the third one would get.
            self.assertEqual(member.stop(), 0, member)

    # What makes no sense is refused, with what to do instead.
    def test_usage(self):
        command = ["--", "true"]
        for words, fragment in ((["--standby"], "behind --"), (["--standby", "--mode", "eager", *command], "--mode"),
                                (["--standby", "--assign", "rendezvous", *command], "--assign"),
                                (["--standby", "--assign", "round_robin", *command], "--assign"),
                                (["--standby", "--handover-timeout", "0", *command], "--handover-timeout 0"),
                                (["--prepare-timeout", "1s", *command], "add --standby"),
                                (["--standby", "--prepare-timeout", "0", *command], "--prepare-timeout"),
                                (["--standby", "--prepare-timeout", "soon", *command], "--prepare-timeout"),
                                (["--standby", "--prepare-timeout", "31s", *command], "a longer --handover-timeout"),
                                (["--standby", "--handover-timeout", "2s", "--prepare-timeout", "3s", *command],
                                 "a longer --handover-timeout"),
                                (["--handover-timeout", "-1s"], "--handover-timeout")):
            with self.subTest(words):
                done = run(*UNREACHABLE, *words)
                self.assertEqual((done.returncode, done.stdout), (2, ""), done)
                self.assertRegex(done.stderr, r"\Adivvy: [^\n]*\n\Z")
                self.assertIn(fragment, done.stderr)


class Warm(test_command_supervise.Pool):
    """The random pool, with members whose workers stand by, and some whose workers do not."""

    def setUp(self):
        super().setUp()
        ready = self.write("ready", READY)
        shebang, rest = UNPREPARED.split("\n", 1)
        stand_by = ('if [[ $DIVVY_START_FD ]]; then sleep 0.$((RANDOM %% 8)); %s\n'
                    'read -r DIVVY_TOKEN <&"$DIVVY_START_FD" || exit 0; fi\n' % ready)
        self.worker = self.write("worker.sh", shebang + "\n" + stand_by + rest)

    def join(self):
        options = self.dice.choice((["--standby"], ["--standby", "--prepare-timeout", "300ms"], ["--mode", "eager"],
                                    []))
        member = self.start_worker("--drain", "500ms", *options, items=POOL_ITEMS)
        self.members.append(member.wait(Member.states, "it takes part"))


if __name__ == "__main__":
    main(__file__)
