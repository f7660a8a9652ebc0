/* The pools that divvy serve follows: those it was given, and those it finds. SPDX-License-Identifier: Apache-2.0
 *
 * The main thread's business alone. A pool keeps its number and its place in memory as long as divvy serve runs, also
 * when it goes: others know it by them. */
#ifndef DV_SERVE_POOLS_H
#define DV_SERVE_POOLS_H

#include "serve.h"
#include "serve_find.h"
#include "serve_follow.h"

typedef struct {
    dv_serve *serve;
    dv_look *look;
    dv_serve_follower *followers;                     /* one of each pool; room for DV_SERVE_POOLS_MAX */
    dv_serve_found found;                             /* by the last search */
    int64_t due_ms;                                   /* when to search again */
    size_t start;                                     /* which is looked at first, of as many as there are */
    bool told_more, told_denied, told_wide, told_cut; /* of what is not shown */
    bool read_any;                                    /* something was read, at least once: it is worth going on */
} dv_serve_pools;

/* Makes room, and takes the pools that were given. 0 or DIVVY_ENOMEM. `serve` and `look` outlive it, but for
 * dv_serve_pools_free(). */
int dv_serve_pools_init(dv_serve_pools *pools, dv_serve *serve, dv_look *look);
/* After dv_look_close(). */
void dv_serve_pools_free(dv_serve_pools *pools);

/* Searches, if it is time, and looks at each pool; tells pages what has changed. A pool that alone cannot be read does
 * not hold up the others. Returns 0, or the error of servers that do not answer, or of all pools. */
int dv_serve_pools_look(dv_serve_pools *pools);

#endif
