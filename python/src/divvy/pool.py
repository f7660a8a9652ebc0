"""The operator's hand: requests of a program to a pool that others are in. SPDX-License-Identifier: Apache-2.0"""
from __future__ import annotations

import dataclasses
from typing import Any, Generic, Optional, TypeVar

from divvy._arguments import encode, flag, integer, maybe_encode, milliseconds, number
from divvy._cffi import lib
from divvy._config import Config

T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class PoolChange:
    """What came of a request: the fields of divvy_pool_result in <divvy/pool.h>."""

    changed: bool
    generation: int
    moves: int
    items: int
    items_before: int
    weight: int
    weight_before: int
    absent: bool


class Request:
    """How something is asked, and the place for its result."""

    def __init__(self, by: Optional[str], why: Optional[str], dry_run: bool, timeout: Optional[float]) -> None:
        self._result, self._config = Config("pool_result"), Config("pool_request")
        self._config.set(by=by, why=why, dry_run=flag("dry_run", dry_run))
        self._config.c.timeout_ms = milliseconds(timeout)
        self._config.c.result = self._result.c

    def wait(self, handle: Any, function: Any, *arguments: Any) -> int:
        """Makes the call, which writes into this: it has to live until then."""
        return int(handle._wait(function, *arguments, self._config.c))

    def change(self) -> PoolChange:
        """Returns what the library has filled in."""
        r = self._result.c
        return PoolChange(bool(r.changed), int(r.generation), int(r.moves), int(r.items), int(r.items_before),
                          int(r.weight), int(r.weight_before), bool(r.absent))


def option_text(name: str, value: float) -> str:
    """Returns an option's value as the library takes it: a decimal number, a time in milliseconds."""
    if name == "round-timeout":
        return str(milliseconds(value, "value"))
    wanted = number("value", value)
    return str(value) if isinstance(value, int) else f"{wanted:.9f}".rstrip("0").rstrip(".")


class PoolCalls(Generic[T]):
    """The requests, as methods of a client. <divvy/pool.h> has their full text.

    Each returns once the pool's plan says what was asked. `by` is who asks, `why` for which reason; both stand in the
    plan. With `dry_run` nothing is written, and the result tells what would be.
    """

    def _ask_pool(self, request: Request, function: Any, *arguments: Any) -> T:
        raise NotImplementedError

    def pool_set_weight(self, path: str, member: str, weight: Optional[int], *, by: Optional[str] = None,
                        why: Optional[str] = None, dry_run: bool = False, timeout: Optional[float] = None) -> T:
        """Gives a member another weight. 0 drains it; None is the one that it was started with."""
        wanted = lib.DIVVY_POOL_CONFIGURED_WEIGHT if weight is None else integer("weight", weight, "uint32_t")
        return self._ask_pool(Request(by, why, dry_run, timeout), lib.divvy_pool_set_weight, encode("path", path),
                              encode("member", member), wanted)

    def pool_forget(self, path: str, member: str, *, by: Optional[str] = None, why: Optional[str] = None,
                    dry_run: bool = False, timeout: Optional[float] = None) -> T:
        """Has the pool no longer wait for a static member that is absent."""
        return self._ask_pool(Request(by, why, dry_run, timeout), lib.divvy_pool_forget, encode("path", path),
                              encode("member", member))

    def pool_pin(self, path: str, item: str, member: str, *, by: Optional[str] = None, why: Optional[str] = None,
                 dry_run: bool = False, timeout: Optional[float] = None) -> T:
        """Has an item go to the member with that identifier, and stay with it until `pool_unpin()`."""
        return self._ask_pool(Request(by, why, dry_run, timeout), lib.divvy_pool_pin, encode("path", path),
                              encode("item", item), encode("member", member))

    def pool_unpin(self, path: str, item: str, *, by: Optional[str] = None, why: Optional[str] = None,
                   dry_run: bool = False, timeout: Optional[float] = None) -> T:
        """Undoes a pin or a move."""
        return self._ask_pool(Request(by, why, dry_run, timeout), lib.divvy_pool_unpin, encode("path", path),
                              encode("item", item))

    def pool_move(self, path: str, item: str, member: str, *, by: Optional[str] = None, why: Optional[str] = None,
                  dry_run: bool = False, timeout: Optional[float] = None) -> T:
        """Has an item go to a member, and stay with it until that member ends, or `pool_unpin()`."""
        return self._ask_pool(Request(by, why, dry_run, timeout), lib.divvy_pool_move, encode("path", path),
                              encode("item", item), encode("member", member))

    def pool_pause(self, path: str, item: str, *, by: Optional[str] = None, why: Optional[str] = None,
                   dry_run: bool = False, timeout: Optional[float] = None) -> T:
        """Has nobody work on an item until `pool_resume()`."""
        return self._ask_pool(Request(by, why, dry_run, timeout), lib.divvy_pool_pause, encode("path", path),
                              encode("item", item))

    def pool_resume(self, path: str, item: str, *, by: Optional[str] = None, why: Optional[str] = None,
                    dry_run: bool = False, timeout: Optional[float] = None) -> T:
        """Undoes a pause: the item goes back to the member that had it, if that is there."""
        return self._ask_pool(Request(by, why, dry_run, timeout), lib.divvy_pool_resume, encode("path", path),
                              encode("item", item))

    def pool_need(self, path: str, item: str, tag: Optional[str], *, by: Optional[str] = None,
                  why: Optional[str] = None, dry_run: bool = False, timeout: Optional[float] = None) -> T:
        """Lets only members with the tag own an item, or all items that begin so: "name*". None: they need no tag."""
        return self._ask_pool(Request(by, why, dry_run, timeout), lib.divvy_pool_need, encode("path", path),
                              encode("item", item), maybe_encode("tag", tag))

    def pool_set_option(self, path: str, name: str, value: Optional[float], *, by: Optional[str] = None,
                        why: Optional[str] = None, dry_run: bool = False, timeout: Optional[float] = None) -> T:
        """Sets "max-moves", "round-timeout" (in seconds) or "imbalance-max". None: as the members were started."""
        text = None if value is None else option_text(name, value)
        return self._ask_pool(Request(by, why, dry_run, timeout), lib.divvy_pool_set_option, encode("path", path),
                              encode("name", name), maybe_encode("value", text))
