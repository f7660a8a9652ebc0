/* Tests of divvy/semaphore.h on an in-memory ensemble, in virtual time. In every step it is checked that the limit is
 * kept, that no slot is in two leases, and that who believes to hold does: semaphore_fixture.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "semaphore_fixture.h"

/* --- creating --------------------------------------------------------------------------------------------------- */

static int create(const char *path, const char *identifier, uint32_t limit, uint32_t count, int policy) {
    divvy_semaphore *semaphore;
    divvy_semaphore_config config = DIVVY_SEMAPHORE_CONFIG_INIT;
    config.path = path;
    config.identifier = identifier;
    config.limit = limit;
    config.count = count;
    config.limit_policy = policy;
    int error = divvy_semaphore_create(&semaphore, clients[0], &config);
    if (error) assert_null(semaphore);
    else divvy_semaphore_destroy(semaphore);
    if (error) assert_string_not_equal(divvy_client_error(clients[0]), "");
    return error;
}

/* What cannot be a semaphore is refused, with a reason, and nothing is sent for what can. */
static void test_create(void **state) {
    (void)state;
    char long_name[2060];
    memset(long_name, 'x', sizeof long_name);
    long_name[2049] = '\0';
    assert_int_equal(create(NULL, "me", 1, 1, 0), DIVVY_EINVAL);
    assert_int_equal(create("s", "me", 1, 1, 0), DIVVY_EINVAL);
    assert_int_equal(create("/", "me", 1, 1, 0), DIVVY_EINVAL);
    assert_int_equal(create("/s", "", 1, 1, 0), DIVVY_EINVAL);
    assert_int_equal(create("/s", "\xff", 1, 1, 0), DIVVY_EINVAL);
    assert_int_equal(create("/s", long_name, 1, 1, 0), DIVVY_E2BIG);
    assert_int_equal(create("/s", "me", 0, 1, 0), DIVVY_EINVAL);
    assert_int_equal(create("/s", "me", 1, 0, 0), DIVVY_EINVAL);
    assert_int_equal(create("/s", "me", 0x80000000u, 1, 0), DIVVY_EINVAL);
    assert_int_equal(create("/s", "me", 1, 1, 3), DIVVY_EINVAL);
    assert_int_equal(create("/s", "me", 1, 1, -1), DIVVY_EINVAL);
    assert_int_equal(create("/s", NULL, 1, 1, DIVVY_LIMIT_STORED), 0);
    run(100);
    assert_false(divvy_testing_exists(ensemble, "/s"));
    assert_int_equal(divvy_semaphore_acquire(NULL, 0), DIVVY_EINVAL);
    assert_int_equal(divvy_semaphore_release(NULL), DIVVY_EINVAL);
    assert_int_equal(divvy_semaphore_held(NULL), 0);
    assert_int_equal(divvy_semaphore_slot(NULL), -1);
    assert_int_equal(divvy_semaphore_token(NULL), 0);
    divvy_semaphore_destroy(NULL);
    divvy_holders_free(NULL);
}

/* --- acquiring, as kazoo's tests have it ------------------------------------------------------------------------ */

/* Two of three get a slot each, with numbers and growing tokens; the third gets the first that is given back, and its
 * number. The names in the pool are those of WIRE: the guid, the slot, the count. */
static void test_slots_and_order(void **state) {
    (void)state;
    user *a = make(0, 2), *b = make(1, 2), *c = make(2, 2), *d = make(3, 2);
    hold(a);
    hold(b);
    assert_int_equal(divvy_semaphore_slot(a->semaphore), 0);
    assert_int_equal(divvy_semaphore_slot(b->semaphore), 1);
    assert_int_equal(divvy_semaphore_slot_at(b->semaphore, 0), 1);
    assert_int_equal(divvy_semaphore_slot_at(b->semaphore, 1), -1);
    assert_true(divvy_semaphore_token(b->semaphore) > divvy_semaphore_token(a->semaphore));
    assert_string_equal(pool_data(), "2");
    assert_non_null(strstr(nodes[0].path, ",n=0,c=1"));
    assert_ptr_equal(strstr(nodes[0].path, ",n=0,c=1")[8], '\0');
    assert_true(ask(c, -1));
    run(500);
    assert_true(ask(d, -1));
    run(2000);
    assert_int_equal(c->result, NEVER);
    assert_int_equal(count_nodes(false), 2);
    let_go(a);
    run(500);
    assert_int_equal(c->result, 0);
    assert_int_equal(divvy_semaphore_slot(c->semaphore), 0);
    assert_int_equal(d->result, NEVER);
    let_go(b);
    run(500);
    assert_int_equal(d->result, 0);
    assert_int_equal(divvy_semaphore_slot(d->semaphore), 1);
    assert_int_equal(count_nodes(false), 0);
    assert_int_equal(a->lost + b->lost + c->lost + d->lost, 0);
}

/* The waiting calls: a slot is had, a full pool is busy or times out after just that time, and nothing is left of that.
 * Held is not held twice, and what is not held cannot be released. */
static void test_waiting_calls(void **state) {
    (void)state;
    user *a = make(0, 1), *b = make(1, 1);
    a->cancelled = b->cancelled = true;
    assert_int_equal(divvy_semaphore_release(a->semaphore), DIVVY_ENOTHELD);
    assert_int_equal(divvy_semaphore_acquire(a->semaphore, -2), DIVVY_EINVAL);
    assert_int_equal(divvy_semaphore_acquire(a->semaphore, 5000), 0);
    assert_int_equal(divvy_semaphore_acquire(a->semaphore, 5000), DIVVY_EALREADY);
    assert_false(ask(a, -1));
    assert_int_equal(divvy_semaphore_try_acquire(b->semaphore), DIVVY_EBUSY);
    run(50);
    assert_int_equal(count_nodes(false), 0);
    int64_t began = divvy_testing_now_ms(ensemble);
    assert_int_equal(divvy_semaphore_acquire(b->semaphore, 3000), DIVVY_ETIMEDOUT);
    assert_in_range(divvy_testing_now_ms(ensemble) - began, 3000, 3050);
    run(50);
    assert_int_equal(node_count, 1);
    let_go(a);
    assert_int_equal(divvy_semaphore_release(a->semaphore), DIVVY_ENOTHELD);
    assert_int_equal(divvy_semaphore_acquire(b->semaphore, -1), 0);
    let_go(b);
    assert_int_equal(divvy_semaphore_try_acquire(a->semaphore), 0);
    assert_true(divvy_semaphore_held(a->semaphore));
}

/* A try that comes while others wait does not overtake them, though a slot is free for a moment; it leaves nothing. */
static void test_try_does_not_overtake(void **state) {
    (void)state;
    user *a = make(0, 2), *b = make_with(1, 2, 2, DIVVY_LIMIT_ERROR), *c = make(2, 2);
    hold(a);
    assert_true(ask(b, -1));
    run(500);
    assert_true(ask(c, 0));
    run(500);
    assert_int_equal(c->result, DIVVY_EBUSY);
    assert_int_equal(node_count, 2);
    let_go(a);
    run(500);
    assert_int_equal(b->result, 0);
}

/* An acquire is cancelled where it waits at the head, where it waits in the queue, and where none waits, which does
 * nothing to the next one; a slot that is held stays so. */
static void test_cancel(void **state) {
    (void)state;
    user *a = make(0, 1), *b = make(1, 1), *c = make(2, 1);
    assert_int_equal(divvy_semaphore_cancel(a->semaphore), 0);
    hold(a);
    assert_int_equal(divvy_semaphore_cancel(a->semaphore), 0);
    assert_true(divvy_semaphore_held(a->semaphore));
    for (int i = 0; i < 2; i++) {
        user *head = i ? c : b, *queued = i ? b : c;
        assert_true(ask(head, -1));
        run(500);
        assert_true(ask(queued, -1));
        run(500);
        queued->cancelled = true;
        assert_int_equal(divvy_semaphore_cancel(queued->semaphore), 0);
        run(500);
        assert_int_equal(queued->result, DIVVY_ECANCELED);
        assert_int_equal(node_count, 2);
        head->cancelled = true;
        assert_int_equal(divvy_semaphore_cancel(head->semaphore), 0);
        run(500);
        assert_int_equal(head->result, DIVVY_ECANCELED);
        assert_int_equal(node_count, 1);
    }
    assert_true(ask(b, -1)); /* cancelled and asked again at once: the first is told, the second waits on */
    run(500);
    b->cancelled = true;
    assert_int_equal(divvy_semaphore_cancel(b->semaphore), 0);
    b->waiting = false;
    run(5);
    assert_true(ask(b, -1));
    run(500);
    let_go(a);
    run(500);
    assert_int_equal(b->result, 0);
    assert_int_equal(node_count, 1);
}

/* One object acquires and releases many times, at once after each other and in its own callbacks. */
static void test_reacquire(void **state) {
    (void)state;
    user *a = make(0, 1), *b = make(1, 1);
    a->cancelled = true;
    for (int i = 0; i < 20; i++) {
        assert_int_equal(divvy_semaphore_acquire(a->semaphore, 5000), 0);
        let_go(a);
    }
    b->releases_when_done = 1;
    for (int i = 0; i < 5; i++) {
        assert_true(ask(b, -1));
        run(500);
        assert_int_equal(b->result, 0);
        assert_false(divvy_semaphore_held(b->semaphore));
    }
    run(500);
    assert_int_equal(node_count, 0);
}

/* --- several slots ---------------------------------------------------------------------------------------------- */

/* Two who want two of three: one gets them, the other waits with none, and gets them when the first lets go. */
static void test_all_or_nothing(void **state) {
    (void)state;
    user *a = make_with(0, 3, 2, DIVVY_LIMIT_ERROR), *b = make_with(1, 3, 2, DIVVY_LIMIT_ERROR);
    assert_true(ask(a, -1));
    assert_true(ask(b, -1));
    run(2000);
    user *first = a->result == 0 ? a : b, *second = first == a ? b : a;
    assert_int_equal(first->result, 0);
    assert_int_equal(second->result, NEVER);
    assert_int_equal(taken_now(), 2);
    assert_int_equal(divvy_semaphore_slot_at(first->semaphore, 0), 0);
    assert_int_equal(divvy_semaphore_slot_at(first->semaphore, 1), 1);
    assert_int_equal(divvy_semaphore_slot_at(first->semaphore, 2), -1);
    let_go(first);
    run(1000);
    assert_int_equal(second->result, 0);
    assert_int_equal(taken_now(), 2);
}

/* Slots that are free but not side by side are as good: the name says which they are, and nobody else gets them. */
static void test_scattered_slots(void **state) {
    (void)state;
    user *one[5];
    for (int i = 0; i < 5; i++) hold(one[i] = make(i, 5));
    let_go(one[0]);
    let_go(one[2]);
    let_go(one[4]);
    run(500);
    user *three = make_with(0, 5, 3, DIVVY_LIMIT_ERROR), *more = make(1, 5);
    hold(three);
    assert_int_equal(divvy_semaphore_slot(three->semaphore), 0);
    assert_int_equal(divvy_semaphore_slot_at(three->semaphore, 1), 2);
    assert_int_equal(divvy_semaphore_slot_at(three->semaphore, 2), 4);
    assert_true(ask(more, 0));
    run(500);
    assert_int_equal(more->result, DIVVY_EBUSY);
    let_go(one[1]);
    run(100);
    hold(more);
    assert_int_equal(divvy_semaphore_slot(more->semaphore), 1);
}

/* More than there are is refused at once, whoever waits. */
static void test_more_than_the_limit(void **state) {
    (void)state;
    user *a = make_with(0, 2, 3, DIVVY_LIMIT_ERROR), *b = make(1, 2);
    assert_true(ask(a, -1));
    run(1000);
    assert_int_equal(a->result, DIVVY_ELIMIT);
    assert_non_null(strstr(a->reason, "3 slots"));
    hold(b);
    assert_true(ask(a, -1));
    run(1000);
    assert_int_equal(a->result, DIVVY_ELIMIT);
    assert_int_equal(node_count, 1);
}

/* --- the limit -------------------------------------------------------------------------------------------------- */

/* Another limit in the pool is an error that tells both, for who has it so; the pool is left as it is. */
static void test_limit_differs(void **state) {
    (void)state;
    user *a = make(0, 2), *b = make(1, 3);
    hold(a);
    for (int i = 0; i < 2; i++) {
        assert_true(ask(b, -1));
        run(500);
        assert_int_equal(b->result, DIVVY_ELIMIT);
        assert_non_null(strstr(b->reason, POOL));
        assert_non_null(strstr(b->reason, "2"));
        assert_non_null(strstr(b->reason, "3"));
    }
    b->cancelled = true;
    assert_int_equal(divvy_semaphore_acquire(b->semaphore, 5000), DIVVY_ELIMIT);
    assert_non_null(strstr(divvy_client_error(b->client), "2, not 3"));
    assert_string_equal(pool_data(), "2");
    run(100);
    assert_int_equal(node_count, 1);
}

/* Data that are no number are told, not taken for "no limit"; white space around a number is nothing. */
static void test_limit_is_no_number(void **state) {
    (void)state;
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
static void test_limit_is_unset(void **state) {
    (void)state;
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

/* Who takes the stored limit goes by it; who provides one writes it, and the others go by that from then on. */
static void test_limit_policies(void **state) {
    (void)state;
    user *a = make(0, 2), *stored = make_with(1, 9, 1, DIVVY_LIMIT_STORED);
    user *provided = make_with(2, 4, 1, DIVVY_LIMIT_PROVIDED), *third = make_with(3, 1, 1, DIVVY_LIMIT_STORED);
    hold(a);
    hold(stored);
    assert_string_equal(pool_data(), "2");
    assert_true(ask(third, -1));
    run(1000);
    assert_int_equal(third->result, NEVER);
    third->cancelled = true;
    divvy_semaphore_cancel(third->semaphore);
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
static void test_resize(void **state) {
    (void)state;
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
    assert_int_equal(divvy_semaphore_resize(a->semaphore, 2, -2), DIVVY_EINVAL);
}

/* Who waits for more slots than a lowered limit has is told so, and lets those behind go on. */
static void test_resize_below_what_is_wanted(void **state) {
    (void)state;
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
    assert_int_equal(b->result, DIVVY_ELIMIT);
    assert_int_equal(c->result, DIVVY_ELIMIT);
    assert_int_equal(d->result, 0);
}

/* A resize makes a pool that is not there; one that a connection interrupts goes on; one without any times out. */
static void test_resize_of_nothing_and_offline(void **state) {
    (void)state;
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
static void test_beside_kazoo(void **state) {
    (void)state;
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

/* --- who is there ----------------------------------------------------------------------------------------------- */

/* Holders and contenders are listed with what is known of them, kazoo's by their identifiers; what cannot be understood
 * is left out and counted; where nothing is, nobody is. */
static void test_holders_and_contenders(void **state) {
    (void)state;
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
    assert_int_equal(divvy_semaphore_contenders(d->semaphore, &list, 5000), 0);
    assert_int_equal(divvy_holders_count(list), 3);
    assert_string_equal(divvy_holders_identifier(list, 0), "caf\xc3\xa9");
    assert_string_equal(divvy_holders_identifier(list, 1), "user-2");
    assert_string_equal(divvy_holders_identifier(list, 2), "user-3");
    assert_int_equal(divvy_holders_slot(list, 1), -1);
    divvy_holders_free(list);
}

/* A record that is too deep, too long or broken spoils neither the list nor the count of what is taken. */
static void test_bad_records(void **state) {
    (void)state;
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

/* More holders than reads that may be under way at a time are all listed; in a callback, and offline, nobody is. */
static void test_many_holders(void **state) {
    (void)state;
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

/* --- ends ------------------------------------------------------------------------------------------------------- */

/* Destroying tells a waiting acquire so, once, before it returns; in the acquire's own callback too it may be. */
static void test_destroy(void **state) {
    (void)state;
    user *a = make(0, 1), *b = make(1, 1), *c = make(2, 1);
    hold(a);
    assert_true(ask(b, -1));
    run(500);
    destroy(b);
    assert_int_equal(b->result, DIVVY_ECANCELED);
    c->destroys_when_done = 1;
    assert_true(ask(c, -1));
    run(500);
    let_go(a);
    run(500);
    assert_int_equal(c->result, 0);
    assert_null(c->semaphore);
    run(500);
    assert_int_equal(node_count, 0);
}

/* Closing the client ends what waits and what is held, without on_lost; afterwards calls say so. */
static void test_close(void **state) {
    (void)state;
    user *a = make(0, 1), *b = make(1, 1);
    hold(a);
    assert_true(ask(b, -1));
    run(500);
    b->cancelled = true;
    divvy_client_close(clients[1]);
    assert_int_equal(b->result, DIVVY_ECANCELED);
    divvy_client_close(clients[0]);
    assert_false(divvy_semaphore_held(a->semaphore));
    assert_int_equal(a->lost, 0);
    run(500);
    assert_int_equal(node_count, 0);
    assert_int_equal(divvy_semaphore_acquire(a->semaphore, 100), DIVVY_ECLOSED);
    assert_int_equal(divvy_semaphore_resize(a->semaphore, 2, 100), DIVVY_ECLOSED);
    assert_int_equal(divvy_semaphore_release(a->semaphore), DIVVY_ENOTHELD);
    destroy(a);
    destroy(b);
    user_count = 0;
    divvy_client_config client = DIVVY_CLIENT_CONFIG_INIT;
    client.manual = 1;
    for (int i = 0; i < 2; i++) assert_int_equal(divvy_testing_client_open(&clients[i], ensemble, &client), 0);
}

/* --- what it costs ---------------------------------------------------------------------------------------------- */

static divvy_stats stats_of(const user *u) {
    divvy_stats stats;
    assert_int_equal(divvy_client_stats(u->client, &stats), 0);
    return stats;
}

/* Acquire and release in a pool that is there: three requests that wait for each other, and no watch. */
static void test_requests(void **state) {
    (void)state;
    user *a = make(0, 2);
    hold(a);
    let_go(a);
    run(50);
    divvy_stats before = stats_of(a);
    assert_true(ask(a, -1));
    run(20);
    assert_int_equal(a->result, 0);
    let_go(a);
    run(20);
    divvy_stats after = stats_of(a);
    assert_int_equal(after.sets - before.sets, 1);
    assert_int_equal(after.creates - before.creates, 2);
    assert_int_equal(after.deletes - before.deletes, 2);
    assert_in_range(after.reads - before.reads, 3, 4); /* the queue, limit and leases; the token where it needs one */
    assert_int_equal(after.watch_events - before.watch_events, 0);
}

/* A slot that is handed over wakes one waiter, however many there are, which reads once and writes once; the one behind
 * it comes to the head by that, and looks. The others hear nothing. */
static void test_hand_over(void **state) {
    (void)state;
    enum { WAITERS = 4 };
    user *holder = make(0, 1), *all[WAITERS];
    divvy_stats before[WAITERS];
    hold(holder);
    for (int i = 0; i < WAITERS; i++) {
        assert_true(ask(all[i] = make(1 + i, 1), -1));
        run(200);
    }
    for (int i = 0; i < WAITERS; i++) before[i] = stats_of(all[i]);
    let_go(holder);
    for (int i = 0; i < 50 && all[0]->result == NEVER; i++) run(1);
    assert_int_equal(all[0]->result, 0);
    divvy_stats after = stats_of(all[0]);
    assert_int_equal(after.watch_events - before[0].watch_events, 1);
    assert_int_equal(after.sets - before[0].sets, 1);
    assert_in_range(after.reads - before[0].reads, 1, 2); /* the second: the token, where the write does not tell it */
    run(200);
    after = stats_of(all[1]);
    assert_int_equal(after.watch_events - before[1].watch_events, 1);
    assert_int_equal(after.reads - before[1].reads, 3); /* the queue, the limit, the leases */
    for (int i = 2; i < WAITERS; i++) {
        after = stats_of(all[i]);
        assert_int_equal(after.watch_events - before[i].watch_events, 0);
        assert_int_equal(after.reads - before[i].reads, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_create, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_slots_and_order, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_waiting_calls, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_try_does_not_overtake, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_cancel, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_reacquire, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_all_or_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_scattered_slots, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_more_than_the_limit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_limit_differs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_limit_is_no_number, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_limit_is_unset, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_limit_policies, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_resize, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_resize_below_what_is_wanted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_resize_of_nothing_and_offline, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_beside_kazoo, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_holders_and_contenders, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_bad_records, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_many_holders, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_destroy, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_close, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_requests, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_hand_over, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
