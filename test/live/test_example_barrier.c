/* docs/examples/barrier on a real server. SPDX-License-Identifier: Apache-2.0
 *
 * Shows the recipe of docs/write-a-recipe.md with threads that wait in it, and over a cut link. */
#include "one_server.h"
#include "test_client_witness.h"

#include "barrier.h"
#include "lib/proxy.h"

enum { N = 8, CUT_OFF = 2 }; /* the member that has a proxy */

/* A member, with a client and a thread of its own. */
typedef struct {
    witness witness;
    divvy_client *client;
    barrier *barrier;
    pthread_t thread;
    int entered_when_passed, leaving_when_done, wait_error, leave_error;
    atomic_bool passed, done;
} member;

static member members[N];
static atomic_int entered, leaving; /* how many have begun to */
static const char *path;

static size_t nodes(void) {
    return dv_test_zk_count(truth, path);
}

/* Waits for all, then for a word of the test's, then leaves. */
static atomic_bool may_leave[N];

static void *take_part(void *context) {
    member *m = context;
    m->wait_error = barrier_wait(m->barrier, PATIENCE_MS);
    m->entered_when_passed = atomic_load(&entered);
    atomic_store(&m->passed, true);
    if (!DV_WAIT(atomic_load(&may_leave[m - members]), PATIENCE_MS)) return NULL;
    atomic_fetch_add(&leaving, 1);
    m->leave_error = barrier_leave(m->barrier, PATIENCE_MS);
    m->leaving_when_done = atomic_load(&leaving);
    atomic_store(&m->done, true);
    return NULL;
}

static void enter(int i, const char *hosts) {
    member *m = &members[i];
    divvy_client_config config = witness_config(&m->witness, hosts);
    m->client = open_with(&config);
    atomic_fetch_add(&entered, 1);
    assert_int_equal(barrier_enter(&m->barrier, m->client, path, N), 0);
    assert_int_equal(pthread_create(&m->thread, NULL, take_part, m), 0);
}

static void reset(const char *to) {
    path = to;
    memset(members, 0, sizeof members);
    atomic_store(&entered, 0);
    atomic_store(&leaving, 0);
    for (int i = 0; i < N; i++) atomic_store(&may_leave[i], false);
}

static int count(bool done) {
    int counted = 0;
    for (int i = 0; i < N; i++) counted += atomic_load(done ? &members[i].done : &members[i].passed);
    return counted;
}

static void finish(void) {
    for (int i = 0; i < N; i++) {
        member *m = &members[i];
        assert_int_equal(pthread_join(m->thread, NULL), 0);
        assert_int_equal(m->wait_error, 0);
        assert_int_equal(m->leave_error, 0);
        assert_int_equal(m->entered_when_passed, N);
        assert_int_equal(m->leaving_when_done, N);
        barrier_destroy(m->barrier);
        divvy_client_close(m->client);
        witness_end(&m->witness);
    }
    assert_int_equal(nodes(), 0);
}

/* No member passes before the last one has entered, and none is done before the last one leaves. */
TEST(test_all_wait_for_all) {
    reset("/barriers/plain");
    for (int i = 0; i < N - 1; i++) enter(i, hosts());
    assert_true(DV_WAIT(nodes() == N - 1, PATIENCE_MS));
    assert_int_equal(barrier_wait(members[0].barrier, 0), DIVVY_ETIMEDOUT);
    assert_int_equal(count(false), 0);
    enter(N - 1, hosts());
    assert_true(DV_WAIT(count(false) == N, PATIENCE_MS));
    for (int i = 1; i < N; i++) atomic_store(&may_leave[i], true);
    assert_true(DV_WAIT(nodes() == 2, PATIENCE_MS)); /* the first member's, and `ready` */
    assert_int_equal(count(true), 0);
    atomic_store(&may_leave[0], true);
    finish();
}

/* A member that is cut off while the barrier opens, and while all others leave, passes and leaves when it is back. */
TEST(test_cut_off) {
    reset("/barriers/cut");
    dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(server, 1));
    for (int i = 0; i < N - 1; i++) enter(i, i == CUT_OFF ? dv_test_proxy_address(proxy) : hosts());
    assert_true(DV_WAIT(nodes() == N - 1, PATIENCE_MS));
    dv_test_proxy_cut(proxy);
    enter(N - 1, hosts());
    assert_true(DV_WAIT(count(false) == N - 1, PATIENCE_MS));
    assert_false(atomic_load(&members[CUT_OFF].passed));
    for (int i = 0; i < N; i++) atomic_store(&may_leave[i], true);
    assert_true(DV_WAIT(nodes() == 2, PATIENCE_MS));
    assert_int_equal(count(true), 0);
    dv_test_proxy_restore(proxy);
    finish();
    dv_test_proxy_stop(proxy);
}

TEST_GROUP(start_server, stop_server);
