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

/* A wrong configuration is refused, with a reason, and nothing is sent for a right one. */
TEST(test_create) {
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
    assert_int_equal(create("/s", "me", 1, 0x80000000u, 0), DIVVY_EINVAL);
    assert_int_equal(create("/s", "me", INT32_MAX, INT32_MAX, 0), 0);
    assert_int_equal(create("/s", "me", 1, 1, 3), DIVVY_EINVAL);
    assert_int_equal(create("/s", "me", 1, 1, -1), DIVVY_EINVAL);
    assert_int_equal(create("/s", NULL, 1, 1, DIVVY_LIMIT_STORED), 0);
    run(100);
    assert_false(divvy_testing_exists(ensemble, "/s"));
    divvy_semaphore *none = (divvy_semaphore *)(void *)long_name;
    divvy_semaphore_config config = DIVVY_SEMAPHORE_CONFIG_INIT;
    assert_int_equal(divvy_semaphore_create(NULL, clients[0], &config), DIVVY_EINVAL);
    assert_int_equal(divvy_semaphore_create(&none, clients[0], NULL), DIVVY_EINVAL);
    assert_null(none);
    assert_int_equal(divvy_semaphore_acquire(NULL, 0), DIVVY_EINVAL);
    assert_int_equal(divvy_semaphore_release(NULL), DIVVY_EINVAL);
    assert_int_equal(divvy_semaphore_held(NULL), 0);
    assert_int_equal(divvy_semaphore_slot(NULL), -1);
    assert_int_equal(divvy_semaphore_token(NULL), 0);
    divvy_semaphore_destroy(NULL);
    divvy_holders_free(NULL);
}

static divvy_stats stats_of(const user *u) {
    divvy_stats stats;
    assert_int_equal(divvy_client_stats(u->client, &stats, sizeof stats), 0);
    return stats;
}

/* --- acquiring, as kazoo's tests have it ------------------------------------------------------------------------ */

/* Two of three get a slot each, with numbers and growing tokens; the third gets the first that is given back, and its
 * number. The names in the pool are those of E5: the guid, the slot, the count. */
TEST(test_slots_and_order) {
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
TEST(test_waiting_calls) {
    user *a = make(0, 1), *b = make(1, 1);
    a->cancelled = b->cancelled = true;
    assert_int_equal(divvy_semaphore_release(a->semaphore), DIVVY_ENOTHELD);
    divvy_holders *holders;
    assert_int_equal(divvy_semaphore_acquire(a->semaphore, -2), DIVVY_EINVAL);
    assert_int_equal(divvy_semaphore_holders(a->semaphore, &holders, -2), DIVVY_EINVAL);
    assert_int_equal(divvy_semaphore_contenders(a->semaphore, NULL, 0), DIVVY_EINVAL);
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
TEST(test_try_does_not_overtake) {
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

/* Tries that come at the same moment never get more than is free (kazoo #213), and get that; the others leave
 * nothing. */
TEST(test_tries_at_once) {
    enum { TRIES = 5, LIMIT = 3 };
    user *held = make(0, LIMIT), *all[TRIES];
    int granted = 0;
    hold(held);
    for (int i = 0; i < TRIES; i++) all[i] = make(i % CLIENTS, LIMIT);
    for (int i = 0; i < TRIES; i++) assert_true(ask(all[i], 0));
    run(1000);
    for (int i = 0; i < TRIES; i++) {
        assert_true(all[i]->result == 0 || all[i]->result == DIVVY_EBUSY);
        granted += all[i]->result == 0;
    }
    assert_in_range(granted, 1, LIMIT - 1);
    assert_int_equal(count_nodes(true), 1 + granted);
    assert_int_equal(count_nodes(false), 0);
}

/* The timeout is total: woken at the head again and again it still ends at its time (kazoo's restarts on each wake-up),
 * without a node; and watches that did not fire do not pile up from one acquire to the next (kazoo #413). */
TEST(test_timeout_is_total) {
    user *a = make(0, 1), *b = make(1, 1);
    hold(a);
    assert_true(ask(b, 3000));
    run(400);
    uint64_t before = stats_of(b).watch_events;
    for (int i = 0; i < 6; i++) {
        assert_int_equal(raw(DV_SET, POOL, "1", 0), 0);
        run(400);
        assert_int_equal(b->result, NEVER);
    }
    assert_int_equal(stats_of(b).watch_events - before, 6);
    run(b->asked_at + 3050 - divvy_testing_now_ms(ensemble));
    assert_int_equal(b->result, DIVVY_ETIMEDOUT);
    run(50);
    assert_int_equal(node_count, 1);
    uint64_t watches = stats_of(b).watches;
    for (int i = 0; i < 5; i++) {
        assert_true(ask(b, 300));
        run(400);
        assert_int_equal(b->result, DIVVY_ETIMEDOUT);
        assert_int_equal(stats_of(b).watches, watches);
    }
}

/* An acquire is cancelled where it waits at the head, where it waits in the queue, and where none waits, which does
 * nothing to the next one; a slot that is held stays so. */
TEST(test_cancel) {
    user *a = make(0, 1), *b = make(1, 1), *c = make(2, 1);
    assert_int_equal(divvy_semaphore_cancel(a->semaphore, 0), 0);
    hold(a);
    assert_int_equal(divvy_semaphore_cancel(a->semaphore, 0), 0);
    assert_true(divvy_semaphore_held(a->semaphore));
    for (int i = 0; i < 2; i++) {
        user *head = i ? c : b, *queued = i ? b : c;
        assert_true(ask(head, -1));
        run(500);
        assert_true(ask(queued, -1));
        run(500);
        queued->cancelled = true;
        assert_int_equal(divvy_semaphore_cancel(queued->semaphore, 0), 0);
        run(500);
        assert_int_equal(queued->result, DIVVY_ECANCELED);
        assert_int_equal(node_count, 2);
        head->cancelled = true;
        assert_int_equal(divvy_semaphore_cancel(head->semaphore, 0), 0);
        run(500);
        assert_int_equal(head->result, DIVVY_ECANCELED);
        assert_int_equal(node_count, 1);
    }
    assert_true(ask(b, -1)); /* cancelled and asked again at once: the first is told, the second waits on */
    run(500);
    b->cancelled = true;
    assert_int_equal(divvy_semaphore_cancel(b->semaphore, 0), 0);
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
TEST(test_reacquire) {
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

/* A pool that the access list closes to us is told as that; once it is ours, the same object gets its slot. */
TEST(test_denied) {
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    user *owner = &users[user_count++], *a = make(0, 1);
    *owner = (user){.count = 1, .result = NEVER};
    config.manual = 1;
    config.auth_scheme = "digest";
    config.auth = "owner:secret";
    config.acl = DIVVY_ACL_CREATOR;
    put("/pools", "", 0);
    assert_int_equal(divvy_testing_client_open(&owner->client, ensemble, &config), 0);
    divvy_semaphore_config pool = config_of(owner, 1);
    assert_int_equal(divvy_semaphore_create(&owner->semaphore, owner->client, &pool), 0);
    hold(owner); /* makes the pool */
    let_go(owner);
    assert_true(ask(a, 5000));
    run(1000);
    assert_int_equal(a->result, DIVVY_EACCES);
    destroy(owner);
    run(1000);
    assert_int_equal(node_count, 0);
    removed(POOL);
    removed(QUEUE);
    hold(a);
    divvy_client_close(owner->client);
}

/* --- several slots ---------------------------------------------------------------------------------------------- */

/* Two who want two of three: one gets them, the other waits with none, and gets them when the first lets go. Callers of
 * Curator's InterProcessSemaphoreV2, which takes leases one by one, block each other. */
TEST(test_all_or_nothing) {
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
TEST(test_scattered_slots) {
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

/* More than there are is refused at once, also when others wait. */
TEST(test_more_than_the_limit) {
    user *a = make_with(0, 2, 3, DIVVY_LIMIT_ERROR), *b = make(1, 2);
    assert_true(ask(a, -1));
    run(1000);
    assert_int_equal(a->result, DIVVY_E2BIG);
    assert_non_null(strstr(a->reason, "3 slots"));
    hold(b);
    assert_true(ask(a, -1));
    run(1000);
    assert_int_equal(a->result, DIVVY_E2BIG);
    assert_int_equal(node_count, 1);
}

/* --- ends ------------------------------------------------------------------------------------------------------- */

/* Destroying tells a waiting acquire so, once, before it returns; in the acquire's own callback too it may be. */
TEST(test_destroy) {
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
TEST(test_close) {
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

/* Acquire and release in a pool that is there: three requests that wait for each other, and no watch. The shortcut is
 * in test_semaphore_shortcut.c. */
TEST(test_requests) {
    user *made = make(1, 2), *a = make(0, 2);
    hold(made);
    let_go(made);
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
TEST(test_hand_over) {
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

TEST_EACH(set_up, tear_down);
