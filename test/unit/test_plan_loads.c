/* Tests of loads in a plan: docs/protocol.md, D49, D50. SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "plan/step_internal.h"
#include "plan_wishes_fixture.h"

/* A class stands for a quarter octave, its load being the nearest by ratio. */
TEST(test_classes) {
    assert_int_equal(dv_class_of(1), DV_CLASS_ONE);
    assert_int_equal(dv_class_of(2), DV_CLASS_ONE + 4);
    assert_int_equal(dv_class_of(0), DV_CLASS_IDLE);
    assert_int_equal(dv_class_of(1e-300), DV_CLASS_IDLE);
    assert_int_equal(dv_class_of(1e300), DV_CLASS_MAX);
    assert_int_equal(dv_class_of(INFINITY), DV_CLASS_MAX);
    assert_int_equal(dv_class_of(-1), DV_CLASS_NONE);
    assert_int_equal(dv_class_of(NAN), DV_CLASS_NONE);
    assert_true(dv_class_size(DV_CLASS_NONE) < 0);
    for (unsigned c = 1; c <= DV_CLASS_MAX; c++) {
        double size = dv_class_size((uint8_t)c);
        assert_true(size > dv_class_size((uint8_t)(c - 1)));
        assert_int_equal(dv_class_of(size), c);
        assert_int_equal(dv_class_of(size * 1.0904), c);
        assert_int_equal(dv_class_of(size / 1.0904), c);
    }
}

/* Uneven loads move items from the fullest, within the band nothing moves, and the plan says who gave for load. */
TEST(test_balances) {
    pool(2, 8);
    double loads[8];
    for (size_t i = 0; i < 8; i++) loads[i] = 1;
    assert_int_equal(report(loads), DV_PLAN_NEXT); /* the first are written though nothing moves */
    assert_int_equal(w.plan->header.reason, DV_PLAN_LOAD);
    assert_true(w.plan->header.is_balanced);
    assert_int_equal(moves_of(w.before, w.plan), 0);
    assert_int_equal(w.plan->loads->giver_count, 0);
    assert_int_equal(report(loads), DV_PLAN_NOTHING);
    const char *heavy = owner_of(0);
    for (size_t i = 0; i < 8; i++) loads[i] = strcmp(owner_of(i), heavy) == 0 ? 4 : 1;
    assert_int_equal(report(loads), DV_PLAN_NEXT);
    assert_int_equal(w.plan->header.reason, DV_PLAN_LOAD);
    assert_true(w.plan->moved_count == 1 && w.plan->loads->giver_count == 1);
    assert_int_equal(w.plan->loads->givers[0].permille, 1600);
    char told[128];
    snprintf(told, sizeof told, "1 item moved for load: %s was at 1.60 of its share", heavy);
    assert_string_equal(w.plan->told, told);
    for (int steps = 0; steps < 20 && end_round() == DV_PLAN_NEXT; steps++) assert_true(w.plan->moved_count <= 1);
    assert_true(worst_share() < 1.21); /* 12 of 20 */
    world_end(&w);
}

/* D18: were the absent here, two items would change places. One cannot tell that from a deal that moves one only. */
TEST(test_exchange_with_absent) {
    world_begin(&w, 6);
    for (int n = 0; n < 2; n++) join_dynamic(&w);
    join(&w, "host", 30000);
    assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
    die(&w, 2);
    assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
    static const char *const owners[] = {"n0001", "n0002", "host", "n0001", "n0002", "host"};
    const double loads[] = {9, 10, 10, 1, 11, 10};
    for (size_t i = 0; i < COUNT(owners); i++) assert_string_equal(owner_of(i), owners[i]);
    assert_int_equal(report(loads), DV_PLAN_NEXT);
    assert_int_equal(moves_of(w.before, w.plan), 1);
    assert_string_equal(owner_of(1), "n0001");
    world_end(&w);
}

/* Where several gave, the plan tells of the fullest of them. */
TEST(test_tells_of_the_fullest) {
    pool(4, 40);
    double loads[40];
    bool is_less = false; /* the second one has an item of half the size */
    for (size_t i = 0; i < 40; i++) {
        bool is_second = strcmp(owner_of(i), "n0002") == 0;
        loads[i] = strcmp(owner_of(i), "n0001") == 0 || is_second ? 8 : 1;
        if (is_second && !is_less) loads[i] = 4;
        is_less |= is_second;
    }
    assert_int_equal(report(loads), DV_PLAN_NEXT);
    assert_int_equal(w.plan->loads->giver_count, 2);
    assert_string_equal(w.plan->told, "2 items moved for load: n0001 was at 1.82 of its share");
    world_end(&w);
}

/* A10: the next deal knows from whom each item was taken for load, so that it does not send it straight back. */
TEST(test_came_from) {
    pool(3, 9);
    double loads[9];
    for (size_t i = 0; i < 9; i++) loads[i] = strcmp(owner_of(i), "n0002") == 0 ? 4 : 1;
    assert_int_equal(report(loads), DV_PLAN_NEXT);
    assert_int_equal(w.plan->moved_count, 1);
    dv_plan_table t;
    dv_plan_balance b;
    assert_true(dv_plan_table_lay(&t, w.plan, false, NULL, false) && dv_plan_balance_lay(&b, &t, w.plan, NULL));
    for (size_t n = 0; n < t.item_count; n++) {
        if (n != w.plan->moved[0]) assert_int_equal(b.items[n].came_from, 0);
        else assert_string_equal(b.members[b.items[n].came_from - 1].identifier, "n0002");
    }
    dv_plan_balance_free(&b);
    dv_plan_table_free(&t);
    world_end(&w);
}

/* A10: so it does where two members have one identifier: each gave what stands at its own place. */
TEST(test_twins_gave) {
    static const char *const keys[] = {"a-twin", "b-twin", "c-other"};
    dv_plan *plan = dv_plan_make(numbered_set("i", 3));
    assert_non_null(plan);
    for (uint32_t slot = 0; slot < COUNT(keys); slot++) {
        const dv_plan_member m = {
            .slot = slot, .key = (char *)(uintptr_t)keys[slot], .zone = "", .leaving = "", .weight = 1000};
        assert_true(dv_plan_add_member(plan, &m));
        plan->owners[slot] = 2;
    }
    plan->loads = dv_loads_make("jobs", 3);
    assert_non_null(plan->loads);
    for (uint32_t item = 0; item < 2; item++) assert_true(dv_loads_add_giver(plan->loads, "twin", 1500, &item, 1));
    dv_plan_table t;
    dv_plan_balance b;
    assert_true(dv_plan_table_lay(&t, plan, false, NULL, false) && dv_plan_balance_lay(&b, &t, plan, NULL));
    for (size_t n = 0; n < t.item_count; n++)
        assert_int_equal(b.items[n].came_from, t.places[n] < 2 ? t.places[n] + 1 : 0);
    dv_plan_balance_free(&b);
    dv_plan_table_free(&t);
    dv_plan_free(plan);
}

/* So it is where the item is not dealt, since it is paused: its neighbour came from nobody. */
TEST(test_gave_what_is_paused) {
    enum { GIVEN = 1 };
    pool(2, 3);
    const uint8_t holds[3] = {[GIVEN] = DV_ITEM_PAUSED};
    const uint32_t item = GIVEN;
    w.plan->loads = dv_loads_make("jobs", 3);
    assert_true(dv_loads_add_giver(w.plan->loads, "n0001", 1500, &item, 1));
    dv_plan_table t;
    dv_plan_balance b;
    assert_true(dv_plan_table_lay(&t, w.plan, false, holds, false) && dv_plan_balance_lay(&b, &t, w.plan, holds));
    assert_int_equal(t.item_count, 2);
    for (size_t n = 0; n < t.item_count; n++) assert_int_equal(b.items[n].came_from, 0);
    dv_plan_balance_free(&b);
    dv_plan_table_free(&t);
    world_end(&w);
}

/* What load moved, no later step moves back: orphans and joins are dealt by the classes of the plan. */
TEST(test_later_steps) {
    pool(3, 30);
    double loads[30];
    for (size_t i = 0; i < 30; i++) loads[i] = strcmp(owner_of(i), "n0001") == 0 ? 8 : 1;
    assert_int_equal(report(loads), DV_PLAN_NEXT);
    while (end_round() == DV_PLAN_NEXT) continue;
    assert_true(worst_share() < 1.2);
    join_dynamic(&w);
    assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
    while (end_round() == DV_PLAN_NEXT) continue;
    assert_true(worst_share() < 1.2);
    die(&w, 1);
    assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
    for (size_t i = 0; i < 30; i++) assert_string_not_equal(owner_of(i), "");
    assert_true(worst_share() < 1.25);
    world_end(&w);
}

/* While a round is under way loads wait, and nothing is written for them alone. */
TEST(test_round_waits) {
    pool(2, 40);
    double loads[40];
    for (size_t i = 0; i < 40; i++) loads[i] = strcmp(owner_of(i), "n0001") == 0 ? 3 : 1;
    assert_int_equal(report(loads), DV_PLAN_NEXT);
    assert_int_equal(w.plan->moved_count, 2); /* one in twenty */
    loads[0] = 100;
    assert_int_equal(report(loads), DV_PLAN_NOTHING);
    world_end(&w);
}

/* Small changes are not worth a plan, a drift of a member's share is; with another change new loads come along. */
TEST(test_worth) {
    pool(2, 40);
    double loads[40];
    for (size_t i = 0; i < 40; i++) loads[i] = 1;
    assert_int_equal(report(loads), DV_PLAN_NEXT);
    for (size_t i = 0; i < 40; i++) loads[i] = strcmp(owner_of(i), "n0001") == 0 ? 1.19 : 1;
    assert_int_equal(report(loads), DV_PLAN_NOTHING);
    for (size_t i = 0; i < 40; i++) loads[i] = strcmp(owner_of(i), "n0001") == 0 ? 1.42 : 1;
    assert_int_equal(report(loads), DV_PLAN_NEXT);
    assert_int_equal(moves_of(w.before, w.plan), 0);
    for (size_t i = 0; i < 40; i++) loads[i] *= 1.19; /* all alike: no share changes */
    assert_int_equal(report(loads), DV_PLAN_NOTHING);
    join_dynamic(&w);
    assert_int_equal(report(loads), DV_PLAN_NEXT);
    assert_int_equal(w.plan->header.reason, DV_PLAN_JOIN);
    assert_int_equal(w.plan->loads->classes[0], dv_class_of(loads[0]));
    world_end(&w);
}

/* An item that nobody reported keeps the plan's class; another unit takes the place of all. */
TEST(test_merged) {
    pool(2, 4);
    const double loads[] = {1, 2, 3, 4}, some[] = {-1, -1, -1, 40};
    assert_int_equal(report(loads), DV_PLAN_NEXT);
    while (end_round() == DV_PLAN_NEXT) continue;
    assert_int_equal(report(some), DV_PLAN_NEXT);
    assert_int_equal(w.plan->loads->classes[0], dv_class_of(1));
    assert_int_equal(w.plan->loads->classes[3], dv_class_of(40));
    while (end_round() == DV_PLAN_NEXT) continue;
    dv_loads *other = dv_loads_make("cores", 4);
    assert_int_equal(step(&w, &(dv_plan_events){.loads = other}), DV_PLAN_NEXT);
    dv_loads_unref(other);
    assert_string_equal(w.plan->loads->unit, "cores");
    for (size_t i = 0; i < 4; i++) assert_int_equal(w.plan->loads->classes[i], DV_CLASS_NONE);
    world_end(&w);
}

/* Items that stay when the set changes keep their classes. */
TEST(test_set) {
    pool(2, 4);
    const double loads[] = {1, 2, 3, 4};
    assert_int_equal(report(loads), DV_PLAN_NEXT);
    while (end_round() == DV_PLAN_NEXT) continue;
    static const char *const names[] = {"a", "i000002", "i000004", "z"};
    dv_plan_set *set = dv_plan_set_make(names, COUNT(names));
    assert_int_equal(step(&w, &(dv_plan_events){.set = set}), DV_PLAN_NEXT);
    const uint8_t *classes = w.plan->loads->classes;
    assert_true(classes[0] == DV_CLASS_NONE && classes[3] == DV_CLASS_NONE);
    assert_true(classes[1] == dv_class_of(2) && classes[2] == dv_class_of(4));
    dv_plan_set_unref(set);
    world_end(&w);
}

/* While a member of an older release is there items are counted, and the classes are carried along. */
TEST(test_older_member) {
    pool(2, 16);
    double loads[16];
    for (size_t i = 0; i < 16; i++) loads[i] = i < 2 ? 20 : 1;
    assert_int_equal(report(loads), DV_PLAN_NEXT);
    while (end_round() == DV_PLAN_NEXT) continue;
    join_dynamic(&w);
    w.live[2].says.can_balance = false;
    assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
    assert_false(w.plan->header.is_balanced);
    assert_even(w.plan);
    loads[5] = 200;
    assert_int_equal(report(loads), DV_PLAN_NOTHING);
    die(&w, 2);
    assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
    assert_true(w.plan->header.is_balanced);
    assert_int_equal(w.plan->loads->classes[0], dv_class_of(20));
    world_end(&w);
}

/* Random loads, joins, deaths and wishes: each step is sound and has nothing more to do in its own result, and rounds
 * end. */
TEST(test_random) {
    chance_begin();
    for (int run = 0; run < 40; run++) {
        size_t items = 1 + chance(60);
        pool(1 + chance(5), items);
        double *loads = calloc(items, sizeof *loads);
        for (int turn = 0; turn < 30; turn++) {
            char item[16], member[16];
            sprintf(item, "i%06u", (unsigned)(1 + chance(items)));
            sprintf(member, "n%04u", (unsigned)(1 + chance(8)));
            for (size_t i = 0; i < items; i++) loads[i] = chance(4) == 0 ? -1 : (double)(1 + chance(100)) * chance(3);
            size_t what = chance(6);
            if (what == 0 && w.count < 8) join_dynamic(&w);
            if (what == 1 && w.count > 1) die(&w, chance(w.count));
            if (what == 2) w.live[chance(w.count)].says.can_balance = chance(4) > 0;
            if (what == 3) report(loads);
            else if (what == 4) ask_for(DV_WISH_PIN, item, member, chance(2));
            else if (what == 5) ask_for(DV_WISH_PAUSE, item, "", chance(2));
            else step(&w, NULL);
            int rounds = 0;
            while (end_round() == DV_PLAN_NEXT) assert_true(++rounds < 200);
        }
        free(loads);
        world_end(&w);
    }
}

/* What is no text of loads is refused, with the place and the cause. */
TEST(test_hostile) {
    static const struct {
        const char *text, *why;
    } faults[] = {
        {"", "is too short for its number of items"},
        {"{\"unit\":\"jobs\"}", "lacks a key"},
        {"{\"unit\":\"a b\",\"classes\":\"0000\",\"moved\":[]}", "has something else where a unit should be"},
        {"{\"unit\":\"jobs\",\"classes\":\"000\",\"moved\":[]}", "has another number of loads than of items"},
        {"{\"unit\":\"jobs\",\"classes\":\"00g0\",\"moved\":[]}", "has a load that is no number"},
        {"{\"unit\":\"jobs\",\"classes\":\"0000\",\"moved\":[[]]}", "does not tell who gave items"},
        {"{\"unit\":\"jobs\",\"classes\":\"0000\",\"moved\":[[\"m\"]]}", "does not tell a giver's load"},
        {"{\"unit\":\"jobs\",\"classes\":\"0000\",\"moved\":[[\"m\",1]]}", "has a giver of no items"},
        {"{\"unit\":\"jobs\",\"classes\":\"0000\",\"moved\":[[\"m\",1,1,0]]}", "has given items that are not in order"},
        {"{\"unit\":\"jobs\",\"classes\":\"0000\",\"moved\":[[\"m\",1,0,0]]}", "has given items that are not in order"},
        {"{\"unit\":\"jobs\",\"classes\":\"0000\",\"moved\":[[\"m\",1,2]]}", NULL},
    };
    for (size_t n = 0; n < COUNT(faults); n++) {
        dv_loads *read;
        dv_plan_fault fault = {0};
        assert_int_equal(dv_loads_parse(&read, 2, faults[n].text, strlen(faults[n].text), &fault), DIVVY_EPROTO);
        assert_null(read);
        if (faults[n].why != NULL) assert_string_equal(fault.why, faults[n].why);
    }
}

/* A list of classes that is too short ends the parsing. Sanitizers would see a read beyond the text. */
TEST(test_too_few_classes) {
    static const char text[] = "{\"unit\":\"jobs\",\"moved\":[],\"classes\":\"00\"}";
    size_t bytes = strlen(text);
    dv_loads *read;
    char *exact = malloc(bytes);
    assert_non_null(exact);
    memcpy(exact, text, bytes);
    assert_int_equal(dv_loads_parse(&read, bytes / 2, exact, bytes, NULL), DIVVY_EPROTO);
    free(exact);
}

static int parse_moved(const char *from, int64_t permille, int item) {
    char text[2048];
    dv_loads *read;
    snprintf(text, sizeof text, "{\"unit\":\"u\",\"classes\":\"00ff\",\"moved\":[[\"%s\",%lld,%d]]}", from,
             (long long)permille, item);
    int error = dv_loads_parse(&read, 2, text, strlen(text), NULL);
    if (error != 0) return error;
    assert_string_equal(read->unit, "u");
    assert_int_equal(read->classes[1], 0xff);
    assert_string_equal(read->givers[0].from, from);
    assert_int_equal(read->givers[0].permille, permille);
    assert_int_equal(read->givers[0].items[0], item);
    dv_loads_unref(read);
    return 0;
}

/* A giver's name has a byte at least and DV_PLAN_KEY_BYTES_MAX at most; its load and its items have bounds, too. */
TEST(test_limits) {
    char name[DV_PLAN_KEY_BYTES_MAX + 2];
    memset(name, 'm', sizeof name);
    name[DV_PLAN_KEY_BYTES_MAX + 1] = '\0';
    assert_int_equal(parse_moved(name, 1, 0), DIVVY_EPROTO);
    name[DV_PLAN_KEY_BYTES_MAX] = '\0';
    assert_int_equal(parse_moved(name, 1, 0), 0);
    assert_int_equal(parse_moved("m", 0, 1), 0);
    assert_int_equal(parse_moved("m", DV_LOAD_PERMILLE_MAX, 1), 0);
    assert_int_equal(parse_moved("", 1, 0), DIVVY_EPROTO);
    assert_int_equal(parse_moved("m", -1, 0), DIVVY_EPROTO);
    assert_int_equal(parse_moved("m", (int64_t)DV_LOAD_PERMILLE_MAX + 1, 0), DIVVY_EPROTO);
    assert_int_equal(parse_moved("m", 1, 2), DIVVY_EPROTO);
    assert_int_equal(parse_moved("m", 1, -1), DIVVY_EPROTO);
}
