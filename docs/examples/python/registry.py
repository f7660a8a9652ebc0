#!/usr/bin/env python3
"""Who is there, who has the least to do, and who is the only one. SPDX-License-Identifier: Apache-2.0

Try it: run two workers in two terminals, and find the one with less load in a third.

    export DIVVY_ENSEMBLE_TICK_MS=2000     # the servers' tickTime, or more
    registry.py 127.0.0.1:2181 work web
    registry.py 127.0.0.1:2181 find web
    registry.py 127.0.0.1:2181 watch web
    registry.py 127.0.0.1:2181 lead mailer

Workers and leaders end after SECONDS, 10 by default; so does a watch. A worker's entry lives for as long as it
announces itself: `heartbeat=True` has the library do that.
"""
import os
import sys
import time
from typing import Any, Mapping

import divvy

TTL_S = 3
PATIENCE_S = 10


def show(what: str, entry: Mapping[str, Any]) -> None:
    print(what, entry.get("id"), "pid", entry.get("pid"), "load", entry.get("load"), flush=True)


def work(registry: divvy.Registry, role: str, seconds: float) -> None:
    """Announces a service. Any further fields may stand in it."""
    status = {"role": role, "load": os.getpid() % 100, "ttl": TTL_S, "color": "green"}
    show("announced", registry.heartbeat(status, PATIENCE_S))
    time.sleep(seconds)


def find(registry: divvy.Registry, role: str, _seconds: float) -> None:
    """Looks for the healthy service that has the least load."""
    entry = registry.healthy_service(role, PATIENCE_S)
    if entry:
        show("found", entry)
    else:
        print("nobody", flush=True)


def watch(registry: divvy.Registry, role: str, seconds: float) -> None:
    """Prints each change of the role's services, and what there is at the beginning."""
    def changed(_registry: divvy.Registry, change: divvy.ServiceChange) -> None:
        show(change.kind.name.lower(), change.after or change.before or {})
    registry.watch(role, changed)
    time.sleep(seconds)


def lead(registry: divvy.Registry, role: str, seconds: float) -> None:
    """Claims a role that only one may have, or keeps it: more often than each third of its ttl."""
    led = None
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        holder = registry.unique_service(role, {"ttl": TTL_S}, PATIENCE_S)
        leads = holder is not None and registry.is_ours(holder)
        if holder and leads is not led:
            show("leading" if leads else "following", holder)
        led = leads
        time.sleep(0.5)


def main() -> None:
    verbs = {"work": work, "find": find, "watch": watch, "lead": lead}
    if len(sys.argv) not in (4, 5) or sys.argv[2] not in verbs:
        print("usage: registry.py HOSTS work|find|watch|lead ROLE [SECONDS]", file=sys.stderr)
        sys.exit(2)
    hosts, verb, role = sys.argv[1:4]
    seconds = float(sys.argv[4]) if len(sys.argv) > 4 else 10.0
    try:
        with divvy.Client(hosts) as client, client.registry(heartbeat=True) as registry:
            verbs[verb](registry, role, seconds)
    except divvy.Error as error:
        sys.exit(f"registry.py: {error}")


if __name__ == "__main__":
    main()
