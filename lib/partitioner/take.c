/* The items that we are to take from those who have them. SPDX-License-Identifier: Apache-2.0
 *
 * docs/protocol.md, rules T2, T6, T7, T9. */
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
    return says_leaving(item->giver, item);
}

/* How much is known of whether it has the item: that it has, nothing yet, nothing, that it does not hand over. */
static int promise(const dv_note_view *view, const dv_item *item) {
    if (!view) return -1;
    if (says_leaving(view, item)) return 3;
    return view->standing == DV_NOTE_UNREAD ? 2 : view->standing == DV_NOTE_THERE;
}

void dv_take_choose_giver(dv_item *item) {
    const struct dv_handover *h = item->partitioner->handover;
    if (item->place) return; /* It waits for the one that was the giver when it entered. */
    item->giver = item->former;
    for (size_t i = 0; i < h->namesake_count; i++) {
        if (promise(h->namesakes[i], item) > promise(item->giver, item)) item->giver = h->namesakes[i];
    }
}

static bool is_to_prepare(const dv_item *item) {
    const divvy_partitioner *p = item->partitioner;
    return item->wanted && item->awaited_since && !item->shown && p->life == DV_LIFE_TAKING_PART &&
           p->config.prepare_timeout_ms > 0;
}

/* Who has not been told yet to prepare has not prepared. */
static bool is_prepared(const dv_item *item, int64_t now) {
    if (item->prepare_due == 0) return !is_to_prepare(item);
    return item->prepared || now >= item->prepare_due;
}

static int64_t patience_ends(const dv_item *item) {
    bool wrote = item->giver->mzxid > item->partitioner->handover->plan_mzxid;
    return item->awaited_since + (wrote ? PATIENCE_MS : PATIENCE_MAX_MS);
}

bool dv_take_may_enter(const dv_item *item, int64_t now) {
    const divvy_partitioner *p = item->partitioner;
    if (!p->handover || !item->giver || !dv_handover_can(p)) return true;
    switch (item->giver->standing) {
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

/* T6, T7. */
static void judge(dv_item *item, int64_t now) {
    dv_contender *place = item->place;
    const dv_note_view *giver = item->giver;
    if (!place || !dv_contender_is_parked(place)) return;
    bool readable = giver && giver->standing == DV_NOTE_THERE && dv_note_is_of(&giver->note, item->partitioner->dealt);
    bool given =
        readable && dv_note_gives(&giver->note, item->number, dv_contender_sequence(place), dv_contender_token(place));
    if (given) dv_contender_take(place, now);
    else if (!is_leaving_it(item)) dv_contender_look(place);
}

void dv_take_placed(void *context, dv_contender *place, int64_t now) {
    dv_item *item = context;
    assert(item->place == place);
    (void)place;
    dv_handover_changed(item->partitioner);
    judge(item, now);
}

void dv_take_waits(void *context, dv_contender *place, int64_t now) {
    dv_item *item = context;
    (void)place;
    (void)now;
    dv_handover_changed(item->partitioner);
}

void dv_take_judge(divvy_partitioner *p, const dv_note_view *view, int64_t now) {
    for (size_t i = 0; i < dv_item_count(p); i++) {
        dv_item *item = dv_item_at(p, i);
        if (item->dealt && (!view || item->giver == view)) judge(item, now);
    }
}

bool dv_take_lists(const dv_item *item) {
    return item->wanted && item->dealt && !item->held && item->place && dv_contender_is_behind(item->place);
}

/* The user prepares for what the plan gives us and we do not have; and is told when it gives that to another. */
void dv_take_update(divvy_partitioner *p, int64_t now) {
    struct dv_handover *h = p->handover;
    bool now_or_never = false; /* nothing else may come that tells the user */
    if (!h) return;
    for (size_t i = 0; i < dv_item_count(p); i++) {
        dv_item *item = dv_item_at(p, i);
        bool here = !item->wanted || item->held; /* as most are, or others' */
        if (here && !item->awaited_since && !item->prepare_due) continue;
        if (item->awaited_since) dv_take_choose_giver(item);
        if (dv_take_lists(item) && !item->in_ready) h->dirty = true;
        bool asked = is_to_prepare(item);
        if (asked == (item->prepare_due != 0)) continue;
        item->prepare_due = asked ? now + p->config.prepare_timeout_ms : 0;
        item->prepare_seen = false;
        if (asked && !item->told_prepare) item->prepared = false; /* else he has not heard that it was off in between */
        dv_snapshot_changed(p);
        dv_report_item(item, p->target_reason);
        /* Its giver may have said all that it will. Without one its place comes at once, and is told with this. */
        now_or_never |= asked ? item->giver && item->giver->standing == DV_NOTE_THERE : !item->shown;
    }
    if (now_or_never) dv_report_flush(p);
}

/* What was to be told before the session clock had proven anything, and was not (P10). */
void dv_take_proven(divvy_partitioner *p) {
    for (size_t i = 0; i < dv_item_count(p); i++) {
        dv_item *item = dv_item_at(p, i);
        if (item->prepare_due != 0) dv_report_item(item, p->target_reason);
    }
    dv_report_flush(p);
}

int64_t dv_take_due(const divvy_partitioner *p, int64_t now) {
    int64_t due = INT64_MAX;
    if (p->wanted_held == p->wanted_count) return due;
    for (size_t i = 0; i < dv_item_count(p); i++) {
        const dv_item *item = dv_item_at(p, i);
        if (!item->wanted || item->place || !item->giver || item->giver->standing != DV_NOTE_THERE) continue;
        int64_t at = !is_prepared(item, now) ? item->prepare_due : patience_ends(item);
        if (at > now && at < due) due = at;
    }
    return due;
}
