/* One run of a command by the shell, with all that it prints. SPDX-License-Identifier: Apache-2.0 */
#include "shell_run.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "connection.h"
#include "shell.h"

enum { REAP_INTERVAL_MS = 10, READ_BYTES = 65536 };

__attribute__((format(printf, 2, 3))) static void say_why(dv_shell_run *run, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(run->why, sizeof run->why, format, arguments);
    va_end(arguments);
}

int dv_shell_run_begin(dv_shell_run *run, const char *command, int input_fd) {
    assert(!run->process && !run->output);
    *run = (dv_shell_run){.deadline_ms = dv_session_now_ms() + DV_SHELL_RUN_TIMEOUT_MS};
    int error = dv_shell_start(&run->process, &run->output_fd, command, input_fd);
    if (error) say_why(run, "cannot be run: %s", strerror(error));
    return error ? -1 : 0;
}

static void close_output(dv_shell_run *run) {
    if (run->output_fd >= 0) close(run->output_fd);
    run->output_fd = -1;
}

static void end(dv_shell_run *run) {
    assert(run->process > 1);
    kill(-run->process, SIGKILL);
    while (dv_shell_wait(run->process, NULL, 0) < 0 && errno == EINTR) continue;
    close_output(run);
    run->process = 0;
}

void dv_shell_run_forget(dv_shell_run *run) {
    if (run->process) end(run);
    free(run->output);
    *run = (dv_shell_run){.output_fd = -1};
}

static bool make_room(dv_shell_run *run) {
    if (run->room - run->bytes >= READ_BYTES) return true;
    size_t room = 2 * run->room + READ_BYTES;
    char *grown = realloc(run->output, room);
    if (!grown) return false;
    run->output = grown;
    run->room = room;
    return true;
}

/* Reads what there is. Returns false when it is too much. */
static bool read_output(dv_shell_run *run) {
    while (run->output_fd >= 0) {
        if (run->bytes > DV_SHELL_RUN_BYTES_MAX || !make_room(run)) {
            say_why(run, "printed more than %zu bytes", run->bytes);
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

static dv_shell_run_outcome judge(dv_shell_run *run, int status) {
    run->process = 0;
    if (WIFSIGNALED(status)) say_why(run, "was ended by signal %d", WTERMSIG(status));
    else if (WEXITSTATUS(status) != 0) say_why(run, "exited with %d", WEXITSTATUS(status));
    else return DV_SHELL_RUN_DONE;
    return DV_SHELL_RUN_FAILED;
}

dv_shell_run_outcome dv_shell_run_look(dv_shell_run *run) {
    int status;
    assert(run->process > 1);
    bool in_bounds = read_output(run);
    if (in_bounds && run->output_fd < 0 && dv_shell_wait(run->process, &status, WNOHANG) == run->process)
        return judge(run, status);
    if (in_bounds && dv_session_now_ms() < run->deadline_ms) return DV_SHELL_RUN_RUNS;
    if (in_bounds) say_why(run, "was ended: it has not finished within %d s", DV_SHELL_RUN_TIMEOUT_MS / 1000);
    end(run);
    return DV_SHELL_RUN_FAILED;
}

int dv_shell_run_fd(const dv_shell_run *run) {
    return run->process ? run->output_fd : -1;
}

int64_t dv_shell_run_until_ms(const dv_shell_run *run) {
    if (!run->process) return -1;
    int64_t left_ms = run->deadline_ms - dv_session_now_ms();
    if (run->output_fd < 0 && left_ms > REAP_INTERVAL_MS) left_ms = REAP_INTERVAL_MS;
    return left_ms > 0 ? left_ms : 0;
}
