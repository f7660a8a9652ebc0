/* The items that the plan gives this member. SPDX-License-Identifier: Apache-2.0
 *
 * docs/protocol.md, rules P3, D10, D34, D38. Party and plan come from two sources, in either order. So one function
 * always computes the target from both, and only a difference counts. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/guid.h"
#include "partitioner/follower.h"
#include "partitioner/handover.h"

/* ---- who decides ---- */

typedef enum { KEEP, NOTHING, BY_NAMES, BY_PLAN } source;

bool dv_follow_is_fenced(const dv_follower *f) {
    return f->p->config.static_membership && dv_plan_fenced(dv_roster_party(f->people), f->own);
}

bool dv_follow_is_replaced_by_another(const dv_follower *f) {
    const dv_plan_party *party = dv_roster_party(f->people);
    size_t by = f->p->config.static_membership ? dv_plan_successor(party, f->own) : SIZE_MAX;
    return by != SIZE_MAX && !dv_guid_is_of_former_session(party->nodes[by].node, party->nodes[f->own].node);
}

/* Generation 0 only holds the place while the first plan's chunks are written (D10). */
static const dv_plan *plan_of(const dv_follower *f) {
    const dv_plan *plan = f->memory.plan;
    return plan && plan->header.generation > 0 ? plan : NULL;
}

static source choose(const dv_follower *f) {
    bool fenced = dv_follow_is_fenced(f); /* T9: by a plan it hands over what it has */
    if (f->memory.standing == DV_PLAN_NEWER) return NOTHING;
    if (f->memory.standing == DV_PLAN_BROKEN) return fenced ? NOTHING : BY_NAMES;
    if (plan_of(f)) return BY_PLAN;
    return fenced ? NOTHING : KEEP;
}

/* The member of the plan that we are, unless it leaves. D34: somebody deleted our node, and no plan has the next one
 * yet. */
static const dv_plan_member *own_member(const dv_follower *f) {
    if (dv_follow_is_fenced(f)) return NULL;
    const dv_plan_member *m = dv_plan_member_of(plan_of(f), dv_roster_party(f->people), f->own);
    if (!m && f->known_as) m = dv_plan_find(plan_of(f), false, f->known_as);
    return m && m->leaving[0] == '\0' ? m : NULL;
}

/* Without the memory for it a node that is deleted costs its items a move. */
static void note_own_member(dv_follower *f) {
    const dv_plan_member *m = own_member(f);
    if (m && f->known_as && strcmp(m->key, f->known_as) == 0) return;
    free(f->known_as);
    f->known_as = m && !m->is_static ? strdup(m->key) : NULL;
}

/* P5: in eager mode each change revokes everything, so a share is complete only when no other one is to be expected. */
static bool is_of_this_party(const dv_follower *f) {
    if (f->p->config.mode != DIVVY_EAGER || plan_of(f)->header.pzxid >= f->pzxid) return true;
    return f->verdict && f->verdict_pzxid == f->pzxid && f->verdict_mzxid == f->memory.mzxid;
}

static bool agrees(const dv_follower *f, source s) {
    if (s != BY_PLAN) return s == BY_NAMES;
    return (own_member(f) || f->p->life == DV_LIFE_HANDING_OVER) && is_of_this_party(f);
}

static int reason_of(const dv_follower *f, source s) {
    static const int reasons[DV_PLAN_REASONS] = {
        [DV_PLAN_CREATE] = DIVVY_REASON_MEMBERS,  [DV_PLAN_SET] = DIVVY_REASON_SET,
        [DV_PLAN_LOSS] = DIVVY_REASON_LOSS,       [DV_PLAN_LEAVE] = DIVVY_REASON_LEAVE,
        [DV_PLAN_JOIN] = DIVVY_REASON_JOIN,       [DV_PLAN_DRAIN] = DIVVY_REASON_DRAIN,
        [DV_PLAN_WEIGHT] = DIVVY_REASON_WEIGHT,   [DV_PLAN_OPTIONS] = DIVVY_REASON_WEIGHT,
        [DV_PLAN_ABSENCE] = DIVVY_REASON_MEMBERS, [DV_PLAN_ROUND] = DIVVY_REASON_MEMBERS,
    };
    return s == BY_PLAN ? reasons[plan_of(f)->header.reason] : DIVVY_REASON_MEMBERS;
}

/* ---- the target ---- */

/* P11: what kazoo would take under another lock is not asked for while a member of it is seen. */
static void leave_out_encoded(const divvy_partitioner *p, uint8_t *mine) {
    for (size_t i = 0; i < p->dealt->count; i++) mine[i] &= dv_items_of(p)->dealt[i]->plain;
}

static int by_plan(dv_follower *f, uint8_t **mine) {
    divvy_partitioner *p = f->p;
    const dv_plan *plan = plan_of(f);
    int error = dv_items_use(p, plan->set);
    *mine = error ? NULL : calloc(plan->set->count + 1, 1);
    if (!*mine) return DIVVY_ENOMEM;
    const dv_plan_member *own = own_member(f);
    for (size_t i = 0; own && i < plan->set->count; i++) (*mine)[i] = plan->owners[i] == own->slot;
    if (p->kazoo_seen) leave_out_encoded(p, *mine);
    return 0;
}

/* D34: nobody can follow a broken plan, so all do what they can do without one. */
static int by_names(dv_follower *f, uint8_t **mine) {
    divvy_partitioner *p = f->p;
    int error = dv_items_use(p, p->configured);
    *mine = error ? NULL : calloc(p->dealt->count + 1, 1);
    return *mine ? dv_target_compute(p, &p->party, dv_membership_name(p->membership), *mine) : DIVVY_ENOMEM;
}

static int make_target(dv_follower *f, source s, uint8_t **mine) {
    if (s == BY_PLAN) return by_plan(f, mine);
    if (s == BY_NAMES) return by_names(f, mine);
    *mine = calloc(f->p->dealt->count + 1, 1);
    return *mine ? 0 : DIVVY_ENOMEM;
}

/* ---- handovers: T1, T2, T9 ---- */

/* Finds the live node that counts of a static identifier. Where none that was read does, one that was not most likely
 * does: the member was started again, or lost its session, since the plan was written. read_takers() looks which. */
static const char *static_node(const dv_follower *f, const dv_plan *plan, const dv_plan_member *m) {
    const dv_plan_party *party = dv_roster_party(f->people);
    const char *unread = NULL;
    for (size_t n = 0; n < party->count; n++) {
        if (strcmp(party->nodes[n].identifier, m->key) != 0) continue;
        if (!party->nodes[n].known) unread = party->nodes[n].node;
        else if (dv_plan_member_of(plan, party, n) == m) return party->nodes[n].node;
    }
    return unread;
}

static const char *live_node(const dv_follower *f, const dv_plan *plan, const dv_plan_member *m) {
    if (m->is_static) return static_node(f, plan, m);
    size_t at = dv_roster_find(f->people, m->key);
    return at == SIZE_MAX ? NULL : dv_roster_party(f->people)->nodes[at].node;
}

/* The node of each slot's live member, and of each member. Returns NULL when an allocation fails. */
static const char **nodes_by_slot(const dv_follower *f, const dv_plan *plan) {
    const char **nodes = (const char **)(uintptr_t)calloc(DV_PLAN_SLOTS, sizeof *nodes);
    for (size_t m = 0; nodes && m < plan->member_count; m++)
        nodes[plan->members[m].slot] = live_node(f, plan, &plan->members[m]);
    return nodes;
}

/* Fills in, for each item of the plan that is in force, the node of its owner by `plan`; dv_nobody where the plan has
 * none for it. */
static bool list_owners(const dv_follower *f, const dv_plan *plan, const char **out) {
    const dv_plan_set *set = plan_of(f)->set;
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

/* T9: lists the other live nodes of our identifier, which may have our items yet. Returns how many. */
static size_t list_namesakes(const dv_follower *f, const char **out) {
    const dv_plan_party *party = dv_roster_party(f->people);
    size_t count = 0;
    if (!f->p->config.static_membership || dv_follow_is_fenced(f)) return 0;
    for (size_t n = 0; n < party->count; n++) {
        const dv_plan_node *other = &party->nodes[n];
        bool same = other->known && other->is_static && strcmp(other->identifier, f->p->identifier_node) == 0;
        if (same && n != f->own) out[count++] = other->node;
    }
    return count;
}

/* Our own node had them only since the last process of our identifier is the member. */
static void leave_out_own(const dv_follower *f, const char **nodes, size_t count) {
    const char *own = dv_roster_party(f->people)->nodes[f->own].node;
    for (size_t i = 0; i < count; i++) {
        if (nodes[i] == own) nodes[i] = NULL;
    }
}

/* Returns whether the plan was made for a later party, which settles here in a moment. */
static bool party_is_older(const dv_follower *f) {
    const dv_plan *plan = plan_of(f);
    return plan->header.pzxid > f->pzxid && plan->header.pzxid < plan->mzxid;
}

/* Returns whether the plan gives something that we show to the member of that slot. */
static bool is_taker(const dv_follower *f, const uint8_t *mine, uint32_t slot) {
    const dv_plan *plan = plan_of(f);
    for (size_t i = 0; i < plan->set->count; i++) {
        if (plan->owners[i] == slot && !mine[i] && dv_item_shown(dv_items_of(f->p)->dealt[i])) return true;
    }
    return false;
}

/* Of several nodes with that identifier, finds one that has not told how old it is. SIZE_MAX: none, or there is only
 * one. */
static size_t find_ageless(const dv_follower *f, const char *identifier) {
    const dv_plan_party *party = dv_roster_party(f->people);
    size_t count = 0, ageless = SIZE_MAX;
    for (size_t n = 0; n < party->count; n++) {
        if (strcmp(party->nodes[n].identifier, identifier) != 0) continue;
        count++;
        if (party->nodes[n].czxid == 0) ageless = n;
    }
    return count > 1 ? ageless : SIZE_MAX;
}

static void on_taker_read(void *context, int error, int64_t now) {
    dv_follower *f = context;
    divvy_partitioner *p = f->p;
    assert(f->taker_asked);
    f->taker_asked = false;
    /* Else a node has gone, and another party will settle; or the next connection asks again. */
    if (error == 0 || f->taker_pzxid != f->pzxid) dv_follow_apply(f, false, now);
    dv_op_end(p, now);
}

/* D12: of several nodes of a next owner's identifier the last process's is meant, so all have to tell when theirs came.
 * Such owners are few, and are read one after the other. */
static void read_takers(dv_follower *f, const uint8_t *mine) {
    const dv_plan *plan = plan_of(f);
    size_t ageless = SIZE_MAX;
    for (size_t m = 0; m < plan->member_count && ageless == SIZE_MAX; m++) {
        if (!plan->members[m].is_static) continue;
        ageless = find_ageless(f, plan->members[m].key);
        if (ageless != SIZE_MAX && !is_taker(f, mine, plan->members[m].slot)) ageless = SIZE_MAX;
    }
    f->taker_unread = ageless != SIZE_MAX;
    if (!f->taker_unread || f->taker_asked) return;
    int asked = dv_roster_ask_namesakes(f->people, ageless, on_taker_read, f);
    if (asked < 0) dv_client_again(f->p->object.client);
    if (asked <= 0) return;
    f->taker_asked = true;
    f->taker_pzxid = f->pzxid;
    dv_op_begin(f->p);
}

/* Without the memory for it everything moves as if nobody had notes. */
static void tell_handover(dv_follower *f, source s, const uint8_t *mine, int64_t now) {
    divvy_partitioner *p = f->p;
    if (!p->handover) return;
    f->taker_unread = false;
    size_t items = p->dealt->count, others = dv_roster_party(f->people)->count;
    const char **owners = NULL;
    if (s == BY_PLAN) owners = (const char **)(uintptr_t)calloc(2 * items + others, sizeof *owners);
    bool known = owners && list_owners(f, plan_of(f), owners) && list_owners(f, f->memory.before, owners + items);
    if (known) {
        const char **before = owners + items, **namesakes = before + items;
        leave_out_own(f, before, items);
        read_takers(f, mine);
        dv_handover_namesakes(p, namesakes, list_namesakes(f, namesakes));
        dv_handover_plan(p, mine, owners, before, party_is_older(f), plan_of(f)->mzxid, now);
    } else {
        dv_handover_no_plan(p);
    }
    free((void *)owners);
}

static bool is_wanted_already(const divvy_partitioner *p, const uint8_t *mine) {
    if (!p->target_valid) return false;
    for (size_t i = 0; i < p->dealt->count; i++) {
        if (dv_items_of(p)->dealt[i]->life.wanted != (mine[i] != 0)) return false;
    }
    return true;
}

void dv_follow_apply(dv_follower *f, bool settled, int64_t now) {
    divvy_partitioner *p = f->p;
    if (!f->in_force || f->fence_unknown || p->state == DIVVY_FAILURE || p->life == DV_LIFE_REJOINING) return;
    assert(f->own != SIZE_MAX && !f->stopped);
    if (f->read_error) {
        dv_state_fail(p, f->read_error, DIVVY_REASON_DENIED, now, "%s cannot be read: %s", f->path,
                      divvy_strerror(f->read_error));
        return;
    }
    dv_follow_learn(f);
    source s = choose(f);
    if (s == BY_NAMES && !dv_members_look_at_all(p)) s = KEEP;
    if (dv_follow_is_replaced_by_another(f)) dv_follow_tell_fenced(f);
    if (s == BY_PLAN) {
        note_own_member(f);
        if (own_member(f)) dv_follow_leave_again(f);
        dv_follow_tell(f, plan_of(f), own_member(f));
    }
    dv_tally_plan(p, s == BY_PLAN ? plan_of(f)->header.generation : 0, now);
    f->agrees = agrees(f, s);
    if (s == KEEP) { /* D34: what a rule of names gave is kept until a plan says something else. */
        dv_state_target_stays(p, settled, now);
        return;
    }
    const dv_plan_set *dealt = p->dealt;
    uint8_t *mine = NULL;
    int error = make_target(f, s, &mine);
    if (error) {
        dv_state_fail(p, error, DIVVY_REASON_MEMBERS, now, "no share could be computed: %s", divvy_strerror(error));
        free(mine);
        return;
    }
    tell_handover(f, s, mine, now);
    if (settled || p->dealt != dealt || !is_wanted_already(p, mine)) {
        if (!settled) dv_state_change_seen(p, now);
        dv_state_target_settled(p, mine, reason_of(f, s), now);
    } else {
        dv_state_handover(p, now);
        dv_state_reconsider(p, now);
    }
    free(mine);
}

/* ---- D10: what a first plan begins with ---- */

void dv_follow_free_rule(dv_follower *f) {
    for (size_t i = 0; i < f->rule_count; i++) free(f->rule_nodes[i]);
    free(f->rule_nodes);
    free(f->rule_owners);
    dv_plan_set_unref(f->rule_set);
    f->rule_nodes = NULL;
    f->rule_owners = NULL;
    f->rule_set = NULL;
    f->rule_count = 0;
}

void dv_follow_remember(divvy_partitioner *p, const char *const *nodes, size_t count, uint32_t *owners) {
    dv_follower *f = p->follower;
    char **copies = f ? calloc(count + 1, sizeof *copies) : NULL;
    if (!copies) { /* Without it a first plan may move more than it must. */
        free(owners);
        return;
    }
    dv_follow_free_rule(f);
    dv_follow_forget_first(f);
    f->rule_nodes = copies;
    f->rule_owners = owners;
    f->rule_set = dv_plan_set_ref(p->dealt);
    for (size_t i = 0; i < count && (copies[i] = strdup(nodes[i])); i++) f->rule_count++;
}

void dv_follow_forget_first(dv_follower *f) {
    free(f->first_owners);
    f->first_owners = NULL;
    if (f->people) dv_roster_party(f->people)->owners = NULL; /* else it could not be made */
}

bool dv_follow_prepare_first(dv_follower *f) {
    dv_plan_party *party = dv_roster_party(f->people);
    if (plan_of(f) || f->first_owners || !f->rule_owners || !dv_plan_set_equal(f->rule_set, f->p->configured))
        return true;
    size_t count = f->rule_set->count;
    uint32_t *places = malloc((f->rule_count + 1) * sizeof *places), *owners = malloc(count * sizeof *owners);
    if (!places || !owners) {
        free(places);
        free(owners);
        return false;
    }
    for (size_t n = 0; n < f->rule_count; n++) {
        size_t at = dv_roster_find(f->people, f->rule_nodes[n]);
        places[n] = at == SIZE_MAX ? UINT32_MAX : (uint32_t)at;
    }
    for (size_t i = 0; i < count; i++)
        owners[i] = f->rule_owners[i] < f->rule_count ? places[f->rule_owners[i]] : UINT32_MAX;
    free(places);
    party->owners = f->first_owners = owners;
    return true;
}
