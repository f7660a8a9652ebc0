/* Tests of base/guid.h. SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/guid.h"
#include "lib/test.h"

static const char alphabet[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

static int compare_names(const void *a, const void *b) {
    return strcmp(a, b);
}

/* A name is session, client and counter in base 62, the counter being counted up before it is written. */
TEST(test_golden_names) {
    static const struct {
        int64_t session_id;
        uint64_t client_random, counter;
        const char *name;
    } golden[] = {
        {0, 0, 0, "00000000000000000000001"},
        {1, 61, 60, "000000000010000000000zz"},
        {62, 3844, 61, "000000000100000000010010"},
        {-1, UINT64_MAX, UINT64_MAX - 1, "LygHa16AHYFLygHa16AHYFLygHa16AHYF"},
        {INT64_MIN, (uint64_t)1 << 63, 9, "AzL8n0Y58m8AzL8n0Y58m8A"},
        {INT64_MAX, INT64_MAX, 35, "AzL8n0Y58m7AzL8n0Y58m7a"},
        {0x1000a5b2c3d0007, 0xdeadbeefcafef00d, 3843, "05K4kotSYuVJ7JQxujr68T100"},
    };
    for (size_t i = 0; i < sizeof golden / sizeof golden[0]; i++) {
        dv_guid_source source = {.client_random = golden[i].client_random, .counter = golden[i].counter};
        char name[DV_GUID_BYTES];
        dv_guid_next(&source, golden[i].session_id, name);
        assert_string_equal(name, golden[i].name);
        assert_int_equal(source.counter, golden[i].counter + 1);
        assert_true(source.client_random == golden[i].client_random);
    }
}

/* Names of several clients on several sessions, a resumed one among them, are all different and have only letters and
 * digits: no '-', ',' or '_', at which kazoo and we take names apart. */
TEST(test_names_differ_and_have_letters_and_digits_only) {
    enum { SESSIONS = 4, CLIENTS = 4, DRAWS = 5000, NAMES = SESSIONS * CLIENTS * DRAWS };
    static const int64_t sessions[SESSIONS] = {1, 11, -1, 0x1000a5b2c3d0007};
    static const uint64_t clients[CLIENTS] = {0, 1, 11, UINT64_MAX};
    char(*names)[DV_GUID_BYTES] = calloc(NAMES, sizeof *names);
    assert_non_null(names);
    size_t count = 0;
    for (size_t client = 0; client < CLIENTS; client++) {
        dv_guid_source source = {.client_random = clients[client]};
        for (size_t draw = 0; draw < DRAWS * SESSIONS; draw++) {
            char *name = names[count++];
            dv_guid_next(&source, sessions[draw % SESSIONS], name);
            assert_int_equal(strspn(name, alphabet), strlen(name));
            assert_in_range(strlen(name), 23, 33);
        }
    }
    assert_int_equal(count, NAMES);
    qsort(names, count, sizeof *names, compare_names);
    for (size_t i = 1; i < count; i++) assert_string_not_equal(names[i - 1], names[i]);
    free(names);
}

/* Numbers that would run together if they had no fixed width make different names. */
TEST(test_neighbouring_numbers_do_not_run_together) {
    dv_guid_source one = {.client_random = 62, .counter = 0};
    dv_guid_source other = {.client_random = 1, .counter = 0};
    char first[DV_GUID_BYTES];
    char second[DV_GUID_BYTES];
    dv_guid_next(&one, 1, first);
    dv_guid_next(&other, 62, second);
    assert_string_not_equal(first, second);
    other = (dv_guid_source){.client_random = 6, .counter = 62 + 1};
    one = (dv_guid_source){.client_random = 6 * 62 + 1, .counter = 1};
    dv_guid_next(&one, 0, first);
    dv_guid_next(&other, 0, second);
    assert_string_not_equal(first, second);
}

/* kazoo's mark of a member, 32 digits, is reached only by a counter of ten digits. */
TEST(test_only_a_counter_of_ten_digits_makes_32) {
    static const struct {
        uint64_t counter;
        size_t bytes;
    } draws[] = {
        {0, 23},
        {1000000000, 28},
        {13537086546263550u, 31},  /* draws 62^9 - 1 */
        {13537086546263551u, 32},  /* draws 62^9 */
        {839299365868340222u, 32}, /* draws 62^10 - 1 */
        {839299365868340223u, 33}, /* draws 62^10 */
    };
    for (size_t i = 0; i < sizeof draws / sizeof draws[0]; i++) {
        dv_guid_source source = {.client_random = 7, .counter = draws[i].counter};
        char name[DV_GUID_BYTES];
        memset(name, '#', sizeof name);
        dv_guid_next(&source, 7, name);
        assert_int_equal(strlen(name), draws[i].bytes);
        for (size_t rest = strlen(name) + 1; rest < sizeof name; rest++) assert_int_equal(name[rest], '#');
    }
}

/* What one client draws on one session is known by its beginning; not what it draws on the next, or another draws. */
TEST(test_session_of_a_name) {
    char name[DV_GUID_BYTES], next[DV_GUID_BYTES], later[DV_GUID_BYTES], others[DV_GUID_BYTES];
    dv_guid_source source = {.client_random = 5}, other = {.client_random = 6};
    dv_guid_next(&source, 77, name);
    dv_guid_next(&source, 77, next);
    dv_guid_next(&source, 78, later);
    dv_guid_next(&other, 77, others);
    assert_true(dv_guid_is_of_same_session(name, next));
    assert_false(dv_guid_is_of_same_session(name, later));
    assert_false(dv_guid_is_of_same_session(name, others));
    assert_true(dv_guid_is_of_former_session(later, name));
    assert_false(dv_guid_is_of_same_session("", ""));
    assert_false(dv_guid_is_of_same_session("short", "short"));
}
