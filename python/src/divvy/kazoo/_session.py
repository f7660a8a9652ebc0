"""The divvy client of a KazooClient. SPDX-License-Identifier: Apache-2.0"""
from __future__ import annotations

import contextlib
import os
import re
import threading
import time
import weakref
from typing import Any, Callable, Dict, Iterator, Optional, Set

from kazoo import exceptions
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol.states import KazooState
from kazoo.security import CREATOR_ALL_ACL, OPEN_ACL_UNSAFE

import divvy
from divvy._arguments import encode

END_S = 3.0  # for which the stop of a KazooClient waits for the end of ours
RETRY_S = 0.05  # between looks at whether a KazooClient has connected again

_sessions: weakref.WeakKeyDictionary[Any, _Session] = weakref.WeakKeyDictionary()
_guard = threading.RLock()  # the handlers of signals may come here, too


class _Session:
    """The divvy client of one KazooClient, made when it is needed."""

    def __init__(self, kazoo_client: Any) -> None:
        if not isinstance(kazoo_client.handler, SequentialThreadingHandler):
            raise divvy.Unsupported("divvy.kazoo needs kazoo's threading handler: its waits would block an event loop")
        self._kazoo = weakref.ref(kazoo_client)
        self._lock = threading.RLock()
        self._client: Optional[divvy.Client] = None
        self._kept: Set[Any] = set()
        kazoo_client.add_listener(self._listen)

    def _listen(self, state: str) -> None:
        if state == KazooState.LOST:  # also when it is stopped
            client, self._client = self._client, None
            kept, self._kept = self._kept, set()
            kazoo_client = self._kazoo()
            if client is None:
                return
            # In a thread of its own, as the connection's, which is here, may have a new session to open. And where the
            # handler of a signal stops a KazooClient, in a call with ours, ours cannot end before that call has.
            ending = threading.Thread(target=_end, args=(client, kept), daemon=True)
            ending.start()
            if kazoo_client is None or kazoo_client.client_state == "CLOSED":  # stopped: all of ours is gone behind it
                ending.join(END_S)

    def get(self, deadline: Optional[float] = None, canceled: Callable[[], bool] = lambda: False) -> divvy.Client:
        """Returns the client. Waits while the KazooClient has lost its session and has no other yet."""
        kazoo_client = self._kazoo()
        while kazoo_client is not None and kazoo_client.client_state != "CLOSED":
            if kazoo_client.state != KazooState.LOST:
                with self._lock:
                    if self._client is None or self._client.closed:
                        self._client = divvy.Client(**options(kazoo_client))
                    return self._client
            if kazoo_client.client_state == "AUTH_FAILED":
                raise exceptions.AuthFailedError("the servers refused the credentials of the KazooClient")
            if canceled():
                raise exceptions.CancelledError()
            if deadline is not None and time.monotonic() > deadline:
                raise divvy.TimedOut("the KazooClient has no session")
            time.sleep(RETRY_S)
        raise exceptions.ConnectionClosedError("Connection has been closed")

    def keep(self, thing: Any, wanted: bool) -> None:
        """Keeps what has a node, until it has none or the session ends. With kazoo, too, a lock is held although the
        program has forgotten the object."""
        (self._kept.add if wanted else self._kept.discard)(thing)

    def is_current(self, client: divvy.Client) -> bool:
        """Returns whether the client serves still."""
        return self._client is client and not client.closed


def _end(client: divvy.Client, kept: Set[Any]) -> None:
    client.close()
    for thing in kept:
        if hasattr(thing, "state_change_event"):  # a SetPartitioner, which has failed now
            thing.state_change_event.set()


def absolute(path: str) -> str:
    """Returns a path as kazoo takes it: one that does not begin with a slash is given one."""
    encode("path", path)
    return path if path.startswith("/") else "/" + path


def session_of(kazoo_client: Any) -> _Session:
    """Returns the session of a KazooClient."""
    with _guard:
        found = _sessions.get(kazoo_client)
        if found is None:
            found = _sessions[kazoo_client] = _Session(kazoo_client)
        return found


def options(kazoo_client: Any) -> Dict[str, Any]:
    """Returns the options of a divvy client such as this KazooClient is."""
    hosts = ",".join(f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in kazoo_client.hosts)
    made: Dict[str, Any] = {"hosts": hosts + (kazoo_client.chroot or ""), "ensemble_tick_ms": _tick_ms(kazoo_client),
                            "session_timeout": kazoo_client._session_timeout / 1000, "acl": _acl(kazoo_client)}
    for scheme, auth in kazoo_client.auth_data:
        if scheme != "digest" or "auth" in made:
            raise divvy.Unsupported(f'divvy.kazoo takes one credential of the scheme "digest", and not "{scheme}"')
        made["auth"] = auth
    if kazoo_client._connection.sasl_options:
        raise divvy.Unsupported("divvy.kazoo cannot take SASL from a KazooClient: use divvy.Client and a password file")
    if kazoo_client.use_ssl:
        if kazoo_client.keyfile_password:
            raise divvy.Unsupported("divvy.kazoo cannot take a password of a TLS key: use divvy.Client and a file")
        made.update(tls_ca_file=kazoo_client.ca, tls_certificate_file=kazoo_client.certfile,
                    tls_key_file=kazoo_client.keyfile)
    return made


def _acl(kazoo_client: Any) -> divvy.Acl:
    if kazoo_client.default_acl in (None, OPEN_ACL_UNSAFE):
        return divvy.Acl.OPEN
    if kazoo_client.default_acl == CREATOR_ALL_ACL:
        return divvy.Acl.CREATOR
    raise divvy.Unsupported("divvy.kazoo knows OPEN_ACL_UNSAFE and CREATOR_ALL_ACL, and no other default_acl")


def _tick_ms(kazoo_client: Any) -> Optional[int]:
    if "DIVVY_ENSEMBLE_TICK_MS" in os.environ:
        return None
    with contextlib.suppress(exceptions.KazooException, OSError):
        found = re.search(r"^tickTime=(\d+)$", kazoo_client.command(b"conf"), re.M)
        if found:
            return int(found[1])
    return None  # the message of divvy says how to tell it


@contextlib.contextmanager
def as_kazoo(timed_out: Any = exceptions.OperationTimeoutError) -> Iterator[None]:
    """Raises divvy's errors as those of kazoo that mean the same."""
    try:
        yield
    except divvy.TimedOut as error:
        raise timed_out(str(error)) from error
    except divvy.Canceled as error:
        raise exceptions.CancelledError(str(error)) from error
    except divvy.AccessDenied as error:
        raise exceptions.NoAuthError(str(error)) from error
    except divvy.AuthFailed as error:
        raise exceptions.AuthFailedError(str(error)) from error
    except divvy.SessionLost as error:
        raise exceptions.SessionExpiredError(str(error)) from error
    except divvy.Closed as error:
        raise exceptions.ConnectionClosedError(str(error)) from error
