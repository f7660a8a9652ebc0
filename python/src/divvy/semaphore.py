"""Semaphore: a pool of numbered slots. SPDX-License-Identifier: Apache-2.0"""
from __future__ import annotations

import dataclasses
import enum
from typing import Any, Callable, List, Optional

from divvy._cffi import ffi, lib
from divvy._core import Config, Handle, callback, milliseconds, text
from divvy.errors import NotHeld


class LimitPolicy(enum.Enum):
    """What happens when the pool has another limit already."""

    ERROR = lib.DIVVY_LIMIT_ERROR
    STORED = lib.DIVVY_LIMIT_STORED
    PROVIDED = lib.DIVVY_LIMIT_PROVIDED


@dataclasses.dataclass(frozen=True)
class Holder:
    """One that holds slots, or waits for some. Of kazoo's only the identifier and the token are known."""

    identifier: str
    host: str
    pid: int
    time: str
    slot: int
    slots: int
    token: int


class BaseSemaphore(Handle):
    """What a semaphore has whether calls wait or the event loop does."""

    _type = "divvy_semaphore"

    def __init__(self, client: Any, path: str, *, identifier: Optional[str] = None, limit: Optional[int] = None,
                 count: Optional[int] = None, limit_policy: LimitPolicy = LimitPolicy.ERROR, container: bool = False,
                 on_lost: Optional[Callable[[Any], object]] = None) -> None:
        super().__init__()
        self.path, self._on_lost, self._count = path, on_lost, count or 1
        config = Config("semaphore_config")
        config.set(path=path, identifier=identifier, limit=limit, count=count, limit_policy=limit_policy.value,
                   container=int(container), user=self._user,
                   on_lost=lib.divvy_py_semaphore_lost if on_lost else None)
        self._make_on(client, lib.divvy_semaphore_create, lib.divvy_semaphore_destroy,
                      lib.divvy_semaphore_destroy_async, config.c)

    @property
    def held(self) -> bool:
        """Whether slots are held now, by the session clock. Sends nothing."""
        return bool(lib.divvy_semaphore_held(self._use()))

    @property
    def token(self) -> int:
        """The fencing token of what is held; 0 when nothing is."""
        return int(lib.divvy_semaphore_token(self._use()))

    @property
    def slot(self) -> int:
        """The number of the slot that is held, the lowest where several are; -1 when none is."""
        return int(lib.divvy_semaphore_slot(self._use()))

    @property
    def slots(self) -> List[int]:
        """The numbers of all slots that are held."""
        pointer = self._use()
        found = [int(lib.divvy_semaphore_slot_at(pointer, i)) for i in range(self._count)]
        return [slot for slot in found if slot >= 0]

    def release(self) -> None:
        """Releases the slots, and waits for nothing."""
        self._call(lib.divvy_semaphore_release)


class Semaphore(BaseSemaphore):
    """One user of a semaphore at a path; <divvy/semaphore.h> has the full text.

    `with client.semaphore(path, limit=4):` holds a slot in the block, or `count` slots, all or none.
    """

    def acquire(self, timeout: Optional[float] = None) -> None:
        """Acquires the slots; raises :class:`TimedOut` when the time has passed."""
        self._wait(lib.divvy_semaphore_acquire, milliseconds(timeout), undo=lib.divvy_semaphore_release)

    def try_acquire(self) -> bool:
        """Acquires the slots if they are free and nobody is before us; returns whether it did."""
        return self._try(lib.divvy_semaphore_try_acquire, undo=lib.divvy_semaphore_release)

    def wait_gone(self, timeout: Optional[float] = None) -> None:
        """Waits until no node of this semaphore is left at the servers, after a release, a cancel or a timeout."""
        self._wait(lib.divvy_semaphore_wait_gone, milliseconds(timeout))

    @property
    def attempt_id(self) -> int:
        """The number of the acquire that waits, or else of the next one, for `cancel()`."""
        return int(lib.divvy_semaphore_attempt_id(self._use()))

    def cancel(self, attempt_id: int = 0) -> None:
        """Ends an acquire with :class:`Canceled`: the one of this number, also before it begins; 0: the one that waits.

        Does nothing otherwise, neither now nor to a later acquire.
        """
        self._call(lib.divvy_semaphore_cancel, attempt_id)

    def resize(self, limit: int, timeout: Optional[float] = None) -> None:
        """Changes the limit of the pool, for all that use it."""
        self._wait(lib.divvy_semaphore_resize, limit, milliseconds(timeout))

    def holders(self, timeout: Optional[float] = None) -> List[Holder]:
        """Returns the holders of slots, in the order of their tokens."""
        return self._holders(lib.divvy_semaphore_holders, timeout)

    def contenders(self, timeout: Optional[float] = None) -> List[Holder]:
        """Returns those that wait, in the order of the queue."""
        return self._holders(lib.divvy_semaphore_contenders, timeout)

    def _holders(self, function: Any, timeout: Optional[float]) -> List[Holder]:
        out = ffi.new("divvy_holders **")
        self._wait(function, out, milliseconds(timeout))
        return holders(out[0])

    def __enter__(self) -> Semaphore:
        self.acquire()
        return self

    def __exit__(self, *_: Any) -> None:
        try:
            self.release()
        except NotHeld:  # on_lost was called
            pass


def holders(taken: Any) -> List[Holder]:
    """Returns what a divvy_holders has, and frees it."""
    try:
        return [Holder(text(lib.divvy_holders_identifier(taken, i)), text(lib.divvy_holders_host(taken, i)),
                       lib.divvy_holders_pid(taken, i), text(lib.divvy_holders_time(taken, i)),
                       lib.divvy_holders_slot(taken, i), lib.divvy_holders_slots(taken, i),
                       lib.divvy_holders_token(taken, i)) for i in range(lib.divvy_holders_count(taken))]
    finally:
        lib.divvy_holders_free(taken)


@callback
def semaphore_lost(semaphore: BaseSemaphore, _pointer: Any) -> None:
    assert semaphore._on_lost
    semaphore._client._dispatch(semaphore._on_lost, semaphore)
