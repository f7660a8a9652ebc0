#!/usr/bin/env python3
"""The text of the repository keeps to the house style. SPDX-License-Identifier: Apache-2.0

Reads every tracked text file. Fails on a banned phrase in a comment, a document or a message, on a comment of lib/,
include/ or tools/ that begins with What, Whether, Who or Of, on a line of more than 120 columns, and on a source file
of more than 500 lines, or of more than 700 where OWNERS lists it. CONTRIBUTING.md may quote the banned phrases: it
tells them.
"""

import bisect
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
KINDS = {".c", ".h", ".md", ".sh", ".bash", ".py", ".txt", ".cmake", ".1", ".inc"}
SOURCES = {".c", ".h", ".py", ".sh", ".bash", ""}  # without a suffix: scripts
MAX_COLUMNS = 120
MAX_LINES = 500
MAX_LINES_OWNER = 700
# Files that own their state alone, each with its struct, which the file itself defines.
OWNERS = {"lib/plan/reader.c": "dv_plan_reader", "lib/plan/writer.c": "dv_plan_writer"}

PHRASES = {
    "anew": r"anew",
    "whoever": r"whoever",
    "any more": r"any more",
    "memory is out": r"memory is out",
    "is another one": r"is another one",
    "of which": r"of which",
    "nobody any": r"nobody any",
    "as long as that": r"as long as that",
    "at the latest that": r"at the latest that",
    "meanwhile (at an end)": r"meanwhile(?=[.;:)])",
    "it is so that": r"it is so that",
    "hear that": r"hear that",
    "what is to be": r"what is to be",
    "memory was out": r"memory was out",
    "for want of": r"for want of",
    "one way to be wrong less": r"wrong less",
    "all is well": r"all is well",
    "without the memory for it": r"without the memory",
    "tidies not": r"tidies not",
    "to be heard of": r"to be heard of",
}
PATTERNS = {name: re.compile(rf"\b{text}(?![\w])", re.IGNORECASE) for name, text in PHRASES.items()}
# What a comment, a string or a quotation puts at the ends of a line, between two words of a phrase.
EDGES = re.compile(r'^\s*(?:/?\*+(?!/)|//|#+|>|\.\\")?\s*"?|(?:\\n)?"?\s*\\?$')
# A comment begins with a verb, or with the noun of a type.
BEGINNING = re.compile(r"(?:/\*+[ \n*]*|^[ \t]*//+ *)(What|Whether|Who|Of)\b", flags=re.M)
# Files that quote the list.
QUOTE = {"test/unit/test_words.py", "CONTRIBUTING.md"}


def tracked_files():
    names = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], capture_output=True, check=True).stdout.decode()
    for name in filter(None, names.split("\0")):
        path = ROOT / name
        if path.is_file() and (path.suffix in KINDS or is_script(path)):
            yield name, path.read_text()


def is_script(path):
    if path.suffix:
        return False
    with path.open("rb") as file:
        return file.read(2) == b"#!"


def check_phrases(name, text):
    if name in QUOTE:
        return
    lines = [EDGES.sub("", line) for line in text.split("\n")]
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    joined = re.sub(r"\s", " ", "\n".join(lines))
    for phrase, pattern in PATTERNS.items():
        for match in pattern.finditer(joined):
            yield f"{name}:{bisect.bisect_right(starts, match.start())}: banned: {phrase}"


def check_beginnings(name, text):
    if not name.startswith(("lib/", "include/", "tools/")):
        return
    for match in BEGINNING.finditer(text):
        yield f"{name}:{text.count(chr(10), 0, match.start()) + 1}: a comment begins with {match[1]}"


def check_columns(name, text):
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > MAX_COLUMNS and not (name.endswith(".md") and line.startswith("|")):
            yield f"{name}:{number}: {len(line)} columns"


def check_lines(name, text):
    lines = text.count("\n")
    most = MAX_LINES_OWNER if name in OWNERS else MAX_LINES
    if pathlib.Path(name).suffix in SOURCES and lines > most:
        yield f"{name}:{lines}: more than {most} lines"
    if name in OWNERS and not re.search(rf"^struct {OWNERS[name]} \{{$", text, re.MULTILINE):
        yield f"{name}:1: does not define struct {OWNERS[name]}"
    elif name in OWNERS and lines <= MAX_LINES:
        yield f"{name}:{lines}: needs no place among OWNERS"


def main():
    faults = {"phrases": [], "beginnings": [], "columns": [], "lines": []}
    files = 0
    for name, text in tracked_files():
        files += 1
        faults["phrases"] += check_phrases(name, text)
        faults["beginnings"] += check_beginnings(name, text)
        faults["columns"] += check_columns(name, text)
        faults["lines"] += check_lines(name, text)
    for kind in faults.values():
        print("\n".join(kind), end="\n" if kind else "")
    print(f"{files} files: " + ", ".join(f"{len(found)} faults of {kind}" for kind, found in faults.items()))
    return 1 if any(faults.values()) or not files else 0


sys.exit(main())
