"""divvy for asyncio: the same objects, whose waits are coroutines. SPDX-License-Identifier: Apache-2.0

The event loop serves the session: it polls the client's descriptor and its next deadline, and no thread is started. So
what keeps the loop busy for longer than `client.time_left` loses the session. Callbacks run in the loop; only `func`
and `on_load` are called where the session is served.

Acquires and heartbeats are asynchronous in the library. The other calls that wait (lists of members and contenders,
the registry's lookups, `finish()`) run in the loop's default executor, and serve the session there while they do.
"""
from divvy._maker import Maker
from divvy.aio._client import AsyncClient
from divvy.aio._job import Job
from divvy.aio._objects import Election, Lock, Partitioner, Party, Registry, Semaphore


class Client(AsyncClient):
    """One ZooKeeper session, which the running event loop serves.

    Parameters are those of :class:`divvy.Client`. Ends by `await client.aclose()`, or as an `async with` block.
    """

    lock = Maker(Lock)
    semaphore = Maker(Semaphore)
    partitioner = Maker(Partitioner)
    party = Maker(Party)
    election = Maker(Election)
    registry = Maker(Registry)


__all__ = ["Client", "Election", "Job", "Lock", "Partitioner", "Party", "Registry", "Semaphore"]
