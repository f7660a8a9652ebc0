/* A command that prints the items. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_ITEMS_COMMAND_H
#define DV_ITEMS_COMMAND_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "item_list.h"

/* One run of it. Zeroed: none is under way. */
typedef struct {
    pid_t process; /* 0: none */
    int output_fd; /* -1: it has ended its output */
    char *output;
    size_t bytes, room;
    int64_t deadline_ms; /* by dv_session_now_ms() */
} dv_items_run;

typedef enum {
    DV_ITEMS_RUNS,   /* nothing is known yet */
    DV_ITEMS_TOLD,   /* it has printed a list that is in order */
    DV_ITEMS_FAILED, /* what is wrong was told on stderr */
} dv_items_outcome;

/* Starts it by the shell. Returns 0, or -1 when what is wrong was told on stderr. */
int dv_items_run_begin(dv_items_run *run, const char *command);

/* Looks how it is, and fills in *list with DV_ITEMS_TOLD. Unless it still runs, nothing of it is left. */
dv_items_outcome dv_items_run_look(dv_items_run *run, dv_item_list *list);

/* For poll(2): readable when dv_items_run_look() has something to do; -1: nothing to wait for. */
int dv_items_run_fd(const dv_items_run *run);
/* When it is to be looked at by the clock: in so many ms; -1: none runs. */
int64_t dv_items_run_until_ms(const dv_items_run *run);

/* Kills one that runs. */
void dv_items_run_end(dv_items_run *run);

/* All of that, for those who have nothing else to do. Returns DV_ITEMS_RUNS, with the run ended, when stop_fd became
 * readable; -1: nothing stops it. */
dv_items_outcome dv_items_run_whole(const char *command, dv_item_list *list, int stop_fd);

#endif
