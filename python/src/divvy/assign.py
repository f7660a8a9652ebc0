"""Who gets which item: pure functions. SPDX-License-Identifier: Apache-2.0"""
from __future__ import annotations

import dataclasses
from typing import Any, List, Optional, Sequence, Union

from divvy._arguments import each, encode, flag, integer, maybe_encode, names
from divvy._cffi import ffi, lib
from divvy._config import Config, array
from divvy._core import NULL
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
    order = lib.DIVVY_ORDER_NUMERIC if flag("numeric", numeric) else lib.DIVVY_ORDER_BYTES
    return _assign(lib.divvy_assign_round_robin_ordered, members, items, order)


def assign_rendezvous(members: Members, items: Sequence[str]) -> List[int]:
    """Deals items out by weighted hashes, with loads that differ by one at most."""
    return _assign(lib.divvy_assign_rendezvous, members, items)


def assign_sticky(members: Members, items: Sequence[str], previous: Optional[Sequence[Optional[int]]] = None, *,
                  max_moves: int = 0, spread_zones: bool = False, keep_all: bool = False) -> List[int]:
    """Moves as few items as possible. `previous` has for each item the index of its owner, or None."""
    options = Config("sticky_options")
    options.set(max_moves=max_moves, spread_zones=flag("spread_zones", spread_zones),
                keep_all=flag("keep_all", keep_all))
    owners: Any = NULL
    listed = each("items", items)
    if previous is not None:
        given = each("previous", previous)
        if len(given) != len(listed):
            raise make_error(lib.DIVVY_EINVAL, "previous must have one owner, or None, for each item")
        owners = ffi.new("uint32_t[]", [_NOBODY if owner is None else integer(f"previous[{i}]", owner, "uint32_t")
                                        for i, owner in enumerate(given)])
    return _assign(lib.divvy_assign_sticky, members, listed, owners, options.c)


def bucket(key: Union[str, bytes], count: int) -> int:
    """Maps a key to one of `count` buckets, 0 to count - 1, so that a million keys need no million items.

    It is the same in every release, and in `divvy bucket` and divvy_bucket() of C; a str counts as its UTF-8. The items
    of a pool are then the buckets. When `count` grows, a key stays, or goes to a new bucket.
    """
    encoded = bytes(key) if isinstance(key, (bytes, bytearray)) else encode("key", key)
    if integer("count", count, "uint32_t") == 0:
        raise make_error(lib.DIVVY_EINVAL, "count is 0: give 1 to 4294967295")
    return int(lib.divvy_bucket(encoded, len(encoded), count))


def _assign(function: Any, members: Members, items: Sequence[str], *more: Any) -> List[int]:
    kept: List[Any] = []
    listed, encoded = each("members", members), names("items", items)
    made = ffi.new("divvy_member[]", len(listed))
    for i, given in enumerate(listed):
        member = given if isinstance(given, Member) else Member(given)
        kept.append(ffi.new("char[]", encode(f"members[{i}]", member.identifier)))
        kept.append(maybe_encode(f"members[{i}].zone", member.zone))
        made[i].identifier, made[i].zone = kept[-2:]
        made[i].weight = integer(f"members[{i}].weight", member.weight, "uint32_t")
    owners = ffi.new("uint32_t[]", max(len(encoded), 1))
    result = function(made, len(listed), array(kept, encoded), len(encoded), *more, owners)
    if result < 0:
        raise make_error(result)
    return list(owners)[:len(encoded)]
