/* The probe for commits, where servers say that they serve. SPDX-License-Identifier: Apache-2.0 */
#include "lib/probe.h"
#include "lib/wait.h"

enum { TICK_MS = 200, SYNC_TICKS = 150, PATIENCE_MS = 15000 };

#include "quorum_fixture.h"

/* The leader no longer hears its followers, and has not noticed yet. */
TEST(test_probe) {
    int leader = dv_test_server_await_leader(server);
    dv_test_probe *probe = dv_test_probe_new(dv_test_server_connect(server));
    assert_true(DV_WAIT(dv_test_probe_commits(probe), PATIENCE_MS));
    for (int number = 1; number <= DV_TEST_QUORUM_SERVERS; number++) {
        if (number != leader) dv_test_quorum_hold(quorum, number, leader);
    }
    assert_false(dv_test_probe_commits(probe)); /* on a connection that stands */
    assert_false(dv_test_probe_commits(probe)); /* on a new one */
    assert_int_equal(dv_test_server_leader(server), leader);
    dv_test_quorum_heal(quorum);
    assert_true(DV_WAIT(dv_test_probe_commits(probe), PATIENCE_MS));
    dv_test_probe_rest(probe);
    assert_true(DV_WAIT(dv_test_probe_commits(probe), PATIENCE_MS));
    dv_test_probe_free(probe);
}

TEST_EACH(NULL, heal);
TEST_GROUP(start_quorum, stop_quorum);
