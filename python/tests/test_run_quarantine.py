"""run(quarantine=...): items whose workers fail again and again are paused. SPDX-License-Identifier: Apache-2.0"""
import dataclasses
import logging
import subprocess

import pytest

import divvy
from conftest import wait_for
from divvy import _quarantine
from steps import Entries, Script, Steps
from test_run import ITEMS, start  # noqa: F401, the fixture
from test_run_aio import member, run, until

FAST = {"backoff": 0.01, "backoff_max": 0.01}
REASON = "failed 3 times in 10 min, last: ValueError('no luck')"


def fails_on(item, started):
    def work(job):
        started.append(job.item)
        if job.item == item:
            raise ValueError("no luck")
        job.stop.wait()
    return work


# The item is paused at the third failure, with the reason, and no other member starts its worker. Then it is given
# back, and counted from nothing.
def test_threads(start, client, path, caplog):  # noqa: F811
    caplog.set_level(logging.ERROR, "divvy")
    first, second = [], []
    start(fails_on(ITEMS[2], first), quarantine=(3, 600), **FAST)

    def paused():
        return [record.message for record in caplog.records if "is paused" in record.message]
    wait_for(paused, "it is paused")
    assert paused() == [f"{ITEMS[2]} is paused: it {REASON} (to give it back: divvy resume --path {path} {ITEMS[2]})"]
    assert first.count(ITEMS[2]) >= 3
    start(fails_on(ITEMS[2], second), quarantine=(3, 600), **FAST)
    wait_for(lambda: len(second) >= 2, "the other one has its share")
    assert ITEMS[2] not in second
    client.pool_resume(path, ITEMS[2])
    wait_for(lambda: len(paused()) == 2, "it is paused again")
    assert REASON in paused()[1]


# So it is with tasks.
def test_tasks(server, path, caplog):
    caplog.set_level(logging.ERROR, "divvy")
    started = []

    async def work(job):
        started.append(job.item)
        if job.item == ITEMS[2]:
            raise ValueError("no luck")
        await job.stop.wait()

    async def main():
        async with member(path, work, quarantine=(3, 600), **FAST) as one:
            await until(lambda: f"{ITEMS[2]} is paused: it {REASON}" in caplog.text)
            one.stop.set()
            assert await one is None
    run(main())
    assert started.count(ITEMS[2]) >= 3


# An item that cannot be paused, as names decide, is tried again at the next failure, and the run goes on.
def test_cannot_be_paused(start, caplog):  # noqa: F811
    caplog.set_level(logging.ERROR, "divvy")
    started = []
    one = start(fails_on(ITEMS[2], started), quarantine=(1, 600), keywords={"assign": divvy.Assign.RENDEZVOUS}, **FAST)
    wait_for(lambda: caplog.text.count("could not be paused") >= 2, "it is tried twice")
    assert "follows no plan" in caplog.text
    assert one.end() is None


# A worker that returns has not failed.
def test_returns(start, caplog):  # noqa: F811
    started = []
    one = start(lambda job: started.append(job.item), ["a"], quarantine=(1, 600), **FAST)
    wait_for(lambda: len(started) >= 5, "it is started again")
    assert one.end() is None and "paused" not in caplog.text


# One for which no thread could be had has not failed either.
def test_no_thread():
    p, paused = Script(), []
    steps = Steps(p)
    steps._o = dataclasses.replace(steps._o, quarantine=_quarantine.Quarantine(1, 600))
    steps._begin_pause = lambda item, why: paused.append(item)
    p.shown.append((divvy.PartitionState.ACQUIRED, Entries([divvy.Item("x", 1)])))
    steps.no_thread = True
    assert not steps.step() and not paused
    steps.no_thread = False
    wait_for(lambda: not steps.step() and steps._places["x"].job, "the start is tried again")
    steps.take_end(steps._places["x"], ValueError("no luck"))
    assert paused == ["x"]


# Failures count for as long as the window is, each item by itself; what is old is forgotten.
def test_window(monkeypatch):
    now = 0.0
    monkeypatch.setattr(_quarantine.time, "monotonic", lambda: now)
    counted = _quarantine.quarantine_of((3, 600))
    assert [counted.note("a"), counted.note("b"), counted.note("a")] == [False] * 3
    now = 600.0
    assert counted.note("a")
    now = 600.5
    assert not counted.note("a") and not counted.note("b")
    now = 5000.0
    counted.note("c")
    assert list(counted._at) == ["c"]
    assert _quarantine.quarantine_of((1, 90)).why(ValueError()) == "failed 1 time in 90 s, last: ValueError()"
    assert len(_quarantine.quarantine_of((1, 7200)).why(ValueError("\u00e4" * 500))) == 300


# What makes no sense is refused before anything begins.
@pytest.mark.parametrize("value, error", [
    (5, TypeError), ([5, 600], TypeError), ((5,), TypeError), (("5", 600), TypeError), ((5, "600"), TypeError),
    ((0, 600), divvy.InvalidArgument), ((1001, 600), divvy.InvalidArgument), ((5, 0), divvy.InvalidArgument),
    ((5, 86401), divvy.InvalidArgument), ((5, float("nan")), divvy.InvalidArgument)])
def test_refused(client, path, value, error):
    with pytest.raises(error, match="quarantine"):
        client.partitioner(path, ["a"]).run(print, quarantine=value)


def test_refused_with_fail(client, path):
    with pytest.raises(divvy.InvalidArgument, match="on_error"):
        client.partitioner(path, ["a"]).run(print, quarantine=(1, 1), on_error="fail")


# The command that gives an item back can be copied: a shell reads from it the names as they are, and no option.
@pytest.mark.parametrize("item", ["x", "a b", "-x", "--undo", "it's", "$(touch x)", "-'`touch x`", "*", "a;b"])
def test_command_to_copy(item):
    command = _quarantine.resume_command("/q's $(touch x)", item)
    front = ["--"] if item.startswith("-") else []
    read = subprocess.run(["sh", "-c", "divvy() { printf '%s\\0' \"$@\"; }; " + command], check=True,
                          stdout=subprocess.PIPE, universal_newlines=True).stdout.split("\0")
    assert read == ["resume", "--path", "/q's $(touch x)", *front, item, ""]


def test_plain_command():
    assert _quarantine.resume_command("/q", "a-b_1") == "divvy resume --path /q a-b_1"
