/* Figures: what a client and the objects on it have done, and have now. SPDX-License-Identifier: Apache-2.0
 *
 * divvy_metrics_write() shows them (metrics.c). The client counts for locks, semaphores and registries, since these
 * come and go and a counter must not fall. A partitioner counts for itself, and is asked. docs/operations.md says what
 * each figure means. All of it is read and changed with the client lock held. */
#ifndef DV_FIGURES_H
#define DV_FIGURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/histogram.h"
#include "divvy/client.h"
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
    DV_REASONS = DIVVY_REASON_DRAIN + 1,
    DV_PARTITION_STATES = DIVVY_FAILURE + 1,
    DV_SESSION_STATES = DIVVY_CLOSED + 1,
};

/* All locks of one kind, or all semaphores. */
typedef struct {
    bool used;              /* there was one */
    uint64_t waiting, held; /* now */
    uint64_t failed, lost;  /* acquires that ended with nothing; what was held and was lost */
    dv_histogram waits, holds;
} dv_recipe_figures;

/* The figures that a client counts. */
typedef struct {
    uint64_t losses; /* sessions that ended before the client was closed */
    dv_recipe_figures recipes[DV_RECIPES];
    bool registry_used;
    uint64_t skipped_entries;
} dv_client_figures;

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
} dv_pool_figures;

/* A copy of all that there is to show, which needs no lock. */
typedef struct {
    int error; /* DIVVY_ENOMEM: it is not complete */
    divvy_session_state state;
    int64_t time_left_ms, timeout_ms;
    divvy_stats stats;
    dv_histogram round_trips;
    uint64_t put_off;                                                                  /* how often a request was */
    size_t ephemeral_bytes, ephemeral_limit_bytes, watched_bytes, watched_limit_bytes; /* of the budgets */
    dv_client_figures counted;
    uint64_t announced, entries; /* of registries */
    dv_pool_figures *pools;
    size_t pool_count, pool_room;
} dv_figures;

/* An object that has figures. */
typedef struct dv_figure_source {
    struct dv_figure_source *next, **link;
    void (*gather)(struct dv_figure_source *source, dv_figures *to, int64_t now); /* adds its own */
} dv_figure_source;

void dv_client_figures_init(dv_client_figures *figures);
void dv_figure_source_add(divvy_client *client, dv_figure_source *source);
/* Takes it out; does nothing if it was never added. */
void dv_figure_source_remove(divvy_client *client, dv_figure_source *source);

/* Copies all figures of the client. Returns 0 or DIVVY_ENOMEM; dv_figures_clear() follows in any case. */
int dv_figures_gather(dv_figures *figures, divvy_client *client);
void dv_figures_clear(dv_figures *figures);
/* Returns the pool of that path, made where it is missing; NULL: an allocation failed, which figures->error says. */
dv_pool_figures *dv_figures_pool(dv_figures *figures, const char *path);

#endif
