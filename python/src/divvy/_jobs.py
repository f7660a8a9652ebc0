"""What a run does with the items of a partitioner, for threads and for asyncio. SPDX-License-Identifier: Apache-2.0

It is the loop of <divvy/partitioner.h>. A job is one call of the user's worker, under the token that the item had then.
A job whose item is revoked, or lost, or has another token is told to stop. RELEASE is confirmed when all of these jobs
have returned. The end of a job is no change of the partitioner, so it makes the next step itself.

A worker that returns or raises is started again as `divvy partition --restart` does it: after a pause that doubles. So
is `prepare` when it raises, as the command of `divvy partition --standby` is. What it returned has one owner: the run,
until a job has it. What no job gets is closed.
"""
from __future__ import annotations

import contextlib
import dataclasses
import enum
import inspect
import logging
import math
import time
from typing import Any, Callable, Dict, FrozenSet, Generic, Optional, Protocol, Set, Tuple, TypeVar

from divvy._arguments import choice, flag, function, seconds
from divvy._quarantine import Quarantine, quarantine_of, resume_command
from divvy.client import SessionState
from divvy.errors import Canceled, Closed, Error, InvalidArgument, SessionLost, TimedOut, WrongState
from divvy.partitioner import BasePartitioner, Item, PartitionState, View

STEADY_S = 5.0  # a worker that ran for so long is started again after the first pause
LOOK_S = 1.0  # for how long at most a run relies on being told
PAUSE_TIMEOUT_S = 5.0  # for the servers, when an item is to be paused
SLOW_S = 10.0  # after which a worker that does not return is told in the log

log = logging.getLogger("divvy")


class Event(Protocol):
    """That of threading, or that of asyncio."""

    def is_set(self) -> bool: ...


E = TypeVar("E", bound=Event)


class BaseJob(Generic[E]):
    """Work on one item, from the time when it became ours to the time when it has to stop."""

    def __init__(self, partitioner: BasePartitioner, item: str, token: int, stop: E, prepared: Any) -> None:
        self._partitioner = partitioner
        self.item = item
        self.token = token
        """The fencing token, greater than that of every earlier owner of the item."""
        self.stop = stop
        """An event, which is set when the worker has to return."""
        self.prepared = prepared
        """What `prepare` has returned for the item, in the first job after it; else None. It is the worker's now, to
        close, too."""

    def owns(self) -> bool:
        """Returns whether the item is ours under this token, and nobody has asked the worker to return: the check
        before each piece of work."""
        try:
            return not self.stop.is_set() and self._partitioner.owns(self.item, self.token)
        except Closed:
            return False

    def set_load(self, load: float) -> None:
        """Tells how much work the item is now, in the unit of the partitioner's `load_unit`: a number from 0 up. It
        sends nothing, and is passed over when the item is not ours any longer."""
        self._partitioner.set_load(self.item, load)

    def __repr__(self) -> str:
        return f"<{type(self).__module__.rpartition('._')[0]}.Job {self.item!r} {self.token}>"


@dataclasses.dataclass(frozen=True)
class Options:
    """The keywords of a run, checked."""

    worker: Callable[[Any], Any]
    prepare: Optional[Callable[[str], Any]]
    restart: str
    fails: bool
    backoff: float
    backoff_max: float
    hand_over: bool
    signals: Optional[bool]
    finish_timeout: float
    quarantine: Optional[Quarantine] = None


def check(partitioner: BasePartitioner, worker: object, prepare: object, restart: object, on_error: object,
          backoff: object, backoff_max: object, hand_over: object, signals: object, finish_timeout: object,
          quarantine: object) -> Options:
    """Checks the keywords that both kinds of run have."""
    options = Options(
        _called_with("job", "worker", worker), None if prepare is None else _called_with("item", "prepare", prepare),
        choice("restart", restart, "always", "on-failure", "never"),
        choice("on_error", on_error, "log", "fail") == "fail", seconds("backoff", backoff),
        seconds("backoff_max", backoff_max), bool(flag("hand_over", hand_over)),
        None if signals is None else bool(flag("signals", signals)), seconds("finish_timeout", finish_timeout),
        quarantine_of(quarantine))
    if options.fails and options.quarantine:
        raise InvalidArgument("quarantine with on_error='fail' is of no use: the first failure ends the run")
    if prepare is not None and not partitioner.prepare_timeout:
        raise InvalidArgument("prepare needs a partitioner with prepare_timeout, for how long it may take: "
                              "client.partitioner(..., prepare_timeout=25)")
    return options


def _called_with(argument: str, name: str, value: object) -> Callable[[Any], Any]:
    """Returns a function of the user's, unless its signature says that it cannot be called so."""
    checked = function(name, value)
    try:
        signature = inspect.signature(checked)
    except (TypeError, ValueError):  # it has none
        return checked
    try:
        signature.bind(None)
    except TypeError as error:
        raise TypeError(f"{name} is called as {name}({argument}), and {value!r} cannot be: {error}") from None
    return checked


class Phase(enum.Enum):
    """How far a run is."""

    WORKING = enum.auto()
    HANDING_OVER = enum.auto()  # it was asked to end, and works until others have its items
    STOPPING = enum.auto()  # all jobs have to return


class Place:
    """What a run knows of one item."""

    def __init__(self, item: str, backoff: float) -> None:
        self.item = item
        self.pause = backoff  # before the next start, if the worker returns, or prepare fails
        self.token = 0  # of the last job
        self.start_at = 0.0  # infinite: the worker is finished with the item
        self.job: Any = None  # None: no worker is at the item
        self.begun_at = 0.0
        self.stop_at = math.inf  # when it was told to stop
        self.lost = False  # the item of the job was, as it was told
        self.told_slow_at = math.inf
        self.awaited = False  # it is to be prepared for, and that has begun
        self.preparing = False
        self.comes = True  # the item, for which `prepare` runs
        self.was_prepared = False
        self.prepared: Any = None
        self.closing = False  # what was prepared in vain

    @property
    def stopping(self) -> bool:
        return self.job is not None and self.stop_at < math.inf

    @property
    def busy(self) -> bool:
        """Whether something of the user's runs for the item; it is one thing at a time."""
        return self.job is not None or self.preparing or self.closing

    def reset(self, backoff: float) -> None:
        """Forgets the pauses of what was before."""
        self.start_at, self.pause = 0.0, backoff


class BaseRun:
    """One run. A subclass starts workers, and makes a step when it is told of something, or when time has passed."""

    def __init__(self, partitioner: BasePartitioner, options: Options) -> None:
        self._p = partitioner
        self._o = options
        self._places: Dict[str, Place] = {}
        self._phase = Phase.WORKING
        self._asked = 0  # how often it was asked to end
        self._answered = 0
        self._seen: Optional[Tuple[int, int]] = None
        self._mine: Dict[str, Item] = {}  # as the partitioner last had it before a failure
        self._awaited: FrozenSet[str] = frozenset()  # the items to prepare for
        self._due = math.inf  # when the next start is
        self._leaves = False  # the partitioner was told to hand over, so that it ends is no failure
        self._pausing: Set[str] = set()  # the items that are to be paused
        self.error: Optional[BaseException] = None  # why it ends

    # ---- what a subclass has ----

    def _begin(self, place: Place, item: Item, prepared: Any) -> None:
        """Makes a job, and starts its worker."""
        raise NotImplementedError

    def _begin_preparing(self, place: Place) -> None:
        """Starts `prepare`."""
        raise NotImplementedError

    def _begin_closing(self, place: Place, prepared: Any) -> None:
        """Starts the close of what was prepared in vain."""
        raise NotImplementedError

    def _begin_pause(self, item: str, why: str) -> None:
        """Starts to have the pool pause an item."""
        raise NotImplementedError

    def _tell_stop(self, job: Any, lost: bool) -> None:
        """Tells a job to stop. A lost item may be another's already: a job that was told to stop is told that, too."""
        raise NotImplementedError

    # ---- what it is told ----

    def ask(self) -> None:
        """Asks it to end: once to hand over, twice to stop at once. Signals' handlers call it."""
        self._asked += 1

    def take_lost(self, items: Tuple[str, ...]) -> None:
        """Closes what was prepared for items that do not come."""
        for item in items:
            place = self._places.get(item)
            if place:
                place.comes = place.awaited = False
                self._discard(place)

    def take_prepared(self, place: Place, prepared: Any, error: Optional[BaseException]) -> None:
        """Notes the end of `prepare`."""
        place.preparing = False
        if isinstance(error, WrongWorker):
            self.stop(error)
        elif error is not None:
            self._prepare_failed(place, error)
        else:
            place.was_prepared, place.prepared = True, prepared
            if not place.comes or self._phase is Phase.STOPPING:
                self._discard(place)
            elif self._phase is Phase.WORKING:
                with contextlib.suppress(Error):  # the pool has no such item, or all is over, which is seen next
                    self._p.prepared(place.item)

    def _prepare_failed(self, place: Place, error: BaseException) -> None:
        if self._phase is Phase.STOPPING:
            return
        pause = self._put_off(place)
        then = "is not called again" if pause is None else f"is called again in {pause:g} s"
        log.error("prepare of %s failed, and %s: %r", place.item, then, error, exc_info=error)

    def take_closed(self, place: Place, error: Optional[BaseException]) -> None:
        """Notes that what was prepared in vain is closed."""
        place.closing = False
        if error is not None:
            log.error("what was prepared for %s could not be closed: %r", place.item, error, exc_info=error)

    def take_end(self, place: Place, error: Optional[BaseException], has_run: bool = True) -> None:
        """Notes the end of a job, or that no thread could be had for it, and when the next one may begin."""
        was_told = place.stopping
        place.job, place.stop_at = None, math.inf
        if was_told:
            place.start_at = 0.0
            if error is not None:
                log.error("worker of %s failed when it had to stop: %r", place.item, error, exc_info=error)
            return
        if error is not None and (self._o.fails or isinstance(error, WrongWorker)):
            self.stop(error)
            return
        pause = self._put_off(place, error is None)
        then = "is finished with the item" if pause is None else f"is started again in {pause:g} s"
        if error is None:
            log.info("worker of %s has returned, and %s", place.item, then)
        else:
            log.error("worker of %s failed, and %s: %r", place.item, then, error, exc_info=error)
            if has_run:
                self._note_failure(place.item, error)

    def _note_failure(self, item: str, error: BaseException) -> None:
        quarantine = self._o.quarantine
        if not quarantine or self._phase is Phase.STOPPING or not quarantine.note(item) or item in self._pausing:
            return
        self._pausing.add(item)
        try:
            self._begin_pause(item, quarantine.why(error))
        except (RuntimeError, MemoryError) as no_thread:
            self.take_paused(item, quarantine.why(error), no_thread)

    def take_paused(self, item: str, why: str, error: Optional[BaseException]) -> None:
        """Notes that the pool has paused an item, or why it could not: the next failure tries it again."""
        self._pausing.discard(item)
        if error is not None:
            log.error("%s could not be paused, and is tried again when it fails again: %s; it %s", item, error, why)
        elif self._o.quarantine:
            self._o.quarantine.forget(item)
            log.error("%s is paused: it %s (to give it back: %s)", item, why, resume_command(self._p.path, item))

    def _put_off(self, place: Place, has_returned: bool = False) -> Optional[float]:
        """Notes when a worker, or `prepare`, begins again. Returns the pause before; None: it does not."""
        if time.monotonic() - place.begun_at >= STEADY_S:
            place.pause = self._o.backoff
        if self._o.restart == "never" or self._o.restart == "on-failure" and has_returned:
            place.start_at = math.inf
            return None
        pause = place.pause
        place.start_at = time.monotonic() + pause
        place.pause = min(pause * 2, max(self._o.backoff, self._o.backoff_max))
        return pause

    # ---- a step ----

    def step(self) -> bool:
        """Does what is due. Returns whether the run is over: all workers have returned, and none begins."""
        self._due = math.inf
        self._answer()
        self._awaited = self._to_prepare()  # before the look: what has come since then is in that
        view = self._look()
        self._stop_jobs()
        if view.state == PartitionState.RELEASE and not any(place.stopping for place in self._places.values()):
            with contextlib.suppress(WrongState):  # the state is another by now, which is told, and seen next
                self._p.release_set(view.state_id)
        self._start_jobs()
        self._prepare()
        self._forget()
        return self._phase is Phase.STOPPING and self.idle()

    def idle(self) -> bool:
        """Returns whether nothing of the user's runs."""
        return not self._pausing and not any(place.busy for place in self._places.values())

    def wait_s(self) -> float:
        """Returns after how many seconds a step is due, if nothing is told before."""
        now = time.monotonic()
        return max(0.0, min(now + LOOK_S, self._due) - now)

    def _answer(self) -> None:
        connected = self._p._client.state == SessionState.CONNECTED
        if self._phase is Phase.HANDING_OVER and not connected:
            self.stop()
        while self._answered < self._asked:
            self._answered += 1
            if self._phase is Phase.WORKING and connected and self._can_hand_over():
                self._hand_over()
            else:
                self.stop()

    def _can_hand_over(self) -> bool:
        """A static member comes back, and its items wait for it."""
        return self._o.hand_over and not self._p.static_membership

    def _hand_over(self) -> None:
        self._phase = Phase.HANDING_OVER
        self._leaves = True
        try:
            self._p._begin_leave()
        except TimedOut:
            pass  # others have nothing of ours yet
        except Error:  # it has failed, which is seen next
            self.stop()

    def _look(self) -> View:
        view = self._p.look()
        seen = (view.state_id, view.partition.generation)
        if view.state == PartitionState.FAILURE:
            failure = self._p.failure
            hoped = self._leaves and (isinstance(failure, Canceled) or
                                      isinstance(failure, SessionLost) and self._p.rejoin)
            self.stop(None if hoped else failure, True)
        elif seen != self._seen:
            self._mine = {entry.item: entry for entry in view.partition}
            self._seen = seen
        return view

    def _stop_jobs(self) -> None:
        now = time.monotonic()
        for place in self._places.values():
            if place.stopping and now >= place.told_slow_at:
                log.warning("worker of %s has not returned %d s after it was told to stop: the item waits for it",
                            place.item, now - place.stop_at)
                place.told_slow_at += now - place.stop_at
            if place.job is None:
                continue
            entry = self._mine.get(place.item)
            lost = entry is None or entry.token != place.job.token
            if lost or entry is not None and entry.revoked:
                self._stop_job(place, lost)

    def _stop_job(self, place: Place, lost: bool) -> None:
        if place.stopping and (place.lost or not lost):
            return
        if not place.stopping:
            place.stop_at = time.monotonic()
            place.told_slow_at = place.stop_at + SLOW_S
        place.lost = lost
        self._tell_stop(place.job, lost)

    def stop(self, error: Optional[BaseException] = None, lost: bool = False) -> None:
        """Tells all jobs to stop; their items may be lost already. Nothing is started from now on."""
        self._phase = Phase.STOPPING
        self.error = self.error or error
        for place in self._places.values():
            if place.job is not None:
                self._stop_job(place, lost)
            self._discard(place)

    def _place(self, item: str) -> Place:
        if item not in self._places:
            self._places[item] = Place(item, self._o.backoff)
        return self._places[item]

    def _start_jobs(self) -> None:
        now = time.monotonic()
        for item, entry in self._mine.items() if self._phase is not Phase.STOPPING else ():
            place = self._place(item)
            if entry.revoked or place.busy:
                continue
            if place.token != entry.token:  # what was with it under another one does not matter
                place.token = entry.token
                place.reset(self._o.backoff)
            if now >= place.start_at:
                self._start(place, entry)
            if place.job is None:
                self._due = min(self._due, place.start_at)

    def _start(self, place: Place, entry: Item) -> None:
        prepared = place.prepared
        place.was_prepared, place.prepared = False, None
        place.begun_at, place.stop_at = time.monotonic(), math.inf
        try:
            self._begin(place, entry, prepared)
        except (RuntimeError, MemoryError) as error:  # no thread could be had
            place.prepared = prepared  # for the next start
            self.take_end(place, error, has_run=False)

    def _to_prepare(self) -> FrozenSet[str]:
        if self._o.prepare is None or self._phase is Phase.STOPPING:
            return frozenset()
        return frozenset(entry.item for entry in self._p.to_prepare())

    def _prepare(self) -> None:
        now = time.monotonic()
        for item in sorted(self._awaited) if self._phase is Phase.WORKING else ():
            place = self._place(item)
            if place.busy or place.was_prepared:
                continue
            if not place.awaited:
                place.awaited = True
                place.reset(self._o.backoff)
            if now >= place.start_at:
                self._start_preparing(place)
            if not place.preparing:
                self._due = min(self._due, place.start_at)

    def _start_preparing(self, place: Place) -> None:
        place.begun_at = time.monotonic()
        place.preparing = place.comes = True
        try:
            self._begin_preparing(place)
        except (RuntimeError, MemoryError) as error:
            self.take_prepared(place, None, error)

    def _discard(self, place: Place) -> None:
        """Closes what was prepared for an item, and no worker gets."""
        prepared, place.was_prepared, place.prepared = place.prepared, False, None
        if prepared is None:
            return
        place.closing = True
        try:
            self._begin_closing(place, prepared)
        except (RuntimeError, MemoryError) as error:
            self.take_closed(place, error)

    def _forget(self) -> None:
        for place in list(self._places.values()):
            if place.item in self._mine or place.item in self._awaited:
                continue
            place.awaited = False
            self._discard(place)
            if not place.busy:
                del self._places[place.item]


class WrongWorker(TypeError):
    """A worker that no run can call."""


def say_unfinished(error: Error, timeout: float) -> None:
    """Says in the log that the end was not confirmed, where somebody should know."""
    if isinstance(error, TimedOut):
        log.warning("no server has confirmed within %g s that this member has left; the servers delete its nodes when "
                    "its session times out", timeout)
