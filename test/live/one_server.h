/* One server for all tests of a program, and a session of its own that sees the truth in it. SPDX-License-Identifier:
 * Apache-2.0 */
#ifndef DV_TEST_ONE_SERVER_H
#define DV_TEST_ONE_SERVER_H

#include "lib/server.h"
#include "lib/test.h"
#include "lib/zk.h"

#define TICK_MS 100

static dv_test_server *server;
static dv_test_zk *truth;

static inline const char *hosts(void) {
    return dv_test_server_connect(server);
}

static inline int start_server(void **state) {
    (void)state;
    server = dv_test_server_start(1, TICK_MS);
    truth = dv_test_zk_open(hosts());
    return 0;
}

static inline int stop_server(void **state) {
    (void)state;
    dv_test_zk_close(truth);
    dv_test_server_stop(server);
    return 0;
}

#endif
