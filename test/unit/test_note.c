/* Tests of handover/note.h. SPDX-License-Identifier: Apache-2.0 */
#include "lib/scarce.h"
#include "lib/seed.h"
#include "note_fixture.h"

#define LAST_ZXID "7fffffffffffffff"

static uint64_t chance_state;

/* Returns a number below `bound`, by Knuth's MMIX generator. */
static size_t chance(size_t bound) {
    chance_state = chance_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (size_t)(chance_state >> 33) % bound;
}

/* Prints a note that fits whole. */
static char *print(const dv_note *note) {
    size_t leaving, ready, given;
    char *text = dv_note_print(note, &leaving, &ready, &given);
    assert_non_null(text);
    assert_int_equal(leaving, note->leaving_count);
    assert_int_equal(ready, note->ready_count);
    assert_int_equal(given, note->given_count);
    return text;
}

static void assert_items_equal(const uint32_t *one, size_t one_count, const uint32_t *other, size_t other_count) {
    assert_int_equal(one_count, other_count);
    if (one_count > 0) assert_memory_equal(one, other, one_count * sizeof *one);
}

static void assert_given_equal(const dv_note_given *one, const dv_note_given *other, size_t count) {
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(one[i].item, other[i].item);
        assert_int_equal(one[i].sequence, other[i].sequence);
        assert_true(one[i].seen == other[i].seen);
    }
}

/* --- the text ---------------------------------------------------------------------------------------------------- */

/* A note is these bytes, and is read from them again. Neighbours of one r are one group, others are not. */
TEST(test_text) {
    static const char text[] = "{\"v\":1," SET ",\"leaving\":[0,7,999],\"ready\":[1],"
                               "\"given\":[[\"1f00000a2\",[3,0,4,17]],[\"5\",[3,2147483647]],[\"1f00000a2\",[998,1]]]}";
    uint32_t leaving[] = {0, 7, 999}, ready[] = {1};
    dv_note_given given[] = {{3, 0, 0x1f00000a2}, {4, 17, 0x1f00000a2}, {3, INT32_MAX, 5}, {998, 1, 0x1f00000a2}};
    dv_note note = {.set_count = 1000,
                    .set_crc = 0x0badcafe,
                    .set_hash = UINT64_C(0x0123456789abcdef),
                    .leaving = leaving,
                    .leaving_count = COUNT(leaving),
                    .ready = ready,
                    .ready_count = COUNT(ready),
                    .given = given,
                    .given_count = COUNT(given)};
    char *printed = print(&note);
    assert_string_equal(printed, text);
    free(printed);
    dv_note read = parse(text);
    assert_int_equal(read.set_count, 1000);
    assert_int_equal(read.set_crc, 0x0badcafe);
    assert_true(read.set_hash == note.set_hash);
    assert_items_equal(read.leaving, read.leaving_count, leaving, COUNT(leaving));
    assert_items_equal(read.ready, read.ready_count, ready, COUNT(ready));
    assert_int_equal(read.given_count, COUNT(given));
    assert_given_equal(read.given, given, COUNT(given));
    dv_note_clear(&read);
    assert_empty(&read);
    dv_note_clear(&read); /* an empty one too */
}

/* A note that says nothing is a text too. */
TEST(test_empty) {
    dv_note note = {0};
    char *text = print(&note);
    assert_string_equal(text, "{\"v\":1,\"set\":{\"count\":0,\"crc\":\"00000000\",\"hash\":\"0000000000000000\"},"
                              "\"leaving\":[],\"ready\":[],\"given\":[]}");
    note = parse(text);
    assert_empty(&note);
    assert_false(dv_note_is_leaving(&note, 0) || dv_note_is_ready(&note, 0) || dv_note_gives(&note, 0, 1, 1));
    free(text);
}

/* Keys stand in any order behind the version, and unknown ones are passed over. */
TEST(test_other_keys) {
    dv_note note = parse("{\"v\":1,\"new\":{\"a\":[1,{\"b\":null}]},\"given\":[],\"ready\":[2],\"x\":\"\\u00e4\"," SET
                         ",\"leaving\":[3]}");
    assert_true(dv_note_is_ready(&note, 2) && dv_note_is_leaving(&note, 3));
    dv_note_clear(&note);
}

/* A note is of the set that has its count, its crc and its hash. */
TEST(test_is_of) {
    dv_note note = parse("{\"v\":1," SET ",\"leaving\":[],\"ready\":[],\"given\":[]}");
    const dv_plan_set set = {.count = 1000, .crc = 0x0badcafe, .hash = UINT64_C(0x0123456789abcdef)};
    dv_plan_set count = set, crc = set, hash = set;
    count.count--;
    crc.crc++;
    hash.hash ^= UINT64_C(1) << 63;
    assert_true(dv_note_is_of(&note, &set));
    assert_false(dv_note_is_of(&note, &count) || dv_note_is_of(&note, &crc) || dv_note_is_of(&note, &hash));
    dv_note_clear(&note);
}

/* --- by chance --------------------------------------------------------------------------------------------------- */

/* Fills a list with some of the items. Returns how many. */
static size_t draw_items(uint32_t *items, size_t set_count) {
    size_t count = 0, one_in = 1 + chance(20);
    for (uint32_t i = 0; i < set_count; i++) {
        if (chance(one_in) == 0) items[count++] = i;
    }
    return count;
}

/* Numbers are mostly small and often the same, and at times at their bounds. */
static dv_note_given draw_given(size_t set_count) {
    static const int32_t sequences[] = {0, 1, INT32_MAX - 1, INT32_MAX};
    static const int64_t seen[] = {1, INT64_MAX - 1, INT64_MAX};
    return (dv_note_given){
        .item = (uint32_t)chance(set_count),
        .sequence = chance(8) == 0 ? sequences[chance(COUNT(sequences))] : (int32_t)chance(20),
        .seen = chance(8) == 0 ? seen[chance(COUNT(seen))] : (int64_t)(1 + chance(5)),
    };
}

static bool is_listed(const uint32_t *items, size_t count, uint32_t item) {
    for (size_t i = 0; i < count; i++) {
        if (items[i] == item) return true;
    }
    return false;
}

/* T6 word for word. */
static bool gives(const dv_note *note, uint32_t item, int64_t sequence, int64_t czxid) {
    for (size_t i = 0; i < note->given_count; i++) {
        const dv_note_given *g = &note->given[i];
        if (g->item == item && sequence == (int64_t)g->sequence + 1 && sequence <= INT32_MAX && czxid <= g->seen)
            return true;
    }
    return false;
}

static void assert_same_answers(const dv_note *made, const dv_note *read) {
    for (uint32_t i = 0; i <= made->set_count; i++) {
        assert_int_equal(dv_note_is_leaving(read, i), is_listed(made->leaving, made->leaving_count, i));
        assert_int_equal(dv_note_is_ready(read, i), is_listed(made->ready, made->ready_count, i));
    }
    for (int i = 0; i < 400; i++) {
        dv_note_given asked = draw_given(made->set_count + 1);
        if (made->given_count > 0 && chance(2) == 0) asked = made->given[chance(made->given_count)];
        int32_t sequence = asked.sequence < INT32_MAX ? asked.sequence + (int32_t)chance(2) : asked.sequence;
        int64_t czxid = asked.seen < INT64_MAX ? asked.seen + (int64_t)chance(2) : asked.seen;
        bool wanted = gives(made, asked.item, sequence, czxid);
        assert_int_equal(dv_note_gives(read, asked.item, sequence, czxid), wanted);
    }
}

/* Whatever a note says is read from its text again, and all questions are answered as the lists say. */
TEST(test_random_round_trips) {
    enum { ITEMS = 300, GIVEN = 200 };
    uint32_t leaving[ITEMS], ready[ITEMS];
    dv_note_given given[GIVEN];
    chance_state = dv_test_seed("unit_note");
    for (int run = 0; run < 300; run++) {
        dv_note note = {.set_count = 1 + chance(ITEMS),
                        .set_crc = (uint32_t)chance(UINT32_MAX),
                        .set_hash = (uint64_t)chance(UINT32_MAX) << 32 | chance(UINT32_MAX),
                        .leaving = leaving,
                        .ready = ready,
                        .given = given,
                        .given_count = chance(GIVEN + 1)};
        note.leaving_count = draw_items(leaving, note.set_count);
        note.ready_count = draw_items(ready, note.set_count);
        for (size_t i = 0; i < note.given_count; i++) given[i] = draw_given(note.set_count);
        char *text = print(&note);
        dv_note read = parse(text);
        assert_items_equal(read.leaving, read.leaving_count, leaving, note.leaving_count);
        assert_items_equal(read.ready, read.ready_count, ready, note.ready_count);
        assert_int_equal(read.given_count, note.given_count);
        assert_given_equal(read.given, given, note.given_count);
        assert_same_answers(&note, &read);
        char *again = print(&read);
        assert_string_equal(again, text);
        free(again);
        free(text);
        dv_note_clear(&read);
    }
}

/* --- T6 ---------------------------------------------------------------------------------------------------------- */

/* The place behind the one that was given up is given the item, if it stood when its member's note said ready. */
TEST(test_gives) {
    dv_note note =
        parse("{\"v\":1," SET ",\"leaving\":[],\"ready\":[],\"given\":[[\"64\",[5,10,6,2147483647,7,2147483646,8,0]],"
              "[\"c8\",[5,10]],[\"96\",[5,10]],[\"" LAST_ZXID "\",[9,4]]]}");
    assert_true(dv_note_gives(&note, 5, 11, 200));  /* c == r, of the highest r */
    assert_false(dv_note_gives(&note, 5, 11, 201)); /* c > r */
    assert_true(dv_note_gives(&note, 5, 11, 1));
    assert_false(dv_note_gives(&note, 5, 10, 1)); /* q itself */
    assert_false(dv_note_gives(&note, 5, 12, 1)); /* somebody may stand between */
    assert_false(dv_note_gives(&note, 4, 11, 1)); /* other items */
    assert_false(dv_note_gives(&note, 999, 11, 1));
    assert_true(dv_note_gives(&note, 7, INT32_MAX, 100));
    assert_false(dv_note_gives(&note, 6, INT32_MIN, 1)); /* nothing follows on INT32_MAX */
    assert_false(dv_note_gives(&note, 6, INT32_MAX, 1));
    assert_false(dv_note_gives(&note, 6, 0, 1));
    assert_true(dv_note_gives(&note, 8, 1, 100));
    assert_false(dv_note_gives(&note, 8, 0, 1));
    assert_false(dv_note_gives(&note, 8, -1, 1));
    assert_false(dv_note_gives(&note, 8, 1, 0)); /* its czxid is not known */
    assert_false(dv_note_gives(&note, 8, 1, -1));
    assert_true(dv_note_gives(&note, 9, 5, INT64_MAX));
    dv_note_clear(&note);
}

/* --- what does not fit ------------------------------------------------------------------------------------------- */

enum { MANY = 20000 };
static uint32_t numbers[MANY];
static dv_note_given many[MANY];

/* Returns a note of the first so many items in each list: items of six digits, 7 bytes each with the comma. */
static dv_note large(size_t leaving, size_t ready, size_t given) {
    for (uint32_t i = 0; i < MANY; i++) {
        numbers[i] = 100000 + i;
        many[i] = (dv_note_given){.item = 100000 + i, .sequence = (int32_t)i % 10, .seen = 0x10 + i / 100};
    }
    return (dv_note){.set_count = DV_PLAN_ITEMS_MAX,
                     .leaving = numbers,
                     .leaving_count = leaving,
                     .ready = numbers,
                     .ready_count = ready,
                     .given = many,
                     .given_count = given};
}

/* Prints the note, and reads the text: it has what the counts say, and one more would not fit. */
static void assert_cut(const dv_note *note, size_t leaving, size_t ready, size_t given, size_t one_more) {
    size_t told[3];
    char *text = dv_note_print(note, &told[0], &told[1], &told[2]);
    assert_non_null(text);
    if (told[0] != leaving || told[1] != ready || told[2] != given)
        fail_msg("leaving %zu, ready %zu, given %zu", told[0], told[1], told[2]);
    size_t bytes = strlen(text);
    assert_true(bytes <= DV_NOTE_BYTES_MAX && bytes + one_more > DV_NOTE_BYTES_MAX);
    dv_note read = parse(text);
    assert_items_equal(read.leaving, read.leaving_count, note->leaving, leaving);
    assert_items_equal(read.ready, read.ready_count, note->ready, ready);
    assert_int_equal(read.given_count, given);
    assert_given_equal(read.given, note->given + (note->given_count - given), given);
    free(text);
    dv_note_clear(&read);
}

/* First the oldest of what was given goes, then the last that leave, then the last that are ready. The rest has
 * DV_NOTE_BYTES_MAX - 116 bytes. */
TEST(test_cut) {
    enum {
        HEAD = sizeof "{\"v\":1,\"set\":{\"count\":1000000,\"crc\":\"00000000\",\"hash\":\"0000000000000000\"},"
                      "\"leaving\":[],\"ready\":[],\"given\":[]}" -
               1,
        ROOM = DV_NOTE_BYTES_MAX - HEAD,
        ALL = (ROOM + 1) / 7
    };
    dv_note note = large(10, 20, MANY);
    size_t left = ROOM - (10 * 7 - 1) - (20 * 7 - 1) + 1, given = 0;
    for (size_t i = MANY; left >= 9; given++) { /* 9 bytes each, and `["dd",[` and `]]` for each hundred */
        i--;
        size_t bytes = 9 + (i % 100 == 99 ? sizeof "[\"dd\",[]]" - 1 : 0);
        if (bytes > left) break;
        left -= bytes;
    }
    assert_true(given > 7000 && given < 7300);
    assert_cut(&note, 10, 20, given, 18);

    note = large(ALL, 100, MANY); /* not one of `given` where `leaving` is cut, although an entry would fit */
    assert_cut(&note, (ROOM - (100 * 7 - 1) + 1) / 7, 100, 0, 7);
    note = large(MANY, MANY, MANY);
    assert_cut(&note, 0, ALL, 0, 7);
    note = large(0, MANY, 0);
    assert_cut(&note, 0, ALL, 0, 7);
    note = large(MANY, 0, 1);
    assert_cut(&note, ALL, 0, 0, 7);
}

/* The bound is exact: a text of so many bytes is printed whole, and is read. */
TEST(test_cut_to_the_byte) {
    size_t seen_at_bound = 0;
    for (size_t ready = 0; ready < 20; ready++) {
        dv_note note = large(9200, ready, 1000);
        size_t leaving, told, given;
        char *text = dv_note_print(&note, &leaving, &told, &given);
        assert_non_null(text);
        assert_int_equal(leaving, 9200);
        assert_int_equal(told, ready);
        assert_true(given > 0 && given < 1000);
        seen_at_bound += strlen(text) == DV_NOTE_BYTES_MAX;
        dv_note read = parse(text);
        assert_int_equal(read.given_count, given);
        dv_note_clear(&read);
        free(text);
    }
    assert_true(seen_at_bound > 0);
}

/* --- memory ------------------------------------------------------------------------------------------------------ */

/* When an allocation fails both say so, and nothing is left behind. */
TEST(test_scarce) {
    dv_note note;
    long failures = 0;
    for (int error = DIVVY_ENOMEM; error != 0; failures += error != 0) {
        dv_plan_fault fault = {0};
        scarce_after = failures;
        error = dv_note_parse(&note, whole, sizeof whole - 1, &fault);
        scarce_after = -1;
        if (error == 0) break;
        assert_int_equal(error, DIVVY_ENOMEM);
        assert_string_equal(fault.why, "does not fit into memory");
        assert_empty(&note);
    }
    assert_int_equal(failures, 3 + 2 + 3 + 1); /* lists of 3, 2 and 3, whose room doubles; the index */
    size_t leaving, ready, given;
    scarce_after = 0;
    assert_null(dv_note_print(&note, &leaving, &ready, &given));
    scarce_after = -1;
    dv_note_clear(&note);
}
