/* The text of a roll: docs/protocol.md, W19, W20. SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "divvy/error.h"
#include "lib/test.h"
#include "plan/roll.h"
#include "roll_letters.h"

enum { MANY = 600 };

static dv_roll parse(const char *text) {
    dv_roll roll;
    assert_int_equal(dv_roll_parse(&roll, text, strlen(text), NULL), 0);
    return roll;
}

/* Returns the roll that leads from one party to another, behind `old`. */
static dv_plan_text print(const dv_roll *old, const dv_roll_party *before, const dv_roll_party *to) {
    dv_plan_text text;
    assert_int_equal(dv_roll_print(&text, old, before, to, 0), 0);
    return text;
}

static dv_roll write_roll(const dv_roll *old, const dv_roll_party *before, const dv_roll_party *to) {
    dv_plan_text text = print(old, before, to);
    dv_roll roll;
    assert_int_equal(dv_roll_parse(&roll, text.bytes, text.count, NULL), 0);
    free(text.bytes);
    return roll;
}

static void assert_leads(const dv_roll *roll, const dv_roll_party *from, const char *to) {
    char **names = NULL;
    assert_int_equal(dv_roll_follow(roll, from, &names), 0);
    char joined[64] = "";
    for (size_t i = 0; i < roll->count; i++) strcat(joined, names[i]);
    assert_string_equal(joined, to);
    free(names);
}

static int follow(const dv_roll *roll, const dv_roll_party *from) {
    char **names;
    int error = dv_roll_follow(roll, from, &names);
    free(names);
    return error;
}

/* The text is as W19 shows it. */
TEST(test_text) {
    letters before, to;
    dv_plan_text text = print(NULL, party_of(&before, "abd", 0x1f), party_of(&to, "bcd", 0x2a));
    char expected[256];
    snprintf(expected, sizeof expected,
             "{\"v\":1,\"pzxid\":\"2a\",\"place\":0,\"count\":3,\"sum\":\"%08x\",\"steps\":[[\"1f\",[\"c\"],[\"a\"]]]}",
             dv_roll_sum(to.names, 3));
    assert_memory_equal(text.bytes, expected, strlen(expected));
    assert_int_equal(text.count, strlen(expected));
    free(text.bytes);
}

/* Who knows the party that any step leads from, or the last one, comes to the names of the last one. */
TEST(test_chain) {
    letters a, b, c;
    dv_roll first = write_roll(NULL, party_of(&a, "abd", 10), party_of(&b, "abcde", 20));
    dv_roll second = write_roll(&first, &b.party, party_of(&c, "ceg", 30));
    assert_int_equal(second.step_count, 2);
    assert_leads(&second, &a.party, "ceg");
    assert_leads(&second, &b.party, "ceg");
    assert_leads(&second, &c.party, "ceg");
    assert_int_equal(follow(&second, party_of(&a, "abd", 11)), DIVVY_ENOENT);
    dv_roll_clear(&first);
    dv_roll_clear(&second);
}

/* Nobody, everybody, and one for a moment, can come and go. */
TEST(test_all_and_none) {
    letters a, b;
    dv_roll roll = write_roll(NULL, party_of(&a, "", 10), party_of(&b, "xyz", 20));
    assert_leads(&roll, &a.party, "xyz");
    dv_roll_clear(&roll);
    roll = write_roll(NULL, &b.party, party_of(&a, "", 30));
    assert_leads(&roll, &b.party, "");
    dv_roll_clear(&roll);
    roll = write_roll(NULL, party_of(&a, "xyz", 10), &b.party); /* one came and went */
    assert_leads(&roll, &a.party, "xyz");
    dv_roll_clear(&roll);
}

/* Steps that lead to other names than the roll was made from are found out, by the names, their number or their sum. */
TEST(test_wrong_steps) {
    letters a, b, other;
    dv_roll roll = write_roll(NULL, party_of(&a, "abd", 10), party_of(&b, "bcd", 20));
    assert_int_equal(follow(&roll, party_of(&other, "abx", 10)), DIVVY_EPROTO); /* its sum */
    assert_int_equal(follow(&roll, party_of(&other, "abdx", 10)), DIVVY_EPROTO);
    assert_int_equal(follow(&roll, party_of(&other, "bd", 10)), DIVVY_EPROTO);  /* a is to go */
    assert_int_equal(follow(&roll, party_of(&other, "abc", 10)), DIVVY_EPROTO); /* c is to come */
    assert_int_equal(follow(&roll, party_of(&other, "bc", 20)), DIVVY_EPROTO);
    assert_leads(&roll, &a.party, "bcd");
    dv_roll_clear(&roll);
}

/* A name that needs escapes comes back as it was. */
TEST(test_escapes) {
    static const char *const odd[] = {"\"q\\", "tab\there", "\xc3\xa9"};
    letters a;
    const dv_roll_party to = {odd, 3, 20};
    dv_roll roll = write_roll(NULL, party_of(&a, "", 10), &to);
    char **names;
    assert_int_equal(dv_roll_follow(&roll, &a.party, &names), 0);
    for (size_t i = 0; i < 3; i++) assert_string_equal(names[i], odd[i]);
    free(names);
    dv_roll_clear(&roll);
}

typedef struct {
    char texts[MANY][64];
    const char *names[MANY];
} crowd;

/* Those of `first` to `last`, with names as long as members have. */
static dv_roll_party crowd_of(crowd *c, unsigned first, unsigned last, int64_t pzxid) {
    for (unsigned i = first; i < last; i++) {
        snprintf(c->texts[i - first], sizeof c->texts[0], "0000000000100000000000,a=3,s=1a2b3c4d-m%04u", i % 10000);
        c->names[i - first] = c->texts[i - first];
    }
    return (dv_roll_party){c->names, last - first, pzxid};
}

/* As many of the newest steps are kept as fit into 1 KiB. */
TEST(test_kept_steps) {
    static crowd one, other;
    dv_roll roll = {0};
    dv_roll_party before = crowd_of(&one, 0, 400, 1);
    for (unsigned i = 1; i <= 40; i++) {
        dv_roll_party to = crowd_of(i % 2 ? &other : &one, i, 400 + i, 1 + i);
        dv_plan_text text = print(roll.count ? &roll : NULL, &before, &to);
        dv_roll_clear(&roll);
        assert_int_equal(dv_roll_parse(&roll, text.bytes, text.count, NULL), 0);
        assert_true(text.count <= DV_ROLL_KEPT_BYTES + 128);
        assert_true(roll.step_count >= (i < 8 ? i : 8));
        assert_int_equal(roll.steps[roll.step_count - 1].from, i);
        free(text.bytes);
        before = to;
    }
    dv_roll_clear(&roll);
}

/* A step is kept up to half of the party's names; a longer one would cost those that have just come more than it saves
 * the others. */
TEST(test_long_step) {
    static crowd one, other;
    dv_roll_party all = crowd_of(&one, 0, 600, 20), some = crowd_of(&other, 0, 310, 10);
    dv_roll roll = write_roll(NULL, &some, &all);
    assert_int_equal(roll.step_count, 1);
    assert_int_equal(follow(&roll, &some), 0);
    dv_roll_clear(&roll);
    some = crowd_of(&other, 0, 290, 10);
    roll = write_roll(NULL, &some, &all);
    assert_int_equal(roll.step_count, 0);
    assert_int_equal(follow(&roll, &some), DIVVY_ENOENT);
    assert_int_equal(follow(&roll, &all), 0);
    dv_roll_clear(&roll);
}

/* Returns whether a roll tells the step to a party of two names of so many bytes, where the second one has come. */
static bool tells_step(size_t there, size_t came) {
    char first[3000], second[3000];
    const char *const names[] = {first, second};
    assert_true(there < sizeof first && came < sizeof second);
    memset(first, 'a', there);
    memset(second, 'b', came);
    first[there] = second[came] = '\0';
    const dv_roll_party before = {names, 1, 10}, to = {names, 2, 20};
    dv_plan_text text = print(NULL, &before, &to);
    bool tells = !memmem(text.bytes, text.count, "\"steps\":[]", strlen("\"steps\":[]"));
    free(text.bytes);
    return tells;
}

/* The bounds of a step are met to the byte: 1 KiB; and half of all names, with four bytes for each. */
TEST(test_longest_step) {
    enum {
        AROUND = sizeof "['a',['" - 1 + sizeof "'],[]]" - 1,
        LONG = 2000,
        HALF = 2 * (LONG + AROUND) - 2 * 4 - LONG
    };
    assert_true(tells_step(1, DV_ROLL_KEPT_BYTES - AROUND));
    assert_false(tells_step(1, DV_ROLL_KEPT_BYTES - AROUND + 1));
    assert_true(tells_step(HALF, LONG));
    assert_false(tells_step(HALF - 1, LONG));
}

static int parse_error(const char *text) {
    dv_roll roll;
    dv_plan_fault fault = {0};
    char *copy = strdup(text); /* Of this length, so that a sanitizer sees a read behind it. */
    int error = dv_roll_parse(&roll, copy, strlen(text), &fault);
    free(copy);
    if (error == DIVVY_EPROTO) assert_non_null(fault.why);
    if (error == 0) dv_roll_clear(&roll);
    else assert_true(!roll.steps && !roll.names && !roll.block);
    return error;
}

/* What is none is refused, whatever is wrong with it. */
TEST(test_hostile) {
    static const char *const broken[] = {
        "",
        "{}",
        "null",
        "[]",
        "{\"v\":1}",
        "{\"v\":1,\"pzxid\":\"2\",\"place\":0,\"count\":1,\"sum\":\"00000000\",\"steps\":[[\"2\",[],[]]]}",
        ("{\"v\":1,\"pzxid\":\"9\",\"place\":0,\"count\":1,\"sum\":\"00000000\",\"steps\":[[\"3\",[],[]],[\"2\",[],[]]]"
         "}"),
        "{\"v\":1,\"pzxid\":\"9\",\"place\":0,\"count\":1,\"sum\":\"00000000\",\"steps\":[[\"3\",[\"b\",\"a\"],[]]]}",
        "{\"v\":1,\"pzxid\":\"9\",\"place\":0,\"count\":1,\"sum\":\"00000000\",\"steps\":[[\"3\",[\"a\",\"a\"],[]]]}",
        "{\"v\":1,\"pzxid\":\"9\",\"place\":0,\"count\":1,\"sum\":\"00000000\",\"steps\":[[\"3\",[\"\"],[]]]}",
        "{\"v\":1,\"pzxid\":\"9\",\"place\":0,\"count\":1,\"sum\":\"00000000\",\"steps\":[[\"3\",[\"a/b\"],[]]]}",
        "{\"v\":1,\"pzxid\":\"9\",\"place\":0,\"count\":1,\"sum\":\"00000000\",\"steps\":[[\"3\",[]]]}",
        "{\"v\":1,\"pzxid\":\"9\",\"place\":0,\"count\":1,\"sum\":\"00000000\",\"steps\":[[\"3\",[],[],[]]]}",
        "{\"v\":1,\"pzxid\":\"9\",\"place\":0,\"count\":1,\"sum\":\"00000000\",\"steps\":[[]]}",
        "{\"v\":1,\"pzxid\":\"9\",\"place\":-1,\"count\":1,\"sum\":\"00000000\",\"steps\":[]}",
        "{\"v\":1,\"pzxid\":\"9\",\"place\":0,\"count\":1,\"sum\":\"0\",\"steps\":[]}",
        "{\"v\":1,\"pzxid\":\"0\",\"place\":0,\"count\":1,\"sum\":\"00000000\",\"steps\":[]}",
        "{\"v\":1,\"pzxid\":\"9\",\"place\":0,\"count\":1,\"sum\":\"00000000\",\"steps\":[]}x",
    };
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        if (parse_error(broken[i]) != DIVVY_EPROTO) fail_msg("is not refused: %s", broken[i]);
    }
    assert_int_equal(parse_error("{\"v\":2,\"anything\":"), DIVVY_EUNSUPPORTED);
}

/* No beginning of a roll is one. */
TEST(test_cut) {
    letters a, b;
    dv_plan_text text = print(NULL, party_of(&a, "abd", 10), party_of(&b, "bcd", 20));
    text.bytes[text.count - 1] = '\0';
    for (size_t bytes = text.count; bytes-- > 0; text.bytes[bytes] = '\0')
        assert_int_equal(parse_error(text.bytes), DIVVY_EPROTO);
    free(text.bytes);
}

/* A text of more than 200,000 bytes is none, and so are more than 64 steps. */
TEST(test_limits) {
    static char text[DV_ROLL_BYTES_MAX + 64];
    memset(text, 'x', sizeof text - 1);
    const char *begin =
        "{\"v\":1,\"pzxid\":\"ffff\",\"place\":0,\"count\":1,\"sum\":\"00000000\",\"steps\":[],\"x\":\"";
    memcpy(text, begin, strlen(begin));
    strcpy(text + DV_ROLL_BYTES_MAX - 2, "\"}");
    assert_int_equal(parse_error(text), 0);
    strcpy(text + DV_ROLL_BYTES_MAX - 2, "x\"}");
    assert_int_equal(parse_error(text), DIVVY_EPROTO);
    for (int steps = 64; steps <= 65; steps++) {
        int at = snprintf(text, sizeof text,
                          "{\"v\":1,\"pzxid\":\"ffff\",\"place\":0,\"count\":1,\"sum\":\"00000000\",\"steps\":[");
        for (int i = 1; i <= steps; i++) at += sprintf(text + at, "%s[\"%x\",[],[]]", i > 1 ? "," : "", i);
        strcpy(text + at, "]}");
        assert_int_equal(parse_error(text), steps == 64 ? 0 : DIVVY_EPROTO);
    }
}

/* Unknown keys are passed over, and keys come in any order. */
TEST(test_later_keys) {
    dv_roll roll =
        parse("{\"v\":1,\"new\":[1,{}],\"steps\":[],\"sum\":\"0000000a\",\"count\":7,\"place\":2,\"pzxid\":\"9\"}");
    assert_int_equal(roll.pzxid, 9);
    assert_int_equal(roll.place, 2);
    assert_int_equal(roll.count, 7);
    assert_int_equal(roll.sum, 10);
    dv_roll_clear(&roll);
}
