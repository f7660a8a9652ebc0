#!/usr/bin/python3
"""What divvy serve costs with a large pool. SPDX-License-Identifier: Apache-2.0

usage: bench/serve.py [--members M] [--items K] [--build DIR]

Starts a private ZooKeeper, and writes into it a pool with a plan: members, and for each item the place of its owner. It
needs no member for that, and 20 sessions. Then it starts divvy serve, and prints: how long until the first page has its
rows, what a page asks for and how long each answer takes once the pool was read, how long an examination takes, what
is asked of ZooKeeper and how much CPU time goes by while nothing changes, the resident memory, and what is sent to an
open page when the plan moves one item to another member.
1,000 members and 100,000 items by default; that takes two minutes. Exit status: 0 done; 1 it failed.
"""
import argparse
import json
import logging
import os
import re
import subprocess
import sys
import time
import zlib

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "test", "live"))

from command_harness import Server, Setting, wait_for  # noqa: E402
from kazoo.client import KazooClient  # noqa: E402
from look_harness import set_of  # noqa: E402
from serve_harness import Serve, Stream  # noqa: E402

POOL, SESSIONS, BATCH = "/pool", 20, 500
ANSWERS = ("/state", "/findings", "/changes", "/heat", "/samples", "/rows?table=holdups", "/rows?table=pools",
           "/rows?table=timeline&limit=500", "/rows?table=items&limit=100")
GUID = "0000000000900000000000%d"


def node_of(member):
    return "%022d1,a=2,s=00000000-worker-%04d" % (member, member)


def place_of(item, owner):
    return "%s/locks/item-%06d/%022d2__lock__%010d" % (POOL, item, owner, owner)


def base36(number, width):
    digits = "0123456789abcdefghijklmnopqrstuvwxyz"
    return "".join(digits[number // 36 ** place % 36] for place in reversed(range(width)))


def cut(text, generation, first):
    """A part as chunks: their names and bytes, and the part."""
    pieces = [text[at:at + 200000] for at in range(0, len(text), 200000)]
    names = ["%d-%s-%d" % (generation, GUID % generation, first + n) for n in range(len(pieces))]
    part = {"chunks": [[name, len(piece), "%08x" % zlib.crc32(piece)] for name, piece in zip(names, pieces)]}
    return list(zip(names, pieces)), part


def plan_of(generation, members, items, owners):
    """The root and the chunks of a plan, by docs/protocol.md, D1 to D8."""
    def text(value):
        return json.dumps(value, separators=(",", ":")).encode()
    entries = [{"slot": slot, "key": node_of(slot), "static": 0, "weight": 1000, "zone": "", "rejoin_delay_ms": 0,
                "absent": "0", "leaving": ""} for slot in range(members)]
    width = 1 if members <= 36 else 2
    base = text({"members": entries, "width": width, "owners": "".join(base36(owner, width) for owner in owners)})
    names = ["item-%06d" % item for item in range(items)]
    chunks, items_part = cut(text(names), generation, 0)
    more, base_part = cut(base, generation, len(chunks))
    root = {"v": 1, "generation": generation, "guid": GUID % generation, "after": "", "epoch": GUID % 1, "pzxid": "1a",
            "reason": "join", "options": {"algorithm": 1, "max_moves": 0, "spread_zones": 1, "round_timeout_ms": 60000},
            "tag": "00000000", "set": set_of(names), "items": items_part, "base": base_part,
            "base_guid": GUID % generation, "deltas": [], "moved": [], "sum": "%08x" % zlib.crc32(base)}
    return text(root), chunks + more


def write_plan(client, *plan):
    root, chunks = plan_of(*plan)
    client.ensure_path(POOL + "/plan/" + GUID % 1)
    for name, piece in chunks:
        client.create(POOL + "/plan/" + name, piece)
    client.set(POOL + "/plan", root)


def create_all(client, nodes):
    """Creates (path, data, ephemeral), many in one request."""
    waiting = []
    for at in range(0, len(nodes), BATCH):
        transaction = client.transaction()
        for path, data, ephemeral in nodes[at:at + BATCH]:
            transaction.create(path, data, ephemeral=ephemeral)
        waiting.append(transaction.commit_async())
    for answer in waiting:
        failed = [result for result in answer.get(120) if isinstance(result, Exception)]
        assert not failed, failed[0]


def make_pool(clients, members, items, owners):
    """Each session has the members of its share, and what they own: divvy tells them apart by their names."""
    clients[0].ensure_path(POOL + "/party")
    clients[0].ensure_path(POOL + "/locks")
    create_all(clients[0], [("%s/locks/item-%06d" % (POOL, item), b"", False) for item in range(items)])
    for number, client in enumerate(clients):
        create_all(client, [(POOL + "/party/" + node_of(m), b"{}", True) for m in range(number, members, SESSIONS)])
        create_all(client, [(place_of(item, owners[item]), b"worker-%04d" % owners[item], True)
                            for item in range(items) if owners[item] % SESSIONS == number])
    write_plan(clients[0], 7, members, items, owners)


def status_of(pid, key):
    with open("/proc/%d/status" % pid, encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(key + ":"))


def cpu_s(pid):
    with open("/proc/%d/stat" % pid, encoding="ascii") as file:
        words = file.read().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def reads_of(served):
    text = served.ask("/metrics")[2].decode()
    return int(next(line.split()[1] for line in text.splitlines() if line.startswith("divvy_serve_item_reads_total ")))


def measure_start(items):
    began = time.monotonic()
    served = Serve("--path", POOL, "--timeout", "60s", interval="1s")
    wait_for(lambda: served.pool()["owned"] == items, "the whole pool")
    served.rows("items", limit=100)
    print("time to the first page, from the start of the process: %.2f s" % (time.monotonic() - began))
    began = time.monotonic()
    subprocess.run([Setting.divvy, "status", "--path", POOL, "--connect", Setting.server.connect, "--timeout", "60s",
                    "--json"], stdout=subprocess.DEVNULL, check=True)
    print("divvy status, which reads all of it too, in the same run: %.2f s" % (time.monotonic() - began))
    return served


def files_of(served):
    """The page's files, as a browser finds them."""
    waiting, found = ["/"], {}
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        found[path] = served.ask(path)[2]
        text = found[path].decode()
        waiting += re.findall(r'(?:src|href)="(/[a-z_]+\.[a-z]+)"', text)
        waiting += ["/" + name for name in re.findall(r'from "\./([a-z_]+\.js)"', text)]
    return found


def measure_answers(served):
    """What a page asks for: all of it together, and each answer, which comes from memory but for the desk's."""
    for what in ("a page's first load, with the first examination", "another page's, while that is fresh"):
        began = time.monotonic()
        files = files_of(served)
        answers = [served.ask(path) for path in ANSWERS]
        total = sum(map(len, files.values())) + sum(len(body) for _, _, body in answers)
        print("%s: %.0f ms, %d files, %d answers, %d bytes" %
              (what, 1000 * (time.monotonic() - began), len(files), len(answers), total))
    for path in ANSWERS:
        taken = []
        for _ in range(5):
            began = time.monotonic()
            status, _, body = served.ask(path)
            taken.append(1000 * (time.monotonic() - began))
        taken.sort()
        if status != 200:
            print(body.decode().strip())
        print("  %-40s %d: %.0f ms, at most %.0f ms, %d bytes" % (path, status, taken[2], taken[-1], len(body)))


def measure_findings(served):
    """Three examinations that are new, and not told again from memory."""
    taken, seen = [], served.json("/findings")["read_at_ms"]
    while len(taken) < 3:
        began = time.monotonic()
        told = served.json("/findings")
        if told["read_at_ms"] != seen:
            taken.append(1000 * (time.monotonic() - began))
            seen = told["read_at_ms"]
        time.sleep(0.2)
    print("an examination: %s ms" % ", ".join("%.0f" % ms for ms in taken))


def measure_rest(served, seconds=15):
    pid, began, reads = served.process.pid, cpu_s(served.process.pid), reads_of(served)
    time.sleep(seconds)
    print("at rest: %.0f items asked about a second, %.1f %% of a core" %
          ((reads_of(served) - reads) / seconds, 100 * (cpu_s(pid) - began) / seconds))
    print("resident memory: %.1f MB, at most %.1f MB" %
          (status_of(pid, "VmRSS") / 1024, status_of(pid, "VmHWM") / 1024))


def measure_change(served, clients, members, items, owners):
    """Moves one item to the member after its owner, as those two would."""
    stream = Stream(served)
    item, before = items // 2, owners[items // 2]
    after = (before + 1) % members
    owners[item] = after
    began, told = time.monotonic(), 0
    write_plan(clients[0], 8, members, items, owners)
    owner, taker = clients[before % SESSIONS], clients[after % SESSIONS]
    transaction = taker.transaction()
    transaction.create(place_of(item, after), b"worker-%04d" % after, ephemeral=True)
    transaction.commit()
    owner.delete(place_of(item, before))
    while told != "worker-%04d" % after:
        change = stream.next(lambda change: change.get("items"))
        told = change["items"][0]["owner"]
    print("one item that moves: %d bytes for each open page, told %.1f s after it began" %
          (stream.bytes, time.monotonic() - began))
    stream.close()


def main():
    parser = argparse.ArgumentParser(
        usage=__doc__.split("\n\n")[1][len("usage: "):], description=__doc__.split("\n\n")[2])
    parser.add_argument("--members", type=int, default=1000)
    parser.add_argument("--items", type=int, default=100000)
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    options = parser.parse_args()
    Setting.divvy, Setting.server = os.path.join(options.build, "tools", "divvy"), Server()
    clients = [KazooClient(Setting.server.plain, timeout=60) for _ in range(SESSIONS)]
    try:
        for client in clients:
            client.start()
        owners = [item % options.members for item in range(options.items)]
        make_pool(clients, options.members, options.items, owners)
        print("%d members, %d items" % (options.members, options.items))
        served = measure_start(options.items)
        measure_answers(served)
        measure_findings(served)
        measure_rest(served)
        measure_change(served, clients, options.members, options.items, owners)
        print("resident memory after that: %.1f MB" % (status_of(served.process.pid, "VmRSS") / 1024))
        served.end()
    finally:
        logging.disable()
        subprocess.run([os.path.join(ROOT, "tools", "zookeeper-local"), "stop", Setting.server.folder], check=False,
                       stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)  # without waiting for sessions whose server is gone
