"""What the library takes by a pointer: configs, and arrays of strings. SPDX-License-Identifier: Apache-2.0"""
from __future__ import annotations

from typing import Any, List

from divvy._arguments import encode, integer, milliseconds, number
from divvy._cffi import ffi, lib


def array(kept: List[Any], encoded: List[bytes]) -> Any:
    """Returns an array of C strings, which lives as long as `kept`."""
    pointers = [ffi.new("char[]", value) for value in encoded]
    kept.extend(pointers)
    made = ffi.new("char *[]", pointers)
    kept.append(made)
    return made


class Config:
    """A config of the library, and the memory of its strings. Values are checked by the types of its fields."""

    def __init__(self, kind: str, init: str = "init") -> None:
        self.kept: List[Any] = []
        self.c = ffi.new(f"divvy_{kind} *")
        self._types = {name: field.type.cname for name, field in ffi.typeof(f"divvy_{kind}").fields}
        getattr(lib, f"divvy_{kind}_{init}")(self.c, ffi.sizeof(self.c[0]))

    def set(self, **values: Any) -> None:
        """Sets fields; None leaves the default."""
        for name, value in values.items():
            if value is not None:
                self._set(name, value)

    def _set(self, name: str, value: Any) -> None:
        kind = self._types[name]
        if kind == "char *":
            value = ffi.new("char[]", encode(name, value))
            self.kept.append(value)
        elif kind == "double":
            value = number(name, value)
        elif "*" not in kind:
            value = integer(name, value, kind)
        setattr(self.c, name, value)

    def require(self, **values: Any) -> None:
        """Sets fields that have no default."""
        for name, value in values.items():
            self._set(name, value)

    def set_ms(self, **seconds: Any) -> None:
        """Sets fields whose names have `_ms` at their ends; None leaves the default."""
        for name, value in seconds.items():
            if value is not None:
                setattr(self.c, name + "_ms", milliseconds(value, name))
