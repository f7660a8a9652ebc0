/* Asks: the kinds of request to a pool. docs/protocol.md, D51. SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "pool/whom.h"
#include "pool/wishes.h"

static bool needs_no_facts(const dv_errand *e) {
    (void)e;
    return false;
}

/* ---- D15: a weight ---- */

static int find_member(dv_errand *e) {
    return dv_whom_find(e, e->ask.name, true);
}

static bool wants_configured(const dv_errand *e) {
    return e->ask.weight == DV_ASK_CONFIGURED_WEIGHT;
}

/* Returns the weight that the member was started with: as its node says, or, while it is away, as the plan does. */
static uint32_t configured_weight(const dv_errand *e) {
    const dv_plan_member *m = dv_whom_member(e);
    uint32_t weight = m && m->says_configured ? m->configured : DV_WEIGHT;
    const dv_plan_party *party = dv_roster_party(e->roster);
    for (size_t n = 0; n < party->count; n++) {
        const dv_plan_node *node = &party->nodes[n];
        const char *key = e->result.is_static ? node->identifier : node->node;
        if (strcmp(key, e->result.key) == 0 && node->known && node->weight > 0) weight = node->weight;
    }
    return weight;
}

static bool has_weight(dv_errand *e) {
    const dv_plan_member *m = dv_whom_member(e);
    e->result.weight = wants_configured(e) ? configured_weight(e) : (uint32_t)e->ask.weight;
    return m && m->weight == e->result.weight;
}

/* D18: where nobody else can be dealt to, items would wait without an owner. */
static void tell_weight(dv_errand *e) {
    size_t load = dv_whom_load(e, e->memory.plan);
    if (e->result.weight == 0 && load > 0 && dv_whom_is_last(e->memory.plan, e->result.is_static, e->result.key))
        dv_errand_refuse(e, DIVVY_ESTATE,
                         "%s keeps its %zu items: no other member is left that weighs more than 0; nothing was changed",
                         e->ask.name, load);
    e->events = (dv_plan_events){.weight = {e->result.key, e->result.weight}};
    dv_errand_tell(e);
}

/* ---- D13: an absence ends ---- */

static int find_absent(dv_errand *e) {
    const dv_plan_member *m = e->result.key ? dv_whom_member(e) : NULL;
    if (e->result.key && !m) return 0; /* It was found before, and is forgotten. */
    int error = find_member(e);
    if (error || !e->result.key || e->result.error || *e->result.waits_for) return error;
    m = dv_whom_member(e);
    if (m && m->absent == 0)
        dv_errand_refuse(e, DIVVY_ESTATE, "%s is there: only a static member that is absent can be forgotten",
                         e->ask.name);
    return 0;
}

static bool is_forgotten(dv_errand *e) {
    return dv_whom_member(e) == NULL;
}

static void tell_expiry(dv_errand *e) {
    const dv_plan_member *m = dv_whom_member(e);
    e->expiry = (dv_plan_expiry){e->result.key, m->absent};
    e->events = (dv_plan_events){.expired = &e->expiry, .expired_count = 1};
    dv_errand_tell(e);
}

/* ---- all ---- */

const dv_ask_rule *dv_ask_rule_of(dv_ask_kind kind) {
    static const dv_ask_rule rules[DV_ASK_KINDS] = {
        [DV_ASK_WEIGHT] = {false, find_member, wants_configured, has_weight, tell_weight},
        [DV_ASK_FORGET] = {false, find_absent, needs_no_facts, is_forgotten, tell_expiry},
        [DV_ASK_MOVE] = {true, dv_wish_find_move, needs_no_facts, dv_wish_stands, dv_wish_tell},
        [DV_ASK_NEED] = {true, dv_wish_find_needy, needs_no_facts, dv_wish_stands, dv_wish_tell},
        [DV_ASK_OPTION] = {true, dv_wish_find_option, needs_no_facts, dv_wish_stands, dv_wish_tell},
        [DV_ASK_PAUSE] = {true, dv_wish_find_item, needs_no_facts, dv_wish_stands, dv_wish_tell},
        [DV_ASK_PIN] = {true, dv_wish_find_pin, needs_no_facts, dv_wish_stands, dv_wish_tell},
    };
    assert(kind < DV_ASK_KINDS);
    return &rules[kind];
}
