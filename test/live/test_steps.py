#!/usr/bin/python3
"""Processes take one lock on a real server, under faults; the rules of the queue judge each of their steps.
SPDX-License-Identifier: Apache-2.0

usage: test_steps.py BUILD_FOLDER [--deeds N] [--keep FILE]
       DIVVY_TEST_SEED=n replays what is drawn

Four processes of steps_member, two plain or a writer and readers, take the lock and release it. Meanwhile one is
killed, stopped for longer than its session, or a place is deleted; or the server stands still, or is killed and starts
again. Their steps (log_steps) and the server's transaction log become one trace, by test/replay/merge.py. replay_queue
holds it against test/model/rules/queue.h, as it does with the simulator's histories.

Claims: the rules allow each step; a place whose deletion is taken out of the trace is refused.
"""
import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionLoss, NoNodeError

from command_harness import SOURCE_DIR, wait_for
from test_examples import Server, check

sys.path += [os.path.join(SOURCE_DIR, "test", "replay"), os.path.join(SOURCE_DIR, "test", "chaos")]
import merge  # noqa: E402
import txnlog  # noqa: E402

MODES = ("write", "read", "write", "read")
SESSION_S, RUN_S, PATH = 2, 1.5, "/lock"
DEEDS = ("kill", "stop", "delete", "freeze", "restart")


class Process:
    """A process of steps_member, and the lines that it has written."""

    def __init__(self, program, server, mode, seed):
        self.mode, self.killed_ms = mode, None
        self.file = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen([program, server.connect, PATH, mode, str(seed)], stdout=self.file)

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.killed_ms = time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000000

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)

    def member(self):
        self.file.seek(0)
        return merge.Member(self.file.read().splitlines(), self.mode, self.killed_ms)


def transactions(server):
    """All that the server has logged."""
    records = {}
    folder = os.path.join(server.folder, "1", "data", "version-2")
    for name in os.listdir(folder):
        if name.startswith("log."):
            records.update(txnlog.read_file(os.path.join(folder, name)))
    return [txnlog.read_record(records[zxid]) for zxid in sorted(records)]


def delete_one(client):
    """Returns whether a place was deleted before its owner has done so."""
    try:
        names = client.retry(client.get_children, PATH)
        client.delete(PATH + "/" + names[0])
    except (IndexError, NoNodeError, ConnectionLoss):
        return False
    return True


def do(deed, processes, server, draw, start):
    number = draw.randrange(len(processes))
    if deed == "kill":
        processes[number].kill()
        processes.append(start(processes[number].mode))
        return processes.pop(number)
    if deed == "stop":
        processes[number].process.send_signal(signal.SIGSTOP)
        time.sleep(SESSION_S * 1.5)  # So long it stands still: it is what is tested, and no wait.
        processes[number].process.send_signal(signal.SIGCONT)
    elif deed == "delete":
        client = KazooClient(server.connect)
        client.start(60)
        wait_for(lambda: delete_one(client), "a place is deleted")
        client.stop()
        client.close()
    elif deed == "freeze":
        server.freeze(True)
        time.sleep(SESSION_S * draw.choice((0.2, 1.2)))  # As above.
        server.freeze(False)
    else:
        server.do("kill", "1")
        server.do("restart", "1")
    return None


def replay(program, lines):
    """Returns whether the rules allow the trace, and what the replay says."""
    with tempfile.NamedTemporaryFile("w") as file:
        file.write("\n".join(lines) + "\n")
        file.flush()
        told = subprocess.run([program, file.name], stdout=subprocess.PIPE, text=True, check=False).stdout
    return told.endswith(" records, 0 histories refused, 0 cut off\n"), told


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--deeds", type=int, default=len(DEEDS))
    parser.add_argument("--keep", help="a file for the trace")
    arguments = parser.parse_args()
    seed = int(os.environ.get("DIVVY_TEST_SEED") or random.randrange(2 ** 32))
    print("DIVVY_TEST_SEED=%d" % seed, flush=True)
    draw = random.Random(seed)
    programs = os.path.join(os.path.abspath(arguments.build), "test")
    with Server() as server:
        def start(mode):
            return Process(os.path.join(programs, "steps_member"), server, mode, draw.randrange(2 ** 31))

        processes, ended = [start(mode) for mode in MODES], []
        try:
            deeds = draw.sample(DEEDS, len(DEEDS)) + draw.choices(DEEDS, k=max(0, arguments.deeds - len(DEEDS)))
            for deed in deeds[:arguments.deeds]:
                time.sleep(RUN_S)  # So long they take the lock from each other.
                ended.append(do(deed, processes, server, draw, start))
            time.sleep(RUN_S)
            for process in processes:
                check(process.end() == 0, "a clean end: %s" % process.process.returncode)
            lines = merge.merge([process.member() for process in [*filter(None, ended), *processes]],
                                transactions(server), PATH, seed)
        finally:
            for process in processes:
                process.kill()
    if arguments.keep:
        with open(arguments.keep, "w", encoding="ascii") as file:
            file.write("\n".join(lines) + "\n")
    held = sum(" holds " in line for line in lines)
    allowed, told = replay(os.path.join(programs, "replay_queue"), lines)
    check(allowed, "the rules allow all: %s" % told)
    check(held > 50, "the lock was held often: %d" % held)
    deletes = [i for i, line in enumerate(lines) if "by=owner" in line]
    spoilt = draw.sample(deletes[:-len(MODES)], 5)
    refused = sum(not replay(os.path.join(programs, "replay_queue"), lines[:i] + lines[i + 1:])[0] for i in spoilt)
    check(refused == len(spoilt), "a deletion that is missing is refused: %d of %d" % (refused, len(spoilt)))
    print("%d steps, held %d times: %s" % (len(lines), held, ", ".join(deeds)))


if __name__ == "__main__":
    sys.exit(main())
