"""Methods that make objects. SPDX-License-Identifier: Apache-2.0"""
from __future__ import annotations

import inspect
from typing import Any, Callable, Concatenate, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Maker(Generic[P, T]):
    """A method of a client that makes an object on it: `client.lock(path)` is `Lock(client, path)`."""

    def __init__(self, kind: Callable[Concatenate[Any, P], T]) -> None:
        def make(self: Any, *arguments: P.args, **keywords: P.kwargs) -> T:
            return kind(self, *arguments, **keywords)
        own, *others = inspect.signature(kind).parameters.values()
        setattr(make, "__signature__", inspect.Signature([own.replace(name="self", annotation=own.empty), *others],
                                                         return_annotation=kind))
        make.__doc__ = kind.__doc__
        self._make: Any = make

    def __set_name__(self, owner: type, name: str) -> None:
        self._make.__module__ = owner.__module__
        self._make.__name__, self._make.__qualname__ = name, f"{owner.__qualname__}.{name}"

    def __get__(self, client: Any, owner: Any = None) -> Callable[P, T]:
        made: Callable[P, T] = self._make.__get__(client, owner)
        return made
