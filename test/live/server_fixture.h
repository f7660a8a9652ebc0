/* One server, and what the process has before the first client. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_TEST_SERVER_FIXTURE_H
#define DV_TEST_SERVER_FIXTURE_H

#include "one_server.h"
#include "test_client_witness.h"

#include "lib/proxy.h"

#include <dirent.h>

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
    start_server(state);
    threads_at_rest = threads();
    descriptors_at_rest = descriptors();
    return 0;
}

#endif
