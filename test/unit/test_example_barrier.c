/* Tests of docs/examples/barrier on the in-memory ensemble, in virtual time. SPDX-License-Identifier: Apache-2.0
 *
 * DIVVY_TEST_SEED=n replays one random schedule. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "barrier.h"
#include "claim.h"
#include "divvy/divvy.h"
#include "divvy/testing.h"
#include "lib/seed.h"
#include "lib/test.h"

#define PATH "/barriers/b"
#define LONG_MS INT64_C(30000)

enum { N = 4, MEMBERS = 6, FIXED_SEEDS = 60, FRESH_SEEDS = 20 };

typedef struct {
    divvy_client *client;
    barrier *barrier;
    bool passed, over;
} member;

static divvy_testing_ensemble *ensemble;
static member members[MEMBERS];
static size_t here, most;          /* nodes of members in the truth: now, and the most that there ever were at once */
static size_t passes, late_passes; /* of all schedules; late: when fewer than N nodes were left */
static bool emptied;               /* no node is left, after N were there */

/* ---- the truth, and what is believed ---- */

static void on_transaction(const divvy_testing_transaction *t, void *user) {
    (void)user;
    if (!t->path || !strstr(t->path, PATH "/") || !strstr(t->path, "-member")) return;
    if (t->kind == DIVVY_TESTING_CREATE) here++;
    if (t->kind == DIVVY_TESTING_DELETE) here--;
    if (here > most) most = here;
    if (most >= N && here == 0) emptied = true;
}

/* Nobody passes before N members were there at once, and nobody is done with leaving before all have left. */
static void look(void) {
    for (member *m = members; m < members + MEMBERS; m++) {
        if (!m->barrier) continue;
        if (!m->passed && barrier_wait(m->barrier, 0) == 0) {
            m->passed = true;
            passes++;
            late_passes += here < N;
            CLAIM(most >= N, "member %td has passed, and no more than %zu were there", m - members, most);
        }
        if (m->over) CLAIM(emptied, "member %td is done, and %zu are still there", m - members, here);
    }
}

static void run(int64_t ms) {
    int64_t until = divvy_testing_now_ms(ensemble) + ms;
    while (divvy_testing_step(ensemble, until) == 1) look();
}

static size_t count_passed(void) {
    size_t count = 0;
    for (const member *m = members; m < members + MEMBERS; m++) count += m->passed;
    return count;
}

static size_t count_over(void) {
    size_t count = 0;
    for (member *m = members; m < members + MEMBERS; m++) {
        if (m->passed && !m->over) m->over = barrier_leave(m->barrier, 0) == 0;
        count += m->over;
    }
    look();
    return count;
}

/* ---- members ---- */

static void enter(int i) {
    assert_int_equal(barrier_enter(&members[i].barrier, members[i].client, PATH, N), 0);
}

static void open_clients(void) {
    divvy_testing_config config = DIVVY_TESTING_CONFIG_INIT;
    config.seed = seed;
    config.on_transaction = on_transaction;
    here = most = 0;
    emptied = false;
    assert_int_equal(divvy_testing_ensemble_create(&ensemble, &config), 0);
    for (int i = 0; i < MEMBERS; i++) {
        members[i] = (member){.client = NULL};
        divvy_client_config client = DIVVY_CLIENT_CONFIG_INIT;
        client.manual = 1;
        client.ensemble_tick_ms = 2000;
        client.session_timeout_ms = 20000;
        assert_int_equal(divvy_testing_client_open(&members[i].client, ensemble, &client), 0);
    }
}

static void close_clients(void) {
    for (int i = 0; i < MEMBERS; i++) barrier_destroy(members[i].barrier);
    for (int i = 0; i < MEMBERS; i++) divvy_client_close(members[i].client);
    divvy_testing_ensemble_destroy(ensemble);
}

static int set_up(void **state) {
    (void)state;
    seed = 1;
    open_clients();
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    close_clients();
    return 0;
}

static size_t count_children(void) {
    divvy_strings *children = divvy_testing_children(ensemble, PATH);
    size_t count = divvy_strings_count(children);
    divvy_strings_free(children);
    return count;
}

/* ---- tests ---- */

/* N - 1 members wait, however long; the last one opens the barrier for all. Leaving is the same, and leaves no node. */
TEST_IN(test_all_wait_for_all, set_up, tear_down) {
    for (int i = 0; i < N - 1; i++) enter(i);
    run(LONG_MS);
    assert_int_equal(here, N - 1);
    assert_int_equal(count_passed(), 0);
    assert_int_equal(barrier_wait(members[0].barrier, 1000), DIVVY_ETIMEDOUT);
    assert_int_equal(barrier_leave(members[0].barrier, 0), DIVVY_ESTATE);
    enter(N - 1);
    for (int i = 0; i < N; i++) assert_int_equal(barrier_wait(members[i].barrier, LONG_MS), 0);
    look();
    for (int i = 0; i < N - 1; i++) assert_int_equal(barrier_leave(members[i].barrier, 0), DIVVY_ETIMEDOUT);
    run(LONG_MS);
    assert_int_equal(here, 1);
    for (int i = 0; i < N - 1; i++) assert_int_equal(barrier_leave(members[i].barrier, 0), DIVVY_ETIMEDOUT);
    assert_int_equal(barrier_leave(members[N - 1].barrier, LONG_MS), 0);
    for (int i = 0; i < N; i++) assert_int_equal(barrier_leave(members[i].barrier, LONG_MS), 0);
    assert_int_equal(count_children(), 0);
}

/* A member that has crashed is not counted once its session has ended; a new member takes its place. */
TEST_IN(test_crashed_member, set_up, tear_down) {
    for (int i = 0; i < N - 1; i++) enter(i);
    run(1000);
    assert_int_equal(divvy_testing_crash_client(ensemble, members[0].client), 0);
    barrier_destroy(members[0].barrier);
    members[0].barrier = NULL;
    run(LONG_MS);
    assert_int_equal(here, N - 2);
    enter(N - 1);
    run(LONG_MS);
    assert_int_equal(count_passed(), 0);
    enter(N);
    run(1000);
    assert_int_equal(count_passed(), N);
}

/* A member that is cut off while the barrier opens passes when it is back, though all others have left by then. */
TEST_IN(test_slow_member, set_up, tear_down) {
    for (int i = 0; i < N - 1; i++) enter(i);
    run(1000);
    assert_int_equal(divvy_testing_link_client(ensemble, members[0].client, DIVVY_TESTING_LINK_DOWN), 0);
    enter(N - 1);
    run(1000);
    assert_int_equal(count_passed(), N - 1);
    assert_int_equal(count_over(), 0);
    run(1000);
    assert_int_equal(here, 1);
    assert_int_equal(divvy_testing_link_client(ensemble, members[0].client, DIVVY_TESTING_LINK_UP), 0);
    for (int i = 0; i < 15000 && !members[0].passed; i++) run(1);
    assert_true(members[0].passed);
    run(1000);
    assert_int_equal(count_over(), 0);
    run(1000);
    assert_int_equal(count_over(), N);
}

/* A lost session ends the wait, for good; so does the deletion of the path. A node that is no member and not
 * `ready` is passed over. */
TEST_IN(test_ends, set_up, tear_down) {
    enter(0);
    enter(1);
    run(1000);
    for (int i = 0; i < N; i++) {
        char path[64];
        snprintf(path, sizeof path, PATH "/stray-%d", i);
        assert_int_equal(divvy_testing_put(ensemble, path, "", 0, DIVVY_TESTING_PERSISTENT), 0);
    }
    run(1000);
    assert_int_equal(count_passed(), 0);
    assert_int_equal(divvy_testing_expire(ensemble, members[0].client), 0);
    assert_int_equal(barrier_wait(members[0].barrier, LONG_MS), DIVVY_ELOST);
    assert_non_null(strstr(divvy_client_error(members[0].client), PATH));
    assert_int_equal(barrier_leave(members[0].barrier, LONG_MS), DIVVY_ELOST);
    assert_int_equal(barrier_wait(members[1].barrier, 1000), DIVVY_ETIMEDOUT);
    divvy_client_close(members[1].client);
    members[1].client = NULL;
    assert_int_equal(barrier_wait(members[1].barrier, 1000), DIVVY_ECLOSED);
}

TEST_IN(test_arguments, set_up, tear_down) {
    barrier *b = (barrier *)(void *)&seed;
    assert_int_equal(barrier_enter(NULL, members[0].client, PATH, 1), DIVVY_EINVAL);
    assert_int_equal(barrier_enter(&b, NULL, PATH, 1), DIVVY_EINVAL);
    assert_null(b);
    assert_int_equal(barrier_enter(&b, members[0].client, NULL, 1), DIVVY_EINVAL);
    assert_int_equal(barrier_enter(&b, members[0].client, "relative", 1), DIVVY_EINVAL);
    assert_int_equal(barrier_enter(&b, members[0].client, PATH, 0), DIVVY_EINVAL);
    assert_int_equal(barrier_wait(NULL, 0), DIVVY_EINVAL);
    assert_int_equal(barrier_leave(NULL, 0), DIVVY_EINVAL);
    barrier_destroy(NULL);
    enter(0);
    assert_int_equal(barrier_wait(members[0].barrier, -2), DIVVY_EINVAL);
}

/* Breaks connections, in each of three ways, and delays servers. No session ends by it. */
static void do_harm(void) {
    member *m = &members[draw(N)];
    divvy_testing_fate fate = (divvy_testing_fate)draw(3);
    if (draw(4) > 0) divvy_testing_disconnect(ensemble, m->client, fate, (int64_t)draw(2000));
    else divvy_testing_lag_server(ensemble, (unsigned)draw(3), (int64_t)draw(300));
}

static void play(uint64_t chosen) {
    seed = random_state = chosen;
    open_clients();
    for (int i = 0; i < N; i++) {
        enter(i);
        for (uint64_t steps = draw(40); steps > 0; steps--) {
            if (draw(8) == 0) do_harm();
            run((int64_t)draw(30));
        }
    }
    for (int turn = 0; turn < 200; turn++) {
        if (draw(8) == 0) do_harm();
        run((int64_t)draw(30));
        if (draw(4) == 0) count_over();
    }
    divvy_testing_heal(ensemble);
    run(LONG_MS);
    CLAIM(count_passed() == N, "only %zu have passed", count_passed());
    count_over();
    run(LONG_MS);
    CLAIM(count_over() == N, "only %zu are done with leaving", count_over());
    CLAIM(count_children() == 0, "%zu nodes are left", count_children());
    close_clients();
}

/* Under lost requests and lost answers all pass, none too early, and nothing is left behind. */
TEST(test_faults) {
    const char *given = getenv("DIVVY_TEST_SEED");
    if (given) {
        play(strtoull(given, NULL, 10));
        return;
    }
    passes = late_passes = 0;
    for (uint64_t i = 0; i < FIXED_SEEDS + FRESH_SEEDS; i++)
        play(dv_test_seed_of_run(i, FIXED_SEEDS, "unit_example_barrier"));
    assert_int_equal(passes, (FIXED_SEEDS + FRESH_SEEDS) * N);
    assert_true(late_passes > 0); /* some looked only when others had left: rule 2 */
}
