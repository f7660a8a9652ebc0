/* Tests of znode/path.h. SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "divvy/error.h"
#include "lib/seed.h"
#include "lib/test.h"
#include "znode/path.h"

enum { NAME_BYTES_MAX = 400, NODE_BYTES_MAX = 3 * NAME_BYTES_MAX };

/* Bytes that mean something to the codec: escapes, separators, borders of the refused ranges, heads and tails of well
 * and ill formed UTF-8. */
static const unsigned char nasty[] = {
    '%',  '/',  '.',  '2',  '5',  'F',  'f',  'a',  'g',  'G',  0x01, 0x1f, 0x20, 0x7e, 0x7f, 0x80, 0x8f,
    0x90, 0x9f, 0xa0, 0xa9, 0xbf, 0xc0, 0xc2, 0xc3, 0xe0, 0xed, 0xee, 0xef, 0xf0, 0xf4, 0xf5, 0xfe, 0xff,
};

static uint64_t next_random(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* UTF-8 of a code point, without any regard for whether it may be written: surrogates too. */
static void write_code_point(uint32_t code_point, char out[5]) {
    unsigned char *at = (unsigned char *)out;
    if (code_point < 0x80) {
        *at++ = (unsigned char)code_point;
    } else if (code_point < 0x800) {
        *at++ = (unsigned char)(0xc0 | code_point >> 6);
        *at++ = (unsigned char)(0x80 | (code_point & 0x3f));
    } else if (code_point < 0x10000) {
        *at++ = (unsigned char)(0xe0 | code_point >> 12);
        *at++ = (unsigned char)(0x80 | (code_point >> 6 & 0x3f));
        *at++ = (unsigned char)(0x80 | (code_point & 0x3f));
    } else {
        *at++ = (unsigned char)(0xf0 | code_point >> 18);
        *at++ = (unsigned char)(0x80 | (code_point >> 12 & 0x3f));
        *at++ = (unsigned char)(0x80 | (code_point >> 6 & 0x3f));
        *at++ = (unsigned char)(0x80 | (code_point & 0x3f));
    }
    *at = 0;
}

/* The name comes back from its node; the node is one component that the server takes; plain is said of exactly the
 * names that stay as they are. */
static void assert_round_trip(const char *name) {
    char path[1 + NODE_BYTES_MAX + 1] = "/";
    char *node = path + 1;
    char back[NAME_BYTES_MAX + 1];
    size_t node_bytes = dv_name_encode(name, node, NODE_BYTES_MAX + 1);
    assert_int_equal(node_bytes, strlen(node));
    assert_int_equal(dv_name_decode(node, back, sizeof back), strlen(name));
    assert_string_equal(back, name);
    assert_null(strchr(node, '/'));
    if (name[0] != '\0') assert_int_equal(dv_path_check(path, NULL), 0);
    assert_int_equal(dv_name_is_plain(name), strcmp(name, node) == 0);
}

/* Every name of up to three nasty bytes round-trips, and its node is a component that the server takes. */
TEST(test_round_trip_of_all_short_names) {
    assert_round_trip("");
    for (size_t a = 0; a < sizeof nasty; a++) {
        for (size_t b = 0; b <= sizeof nasty; b++) {
            for (size_t c = 0; c <= sizeof nasty; c++) {
                char name[4] = {(char)nasty[a]};
                if (b < sizeof nasty) name[1] = (char)nasty[b];
                if (b < sizeof nasty && c < sizeof nasty) name[2] = (char)nasty[c];
                assert_round_trip(name);
            }
        }
    }
}

/* Every name of up to six bytes out of those that escapes consist of round-trips: no two of them ever run together. */
TEST(test_round_trip_of_all_names_made_of_escapes) {
    static const char bytes[] = {'%', '2', '5', 'F', '/', '.'};
    for (unsigned length = 1, total = 6; length <= 6; length++, total *= 6) {
        for (unsigned number = 0; number < total; number++) {
            char name[7] = {0};
            unsigned rest = number;
            for (unsigned i = 0; i < length; i++, rest /= 6) name[i] = bytes[rest % 6];
            assert_round_trip(name);
        }
    }
}

/* Long random names, half of them of nasty bytes only, round-trip too. */
TEST(test_round_trip_of_random_long_names) {
    uint64_t random = dv_test_seed(program_invocation_name);
    for (int run = 0; run < 20000; run++) {
        char name[NAME_BYTES_MAX + 1];
        size_t bytes = next_random(&random) % NAME_BYTES_MAX;
        for (size_t i = 0; i < bytes; i++) {
            uint64_t number = next_random(&random);
            name[i] = (char)(run % 2 == 0 ? nasty[number % sizeof nasty] : 1 + number % 255);
        }
        name[bytes] = '\0';
        assert_round_trip(name);
    }
}

static const struct {
    const char *name;
    const char *node;
} golden[] = {
    /* Names of kazoo's users stay as they are. */
    {"", ""},
    {"tenant:42", "tenant:42"},
    {"a b", "a b"},
    {"50%", "50%"},
    {"\xc3\xa9", "\xc3\xa9"},
    {"...", "..."},
    {".a", ".a"},
    {"a..", "a.."},
    {" ", " "},
    {"~", "~"},
    {"\xc2\xa0", "\xc2\xa0"},         /* U+00A0, the first past the controls */
    {"\xed\x9f\xbf", "\xed\x9f\xbf"}, /* U+D7FF, the last before the surrogates */
    {"\xef\xa4\x80", "\xef\xa4\x80"}, /* U+F900, the first past the private area */
    {"\xef\xbf\xaf", "\xef\xbf\xaf"}, /* U+FFEF, the last before the specials */
    /* The percent sign is escaped only where decoding would mistake it. */
    {"%", "%"},
    {"%%", "%%"},
    {"%2", "%2"},
    {"%g0", "%g0"},
    {"%0g", "%0g"},
    {"%%%", "%%%"},
    {"50%25", "50%2525"},
    {"%2f", "%252f"},
    {"%2F", "%252F"},
    {"%aB", "%25aB"},
    {"%00", "%2500"},
    {"%%25", "%%2525"},
    {"%/", "%%2F"},
    {"%2/", "%2%2F"},
    {"%/2", "%%2F2"},
    /* The separator, and the two names that mean a direction. */
    {"/", "%2F"},
    {"a/b", "a%2Fb"},
    {"../..", "..%2F.."},
    {".", "%2E"},
    {"..", "%2E%2E"},
    /* Characters that the server refuses: each of their bytes is escaped. */
    {"\x01", "%01"},
    {"a\nb", "a%0Ab"},
    {"\x1f", "%1F"},
    {"\x7f", "%7F"},
    {"\xc2\x80", "%C2%80"},
    {"\xc2\x9f", "%C2%9F"},
    {"\xee\x80\x80", "%EE%80%80"}, /* U+E000 */
    {"\xef\xa3\xbf", "%EF%A3%BF"}, /* U+F8FF */
    {"\xef\xbf\xb0", "%EF%BF%B0"}, /* U+FFF0 */
    {"\xef\xbf\xbd", "%EF%BF%BD"}, /* U+FFFD */
    {"\xef\xbf\xbf", "%EF%BF%BF"}, /* U+FFFF */
    {"\xf0\x90\x80\x80", "%F0%90%80%80"},
    {"x\xf0\x9f\x98\x80y", "x%F0%9F%98%80y"}, /* an emoji */
    {"\xf4\x8f\xbf\xbf", "%F4%8F%BF%BF"},     /* U+10FFFF */
    /* Bytes that are not UTF-8; what follows them is looked at afresh. */
    {"\x80", "%80"},
    {"\xbf\xbf", "%BF%BF"},
    {"\xc3", "%C3"},
    {"\xc3q", "%C3q"},
    {"\xc3/", "%C3%2F"},
    {"\xc0\xaf", "%C0%AF"},
    {"\xc1\xbf", "%C1%BF"},
    {"\xe0\x9f\xbf", "%E0%9F%BF"},
    {"\xe2\x82", "%E2%82"},
    {"\xe2\x82q", "%E2%82q"},
    {"\xe2\xc3\xa9", "%E2\xc3\xa9"},
    {"\xed\xa0\x80", "%ED%A0%80"}, /* a surrogate */
    {"\xed\xbf\xbf", "%ED%BF%BF"},
    {"\xf0\x82\x82\xac", "%F0%82%82%AC"}, /* an overlong euro sign */
    {"\xf0\x8f\xbf\xbf", "%F0%8F%BF%BF"},
    {"\xf0\x9f\x98", "%F0%9F%98"},
    {"\xf4\x90\x80\x80", "%F4%90%80%80"}, /* past U+10FFFF */
    {"\xf5\x80\x80\x80", "%F5%80%80%80"},
    {"\xfe\xff", "%FE%FF"},
};

/* Each name has exactly the node that docs/protocol.md gives it, and is plain exactly if that is the name itself. */
TEST(test_golden_nodes) {
    for (size_t i = 0; i < sizeof golden / sizeof golden[0]; i++) {
        char node[64];
        assert_int_equal(dv_name_encode(golden[i].name, node, sizeof node), strlen(golden[i].node));
        assert_string_equal(node, golden[i].node);
        assert_int_equal(dv_name_is_plain(golden[i].name), strcmp(golden[i].name, golden[i].node) == 0);
        assert_round_trip(golden[i].name);
    }
}

/* A node that the encoder did not write is decoded as docs/protocol.md says: both cases of hex, once, "%00" never. */
TEST(test_decoding_of_foreign_nodes) {
    static const struct {
        const char *node;
        const char *name;
    } foreign[] = {
        {"", ""},         {"a b", "a b"}, {"50%", "50%"},     {"%2f", "/"},         {"%C3%a9", "\xc3\xa9"},
        {"%41", "A"},     {"%2", "%2"},   {"%zz", "%zz"},     {"%%41", "%A"},       {"%2541", "%41"},
        {"%252F", "%2F"}, {"%00", "%00"}, {"a%00b", "a%00b"}, {"%0%2F", "%0/"},     {"%ff", "\xff"},
        {"%@0", "%@0"},   {"%:0", "%:0"}, {"%`0", "%`0"},     {"%/0%G0", "%/0%G0"}, {"..", ".."},
    };
    for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++) {
        char name[16];
        assert_int_equal(dv_name_decode(foreign[i].node, name, sizeof name), strlen(foreign[i].name));
        assert_string_equal(name, foreign[i].name);
    }
}

/* Encoder and decoder keep to any size of the buffer, end the text, and always return the whole length. */
TEST(test_short_buffers) {
    static const struct {
        size_t (*convert)(const char *text, char *out, size_t out_bytes);
        const char *from;
        const char *to;
    } conversions[] = {
        {dv_name_encode, "a/\xf0\x9f\x98\x80%20", "a%2F%F0%9F%98%80%2520"},
        {dv_name_encode, "..", "%2E%2E"},
        {dv_name_encode, "plain", "plain"},
        {dv_name_encode, "", ""},
        {dv_name_decode, "a%2F%F0%9F%98%80%2520", "a/\xf0\x9f\x98\x80%20"},
        {dv_name_decode, "", ""},
    };
    for (size_t i = 0; i < sizeof conversions / sizeof conversions[0]; i++) {
        size_t whole = strlen(conversions[i].to);
        assert_int_equal(conversions[i].convert(conversions[i].from, NULL, 0), whole);
        for (size_t bytes = 0; bytes <= whole + 2; bytes++) {
            char out[32];
            memset(out, '#', sizeof out);
            assert_int_equal(conversions[i].convert(conversions[i].from, out, bytes), whole);
            size_t kept = bytes == 0 ? 0 : bytes - 1 < whole ? bytes - 1 : whole;
            assert_memory_equal(out, conversions[i].to, kept);
            if (bytes > 0) assert_int_equal(out[kept], '\0');
            for (size_t rest = bytes == 0 ? 0 : kept + 1; rest < sizeof out; rest++) assert_int_equal(out[rest], '#');
        }
    }
}

/* The codec knows no limit of length: a name of a megabyte that triples comes back whole. */
TEST(test_name_of_a_megabyte) {
    enum { BYTES = 1 << 20 };
    char *name = malloc(BYTES + 1);
    char *node = malloc(3 * BYTES + 1);
    char *back = malloc(BYTES + 1);
    assert_true(name != NULL && node != NULL && back != NULL);
    memset(name, '/', BYTES);
    name[BYTES] = '\0';
    assert_int_equal(dv_name_encode(name, node, 3 * BYTES + 1), 3 * BYTES);
    assert_int_equal(dv_name_decode(node, back, BYTES + 1), BYTES);
    assert_string_equal(back, name);
    free(name);
    free(node);
    free(back);
}

/* Every code point is refused in a path, and escaped in a name, exactly if ZooKeeper refuses it. */
TEST(test_every_code_point) {
    static const struct {
        uint32_t first, last;
    } refused[] = {{0x1, 0x1f}, {0x7f, 0x9f}, {0xd800, 0xf8ff}, {0xfff0, 0x10ffff}};
    size_t range = 0;
    for (uint32_t code_point = 1; code_point <= 0x10ffff; code_point++) {
        while (code_point > refused[range].last) range++;
        bool taken = code_point < refused[range].first;
        char path[16] = "/a";
        write_code_point(code_point, path + 2);
        if (code_point == '/') continue; /* It separates components: other tests. */
        assert_int_equal(dv_path_check(path, NULL), taken ? 0 : DIVVY_EINVAL);
        assert_int_equal(dv_name_is_plain(path + 1), taken);
    }
}

/* Each path that is refused is refused with the reason that fits, wherever in the path the fault is. */
TEST(test_refused_paths) {
    static const struct {
        const char *path;
        const char *reason;
    } refused[] = {
        {NULL, "is missing"},
        {"", "is empty"},
        {"a", "does not begin with \"/\""},
        {"a/b", "does not begin with \"/\""},
        {"./a", "does not begin with \"/\""},
        {" /a", "does not begin with \"/\""},
        {"//", "ends with \"/\""},
        {"/a/", "ends with \"/\""},
        {"/zookeeper/", "ends with \"/\""},
        {"//a", "has an empty component"},
        {"/a//b", "has an empty component"},
        {"/.", "has a component \".\" or \"..\""},
        {"/..", "has a component \".\" or \"..\""},
        {"/./a", "has a component \".\" or \"..\""},
        {"/../a", "has a component \".\" or \"..\""},
        {"/a/.", "has a component \".\" or \"..\""},
        {"/a/../b", "has a component \".\" or \"..\""},
        {"/a/b/..", "has a component \".\" or \"..\""},
        {"/a\n", "has a character that ZooKeeper refuses"},
        {"/\x7f/b", "has a character that ZooKeeper refuses"},
        {"/a/\xc2\x85", "has a character that ZooKeeper refuses"},
        {"/a/\xee\x80\x80/b", "has a character that ZooKeeper refuses"},
        {"/\xf0\x9f\x98\x80", "has a character that ZooKeeper refuses"},
        {"/\xef\xbf\xbd", "has a character that ZooKeeper refuses"},
        {"/\x80", "is not valid UTF-8"},
        {"/a/\xff/b", "is not valid UTF-8"},
        {"/a\xc3", "is not valid UTF-8"},
        {"/a\xc3/b", "is not valid UTF-8"},
        {"/a\xe2\x82/b", "is not valid UTF-8"},
        {"/\xc0\xaf", "is not valid UTF-8"},
        {"/\xed\xa0\x80", "is not valid UTF-8"},
        {"/\xf0\x82\x82\xac", "is not valid UTF-8"},
        {"/\xf4\x90\x80\x80", "is not valid UTF-8"},
        {"/\xf5\x80\x80\x80", "is not valid UTF-8"},
        {"/zookeeper", "is in \"/zookeeper\", which is the server's own"},
        {"/zookeeper/quota", "is in \"/zookeeper\", which is the server's own"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        const char *reason = NULL;
        assert_int_equal(dv_path_check(refused[i].path, &reason), DIVVY_EINVAL);
        assert_non_null(reason);
        assert_string_equal(reason, refused[i].reason);
        assert_int_equal(dv_path_check(refused[i].path, NULL), DIVVY_EINVAL);
    }
}

/* Paths that only look like refused ones are taken, and the reason is left alone. */
TEST(test_taken_paths) {
    static const char *const taken[] = {
        "/",          "/a",          "/a/b/c",       "/ ",           "/...",          "/..a/a../.a/a.",
        "/a.b",       "/zookeeper2", "/zookeeper-x", "/a/zookeeper", "/zookee",       "/Zookeeper",
        "/%2E/%/%00", "/tenant:42",  "/\xc3\xa9/b",  "/\xc2\xa0",    "/\xef\xbf\xaf",
    };
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++) {
        const char *reason = "untouched";
        assert_int_equal(dv_path_check(taken[i], &reason), 0);
        assert_string_equal(reason, "untouched");
        assert_int_equal(dv_path_check(taken[i], NULL), 0);
    }
}

/* Joining puts one slash between, below the root as well, and the last component of the result is the name. */
TEST(test_join_and_last) {
    static const char *const joined[][3] = {
        {"/", "a", "/a"},
        {"/a", "b", "/a/b"},
        {"/a/b", "c d", "/a/b/c d"},
    };
    for (size_t i = 0; i < sizeof joined / sizeof joined[0]; i++) {
        char *path = dv_path_join(joined[i][0], joined[i][1]);
        assert_non_null(path);
        assert_string_equal(path, joined[i][2]);
        const char *last = dv_path_last(path);
        assert_string_equal(last, joined[i][1]);
        assert_true(last > path && last < path + strlen(path));
        free(path);
    }
    assert_string_equal(dv_path_last("/"), "");
    assert_string_equal(dv_path_last("bare"), "bare");
}
