/* One step of a small plan, in numbers. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_CASES_STEP_CODE_H
#define DV_CASES_STEP_CODE_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Three members of the plan, and two that may come. Member i is the node "n<i>"; a static one has the identifier
 * "s<i>". There are three items. */
enum { STEP_IN_PLAN = 3, STEP_MEMBERS = 5, STEP_ITEMS = 3, STEP_NOBODY = 255, STEP_PZXID = 100 };

typedef struct {
    bool is_static, is_there;
    uint32_t slot, weight, configured;
    int64_t absent, rejoin_delay_ms;
    bool leaves, by_other_node; /* the mark is of its node, or of one before */
} step_member;

typedef struct {
    step_member members[STEP_MEMBERS]; /* is_there: in the plan */
    uint8_t owners[STEP_ITEMS];        /* a member, or STEP_NOBODY */
    uint8_t moved;                     /* a bit for each item */
    uint32_t max_moves;
} step_plan;

typedef struct {
    bool lives[STEP_MEMBERS]; /* its node is there */
    uint32_t says_weight[STEP_MEMBERS];
} step_party;

typedef struct {
    int expired, weighed, leaving; /* a member, or -1 */
    uint32_t weight;               /* of the one that is weighed */
    bool round_over;
} step_events;

void step_begin(void);
void step_end(void);
/* Returns whether there is a next plan, and fills it in. Asserts that the step has nothing to do in its own result. */
bool step_of(const step_plan *plan, const step_party *party, const step_events *events, step_plan *next);

#ifdef __cplusplus
}
#endif

#endif
