"""The door for all arguments: each is what it should be, or TypeError or InvalidArgument says what it is and what to
give. SPDX-License-Identifier: Apache-2.0
"""
from __future__ import annotations

import enum
import inspect
import json
import math
from typing import Any, Callable, Iterable, List, Mapping, Optional, Type, TypeVar

from divvy._cffi import ffi
from divvy.errors import InvalidArgument

T = TypeVar("T")
LONGEST_S = 1e12
_INTEGERS = {kind: ffi.sizeof(kind) * 8 for kind in ("int", "int64_t", "uint32_t", "uint64_t", "size_t")}


def _wrong(name: str, value: object, wanted: str) -> TypeError:
    return TypeError(f"{name} must be {wanted}, and not {_shown(value)}")


def _shown(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 80 else shown[:77] + "..."


def encode(name: str, value: object) -> bytes:
    """Returns a string as the library takes it."""
    if not isinstance(value, str):
        raise _wrong(name, value, "a str")
    if "\0" in value:
        raise InvalidArgument(f"{name} has a NUL in it, which no string of the library can have: {_shown(value)}")
    try:
        return value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise InvalidArgument(f"{name} is no text that UTF-8 can write: {_shown(value)}, {error.reason}") from None


def maybe_encode(name: str, value: object) -> Any:
    """Returns a C string, or NULL for None."""
    return ffi.NULL if value is None else ffi.new("char[]", encode(name, value))


def integer(name: str, value: object, kind: str = "int64_t") -> int:
    """Returns an integer that fits a type of C."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise _wrong(name, value, "an int")
    signed = not kind.startswith(("u", "size"))
    low = -(1 << _INTEGERS[kind] - 1) if signed else 0
    high = (1 << _INTEGERS[kind] - signed) - 1
    if not low <= value <= high:
        raise InvalidArgument(f"{name} is {_shown(value)}: give {low} to {high}")
    return value


def number(name: str, value: object) -> float:
    """Returns a finite number."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise _wrong(name, value, "a number")
    try:
        converted = float(value)
    except OverflowError:
        converted = math.inf
    if not math.isfinite(converted):
        raise InvalidArgument(f"{name} is {_shown(value)}: give a finite number")
    return converted


def milliseconds(value: object, name: str = "timeout") -> int:
    """Returns a time for the library: rounded up; None is for ever."""
    if value is None:
        return -1
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise _wrong(name, value, "a number of seconds, or None")
    if not 0 <= value < LONGEST_S:
        raise InvalidArgument(f"{name} is {_shown(value)}, which is no time: give seconds from 0 on, or None")
    return math.ceil(value * 1000)


def milliseconds_between(name: str, value: object, least: int, most: int) -> Optional[int]:
    """Returns a time for the library that it would refuse in milliseconds, which nobody has written here."""
    if value is None:
        return None
    converted = milliseconds(value, name)
    if not least * 1000 <= converted <= most * 1000:
        raise InvalidArgument(f"{name} is {_shown(value)}: give {least} to {most} seconds")
    return converted


def flag(name: str, value: object) -> int:
    """Returns 1 for True and 0 for False. What only counts as such, as the text "no" does, is refused."""
    if not isinstance(value, bool):
        raise _wrong(name, value, "True or False")
    return int(value)


def member(name: str, value: object, kind: Type[enum.Enum]) -> Any:
    """Returns the library's number for a member of an enumeration."""
    if not isinstance(value, kind):
        raise _wrong(name, value, f"a divvy.{kind.__name__}, such as {list(kind)[0]}")
    return value.value


def given(name: str, value: object, entry: Any) -> Any:
    """Returns the library's entry to a callback of the user's, or None where there is none."""
    if value is None:
        return None
    if not callable(value):
        raise _wrong(name, value, "a function, or None")
    called(name, value)
    return entry


def called(name: str, value: object) -> Callable[..., Any]:
    """Returns a callback of the user's. Nobody would await a coroutine."""
    if inspect.iscoroutinefunction(value) or inspect.iscoroutinefunction(getattr(value, "__call__", None)):
        raise _wrong(name, value, "a plain function, which in asyncio may start a task")
    return function(name, value)


def function(name: str, value: object) -> Callable[..., Any]:
    """Returns a function of the user's."""
    if not callable(value):
        raise _wrong(name, value, "a function")
    return value


def event(name: str, value: object, kind: Type[T]) -> T:
    """Returns an event of `threading` or of `asyncio`."""
    if not isinstance(value, kind):
        module = "asyncio" if kind.__module__.startswith("asyncio") else kind.__module__
        raise _wrong(name, value, f"{module}.{kind.__name__}(), or None")
    return value


def choice(name: str, value: object, *words: str) -> str:
    """Returns one of some words."""
    if not isinstance(value, str) or value not in words:
        raise _wrong(name, value, " or ".join(map(repr, words)))
    return value


def seconds(name: str, value: object) -> float:
    """Returns a time that a run waits, in seconds."""
    milliseconds(number(name, value), name)
    return float(number(name, value))


def each(name: str, values: object) -> List[Any]:
    """Returns the things of a list, a set, or what else can be gone through."""
    if isinstance(values, (str, bytes, bytearray, Mapping)) or not isinstance(values, Iterable):
        raise _wrong(name, values, "a list")
    return list(values)


def names(name: str, values: object) -> List[bytes]:
    """Returns strings as the library takes them."""
    return [encode(f"{name}[{i}]", value) for i, value in enumerate(each(name, values))]


EXACT_DIGITS = 15  # of an integer in JSON: cJSON's numbers are doubles


def as_json(name: str, value: object) -> bytes:
    """Returns an entry as JSON."""
    def exact(digits: str) -> int:
        if len(digits.lstrip("-")) > EXACT_DIGITS:
            raise ValueError(f"an integer of more than {EXACT_DIGITS} digits would change on its way: make it a text")
        return 0
    if not isinstance(value, Mapping):
        raise _wrong(name, value, "a dictionary")
    try:
        text = json.dumps(dict(value), allow_nan=False)
        json.loads(text, parse_int=exact)
        return text.encode()
    except TypeError as error:
        raise TypeError(f"{name} cannot be written as JSON: {error}") from None
    except (ValueError, RecursionError) as error:
        raise InvalidArgument(f"{name} cannot be written as JSON: {error}") from None


def client(owner: Type[Any], value: Any, manual: bool) -> Any:
    """Returns the client that something is made on."""
    if getattr(value, "_type", None) != "divvy_client" or value._manual is not manual:
        raise _wrong("client", value, f"a {'divvy.aio.Client' if manual else 'divvy.Client'} for a "
                     f"{owner.__module__.rpartition('._')[0] or 'divvy'}.{owner.__name__}")
    return value


def optional(check: Any, name: str, value: Any, *more: Any) -> Optional[Any]:
    """Returns what a check makes of a value, or None for None."""
    return None if value is None else check(name, value, *more)
