/* Tests of lib/plan/wish.h and lib/plan/loads.h alone: what may be asked, what a text may say, and memory that runs
 * out. SPDX-License-Identifier: Apache-2.0 */
#include "plan/wish.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "divvy/error.h"
#include "lib/scarce.h"
#include "lib/test.h"
#include "plan/loads.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static const dv_wish good = {.kind = DV_WISH_PIN, .name = "a", .value = "m", .by = "anna", .why = "", .at_ms = 1};

/* Returns a text of `bytes` letters, good until the next call. */
static const char *letters(size_t bytes) {
    static char text[DV_WISH_NAME_BYTES_MAX + 2];
    assert_true(bytes < sizeof text);
    memset(text, 'x', bytes);
    text[bytes] = '\0';
    return text;
}

static void assert_check(dv_wish wish, const char *why) {
    const char *said = dv_wish_check(&wish);
    if (why) assert_string_equal(said, why);
    else assert_null(said);
}

#define CHECK(field, is, why)    \
    do {                         \
        dv_wish wish = good;     \
        wish.field = (is);       \
        assert_check(wish, why); \
    } while (0)

/* Each text of a wish may be as long as its limit, and not one byte longer. Those that are shown are UTF-8. */
TEST(test_check) {
    static const char *const too_long = "comes with too long a text",
                             *const no_text = "comes with a text that is no UTF-8",
                             *const nothing = "comes with nothing asked";
    assert_check(good, NULL);
    CHECK(name, "", "is empty");
    CHECK(name, letters(DV_WISH_NAME_BYTES_MAX), NULL);
    CHECK(name, letters(DV_WISH_NAME_BYTES_MAX + 1), too_long);
    CHECK(value, letters(DV_WISH_VALUE_BYTES_MAX), NULL);
    CHECK(value, letters(DV_WISH_VALUE_BYTES_MAX + 1), too_long);
    CHECK(by, letters(DV_WISH_BY_BYTES_MAX), NULL);
    CHECK(by, letters(DV_WISH_BY_BYTES_MAX + 1), too_long);
    CHECK(why, letters(DV_WISH_WHY_BYTES_MAX), NULL);
    CHECK(why, letters(DV_WISH_WHY_BYTES_MAX + 1), too_long);
    CHECK(name, "\xff", NULL); /* An item may be called so. */
    CHECK(value, "\xff", no_text);
    CHECK(by, "\xff", no_text);
    CHECK(why, "\xff", no_text);
    CHECK(value, "", nothing);
    CHECK(at_ms, -1, nothing);
    CHECK(at_ms, DV_PLAN_INTEGER_MAX, NULL);
    CHECK(at_ms, DV_PLAN_INTEGER_MAX + 1, nothing);
    dv_wish pause = good;
    pause.kind = DV_WISH_PAUSE;
    pause.value = "";
    assert_check(pause, NULL); /* Nobody had the item. */
}

static dv_wishes *with(dv_wishes *wishes, dv_wish_kind kind, const char *name, const char *value) {
    dv_wish_event event = {.wish = good};
    dv_wishes *next;
    event.wish.kind = kind;
    event.wish.name = name;
    event.wish.value = value;
    assert_int_equal(dv_wishes_change(&next, wishes, &event), 0);
    dv_wishes_unref(wishes);
    return next;
}

/* An option has the number that its text is, up to the most that its reader takes. What is no number, in the C locale's
 * way of writing one, counts as not asked for. */
TEST(test_numbers) {
    static const struct {
        const char *text;
        double number;
    } texts[] = {
        {"0", 0},
        {"12", 12},
        {"0.25", 0.25},
        {"7.50", 7.5},
        {"99", 99},
        {"100", 100},
        {"101", 100},
        {"1e1", -1},
        {"1.", -1},
        {".5", -1},
        {".", -1},
        {"1.5x", -1},
        {"1,5", -1},
        {"-1", -1},
        {" 1", -1},
        {"0x1", -1},
        {"00000000000000000007", 7},
        {"000000000000000000007", -1},
        {"1.0.0", -1},
        {"inf", -1},
    };
    for (size_t i = 0; i < COUNT(texts); i++) {
        dv_wishes *wishes = with(NULL, DV_WISH_OPTION, "max-moves", texts[i].text);
        double number = dv_wishes_number(wishes, "max-moves", -1, 100);
        if (number != texts[i].number) fail_msg("\"%s\" is %g", texts[i].text, number);
        assert_true(dv_wishes_number(wishes, "imbalance", 5, 100) == 5);
        dv_wishes_unref(wishes);
    }
    assert_true(dv_wishes_number(NULL, "max-moves", 5, 100) == 5);
}

/* An item's own name decides which tag it needs, then the longest prefix that ends with a star. */
TEST(test_tags) {
    dv_wishes *wishes = with(NULL, DV_WISH_PIN, "ab", "m");
    assert_false(dv_wishes_need_tags(wishes));
    assert_null(dv_wishes_tag(wishes, "ab"));
    assert_null(dv_wishes_tag(NULL, "ab"));
    wishes = with(wishes, DV_WISH_NEED, "a*", "short");
    wishes = with(wishes, DV_WISH_NEED, "ab", "own");
    wishes = with(wishes, DV_WISH_NEED, "abc*", "long");
    assert_true(dv_wishes_need_tags(wishes));
    assert_string_equal(dv_wishes_tag(wishes, "ab"), "own");
    assert_string_equal(dv_wishes_tag(wishes, "a"), "short");
    assert_string_equal(dv_wishes_tag(wishes, "abb"), "short");
    assert_string_equal(dv_wishes_tag(wishes, "abc"), "long");
    assert_string_equal(dv_wishes_tag(wishes, "abcd"), "long");
    assert_null(dv_wishes_tag(wishes, "b"));
    wishes = with(wishes, DV_WISH_NEED, "*", "all");
    assert_string_equal(dv_wishes_tag(wishes, "b"), "all");
    assert_string_equal(dv_wishes_tag(wishes, "abcd"), "long");
    dv_wishes_unref(wishes);
}

/* Two lists are equal when each wish is, to the last of its fields. */
TEST(test_equal) {
    dv_wish_event event = {.wish = good};
    dv_wishes *a, *b;
    assert_int_equal(dv_wishes_change(&a, NULL, &event), 0);
    assert_true(dv_wishes_equal(NULL, NULL));
    assert_true(dv_wishes_equal(a, a));
    assert_false(dv_wishes_equal(a, NULL));
    assert_false(dv_wishes_equal(NULL, a));
    for (int field = 0; field < 7; field++) {
        event.wish = good;
        if (field == 1) event.wish.kind = DV_WISH_MOVE;
        if (field == 2) event.wish.name = "b";
        if (field == 3) event.wish.value = "n";
        if (field == 4) event.wish.by = "bert";
        if (field == 5) event.wish.why = "because";
        if (field == 6) event.wish.at_ms = 2;
        assert_int_equal(dv_wishes_change(&b, NULL, &event), 0);
        assert_int_equal(dv_wishes_equal(a, b), field == 0);
        dv_wishes_unref(b);
    }
    dv_wishes_unref(a);
}

/* A text with more wishes than may stand is refused, though each of them is good. */
TEST(test_too_many) {
    size_t room = (DV_WISHES_MAX + 1) * (size_t)100, at = 0;
    char *text = malloc(room);
    assert_non_null(text);
    for (int n = 0; n <= DV_WISHES_MAX; n++)
        at += (size_t)snprintf(
            text + at, room - at,
            "%c{\"kind\":\"pin\",\"name\":\"i%04d\",\"value\":\"m\",\"by\":\"\",\"at_ms\":1,\"why\":\"\"}",
            n ? ',' : '[', n);
    text[at++] = ']';
    dv_wishes *read;
    dv_plan_fault fault = {0};
    assert_int_equal(dv_wishes_parse(&read, text, at, &fault), DIVVY_EPROTO);
    assert_null(read);
    assert_string_equal(fault.why, "has too many wishes");
    free(text);
}

/* ---- memory ---- */

/* Where an allocation fails a list is read, written and changed not at all, and nothing of it is left. */
TEST(test_scarce_wishes) {
    static const char text[] =
        "[{\"kind\":\"need\",\"name\":\"a%2Fb*\",\"value\":\"gpu\",\"by\":\"\",\"at_ms\":1,\"why\":\"\"},"
        "{\"kind\":\"pin\",\"name\":\"%FF\",\"value\":\"m\",\"by\":\"x\",\"at_ms\":2,\"why\":\"y\"}]";
    dv_wishes *read = NULL;
    dv_wish_event event = {.wish = good};
    int failures = 0, error = DIVVY_ENOMEM;
    while (error) {
        scarce_after = failures++;
        error = dv_wishes_parse(&read, text, strlen(text), NULL);
        scarce_after = -1;
        if (error) assert_int_equal(error, DIVVY_ENOMEM);
        if (error) assert_null(read);
    }
    assert_true(failures > 10);
    dv_wishes *next;
    dv_plan_text printed;
    for (error = DIVVY_ENOMEM, failures = 0; error; failures++) {
        scarce_after = failures;
        error = dv_wishes_change(&next, read, &event);
        scarce_after = -1;
        if (error) assert_int_equal(error, DIVVY_ENOMEM);
        if (error) assert_null(next);
    }
    assert_true(failures > 10);
    for (error = DIVVY_ENOMEM, failures = 0; error; failures++) {
        scarce_after = failures;
        error = dv_wishes_print(&printed, next);
        scarce_after = -1;
        if (error) assert_int_equal(error, DIVVY_ENOMEM);
    }
    assert_true(failures > 1);
    free(printed.bytes);
    dv_wishes_unref(next);
    dv_wishes_unref(read);
}

/* So are loads. */
TEST(test_scarce_loads) {
    static const char text[] =
        "{\"unit\":\"rows/s\",\"classes\":\"6400ff\",\"moved\":[[\"anna\",1500,0,2],[\"bert\",1100,1]]}";
    dv_loads *read = NULL;
    int failures = 0, error = DIVVY_ENOMEM;
    while (error) {
        scarce_after = failures++;
        error = dv_loads_parse(&read, 3, text, strlen(text), NULL);
        scarce_after = -1;
        if (error) assert_int_equal(error, DIVVY_ENOMEM);
        if (error) assert_null(read);
    }
    assert_true(failures > 6);
    assert_int_equal(read->giver_count, 2);
    dv_plan_text printed;
    for (error = DIVVY_ENOMEM, failures = 0; error; failures++) {
        scarce_after = failures;
        error = dv_loads_print(&printed, read);
        scarce_after = -1;
        if (error) assert_int_equal(error, DIVVY_ENOMEM);
    }
    assert_int_equal(printed.count, strlen(text));
    assert_memory_equal(printed.bytes, text, printed.count);
    free(printed.bytes);
    dv_loads_unref(read);
}

/* Loads that say something else than their readers know are refused, with the cause. */
TEST(test_hostile_loads) {
#define LOADS(unit, classes, moved) "{\"unit\":\"" unit "\",\"classes\":\"" classes "\",\"moved\":[" moved "]}"
    static const struct {
        const char *text, *why;
    } faults[] = {
        {LOADS("a b", "640000", ""), "has something else where a unit should be"},
        {LOADS("rows", "6400", ""), "has another number of loads than of items"},
        {LOADS("rows", "g40000", ""), "has a load that is no number"},
        {LOADS("rows", "6g0000", ""), "has a load that is no number"},
        {LOADS("rows", "640000", "[]"), "does not tell who gave items"},
        {LOADS("rows", "640000", "[\"anna\"]"), "does not tell a giver's load"},
        {LOADS("rows", "640000", "[\"anna\",1]"), "has a giver of no items"},
        {LOADS("rows", "640000", "[\"anna\",1,1,0]"), "has given items that are not in order"},
        {LOADS("rows", "640000", "[\"anna\",1,1,1]"), "has given items that are not in order"},
    };
    dv_loads *read;
    dv_plan_fault fault = {0};
    for (size_t n = 0; n < COUNT(faults); n++) {
        assert_int_equal(dv_loads_parse(&read, 3, faults[n].text, strlen(faults[n].text), &fault), DIVVY_EPROTO);
        assert_null(read);
        assert_string_equal(fault.why, faults[n].why);
    }
    assert_int_equal(dv_loads_parse(&read, 3, "{}", 2, &fault), DIVVY_EPROTO);
    assert_string_equal(fault.why, "is too short for its number of items");
    assert_int_equal(dv_loads_parse(&read, 3, LOADS("rows", "640000", "[\"anna\",1,3]"), 57, &fault), DIVVY_EPROTO);
}

/* Two lists of loads are equal when units, classes and givers are, to the last item given. */
TEST(test_equal_loads) {
    static const char *const texts[] = {
        LOADS("rows", "640000", "[\"anna\",7,0,2]"), LOADS("rpws", "640000", "[\"anna\",7,0,2]"),
        LOADS("rows", "650000", "[\"anna\",7,0,2]"), LOADS("rows", "640000", "[\"bert\",7,0,2]"),
        LOADS("rows", "640000", "[\"anna\",8,0,2]"), LOADS("rows", "640000", "[\"anna\",7,0,1]"),
        LOADS("rows", "640000", "[\"anna\",7,0]"),   LOADS("rows", "640000", ""),
    };
    dv_loads *all[COUNT(texts)];
    for (size_t i = 0; i < COUNT(texts); i++)
        assert_int_equal(dv_loads_parse(&all[i], 3, texts[i], strlen(texts[i]), NULL), 0);
    for (size_t i = 0; i < COUNT(texts); i++)
        for (size_t j = 0; j < COUNT(texts); j++) assert_int_equal(dv_loads_equal(all[i], all[j]), i == j);
    assert_false(dv_loads_equal(all[0], NULL));
    assert_false(dv_loads_equal(NULL, all[0]));
    assert_false(dv_loads_same_givers(NULL, all[0]));
    assert_true(dv_loads_same_givers(NULL, all[COUNT(texts) - 1]));
    for (size_t i = 0; i < COUNT(texts); i++) dv_loads_unref(all[i]);
}
