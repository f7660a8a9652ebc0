#!/usr/bin/python3
"""The sticky assignment of docs/protocol.md, rules A6 to A8, written as plainly as the rules read.

SPDX-License-Identifier: Apache-2.0

Shares no line with the library. Prints the digests that test_assign_sticky.c holds as constants: run it after a change
of the rules, and only then should they differ. DIVVY_TEST_CASES=n prints the first n cases instead.
"""

import os

from rendezvous_reference import BITS_64, fnv1a, key, mix, places


class Pool:
    """Members are (identifier, weight, zone), previous owners are indices or None."""

    def __init__(self, members, items, previous, max_moves=0, spread_zones=False):
        self.members, self.items, self.previous = members, items, previous
        self.weights = [weight for _, weight, _ in members]
        self.limit = max_moves or len(items)
        if not any(self.weights):
            self.weights, self.limit = [1] * len(members), 0
        self.zones = [zone if spread_zones else "" for _, _, zone in members]
        self.loads = [previous.count(m) for m in range(len(members))]
        self.all_keys = sum(key(b"i", item) for item in items) & BITS_64
        self.member_place = {index: place for place, index in enumerate(places([m[0] for m in members]))}
        self.item_place = {index: place for place, index in enumerate(places(items))}

    def tie(self, kind, name):
        """A7: what decides among equals, the heavier first."""
        return -mix(key(kind, name) ^ self.all_keys)

    def member_tie(self, m):
        return self.tie(b"m", self.members[m][0]), self.member_place[m]

    def zone_quotas(self, zone, count):
        """A6, A7: the quotas of a zone's members if it has so many items."""
        inside = [m for m, its in enumerate(self.zones) if its == zone]
        total = sum(self.weights[m] for m in inside)
        quotas = {m: count * self.weights[m] // total for m in inside}
        rests = {m: count * self.weights[m] % total for m in inside}
        claims = sorted((self.loads[m] <= quotas[m], -rests[m], self.member_tie(m), m) for m in inside if rests[m])
        for *_, m in claims[: count - sum(quotas.values())]:
            quotas[m] += 1
        return quotas

    def cost(self, zone, count):
        return sum(max(0, self.loads[m] - quota) for m, quota in self.zone_quotas(zone, count).items())

    def quotas(self):
        """A6, A7: zones share alike."""
        weight = {zone: 0 for zone in self.zones}
        for m, zone in enumerate(self.zones):
            weight[zone] += self.weights[m]
        zones = [zone for zone in weight if weight[zone]]
        room, extras = divmod(len(self.items), len(zones))
        zones.sort(
            key=lambda z: (self.cost(z, room + 1) - self.cost(z, room), -weight[z], self.tie(b"z", z), z.encode())
        )
        result = dict.fromkeys(range(len(self.members)), 0)
        for rank, zone in enumerate(zones):
            result.update(self.zone_quotas(zone, room + (rank < extras)))
        return result

    def leaving_order(self, items):
        return sorted(items, key=lambda i: (key(b"i", self.items[i]), self.item_place[i]))

    def owners(self):
        """A8."""
        quotas, owners = self.quotas(), list(self.previous)
        off = {m: self.loads[m] - quotas[m] for m in quotas}
        left = dict(off)
        items = {m: self.leaving_order(i for i, o in enumerate(self.previous) if o == m) for m in off}

        def give(item):
            to = min(off, key=lambda m: (left[m], off[m], self.member_tie(m)))
            assert left[to] < 0
            left[to] += 1
            owners[item] = to

        for item in self.leaving_order(i for i, o in enumerate(self.previous) if o is None):
            give(item)
        for _ in range(self.limit):
            givers = [m for m in off if left[m] > 0]
            if not givers:
                break
            giver = min(givers, key=lambda m: (self.weights[m] > 0, -left[m], -off[m], self.member_tie(m)))
            left[giver] -= 1
            give(items[giver].pop(0))
        return owners


NAMES = ["a", "b", "", "zoë", "5nr7f1oj3v0", "3i72bi44o5M", "worker-1", "worker-2", "x", "item-000001"]
WEIGHTS = [0, 1000, 1000, 1000, 500, 2500, 1, 4294967295]
ZONES = ["", "a", "b", "ö"]


class Chance:
    """Knuth's MMIX generator, as in test_assign_sticky.c."""

    def __init__(self, seed):
        self.state = seed

    def below(self, bound):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) & BITS_64
        return (self.state >> 33) % bound


def pool_by_chance(chance):
    member_count, item_count = 1 + chance.below(9), chance.below(40)
    distinct_percent, owned_percent, kept_weights = chance.below(101), chance.below(101), 1 + chance.below(8)

    def name(prefix, index):
        return f"{prefix}-{index}" if chance.below(100) < distinct_percent else NAMES[chance.below(len(NAMES))]

    members = []
    for m in range(member_count):
        identifier = name("member", m)
        weight = WEIGHTS[chance.below(kept_weights)]
        members.append((identifier, weight, ZONES[chance.below(len(ZONES))]))
    items, previous = [], []
    for i in range(item_count):
        items.append(name("item", i))
        owner = chance.below(member_count)
        previous.append(owner if chance.below(100) < owned_percent else None)
    max_moves, spread_zones = chance.below(8), chance.below(2) == 1
    return Pool(members, items, previous, max_moves, spread_zones)


def main():
    chance, digest = Chance(7), fnv1a(b"")
    wanted = int(os.environ.get("DIVVY_TEST_CASES", "0"))
    for case in range(3000):
        pool = pool_by_chance(chance)
        owners = pool.owners() if pool.items else []
        for owner in owners:
            digest = (digest ^ owner) * 0x100000001B3 & BITS_64
        if case < wanted:
            print(case, len(pool.members), len(pool.items), owners)
        if (case + 1) % 1000 == 0:
            print(f"{case + 1} cases: 0x{digest:016x}")


if __name__ == "__main__":
    main()
