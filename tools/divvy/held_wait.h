/* Waiting until items are held by those whom the plan gives them to. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_HELD_WAIT_H
#define DV_HELD_WAIT_H

#include "pool_plan.h"

typedef struct {
    dv_look *look;
    char *party_path, *locks; /* at the servers */
    dv_pool_plan plan;        /* as it was read last */

    char **nodes; /* of the party, likewise */
    size_t node_count;

    char **items; /* that are not where they are wanted yet */
    size_t item_count, item_room;

    /* With a member: its item is where it is wanted once another member holds it. `lets_go`: or nobody does. */
    const char *away_from; /* its key; NULL: of none */
    bool is_static, lets_go;
} dv_held_wait;

/* `path` is the pool's, as it was given. 0 or DIVVY_ENOMEM; dv_held_wait_free() in each case, after dv_look_close(). */
int dv_held_wait_init(dv_held_wait *wait, dv_look *look, const char *path);
void dv_held_wait_free(dv_held_wait *wait);
/* Adds an item to wait for. 0 or DIVVY_ENOMEM. */
int dv_held_wait_add(dv_held_wait *wait, const char *item);
/* For dv_look_at(): reads plan, party, and the queues of the items that are left. An item that is no longer dealt is
 * nobody's, and waited for no longer. Nothing is judged while the plan is not good, which comes back. */
int dv_held_wait_look(dv_look *look, void *wait);
/* Returns whether the last look was of a plan, and no item is left. */
bool dv_held_wait_known(const dv_held_wait *wait);

#endif
