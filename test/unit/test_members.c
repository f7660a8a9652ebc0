/* Tests of the names of members, docs/protocol.md, P2. SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/test.h"
#include "partitioner/partitioner.h"

#define KAZOO "0123456789abcdef0123456789abcdef"
#define OWN_FUNCTION (-1)

/* Parses a copy, on the heap, so that a sanitizer sees a step too far. */
static dv_member parse(const char *name) {
    static char *copy;
    free(copy);
    copy = *name ? strdup(name) : calloc(1, 1);
    assert_non_null(copy);
    return dv_member_parse(copy);
}

/* A name that divvy writes is read back: the member's ability, its items' crc, its identifier. */
TEST(test_divvy) {
    static const struct {
        const char *name, *identifier, *ability;
        int level;
        bool has_set;
        uint32_t set;
    } taken[] = {
        {"G1,a=1,s=1a2b3c4d-worker-7", "worker-7", "1", 1, true, 0x1a2b3c4d},
        {"G1,a=0,s=00000000-x", "x", "0", 0, true, 0},
        {"G1,a=2,s=ffffffff-x", "x", "2", 2, true, 0xffffffff},
        {"G1,a=fdeadbeef,s=00000001-x", "x", "fdeadbeef", OWN_FUNCTION, true, 1},
        {"G1,a=1-x", "x", "1", 1, false, 0},
        {"G1,s=00000002,a=1-x", "x", "1", 1, true, 2},
        {"G1,a=1,zz=99,q=later,s=00000003-x", "x", "1", 1, true, 3},
        {"G1,a=1,s=123-x", "x", "1", 1, false, 0},
        {"G1,a=1,s=1234567g-x", "x", "1", 1, false, 0},
        {"G1,a=1-", "", "1", 1, false, 0},
        {"G1,a=1--", "-", "1", 1, false, 0},
        {"G1,a=1-a,b=c-d", "a,b=c-d", "1", 1, false, 0},
        {"G1,a=1-\xc3\xa9\xff", "\xc3\xa9\xff", "1", 1, false, 0},
        {KAZOO ",a=1-x", "x", "1", 1, false, 0},
    };
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++) {
        dv_member m = parse(taken[i].name);
        assert_int_equal(m.kind, DV_DIVVY);
        assert_string_equal(m.node, taken[i].name);
        assert_string_equal(m.identifier, taken[i].identifier);
        assert_int_equal(m.level, taken[i].level);
        assert_int_equal(m.ability_bytes, strlen(taken[i].ability));
        assert_memory_equal(m.ability, taken[i].ability, m.ability_bytes);
        assert_int_equal(m.has_set, taken[i].has_set);
        if (taken[i].has_set) assert_int_equal(m.set, taken[i].set);
    }
}

/* A child of 32 lower-case hex digits without tags is kazoo's, and its identifier all behind the first '-'. */
TEST(test_kazoo) {
    static const char *const identifiers[] = {"host.example.com-4711", "", "-", "a,b=c", "\xe2\x82\xac"};
    for (size_t i = 0; i < sizeof identifiers / sizeof identifiers[0]; i++) {
        char name[100];
        snprintf(name, sizeof name, "%s-%s", KAZOO, identifiers[i]);
        dv_member m = parse(name);
        assert_int_equal(m.kind, DV_KAZOO);
        assert_string_equal(m.identifier, identifiers[i]);
    }
}

/* All other children are strays, whatever they resemble. */
TEST(test_strays) {
    static const char *const names[] = {
        "",
        "-",
        "x",
        "x-y",
        KAZOO,
        KAZOO "0-x",                            /* 33 digits */
        "0123456789abcdef0123456789abcde-x",    /* 31 */
        "0123456789ABCDEF0123456789ABCDEF-x",   /* upper case */
        "0123456789abcdef0123456789abcdeg-x",   /* no hex digit */
        "01234567-89ab-cdef-0123-456789abcdef", /* a uuid with dashes */
        "lock-0000000001",
        ",a=1-x",
        "G1,-x",
        "G1,a-x",
        "G1,a=-x",
        "G1,=1-x",
        "G1,a=1,-x",
        "G1,,a=1-x",
        "G1,a=1,s-x",
        "G1,a==1-x",
        "G1,a=1=2-x",
        "G1,a=1 -x",
        "G1,s=00000001-x",
        "G1,b=1-x",
        "G 1,a=1-x",
        "G_1,a=1-x",
        "G1,a=1",
        "\xc3\xa9,a=1-x",
        "G1,a=\xc3\xa9-x",
        "G1,\xe9=1,a=1-x",
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (parse(names[i]).kind != DV_STRAY) fail_msg("%s is taken for a member", names[i]);
    }
}

/* A member that can do more than we know has no own function: a level of a later release, be it of two digits,
 * stays a level. */
TEST(test_later_levels) {
    assert_int_equal(parse("G1,a=9-x").level, 9);
    assert_int_equal(parse("G1,a=10-x").level, 10);
    assert_int_equal(parse("G1,a=f10-x").level, OWN_FUNCTION);
    assert_true(parse("G1,a=99999999999999999999-x").level >= 2);
}
