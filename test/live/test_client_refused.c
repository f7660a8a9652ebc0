/* Tests of servers that take connections and close them again: those that demand credentials, and those that are broken
 * off for other reasons. SPDX-License-Identifier: Apache-2.0
 *
 * Shows servers that demand credentials, and how the native client comes back to one that closes connections. */
#include "client_session_fixture.h"
#include "test_attach_host.h"

enum { SHORT_SESSION_MS = 2000, RECONNECTS = 12 };

/* Servers that demand credentials of the scheme "digest" answer no request of a client that has given none. Java reads
 * its options from this variable. */
static void demand(void) {
    static const char options[] = "-Dzookeeper.enforce.auth.enabled=true -Dzookeeper.enforce.auth.schemes=digest";
    assert_int_equal(setenv("JAVA_TOOL_OPTIONS", options, 1), 0);
}

static void demand_nothing(void) {
    assert_int_equal(unsetenv("JAVA_TOOL_OPTIONS"), 0);
}

/* Without a look at the truth, whose session would be refused again and again. */
static int set_up_demanding(void **state) {
    (void)state;
    demand();
    server = dv_test_server_start(1, TICK_MS);
    demand_nothing();
    return 0;
}

static dv_test_server *demanding;

/* A server that demands nothing, in the place of the one that all other tests share. */
static int start_other(void **state) {
    demanding = server;
    return set_up(state);
}

static int stop_other(void **state) {
    int failed = stop_server(state);
    server = demanding;
    truth = NULL;
    return failed;
}

static divvy_client_config give(divvy_client_config config, const char *auth) {
    config.auth_scheme = "digest";
    config.auth = auth;
    return config;
}

/* A certificate is an identity too: over TLS the client has given one, of another scheme. */
static bool has_certificate(void) {
    return getenv("DIVVY_TEST_TLS") != NULL;
}

static const char *demand_of(void) {
    return has_certificate() ? "the servers demand other credentials" : "the servers demand credentials";
}

/* Returns whether nobody comes for two seconds. The native client would come every half a second. */
static bool is_left_alone(dv_test_proxy *proxy) {
    unsigned accepted = dv_test_proxy_count(proxy).accepted;
    dv_test_sleep_ms(2000);
    return dv_test_proxy_count(proxy).accepted == accepted && dv_test_proxy_count(proxy).open == 0;
}

/* A client without credentials ends at the first refusal, says what the servers demand and what gives it, and comes
 * back no more: but for once, where the native client is faster than the loop that closes it. */
TEST(test_nothing_given) {
    witness w;
    dv_test_proxy *proxy = dv_test_proxy_start(hosts());
    divvy_client_config config = witness_config(&w, dv_test_proxy_address(proxy));
    divvy_client *client = open_with(&config);
    assert_true(DV_WAIT(divvy_client_state(client) == DIVVY_AUTH_FAILED, PATIENCE_MS));
    ASSERT_FAILS(divvy_client_wait_connected(client, -1), DIVVY_EAUTH, client, demand_of());
    static const char *const cures[][2] = {{"auth_scheme and auth", "--auth-file"},
                                           {"enforce.auth.schemes", "sessionRequireClientSASLAuth"}};
    for (size_t i = 0; i < 2; i++)
        ASSERT_FAILS(divvy_client_wait_connected(client, -1), DIVVY_EAUTH, client, cures[has_certificate()][i]);
    assert_true(DV_WAIT(is_left_alone(proxy), PATIENCE_MS));
    divvy_client_close(client);
    assert_string_equal(witness_states(&w), "CA");
    witness_end(&w);
    dv_test_proxy_stop(proxy);
}

static divvy_lock *make_lock(divvy_client *client) {
    divvy_lock *lock;
    divvy_lock_config config = DIVVY_LOCK_CONFIG_INIT;
    config.path = "/lock";
    assert_int_equal(divvy_lock_create(&lock, client, &config), 0);
    return lock;
}

/* Recipes of such a client end with it, a chroot that is to be made first included. */
TEST(test_recipes) {
    witness w;
    char list[128];
    snprintf(list, sizeof list, "%s/below", hosts());
    divvy_client_config config = witness_config(&w, list);
    divvy_client *client = open_with(&config);
    divvy_lock *lock = make_lock(client);
    ASSERT_FAILS(divvy_lock_acquire(lock, -1), DIVVY_EAUTH, client, demand_of());
    divvy_lock_destroy(lock);
    divvy_client_close(client);
    witness_end(&w);
}

static atomic_int ended;

static void count_end(divvy_lock *lock, int result, void *user) {
    (void)lock, (void)user;
    if (result == DIVVY_EAUTH) atomic_fetch_add(&ended, 1);
}

/* A client that has much to ask at its first connection hears of the refusal, too, though its next write breaks the
 * connection before the answer is read. It does not have to lose its session for that. */
TEST(test_much_to_ask) {
    enum { LOCKS = 50 };
    witness w;
    divvy_lock *locks[LOCKS];
    divvy_client_config config = witness_config(&w, hosts());
    atomic_store(&ended, 0);
    divvy_client *client = open_with(&config);
    for (int i = 0; i < LOCKS; i++) {
        locks[i] = make_lock(client);
        assert_int_equal(divvy_lock_acquire_async(locks[i], -1, count_end, NULL), 0);
    }
    assert_true(DV_WAIT(atomic_load(&ended) == LOCKS, PATIENCE_MS));
    for (int i = 0; i < LOCKS; i++) divvy_lock_destroy(locks[i]);
    divvy_client_close(client);
    assert_null(strchr(witness_states(&w), 'L'));
    witness_end(&w);
}

/* A client with credentials of the scheme gets its lock. */
TEST(test_given) {
    witness w;
    divvy_client_config config = give(witness_config(&w, hosts()), "u:sesame");
    divvy_client *client = open_connected(&config);
    divvy_lock *lock = make_lock(client);
    assert_int_equal(divvy_lock_acquire(lock, PATIENCE_MS), 0);
    divvy_lock_destroy(lock);
    divvy_client_close(client);
    witness_end(&w);
}

/* Servers that demand credentials from now on end a client that holds something, too. Its watches are refused before
 * its requests are, so it may have to lose its session first. */
TEST_IN(test_demanded_later, start_other, stop_other) {
    witness w;
    divvy_client_config config = witness_config(&w, hosts());
    config.session_timeout_ms = SHORT_SESSION_MS;
    divvy_client *client = open_connected(&config);
    divvy_lock *lock = make_lock(client);
    divvy_party *party = join(client, "/party");
    assert_int_equal(divvy_lock_acquire(lock, PATIENCE_MS), 0);
    demand();
    dv_test_server_restart(server, 1);
    demand_nothing();
    assert_true(DV_WAIT(divvy_client_state(client) == DIVVY_AUTH_FAILED, PATIENCE_MS));
    ASSERT_FAILS(divvy_client_wait_connected(client, -1), DIVVY_EAUTH, client, demand_of());
    assert_false(divvy_lock_held(lock));
    divvy_party_destroy(party);
    divvy_lock_destroy(lock);
    divvy_client_close(client);
    witness_end(&w);
}

/* A host's handle is left to the host: the client on it ends, and says what to do, and the handle stays as it is. */
TEST(test_host_gives_nothing) {
    host h;
    host_open(&h, hosts(), HOST_TIMEOUT_MS);
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    divvy_client *client = attach_with(&h, &config);
    assert_true(DV_WAIT(divvy_client_state(client) == DIVVY_AUTH_FAILED, PATIENCE_MS));
    ASSERT_FAILS(divvy_client_wait_connected(client, -1), DIVVY_EAUTH, client, "zoo_add_auth()");
    assert_false(is_unrecoverable(h.handle));
    divvy_client_close(client);
    host_close(&h);
}

/* A host that gives its credentials behind the first request of ours is not too late. The server stands still while
 * both are sent, so that it finds both; where the native client sends the credentials first, nothing is refused. */
TEST(test_host_gives_later) {
    host h;
    host_open(&h, hosts(), HOST_TIMEOUT_MS);
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    dv_test_server_pause(server, 1);
    divvy_client *client = attach_with(&h, &config);
    int error = zoo_add_auth(h.handle, "digest", "u:sesame", 8, NULL, NULL);
    dv_test_server_resume(server, 1);
    assert_int_equal(error, ZOK);
    divvy_lock *lock = make_lock(client);
    assert_int_equal(divvy_lock_acquire(lock, PATIENCE_MS), 0);
    divvy_lock_destroy(lock);
    divvy_client_close(client);
    host_close(&h);
}

/* ---- pauses ---- */

/* A server that takes each connection, and closes it when it is asked for something. */
typedef struct {
    int listener;
    bool gives_session; /* else it closes the connection at once */
    atomic_uint accepted;
    atomic_bool over;
    pthread_t thread;
    char address[32];
} closer;

/* A ConnectResponse: length, protocol version, timeout of 2 s, session 0x100000000000001, a password of 16 bytes. */
static const unsigned char session_given[] = {0, 0, 0, 36, 0, 0, 0, 0, 0, 0, 7, 0xd0, 1, 0,  0,  0,  0,  0,  0,  1,
                                              0, 0, 0, 16, 1, 2, 3, 4, 5, 6, 7, 8,    9, 10, 11, 12, 13, 14, 15, 16};

static void *serve(void *argument) {
    closer *c = argument;
    char bytes[512];
    while (!atomic_load(&c->over)) {
        int s = accept(c->listener, NULL, NULL);
        if (s < 0) break;
        atomic_fetch_add(&c->accepted, 1);
        if (c->gives_session && recv(s, bytes, sizeof bytes, 0) > 0 &&
            send(s, session_given, sizeof session_given, MSG_NOSIGNAL) > 0)
            (void)!recv(s, bytes, sizeof bytes, 0);
        close(s);
    }
    return NULL;
}

static void start_closer(closer *c, bool gives_session) {
    memset(c, 0, sizeof *c);
    snprintf(c->address, sizeof c->address, "%s", dead_address(&c->listener));
    c->gives_session = gives_session;
    assert_int_equal(listen(c->listener, 16), 0);
    assert_int_equal(pthread_create(&c->thread, NULL, serve, c), 0);
}

/* After the client was closed. */
static void stop_closer(closer *c) {
    atomic_store(&c->over, true);
    shutdown(c->listener, SHUT_RDWR);
    pthread_join(c->thread, NULL);
    close(c->listener);
}

static int64_t time_of_connections(closer *c, unsigned count) {
    unsigned first = atomic_load(&c->accepted);
    int64_t began_ms = dv_test_now_ms();
    assert_true(DV_WAIT(atomic_load(&c->accepted) >= first + count, PATIENCE_MS));
    return dv_test_now_ms() - began_ms;
}

/* The native client by itself needs a sixtieth of the session timeout for each connection. With a session there are
 * twice as many, since its tick is asked for, and each loss begins the pauses again: twice that time is the least. */
static void check_pauses(bool gives_session) {
    witness w;
    closer c;
    start_closer(&c, gives_session);
    divvy_client_config config = witness_config(&w, c.address);
    config.session_timeout_ms = SHORT_SESSION_MS;
    divvy_client *client = open_with(&config);
    time_of_connections(&c, 4);
    int64_t took_ms = time_of_connections(&c, RECONNECTS);
    print_message("%d connections in %lld ms\n", RECONNECTS, (long long)took_ms);
    if (took_ms < RECONNECTS * SHORT_SESSION_MS / 60 * 2)
        fail_msg("%d connections in %lld ms", RECONNECTS, (long long)took_ms);
    divvy_client_close(client);
    witness_end(&w);
    stop_closer(&c);
}

/* A server that closes each connection at once is not hammered. */
TEST(test_closed_at_once) {
    check_pauses(false);
}

/* That it gives a session is no progress, while it answers no request. */
TEST(test_closed_at_each_request) {
    check_pauses(true);
}

static uint64_t answered(const divvy_client *client) {
    divvy_stats stats;
    assert_int_equal(divvy_client_stats(client, &stats, sizeof stats), 0);
    return stats.round_trips;
}

/* A server that has closed many connections is used once it serves, and then without a pause when one breaks. A client
 * that is closed does not sit a pause out. */
TEST_IN(test_serves_again, start_other, stop_other) {
    witness w;
    dv_test_proxy *proxy = dv_test_proxy_start(hosts());
    divvy_client_config config = witness_config(&w, dv_test_proxy_address(proxy));
    config.session_timeout_ms = 60000;
    dv_test_proxy_cut(proxy);
    divvy_client *client = open_with(&config);
    assert_true(DV_WAIT(dv_test_proxy_count(proxy).refused >= 4, PATIENCE_MS));
    dv_test_proxy_restore(proxy);
    assert_int_equal(divvy_client_wait_connected(client, PATIENCE_MS), 0);
    assert_true(DV_WAIT(answered(client) > 0, PATIENCE_MS)); /* A session alone is no progress. */
    dv_test_proxy_cut(proxy);
    unsigned refused = dv_test_proxy_count(proxy).refused;
    assert_true(DV_WAIT(dv_test_proxy_count(proxy).refused > refused + 5, PATIENCE_MS));
    divvy_client_close(client);
    witness_end(&w);
    dv_test_proxy_stop(proxy);
}

TEST_GROUP(set_up_demanding, stop_server);
