#!/usr/bin/python3
"""The assignments of docs/protocol.md, rules A1, A2 and A5, written as plainly as the rules read.

SPDX-License-Identifier: Apache-2.0

Shares no line with the library, which is much faster and much less plain. Prints the vectors that test_assign.c holds
as constants: run it after a change of the rules, and only then should they differ.
"""

BITS_64 = (1 << 64) - 1


def places(names):
    """A1: the indices of names in order, which for UTF-8 is Python's; sorted() keeps equal names as they stand."""
    return sorted(range(len(names)), key=lambda index: names[index])


def round_robin(members, items):
    """A1: kazoo's own expression, over indices so that equal names stay apart."""
    owners = [None] * len(items)
    for i, member in enumerate(places(members)):
        for item in places(items)[i :: len(members)]:
            owners[item] = member
    return owners


def mix(x):
    """A2: the finalizer of SplitMix64."""
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & BITS_64
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & BITS_64
    return x ^ (x >> 31)


def fnv1a(data):
    """A2: FNV-1a of 64 bits."""
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & BITS_64
    return value


def key(kind, name, rank=0):
    """A2: kind is b"m" or b"i"; the rank tells equal names apart."""
    return mix((fnv1a(kind + name.encode()) + rank) & BITS_64)


def keys(kind, names):
    """A2: the keys of names, in the order of A1."""
    ordered = [names[index] for index in places(names)]
    return [key(kind, name, place - ordered.index(name)) for place, name in enumerate(ordered)]


def rendezvous(members, items):
    """A5: sort all pairs, grant from the heaviest down."""
    member_keys, item_keys = keys(b"m", members), keys(b"i", items)
    pairs = [(-mix(m_key ^ i_key), i, m) for i, i_key in enumerate(item_keys) for m, m_key in enumerate(member_keys)]
    room, extras = divmod(len(items), len(members))
    loads = [0] * len(members)
    granted = {}
    for _, i, m in sorted(pairs):
        if i in granted or loads[m] > room or (loads[m] == room and extras == 0):
            continue
        if loads[m] == room:
            extras -= 1
        loads[m] += 1
        granted[i] = m
    member_places, item_places = places(members), places(items)
    owners = [None] * len(items)
    for i, m in granted.items():
        owners[item_places[i]] = member_places[m]
    return owners


def numbered(form, count):
    return [form % number for number in range(1, count + 1)]


CASES = {
    "PLAIN": (["gamma", "alpha", "beta"], numbered("item-%06d", 10)),
    # UTF-16 would put the emoji before U+FFFD, a locale would put the umlaut beside the o.
    "UTF8": (["zoë", "Zoe", "zoe", "ö"], ["\U0001f600", "\ufffd", "é", "e", "z", "E", "日本", "", "e\u0301"]),
    "EQUAL": (["b", "a", "b", "a"], ["x", "y", "x", "x", "y", "x", "z", "z", "x"]),
    # The FNV-1a hashes of the first two members are equal, of the items two by two: only A5's ties decide.
    "TIED": (
        ["5nr7f1oj3v0", "3i72bi44o5M", "other"],
        ["y8zjn1y08o0", "15jvnzlc33Q", "3fxtvu8hcwF", "li58ph67lk0", "other"],
    ),
    "SPARSE": (numbered("m%d", 7), ["one", "two", "three"]),
}

if __name__ == "__main__":
    print('key of member "alpha": %#018x' % key(b"m", "alpha"))
    print('key of the second member "alpha": %#018x' % key(b"m", "alpha", 1))
    print('key of item "item-000001": %#018x' % key(b"i", "item-000001"))
    print('weight of these two, ranks 0: %#018x' % mix(key(b"m", "alpha") ^ key(b"i", "item-000001")))
    for name, (members, items) in CASES.items():
        print(name, "round robin", str(round_robin(members, items)).replace("[", "{").replace("]", "}"))
        print(name, "rendezvous", str(rendezvous(members, items)).replace("[", "{").replace("]", "}"))
    large = numbered("worker-%d", 7), numbered("item-%06d", 1000)
    print("LARGE round robin, FNV-1a of owners as bytes: %#018x" % fnv1a(round_robin(*large)))
    print("LARGE rendezvous, FNV-1a of owners as bytes: %#018x" % fnv1a(rendezvous(*large)))
