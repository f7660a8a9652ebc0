#!/usr/bin/python3
"""Conduct the peers of bench/locks.sh, and print their medians.  SPDX-License-Identifier: Apache-2.0

usage: locks.py [--rounds N] [--seconds S] [--round-trips] [--json FILE] NAME=COMMAND ...

Starts each COMMAND, which serves the commands of locks_peer.h, and gives them short slices of work in turn, beginning
with another one each time, so that whatever disturbs the machine for a while disturbs all alike. A ratio is taken
within a round; what is printed of all is the median over the rounds. Names: floor, divvy, and any others.
--round-trips counts those of a pair on a slow link, which takes the place of HOST:PORT, the last word of each COMMAND.
Exit status: 0; 1 when a hand-over of divvy took more requests than it may. Times are judged, but fail nothing.
"""
import argparse
import json
import random
import shlex
import statistics
import subprocess
import sys

from locks_link import Link

RECIPES = ("lock", "semaphore")
WAITERS = (2, 50)
COUNTED = (2, 10, 50)
SLICE_MS = 100
WARM_UP_MS = 500
CHAIN_HAND_OVERS = 10  # at least so many of each peer in a round
ROUND_TRIP_S, LINK_MS = 0.1, 2000  # of the slow link, and for how long it is used
VERBS = (("pairs", "round_trips"), ("gone", "round_trips_until_gone"))
MOST_ROUND_TRIPS = 2  # of divvy's acquire and release until nothing is left
# How many times faster divvy is to be than the others, in pairs a second.
WANTED = {"lock": {"floor": 0.85, "kazoo": 2, "curator": 1.2},
          "semaphore": {"floor": 0.85, "kazoo": 2.5, "curator": 1.3}}
# The most that a hand-over may cost. The next in a semaphore's queue reads the pool; see README.md.
MOST = {"release": {"watch_events": 0, "reads": 0, "writes": 1},
        "taker": {"watch_events": 1, "reads": 1, "writes": 1},
        "next": {"watch_events": 1, "reads": 3, "writes": 0},
        "others": {"watch_events": 0, "reads": 0, "writes": 0}}


class Peer:
    def __init__(self, name, command):
        self.name = name
        self.process = subprocess.Popen(shlex.split(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            sys.exit("bench/locks: %s has ended" % self.name)
        return json.loads(line)

    def end(self):
        self.process.stdin.close()
        if self.process.wait(60) != 0:
            sys.exit("bench/locks: %s has failed" % self.name)


def in_turn(peers, times):
    """Each peer so many times; who follows whom changes, but is the same in each run."""
    order = random.Random(1)
    for _ in range(times):
        yield from order.sample(peers, len(peers))


def pairs_per_s(peers, recipe, slices):
    pairs, seconds = dict.fromkeys(peers, 0), dict.fromkeys(peers, 0.0)
    for peer in in_turn(peers, slices):
        answer = peer.ask("pairs", recipe, SLICE_MS)
        pairs[peer] += answer["pairs"]
        seconds[peer] += answer["seconds"]
    return {peer.name: pairs[peer] / seconds[peer] for peer in peers}


def hand_over_us(peers, recipe, waiters):
    found = {peer.name: [] for peer in peers}
    for peer in in_turn(peers, -(-CHAIN_HAND_OVERS // waiters)):
        found[peer.name] += peer.ask("hand_over", recipe, waiters)["us"]
    return {name: statistics.median(us) for name, us in found.items()}


def measure(peers, rounds, slices):
    """A dictionary for each round: (recipe, what) to {name: value}."""
    for recipe in RECIPES:
        for peer in in_turn(peers, 4):
            peer.ask("pairs", recipe, WARM_UP_MS)
            peer.ask("hand_over", recipe, 2)
    runs = []
    for number in range(rounds):
        print("bench/locks: round %d of %d" % (number + 1, rounds), file=sys.stderr)
        run = {}
        for recipe in RECIPES:
            run[recipe, "pairs_per_s"] = pairs_per_s(peers, recipe, slices)
            for waiters in WAITERS:
                run[recipe, "hand_over_%d_us" % waiters] = hand_over_us(peers, recipe, waiters)
        runs.append(run)
    return runs


def round_trips(texts):
    """(recipe, what) to {name: value}, of an uncontended pair: the round trips that it waits for, those until nothing
    of it is left where it does not wait for that, and its requests. The server is near: the link alone takes time."""
    found = {(recipe, what): {} for recipe in RECIPES for what in ("round_trips", "round_trips_until_gone", "requests")}
    for name, command in (text.split("=", 1) for text in texts):
        words = shlex.split(command)
        link = Link(words[-1].split(",")[0], ROUND_TRIP_S)
        peer = Peer(name, shlex.join(words[:-1] + [link.address]))
        for recipe in RECIPES:
            for verb, what in VERBS[:2 if name == "divvy" else 1]:
                peer.ask("pairs", recipe, WARM_UP_MS)
                before = link.requests
                answer = peer.ask(verb, recipe, LINK_MS)
                found[recipe, what][name] = round(answer["seconds"] / answer["pairs"] / ROUND_TRIP_S, 2)
                found[recipe, "requests"][name] = round((link.requests - before) / answer["pairs"], 1)
        peer.end()
    return found


def middle(runs, key, name, by="divvy", ratio=False):
    return statistics.median(run[key][by] / run[key][name] if ratio else run[key][name] for run in runs)


def print_times(runs, names):
    for recipe in RECIPES:
        print("%-26s" % recipe + "".join("%12s" % name for name in names))
        for what, words in (("pairs_per_s", "pairs a second"), ("hand_over_2_us", "hand-over, 2 waiters, us"),
                            ("hand_over_50_us", "hand-over, 50 waiters, us")):
            print("%-26s" % words + "".join("%12s" % f"{middle(runs, (recipe, what), n):,.0f}" for n in names))
        print()


def print_costs(costs):
    """Whether no hand-over cost more than it may."""
    print("most requests of a hand-over: watch events + reads + writes")
    print("%-26s%12s%12s%12s%12s" % ("", "release", "taker", "next", "others"))
    kept = True
    for (recipe, waiters), cost in costs.items():
        cells = ["%d + %d + %d" % tuple(cost[who].values()) for who in ("release", "taker", "next", "others")]
        print("%-26s" % ("%s, %d waiters" % (recipe, waiters)) + "".join("%12s" % cell for cell in cells))
        kept = kept and all(cost[who][kind] <= most for who, limits in MOST.items() for kind, most in limits.items())
    print()
    return kept


def print_round_trips(trips, names):
    """Whether divvy takes no more of them than it may."""
    print("an uncontended pair, on a link of %.0f ms" % (ROUND_TRIP_S * 1000))
    for (recipe, what), values in trips.items():
        cells = [values[name] if name in values else "" for name in names]
        print("%-34s" % ("%s: %s" % (recipe, what.replace("_", " "))) + "".join("%10s" % cell for cell in cells))
    print()
    return all(trips[recipe, "round_trips_until_gone"]["divvy"] < MOST_ROUND_TRIPS + 0.5 for recipe in RECIPES)


def print_targets(runs, names, kept, few):
    print("Targets")
    for recipe, wanted in WANTED.items():
        for name in (n for n in names if n in wanted):
            ratio = middle(runs, (recipe, "pairs_per_s"), name, ratio=True)
            spread = "(%s)" % " ".join("%.2f" % (r[recipe, "pairs_per_s"]["divvy"] / r[recipe, "pairs_per_s"][name])
                                       for r in runs)
            print("    %-34s>= %-6g%8.2f   %-8s%s" % ("%s: pairs, divvy / %s" % (recipe, name), wanted[name], ratio,
                                                      "met" if ratio >= wanted[name] else "MISSED", spread))
    print("    %-34s%-9s%8s   %s" % ("requests of a hand-over", "as above", "", "met" if kept else "MISSED"))
    if few is not None:
        print("    %-34s%-9s%8s   %s" % ("round trips until it is gone", "<= %d" % MOST_ROUND_TRIPS, "",
                                         "met" if few else "MISSED"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--round-trips", action="store_true")
    parser.add_argument("--json")
    parser.add_argument("peers", nargs="+")
    arguments = parser.parse_args()
    peers = [Peer(*text.split("=", 1)) for text in arguments.peers]
    names = [peer.name for peer in peers]
    runs = measure(peers, arguments.rounds, max(1, round(arguments.seconds * 1000 / SLICE_MS)))
    divvy = peers[names.index("divvy")]
    costs = {(recipe, waiters): divvy.ask("count", recipe, waiters) for recipe in RECIPES for waiters in COUNTED}
    for cost in costs.values():
        cost.pop("waiters")
    for peer in peers:
        peer.end()
    trips = round_trips(arguments.peers) if arguments.round_trips else {}
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as out:
            for number, run in enumerate(runs):
                for (recipe, what), values in run.items():
                    print(json.dumps({"round": number, "recipe": recipe, "what": what, **values}), file=out)
            for (recipe, waiters), cost in costs.items():
                print(json.dumps({"recipe": recipe, "waiters": waiters, "cost": cost}), file=out)
            for (recipe, what), values in trips.items():
                print(json.dumps({"recipe": recipe, "what": what, **values}), file=out)
    print("\nmedians of %d rounds, %g s of pairs of each peer and recipe in a round\n" % (len(runs), arguments.seconds))
    print_times(runs, names)
    few = print_round_trips(trips, names) if trips else None
    kept = print_costs(costs)
    print_targets(runs, names, kept, few)
    sys.exit(0 if kept else 1)


if __name__ == "__main__":
    main()
