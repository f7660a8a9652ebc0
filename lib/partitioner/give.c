/* The items that we give away, and keep until their next owners are ready. SPDX-License-Identifier: Apache-2.0
 *
 * docs/protocol.md, rules T1, T3 to T5. */
#include "partitioner/handover.h"

/* T1: how long a plan may be ahead of the party that we know. */
enum { PARTY_LATE_MS = 400 };

static bool is_ready(const dv_item *item) {
    const dv_note_view *next = item->give.next;
    return next && next->standing == DV_NOTE_THERE && dv_note_is_of(&next->note, item->partitioner->dealt) &&
           dv_note_is_ready(&next->note, item->number);
}

/* T4. One whose note has gone has most likely gone itself, and the next plan says who comes in its place. */
static int64_t due_of(const dv_item *item) {
    const dv_note_view *next = item->give.next;
    int64_t most_ms = item->partitioner->config.handover_timeout_ms;
    if (next && next->standing == DV_NOTE_ABSENT && !next->was_there) return 0;
    if (!next && most_ms > PARTY_LATE_MS) most_ms = PARTY_LATE_MS;
    return item->give.since + most_ms;
}

static bool may_stay(const dv_item *item) {
    const divvy_partitioner *p = item->partitioner;
    if (!dv_item_shown(item) || item->life.wanted || !item->dealt) return false;
    if (!item->give.next && !item->give.next_awaited) return false;
    if (!p->target_valid || !dv_handover_can(p)) return false;
    return item->plain || !p->kazoo_seen; /* P11 */
}

static bool may_wait(const dv_item *item, int64_t now) {
    bool withdrawn = item->partitioner->withdrawn; /* T8: it leaves, by T5, when the user has released it */
    return may_stay(item) && !withdrawn && now < due_of(item);
}

bool dv_give_keeps(const dv_item *item, int64_t now) {
    return may_wait(item, now) && !is_ready(item);
}

bool dv_give_lists(const dv_item *item) {
    return may_stay(item) && item->give.next && item->give.next->standing != DV_NOTE_ABSENT;
}

int64_t dv_give_seen(const dv_item *item) {
    return may_stay(item) && is_ready(item) ? item->give.next->mzxid : 0;
}

/* ---- what a plan says ---- */

void dv_give_forget(dv_item *item) {
    item->give = (dv_item_give){NULL, 0, false};
}

void dv_give_to(dv_item *item, const char *owner, bool party_is_older, int64_t now) {
    dv_item_give *give = &item->give;
    if (!dv_item_shown(item)) {
        dv_give_forget(item);
        return;
    }
    if (give->since == 0) give->since = now;
    bool nobody = owner == dv_nobody;
    if (nobody) give->next = NULL;
    else if (owner) give->next = dv_notes_want(item->partitioner->handover->others, owner);
    /* else the next owner has gone; the next plan says who comes */
    give->next_awaited = !nobody && !give->next && party_is_older;
}

/* ---- what is kept ---- */

static dv_item_stage stage_of(const dv_item *item, int64_t now) {
    const struct dv_handover *h = item->partitioner->handover;
    /* T3: what is revoked while the note cannot be written would have no owner for that time, too. */
    bool is_late = h->waiting || (h->writes && !dv_handover_may_write(h));
    bool stays = may_wait(item, now) && (!is_ready(item) || is_late);
    if (!stays) return DV_STAGE_SHOWN;
    /* A moment later it is known whether its next owner has a note; without one it is not leaving, but revoked. */
    bool announced = item->give.next && item->give.next->standing != DV_NOTE_UNREAD;
    return announced ? DV_STAGE_LEAVING : DV_STAGE_KEPT;
}

static void move_to(dv_item *item, dv_item_stage to, int64_t now) {
    if (item->life.stage == to) return;
    if (to == DV_STAGE_SHOWN) dv_item_move(item, DV_MOVE_STAY, now);
    else if (item->life.stage == DV_STAGE_SHOWN) dv_item_move(item, DV_MOVE_KEEP, now);
    if (to == DV_STAGE_KEPT && item->life.stage == DV_STAGE_LEAVING) dv_item_move(item, DV_MOVE_RETRACT, now);
    if (to == DV_STAGE_LEAVING && item->life.stage == DV_STAGE_KEPT) dv_item_move(item, DV_MOVE_ANNOUNCE, now);
}

void dv_give_update(divvy_partitioner *p, int64_t now) {
    if (!p->handover) return;
    for (size_t i = 0; i < dv_item_count(p); i++) {
        dv_item *item = dv_item_at(p, i);
        bool stays = item->life.wanted || !dv_item_shown(item); /* as most do, in a large pool */
        bool is_listed = item->noted.marks & DV_NOTE_LEAVING;
        if (stays && !is_listed && !dv_item_kept(item)) continue;
        if (dv_give_lists(item) != is_listed) dv_handover_note_differs(p);
        if (!dv_item_owned(item)) continue;
        bool was_leaving = item->life.stage == DV_STAGE_LEAVING;
        move_to(item, stage_of(item, now), now);
        if ((item->life.stage == DV_STAGE_LEAVING) == was_leaving) continue;
        dv_snapshot_changed(p);
        dv_report_item(item, p->target_reason);
    }
}

int64_t dv_give_due(const divvy_partitioner *p) {
    int64_t due = INT64_MAX;
    for (size_t i = 0; i < dv_item_count(p); i++) {
        const dv_item *item = dv_item_at(p, i);
        if (dv_item_kept(item) && due_of(item) < due) due = due_of(item);
    }
    return due;
}

/* ---- D44: how long a plan took ---- */

/* Returns whether one of our items is still on its way, to us or from us. */
static bool is_moving(const dv_item *item) {
    return item->noted.marks & DV_NOTE_LEAVING || (item->life.wanted ? !item->life.is_first : dv_item_shown(item));
}

/* An item stays listed as ready when the member has it, so only the notes of those who give tell of an end. */
static bool has_given(const dv_note_view *v, int64_t mzxid) {
    return v->standing == DV_NOTE_THERE && v->mzxid > mzxid && v->note.given_count > 0;
}

int64_t dv_give_ended_ms(void *partitioner, int64_t mzxid) {
    const divvy_partitioner *p = partitioner;
    const struct dv_handover *h = p->handover;
    int64_t last_ms = 0, own_ms;
    if (!h || !h->note || h->writes || h->waiting) return 0;
    for (size_t i = 0; i < dv_item_count(p); i++) {
        if (is_moving(dv_item_at(p, i))) return 0;
    }
    if (dv_own_note_written(h->note, &own_ms) > mzxid && h->draft.given_count > 0) last_ms = own_ms;
    if (last_ms < 0) return 0;
    for (const dv_note_view *v = dv_notes_first(h->others); v; v = v->next) {
        if (v->standing == DV_NOTE_THERE && v->note.leaving_count > 0) return 0;
        if (has_given(v, mzxid) && v->written_ms > last_ms) last_ms = v->written_ms;
    }
    return last_ms;
}
