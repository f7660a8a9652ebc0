/* The life of an item: the table of docs/protocol.md, P18. SPDX-License-Identifier: Apache-2.0 */
#include "partitioner/item.h"

#include <assert.h>

#include "partitioner/partitioner.h"

/* ---- the table ---- */

#define PLACE(name) (1u << DV_PLACE_##name)
#define STAGE(name) (1u << DV_STAGE_##name)
#define IN_QUEUE (PLACE(ASKED) | PLACE(WAITING) | PLACE(PARKED))
#define NOT_SHOWN (STAGE(HIDDEN) | STAGE(PREPARING))
#define OWNED (STAGE(SHOWN) | STAGE(KEPT) | STAGE(LEAVING))
enum { SAME = DV_ITEM_SAME };

const dv_item_row dv_item_rows[DV_MOVES] = {
    [DV_MOVE_ASK] = {PLACE(NONE) | PLACE(LEAVING), DV_PLACE_ASKED, NOT_SHOWN, SAME},
    [DV_MOVE_WIN] = {IN_QUEUE, DV_PLACE_FIRST, NOT_SHOWN, SAME},
    [DV_MOVE_LEAVE] = {IN_QUEUE | PLACE(FIRST), DV_PLACE_LEAVING, NOT_SHOWN, SAME},
    [DV_MOVE_PREPARE] = {~0u, SAME, STAGE(HIDDEN), DV_STAGE_PREPARING},
    [DV_MOVE_CALL_OFF] = {~0u, SAME, STAGE(PREPARING), DV_STAGE_HIDDEN},
    [DV_MOVE_SHOW] = {PLACE(FIRST), SAME, NOT_SHOWN, DV_STAGE_SHOWN},
    [DV_MOVE_KEEP] = {PLACE(FIRST), SAME, STAGE(SHOWN), DV_STAGE_KEPT},
    [DV_MOVE_ANNOUNCE] = {PLACE(FIRST), SAME, STAGE(KEPT), DV_STAGE_LEAVING},
    [DV_MOVE_RETRACT] = {PLACE(FIRST), SAME, STAGE(LEAVING), DV_STAGE_KEPT},
    [DV_MOVE_STAY] = {PLACE(FIRST), SAME, STAGE(KEPT) | STAGE(LEAVING), DV_STAGE_SHOWN},
    [DV_MOVE_REVOKE] = {PLACE(FIRST), SAME, OWNED, DV_STAGE_REVOKED},
    [DV_MOVE_RETURN] = {PLACE(FIRST), SAME, STAGE(REVOKED), DV_STAGE_SHOWN},
    [DV_MOVE_WAIT] = {PLACE(FIRST), SAME, STAGE(REVOKED), DV_STAGE_LEAVING},
    [DV_MOVE_RELEASE] = {PLACE(FIRST), DV_PLACE_LEAVING, STAGE(REVOKED), DV_STAGE_HIDDEN},
    [DV_MOVE_LOSE] = {PLACE(FIRST), DV_PLACE_LEAVING, OWNED | STAGE(REVOKED), DV_STAGE_HIDDEN},
    [DV_MOVE_HIDE] = {PLACE(FIRST), SAME, OWNED | STAGE(REVOKED), DV_STAGE_HIDDEN},
};

/* ---- the place ---- */

dv_item_place dv_item_place_of(const dv_item *item) {
    const dv_item_life *life = &item->life;
    if (!life->contender) return life->leaving ? DV_PLACE_LEAVING : DV_PLACE_NONE;
    if (life->is_first) return DV_PLACE_FIRST;
    if (!dv_contender_stands(life->contender)) return DV_PLACE_ASKED;
    return dv_contender_is_parked(life->contender) ? DV_PLACE_PARKED : DV_PLACE_WAITING;
}

static void set_first(dv_item *item, bool is_first) {
    dv_item_totals *totals = &item->partitioner->totals;
    if (item->life.is_first == is_first) return;
    item->life.is_first = is_first;
    if (item->life.wanted) totals->wanted_first += is_first ? 1 : (size_t)-1;
    assert(totals->wanted_first <= totals->wanted);
}

static void move_place(dv_item *item, dv_item_place to) {
    if (to == DV_PLACE_ASKED) return; /* The contender is there. */
    set_first(item, to == DV_PLACE_FIRST);
    if (to == DV_PLACE_FIRST) return;
    item->life.contender = NULL;
    if (to == DV_PLACE_LEAVING) {
        item->life.leaving++;
        item->partitioner->totals.leaving++;
    }
    dv_items_prune(item);
}

void dv_item_left(dv_item *item) {
    dv_item_totals *totals = &item->partitioner->totals;
    assert(item->life.leaving > 0 && totals->leaving > 0);
    item->life.leaving--;
    totals->leaving--;
}

/* ---- the stage ---- */

static void become_shown(dv_item *item, int64_t now) {
    item->life.token = dv_contender_token(item->life.contender); /* C7: the czxid of the place fences */
    assert(item->life.token > 0);
    item->partitioner->totals.shown++;
    dv_metrics_item(item, now);
}

static void become_hidden(dv_item *item, int64_t now) {
    assert(item->partitioner->totals.shown > 0);
    item->partitioner->totals.shown--;
    dv_metrics_item_disowned(item, now);
    dv_metrics_item(item, now);
    dv_items_prune(item);
}

static void move_stage(dv_item *item, dv_item_stage to, int64_t now) {
    bool was_shown = dv_item_shown(item), was_owned = dv_item_owned(item);
    item->life.stage = to;
    if (dv_item_shown(item) && !was_shown) become_shown(item, now);
    else if (!dv_item_shown(item) && was_shown) become_hidden(item, now);
    else if (to == DV_STAGE_REVOKED) dv_metrics_item_disowned(item, now);
    else if (was_shown && !was_owned) dv_metrics_item_freed(item, now);
    if (dv_item_owned(item) != was_owned) dv_items_note_owned(item);
}

/* ---- moves ---- */

bool dv_item_can_be(dv_item_place place, dv_item_stage stage) {
    return stage < DV_STAGE_SHOWN || place == DV_PLACE_FIRST;
}

static void move(dv_item *item, const dv_item_row *r, int64_t now) {
    if (r->place != SAME) move_place(item, (dv_item_place)r->place);
    if (r->stage != SAME) move_stage(item, (dv_item_stage)r->stage, now);
    assert(dv_item_can_be(dv_item_place_of(item), item->life.stage));
    assert(item->life.contender || !item->life.is_first);
}

void dv_item_move(dv_item *item, dv_item_move_kind kind, int64_t now) {
    const dv_item_row *r = &dv_item_rows[kind];
    assert(kind != DV_MOVE_ASK && r->places & 1u << dv_item_place_of(item) && r->stages & 1u << item->life.stage);
    move(item, r, now);
}

void dv_item_ask(dv_item *item, dv_contender *contender, int64_t now) {
    const dv_item_row *r = &dv_item_rows[DV_MOVE_ASK];
    assert(contender && item->life.wanted);
    assert(r->places & 1u << dv_item_place_of(item) && r->stages & 1u << item->life.stage);
    item->life.contender = contender;
    move(item, r, now);
}

bool dv_item_want(dv_item *item, bool wanted, int64_t now) {
    dv_item_totals *totals = &item->partitioner->totals;
    if (item->life.wanted == wanted) return false;
    item->life.wanted = wanted;
    dv_metrics_item(item, now);
    totals->wanted += wanted ? 1 : (size_t)-1;
    if (item->life.is_first) totals->wanted_first += wanted ? 1 : (size_t)-1;
    assert(totals->wanted_first <= totals->wanted);
    if (!wanted) dv_items_prune(item);
    return true;
}
