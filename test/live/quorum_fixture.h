/* Three servers that can be parted from one another, for all tests of a program. SPDX-License-Identifier: Apache-2.0
 *
 * A program says TICK_MS and SYNC_TICKS before it includes this. */
#ifndef DV_TEST_QUORUM_FIXTURE_H
#define DV_TEST_QUORUM_FIXTURE_H

#include "lib/quorum.h"
#include "lib/test.h"

static dv_test_quorum *quorum;
static dv_test_server *server;

static inline int start_quorum(void **state) {
    (void)state;
    quorum = dv_test_quorum_start(TICK_MS, SYNC_TICKS);
    server = dv_test_quorum_server(quorum);
    return 0;
}

static inline int stop_quorum(void **state) {
    (void)state;
    dv_test_quorum_stop(quorum);
    return 0;
}

static inline int heal(void **state) {
    (void)state;
    dv_test_quorum_heal(quorum);
    return 0;
}

#endif
