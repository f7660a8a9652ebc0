#!/usr/bin/env python3
"""The tables of P4 and P18 are the same in the code and in their model. SPDX-License-Identifier: Apache-2.0

Reads an item's moves in docs/protocol.md, lib/partitioner/item.c and test/model/rules/member.h, and the states that may
follow one another in lib/partitioner/state.c and the model. Fails where two differ.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLACES = ["NONE", "ASKED", "WAITING", "PARKED", "FIRST", "LEAVING"]
STAGES = ["HIDDEN", "PREPARING", "SHOWN", "KEPT", "LEAVING", "REVOKED"]


def read(path):
    return (ROOT / path).read_text()


def names(text, aliases, known):
    """Returns the set of the names in the text."""
    if "any" in text or "~0u" in text:
        return frozenset(known)
    for alias, stands_for in aliases.items():
        text = re.sub(rf"\b{alias}\b", " ".join(stands_for), text)
    return frozenset(re.findall(r"\b(?:%s)\b" % "|".join(known), text))


def end(text):
    """Returns the name that a move ends with, or None where nothing changes."""
    name = text.strip().replace("DV_PLACE_", "").replace("DV_STAGE_", "")
    return None if name in ("SAME", "") else name


def of_protocol():
    block = re.search(r"P18 \(the life.*?```text\n(.*?)```", read("docs/protocol.md"), re.S).group(1)
    moves = {}
    for line in block.splitlines():
        name, place, stage = line[:10].strip(), line[10:51], line[51:91]
        row = []
        for text, known in ((place, PLACES), (stage, STAGES)):
            text = "any" if text.strip() == "any" else text.upper()
            before, _, after = text.partition("->")
            row += [names(before, {}, known), end(after)]
        moves[name] = tuple(row)
    return moves


def of_code():
    queued, unshown = PLACES[1:4], STAGES[:2]
    moves = {}
    row = r"\[DV_MOVE_(\w+)\] = \{([^,]*), ([^,]*), ([^,]*), ([^,]*)\},"
    for name, places, place, stages, stage in re.findall(row, read("lib/partitioner/item.c")):
        moves[name.lower().replace("_", " ")] = (
            names(places, {"IN_QUEUE": queued}, PLACES), end(place),
            names(stages, {"NOT_SHOWN": unshown, "OWNED": STAGES[2:5]}, STAGES), end(stage))
    return moves


def of_model(text):
    block = re.search(r"ROWS\[MOVES\] = \{\n(.*?)\n\};", text, re.S).group(1)
    row = r'\{"([\w ]+)", ((?:\([^)]*\)|[^,(])*), ((?:\([^)]*\)|[^,(])*), ((?:\([^)]*\)|[^,(])*), (\w+)\},'
    shared = {"NO_PLACE": ["NONE"], "GOING": ["LEAVING"]}
    moves = {}
    for name, places, place, stages, stage in re.findall(row, block):
        place = {"NO_PLACE": "NONE", "GOING": "LEAVING"}.get(place, place)
        moves[name] = (names(places, {"QUEUED": PLACES[1:4], **shared}, PLACES), end(place),
                       names(stages, {"UNSHOWN": STAGES[:2], "OWNED": STAGES[2:5]}, STAGES), end(stage))
    return moves


def states_of_code():
    block = re.search(r"allowed\[4\]\[4\] = \{\n(.*?)\n    \};", read("lib/partitioner/state.c"), re.S).group(1)
    rows = re.findall(r"\[DIVVY_(\w+)\] = \{(.*?)\},\n", block + "\n")
    return {name: set(re.findall(r"DIVVY_(\w+)\] = true", row)) for name, row in rows}


def states_of_model(text):
    block = re.search(r"NEXT_STATES\[STATES\] = \{(.*?)\};", text, re.S).group(1)
    rows = re.findall(r"set\((.*?)\)|\b0\b", block)
    named = zip(["ALLOCATING", "ACQUIRED", "RELEASE", "FAILURE"], rows)
    return {name: set(row.replace(" ", "").split(",")) for name, row in named if row}


def main():
    model = read("test/model/rules/member.h")
    tables = {
        "docs/protocol.md": of_protocol(),
        "lib/partitioner/item.c": of_code(),
        "test/model/rules/member.h": of_model(model),
    }
    faults = 0
    for move in sorted(set().union(*tables.values())):
        rows = {path: table.get(move) for path, table in tables.items()}
        if len(set(rows.values())) == 1:
            continue
        faults += 1
        print(f"the move {move} differs:")
        for path, row in rows.items():
            print(f"    {path}: {row and [sorted(r) if isinstance(r, frozenset) else r for r in row]}")
    if states_of_code() != states_of_model(model):
        faults += 1
        print(f"the states differ:\n    code: {states_of_code()}\n    model: {states_of_model(model)}")
    counts = [len(table) for table in tables.values()]
    print(f"{counts} moves, {sum(map(len, states_of_code().values()))} changes of state, {faults} faults")
    return 1 if faults or min(counts) < 16 or not states_of_code() else 0


if __name__ == "__main__":
    sys.exit(main())
