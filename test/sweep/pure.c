/* The parts without I/O: assignments, plans and notes and their texts. SPDX-License-Identifier: Apache-2.0 */
#include "handover/note.h"
#include "plan/step.h"
#include "plan/text.h"
#include "scenarios.h"

enum { MEMBERS = 4, ITEMS = 23 };

static const divvy_member members[MEMBERS] = {{"a", 1000, "x"}, {"b", 500, "y"}, {"c", 0, "x"}, {"d", 2000, NULL}};

static void name_items(char names[ITEMS][8], const char *items[ITEMS]) {
    for (int i = 0; i < ITEMS; i++) {
        snprintf(names[i], 8, "i%02u", (unsigned)i % 100);
        items[i] = names[i];
    }
}

void sweep_pure_assign(sweep *s) {
    char names[ITEMS][8];
    const char *items[ITEMS];
    uint32_t owners[ITEMS], untouched[ITEMS];
    divvy_sticky_options options = DIVVY_STICKY_OPTIONS_INIT;
    name_items(names, items);
    memset(owners, 0xff, sizeof owners);
    memcpy(untouched, owners, sizeof owners);
    sweep_begin(s);
    /* An error leaves `owners` as it was. */
    if (divvy_assign_round_robin(members, MEMBERS, items, ITEMS, owners) != 0)
        SWEEP_CHECK(s, memcmp(owners, untouched, sizeof owners) == 0);
    SWEEP_DO(s, divvy_assign_round_robin(members, MEMBERS, items, ITEMS, owners));
    SWEEP_DO(s, divvy_assign_rendezvous(members, MEMBERS, items, ITEMS, owners));
    SWEEP_DO(s, divvy_assign_sticky(members, MEMBERS, items, ITEMS, owners, NULL, owners));
    options.spread_zones = 1;
    options.max_moves = 2;
    SWEEP_DO(s, divvy_assign_sticky(members, MEMBERS, items, ITEMS, owners, &options, owners));
    SWEEP_DO(s, divvy_assign_sticky(members, 2, items, ITEMS, NULL, &options, owners));
    sweep_allocations_disarm();
}

/* ---- plans ---- */

static dv_plan_set *make_set(sweep *s, size_t count) {
    char names[ITEMS][8];
    const char *items[ITEMS];
    name_items(names, items);
    for (int i = 0; i < 60; i++) {
        dv_plan_set *set = dv_plan_set_make(items, count);
        if (set) return set;
        SWEEP_CHECK(s, sweep_excuses(s, DIVVY_ENOMEM));
    }
    sweep_fail(s, "no set");
}

/* The next plan of a party of `count` nodes. */
static dv_plan *step(sweep *s, const dv_plan *before, dv_plan_set *set, size_t count, int64_t pzxid) {
    static const dv_plan_node nodes[] = {
        {.node = "n0", .identifier = "h0", .tag = 1, .known = true, .weight = 1000, .zone = "x", .czxid = 10},
        {.node = "n1", .identifier = "h1", .tag = 1, .known = true, .weight = 2000, .zone = "y", .czxid = 11},
        {.node = "n2",
         .identifier = "h2",
         .tag = 1,
         .known = true,
         .weight = 500,
         .zone = "",
         .czxid = 12,
         .is_static = true,
         .rejoin_delay_ms = 1000},
    };
    dv_plan_party party = {.pzxid = pzxid, .nodes = nodes, .count = count, .set = set};
    dv_plan_events events = {0};
    dv_plan *next = NULL;
    bool asks[3];
    int asked = DIVVY_ENOMEM;
    party.options = (dv_plan_options){.max_moves = 3, .round_timeout_ms = 1000};
    for (int i = 0; i < 60 && asked == DIVVY_ENOMEM; i++) asked = dv_plan_ask(before, &party, asks);
    SWEEP_CHECK(s, asked >= 0);
    SWEEP_DO_AS(s, DV_PLAN_NEXT, dv_plan_step(&next, before, &party, &events));
    SWEEP_CHECK(s, next != NULL);
    memcpy(next->header.guid, "00000000001aaaaaaaaaaa7", sizeof "00000000001aaaaaaaaaaa7");
    if (!next->header.epoch[0]) memcpy(next->header.epoch, "00000000001aaaaaaaaaaa1", sizeof "00000000001aaaaaaaaaaa1");
    return next;
}

static void write_and_read(sweep *s, const dv_plan *plan) {
    dv_plan_root root, again;
    dv_plan_text items, base, text;
    dv_plan_set *set = NULL;
    dv_plan *read = NULL;
    SWEEP_DO(s, dv_plan_root_describe(&root, plan));
    SWEEP_DO(s, dv_plan_print_items(&items, plan->set));
    SWEEP_DO(s, dv_plan_print_base(&base, plan));
    dv_plan_part_inline(&root.items, &items);
    dv_plan_part_inline(&root.base, &base);
    memcpy(root.base_guid, plan->header.guid, sizeof root.base_guid);
    SWEEP_DO(s, dv_plan_print_root(&text, &root));
    SWEEP_DO(s, dv_plan_root_parse(&again, text.bytes, text.count, NULL));
    SWEEP_DO(s, dv_plan_items_parse(&set, &again, again.items.text, again.items.bytes, NULL));
    SWEEP_DO(s, dv_plan_from_base(&read, set, again.base.text, again.base.bytes, NULL));
    /* On an error the plan is good for nothing but dv_plan_free(). */
    int error = dv_plan_complete(read, &again, NULL);
    SWEEP_CHECK(s, error == 0 || sweep_excuses(s, error));
    dv_plan_free(read);
    dv_plan_set_unref(set);
    dv_plan_root_clear(&root);
    dv_plan_root_clear(&again);
    sweep_free(text.bytes);
}

void sweep_pure_plan(sweep *s) {
    sweep_begin(s);
    dv_plan_set *set = make_set(s, ITEMS);
    dv_plan *first = step(s, NULL, set, 2, 20), *second = step(s, first, set, 3, 21),
            *third = step(s, second, set, 1, 22);
    write_and_read(s, first);
    write_and_read(s, third);
    dv_plan_text delta = {NULL, 0};
    SWEEP_DO(s, dv_plan_print_delta(&delta, first, second));
    dv_plan *copy = NULL;
    for (int i = 0; i < 60 && !copy; i++) copy = dv_plan_copy(first);
    SWEEP_CHECK(s, copy != NULL);
    int error = dv_plan_apply(copy, delta.bytes, delta.count, NULL);
    SWEEP_CHECK(s, error == 0 || sweep_excuses(s, error));
    sweep_free(delta.bytes);
    dv_plan_free(copy);
    dv_plan_free(first);
    dv_plan_free(second);
    dv_plan_free(third);
    dv_plan_set_unref(set);
    sweep_allocations_disarm();
}

/* ---- notes ---- */

void sweep_pure_note(sweep *s) {
    uint32_t items[] = {0, 1, 2, 5, 8};
    dv_note_given given[] = {{3, 7, 20}, {4, 0, 20}, {6, 1, 21}, {3, 9, 22}, {0, 1, 22}};
    dv_note note = {.set_count = ITEMS, .leaving = items, .ready = items, .given = given}, read;
    note.leaving_count = note.ready_count = note.given_count = 5;
    size_t leaving, ready, shown;
    char *text = NULL;
    sweep_begin(s);
    for (int i = 0; i < 60 && !text; i++) text = dv_note_print(&note, &leaving, &ready, &shown);
    SWEEP_CHECK(s, text != NULL);
    SWEEP_DO(s, dv_note_parse(&read, text, strlen(text), NULL));
    SWEEP_CHECK(s, dv_note_gives(&read, 3, 8, 20) && dv_note_gives(&read, 3, 10, 22));
    dv_note_clear(&read);
    sweep_free(text);
    sweep_allocations_disarm();
}
