/* An item under one token: divvy_partitioner_owns_token(). SPDX-License-Identifier: Apache-2.0 */
#include "items_set_fixture.h"

static int64_t token_of(member *m, const char *item) {
    divvy_partition *snapshot = divvy_partitioner_partition(m->p);
    int64_t token = 0;
    for (size_t i = 0; i < divvy_partition_count(snapshot); i++) {
        if (strcmp(divvy_partition_item(snapshot, i), item) == 0) token = divvy_partition_token(snapshot, i);
    }
    divvy_partition_unref(snapshot);
    return token;
}

/* Yes for the token of the ownership only; no for any other, an unknown item, and what a caller may get wrong. */
TEST(test_token) {
    member m;
    join_plainly(&m, "m", "a b");
    int64_t token = token_of(&m, "a");
    assert_true(token > 0);
    assert_int_equal(divvy_partitioner_owns_token(m.p, "a", token), 1);
    assert_int_equal(divvy_partitioner_owns_token(m.p, "a", token + 1), 0);
    assert_int_equal(divvy_partitioner_owns_token(m.p, "a", token - 1), 0);
    assert_int_equal(divvy_partitioner_owns_token(m.p, "a", 0), 0);
    assert_int_equal(divvy_partitioner_owns_token(m.p, "a", -1), 0);
    assert_int_equal(divvy_partitioner_owns_token(m.p, "c", token), 0);
    assert_int_equal(divvy_partitioner_owns_token(m.p, "c", 0), 0);
    assert_int_equal(divvy_partitioner_owns_token(m.p, NULL, token), 0);
    assert_int_equal(divvy_partitioner_owns_token(NULL, "a", token), 0);
    leave(&m);
}

/* A revoked item is no longer owned, and is owned again under the same token if its release finds it in the target. */
TEST(test_revoked) {
    member m;
    join_plainly(&m, "m", "a b");
    int64_t token = token_of(&m, "b");
    assert_int_equal(deal(&m, "a", "a"), 0);
    run(1);
    assert_int_equal(divvy_partitioner_owns_token(m.p, "b", token), 0);
    assert_int_equal(deal(&m, "a b", "a b"), 0);
    run(1);
    assert_int_equal(divvy_partitioner_owns_token(m.p, "b", token), 0);
    assert_int_equal(divvy_partitioner_release_set(m.p), 0);
    assert_int_equal(divvy_partitioner_owns_token(m.p, "b", token), 1);
    leave(&m);
}

/* After a lost session and a rejoin the item is ours again, under another token: a worker of the session that was lost
 * is told no, and owns() says yes. Nothing is ours past the deadline, though no event has said so yet. */
TEST(test_rejoined) {
    member m;
    divvy_partitioner_config config = DIVVY_PARTITIONER_CONFIG_INIT;
    config.on_session_loss = DIVVY_REJOIN;
    join(&m, "m", "a", config);
    int64_t token = token_of(&m, "a");
    atomic_store(&m.client->alive_until, dv_client_now(m.client));
    assert_int_equal(divvy_partitioner_owns_token(m.p, "a", token), 0);
    assert_int_equal(divvy_testing_expire(ensemble, m.client), 0);
    run(PATIENCE_MS);
    assert_int_equal(divvy_partitioner_owns_token(m.p, "a", token), 0);
    release(&m);
    assert_int_equal(divvy_partitioner_owns(m.p, "a"), 1);
    assert_int_equal(divvy_partitioner_owns_token(m.p, "a", token), 0);
    assert_true(token_of(&m, "a") > token);
    assert_int_equal(divvy_partitioner_owns_token(m.p, "a", token_of(&m, "a")), 1);
    leave(&m);
}

TEST_EACH(set_up, tear_down);
