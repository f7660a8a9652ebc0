/* The loads of the items of divvy partition: measured, or asked for. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_PARTITION_LOAD_H
#define DV_PARTITION_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#include <divvy/divvy.h>

#include "cpu_items.h"
#include "ledger.h"
#include "load_command.h"
#include "partition_options.h"

typedef struct {
    const dv_partition_options *options;
    const dv_ledger *ledger; /* of what is owned */
    divvy_client *client;
    divvy_partitioner *p; /* NULL: there is none yet */
    dv_cpu_items cpu;
    dv_load_command command;
    int64_t due_ms;    /* of the next look, by dv_session_now_ms(); 0: at once */
    bool cannot_look;  /* at processes, and that was told */
    bool cannot_count; /* a command was not counted, as memory was short; that was told */
    bool refused;      /* the partitioner takes no loads, and that was told */
} dv_partition_load;

/* Opens it; `options` and `ledger` are set. Nothing is done where the options ask for no loads. */
void dv_partition_load_open(dv_partition_load *load, divvy_client *client);

/* Ends a command that runs. */
void dv_partition_load_close(dv_partition_load *load);

/* Takes notice of what has happened to the command of an item. */
void dv_partition_load_child(dv_partition_load *load, const dv_child_event *event);

/* Looks, and tells the loads, where that is due. To be called in each round. */
void dv_partition_load_step(dv_partition_load *load);

/* For poll(2); -1: nothing. */
int dv_partition_load_fd(const dv_partition_load *load);
int64_t dv_partition_load_next_ms(const dv_partition_load *load);

#endif
