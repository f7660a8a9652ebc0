#!/usr/bin/python3
"""The checkers of the chaos test notice what they are there for. SPDX-License-Identifier: Apache-2.0

A sound history of two members passes. Then it is falsified in one place after the other, and each time the rule that
was broken is reported, and no other. """

import copy
import json
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from check import judge  # noqa: E402
from history import History  # noqa: E402
from rules import Checker, ITEMS, POOL, ROOT  # noqa: E402
from txnlog import Op, Truth, Txn  # noqa: E402

WALL = 1_000_000  # the wall clock is so far ahead
A, B = 0xa1, 0xb2  # sessions
PERSISTENT = [ROOT, ROOT + '/locks', POOL]


def entry(attempt, nonce, ttl=2):
    return json.dumps({'attempt': attempt, 'nonce': nonce, 'ttl': ttl}).encode()


def note(*given):
    return json.dumps({'v': 1, 'set': {}, 'leaving': [], 'ready': [], 'given': given}).encode()


class World:
    """Transactions and lines of two members, m0 with session A and m1 with session B. Times are in milliseconds of
    CLOCK_BOOTTIME; a quiet time goes from 10,000 to 20,000."""

    def __init__(self):
        self.txns, self.driver, self.server, self.lines = [], [], [], {'m0.1.log': [], 'm1.1.log': []}
        self.given_number = 0
        self.driver += ['T 3000 200 10', 'O 0 1000000', 'O 9000 1009000', 'M 0 m0 m0.1.log', 'M 0 m1 m1.1.log',
                        'A 10000 5000', 'Z 20000 0']
        for session, log in ((A, 'm0.1.log'), (B, 'm1.1.log')):
            self.commit(100, session, Op('open'))
            self.say(log, 'H 50 1', *(f'U {t} {session:x} {t + 2500}' for t in range(100, 30000, 100)))
            self.say(log, 'T 200 0 1', 'T 300 1 2', 'T 400 2 0', 'T 500 0 1')
            self.say(log, 'P 19900 2 m0 m1', 'W 19900 2 m0 m1')
        self.commit(150, A, *(Op('create', path) for path in PERSISTENT))
        self.commit(160, A, Op('set', POOL, b'3'))
        self.add_items()
        self.add_notes()
        self.add_claims()
        self.add_services()

    def commit(self, time, session, *ops, cxid=7):
        self.txns.append(Txn(0, session, cxid, time + WALL, list(ops)))
        return self.txns[-1]

    def say(self, log, *lines):
        self.lines[log] += lines

    def hold(self, log, session, kind, thing, path, begin, end, slots='-', more=()):
        """Created, believed, and given up: in all three places. The token is put in later, when zxids are known."""
        name = len(self.txns)
        self.commit(begin - 10, session, Op('create', path, b'', True), *more)
        self.say(log, f'B {begin} {kind} {thing} {session:x} @{name} {slots}')
        self.say(log, f'E {end} {end + 1} {kind} {thing} @{name} released')
        self.commit(end + 10, session, Op('delete', path))

    def add_items(self):
        """Each item is first of the one member, then of the other, up to behind the quiet time."""
        for i, item in enumerate(ITEMS):
            one, other = (('m0.1.log', A), ('m1.1.log', B))[::1 if i % 2 else -1]
            path = f'{ROOT}/pool/locks/{item}'
            self.commit(170, A, Op('create', path))
            self.hold(*one, 'item', item, f'{path}/a__lock__{0:010d}', 1000, 3000)
            self.hold(*other, 'item', item, f'{path}/b__lock__{1:010d}', 3500, 25000)

    def add_notes(self):
        """The note of m1 says that an item is ready, and that of m0 that it was given: in the transaction in which the
        item's first place leaves."""
        for session, member in ((A, 'm0'), (B, 'm1')):
            self.commit(180, session, Op('create', f'{ROOT}/pool/notes/{member}', note(), True))
        self.ready = self.commit(2900, B, Op('set', f'{ROOT}/pool/notes/m1', note()))
        path = f'{ROOT}/pool/locks/i3/a__lock__{0:010d}'
        self.giving = next(t for t in self.txns for op in t.ops if (op.kind, op.path) == ('delete', path))
        self.giving.ops.append(Op('set', f'{ROOT}/pool/notes/m0', note()))

    def add_claims(self):
        for begin in (2000, 16000, 18000):
            for log, session, at in (('m0.1.log', A, begin), ('m1.1.log', B, begin + 500)):
                sequence = at // 100
                self.lead(log, session, at, f'{at:010d}')
                self.hold(log, session, 'lock', 'l0', f'{ROOT}/locks/l0/x__lock__{sequence:010d}', at, at + 300)
                self.hold(log, session, 'write', 'rw', f'{ROOT}/locks/rw/x__lock__{sequence:010d}', at, at + 300)
                self.hold(log, session, 'read', 'rw', f'{ROOT}/locks/rw/x__rlock__{sequence + 10:010d}', at + 1000,
                          at + 1200)
        for i, begin in enumerate((2000, 17000)):
            self.hold('m0.1.log', A, 'slots', 's0', f'{POOL}/x{i},n=0,c=2', begin, begin + 500, '0,1')
            self.hold('m1.1.log', B, 'slots', 's0', f'{POOL}/y{i},n=2,c=1', begin + 100, begin + 600, '2',
                      [] if i else [Op('set', POOL, b'3')])  # in the queue, and by the shortcut

    def lead(self, log, session, at, number):
        """A leadership. The other member is told of it, and at its end that nobody leads."""
        self.hold(log, session, 'leader', 'e0', f'{ROOT}/elections/e0/x,p=1__lock__{number}', at, at + 300)
        creation = self.txns[-2]
        creation.ops[0].data = log[:2].encode()
        other = {'m0.1.log': 'm1.1.log', 'm1.1.log': 'm0.1.log'}[log]
        self.say(other, f'K {at + 5} @{self.txns.index(creation)} {log[:2]}')
        if at < 18000:
            self.say(other, f'K {at + 320} 0 -')

    def add_services(self):
        for session, member in ((A, 'm0'), (B, 'm1')):
            self.commit(600, session, Op('create', f'{ROOT}/party/{member}', b'', True),
                        Op('create', f'{ROOT}/pool/party/{member}', b'', True))
            path = f'{ROOT}/services/worker/{member}'
            self.commit(700, session, Op('create', path, entry('w1' + member, member), True))
            self.commit(16000, session, Op('set', path, entry('w2' + member, member)))
        self.commit(800, A, Op('create', f'{ROOT}/services/master/master', entry('u1', 'm0'), True))
        self.commit(16000, A, Op('set', f'{ROOT}/services/master/master', entry('u2', 'm0')))
        self.say('m0.1.log', f'C 790 810 {A:x} 2000 master m0 u1', f'C 15990 16010 {A:x} 2000 master m0 u2')
        self.say('m1.1.log', 'R 1000 1010 2000 worker m0 w1m0', 'R 16500 16510 2000 worker m0 w2m0')

    def check(self):
        return self.run().found

    def judge(self):
        """The rules that are violated, and those where that is excused."""
        checker = self.run()
        return tuple({rule for rule, _ in found} for found in judge(checker.history, checker.found))

    def run(self):
        self.txns.sort(key=lambda t: t.time_ms)  # Stable, and so zxids are in the order of times.
        lines = copy.deepcopy(self.lines)
        for zxid, txn in enumerate(self.txns, 0x100000001):
            txn.zxid = zxid
        self.giving.ops[-1].data = note([f'{self.ready.zxid:x}', [3, self.given_number]])
        history = History()
        history.read_driver(self.driver)
        for log, said in lines.items():
            said = [self.with_token(line) + '\n' for line in said]
            history.read_member(log, said)
        history.read_server('server2', self.server)
        history.finish()
        checker = Checker(history, Truth(self.txns))
        checker.run()
        return checker

    def with_token(self, line):
        words = line.split()
        return ' '.join(str(self.zxid_of(int(w[1:]))) if w.startswith('@') else w for w in words)

    def zxid_of(self, name):
        return self.by_name[name].zxid

    def seal(self):
        """From now on transactions keep the names by which lines know them."""
        self.by_name = list(self.txns)
        return self


class Falsified(unittest.TestCase):
    def setUp(self):
        self.world = World().seal()

    def replace(self, log, old, new):
        lines = self.world.lines[log]
        at = [i for i, line in enumerate(lines) if line.startswith(old)]
        self.assertTrue(at, old)
        for i in at:
            lines[i] = lines[i].replace(old, new)

    def commits(self, kind, path):
        found = [t for t in self.world.txns for op in t.ops if op.kind == kind and op.path == path]
        self.assertTrue(found, path)
        return found

    def move(self, kind, path, time):
        self.commits(kind, path)[0].time_ms = time + WALL

    def expect(self, *rules):
        found = self.world.check()
        self.assertEqual({rule for rule, _ in found}, set(rules), found)

    # What has happened as it should is not reported.
    def test_sound(self):
        self.expect()

    # A second owner that begins before the first has ended.
    def test_overlapping_owners(self):
        path = f'{ROOT}/pool/locks/i1/b__lock__0000000001'
        self.commits('create', path)[0].time_ms = 2000 + WALL
        self.replace('m1.1.log', 'B 3500 item i1 ', 'B 2500 item i1 ')
        self.expect('S2', 'S1')

    # Two owners at once where the truth has only one after the other: a belief goes on behind its node's end.
    def test_belief_after_deletion(self):
        self.replace('m0.1.log', 'E 3000 3001 item i1 ', 'E 3100 3101 item i1 ')
        self.expect('S7')

    # A session that has expired while its member still believes.
    def test_belief_after_expiry(self):
        world = self.world
        self.replace('m0.1.log', 'E 3000 3001 item i1 ', 'E 3100 3101 item i1 ')
        deletion = self.commits('delete', f'{ROOT}/pool/locks/i1/a__lock__0000000000')[0]
        deletion.ops = []
        world.commit(3050, A, Op('close'), cxid=0)
        rules = {rule for rule, _ in world.check()}
        self.assertIn('S1', rules)
        self.assertNotIn('S7', rules)

    # Of a session that somebody ended by force nobody can know.
    def test_expired_by_force(self):
        self.test_belief_after_expiry()
        self.world.driver.insert(5, f'X 2990 {A:x}')
        self.assertNotIn('S1', {rule for rule, text in self.world.check() if 'i1' in text and 'm0.1.log' in text})

    # A belief without a node, and one by a node of another session.
    def test_no_node(self):
        name = next(line for line in self.world.lines['m0.1.log'] if line.startswith('B 2000 lock')).split()[5]
        for i, line in enumerate(self.world.lines['m0.1.log']):
            self.world.lines['m0.1.log'][i] = line.replace(name + ' ', '99 ')
        found = self.world.check()
        self.assertEqual([rule for rule, _ in found], ['S1', 'S3'][:len(found)], found)

    def test_node_of_another(self):
        self.replace('m0.1.log', f'B 2000 lock l0 {A:x}', f'B 2000 lock l0 {B:x}')
        self.expect('S5')

    # A token that is smaller than one before it.
    def test_token_goes_back(self):
        lines = self.world.lines['m1.1.log']
        first, last = [[i for i, line in enumerate(lines) if line.startswith(f'B {t} lock')][0] for t in (2500, 18500)]
        tokens = [lines[i].split()[5] for i in (first, last)]
        lines[first] = lines[first].replace(tokens[0], '0')
        lines[first + 1] = lines[first + 1].replace(tokens[0], '0')
        lines[last], lines[last + 1] = (lines[i].replace(tokens[1], tokens[0]) for i in (last, last + 1))
        self.assertIn('S3', {rule for rule, _ in self.world.check()})

    # An item that was released, and stays with its owner since nobody is ready, keeps its token (T3). A lock does not.
    def test_token_stays(self):
        for thing, rules in (('item i1', []), ('lock l0', ['S3'])):
            self.setUp()
            lines = self.world.lines['m0.1.log']
            end = next(i for i, line in enumerate(lines) if line.startswith('E') and f' {thing} ' in line)
            begin = lines[end - 1].split()
            begun, ended = int(begin[1]), int(lines[end].split()[1])
            half = (begun + ended) // 2
            lines[end:end] = [lines[end].replace(f'E {ended} {ended + 1}', f'E {half} {half + 1}'),
                              ' '.join([begin[0], str(half + 9), *begin[2:]])]
            self.assertEqual([rule for rule, _ in self.world.check()], rules)

    # A client believes that is not the first in the queue.
    def test_not_first(self):
        self.world.commit(1500, A, Op('create', f'{ROOT}/locks/l0/x__lock__0000000001', b'', True))
        self.expect('S1')

    # A writer beside a reader.
    def test_writer_and_reader(self):
        self.replace('m1.1.log', 'B 2500 write', 'B 3400 write')
        self.replace('m1.1.log', 'E 2800 2801 write', 'E 3600 3601 write')
        self.commits('delete', f'{ROOT}/locks/rw/x__lock__{25:010d}')[0].time_ms = 3700 + WALL
        self.assertIn('S2', {rule for rule, _ in self.world.check()})

    # One slot more than the limit; one slot twice.
    def test_over_the_limit(self):
        for txn, at in zip(self.commits('set', POOL), (0, 1)):
            txn.ops[at].data = b'2'
        self.expect('S9')

    # By the shortcut a lease may stand beside others for a moment, but not when it is believed in, and none that is not
    # counts.
    def test_shortcut(self):
        self.move('create', POOL + '/y1,n=2,c=1', 16000)
        self.world.commit(16000, A, Op('create', POOL + '/z,n=2,c=1', b'', True))
        self.world.commit(16050, A, Op('delete', POOL + '/z,n=2,c=1'))
        self.world.commit(15990, A, Op('set', POOL, b'3'), Op('create', POOL + '/w,n=2,c=1', b'', True))
        self.world.commit(17080, A, Op('delete', POOL + '/w,n=2,c=1'))
        self.expect()

    def test_shortcut_too_early(self):
        self.world.commit(15990, A, Op('set', POOL, b'3'), Op('create', POOL + '/w,n=2,c=1', b'', True))
        self.world.commit(17500, A, Op('delete', POOL + '/w,n=2,c=1'))
        self.expect('S9')

    def test_slot_twice(self):
        for txn, at in zip(self.commits('set', POOL), (0, 1)):
            txn.ops[at].data = b'4'
        self.replace('m1.1.log', 'B 2100 slots', 'B 2100 slots')
        for txn in self.commits('create', POOL + '/y0,n=2,c=1') + self.commits('delete', POOL + '/y0,n=2,c=1'):
            txn.ops[0].path = POOL + '/y0,n=1,c=1'
        lines = self.world.lines['m1.1.log']
        at = next(i for i, line in enumerate(lines) if line.startswith('B 2100 slots'))
        lines[at] = lines[at][:-1] + '1'
        self.expect('S9', 'S2')

    # Two holders of a unique role, by their claims and in the truth.
    def test_two_holders(self):
        self.world.say('m1.1.log', f'C 16400 16500 {B:x} 2000 master m1 u9')
        self.expect('V9')

    def test_displaced(self):
        path = f'{ROOT}/services/master/master'
        self.world.commit(16500, B, Op('delete', path), Op('create', path, entry('u9', 'm1'), True))
        self.expect('V9')

    # A lookup that returns what never stood, is too old, or has gone long ago.
    def test_lookups(self):
        for line in ('R 1000 1010 2000 worker m0 nothing', 'R 5000 5010 2000 worker m0 w1m0'):
            self.setUp()
            self.world.say('m1.1.log', line)
            self.expect('S10')

    def test_lookup_of_gone(self):
        for version in ('w1m0', 'w2m0'):
            for txn in self.world.txns:
                for op in txn.ops:
                    op.data = op.data.replace(f'{version}", "nonce": "m0", "ttl": 2'.encode(),
                                              f'{version}", "nonce": "m0", "ttl": 90'.encode())
        self.world.say('m1.1.log', 'R 27000 27010 90000 worker m0 w1m0')
        self.expect('S10')

    # A transition that is not in the table; what a member saw by itself.
    def test_states(self):
        self.world.say('m0.1.log', 'T 600 3 1')
        self.expect('S8')

    def test_seen_by_member(self):
        self.world.say('m0.1.log', 'V 600 S8 told twice')
        self.expect('S8')

    # A node of another session is deleted.
    def test_foreign_deletion(self):
        self.world.commit(16500, B, Op('delete', f'{ROOT}/party/m0'), Op('create', f'{ROOT}/party/m9', b'', True))
        self.expect('S11')

    # A call that does not end; one of a process that was stopped during the call.
    def test_calls(self):
        self.world.say('m0.1.log', 'L 1000 9000 lock 1500 -3')
        self.expect('L2')
        self.world.driver += ['S 2000 m0.1.log', 'G 8000 m0.1.log']
        self.assertNotIn('L2', {rule for rule, _ in self.world.check()})

    # Two lead at once, and one does whose place is not the first.
    def test_two_leaders(self):
        self.replace('m0.1.log', 'E 2300 2301 leader', 'E 2600 2601 leader')
        self.move('delete', f'{ROOT}/elections/e0/x,p=1__lock__{2000:010d}', 2700)
        self.expect('S1', 'S2', 'J3')

    # One is told of a leader that never stood, or did not stand yet, or under another name, or behind another.
    def test_told_of_nobody(self):
        self.world.say('m1.1.log', 'K 15000 77 m0')
        self.expect('J3')

    def test_told_too_early(self):
        self.replace('m1.1.log', 'K 2005', 'K 1980')
        self.expect('J3')

    def test_told_another_name(self):
        for old in ('K 2005', 'K 16005'):
            self.setUp()
            at = next(i for i, line in enumerate(self.world.lines['m1.1.log']) if line.startswith(old))
            self.world.lines['m1.1.log'][at] = self.world.lines['m1.1.log'][at].replace(' m0', ' m7')
            self.expect('J3')

    def test_told_of_the_second(self):
        self.world.commit(1500, A, Op('create', f'{ROOT}/elections/e0/z__lock__{1500:010d}', b'm0', True))
        self.world.commit(2100, A, Op('delete', f'{ROOT}/elections/e0/z__lock__{1500:010d}'))
        self.expect('J3', 'S1')

    # One is not told of later leaders, and one never leads.
    def test_not_told(self):
        self.world.lines['m1.1.log'] = [line for line in self.world.lines['m1.1.log']
                                        if not line.startswith(('K 16', 'K 18'))]
        self.expect('L1')

    def test_never_leads(self):
        lines = self.world.lines['m0.1.log']
        self.world.lines['m0.1.log'] = [line for line in lines if ' leader ' not in line or line[2] == '2']
        self.expect('L1')

    # An item without an owner at the end of a quiet time, and one that came too late.
    def test_without_owner(self):
        self.replace('m0.1.log', 'E 25000 25001 item i0', 'E 19000 19001 item i0')
        self.expect('L1')

    def test_owner_too_late(self):
        self.replace('m0.1.log', 'B 3500 item i0', 'B 16000 item i0')
        self.expect('L1')

    # Somebody who gets no lock; a view that has not all; a role without a holder.
    def test_no_progress(self):
        for log in self.world.lines:
            self.world.lines[log] = [line for line in self.world.lines[log] if ' slots ' not in line or '2' == line[2]]
        self.expect('L1')

    def test_view(self):
        self.replace('m0.1.log', 'W 19900 2 m0 m1', 'W 19900 1 m0')
        self.expect('L1')

    def test_no_holder(self):
        self.world.commit(19000, A, Op('delete', f'{ROOT}/services/master/master'))
        self.expect('L1')

    # A node that is left of a session that nobody has.
    def test_orphan(self):
        self.world.commit(5000, 0xc3, Op('create', f'{ROOT}/locks/l0/x__lock__0000000900', b'', True))
        self.expect('L3')

    # A process that was stopped believes up to its deadline, as nothing runs that could end its belief.
    def test_stopped(self):
        self.replace('m0.1.log', 'E 3000 3001 item i1 ', 'E 3000 9001 item i1 ')
        self.world.lines['m0.1.log'] = [line.replace(' released', ' lost') if ' i1 ' in line else line
                                        for line in self.world.lines['m0.1.log']]
        self.world.driver += ['S 3002 m0.1.log', 'G 9000 m0.1.log']
        self.assertIn('S2', {rule for rule, _ in self.world.check()})

    # A process that is killed as soon as a quiet time is over was there all the time.
    def test_killed_right_after(self):
        self.world.driver.append('K 20000 m0.1.log')
        self.expect()

    # A round without any belief of a kind passes no more than one that breaks a rule, but for one that its user ended.
    def test_no_ownership(self):
        for kind in ('item', 'lock', 'read', 'write', 'slots', 'leader'):
            self.setUp()
            for log, lines in self.world.lines.items():
                self.world.lines[log] = [line for line in lines if f' {kind} ' not in line]
            self.assertIn('VOID', {rule for rule, _ in self.world.check()}, kind)
            self.world.driver.append('I 30000')
            self.assertNotIn('VOID', {rule for rule, _ in self.world.check()}, kind)

    def test_nothing_at_all(self):
        for log in self.world.lines:
            self.world.lines[log] = []
        self.world.driver = [line for line in self.world.driver if line[0] not in 'AZ']
        self.expect('VOID')

    # Nor does one without a claim, or without a lookup.
    def test_no_answers(self):
        for kind in 'CR':
            self.setUp()
            for log, lines in self.world.lines.items():
                self.world.lines[log] = [line for line in lines if line[0] != kind]
            self.expect('VOID')

    # Nor one whose quiet times were all too short to tell, or had no end.
    def test_inconclusive(self):
        for old, new in (('Z 20000 0', 'Z 12000 0'), ('Z 20000 0', 'Z 20000 9000'), ('Z 20000 0', 'F 20000 + none 0')):
            self.setUp()
            self.world.driver = [line.replace(old, new) for line in self.world.driver]
            self.expect('VOID')

    # One that tells is enough.
    def test_one_inconclusive(self):
        self.world.driver += ['A 21000 5000', 'Z 22000 0']
        self.expect()

    # An item is said to be given whose place did not leave, or for a note that was never written, or before it was.
    def test_given(self):
        self.world.given_number = 7
        self.expect('T5')

    def test_given_for_no_note(self):
        self.world.ready.ops[0].path = f'{ROOT}/pool/elsewhere'
        self.expect('T5')

    def test_given_too_early(self):
        self.world.ready.time_ms = 3100 + WALL
        self.expect('T5')

    # A round in which nothing was handed over.
    def test_nothing_handed_over(self):
        self.world.giving.ops[-1].path = f'{ROOT}/pool/elsewhere'
        self.expect('VOID')

    # A server whose tree is not its leader's excuses that a member did not see who is before it; not that it believed
    # in a node that it had deleted. What a server has loaded after a full disk excuses nothing.
    def test_diverged_server(self):
        says = '19:08:16.859 [%s] WARN org.apache.zookeeper.server.DataTree - [9 times] Message: ' + \
               'Digests are not matching. Last value:25769803955'
        for thread, excused in (('CommitProcessor:2', True), ('main', False)):
            self.setUp()
            self.world.commit(1500, A, Op('create', f'{ROOT}/locks/l0/x__lock__0000000001', b'', True))
            self.replace('m0.1.log', 'E 3000 3001 item i1 ', 'E 3100 3101 item i1 ')
            self.world.server = [says % 'main', 'java.io.IOException: ', says % thread]
            self.assertEqual(self.world.judge(), ({"S7"}, {"S1"}) if excused else ({"S1", "S7"}, set()))

    # A process that ended by itself.
    def test_crash(self):
        self.world.driver.append('Y 30000 m0.1.log ended by signal 11')
        self.expect('END')


if __name__ == '__main__':
    unittest.main()
