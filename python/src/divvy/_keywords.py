"""Keywords that a call does not have: where they belong, or what was meant. SPDX-License-Identifier: Apache-2.0"""
from __future__ import annotations

import difflib
import functools
import importlib
import inspect
from typing import Any, Callable, Dict, List, Mapping, ParamSpec, Tuple, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_MADE = ("Lock", "Semaphore", "Partitioner", "Party", "Election", "Registry")


@functools.lru_cache(None)
def _names(function: Callable[..., Any]) -> Tuple[str, ...]:
    """Returns the names of a function's parameters; none where it takes any."""
    found = inspect.signature(function).parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in found):
        return ()
    return tuple(parameter.name for parameter in found if parameter.name not in ("self", "client"))


def _places(module: str) -> Dict[str, Tuple[str, ...]]:
    """Returns the keywords of all that makes something, as a user calls it."""
    package = importlib.import_module("divvy.aio" if module.startswith("divvy.aio") else "divvy")
    places = {f"{package.__name__}.Client()": _names(package.Client.__init__)}
    for name in _MADE:
        places[f"client.{name.lower()}()"] = _names(getattr(package, name).__init__)
    places["partitioner.run()"] = _names(package.Partitioner.run)
    return places


def check(called: str, module: str, function: Callable[..., Any], keywords: Mapping[str, Any]) -> None:
    """Raises TypeError for the first keyword that a function does not have."""
    known = _names(function)
    for name in keywords:
        if known and name not in known:
            raise TypeError(f"{called} has no keyword {name!r}: {_advice(name, known, _places(module))}")


def _advice(name: str, known: Tuple[str, ...], places: Mapping[str, Tuple[str, ...]]) -> str:
    seconds = name[:-3] if name.endswith("_ms") else name
    unit = ", in seconds" if seconds != name else ""
    if seconds in known:
        return f"{seconds!r} it is here{unit}"
    owners: List[str] = [place for place, names in places.items() if name in names or seconds in names]
    if owners:
        place = " and ".join(owners)
        meant = name if any(name in names for names in places.values()) else seconds
        as_name = "it" if meant == name else f"{meant!r}{unit}"
        return f"{place} {'has' if len(owners) == 1 else 'have'} {as_name}"
    near = difflib.get_close_matches(name, known, 1)
    if near:
        return f"did you mean {near[0]!r}?"
    return "it has " + ", ".join(known)


def checked_init(function: Callable[..., None]) -> Callable[..., None]:
    """Makes a constructor do so."""
    @functools.wraps(function)
    def call(self: Any, *arguments: Any, **keywords: Any) -> None:
        modules = [kind.__module__ for kind in type(self).__mro__]  # the class may be a user's own
        module = next((name for name in modules if name.startswith("divvy.aio")), "divvy")
        check(type(self).__name__ + "()", module, function, keywords)
        function(self, *arguments, **keywords)
    return call


def checked(function: Callable[P, T]) -> Callable[P, T]:
    """Makes a method say where a keyword belongs that it does not have."""
    @functools.wraps(function)
    def call(*arguments: P.args, **keywords: P.kwargs) -> T:
        check(function.__qualname__ + "()", function.__module__, function, keywords)
        return function(*arguments, **keywords)
    return call
