/* See facts_code.h. SPDX-License-Identifier: Apache-2.0 */
#include "cases/facts_code.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cases/check.h"
#include "cases/handover_stubs.h"

enum { NOW = STUB_NOW, PLAN_MZXID = 100, NEW_MZXID = 150, PREPARE_DUE_MS = 700 };

void facts_begin(void) {
    stubs_begin();
}

void facts_end(void) {
    stubs_end();
}

static void set_note(dv_note_view *view, uint8_t kind, int64_t mzxid) {
    const stub_note says = {kind == OTHER_SET, kind != SILENT, kind != SILENT, 0, 0};
    view->standing = kind == UNREAD ? DV_NOTE_UNREAD : kind == GONE || kind == NEVER ? DV_NOTE_ABSENT : DV_NOTE_THERE;
    view->was_there = kind == GONE;
    view->mzxid = mzxid;
    if (view->standing == DV_NOTE_THERE) stub_read_note(view, &says);
}

/* ---- what is given ---- */

static void begin_to_give(stub_member *m, const give_facts *f) {
    stub_member_begin(m);
    dv_item *item = m->item;
    m->p.config.handover_timeout_ms = f->timeout_ms;
    m->p.target_valid = !f->no_target;
    m->p.kazoo_seen = f->kazoo;
    m->p.withdrawn = f->withdrawn;
    stubs.cannot_hand_over = f->cannot;
    stubs.may_not_write = f->no_room;
    item->life.stage = (dv_item_stage)f->stage;
    item->life.is_first = f->stage >= SHOWN;
    item->life.wanted = f->wanted;
    item->dealt = !f->not_dealt;
    item->plain = !f->encoded;
    item->noted.marks = f->listed ? DV_NOTE_LEAVING : 0;
    if (f->next != NOBODY) {
        set_note(&m->view, f->next, FACT_MZXID);
        item->give.next = &m->view;
    }
    item->give.since = NOW - f->age_ms;
    item->give.next_awaited = f->awaited;
}

give_answer facts_give(const give_facts *f) {
    stub_member m;
    dv_departure departure;
    dv_note_departures write;
    begin_to_give(&m, f);
    if (f->departs) m.h.waiting = &departure;
    if (f->writes) m.h.writes = &write;
    give_answer a = {.keeps = dv_give_keeps(m.item, NOW), .lists = dv_give_lists(m.item), .seen = dv_give_seen(m.item)};
    dv_give_update(&m.p, NOW);
    int64_t due = dv_give_due(&m.p);
    a.stage = (uint8_t)m.item->life.stage;
    a.differs = stubs.differs;
    a.told = stubs.reported;
    a.due_ms = due == INT64_MAX ? FACT_NOTHING_DUE : due == 0 ? 0 : due - (NOW - f->age_ms);
    stub_member_end(&m);
    return a;
}

plan_answer facts_plan(const plan_facts *f) {
    stub_member m;
    dv_note_view before;
    stub_member_begin(&m);
    m.item->life.stage = (dv_item_stage)f->stage;
    if (f->had_since) m.item->give.since = NOW - 5;
    if (f->had_next) m.item->give.next = &before;
    dv_give_to(m.item, f->owner == 0 ? NULL : f->owner == 1 ? dv_nobody : "b", f->is_older, NOW);
    const dv_item_give *give = &m.item->give;
    bool is_right = give->next == NULL || give->next == (f->owner == 2 ? &m.view : &before);
    CHECK(is_right);
    plan_answer a = {give->next != NULL, give->next_awaited, give->since == 0 ? 0 : give->since == NOW ? 1 : 2};
    stub_member_end(&m);
    return a;
}

int64_t facts_ended_ms(const end_facts *f) {
    stub_member m;
    dv_departure departure;
    dv_note_departures write;
    dv_note_view views[2];
    static uint32_t one[] = {1};
    stub_member_begin(&m);
    memset(views, 0, sizeof views);
    if (!f->no_note) m.h.note = (dv_own_note *)(void *)&m;
    if (f->writes) m.h.writes = &write;
    if (f->departs) m.h.waiting = &departure;
    m.h.draft.given_count = f->has_given;
    m.item->noted.marks = f->listed ? DV_NOTE_LEAVING : 0;
    m.item->life.wanted = f->wanted;
    m.item->life.is_first = f->is_first;
    m.item->life.stage = (dv_item_stage)f->stage;
    stubs.own_zxid = f->own_written == 2 ? NEW_MZXID : f->own_written ? FACT_MZXID : 0;
    stubs.own_ms = f->own_failed ? -1 : 1000;
    for (int n = 0; n < 2; n++) {
        uint8_t kind = f->others[n];
        dv_note_view *v = &views[n];
        if (kind == 0) continue;
        v->next = (dv_note_view *)(uintptr_t)stubs.views;
        stubs.views = v;
        v->standing = kind & 8 ? DV_NOTE_ABSENT : DV_NOTE_THERE;
        v->mzxid = kind & 2 ? NEW_MZXID : FACT_MZXID;
        v->written_ms = 2000 + n;
        v->note.given_count = kind & 1;
        v->note.leaving_count = kind & 4 ? 1 : 0;
        v->note.leaving = one;
    }
    int64_t ended_ms = dv_give_ended_ms(&m.p, PLAN_MZXID);
    stub_member_end(&m);
    return ended_ms;
}

/* ---- what is taken ---- */

typedef struct {
    stub_member m;
    dv_note_view former, namesakes[2], *listed[2];
    struct dv_contender place;
} taking;

/* The plan is `age_ms` old. The user was told to prepare when it came, and has PREPARE_DUE_MS. */
static void begin_to_take(taking *t, const take_facts *f) {
    memset(t, 0, sizeof *t);
    stub_member_begin(&t->m);
    dv_item *item = t->m.item;
    divvy_partitioner *p = &t->m.p;
    int64_t mzxid = f->is_old ? FACT_MZXID : NEW_MZXID;
    t->m.h.plan_mzxid = PLAN_MZXID;
    stubs.cannot_hand_over = f->cannot;
    if (f->does_not_take_part) p->life = DV_LIFE_HANDING_OVER;
    p->config.prepare_timeout_ms = f->prepare_ms;
    p->config.mode = f->is_eager ? DIVVY_EAGER : DIVVY_INCREMENTAL;
    p->renews_nothing = f->renews_nothing;
    p->kazoo_seen = f->kazoo;
    p->nobody_came = f->nobody_came;
    item->dealt = !f->not_dealt;
    item->noted.marks = f->listed ? DV_NOTE_READY : 0;
    item->told.prepare = f->was_told;
    if (f->former != NOBODY) {
        set_note(&t->former, f->former, mzxid);
        t->m.h.others = (dv_notes *)(void *)&t->former;
    }
    for (int n = 0; n < 2; n++) {
        if (f->namesakes[n] == NOBODY) continue;
        set_note(&t->namesakes[n], f->namesakes[n], mzxid);
        t->listed[t->m.h.namesake_count++] = &t->namesakes[n];
    }
    t->m.h.namesakes = t->listed;
    if (!f->no_plan && !f->no_handover) dv_take_expect(item, f->former == NOBODY ? NULL : "a", NOW - f->age_ms);
    item->life.wanted = f->wanted;
    item->life.is_first = f->is_first;
    item->life.leaving = f->place_leaves;
    item->life.stage = (dv_item_stage)f->stage;
    if (f->stage == PREPARING) item->take.prepare_due = f->overdue ? NOW - 1 : NOW - f->age_ms + PREPARE_DUE_MS;
    if (f->prepared) dv_take_prepared(p, item);
    t->place.is_behind = f->is_behind;
    if (f->has_place) item->life.contender = &t->place;
    p->totals.wanted = 1;
    p->handover = f->no_handover ? NULL : &t->m.h;
}

take_answer facts_take(const take_facts *f) {
    taking t;
    begin_to_take(&t, f);
    dv_item *item = t.m.item;
    const dv_note_view *owner = item->take.owner;
    take_answer a = {
        .owner = owner == NULL              ? NOBODY
                 : owner == &t.former       ? f->former
                 : owner == &t.namesakes[0] ? f->namesakes[0]
                                            : f->namesakes[1],
        .may_enter = dv_take_may_enter(item, NOW),
        .awaited = dv_take_is_awaited(item),
        .from_nobody = dv_take_is_from_nobody(item),
        .lists = dv_take_lists(item),
    };
    int64_t due = dv_take_due(&t.m.p, NOW);
    a.has_due = due != INT64_MAX;
    a.due_ms = a.has_due ? due - (NOW - f->age_ms) : 0;
    dv_take_update(&t.m.p, NOW);
    a.stage = (uint8_t)item->life.stage;
    a.is_ready = stubs.is_ready;
    a.is_entering = t.m.h.is_entering;
    a.told = stubs.reported;
    a.flushed = stubs.flushed;
    a.forgets_prepared = f->prepared && !item->take.prepared;
    dv_note_clear(&t.former.note);
    for (int n = 0; n < 2; n++) dv_note_clear(&t.namesakes[n].note);
    stub_member_end(&t.m);
    return a;
}

told_answer facts_told(const told_facts *f) {
    stub_member m;
    struct dv_contender place = {0};
    stub_member_begin(&m);
    dv_item *item = m.item;
    item->life.wanted = f->wanted;
    item->life.is_first = f->is_first;
    item->life.contender = f->has_place ? &place : NULL;
    dv_take_expect(item, dv_nobody, STUB_NOW);
    told_answer a = {.learned = item->take.since != 0};
    if (f->is_preparing) item->life.stage = DV_STAGE_PREPARING;
    item->told.prepare = f->was_told;
    if (f->looks) dv_take_seen(&m.p);
    if (f->says_all) dv_take_prepared(&m.p, NULL);
    if (f->says) dv_take_prepared(&m.p, item);
    if (f->proven) dv_take_proven(&m.p);
    if (f->arrives) dv_take_arrived(item);
    a.prepared = item->take.prepared;
    a.told_again = stubs.reported;
    dv_take_forget(item);
    CHECK(item->take.owner == NULL && item->take.since == 0 && stubs.flushed == f->proven);
    stub_member_end(&m);
    return a;
}

/* ---- what a note says ---- */

static size_t list(uint32_t *items, uint8_t bits) {
    size_t count = 0;
    for (uint32_t i = 0; i < FACT_ITEMS; i++)
        if (bits >> i & 1) items[count++] = i;
    return count;
}

unsigned facts_note_says(const note_facts *f, unsigned *gives) {
    uint32_t leaving[FACT_ITEMS], ready[FACT_ITEMS];
    dv_note_given given[FACT_GIVEN];
    dv_note says = {.set_count = FACT_ITEMS, .leaving = leaving, .ready = ready, .given = given}, note;
    size_t printed[3];
    unsigned all = 0;
    says.leaving_count = list(leaving, f->leaving);
    says.ready_count = list(ready, f->ready);
    says.given_count = f->given_count;
    for (size_t n = 0; n < f->given_count; n++)
        given[n] = (dv_note_given){f->given_item[n], f->given_at[n], f->given_to[n]};
    char *text = dv_note_print(&says, &printed[0], &printed[1], &printed[2]);
    CHECK(text != NULL && dv_note_parse(&note, text, strlen(text), NULL) == 0);
    for (uint32_t i = 0; i < FACT_ITEMS; i++) {
        all |= (unsigned)dv_note_is_leaving(&note, i) << i;
        all |= (unsigned)dv_note_is_ready(&note, i) << (8 + i);
    }
    *gives = 0;
    for (int s = -1; s <= 3; s++)
        for (int c = 0; c <= 2; c++)
            if (dv_note_gives(&note, 1, s, c)) {
                CHECK(s >= 0);
                *gives |= 1u << (3 * s + c);
            }
    dv_note_clear(&note);
    free(text);
    return all;
}
