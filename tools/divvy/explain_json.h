/* An item's explanation as JSON, for `divvy explain` and for the page. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_EXPLAIN_JSON_H
#define DV_EXPLAIN_JSON_H

#include <cjson/cJSON.h>

#include "explain_judge.h"

/* Returns NULL when an allocation fails. */
cJSON *dv_explain_json(const dv_explanation *e);

/* Returns whether there is nothing to explain: no pool, or no such item in it. Then it writes why. */
bool dv_explain_refuses(const dv_explanation *e, const char *item, char why[DV_EXPLAIN_BYTES]);

#endif
