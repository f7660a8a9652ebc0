"""The ground of all objects: pointers, waits, callbacks, forks, and the interpreter's end.
SPDX-License-Identifier: Apache-2.0

Lifetime. _box.py says who owns a pointer. `close()` empties the object's box, and what waits on it ends; the last
thread that lets the pointer go destroys the thing. A thing that nobody has closed is destroyed when Python forgets it,
by a call that waits for nothing.

The handler of a signal runs in the middle of a call of its own thread. If it closes the client of that call, it cannot
wait for the call to end. So the client is closed when the call has ended, and before this raises Closed.

Callbacks. `user` of every callback is a number, which a table of weak references turns into the object. A callback
of something that Python has forgotten finds nobody.
"""
from __future__ import annotations

import _thread
import atexit
import functools
import itertools
import math
import os
import sys
import threading
import weakref
from types import TracebackType
from typing import Any, Callable, Dict, List, Optional, Tuple, Type, TypeVar

from divvy._cffi import ffi, lib
from divvy._arguments import client as check_client
from divvy._arguments import milliseconds
from divvy._box import Box, Unique, empty_all, gone
from divvy._keywords import checked_init
from divvy.errors import Busy, Closed, make_error

NULL = ffi.NULL
T = TypeVar("T")

_forks = 0
_numbers = itertools.count(1)
_objects: weakref.WeakValueDictionary[int, Handle] = weakref.WeakValueDictionary()
_closers: Dict[int, Closer] = {}  # of clients that are not closed yet


class _Local(threading.local):
    """The state of one thread."""

    def __init__(self) -> None:
        self.calls: List[Handle] = []  # the calls of the library that it is in, with a pointer of each
        self.waiting: List[Handle] = []  # those of them that wait
        self.leaving: Dict[Any, Any] = {}  # clients that were closed inside a call of them: the pointer of each
        self.inside: List[Handle] = []  # the callbacks that it is in
        self.raised: Optional[BaseException] = None  # to be raised when the waiting call has returned
        self.stop: Optional[Stop] = None  # of the call that it makes for an event loop


class Stop:
    """What ends a waiting call that a thread makes for somebody else."""

    wanted = False


def call_until(stop: Stop, function: Callable[..., T], *arguments: Any) -> T:
    """Makes a waiting call, which `stop` ends."""
    _local.stop = stop
    try:
        return function(*arguments)
    finally:
        _local.stop = None


_local = _Local()


def _after_fork() -> None:
    global _forks
    _forks += 1
    _closers.clear()


os.register_at_fork(after_in_child=_after_fork)


class Destroyer:
    """Ends one thing of the library, once, when its last user lets it go."""

    def __init__(self, destroy: Callable[[Any], None], forget: Callable[..., None]) -> None:
        self.forks = _forks
        self.explicit = False
        self._called = False
        self._destroy = destroy
        self._forget = forget  # does the same, and waits for nothing

    def __call__(self, pointer: Any) -> None:
        if self._called or self.forks != _forks:
            return
        self._called = True
        try:
            if self.explicit:
                self._destroy(pointer)
            else:
                self._forget(pointer, NULL, NULL)
        except BaseException as error:  # the handler of a signal may raise, and cffi would print that
            if not note(error):
                raise


class Gate:
    """What opens once. Unlike those of `threading` a handler of a signal may use it, at any moment of its own use."""

    is_open = False

    def __init__(self) -> None:
        self._lock = _thread.allocate_lock()
        self._lock.acquire()

    def open(self) -> None:
        self.is_open = True
        self._lock.release()

    def wait(self, timeout: float = -1) -> bool:
        """Waits until it is open; returns whether it is."""
        if not self.is_open and self._lock.acquire(timeout=timeout):
            self._lock.release()
        return self.is_open


class Closer(Destroyer):
    """Ends a client in a thread of its own, as that can wait for callbacks, and may run them: the handlers of signals
    run in the main thread, and end its wait for the end."""

    def __init__(self) -> None:
        super().__init__(self._begin, self._begin)
        self.done = Gate()

    def hold_end(self) -> None:
        """Makes the interpreter's end wait for this client's. Processes of multiprocessing have an end of their own."""
        if not _closers and "multiprocessing.util" in sys.modules:
            sys.modules["multiprocessing.util"].Finalize(None, _at_exit, exitpriority=0)
        _closers[id(self)] = self

    def _close(self, pointer: Any) -> None:
        try:
            lib.divvy_client_close(pointer)
        finally:  # the handler of a signal may raise
            _closers.pop(id(self), None)
            self.done.open()

    def _begin(self, pointer: Any, *_: Any) -> None:
        self.hold_end()
        try:
            _thread.start_new_thread(self._close, (pointer,))
        except RuntimeError:  # there is no thread to be had
            if not self.explicit:
                raise
            self._close(pointer)


Self = TypeVar("Self", bound="Handle")


class Handle(Unique):
    """One thing of the library, which `close()`, a `with` block or Python's garbage collector ends."""

    _type: str  # the name of its C type
    _client: Any = None  # the Client that it is made on; a client is its own
    _box = Box()  # of one whose making has failed
    _destroyer: Destroyer
    _manual = False  # whether an event loop makes the calls

    def __init_subclass__(cls) -> None:
        if "__init__" in cls.__dict__:
            setattr(cls, "__init__", checked_init(cls.__init__))

    def __init__(self) -> None:
        self._forks = _forks
        self._box = Box()
        self._made = Gate()
        self._number = next(_numbers)
        self._user = ffi.cast("void *", self._number)
        _objects[self._number] = self
        self._prepare()

    def _prepare(self) -> None:
        """Makes what else the object has, before the thing itself."""

    def _make(self, make: Callable[..., int], destroyer: Destroyer, *arguments: Any) -> None:
        """Makes the thing, by a call with an out pointer of its type first. Its callbacks wait until it is here."""
        out = ffi.new(f"{self._type} **")
        try:
            self._check(make(out, *arguments))
            self._destroyer = destroyer
            self._box.fill(self, out[0], destroyer)
            self._made.open()
        except BaseException:  # the handler of a signal may raise when the thing is here, and nobody would end it
            self._box.empty()
            if not self._made.is_open:
                self._made.open()
            if out[0] != NULL and not self._box.filled:
                destroyer(out[0])
            self._box.filled = False
            raise

    def _make_on(self, client: Any, function: Any, destroy: Any, forget: Any, *arguments: Any) -> None:
        """Makes the thing on a client."""
        self._client = check_client(type(self), client, self._manual)
        self._make(lambda out: int(client._ask(function, *arguments, before=(out,))), Destroyer(destroy, forget))

    def _forks_match(self) -> bool:
        """Returns whether this is the process that it was made in."""
        return self._forks == _forks

    def _use(self) -> Any:
        """Returns the pointer. The caller holds on to it for as long as the library uses it."""
        pointer = self._box.pointer
        if self._forks != _forks:
            raise make_error(lib.DIVVY_EFORK)
        if pointer is None:
            raise gone(self)
        return pointer

    def _ask(self, function: Any, *arguments: Any, before: Tuple[Any, ...] = (),
             results: Optional[List[Any]] = None) -> Any:
        """Calls the library with the pointer, and returns what that gives. All calls with a pointer are made here.
        `results` gets it, too, also where the handler of a signal raises as the call ends."""
        calls = _local.calls
        depth = len(calls)
        try:
            calls.append(self)
            if results is None:
                return function(*before, self._use(), *arguments)
            results.extend(itertools.starmap(function, [(*before, self._use(), *arguments)]))
            return results[0]
        finally:
            del calls[depth:]
            _left()

    def _explain(self) -> str:
        """Returns what the library says of this thread's last error."""
        try:
            return text(self._client._ask(lib.divvy_client_error) if self._client else lib.divvy_client_error(NULL))
        except Closed:
            return text(lib.divvy_client_error(NULL))

    def _check(self, result: int) -> int:
        """Raises what a call has returned, if that is an error.

        Here, and wherever an exception can start, no variable may have a pointer. The exception would keep the frame,
        and the frame the pointer, so that a close would wait for both.
        """
        if result < 0:
            raise make_error(result, self._explain())
        return result

    def _call(self, function: Any, *arguments: Any) -> int:
        result = int(self._ask(function, *arguments))
        self._client._after_call()
        return self._check(result)

    def _drive(self, function: Any, *arguments: Any, undo: Any = None) -> int:
        """Makes a call in which signals' handlers and callbacks may run, and raises what these send out of it."""
        waiting = _local.waiting
        depth = len(waiting)
        results: List[int] = []
        try:
            waiting.append(self)
            self._ask(function, *arguments, results=results)
        except BaseException as error:
            if not results:  # the call was not made
                raise
            _local.raised = error
        finally:
            del waiting[depth:]
        raised = _local.raised
        if raised is not None and not waiting:
            _local.raised = None
            if undo is not None and results[0] == 0 and not self._box.closed:
                self._ask(undo)
            raise raised
        return results[0]

    def _wait(self, function: Any, *arguments: Any, undo: Any = None) -> int:
        """Makes a call that waits."""
        result = self._drive(function, *arguments, undo=undo)
        if result < 0:
            for closed in (self, self._client):
                if closed._box.closed:
                    raise Closed(f"this {type(closed).__name__} was closed during the call")
        self._client._after_call()
        return self._check(result)

    def _try(self, function: Any, *, undo: Any) -> bool:
        """Makes a call that tries, and returns whether it got what it wanted."""
        try:
            self._wait(function, undo=undo)
        except Busy:
            return False
        return True

    def _list_now(self, function: Any, timeout: Optional[float]) -> List[str]:
        """Makes a call that waits for a list of strings."""
        out = place_for("divvy_strings", lib.divvy_strings_free)
        self._wait(function, out, milliseconds(timeout))
        return strings(out[0])

    def _node(self, function: Any) -> Optional[str]:
        """Returns the path of the thing's own node, or None where there is none."""
        size = 0
        while True:
            buffer = ffi.new("char[]", size + 1)
            size, had = int(self._ask(function, buffer, size + 1)), size
            if size <= had:
                return text(buffer) or None

    def _tell(self, function: Callable[..., object], *arguments: Any) -> None:
        """Calls a callback of the user's. Where the loop does that later, the thing may be closed by then."""
        self._client._dispatch(self._call_back, function, *arguments)

    def _call_back(self, function: Callable[..., object], *arguments: Any) -> None:
        if not self._box.closed:
            function(*arguments)

    @property
    def closed(self) -> bool:
        """Whether it was closed, or forgotten."""
        return self._box.closed

    def close(self) -> None:
        """Ends it; a second call does nothing. Calls that wait end with :class:`Closed`."""
        if self._box.filled and not self._box.closed:
            self._destroyer.explicit = True
            inside(self, self._box.empty)

    def __enter__(self: Self) -> Self:
        self._use()
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 traceback: Optional[TracebackType]) -> None:
        self.close()


def inside_callback(client: Any) -> bool:
    """Returns whether this thread is in a callback of the client."""
    return any(handle._client is client for handle in _local.inside)


def inside_call(client: Any) -> bool:
    """Returns whether this thread is in a call with the client, or with an object on it: in a signal's handler."""
    return any(handle._client is client for handle in _local.calls)


def close_later(client: Any) -> None:
    """Closes a client when this thread has left its calls with the client."""
    client._closer.explicit = True
    _local.leaving[client] = client._box.empty()


def inside(handle: Handle, function: Callable[[], object]) -> None:
    """Calls a function in which this thread may have the pointer of a thing."""
    calls = _local.calls
    depth = len(calls)
    try:
        calls.append(handle)
        function()
    finally:
        del calls[depth:]
        _left()


def note(error: BaseException) -> bool:
    """Notes what Python code has raised that runs inside a call of this thread, if it is in one: it is raised when the
    call has returned. Returns whether it was noted."""
    if _local.calls:
        _local.raised = error
    return bool(_local.calls)


def note_and_end(kind: Type[BaseException], error: BaseException, traceback: TracebackType) -> int:
    """The same, where the call ends by it."""
    note(error)
    return 1


def _left() -> None:
    """Does what a call has left to be done, when this thread has left it."""
    if _local.leaving:
        _leave()
    if _local.raised is not None and not _local.calls and not _local.waiting:
        raised, _local.raised = _local.raised, None
        raise raised


def _leave() -> None:
    """Closes the clients whose calls this thread has left. It has no pointer itself: a signal's handler that comes here
    and closes the client waits until nobody has it."""
    for client in list(_local.leaving):
        if not inside_call(client):
            inside(client, functools.partial(_let_go, client))
            client._wait_closed()


def _let_go(client: Any) -> None:
    _local.leaving.pop(client, None)


def find(user: Any, made: bool = True) -> Optional[Handle]:
    """Returns the object that a callback is for, or None if it is closed or gone. Waits until it is `made`."""
    found = _objects.get(int(ffi.cast("intptr_t", user)))
    while made and found is not None and not found._made.wait(0.01):  # another thread makes it
        if found._client is not None and found._client.closed:
            return None
    return None if found is None or found.closed else found


def report(kind: Type[BaseException], error: BaseException, traceback: TracebackType) -> None:
    """Takes what a callback has raised. An exit or a ^C goes to the call that the callback runs in, if any; all else
    goes where Python sends what threads raise."""
    if issubclass(kind, Exception) or not note(error):
        threading.excepthook(threading.ExceptHookArgs((kind, error, traceback, threading.current_thread())))


def callback(function: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a function the callback of the library that has its name. `user` is replaced by the object."""
    missing = math.nan if function.__name__ == "load" else None  # no load; None is what C takes for void
    made = function.__name__ != "log"  # an open that fails returns when its lines were told

    def enter(*arguments: Any) -> Any:
        target = find(arguments[-1], made)
        if target is None:
            return missing
        _local.inside.append(target)
        try:
            return function(target, *arguments[:-1])
        finally:
            _local.inside.pop()

    ffi.def_extern(name="divvy_py_" + function.__name__, error=missing, onerror=report)(enter)
    return function


def _interrupted(client: Any, user: Any) -> int:
    """Asked now and then in a thread that waits. Python runs the handlers of signals here, as in all its code."""
    waiting, stop = _local.waiting, _local.stop
    closed = bool(waiting) and (waiting[-1]._box.closed or waiting[-1]._client._box.closed)
    return int(_local.raised is not None or closed or stop is not None and stop.wanted)


ffi.def_extern(name="divvy_py_interrupted", onerror=note_and_end)(_interrupted)


@atexit.register
def _at_exit() -> None:
    """Closes all clients, after which no callback enters Python, and then all that was made on them. A ^C ends the wait
    for one client, and is raised when all others have ended."""
    raised: Optional[BaseException] = None
    try:
        for number in list(_objects):
            target = _objects.get(number)
            if target is not None and target._client is target and target._box.filled:
                try:
                    target.close()
                except BaseException as error:
                    raised = error
                del target
        for closer in list(_closers.values()):
            closer.done.wait(10)
    finally:
        empty_all()
    if raised is not None:
        raise raised


def text(characters: Any) -> str:
    """Returns a string of the library's, or "" for NULL."""
    return "" if characters == NULL else str(ffi.string(characters), "utf-8", "surrogateescape")


def maybe(characters: Any) -> Optional[str]:
    """Returns a string of the library's, or None for NULL."""
    return None if characters == NULL else text(characters)


def place_for(kind: str, free: Callable[[Any], None]) -> Any:
    """Returns an out pointer, whose last user frees what is there: also where a call has filled it, and a signal's
    handler raises as it ends, or nobody waits for it any longer."""
    return ffi.gc(ffi.new(f"{kind} **"), lambda out: free(out[0]))


def strings(found: Any) -> List[str]:
    """Returns what a divvy_strings has."""
    return [text(lib.divvy_strings_get(found, i)) for i in range(lib.divvy_strings_count(found))]
