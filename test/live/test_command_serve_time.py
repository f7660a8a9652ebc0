#!/usr/bin/python3
"""What divvy serve remembers: who owned what when, and how many items were where. SPDX-License-Identifier: Apache-2.0

usage: test_command_serve_time.py BUILD_FOLDER [TEST...]     a TEST is a name such as Past.test_items_at
"""
from command_harness import Server, Setting, main, wait_for
from look_harness import DivvyMember, run
from serve_harness import ServeCase

POINTS_MAX, LATER = 800, 99999999999999  # serve_samples.h


class TimeCase(ServeCase):
    def events(self, served, **question):
        """The changes, the oldest first."""
        return served.rows("timeline", limit=500, **question)["rows"][::-1]

    def wait_event(self, served, kind, what, count=1):
        """Waits for a change, the `count`-th of its kind, and returns it."""
        found = []

        def is_there():
            found[:] = [e for e in self.events(served) if (e["kind"], e["what"]) == (kind, what)]
            return len(found) >= count
        wait_for(is_there, "%s of %s" % (kind, what), found)
        return found[count - 1]

    def owners(self, served, at, **question):
        return {row["item"]: row["owner"] for row in served.rows("items", at=at, **question)["rows"]}


class Past(TimeCase):
    # Who owned what at a moment is told for each moment since the first look, also of items that came or went since;
    # filters, parts and the order work as they do for now, and the answer says since when all is known.
    def test_items_at(self):
        one, two = self.member("one", 1), self.member("two", 2)
        places = {item: self.place(one, item, b"one") for item in ("a", "b", "c")}
        served = self.serve()
        self.wait_read(served, lambda pool: pool["owned"] == 3)
        began = served.rows("items", at=LATER)["oldest_ms"]
        self.assertGreaterEqual(began, served.json("/state")["started_ms"])
        one.delete(places["a"])
        lost = self.wait_event(served, "item", "a")["ms"]
        self.place(two, "a", b"two", 1)
        taken = self.wait_event(served, "item", "a", 2)["ms"]
        one.delete(places["c"])
        one.delete(self.path + "/locks/c")
        gone = self.wait_event(served, "item", "c")["ms"]
        self.place(two, "d", b"two")
        came = self.wait_event(served, "item", "d")["ms"]

        self.assertEqual(self.owners(served, began - 1), {"a": "one", "b": "one", "c": "one"})
        self.assertEqual(self.owners(served, began), {"a": "one", "b": "one", "c": "one"})
        self.assertEqual(self.owners(served, lost - 1), {"a": "one", "b": "one", "c": "one"})
        self.assertEqual(self.owners(served, lost), {"a": None, "b": "one", "c": "one"})
        self.assertEqual(self.owners(served, taken), {"a": "two", "b": "one", "c": "one"})
        self.assertEqual(self.owners(served, gone)["a"], "two")
        self.assertIsNone(self.owners(served, gone).get("c"))
        self.assertNotIn("d", self.owners(served, came - 1))
        self.wait_read(served, lambda pool: pool["items"] == 3)
        for at in (came, LATER):
            self.assertEqual(self.owners(served, at), {"a": "two", "b": "one", "d": "two"})
        self.assertEqual(self.owners(served, lost, state="unowned"), {"a": None})
        self.assertEqual(self.owners(served, lost, text="one"), {"b": "one", "c": "one"})
        self.assertEqual(self.owners(served, lost, exact="b"), {"b": "one"})
        self.assertEqual(list(self.owners(served, taken, order="newest"))[0], "a")
        self.assertEqual(list(self.owners(served, lost, offset=1, limit=1)), ["b"])
        told = served.rows("items", at=lost, limit=2)
        self.assertEqual((told["total"], told["matched"], len(told["rows"]), told["oldest_ms"]), (3, 3, 2, began))
        self.assertEqual(told["rows"][0], {"item": "a", "owner": None, "state": "unowned", "since_ms": lost})
        early, first = served.rows("items", at=1), served.rows("items", at=began)
        self.assertEqual((early["rows"], early["oldest_ms"]), (first["rows"], began))
        self.assertNotIn("oldest_ms", served.rows("items"))
        self.assertEqual(served.end(), (0, ""))

    # What is no time is refused; so are two in a wrong order, and a pool that there is not.
    def test_wrong_times(self):
        self.member("one")
        served = self.serve()
        self.wait_read(served)
        for question in ("table=items&at=x", "table=items&at=-1", "table=items&at=1.5", "table=items&at=" + "1" * 16,
                         "table=timeline&from=x", "table=timeline&to=x", "table=timeline&from=2&to=1"):
            self.assertEqual(served.ask("/rows?" + question)[0], 400, question)
        for question in ("from=x", "to=-1", "from=2&to=1", "pool=1", "pool=x", "to=" + "9" * 16):
            self.assertEqual(served.ask("/samples?" + question)[0], 400, question)
        self.assertEqual(served.ask("/samples?from=&to=&pool=")[0], 200)

    # The timeline of a time has the events of that time, both ends among them.
    def test_timeline_between(self):
        client = self.member("one")
        served = self.serve()
        self.wait_read(served, lambda pool: pool["members"] == 1)
        times = []
        for item in ("a", "b", "c"):
            self.place(client, item, b"one")
            times.append(self.wait_event(served, "item", item)["ms"])

        def items(**question):
            return [e["what"] for e in self.events(served, **question)]
        self.assertEqual(items(), ["a", "b", "c"])
        self.assertEqual(items(**{"from": times[1]}), ["b", "c"])
        self.assertEqual(items(to=times[1]), ["a", "b"])
        self.assertEqual(items(**{"from": times[1], "to": times[1]}), ["b"])
        self.assertEqual(items(**{"from": times[0] + 1, "to": times[1] - 1}), [])
        self.assertEqual(items(**{"from": times[0], "to": times[2], "text": "c"}), ["c"])
        told = served.rows("timeline", limit=1, offset=1, **{"from": times[0], "to": times[1]})
        self.assertEqual(([e["what"] for e in told["rows"]], told["matched"], told["total"]), (["a"], 2, 3))

    # An item that was paused at a moment was not without an owner by a fault: it is called so, also once it is resumed.
    def test_paused(self):
        member = DivvyMember(self.path, "one", ["x", "y"])
        self.addCleanup(member.stop)
        served = self.serve()
        self.wait_read(served, lambda pool: pool["owned"] == 2)

        def states(at):
            return {row["item"]: row["state"] for row in served.rows("items", at=at)["rows"]}

        def ask(command):
            done = run(command, "--path", self.path, "--wait", "x")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
        before = served.json("/state")["now_ms"]
        ask("pause")
        self.wait_read(served, lambda pool: pool["paused"] == 1)
        paused = served.json("/state")["now_ms"]
        self.assertEqual(states(LATER), {"x": "paused", "y": "owned"})
        ask("resume")
        self.wait_read(served, lambda pool: pool["owned"] == 2)
        self.assertEqual([states(at)["x"] for at in (before, paused, LATER)], ["owned", "paused", "owned"])
        self.assertEqual([served.rows("items", at=paused, state=state)["matched"] for state in ("paused", "unowned")],
                         [1, 0])


class Samples(TimeCase):
    # A peak stays, however short it was; what is asked for begins with what was so then. The state has no samples.
    def test_samples(self):
        client = self.member("one")
        places = [self.place(client, "item%02d" % number, b"one") for number in range(10)]
        served = self.serve()
        self.wait_read(served, lambda pool: pool["owned"] == 10)
        self.assertNotIn("samples", served.pool())
        self.assertEqual([sample[1:] for sample in served.json("/samples")["samples"]], [[10, 0, 0, 1]])
        with_all = client.transaction()
        for place in places[:7]:
            with_all.delete(place)
        with_all.commit()
        self.wait_read(served, lambda pool: pool["unowned"] == 7)
        for number in range(7):
            self.place(client, "item%02d" % number, b"one", 1)
        self.wait_read(served, lambda pool: pool["unowned"] == 0)
        samples = served.json("/samples")["samples"]
        # A look amid the changes may see a part of them.
        self.assertEqual((samples[0][1:], samples[-1][1:]), ([10, 0, 0, 1], [10, 0, 0, 1]))
        self.assertEqual([sample[0] for sample in samples], sorted({sample[0] for sample in samples}))
        self.assertLessEqual(len(samples), POINTS_MAX)
        at = max(range(len(samples)), key=lambda i: samples[i][2])
        peak_ms = samples[at][0]
        self.assertEqual(samples[at][1:], [10, 7, 0, 1])

        def asked(**question):
            return served.json("/samples?" + "&".join("%s=%d" % pair for pair in question.items()))["samples"]
        self.assertEqual(asked(**{"from": peak_ms + 1, "to": peak_ms + 1})[0], samples[at])
        self.assertEqual(asked(**{"from": peak_ms, "to": peak_ms}), [samples[at]])
        self.assertEqual(asked(**{"from": peak_ms - 1, "to": peak_ms}), samples[at - 1:at + 1])
        self.assertEqual(asked(to=samples[0][0] - 1), [])
        self.assertEqual(asked(**{"from": LATER}), samples[-1:])
        self.assertEqual(asked(**{"from": peak_ms, "pool": 0}), samples[at:])
        self.assertEqual(served.end(), (0, ""))


class States(TimeCase):
    # Each item has one state, and the counts of those without an owner and of those that move have no item in common:
    # in the state, the rows, the samples and the metrics alike.
    def test_disjoint(self):
        clients = self.make_pool(["a", "b"], [("a", False), ("b", False), ("c", True)],
                                 ["kept", "moving", "owned", "stays", "stranger", "unowned"], "210021")
        self.place(clients["a"], "owned", b"a")
        self.place(clients["a"], "moving", b"a")
        self.place(clients["b"], "moving", b"b", 1)
        self.place(clients["b"], "stays", b"b")
        self.place(self.client(), "stranger", b"x")
        served = self.serve()
        self.wait_read(served, lambda pool: pool["owned"] == 4)
        states = {row["item"]: row["state"] for row in served.rows("items")["rows"]}
        self.assertEqual(states, {"kept": "kept", "moving": "moving", "owned": "owned", "stays": "moving",
                                  "stranger": "stranger", "unowned": "unowned"})
        nexts = {row["item"]: row.get("next") for row in served.rows("items")["rows"]}
        self.assertEqual((nexts["kept"], nexts["unowned"], nexts["moving"], nexts["stays"], nexts["owned"]),
                         ("c", "b", "b", "a", None))
        pool = served.pool()
        self.assertEqual([pool[key] for key in ("items", "owned", "unowned", "moving", "strangers")], [6, 4, 2, 2, 1])
        for state in set(states.values()):
            self.assertEqual(served.rows("items", state=state)["matched"], list(states.values()).count(state), state)
        self.assertEqual(served.json("/samples")["samples"][-1][1:], [6, 2, 2, 2])
        metrics = served.ask("/metrics")[2].decode()
        for line in ('items{pool="%s",state="owned"} 4', 'items{pool="%s",state="unowned"} 2',
                     'moves_in_progress{pool="%s"} 2', 'items_of_strangers{pool="%s"} 1'):
            self.assertIn("\ndivvy_serve_pool_" + line % self.path + "\n", metrics)

    # While a member of an earlier release is there pauses wait: what is paused then is without an owner as any other.
    def test_pause_that_waits(self):
        pause = {"kind": "pause", "name": "x", "value": "", "by": "anna", "at_ms": 1769860800000, "why": ""}
        self.make_pool(["a"], [("a", False)], ["x"], "z", level=2, wishes=[pause])
        served = self.serve()
        self.wait_read(served, lambda pool: pool["items"] == 1)
        self.assertEqual([(row["state"], row["rule"]) for row in served.rows("items")["rows"]], [("unowned", "paused")])
        self.assertEqual([served.pool()[key] for key in ("unowned", "paused", "state")], [1, 0, "unowned"])

    # The pool's state is told in a word, and a page hears of it when it changes; also when that is because ZooKeeper
    # cannot be read, or can be again.
    def test_state_of_pool(self):
        server = Server()
        self.addCleanup(server.do, "stop")
        client = self.client(server)
        served = self.serve("--timeout", "500ms", connect=server.connect)
        wait_for(lambda: served.pool()["state"] == "absent", "that there is no pool")
        stream, known = self.stream(served), ["absent"]

        def told(state):
            # What was so before the stream began may come once more.
            change = stream.next(lambda change: change.get("figures", {}).get("state", known[-1]) != known[-1])
            self.assertEqual((change["pool"], change["figures"]["state"]), (0, state))
            self.assertEqual(served.pool()["state"], state)
            known.append(state)
        client.ensure_path(self.path + "/party")
        told("well")
        client.ensure_path(self.path + "/locks/item")
        told("unowned")
        place = self.place(client, "item", b"x")
        told("well")
        client.delete(place)
        told("unowned")
        server.do("pause", "1")
        self.addCleanup(server.do, "resume", "1")
        told("trouble")
        server.do("resume", "1")
        told("unowned")
        self.assertEqual(served.end()[0], 0)


if __name__ == "__main__":
    main(__file__)
