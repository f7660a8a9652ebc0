"""What is made on a client of asyncio. SPDX-License-Identifier: Apache-2.0"""
from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, AsyncIterator, Awaitable, Callable, List, Mapping, Optional, Tuple, TypeVar

from divvy._arguments import encode, flag, integer, maybe_encode, milliseconds, number
from divvy._box import gone
from divvy._cffi import ffi, lib
from divvy._core import NULL, callback, place_for
from divvy._held import BaseHeld
from divvy._keywords import checked
from divvy.aio._client import Answer, Waits, wait
from divvy.election import BaseElection, Leader, leader_of
from divvy.errors import Error
from divvy.lock import BaseLock
from divvy.partitioner import BasePartitioner, PartitionState, View
from divvy.party import BaseParty
from divvy.registry import BaseRegistry, Entry, ServiceChange, Services, take_services, tree, value_of
from divvy.semaphore import BaseSemaphore, Holder, holders

if TYPE_CHECKING:
    from divvy.aio._job import Job

T = TypeVar("T", bound="Held")


class Held(BaseHeld, Waits):
    """What a lock and a semaphore share."""

    async def acquire(self, timeout: Optional[float] = None) -> None:
        """Acquires it. When the task is canceled, the acquire is, too."""
        attempt_id, answer = self._ask(self._function("attempt_id")), Answer(self._client)
        done = getattr(lib, self._type.replace("divvy_", "divvy_py_") + "_done")
        answer.begin(self, self._function("acquire_async"), milliseconds(timeout), done)
        await answer.get(lambda: self._call(self._function("cancel"), attempt_id), self._give_back)

    async def wait_gone(self, timeout: Optional[float] = None) -> None:
        """Waits until no node of it is left at the servers, after a release, a cancel or a timeout."""
        await self._run(wait, self._function("wait_gone"), milliseconds(timeout))

    def _give_back(self) -> None:
        try:
            self.release()
        except Error:  # it was lost, or is closed
            pass

    async def __aenter__(self: T) -> T:
        await self.acquire()
        return self

    async def __aexit__(self, *_: Any) -> None:
        self._release_unless_lost()


class Lock(BaseLock, Held):
    """One contender for the lock at a path: :class:`divvy.Lock`. `async with client.lock(path):` holds it."""

    async def contenders(self, timeout: Optional[float] = None) -> List[str]:
        """Returns the identifiers of all that contend, holders first."""
        return await self._list(lib.divvy_lock_contenders, timeout)


class Semaphore(BaseSemaphore, Held):
    """One user of a semaphore: :class:`divvy.Semaphore`. `async with client.semaphore(path):` holds its slots."""

    async def resize(self, limit: int, timeout: Optional[float] = None) -> None:
        """Changes the limit of the pool, for all that use it."""
        await self._run(wait, lib.divvy_semaphore_resize, integer("limit", limit, "uint32_t"), milliseconds(timeout))

    async def holders(self, timeout: Optional[float] = None) -> List[Holder]:
        """Returns the holders of slots, in the order of their tokens."""
        return await self._holders(lib.divvy_semaphore_holders, timeout)

    async def contenders(self, timeout: Optional[float] = None) -> List[Holder]:
        """Returns those that wait, in the order of the queue."""
        return await self._holders(lib.divvy_semaphore_contenders, timeout)

    async def _holders(self, function: Any, timeout: Optional[float]) -> List[Holder]:
        out = place_for("divvy_holders", lib.divvy_holders_free)
        await self._run(wait, function, out, milliseconds(timeout))
        return holders(out[0])


class Partitioner(BasePartitioner, Waits):
    """One member's part in a pool: :class:`divvy.Partitioner`.

    `run()` is the whole loop of a member. `async for view in partitioner` gives a :class:`View` at once, and after each
    change. It ends behind FAILURE. Changes that come faster than views are taken are one. The end of a user's job is no
    change: who works by such views looks again then, and calls `release_set(view.state_id)` when all have ended.
    """

    def _prepare(self) -> None:
        self._changed = asyncio.Event()

    def _told(self, lost: Tuple[str, ...] = ()) -> None:
        super()._told(lost)
        self._client._dispatch(self._changed.set)

    async def __aiter__(self) -> AsyncIterator[View]:
        while True:
            self._changed.clear()
            view = self.look()
            yield view
            if view.state == PartitionState.FAILURE:
                return
            await self._changed.wait()

    async def wait_for_acquire(self, timeout: Optional[float] = None) -> None:
        """Waits until the share is complete."""
        await self._run(wait, lib.divvy_partitioner_wait_for_acquire, milliseconds(timeout))

    async def finish(self, timeout: Optional[float] = None) -> None:
        """Releases everything and leaves the party. Work on all items must have stopped before."""
        await self._run(wait, lib.divvy_partitioner_finish, milliseconds(timeout))

    async def leave(self, timeout: Optional[float] = None, *, working: bool = False) -> None:
        """Ends, and gives up the place in the plan; with `working` each item stays until its next owner is ready."""
        flags = lib.DIVVY_LEAVE_WORKING if flag("working", working) else 0
        await self._run(wait, lib.divvy_partitioner_leave, flags, milliseconds(timeout))

    @checked
    async def run(self, worker: Callable[[Job], Awaitable[object]], *,
                  prepare: Optional[Callable[[str], Awaitable[object]]] = None, stop: Optional[asyncio.Event] = None,
                  grace: float = 10.0, signals: Optional[bool] = None, restart: str = "always", on_error: str = "log",
                  backoff: float = 0.1, backoff_max: float = 30.0, hand_over: bool = True,
                  finish_timeout: float = 5.0, quarantine: Optional[Tuple[int, float]] = None) -> None:
        """Works on all items that are ours, until it is asked to end: a task with `worker(job)` for each item.

        All is as with :meth:`divvy.Partitioner.run`, but for the end of a job. `job.stop` is set, and the task is
        canceled if it goes on for `grace` seconds: at once where the item was lost, and may be another's already. An
        item waits for its task, also for what that does when it is canceled.

        Where the task that runs this is canceled, it hands nothing over: all jobs are told to stop, and this raises
        CancelledError when they have ended, and the pool is left. A second cancel cancels all of them.
        """
        from divvy.aio._run import run
        await run(self, worker, prepare, stop, grace, signals, restart, on_error, backoff, backoff_max, hand_over,
                  finish_timeout, quarantine)

    async def __aenter__(self) -> Partitioner:
        return self

    async def __aexit__(self, *_: Any) -> None:
        self.close()


class Party(BaseParty, Waits):
    """Membership in a party: :class:`divvy.Party`. An `async with` block leaves at its end."""

    async def members(self, timeout: Optional[float] = None) -> List[str]:
        """Returns the members of the party now, this one among them."""
        return await self._list(lib.divvy_party_members, timeout)

    async def leave(self, timeout: Optional[float] = None) -> None:
        """Leaves, and waits until the node is gone."""
        await self._run(wait, lib.divvy_party_leave, milliseconds(timeout))

    async def __aenter__(self) -> Party:
        return self

    async def __aexit__(self, *_: Any) -> None:
        self.close()


class Election(BaseElection, Waits):
    """One candidate at a path, or an observer: :class:`divvy.Election`. `async with` closes it at the block's end.

    Its callbacks run in the loop, and are plain functions: they start the work, as a task, and cancel it.
    """

    async def leader(self, timeout: Optional[float] = None) -> Optional[Leader]:
        """Returns who leads, or None."""
        out = place_for("divvy_leader", lib.divvy_leader_free)
        await self._run(wait, lib.divvy_election_leader, out, milliseconds(timeout))
        return leader_of(out[0])

    async def candidates(self, timeout: Optional[float] = None) -> List[str]:
        """Returns what all candidates say of themselves, the leader first."""
        return await self._list(lib.divvy_election_candidates, timeout)

    async def ask_step_down(self, timeout: Optional[float] = None) -> None:
        """Asks the one that leads to step down, and waits until it does not lead."""
        await self._run(wait, lib.divvy_election_ask_step_down, milliseconds(timeout))

    async def __aenter__(self) -> Election:
        self._use()
        return self

    async def __aexit__(self, *_: Any) -> None:
        self.close()


class Registry(BaseRegistry, Waits):
    """A registry as one program uses it: :class:`divvy.Registry`. `async with` closes it at the block's end."""

    def close(self) -> None:
        """Ends it; a second call does nothing. Calls that wait, and `changes()`, end with :class:`divvy.Closed`."""
        super().close()
        self._client._end_streams(self)

    async def __aenter__(self) -> Registry:
        self._use()
        return self

    async def __aexit__(self, *_: Any) -> None:
        self.close()

    async def heartbeat(self, status: Mapping[str, Any], timeout: Optional[float] = None) -> Entry:
        """Announces a service, or says that it is still there; returns the entry as it stands in ZooKeeper."""
        answer = Answer(self._client)
        answer.begin(self, lib.divvy_registry_heartbeat_async, tree("status", status), milliseconds(timeout),
                     lib.divvy_py_heartbeat_done)
        entry: Entry = await answer.get(lambda: None, lambda: None)
        return entry

    async def changes(self, role: Optional[str] = None) -> AsyncIterator[ServiceChange]:
        """Keeps a live view of a role, or of all (None), and gives each change of it, until :class:`divvy.Closed`."""
        queue: asyncio.Queue[Optional[ServiceChange]] = asyncio.Queue()
        self.watch(role, lambda _registry, change: queue.put_nowait(change))
        self._client._streams[queue] = self
        try:
            while True:
                change = await queue.get()
                if change is None:
                    raise gone(self if self.closed else self._client)
                yield change
        finally:
            del self._client._streams[queue]
            with contextlib.suppress(Error):  # it is closed
                self.unwatch(role)

    async def unregister(self, role: Optional[str], id: str, timeout: Optional[float] = None) -> None:
        """Removes a service, whosesoever it is; None as the role: every service of this id."""
        await self._run(wait, lib.divvy_registry_unregister, maybe_encode("role", role), encode("id", id),
                        milliseconds(timeout))

    async def services(self, role: Optional[str] = None, timeout: Optional[float] = None) -> Services:
        """Returns the healthy services of a role, or of all roles, the least loaded first.

        It copies nothing and sends no request where they are watched (`watch()`).
        """
        return await self._run(take_services, maybe_encode("role", role), milliseconds(timeout))

    async def healthy_service(self, role: str, timeout: Optional[float] = None) -> Optional[Entry]:
        """Returns the healthy service of a role that has the least load, or None."""
        entry: Optional[Entry] = await self._entry(lib.divvy_registry_healthy_service, timeout, encode("role", role))
        return entry

    async def healthy_services(self, role: Optional[str] = None, timeout: Optional[float] = None) -> List[Entry]:
        """Returns all healthy services of a role, or of all roles, the least loaded first."""
        return await self._entry(lib.divvy_registry_healthy_services, timeout, maybe_encode("role", role)) or []

    async def unique_service(self, role: str, candidate: Optional[Mapping[str, Any]] = None,
                             timeout: Optional[float] = None) -> Optional[Entry]:
        """Returns the one service of a unique role; with a candidate, first claims the role for it, or keeps it."""
        given = NULL if candidate is None else tree("candidate", candidate)
        entry: Optional[Entry] = await self._entry(lib.divvy_registry_unique_service, timeout, encode("role", role),
                                                   given)
        return entry

    async def purge_stale_services(self, ttls: float = 2.0, timeout: Optional[float] = None) -> int:
        """Deletes the entries that are older than so many times their ttl; returns how many."""
        out = ffi.new("size_t *")
        await self._run(wait, lib.divvy_registry_purge_stale_services, number("ttls", ttls), out, milliseconds(timeout))
        return int(out[0])

    async def _entry(self, function: Any, timeout: Optional[float], *arguments: Any) -> Any:
        out = place_for("cJSON", lib.cJSON_Delete)
        await self._run(wait, function, *arguments, out, milliseconds(timeout))
        return value_of(out[0])


@callback
def lock_done(answer: Answer, _pointer: Any, result: int) -> None:
    answer.done(result)


@callback
def semaphore_done(answer: Answer, _pointer: Any, result: int) -> None:
    answer.done(result)


@callback
def heartbeat_done(answer: Answer, _pointer: Any, result: int, stored: Any) -> None:
    answer.done(result, value_of(stored))
