"""Election: of all candidates one leads, and all others know who. SPDX-License-Identifier: Apache-2.0"""
from __future__ import annotations

import dataclasses
from typing import Any, Callable, List, Optional

from divvy._arguments import flag, given, milliseconds
from divvy._cffi import ffi, lib
from divvy._config import Config
from divvy._core import Handle, callback, place_for
from divvy.errors import Error, make_error


@dataclasses.dataclass(frozen=True)
class Leader:
    """The one that leads."""

    token: int
    data: bytes
    """What it says of itself."""


class BaseElection(Handle):
    """What an election has whether calls wait or the event loop does."""

    _type = "divvy_election"

    def __init__(self, client: Any, path: str, *, data: Optional[str] = None, latch: bool = False, preference: int = 0,
                 container: bool = False, on_elected: Optional[Callable[[Any, int], object]] = None,
                 on_lost: Optional[Callable[[Any], object]] = None,
                 on_leader: Optional[Callable[[Any, Optional[Leader]], object]] = None,
                 on_step_down: Optional[Callable[[Any, bytes], object]] = None,
                 on_failed: Optional[Callable[[Any, Error], object]] = None) -> None:
        super().__init__()
        self.path = path
        self._on_elected, self._on_lost, self._on_leader = on_elected, on_lost, on_leader
        self._on_step_down, self._on_failed = on_step_down, on_failed
        config = Config("election_config")
        config.require(path=path, preference=preference)
        config.set(data=data, names=lib.DIVVY_ELECTION_LATCH if flag("latch", latch) else lib.DIVVY_ELECTION_LOCK,
                   container=flag("container", container), user=self._user,
                   on_elected=given("on_elected", on_elected, lib.divvy_py_elected),
                   on_lost=given("on_lost", on_lost, lib.divvy_py_election_lost),
                   on_leader=given("on_leader", on_leader, lib.divvy_py_leader),
                   on_step_down=given("on_step_down", on_step_down, lib.divvy_py_step_down),
                   on_failed=given("on_failed", on_failed, lib.divvy_py_election_failed))
        self._make_on(client, lib.divvy_election_create, lib.divvy_election_destroy,
                      lib.divvy_election_destroy_async, config.c)

    def stand(self) -> None:
        """Stands for election until `resign()`: also after a loss, and on later sessions."""
        self._call(lib.divvy_election_stand)

    def resign(self) -> None:
        """Gives leadership up, or leaves the queue. Waits for nothing."""
        self._call(lib.divvy_election_resign)

    @property
    def leads(self) -> bool:
        """Whether this one leads now, by the session clock. Sends nothing."""
        return bool(self._ask(lib.divvy_election_leads))

    @property
    def token(self) -> int:
        """The fencing token of this one's leadership; 0 when it does not lead."""
        return int(self._ask(lib.divvy_election_token))


class Election(BaseElection):
    """One candidate at a path, or an observer that does not stand; <divvy/election.h> has the full text.

    Callbacks: `on_elected(election, token)`, `on_lost(election)`, `on_leader(election, Leader or None)`,
    `on_step_down(election, who)`, `on_failed(election, error)`.
    """

    def leader(self, timeout: Optional[float] = None) -> Optional[Leader]:
        """Returns who leads, or None."""
        out = place_for("divvy_leader", lib.divvy_leader_free)
        self._wait(lib.divvy_election_leader, out, milliseconds(timeout))
        return leader_of(out[0])

    def candidates(self, timeout: Optional[float] = None) -> List[str]:
        """Returns what all candidates say of themselves, the leader first."""
        return self._list_now(lib.divvy_election_candidates, timeout)

    def ask_step_down(self, timeout: Optional[float] = None) -> None:
        """Asks the one that leads to step down, and waits until it does not lead."""
        self._wait(lib.divvy_election_ask_step_down, milliseconds(timeout))


def leader_of(pointer: Any) -> Optional[Leader]:
    """Returns what a divvy_leader says."""
    if pointer == ffi.NULL:
        return None
    return Leader(int(pointer.token), _bytes(pointer.data, pointer.data_bytes))


def _bytes(data: Any, count: int) -> bytes:
    return bytes(ffi.buffer(data, count)) if count else b""


@callback
def elected(election: BaseElection, _pointer: Any, token: int) -> None:
    assert election._on_elected
    election._tell(election._on_elected, election, int(token))


@callback
def election_lost(election: BaseElection, _pointer: Any) -> None:
    assert election._on_lost
    election._tell(election._on_lost, election)


@callback
def leader(election: BaseElection, _pointer: Any, found: Any) -> None:
    assert election._on_leader
    election._tell(election._on_leader, election, leader_of(found))


@callback
def step_down(election: BaseElection, _pointer: Any, who: Any, count: int) -> None:
    assert election._on_step_down
    election._tell(election._on_step_down, election, _bytes(who, count))


@callback
def election_failed(election: BaseElection, _pointer: Any, code: int) -> None:
    assert election._on_failed
    election._tell(election._on_failed, election, make_error(code))
