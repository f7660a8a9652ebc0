"""A partitioner's run in an event loop, with a task for each item. SPDX-License-Identifier: Apache-2.0"""
from __future__ import annotations

import asyncio
import functools
import inspect
from typing import Any, Awaitable, Callable, Coroutine, Dict, Optional, Set, Tuple

from divvy._arguments import event, seconds
from divvy._jobs import PAUSE_TIMEOUT_S, BaseRun, Options, Place, WrongWorker, check, say_unfinished
from divvy._quarantine import by_of
from divvy._signals import Signals
from divvy.aio._job import Job
from divvy.aio._objects import Partitioner
from divvy.errors import Closed, Error, WrongState
from divvy.partitioner import Item


async def run(partitioner: Partitioner, worker: object, prepare: object, stop: object, grace: object, signals: object,
              restart: object, on_error: object, backoff: object, backoff_max: object, hand_over: object,
              finish_timeout: object, quarantine: object = None) -> None:
    """Runs until it is asked to end, or fails: see `divvy.aio.Partitioner.run()`."""
    options = check(partitioner, worker, prepare, restart, on_error, backoff, backoff_max, hand_over, signals,
                    finish_timeout, quarantine)
    made = Run(partitioner, options, seconds("grace", grace))
    stop_event = None if stop is None else event("stop", stop, asyncio.Event)
    with Signals(options.signals, made.ask_soon):
        await made.run(stop_event)


class Run(BaseRun):
    """One run."""

    _p: Partitioner

    def __init__(self, partitioner: Partitioner, options: Options, grace: float) -> None:
        super().__init__(partitioner, options)
        self._grace = grace
        self._loop = asyncio.get_running_loop()
        self._wake = asyncio.Event()
        self._tasks: Dict[Any, asyncio.Task[Any]] = {}  # of jobs
        self._cancels: Dict[Any, asyncio.TimerHandle] = {}  # of jobs that were told to stop
        self._preparing: Set[asyncio.Task[Any]] = set()
        self._closing: Set[asyncio.Task[Any]] = set()

    def ask(self) -> None:
        super().ask()
        self._wake.set()

    def ask_soon(self) -> None:
        """Asks it to end, from the handler of a signal."""
        self._loop.call_soon_threadsafe(self.ask)

    async def run(self, stop: Optional[asyncio.Event]) -> None:
        """Works, ends, and leaves the pool."""
        if self._p._listener is not None:
            raise WrongState("this Partitioner runs already")
        self._p._listener = self._told
        watch = self._loop.create_task(self._watch(stop)) if stop else None
        try:
            while not self.step():
                await self._wait(self.wait_s())
        except BaseException as error:
            self.stop(error, lost=isinstance(error, Closed))
            await self._drain()
        finally:
            self._p._listener = None
            if watch:
                watch.cancel()
        await self._finish()
        if self.error is not None:
            raise self.error

    async def _watch(self, stop: asyncio.Event) -> None:
        await stop.wait()
        self.ask()

    async def _drain(self) -> None:
        """Waits until all tasks have ended. Where this one is canceled again, they are, too."""
        for task in self._preparing:
            task.cancel()
        while not self.idle():
            self._see_losses()
            try:
                await self._wait(None)
            except asyncio.CancelledError:
                for task in {*self._tasks.values(), *self._closing}:
                    task.cancel()

    def _see_losses(self) -> None:
        try:
            self._look()
            self._stop_jobs()
        except Error:  # it is closed
            self.stop(lost=True)

    async def _finish(self) -> None:
        try:
            await self._p.finish(self._o.finish_timeout)
        except Error as error:
            say_unfinished(error, self._o.finish_timeout)

    def _told(self, lost: Tuple[str, ...]) -> None:
        self.take_lost(lost)
        self._wake.set()

    async def _wait(self, timeout: Optional[float]) -> None:
        timer = self._loop.call_later(timeout, self._wake.set) if timeout is not None else None
        try:
            await self._wake.wait()
        finally:
            if timer:
                timer.cancel()
        self._wake.clear()

    def _begin(self, place: Place, item: Item, prepared: Any) -> None:
        job = Job(self._p, item.item, item.token, prepared)
        place.job = job
        self._tasks[job] = self._start_task(_call(self._o.worker, job), functools.partial(self._worker_ended, place))

    def _begin_preparing(self, place: Place) -> None:
        assert self._o.prepare
        task = self._start_task(_call(self._o.prepare, place.item), functools.partial(self._prepare_ended, place))
        self._preparing.add(task)

    def _begin_closing(self, place: Place, prepared: Any) -> None:
        task = self._start_task(_close(prepared), functools.partial(self._closed, place))
        self._closing.add(task)
        self._loop.call_later(self._grace, task.cancel)

    def _begin_pause(self, item: str, why: str) -> None:
        asked = self._p._client.pool_pause(self._p.path, item, by=by_of(self._p.identifier), why=why,
                                           timeout=PAUSE_TIMEOUT_S)
        task = self._start_task(_wait_for(asked), functools.partial(self._paused, item, why))
        self._closing.add(task)

    def _paused(self, item: str, why: str, task: asyncio.Task[Any]) -> None:
        self._closing.discard(task)
        self.take_paused(item, why, _error_of(task))
        self._wake.set()

    def _start_task(self, work: Coroutine[Any, Any, Any],
                    ended: Callable[[asyncio.Task[Any]], None]) -> asyncio.Task[Any]:
        task = self._loop.create_task(work)
        task.add_done_callback(ended)
        return task

    def _worker_ended(self, place: Place, task: asyncio.Task[Any]) -> None:
        del self._tasks[place.job]
        if place.job in self._cancels:
            self._cancels.pop(place.job).cancel()
        error = _error_of(task)
        if place.stopping and isinstance(error, asyncio.CancelledError):
            error = None  # that is how it stops
        self.take_end(place, error)
        self._wake.set()

    def _prepare_ended(self, place: Place, task: asyncio.Task[Any]) -> None:
        self._preparing.discard(task)
        error = _error_of(task)
        self.take_prepared(place, None if error is not None else task.result(), error)
        self._wake.set()

    def _closed(self, place: Place, task: asyncio.Task[Any]) -> None:
        self._closing.discard(task)
        self.take_closed(place, _error_of(task))
        self._wake.set()

    def stop(self, error: Optional[BaseException] = None, lost: bool = False) -> None:
        super().stop(error, lost)
        for task in self._preparing:
            task.cancel()

    def _tell_stop(self, job: Any, lost: bool) -> None:
        job.stop.set()
        due = self._cancels.get(job)
        if not lost:
            self._cancels[job] = self._loop.call_later(self._grace, self._tasks[job].cancel)
        elif due is None or due.when() > self._loop.time():  # a task is canceled once, so that it can clean up
            if due:
                due.cancel()
            self._tasks[job].cancel()


async def _call(function: Callable[[Any], Any], argument: Any) -> Any:
    made = function(argument)
    if not inspect.isawaitable(made):
        raise WrongWorker(f"{function!r} must be a coroutine function: async def")
    return await made


async def _wait_for(asked: Awaitable[Any]) -> Any:
    return await asked


async def _close(prepared: Any) -> None:
    close = getattr(prepared, "aclose", None) or getattr(prepared, "close", None)
    made = close() if callable(close) else None
    if inspect.isawaitable(made):
        await made


def _error_of(task: asyncio.Task[Any]) -> Optional[BaseException]:
    return asyncio.CancelledError() if task.cancelled() else task.exception()
