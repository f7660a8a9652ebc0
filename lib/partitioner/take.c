/* The items that we are to take from those who have them. SPDX-License-Identifier: Apache-2.0
 *
 * docs/protocol.md, rules T2, T6, T9. */
#include <assert.h>

#include "partitioner/handover.h"

/* T2: until its note says that it gives the item away, the present owner may not have read the plan. To ask for the
 * item before costs a list. One that has written its note since the plan has most likely read it. */
enum { PATIENCE_MS = 100, PATIENCE_MAX_MS = 1000 };

static bool says_leaving(const dv_note_view *view, const dv_item *item) {
    return view && view->standing == DV_NOTE_THERE && dv_note_is_of(&view->note, item->partitioner->dealt) &&
           dv_note_is_leaving(&view->note, item->number);
}

static bool is_leaving_it(const dv_item *item) {
    return says_leaving(item->take.owner, item);
}

/* How much is known of whether it has the item: that it has, nothing yet, nothing, that it does not hand over. */
static int promise(const dv_note_view *view, const dv_item *item) {
    if (!view) return -1;
    if (says_leaving(view, item)) return 3;
    return view->standing == DV_NOTE_UNREAD ? 2 : view->standing == DV_NOTE_THERE;
}

/* T2, T9: of those who may have the item, takes the one whose note says most for that. */
static void choose_owner(dv_item *item) {
    const struct dv_handover *h = item->partitioner->handover;
    if (item->life.contender) return; /* It waits for the one that was the owner when it entered. */
    item->take.owner = item->take.former;
    for (size_t i = 0; i < h->namesake_count; i++) {
        if (promise(h->namesakes[i], item) > promise(item->take.owner, item)) item->take.owner = h->namesakes[i];
    }
}

/* ---- what a plan says ---- */

void dv_take_forget(dv_item *item) {
    item->take.owner = item->take.former = NULL;
    item->take.since = 0;
}

void dv_take_expect(dv_item *item, const char *before, int64_t now) {
    if (item->life.wanted || item->life.is_first || item->life.contender) return;
    item->take.since = now;
    bool had_owner = before && before != dv_nobody;
    item->take.former = had_owner ? dv_notes_want(item->partitioner->handover->others, before) : NULL;
    choose_owner(item);
}

/* ---- what the user prepares ---- */

void dv_take_seen(divvy_partitioner *p) {
    for (size_t i = 0; i < dv_item_count(p); i++) {
        dv_item *item = dv_item_at(p, i);
        item->take.seen |= item->life.stage == DV_STAGE_PREPARING;
    }
}

void dv_take_prepared(divvy_partitioner *p, dv_item *one) {
    for (size_t i = 0; !one && i < dv_item_count(p); i++) {
        dv_item *any = dv_item_at(p, i);
        any->take.prepared |= any->told.prepare || any->take.seen;
    }
    if (one) one->take.prepared = true;
}

void dv_take_arrived(dv_item *item) {
    item->take.prepared = item->take.seen = false;
    item->take.since = 0;
}

static bool is_to_prepare(const dv_item *item) {
    const divvy_partitioner *p = item->partitioner;
    return item->life.wanted && item->take.since && !dv_item_shown(item) && p->life == DV_LIFE_TAKING_PART &&
           p->config.prepare_timeout_ms > 0;
}

/* A user who has not been told yet to prepare has not prepared. */
static bool is_prepared(const dv_item *item, int64_t now) {
    if (item->life.stage != DV_STAGE_PREPARING) return !is_to_prepare(item);
    return item->take.prepared || now >= item->take.prepare_due;
}

static int64_t patience_ends(const dv_item *item) {
    bool wrote = item->take.owner->mzxid > item->partitioner->handover->plan_mzxid;
    return item->take.since + (wrote ? PATIENCE_MS : PATIENCE_MAX_MS);
}

bool dv_take_may_enter(const dv_item *item, int64_t now) {
    const divvy_partitioner *p = item->partitioner;
    if (!p->handover || !item->take.owner || !dv_handover_can(p)) return true;
    switch (item->take.owner->standing) {
    case DV_NOTE_UNREAD: return false;
    case DV_NOTE_ABSENT: return true;
    case DV_NOTE_THERE: break;
    }
    if (!is_prepared(item, now)) return false;
    return is_leaving_it(item) || now >= patience_ends(item);
}

bool dv_take_is_awaited(const dv_item *item) {
    return item->partitioner->handover && is_leaving_it(item);
}

/* Q11: by the plan before nobody has it, or one without a note, as those who died are. Without owners by a plan: those
 * who had it have gone if nobody has come; eager ones have released it before anybody asks. */
bool dv_take_is_from_nobody(const dv_item *item) {
    const divvy_partitioner *p = item->partitioner;
    const dv_note_view *owner = item->take.owner;
    if (p->renews_nothing) return false;
    if (item->life.leaving) return false;
    if (!item->take.since) return !p->kazoo_seen && (p->nobody_came || p->config.mode == DIVVY_EAGER);
    return !owner || owner->standing == DV_NOTE_ABSENT;
}

/* T6. */
static void judge(dv_item *item, int64_t now) {
    dv_contender *place = item->life.contender;
    const dv_note_view *owner = item->take.owner;
    if (!place || !dv_contender_is_parked(place)) return;
    bool readable = owner && owner->standing == DV_NOTE_THERE && dv_note_is_of(&owner->note, item->partitioner->dealt);
    bool given =
        readable && dv_note_gives(&owner->note, item->number, dv_contender_sequence(place), dv_contender_token(place));
    if (given) dv_contender_take(place, now);
    else if (!is_leaving_it(item)) dv_contender_look(place);
}

void dv_take_behind(void *context, int64_t now) {
    dv_item *item = context;
    dv_handover_changed(item->partitioner);
    judge(item, now);
}

void dv_take_judge(divvy_partitioner *p, const dv_note_view *view, int64_t now) {
    for (size_t i = 0; i < dv_item_count(p); i++) {
        dv_item *item = dv_item_at(p, i);
        if (item->dealt && (!view || item->take.owner == view)) judge(item, now);
    }
}

bool dv_take_lists(const dv_item *item) {
    const dv_item_life *life = &item->life;
    return life->wanted && item->dealt && !life->is_first && life->contender && dv_contender_is_behind(life->contender);
}

/* Returns whether its place is on its way into the queue. */
static bool is_asked_for(const dv_item *item) {
    const dv_item_life *life = &item->life;
    return life->wanted && life->contender && !life->is_first && !dv_contender_is_behind(life->contender);
}

/* The user prepares for what the plan gives us and we do not have; and is told when it gives that to another. */
void dv_take_update(divvy_partitioner *p, int64_t now) {
    bool is_entering = false, now_or_never = false; /* the second: nothing else may come that tells the user */
    if (!p->handover) return;
    for (size_t i = 0; i < dv_item_count(p); i++) {
        dv_item *item = dv_item_at(p, i);
        bool here = !item->life.wanted || item->life.is_first; /* as most are, or others' */
        bool was_asked = item->life.stage == DV_STAGE_PREPARING;
        if (here && !item->take.since && !was_asked) continue;
        if (item->take.since) choose_owner(item);
        if (dv_take_lists(item) && !(item->noted.marks & DV_NOTE_READY)) dv_handover_is_ready(p, now);
        is_entering |= is_asked_for(item);
        bool asked = is_to_prepare(item);
        if (asked == was_asked) continue;
        dv_item_move(item, asked ? DV_MOVE_PREPARE : DV_MOVE_CALL_OFF, now);
        if (asked) item->take.prepare_due = now + p->config.prepare_timeout_ms;
        item->take.seen = false;
        /* Else he has not heard that it was called off in between. */
        if (asked && !item->told.prepare) item->take.prepared = false;
        dv_snapshot_changed(p);
        dv_report_item(item, p->target_reason);
        /* Its owner may have said all that it will. Without one its place comes at once, and is told with this. */
        now_or_never |= !asked || (item->take.owner && item->take.owner->standing == DV_NOTE_THERE);
    }
    p->handover->is_entering = is_entering;
    if (now_or_never) dv_report_flush(p);
}

/* Tells what was held back until the session clock had proven something (P10). */
void dv_take_proven(divvy_partitioner *p) {
    for (size_t i = 0; i < dv_item_count(p); i++) {
        dv_item *item = dv_item_at(p, i);
        if (item->life.stage == DV_STAGE_PREPARING) dv_report_item(item, p->target_reason);
    }
    dv_report_flush(p);
}

int64_t dv_take_due(const divvy_partitioner *p, int64_t now) {
    int64_t due = INT64_MAX;
    if (p->totals.wanted_first == p->totals.wanted) return due;
    for (size_t i = 0; i < dv_item_count(p); i++) {
        const dv_item *item = dv_item_at(p, i);
        const dv_note_view *owner = item->take.owner;
        if (!item->life.wanted || item->life.contender || !owner || owner->standing != DV_NOTE_THERE) continue;
        int64_t at = !is_prepared(item, now) ? item->take.prepare_due : patience_ends(item);
        if (at > now && at < due) due = at;
    }
    return due;
}
