/* The claims of a party's nodes to the members of a plan. SPDX-License-Identifier: Apache-2.0
 *
 * docs/protocol.md, D12. */
#include "plan/claims.h"

#include <stdlib.h>
#include <string.h>

#include "divvy/error.h"
#include "plan/agree.h"
#include "znode/path.h"

static int compare_keys(bool a_static, const char *a, bool b_static, const char *b) {
    if (a_static != b_static) return a_static ? 1 : -1;
    return strcmp(a, b);
}

/* D12: a start above the node's own czxid is of other numbers, from before servers were wiped. */
int64_t dv_plan_start(const dv_plan_node *node) {
    bool later = node->first_czxid > 0 && node->first_czxid < node->czxid;
    return later ? node->first_czxid : node->czxid;
}

/* D12: a process that comes back has a younger node than before, but is no younger itself. */
bool dv_plan_came_later(const dv_plan_node *a, const dv_plan_node *b) {
    int64_t a_start = dv_plan_start(a), b_start = dv_plan_start(b);
    if (a_start != b_start) return a_start > b_start;
    return a->czxid != b->czxid ? a->czxid > b->czxid : strcmp(a->node, b->node) > 0;
}

/* By key; of one key the last process first. */
static int by_key(const void *left, const void *right) {
    const dv_plan_claim *a = left;
    const dv_plan_claim *b = right;
    int order = compare_keys(a->is_static, a->key, b->is_static, b->key);
    if (order != 0) return order;
    return (int)dv_plan_came_later(b->node, a->node) - (int)dv_plan_came_later(a->node, b->node);
}

/* The keys of the plan's members that are not static, sorted: such a node is no stranger, so nothing has to be read. */
static const char **dynamic_keys(const dv_plan *plan, size_t *count) {
    *count = 0;
    const char **keys = (const char **)calloc((plan != NULL ? plan->member_count : 0) + 1, sizeof *keys);
    if (keys == NULL) return NULL;
    for (size_t m = 0; plan != NULL && m < plan->member_count; m++) {
        if (!plan->members[m].is_static) keys[(*count)++] = plan->members[m].key;
    }
    qsort((void *)keys, *count, sizeof *keys, dv_name_compare);
    return keys;
}

static void ask(dv_plan_claims *c, bool *asks, size_t node) {
    c->asks = true;
    if (asks != NULL) asks[node] = true;
}

/* Static nodes of one identifier: the last process counts, so all must tell when theirs came. */
static void keep_last(dv_plan_claims *c, const dv_plan_party *party, bool *asks) {
    size_t kept = 0;
    for (size_t from = 0, to; from < c->count; from = to) {
        const dv_plan_claim *first = &c->claims[from];
        for (to = from + 1;
             to < c->count && first->is_static && c->claims[to].is_static && strcmp(first->key, c->claims[to].key) == 0;
             to++) {
        }
        for (size_t n = from; to - from > 1 && n < to; n++) {
            if (c->claims[n].node->czxid == 0) ask(c, asks, (size_t)(c->claims[n].node - party->nodes));
        }
        c->claims[kept++] = *first;
    }
    c->count = kept;
}

int dv_plan_claims_make(dv_plan_claims *out, const dv_plan *previous, const dv_plan_party *party, bool *asks) {
    size_t key_count;
    const char **keys = dynamic_keys(previous, &key_count);
    *out = (dv_plan_claims){.claims = calloc(party->count + 1, sizeof *out->claims)};
    if (keys == NULL || out->claims == NULL) {
        free((void *)keys);
        free(out->claims);
        return DIVVY_ENOMEM;
    }
    for (size_t n = 0; n < party->count; n++) {
        const dv_plan_node *node = &party->nodes[n];
        if (node->is_ghost) continue;
        bool old =
            bsearch((const void *)&node->node, (const void *)keys, key_count, sizeof *keys, dv_name_compare) != NULL;
        if (!old && !node->known) {
            ask(out, asks, n);
            continue;
        }
        bool is_static = !old && node->is_static;
        out->claims[out->count++] =
            (dv_plan_claim){.is_static = is_static, .key = is_static ? node->identifier : node->node, .node = node};
    }
    free((void *)keys);
    qsort(out->claims, out->count, sizeof *out->claims, by_key);
    keep_last(out, party, asks);
    return 0;
}

dv_plan_claim *dv_plan_claims_find(const dv_plan_claims *claims, const dv_plan_member *member) {
    size_t from = 0, to = claims->count;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        dv_plan_claim *claim = &claims->claims[middle];
        int order = compare_keys(claim->is_static, claim->key, member->is_static, member->key);
        if (order == 0) return claim;
        if (order < 0) from = middle + 1;
        else to = middle;
    }
    return NULL;
}

int dv_plan_ask(const dv_plan *previous, const dv_plan_party *party, bool *asks) {
    dv_plan_claims claims;
    for (size_t n = 0; n < party->count; n++) asks[n] = false;
    int error = dv_plan_claims_make(&claims, previous, party, asks);
    if (error != 0) return error;
    free(claims.claims);
    int count = 0;
    dv_plan_agree_asks(previous, party, asks);
    for (size_t n = 0; n < party->count; n++) count += asks[n];
    return count;
}

size_t dv_plan_successor(const dv_plan_party *party, size_t node) {
    const dv_plan_node *me = &party->nodes[node], *last = me;
    if (!me->known || !me->is_static) return SIZE_MAX;
    for (size_t n = 0; n < party->count; n++) {
        const dv_plan_node *other = &party->nodes[n];
        if (n != node && !other->is_ghost && other->known && other->is_static &&
            strcmp(other->identifier, me->identifier) == 0 && dv_plan_came_later(other, last)) {
            last = other;
        }
    }
    return last == me ? SIZE_MAX : (size_t)(last - party->nodes);
}

bool dv_plan_fenced(const dv_plan_party *party, size_t node) {
    return dv_plan_successor(party, node) != SIZE_MAX;
}

const dv_plan_member *dv_plan_member_of(const dv_plan *plan, const dv_plan_party *party, size_t node) {
    const dv_plan_node *me = &party->nodes[node];
    if (me->is_ghost) return NULL;
    const dv_plan_member *member = dv_plan_find(plan, false, me->node);
    if (member != NULL || !me->known || !me->is_static) return member;
    return dv_plan_fenced(party, node) ? NULL : dv_plan_find(plan, true, me->identifier);
}
