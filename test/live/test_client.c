/* Opening, waiting, closing, and what a client leaves behind. SPDX-License-Identifier: Apache-2.0 */
#include "test_client_witness.h"

#include "lib/proxy.h"
#include "lib/server.h"
#include "lib/zk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#define TICK_MS 100

static dv_test_server *server;
static dv_test_zk *truth;

static const char *hosts(void) {
    return dv_test_server_connect(server);
}

/* --- opening ---------------------------------------------------------------------------------------------------- */

/* With nobody listening open returns all the same, and so does each look; wait_connected ends in its time and names
 * the address. */
static void test_nobody_listens(void **state) {
    (void)state;
    int fd;
    witness w;
    const char *address = dead_address(&fd);
    divvy_client_config config = witness_config(&w, address);
    int64_t before_ms = dv_test_now_ms();
    divvy_client *client = open_with(&config);
    assert_true(dv_test_now_ms() - before_ms < PATIENCE_MS);
    assert_int_equal(divvy_client_state(client), DIVVY_CONNECTING);
    assert_int_equal(divvy_client_session_id(client), 0);
    assert_int_equal(divvy_client_time_left_ms(client), 0);
    ASSERT_FAILS(divvy_client_wait_connected(client, 0), DIVVY_ETIMEDOUT, client, address);
    before_ms = dv_test_now_ms();
    ASSERT_FAILS(divvy_client_wait_connected(client, 300), DIVVY_ETIMEDOUT, client, address);
    assert_in_range(dv_test_now_ms() - before_ms, 300, 300 + PATIENCE_MS);
    assert_non_null(strstr(divvy_client_error(client), "300 ms"));
    assert_int_equal(divvy_client_state(client), DIVVY_CONNECTING);
    divvy_client_close(client);
    assert_true(witness_told(&w, ""));
    witness_end(&w);
    close(fd);
}

/* Names that nobody knows: DIVVY_ERESOLVE when the time is over, with the names. */
static void test_unknown_names(void **state) {
    (void)state;
    witness w;
    divvy_client_config config = witness_config(&w, "nobody.invalid:2181,nowhere.invalid");
    divvy_client *client = open_with(&config);
    int64_t before_ms = dv_test_now_ms();
    ASSERT_FAILS(divvy_client_wait_connected(client, 1500), DIVVY_ERESOLVE, client, "nobody.invalid");
    assert_in_range(dv_test_now_ms() - before_ms, 1500, 1500 + PATIENCE_MS);
    assert_int_equal(divvy_client_state(client), DIVVY_CONNECTING);
    divvy_client_close(client);
    witness_end(&w);
}

/* A server is found among dead ones and by name, and by $DIVVY_CONNECT when nothing is configured. */
static void test_finds_the_server(void **state) {
    (void)state;
    int fd;
    witness w;
    char list[256];
    const char *port = strrchr(hosts(), ':') + 1, *dead = dead_address(&fd);
    for (int kind = 0; kind < 5; kind++) {
        if (kind == 0) snprintf(list, sizeof list, "%s,%s", dead, hosts());
        if (kind == 1) snprintf(list, sizeof list, "%s,%s", hosts(), dead);
        if (kind == 2) snprintf(list, sizeof list, "localhost:%s", port);
        if (kind == 3) snprintf(list, sizeof list, "nobody.invalid:1, localhost:%s ", port);
        divvy_client_config config = witness_config(&w, list);
        if (kind == 4) {
            setenv("DIVVY_CONNECT", hosts(), 1);
            config.hosts = NULL;
        }
        divvy_client *client = open_connected(&config);
        assert_int_equal(divvy_client_state(client), DIVVY_CONNECTED);
        assert_int_not_equal(divvy_client_session_id(client), 0);
        divvy_client_close(client);
        witness_end(&w);
    }
    divvy_client *client;
    assert_int_equal(divvy_client_open(&client, NULL), 0); /* all defaults */
    assert_int_equal(divvy_client_wait_connected(client, PATIENCE_MS), 0);
    divvy_client_close(client);
    unsetenv("DIVVY_CONNECT");
    close(fd);
}

static void tell_tick(void) {
    char text[16];
    snprintf(text, sizeof text, "%d", TICK_MS);
    setenv("DIVVY_ENSEMBLE_TICK_MS", text, 1);
}

/* Each thing that is wrong with a config is refused, with its reason, and nothing is left to release. */
static void test_bad_configs(void **state) {
    (void)state;
    divvy_client *client;
    const struct {
        const char *hosts, *scheme, *auth;
        int64_t timeout_ms, tick_ms;
        int acl, error;
        const char *about;
    } bad[] = {
        {"h:", NULL, NULL, 10000, 0, 0, DIVVY_EINVAL, "port"},
        {"h,,i", NULL, NULL, 10000, 0, 0, DIVVY_EINVAL, "name"},
        {"h//a", NULL, NULL, 10000, 0, 0, DIVVY_EINVAL, "chroot"},
        {"h/zookeeper", NULL, NULL, 10000, 0, 0, DIVVY_EINVAL, "chroot"},
        {"h/a/", NULL, NULL, 10000, 0, 0, DIVVY_EINVAL, "chroot"},
        {"h", NULL, NULL, 99, 0, 0, DIVVY_EINVAL, "99"},
        {"h", NULL, NULL, 3600001, 0, 0, DIVVY_EINVAL, "3600001"},
        {"h", NULL, NULL, 0, 0, 0, DIVVY_EINVAL, "session_timeout_ms"},
        {"h", NULL, NULL, -1, 0, 0, DIVVY_EINVAL, "session_timeout_ms"},
        {"h", NULL, NULL, INT64_MAX, 0, 0, DIVVY_EINVAL, "session_timeout_ms"},
        {"h", NULL, NULL, 10000, -1, 0, DIVVY_EINVAL, "ensemble_tick_ms"},
        {"h", NULL, NULL, 10000, 3600001, 0, DIVVY_EINVAL, "ensemble_tick_ms"},
        {"h", NULL, NULL, 1000, 2000, 0, DIVVY_EINVAL, "the least that can is 1752 ms"},
        {"h", "digest", NULL, 10000, 0, 0, DIVVY_EINVAL, "auth"},
        {"h", NULL, "u:sesame", 10000, 0, 0, DIVVY_EINVAL, "auth_scheme"},
        {"h", "digest", "sesame", 10000, 0, 0, DIVVY_EINVAL, "user:password"},
        {"h", "sasl", "u:sesame", 10000, 0, 0, DIVVY_EUNSUPPORTED, "sasl"},
        {"h", "", "u:sesame", 10000, 0, 0, DIVVY_EUNSUPPORTED, "digest"},
        {"h", NULL, NULL, 10000, 0, -1, DIVVY_EINVAL, "acl"},
        {"h", NULL, NULL, 10000, 0, 4, DIVVY_EINVAL, "acl"},
        {"h", NULL, NULL, 10000, 0, DIVVY_ACL_CREATOR, DIVVY_EINVAL, "acl"},
        {"h", NULL, NULL, 10000, 0, DIVVY_ACL_READABLE, DIVVY_EINVAL, "acl"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
        config.hosts = bad[i].hosts;
        config.auth_scheme = bad[i].scheme;
        config.auth = bad[i].auth;
        config.session_timeout_ms = bad[i].timeout_ms;
        config.ensemble_tick_ms = bad[i].tick_ms ? bad[i].tick_ms : TICK_MS;
        config.acl = bad[i].acl;
        client = (divvy_client *)(void *)&config;
        ASSERT_FAILS(divvy_client_open(&client, &config), bad[i].error, NULL, bad[i].about);
        assert_null(client);
        assert_null(strstr(divvy_client_error(NULL), "sesame"));
    }
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    ASSERT_FAILS(divvy_client_open(NULL, &config), DIVVY_EINVAL, NULL, "out");
    setenv("DIVVY_ENSEMBLE_TICK_MS", "2s", 1);
    ASSERT_FAILS(divvy_client_open(&client, &config), DIVVY_EINVAL, NULL, "DIVVY_ENSEMBLE_TICK_MS");
    unsetenv("DIVVY_ENSEMBLE_TICK_MS");
    ASSERT_FAILS(divvy_client_open(&client, &config), DIVVY_EINVAL, NULL, "tickTime");
    ASSERT_FAILS(divvy_client_open(&client, NULL), DIVVY_EINVAL, NULL, "--ensemble-tick");
    assert_null(client);
    tell_tick();
}

/* A struct of another size: one that is too short or has something set that we do not know is refused, a shorter one
 * is completed, a longer one whose rest is zero is taken. */
static void test_sizes(void **state) {
    (void)state;
    struct {
        divvy_client_config config;
        char more[64];
    } later = {.config = DIVVY_CLIENT_CONFIG_INIT};
    divvy_client *client;
    later.config.hosts = hosts();
    const size_t refused[] = {0, 1, sizeof(size_t) - 1, 1024 * 1024, SIZE_MAX};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        later.config.size = refused[i];
        ASSERT_FAILS(divvy_client_open(&client, &later.config), DIVVY_EINVAL, NULL, "DIVVY_CLIENT_CONFIG_INIT");
        assert_null(client);
    }
    later.config.size = sizeof later;
    later.more[63] = 1;
    ASSERT_FAILS(divvy_client_open(&client, &later.config), DIVVY_EINVAL, NULL, "DIVVY_CLIENT_CONFIG_INIT");
    later.more[63] = 0;
    client = open_connected(&later.config);
    divvy_client_close(client);
    later.config.size = offsetof(divvy_client_config, session_timeout_ms);
    later.config.session_timeout_ms = -5; /* past the end of what counts */
    later.config.acl = 99;
    client = open_connected(&later.config);
    assert_in_range(divvy_client_time_left_ms(client), 1, 10000);
    divvy_client_close(client);
}

/* NULL and senseless arguments are answered, each with a message where there is an error. */
static void test_null_and_senseless(void **state) {
    (void)state;
    divvy_stats stats;
    ASSERT_FAILS(divvy_client_wait_connected(NULL, 0), DIVVY_EINVAL, NULL, "");
    ASSERT_FAILS(divvy_client_process(NULL, 0), DIVVY_EINVAL, NULL, "");
    ASSERT_FAILS(divvy_client_stats(NULL, &stats), DIVVY_EINVAL, NULL, "");
    assert_int_equal(divvy_client_fd(NULL), -1);
    assert_int_equal(divvy_client_next_deadline(NULL), -1);
    assert_int_equal(divvy_client_state(NULL), DIVVY_CLOSED);
    assert_int_equal(divvy_client_time_left_ms(NULL), 0);
    assert_int_equal(divvy_client_session_id(NULL), 0);
    divvy_client_close(NULL);
    divvy_strings_free(NULL);
    assert_int_equal(divvy_strings_count(NULL), 0);
    assert_null(divvy_strings_get(NULL, 0));
    witness w;
    divvy_client_config config = witness_config(&w, hosts());
    divvy_client *client = open_connected(&config);
    ASSERT_FAILS(divvy_client_wait_connected(client, -2), DIVVY_EINVAL, client, "timeout_ms");
    ASSERT_FAILS(divvy_client_process(client, -2), DIVVY_EINVAL, client, "timeout_ms");
    ASSERT_FAILS(divvy_client_process(client, 0), DIVVY_ESTATE, client, "manual");
    ASSERT_FAILS(divvy_client_stats(client, NULL), DIVVY_EINVAL, client, "");
    assert_int_equal(divvy_client_fd(client), -1);
    assert_int_equal(divvy_client_wait_connected(client, INT64_MAX), 0);
    divvy_client_close(client);
    witness_end(&w);
}

/* The caller's strings are free to go once open has returned. */
static void test_strings_are_copied(void **state) {
    (void)state;
    witness w;
    char list[64], scheme[] = "digest", auth[] = "user:sesame";
    snprintf(list, sizeof list, "localhost:%s", strrchr(hosts(), ':') + 1);
    divvy_client_config config = witness_config(&w, list);
    config.auth_scheme = scheme;
    config.auth = auth;
    divvy_client *client = open_with(&config);
    memset(list, 'x', sizeof list - 1);
    memset(scheme, 'x', sizeof scheme - 1);
    memset(auth, 'x', sizeof auth - 1);
    assert_int_equal(divvy_client_wait_connected(client, PATIENCE_MS), 0);
    divvy_client_close(client);
    witness_end(&w);
}

/* The servers' answer to the timeout is warned of when it is another than was asked for, or is short for their tick,
 * and only then; and it is by their answer that the time left is counted. */
static void test_timeout_is_negotiated(void **state) {
    (void)state;
    static const struct {
        int64_t asked_ms, given_ms, tick_ms;
        const char *warned;
    } cases[] = {
        {190, 200, 1, "instead of the 190 ms"},
        {3600000, 60000, TICK_MS, "instead of the 3600000 ms"},
        {5000, 5000, 1000, NULL},
        {5000, 5000, 1001, "less than 5 ticks of 1001 ms"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        witness w;
        divvy_client_config config = witness_config(&w, hosts());
        config.session_timeout_ms = cases[i].asked_ms;
        config.ensemble_tick_ms = cases[i].tick_ms;
        divvy_client *client = open_connected(&config);
        assert_true(DV_WAIT(witness_logged(&w, "connected: session 0x"), PATIENCE_MS));
        int64_t most_ms = cases[i].given_ms - (cases[i].given_ms / 100 + 20);
        assert_true(divvy_client_time_left_ms(client) <= most_ms);
        if (most_ms > 2000) assert_true(divvy_client_time_left_ms(client) > most_ms / 2);
        if (cases[i].warned) assert_true(DV_WAIT(witness_warned(&w) == DIVVY_WARN_SESSION, PATIENCE_MS));
        divvy_client_close(client);
        assert_int_equal(w.warning, cases[i].warned ? DIVVY_WARN_SESSION : 0);
        if (cases[i].warned) assert_non_null(strstr(w.warning_text, cases[i].warned));
        witness_end(&w);
    }
}

/* --- several clients -------------------------------------------------------------------------------------------- */

/* Two clients in one process have sessions of their own, and the end of one is nothing to the other. */
static void test_two_clients(void **state) {
    (void)state;
    witness a_witness, b_witness;
    divvy_client_config a_config = witness_config(&a_witness, hosts()), b_config = witness_config(&b_witness, hosts());
    divvy_client *a = open_connected(&a_config), *b = open_connected(&b_config);
    assert_int_not_equal(divvy_client_session_id(a), divvy_client_session_id(b));
    ASSERT_FAILS(divvy_client_wait_connected(a, -2), DIVVY_EINVAL, a, "");
    assert_string_equal(divvy_client_error(b), "");
    divvy_client_close(a);
    divvy_party *party;
    divvy_strings *members;
    assert_int_equal(divvy_party_join(&party, b, "/two", "b", DIVVY_PARTY), 0);
    assert_int_equal(divvy_party_members(party, &members, PATIENCE_MS), 0);
    assert_int_equal(divvy_strings_count(members), 1);
    divvy_strings_free(members);
    divvy_party_destroy(party);
    assert_true(DV_WAIT(witness_told(&a_witness, "C"), PATIENCE_MS));
    assert_true(DV_WAIT(witness_told(&b_witness, "C"), PATIENCE_MS));
    divvy_client_close(b);
    witness_end(&a_witness);
    witness_end(&b_witness);
}

static unsigned count_entries(const char *directory) {
    unsigned count = 0;
    DIR *entries = opendir(directory);
    assert_non_null(entries);
    for (struct dirent *entry; (entry = readdir(entries));) count += entry->d_name[0] != '.';
    closedir(entries);
    return count;
}

static unsigned threads(void) {
    return count_entries("/proc/self/task");
}

static unsigned descriptors(void) {
    return count_entries("/proc/self/fd");
}

/* Forty clients, more than there are places for the native client's log lines: all work, all log, and when they are
 * closed no thread and no descriptor is left. */
static void test_forty_clients(void **state) {
    (void)state;
    enum { CLIENTS = 40 };
    static witness w[CLIENTS];
    divvy_client *clients[CLIENTS];
    unsigned threads_before = threads(), descriptors_before = descriptors();
    for (int round = 0; round < 2; round++) { /* The places are given back. */
        for (int i = 0; i < CLIENTS; i++) {
            divvy_client_config config = witness_config(&w[i], hosts());
            clients[i] = open_with(&config);
        }
        for (int i = 0; i < CLIENTS; i++) {
            assert_int_equal(divvy_client_wait_connected(clients[i], PATIENCE_MS), 0);
            for (int j = 0; j < i; j++)
                assert_int_not_equal(divvy_client_session_id(clients[i]), divvy_client_session_id(clients[j]));
        }
        assert_true(threads() >= threads_before + 4 * CLIENTS);
        for (int i = 0; i < CLIENTS; i++) {
            assert_true(DV_WAIT(witness_logged(&w[i], "connected: session 0x"), PATIENCE_MS));
            divvy_client_close(clients[i]);
            witness_end(&w[i]);
        }
        assert_true(DV_WAIT(threads() == threads_before, PATIENCE_MS));
        assert_int_equal(descriptors(), descriptors_before);
    }
}

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
static void test_close_while_others_wait(void **state) {
    (void)state;
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
static void test_close_at_once(void **state) {
    (void)state;
    int fd;
    const char *lists[] = {dead_address(&fd), hosts(), "localhost:1", "nobody.invalid"};
    unsigned threads_before = threads(), descriptors_before = descriptors();
    for (int round = 0; round < 24; round++) {
        witness w;
        divvy_client_config config = witness_config(&w, lists[round % 4]);
        config.manual = round / 4 % 2;
        divvy_client_close(open_with(&config));
        witness_end(&w);
    }
    /* A thread that still asks a name server ends by itself. */
    assert_true(DV_WAIT(threads() == threads_before, PATIENCE_MS));
    assert_true(DV_WAIT(descriptors() == descriptors_before, PATIENCE_MS));
    close(fd);
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
static void test_close_in_a_callback(void **state) {
    (void)state;
    unsigned threads_before = threads(), descriptors_before = descriptors();
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
        assert_true(DV_WAIT(threads() == threads_before, PATIENCE_MS));
        assert_int_equal(divvy_party_members(party, &members, PATIENCE_MS), DIVVY_ECLOSED);
        assert_null(members);
        divvy_party_destroy(party); /* the client's memory goes with it */
        assert_int_equal(atomic_load(&stage), CLOSED_INSIDE);
        assert_true(DV_WAIT(descriptors() == descriptors_before, PATIENCE_MS));
        witness_end(&w);
        size_t left = 0;
        dv_test_zk_free_names(dv_test_zk_children(truth, "/closed-inside", &left));
        assert_int_equal(left, 0);
    }
}

/* With a server that hangs close ends all the same, in bounded time, with objects and requests under way. */
static void test_close_with_a_hung_server(void **state) {
    (void)state;
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
static void test_close_with_a_watch_under_way(void **state) {
    (void)state;
    static const char *const items[] = {"a"};
    bool caught = false;
    for (int attempt = 0; attempt < 20 && !caught; attempt++) {
        witness w;
        divvy_stats s = {.requests = 0};
        divvy_partitioner *p;
        divvy_partitioner_config p_config = DIVVY_PARTITIONER_CONFIG_INIT;
        divvy_client_config config = witness_config(&w, hosts());
        divvy_client *client = open_connected(&config);
        p_config.path = "/hung-watch";
        p_config.items = items;
        p_config.item_count = 1;
        p_config.time_boundary_ms = 1000;
        assert_int_equal(divvy_partitioner_create(&p, client, &p_config), 0);
        /* The party was read once; it is read again, with a watch, when its boundary is over. */
        assert_true(DV_WAIT(divvy_client_stats(client, &s) == 0 && s.children >= 2 && s.in_flight == 0, PATIENCE_MS));
        dv_test_server_pause(server, 1);
        caught = DV_WAIT(divvy_client_stats(client, &s) == 0 && s.in_flight > 0, 3000);
        divvy_client_close(client);
        dv_test_server_resume(server, 1);
        assert_int_equal(divvy_partitioner_state(p), DIVVY_FAILURE);
        divvy_partitioner_destroy(p);
        witness_end(&w);
    }
    assert_true(caught);
}

/* A member that is closed with its party joined deletes its node itself and does not wait for it in vain. */
static void test_close_leaves_the_party(void **state) {
    (void)state;
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
        size_t left;
        dv_test_zk_free_names(dv_test_zk_children(truth, "/closed", &left));
        assert_int_equal(left, 0);
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
static void test_calls_inside_a_callback(void **state) {
    (void)state;
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
    size_t left;
    dv_test_zk_free_names(dv_test_zk_children(truth, "/inside", &left));
    assert_int_equal(left, 0);
    witness_end(&w);
}

static void be_slow(witness *w, divvy_client *client, divvy_session_state state) {
    (void)client, (void)state;
    atomic_bool *go_on = w->user;
    DV_WAIT(atomic_load(go_on), PATIENCE_MS);
}

/* A callback that does not come to an end holds up other callbacks, but neither the session nor other calls. */
static void test_slow_callback(void **state) {
    (void)state;
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

/* --- what a process notices ------------------------------------------------------------------------------------- */

/* Bits of a thread's blocked signals that a program can block: all but SIGKILL, SIGSTOP, and the two of glibc's. */
#define BLOCKABLE (~(1ull << (SIGKILL - 1) | 1ull << (SIGSTOP - 1) | 1ull << 31 | 1ull << 32))

static void check_signals_blocked(const char *task) {
    char path[300], line[256];
    unsigned long long blocked = 0;
    snprintf(path, sizeof path, "/proc/self/task/%s/status", task);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) sscanf(line, "SigBlk: %llx", &blocked);
    fclose(file);
    if ((blocked & BLOCKABLE) != BLOCKABLE) fail_msg("thread %s takes signals: SigBlk %llx", task, blocked);
}

/* All threads that a client starts have all signals blocked; its own descriptors are not inherited by a program that
 * is executed; after close none of either is left. */
static void test_threads_and_descriptors(void **state) {
    (void)state;
    enum { KNOWN_MAX = 64 };
    char known[KNOWN_MAX][32];
    size_t known_count = 0;
    unsigned threads_before = threads(), descriptors_before = descriptors();
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *entry; (entry = readdir(tasks)) && known_count < KNOWN_MAX;)
        snprintf(known[known_count++], sizeof known[0], "%.31s", entry->d_name);
    closedir(tasks);
    witness w;
    char list[64];
    snprintf(list, sizeof list, "localhost:%s", strrchr(hosts(), ':') + 1); /* the native threads are started by ours */
    divvy_client_config config = witness_config(&w, list);
    divvy_client *client = open_connected(&config);
    unsigned seen = 0, ours = 0;
    tasks = opendir("/proc/self/task");
    for (struct dirent *entry; (entry = readdir(tasks));) {
        bool is_known = entry->d_name[0] == '.';
        for (size_t i = 0; i < known_count; i++) is_known |= strcmp(known[i], entry->d_name) == 0;
        if (is_known) continue;
        check_signals_blocked(entry->d_name);
        seen++;
    }
    closedir(tasks);
    assert_true(seen >= 4);
    DIR *fds = opendir("/proc/self/fd");
    for (struct dirent *entry; (entry = readdir(fds));) {
        char path[300], target[256] = "";
        snprintf(path, sizeof path, "/proc/self/fd/%s", entry->d_name);
        if (readlink(path, target, sizeof target - 1) < 0 || !strstr(target, "eventfd")) continue;
        assert_true(fcntl(atoi(entry->d_name), F_GETFD) & FD_CLOEXEC);
        ours++;
    }
    closedir(fds);
    assert_true(ours >= 1);
    divvy_client_close(client);
    assert_true(DV_WAIT(threads() == threads_before, PATIENCE_MS));
    assert_int_equal(descriptors(), descriptors_before);
    witness_end(&w);
}

static volatile sig_atomic_t signals_seen;

static void on_signal(int number) {
    (void)number;
    signals_seen++;
}

/* A signal sent to the process is taken by the host's own thread, also while that waits in a call of ours. */
static void test_signals_go_to_the_host(void **state) {
    (void)state;
    int fd;
    witness w;
    struct sigaction action = {.sa_handler = on_signal}, before;
    sigaction(SIGUSR1, &action, &before);
    divvy_client_config config = witness_config(&w, dead_address(&fd));
    divvy_client *client = open_with(&config);
    signals_seen = 0;
    for (int i = 1; i <= 20; i++) {
        kill(getpid(), SIGUSR1); /* Delivered before it returns, if no other thread has it unblocked. */
        assert_int_equal(signals_seen, i);
    }
    ASSERT_FAILS(divvy_client_wait_connected(client, 100), DIVVY_ETIMEDOUT, client, "");
    divvy_client_close(client);
    sigaction(SIGUSR1, &before, NULL);
    witness_end(&w);
    close(fd);
}

/* In the child of a fork every call says DIVVY_EFORK, close and destroy do nothing; the parent goes on undisturbed. */
static void test_fork(void **state) {
    (void)state;
    static const char *const items[] = {"a", "b"};
    witness w;
    divvy_party *party;
    divvy_partitioner *p;
    divvy_strings *members;
    divvy_partitioner_config p_config = DIVVY_PARTITIONER_CONFIG_INIT;
    divvy_client_config config = witness_config(&w, hosts());
    divvy_client *client = open_connected(&config);
    p_config.path = "/fork/pool";
    p_config.items = items;
    p_config.item_count = 2;
    p_config.time_boundary_ms = 0;
    assert_int_equal(divvy_party_join(&party, client, "/fork/party", "me", DIVVY_PARTY), 0);
    assert_int_equal(divvy_partitioner_create(&p, client, &p_config), 0);
    assert_int_equal(divvy_partitioner_wait_for_acquire(p, PATIENCE_MS), 0);
    int64_t session = divvy_client_session_id(client);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        divvy_party *another_party;
        divvy_partitioner *another_p;
        divvy_stats stats;
        int wrong = 0;
        wrong |= (divvy_client_wait_connected(client, 0) != DIVVY_EFORK) << 0;
        wrong |= (!strstr(divvy_client_error(client), "fork")) << 1;
        wrong |= (divvy_client_process(client, 0) != DIVVY_EFORK) << 2;
        wrong |= (divvy_client_stats(client, &stats) != DIVVY_EFORK) << 3;
        wrong |= (divvy_party_join(&another_party, client, "/fork/party", "x", DIVVY_PARTY) != DIVVY_EFORK) << 4;
        wrong |= (divvy_party_members(party, &members, 1000) != DIVVY_EFORK || members) << 5;
        wrong |= (divvy_party_leave(party, 1000) != DIVVY_EFORK) << 6;
        wrong |= (divvy_partitioner_create(&another_p, client, &p_config) != DIVVY_EFORK) << 7;
        wrong |= (divvy_partitioner_wait_for_acquire(p, 1000) != DIVVY_EFORK) << 8;
        wrong |= (divvy_partitioner_wait_change(p, 0, 1000) != DIVVY_EFORK) << 9;
        wrong |= (divvy_partitioner_release_set(p) != DIVVY_EFORK) << 10;
        wrong |= (divvy_partitioner_finish(p, 1000) != DIVVY_EFORK) << 11;
        wrong |= (divvy_partitioner_owns(p, "a") != 0) << 12;
        wrong |= (divvy_client_time_left_ms(client) != 0) << 13;
        divvy_partitioner_destroy(p);
        divvy_party_destroy(party);
        divvy_client_close(client);
        if (wrong) fprintf(stderr, "in the child, by bits: %#x\n", wrong);
        _exit(wrong != 0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(divvy_party_members(party, &members, PATIENCE_MS), 0);
    assert_int_equal(divvy_strings_count(members), 1);
    divvy_strings_free(members);
    assert_int_equal(divvy_partitioner_owns(p, "a"), 1);
    assert_int_equal(divvy_partitioner_finish(p, PATIENCE_MS), 0);
    divvy_partitioner_destroy(p);
    divvy_party_destroy(party);
    assert_int_equal(divvy_client_session_id(client), session);
    assert_true(DV_WAIT(witness_told(&w, "C"), PATIENCE_MS));
    divvy_client_close(client);
    witness_end(&w);
}

#if !defined(__SANITIZE_THREAD__)
/* A child of a fork may open a client of its own, also while the parent's threads are busy. */
static void test_open_in_the_child(void **state) {
    (void)state;
    witness w;
    divvy_client_config config = witness_config(&w, hosts());
    divvy_client *client = open_connected(&config);
    for (int round = 0; round < 5; round++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            witness own_witness;
            divvy_client_config own_config = witness_config(&own_witness, hosts());
            divvy_client *own;
            alarm(PATIENCE_MS / 1000);
            int error = divvy_client_open(&own, &own_config);
            if (!error) error = divvy_client_wait_connected(own, PATIENCE_MS / 2);
            if (error) fprintf(stderr, "in the child: %s\n", divvy_client_error(error ? NULL : own));
            if (!error) divvy_client_close(own);
            _exit(error != 0);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
    assert_int_equal(divvy_client_state(client), DIVVY_CONNECTED);
    divvy_client_close(client);
    witness_end(&w);
}
#endif

/* --- what it says ----------------------------------------------------------------------------------------------- */

static void work_and_suffer(divvy_client_config *config, dv_test_proxy *proxy) {
    divvy_party *party;
    divvy_strings *members;
    divvy_client *client = open_connected(config);
    assert_int_equal(divvy_party_join(&party, client, "/said", "me", DIVVY_PARTY), 0);
    assert_int_equal(divvy_party_members(party, &members, PATIENCE_MS), 0);
    divvy_strings_free(members);
    dv_test_proxy_cut(proxy);
    assert_true(DV_WAIT(divvy_client_state(client) == DIVVY_SUSPENDED, PATIENCE_MS));
    dv_test_proxy_restore(proxy);
    assert_int_equal(divvy_client_wait_connected(client, PATIENCE_MS), 0);
    dv_test_proxy_cut(proxy);
    witness *w = config->user;
    assert_true(DV_WAIT(witness_told(w, "CSCSLN"), PATIENCE_MS));
    ASSERT_FAILS(divvy_client_wait_connected(client, 100), DIVVY_ETIMEDOUT, client, "wait_connected");
    ASSERT_FAILS(divvy_party_members(party, &members, 100), DIVVY_ETIMEDOUT, client, "/said");
    dv_test_proxy_restore(proxy);
    assert_int_equal(divvy_client_wait_connected(client, PATIENCE_MS), 0);
    assert_int_equal(divvy_party_members(party, &members, PATIENCE_MS), 0);
    divvy_strings_free(members);
    divvy_party_destroy(party);
    /* Before the close, which drops what is queued. */
    assert_true(DV_WAIT(witness_told(w, "CSCSLNC"), PATIENCE_MS));
    assert_true(!config->on_log || DV_WAIT(witness_logged(w, "has ended"), PATIENCE_MS));
    divvy_client_close(client);
}

/* Nothing is written to stdout or stderr, whether there is a log callback or not, through reconnect, loss and a new
 * session. */
static void test_silence(void **state) {
    (void)state;
    char name[] = "/tmp/divvy-silence-XXXXXX", text[4096];
    witness w;
    dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(server, 1));
    int file = mkostemp(name, O_CLOEXEC), out = dup(STDOUT_FILENO), err = dup(STDERR_FILENO);
    assert_true(file >= 0 && out >= 0 && err >= 0);
    unlink(name);
    fflush(stdout);
    dup2(file, STDOUT_FILENO);
    dup2(file, STDERR_FILENO);
    for (int round = 0; round < 2; round++) {
        divvy_client_config config = witness_config(&w, dv_test_proxy_address(proxy));
        config.session_timeout_ms = 6000;
        if (round == 1) config.on_log = NULL;
        work_and_suffer(&config, proxy);
        if (w.log) free(w.log);
    }
    fflush(stdout);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    close(out);
    close(err);
    ssize_t bytes = pread(file, text, sizeof text - 1, 0);
    assert_true(bytes >= 0);
    text[bytes] = '\0';
    close(file);
    dv_test_proxy_stop(proxy);
    assert_string_equal(text, "");
}

/* The log has lines of ours and of the native client's, with levels; the password is in none of them, at whatever
 * level, nor in any message. */
static void test_log_without_credentials(void **state) {
    (void)state;
    witness w;
    dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(server, 1));
    divvy_client_config config = witness_config(&w, dv_test_proxy_address(proxy));
    config.session_timeout_ms = 6000;
    config.auth_scheme = "digest";
    config.auth = "someone:open-sesame";
    zoo_set_debug_level(ZOO_LOG_LEVEL_DEBUG);
    work_and_suffer(&config, proxy);
    zoo_set_debug_level(ZOO_LOG_LEVEL_INFO);
    assert_non_null(strstr(w.log, "3 connected: session 0x"));
    assert_non_null(strstr(w.log, "2 the connection is down"));
    assert_non_null(strstr(w.log, "has ended"));
    assert_non_null(strstr(w.log, "4 ")); /* a line of the native client's at the level that was set */
    assert_non_null(strstr(w.log, "zk")); /* it names its functions */
    assert_null(strstr(w.log, "sesame"));
    assert_null(strstr(divvy_client_error(NULL), "sesame"));
    witness_end(&w);
    dv_test_proxy_stop(proxy);
}

/* The counters tell what was done, and what is there now goes back to nothing. */
static void test_stats(void **state) {
    (void)state;
    witness w;
    divvy_stats s, before;
    divvy_party *party;
    divvy_strings *members;
    dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(server, 1));
    divvy_client_config config = witness_config(&w, dv_test_proxy_address(proxy));
    divvy_client *client = open_with(&config);
    memset(&before, 0xff, sizeof before);
    assert_int_equal(divvy_client_stats(client, &before), 0);
    assert_int_equal(before.requests, 0);
    assert_int_equal(divvy_client_wait_connected(client, PATIENCE_MS), 0);
    assert_int_equal(divvy_party_join(&party, client, "/stats", "me", DIVVY_PARTY), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(divvy_party_members(party, &members, PATIENCE_MS), 0);
        divvy_strings_free(members);
    }
    assert_true(DV_WAIT(divvy_client_stats(client, &s) == 0 && s.in_flight == 0, PATIENCE_MS));
    assert_int_equal(s.connects, 1);
    assert_int_equal(s.session_events, 1);
    assert_int_equal(s.children, 3);
    assert_true(s.creates == 2 || s.creates == 1); /* the directory, if this test is the first to use it; the node */
    assert_int_equal(s.ephemerals, 1);
    assert_true(s.ephemeral_path_bytes > strlen("/stats/__party__"));
    assert_int_equal(s.watches, 1);
    assert_true(s.watch_path_bytes > strlen("/stats/__party__"));
    assert_true(s.gets >= 4); /* one to watch our node, three to list */
    assert_int_equal(s.deletes + s.sets + s.failed, 0);
    assert_true(s.checks >= 1); /* a connection begins with a heartbeat; there may have been more by now */
    assert_int_equal(s.multis, s.checks);
    assert_int_equal(s.writes, s.creates + s.deletes + s.sets + s.checks);
    assert_int_equal(s.reads, s.gets + s.exists + s.children);
    assert_int_equal(s.requests, s.writes + s.reads);
    assert_int_equal(s.round_trips, s.requests);
    assert_true(s.round_trip_total_us >= s.round_trip_max_us && s.round_trip_max_us > 0);
    assert_true(s.bytes_sent > 0 && s.bytes_received > 0 && s.events >= s.requests);
    dv_test_proxy_cut(proxy);
    dv_test_proxy_restore(proxy);
    assert_true(DV_WAIT(divvy_client_stats(client, &s) == 0 && s.connects == 2, PATIENCE_MS));
    assert_int_equal(divvy_party_leave(party, PATIENCE_MS), 0);
    assert_int_equal(divvy_client_stats(client, &s), 0);
    assert_int_equal(s.session_events, 3);
    assert_int_equal(s.deletes, 1);
    assert_int_equal(s.ephemerals, 0);
    assert_int_equal(s.ephemeral_path_bytes, 0);
    assert_int_equal(s.in_flight, 0);
    divvy_party_destroy(party);
    divvy_client_close(client);
    dv_test_proxy_stop(proxy);
    witness_end(&w);
}

static int set_up(void **state) {
    (void)state;
    tell_tick();
    server = dv_test_server_start(1, TICK_MS);
    truth = dv_test_zk_open(hosts());
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    dv_test_zk_close(truth);
    dv_test_server_stop(server);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nobody_listens),
        cmocka_unit_test(test_unknown_names),
        cmocka_unit_test(test_finds_the_server),
        cmocka_unit_test(test_bad_configs),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_null_and_senseless),
        cmocka_unit_test(test_strings_are_copied),
        cmocka_unit_test(test_timeout_is_negotiated),
        cmocka_unit_test(test_two_clients),
        cmocka_unit_test(test_forty_clients),
        cmocka_unit_test(test_close_while_others_wait),
        cmocka_unit_test(test_close_at_once),
        cmocka_unit_test(test_close_in_a_callback),
        cmocka_unit_test(test_close_with_a_hung_server),
        cmocka_unit_test(test_close_with_a_watch_under_way),
        cmocka_unit_test(test_close_leaves_the_party),
        cmocka_unit_test(test_calls_inside_a_callback),
        cmocka_unit_test(test_slow_callback),
        cmocka_unit_test(test_threads_and_descriptors),
        cmocka_unit_test(test_signals_go_to_the_host),
        cmocka_unit_test(test_fork),
#if !defined(__SANITIZE_THREAD__)
        cmocka_unit_test(test_open_in_the_child),
#endif
        cmocka_unit_test(test_silence),
        cmocka_unit_test(test_log_without_credentials),
        cmocka_unit_test(test_stats),
    };
    return cmocka_run_group_tests_name("client", tests, set_up, tear_down);
}
