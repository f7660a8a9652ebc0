/* Tests of divvy/semaphore.h under faults, on an in-memory ensemble in virtual time: replies lost at every step,
 * sessions that come and go, nodes deleted by strangers, and random schedules. What is checked in every step:
 * semaphore_fixture.h.
 *
 * DIVVY_TEST_SEED=n replays one random schedule. SPDX-License-Identifier: Apache-2.0 */
#include "semaphore_fixture.h"

#include "lib/seed.h"

/* --- lost replies ----------------------------------------------------------------------------------------------- */

static const char *const fates[] = {"not applied", "applied", "applied late"};

static void step(int steps) {
    for (int i = 0; i < steps; i++) step_until(divvy_testing_now_ms(ensemble) + 1);
}

/* One that acquires in the queue, or by the shortcut, as its object has held before. */
static user *make_contender(bool by_shortcut) {
    user *before = make(by_shortcut ? 0 : 2, 1);
    hold(before);
    let_go(before);
    run(100);
    return by_shortcut ? before : make(0, 1);
}

/* One acquire and release; the connection breaks `steps` events after one of them began. */
static void break_at(int steps, bool by_shortcut, bool in_release, divvy_testing_fate fate) {
    user *a = make_contender(by_shortcut), *b = make(1, 1);
    int done = a->done;
    assert_true(ask(a, -1));
    if (in_release) {
        run(100);
        assert_int_equal(a->result, 0);
        let_go(a);
    }
    step(steps);
    divvy_testing_disconnect(ensemble, clients[0], fate, 300);
    run(3000);
    if (!in_release) {
        CLAIM(a->result == 0 && divvy_semaphore_held(a->semaphore), "not held; %d steps, %s", steps, fates[fate]);
        CLAIM(node_count == 1, "%zu nodes; %d steps, %s", node_count, steps, fates[fate]);
        let_go(a);
        run(3000);
    }
    CLAIM(node_count == 0, "%s is left; %d steps, %s", nodes[0].path, steps, fates[fate]);
    CLAIM(a->done == done + 1 && a->lost == 0, "done %d times, lost %d times", a->done, a->lost);
    hold(b);
    for (size_t i = 0; i < user_count; i++) destroy(&users[i]);
    run(500);
    user_count = 0;
}

/* A slot is had once, and given back, whatever was applied of an acquire or of a release when the connection broke. */
TEST_IN(test_lost_replies, set_up, tear_down) {
    for (int fate = 0; fate < 3; fate++) {
        for (int steps = 0; steps < 24; steps++) {
            for (int kind = 0; kind < 4; kind++) break_at(steps, kind % 2, kind / 2, (divvy_testing_fate)fate);
        }
    }
}

/* Likewise where the acquire is given up right after the connection broke: nothing stays, in the queue (kazoo #429) or
 * in the pool. */
TEST_IN(test_given_up_in_doubt, set_up, tear_down) {
    for (int fate = 0; fate < 3; fate++) {
        for (int i = 0; i < 48; i++) {
            int steps = i / 2;
            user *a = make_contender(i % 2);
            assert_true(ask(a, -1));
            step(steps);
            divvy_testing_disconnect(ensemble, clients[0], (divvy_testing_fate)fate, 300);
            a->cancelled = true;
            assert_int_equal(divvy_semaphore_cancel(a->semaphore, 0), 0);
            run(steps % 2 ? 3000 : 0);
            for (size_t k = 0; k < user_count; k++) destroy(&users[k]);
            run(3000);
            CLAIM(node_count == 0, "%s is left; %d steps, %s", nodes[0].path, steps, fates[fate]);
            user_count = 0;
        }
    }
}

/* The first acquire of all, which makes the paths and writes the limit, stands a break at every step too. */
TEST_IN(test_broken_while_making, set_up, tear_down) {
    for (int fate = 0; fate < 3; fate++) {
        for (int steps = 0; steps < 60; steps += 3) {
            user *a = make(0, 3);
            assert_true(ask(a, -1));
            step(steps);
            divvy_testing_disconnect(ensemble, clients[0], (divvy_testing_fate)fate, 300);
            run(4000);
            CLAIM(a->result == 0, "not held; %d steps, %s: %s", steps, fates[fate], a->reason);
            assert_string_equal(pool_data(), "3");
            destroy(a);
            run(1000);
            removed(POOL);
            removed(QUEUE);
            user_count = 0;
        }
    }
}

/* --- another limit in between ----------------------------------------------------------------------------------- */

/* The limit is lowered at any moment of an acquire: either that was earlier, or it waits. Each step is checked. */
TEST_IN(test_limit_lowered_in_between, set_up, tear_down) {
    unsigned earlier = 0, waited = 0;
    for (int steps = 0; steps < 24; steps++) {
        divvy_testing_put(ensemble, POOL, "2", 1, DIVVY_TESTING_PERSISTENT);
        run(100);
        user *a = make(0, 2), *b = make_with(1, 2, 1, DIVVY_LIMIT_STORED);
        hold(a);
        assert_true(ask(b, -1));
        step(steps);
        divvy_testing_put(ensemble, POOL, "1", 1, DIVVY_TESTING_PERSISTENT);
        run(1000);
        *(b->result == 0 ? &earlier : &waited) += 1;
        assert_int_equal(taken_now(), b->result == 0 ? 2 : 1);
        assert_string_equal(pool_data(), "1");
        destroy(a);
        destroy(b);
        run(500);
        user_count = 0;
    }
    assert_true(earlier > 0 && waited > 0);
}

/* --- nodes deleted by strangers --------------------------------------------------------------------------------- */

static const char *path_in(bool leases) {
    for (size_t i = 0; i < node_count; i++) {
        if (nodes[i].leases == leases) return nodes[i].path;
    }
    return "";
}

/* A lease that somebody deletes is lost, and told so, once, within half a session: so leases can be revoked (Curator
 * #1166). It can be had again, in on_lost too. */
TEST_IN(test_lease_deleted, set_up, tear_down) {
    user *a = make(0, 1), *before = make(0, 2);
    for (int i = 0; i < 2; i++) {
        killed = true; /* Belief ends only with the audit. */
        hold(a);
        a->acquires_when_lost = i;
        removed(path_in(true));
        run(SESSION_MS);
        assert_int_equal(a->lost, i + 1);
        assert_int_equal(divvy_semaphore_release(a->semaphore), i ? 0 : DIVVY_ENOTHELD);
        run(500);
        assert_int_equal(node_count, 0);
    }
    assert_int_equal(before->lost, 0);
}

/* A place in the queue that somebody deletes is taken again, at its end; so are a queue and a pool that vanish. */
TEST_IN(test_queue_deleted, set_up, tear_down) {
    user *a = make(0, 1), *b = make(1, 1), *c = make(2, 1);
    hold(a);
    assert_true(ask(b, -1));
    run(500);
    assert_true(ask(c, -1));
    run(500);
    removed(path_in(false));
    run(SESSION_MS);
    assert_int_equal(count_nodes(false), 2);
    let_go(a);
    run(2000);
    assert_int_equal(b->result == 0 ? c->result : b->result, NEVER);
    user *first = b->result == 0 ? b : c, *second = first == b ? c : b;
    let_go(first);
    run(2000);
    assert_int_equal(second->result, 0);
    let_go(second);
    run(100);
    for (int i = 0; i < 2; i++) {
        removed(QUEUE);
        removed(POOL);
        hold(a);
        let_go(a);
        run(100);
    }
    assert_string_equal(pool_data(), "1");
}

/* The pool vanishes under a head that waits for a stranger's lease: it is made again, and the slot is had. */
TEST_IN(test_pool_deleted_under_the_head, set_up, tear_down) {
    user *a = make(0, 1);
    hold(a);
    let_go(a);
    run(100);
    put(POOL "/" KAZOO_GUID, "kazoo-1", DV_EPHEMERAL);
    assert_true(ask(a, -1));
    run(500);
    assert_int_equal(a->result, NEVER);
    divvy_testing_link_client(ensemble, clients[0], DIVVY_TESTING_LINK_DOWN);
    removed(POOL "/" KAZOO_GUID);
    removed(POOL);
    divvy_testing_link_client(ensemble, clients[0], DIVVY_TESTING_LINK_UP);
    run(2 * SESSION_MS);
    assert_int_equal(a->result, 0);
    assert_string_equal(pool_data(), "1");
}

/* Close to the end of the queue's numbers, where they would no longer tell who came first, nobody enters it; with the
 * empty queue deleted they start again. */
TEST_IN(test_numbers_used_up, set_up, tear_down) {
    user *before = make(1, 1), *a = make(0, 1);
    hold(before);
    let_go(before);
    run(100);
    assert_int_equal(divvy_testing_set_sequence(ensemble, QUEUE, INT32_MAX - (1 << 20)), 0);
    assert_true(ask(a, -1));
    run(500);
    assert_int_equal(a->result, DIVVY_EEXHAUSTED);
    assert_int_equal(node_count, 0);
    removed(QUEUE);
    hold(a);
}

/* --- sessions --------------------------------------------------------------------------------------------------- */

/* The session expires while held: on_lost, once, and the same object holds again on the next session. */
TEST_IN(test_expired_while_held, set_up, tear_down) {
    user *a = make(0, 1);
    killed = true;
    for (int i = 1; i <= 3; i++) {
        assert_true(ask(a, -1));
        run(2 * SESSION_MS);
        assert_int_equal(a->result, 0);
        divvy_testing_expire(ensemble, clients[0]);
        divvy_testing_disconnect(ensemble, clients[0], DIVVY_TESTING_NOT_APPLIED, 0);
        for (int ms = 0; ms < 2 * SESSION_MS && a->lost < i; ms++) run(1);
        assert_int_equal(a->lost, i);
        assert_int_equal(divvy_semaphore_slot(a->semaphore), -1);
        assert_int_equal(divvy_semaphore_release(a->semaphore), DIVVY_ENOTHELD);
    }
}

/* The session expires while waiting, at the head or behind it: the acquire goes on on the next one, in its time; when
 * that is over it is over. */
TEST_IN(test_expired_while_waiting, set_up, tear_down) {
    user *a = make(0, 1), *b = make(1, 1), *c = make(2, 1);
    hold(a);
    assert_true(ask(b, 60000));
    run(300);
    assert_true(ask(c, -1));
    run(300);
    divvy_testing_expire(ensemble, clients[1]);
    run(2 * SESSION_MS);
    assert_int_equal(b->result, NEVER);
    assert_int_equal(count_nodes(false), 2);
    divvy_testing_expire(ensemble, clients[1]);
    run(2 * SESSION_MS);
    let_go(a);
    run(500);
    assert_int_equal(c->result, 0);
    let_go(c);
    run(500);
    assert_int_equal(b->result, 0);
    divvy_testing_link_client(ensemble, clients[2], DIVVY_TESTING_LINK_DOWN);
    int64_t began = divvy_testing_now_ms(ensemble);
    c->cancelled = true;
    assert_int_equal(divvy_semaphore_acquire(c->semaphore, 3 * SESSION_MS), DIVVY_ETIMEDOUT);
    assert_in_range(divvy_testing_now_ms(ensemble) - began, 3 * SESSION_MS, 3 * SESSION_MS + 50);
    began = divvy_testing_now_ms(ensemble);
    assert_int_equal(divvy_semaphore_try_acquire(c->semaphore), DIVVY_ETIMEDOUT);
    assert_in_range(divvy_testing_now_ms(ensemble) - began, 0, 1000);
    divvy_testing_heal(ensemble);
    run(4 * SESSION_MS);
    assert_int_equal(node_count, 1);
}

/* Dead holders go by their sessions; cut off ones stop to believe before anybody else is admitted, which is checked in
 * every step. */
TEST_IN(test_cut_off_and_crashed, set_up, tear_down) {
    user *a = make(0, 2), *b = make(1, 2), *c = make(2, 2), *d = make(3, 2);
    hold(a);
    hold(b);
    assert_true(ask(c, -1));
    run(500);
    assert_true(ask(d, -1));
    run(500);
    divvy_testing_link_client(ensemble, clients[0], DIVVY_TESTING_LINK_DOWN);
    divvy_testing_crash_client(ensemble, clients[1]);
    divvy_semaphore *dead = b->semaphore; /* A dead process's belief is nobody's concern. */
    b->semaphore = NULL;
    run(4 * SESSION_MS);
    assert_int_equal(a->lost, 1);
    assert_int_equal(c->result, 0);
    assert_int_equal(d->result, 0);
    divvy_testing_heal(ensemble);
    divvy_semaphore_destroy(dead);
}

/* --- random schedules ------------------------------------------------------------------------------------------- */

static void act(user *u) {
    static const int64_t timeouts[] = {0, 0, 100, 1500, 8000, -1, -1, -1};
    if (u->waiting && draw(12) == 0) {
        u->cancelled = true;
        divvy_semaphore_cancel(u->semaphore, 0);
    } else if (divvy_semaphore_held(u->semaphore)) {
        if (draw(3) == 0) assert_int_equal(divvy_semaphore_release(u->semaphore), 0);
    } else if (!u->waiting) {
        ask(u, timeouts[draw(8)]);
    }
}

static bool is_idle(const divvy_client *client) {
    for (size_t i = 0; i < user_count; i++) {
        if (users[i].client == client && (users[i].waiting || divvy_semaphore_held(users[i].semaphore))) return false;
    }
    return true;
}

static void break_something(void) {
    divvy_client *client = clients[draw(CLIENTS)];
    unsigned server = (unsigned)draw(3);
    char limit[12];
    switch (draw(14)) {
    case 0:
        if (is_idle(client)) divvy_testing_expire(ensemble, client); /* Killed while in use: see `killed`. */
        break;
    case 1:
    case 10: divvy_testing_link_client(ensemble, client, (divvy_testing_link)draw(4)); break;
    case 2:
    case 11: divvy_testing_pause_client(ensemble, client, 1); break;
    case 3: divvy_testing_kill_server(ensemble, server); break;
    case 4: divvy_testing_pause_server(ensemble, server, 1); break;
    case 5: divvy_testing_link_servers(ensemble, server, (server + 1) % 3, (divvy_testing_link)draw(4)); break;
    case 6: divvy_testing_lag_server(ensemble, server, (int64_t)draw(600)); break;
    case 7: divvy_testing_heal(ensemble); break;
    case 12: /* another limit, as resize writes it */
    case 13:
        snprintf(limit, sizeof limit, "%d", 2 + (int)draw(4));
        if (limit_in_force) divvy_testing_put(ensemble, POOL, limit, strlen(limit), DIVVY_TESTING_PERSISTENT);
        break;
    default: divvy_testing_disconnect(ensemble, client, (divvy_testing_fate)draw(3), (int64_t)draw(3000));
    }
}

/* Heals everything. The waiters get their slots when the others release. */
static void calm_down(void) {
    divvy_testing_heal(ensemble);
    divvy_testing_put(ensemble, POOL, "3", 1, DIVVY_TESTING_PERSISTENT);
    run(6 * SESSION_MS);
    divvy_testing_put(ensemble, POOL, "3", 1, DIVVY_TESTING_PERSISTENT);
    for (size_t i = 0; i < user_count; i++) {
        if (!users[i].waiting && !divvy_semaphore_held(users[i].semaphore)) CLAIM(ask(&users[i], -1), "cannot ask");
    }
    for (size_t round = 0; round < 2 * USERS; round++) {
        for (size_t i = 0; i < user_count; i++) divvy_semaphore_release(users[i].semaphore);
        run(500);
    }
    for (size_t i = 0; i < user_count; i++) CLAIM(!users[i].waiting, "user %zu still waits", i);
    run(2000);
    CLAIM(node_count == 0, "%s is left", nodes[0].path);
}

static void run_schedule(uint64_t number) {
    seed = random_state = number;
    open_clients();
    for (int i = 0; i < USERS; i++)
        make_with(i % CLIENTS, 4, draw(4) == 0 ? 2 + (uint32_t)draw(2) : 1, DIVVY_LIMIT_STORED);
    unsigned calm = 3 + (unsigned)draw(40);     /* so many actions of users to a fault */
    uint64_t active = draw(3) == 0 ? 3 : USERS; /* With few of them the shortcut is free (E14). */
    for (int i = 0; i < 500; i++) {
        act(&users[draw(active)]);
        if (draw(calm) == 0) break_something();
        run((int64_t)draw(200));
    }
    calm_down();
    close_clients();
}

/* Twelve users on five clients, some of several slots, with faults and limits at random: never above the limit in
 * force, never a slot twice, tokens of a slot grow; each acquire ends once and in its time; everyone gets in; nothing
 * is left. */
TEST(test_random_schedules) {
    enum { SCHEDULES = 40, FRESH = 20 };
    const char *one = getenv("DIVVY_TEST_SEED");
    if (one) {
        run_schedule(strtoull(one, NULL, 10));
        return;
    }
    memset(results, 0, sizeof results);
    shortcuts = 0;
    for (uint64_t i = 0; i < SCHEDULES + FRESH; i++)
        run_schedule(dv_test_seed_of_run(i, SCHEDULES, "unit_semaphore_faults"));
    print_message("granted %u, %u of them by the shortcut, timed out %u, busy %u, canceled %u, lost %u, too many %u\n",
                  results[GRANTED], shortcuts, results[TIMED_OUT], results[BUSY], results[CANCELED], results[LOST],
                  results[TOO_MANY]);
    assert_true(shortcuts > 100);
    assert_true(results[GRANTED] > 1000 && results[TIMED_OUT] > 100 && results[BUSY] > 100 && results[CANCELED] > 100 &&
                results[LOST] > 20 && results[TOO_MANY] > 5);
}
