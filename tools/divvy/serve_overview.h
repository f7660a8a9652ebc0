/* Many pools of divvy serve at once, and all members of one, as JSON. SPDX-License-Identifier: Apache-2.0
 *
 * With the lock of dv_serve held. */
#ifndef DV_SERVE_OVERVIEW_H
#define DV_SERVE_OVERVIEW_H

#include "table_json.h"

#include "serve.h"

enum { DV_SERVE_HEAT_MAX = 5000 };

/* Returns one word: "trouble" (it could not be read, as `trouble` says of all pools, or its own of it), "reading" (for
 * the first time), "absent" (there is no pool), "unowned" (some items are), "moving" (some items are), or "well". */
const char *dv_serve_pool_state(const dv_serve_pool *pool, const char *trouble);

/* Writes the numbers of all pools into `order`, which has room for them: the worst one first. */
void dv_serve_overview_order(const dv_serve *serve, size_t *order);
/* Adds a row; returns whether there was memory for it. */
bool dv_serve_overview_row(cJSON *array, const dv_serve *serve, size_t pool);

/* Returns all members of a pool in little room, as one line of JSON, malloc'ed; NULL when an allocation fails. */
char *dv_serve_show_heat(const dv_serve *serve, size_t pool);

#endif
