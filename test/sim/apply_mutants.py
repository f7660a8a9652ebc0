#!/usr/bin/env python3
"""Puts known bugs into copies of the library's files. SPDX-License-Identifier: Apache-2.0

usage: apply_mutants.py [--root FOLDER] --list | OUTPUT

Each test/sim/mutants/NAME.patch puts one bug into files of lib/, on lines that ask for DV_MUTANT(NAME). OUTPUT receives
a copy of each patched file, with the bugs of all patches. --list prints the files that the patches name.

A hunk must fit at exactly one place of its file, to the letter. Its line numbers do not count. No two patches may
change one line. They may insert at one place, where the bugs then stand in the order of their names.
"""

import argparse
import pathlib
import re
import sys
from typing import NamedTuple

PATCHES = "test/sim/mutants"
LIST = "test/sim/mutant.h"
INCLUDE = '#include "sim/mutant.h"\n'
USE = re.compile(r"DV_MUTANT\((\w+)\)")
FILES = re.compile(r"--- (lib/[\w/]+\.c)(?:\t.*)?\n\+\+\+ \1(?:\t.*)?\n")
HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,(\d+))? @@")
AGAIN = "Put the bug into the file as it is now, and write the patch again (docs/testing.md, Known bugs put back)"


class Fault(Exception):
    """Something that the author of a patch has to mend."""


class Hunk(NamedTuple):
    patch: str  # the path of the patch
    line: int  # of the hunk's head in the patch
    file: str
    at: int  # the line of the file that the head names
    lines: list  # each with its sign


class Edit(NamedTuple):
    """Replaces the lines from `start` up to `end`, which are the same where it only inserts."""

    start: int
    end: int
    patch: str
    lines: list


def read_hunk(patch, file, head, rest):
    """Returns the hunk whose head is the line number `head`, with its lines from `rest`."""
    match = HUNK.match(rest[0])
    if not match:
        raise Fault(f"{patch}:{head}: is no head of a hunk")
    old_count, new_count = (int(count or 1) for count in match.group(2, 3))
    lines = []
    for line in rest[1:]:
        if old_count == 0 and new_count == 0:
            break
        if line == "\n":  # an editor has taken the space off its end
            line = " \n"
        if line[0] not in " -+":
            raise Fault(f"{patch}:{head + len(lines) + 1}: is no line of a hunk")
        old_count -= line[0] in " -"
        new_count -= line[0] in " +"
        lines.append(line)
    if old_count or new_count:
        raise Fault(f"{patch}:{head}: the hunk has not as many lines as its head says. Write the patch again by diff")
    return Hunk(patch, head, file, int(match.group(1)), lines)


def read_patch(root, path):
    """Returns the hunks of a unified diff."""
    patch = str(path.relative_to(root))
    lines = path.read_text().splitlines(keepends=True)
    hunks, file, i = [], None, 0
    while i < len(lines):
        if lines[i].startswith("--- "):
            names = FILES.match("".join(lines[i : i + 2]))
            if not names:
                raise Fault(f"{patch}:{i + 1}: names no file lib/....c. Write the patch by git diff --no-prefix")
            file = names.group(1)
            i += 1
        elif lines[i].startswith("@@"):
            if file is None:
                raise Fault(f"{patch}:{i + 1}: the hunk is of no file. Write the patch by git diff --no-prefix")
            hunks.append(read_hunk(patch, file, i + 1, lines[i:]))
            i += len(hunks[-1].lines)
        i += 1
    if not hunks:
        raise Fault(f"{patch}: has no hunk")
    return hunks


def difference(hunk, block, text):
    """Says where the file differs from the hunk, at the place that is most like it."""
    def likeness(at):
        return sum(a == b for a, b in zip(block, text[at:])), -abs(at + 1 - hunk.at)

    at = max(range(len(text)), key=likeness, default=0)
    for line, wanted in enumerate(block, at):
        there = text[line] if line < len(text) else "the end of the file"
        if there != wanted:
            return f"{hunk.file}:{line + 1} is\n    {there.rstrip()}\nand the patch expects\n    {wanted.rstrip()}"
    raise AssertionError


def place(hunk, text):
    """Returns where in the lines of its file the hunk begins."""
    block = [line[1:] for line in hunk.lines if line[0] != "+"]
    if not block:
        raise Fault(f"{hunk.patch}:{hunk.line}: the hunk has no context. Write the patch again with git diff -U1")
    places = [at for at in range(len(text)) if text[at : at + len(block)] == block]
    if not places:
        raise Fault(f"{hunk.patch}:{hunk.line}: does not fit. {difference(hunk, block, text)}\n{AGAIN}")
    if len(places) > 1:
        there = " and ".join(str(at + 1) for at in places)
        raise Fault(f"{hunk.patch}:{hunk.line}: fits in {hunk.file} at the lines {there}. Write the patch again with "
                    "more context, as by git diff -U3")
    return places[0]


def edits_of(hunk, text):
    """Returns what the hunk changes, one edit for each run of changed lines."""
    edits, at, run = [], place(hunk, text), None
    for line in hunk.lines:
        if line[0] == " ":
            run = None
        elif run is None:
            run = Edit(at, at, hunk.patch, [])
            edits.append(run)
        if line[0] == "+":
            run.lines.append(line[1:])
        else:
            at += 1
        if line[0] == "-":
            run = edits[-1] = run._replace(end=at)
    return edits


def check_apart(file, edits):
    """Fails where two edits, in the order of the file, want the same line."""
    for before, after in zip(edits, edits[1:]):
        if after.start < before.end:
            raise Fault(f"{before.patch} and {after.patch}: both change {file}:{after.start + 1}. "
                        "Let one of them insert a line of its own beside it")


def mutate(root, file, hunks):
    """Returns the file with all the bugs that the hunks put into it, and the faults of those that do not fit."""
    path = root / file
    if not path.is_file():
        return None, [f"{hunk.patch}:{hunk.line}: there is no {file}. {AGAIN}" for hunk in hunks]
    text = path.read_text().splitlines(keepends=True)
    edits, faults = [], []
    for hunk in hunks:
        try:
            edits += edits_of(hunk, text)
        except Fault as fault:
            faults.append(str(fault))
    edits.sort()
    try:
        check_apart(file, edits)
    except Fault as fault:
        faults.append(str(fault))
    for edit in reversed(edits):
        text[edit.start : edit.end] = edit.lines
    return INCLUDE + "".join(text), faults


def check_patch(name, hunks):
    """Yields what the patch of `name` asks for but that bug, and that it does not ask for it."""
    asks = False
    for hunk in hunks:
        for line in (line for line in hunk.lines if "DV_MUTANT" in line):
            asks = True
            if line[0] != "+" or set(USE.findall(line)) != {name}:
                yield f"{hunk.patch}:{hunk.line}: may only add DV_MUTANT({name}), and has\n    {line.rstrip()}"
    if not asks:
        yield f"{PATCHES}/{name}.patch: adds no line with DV_MUTANT({name}), so the bug would always be in force"


def check_names(root, hunks):
    """Yields what is wrong between the list of bugs, the patches, and the simulator, which has bugs of its own."""
    listed = re.findall(r"^\s*X\((\w+),", (root / LIST).read_text(), re.MULTILINE)
    simulated = {name for path in (root / "test/sim").glob("*.c") for name in USE.findall(path.read_text())}
    of_name = {}
    for hunk in hunks:
        of_name.setdefault(pathlib.Path(hunk.patch).stem, []).append(hunk)
    for name, own in of_name.items():
        yield from check_patch(name, own)
        if name not in listed:
            yield f"{PATCHES}/{name}.patch: {LIST} does not know {name}. Put it into the list there"
    for name in listed:
        if name not in of_name and name not in simulated:
            yield f"{LIST}: {name} has neither a patch, {PATCHES}/{name}.patch, nor a line in test/sim/*.c"


def write_if_changed(path, text):
    """Leaves a file alone that says so already: it need not be compiled again."""
    if path.is_file() and path.read_text() == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def read_patches(root):
    """Returns the hunks of all patches, in the order of their names, and the faults of those that cannot be read."""
    hunks, faults = [], []
    for path in sorted((root / PATCHES).glob("*.patch")):
        try:
            hunks += read_patch(root, path)
        except Fault as fault:
            faults.append(str(fault))
    return hunks, faults


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2])
    parser.add_argument("--list", action="store_true", help="print the files that the patches name")
    parser.add_argument("output", nargs="?", type=pathlib.Path)
    arguments = parser.parse_args()
    root = arguments.root
    hunks, faults = read_patches(root)
    files = sorted({hunk.file for hunk in hunks})
    if arguments.list:
        print("\n".join(files))
    elif arguments.output is None:
        parser.error("OUTPUT or --list is needed")
    else:
        copies = {}
        faults += check_names(root, hunks)
        for file in files:
            copies[file], found = mutate(root, file, [hunk for hunk in hunks if hunk.file == file])
            faults += found
        if not faults:
            for file, text in copies.items():
                write_if_changed(arguments.output / file, text)
    for fault in faults:
        print(fault, file=sys.stderr)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
