/* See handover_stubs.h. SPDX-License-Identifier: Apache-2.0 */
#include "cases/handover_stubs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cases/check.h"

stub_calls stubs;
dv_plan_set *stub_set, *stub_other_set;

/* ---- what give.c and take.c call ---- */

bool dv_handover_can(const divvy_partitioner *p) {
    (void)p;
    return !stubs.cannot_hand_over;
}
bool dv_handover_may_write(const struct dv_handover *h) {
    (void)h;
    return !stubs.may_not_write;
}
void dv_handover_changed(divvy_partitioner *p) {
    (void)p;
    stubs.changed = true;
}
void dv_handover_note_differs(divvy_partitioner *p) {
    (void)p;
    stubs.differs = true;
}
void dv_handover_is_ready(divvy_partitioner *p, int64_t now) {
    (void)p;
    (void)now;
    stubs.is_ready = true;
}
/* The moves of P18 that handovers make. */
void dv_item_move(dv_item *item, dv_item_move_kind kind, int64_t now) {
    static const struct {
        uint8_t from, to;
    } moves[DV_MOVES] = {
        [DV_MOVE_PREPARE] = {1 << DV_STAGE_HIDDEN, DV_STAGE_PREPARING},
        [DV_MOVE_CALL_OFF] = {1 << DV_STAGE_PREPARING, DV_STAGE_HIDDEN},
        [DV_MOVE_KEEP] = {1 << DV_STAGE_SHOWN, DV_STAGE_KEPT},
        [DV_MOVE_ANNOUNCE] = {1 << DV_STAGE_KEPT, DV_STAGE_LEAVING},
        [DV_MOVE_RETRACT] = {1 << DV_STAGE_LEAVING, DV_STAGE_KEPT},
        [DV_MOVE_STAY] = {1 << DV_STAGE_KEPT | 1 << DV_STAGE_LEAVING, DV_STAGE_SHOWN},
    };
    (void)now;
    CHECK(moves[kind].from >> item->life.stage & 1);
    item->life.stage = (dv_item_stage)moves[kind].to;
}
void dv_snapshot_changed(divvy_partitioner *p) {
    (void)p;
}
void dv_report_item(dv_item *item, int reason) {
    (void)item;
    (void)reason;
    stubs.reported = true;
}
void dv_report_flush(divvy_partitioner *p) {
    (void)p;
    stubs.flushed = true;
}
dv_note_view *dv_notes_want(dv_notes *notes, const char *node) {
    (void)node;
    return (dv_note_view *)(void *)notes; /* the only one */
}
const dv_note_view *dv_notes_first(const dv_notes *notes) {
    (void)notes;
    return stubs.views;
}
int64_t dv_own_note_written(const dv_own_note *own, int64_t *written_ms) {
    (void)own;
    *written_ms = stubs.own_ms;
    return stubs.own_zxid;
}
bool dv_contender_is_parked(const dv_contender *c) {
    return c->is_parked;
}
bool dv_contender_is_behind(const dv_contender *c) {
    return c->is_behind;
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
    stubs.takes = true;
}
void dv_contender_look(dv_contender *c) {
    (void)c;
    stubs.looks = true;
}

/* ---- a member with one item ---- */

void stubs_begin(void) {
    static const char *const names[] = {"i0", "i1"}, *const others[] = {"i0", "i2"};
    stub_set = dv_plan_set_make(names, 2);
    stub_other_set = dv_plan_set_make(others, 2);
    CHECK(stub_set != NULL && stub_other_set != NULL);
}

void stubs_end(void) {
    dv_plan_set_unref(stub_set);
    dv_plan_set_unref(stub_other_set);
}

void stub_read_note(dv_note_view *view, const stub_note *n) {
    static uint32_t one[] = {1};
    const dv_plan_set *set = n->of_other_set ? stub_other_set : stub_set;
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

void stub_member_begin(stub_member *m) {
    memset(m, 0, sizeof *m);
    memset(&stubs, 0, sizeof stubs);
    m->p.handover = &m->h;
    m->p.dealt = stub_set;
    m->p.target_valid = true;
    m->p.life = DV_LIFE_TAKING_PART;
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
}

void stub_member_end(stub_member *m) {
    dv_note_clear(&m->view.note);
    free(m->names);
    free(m->item);
}
