"""kazoo's locks and its semaphore. SPDX-License-Identifier: Apache-2.0"""
from __future__ import annotations

import threading
import time
from typing import Any, Callable, List, Optional, Sequence

from kazoo import exceptions

import divvy
from divvy._arguments import integer, number
from divvy._box import Unique
from divvy.kazoo._session import absolute, as_kazoo, session_of


class _Contender(Unique):
    """What locks and semaphores share: an object of divvy's, made again when the client is another."""

    _keeps_cancel = False  # whether a cancel before an acquire ends that

    def __init__(self, client: Any, path: str, identifier: Optional[str]) -> None:
        self.client = client
        self.path = absolute(path)
        self.data = str(identifier or "").encode("utf-8")
        self.cancelled = False
        self._turn = threading.Condition()
        self._acquiring = False
        self._thing: Any = None

    def _new(self, client: divvy.Client, on_lost: Callable[[Any], object]) -> Any:
        raise NotImplementedError

    def _get(self, deadline: Optional[float] = None, acquires: bool = False) -> Any:
        client = session_of(self.client).get(deadline, lambda: acquires and self.cancelled)
        with self._turn:
            if self._thing is None or self._thing._client is not client:
                self._thing = self._new(client, self._lost)
            return self._thing

    def _lost(self, _thing: Any) -> None:
        with self._turn:
            self._turn.notify_all()

    @property
    def is_acquired(self) -> bool:
        """Whether it is held now."""
        thing = self._thing
        return thing is not None and not thing._client.closed and bool(thing.held)

    def cancel(self) -> None:
        """Cancel a pending acquire."""
        with self._turn:
            self.cancelled = True
            self._turn.notify_all()
            thing = self._thing
            if self._acquiring and thing is not None:
                thing.cancel(thing.attempt_id)

    def _enter(self, blocking: bool, deadline: Optional[float], held_is_enough: bool) -> Optional[bool]:
        """Waits for this object's other acquires, and until it is not held. Returns None, or the acquire's result."""
        with self._turn:
            self.cancelled = self.cancelled and self._keeps_cancel
            while self._acquiring or self.is_acquired:
                if held_is_enough and not self._acquiring:
                    return True
                left = None if deadline is None else deadline - time.monotonic()
                if not blocking or left is not None and left <= 0:
                    return False
                self._turn.wait(1 if left is None else min(left, 1))
                if self.cancelled:
                    raise exceptions.CancelledError()
            if self.cancelled:
                raise exceptions.CancelledError("canceled before it began")
            self._acquiring = True
        return None

    def _acquire(self, blocking: bool, timeout: Optional[float], held_is_enough: bool = False) -> bool:
        deadline = None if timeout is None else time.monotonic() + number("timeout", timeout)
        try:
            result = self._enter(blocking, deadline, held_is_enough)
            return self._acquire_entered(blocking, deadline) if result is None else result
        except exceptions.CancelledError:
            self.cancelled = False
            raise

    def _acquire_entered(self, blocking: bool, deadline: Optional[float]) -> bool:
        try:
            with as_kazoo(exceptions.LockTimeout):
                return self._acquire_turn(blocking, deadline)
        finally:
            with self._turn:
                self._acquiring = False
                self._turn.notify_all()

    def _acquire_turn(self, blocking: bool, deadline: Optional[float]) -> bool:
        while True:
            thing = self._get(deadline, acquires=True)
            with self._turn:  # a cancel from here on finds the thing
                if self.cancelled:
                    raise exceptions.CancelledError()
            try:
                if blocking:
                    thing.acquire(None if deadline is None else max(0.001, deadline - time.monotonic()))
                elif not thing.try_acquire():
                    return False
                session_of(self.client).keep(thing, True)
                return True
            except (divvy.Closed, divvy.SessionLost):  # the KazooClient's session is over; the next one decides
                if session_of(self.client).is_current(thing._client):
                    raise

    def release(self) -> bool:
        """Release it immediately; returns whether it was held."""
        thing = self._thing
        try:
            if thing is None or thing._client.closed:
                return False
            session_of(self.client).keep(thing, False)
            thing.release()
            return True
        except (divvy.NotHeld, divvy.Closed):
            return False
        finally:
            self._lost(thing)

    def __enter__(self) -> None:
        self.acquire()

    def acquire(self, blocking: bool = True, timeout: Optional[float] = None) -> bool:
        raise NotImplementedError

    def __exit__(self, *_: Any) -> None:
        self.release()


class Lock(_Contender):
    """kazoo's Lock on divvy. Its node is always ephemeral, and it cannot wait for the locks of other libraries."""

    _mode = divvy.LockMode.EXCLUSIVE
    _keeps_cancel = True

    def __init__(self, client: Any, path: str, identifier: Optional[str] = None,
                 extra_lock_patterns: Sequence[str] = ()) -> None:
        if extra_lock_patterns:
            raise divvy.Unsupported("divvy.kazoo has no extra_lock_patterns: it waits for kazoo's and divvy's locks")
        super().__init__(client, path, identifier)

    def _new(self, client: divvy.Client, on_lost: Callable[[Any], object]) -> divvy.Lock:
        return divvy.Lock(client, self.path, identifier=self.data.decode() or None, mode=self._mode, on_lost=on_lost)

    @property
    def node(self) -> Optional[str]:
        """The name of this lock's node, while it has one."""
        path: Optional[str] = None if self._thing is None else self._thing.node
        return path and path.rsplit("/", 1)[1]

    def acquire(self, blocking: bool = True, timeout: Optional[float] = None, ephemeral: bool = True) -> bool:
        """Acquire the lock; returns whether it was acquired, and raises LockTimeout when the time has passed."""
        if not ephemeral:
            raise divvy.Unsupported("divvy.kazoo has no lock that outlives its session (ephemeral=False)")
        return self._acquire(blocking, timeout)

    def contenders(self) -> List[str]:
        """Return an ordered list of the current contenders for the lock."""
        with as_kazoo():
            found: List[str] = self._get().contenders()
            return found


class ReadLock(Lock):
    """kazoo's ReadLock on divvy."""

    _mode = divvy.LockMode.READ


class WriteLock(Lock):
    """kazoo's WriteLock on divvy."""

    _mode = divvy.LockMode.WRITE


class Semaphore(_Contender):
    """kazoo's Semaphore on divvy."""

    def __init__(self, client: Any, path: str, identifier: Optional[str] = None, max_leases: int = 1) -> None:
        super().__init__(client, path, identifier)
        if not 0 < integer("max_leases", max_leases, "int"):
            raise divvy.InvalidArgument(f"max_leases is {max_leases}: give 1 or more")
        self.max_leases = max_leases

    def _new(self, client: divvy.Client, on_lost: Callable[[Any], object]) -> divvy.Semaphore:
        return divvy.Semaphore(client, self.path, identifier=self.data.decode() or None, limit=self.max_leases,
                               on_lost=on_lost)

    def acquire(self, blocking: bool = True, timeout: Optional[float] = None) -> bool:
        """Acquire the semaphore; ValueError when the pool has another number of leases."""
        try:
            return self._acquire(blocking, timeout, held_is_enough=True)
        except divvy.Differs as error:
            raise ValueError(str(error)) from error

    def lease_holders(self) -> List[str]:
        """Return an unordered list of the current lease holders."""
        with as_kazoo():
            return [holder.identifier for holder in self._get().holders()]
