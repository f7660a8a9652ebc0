/* The items of a pool, and who is first in the queue of each. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_STATUS_ITEMS_H
#define DV_STATUS_ITEMS_H

#include "status_pool.h"

/* Fills in status->items but for who of the members owns them: `owner` is what the node says. `locks` is the directory
 * at the servers, `names` what is in it. 0 or a DIVVY_E*. */
int dv_status_items_read(dv_look *look, dv_status *status, const char *locks, char *const *names, size_t count);

void dv_status_item_free(dv_status_item *item);

#endif
