/* The session clock's cost and answers while nothing happens, and after a cut. SPDX-License-Identifier: Apache-2.0
 *
 * Shows the cost of heartbeats as a real server counts them. */
#include "test_clock.h"

#include "lib/proxy.h"

enum { TICK_MS = 100 };

static dv_test_server *server;

static int setup(void **state) {
    (void)state;
    server = dv_test_server_start(1, TICK_MS);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    dv_test_server_stop(server);
    return 0;
}

static divvy_client_config config_of(const char *hosts, int64_t timeout_ms, int64_t tick_ms) {
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.hosts = hosts;
    config.session_timeout_ms = timeout_ms;
    config.ensemble_tick_ms = tick_ms;
    return config;
}

static void open_holder(holder *h, const char *hosts, int64_t timeout_ms, int64_t tick_ms) {
    divvy_client_config config = config_of(hosts, timeout_ms, tick_ms);
    dv_test_zk *truth = dv_test_zk_open(dv_test_server_address(server, 1));
    holder_open(h, &config, truth);
    dv_test_zk_close(truth);
}

/* ---- cost ---- */

/* The server's counts: packets received from clients, questions like this one included, and transactions. */
typedef struct {
    int64_t packets, transactions;
} counted;

static counted count_at_server(void) {
    char answer[4096];
    assert_true(dv_test_server_ask(server, 1, "srvr", answer, sizeof answer));
    const char *received = strstr(answer, "\nReceived: "), *zxid = strstr(answer, "\nZxid: 0x");
    assert_non_null(received);
    assert_non_null(zxid);
    return (counted){strtoll(received + 11, NULL, 10), (int64_t)strtoull(zxid + 9, NULL, 16)};
}

/* An idle client that owns an item sends heartbeats and nothing else, at most a pair in each tenth of the session's
 * timeout, each one transaction; a server sees no more than these and pings. It does send some, and with them keeps
 * what it owns. */
TEST(test_idle_cost) {
    enum { TIMEOUT_MS = 5000, WINDOW_MS = 10000, MOST = 20 };
    holder h;
    divvy_stats before, after;
    open_holder(&h, dv_test_server_address(server, 1), TIMEOUT_MS, TICK_MS);
    dv_test_sleep_ms(TIMEOUT_MS / 2); /* The pool's own work is done: it has no boundary. */
    int64_t begun_ms = dv_test_now_ms();
    assert_int_equal(divvy_client_stats(h.client, &before, sizeof before), 0);
    counted counted_before = count_at_server();
    while (dv_test_now_ms() < begun_ms + WINDOW_MS) {
        assert_true(holder_owns(&h));
        dv_test_sleep_ms(1);
    }
    assert_int_equal(divvy_client_stats(h.client, &after, sizeof after), 0);
    counted counted_after = count_at_server();
    int64_t took_ms = dv_test_now_ms() - begun_ms;

    uint64_t requests = after.requests - before.requests, beats_max = (uint64_t)(took_ms * MOST / TIMEOUT_MS + 2);
    int64_t packets = counted_after.packets - counted_before.packets;
    int64_t transactions = counted_after.transactions - counted_before.transactions;
    print_message(
        "in %lld ms with T = %d ms: %llu requests (%llu bytes of paths sent, %llu received), %lld packets and "
        "%lld transactions at the server\n",
        (long long)took_ms, TIMEOUT_MS, (unsigned long long)requests,
        (unsigned long long)(after.bytes_sent - before.bytes_sent),
        (unsigned long long)(after.bytes_received - before.bytes_received), (long long)packets,
        (long long)transactions);
    assert_true(requests >= 3); /* else belief in the session would have ended */
    assert_true(requests <= beats_max);
    assert_int_equal(after.multis - before.multis, requests);
    assert_int_equal(after.checks - before.checks, requests);
    assert_int_equal(after.reads, before.reads);
    assert_true(transactions <= (int64_t)beats_max);
    enum { QUESTIONS = 2 };
    assert_true(packets <= (int64_t)beats_max + took_ms * 3 / TIMEOUT_MS + 1 + QUESTIONS);
    holder_close(&h);
}

/* ---- the warning ---- */

static int warning_of(int64_t timeout_ms, int64_t tick_ms, char *text, size_t text_bytes) {
    witness w;
    divvy_client_config config = witness_config(&w, dv_test_server_address(server, 1));
    config.session_timeout_ms = timeout_ms;
    config.ensemble_tick_ms = tick_ms;
    divvy_client *client = open_connected(&config);
    assert_true(DV_WAIT(witness_told(&w, "C"), PATIENCE_MS)); /* A warning is given before. */
    int code = witness_warned(&w);
    snprintf(text, text_bytes, "%s", w.warning_text);
    divvy_client_close(client);
    witness_end(&w);
    return code;
}

/* A timeout under five ticks is warned of; five ticks are enough, and nobody knows without the tick. */
TEST(test_warns_of_short_timeout) {
    char text[1024];
    assert_int_equal(warning_of(5 * TICK_MS - 20, TICK_MS, text, sizeof text), DIVVY_WARN_SESSION);
    assert_non_null(strstr(text, "480"));
    assert_non_null(strstr(text, "5 ticks"));
    assert_int_equal(warning_of(5 * TICK_MS, TICK_MS, text, sizeof text), 0);
}

/* ---- time left ---- */

/* Without faults the time left never exceeds T less the margin, and comes, once in a few heartbeats at least, to T
 * less the margin, what must lie between a request and its proof, and two intervals of heartbeats at their longest. */
static void check_time_left_before(holder *h, int64_t timeout_ms, int64_t tick_ms) {
    int64_t guard_ms = tick_ms / 2 + 100, beat_ms = timeout_ms * 15 / 100;
    int64_t margin_ms = timeout_ms / 100 + 20, least_ms = timeout_ms - margin_ms - guard_ms - 2 * beat_ms, most_ms = 0;
    dv_test_sleep_ms((int)(guard_ms + 2 * beat_ms)); /* The session's creation was a proof too, and better than most. */
    int64_t end_ms = dv_test_now_ms() + timeout_ms;
    while (dv_test_now_ms() < end_ms || most_ms < least_ms) {
        int64_t left_ms = divvy_client_time_left_ms(h->client);
        assert_true(left_ms <= timeout_ms - margin_ms);
        if (left_ms > most_ms) most_ms = left_ms;
        if (dv_test_now_ms() > end_ms + PATIENCE_MS) fail_msg("never more than %lld ms left", (long long)most_ms);
        dv_test_sleep_ms(1);
    }
    print_message("T %lld, tick %lld: seen up to %lld ms, and %lld must be", (long long)timeout_ms, (long long)tick_ms,
                  (long long)most_ms, (long long)least_ms);
}

/* After a cut, what is owned is owned for as long as was said, and at most for T less the margin. An answer that was
 * under way at the cut may lengthen what is said. */
static void check_time_left_after(holder *h, int64_t cut_ms, int64_t timeout_ms) {
    int64_t margin_ms = timeout_ms / 100 + 20, asked_ms = dv_test_now_ms();
    int64_t at_cut_ms = divvy_client_time_left_ms(h->client), promised_ms = asked_ms + at_cut_ms;
    print_message(", at the cut %lld ms", (long long)at_cut_ms);
    assert_true(at_cut_ms > 0);
    for (bool owned = true; owned;) {
        int64_t before_ms = dv_test_now_ms();
        owned = holder_owns(h);
        int64_t after_ms = dv_test_now_ms(), left_ms = divvy_client_time_left_ms(h->client);
        if (owned) assert_true(before_ms <= cut_ms + timeout_ms - margin_ms);
        else assert_true(after_ms >= promised_ms - 2); /* two clocks of whole milliseconds */
        if (left_ms > 0) assert_true(after_ms + left_ms <= cut_ms + timeout_ms - margin_ms + 2);
        if (!owned) assert_int_equal(left_ms, 0);
        else if (left_ms > 0 && after_ms + left_ms > promised_ms) promised_ms = after_ms + left_ms;
        dv_test_sleep_ms(1);
    }
    assert_true(DV_WAIT(holder_told_ms(h) != 0, PATIENCE_MS));
    assert_true(holder_told_ms(h) >= promised_ms - 2);
    print_message(", lost after %lld ms\n", (long long)(holder_told_ms(h) - cut_ms));
}

static void check_time_left(int64_t timeout_ms, int64_t tick_ms) {
    holder h;
    dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(server, 1));
    open_holder(&h, dv_test_proxy_address(proxy), timeout_ms, tick_ms);
    check_time_left_before(&h, timeout_ms, tick_ms);
    dv_test_proxy_freeze(proxy);
    check_time_left_after(&h, dv_test_now_ms(), timeout_ms);
    dv_test_proxy_restore(proxy);
    holder_close(&h);
    dv_test_proxy_stop(proxy);
}

TEST(test_time_left) {
    check_time_left(3000, TICK_MS);
    check_time_left(2500, TICK_MS);
    check_time_left(3000, 1500); /* told more than it is */
}

TEST_GROUP(setup, teardown);
