/* Tests of plan/member_data.h. SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/scarce.h"
#include "lib/test.h"
#include "plan/member_data.h"
#include "plan/text.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Parses the given bytes. Sanitizers see a read beyond them. */
static dv_member_facts parse_bytes(const char *data, size_t bytes) {
    dv_member_facts facts;
    char *exact = malloc(bytes + (bytes == 0));
    assert_non_null(exact);
    if (bytes > 0) memcpy(exact, data, bytes);
    assert_true(dv_member_data_parse(exact, bytes, &facts));
    free(exact);
    return facts;
}

static dv_member_facts parse(const char *text) {
    return parse_bytes(text, strlen(text));
}

static void assert_facts(dv_member_facts facts, bool is_static, uint32_t weight, const char *zone, int64_t delay_ms) {
    assert_int_equal(facts.is_static, is_static);
    assert_int_equal(facts.weight, weight);
    assert_string_equal(facts.zone, zone);
    assert_int_equal(facts.rejoin_delay_ms, delay_ms);
    free(facts.zone);
}

static void assert_nonsense(dv_member_facts facts) {
    assert_facts(facts, false, DV_WEIGHT, "", 0);
}

static dv_member_facts with_zone(const char *zone) {
    return (dv_member_facts){
        .is_static = true, .weight = 250, .zone = (char *)(uintptr_t)zone, .rejoin_delay_ms = INT64_C(315360000000)};
}

/* --- writing ---------------------------------------------------------------------------------------------------- */

/* A member with nothing but defaults writes what members have always written, and in that order. */
TEST(test_print_defaults) {
    char *text = dv_member_data_print("w\"1", &(dv_member_facts){.weight = DV_WEIGHT, .zone = ""});
    assert_non_null(text);
    static const char begin[] = "{\"id\":\"w\\\"1\",\"host\":\"";
    assert_memory_equal(text, begin, sizeof begin - 1);
    const char *pid = strstr(text, "\",\"pid\":"), *since = strstr(text, ",\"since\":\"");
    assert_true(pid != NULL && since > pid);
    assert_string_equal(since + strlen(",\"since\":\"2026-01-31T12:00:00Z"), "\"}");
    free(text);
}

/* Printed facts are read again, each by itself and all of them, the largest too. */
TEST(test_round_trip) {
    char longest[DV_PLAN_ZONE_BYTES_MAX + 1];
    memset(longest, 'z', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    const dv_member_facts all[] = {
        with_zone("rack \"7\\\x01/\xc3\xa9"),
        with_zone(longest),
        {.is_static = true, .weight = DV_WEIGHT, .zone = ""},
        {.weight = 0, .zone = ""},
        {.weight = UINT32_MAX, .zone = ""},
        {.weight = DV_WEIGHT, .zone = "z"},
        {.weight = DV_WEIGHT, .zone = "", .rejoin_delay_ms = 1},
    };
    for (size_t n = 0; n < COUNT(all); n++) {
        char *text = dv_member_data_print("w", &all[n]);
        assert_non_null(text);
        assert_facts(parse(text), all[n].is_static, all[n].weight, all[n].zone, all[n].rejoin_delay_ms);
        free(text);
    }
}

/* --- reading ---------------------------------------------------------------------------------------------------- */

/* White space, other orders and fields that nobody knows are all right: another program may have written it. */
TEST(test_other_writers) {
    assert_facts(parse(" { \"zone\" : \"a\" , \"x\": [1, {\"weight\": 7}], \"weight\": 5e2, \"static\" : true }\n"),
                 true, 500, "a", 0);
    assert_nonsense(parse("{\"static\":false,\"id\":7}"));
    assert_nonsense(parse("worker-7")); /* kazoo's: the identifier itself */
}

/* A fact that is none is as if it were not there, and spoils no other. */
TEST(test_odd_facts) {
    static const char *const odd[] = {
        "\"static\":1",
        "\"static\":\"true\"",
        "\"static\":null",
        "\"weight\":-1",
        "\"weight\":4294967296",
        "\"weight\":1.5",
        "\"weight\":1e999",
        "\"weight\":\"5\"",
        "\"weight\":true",
        "\"zone\":7",
        "\"zone\":[\"a\"]",
        "\"zone\":\"\xff\"",
        "\"zone\":\"\xed\xa0\x80\"",
        "\"rejoin_delay_ms\":-1",
        "\"rejoin_delay_ms\":315360000001",
        "\"rejoin_delay_ms\":0.5",
        "\"rejoin_delay_ms\":\"9\"",
        "\"Static\":true",
    };
    for (size_t n = 0; n < COUNT(odd); n++) {
        char text[200];
        snprintf(text, sizeof text, "{%s}", odd[n]);
        assert_nonsense(parse(text));
    }
    assert_facts(parse("{\"static\":true,\"weight\":-1,\"zone\":7,\"rejoin_delay_ms\":30000}"), true, DV_WEIGHT, "",
                 30000);
}

/* One byte more than a plan can hold is no zone. */
TEST(test_long_zone) {
    char text[DV_PLAN_ZONE_BYTES_MAX + 40];
    memset(text, 'z', sizeof text);
    memcpy(text, "{\"zone\":\"", 9);
    strcpy(text + 9 + DV_PLAN_ZONE_BYTES_MAX + 1, "\"}");
    assert_nonsense(parse(text));
    strcpy(text + 9 + DV_PLAN_ZONE_BYTES_MAX, "\"}");
    dv_member_facts facts = parse(text);
    assert_int_equal(strlen(facts.zone), DV_PLAN_ZONE_BYTES_MAX);
    free(facts.zone);
}

/* Data that readers could take for different things say nothing at all. */
TEST(test_ambiguous) {
    assert_nonsense(parse("{\"static\":true,\"weight\":5,\"weight\":6}"));
    assert_nonsense(parse("{\"static\":true,\"static\":true}"));
    assert_nonsense(parse("{\"static\":true,\"zone\":\"a\\u0000b\"}"));
    assert_nonsense(parse_bytes("{\"static\":true}\0", 16));
    assert_nonsense(parse("[{\"static\":true}]"));
    assert_nonsense(parse("true"));
    assert_nonsense(parse(""));
}

/* Too long, or nested too deep, is nothing that a parser is given; also when strings pretend to close brackets. */
TEST(test_bounds) {
    char *text = malloc(DV_MEMBER_DATA_BYTES_MAX + 2);
    assert_non_null(text);
    memset(text, ' ', DV_MEMBER_DATA_BYTES_MAX + 1);
    memcpy(text, "{\"weight\":7}", 12);
    assert_facts(parse_bytes(text, DV_MEMBER_DATA_BYTES_MAX), false, 7, "", 0);
    assert_nonsense(parse_bytes(text, DV_MEMBER_DATA_BYTES_MAX + 1));
    free(text);
    assert_facts(parse("{\"weight\":7,\"x\":[[[[[[[]]]]]]]}"), false, 7, "", 0);
    assert_nonsense(parse("{\"weight\":7,\"x\":[[[[[[[[]]]]]]]]}"));
    assert_nonsense(parse("{\"weight\":7,\"x\":\"]]]]]]]]\",\"y\":[[[[[[[[]]]]]]]]}"));
    assert_facts(parse("{\"weight\":7,\"x\":\"\\\"[[[[[[[[[[\"}"), false, 7, "", 0);
}

/* Cut anywhere, and with any byte another, it is read within its bounds and becomes facts that a plan can hold. */
TEST(test_every_byte) {
    static const char good[] =
        "{\"id\":\"w\",\"static\":true,\"weight\":250,\"zone\":\"r\\u0041\xc3\xa9\",\"rejoin_delay_ms\":3e4}";
    const size_t bytes = sizeof good - 1;
    char other[sizeof good];
    for (size_t at = 0; at < bytes; at++) {
        assert_nonsense(parse_bytes(good, at));
        memcpy(other, good, sizeof good);
        for (int byte = 0; byte < 256; byte++) {
            other[at] = (char)byte;
            dv_member_facts facts = parse_bytes(other, bytes);
            assert_true(strlen(facts.zone) <= DV_PLAN_ZONE_BYTES_MAX);
            assert_true(facts.rejoin_delay_ms >= 0 && facts.rejoin_delay_ms <= DV_PLAN_INTEGER_MAX);
            free(facts.zone);
        }
    }
}

/* --- memory ----------------------------------------------------------------------------------------------------- */

/* When an allocation fails it says so, and nothing is left behind. */
TEST(test_scarce) {
    static const char text[] = "{\"zone\":\"a\"}";
    dv_member_facts facts;
    int failures = 0;
    for (bool read = false; !read; failures += !read) {
        scarce_after = failures;
        read = dv_member_data_parse(text, sizeof text - 1, &facts);
        scarce_after = -1;
    }
    assert_int_equal(failures, 2); /* the copy to be parsed, and the zone */
    free(facts.zone);
    scarce_after = 0;
    assert_null(dv_member_data_print("w", &(dv_member_facts){.weight = DV_WEIGHT, .zone = ""}));
    scarce_after = -1;
}
