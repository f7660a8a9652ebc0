#!/usr/bin/env python3
"""The claims of docs/threats.md have their tests. SPDX-License-Identifier: Apache-2.0

usage: test_threats.py [BUILD_FOLDER]

Claims: each row of a table of claims names tests, fuzzers or rules that are there, or says that it is not shown; and
what the document says of the sources of the package for Python is true.
"""
import ast
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCUMENT = (ROOT / "docs" / "threats.md").read_text(encoding="utf-8")
FOLDERS = {"unit": "test/unit", "live": "test/live", "tls": "test/tls", "python": "python/tests"}
CLAIMS = "| claim | shown by |"
SHOWN = re.compile(r"`(\w+)(?:\.(\w+))?`((?: \w+,)*(?: \w+)?)")
EXECUTES = {"eval", "exec", "compile", "__import__"}
MODULES = {"pickle", "marshal", "shelve", "subprocess", "pty", "code"}


def claims():
    """Yields the claim and the tests of each row."""
    inside = False
    for line in DOCUMENT.splitlines():
        inside = line == CLAIMS or inside and line.startswith("|")
        if inside and line != CLAIMS and not line.startswith("| ---"):
            claim, shown = line.strip("| ").split(" | ")
            yield claim, shown


def source_of(folder, name):
    """Returns the text of a test, or None."""
    for suffix in (".c", ".py", ".sh"):
        path = ROOT / FOLDERS.get(folder, "nowhere") / f"test_{name}{suffix}"
        if path.is_file():
            return path.read_text(encoding="utf-8")
    return None


def missing(folder, name, words):
    """Yields what is named and not there."""
    if folder == "fuzz":
        for word in words:
            if not (ROOT / "test" / "fuzz" / "corpus" / word).is_dir():
                yield f"there is no fuzzer {word}"
        return
    text = source_of(folder, name)
    if text is None:
        yield f"there is no test {folder}.{name}"
    elif (folder, name) == ("unit", "rules"):
        rules = (ROOT / "docs" / "protocol.md").read_text(encoding="utf-8")
        for word in words:
            if f"**{word} (" not in rules:
                yield f"there is no rule {word}"
    else:
        for word in words:
            if not re.search(rf"\b{word}\b(?=[(,)])", text):
                yield f"{folder}.{name} has no {word}"


class Threats(unittest.TestCase):
    # Each claim names what shows it, and all that is there; or it says that nothing does.
    def test_claims(self):
        faults, shown_claims = [], 0
        for claim, shown in claims():
            named = SHOWN.findall(shown)
            shown_claims += bool(named) and not shown.startswith("not shown")
            if not named and not shown.startswith("not shown"):
                faults.append(f"nothing shows: {claim}")
            for folder, name, words in named:
                words = re.findall(r"\w+", words)
                faults += [f"{claim}: {fault}" for fault in missing(folder, name, words)]
        self.assertEqual("\n".join(faults), "")
        self.assertGreater(shown_claims, 40)

    # What is not there is noticed: a test, a function of a test, a fuzzer, a rule.
    def test_notices(self):
        for named in (("unit", "nothing", []), ("nowhere", "lock", []), ("unit", "will", ["test_nothing"]),
                      ("fuzz", "", ["nothing"]), ("unit", "rules", ["nothing"])):
            self.assertEqual(len(list(missing(*named))), 1, named)

    # No source of the package calls what executes a text, starts a program, or makes objects of bytes.
    def test_python_executes_nothing(self):
        sources = sorted((ROOT / "python" / "src").rglob("*.py"))
        self.assertGreater(len(sources), 20)
        for path in sources:
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                    self.assertNotIn(node.func.id, EXECUTES, f"{path}:{node.lineno}")
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else \
                    [node.module or ""] if isinstance(node, ast.ImportFrom) else []
                for name in names:
                    self.assertNotIn(name.split(".")[0], MODULES, f"{path}:{node.lineno}")
                if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "os":
                    self.assertNotRegex(node.attr, "^(system|popen|exec|spawn|posix_spawn)", f"{path}:{node.lineno}")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
