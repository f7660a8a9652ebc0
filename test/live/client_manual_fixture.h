/* Clients in manual mode. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_TEST_CLIENT_MANUAL_FIXTURE_H
#define DV_TEST_CLIENT_MANUAL_FIXTURE_H

#include "server_fixture.h"

#include <limits.h>
#include <poll.h>
#include <signal.h>

static inline divvy_client_config manual_config(witness *w, const char *list) {
    divvy_client_config config = witness_config(w, list);
    config.manual = 1;
    return config;
}

static inline bool readable(const divvy_client *client, int64_t timeout_ms) {
    struct pollfd fd = {.fd = divvy_client_fd(client), .events = POLLIN};
    return poll(&fd, 1, timeout_ms < 0 || timeout_ms > INT_MAX ? -1 : (int)timeout_ms) == 1;
}

/* One turn of a program's poll(2) loop; `most_ms` bounds it only so that a failing test ends. */
static inline void poll_once(divvy_client *client, int64_t most_ms) {
    int64_t deadline_ms = divvy_client_next_deadline(client);
    readable(client, deadline_ms < 0 || deadline_ms > most_ms ? most_ms : deadline_ms);
    int count = divvy_client_process(client, 0);
    if (count < 0) fail_msg("process: %s", divvy_client_error(client));
}

/* Drives the client as a program would until the condition holds. */
#define POLL_UNTIL(client, condition)                                      \
    do {                                                                   \
        int64_t until_ms_ = dv_test_now_ms() + PATIENCE_MS;                \
        while (!(condition)) {                                             \
            if (dv_test_now_ms() >= until_ms_) fail_msg("%s", #condition); \
            poll_once(client, 1000);                                       \
        }                                                                  \
    } while (0)

/* Says when the next thing is to be done. This thread may be stopped between two readings: then it asks again. */
static inline int64_t due_at_ms(divvy_client *client) {
    for (;;) {
        int64_t asked_ms = dv_test_now_ms(), due_ms = divvy_client_next_deadline(client);
        if (dv_test_now_ms() - asked_ms <= 1) return due_ms < 0 ? 0 : asked_ms + due_ms;
    }
}

static inline bool is_answered(const divvy_client *client) {
    divvy_stats stats;
    assert_int_equal(divvy_client_stats(client, &stats, sizeof stats), 0);
    return stats.in_flight == 0;
}

/* Drives until all is answered, and the next thing to do is a heartbeat that is at least `least_ms` away. Returns when
 * that is. */
static inline int64_t come_to_rest(divvy_client *client, int64_t least_ms) {
    int64_t due_ms = 0;
    POLL_UNTIL(client, (due_ms = due_at_ms(client)) > dv_test_now_ms() + least_ms && is_answered(client) &&
                           !readable(client, 100));
    return due_ms;
}

#endif
