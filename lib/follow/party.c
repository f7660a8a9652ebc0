/* Our place in the party that settled last: docs/protocol.md, P3, D12, D36, D38. SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/guid.h"
#include "follow/follower.h"

int dv_follow_take_party(dv_follower *f, const dv_follow_party *settled) {
    int error = dv_roster_settle(f->roster, settled->nodes, settled->count, settled->pzxid);
    if (error) return error;
    dv_plan_party *party = dv_roster_party(f->roster);
    party->set = f->config.configured;
    party->options =
        (dv_plan_options){.max_moves = f->config.max_moves, .round_timeout_ms = f->config.round_timeout_ms};
    size_t own = dv_roster_find(f->roster, settled->own);
    f->party = (dv_follow_place){.in_force = own != SIZE_MAX, .pzxid = settled->pzxid, .own = own};
    return 0;
}

void dv_follow_lose_force(dv_follower *f, bool names_decide) {
    f->party.in_force = false;
    f->party.names_decide = names_decide;
}

/* Generation 0 only holds the place while the first plan's chunks are written (D10). */
const dv_plan *dv_follow_plan(const dv_follower *f) {
    const dv_plan *plan = f->memory.plan;
    return plan && plan->header.generation > 0 ? plan : NULL;
}

const char *dv_follow_own_node(const dv_follower *f) {
    return dv_roster_party(f->roster)->nodes[f->party.own].node;
}

size_t dv_follow_find_node(const dv_follower *f, const dv_plan *plan, const dv_plan_member *m, size_t *unread) {
    const dv_plan_party *party = dv_roster_party(f->roster);
    size_t found = SIZE_MAX;
    *unread = SIZE_MAX;
    if (!m->is_static) return dv_roster_find(f->roster, m->key);
    for (size_t n = 0; n < party->count; n++) {
        if (strcmp(party->nodes[n].identifier, m->key) != 0) continue;
        if (!party->nodes[n].known) *unread = n;
        else if (dv_plan_member_of(plan, party, n) == m) found = n;
    }
    return found;
}

bool dv_follow_is_fenced(const dv_follower *f) {
    return f->config.is_static && dv_plan_fenced(dv_roster_party(f->roster), f->party.own);
}

bool dv_follow_is_fenced_by_another(const dv_follower *f) {
    const dv_plan_party *party = dv_roster_party(f->roster);
    size_t by = f->config.is_static ? dv_plan_successor(party, f->party.own) : SIZE_MAX;
    return by != SIZE_MAX && !dv_guid_is_of_former_session(party->nodes[by].node, party->nodes[f->party.own].node);
}

bool dv_follow_is_ahead(const dv_follower *f, const dv_plan *plan) {
    return plan->header.pzxid > f->party.pzxid && plan->header.pzxid < plan->mzxid;
}

bool dv_follow_learn(dv_follower *f) {
    const dv_plan *plan = f->memory.plan;
    if (f->memory.standing != DV_PLAN_GOOD || plan->header.generation == 0) return false;
    if (plan->header.pzxid != f->party.pzxid || plan->header.pzxid >= plan->mzxid) return false;
    dv_roster_learn(f->roster, plan);
    return true;
}

bool dv_follow_names_decide(const dv_follower *f) {
    return !f || f->party.names_decide;
}

bool dv_follow_is_dynamic(const dv_follower *f, const char *node) {
    return f && f->memory.plan && dv_plan_find(f->memory.plan, false, node);
}
