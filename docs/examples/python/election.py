#!/usr/bin/env python3
"""One of many leads, and everybody knows who. SPDX-License-Identifier: Apache-2.0

Try it: run this in three terminals with different names, then stop the one that leads with Ctrl-C, or kill it. Enter
asks the leader, this one or another, to step down.

    export DIVVY_ENSEMBLE_TICK_MS=2000     # the servers' tickTime, or more
    election.py 127.0.0.1:2181 /example-election alice

The callbacks come one at a time, in a thread of the library's. So a leader's work has a thread of its own, and ends
when it no longer leads. Its token is greater than that of every earlier leader.
"""
import signal
import sys
import threading
from typing import Optional

import divvy


def tell(*words: object) -> None:
    """Prints a line as a whole, as several threads do."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


class Work:
    """What a leader does. Another may lead soon after `end()` has returned."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # the callbacks' thread begins and ends it, and the main thread ends it
        self._over = False
        self._stop = threading.Event()
        self._thread: Optional[threading.Thread] = None

    def begin(self, token: int) -> None:
        with self._lock:
            if self._over:
                return
            self._stop.clear()
            self._thread = threading.Thread(target=self._run, args=(token,))
            self._thread.start()

    def _run(self, token: int) -> None:
        tell("I lead, under", token)
        while not self._stop.wait(0.2):
            pass  # a piece of work

    def end(self, for_good: bool = False) -> None:
        with self._lock:
            self._over = self._over or for_good
            if self._thread:
                self._stop.set()
                self._thread.join()
                self._thread = None
                tell("I no longer lead")


def take_part(client: divvy.Client, path: str, name: str) -> None:
    work = Work()

    def step_down(election: divvy.Election, who: bytes) -> None:
        tell("somebody asks me to step down, and I do")
        work.end()
        election.resign()
        election.stand()  # at the end of the queue

    election = client.election(
        path, data=name, on_elected=lambda _, token: work.begin(token), on_lost=lambda _: work.end(),
        on_leader=lambda _, leader: tell(leader.data.decode() if leader else "nobody", "leads"),
        on_step_down=step_down, on_failed=lambda _, error: tell("I stand no longer:", error))
    election.stand()
    try:
        for line in sys.stdin:
            try:
                election.ask_step_down(10)
            except divvy.Error as error:
                tell("the leader stays:", error)
    except KeyboardInterrupt:
        pass
    work.end(for_good=True)  # before the place is given up
    election.close()


def main() -> None:
    if len(sys.argv) != 4:
        print("usage: election.py HOSTS PATH NAME", file=sys.stderr)
        sys.exit(2)
    hosts, path, name = sys.argv[1:]
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C
    try:
        with divvy.Client(hosts) as client:
            client.wait_connected(10)
            take_part(client, path, name)
    except divvy.Error as error:
        sys.exit(f"election.py: {error}")


if __name__ == "__main__":
    main()
