#!/usr/bin/python3
"""Semaphores that divvy and kazoo 2.8.0 share, against live kazoo processes. SPDX-License-Identifier: Apache-2.0

usage: test_semaphores.py BUILD_FOLDER [WORD...]      with words: only the tests whose names contain one of them

DIVVY_TEST_SEED=n replays the random choices; the processes' timing is their own.
"""
import json
import os
import random
import re
import sys
import threading
import time

sys.dont_write_bytecode = True  # the checkout stays as it is
import contention_harness  # noqa: E402
import harness  # noqa: E402
import semaphore_member  # noqa: E402
from contention_harness import Member, library, wait_for  # noqa: E402
from harness import DEADLINE_S, check  # noqa: E402


def divvy(world, path, limit, identifier, **more):
    return semaphore_member.DivvySemaphore(library(world), world.hosts, path, limit, identifier, **more)


def kazoo(world, path, limit, identifier):
    return semaphore_member.KazooSemaphore(world.hosts, path, limit, identifier)


def refused(call, kind, *words):
    """That the call raises this, and says these words."""
    try:
        call()
    except kind as error:
        for word in words:
            check(word in str(error), "%r does not say %r", error, word)
        return error
    raise harness.Failure("%s was not raised" % kind.__name__)


# ---- the wire ----

def test_wire(world):
    """divvy's nodes have the names, data and kinds of WIRE.md, in the pool and in the queue, and kazoo can read
    them."""
    path = "/wire/pool"
    one, two = divvy(world, path, 3, "one é"), divvy(world, path, 3, "two", count=2)
    check(one.acquire(30) and two.acquire(30), "free slots were not acquired")
    check(world.client.get(path)[0] == b"3", "the limit stands as %r", world.client.get(path)[0])
    names = sorted(world.client.get_children(path), key=lambda name: name.split(",")[1])
    check(len(names) == 2 and re.fullmatch(r"[0-9A-Za-z]{23,33},n=0,c=1", names[0]) and
          re.fullmatch(r"[0-9A-Za-z]{23,33},n=1,c=2", names[1]), "the leases are %s", names)
    for name, semaphore, identifier, count in ((names[0], one, "one é", 1), (names[1], two, "two", 2)):
        data, stat = world.client.get(path + "/" + name)
        record = json.loads(data)
        check(list(record) == ["id", "host", "pid", "since", "count"], "the record is %s", record)
        check((record["id"], record["pid"], record["count"]) == (identifier, os.getpid(), count), "it is %s", record)
        check(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", record["since"]), "since %s", record["since"])
        check(stat.ephemeralOwner != 0 and stat.version == 0, "the lease is %s", stat)
        check(semaphore.token() == stat.czxid, "the token is %d, not %d", semaphore.token(), stat.czxid)
    check(world.client.get_children(path + "-__lock__") == [], "the queue is not empty")
    waiter = divvy(world, path, 3, "three")
    thread = threading.Thread(target=lambda: waiter.acquire(None))
    thread.start()
    wait_for(lambda: world.client.get_children(path + "-__lock__"), "nobody stands in the queue")
    name = world.client.get_children(path + "-__lock__")[0]
    data, stat = world.client.get(path + "-__lock__/" + name)
    check(re.fullmatch(r"[0-9A-Za-z]{23,33}__lock__\d{10}", name) and stat.ephemeralOwner != 0, "it is %s", name)
    check(json.loads(data)["id"] == "three", "its record is %r", data)
    for parent in ("/wire", path + "-__lock__"):
        check(world.client.get(parent)[0] == b"", "%s has data", parent)
    one.release()
    thread.join()
    for semaphore in (one, two, waiter):
        semaphore.close()
    wait_for(lambda: world.client.get_children(path) == [], "leases are left")


# ---- one pool ----

def test_see_one_another(world):
    """Holders and waiters of both kinds count for both, see one another, and come in in the order of the queue."""
    path, pool = "/see/pool", []
    for i, kind in enumerate([kazoo, divvy, kazoo, divvy, divvy, kazoo]):
        semaphore = kind(world, path, 2, "%s-%d" % (kind.__name__, i))
        semaphore.name = "%s-%d" % (kind.__name__, i)
        semaphore.held = False
        pool.append(semaphore)

        def run(s=semaphore):
            s.held = s.acquire(None)
        threading.Thread(target=run, daemon=True).start()
        if i < 2:
            wait_for(lambda: semaphore.held, "%s got no slot", semaphore.name)
        else:
            wait_for(lambda: len(world.client.get_children(path + "-__lock__")) == i - 1, "it does not wait")
    names = [semaphore.name for semaphore in pool]
    for i in range(len(pool)):
        for one in pool:
            wait_for(lambda: sorted(one.holders()) == sorted(names[i:i + 2]), "%s sees the holders %s", one.name,
                     one.holders())
            wait_for(lambda: one.contenders() == names[i + 2:], "%s sees the contenders %s", one.name, one.contenders())
        check([s.name for s in pool if s.held] == names[i:i + 2], "held by %s", [s.name for s in pool if s.held])
        wait_for(lambda: pool[i].held, "%s does not hold", names[i])
        pool[i].held = False
        pool[i].release()
        if i + 2 < len(pool):
            wait_for(lambda: pool[i + 2].held, "%s got no slot", names[i + 2])
    for semaphore in pool:
        semaphore.close()


def test_try_and_timeout(world):
    """A try and a timeout of either kind against a pool that the other has filled end in time and leave nothing."""
    path = "/try/pool"
    both = [kazoo(world, path, 1, "kazoo"), divvy(world, path, 1, "divvy")]
    for holder, other in (both, both[::-1]):
        check(holder.acquire(DEADLINE_S), "a free slot was not acquired")
        check(not other.acquire(0), "a try got a slot that is held")
        began = time.monotonic()
        check(not other.acquire(0.3), "an acquire got a slot that is held")
        check(time.monotonic() - began > 0.29, "the timeout of 0.3 s took %.2f s", time.monotonic() - began)
        wait_for(lambda: world.client.get_children(path + "-__lock__") == [], "a contender is left")
        check(len(world.client.get_children(path)) == 1, "the leases are %s", world.client.get_children(path))
        holder.release()
        check(other.acquire(DEADLINE_S), "a slot that is free again was not acquired")
        other.release()
    for semaphore in both:
        semaphore.close()


# ---- the shortcut (E14) ----

def test_shortcut(world):
    """An object that has held a slot gets it again by its lease alone: nothing stands in the queue in between, and the
    pool is not set."""
    path, queue = "/shortcut/pool", "/shortcut/pool-__lock__"
    both = [divvy(world, path, 2, "one"), divvy(world, path, 2, "two")]
    for semaphore in both:
        check(semaphore.acquire(DEADLINE_S), "a free slot was not acquired")
    for semaphore in both:
        semaphore.release()
    wait_for(lambda: world.client.get_children(path) == [], "leases are left")
    before = (world.client.exists(path).mzxid, world.client.exists(queue).cversion)
    for slot, semaphore in enumerate(both):
        check(semaphore.acquire(DEADLINE_S) and semaphore.slot() == slot, "the slot is %d", semaphore.slot())
        name, = (name for name in world.client.get_children(path) if ",n=%d," % slot in name)
        check(semaphore.token() == world.client.exists(path + "/" + name).czxid, "the token is %d", semaphore.token())
    after = (world.client.exists(path).mzxid, world.client.exists(queue).cversion)
    check(before == after, "pool and queue were at %s, and are at %s", before, after)
    for semaphore in both:
        semaphore.close()


def test_shortcut_beside_kazoo(world):
    """Nobody of kazoo's is overtaken by it: one that holds the last slot, and one that waits. The object gets its slot
    behind both."""
    path = "/shortcut/kazoo"
    ours, holder, waiter = divvy(world, path, 1, "d"), kazoo(world, path, 1, "h"), kazoo(world, path, 1, "w")
    check(ours.acquire(DEADLINE_S), "a free slot was not acquired")
    ours.release()
    check(holder.acquire(DEADLINE_S), "a slot that is free again was not acquired")
    waits = threading.Thread(target=lambda: waiter.acquire(None))
    waits.start()
    wait_for(lambda: len(world.client.get_children(path + "-__lock__")) == 1, "kazoo does not wait")
    check(not ours.acquire(0.3), "a slot was acquired that is held")
    holder.release()
    waits.join(DEADLINE_S)
    check(not waits.is_alive(), "kazoo got no slot")
    check(not ours.acquire(0.3), "a slot was acquired that is held")
    waiter.release()
    check(ours.acquire(DEADLINE_S), "a slot that is free again was not acquired")
    for semaphore in (ours, holder, waiter):
        semaphore.close()


# ---- the limit ----

def test_limit(world):
    """Each of both refuses another limit, in either order. A client that takes the stored one gets in."""
    first, second = divvy(world, "/limit/divvy", 2, "d"), kazoo(world, "/limit/divvy", 3, "k")
    check(first.acquire(DEADLINE_S), "a free slot was not acquired")
    refused(lambda: second.acquire(1), ValueError, "2", "3")
    first.release()
    kazoo_first, divvy_second = kazoo(world, "/limit/kazoo", 3, "k"), divvy(world, "/limit/kazoo", 2, "d")
    check(kazoo_first.acquire(DEADLINE_S), "a free slot was not acquired")
    error = refused(lambda: divvy_second.acquire(1), semaphore_member.DivvyError, "3, not 2")
    check(error.error == semaphore_member.EDIFFERS, "the error is %d", error.error)
    stored = divvy(world, "/limit/kazoo", 1, "s", policy="stored")
    check(stored.acquire(DEADLINE_S) and stored.slot() == 0, "the stored limit was not taken")
    check(world.client.get("/limit/kazoo")[0] == b"3", "the limit was changed")
    for semaphore in (first, second, kazoo_first, divvy_second, stored):
        semaphore.close()


def test_what_kazoo_would_not_understand(world):
    """Several slots at once, and another limit, are refused while kazoo holds, or waits; they are had when it has
    gone."""
    path = "/several/pool"
    other, one, several = (kazoo(world, path, 3, "k"), divvy(world, path, 3, "d"), divvy(world, path, 3, "s", count=2))
    check(other.acquire(DEADLINE_S), "a free slot was not acquired")
    for call in (lambda: several.acquire(1), lambda: one.resize(4)):
        error = refused(call, semaphore_member.DivvyError, "kazoo")
        check(error.error == semaphore_member.ESTATE, "the error is %d", error.error)
    other.release()
    check(several.acquire(DEADLINE_S), "several free slots were not acquired")
    one.resize(4)
    check(world.client.get(path)[0] == b"4", "the limit is %r", world.client.get(path)[0])
    for semaphore in (other, one, several):
        semaphore.close()


# ---- contention ----

def check_limit(held, limit):
    """At no time more than the limit held; the most that did."""
    # Where one ends as another begins, the end comes first: it was noted before the release.
    moments = sorted([(begin, 1) for begin, *_ in held] + [(end, 0) for _, end, *_ in held])
    now, most = 0, 0
    for _, begins in moments:
        now += 1 if begins else -1
        most = max(most, now)
    check(most <= limit, "%d held at a time, of %d", most, limit)
    return most


def check_slots(held, limit):
    """A numbered slot has one holder at a time, whose token is greater than those before it had."""
    last = {}
    for begin, end, token, slot, member in sorted(hold for hold in held if hold[3] >= 0):
        check(slot < limit, "%s got slot %d of %d", member.identifier, slot, limit)
        before_end, before_token = last.get(slot, (0.0, 0))
        check(begin >= before_end, "%s got slot %d %.6f s too early", member.identifier, slot, before_end - begin)
        check(token > before_token, "slot %d: %d after %d", slot, token, before_token)
        last[slot] = (end, token)
    return set(last)


def contend(world, path, limit, members):
    held, took_s = contention_harness.contend(members, "token", "slot")
    most, slots = check_limit(held, limit), check_slots(held, limit)
    check(most == limit, "only %d of %d were ever held", most, limit)
    check({hold[4].kind for hold in held} == {"divvy", "kazoo"}, "one kind got nothing")
    for directory in (path, path + "-__lock__"):
        wait_for(lambda: world.client.get_children(directory) == [], "%s is not empty", directory)
    print("    %d acquisitions in %.1f s, slots %s" % (len(held), took_s, sorted(slots)), flush=True)


def test_contention(world):
    """Eight processes, half of them kazoo's, with random holds, tries and timeouts, for three slots."""
    path = "/contention/three"
    contend(world, path, 3, [Member("semaphore_member.py", world, kind, path, 3, "%s-%d" % (kind, i), 120)
                             for i in range(4) for kind in ("divvy", "kazoo")])


def test_contention_for_one(world):
    """Likewise for a single slot: it is a lock then."""
    path = "/contention/one"
    contend(world, path, 1, [Member("semaphore_member.py", world, kind, path, 1, "%s-%d" % (kind, i), 80)
                             for i in range(2) for kind in ("divvy", "kazoo")])


def test_contention_by_the_shortcut(world):
    """Three objects of divvy for three slots, and now and then a kazoo process: the shortcut is often free, and often
    not."""
    path, held, errors = "/contention/shortcut", [], []
    pool = [divvy(world, path, 3, "divvy-%d" % i) for i in range(3)] + [kazoo(world, path, 3, "kazoo")]

    def work(semaphore, number, times, rest_s):
        chance = random.Random("%d-%d" % (contention_harness.seed, number))
        try:
            for _ in range(times):
                check(semaphore.acquire(None), "an acquire without end has ended")
                begin, token, slot = time.monotonic(), semaphore.token(), semaphore.slot()
                time.sleep(chance.uniform(0, 0.003))
                held.append((begin, time.monotonic(), token, slot, semaphore))
                semaphore.release()
                time.sleep(chance.uniform(0, rest_s))
        except Exception as error:  # pylint: disable=broad-except
            errors.append(error)
    threads = [threading.Thread(target=work, args=(pool[i], i, 100, 0.04)) for i in range(3)]
    threads.append(threading.Thread(target=work, args=(pool[3], 3, 20, 0.2)))
    for i, semaphore in enumerate(pool):
        semaphore.identifier = str(i)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    check_limit(held, 3)
    check_slots(held, 3)
    in_queue = world.client.exists(path).version - 1  # Each admission in the queue sets the pool.
    check(0 < in_queue < 300, "%d of 300 were admitted in the queue", in_queue)
    print("    %d of 300 by the shortcut" % (300 - in_queue), flush=True)
    for semaphore in pool:
        semaphore.close()


TESTS = [test_wire, test_see_one_another, test_try_and_timeout, test_shortcut, test_shortcut_beside_kazoo, test_limit,
         test_what_kazoo_would_not_understand, test_contention, test_contention_for_one,
         test_contention_by_the_shortcut]


if __name__ == "__main__":
    sys.exit(contention_harness.main(__doc__, TESTS))
