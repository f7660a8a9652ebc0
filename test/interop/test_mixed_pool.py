#!/usr/bin/python3
"""Pools that divvy and kazoo 2.8.0 share, against live kazoo processes. SPDX-License-Identifier: Apache-2.0

usage: test_mixed_pool.py BUILD_FOLDER [WORD...]      with words: only the tests whose names contain one of them

DIVVY_TEST_SEED=n replays the random schedules.
"""
import json
import os
import random
import re
import sys
import signal
import threading
import time
import urllib.parse
import uuid

sys.dont_write_bytecode = True  # the checkout stays as it is
import harness  # noqa: E402
from harness import BOUNDARY_S, DEADLINE_S, check  # noqa: E402

# Names that both write as they are: what escaping must leave alone, and an order that is the order of bytes.
QUEUES = ["mail", "Mail", "billing", "tenant:42", "a b", "50%", "é", "naïve", "日本", "z.1", "z.10", "z.2", "x-y",
          "x_y", "...", "-", "a,b=c", "q01", "q02", "q03", "q04", "q05", "q06", "q07"]
GUID = "[0-9A-Za-z]{23,33}"

given_seed = os.environ.get("DIVVY_TEST_SEED") or os.environ.get("DIVVY_FRESH_SEED")
seed = int(given_seed or random.randrange(1 << 32))


def planned(pool):
    """What the plan gives each member: docs/protocol.md, D3 to D7, read plainly. It is small, so all stands in the
    root."""
    root = json.loads(pool.client.get(pool.path + "/plan")[0])
    base, shares = root["base"]["inline"], {}
    for member in base["members"]:
        if member.get("leaving"):
            continue # It has no items, and its entry may outlive it (D14).
        shares[member["slot"]] = next(one for one in pool.members if one.identifier == member["key"].partition("-")[2])
    split = {member: set() for member in pool.members}
    for number, item in enumerate(root["items"]["inline"]):
        digits = base["owners"][number * base["width"]:(number + 1) * base["width"]]
        split[shares[int(digits, 36)]].add(urllib.parse.unquote(item))
    return split


def settle_by_plan(pool):
    """Each item is owned once, by whom the plan says, and the loads are even.

    One member may follow the plan again while another still goes by names. So for a moment they may own each item once
    between them, at uneven loads.
    """
    def even():
        loads = [len(member.owned) for member in pool.members]
        return max(loads) - min(loads) <= 1

    pool.settle_owned(even)
    split = planned(pool)
    check(split == {member: member.owned for member in pool.members}, "the plan says %s", split)


def tokens(pool):
    return {(item, member): token for member in pool.members for item, token in member.tokens.items()}


# ---- the wire ----

def test_wire_nodes(world):
    """What divvy writes has the names, the data and the kinds that were agreed; parents have empty data, not none."""
    pool = world.pool("/wire/nodes", QUEUES)
    member = pool.divvy("one-with-dashes, and = more")
    pool.settle({member: set(QUEUES)})
    session = pool.sessions()["divvy", member.identifier]
    for parent in ["", "/locks", "/party"] + ["/locks/" + item for item in QUEUES]:
        data, stat = world.client.get(pool.path + parent)
        check(data == b"" and stat.dataLength == 0, "%s has the data %r", parent, data)
        check(stat.ephemeralOwner == 0, "%s is ephemeral", parent)
    party = world.client.get_children(pool.path + "/party")
    check(len(party) == 1, "party: %s", party)
    expected = "%s,a=3,s=%s,m=0,r=60000-%s" % (GUID, harness.set_tag(QUEUES), re.escape(member.identifier))
    check(re.fullmatch(expected, party[0]), "the member's node %r is not %r", party[0], expected)
    data, stat = world.client.get(pool.path + "/party/" + party[0])
    entry = json.loads(data)
    check(sorted(entry) == ["host", "id", "pid", "since"] and entry["id"] == member.identifier
          and entry["pid"] == member.process.pid, "the member's data: %s", entry)
    check([stat.ephemeralOwner] == session, "the member's node is of session %x", stat.ephemeralOwner)
    check(sorted(world.client.get_children(pool.path + "/locks")) == sorted(QUEUES), "directories are not the items")
    for item in QUEUES:
        children = world.client.get_children(pool.path + "/locks/" + item)
        check(len(children) == 1 and re.fullmatch(GUID + r"__lock__\d{10}", children[0]), "%s: %s", item, children)
        data, stat = world.client.get(pool.path + "/locks/" + item + "/" + children[0])
        check(data.decode() == member.identifier and [stat.ephemeralOwner] == session, "%s: lock data %r", item, data)
    pool.leave(member)


def test_wire_party(world):
    """kazoo's ShallowParty counts divvy members and lists their identifiers beside its own."""
    pool = world.pool("/wire/party", ["a", "b", "c"])
    one, two = pool.divvy("divvy-1"), pool.divvy("divvy-2")
    party = world.client.ShallowParty(pool.path + "/party", identifier="kazoo-3")
    pool.settle_owned()
    party.join()
    check(len(party) == 3, "it counts %d", len(party))
    check(sorted(party) == ["divvy-1", "divvy-2", "kazoo-3"], "it lists %s", sorted(party))
    party.leave()
    pool.settle_owned()
    pool.leave(one, two)
    check(list(party) == [], "it lists %s after all have left", list(party))


def contend(world, path, identifier):
    """A kazoo Lock that waits in a queue, and the thread in which it does."""
    lock = world.client.Lock(path, identifier)
    thread = threading.Thread(target=lock.acquire, kwargs={"timeout": 2 * DEADLINE_S}, daemon=True)
    thread.start()
    wait_for(lambda: identifier in lock.contenders(), "%s is not in the queue" % identifier)
    return lock, thread


def wait_for(met, message):
    deadline = time.monotonic() + DEADLINE_S
    while not met():
        check(time.monotonic() < deadline, message)
        time.sleep(0.01)


def test_wire_locks(world):
    """kazoo's Lock and divvy's places stand in one queue in the order of their arrival; each waits for the other."""
    pool = world.pool("/wire/locks", ["held", "free"])
    path = pool.path + "/locks/held"
    first, thread = contend(world, path, "kazoo-1")
    thread.join(DEADLINE_S)
    check(first.is_acquired, "kazoo-1 has not got the free lock")
    member = pool.divvy("divvy-2")
    wait_for(lambda: first.contenders() == ["kazoo-1", "divvy-2"], "divvy-2 is not behind kazoo-1")
    pool.settle({member: {"free"}}, acquired=[])
    third, thread = contend(world, path, "kazoo-3")
    check(third.contenders() == ["kazoo-1", "divvy-2", "kazoo-3"], "contenders: %s", third.contenders())
    check(member.state == "ALLOCATING" and not third.is_acquired, "%s has not waited for kazoo-1", member)
    first.release()
    check(pool.reader.wait(lambda: member.owned == {"free", "held"} and member.state == "ACQUIRED", DEADLINE_S),
          "divvy-2 has not got the lock that kazoo-1 released")
    check(third.contenders() == ["divvy-2", "kazoo-3"], "contenders: %s", third.contenders())
    check(not third.is_acquired, "kazoo-3 has not waited for divvy-2")
    pool.leave(member)
    thread.join(DEADLINE_S)
    check(third.is_acquired, "kazoo-3 has not got the lock that divvy-2 released")
    check(third.contenders() == ["kazoo-3"], "contenders: %s", third.contenders())
    third.release()


# ---- joins and leaves in any order ----

class Churn:
    """Random changes of a pool: a member of either kind joins (+), leaves (-), is killed (!), is frozen a while (~)."""

    def __init__(self, pool, rng, options, least, most):
        self.pool, self.rng, self.options, self.least, self.most = pool, rng, options, least, most
        self.number = 0

    def join(self, kind):
        self.number += 1
        # Identifiers sort by chance, so that either kind takes any place in the split.
        identifier = "%s-%s%02d" % ("%02x" % self.rng.randrange(256), kind[0], self.number)
        # Work on items takes a while to stop, longer than a boundary sometimes; only the locks keep others out.
        stop_work_s = self.rng.choice([0, self.rng.uniform(0, 2 * BOUNDARY_S)])
        self.pool.start(kind, identifier, *(self.options if kind == "divvy" else ["%.3f" % stop_work_s]))
        return "+%s" % identifier

    def step(self):
        kind = self.rng.choice(["kazoo", "divvy"])
        there = [member for member in self.pool.members if member.kind == kind]
        actions = ["join"] * (len(there) < self.most) + ["leave", "kill"] * (len(there) > self.least)
        action = self.rng.choice(actions)
        if action == "join":
            return self.join(kind)
        member = self.rng.choice(there)
        getattr(self.pool, action)(member)
        return "%s%s" % ("-" if action == "leave" else "!", member.identifier)

    def let_pass(self, seconds):
        """Part of the schedule: the next change meets the members before, while and after they settle, or frozen."""
        if self.rng.random() < 0.3:
            member = self.rng.choice(self.pool.members)
            member.freeze(seconds)
            return ["~%s" % member.identifier]
        time.sleep(seconds)
        return []

    def run(self, rounds, start):
        kinds = ["kazoo", "divvy"] * start
        self.rng.shuffle(kinds)
        did = [self.join(kind) for kind in kinds]
        for _ in range(rounds):
            print("    %s" % " ".join(did), flush=True)
            self.pool.settle(self.pool.kazoo_split())
            did = []
            for _ in range(self.rng.choice([1, 1, 2, 3])):
                did.append(self.step())
                did += self.let_pass(self.rng.choice([0, 0, self.rng.uniform(0, 3 * BOUNDARY_S)]))
        print("    %s" % " ".join(did), flush=True)
        self.pool.settle(self.pool.kazoo_split())


def test_churn(world):
    """Members of both kinds come, leave and are killed in any order: each item has one owner, by kazoo's own split."""
    pool = world.pool("/churn", QUEUES)
    Churn(pool, random.Random(seed), (), 3, 5).run(8, 4)


# What a member of kazoo's state machine says, and what it may say next. Who polls, as kazoo's do, may miss a state.
EAGER = {"": {"ALLOCATING"}, "ALLOCATING": {"gained", "ACQUIRED", "FAILURE"}, "gained": {"ACQUIRED"},
         "ACQUIRED": {"revoked", "RELEASE", "FAILURE"}, "revoked": {"RELEASE", "lost", "FAILURE"},
         "RELEASE": {"lost", "ALLOCATING", "FAILURE"}, "lost": {"ALLOCATING", "FAILURE"}}


def test_churn_eager(world):
    """The same with divvy in eager mode, kazoo's: states change as kazoo's do, and items come all at once."""
    pool = world.pool("/churn-eager", QUEUES)
    Churn(pool, random.Random(seed + 1), ("--mode", "eager", "--assign", "round_robin"), 2, 3).run(5, 2)
    for member in pool.all:
        for word, following in zip([""] + member.history, member.history):
            missed = member.kind == "kazoo" and (word, following) == ("ALLOCATING", "RELEASE")  # a brief ACQUIRED
            check(following in EAGER[word] or missed, "%s: %s after %s in %s", member, following, word, member.history)


# ---- from kazoo to divvy, and back ----

class Step:
    """One step of a change-over and how long items were unowned in it, here and in the yardstick."""

    def __init__(self, name):
        self.name, self.unowned, self.longest, self.mean = name, {}, {}, {}

    def measure(self, which, pool, since):
        with pool.reader.condition:
            self.unowned[which] = unowned = pool.claims.unowned_s(pool.items, since, time.monotonic())
        self.longest[which] = max(unowned.values())
        self.mean[which] = sum(unowned.values()) / len(unowned)


def change_member(pools, name, change, splits):
    """Do one step in both pools at the same time, so that both meet the same machine."""
    step, since = Step(name), time.monotonic()
    for pool in pools:
        change(pool)
    for which, pool in zip(("changing", "kazoo"), pools):
        if splits[which] == planned:
            settle_by_plan(pool)
        else:
            pool.settle(splits[which](pool))
        step.measure(which, pool, since)
    print("    %-34s unowned for at most %.2f s (mean %.2f); all kazoo %.2f s (%.2f)" % (
        name, step.longest["changing"], step.mean["changing"], step.longest["kazoo"], step.mean["kazoo"]), flush=True)
    return step


def replace_members(pools, old, new, last_split):
    """Member by member: one of the new kind starts, then one of the old leaves. The yardstick stays all kazoo."""
    changing = pools[0]
    kazoo_split = harness.Pool.kazoo_split
    steps = []
    for number in range(3):
        def start(pool, number=number):
            pool.start(new if pool is changing else "kazoo", "%s-%d" % (new, number))

        def leave(pool, number=number):
            pool.leave(next(member for member in pool.members if member.identifier == "%s-%d" % (old, number)))
        steps.append(change_member(pools, "%s member %d starts" % (new, number), start,
                                   {"changing": kazoo_split, "kazoo": kazoo_split}))
        split = last_split if number == 2 else kazoo_split
        steps.append(change_member(pools, "%s member %d leaves" % (old, number), leave,
                                   {"changing": split, "kazoo": kazoo_split}))
    return steps


def test_change_over(world):
    """A pool goes from kazoo to divvy member by member, and back, with no item unowned longer than in a kazoo pool."""
    pools = [world.pool("/change-over", QUEUES), world.pool("/yardstick", QUEUES)]
    for pool in pools:
        for number in range(3):
            pool.kazoo("kazoo-%d" % number)
    for pool in pools:
        pool.settle(pool.kazoo_split())
    changing = pools[0]
    steps = replace_members(pools, "kazoo", "divvy", planned)
    before = tokens(changing)
    steps.append(change_member(pools, "one more starts", lambda pool: pool.start(
        "divvy" if pool is changing else "kazoo", "more"),
        {"changing": planned, "kazoo": harness.Pool.kazoo_split}))
    after = tokens(changing)
    kept = before.keys() & after.keys()
    check(len(kept) == len(QUEUES) - len(QUEUES) // 4, "%d items moved when the fourth divvy member came",
          len(QUEUES) - len(kept))
    check(all(before[place] == after[place] for place in kept), "an item that was kept was unlocked meanwhile")
    check(all(steps[-1].unowned["changing"][item] == 0 for item, _ in kept), "an item that was kept was revoked")
    steps.append(change_member(pools, "it leaves", lambda pool: pool.leave(pool.members[-1]),
                               {"changing": planned, "kazoo": harness.Pool.kazoo_split}))
    steps += replace_members([changing, pools[1]], "divvy", "kazoo", harness.Pool.kazoo_split)
    compare(steps)


def test_plan_and_back(world):
    """A kazoo member joins a pool that follows a plan, and leaves; again and again. No item has two owners or none for
    good, no process is restarted, and a plan that comes into force again moves nothing but what must move."""
    pool = world.pool("/plan-and-back", QUEUES)
    for number in range(3):
        pool.divvy("divvy-%d" % number)
    settle_by_plan(pool)
    for round_number in range(3):
        kazoo = pool.kazoo("kazoo-%d" % round_number)
        pool.settle(pool.kazoo_split())
        if round_number == 1:
            pool.kill(kazoo)
        else:
            pool.leave(kazoo)
        settle_by_plan(pool)
    before = tokens(pool)
    pool.leave(pool.members[0])
    settle_by_plan(pool)
    after = tokens(pool)
    check(all(after[place] == token for place, token in before.items() if place[1] in pool.members),
          "the plan moved what need not move")


def test_other_items(world):
    """Members that follow a plan divide another set than they were made with. A kazoo member joins, and all go by what
    they were made with; it leaves, and the other set is divided again. What is in both sets is not interrupted by the
    set."""
    pool = world.pool("/other-items", QUEUES)
    members = [pool.divvy("divvy-%d" % number) for number in range(3)]
    settle_by_plan(pool)
    before = tokens(pool)
    others = QUEUES[4:] + ["q20", "q21", "q22"]
    pool.write_items(others)
    members[1].process.send_signal(signal.SIGHUP)
    settle_by_plan(pool)
    after = tokens(pool)
    check(all(after[item, member] == token for (item, member), token in before.items() if item in others),
          "an item of both sets was moved or interrupted")
    for _ in range(2):
        pool.write_items(QUEUES)
        kazoo = pool.kazoo("kazoo")
        pool.settle(pool.kazoo_split())
        pool.items = others
        pool.leave(kazoo)
        settle_by_plan(pool)


def compare(steps):
    """divvy against the yardstick: over all steps, and the worst one, in which a slow kazoo member may be the cause."""
    worst, mean = {}, {}
    for which in ("changing", "kazoo"):
        longest = [step.longest[which] for step in steps]
        worst[which], mean[which] = max(longest), sum(longest) / len(longest)
    print("    the longest of a step: %.2f s on average, %.2f s at worst; all kazoo %.2f s, %.2f s" % (
        mean["changing"], worst["changing"], mean["kazoo"], worst["kazoo"]), flush=True)
    check(mean["changing"] <= 1.1 * mean["kazoo"] + 0.05, "items were unowned for longer than in a kazoo pool")
    check(worst["changing"] <= 2 * worst["kazoo"] + BOUNDARY_S, "an item was unowned for longer than in a kazoo pool")


# ---- what kazoo cannot do, and what it does wrong ----

def test_slash(world):
    """An item that kazoo cannot name is refused with a warning while a kazoo member is there, and owned afterwards."""
    items = ["a", "b/c", "d", "e", "f"]
    pool = world.pool("/slash", items)
    one, two = pool.divvy("1"), pool.divvy("2")
    settle_by_plan(pool)
    check("b/c" not in one.warnings() + two.warnings(), "it is warned of without a reason")
    kazoo = pool.kazoo("3")
    split = pool.kazoo_split()
    check("b/c" in split[two], "the test itself: the name falls to %s", split)
    split[two].remove("b/c")
    pool.settle(split)
    check("b/c" in two.warnings(), "it is not warned of: %r", two.warnings())
    check(pool.lock_nodes("b/c") == [], "somebody contends for it: %s", pool.lock_nodes("b/c"))
    check(not world.client.exists(pool.path + "/locks/b"), "somebody wrote the name raw")
    pool.leave(kazoo)
    settle_by_plan(pool)

    # Where it falls to kazoo, kazoo nests it, and so locks another node than divvy: only time keeps the two apart.
    for _ in range(3):
        kazoo = pool.kazoo("1x")
        split = pool.kazoo_split()
        check("b/c" in split[kazoo], "the test itself: the name falls to %s", split)
        pool.settle(split)
        check(pool.lock_nodes("b/c") == [], "divvy contends too: %s", pool.lock_nodes("b/c"))
        pool.leave(kazoo)
        settle_by_plan(pool)


def test_equal_identifiers(world):
    """Of a kazoo and a divvy member of one identifier kazoo takes the first share, divvy the second: all are owned."""
    pool = world.pool("/equal", QUEUES)
    members = [pool.kazoo("same"), pool.divvy("same"), pool.divvy("other"), pool.kazoo("zebra")]
    ranks = dict(zip([members[2], members[0], members[1], members[3]], range(4)))
    pool.settle({member: set(sorted(QUEUES)[rank::4]) for member, rank in ranks.items()})
    check("same" in members[1].warnings(), "divvy has not warned: %r", members[1].warnings())
    # A second divvy member of that identifier ranks behind kazoo's too, before or after the first by its node's name.
    pool.divvy("same")
    pool.settle_owned()
    check(members[0].owned == set(sorted(QUEUES)[1::5]), "kazoo's share: %s", members[0].owned)
    check(members[3].owned == set(sorted(QUEUES)[4::5]), "zebra's share: %s", members[3].owned)
    pool.leave(members[0])
    pool.settle_owned()
    pool.leave(members[3])
    pool.settle_owned()


def test_integers(world):
    """kazoo members with integers deal them out by number; so does a divvy member that is told to. One that is not
    warns."""
    pool = world.pool("/integers", [str(number) for number in range(12)])
    kazoo_1, kazoo_3 = pool.kazoo("kazoo-1", "--integers"), pool.kazoo("kazoo-3", "--integers")
    divvy_2 = pool.divvy("divvy-2", "--items-order", "numeric")
    ranks = {divvy_2: 0, kazoo_1: 1, kazoo_3: 2}
    pool.settle({member: {str(number) for number in range(12)[rank::3]} for member, rank in ranks.items()})
    check("items_order" not in divvy_2.warnings(), "warned: %s", divvy_2.warnings())
    divvy_4 = pool.divvy("divvy-4")
    wait_for(lambda: "set items_order to numeric" in divvy_4.warnings(), "no warning of numbers in another order")
    wait_for(lambda: "deals items out" in divvy_2.warnings(), "no warning of a member with another order")
    pool.leave(divvy_4)
    pool.settle({member: {str(number) for number in range(12)[rank::3]} for member, rank in ranks.items()})
    pool.leave(divvy_2, kazoo_1, kazoo_3)


def test_strays(world):
    """Children that are no members get no share; but beside a kazoo member all do, as kazoo counts them."""
    pool = world.pool("/strays", QUEUES)
    one, two = pool.divvy("d1"), pool.divvy("d2")
    settle_by_plan(pool)
    path, client = pool.path + "/party/", world.client
    look_alike = uuid.uuid4().hex + "-d3"
    persistent = [look_alike, "junk", "junk-d1", uuid.uuid4().hex.upper() + "-d0", "x,a=2-ghost"]
    for name in persistent:
        client.create(path + name)
    # Nothing may change, so there is nothing to wait for but the warning that the party was looked at.
    wait_for(lambda: all("no member" in member.warnings() for member in (one, two)), "strays are not warned of")
    settle_by_plan(pool)
    for name in persistent:
        client.delete(path + name)

    # kazoo counts every child. One that is ephemeral is counted by divvy as well: its share is owned by nobody.
    client.create(path + uuid.uuid4().hex + "-d15", ephemeral=True)
    pool.settle(pool.kazoo_split(extra=["d15"]))
    kazoo = pool.kazoo("d12")
    pool.settle(pool.kazoo_split(extra=["d15"]))
    unowned = set(QUEUES) - one.owned - two.owned - kazoo.owned
    check(unowned == set(sorted(QUEUES)[2::4]), "unowned: %s", sorted(unowned))
    for name in client.get_children(path[:-1]):
        if name.endswith("-d15"):
            client.delete(path + name)
    pool.settle(pool.kazoo_split())

    # A persistent one is counted by kazoo (its fault 4), whatever its name. Beside kazoo divvy counts it, too, or kazoo
    # would wait for ever for items that divvy members have. Its share is nobody's, and the warning says what to delete.
    persistent = [(look_alike, "d3"), ("junk", "junk"), ("x,a=2-ghost", "ghost"), ("-", "")]
    for name, _ in persistent:
        client.create(path + name)
    pool.settle(pool.kazoo_split(extra=[identifier for _, identifier in persistent]))
    wait_for(lambda: all("no owner: delete it" in member.warnings() for member in (one, two)),
             "the strays are not warned of")
    for name, _ in persistent:
        client.delete(path + name)
    pool.settle(pool.kazoo_split())


TESTS = [test_wire_nodes, test_wire_party, test_wire_locks, test_churn, test_churn_eager, test_change_over,
         test_plan_and_back, test_other_items, test_slash, test_equal_identifiers, test_integers, test_strays]


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    words = sys.argv[2:]
    print("seed %d; again with: DIVVY_TEST_SEED=%d %s" % (seed, seed, " ".join(sys.argv)), flush=True)
    chosen = [test for test in TESTS if not words or any(word in test.__name__ for word in words)]
    return harness.run(chosen, sys.argv[1])


if __name__ == "__main__":
    sys.exit(main())
