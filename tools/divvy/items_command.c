/* A command that prints the items. SPDX-License-Identifier: Apache-2.0 */
#include "items_command.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"
#include "connection.h"
#include "shell.h"

/* The bounds of one run. A command without end must not fill the memory. */
enum { REAP_INTERVAL_MS = 10, TIMEOUT_MS = 60000, OUTPUT_BYTES_MAX = 256 * 1024 * 1024, READ_BYTES = 65536 };

static const char shown[] = "--items-from-command";

int dv_items_run_begin(dv_items_run *run, const char *command) {
    *run = (dv_items_run){.deadline_ms = dv_session_now_ms() + TIMEOUT_MS};
    int error = dv_shell_start(&run->process, &run->output_fd, command);
    if (error) dv_command_say("%s cannot be run: %s", shown, strerror(error));
    return error ? -1 : 0;
}

static void close_output(dv_items_run *run) {
    if (run->output_fd >= 0) close(run->output_fd);
    run->output_fd = -1;
}

static void forget(dv_items_run *run) {
    close_output(run);
    free(run->output);
    *run = (dv_items_run){.output_fd = -1};
}

void dv_items_run_end(dv_items_run *run) {
    if (!run->process) return;
    assert(run->process > 1);
    kill(-run->process, SIGKILL);
    while (waitpid(run->process, NULL, 0) < 0 && errno == EINTR) continue;
    forget(run);
}

static bool make_room(dv_items_run *run) {
    if (run->room - run->bytes >= READ_BYTES) return true;
    size_t room = 2 * run->room + READ_BYTES;
    char *grown = realloc(run->output, room);
    if (!grown) return false;
    run->output = grown;
    run->room = room;
    return true;
}

/* Reads what there is. Returns false when it was told that it is too much. */
static bool read_output(dv_items_run *run) {
    while (run->output_fd >= 0) {
        if (run->bytes > OUTPUT_BYTES_MAX || !make_room(run)) {
            dv_command_say("%s printed more than %zu bytes", shown, run->bytes);
            return false;
        }
        assert(run->bytes + READ_BYTES <= run->room);
        ssize_t count = read(run->output_fd, run->output + run->bytes, READ_BYTES);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return true;
        if (count == 0) close_output(run);
        run->bytes += (size_t)count;
    }
    return true;
}

static bool has_succeeded(int status) {
    if (WIFSIGNALED(status)) dv_command_say("%s was ended by signal %d", shown, WTERMSIG(status));
    else if (WEXITSTATUS(status) != 0) dv_command_say("%s exited with %d", shown, WEXITSTATUS(status));
    else return true;
    return false;
}

static dv_items_outcome judge(dv_items_run *run, int status, dv_item_list *list) {
    dv_items_outcome outcome = DV_ITEMS_FAILED;
    if (!has_succeeded(status)) return outcome;
    /* There is no stream of no bytes. */
    FILE *file = run->bytes ? fmemopen(run->output, run->bytes, "r") : NULL;
    if (!run->bytes) dv_command_say("%s printed nothing; a pool has at least one item", shown);
    else if (!file) dv_command_say("out of memory");
    else if (dv_item_list_parse(list, file, shown) == 0) outcome = DV_ITEMS_TOLD;
    if (file) fclose(file);
    return outcome;
}

dv_items_outcome dv_items_run_look(dv_items_run *run, dv_item_list *list) {
    int status;
    assert(run->process > 1);
    if (!read_output(run)) {
        dv_items_run_end(run);
        return DV_ITEMS_FAILED;
    }
    if (run->output_fd < 0 && waitpid(run->process, &status, WNOHANG) == run->process) {
        dv_items_outcome outcome = judge(run, status, list);
        forget(run);
        return outcome;
    }
    if (dv_session_now_ms() < run->deadline_ms) return DV_ITEMS_RUNS;
    dv_items_run_end(run);
    dv_command_say("%s was ended: it has not finished within %d s", shown, TIMEOUT_MS / 1000);
    return DV_ITEMS_FAILED;
}

int dv_items_run_fd(const dv_items_run *run) {
    return run->process ? run->output_fd : -1;
}

int64_t dv_items_run_until_ms(const dv_items_run *run) {
    if (!run->process) return -1;
    int64_t left_ms = run->deadline_ms - dv_session_now_ms();
    if (run->output_fd < 0 && left_ms > REAP_INTERVAL_MS) left_ms = REAP_INTERVAL_MS;
    return left_ms > 0 ? left_ms : 0;
}

dv_items_outcome dv_items_run_whole(const char *command, dv_item_list *list, int stop_fd) {
    dv_items_run run;
    if (dv_items_run_begin(&run, command) != 0) return DV_ITEMS_FAILED;
    dv_items_outcome outcome;
    while ((outcome = dv_items_run_look(&run, list)) == DV_ITEMS_RUNS) {
        struct pollfd fds[] = {{.fd = dv_items_run_fd(&run), .events = POLLIN}, {.fd = stop_fd, .events = POLLIN}};
        poll(fds, 2, (int)dv_items_run_until_ms(&run));
        if (!fds[1].revents) continue;
        dv_items_run_end(&run);
        return DV_ITEMS_RUNS;
    }
    return outcome;
}
