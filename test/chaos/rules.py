"""The checkers of the chaos test: beliefs held against the truth, and against each other. SPDX-License-Identifier:
Apache-2.0

The rules are those that the simulator checks (test/sim/check_*.c, truth_*.c), by the names of the design: they stand
here once more, since there they look into the library's own objects after each step, while here all that is known are
the lines that processes wrote, and transaction logs. One difference is in favour of the library: a belief is what is
certain, so that it begins a little later and ends a little earlier than what the library may have meant.

Excused is only what no client can know of: a session that somebody has ended by force, from then on. What the machine
decides, and not the library, is allowed for:
- Times differ by the tolerance of the clocks, measured in each round, and 2 ms. The logs have the servers' wall clock,
  and members have CLOCK_BOOTTIME.
- L2 leaves CALL_SLACK_MS, and what the process was not run. S10 leaves REGISTRY_MS, and lets a lookup be as old as a
  follower may be, which serves reads.
- A quiet time is judged EDGE_MS before its end, as faults begin behind it. Who waits for a lock has PATIENCE_MS of it,
  and twice what the machine stood still. If it is shorter than its bound and that, it is inconclusive. At least one of
  a round must be conclusive, else the round is VOID.
- A process may end within 30 s of a limit on its memory: the native client's doing.

S1 own node there, first of its queue, session open   S2 no two believe   S3 tokens grow   S5 a node of another session
S7 deleted by ourselves while believed   S8 states   S9 the semaphore's limit   S10 the registry's answers
S11 foreign nodes are left alone   T5 what a note says was given left with it   V9 the unique role   J3 who leads
L1 the pool recovers   L2 waiting calls end   L3 no orphans   VOID the round shows nothing
"""

import json
import re
from bisect import bisect_left
from itertools import accumulate

from leaders import check_leaders, check_told

ROOT = '/chaos'
ITEMS = [f'i{i}' for i in range(12)]
SERVICES = ROOT + '/services'
POOL = ROOT + '/semaphores/s0'
SEQUENCE = re.compile(r'(__lock__|__rlock__)(\d{10})$')
NOTES = ROOT + '/pool/notes'
LEASE = re.compile(r'^[0-9A-Za-z]+,n=(\d+),c=(\d+)(?:,x=([0-9+.]+))?$')
DIRECTORIES = {'item': ROOT + '/pool/locks/', 'lock': ROOT + '/locks/', 'read': ROOT + '/locks/',
               'write': ROOT + '/locks/', 'leader': ROOT + '/elections/'}
EXCLUSIVE = ('item', 'lock', 'write', 'leader')
CALL_SLACK_MS = 2500  # L2's second, and what a loaded machine takes
REGISTRY_MS = 10  # how wrong the servers' time may be for a registry: 200 ppm of 30 s, and rounding
EDGE_MS = 100  # so long before its end a quiet time is looked at: behind it faults begin again
PATIENCE_MS = 2000  # what a waiting call was given before the faults ended, about
ALLOCATING, ACQUIRED, RELEASE, FAILURE = range(4)
LEGAL = {ALLOCATING: (ACQUIRED, RELEASE, FAILURE), ACQUIRED: (ALLOCATING, RELEASE, FAILURE),
         RELEASE: (ALLOCATING, RELEASE, FAILURE), FAILURE: ()}


def slots_of(name):
    """The slots of a lease, or None."""
    match = LEASE.match(name)
    if not match:
        return None
    first, count = int(match[1]), int(match[2])
    more = [(int(run.split('+')[0]), int(run.split('+')[1]) + 1) for run in (match[3] or '').split('.') if run]
    runs = [(first, count - sum(c for _, c in more))] + more
    return [slot for begin, length in runs for slot in range(begin, begin + length)]


def entry_of(version):
    try:
        entry = json.loads(version.data)
        return entry if isinstance(entry, dict) else {}
    except ValueError:
        return {}


def given_of(version):
    """Of a note: (zxid of the next owner's note, index of the item, number of the place) of all that was given."""
    return {(int(zxid, 16), *pair) for zxid, flat in entry_of(version).get('given', [])
            for pair in zip(flat[::2], flat[1::2])}


class Queue:
    """All nodes that ever were in a directory, for quick answers. Of one life of a directory, a smaller number in a
    queue is an earlier creation."""

    def __init__(self, nodes):
        self.by_token = {}
        for node in nodes:
            self.by_token.setdefault(node.czxid, []).append(node)
        contenders = [n for n in nodes if SEQUENCE.search(n.name)]
        self.lists = {True: contenders, False: [n for n in contenders if '__lock__' in n.name]}
        self.tokens = {kind: [n.czxid for n in of] for kind, of in self.lists.items()}
        self.latest = {kind: list(accumulate((self.end_of(n) for n in of), max)) for kind, of in self.lists.items()}

    @staticmethod
    def end_of(node):
        return float('inf') if node.end_ms is None else node.end_ms

    def before(self, node, time_ms, readers_too):
        """Those that were there before the node, and still were after a time, by the servers' clock."""
        of, latest = self.lists[readers_too], self.latest[readers_too]
        at = bisect_left(self.tokens[readers_too], node.czxid)
        while at > 0 and latest[at - 1] > time_ms:
            at -= 1
            if self.end_of(of[at]) > time_ms:
                yield of[at]


def is_kept(one, other):
    """T3: an item whose user released it while nobody was ready is told as lost, then gained, at the same place."""
    return one.kind == 'item' and (one.session, one.token) == (other.session, other.token)


def fits(path, leases, limit):
    """Whether the lease is within the limit, and in slots of its own, among `leases`, which has it."""
    own = leases[path][1]
    others = [slot for other, (_, slots, _) in leases.items() if other != path for slot in slots]
    return len(own) + len(others) <= limit and not set(own) & set(others) and max(own) < limit


class Checker:
    """Holds a History against a Truth; `found` has (rule, text) of each violation."""

    def __init__(self, history, truth):
        self.history, self.truth, self.found = history, truth, []
        self.offset, self.slack = history.offset(), history.tolerance()
        self.queues = {}
        self.recoveries, self.slow_calls, self.under_limit, self.inconclusive = [], 0, 0, 0
        self.handovers = 0

    def violate(self, rule, text):
        self.found.append((rule, text))

    def boot(self, wall_ms):
        """A transaction's time, in that of the members."""
        return wall_ms - self.offset

    def run(self):
        for log in self.history.logs.values():
            self.found += log.seen
            self.check_states(log)
            self.check_calls(log)
            self.check_lookups(log)
            check_leaders(self, log)
        for belief in self.history.beliefs:
            self.check_node(belief)
        self.check_alone()
        self.check_slots()
        self.check_admissions()
        self.check_unique()
        self.check_notes()
        self.check_foreign()
        self.check_ends()
        for quiet in self.history.quiets:
            if quiet.end is not None:
                self.check_quiet(quiet)
        if not self.history.interrupted:
            self.check_substance()

    # ---- VOID: a round that could not have failed proves nothing ----

    def check_substance(self):
        """Something of each kind was owned for certain, and a quiet time was long enough to tell."""
        kinds = {belief.kind for belief in self.history.beliefs if belief.is_certain}
        for kind in ('item', 'lock', 'read', 'write', 'slots', 'leader'):
            if kind not in kinds:
                self.violate('VOID', f'nobody was certain of any {kind}, all the round')
        logs = self.history.logs.values()
        if not any(claim.end > claim.told for log in logs for claim in log.claims):
            self.violate('VOID', 'nobody was certain of the unique role, all the round')
        if not any(log.lookups for log in logs):
            self.violate('VOID', 'nobody was given an entry of the registry, all the round')
        if not self.handovers:
            self.violate('VOID', 'no item was handed over, all the round')
        if not self.recoveries:
            self.violate('VOID', f'no quiet time was conclusive; {self.inconclusive} were too short for what the '
                                 f'machine stood still, of {len(self.history.quiets)}')

    # ---- S1, S5, S7: one belief and its node ----

    def directory(self, belief):
        return POOL if belief.kind == 'slots' else DIRECTORIES[belief.kind] + belief.thing

    def check_node(self, belief):
        nodes = self.queue(self.directory(belief)).by_token.get(belief.token, [])
        own = [n for n in nodes if n.owner == belief.session]
        if not own:
            if nodes:
                self.violate('S5', f'{belief}; the node is of session {nodes[0].owner:#x}')
            else:
                self.violate('S1', f'{belief}; there was no such node')
            return
        node = own[0]
        self.check_end(belief, node)
        if belief.kind != 'slots' and belief.is_certain:
            self.check_first(belief, node)
        if belief.kind == 'slots' and list(belief.slots) != slots_of(node.name):
            self.violate('S9', f'{belief}; it says slots {belief.slots}, and its node is {node.path}')

    def check_end(self, belief, node):
        if node.end_ms is None or not belief.is_certain:
            return
        over = self.boot(node.end_ms)
        if belief.end <= over + self.slack or self.history.is_excused(belief.session, over + self.slack):
            return
        rule = 'S1' if node.end_kind == 'expired' or node.ended_by != node.owner else 'S7'
        self.violate(rule, f'{belief}; its node {node.path} was {node.end_kind} at {over}, zxid {node.end_zxid:#x}, '
                           f'{belief.end - over} ms before')

    def check_first(self, belief, node):
        own = SEQUENCE.search(node.name)
        if not own:
            self.violate('S1', f'{belief}; {node.path} is in no queue')
            return
        queue = self.queue(self.directory(belief))
        since = belief.start + self.slack + self.offset
        for other in queue.before(node, since, belief.kind == 'write'):
            if int(SEQUENCE.search(other.name)[2]) < int(own[2]):
                self.violate('S1', f'{belief}; {other.path} stands before its node, until '
                                   f'{other.end_ms and self.boot(other.end_ms)}')

    def queue(self, directory):
        if directory not in self.queues:
            self.queues[directory] = Queue(self.truth.children(directory))
        return self.queues[directory]

    # ---- S2, S3 ----

    def excuses_overlap(self, one, other):
        begin = max(one.start, other.start)
        return any(self.history.is_excused(b.session, begin) for b in (one, other))

    def check_sequence(self, beliefs, what):
        """No two exclusive beliefs overlap, and their tokens grow. In the order of their beginnings, the one that
        reaches furthest is compared with each next one."""
        furthest, greatest = None, None
        for belief in sorted((b for b in beliefs if b.is_certain), key=lambda b: b.start):
            if furthest and belief.start < furthest.end and not self.excuses_overlap(furthest, belief):
                self.violate('S2', f'two believed in {what} for {min(furthest.end, belief.end) - belief.start} ms: '
                                   f'{furthest}; {belief}')
            if not furthest or belief.end > furthest.end:
                furthest = belief
            if self.history.is_excused(belief.session, belief.start):
                continue
            if greatest and belief.token <= greatest.token and not is_kept(greatest, belief):
                self.violate('S3', f'a token of {what} went back: {greatest}; {belief}')
            if not greatest or belief.token > greatest.token:
                greatest = belief

    def check_alone(self):
        groups, readers = {}, {}
        for belief in self.history.beliefs:
            if belief.kind in EXCLUSIVE:
                groups.setdefault((belief.kind, belief.thing), []).append(belief)
            elif belief.kind == 'read':
                readers.setdefault(belief.thing, []).append(belief)
        for (kind, thing), beliefs in groups.items():
            self.check_sequence(beliefs, f'{kind} {thing}')
            if kind == 'write':
                self.check_readers([b for b in beliefs if b.is_certain],
                                   [b for b in readers.get(thing, []) if b.is_certain])

    def check_readers(self, writers, readers):
        writers.sort(key=lambda b: b.start)
        readers.sort(key=lambda b: b.start)
        first = 0
        for reader in readers:
            while first < len(writers) and writers[first].end <= reader.start:
                first += 1
            for writer in writers[first:]:
                if writer.start >= reader.end:
                    break
                if not self.excuses_overlap(reader, writer) and writer.end > reader.start:
                    self.violate('S2', f'a reader and a writer: {reader}; {writer}')

    # ---- S9 ----

    def check_slots(self):
        slots = {}
        for belief in self.history.beliefs:
            for slot in belief.slots:
                slots.setdefault(slot, []).append(belief)
        for slot, beliefs in slots.items():
            self.check_sequence(beliefs, f'slot {slot}')

    def check_admissions(self):
        """Each lease: within the limit in force and in free slots, at its zxid. One by the shortcut (E14), whose
        transaction does not set the pool, is so at some zxid before it is believed in, and counts from there."""
        taken, tried, limit = {}, {}, 0
        believed = {belief.token: belief for belief in self.history.beliefs if belief.slots and belief.is_certain}
        for txn in self.truth.txns:
            in_queue = any(op.path == POOL and op.kind == 'set' for op in txn.ops)
            for op in txn.ops:
                if op.path == POOL and op.kind in ('create', 'set') and op.data.isdigit():
                    limit = int(op.data)
                slots = slots_of(op.path[len(POOL) + 1:]) if op.path and op.path.startswith(POOL + '/') else None
                if op.kind == 'create' and slots and in_queue:
                    taken[op.path] = (txn.session, slots, None)
                    if not fits(op.path, taken, limit):
                        self.violate('S9', f'{op.path} was admitted at zxid {txn.zxid:#x} beside {list(taken)}, '
                                           f'limit {limit}')
                elif op.kind == 'create' and slots and txn.zxid in believed:
                    tried[op.path] = (txn.session, slots, believed[txn.zxid])
                elif op.kind == 'close' or (op.kind == 'delete' and slots):
                    for path in [path for path, (session, *_) in {**taken, **tried}.items()
                                 if path == op.path or (op.kind == 'close' and session == txn.session)]:
                        taken.pop(path, None)
                        if path in tried:
                            self.violate('S9', f'there was never room for {path}: {tried.pop(path)[2]}')
            for path in [path for path in tried if fits(path, {**taken, path: tried[path]}, limit)]:
                taken[path] = tried.pop(path)
                if self.boot(txn.time_ms) - self.slack > taken[path][2].start:
                    self.violate('S9', f'there was no room for {path} before zxid {txn.zxid:#x}: {taken[path][2]}')

    # ---- T5: notes ----

    def check_notes(self):
        """What a note newly says was given left its queue in the same transaction, and the next owner's note
        stood before. A note that is made again repeats what was given before."""
        notes = self.truth.children(NOTES)
        txns = {txn.zxid: txn for txn in self.truth.txns}
        written = {version.zxid for node in notes for version in node.versions}
        for node in notes:
            known = given_of(node.versions[0])
            for version in node.versions[1:]:
                fresh = given_of(version) - known
                known |= fresh
                left = [int(SEQUENCE.search(op.path)[2]) for op in txns[version.zxid].ops
                        if op.kind == 'delete' and SEQUENCE.search(op.path)]
                self.handovers += len(fresh)
                for ready_zxid, index, number in fresh:
                    if number not in left or ready_zxid not in written or ready_zxid >= version.zxid:
                        self.violate('T5', f'{node.path} says at zxid {version.zxid:#x} that it gave item {index} with '
                                           f'number {number} for the note of {ready_zxid:#x}; {left} left')

    # ---- V9: the unique role ----

    def check_unique(self):
        claims = sorted((c for log in self.history.logs.values() for c in log.claims if c.end > c.told),
                        key=lambda c: c.told)
        furthest = None
        for claim in claims:
            if furthest and claim.nonce != furthest.nonce and claim.told < furthest.end:
                if not any(self.history.is_excused(c.session, claim.told) for c in (claim, furthest)):
                    self.violate('V9', f'two hold {claim.role}: {furthest.log} from {furthest.told} to {furthest.end}, '
                                       f'and {claim.log} from {claim.told}')
            if not furthest or claim.end > furthest.end:
                furthest = claim
        self.check_takeovers()

    def check_takeovers(self):
        """A holder whose session lives and whose ttl has not passed is never displaced, in the truth."""
        nodes = [n for n in self.truth.children(SERVICES + '/master') if n.name == 'master']
        for node, successor in zip(nodes, nodes[1:]):
            old, new = entry_of(node.versions[-1]), entry_of(successor.versions[0])
            displaced = node.end_kind == 'deleted' and node.end_zxid == successor.czxid
            if not displaced or old.get('nonce') == new.get('nonce'):
                continue
            age = successor.created_ms - node.versions[-1].time_ms
            if age < old.get('ttl', 0) * 1000:
                self.violate('V9', f'{new.get("nonce")} displaced {old.get("nonce")} at zxid {successor.czxid:#x}, '
                                   f'{age} ms after its heartbeat')
        for node in nodes:
            if len({entry_of(v).get('nonce') for v in node.versions}) > 1:
                self.violate('V9', f'the node of {node.czxid:#x} was written by two')

    # ---- S10 ----

    def check_lookups(self, log):
        stale_ms = self.history.sync_ticks * self.history.tick_ms + self.history.session_ms + 1000
        for asked, _told, ttl, role, service, attempt in log.lookups:
            version = self.attempts().get((role, service, attempt))
            if not version:
                self.violate('S10', f'{log.name} at {asked} was given an entry of {role}/{service} that never stood')
                continue
            age = asked - self.boot(version.time_ms)
            if age - REGISTRY_MS - self.slack >= ttl:
                self.violate('S10', f'{log.name} at {asked} was given {role}/{service}, '
                                    f'which was {age} ms old of {ttl}')
            if version.until_ms is not None and asked - self.boot(version.until_ms) > stale_ms:
                self.violate('S10', f'{log.name} at {asked} was given {role}/{service}, which had gone at '
                                    f'{self.boot(version.until_ms)}')

    def attempts(self):
        if not hasattr(self, 'known_attempts'):
            self.known_attempts = {}
            for node in self.truth.nodes:
                parts = node.path.split('/')
                if not node.path.startswith(SERVICES + '/') or len(parts) != 5:
                    continue
                for version in node.versions:
                    self.known_attempts[parts[3], parts[4], entry_of(version).get('attempt')] = version
        return self.known_attempts

    # ---- S8, S11, L2 ----

    def check_states(self, log):
        for time, before, after in log.states:
            if after not in LEGAL[before]:
                self.violate('S8', f'{log.name} at {time}: {before} -> {after} is not in the table')

    def check_calls(self, log):
        for asked, told, what, timeout, _result in log.calls:
            stopped = sum(max(0, min(told, end) - max(asked, begin)) for begin, end in log.stops + log.stalls)
            self.slow_calls += 1
            if told - asked - stopped > timeout + CALL_SLACK_MS:
                self.violate('L2', f'{log.name}: {what} at {asked}, given {timeout} ms, took {told - asked} ms')

    def check_foreign(self):
        """Allowed are empty lock directories; what a newer plan has replaced; a probe for the servers' time, which the
        same transaction made; and an entry that the same transaction made again: of a session of before, or one whose
        ttl has passed."""
        for txn, node in self.truth.foreign:
            afresh = any(op.kind == 'create' and op.path == node.path for op in txn.ops)
            if node.owner == 0:
                directory = node.path.startswith(ROOT + '/pool/locks/') and node.path.count('/') == 4
                allowed = directory or node.path.startswith(ROOT + '/pool/plan/') or afresh
            else:
                allowed = node.path.startswith(SERVICES + '/') and afresh
            if not allowed:
                self.violate('S11', f'session {txn.session:#x} deleted {node.path} of session {node.owner:#x}')

    def check_ends(self):
        """Processes that ended by themselves. What a native client does without memory is not ours to say."""
        limited = {}
        for time, edge, kind, target in self.history.faults:
            if kind == 'member_memory_limit':
                limited.setdefault(f'm{target}', []).append(time)
        for time, log, text in self.history.unexpected:
            if any(0 <= time - begin <= 30000 for begin in limited.get(log.split('.')[0], [])):
                self.under_limit += 1
            else:
                self.violate('END', f'at {time}: {text}')

    # ---- L1, L3 ----

    def check_quiet(self, quiet):
        allowed = quiet.bound + 2 * quiet.stall
        logs = [log for log in self.history.logs.values() if log.lives_at(quiet.end - EDGE_MS)]
        if quiet.end - quiet.begin < allowed + 1000:
            self.inconclusive += 1
            return
        begun = max((log.begun for log in logs), default=quiet.begin)
        since = max(quiet.begin, begun)
        worst = max((self.well_since(item, quiet) - since for item in ITEMS), default=0)
        self.recoveries.append(worst)
        for item in ITEMS:
            took = self.well_since(item, quiet) - since
            if took > allowed:
                self.violate('L1', f'{item} had not one owner all the time '
                                   f'from {since} + {allowed} to {quiet.end}, but '
                                   f'from {took} ms on')
        for log in logs:
            self.check_progress(log, since + PATIENCE_MS, quiet.end)
            check_told(self, log, quiet.end, PATIENCE_MS + 2 * quiet.stall)
        self.check_nodes(quiet, logs)

    def well_since(self, item, quiet):
        """From when on one and the same believer has the item until the end of the quiet time."""
        moment = quiet.end - EDGE_MS
        owners = [b for b in self.items()[item] if b.start <= moment < b.end]
        return max(quiet.begin, owners[0].start) if owners else quiet.end + 1

    def items(self):
        if not hasattr(self, 'item_beliefs'):
            self.item_beliefs = {item: [] for item in ITEMS}
            for belief in self.history.beliefs:
                if belief.kind == 'item':
                    self.item_beliefs[belief.thing].append(belief)
        return self.item_beliefs

    def check_progress(self, log, begin, end):
        for kinds, what in ((('lock',), 'a lock'), (('read', 'write'), 'a shared lock'), (('slots',), 'slots'),
                            (('leader',), 'its turn to lead')):
            if not any(b.kind in kinds and b.start <= end and b.end >= begin for b in log.beliefs):
                self.violate('L1', f'{log.name} has not had {what} from {begin} to {end}')

    def nodes_at(self, path, time):
        return [n for n in self.truth.children(path)
                if self.boot(n.created_ms) <= time and (n.end_ms is None or self.boot(n.end_ms) > time)]

    def check_nodes(self, quiet, logs):
        """What stands near the end of a quiet time is of the sessions of those that are there."""
        time = quiet.end - EDGE_MS
        sessions = {log.session_at(time) for log in logs}
        members = sorted(log.member for log in logs)
        for item in ITEMS:
            nodes = self.nodes_at(f'{ROOT}/pool/locks/{item}', time)
            if len(nodes) != 1:
                self.violate('L3', f'{item} has {len(nodes)} nodes at {time}: {[n.name for n in nodes]}')
        for path in [ROOT + '/party', ROOT + '/pool/party', SERVICES + '/worker']:
            nodes = self.nodes_at(path, time)
            if len(nodes) != len(members):
                self.violate('L3', f'{path} has {len(nodes)} nodes at {time}, and {len(members)} members are there')
        if len(self.nodes_at(SERVICES + '/master', time)) != 1:
            self.violate('L1', f'nobody holds the unique role at {time}')
        for node in self.truth.nodes:
            if node.owner and node.owner not in sessions and self.boot(node.created_ms) <= time and (
                    node.end_ms is None or self.boot(node.end_ms) > time):
                self.violate('L3', f'{node.path} is left at {time} of session {node.owner:#x}')
        for log in logs:
            for seen, what in ((log.views, 'view of the registry'), (log.parties, 'party')):
                last = [names for at, names in seen if at <= quiet.end][-1:]
                if last != [members]:
                    self.violate('L1', f'the {what} of {log.name} has {last} at {quiet.end}, and there are {members}')
