/* The history of a pool as JSON, for `divvy history` and for the page. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_HISTORY_JSON_H
#define DV_HISTORY_JSON_H

#include <cjson/cJSON.h>

#include "history_read.h"

enum { DV_HISTORY_BYTES = 1024 };

/* Returns NULL when an allocation fails. */
cJSON *dv_history_json(const dv_pool_history *h);

/* Returns whether there is nothing to tell: no pool, or no plan in it that can be followed. Then it writes why. */
bool dv_history_refuses(const dv_pool_history *h, char why[DV_HISTORY_BYTES]);

/* Tells the generations that nobody wrote down before change i; i == told.count: before the plan. Returns whether there
 * are some. What came before 64 changes is not missing. */
bool dv_history_hole(const dv_pool_history *h, size_t i, uint64_t *from, uint64_t *to);
/* Returns how one that left at that change died, or NULL. */
const dv_plan_death *dv_history_death(const dv_pool_history *h, const dv_plan_change *c, const char *name);

#endif
