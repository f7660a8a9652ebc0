"""Service registry: services announce themselves, others find them. SPDX-License-Identifier: Apache-2.0"""
from __future__ import annotations

import dataclasses
import enum
import json
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Union, overload

from divvy._arguments import as_json, encode, flag, given, maybe_encode, milliseconds, number
from divvy._box import Box, Unique, gone
from divvy._cffi import ffi, lib
from divvy._config import Config
from divvy._core import NULL, Handle, callback, place_for, text
from divvy.errors import InvalidArgument

Entry = Dict[str, Any]
"""An entry, or a status: a JSON object. <divvy/registry.h> says which fields it has."""


class ChangeKind(enum.Enum):
    """The kind of change of a watched service."""

    ADDED = lib.DIVVY_REGISTRY_ADDED
    CHANGED = lib.DIVVY_REGISTRY_CHANGED
    REMOVED = lib.DIVVY_REGISTRY_REMOVED
    PRESERVED = lib.DIVVY_REGISTRY_PRESERVED


@dataclasses.dataclass(frozen=True)
class ServiceChange:
    """A change of a watched service."""

    kind: ChangeKind
    before: Optional[Entry]
    after: Optional[Entry]


class Services(Unique, Sequence[Entry]):
    """The healthy services of a role, or of all, at one moment, the least loaded first; immutable.

    An entry is made a dictionary when it is first asked for, and is that one from then on.
    """

    def __init__(self, taken: Any) -> None:
        self._box = Box()
        self._box.fill(self, taken, lib.divvy_services_unref)
        self._entries: Dict[int, Entry] = {}

    def _taken(self) -> Any:
        if self._box.pointer is None:
            raise gone(self)
        return self._box.pointer

    def _at(self, i: int) -> Entry:
        if i not in self._entries:
            self._entries[i] = value_of(lib.divvy_services_entry(self._taken(), i))
        return self._entries[i]

    @overload
    def __getitem__(self, index: int) -> Entry: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Entry]: ...

    def __getitem__(self, index: Union[int, slice]) -> Union[Entry, Sequence[Entry]]:
        numbers = range(len(self))[index]
        return self._at(numbers) if isinstance(numbers, int) else [self._at(i) for i in numbers]

    def __len__(self) -> int:
        return int(lib.divvy_services_count(self._taken()))

    def __repr__(self) -> str:
        return f"<divvy.Services {list(self)!r}>"


class BaseRegistry(Handle):
    """What a registry has whether calls wait or the event loop does."""

    _type = "divvy_registry"

    def __init__(self, client: Any, path: str = "/divvy/services", *, host: Optional[str] = None,
                 pid: Optional[int] = None, nonce: Optional[str] = None, persistent: bool = False,
                 heartbeat: bool = False, heartbeat_jitter: Optional[float] = None,
                 on_load: Optional[Callable[[Any, str, str, float], float]] = None, watch_bytes: Optional[int] = None,
                 poll: Optional[float] = None, preserve_share: Optional[float] = None,
                 preserve_settle: Optional[float] = None, preserve_max: Optional[float] = None) -> None:
        super().__init__()
        self._on_load = on_load
        self._watches: Dict[Optional[str], _Watch] = {}
        config = Config("registry_config")
        config.require(path=path)
        config.set(host=host, pid=pid, nonce=nonce, persistent=flag("persistent", persistent),
                   heartbeat=flag("heartbeat", heartbeat), heartbeat_jitter=heartbeat_jitter,
                   on_load=given("on_load", on_load, lib.divvy_py_load),
                   watch_bytes=watch_bytes, preserve_share=preserve_share, user=self._user)
        config.set_ms(poll=poll, preserve_settle=preserve_settle, preserve_max=preserve_max)
        self._make_on(client, lib.divvy_registry_open, lib.divvy_registry_close,
                      lib.divvy_registry_close_async, config.c)

    def watch(self, role: Optional[str],
              on_change: Optional[Callable[[Any, ServiceChange], object]] = None) -> None:
        """Keeps a live view of a role, or of all (None), and calls `on_change(registry, ServiceChange)`.

        `services()` sends no request then. Without `on_change` that is all that the view does.
        """
        entry = given("on_change", on_change, lib.divvy_py_change)
        watch = _Watch(self, on_change)
        self._call(lib.divvy_registry_watch, maybe_encode("role", role), NULL if entry is None else entry, watch._user)
        self._watches[role] = watch

    def unwatch(self, role: Optional[str]) -> None:
        """Ends a view; its callback is not called afterwards."""
        self._call(lib.divvy_registry_unwatch, maybe_encode("role", role))
        watch = self._watches.pop(role, None)
        if watch:
            watch._box.empty()

    def is_ours(self, entry: Mapping[str, Any]) -> bool:
        """Returns whether an entry is this registry's own, by host, pid and nonce."""
        return bool(self._ask(lib.divvy_registry_is_ours, tree("entry", entry)))

    @property
    def malformed(self) -> int:
        """How many entries were met that are none."""
        return int(self._ask(lib.divvy_registry_malformed))


class Registry(BaseRegistry):
    """A registry as one program uses it; <divvy/registry.h> has the full text. Entries are dictionaries.

    `on_load(registry, role, id, load)` is asked for the load before each heartbeat that is sent by itself.
    """

    def heartbeat(self, status: Mapping[str, Any], timeout: Optional[float] = None) -> Entry:
        """Announces a service, or says that it is still there; returns the entry as it stands in ZooKeeper."""
        return self._entry(lib.divvy_registry_heartbeat, timeout, tree("status", status)) or {}

    def unregister(self, role: Optional[str], id: str, timeout: Optional[float] = None) -> None:
        """Removes a service, whosesoever it is; None as the role: every service of this id."""
        self._wait(lib.divvy_registry_unregister, maybe_encode("role", role), encode("id", id), milliseconds(timeout))

    def services(self, role: Optional[str] = None, timeout: Optional[float] = None) -> Services:
        """Returns the healthy services of a role, or of all roles, the least loaded first.

        It copies nothing and sends no request where they are watched (`watch()`).
        """
        return take_services(self, maybe_encode("role", role), milliseconds(timeout))

    def healthy_service(self, role: str, timeout: Optional[float] = None) -> Optional[Entry]:
        """Returns the healthy service of a role that has the least load, or None."""
        entry: Optional[Entry] = self._entry(lib.divvy_registry_healthy_service, timeout, encode("role", role))
        return entry

    def healthy_services(self, role: Optional[str] = None, timeout: Optional[float] = None) -> List[Entry]:
        """Returns all healthy services of a role, or of all roles, the least loaded first."""
        return self._entry(lib.divvy_registry_healthy_services, timeout, maybe_encode("role", role)) or []

    def unique_service(self, role: str, candidate: Optional[Mapping[str, Any]] = None,
                       timeout: Optional[float] = None) -> Optional[Entry]:
        """Returns the one service of a unique role; with a candidate, first claims the role for it, or keeps it."""
        given = NULL if candidate is None else tree("candidate", candidate)
        entry: Optional[Entry] = self._entry(lib.divvy_registry_unique_service, timeout, encode("role", role), given)
        return entry

    def purge_stale_services(self, ttls: float = 2.0, timeout: Optional[float] = None) -> int:
        """Deletes the entries that are older than so many times their ttl; returns how many."""
        out = ffi.new("size_t *")
        self._wait(lib.divvy_registry_purge_stale_services, number("ttls", ttls), out, milliseconds(timeout))
        return int(out[0])

    def _entry(self, function: Any, timeout: Optional[float], *arguments: Any) -> Any:
        out = place_for("cJSON", lib.cJSON_Delete)
        self._wait(function, *arguments, out, milliseconds(timeout))
        return value_of(out[0])


class _Watch(Handle):
    """What one view's callback is called with."""

    def __init__(self, registry: BaseRegistry,
                 on_change: Optional[Callable[[Any, ServiceChange], object]]) -> None:
        super().__init__()
        self._client, self.registry, self.on_change = registry._client, registry, on_change
        self._made.open()


def tree(name: str, value: Mapping[str, Any]) -> Any:
    """Returns a cJSON tree, which goes with its last user."""
    parsed = lib.cJSON_Parse(as_json(name, value))
    if parsed == NULL:
        raise InvalidArgument(f"{name} cannot be read as JSON: cJSON takes 1000 levels, and no NUL in a text")
    return ffi.gc(parsed, lib.cJSON_Delete)


def take_services(registry: BaseRegistry, role: Any, timeout_ms: int) -> Services:
    """Makes the call that waits for a list."""
    out = place_for("divvy_services", lib.divvy_services_unref)
    registry._wait(lib.divvy_registry_services, role, out, timeout_ms)
    taken, out[0] = out[0], NULL
    return Services(taken)


def value_of(entry: Any) -> Any:
    """Returns what a cJSON tree holds, or None for NULL."""
    if entry == NULL:
        return None
    printed = lib.cJSON_PrintUnformatted(entry)
    if printed == NULL:
        raise MemoryError("cJSON cannot print an entry")
    try:
        return json.loads(ffi.string(printed))
    finally:
        lib.cJSON_free(printed)


@callback
def load(registry: BaseRegistry, _pointer: Any, role: Any, id: Any, last: float) -> float:
    assert registry._on_load
    return float(registry._on_load(registry, text(role), text(id), last))


@callback
def change(watch: _Watch, _pointer: Any, kind: int, before: Any, after: Any) -> None:
    assert watch.on_change
    if not watch.registry.closed:
        told = ServiceChange(ChangeKind(kind), value_of(before), value_of(after))
        watch.registry._tell(watch._call_back, watch.on_change, watch.registry, told)
