/* Deletes the chunks that no plan still needs. SPDX-License-Identifier: Apache-2.0
 *
 * docs/protocol.md, D30. Only for who has just written the plan that stands there. */
#ifndef DV_PLAN_GARBAGE_H
#define DV_PLAN_GARBAGE_H

#include "client/client.h"
#include "plan/text.h"

typedef struct dv_plan_garbage dv_plan_garbage;

typedef void (*dv_plan_garbage_fn)(void *context, int64_t now);

/* Begins. Keeps the chunks that `root` names and those of later generations. `path` (P/plan) and `root`, which may
 * become a later one, live until `done`; `version` is that of the node that has this root. `done` is called once, from
 * the loop, when nothing is left to do, or something stood in the way: then it is left to the next writer. Afterwards
 * it is to be freed. Returns NULL when it could not begin; there will be no `done`. */
dv_plan_garbage *dv_plan_garbage_collect(divvy_client *client, const char *path, const dv_plan_root *root,
                                         int32_t version, dv_plan_garbage_fn done, void *context);
/* `done` follows as soon as what is under way is answered. */
void dv_plan_garbage_stop(dv_plan_garbage *garbage);
void dv_plan_garbage_free(dv_plan_garbage *garbage);

#endif
