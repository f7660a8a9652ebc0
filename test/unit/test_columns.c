/* Pages for people fit a screen, whatever names are in them. SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "divvy/columns.h"
#include "divvy/table.h"
#include "lib/test.h"

#define WIDE "\xe5\xb7\xa5" /* U+5DE5, of two columns */
#define WIDE_5 WIDE WIDE WIDE WIDE WIDE

static void assert_shortened(const char *text, size_t columns, const char *expected) {
    char *got = dv_text_shorten(text, columns);
    assert_string_equal(got, expected);
    assert_true(dv_text_width(got) <= columns);
    free(got);
}

/* A name that fits stays; of a longer one both ends are shown, and more of the end. */
TEST(test_shorten) {
    assert_shortened("worker-1", 8, "worker-1");
    assert_shortened("queue-worker-7c9b4d5f8-x0000", 16, "queu...5f8-x0000");
    assert_shortened("", 0, "");
    assert_shortened("abcdef", 3, "...");
    assert_shortened("abcdef", 0, "");
}

/* No character is cut in two, and one of two columns counts as two: where only one is left, it stays empty. */
TEST(test_shorten_wide) {
    assert_int_equal(dv_text_width(WIDE_5 "x"), 11);
    assert_shortened(WIDE_5, 10, WIDE_5);
    assert_shortened(WIDE_5, 9, WIDE "..." WIDE WIDE);
    assert_shortened(WIDE_5, 8, "..." WIDE WIDE);
    for (size_t columns = 0; columns < 12; columns++) {
        char *got = dv_text_shorten("a" WIDE_5 "b", columns);
        assert_true(dv_text_width(got) <= columns);
        free(got);
    }
}

/* What is said behind a name stays whole where a name has room before it, else it is shortened with it. */
TEST(test_remarks) {
    assert_shortened("queue-worker-x0000 (not in the party)", 30, "qu...-x0000 (not in the party)");
    assert_shortened("queue-worker-7c9b4d5f8-x0000 +7", 16, "que...8-x0000 +7");
    assert_shortened("queue-worker-x0000 (died, 40ms) +12", 30, "que...r-x0000 (died, 40ms) +12");
    assert_shortened("queue-worker-x0000 (not in the party)", 20, "queue...n the party)");
}

/* What looks like a remark and has no name before it, or no blank, is a part of the name. */
TEST(test_no_remarks) {
    assert_shortened("0123456789", 6, "0...89");
    assert_shortened("abcdefghij+7", 8, "a...ij+7");
    assert_shortened("abcdefghijk)", 8, "a...ijk)");
    assert_shortened(" (abcdefghij)", 8, " ...hij)");
    assert_shortened(" +77777777", 8, " ...7777");
}

/* A sentence is cut at its end, and never in a character. */
TEST(test_clip) {
    static const char *const expected[] = {"", ".", "..", "...", "a...", "a...", "a" WIDE "..."};
    for (size_t columns = 0; columns < sizeof expected / sizeof *expected; columns++) {
        char *got = dv_text_clip("a" WIDE_5, columns);
        assert_string_equal(got, expected[columns]);
        free(got);
    }
    char *whole = dv_text_clip("a" WIDE_5, 11);
    assert_string_equal(whole, "a" WIDE_5);
    free(whole);
}

/* Each block of wide characters begins and ends where it should. */
TEST(test_wide_blocks) {
    static const struct {
        const char *first, *last;   /* of two columns */
        const char *before, *after; /* of one */
    } blocks[] = {
        {"\xe1\x84\x80", "\xe1\x85\x9f", "\xe1\x83\xbf", "\xe1\x85\xa0"},                 /* U+1100 to U+115F */
        {"\xe2\xba\x80", "\xea\x93\x8f", "\xe2\xb9\xbf", "\xea\x93\x90"},                 /* U+2E80 to U+A4CF */
        {"\xea\xb0\x80", "\xed\x9e\xa3", "\xea\xaf\xbf", "\xed\x9e\xa4"},                 /* U+AC00 to U+D7A3 */
        {"\xef\xa4\x80", "\xef\xab\xbf", "\xef\xa3\xbf", "\xef\xac\x80"},                 /* U+F900 to U+FAFF */
        {"\xef\xb8\xb0", "\xef\xb9\xaf", "\xef\xb8\xaf", "\xef\xb9\xb0"},                 /* U+FE30 to U+FE6F */
        {"\xef\xbc\x80", "\xef\xbd\xa0", "\xef\xbb\xbf", "\xef\xbd\xa1"},                 /* U+FF00 to U+FF60 */
        {"\xf0\x9f\x8c\x80", "\xf0\x9f\xab\xbf", "\xf0\x9f\x8b\xbf", "\xf0\x9f\xac\x80"}, /* U+1F300 to U+1FAFF */
        {"\xf0\xa0\x80\x80", "\xf0\xbf\xbf\xbd", "\xf0\x9e\xbf\xbd", "\xf4\x80\x80\x80"}, /* from U+20000 */
    };
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        assert_int_equal(dv_text_width(blocks[i].first), 2);
        assert_int_equal(dv_text_width(blocks[i].last), 2);
        assert_int_equal(dv_text_width(blocks[i].before), 1);
        assert_int_equal(dv_text_width(blocks[i].after), 1);
    }
}

static char *wrapped(const char *text, size_t used, size_t indent, size_t columns) {
    char *out = NULL;
    size_t bytes = 0;
    FILE *to = open_memstream(&out, &bytes);
    assert_non_null(to);
    dv_text_wrap(text, used, indent, columns, to);
    fclose(to);
    return out;
}

static void assert_wrapped(const char *text, size_t used, size_t indent, size_t columns, const char *expected) {
    char *out = wrapped(text, used, indent, columns);
    assert_string_equal(out, expected);
    free(out);
}

/* A line ends between words, and a word that no line holds is continued on the next: nothing is lost. */
TEST(test_wrap) {
    assert_wrapped("one two three", 0, 2, 7, "one two\n  three\n");
    assert_wrapped("one two three", 4, 4, 11, "one two\n    three\n");
    assert_wrapped("a 0123456789 b", 0, 1, 6, "a\n 01234\n 56789\n b\n");
    assert_wrapped(WIDE_5, 0, 1, 6, WIDE WIDE WIDE "\n " WIDE WIDE "\n");
    assert_wrapped("one two three", 0, 2, DV_COLUMNS_ALL, "one two three\n");
    assert_wrapped("", 0, 2, 10, "\n");
    assert_wrapped(WIDE, 1, 1, 2, WIDE "\n"); /* hopeless, and ends */
}

/* ---- tables ---- */

static const dv_column columns[] = {
    {.head = "MEMBER"}, {.head = "KIND"}, {.head = "SINCE"}, {.head = "ITEMS", .right = true}, {.head = "STATE"}};
static const dv_fit fits[] = {{.name = true}, {.dull = "divvy"}, {.hide = 1}, {0}, {.dull = "-"}};
enum { COLUMNS = sizeof columns / sizeof *columns };

static char *printed(const char *const rows[][COLUMNS], size_t count, bool marks, size_t width, bool *whole) {
    char *out = NULL;
    size_t bytes = 0;
    dv_table *table = dv_table_new(columns, COLUMNS);
    FILE *to = open_memstream(&out, &bytes);
    assert_true(table && to);
    for (size_t i = 0; i < count; i++) assert_int_equal(dv_table_add(table, rows[i][0], rows[i]), 0);
    *whole = dv_table_print_within(table, fits, marks, width, to);
    fclose(to);
    dv_table_free(table);
    return out;
}

static void assert_printed(const char *const rows[][COLUMNS], size_t count, size_t width, bool is_whole,
                           const char *expected) {
    bool whole;
    char *out = printed(rows, count, false, width, &whole);
    assert_string_equal(out, expected);
    assert_int_equal(whole, is_whole);
    free(out);
}

/* A table that fits is printed whole. Where it is too wide, columns that say nothing go first, then names are shortened
 * a little, then further columns go, then names are shortened as far as it takes. */
TEST(test_table) {
    static const char *const rows[][COLUMNS] = {{"queue-worker-7c9b4d5f8-x0000", "divvy", "2026-11-26", "12", ""},
                                                {"b", "divvy", "2026-11-27", "3", ""}};
    const char *whole = "MEMBER                        KIND   SINCE       ITEMS  STATE\n"
                        "queue-worker-7c9b4d5f8-x0000  divvy  2026-11-26     12  -\n"
                        "b                             divvy  2026-11-27      3  -\n";
    assert_printed(rows, 2, DV_COLUMNS_ALL, true, whole);
    assert_printed(rows, 2, 61, true, whole);
    assert_printed(rows, 2, 60, false,
                   "MEMBER                        SINCE       ITEMS  STATE\n"
                   "queue-worker-7c9b4d5f8-x0000  2026-11-26     12  -\n"
                   "b                             2026-11-27      3  -\n");
    assert_printed(rows, 2, 40, false,
                   "MEMBER                 SINCE       ITEMS\n"
                   "queue-...b4d5f8-x0000  2026-11-26     12\n"
                   "b                      2026-11-27      3\n");
    assert_printed(rows, 2, 30, false,
                   "MEMBER                   ITEMS\n"
                   "queue-...c9b4d5f8-x0000     12\n"
                   "b                            3\n");
    assert_printed(rows, 2, 17, false,
                   "MEMBER      ITEMS\n"
                   "qu...x0000     12\n"
                   "b               3\n");
}

/* A column that is not the same everywhere is not dull, and stays. */
TEST(test_table_not_dull) {
    static const char *const rows[][COLUMNS] = {{"a", "divvy", "2026-11-26", "12", "drained"},
                                                {"b", "kazoo", "2026-11-27", "3", ""}};
    assert_printed(rows, 2, 30, false,
                   "MEMBER  KIND   ITEMS  STATE\n"
                   "a       divvy     12  drained\n"
                   "b       kazoo      3  -\n");
}

/* Whatever is in it, no line is wider than asked for; with marks in front, too. */
TEST(test_table_never_wider) {
    static const char *const rows[][COLUMNS] = {
        {WIDE_5 WIDE_5 WIDE_5 WIDE_5 "1", "kazoo", "2026-11-26T00:00:00Z", "123456789012", "absent, 10000 kept for it"},
        {"\x1b\x1b\x1b\x1b\x1b\x1b\x1b\x1b", "divvy", "", "3", WIDE_5 WIDE_5 WIDE_5}};
    for (size_t width = 30; width < 120; width++) {
        for (int marks = 0; marks < 2; marks++) {
            bool whole;
            char *out = printed(rows, 2, marks, width, &whole), *rest = out;
            for (char *line; (line = strsep(&rest, "\n"));) assert_true(dv_text_width(line) <= width);
            free(out);
        }
    }
}

/* The width is that of --wide, of $COLUMNS, or 80; nonsense is 80, and a screen for no table is one of 60. */
TEST(test_output) {
    assert_int_equal(unsetenv("COLUMNS"), 0);
    assert_int_equal(dv_columns_of_output(1), DV_COLUMNS_ALL);
    static const struct {
        const char *text;
        size_t columns;
    } told[] = {{"120", 120}, {"20", 60}, {"-3", 80}, {"x", 80}, {"", 80}, {"99999999999999999999", 80}};
    fflush(stdout); /* it may be a terminal */
    int kept = dup(STDOUT_FILENO), nowhere = open("/dev/null", O_WRONLY);
    assert_true(kept >= 0 && dup2(nowhere, STDOUT_FILENO) >= 0);
    size_t seen[1 + sizeof told / sizeof *told] = {dv_columns_of_output(0)};
    for (size_t i = 0; i < sizeof told / sizeof *told; i++) {
        assert_int_equal(setenv("COLUMNS", told[i].text, 1), 0);
        seen[i + 1] = dv_columns_of_output(0);
    }
    assert_true(dup2(kept, STDOUT_FILENO) >= 0 && close(kept) == 0 && close(nowhere) == 0);
    assert_int_equal(seen[0], DV_COLUMNS);
    for (size_t i = 0; i < sizeof told / sizeof *told; i++) assert_int_equal(seen[i + 1], told[i].columns);
}
