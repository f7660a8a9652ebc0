/* The life of a session, and what its clients may do. SPDX-License-Identifier: Apache-2.0
 *
 * Shows real silences, expiries and restarts, by the clock of the machine and the native client's events. */
#include "client_session_fixture.h"

/* The node of the only member below `path`: its name, malloc'ed, and whose it is. */
static char *only_node(const char *path, int64_t *owner) {
    size_t count;
    struct Stat stat;
    char text[512];
    char **names = dv_test_zk_children(truth, path, &count);
    assert_int_equal(count, 1);
    snprintf(text, sizeof text, "%s/%s", path, names[0]);
    assert_true(dv_test_zk_exists(truth, text, &stat));
    *owner = stat.ephemeralOwner;
    char *name = strdup(names[0]);
    dv_test_zk_free_names(names);
    return name;
}

static size_t nodes(const char *path) {
    return dv_test_zk_count(truth, path);
}

/* --- loss ------------------------------------------------------------------------------------------------------- */

/* docs/protocol.md, C2: how much is left at most. */
static int64_t most_left_ms(int64_t timeout_ms) {
    return timeout_ms - (timeout_ms / 100 + 20);
}

/* C3 and C4: how much a client at rest has left at least. Of its pairs of heartbeats, which come every tenth of the
 * timeout for so short a tick, each proves the newest one that was answered by then for long enough; until the next
 * pair is answered that is what counts. */
static int64_t least_left_ms(int64_t timeout_ms) {
    int64_t heartbeat_ms = timeout_ms / 10, guard_ms = TICK_MS / 2 + 100;
    int64_t beats = (guard_ms + heartbeat_ms - 1) / heartbeat_ms;
    return most_left_ms(timeout_ms) - (beats + 1) * heartbeat_ms;
}

/* Since the time left is asked for a little later than the clock is read, this is never later than the deadline. A
 * thread that was stopped between the two asks again. */
static int64_t deadline_ms(const divvy_client *client) {
    for (;;) {
        int64_t now_ms = dv_test_now_ms(), left_ms = divvy_client_time_left_ms(client);
        if (dv_test_now_ms() - now_ms <= 2) return now_ms + left_ms;
    }
}

/* Without a proof there is no deadline (C5): on a machine that stood still, writes have to bring the first one. */
static void await_proof(divvy_client *client) {
    assert_true(DV_WAIT(divvy_client_time_left_ms(client) > 0, PATIENCE_MS));
}

/* A link that breaks and comes back in time costs nothing: the same session, its node still there, the states told in
 * order, and a deadline that stands still meanwhile and moves on afterwards. */
TEST(test_suspended_connected) {
    enum { TIMEOUT_MS = 9000 };
    witness w;
    divvy_strings *members;
    dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(server, 1));
    divvy_client_config config = witness_config(&w, dv_test_proxy_address(proxy));
    config.session_timeout_ms = TIMEOUT_MS;
    config.ensemble_tick_ms = TICK_MS;
    divvy_client *client = open_connected(&config);
    divvy_party *party = join(client, "/blip");
    int64_t session = divvy_client_session_id(client), owner;
    char *node = only_node("/blip", &owner);
    await_proof(client);
    assert_in_range(divvy_client_time_left_ms(client), 1, most_left_ms(TIMEOUT_MS));
    dv_test_proxy_cut(proxy);
    int64_t cut_ms = dv_test_now_ms();
    assert_true(DV_WAIT(witness_told(&w, "CS"), PATIENCE_MS));
    int64_t deadline = deadline_ms(client);
    assert_in_range(deadline - cut_ms, 1, most_left_ms(TIMEOUT_MS));
    for (int i = 0; i < 20 && divvy_client_time_left_ms(client) > 0; i++) {
        dv_test_sleep_ms(10);
        assert_in_range(deadline_ms(client), deadline - 50, deadline + 50); /* no proof, no other deadline */
    }
    dv_test_proxy_restore(proxy);
    assert_true(DV_WAIT(witness_told(&w, "CSC"), PATIENCE_MS));
    assert_int_equal(divvy_client_session_id(client), session);
    assert_true(DV_WAIT(deadline_ms(client) > cut_ms + TIMEOUT_MS, PATIENCE_MS)); /* proven since */
    assert_in_range(divvy_client_time_left_ms(client), 1, most_left_ms(TIMEOUT_MS));
    assert_int_equal(divvy_party_members(party, &members, PATIENCE_MS), 0);
    assert_int_equal(divvy_strings_count(members), 1);
    divvy_strings_free(members);
    char *after = only_node("/blip", &owner);
    assert_string_equal(after, node);
    assert_int_equal(owner, session);
    free(node);
    free(after);
    divvy_party_destroy(party);
    divvy_client_close(client);
    assert_true(witness_told(&w, "CSC"));
    witness_end(&w);
    dv_test_proxy_stop(proxy);
}

/* Returns the deadline when the loss was told. An answer that the server sent before the cut may arrive after it and
 * move the deadline once more, but never beyond what a proof of the time before the cut allows. */
static int64_t await_deadline(divvy_client *client, witness *w, int64_t cut_ms, int64_t timeout_ms) {
    int64_t deadline = cut_ms;
    while (!strchr(witness_states(w), 'L')) {
        int64_t asked_ms = dv_test_now_ms(), left_ms = divvy_client_time_left_ms(client);
        if (left_ms > 0) assert_true(asked_ms + left_ms <= cut_ms + most_left_ms(timeout_ms) + 2); /* two clocks */
        if (left_ms > 0 && asked_ms + left_ms > deadline) deadline = asked_ms + left_ms;
        dv_test_sleep_ms(5);
    }
    assert_int_equal(divvy_client_time_left_ms(client), 0);
    return deadline;
}

/* While a new session is sought nothing is final: objects can be made, those that are left are never made, and calls
 * that wait run out of time. */
static void check_between_sessions(divvy_client *client, divvy_party *party, divvy_party **later,
                                   divvy_partitioner **p) {
    static const char *const items[] = {"a"};
    divvy_strings *members;
    divvy_party *never;
    divvy_partitioner_config config = dv_test_partitioner_config("/lost/pool", items, 1, 0);
    assert_int_equal(divvy_client_state(client), DIVVY_CONNECTING);
    assert_int_equal(divvy_client_time_left_ms(client), 0);
    ASSERT_FAILS(divvy_client_wait_connected(client, 200), DIVVY_ETIMEDOUT, client, "200 ms");
    ASSERT_FAILS(divvy_party_members(party, &members, 200), DIVVY_ETIMEDOUT, client, "/lost/party");
    assert_int_equal(divvy_party_join(later, client, "/lost/later", "me", DIVVY_PARTY), 0);
    assert_int_equal(divvy_party_join(&never, client, "/lost/never", "me", DIVVY_PARTY), 0);
    assert_int_equal(divvy_party_leave(never, PATIENCE_MS), 0);
    divvy_party_destroy(never);
    assert_int_equal(divvy_partitioner_create(p, client, &config), 0);
}

/* A link that stays away ends the session by the clock alone, with no server having said so; once there is a link
 * again, all goes on by itself on a new session: what was there, and what was made in between. */
TEST(test_lost_and_anew) {
    enum { TIMEOUT_MS = 6000 };
    witness w;
    divvy_party *left, *later;
    divvy_partitioner *p;
    dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(server, 1));
    divvy_client_config config = witness_config(&w, dv_test_proxy_address(proxy));
    config.session_timeout_ms = TIMEOUT_MS;
    config.ensemble_tick_ms = TICK_MS;
    divvy_client *client = open_connected(&config);
    divvy_party *party = join(client, "/lost/party");
    left = join(client, "/lost/left");
    int64_t session = divvy_client_session_id(client), owner;
    char *node = only_node("/lost/party", &owner);
    assert_int_equal(owner, session);
    await_proof(client);
    dv_test_proxy_cut(proxy);
    int64_t cut_ms = dv_test_now_ms();
    int64_t deadline = await_deadline(client, &w, cut_ms, TIMEOUT_MS); /* before any server can have expired it */
    assert_true(deadline > cut_ms);
    assert_true(DV_WAIT(witness_told(&w, "CSLN"), PATIENCE_MS));
    assert_in_range(w.state_at_ms[2], deadline - 50, deadline + 10000); /* callbacks may come late */
    assert_true(witness_logged(&w, "no server has proven within the deadline that it lives"));
    assert_int_equal(divvy_party_leave(left, PATIENCE_MS), 0); /* gone with its session, or going */
    check_between_sessions(client, party, &later, &p);

    dv_test_proxy_restore(proxy);
    assert_int_equal(divvy_client_wait_connected(client, PATIENCE_MS), 0);
    assert_true(DV_WAIT(witness_told(&w, "CSLNC"), PATIENCE_MS));
    int64_t another = divvy_client_session_id(client);
    assert_int_not_equal(another, session);
    assert_int_equal(divvy_partitioner_wait_for_acquire(p, PATIENCE_MS), 0);
    assert_int_equal(divvy_partitioner_owns(p, "a"), 1);
    divvy_party *parties[] = {party, later};
    const char *paths[] = {"/lost/party", "/lost/later"};
    for (int i = 0; i < 2; i++) {
        divvy_strings *members;
        assert_int_equal(divvy_party_members(parties[i], &members, PATIENCE_MS), 0);
        divvy_strings_free(members);
        assert_true(DV_WAIT(nodes(paths[i]) == 1, PATIENCE_MS)); /* The server expires what the client gave up. */
        char *again = only_node(paths[i], &owner);
        assert_int_equal(owner, another);
        assert_string_not_equal(again, node);
        free(again);
    }
    free(node);
    assert_true(DV_WAIT(nodes("/lost/left") == 0, PATIENCE_MS));
    assert_false(dv_test_zk_exists(truth, "/lost/never", NULL));
    assert_int_equal(witness_warned(&w), 0);
    divvy_partitioner_destroy(p);
    divvy_party_destroy(left);
    divvy_party_destroy(later);
    divvy_party_destroy(party);
    divvy_client_close(client);
    assert_true(witness_told(&w, "CSLNC"));
    witness_end(&w);
    assert_int_equal(nodes("/lost/party") + nodes("/lost/later"), 0);
    dv_test_proxy_stop(proxy);
}

/* A server that falls silent, with the link up, is noticed too: the session is lost, without a word of any server and
 * before it can have been expired, and a new one is opened when somebody answers again. */
TEST(test_silence_is_loss) {
    enum { TIMEOUT_MS = 6000 };
    witness w;
    dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(server, 1));
    divvy_client_config config = witness_config(&w, dv_test_proxy_address(proxy));
    config.session_timeout_ms = TIMEOUT_MS;
    config.ensemble_tick_ms = TICK_MS;
    divvy_client *client = open_connected(&config);
    divvy_party *party = join(client, "/silence");
    int64_t session = divvy_client_session_id(client);
    await_proof(client);
    dv_test_proxy_freeze(proxy);
    int64_t frozen_ms = dv_test_now_ms();
    int64_t deadline = await_deadline(client, &w, frozen_ms, TIMEOUT_MS);
    assert_true(deadline > frozen_ms);
    assert_true(DV_WAIT(witness_told(&w, "CSLN"), PATIENCE_MS)); /* suspended after two thirds of the timeout */
    assert_true(w.state_at_ms[2] >= deadline - 50);
    dv_test_proxy_restore(proxy);
    assert_true(DV_WAIT(witness_told(&w, "CSLNC"), PATIENCE_MS));
    assert_int_not_equal(divvy_client_session_id(client), session);
    divvy_party_destroy(party);
    divvy_client_close(client);
    witness_end(&w);
    dv_test_proxy_stop(proxy);
}

/* A server that falls silent holds nobody up who knows of another, over TLS neither, where the native client would wait
 * for its handshake without end. */
TEST(test_silent_server_is_left) {
    enum { TIMEOUT_MS = 6000 };
    witness w;
    char list[128];
    dv_test_proxy *silent = dv_test_proxy_start(dv_test_server_address(server, 1));
    dv_test_proxy *other = dv_test_proxy_start(dv_test_server_address(server, 1));
    snprintf(list, sizeof list, "%s,%s", dv_test_proxy_address(silent), dv_test_proxy_address(other));
    divvy_client_config config = witness_config(&w, list);
    config.session_timeout_ms = TIMEOUT_MS;
    divvy_client *client = open_connected(&config);
    dv_test_proxy_freeze(silent);
    dv_test_proxy_cut(other); /* Whichever it was on, it has to try both. */
    assert_true(DV_WAIT(divvy_client_state(client) != DIVVY_CONNECTED, PATIENCE_MS));
    dv_test_proxy_restore(other);
    assert_int_equal(divvy_client_wait_connected(client, PATIENCE_MS), 0);
    divvy_client_close(client);
    witness_end(&w);
    dv_test_proxy_stop(silent);
    dv_test_proxy_stop(other);
}

/* Heartbeats alone keep the deadline of a client at rest away, two every tenth of the timeout and no other request. */
TEST(test_rest_keeps_the_deadline_away) {
    enum { TIMEOUT_MS = 6000, WATCHED_MS = 5000 };
    witness w;
    divvy_stats before, after;
    divvy_client_config config = witness_config(&w, hosts());
    config.session_timeout_ms = TIMEOUT_MS;
    config.ensemble_tick_ms = TICK_MS;
    divvy_client *client = open_connected(&config);
    divvy_party *party = join(client, "/rest");
    assert_int_equal(divvy_client_stats(client, &before, sizeof before), 0);
    int64_t began_ms = dv_test_now_ms(), looked_ms = began_ms;
    int looks = 0, short_looks = 0;
    while (looked_ms - began_ms < WATCHED_MS) {
        int64_t left_ms = divvy_client_time_left_ms(client);
        assert_true(left_ms > 0);
        looks++;
        short_looks += left_ms < least_left_ms(TIMEOUT_MS) - 200;
        dv_test_sleep_ms(5);
        looked_ms = dv_test_now_ms();
    }
    assert_int_equal(divvy_client_stats(client, &after, sizeof after), 0);
    /* A pause of the server or of this machine makes some looks short. Heartbeats of twice the interval make half. */
    if (short_looks > looks / 3) fail_msg("at %d of %d looks too little time was left", short_looks, looks);
    uint64_t beats = after.checks - before.checks;
    assert_in_range(beats, 2, 2 * ((uint64_t)(looked_ms - began_ms) / (TIMEOUT_MS / 10) + 1));
    assert_int_equal(after.requests - before.requests, beats); /* and nothing else is sent */
    assert_int_equal(after.multis - before.multis, beats);
    assert_true(witness_told(&w, "C"));
    divvy_party_destroy(party);
    divvy_client_close(client);
    witness_end(&w);
}

/* An expiry that a server tells of is a loss too, with that reason, long before the deadline; the new session has the
 * chroot, made again if need be, and the credentials of the old. */
TEST(test_expired_by_the_server) {
    witness w;
    char list[128];
    divvy_strings *members;
    int64_t owner;
    dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(server, 1));
    snprintf(list, sizeof list, "%s/expired/root", dv_test_proxy_address(proxy));
    divvy_client_config config = witness_config(&w, list);
    config.session_timeout_ms = 60000;
    config.auth_scheme = "digest";
    config.auth = "u:sesame";
    divvy_client *client = open_connected(&config);
    divvy_party *party = join(client, "/party");
    int64_t session = divvy_client_session_id(client);
    dv_test_proxy_cut(proxy);
    assert_true(dv_test_expire(hosts(), session, NULL));
    assert_int_equal(dv_test_zk_delete_all(truth, "/expired"), ZOK);
    dv_test_proxy_restore(proxy);
    assert_true(DV_WAIT(witness_told(&w, "CSLNC"), PATIENCE_MS));
    assert_int_equal(divvy_client_wait_connected(client, 0), 0);
    assert_int_not_equal(divvy_client_session_id(client), session);
    assert_int_equal(divvy_party_members(party, &members, PATIENCE_MS), 0);
    assert_int_equal(divvy_strings_count(members), 1);
    assert_string_equal(divvy_strings_get(members, 0), "me");
    divvy_strings_free(members);
    free(only_node("/expired/root/party", &owner));
    assert_int_equal(owner, divvy_client_session_id(client));
    check_access("/expired", "digest:31 ");
    divvy_party_destroy(party);
    divvy_client_close(client);
    assert_non_null(strstr(w.log, "the servers have expired it"));
    witness_end(&w);
    assert_int_equal(nodes("/expired/root/party"), 0);
    dv_test_proxy_stop(proxy);
}

/* A client may lose one session after the other, each time with the next one's number, and what is on it goes along. */
TEST(test_lost_again_and_again) {
    enum { ROUNDS = 3 };
    witness w;
    divvy_stats stats;
    char told[STATES_MAX + 1] = "C";
    dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(server, 1));
    divvy_client_config config = witness_config(&w, dv_test_proxy_address(proxy));
    config.session_timeout_ms = 60000;
    divvy_client *client = open_connected(&config);
    divvy_party *party = join(client, "/again");
    for (int round = 0; round < ROUNDS; round++) {
        divvy_strings *members;
        int64_t session = divvy_client_session_id(client), owner;
        dv_test_proxy_cut(proxy);
        assert_true(dv_test_expire(hosts(), session, NULL));
        dv_test_proxy_restore(proxy);
        strcat(told, "SLNC");
        assert_true(DV_WAIT(witness_told(&w, told), PATIENCE_MS));
        assert_int_equal(divvy_party_members(party, &members, PATIENCE_MS), 0);
        assert_int_equal(divvy_strings_count(members), 1);
        divvy_strings_free(members);
        free(only_node("/again", &owner));
        assert_int_not_equal(owner, session);
        assert_int_equal(owner, divvy_client_session_id(client));
        assert_int_equal(divvy_client_stats(client, &stats, sizeof stats), 0);
        assert_int_equal(stats.ephemerals, 1);
    }
    divvy_party_destroy(party);
    divvy_client_close(client);
    witness_end(&w);
    assert_int_equal(nodes("/again"), 0);
    dv_test_proxy_stop(proxy);
}

/* A server that is killed and started again with its data serves the same session, with its node. */
TEST(test_restart_keeps_the_session) {
    witness w;
    divvy_strings *members;
    divvy_client_config config = witness_config(&w, hosts());
    config.session_timeout_ms = 60000;
    divvy_client *client = open_connected(&config);
    divvy_party *party = join(client, "/restart");
    int64_t session = divvy_client_session_id(client);
    dv_test_server_kill(server, 1);
    assert_true(DV_WAIT(divvy_client_state(client) == DIVVY_SUSPENDED, PATIENCE_MS));
    ASSERT_FAILS(divvy_party_members(party, &members, 100), DIVVY_ETIMEDOUT, client, "/restart");
    ASSERT_FAILS(divvy_client_wait_connected(client, 100), DIVVY_ETIMEDOUT, client, hosts());
    dv_test_server_restart(server, 1);
    assert_int_equal(divvy_client_wait_connected(client, PATIENCE_MS), 0);
    assert_int_equal(divvy_client_session_id(client), session);
    assert_int_equal(divvy_party_members(party, &members, PATIENCE_MS), 0);
    assert_int_equal(divvy_strings_count(members), 1);
    divvy_strings_free(members);
    divvy_party_destroy(party);
    assert_true(DV_WAIT(witness_told(&w, "CSC"), PATIENCE_MS));
    divvy_client_close(client);
    witness_end(&w);
}

TEST_GROUP(set_up_trusted, stop_server);
