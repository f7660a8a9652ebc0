/* The options of `divvy partition`. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_PARTITION_OPTIONS_H
#define DV_PARTITION_OPTIONS_H

#include <stdint.h>

#include <divvy/divvy.h>

#include "connection.h"
#include "item_list.h"
#include "options.h"

/* The most sessions of a process. */
enum { DV_SESSIONS_MAX = 64 };

/* By what --balance measures loads. */
enum { DV_BALANCE_NONE, DV_BALANCE_CPU };

typedef struct {
    dv_session_options session;
    const char *path;
    const char *items_from, *items_command, *items_znode;
    int64_t items_interval_ms; /* of items_command */
    dv_texts items;
    const char *identifier; /* NULL: one is made up */
    int64_t sessions;       /* how many members the process has: 1 to DV_SESSIONS_MAX */
    int64_t time_boundary_ms;
    int64_t leave_boundary_ms;   /* -1: as time_boundary_ms */
    int64_t allocate_timeout_ms; /* 0: none */
    int mode;                    /* DIVVY_INCREMENTAL, DIVVY_EAGER */
    int assign;                  /* DIVVY_ASSIGN_* */
    int items_order;             /* DIVVY_ORDER_* */
    int64_t rejoin_delay_ms;     /* 0: no static member */
    int64_t weight;
    const char *zone;            /* NULL: none */
    int64_t max_moves;           /* 0: no limit */
    int64_t handover_timeout_ms; /* 0: no handovers */
    int json, timestamps;
    const char *events; /* where lines go: a file, "-" standard output; NULL: as is usual */
    int rejoin;
    int replace; /* ends when a later process of the identifier has taken over */

    const char *const *arguments; /* the command for each item, with a NULL at the end; NULL: there is none */
    int64_t drain_ms;
    int restart; /* DV_RESTART_* */
    int standby;
    int64_t prepare_timeout_ms; /* of a standby */

    int balance;              /* DV_BALANCE_* */
    const char *load_command; /* NULL: none */
    int64_t load_interval_ms;
    const char *load_unit;       /* NULL: the usual one */
    const char *load_floor_text; /* NULL: the usual one */
    double load_floor;
    const char *tags;    /* NULL: none */
    int64_t cap;         /* 0: none */
    int64_t min_members; /* 0: one */
    int64_t min_members_wait_ms;
    const char *quarantine; /* NULL: none, else "5/10m", as the next two say */
    size_t quarantine_failures;
    int64_t quarantine_window_ms;

    dv_item_list list; /* read from items_from, or copied from items; empty where it is followed */
} dv_partition_options;

/*
 * Parses the command line, and reads the files that it names.
 *
 * Returns as dv_options_parse(). In each case release *options with dv_partition_options_free().
 */
int dv_partition_options_parse(dv_partition_options *options, int argc, char **argv);

/* Fills in what the options say of the member; the items and callbacks are the caller's to set. */
void dv_partition_options_fill(const dv_partition_options *options, divvy_partitioner_config *config);

void dv_partition_options_free(dv_partition_options *options);

void dv_partition_print_help(void);

#endif
