"""Semaphore: a pool of numbered slots. SPDX-License-Identifier: Apache-2.0"""
from __future__ import annotations

import dataclasses
import enum
from typing import Any, Callable, List, Optional

from divvy._arguments import flag, given, integer, member, milliseconds
from divvy._cffi import lib
from divvy._config import Config
from divvy._core import callback, place_for, text
from divvy._held import BaseHeld, Held


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


class BaseSemaphore(BaseHeld):
    """What a semaphore has whether calls wait or the event loop does."""

    _type = "divvy_semaphore"

    def __init__(self, client: Any, path: str, *, identifier: Optional[str] = None, limit: Optional[int] = None,
                 count: Optional[int] = None, limit_policy: LimitPolicy = LimitPolicy.ERROR, container: bool = False,
                 on_lost: Optional[Callable[[Any], object]] = None) -> None:
        super().__init__()
        self.path, self._on_lost, self._count = path, on_lost, 1 if count is None else count
        config = Config("semaphore_config")
        config.require(path=path)
        config.set(identifier=identifier, limit=limit, count=count, container=flag("container", container),
                   limit_policy=member("limit_policy", limit_policy, LimitPolicy), user=self._user,
                   on_lost=given("on_lost", on_lost, lib.divvy_py_semaphore_lost))
        self._make_on(client, lib.divvy_semaphore_create, lib.divvy_semaphore_destroy,
                      lib.divvy_semaphore_destroy_async, config.c)

    @property
    def slot(self) -> int:
        """The number of the slot that is held, the lowest where several are; -1 when none is."""
        return int(self._ask(lib.divvy_semaphore_slot))

    @property
    def slots(self) -> List[int]:
        """The numbers of all slots that are held."""
        found = [int(self._ask(lib.divvy_semaphore_slot_at, i)) for i in range(self._count)]
        return [slot for slot in found if slot >= 0]


class Semaphore(BaseSemaphore, Held):
    """One user of a semaphore at a path; <divvy/semaphore.h> has the full text.

    `with client.semaphore(path, limit=4):` holds a slot in the block, or `count` slots, all or none.
    """

    def resize(self, limit: int, timeout: Optional[float] = None) -> None:
        """Changes the limit of the pool, for all that use it."""
        self._wait(lib.divvy_semaphore_resize, integer("limit", limit, "uint32_t"), milliseconds(timeout))

    def holders(self, timeout: Optional[float] = None) -> List[Holder]:
        """Returns the holders of slots, in the order of their tokens."""
        return self._holders(lib.divvy_semaphore_holders, timeout)

    def contenders(self, timeout: Optional[float] = None) -> List[Holder]:
        """Returns those that wait, in the order of the queue."""
        return self._holders(lib.divvy_semaphore_contenders, timeout)

    def _holders(self, function: Any, timeout: Optional[float]) -> List[Holder]:
        out = place_for("divvy_holders", lib.divvy_holders_free)
        self._wait(function, out, milliseconds(timeout))
        return holders(out[0])


def holders(found: Any) -> List[Holder]:
    """Returns what a divvy_holders has."""
    return [Holder(text(lib.divvy_holders_identifier(found, i)), text(lib.divvy_holders_host(found, i)),
                   lib.divvy_holders_pid(found, i), text(lib.divvy_holders_time(found, i)),
                   lib.divvy_holders_slot(found, i), lib.divvy_holders_slots(found, i),
                   lib.divvy_holders_token(found, i)) for i in range(lib.divvy_holders_count(found))]


@callback
def semaphore_lost(semaphore: BaseSemaphore, _pointer: Any) -> None:
    assert semaphore._on_lost
    semaphore._tell(semaphore._on_lost, semaphore)
