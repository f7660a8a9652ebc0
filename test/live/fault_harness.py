"""Pools with a fault put into them, for what is to name it. SPDX-License-Identifier: Apache-2.0"""
import os
import shlex
import subprocess

from kazoo.security import READ_ACL_UNSAFE

from command_harness import ZOOKEEPER_LOCAL, Setting, wait_for
from look_harness import Case, command, plan_text

ITEM_COUNT = int(os.environ.get("DIVVY_FAULTS_ITEMS", "60"))
ITEMS = ["item-%05d" % number for number in range(ITEM_COUNT)]
MEMBERS = ("alpha", "beta", "gamma")
TLS = "DIVVY_TEST_TLS" in os.environ  # the servers list clients of one kind only


class Ensemble:
    """Three servers, which end with this process."""

    def __init__(self):
        start = [ZOOKEEPER_LOCAL, "start", "--servers", "3", "--parent", str(os.getpid())]
        if TLS:
            start += ["--tls-files", os.environ["DIVVY_TEST_TLS"]]
        lines = subprocess.run(start, check=True, text=True, stdout=subprocess.PIPE).stdout.splitlines()
        values = dict(shlex.split(line)[0].split("=", 1) for line in lines)
        self.connect, self.folder = values["DIVVY_CONNECT"], values["ZOOKEEPER_LOCAL_DIR"]
        self.plain = values.get("ZOOKEEPER_LOCAL_PLAIN", self.connect)

    def do(self, verb, *arguments):
        subprocess.run([ZOOKEEPER_LOCAL, verb, self.folder, *arguments], check=True, stdout=subprocess.DEVNULL)


class FaultyPool(Case):
    def pool(self, owners=None, members=MEMBERS, live=None, static=()):
        """A pool of ITEMS that is well: all are owned by whom the plan gives them to. `static` ones may be away."""
        owners = owners or "".join(str(number % len(members)) for number in range(ITEM_COUNT))
        live = set(members) if live is None else live
        self.members = tuple((name, name in static) for name in members)
        self.clients = self.make_pool(live, self.members, ITEMS, owners)
        locks = self.path + "/locks"
        Setting.zookeeper.ensure_path(locks)
        self.in_multis(Setting.zookeeper, [(locks + "/" + item, b"", False) for item in ITEMS])
        for number, name in enumerate(members):
            mine = [item for item, owner in zip(ITEMS, owners) if owner == str(number)]
            if name in live:
                places = [(self.place(item, number + 1), name.encode(), True) for item in mine]
                self.in_multis(self.clients[name], places)
        return self.clients

    def in_multis(self, client, nodes):
        for first in range(0, len(nodes), 500):
            transaction = client.transaction()
            for path, data, ephemeral in nodes[first:first + 500]:
                transaction.create(path, data, ephemeral=ephemeral)
            self.assertFalse([result for result in transaction.commit() if isinstance(result, Exception)])

    def place(self, item, owner, number=1):
        """The path of a place in the queue, as a member's client names it (docs/protocol.md, N5)."""
        return "%s/locks/%s/0000000000%d00000000000%d__lock__%010d" % (self.path, item, owner, number, number)

    def node(self, name):
        nodes = Setting.zookeeper.get_children(self.path + "/party")
        return self.path + "/party/" + next(node for node in nodes if node.endswith("-" + name))

    def join(self, name, number=7, tags="a=2,s=00000000", data=b"{}"):
        client = self.client()
        node = "%s/party/0000000000%d000000000001,%s-%s" % (self.path, number, tags, name)
        client.create(node, data, ephemeral=True)
        return client

    def set_plan(self, owners, **changes):
        node = "0000000000%d000000000001,a=2,s=00000000-%s"
        members = [{"slot": slot, "key": node % (slot + 1, name), "static": 0, "weight": 1000, "zone": "",
                    "rejoin_delay_ms": 0, "absent": "0", "leaving": ""}
                   for slot, (name, _) in enumerate(self.members)]
        Setting.zookeeper.set(self.path + "/plan", plan_text(ITEMS, members, owners))

    # ---- faults ----

    def ask_for_an_item(self):
        """Has the plan give the first item, which its owner does not release, to another."""
        self.set_plan("1" + "".join(str(number % 3) for number in range(1, ITEM_COUNT)))

    def close_plan(self):
        """Takes the right to write the plan from all."""
        Setting.zookeeper.set_acls(self.path + "/plan", READ_ACL_UNSAFE)

    def member(self, *options):
        """A real member beside the others. It gets nothing, as those release nothing."""
        self.pool()
        items = self.file("".join(item + "\n" for item in ITEMS))
        words = command("partition", "--path", self.path, "--identifier", "worker-1", "--items-from", items, *options)
        member = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL)
        self.addCleanup(member.wait)
        self.addCleanup(member.kill)
        wait_for(lambda: len(Setting.zookeeper.get_children(self.path + "/party")) == 4, "it is in the party")
        return member

    def member_node_gone(self, member):
        node = self.node("worker-1")
        return lambda: member.poll() is not None or not Setting.zookeeper.exists(node)
