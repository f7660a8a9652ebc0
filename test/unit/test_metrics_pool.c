/* Tests of divvy/metrics.h: what a pool is shown as. SPDX-License-Identifier: Apache-2.0 */
#include "lib/partitioner_config.h"
#include "metrics_fixture.h"

enum { ITEMS = 10, MEMBERS = 3 };

static divvy_partitioner *members[MEMBERS];

static int leave_all(void **state) {
    for (int i = 0; i < MEMBERS; i++) divvy_partitioner_destroy(members[i]);
    memset(members, 0, sizeof members);
    return tear_down(state);
}

TEST_EACH(set_up, leave_all);

static const char *const items[ITEMS] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"};

static divvy_partitioner_config plain(void) {
    divvy_partitioner_config config = dv_test_partitioner_config("/pool", items, ITEMS, 500);
    config.handover_timeout_ms = 0;
    config.on_session_loss = DIVVY_REJOIN;
    return config;
}

static divvy_partitioner *join(int client, const divvy_partitioner_config *config) {
    divvy_partitioner *p;
    assert_int_equal(divvy_partitioner_create(&p, clients[client], config), 0);
    for (int i = 0; i < MEMBERS; i++) {
        if (members[i]) continue;
        members[i] = p;
        return p;
    }
    fail_msg("more than %d members", MEMBERS);
    return NULL;
}

/* Runs until the sample of the client has that value. */
static void await(int client, const char *sample, double expected) {
    for (int i = 0; i < 600; i++) {
        look(clients[client]);
        if (value(sample) == expected) return;
        run_ms(100);
    }
    fail_msg("%s never was %f; last:\n%s", sample, expected, text);
}

static void await_state(divvy_partitioner *p, divvy_partition_state state) {
    for (int i = 0; i < 600 && divvy_partitioner_state(p) != state; i++) run_ms(100);
    assert_int_equal(divvy_partitioner_state(p), state);
}

#define OWNED "divvy_pool_owned_items{pool=\"/pool\"}"
#define REVOKED "divvy_pool_revoked_items{pool=\"/pool\"}"
#define LEAVING "divvy_pool_leaving_items{pool=\"/pool\"}"
#define WAITING "divvy_pool_waiting_items{pool=\"/pool\"}"
#define PREPARING "divvy_pool_preparing_items{pool=\"/pool\"}"
#define STATE(state) "divvy_pool_state{pool=\"/pool\",state=\"" state "\"}"
#define REBALANCES(reason) "divvy_pool_rebalances_total{pool=\"/pool\",reason=\"" reason "\"}"
#define DURATION(part) "divvy_pool_rebalance_seconds_" part "{pool=\"/pool\"}"
#define WAIT(part) "divvy_pool_item_wait_seconds_" part "{pool=\"/pool\"}"
#define UNOWNED(part) "divvy_pool_item_unowned_seconds_" part "{pool=\"/pool\"}"

/* A member that is alone takes all; its first share is a rebalance, and each item of it was waited for. */
TEST(test_alone) {
    divvy_partitioner_config config = plain();
    divvy_partitioner *p = join(0, &config);
    look(clients[0]);
    expect(STATE("allocating"), 1);
    expect(STATE("acquired"), 0);
    expect(OWNED, 0);
    expect(DURATION("count"), 0);
    await_state(p, DIVVY_ACQUIRED);
    run_ms(20000);
    look(clients[0]);
    expect(STATE("allocating"), 0);
    expect(STATE("acquired"), 1);
    expect(STATE("release"), 0);
    expect(STATE("failure"), 0);
    expect("divvy_pool_items{pool=\"/pool\"}", ITEMS);
    expect(OWNED, ITEMS);
    expect(REVOKED, 0);
    expect(LEAVING, 0);
    expect(WAITING, 0);
    expect(PREPARING, 0);
    expect("divvy_pool_unfit_items{pool=\"/pool\"}", 0);
    expect(REBALANCES("members"), 1); /* the plan that the first member makes gives it what it has */
    expect(REBALANCES("join"), 0);
    expect(DURATION("count"), 1);
    expect_between(DURATION("sum"), 0, 1);
    expect(WAIT("count"), ITEMS);
    expect_between(WAIT("sum"), 0, ITEMS);
    expect(UNOWNED("count"), 0);
    expect("divvy_pool_plan_generation{pool=\"/pool\"}", 1);
    expect_between("divvy_pool_plan_age_seconds{pool=\"/pool\"}", 19, 21);
    divvy_partitioner_destroy(p);
    members[0] = NULL;
    look(clients[0]);
    assert_null(strstr(text, "divvy_pool_"));
}

/* A member that joins gets half. While the first one still works on it, that half is revoked there and waited for
 * here; how long that took, and how long the items had no owner, is counted with its reason. */
TEST(test_join) {
    divvy_partitioner_config config = plain();
    divvy_partitioner *first = join(0, &config);
    await_state(first, DIVVY_ACQUIRED);
    divvy_partitioner *second = join(1, &config);
    await_state(first, DIVVY_RELEASE);
    run_ms(3000);
    look(clients[0]);
    expect(STATE("release"), 1);
    expect(OWNED, 5);
    expect(REVOKED, 5);
    expect(LEAVING, 0);
    expect(REBALANCES("join"), 1);
    expect(DURATION("count"), 1); /* of its beginning */
    expect(UNOWNED("count"), 0);
    look(clients[1]);
    expect(STATE("allocating"), 1);
    expect(WAITING, 5);
    expect(OWNED, 0);
    expect(REBALANCES("join"), 1);
    expect(DURATION("count"), 0);
    assert_int_equal(divvy_partitioner_release_set(first), 0);
    await_state(second, DIVVY_ACQUIRED);
    await_state(first, DIVVY_ACQUIRED);
    look(clients[0]);
    expect(OWNED, 5);
    expect(REVOKED, 0);
    expect(UNOWNED("count"), 5);
    expect_between(UNOWNED("sum"), 5 * 3.0, 5 * 3.3);
    expect(DURATION("count"), 2);
    look(clients[1]);
    expect(OWNED, 5);
    expect(WAITING, 0);
    expect(WAIT("count"), 5);
    expect_between(WAIT("sum"), 5 * 2.9, 5 * 3.5);
    expect(DURATION("count"), 1);
    expect_between(DURATION("sum"), 2.9, 3.5);
    expect("divvy_pool_plan_generation{pool=\"/pool\"}", 2);

    /* A member that is gone gives its share to the rest. */
    assert_int_equal(divvy_partitioner_finish(second, WAIT_MS), 0);
    look(clients[1]);
    expect(STATE("failure"), 0);
    expect(STATE("finished"), 1);
    expect(OWNED, 0);
    expect(UNOWNED("count"), 5);
    assert_null(strstr(text, "divvy_pool_plan_age_seconds{"));
    await(0, OWNED, ITEMS);
    expect(REBALANCES("loss"), 1);
}

/* What stays until its next owner is ready is owned and leaving; the next owner prepares for it. */
TEST(test_handover) {
    divvy_partitioner_config config = plain();
    config.handover_timeout_ms = 30000;
    config.prepare_timeout_ms = 10000;
    divvy_partitioner *first = join(0, &config);
    await_state(first, DIVVY_ACQUIRED);
    divvy_partitioner *second = join(1, &config);
    await(1, PREPARING, 5);
    expect(WAITING, 5);
    await(0, LEAVING, 5);
    expect(OWNED, ITEMS);
    expect(REVOKED, 0);
    expect(DURATION("count"), 1); /* the rebalance goes on */
    run_ms(4000);
    divvy_partition_unref(divvy_partitioner_to_prepare(second));
    assert_int_equal(divvy_partitioner_prepared(second, NULL), 0);
    await(0, REVOKED, 5);
    expect(LEAVING, 0);
    expect(OWNED, 5);
    await_state(first, DIVVY_RELEASE);
    assert_int_equal(divvy_partitioner_release_set(first), 0);
    await_state(second, DIVVY_ACQUIRED);
    await_state(first, DIVVY_ACQUIRED);
    look(clients[0]);
    expect(DURATION("count"), 2);
    expect_between(DURATION("sum"), 4, 6);
    expect(REBALANCES("join"), 1);
    expect_between(UNOWNED("sum"), 0, 5 * 0.3); /* nobody waited for the warm-up without an owner */
    look(clients[1]);
    expect(PREPARING, 0);
    expect_between(WAIT("sum"), 5 * 4.0, 5 * 6.0);
}

/* A lost session is a rebalance that lasts until the share is there again. */
TEST(test_session_loss) {
    divvy_partitioner_config config = plain();
    divvy_partitioner *p = join(0, &config);
    await_state(p, DIVVY_ACQUIRED);
    run_ms(2000);
    assert_int_equal(divvy_testing_expire(ensemble, clients[0]), 0);
    await_state(p, DIVVY_RELEASE);
    run_ms(2000);
    look(clients[0]);
    expect(REBALANCES("session"), 1);
    expect(OWNED, 0);
    assert_int_equal(divvy_partitioner_release_set(p), 0);
    await_state(p, DIVVY_ACQUIRED);
    look(clients[0]);
    expect(OWNED, ITEMS);
    expect(DURATION("count"), 2);
    expect_between(DURATION("sum"), 2, 30);
    expect(WAIT("count"), 2 * ITEMS);
}

/* In eager mode a change revokes all, and is one rebalance. */
TEST(test_eager) {
    divvy_partitioner_config config = DIVVY_PARTITIONER_CONFIG_KAZOO;
    config.path = "/pool";
    config.items = items;
    config.item_count = ITEMS;
    config.time_boundary_ms = 500;
    divvy_partitioner *first = join(0, &config);
    await_state(first, DIVVY_ACQUIRED);
    divvy_partitioner *second = join(1, &config);
    await_state(first, DIVVY_RELEASE);
    look(clients[0]);
    expect(REVOKED, ITEMS);
    expect(OWNED, 0);
    assert_int_equal(divvy_partitioner_release_set(first), 0);
    await_state(second, DIVVY_ACQUIRED);
    await_state(first, DIVVY_ACQUIRED);
    look(clients[0]);
    expect(REBALANCES("members"), 2);
    expect(DURATION("count"), 2);
    expect(UNOWNED("count"), ITEMS);
    expect(OWNED, 5);
    assert_null(strstr(text, "divvy_pool_plan_generation{"));
}

/* An item whose lock somebody else has deleted is lost for a moment. */
TEST(test_foreign) {
    divvy_partitioner_config config = plain();
    divvy_partitioner *p = join(0, &config);
    await_state(p, DIVVY_ACQUIRED);
    run_ms(2000);
    divvy_strings *places = divvy_testing_children(ensemble, "/pool/locks/a");
    char path[300];
    snprintf(path, sizeof path, "/pool/locks/a/%s", divvy_strings_get(places, 0));
    divvy_strings_free(places);
    assert_int_equal(divvy_testing_remove(ensemble, path), 0);
    await(0, REBALANCES("foreign"), 1);
    await(0, OWNED, ITEMS);
    expect(DURATION("count"), 2);
    expect(WAIT("count"), ITEMS + 1);
}

/* A broken connection, other items, and a weight that becomes 0 have reasons of their own; a share that stays as it is
 * is no rebalance. */
TEST(test_reasons) {
    divvy_partitioner_config config = plain();
    config.on_suspend = DIVVY_RELEASE_ON_SUSPEND;
    divvy_partitioner *first = join(0, &config);
    await_state(first, DIVVY_ACQUIRED);
    assert_int_equal(divvy_testing_disconnect(ensemble, clients[0], DIVVY_TESTING_NOT_APPLIED, 0), 0);
    await_state(first, DIVVY_RELEASE);
    run_ms(3000);
    assert_int_equal(divvy_partitioner_state(first), DIVVY_RELEASE);
    look(clients[0]);
    expect(REBALANCES("suspend"), 1);
    expect(REVOKED, ITEMS);
    while (divvy_partitioner_state(first) == DIVVY_RELEASE) divvy_partitioner_release_set(first);
    await_state(first, DIVVY_ACQUIRED);

    assert_int_equal(divvy_partitioner_set_items(first, items, 4), 0);
    await_state(first, DIVVY_RELEASE);
    assert_int_equal(divvy_partitioner_release_set(first), 0);
    await(0, OWNED, 4);
    expect("divvy_pool_items{pool=\"/pool\"}", 4);
    expect(REBALANCES("set"), 1);

    config.item_count = 4;
    config.on_suspend = DIVVY_HOLD;
    divvy_partitioner *second = join(1, &config);
    await_state(first, DIVVY_RELEASE);
    assert_int_equal(divvy_partitioner_release_set(first), 0);
    await_state(second, DIVVY_ACQUIRED);
    assert_int_equal(divvy_partitioner_set_weight(second, 0), 0);
    await_state(second, DIVVY_RELEASE);
    assert_int_equal(divvy_partitioner_release_set(second), 0);
    await(0, OWNED, 4);
    expect(REBALANCES("drain"), 1);
    expect(REBALANCES("join"), 1);
    double durations = value(DURATION("count"));
    assert_int_equal(divvy_partitioner_leave(second, 0, WAIT_MS), 0);
    run_ms(5000);
    look(clients[0]);
    expect(REBALANCES("leave"), 0);
    expect(REBALANCES("loss"), 0);
    expect(DURATION("count"), durations);
}

/* What does not fit the session's budget is told as unfit. */
TEST(test_unfit) {
    divvy_client_close(clients[0]);
    divvy_client_config client = DIVVY_CLIENT_CONFIG_INIT;
    client.manual = 1;
    client.ensemble_tick_ms = 2000;
    client.ephemeral_path_bytes = 600;
    assert_int_equal(divvy_testing_client_open(&clients[0], ensemble, &client), 0);
    divvy_partitioner_config config = plain();
    divvy_partitioner *p = join(0, &config);
    await_state(p, DIVVY_ACQUIRED);
    look(clients[0]);
    double unfit = value("divvy_pool_unfit_items{pool=\"/pool\"}");
    assert_true(unfit > 0 && unfit < ITEMS);
    expect(OWNED, ITEMS - unfit);
    expect(WAITING, unfit);
    expect("divvy_budget_limit_bytes{budget=\"ephemerals\"}", 600);
    expect_between("divvy_budget_used_bytes{budget=\"ephemerals\"}", 300, 600);
}

/* Partitioners of one path on one client are one pool: their metrics are added, and no sample is there twice. */
TEST(test_shared_path) {
    divvy_partitioner_config config = plain();
    divvy_partitioner *first = join(0, &config), *second = join(0, &config);
    config.path = "/other";
    divvy_partitioner *third = join(0, &config);
    await_state(first, DIVVY_ACQUIRED);
    await_state(second, DIVVY_ACQUIRED);
    await_state(third, DIVVY_ACQUIRED);
    look(clients[0]);
    expect(STATE("acquired"), 2);
    expect(OWNED, ITEMS);
    expect("divvy_pool_items{pool=\"/pool\"}", ITEMS);
    expect("divvy_pool_owned_items{pool=\"/other\"}", ITEMS);
}

/* A path may have any character, and its label has the chroot in front; so nothing of it can be taken for more text. */
TEST(test_hostile_path) {
    divvy_client_close(clients[0]);
    open_client(0, "/ch\"root");
    divvy_partitioner_config config = plain();
    config.path = "/a\\b\"} 1";
    divvy_partitioner *p = join(0, &config);
    await_state(p, DIVVY_ACQUIRED);
    look(clients[0]);
    expect("divvy_pool_owned_items{pool=\"/ch\\\"root/a\\\\b\\\"} 1\"}", ITEMS);
}
