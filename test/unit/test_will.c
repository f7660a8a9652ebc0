/* Tests of client/will.h: a will as a message. SPDX-License-Identifier: Apache-2.0 */
#include "client/will.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "divvy/error.h"
#include "lib/test.h"

static char message[DV_WILL_BYTES_MAX];

static dv_will example(size_t pool_count) {
    static char texts[DV_WILL_TEXTS][16], paths[DV_WILL_POOLS_MAX][32];
    dv_will will = {
        .session_id = -0x100000000000005, .timeout_ms = 10000, .delay_ms = 700, .acl = 2, .pool_count = pool_count};
    memcpy(will.password, "\0sixteen bytes\xff\n", sizeof will.password);
    for (int i = 0; i < DV_WILL_TEXTS; i++) {
        snprintf(texts[i], sizeof texts[i], "text %d", i);
        will.texts[i] = texts[i];
    }
    for (size_t i = 0; i < pool_count; i++) {
        snprintf(paths[i], sizeof paths[i], "/pool/%zu", i);
        will.pools[i] = (dv_will_pool){paths[i], "me"};
    }
    return will;
}

static void check_text(const char *found, const char *expected) {
    if (!expected) assert_null(found);
    else assert_string_equal(found, expected);
}

static void check_same(const dv_will *found, const dv_will *expected) {
    assert_int_equal(found->session_id, expected->session_id);
    assert_int_equal(found->timeout_ms, expected->timeout_ms);
    assert_int_equal(found->delay_ms, expected->delay_ms);
    assert_int_equal(found->acl, expected->acl);
    assert_memory_equal(found->password, expected->password, sizeof found->password);
    for (int i = 0; i < DV_WILL_TEXTS; i++) check_text(found->texts[i], expected->texts[i]);
    assert_int_equal(found->pool_count, expected->pool_count);
    for (size_t i = 0; i < expected->pool_count; i++) {
        check_text(found->pools[i].path, expected->pools[i].path);
        check_text(found->pools[i].member, expected->pools[i].member);
    }
}

static void check_arrives(const dv_will *will) {
    dv_will found;
    size_t bytes = dv_will_print(will, message, sizeof message);
    assert_true(bytes > 0);
    assert_int_equal(dv_will_parse(&found, message, bytes), 0);
    check_same(&found, will);
}

/* What is printed is parsed as the same: with all texts, with each of them alone, with empty ones, and with none. */
TEST(test_texts) {
    dv_will all = example(0);
    check_arrives(&all);
    for (int i = 0; i < DV_WILL_TEXTS; i++) {
        dv_will one = example(0);
        for (int j = 0; j < DV_WILL_TEXTS; j++) one.texts[j] = j == i || j == DV_WILL_HOSTS ? all.texts[j] : NULL;
        check_arrives(&one);
        one.texts[i] = "";
        check_arrives(&one);
    }
    check_arrives(&(dv_will){0}); /* "forget" */
}

/* Pools arrive in their order, up to the most that there may be. */
TEST(test_pools) {
    static const size_t counts[] = {1, 2, DV_WILL_POOLS_MAX};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        dv_will will = example(counts[i]);
        check_arrives(&will);
    }
}

/* Texts of a will point into its message, so nothing is copied and nothing is to be freed. */
TEST(test_points_into_the_message) {
    dv_will will = example(1), found;
    size_t bytes = dv_will_print(&will, message, sizeof message);
    assert_int_equal(dv_will_parse(&found, message, bytes), 0);
    for (int i = 0; i < DV_WILL_TEXTS; i++) assert_true(found.texts[i] > message && found.texts[i] < message + bytes);
    assert_true(found.pools[0].member > message && found.pools[0].member < message + bytes);
}

/* A message needs its room to the last byte. In less, nothing is said, and nothing is left of the password. */
TEST(test_room) {
    dv_will will = example(2);
    size_t needed = dv_will_print(&will, message, sizeof message);
    assert_int_equal(dv_will_print(&will, message, needed), needed);
    for (size_t room = 0; room < needed; room++) {
        memset(message, 'x', sizeof message);
        assert_int_equal(dv_will_print(&will, message, room), 0);
        for (size_t i = 0; i < room; i++) assert_int_equal(message[i], 0);
        assert_int_equal(message[room], 'x');
    }
}

static void check_refused(const char *bytes, size_t count) {
    static const dv_will none;
    dv_will found;
    memset(&found, 'x', sizeof found);
    assert_int_equal(dv_will_parse(&found, bytes, count), DIVVY_EPROTO);
    assert_memory_equal(&found, &none, sizeof none); /* No pointer, no password. */
}

/* A message that is cut at any byte, or goes on after its end, is refused whole. */
TEST(test_cut) {
    dv_will will = example(2);
    size_t bytes = dv_will_print(&will, message, sizeof message);
    for (size_t i = 0; i < bytes; i++) {
        char *exact = malloc(i + 1); /* AddressSanitizer sees a byte that is read past it. */
        memcpy(exact, message, i);
        check_refused(exact, i);
        free(exact);
    }
    message[bytes] = 'u';
    check_refused(message, bytes + 1);
}

/* Numbers that no client sends are refused: another format, a time below 0 or beyond 32 bits, too many pools; and so is
 * a session without hosts, or a pool without its path or member. */
TEST(test_refused) {
    const dv_will wrong_numbers[] = {{.timeout_ms = -1},
                                     {.timeout_ms = (int64_t)INT32_MAX + 1},
                                     {.delay_ms = -1},
                                     {.delay_ms = (int64_t)INT32_MAX + 1},
                                     {.session_id = 1}};
    for (size_t i = 0; i < sizeof wrong_numbers / sizeof wrong_numbers[0]; i++)
        check_refused(message, dv_will_print(&wrong_numbers[i], message, sizeof message));
    const dv_will_pool wrong_pools[] = {{NULL, "me"}, {"/pool", NULL}, {NULL, NULL}};
    for (size_t i = 0; i < sizeof wrong_pools / sizeof wrong_pools[0]; i++) {
        dv_will will = example(1);
        will.pools[0] = wrong_pools[i];
        check_refused(message, dv_will_print(&will, message, sizeof message));
    }
    dv_will will = example(DV_WILL_POOLS_MAX);
    size_t bytes = dv_will_print(&will, message, sizeof message), at = 0;
    for (uint64_t count = DV_WILL_POOLS_MAX; memcmp(message + at, &count, sizeof count) != 0;) at++;
    message[at]++;
    check_refused(message, bytes);
    message[at]--;
    message[0]++; /* the format */
    check_refused(message, bytes);
}

/* C10: a session is ended when the watch was told of one, the process has ended, and nothing is left of what ran under
 * it. Each alone does not do. */
TEST(test_due) {
    for (int i = 0; i < 8; i++) assert_int_equal(dv_will_is_due(i & 1, i & 2, i & 4), i == 7);
}
