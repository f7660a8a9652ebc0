/* Conditions of plan and recipes that MC/DC (test/mcdc) has found to decide nothing in any other test.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/test.h"
#include "plan/member_data.h"
#include "plan/member_name.h"
#include "plan/text.h"
#include "recipe/record.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Two members of a plan are equal only where each fact of them is. */
TEST(test_member_equal) {
    char key[] = "m", zone[] = "z", leaving[] = "l", tags[] = "t", other[] = "o";
    const dv_plan_member base = {.slot = 1,
                                 .is_static = true,
                                 .key = key,
                                 .weight = 5,
                                 .zone = zone,
                                 .leaving = leaving,
                                 .rejoin_delay_ms = 7,
                                 .says_configured = true,
                                 .configured = 5,
                                 .tags = tags,
                                 .cap = 9};
    dv_plan_member others[12];
    for (size_t i = 0; i < COUNT(others); i++) others[i] = base;
    others[0].slot = 2;
    others[1].is_static = false;
    others[2].key = other;
    others[3].weight = 6;
    others[4].zone = other;
    others[5].rejoin_delay_ms = 8;
    others[6].absent = 1;
    others[7].leaving = other;
    others[8].says_configured = false;
    others[9].configured = 6;
    others[10].tags = other;
    others[11].cap = 0;
    assert_true(
        dv_plan_member_equal(&base, &(dv_plan_member){base.slot, true, key, 5, zone, 7, 0, leaving, true, 5, tags, 9}));
    for (size_t i = 0; i < COUNT(others); i++) assert_false(dv_plan_member_equal(&base, &others[i]));
}

static dv_member parsed(const char *tag, char node[64]) {
    snprintf(node, 64, "0123,a=2,%s-x", tag);
    dv_member member = dv_member_parse(node);
    assert_int_equal(member.kind, DV_DIVVY);
    return member;
}

/* P2: a number is decimal, without a zero before it, and in its bounds; an order is one letter. */
TEST(test_name_tags) {
    static const struct {
        const char *tag;
        int64_t max_moves;
    } numbers[] = {{"m=0", 0},
                   {"m=7", 7},
                   {"m=10", 10},
                   {"m=00", -1},
                   {"m=07", -1},
                   {"m=7x", -1},
                   {"m=4294967295", 4294967295},
                   {"m=4294967296", -1},
                   {"mm=7", -1},
                   {"n=7", -1}};
    char node[64];
    for (size_t i = 0; i < COUNT(numbers); i++)
        assert_int_equal(parsed(numbers[i].tag, node).max_moves, numbers[i].max_moves);
    assert_true(parsed("o=n", node).numeric);
    assert_false(parsed("o=b", node).numeric);
    assert_false(parsed("o=nn", node).numeric);
    assert_true(parsed("s=0000000a", node).has_set);
    assert_false(parsed("s=0000000g", node).has_set);
    assert_false(parsed("s=a", node).has_set);
}

static int64_t first_of(const char *value) {
    char text[80];
    dv_member_facts facts;
    snprintf(text, sizeof text, "{\"first_czxid\":%s}", value);
    assert_true(dv_member_data_parse(text, strlen(text), &facts));
    free(facts.zone);
    return facts.first_czxid;
}

/* A node's first zxid is 16 hexadecimal digits, and not negative; anything else is none. */
TEST(test_first_czxid) {
    assert_true(first_of("\"00000000000000ff\"") == 0xff);
    assert_true(first_of("\"7fffffffffffffff\"") == INT64_MAX);
    static const char *const none[] = {"255", "\"ff\"", "\"00000000000000fg\"", "\"8000000000000000\"", "null"};
    for (size_t i = 0; i < COUNT(none); i++) assert_true(first_of(none[i]) == 0);
}

/* E11: what repr() of Python writes of bytes is undone, and any other text stays. */
TEST(test_python_bytes) {
    static const char *const texts[][2] = {
        {"b'w'", "w"},       {"b\"w's\"", "w's"},  {"b''", ""},
        {"b'", "b'"},        {"c'w'", "c'w'"},     {"bawa", "bawa"},
        {"b'w\"", "b'w\""},  {"b'a\\nb'", "a\nb"}, {"b'a\\\\b'", "a\\b"},
        {"b'a\\'b'", "a'b"}, {"b'\\x41'", "A"},    {"b'\\xc3\\xa9'", "\xc3\xa9"},
        {"b'\\x4'", "x4"},   {"b'\\x4g'", "x4g"},  {"b'\\x4`'", "x4`"},
        {"b'\\x4F'", "O"},   {"b'\\xg4'", "xg4"},  {"b'\\x00'", "x00"},
        {"b'\\x0a'", "\n"},  {"b'a\\'", "a\\"},    {"b'\\t\\r\\q'", "\t\rq"},
    };
    for (size_t i = 0; i < COUNT(texts); i++) {
        dv_record record;
        assert_int_equal(dv_record_parse(texts[i][0], strlen(texts[i][0]), false, &record), DV_RECORD_GOOD);
        assert_string_equal(record.identifier, texts[i][1]);
        dv_record_free(&record);
    }
}
