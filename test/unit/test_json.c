/* Tests of lib/base/json.h: it tells texts that cJSON refuses from those that an allocation failed for.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "lib/seed.h"
#include "lib/test.h"
#include "recipe/record.h"
#include "registry/entry.h"
#include <cjson/cJSON.h>

static bool is_valid(const char *text) {
    return dv_json_is_valid(text, strlen(text));
}

/* Values of each kind, alone and inside one another, with space wherever it may be. */
TEST(test_valid) {
    static const char *const texts[] = {
        "{}",
        "[]",
        " [ ] ",
        "0",
        "-0",
        "10",
        "-1.5e+10",
        "1E-2",
        "true",
        "false",
        "null",
        "\"\"",
        "\"a\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e4\"",
        "\"\\ud83d\\ude00\"",
        "{\"a\":1}",
        "{\"a\":{\"b\":[1,[2],{}]},\"c\":null}",
        "\t{ \"a\" : [ 1 , 2 ] , \"b\" : \"x\" }\n",
        "[[[[]]]]",
        "\"\xc3\xa4\"",
        "[1,2,3]",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (!is_valid(texts[i])) fail_msg("refused: %s", texts[i]);
    }
}

/* A text that is no JSON is refused, among them texts that break off at any byte. */
TEST(test_invalid) {
    static const char *const texts[] = {
        "",
        " ",
        "{",
        "}",
        "[",
        "]",
        "[1",
        "[1,",
        "[1,]",
        "[,1]",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{a:1}",
        "{\"a\" 1}",
        "01",
        "-",
        "1.",
        ".5",
        "1e",
        "1e+",
        "+1",
        "tru",
        "nul",
        "\"",
        "\"\\\"",
        "\"\\x\"",
        "\"\\u12g4\"",
        "\"\\ud800\"",
        "\"\\udc00\"",
        "\"\\ud800\\u0041\"",
        "\"a\nb\"",
        "1 2",
        "{} {}",
        "[1}",
        "{\"a\":1]",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (is_valid(texts[i])) fail_msg("taken: %s", texts[i]);
    }
    static const char whole[] = "{\"a\":[1.5e3,true,\"\\ud83d\\ude00\"],\"b\":{}}";
    for (size_t bytes = 0; bytes < strlen(whole); bytes++) assert_false(dv_json_is_valid(whole, bytes));
    assert_true(is_valid(whole));
}

/* Nesting of 64 is the most, and a number of 60 characters. */
TEST(test_bounds) {
    char text[200];
    for (int depth = 63; depth <= 65; depth++) {
        memset(text, '[', (size_t)depth);
        memset(text + depth, ']', (size_t)depth);
        assert_int_equal(dv_json_is_valid(text, 2 * (size_t)depth), depth <= 64);
    }
    for (int digits = 59; digits <= 61; digits++) {
        memset(text, '7', (size_t)digits);
        assert_int_equal(dv_json_is_valid(text, (size_t)digits), digits <= 60);
    }
}

/* A text that it takes is one that cJSON takes: else somebody else's mistake would count as want of memory, and be
 * tried for ever. */
TEST(test_stricter_than_cjson) {
    static const char alphabet[] = "{}[]\"\",:::0123-+.eEtruefalsnl\\u0aD8 \n\x01\xc3\xa4";
    static const char *const pieces[] = {"{\"a\":", "[1,", "true", "null", "\"\\ud83d\\ude00\"",
                                         "1e5",     "}",   "]",    ",",    "\"k\":"};
    unsigned seed = (unsigned)dv_test_seed("unit_json");
    size_t valid = 0;
    for (int i = 0; i < 200000; i++) {
        char text[160] = "";
        size_t bytes = 0;
        int parts = rand_r(&seed) % 10;
        for (int p = 0; p < parts; p++) {
            const char *piece = pieces[(size_t)rand_r(&seed) % (sizeof pieces / sizeof *pieces)];
            if (rand_r(&seed) % 4) bytes += (size_t)snprintf(text + bytes, 16, "%s", piece);
            else text[bytes++] = alphabet[(size_t)rand_r(&seed) % (sizeof alphabet - 1)];
        }
        text[bytes] = '\0';
        if (!dv_json_is_valid(text, bytes)) continue;
        valid++;
        cJSON *json = cJSON_ParseWithLengthOpts(text, bytes + 1, NULL, 1);
        if (!json) fail_msg("cJSON refuses: %s", text);
        cJSON_Delete(json);
    }
    assert_true(valid > 500);
}

static size_t left; /* so many allocations of cJSON's succeed */

static void *scarce_malloc(size_t bytes) {
    return left > 0 ? left--, malloc(bytes) : NULL;
}

/* A record and an entry for which cJSON has no memory are no bad ones; those that are bad stay so. */
TEST(test_out_of_memory) {
    static const char good[] = "{\"id\":\"a\",\"role\":\"r\",\"ttl\":1,\"load\":1}", bad[] = "{\"id\":\"a\"";
    dv_record record;
    dv_entry *entry;
    const char *reason;
    dv_stat stat = {.version = 0};
    cJSON_InitHooks(&(cJSON_Hooks){.malloc_fn = scarce_malloc, .free_fn = free});
    for (size_t n = 0; n < 3; n++) {
        left = n;
        assert_int_equal(dv_record_parse(good, strlen(good), true, &record), DV_RECORD_OUT_OF_MEMORY);
        left = n;
        assert_int_equal(dv_entry_parse(&entry, "r", "a", good, strlen(good), &stat, &reason), DIVVY_ENOMEM);
    }
    left = 1;
    assert_int_equal(dv_record_parse(bad, strlen(bad), true, &record), DV_RECORD_BAD);
    left = 1;
    assert_int_equal(dv_entry_parse(&entry, "r", "a", bad, strlen(bad), &stat, &reason), DIVVY_EPROTO);
    cJSON_InitHooks(NULL);
    assert_int_equal(dv_entry_parse(&entry, "r", "a", good, strlen(good), &stat, &reason), 0);
    dv_entry_free(entry);
}
