/* The commands of a member's items, where memory, descriptors or places to watch them are short.
 * SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "lib/scarce.h"
#include "supervise_fixture.h"

/* The calls of the system that a test has fail, in the order of a start. */
typedef enum { NONE, EPOLL_CREATE, EPOLL_CTL, GETRANDOM, SOCKET, SETSOCKOPT, PIPE } call;

static call failing;
static int failing_errno;

static bool fails(call which) {
    if (failing == which) errno = failing_errno;
    return failing == which;
}

int __real_epoll_create1(int flags);
int __real_epoll_ctl(int fd, int operation, int of, struct epoll_event *event);
ssize_t __real_getrandom(void *out, size_t bytes, unsigned flags);
int __real_socket(int domain, int type, int protocol);
int __real_setsockopt(int of, int level, int name, const void *value, socklen_t bytes);
int __real_pipe2(int ends[2], int flags);
int __wrap_epoll_create1(int flags);
int __wrap_epoll_ctl(int fd, int operation, int of, struct epoll_event *event);
ssize_t __wrap_getrandom(void *out, size_t bytes, unsigned flags);
int __wrap_socket(int domain, int type, int protocol);
int __wrap_setsockopt(int of, int level, int name, const void *value, socklen_t bytes);
int __wrap_pipe2(int ends[2], int flags);

int __wrap_epoll_create1(int flags) {
    return fails(EPOLL_CREATE) ? -1 : __real_epoll_create1(flags);
}

int __wrap_epoll_ctl(int fd, int operation, int of, struct epoll_event *event) {
    return fails(EPOLL_CTL) ? -1 : __real_epoll_ctl(fd, operation, of, event);
}

ssize_t __wrap_getrandom(void *out, size_t bytes, unsigned flags) {
    return fails(GETRANDOM) ? -1 : __real_getrandom(out, bytes, flags);
}

int __wrap_socket(int domain, int type, int protocol) {
    return fails(SOCKET) ? -1 : __real_socket(domain, type, protocol);
}

int __wrap_setsockopt(int of, int level, int name, const void *value, socklen_t bytes) {
    return fails(SETSOCKOPT) ? -1 : __real_setsockopt(of, level, name, value, bytes);
}

int __wrap_pipe2(int ends[2], int flags) {
    return fails(PIPE) ? -1 : __real_pipe2(ends, flags);
}

static int setup(void **state) {
    (void)state;
    standby = false;
    failing = NONE;
    scarce_after = -1;
    s = NULL;
    return 0;
}

static size_t open_descriptors(void) {
    size_t count = 0;
    DIR *folder = opendir("/proc/self/fd");
    assert_non_null(folder);
    while (readdir(folder)) count++;
    closedir(folder);
    return count;
}

/* Without memory or a descriptor there is no supervisor, and the caller learns which of them it was. */
TEST(test_no_supervisor) {
    const dv_supervise_config config = {.program = "/bin/work", .arguments = arguments, .session_timeout_ms = 1};
    failing = EPOLL_CREATE;
    failing_errno = EMFILE;
    assert_int_equal(dv_supervisor_open(&s, &config, NULL), -1);
    assert_int_equal(errno, EMFILE);
    assert_null(s);
    scarce_after = 0;
    assert_int_equal(dv_supervisor_open(&s, &config, NULL), -1);
    assert_null(s);
}

/* Checks that a start has failed, and why, and that the next one is made, with success. */
static void failed_once(const char *reason) {
    assert_int_equal(dv_supervisor_error(s), 0);
    assert_int_equal(start_count, 0);
    assert_int_equal(last.kind, DV_CHILD_FAILED);
    assert_string_equal(last.reason, reason);
    pass(last.restart_ms);
    assert_int_equal(start_count, 1);
}

/* Whatever allocation fails, either the supervisor says that it starts no more, or that start is told as failed. */
TEST(test_no_memory) {
    bool failed = true;
    size_t refused = 0, told_failed = 0;
    for (long n = 0; failed; n++) {
        assert_in_range(n, 0, 30);
        open_supervisor(DV_RESTART_ALWAYS);
        scarce_after = n;
        gain("a", 1);
        failed = scarce_after < 0;
        scarce_after = -1;
        bool ends = dv_supervisor_error(s) != 0;
        refused += ends;
        told_failed += failed && !ends;
        if (ends) assert_int_equal(dv_supervisor_error(s), ENOMEM);
        else if (failed) failed_once("Cannot allocate memory");
        assert_int_equal(dv_supervisor_running(s), ends ? 0 : 1);
        if (!ends) gone(runs(), 0, DV_ENDED_BY_ITSELF);
        give_back("a");
        assert_int_equal(teardown(NULL), 0);
        s = NULL;
    }
    assert_int_equal(refused, 4);
    assert_true(told_failed > 2);
}

/* A command that runs and cannot be watched is looked at until it has ended. No other is started. */
TEST(test_unwatched) {
    open_supervisor(DV_RESTART_ALWAYS);
    failing = EPOLL_CTL;
    failing_errno = ENOSPC;
    gain("a", 1);
    assert_int_equal(dv_supervisor_error(s), ENOSPC);
    failing = NONE;
    dv_guardian *g = newest();
    tell(g, DV_GUARDIAN_STARTED, FIRST_PID, DV_ENDED_BY_ITSELF);
    pass(100);
    assert_int_equal(last.kind, DV_CHILD_STARTED);
    dv_supervisor_end(s, 0);
    assert_int_equal(g->end_grace_ms, 0);
    pass(100);
    assert_int_equal(dv_supervisor_running(s), 1);
    tell(g, DV_GUARDIAN_GONE, 0, DV_ENDED_BY_ORDER);
    pass(100);
    assert_int_equal(last.kind, DV_CHILD_ENDED);
    assert_int_equal(dv_supervisor_running(s), 0);
    assert_int_equal(dv_supervisor_next_ms(s), -1);
    assert_int_equal(start_count, 1);
}

/* A command that is to stand by needs a socket and a pipe. Without them it is not started, and nothing is left open. */
TEST(test_no_standby) {
    static const call calls[] = {GETRANDOM, SOCKET, SETSOCKOPT, PIPE};
    standby = true;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        open_supervisor(DV_RESTART_ALWAYS);
        size_t before = open_descriptors();
        failing = calls[i];
        failing_errno = EMFILE;
        gain("a", 1);
        failing = NONE;
        assert_int_equal(open_descriptors(), before);
        failed_once("Too many open files");
        gone(runs(), 0, DV_ENDED_BY_ITSELF);
        give_back("a");
        assert_int_equal(teardown(NULL), 0);
        s = NULL;
    }
}

TEST_EACH(setup, teardown);
