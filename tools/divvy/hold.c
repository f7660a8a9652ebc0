/* The stand-in for the command where there is none: it lasts as long as standard input.
 * SPDX-License-Identifier: Apache-2.0 */
#include "hold.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "command.h"

/* Returns whether the caller can know it. If nobody reads our output, our input has ended with it, or ends soon. */
static bool print(const char *text) {
    if (write(STDOUT_FILENO, text, strlen(text)) >= 0 || errno == EPIPE) return true;
    dv_command_failed("cannot write to standard output: %s", strerror(errno));
    return false;
}

static bool print_held(void) {
    const char *token = getenv("DIVVY_LOCK_TOKEN"), *slot = getenv("DIVVY_LOCK_SLOT");
    char line[128];
    snprintf(line, sizeof line, "held %s%s%s\n", token ? token : "", slot ? " " : "", slot ? slot : "");
    return print(line);
}

/* Reads and drops a byte of input. Returns false when the input has ended. */
static bool read_input(void) {
    char byte;
    ssize_t bytes = read(STDIN_FILENO, &byte, 1);
    return bytes > 0 || (bytes < 0 && (errno == EINTR || errno == EAGAIN));
}

int dv_hold(void) {
    sigset_t term;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    sigprocmask(SIG_BLOCK, &term, NULL);
    int signal_fd = signalfd(-1, &term, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signal_fd < 0) {
        dv_command_say("cannot receive signals: %s", strerror(errno));
        return DV_EXIT_TROUBLE;
    }
    signal(SIGPIPE, SIG_IGN);
    if (!print_held()) return DV_EXIT_TROUBLE;
    struct pollfd fds[] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = signal_fd, .events = POLLIN}};
    do {
        /* Interrupted, by a stop for example, it has set nothing. */
        if (poll(fds, 2, -1) < 0) fds[0].revents = fds[1].revents = 0;
        struct signalfd_siginfo info;
        if (fds[1].revents && read(signal_fd, &info, sizeof info) > 0 && !print("lost\n")) return DV_EXIT_TROUBLE;
    } while (fds[0].revents == 0 || read_input());
    return DV_EXIT_DONE;
}
