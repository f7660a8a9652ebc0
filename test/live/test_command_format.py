#!/usr/bin/python3
"""`--format` of the looking subcommands. SPDX-License-Identifier: Apache-2.0

Shows the fields of --format, as the shell gets them.

usage: test_command_format.py BUILD_FOLDER [TEST...]     a TEST is a name such as Format.test_status
"""
import json

from command_harness import NOWHERE, main, wait_for
from look_harness import Case, DivvyMember, run

ODD = "line\nbreak\ttab"


class Format(Case):
    def lines(self, *arguments, template):
        done = run(*arguments, "--format", template)
        self.assertEqual((done.returncode, done.stderr), (0, ""), arguments)
        return done.stdout.splitlines()

    def pool(self, items):
        member = DivvyMember(self.path, "one", items)
        self.addCleanup(member.stop)
        wait_for(lambda: member.acquired() and len(member.owned) == len(items), "it owns all")
        return member

    # A line for each item, with the values that --json has; no name breaks a line, and none is encoded twice.
    def test_status(self):
        items = ["a", "50%25", "q 1", ODD]
        member = self.pool(items)
        got = self.lines("status", "--path", self.path, template=r"{item}\t{owner}\t{token}\t{in_party}\t{waiting}")
        named = {ODD: "line%0Abreak%09tab"}
        self.assertEqual(got, ["%s\tone\t%s\ttrue\t0" % (named.get(item, item), member.tokens[item])
                               for item in sorted(items)])
        # What is not there is a dash, and a newline of the template is not doubled.
        got = self.lines("status", "--path", self.path, "--item", "free", "--item", "a", template="{item} {token}\\n")
        self.assertIn("free -", got)
        self.assertEqual(len(got), 5)

    # Fields of members make a line for each member; braces and a backslash are doubled.
    def test_members(self):
        self.pool(["a", "b"])
        self.assertEqual(self.lines("status", "--path", self.path, template=r"{{{identifier}}}\\{items}"),
                         [r"{one}\2"])

    # One line about an item, with fields of its plan.
    def test_explain(self):
        self.pool(["a"])
        seen = self.shown("explain", "--path", self.path, "a")
        self.assertEqual(self.lines("explain", "--path", self.path, "a",
                                    template="{item} {state} {owner} {plan.owner} {plan.generation}"),
                         ["a settled one one %d" % seen["plan"]["generation"]])
        queue = self.lines("explain", "--path", self.path, "a", template="{queue}")[0]
        self.assertEqual([place["member"] for place in json.loads(queue)], ["one"])

    # A line for each change, with fields of who came.
    def test_history(self):
        self.pool(["a"])
        got = self.lines("history", "--path", self.path, template="{reason} {joined.count} {joined.names} {left.count}")
        self.assertEqual(got, ['create 1 ["one"] 0'])

    # Locks and semaphores; the places of one by its name.
    def test_locks(self):
        root = ["--root", self.path]
        self.assertEqual(self.lines("locks", *root, template="{name}"), [])
        lock = self.client().Lock(self.path + "/locks/deploy", "me")
        lock.acquire()
        semaphore = self.client().Semaphore(self.path + "/semaphores/web", "us", 3)
        semaphore.acquire()
        self.assertEqual(sorted(self.lines("locks", *root, template="{name} {kind} {limit} {held}")),
                         ["deploy lock - 1", "web semaphore 3 1"])
        self.assertEqual(self.lines("locks", "deploy", *root, template="{state} {identifier} {kind} {host}"),
                         ["holds me exclusive -"])

    # Services, with what their entries say, whatever that is.
    def test_services(self):
        entry = {"role": "web", "id": "one", "load": 0.25, "ttl": 60, "port": 80, "x": {"y": "a\tb", "z": [1, None]}}
        self.make(self.path + "/services/web/one", json.dumps(entry).encode())
        self.assertEqual(self.lines("services", "--root", self.path,
                                    template="{id} {load} {ttl} {entry.port} {entry.x.y} {entry.x.z} {entry.none}"),
                         ["one 0.25 60 80 a%09b [1,null] -"])

    # A mistake is told before any server is asked.
    def test_misused(self):
        for subcommand, template, fragment in (
                (["status", "--path", "/p"], "{onwer}", "there is no field {onwer}"),
                (["status", "--path", "/p"], "{onwer}", "did you mean owner?"),
                (["status", "--path", "/p"], "{item}{identifier}", "{identifier} is no field of items"),
                (["status", "--path", "/p"], "{item", "is no field; write it as {owner}"),
                (["status", "--path", "/p"], "{}", "is no field; write it as {owner}"),
                (["status", "--path", "/p"], "x}", "neither a field"), (["status", "--path", "/p"], r"\x", "neither"),
                (["status", "--path", "/p"], "x\\", "neither"),
                (["locks", "name"], "{limit}", "there is no field {limit}"),
                (["locks"], "{token}", "there is no field {token}"),
                (["services"], "{entry.}", "there is no field {entry.}"),
                (["history", "--path", "/p"], "{move}", "did you mean moved?"),
                (["explain", "--path", "/p", "x"], "{nxt}", "did you mean next?")):
            self.assert_fails(2, [*subcommand, "--format", template], fragment, connect=NOWHERE)
        for subcommand in (["status", "--path", "/p"], ["locks"], ["services"], ["history", "--path", "/p"],
                           ["explain", "--path", "/p", "x"]):
            self.assert_fails(2, [*subcommand, "--json", "--format", "x"], "give --json or --format, not both",
                              connect=NOWHERE)


if __name__ == "__main__":
    main(__file__)
