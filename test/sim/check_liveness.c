/* The invariants of liveness, held once the faults have stopped: L1, L3, L6. SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "divvy/assign.h"
#include "operator.h"
#include "partitioner/handover.h"
#include "rolls.h"

enum { SLACK_MS = 2000, LOOK_MS = 97, AUDIT_MS = 61000 };

bool sim_wrong(sim_fault *f, const char *what, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    snprintf(f->what, sizeof f->what, "%s", what);
    vsnprintf(f->text, sizeof f->text, format, arguments);
    va_end(arguments);
    return false;
}

static bool takes_part(const sim_member *m) {
    return m->phase == SIM_RUNS && (m->partitioner || m->kazoo);
}

/* ---- the bound of L1 ---- */

static int64_t bound_ms(const sim_world *w) {
    const sim_script *s = w->script;
    int64_t release_ms = 100 + s->react_ms + s->react_ms / 2;
    int64_t kazoo_ms = 0;
    if (s->kazoo) kazoo_ms = 6 * (s->boundary_ms + 1000) + 2 * release_ms;
    /* Servers that were cut off find each other again when both have noticed. */
    int64_t servers_ms = s->servers > 1 ? s->sync_limit_ticks * s->tick_ms + s->election_max_ms : 0;
    int64_t prepare_ms = SIM_PREPARES_MS + SLACK_MS; /* before its next owner asks for an item */
    return w->timeout_max_ms + s->tick_ms + w->settle_max_ms + 2 * release_ms + SLACK_MS + servers_ms + kazoo_ms +
           prepare_ms + sim_claims_bound_ms(w) + sim_services_bound_ms(w) + sim_plans_bound_ms(w) +
           sim_rolls_bound_ms(w);
}

/* ---- L1 ---- */

static bool all_acquired(const sim_world *w, sim_fault *f) {
    char text[80];
    bool in_force = sim_plan_in_force(w);
    for (size_t i = 0; i < w->script->slots; i++) {
        const sim_member *m = &w->members[i];
        if (!takes_part(m)) continue;
        if (in_force && m->partitioner && sim_is_fenced(m)) {
            if (m->partitioner->state != DIVVY_ACQUIRED && m->partitioner->totals.shown == 0) continue;
            return sim_wrong(f, "D38", "%s is in %s with %zu items, and another has taken its place", m->name,
                             divvy_partition_state_name(m->partitioner->state), m->partitioner->totals.shown);
        }
        if (m->kazoo) {
            if (!sim_kazoo_settled(m->kazoo))
                return sim_wrong(f, "L1", "%s is %s", m->name, sim_kazoo_describe(m->kazoo, text, sizeof text));
            continue;
        }
        if (m->partitioner->state != DIVVY_ACQUIRED)
            return sim_wrong(f, "L1", "%s is in %s, with %zu of %zu items held and %zu places leaving", m->name,
                             divvy_partition_state_name(m->partitioner->state), m->partitioner->totals.wanted_first,
                             m->partitioner->totals.wanted, m->partitioner->totals.leaving);
        if (!sim_member_alive(m)) return sim_wrong(f, "L1", "%s is ACQUIRED, and has no time left", m->name);
    }
    return true;
}

/* Items of shares that do not fit, and how many have their share only partly. */
static size_t count_unfit(const sim_world *w) {
    size_t unfit = 0;
    for (size_t i = 0; i < w->script->slots; i++) {
        if (takes_part(&w->members[i]) && w->members[i].partitioner) unfit += w->members[i].partitioner->unfit;
    }
    return unfit;
}

static const sim_member *owner_of(const sim_world *w, size_t item) {
    const sim_queue *q = &w->truth.queues[item];
    const sim_node *node = NULL;
    for (size_t i = 0; i < q->count; i++) {
        if (q->nodes[i].czxid == q->first) node = &q->nodes[i];
    }
    for (size_t i = 0; node && i < w->script->slots; i++) {
        const sim_member *m = &w->members[i];
        if (takes_part(m) && divvy_client_session_id(m->client) == node->session &&
            (m->kazoo || (sim_item_of(m, item) && dv_item_shown(sim_item_of(m, item)))))
            return m;
    }
    return NULL;
}

/* T4: an owner also waits for one whose share does not fit, and which so may never be ready. Excused from L1
 * and L3 is such an item, until its owner's handover_timeout_ms have passed. */
static bool is_kept_for_unfit(const sim_world *w, const sim_member *m, size_t item) {
    const dv_item *own = m->partitioner ? sim_item_of(m, item) : NULL;
    if (!own || !dv_item_kept(own)) return false;
    size_t planned = sim_plan_in_force(w) ? sim_plan_owner(w, item) : SIM_NOBODY;
    if (planned >= w->script->slots) return false;
    const sim_member *next = &w->members[planned];
    return takes_part(next) && next->partitioner && next->partitioner->unfit > 0;
}

static size_t count_kept_for_unfit(const sim_world *w, const sim_member *m) {
    size_t count = 0;
    for (size_t i = 0; i < w->script->items; i++) count += is_kept_for_unfit(w, m, i);
    return count;
}

/* ---- loads as the assignment says ---- */

enum { ROSTER_MAX = SIM_SLOTS_MAX + SIM_STRAYS_MAX };

typedef struct {
    divvy_member members[ROSTER_MAX];
    size_t slots[ROSTER_MAX]; /* SIM_NOBODY: a stray, which kazoo counts */
    size_t count;
    bool round_robin, alike; /* two members of one name */
} roster;

static void enter_in_roster(roster *r, size_t slot, const char *name) {
    for (size_t k = 0; k < r->count; k++) r->alike |= strcmp(r->members[k].identifier, name) == 0;
    r->slots[r->count] = slot;
    r->members[r->count++] = (divvy_member){name, 1000, NULL};
}

/* P3: beside a member of kazoo's all children of the party count. */
static roster call_roster(const sim_world *w) {
    roster r = {.count = 0};
    bool kazoo = false;
    for (size_t i = 0; i < w->script->slots; i++) {
        const sim_member *m = &w->members[i];
        if (!takes_part(m)) continue;
        kazoo |= m->kazoo != NULL;
        r.round_robin |= m->kazoo || m->config.assign == DIVVY_ASSIGN_ROUND_ROBIN;
        enter_in_roster(&r, i, m->name);
    }
    for (size_t i = 0; kazoo && i < w->truth.party_count && r.count < ROSTER_MAX; i++) {
        const sim_node *node = &w->truth.party[i];
        const char *dash = strchr(node->name, '-');
        if (node->session == 0) enter_in_roster(&r, SIM_NOBODY, dash ? dash + 1 : node->name);
    }
    return r;
}

static bool is_name_of_stray(const roster *r, const char *name) {
    for (size_t i = 0; i < r->count; i++) {
        if (r->slots[i] == SIM_NOBODY && strcmp(r->members[i].identifier, name) == 0) return true;
    }
    return false;
}

/* Returns how many items the rule gives to strays at most. Excused from L1: these have no owner. A stray may have the
 * name of a member that lives, and which of two equal names comes first is not the rule's affair. */
static size_t count_of_strays(const sim_world *w) {
    roster r = call_roster(w);
    uint32_t owners[SIM_ITEMS_MAX];
    size_t count = 0;
    if (r.count == 0 || divvy_assign_round_robin(r.members, r.count, w->items, w->script->items, owners) != 0) return 0;
    for (size_t i = 0; i < w->script->items; i++) count += is_name_of_stray(&r, r.members[owners[i]].identifier);
    return count;
}

static bool each_item_owned(const sim_world *w, sim_fault *f, size_t loads[SIM_SLOTS_MAX]) {
    size_t unowned = 0, unfit = count_unfit(w), last = 0;
    bool in_force = sim_plan_in_force(w);
    for (size_t i = 0; i < w->script->items; i++) {
        const sim_member *owner = owner_of(w, i);
        size_t contenders = 0;
        for (size_t n = 0; n < w->truth.queues[i].count; n++) contenders += w->truth.queues[i].nodes[n].contends;
        if (contenders > 1) return sim_wrong(f, "L3", "%zu places are in the queue of %s", contenders, w->items[i]);
        size_t planned = in_force ? sim_plan_owner(w, i) : SIM_NOBODY;
        if (planned == SIM_NOT_DEALT) {
            if (contenders) return sim_wrong(f, "L3", "%s is not dealt, and a place is in its queue", w->items[i]);
            continue;
        }
        if (in_force && owner && owner->slot != planned && !is_kept_for_unfit(w, owner, i))
            return sim_wrong(f, "L1", "%s is owned by %s, and by the plan it is another's", w->items[i], owner->name);
        if (planned == SIM_OWNERLESS) { /* by a pause, a tag or a cap: check_wishes.c says whether it may be */
            if (contenders)
                return sim_wrong(f, "L1", "%s has no owner by the plan, and a place is in its queue", w->items[i]);
        } else if (owner) {
            loads[owner->slot]++;
        } else {
            unowned++;
            last = i;
        }
    }
    size_t of_strays = count_of_strays(w);
    if (unowned > unfit + of_strays)
        return sim_wrong(f, "L1", "%zu items have no owner, %s among them, %zu do not fit, and strays have %zu",
                         unowned, w->items[last], unfit, of_strays);
    return true;
}

static bool as_assigned(const sim_world *w, sim_fault *f, const size_t loads[SIM_SLOTS_MAX]) {
    roster r = call_roster(w);
    uint32_t owners[SIM_ITEMS_MAX];
    if (r.count == 0 || count_unfit(w) || sim_plan_in_force(w)) return true;
    size_t least = w->script->items / r.count;
    for (size_t i = 0; i < r.count; i++) {
        if (r.slots[i] == SIM_NOBODY) continue;
        size_t load = loads[r.slots[i]];
        if (load != least && load != least + 1)
            return sim_wrong(f, "L1", "%s has %zu of %zu items, among %zu members", r.members[i].identifier, load,
                             w->script->items, r.count);
    }
    if (r.alike) return true;
    int error = r.round_robin ? divvy_assign_round_robin(r.members, r.count, w->items, w->script->items, owners)
                              : divvy_assign_rendezvous(r.members, r.count, w->items, w->script->items, owners);
    for (size_t i = 0; !error && i < w->script->items; i++) {
        const sim_member *owner = owner_of(w, i);
        if (owner && owner->slot != r.slots[owners[i]])
            return sim_wrong(f, "L1", "%s is owned by %s, and assigned to %s", w->items[i], owner->name,
                             r.members[owners[i]].identifier);
    }
    return true;
}

/* ---- L3 and L6 ---- */

/* A note that is lost is made again with the next session. */
static size_t has_note(const sim_member *m) {
    return m->partitioner->handover && m->partitioner->handover->note ? 1 : 0;
}

static size_t has_report(const sim_member *m) {
    return sim_loads_count(m->world, divvy_client_session_id(m->client)) > 0;
}

static bool no_orphans(sim_world *w, sim_fault *f) {
    for (size_t i = 0; i < w->script->slots; i++) {
        const sim_member *m = &w->members[i];
        const sim_session *session =
            m->client ? sim_truth_session(&w->truth, divvy_client_session_id(m->client)) : NULL;
        if (m->phase == SIM_ABSENT || !session || m->kazoo) continue;
        size_t needed =
            takes_part(m) ? 1 + has_note(m) + has_report(m) + m->partitioner->totals.wanted + count_kept_for_unfit(w, m)
                          : 0;
        bool well = takes_part(m) ? session->pool_nodes >= 1 && session->pool_nodes <= needed : !session->pool_nodes;
        if (!well)
            return sim_wrong(f, "L3", "%s has %zu nodes below the pool, and needs at most %zu", m->name,
                             session->pool_nodes, needed);
    }
    for (size_t i = 0; i < w->truth.session_count; i++) {
        bool known = w->admin && w->truth.sessions[i].id == divvy_client_session_id(w->admin);
        for (size_t k = 0; k < w->script->slots; k++)
            known |= w->members[k].client && divvy_client_session_id(w->members[k].client) == w->truth.sessions[i].id;
        if (!known && w->truth.sessions[i].pool_nodes)
            return sim_wrong(f, "L1", "the session of nobody, 0x%llx, still has nodes",
                             (unsigned long long)w->truth.sessions[i].id);
    }
    return true;
}

/* Watches: on the party, on the own node, on the plan, on the notes of others, on a member of a crew; and those that
 * were given up, also by a partitioner that has gone, at most one for each place of others, and two for a pool. These
 * stay until their node changes, since the native client cannot take a watch back at the server. Excused: kazoo
 * members, which take none back (kazoo #413). */
static bool no_leaks(const sim_world *w, sim_fault *f) {
    for (size_t i = 0; i < w->script->slots; i++) {
        const sim_member *m = &w->members[i];
        divvy_stats stats;
        if (m->phase == SIM_ABSENT || m->kazoo || m->kazoo_claim ||
            divvy_client_stats(m->client, &stats, sizeof stats) != 0)
            continue;
        size_t crew = m->party ? 1 : 0, shown = takes_part(m) ? m->partitioner->totals.shown : 0;
        size_t ephemerals = crew + (takes_part(m) ? 1 + has_note(m) + has_report(m) + shown : 0);
        size_t root = takes_part(m) ? m->partitioner->follower != NULL : m->partitioners > 0;
        bool read_notes = takes_part(m) ? m->partitioner->handover != NULL : m->partitioners > 0;
        size_t notes = read_notes ? w->script->slots : 0;
        size_t watches = crew + 2 + root + notes + w->script->items - shown + 2 * w->script->pools;
        if (w->script->rolls) watches += 2; /* the roll, by two partitioners */
        if (w->script->theme == SIM_OF_ELECTIONS) watches += 2 * w->script->locks;
        if (stats.ephemerals != ephemerals)
            return sim_wrong(f, "L6", "%s counts %llu ephemeral nodes, and has %zu", m->name,
                             (unsigned long long)stats.ephemerals, ephemerals);
        if (stats.watches > watches)
            return sim_wrong(f, "L6", "%s has %llu watches, and needs no more than %zu", m->name,
                             (unsigned long long)stats.watches, watches);
    }
    return true;
}

static bool is_well(sim_world *w, sim_fault *f) {
    size_t loads[SIM_SLOTS_MAX] = {0};
    bool pool = w->script->theme == SIM_OF_POOLS || w->script->theme == SIM_OF_PLANS;
    for (size_t i = 0; i < w->script->slots; i++) pool |= takes_part(&w->members[i]);
    if (!sim_claims_well(w, f)) return false;
    if (!sim_services_well(w, f)) return false;
    char text[160];
    if (!sim_rolls_well(w, text, sizeof text)) return sim_wrong(f, "L1", "%s", text);
    if (sim_operator_waits(w)) return sim_wrong(f, "L2", "the operator has asked for something, and is not told");
    if (!pool) return no_orphans(w, f);
    if (sim_plan_in_force(w) && !sim_plan_well(w, f)) return false;
    return no_orphans(w, f) && all_acquired(w, f) && each_item_owned(w, f, loads) && as_assigned(w, f, loads) &&
           no_leaks(w, f);
}

/* ---- waiting for it ---- */

static bool somebody_leaves(const sim_world *w) {
    for (size_t i = 0; i < w->script->slots; i++) {
        const sim_member *m = &w->members[i];
        if (m->phase == SIM_ENDING || (m->phase == SIM_RUNS && m->failing)) return true;
        if (m->phase == SIM_RUNS && m->partitioner && m->partitioner->life == DV_LIFE_HANDING_OVER) return true;
    }
    return false;
}

void sim_check_end(sim_world *w) {
    enum { PATIENCE = 8 };
    int64_t patience_ms = AUDIT_MS + PATIENCE * bound_ms(w);
    sim_fault f = {"", ""};
    int64_t began_ms = w->now_ms, next_look_ms = w->now_ms;
    w->quiet_since = w->now_ms;
    while (!w->violation.set) {
        if (w->now_ms >= next_look_ms) {
            if (w->script->theme == SIM_OF_POOLS || w->script->theme == SIM_OF_PLANS) sim_need_a_member(w);
            if (!somebody_leaves(w) && is_well(w, &f)) {
                if (!sim_loads_at_rest(w)) {
                    began_ms = w->now_ms;
                } else if (sim_plans_last_blow(w)) {
                    w->quiet_since = began_ms = w->now_ms;
                } else {
                    sim_check_remains(w);
                    return;
                }
            }
            next_look_ms = w->now_ms + LOOK_MS;
        }
        int64_t limit_ms = w->quiet_since + bound_ms(w);
        /* A session that its member gave up while it was being taken up again lives on at the servers: it was
         * touched. */
        if (w->given_up_at && limit_ms < w->given_up_at + bound_ms(w)) limit_ms = w->given_up_at + bound_ms(w);
        /* P13: a deletion by somebody else is found out within a minute. */
        if (w->foreign_at && limit_ms < w->foreign_at + AUDIT_MS + bound_ms(w))
            limit_ms = w->foreign_at + AUDIT_MS + bound_ms(w);
        int64_t newer_until_ms = sim_plans_newer_until(w);
        if (newer_until_ms && limit_ms < newer_until_ms + bound_ms(w)) limit_ms = newer_until_ms + bound_ms(w);
        if (w->now_ms > limit_ms && !somebody_leaves(w)) {
            sim_violate(w, f.what, "%lld ms after the last fault or change of members: %s",
                        (long long)(w->now_ms - w->quiet_since), f.text);
        } else if (w->now_ms > began_ms + patience_ms + (newer_until_ms ? 10 * AUDIT_MS : 0)) {
            sim_violate(w, "L1", "members go on failing or leaving long after the last fault: %s", f.text);
        } else {
            sim_step(w, next_look_ms);
        }
    }
}
