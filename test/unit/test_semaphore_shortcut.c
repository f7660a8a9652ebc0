/* Tests of the shortcut to a semaphore's slots, rule E14 of docs/protocol.md, on an in-memory ensemble. What is checked
 * in every step: semaphore_fixture.h. SPDX-License-Identifier: Apache-2.0 */
#include "semaphore_fixture.h"

enum { WANTED_AFTER_MISS = 8 };

static divvy_stats stats_of(const user *u) {
    divvy_stats stats;
    assert_int_equal(divvy_client_stats(u->client, &stats, sizeof stats), 0);
    return stats;
}

static void use(user *u) {
    hold(u);
    let_go(u);
    run(50);
}

/* One that takes the shortcut by its next acquire. */
static user *make_known(int client, uint32_t limit, uint32_t count) {
    user *u = make_with(client, limit, count, DIVVY_LIMIT_STORED);
    use(u);
    return u;
}

/* Returns how many nodes an acquire makes that is not disturbed: one by the shortcut, two with a place in the queue. */
static uint64_t count_creates(user *u) {
    uint64_t before = stats_of(u).creates;
    use(u);
    return stats_of(u).creates - before;
}

/* The second acquire of an object is one create, and three reads in the same turn; a release is a delete. Nothing is
 * set, and nothing watched. */
TEST_IN(test_requests, set_up, tear_down) {
    user *a = make_known(0, 2, 1);
    divvy_stats before = stats_of(a);
    unsigned before_shortcuts = shortcuts;
    assert_true(ask(a, -1));
    run(20);
    assert_int_equal(a->result, 0);
    assert_int_equal(shortcuts - before_shortcuts, 1);
    let_go(a);
    run(20);
    divvy_stats after = stats_of(a);
    assert_int_equal(after.requests - after.checks - before.requests + before.checks, 5);
    assert_int_equal(after.sets - before.sets, 0);
    assert_int_equal(after.creates - before.creates, 1);
    assert_int_equal(after.deletes - before.deletes, 1);
    assert_int_equal(after.reads - before.reads, 3);
    assert_int_equal(after.watch_events - before.watch_events, 0);
    assert_int_equal(after.watches, before.watches);
}

static const dv_znode_backend *real;
static unsigned refused;

static int submit_no_list(dv_znode *znode, const dv_op *op, dv_watch *watch, dv_reply_fn done, void *context) {
    if (op->kind != DV_CHILDREN) return real->submit(znode, op, watch, done, context);
    assert_true(++refused < 10); /* It waits for a moment before it tries again. */
    return DIVVY_ENOMEM;
}

/* Where there is no memory to list what is behind the lease, it does not count, and the acquire goes to the queue. */
TEST_IN(test_no_memory_for_lists, set_up, tear_down) {
    user *a = make_known(0, 2, 1);
    dv_znode *znode = a->client->znode;
    real = znode->backend;
    dv_znode_backend scarce = *real;
    scarce.submit = submit_no_list;
    znode->backend = &scarce;
    refused = 0;
    unsigned before = shortcuts;
    assert_true(ask(a, -1));
    run(20);
    znode->backend = real;
    assert_int_equal(a->result, NEVER);
    run(500);
    assert_int_equal(a->result, 0);
    assert_int_equal(shortcuts, before);
}

/* It is acquired again while the delete of the lease before is under way: the shortcut comes behind it. */
TEST_IN(test_at_once_after_a_release, set_up, tear_down) {
    user *a = make_known(0, 1, 1);
    uint64_t before = stats_of(a).creates;
    for (int i = 0; i < 20; i++) {
        a->cancelled = true;
        assert_int_equal(divvy_semaphore_acquire(a->semaphore, 5000), 0);
        assert_int_equal(divvy_semaphore_release(a->semaphore), 0);
    }
    assert_int_equal(stats_of(a).creates - before, 20);
}

/* An object keeps its slots, several too, where others take the lowest that are free. */
TEST_IN(test_same_slots, set_up, tear_down) {
    user *first = make(1, 8);
    hold(first);
    user *a = make_known(0, 8, 3);
    let_go(first);
    run(50);
    unsigned before = shortcuts;
    hold(a);
    assert_int_equal(shortcuts - before, 1);
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(divvy_semaphore_slot_at(a->semaphore, i), 1 + i);
    let_go(a);
}

/* A try does not take it: of several that come at one moment to free slots, one has to get them. */
TEST_IN(test_try_goes_to_the_queue, set_up, tear_down) {
    user *a = make_known(0, 1, 1), *b = make_known(1, 1, 1);
    unsigned before = shortcuts;
    assert_true(ask(a, 0));
    assert_true(ask(b, 0));
    run(500);
    assert_int_equal((a->result == 0) + (b->result == 0), 1);
    assert_int_equal(shortcuts, before);
}

/* One who waits for more slots than are free is not overtaken: `a` tries the shortcut, and goes to the queue behind
 * that one. */
static void miss(user *a, user *holder, user *waits) {
    hold(holder);
    assert_true(ask(waits, -1));
    run(500);
    assert_true(ask(a, -1));
    run(500);
    assert_int_equal(a->result, NEVER);
    assert_int_equal(count_nodes(true), 1);
    assert_int_equal(count_nodes(false), 2);
    let_go(holder);
    run(500);
    assert_int_equal(waits->result, 0);
    assert_int_equal(a->result, NEVER);
    let_go(waits);
    run(500);
    assert_int_equal(a->result, 0);
    let_go(a);
    run(50);
}

/* Behind a miss an object takes the shortcut again only after eight acquires that it would have served. It is twice as
 * many behind each miss that follows, 256 at most, and eight again once a shortcut has served (E15). */
TEST_IN(test_somebody_waits, set_up, tear_down) {
    user *a = make_known(0, 2, 1), *holder = make(1, 2), *waits = make_with(2, 2, 2, DIVVY_LIMIT_STORED);
    static const int acquires[] = {WANTED_AFTER_MISS, 16, 32, 64, 128, 256, 256, WANTED_AFTER_MISS};
    for (size_t i = 0; i < sizeof acquires / sizeof *acquires; i++) {
        if (i == sizeof acquires / sizeof *acquires - 1) assert_int_equal(count_creates(a), 1);
        uint64_t before = stats_of(a).creates;
        miss(a, holder, waits);
        assert_int_equal(stats_of(a).creates - before, 3); /* one in vain */
        for (int n = 0; n < acquires[i]; n++) assert_int_equal(count_creates(a), 2);
    }
    assert_int_equal(count_creates(a), 1);
}

/* A slot that another object has taken since is not shared: the queue gives ours a free one. */
TEST_IN(test_slot_taken_since, set_up, tear_down) {
    user *a = make_known(0, 2, 1), *other = make(1, 2);
    hold(other);
    assert_int_equal(divvy_semaphore_slot(other->semaphore), 0);
    hold(a);
    assert_int_equal(divvy_semaphore_slot(a->semaphore), 1);
}

/* Two that come at one moment, by the shortcut, to one slot: one holds, the other waits. */
TEST_IN(test_two_at_once, set_up, tear_down) {
    for (int i = 0; i < 20; i++) {
        user *a = make_known(0, 1, 1), *b = make_known(1, 1, 1);
        assert_true(ask(a, -1));
        assert_true(ask(b, -1));
        run(500);
        assert_int_equal((a->result == 0) + (b->result == 0), 1);
        let_go(a->result == 0 ? a : b);
        run(500);
        assert_true(a->result == 0 && b->result == 0);
        destroy(a);
        destroy(b);
        run(50);
        user_count = 0;
    }
}

/* Another limit sends it to the queue: a lower one is kept to, and one that is provided is written. */
TEST_IN(test_other_limit, set_up, tear_down) {
    user *a = make_known(0, 2, 1), *holder = make_with(1, 2, 1, DIVVY_LIMIT_STORED);
    user *provides = make_with(2, 2, 1, DIVVY_LIMIT_PROVIDED);
    use(provides);
    hold(holder);
    assert_int_equal(divvy_semaphore_resize(holder->semaphore, 1, 1000), 0);
    assert_true(ask(a, -1));
    run(500);
    assert_int_equal(a->result, NEVER);
    assert_string_equal(pool_data(), "1");
    let_go(holder);
    run(500);
    assert_int_equal(a->result, 0);
    let_go(a);
    hold(provides);
    assert_string_equal(pool_data(), "2");
}

/* kazoo's lease takes a slot, without a number, and kazoo's place in the queue is waited for; several slots are refused
 * beside either. */
TEST_IN(test_beside_kazoo, set_up, tear_down) {
    user *a = make_known(0, 1, 1);
    put(POOL "/" KAZOO_GUID, "kazoo", DV_EPHEMERAL);
    assert_true(ask(a, -1));
    run(500);
    assert_int_equal(a->result, NEVER);
    removed(POOL "/" KAZOO_GUID);
    run(500);
    assert_int_equal(a->result, 0);
    let_go(a);
    run(50);
    user *b = make_known(1, 1, 1);
    put(QUEUE "/" KAZOO_GUID "__lock__", "kazoo", DV_EPHEMERAL | DV_SEQUENTIAL);
    assert_true(ask(b, 2000));
    run(500);
    assert_int_equal(b->result, NEVER);
    assert_int_equal(count_nodes(true), 0);
    run(2000);
    assert_int_equal(b->result, DIVVY_ETIMEDOUT);
}

/* Several slots are refused beside a kazoo process, as in the queue. */
TEST_IN(test_several_beside_kazoo, set_up, tear_down) {
    user *a = make_known(0, 4, 2);
    put(POOL "/" KAZOO_GUID, "kazoo", DV_EPHEMERAL);
    assert_true(ask(a, -1));
    run(500);
    assert_int_equal(a->result, DIVVY_ESTATE);
    assert_int_equal(count_nodes(true), 1);
    removed(POOL "/" KAZOO_GUID);
    for (int i = 0; i < 2; i++) use(a);
}

/* The pool is set, to the same limit, at each moment of an acquire by the shortcut, as an admission does. Its lease
 * counts where that was before it was made, or after its list; in between somebody may have held its slot by a later
 * token. Requests come one after the other, with up to 40 ms in between. */
TEST(test_set_in_between) {
    unsigned by_shortcut = 0, in_queue = 0;
    seed = random_state = 1;
    client_delay_max_ms = 40;
    open_clients();
    run(1000);
    for (int steps = 0; steps < 40; steps++) {
        user *a = make_known(0, 1, 1);
        unsigned before = shortcuts;
        assert_true(ask(a, -1));
        for (int i = 0; i < steps; i++) step_until(divvy_testing_now_ms(ensemble) + 1000);
        bool held = divvy_semaphore_held(a->semaphore);
        divvy_testing_put(ensemble, POOL, "1", 1, DIVVY_TESTING_PERSISTENT);
        run(2000);
        assert_int_equal(a->result, 0);
        bool same = shortcuts - before == 1;
        *(same ? &by_shortcut : &in_queue) += 1;
        if (held) assert_true(same);
        destroy(a);
        run(500);
        user_count = 0;
    }
    assert_true(by_shortcut > 0 && in_queue > 0);
    close_clients();
    client_delay_max_ms = 1;
}

/* A pool or a queue that has vanished is made again. */
TEST_IN(test_paths_deleted, set_up, tear_down) {
    user *a = make_known(0, 1, 1);
    removed(POOL);
    use(a);
    for (int i = 0; i < WANTED_AFTER_MISS; i++) use(a);
    removed(QUEUE);
    use(a);
    assert_string_equal(pool_data(), "1");
}

/* E15: a lease whose create was lost with the connection is one miss: eight acquires by the queue end the doubts. */
TEST_IN(test_lost_create, set_up, tear_down) {
    user *a = make_known(0, 2, 1);
    assert_true(ask(a, -1));
    assert_int_equal(divvy_testing_disconnect(ensemble, clients[0], DIVVY_TESTING_NOT_APPLIED, 0), 0);
    run(SESSION_MS);
    assert_int_equal(a->result, 0);
    let_go(a);
    run(50);
    int by_queue = 1; /* that one */
    while (count_creates(a) == 2) by_queue++;
    assert_int_equal(by_queue, WANTED_AFTER_MISS);
}

/* On servers without create2 the answer to the create comes behind the lists, and counts. */
TEST(test_without_create2) {
    seed = random_state = 1;
    server_release = DIVVY_TESTING_3_4;
    open_clients();
    run(500);
    user *a = make_known(0, 1, 1);
    unsigned before = shortcuts;
    for (int i = 0; i < 10; i++) use(a);
    assert_int_equal(shortcuts - before, 10);
    close_clients();
    server_release = 0;
}
