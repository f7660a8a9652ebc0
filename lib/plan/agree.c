/* The configuration that all live members carry, where they agree. SPDX-License-Identifier: Apache-2.0
 *
 * docs/protocol.md, rules D16, D17. */
#include "plan/agree.h"

/* ---- what names say ---- */

bool dv_plan_all_carry(const dv_plan_party *party, uint32_t tag) {
    size_t members = 0;
    for (size_t n = 0; n < party->count; n++) {
        if (party->nodes[n].is_ghost) continue;
        if (party->nodes[n].tag != tag) return false;
        members++;
    }
    return members > 0;
}

bool dv_plan_options_equal(const dv_plan_options *a, const dv_plan_options *b) {
    return a->max_moves == b->max_moves && a->round_timeout_ms == b->round_timeout_ms;
}

/* D16. A node of an older release says nothing of options, so nothing is agreed on while it lives. */
void dv_plan_agree_options(const dv_plan_party *party, dv_plan_options *options) {
    const dv_plan_node *first = NULL;
    for (size_t n = 0; n < party->count; n++) {
        const dv_plan_node *node = &party->nodes[n];
        if (node->is_ghost) continue;
        if (first == NULL) first = node;
        if (!node->has_options || !dv_plan_options_equal(&node->options, &first->options)) return;
    }
    if (first != NULL) *options = first->options;
}

/* ---- D17: items that somebody asked for, and members that came later ---- */

/* A plan of an older release does not say since when; they were asked for before it was written. The zxids of a plan
 * from another ensemble say nothing: there it counts from now on. */
int64_t dv_plan_asked_at(const dv_plan *plan, const dv_plan_party *party) {
    if (plan->set->crc == plan->header.tag) return 0;
    int64_t at = plan->header.asked != 0 ? plan->header.asked : plan->header.pzxid;
    bool foreign = at >= party->pzxid || (plan->mzxid != 0 && plan->header.pzxid >= plan->mzxid);
    return foreign ? party->pzxid : at;
}

static bool may_return(const dv_plan *plan, const dv_plan_party *party) {
    bool asked = plan != NULL && plan->header.generation > 0 && plan->set->crc != plan->header.tag;
    return asked && party->set != NULL && party->set->crc == plan->header.tag &&
           dv_plan_all_carry(party, plan->header.tag);
}

/* A member that has lost its node, and made another one, came when it made its first. */
static bool came_after(const dv_plan_node *node, int64_t zxid) {
    if (node->is_ghost) return true; /* It is nobody's. */
    return dv_plan_start(node) > zxid;
}

static bool is_read(const dv_plan_node *node) {
    return node->known && node->czxid != 0;
}

bool dv_plan_agree_asks(const dv_plan *plan, const dv_plan_party *party, bool *asks) {
    if (!may_return(plan, party)) return false;
    int64_t asked_at = dv_plan_asked_at(plan, party);
    bool any = false;
    for (size_t n = 0; n < party->count; n++) {
        if (is_read(&party->nodes[n]) && !came_after(&party->nodes[n], asked_at)) return false; /* One is enough. */
    }
    for (size_t n = 0; n < party->count; n++) {
        if (is_read(&party->nodes[n])) continue;
        if (asks != NULL) asks[n] = true;
        any = true;
    }
    return any;
}

bool dv_plan_returns_to_tag(const dv_plan *plan, const dv_plan_party *party) {
    if (!may_return(plan, party)) return false;
    int64_t asked_at = dv_plan_asked_at(plan, party);
    for (size_t n = 0; n < party->count; n++) {
        if (!is_read(&party->nodes[n]) || !came_after(&party->nodes[n], asked_at)) return false;
    }
    return true;
}

bool dv_plan_agree_differs(const dv_plan *plan, const dv_plan_party *party) {
    dv_plan_options options = plan->header.options;
    dv_plan_agree_options(party, &options);
    bool other_set = party->set != NULL && party->set->crc != plan->header.tag;
    return !dv_plan_options_equal(&options, &plan->header.options) ||
           (other_set && dv_plan_all_carry(party, party->set->crc));
}
