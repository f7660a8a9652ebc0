#!/usr/bin/python3
"""kazoo's SetPartitioner comes and goes in the middle of divvy's handovers. SPDX-License-Identifier: Apache-2.0

usage: test_handover.py BUILD_FOLDER [WORD...]      with words: only the tests whose names contain one of them

divvy's members run a command for each item that stands by (--standby). It is ready when the file `gate` is there, so a
handover lasts for as long as a test wants. Nothing here ends by a timeout: a handover may last for ten minutes.
"""
import os
import stat
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # the checkout stays as it is
import harness  # noqa: E402
from harness import DEADLINE_S, check  # noqa: E402
from test_mixed_pool import settle_by_plan  # noqa: E402

ITEMS = ["q%02d" % number for number in range(12)]

# Begins an item's work when it has the token, and has the item's file locked from then on: so a second one is found out
# by the kernel.
WORKER = r"""#!/bin/bash
exec 9>>"$1/$2.lock"
until [[ -e $1/gate ]]; do read -r -t 0.05 8<> <(:) <&8; done
/usr/bin/python3 "$1/ready"
read -r token <&"$DIVVY_START_FD" || exit 0
flock -n 9 || echo "$2 $token" >>"$1/double"
trap 'exit 0' TERM
exec 7<> <(:)
while :; do read -r -t 0.2 -u 7; done
"""

READY = r"""import os, socket
name = os.environ["NOTIFY_SOCKET"]
socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"READY=1\n", name.replace("@", "\0", 1))
"""


class Standbys:
    """A pool whose divvy members have commands that stand by."""

    def __init__(self, world, path, folder):
        self.pool, self.folder = world.pool(path, ITEMS), folder
        self.gate = os.path.join(folder, "gate")
        self.worker = self.write("worker", WORKER)
        self.write("ready", READY)
        self.open()

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, stat.S_IRWXU)
        return path

    def open(self):
        """From now on commands get ready."""
        with open(self.gate, "w", encoding="utf-8"):
            pass

    def close(self):
        os.unlink(self.gate)

    def start(self, identifier):
        return self.pool.divvy(identifier, "--standby", "--handover-timeout", "10m", "--events", "-", "--",
                               self.worker, self.folder, "{item}")

    def divvys(self):
        return [member for member in self.pool.members if member.kind == "divvy"]

    def going(self):
        return sorted(item for member in self.divvys() for item in member.leaving)

    def coming(self):
        return sorted(item for member in self.divvys() for item in member.coming)

    def wait(self, met, what):
        held = self.pool.reader.wait(lambda: self.pool.has_trouble() or met(), DEADLINE_S)
        self.pool.check_no_trouble()
        check(held, "%s: in vain; leaving %s, coming %s\n%s", what, self.going(), self.coming(),
              self.pool.describe({}))

    def wait_handover(self, count=None):
        """In the middle: items are leaving, and their next owners prepare, also for what a kazoo member had.
        Each owner says by itself what leaves; `count` is how many items do when all have."""
        self.wait(lambda: self.going() and count in (None, len(self.going())) and
                  set(self.going()) <= set(self.coming()), "items are handed over")
        return self.going()

    def check_sound(self):
        self.pool.check_no_trouble()
        double = os.path.join(self.folder, "double")
        check(not os.path.exists(double), "two commands worked on one item")

    def finish(self):
        """Handovers go on, to their end: all is owned as the plan says, and nothing is on its way."""
        self.open()
        settle_by_plan(self.pool)
        self.wait(lambda: not self.going() and not self.coming(), "nothing is handed over")
        self.check_sound()


def in_folder(test):
    """Gives a test a folder of its own, which outlives its members."""
    def run(world):
        folder = tempfile.mkdtemp(prefix="divvy-handover-")
        try:
            test(world, folder)
        finally:
            for pool in world.pools:
                pool.close()
            subprocess.run(["rm", "-rf", "--", folder], check=True)
    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


def begin_handover(standbys, identifier):
    """A new member comes, whose commands do not get ready. Until they are, all items stay where they are."""
    pool = standbys.pool
    before = {member: set(member.owned) for member in pool.members}
    standbys.close()
    next_owner = standbys.start(identifier)
    moving = standbys.wait_handover(len(ITEMS) // len(pool.members))
    check(sorted(next_owner.coming) == moving, "they move: %s", moving)
    check(all(member.owned == items for member, items in before.items()),
          "an item went before its next owner was ready")
    return next_owner


def give_up(standbys, next_owner):
    """A kazoo member comes: names decide, and nobody leaves or prepares for anything."""
    pool = standbys.pool
    kazoo = pool.kazoo("kazoo-of-%s" % next_owner.identifier)
    pool.settle(pool.kazoo_split())
    standbys.wait(lambda: not standbys.going() and not standbys.coming(), "all handovers are given up")
    standbys.check_sound()
    return kazoo


@in_folder
def test_comes_and_goes(world, folder):
    """A kazoo member joins while items are leaving and their next owner prepares: all give up, and names decide. It
    leaves, or is killed: handovers go on, by the plan. No item has two owners, and in the end each has one."""
    standbys = Standbys(world, "/handover", folder)
    pool = standbys.pool
    for name in ("divvy-a", "divvy-b"):
        standbys.start(name)
    standbys.finish()
    for number, go in enumerate((pool.leave, pool.kill)):
        next_owner = begin_handover(standbys, "next-%d" % number)
        go(give_up(standbys, next_owner))
        next_owners = {item: member for item in standbys.wait_handover() for member in standbys.divvys()
                       if item in member.coming}
        begun = {item: member.commands.count(("begun", item)) for item, member in next_owners.items()}
        standbys.finish()
        for item, member in next_owners.items():
            check(item in member.owned, "%s has not got %s, for which it stood by", member, item)
            standbys.wait(lambda item=item, member=member: member.commands.count(("begun", item)) > begun[item],
                          "the command of %s that stood by is to begin" % item)
        pool.leave(next_owner)
        standbys.finish()


@in_folder
def test_comes_and_goes_at_once(world, folder):
    """The same where the kazoo member leaves as soon as somebody has given up a handover because of it."""
    standbys = Standbys(world, "/handover-at-once", folder)
    pool = standbys.pool
    for name in ("divvy-a", "divvy-b"):
        standbys.start(name)
    standbys.finish()
    for number in range(3):
        next_owner = begin_handover(standbys, "next-%d" % number)
        moving = standbys.going()
        kazoo = pool.kazoo("kazoo-%d" % number)
        standbys.wait(lambda moving=moving: standbys.going() != moving or standbys.coming() != moving,
                      "a handover is given up")
        pool.leave(kazoo)
        standbys.finish()
        pool.leave(next_owner)
        standbys.finish()


def main():
    if len(sys.argv) < 2:
        sys.exit("usage: test_handover.py BUILD_FOLDER [WORD...]")
    tests = [test for name, test in sorted(globals().items()) if name.startswith("test_") and callable(test)]
    words = sys.argv[2:]
    tests = [test for test in tests if not words or any(word in test.__name__ for word in words)]
    sys.exit(harness.run(tests, os.path.abspath(sys.argv[1])))


if __name__ == "__main__":
    main()
