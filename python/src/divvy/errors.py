"""divvy's errors, as exceptions: one class for each code of <divvy/error.h>. SPDX-License-Identifier: Apache-2.0

Code, name, text and flags of each class come from the library. Those that Python has a word for are that, too: a
:class:`TimedOut` is a ``TimeoutError``.
"""
from __future__ import annotations

from typing import Any, ClassVar, Dict, Type

from divvy._cffi import ffi, lib


class Error(Exception):
    """An error of divvy; the message says what was wrong, where, and why."""

    code: int = 0
    """The number: one of DIVVY_E*."""
    name: str = "DIVVY_OK"
    """The name of the number, such as "DIVVY_ETIMEDOUT"."""
    retryable: bool = False
    """Whether the same call may succeed later without any change by the caller."""
    fatal: bool = False
    """Whether the object that gave the error is of no further use."""

    _classes: ClassVar[Dict[int, Type[Error]]] = {}

    def __init_subclass__(cls, code: int = 0, **options: Any) -> None:
        super().__init_subclass__(**options)
        if code:
            _describe(cls, code)
            Error._classes[code] = cls


def _describe(target: Any, code: int) -> None:
    target.code = code
    target.name = ffi.string(lib.divvy_errname(code)).decode()
    target.retryable = bool(lib.divvy_error_retryable(code))
    target.fatal = bool(lib.divvy_error_fatal(code))


def make_error(code: int, message: str = "") -> Error:
    """Returns the exception for a code of divvy's. An empty message is replaced by the text of the code."""
    found = Error._classes.get(code, Error)
    error = found(message or ffi.string(lib.divvy_strerror(code)).decode())
    if found is Error:  # a later library's
        _describe(error, code)
    return error


class InvalidArgument(Error, ValueError, code=lib.DIVVY_EINVAL):
    """An argument is invalid."""


class OutOfMemory(Error, MemoryError, code=lib.DIVVY_ENOMEM):
    """An allocation failed."""


class TimedOut(Error, TimeoutError, code=lib.DIVVY_ETIMEDOUT):
    """The time has passed."""


class Canceled(Error, code=lib.DIVVY_ECANCELED):
    """The call was canceled."""


class WrongState(Error, code=lib.DIVVY_ESTATE):
    """The call is not allowed in this state."""


class Deadlock(Error, code=lib.DIVVY_EDEADLK):
    """A waiting call inside a callback would wait for itself."""


class Closed(Error, code=lib.DIVVY_ECLOSED):
    """The client, or the object, is closed."""


class SessionLost(Error, code=lib.DIVVY_ELOST):
    """The session is lost."""


class ConnectionDown(Error, ConnectionError, code=lib.DIVVY_ECONNECTION):
    """The connection is down; the outcome may be unknown."""


class AuthFailed(Error, code=lib.DIVVY_EAUTH):
    """The servers refused the credentials."""


class AccessDenied(Error, PermissionError, code=lib.DIVVY_EACCES):
    """The access list of the node denies this."""


class NoNode(Error, LookupError, code=lib.DIVVY_ENOENT):
    """There is no such node, or thing."""


class NodeExists(Error, code=lib.DIVVY_EEXIST):
    """The node exists already."""


class NotEmpty(Error, code=lib.DIVVY_ENOTEMPTY):
    """The node has children."""


class BadVersion(Error, code=lib.DIVVY_EVERSION):
    """The node has another version."""


class TooBig(Error, code=lib.DIVVY_E2BIG):
    """Larger, or more, than there may be."""


class LimitReached(Error, code=lib.DIVVY_ELIMIT):
    """A budget of the client has no room."""


class Busy(Error, code=lib.DIVVY_EBUSY):
    """Held by another."""


class AlreadyHeld(Error, code=lib.DIVVY_EALREADY):
    """Held, stood for or watched already."""


class NotHeld(Error, code=lib.DIVVY_ENOTHELD):
    """Not held."""


class Unsupported(Error, code=lib.DIVVY_EUNSUPPORTED):
    """This build, or these servers, do not support it."""


class ForkError(Error, code=lib.DIVVY_EFORK):
    """The object was made before a fork, and is used in the child: open a client there."""


class ResolveFailed(Error, code=lib.DIVVY_ERESOLVE):
    """No host name could be resolved."""


class ProtocolError(Error, code=lib.DIVVY_EPROTO):
    """Unexpected data, or an unexpected answer."""


class SystemRefused(Error, code=lib.DIVVY_ESYSTEM):
    """The operating system refused a thread or a descriptor."""


class RolledBack(Error, code=lib.DIVVY_EROLLEDBACK):
    """Undone because another operation of the same transaction failed."""


class Interrupted(Error, InterruptedError, code=lib.DIVVY_EINTERRUPTED):
    """The wait was interrupted."""


class InProgress(Error, code=lib.DIVVY_EINPROGRESS):
    """Another such call on this object waits."""


class Differs(Error, code=lib.DIVVY_EDIFFERS):
    """The pool has another limit."""


class Exhausted(Error, code=lib.DIVVY_EEXHAUSTED):
    """The sequence numbers of the path are used up."""


class OverQuota(Error, code=lib.DIVVY_EQUOTA):
    """A quota of the servers is used up."""
