#!/usr/bin/python3
"""A registry that divvy and Curator 5.4.0 share, against a live Curator process. SPDX-License-Identifier: Apache-2.0

usage: test_registry.py BUILD_FOLDER [WORD...]      with words: only the tests whose names contain one of them

divvy's side is registry_member.c, Curator's is CuratorDiscovery.java: processes that are led by JSON lines.
"""
import json
import signal
import sys

sys.dont_write_bytecode = True  # the checkout stays as it is
import harness  # noqa: E402
from harness import check  # noqa: E402
from kazoo.exceptions import NoNodeError  # noqa: E402
from registry_harness import BRIEF_SESSION_MS, ROOT, Divvy, curator, ended_badly, wait_for  # noqa: E402

# What Curator's own serializer writes, in its order; docs/protocol.md. "enabled" only outside its compatible mode.
FIELDS = ["name", "id", "address", "port", "sslPort", "payload", "registrationTimeUTC", "serviceType", "uriSpec"]
URI_SPEC = {"parts": [{"value": "scheme", "variable": True}, {"value": "://", "variable": False},
                      {"value": "address", "variable": True}, {"value": ":9/x", "variable": False}]}


def node(world, role, name):
    """(object, ZnodeStat) of an entry as it stands in ZooKeeper."""
    data, stat = world.client.get("%s/%s/%s" % (ROOT, role, name))
    return json.loads(data.decode("utf-8")), stat


# ---- what one writes the other reads ----

def test_ours_in_curator(world):
    """Curator finds what divvy registers, each of its fields as it was given, in queries and in its cache."""
    java, divvy = curator(world), Divvy(world)
    statuses = [
        {"id": "least"},
        {"id": "full", "address": "10.0.0.1", "port": 80, "sslPort": 443, "payload": "té\"xt", "uriSpec": URI_SPEC,
         "enabled": True, "load": 0.25, "zone": "a", "nested": {"deep": [1, None, {"x": "y"}]}},
        {"id": "object", "payload": {"@class": "java.util.LinkedHashMap", "x": 1}},
        {"id": "disabled", "enabled": False},
        {"id": "static", "serviceType": "STATIC"},
        {"id": "null", "payload": None, "port": None, "uriSpec": None, "serviceType": "DYNAMIC"},
    ]
    for status in statuses:
        status = dict({"role": "ours", "load": 1, "ttl": 60}, **status)
        entry = divvy.heartbeat(persistent=status["id"] == "static", **status)
        raw, stat = node(world, "ours", status["id"])
        check(raw == entry, "stored is %s, returned was %s", raw, entry)
        check(list(raw)[:len(FIELDS)] == FIELDS and raw["name"] == "ours", "the fields are %s", list(raw))
        check(("enabled" in raw) == ("enabled" in status), "enabled: %s", raw)
        for key, value in status.items():
            check(raw[key] == value, "%s of %s is %r", key, status, raw[key])
        owner = 0 if raw["serviceType"] == "STATIC" else divvy.session()
        check(stat.ephemeralOwner == owner, "%s is of session %x, not %x", status["id"], stat.ephemeralOwner, owner)
    for path in (ROOT, ROOT + "/ours"):
        data, stat = world.client.get(path)
        check(data == b"" and stat.dataLength == 0 and stat.ephemeralOwner == 0, "%s has %r", path, data)
    java.ask("cache", role="ours")
    java.await_cached("ours", [status["id"] for status in statuses])
    for seen in (java.instances("ours"), java.instances("ours", "old"), java.cached("ours")):
        check(sorted(seen) == sorted(status["id"] for status in statuses), "Curator sees %s", sorted(seen))
        for status in statuses:
            one, raw = seen[status["id"]], node(world, "ours", status["id"])[0]
            for key in ("name", "id", "address", "port", "sslPort", "registrationTimeUTC", "serviceType"):
                check(one[key] == raw[key], "%s is %r in %s, %r in %s", key, one[key], one, raw[key], raw)
            check(one["enabled"] == status.get("enabled", True), "enabled: %s", one)
        full = seen["full"]
        check(full["payload"] == "té\"xt" and full["uri"] == "https://10.0.0.1:9/x", "%s", full)
        check(seen["object"]["payload"] == {"x": 1} and seen["least"]["payload"] is None, "%s", seen)
    check(java.ask("instance", role="ours", id="full")["port"] == 80, "not found by its id")


def test_readers_of_one_payload(world):
    """Curator's readers for one class of payload, String or Void, read entries of divvy with such payloads."""
    java, divvy = curator(world), Divvy(world)
    divvy.heartbeat(role="texts", id="t", load=1, ttl=60, payload="text")
    divvy.heartbeat(role="nothings", id="n", load=1, ttl=60)
    check(java.instances("texts", "string")["t"]["payload"] == "text", "a string")
    check(java.instances("nothings", "void")["n"]["payload"] is None, "nothing")
    check(java.instances("nothings", "string")["n"]["payload"] is None, "no string")


def test_curators_in_ours(world):
    """divvy finds what Curator registers: every type, payload and mode, all as it stands in ZooKeeper."""
    java, divvy = curator(world), Divvy(world)
    registered = {}
    for mode in ("new", "old"):
        for service_type in ("DYNAMIC", "STATIC", "PERMANENT"):
            name = "%s-%s" % (mode, service_type.lower())
            registered[name] = java.register(mode, name="theirs", id=name, serviceType=service_type, port=1)
        registered[mode] = java.register(mode, name="theirs", id=mode, address="10.0.0.2", port=80, sslPort=443,
                                         payload="té\"xt", uriSpec="{scheme}://{address}:9/x")
        registered[mode + "-object"] = java.register(mode, name="theirs", id=mode + "-object", payload={"x": [1, None]})
    java.register(name="theirs", id="disabled", enabled=False)
    for entries in (divvy.list("theirs"), divvy.list()):
        found = {entry["id"]: entry for entry in entries if entry["name"] == "theirs"}
        check(sorted(found) == sorted(registered), "divvy sees %s, not %s", sorted(found), sorted(registered))
        for name, entry in found.items():
            raw, stat = node(world, "theirs", name)
            for key, value in raw.items():
                check(entry.get(key) == value, "%s is %r in %s", key, value, entry)
            check(("enabled" in raw) != name.startswith("old"), "%s: %s", name, raw)
            check((stat.ephemeralOwner == 0) == (raw["serviceType"] in ("STATIC", "PERMANENT")), "%s %s", raw, stat)
            check(entry.get("load", 0) == 0 and entry.get("role", "theirs") == "theirs", "%s", entry)
    check("disabled" in java.instances("theirs"), "Curator's own query leaves it out, too")
    divvy.heartbeat(role="theirs", id="ours", load=0.5, ttl=60)
    check(divvy.ask("pick", role="theirs")["entry"]["id"] in registered, "who has no load has the least")
    check(divvy.ids("theirs")[-1] == "ours", "%s", divvy.ids("theirs"))
    divvy.heartbeat(role="theirs", id="ours", load=-1, ttl=60)
    check(divvy.ask("pick", role="theirs")["entry"]["id"] == "ours", "who has less than nothing")
    for name in registered:
        java.ask("unregister", mode="new" if name.startswith("new") else "old", id=name)
    check(divvy.ids("theirs") == ["ours"], "%s", divvy.ids("theirs"))


def test_sequential(world):
    """Curator's DYNAMIC_SEQUENTIAL services, whose nodes have other names than their ids, are found and told."""
    java, divvy = curator(world), Divvy(world)
    divvy.ask("watch", role="row")
    for port in (1, 2):
        java.register(name="row", id="same", serviceType="DYNAMIC_SEQUENTIAL", port=port)
    reader = Divvy(world, "reader")
    check(sorted(entry["port"] for entry in reader.list("row")) == [1, 2], "%s", reader.list("row"))
    ports = {divvy.await_event("added", "same")["after"]["port"] for _ in range(2)}
    check(ports == {1, 2}, "told of %s", ports)
    for child in world.client.get_children(ROOT + "/row"):
        world.client.delete("%s/row/%s" % (ROOT, child))
    for _ in range(2):
        divvy.await_event("removed", "same")
    check(divvy.list("row") == [], "%s", divvy.list("row"))


def test_names(world):
    """Roles and ids of any characters are the same on both sides where ZooKeeper takes them; others are encoded."""
    java, divvy = curator(world), Divvy(world)
    names = ["tenant:42", "a b", "50%", "é", "x.y,z-_~", "日本"]
    for i, name in enumerate(names):
        divvy.heartbeat(role=name, id=name, load=1, ttl=60)
        check(java.instances(name)[name]["id"] == name, "Curator does not find %s", name)
        java.register(name=name, id="curator " + name)
        check(sorted(divvy.ids(name)) == sorted([name, "curator " + name]), "divvy sees %s", divvy.ids(name))
        divvy.ask("unregister", role=name if i % 2 else None, id=name)
        check(sorted(java.instances(name)) == ["curator " + name], "it is not gone")
        java.ask("unregister", id="curator " + name)
    divvy.heartbeat(role="a/b", id="/", load=1, ttl=60)
    check(divvy.ids("a/b") == ["/"], "%s", divvy.ids("a/b"))
    seen = java.instances("a%2Fb")
    check(list(seen) == ["/"] and seen["/"]["name"] == "a/b", "Curator sees %s", seen)


def test_nothing_else(world):
    """divvy writes nothing below the registry's path but roles and entries: Curator takes every child for one."""
    java, divvy = curator(world), Divvy(world)
    reader = Divvy(world, "reader")
    divvy.heartbeat(role="only", id="one", load=1, ttl=60)
    divvy.ask("unique", role="only-unique", candidate={"ttl": 60})
    check(reader.ids("only") == ["one"] and reader.ids("only-unique") == ["only-unique"], "%s", reader.list())
    reader.ask("purge", ttls=2)
    divvy.ask("unregister", role="only", id="none", expect=-12)
    names = java.ask("names")["names"]
    check(all(java.instances(name) is not None for name in names), "a role that Curator cannot read")
    check({"only", "only-unique"} <= set(names), "%s", names)
    for name in names:
        for child in world.client.get_children("%s/%s" % (ROOT, name)):
            check(node(world, name, child)[0]["name"] == name or "%" in name, "%s/%s", name, child)
    check(world.client.get_children("/registry") == ["services"], "%s", world.client.get_children("/registry"))


# ---- what one changes the other is told ----

def test_changes(world):
    """Each side's live view is told of the other's services that come, change and go, with what was and what is."""
    java, divvy = curator(world), Divvy(world)
    divvy.ask("watch", role="live")
    java.ask("cache", role="live")

    divvy.heartbeat(role="live", id="ours", load=1, ttl=60, port=1)
    check(divvy.await_event("added", "ours")["before"] is None, "it was there before")
    java.await_cached("live", ["ours"])
    divvy.heartbeat(role="live", id="ours", load=2, ttl=60, port=2)
    event = divvy.await_event("changed", "ours")
    check((event["before"]["load"], event["after"]["load"]) == (1, 2), "%s", event)
    wait_for(lambda: java.cached("live")["ours"]["port"] == 2, "Curator's cache is not told of the change")

    java.register(name="live", id="theirs", payload="one")
    event = divvy.await_event("added", "theirs")
    check(event["after"]["payload"] == "one" and event["before"] is None, "%s", event)
    java.ask("update", instance={"name": "live", "id": "theirs", "payload": "two"})
    event = divvy.await_event("changed", "theirs")
    check((event["before"]["payload"], event["after"]["payload"]) == ("one", "two"), "%s", event)
    check(divvy.ids("live") == ["theirs", "ours"], "%s", divvy.ids("live"))

    divvy.ask("unregister", role="live", id="ours")
    event = divvy.await_event("removed", "ours")
    check(event["before"]["load"] == 2 and event["after"] is None, "%s", event)
    java.await_cached("live", ["theirs"])
    java.ask("unregister", id="theirs")
    check(divvy.await_event("removed", "theirs")["before"]["payload"] == "two", "what was removed")
    check(divvy.list("live") == [], "%s", divvy.list("live"))

    java.register(name="live", id="again")
    divvy.await_event("added", "again")
    divvy.ask("unregister", role="live", id="again")
    java.await_cached("live", [])
    divvy.await_event("removed", "again")
    divvy.ask("unwatch", role="live")
    java.register(name="live", id="unseen")
    check(divvy.ids("live") == ["unseen"] and divvy.events == [], "told after the view was ended: %s", divvy.events)


def test_directory_vanishes(world):
    """A role whose directory goes, as Curator's empty ones do, and comes again: views and heartbeats find it again."""
    java, divvy = curator(world), Divvy(world)
    divvy.ask("watch", role="gone")
    java.register(name="gone", id="first")
    divvy.await_event("added", "first")
    for last in ("second", "third"):
        java.ask("unregister", id="first" if last == "second" else "second")
        divvy.await_event("removed", "first" if last == "second" else "second")
        world.client.delete(ROOT + "/gone")
        java.register(name="gone", id=last)
        divvy.await_event("added", last)
    java.ask("unregister", id="third")
    world.client.delete(ROOT + "/gone")
    divvy.heartbeat(role="gone", id="ours", load=1, ttl=60)
    divvy.await_event("added", "ours")
    check(list(java.instances("gone")) == ["ours"], "%s", java.instances("gone"))
    world.client.delete(ROOT + "/gone", recursive=True)
    divvy.await_event("removed", "ours")
    divvy.heartbeat(role="gone", id="ours", load=1, ttl=60)
    divvy.await_event("added", "ours")
    check(list(java.instances("gone")) == ["ours"], "%s", java.instances("gone"))


def test_strategies(world):
    """Curator's strategies pick services of divvy among its own, not those that are disabled, nor that have gone."""
    java, divvy = curator(world), Divvy(world)
    ids = ["ours-1", "ours-2", "theirs"]
    for i in (1, 2):
        divvy.heartbeat(role="mixed", id="ours-%d" % i, load=i, ttl=60, port=i)
    divvy.heartbeat(role="mixed", id="off", load=0, ttl=60, enabled=False)
    java.register(name="mixed", id="theirs")

    def picked(strategy):
        return set(java.ask("pick", role="mixed", strategy=strategy, times=60)["ids"])

    check(picked("round") == set(ids), "round robin gives %s", picked("round"))
    check(picked("random") == set(ids), "random gives %s", picked("random"))
    stuck = picked("sticky")
    check(len(stuck) == 1 and stuck < set(ids), "sticky gives %s", stuck)
    check(divvy.ids("mixed") == ["theirs", "ours-1", "ours-2"], "divvy sees %s", divvy.ids("mixed"))
    for gone in sorted(stuck | {"ours-1"}):
        divvy.ask("unregister", role="mixed", id=gone)
        ids.remove(gone)
    wait_for(lambda: picked("round") == set(ids), "round robin does not learn that one has gone")
    wait_for(lambda: picked("sticky") <= set(ids), "sticky sticks to one that has gone")


# ---- who owns an entry ----

def test_fields_survive(world):
    """What divvy adds to an entry stays whatever Curator does; where it registers the same id, until a heartbeat."""
    java, divvy = curator(world), Divvy(world)
    extra = {"zone": "a", "nested": {"deep": [1, None, {"x": "y"}]}, "weight": 1.5, "none": None}
    first = divvy.heartbeat(role="kept", id="ours", load=1, ttl=60, payload="p", **extra)
    java.register(name="kept", id="theirs", payload="one")
    java.ask("update", instance={"name": "kept", "id": "theirs", "payload": "two"})
    java.ask("update", expect_error=True, instance={"name": "kept", "id": "ours", "payload": "theirs"})
    java.ask("unregister", id="theirs")
    check(node(world, "kept", "ours")[0] == first, "Curator changed %s into %s", first, node(world, "kept", "ours")[0])

    java.register(name="kept", id="ours", payload="taken")
    raw, stat = node(world, "kept", "ours")
    check("zone" not in raw and stat.ephemeralOwner == java.ask("session")["session"], "it is not Curator's: %s", raw)
    check(divvy.list("kept")[0]["payload"] == "taken", "%s", divvy.list("kept"))
    again = divvy.heartbeat(role="kept", id="ours", load=3, ttl=60, payload="p", **extra)
    raw, stat = node(world, "kept", "ours")
    check(raw == again and all(raw[key] == value for key, value in extra.items()), "%s", raw)
    check(raw["load"] == 3 and raw["first_heartbeat"] == first["first_heartbeat"], "%s", raw)
    check(stat.ephemeralOwner == divvy.session(), "it is of another session")
    check(java.instances("kept")["ours"]["payload"] == "p", "%s", java.instances("kept"))

    java.ask("unregister", id="ours")  # which deletes by name: it is ours that goes
    check(divvy.heartbeat(role="kept", id="ours", load=4, ttl=60)["load"] == 4, "not registered again")
    check(list(java.instances("kept")) == ["ours"] and divvy.ids("kept") == ["ours"], "it is not there again")
    check(node(world, "kept", "ours")[1].ephemeralOwner == divvy.session(), "it is of another session")


def test_unique(world):
    """Curator sees the one holder of a role, and the next one after it; it can look at neither as two."""
    java, one, other = curator(world), Divvy(world, "one"), Divvy(world, "other")
    java.ask("cache", role="leader")
    held = one.ask("unique", role="leader", candidate={"ttl": 60, "port": 1})
    check(held["ours"] and held["entry"]["id"] == "leader", "%s", held)
    java.await_cached("leader", ["leader"])
    seen = other.ask("unique", role="leader", candidate={"ttl": 60, "port": 2})
    check(not seen["ours"] and seen["entry"] == held["entry"], "%s, but it holds %s", seen, held)
    check(java.instances("leader")["leader"]["port"] == 1, "%s", java.instances("leader"))
    one.ask("unregister", role="leader", id="leader")
    check(other.ask("unique", role="leader", candidate={"ttl": 60, "port": 2})["ours"], "the role is free")
    wait_for(lambda: java.cached("leader").get("leader", {}).get("port") == 2, "Curator's cache has the old holder")
    check(one.ask("unique", role="leader")["entry"]["port"] == 2, "the other holds it")


def test_malformed(world):
    """A node that is no entry, which Curator cannot read, hides none of the others from divvy, Curator's included."""
    java, divvy = curator(world), Divvy(world)
    divvy.ask("watch", role="broken")
    divvy.heartbeat(role="broken", id="ours", load=1, ttl=60)
    java.register(name="broken", id="theirs")
    for name in ("ours", "theirs"):
        divvy.await_event("added", name)
    world.client.create(ROOT + "/broken/rubbish", b"{\"name\":")
    java.ask("instances", role="broken", expect_error=True)
    reader = Divvy(world, "reader")
    for who in (divvy, reader):
        check(who.ids("broken") == ["theirs", "ours"], "%s", who.ids("broken"))
        wait_for(lambda who=who: who.ask("malformed")["count"] == 1, "%s has not counted it: %s", who.name,
                 lambda who=who: who.ask("malformed"))
    world.client.delete(ROOT + "/broken/rubbish")


# ---- sessions that end ----

def test_sessions_end(world):
    """Curator sees a killed process's entries go with its session, not persistent ones; a frozen one's come again."""
    java, divvy = curator(world), Divvy(world)
    killed, frozen = Divvy(world, "killed", BRIEF_SESSION_MS), Divvy(world, "frozen", BRIEF_SESSION_MS)
    divvy.ask("watch", role="ends")
    killed.heartbeat(role="ends", id="brief", load=1, ttl=60)
    killed.heartbeat(role="ends", id="lasting", load=1, ttl=1, persistent=True)
    frozen.heartbeat(role="ends", id="frozen", load=1, ttl=60, zone="a")
    java.ask("cache", role="ends")
    java.await_cached("ends", ["brief", "frozen", "lasting"])
    check(java.instances("ends")["lasting"]["serviceType"] == "PERMANENT", "%s", java.instances("ends"))
    session = frozen.session()
    frozen.process.send_signal(signal.SIGSTOP)
    killed.kill()
    java.await_cached("ends", ["lasting"])
    for name in ("brief", "frozen"):
        wait_for(lambda name=name: any(e["event"] == "removed" and e["before"]["id"] == name for e in divvy.events),
                 "divvy is not told that %s has gone: %s", name, lambda: divvy.events)
    wait_for(lambda: divvy.list("ends") == [], "past its ttl it is healthy: %s", lambda: divvy.list("ends"))
    frozen.process.send_signal(signal.SIGCONT)
    java.await_cached("ends", ["frozen", "lasting"])
    raw, stat = node(world, "ends", "frozen")
    check(raw["zone"] == "a" and stat.ephemeralOwner not in (session, 0), "%s %s", raw, stat)
    wait_for(lambda: divvy.ids("ends") == ["frozen"], "%s", lambda: divvy.ids("ends"))
    wait_for(lambda: divvy.ask("purge", ttls=1.01)["purged"], "the lasting one is never purged")
    java.await_cached("ends", ["frozen"])


def test_curator_reconnects(world):
    """Curator on a new session deletes its entries and makes them again: divvy has the new ones, and keeps its own."""
    java, divvy = curator(world), Divvy(world)
    divvy.ask("watch", role="again")
    divvy.heartbeat(role="again", id="ours", load=1, ttl=60)
    for name in ("a", "b"):
        java.register(name="again", id=name)
        divvy.await_event("added", name)
    before = {name: node(world, "again", name)[1].czxid for name in ("a", "b", "ours")}

    def czxid(name):
        try:
            return node(world, "again", name)[1].czxid
        except NoNodeError:
            return before[name]

    java.ask("expire")
    for name in ("a", "b"):
        wait_for(lambda name=name: czxid(name) != before[name], "Curator does not register %s again", name)
    wait_for(lambda: sorted(divvy.ids("again")) == ["a", "b", "ours"], "%s", lambda: divvy.ids("again"))
    check(czxid("ours") == before["ours"], "our entry was made again, too")
    check(sorted(java.instances("again")) == ["a", "b", "ours"], "%s", java.instances("again"))


def test_curator_killed(world):
    """divvy sees a killed Curator's entries go with its session, except persistent ones, which it can unregister."""
    java, divvy = curator(world), Divvy(world)
    divvy.ask("watch", role="last")
    java.register(name="last", id="brief")
    java.register(name="last", id="lasting", serviceType="PERMANENT")
    for name in ("brief", "lasting"):
        divvy.await_event("added", name)
    java.close()
    del world.curator
    divvy.await_event("removed", "brief")
    check(divvy.ids("last") == ["lasting"], "%s", divvy.ids("last"))
    divvy.ask("purge", ttls=0)
    check(divvy.ids("last") == ["lasting"], "what has no ttl was purged")
    divvy.ask("unregister", role="last", id="lasting")
    divvy.await_event("removed", "lasting")
    check(divvy.list("last") == [], "%s", divvy.list("last"))


TESTS = [test_ours_in_curator, test_readers_of_one_payload, test_curators_in_ours, test_sequential, test_names,
         test_nothing_else, test_changes, test_directory_vanishes, test_strategies, test_fields_survive, test_unique,
         test_malformed, test_sessions_end, test_curator_reconnects, test_curator_killed]


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    words = sys.argv[2:]
    chosen = [test for test in TESTS if not words or any(word in test.__name__ for word in words)]
    status = harness.run(chosen, sys.argv[1])
    for what in ended_badly:
        print(what, flush=True)
    return 1 if ended_badly else status


if __name__ == "__main__":
    sys.exit(main())
