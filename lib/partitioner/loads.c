/* The loads of our items: told by the user, smoothed. SPDX-License-Identifier: Apache-2.0
 *
 * docs/protocol.md, D46. */
#include <stdlib.h>

#include "partitioner/partitioner.h"

int dv_own_loads_set(dv_item *item, double load, int64_t now) {
    const divvy_partitioner *p = item->partitioner;
    if (p->state == DIVVY_FAILURE || !dv_item_owned(item)) return 0;
    if (!item->load) item->load = calloc(1, sizeof *item->load);
    if (!item->load) return DIVVY_ENOMEM;
    dv_load_meter_take(item->load, load, item->life.token, now);
    return 0;
}
