"""The programs of docs/python.md and docs/guide.md run as they stand. SPDX-License-Identifier: Apache-2.0

The hosts of the page are replaced by the server's, with a chroot of the test's own. Nothing else is.
"""
import os
import re
import signal
import subprocess
import sys

import pytest

from conftest import DEADLINE_S, ROOT

HOSTS = "zk1:2181,zk2:2181,zk3:2181"


def blocks(page):
    """Returns the programs of a page, each with the heading above it."""
    found = []
    for section in re.split(r"^## ", (ROOT / "docs" / page).read_text(), flags=re.M):
        title = section.split("\n", 1)[0]
        found += [(title, block) for block in re.findall(r"^```python\n(.*?)^```$", section, re.M | re.S)]
    return found


BLOCKS = blocks("python.md") + [pair for pair in blocks("guide.md") if pair[0] == "The same in Python"]


def begin(block, server, path, folder):
    connect = server.connect + path
    (folder / "program.py").write_text(block.replace(HOSTS, connect))
    return subprocess.Popen([sys.executable, "-u", folder / "program.py"], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, env={**os.environ, "DIVVY_CONNECT": connect})


# The page has these programs, and each runs here.
def test_complete():
    assert [title for title, _ in BLOCKS] == ["A member of a pool", "A member of a pool", "Balance by load",
                                              "Warnings, log, metrics", "A lock", "A lock", "An election",
                                              "A registry", "The operator's hand", "asyncio", "asyncio", "asyncio",
                                              "In kazoo's place", "The same in Python"]
    for title, block in BLOCKS:
        assert (HOSTS in block) is (title not in ("In kazoo's place", "The same in Python"))


# Each program works; a pool works on all items, ends by SIGTERM in an orderly way, and leaves nothing.
@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_program(server, path, tmp_path, number):
    title, block = BLOCKS[number]
    program = begin(block, server, path, tmp_path)
    try:
        if ".partitioner(" in block:
            items = set(re.search(r"\[(\".*?)\]", block)[1].replace('"', "").split(", "))
            seen = set()
            while seen != items:
                line = program.stdout.readline()
                assert line, program.stderr.read()
                item, token = line.split()[:2]
                assert item in items and int(token) > 0
                seen.add(item)
            program.send_signal(signal.SIGTERM)
        if ".election(" in block:
            lines = [program.stdout.readline().split() for _ in range(2)]
            assert lines[0] == lines[1] and lines[0][0] == "lead" and int(lines[0][1]) > 0, program.stderr.read()
            program.send_signal(signal.SIGINT)
        out, err = program.communicate(timeout=DEADLINE_S)
        interrupted = title == "An election" and err.endswith("\nKeyboardInterrupt\n")
        assert program.returncode == (-signal.SIGINT if interrupted else 0), err
    finally:
        program.kill()
        program.communicate()
    if interrupted:
        pass
    elif title == "Warnings, log, metrics":
        assert "divvy_build_info" in out and out.rstrip().endswith("# EOF") and "INFO:divvy:" in err
    else:
        assert err == ""
    if title == "A registry":
        assert re.fullmatch(r"found b 1 (\S+) 8080\nfound c 3 \1 8080\nfound a 5 \1 8080\n", out)
    if "client.lock(" in block:
        assert re.fullmatch(r"report \d+\n", out)
    assert not [node for node in server.ephemerals() if node.startswith(path + "/")]


# Two members of the page's first program, and of the one for asyncio, share its items, and each has one worker.
@pytest.mark.parametrize("number", [0, 9])
def test_two(server, path, tmp_path, number):
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
    first = begin(BLOCKS[number][1], server, path, folders[0])
    second = None
    try:
        assert int(first.stdout.readline().split()[1]) > 0
        second = begin(BLOCKS[number][1], server, path, folders[1])
        moved = second.stdout.readline().split()  # so the first has confirmed its RELEASE
        assert moved, second.stderr.read()
        first.send_signal(signal.SIGINT)
        out, err = first.communicate(timeout=DEADLINE_S)
        assert (first.returncode, err) == (0, "")
        tokens = [int(line.split()[1]) for line in out.splitlines() if line.split()[0] == moved[0]]
        assert all(token < int(moved[1]) for token in tokens)
        seen = {moved[0]}
        while len(seen) < 3:
            seen.add(second.stdout.readline().split()[0])
        second.send_signal(signal.SIGTERM)
        assert second.communicate(timeout=DEADLINE_S)[1] == "" and second.returncode == 0
    finally:
        for program in filter(None, (first, second)):
            program.kill()
            program.communicate()
