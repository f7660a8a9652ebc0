#!/usr/bin/python3
"""Access lists that an operator sets on a pool's nodes. SPDX-License-Identifier: Apache-2.0

Shows that members leave them as they are, and which node a command may not read.

usage: test_command_access.py BUILD_FOLDER [TEST...]     a TEST is a name such as Access.test_kept
"""
from kazoo.security import make_digest_acl

from command_harness import Setting, children, main
from look_harness import run
from partition_harness import Case, ITEMS, Member, wait_divided


class Access(Case):
    def start_and_kill(self):
        """Divides the pool, and kills its only member, whose directories stay. Returns when each was made."""
        member = Member(self.path, "--time-boundary", "100ms")
        wait_divided([member])
        made = self.made()
        member.kill()
        for parent in ["party", "notes"] + ["locks/" + item for item in ITEMS]:  # as the end of its session does
            for child in children("%s/%s" % (self.path, parent)):
                Setting.zookeeper.delete("%s/%s/%s" % (self.path, parent, child))
        return made

    def made(self):
        return {item: Setting.zookeeper.get("%s/locks/%s" % (self.path, item))[1].czxid for item in ITEMS}

    # Q11: directories that nobody is in are made again, with their maker's access list. They are not where somebody
    # has set the access list of P/locks: those below may have another one, too, and it stays.
    def test_kept(self):
        made = self.start_and_kill()
        acl = [make_digest_acl("somebody", "else", read=True), *Setting.zookeeper.get_acls(self.path + "/locks")[0]]
        for path in (self.path + "/locks", "%s/locks/%s" % (self.path, ITEMS[0])):
            Setting.zookeeper.set_acls(path, acl)
        self.assertEqual(self.start_and_kill(), made)
        self.assertEqual(Setting.zookeeper.get_acls("%s/locks/%s" % (self.path, ITEMS[0]))[0], acl)

    # The same where nobody has set it, so that the test above can fail.
    def test_made_again(self):
        made = self.start_and_kill()
        again = self.start_and_kill()
        self.assertTrue(all(again[item] > made[item] for item in ITEMS))

    # A command that may not read the plan names its node.
    def test_plan_denied(self):
        for name in ("party", "locks", "plan"):
            Setting.zookeeper.create(f"{self.path}/{name}", makepath=True)
        Setting.zookeeper.set_acls(self.path + "/plan", [make_digest_acl("somebody", "else", all=True)])
        done = run("history", "--path", self.path)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, f"^divvy: [^ ]*{self.path}/plan cannot be read: .*access list")


if __name__ == "__main__":
    main(__file__)
