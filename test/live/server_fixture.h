/* One server, and a look at the truth in it, for the tests of a program. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_TEST_SERVER_FIXTURE_H
#define DV_TEST_SERVER_FIXTURE_H

#include "test_client_witness.h"

#include "lib/proxy.h"
#include "lib/server.h"
#include "lib/zk.h"

#include <dirent.h>

#define TICK_MS 100

static dv_test_server *server;
static dv_test_zk *truth;

static inline const char *hosts(void) {
    return dv_test_server_connect(server);
}

/* Before the first client: what an earlier one began, such as asking for the tick, may still be on its way to its end
 * when a test begins, and would be counted. */
static unsigned threads_at_rest, descriptors_at_rest;

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
    server = dv_test_server_start(1, TICK_MS);
    truth = dv_test_zk_open(hosts());
    threads_at_rest = threads();
    descriptors_at_rest = descriptors();
    return 0;
}

static inline int tear_down(void **state) {
    (void)state;
    dv_test_zk_close(truth);
    dv_test_server_stop(server);
    return 0;
}

#endif
