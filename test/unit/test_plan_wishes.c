/* Tests of what an operator asks of a plan: docs/protocol.md, D48. SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"
#include "plan_wishes_fixture.h"

enum { ITEM_BYTES = 32 };

/* A pinned item goes to the member with that identifier at once, stays there whatever else is dealt, and the others
 * are even without it. Without the pin all are even. */
TEST(test_pin) {
    pool(3, 12);
    const char *pinned = strcmp(owner_of(0), "n0002") == 0 ? "n0001" : "n0002"; /* not its owner */
    assert_int_equal(ask_for(DV_WISH_PIN, "i000001", pinned, false), DV_PLAN_NEXT);
    assert_int_equal(w.plan->header.reason, DV_PLAN_OPERATOR);
    assert_string_equal(w.plan->told, "anna asked");
    assert_true(w.plan->header.is_balanced);
    assert_string_equal(owner_of(0), pinned);
    join_dynamic(&w);
    assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
    assert_string_equal(owner_of(0), pinned);
    assert_int_equal(ask_for(DV_WISH_PIN, "i000001", pinned, false), DV_PLAN_NOTHING);
    assert_int_equal(ask_for(DV_WISH_PIN, "i000001", "", true), DV_PLAN_NEXT);
    assert_int_equal(w.plan->wishes->count, 0);
    assert_false(w.plan->header.is_balanced);
    assert_even(w.plan);
    world_end(&w);
}

/* A pin to a member that is not there is kept, and waits for it. */
TEST(test_pin_waits) {
    pool(2, 4);
    assert_int_equal(ask_for(DV_WISH_PIN, "i000003", "n0003", false), DV_PLAN_NEXT);
    assert_int_equal(moves_of(w.before, w.plan), 0);
    join_dynamic(&w);
    assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
    assert_string_equal(owner_of(2), "n0003");
    die(&w, 2);
    assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
    assert_string_not_equal(owner_of(2), "");
    assert_int_equal(w.plan->wishes->count, 1);
    world_end(&w);
}

/* Each of many members is dealt to by its own tags among many. */
TEST(test_many_tags) {
    char tags[NODES_MAX][16], item[ITEM_BYTES];
    world_begin(&w, NODES_MAX);
    for (size_t n = 0; n < NODES_MAX; n++) {
        snprintf(tags[n], sizeof tags[n], "tag%zu", n);
        join_dynamic(&w);
        w.live[n].says.tags = tags[n];
    }
    assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
    for (size_t n = 0; n < NODES_MAX; n++) {
        snprintf(item, sizeof item, "i%06zu", n + 1);
        assert_int_equal(ask_for(DV_WISH_NEED, item, tags[n], false), DV_PLAN_NEXT);
    }
    for (size_t i = 0; i < NODES_MAX; i++) assert_string_equal(owner_of(i), w.live[i].node);
    world_end(&w);
}

/* A move is a pin that ends with its member; with it the item's pin ends, and the other way round. */
TEST(test_move) {
    pool(3, 6);
    assert_int_equal(ask_for(DV_WISH_PIN, "i000001", "n0001", false), DV_PLAN_NEXT);
    assert_int_equal(ask_for(DV_WISH_MOVE, "i000001", "n0003", false), DV_PLAN_NEXT);
    assert_int_equal(w.plan->wishes->count, 1);
    assert_string_equal(owner_of(0), "n0003");
    die(&w, 2);
    assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
    assert_int_equal(w.plan->wishes->count, 0);
    assert_string_equal(w.plan->told, "the move of i000001 has ended with its member");
    assert_string_not_equal(owner_of(0), "");
    assert_int_equal(ask_for(DV_WISH_MOVE, "i000001", "n0002", false), DV_PLAN_NEXT);
    assert_int_equal(ask_for(DV_WISH_PIN, "i000001", "n0001", false), DV_PLAN_NEXT);
    assert_int_equal(w.plan->wishes->count, 1);
    assert_string_equal(owner_of(0), "n0001");
    world_end(&w);
}

/* D20: a move to a member that has just gone does not come, so there is nothing to write, however often it is asked
 * for. */
TEST(test_move_to_nobody) {
    pool(2, 4);
    assert_int_equal(ask_for(DV_WISH_MOVE, "i000001", "n0009", false), DV_PLAN_NOTHING);
    assert_null(w.plan->wishes);
    assert_int_equal(ask_for(DV_WISH_PIN, "i000001", "n0001", false), DV_PLAN_NEXT);
    assert_int_equal(ask_for(DV_WISH_PIN, "i000001", "", true), DV_PLAN_NEXT);
    assert_int_equal(ask_for(DV_WISH_MOVE, "i000001", "n0009", false), DV_PLAN_NOTHING);
    assert_int_equal(w.plan->wishes->count, 0);
    world_end(&w);
}

/* A move to a member that has just gone, or leaves, takes the place of no pin and of no move, and the history does not
 * tell it. */
TEST(test_move_comes_too_late) {
    pool(4, 8);
    assert_int_equal(ask_for(DV_WISH_PIN, "i000001", "n0001", false), DV_PLAN_NEXT);
    assert_int_equal(ask_for(DV_WISH_MOVE, "i000002", "n0002", false), DV_PLAN_NEXT);
    die(&w, 2);
    assert_int_equal(ask_for(DV_WISH_MOVE, "i000001", "n0003", false), DV_PLAN_NEXT);
    assert_int_equal(w.plan->header.reason, DV_PLAN_LOSS);
    assert_string_equal(w.plan->told, "");
    assert_int_equal(ask_for(DV_WISH_MOVE, "i000002", "n0003", false), DV_PLAN_NOTHING);
    assert_int_equal(step(&w, &(dv_plan_events){.leaving = "n0004"}), DV_PLAN_NEXT);
    assert_int_equal(ask_for(DV_WISH_MOVE, "i000002", "n0004", false), DV_PLAN_NOTHING);
    assert_int_equal(w.plan->wishes->count, 2);
    assert_string_equal(owner_of(0), "n0001");
    assert_string_equal(owner_of(1), "n0002");
    world_end(&w);
}

/* Nobody has a paused item. It goes back to the member that had it, if that is there, and stays out of the counts. */
TEST(test_pause) {
    pool(3, 9);
    char before[WORLD_NAME_BYTES];
    strcpy(before, owner_of(4));
    assert_int_equal(ask_for(DV_WISH_PAUSE, "i000005", "", false), DV_PLAN_NEXT);
    assert_string_equal(owner_of(4), "");
    assert_string_equal(dv_wishes_find(w.plan->wishes, DV_WISH_PAUSE, "i000005")->value, before);
    assert_int_equal(ask_for(DV_WISH_PAUSE, "i000005", "", false), DV_PLAN_NOTHING);
    assert_int_equal(ask_for(DV_WISH_PAUSE, "i000005", "", true), DV_PLAN_NEXT);
    assert_string_equal(owner_of(4), before);
    assert_int_equal(moves_of(w.before, w.plan), 0);
    world_end(&w);
}

static size_t first_item_of(const char *key) {
    size_t item = 0;
    while (strcmp(owner_of(item), key) != 0) item++;
    return item;
}

/* It goes back also where the counts alone would let either have it: one item of each of two members is paused, and
 * one of these is resumed. */
TEST(test_resume) {
    static const char *const keys[] = {"n0001", "n0002"};
    for (int first = 0; first < 2; first++) {
        pool(2, 8);
        char names[2][ITEM_BYTES];
        for (int m = 0; m < 2; m++) {
            strcpy(names[m], w.plan->set->names[first_item_of(keys[m])]);
            assert_int_equal(ask_for(DV_WISH_PAUSE, names[m], "", false), DV_PLAN_NEXT);
        }
        assert_int_equal(ask_for(DV_WISH_PAUSE, names[first], "", true), DV_PLAN_NEXT);
        assert_int_equal(load_named(w.plan, keys[first]), 4);
        assert_int_equal(load_named(w.plan, keys[1 - first]), 3);
        world_end(&w);
    }
}

/* However little its weight is, a member gets its item back. */
TEST(test_resume_least_weight) {
    static const char *const keys[] = {"n0001", "n0002"};
    for (int m = 0; m < 2; m++) {
        world_begin(&w, 3);
        for (int n = 0; n < 2; n++) {
            join_dynamic(&w);
            w.live[n].says.weight = 1;
        }
        assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
        char name[ITEM_BYTES], before[WORLD_NAME_BYTES];
        strcpy(name, w.plan->set->names[first_item_of(keys[m])]);
        strcpy(before, owner_of(first_item_of(keys[m])));
        assert_int_equal(ask_for(DV_WISH_PAUSE, name, "", false), DV_PLAN_NEXT);
        assert_int_equal(ask_for(DV_WISH_PAUSE, name, "", true), DV_PLAN_NEXT);
        assert_int_equal(load_named(w.plan, "n0001") + load_named(w.plan, "n0002"), 3);
        assert_int_equal(moves_of(w.before, w.plan), 0);
        assert_string_equal(owner_of(dv_plan_set_find(w.plan->set, name, 0)), before);
        world_end(&w);
    }
}

/* A paused item is nobody's load, so the fair shares of the others are those of what is left. */
TEST(test_shares_without_paused) {
    pool(2, 4);
    assert_true(worst_share() > 0.99 && worst_share() < 1.01);
    assert_int_equal(ask_for(DV_WISH_PAUSE, "i000001", "", false), DV_PLAN_NEXT);
    assert_true(worst_share() > 1.33 && worst_share() < 1.34);
    world_end(&w);
}

/* While a member of an older release is there wishes wait, and none is lost; then they are in force again. */
TEST(test_older_member) {
    pool(3, 12);
    assert_int_equal(ask_for(DV_WISH_PIN, "i000001", "n0001", false), DV_PLAN_NEXT);
    assert_int_equal(ask_for(DV_WISH_PAUSE, "i000002", "", false), DV_PLAN_NEXT);
    join_dynamic(&w);
    w.live[3].says.can_balance = false;
    assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
    assert_false(w.plan->header.is_balanced);
    assert_string_not_equal(owner_of(1), "");
    assert_even(w.plan);
    assert_int_equal(w.plan->wishes->count, 2);
    die(&w, 3);
    assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
    assert_true(w.plan->header.is_balanced);
    assert_string_equal(owner_of(0), "n0001");
    assert_string_equal(owner_of(1), "");
    world_end(&w);
}

/* An item that needs a tag goes to members that have it, or to nobody; the longest prefix counts, the name first. */
TEST(test_tags) {
    pool(3, 12);
    join_dynamic(&w);
    w.live[3].says.tags = "gpu,ssd";
    assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
    assert_int_equal(ask_for(DV_WISH_NEED, "i00001*", "ssd", false), DV_PLAN_NEXT);
    for (size_t i = 9; i < 12; i++) assert_string_equal(owner_of(i), "n0004");
    assert_int_equal(ask_for(DV_WISH_NEED, "i000011", "tape", false), DV_PLAN_NEXT);
    assert_string_equal(owner_of(10), "");
    assert_string_equal(dv_wishes_tag(w.plan->wishes, "i000012"), "ssd");
    assert_null(dv_wishes_tag(w.plan->wishes, "i000002"));
    assert_int_equal(ask_for(DV_WISH_NEED, "i000011", "", true), DV_PLAN_NEXT);
    assert_string_equal(owner_of(10), "n0004");
    die(&w, 3);
    assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
    for (size_t i = 9; i < 12; i++) assert_string_equal(owner_of(i), "");
    world_end(&w);
}

/* A member takes no more items than its cap; what no member may take has no owner. */
TEST(test_caps) {
    world_begin(&w, 10);
    for (size_t m = 0; m < 2; m++) {
        join_dynamic(&w);
        w.live[m].says.cap = 3;
    }
    assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
    assert_int_equal(load_named(w.plan, "n0001"), 3);
    assert_int_equal(load_named(w.plan, "n0002"), 3);
    join_dynamic(&w);
    assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
    assert_int_equal(load_named(w.plan, "n0003"), 4);
    world_end(&w);
}

/* An operator's options count more than those of members, until they are undone. */
TEST(test_options) {
    pool(2, 20);
    for (size_t m = 0; m < 2; m++) {
        w.live[m].says.has_options = true;
        w.live[m].says.options = (dv_plan_options){.max_moves = 3, .round_timeout_ms = 60000};
    }
    assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
    assert_int_equal(w.plan->header.options.max_moves, 3);
    assert_int_equal(ask_for(DV_WISH_OPTION, "max-moves", "1", false), DV_PLAN_NEXT);
    assert_int_equal(w.plan->header.options.max_moves, 1);
    join_dynamic(&w);
    w.live[2].says.has_options = true;
    w.live[2].says.options = w.live[0].says.options;
    assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
    assert_int_equal(w.plan->moved_count, 1);
    assert_int_equal(ask_for(DV_WISH_OPTION, "max-moves", "", true), DV_PLAN_NEXT);
    assert_int_equal(w.plan->header.options.max_moves, 3);
    world_end(&w);
}

/* A list of wishes is the same after each order of changes, and reads as it was written. */
TEST(test_lists) {
    static const char *const names[] = {"a", "b/c", "d*", "\xff\x65"};
    chance_begin();
    for (int run = 0; run < 300; run++) {
        dv_wishes *wishes = NULL;
        for (int change = 0; change < 40; change++) {
            dv_wish_event event = {.undo = chance(3) == 0};
            const char *value = chance(2) ? "x" : "y\"\x01";
            event.wish = wish_of((dv_wish_kind)chance(DV_WISH_KINDS), names[chance(COUNT(names))], value);
            dv_wishes *next;
            assert_int_equal(dv_wishes_change(&next, wishes, &event), 0);
            const dv_wish *found = dv_wishes_find(next, event.wish.kind, event.wish.name);
            if (event.undo) assert_null(found);
            else assert_string_equal(found->value, value);
            const dv_wish *pin = dv_wishes_find(next, DV_WISH_PIN, names[0]);
            assert_true(pin == NULL || dv_wishes_find(next, DV_WISH_MOVE, names[0]) == NULL);
            dv_wishes_unref(wishes);
            wishes = next;
        }
        dv_plan_text text;
        dv_wishes *read;
        if (wishes == NULL) continue;
        assert_int_equal(dv_wishes_print(&text, wishes), 0);
        assert_int_equal(dv_wishes_parse(&read, text.bytes, text.count, NULL), 0);
        assert_true(dv_wishes_equal(read, wishes));
        free(text.bytes);
        dv_wishes_unref(read);
        dv_wishes_unref(wishes);
    }
}

/* What no plan can hold is refused, with the place and the cause. */
TEST(test_hostile) {
#define WISH(kind, name, rest) "{\"kind\":\"" kind "\",\"name\":\"" name "\",\"value\":\"v\",\"by\":\"\"," rest "}"
#define REST "\"at_ms\":1,\"why\":\"\""
    static const struct {
        const char *text, *why;
    } faults[] = {
        {"", "has something else where a list should be"},
        {"[{}]", "lacks a key"},
        {"[" WISH("pin", "a", REST), "has no comma and no end after an element"},
        {"[" WISH("wish", "a", REST) "]", "has a wish of an unknown kind"},
        {"[" WISH("pin", "a%2f", REST) "]", "has a name that is not encoded as it should be"},
        {"[" WISH("pin", "a", "\"at_ms\":-1,\"why\":\"\"") "]", NULL},
        {"[" WISH("pin", "b", REST) "," WISH("pin", "a", REST) "]", "has wishes that are not in order"},
        {"[" WISH("pin", "a", REST) "," WISH("pin", "a", REST) "]", "has wishes that are not in order"},
        {"[{\"kind\":\"pin\",\"name\":\"a\",\"value\":\"\",\"by\":\"\"," REST "}]", "has a wish for nothing"},
    };
    for (size_t n = 0; n < COUNT(faults); n++) {
        dv_wishes *read;
        dv_plan_fault fault = {0};
        assert_int_equal(dv_wishes_parse(&read, faults[n].text, strlen(faults[n].text), &fault), DIVVY_EPROTO);
        assert_null(read);
        if (faults[n].why != NULL) assert_string_equal(fault.why, faults[n].why);
    }
}

/* The most that may stand there, and not one more. */
TEST(test_limit) {
    dv_wishes *wishes = NULL;
    for (int n = 0; n <= DV_WISHES_MAX; n++) {
        char name[16];
        sprintf(name, "i%d", n);
        const dv_wish_event event = {.wish = wish_of(DV_WISH_PIN, name, "m")};
        dv_wishes *next = NULL;
        assert_int_equal(dv_wishes_change(&next, wishes, &event), n < DV_WISHES_MAX ? 0 : DIVVY_ELIMIT);
        if (next == NULL) continue;
        dv_wishes_unref(wishes);
        wishes = next;
    }
    dv_wishes_unref(wishes);
}

/* Rounds go on though items go to nobody, which is no arrival, until no item is left that its owner may not have. */
TEST(test_rounds_to_nobody) {
    pool(2, 12);
    assert_int_equal(ask_for(DV_WISH_OPTION, "max-moves", "1", false), DV_PLAN_NEXT);
    assert_int_equal(ask_for(DV_WISH_NEED, "i00000*", "gpu", false), DV_PLAN_NEXT);
    int rounds = 1;
    for (; w.plan->moved_count == 1 && end_round() == DV_PLAN_NEXT; rounds++) assert_true(rounds < 20);
    assert_int_equal(rounds, 9);
    for (size_t i = 0; i < 12; i++) assert_true((owner_of(i)[0] == '\0') == (i < 9));
    world_end(&w);
}

/* What is told stays text, and within its bytes, whatever the item is called: else nobody could read the history. */
TEST(test_told_is_text) {
    char long_name[400], told[400];
    pool(2, 2);
    memset(long_name, 'x', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    const char *const names[] = {"\xff\x65", "\xc3\xa9\xc3", long_name};
    for (size_t n = 0; n < COUNT(names); n++) {
        const dv_wish_event event = {.wish = wish_of(DV_WISH_PAUSE, names[n], "")};
        snprintf(told, sizeof told, "paused %s", names[n]);
        assert_int_equal(step(&w, &(dv_plan_events){.wishes = &event, .wish_count = 1, .told = told}), DV_PLAN_NEXT);
        assert_true(dv_is_utf8(w.plan->told));
        assert_in_range(strlen(w.plan->told), 8, DV_PLAN_TOLD_BYTES - 1);
    }
    world_end(&w);
}
