/* Our note, and the places that leave with a write of it. SPDX-License-Identifier: Apache-2.0
 *
 * docs/protocol.md, rules T1, T2, T5. One write is under way at a time. What it says of leaving and ready items is made
 * of the items as they are when it is sent. */
#include "partitioner/handover.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "znode/path.h"

enum {
    DEPARTURES_MAX = 199, /* together with the note, one multi */
    GIVEN_MAX = 4096,     /* more than a note can hold */
    WRITE_GAP_MS = 100,   /* or a millisecond for each member */
    BURST = 5,            /* so many may follow one another after a quiet time */
    CUT_GAP_MS = 1000,    /* where not all fits, and more may fit by then */
    LAST_WORD_MS = 100,   /* others have to read what was given last */
};

bool dv_handover_can(const divvy_partitioner *p) {
    const struct dv_handover *h = p->handover;
    bool takes_part = p->life == DV_LIFE_TAKING_PART || p->life == DV_LIFE_HANDING_OVER;
    return h && h->note && dv_own_note_stands(h->note) && takes_part;
}

/* ---- what the note says ---- */

typedef struct {
    dv_note note;
    bool *leaving, *ready; /* by item of the set; all lists stand in the block that begins here */
} contents;

static void mark_departures(contents *c, const dv_departure *first) {
    for (const dv_departure *d = first; d; d = d->next) {
        if (!d->item->dealt) continue;
        c->leaving[d->item->number] |= d->in_leaving;
        c->ready[d->item->number] |= d->in_ready;
    }
}

static size_t list_marked(uint32_t *out, const bool *marks, size_t count) {
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        if (marks[i]) out[found++] = (uint32_t)i;
    }
    return found;
}

/* Collects what is true now, without the places that go with this write. */
static bool collect(contents *c, const struct dv_handover *h) {
    const dv_plan_set *set = h->p->dealt;
    size_t count = set->count;
    *c = (contents){.note = {.set_count = count, .set_crc = set->crc, .set_hash = set->hash}};
    c->note.leaving = calloc(2 * count + 1, sizeof(uint32_t) + sizeof(bool));
    if (!c->note.leaving) return false;
    c->note.ready = c->note.leaving + count;
    c->leaving = (bool *)(c->note.ready + count);
    c->ready = c->leaving + count;
    for (size_t i = 0; i < count; i++) {
        const dv_item *item = dv_items_of(h->p)->dealt[i];
        c->leaving[i] = dv_give_lists(item);
        c->ready[i] = dv_take_lists(item);
    }
    mark_departures(c, h->waiting);
    c->note.leaving_count = list_marked(c->note.leaving, c->leaving, count);
    c->note.ready_count = list_marked(c->note.ready, c->ready, count);
    c->note.given = h->given;
    c->note.given_count = h->given_count;
    return true;
}

/* The next note no longer names it, until it is found to. The note before may stand for a while. */
static void unlist(dv_item *item) {
    item->noted.was_listed |= item->noted.leaving || item->noted.ready;
    item->noted.leaving = item->noted.ready = false;
}

/* Notes which items and places the text names. */
static void note_listed(struct dv_handover *h, const contents *c, size_t leaving, size_t ready) {
    const divvy_partitioner *p = h->p;
    for (size_t i = 0; i < dv_item_count(p); i++) unlist(dv_item_at(p, i));
    for (size_t i = 0; i < leaving; i++) dv_items_of(p)->dealt[c->note.leaving[i]]->noted.leaving = true;
    for (size_t i = 0; i < ready; i++) dv_items_of(p)->dealt[c->note.ready[i]]->noted.ready = true;
}

/* Returns the text, or NULL: no memory. */
static char *compose(struct dv_handover *h) {
    contents c;
    size_t leaving = 0, ready = 0, given = 0;
    char *text = collect(&c, h) ? dv_note_print(&c.note, &leaving, &ready, &given) : NULL;
    if (text) note_listed(h, &c, leaving, ready);
    h->cut = leaving < c.note.leaving_count || ready < c.note.ready_count;
    free(c.note.leaving);
    return text;
}

/* ---- what was given ---- */

/* The numbers are those of one set. Old entries may be dropped at any time (T5). */
static void make_room_for_given(struct dv_handover *h, size_t more) {
    assert(h->giving == 0);
    if (h->note_set && !dv_plan_set_equal(h->note_set, h->p->dealt)) h->given_count = 0;
    dv_plan_set_unref(h->note_set);
    h->note_set = dv_plan_set_ref(h->p->dealt);
    if (h->given_count + more <= GIVEN_MAX) return;
    size_t dropped = h->given_count + more - GIVEN_MAX;
    h->given_count -= dropped;
    memmove(h->given, h->given + dropped, h->given_count * sizeof *h->given);
}

static void add_given(struct dv_handover *h, const dv_departure *first) {
    make_room_for_given(h, DEPARTURES_MAX);
    for (const dv_departure *d = first; d; d = d->next) {
        if (d->seen == 0 || !d->item->dealt) continue;
        h->given[h->given_count++] = (dv_note_given){d->item->number, dv_contender_sequence(d->place), d->seen};
        h->giving++;
    }
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
    const dv_item_noted *noted = &item->noted;
    bool said = h && (noted->leaving || noted->ready || noted->was_listed || seen);
    bool can = said && dv_handover_can(item->partitioner) && dv_contender_stands(place);
    dv_departure *d = can ? malloc(sizeof *d) : NULL;
    if (!d) {
        dv_contender_leave(place);
        return;
    }
    *d = (dv_departure){
        .item = item, .place = place, .in_leaving = noted->leaving, .in_ready = noted->ready, .seen = seen};
    item->noted.leaving = item->noted.ready = false;
    dv_contender_take_away(place);
    *h->waiting_end = d;
    h->waiting_end = &d->next;
    dv_handover_changed(item->partitioner);
}

/* ---- writing ---- */

static dv_departure *take_departures(struct dv_handover *h, const char *paths[DEPARTURES_MAX], size_t *count) {
    dv_departure *first = h->waiting, *last = NULL;
    for (*count = 0; h->waiting && *count < DEPARTURES_MAX; h->waiting = last->next) {
        last = h->waiting;
        paths[(*count)++] = dv_contender_path(last->place);
    }
    if (last) last->next = NULL;
    if (!h->waiting) h->waiting_end = &h->waiting;
    return last ? first : NULL;
}

static void put_back(struct dv_handover *h, dv_departure *first) {
    for (dv_departure *d = first; d; d = d->next) {
        if (d->next) continue;
        d->next = h->waiting;
        if (!h->waiting) h->waiting_end = &d->next;
        h->waiting = first;
        return;
    }
}

/* T0: the places of one plan come in several multis, so its news is rarely whole in the first note. */
static int64_t next_write_at(const struct dv_handover *h, int64_t now) {
    int64_t gap_ms = (int64_t)h->p->party.count > WRITE_GAP_MS ? (int64_t)h->p->party.count : WRITE_GAP_MS;
    if (h->cut && gap_ms < CUT_GAP_MS) return now + CUT_GAP_MS;
    int64_t quiet = now - (BURST - 1) * gap_ms, from = h->write_at > quiet ? h->write_at : quiet;
    return (from < now ? from : now) + gap_ms;
}

static void write_note(struct dv_handover *h, int64_t now) {
    const char *paths[DEPARTURES_MAX];
    size_t count;
    dv_departure *going = take_departures(h, paths, &count);
    add_given(h, going);
    char *text = compose(h);
    if (!text || dv_own_note_write(h->note, text, paths, count, now) != 0) {
        free(text);
        h->given_count -= h->giving;
        h->giving = 0;
        put_back(h, going);
        dv_client_again(h->p->object.client);
        return;
    }
    h->under_way = going;
    h->writing = true;
    h->dirty = false;
    h->write_at = next_write_at(h, now);
}

static void write_next(struct dv_handover *h, int64_t now) {
    if (!dv_handover_can(h->p)) end_waiting(h, now);
    else if (!h->writing && dv_own_note_is_free(h->note) && (h->waiting || (h->dirty && now >= h->write_at)))
        write_note(h, now);
}

/* T5: a write that failed did nothing, so the places leave one by one, and the note follows without them. */
static void on_wrote(void *owner, dv_own_note *note, int error, int64_t now) {
    struct dv_handover *h = owner;
    divvy_partitioner *p = h->p;
    dv_departure *gone = h->under_way;
    assert(h->writing);
    h->writing = false;
    dv_op_begin(p); /* The last place may be the last thing that keeps the partitioner. */
    if (error) h->given_count -= h->giving;
    if (error) h->dirty = true;
    for (size_t i = 0; !error && i < dv_item_count(p); i++) dv_item_at(p, i)->noted.was_listed = false;
    if (!error && h->giving > 0) h->gave_at = now;
    h->giving = 0;
    h->under_way = NULL;
    end_departures(gone, error == 0, now);
    if (note == h->note && !dv_own_note_stands(note)) dv_handover_unnamed(p, now);
    dv_handover_changed(p);
    dv_op_end(p, now);
}

/* ---- our note's life ---- */

static void on_settled(void *owner, dv_own_note *note, int64_t now) {
    struct dv_handover *h = owner;
    divvy_partitioner *p = h->p;
    if (note != h->note || !p->membership) return;
    dv_membership_go_on(p->membership, now);
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

void dv_handover_unnamed(divvy_partitioner *p, int64_t now) {
    struct dv_handover *h = p->handover;
    if (!h || !h->note) return;
    dv_own_note *note = h->note;
    dv_own_note_leave(note, now);
    h->note = NULL;
    end_waiting(h, now);
}

/* Our note stays for a moment: members that do not read in time what they were given list each queue (T6). */
void dv_handover_ended(divvy_partitioner *p, int64_t now) {
    struct dv_handover *h = p->handover;
    bool waits = h && h->note && h->gave_at && now < h->gave_at + LAST_WORD_MS && p->state == DIVVY_FAILURE;
    if (waits) dv_timer_set(p->object.client, &h->timer, h->gave_at + LAST_WORD_MS);
    else dv_handover_unnamed(p, now);
}

void dv_handover_named(void *partitioner, const char *node, int64_t now) {
    static const dv_own_note_events events = {on_settled, on_wrote, on_gone};
    divvy_partitioner *p = partitioner;
    struct dv_handover *h = p->handover;
    dv_handover_unnamed(p, now);
    if (h && !h->writing) make_room_for_given(h, 0);
    char *text = h && !h->writing ? compose(h) : NULL;
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

void dv_handover_no_plan(void *partitioner) {
    divvy_partitioner *p = partitioner;
    if (!p->handover) return;
    p->handover->namesake_count = 0;
    for (size_t i = 0; i < dv_item_count(p); i++) {
        dv_item *item = dv_item_at(p, i);
        dv_give_forget(item);
        dv_take_forget(item);
    }
    dv_take_judge(p, NULL, dv_client_now(p->object.client));
    keep_views(p);
    dv_handover_changed(p);
}

void dv_handover_namesakes(divvy_partitioner *p, const char *const *nodes, size_t count) {
    struct dv_handover *h = p->handover;
    h->namesake_count = 0;
    dv_note_view **grown = (dv_note_view **)realloc((void *)h->namesakes, (count + 1) * sizeof *grown);
    if (!grown) return; /* Their items are asked for by lists. */
    h->namesakes = grown;
    for (size_t i = 0; i < count; i++) {
        dv_note_view *view = dv_notes_want(h->others, nodes[i]);
        if (view) h->namesakes[h->namesake_count++] = view;
    }
}

void dv_handover_plan(divvy_partitioner *p, const uint8_t *mine, const char *const *owners, const char *const *before,
                      bool party_is_older, int64_t mzxid, int64_t now) {
    struct dv_handover *h = p->handover;
    if (!h) return;
    h->plan_mzxid = mzxid;
    for (size_t i = 0; i < dv_item_count(p); i++) {
        if (dv_item_at(p, i)->dealt) continue;
        dv_give_forget(dv_item_at(p, i));
        dv_take_forget(dv_item_at(p, i));
    }
    for (size_t i = 0; i < p->dealt->count; i++) {
        dv_item *item = dv_items_of(p)->dealt[i];
        if (mine[i]) {
            dv_give_forget(item);
            dv_take_expect(item, before[i], now);
        } else {
            dv_take_forget(item);
            dv_give_to(item, owners[i], party_is_older, now);
        }
    }
    if (h->note_set && !dv_plan_set_equal(h->note_set, p->dealt)) h->dirty = true; /* Others pass it over. */
    keep_views(p);
    dv_handover_changed(p);
}

/* ---- events ---- */

static void set_timer(struct dv_handover *h, int64_t now) {
    int64_t due = dv_give_due(h->p), take_due = dv_take_due(h->p, now);
    if (take_due < due) due = take_due;
    if (h->dirty && h->note && h->write_at < due && h->write_at > now) due = h->write_at;
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
    if (h->p->state == DIVVY_FAILURE) dv_handover_unnamed(h->p, now);
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
    h->given = malloc(GIVEN_MAX * sizeof *h->given);
    h->others = h->directory ? dv_notes_new(client, h->directory, on_other_changed, h) : NULL;
    if (h->others && h->given) return 0;
    dv_handover_free(p);
    return DIVVY_ENOMEM;
}

void dv_handover_stop(divvy_partitioner *p) {
    struct dv_handover *h = p->handover;
    if (!h) return;
    int64_t now = dv_client_now(p->object.client);
    dv_timer_cancel(&h->timer);
    dv_handover_no_plan(p);
    end_waiting(h, now);
    /* One that stands goes after our node in the party. */
    if (h->note && !dv_own_note_stands(h->note)) dv_handover_unnamed(p, now);
}

void dv_handover_free(divvy_partitioner *p) {
    struct dv_handover *h = p->handover;
    if (!h) return;
    assert(h->notes == 0 && !h->waiting && !h->under_way && !h->go.run);
    dv_timer_cancel(&h->timer);
    dv_notes_free(h->others);
    dv_plan_set_unref(h->note_set);
    free((void *)h->namesakes);
    free(h->given);
    free(h->directory);
    free(h);
    p->handover = NULL;
}
