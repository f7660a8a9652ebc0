/* The table of docs/protocol.md, P4: a partitioner's state changes only here. SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/container.h"
#include "partitioner/handover.h"

static bool eager(const divvy_partitioner *p) {
    return p->config.mode == DIVVY_EAGER;
}

static void on_timer(dv_timer *timer, int64_t now);

void dv_state_init(divvy_partitioner *p, int64_t now) {
    p->state_id = 1;
    p->state_timer.fire = on_timer;
    if (p->config.allocate_timeout_ms)
        dv_timer_set(p->object.client, &p->state_timer, now + p->config.allocate_timeout_ms);
}

/* Every change of state, and every new entry into RELEASE, passes here. Returns the state before. */
static divvy_partition_state enter(divvy_partitioner *p, divvy_partition_state to, int64_t now) {
    static const bool allowed[4][4] = {
        [DIVVY_ALLOCATING] = {[DIVVY_ACQUIRED] = true, [DIVVY_RELEASE] = true, [DIVVY_FAILURE] = true},
        [DIVVY_ACQUIRED] = {[DIVVY_ALLOCATING] = true, [DIVVY_RELEASE] = true, [DIVVY_FAILURE] = true},
        [DIVVY_RELEASE] = {[DIVVY_ALLOCATING] = true, [DIVVY_RELEASE] = true, [DIVVY_FAILURE] = true},
    };
    divvy_partition_state from = p->state;
    assert(allowed[from][to]);
    assert(to == DIVVY_FAILURE || p->life < DV_LIFE_FAILED); /* P8: FAILURE is final */
    (void)allowed;
    p->state = to;
    p->state_id++;
    dv_timer_cancel(&p->state_timer);
    int64_t limit_ms = 0;
    if (to == DIVVY_ALLOCATING) limit_ms = p->config.allocate_timeout_ms;
    if (to == DIVVY_RELEASE) limit_ms = p->release_waits_ms = p->config.release_warn_ms;
    if (limit_ms) dv_timer_set(p->object.client, &p->state_timer, now + limit_ms);
    dv_client_changed(p->object.client);
    return from;
}

static void move(divvy_partitioner *p, divvy_partition_state to, int64_t now) {
    divvy_partition_state from = enter(p, to, now);
    dv_report_state(p, from, to);
}

/* Into RELEASE, with the shown items outside the target, or all of them. Told: first the items, then the state. */
static void revoke(divvy_partitioner *p, bool everything, int reason, int64_t now) {
    assert(everything || dv_items_lack_shown(p));
    divvy_partition_state from = enter(p, DIVVY_RELEASE, now);
    for (size_t i = 0; i < dv_item_count(p); i++) {
        dv_item *item = dv_item_at(p, i);
        if (!dv_item_shown(item) || (!everything && (item->life.wanted || dv_item_kept(item)))) continue;
        if (dv_item_owned(item)) dv_item_move(item, DV_MOVE_REVOKE, now);
        dv_report_item(item, reason);
    }
    p->suspended_again = false;
    dv_snapshot_changed(p);
    dv_report_state(p, from, DIVVY_RELEASE);
}

/* P4 */
void dv_state_target_settled(divvy_partitioner *p, const uint8_t *mine, int reason, int64_t now) {
    if (p->state == DIVVY_FAILURE) return;
    p->target_reason = reason;
    p->change_seen = false;
    bool changed = dv_items_set_target(p, mine, now);
    p->target_valid = true;
    if (changed && !(eager(p) && p->metrics.is_under_way))
        dv_metrics_rebalance_begin(p, reason, now); /* P5: it began when seen */
    dv_give_update(p, now);
    bool lacks_shown = p->state != DIVVY_RELEASE && dv_items_lack_shown(p);
    dv_items_drop(p, false, now);
    if (lacks_shown) revoke(p, eager(p), reason, now);
    dv_directories_refresh(p);
    dv_items_claim(p, now);
    dv_state_reconsider(p, now);
    dv_metrics_rebalance_end(p, now);
    /* P4: only a RELEASE shows what is outside the target. */
    assert(p->state == DIVVY_RELEASE || !dv_items_lack_shown(p));
}

void dv_state_handover(divvy_partitioner *p, int64_t now) {
    if (p->state == DIVVY_FAILURE || !p->target_valid) return;
    dv_give_update(p, now);
    if (p->state != DIVVY_RELEASE && dv_items_lack_shown(p)) revoke(p, false, p->target_reason, now);
    dv_report_flush(p);
}

void dv_state_reconsider(divvy_partitioner *p, int64_t now) {
    if (p->state == DIVVY_ACQUIRED && !dv_items_complete(p)) move(p, DIVVY_ALLOCATING, now);
    dv_state_check_complete(p, now);
}

void dv_state_target_stays(divvy_partitioner *p, bool settled, int64_t now) {
    if (settled) p->change_seen = false;
    dv_state_reconsider(p, now);
}

/* P9: a share that was complete as far as it fitted grows, and is complete again when that is locked. */
void dv_state_room(divvy_partitioner *p, int64_t now) {
    dv_items_claim(p, now);
    if (p->state == DIVVY_ACQUIRED && !dv_items_complete(p)) move(p, DIVVY_ALLOCATING, now);
}

/* P5: in eager mode the first sign of a change voids the target, and revokes what was acquired. */
void dv_state_change_seen(void *partitioner, int64_t now) {
    divvy_partitioner *p = partitioner;
    p->change_seen = true;
    if (!eager(p) || p->state != DIVVY_ACQUIRED) return;
    p->target_valid = false;
    dv_metrics_rebalance_begin(p, DIVVY_REASON_MEMBERS, now);
    revoke(p, true, DIVVY_REASON_MEMBERS, now);
    assert(p->state == DIVVY_RELEASE);
}

void dv_state_set_kazoo_seen(divvy_partitioner *p, bool seen) {
    p->kazoo_seen = seen;
}

/* P11: kazoo's lock of such an item is another node than ours, so only time keeps the two apart: its boundary. */
void dv_state_kazoo_seen(divvy_partitioner *p, int64_t now) {
    p->kazoo_seen = true;
    if (p->state == DIVVY_FAILURE || !dv_items_refuse_encoded(p, now)) return;
    dv_metrics_rebalance_begin(p, DIVVY_REASON_MEMBERS, now);
    dv_give_update(p, now);
    dv_items_drop(p, false, now);
    if (eager(p)) dv_state_change_seen(p, now); /* P5, though the watch that tells of the change has not fired yet */
    if (p->state != DIVVY_RELEASE && dv_items_lack_shown(p)) revoke(p, false, DIVVY_REASON_MEMBERS, now);
    dv_state_check_complete(p, now);
}

/* P13: lost without a RELEASE, since it may be another's already; the place is entered again. */
void dv_state_item_lost(dv_item *item, bool was_shown, int64_t now) {
    divvy_partitioner *p = item->partitioner;
    assert(!item->life.contender && !dv_item_shown(item));
    if (was_shown) {
        dv_snapshot_changed(p);
        dv_metrics_rebalance_begin(p, DIVVY_REASON_FOREIGN, now);
        dv_report_item(item, DIVVY_REASON_FOREIGN);
        dv_report_flush(p);
    }
    if (p->state != DIVVY_ACQUIRED) return;
    if (eager(p)) revoke(p, true, DIVVY_REASON_FOREIGN, now); /* P5: a share comes and goes as a whole */
    else move(p, DIVVY_ALLOCATING, now);
}

static void show_all_held(divvy_partitioner *p, int64_t now) {
    if (p->life == DV_LIFE_LEAVING) return; /* P17: who leaves gains nothing */
    for (size_t i = 0; i < dv_item_count(p); i++) {
        dv_item *item = dv_item_at(p, i);
        if (item->life.wanted && item->life.is_first && !dv_item_shown(item)) dv_items_show(item, now);
    }
}

void dv_state_check_complete(divvy_partitioner *p, int64_t now) {
    if (p->state != DIVVY_ALLOCATING || !dv_items_complete(p)) return;
    bool goes = p->life == DV_LIFE_LEAVING || (p->life == DV_LIFE_HANDING_OVER && p->totals.shown == 0);
    if (goes) return; /* T8, D14: its end comes next */
    if (eager(p)) {
        if (p->change_seen) return;
        show_all_held(p, now); /* kazoo's users see nothing of a share before it is complete */
    }
    move(p, DIVVY_ACQUIRED, now);
    dv_metrics_rebalance_end(p, now);
}

/* P10: what was held, or was to be prepared for, before the session clock had proven anything is told when it has. */
void dv_state_proven(divvy_partitioner *p, int64_t now) {
    if (p->state == DIVVY_FAILURE) return;
    if (!eager(p)) show_all_held(p, now);
    dv_take_proven(p);
    dv_state_check_complete(p, now);
}

/* P6, T3: keeps the places of items that are in the target again, or wait for their next owner again. */
static void give_up_revoked(divvy_partitioner *p, int64_t now) {
    for (size_t i = 0; i < dv_item_count(p); i++) {
        dv_item *item = dv_item_at(p, i);
        if (item->life.stage != DV_STAGE_REVOKED) continue;
        if (item->life.wanted && p->target_valid && !eager(p) && p->life != DV_LIFE_LEAVING)
            dv_item_move(item, DV_MOVE_RETURN, now);
        else if (dv_give_keeps(item, now)) dv_item_move(item, DV_MOVE_WAIT, now);
        else dv_items_leave_place(item, now);
        assert(!dv_item_shown(item) || item->life.wanted || dv_item_kept(item));
        dv_report_item(item, DIVVY_REASON_RELEASED);
    }
}

int dv_state_release(divvy_partitioner *p, uint64_t state_id, int64_t now) {
    divvy_client *client = p->object.client;
    if (p->state != DIVVY_RELEASE)
        return dv_fail(client, DIVVY_ESTATE, "release_set: the state is %s, there is nothing to release",
                       divvy_partition_state_name(p->state));
    if (state_id != p->state_id)
        return dv_fail(client, DIVVY_ESTATE,
                       "release_set: RELEASE number %llu was meant, and number %llu is in force, which nobody was told "
                       "of yet; look at the state again",
                       (unsigned long long)state_id, (unsigned long long)p->state_id);
    give_up_revoked(p, now);
    dv_handover_changed(p);
    dv_snapshot_changed(p);
    dv_report_flush(p);
    if (p->suspended_again) {
        revoke(p, true, DIVVY_REASON_SUSPEND, now);
    } else if (p->target_valid && dv_items_lack_shown(p)) {
        revoke(p, false, p->target_reason, now);
    } else {
        move(p, DIVVY_ALLOCATING, now);
    }
    dv_items_claim(p, now);
    dv_state_check_complete(p, now);
    p->events->ended(p, now);
    return 0;
}

/* P7: kazoo's suspend policy, on every session event but loss. */
void dv_state_suspend(divvy_partitioner *p, int64_t now) {
    if (p->config.on_suspend != DIVVY_RELEASE_ON_SUSPEND || p->state == DIVVY_FAILURE) return;
    if (p->state == DIVVY_RELEASE) p->suspended_again = p->totals.shown > 0 && !eager(p);
    else {
        dv_metrics_rebalance_begin(p, DIVVY_REASON_SUSPEND, now);
        revoke(p, true, DIVVY_REASON_SUSPEND, now);
    }
}

/* Hides all that is shown, without a RELEASE: it is lost. */
static void lose_all_shown(divvy_partitioner *p, int reason, int64_t now) {
    for (size_t i = 0; i < dv_item_count(p); i++) {
        dv_item *item = dv_item_at(p, i);
        if (!dv_item_shown(item)) continue;
        dv_item_move(item, DV_MOVE_HIDE, now);
        dv_report_item(item, reason);
    }
    dv_snapshot_changed(p);
    p->target_valid = false;
    assert(p->totals.shown == 0);
}

static void stop_taking_part(divvy_partitioner *p, int64_t now) {
    if (p->watch) dv_roll_watch_stop(p->watch);
    if (p->membership) dv_membership_leave(p->membership);
    dv_follow_stop(p->follower);
    dv_handover_stop(p);
    dv_own_loads_stop(p, now);
}

/* P8, with DIVVY_REJOIN: nothing is owned from now on; when the user has released, all starts again. */
void dv_state_lose(divvy_partitioner *p, int64_t now) {
    if (p->state == DIVVY_FAILURE) return;
    assert(p->lost_session);
    divvy_partition_state from = enter(p, DIVVY_RELEASE, now);
    p->suspended_again = p->change_seen = false;
    dv_life_enter(p, DV_LIFE_REJOINING);
    dv_metrics_rebalance_begin(p, DIVVY_REASON_SESSION, now);
    lose_all_shown(p, DIVVY_REASON_SESSION, now);
    dv_report_state(p, from, DIVVY_RELEASE);
    stop_taking_part(p, now);
}

/* P8: final. Shown items are taken from the user at once; their locks go when the user says that work has stopped. */
void dv_state_fail(divvy_partitioner *p, int error, int reason, int64_t now, const char *format, ...) {
    if (p->state == DIVVY_FAILURE) return;
    assert(error);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(p->failure_text, sizeof p->failure_text, format, arguments);
    va_end(arguments);
    p->failure = error;
    dv_timer_cancel(&p->leave_timer);
    divvy_partition_state from = enter(p, DIVVY_FAILURE, now);
    dv_metrics_rebalance_end(p, now);
    bool was_leaving = p->life == DV_LIFE_LEAVING || (p->life == DV_LIFE_HANDING_OVER && p->lost_session);
    if (p->life < DV_LIFE_FAILED) dv_life_enter(p, DV_LIFE_FAILED);
    dv_items_drop(p, true, now);
    lose_all_shown(p, reason, now);
    dv_report_state(p, from, DIVVY_FAILURE);
    stop_taking_part(p, now);
    assert(p->life >= DV_LIFE_FAILED && p->totals.shown == 0);
    /* D14: its user has stopped work, or lost it, and waits for the end. ETIMEDOUT would mean that work goes on. */
    if (was_leaving) p->events->left(p, error == DIVVY_ETIMEDOUT ? DIVVY_ECANCELED : error, now);
}

static void warn_of_slow_release(divvy_partitioner *p) {
    size_t count = 0;
    const char *first = "";
    for (size_t i = dv_item_count(p); i-- > 0;) {
        if (dv_item_at(p, i)->life.stage != DV_STAGE_REVOKED) continue;
        count++;
        first = dv_item_name(p, i);
    }
    dv_client_warn(p->object.client, DIVVY_WARN_SLOW_RELEASE,
                   count ? "%s: member %s has not answered RELEASE for %lld ms; %zu items wait for that, such as "
                           "\"%.100s\""
                         : "%s: member %s has not answered RELEASE for %lld ms, and takes no part before",
                   p->path, p->identifier, (long long)p->release_waits_ms, count, first);
}

static void on_timer(dv_timer *timer, int64_t now) {
    divvy_partitioner *p = DV_CONTAINER(timer, divvy_partitioner, state_timer);
    if (p->state == DIVVY_ALLOCATING) {
        dv_state_fail(p, DIVVY_ETIMEDOUT, DIVVY_REASON_TIMEOUT, now,
                      "the share was not complete after allocate_timeout_ms, %lld ms",
                      (long long)p->config.allocate_timeout_ms);
    } else if (p->state == DIVVY_RELEASE) {
        warn_of_slow_release(p);
        dv_timer_set(p->object.client, timer, now + p->release_waits_ms);
        if (p->release_waits_ms <= DV_TIME_MAX_MS) p->release_waits_ms *= 2;
    }
}
