"""kazoo's own suite (partitioner, party, lock) on divvy.kazoo. SPDX-License-Identifier: Apache-2.0

The suite is that of the installed kazoo; kazoo_plugin.py puts divvy's recipes into its harness. Each of its tests
stands in one of three tables below, by name, with the reason where it does not pass. A result that is not in them fails
the test here.
"""
import collections
import os
import pathlib
import subprocess
import sys
import xml.etree.ElementTree as ET

import kazoo.tests

from conftest import SUMMARY

# They pass.
PASS = {
    "KazooLockTests": "test_lock test_lock_cancel test_lock_fail_first_call test_lock_many_threads "
                      "test_lock_many_threads_no_block test_lock_no_double_calls test_lock_non_blocking test_lock_one "
                      "test_lock_reacquire test_lock_reconnect test_lock_same_thread_no_block test_lock_timeout "
                      "test_read_lock test_write_lock",
    "TestSemaphore": "test_acquire_after_cancelled test_basic test_holders test_inconsistent_max_leases test_lock_one "
                     "test_multiple_acquire_and_release test_non_blocking test_non_blocking_release test_reacquire "
                     "test_semaphore_cancel test_timeout",
    "KazooPartitionerTests": "test_connection_loss test_more_members_than_set_items test_party_expansion "
                             "test_party_of_one test_party_of_two",
    "KazooPartyTests": "test_party test_party_vanishing_node",
    "KazooShallowPartyTests": "test_party",
}

# They fail, as divvy differs on purpose.
FAIL = {
    "TestSemaphore": {
        "test_inconsistent_max_leases_other_data":
            "the pool's node has data that are no number: kazoo then has no limit at all, divvy refuses",
    },
}

# They are not run, as they reach into kazoo, or want what divvy.kazoo says that it does not have.
NOT_APPLICABLE = {
    "KazooLockTests": {
        "test_lock_ephemeral": "ephemeral=False: a lock that outlives its session, which divvy.kazoo refuses",
    },
    "TestSemaphore": {
        "test_handle_session_loss": "waits for the semaphore's internal wake_event",
    },
    "TestSequence": {
        "test_get_predecessor": "calls Lock._get_predecessor() of kazoo.recipe.lock on a mocked client",
        "test_get_predecessor_go": "likewise, with extra_lock_patterns, which divvy.kazoo refuses",
    },
    "KazooPartitionerTests": {
        "test_party_session_failure": "calls SetPartitioner._fail_out()",
        "test_race_condition_new_partitioner_during_the_lock": "replaces client.Lock, which divvy does not use",
        "test_race_condition_new_partitioner_steals_the_lock": "likewise",
    },
    "KazooPartyTests": {
        "test_party_reuse_node": "makes the member's node before it joins; divvy names the node when it joins",
    },
}


def names(table):
    return {f"{case}.{name}" for case, found in table.items()
            for name in (found.split() if isinstance(found, str) else found)}


# Each test of kazoo's suite ends as the tables say, and each stands in one of them.
def test_kazoo_suite(server, tmp_path):
    suite = pathlib.Path(kazoo.tests.__file__).parent
    here = pathlib.Path(__file__).parent
    report = tmp_path / "report.xml"
    left_out = " or ".join(name.replace(".", " and ") for name in sorted(names(NOT_APPLICABLE)))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(here), *filter(None, sys.path)])}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "kazoo_plugin", "-p", "no:cacheprovider", "-W", "ignore",
         "--rootdir", tmp_path, "--junit-xml", report, "-k", f"not ({left_out})",
         *(suite / f"test_{name}.py" for name in ("lock", "partitioner", "party"))],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=240, env=environment)
    results = collections.defaultdict(set)
    for case in ET.parse(report).getroot().iter("testcase"):
        outcome = "failed" if case.find("failure") is not None or case.find("error") is not None else "passed"
        results[outcome].add(f'{case.get("classname").split(".")[-1]}.{case.get("name")}')
    SUMMARY.append(f"kazoo's own suite: {len(results['passed'])} passed, {len(results['failed'])} failed, "
                   f"{len(names(NOT_APPLICABLE))} not applicable")
    assert results["passed"] == names(PASS), done.stdout
    assert results["failed"] == names(FAIL), done.stdout
