/* The client's side of its death watch. SPDX-License-Identifier: Apache-2.0 */
#include "client/death_watch.h"

#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/threads.h"
#include "client/error.h"
#include "znode/path.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434 /* on every architecture but alpha; kernel headers before 5.3 lack it */
#endif

/* READY_MS: for the program to start, on a machine that is busy. ABOVE_FD: above the two that it has. */
enum { READY_MS = 10000, ABOVE_FD = 10 };

struct dv_death_watch {
    int socket_fd;
    bool owned; /* the socket is ours to close */
    char *texts[DV_WILL_TEXTS];
    dv_will will;  /* as it was told last; its texts are those above */
    char *message; /* room for one, DV_WILL_BYTES_MAX */
};

int dv_death_watch_self(void) {
    return (int)syscall(SYS_pidfd_open, getpid(), 0);
}

/* ---- what it is told ---- */

static void wipe(char *text) {
    if (text) explicit_bzero(text, strlen(text));
    free(text);
}

/* The watch needs no chroot, so that it makes none. */
static char *copy_hosts(const char *hosts) {
    return strndup(hosts, strcspn(hosts, "/"));
}

static int fill(dv_death_watch *watch, const divvy_client_config *c) {
    const char *const given[DV_WILL_TEXTS] = {
        [DV_WILL_HOSTS] = c->hosts,
        [DV_WILL_AUTH_SCHEME] = c->auth_scheme,
        [DV_WILL_AUTH] = c->auth,
        [DV_WILL_TLS_CA_FILE] = c->tls_ca_file,
        [DV_WILL_TLS_CERTIFICATE_FILE] = c->tls_certificate_file,
        [DV_WILL_TLS_KEY_FILE] = c->tls_key_file,
        [DV_WILL_TLS_KEY_PASSWORD_FILE] = c->tls_key_password_file,
        [DV_WILL_SASL_MECHANISM] = c->sasl_mechanism,
        [DV_WILL_SASL_USER] = c->sasl_user,
        [DV_WILL_SASL_PASSWORD_FILE] = c->sasl_password_file,
        [DV_WILL_SASL_SERVICE] = c->sasl_service,
        [DV_WILL_SASL_HOST] = c->sasl_host,
    };
    for (int i = 0; i < DV_WILL_TEXTS; i++) {
        if (!given[i]) continue;
        watch->texts[i] = i == DV_WILL_HOSTS ? copy_hosts(given[i]) : strdup(given[i]);
        if (!watch->texts[i]) return DIVVY_ENOMEM;
        watch->will.texts[i] = watch->texts[i];
    }
    watch->will.acl = c->acl;
    watch->will.delay_ms = c->failover_delay_ms;
    watch->message = malloc(DV_WILL_BYTES_MAX);
    return watch->message ? 0 : DIVVY_ENOMEM;
}

static size_t print_will(dv_death_watch *watch) {
    return dv_will_print(&watch->will, watch->message, DV_WILL_BYTES_MAX);
}

static bool fits(dv_death_watch *watch) {
    size_t bytes = print_will(watch);
    explicit_bzero(watch->message, bytes);
    return bytes > 0;
}

int dv_death_watch_use(dv_death_watch **out, const divvy_client_config *config, int socket_fd) {
    assert(socket_fd >= 0);
    *out = NULL;
    dv_death_watch *watch = calloc(1, sizeof *watch);
    if (!watch) return dv_fail_plainly(NULL, DIVVY_ENOMEM);
    watch->socket_fd = socket_fd;
    int error = fill(watch, config);
    if (error) dv_fail_plainly(NULL, error);
    else if (!fits(watch))
        error = dv_fail(NULL, DIVVY_EINVAL, "open: death_watch takes hosts, credentials and names of files of %d bytes",
                        DV_WILL_BYTES_MAX);
    if (error) dv_death_watch_free(watch);
    else *out = watch;
    return error;
}

/* A watch that does not read is stopped, or has ended: nobody waits for it. */
static void send_will(dv_death_watch *watch) {
    size_t bytes = print_will(watch);
    assert(bytes > 0); /* fits() and dv_death_watch_joined() have said so. */
    send(watch->socket_fd, watch->message, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
    explicit_bzero(watch->message, bytes);
}

void dv_death_watch_tell(dv_death_watch *watch, int64_t session_id, int64_t timeout_ms,
                         const char password[DV_SESSION_PASSWORD_BYTES]) {
    assert(session_id != 0);
    watch->will.session_id = session_id;
    watch->will.timeout_ms = timeout_ms;
    memcpy(watch->will.password, password, DV_SESSION_PASSWORD_BYTES);
    send_will(watch);
}

void dv_death_watch_forget(dv_death_watch *watch) {
    if (!watch) return;
    watch->will.session_id = 0;
    explicit_bzero(watch->will.password, sizeof watch->will.password);
    send_will(watch);
}

/* ---- the pools ---- */

static size_t find_pool(const dv_will *will, const char *path, const char *member) {
    size_t i = 0;
    while (i < will->pool_count &&
           (strcmp(will->pools[i].path, path) != 0 || strcmp(will->pools[i].member, member) != 0))
        i++;
    return i;
}

/* Those of the watch are its own copies. */
static void drop_pool(dv_will *will, size_t i) {
    free((void *)(uintptr_t)will->pools[i].path);
    free((void *)(uintptr_t)will->pools[i].member);
    will->pools[i] = will->pools[--will->pool_count];
}

void dv_death_watch_joined(dv_death_watch *watch, const char *path, const char *member) {
    dv_will *will = watch ? &watch->will : NULL;
    if (!will || will->pool_count == DV_WILL_POOLS_MAX || find_pool(will, path, member) < will->pool_count) return;
    dv_will_pool *pool = &will->pools[will->pool_count++];
    *pool = (dv_will_pool){strdup(path), strdup(member)};
    if (!pool->path || !pool->member || !fits(watch)) drop_pool(will, will->pool_count - 1);
    else if (will->session_id) send_will(watch);
}

void dv_death_watch_left(dv_death_watch *watch, const char *path, const char *member) {
    size_t i = watch ? find_pool(&watch->will, path, member) : 0;
    if (!watch || i == watch->will.pool_count) return;
    drop_pool(&watch->will, i);
    if (watch->will.session_id) send_will(watch);
}

bool dv_death_watch_lives(const dv_death_watch *watch) {
    if (!watch) return false;
    struct pollfd fd = {.fd = watch->socket_fd, .events = POLLIN};
    return poll(&fd, 1, 0) >= 0 && !(fd.revents & (POLLHUP | POLLERR));
}

void dv_death_watch_free(dv_death_watch *watch) {
    if (!watch) return;
    if (watch->owned) close(watch->socket_fd);
    for (int i = 0; i < DV_WILL_TEXTS; i++) wipe(watch->texts[i]);
    while (watch->will.pool_count > 0) drop_pool(&watch->will, 0);
    explicit_bzero(watch->will.password, sizeof watch->will.password);
    free(watch->message);
    free(watch);
}

/* ---- the program ---- */

static const char name[] = "divvy-death-watch";

#ifdef DIVVY_LIBEXEC_BELOW
/* Returns the program that was installed together with the shared library that this code is in, wherever both are now.
 * NULL: there is none, or this code is in a program. The caller frees it. */
static char *find_beside_library(void) {
    static const char end[] = "/" DIVVY_LIBDIR_BELOW "/libdivvy.so";
    Dl_info info;
    char *path = NULL;
    if (!dladdr(name, &info) || !info.dli_fname || info.dli_fname[0] != '/') return NULL;
    const char *prefix = info.dli_fname, *last = NULL;
    for (const char *at = prefix; (at = strstr(at, end)); at++) last = at;
    if (!last || strchr(last + sizeof end - 1, '/')) return NULL;
    if (asprintf(&path, "%.*s/%s/%s", (int)(last - prefix), prefix, DIVVY_LIBEXEC_BELOW, name) < 0) return NULL;
    if (access(path, X_OK) == 0) return path;
    free(path);
    return NULL;
}
#else
static char *find_beside_library(void) {
    return NULL;
}
#endif

static char *find_program(void) {
    const char *folder = secure_getenv("DIVVY_LIBEXEC");
    bool told = folder && *folder;
    char *path = told ? NULL : find_beside_library();
    return path ? path : dv_path_join(told ? folder : DIVVY_LIBEXEC, name);
}

/* Both descriptors are above those that the program is to have, so that neither takes the place of the other. */
static int spawn_with(pid_t *pid, const char *path, int socket_fd, int process_fd) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t all;
    char *const arguments[] = {(char *)(uintptr_t)name, NULL};
    int error = posix_spawn_file_actions_init(&actions);
    if (error) return error;
    error = posix_spawnattr_init(&attributes);
    if (error) {
        posix_spawn_file_actions_destroy(&actions);
        return error;
    }
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &all);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    error = posix_spawn_file_actions_adddup2(&actions, socket_fd, DV_DEATH_WATCH_SOCKET_FD);
    if (!error) error = posix_spawn_file_actions_adddup2(&actions, process_fd, DV_DEATH_WATCH_PROCESS_FD);
    if (!error) error = posix_spawn(pid, path, &actions, &attributes, arguments, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

static int spawn(pid_t *pid, const char *path, int socket_fd, int process_fd) {
    int high_socket_fd = fcntl(socket_fd, F_DUPFD_CLOEXEC, ABOVE_FD);
    if (high_socket_fd < 0) return errno;
    int high_process_fd = fcntl(process_fd, F_DUPFD_CLOEXEC, ABOVE_FD);
    int error = high_process_fd < 0 ? errno : spawn_with(pid, path, high_socket_fd, high_process_fd);
    close(high_socket_fd);
    if (high_process_fd >= 0) close(high_process_fd);
    return error;
}

static bool is_ready(int socket_fd) {
    int64_t until_ms = dv_monotonic_ms() + READY_MS, left_ms;
    struct pollfd fd = {.fd = socket_fd, .events = POLLIN};
    char byte = 0;
    int found = 0;
    while (found <= 0 && (left_ms = until_ms - dv_monotonic_ms()) > 0) {
        found = poll(&fd, 1, (int)left_ms);
        if (found < 0 && errno != EINTR) return false;
    }
    return found > 0 && recv(socket_fd, &byte, 1, 0) == 1 && byte == DV_DEATH_WATCH_READY;
}

/* The program's first process ends at once. Where a host ignores SIGCHLD, or reaps all its children, it is nobody's by
 * now, and its pid may be another's: only what is still our child is killed. */
static void reap(pid_t pid, bool ready) {
    siginfo_t found = {0};
    if (!ready && waitid(P_PID, (id_t)pid, &found, WEXITED | WNOHANG | WNOWAIT) == 0 && found.si_pid == 0)
        kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) continue;
}

static int start_program(int socket_fd, int program_fd, int process_fd) {
    char *path = find_program();
    pid_t pid = 0;
    int error = path ? spawn(&pid, path, program_fd, process_fd) : 0;
    close(program_fd);
    if (!path) return dv_fail_plainly(NULL, DIVVY_ENOMEM);
    bool ready = !error && is_ready(socket_fd);
    if (!error) reap(pid, ready);
    if (error)
        dv_fail(NULL, DIVVY_ESYSTEM,
                "open: the death watch %.300s cannot be started: %s; install it with the library, set $DIVVY_LIBEXEC "
                "to its folder, or leave death_watch 0",
                path, strerrordesc_np(error));
    else if (!ready)
        error = dv_fail(NULL, DIVVY_ESYSTEM,
                        "open: the death watch %.300s was started, and ended or said nothing within %d s; see that it "
                        "is of this library's version",
                        path, READY_MS / 1000);
    free(path);
    return error ? DIVVY_ESYSTEM : 0;
}

int dv_death_watch_start(dv_death_watch **out, const divvy_client_config *config) {
    int ends[2];
    *out = NULL;
    int process_fd = dv_death_watch_self();
    if (process_fd < 0)
        return dv_fail(NULL, errno == EMFILE || errno == ENFILE ? DIVVY_ESYSTEM : DIVVY_EUNSUPPORTED,
                       "open: death_watch needs a pidfd, which the kernel refuses: %s; Linux has them since 5.3",
                       strerrordesc_np(errno));
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        close(process_fd);
        return dv_fail(NULL, DIVVY_ESYSTEM, "open: the death watch can have no socket: %s", strerrordesc_np(errno));
    }
    int error = start_program(ends[0], ends[1], process_fd);
    close(process_fd);
    if (!error) error = dv_death_watch_use(out, config, ends[0]);
    if (error) close(ends[0]);
    else (*out)->owned = true;
    return error;
}
