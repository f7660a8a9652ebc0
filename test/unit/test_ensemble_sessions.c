/* Sessions of the in-memory ensemble, to the millisecond: who touches them, when they expire, who hears of it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "test_ensemble.h"

enum { TICK_MS = 2000, TIMEOUT_MS = 6000 };

static divvy_testing_ensemble *e;
static divvy_testing_transaction ended; /* the last session that did */
static int begun, expired_nodes;

static void on_transaction(const divvy_testing_transaction *t, void *context) {
    (void)context;
    if (t->kind == DIVVY_TESTING_SESSION_CREATE) begun++;
    if (t->kind == DIVVY_TESTING_DELETE && t->expired) expired_nodes++;
    if (t->kind == DIVVY_TESTING_SESSION_END) ended = *t;
}

static int set_up(void **state) {
    (void)state;
    divvy_testing_config config = DIVVY_TESTING_CONFIG_INIT;
    config.client_delay_max_ms = config.server_delay_max_ms = 0;
    config.on_transaction = on_transaction;
    begun = expired_nodes = 0;
    ended = (divvy_testing_transaction){.zxid = 0};
    e = open_ensemble(&config);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    close_ensemble(e);
    return 0;
}

static int64_t bucket_after(int64_t at) {
    return (at / TICK_MS + 1) * TICK_MS;
}

static void run_to(int64_t at) {
    divvy_testing_run(e, at - e->now);
}

/* It dies without a word, right after it was heard of. */
static void stop_after_write(divvy_client *c, const char *path) {
    assert_int_equal(do_create(c, path, DV_EPHEMERAL), 0);
    assert_int_equal(divvy_testing_pause_client(e, c, 1), 0);
}

/* Servers give the timeout that was asked for, within their bounds. */
TEST(test_timeouts) {
    static const int64_t asked[] = {2000, 4000, 9999, 40000, 100000}, given[] = {4000, 4000, 9999, 40000, 40000};
    for (int i = 0; i < 5; i++) {
        divvy_client *c = open_client(e, asked[i], -1);
        assert_int_equal(((dv_mem_client *)(void *)c->znode)->timeout_ms, given[i]);
        assert_int_equal(begun, i + 1);
        divvy_client_close(c);
    }
}

/* On the leader a request touches the session at once; it expires at the end of the tick in which its timeout ends. */
TEST(test_expiry_on_leader) {
    divvy_client *c = open_client(e, TIMEOUT_MS, divvy_testing_leader(e));
    run_to(1001500);
    stop_after_write(c, "/a");
    assert_int_equal(e->now, 1001500);
    run_to(bucket_after(1001500 + TIMEOUT_MS) - 1);
    assert_int_equal(ended.zxid, 0);
    assert_true(divvy_testing_exists(e, "/a"));
    divvy_testing_run(e, 1);
    assert_int_equal(ended.at_ms, 1008000);
    assert_int_equal(ended.expired, 1);
    assert_int_equal(ended.session_id, divvy_client_session_id(c));
    assert_int_equal(expired_nodes, 1);
    assert_false(divvy_testing_exists(e, "/a"));
    divvy_testing_pause_client(e, c, 0);
    divvy_client_close(c);
}

/* On a follower the touch waits for the leader's next ping, and counts from then: a write, too. */
TEST(test_touch_by_ping) {
    divvy_client *c = open_client(e, TIMEOUT_MS, a_follower(e));
    run_to(1001500);
    stop_after_write(c, "/a");
    run_to(1011000);
    assert_int_equal(ended.at_ms,
                     bucket_after(1002000 + TIMEOUT_MS)); /* 1010000; by the write itself it were 1008000 */
    divvy_testing_pause_client(e, c, 0);
    divvy_client_close(c);
}

/* Where the follower's answer to that ping is lost, what the follower knows is worth nothing. */
TEST(test_touch_is_lost) {
    divvy_client *c = open_client(e, TIMEOUT_MS, a_follower(e));
    run_to(1001500);
    stop_after_write(c, "/a");
    divvy_testing_link_servers(e, (unsigned)a_follower(e), (unsigned)divvy_testing_leader(e),
                               DIVVY_TESTING_LINK_NO_REQUESTS);
    run_to(1009000);
    assert_int_equal(ended.at_ms, bucket_after(1001000 + TIMEOUT_MS)); /* the ping before */
    divvy_testing_pause_client(e, c, 0);
    divvy_client_close(c);
}

/* A session that is closed ends at once, with its nodes, and not by expiry. */
TEST(test_close) {
    divvy_client *c = open_client(e, TIMEOUT_MS, -1);
    assert_int_equal(do_create(c, "/a", DV_EPHEMERAL), 0);
    int64_t at = e->now;
    divvy_client_close(c);
    divvy_testing_run(e, 10);
    assert_int_equal(ended.at_ms, at);
    assert_int_equal(ended.expired, 0);
    assert_int_equal(expired_nodes, 0);
    assert_false(divvy_testing_exists(e, "/a"));
}

/* A process that dies leaves its session to expire; closing what is left of it says nothing more to the servers. */
TEST(test_crash) {
    divvy_client *c = open_client(e, TIMEOUT_MS, -1);
    assert_int_equal(do_create(c, "/a", DV_EPHEMERAL), 0);
    divvy_testing_crash_client(e, c);
    int64_t at = e->now;
    divvy_client_close(c);
    assert_int_equal(e->now, at);
    divvy_testing_run(e, 3000);
    assert_true(divvy_testing_exists(e, "/a"));
    divvy_testing_run(e, 7000);
    assert_false(divvy_testing_exists(e, "/a"));
    assert_int_equal(ended.expired, 1);
}

/* An idle client pings a third of its timeout after what it sent last, and lives by that. */
TEST(test_pings) {
    divvy_client *c = open_client(e, TIMEOUT_MS, a_follower(e));
    dv_mem_client *native = (dv_mem_client *)(void *)c->znode;
    divvy_testing_run(e, 100);
    silence_clock(c);
    int64_t sent = native->last_sent;
    for (int i = 1; i <= 20; i++) {
        int64_t at = dv_mem_client_when(native, sent + i * TIMEOUT_MS / 3);
        run_to(at - 1);
        assert_int_equal(native->last_sent, sent + (i - 1) * TIMEOUT_MS / 3);
        run_to(at);
        assert_int_equal(native->last_sent, sent + i * TIMEOUT_MS / 3);
    }
    assert_int_equal(ended.zxid, 0);
    divvy_client_close(c);
}

/* A dead link is found out two thirds of the timeout after something was last heard; and while a request is unanswered
 * no ping is sent. */
TEST(test_dead_link) {
    divvy_client *c = open_client(e, TIMEOUT_MS, -1);
    dv_mem_client *native = (dv_mem_client *)(void *)c->znode;
    divvy_testing_run(e, 100);
    int64_t heard = native->last_heard;
    divvy_testing_link_client(e, c, DIVVY_TESTING_LINK_DOWN);
    outcome o;
    ask_op(c, &o, op_of(DV_GET, "/"), NULL);
    int64_t at = dv_mem_client_when(native, heard + TIMEOUT_MS * 2 / 3);
    silence_clock(c);
    run_to(at - 1);
    assert_int_equal(o.error, NOT_YET);
    assert_int_equal(divvy_client_state(c), DIVVY_CONNECTED);
    run_to(at);
    assert_int_equal(o.error, DIVVY_ECONNECTION);
    assert_int_equal(divvy_client_state(c), DIVVY_SUSPENDED);
    assert_int_equal(do_op(c, &o, op_of(DV_GET, "/")), DIVVY_ECONNECTION);
    divvy_client_close(c);
}

/* An expiry is learned when a server can tell of it: at once while connected, else on the next connection. */
TEST(test_told_of_expiry) {
    divvy_client *c = open_client(e, TIMEOUT_MS, -1);
    dv_mem_client *native = (dv_mem_client *)(void *)c->znode;
    int64_t id = divvy_client_session_id(c);
    divvy_testing_link_client(e, c, DIVVY_TESTING_LINK_DOWN);
    assert_int_equal(divvy_testing_expire(e, c), 0);
    divvy_testing_run(e, 1000);
    assert_int_equal(ended.session_id, id);
    assert_int_equal(divvy_client_state(c), DIVVY_CONNECTED); /* it cannot know */
    divvy_testing_link_client(e, c, DIVVY_TESTING_LINK_UP);
    divvy_testing_disconnect(e, c, DIVVY_TESTING_APPLIED, 0);
    while (native->native != DV_MEM_OVER) assert_int_equal(divvy_testing_step(e, e->now + 1), 1);
    assert_int_equal(divvy_testing_expire(e, c), DIVVY_ESTATE); /* it is over */
    divvy_client_close(c);
}

/* A session goes on at another server when its own dies, and is the same. */
TEST(test_moves) {
    divvy_client *c = open_client(e, TIMEOUT_MS, a_follower(e));
    int64_t id = divvy_client_session_id(c);
    assert_int_equal(do_create(c, "/a", DV_EPHEMERAL), 0);
    divvy_testing_prefer(e, c, -1);
    unsigned server = (unsigned)divvy_testing_server_of(e, c);
    divvy_testing_kill_server(e, server);
    divvy_testing_run(e, 300);
    assert_int_equal(divvy_client_state(c), DIVVY_CONNECTED);
    assert_int_not_equal(divvy_testing_server_of(e, c), server);
    divvy_testing_run(e, 60000);
    assert_int_equal(divvy_client_session_id(c), id);
    assert_int_equal(divvy_testing_owner(e, "/a"), id);
    divvy_client_close(c);
}

/* A client is not let in by a server that has seen less than it: what it reads never goes back. */
TEST(test_never_back) {
    divvy_client *c = open_client(e, 20000, divvy_testing_leader(e));
    outcome o;
    unsigned behind = (unsigned)a_follower(e);
    divvy_testing_lag_server(e, behind, 5000);
    assert_int_equal(do_create(c, "/a", DV_PERSISTENT), 0);
    int64_t at = e->now;
    divvy_testing_prefer(e, c, (int)behind);
    divvy_testing_disconnect(e, c, DIVVY_TESTING_APPLIED, 0);
    run_to(at + 4999);
    assert_int_equal(divvy_testing_server_of(e, c), -1);
    divvy_testing_run(e, 6000); /* what the leader says of the session takes as long */
    assert_int_equal(divvy_testing_server_of(e, c), (int)behind);
    assert_int_equal(do_op(c, &o, op_of(DV_GET, "/a")), 0);
    divvy_client_close(c);
}

/* A stopped process does nothing; what arrived meanwhile it finds when it goes on. */
TEST(test_pause) {
    divvy_client *c = open_client(e, 20000, -1);
    outcome o;
    ask_op(c, &o, op_of(DV_GET, "/"), NULL);
    divvy_testing_pause_client(e, c, 1);
    divvy_testing_run(e, 3000);
    assert_int_equal(o.error, NOT_YET);
    divvy_testing_pause_client(e, c, 0);
    int64_t at = e->now;
    assert_int_equal(await(&o), 0);
    assert_int_equal(o.at, at);
    assert_int_equal(divvy_client_state(c), DIVVY_CONNECTED);
    divvy_client_close(c);
}

/* Clocks of clients differ from the beginning, and may run at rates of their own. */
TEST(test_clocks) {
    divvy_client *a = open_client(e, TIMEOUT_MS, -1), *b = open_client(e, TIMEOUT_MS, -1);
    assert_true(dv_client_now(a) != dv_client_now(b));
    divvy_testing_drift_client(e, a, 10000);
    divvy_testing_drift_client(e, b, -10000);
    int64_t a_began = dv_client_now(a), b_began = dv_client_now(b);
    divvy_testing_run(e, 100000);
    assert_int_equal(dv_client_now(a) - a_began, 101000);
    assert_int_equal(dv_client_now(b) - b_began, 99000);
    const dv_mem_client *native = (const dv_mem_client *)(void *)b->znode;
    for (int64_t at = dv_client_now(b); at < b_began + 99500; at += 7) {
        int64_t when = dv_mem_client_when(native, at);
        int64_t shown = native->clock_at + (when - native->clock_since) - (when - native->clock_since) / 100;
        assert_in_range(shown, at, at + 1);
    }
    assert_int_equal(divvy_client_state(a), DIVVY_CONNECTED);
    divvy_client_close(a);
    divvy_client_close(b);
}

/* Calls that wait let the time of all go on, and no longer than they were told. */
TEST(test_waiting) {
    for (unsigned i = 0; i < 3; i++) divvy_testing_kill_server(e, i);
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.manual = 1;
    divvy_client *c;
    assert_int_equal(divvy_testing_client_open(&c, e, &config), 0);
    int64_t at = e->now;
    assert_int_equal(divvy_client_wait_connected(c, 5000), DIVVY_ETIMEDOUT);
    assert_int_equal(e->now, at + 5000);
    for (unsigned i = 0; i < 3; i++) divvy_testing_start_server(e, i);
    assert_int_equal(divvy_client_wait_connected(c, 5000), 0);
    assert_true(e->now < at + 7000);
    divvy_client_close(c);
    assert_int_equal(divvy_testing_step(e, e->now - 1), 0);
    assert_int_equal(divvy_testing_run(e, -1), DIVVY_EINVAL);
}

TEST_EACH(set_up, tear_down);
