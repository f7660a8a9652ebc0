/* Tests of plan/deaths.h: the members that died, as a text, and the change of a plan that a death explains.
 * SPDX-License-Identifier: Apache-2.0 */
#include "plan/deaths.h"
#include "plan_fixture.h"

#define DEATH(fields) "{\"deaths\":[{" fields "}]}"
#define REST "\"session\":\"1f\",\"at_ms\":5,\"seen_ms\":40"

static dv_plan_deaths deaths;
static dv_plan_history history;

static int parse(const char *text, dv_plan_fault *fault) {
    size_t bytes = strlen(text);
    char *exact = malloc(bytes + 1); /* of its size, for the sanitizers */
    assert_non_null(exact);
    char *from = exact + 1;
    memcpy(from, text, bytes);
    int error = dv_plan_deaths_parse(&deaths, from, bytes, 1000, fault);
    free(exact);
    return error;
}

static void assert_prints(const char *text) {
    dv_plan_text printed;
    assert_int_equal(dv_plan_print_deaths(&printed, &deaths), 0);
    assert_int_equal(printed.count, strlen(text));
    assert_memory_equal(printed.bytes, text, printed.count);
    free(printed.bytes);
}

/* ---- the text ---- */

/* What a writer prints is what the protocol says, to the byte. The newest has the node's time, and none before has. */
TEST(test_text) {
    assert_int_equal(parse("{\"deaths\":[{\"name\":\"a\",\"session\":\"ffffffffffffffff\",\"at_ms\":0,\"seen_ms\":40},"
                           "{\"name\":\"q\\\"\\u0001\",\"session\":\"1f\",\"at_ms\":0,\"seen_ms\":7}]}",
                           NULL),
                     0);
    assert_int_equal(deaths.count, 2);
    assert_string_equal(deaths.deaths[0].name, "a");
    assert_true(deaths.deaths[0].session == -1);
    assert_int_equal(deaths.deaths[0].at_ms, 0);
    assert_string_equal(deaths.deaths[1].name, "q\"\x01");
    assert_int_equal(deaths.deaths[1].session, 0x1f);
    assert_int_equal(deaths.deaths[1].at_ms, 1000);
    assert_int_equal(deaths.deaths[1].seen_ms, 7);
    dv_plan_deaths_add(&deaths, &(dv_plan_death){.name = "c", .session = 2, .at_ms = 8, .seen_ms = 9});
    assert_prints("{\"deaths\":[{\"name\":\"a\",\"session\":\"ffffffffffffffff\",\"at_ms\":0,\"seen_ms\":40},"
                  "{\"name\":\"q\\\"\\u0001\",\"session\":\"1f\",\"at_ms\":1000,\"seen_ms\":7},"
                  "{\"name\":\"c\",\"session\":\"2\",\"at_ms\":0,\"seen_ms\":9}]}");
}

/* Keys in any order, keys of a later release, and each escape of JSON are taken. */
TEST(test_other_writers) {
    assert_int_equal(parse(DEATH("\"name\":\"\\u20ac\\u00e4\\/\\u0041\\t\"," REST), NULL), 0);
    assert_string_equal(deaths.deaths[0].name, "\xe2\x82\xac\xc3\xa4/A\t");
    assert_int_equal(parse(DEATH("\"seen_ms\":1,\"new\":{},\"name\":\"a\",\"at_ms\":5,\"session\":\"0\""), NULL), 0);
    assert_int_equal(deaths.deaths[0].at_ms, 5);
    assert_int_equal(parse(DEATH("\"name\":\"\"," REST), NULL), 0);
    assert_string_equal(deaths.deaths[0].name, "");
    assert_int_equal(parse("{\"more\":{},\"deaths\":[]}", NULL), 0);
    assert_int_equal(deaths.count, 0);
}

/* What a text of deaths must not say is refused, and so is each beginning of one; nothing is left of it. */
TEST(test_refused) {
    static const char good[] = DEATH("\"name\":\"a\"," REST);
    static const char *const texts[] = {
        "",
        "[]",
        "{}",
        "{\"deaths\":7}",
        "{\"deaths\":[]}x",
        "{\"deaths\":[],\"deaths\":[]}",
        "{\"deaths\":[{}]}",
        DEATH(REST),
        DEATH("\"name\":7," REST),
        DEATH("\"name\":\"\xff\"," REST),
        DEATH("\"name\":\"\\u0000\"," REST),
        DEATH("\"name\":\"01234567890123456789012345678901234567890123456789012345678901234\"," REST),
        DEATH("\"name\":\"a\",\"session\":31,\"at_ms\":5,\"seen_ms\":40"),
        DEATH("\"name\":\"a\",\"session\":\"1F\",\"at_ms\":5,\"seen_ms\":40"),
        DEATH("\"name\":\"a\",\"session\":\"10000000000000000\",\"at_ms\":5,\"seen_ms\":40"),
        DEATH("\"name\":\"a\",\"session\":\"1f\",\"at_ms\":-1,\"seen_ms\":40"),
        DEATH("\"name\":\"a\",\"session\":\"1f\",\"at_ms\":5,\"seen_ms\":-1"),
        DEATH("\"name\":\"a\",\"session\":\"1f\",\"at_ms\":5,\"seen_ms\":9007199254740992"),
    };
    static const char nul[] = DEATH("\"name\":\"\\\0\"," REST);
    dv_plan_fault fault;
    assert_int_equal(dv_plan_deaths_parse(&deaths, nul, sizeof nul - 1, 1, &fault), DIVVY_EPROTO);
    assert_string_equal(fault.why, "has a false escape in a string");
    for (size_t i = 0; i < COUNT(texts); i++) {
        fault = (dv_plan_fault){0};
        assert_int_equal(parse(texts[i], &fault), DIVVY_EPROTO);
        assert_int_equal(deaths.count, 0);
        assert_non_null(fault.why);
    }
    for (size_t bytes = 0; bytes < sizeof good - 1; bytes++) {
        assert_int_equal(dv_plan_deaths_parse(&deaths, good, bytes, 1, NULL), DIVVY_EPROTO);
    }
    assert_int_equal(parse(good, NULL), 0);
}

/* 64 deaths are kept, and the oldest goes for the next one. What does not fit goes, the oldest first; one more than 64,
 * or a byte more than 16 KiB, is refused. */
TEST(test_bounds) {
    dv_plan_text printed;
    dv_plan_death death = {.seen_ms = DV_PLAN_INTEGER_MAX};
    deaths.count = 0;
    for (int i = 0; i <= DV_PLAN_DEATHS_MAX; i++) {
        death.session = i;
        dv_plan_deaths_add(&deaths, &death);
    }
    assert_int_equal(deaths.count, DV_PLAN_DEATHS_MAX);
    assert_int_equal(deaths.deaths[0].session, 1);
    assert_int_equal(dv_plan_print_deaths(&printed, &deaths), 0);
    static char text[DV_PLAN_DEATHS_BYTES_MAX + 64];
    memcpy(text, printed.bytes, printed.count);
    strcpy(text + printed.count - 2, ",{\"name\":\"\"," REST "}]}");
    free(printed.bytes);
    assert_int_equal(parse(text, NULL), DIVVY_EPROTO);

    deaths.count = 0;
    memset(death.name, '\x01', DV_PLAN_NAME_BYTES_MAX); /* six bytes each in the text */
    for (int i = 0; i < DV_PLAN_DEATHS_MAX; i++) {
        death.session = i;
        dv_plan_deaths_add(&deaths, &death);
    }
    assert_int_equal(dv_plan_print_deaths(&printed, &deaths), 0);
    assert_true(printed.count <= DV_PLAN_DEATHS_BYTES_MAX);
    assert_int_equal(dv_plan_deaths_parse(&deaths, printed.bytes, printed.count, 1, NULL), 0);
    assert_true(deaths.count > 30 && deaths.count < DV_PLAN_DEATHS_MAX);
    assert_int_equal(deaths.deaths[deaths.count - 1].session, DV_PLAN_DEATHS_MAX - 1);
    free(printed.bytes);

    size_t bytes = (size_t)sprintf(text, "{\"deaths\":[],\"x\":\"");
    memset(text + bytes, 'x', DV_PLAN_DEATHS_BYTES_MAX - bytes);
    strcpy(text + DV_PLAN_DEATHS_BYTES_MAX - 2, "\"}");
    assert_int_equal(parse(text, NULL), 0);
    strcpy(text + DV_PLAN_DEATHS_BYTES_MAX - 2, "x\"}");
    assert_int_equal(parse(text, NULL), DIVVY_EPROTO);
}

/* ---- whose ---- */

static void add(const char *name, int64_t at_ms) {
    dv_plan_death *death = &deaths.deaths[deaths.count++];
    *death = (dv_plan_death){.at_ms = at_ms, .seen_ms = at_ms};
    strcpy(death->name, name);
}

/* The newest of a member's deaths is found, also by an identifier that was cut in a character. */
TEST(test_newest) {
    char identifier[80];
    memset(identifier, 'n', DV_PLAN_NAME_BYTES_MAX - 1);
    deaths.count = 0;
    add("a", 1);
    identifier[DV_PLAN_NAME_BYTES_MAX - 1] = '\0';
    add(identifier, 2);
    add("a", 3);
    add("b", 4);
    strcat(identifier, "\xc3\xa9-and-more");
    assert_ptr_equal(dv_plan_deaths_of(&deaths, "a"), &deaths.deaths[2]);
    assert_ptr_equal(dv_plan_deaths_of(&deaths, identifier), &deaths.deaths[1]);
    assert_null(dv_plan_deaths_of(&deaths, "c"));
}

static void change(int64_t at_ms, const char *joined, const char *left) {
    dv_plan_change *c = &history.changes[history.count++];
    *c = (dv_plan_change){.generation = history.count, .at_ms = at_ms};
    c->joined.count = c->joined.named = joined != NULL;
    c->left.count = c->left.named = left != NULL;
    if (joined != NULL) strcpy(c->joined.names[0], joined);
    if (left != NULL) strcpy(c->left.names[0], left);
}

/* Returns the at_ms of the death behind a change, or 0. */
static int64_t behind(size_t n, const char *name) {
    const dv_plan_death *death = dv_plan_deaths_behind(&deaths, &history, n, name);
    return death != NULL ? death->at_ms : 0;
}

/* A death is told with the change that says that its member left, within a minute of it; a change may be written a
 * moment before its death is. A member that came back between the two left in another way. */
TEST(test_behind) {
    deaths.count = history.count = 0;
    add("a", 100000);
    add("b", 200300);
    add("c", 250000);
    add("d", 400000);
    add("e", 500000);
    add("f", 600000);
    add("g", 700000);
    add("h", 805000);
    add("i", 905001);
    add("j", 1003000);
    change(90000, "a", NULL);
    change(101000, NULL, "a"); /* died */
    change(102000, "a", NULL);
    change(103000, NULL, "a"); /* in good order: it was back since */
    change(200000, NULL, "b"); /* died, and was written down 300 ms later */
    change(240000, NULL, "c"); /* in good order: it came back, and died then */
    change(241000, "c", NULL);
    change(251000, NULL, "c");
    change(470000, NULL, "d"); /* more than a minute after */
    change(0, NULL, "d");      /* nobody has said when */
    change(501000, NULL, "e"); /* died */
    change(520000, NULL, "e"); /* in good order, behind a return that nobody has written down */
    change(660000, NULL, "f"); /* just a minute after */
    change(760001, NULL, "g"); /* and a millisecond more */
    change(800000, NULL, "h"); /* 5 s before the death is the most */
    change(900000, NULL, "i");
    change(1000000, NULL, "j"); /* in good order: it came back, died then, and nobody has written down that it left */
    change(1002000, "j", NULL);
    assert_int_equal(behind(1, "a"), 100000);
    assert_int_equal(behind(3, "a"), 0);
    assert_int_equal(behind(4, "b"), 200300);
    assert_int_equal(behind(5, "c"), 0);
    assert_int_equal(behind(7, "c"), 250000);
    assert_int_equal(behind(8, "d"), 0);
    assert_int_equal(behind(9, "d"), 0);
    assert_int_equal(behind(4, "a"), 0);
    assert_int_equal(behind(10, "e"), 500000);
    assert_int_equal(behind(11, "e"), 0);
    assert_int_equal(behind(12, "f"), 600000);
    assert_int_equal(behind(13, "g"), 0);
    assert_int_equal(behind(14, "h"), 805000);
    assert_int_equal(behind(15, "i"), 0);
    assert_int_equal(behind(16, "j"), 0);
}
