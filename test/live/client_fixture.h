/* A server and clients for tests of the client. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_TEST_CLIENT_FIXTURE_H
#define DV_TEST_CLIENT_FIXTURE_H

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

static inline const char *hosts(void) {
    return dv_test_server_connect(server);
}

static inline void tell_tick(void) {
    char text[16];
    snprintf(text, sizeof text, "%d", TICK_MS);
    setenv("DIVVY_ENSEMBLE_TICK_MS", text, 1);
}

static inline unsigned count_entries(const char *directory) {
    unsigned count = 0;
    DIR *entries = opendir(directory);
    assert_non_null(entries);
    for (struct dirent *entry; (entry = readdir(entries));) count += entry->d_name[0] != '.';
    closedir(entries);
    return count;
}

static inline unsigned threads(void) {
    return count_entries("/proc/self/task");
}

static inline unsigned descriptors(void) {
    return count_entries("/proc/self/fd");
}

static inline int set_up(void **state) {
    (void)state;
    tell_tick();
    server = dv_test_server_start(1, TICK_MS);
    truth = dv_test_zk_open(hosts());
    return 0;
}

static inline int tear_down(void **state) {
    (void)state;
    dv_test_zk_close(truth);
    dv_test_server_stop(server);
    return 0;
}

#endif
