/* A death watch: ends the session of a process that has ended. SPDX-License-Identifier: Apache-2.0 */
#include "zookeeper/watcher.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/threads.h"
#include "zookeeper/deaths.h"
#include "zookeeper/open.h"

#ifndef SYS_close_range
#define SYS_close_range 436 /* on every architecture but alpha; kernel headers before 5.9 lack it */
#endif

/* AGAIN_MS: between two attempts, at first and at most. ATTEMPT: how long the first one lasts, in parts of the timeout
 * and at least: a look at all servers over TLS takes 5 s where one hangs. TIMEOUTS: the session has ended by itself
 * when so many have passed. */
enum { AGAIN_MS = 10, AGAIN_MAX_MS = 1000, ATTEMPT_PARTS = 8, ATTEMPT_LEAST_MS = 6000, TIMEOUTS = 2 };
enum { CLOSE_MAX = 1024 * 1024 };

static int64_t now_ms(void) {
    return dv_clock_ms(CLOCK_BOOTTIME);
}

int dv_watcher_init(dv_watcher *watcher, int socket_fd, int process_fd) {
    *watcher = (dv_watcher){.socket_fd = socket_fd, .process_fd = process_fd};
    void *memory = mmap(NULL, DV_WILL_BYTES_MAX, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return -1;
    /* Each of these may be refused: then the password is no less safe than in the process itself. */
    mlock(memory, DV_WILL_BYTES_MAX);
    madvise(memory, DV_WILL_BYTES_MAX, MADV_DONTDUMP);
    madvise(memory, DV_WILL_BYTES_MAX, MADV_WIPEONFORK);
    watcher->message = memory;
    return 0;
}

static void forget(dv_watcher *watcher) {
    explicit_bzero(watcher->message, DV_WILL_BYTES_MAX);
    watcher->bytes = 0;
}

void dv_watcher_listen(dv_watcher *watcher) {
    dv_will will;
    ssize_t bytes = -1;
    while (watcher->socket_fd >= 0) {
        bytes = recv(watcher->socket_fd, watcher->message, DV_WILL_BYTES_MAX, MSG_DONTWAIT);
        if (bytes < 0 && errno == EINTR) continue;
        if (bytes <= 0) break;
        bool holds = dv_will_parse(&will, watcher->message, (size_t)bytes) == 0 && will.session_id != 0;
        explicit_bzero(will.password, sizeof will.password);
        watcher->bytes = (size_t)bytes;
        if (!holds) forget(watcher);
    }
    if (bytes == 0 || (bytes < 0 && errno != EAGAIN)) watcher->socket_fd = -1;
}

bool dv_watcher_has_ended(dv_watcher *watcher) {
    struct pollfd fd = {.fd = watcher->process_fd, .events = POLLIN};
    if (watcher->ended_ms) return true;
    if (poll(&fd, 1, 0) <= 0 || !(fd.revents & POLLIN)) return false;
    watcher->ended_ms = now_ms();
    dv_watcher_listen(watcher); /* It may have told of another session, or of none, just before. */
    return true;
}

/* A limit may be a thousand million descriptors, and old kernels have no better call: those above CLOSE_MAX stay. */
static void close_between(int first, int last) {
    if (first > last || syscall(SYS_close_range, (unsigned)first, (unsigned)last, 0) == 0) return;
    long open_max = sysconf(_SC_OPEN_MAX);
    for (int fd = first; fd <= last && fd < open_max && fd < CLOSE_MAX; fd++) close(fd);
}

/* The places of standard input, output and error stay taken, by the pidfd where there is no /dev/null: a socket in one
 * of them would get the messages of libraries. */
void dv_watcher_detach(const dv_watcher *watcher) {
    int a = watcher->process_fd, b = watcher->socket_fd, nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    int low = a < b ? a : b, high = a < b ? b : a;
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fd == a || fd == b || fd == nothing) continue;
        dup2(nothing >= 0 ? nothing : watcher->process_fd, fd);
    }
    close_between(STDERR_FILENO + 1, low - 1);
    close_between((low > STDERR_FILENO ? low : STDERR_FILENO) + 1, high - 1);
    close_between((high > STDERR_FILENO ? high : STDERR_FILENO) + 1, INT_MAX);
}

static int64_t patience_ms(const dv_will *will) {
    return TIMEOUTS * will->timeout_ms;
}

/* Returns for how long the process is waited for, once its socket has closed without a word. */
static int64_t silent_ms(const dv_watcher *watcher) {
    dv_will will;
    if (dv_will_parse(&will, watcher->message, watcher->bytes) != 0) return 0;
    explicit_bzero(will.password, sizeof will.password);
    return patience_ms(&will);
}

bool dv_watcher_wait(dv_watcher *watcher) {
    int64_t until_ms = -1;
    for (;;) {
        dv_watcher_listen(watcher);
        if (dv_watcher_has_ended(watcher)) return dv_watcher_has_will(watcher);
        if (watcher->socket_fd < 0 && until_ms < 0) until_ms = now_ms() + silent_ms(watcher);
        int64_t left_ms = until_ms < 0 ? -1 : until_ms - now_ms();
        if (until_ms >= 0 && left_ms <= 0) return false;
        struct pollfd fds[] = {{.fd = watcher->process_fd, .events = POLLIN},
                               {.fd = watcher->socket_fd, .events = POLLIN}};
        poll(fds, 2, (int)(left_ms < INT_MAX ? left_ms : INT_MAX));
    }
}

/* ---- ending a session ---- */

static divvy_client_config config_of(const dv_will *will) {
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.hosts = will->texts[DV_WILL_HOSTS];
    config.session_timeout_ms = will->timeout_ms;
    config.manual = 1;
    config.auth_scheme = will->texts[DV_WILL_AUTH_SCHEME];
    config.auth = will->texts[DV_WILL_AUTH];
    config.acl = will->acl;
    config.tls_ca_file = will->texts[DV_WILL_TLS_CA_FILE];
    config.tls_certificate_file = will->texts[DV_WILL_TLS_CERTIFICATE_FILE];
    config.tls_key_file = will->texts[DV_WILL_TLS_KEY_FILE];
    config.tls_key_password_file = will->texts[DV_WILL_TLS_KEY_PASSWORD_FILE];
    config.sasl_mechanism = will->texts[DV_WILL_SASL_MECHANISM];
    config.sasl_user = will->texts[DV_WILL_SASL_USER];
    config.sasl_password_file = will->texts[DV_WILL_SASL_PASSWORD_FILE];
    config.sasl_service = will->texts[DV_WILL_SASL_SERVICE];
    config.sasl_host = will->texts[DV_WILL_SASL_HOST];
    return config;
}

/* Connects with the session, and closes it. Returns DIVVY_ELOST when a server says that it has ended. A close has no
 * answer, so only a second attempt tells that the first one has done it. */
static int end_session(const divvy_client_config *config, const dv_will *will, int64_t left_ms) {
    divvy_client *client;
    dv_session_key key = {.id = will->session_id};
    memcpy(key.password, will->password, sizeof key.password);
    int error = dv_client_open_to_end(&client, config, &key);
    explicit_bzero(&key, sizeof key);
    if (error) return error;
    error = divvy_client_wait_connected(client, left_ms);
    divvy_client_close(client);
    return error;
}

static void wait_ms(int64_t ms) {
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

static int64_t least(int64_t a_ms, int64_t b_ms) {
    return a_ms < b_ms ? a_ms : b_ms;
}

/* A server that hangs, or has just begun to listen, may take a connection and never answer. So each attempt makes a new
 * one, and lasts twice as long as the one before. */
void dv_watcher_execute(dv_watcher *watcher) {
    dv_will will;
    int error = -1;
    bool ended = dv_watcher_has_ended(watcher);
    bool told = dv_will_parse(&will, watcher->message, watcher->bytes) == 0 && will.session_id != 0;
    if (!dv_will_is_due(told, ended, true)) return;
    const divvy_client_config config = config_of(&will);
    int64_t until_ms = watcher->ended_ms + patience_ms(&will), pause_ms = will.delay_ms, left_ms;
    int64_t again_ms = AGAIN_MS, attempt_ms = will.timeout_ms / ATTEMPT_PARTS;
    if (attempt_ms < ATTEMPT_LEAST_MS) attempt_ms = ATTEMPT_LEAST_MS;
    while (error != DIVVY_ELOST && error != DIVVY_EAUTH && (left_ms = until_ms - now_ms()) > 0) {
        wait_ms(pause_ms);
        error = end_session(&config, &will, least(attempt_ms, left_ms));
        pause_ms = again_ms;
        again_ms = least(2 * again_ms, AGAIN_MAX_MS);
        attempt_ms = least(2 * attempt_ms, patience_ms(&will));
    }
    int64_t seen_ms = now_ms() - watcher->ended_ms;
    if (error == DIVVY_ELOST) dv_deaths_record(&config, &will, seen_ms, until_ms);
    explicit_bzero(&will, sizeof will);
    forget(watcher);
}
