/* Tests of a semaphore's limit, of kazoo beside it, and of the lists of who is there, on an in-memory ensemble in
 * virtual time. In every step it is checked that the limit is kept. SPDX-License-Identifier: Apache-2.0 */
#include "semaphore_fixture.h"

#include "client/client.h"

/* --- the limit -------------------------------------------------------------------------------------------------- */

/* Another limit in the pool is an error that tells both, for who has it so; the pool is left as it is. */
TEST_IN(test_limit_differs, set_up, tear_down) {
    user *a = make(0, 2), *b = make(1, 3);
    hold(a);
    for (int i = 0; i < 2; i++) {
        assert_true(ask(b, -1));
        run(500);
        assert_int_equal(b->result, DIVVY_EDIFFERS);
        assert_non_null(strstr(b->reason, POOL));
        assert_non_null(strstr(b->reason, "2"));
        assert_non_null(strstr(b->reason, "3"));
    }
    b->cancelled = true;
    assert_int_equal(divvy_semaphore_acquire(b->semaphore, 5000), DIVVY_EDIFFERS);
    assert_non_null(strstr(divvy_client_error(b->client), "2, not 3"));
    assert_string_equal(pool_data(), "2");
    run(100);
    assert_int_equal(node_count, 1);
}

/* B6: the room for all watches of an acquire is reserved at once. Where it will never be enough the acquire is refused,
 * and does not wait. */
TEST_IN(test_room_for_both_watches, set_up, tear_down) {
    user *a = make(0, 1), *c = make(2, 1), *b = make(1, 1);
    hold(a);
    assert_true(ask(c, -1));
    run(500);
    assert_true(ask(b, -1)); /* whose place waits for that of c */
    run(500);
    dv_budget *watched = &b->client->watched;
    size_t needed = watched->used_bytes;
    assert_true(needed > 0);
    b->cancelled = true;
    divvy_semaphore_cancel(b->semaphore, 0);
    run(500);
    assert_int_equal(watched->used_bytes, 0);
    watched->limit_bytes = 2 * needed - 1;
    assert_int_equal(divvy_semaphore_acquire_async(b->semaphore, -1, on_done, b), DIVVY_ELIMIT);
    watched->limit_bytes = 4 * needed;
    assert_true(ask(b, -1));
    run(500);
    let_go(a);
    run(500);
    let_go(c);
    run(500);
    assert_int_equal(b->result, 0);
}

/* Data that are no number are told, not taken for "no limit"; white space around a number is nothing. */
TEST_IN(test_limit_is_no_number, set_up, tear_down) {
    static const char *const bad[] = {"two", "-1", "2x", "1 2", " ", "99999999999", "0x2", "{}"};
    user *a = make_with(0, 2, 1, DIVVY_LIMIT_PROVIDED);
    put("/pools", "", DV_PERSISTENT);
    put(POOL, "", DV_PERSISTENT);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(raw(DV_SET, POOL, bad[i], 0), 0);
        assert_true(ask(a, -1));
        run(500);
        assert_int_equal(a->result, DIVVY_EPROTO);
        assert_string_equal(pool_data(), bad[i]);
        a->cancelled = true;
        assert_int_equal(divvy_semaphore_resize(a->semaphore, 3, 5000), DIVVY_EPROTO);
    }
    assert_int_equal(raw(DV_SET, POOL, " 2\n", 0), 0);
    user *b = make(1, 2);
    hold(b);
}

/* A pool without data has no limit yet: kazoo is about to write it, or never did. Ours is written, in any policy. */
TEST_IN(test_limit_is_unset, set_up, tear_down) {
    put("/pools", "", DV_PERSISTENT);
    for (int policy = DIVVY_LIMIT_ERROR; policy <= DIVVY_LIMIT_PROVIDED; policy++) {
        put(POOL, "", DV_PERSISTENT);
        user *a = make_with(0, 3, 1, policy);
        hold(a);
        assert_string_equal(pool_data(), "3");
        destroy(a);
        run(100);
        removed(POOL);
    }
}

/* A user that takes the stored limit goes by it; one that provides a limit writes it, and the others go by that
 * from then on. */
TEST_IN(test_limit_policies, set_up, tear_down) {
    user *a = make(0, 2), *stored = make_with(1, 9, 1, DIVVY_LIMIT_STORED);
    user *provided = make_with(2, 4, 1, DIVVY_LIMIT_PROVIDED), *third = make_with(3, 1, 1, DIVVY_LIMIT_STORED);
    hold(a);
    hold(stored);
    assert_string_equal(pool_data(), "2");
    assert_true(ask(third, -1));
    run(1000);
    assert_int_equal(third->result, NEVER);
    third->cancelled = true;
    divvy_semaphore_cancel(third->semaphore, 0);
    run(500);
    hold(provided);
    assert_string_equal(pool_data(), "4");
    assert_int_equal(divvy_semaphore_slot(provided->semaphore), 2);
    hold(third);
    let_go(a);
    run(100);
    hold(a); /* It agreed with the pool once. */
    assert_string_equal(pool_data(), "4");
}

/* A resize wakes who waits at the head; a smaller limit takes nothing from holders, and admits nobody until there is
 * room below it. */
TEST_IN(test_resize, set_up, tear_down) {
    user *a = make(0, 1), *b = make(1, 1), *c = make(2, 1);
    hold(a);
    assert_true(ask(b, -1));
    run(500);
    assert_true(ask(c, -1));
    run(500);
    a->cancelled = true;
    assert_int_equal(divvy_semaphore_resize(a->semaphore, 3, 5000), 0);
    run(500);
    assert_int_equal(b->result, 0);
    assert_int_equal(c->result, 0);
    assert_string_equal(pool_data(), "3");
    assert_int_equal(divvy_semaphore_resize(c->semaphore, 1, 5000), 0);
    run(500);
    assert_true(divvy_semaphore_held(a->semaphore) && divvy_semaphore_held(b->semaphore));
    let_go(a);
    run(100);
    assert_true(ask(a, -1));
    run(1000);
    assert_int_equal(a->result, NEVER);
    let_go(b);
    run(1000);
    assert_int_equal(a->result, NEVER);
    let_go(c);
    run(1000);
    assert_int_equal(a->result, 0);
    assert_int_equal(divvy_semaphore_slot(a->semaphore), 0);
    assert_int_equal(divvy_semaphore_resize(a->semaphore, 0, 5000), DIVVY_EINVAL);
    assert_int_equal(divvy_semaphore_resize(a->semaphore, 0x80000000u, 5000), DIVVY_EINVAL);
    assert_int_equal(divvy_semaphore_resize(a->semaphore, 2, -2), DIVVY_EINVAL);
}

/* A waiter that wants more slots than a lowered limit has is told so, or that the limit differs where it had not seen
 * the old one, and lets those behind it go on. */
TEST_IN(test_resize_below_what_is_wanted, set_up, tear_down) {
    user *a = make(0, 3), *b = make_with(1, 3, 3, DIVVY_LIMIT_ERROR), *c = make_with(2, 3, 3, DIVVY_LIMIT_ERROR);
    user *d = make(3, 3);
    hold(a);
    user *const queued[] = {b, c, d};
    for (int i = 0; i < 3; i++) {
        assert_true(ask(queued[i], -1));
        run(500);
        assert_int_equal(queued[i]->result, NEVER);
    }
    assert_int_equal(divvy_semaphore_resize(a->semaphore, 2, 5000), 0);
    run(1000);
    assert_int_equal(b->result, DIVVY_E2BIG);
    assert_int_equal(c->result, DIVVY_EDIFFERS);
    assert_int_equal(d->result, 0);
}

/* A resize that servers refuse, be it the write or one of the reads before it, says so, and changes nothing. */
TEST_IN(test_resize_refused, set_up, tear_down) {
    enum { NOAUTH = -102, REQUESTS = 4 };
    user *a = make(0, 2);
    hold(a);
    a->cancelled = true;
    for (unsigned skip = 0; skip < REQUESTS; skip++) {
        assert_int_equal(divvy_testing_answer(ensemble, a->client, NOAUTH, 0, skip, 1), 0);
        assert_int_equal(divvy_semaphore_resize(a->semaphore, 5, 5000), DIVVY_EACCES);
        run(100);
        assert_string_equal(pool_data(), "2");
    }
    assert_int_equal(divvy_semaphore_resize(a->semaphore, 5, 5000), 0);
}

/* A resize makes a pool that is not there; one that a connection interrupts goes on; one without any times out. */
TEST_IN(test_resize_of_nothing_and_offline, set_up, tear_down) {
    user *a = make(0, 2);
    a->cancelled = true;
    assert_int_equal(divvy_semaphore_resize(a->semaphore, 5, 5000), 0);
    run(100);
    assert_string_equal(pool_data(), "5");
    divvy_testing_link_client(ensemble, clients[0], DIVVY_TESTING_LINK_DOWN);
    assert_int_equal(divvy_semaphore_resize(a->semaphore, 6, 500), DIVVY_ETIMEDOUT);
    divvy_testing_heal(ensemble);
    assert_int_equal(divvy_semaphore_resize(a->semaphore, 7, 30000), 0);
    run(100);
    assert_string_equal(pool_data(), "7");
    hold(a);
}

/* --- beside kazoo ----------------------------------------------------------------------------------------------- */

/* A kazoo lease counts one, and has no number. While kazoo holds or waits, several slots at once and another limit are
 * refused, for it would not understand either. */
TEST_IN(test_beside_kazoo, set_up, tear_down) {
    user *a = make(0, 2), *two = make_with(1, 2, 2, DIVVY_LIMIT_ERROR), *c = make(2, 2);
    hold(a);
    let_go(a);
    put(POOL "/" KAZOO_GUID, "kazoo-1", DV_EPHEMERAL);
    hold(a);
    assert_int_equal(divvy_semaphore_slot(a->semaphore), 0);
    assert_true(ask(c, 0));
    run(500);
    assert_int_equal(c->result, DIVVY_EBUSY);
    let_go(a);
    run(100);
    assert_true(ask(two, -1));
    run(500);
    assert_int_equal(two->result, DIVVY_ESTATE);
    assert_non_null(strstr(two->reason, "kazoo"));
    a->cancelled = true;
    assert_int_equal(divvy_semaphore_resize(a->semaphore, 4, 5000), DIVVY_ESTATE);
    removed(POOL "/" KAZOO_GUID);
    put(QUEUE "/" KAZOO_GUID "__lock__", "b'kazoo-1'", DV_EPHEMERAL | DV_SEQUENTIAL);
    assert_int_equal(divvy_semaphore_resize(a->semaphore, 4, 5000), DIVVY_ESTATE);
    assert_true(ask(two, 2000)); /* It stands behind kazoo, and is told when its turn comes. */
    run(500);
    assert_int_equal(two->result, NEVER);
    for (size_t i = 0; i < node_count; i++) {
        if (strstr(nodes[i].path, KAZOO_GUID)) {
            removed(nodes[i].path);
            break;
        }
    }
    run(500);
    assert_int_equal(two->result, 0);
    assert_string_equal(pool_data(), "2");
}

/* E6: a kazoo contender that came after us is seen once there is room, though it holds nothing. */
TEST_IN(test_kazoo_behind, set_up, tear_down) {
    user *a = make(0, 2), *two = make_with(1, 2, 2, DIVVY_LIMIT_ERROR);
    hold(a);
    assert_true(ask(two, -1));
    run(500);
    put(QUEUE "/" KAZOO_GUID "__lock__", "b'kazoo-1'", DV_EPHEMERAL | DV_SEQUENTIAL);
    let_go(a);
    run(500);
    assert_int_equal(two->result, DIVVY_ESTATE);
    assert_non_null(strstr(two->reason, "kazoo contender"));
}

/* --- who is there ----------------------------------------------------------------------------------------------- */

/* Holders and contenders are listed with what is known of them, kazoo's by their identifiers; what cannot be understood
 * is left out and counted; where nothing is, nobody is. */
TEST_IN(test_holders_and_contenders, set_up, tear_down) {
    divvy_holders *list;
    user *a = make(0, 3), *b = make(1, 3), *c = make(2, 3), *d = make(3, 3);
    a->cancelled = true;
    assert_int_equal(divvy_semaphore_holders(a->semaphore, &list, 5000), 0);
    assert_int_equal(divvy_holders_count(list), 0);
    divvy_holders_free(list);
    hold(a);
    put(POOL "/" KAZOO_GUID, "kazoo \xc3\xa9", DV_EPHEMERAL);
    hold(b);
    put(QUEUE "/" KAZOO_GUID "__lock__", "b'caf\\xc3\\xa9'", DV_EPHEMERAL | DV_SEQUENTIAL);
    assert_true(ask(c, -1));
    run(500);
    assert_true(ask(d, -1));
    run(500);
    assert_int_equal(divvy_semaphore_holders(d->semaphore, &list, 5000), 0);
    assert_int_equal(divvy_holders_count(list), 3);
    assert_int_equal(divvy_holders_skipped(list), 0);
    assert_string_equal(divvy_holders_identifier(list, 0), "user-0");
    assert_int_equal(divvy_holders_slot(list, 0), 0);
    assert_int_equal(divvy_holders_slots(list, 0), 1);
    assert_int_equal(divvy_holders_pid(list, 0), getpid());
    assert_int_equal(divvy_holders_token(list, 0), divvy_semaphore_token(a->semaphore));
    assert_int_equal(strlen(divvy_holders_time(list, 0)), strlen("2026-01-31T12:00:00Z"));
    assert_string_not_equal(divvy_holders_host(list, 0), "");
    assert_string_equal(divvy_holders_identifier(list, 1), "kazoo \xc3\xa9");
    assert_int_equal(divvy_holders_slot(list, 1), -1);
    assert_int_equal(divvy_holders_slots(list, 1), 1);
    assert_string_equal(divvy_holders_host(list, 1), "");
    assert_int_equal(divvy_holders_pid(list, 1), 0);
    assert_string_equal(divvy_holders_identifier(list, 2), "user-1");
    assert_int_equal(divvy_holders_slot(list, 2), 1);
    assert_null(divvy_holders_identifier(list, 3));
    divvy_holders_free(list);
    assert_null(divvy_holders_identifier(NULL, 0));
    assert_int_equal(divvy_semaphore_contenders(d->semaphore, &list, 5000), 0);
    assert_int_equal(divvy_holders_count(list), 3);
    assert_string_equal(divvy_holders_identifier(list, 0), "caf\xc3\xa9");
    assert_string_equal(divvy_holders_identifier(list, 1), "user-2");
    assert_string_equal(divvy_holders_identifier(list, 2), "user-3");
    assert_int_equal(divvy_holders_slot(list, 1), -1);
    divvy_holders_free(list);
}

/* A record that is too deep, too long or broken spoils neither the list nor the count of what is taken. */
TEST_IN(test_bad_records, set_up, tear_down) {
    static char deep[600], longer[20000];
    divvy_holders *list;
    user *a = make(0, 5);
    hold(a);
    snprintf(deep, sizeof deep, "{\"id\":\"x\",\"more\":");
    memset(deep + strlen(deep), '[', 400);
    memset(longer, 'x', sizeof longer - 1);
    put(POOL "/stranger,n=2,c=1", deep, DV_EPHEMERAL);
    put(POOL "/stranger,n=3,c=1", "{\"id\":17}", DV_EPHEMERAL);
    put(POOL "/" KAZOO_GUID, longer, DV_EPHEMERAL);
    a->cancelled = true;
    assert_int_equal(divvy_semaphore_holders(a->semaphore, &list, 5000), 0);
    assert_int_equal(divvy_holders_count(list), 1);
    assert_int_equal(divvy_holders_skipped(list), 3);
    divvy_holders_free(list);
    user *b = make(1, 5), *c = make(2, 5);
    hold(b);
    assert_int_equal(divvy_semaphore_slot(b->semaphore), 1);
    assert_true(ask(c, 0));
    run(500);
    assert_int_equal(c->result, DIVVY_EBUSY);
}

static char logged[256];

static void on_log(int level, const char *message, void *context) {
    (void)context;
    if (level == DIVVY_LOG_WARN) snprintf(logged, sizeof logged, "%s", message);
}

/* The log has the name of each. */
TEST_IN(test_bad_record_in_log, set_up, tear_down) {
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    divvy_client *client;
    divvy_holders *list;
    config.manual = 1;
    config.ensemble_tick_ms = TICK_MS;
    config.on_log = on_log;
    user *u = make(0, 5);
    hold(u);
    put(POOL "/stranger,n=3,c=1", "{\"id\":17}", DV_EPHEMERAL);
    assert_int_equal(divvy_testing_client_open(&client, ensemble, &config), 0);
    divvy_semaphore_config of_reader = config_of(u, 5);
    divvy_semaphore *reader;
    assert_int_equal(divvy_semaphore_create(&reader, client, &of_reader), 0);
    assert_int_equal(divvy_semaphore_holders(reader, &list, 5000), 0);
    divvy_holders_free(list);
    run(20);
    divvy_semaphore_destroy(reader);
    divvy_client_close(client);
    assert_string_equal(logged, POOL ": the record of stranger,n=3,c=1 cannot be understood");
}

/* More holders than reads that may be under way at a time are all listed; in a callback, and offline, nobody is. */
TEST_IN(test_many_holders, set_up, tear_down) {
    enum { MANY = 150 };
    static divvy_semaphore *many[MANY];
    divvy_holders *list;
    for (int i = 0; i < MANY; i++) {
        divvy_semaphore_config config = DIVVY_SEMAPHORE_CONFIG_INIT;
        config.path = POOL;
        config.limit = MANY;
        assert_int_equal(divvy_semaphore_create(&many[i], clients[0], &config), 0);
        assert_int_equal(divvy_semaphore_acquire(many[i], 5000), 0);
    }
    assert_int_equal(divvy_semaphore_holders(many[0], &list, 5000), 0);
    assert_int_equal(divvy_holders_count(list), MANY);
    for (int i = 0; i < MANY; i++) assert_int_equal(divvy_holders_slot(list, (size_t)i), i);
    divvy_holders_free(list);
    divvy_testing_link_client(ensemble, clients[0], DIVVY_TESTING_LINK_DOWN);
    assert_int_equal(divvy_semaphore_holders(many[0], &list, 300), DIVVY_ETIMEDOUT);
    assert_null(list);
    divvy_testing_heal(ensemble);
    for (int i = 0; i < MANY; i++) divvy_semaphore_destroy(many[i]);
    run(4 * SESSION_MS);
}
