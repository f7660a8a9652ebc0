"""How often the worker of each item has failed lately. SPDX-License-Identifier: Apache-2.0

An item whose worker fails again and again is poisonous: at other members it would fail as well. So a run counts, and
has the pool pause the item in time, as `divvy partition --quarantine` does.
"""
from __future__ import annotations

import collections
import shlex
import time
from typing import Deque, Dict, Optional

from divvy._arguments import integer, number
from divvy.errors import InvalidArgument

FAILURES_MAX, WINDOW_MAX_S, WHY_MAX, BY_BYTES = 1000, 24 * 3600, 300, 128
UNITS = ((3600, "h"), (60, "min"), (1, "s"))


class Quarantine:
    """The failures of items within the window."""

    def __init__(self, failures: int, window: float) -> None:
        self.failures, self.window = failures, window
        self._at: Dict[str, Deque[float]] = {}

    def note(self, item: str) -> bool:
        """Notes a failure. Returns whether with it there are too many."""
        now = time.monotonic()
        self._at = {one: times for one, times in self._at.items() if now - times[-1] <= self.window}
        times = self._at.setdefault(item, collections.deque(maxlen=self.failures))
        times.append(now)
        return len(times) == self.failures and now - times[0] <= self.window

    def forget(self, item: str) -> None:
        """Begins to count an item from nothing."""
        self._at.pop(item, None)

    def why(self, error: BaseException) -> str:
        """Returns the reason of a pause; the error stands there in ASCII."""
        unit, name = next((unit for unit in UNITS if self.window % unit[0] == 0), UNITS[-1])
        times = "time" if self.failures == 1 else "times"
        return f"failed {self.failures} {times} in {self.window / unit:g} {name}, last: {ascii(error)}"[:WHY_MAX]


def quarantine_of(value: object) -> Optional[Quarantine]:
    """Returns what counts for a keyword `quarantine`."""
    if value is None:
        return None
    if not isinstance(value, tuple) or len(value) != 2:
        raise TypeError("quarantine must be a pair, how many failures within how many seconds, such as (5, 600), "
                        f"and not {value!r}")
    failures, window = integer("quarantine", value[0]), number("quarantine", value[1])
    if not 1 <= failures <= FAILURES_MAX:
        raise InvalidArgument(f"quarantine is {value!r}: an item can be paused after 1 to {FAILURES_MAX} failures")
    if not 0 < window <= WINDOW_MAX_S:
        raise InvalidArgument(f"quarantine is {value!r}: its seconds are above 0, and {WINDOW_MAX_S} at most")
    return Quarantine(failures, window)


def resume_command(path: str, item: str) -> str:
    """Returns the command that gives an item back. A shell takes each name for one word, and it is no option."""
    return f"divvy resume --path {shlex.quote(path)} {'-- ' if item.startswith('-') else ''}{shlex.quote(item)}"


def by_of(identifier: str) -> Optional[str]:
    """Returns who asks for a pause: the member, unless its name is too long for that."""
    return identifier if len(identifier.encode("utf-8", "replace")) <= BY_BYTES else None
