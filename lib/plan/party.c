/* The live nodes of a settled party: who they are in a plan, what they carry. SPDX-License-Identifier: Apache-2.0 */
#include "plan/party.h"

#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "divvy/error.h"
#include "plan/wish.h"
#include "znode/path.h"

/* ---- D12: who is who ---- */

/* D12: a start above the node's own czxid is of other numbers, from before servers were wiped. */
int64_t dv_plan_start(const dv_plan_node *node) {
    bool later = node->first_czxid > 0 && node->first_czxid < node->czxid;
    return later ? node->first_czxid : node->czxid;
}

bool dv_plan_came_later(const dv_plan_node *a, const dv_plan_node *b) {
    int64_t a_start = dv_plan_start(a), b_start = dv_plan_start(b);
    if (a_start != b_start) return a_start > b_start;
    return a->czxid != b->czxid ? a->czxid > b->czxid : strcmp(a->node, b->node) > 0;
}

static int by_key(const void *left, const void *right) {
    const dv_plan_claim *a = left;
    const dv_plan_claim *b = right;
    if (a->is_static != b->is_static) return a->is_static ? 1 : -1;
    return strcmp(a->key, b->key);
}

/* By key; of one key the last process first. */
static int by_key_and_age(const void *left, const void *right) {
    const dv_plan_claim *a = left;
    const dv_plan_claim *b = right;
    int order = by_key(a, b);
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
        to = from + 1;
        while (to < c->count && first->is_static && by_key(first, &c->claims[to]) == 0) to++;
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
        if (!old && !node->known) ask(out, asks, n);
        bool is_static = !old && node->is_static;
        out->claims[out->count++] =
            (dv_plan_claim){.is_static = is_static, .key = is_static ? node->identifier : node->node, .node = node};
    }
    free((void *)keys);
    qsort(out->claims, out->count, sizeof *out->claims, by_key_and_age);
    keep_last(out, party, asks);
    return 0;
}

dv_plan_claim *dv_plan_claims_find(const dv_plan_claims *claims, const dv_plan_member *member) {
    const dv_plan_claim key = {.is_static = member->is_static, .key = member->key};
    return bsearch(&key, claims->claims, claims->count, sizeof key, by_key);
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

/* ---- D16, D17: what names say ---- */

bool dv_plan_all_carry(const dv_plan_party *party, uint32_t tag) {
    size_t members = 0;
    for (size_t n = 0; n < party->count; n++) {
        if (party->nodes[n].is_ghost) continue;
        if (party->nodes[n].tag != tag) return false;
        members++;
    }
    return members > 0;
}

bool dv_plan_all_balance(const dv_plan_party *party) {
    for (size_t n = 0; n < party->count; n++) {
        if (!party->nodes[n].is_ghost && !party->nodes[n].can_balance) return false;
    }
    return true;
}

bool dv_plan_options_equal(const dv_plan_options *a, const dv_plan_options *b) {
    return a->max_moves == b->max_moves && a->round_timeout_ms == b->round_timeout_ms;
}

static void carried_options(const dv_plan_party *party, dv_plan_options *options) {
    const dv_plan_node *first = NULL;
    for (size_t n = 0; n < party->count; n++) {
        const dv_plan_node *node = &party->nodes[n];
        if (node->is_ghost) continue;
        if (first == NULL) first = node;
        if (!node->has_options || !dv_plan_options_equal(&node->options, &first->options)) return;
    }
    if (first != NULL) *options = first->options;
}

void dv_plan_agree_options(const dv_plan *plan, const dv_plan_party *party, dv_plan_options *options) {
    carried_options(party, options);
    if (!plan->header.is_balanced) return;
    options->max_moves = (uint32_t)dv_wishes_number(plan->wishes, "max-moves", options->max_moves, UINT32_MAX);
    options->round_timeout_ms =
        (int64_t)dv_wishes_number(plan->wishes, "round-timeout", (double)options->round_timeout_ms, DV_TIME_MAX_MS);
}

/* ---- D17: items that somebody requested, and members that came later ---- */

/* D17: an older release does not say since when. In a plan from another ensemble it counts from now on. */
int64_t dv_plan_asked_at(const dv_plan *plan, const dv_plan_party *party) {
    if (plan->set->crc == plan->header.tag) return 0;
    int64_t at = plan->header.asked != 0 ? plan->header.asked : plan->header.pzxid;
    bool foreign = at >= party->pzxid || (plan->mzxid != 0 && plan->header.pzxid >= plan->mzxid);
    return foreign ? party->pzxid : at;
}

static bool may_return(const dv_plan *plan, const dv_plan_party *party) {
    bool asked = plan != NULL && plan->header.generation > 0 && plan->set->crc != plan->header.tag;
    return asked && dv_plan_all_carry(party, plan->header.tag);
}

/* A member counts from its first node, also where it has lost that and made another. */
static bool came_after(const dv_plan_node *node, int64_t zxid) {
    if (node->is_ghost) return true; /* It is nobody's. */
    return dv_plan_start(node) > zxid;
}

static bool is_read(const dv_plan_node *node) {
    return node->known && node->czxid != 0;
}

/* Looks whether all came after the request, as dv_plan_returns_to_tag(). */
static int compare_ages(const dv_plan *plan, const dv_plan_party *party, bool *asks) {
    int64_t asked_at = dv_plan_asked_at(plan, party);
    int result = DV_PLAN_NEXT;
    for (size_t n = 0; n < party->count; n++) {
        if (is_read(&party->nodes[n]) && !came_after(&party->nodes[n], asked_at)) return DV_PLAN_NOTHING;
    }
    for (size_t n = 0; n < party->count; n++) {
        if (is_read(&party->nodes[n])) continue;
        if (asks != NULL) asks[n] = true;
        result = DV_PLAN_ASK;
    }
    return result;
}

int dv_plan_returns_to_tag(const dv_plan *plan, const dv_plan_party *party, bool *asks) {
    if (party->set == NULL || !may_return(plan, party) || party->set->crc != plan->header.tag) return DV_PLAN_NOTHING;
    return compare_ages(plan, party, asks);
}

bool dv_plan_members_return(const dv_plan *plan, const dv_plan_party *party) {
    if (party->set != NULL || !may_return(plan, party) || plan->header.pzxid == party->pzxid) return false;
    return compare_ages(plan, party, NULL) == DV_PLAN_NEXT;
}

bool dv_plan_agree_differs(const dv_plan *plan, const dv_plan_party *party) {
    dv_plan_options options = plan->header.options;
    dv_plan_agree_options(plan, party, &options);
    bool other_set = party->set != NULL && party->set->crc != plan->header.tag;
    return !dv_plan_options_equal(&options, &plan->header.options) ||
           (other_set && dv_plan_all_carry(party, party->set->crc));
}

/* ---- D10: what has to be read ---- */

int dv_plan_ask(const dv_plan *previous, const dv_plan_party *party, bool *asks) {
    dv_plan_claims claims;
    for (size_t n = 0; n < party->count; n++) asks[n] = false;
    int error = dv_plan_claims_make(&claims, previous, party, asks);
    if (error != 0) return error;
    free(claims.claims);
    int count = 0;
    dv_plan_returns_to_tag(previous, party, asks);
    for (size_t n = 0; n < party->count; n++) count += asks[n];
    return count;
}
