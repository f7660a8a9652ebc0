/* A command that prints the items. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_ITEMS_COMMAND_H
#define DV_ITEMS_COMMAND_H

#include "item_list.h"
#include "shell_run.h"

typedef enum {
    DV_ITEMS_RUNS,   /* nothing is known yet */
    DV_ITEMS_TOLD,   /* it has printed a list that is in order */
    DV_ITEMS_FAILED, /* what is wrong was told on stderr */
} dv_items_outcome;

/* Starts it by the shell. Returns 0, or -1 when what is wrong was told on stderr. */
int dv_items_run_begin(dv_shell_run *run, const char *command);

/* Looks how it is, and fills in *list with DV_ITEMS_TOLD. Unless it still runs, nothing of it is left. */
dv_items_outcome dv_items_run_look(dv_shell_run *run, dv_item_list *list);

/* All of that, for those who have nothing else to do. Returns DV_ITEMS_RUNS, with the run ended, when stop_fd became
 * readable; -1: nothing stops it. */
dv_items_outcome dv_items_run_whole(const char *command, dv_item_list *list, int stop_fd);

#endif
