/* Tests of plan/history.h: what changes from plan to plan, as a text. SPDX-License-Identifier: Apache-2.0 */
#include "plan/history.h"
#include "plan_fixture.h"

#define NOBODY "{\"count\":0,\"names\":[]}"
#define CHANGE(fields) "{\"changes\":[{" fields "}]}"
#define NUMBERS "\"generation\":7,\"reason\":\"join\",\"at_ms\":5,\"took_ms\":-1,\"moved\":3,"
#define WHO(joined, left) "\"joined\":" joined ",\"left\":" left

static dv_plan_history history;

static int parse(const char *text, dv_plan_fault *fault) {
    size_t bytes = strlen(text);
    char *exact = malloc(bytes + 1); /* of its size, for the sanitizers */
    assert_non_null(exact);
    char *from = exact + 1;
    memcpy(from, text, bytes);
    int error = dv_plan_history_parse(&history, from, bytes, fault);
    free(exact);
    return error;
}

/* ---- the text ---- */

/* What a writer prints is what the protocol says, to the byte, and is read as the same. */
TEST(test_text) {
    static const char text[] =
        "{\"changes\":[{" NUMBERS WHO("{\"count\":9,\"names\":[\"a\",\"q\\\"\\u0001\"]}", NOBODY) "}]}";
    dv_plan_text printed;
    assert_int_equal(parse(text, NULL), 0);
    assert_int_equal(history.count, 1);
    const dv_plan_change *c = &history.changes[0];
    assert_int_equal(c->generation, 7);
    assert_string_equal(c->reason, "join");
    assert_int_equal(c->at_ms, 5);
    assert_int_equal(c->took_ms, -1);
    assert_int_equal(c->moved, 3);
    assert_int_equal(c->joined.count, 9);
    assert_int_equal(c->joined.named, 2);
    assert_string_equal(c->joined.names[1], "q\"\x01");
    assert_int_equal(c->left.count, 0);
    assert_int_equal(dv_plan_print_history(&printed, &history), 0);
    assert_int_equal(printed.count, sizeof text - 1);
    assert_memory_equal(printed.bytes, text, printed.count);
    free(printed.bytes);
}

/* Keys in any order, keys and reasons of a later release: all are taken. */
TEST(test_other_writers) {
    assert_int_equal(
        parse(CHANGE("\"new\":[1],\"moved\":3," WHO(NOBODY, NOBODY) ",\"took_ms\":0,\"at_ms\":0,\"reason\":"
                                                                    "\"moonphase\",\"generation\":1"),
              NULL),
        0);
    assert_string_equal(history.changes[0].reason, "moonphase");
    assert_int_equal(parse("{\"changes\":[],\"more\":{}}", NULL), 0);
    assert_int_equal(history.count, 0);
}

/* What a history must not say is refused, and so is each beginning of one; nothing is left of it. */
TEST(test_refused) {
    static const char good[] = "{\"changes\":[{" NUMBERS WHO(NOBODY, NOBODY) "}]}";
    static const char *const texts[] = {
        "",
        "[]",
        "{}",
        "{\"changes\":7}",
        "{\"changes\":[]}x",
        "{\"changes\":[],\"changes\":[]}",
        "{\"changes\":[{}]}",
        CHANGE("\"reason\":\"join\",\"at_ms\":5,\"took_ms\":-1,\"moved\":3," WHO(NOBODY, NOBODY)),
        CHANGE("\"generation\":0,\"reason\":\"join\",\"at_ms\":5,\"took_ms\":-1,\"moved\":3," WHO(NOBODY, NOBODY)),
        CHANGE("\"generation\":1,\"reason\":\"\",\"at_ms\":5,\"took_ms\":-1,\"moved\":3," WHO(NOBODY, NOBODY)),
        CHANGE("\"generation\":1,\"reason\":\"J\",\"at_ms\":5,\"took_ms\":-1,\"moved\":3," WHO(NOBODY, NOBODY)),
        CHANGE("\"generation\":1,\"reason\":\"abcdefghijklmnopq\",\"at_ms\":5,\"took_ms\":-1,\"moved\":3," WHO(NOBODY,
                                                                                                               NOBODY)),
        CHANGE("\"generation\":1,\"reason\":\"join\",\"at_ms\":-1,\"took_ms\":-1,\"moved\":3," WHO(NOBODY, NOBODY)),
        CHANGE("\"generation\":1,\"reason\":\"join\",\"at_ms\":5,\"took_ms\":-2,\"moved\":3," WHO(NOBODY, NOBODY)),
        CHANGE("\"generation\":1,\"reason\":\"join\",\"at_ms\":5,\"took_ms\":0,\"moved\":1000001," WHO(NOBODY, NOBODY)),
        CHANGE(NUMBERS WHO("{\"count\":10001,\"names\":[]}", NOBODY)),
        CHANGE(NUMBERS WHO("{\"count\":1,\"names\":[\"a\",\"b\"]}", NOBODY)),
        CHANGE(NUMBERS WHO("{\"count\":9,\"names\":[\"1\",\"2\",\"3\",\"4\",\"5\",\"6\",\"7\",\"8\",\"9\"]}", NOBODY)),
        CHANGE(NUMBERS WHO("{\"count\":1,\"names\":[\"\xff\"]}", NOBODY)),
        CHANGE(NUMBERS WHO("{\"count\":1,\"names\":[\"\\u0000\"]}", NOBODY)),
        CHANGE(NUMBERS WHO(
            "{\"count\":1,\"names\":[\"01234567890123456789012345678901234567890123456789012345678901234\"]}", NOBODY)),
    };
    dv_plan_fault fault;
    for (size_t i = 0; i < COUNT(texts); i++) {
        fault = (dv_plan_fault){0};
        assert_int_equal(parse(texts[i], &fault), DIVVY_EPROTO);
        assert_int_equal(history.count, 0);
        assert_non_null(fault.why);
    }
    for (size_t bytes = 0; bytes < sizeof good - 1; bytes++) {
        assert_int_equal(dv_plan_history_parse(&history, good, bytes, NULL), DIVVY_EPROTO);
    }
    assert_int_equal(parse(good, NULL), 0);
}

static dv_plan_change wide_change(uint64_t generation, char letter) {
    dv_plan_change c = {.generation = generation, .reason = "join", .at_ms = DV_PLAN_INTEGER_MAX, .took_ms = 1};
    c.joined.count = c.left.count = 100;
    c.joined.named = c.left.named = DV_PLAN_NAMED_MAX;
    for (size_t n = 0; n < DV_PLAN_NAMED_MAX; n++) {
        memset(c.joined.names[n], letter, DV_PLAN_NAME_BYTES_MAX);
        memset(c.left.names[n], '\x01', DV_PLAN_NAME_BYTES_MAX); /* six bytes each in the text */
    }
    return c;
}

/* 64 changes fit whatever they name: the oldest do without names, and the newest keeps its own. One change more than
 * 64, or a byte more than 16 KiB, is refused. */
TEST(test_bounds) {
    dv_plan_text printed;
    dv_plan_history *whole = calloc(1, sizeof *whole);
    assert_non_null(whole);
    for (size_t i = 0; i < DV_PLAN_CHANGES_MAX; i++)
        whole->changes[whole->count++] = wide_change(DV_PLAN_INTEGER_MAX - i, 'n');
    assert_int_equal(dv_plan_print_history(&printed, whole), 0);
    assert_true(printed.count <= DV_PLAN_HISTORY_BYTES_MAX);
    assert_int_equal(dv_plan_history_parse(&history, printed.bytes, printed.count, NULL), 0);
    assert_int_equal(history.count, DV_PLAN_CHANGES_MAX);
    for (size_t i = 0; i < history.count; i++) {
        assert_int_equal(history.changes[i].generation, whole->changes[i].generation);
        assert_int_equal(history.changes[i].joined.count, 100);
        if (i > 0) assert_true(history.changes[i].joined.named >= history.changes[i - 1].joined.named);
    }
    assert_int_equal(history.changes[0].joined.named, 0);
    assert_int_equal(history.changes[history.count - 1].joined.named, DV_PLAN_NAMED_MAX);
    free(printed.bytes);

    static char text[DV_PLAN_HISTORY_BYTES_MAX + 64];
    size_t bytes = (size_t)sprintf(text, "{\"changes\":[],\"x\":\"");
    memset(text + bytes, 'x', DV_PLAN_HISTORY_BYTES_MAX - bytes);
    strcpy(text + DV_PLAN_HISTORY_BYTES_MAX - 2, "\"}");
    assert_int_equal(dv_plan_history_parse(&history, text, DV_PLAN_HISTORY_BYTES_MAX, NULL), 0);
    strcpy(text + DV_PLAN_HISTORY_BYTES_MAX - 2, "x\"}");
    assert_int_equal(dv_plan_history_parse(&history, text, DV_PLAN_HISTORY_BYTES_MAX + 1, NULL), DIVVY_EPROTO);

    static char many[DV_PLAN_HISTORY_BYTES_MAX];
    bytes = (size_t)sprintf(many, "{\"changes\":[");
    for (size_t i = 0; i <= DV_PLAN_CHANGES_MAX; i++)
        bytes += (size_t)sprintf(many + bytes, "%s{" NUMBERS WHO(NOBODY, NOBODY) "}", i > 0 ? "," : "");
    sprintf(many + bytes, "]}");
    assert_int_equal(parse(many, NULL), DIVVY_EPROTO);
    free(whole);
}

/* ---- what changes ---- */

static dv_plan *plan_of(uint64_t generation, dv_plan_set *set, const uint32_t *owners) {
    dv_plan *plan = dv_plan_make(set);
    assert_non_null(plan);
    plan->header.generation = generation;
    plan->header.reason = DV_PLAN_JOIN;
    memcpy(plan->owners, owners, set->count * sizeof *owners);
    return plan;
}

static dv_plan_change change_between(dv_plan *before, dv_plan *after) {
    static dv_plan_change c;
    dv_plan_change_tell(&c, before, after);
    dv_plan_free(before);
    dv_plan_free(after);
    return c;
}

/* Of a first plan, and of one after a root that only held the place, all have joined, and nothing has moved. */
TEST(test_first) {
    const uint32_t owners[] = {0, 1, 1};
    for (int place = 0; place < 2; place++) {
        dv_plan *before = place ? plan_of(0, numbered_set("i", 0), owners) : NULL;
        dv_plan *after = plan_of(1, numbered_set("i", 3), owners);
        add_member(after, (dv_plan_member){.slot = 0, .key = "n1,a=2-one-two"});
        add_member(after, (dv_plan_member){.slot = 1, .is_static = true, .key = "host-2"});
        dv_plan_change c = change_between(before, after);
        assert_int_equal(c.generation, 1);
        assert_string_equal(c.reason, "join");
        assert_int_equal(c.moved, 0);
        assert_int_equal(c.joined.count, 2);
        assert_string_equal(c.joined.names[0], "one-two");
        assert_string_equal(c.joined.names[1], "host-2");
        assert_int_equal(c.left.count, 0);
        assert_int_equal(c.at_ms, 0);
        assert_int_equal(c.took_ms, -1);
    }
}

/* A member that goes, and one that takes its slot: one left, one joined, and the items of the slot have moved. What had
 * no owner has not, nor what is dealt no longer. */
TEST(test_slot_reused) {
    const uint32_t had[] = {0, 0, 1, NONE, 1}, has[] = {0, 1, 1, 0, NONE};
    dv_plan *before = plan_of(4, numbered_set("i", 5), had), *after = plan_of(5, numbered_set("i", 5), has);
    add_member(before, (dv_plan_member){.slot = 0, .key = "n1-old"});
    add_member(before, (dv_plan_member){.slot = 1, .key = "n2-stays"});
    add_member(after, (dv_plan_member){.slot = 0, .key = "n3-new"});
    add_member(after, (dv_plan_member){.slot = 1, .key = "n2-stays"});
    dv_plan_change c = change_between(before, after);
    assert_int_equal(c.moved, 3); /* the first by its slot, the second, and the last, which lost its owner */
    assert_int_equal(c.joined.count, 1);
    assert_string_equal(c.joined.names[0], "new");
    assert_int_equal(c.left.count, 1);
    assert_string_equal(c.left.names[0], "old");

    static const char *const names[] = {"i000000", "i000002", "i000003", "i000009"};
    const uint32_t first[] = {0, 0, 0}, then[] = {0, 0, 1, 1};
    before = plan_of(4, numbered_set("i", 3), first);
    after = plan_of(5, dv_plan_set_make(names, COUNT(names)), then);
    for (uint32_t slot = 0; slot < 2; slot++) {
        add_member(before, (dv_plan_member){.slot = slot, .key = slot ? "n2-b" : "n1-a"});
        add_member(after, (dv_plan_member){.slot = slot, .key = slot ? "n2-b" : "n1-a"});
    }
    c = change_between(before, after);
    assert_int_equal(c.moved, 1);
    assert_int_equal(c.joined.count + c.left.count, 0);
}

/* Who is marked as leaving has left, and is not told again when it goes. Who is absent has left; that it is given up is
 * told again; that it is back is a join. */
TEST(test_comings_and_goings) {
    static const struct {
        bool was, is; /* in the plan */
        const char *was_leaving, *is_leaving;
        int64_t was_absent, is_absent;
        uint32_t joined, left;
    } cases[] = {
        {true, true, "", "", 0, 0, 0, 0},    {true, true, "", "n", 0, 0, 0, 1},
        {true, false, "n", "", 0, 0, 0, 0},  {true, true, "n", "", 0, 0, 1, 0},
        {true, true, "", "", 0, 0x1a, 0, 1}, {true, true, "", "", 0x1a, 0x1a, 0, 0},
        {true, true, "", "", 0x1a, 0, 1, 0}, {true, false, "", "", 0x1a, 0, 0, 1},
        {true, false, "", "", 0, 0, 0, 1},   {false, true, "", "", 0, 0, 1, 0},
        {false, true, "", "n", 0, 0, 0, 0},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const uint32_t none = NONE;
        dv_plan *before = plan_of(1, numbered_set("i", 0), &none), *after = plan_of(2, numbered_set("i", 0), &none);
        dv_plan_member m = {.slot = 7, .is_static = true, .key = (char *)(uintptr_t) "host"};
        m.leaving = (char *)(uintptr_t)cases[i].was_leaving;
        m.absent = cases[i].was_absent;
        if (cases[i].was) add_member(before, m);
        m.leaving = (char *)(uintptr_t)cases[i].is_leaving;
        m.absent = cases[i].is_absent;
        if (cases[i].is) add_member(after, m);
        dv_plan_change c = change_between(before, after);
        assert_int_equal(c.joined.count, cases[i].joined);
        assert_int_equal(c.left.count, cases[i].left);
    }
}

/* Eight are named of many, each within 64 bytes, and none is cut inside a character. */
TEST(test_names) {
    const uint32_t none = NONE;
    char key[100];
    dv_plan *after = plan_of(1, numbered_set("i", 0), &none);
    for (uint32_t slot = 0; slot < 20; slot++) {
        snprintf(key, sizeof key, "%02u%.61s\xc3\xa9tail", slot,
                 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
        add_member(after, (dv_plan_member){.slot = slot, .is_static = true, .key = key});
    }
    dv_plan_change c = change_between(NULL, after);
    assert_int_equal(c.joined.count, 20);
    assert_int_equal(c.joined.named, DV_PLAN_NAMED_MAX);
    assert_int_equal(strlen(c.joined.names[7]), 63);
    assert_memory_equal(c.joined.names[7], "07xxx", 5);
}

/* ---- the next text ---- */

static void take_next(dv_plan_memory *memory, uint64_t generation, dv_plan_handed handed) {
    const uint32_t none = NONE;
    const dv_stat stat = {.mzxid = (int64_t)generation * 16, .mtime_ms = (int64_t)generation * 1000};
    dv_plan *next = plan_of(generation, numbered_set("i", 0), &none);
    dv_plan_text text;
    assert_int_equal(dv_plan_history_next(&text, memory, next, handed), 0);
    assert_int_equal(dv_plan_history_parse(&history, text.bytes, text.count, NULL), 0);
    dv_plan_memory_recall(memory, "00000000001aaaaaaaaaaa1", &text, &stat);
    dv_plan_free(next);
}

/* The next writer fills in when a plan was written, and how long it took if that is said of this very plan; at 64 the
 * oldest goes. */
TEST(test_next) {
    dv_plan_memory memory = {.standing = DV_PLAN_MISSING};
    for (uint64_t g = 1; g <= 70; g++) {
        int64_t before = (int64_t)(g - 1);
        take_next(&memory, g,
                  (dv_plan_handed){before * 16 + (g == 9), g == 5 ? 0 : before * 1000 + (g == 7 ? -5 : 42)});
    }
    assert_int_equal(history.count, DV_PLAN_CHANGES_MAX);
    assert_int_equal(history.changes[0].generation, 7);
    assert_int_equal(history.changes[0].at_ms, 7000);
    assert_int_equal(history.changes[0].took_ms, 42);
    assert_int_equal(history.changes[1].took_ms, -1); /* What was said is of another plan. */
    assert_int_equal(history.changes[62].at_ms, 69000);
    assert_int_equal(history.changes[63].at_ms, 0);
    assert_int_equal(history.changes[63].took_ms, -1);
    dv_plan_memory_clear(&memory);
}

/* A text that nobody can read counts as none, and so does one that is too long. */
TEST(test_next_after_nonsense) {
    static char large[DV_PLAN_HISTORY_BYTES_MAX + 1];
    memset(large, ' ', sizeof large);
    const dv_stat stat = {.mzxid = 5, .mtime_ms = 5};
    const dv_reply replies[] = {{.stat = &stat, .data = NULL, .data_bytes = 0},
                                {.stat = &stat, .data = "{\"changes\":[{", .data_bytes = 13},
                                {.stat = &stat, .data = large, .data_bytes = sizeof large}};
    for (size_t i = 0; i < COUNT(replies); i++) {
        dv_plan_memory memory = {.standing = DV_PLAN_MISSING};
        assert_int_equal(dv_plan_memory_take_past(&memory, "00000000001aaaaaaaaaaa1", &replies[i]), 0);
        assert_true(memory.past.text.count <= DV_PLAN_HISTORY_BYTES_MAX);
        take_next(&memory, 3, (dv_plan_handed){5, 6});
        assert_int_equal(history.count, 1);
        assert_int_equal(history.changes[0].generation, 3);
        dv_plan_memory_clear(&memory);
    }
}
