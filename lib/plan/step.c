/* The step from one plan to the next: docs/protocol.md, D10 to D20, in order. SPDX-License-Identifier: Apache-2.0 */
#include "plan/step.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "divvy/error.h"
#include "plan/step_internal.h"

/* ---- D12, D13: who is there ---- */

static bool is_expired(const dv_step *s, const dv_plan_member *m) {
    for (size_t n = 0; n < s->events->expired_count; n++) {
        const dv_plan_expiry *e = &s->events->expired[n];
        if (m->absent != 0 && e->absent == m->absent && strcmp(e->key, m->key) == 0) return true;
    }
    return false;
}

static int set_text(char **text, const char *to) {
    if (strcmp(*text, to) == 0) return 0;
    char *copy = strdup(to);
    if (copy == NULL) return DIVVY_ENOMEM;
    free(*text);
    *text = copy;
    return 1;
}

/* D15: its weight is the plan's, but the configured one counts when it has changed. */
static void update_weight(dv_step *s, dv_plan_member *m, const dv_plan_node *node) {
    assert(m->is_static);
    if (node->weight_unknown) return;
    if (m->says_configured && m->configured != node->weight) {
        m->weight = node->weight;
        dv_step_note(s, node->weight == 0 ? DV_PLAN_DRAIN : DV_PLAN_WEIGHT);
    }
    m->says_configured = true;
    m->configured = node->weight;
}

/* D12: what of a static member may be another after a restart. */
static int update_from_node(dv_step *s, dv_plan_member *m, const dv_plan_node *node) {
    if (m->leaving[0] != '\0' && strcmp(m->leaving, node->node) != 0) {
        int error = set_text(&m->leaving, "");
        if (error < 0) return error;
        m->weight = node->weight; /* D14: it had left, so it is new */
        dv_step_note(s, DV_PLAN_JOIN);
    }
    if (m->absent != 0) dv_step_note(s, DV_PLAN_ABSENCE);
    m->absent = 0;
    if (!m->is_static) return 0;
    update_weight(s, m, node);
    int zone = set_text(&m->zone, node->zone), tags = set_text(&m->tags, node->tags != NULL ? node->tags : "");
    if (zone < 0 || tags < 0) return DIVVY_ENOMEM;
    if (zone || tags || m->cap != node->cap || m->rejoin_delay_ms != node->rejoin_delay_ms)
        dv_step_note(s, DV_PLAN_OPTIONS);
    m->cap = node->cap;
    m->rejoin_delay_ms = node->rejoin_delay_ms;
    return 0;
}

/* Returns whether it stays in the plan though its node is not there. */
static bool stays(dv_step *s, dv_plan_member *m) {
    if (m->leaving[0] != '\0') return false; /* D14: it has left, and nothing of it is left to tell of */
    if (!m->is_static || m->rejoin_delay_ms == 0 || is_expired(s, m)) {
        dv_step_note(s, DV_PLAN_LOSS);
        return false;
    }
    if (m->absent == 0) {
        m->absent = s->party->pzxid;
        dv_step_note(s, DV_PLAN_ABSENCE);
    }
    return true;
}

static int match_members(dv_step *s) {
    dv_plan *plan = s->next;
    size_t kept = 0, count = plan->member_count;
    int error = 0;
    for (size_t m = 0; m < count; m++) {
        dv_plan_member *member = &plan->members[m];
        dv_plan_claim *claim = dv_plan_claims_find(&s->claims, member);
        if (claim != NULL) {
            assert(!claim->taken);
            claim->taken = true;
            if (error == 0) error = update_from_node(s, member, claim->node);
        } else if (error == 0 && !stays(s, member)) {
            dv_plan_member_clear(member);
            continue;
        }
        dv_plan_member moved = *member;
        plan->members[kept++] = moved;
    }
    assert(kept <= count);
    plan->member_count = kept;
    return error;
}

/* D11: the lowest slots that are free, in the order of keys. */
static int add_new_members(dv_step *s) {
    bool used[DV_PLAN_SLOTS] = {0};
    static char none[] = "";
    for (size_t m = 0; m < s->next->member_count; m++) used[s->next->members[m].slot] = true;
    uint32_t slot = 0;
    for (size_t n = 0; n < s->claims.count; n++) {
        const dv_plan_claim *claim = &s->claims.claims[n];
        if (claim->taken) continue;
        while (slot < DV_PLAN_SLOTS && used[slot]) slot++;
        if (slot == DV_PLAN_SLOTS) return DIVVY_ELIMIT;
        bool says_configured = claim->is_static && !claim->node->weight_unknown;
        dv_plan_member member = {
            .slot = slot++,
            .is_static = claim->is_static,
            .key = (char *)(uintptr_t)claim->key, /* copied below */
            .weight = claim->node->weight,
            .zone = (char *)(uintptr_t)claim->node->zone,
            .rejoin_delay_ms = claim->is_static ? claim->node->rejoin_delay_ms : 0,
            .leaving = none,
            .tags = (char *)(uintptr_t)claim->node->tags,
            .cap = claim->node->cap,
            .says_configured = says_configured,
            .configured = says_configured ? claim->node->weight : 0,
        };
        if (!dv_plan_add_member(s->next, &member)) return DIVVY_ENOMEM;
        dv_step_note(s, DV_PLAN_JOIN);
    }
    dv_plan_sort_members(s->next);
    return 0;
}

/* ---- D14, D15: a leave, a weight ---- */

static int mark_leaving(dv_step *s, const char *node) {
    for (size_t n = 0; n < s->claims.count; n++) {
        const dv_plan_claim *claim = &s->claims.claims[n];
        if (strcmp(claim->node->node, node) != 0) continue;
        dv_plan_member *member = dv_plan_find(s->next, claim->is_static, claim->key);
        assert(member != NULL);
        int changed = set_text(&member->leaving, node);
        if (changed < 0) return changed;
        if (changed) dv_step_note(s, DV_PLAN_LEAVE);
    }
    return 0;
}

static void set_weight(dv_step *s, const dv_plan_weight *w) {
    for (size_t m = 0; m < s->next->member_count; m++) {
        dv_plan_member *member = &s->next->members[m];
        if (strcmp(member->key, w->key) != 0 || member->weight == w->weight) continue;
        member->weight = w->weight;
        dv_step_note(s, w->weight == 0 ? DV_PLAN_DRAIN : DV_PLAN_WEIGHT);
    }
}

/* ---- D16: which options ---- */

static void choose_options(dv_step *s) {
    dv_plan_options options = s->next->header.options;
    dv_plan_agree_options(s->next, s->party, &options);
    if (dv_plan_options_equal(&options, &s->next->header.options)) return;
    s->next->header.options = options;
    dv_step_note(s, DV_PLAN_OPTIONS);
}

/* ---- D17: which items ---- */

/* Both are sorted, so that one walk finds where the old items are among the new. */
static int replace_set(dv_step *s, dv_plan_set *set) {
    dv_plan *plan = s->next;
    uint32_t *owners = malloc((set->count + 1) * sizeof *owners);
    if (owners == NULL) return DIVVY_ENOMEM;
    size_t old = 0, pending = 0, kept = 0;
    for (size_t i = 0; i < set->count; i++) {
        owners[i] = DV_PLAN_NO_SLOT;
        int order = 1;
        while (old < plan->set->count && (order = strcmp(plan->set->names[old], set->names[i])) < 0) old++;
        if (old == plan->set->count || order != 0) continue;
        owners[i] = plan->owners[old];
        while (pending < plan->moved_count && plan->moved[pending] < old) pending++;
        if (pending == plan->moved_count || plan->moved[pending] != old) continue;
        pending++; /* before its place in the list is written over */
        plan->moved[kept++] = (uint32_t)i;
    }
    assert(kept <= pending);
    plan->moved_count = kept;
    int error = dv_step_replace_loads(plan, set);
    if (error != 0) {
        free(owners);
        return error;
    }
    free(plan->owners);
    plan->owners = owners;
    dv_plan_set_ref(set);
    dv_plan_set_unref(plan->set);
    plan->set = set;
    dv_step_note(s, DV_PLAN_SET);
    return 0;
}

static int choose_set(dv_step *s) {
    dv_plan_set *own = s->party->set, *chosen = s->events->set;
    dv_plan_header *h = &s->next->header;
    int64_t asked_at = s->previous != NULL ? dv_plan_asked_at(s->previous, s->party) : 0;
    if (own != NULL && own->crc != h->tag && dv_plan_all_carry(s->party, own->crc)) {
        h->tag = own->crc;
        dv_step_note(s, DV_PLAN_SET);
        if (chosen == NULL) chosen = own;
    } else if (dv_plan_returns_to_tag(s->previous, s->party, NULL) == DV_PLAN_NEXT) {
        if (chosen == NULL) chosen = own;
        dv_step_note(s, DV_PLAN_SET); /* If they are requested once more, the next step has to know. */
    }
    bool other = chosen != NULL && !dv_plan_set_equal(chosen, s->next->set);
    int error = other ? replace_set(s, chosen) : 0;
    bool asked_now = s->events->set != NULL || asked_at == 0;
    h->asked = s->next->set->crc == h->tag ? 0 : asked_now ? s->party->pzxid : asked_at;
    return error;
}

/* ---- the step ---- */

/* D10: who owns what before there is a plan is what the writer followed. */
static int take_first_owners(dv_step *s) {
    assert(!s->previous);
    const uint32_t *owners = s->party->owners;
    if (owners == NULL || !dv_plan_set_equal(s->next->set, s->party->set)) return 0;
    uint32_t *slots = malloc((s->party->count + 1) * sizeof *slots);
    if (slots == NULL) return DIVVY_ENOMEM;
    for (size_t n = 0; n < s->party->count; n++) slots[n] = DV_PLAN_NO_SLOT;
    for (size_t n = 0; n < s->claims.count; n++) {
        const dv_plan_claim *claim = &s->claims.claims[n];
        const dv_plan_member *member = dv_plan_find(s->next, claim->is_static, claim->key);
        assert(member);
        slots[claim->node - s->party->nodes] = member->slot;
    }
    for (size_t i = 0; i < s->next->set->count; i++) {
        if (owners[i] < s->party->count) s->next->owners[i] = slots[owners[i]];
    }
    free(slots);
    return 0;
}

static dv_plan *first_plan(const dv_plan *previous, const dv_plan_party *party) {
    assert(party->set);
    dv_plan *plan = dv_plan_make(dv_plan_set_ref(party->set));
    if (plan == NULL) return NULL;
    if (previous != NULL) plan->header = previous->header; /* D10: its root has been made already */
    plan->header.options = party->options;
    plan->header.asked = 0;
    plan->header.tag = party->set->crc;
    return plan;
}

static int compute(dv_step *s) {
    int error = match_members(s);
    if (error != 0) return error;
    dv_step_orphan_items(s->next); /* before their slots are another's */
    error = add_new_members(s);
    if (error == 0 && s->previous == NULL) error = take_first_owners(s);
    if (error == 0 && s->events->weight.key != NULL) set_weight(s, &s->events->weight);
    if (error == 0 && s->events->leaving != NULL) error = mark_leaving(s, s->events->leaving);
    if (error == 0) error = dv_step_take_wishes(s);
    if (error != 0) return error;
    dv_step_orphan_items(s->next);
    dv_step_choose_algorithm(s);
    choose_options(s);
    error = choose_set(s);
    return error != 0 ? error : dv_step_deal(s);
}

/* Returns whether an item changes its owner. D20: where nothing changes there is nothing to write. */
static bool owners_differ(const dv_plan *a, const dv_plan *b) {
    return a->set->count > 0 && memcmp(a->owners, b->owners, a->set->count * sizeof *a->owners) != 0;
}

static dv_plan_reason first_reason(const dv_step *s) {
    int reason = 0;
    while (reason < DV_PLAN_ROUND && !(s->reasons & UINT32_C(1) << reason)) reason++;
    return (dv_plan_reason)reason;
}

void dv_plan_follows(dv_plan *next, const dv_plan *previous, const dv_plan_party *party, dv_plan_reason reason) {
    dv_plan_header *h = &next->header;
    h->reason = reason;
    h->generation = previous != NULL ? previous->header.generation + 1 : 1;
    if (previous != NULL) memcpy(h->after, previous->header.guid, sizeof h->after);
    h->guid[0] = '\0';
    h->pzxid = party->pzxid;
    next->mzxid = 0;
}

/* D10: a plan for a party later than this one; unless it was written before its own time, in another ensemble. */
static bool is_later(const dv_plan *previous, const dv_plan_party *party) {
    bool honest = previous->mzxid == 0 || previous->header.pzxid < previous->mzxid;
    return honest && previous->header.pzxid > party->pzxid;
}

int dv_plan_step(dv_plan **next, const dv_plan *previous, const dv_plan_party *party, const dv_plan_events *events) {
    static const dv_plan_events no_events;
    *next = NULL;
    if (previous != NULL && is_later(previous, party)) return DV_PLAN_NOTHING;
    const dv_plan *from = previous != NULL && previous->header.generation > 0 ? previous : NULL;
    if (from == NULL && party->set == NULL) return DV_PLAN_NOTHING;
    dv_step s = {.previous = from, .party = party, .events = events != NULL ? events : &no_events};
    int error = dv_plan_claims_make(&s.claims, from, party, NULL);
    if (error != 0) return error;
    if (s.claims.asks || dv_plan_returns_to_tag(from, party, NULL) == DV_PLAN_ASK) {
        free(s.claims.claims);
        return DV_PLAN_ASK;
    }
    s.next = from != NULL ? dv_plan_copy(from) : first_plan(previous, party);
    if (from == NULL) dv_step_note(&s, DV_PLAN_CREATE);
    error = s.next != NULL ? compute(&s) : DIVVY_ENOMEM;
    free(s.claims.claims);
    bool differs = error == 0 && (from == NULL || s.reasons != 0 || owners_differ(from, s.next));
    if (differs) {
        dv_plan_follows(s.next, previous, party, first_reason(&s));
        if (s.events->told != NULL && !s.is_late) dv_step_tell(s.next, s.events->told);
        *next = s.next;
        return DV_PLAN_NEXT;
    }
    dv_plan_free(s.next);
    return error != 0 ? error : DV_PLAN_NOTHING;
}
