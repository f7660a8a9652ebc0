/* A client on a fake backend, whose time the test moves. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_TEST_CLIENT_CLOCK_FIXTURE_H
#define DV_TEST_CLIENT_CLOCK_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/fake_tree.h"
#include "lib/test.h"

#define TIMEOUT_MS 9000
#define TICK_MS 4500

static dv_fake *fake;
static divvy_client *client;
static int64_t start;

/* The news of the session that the user was told, by letters, and those that listeners were told. */
static char sessions[32], heard[32];

static inline void note(char *text, char letter) {
    size_t count = strlen(text);
    assert_true(count < 31);
    text[count] = letter;
    text[count + 1] = '\0';
}

static inline void on_session(divvy_client *c, divvy_session_state state, void *user) {
    (void)c, (void)user;
    note(sessions, "?CSLA?"[state]);
}

static inline void hear(dv_listener *heard_by, dv_session_event event, int64_t now) {
    (void)heard_by, (void)now;
    note(heard, "CSLOKxzPR"[event]);
}

static dv_listener listener = {.hear = hear};

static inline int set_up(void **state) {
    (void)state;
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.session_timeout_ms = TIMEOUT_MS;
    config.ensemble_tick_ms = TICK_MS;
    config.on_session = on_session;
    config.ephemeral_path_bytes = 100;
    config.watch_path_bytes = 100;
    memset(sessions, 0, sizeof sessions);
    memset(heard, 0, sizeof heard);
    fake = dv_fake_open(&config);
    client = dv_fake_client(fake);
    start = dv_fake_now(fake);
    dv_listen(client, &listener);
    return 0;
}

static inline int tear_down(void **state) {
    (void)state;
    dv_unlisten(client, &listener);
    dv_fake_close(fake);
    return 0;
}

static inline bool alive(void) {
    return dv_client_alive_at(client, dv_fake_now(fake));
}

#endif
