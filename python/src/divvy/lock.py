"""Lock: one holder at a time, or one writer or many readers. SPDX-License-Identifier: Apache-2.0"""
from __future__ import annotations

import enum
from typing import Any, Callable, List, Optional

from divvy._cffi import lib
from divvy._core import Config, Handle, callback, milliseconds
from divvy.errors import NotHeld


class LockMode(enum.Enum):
    """The way in which a lock excludes others at its path."""

    EXCLUSIVE = lib.DIVVY_EXCLUSIVE
    READ = lib.DIVVY_READ
    WRITE = lib.DIVVY_WRITE


class BaseLock(Handle):
    """What a lock has whether calls wait or the event loop does."""

    _type = "divvy_lock"

    def __init__(self, client: Any, path: str, *, identifier: Optional[str] = None,
                 mode: LockMode = LockMode.EXCLUSIVE, container: bool = False,
                 on_lost: Optional[Callable[[Any], object]] = None) -> None:
        super().__init__()
        self.path, self._on_lost = path, on_lost
        config = Config("lock_config")
        config.set(path=path, identifier=identifier, mode=mode.value, container=int(container), user=self._user,
                   on_lost=lib.divvy_py_lock_lost if on_lost else None)
        self._make_on(client, lib.divvy_lock_create, lib.divvy_lock_destroy, lib.divvy_lock_destroy_async, config.c)

    @property
    def held(self) -> bool:
        """Whether the lock is held now, by the session clock. Sends nothing."""
        return bool(lib.divvy_lock_held(self._use()))

    @property
    def token(self) -> int:
        """The fencing token of what is held, greater than that of every earlier holder; 0 when it is not held."""
        return int(lib.divvy_lock_token(self._use()))

    @property
    def node(self) -> Optional[str]:
        """The path of our node in the queue, held or waiting; None where there is none."""
        return self._node(lib.divvy_lock_node)

    def release(self) -> None:
        """Releases the lock, and waits for nothing."""
        self._call(lib.divvy_lock_release)


class Lock(BaseLock):
    """One contender for the lock at a path; <divvy/lock.h> has the full text.

    `with client.lock(path):` holds it in the block. Not re-entrant. `on_lost(lock)` is called when it was held, and is
    lost with the session or with its node.
    """

    def acquire(self, timeout: Optional[float] = None) -> None:
        """Acquires the lock; raises :class:`TimedOut` when the time has passed."""
        self._wait(lib.divvy_lock_acquire, milliseconds(timeout), undo=lib.divvy_lock_release)

    def try_acquire(self) -> bool:
        """Acquires the lock if nobody is before us; returns whether it did."""
        return self._try(lib.divvy_lock_try_acquire, undo=lib.divvy_lock_release)

    def wait_gone(self, timeout: Optional[float] = None) -> None:
        """Waits until no node of this lock is left at the servers, after a release, a cancel or a timeout."""
        self._wait(lib.divvy_lock_wait_gone, milliseconds(timeout))

    @property
    def attempt_id(self) -> int:
        """The number of the acquire that waits, or else of the next one, for `cancel()`."""
        return int(lib.divvy_lock_attempt_id(self._use()))

    def cancel(self, attempt_id: int = 0) -> None:
        """Ends an acquire with :class:`Canceled`: the one of this number, also before it begins; 0: the one that waits.

        Does nothing otherwise, neither now nor to a later acquire.
        """
        self._call(lib.divvy_lock_cancel, attempt_id)

    def contenders(self, timeout: Optional[float] = None) -> List[str]:
        """Returns the identifiers of all that contend, holders first."""
        return self._list_now(lib.divvy_lock_contenders, timeout)

    def __enter__(self) -> Lock:
        self.acquire()
        return self

    def __exit__(self, *_: Any) -> None:
        try:
            self.release()
        except NotHeld:  # on_lost was called
            pass


@callback
def lock_lost(lock: BaseLock, _pointer: Any) -> None:
    assert lock._on_lost
    lock._client._dispatch(lock._on_lost, lock)
