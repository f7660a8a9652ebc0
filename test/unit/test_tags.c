/* Tests of plan/tags.h, and of tags and caps in a member's data. SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/test.h"
#include "plan/member_data.h"

/* The same tags are one text, however a user writes them. */
TEST(test_one_text) {
    static const char *const same[] = {"gpu,ssd,x", "x,ssd,gpu", "ssd,gpu,ssd,x,x", "gpu,x,ssd"};
    char tags[DV_TAGS_BYTES];
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        assert_null(dv_tags_make(tags, same[i]));
        assert_string_equal(tags, "gpu,ssd,x");
    }
    assert_null(dv_tags_make(tags, "ab,a,a.b,A"));
    assert_string_equal(tags, "A,a,a.b,ab");
    assert_null(dv_tags_make(tags, NULL));
    assert_string_equal(tags, "");
}

/* The largest text fits, and one tag more, one byte more or another character is refused. */
TEST(test_bounds) {
    char text[DV_TAGS_BYTES + 80] = "", tags[DV_TAGS_BYTES], tag[DV_TAG_BYTES_MAX + 2];
    memset(tag, 'z', sizeof tag);
    for (size_t i = 0; i < DV_TAGS_MAX; i++) {
        tag[0] = (char)('a' + i);
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%.*s", i ? "," : "", DV_TAG_BYTES_MAX, tag);
    }
    assert_null(dv_tags_make(tags, text));
    assert_int_equal(strlen(tags), DV_TAGS_BYTES - 1);
    assert_string_equal(tags, text);
    strcat(text, ",a0");
    assert_non_null(dv_tags_make(tags, text));
    tag[DV_TAG_BYTES_MAX + 1] = '\0';
    assert_non_null(dv_tags_make(tags, tag));
    static const char *const bad[] = {"", ",", "a,", ",a", "a b", "a/b", "a\n", "\xc3\xa9", "a\"b"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) assert_non_null(dv_tags_make(tags, bad[i]));
}

static dv_member_facts parse(const char *data) {
    dv_member_facts facts;
    assert_true(dv_member_data_parse(data, strlen(data), &facts));
    free(facts.zone);
    return facts;
}

/* Tags and cap are read as they were written; a member without them writes neither. */
TEST(test_round_trip) {
    dv_member_facts facts = {.weight = DV_WEIGHT, .zone = (char *)"", .tags = "gpu,ssd", .cap = 100};
    char *text = dv_member_data_print("w", &facts);
    assert_non_null(strstr(text, ",\"tags\":[\"gpu\",\"ssd\"],\"cap\":100"));
    dv_member_facts read = parse(text);
    assert_string_equal(read.tags, "gpu,ssd");
    assert_int_equal(read.cap, 100);
    free(text);
    facts.tags[0] = '\0';
    facts.cap = 0;
    text = dv_member_data_print("w", &facts);
    assert_null(strstr(text, "tags"));
    assert_null(strstr(text, "cap"));
    free(text);
}

/* Tags that are not all good count as none, and spoil nothing else. Doubles and another order are all right. */
TEST(test_odd_tags) {
    static const char *const none[] = {"[\"a\",7]", "[7,\"a\"]", "[\"a\",7,\"b\"]", "[\"a b\"]", "[\"\"]",
                                       "\"a\"",     "{}",        "[[\"a\"]]",       "[]"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        char data[100];
        snprintf(data, sizeof data, "{\"tags\":%s,\"cap\":5}", none[i]);
        dv_member_facts facts = parse(data);
        assert_string_equal(facts.tags, "");
        assert_int_equal(facts.cap, 5);
    }
    assert_string_equal(parse("{\"tags\":[\"b\",\"a\",\"b\"]}").tags, "a,b");
    assert_int_equal(parse("{\"cap\":-1}").cap, 0);
    assert_int_equal(parse("{\"cap\":4294967296}").cap, 0);
    assert_int_equal(parse("{\"cap\":\"5\"}").cap, 0);
}
