/* Round robin by number, and what members warn of. SPDX-License-Identifier: Apache-2.0 */
#include "items_set_fixture.h"

static divvy_partitioner_config numeric(void) {
    divvy_partitioner_config config = DIVVY_PARTITIONER_CONFIG_INIT;
    config.items_order = DIVVY_ORDER_NUMERIC;
    return config;
}

/* As `join`, in a pool that goes by round robin, without waiting. */
static void join_dealing(member *m, const char *identifier, const char *items, int items_order) {
    words w;
    split(&w, items);
    *m = (member){0};
    m->client = open_client(m);
    divvy_partitioner_config config = DIVVY_PARTITIONER_CONFIG_INIT;
    config.path = "/pool";
    config.identifier = identifier;
    config.items = w.names;
    config.item_count = w.count;
    config.assign = DIVVY_ASSIGN_ROUND_ROBIN;
    config.items_order = items_order;
    config.time_boundary_ms = BOUNDARY_MS;
    config.on_items = on_items;
    config.user = m;
    assert_int_equal(divvy_partitioner_create(&m->p, m->client, &config), 0);
}

/* Members that deal by number share as kazoo members with integers would. */
TEST(test_shares) {
    member a, b;
    join_dealing(&a, "a", "0 1 2 3 4 5 6 7 8 9 10 11", DIVVY_ORDER_NUMERIC);
    join_dealing(&b, "b", "11 10 9 8 7 6 5 4 3 2 1 0", DIVVY_ORDER_NUMERIC);
    assert_int_equal(divvy_partitioner_wait_for_acquire(a.p, PATIENCE_MS), 0);
    assert_int_equal(divvy_partitioner_wait_for_acquire(b.p, PATIENCE_MS), 0);
    run(1);
    assert_snapshot(&a, "0 10 2 4 6 8");
    assert_snapshot(&b, "1 11 3 5 7 9");
    assert_int_equal(a.warnings[DIVVY_WARN_ASSIGN_DIFFERS] + b.warnings[DIVVY_WARN_ASSIGN_DIFFERS], 0);
    leave(&a);
    leave(&b);
}

/* Two members with different orders warn of each other, where round robin decides. */
TEST(test_orders_differ) {
    member a, b;
    join_dealing(&a, "a", "2 10", DIVVY_ORDER_NUMERIC);
    join_dealing(&b, "b", "2 10", DIVVY_ORDER_BYTES);
    run(5000);
    assert_int_equal(a.warnings[DIVVY_WARN_ASSIGN_DIFFERS], 1);
    assert_int_equal(b.warnings[DIVVY_WARN_ASSIGN_DIFFERS], 1);
    leave(&a);
    leave(&b);
}

/* By number goes only what is a number: told at once, with the item. */
TEST(test_refused) {
    member m;
    join(&m, "m", "1 2 10", numeric());
    static const char *const letters[] = {"1", "two"}, *const numbers[] = {"3", "20"};
    assert_int_equal(divvy_partitioner_set_items(m.p, letters, 2), DIVVY_EINVAL);
    assert_non_null(strstr(divvy_client_error(m.client), "\"two\""));
    assert_int_not_equal(divvy_partitioner_set_items(m.p, numbers, 2), DIVVY_EINVAL);
    divvy_partitioner_config config = numeric();
    config.path = "/other";
    config.items = letters;
    config.item_count = 2;
    divvy_partitioner *p;
    assert_int_equal(divvy_partitioner_create(&p, m.client, &config), DIVVY_EINVAL);
    config.items = numbers;
    config.items_order = DIVVY_ORDER_NUMERIC + 1;
    assert_int_equal(divvy_partitioner_create(&p, m.client, &config), DIVVY_EINVAL);
    leave(&m);
}

static void on_made(void *context, const dv_reply *reply, int64_t now) {
    (void)now;
    *(int *)context = reply->error;
}

/* The node of a kazoo member, which lives as long as the client. */
static void join_as_kazoo(divvy_client *client) {
    int error = -1;
    assert_int_equal(divvy_client_wait_connected(client, PATIENCE_MS), 0);
    dv_client_lock(client);
    assert_int_equal(dv_batch_create(client->znode, "/pool/party/0123456789abcdef0123456789abcdef-kazoo", "", 0,
                                     DV_EPHEMERAL, on_made, &error),
                     0);
    dv_client_unlock(client);
    run(1000);
    assert_int_equal(error, 0);
}

/* Beside a kazoo member numbers that are in another order by bytes are warned of; others, and those in order, are
 * not. */
TEST(test_warned_beside_kazoo) {
    static const struct {
        const char *items;
        int order;
        unsigned warnings;
    } cases[] = {{"2 10", DIVVY_ORDER_BYTES, 1},
                 {"2 10", DIVVY_ORDER_NUMERIC, 0},
                 {"1 2 9", DIVVY_ORDER_BYTES, 0},
                 {"10 2 x", DIVVY_ORDER_BYTES, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        member m;
        join_dealing(&m, "m", cases[i].items, cases[i].order);
        run(1000);
        assert_int_equal(m.warnings[DIVVY_WARN_ITEMS_DIFFER], 0);
        divvy_client *client = open_client(NULL);
        join_as_kazoo(client);
        assert_int_equal(m.warnings[DIVVY_WARN_ITEMS_DIFFER], cases[i].warnings);
        divvy_client_close(client);
        leave(&m);
    }
}

TEST_EACH(set_up, tear_down);
