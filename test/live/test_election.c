/* Election: threads and processes on a real server. SPDX-License-Identifier: Apache-2.0
 *
 * Shows threads and processes as candidates, and the requests that a real server counts. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "lib/proxy.h"
#include "lib/wait.h"
#include "lock_fixture.h"

typedef struct {
    divvy_client *client;
    divvy_election *election;
    atomic_int elected, lost, asked, failed;
    _Atomic(int64_t) leader, elected_at, lost_at;
    bool agrees;
} candidate;

static atomic_int leaders, most; /* by the callbacks alone */

static void begin_to_lead(void) {
    int now = atomic_fetch_add(&leaders, 1) + 1;
    if (now > atomic_load(&most)) atomic_store(&most, now);
}

static void on_elected(divvy_election *election, int64_t token, void *user) {
    candidate *c = user;
    (void)election, (void)token;
    begin_to_lead();
    atomic_store(&c->elected_at, dv_test_now_ms());
    atomic_fetch_add(&c->elected, 1);
}

static void on_election_lost(divvy_election *election, void *user) {
    candidate *c = user;
    (void)election;
    atomic_fetch_sub(&leaders, 1);
    atomic_store(&c->lost_at, dv_test_now_ms());
    atomic_fetch_add(&c->lost, 1);
}

static void on_leader(divvy_election *election, const divvy_leader *leader, void *user) {
    candidate *c = user;
    (void)election;
    atomic_store(&c->leader, leader ? leader->token : 0);
}

static void on_step_down(divvy_election *election, const char *who, size_t who_bytes, void *user) {
    candidate *c = user;
    (void)who, (void)who_bytes;
    atomic_fetch_add(&c->asked, 1);
    if (!c->agrees) return;
    atomic_fetch_sub(&leaders, 1);
    divvy_election_resign(election);
    divvy_election_stand(election);
}

static void on_failed(divvy_election *election, int error, void *user) {
    candidate *c = user;
    (void)election, (void)error;
    atomic_fetch_add(&c->failed, 1);
}

static void open_candidate(candidate *c, const char *at, int64_t timeout_ms, const char *path, int preference) {
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    divvy_election_config election = DIVVY_ELECTION_CONFIG_INIT;
    config.hosts = at;
    config.session_timeout_ms = timeout_ms;
    config.ensemble_tick_ms = TICK_MS;
    c->client = open_connected(&config);
    election.path = path;
    election.preference = preference;
    election.on_elected = on_elected;
    election.on_lost = on_election_lost;
    election.on_leader = on_leader;
    election.on_step_down = on_step_down;
    election.on_failed = on_failed;
    election.user = c;
    int error = divvy_election_create(&c->election, c->client, &election);
    if (error) fail_msg("create: %s", divvy_client_error(c->client));
}

static void close_candidate(candidate *c) {
    divvy_election_destroy(c->election);
    divvy_client_close(c->client);
}

static divvy_stats stats(divvy_client *client) {
    divvy_stats s;
    assert_int_equal(divvy_client_stats(client, &s, sizeof s), 0);
    return s;
}

static bool knows(const candidate *c, const candidate *leader) {
    int64_t token = divvy_election_token(leader->election);
    return token && atomic_load(&c->leader) == token;
}

/* J3: candidates that come and go cost an observer nothing, and a change of leader one list and one read. */
TEST(test_cost_of_following) {
    candidate observer = {.agrees = false}, some[10];
    memset(some, 0, sizeof some);
    open_candidate(&observer, hosts(), 30000, "/cost/election", 0);
    for (int i = 0; i < 10; i++) {
        open_candidate(&some[i], hosts(), 30000, "/cost/election", 0);
        assert_int_equal(divvy_election_stand(some[i].election), 0);
        if (i == 0) assert_true(DV_WAIT(knows(&observer, &some[0]), PATIENCE_MS));
        assert_true(DV_WAIT(nodes("/cost/election") == (size_t)i + 1, PATIENCE_MS));
        if (i == 1) assert_true(DV_WAIT(stats(observer.client).in_flight == 0, PATIENCE_MS));
    }
    divvy_stats before = stats(observer.client);
    for (int i = 9; i > 1; i--) close_candidate(&some[i]);
    assert_true(DV_WAIT(nodes("/cost/election") == 2, PATIENCE_MS));
    divvy_stats between = stats(observer.client);
    assert_int_equal(between.children - before.children + between.gets - before.gets, 0);
    assert_int_equal(divvy_election_resign(some[0].election), 0);
    assert_true(DV_WAIT(knows(&observer, &some[1]), PATIENCE_MS));
    divvy_stats after = stats(observer.client);
    assert_int_equal(after.children - between.children, 1);
    assert_int_equal(after.gets - between.gets, 1);
    for (int i = 0; i < 2; i++) close_candidate(&some[i]);
    close_candidate(&observer);
}

/* A leader that is cut off is told so before another is elected, and stands again when it is back. */
TEST(test_cut_off) {
    dv_test_proxy *proxy = dv_test_proxy_start(hosts());
    candidate first = {.agrees = true}, second = {.agrees = true};
    atomic_store(&leaders, 0);
    atomic_store(&most, 0);
    open_candidate(&first, dv_test_proxy_address(proxy), 4000, "/cut", 0);
    open_candidate(&second, hosts(), 4000, "/cut", 0);
    assert_int_equal(divvy_election_stand(first.election), 0);
    assert_true(DV_WAIT(atomic_load(&first.elected) == 1, PATIENCE_MS));
    assert_int_equal(divvy_election_stand(second.election), 0);
    assert_true(DV_WAIT(nodes("/cut") == 2 && knows(&second, &first), PATIENCE_MS));
    dv_test_proxy_freeze(proxy);
    assert_true(DV_WAIT(atomic_load(&second.elected) == 1, PATIENCE_MS));
    assert_int_equal(atomic_load(&first.lost), 1);
    assert_true(atomic_load(&first.lost_at) <= atomic_load(&second.elected_at));
    dv_test_proxy_cut(proxy);
    dv_test_proxy_restore(proxy);
    assert_true(DV_WAIT(knows(&first, &second), PATIENCE_MS));
    assert_int_equal(divvy_election_ask_step_down(first.election, PATIENCE_MS), 0);
    assert_true(DV_WAIT(atomic_load(&first.elected) == 2, PATIENCE_MS));
    assert_int_equal(atomic_load(&second.asked), 1);
    assert_int_equal(atomic_load(&most), 1);
    close_candidate(&first);
    close_candidate(&second);
    dv_test_proxy_stop(proxy);
}

enum { THREADS = 4, TURNS = 40 };

static candidate crowd[THREADS];

/* Asks, now and then by a waiting call that ends in vain. */
static void *ask_again_and_again(void *user) {
    candidate *c = user;
    for (int i = 0; i < TURNS; i++) {
        int error = divvy_election_ask_step_down(c->election, 1 + 10 * (i % 5));
        if (error && error != DIVVY_ETIMEDOUT && error != DIVVY_ENOENT) atomic_fetch_add(&c->failed, 1);
    }
    return NULL;
}

/* Candidates of three preferences ask one another from threads of their own: never two lead, and in the end the one of
 * the highest preference does, and all know it. */
TEST(test_threads) {
    pthread_t threads[THREADS];
    memset(crowd, 0, sizeof crowd);
    atomic_store(&leaders, 0);
    atomic_store(&most, 0);
    for (int i = 0; i < THREADS; i++) {
        crowd[i].agrees = true;
        open_candidate(&crowd[i], hosts(), 30000, "/crowd", i / 2 + (i == THREADS - 1));
        assert_int_equal(divvy_election_stand(crowd[i].election), 0);
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_again_and_again, &crowd[i]), 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    const candidate *best = &crowd[THREADS - 1];
    assert_true(DV_WAIT(divvy_election_leads(best->election), PATIENCE_MS));
    for (int i = 0; i < THREADS; i++) {
        assert_true(DV_WAIT(knows(&crowd[i], best), PATIENCE_MS));
        assert_int_equal(atomic_load(&crowd[i].failed) + atomic_load(&crowd[i].lost), 0);
    }
    assert_true(DV_WAIT(nodes("/crowd") == THREADS, PATIENCE_MS)); /* No request is left. */
    assert_int_equal(atomic_load(&most), 1);
    for (int i = 0; i < THREADS; i++) close_candidate(&crowd[i]);
    assert_true(DV_WAIT(nodes("/crowd") == 0, PATIENCE_MS));
}

TEST_GROUP(start_server, stop_server);
