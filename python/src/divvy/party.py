"""Party: the processes that are there. SPDX-License-Identifier: Apache-2.0"""
from __future__ import annotations

from typing import Any, List, Optional

from divvy._arguments import encode, flag, maybe_encode, milliseconds
from divvy._cffi import lib
from divvy._core import Handle


class BaseParty(Handle):
    """What a membership has whether calls wait or the event loop does."""

    _type = "divvy_party"

    def __init__(self, client: Any, path: str, *, identifier: Optional[str] = None, shallow: bool = False) -> None:
        super().__init__()
        self.path = path
        self._make_on(client, lib.divvy_party_join, lib.divvy_party_destroy, lib.divvy_party_destroy_async,
                      encode("path", path), maybe_encode("identifier", identifier), kind_of(shallow))

    @property
    def joined(self) -> bool:
        """Whether our own node is in the party now, as far as this process knows."""
        return bool(self._ask(lib.divvy_party_joined))

    @property
    def node(self) -> Optional[str]:
        """The path of our node in the party; None where there is none now."""
        return self._node(lib.divvy_party_node)


class Party(BaseParty):
    """Membership of this process in a party, from its making until it is left; <divvy/party.h> has the full text.

    As a context manager it leaves at the end of the block.
    """

    def members(self, timeout: Optional[float] = None) -> List[str]:
        """Returns the members of the party now, this one among them."""
        return self._list_now(lib.divvy_party_members, timeout)

    def leave(self, timeout: Optional[float] = None) -> None:
        """Leaves, and waits until the node is gone."""
        self._wait(lib.divvy_party_leave, milliseconds(timeout))


def kind_of(shallow: bool) -> int:
    """Returns the library's word for a kind of party."""
    return int(lib.DIVVY_SHALLOW_PARTY if flag("shallow", shallow) else lib.DIVVY_PARTY)
