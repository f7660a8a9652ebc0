"""Pools that C and Python share: processes, what they say, and what ZooKeeper says. SPDX-License-Identifier: Apache-2.0

A member prints JSON lines; one thread reads them all. Each line was written between two moments that are known for
sure: when its pipe was last seen empty, and when it was read (kazoo_member.py says the exact time instead). So an
overlap that is reported has happened, however slow the machine is, and one longer than a scan of the pipes, about a
millisecond, cannot hide.
"""
import collections
import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
import zlib

import kazoo
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError
from kazoo.recipe.partitioner import SetPartitioner

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
SESSION_TIMEOUT_S = 6.0
BOUNDARY_S = 0.5
DEADLINE_S = 60.0
CONTENDER = re.compile(r"__lock__(-?\d{10})$")  # kazoo's own expression


class Failure(AssertionError):
    """A claim does not hold."""


def check(holds, message, *arguments):
    if not holds:
        raise Failure(message % arguments if arguments else message)


# test/matrix/run tells which kazoo it has chosen.
check(os.environ.get("DIVVY_TEST_KAZOO", kazoo.__version__) == kazoo.__version__, "kazoo is %s", kazoo.__version__)


# ---- claims: who says that it works on what, and when ----

Claim = collections.namedtuple("Claim", "item member begin end token")  # begin, end: (earliest, latest)


class Claims:
    """All claims of a pool, in the order in which they were read."""

    def __init__(self):
        self.open = {}  # (item, member) -> Claim
        self.closed = []

    def begin(self, item, member, when, token):
        check((item, member) not in self.open, "%s gained %s twice without losing it", member, item)
        self.open[item, member] = Claim(item, member, when, None, token)

    def end(self, item, member, when):
        claim = self.open.pop((item, member), None)
        if claim:
            self.closed.append(claim._replace(end=when))

    def of_items(self):
        """Each item's claims, by beginning; those that still last end now."""
        now = time.monotonic()
        items = collections.defaultdict(list)
        for claim in self.closed + [claim._replace(end=(now, now)) for claim in self.open.values()]:
            items[claim.item].append(claim)
        for claims in items.values():
            claims.sort(key=lambda claim: claim.begin)
        return items

    def check_exclusive(self):
        """No item was ever claimed by two members at once, and tokens grow from one owner to the next."""
        for item, claims in self.of_items().items():
            for i, one in enumerate(claims):
                for other in claims[i + 1:]:
                    if other.begin[0] >= one.end[0]:
                        break
                    both = min(one.end[0], other.end[0]) - max(one.begin[1], other.begin[1])
                    check(both <= 0 or other.member is one.member,
                          "%s was claimed by both %s and %s, for at least %.4f s", item, one.member, other.member, both)
            for one, other in zip(claims, claims[1:]):
                if one.token and other.token and one.member is not other.member and one.begin[1] < other.begin[0]:
                    check(one.token < other.token, "%s: token %d of %s is followed by %d of %s", item, one.token,
                          one.member, other.token, other.member)

    def unowned_s(self, items, since, until):
        """For each item the longest time within [since, until] in which nobody claimed it."""
        claims, longest = self.of_items(), {}
        for item in items:
            longest[item], free_from = 0.0, since
            for claim in claims[item]:
                longest[item] = max(longest[item], min(claim.begin[1], until) - free_from)
                free_from = max(free_from, min(claim.end[1], until))
            longest[item] = max(longest[item], until - free_from)
        return longest


# ---- reading the pipes ----

class Reader:
    """Reads all members' pipes in one thread, and tells each member its lines with their (earliest, latest) time."""

    def __init__(self):
        self.condition = threading.Condition()
        self.members = {}  # fd -> member
        self.poll = select.epoll()
        threading.Thread(target=self._run, daemon=True).start()

    def add(self, member):
        fd = member.process.stdout.fileno()
        os.set_blocking(fd, False)
        with self.condition:
            self.members[fd] = member
            member.empty_at = time.monotonic()
            self.poll.register(fd, select.EPOLLIN)

    def wait(self, met, timeout_s):
        """Wait until met() is true; it runs between lines. Returns whether it is."""
        with self.condition:
            return self.condition.wait_for(met, timeout_s)

    def _run(self):
        while True:
            self.poll.poll(0.1)
            with self.condition:
                for fd, member in list(self.members.items()):
                    if not self._drain(fd, member):
                        self.poll.unregister(fd)
                        del self.members[fd]
                self.condition.notify_all()

    @staticmethod
    def _drain(fd, member):
        while True:
            before = time.monotonic()
            try:
                data = os.read(fd, 65536)
            except BlockingIOError:
                member.empty_at = before
                return True
            now = time.monotonic()
            if not data:
                member.hear_end(now)
                return False
            member.hear(data, now)


# ---- members ----

class Member:
    """A process that takes part in a pool."""

    def __init__(self, pool, kind, identifier, arguments):
        self.pool, self.kind, self.identifier = pool, kind, identifier
        self.state, self.owned, self.tokens, self.history = "STARTING", set(), {}, []
        self.leaving, self.coming = set(), set()  # items that are handed over, by us and to us
        self.commands = []  # what became of them: (word, item)
        self.ended = False
        self.empty_at = 0.0
        self.partial = b""
        self.trouble = None
        self.killed_at = None
        self.errors = tempfile.TemporaryFile()
        # Whatever ends this test ends its members. The main thread starts them, and it lives as long as the process.
        self.process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "--"] + arguments, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=self.errors)
        pool.reader.add(self)

    def __repr__(self):
        return "%s %s (pid %d)" % (self.kind, self.identifier, self.process.pid)

    def hear(self, data, now):
        lines = (self.partial + data).split(b"\n")
        self.partial = lines.pop()
        for line in lines:
            try:
                self._take(json.loads(line), now)
            except (ValueError, KeyError, TypeError, Failure) as error:
                self.trouble = self.trouble or "%r: %r" % (error, line)

    def _take(self, line, now):
        if "t" in line:
            when = (line["t"], line["t"])
        else:
            when = (self.empty_at, now)
        self.pool.heard += 1
        if line["event"] == "child":
            self.commands.append((line["child"], line["item"]))
            return
        self._take_handovers(line)
        self.history += [word for word in ("revoked", "lost", "gained") if line[word]]
        if line["event"] == "state":
            self.history.append(line["state"])
        self.state = line["state"]
        self.tokens = {item: int(token) for item, token in line["tokens"].items()}
        for item in line["revoked"] + line["lost"]:
            self.owned.discard(item)
            self.pool.claims.end(item, self, when)
        for item in line["gained"]:
            self.owned.add(item)
            self.pool.claims.begin(item, self, when, self.tokens.get(item))
        check(self.owned == set(line["owned"]), "owned and the changes before it differ: %s", sorted(self.owned))

    def _take_handovers(self, line):
        gone = set(line["revoked"] + line["lost"])
        self.leaving = (self.leaving - gone - set(line.get("staying", []))) | set(line.get("leaving", []))
        self.coming = (self.coming - gone - set(line["gained"])) | set(line.get("prepare", []))

    def hear_end(self, now):
        self.ended = True
        self.leaving, self.coming = set(), set()
        for item in sorted(self.owned):
            self.pool.claims.end(item, self, (self.killed_at or self.empty_at, now))
        self.owned = set()

    def warnings(self):
        # Not by seek(): the file's place is the member's as well, and it is where the member goes on writing.
        return os.pread(self.errors.fileno(), 1 << 20, 0).decode("utf-8", "replace")

    def ask_to_leave(self):
        self.process.terminate()

    def kill(self):
        """kill -9: its session stays for a while and with it all its nodes."""
        self.killed_at = time.monotonic()
        self.process.kill()
        self.reap(-9)

    def freeze(self, seconds):
        """Stop the process for so long. Not for longer than the session clock leaves it: what it owns stays its own."""
        self.process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        self.process.send_signal(signal.SIGCONT)

    def reap(self, expected_status):
        status = self.process.wait(DEADLINE_S)
        # Python needs a while before it can catch a signal; until then it has not touched the pool.
        early = status == -signal.SIGTERM and not self.history
        check(early or status == expected_status, "%s ended with status %d:\n%s", self, status, self.warnings())
        check(self.pool.reader.wait(lambda: self.ended, DEADLINE_S), "%s: its output has no end", self)

    def destroy(self):
        self.process.kill()
        self.process.wait()
        self.pool.reader.wait(lambda: self.ended, 10)
        self.process.stdout.close()
        self.errors.close()


# ---- pools ----

class World:
    """A server of its own, a client that looks at it, and the reader of all pipes."""

    def __init__(self, build):
        self.build = build
        self.reader = Reader()
        self.pools = []
        self.server = os.path.join(SOURCE, "tools", "zookeeper-local")
        started = subprocess.run([self.server, "start", "--parent", str(os.getpid()), "--timeout", "60"], check=True,
                                 stdout=subprocess.PIPE, text=True)
        values = dict(line.split("=", 1) for line in started.stdout.splitlines())
        self.hosts, self.server_dir = values["DIVVY_CONNECT"], values["ZOOKEEPER_LOCAL_DIR"]
        os.environ["DIVVY_ENSEMBLE_TICK_MS"] = values["DIVVY_ENSEMBLE_TICK_MS"]  # for all that is run
        self.client = KazooClient(self.hosts, timeout=30)
        self.client.start(60)

    def command(self):
        for place in ("tools/divvy/divvy", "tools/divvy", "divvy"):
            path = os.path.join(self.build, place)
            if os.path.isfile(path) and os.access(path, os.X_OK):
                return path
        raise Failure("there is no command divvy below %s" % self.build)

    def pool(self, path, items):
        self.pools.append(Pool(self, path, items))
        return self.pools[-1]

    def close(self):
        for pool in self.pools:
            pool.close()
        self.client.stop()
        self.client.close()
        subprocess.run([self.server, "stop", self.server_dir], check=False)


class Pool:
    """The members at one path, and checks of them."""

    def __init__(self, world, path, items):
        self.world, self.path = world, path
        self.client, self.reader = world.client, world.reader
        self.claims = Claims()
        self.heard = 0  # lines
        self.members = []  # those that take part
        self.all = []
        self.items_file = tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".items")
        self.write_items(items)

    def write_items(self, items):
        """For members that read the file from now on, and for what is checked."""
        self.items = list(items)
        self.items_file.seek(0)
        self.items_file.truncate()
        self.items_file.write("".join(item + "\n" for item in self.items))
        self.items_file.flush()

    def _add(self, kind, identifier, arguments):
        member = Member(self, kind, identifier, arguments)
        self.members.append(member)
        self.all.append(member)
        return member

    def kazoo(self, identifier, *options):
        return self._add("kazoo", identifier, [
            "/usr/bin/python3", os.path.join(HERE, "kazoo_member.py"), self.world.hosts, self.path,
            self.items_file.name, identifier, str(BOUNDARY_S), str(SESSION_TIMEOUT_S), *options])

    def divvy(self, identifier, *options):
        return self._add("divvy", identifier, [
            self.world.command(), "partition", "--connect", self.world.hosts, "--path", self.path, "--items-from",
            self.items_file.name, "--identifier", identifier, "--time-boundary", "%dms" % (BOUNDARY_S * 1000),
            "--session-timeout", "%dms" % (SESSION_TIMEOUT_S * 1000), "--json", *options])

    def start(self, kind, identifier, *options):
        return (self.kazoo if kind == "kazoo" else self.divvy)(identifier, *options)

    def leave(self, *members):
        """All of them at once, cleanly."""
        for member in members:
            self.members.remove(member)
            member.ask_to_leave()
        for member in members:
            member.reap(0)

    def kill(self, *members):
        for member in members:
            self.members.remove(member)
            member.kill()

    def close(self):
        for member in self.all:
            member.destroy()
        self.items_file.close()

    # -- what should be --

    def kazoo_split(self, extra=()):
        """What kazoo's own function gives each member; `extra` are identifiers of members without a process."""
        identifiers = [member.identifier for member in self.members] + list(extra)
        # pylint: disable=protected-access
        return {member: set(SetPartitioner._partitioner(None, member.identifier, identifiers, self.items))
                for member in self.members}

    # -- what is --

    def settle(self, expected, acquired=None):
        """Wait until each member owns what is expected of it, and check that ZooKeeper says the same.

        acquired: the members that are to be in ACQUIRED, by default all; others may wait for items.
        """
        acquired = self.members if acquired is None else acquired
        self._settle(lambda: all(member.owned == expected[member] for member in self.members)
                     and all(member.state == "ACQUIRED" for member in acquired), expected,
                     alone=acquired == self.members)

    def settle_owned(self, fits=lambda: True):
        """The same where the split is not known: all are acquired and own each item once between them, and it fits."""
        self._settle(lambda: all(member.state == "ACQUIRED" for member in self.members) and fits()
                     and sorted(item for member in self.members for item in member.owned) == sorted(self.items), {})

    def _settle(self, settled, expected, alone=True):
        deadline = time.monotonic() + DEADLINE_S
        while True:
            met = self.reader.wait(lambda: self.has_trouble() or settled(), deadline - time.monotonic())
            self.check_no_trouble()
            check(met, "not settled after %d s\n%s", DEADLINE_S, self.describe(expected))
            heard = self.heard
            try:
                self.check_locks({member: set(member.owned) for member in self.members}, alone)
                return
            except Failure:
                # If what had been settled already is given up in this moment, for a change that is still on its way to
                # the members, then they have said so before they gave back a lock. Else it is a fault.
                if not self.reader.wait(lambda: self.heard > heard, 2):
                    raise

    def has_trouble(self):
        return any(member.trouble for member in self.all) or any(member.ended for member in self.members)

    def check_no_trouble(self):
        for member in self.all:
            check(not member.trouble, "%s: %s", member, member.trouble)
        for member in self.members:
            check(not member.ended, "%s has ended by itself:\n%s", member, member.warnings())
        with self.reader.condition:
            self.claims.check_exclusive()

    def lock_nodes(self, item, kind="divvy"):
        """(name, data, stat) of each contender of an item, as kazoo orders them. kazoo writes names raw."""
        directory = "%s/locks/%s" % (self.path, item if kind == "kazoo" else item.replace("/", "%2F"))
        nodes = []
        for name in sorted(self.client.get_children(directory),
                           key=lambda name: CONTENDER.search(name).groups() if CONTENDER.search(name) else ()):
            if not CONTENDER.search(name):
                continue
            try:
                data, stat = self.client.get(directory + "/" + name)
                nodes.append((name, data, stat))
            except NoNodeError:
                pass
        return nodes

    def sessions(self):
        """The sessions in the party by kind and identifier of their members."""
        sessions = collections.defaultdict(list)
        for name in self.client.get_children(self.path + "/party"):
            kind = "divvy" if "," in name.split("-")[0] else "kazoo"
            stat = self.client.exists(self.path + "/party/" + name)
            if stat:
                sessions[kind, name[name.find("-") + 1:]].append(stat.ephemeralOwner)
        return sessions

    def check_locks(self, expected, alone):
        """Each item's lowest contender is its owner's, has the token that the owner was told, and is the only one.

        alone: False where others may wait behind it.
        """
        sessions = self.sessions()
        for member, items in expected.items():
            own = sessions[member.kind, member.identifier]
            check(own, "%s is not in the party: %s", member, sorted(sessions))
            for item in items:
                nodes = self.lock_nodes(item, member.kind)
                owners = [node[2].ephemeralOwner for node in nodes]
                check(owners and owners[0] in own and (len(owners) == 1 or not alone),
                      "%s is owned by %s of session %s, but its contenders are of %s", item, member, own, owners)
                if member.kind == "divvy":
                    check(member.tokens.get(item) == nodes[0][2].czxid, "%s: %s was told the token %s, it is %d", item,
                          member, member.tokens.get(item), nodes[0][2].czxid)

    def describe(self, expected):
        lines = []
        for member in self.members:
            wanted = expected.get(member)
            missing = sorted(wanted - member.owned) if wanted is not None else "?"
            extra = sorted(member.owned - wanted) if wanted is not None else "?"
            lines.append("  %s: %s owns %d, missing %s, too many %s\n    last %s\n    %s" % (
                member, member.state, len(member.owned), missing, extra, member.history[-6:],
                member.warnings()[-2000:].replace("\n", "\n    ")))
        lines.append("  party: %s" % sorted(self.sessions().items()))
        for item in self.items:
            try:
                lines.append("  %s: %s" % (item, [(name, data, hex(stat.ephemeralOwner))
                                                  for name, data, stat in self.lock_nodes(item)]))
            except NoNodeError:
                lines.append("  %s: no directory" % item)
        return "\n".join(lines)


def set_tag(items):
    """The tag `s` of a divvy member: docs/protocol.md, P2."""
    return "%08x" % zlib.crc32(b"".join(item.encode() + b"\0" for item in sorted(items)))


def run(tests, build):
    """Run the tests, each (claim, function of a World), one after the other. Returns the exit status."""
    failed, began = 0, time.monotonic()
    world = World(build)
    try:
        for test in tests:
            started = time.monotonic()
            print("- %s" % " ".join(test.__doc__.split()), flush=True)
            before = len(world.pools)
            try:
                test(world)
                result = "ok"
            except Failure as failure:
                failed += 1
                result = "FAILED: %s" % failure
            finally:
                for pool in world.pools[before:]:
                    pool.close()
                del world.pools[before:]
            print("  %s (%.1f s)" % (result, time.monotonic() - started), flush=True)
    finally:
        world.close()
    print("%d of %d failed, %.0f s" % (failed, len(tests), time.monotonic() - began), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit("a module; run test_mixed_pool.py")
