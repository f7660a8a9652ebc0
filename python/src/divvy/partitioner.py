"""Partitioner: a set of items, divided among the members of a pool. SPDX-License-Identifier: Apache-2.0"""
from __future__ import annotations

import dataclasses
import enum
import threading
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Dict,
    Iterator,
    List,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
    Union,
    overload,
)

from divvy._arguments import (
    encode,
    flag,
    given,
    integer,
    maybe_encode,
    member,
    milliseconds,
    milliseconds_between,
    names,
    number,
    optional,
)
from divvy._box import Box, Unique, gone
from divvy._cffi import ffi, lib
from divvy._config import Config, array
from divvy._core import Handle, callback, find, report, text
from divvy._keywords import checked
from divvy.errors import TimedOut, make_error

if TYPE_CHECKING:
    from divvy._run import Job


class PartitionState(enum.Enum):
    """kazoo's states; <divvy/partitioner.h> says what each means."""

    ALLOCATING = lib.DIVVY_ALLOCATING
    ACQUIRED = lib.DIVVY_ACQUIRED
    RELEASE = lib.DIVVY_RELEASE
    FAILURE = lib.DIVVY_FAILURE


class Assign(enum.Enum):
    """The rule that computes who gets what."""

    AUTO = lib.DIVVY_ASSIGN_AUTO
    ROUND_ROBIN = lib.DIVVY_ASSIGN_ROUND_ROBIN
    RENDEZVOUS = lib.DIVVY_ASSIGN_RENDEZVOUS
    STICKY = lib.DIVVY_ASSIGN_STICKY
    FUNC = lib.DIVVY_ASSIGN_FUNC


Func = Callable[[str, List[str], List[str]], Sequence[str]]
"""An own rule: of identifier, members and items (both sorted) it returns the member's items. It is called with a lock
of the library's held, so it must not call divvy."""


class Item(NamedTuple):
    """One item of a snapshot."""

    item: str
    token: int
    """The fencing token, which grows from owner to owner. 0: the item is only to be prepared."""
    revoked: bool = False
    leaving: bool = False


class Partition(Unique, Sequence[Item]):
    """What a member owned at one moment, sorted; immutable."""

    def __init__(self, taken: Any) -> None:
        if taken == ffi.NULL:
            raise make_error(lib.DIVVY_ENOMEM)
        self._box = Box()
        self._box.fill(self, taken, lib.divvy_partition_unref)
        self._items: Optional[Tuple[Item, ...]] = None  # read when somebody asks

    @property
    def generation(self) -> int:
        """A number that grows with every change of what is owned."""
        return int(lib.divvy_partition_generation(self._taken()))

    @property
    def short(self) -> bool:
        """Whether the share does not fit the session's limits, so that items of it stay unowned."""
        return bool(lib.divvy_partition_short(self._taken()))

    def _taken(self) -> Any:
        if self._box.pointer is None:
            raise gone(self)
        return self._box.pointer

    def _all(self) -> Tuple[Item, ...]:
        if self._items is None:
            taken = self._taken()
            self._items = tuple(
                Item(text(lib.divvy_partition_item(taken, i)), lib.divvy_partition_token(taken, i),
                     bool(lib.divvy_partition_revoked(taken, i)), bool(lib.divvy_partition_leaving(taken, i)))
                for i in range(len(self)))
        return self._items

    @overload
    def __getitem__(self, index: int) -> Item: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Item]: ...

    def __getitem__(self, index: Union[int, slice]) -> Union[Item, Sequence[Item]]:
        return self._all()[index]

    def __len__(self) -> int:
        return int(lib.divvy_partition_count(self._taken()))

    def __iter__(self) -> Iterator[Item]:
        return iter(self._all())

    def items(self) -> List[str]:
        """Returns the names of all items that are not revoked."""
        return [entry.item for entry in self._all() if not entry.revoked]

    def __repr__(self) -> str:
        return f"<divvy.Partition {list(self._all())!r}>"


@dataclasses.dataclass(frozen=True)
class StateChange:
    """The partitioner has entered a state."""

    previous: PartitionState
    state: PartitionState


@dataclasses.dataclass(frozen=True)
class View:
    """What a partitioner shows at one moment."""

    state_id: int
    """For `release_set()` and `wait_change()`."""
    state: PartitionState
    partition: Partition


@dataclasses.dataclass(frozen=True)
class ItemsChange:
    """Items came or went. Handle `lost` first, then `gained`, then the rest."""

    gained: Dict[str, int]
    """Ours from now on: the fencing token of each item."""
    revoked: Tuple[str, ...]
    lost: Tuple[str, ...]
    leaving: Tuple[str, ...]
    staying: Tuple[str, ...]
    prepare: Tuple[str, ...]
    reason: str
    """DIVVY_REASON_*, without the prefix."""
    generation: int


class BasePartitioner(Handle):
    """What a partitioner has whether calls wait or the event loop does."""

    _type = "divvy_partitioner"
    _listener: Optional[Callable[[Tuple[str, ...]], object]] = None  # the run that works on it

    def __init__(self, client: Any, /, path: str, items: Sequence[str], *, identifier: Optional[str] = None,
                 kazoo: bool = False, eager: Optional[bool] = None, assign: Optional[Assign] = None,
                 func: Optional[Func] = None, func_name: Optional[str] = None, numeric: Optional[bool] = None,
                 time_boundary: Optional[float] = None, leave_boundary: Optional[float] = None,
                 settle_max: Optional[float] = None, allocate_timeout: Optional[float] = None,
                 release_warn: Optional[float] = None, release_on_suspend: Optional[bool] = None,
                 rejoin: Optional[bool] = None, weight: Optional[int] = None, zone: Optional[str] = None,
                 max_moves: Optional[int] = None, round_timeout: Optional[float] = None,
                 rejoin_delay: Optional[float] = None, static_membership: Optional[bool] = None,
                 handover_timeout: Optional[float] = None, prepare_timeout: Optional[float] = None,
                 load_unit: Optional[str] = None, load_interval: Optional[float] = None,
                 load_floor: Optional[float] = None, tags: Optional[str] = None, item_cap: Optional[int] = None,
                 min_members: Optional[int] = None, min_members_wait: Optional[float] = None,
                 on_state: Optional[Callable[[Any, StateChange], object]] = None,
                 on_items: Optional[Callable[[Any, ItemsChange], object]] = None) -> None:
        super().__init__()
        self.path = path
        self._on_state, self._on_items, self._func = on_state, on_items, func
        self.static_membership, self.rejoin = bool(static_membership), bool(rejoin)
        self.prepare_timeout = prepare_timeout
        config = Config("partitioner_config", "init_kazoo" if flag("kazoo", kazoo) else "init")
        encoded = names("items", items)
        config.require(path=path)
        config.set(
            items=array(config.kept, encoded), item_count=len(encoded), identifier=identifier,
            mode=_choose("eager", eager, lib.DIVVY_EAGER, lib.DIVVY_INCREMENTAL),
            func=given("func", func, lib.divvy_py_func), func_name=func_name,
            assign=lib.DIVVY_ASSIGN_FUNC if func else optional(member, "assign", assign, Assign),
            items_order=_choose("numeric", numeric, lib.DIVVY_ORDER_NUMERIC, lib.DIVVY_ORDER_BYTES),
            on_suspend=_choose("release_on_suspend", release_on_suspend, lib.DIVVY_RELEASE_ON_SUSPEND, lib.DIVVY_HOLD),
            on_session_loss=_choose("rejoin", rejoin, lib.DIVVY_REJOIN, lib.DIVVY_FAIL), weight=weight, zone=zone,
            max_moves=max_moves, load_unit=load_unit, load_floor=optional(number, "load_floor", load_floor), tags=tags,
            item_cap=item_cap, load_interval_ms=milliseconds_between("load_interval", load_interval, 1, 3600),
            min_members=min_members, user=self._user,
            static_membership=_choose("static_membership", static_membership, 1, 0),
            on_state=given("on_state", bool if on_state is None else on_state, lib.divvy_py_state),
            on_items=given("on_items", bool if on_items is None else on_items, lib.divvy_py_items))
        config.set_ms(time_boundary=time_boundary, leave_boundary=leave_boundary, settle_max=settle_max,
                      allocate_timeout=allocate_timeout, release_warn=release_warn, round_timeout=round_timeout,
                      rejoin_delay=rejoin_delay, handover_timeout=handover_timeout, prepare_timeout=prepare_timeout,
                      min_members_wait=min_members_wait)
        self._make_on(client, lib.divvy_partitioner_create, lib.divvy_partitioner_destroy,
                      lib.divvy_partitioner_destroy_async, config.c)

    def close(self) -> None:
        """Ends it; a second call does nothing. Calls that wait, `run()` and `async for` end with
        :class:`divvy.Closed`."""
        super().close()
        self._told()

    def _told(self, lost: Tuple[str, ...] = ()) -> None:
        """Called for each change, before the user's callbacks, in the library's thread; and at the close."""
        if self._listener:
            self._client._dispatch(self._listener, lost)

    def _begin_leave(self) -> None:
        """Begins to hand over. Raises :class:`TimedOut` where that is under way."""
        self._call(lib.divvy_partitioner_leave, lib.DIVVY_LEAVE_WORKING, 0)

    @property
    def state(self) -> PartitionState:
        """The state now. A caller that sees RELEASE here has been told of it, and may release it."""
        return PartitionState(self._ask(lib.divvy_partitioner_state))

    @property
    def state_id(self) -> int:
        """A number that grows with each entry into a state."""
        return int(self._ask(lib.divvy_partitioner_state_id))

    @property
    def identifier(self) -> str:
        """The name of this member."""
        return text(self._ask(lib.divvy_partitioner_identifier))

    @property
    def joined(self) -> bool:
        """Whether our own node is in the pool's party now, as far as this process knows."""
        return bool(self._ask(lib.divvy_partitioner_joined))

    @property
    def node(self) -> Optional[str]:
        """The path of our node in the pool's party; None where there is none now."""
        return self._node(lib.divvy_partitioner_node)

    @property
    def replaced(self) -> bool:
        """Whether a newer live member has the identifier of this static one."""
        return bool(self._ask(lib.divvy_partitioner_is_replaced))

    @property
    def failure(self) -> Optional[Exception]:
        """Why it is in FAILURE, as an exception that was not raised; None in all other states."""
        message = ffi.new("char[]", 512)
        code = self._ask(lib.divvy_partitioner_failure, message, 512)
        return make_error(code, text(message)) if code else None

    def partition(self) -> Partition:
        """Returns a snapshot of what is owned now."""
        return Partition(self._ask(lib.divvy_partitioner_partition))

    def to_prepare(self) -> Partition:
        """Returns a snapshot of the items to prepare for now; they are not ours yet."""
        return Partition(self._ask(lib.divvy_partitioner_to_prepare))

    def look(self) -> View:
        """Returns number, state and snapshot, read in this order: so no change is missed that comes after them."""
        state_id = self.state_id
        return View(state_id, self.state, self.partition())

    def owns(self, item: str, token: Optional[int] = None) -> bool:
        """Returns whether an item is ours now, and not revoked: under this very token, if one is given.

        The check before each piece of work. It sends nothing. A worker gives the token that its work began with.
        """
        name = encode("item", item)
        if token is None:
            return bool(self._ask(lib.divvy_partitioner_owns, name))
        return bool(self._ask(lib.divvy_partitioner_owns_token, name, integer("token", token)))

    def release_set(self, state_id: Optional[int] = None) -> None:
        """Says that work has ended on all items that are revoked or were lost: in the RELEASE of this number."""
        if state_id is None:
            self._call(lib.divvy_partitioner_release_set)
        else:
            self._call(lib.divvy_partitioner_release_set_id, integer("state_id", state_id, "uint64_t"))

    def prepared(self, item: Optional[str] = None) -> None:
        """Says that this member is ready to work on an item that is to be prepared; None: on all of them."""
        self._call(lib.divvy_partitioner_prepared, maybe_encode("item", item))

    def set_items(self, items: Sequence[str]) -> None:
        """Asks for another set of items to be divided, by all members, from now on."""
        kept: List[Any] = []
        encoded = names("items", items)
        self._call(lib.divvy_partitioner_set_items, array(kept, encoded), len(encoded))

    def set_weight(self, weight: int) -> None:
        """Changes this member's weight; 1000 is usual, 0 drains it."""
        self._call(lib.divvy_partitioner_set_weight, integer("weight", weight, "uint32_t"))

    def set_load(self, item: str, load: float) -> None:
        """Tells how much work an item of ours is now, in the unit of `load_unit`: a number from 0 up."""
        self._call(lib.divvy_partitioner_set_load, encode("item", item), number("load", load))


class Partitioner(BasePartitioner):
    """One member's part in a pool; <divvy/partitioner.h> has the full text of all parameters. Times are in seconds.

    `kazoo=True` begins with the defaults of kazoo's SetPartitioner. `on_state(partitioner, StateChange)` and
    `on_items(partitioner, ItemsChange)` are callbacks. As a context manager it leaves at the end of the block, in the
    background; `finish()` waits until all is gone.
    """

    def wait_change(self, since_state_id: int, timeout: Optional[float] = None) -> bool:
        """Waits until the state's number is another; returns whether it is.

        Items that are gained in ALLOCATING do not change the number, so do not wait longer than they may lie idle.
        """
        try:
            self._wait(lib.divvy_partitioner_wait_change, integer("since_state_id", since_state_id, "uint64_t"),
                       milliseconds(timeout))
        except TimedOut:
            return False
        return True

    def wait_for_acquire(self, timeout: Optional[float] = None) -> None:
        """Waits until the share is complete; raises :class:`TimedOut`, or :class:`WrongState` in RELEASE or FAILURE."""
        self._wait(lib.divvy_partitioner_wait_for_acquire, milliseconds(timeout))

    def finish(self, timeout: Optional[float] = None) -> None:
        """Releases everything and leaves the party. Work on all items must have stopped before."""
        self._wait(lib.divvy_partitioner_finish, milliseconds(timeout))

    def leave(self, timeout: Optional[float] = None, *, working: bool = False) -> None:
        """Ends, and gives up the place in the plan; with `working` each item stays until its next owner is ready."""
        flags = lib.DIVVY_LEAVE_WORKING if flag("working", working) else 0
        self._wait(lib.divvy_partitioner_leave, flags, milliseconds(timeout))

    @checked
    def run(self, worker: Callable[[Job], object], *, prepare: Optional[Callable[[str], object]] = None,
            stop: Optional[threading.Event] = None, signals: Optional[bool] = None, restart: str = "always",
            on_error: str = "log", backoff: float = 0.1, backoff_max: float = 30.0, hand_over: bool = True,
            finish_timeout: float = 5.0, quarantine: Optional[Tuple[int, float]] = None) -> None:
        """Works on all items that are ours, until it is asked to end: `worker(job)` in a thread for each item.

        The worker goes on until `job.stop` is set, and returns soon then: its item waits for that. It asks `job.owns()`
        before each piece of work. What is revoked is given back when its worker has returned. An item that was lost and
        gained again has another token, and gets another job when the old one has returned.

        A worker that returns by itself or raises is started again after `backoff` seconds, which double up to
        `backoff_max`, and begin again when it ran for 5 s: as by `divvy partition --restart`. `restart` is "always";
        "on-failure": one that returns is finished with its item until that comes again; or "never". What it raises is
        logged to the logger "divvy"; with `on_error="fail"` the run ends, and raises it when all workers have returned.

        `quarantine=(5, 600)` has the pool pause an item whose worker raises five times within 600 s, so that it does
        not fail at one member after the other. The log says so; `client.pool_resume()` gives the item back.

        `prepare(item)` is called before an item comes, in a thread, while its present owner works on. What it returns
        is `job.prepared`, and the worker's. What no worker gets is closed, in a thread, by its `close()` if it has one.
        Where it raises it is called again, after the pauses of a worker, until the item comes. It needs
        `prepare_timeout` of the partitioner.

        The run ends by `stop`, which is looked at ten times a second, and by SIGTERM and SIGINT. It then hands over:
        workers go on until other members are ready for their items. The second time all workers have to stop at once,
        and a third signal does what it did before. `hand_over=False` stops at once, as does a static member and one
        without a connection. `signals` None: where this is the main thread, and the program has no handler of its own;
        True: in its place; False: never. The handlers are put back.

        Raises the partitioner's `failure`. However it ends, all workers have returned, and this member has left the
        pool, unless servers did not confirm that within `finish_timeout` seconds. A function that cannot be called so
        is refused by `TypeError` before it begins.
        """
        from divvy._run import run
        run(self, worker, prepare, stop, signals, restart, on_error, backoff, backoff_max, hand_over, finish_timeout,
            quarantine)


def _choose(name: str, value: Optional[bool], yes: int, no: int) -> Optional[int]:
    return None if value is None else yes if flag(name, value) else no


def _names(found: Any, count: int) -> Tuple[str, ...]:
    return tuple(text(found[i]) for i in range(count))


@callback
def state(partitioner: BasePartitioner, _pointer: Any, previous: int, entered: int) -> None:
    partitioner._told()
    if partitioner._on_state:
        change = StateChange(PartitionState(previous), PartitionState(entered))
        partitioner._tell(partitioner._on_state, partitioner, change)


@callback
def items(partitioner: BasePartitioner, _pointer: Any, event: Any) -> None:
    partitioner._told(_names(event.lost, event.lost_count) if partitioner._listener else ())
    if partitioner._on_items:
        partitioner._tell(partitioner._on_items, partitioner, _change(event))


def _change(event: Any) -> ItemsChange:
    return ItemsChange(
        {text(event.gained[i]): int(event.gained_tokens[i]) for i in range(event.gained_count)},
        _names(event.revoked, event.revoked_count), _names(event.lost, event.lost_count),
        _names(event.leaving, event.leaving_count), _names(event.staying, event.staying_count),
        _names(event.prepare, event.prepare_count), text(lib.divvy_reason_name(event.reason)), event.generation)


def _func(identifier: Any, members: Any, member_count: int, items: Any, count: int, mine: Any, user: Any) -> int:
    partitioner = find(user)
    if not isinstance(partitioner, BasePartitioner) or partitioner._func is None:
        return 1
    offered = _names(items, count)
    wanted = set(partitioner._func(text(identifier), list(_names(members, member_count)), list(offered)))
    for i, name in enumerate(offered):
        mine[i] = name in wanted
    return 0 if wanted <= set(offered) else 1


ffi.def_extern(name="divvy_py_func", error=1, onerror=report)(_func)
