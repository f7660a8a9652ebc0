#!/usr/bin/env python3
"""The rooms of lib/ stand on one another as docs/architecture.md says. SPDX-License-Identifier: Apache-2.0

Reads the includes of every file. Fails on one that points up, on a circle of headers, on two with one guard, and on the
native client's header outside of the rooms that talk to it. Reads the calls between the files of a room, too. Fails
where more files call one another in a circle, or more calls run against the best order of the files, than may. Fails
where two files write one field of a partitioner, an item, or its handovers.
"""

import pathlib
import random
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIB = ROOT / "lib"

# From the bottom to the top. A room may include those before it, and those of its own row only itself.
ROWS = [
    ["divvy"],  # include/divvy
    ["base"],
    ["znode"],
    ["znode/apache", "assign", "client"],
    ["recipe"],
    ["registry", "plan"],
    ["follow", "handover"],
    ["partitioner", "pool"],
    ["zookeeper", "testing", "workers"],
]
HEIGHT = {room: height for height, row in enumerate(ROWS) for room in row}
# The most files in one circle of calls, and the most of a hundred calls, each from one file to another, that run back
# up.
CIRCLE_MAX, UPWARD_PER_CENT = 5, 8
# What may be written in a second file: a member begins with these, before anything runs.
BEGINS = {"partitioner/config.c", "partitioner/partitioner.c"}
HEADS = {
    "partitioner": r"(?:\bp|partitioner|h->p|f->p)->",
    "item": r"(?:\b(?:item|one|any)|\bd->item|dv_item_at\([^;=]*?\)|dealt\[[^;=]*?\])->",
    "handover": r"(?:\bh|->handover)->",
}
FUNCTION = re.compile(r"^(?!static\b)[a-z][\w *]*?\b(\w+)\([^;{}]*\)\s*\{", re.MULTILINE)
FIELD = r"([a-z_]+(?:\.[a-z_]+)*)(?:\[[^\]]*\])?"
NATIVE = re.compile(r"#include <zookeeper/")
NATIVE_ROOMS = {"znode/apache", "zookeeper"}
# A room that stands on public functions, and what else it may include.
PUBLIC_ROOMS = {"workers": {"base/config.h", "base/threads.h", "client/error.h"}}


def room_of(path):
    return path.rpartition("/")[0]


def read_includes():
    """Returns what each file of lib/ includes by quotes, by its path below lib/."""
    includes = {}
    for path in sorted(LIB.rglob("*.[ch]")):
        name = str(path.relative_to(LIB))
        includes[name] = re.findall(r'^#include "([^"]+)"', path.read_text(), re.MULTILINE)
    return includes


def check_rooms(includes):
    for name, targets in includes.items():
        if room_of(name) not in HEIGHT:
            yield f"lib/{name}: no row of test_rooms.py has this room"
            continue
        for target in targets:
            here, there = room_of(name), room_of(target)
            if there not in HEIGHT:
                yield f'lib/{name}: includes "{target}", which stands in no room'
            elif here != there and HEIGHT[there] >= HEIGHT[here]:
                yield f'lib/{name}: includes "{target}", which points up: lib/{there} does not stand below lib/{here}'


def check_public_rooms(includes):
    for name, targets in includes.items():
        for target in targets if room_of(name) in PUBLIC_ROOMS else []:
            if room_of(target) not in ("divvy", room_of(name)) and target not in PUBLIC_ROOMS[room_of(name)]:
                yield f'lib/{name}: includes "{target}"; the room stands on public functions'


def check_circles(includes):
    headers = {name: [t for t in targets if t in includes] for name, targets in includes.items() if name.endswith(".h")}
    done, path = set(), []

    def visit(name):
        if name in path:
            return " -> ".join(path[path.index(name):] + [name])
        if name in done:
            return None
        path.append(name)
        found = next((circle for circle in map(visit, headers[name]) if circle), None)
        path.pop()
        done.add(name)
        return found

    for name in headers:
        circle = visit(name)
        if circle:
            yield f"a circle of headers: {circle}"
            return


def check_guards(includes):
    """Two headers with one guard hide each other, in whichever file includes both."""
    homes = {}
    for name in (name for name in includes if name.endswith(".h")):
        guard = re.search(r"^#ifndef (\w+)$", (LIB / name).read_text(), re.MULTILINE)
        other = homes.setdefault(guard[1], name) if guard else None
        if other != name:
            yield f"lib/{name}: has no guard" if not guard else f"lib/{name}: has the guard of lib/{other}, {guard[1]}"


def check_native_client():
    for path in sorted(LIB.rglob("*.[ch]")):
        name = str(path.relative_to(LIB))
        if NATIVE.search(path.read_text()) and room_of(name) not in NATIVE_ROOMS:
            yield f"lib/{name}: includes the native client, which only {', '.join(sorted(NATIVE_ROOMS))} may"


def code_of(path):
    """Returns the text of a file without comments and strings."""
    text = re.sub(r"/\*.*?\*/", " ", path.read_text(), flags=re.S)
    return re.sub(r'"(?:\\.|[^"\\])*"', '""', text)


def read_calls(room):
    """Returns the files of a room, and their pairs where the first calls a function of the second."""
    texts = {path.name: code_of(path) for path in sorted((LIB / room).glob("*.c"))}
    home = {}
    for name, text in texts.items():
        home.update((function, name) for function in FUNCTION.findall(text))
    calls = set()
    for name, text in texts.items():
        for word in re.findall(r"\b[a-z]\w+\b", text):
            if home.get(word, name) != name:
                calls.add((name, home[word]))
    return list(texts), calls


def find_circles(files, calls):
    """Returns the files in groups that call one another in circles, those that are called first (Tarjan)."""
    low, stack, groups = {}, [], []

    def visit(file):
        low[file] = at = len(low)
        stack.append(file)
        for caller, callee in sorted(calls):
            if caller != file:
                continue
            if callee not in low:
                visit(callee)
            if callee in stack:
                low[file] = min(low[file], low[callee])
        if low[file] == at:
            groups.append(stack[stack.index(file) :])
            del stack[stack.index(file) :]

    for file in files:
        if file not in low:
            visit(file)
    return groups


def count_upward(order, calls):
    place = {file: at for at, file in enumerate(order)}
    return sum(place[caller] < place[callee] for caller, callee in calls)


def improve(order, calls):
    """Moves one file after the other to where the fewest calls run up, until no move helps."""
    best = count_upward(order, calls)
    moved = True
    while moved:
        moved = False
        for file in list(order):
            rest = [other for other in order if other != file]
            for at in range(len(order)):
                tried = rest[:at] + [file] + rest[at:]
                if count_upward(tried, calls) < best:
                    order, best, moved = tried, count_upward(tried, calls), True
    return order, best


def find_order(files, calls):
    """Returns the best order found from a few to begin with, always the same, and how many calls run up in it."""
    draw = random.Random(1)
    starts = [files] + [draw.sample(files, len(files)) for _ in range(10)]
    return min((improve(start, calls) for start in starts), key=lambda found: found[1])


def check_calls():
    for room in HEIGHT:
        files, calls = read_calls(room)
        circles = find_circles(files, calls)
        circle = max(map(len, circles), default=0)
        order, upward = find_order([file for group in circles for file in group], calls)
        upward_max = len(calls) * UPWARD_PER_CENT // 100
        print(f"lib/{room}: {len(files)} files, {len(calls)} calls, {upward} up, {circle} in the largest circle")
        if circle > CIRCLE_MAX:
            yield f"lib/{room}: {circle} files call one another in a circle; {CIRCLE_MAX} may"
        if upward > upward_max:
            place = {file: at for at, file in enumerate(order)}
            up = sorted(f"{a} -> {b}" for a, b in calls if place[a] < place[b])
            yield f"lib/{room}: {upward} calls run up, and {upward_max} may: {', '.join(up)}"


def check_writers():
    for kind, head in HEADS.items():
        writers = {}
        for path in sorted((LIB / "partitioner").glob("*.[ch]")):
            name, text = str(path.relative_to(LIB)), code_of(path)
            written = re.findall(head + FIELD + r"\s*(?:=(?!=)|[-+|&]=|\+\+|--)", text)
            written += re.findall(r"(?:\+\+|--)" + head + FIELD, text)
            for field in written:
                writers.setdefault(field, set()).add(name)
        assert len(writers) > 10, f"no fields of {kind} were found"
        for field, files in sorted(writers.items()):
            if len(files - BEGINS) > 1 or (len(files) > 1 and kind != "partitioner"):
                yield f"{kind}.{field} is written by {', '.join(sorted(files))}"


def main():
    includes = read_includes()
    assert len(includes) > 100, "lib/ was not found"
    faults = [*check_rooms(includes), *check_public_rooms(includes), *check_circles(includes), *check_guards(includes),
              *check_native_client(), *check_calls(), *check_writers()]
    for fault in faults:
        print(fault)
    arrows = sum(len(targets) for targets in includes.values())
    print(f"{len(includes)} files, {arrows} includes, {len(faults)} faults")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
