"""A job in an event loop, and what it awaits until it is told to stop. SPDX-License-Identifier: Apache-2.0

`until_stop()` awaits in the worker's own task, and cancels that, as `asyncio.timeout()` does. In a task of its own what
is received could be lost: where it comes at the moment at which the worker is canceled, nobody would take it.
"""
from __future__ import annotations

import asyncio
import inspect
from typing import Any, Awaitable, Optional, Set, Type, TypeVar

from divvy._jobs import BaseJob
from divvy.partitioner import BasePartitioner

T = TypeVar("T")


class Wait:
    """A block in which a stop cancels what is awaited, and which then ends without an exception."""

    def __init__(self, waits: Set[Wait]) -> None:
        task = asyncio.current_task()
        assert task
        self._task: asyncio.Task[Any] = task
        self._waits = waits
        self._canceled = False

    def cancel(self) -> None:
        if self in self._waits:
            self._canceled = True
            self._task.cancel()

    def __enter__(self) -> None:
        self._cancels_before = self._cancels()
        self._waits.add(self)

    def __exit__(self, kind: Optional[Type[BaseException]], *_: Any) -> bool:
        self._waits.discard(self)
        if not self._canceled:
            return False
        if hasattr(self._task, "uncancel"):
            self._task.uncancel()
        return kind is asyncio.CancelledError and self._cancels() <= self._cancels_before

    def _cancels(self) -> int:
        """Returns how many have canceled the task; Python 3.10 does not know."""
        return self._task.cancelling() if hasattr(self._task, "cancelling") else 0


class Stop(asyncio.Event):
    """`stop` of a job."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: Set[Wait] = set()

    def set(self) -> None:
        super().set()
        for wait in self.waits:  # from the loop, as a task that is at work cannot be told
            asyncio.get_running_loop().call_soon(wait.cancel)


class Job(BaseJob[asyncio.Event]):
    """One call of a worker, by `divvy.aio.Partitioner.run()`. `stop` is an asyncio.Event."""

    def __init__(self, partitioner: BasePartitioner, item: str, token: int, prepared: Any) -> None:
        self._stop = Stop()
        super().__init__(partitioner, item, token, self._stop, prepared)

    async def until_stop(self, awaitable: Awaitable[T]) -> Optional[T]:
        """Awaits something, such as the next message, and returns what it gives; None when the job has to stop.

        Then what is awaited is canceled, or does not begin, where `owns()` says no already. It loses nothing if it may
        be canceled, as `asyncio.Queue.get()` may: what has come by then is returned, or stays where it is.
        """
        if not self.owns() and not (asyncio.isfuture(awaitable) and awaitable.done()):
            _drop(awaitable)
            return None
        with Wait(self._stop.waits):
            return await awaitable
        return None


def _drop(awaitable: Any) -> None:
    """Ends what was not awaited."""
    if inspect.iscoroutine(awaitable):
        awaitable.close()
    elif asyncio.isfuture(awaitable):
        awaitable.cancel()
