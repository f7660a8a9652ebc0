#!/usr/bin/env python3
"""The rooms of lib/ stand on one another as docs/architecture.md says. SPDX-License-Identifier: Apache-2.0

Reads the includes of every file. Fails on one that points up, on a circle of headers, and on the native client's header
outside of the rooms that talk to it.
"""

import pathlib
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
    ["handover"],
    ["partitioner"],
    ["zookeeper", "testing"],
]
HEIGHT = {room: height for height, row in enumerate(ROWS) for room in row}
NATIVE = re.compile(r"#include <zookeeper/")
NATIVE_ROOMS = {"znode/apache", "zookeeper"}


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


def check_native_client():
    for path in sorted(LIB.rglob("*.[ch]")):
        name = str(path.relative_to(LIB))
        if NATIVE.search(path.read_text()) and room_of(name) not in NATIVE_ROOMS:
            yield f"lib/{name}: includes the native client, which only {', '.join(sorted(NATIVE_ROOMS))} may"


def main():
    includes = read_includes()
    assert len(includes) > 100, "lib/ was not found"
    faults = [*check_rooms(includes), *check_circles(includes), *check_native_client()]
    for fault in faults:
        print(fault)
    arrows = sum(len(targets) for targets in includes.values())
    print(f"{len(includes)} files, {arrows} includes, {len(faults)} faults")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
