#!/usr/bin/python3
"""Elections that divvy shares with kazoo's Election and with Curator's LeaderLatch. SPDX-License-Identifier: Apache-2.0

usage: test_elections.py BUILD_FOLDER [WORD...]      with words: only the tests whose names contain one of them
"""
import re
import sys

sys.dont_write_bytecode = True  # the checkout stays as it is
import contention_harness  # noqa: E402
import lock_member  # noqa: E402
from contention_harness import library, wait_for  # noqa: E402
from election_member import LATCH, Curator, Divvy, Kazoo, curator  # noqa: E402
from harness import check  # noqa: E402


def count(world, path):
    return len(world.client.get_children(path)) if world.client.exists(path) else 0


def take_turns(world, path, candidates):
    """Opened one after the other, they lead in that order, one at a time, and all name the same leader."""
    opened = []
    for i, make in enumerate(candidates):
        opened.append(make())
        wait_for(lambda: count(world, path) == i + 1, "%s does not stand", opened[-1].name)
    while opened:
        first = opened[0]
        wait_for(first.leads, "%s does not lead", first.name)
        for other in opened:
            wait_for(lambda: other.leader() == first.name, "%s does not know that %s leads", other.name, first.name)
        check([one.name for one in opened if one.leads()] == [first.name], "not alone: %s", first.name)
        first.close()
        opened.pop(0)


def test_kazoo(world):
    """Candidates of kazoo and divvy lead in one order, and see one another."""
    path = "/elections/kazoo"
    take_turns(world, path, [lambda: Kazoo(world.hosts, path, "kazoo-1"),
                             lambda: Divvy(library(world), world.hosts, path, "divvy-1"),
                             lambda: Kazoo(world.hosts, path, "kazoo-2"),
                             lambda: Divvy(library(world), world.hosts, path, "divvy-2"),
                             lambda: Kazoo(world.hosts, path, "kazoo-3")])


def test_curator(world):
    """Candidates of Curator and divvy, by the names of latches, lead in one order, and see one another."""
    path, java = "/elections/curator", curator(world)
    take_turns(world, path, [lambda: Curator(java, path, "curator-1"),
                             lambda: Divvy(library(world), world.hosts, path, "divvy-1", LATCH),
                             lambda: Curator(java, path, "curator-2"),
                             lambda: Divvy(library(world), world.hosts, path, "divvy-2", LATCH),
                             lambda: Divvy(library(world), world.hosts, path, "divvy-3", LATCH)])


def test_wire(world):
    """divvy's nodes have the names of rule J1, with the preference before the marker, and the data as given."""
    for names, marker in ((0, "__lock__"), (LATCH, "-latch-")):
        for preference, tag in ((0, ""), (7, ",p=7")):
            path = "/elections/wire-%d-%d" % (names, preference)
            candidate = Divvy(library(world), world.hosts, path, "me é", names, preference)
            wait_for(candidate.leads, "it does not lead")
            children = world.client.get_children(path)
            check(len(children) == 1 and re.fullmatch("[0-9A-Za-z]{23,33}%s%s0000000000" % (tag, marker), children[0]),
                  "%s", children)
            data, stat = world.client.get(path + "/" + children[0])
            check(data.decode() == "me é" and stat.ephemeralOwner != 0, "data %r", data)
            check(candidate.lib.divvy_election_token(candidate.election) == stat.czxid, "not the czxid")
            candidate.close()


def preferred(world, path, names, stranger):
    """A preferred one of divvy takes over from divvy's leader, behind a stranger that stands between them."""
    first = Divvy(library(world), world.hosts, path, "first", names)
    wait_for(first.leads, "the first does not lead")
    between = stranger()
    wait_for(lambda: count(world, path) == 2, "the stranger does not stand")
    best = Divvy(library(world), world.hosts, path, "best", names, 9)
    wait_for(between.leads, "the stranger does not lead")  # It yields to nobody, and keeps its turn.
    check(first.asked_by == ["best"] and not best.leads() and not first.leads(), "asked by %s", first.asked_by)
    wait_for(lambda: best.leader() == "between", "the preferred one does not know who leads")
    check(best.ask(300) == -3, "the stranger has stepped down")
    between.close()
    wait_for(best.leads, "the preferred one does not lead")
    for one in (first, best):
        one.close()


def test_preferred_and_kazoo(world):
    """kazoo's Election keeps its turn before a preferred candidate, and hears of no request."""
    preferred(world, "/elections/preferred-kazoo", 0,
              lambda: Kazoo(world.hosts, "/elections/preferred-kazoo", "between"))


def test_preferred_and_curator(world):
    """So does Curator's LeaderLatch, and requests to step down, which it counts as children, are not in its way."""
    java = curator(world)
    preferred(world, "/elections/preferred-curator", LATCH,
              lambda: Curator(java, "/elections/preferred-curator", "between"))


def test_lock(world):
    """An election and a lock of the same path exclude each other."""
    path = "/elections/lock"
    candidate = Divvy(library(world), world.hosts, path, "candidate")
    wait_for(candidate.leads, "it does not lead")
    for kind in ("divvy", "kazoo"):
        lock = lock_member.open_lock(kind, library(world), world.hosts, path, "exclusive", kind)
        check(not lock.acquire(0), "%s has the lock", kind)
        lock.close()
    candidate.close()


TESTS = [test_wire, test_kazoo, test_curator, test_preferred_and_kazoo, test_preferred_and_curator, test_lock]


if __name__ == "__main__":
    sys.exit(contention_harness.main(__doc__, TESTS))
