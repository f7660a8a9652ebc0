/* Tests of plan/load_report.h: its text, and hostile ones. SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "divvy/error.h"
#include "lib/scarce.h"
#include "lib/test.h"
#include "plan/load_report.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define SET "\"set\":{\"count\":10,\"crc\":\"01234567\",\"hash\":\"0123456789abcdef\"}"
#define HEAD "{\"v\":1,\"unit\":\"cores\",\"total\":120," SET ",\"classes\":"

/* Parses the given bytes. Sanitizers see a read beyond them. */
static int parse_bytes(dv_load_report *out, const char *text, size_t bytes) {
    char *exact = malloc(bytes + (bytes == 0));
    assert_non_null(exact);
    if (bytes > 0) memcpy(exact, text, bytes);
    dv_plan_fault fault = {0};
    int error = dv_load_report_parse(out, exact, bytes, &fault);
    if (error == DIVVY_EPROTO) assert_true(fault.why && fault.at <= bytes);
    free(exact);
    return error;
}

static void assert_broken(const char *text) {
    dv_load_report report;
    int error = parse_bytes(&report, text, strlen(text));
    if (error != DIVVY_EPROTO) fail_msg("%s: %s", text, divvy_errname(error));
    assert_null(report.items);
    assert_int_equal(report.count, 0);
}

static dv_load_report some(dv_item_class *items, size_t count) {
    return (dv_load_report){.unit = "cores",
                            .total = 120,
                            .set_count = 10,
                            .set_crc = 0x01234567,
                            .set_hash = UINT64_C(0x0123456789abcdef),
                            .items = items,
                            .count = count};
}

/* Items stand by class, the greatest first, by their steps. */
TEST(test_text) {
    dv_item_class items[] = {{0, 100}, {1, 130}, {4, 100}, {7, 0}, {9, 100}};
    dv_load_report report = some(items, COUNT(items)), read;
    char *text = dv_load_report_print(&report);
    assert_string_equal(text, HEAD "[[130,[1]],[100,[0,4,5]],[0,[7]]]}");
    assert_int_equal(parse_bytes(&read, text, strlen(text)), 0);
    free(text);
    assert_string_equal(read.unit, "cores");
    assert_int_equal(read.total, 120);
    assert_int_equal(read.set_count, 10);
    assert_int_equal(read.set_crc, 0x01234567);
    assert_true(read.set_hash == UINT64_C(0x0123456789abcdef));
    assert_int_equal(read.count, COUNT(items));
    for (size_t i = 0; i < COUNT(items); i++) {
        assert_int_equal(read.items[i].item, items[i].item);
        assert_int_equal(read.items[i].class, items[i].class);
    }
    dv_load_report_clear(&read);
    report.count = 0;
    text = dv_load_report_print(&report);
    assert_string_equal(text, HEAD "[]}");
    assert_int_equal(parse_bytes(&read, text, strlen(text)), 0);
    assert_int_equal(read.count, 0);
    free(text);
    dv_load_report_clear(&read);
}

/* A text that is as long as it may be is whole, down to its last byte. */
TEST(test_longest) {
    enum { ITEMS = 100000 };
    static dv_item_class items[ITEMS];
    size_t longest = 0;
    for (uint32_t i = 0; i < ITEMS; i++) items[i] = (dv_item_class){i, 100};
    for (size_t bytes = 1; bytes <= DV_LOAD_UNIT_BYTES_MAX; bytes++) {
        dv_load_report report = some(items, ITEMS), read;
        memset(report.unit, 'u', bytes);
        report.unit[bytes] = '\0';
        report.set_count = ITEMS;
        char *text = dv_load_report_print(&report);
        assert_int_equal(parse_bytes(&read, text, strlen(text)), 0);
        assert_string_equal(read.unit, report.unit);
        if (strlen(text) > longest) longest = strlen(text);
        free(text);
        dv_load_report_clear(&read);
    }
    assert_int_equal(longest, DV_LOAD_REPORT_BYTES_MAX);
}

/* 10,000 items of one member in a million fit. Of more those of the least classes are left out. */
TEST(test_room) {
    for (size_t count = 10000; count <= 100000; count *= 10) {
        dv_item_class *items = calloc(count, sizeof *items);
        for (size_t i = 0; i < count; i++)
            items[i] = (dv_item_class){(uint32_t)(i * (1000000 / count) + i % 7 % (1000000 / count)), (uint8_t)(i % 9)};
        dv_load_report report = some(items, count), read;
        report.set_count = 1000000;
        char *text = dv_load_report_print(&report);
        assert_in_range(strlen(text), count == 10000 ? 20000 : DV_LOAD_REPORT_BYTES_MAX - 20, DV_LOAD_REPORT_BYTES_MAX);
        assert_int_equal(parse_bytes(&read, text, strlen(text)), 0);
        if (count == 10000) assert_int_equal(read.count, count);
        size_t least = 255, greatest_missing = 0, k = 0;
        for (size_t i = 0; i < count; i++) {
            bool there = k < read.count && read.items[k].item == items[i].item;
            if (there) assert_int_equal(read.items[k++].class, items[i].class);
            if (there && items[i].class < least) least = items[i].class;
            if (!there && items[i].class > greatest_missing) greatest_missing = items[i].class;
        }
        assert_int_equal(k, read.count);
        assert_true(greatest_missing <= least);
        dv_load_report_clear(&read);
        free(text);
        free(items);
    }
}

/* Fields that a later release adds are passed over, in any order. */
TEST(test_more_fields) {
    dv_load_report read;
    static const char text[] = "{\"v\":1,\"x\":[{}],\"classes\":[[3,[2]]],\"total\":0,\"unit\":\"a/s\"," SET "}";
    assert_int_equal(parse_bytes(&read, text, sizeof text - 1), 0);
    assert_int_equal(read.count, 1);
    dv_load_report_clear(&read);
}

/* A report of a later release is called so. */
TEST(test_later_release) {
    dv_load_report read;
    dv_plan_fault fault;
    static const char text[] = "{\"v\":2,\"classes\":[]}";
    assert_int_equal(dv_load_report_parse(&read, text, sizeof text - 1, &fault), DIVVY_EPROTO);
    assert_string_equal(fault.why, "is of a later release");
}

/* What is no report is refused, without a trace. */
TEST(test_broken) {
    static const char *const classes[] = {
        "[[100]]",
        "[[100,[]]]",
        "[[100,[1],2]]",
        "[[255,[1]]]",
        "[[-1,[1]]]",
        "[[100,[10]]]",
        "[[100,[5,5]]]",
        "[[100,[1,0]]]",
        "[[100,[1]],[99,[1]]]",
        "[[100,[1,-1]]]",
        "[[100,[1.5]]]",
        "[[1e2,[1]]]",
        "[100,[1]]",
        "{}",
        "[[100,[999999,1]]]",
        "[[100,[1]],]",
        "[[100,[\"1\"]]]",
        "[[100,[1000000]]]",
        "[[100,[1]]",
        "[[100,[1,999999,999999,999999]]]",
    };
    for (size_t i = 0; i < COUNT(classes); i++) {
        char text[300];
        snprintf(text, sizeof text, HEAD "%s}", classes[i]);
        assert_broken(text);
    }
    assert_broken("");
    assert_broken("[]");
    assert_broken("{}");
    assert_broken("{\"v\":2,\"unit\":\"cores\",\"total\":1," SET ",\"classes\":[]}");
    assert_broken("{\"v\":1,\"unit\":\"\",\"total\":1," SET ",\"classes\":[]}");
    assert_broken("{\"v\":1,\"unit\":\"two words\",\"total\":1," SET ",\"classes\":[]}");
    assert_broken("{\"v\":1,\"unit\":\"12345678901234567\",\"total\":1," SET ",\"classes\":[]}");
    assert_broken("{\"v\":1,\"unit\":\"cores\",\"total\":255," SET ",\"classes\":[]}");
    assert_broken("{\"v\":1,\"unit\":\"cores\",\"total\":1,\"classes\":[]}");
    assert_broken("{\"v\":1,\"unit\":\"cores\",\"unit\":\"cores\",\"total\":1," SET ",\"classes\":[]}");
    assert_broken(HEAD "[]} ");
    char *huge = malloc(DV_LOAD_REPORT_BYTES_MAX + 2);
    memset(huge, ' ', DV_LOAD_REPORT_BYTES_MAX + 1);
    huge[DV_LOAD_REPORT_BYTES_MAX + 1] = '\0';
    assert_broken(huge);
    free(huge);
}

/* A text that is cut anywhere, or has any byte replaced, is read safely. */
TEST(test_damaged) {
    static const char text[] = HEAD "[[130,[1]],[100,[0,4,5]],[0,[7]]]}";
    dv_load_report read;
    for (size_t bytes = 0; bytes < sizeof text - 1; bytes++)
        assert_int_equal(parse_bytes(&read, text, bytes), DIVVY_EPROTO);
    char other[sizeof text];
    for (size_t at = 0; at < sizeof text - 1; at++) {
        for (int byte = 0; byte < 256; byte++) {
            memcpy(other, text, sizeof text);
            other[at] = (char)byte;
            int error = parse_bytes(&read, other, sizeof text - 1);
            assert_true(error == 0 || error == DIVVY_EPROTO);
            dv_load_report_clear(&read);
        }
    }
}

/* An allocation that fails is told, and leaves nothing. */
TEST(test_no_memory) {
    static const char text[] = HEAD "[[130,[1]],[100,[0,4,5]],[0,[7]]]}";
    dv_item_class items[] = {{0, 100}, {1, 130}};
    dv_load_report report = some(items, COUNT(items)), read;
    for (long after = 0;; after++) {
        scarce_after = after;
        int error = dv_load_report_parse(&read, text, sizeof text - 1, NULL);
        scarce_after = -1;
        if (error == 0) break;
        assert_int_equal(error, DIVVY_ENOMEM);
        assert_null(read.items);
        assert_in_range(after, 0, 20);
    }
    dv_load_report_clear(&read);
    scarce_after = 0;
    assert_null(dv_load_report_print(&report));
    scarce_after = 1;
    assert_null(dv_load_report_print(&report));
    scarce_after = -1;
}
