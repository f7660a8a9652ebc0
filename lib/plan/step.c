/* The step from one plan to the next: docs/protocol.md, D10 to D20, in order. SPDX-License-Identifier: Apache-2.0 */
#include "plan/step.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "divvy/assign.h"
#include "divvy/error.h"

typedef struct {
    const dv_plan *previous; /* NULL: none that says anything */
    const dv_plan_party *party;
    const dv_plan_events *events;
    dv_plan_claims claims;
    dv_plan *next;
    uint32_t reasons; /* a bit for each that has come up; the first of them is told. 0: members, options, tag and set
                         are as before */
} step;

static void note(step *s, dv_plan_reason reason) {
    s->reasons |= UINT32_C(1) << reason;
}

/* ---- D12, D13: who is there ---- */

static bool is_expired(const step *s, const dv_plan_member *m) {
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
static void update_weight(step *s, dv_plan_member *m, const dv_plan_node *node) {
    assert(m->is_static);
    if (node->weight_unknown) return;
    if (m->says_configured && m->configured != node->weight) {
        m->weight = node->weight;
        note(s, node->weight == 0 ? DV_PLAN_DRAIN : DV_PLAN_WEIGHT);
    }
    m->says_configured = true;
    m->configured = node->weight;
}

/* D12: what of a static member may be another after a restart. */
static int update_from_node(step *s, dv_plan_member *m, const dv_plan_node *node) {
    if (m->leaving[0] != '\0' && strcmp(m->leaving, node->node) != 0) {
        int error = set_text(&m->leaving, "");
        if (error < 0) return error;
        m->weight = node->weight; /* D14: it had left, so it is new */
        note(s, DV_PLAN_JOIN);
    }
    if (m->absent != 0) note(s, DV_PLAN_ABSENCE);
    m->absent = 0;
    if (!m->is_static) return 0;
    update_weight(s, m, node);
    int changed = set_text(&m->zone, node->zone);
    if (changed < 0) return changed;
    if (changed || m->rejoin_delay_ms != node->rejoin_delay_ms) note(s, DV_PLAN_OPTIONS);
    m->rejoin_delay_ms = node->rejoin_delay_ms;
    return 0;
}

/* Returns whether it stays in the plan though its node is not there. */
static bool stays(step *s, dv_plan_member *m) {
    if (m->leaving[0] != '\0') return false; /* D14: it has left, and nothing of it is left to tell of */
    if (!m->is_static || m->rejoin_delay_ms == 0 || is_expired(s, m)) {
        note(s, DV_PLAN_LOSS);
        return false;
    }
    if (m->absent == 0) {
        m->absent = s->party->pzxid;
        note(s, DV_PLAN_ABSENCE);
    }
    return true;
}

static int match_members(step *s) {
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
static int add_new_members(step *s) {
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
            .says_configured = says_configured,
            .configured = says_configured ? claim->node->weight : 0,
        };
        if (!dv_plan_add_member(s->next, &member)) return DIVVY_ENOMEM;
        note(s, DV_PLAN_JOIN);
    }
    dv_plan_sort_members(s->next);
    return 0;
}

/* ---- D14, D15: a leave, a weight ---- */

static int mark_leaving(step *s, const char *node) {
    for (size_t n = 0; n < s->claims.count; n++) {
        const dv_plan_claim *claim = &s->claims.claims[n];
        if (strcmp(claim->node->node, node) != 0) continue;
        dv_plan_member *member = dv_plan_find(s->next, claim->is_static, claim->key);
        assert(member != NULL);
        int changed = set_text(&member->leaving, node);
        if (changed < 0) return changed;
        if (changed) note(s, DV_PLAN_LEAVE);
    }
    return 0;
}

static void set_weight(step *s, const dv_plan_weight *w) {
    for (size_t m = 0; m < s->next->member_count; m++) {
        dv_plan_member *member = &s->next->members[m];
        if (strcmp(member->key, w->key) != 0 || member->weight == w->weight) continue;
        member->weight = w->weight;
        note(s, w->weight == 0 ? DV_PLAN_DRAIN : DV_PLAN_WEIGHT);
    }
}

/* ---- D16: which options ---- */

static void choose_options(step *s) {
    dv_plan_options options = s->next->header.options;
    dv_plan_agree_options(s->party, &options);
    if (dv_plan_options_equal(&options, &s->next->header.options)) return;
    s->next->header.options = options;
    note(s, DV_PLAN_OPTIONS);
}

/* ---- D17: which items ---- */

/* Both are sorted, so that one walk finds where the old items are among the new. */
static int replace_set(step *s, dv_plan_set *set) {
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
    free(plan->owners);
    plan->owners = owners;
    dv_plan_set_ref(set);
    dv_plan_set_unref(plan->set);
    plan->set = set;
    note(s, DV_PLAN_SET);
    return 0;
}

static int choose_set(step *s) {
    dv_plan_set *own = s->party->set, *chosen = s->events->set;
    dv_plan_header *h = &s->next->header;
    int64_t asked_at = s->previous != NULL ? dv_plan_asked_at(s->previous, s->party) : 0;
    if (own != NULL && own->crc != h->tag && dv_plan_all_carry(s->party, own->crc)) {
        h->tag = own->crc;
        note(s, DV_PLAN_SET);
        if (chosen == NULL) chosen = own;
    } else if (dv_plan_returns_to_tag(s->previous, s->party, NULL) == DV_PLAN_NEXT) {
        if (chosen == NULL) chosen = own;
        note(s, DV_PLAN_SET); /* If they are requested once more, the next step has to know. */
    }
    bool other = chosen != NULL && !dv_plan_set_equal(chosen, s->next->set);
    int error = other ? replace_set(s, chosen) : 0;
    bool asked_now = s->events->set != NULL || asked_at == 0;
    h->asked = s->next->set->crc == h->tag ? 0 : asked_now ? s->party->pzxid : asked_at;
    return error;
}

/* ---- D18, D19: who gets what ---- */

/* A member that is gone or leaves owns nothing. */
static void orphan_items(dv_plan *plan) {
    bool owns[DV_PLAN_SLOTS] = {0};
    for (size_t m = 0; m < plan->member_count; m++) {
        owns[plan->members[m].slot] = plan->members[m].leaving[0] == '\0';
    }
    for (size_t i = 0; i < plan->set->count; i++) {
        if (plan->owners[i] != DV_PLAN_NO_SLOT && !owns[plan->owners[i]]) plan->owners[i] = DV_PLAN_NO_SLOT;
    }
}

/* D19: leaves in the list the items of the round before that are still on their way. */
static void keep_moved(const step *s) {
    dv_plan *plan = s->next;
    bool over = s->events->round_over != NULL && s->previous != NULL &&
                strcmp(s->events->round_over, s->previous->header.guid) == 0;
    if (over || plan->header.options.max_moves == 0) plan->moved_count = 0;
    size_t kept = 0;
    for (size_t n = 0; n < plan->moved_count; n++) {
        if (plan->owners[plan->moved[n]] != DV_PLAN_NO_SLOT) plan->moved[kept++] = plan->moved[n];
    }
    assert(kept <= plan->moved_count);
    plan->moved_count = kept;
}

/* The members and the items of one deal. */
typedef struct {
    divvy_member *members;
    uint32_t *slots; /* of the members */
    size_t member_count;
    const char **items;
    uint32_t *places; /* of the items, among the plan's */
    uint32_t *owners; /* of the items: indices of members */
    size_t item_count;
} table;

static void table_free(table *t) {
    free(t->members);
    free(t->slots);
    free((void *)t->items);
    free(t->places);
    free(t->owners);
}

static bool takes_part(const dv_plan_member *m, bool absent_too) {
    return m->leaving[0] == '\0' && (absent_too || m->absent == 0);
}

/* Lays out all who take part, and the items that nobody else has. */
static bool table_lay(table *t, const dv_plan *plan, bool absent_too) {
    enum { OUTSIDE = UINT32_MAX - 1 };
    uint32_t index_of[DV_PLAN_SLOTS];
    size_t members = plan->member_count + 1, items = plan->set->count + 1;
    *t = (table){.members = calloc(members, sizeof *t->members),
                 .slots = calloc(members, sizeof *t->slots),
                 .items = (const char **)calloc(items, sizeof *t->items),
                 .places = calloc(items, sizeof *t->places),
                 .owners = calloc(items, sizeof *t->owners)};
    if (!t->members || !t->slots || !t->items || !t->places || !t->owners) return false;
    for (size_t n = 0; n < DV_PLAN_SLOTS; n++) index_of[n] = OUTSIDE;
    for (size_t n = 0; n < plan->member_count; n++) {
        const dv_plan_member *m = &plan->members[n];
        if (!takes_part(m, absent_too)) continue;
        index_of[m->slot] = (uint32_t)t->member_count;
        t->slots[t->member_count] = m->slot;
        t->members[t->member_count++] = (divvy_member){m->key, m->weight, m->zone};
    }
    for (size_t i = 0; i < plan->set->count; i++) {
        uint32_t slot = plan->owners[i];
        uint32_t owner = slot == DV_PLAN_NO_SLOT ? UINT32_MAX : index_of[slot];
        if (owner == OUTSIDE) continue;
        t->items[t->item_count] = plan->set->names[i];
        t->places[t->item_count] = (uint32_t)i;
        t->owners[t->item_count++] = owner;
    }
    return true;
}

static int table_assign(table *t, uint32_t max_moves, bool keep_all) {
    divvy_sticky_options options = DIVVY_STICKY_OPTIONS_INIT;
    options.max_moves = max_moves;
    options.spread_zones = 1;
    options.keep_all = keep_all;
    int error =
        divvy_assign_sticky(t->members, t->member_count, t->items, t->item_count, t->owners, &options, t->owners);
    assert(error == 0 || error == DIVVY_ENOMEM);
    return error;
}

/* D19: lists in the plan the items that are about to get another owner. */
static int list_moved(const table *t, dv_plan *plan) {
    uint32_t *moved = malloc(DV_PLAN_MOVED_MAX * sizeof *moved);
    if (moved == NULL) return DIVVY_ENOMEM;
    free(plan->moved);
    plan->moved = moved;
    assert(plan->moved_count == 0);
    for (size_t n = 0; n < t->item_count && plan->moved_count < DV_PLAN_MOVED_MAX; n++) {
        uint32_t before = plan->owners[t->places[n]];
        if (before != DV_PLAN_NO_SLOT && before != t->slots[t->owners[n]]) moved[plan->moved_count++] = t->places[n];
    }
    return 0;
}

static bool table_differs(const table *t, const dv_plan *plan) {
    for (size_t n = 0; n < t->item_count; n++) {
        if (t->slots[t->owners[n]] != plan->owners[t->places[n]]) return true;
    }
    return false;
}

/* D18: returns in *balanced whether no item would move were the absent here. Without them the shares of the others may
 * round otherwise, so that restarts would move items. */
static int balanced_with_absent(const dv_plan *plan, bool *balanced) {
    table t;
    int error = table_lay(&t, plan, true) ? table_assign(&t, 0, false) : DIVVY_ENOMEM;
    *balanced = error == 0 && !table_differs(&t, plan);
    table_free(&t);
    return error;
}

/* Gives items new owners where it must; while the plan lists moved items, only those that have none. */
static int deal(dv_plan *plan) {
    uint32_t max_moves = plan->header.options.max_moves;
    bool is_open = plan->moved_count > 0;
    size_t taking_part = 0, absent = 0;
    for (size_t m = 0; m < plan->member_count; m++) {
        taking_part += takes_part(&plan->members[m], false);
        absent += plan->members[m].absent != 0;
    }
    if (taking_part == 0) return 0; /* what has no owner waits */
    if (absent > 0) {
        bool balanced;
        int error = balanced_with_absent(plan, &balanced);
        if (error != 0 || balanced) return error;
    }
    table t;
    int error = table_lay(&t, plan, false) ? table_assign(&t, max_moves, is_open) : DIVVY_ENOMEM;
    if (error == 0 && !is_open && max_moves > 0) error = list_moved(&t, plan);
    for (size_t n = 0; error == 0 && n < t.item_count; n++) plan->owners[t.places[n]] = t.slots[t.owners[n]];
    table_free(&t);
    return error;
}

/* ---- the step ---- */

/* D10: who owns what before there is a plan is what the writer followed. */
static int take_first_owners(step *s) {
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

static int compute(step *s) {
    int error = match_members(s);
    if (error != 0) return error;
    orphan_items(s->next); /* before their slots are another's */
    error = add_new_members(s);
    if (error == 0 && s->previous == NULL) error = take_first_owners(s);
    if (error == 0 && s->events->weight.key != NULL) set_weight(s, &s->events->weight);
    if (error == 0 && s->events->leaving != NULL) error = mark_leaving(s, s->events->leaving);
    if (error != 0) return error;
    orphan_items(s->next);
    choose_options(s);
    error = choose_set(s);
    keep_moved(s);
    return error != 0 ? error : deal(s->next);
}

/* Returns whether an item changes its owner. D20: where nothing changes there is nothing to write. */
static bool owners_differ(const dv_plan *a, const dv_plan *b) {
    return a->set->count > 0 && memcmp(a->owners, b->owners, a->set->count * sizeof *a->owners) != 0;
}

static dv_plan_reason first_reason(const step *s) {
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
    step s = {.previous = from, .party = party, .events = events != NULL ? events : &no_events};
    int error = dv_plan_claims_make(&s.claims, from, party, NULL);
    if (error != 0) return error;
    if (s.claims.asks || dv_plan_returns_to_tag(from, party, NULL) == DV_PLAN_ASK) {
        free(s.claims.claims);
        return DV_PLAN_ASK;
    }
    s.next = from != NULL ? dv_plan_copy(from) : first_plan(previous, party);
    if (from == NULL) note(&s, DV_PLAN_CREATE);
    error = s.next != NULL ? compute(&s) : DIVVY_ENOMEM;
    free(s.claims.claims);
    bool differs = error == 0 && (s.reasons != 0 || owners_differ(from, s.next));
    if (differs) {
        dv_plan_follows(s.next, previous, party, first_reason(&s));
        *next = s.next;
        return DV_PLAN_NEXT;
    }
    dv_plan_free(s.next);
    return error != 0 ? error : DV_PLAN_NOTHING;
}
