"""SIGTERM and SIGINT, for all runs of the process. SPDX-License-Identifier: Apache-2.0

A first signal asks each run to end, a second one to stop at once. Then the handlers that were there before are back, so
a third one does what it did before. A handler of the program's own is left alone, unless the program asks for that.
"""
from __future__ import annotations

import os
import signal
import threading
from types import TracebackType
from typing import Any, Callable, Dict, List, Optional, Type

from divvy.errors import InvalidArgument

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_asks: List[Callable[[], None]] = []  # of the runs that go on
_before: Dict[int, Any] = {}  # the handlers that are to come back
_count = 0


class Signals:
    """A block in which signals ask a run to end."""

    def __init__(self, wanted: Optional[bool], ask: Callable[[], None]) -> None:
        in_main = threading.current_thread() is threading.main_thread()
        if wanted and not in_main:
            raise InvalidArgument("signals=True is for the main thread, the only one that can have handlers; elsewhere "
                                  "give a stop event, and set it in a handler of yours")
        self._takes = in_main and wanted is not False
        self._by_force = wanted is True
        self._ask = ask

    def __enter__(self) -> None:
        global _count
        if not self._takes:
            return
        if not _asks:
            _count = 0
        _asks.append(self._ask)
        for number in _SIGNALS:
            if number not in _before and (self._by_force or _is_default(signal.getsignal(number))):
                _before[number] = signal.signal(number, _handle)

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 traceback: Optional[TracebackType]) -> None:
        if self._takes:
            _asks.remove(self._ask)
            if not _asks:
                _put_back()


class Interrupts:
    """A block in which a first ^C is noted, where no signal asks the run to end. Python raises KeyboardInterrupt
    wherever it is, and loses it in the callback of a weak reference; the run raises it between two steps."""

    def __init__(self, wanted: Optional[bool], note: Callable[[], None]) -> None:
        in_main = threading.current_thread() is threading.main_thread()
        self._takes = in_main and wanted is False and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        self._note = note

    def __enter__(self) -> None:
        if self._takes:
            signal.signal(signal.SIGINT, self._handle)

    def _handle(self, _number: int, _frame: Any) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        self._note()

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 traceback: Optional[TracebackType]) -> None:
        if self._takes and signal.getsignal(signal.SIGINT) == self._handle:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _is_default(handler: Any) -> bool:
    """Returns whether a handler is Python's own, or the one by which asyncio.run() cancels its task."""
    owner = getattr(getattr(handler, "func", None), "__self__", None)
    return handler in (signal.SIG_DFL, signal.default_int_handler) or \
        type(owner).__module__ == "asyncio.runners"


def _handle(_number: int, _frame: Any) -> None:
    global _count
    _count += 1
    if _count > 1:
        _put_back()
    for ask in list(_asks):
        ask()


def _put_back() -> None:
    while _before:
        number, handler = _before.popitem()
        if signal.getsignal(number) is _handle:
            signal.signal(number, handler)


def _after_fork() -> None:
    """No run goes on in the child of a fork, whose end is its parent's to ask for."""
    _asks.clear()
    _put_back()


os.register_at_fork(after_in_child=_after_fork)
