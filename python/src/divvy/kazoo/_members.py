"""kazoo's SetPartitioner and parties. SPDX-License-Identifier: Apache-2.0"""
from __future__ import annotations

import contextlib
from typing import Any, Callable, Collection, Dict, Iterable, Iterator, List, Optional

import divvy
from divvy._arguments import each, given
from divvy._box import Unique
from divvy.kazoo._session import absolute, as_kazoo, session_of

FINISH_S = 10.0  # what is not gone by then goes by itself


class PartitionState:
    """kazoo's names of the states."""

    ALLOCATING = "ALLOCATING"
    ACQUIRED = "ACQUIRED"
    RELEASE = "RELEASE"
    FAILURE = "FAILURE"


class _Nothing:
    """The share of an empty set. It takes no part in the pool, where it could only take places from others."""

    state_id = 1

    def __init__(self, client: divvy.Client) -> None:
        self._client = client

    @property
    def state(self) -> divvy.PartitionState:
        ended = self.state_id > 1 or self._client.closed
        return divvy.PartitionState.FAILURE if ended else divvy.PartitionState.ACQUIRED

    def partition(self) -> Dict[str, int]:
        return {}

    def wait_for_acquire(self, timeout: Optional[float]) -> None:
        pass

    def release_set(self) -> None:
        pass

    def finish(self, timeout: float) -> None:
        self.state_id = 2


def _named(items: List[Any]) -> Dict[str, Any]:
    """Returns the items by their names, which must differ: a name is a lock's."""
    named: Dict[str, Any] = {}
    for item in items:
        name = str(item)
        if name in named:
            raise divvy.InvalidArgument(f"the items {named[name]!r} and {item!r} have one name, {name!r}, and so one "
                                        "lock: give each item once, by a name of its own")
        named[name] = item
    return named


class SetPartitioner(Unique):
    """kazoo's SetPartitioner on divvy, in kazoo's own mode: at a change all items are released.

    Members of kazoo's and of divvy's may be in one pool. `max_reaction_time` has no meaning: no lock is polled.
    """

    def __init__(self, client: Any, path: str, set: Iterable[Any],
                 partition_func: Optional[Callable[[str, List[str], List[Any]], Iterable[Any]]] = None,
                 identifier: Optional[str] = None, time_boundary: float = 30, max_reaction_time: float = 1,
                 state_change_event: Any = None) -> None:
        self._items = each("set", set)
        self._set = set if isinstance(set, Collection) else self._items
        self._named = _named(self._items)
        self._partition_func = given("partition_func", partition_func, partition_func)
        self.state_change_event = state_change_event or client.handler.event_object()
        strings = all(isinstance(item, str) for item in self._items)
        numbers = all(type(item) is int for item in self._items)
        ruled = partition_func is None and (strings or numbers)
        self._session = session_of(client)
        where, client = absolute(path), self._session.get()
        self._partitioner: Any = divvy.Partitioner(
            client, where, list(self._named), kazoo=True, identifier=identifier, numeric=numbers,
            time_boundary=time_boundary, func=None if ruled else self._share,
            on_state=lambda _partitioner, _change: self.state_change_event.set()) if self._named else _Nothing(client)
        if not self._named:
            self.state_change_event.set()
        self._session.keep(self, True)

    def _share(self, identifier: str, members: List[str], _names: List[str]) -> List[str]:
        if self._partition_func is not None:
            return [str(item) for item in self._partition_func(identifier, members, self._set)]
        return [str(item) for item in sorted(self._items)[sorted(members).index(identifier)::len(members)]]

    @property
    def state(self) -> str:
        """The state now, of :class:`PartitionState`."""
        name: str = self._partitioner.state.name
        return name

    @property
    def state_id(self) -> int:
        """A number that grows with each state."""
        return int(self._partitioner.state_id)

    def __iter__(self) -> Iterator[Any]:
        """Return the partitions in this partition set."""
        owned = [self._named[name] for name in self._partitioner.partition().items()]
        return iter(owned if self._partition_func is not None else sorted(owned))

    @property
    def failed(self) -> bool:
        """Corresponds to the FAILURE state."""
        return self.state == PartitionState.FAILURE

    @property
    def release(self) -> bool:
        """Corresponds to the RELEASE state."""
        return self.state == PartitionState.RELEASE

    @property
    def allocating(self) -> bool:
        """Corresponds to the ALLOCATING state."""
        return self.state == PartitionState.ALLOCATING

    @property
    def acquired(self) -> bool:
        """Corresponds to the ACQUIRED state."""
        return self.state == PartitionState.ACQUIRED

    def wait_for_acquire(self, timeout: Optional[float] = 30) -> None:
        """Wait for the set to be partitioned and acquired. Returns at once in RELEASE and FAILURE."""
        try:
            self._partitioner.wait_for_acquire(timeout)
        except divvy.Error:  # the state says which
            pass

    def release_set(self) -> None:
        """Call to release the set."""
        try:
            self._partitioner.release_set()
        except (divvy.WrongState, divvy.Closed):  # as kazoo, which releases whatever it has in any state
            pass

    def finish(self) -> None:
        """Call to release the set and leave the party."""
        self._session.keep(self, False)
        try:
            self._partitioner.finish(FINISH_S)
        except divvy.Error:  # the nodes go by themselves, or with the session
            pass


class Party(Unique):
    """kazoo's Party on divvy."""

    _shallow = False

    def __init__(self, client: Any, path: str, identifier: Optional[str] = None) -> None:
        self.client = client
        self.path = absolute(path)
        self.data = str(identifier or "").encode("utf-8")
        self._party: Optional[divvy.Party] = None

    @property
    def participating(self) -> bool:
        """Whether this member has joined."""
        return self._party is not None

    @property
    def create_path(self) -> Optional[str]:
        """The path of this member's node, while it has one."""
        return None if self._party is None else self._party.node

    def join(self) -> None:
        """Join the party, and wait until it is so."""
        with as_kazoo():
            client = session_of(self.client).get()
            if self._party is None or self._party._client is not client:
                self._party = divvy.Party(client, self.path, identifier=self.data.decode() or None,
                                          shallow=self._shallow)
                session_of(self.client).keep(self._party, True)
            self._party.members()

    def leave(self) -> bool:
        """Leave the party; returns whether this member was in it."""
        party, self._party = self._party, None
        if party is None:
            return False
        session_of(self.client).keep(party, False)
        try:
            with as_kazoo(), contextlib.suppress(divvy.SessionLost):  # then the servers delete its node
                party.leave()
        finally:
            party.close()
        return True

    def _members(self) -> List[str]:
        with as_kazoo():
            return session_of(self.client).get().party_members(self.path, shallow=self._shallow)

    def __iter__(self) -> Iterator[str]:
        """Get the identifiers of the participating clients."""
        return iter(self._members())

    def __len__(self) -> int:
        """Return a count of participating clients."""
        return len(self._members())


class ShallowParty(Party):
    """kazoo's ShallowParty on divvy."""

    _shallow = True
