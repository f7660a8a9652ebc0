/* Deletes the chunks that no plan still needs. SPDX-License-Identifier: Apache-2.0
 *
 * docs/protocol.md, D30. Only for who has just written the plan that stands there. */
#ifndef DV_PLAN_GARBAGE_H
#define DV_PLAN_GARBAGE_H

#include "client/client.h"
#include "plan/text.h"

typedef struct dv_plan_garbage dv_plan_garbage;

typedef void (*dv_plan_garbage_fn)(void *context, int64_t now);

/* Keeps the chunks that `root` names and those of later generations. `root` is no longer needed afterwards, `path`
 * (P/plan) is until `done`. `version` is that of the node that has this root. Returns NULL when an allocation fails. */
dv_plan_garbage *dv_plan_garbage_new(divvy_client *client, const char *path, const dv_plan_root *root, int32_t version,
                                     dv_plan_garbage_fn done, void *context);
/* Begins. `done` is called once, from the loop, when nothing is left to do, or something stood in the way: then it is
 * left to the next writer. Afterwards it is to be freed. Returns whether it has begun; if not, there will be no
 * `done`. */
bool dv_plan_garbage_collect(dv_plan_garbage *garbage);
/* `done` follows as soon as what is under way is answered. */
void dv_plan_garbage_stop(dv_plan_garbage *garbage);
void dv_plan_garbage_free(dv_plan_garbage *garbage);

#endif
