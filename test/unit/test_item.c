/* The table of an item's life. SPDX-License-Identifier: Apache-2.0 */
#include "lib/item_words.h"
#include "lib/test.h"
#include "partitioner/item.h"

static bool reached[DV_PLACES][DV_STAGES];

static bool allows(const dv_item_row *row, dv_item_place place, dv_item_stage stage) {
    return row->places & 1u << place && row->stages & 1u << stage;
}

static void reach(dv_item_place place, dv_item_stage stage);

static void make_moves(dv_item_place place, dv_item_stage stage) {
    for (int move = 0; move < DV_MOVES; move++) {
        const dv_item_row *row = &dv_item_rows[move];
        if (!allows(row, place, stage)) continue;
        reach(row->place == DV_ITEM_SAME ? place : (dv_item_place)row->place,
              row->stage == DV_ITEM_SAME ? stage : (dv_item_stage)row->stage);
    }
}

/* What no move does: an answer comes, the contender parks, and looks after all; what was leaving has left. */
static void wait(dv_item_place place, dv_item_stage stage) {
    if (place == DV_PLACE_ASKED || place == DV_PLACE_PARKED) reach(DV_PLACE_WAITING, stage);
    if (place == DV_PLACE_WAITING) reach(DV_PLACE_PARKED, stage);
    if (place == DV_PLACE_LEAVING) reach(DV_PLACE_NONE, stage);
}

static void reach(dv_item_place place, dv_item_stage stage) {
    if (reached[place][stage]) return;
    if (!dv_item_can_be(place, stage))
        fail_msg("place %s, %s is reached", item_place_word(place), item_stage_word(stage));
    reached[place][stage] = true;
    make_moves(place, stage);
    wait(place, stage);
}

/* From an item that is hidden and has no place, moves lead to all pairs that an item can have, and to no other. */
TEST(test_pairs) {
    reach(DV_PLACE_NONE, DV_STAGE_HIDDEN);
    for (int place = 0; place < DV_PLACES; place++) {
        for (int stage = 0; stage < DV_STAGES; stage++) {
            if (reached[place][stage] == dv_item_can_be((dv_item_place)place, (dv_item_stage)stage)) continue;
            fail_msg("place %s, %s is not reached", item_place_word((dv_item_place)place),
                     item_stage_word((dv_item_stage)stage));
        }
    }
}

/* Each move changes something, and can be made. */
TEST(test_moves) {
    for (int move = 0; move < DV_MOVES; move++) {
        const dv_item_row *row = &dv_item_rows[move];
        bool possible = false;
        assert_true(row->place != DV_ITEM_SAME || row->stage != DV_ITEM_SAME);
        for (int i = 0; i < DV_PLACES * DV_STAGES; i++) {
            dv_item_place place = (dv_item_place)(i / DV_STAGES);
            dv_item_stage stage = (dv_item_stage)(i % DV_STAGES);
            possible |= dv_item_can_be(place, stage) && allows(row, place, stage);
        }
        assert_true(possible);
    }
}

/* Only a place that is the first shows an item, and only an item that the user has released, or that is lost, loses
 * its place. */
TEST(test_what_the_user_has) {
    for (int move = 0; move < DV_MOVES; move++) {
        const dv_item_row *row = &dv_item_rows[move];
        if (row->stage >= DV_STAGE_SHOWN) assert_int_equal(row->places, 1u << DV_PLACE_FIRST);
        bool takes = row->place != DV_ITEM_SAME && row->stages >> DV_STAGE_SHOWN;
        if (takes) assert_true(move == DV_MOVE_RELEASE || move == DV_MOVE_LOSE);
    }
    assert_int_equal(dv_item_rows[DV_MOVE_RELEASE].stages, 1u << DV_STAGE_REVOKED);
}
