#!/usr/bin/env python3
"""The alerts for Prometheus and the dashboard for Grafana in share/. SPDX-License-Identifier: Apache-2.0

promtool, of Prometheus, judges the expressions, and plays a case for each alert. That the metrics they
name exist is seen in test/live/test_command_share.py.
"""

import json
import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
RULES = ROOT / "share" / "prometheus" / "divvy.rules.yml"
DASHBOARD = ROOT / "share" / "grafana" / "divvy.json"
RUNBOOK = ROOT / "docs" / "operations.md"

# For each alert the metrics with which it fires and those with which it does not, as {series: values}. A value stands
# for a minute. It has to fire at the end; and not before the minute that is named, but then, if one is.
CASES = {
    "DivvyItemsWithoutOwner": ({'divvy_serve_pool_items{pool="/q",state="unowned"}': "1x9"},
                               {'divvy_serve_pool_items{pool="/q",state="unowned"}': "0x5 1 0x5",
                                'divvy_serve_pool_items{pool="/q",state="owned"}': "1x9"}, 2),
    "DivvyItemsPaused": ({'divvy_serve_pool_items{pool="/q",state="paused"}': "1x9"},
                         {'divvy_serve_pool_items{pool="/q",state="paused"}': "1x3 0 1x3",
                          'divvy_serve_pool_items{pool="/q",state="unowned"}': "0x9"}, 5),
    "DivvyPoolWithoutMembers": ({'divvy_serve_pool_members{pool="/q",state="live"}': "0x9"},
                                {'divvy_serve_pool_members{pool="/q",state="live"}': "1x9",
                                 'divvy_serve_pool_members{pool="/q",state="absent"}': "0x9"}, 1),
    "DivvyPoolNotThere": ({'divvy_serve_pool_up{pool="/q"}': "0x9"}, {'divvy_serve_pool_up{pool="/q"}': "1x9"}, 5),
    "DivvyMovesDoNotEnd": ({'divvy_serve_pool_moves_in_progress{pool="/q"}': "3x20"},
                           {'divvy_serve_pool_moves_in_progress{pool="/q"}': "3x8 0 3x8"}, 10),
    "DivvyItemsOfStrangers": ({'divvy_serve_pool_items_of_strangers{pool="/q"}': "1x9"},
                              {'divvy_serve_pool_items_of_strangers{pool="/q"}': "0x9"}, 5),
    "DivvyStraysInParty": ({'divvy_serve_pool_strays{pool="/q"}': "1x20"},
                           {'divvy_serve_pool_strays{pool="/q"}': "0x20"}, 10),
    "DivvyMemberAbsent": ({'divvy_serve_pool_members{pool="/q",state="absent"}': "1x20"},
                          {'divvy_serve_pool_members{pool="/q",state="absent"}': "0x20"}, 15),
    "DivvyPlanNotInForce": ({'divvy_serve_pool_plan_in_force{pool="/q"}': "0x20",
                             'divvy_serve_pool_plan_generation{pool="/q"}': "7x20"},
                            {'divvy_serve_pool_plan_in_force{pool="/q"}': "0x20",
                             'divvy_serve_pool_plan_generation{pool="/q"}': "0x20"}, 15),
    "DivvyServeFails": ({"divvy_serve_failed_looks_total": "0+1x20"}, {"divvy_serve_failed_looks_total": "3x20"}, 6),
    "DivvyRegistryMalformed": ({"divvy_serve_registry_malformed": "1x40"}, {"divvy_serve_registry_malformed": "0x40"},
                               30),
    "DivvyReleaseOverdue": ({'divvy_pool_revoked_items{pool="/q"}': "1x9"},
                            {'divvy_pool_revoked_items{pool="/q"}': "0x9"}, 1),
    "DivvyShareIncomplete": ({'divvy_pool_waiting_items{pool="/q"}': "1x20"},
                             {'divvy_pool_waiting_items{pool="/q"}': "0x20"}, 10),
    "DivvyShareTooLarge": ({'divvy_pool_unfit_items{pool="/q"}': "1x9"},
                           {'divvy_pool_unfit_items{pool="/q"}': "0x9"}, 1),
    "DivvyMemberFailed": ({'divvy_pool_state{pool="/q",state="failure"}': "1x9"},
                          {'divvy_pool_state{pool="/q",state="failure"}': "0x9",
                           'divvy_pool_state{pool="/q",state="release"}': "1x9"}, 1),
    "DivvyDisconnected": ({'divvy_session_state{state="connected"}': "0x9",
                           'divvy_session_state{state="connecting"}': "0 1 1 0x7",
                           'divvy_session_state{state="suspended"}': "1 0 0 1x7"},
                          {'divvy_session_state{state="connected"}': "1x4 0x4",
                           'divvy_session_state{state="lost"}': "0x9",
                           'divvy_session_state{state="closed"}': "0x4 1x4"}, 1),
    "DivvySessionsLost": ({"divvy_sessions_lost_total": "0 1 2 3x20"}, {"divvy_sessions_lost_total": "5x20"}, 0),
    "DivvyDeathWatchGone": ({"divvy_death_watch": "1x4 0x4"}, {'divvy_death_watch{instance="a"}': "1x9",
                                                               'divvy_death_watch{instance="b"}': "0x9"}, 6),
    "DivvyPlansDiffer": ({'divvy_pool_plan_generation{instance="a",pool="/q"}': "7x9",
                          'divvy_pool_plan_generation{instance="b",pool="/q"}': "8x9"},
                         {'divvy_pool_plan_generation{instance="a",pool="/q"}': "7x9",
                          'divvy_pool_plan_generation{instance="b",pool="/q"}': "7x9",
                          'divvy_pool_plan_generation{instance="b",pool="/other"}': "9x9"}, 5),
    "DivvyRebalancesTooOften": ({'divvy_pool_rebalances_total{pool="/q",reason="join"}': "0+1x30",
                                 'divvy_pool_rebalances_total{pool="/q",reason="leave"}': "0+1x30"},
                                {'divvy_pool_rebalances_total{pool="/q",reason="join"}': "0 1 2 3x30"}, 0),
    "DivvyRoundTripsSlow": ({'divvy_round_trip_seconds_bucket{instance="a",le="0.5"}': "0x30",
                             'divvy_round_trip_seconds_bucket{instance="a",le="1"}': "0+9x30",
                             'divvy_round_trip_seconds_bucket{instance="a",le="+Inf"}': "0+9x30"},
                            {'divvy_round_trip_seconds_bucket{instance="a",le="0.5"}': "0+9x30",
                             'divvy_round_trip_seconds_bucket{instance="a",le="1"}': "0+9x30",
                             'divvy_round_trip_seconds_bucket{instance="a",le="+Inf"}': "0+9x30"}, 11),
    "DivvyBudgetNearlyUsed": ({'divvy_budget_used_bytes{budget="watches"}': "95x9",
                               'divvy_budget_limit_bytes{budget="watches"}': "100x9"},
                              {'divvy_budget_used_bytes{budget="watches"}': "85x9",
                               'divvy_budget_limit_bytes{budget="watches"}': "100x9"}, 5),
    "DivvyLocksLost": ({'divvy_lock_losses_total{recipe="lock"}': "0x4 1x4"},
                       {'divvy_lock_losses_total{recipe="lock"}': "4x9"}, 0),
    "DivvyMetricsStale": ({'node_textfile_mtime_seconds{file="/x/queues.prom"}': "0x9",
                           'divvy_build_info{process="queues"}': "1x9"},
                          {'node_textfile_mtime_seconds{file="/x/queues.prom"}': "0+60x9",
                           'divvy_build_info{process="queues"}': "1x9",
                           'node_textfile_mtime_seconds{file="/x/other.prom"}': "0x9",
                           'node_textfile_mtime_seconds{file="/x/report.prom"}': "0x9",
                           'divvy_build_info{process="report"}': "1x9",
                           'divvy_lock_held{process="report",recipe="write_lock"}': "0x9"}, 4),
}


def alerts():
    """Returns each alert with the text of its rule."""
    parts = re.split(r"(?m)^      - alert: (\w+)\n", RULES.read_text())
    return dict(zip(parts[1::2], parts[2::2]))


def minutes(values):
    """Returns how many minutes the values of promtool's notation last."""
    return sum(int(part.rpartition("x")[2]) + 1 if "x" in part else 1 for part in values.split()) - 1


def run(*words):
    found = subprocess.run([ROOT / "test" / "lib" / "find_promtool"], stdout=subprocess.PIPE, text=True, check=True)
    return subprocess.run([found.stdout.strip(), *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False)


def case(alert, series, checks):
    """A case of promtool's, which reads YAML, and so JSON; `checks` are the minutes with how many alerts there are."""
    return {"interval": "1m", "input_series": [{"series": name, "values": values} for name, values in series.items()],
            "promql_expr_test": [
                {"expr": 'count(ALERTS{alertname="%s",alertstate="firing"}) or vector(0)' % alert,
                 "eval_time": "%dm" % minute, "exp_samples": [{"labels": "{}", "value": count}]}
                for minute, count in checks]}


class Share(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    # promtool finds the rules in order.
    def test_rules(self):
        done = run("check", "rules", RULES)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("%d rules found" % len(alerts()), done.stdout)

    # Each alert fires where it should, not earlier, and not where it should not.
    def test_alerts(self):
        self.assertEqual(sorted(CASES), sorted(alerts()))
        tests = []
        for alert, (bad, good, early) in CASES.items():
            end = min(map(minutes, bad.values()))
            tests.append(case(alert, bad, [(end, 1)] + [(early - 1, 0), (early, 1)] * (early > 0)))
            tests.append(case(alert, good, [(minute, 0) for minute in range(max(map(minutes, good.values())) + 1)]))
        file = self.folder / "test.yml"
        file.write_text(json.dumps({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": tests}))
        done = run("test", "rules", file)
        self.assertEqual(done.returncode, 0, done.stdout)

    # Where the name of a pool stands in a command, a shell reads it back as it is, and runs nothing of it.
    def test_commands(self):
        pool = "/q's $(touch x);`x`/*\\~-"
        escaped = re.sub(r"([^A-Za-z0-9_@%+=:,./-])", r"\\\1", pool)
        read = subprocess.run(["sh", "-c", "printf %s " + escaped], stdout=subprocess.PIPE, text=True, check=True)
        self.assertEqual(read.stdout, pool)
        label = 'divvy_serve_pool_items{pool="%s",state="unowned"}' % pool.replace("\\", "\\\\")
        wanted = {"summary": "1 items of %s have had no owner for 2 minutes." % pool,
                  "command": "divvy doctor --path " + escaped, "runbook": "docs/operations.md#items-have-no-owner"}
        fires = {"eval_time": "3m", "alertname": "DivvyItemsWithoutOwner", "exp_alerts": [
            {"exp_labels": {"severity": "critical", "state": "unowned", "pool": pool}, "exp_annotations": wanted}]}
        one = {"interval": "1m", "input_series": [{"series": label, "values": "1x9"}], "alert_rule_test": [fires]}
        file = self.folder / "test.yml"
        file.write_text(json.dumps({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": [one]}))
        done = run("test", "rules", file)
        self.assertEqual(done.returncode, 0, done.stdout)
        commands = [re.search(r"command: '(.*)'\n", text).group(1) for text in alerts().values()]
        used = {command[command.index("{{"):] for command in commands if "{{" in command}
        self.assertEqual(used, {r'{{ reReplaceAll "([^A-Za-z0-9_@%+=:,./-])" "\\$1" $labels.pool }}'})

    # Each alert has a severity and a sentence, names a command, and a part of the runbook that exists.
    def test_runbook(self):
        heads = re.findall(r"(?m)^#+ (.*)$", RUNBOOK.read_text())
        anchors = {re.sub(r"[^a-z0-9 -]", "", head.lower()).replace(" ", "-") for head in heads}
        for alert, text in alerts().items():
            self.assertRegex(text, r"severity: (critical|warning)\n", alert)
            self.assertRegex(text, r"(?s)summary: .*\.", alert)
            self.assertRegex(text, r"command: '(divvy|journalctl) ", alert)
            self.assertIn(re.search(r"runbook: 'docs/operations.md#([a-z-]+)'", text).group(1), anchors, alert)

    # The dashboard is JSON; its panels have titles and places of their own, and expressions that Prometheus can parse.
    def test_dashboard(self):
        panels = json.loads(DASHBOARD.read_text())["panels"]
        self.assertEqual(len({panel["id"] for panel in panels}), len(panels))
        taken, rules = set(), []
        for panel in panels:
            self.assertTrue(panel["title"])
            place = panel["gridPos"]
            cells = {(x, y) for x in range(place["x"], place["x"] + place["w"])
                     for y in range(place["y"], place["y"] + place["h"])}
            self.assertLessEqual(place["x"] + place["w"], 24)
            self.assertFalse(cells & taken, panel["title"])
            taken |= cells
            rules += [{"record": "x:%d" % len(rules), "expr": target["expr"].replace("$pool", ".*")}
                      for target in panel.get("targets", [])]
        self.assertGreater(len(rules), 20)
        file = self.folder / "rules.yml"
        file.write_text(json.dumps({"groups": [{"name": "x", "rules": rules}]}))
        done = run("check", "rules", file)
        self.assertEqual(done.returncode, 0, done.stdout)


if __name__ == "__main__":
    unittest.main(argv=[__file__])
