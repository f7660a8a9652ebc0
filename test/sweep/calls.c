/* The system calls of the command, and one that fails. SPDX-License-Identifier: Apache-2.0
 *
 * The command's objects call these instead (command_symbols.txt). With --calls each of them fails in turn, with an
 * error that the system has for it when descriptors, processes or memory are short. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "allocations.h"
#include "command_world.h"

#define FAILS(error) sweep_call_fails(__builtin_return_address(0), error)

int sweep_socket(int domain, int type, int protocol) {
    return FAILS(EMFILE) ? -1 : socket(domain, type, protocol);
}

int sweep_socketpair(int domain, int type, int protocol, int ends[2]) {
    return FAILS(EMFILE) ? -1 : socketpair(domain, type, protocol, ends);
}

int sweep_setsockopt(int s, int level, int name, const void *value, socklen_t bytes) {
    return FAILS(ENOBUFS) ? -1 : setsockopt(s, level, name, value, bytes);
}

int sweep_pipe2(int ends[2], int flags) {
    return FAILS(EMFILE) ? -1 : pipe2(ends, flags);
}

int sweep_dup(int fd) {
    return FAILS(EMFILE) ? -1 : dup(fd);
}

int sweep_memfd_create(const char *name, unsigned flags) {
    return FAILS(EMFILE) ? -1 : memfd_create(name, flags);
}

int sweep_signalfd(int fd, const sigset_t *signals, int flags) {
    return FAILS(EMFILE) ? -1 : signalfd(fd, signals, flags);
}

int sweep_timerfd_create(clockid_t clock, int flags) {
    return FAILS(EMFILE) ? -1 : timerfd_create(clock, flags);
}

int sweep_epoll_create1(int flags) {
    return FAILS(EMFILE) ? -1 : epoll_create1(flags);
}

int sweep_epoll_ctl(int fd, int operation, int of, struct epoll_event *event) {
    return FAILS(ENOSPC) ? -1 : epoll_ctl(fd, operation, of, event);
}

int sweep_eventfd(unsigned value, int flags) {
    return FAILS(EMFILE) ? -1 : eventfd(value, flags);
}

void *sweep_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset) {
    return FAILS(ENOMEM) ? MAP_FAILED : mmap(at, bytes, protection, flags, fd, offset);
}

int sweep_fstat(int fd, struct stat *out) {
    return FAILS(EIO) ? -1 : fstat(fd, out);
}

ssize_t sweep_getrandom(void *out, size_t bytes, unsigned flags) {
    return FAILS(ENOSYS) ? -1 : getrandom(out, bytes, flags);
}

FILE *sweep_fdopen(int fd, const char *mode) {
    return FAILS(ENOMEM) ? NULL : fdopen(fd, mode);
}

pid_t sweep_fork(void) {
    if (FAILS(EAGAIN)) return -1;
    pid_t child = fork();
    if (child == 0) sweep_command_is_child();
    return child;
}

int sweep_posix_spawn(pid_t *out, const char *path, const posix_spawn_file_actions_t *files,
                      const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[]) {
    return FAILS(EAGAIN) ? EAGAIN : posix_spawn(out, path, files, attributes, arguments, environment);
}

int sweep_posix_spawnattr_init(posix_spawnattr_t *attributes) {
    return FAILS(ENOMEM) ? ENOMEM : posix_spawnattr_init(attributes);
}

int sweep_posix_spawn_file_actions_init(posix_spawn_file_actions_t *files) {
    return FAILS(ENOMEM) ? ENOMEM : posix_spawn_file_actions_init(files);
}

int sweep_pthread_create(pthread_t *out, const pthread_attr_t *attributes, void *(*run)(void *), void *argument) {
    return FAILS(EAGAIN) ? EAGAIN : pthread_create(out, attributes, run, argument);
}

/* ---- streams, whose memory is the C library's: they fail where allocations do ---- */

FILE *sweep_open_memstream(char **text, size_t *bytes) {
    return sweep_stream_fails(__builtin_return_address(0)) ? NULL : open_memstream(text, bytes);
}

/* What was printed last does not come out. */
int sweep_fclose(FILE *stream) {
    bool fails = sweep_stream_fails(__builtin_return_address(0));
    int error = errno, outcome = fclose(stream);
    if (fails) errno = error;
    return fails ? EOF : outcome;
}
