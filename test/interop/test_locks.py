#!/usr/bin/python3
"""Locks that divvy and kazoo 2.8.0 share, against live kazoo processes. SPDX-License-Identifier: Apache-2.0

usage: test_locks.py BUILD_FOLDER [WORD...]      with words: only the tests whose names contain one of them

DIVVY_TEST_SEED=n replays the random choices; the processes' timing is their own.
"""
import re
import sys
import threading
import time

sys.dont_write_bytecode = True  # the checkout stays as it is
import contention_harness  # noqa: E402
import lock_member  # noqa: E402
from contention_harness import Member, library, wait_for  # noqa: E402
from harness import DEADLINE_S, check  # noqa: E402

DIVVY_NODE = {"exclusive": r"[0-9A-Za-z]{23,33}__lock__\d{10}", "write": r"[0-9A-Za-z]{23,33}__lock__\d{10}",
              "read": r"[0-9A-Za-z]{23,33}__rlock__\d{10}"}


class Waiter:
    """A lock of either kind, and the thread that acquires it."""

    def __init__(self, world, kind, path, mode, identifier):
        self.lock = lock_member.open_lock(kind, library(world), world.hosts, path, mode, identifier)
        self.identifier, self.held, self.thread = identifier, False, None

    def begin(self):
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        self.held = self.lock.acquire(None)

    def wait(self):
        self.thread.join(DEADLINE_S)
        check(self.held, "%s has not got the lock", self.identifier)

    def release(self):
        self.held = False
        self.lock.release()


def queue(world, path, wanted):
    """Waiters for (kind, mode), entered one after the other; whatever one sees is what all see."""
    waiters, names = [], []
    for i, (kind, mode) in enumerate(wanted):
        waiters.append(Waiter(world, kind, path, mode, "%s-%s-%d" % (kind, mode, i)))
        names.append(waiters[-1].identifier)
        waiters[-1].begin()
        wait_for(lambda: waiters[0].lock.contenders() == names, "%s is not in the queue", names[-1])
    return waiters, names


# ---- the wire, and order ----

def test_wire(world):
    """divvy's nodes have the names, the data and the kinds of WIRE.md; the parents that it makes have empty data."""
    for mode in ("exclusive", "write", "read"):
        path = "/wire/%s/lock" % mode
        lock = lock_member.open_lock("divvy", library(world), world.hosts, path, mode, "me é")
        check(lock.acquire(30), "a free lock was not acquired")
        children = world.client.get_children(path)
        check(len(children) == 1 and re.fullmatch(DIVVY_NODE[mode], children[0]), "%s: %s", mode, children)
        data, stat = world.client.get(path + "/" + children[0])
        check(data.decode() == "me é" and stat.ephemeralOwner != 0, "data %r", data)
        check(lock.token() == stat.czxid, "the token is %d, not the czxid %d", lock.token(), stat.czxid)
        data, stat = world.client.get(path)
        check(data == b"" and stat.dataLength == 0 and stat.ephemeralOwner == 0, "the directory has %r", data)
        lock.release()
        wait_for(lambda: world.client.get_children(path) == [], "the node is not gone after the release")
        lock.close()


def test_one_queue(world):
    """Contenders of both kinds stand in one queue, see one another in it, and get the lock in its order."""
    waiters, names = queue(world, "/one/queue", [("kazoo", "exclusive"), ("divvy", "exclusive"), ("kazoo", "exclusive"),
                                                 ("divvy", "exclusive"), ("divvy", "exclusive"),
                                                 ("kazoo", "exclusive")])
    for i, waiter in enumerate(waiters):
        waiter.wait()
        check([w.identifier for w in waiters if w.held] == [waiter.identifier], "not alone: %s", names[i])
        for other in waiters:
            wait_for(lambda: other.lock.contenders() == names[i:], "%s sees %s", other.identifier,
                     other.lock.contenders())
        waiter.release()
    for waiter in waiters:
        waiter.lock.close()


def test_read_and_write(world):
    """Readers of divvy share, and with kazoo's; writers of both wait for all before them; readers for writers."""
    waiters, names = queue(world, "/read/write", [("kazoo", "read"), ("divvy", "read"), ("kazoo", "write"),
                                                  ("divvy", "read"), ("divvy", "read"), ("divvy", "write"),
                                                  ("kazoo", "write"), ("divvy", "read")])
    for together in ([0, 1], [2], [3, 4], [5], [6], [7]):
        for i in together:
            waiters[i].wait()
        time.sleep(0.05)  # in which somebody could come in wrongly; who does not is seen by the checks to come
        check([w.identifier for w in waiters if w.held] == [names[i] for i in together], "held by %s",
              [w.identifier for w in waiters if w.held])
        for i in together:
            waiters[i].release()
    for waiter in waiters:
        waiter.lock.close()


def test_try_and_timeout(world):
    """A try and a timeout of divvy behind kazoo leave no contender; kazoo behind divvy neither; then each gets it."""
    path = "/try/timeout"
    kazoo, divvy = (Waiter(world, kind, path, "exclusive", kind) for kind in ("kazoo", "divvy"))
    for holder, other in ((kazoo, divvy), (divvy, kazoo)):
        check(holder.lock.acquire(DEADLINE_S), "a free lock was not acquired")
        check(not other.lock.acquire(0), "a try got a lock that is held")
        began = time.monotonic()
        check(not other.lock.acquire(0.3), "an acquire got a lock that is held")
        check(time.monotonic() - began > 0.29, "the timeout of 0.3 s took %.2f s", time.monotonic() - began)
        wait_for(lambda: holder.lock.contenders() == [holder.identifier], "a contender is left")
        holder.lock.release()
        check(other.lock.acquire(DEADLINE_S), "a lock that is free again was not acquired")
        other.lock.release()
    kazoo.lock.close()
    divvy.lock.close()


# ---- contention ----

def contend(world, path, members):
    """Lets them contend, and checks exclusion and order: who is granted later has entered the queue later."""
    held, took_s = contention_harness.contend(members, "token")
    last_end, last_writer_end, greatest, greatest_writer, kinds = 0.0, 0.0, 0, 0, set()
    for begin, end, token, member in held:
        free_since, blocking = (last_writer_end, greatest_writer) if member.mode == "read" else (last_end, greatest)
        check(begin >= free_since, "%s got it %.6f s before the one before it let go", member.identifier,
              free_since - begin)
        check(token > blocking, "%s got it by %d after %d", member.identifier, token, blocking)
        last_end, greatest = max(last_end, end), max(greatest, token)
        if member.mode != "read":
            last_writer_end, greatest_writer = end, token
        kinds.add(member.kind)
    check(kinds == {"divvy", "kazoo"}, "only %s took part", kinds)
    wait_for(lambda: world.client.get_children(path) == [], "contenders are left: %s", world.client.get_children(path))
    changes = sum(one[3].kind != other[3].kind for one, other in zip(held, held[1:]))
    print("    %d acquisitions in %.1f s, %d from one kind to the other" % (len(held), took_s, changes), flush=True)
    return held


def test_contention(world):
    """Eight processes, half of them kazoo's, with random holds, tries and timeouts: exclusion and order hold."""
    path = "/contention/exclusive"
    contend(world, path, [Member("lock_member.py", world, kind, path, "exclusive", "%s-%d" % (kind, i), 150)
                          for i in range(4) for kind in ("divvy", "kazoo")])


def test_contention_of_readers(world):
    """Readers and writers of both kinds: writers are alone, readers come in no earlier than the writers before them."""
    path = "/contention/shared"
    members = [Member("lock_member.py", world, "divvy", path, "read", "divvy-r%d" % i, 150) for i in range(3)]
    members += [Member("lock_member.py", world, "divvy", path, "write", "divvy-w0", 100),
                Member("lock_member.py", world, "kazoo", path, "write", "kazoo-w0", 100),
                Member("lock_member.py", world, "kazoo", path, "read", "kazoo-r0", 60)]
    held = contend(world, path, members)
    shared = sum(other[0] < one[1] for one, other in zip(held, held[1:]))
    check(shared > 0, "no two readers ever held it together")


TESTS = [test_wire, test_one_queue, test_read_and_write, test_try_and_timeout, test_contention,
         test_contention_of_readers]


if __name__ == "__main__":
    sys.exit(contention_harness.main(__doc__, TESTS))
