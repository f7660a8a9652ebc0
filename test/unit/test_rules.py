#!/usr/bin/env python3
"""Every rule has one definition and somebody who keeps it. SPDX-License-Identifier: Apache-2.0

Reads the numbers that docs/protocol.md defines, those of rules (P1, D23) and of invariants (S1, L3), and all places
that cite one: comments and strings of code, tests and tools, and documents. Fails on a number that is defined twice, on
a citation of a number that nobody defines, on a rule that neither lib/ nor tools/ cites, and on an invariant that no
test cites. The table of an item's moves is the same there and in lib/partitioner/item.c."""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROTOCOL = "docs/protocol.md"
MOVES = "lib/partitioner/item.c"
KINDS = {".c", ".h", ".md", ".sh", ".py", ".txt", ".cmake", ".1", ".patch"}
INVARIANTS = "SL"  # of safety, of liveness
# "- **P1 (name).**" begins a rule, "| S1 |" an invariant.
DEFINITION = re.compile(r"^(?:- \*\*|\| )([A-Z])([1-9][0-9]?)\b", re.MULTILINE)
# "D10 to D20", "S1 to S8": all of them are cited. Numbers in between that fell away are passed over.
RANGE = re.compile(r"\b([A-Z])([1-9][0-9]?) to \1?([1-9][0-9]?)\b")
COMMENT_OR_STRING = {
    "c": re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.DOTALL),
    "py": re.compile(r"""\"{3}.*?\"{3}|#[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.DOTALL),
    "sh": re.compile(r"""#[^\n]*"""),
}
# Letters and numbers that are no rules here: a code point, a service of a cloud, a digit of a UUID, bytes.
FOREIGN = re.compile(r"U\+[0-9A-F-]+|%[0-9A-F]{2}|0x[0-9A-Fa-f]+|\bS3\b(?= storage)|Curator V[0-9]|V[0-9] of Curator|"
                     r"\bC11\b|`(?:[0-9A-F]{2} )+[0-9A-F]{2}`")


def prose_of(path, text):
    """Returns the text with all that is neither a comment nor a string left out; lines stay where they are."""
    kind = {".c": "c", ".h": "c", ".py": "py", ".sh": "sh", ".txt": "sh", ".cmake": "sh"}.get(path.suffix)
    if kind is None:
        return text
    prose, end = [], 0
    for match in COMMENT_OR_STRING[kind].finditer(text):
        prose += ["\n" * text.count("\n", end, match.start()), " ", match.group()]
        end = match.end()
    return "".join(prose)


def tracked_texts():
    names = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], capture_output=True, check=True).stdout.decode()
    for name in filter(None, names.split("\0")):
        path = ROOT / name
        if path.is_file() and path.suffix in KINDS and name != "test/unit/test_rules.py":
            yield name, FOREIGN.sub("", prose_of(path, path.read_text()))


def read_definitions():
    """Returns the lines that define each number."""
    text = (ROOT / PROTOCOL).read_text()
    lines = {}
    for match in DEFINITION.finditer(text):
        lines.setdefault(match[1] + match[2], []).append(text.count("\n", 0, match.start()) + 1)
    return lines


def citations_of(text, defined):
    """Yields each number that the text cites, and its line."""
    prefixes = "".join(sorted({rule[0] for rule in defined}))
    for match in re.finditer(rf"(?<![\w\\%+./])([{prefixes}])([1-9][0-9]?)(?![\w.]*[\w(=])", text):
        yield match[1] + match[2], text.count("\n", 0, match.start()) + 1
    for match in RANGE.finditer(text):
        if match[1] in prefixes:
            for number in range(int(match[2]) + 1, int(match[3])):
                if f"{match[1]}{number}" in defined:
                    yield f"{match[1]}{number}", text.count("\n", 0, match.start()) + 1


def list_words(text):
    return [word.lower() for word in re.findall(r"[A-Za-z]+", text)]


def expand(masks, code):
    """Returns the names of a mask such as `OWNED | STAGE(REVOKED)`."""
    if masks.strip() == "~0u":
        return ["any"]
    names = []
    for kind, name in re.findall(r"(?:(PLACE|STAGE)\()?([A-Z_]+)\)?", masks):
        macro = re.search(rf"^#define {name} \((.*)\)$", code, re.MULTILINE)
        names += [name.lower()] if kind or not macro else expand(macro[1], code)
    return names


def moves_in_code():
    """Returns, for each move, the words of its row as docs/protocol.md has them."""
    code, rows = (ROOT / MOVES).read_text(), {}
    row = re.compile(r"\[DV_MOVE_([A-Z_]+)\] = \{(.*?), (SAME|DV_PLACE_\w+), (.*?), (SAME|DV_STAGE_\w+)\}", re.DOTALL)
    for name, places, place, stages, stage in row.findall(code):
        words = []
        for masks, to in ((places, place), (stages, stage)):
            words += expand(masks, code) + ([] if to == "SAME" else [to[9:].lower()])
        rows[name.replace("_", " ").lower()] = words
    return rows


def moves_in_protocol():
    block = re.search(r"\(the life of an item\).*?```text\n(.*?)```", (ROOT / PROTOCOL).read_text(), re.DOTALL)[1]
    return {line[:10].strip(): list_words(re.sub(r"(?:[A-Z][0-9]+(?:, )?)+$", "", line[10:]))
            for line in block.splitlines()}


def check_moves():
    ours, theirs = moves_in_code(), moves_in_protocol()
    for move in sorted(ours.keys() | theirs.keys()):
        if ours.get(move) != theirs.get(move):
            yield f"the move {move}: {MOVES} has {ours.get(move)}, {PROTOCOL} has {theirs.get(move)}"


def main():
    defined = read_definitions()
    faults = [f"{PROTOCOL}:{line}: {rule} is defined in line {lines[0]} already"
              for rule, lines in defined.items() for line in lines[1:]]
    faults += check_moves()
    kept, watched, count = set(), set(), 0
    for name, text in tracked_texts():
        for rule, line in citations_of(text, defined):
            count += 1
            if rule not in defined:
                faults.append(f"{name}:{line}: cites {rule}, which {PROTOCOL} does not define")
            if name.startswith(("lib/", "tools/", "include/")):
                kept.add(rule)
            if name.startswith("test/"):
                watched.add(rule)
    for rule, lines in defined.items():
        if rule[0] in INVARIANTS:
            if rule not in watched:
                faults.append(f"{PROTOCOL}:{lines[0]}: no test cites the invariant {rule}")
        elif rule not in kept:
            faults.append(f"{PROTOCOL}:{lines[0]}: neither lib/ nor tools/ cites the rule {rule}")
    print("\n".join(faults), end="\n" if faults else "")
    print(f"{len(defined)} rules and invariants, {count} citations, {len(faults)} faults")
    return 1 if faults or not defined or not count else 0


sys.exit(main())
