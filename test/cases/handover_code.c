/* See handover_code.h. SPDX-License-Identifier: Apache-2.0 */
#include "cases/handover_code.h"

#include <stdio.h>
#include <stdlib.h>

#include "cases/check.h"
#include "cases/handover_stubs.h"

enum { NOW = STUB_NOW, TIMEOUT_MS = 30000, PREPARE_MS = 5000, LONG_AGO = 100000 };

void code_begin(void) {
    stubs_begin();
}

void code_end(void) {
    stubs_end();
}

static void member_begin(stub_member *m, const code_note *n) {
    stub_member_begin(m);
    m->p.config.handover_timeout_ms = TIMEOUT_MS;
    m->p.config.prepare_timeout_ms = PREPARE_MS;
    if (n == NULL) return;
    const stub_note says = {false, n->leaving, n->ready, n->given_at, n->given_to};
    m->view.standing = !n->is_read ? DV_NOTE_UNREAD : n->is_there ? DV_NOTE_THERE : DV_NOTE_ABSENT;
    m->view.mzxid = n->mzxid;
    if (m->view.standing == DV_NOTE_THERE) stub_read_note(&m->view, &says);
}

/* ---- the decisions ---- */

static void begin_to_give(stub_member *m, const code_note *next, bool wanted, bool was_there) {
    member_begin(m, next);
    m->item->life.is_first = true;
    m->item->life.stage = DV_STAGE_SHOWN;
    m->view.was_there = was_there;
    dv_give_to(m->item, "b", false, NOW);
    m->item->life.wanted = wanted; /* by a later plan */
}

code_giving code_give(const code_note *next, bool wanted, bool overdue, bool blocked, bool was_there) {
    stub_member m;
    dv_departure departure;
    int64_t now = overdue ? NOW + TIMEOUT_MS : NOW + TIMEOUT_MS - 1;
    begin_to_give(&m, next, wanted, was_there);
    if (blocked) m.h.waiting = &departure;
    dv_give_update(&m.p, now);
    code_giving giving = {.keeps = dv_item_kept(m.item), .lists_it = dv_give_lists(m.item)};
    giving.revokes = dv_item_owned(m.item) && !m.item->life.wanted && !giving.keeps;
    CHECK(giving.keeps == (dv_give_due(&m.p) != INT64_MAX));
    stub_member_end(&m);
    return giving;
}

bool code_release(const code_note *next, bool wanted, bool overdue, bool was_there, int64_t *seen) {
    stub_member m;
    begin_to_give(&m, next, wanted, was_there);
    m.item->life.stage = DV_STAGE_REVOKED;
    bool keeps = wanted || dv_give_keeps(m.item, overdue ? NOW + TIMEOUT_MS : NOW + TIMEOUT_MS - 1);
    *seen = keeps ? 0 : dv_give_seen(m.item);
    stub_member_end(&m);
    return keeps;
}

bool code_enter(const code_note *owner, bool is_prepared, bool waited, bool *parks) {
    stub_member m;
    member_begin(&m, owner);
    dv_take_expect(m.item, owner != NULL ? "a" : dv_nobody, NOW);
    CHECK((m.item->take.owner != NULL) == (owner != NULL));
    m.item->life.wanted = true;
    m.item->life.stage = DV_STAGE_PREPARING;
    m.item->take.prepare_due = NOW + PREPARE_MS;
    if (is_prepared) dv_take_prepared(&m.p, m.item);
    bool may = dv_take_may_enter(m.item, waited ? NOW + LONG_AGO : NOW);
    *parks = dv_take_is_awaited(m.item);
    stub_member_end(&m);
    return may;
}

code_judgement code_judge(const code_note *owner, int32_t number, int64_t czxid) {
    stub_member m;
    struct dv_contender place = {number, czxid, true, false};
    member_begin(&m, owner);
    dv_take_expect(m.item, "a", NOW);
    m.item->life.wanted = true;
    m.item->life.contender = &place;
    dv_take_judge(&m.p, &m.view, NOW);
    stub_member_end(&m);
    return stubs.takes ? CODE_TAKES : stubs.looks ? CODE_LISTS : CODE_NOTHING;
}

bool code_is_ready(bool wanted, bool has_place) {
    stub_member m;
    struct dv_contender place = {1, 1, has_place, has_place};
    member_begin(&m, NULL);
    m.item->life.wanted = wanted;
    if (has_place) m.item->life.contender = &place;
    bool ready = dv_take_lists(m.item);
    stub_member_end(&m);
    return ready;
}
