#!/usr/bin/env python3
"""docs/api.md has every public function, and no document speaks of one that is not there.
SPDX-License-Identifier: Apache-2.0

usage: test_api.py [BUILD_FOLDER]

Claims: each function that a header of include/divvy declares as DIVVY_API has exactly one line in docs/api.md, in the
section whose heading names that header; each divvy_* name of docs/api.md stands in a header; each divvy_*() and each
DIVVY_* constant that README.md or a document of docs/ names is declared, or is an option or a variable of ours.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADERS = ROOT / "include" / "divvy"
FUNCTION = re.compile(r"\bDIVVY_API\s[^;{]*?\b(divvy_\w+)\(")
LINE = re.compile(r"^- `(divvy_\w+)\(\)` ")
NAME = re.compile(r"\bdivvy_[a-z0-9_]+\b")
CALL = re.compile(r"\b(divvy_[a-z0-9_]+)\(")
CONSTANT = re.compile(r"\bDIVVY_[A-Z][A-Z0-9_]*\b")
# What CMake, the command and the tests are told, by the files that read it.
READERS = ["CMakeLists.txt", "CMakePresets.json", "lib/**/*.c", "lib/**/CMakeLists.txt", "lib/cmake/*", "tools/**/*",
           "test/**/*", "bench/**/*"]
LIBRARIES = {"divvy_testing", "divvy_zookeeper"}


def read(path):
    return path.read_text(encoding="utf-8", errors="replace")


def without_comments(text):
    return re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S)


def declared():
    """Returns a dictionary from function to header, and the text of all headers."""
    functions = {}
    everything = ""
    for path in sorted(HEADERS.glob("*.h")):
        text = read(path)
        everything += text
        for name in FUNCTION.findall(without_comments(text)):
            functions[name] = path.name
    return functions, everything


def check_lines(functions, faults):
    """Each function has its one line, in its section."""
    section = ""
    seen = {}
    for number, line in enumerate(read(ROOT / "docs" / "api.md").split("\n"), 1):
        if line.startswith("## "):
            found = re.search(r"divvy/(\w+\.h)\)", line)
            section = found.group(1) if found else ""
        found = LINE.match(line)
        if not found:
            continue
        name = found.group(1)
        where = f"docs/api.md:{number}"
        if name in seen:
            faults.append(f"{where}: {name}() stands in line {seen[name]} already")
        seen[name] = number
        if name in functions and functions[name] != section:
            faults.append(f"{where}: {name}() belongs to {functions[name]}")
    for name, header in functions.items():
        if name not in seen:
            faults.append(f"docs/api.md: {header} declares {name}(), which has no line")


def check_names(functions, headers, faults):
    """Names in documents are names of ours."""
    words = set(NAME.findall(headers)) | LIBRARIES
    constants = set(CONSTANT.findall(headers))
    for pattern in READERS:
        for path in ROOT.glob(pattern):
            if path.is_file() and "__pycache__" not in path.parts:
                constants |= set(CONSTANT.findall(read(path)))
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        for number, line in enumerate(read(path).split("\n"), 1):
            where = f"{path.relative_to(ROOT)}:{number}"
            for name in NAME.findall(line) if path.name == "api.md" else ():
                if name not in words:
                    faults.append(f"{where}: {name} is not declared")
            for name in CALL.findall(line):
                if name not in functions:
                    faults.append(f"{where}: {name}() is not declared")
            for name in CONSTANT.findall(line):
                if name not in constants and not any(known.startswith(name) for known in constants):
                    faults.append(f"{where}: {name} is not declared")


def main():
    functions, headers = declared()
    faults = []
    check_lines(functions, faults)
    check_names(functions, headers, faults)
    print("\n".join(faults), file=sys.stderr)
    print(f"{len(functions)} functions, {len(faults)} faults")
    return 1 if faults or len(functions) < 100 else 0


if __name__ == "__main__":
    sys.exit(main())
