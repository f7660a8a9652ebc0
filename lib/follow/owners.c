/* The nodes of the items' owners by a plan: docs/protocol.md, T1, T2, T9. SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "follow/follower.h"

const char dv_nobody[] = "";

/* ---- owners ---- */

/* Where no node that was read counts, one that was not most likely does. read_next_owners() looks which. */
static const char *live_node(const dv_follower *f, const dv_plan *plan, const dv_plan_member *m) {
    size_t unread, at = dv_follow_find_node(f, plan, m, &unread);
    if (at == SIZE_MAX) at = unread;
    return at == SIZE_MAX ? NULL : dv_roster_party(f->roster)->nodes[at].node;
}

/* Returns the node of each slot's live member, or NULL when an allocation fails. */
static const char **nodes_by_slot(const dv_follower *f, const dv_plan *plan) {
    const char **nodes = (const char **)(uintptr_t)calloc(DV_PLAN_SLOTS, sizeof *nodes);
    for (size_t m = 0; nodes && m < plan->member_count; m++)
        nodes[plan->members[m].slot] = live_node(f, plan, &plan->members[m]);
    return nodes;
}

/* Fills in, for each item of `set`, the node of its owner by `plan`. Returns false when an allocation fails. */
static bool list_owners(const dv_follower *f, const dv_plan_set *set, const dv_plan *plan, const char **out) {
    const char **nodes = plan ? nodes_by_slot(f, plan) : NULL;
    if (plan && !nodes) return false;
    for (size_t i = 0, k = 0; plan && i < set->count; i++) {
        while (k < plan->set->count && strcmp(plan->set->names[k], set->names[i]) < 0) k++;
        bool has = k < plan->set->count && strcmp(plan->set->names[k], set->names[i]) == 0;
        if (has) out[i] = plan->owners[k] == DV_PLAN_NO_SLOT ? dv_nobody : nodes[plan->owners[k]];
    }
    free((void *)nodes);
    return true;
}

/* Lists the other live nodes of our identifier, which may have our items yet. Returns how many. */
static size_t list_namesakes(const dv_follower *f, const char **out) {
    const dv_plan_party *party = dv_roster_party(f->roster);
    size_t count = 0;
    if (!f->config.is_static || dv_follow_is_fenced(f)) return 0;
    for (size_t n = 0; n < party->count; n++) {
        const dv_plan_node *other = &party->nodes[n];
        bool same = other->known && other->is_static && strcmp(other->identifier, f->config.identifier) == 0;
        if (same && n != f->party.own) out[count++] = other->node;
    }
    return count;
}

/* Our own node had them only since the last process of our identifier is the member. */
static void leave_out_own(const dv_follower *f, const char **nodes, size_t count) {
    const char *own = dv_follow_own_node(f);
    for (size_t i = 0; i < count; i++) {
        if (nodes[i] == own) nodes[i] = NULL;
    }
}

/* ---- next owners ---- */

/* Returns whether the plan gives something that we show to the member of that slot. */
static bool is_next_owner(const dv_follower *f, uint32_t slot) {
    const dv_plan *plan = dv_follow_plan(f);
    for (size_t i = 0; i < plan->set->count; i++) {
        if (plan->owners[i] == slot && f->questions->shows(f->owner, plan->set->names[i])) return true;
    }
    return false;
}

/* Finds a node of that identifier whose age is not known. SIZE_MAX: none, or it is the only one. */
static size_t find_ageless(const dv_follower *f, const char *identifier) {
    const dv_plan_party *party = dv_roster_party(f->roster);
    size_t count = 0, ageless = SIZE_MAX;
    for (size_t n = 0; n < party->count; n++) {
        if (strcmp(party->nodes[n].identifier, identifier) != 0) continue;
        count++;
        if (party->nodes[n].czxid == 0) ageless = n;
    }
    return count > 1 ? ageless : SIZE_MAX;
}

static void on_read(void *context, int error, int64_t now) {
    dv_follower *f = context;
    assert(f->next_owners.under_way);
    f->next_owners.under_way = false;
    /* Else a node has gone, and another party will settle; or the next connection asks again. */
    if (error == 0 || f->next_owners.pzxid != f->party.pzxid) f->look(f, DV_LOOK_TARGET, now);
    dv_follow_end(f, now);
}

/* D12: asks a next owner's nodes when their processes came. Such owners are few, so they go one after the other. */
static void read_next_owners(dv_follower *f, const dv_plan_member *own) {
    const dv_plan *plan = dv_follow_plan(f);
    size_t ageless = SIZE_MAX;
    for (size_t m = 0; m < plan->member_count && ageless == SIZE_MAX; m++) {
        const dv_plan_member *next = &plan->members[m];
        if (!next->is_static || next == own) continue;
        ageless = find_ageless(f, next->key);
        if (ageless != SIZE_MAX && !is_next_owner(f, next->slot)) ageless = SIZE_MAX;
    }
    f->next_owners.are_unread = ageless != SIZE_MAX;
    if (!f->next_owners.are_unread || f->next_owners.under_way) return;
    int asked = dv_roster_ask_namesakes(f->roster, ageless, on_read, f);
    if (asked < 0) dv_client_again(f->config.client);
    if (asked <= 0) return;
    f->next_owners.under_way = true;
    f->next_owners.pzxid = f->party.pzxid;
    dv_follow_begin(f);
}

/* ---- both ---- */

const char **dv_follow_list_owners(dv_follower *f, const dv_plan_member *own, dv_follow_owners *out) {
    const dv_plan *plan = dv_follow_plan(f);
    const dv_plan_set *set = plan->set;
    size_t others = dv_roster_party(f->roster)->count;
    dv_follow_forget_owners(f);
    const char **now = (const char **)(uintptr_t)calloc(2 * set->count + others, sizeof *now);
    if (!now) return NULL;
    const char **before = now + set->count, **namesakes = before + set->count;
    if (!list_owners(f, set, plan, now) || !list_owners(f, set, f->memory.before, before)) {
        free((void *)now);
        return NULL;
    }
    leave_out_own(f, before, set->count);
    read_next_owners(f, own);
    *out = (dv_follow_owners){.now = now,
                              .before = before,
                              .namesakes = namesakes,
                              .namesake_count = list_namesakes(f, namesakes),
                              .party_is_older = dv_follow_is_ahead(f, plan),
                              .mzxid = plan->mzxid};
    return now;
}

void dv_follow_forget_owners(dv_follower *f) {
    f->next_owners.are_unread = false;
}
