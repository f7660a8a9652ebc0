/* What a command prints of the loads of items. SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "divvy/load_lines.h"
#include "lib/test.h"

static const char *names[] = {"a", "a b", "orders", "x ", "x"};
static dv_item_list asked = {names, 4};
static dv_load_lines lines;

static int tear_down(void **state) {
    (void)state;
    dv_load_lines_free(&lines);
    return 0;
}

/* Reads from memory of just that size, so that a reader beyond its end is found. */
static void read_bytes(const char *text, size_t bytes) {
    char *copy = malloc(bytes ? bytes : 1);
    memcpy(copy, text, bytes);
    dv_load_lines_free(&lines);
    assert_int_equal(dv_load_lines_read(&lines, &asked, copy, bytes), 0);
    free(copy);
}

static void read_text(const char *text) {
    read_bytes(text, strlen(text));
}

static double load_of(const char *name) {
    for (size_t i = 0; i < asked.count; i++) {
        if (strcmp(names[i], name) == 0) return lines.loads[i];
    }
    return NAN;
}

static size_t bad_count(void) {
    size_t count = 0;
    for (int kind = 0; kind < DV_LOAD_LINE_KINDS; kind++) count += lines.bad[kind].count;
    return count;
}

/* The last word is the number, the rest the item, which may have blanks. Tabs, a CR, and a last line without an end
 * are fine; the later of two lines counts. */
TEST_IN(test_lines, NULL, tear_down) {
    read_text("a 1\na b\t2.5\r\norders   3e2  \na 4\nx  7");
    assert_true(load_of("a") == 4);
    assert_true(load_of("a b") == 2.5);
    assert_true(load_of("orders") == 300);
    assert_true(load_of("x ") == 7);
    assert_int_equal(lines.missing, 0);
    assert_int_equal(bad_count(), 0);
}

/* Lines of other items, headings, empty lines and bytes that are no text are passed over. */
TEST_IN(test_others, NULL, tear_down) {
    static const char text[] = "Listing queues ...\nname messages\n\n \n5\n5 orders\nother -3\nother nan\n\0\0 7\n "
                               "orders 3\n\xff\xfe 1\norders\n";
    read_bytes(text, sizeof text - 1);
    assert_int_equal(bad_count(), 0);
    assert_int_equal(lines.missing, 4);
    assert_int_equal(lines.first_missing, 0);
    for (size_t i = 0; i < asked.count; i++) assert_true(lines.loads[i] == -1);
    read_text("");
    assert_int_equal(lines.missing, 4);
}

/* What is no number, negative, not finite or too long has its own kind, and the first of each is kept. */
TEST_IN(test_bad, NULL, tear_down) {
    static const struct {
        const char *text;
        dv_load_line_kind kind;
    } rows[] = {
        {"abc", DV_LOAD_LINE_NO_NUMBER},  {"1,5", DV_LOAD_LINE_NO_NUMBER},   {"1.2.3", DV_LOAD_LINE_NO_NUMBER},
        {"--1", DV_LOAD_LINE_NO_NUMBER},  {"1e", DV_LOAD_LINE_NO_NUMBER},    {"\v1", DV_LOAD_LINE_NO_NUMBER},
        {"5%", DV_LOAD_LINE_NO_NUMBER},   {"-3", DV_LOAD_LINE_NEGATIVE},     {"-1e-300", DV_LOAD_LINE_NEGATIVE},
        {"inf", DV_LOAD_LINE_INFINITE},   {"-inf", DV_LOAD_LINE_INFINITE},   {"nan", DV_LOAD_LINE_INFINITE},
        {"1e999", DV_LOAD_LINE_INFINITE}, {"NaN(7)", DV_LOAD_LINE_INFINITE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[64];
        snprintf(text, sizeof text, "orders %s\norders zz\n", rows[i].text);
        read_text(text);
        assert_true(lines.bad[rows[i].kind].count >= 1);
        assert_string_equal(lines.bad[rows[i].kind].number, rows[i].text);
        assert_int_equal(lines.bad[rows[i].kind].item, 2);
        assert_int_equal(bad_count(), 2);
        assert_true(load_of("orders") == -1);
        assert_int_equal(lines.missing, 3); /* It has a line. */
    }
}

/* A number has at most 64 bytes, and what is shown of a longer one no more. */
TEST_IN(test_long, NULL, tear_down) {
    char text[400] = "a ";
    memset(text + 2, '0', 300);
    text[302] = '1';
    read_text(text);
    assert_int_equal(lines.bad[DV_LOAD_LINE_LONG].count, 1);
    assert_int_equal(lines.bad[DV_LOAD_LINE_LONG].bytes, 301);
    assert_int_equal(strlen(lines.bad[DV_LOAD_LINE_LONG].number), DV_LOAD_NUMBER_BYTES);
    text[2 + DV_LOAD_NUMBER_BYTES] = '\0';
    text[1 + DV_LOAD_NUMBER_BYTES] = '9';
    read_text(text);
    assert_true(load_of("a") == 9);
}

/* A zero with a sign is no negative load. */
TEST_IN(test_zero, NULL, tear_down) {
    read_text("a -0\norders 0\n");
    assert_true(load_of("a") == 0 && !signbit(load_of("a")));
    assert_true(load_of("orders") == 0);
    assert_int_equal(bad_count(), 0);
}

/* A NUL byte in a number, or a name, is no end of the text. */
TEST_IN(test_nul, NULL, tear_down) {
    static const char text[] = "a 1\0002\norders\0 5\n";
    read_bytes(text, sizeof text - 1);
    assert_int_equal(lines.bad[DV_LOAD_LINE_NO_NUMBER].count, 1);
    assert_true(load_of("orders") == -1);
}
