/* Tests of what the calls of divvy/testing.h refuse, and of what a trace tells. SPDX-License-Identifier: Apache-2.0 */
#include "ensemble_client_fixture.h"

#define TOO_LONG_MS INT64_C(315360002000) /* ten years and a tick */

/* Returns what the making of an ensemble says of a config that has this value at `field`. */
#define WITH(field, value)                                                            \
    do {                                                                              \
        divvy_testing_config config = DIVVY_TESTING_CONFIG_INIT;                      \
        divvy_testing_ensemble *out = (void *)-1;                                     \
        config.field = (value);                                                       \
        assert_int_equal(divvy_testing_ensemble_create(&out, &config), DIVVY_EINVAL); \
        assert_null(out);                                                             \
    } while (0)

/* No ensemble is made of a config with a field out of range, and the caller has NULL then. */
TEST(test_config_out_of_range) {
    WITH(size, 0);
    WITH(servers, 0);
    WITH(servers, 10);
    WITH(client_delay_min_ms, -1);
    WITH(client_delay_max_ms, -1);
    WITH(server_delay_min_ms, -1);
    WITH(server_delay_max_ms, -1);
    WITH(election_min_ms, 0);
    WITH(election_max_ms, 199);
    WITH(tick_ms, 1);
    WITH(tick_ms, 3600001);
    WITH(sync_limit_ticks, 0);
    WITH(min_session_timeout_ms, -1);
    WITH(max_session_timeout_ms, -1);
    WITH(client_delay_max_ms, TOO_LONG_MS);
    WITH(server_delay_max_ms, TOO_LONG_MS);
    WITH(election_max_ms, TOO_LONG_MS);
    WITH(sync_limit_ticks, TOO_LONG_MS / 2000);
    WITH(min_session_timeout_ms, TOO_LONG_MS);
    WITH(max_session_timeout_ms, TOO_LONG_MS);
    WITH(release, 30700);
    assert_int_equal(divvy_testing_ensemble_create(NULL, NULL), DIVVY_EINVAL);
}

/* Each release that the header names can be had, and so can 0, and no config at all. */
TEST(test_releases) {
    static const int releases[] = {0, DIVVY_TESTING_3_4, DIVVY_TESTING_3_8, DIVVY_TESTING_3_9, DIVVY_TESTING_3_9_6};
    divvy_testing_ensemble *out = NULL;
    for (size_t i = 0; i < sizeof releases / sizeof releases[0]; i++) {
        divvy_testing_config config = DIVVY_TESTING_CONFIG_INIT;
        config.release = releases[i];
        assert_int_equal(divvy_testing_ensemble_create(&out, &config), 0);
        divvy_testing_ensemble_destroy(out);
    }
    assert_int_equal(divvy_testing_ensemble_create(&out, NULL), 0);
    assert_true(divvy_testing_leader(out) >= 0);
    divvy_testing_ensemble_destroy(out);
    divvy_testing_ensemble_destroy(NULL);
}

/* A fault of a client is refused without an ensemble, without a client, and with a value that the header lacks. */
TEST_IN(test_faults_of_a_client, set_up, tear_down) {
    const divvy_testing_link none = (divvy_testing_link)(DIVVY_TESTING_LINK_NO_REPLIES + 1);
    const divvy_testing_fate unknown = (divvy_testing_fate)(DIVVY_TESTING_APPLIED_BEHIND + 1);
    for (int i = 0; i < 2; i++) {
        divvy_testing_ensemble *mem = i ? e : NULL;
        divvy_client *client = i ? NULL : c;
        assert_int_equal(divvy_testing_link_client(mem, client, DIVVY_TESTING_LINK_DOWN), DIVVY_EINVAL);
        assert_int_equal(divvy_testing_disconnect(mem, client, DIVVY_TESTING_APPLIED, 0), DIVVY_EINVAL);
        assert_int_equal(divvy_testing_expire(mem, client), DIVVY_EINVAL);
        assert_int_equal(divvy_testing_prefer(mem, client, 0), DIVVY_EINVAL);
        assert_int_equal(divvy_testing_pause_client(mem, client, 1), DIVVY_EINVAL);
        assert_int_equal(divvy_testing_crash_client(mem, client), DIVVY_EINVAL);
        assert_int_equal(divvy_testing_drift_client(mem, client, 1), DIVVY_EINVAL);
        assert_int_equal(divvy_testing_refuse_auth(mem, client, 1), DIVVY_EINVAL);
        assert_int_equal(divvy_testing_answer(mem, client, -101, 0, 0, 1), DIVVY_EINVAL);
    }
    assert_int_equal(divvy_testing_link_client(e, c, none), DIVVY_EINVAL);
    assert_int_equal(divvy_testing_disconnect(e, c, unknown, 0), DIVVY_EINVAL);
    assert_int_equal(divvy_testing_disconnect(e, c, DIVVY_TESTING_APPLIED_LATE, -1), DIVVY_EINVAL);
    assert_int_equal(divvy_testing_disconnect(e, c, DIVVY_TESTING_APPLIED_LATE, TOO_LONG_MS), DIVVY_EINVAL);
    assert_int_equal(divvy_testing_prefer(e, c, -2), DIVVY_EINVAL);
    assert_int_equal(divvy_testing_prefer(e, c, 3), DIVVY_EINVAL);
    assert_int_equal(divvy_testing_drift_client(e, c, -1000000), DIVVY_EINVAL);
    assert_int_equal(divvy_testing_answer(e, c, -112, 0, 0, 1), DIVVY_EINVAL); /* It would end the session. */
    assert_int_equal(divvy_testing_answer(e, c, -101, 1, 0, 1), DIVVY_EINVAL); /* NONODE says that nothing was done. */
    divvy_testing_run(e, 1000);
    assert_int_equal(divvy_client_state(c), DIVVY_CONNECTED);
}

/* A fault of a server is refused without an ensemble, for a server that is not there, and with a value out of range. */
TEST_IN(test_faults_of_a_server, set_up, tear_down) {
    const divvy_testing_link none = (divvy_testing_link)(DIVVY_TESTING_LINK_NO_REPLIES + 1);
    for (int i = 0; i < 2; i++) {
        divvy_testing_ensemble *mem = i ? e : NULL;
        unsigned server = i ? 3 : 0;
        assert_int_equal(divvy_testing_kill_server(mem, server), DIVVY_EINVAL);
        assert_int_equal(divvy_testing_start_server(mem, server), DIVVY_EINVAL);
        assert_int_equal(divvy_testing_pause_server(mem, server, 1), DIVVY_EINVAL);
        assert_int_equal(divvy_testing_lag_server(mem, server, 1), DIVVY_EINVAL);
        assert_int_equal(divvy_testing_set_wall_clock(mem, server, 1), DIVVY_EINVAL);
        assert_int_equal(divvy_testing_link_servers(mem, server, 1, DIVVY_TESTING_LINK_DOWN), DIVVY_EINVAL);
        assert_int_equal(divvy_testing_link_servers(mem, 1, server, DIVVY_TESTING_LINK_DOWN), DIVVY_EINVAL);
    }
    assert_int_equal(divvy_testing_lag_server(e, 0, -1), DIVVY_EINVAL);
    assert_int_equal(divvy_testing_lag_server(e, 0, TOO_LONG_MS), DIVVY_EINVAL);
    assert_int_equal(divvy_testing_set_wall_clock(e, 0, TOO_LONG_MS), DIVVY_EINVAL);
    assert_int_equal(divvy_testing_set_wall_clock(e, 0, -TOO_LONG_MS), DIVVY_EINVAL);
    assert_int_equal(divvy_testing_link_servers(e, 1, 1, DIVVY_TESTING_LINK_DOWN), DIVVY_EINVAL);
    assert_int_equal(divvy_testing_link_servers(e, 0, 1, none), DIVVY_EINVAL);
    assert_int_equal(divvy_testing_heal(NULL), DIVVY_EINVAL);
    divvy_testing_run(e, 1000);
    assert_int_equal(divvy_client_state(c), DIVVY_CONNECTED);
}

/* What an administrator asks is refused without an ensemble, without a path, and with one that is no path. */
TEST_IN(test_administration, set_up, tear_down) {
    for (int i = 0; i < 2; i++) {
        divvy_testing_ensemble *mem = i ? e : NULL;
        const char *path = i ? NULL : "/a";
        assert_int_equal(divvy_testing_put(mem, path, "", 0, DIVVY_TESTING_PERSISTENT), DIVVY_EINVAL);
        assert_int_equal(divvy_testing_remove(mem, path), DIVVY_EINVAL);
        assert_int_equal(divvy_testing_set_sequence(mem, path, 1), DIVVY_EINVAL);
        assert_int_equal(divvy_testing_quota(mem, path, 1), DIVVY_EINVAL);
    }
    assert_int_equal(divvy_testing_put(e, "a", "", 0, DIVVY_TESTING_PERSISTENT), DIVVY_EINVAL);
    assert_int_equal(divvy_testing_put(e, "/a", NULL, 1, DIVVY_TESTING_PERSISTENT), DIVVY_EINVAL);
    assert_int_equal(divvy_testing_put(e, "/a", NULL, 0, DIVVY_TESTING_PERSISTENT), 0);
    assert_int_equal(divvy_testing_put(e, "/b/c", "", 0, DIVVY_TESTING_PERSISTENT), DIVVY_ENOENT);
    assert_int_equal(divvy_testing_remove(e, "a"), DIVVY_EINVAL);
    assert_int_equal(divvy_testing_remove(e, "/b"), DIVVY_ENOENT);
    assert_int_equal(divvy_testing_set_sequence(e, "/b", 1), DIVVY_ENOENT);
    assert_int_equal(divvy_testing_quota(e, "a", 1), DIVVY_EINVAL);
    assert_int_equal(divvy_testing_quota(e, "/", 1), DIVVY_EINVAL);
    assert_int_equal(divvy_testing_quota(e, "/a/", 1), DIVVY_EINVAL);
    assert_int_equal(divvy_testing_quota(e, "/a//b", 1), DIVVY_EINVAL);
    assert_int_equal(divvy_testing_exists(e, "/zookeeper/quota"), 0);
    assert_int_equal(divvy_testing_quota(e, "/a", -2), DIVVY_EINVAL);
}

/* Time goes on for an ensemble only, and never back. */
TEST_IN(test_time, set_up, tear_down) {
    int64_t now = divvy_testing_now_ms(e);
    assert_int_equal(divvy_testing_step(NULL, now + 1), DIVVY_EINVAL);
    assert_int_equal(divvy_testing_run(NULL, 1), DIVVY_EINVAL);
    assert_int_equal(divvy_testing_run(e, -1), DIVVY_EINVAL);
    assert_int_equal(divvy_testing_run(e, TOO_LONG_MS), DIVVY_EINVAL);
    assert_int_equal(divvy_testing_run(e, INT64_MAX), DIVVY_EINVAL);
    assert_int_equal(divvy_testing_step(e, now - 1), 0);
    assert_int_equal(divvy_testing_now_ms(e), now);
}

/* A step of an ensemble in which nothing will ever happen ends, however long it may take, and so does the next one. */
TEST(test_step_without_end) {
    divvy_testing_ensemble *idle = open_ensemble(NULL);
    for (unsigned server = 0; server < 3; server++) divvy_testing_kill_server(idle, server);
    while (divvy_testing_step(idle, INT64_MAX) > 0) continue;
    int64_t now = divvy_testing_now_ms(idle);
    assert_int_equal(divvy_testing_step(idle, INT64_MAX), 0);
    assert_true(divvy_testing_now_ms(idle) > now);
    divvy_testing_ensemble_destroy(idle);
}

/* ---- the trace ---- */

static char traced[1 << 16];
static size_t traced_bytes;

static void on_trace(int64_t at_ms, const char *line, void *user) {
    if (e) assert_int_equal(at_ms, divvy_testing_now_ms(e)); /* `e` is being made, else. */
    assert_ptr_equal(user, traced);
    if (traced_bytes + 256 < sizeof traced)
        traced_bytes += (size_t)snprintf(traced + traced_bytes, sizeof traced - traced_bytes, "%s\n", line);
}

/* Each of these stands in the trace of what has happened since the last call. */
static void assert_traced(const char *const *lines, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!strstr(traced, lines[i])) fail_msg("\"%s\" is not in the trace:\n%s", lines[i], traced);
    traced_bytes = 0;
    traced[0] = '\0';
}

#define ASSERT_TRACED(...)                                    \
    do {                                                      \
        const char *const lines[] = {__VA_ARGS__};            \
        assert_traced(lines, sizeof lines / sizeof lines[0]); \
    } while (0)

static int set_up_traced(void **state) {
    (void)state;
    divvy_testing_config config = DIVVY_TESTING_CONFIG_INIT;
    config.on_trace = on_trace;
    config.user = traced;
    traced_bytes = 0;
    e = NULL;
    e = open_ensemble(&config);
    c = open_client(e, 10000, 1);
    return 0;
}

/* The trace tells of each fault of a client and of its session, at the moment it happens. */
TEST_IN(test_trace_of_a_client, set_up_traced, tear_down) {
    ASSERT_TRACED("client 1: session 0x", "on server 1");
    assert_int_equal(divvy_testing_disconnect(e, c, DIVVY_TESTING_APPLIED, 0), 0);
    divvy_testing_run(e, 3000);
    ASSERT_TRACED("client 1: its connection breaks, 1 requests under way", "client 1: has lost server 1");
    assert_int_equal(divvy_testing_pause_client(e, c, 1), 0);
    assert_int_equal(divvy_testing_pause_client(e, c, 0), 0);
    assert_int_equal(divvy_testing_answer(e, c, -4242, 1, 2, 3), 0);
    ASSERT_TRACED("client 1: stopped", "client 1: goes on",
                  "client 1: 3 requests after 2 are answered by -4242, though carried out");
    assert_int_equal(divvy_testing_answer(e, c, -101, 0, 0, 0), 0);
    assert_int_equal(divvy_testing_expire(e, c), 0);
    divvy_testing_run(e, 5000);
    ASSERT_TRACED("client 1: its session is made to expire", "client 1: hears that its session has expired");
    assert_int_equal(divvy_testing_link_client(e, c, DIVVY_TESTING_LINK_DOWN), 0);
    divvy_testing_run(e, 30000);
    assert_int_equal(divvy_testing_link_client(e, c, DIVVY_TESTING_LINK_UP), 0);
    ASSERT_TRACED("client 1: link down", ": session 0x", " expires", "client 1: link up");
    assert_int_equal(divvy_testing_crash_client(e, c), 0);
    ASSERT_TRACED("client 1: crashes");
}

/* The trace tells of each fault of a server, and of what the others make of it. */
TEST_IN(test_trace_of_servers, set_up_traced, tear_down) {
    int leader = divvy_testing_leader(e);
    unsigned gone = (unsigned)leader, other = (gone + 1) % 3;
    char killed[64], started[64], stopped[64], on[64], cut[64];
    snprintf(killed, sizeof killed, "server %u: killed", gone);
    snprintf(started, sizeof started, "server %u: started", gone);
    snprintf(stopped, sizeof stopped, "server %u: stopped", other);
    snprintf(on, sizeof on, "server %u: goes on", other);
    snprintf(cut, sizeof cut, "servers %u and %u: link state 1", gone, other);
    assert_int_equal(divvy_testing_kill_server(e, gone), 0);
    divvy_testing_run(e, 20000);
    ASSERT_TRACED(killed, ": looks for a leader", ": elected, epoch 2", ": leads, epoch 2", ": joins leader ",
                  ": follows leader ");
    assert_int_equal(divvy_testing_start_server(e, gone), 0);
    assert_int_equal(divvy_testing_pause_server(e, other, 1), 0);
    assert_int_equal(divvy_testing_pause_server(e, other, 0), 0);
    assert_int_equal(divvy_testing_link_servers(e, gone, other, DIVVY_TESTING_LINK_DOWN), 0);
    ASSERT_TRACED(started, stopped, on, cut);
    for (unsigned i = 0; i < 3; i++)
        for (unsigned j = 0; j < 3; j++)
            if (i != j) assert_int_equal(divvy_testing_link_servers(e, i, j, DIVVY_TESTING_LINK_DOWN), 0);
    divvy_testing_run(e, 30000);
    ASSERT_TRACED(": hears nothing of its leader ", ": has lost its quorum");
    assert_int_equal(divvy_testing_leader(e), -1);
}
