#!/usr/bin/python3
"""Members, guardians, death watches and commands are killed in every order; the kernel's locks judge.
SPDX-License-Identifier: Apache-2.0

usage: test_death_watch_attack.py BUILD_FOLDER [--rounds N | --kills N] [--session SECONDS] [--things N] [--broken]
                                  [--only KIND]
       DIVVY_TEST_SEED=n replays what is drawn

A lock, an election and a pool on one server, each with three contenders: commands of divvy, and programs on the library
with a death watch. Who works has a file locked by flock(2), with its children and daemons. In each round processes of
one that works are killed and stopped, and the next owner says when it has begun.

Claims: nobody begins while anything of the one before works; where the member was killed beside a watch that lives, the
next one begins sooner than the session ends; where the member is stopped, or its watch was stopped or killed before it,
nobody begins before the session ends. When all have ended, nothing of them is left. With --broken somebody closes the
session as soon as the member is dead, as a watch would that did not wait for the command: the judge must find two.

Excused: what a killed command has left behind (rule G8): its daemons are killed first. What nobody guards, because
divvy, guardian and forker were killed: it is ended after two fifths of the session, and until then nobody may begin. A
machine that stands still for longer than a guardian's margin, a twentieth of the session, proves nothing when two were
found.
"""
import argparse
import collections
import os
import random
import shutil
import signal
import statistics
import sys
import tempfile
import threading
import time

from kazoo.client import KazooClient

from command_harness import Server, alive, fire, wait_for
from death_watch_harness import (Thing, become_subreaper, below, close_session, end_everything, family, name_of,
                                 reap)

CONTENDERS, RUNS_MAX, DEEDS_SHOWN = 3, 3, 12
SOON, LEFT_OVER, MARGIN = 0.5, 0.4, 0.05  # parts of the session timeout
GAP_S, BEFORE_S = 0.05, 0.3
KINDS = {"kill": 50, "kill the work": 15, "kill the member": 15, "stop the watch": 10, "stop": 6,
         "kill the watch first": 4}  # of a round, and how often in a hundred


class Setting:
    hosts = plain = divvy = worker = zookeeper = session_ms = None  # plain: without TLS


class Attack:
    """Rounds on one thing, which a thread makes."""

    def __init__(self, thing, draw, tally):
        self.thing, self.draw, self.tally = thing, draw, tally
        self.session_s = Setting.session_ms / 1000
        self.deeds = collections.deque(maxlen=DEEDS_SHOWN)

    def note(self, *words):
        self.deeds.append("%.6f %s" % (time.monotonic(), " ".join(map(str, words))))

    def kill(self, role, pid):
        self.tally.count("killed: " + role)
        self.note("kill", role, pid)
        fire(signal.SIGKILL, pid)

    def stop(self, role, pid):
        self.tally.count("stopped: " + role)
        self.note("stop", role, pid)
        fire(signal.SIGSTOP, pid)

    def fault(self, what, one):
        self.tally.fault("%s, %s: %s; see %s" % (self.thing.name, one.name, what, self.thing.folder))

    # ---- what is done to one that works ----

    def choose(self, roles):
        """Returns processes to kill, in an order: the member, and some of the others."""
        chosen = [("member", roles["member"][0])]
        for role, pids in roles.items():
            chosen += [(role, pid) for pid in pids if role != "member" and self.draw.random() < 0.35]
        self.draw.shuffle(chosen)
        return chosen

    def kill_in_turn(self, roles, chosen):
        if any(role == "command" for role, _ in chosen):
            for pid in roles["daemon"]:
                self.kill("daemon", pid)
            wait_for(lambda: not any(map(alive, roles["daemon"])), "the daemons are dead", roles)
            chosen = [one for one in chosen if one[0] != "daemon"]
        for role, pid in chosen:
            self.kill(role, pid)
            if self.draw.random() < 0.7:
                time.sleep(self.draw.uniform(0, GAP_S))

    def end_what_nobody_guards(self, one, began):
        """Ends it long before the session would end. Returns whether there was any."""
        if time.monotonic() < began + LEFT_OVER * self.session_s:
            return False
        left = one.left()
        for pid in left:
            self.tally.count("ended: unguarded")
            self.note("end", pid)
            fire(signal.SIGKILL, pid)
        return bool(left)

    def wait_next(self, one, items, began, other_than):
        """Waits until others have begun. Returns how long that took."""
        found = []

        def begun():
            if not one.killed:
                return self.thing.begun_since(items, began, other_than)
            if not found:
                found.extend([1] if self.end_what_nobody_guards(one, began) else [])
            return self.thing.begun_since(items, began, other_than)

        wait_for(begun, "the next owner of %s in %s" % (items, self.thing.name), one.name, self.thing.folder)
        took = self.thing.begun_since(items, began, other_than) - began
        self.tally.count("begun %s" % ("soon" if took < SOON * self.session_s else "after the session"))
        return took

    def bury(self, one):
        """Ends what is left of one that was killed, and waits for its end."""
        fire(signal.SIGKILL, one.pid)
        one.process.wait()
        for pid in one.left():
            fire(signal.SIGKILL, pid)
        wait_for(lambda: not one.left(), "what is left of %s has ended" % one.name)

    # ---- a round of each kind ----

    def do_kill(self, one, items, began, only_member=False):
        roles = one.roles()
        chosen = self.choose(roles)
        if only_member:
            chosen = [(role, pid) for role, pid in chosen if role == "member"]
        one.killed = True
        self.kill_in_turn(roles, chosen)
        took = self.wait_next(one, items, began, one.name)
        # Of a lock and an election of one command the watch is the guardian, too.
        if not any(role in ("watch", "guardian") for role, _ in chosen):
            self.tally.watched(took, took < SOON * self.session_s)

    def do_kill_the_member(self, one, items, began):
        self.do_kill(one, items, began, only_member=True)

    def do_kill_the_work(self, one, items, began):
        """Its guardian or its command dies, and the member goes on: it starts the command again, or gives it up. Where
        the forker dies with them it ends."""
        roles = one.roles()
        if one.library:
            self.do_kill(one, items, began)
            return
        role = self.draw.choice([role for role in ("command", "guardian" if roles["guardian"] else "watch")
                                 if roles[role]])
        pid = self.draw.choice(roles[role])
        by_command = {line.pid: item for item, line in self.thing.owners().items()}
        commands = [pid] if role == "command" else below(pid)
        items = [by_command[pid] for pid in commands if pid in by_command]
        chosen = [(role, pid)]
        if role == "guardian" and self.draw.random() < 0.5:
            chosen.insert(self.draw.randrange(2), ("watch", roles["watch"][0]))
        self.kill_in_turn(roles, chosen)
        self.wait_next(one, items, began, None)
        if self.thing.kind == "lock" or len(chosen) > 1:
            wait_for(lambda: one.process.poll() is not None, "divvy ends with its command, or its forker", one.name)

    def do_stop_the_watch(self, one, items, began):
        """While its watch is stopped nobody hears of a death; then at once."""
        roles = one.roles()
        for pid in roles["watch"]:
            self.stop("watch", pid)
        one.killed = True
        self.kill("member", one.pid)
        one.process.wait()
        time.sleep(self.draw.uniform(0.1, LEFT_OVER * self.session_s / 2))
        if self.thing.begun_since(items, began, one.name):
            self.fault("somebody began while the watch was stopped", one)
        began = time.monotonic()
        self.note("continue", roles["watch"])
        fire(signal.SIGCONT, *roles["watch"])
        took = self.wait_next(one, items, began, one.name)
        self.tally.watched(took, took < SOON * self.session_s)

    def do_stop(self, one, items, began):
        """One that is stopped has not died. A guardian ends its command in time; a program on the library is killed."""
        roles = one.roles()
        self.stop("member", one.pid)
        if one.library:
            time.sleep(self.draw.uniform(0.1, LEFT_OVER * self.session_s))
            if self.thing.begun_since(items, began, one.name):
                self.fault("somebody began while it was stopped", one)
            self.do_kill(one, items, time.monotonic(), only_member=True)
            return
        took = self.wait_next(one, items, began, one.name)
        if took < SOON * self.session_s:
            self.fault("somebody began %.2f s after it was stopped" % took, one)
        one.killed = True
        self.kill("member", one.pid)
        wait_for(lambda: not any(map(alive, roles["command"])), "a stopped member's command has ended", one.name)

    def do_kill_the_watch_first(self, one, items, began):
        """Where the watch is dead, all is as if there were none."""
        roles = one.roles()
        if not one.library and self.thing.kind != "pool":  # The watch is the guardian: without it there is no work.
            self.do_kill(one, items, began)
            return
        for pid in roles["watch"]:
            self.kill("watch", pid)
        wait_for(lambda: not any(map(alive, roles["watch"])), "the watch is dead", roles)
        if self.thing.begun_since(items, began, one.name):
            return  # The member has noticed, and gives up.
        began = time.monotonic()
        one.killed = True
        self.kill("member", one.pid)
        if self.wait_next(one, items, began, one.name) < SOON * self.session_s:
            self.fault("somebody began soon, without a watch", one)

    def do_break(self, one, items, began):
        """Somebody closes the session too soon."""
        session_id = self.thing.session()
        one.killed = True
        self.kill("member", one.pid)
        close_session(Setting.plain, session_id)
        self.wait_next(one, items, began, one.name)

    def round(self, kind=None):
        self.thing.fill(CONTENDERS, self.draw)
        time.sleep(self.draw.uniform(0, BEFORE_S))
        one, items = self.thing.owner(self.draw)
        if one.process.poll() is not None:
            return
        kind = kind or self.tally.only or self.draw.choices(list(KINDS), list(KINDS.values()))[0]
        self.tally.count("round: " + kind)
        self.note("round:", kind, one.name, "library" if one.library else "command", one.shape, *items, one.roles())
        getattr(self, "do_" + kind.replace(" ", "_"))(one, items, time.monotonic())
        if one.killed:
            self.bury(one)
        reap({other.pid for other in self.tally.contenders()})


class Tally:
    """Counts what the threads do, and says when it is enough."""

    def __init__(self, rounds, kills, only=None):
        self.rounds, self.kills, self.only = rounds, kills, only
        self.counts, self.faults, self.times, self.late = collections.Counter(), [], [], 0
        self.attacks, self.mutex, self.over, self.stall_s = [], threading.Lock(), threading.Event(), 0.0

    def count(self, what):
        with self.mutex:
            self.counts[what] += 1

    def fault(self, what):
        with self.mutex:
            self.faults.append(what)

    def watched(self, took, soon):
        """Notes that one began behind a member that died beside a watch that lives."""
        with self.mutex:
            self.times.append(took)
            self.late += not soon

    def sum(self, word):
        return sum(count for what, count in self.counts.items() if what.startswith(word))

    def contenders(self):
        return [one for attack in self.attacks for one in attack.thing.contenders]

    def doubles(self):
        return [line for attack in self.attacks for line in attack.thing.doubles()]

    def is_enough(self):
        with self.mutex:
            done = self.sum("killed") >= self.kills if self.kills else self.sum("round") >= self.rounds
            return done or bool(self.faults) or self.over.is_set()

    def watch_stalls(self):
        while not self.over.is_set():
            before = time.monotonic()
            time.sleep(0.02)
            self.stall_s = max(self.stall_s, time.monotonic() - before - 0.02)

    def print(self):
        for what in sorted(self.counts):
            print("  %-40s %6d" % (what, self.counts[what]))
        times = sorted(self.times)
        if times:
            print("  from a watched member's death to the next owner: %d, median %.3f s, 99th percentile %.3f s" % (
                len(times), statistics.median(times), times[len(times) * 99 // 100]))
            print("  of them after the session: %d" % self.late)
        print("  overlaps: %d; faults: %d; stalls up to %.2f s" % (len(self.doubles()), len(self.faults), self.stall_s),
              flush=True)


def run_threads(tally):
    def go(attack):
        try:
            while not tally.is_enough() and not attack.thing.doubles():
                attack.round()
        except Exception as error:  # pylint: disable=broad-exception-caught
            tally.fault("%s: %r" % (attack.thing.name, error))

    threads = [threading.Thread(target=go, args=(attack,)) for attack in tally.attacks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def make_attacks(tally, seed, folder, kinds, what="attacked"):
    for number, kind in enumerate(kinds):
        name = "%s-%s-%d-%d" % (what, kind, number, seed)
        tally.attacks.append(Attack(Thing(kind, name, folder, Setting), random.Random("%s %d" % (name, seed)), tally))


def end_all(tally):
    """Ends all, and sees that nothing is left: no guardian, no watch, no work."""
    for attack in tally.attacks:
        attack.thing.end()

    def nothing_is_left():
        reap(set())
        return [pid for pid in family().get(os.getpid(), []) if name_of(pid).startswith(("divvy", "death_watch"))] == []

    wait_for(nothing_is_left, "no process is left")


def is_judged(seed, folder):
    """Returns whether the judge finds two that work when the session is closed too soon."""
    tally = Tally(0, 0)
    make_attacks(tally, seed, folder, ["lock"], "judged")
    attack = tally.attacks[0]
    for _ in range(20):
        attack.thing.fill(CONTENDERS, attack.draw)
        one, _ = attack.thing.owner(attack.draw)
        attack.round("break" if "i" in one.shape else "kill the member")
        if attack.thing.doubles():
            break
    print("the session closed too soon: overlaps found %d" % len(attack.thing.doubles()), flush=True)
    end_all(tally)
    return bool(attack.thing.doubles())


def attack_all(options, seed, folder):
    """Returns whether the run is to be believed."""
    tally = Tally(options.rounds, options.kills, options.only)
    make_attacks(tally, seed, folder, [("lock", "elect", "pool")[n % 3] for n in range(options.things)])
    watcher = threading.Thread(target=tally.watch_stalls)
    watcher.start()
    began = time.monotonic()
    try:
        run_threads(tally)
        if not tally.faults:
            end_all(tally)
    finally:
        tally.over.set()
        watcher.join()
    print("seed %d: %d rounds, %d kills in %.0f s, sessions of %g s" % (
        seed, tally.sum("round"), tally.sum("killed"), time.monotonic() - began, options.session))
    tally.print()
    double = tally.doubles()
    for attack in tally.attacks:
        for line in attack.thing.doubles():
            print("two worked on %s: %.6f %s %s %d, after" % (
                attack.thing.name, line.at, line.item, line.contender, line.pid), *attack.deeds, sep="\n  ")
    if double and tally.stall_s > MARGIN * options.session:
        return False
    assert not double and not tally.faults, "kept: %s\n%s\nagain: DIVVY_TEST_SEED=%d" % (
        folder, "\n".join(tally.faults), seed)
    assert tally.late <= len(tally.times) // 5, "the watches are late, or there are none"
    return True


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n")[0])
    parser.add_argument("build")
    for name, default in (("rounds", 40), ("kills", 0), ("session", 5), ("things", 3)):
        parser.add_argument("--" + name, type=int, default=default)
    parser.add_argument("--broken", action="store_true")
    parser.add_argument("--only", choices=list(KINDS), metavar="KIND")
    options = parser.parse_args()
    seed = int(os.environ.get("DIVVY_TEST_SEED") or os.environ.get("DIVVY_FRESH_SEED") or time.time())
    build = os.path.abspath(options.build)
    server = Server()  # before we become a subreaper: it is not ours to reap
    become_subreaper()
    Setting.divvy = os.path.join(build, "tools", "divvy")
    Setting.worker = os.path.join(build, "test", "death_watch_worker")
    os.environ["DIVVY_LIBEXEC"] = os.path.join(build, "tools")
    Setting.hosts, Setting.plain, Setting.session_ms = server.connect, server.plain, options.session * 1000
    Setting.zookeeper = KazooClient(server.plain)
    Setting.zookeeper.start()
    try:
        for run in range(RUNS_MAX):
            folder = tempfile.mkdtemp()
            if not is_judged(seed + run, folder):
                sys.exit("the judge is blind: nobody was found beside a command whose session was closed")
            if options.broken or attack_all(options, seed, folder):
                shutil.rmtree(folder)
                return
        sys.exit("the machine stood still in each of %d runs" % RUNS_MAX)
    finally:
        Setting.zookeeper.stop()
        Setting.zookeeper.close()
        server.do("stop")
        end_everything()


if __name__ == "__main__":
    main()
