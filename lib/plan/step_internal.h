/* The step, as its files share it. SPDX-License-Identifier: Apache-2.0
 *
 * step.c: who is there, options and items. step_wishes.c: what an operator asks for. step_deal.c: who gets what. */
#ifndef DV_STEP_INTERNAL_H
#define DV_STEP_INTERNAL_H

#include "plan/step.h"

typedef struct {
    const dv_plan *previous; /* NULL: none that says anything */
    const dv_plan_party *party;
    const dv_plan_events *events;
    dv_plan_claims claims;
    dv_plan *next;
    bool is_late;     /* the wish of the events did not come: its member has gone (D48) */
    uint32_t reasons; /* a bit for each that has come up; the first of them is told. 0: members, options, tag and set
                         are as before */
} dv_step;

static inline void dv_step_note(dv_step *s, dv_plan_reason reason) {
    s->reasons |= UINT32_C(1) << reason;
}

/* Returns whether a member has items of a deal. */
static inline bool dv_step_takes_part(const dv_plan_member *m, bool absent_too) {
    return m->leaving[0] == '\0' && (absent_too || m->absent == 0);
}

/* ---- step_wishes.c: each returns 0 or DIVVY_ENOMEM, _take also DIVVY_ELIMIT ---- */

/* D48: takes over the wishes of the events, and ends what has ended. */
int dv_step_take_wishes(dv_step *s);
/* D48: settles whether loads, wishes, tags and caps are in force. */
void dv_step_choose_algorithm(dv_step *s);
/* Returns whether the plan has loads, wishes, tags or caps. */
bool dv_step_needs_balance(const dv_plan *plan);

/* The items that are out of the deal's hands. */
typedef enum {
    DV_ITEM_DEALT,
    DV_ITEM_PINNED, /* it is where an operator wants it */
    DV_ITEM_PAUSED  /* nobody is to have it */
} dv_item_hold;

/* D48: gives items that are pinned or moved to their members, and takes those that are paused from theirs. `holds` has
 * a place for each item. */
void dv_step_place(dv_plan *plan, uint8_t *holds);

/* Tells what the step did, cut to whole characters, with `?` for bytes that are no text. */
void dv_step_tell(dv_plan *plan, const char *text);

/* ---- step_deal.c ---- */

/* A member that is gone or leaves owns nothing. */
void dv_step_orphan_items(dv_plan *plan);
/* D18: gives items new owners where it must; while the plan lists moved items, only those that have none. D50: takes
 * over the loads of the events, if that is worth a plan. Returns 0 or DIVVY_ENOMEM. */
int dv_step_deal(dv_step *s);
/* Gives the classes of items that the plan keeps to their places in another set. Returns 0 or DIVVY_ENOMEM. */
int dv_step_replace_loads(dv_plan *plan, const dv_plan_set *set);

#endif
