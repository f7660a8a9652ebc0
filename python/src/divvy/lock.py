"""Lock: one holder at a time, or one writer or many readers. SPDX-License-Identifier: Apache-2.0"""
from __future__ import annotations

import enum
from typing import Any, Callable, List, Optional

from divvy._arguments import flag, given, member
from divvy._cffi import lib
from divvy._config import Config
from divvy._core import callback
from divvy._held import BaseHeld, Held


class LockMode(enum.Enum):
    """The way in which a lock excludes others at its path."""

    EXCLUSIVE = lib.DIVVY_EXCLUSIVE
    READ = lib.DIVVY_READ
    WRITE = lib.DIVVY_WRITE


class BaseLock(BaseHeld):
    """What a lock has whether calls wait or the event loop does."""

    _type = "divvy_lock"

    def __init__(self, client: Any, path: str, *, identifier: Optional[str] = None,
                 mode: LockMode = LockMode.EXCLUSIVE, container: bool = False,
                 on_lost: Optional[Callable[[Any], object]] = None) -> None:
        super().__init__()
        self.path, self._on_lost = path, on_lost
        config = Config("lock_config")
        config.require(path=path)
        config.set(identifier=identifier, mode=member("mode", mode, LockMode), container=flag("container", container),
                   user=self._user, on_lost=given("on_lost", on_lost, lib.divvy_py_lock_lost))
        self._make_on(client, lib.divvy_lock_create, lib.divvy_lock_destroy, lib.divvy_lock_destroy_async, config.c)

    @property
    def node(self) -> Optional[str]:
        """The path of our node in the queue, held or waiting; None where there is none."""
        return self._node(lib.divvy_lock_node)


class Lock(BaseLock, Held):
    """One contender for the lock at a path; <divvy/lock.h> has the full text.

    `with client.lock(path):` holds it in the block. Not re-entrant. `on_lost(lock)` is called when it was held, and is
    lost with the session or with its node.
    """

    def contenders(self, timeout: Optional[float] = None) -> List[str]:
        """Returns the identifiers of all that contend, holders first."""
        return self._list_now(lib.divvy_lock_contenders, timeout)


@callback
def lock_lost(lock: BaseLock, _pointer: Any) -> None:
    assert lock._on_lost
    lock._tell(lock._on_lost, lock)
