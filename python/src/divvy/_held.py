"""Acquires, waits for and releases: what a lock and a semaphore share. SPDX-License-Identifier: Apache-2.0"""
from __future__ import annotations

from typing import Any, Optional, TypeVar

from divvy._arguments import integer, milliseconds
from divvy._cffi import lib
from divvy._core import Handle
from divvy.errors import NotHeld

T = TypeVar("T", bound="Held")


class BaseHeld(Handle):
    """What can be held, whether calls wait or the event loop does."""

    def _function(self, name: str) -> Any:
        """Returns the C function of this name, for this type."""
        return getattr(lib, f"{self._type}_{name}")

    @property
    def held(self) -> bool:
        """Whether it is held now, by the session clock. Sends nothing."""
        return bool(self._ask(self._function("held")))

    @property
    def token(self) -> int:
        """The fencing token of what is held, greater than that of every earlier holder; 0 when it is not held."""
        return int(self._ask(self._function("token")))

    def release(self) -> None:
        """Releases what is held, and waits for nothing."""
        self._call(self._function("release"))

    def _release_unless_lost(self) -> None:
        try:
            self.release()
        except NotHeld:  # on_lost was called
            pass


class Held(BaseHeld):
    """The same, with calls that wait."""

    def acquire(self, timeout: Optional[float] = None) -> None:
        """Acquires it; raises :class:`TimedOut` when the time has passed."""
        self._wait(self._function("acquire"), milliseconds(timeout), undo=self._function("release"))

    def try_acquire(self) -> bool:
        """Acquires it if it is free and nobody is before us; returns whether it did."""
        return self._try(self._function("try_acquire"), undo=self._function("release"))

    def wait_gone(self, timeout: Optional[float] = None) -> None:
        """Waits until no node of it is left at the servers, after a release, a cancel or a timeout."""
        self._wait(self._function("wait_gone"), milliseconds(timeout))

    @property
    def attempt_id(self) -> int:
        """The number of the acquire that waits, or else of the next one, for `cancel()`."""
        return int(self._ask(self._function("attempt_id")))

    def cancel(self, attempt_id: int = 0) -> None:
        """Ends an acquire with :class:`Canceled`: the one of this number, also before it begins; 0: the one that waits.

        Does nothing otherwise, neither now nor to a later acquire.
        """
        self._call(self._function("cancel"), integer("attempt_id", attempt_id, "uint64_t"))

    def __enter__(self: T) -> T:
        self.acquire()
        return self

    def __exit__(self, *_: Any) -> None:
        self._release_unless_lost()
