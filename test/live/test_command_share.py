#!/usr/bin/python3
"""What the alerts and the dashboard of share/ name exists. SPDX-License-Identifier: Apache-2.0

Shows that what running processes write has the names of the alerts and the dashboard.

usage: test_command_share.py BUILD_FOLDER [TEST...]     a TEST is a name such as Names.test_rules

The metrics are those that divvy writes: by the program metrics_writer, which uses each recipe; by --metrics; and at
/metrics of `divvy serve`, where the command was built with it.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
import urllib.request

from prometheus_client.parser import text_string_to_metric_families as parse

from command_harness import DEADLINE_S, SOURCE_DIR, Setting, main, run_to_end, wait_for

SHARE = os.path.join(SOURCE_DIR, "share")
OTHERS = {"node_textfile_mtime_seconds": {"file": set()}}  # of node_exporter
ADDED = {"instance", "job"}  # by Prometheus


def read(*path):
    with open(os.path.join(SHARE, *path), encoding="utf-8") as file:
        return file.read()


def add(metrics, text):
    """Adds the metrics of a text: for each name its labels, and for each of these its values."""
    for family in parse(text):
        for sample in family.samples:
            labels = metrics.setdefault(sample.name, {})
            for label, value in sample.labels.items():
                labels.setdefault(label, set()).add(value)


class Names(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        environment = {**os.environ, "DIVVY_CONNECT": Setting.server.connect}
        cls.metrics = dict(OTHERS)
        with tempfile.TemporaryDirectory() as folder:
            member, files = os.path.join(folder, "member.prom"), [os.path.join(folder, name) for name in ("o", "text")]
            done = run_to_end([os.path.join(os.path.abspath(sys.argv[1]), "test", "metrics_writer"), *files],
                              env=environment)
            assert done.returncode == 0, done.stderr
            cls.add_file(files[1])
            words = [Setting.divvy, "partition", "--path", "/share", "--item", "a", "--time-boundary", "100ms",
                     "--metrics", member]
            process = subprocess.Popen(words, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            try:
                wait_for(lambda: cls.add_file(member, "divvy_pool_plan_generation"), "it writes its metrics")
                cls.serves = cls.ask_serve(environment)
            finally:
                process.terminate()
                process.wait(DEADLINE_S)

    @classmethod
    def add_file(cls, path, wanted=None):
        """Adds the metrics of a file, if it is there and has what is wanted. Returns whether it has."""
        if not os.path.exists(path):
            return False
        with open(path, encoding="utf-8") as file:
            text = file.read()
        if wanted and not re.search("(?m)^%s[{ ]" % wanted, text):
            return False
        add(cls.metrics, text)
        return True

    @classmethod
    def ask_serve(cls, environment):
        """Adds the metrics of `divvy serve`. Returns whether there is one."""
        if not re.search(r"(?m)^  serve ", run_to_end([Setting.divvy, "help"]).stdout):
            return False
        process = subprocess.Popen([Setting.divvy, "serve", "--listen", "127.0.0.1:0", "--path", "/share"],
                                   env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, encoding="utf-8")
        try:
            said = process.stderr.readline()
            if "built without libmicrohttpd" in said:
                return False
            url = re.search(r"http://\S*", said).group(0) + "metrics"

            def seen():
                with urllib.request.urlopen(url, timeout=DEADLINE_S) as answer:
                    add(cls.metrics, answer.read().decode())
                return "divvy_serve_pool_plan_age_seconds" in cls.metrics

            wait_for(seen, "it has seen the pool")
            return True
        finally:
            process.terminate()
            process.wait(DEADLINE_S)
            process.stderr.close()

    def check(self, expression):
        """Each name is that of a metric, and so are the labels that it is chosen by, with their values."""
        names = re.findall(r"\b((?:divvy|node)_[a-z_]+)(?:\{([^}]*)\})?", expression)
        self.assertTrue(names, expression)
        for name, chosen in names:
            if name.startswith("divvy_serve_") and not self.serves:
                continue
            self.assertIn(name, self.metrics, expression)
            for label, how, value in re.findall(r'(\w+)(=~|!~|!=|=)"([^"]*)"', chosen):
                if label == "__name__":
                    continue
                self.assertIn(label, self.metrics[name], expression)
                for one in value.split("|") if label == "state" else []:
                    self.assertIn(one, self.metrics[name][label], expression + how)
        known = {label for name, _ in names for label in self.metrics.get(name, ())} | ADDED
        grouped = re.findall(r"\bby \(([^)]*)\)", expression)
        if self.serves or not any(name.startswith("divvy_serve_") for name, _ in names):
            self.assertLessEqual({label for group in grouped for label in group.replace(" ", "").split(",")},
                                 known, expression)

    # Those of the alerts do.
    def test_rules(self):
        rules = re.findall(r"(?m)^        expr: (.*)$", read("prometheus", "divvy.rules.yml"))
        self.assertEqual(len(rules), read("prometheus", "divvy.rules.yml").count("- alert: "))
        for rule in rules:
            self.check(rule)

    # So do those of the dashboard.
    def test_dashboard(self):
        dashboard = json.loads(read("grafana", "divvy.json"))
        targets = [target for panel in dashboard["panels"] for target in panel.get("targets", [])]
        self.assertGreater(len(targets), 20)
        for target in targets:
            self.check(target["expr"])
        for variable in dashboard["templating"]["list"]:
            for name in re.findall(r"divvy_[a-z_]+", json.dumps(variable["query"])):
                self.assertTrue(name in self.metrics or not self.serves and name.startswith("divvy_serve_"), name)


if __name__ == "__main__":
    main(__file__)
