/* Opening, waiting, closing, and what a client leaves behind. SPDX-License-Identifier: Apache-2.0
 *
 * Shows real names, sockets and negotiations of timeouts, and that no thread and no descriptor stays. */
#include "client_fixture.h"

/* --- opening ---------------------------------------------------------------------------------------------------- */

/* With nobody listening open returns all the same, and so does each look; wait_connected ends in its time and names
 * the address. */
TEST(test_nobody_listens) {
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

static atomic_int unknown_told;

static void on_log(int level, const char *message, void *user) {
    (void)user;
    atomic_fetch_add(&unknown_told, level == DIVVY_LOG_WARN && strstr(message, "no host name of nobody.invalid:2181"));
}

/* Names that nobody knows: DIVVY_ERESOLVE when the time is over, with the names. The log has told of it, once. */
TEST(test_unknown_names) {
    witness w;
    divvy_client_config config = witness_config(&w, "nobody.invalid:2181,nowhere.invalid");
    config.on_log = on_log;
    divvy_client *client = open_with(&config);
    int64_t before_ms = dv_test_now_ms();
    ASSERT_FAILS(divvy_client_wait_connected(client, 1500), DIVVY_ERESOLVE, client, "nobody.invalid");
    assert_in_range(dv_test_now_ms() - before_ms, 1500, 1500 + PATIENCE_MS);
    assert_int_equal(divvy_client_state(client), DIVVY_CONNECTING);
    assert_int_equal(atomic_load(&unknown_told), 1);
    divvy_client_close(client);
    witness_end(&w);
}

/* A server is found among dead ones and by name, and by $DIVVY_CONNECT when nothing is configured. */
TEST(test_finds_the_server) {
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

/* Each thing that is wrong with a config is refused, with its reason, and nothing is left to release. Nodes for their
 * creator alone need credentials, and over TLS those are taken without a digest. */
TEST(test_bad_configs) {
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
        bool creator = bad[i].acl == DIVVY_ACL_CREATOR || bad[i].acl == DIVVY_ACL_READABLE;
        config.hosts = bad[i].hosts;
        config.auth_scheme = bad[i].scheme;
        config.auth = bad[i].auth;
        config.session_timeout_ms = bad[i].timeout_ms;
        config.ensemble_tick_ms = bad[i].tick_ms ? bad[i].tick_ms : TICK_MS;
        config.acl = bad[i].acl;
        client = (divvy_client *)(void *)&config;
        if (creator && getenv("DIVVY_TEST_TLS")) { /* A certificate is an identity too: nothing is wrong with it. */
            config.hosts = hosts();
            divvy_client_close(open_connected(&config));
            continue;
        }
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
TEST(test_sizes) {
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
TEST(test_null_and_senseless) {
    divvy_stats stats;
    ASSERT_FAILS(divvy_client_wait_connected(NULL, 0), DIVVY_EINVAL, NULL, "");
    ASSERT_FAILS(divvy_client_process(NULL, 0), DIVVY_EINVAL, NULL, "");
    ASSERT_FAILS(divvy_client_stats(NULL, &stats, sizeof stats), DIVVY_EINVAL, NULL, "");
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
    ASSERT_FAILS(divvy_client_stats(client, NULL, sizeof stats), DIVVY_EINVAL, client, "");
    ASSERT_FAILS(divvy_client_stats(client, &stats, 0), DIVVY_EINVAL, client, "size");
    assert_int_equal(divvy_client_fd(client), -1);
    assert_int_equal(divvy_client_wait_connected(client, INT64_MAX), 0);
    divvy_client_close(client);
    witness_end(&w);
}

/* The caller's strings are free to go once open has returned. */
TEST(test_strings_are_copied) {
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
TEST(test_timeout_is_negotiated) {
    static const struct {
        int64_t asked_ms, given_ms, tick_ms;
        const char *warned;
    } cases[] = {
        {190, 200, 1, "instead of the 190 ms"}, /* It ends soon: the server says that it has another tick. */
        {3600000, 60000, TICK_MS, "instead of the 3600000 ms"},
        {5000, 5000, 1000, NULL},
        {5000, 5000, 1001, "less than 5 ticks of 1001 ms"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        witness w;
        divvy_client_config config = witness_config(&w, hosts());
        config.session_timeout_ms = cases[i].asked_ms;
        config.ensemble_tick_ms = cases[i].tick_ms;
        divvy_client *client = open_with(&config);
        assert_true(DV_WAIT(witness_logged(&w, "connected: session 0x"), PATIENCE_MS));
        int64_t most_ms = cases[i].given_ms - (cases[i].given_ms / 100 + 20);
        assert_true(divvy_client_time_left_ms(client) <= most_ms);
        if (most_ms > 2000) assert_true(DV_WAIT(divvy_client_time_left_ms(client) > most_ms / 2, PATIENCE_MS));
        if (cases[i].warned) assert_true(DV_WAIT(witness_warned(&w) == DIVVY_WARN_SESSION, PATIENCE_MS));
        divvy_client_close(client);
        assert_int_equal(w.warning, cases[i].warned ? DIVVY_WARN_SESSION : 0);
        if (cases[i].warned) assert_non_null(strstr(w.warning_text, cases[i].warned));
        witness_end(&w);
    }
}

/* --- several clients -------------------------------------------------------------------------------------------- */

/* Two clients in one process have sessions of their own, and the end of one is nothing to the other. */
TEST(test_two_clients) {
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

/* Forty clients, more than there are places for the native client's log lines: all work, all log, and when they are
 * closed no thread and no descriptor is left. */
TEST(test_forty_clients) {
    enum { CLIENTS = 40 };
    static witness w[CLIENTS];
    divvy_client *clients[CLIENTS];
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
        assert_true(threads() >= threads_at_rest + 4 * CLIENTS);
        for (int i = 0; i < CLIENTS; i++) {
            assert_true(DV_WAIT(witness_logged(&w[i], "connected: session 0x"), PATIENCE_MS));
            divvy_client_close(clients[i]);
            witness_end(&w[i]);
        }
        assert_true(DV_WAIT(threads() == threads_at_rest, PATIENCE_MS));
        assert_int_equal(descriptors(), descriptors_at_rest);
    }
}

TEST_GROUP(set_up_told, stop_server);
