"""One owner of each pointer of the library. SPDX-License-Identifier: Apache-2.0

A pointer lies in a cdata that cffi counts, so it lives while any thread is inside a call with it. The last that lets it
go destroys the thing. Between calls a box keeps one reference. It is emptied by `close()`, or when Python forgets the
object, or at the interpreter's end.

Python calls the finalizers in a cycle of garbage in any order; the callbacks of weak references come before all of
them. So such a callback empties the box. A `__del__` that runs later, also one of the user's, finds a closed object.
Nothing else may keep a cdata that has a finalizer, but for the variables of a call.
"""
from __future__ import annotations

import weakref
from typing import Any, Callable, Dict, NoReturn, Optional

from divvy._cffi import ffi
from divvy.errors import Closed

_full: Dict[int, Box] = {}  # the boxes that have a pointer


class Box:
    """The one place that keeps a pointer."""

    pointer: Any = None
    filled = False  # also when it is empty again
    closed = False
    _watch: Optional[weakref.ref[Any]] = None

    def fill(self, owner: object, pointer: Any, destroy: Callable[[Any], None]) -> None:
        """Takes a pointer, until its owner is closed or forgotten."""
        self.pointer = ffi.gc(pointer, destroy)
        self._watch = weakref.ref(owner, self._forgotten)
        _full[id(self)] = self
        self.filled = True

    def _forgotten(self, _watch: Any) -> None:
        self.empty()

    def empty(self) -> Any:
        """Gives the pointer to the caller, who destroys the thing by letting it go."""
        _full.pop(id(self), None)
        self._watch = None
        pointer, self.pointer = self.pointer, None  # from here on no handler of a signal can come in between
        self.closed = True
        return pointer


def empty_all() -> None:
    """Empties all boxes, so that no finalizer of what is left finds a pointer."""
    for box in list(_full.values()):
        box.empty()


class Unique:
    """What cannot be copied, as it owns what is there once."""

    def __reduce_ex__(self, _protocol: Any) -> NoReturn:
        name = f"{type(self).__module__}.{type(self).__qualname__}"
        raise TypeError(f"{name} cannot be copied or pickled: it stands for one thing, at the servers or in this "
                        "process. Give the object itself; another process makes its own")


def gone(owner: object) -> Closed:
    """Returns the error of a call with an object that is closed."""
    return Closed(f"this {type(owner).__name__} is closed")
