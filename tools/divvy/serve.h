/* The state of divvy serve: the thread that reads ZooKeeper shares it with the one that answers.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_SERVE_H
#define DV_SERVE_H

#include <pthread.h>

#include "locks_read.h"
#include "serve_desk.h"
#include "serve_options.h"
#include "serve_pool.h"
#include "serve_stream.h"
#include "services_read.h"

typedef struct dv_serve {
    const dv_serve_options *options;
    pthread_mutex_t lock; /* of all that follows; the main thread alone changes it */
    dv_serve_pool *pools; /* room for DV_SERVE_POOLS_MAX; a pool keeps its number, and none goes */
    size_t pool_count;
    size_t more_pools; /* that were found, and for which there is no room */
    dv_locks locks;
    dv_services services;
    int64_t started_ms;  /* by the wall clock */
    const char *trouble; /* why the last look failed; NULL: it did not */
    uint64_t looks, failed_looks, reads;
    dv_serve_stream *stream;
    dv_serve_desk *desk;
} dv_serve;

/* Serves until a signal comes. Returns the exit code. */
int dv_serve_run(const dv_serve_options *options);

#endif
