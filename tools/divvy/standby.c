/* The talk with a worker that stands by. SPDX-License-Identifier: Apache-2.0
 *
 * The socket has an abstract name, so nothing of it is left when we are killed. Other users can read such names in
 * /proc/net/unix. So the kernel tells with each datagram who sent it. */
#include "standby.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { RANDOM_BYTES = 16, DATAGRAM_BYTES = 4096, LINE_BYTES = 32, DESCRIPTORS_MAX = 253 };

/* ---- the beginning and the end ---- */

static int make_name(char *name) {
    unsigned char bytes[RANDOM_BYTES];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes) return -1;
    size_t length = (size_t)snprintf(name, DV_STANDBY_NAME_BYTES, "@divvy/");
    for (size_t i = 0; i < sizeof bytes; i++)
        length += (size_t)snprintf(name + length, DV_STANDBY_NAME_BYTES - length, "%02x", bytes[i]);
    assert(length < DV_STANDBY_NAME_BYTES);
    return 0;
}

static int open_socket(dv_standby *standby) {
    static const int yes = 1;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (make_name(standby->name) != 0) return -1;
    size_t length = strlen(standby->name);
    assert(length <= sizeof address.sun_path);
    memcpy(address.sun_path + 1, standby->name + 1, length - 1);
    standby->notify_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (standby->notify_fd < 0) return -1;
    if (setsockopt(standby->notify_fd, SOL_SOCKET, SO_PASSCRED, &yes, sizeof yes) != 0) return -1;
    return bind(standby->notify_fd, (const struct sockaddr *)&address,
                (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length));
}

int dv_standby_open(dv_standby *out, int *worker_fd) {
    int ends[2];
    *out = DV_STANDBY_NONE;
    *worker_fd = -1;
    if (open_socket(out) == 0 && pipe2(ends, O_CLOEXEC) == 0) {
        *worker_fd = ends[0];
        out->start_fd = ends[1];
        return 0;
    }
    int error = errno;
    dv_standby_close(out);
    errno = error;
    return -1;
}

void dv_standby_cancel(dv_standby *standby) {
    if (standby->start_fd >= 0) close(standby->start_fd);
    standby->start_fd = -1;
}

void dv_standby_close(dv_standby *standby) {
    dv_standby_cancel(standby);
    if (standby->notify_fd >= 0) close(standby->notify_fd);
    standby->notify_fd = -1;
}

/* ---- what the worker says ---- */

/* Returns whether the line READY=1 is among the lines of the text. */
static bool says_ready(const char *text, size_t bytes) {
    static const char ready[] = "READY=1";
    for (const char *at = text, *end = text + bytes; at < end;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        size_t length = (size_t)((newline ? newline : end) - at);
        if (length == sizeof ready - 1 && memcmp(at, ready, length) == 0) return true;
        at = newline ? newline + 1 : end;
    }
    return false;
}

/* A helper that says READY=1 and exits, as systemd-notify(1) does, may be gone by now. So its number counts only where
 * its user does not. */
static bool is_heeded(const struct ucred *sender, pid_t group) {
    assert(group >= 0);
    if (sender->uid == 0 || sender->uid == geteuid()) return true;
    return group > 0 && sender->pid > 0 && getpgid(sender->pid) == group;
}

/* Takes the sender from the message, and closes descriptors that came with it. Returns whether it has a sender. */
static bool take_sender(struct msghdr *message, struct ucred *sender) {
    bool found = false;
    for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part; part = CMSG_NXTHDR(message, part)) {
        if (part->cmsg_level != SOL_SOCKET) continue;
        if (part->cmsg_type == SCM_CREDENTIALS && part->cmsg_len == CMSG_LEN(sizeof *sender)) {
            memcpy(sender, CMSG_DATA(part), sizeof *sender);
            found = true;
        }
        for (size_t at = 0; part->cmsg_type == SCM_RIGHTS && CMSG_LEN(at + sizeof(int)) <= part->cmsg_len;
             at += sizeof(int)) {
            int fd;
            memcpy(&fd, CMSG_DATA(part) + at, sizeof fd);
            close(fd);
        }
    }
    return found;
}

/* Reads one datagram. Returns whether there was one. */
static bool take_datagram(int fd, pid_t group, bool *ready) {
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(DESCRIPTORS_MAX * sizeof(int))];
    } control;
    char text[DATAGRAM_BYTES];
    struct ucred sender;
    struct iovec payload = {text, sizeof text};
    struct msghdr message = {
        .msg_iov = &payload, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    ssize_t bytes = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (bytes < 0) return false;
    assert((size_t)bytes <= sizeof text);
    if (take_sender(&message, &sender) && is_heeded(&sender, group) && says_ready(text, (size_t)bytes)) *ready = true;
    return true;
}

bool dv_standby_is_ready(const dv_standby *standby, pid_t group) {
    enum { AT_ONCE = 64 }; /* A worker that never stops talking is heard again in the next round. */
    bool ready = false;
    for (int i = 0; i < AT_ONCE && standby->notify_fd >= 0; i++) {
        if (!take_datagram(standby->notify_fd, group, &ready)) break;
    }
    return ready;
}

/* ---- what the worker is told ---- */

int dv_standby_begin(dv_standby *standby, int64_t token) {
    char line[LINE_BYTES];
    assert(token > 0);
    int bytes = snprintf(line, sizeof line, "%" PRId64 "\n", token);
    assert(bytes > 0 && (size_t)bytes < sizeof line);
    /* The pipe is empty, so the line fits. A write fails only when the worker has closed its end. */
    bool told = standby->start_fd >= 0 && write(standby->start_fd, line, (size_t)bytes) == bytes;
    dv_standby_cancel(standby);
    return told ? 0 : -1;
}
