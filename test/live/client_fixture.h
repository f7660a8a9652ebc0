/* A server and clients for tests of the client. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_TEST_CLIENT_FIXTURE_H
#define DV_TEST_CLIENT_FIXTURE_H

#include "server_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

static inline void tell_tick(void) {
    char text[16];
    snprintf(text, sizeof text, "%d", TICK_MS);
    setenv("DIVVY_ENSEMBLE_TICK_MS", text, 1);
}

static inline int set_up_told(void **state) {
    tell_tick();
    return set_up(state);
}

#endif
