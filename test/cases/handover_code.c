/* See handover_code.h. SPDX-License-Identifier: Apache-2.0 */
#include "cases/handover_code.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "partitioner/handover.h"

enum { NOW = 1000000, TIMEOUT_MS = 30000, PREPARE_MS = 5000, LONG_AGO = 100000 };

static dv_plan_set *set;
static code_judgement judged;
static bool is_behind;

#define CHECK(condition)                                                \
    do {                                                                \
        if (condition) break;                                           \
        fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
        abort();                                                        \
    } while (0)

/* ---- what give.c and take.c call ---- */

bool dv_handover_can(const divvy_partitioner *p) {
    (void)p;
    return true;
}
bool dv_handover_may_write(const struct dv_handover *h) {
    (void)h;
    return true;
}
void dv_handover_changed(divvy_partitioner *p) {
    (void)p;
}
void dv_handover_note_differs(divvy_partitioner *p) {
    (void)p;
}
void dv_handover_is_ready(divvy_partitioner *p, int64_t now) {
    (void)p;
    (void)now;
}
void dv_item_move(dv_item *item, dv_item_move_kind kind, int64_t now) {
    (void)now;
    switch (kind) {
    case DV_MOVE_KEEP:
    case DV_MOVE_RETRACT: item->life.stage = DV_STAGE_KEPT; break;
    case DV_MOVE_ANNOUNCE: item->life.stage = DV_STAGE_LEAVING; break;
    case DV_MOVE_STAY: item->life.stage = DV_STAGE_SHOWN; break;
    default: CHECK(!"no such move is expected");
    }
}
void dv_snapshot_changed(divvy_partitioner *p) {
    (void)p;
}
void dv_report_item(dv_item *item, int reason) {
    (void)item;
    (void)reason;
}
void dv_report_flush(divvy_partitioner *p) {
    (void)p;
}
dv_note_view *dv_notes_want(dv_notes *notes, const char *node) {
    (void)node;
    return (dv_note_view *)(void *)notes; /* the only one */
}
const dv_note_view *dv_notes_first(const dv_notes *notes) {
    (void)notes;
    return NULL;
}
int64_t dv_own_note_written(const dv_own_note *own, int64_t *written_ms) {
    (void)own;
    *written_ms = 0;
    return 0;
}

/* A place: its number and czxid. */
struct dv_contender {
    int32_t number;
    int64_t czxid;
};
bool dv_contender_is_parked(const dv_contender *c) {
    (void)c;
    return true;
}
bool dv_contender_is_behind(const dv_contender *c) {
    (void)c;
    return is_behind;
}
int32_t dv_contender_sequence(const dv_contender *c) {
    return c->number;
}
int64_t dv_contender_token(const dv_contender *c) {
    return c->czxid;
}
void dv_contender_take(dv_contender *c, int64_t now) {
    (void)c;
    (void)now;
    judged = CODE_TAKES;
}
void dv_contender_look(dv_contender *c) {
    (void)c;
    judged = CODE_LISTS;
}

/* ---- a member with one item ---- */

typedef struct {
    divvy_partitioner p;
    struct dv_handover h;
    dv_item_table table;
    dv_names *names;
    dv_item *item, *items[1];
    dv_note_view view;
} member;

void code_begin(void) {
    static const char *const names[] = {"i0", "i1"};
    set = dv_plan_set_make(names, 2);
    CHECK(set != NULL);
}

void code_end(void) {
    dv_plan_set_unref(set);
}

/* Prints the note and parses that, as it comes and goes between members. */
static void read_note(dv_note_view *view, const code_note *n) {
    static uint32_t one[] = {1};
    dv_note_given given = {.item = 1, .sequence = n->given_at - 1, .seen = n->given_to};
    const dv_note says = {.set_count = set->count,
                          .set_crc = set->crc,
                          .set_hash = set->hash,
                          .leaving = one,
                          .leaving_count = n->leaving,
                          .ready = one,
                          .ready_count = n->ready,
                          .given = &given,
                          .given_count = n->given_at > 0};
    size_t leaving, ready, count;
    char *text = dv_note_print(&says, &leaving, &ready, &count);
    CHECK(text != NULL && dv_note_parse(&view->note, text, strlen(text), NULL) == 0);
    free(text);
}

static void member_begin(member *m, const code_note *n) {
    memset(m, 0, sizeof *m);
    m->p.handover = &m->h;
    m->p.dealt = set;
    m->p.target_valid = true;
    m->p.life = DV_LIFE_TAKING_PART;
    m->p.config.handover_timeout_ms = TIMEOUT_MS;
    m->p.config.prepare_timeout_ms = PREPARE_MS;
    m->h.p = &m->p;
    m->h.others = (dv_notes *)(void *)&m->view;
    m->names = calloc(1, sizeof *m->names + sizeof(char *) * 2);
    m->item = calloc(1, sizeof *m->item + 8);
    CHECK(m->names != NULL && m->item != NULL);
    m->names->count = 1;
    m->table.names = m->names;
    m->table.items = m->items;
    m->items[0] = m->item;
    m->p.table = &m->table;
    m->item->dealt = m->item->plain = true;
    m->item->number = 1;
    m->item->partitioner = &m->p;
    if (n == NULL) return;
    m->view.standing = !n->is_read ? DV_NOTE_UNREAD : n->is_there ? DV_NOTE_THERE : DV_NOTE_ABSENT;
    m->view.mzxid = n->mzxid;
    if (m->view.standing == DV_NOTE_THERE) read_note(&m->view, n);
}

static void member_end(member *m) {
    dv_note_clear(&m->view.note);
    free(m->names);
    free(m->item);
}

/* ---- the decisions ---- */

static void begin_to_give(member *m, const code_note *next, bool wanted, bool was_there) {
    member_begin(m, next);
    m->item->life.is_first = true;
    m->item->life.stage = DV_STAGE_SHOWN;
    m->view.was_there = was_there;
    dv_give_to(m->item, "b", false, NOW);
    m->item->life.wanted = wanted; /* by a later plan */
}

code_giving code_give(const code_note *next, bool wanted, bool overdue, bool blocked, bool was_there) {
    member m;
    dv_departure departure;
    int64_t now = overdue ? NOW + TIMEOUT_MS : NOW + TIMEOUT_MS - 1;
    begin_to_give(&m, next, wanted, was_there);
    if (blocked) m.h.waiting = &departure;
    dv_give_update(&m.p, now);
    code_giving giving = {.keeps = dv_item_kept(m.item), .lists_it = dv_give_lists(m.item)};
    giving.revokes = dv_item_owned(m.item) && !m.item->life.wanted && !giving.keeps;
    CHECK(giving.keeps == (dv_give_due(&m.p) != INT64_MAX));
    member_end(&m);
    return giving;
}

bool code_release(const code_note *next, bool wanted, bool overdue, bool was_there, int64_t *seen) {
    member m;
    begin_to_give(&m, next, wanted, was_there);
    m.item->life.stage = DV_STAGE_REVOKED;
    bool keeps = wanted || dv_give_keeps(m.item, overdue ? NOW + TIMEOUT_MS : NOW + TIMEOUT_MS - 1);
    *seen = keeps ? 0 : dv_give_seen(m.item);
    member_end(&m);
    return keeps;
}

bool code_enter(const code_note *owner, bool is_prepared, bool waited, bool *parks) {
    member m;
    member_begin(&m, owner);
    dv_take_expect(m.item, owner != NULL ? "a" : dv_nobody, NOW);
    CHECK((m.item->take.owner != NULL) == (owner != NULL));
    m.item->life.wanted = true;
    m.item->life.stage = DV_STAGE_PREPARING;
    m.item->take.prepare_due = NOW + PREPARE_MS;
    if (is_prepared) dv_take_prepared(&m.p, m.item);
    bool may = dv_take_may_enter(m.item, waited ? NOW + LONG_AGO : NOW);
    *parks = dv_take_is_awaited(m.item);
    member_end(&m);
    return may;
}

code_judgement code_judge(const code_note *owner, int32_t number, int64_t czxid) {
    member m;
    struct dv_contender place = {number, czxid};
    member_begin(&m, owner);
    dv_take_expect(m.item, "a", NOW);
    m.item->life.wanted = true;
    m.item->life.contender = &place;
    judged = CODE_NOTHING;
    dv_take_judge(&m.p, &m.view, NOW);
    member_end(&m);
    return judged;
}

bool code_is_ready(bool wanted, bool has_place) {
    member m;
    struct dv_contender place = {1, 1};
    member_begin(&m, NULL);
    m.item->life.wanted = wanted;
    if (has_place) m.item->life.contender = &place;
    is_behind = has_place;
    bool ready = dv_take_lists(m.item);
    member_end(&m);
    return ready;
}
