/* Waiting until items are where an operator's request wants them, in rounds too. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_OPERATOR_WAIT_H
#define DV_OPERATOR_WAIT_H

#include "held_wait.h"
#include "operator.h"

typedef struct {
    const dv_operator_options *options;
    dv_look *look;
    dv_held_wait held;
    dv_plan *before;          /* the plan before the first request; NULL: none was noted */
    char *kept;               /* says which item of a request is kept for which absent member; NULL: none was noted */
    const dv_errand *weighed; /* whose member is to stay, with the weight that it gave; NULL: none */
    uint64_t checked;         /* generation of the plan that has no further round, and whose moves are waited for */
    char by[DV_OPERATOR_BY_BYTES];
} dv_operator_wait;

/* 0 or DIVVY_ENOMEM; dv_operator_wait_free() in each case, after dv_look_close(). */
int dv_operator_wait_init(dv_operator_wait *wait, dv_look *look, const dv_operator_options *options);
void dv_operator_wait_free(dv_operator_wait *wait);
/* Adds the items that an errand is about, and all that it has moved. 0 or DIVVY_ENOMEM. */
int dv_operator_wait_note(dv_operator_wait *wait, const dv_errand *errand);
/* Waits, unless an item of a request is kept for an absent member, which may come late, or never. `again` asks for what
 * is so already, to see whether the plan has further rounds. Returns the exit code. */
int dv_operator_wait_run(dv_operator_wait *wait, const dv_ask *again);

/* Looks whether a later plan has the weight that an errand gave to its member. Returns 0, or the exit code when it was
 * told that somebody has given another. A lagging server may show an older plan, which says nothing. */
int dv_operator_check_weight(const dv_errand *errand, const dv_plan *plan);

#endif
