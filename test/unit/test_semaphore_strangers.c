/* Tests of children of a semaphore's pool that are no leases, on an in-memory ensemble in virtual time. In every step
 * it is checked that the limit is kept. SPDX-License-Identifier: Apache-2.0 */
#include "semaphore_fixture.h"

enum { MANY = 450 };

static void make_pool(const char *limit) {
    put("/pools", "", DV_PERSISTENT);
    put(POOL, limit, DV_PERSISTENT);
}

static size_t count_holders(user *u) {
    divvy_holders *list;
    assert_int_equal(divvy_semaphore_holders(u->semaphore, &list, 60000), 0);
    size_t count = divvy_holders_count(list);
    for (size_t i = 0; i < count; i++) assert_true(strlen(divvy_holders_identifier(list, i)) > 0);
    assert_int_equal(divvy_holders_skipped(list), 0);
    divvy_holders_free(list);
    return count;
}

/* A lock below the semaphore's path takes no slot, is no holder, and keeps nobody from resizing. */
TEST(test_lock_below) {
    make_pool("1");
    put(POOL "/config-lock", "", DV_PERSISTENT);
    user *a = make(0, 1), *b = make(1, 1);
    assert_int_equal(count_holders(a), 0);
    hold(a);
    assert_int_equal(count_holders(a), 1);
    assert_true(ask(b, -1));
    run(2 * SESSION_MS);
    assert_int_equal(b->result, NEVER);
    assert_int_equal(divvy_semaphore_resize(a->semaphore, 2, 5000), 0);
    run(500);
    assert_int_equal(b->result, 0);
    assert_int_equal(count_holders(a), 2);
}

/* A lease that a backup restored as a persistent node takes no slot, whatever its name. */
TEST(test_restored_leases) {
    make_pool("2");
    put(POOL "/" KAZOO_GUID, "kazoo", DV_PERSISTENT);
    put(POOL "/00000000001000000000001,n=0,c=2", "{}", DV_PERSISTENT);
    user *a = make(0, 2), *b = make(1, 2);
    assert_int_equal(count_holders(a), 0);
    assert_true(ask(a, -1));
    assert_true(ask(b, -1));
    run(3 * SESSION_MS);
    assert_int_equal(a->result, 0);
    assert_int_equal(b->result, 0);
}

/* A list whose reading broke off is read from its beginning: nobody is in it twice. */
TEST(test_listed_again) {
    enum { SYSTEMERROR = -1 };
    user *a = make(0, 2), *b = make(1, 2), *c = make(2, 2);
    hold(a);
    hold(b);
    for (unsigned skip = 0; skip < 5; skip++) {
        assert_int_equal(divvy_testing_answer(ensemble, c->client, SYSTEMERROR, 0, skip, 20), 0);
        assert_int_equal(count_holders(c), 2);
    }
    assert_int_equal(divvy_testing_answer(ensemble, c->client, SYSTEMERROR, 0, 0, 0), 0);
}

/* An ephemeral child counts, whatever its name, until it goes. */
TEST(test_ephemeral_stranger) {
    make_pool("1");
    put(POOL "/config-lock", "", DV_PERSISTENT);
    put(POOL "/other", "", DV_EPHEMERAL);
    user *a = make(0, 1);
    assert_true(ask(a, -1));
    run(3 * SESSION_MS);
    assert_int_equal(a->result, NEVER);
    assert_int_equal(divvy_semaphore_resize(a->semaphore, 2, 5000), DIVVY_ESTATE);
    removed(POOL "/other");
    run(500);
    assert_int_equal(a->result, 0);
    assert_int_equal(count_holders(a), 1);
}

/* Several slots at once are refused beside a kazoo holder, and not beside what only stands there. */
TEST(test_several_slots) {
    make_pool("4");
    put(POOL "/config-lock", "", DV_PERSISTENT);
    user *a = make_with(0, 4, 3, DIVVY_LIMIT_ERROR);
    hold(a);
    let_go(a);
    run(100);
    put(POOL "/" KAZOO_GUID, "kazoo", DV_EPHEMERAL);
    assert_true(ask(a, -1));
    run(500);
    assert_int_equal(a->result, DIVVY_ESTATE);
    removed(POOL "/" KAZOO_GUID);
}

/* Each child is looked at once as long as it stays, in as many rounds as are needed. */
TEST(test_looked_at_once) {
    make_pool("3");
    for (int i = 0; i < MANY; i++) {
        char path[64];
        snprintf(path, sizeof path, POOL "/note-%d", i);
        put(path, "", DV_PERSISTENT);
    }
    user *a = make(0, 3);
    divvy_stats before, looked, again;
    assert_int_equal(divvy_client_stats(a->client, &before, sizeof before), 0);
    hold(a);
    assert_int_equal(divvy_client_stats(a->client, &looked, sizeof looked), 0);
    assert_in_range(looked.requests - before.requests, MANY, MANY + 30);
    let_go(a);
    run(100);
    hold(a);
    assert_int_equal(divvy_client_stats(a->client, &again, sizeof again), 0);
    assert_in_range(again.requests - looked.requests, 1, 30);
}

/* A connection that breaks while children are looked at ends nothing. */
TEST(test_broken_connection) {
    make_pool("1");
    put(POOL "/config-lock", "", DV_PERSISTENT);
    put(POOL "/" KAZOO_GUID, "kazoo", DV_PERSISTENT);
    for (int moment = 0; moment < 40; moment++) {
        user *a = make(0, 1);
        user_count--; /* one after the other */
        assert_true(ask(a, -1));
        for (int i = 0; i < moment; i++) step_until(divvy_testing_now_ms(ensemble) + 100);
        divvy_testing_disconnect(ensemble, clients[0], DIVVY_TESTING_APPLIED, 0);
        run(SESSION_MS);
        assert_int_equal(a->result, 0);
        destroy(a);
        run(200);
    }
}

/* Given up while children are looked at it leaves nothing behind. */
TEST(test_given_up) {
    make_pool("1");
    put(POOL "/config-lock", "", DV_PERSISTENT);
    for (int moment = 0; moment < 40; moment++) {
        user *a = make(0, 1);
        user_count--;
        assert_true(ask(a, -1));
        for (int i = 0; i < moment; i++) step_until(divvy_testing_now_ms(ensemble) + 100);
        destroy(a);
        run(500);
        assert_int_equal(node_count, 0);
    }
}

TEST_EACH(set_up, tear_down);
