/* See step_code.h. SPDX-License-Identifier: Apache-2.0 */
#include "cases/step_code.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/step.h"

#define CHECK(condition)                                                \
    do {                                                                \
        if (condition) break;                                           \
        fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
        abort();                                                        \
    } while (0)

static const char *const NODES[] = {"n0", "n1", "n2", "n3", "n4"}, *const IDENTIFIERS[] = {"s0", "s1", "s2", "s3",
                                                                                           "s4"};
static dv_plan_set *set;

void step_begin(void) {
    static const char *const names[] = {"i0", "i1", "i2"};
    set = dv_plan_set_make(names, STEP_ITEMS);
    CHECK(set != NULL);
}

void step_end(void) {
    dv_plan_set_unref(set);
}

static char *text(const char *constant) {
    return (char *)(uintptr_t)constant; /* is copied */
}

static dv_plan *make_plan(const step_plan *from) {
    dv_plan *plan = dv_plan_make(dv_plan_set_ref(set));
    CHECK(plan != NULL);
    plan->header = (dv_plan_header){.generation = 5,
                                    .guid = "g",
                                    .epoch = "e",
                                    .pzxid = 60,
                                    .tag = set->crc,
                                    .options = {.max_moves = from->max_moves}};
    plan->mzxid = 61;
    for (uint32_t i = 0; i < STEP_IN_PLAN; i++) {
        const step_member *m = &from->members[i];
        if (!m->is_there) continue;
        dv_plan_member member = {.slot = m->slot,
                                 .is_static = m->is_static,
                                 .key = text(m->is_static ? IDENTIFIERS[i] : NODES[i]),
                                 .weight = m->weight,
                                 .zone = text(""),
                                 .rejoin_delay_ms = m->rejoin_delay_ms,
                                 .absent = m->absent,
                                 .leaving = text(!m->leaves         ? ""
                                                 : m->by_other_node ? "before"
                                                                    : NODES[i]),
                                 .says_configured = m->is_static,
                                 .configured = m->configured};
        CHECK(dv_plan_add_member(plan, &member));
    }
    plan->moved = malloc(STEP_ITEMS * sizeof *plan->moved);
    CHECK(plan->moved != NULL);
    for (uint32_t i = 0; i < STEP_ITEMS; i++) {
        uint8_t owner = from->owners[i];
        plan->owners[i] = owner == STEP_NOBODY ? DV_PLAN_NO_SLOT : from->members[owner].slot;
        if (from->moved >> i & 1) plan->moved[plan->moved_count++] = i;
    }
    return plan;
}

static size_t make_party(const step_plan *plan, const step_party *from, dv_plan_node *nodes) {
    size_t count = 0;
    for (int i = 0; i < STEP_MEMBERS; i++) {
        if (!from->lives[i]) continue;
        bool is_static = plan->members[i].is_static;
        nodes[count++] = (dv_plan_node){.node = NODES[i],
                                        .identifier = is_static ? IDENTIFIERS[i] : NODES[i],
                                        .tag = set->crc,
                                        .known = true,
                                        .is_static = is_static,
                                        .weight = from->says_weight[i],
                                        .zone = "",
                                        .can_balance = true,
                                        .rejoin_delay_ms = plan->members[i].rejoin_delay_ms,
                                        .czxid = 70 + i};
    }
    return count;
}

static int index_of(const dv_plan_member *m) {
    for (int i = 0; i < STEP_MEMBERS; i++)
        if (strcmp(m->key, m->is_static ? IDENTIFIERS[i] : NODES[i]) == 0) return i;
    return -1;
}

static void fill_in(step_plan *to, const dv_plan *plan) {
    uint8_t by_slot[DV_PLAN_SLOTS];
    *to = (step_plan){.max_moves = plan->header.options.max_moves};
    for (size_t n = 0; n < plan->member_count; n++) {
        const dv_plan_member *m = &plan->members[n];
        int i = index_of(m);
        CHECK(i >= 0 && !to->members[i].is_there);
        by_slot[m->slot] = (uint8_t)i;
        to->members[i] = (step_member){.is_static = m->is_static,
                                       .is_there = true,
                                       .slot = m->slot,
                                       .weight = m->weight,
                                       .configured = m->configured,
                                       .absent = m->absent,
                                       .rejoin_delay_ms = m->rejoin_delay_ms,
                                       .leaves = m->leaving[0] != '\0',
                                       .by_other_node = strcmp(m->leaving, "before") == 0};
    }
    for (int i = 0; i < STEP_ITEMS; i++)
        to->owners[i] = plan->owners[i] == DV_PLAN_NO_SLOT ? STEP_NOBODY : by_slot[plan->owners[i]];
    for (size_t n = 0; n < plan->moved_count; n++) to->moved = (uint8_t)(to->moved | 1u << plan->moved[n]);
}

bool step_of(const step_plan *plan, const step_party *party, const step_events *events, step_plan *next) {
    dv_plan_node nodes[STEP_MEMBERS];
    dv_plan *before = make_plan(plan), *after, *again;
    const dv_plan_party there = {
        .pzxid = STEP_PZXID, .nodes = nodes, .count = make_party(plan, party, nodes), .set = set};
    dv_plan_events told = {0};
    dv_plan_expiry expiry = {0};
    if (events->expired >= 0) {
        const step_member *m = &plan->members[events->expired];
        expiry = (dv_plan_expiry){m->is_static ? IDENTIFIERS[events->expired] : NODES[events->expired], m->absent};
        told.expired = &expiry;
        told.expired_count = 1;
    }
    if (events->weighed >= 0) {
        bool is_static = plan->members[events->weighed].is_static;
        told.weight = (dv_plan_weight){(is_static ? IDENTIFIERS : NODES)[events->weighed], events->weight};
    }
    if (events->leaving >= 0) told.leaving = NODES[events->leaving];
    if (events->round_over) told.round_over = "g";
    int result = dv_plan_step(&after, before, &there, &told);
    CHECK(result == DV_PLAN_NEXT || (result == DV_PLAN_NOTHING && after == NULL));
    if (result == DV_PLAN_NEXT) {
        fill_in(next, after);
        CHECK(after->header.generation == 6 && after->header.pzxid == STEP_PZXID);
        after->mzxid = STEP_PZXID + 1;
        strcpy(after->header.guid, "h");
        CHECK(dv_plan_step(&again, after, &there, NULL) == DV_PLAN_NOTHING);
        dv_plan_free(after);
    }
    dv_plan_free(before);
    return result == DV_PLAN_NEXT;
}
