/* Tests of a client's end, and of its callbacks. SPDX-License-Identifier: Apache-2.0
 *
 * Shows that a close ends in bounded time while a real server hangs, from whatever thread it is called. */
#include "client_fixture.h"

/* --- closing ---------------------------------------------------------------------------------------------------- */

typedef struct {
    divvy_client *client;
    atomic_int error, begun;
} waiter;

static void *wait_connected(void *argument) {
    waiter *x = argument;
    atomic_store(&x->begun, 1);
    atomic_store(&x->error, divvy_client_wait_connected(x->client, -1));
    return NULL;
}

static void *close_client(void *argument) {
    divvy_client_close(argument);
    return NULL;
}

/* Closed by another thread, those who wait for a connection are told so. */
TEST(test_close_while_others_wait) {
    enum { WAITERS = 3, ROUNDS = 20 };
    int fd;
    const char *address = dead_address(&fd);
    for (int round = 0; round < ROUNDS; round++) {
        witness w;
        divvy_client_config config = witness_config(&w, address);
        config.manual = round % 2;
        pthread_t closer, threads_of[WAITERS];
        waiter waiters[WAITERS];
        divvy_client *client = open_with(&config);
        for (int i = 0; i < WAITERS; i++) {
            waiters[i] = (waiter){.client = client};
            assert_int_equal(pthread_create(&threads_of[i], NULL, wait_connected, &waiters[i]), 0);
        }
        /* A call that begins after close would be the caller's fault: in most rounds they wait by now. */
        for (int i = 0; i < WAITERS; i++) assert_true(DV_WAIT(atomic_load(&waiters[i].begun), PATIENCE_MS));
        dv_test_sleep_ms(20);
        assert_int_equal(pthread_create(&closer, NULL, close_client, client), 0);
        for (int i = 0; i < WAITERS; i++) {
            pthread_join(threads_of[i], NULL);
            assert_int_equal(atomic_load(&waiters[i].error), DIVVY_ECLOSED);
        }
        pthread_join(closer, NULL);
        witness_end(&w);
    }
    close(fd);
}

/* Closed before a server was there, right after open or while names are resolved: it ends, and leaves nothing. */
TEST(test_close_at_once) {
    int fd;
    const char *lists[] = {dead_address(&fd), hosts(), "localhost:1", "nobody.invalid"};
    for (int round = 0; round < 24; round++) {
        witness w;
        divvy_client_config config = witness_config(&w, lists[round % 4]);
        config.manual = round / 4 % 2;
        divvy_client_close(open_with(&config));
        witness_end(&w);
    }
    /* A thread that still asks a name server ends by itself. */
    assert_true(DV_WAIT(threads() == threads_at_rest, PATIENCE_MS));
    close(fd);
    assert_true(DV_WAIT(descriptors() == descriptors_at_rest, PATIENCE_MS));
}

enum { NOT_YET, GO_ON, CLOSED_INSIDE };

static void close_inside(witness *w, divvy_client *client, divvy_session_state state) {
    atomic_int *stage = w->user;
    (void)state;
    DV_WAIT(atomic_load(stage) == GO_ON, PATIENCE_MS);
    divvy_client_close(client); /* returns at once, and the client is there yet */
    witness_expect(w, divvy_client_wait_connected(client, -2) == DIVVY_EINVAL, client);
    witness_expect(w, atomic_fetch_add(stage, 1) == GO_ON, client);
}

/* Closed inside a callback, with an object on it: the call returns at once, the client ends by itself, its session is
 * closed at the server, and no further callback comes. */
TEST(test_close_in_a_callback) {
    for (int round = 0; round < 5; round++) {
        witness w;
        atomic_int stage = NOT_YET;
        divvy_party *party;
        divvy_strings *members;
        divvy_client_config config = witness_config(&w, hosts());
        w.on_session = close_inside;
        w.user = &stage;
        divvy_client *client = open_with(&config);
        assert_int_equal(divvy_party_join(&party, client, "/closed-inside", "me", DIVVY_PARTY), 0);
        atomic_store(&stage, GO_ON);
        assert_true(DV_WAIT(atomic_load(&stage) == CLOSED_INSIDE, PATIENCE_MS));
        assert_true(DV_WAIT(threads() == threads_at_rest, PATIENCE_MS));
        assert_int_equal(divvy_party_members(party, &members, PATIENCE_MS), DIVVY_ECLOSED);
        assert_null(members);
        divvy_party_destroy(party); /* the client's memory goes with it */
        assert_int_equal(atomic_load(&stage), CLOSED_INSIDE);
        assert_true(DV_WAIT(descriptors() == descriptors_at_rest, PATIENCE_MS));
        witness_end(&w);
        assert_int_equal(dv_test_zk_count(truth, "/closed-inside"), 0);
    }
}

/* With a server that hangs close ends all the same, in bounded time, with objects and requests under way. */
TEST(test_close_with_a_hung_server) {
    witness w;
    divvy_party *party, *joining;
    divvy_strings *members;
    divvy_client_config config = witness_config(&w, hosts());
    divvy_client *client = open_connected(&config);
    assert_int_equal(divvy_party_join(&party, client, "/hung", "me", DIVVY_PARTY), 0);
    assert_int_equal(divvy_party_members(party, &members, PATIENCE_MS), 0);
    divvy_strings_free(members);
    dv_test_server_pause(server, 1);
    assert_int_equal(divvy_party_join(&joining, client, "/hung", "too", DIVVY_SHALLOW_PARTY), 0);
    ASSERT_FAILS(divvy_party_members(party, &members, 100), DIVVY_ETIMEDOUT, client, "/hung");
    int64_t before_ms = dv_test_now_ms();
    divvy_client_close(client);
    assert_true(dv_test_now_ms() - before_ms < PATIENCE_MS);
    dv_test_server_resume(server, 1);
    divvy_party_destroy(party);
    divvy_party_destroy(joining);
    witness_end(&w);
}

/* A read with a watch that is under way when the client closes, as with a hung server, comes to its end too. */
TEST(test_close_with_a_watch_under_way) {
    static const char *const items[] = {"a"};
    bool caught = false;
    for (int attempt = 0; attempt < 20 && !caught; attempt++) {
        witness w;
        divvy_stats s = {.requests = 0};
        divvy_partitioner *p;
        divvy_client_config config = witness_config(&w, hosts());
        divvy_client *client = open_connected(&config);
        divvy_partitioner_config p_config = dv_test_partitioner_config("/hung-watch", items, 1, 1000);
        assert_int_equal(divvy_partitioner_create(&p, client, &p_config), 0);
        /* The party was read once; it is read again, with a watch, when its boundary is over. */
        assert_true(
            DV_WAIT(divvy_client_stats(client, &s, sizeof s) == 0 && s.children >= 2 && s.in_flight == 0, PATIENCE_MS));
        dv_test_server_pause(server, 1);
        caught = DV_WAIT(divvy_client_stats(client, &s, sizeof s) == 0 && s.in_flight > 0, 3000);
        divvy_client_close(client);
        dv_test_server_resume(server, 1);
        assert_int_equal(divvy_partitioner_state(p), DIVVY_FAILURE);
        divvy_partitioner_destroy(p);
        witness_end(&w);
    }
    assert_true(caught);
}

/* A member that is closed with its party joined deletes its node itself and does not wait for it in vain. */
TEST(test_close_leaves_the_party) {
    int64_t least_ms = INT64_MAX;
    for (int round = 0; round < 20 && least_ms >= 1900; round++) { /* On a busy machine some may take long. */
        witness w;
        divvy_party *party;
        divvy_strings *members;
        divvy_client_config config = witness_config(&w, hosts());
        divvy_client *client = open_connected(&config);
        assert_int_equal(divvy_party_join(&party, client, "/closed", "me", DIVVY_PARTY), 0);
        assert_int_equal(divvy_party_members(party, &members, PATIENCE_MS), 0);
        divvy_strings_free(members);
        int64_t before_ms = dv_test_now_ms();
        divvy_client_close(client);
        int64_t took_ms = dv_test_now_ms() - before_ms;
        if (took_ms < least_ms) least_ms = took_ms;
        divvy_party_destroy(party);
        witness_end(&w);
        assert_int_equal(dv_test_zk_count(truth, "/closed"), 0);
    }
    assert_true(least_ms < 1900); /* 2 s is what it would wait for a server that does not answer */
}

/* --- callbacks -------------------------------------------------------------------------------------------------- */

static void call_waiting_functions(witness *w, divvy_client *client, divvy_session_state state) {
    divvy_party **party = w->user;
    divvy_strings *members;
    if (state != DIVVY_SUSPENDED) return;
    witness_expect(w, divvy_client_wait_connected(client, 1000) == DIVVY_EDEADLK, client);
    witness_expect(w, divvy_client_wait_connected(client, -1) == DIVVY_EDEADLK, client);
    witness_expect(w, *divvy_client_error(client), client);
    witness_expect(w, divvy_party_members(*party, &members, 1000) == DIVVY_EDEADLK, client);
    witness_expect(w, divvy_client_process(client, 0) == DIVVY_ESTATE, client);
    witness_expect(w, divvy_client_state(client) == DIVVY_SUSPENDED, client);
    witness_expect(w, divvy_client_time_left_ms(client) > 0, client);
    divvy_party_destroy(*party);
    *party = NULL;
}

/* Inside a callback a call that would wait returns DIVVY_EDEADLK, and all others work, destroy included. */
TEST(test_calls_inside_a_callback) {
    witness w;
    divvy_party *party;
    divvy_strings *members;
    dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(server, 1));
    divvy_client_config config = witness_config(&w, dv_test_proxy_address(proxy));
    w.on_session = call_waiting_functions;
    w.user = &party;
    divvy_client *client = open_connected(&config);
    assert_int_equal(divvy_party_join(&party, client, "/inside", "me", DIVVY_PARTY), 0);
    assert_int_equal(divvy_party_members(party, &members, PATIENCE_MS), 0);
    divvy_strings_free(members);
    dv_test_proxy_cut(proxy);
    assert_true(DV_WAIT(witness_told(&w, "CS"), PATIENCE_MS));
    dv_test_proxy_restore(proxy);
    assert_true(DV_WAIT(witness_told(&w, "CSC"), PATIENCE_MS));
    assert_null(party);
    divvy_client_close(client);
    dv_test_proxy_stop(proxy);
    assert_int_equal(dv_test_zk_count(truth, "/inside"), 0);
    witness_end(&w);
}

static void be_slow(witness *w, divvy_client *client, divvy_session_state state) {
    (void)client, (void)state;
    atomic_bool *go_on = w->user;
    DV_WAIT(atomic_load(go_on), PATIENCE_MS);
}

/* A callback that does not come to an end holds up other callbacks, but neither the session nor other calls. */
TEST(test_slow_callback) {
    witness w;
    atomic_bool go_on = false;
    divvy_client_config config = witness_config(&w, hosts());
    config.session_timeout_ms = 8000;
    config.ensemble_tick_ms = TICK_MS;
    w.on_session = be_slow;
    w.user = &go_on;
    divvy_client *client = open_connected(&config);
    assert_true(DV_WAIT(witness_told(&w, "C"), PATIENCE_MS));
    int64_t session = divvy_client_session_id(client);
    for (int i = 0; i < 10; i++) {
        divvy_party *party;
        divvy_strings *members;
        assert_int_equal(divvy_party_join(&party, client, "/slow", "me", DIVVY_PARTY), 0);
        assert_int_equal(divvy_party_members(party, &members, PATIENCE_MS), 0);
        divvy_strings_free(members);
        assert_int_equal(divvy_party_leave(party, PATIENCE_MS), 0);
        divvy_party_destroy(party);
        dv_test_sleep_ms(1000); /* longer than the session would last, all in all */
    }
    assert_int_equal(divvy_client_state(client), DIVVY_CONNECTED);
    assert_int_equal(divvy_client_session_id(client), session);
    atomic_store(&go_on, true);
    assert_true(DV_WAIT(witness_told(&w, "C"), PATIENCE_MS));
    divvy_client_close(client);
    witness_end(&w);
}

TEST_GROUP(set_up_told, stop_server);
