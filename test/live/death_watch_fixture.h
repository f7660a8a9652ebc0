/* Members with a death watch, and who comes after them. SPDX-License-Identifier: Apache-2.0
 *
 * The test's process takes up orphans (PR_SET_CHILD_SUBREAPER). So a death watch, which is nobody's child, is ours: it
 * is found, and it is known how it has ended. */
#ifndef DV_TEST_DEATH_WATCH_FIXTURE_H
#define DV_TEST_DEATH_WATCH_FIXTURE_H

#include "server_fixture.h"

#include "death_watch_member.h"
#include "lib/expire.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>

/* LONG_MS: a session that does not end by itself within a test's patience for what is quick. SHORT_MS: one that is
 * waited for. */
enum { LONG_MS = 20000, SHORT_MS = 3000, CHILDREN_MAX = 8 };

typedef struct {
    pid_t pid;
    int control_fd;
    int pipe_fd; /* the other end of DV_MEMBER_PIPE_FD */
    char said[DV_MEMBER_TEXT_MAX];
} member;

static inline int set_up_watched(void **state) {
    int error = set_up(state);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    setenv("DIVVY_LIBEXEC", DIVVY_BINARY_DIR "/tools", 1);
    return error;
}

/* --- the member ------------------------------------------------------------------------------------------------- */

static inline const char *hear(member *m) {
    struct timeval patience = {PATIENCE_MS / 1000, 0};
    setsockopt(m->control_fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    ssize_t bytes = recv(m->control_fd, m->said, sizeof m->said - 1, 0);
    m->said[bytes > 0 ? bytes : 0] = '\0';
    return m->said;
}

static inline void order(member *m, dv_order what) {
    const char letter = (char)what;
    assert_int_equal(send(m->control_fd, &letter, 1, MSG_NOSIGNAL), 1);
}

static inline const char *ask(member *m, dv_order what) {
    order(m, what);
    return hear(m);
}

/* Returns the session that it says it holds its lock in. */
static inline int64_t check_held(const char *said) {
    uint64_t session = 0;
    if (sscanf(said, "held %" SCNx64, &session) != 1) fail_msg("the member said: %s", said);
    return (int64_t)session;
}

/* Begins another process, which tries for its lock. */
static inline member begin_member(const char *hosts, const char *path, int session_timeout_ms, const char *options) {
    static const char program[] = DIVVY_BINARY_DIR "/test/death_watch_member";
    member m = {0};
    int control[2], pipe[2];
    char fd_text[16], timeout_text[16];
    posix_spawn_file_actions_t actions;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control), 0);
    assert_int_equal(pipe2(pipe, O_CLOEXEC), 0);
    snprintf(fd_text, sizeof fd_text, "%d", DV_MEMBER_CONTROL_FD);
    snprintf(timeout_text, sizeof timeout_text, "%d", session_timeout_ms);
    char *const arguments[] = {(char *)program, fd_text,         (char *)hosts, (char *)path,
                               timeout_text,    (char *)options, NULL};
    /* Neither end may have the number that the other is to have. */
    int high_control_fd = fcntl(control[1], F_DUPFD_CLOEXEC, 100), high_pipe_fd = fcntl(pipe[1], F_DUPFD_CLOEXEC, 100);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, high_control_fd, DV_MEMBER_CONTROL_FD);
    posix_spawn_file_actions_adddup2(&actions, high_pipe_fd, DV_MEMBER_PIPE_FD);
    int error = posix_spawn(&m.pid, program, &actions, NULL, arguments, environ);
    if (error) fail_msg("%s: %s", program, strerror(error));
    posix_spawn_file_actions_destroy(&actions);
    const int closed[] = {control[1], pipe[1], high_control_fd, high_pipe_fd};
    for (size_t i = 0; i < sizeof closed / sizeof closed[0]; i++) close(closed[i]);
    m.control_fd = control[0];
    m.pipe_fd = pipe[0];
    return m;
}

/* The same, once it holds its lock. */
static inline member start_member(const char *hosts, const char *path, int session_timeout_ms, const char *options) {
    member m = begin_member(hosts, path, session_timeout_ms, options);
    check_held(hear(&m));
    return m;
}

/* Returns the status of a child that has ended, or is about to. */
static inline int status_of(pid_t pid) {
    int status = 0;
    pid_t found = 0;
    assert_true(DV_WAIT((found = waitpid(pid, &status, WNOHANG)) != 0, PATIENCE_MS));
    assert_int_equal(found, pid);
    return status;
}

static inline void end_member(member *m) {
    kill(m->pid, SIGKILL);
    status_of(m->pid);
    close(m->control_fd);
    close(m->pipe_fd);
}

/* --- its watch -------------------------------------------------------------------------------------------------- */

/* Returns the pid of a child of ours of that name, as its entry of /proc says; else 0. */
static inline pid_t child_named(const char *pid, const char *name) {
    char path[300], line[512], found[64] = "";
    int parent = 0;
    snprintf(path, sizeof path, "/proc/%s/stat", pid);
    FILE *file = fopen(path, "re");
    bool read = file && fgets(line, sizeof line, file);
    if (file) fclose(file);
    read = read && sscanf(line, "%*d (%63[^)]) %*c %d", found, &parent) == 2;
    return read && parent == getpid() && strcmp(found, name) == 0 ? atoi(pid) : 0;
}

/* Fills in our children of that name. Returns how many. */
static inline int find_children(pid_t pids[CHILDREN_MAX], const char *name) {
    int count = 0;
    DIR *processes = opendir("/proc");
    assert_non_null(processes);
    for (struct dirent *entry; (entry = readdir(processes)) && count < CHILDREN_MAX;)
        if ((pids[count] = child_named(entry->d_name, name))) count++;
    closedir(processes);
    return count;
}

static inline int find_watches(pid_t pids[CHILDREN_MAX]) {
    return find_children(pids, "divvy-death-wat");
}

/* Returns the only one. */
static inline pid_t watch_of(const member *m) {
    pid_t pids[CHILDREN_MAX];
    (void)m;
    assert_int_equal(find_watches(pids), 1);
    return pids[0];
}

static inline bool lives(pid_t pid) {
    siginfo_t found = {0};
    return waitid(P_PID, (id_t)pid, &found, WEXITED | WNOHANG | WNOWAIT) == 0 && found.si_pid == 0;
}

/* It ends by itself, and has nothing to complain of. */
static inline void check_watch_goes(pid_t pid) {
    int status = status_of(pid);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) fail_msg("the death watch ended with status 0x%x", status);
}

/* Behind a test, which may have failed: the next one begins with nobody's children. */
static inline int end_children(void **state) {
    static const char *const names[] = {"death_watch_mem", "sleep", "divvy-death-wat"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        pid_t pids[CHILDREN_MAX];
        for (int count = find_children(pids, names[i]); count > 0; count--) {
            kill(pids[count - 1], SIGKILL);
            waitpid(pids[count - 1], NULL, 0);
        }
    }
    return 0;
}

/* --- the next owner --------------------------------------------------------------------------------------------- */

typedef struct {
    divvy_client *client;
    divvy_lock *lock;
} heir;

static inline heir next_owner_with(const char *hosts, const char *path, const char *auth) {
    heir next;
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    divvy_lock_config lock_config = DIVVY_LOCK_CONFIG_INIT;
    config.hosts = hosts;
    config.ensemble_tick_ms = TICK_MS;
    config.session_timeout_ms = 30000;
    config.auth_scheme = auth ? "digest" : NULL;
    config.auth = auth;
    lock_config.path = path;
    next.client = open_connected(&config);
    if (divvy_lock_create(&next.lock, next.client, &lock_config) != 0)
        fail_msg("create: %s", divvy_client_error(next.client));
    return next;
}

static inline heir next_owner(const char *path) {
    return next_owner_with(hosts(), path, NULL);
}

static inline void leave(heir *next) {
    divvy_lock_destroy(next->lock);
    divvy_client_close(next->client);
}

/* Returns after how many ms it has the lock. */
static inline int64_t inherit(heir *next) {
    int64_t from_ms = dv_test_now_ms();
    int error = divvy_lock_acquire(next->lock, PATIENCE_MS);
    if (error) fail_msg("acquire: %s", divvy_client_error(next->client));
    return dv_test_now_ms() - from_ms;
}

/* It has the lock well before the session would have ended. */
static inline void check_soon(heir *next, int session_timeout_ms) {
    int64_t ms = inherit(next);
    if (ms >= session_timeout_ms / 2) fail_msg("the next owner came after %lld ms", (long long)ms);
}

/* It has the lock when the session has ended, and no sooner. The last sign of life may be a third of it old. */
static inline void check_by_timeout(heir *next, int session_timeout_ms) {
    int64_t ms = inherit(next);
    if (ms < session_timeout_ms / 2) fail_msg("the next owner came after %lld ms", (long long)ms);
}

#endif
