/* The outcome of an operator's request, once all rounds are over. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_OPERATOR_ROUNDS_H
#define DV_OPERATOR_ROUNDS_H

#include "pool/errand.h"
#include "rehearsal.h"

typedef struct {
    const dv_plan *plan; /* the last one: the errand's own, or one of `rehearsal` */
    size_t rounds;       /* in which items get another owner, the errand's own among them */
    dv_rehearsal rehearsal;
} dv_outcome;

/* Carries the plan of an errand that ended well to where its rounds lead. The errand outlives *out. Returns 0 or
 * DIVVY_ENOMEM; dv_outcome_clear() in each case. */
int dv_outcome_make(dv_outcome *out, const dv_errand *errand);
void dv_outcome_clear(dv_outcome *outcome);
/* Returns whether further rounds follow the errand's own plan. */
bool dv_outcome_has_rounds(const dv_outcome *outcome, const dv_errand *errand);

#endif
