/* Our note, and the places that leave with a write of it. SPDX-License-Identifier: Apache-2.0
 *
 * docs/protocol.md, rules T1, T2, T5. Writes with which places leave follow one another without waiting. What one says
 * of leaving and ready items is made of the items as they are when it is sent, and of the writes before it. */
#include "partitioner/handover.h"

#include <assert.h>
#include <stdlib.h>

#include "base/container.h"
#include "znode/path.h"

enum {
    LAST_WORD_MS = 100, /* others have to read what was given last */
    HOLD_MS = 100,      /* T0: so long at most ready items wait for more of them */
};

bool dv_handover_can(const divvy_partitioner *p) {
    const struct dv_handover *h = p->handover;
    bool takes_part = p->life == DV_LIFE_TAKING_PART || p->life == DV_LIFE_HANDING_OVER;
    return h && h->note && dv_own_note_stands(h->note) && takes_part;
}

/* ---- what the note says ---- */

/* Takes over what the next note says of the item. The note before may stand for a while. */
static void note_marks(dv_item *item, const uint8_t *marks) {
    item->noted.was_listed |= item->noted.marks != 0;
    item->noted.marks = item->dealt ? marks[item->number] : 0;
}

/* Prints what is true now, and that the places from `first` on still stand. Returns NULL when an allocation fails. */
static char *compose(struct dv_handover *h, const dv_departure *first) {
    const divvy_partitioner *p = h->p;
    uint8_t *marks = calloc(p->dealt->count + 1, 1);
    if (!marks) return NULL;
    for (size_t i = 0; i < dv_item_count(p); i++) {
        const dv_item *item = dv_item_at(p, i);
        if (!item->dealt) continue;
        marks[item->number] =
            (uint8_t)((dv_give_lists(item) ? DV_NOTE_LEAVING : 0) | (dv_take_lists(item) ? DV_NOTE_READY : 0));
    }
    for (const dv_departure *d = first; d; d = d->next) {
        if (d->item->dealt) marks[d->item->number] |= d->marks;
    }
    char *text = dv_note_draft_print(&h->draft, marks);
    for (size_t i = 0; text && i < dv_item_count(p); i++) note_marks(dv_item_at(p, i), marks);
    free(marks);
    return text;
}

/* ---- departures ---- */

/* Each leaves its queue by itself, or is known to have left it. */
static void end_departures(dv_departure *first, bool deleted, int64_t now) {
    for (dv_departure *d = first, *next; d; d = next) {
        next = d->next;
        dv_contender_taken(d->place, deleted, now);
        free(d);
    }
}

static void end_waiting(struct dv_handover *h, int64_t now) {
    dv_departure *first = h->waiting;
    h->waiting = NULL;
    h->waiting_end = &h->waiting;
    end_departures(first, false, now);
}

void dv_handover_leave(dv_item *item, dv_contender *place) {
    struct dv_handover *h = item->partitioner->handover;
    int64_t seen = h ? dv_give_seen(item) : 0;
    bool said = h && (item->noted.marks || item->noted.was_listed || seen);
    bool can = said && dv_handover_can(item->partitioner) && dv_contender_stands(place);
    dv_departure *d = can ? malloc(sizeof *d) : NULL;
    if (!d) {
        dv_contender_leave(place);
        return;
    }
    *d = (dv_departure){.item = item, .place = place, .marks = item->noted.marks, .seen = seen};
    item->noted.marks = 0;
    dv_contender_take_away(place);
    *h->waiting_end = d;
    h->waiting_end = &d->next;
    dv_handover_changed(item->partitioner);
}

/* ---- writing ---- */

static void add_write(struct dv_handover *h, dv_note_departures *w) {
    dv_note_departures **end = &h->writes;
    while (*end) end = &(*end)->next;
    *end = w;
}

/* Gives what this write takes from those that wait. Returns the link behind them, and their paths. */
static dv_departure **collect(struct dv_handover *h, const char **paths, size_t *count, size_t *gives) {
    dv_departure **end = &h->waiting;
    *count = *gives = 0;
    for (; *end && *count < DV_NOTE_GIVES_MAX; end = &(*end)->next) {
        const dv_departure *d = *end;
        paths[(*count)++] = dv_contender_path(d->place);
        if (!d->seen || !d->item->dealt) continue;
        dv_note_draft_give(&h->draft, d->item->number, dv_contender_sequence(d->place), d->seen);
        (*gives)++;
    }
    return end;
}

/* Returns false when an allocation fails. */
static bool write_note(struct dv_handover *h, int64_t now) {
    const char *paths[DV_NOTE_GIVES_MAX];
    size_t count;
    dv_note_departures *w = calloc(1, sizeof *w);
    if (!w) return false;
    dv_note_draft_begin(&h->draft, h->p->dealt);
    dv_departure **end = collect(h, paths, &count, &w->gives), *rest = *end;
    char *text = compose(h, rest);
    if (!text || dv_own_note_write(h->note, text, paths, count) != 0) {
        dv_note_draft_take_back(&h->draft, w->gives);
        free(text);
        free(w);
        return false;
    }
    w->first = count > 0 ? h->waiting : NULL;
    *end = NULL;
    h->waiting = rest;
    if (!rest) h->waiting_end = &h->waiting;
    add_write(h, w);
    h->dirty = false;
    h->ready_since = 0;
    dv_note_draft_sent(&h->draft, h->p->party.count, now);
    return true;
}

bool dv_handover_may_write(const struct dv_handover *h) {
    return h->note && dv_own_note_has_room(h->note) && dv_note_draft_may_begin(&h->draft, h->p->dealt);
}

/* T0: news of ready items is told at once for all places that were asked for together, though their answers come in
 * parts: each note is read by all who give. Returns from when on the note may be written; INT64_MAX: nothing is new. */
static int64_t write_at(const struct dv_handover *h) {
    int64_t at = INT64_MAX;
    if (h->ready_since) at = h->ready_since + (h->is_entering ? HOLD_MS : 0);
    if (h->dirty) at = 0;
    return at < h->draft.write_at ? h->draft.write_at : at;
}

/* T5: while places are to leave, writes follow one another, each for as many as it takes. */
static void write_next(struct dv_handover *h, int64_t now) {
    if (!dv_handover_can(h->p)) {
        end_waiting(h, now);
        return;
    }
    bool complete = true;
    while (complete && h->waiting && dv_handover_may_write(h)) complete = write_note(h, now);
    bool is_due = now >= write_at(h) && !h->writes;
    if (complete && is_due && dv_own_note_is_free(h->note)) complete = write_note(h, now);
    if (!complete) dv_client_again(h->p->object.client);
}

/* Our node in the party is gone, or no longer ours. */
static void drop_note(divvy_partitioner *p, int64_t now) {
    struct dv_handover *h = p->handover;
    if (!h || !h->note) return;
    dv_own_note *note = h->note;
    dv_own_note_leave(note, now);
    h->note = NULL;
    end_waiting(h, now);
}

/* T5: a write that failed did nothing, so the places leave one by one, and the note follows without them. */
static void on_wrote(void *owner, dv_own_note *note, int error, int64_t now) {
    struct dv_handover *h = owner;
    divvy_partitioner *p = h->p;
    dv_note_departures *w = h->writes;
    h->writes = w->next;
    dv_op_begin(p); /* The last place may be the last thing that keeps the partitioner. */
    dv_note_draft_ended(&h->draft, w->gives, error, now);
    if (error) h->dirty = true;
    for (size_t i = 0; !error && !h->writes && i < dv_item_count(p); i++) {
        dv_item *item = dv_item_at(p, i);
        if (!item->noted.was_listed) continue;
        item->noted.was_listed = false;
        dv_items_prune(item);
    }
    end_departures(w->first, error == 0, now);
    free(w);
    if (note == h->note && !dv_own_note_stands(note)) drop_note(p, now);
    dv_handover_changed(p);
    dv_op_end(p, now);
}

/* ---- our note's life ---- */

/* With a note again, items that a RELEASE has not revoked yet can wait for their next owner (T1). */
static void on_settled(void *owner, dv_own_note *note, int64_t now) {
    const struct dv_handover *h = owner;
    if (note != h->note) return;
    dv_handover_changed(h->p);
    if (h->p->membership) dv_membership_go_on(h->p->membership, now);
}

static void on_gone(void *owner, dv_own_note *note, int64_t now) {
    struct dv_handover *h = owner;
    divvy_partitioner *p = h->p;
    assert(h->notes > 0);
    h->notes--;
    if (note == h->note) {
        h->note = NULL;
        end_waiting(h, now);
    }
    dv_client_changed(p->object.client);
    dv_op_end(p, now);
}

/* Our note stays for a moment: members that do not read in time what they were given list each queue (T6). */
void dv_handover_ended(divvy_partitioner *p, int64_t now) {
    struct dv_handover *h = p->handover;
    if (!h || !h->note) return;
    int64_t until = h->draft.gave_at ? h->draft.gave_at + LAST_WORD_MS : now;
    if (now < until && p->state == DIVVY_FAILURE) dv_timer_set(p->object.client, &h->timer, until);
    else drop_note(p, now);
}

void dv_handover_named(void *partitioner, const char *node, int64_t now) {
    static const dv_own_note_events events = {on_settled, on_wrote, on_gone, "items are not handed over"};
    divvy_partitioner *p = partitioner;
    struct dv_handover *h = p->handover;
    drop_note(p, now);
    if (h && !h->writes) dv_note_draft_begin(&h->draft, p->dealt);
    char *text = h && !h->writes ? compose(h, h->waiting) : NULL;
    if (text && dv_own_note_make(&h->note, p->object.client, h->directory, node, text, &events, h) == 0) {
        h->notes++;
        dv_op_begin(p);
        return; /* until it has settled */
    }
    free(text);
    dv_membership_go_on(p->membership, now);
}

bool dv_handover_at_rest(const divvy_partitioner *p) {
    return !p->handover || p->handover->notes == 0;
}

/* ---- plans ---- */

static void keep_views(const divvy_partitioner *p) {
    for (size_t i = 0; i < dv_item_count(p); i++) {
        dv_notes_keep(dv_item_at(p, i)->give.next);
        dv_notes_keep(dv_item_at(p, i)->take.owner);
        dv_notes_keep(dv_item_at(p, i)->take.former);
    }
    for (size_t i = 0; i < p->handover->namesake_count; i++) dv_notes_keep(p->handover->namesakes[i]);
    dv_notes_sweep(p->handover->others);
}

static void note_namesakes(struct dv_handover *h, const dv_follow_owners *owners) {
    size_t count = owners ? owners->namesake_count : 0;
    dv_note_view **grown = (dv_note_view **)realloc((void *)h->namesakes, (count + 1) * sizeof *grown);
    h->namesake_count = 0;
    if (!grown) return; /* Their items are found by lists. */
    h->namesakes = grown;
    for (size_t i = 0; i < count; i++) {
        dv_note_view *view = dv_notes_want(h->others, owners->namesakes[i]);
        if (view) h->namesakes[h->namesake_count++] = view;
    }
}

void dv_handover_plan(divvy_partitioner *p, const uint8_t *mine, const dv_follow_owners *owners, int64_t now) {
    struct dv_handover *h = p->handover;
    if (!h) return;
    note_namesakes(h, owners);
    if (owners) h->plan_mzxid = owners->mzxid;
    for (size_t i = 0; i < dv_item_count(p); i++) {
        dv_item *item = dv_item_at(p, i);
        bool is_planned = owners && item->dealt, is_ours = is_planned && mine[item->number];
        if (is_ours) dv_take_expect(item, owners->before[item->number], now);
        else dv_take_forget(item);
        if (is_planned && !is_ours) dv_give_to(item, owners->now[item->number], owners->party_is_older, now);
        else dv_give_forget(item);
    }
    if (!owners) dv_take_judge(p, NULL, now);
    else if (h->draft.set && !dv_plan_set_equal(h->draft.set, p->dealt)) h->dirty = true; /* Others pass it over. */
    keep_views(p);
    dv_handover_changed(p);
}

/* ---- events ---- */

static void set_timer(struct dv_handover *h, int64_t now) {
    int64_t due = dv_give_due(h->p), take_due = dv_take_due(h->p, now);
    if (take_due < due) due = take_due;
    int64_t write_due = write_at(h);
    if (h->note && write_due < due && write_due > now) due = write_due;
    if (due == INT64_MAX) dv_timer_cancel(&h->timer);
    else dv_timer_set(h->p->object.client, &h->timer, due > now ? due : now + 1);
}

static void look_at_all(struct dv_handover *h, int64_t now) {
    divvy_partitioner *p = h->p;
    if (p->state != DIVVY_FAILURE) p->events->handover_changed(p, now);
    write_next(h, now);
    if (p->state != DIVVY_FAILURE) set_timer(h, now);
}

static void on_go(dv_event *event, int64_t now) {
    struct dv_handover *h = DV_CONTAINER(event, struct dv_handover, go);
    divvy_partitioner *p = h->p;
    event->run = NULL;
    look_at_all(h, now);
    dv_op_end(p, now);
}

void dv_handover_changed(divvy_partitioner *p) {
    struct dv_handover *h = p->handover;
    if (h && p->state != DIVVY_FAILURE) dv_op_post(p, &h->go, on_go);
}

static void on_timer(dv_timer *timer, int64_t now) {
    struct dv_handover *h = DV_CONTAINER(timer, struct dv_handover, timer);
    if (h->p->state == DIVVY_FAILURE) drop_note(h->p, now);
    else look_at_all(h, now);
}

static void on_other_changed(void *owner, dv_note_view *view, int64_t now) {
    struct dv_handover *h = owner;
    if (h->p->state == DIVVY_FAILURE) return;
    dv_take_judge(h->p, view, now);
    dv_handover_changed(h->p);
}

void dv_handover_note_differs(divvy_partitioner *p) {
    p->handover->dirty = true;
}

void dv_handover_is_ready(divvy_partitioner *p, int64_t now) {
    if (!p->handover->ready_since) p->handover->ready_since = now;
}

void dv_handover_connected(divvy_partitioner *p) {
    if (!p->handover) return;
    dv_notes_connected(p->handover->others);
    dv_handover_changed(p);
}

/* ---- life ---- */

int dv_handover_init(divvy_partitioner *p, divvy_client *client) {
    if (!p->follower || p->config.mode == DIVVY_EAGER || p->config.handover_timeout_ms == 0) return 0;
    struct dv_handover *h = p->handover = calloc(1, sizeof *h);
    if (!h) return DIVVY_ENOMEM;
    h->p = p;
    h->waiting_end = &h->waiting;
    h->timer.fire = on_timer;
    h->directory = dv_path_join(p->path, "notes");
    bool complete = dv_note_draft_init(&h->draft);
    h->others = h->directory ? dv_notes_new(client, h->directory, on_other_changed, h) : NULL;
    if (h->others && complete) return 0;
    dv_handover_free(p);
    return DIVVY_ENOMEM;
}

void dv_handover_stop(divvy_partitioner *p) {
    struct dv_handover *h = p->handover;
    if (!h) return;
    int64_t now = dv_client_now(p->object.client);
    dv_timer_cancel(&h->timer);
    dv_handover_plan(p, NULL, NULL, now);
    end_waiting(h, now);
    /* One that stands goes after our node in the party. */
    if (h->note && !dv_own_note_stands(h->note)) drop_note(p, now);
}

void dv_handover_free(divvy_partitioner *p) {
    struct dv_handover *h = p->handover;
    if (!h) return;
    assert(h->notes == 0 && !h->waiting && !h->writes && !h->go.run);
    dv_timer_cancel(&h->timer);
    dv_notes_free(h->others);
    dv_note_draft_free(&h->draft);
    free((void *)h->namesakes);
    free(h->directory);
    free(h);
    p->handover = NULL;
}
