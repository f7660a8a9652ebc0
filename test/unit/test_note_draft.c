/* Tests of handover/draft.h. SPDX-License-Identifier: Apache-2.0 */
#include "handover/draft.h"

#include "note_fixture.h"

enum { ITEMS = 20000, MEMBERS = 3, GAP_MS = 100 };

static dv_note_draft draft;
static dv_plan_set *few, *many;
static uint8_t marks[ITEMS];

/* Makes a set of so many items, whose names are numbers of equal length from `first` on. */
static dv_plan_set *make_set(size_t first, size_t count) {
    static char texts[ITEMS][8];
    static const char *names[ITEMS];
    for (size_t i = 0; i < count; i++) {
        snprintf(texts[i], sizeof texts[i], "%05zu", first + i);
        names[i] = texts[i];
    }
    return dv_plan_set_make(names, count);
}

static int set_up(void **state) {
    (void)state;
    few = make_set(0, 10);
    many = make_set(0, ITEMS);
    memset(marks, 0, sizeof marks);
    return few && many && dv_note_draft_init(&draft) ? 0 : -1;
}

static int tear_down(void **state) {
    (void)state;
    dv_note_draft_free(&draft);
    dv_plan_set_unref(few);
    dv_plan_set_unref(many);
    return 0;
}

/* Returns what a reader takes from the text that is printed now. */
static dv_note print(void) {
    char *text = dv_note_draft_print(&draft, marks);
    assert_non_null(text);
    dv_note note = parse(text);
    assert_true(dv_note_is_of(&note, draft.set));
    free(text);
    return note;
}

/* Writes a note that gives an item, and hears how it ended. */
static void give(dv_plan_set *set, uint32_t item, int error, int64_t now) {
    dv_note_draft_begin(&draft, set);
    dv_note_draft_give(&draft, item, 4, 100);
    dv_note_draft_sent(&draft, MEMBERS, now);
    dv_note_draft_ended(&draft, 1, error, now);
}

static bool gives(uint32_t item) {
    dv_note note = print();
    bool given = dv_note_gives(&note, item, 5, 100);
    dv_note_clear(&note);
    return given;
}

/* A note says of each item what is marked, and that it gives what this write gives. */
TEST(test_says) {
    dv_note_draft_begin(&draft, few);
    marks[3] = DV_NOTE_LEAVING;
    marks[4] = DV_NOTE_READY;
    dv_note_draft_give(&draft, 7, 4, 100);
    dv_note note = print();
    for (uint32_t i = 0; i < 10; i++) {
        assert_int_equal(dv_note_is_leaving(&note, i), i == 3);
        assert_int_equal(dv_note_is_ready(&note, i), i == 4);
        assert_int_equal(dv_note_gives(&note, i, 5, 100), i == 7);
    }
    assert_false(dv_note_gives(&note, 7, 5, 101));
    assert_false(draft.is_cut);
    dv_note_clear(&note);
    dv_note_draft_ended(&draft, 1, 0, 50);
    assert_int_equal(draft.gave_at, 50);
}

/* T5: what was given stays in later notes; a write that failed has given nothing, and takes nothing else back. */
TEST(test_given) {
    give(few, 1, 0, 50);
    give(few, 2, DIVVY_ECONNECTION, 60);
    assert_int_equal(draft.gave_at, 50);
    assert_true(gives(1));
    assert_false(gives(2));
    give(few, 2, 0, 70);
    assert_true(gives(1) && gives(2));
}

/* T5: where several writes are under way, one that fails takes back what it gives and what those behind it give. Those
 * before it have given. */
TEST(test_given_in_a_line) {
    dv_note_draft_begin(&draft, few);
    for (uint32_t item = 1; item <= 3; item++) dv_note_draft_give(&draft, item, 4, 100);
    dv_note_draft_give(&draft, 4, 4, 100);
    dv_note_draft_take_back(&draft, 1); /* not sent */
    assert_true(gives(3));
    assert_false(gives(4));
    dv_note_draft_ended(&draft, 1, 0, 50);
    dv_note_draft_ended(&draft, 1, DIVVY_ECONNECTION, 60);
    dv_note_draft_ended(&draft, 1, DIVVY_ECONNECTION, 60);
    assert_int_equal(draft.gave_at, 50);
    assert_true(gives(1));
    assert_false(gives(2) || gives(3));
}

/* While a write gives something, the numbers stay those of its set. */
TEST(test_other_set_waits) {
    dv_plan_set *same = make_set(0, 10);
    dv_note_draft_begin(&draft, few);
    dv_note_draft_give(&draft, 1, 4, 100);
    assert_true(dv_note_draft_may_begin(&draft, same));
    assert_false(dv_note_draft_may_begin(&draft, many));
    dv_note_draft_ended(&draft, 1, 0, 50);
    assert_true(dv_note_draft_may_begin(&draft, many));
    dv_plan_set_unref(same);
}

/* Numbers are those of one set: with another set what was given is forgotten. The same set again is no other. */
TEST(test_other_set) {
    give(few, 1, 0, 50);
    dv_plan_set *same = make_set(0, 10), *other = make_set(1, 10);
    dv_note_draft_begin(&draft, same);
    assert_true(gives(1));
    dv_note_draft_begin(&draft, other);
    assert_false(gives(1));
    dv_plan_set_unref(same);
    dv_plan_set_unref(other);
}

/* Memory is bounded: the oldest of what was given goes, and never what was given last. */
TEST(test_old_ones_go) {
    for (uint32_t i = 0; i < ITEMS; i++) {
        if (i % DV_NOTE_GIVES_MAX == 0) {
            dv_note_draft_ended(&draft, i > 0 ? DV_NOTE_GIVES_MAX : 0, 0, 50);
            dv_note_draft_begin(&draft, many);
        }
        dv_note_draft_give(&draft, i, 4, 100);
    }
    assert_true(draft.given_count <= 4096);
    assert_true(gives(ITEMS - 1));
    assert_false(gives(0));
}

/* What does not fit is told: its marks go, and the note waits for longer. Ready items come first. */
TEST(test_cut) {
    dv_note_draft_begin(&draft, many);
    memset(marks, DV_NOTE_LEAVING, sizeof marks);
    marks[ITEMS - 1] = DV_NOTE_READY;
    dv_note note = print();
    assert_true(draft.is_cut);
    assert_true(note.leaving_count > 0 && note.leaving_count < ITEMS - 1);
    assert_true(dv_note_is_ready(&note, ITEMS - 1) && marks[ITEMS - 1] == DV_NOTE_READY);
    for (uint32_t i = 0; i < ITEMS - 1; i++)
        assert_int_equal(marks[i], dv_note_is_leaving(&note, i) ? DV_NOTE_LEAVING : 0);
    dv_note_clear(&note);
    dv_note_draft_sent(&draft, MEMBERS, 5000);
    assert_int_equal(draft.write_at, 6000);
}

/* T0: after a quiet time five notes may follow one another, then there is a pause after each. */
TEST(test_pause) {
    enum { QUIET = 100000 };
    for (int i = 1; i <= 4; i++) {
        dv_note_draft_sent(&draft, MEMBERS, QUIET);
        assert_true(draft.write_at <= QUIET);
    }
    dv_note_draft_sent(&draft, MEMBERS, QUIET);
    assert_int_equal(draft.write_at, QUIET + GAP_MS);
    dv_note_draft_sent(&draft, MEMBERS, QUIET + GAP_MS);
    assert_int_equal(draft.write_at, QUIET + 2 * GAP_MS);
}

/* T0: the pause grows with the party, a millisecond for each member, from the first one on that it can tell. */
TEST(test_large_party) {
    for (int64_t members = GAP_MS; members <= GAP_MS + 2; members++) {
        int64_t quiet = 100000 * members;
        for (int i = 1; i <= 5; i++) dv_note_draft_sent(&draft, (size_t)members, quiet);
        assert_int_equal(draft.write_at, quiet + members);
    }
}

TEST_EACH(set_up, tear_down);
