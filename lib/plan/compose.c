/* The plan that is to be written next, from what is remembered of P/plan. SPDX-License-Identifier: Apache-2.0
 *
 * docs/protocol.md, D26. */
#include "plan/compose.h"

#include <string.h>

#include "divvy/error.h"

/* The plan as it is, since nothing has to be changed but what stands at P/plan. */
static int repeat(dv_plan **next, const dv_plan *previous, const dv_plan_party *party) {
    *next = dv_plan_copy(previous);
    if (*next == NULL) return DIVVY_ENOMEM;
    dv_plan_header *header = &(*next)->header;
    header->generation++;
    memcpy(header->after, previous->header.guid, sizeof header->after);
    header->reason = DV_PLAN_CREATE;
    header->pzxid = party->pzxid;
    (*next)->mzxid = 0;
    return DV_PLAN_NEXT;
}

int dv_plan_compose(dv_plan **next, const dv_plan_memory *memory, const dv_plan_party *party,
                    const dv_plan_events *events) {
    int result = dv_plan_step(next, memory->plan, party, events);
    bool stands = memory->standing == DV_PLAN_GOOD;
    bool says_something = memory->plan != NULL && memory->plan->header.generation > 0;
    return result == DV_PLAN_NOTHING && !stands && says_something ? repeat(next, memory->plan, party) : result;
}
