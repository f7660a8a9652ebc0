/* A command that tells the load. SPDX-License-Identifier: Apache-2.0 */
#include "announce_load.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"
#include "connection.h"
#include "tls_options.h"

enum { REAP_INTERVAL_MS = 10 };

bool dv_load_parse(const char *text, double *load) {
    char *end;
    double number = strtod(text, &end);
    if (end == text || end[strspn(end, " \t\r\n")] != '\0' || !isfinite(number)) return false;
    *load = number;
    return true;
}

/* ---- the beginning ---- */

/* No descriptor of ours but the pipe, and signals as usual. */
static int spawn(pid_t *process, const char *command, int output_fd) {
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none, pipes;
    sigemptyset(&none);
    sigemptyset(&pipes);
    sigaddset(&pipes, SIGPIPE);
    if (posix_spawn_file_actions_init(&files) != 0) return ENOMEM;
    int error = posix_spawnattr_init(&attributes);
    if (error) {
        posix_spawn_file_actions_destroy(&files);
        return error;
    }
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &pipes);
    error = posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (!error) error = posix_spawn_file_actions_adddup2(&files, output_fd, STDOUT_FILENO);
    if (!error) error = posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
    char *arguments[] = {"sh", "-c", (char *)(uintptr_t)command, NULL};
    if (!error) error = posix_spawn(process, "/bin/sh", &files, &attributes, arguments, dv_tls_options_environment());
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    return error;
}

int dv_load_begin(dv_load_probe *probe, const char *command, int64_t timeout_ms) {
    int ends[2];
    *probe = (dv_load_probe){.output_fd = -1, .deadline_ms = dv_session_now_ms() + timeout_ms};
    if (pipe2(ends, O_CLOEXEC) != 0) {
        dv_command_say("--load-command cannot be run: %s", strerror(errno));
        return -1;
    }
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    int error = spawn(&probe->process, command, ends[1]);
    close(ends[1]);
    if (error) {
        close(ends[0]);
        probe->process = 0;
        dv_command_say("--load-command cannot be run: %s", strerror(error));
        return -1;
    }
    probe->output_fd = ends[0];
    return 0;
}

/* ---- the end ---- */

static void close_output(dv_load_probe *probe) {
    if (probe->output_fd >= 0) close(probe->output_fd);
    probe->output_fd = -1;
}

void dv_load_end(dv_load_probe *probe) {
    if (!probe->process) return;
    kill(-probe->process, SIGKILL);
    while (waitpid(probe->process, NULL, 0) < 0 && errno == EINTR) continue;
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
    read_output(probe);
    if (probe->output_fd < 0) {
        pid_t ended = waitpid(probe->process, &status, WNOHANG);
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
