#!/usr/bin/python3
"""`divvy partition` that tells loads, and pauses poisonous items. SPDX-License-Identifier: Apache-2.0

usage: test_command_balance.py BUILD_FOLDER [TEST...]     a TEST is a name such as LoadCommand.test_once
"""
import json
import os

from kazoo.recipe.partitioner import SetPartitioner

from command_harness import NOWHERE, Setting, alive, children, main, wait_for
from partition_harness import run
from supervise_harness import Case

UNREACHABLE = ["partition", "--connect", NOWHERE, "--path", "/q", "--item", "a"]


class Usage(Case):
    # Each wrong value has its own message, which says what would be right; nothing is begun.
    def test_options(self):
        command = ["--", "true"]
        rows = (
            (["--balance", "ram", *command], '"ram" is not one of cpu'),
            (["--balance", "cpu"], "--balance cpu measures a command"),
            (["--balance", "cpu", "--load-command", "x", *command], "not both"),
            (["--balance", "cpu", "--load-unit", "x", *command], "--balance cpu measures cores"),
            (["--load-command", ""], "cannot be empty"),
            (["--load-command", "x", "--load-interval", "0"], '"0" is out of range; it may be 1000ms to 1h'),
            (["--load-command", "x", "--load-unit", "Messages"], '"Messages" is no unit; give 1 to 16 of a-z'),
            (["--load-command", "x", "--load-floor", "-1"], '"-1" is no load; give a number from 0 up'),
            (["--load-command", "x", "--load-floor", "nan"], '"nan" is no load'),
            (["--load-interval", "10s"], "give --balance cpu or --load-command, too"),
            (["--load-floor", "1"], "give --balance cpu or --load-command, too"),
            (["--load-unit", "x"], "give --load-command, too"),
            (["--tags", "a b"], 'a tag of "a b" is none: it has 1 to 64 of'),
            (["--tags", "a,,b"], 'a tag of "a,,b" is none'),
            (["--tags", ""], "there is no tag in it"),
            (["--cap", "-1"], '"-1" is not a number from 1 to'),
            (["--min-members", "0"], '"0" is not a number from 1 to 10000'),
            (["--min-members-wait", "1s"], "--min-members-wait is for --min-members"),
            (["--quarantine", "0/10m", *command], '"0/10m": an item can be paused after 1 to 1000 failures'),
            (["--quarantine", "1001/10m", *command], "after 1 to 1000 failures"),
            (["--quarantine", "5", *command], '"5" is no N/DURATION; give how many failures within which time'),
            (["--quarantine", "-5/10m", *command], "is no N/DURATION"),
            (["--quarantine", "5/", *command], "what stands behind / is no duration; give a number with ms"),
            (["--quarantine", "5/0", *command], "the duration may be 1ms to 24h"),
            (["--quarantine", "5/25h", *command], "the duration may be 1ms to 24h"),
            (["--quarantine", "5/10m"], "--quarantine is for a command"),
            (["--tags", "a", "--assign", "rendezvous"], "--tags needs a pool that follows a plan"),
        )
        for words, fragment in rows:
            with self.subTest(words):
                done = run(*UNREACHABLE, *words)
                self.assertEqual((done.returncode, done.stdout), (2, ""), done)
                self.assertRegex(done.stderr, r"\Adivvy: [^\n]*\(see: divvy help partition\)\n\Z")
                self.assertIn(fragment, done.stderr)


class LoadCommand(Case):
    def member(self, script, *options, items=("a", "b c", "d"), env=None):
        """A member whose load command is `script`, with $F the folder."""
        return self.start("--load-command", script, "--load-interval", "1s", *options, items=items,
                          env={**os.environ, "F": self.folder, **(env or {})})

    def replace(self, name, content):
        """Writes a file that nobody reads before it is whole."""
        os.rename(self.write("next-" + name, content), self.file_name(name))

    # It has the names of the owned items on its input, one a line, runs again and again, and never twice at a time.
    def test_runs(self):
        member = self.member('exec 9>"$F/lock"; flock -n 9 || echo double >>"$F/log"; sort >"$F/in-$$"; '
                             'echo run >>"$F/log"; sleep 1.5; echo a 5')
        wait_for(lambda: len(self.read()) >= 3, "it has run three times", member)
        self.assertEqual(set(self.read()), {"run"})
        for name in os.listdir(self.folder):
            if name.startswith("in-"):
                self.assertEqual(self.read(name), ["a", "b c", "d"])
        self.assertEqual(member.stop(), 0)

    # Each kind of trouble is told once, with the item, what was printed, and what to do. Lines of other items, and a
    # heading, are passed over. When a run is in order again the next trouble is told again.
    def test_trouble(self):
        self.replace("say", "a abc\nb c -3\nd inf\nname messages\nother xyz\n")
        member = self.member('cat "$F/say"; echo run >>"$F/log"; exit "$(cat "$F/code" 2>/dev/null || echo 0)"')

        def pass_runs():
            count = len(self.read()) + 2 # The one that is under way may have printed before.
            wait_for(lambda: len(self.read()) > count, "it runs", member)

        def told(fragment):
            return [line for line in member.text("err").splitlines() if fragment in line]
        pass_runs()
        for fragment in ('for the item "a" the load "abc", which is no number; print ITEM NUMBER on a line',
                         'for the item "b c" the load "-3", which is negative; a load is 0 or more',
                         'for the item "d" the load "inf", which is not finite'):
            self.assertEqual(len(told(fragment)), 1, member)
        self.assertEqual(told("other"), [])
        self.replace("say", "a %s\nb c 1\n" % ("1" * 70))
        pass_runs()
        self.assertEqual(len(told('the load "%s" and more; a number has at most 64 bytes' % ("1" * 64))), 1, member)
        self.assertEqual(len(told('no line for 1 of the 3 items, such as "d"')), 1, member)
        self.replace("code", "3")
        pass_runs()
        self.assertEqual(len(told("--load-command exited with 3; the loads stay as they are")), 1, member)
        lines = len(member.text("err").splitlines())
        os.remove(self.file_name("code"))
        self.replace("say", "a 1\nb c 2\nd 3\n")
        pass_runs()
        self.assertEqual(len(member.text("err").splitlines()), lines, member)
        self.replace("say", "a abc\nb c 2\nd 3\n")
        pass_runs()
        self.assertEqual(len(told('for the item "a" the load "abc"')), 2, member)
        self.assertEqual(member.stop(), 0)

    # A run that goes on at the end is killed with all that it has started.
    def test_killed_at_the_end(self):
        member = self.member('sleep 1000 & echo $$ $! >"$F/log"; wait')
        wait_for(self.read, "it runs", member)
        pids = [int(word) for word in self.read()[0].split()]
        self.assertTrue(all(map(alive, pids)))
        self.assertEqual(member.stop(), 0)
        wait_for(lambda: not any(map(alive, pids)), "they are gone", pids)


# Uses 0.3 of a core, by children that come and go between two looks.
BURNER = """
import os, time
begun, spent = time.monotonic(), 0.0
while True:
    due = 0.3 * (time.monotonic() - begun) - spent
    if due > 0.02:
        if os.fork() == 0:
            until = time.process_time() + due
            while time.process_time() < until:
                pass
            os._exit(0)
        os.wait()
        spent += due
    time.sleep(0.01)
"""


class Cpu(Case):
    def totals(self):
        """The classes of the loads that members have reported, 4 log2(load) + 100."""
        nodes = children(self.path + "/loads")
        return [json.loads(Setting.zookeeper.get(self.path + "/loads/" + node)[0])["total"] for node in nodes]

    # Of two members one has an item whose command keeps a processor busy, and one an item whose command sleeps. Both
    # tell the pool, the one more than twice what the other one does. unit.cpu_items has what counts and what does not.
    def test_busy_and_idle(self):
        burner = self.write("burner.py", BURNER)
        script = '[ "$DIVVY_ITEM" = idle ] && exec sleep 1000; exec python3 "$1"'
        members = [self.start("--identifier", name, "--balance", "cpu", "--load-interval", "1s", "--load-floor", "0.01",
                              items=["busy", "idle"], command=["sh", "-c", script, "sh", burner])
                   for name in ("anna", "bert")]
        wait_for(lambda: len(self.totals()) == 2 and max(self.totals()) - min(self.totals()) > 4,
                 "one tells more than twice what the other one tells", *members)
        for member in members:
            self.assertEqual(member.stop(), 0)


class Rules(Case):
    ITEMS = ["a", "b", "c", "d", "e", "f"]

    def member(self, name, *options):
        return self.start("--identifier", name, *options, items=self.ITEMS, command=["sleep", "1000"])

    def all_owned(self, *members):
        return sorted(item for member in members for item in member.owned()) == self.ITEMS

    # A member takes no more items than its cap. The rest waits, and goes to a member that has room.
    def test_cap(self):
        anna = self.member("anna", "--cap", "2")
        anna.wait(lambda me: len(me.owned()) == 2, "it has as many as it takes")
        bert = self.member("bert")
        wait_for(lambda: self.all_owned(anna, bert), "all items have owners", anna, bert)
        self.assertEqual(len(anna.owned()), 2)
        for member in (anna, bert):
            self.assertEqual(member.stop(), 0)
        self.assertLessEqual(max(len(line["owned"]) for line in anna.lines if line["event"] == "items"), 2)

    # An item that needs a tag goes to a member that has it, and has no owner where nobody does.
    def test_tags(self):
        where = ["--connect", Setting.server.connect, "--path", self.path]
        anna = self.member("anna")
        wait_for(lambda: self.all_owned(anna), "it has all items", anna)
        self.assertEqual(run("need", *where, "c", "gpu").returncode, 0)
        wait_for(lambda: "c" not in anna.owned() and len(anna.owned()) == 5, "the item has no owner", anna)
        bert = self.member("bert", "--tags", "ssd,gpu")
        wait_for(lambda: self.all_owned(anna, bert), "all items have owners", anna, bert)
        self.assertIn("c", bert.owned())
        for member in (anna, bert):
            self.assertEqual(member.stop(), 0)

    # The first member waits for others before anything is dealt: it never has all items.
    def test_min_members(self):
        options = ["--min-members", "2", "--min-members-wait", "1h"]
        anna = self.member("anna", *options)
        bert = self.member("bert", *options)
        wait_for(lambda: self.all_owned(anna, bert), "all items have owners", anna, bert)
        for member in (anna, bert):
            self.assertEqual(max(len(line["owned"]) for line in member.look().lines if line["event"] == "items"), 3)
        for member in (anna, bert):
            self.assertEqual(member.stop(), 0)


class Quarantine(Case):
    # A worker that fails on one item of seven at whichever member.
    SCRIPT = 'echo "$2 $3" >>"$1/log"; [ "$2" = poison ] && { exec 2>/dev/null; %s; }; exec sleep 1000'

    def member(self, name, how="exit 3", limit="3/10m", options=()):
        items = ["a", "b", "c", "d", "e", "f", "poison"]
        command = ["/bin/bash", "-c", self.SCRIPT % how, "bash", self.folder, "{item}", name]
        return self.start("--identifier", name, "--quarantine", limit, *options, items=items, command=command)

    def starts(self):
        """The members that have started the poisonous item's command, once for each time."""
        return [line.split()[1] for line in self.read() if line.startswith("poison ")]

    def wait_paused(self, members, reason):
        def told():
            return [line for member in members for line in member.text("err").splitlines()
                    if line.startswith("divvy: warning: --quarantine: poison is paused: it " + reason)]
        wait_for(told, "one has paused it", *members)
        wait_for(lambda: not any("poison" in member.owned() for member in members), "nobody has it", *members)
        self.assertEqual(len(told()), 1)

    # The member that counts too many failures pauses the item, and no other ever starts its command: not when members
    # leave, and not when others join.
    def test_poison(self):
        members = [self.member(name) for name in ("anna", "bert", "carl")]
        self.wait_paused(members, "failed 3 times in 10 min, last: exit code 3 (to give it back: divvy resume "
                         "--path %s poison)" % self.path)
        starts = self.starts()
        self.assertEqual(len(set(starts)), 1, starts)
        self.assertGreaterEqual(len(starts), 3)
        poisoned = [member for member in members if member.of("exited", "poison")]
        self.assertEqual(len(poisoned), 1)
        self.assertEqual(poisoned[0].stop(), 0)
        members.remove(poisoned[0])
        members.append(self.member("dora"))
        def divided():
            return sorted(sum((list(member.owned()) for member in members), [])) == ["a", "b", "c", "d", "e", "f"]
        wait_for(divided, "the others divide the other items", *members)
        wait_for(lambda: all(member.owned() for member in members), "each has some", *members)
        self.assertEqual(self.starts(), starts)
        for member in members:
            self.assertEqual(member.stop(), 0)

    # What an operator sees of it: who has paused the item, and why. divvy resume gives it back, where it is worked on
    # if what it holds was mended, and counted from the beginning if not.
    def test_resume(self):
        member = self.member("anna", how='[ -e "$1/mended" ] && exec sleep 1000; exit 3', limit="2/1h")
        self.wait_paused([member], "failed 2 times in 1 h, last: exit code 3")
        where = ["--connect", Setting.server.connect, "--path", self.path]
        explained = run("explain", *where, "poison")
        self.assertRegex(" ".join(explained.stdout.split()),
                         "paused by anna since [^ ]*: failed 2 times in 1 h, last: exit code 3")
        self.assertEqual(run("resume", *where, "poison").returncode, 0)
        def is_paused_again():
            return member.text("err").count("poison is paused: it failed 2 times in 1 h") == 2
        wait_for(is_paused_again, "it is paused again", member)
        self.write("mended", "")
        count = len(member.of("started", "poison"))
        self.assertEqual(run("resume", *where, "poison").returncode, 0)
        wait_for(lambda: "poison" in member.owned(), "it is owned", member)
        wait_for(lambda: len(member.of("started", "poison")) == count + 1, "it is started once more", member)
        self.assertEqual(member.stop(), 0)

    # A signal that nobody sent from divvy is a failure as well, and is named.
    def test_signal(self):
        member = self.member("anna", how="kill -SEGV $$", limit="2/1h")
        self.wait_paused([member], "failed 2 times in 1 h, last: signal 11 (SIGSEGV)")

    # A command that ends well, or that divvy ends, has not failed.
    def test_no_failure(self):
        member = self.member("anna", how="exit 0", limit="1/1h")
        member.wait(lambda me: len(me.of("exited", "poison")) >= 3, "it has exited three times")
        other = self.member("bert", how="exit 0", limit="1/1h")
        wait_for(lambda: len(other.owned()) >= 3, "half of the items move", member, other)
        self.assertEqual(other.stop(), 0)
        self.assertEqual(member.stop(), 0)
        for one in (member, other):
            self.assertNotIn("--quarantine", one.text("err"))

    # Where names decide, an item cannot be paused: that is told once, and the command is started again as ever.
    def test_cannot_be_paused(self):
        kazoo = SetPartitioner(Setting.zookeeper, self.path, ["a", "b", "c", "d", "e", "f", "poison"], identifier="k",
                               time_boundary=0.1)
        self.addCleanup(kazoo.finish)
        member = self.member("anna", limit="1/1h")

        def has_failed(): # Of seven items the round robin gives the last one to anna, who is the first by name.
            if kazoo.allocating:
                kazoo.wait_for_acquire(0.05)
            elif kazoo.release:
                kazoo.release_set()
            return kazoo.acquired and len(member.of("exited", "poison")) >= 5
        wait_for(has_failed, "it fails again and again", member)
        told = [line for line in member.text("err").splitlines() if "--quarantine" in line]
        self.assertEqual(len(told), 1, member)
        self.assertIn("poison cannot be paused, and is tried again when it fails again", told[0])
        self.assertRegex(told[0], "follows no plan: its member k is kazoo's; end it, .*; it failed 1 time in 1 h, "
                         "last: exit code 3")


if __name__ == "__main__":
    main(__file__)
