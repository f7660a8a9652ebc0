#!/usr/bin/python3
"""Conduct the peers of bench/registry.sh, and print their medians.  SPDX-License-Identifier: Apache-2.0

usage: registry.py [--rounds N] [--seconds S] [--services N] [--watchers N] [--json FILE] NAME=COMMAND ...

Starts each COMMAND, which serves the commands of registry_peer.h, and gives them short slices of work in turn,
beginning with another one each time, so that whatever disturbs the machine for a while disturbs all alike. A ratio is
taken within a round; what is printed of all is the median over the rounds. Names: floor, divvy, and any others.
Exit status: 0; 1 when a look into divvy's view sent a request. Times are judged, but fail nothing.
"""
import argparse
import json
import random
import shlex
import statistics
import subprocess
import sys

SLICE_MS = 300
WARM_UP_MS = 1000
CACHED_MS = 100
CHANGES = 10
CHANGES_TO_WARM_UP = 3
# What is measured, the peers that have it (None: all), and its words.
RATES = {"heartbeats": (None, "heartbeats a second"), "read": (None, "entries read a second"),
         "cached_all": (("divvy", "curator"), "entries a second, from a view")}
WANTED_READ = 0.8  # divvy / floor
WANTED_VIEW = 1e7  # entries a second
WANTED_ONE_US = 1


class Peer:
    def __init__(self, name, command):
        self.name = name
        self.process = subprocess.Popen(shlex.split(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, verb, number):
        self.process.stdin.write("%s %d\n" % (verb, number))
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            sys.exit("bench/registry: %s has ended" % self.name)
        return json.loads(line)

    def end(self):
        self.process.stdin.close()
        if self.process.wait(60) != 0:
            sys.exit("bench/registry: %s has failed" % self.name)


def in_turn(peers, times):
    """Each peer so many times; who follows whom changes, but is the same in each run."""
    order = random.Random(1)
    for _ in range(times):
        yield from order.sample(peers, len(peers))


def some(peers, names):
    return [peer for peer in peers if names is None or peer.name in names]


def rate(peers, verb, slices, slice_ms):
    """{name: a second}"""
    count, seconds = dict.fromkeys(peers, 0), dict.fromkeys(peers, 0.0)
    for peer in in_turn(peers, slices):
        answer = peer.ask(verb, slice_ms)
        count[peer] += answer["count"]
        seconds[peer] += answer["seconds"]
    return {peer.name: count[peer] / seconds[peer] for peer in peers}


def cached_one(peers, verb):
    """{name: microseconds}, and how many requests divvy sent."""
    us, requests = {}, 0
    for peer in in_turn(peers, 1):
        answer = peer.ask(verb, CACHED_MS)
        us[peer.name] = answer["seconds"] / answer["count"] * 1e6
        requests += answer.get("requests", 0)
    return us, requests


def changes(peers, watchers):
    """{name: microseconds until all know}, {name: packets for each watcher}, of one change."""
    us, packets = {}, {}
    for peer in in_turn(peers, 1):
        answer = peer.ask("change", CHANGES)
        us[peer.name] = statistics.median(answer["us"])
        packets[peer.name] = answer["packets"] / CHANGES / watchers
    return us, packets


def warm_up(peers, services):
    for peer in peers:
        answer = peer.ask("fill", services)
        print("bench/registry: %s: %d services in %.2f s, %d bytes each" % (peer.name, services, answer["seconds"],
                                                                          answer["bytes"]), file=sys.stderr)
    for verb, (names, _) in RATES.items():
        for peer in in_turn(some(peers, names), 2):
            peer.ask(verb, WARM_UP_MS)


def measure(peers, arguments):
    """A dictionary for each round: what to {name: value}; and how many requests divvy sent for looks into its view."""
    slices, requests = max(1, round(arguments.seconds * 1000 / SLICE_MS)), 0
    warm_up(peers, arguments.services)
    runs = [{} for _ in range(arguments.rounds)]
    for number, run in enumerate(runs):
        print("bench/registry: round %d of %d" % (number + 1, len(runs)), file=sys.stderr)
        for verb, (names, _) in RATES.items():
            run[verb] = rate(some(peers, names), verb, slices if names is None else 2,
                             SLICE_MS if names is None else CACHED_MS)
        for verb, names in (("cached_one", ("divvy", "curator")), ("cached_copy", ("divvy",)),
                            ("cached_busy", ("divvy",))):
            run[verb], sent = cached_one(some(peers, names), verb)
            requests += sent
    print("bench/registry: %d watchers each" % arguments.watchers, file=sys.stderr)
    for peer in peers:
        peer.ask("watch", arguments.watchers)
        peer.ask("change", CHANGES_TO_WARM_UP)
    for run in runs:
        run["change"], run["packets"] = changes(peers, arguments.watchers)
    for peer in peers:
        peer.ask("unwatch", 1)
    return runs, requests


def middle(runs, what, name):
    values = [run[what][name] for run in runs if name in run[what]]
    return statistics.median(values) if values else None


def ratios(runs, what, name, of="divvy"):
    return [run[what][of] / run[what][name] for run in runs]


def print_table(runs, names):
    def row(words, what, form):
        values = [middle(runs, what, name) for name in names]
        print("%-36s" % words + "".join("%12s" % ("-" if value is None else form % value) for value in values))

    print("%-36s" % "" + "".join("%12s" % name for name in names))
    for what, (_, words) in RATES.items():
        row(words, what, "%.0f")
    row("least loaded, from a view, us", "cached_one", "%.2f")
    row("the same, copied, us", "cached_copy", "%.2f")
    row("the same, while services change, us", "cached_busy", "%.2f")
    row("a change until all watchers know, us", "change", "%.0f")
    row("packets of it, for each watcher", "packets", "%.2f")
    print()


def print_ratios(runs, names, requests):
    """Whether looking into a view sent nothing."""
    print("%-36s%8s   %s" % ("divvy /", "median", "rounds"))
    for what, words in (("heartbeats", "heartbeats"), ("read", "entries read"), ("change", "time of a change")):
        for name in (n for n in names if n != "divvy"):
            found = ratios(runs, what, name)
            judged = ""
            if (what, name) == ("read", "floor"):
                met = statistics.median(found) >= WANTED_READ
                judged = "wanted >= %g: %s" % (WANTED_READ, "met" if met else "MISSED")
            print("%-36s%8.2f   (%s) %s" % ("%s, %s" % (words, name), statistics.median(found),
                                            " ".join("%.2f" % one for one in found), judged))
    for what, words, wanted, most in (("cached_all", "entries a second, from a view", WANTED_VIEW, False),
                                      ("cached_one", "least loaded, from a view, us", WANTED_ONE_US, True)):
        found = middle(runs, what, "divvy")
        print("%-36s%8.3g   wanted %s %g: %s" % (words, found, "<=" if most else ">=", wanted,
                                               "met" if (found <= wanted) == most else "MISSED"))
    print("%-36s%8d   wanted 0: %s" % ("requests of all looks into the view", requests,
                                       "MISSED" if requests else "met"))
    return requests == 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.5)
    parser.add_argument("--services", type=int, default=1000)
    parser.add_argument("--watchers", type=int, default=100)
    parser.add_argument("--json")
    parser.add_argument("peers", nargs="+")
    arguments = parser.parse_args()
    peers = [Peer(*text.split("=", 1)) for text in arguments.peers]
    names = [peer.name for peer in peers]
    runs, requests = measure(peers, arguments)
    for peer in peers:
        peer.end()
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as out:
            for number, run in enumerate(runs):
                for what, values in run.items():
                    print(json.dumps({"round": number, "what": what, **values}), file=out)
    print("\n%d services in 10 roles, %d watchers; medians of %d rounds\n" % (arguments.services, arguments.watchers,
                                                                            len(runs)))
    print_table(runs, names)
    sys.exit(0 if print_ratios(runs, names, requests) else 1)


if __name__ == "__main__":
    main()
