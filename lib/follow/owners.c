/* The nodes of the items' owners by a plan: docs/protocol.md, T1, T2, T9. SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "follow/follower.h"

const char dv_nobody[] = "";

/* ---- nodes by identifier ---- */

/* The nodes of the party: a large one is looked through once, and not once for each member. */
typedef struct {
    const dv_plan_node **sorted; /* by identifier */
    size_t count;
} node_index;

static int by_identifier(const void *left, const void *right) {
    const dv_plan_node *a = *(const dv_plan_node *const *)left, *b = *(const dv_plan_node *const *)right;
    int order = strcmp(a->identifier, b->identifier);
    return order ? order : (a > b) - (a < b);
}

/* Returns false when an allocation fails. */
static bool make_index(node_index *index, const dv_plan_party *party) {
    *index = (node_index){calloc(party->count + 1, sizeof *index->sorted), party->count};
    for (size_t n = 0; index->sorted && n < party->count; n++) index->sorted[n] = &party->nodes[n];
    if (index->sorted) qsort((void *)index->sorted, index->count, sizeof *index->sorted, by_identifier);
    return index->sorted != NULL;
}

/* Returns the first that is not of a lesser identifier. Those of this one stand behind each other. */
static size_t find_first(const node_index *index, const char *identifier) {
    size_t low = 0, high = index->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(index->sorted[middle]->identifier, identifier) < 0) low = middle + 1;
        else high = middle;
    }
    return low;
}

static bool is_of(const node_index *index, size_t at, const char *identifier) {
    return at < index->count && strcmp(index->sorted[at]->identifier, identifier) == 0;
}

/* ---- owners ---- */

/* Returns whether the plan has a member that is not static, by whose key a node could be another than a static one. */
static bool has_dynamic(const dv_plan *plan) {
    for (size_t m = 0; m < plan->member_count; m++) {
        if (!plan->members[m].is_static) return true;
    }
    return false;
}

/* D12: returns the live node of a static member: of its identifier the one whose process came last. Where no node that
 * was read counts, one that was not most likely does. read_next_owners() looks which. */
static const char *static_node(const node_index *index, const dv_plan *plan, bool is_mixed, const dv_plan_member *m) {
    const dv_plan_node *last = NULL, *unread = NULL;
    for (size_t n = find_first(index, m->key); is_of(index, n, m->key); n++) {
        const dv_plan_node *node = index->sorted[n];
        if (!node->known) unread = node;
        else if (node->is_static && !node->is_ghost && (!last || dv_plan_came_later(node, last))) last = node;
    }
    if (last && is_mixed && dv_plan_find(plan, false, last->node)) last = NULL;
    return last ? last->node : unread ? unread->node : NULL;
}

/* Returns the node of each slot's live member, or NULL when an allocation fails. */
static const char **nodes_by_slot(const dv_follower *f, const node_index *index, const dv_plan *plan) {
    const char **nodes = (const char **)(uintptr_t)calloc(DV_PLAN_SLOTS, sizeof *nodes);
    bool is_mixed = has_dynamic(plan);
    for (size_t i = 0; nodes && i < plan->member_count; i++) {
        const dv_plan_member *m = &plan->members[i];
        size_t at = m->is_static ? SIZE_MAX : dv_roster_find(f->roster, m->key);
        if (m->is_static) nodes[m->slot] = static_node(index, plan, is_mixed, m);
        else if (at != SIZE_MAX) nodes[m->slot] = dv_roster_party(f->roster)->nodes[at].node;
    }
    return nodes;
}

static const char *owner_of(const char *const *nodes, uint32_t slot) {
    return slot == DV_PLAN_NO_SLOT ? dv_nobody : nodes[slot];
}

/* Fills in, for each item of the plan, the node of its owner. Returns false when an allocation fails. */
static bool list_now(const dv_follower *f, const node_index *index, const dv_plan *plan, const char **out) {
    const char **nodes = nodes_by_slot(f, index, plan);
    for (size_t i = 0; nodes && i < plan->set->count; i++) out[i] = owner_of(nodes, plan->owners[i]);
    free((void *)nodes);
    return nodes != NULL;
}

/* The same by the plan before, for the items of `set`. */
static bool list_before(const dv_follower *f, const node_index *index, const dv_plan_set *set, const char **out) {
    const dv_plan *before = f->memory.before;
    if (!before) return true;
    const char **nodes = nodes_by_slot(f, index, before);
    uint32_t *owners = malloc((before->set->count + 1) * sizeof *owners);
    bool complete = nodes && owners, same = before->set == set;
    if (complete) dv_plan_memory_owners_before(&f->memory, owners);
    for (size_t i = 0, k = 0; complete && i < set->count; i++) {
        k = same ? i : dv_plan_set_find(before->set, set->names[i], k);
        bool has = same || (k < before->set->count && strcmp(before->set->names[k], set->names[i]) == 0);
        if (has) out[i] = owner_of(nodes, owners[k]);
    }
    free((void *)nodes);
    free(owners);
    return complete;
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

/* Finds a node of that identifier whose age is not known. NULL: none, or it is the only one. */
static const dv_plan_node *find_ageless(const node_index *index, const char *identifier) {
    size_t first = find_first(index, identifier), n = first;
    const dv_plan_node *ageless = NULL;
    for (; is_of(index, n, identifier); n++) {
        if (index->sorted[n]->czxid == 0) ageless = index->sorted[n];
    }
    return n - first > 1 ? ageless : NULL;
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
static void read_next_owners(dv_follower *f, const node_index *index, const dv_plan_member *own) {
    const dv_plan *plan = dv_follow_plan(f);
    const dv_plan_node *ageless = NULL;
    for (size_t m = 0; m < plan->member_count && !ageless; m++) {
        const dv_plan_member *next = &plan->members[m];
        if (!next->is_static || next == own) continue;
        ageless = find_ageless(index, next->key);
        if (ageless && !is_next_owner(f, next->slot)) ageless = NULL;
    }
    f->next_owners.are_unread = ageless != NULL;
    if (!f->next_owners.are_unread || f->next_owners.under_way) return;
    size_t at = (size_t)(ageless - dv_roster_party(f->roster)->nodes);
    int asked = dv_roster_ask_namesakes(f->roster, at, on_read, f);
    if (asked < 0) dv_client_again(f->config.client);
    if (asked <= 0) return;
    f->next_owners.under_way = true;
    f->next_owners.pzxid = f->party.pzxid;
    dv_follow_begin(f);
}

/* ---- both ---- */

/* Fills in the nodes of both plans' owners. Returns false when an allocation fails. */
static bool list_both(dv_follower *f, const node_index *index, const char **now, const char **before) {
    const dv_plan *plan = dv_follow_plan(f);
    if (!list_now(f, index, plan, now) || !list_before(f, index, plan->set, before)) return false;
    leave_out_own(f, before, plan->set->count);
    return true;
}

const char **dv_follow_list_owners(dv_follower *f, const dv_plan_member *own, dv_follow_owners *out) {
    const dv_plan *plan = dv_follow_plan(f);
    const dv_plan_set *set = plan->set;
    const dv_plan_party *party = dv_roster_party(f->roster);
    dv_follow_forget_owners(f);
    node_index index;
    const char **now = (const char **)(uintptr_t)calloc(2 * set->count + party->count, sizeof *now);
    const char **before = now ? now + set->count : NULL, **namesakes = now ? before + set->count : NULL;
    if (!make_index(&index, party) || !now || !list_both(f, &index, now, before)) {
        free((void *)index.sorted);
        free((void *)now);
        return NULL;
    }
    read_next_owners(f, &index, own);
    free((void *)index.sorted);
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
