/* Tests of znode/sequence.h. SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/test.h"
#include "znode/sequence.h"

/* In the order in which the server's counter takes them. */
static const int32_t ordered[] = {
    0,           1,           9,          10,  999999999, 1000000000, INT32_MAX - 1, INT32_MAX, INT32_MIN, -2147483647,
    -1000000001, -1000000000, -999999999, -10, -2,        -1,
};

/* Names as the server makes them are read, and only the number at their very end counts. */
TEST(test_names_that_are_read) {
    static const struct {
        const char *name, *marker;
        int32_t sequence;
    } taken[] = {
        {"f00__lock__0000000000", "__lock__", 0},
        {"f00__lock__0000000042", "__lock__", 42},
        {"f00__rlock__0000000042", "__rlock__", 42},
        {"f00__lock__2147483647", "__lock__", INT32_MAX},
        {"f00__lock__-2147483648", "__lock__", INT32_MIN},
        {"f00__lock__-1000000000", "__lock__", -1000000000},
        {"f00__lock__-999999999", "__lock__", -999999999},
        {"f00__lock__-000000001", "__lock__", -1},
        {"__lock__0000000007", "__lock__", 7},
        {"a__lock__0000000001__lock__0000000002", "__lock__", 2},
        {"a__lock____lock__0000000003", "__lock__", 3},
        {"a-0000000004", "-", 4},
        {"a--1147483648", "-", -1147483648},
        {"a--000000004", "-", -4},
    };
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++) {
        int32_t sequence = 12345;
        assert_true(dv_sequence_parse(taken[i].name, taken[i].marker, &sequence));
        assert_int_equal(sequence, taken[i].sequence);
    }
}

/* A text that the server would not have written after the marker is no sequence, and the result is left alone. */
TEST(test_names_that_are_not_read) {
    static const char *const refused[] = {
        "",
        "f00",
        "0000000001",
        "f00__lock__",
        "f00__lock__1",
        "f00__lock__000000001",
        "f00__lock__00000000001",
        "f00__lock__-00000001",
        "f00__lock__-0000000001",
        "f00__lock__-0999999999",
        "f00__lock__-000000000",
        "f00__lock__-0000000000",
        "f00__lock__2147483648",
        "f00__lock__9999999999",
        "f00__lock__-2147483649",
        "f00__lock__-9999999999",
        "f00__lock__-10000000000",
        "f00__lock__+000000001",
        "f00__lock__+0000000001",
        "f00__lock__ 000000001",
        "f00__lock__--00000001",
        "f00__lock__0000-00001",
        "f00__lock__00000000x1",
        "f00__lock__0x00000001",
        "f00__lock__0000000001 ",
        "f00__lock__0000000001x",
        "f00__lock__0000000001/",
        "f00__lock__000000000:",
        "f00__lock_0000000001",
        "f00_lock__0000000001",
        "f00__LOCK__0000000001",
        "f00__rlock__0000000001",
        "f00__lock__x0000000001",
        "f00__lock__0000000001__rlock__0000000002",
        "_lock__0000000001",
        "lock__-000000001",
        "f00__lock__\xd9\xa1\xd9\xa1\xd9\xa1\xd9\xa1\xd9\xa1", /* digits to Unicode, ten bytes */
    };
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        int32_t sequence = 12345;
        if (dv_sequence_parse(refused[i], "__lock__", &sequence)) fail_msg("read: %s", refused[i]);
        assert_int_equal(sequence, 12345);
    }
}

static void assert_read_back(int32_t number) {
    char name[64];
    int32_t sequence = ~number;
    (void)snprintf(name, sizeof name, "guid__lock__%010" PRId32, number);
    assert_true(dv_sequence_parse(name, "__lock__", &sequence));
    assert_int_equal(sequence, number);
}

/* A number is read back from the text that "%010d" makes of it, which is what the server does: at all borders, and in
 * steps of a prime through the whole range. */
TEST(test_numbers_as_the_server_prints_them) {
    for (size_t i = 0; i < sizeof ordered / sizeof ordered[0]; i++) assert_read_back(ordered[i]);
    for (int64_t number = INT32_MIN; number <= INT32_MAX; number += 9973) assert_read_back((int32_t)number);
}

/* The order is that of the counter through its wrap, for every pair: total, and equal only to itself. */
TEST(test_order_through_the_wrap) {
    size_t count = sizeof ordered / sizeof ordered[0];
    for (size_t a = 0; a < count; a++) {
        for (size_t b = 0; b < count; b++) {
            int order = dv_sequence_compare(ordered[a], ordered[b]);
            if (a < b) assert_true(order < 0);
            if (a == b) assert_true(order == 0);
            if (a > b) assert_true(order > 0);
        }
    }
}
