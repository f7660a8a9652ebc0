/* Metrics: what a client and the objects on it have done, and have now. SPDX-License-Identifier: Apache-2.0
 *
 * The client counts for locks, semaphores and registries, since these come and go and a counter must not fall; a
 * partitioner counts for itself. docs/operations.md says what each means. With the client lock held. */
#ifndef DV_METRICS_H
#define DV_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/histogram.h"
#include "base/openmetrics.h"
#include "divvy/metrics.h"
#include "divvy/partitioner.h"

typedef enum {
    DV_RECIPE_LOCK,
    DV_RECIPE_READ_LOCK,
    DV_RECIPE_WRITE_LOCK,
    DV_RECIPE_SEMAPHORE,
    DV_RECIPE_ELECTION,
} dv_recipe;

enum {
    DV_RECIPES = DV_RECIPE_ELECTION + 1,
    DV_REASONS = DIVVY_REASON_LOAD + 1,
    DV_PARTITION_STATES = DIVVY_FAILURE + 1,
    DV_SESSION_STATES = DIVVY_CLOSED + 1,
};

/* All locks of one kind, or all semaphores. */
typedef struct {
    bool used;              /* there was one */
    uint64_t waiting, held; /* now */
    uint64_t failed, lost;  /* acquires that ended with nothing; what was held and was lost */
    dv_histogram waits, holds;
} dv_recipe_metrics;

/* The metrics that a client counts. */
typedef struct {
    uint64_t losses; /* sessions that ended before the client was closed */
    dv_recipe_metrics recipes[DV_RECIPES];
    bool registry_used;
    uint64_t skipped_entries;
} dv_client_metrics;

/* All partitioners of one path. */
typedef struct {
    char *path;
    uint64_t states[DV_PARTITION_STATES]; /* how many are in each, without those that have finished */
    uint64_t finished;
    uint64_t items, owned, leaving, revoked, waiting, preparing, unfit;
    uint64_t rebalances[DV_REASONS];
    dv_histogram durations, waits, unowned;
    uint64_t generation; /* of the plan; 0: none is followed */
    int64_t plan_age_ms;
} dv_pool_metrics;

/* A copy of all that there is to show, which needs no lock. */
typedef struct {
    int error; /* DIVVY_ENOMEM: it is not complete */
    divvy_session_state state;
    int64_t time_left_ms, timeout_ms;
    divvy_stats stats;
    dv_histogram round_trips;
    uint64_t put_off;                                                                  /* how often a request was */
    size_t ephemeral_bytes, ephemeral_limit_bytes, watched_bytes, watched_limit_bytes; /* of the budgets */
    dv_client_metrics counted;
    bool watched;                /* by a death watch */
    uint64_t announced, entries; /* of registries */
    dv_pool_metrics *pools;
    size_t pool_count, pool_room;
} dv_metrics;

typedef struct dv_metrics_source {
    struct dv_metrics_source *next, **link;
    void (*gather)(struct dv_metrics_source *source, dv_metrics *to, int64_t now); /* adds its own */
} dv_metrics_source;

void dv_metrics_source_add(divvy_client *client, dv_metrics_source *source);
/* Takes it out; does nothing if it was never added. */
void dv_metrics_source_remove(dv_metrics_source *source);
/* Returns the pool of that path, made where it is missing; NULL: an allocation failed, which metrics->error says. */
dv_pool_metrics *dv_metrics_pool(dv_metrics *metrics, const char *path);

/* Writes as divvy_metrics_write() does, in either format; `common` stands on each sample. NULL: none does. */
int dv_client_write_metrics(divvy_client *client, dv_metrics_format format, const dv_metric_label *common,
                            dv_metrics_write_fn write, void *user);

#endif
