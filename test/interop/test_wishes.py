#!/usr/bin/python3
"""What an operator asks of a pool that a kazoo process joins and leaves. SPDX-License-Identifier: Apache-2.0

usage: test_wishes.py BUILD_FOLDER
"""
import subprocess
import sys

sys.dont_write_bytecode = True  # the checkout stays as it is
import harness  # noqa: E402
from harness import check  # noqa: E402
from test_mixed_pool import QUEUES, settle_by_plan  # noqa: E402


def operate(world, pool, *words):
    """Has an operator ask for something. Returns the exit code and what the command said on standard error."""
    command = [world.command(), words[0], "--connect", world.hosts, "--path", pool.path, *words[1:]]
    ended = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    return ended.returncode, ended.stderr


def test_wishes_wait(world):
    """An operator pins an item and pauses another. While a kazoo member is in the pool names decide: it and all others
    get what kazoo's rule gives, the operator is refused with the cause, and status says that the wishes wait. When it
    has left, the wishes are in force again."""
    pool = world.pool("/wishes", QUEUES)
    members = [pool.divvy("divvy-%d" % number) for number in range(3)]
    settle_by_plan(pool)
    pinned, paused = QUEUES[0], QUEUES[1]
    home = next(member for member in members if pinned not in member.owned)
    check(operate(world, pool, "pin", "--wait", pinned, home.identifier)[0] == 0, "the pin failed")
    check(operate(world, pool, "pause", "--wait", paused)[0] == 0, "the pause failed")

    def in_force():
        """Each item but the paused one is owned once, the pinned one at home."""
        pool.items = [item for item in QUEUES if item != paused]
        pool.settle_owned(lambda: pinned in home.owned)

    in_force()
    for _ in range(2):
        pool.items = QUEUES
        kazoo = pool.kazoo("kazoo")
        pool.settle(pool.kazoo_split())
        code, said = operate(world, pool, "unpin", pinned)
        check(code == 1 and "its member kazoo is kazoo's" in said, "unpin exits with %s: %s", code, said)
        shown = subprocess.run([world.command(), "status", "--connect", world.hosts, "--path", pool.path], check=True,
                               stdout=subprocess.PIPE, text=True).stdout
        check("wishes wait" in shown, "status does not tell that wishes wait:\n%s", shown)
        pool.leave(kazoo)
        in_force()
    check(operate(world, pool, "resume", "--wait", paused)[0] == 0, "the resumption failed")
    check(operate(world, pool, "unpin", pinned)[0] == 0, "the end of the pin failed")
    pool.items = QUEUES
    settle_by_plan(pool)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    return harness.run([test_wishes_wait], sys.argv[1])


if __name__ == "__main__":
    sys.exit(main())
