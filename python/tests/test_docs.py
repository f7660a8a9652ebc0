"""The programs of docs/python.md run. SPDX-License-Identifier: Apache-2.0"""
import asyncio
import re
import textwrap
import threading

from conftest import DEADLINE_S, ROOT, wait_for

BLOCKS = re.findall(r"^```python\n(.*?)^```$", (ROOT / "docs" / "python.md").read_text(), re.M | re.S)


class Job:
    """Work on one queue, which ends a moment after it is told to stop."""

    def __init__(self, queue, token):
        self.queue, self.token, self.stopping = queue, token, False

    def stop(self):
        self.stopping = True

    def runs(self):
        return not self.stopping


class Flag:
    """What a program's loop ends by."""

    def __init__(self):
        self.event = threading.Event()

    def __bool__(self):
        return self.event.is_set()


# The loop of the page divides a pool with another member, and ends.
def test_loop(server, path):
    members = []
    queues = ["a", "b", "c", "d"]
    text = BLOCKS[0].replace("zk1:2181,zk2:2181,zk3:2181", server.connect).replace("/work_queues", path)
    text = text.replace("ensemble_tick_ms=2000", "ensemble_tick_ms=100").replace("jobs = [job ", "jobs[:] = [job ")
    assert text.count(path) == 1 and server.connect in text and "jobs[:]" in text

    def start():
        jobs, stopping = [], Flag()

        def start_job(queue, token):
            if not any(job.queue == queue for job in jobs):
                jobs.append(Job(queue, token))
        names = {"queues": queues, "jobs": jobs, "stopping": stopping, "start_job": start_job,
                 "stop_all_jobs_and_wait": jobs.clear}
        thread = threading.Thread(target=exec, args=(text, names))
        thread.start()
        members.append((thread, jobs, stopping))

    def shares():
        return [sorted(job.queue for job in list(jobs)) for _, jobs, _ in members]
    start()
    wait_for(lambda: shares() == [queues], "one has all")
    start()
    wait_for(lambda: list(map(len, shares())) == [2, 2] and sorted(sum(shares(), [])) == queues, "each has half")
    for thread, _, stopping in members:
        stopping.event.set()
        thread.join(DEADLINE_S)
        assert not thread.is_alive()


# The program for asyncio runs.
def test_asyncio(server, path):
    body = "shares.append(view.partition.items())\n            if len(shares[-1]) == 2: await p.finish(5)\n"
    text = textwrap.indent(re.sub(r"\.\.\. .*\n", body, BLOCKS[1].replace("/work_queues", path)), "    ")
    shares, reports = [], []

    async def make_report(token):
        reports.append(token)
    names = {"queues": ["a", "b"], "stop": None, "make_report": make_report, "shares": shares}
    exec(f"async def main():\n{text}", names)
    asyncio.run(asyncio.wait_for(names["main"](), DEADLINE_S))
    assert reports[0] > 0 and ["a", "b"] in shares


# What the page says that is imported can be.
def test_imports():
    names = {}
    exec(BLOCKS[2], names)
    assert {"KazooClient", "SetPartitioner"} < set(names)
