"""divvy: a set of work, divided among the members of a pool, on ZooKeeper. SPDX-License-Identifier: Apache-2.0

>>> import divvy
>>> with divvy.Client("zk1:2181,zk2:2181", ensemble_tick_ms=2000) as client:  # doctest: +SKIP
...     with client.lock("/locks/report"):
...         make_report()

:mod:`divvy.aio` has the same for asyncio, and :mod:`divvy.kazoo` stands in for kazoo's recipes.
"""
from divvy._cffi import ffi as _ffi
from divvy._cffi import lib as _lib
from divvy._run import Job
from divvy.assign import Member, assign_rendezvous, assign_round_robin, assign_sticky, bucket
from divvy.client import Acl, Client, Notice, SessionState
from divvy.election import Election, Leader
from divvy.errors import (
    AccessDenied,
    AlreadyHeld,
    AuthFailed,
    BadVersion,
    Busy,
    Canceled,
    Closed,
    ConnectionDown,
    Deadlock,
    Differs,
    Error,
    Exhausted,
    ForkError,
    InProgress,
    Interrupted,
    InvalidArgument,
    LimitReached,
    NodeExists,
    NoNode,
    NotEmpty,
    NotHeld,
    OutOfMemory,
    OverQuota,
    ProtocolError,
    ResolveFailed,
    RolledBack,
    SessionLost,
    SystemRefused,
    TimedOut,
    TooBig,
    Unsupported,
    WrongState,
)
from divvy.lock import Lock, LockMode
from divvy.partitioner import Assign, Item, ItemsChange, Partition, Partitioner, PartitionState, StateChange, View
from divvy.party import Party
from divvy.pool import PoolChange
from divvy.registry import ChangeKind, Entry, Registry, ServiceChange, Services
from divvy.semaphore import Holder, LimitPolicy, Semaphore

__version__: str = _ffi.string(_lib.divvy_version()).decode()

__all__ = [
    "AccessDenied", "Acl", "AlreadyHeld", "Assign", "AuthFailed", "BadVersion", "Busy", "Canceled", "ChangeKind",
    "Client", "Closed", "ConnectionDown", "Deadlock", "Differs", "Election", "Entry", "Error", "Exhausted", "ForkError",
    "Holder", "InProgress", "Interrupted", "InvalidArgument", "Item", "ItemsChange", "Job", "Leader", "LimitPolicy",
    "LimitReached", "Lock", "LockMode", "Member", "NoNode", "NodeExists", "NotEmpty", "NotHeld", "Notice",
    "OutOfMemory", "OverQuota", "Partition", "PartitionState", "Partitioner", "Party", "PoolChange", "ProtocolError",
    "Registry", "ResolveFailed", "RolledBack", "Semaphore", "ServiceChange", "Services", "SessionLost",
    "SessionState", "StateChange", "SystemRefused", "TimedOut", "TooBig", "Unsupported", "View", "WrongState",
    "assign_rendezvous", "assign_round_robin", "assign_sticky", "bucket",
]
