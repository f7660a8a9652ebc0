/* Records of what members do with their items and their states: each move of P18, each change of P4, what leads to it.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The linker has calls between the library's files go through here (--wrap). A unity build, as the sanitizers' is, has
 * calls that the linker does not see, so that some are missing there. A member is m<slot>. */
#include <string.h>

#include "handovers.h"
#include "partitioner/handover.h"
#include "steps.h"
#include "znode/path.h"

/* What was recorded of a member. */
typedef struct {
    uint64_t life, state_id, told_id;
    bool is_due; /* something has changed since it was at rest */
} recorded;

static recorded members[SIM_SLOTS_MAX];
static FILE *steps;
static const sim_world *world;

void sim_steps_member_begin(FILE *file, const sim_world *w) {
    steps = file;
    world = w;
    memset(members, 0, sizeof members);
}

void sim_steps_member_end(void) {
    world = NULL;
}

static const sim_member *member_of(const divvy_partitioner *p) {
    for (size_t i = 0; steps && world && !world->over && i < world->script->slots; i++) {
        if (world->members[i].partitioner == p) return &world->members[i];
    }
    return NULL;
}

static void begin_record(const sim_member *m, const char *kind) {
    fprintf(steps, "%lld %llx m%zu %s", (long long)divvy_testing_now_ms(world->ensemble),
            (unsigned long long)divvy_client_session_id(m->client), m->slot, kind);
}

/* What bears on the rules beside its items: the target stands, the session is proven, a change was seen, the plan does
 * not agree (D34), it leaves (D14), its session is lost and it will take part again; and how many items do not fit. */
static void end_record(const divvy_partitioner *p) {
    fprintf(steps, " facts=%d%d%d%d%d%d unfit=%zu\n", p->target_valid, dv_client_believed(p->object.client),
            p->change_seen, !dv_follow_agrees(p->follower) || !p->ready, p->life == DV_LIFE_LEAVING,
            p->life == DV_LIFE_REJOINING, p->unfit);
}

/* Records what has come before: that its life began, that it is in another state, that its user was told of RELEASE. */
static recorded *catch_up(const sim_member *m) {
    recorded *was = &members[m->slot];
    const divvy_partitioner *p = m->partitioner;
    if (was->life != m->life) {
        *was = (recorded){.life = m->life, .state_id = 1};
        begin_record(m, "begins");
        fprintf(steps, " eager=%d suspends=%d rejoins=%d", m->config.mode == DIVVY_EAGER,
                m->config.on_suspend == DIVVY_RELEASE_ON_SUSPEND, m->config.on_session_loss == DIVVY_REJOIN);
        end_record(p);
    }
    if (was->state_id != p->state_id) {
        was->state_id = p->state_id;
        was->is_due = true;
        begin_record(m, "state");
        fprintf(steps, " to=%d id=%llu", (int)p->state, (unsigned long long)p->state_id);
        end_record(p);
    }
    if (was->told_id != p->told_id) {
        was->told_id = p->told_id;
        if (p->state != DIVVY_RELEASE || p->told_id != p->state_id) return was;
        begin_record(m, "told");
        fprintf(steps, " id=%llu", (unsigned long long)p->told_id);
        end_record(p);
    }
    return was;
}

static void record(const divvy_partitioner *p, const char *kind) {
    const sim_member *m = member_of(p);
    if (!m) return;
    catch_up(m)->is_due = true;
    begin_record(m, kind);
    end_record(p);
}

/* Records a move or its like, with where the item stands before it. */
static void record_item(const dv_item *item, const char *kind, const char *move) {
    const divvy_partitioner *p = item->partitioner;
    const sim_member *m = member_of(p);
    if (!m) return;
    catch_up(m)->is_due = true;
    begin_record(m, kind);
    fprintf(steps, " item=%zu move=%s place=%d stage=%d wanted=%d", sim_item_of_name(dv_path_last(item->directory)),
            move, (int)dv_item_place_of(item), (int)item->life.stage, item->life.wanted);
    end_record(p);
}

void sim_steps_member_rests(const sim_member *m) {
    const divvy_partitioner *p = m->partitioner;
    if (!p || member_of(p) != m || !members[m->slot].is_due) return;
    catch_up(m)->is_due = false;
    begin_record(m, "rests");
    fprintf(steps, " state=%d wanted=%zu shown=%zu leaving=%zu", (int)p->state, p->totals.wanted, p->totals.shown,
            p->totals.leaving);
    end_record(p);
}

/* ---- calls between the library's files ---- */

void __wrap_dv_item_move(dv_item *item, dv_item_move_kind kind, int64_t now);
void __real_dv_item_move(dv_item *item, dv_item_move_kind kind, int64_t now);
void __wrap_dv_item_move(dv_item *item, dv_item_move_kind kind, int64_t now) {
    static const char *const names[DV_MOVES] = {
        [DV_MOVE_ASK] = "ask",         [DV_MOVE_WIN] = "win",           [DV_MOVE_LEAVE] = "leave",
        [DV_MOVE_PREPARE] = "prepare", [DV_MOVE_CALL_OFF] = "call-off", [DV_MOVE_SHOW] = "show",
        [DV_MOVE_KEEP] = "keep",       [DV_MOVE_ANNOUNCE] = "announce", [DV_MOVE_RETRACT] = "retract",
        [DV_MOVE_STAY] = "stay",       [DV_MOVE_REVOKE] = "revoke",     [DV_MOVE_RETURN] = "return",
        [DV_MOVE_WAIT] = "wait",       [DV_MOVE_RELEASE] = "release",   [DV_MOVE_LOSE] = "lose",
        [DV_MOVE_HIDE] = "hide",
    };
    record_item(item, "move", names[kind]);
    __real_dv_item_move(item, kind, now);
}

void __wrap_dv_item_ask(dv_item *item, dv_contender *contender, int64_t now);
void __real_dv_item_ask(dv_item *item, dv_contender *contender, int64_t now);
void __wrap_dv_item_ask(dv_item *item, dv_contender *contender, int64_t now) {
    record_item(item, "move", "ask");
    __real_dv_item_ask(item, contender, now);
}

void __wrap_dv_item_left(dv_item *item);
void __real_dv_item_left(dv_item *item);
void __wrap_dv_item_left(dv_item *item) {
    record_item(item, "left", "");
    __real_dv_item_left(item);
}

bool __wrap_dv_item_want(dv_item *item, bool wanted, int64_t now);
bool __real_dv_item_want(dv_item *item, bool wanted, int64_t now);
bool __wrap_dv_item_want(dv_item *item, bool wanted, int64_t now) {
    if (item->life.wanted != wanted) record_item(item, "want", "");
    return __real_dv_item_want(item, wanted, now);
}

void __wrap_dv_report_state(divvy_partitioner *p, divvy_partition_state from, divvy_partition_state to);
void __real_dv_report_state(divvy_partitioner *p, divvy_partition_state from, divvy_partition_state to);
void __wrap_dv_report_state(divvy_partitioner *p, divvy_partition_state from, divvy_partition_state to) {
    const sim_member *m = member_of(p);
    if (m) catch_up(m);
    __real_dv_report_state(p, from, to);
}

int __wrap_dv_state_release(divvy_partitioner *p, uint64_t state_id, int64_t now);
int __real_dv_state_release(divvy_partitioner *p, uint64_t state_id, int64_t now);
int __wrap_dv_state_release(divvy_partitioner *p, uint64_t state_id, int64_t now) {
    const sim_member *m = member_of(p);
    if (m) catch_up(m);
    if (m) {
        begin_record(m, "releases");
        fprintf(steps, " id=%llu", (unsigned long long)state_id);
        end_record(p);
    }
    int error = __real_dv_state_release(p, state_id, now);
    record(p, error ? "refused" : "released");
    return error;
}

void __wrap_dv_state_suspend(divvy_partitioner *p, int64_t now);
void __real_dv_state_suspend(divvy_partitioner *p, int64_t now);
void __wrap_dv_state_suspend(divvy_partitioner *p, int64_t now) {
    record(p, "suspend");
    __real_dv_state_suspend(p, now);
    const sim_member *m = member_of(p);
    if (m) sim_steps_member_rests(m);
}

void __wrap_dv_state_target_settled(divvy_partitioner *p, const uint8_t *mine, int reason, int64_t now);
void __real_dv_state_target_settled(divvy_partitioner *p, const uint8_t *mine, int reason, int64_t now);
void __wrap_dv_state_target_settled(divvy_partitioner *p, const uint8_t *mine, int reason, int64_t now) {
    __real_dv_state_target_settled(p, mine, reason, now);
    record(p, "settled");
}
