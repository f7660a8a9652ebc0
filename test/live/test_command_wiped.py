#!/usr/bin/python3
"""`divvy partition` on servers that lose their data. SPDX-License-Identifier: Apache-2.0

Shows servers that lose their data, or get old data back.

usage: test_command_wiped.py BUILD_FOLDER [TEST...]     a TEST is a name such as Wiped.test_wiped
"""
import shutil

from command_harness import Server, main, wait_for
from kazoo.client import KazooClient
from partition_harness import Case, Member

ITEMS = ["item-%03d" % number for number in range(60)]
WARNING = "divvy: warning: tokens have fallen: "


class Wiped(Case):
    def setUp(self):
        super().setUp()
        self.server = Server()
        self.addCleanup(self.server.do, "stop")
        self.data = self.server.folder + "/1/data/version-2"
        self.members = []

    def use_up(self, count=1000):
        """Makes transactions, so that the tokens of now are above those that follow."""
        client = KazooClient(self.server.plain)
        client.start()
        client.ensure_path("/used")
        for answer in [client.set_async("/used", b"") for _ in range(count)]:
            answer.get()
        client.stop()
        client.close()

    def owned(self):
        return sorted(item for member in self.members for item in member.ledger.owned)

    def tokens(self):
        return {item: int(token) for member in self.members for item, token in member.ledger.tokens.items()}

    def start(self):
        self.members += [Member(self.path, "--identifier", name, "--session-timeout", "2s", "--rejoin",
                                items=ITEMS, connect=self.server.connect) for name in ("m1", "m2")]
        wait_for(lambda: self.owned() == ITEMS and all(len(m.ledger.owned) == 30 for m in self.members),
                 "all are owned", *self.members)

    def warnings(self):
        return [[line for line in member.errors.splitlines() if line.startswith(WARNING)] for member in self.members]

    def lose(self, replace):
        """Replaces the server's data. All is owned again, under lower tokens, and each member has said so once."""
        self.assertEqual(self.warnings(), [[], []])
        before = self.tokens()
        self.server.do("kill", "1")
        wait_for(lambda: not self.owned(), "all sessions are over", *self.members)
        shutil.rmtree(self.data)
        replace()
        self.server.do("restart", "1")
        wait_for(lambda: self.owned() == ITEMS and all(len(m.ledger.owned) == 30 for m in self.members),
                 "all are owned again", *self.members)
        after = self.tokens()
        self.assertTrue(all(after[item] < before[item] for item in ITEMS), (before, after))
        wait_for(lambda: [len(lines) for lines in self.warnings()] == [1, 1], "the warnings", *self.members)

    # Empty folders: the pool begins from scratch, and each member says once what that means for tokens, and where it
    # stands what to do. It works on as always.
    def test_wiped(self):
        self.use_up()
        self.start()
        self.lose(lambda: None)
        for lines in self.warnings():
            self.assertRegex(lines[0], r"is of the transaction \d+, and this client has seen \d+ before")
            self.assertIn("stop them all, raise the era, start them again (docs/fencing.md", lines[0])

    # A backup of before, with the pool's plan and directories of then.
    def test_restored(self):
        self.start()
        backup = self.folder.name + "/backup"
        self.server.do("kill", "1")
        shutil.copytree(self.data, backup)
        self.server.do("restart", "1")
        self.use_up()
        for member in self.members:
            member.stop()
        self.members.clear()
        self.start()
        self.lose(lambda: shutil.copytree(backup, self.data))


if __name__ == "__main__":
    main(__file__)
