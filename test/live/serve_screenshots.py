#!/usr/bin/python3
"""Pictures of divvy serve's page: of the quiet and of the bad hour, by day and by night, wide and narrow.
SPDX-License-Identifier: Apache-2.0

usage: serve_screenshots.py BUILD_FOLDER FOLDER

Starts a private ZooKeeper and a pool of members at work, and writes into FOLDER eight pictures: quiet-wide-light.png,
bad-narrow-dark.png and so on. In the bad hour one member is frozen, one does not let an item go, one that is static is
away, and the access list of a queue keeps all out. That takes a minute. live.command_serve_browser_faults does the
same; docs/serve-light.png and docs/serve-dark.png are bad-wide-light.png and bad-wide-dark.png.
"""
import os
import signal
import sys

from kazoo.client import KazooClient
from kazoo.exceptions import NotEmptyError
from kazoo.security import OPEN_ACL_UNSAFE, make_acl

from browser_harness import Browser
from command_harness import Server, Setting, fire, wait_for
from look_harness import CommandMember, DivvyMember
from serve_harness import Serve

ROOT = "/shop"
POOL = ROOT + "/orders"
SIZES = {"wide": (1280, 1000), "narrow": (390, 844)}
SCHEMES = ("light", "dark")
ITEMS = ["%s.%s" % (topic, region) for topic in ("invoices", "orders", "payments", "refunds", "returns")
         for region in ("africa", "america", "asia", "australia", "europe", "iceland")]
CLOSED = "%s/locks/%s" % (POOL, ITEMS[7])
STUBBORN = ("sh", "-c", "trap '' TERM; while :; do sleep 1; done")
SILENT = "60s"  # a frozen member is named after half of its session timeout
WRONG = ("acl", "absent", "release", "silent")  # what the doctor finds in the bad hour
WRONG_FIRST = "nobody may create below it"


class Hour:
    """A pool whose members are named the same each time, and its page."""

    def __init__(self, browser):
        self.browser, self.members, self.served = browser, [], None

    def start(self, kind, name, *options, **more):
        self.members.append(kind(POOL, name, ITEMS, *options, **more))
        return self.members[-1]

    def wait(self, what, **figures):
        wait_for(lambda: {key: self.served.pool()[key] for key in figures} == figures, what, self.served.pool())

    def make_quiet(self):
        """Five members that came one after the other. All items have their owner, and had one from the beginning."""
        first = self.start(DivvyMember, "worker-1", "--session-timeout", SILENT)
        wait_for(lambda: len(first.owned) == len(ITEMS), "the first member")
        self.served = Serve("--path", POOL, "--root", ROOT + "/locks-of-all")
        for number in (2, 3):
            self.start(DivvyMember, "worker-%d" % number, "--session-timeout", SILENT)
            self.wait("a member more", members=number, least=len(ITEMS) // number, most=len(ITEMS) // number)
        self.away = self.start(DivvyMember, "worker-4", "--rejoin-delay", "10m")
        self.start(CommandMember, "worker-5", "--drain", "10m", "--handover-timeout", "0", work=STUBBORN)
        self.wait("five members", members=5, least=6, most=6)

    def make_bad(self):
        """A sixth member waits for the stubborn one; one is frozen, one is away, and one queue is closed."""
        self.start(DivvyMember, "worker-6", "--session-timeout", SILENT)
        wait_for(lambda: self.served.pool()["moving"] == 1, "an item that is held back", self.served.pool())
        self.away.process.kill()
        self.wait("the member that is away", members=5)
        Setting.zookeeper.set_acls(CLOSED, [make_acl("world", "anyone", read=True, admin=True)])
        fire(signal.SIGSTOP, self.members[1].process.pid)

    def open(self):
        self.browser.open("about:blank")
        self.browser.open(self.served.url + "#items&range=all")

    def wait_shown(self, part, text):
        """Waits until a part of the page has that text."""
        self.browser.wait_for("document.querySelector('#%s').innerText.includes('%s')" % (part, text), text)

    def look_quiet(self):
        self.wait_shown("findings", "Nothing is wrong")
        self.wait_shown("holdups", "Nobody")
        self.wait_shown("changes", "join")
        self.wait_shown("summary", "Members")

    def find_bad(self):
        """Waits until all that is wrong can be found, as it lasts long enough."""
        def found():
            told[:] = [finding["check"] for finding in self.served.json("/findings")["findings"]
                       if finding["level"] in ("error", "warning")]
            return set(told) >= set(WRONG)
        told = []
        wait_for(found, "what is wrong", told)

    def look_bad(self):
        self.wait_shown("findings", WRONG_FIRST)
        self.wait_shown("holdups", "worker-5")
        self.wait_shown("changes", "join")
        self.wait_shown("summary", "Members")

    def end(self):
        for member in self.members:
            fire(signal.SIGCONT, member.process.pid)
            fire(signal.SIGKILL, member.process.pid)
            member.stop()
        if self.served:
            self.served.end()
        Setting.zookeeper.set_acls(CLOSED, OPEN_ACL_UNSAFE)
        wait_for(self.is_deleted, "what stands below %s goes" % ROOT)

    @staticmethod
    def is_deleted():
        """Deletes the pool. What a member had sent when it was killed may arrive in between."""
        try:
            Setting.zookeeper.delete(ROOT, recursive=True)
        except NotEmptyError:
            return False
        return True


def take(hour, name, look):
    """Pictures of the page as it is now: yields each one's name, its size and its bytes."""
    for scheme in SCHEMES:
        hour.browser.prefer(scheme)
        for size, (width, height) in SIZES.items():
            hour.browser.resize(width, height)
            hour.open()
            look()
            yield "%s-%s-%s.png" % (name, size, scheme), (width, height), hour.browser.screenshot()


def take_all(hour):
    """The eight pictures."""
    hour.make_quiet()
    yield from take(hour, "quiet", hour.look_quiet)
    hour.make_bad()
    hour.find_bad()
    yield from take(hour, "bad", hour.look_bad)


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: serve_screenshots.py BUILD_FOLDER FOLDER")
    Setting.divvy = os.path.join(os.path.abspath(sys.argv[1]), "tools", "divvy")
    Setting.server = Server()
    Setting.zookeeper = KazooClient(Setting.server.plain)
    Setting.zookeeper.start()
    browser = Browser()
    hour = Hour(browser)
    try:
        for name, _, picture in take_all(hour):
            with open(os.path.join(sys.argv[2], name), "wb") as file:
                file.write(picture)
            print(name, len(picture))
    finally:
        hour.end()
        browser.close()
        Setting.zookeeper.stop()
        Setting.server.do("stop")


if __name__ == "__main__":
    main()
