"""kazoo's recipes on divvy: change the import line, and nothing else. SPDX-License-Identifier: Apache-2.0

Constructors, methods and exceptions are kazoo's. Each recipe is given a KazooClient; hosts, chroot, session timeout,
credentials and TLS are taken from it. All recipes on one KazooClient share one divvy client, with a session of its own,
which is closed when the KazooClient stops or loses its session. :class:`KazooClient` is kazoo's, with these recipes
as `client.Lock` and so on.

The tick of the servers must be known: it is read from $DIVVY_ENSEMBLE_TICK_MS, or else asked of the server by the word
"conf", where its 4lw.commands.whitelist has it.

What differs from kazoo is listed in docs/python.md.
"""
from functools import partial
from typing import Any

import kazoo.client

from divvy.kazoo._locks import Lock, ReadLock, Semaphore, WriteLock
from divvy.kazoo._members import Party, PartitionState, SetPartitioner, ShallowParty


class KazooClient(kazoo.client.KazooClient):  # type: ignore[misc]
    """kazoo's client, with divvy's recipes where there are such."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        for recipe in (Lock, ReadLock, WriteLock, Semaphore, Party, ShallowParty, SetPartitioner):
            setattr(self, recipe.__name__, partial(recipe, self))


__all__ = ["KazooClient", "Lock", "Party", "PartitionState", "ReadLock", "Semaphore", "SetPartitioner", "ShallowParty",
           "WriteLock"]
