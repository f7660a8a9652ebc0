#!/usr/bin/python3
"""Tests of --metrics, and that readers of metrics take what divvy writes. SPDX-License-Identifier: Apache-2.0

Shows files that the readers of Prometheus take, written while the command works.

The judges are promtool, of Prometheus, and the strict parser of OpenMetrics in prometheus_client.
"""
import os
import signal
import subprocess
import sys
import tempfile
import unittest

from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from command_harness import DEADLINE_S, Setting, check_by_promtool, main, run_to_end, wait_for


def environment():
    return {**os.environ, "DIVVY_CONNECT": Setting.server.connect}


def start(*words, **options):
    return subprocess.Popen([Setting.divvy, *words], env=environment(), stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, **options)


def values(path):
    """Returns the samples of a file in the older format, by name and labels; {} while it is not there."""
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as file:
        text = file.read()
    found = {}
    for family in parse_text(text):
        for sample in family.samples:
            key = sample.name, *sorted(sample.labels.items())
            assert key not in found, "twice: %s" % (key,)
            found[key] = sample.value
    return found


class Metrics(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def end(self, process):
        process.send_signal(signal.SIGTERM)
        return process.wait(DEADLINE_S)

    def test_library(self):
        """promtool takes the older format, and the strict parser takes OpenMetrics; both have the same samples. Another
        thread has read the metrics all the while."""
        writer = os.path.join(os.path.abspath(sys.argv[1]), "test", "metrics_writer")
        done = run_to_end([writer, self.path("open"), self.path("text")], env=environment())
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        check_by_promtool(self.path("text"))
        with open(self.path("open"), encoding="utf-8") as file:
            families = {family.name: family for family in parse_openmetrics(file.read())}
        kinds = {name: family.type for name, family in families.items()}
        self.assertEqual(kinds["divvy_requests"], "counter")
        self.assertEqual(kinds["divvy_round_trip_seconds"], "histogram")
        self.assertEqual(kinds["divvy_pool_owned_items"], "gauge")
        self.assertEqual(families["divvy_round_trip_seconds"].unit, "seconds")
        self.assertTrue(all(family.documentation for family in families.values()))
        samples = {(sample.name, *sorted(sample.labels.items())) for family in families.values()
                   for sample in family.samples}
        text = values(self.path("text"))
        self.assertEqual(samples, set(text))
        self.assertEqual(text["divvy_pool_owned_items", ("pool", '/metrics "pool"\\')], 3)
        self.assertEqual(text["divvy_lock_hold_seconds_count", ("recipe", "read_lock")], 17)
        self.assertEqual(text["divvy_lock_held", ("recipe", "semaphore")], 1)
        self.assertEqual(text["divvy_registry_announced_services",], 1)
        # No label but these, so none that grows with items or locks.
        labels = {label for key in text for label, _ in key[1:]}
        self.assertEqual(labels, {"version", "state", "kind", "le", "budget", "pool", "reason", "recipe"})

    def test_partition(self):
        """A member's file is there from the start, is replaced while it works, and tells at the end that it has left.
        Beside it nothing is left."""
        path = self.path("member.prom")
        process = ("process", "member")
        owned = "divvy_pool_owned_items", ("pool", "/measured"), process
        requests = "divvy_requests_total", process
        member = start("partition", "--path", "/measured", "--item", "a", "--item", "b", "--time-boundary", "100ms",
                       "--metrics", path)
        try:
            wait_for(lambda: values(path), "a file")
            wait_for(lambda: values(path).get(owned) == 2, "its items in the file")
            before, node = values(path)[requests], os.stat(path).st_ino
            wait_for(lambda: values(path)[requests] > before, "the file is replaced")
            self.assertNotEqual(os.stat(path).st_ino, node)
            check_by_promtool(path)
        finally:
            self.assertEqual(self.end(member), 0)
        last = values(path)
        self.assertEqual(last[owned], 0)
        self.assertEqual(last["divvy_pool_state", ("pool", "/measured"), process, ("state", "finished")], 1)
        self.assertEqual(last["divvy_pool_state", ("pool", "/measured"), process, ("state", "failure")], 0)
        self.assertEqual(last["divvy_pool_item_unowned_seconds_count", ("pool", "/measured"), process], 2)
        self.assertEqual(os.listdir(self.folder), ["member.prom"])
        check_by_promtool(path)

    def test_lock(self):
        """The file of a command under a lock tells at the end for how long that was held; its label is its name."""
        path = self.path("nightly.report")
        done = run_to_end([Setting.divvy, "lock", "--metrics", path, "measured", "sleep", "0.3"], env=environment())
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        last, labels = values(path), (("process", "nightly.report"), ("recipe", "write_lock"))
        self.assertEqual(last["divvy_lock_held", *labels], 0)
        self.assertEqual(last["divvy_lock_wait_seconds_count", *labels], 1)
        self.assertEqual(last["divvy_lock_hold_seconds_count", *labels], 1)
        self.assertGreaterEqual(last["divvy_lock_hold_seconds_sum", *labels], 0.3)
        check_by_promtool(path)

    def test_elect(self):
        """The file of a candidate tells that it leads, and at the end for how long it did."""
        path = self.path("leader.prom")
        labels = ("process", "leader"), ("recipe", "election")
        candidate = start("elect", "--metrics", path, "measured", "sleep", "1000")
        try:
            wait_for(lambda: values(path).get(("divvy_lock_held", *labels)) == 1, "leadership in the file")
        finally:
            self.end(candidate)
        self.assertEqual(values(path)["divvy_lock_held", *labels], 0)
        self.assertEqual(values(path)["divvy_lock_hold_seconds_count", *labels], 1)
        check_by_promtool(path)

    def test_announce(self):
        """The file of an announced service tells of its entry."""
        path = self.path("web.prom")
        announcer = start("announce", "--role", "web", "--load", "1", "--metrics", path)
        try:
            key = "divvy_registry_announced_services", ("process", "web")
            wait_for(lambda: values(path).get(key) == 1, "the entry in the file")
            check_by_promtool(path)
        finally:
            self.assertEqual(self.end(announcer), 0)

    def test_files_that_cannot_be_written(self):
        """A file that cannot be written is a mistake in the usage, before anything is begun; a device or a folder is
        not replaced."""
        for path, reason in ((self.path("no/such/folder.prom"), "No such file or directory"),
                             ("/dev/null", "no regular file"), (self.folder, "Is a directory"),
                             ("", "No such file or directory")):
            for words in (["lock", "--metrics", path, "measured", "touch", self.path("begun")],
                          ["partition", "--path", "/measured", "--item", "a", "--metrics", path],
                          ["elect", "--metrics", path, "measured", "touch", self.path("begun")],
                          ["announce", "--role", "web", "--load", "1", "--metrics", path]):
                with self.subTest(words=words):
                    done = run_to_end([Setting.divvy, *words], env=environment())
                    self.assertEqual(done.returncode, 2)
                    self.assertIn("--metrics: ", done.stderr)
                    self.assertIn(reason, done.stderr)
                    self.assertIn("see: divvy help %s" % words[0], done.stderr)
        self.assertEqual(os.listdir(self.folder), [])
        self.assertFalse(os.path.isfile("/dev/null"))

    def test_folder_that_goes_away(self):
        """A file that can no longer be written is told once, and does no harm to the work; it is written again when
        that is possible."""
        folder = self.path("collector")
        os.mkdir(folder)
        path = os.path.join(folder, "member.prom")
        log = self.path("log")
        with open(log, "w", encoding="utf-8") as errors:
            member = start("partition", "--path", "/moved", "--item", "a", "--metrics", path, stderr=errors)

        def told():
            with open(log, encoding="utf-8") as file:
                return file.read()

        try:
            wait_for(lambda: values(path), "a file")
            os.rename(folder, folder + ".away")
            wait_for(lambda: "warning: metrics: %s cannot be written: No such file" % path in told(), "a warning", log)
            os.rename(folder + ".away", folder)
            wait_for(lambda: "metrics: %s is written again" % path in told(), "the end of it", log)
            self.assertEqual(told().count("cannot be written"), 1)
        finally:
            self.assertEqual(self.end(member), 0)


if __name__ == "__main__":
    main(__file__)
