/* The buckets of rule A11. SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <divvy/divvy.h>

enum { KEYS = 100000 };

static uint32_t bucket_of(const char *key, uint32_t count) {
    return divvy_bucket(key, strlen(key), count);
}

/* Each line of bucket_vectors.txt holds. bucket_reference.py has printed it, which shares no line with the library. */
TEST(test_vectors) {
    FILE *file = fopen(DIVVY_SOURCE_DIR "/test/unit/bucket_vectors.txt", "r");
    assert_non_null(file);
    char *line = NULL;
    size_t room = 0, count = 0;
    for (ssize_t bytes; (bytes = getline(&line, &room, file)) > 0; count++) {
        char *end;
        unsigned long buckets = strtoul(line, &end, 10), bucket = strtoul(end, &end, 10);
        assert_int_equal(line[bytes - 1], '\n');
        line[bytes - 1] = '\0';
        assert_int_equal(*end, ' ');
        if (bucket_of(end + 1, (uint32_t)buckets) != bucket) fail_msg("%s", line);
    }
    assert_true(count > 200);
    free(line);
    fclose(file);
}

/* A key may have NUL bytes in it, and any other. The numbers are the reference's. */
TEST(test_bytes) {
    const unsigned char zeros[4] = {0}, odd[] = {0xff, 0x00, 0xfe, 0x80};
    assert_int_equal(divvy_bucket(zeros, 0, 1000), bucket_of("", 1000));
    assert_int_equal(divvy_bucket(zeros, 4, 1000), 454);
    assert_int_equal(divvy_bucket(odd, 4, 1000), 440);
    assert_int_not_equal(divvy_bucket(zeros, 1, 1000), divvy_bucket(zeros, 2, 1000));
}

/* What is no call of it has no bucket: no count, and no key where there should be bytes. */
TEST(test_refused) {
    assert_int_equal(divvy_bucket("a", 1, 0), UINT32_MAX);
    assert_int_equal(divvy_bucket(NULL, 1, 10), UINT32_MAX);
    assert_int_equal(divvy_bucket(NULL, 0, 10), bucket_of("", 10));
    assert_int_equal(divvy_bucket("a", 1, 1), 0);
}

/* Keys that are alike spread evenly: 100,000 of them to 100 buckets. A mean of 1,000 has a deviation of about 31, so no
 * bucket of a good hash is off by 160, five times that. */
TEST(test_spread) {
    static const char *const forms[] = {"%d", "tenant-%06d", "/customers/%d/orders"};
    for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
        size_t loads[100] = {0};
        for (int k = 0; k < KEYS; k++) {
            char key[64];
            snprintf(key, sizeof key, forms[f], k);
            uint32_t bucket = bucket_of(key, 100);
            assert_true(bucket < 100);
            loads[bucket]++;
        }
        for (size_t b = 0; b < 100; b++) assert_in_range(loads[b], 840, 1160);
    }
}

/* When the count grows, a key stays, or goes to a new bucket; (n - count) / n of them go. */
TEST(test_growth) {
    static const struct {
        uint32_t from, to;
    } cases[] = {{1, 2}, {10, 11}, {100, 128}, {1000, 1024}, {1024, 2048}, {4096, 65536}, {100000, 4294967295}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        size_t moved = 0;
        for (int k = 0; k < KEYS; k++) {
            char key[64];
            snprintf(key, sizeof key, "key-%d", k);
            uint32_t before = bucket_of(key, cases[c].from), after = bucket_of(key, cases[c].to);
            if (before == after) continue;
            assert_in_range(after, cases[c].from, cases[c].to - 1);
            moved++;
        }
        double part = 1 - (double)cases[c].from / cases[c].to;
        assert_in_range(moved, (size_t)(part * KEYS) - 500, (size_t)(part * KEYS) + 500);
    }
}
