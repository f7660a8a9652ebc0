/* Tests of the names of codes, and of the lines that show them. SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "divvy/divvy.h"
#include "divvy/testing.h"
#include "lib/test.h"

static const char *session_name(int code) {
    return divvy_session_state_name((divvy_session_state)code);
}

static const char *partition_name(int code) {
    return divvy_partition_state_name((divvy_partition_state)code);
}

static const struct {
    const char *(*name)(int code);
    int first, last;
    const char *first_name, *last_name;
} kinds[] = {
    {session_name, DIVVY_CONNECTING, DIVVY_CLOSED, "CONNECTING", "CLOSED"},
    {partition_name, DIVVY_ALLOCATING, DIVVY_FAILURE, "ALLOCATING", "FAILURE"},
    {divvy_reason_name, DIVVY_REASON_MEMBERS, DIVVY_REASON_DRAIN, "MEMBERS", "DRAIN"},
    {divvy_warning_name, DIVVY_WARN_ITEMS_DIFFER, DIVVY_WARN_TOKENS, "ITEMS_DIFFER", "TOKENS"},
    {divvy_warning_name, DIVVY_WARN_ENTRY, DIVVY_WARN_PRESERVED, "ENTRY", "PRESERVED"},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* Each code has a name of its own, in capitals. */
TEST(test_each_has_a_name) {
    for (size_t k = 0; k < KINDS; k++) {
        for (int code = kinds[k].first; code <= kinds[k].last; code++) {
            const char *name = kinds[k].name(code);
            assert_non_null(name);
            for (const char *c = name; *c; c++) {
                if (!isupper((unsigned char)*c) && *c != '_') fail_msg("%zu, %d: %s", k, code, name);
            }
            for (int other = kinds[k].first; other < code; other++) assert_string_not_equal(name, kinds[k].name(other));
        }
        assert_string_equal(kinds[k].name(kinds[k].first), kinds[k].first_name);
        assert_string_equal(kinds[k].name(kinds[k].last), kinds[k].last_name);
    }
}

/* A number that is no code is "unknown". */
TEST(test_other_numbers) {
    static const int foreign[] = {-1, 50, 99, 1000, INT_MAX, INT_MIN};
    for (size_t k = 0; k < KINDS; k++) {
        for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
            assert_string_equal(kinds[k].name(foreign[i]), "unknown");
    }
    assert_string_equal(divvy_warning_name(0), "unknown");
}

/* Each constant of the header in the enumeration whose names begin with `prefix` has the name that it has there. */
static void check_header(const char *file, const char *prefix, const char *(*name)(int code), int first) {
    char path[512], line[512];
    snprintf(path, sizeof path, "%s/include/divvy/%s", DIVVY_SOURCE_DIR, file);
    FILE *header = fopen(path, "r");
    assert_non_null(header);
    int code = first;
    while (fgets(line, sizeof line, header)) {
        const char *at = line + strspn(line, " ");
        if (at == line || strncmp(at, prefix, strlen(prefix)) != 0) continue;
        at += strlen(prefix);
        size_t bytes = strspn(at, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_");
        if (!strchr(", =\n", at[bytes])) continue;
        if (strncmp(name(code), at, bytes) != 0 || strlen(name(code)) != bytes)
            fail_msg("%s%.*s of %s is %s", prefix, (int)bytes, at, file, name(code));
        code++;
    }
    fclose(header);
    assert_true(code >= first + 5);
    assert_string_equal(name(code), "unknown");
}

/* The names are those of the headers, and no code is without one. */
TEST(test_as_in_the_headers) {
    check_header("client.h", "DIVVY_WARN_", divvy_warning_name, DIVVY_WARN_ITEMS_DIFFER);
    check_header("registry.h", "DIVVY_WARN_", divvy_warning_name, DIVVY_WARN_ENTRY);
    check_header("partition.h", "DIVVY_REASON_", divvy_reason_name, DIVVY_REASON_MEMBERS);
}

static char log_lines[64 * 1024];

static void on_log(int level, const char *message, void *user) {
    (void)level;
    (void)user;
    size_t used = strlen(log_lines);
    snprintf(log_lines + used, sizeof log_lines - used, "%s\n", message);
}

static void assert_logged(const char *text) {
    if (!strstr(log_lines, text)) fail_msg("not in the log: %s\n%s", text, log_lines);
}

/* The log names states and reasons, and a warning where there is no on_warning. */
TEST(test_logged) {
    static const char *const items[] = {"a", "b"};
    divvy_testing_config world = DIVVY_TESTING_CONFIG_INIT;
    divvy_testing_ensemble *ensemble;
    world.tick_ms = 500;
    assert_int_equal(divvy_testing_ensemble_create(&ensemble, &world), 0);
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    divvy_client *client;
    config.manual = 1;
    config.ensemble_tick_ms = 500;
    config.on_log = on_log;
    assert_int_equal(divvy_testing_client_open(&client, ensemble, &config), 0);
    divvy_partitioner_config pool = DIVVY_PARTITIONER_CONFIG_INIT;
    divvy_partitioner *p;
    pool.path = "/pool";
    pool.items = items;
    pool.item_count = 2;
    pool.identifier = "m";
    pool.time_boundary_ms = 500;
    assert_int_equal(divvy_partitioner_create(&p, client, &pool), 0);
    assert_int_equal(divvy_partitioner_wait_for_acquire(p, 60000), 0);
    assert_int_equal(divvy_testing_put(ensemble, "/pool/party/stranger", "", 0, DIVVY_TESTING_PERSISTENT), 0);
    assert_true(divvy_testing_run(ensemble, 5000) >= 0);
    assert_logged("the session: CONNECTING -> CONNECTED\n");
    assert_logged("member m: ALLOCATING -> ACQUIRED\n");
    assert_logged("member m: 0 lost, 2 gained, 0 revoked: MEMBERS\n");
    assert_logged("warning STRAY: ");
    divvy_partitioner_destroy(p);
    divvy_client_close(client);
    divvy_testing_ensemble_destroy(ensemble);
}
