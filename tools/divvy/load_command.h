/* A command that tells the loads of items. SPDX-License-Identifier: Apache-2.0
 *
 * It runs once for all items: it has their names on its standard input, one a line, and prints what load_lines.h
 * reads. What is wrong is told on stderr, each kind once until a run is in order again. */
#ifndef DV_LOAD_COMMAND_H
#define DV_LOAD_COMMAND_H

#include <stdbool.h>
#include <stdint.h>

#include "item_list.h"
#include "load_lines.h"
#include "shell_run.h"

typedef struct {
    const char *command;
    dv_shell_run run;
    dv_item_list asked; /* the items of this run */
    unsigned told;      /* the kinds of trouble that were told, as bits */
} dv_load_command;

/* Starts a run for `count` items, whose names are copied; none may be under way. What keeps it from running is told. */
void dv_load_command_begin(dv_load_command *command, const char *const *items, size_t count);

/* Looks how the run is. Returns whether it has ended with loads, which are in *out: for the items of `asked`, up to the
 * next dv_load_command_begin(). Release *out with dv_load_lines_free() then. */
bool dv_load_command_look(dv_load_command *command, dv_load_lines *out);

/* Kills a run that goes on, and releases all. */
void dv_load_command_close(dv_load_command *command);

#endif
