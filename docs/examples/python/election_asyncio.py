#!/usr/bin/env python3
"""One of many leads, in asyncio, and everybody knows who. SPDX-License-Identifier: Apache-2.0

Try it: run this in three terminals with different names, then stop the one that leads with Ctrl-C, or kill it. Enter
asks the leader, this one or another, to step down.

    export DIVVY_ENSEMBLE_TICK_MS=2000     # the servers' tickTime, or more
    election_asyncio.py 127.0.0.1:2181 /example-election alice

The callbacks come in the loop, and are plain functions. A leader's work is a task: on_elected starts it, and on_lost
cancels it. What it does when it is canceled may overlap with the next leader's work. The token tells them apart: it is
greater than that of every earlier leader.
"""
import asyncio
import signal
import sys
from typing import Optional

import divvy
from divvy import aio


def tell(*words: object) -> None:
    print(*words, flush=True)


class Leader:
    """What a leader does."""

    def __init__(self) -> None:
        self._at_work = asyncio.Lock()  # so that a new leadership's work begins when the old one's has ended
        self._work: Optional[asyncio.Task[None]] = None
        self._asked: Optional[asyncio.Task[None]] = None

    def elected(self, election: aio.Election, token: int) -> None:
        self._work = asyncio.create_task(self._run(election, token))

    def lost(self, _election: aio.Election) -> None:
        if self._work:
            self._work.cancel()

    def step_down(self, election: aio.Election, _who: bytes) -> None:
        self._asked = asyncio.create_task(self._step_down(election))

    async def resign(self, election: aio.Election) -> None:
        """Ends the work, and then the leadership."""
        self.lost(election)
        async with self._at_work:
            election.resign()

    async def _run(self, election: aio.Election, token: int) -> None:
        async with self._at_work:
            tell("I lead, under", token)
            try:
                while election.token == token:
                    await asyncio.sleep(0.2)  # a piece of work
            finally:
                tell("I no longer lead")

    async def _step_down(self, election: aio.Election) -> None:
        tell("somebody asks me to step down, and I do")
        await self.resign(election)
        election.stand()  # at the end of the queue


async def ask(election: aio.Election, lines: asyncio.StreamReader) -> None:
    """Asks for a new leader at each line."""
    while await lines.readline():
        try:
            await election.ask_step_down(10)
        except divvy.Error as error:
            tell("the leader stays:", error)


async def take_part(hosts: str, path: str, name: str) -> None:
    loop, lines, leader = asyncio.get_running_loop(), asyncio.StreamReader(), Leader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    async with aio.Client(hosts) as client:
        await client.wait_connected(10)
        async with client.election(
                path, data=name, on_elected=leader.elected, on_lost=leader.lost, on_step_down=leader.step_down,
                on_leader=lambda _, found: tell(found.data.decode() if found else "nobody", "leads"),
                on_failed=lambda _, error: tell("I stand no longer:", error)) as election:
            asking = asyncio.create_task(ask(election, lines))
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, asking.cancel)
            election.stand()
            await asyncio.wait([asking])
            await leader.resign(election)


def main() -> None:
    if len(sys.argv) != 4:
        print("usage: election_asyncio.py HOSTS PATH NAME", file=sys.stderr)
        sys.exit(2)
    try:
        asyncio.run(take_part(*sys.argv[1:]))
    except divvy.Error as error:
        sys.exit(f"election_asyncio.py: {error}")


if __name__ == "__main__":
    main()
