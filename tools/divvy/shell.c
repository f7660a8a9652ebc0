/* A command that the shell runs for us, and whose output we read. SPDX-License-Identifier: Apache-2.0 */
#include "shell.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dispositions.h"
#include "guardian.h"
#include "tls_options.h"

enum { RUNNING_MAX = 4 }; /* A subcommand runs one for its items and one for its loads. */

/* Those that were started and not waited for to the end. 0: a free place. */
static pid_t running[RUNNING_MAX];

/* Returns the place of a process, or NULL. */
static pid_t *find(pid_t process) {
    for (size_t i = 0; i < RUNNING_MAX; i++) {
        if (running[i] == process) return &running[i];
    }
    return NULL;
}

/* No descriptor of ours but the pipe, and signals as usual. */
static int spawn(pid_t *process, const char *command, int input_fd, int output_fd) {
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
    if (input_fd >= 0) error = posix_spawn_file_actions_adddup2(&files, input_fd, STDIN_FILENO);
    else error = posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (!error) error = posix_spawn_file_actions_adddup2(&files, output_fd, STDOUT_FILENO);
    if (!error) error = posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
    char *arguments[] = {"sh", "-c", (char *)(uintptr_t)command, NULL};
    if (!error) error = posix_spawn(process, "/bin/sh", &files, &attributes, arguments, dv_tls_options_environment());
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    return error;
}

int dv_shell_start(pid_t *process, int *output_fd, const char *command, int input_fd) {
    int ends[2];
    *process = 0;
    *output_fd = -1;
    pid_t *place = find(0);
    if (!place) return EAGAIN;
    if (pipe2(ends, O_CLOEXEC) != 0) return errno;
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    int error = spawn(process, command, input_fd, ends[1]);
    close(ends[1]);
    if (error) {
        close(ends[0]);
        *process = 0;
        return error;
    }
    assert(*process > 1);
    dv_dispositions_restore_files(*process);
    *place = *process;
    *output_fd = ends[0];
    return 0;
}

/* Guardians make this process a subreaper: what a command has left in the background becomes our child. */
static void reap_strays(void) {
    siginfo_t found = {.si_pid = 0};
    while (waitid(P_ALL, 0, &found, WEXITED | WNOHANG | WNOWAIT) == 0 && found.si_pid > 0) {
        /* This one is waited for elsewhere. */
        if (find(found.si_pid) || dv_guardians_have(found.si_pid)) return;
        waitpid(found.si_pid, NULL, 0);
    }
}

pid_t dv_shell_wait(pid_t process, int *status, int options) {
    pid_t *place = find(process);
    assert(place);
    pid_t ended = waitpid(process, status, options);
    if (ended != process) return ended;
    *place = 0;
    reap_strays();
    return ended;
}
