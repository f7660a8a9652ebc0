/* The places in the queues of the items. SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "partitioner/handover.h"
#include "znode/path.h"

/* T8: who hands over asks for nothing more. */
static bool may_want(const divvy_partitioner *p, const dv_item *item) {
    return !item->too_long && (p->life != DV_LIFE_HANDING_OVER || (dv_item_shown(item) && !p->withdrawn));
}

bool dv_items_set_target(divvy_partitioner *p, const uint8_t *mine, int64_t now) {
    bool changed = false;
    for (size_t i = 0; i < dv_item_count(p); i++) {
        dv_item *item = dv_item_at(p, i);
        bool is_mine = item->dealt && (mine ? mine[item->number] != 0 : item->life.wanted);
        changed |= dv_item_want(item, is_mine && may_want(p, item), now);
    }
    assert(p->totals.wanted <= p->dealt->count);
    p->unfit = 0; /* until a claim has tried */
    return changed;
}

bool dv_items_refuse_encoded(divvy_partitioner *p, int64_t now) {
    bool any = false;
    for (size_t i = 0; i < dv_item_count(p); i++) {
        dv_item *item = dv_item_at(p, i);
        if (!item->plain) any |= dv_item_want(item, false, now);
    }
    return any;
}

bool dv_items_lack_shown(const divvy_partitioner *p) {
    for (size_t i = 0; i < dv_item_count(p); i++) {
        const dv_item *item = dv_item_at(p, i);
        if (dv_item_shown(item) && !item->life.wanted && !dv_item_kept(item)) return true;
    }
    return false;
}

/* P4: all of the target that fits is locked, and no node of ours is on its way out or in. */
bool dv_items_complete(const divvy_partitioner *p) {
    bool all_held = p->totals.wanted_first + p->unfit == p->totals.wanted;
    return p->target_valid && p->ready && dv_follow_agrees(p->follower) && p->totals.leaving == 0 && all_held &&
           dv_client_believed(p->object.client);
}

void dv_items_show(dv_item *item, int64_t now) {
    divvy_partitioner *p = item->partitioner;
    dv_item_move(item, DV_MOVE_SHOW, now);
    dv_take_arrived(item);
    dv_snapshot_changed(p);
    dv_report_gain(item);
}

/* ---- places ---- */

void dv_items_leave_place(dv_item *item, int64_t now) {
    if (!item->life.contender) return;
    dv_handover_leave(item, item->life.contender); /* It asks how things stand now. */
    dv_item_move(item, dv_item_shown(item) ? DV_MOVE_RELEASE : DV_MOVE_LEAVE, now);
}

void dv_items_drop(divvy_partitioner *p, bool wanted_too, int64_t now) {
    for (size_t i = 0; i < dv_item_count(p); i++) {
        dv_item *item = dv_item_at(p, i);
        if (!dv_item_shown(item) && (wanted_too || !item->life.wanted)) dv_items_leave_place(item, now);
    }
}

static void on_held(void *owner, int64_t now) {
    dv_item *item = owner;
    divvy_partitioner *p = item->partitioner;
    dv_item_move(item, DV_MOVE_WIN, now);
    bool shows = p->config.mode == DIVVY_INCREMENTAL && p->life != DV_LIFE_LEAVING; /* P17: who leaves gains nothing */
    if (shows && dv_client_believed(p->object.client)) dv_items_show(item, now);
    p->events->place_changed(p, now);
}

static void on_failed(void *owner, int error, int64_t now) {
    dv_item *item = owner;
    divvy_partitioner *p = item->partitioner;
    bool was_first = item->life.is_first;
    if (was_first) {
        dv_client_warn(p->object.client, DIVVY_WARN_NODE_GONE,
                       "the lock of %s was deleted by somebody else; the item is lost, and its lock made again",
                       item->directory);
    }
    bool was_shown = dv_item_shown(item);
    dv_item_move(item, was_shown ? DV_MOVE_LOSE : DV_MOVE_LEAVE, now); /* until gone() */
    if (was_first) p->events->item_lost(item, was_shown, now);
    if (error == DIVVY_ENOENT) {
        dv_directory_gone(item); /* Somebody removed it, or our node: make it again. */
        dv_directories_claim_later(p);
    } else {
        dv_life_fail(p, error, error == DIVVY_EACCES ? DIVVY_REASON_DENIED : DIVVY_REASON_FOREIGN, now,
                     "no place in the queue %s can be had: %s", item->directory, divvy_strerror(error));
    }
}

static void on_gone(void *owner, dv_contender *contender, int64_t now) {
    dv_item *item = owner;
    divvy_partitioner *p = item->partitioner;
    (void)contender;
    assert(item->life.contender != contender); /* All leave before their session is over: session.c */
    dv_item_left(item);
    if (p->totals.leaving == 0) dv_directories_claim_later(p);
    dv_directory_give_up(item);
    if (!dv_item_shown(item)) dv_metrics_item_freed(item, now);
    dv_client_changed(p->object.client);
    p->events->place_changed(p, now);
    if (p->life >= DV_LIFE_FINISHING) dv_items_tidy(p);
    dv_item_unref(item);
    dv_op_end(p, now);
}

/* ---- claiming ---- */

static const dv_queue_kind *queue_of(const dv_item *item) {
    if (dv_take_is_awaited(item)) return &dv_parked_queue;
    if (item->dir.fresh) return &dv_fresh_queue;
    return dv_take_is_from_nobody(item) ? &dv_renewed_queue : &dv_exclusive_queue;
}

static int enter_place(divvy_partitioner *p, dv_item *item, int64_t now) {
    static const dv_contender_events events = {
        .held = on_held, .failed = on_failed, .gone = on_gone, .waits = dv_take_behind, .placed = dv_take_behind};
    dv_contender *place;
    int error =
        dv_contender_enter(&place, p->object.client, item->directory, queue_of(item), p->identifier, &events, item);
    if (error) return error;
    dv_item_ask(item, place, now);
    dv_directory_used(item);
    dv_item_ref(item);
    dv_op_begin(p);
    return 0;
}

static void tell_short(divvy_partitioner *p) {
    assert(p->unfit <= p->totals.wanted);
    bool is_short = p->unfit > 0;
    if (is_short != p->is_short) dv_snapshot_changed(p);
    p->is_short = is_short;
    if (!is_short) return;
    size_t wanted = p->totals.wanted, fits = wanted - p->unfit;
    dv_report_warn_once(p, DIVVY_WARN_SHORT,
                        "%s: %zu of the %zu items of this member's share do not fit its session, whose ephemeral paths "
                        "may have %zu bytes, and stay unowned; add members, or sessions, %zu in all for this share "
                        "(divvy partition --sessions); or divide fewer, larger items (divvy_bucket())",
                        p->path, p->unfit, wanted, p->object.client->ephemerals.limit_bytes,
                        fits > 0 ? (wanted + fits - 1) / fits : wanted);
}

/* P9: in the order of the names, as far as they fit. Places that the watch budget holds back follow later. */
void dv_items_claim(divvy_partitioner *p, int64_t now) {
    if (p->state == DIVVY_FAILURE || !p->target_valid || !p->ready) return;
    if (p->totals.wanted_first == p->totals.wanted) {
        p->unfit = 0;
        tell_short(p);
        return;
    }
    size_t unfit = 0;
    int error = 0;
    for (size_t i = 0; i < dv_item_count(p) && error != DIVVY_EBUSY; i++) {
        dv_item *item = dv_item_at(p, i);
        if (!item->life.wanted || item->life.contender || !dv_take_may_enter(item, now)) continue;
        if (error == DIVVY_ELIMIT) unfit++;
        else if (!dv_directory_exists(item)) dv_directory_make(item);
        else if ((error = enter_place(p, item, now)) == DIVVY_ELIMIT) unfit++;
        if (error == DIVVY_ENOMEM) {
            dv_life_fail(p, error, DIVVY_REASON_TIMEOUT, now, "out of memory");
            return;
        }
    }
    /* Places that are leaving may make room yet: only then is it known what does not fit. */
    p->unfit = p->totals.leaving ? 0 : unfit;
    assert(p->totals.wanted_first + p->unfit <= p->totals.wanted);
    if (!p->totals.leaving) tell_short(p);
}
