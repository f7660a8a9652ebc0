/* The outcome of an operator's request, once all rounds are over. SPDX-License-Identifier: Apache-2.0 */
#include "operator_rounds.h"

#include <stdio.h>
#include <string.h>

#include <divvy/divvy.h>

#include "pool/changes.h"

/* Rehearses with the party for which the errand made its plan. */
static int prepare(dv_rehearsal *r, const dv_errand *e) {
    const dv_plan_party *party = dv_roster_party(e->roster);
    int error = 0;
    r->plan = dv_plan_copy(e->result.after);
    if (!r->plan) return DIVVY_ENOMEM;
    r->plan->mzxid = 0;
    r->pzxid = r->plan->header.pzxid;
    if (!*r->plan->header.guid) snprintf(r->plan->header.guid, sizeof r->plan->header.guid, "next");
    for (size_t n = 0; !error && n < party->count; n++) error = dv_rehearsal_add(r, &party->nodes[n]);
    return error;
}

int dv_outcome_make(dv_outcome *out, const dv_errand *e) {
    const dv_errand_result *r = &e->result;
    *out = (dv_outcome){.plan = r->after, .rounds = dv_changes_count(r->before, r->after) > 0};
    if (r->after->header.options.max_moves == 0 || !e->roster || !e->has_facts) return 0;
    int error = prepare(&out->rehearsal, e);
    if (!error) error = dv_rehearsal_run(&out->rehearsal);
    if (error == DIVVY_ENOMEM) return error;
    if (error || out->rehearsal.rounds == 0) return 0; /* The first round is told where no more can be foreseen. */
    out->plan = out->rehearsal.plan;
    out->rounds += out->rehearsal.rounds;
    return 0;
}

void dv_outcome_clear(dv_outcome *outcome) {
    dv_rehearsal_free(&outcome->rehearsal);
    *outcome = (dv_outcome){.plan = NULL};
}

bool dv_outcome_has_rounds(const dv_outcome *outcome, const dv_errand *errand) {
    return outcome->plan != errand->result.after;
}
