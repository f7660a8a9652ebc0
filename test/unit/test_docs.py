#!/usr/bin/env python3
"""The documents lead where they say. SPDX-License-Identifier: Apache-2.0

usage: test_docs.py [BUILD_FOLDER]

Claims: each relative link of each Markdown file names a file or folder of this checkout; where it names a heading, the
file has that heading; each name of a file below docs/, test/, tools/ or bench/ that README.md, CONTRIBUTING.md, or a
file of docs/ has in backquotes is there, if it does not end in a word such as NAME; each block of C in
docs/guide.md, docs/migrate.md, docs/write-a-recipe.md and docs/change-a-handover.md stands word for word in their
sources; each function that docs/architecture.md and docs/change-a-handover.md name is defined in lib/ or tools/, and
each file of C that they name is there, and so is each line that a diff of theirs takes out; each file of C or Python
that a comment of lib/, tools/, include/ or test/ names is there; README.md has at most 900 words.
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
README_WORDS_MAX = 900
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
PATH = re.compile(r"`(?:\./)?((?:docs|test|tools|bench|include|lib)/[A-Za-z0-9_./-]+)`")
FENCE = re.compile(r"^\s*```")
# Documents whose blocks of C are quoted from files.
QUOTES = {
    "docs/change-a-handover.md": ["lib/handover/draft.c"],
    "docs/guide.md": ["docs/examples/guide/*.c", "docs/examples/guide/*.inc",
                      "docs/examples/native_host.c", "docs/examples/election.c"],
    "docs/migrate.md": ["docs/examples/migrate/*.c"],
    "docs/write-a-recipe.md": ["docs/examples/barrier/barrier.c"],
}
# Documents that lead through the code.
TOURS = ["docs/architecture.md", "docs/change-a-handover.md"]
# Files of other projects that comments name.
FOREIGN = {"cJSON.h", "kazoo/tests/test_partitioner.py", "netinet/tcp.h", "zookeeper.c", "zookeeper_log.h"}
COMMENT = {
    "c": re.compile(r'(/\*.*?\*/|//[^\n]*)|"(?:\\.|[^"\\\n])*"', flags=re.S),
    "py": re.compile(r'((?:^|(?<=\s))#[^\n]*|""".*?""")|"(?:\\.|[^"\\\n])*"', flags=re.S),
}
SOURCE_NAME = re.compile(r"(?<![\w.<-])(?:\.\./)*((?:\w+/)*\w+\.(?:c|h|py))\b")


def text_lines(path):
    """Yields the number and text of each line that is no code block."""
    inside = False
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
        if FENCE.match(line):
            inside = not inside
        elif not inside:
            yield number, line


def slug(heading):
    """Names a heading as GitHub does."""
    heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.strip().lower())
    return re.sub(r"[^\w\- ]", "", heading).replace(" ", "-")


def anchors(path):
    found = {}
    for _, line in text_lines(path):
        if line.startswith("#"):
            name = slug(line.lstrip("#"))
            count = found[name] = found.get(name, -1) + 1
            if count:
                found[f"{name}-{count}"] = 0
    return found


def check_link(path, target):
    """Returns what is wrong with a link, or None."""
    if re.match(r"[a-z]+:", target):
        return None
    name, _, anchor = target.partition("#")
    there = (path.parent / name).resolve() if name else path
    if not there.exists():
        return f"the link {target} leads nowhere"
    if anchor and anchor not in anchors(there):
        return f"the link {target} names a heading that is not there"
    return None


def check_quotes(name, sources, faults):
    """Returns how many blocks of C a document has, each of them quoted word for word."""
    text = "".join(path.read_text(encoding="utf-8") for source in sources for path in sorted(ROOT.glob(source)))
    blocks = re.findall(r"^```c\n(.*?)^```$", (ROOT / name).read_text(encoding="utf-8"), flags=re.S | re.M)
    for block in blocks:
        if block not in text:
            faults.append(f"{name}: this does not stand in {sources}:\n{block}")
    return len(blocks)


def check_tour(name):
    """Yields each function, file of C, and line taken out by a diff, that a document has and the checkout lacks."""
    text = (ROOT / name).read_text(encoding="utf-8")
    sources = [path for top in ("lib", "tools", "test") for path in (ROOT / top).rglob("*.[ch]")]
    there = {path.name for path in sources}
    code = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    defined = set(re.findall(r"^[a-z][^;\n]*?\b(\w+)\((?=[^;]*?\) \{$)", code, flags=re.M))
    defined |= set(re.findall(r"\(\*(\w+)\)\(", code))  # events
    for function in sorted(set(re.findall(r"`(\w+)\(\)`", text)) - defined):
        yield f"{name}: no file defines {function}()"
    for file in sorted(set(re.findall(r"\b(\w+\.[ch])\b", text)) - there):
        yield f"{name}: there is no {file}"
    lines = set(code.split("\n"))
    for block in re.findall(r"^```diff\n(.*?)^```$", text, flags=re.S | re.M):
        for line in re.findall(r"^-(.*)$", block, flags=re.M):
            if line not in lines:
                yield f"{name}: no file has the line that a diff takes out: {line}"


def comments(path):
    """Yields the number of the first line, and the text, of each comment."""
    text = path.read_text(encoding="utf-8")
    for match in COMMENT["py" if path.suffix == ".py" else "c"].finditer(text):
        if match[1]:
            yield text.count("\n", 0, match.start()) + 1, match[1]


def check_comments(paths):
    """Yields each file that a comment names and the checkout lacks."""
    there = {"/".join(path.parts[-n:]) for path in paths for n in range(1, len(path.parts) + 1)}
    for path in paths:
        if path.suffix not in {".c", ".h", ".py"} or path.parts[0] not in {"lib", "tools", "include", "test"}:
            continue
        for number, comment in comments(ROOT / path):
            for name in set(SOURCE_NAME.findall(comment)) - there - FOREIGN:
                yield f"{path}:{number}: a comment names {name}, which is not there"


def all_files():
    """Lists all files of the checkout, by their paths in it."""
    names = subprocess.run(["git", "-C", ROOT, "ls-files", "-co", "--exclude-standard"], check=False,
                           capture_output=True, text=True).stdout.split()
    names = names or [str(p.relative_to(ROOT)) for p in ROOT.rglob("*") if p.is_file()]
    return [pathlib.Path(name) for name in names
            if not name.startswith("build") and (ROOT / name).is_file()]


def main():
    files = [str(path) for path in all_files() if path.suffix == ".md"]
    faults = []
    links = 0
    for name in files:
        path = ROOT / name
        for number, line in text_lines(path):
            for target in LINK.findall(line):
                links += 1
                fault = check_link(path, target)
                if fault:
                    faults.append(f"{name}:{number}: {fault}")
            if path.parent not in (ROOT, ROOT / "docs") or path.name == "CHANGELOG.md":
                continue
            for target in PATH.findall(line):
                if re.search(r"/[A-Z]{2,}$", target):  # stands for any name
                    continue
                if not (ROOT / target).exists() and not (ROOT / target.rstrip(".")).exists():
                    faults.append(f"{name}:{number}: there is no {target}")
    quotes = sum(check_quotes(name, sources, faults) for name, sources in QUOTES.items())
    faults += check_comments(all_files())
    for name in TOURS:
        faults += check_tour(name)
    words = len((ROOT / "README.md").read_text(encoding="utf-8").split())
    if words > README_WORDS_MAX:
        faults.append(f"README.md has {words} words; {README_WORDS_MAX} are the most")
    print("\n".join(faults), file=sys.stderr)
    print(f"{len(files)} files, {links} links, {quotes} quotes, README.md has {words} words, {len(faults)} faults")
    return 1 if faults or not links or not quotes else 0


if __name__ == "__main__":
    sys.exit(main())
