"""What members believed, and what was done to them, from their logs (member.h, chaos.h).

SPDX-License-Identifier: Apache-2.0"""

import os
import pathlib
import re
from bisect import bisect_right

# What a server writes while its tree is not the leader's. In its main thread it writes that of what it has loaded, as
# after a full disk: the driver gives it an empty disk then.
DIVERGED = re.compile(r'^[^[]*\[(?!main\]).*Digests are not matching')


class Belief:
    """A member took something for its own, for certain, from `start` to `end`; not at all if that is earlier."""

    def __init__(self, log, kind, thing, session, token, start, slots=()):
        self.log, self.kind, self.thing, self.session, self.token = log, kind, thing, session, token
        self.start, self.slots = start, slots
        self.end = None
        self.why = 'open'

    @property
    def is_certain(self):
        return self.end > self.start

    def __str__(self):
        return (f'{self.log} believed in {self.kind} {self.thing} with token {self.token:#x} of session '
                f'{self.session:#x} from {self.start} to {self.end} ({self.why})')


class Claim:
    """The unique role, by one answer to one question."""

    def __init__(self, log, asked, told, session, ttl, role, nonce, attempt):
        self.log, self.asked, self.told, self.session, self.ttl = log, asked, told, session, ttl
        self.role, self.nonce, self.attempt = role, nonce, attempt
        self.end = asked + ttl


class Log:
    """One process's."""

    def __init__(self, name):
        self.name = name
        self.member = name.split('.')[0]
        self.beliefs, self.claims, self.lookups, self.calls, self.states, self.seen = [], [], [], [], [], []
        self.views, self.parties, self.leaders, self.jumps = [], [], [], 0
        self.deadlines = {}  # session: ([time], [until])
        self.stops = []  # (from, to)
        self.stalls = []  # likewise, by what the process noticed itself
        self.begun = self.given_up = self.ended = self.killed = None
        self.open = {}

    def deadline(self, session, time=None):
        """What was known at `time`, or in the end, of until when the session lives; 0 if nothing."""
        times, untils = self.deadlines.get(session, ((), ()))
        at = len(times) if time is None else bisect_right(times, time)
        return max(untils[:at], default=0)

    def session_at(self, time):
        """Returns the session that the process wrote of last, up to then."""
        at = {max((t for t in times if t <= time), default=-1): session
              for session, (times, _) in self.deadlines.items()}
        return at[max(at)] if at and max(at) >= 0 else None

    def lives_at(self, time):
        ends = [t for t in (self.ended, self.killed) if t is not None]
        return self.begun is not None and self.begun <= time and all(t > time for t in ends)

    # ---- lines ----

    def read(self, line):
        kind, *f = line.split()
        getattr(self, 'read_' + kind)(*f)

    def read_H(self, time, _pid):
        self.begun = int(time)

    def read_Q(self, time):
        self.ended = int(time)

    def read_U(self, time, session, until):
        times, untils = self.deadlines.setdefault(int(session, 16), ([], []))
        times.append(int(time))
        untils.append(int(until))

    def read_B(self, time, kind, thing, session, token, slots):
        belief = Belief(self.name, kind, thing, int(session, 16), int(token), int(time),
                        () if slots == '-' else tuple(int(s) for s in slots.split(',')))
        self.open[kind, thing, belief.token] = belief
        self.beliefs.append(belief)

    def read_E(self, last, seen, kind, thing, token, why):
        belief = self.open.pop((kind, thing, int(token)))
        belief.end, belief.why, belief.found = int(last), why, int(seen)

    def read_C(self, asked, told, session, ttl, role, nonce, attempt):
        self.claims.append(Claim(self.name, int(asked), int(told), int(session, 16), int(ttl), role, nonce, attempt))

    def read_D(self, time, _role):
        self.given_up = int(time)

    def read_R(self, asked, told, ttl, role, service, attempt):
        self.lookups.append((int(asked), int(told), int(ttl), role, service, attempt))

    def read_W(self, time, _count, *names):
        self.views.append((int(time), sorted(names)))

    def read_P(self, time, _count, *names):
        self.parties.append((int(time), sorted(names)))

    def read_K(self, time, token, name):
        self.leaders.append((int(time), int(token), name))

    def read_T(self, time, before, after):
        self.states.append((int(time), int(before), int(after)))

    def read_L(self, asked, told, what, timeout, result):
        self.calls.append((int(asked), int(told), what, int(timeout), int(result)))

    def read_J(self, begin, end):
        self.stalls.append((int(begin), int(end)))

    def read_N(self, _time, _what, _by):
        self.jumps += 1

    def read_V(self, time, rule, *text):
        self.seen.append((rule, f'{self.name} at {time}: {" ".join(text)}'))

    # ---- the end of beliefs ----

    def finish(self):
        """Belief lasts up to the deadline where nobody was there to end it: in a process that was killed, or
        stopped."""
        for belief in self.beliefs:
            if belief.end is None:
                belief.end = self.deadline(belief.session)
            elif belief.why == 'lost':
                for begin, end in self.stops:
                    if belief.end <= begin <= belief.found and begin - belief.end < 50:
                        belief.end = max(belief.end, min(self.deadline(belief.session, begin), end))
        for claim in self.claims:
            claim.end = min(claim.end, self.deadline(claim.session))
            if self.given_up is not None:
                claim.end = min(claim.end, self.given_up)


class Quiet:
    """A time without faults: from `begin`; all is to be well by `begin` + `bound`, and for as long as it lasts."""

    def __init__(self, begin, bound):
        self.begin, self.bound, self.end, self.stall = begin, bound, None, 0


class History:
    """All logs of a round."""

    def __init__(self):
        self.logs, self.offsets, self.excused, self.unexpected = {}, [], {}, []
        self.interrupted = False  # by the user, so that the round may show nothing
        self.diverged = []  # what servers have said of their own trees
        self.quiets, self.faults, self.session_ms, self.tick_ms, self.sync_ticks = [], [], 3000, 200, 10

    def read_driver(self, lines):
        stopped = {}
        for line in lines:
            kind, *f = line.split()
            if kind == 'T':
                self.session_ms, self.tick_ms, self.sync_ticks = (int(x) for x in f)
            elif kind == 'O':
                self.offsets.append(int(f[1]) - int(f[0]))
            elif kind == 'M':
                self.logs.setdefault(f[2], Log(f[2]))
            elif kind == 'K':
                self.logs[f[1]].killed = int(f[0])
            elif kind == 'S':
                stopped[f[1]] = int(f[0])
            elif kind == 'G':
                self.logs[f[1]].stops.append((stopped.pop(f[1]), int(f[0])))
            elif kind == 'X':
                self.excused.setdefault(int(f[1], 16), int(f[0]))
            elif kind == 'Y':
                self.unexpected.append((int(f[0]), f[1], ' '.join(f[1:])))
                if f[1] in self.logs and self.logs[f[1]].killed is None:
                    self.logs[f[1]].killed = int(f[0])
            elif kind == 'F':
                self.faults.append((int(f[0]), f[1], f[2], int(f[3])))
            elif kind == 'A':
                self.quiets.append(Quiet(int(f[0]), int(f[1])))
            elif kind == 'I':
                self.interrupted = True
            elif kind == 'Z':
                self.quiets[-1].end, self.quiets[-1].stall = int(f[0]), int(f[1])

    def read_member(self, name, lines):
        log = self.logs.setdefault(name, Log(name))
        for line in lines:
            if line.endswith('\n'):  # The last one may be cut off.
                log.read(line)

    def read_server(self, name, lines):
        self.diverged += [f'{name}: {line.strip()}' for line in lines if DIVERGED.search(line)]

    def finish(self):
        for log in self.logs.values():
            log.finish()

    @property
    def beliefs(self):
        return [b for log in self.logs.values() for b in log.beliefs]

    def is_excused(self, session, time):
        """Whether somebody has ended the session by force, so that no clock can know, before `time`."""
        return session in self.excused and self.excused[session] <= time

    # ---- the servers' clock ----

    def offset(self):
        """How far the wall clock is ahead of CLOCK_BOOTTIME."""
        return sorted(self.offsets)[len(self.offsets) // 2]

    def tolerance(self):
        """By how much that, and two times in whole milliseconds, may be wrong."""
        return max(self.offsets) - min(self.offsets) + 2


def read_history(directory):
    history = History()
    with open(os.path.join(directory, 'driver.log'), encoding='utf-8') as file:
        history.read_driver(file)
    for name in list(history.logs):
        path = os.path.join(directory, name)
        if os.path.exists(path):
            with open(path, encoding='utf-8') as file:
                history.read_member(name, file)
    for path in sorted(pathlib.Path(directory).glob('server*/log*')):
        with open(path, encoding='utf-8', errors='replace') as file:
            history.read_server(path.parent.name, file)
    history.finish()
    return history
