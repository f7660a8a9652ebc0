"""A partitioner's run, with a thread for each item. SPDX-License-Identifier: Apache-2.0

The thread that calls `run()` decides everything. Workers, the library and signals' handlers put what they have to tell
into its queue. That is a SimpleQueue, which a handler may use in the middle of any use of it.
"""
from __future__ import annotations

import functools
import inspect
import queue
import threading
from typing import Any, Callable, Dict, List, Optional, Tuple

from divvy._arguments import event
from divvy._jobs import PAUSE_TIMEOUT_S, BaseJob, BaseRun, Options, Place, check, say_unfinished
from divvy._quarantine import by_of
from divvy._signals import Interrupts, Signals
from divvy.errors import Error, WrongState
from divvy.partitioner import Item, Partitioner

STOP_LOOK_S = 0.1  # how often the caller's stop event is looked at
DRAIN_S = 0.5  # how often an interrupted run looks at its threads


class Job(BaseJob[threading.Event]):
    """One call of a worker, by `Partitioner.run()`. `stop` is a threading.Event."""


def run(partitioner: Partitioner, worker: object, prepare: object, stop: object, signals: object, restart: object,
        on_error: object, backoff: object, backoff_max: object, hand_over: object, finish_timeout: object,
        quarantine: object = None) -> None:
    """Runs until it is asked to end, or fails: see `Partitioner.run()`."""
    options = check(partitioner, worker, prepare, restart, on_error, backoff, backoff_max, hand_over, signals,
                    finish_timeout, quarantine)
    for name, given in (("worker", worker), ("prepare", prepare)):
        if inspect.iscoroutinefunction(given):
            raise TypeError(f"{name} must be a plain function, and not a coroutine: those are for divvy.aio")
    made = Run(partitioner, options, None if stop is None else event("stop", stop, threading.Event))
    with Signals(options.signals, made.ask), Interrupts(options.signals, made.interrupt):
        made.run()


class Run(BaseRun):
    """One run."""

    _p: Partitioner

    def __init__(self, partitioner: Partitioner, options: Options, stop: Optional[threading.Event]) -> None:
        super().__init__(partitioner, options)
        self._stop_event = stop
        self._stop_seen = False
        self._interrupted = False
        self._queue: queue.SimpleQueue[Optional[Callable[[], None]]] = queue.SimpleQueue()
        self._threads: Dict[Place, threading.Thread] = {}

    def ask(self) -> None:
        super().ask()
        self._queue.put(None)

    def interrupt(self) -> None:
        """Lets the next step raise KeyboardInterrupt."""
        self._interrupted = True
        self._queue.put(None)

    def run(self) -> None:
        """Works, ends, and leaves the pool."""
        if self._p._listener is not None:
            raise WrongState("this Partitioner runs already")
        self._p._listener = self._told
        try:
            while not self.step():
                self._wait(self.wait_s())
        except BaseException as error:
            self.stop(error)
            self._drain()
        finally:
            self._p._listener = None
        self._finish()
        if self.error is not None:
            raise self.error

    def _drain(self) -> None:
        """Waits until all threads have ended. What has interrupted the run, such as ^C, can have come between any two
        steps of it: so threads count here, and not what they have told."""
        rounds = 0
        while not self.idle():
            ended = [(place, thread) for place, thread in self._busy() if self._has_ended(thread, rounds)]
            self._wait(0 if ended else DRAIN_S)  # takes what those have told
            rounds += 1
            for place, thread in ended:
                if self._threads.get(place) is thread:
                    place.job, place.preparing, place.closing = None, False, False

    def _busy(self) -> List[Tuple[Place, Optional[threading.Thread]]]:
        return [(place, self._threads.get(place)) for place in self._places.values() if place.busy]

    @staticmethod
    def _has_ended(thread: Optional[threading.Thread], rounds: int) -> bool:
        """Returns whether a thread has ended, or was never started."""
        if thread is None:
            return True
        return rounds > 0 if thread.ident is None else not thread.is_alive()

    def _finish(self) -> None:
        try:
            self._p.finish(self._o.finish_timeout)
        except Error as error:
            say_unfinished(error, self._o.finish_timeout)

    def _told(self, lost: Tuple[str, ...]) -> None:
        self._queue.put(functools.partial(self.take_lost, lost) if lost else None)

    def _wait(self, timeout: float) -> None:
        """Waits until something is told, and takes all that was."""
        if self._stop_event is not None:
            timeout = min(timeout, STOP_LOOK_S)
        try:
            message = self._queue.get(timeout=timeout)
            while True:
                if message is not None:
                    message()
                message = self._queue.get_nowait()
        except queue.Empty:
            pass
        if self._interrupted:
            self._interrupted = False
            raise KeyboardInterrupt
        if self._stop_event is not None and not self._stop_seen and self._stop_event.is_set():
            self._stop_seen = True
            super().ask()

    def _begin(self, place: Place, item: Item, prepared: Any) -> None:
        job = Job(self._p, item.item, item.token, threading.Event(), prepared)
        place.job = job
        self._start_thread(place, functools.partial(self._o.worker, job), self._worker_ended)

    def _begin_preparing(self, place: Place) -> None:
        assert self._o.prepare
        self._start_thread(place, functools.partial(self._o.prepare, place.item), self._prepare_ended)

    def _begin_closing(self, place: Place, prepared: Any) -> None:
        self._start_thread(place, functools.partial(_close, prepared), self._closed)

    def _begin_pause(self, item: str, why: str) -> None:
        def call() -> None:
            raised = None
            try:
                self._p._client.pool_pause(self._p.path, item, by=by_of(self._p.identifier), why=why,
                                           timeout=PAUSE_TIMEOUT_S)
            except BaseException as error:
                raised = error
            self._queue.put(functools.partial(self.take_paused, item, why, raised))
        threading.Thread(target=call, name=f"divvy pause of {item}").start()

    def _start_thread(self, place: Place, function: Callable[[], Any],
                      ended: Callable[[Place, Any, Optional[BaseException]], None]) -> None:
        def call() -> None:
            result, raised = None, None
            try:
                result = function()
            except BaseException as error:
                raised = error
            self._queue.put(functools.partial(ended, place, result, raised))
        thread = self._threads[place] = threading.Thread(target=call, name=f"divvy {place.item}")
        thread.start()

    def _worker_ended(self, place: Place, _result: Any, error: Optional[BaseException]) -> None:
        self._threads.pop(place).join()
        self.take_end(place, error)

    def _prepare_ended(self, place: Place, result: Any, error: Optional[BaseException]) -> None:
        self._threads.pop(place).join()
        self.take_prepared(place, result, error)

    def _closed(self, place: Place, _result: Any, error: Optional[BaseException]) -> None:
        self._threads.pop(place).join()
        self.take_closed(place, error)

    def _tell_stop(self, job: Any, lost: bool) -> None:
        job.stop.set()


def _close(prepared: Any) -> None:
    close = getattr(prepared, "close", None)
    if callable(close):
        close()
