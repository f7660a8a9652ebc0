/* Faults of links and servers in the in-memory ensemble, as real ones have them. SPDX-License-Identifier: Apache-2.0 */
#include "test_ensemble.h"

static divvy_testing_ensemble *e;
static outcome o;
static int64_t ended_at;

static void on_trace(int64_t at_ms, const char *line, void *context) {
    (void)context;
    printf("%lld %s\n", (long long)at_ms, line);
}

static void on_transaction(const divvy_testing_transaction *t, void *context) {
    (void)context;
    if (t->kind == DIVVY_TESTING_SESSION_END) ended_at = t->at_ms;
}

static int set_up(void **state) {
    (void)state;
    divvy_testing_config config = DIVVY_TESTING_CONFIG_INIT;
    config.client_delay_min_ms = config.client_delay_max_ms = 5;
    config.server_delay_min_ms = config.server_delay_max_ms = 0;
    config.on_transaction = on_transaction;
    if (getenv("DIVVY_TEST_TRACE")) config.on_trace = on_trace;
    ended_at = 0;
    e = open_ensemble(&config);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    close_ensemble(e);
    return 0;
}

static void run_to(int64_t at) {
    divvy_testing_run(e, at - e->now);
}

/* ---- the fates of a request ---- */

/* Not applied: never, though the client cannot know. Applied: surely, though the client cannot know that either. */
TEST(test_fates) {
    divvy_client *c = open_client(e, 10000, -1);
    for (int applied = 0; applied < 2; applied++) {
        outcome next;
        ask_op(c, &o, op_create("/a", "", DV_PERSISTENT), NULL);
        ask_op(c, &next, op_create("/b", "", DV_PERSISTENT), NULL);
        divvy_testing_run(e, 2); /* on their way */
        assert_int_equal(divvy_testing_disconnect(e, c, applied ? DIVVY_TESTING_APPLIED : DIVVY_TESTING_NOT_APPLIED, 0),
                         0);
        assert_int_equal(await(&o), DIVVY_ECONNECTION);
        assert_int_equal(await(&next), DIVVY_ECONNECTION);
        divvy_testing_run(e, 5000);
        assert_int_equal(divvy_testing_exists(e, "/a"), applied);
        assert_int_equal(divvy_testing_exists(e, "/b"), applied);
    }
    divvy_client_close(c);
}

/* Applied late: nobody sees it until then, and from then on all do. */
TEST(test_late) {
    int leader = divvy_testing_leader(e);
    divvy_client *c = open_client(e, 10000, leader), *other = open_client(e, 10000, leader);
    int64_t at = e->now + 5; /* when it reaches the leader */
    ask_op(c, &o, op_create("/late", "", DV_EPHEMERAL), NULL);
    divvy_testing_run(e, 2);
    assert_int_equal(divvy_testing_disconnect(e, c, DIVVY_TESTING_APPLIED_LATE, 1000), 0);
    run_to(at);
    divvy_testing_link_client(e, c, DIVVY_TESTING_LINK_DOWN); /* a heartbeat on a new connection would bring it forth */
    assert_int_equal(o.error, DIVVY_ECONNECTION);
    assert_int_equal(do_op(other, &o, op_of(DV_EXISTS, "/late")), DIVVY_ENOENT);
    run_to(at + 999);
    assert_false(divvy_testing_exists(e, "/late"));
    run_to(at + 1000);
    assert_true(divvy_testing_exists(e, "/late"));
    assert_int_equal(do_op(other, &o, op_of(DV_EXISTS, "/late")), 0);
    divvy_client_close(c);
    divvy_client_close(other);
}

/* A first read on the new connection may not see a write that comes late. */
TEST(test_first_read) {
    int leader = divvy_testing_leader(e);
    divvy_client *c = open_client(e, 10000, leader);
    dv_mem_client *native = (dv_mem_client *)(void *)c->znode;
    ask_op(c, &o, op_create("/late", "", DV_EPHEMERAL), NULL);
    divvy_testing_run(e, 2);
    assert_int_equal(divvy_testing_disconnect(e, c, DIVVY_TESTING_APPLIED_LATE, 1000), 0);
    while (native->native != DV_MEM_ESTABLISHED) assert_int_equal(divvy_testing_step(e, e->now + 100), 1);
    native->told = DIVVY_CONNECTED; /* as for a read that is asked for before anything else in that turn */
    outcome read;
    ask_op(c, &read, op_of(DV_EXISTS, "/late"), NULL);
    assert_int_equal(await(&read), DIVVY_ENOENT);
    divvy_testing_run(e, 2000);
    assert_true(divvy_testing_exists(e, "/late"));
    divvy_client_close(c);
}

static void write_late(divvy_client *c, divvy_testing_fate fate, int64_t late_ms) {
    ask_op(c, &o, op_create("/late", "", DV_EPHEMERAL), NULL);
    divvy_testing_run(e, 2);
    assert_int_equal(divvy_testing_disconnect(e, c, fate, late_ms), 0);
    assert_int_equal(await(&o), DIVVY_ECONNECTION);
    assert_int_equal(divvy_client_wait_connected(c, 5000), 0);
}

/* A write on the new connection is ordered behind the late one: what a barrier (R1) rests on. */
TEST(test_late_before_barrier) {
    int leader = divvy_testing_leader(e);
    divvy_client *c = open_client(e, 10000, leader);
    write_late(c, DIVVY_TESTING_APPLIED_LATE, 5000);
    dv_op barrier = op_of(DV_CHECK, "/");
    ask_multi(c, &o, &barrier, 1);
    assert_int_equal(await(&o), 0);
    assert_int_equal(do_op(c, &o, op_of(DV_EXISTS, "/late")), 0);
    divvy_client_close(c);
}

/* A request that comes late by way of one server, when the session has moved to another, is not carried out at all. */
TEST(test_late_and_moved) {
    divvy_client *c = open_client(e, 10000, a_follower(e));
    divvy_testing_lag_server(e, (unsigned)divvy_testing_leader(e), 100);
    ask_op(c, &o, op_create("/late", "", DV_EPHEMERAL), NULL);
    divvy_testing_run(e, 6); /* the follower has it, the leader has not */
    divvy_testing_prefer(e, c, divvy_testing_leader(e));
    divvy_testing_disconnect(e, c, DIVVY_TESTING_APPLIED, 0);
    assert_int_equal(await(&o), DIVVY_ECONNECTION);
    assert_int_equal(divvy_client_wait_connected(c, 80), 0);
    divvy_testing_run(e, 5000);
    assert_false(divvy_testing_exists(e, "/late"));
    divvy_client_close(c);
}

/* The leader hears late of a connection that the client has given up: a write comes behind the barrier, and the
 * session's next write is refused. The one behind that is not. */
TEST(test_behind_barrier) {
    int leader = divvy_testing_leader(e), first = a_follower(e), other = 3 - leader - first;
    divvy_client *c = open_client(e, 10000, first);
    divvy_testing_prefer(e, c, other);
    write_late(c, DIVVY_TESTING_APPLIED_BEHIND, 1000);
    dv_op barrier = op_of(DV_CHECK, "/");
    ask_multi(c, &o, &barrier, 1);
    assert_int_equal(await(&o), 0);
    assert_int_equal(do_op(c, &o, op_of(DV_EXISTS, "/late")), DIVVY_ENOENT);
    while (!divvy_testing_exists(e, "/late")) assert_int_equal(divvy_testing_step(e, e->now + 2000), 1);
    assert_int_equal(divvy_testing_owner(e, "/late"), divvy_client_session_id(c));
    ask_multi(c, &o, &barrier, 1);
    assert_int_equal(await(&o), DIVVY_ECONNECTION);
    assert_int_equal(divvy_client_wait_connected(c, 500), 0);
    ask_multi(c, &o, &barrier, 1);
    assert_int_equal(await(&o), 0);
    divvy_client_close(c);
}

/* By the leader, or by the server that the client connects to again, it comes before the barrier. */
TEST(test_not_behind_barrier) {
    for (int i = 0; i < 2; i++) {
        divvy_client *c = open_client(e, 10000, i ? divvy_testing_leader(e) : a_follower(e));
        if (i) divvy_testing_prefer(e, c, a_follower(e));
        write_late(c, DIVVY_TESTING_APPLIED_BEHIND, 5000);
        dv_op barrier = op_of(DV_CHECK, "/");
        ask_multi(c, &o, &barrier, 1);
        assert_int_equal(await(&o), 0);
        assert_int_equal(do_op(c, &o, op_of(DV_EXISTS, "/late")), 0);
        divvy_client_close(c);
        divvy_testing_run(e, 1000);
    }
}

/* A late write of a session that has ended is not done. */
TEST(test_late_and_ended) {
    divvy_client *c = open_client(e, 10000, divvy_testing_leader(e));
    ask_op(c, &o, op_create("/late", "", DV_EPHEMERAL), NULL);
    divvy_testing_run(e, 2);
    divvy_testing_disconnect(e, c, DIVVY_TESTING_APPLIED_LATE, 1000);
    divvy_testing_link_client(e, c, DIVVY_TESTING_LINK_DOWN);
    divvy_testing_run(e, 500);
    assert_int_equal(divvy_testing_expire(e, c), 0);
    divvy_testing_run(e, 3000);
    assert_false(divvy_testing_exists(e, "/late"));
    divvy_client_close(c);
}

/* ---- links of clients ---- */

/* A link that loses replies only lets writes through; one that loses requests does not; nobody is told before the
 * silence is too long, and a message that was lost ends what may pass in that direction, though the link is mended. */
TEST(test_half_links) {
    divvy_client *c = open_client(e, 20000, -1);
    for (int replies = 0; replies < 2; replies++) {
        const char *path = replies ? "/through" : "/lost";
        divvy_testing_link_client(e, c, replies ? DIVVY_TESTING_LINK_NO_REPLIES : DIVVY_TESTING_LINK_NO_REQUESTS);
        ask_op(c, &o, op_create(path, "", DV_PERSISTENT), NULL);
        divvy_testing_run(e, 50);
        silence_clock(c);
        divvy_testing_link_client(e, c, DIVVY_TESTING_LINK_UP);
        divvy_testing_run(e, 3000);
        assert_int_equal(o.error, NOT_YET);
        assert_int_equal(divvy_testing_exists(e, path), replies);
        assert_int_equal(await(&o), DIVVY_ECONNECTION);
        assert_int_equal(divvy_client_wait_connected(c, 5000), 0);
    }
    divvy_client_close(c);
}

/* ---- lagging servers ---- */

/* A follower that lags shows what was, and yet a session's own writes, as its reads wait behind them. */
TEST(test_lag) {
    divvy_client *c = open_client(e, 20000, a_follower(e)), *other = open_client(e, 20000, divvy_testing_leader(e));
    divvy_testing_lag_server(e, (unsigned)a_follower(e), 1000);
    assert_int_equal(do_create(other, "/a", DV_PERSISTENT), 0);
    assert_int_equal(do_op(c, &o, op_of(DV_EXISTS, "/a")), DIVVY_ENOENT);
    outcome written, read;
    int64_t at = e->now;
    ask_op(c, &written, op_create("/b", "", DV_PERSISTENT), NULL);
    ask_op(c, &read, op_of(DV_EXISTS, "/b"), NULL);
    assert_int_equal(await(&read), 0);
    assert_int_equal(written.error, 0);
    assert_int_equal(written.at, read.at);
    assert_true(read.at >= at + 1000);
    assert_int_equal(do_op(c, &o, op_of(DV_EXISTS, "/a")), 0);
    divvy_client_close(c);
    divvy_client_close(other);
}

/* ---- servers apart ---- */

/* A follower that is cut off from its leader answers reads, and knows nothing of a session's end, until it has missed
 * its leader for syncLimit ticks; then its clients are sent away. */
TEST(test_cut_follower) {
    unsigned cut_off = (unsigned)a_follower(e), leader = (unsigned)divvy_testing_leader(e);
    divvy_client *c = open_client(e, 6000, (int)cut_off), *reader = open_client(e, 40000, (int)cut_off);
    assert_int_equal(do_create(c, "/a", DV_EPHEMERAL), 0);
    run_to(1001500);
    silence_clock(reader); /* its heartbeats would get stuck, and its reads behind them */
    divvy_testing_link_servers(e, cut_off, leader, DIVVY_TESTING_LINK_DOWN);
    run_to(1007999);
    assert_true(divvy_testing_exists(e, "/a"));
    run_to(1008000);
    assert_int_equal(ended_at, 1008000); /* touched at 1001000 for the last time: (1007000 / 2000 + 1) x 2000 */
    assert_false(divvy_testing_exists(e, "/a"));
    assert_int_equal(do_op(reader, &o, op_of(DV_EXISTS, "/a")), 0);
    silence_clock(reader);
    run_to(1010900); /* the leader was last heard at 1001400 at the earliest */
    assert_int_equal(do_op(reader, &o, op_of(DV_EXISTS, "/a")), 0);
    assert_int_equal(divvy_testing_server_of(e, reader), (int)cut_off);
    outcome write;
    ask_op(reader, &write, op_create("/b", "", DV_PERSISTENT), NULL);
    run_to(1011600);
    assert_int_equal(divvy_testing_server_of(e, reader), -1);
    assert_int_equal(write.error, DIVVY_ECONNECTION);
    divvy_testing_prefer(e, reader, (int)leader);
    assert_int_equal(divvy_client_wait_connected(reader, 30000), 0);
    assert_int_equal(do_op(reader, &o, op_of(DV_EXISTS, "/a")), DIVVY_ENOENT);
    assert_false(divvy_testing_exists(e, "/b"));
    divvy_client_close(c);
    divvy_client_close(reader);
}

/* A follower that can hear, but not be heard, goes on applying; its clients' touches do not arrive. */
TEST(test_mute_follower) {
    unsigned mute = (unsigned)a_follower(e), leader = (unsigned)divvy_testing_leader(e);
    divvy_client *c = open_client(e, 6000, (int)mute), *writer = open_client(e, 20000, (int)leader);
    run_to(1001500);
    silence_clock(c);
    divvy_testing_link_servers(e, mute, leader, DIVVY_TESTING_LINK_NO_REQUESTS);
    assert_int_equal(do_create(writer, "/a", DV_PERSISTENT), 0);
    divvy_testing_run(e, 100);
    assert_int_equal(do_op(c, &o, op_of(DV_EXISTS, "/a")), 0);
    run_to(1008000);
    assert_int_equal(ended_at, 1008000);
    divvy_client_close(c);
    divvy_client_close(writer);
}

/* A leader that is cut off answers reads, commits nothing, and steps down; the others elect another when they have
 * missed it for syncLimit ticks; what it had logged alone is never done. */
TEST(test_cut_leader) {
    unsigned old = (unsigned)divvy_testing_leader(e);
    divvy_client *c = open_client(e, 40000, (int)old);
    run_to(1001500);
    divvy_testing_link_servers(e, old, (old + 1) % 3, DIVVY_TESTING_LINK_DOWN);
    divvy_testing_link_servers(e, old, (old + 2) % 3, DIVVY_TESTING_LINK_DOWN);
    outcome write;
    ask_op(c, &write, op_create("/a", "", DV_PERSISTENT), NULL);
    ask_op(c, &o, op_of(DV_EXISTS, "/a"), NULL); /* waits behind it */
    run_to(1010000);
    assert_int_equal(divvy_testing_leader(e), (int)old);
    assert_int_equal(write.error, NOT_YET);
    assert_int_equal(divvy_testing_server_of(e, c), (int)old);
    run_to(1014000);
    assert_int_equal(write.error, DIVVY_ECONNECTION);
    assert_int_equal(o.error, DIVVY_ECONNECTION);
    assert_int_not_equal(divvy_testing_leader(e), (int)old);
    assert_int_not_equal(divvy_testing_leader(e), -1);
    divvy_testing_heal(e);
    divvy_testing_run(e, 5000);
    assert_int_equal(divvy_client_wait_connected(c, 1000), 0);
    assert_int_equal(do_op(c, &o, op_of(DV_EXISTS, "/a")), DIVVY_ENOENT);
    assert_true(e->servers[old].serving);
    divvy_client_close(c);
}

/* A leader that is killed is followed by another after an election, at which every session's timeout starts again. */
TEST(test_killed_leader) {
    divvy_client *c = open_client(e, 6000, a_follower(e));
    run_to(1003500);
    divvy_testing_pause_client(e, c, 1);
    run_to(1007000);
    divvy_testing_kill_server(e, (unsigned)divvy_testing_leader(e));
    assert_int_equal(divvy_testing_leader(e), -1);
    run_to(1007199);
    assert_int_equal(divvy_testing_leader(e), -1);
    run_to(1007401);
    assert_true(divvy_testing_leader(e) >= 0);
    run_to(1013999);
    assert_int_equal(ended_at, 0); /* it was heard of at 1003500 */
    run_to(1014000);
    assert_int_equal(ended_at, 1014000); /* from 1007200..1007400 on: (1013300 / 2000 + 1) x 2000 */
    divvy_testing_pause_client(e, c, 0);
    divvy_client_close(c);
}

/* A leader that is stopped goes on believing in itself when it wakes, and its clients in it, until it looks. */
TEST(test_stopped_leader) {
    unsigned old = (unsigned)divvy_testing_leader(e);
    divvy_client *c = open_client(e, 40000, (int)old), *writer = open_client(e, 40000, (int)(old + 1) % 3);
    assert_int_equal(do_create(c, "/a", DV_EPHEMERAL), 0);
    run_to(1001500);
    silence_clock(c);
    divvy_testing_pause_server(e, old, 1);
    run_to(1013000);
    assert_int_not_equal(divvy_testing_leader(e), (int)old);
    assert_int_equal(divvy_client_wait_connected(writer, 60000), 0);
    assert_int_equal(do_op(writer, &o, op_set("/a", "new", -1)), 0);
    ask_op(c, &o, op_of(DV_GET, "/a"), NULL);
    divvy_testing_run(e, 100);
    assert_int_equal(o.error, NOT_YET);
    divvy_testing_pause_server(e, old, 0);
    assert_int_equal(await(&o), 0);
    assert_string_equal(o.data, ""); /* from before */
    divvy_testing_run(e, 5000);
    assert_true(e->servers[old].serving);
    assert_int_equal(e->servers[old].role, DV_MEM_FOLLOWING);
    divvy_client_close(c);
    divvy_client_close(writer);
}

/* A transaction that one follower had logged when its leader died is carried out by the next leader, which is that
 * follower. */
TEST(test_logged_is_kept) {
    unsigned old = (unsigned)divvy_testing_leader(e), knows = (old + 1) % 3, lags = (old + 2) % 3;
    divvy_client *c = open_client(e, 20000, (int)old);
    divvy_testing_lag_server(e, old, 500);  /* acknowledgements */
    divvy_testing_lag_server(e, lags, 500); /* proposals */
    ask_op(c, &o, op_create("/a", "", DV_PERSISTENT), NULL);
    divvy_testing_run(e, 20);
    assert_false(divvy_testing_exists(e, "/a"));
    assert_int_equal(e->servers[knows].logged, e->servers[old].logged);
    divvy_testing_kill_server(e, old);
    divvy_testing_lag_server(e, lags, 0);
    divvy_testing_run(e, 2000);
    assert_int_equal(divvy_testing_leader(e), (int)knows);
    assert_true(divvy_testing_exists(e, "/a"));
    assert_int_equal(o.error, DIVVY_ECONNECTION);
    divvy_client_close(c);
}

/* The epoch of a leader that died before anybody had its log is not used again, so servers that went on without it know
 * more. */
TEST(test_epoch_is_used_once) {
    unsigned old = (unsigned)divvy_testing_leader(e), first = (old + 1) % 3, other = (old + 2) % 3;
    divvy_testing_kill_server(e, old);
    divvy_testing_lag_server(e, first, 500); /* what is told to the next leader */
    divvy_testing_lag_server(e, other, 500);
    int64_t until = e->now + 10000;
    while (e->servers[first].role != DV_MEM_LEADING && e->servers[other].role != DV_MEM_LEADING)
        assert_int_equal(divvy_testing_step(e, until), 1);
    unsigned brief = e->servers[first].role == DV_MEM_LEADING ? first : other, left = brief == first ? other : first;
    divvy_testing_kill_server(e, brief);
    divvy_testing_lag_server(e, left, 0);
    divvy_testing_start_server(e, old);
    divvy_testing_run(e, 5000);
    assert_true(divvy_testing_leader(e) >= 0);
    assert_true(e->servers[divvy_testing_leader(e)].epoch > e->servers[brief].epoch);
    divvy_testing_put(e, "/a", "", 0, DIVVY_TESTING_PERSISTENT);
    divvy_testing_kill_server(e, left);
    divvy_testing_start_server(e, brief);
    divvy_testing_run(e, 5000);
    assert_int_equal(divvy_testing_leader(e), (int)old);
    assert_true(divvy_testing_exists(e, "/a"));
}

/* Without a quorum nothing is done; a server that was away catches up. */
TEST(test_no_quorum) {
    unsigned leader = (unsigned)divvy_testing_leader(e), a = (leader + 1) % 3, b = (leader + 2) % 3;
    divvy_client *c = open_client(e, 40000, (int)leader);
    divvy_testing_kill_server(e, a);
    assert_int_equal(do_create(c, "/a", DV_PERSISTENT), 0);
    divvy_testing_kill_server(e, b);
    ask_op(c, &o, op_create("/b", "", DV_PERSISTENT), NULL);
    divvy_testing_run(e, 3000);
    assert_int_equal(o.error, DIVVY_ECONNECTION); /* it has stepped down at the end of a tick */
    assert_int_equal(divvy_testing_leader(e), -1);
    assert_int_equal(divvy_testing_put(e, "/x", "", 0, DIVVY_TESTING_PERSISTENT), DIVVY_ESTATE);
    assert_int_equal(divvy_testing_expire(e, c), DIVVY_ESTATE);
    divvy_testing_start_server(e, a);
    divvy_testing_run(e, 2000);
    assert_int_equal(divvy_testing_leader(e), (int)leader); /* who knows more */
    assert_true(divvy_testing_exists(e, "/b"));
    assert_int_equal(e->servers[a].applied, e->truth_index);
    assert_int_equal(divvy_testing_kill_server(e, 3), DIVVY_EINVAL);
    assert_int_equal(divvy_testing_link_servers(e, 1, 1, DIVVY_TESTING_LINK_UP), DIVVY_EINVAL);
    divvy_client_close(c);
}

TEST_EACH(set_up, tear_down);
