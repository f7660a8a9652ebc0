"""The client: one ZooKeeper session, on which all else is made. SPDX-License-Identifier: Apache-2.0"""
from __future__ import annotations

import dataclasses
import enum
import logging
import os
import sys
import warnings
from typing import Any, Callable, List, Optional

from divvy._arguments import encode, flag, given, member, milliseconds
from divvy._cffi import ffi, lib
from divvy._config import Config
from divvy._core import (
    Closer,
    Handle,
    callback,
    close_later,
    inside,
    inside_call,
    inside_callback,
    note_and_end,
    place_for,
    strings,
    text,
)
from divvy._maker import Maker
from divvy.election import Election
from divvy.lock import Lock
from divvy.partitioner import Partitioner
from divvy.party import Party, kind_of
from divvy.pool import PoolCalls, PoolChange, Request
from divvy.registry import Registry
from divvy.semaphore import Semaphore

_log = logging.getLogger("divvy")
_LEVELS = {lib.DIVVY_LOG_ERROR: logging.ERROR, lib.DIVVY_LOG_WARN: logging.WARNING, lib.DIVVY_LOG_INFO: logging.INFO,
           lib.DIVVY_LOG_DEBUG: logging.DEBUG}


class SessionState(enum.Enum):
    """State of the session; <divvy/client.h> says what each means."""

    CONNECTING = lib.DIVVY_CONNECTING
    CONNECTED = lib.DIVVY_CONNECTED
    SUSPENDED = lib.DIVVY_SUSPENDED
    LOST = lib.DIVVY_LOST
    AUTH_FAILED = lib.DIVVY_AUTH_FAILED
    CLOSED = lib.DIVVY_CLOSED


class Acl(enum.Enum):
    """The rights of others on the nodes that the client creates."""

    AUTO = lib.DIVVY_ACL_AUTO
    OPEN = lib.DIVVY_ACL_OPEN
    CREATOR = lib.DIVVY_ACL_CREATOR
    READABLE = lib.DIVVY_ACL_READABLE


@dataclasses.dataclass(frozen=True)
class Notice:
    """What the user should know: `name` as in DIVVY_WARN_*, without the prefix, such as "STRAY"."""

    code: int
    name: str
    message: str


class BaseClient(Handle):
    """What a client has whether calls wait or the event loop does."""

    _type = "divvy_client"

    def __init__(self, hosts: Optional[str] = None, *, session_timeout: Optional[float] = None,
                 ensemble_tick_ms: Optional[int] = None, auth: Optional[str] = None, acl: Acl = Acl.AUTO,
                 ephemeral_path_bytes: Optional[int] = None, watch_path_bytes: Optional[int] = None,
                 on_session: Optional[Callable[[Any, SessionState], object]] = None,
                 on_warning: Optional[Callable[[Any, Notice], object]] = None,
                 on_log: Optional[Callable[[int, str], object]] = None, log_requests: bool = False,
                 tls_ca_file: Optional[str] = None, tls_certificate_file: Optional[str] = None,
                 tls_key_file: Optional[str] = None, tls_key_password_file: Optional[str] = None,
                 sasl_mechanism: Optional[str] = None, sasl_user: Optional[str] = None,
                 sasl_password_file: Optional[str] = None, sasl_service: Optional[str] = None,
                 sasl_host: Optional[str] = None, tokens_checked: bool = False, death_watch: bool = False,
                 failover_delay: Optional[float] = None, log_steps: bool = False) -> None:
        super().__init__()
        self._on_session, self._on_warning, self._on_log = on_session, on_warning, on_log
        self._hosts = hosts or os.environ.get("DIVVY_CONNECT") or "127.0.0.1:2181"
        config = Config("client_config")
        config.set(hosts=hosts, manual=int(self._manual), ensemble_tick_ms=ensemble_tick_ms, auth=auth,
                   auth_scheme=None if auth is None else "digest", acl=member("acl", acl, Acl),
                   ephemeral_path_bytes=ephemeral_path_bytes, watch_path_bytes=watch_path_bytes,
                   log_requests=flag("log_requests", log_requests), log_steps=flag("log_steps", log_steps),
                   tls_ca_file=tls_ca_file, tls_certificate_file=tls_certificate_file,
                   tls_key_file=tls_key_file, tls_key_password_file=tls_key_password_file,
                   sasl_mechanism=sasl_mechanism, sasl_user=sasl_user, sasl_password_file=sasl_password_file,
                   sasl_service=sasl_service, sasl_host=sasl_host, user=self._user,
                   tokens_checked=flag("tokens_checked", tokens_checked), death_watch=flag("death_watch", death_watch),
                   on_log=given("on_log", on_log, lib.divvy_py_log) or lib.divvy_py_log,
                   interrupted=lib.divvy_py_interrupted,
                   on_session=given("on_session", on_session, lib.divvy_py_session),
                   on_warning=given("on_warning", on_warning, lib.divvy_py_warning))
        config.set_ms(session_timeout=session_timeout, failover_delay=failover_delay)
        self._closer, self._client = Closer(), self
        self._make(lib.divvy_client_open, self._closer, config.c)
        self._closer.hold_end()
        self._opened()

    def _opened(self) -> None:
        """Called when the client is there."""

    def _after_call(self) -> None:
        """For those who drive the loop themselves: a call may have brought a deadline nearer."""

    def _dispatch(self, function: Callable[..., object], *arguments: Any) -> None:
        """Runs a callback of the user's, here and now."""
        function(*arguments)

    @property
    def state(self) -> SessionState:
        """The state of the session now."""
        return SessionState.CLOSED if self.closed else SessionState(self._ask(lib.divvy_client_state))

    @property
    def time_left(self) -> float:
        """For how many seconds the session is certainly alive, whatever the servers do."""
        return 0.0 if self.closed else float(self._ask(lib.divvy_client_time_left_ms) / 1000)

    @property
    def session_id(self) -> int:
        """The session's id as the servers know it; 0 before the first connection."""
        return int(self._ask(lib.divvy_client_session_id))

    def stats(self) -> dict[str, int]:
        """Returns what the client has done so far: the fields of divvy_stats."""
        out = ffi.new("divvy_stats *")
        self._call(lib.divvy_client_stats, out, ffi.sizeof(out[0]))
        return {name: int(getattr(out, name)) for name, _ in ffi.typeof("divvy_stats").fields}

    def metrics(self) -> str:
        """Returns the metrics of the client and of all on it, as OpenMetrics 1.0."""
        return self._write_metrics(lib.divvy_metrics_write)

    def metrics_prometheus(self) -> str:
        """Returns the same metrics in the older text format of Prometheus."""
        return self._write_metrics(lib.divvy_metrics_write_prometheus)

    def _write_metrics(self, function: Any) -> str:
        parts: List[bytes] = []
        handle = ffi.new_handle(parts)
        self._call(function, lib.divvy_py_write, handle)
        return b"".join(parts).decode()

    def close(self) -> None:
        """Ends the session: deletes what is left of its nodes, waits for a running callback, joins the threads.
        Calls that wait end with :class:`Closed`. It returns at once in a callback of its own; and in a signal's handler
        that runs in a call with the client, whose end then waits for the session's. Where a handler raises, as that of
        ^C does, that ends the wait, and the session ends in the background."""
        if inside_call(self):
            if not self.closed:
                close_later(self)
        else:
            inside(self, super().close)
            self._wait_closed()

    def _wait_closed(self) -> None:
        if self._forks_match() and not inside_callback(self):
            self._closer.done.wait()

    def __del__(self) -> None:
        if self._box.filled and self._forks_match() and not self._closer.explicit and not sys.is_finalizing():
            warnings.warn(f"unclosed client of {self._hosts}: call close(), or open it by a `with` statement",
                          ResourceWarning, source=self)

    def __repr__(self) -> str:
        return f"<{type(self).__module__}.{type(self).__name__} {self.state.name if self._forks_match() else 'FORKED'}>"


class Client(BaseClient, PoolCalls[PoolChange]):
    """One ZooKeeper session, with threads of the library's that serve it.

    All parameters are those of divvy_client_config in <divvy/client.h>, where their full text stands. Times are in
    seconds, but for `ensemble_tick_ms`: the number that stands as `tickTime` in the servers' zoo.cfg. It must be
    given, here or in $DIVVY_ENSEMBLE_TICK_MS. `hosts` is $DIVVY_CONNECT by default. `auth` is "user:password" (digest).

    Callbacks (`on_session`, `on_warning`, `on_log`, and those of all objects on the client) run one at a time, in a
    thread of the library's. What they raise goes to `threading.excepthook`. A waiting call in one raises
    :class:`Deadlock`. Without `on_log` the lines go to the logger "divvy"; warnings are such lines without
    `on_warning`.

    Opening returns at once; `wait_connected()` waits for a server. A client is also a context manager.
    """

    def wait_connected(self, timeout: Optional[float] = None) -> None:
        """Waits until a server serves the session."""
        self._wait(lib.divvy_client_wait_connected, milliseconds(timeout))

    lock = Maker(Lock)
    semaphore = Maker(Semaphore)
    partitioner = Maker(Partitioner)
    party = Maker(Party)
    election = Maker(Election)
    registry = Maker(Registry)

    def party_members(self, path: str, *, shallow: bool = False, timeout: Optional[float] = None) -> List[str]:
        """Returns the members of the party at a path, without joining it."""
        out = place_for("divvy_strings", lib.divvy_strings_free)
        self._wait(lib.divvy_party_list, encode("path", path), kind_of(shallow), out, milliseconds(timeout))
        return strings(out[0])

    def _ask_pool(self, request: Request, function: Any, *arguments: Any) -> PoolChange:
        request.wait(self, function, *arguments)
        return request.change()


@callback
def session(client: BaseClient, _pointer: Any, state: int) -> None:
    assert client._on_session
    client._dispatch(client._on_session, client, SessionState(state))


@callback
def warning(client: BaseClient, _pointer: Any, code: int, message: Any) -> None:
    assert client._on_warning
    client._dispatch(client._on_warning, client, Notice(code, text(lib.divvy_warning_name(code)), text(message)))


@callback
def log(client: BaseClient, level: int, message: Any) -> None:
    client._dispatch(client._on_log or _log.log, _LEVELS.get(level, logging.DEBUG), text(message))


def _write(user: Any, characters: Any, size: int) -> int:
    ffi.from_handle(user).append(ffi.buffer(characters, size)[:])
    return 0


ffi.def_extern(name="divvy_py_write", onerror=note_and_end)(_write)
