/* A command that tells the load. SPDX-License-Identifier: Apache-2.0 */
#include "announce_load.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"
#include "connection.h"
#include "shell.h"

enum { REAP_INTERVAL_MS = 10 };

bool dv_load_parse(const char *text, double *load) {
    char *end;
    double number = strtod(text, &end);
    if (end == text || end[strspn(end, " \t\r\n")] != '\0' || !isfinite(number)) return false;
    *load = number;
    return true;
}

/* ---- the beginning ---- */

int dv_load_begin(dv_load_probe *probe, const char *command, int64_t timeout_ms) {
    *probe = (dv_load_probe){.output_fd = -1, .deadline_ms = dv_session_now_ms() + timeout_ms};
    int error = dv_shell_start(&probe->process, &probe->output_fd, command, -1);
    if (error) dv_command_say("--load-command cannot be run: %s", strerror(error));
    return error ? -1 : 0;
}

/* ---- the end ---- */

static void close_output(dv_load_probe *probe) {
    if (probe->output_fd >= 0) close(probe->output_fd);
    probe->output_fd = -1;
}

void dv_load_end(dv_load_probe *probe) {
    if (!probe->process) return;
    assert(probe->process > 1);
    kill(-probe->process, SIGKILL);
    while (dv_shell_wait(probe->process, NULL, 0) < 0 && errno == EINTR) continue;
    close_output(probe);
    probe->process = 0;
}

/* Reads the command's output. A load is short, so bytes beyond the room are dropped. */
static void read_output(dv_load_probe *probe) {
    char text[DV_LOAD_BYTES];
    ssize_t count;
    while (probe->output_fd >= 0 && (count = read(probe->output_fd, text, sizeof text)) != 0) {
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return;
        size_t room = sizeof probe->output - 1 - probe->bytes;
        size_t kept = (size_t)count < room ? (size_t)count : room;
        memcpy(probe->output + probe->bytes, text, kept);
        probe->bytes += kept;
        assert(probe->bytes < sizeof probe->output);
    }
    close_output(probe);
}

static dv_load_outcome judge(const dv_load_probe *probe, int status, double *load) {
    if (WIFSIGNALED(status)) {
        dv_command_say("--load-command was ended by signal %d", WTERMSIG(status));
    } else if (WEXITSTATUS(status) != 0) {
        dv_command_say("--load-command exited with %d", WEXITSTATUS(status));
    } else if (strlen(probe->output) != probe->bytes || !dv_load_parse(probe->output, load)) {
        dv_command_say("--load-command printed \"%.60s\", which is no number", probe->output);
    } else {
        return DV_LOAD_TOLD;
    }
    return DV_LOAD_FAILED;
}

dv_load_outcome dv_load_look(dv_load_probe *probe, double *load) {
    int status;
    assert(probe->process > 1);
    read_output(probe);
    if (probe->output_fd < 0) {
        pid_t ended = dv_shell_wait(probe->process, &status, WNOHANG);
        if (ended == probe->process) {
            probe->process = 0;
            return judge(probe, status, load);
        }
    }
    if (dv_session_now_ms() < probe->deadline_ms) return DV_LOAD_RUNS;
    dv_load_end(probe);
    dv_command_say("--load-command took too long: it has a third of the ttl");
    return DV_LOAD_FAILED;
}

int dv_load_fd(const dv_load_probe *probe) {
    return probe->process ? probe->output_fd : -1;
}

int64_t dv_load_until_ms(const dv_load_probe *probe) {
    if (!probe->process) return -1;
    int64_t left_ms = probe->deadline_ms - dv_session_now_ms();
    if (probe->output_fd < 0 && left_ms > REAP_INTERVAL_MS) left_ms = REAP_INTERVAL_MS;
    return left_ms > 0 ? left_ms : 0;
}
