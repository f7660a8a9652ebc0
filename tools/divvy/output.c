/* Standard output, or what stands in for it, for a program that must not hang on it. SPDX-License-Identifier:
 * Apache-2.0 */
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

enum { LAST_WAIT_MS = 1000 };

static void end(dv_output *output, int error) {
    output->ended = true;
    output->error = error == EPIPE ? 0 : error;
}

static int target(const dv_output *output) {
    return output->instead_fd ? output->instead_fd : STDOUT_FILENO;
}

/* Waits until a write of PIPE_BUF bytes will not block. Returns false when it is not worth while to wait longer. */
static bool wait_for_room(const dv_output *output) {
    struct pollfd fds[] = {{.fd = target(output), .events = POLLOUT}, {.fd = output->stop_fd, .events = POLLIN}};
    while (poll(fds, 2, -1) < 0 && errno == EINTR) continue;
    if (fds[0].revents) return true;
    return poll(fds, 1, LAST_WAIT_MS) == 1;
}

void dv_output_write(dv_output *output, const char *bytes, size_t count) {
    while (count > 0 && !output->ended) {
        if (!wait_for_room(output)) {
            end(output, 0);
            return;
        }
        ssize_t written = write(target(output), bytes, count < PIPE_BUF ? count : PIPE_BUF);
        if (written >= 0) {
            bytes += written;
            count -= (size_t)written;
        } else if (errno != EINTR && errno != EAGAIN) {
            end(output, errno);
        }
    }
}

void dv_output_heard(dv_output *output, short revents) {
    if (revents & (POLLERR | POLLHUP | POLLNVAL)) end(output, 0);
}

int dv_output_fd(const dv_output *output) {
    return output->ended ? -1 : target(output);
}

bool dv_output_prepare(void) {
    bool stdout_open = fcntl(STDOUT_FILENO, F_GETFD) >= 0;
    /* The lowest free number is given out first, so that this fills the gaps from 0 on. */
    int fd;
    while ((fd = open("/dev/null", O_RDWR)) >= 0 && fd <= STDERR_FILENO) continue;
    if (fd > STDERR_FILENO) close(fd);
    /* A reader that goes is met where we write, not by a signal. */
    signal(SIGPIPE, SIG_IGN);
    return stdout_open;
}
