/* Connects follower, state, items and handovers: docs/protocol.md, P3, P11, D34. SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdlib.h>

#include "partitioner/handover.h"
#include "znode/path.h"

/* ---- the target ---- */

/* P11: what kazoo would take under another lock is not requested while a member of it is seen. */
static bool may_share(const divvy_partitioner *p, size_t number) {
    return !p->kazoo_seen || !p->has_encoded || dv_name_is_plain(p->dealt->names[number]);
}

/* Deals the items that the target is of, and marks those that are ours. Returns 0 or an error to fail with. */
static int deal(divvy_partitioner *p, const dv_follow_target *target, uint8_t **mine) {
    int error = 0;
    if (target->source == DV_FOLLOW_PLAN) error = dv_items_use(p, target->set);
    if (target->source == DV_FOLLOW_NAMES) error = dv_items_use(p, p->configured);
    *mine = error ? NULL : calloc(p->dealt->count + 1, 1);
    if (!*mine) return DIVVY_ENOMEM;
    if (target->source == DV_FOLLOW_NAMES)
        error = dv_target_compute(p, &p->party, dv_membership_name(p->membership), *mine);
    for (size_t i = 0; target->source == DV_FOLLOW_PLAN && i < p->dealt->count; i++)
        (*mine)[i] = target->mine[i] && may_share(p, i);
    return error ? error : dv_items_need(p, *mine);
}

/* All that is ours by a target is in the table. */
static bool is_wanted_already(const divvy_partitioner *p, const uint8_t *mine) {
    if (!p->target_valid) return false;
    for (size_t i = 0; i < dv_item_count(p); i++) {
        const dv_item *item = dv_item_at(p, i);
        if (item->dealt && item->life.wanted != (mine[item->number] != 0)) return false;
    }
    return true;
}

static void take(divvy_partitioner *p, const dv_follow_target *target, int64_t now) {
    const dv_plan_set *dealt = p->dealt;
    uint8_t *mine = NULL;
    int error = deal(p, target, &mine);
    if (error) {
        /* Somebody deleted our own node: it is made again, and the party settles again. */
        if (error != DIVVY_ENOENT)
            dv_state_fail(p, error, DIVVY_REASON_MEMBERS, now, "no share could be computed: %s", divvy_strerror(error));
        free(mine);
        return;
    }
    /* Without owners, as an allocation has failed, everything moves as if nobody had notes. */
    dv_handover_plan(p, mine, target->owners, now);
    if (target->is_settled || p->dealt != dealt || !is_wanted_already(p, mine)) {
        if (!target->is_settled) dv_state_change_seen(p, now);
        dv_state_target_settled(p, mine, target->reason, now);
    } else {
        dv_state_handover(p, now);
        dv_state_reconsider(p, now);
    }
    if (p->dealt != dealt) dv_members_items_changed(p, now);
    free(mine);
}

static void on_target(void *owner, const dv_follow_target *target, int64_t now) {
    divvy_partitioner *p = owner;
    assert(p->state != DIVVY_FAILURE && p->life != DV_LIFE_REJOINING);
    dv_metrics_plan(p, target->generation, now);
    if (target->source == DV_FOLLOW_KEEP) dv_state_target_stays(p, target->is_settled, now);
    else take(p, target, now);
}

/* ---- other events ---- */

static void on_no_plan(void *owner) {
    divvy_partitioner *p = owner;
    dv_handover_plan(p, NULL, NULL, dv_client_now(p->object.client));
}

/* P3: only the plan tells which members are static, and not before it has them all. */
static void on_other_plan(void *owner) {
    divvy_partitioner *p = owner;
    if (p->membership) dv_target_warn_of_namesakes(p, &p->party, dv_membership_name(p->membership));
}

static void on_left(void *owner, int error, int64_t now) {
    dv_partitioner_left(owner, error, now);
}

static void on_warning(void *owner, int code, const char *text) {
    dv_report_warn_once(owner, code, "%s", text);
}

static void on_failure(void *owner, int error, int reason, const char *text, int64_t now) {
    dv_state_fail(owner, error, reason, now, "%s", text);
}

static void on_begun(void *owner) {
    dv_op_begin(owner);
}

static void on_ended(void *owner, int64_t now) {
    dv_op_end(owner, now);
}

/* ---- questions ---- */

static bool shows(void *owner, const char *name) {
    const dv_item *item = dv_item_find(owner, name);
    return item && dv_item_shown(item);
}

static bool is_never_used(void *owner) {
    return ((const divvy_partitioner *)owner)->never_used;
}

/* ---- what the follower is told ---- */

int dv_plan_host_init(divvy_partitioner *p, divvy_client *client) {
    static const dv_follow_events events = {
        on_target,  on_no_plan, on_other_plan, on_left, dv_leave_again, dv_members_note_ghost,
        on_warning, on_failure, on_begun,      on_ended};
    static const dv_follow_questions questions = {dv_members_look_at_all, shows, is_never_used, dv_give_ended_ms};
    const divvy_partitioner_config *c = &p->config;
    if (strtol(p->ability, NULL, 10) < DV_LEVEL_PLAN) return 0;
    const dv_follow_config config = {.client = client,
                                     .path = p->path,
                                     .locks_path = p->locks_path,
                                     .party_path = p->party_path,
                                     .identifier = p->identifier,
                                     .configured = p->configured,
                                     .weight = c->weight,
                                     .max_moves = (uint32_t)c->max_moves,
                                     .round_timeout_ms = c->round_timeout_ms,
                                     .min_members = c->min_members,
                                     .min_members_wait_ms = c->min_members_wait_ms,
                                     .load_unit = p->load_unit,
                                     .load_interval_ms = c->load_interval_ms,
                                     .load_floor = c->load_floor,
                                     .settle_max_ms = c->settle_max_ms,
                                     .is_static = c->static_membership,
                                     .is_eager = c->mode == DIVVY_EAGER,
                                     .hands_over = c->mode != DIVVY_EAGER && c->handover_timeout_ms != 0};
    p->follower = dv_follow_new(&config, &events, &questions, p);
    return p->follower ? 0 : DIVVY_ENOMEM;
}

/* Lists the members' nodes, strays left out. Returns NULL when an allocation fails. */
static const char **list_nodes(const divvy_partitioner *p, size_t *count) {
    const char **nodes = (const char **)(uintptr_t)malloc((p->party.count + 1) * sizeof *nodes);
    *count = 0;
    for (size_t i = 0; nodes && i < p->party.count; i++) {
        if (p->party.members[i].kind == DV_DIVVY) nodes[(*count)++] = p->party.members[i].node;
    }
    return nodes;
}

void dv_plan_host_settled(divvy_partitioner *p, int64_t now) {
    static const dv_follow_target by_names = {
        .source = DV_FOLLOW_NAMES, .is_settled = true, .reason = DIVVY_REASON_MEMBERS};
    assert(p->state != DIVVY_FAILURE);
    dv_follow_party party = {.own = dv_membership_name(p->membership),
                             .pzxid = p->party_pzxid,
                             .all_follow_plans = !dv_members_names_decide(p)};
    const char **nodes = list_nodes(p, &party.count);
    party.nodes = nodes;
    if (!nodes) dv_state_fail(p, DIVVY_ENOMEM, DIVVY_REASON_MEMBERS, now, "out of memory");
    else if (!dv_follow_settled(p->follower, &party, now)) take(p, &by_names, now);
    free((void *)nodes);
}
