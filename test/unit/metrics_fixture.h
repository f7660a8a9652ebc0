/* Metrics of clients on an in-memory ensemble, in virtual time. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_TEST_METRICS_FIXTURE_H
#define DV_TEST_METRICS_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "divvy/divvy.h"
#include "divvy/testing.h"
#include "lib/test.h"

enum { CLIENTS = 3, WAIT_MS = 60000, TEXT_BYTES = 200000 };

static divvy_testing_ensemble *ensemble;
static divvy_client *clients[CLIENTS];
static char text[TEXT_BYTES];

typedef struct {
    divvy_client *client;
    size_t bytes, calls;
    size_t fails_at; /* the call that returns an error; 0: none */
} receiver;

/* Keeps the text, and calls the library in between: that would never return if a lock were held. */
static inline int receive(void *user, const char *part, size_t bytes) {
    receiver *to = user;
    if (to->client) divvy_client_state(to->client);
    if (++to->calls == to->fails_at) return -1234;
    assert_true(bytes > 0 && to->bytes + bytes < TEXT_BYTES);
    memcpy(text + to->bytes, part, bytes);
    to->bytes += bytes;
    text[to->bytes] = '\0';
    return 0;
}

/* Writes the metrics of a client to `text`. */
static inline void look(divvy_client *client) {
    receiver to = {.client = client};
    assert_int_equal(divvy_metrics_write(client, receive, &to), 0);
}

/* Returns the value of a sample of `text`, which has to be there once. */
static inline double value(const char *sample) {
    char line[300];
    snprintf(line, sizeof line, "\n%s ", sample);
    const char *at = strstr(text, line);
    if (!at) fail_msg("no sample %s in:\n%s", sample, text);
    assert_null(strstr(at + 1, line));
    return strtod(at + strlen(line), NULL);
}

static inline void expect(const char *sample, double expected) {
    double there = value(sample);
    if (there < expected - 1e-9 || there > expected + 1e-9) fail_msg("%s is %f and not %f", sample, there, expected);
}

static inline void expect_between(const char *sample, double least, double most) {
    double there = value(sample);
    if (there < least || there > most) fail_msg("%s is %f and not %f to %f", sample, there, least, most);
}

static inline void open_client(int i, const char *hosts) {
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.manual = 1;
    config.hosts = hosts;
    config.ensemble_tick_ms = 2000;
    assert_int_equal(divvy_testing_client_open(&clients[i], ensemble, &config), 0);
}

static inline int set_up(void **state) {
    (void)state;
    divvy_testing_config config = DIVVY_TESTING_CONFIG_INIT;
    assert_int_equal(divvy_testing_ensemble_create(&ensemble, &config), 0);
    for (int i = 0; i < CLIENTS; i++) open_client(i, NULL);
    for (int i = 0; i < CLIENTS; i++) assert_int_equal(divvy_client_wait_connected(clients[i], WAIT_MS), 0);
    return 0;
}

static inline int tear_down(void **state) {
    (void)state;
    for (int i = 0; i < CLIENTS; i++) divvy_client_close(clients[i]);
    divvy_testing_ensemble_destroy(ensemble);
    return 0;
}

static inline void run_ms(int64_t ms) {
    assert_true(divvy_testing_run(ensemble, ms) >= 0);
}

#endif
