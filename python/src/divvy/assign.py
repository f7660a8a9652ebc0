"""Who gets which item: pure functions. SPDX-License-Identifier: Apache-2.0"""
from __future__ import annotations

import dataclasses
from typing import Any, List, Optional, Sequence, Union

from divvy._cffi import ffi, lib
from divvy._core import NULL, Config, array, encode
from divvy.errors import make_error

_NOBODY = 0xFFFFFFFF


@dataclasses.dataclass(frozen=True)
class Member:
    """One member of a pool. Weight and zone count for :func:`assign_sticky` alone."""

    identifier: str
    weight: int = 1000
    zone: Optional[str] = None


Members = Sequence[Union[str, Member]]


def assign_round_robin(members: Members, items: Sequence[str], *, numeric: bool = False) -> List[int]:
    """Deals items out as kazoo does. Returns for each item the index of the member that owns it.

    With `numeric` the items are decimal numbers, dealt in the order of their values.
    """
    order = lib.DIVVY_ORDER_NUMERIC if numeric else lib.DIVVY_ORDER_BYTES
    return _assign(lib.divvy_assign_round_robin_ordered, members, items, order)


def assign_rendezvous(members: Members, items: Sequence[str]) -> List[int]:
    """Deals items out by weighted hashes, with loads that differ by one at most."""
    return _assign(lib.divvy_assign_rendezvous, members, items)


def assign_sticky(members: Members, items: Sequence[str], previous: Optional[Sequence[Optional[int]]] = None, *,
                  max_moves: int = 0, spread_zones: bool = False, keep_all: bool = False) -> List[int]:
    """Moves as few items as possible. `previous` has for each item the index of its owner, or None."""
    options = Config("sticky_options")
    options.set(max_moves=max_moves, spread_zones=int(spread_zones), keep_all=int(keep_all))
    owners: Any = NULL
    if previous is not None:
        if len(previous) != len(items):
            raise make_error(lib.DIVVY_EINVAL, "previous must have one owner, or None, for each item")
        owners = ffi.new("uint32_t[]", [_NOBODY if owner is None else owner for owner in previous])
    return _assign(lib.divvy_assign_sticky, members, items, owners, options.c)


def _assign(function: Any, members: Members, items: Sequence[str], *more: Any) -> List[int]:
    kept: List[Any] = []
    made = ffi.new("divvy_member[]", len(members))
    for place, given in zip(made, members):
        member = Member(given) if isinstance(given, str) else given
        place.identifier = _keep(kept, member.identifier)
        place.weight = member.weight
        place.zone = NULL if member.zone is None else _keep(kept, member.zone)
    owners = ffi.new("uint32_t[]", max(len(items), 1))
    result = function(made, len(members), array(kept, items), len(items), *more, owners)
    if result < 0:
        raise make_error(result)
    return list(owners)[:len(items)]


def _keep(kept: List[Any], string: str) -> Any:
    kept.append(ffi.new("char[]", encode(string)))
    return kept[-1]
