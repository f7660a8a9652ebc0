/* Following a pool with few reads. SPDX-License-Identifier: Apache-2.0
 *
 * A look asks first what has changed: the party, the plan and the directory of the queues by one `exists` each, and of
 * the items those that may have. A directory's pzxid says whether somebody came or went. Only where something did is
 * anything read, by the reader of divvy status. docs/architecture.md says which items are asked about, and why that is
 * enough. */
#ifndef DV_SERVE_FOLLOW_H
#define DV_SERVE_FOLLOW_H

#include <pthread.h>

#include "plan/deaths.h"
#include "serve_pool.h"

/* SWEPT: of all items of all pools, in turns, in one look. */
enum { DV_SERVE_SWEPT_MAX = 1000 };

typedef struct {
    dv_serve_pool *pool;
    pthread_mutex_t *lock; /* held while the pool is changed */
    dv_pool_plan plan;
    bool whole_wanted;
    int64_t whole_due_ms;                         /* when to read all of it again; 0: not by the time */
    size_t swept_max;                             /* a look asks about so many items that are where they should be */
    int64_t party_pzxid, locks_pzxid, plan_mzxid; /* as of the last read; 0: not there */
    int64_t deaths_mzxid;
    dv_plan_death last_death; /* that was read; at_ms 0: none */
    bool deaths_read;         /* at least once: what comes now is new */
    size_t swept, urged;      /* where the next look goes on asking, in the items' order */
    unsigned calm;            /* looks since party or plan changed */
    bool changed;             /* by the last look */
    uint64_t reads;           /* of items, from the start */
} dv_serve_follower;

/* 0 or DIVVY_ENOMEM. `pool`, `look` and `lock` outlive it. */
int dv_serve_follower_init(dv_serve_follower *follower, dv_serve_pool *pool, dv_look *look, pthread_mutex_t *lock);
/* After dv_look_close(). */
void dv_serve_follower_free(dv_serve_follower *follower);

/* For dv_look_at(): brings the pool of the dv_serve_follower at `context` up to date. */
int dv_serve_follow(dv_look *look, void *context);

#endif
