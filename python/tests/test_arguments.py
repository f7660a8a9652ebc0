"""Wrong arguments of everything that is public. SPDX-License-Identifier: Apache-2.0"""
import asyncio
import enum
import functools
import inspect
import math
import pydoc
import re

import pytest

import divvy
from divvy import aio

NOBODY = {"hosts": "127.0.0.1:1", "ensemble_tick_ms": 100, "on_log": lambda *_: None}
TEXT = [b"x", 5, True, [], "a\0b", "\ud800"]
HUGE = [1 << 40, -(1 << 40), 1 << 80, -(1 << 80)]


class Called:
    """What can be called, and then has to be awaited."""

    async def __call__(self, *_):
        """Does nothing."""

    method = __call__



# The wrong values of each kind of parameter. None stands in those that have no default.
WRONG = {
    "path": [None, *TEXT, "", "a", "/a/", "/a//b", "/a/../b", "/zookeeper/a"],
    "text": TEXT,
    "name": [None, *TEXT],
    "key": [None, 5, True, [], "a\0b", "\ud800"],
    "flag": [None, 0, 1, "no", "", b"", 1.0],
    "choice": [0, 1, "no", "", b"", 1.0],
    "int": ["3", b"3", 1.5, True, math.nan, *HUGE],
    "positive": ["3", b"3", 1.5, True, math.nan, *HUGE, 0, -1],
    "number": ["1", b"1", True, math.nan, math.inf, -math.inf, 1 << 2000],
    "seconds": ["1", b"1", True, math.nan, math.inf, -1, -1e-9, 1e13, 1 << 2000],
    "function": [1, "f", b"f", [], asyncio.sleep, functools.partial(asyncio.sleep, 0), Called(), Called().method],
    "work": [1, "f", b"f", []],
    "items": [None, 5, "ab", b"ab", {"a": 1}, [1], [None], [b"a"], ["a\0"], ["\ud800"], [""], [], ["a", "a"]],
    "some items": [None, 5, "ab", b"ab", {"a": 1}, [1], [None], [b"a"], ["a\0"], ["\ud800"]],
    "members": [None, 5, "ab", b"ab", {"a": 1}, [1], [None], [b"a"], ["a\0"], [], [divvy.Member(b"a")],
                [divvy.Member("a", weight="1")], [divvy.Member("a", weight=-1)], [divvy.Member("a", zone=3)]],
    "previous": [5, "a", [0, 1, 2], [-1], ["0"], [True], [1 << 40]],
    "status": [None, 5, "a", [], b"a", {"a": {1}}, {"a": math.nan}, {1: object()}, {"a": b""}],
    "entry": [5, "a", [], b"a", {"a": {1}}, {"a": math.nan}],
    "one function": [None, 1, "f", b"f", []],
    "failures": [5, "5/10m", [5, 600], (5,), ("5", 600), (0, 600), (5, 0)],
    "event": [0, 1, True, "stop", print],
    "word": [None, 0, True, b"always", "sometimes", ""],
    "some seconds": [None, "1", b"1", True, math.nan, math.inf, -1, -1e-9, 1e13, 1 << 2000],
    "enum": [None, 0, 1, "READ", b"", True],
    "maybe enum": [0, 1, "STICKY", b"", True],
    "client": [None, 5, "client", object()],
}

CONTAINER = {"container": "flag"}
MADE = {  # what is made on a client: its parameters
    "lock": {"path": "path", "identifier": "text", "mode": "enum", "on_lost": "function", **CONTAINER},
    "semaphore": {"path": "path", "identifier": "text", "limit": "positive", "count": "positive",
                  "limit_policy": "enum", "on_lost": "function", **CONTAINER},
    "party": {"path": "path", "identifier": "text", "shallow": "flag"},
    "election": {"path": "path", "data": "text", "latch": "flag", "preference": "int", "on_elected": "function",
                 "on_lost": "function", "on_leader": "function", "on_step_down": "function", "on_failed": "function",
                 **CONTAINER},
    "registry": {"path": "path", "host": "text", "pid": "int", "nonce": "text", "persistent": "flag",
                 "heartbeat": "flag", "heartbeat_jitter": "number", "on_load": "function", "watch_bytes": "int",
                 "poll": "seconds", "preserve_share": "number", "preserve_settle": "seconds",
                 "preserve_max": "seconds"},
    "partitioner": {"path": "path", "items": "items", "identifier": "text", "kazoo": "flag", "eager": "choice",
                    "assign": "maybe enum", "func": "function", "func_name": "text", "numeric": "choice",
                    "time_boundary": "seconds", "leave_boundary": "seconds", "settle_max": "seconds",
                    "allocate_timeout": "seconds", "release_warn": "seconds", "release_on_suspend": "choice",
                    "rejoin": "choice", "weight": "int", "zone": "text", "max_moves": "int",
                    "round_timeout": "seconds", "rejoin_delay": "seconds", "static_membership": "choice",
                    "handover_timeout": "seconds", "prepare_timeout": "seconds", "load_unit": "text",
                    "load_interval": "seconds", "load_floor": "number", "tags": "text", "item_cap": "int",
                    "min_members": "int", "min_members_wait": "seconds", "on_state": "function",
                    "on_items": "function"},
}
CLIENT = {"hosts": "text", "session_timeout": "seconds", "ensemble_tick_ms": "int", "auth": "text", "acl": "enum",
          "ephemeral_path_bytes": "int", "watch_path_bytes": "int", "on_session": "function",
          "on_warning": "function", "on_log": "function", "log_requests": "flag", "tls_ca_file": "text",
          "tls_certificate_file": "text", "tls_key_file": "text", "tls_key_password_file": "text",
          "sasl_mechanism": "text", "sasl_user": "text", "sasl_password_file": "text", "sasl_service": "text",
          "sasl_host": "text", "tokens_checked": "flag", "death_watch": "flag", "failover_delay": "seconds",
          "log_steps": "flag"}
TIMEOUT = {"timeout": "seconds"}
ASKED = {"by": "text", "why": "text", "dry_run": "flag", **TIMEOUT}
HELD = {"acquire": TIMEOUT, "wait_gone": TIMEOUT, "cancel": {"attempt_id": "int"}}
METHODS = {  # of each object: the parameters of those methods that have some
    "client": {"wait_connected": TIMEOUT, "party_members": {"path": "path", "shallow": "flag", **TIMEOUT},
               "pool_set_weight": {"path": "path", "member": "name", "weight": "int", **ASKED},
               "pool_forget": {"path": "path", "member": "name", **ASKED},
               "pool_pin": {"path": "path", "item": "name", "member": "name", **ASKED},
               "pool_unpin": {"path": "path", "item": "name", **ASKED},
               "pool_move": {"path": "path", "item": "name", "member": "name", **ASKED},
               "pool_pause": {"path": "path", "item": "name", **ASKED},
               "pool_resume": {"path": "path", "item": "name", **ASKED},
               "pool_need": {"path": "path", "item": "name", "tag": "text", **ASKED},
               "pool_set_option": {"path": "path", "name": "name", "value": "number", **ASKED}},
    "lock": {**HELD, "contenders": TIMEOUT},
    "semaphore": {**HELD, "resize": {"limit": "positive", **TIMEOUT}, "holders": TIMEOUT, "contenders": TIMEOUT},
    "party": {"members": TIMEOUT, "leave": TIMEOUT},
    "election": {"leader": TIMEOUT, "candidates": TIMEOUT, "ask_step_down": TIMEOUT},
    "registry": {"watch": {"role": "text", "on_change": "function"}, "unwatch": {"role": "text"},
                 "is_ours": {"entry": "status"}, "heartbeat": {"status": "status", **TIMEOUT},
                 "unregister": {"role": "text", "id": "name", **TIMEOUT},
                 "healthy_service": {"role": "name", **TIMEOUT}, "healthy_services": {"role": "text", **TIMEOUT},
                 "services": {"role": "text", **TIMEOUT},
                 "unique_service": {"role": "name", "candidate": "entry", **TIMEOUT}, "changes": {"role": "text"},
                 "purge_stale_services": {"ttls": "number", **TIMEOUT}},
    "partitioner": {"owns": {"item": "name", "token": "int"}, "release_set": {"state_id": "int"},
                    "prepared": {"item": "text"}, "set_items": {"items": "items"}, "set_weight": {"weight": "int"},
                    "set_load": {"item": "name", "load": "number"},
                    "wait_change": {"since_state_id": "int", **TIMEOUT}, "wait_for_acquire": TIMEOUT,
                    "finish": TIMEOUT, "leave": {"working": "flag", **TIMEOUT},
                    "run": {"worker": "one function", "prepare": "work", "stop": "event", "signals": "choice",
                            "restart": "word", "on_error": "word", "backoff": "some seconds",
                            "backoff_max": "some seconds", "hand_over": "flag", "finish_timeout": "some seconds",
                            "quarantine": "failures"}},
}
ASSIGN = {
    "assign_round_robin": {"members": "members", "items": "some items", "numeric": "flag"},
    "assign_rendezvous": {"members": "members", "items": "some items"},
    "assign_sticky": {"members": "members", "items": "some items", "previous": "previous", "max_moves": "int",
                      "spread_zones": "flag", "keep_all": "flag"},
    "bucket": {"key": "key", "count": "positive"},
}
RIGHT = {"path": "/a", "items": ["a"], "item": "a", "state_id": 1, "since_state_id": 1, "limit": 1, "role": "web",
         "id": "a", "status": {"role": "web", "load": 1, "ttl": 30}, "on_change": print, "entry": {}, "weight": 1,
         "load": 1, "members": ["a"], "worker": print, "member": "a", "tag": "gpu", "name": "max-moves", "value": 1,
         "key": "a", "count": 1}
# The parameters with a number of C behind them, which has more room than some of HUGE.
ROOMY = {"pid", "watch_bytes", "ephemeral_path_bytes", "watch_path_bytes", "attempt_id", "state_id", "since_state_id",
         "token", "ensemble_tick_ms", "max_moves", "item_cap", "min_members"}


def parameters(function):
    found = inspect.signature(function).parameters
    return {name for name in found if name not in ("self", "client")}


def wrong(table, name):
    kind = table[name]
    for value in WRONG[kind]:
        if not (name in ROOMY and value == 1 << 40 or name == "token" and value in HUGE[:2]):
            yield value


async def refused(call, table, failures):
    """Makes a call with each wrong value of each of its parameters, and notes those that it does not refuse well."""
    required = {name: RIGHT[name] for name, parameter in inspect.signature(call).parameters.items()
                if name in RIGHT and (parameter.default is inspect.Parameter.empty or name == "items")}
    for name in table:
        for value in wrong(table, name):
            try:
                result = call(**{**required, name: value})
                if inspect.isasyncgen(result):
                    result = result.__anext__()
                if inspect.isawaitable(result):
                    result = await asyncio.wait_for(result, 5)
                failures.append(f"{call}: {name}={value!r} is accepted")
                getattr(result, "close", lambda: None)()
            except (TypeError, ValueError) as error:
                message = str(error)
                if len(message) < 12 or isinstance(error, TypeError) and name not in message or "cdata" in message \
                        or "ctype" in message:
                    failures.append(f"{call}: {name}={value!r}: {message}")
            except Exception as error:
                failures.append(f"{call}: {name}={value!r}: {error!r}")


def check_complete(kind, methods):
    """Checks that the table has each method with parameters, and each parameter."""
    for name, method in inspect.getmembers(kind, inspect.isfunction):
        if not name.startswith("_") and parameters(method) and name not in MADE:
            assert set(methods[name]) == parameters(method), f"{kind}.{name}"


# Every constructor and method, blocking and of asyncio, refuses what it cannot use by TypeError or ValueError, with a
# message that names the parameter, or says what the library wants.
@pytest.mark.parametrize("package", [divvy, aio])
def test_objects(package):
    async def main():
        failures = []
        client = package.Client(**NOBODY)
        assert set(CLIENT) == parameters(package.Client)
        for name in CLIENT:
            for value in wrong(CLIENT, name):
                try:
                    package.Client(**{**NOBODY, name: value}).close()
                    failures.append(f"Client: {name}={value!r} is accepted")
                except (TypeError, ValueError) as error:
                    assert len(str(error)) > 12
        check_complete(package.Client, METHODS["client"])
        for name, table in METHODS["client"].items():
            await refused(getattr(client, name), table, failures)
        for name, table in MADE.items():
            kind = getattr(package, name.capitalize())
            assert set(table) == parameters(kind), kind
            await refused(getattr(client, name), table, failures)
            for other in (None, 5, "client", (aio if package is divvy else divvy).Client(**NOBODY)):
                with pytest.raises(TypeError, match=f"client must be a .*Client for a divvy.*{kind.__name__}"):
                    kind(other, "/a", *([["a"]] if name == "partitioner" else []))
                if isinstance(other, divvy.client.BaseClient):
                    other.close()
            if name == "partitioner" and package is aio:
                METHODS[name]["run"]["grace"] = "some seconds"
            check_complete(kind, METHODS[name])
            thing = getattr(client, name)("/a", *([["a"]] if name == "partitioner" else []))
            for method, taken in METHODS[name].items():
                if hasattr(thing, method):
                    await refused(getattr(thing, method), taken, failures)
        client.close()
        assert failures == [], "\n".join(failures)
    asyncio.run(main())


# An asynchronous call that is refused leaves nothing behind.
def test_refused_answers():
    async def main():
        client = aio.Client(**NOBODY)
        lock, registry = client.lock("/a"), client.registry("/b")
        for call in (lambda: lock.acquire("soon"), lambda: registry.heartbeat(5), lambda: registry.heartbeat({})):
            with pytest.raises((TypeError, divvy.InvalidArgument)):
                await call()
        assert not client._answers
        client.close()
    asyncio.run(main())


# A keyword that a call does not have is answered with where it belongs, with its name here, or with the nearest one.
@pytest.mark.parametrize("package", [divvy, aio])
def test_keywords(package):
    async def main():
        client = package.Client(**NOBODY)
        partitioner = client.partitioner("/a", ["a"])
        calls = [
            (lambda: package.Client(weight=1), r"Client\(\) has no keyword 'weight': client.partitioner\(\) has it"),
            (lambda: client.partitioner("/a", ["a"], ensemble_tick_ms=1), rf"{package.__name__}.Client\(\) has it"),
            (lambda: client.lock("/a", rejoin=True), r"Lock\(\) has no keyword 'rejoin': client.partitioner\(\) has"),
            (lambda: client.lock("/a", limit=2), r"client.semaphore\(\) has it"),
            (lambda: client.party("/a", container=True), r"lock\(\) and .*semaphore\(\) and .*election\(\) have it"),
            (lambda: package.Client(session_timeout_ms=1), "'session_timeout' it is here, in seconds"),
            (lambda: package.Client(rejoin_delay_ms=1), r"partitioner\(\) has 'rejoin_delay', in seconds"),
            (lambda: package.Client(session_timout=1), "did you mean 'session_timeout'"),
            (lambda: client.party("/a", colour=1), "it has path, identifier, shallow"),
            (lambda: client.partitioner("/a", ["a"], prepare=print), r"partitioner.run\(\) has it"),
            (lambda: partitioner.run(print, rejoin=True), r"Partitioner.run\(\) has .*: client.partitioner\(\) has it"),
        ]
        for call, message in calls:
            with pytest.raises(TypeError, match=message):
                call()
        assert isinstance(package.Party(client, path="/a"), package.Party)
        client.close()
    asyncio.run(main())


# So do the pure functions.
def test_assign():
    async def main():
        failures = []
        for name, table in ASSIGN.items():
            function = getattr(divvy, name)
            assert set(table) == parameters(function)
            await refused(function, table, failures)
        assert failures == [], "\n".join(failures)
    asyncio.run(main())


# What makes an object on a client tells what it takes and makes, to help() and to editors.
@pytest.mark.parametrize("package", [divvy, aio])
def test_makers(package):
    for name in MADE:
        kind, made = getattr(package, name.capitalize()), getattr(package.Client, name)
        signature = inspect.signature(made)
        assert list(signature.parameters)[0] == "self" and signature.return_annotation is kind
        assert list(signature.parameters.values())[1:] == list(inspect.signature(kind).parameters.values())[1:]
        assert made.__doc__ == kind.__doc__ and made.__qualname__ == f"Client.{name}"
        assert re.search(rf"\n \|  {name}\(self, (/, )?path:", pydoc.plain(pydoc.render_doc(package.Client)))
        assert made.__module__ in (package.__name__, "divvy.client")


# The tables have every enumeration's parameter, and every public class that takes arguments.
def test_tables():
    made = {name for name, thing in vars(divvy).items() if isinstance(thing, type) and
            issubclass(thing, divvy._core.Handle)}
    assert made == {"Client", *(name.capitalize() for name in MADE)}
    assert all(issubclass(kind, enum.Enum) for kind in (divvy.Acl, divvy.Assign, divvy.LockMode, divvy.LimitPolicy))
