/* The state of divvy serve, as JSON for its page. SPDX-License-Identifier: Apache-2.0
 *
 * Each returns one line, malloc'ed, or NULL when an allocation fails. With the lock of dv_serve held. */
#ifndef DV_SERVE_SHOW_H
#define DV_SERVE_SHOW_H

#include "serve.h"

enum { DV_SERVE_ROWS_MAX = 500 };

typedef enum {
    DV_SERVE_ITEMS,
    DV_SERVE_MEMBERS,
    DV_SERVE_TIMELINE,
    DV_SERVE_LOCKS,
    DV_SERVE_SERVICES,
    DV_SERVE_POOLS,
    DV_SERVE_HOLDUPS
} dv_serve_table;

/* A part of a table. */
typedef struct {
    dv_serve_table table;
    size_t pool;       /* of those that belong to one */
    const char *text;  /* rows that have it in a name; NULL: all */
    const char *exact; /* rows with that very name; NULL: all */
    const char *owner; /* items of that very owner; NULL: all */
    const char *state; /* items in that state; NULL: all */
    size_t offset, limit;
    bool newest;            /* items that changed last come first */
    int64_t from_ms, to_ms; /* events of that time */
    int64_t at_ms;          /* items as they were then; 0: as they are */
} dv_serve_query;

/* Returns the page's beginning: the pools and their metrics, without rows. */
char *dv_serve_show_state(const dv_serve *serve);
/* Returns how many items of a pool were where in that time. */
char *dv_serve_show_samples(const dv_serve *serve, size_t pool, int64_t from_ms, int64_t to_ms);
/* Returns the rows, how many match, and how many there are. */
char *dv_serve_show_rows(const dv_serve *serve, const dv_serve_query *query);
/* Returns the differences from what was told last: metrics, members, items, events since the event `told`. */
char *dv_serve_show_changes(const dv_serve *serve, size_t pool, const dv_serve_counts *before, uint64_t told);
/* Returns how many pools there are: a page that knows fewer asks for the state again. */
char *dv_serve_show_pools(const dv_serve *serve);
/* Returns the pool's state alone, as a change. */
char *dv_serve_show_pool_state(const dv_serve *serve, size_t pool);
/* Returns the counts of locks and of the registry, and whether the last look failed. */
char *dv_serve_show_rest(const dv_serve *serve);

#endif
