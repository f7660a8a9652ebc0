/* The claims of a party's nodes to the members of a plan. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_PLAN_CLAIMS_H
#define DV_PLAN_CLAIMS_H

#include "plan/step.h"

/* A live node and the key that it stands for. */
typedef struct {
    bool is_static;
    const char *key;
    const dv_plan_node *node;
    bool taken; /* by a member that the plan has already */
} dv_plan_claim;

typedef struct {
    dv_plan_claim *claims; /* by key, each key once */
    size_t count;
    bool asks; /* nodes have to be read first; then the claims are good for nothing */
} dv_plan_claims;

/* Marks in `asks`, where it is not NULL, each node that has to be read. Returns 0 or DIVVY_ENOMEM. To be freed with
 * free(claims->claims). */
int dv_plan_claims_make(dv_plan_claims *out, const dv_plan *previous, const dv_plan_party *party, bool *asks);
dv_plan_claim *dv_plan_claims_find(const dv_plan_claims *claims, const dv_plan_member *member);

#endif
