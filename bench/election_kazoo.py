#!/usr/bin/python3
"""kazoo's Election, for bench/election.sh. SPDX-License-Identifier: Apache-2.0

usage: election_kazoo.py HOSTS PATH TURNS. As bench_election; a leader resigns by returning from its function.
"""
import json
import logging
import sys
import threading
import time

from kazoo.client import KazooClient


class Candidate:
    def __init__(self, hosts, path):
        self.client = KazooClient(hosts, timeout=30)
        self.client.start()
        self.election = self.client.Election(path, "me")
        self.elected, self.resigned = threading.Event(), threading.Event()
        self.elected_at = self.thread = None

    def _lead(self):
        self.elected_at = time.monotonic()
        self.elected.set()
        self.resigned.wait()

    def stand(self):
        self.elected.clear()
        self.resigned.clear()
        self.thread = threading.Thread(target=self.election.run, args=[self._lead], daemon=True)
        self.thread.start()


def main():
    logging.basicConfig(level=logging.CRITICAL)
    hosts, path, turns = sys.argv[1], sys.argv[2], int(sys.argv[3])
    pair = [Candidate(hosts, path) for _ in range(2)]
    pair[0].stand()
    pair[0].elected.wait()
    times = []
    for turn in range(turns):
        leader, other = pair[turn % 2], pair[1 - turn % 2]
        other.stand()
        while len(leader.client.get_children(path)) < 2:
            pass
        time.sleep(0.005)
        began = time.monotonic()
        leader.resigned.set()
        other.elected.wait()
        times.append((other.elected_at - began) * 1e6)
        leader.thread.join()
    print(json.dumps({"us": times}))
    pair[turns % 2].resigned.set()
    for one in pair:
        one.client.stop()
        one.client.close()


if __name__ == "__main__":
    main()
