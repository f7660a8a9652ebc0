/* A command that prints the items. SPDX-License-Identifier: Apache-2.0 */
#include "items_command.h"

#include <poll.h>
#include <stdio.h>

#include "command.h"

static const char shown[] = "--items-from-command";

int dv_items_run_begin(dv_shell_run *run, const char *command) {
    int outcome = dv_shell_run_begin(run, command, -1);
    if (outcome != 0) dv_command_say("%s %s", shown, run->why);
    return outcome;
}

static dv_items_outcome read_items(dv_shell_run *run, dv_item_list *list) {
    dv_items_outcome outcome = DV_ITEMS_FAILED;
    /* There is no stream of no bytes. */
    FILE *file = run->bytes ? fmemopen(run->output, run->bytes, "r") : NULL;
    if (!run->bytes) dv_command_say("%s printed nothing; a pool has at least one item", shown);
    else if (!file) dv_command_say("out of memory");
    else if (dv_item_list_parse(list, file, shown) == 0) outcome = DV_ITEMS_TOLD;
    if (file) fclose(file);
    return outcome;
}

dv_items_outcome dv_items_run_look(dv_shell_run *run, dv_item_list *list) {
    dv_items_outcome outcome = DV_ITEMS_FAILED;
    dv_shell_run_outcome how = dv_shell_run_look(run);
    if (how == DV_SHELL_RUN_RUNS) return DV_ITEMS_RUNS;
    if (how == DV_SHELL_RUN_FAILED) dv_command_say("%s %s", shown, run->why);
    else outcome = read_items(run, list);
    dv_shell_run_forget(run);
    return outcome;
}

dv_items_outcome dv_items_run_whole(const char *command, dv_item_list *list, int stop_fd) {
    dv_shell_run run = {0};
    if (dv_items_run_begin(&run, command) != 0) return DV_ITEMS_FAILED;
    dv_items_outcome outcome;
    while ((outcome = dv_items_run_look(&run, list)) == DV_ITEMS_RUNS) {
        struct pollfd fds[] = {{.fd = dv_shell_run_fd(&run), .events = POLLIN}, {.fd = stop_fd, .events = POLLIN}};
        poll(fds, 2, (int)dv_shell_run_until_ms(&run));
        if (!fds[1].revents) continue;
        dv_shell_run_forget(&run);
        return DV_ITEMS_RUNS;
    }
    return outcome;
}
