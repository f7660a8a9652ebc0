/* A program with a death watch, that dies as it is told. SPDX-License-Identifier: Apache-2.0
 *
 * usage: death_watch_member CONTROL_FD HOSTS PATH SESSION_TIMEOUT_MS OPTIONS
 *
 * Holds the lock at PATH and says so by the socket CONTROL_FD. Then each message that comes is an order (orders[]), and
 * is answered, unless the program ends by it. Each letter of OPTIONS changes something before (prepare()). */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "death_watch_member.h"
#include "divvy/divvy.h"

enum { PATIENCE_MS = 40000, CLIENTS = 2 };

static int control_fd;
static divvy_client *clients[CLIENTS];
static divvy_lock *locks[CLIENTS];

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...) {
    char text[DV_MEMBER_TEXT_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (send(control_fd, text, strlen(text) + 1, MSG_NOSIGNAL) < 0) _exit(2);
}

/* ---- before ---- */

static void *reap_all(void *context) {
    for (;;) {
        if (waitpid(-1, NULL, 0) < 0 && errno == ECHILD) usleep(1000);
    }
    return context;
}

static bool has(const char *options, char letter) {
    return strchr(options, letter) != NULL;
}

static void prepare(const char *options) {
    pthread_t thread;
    if (has(options, DV_MEMBER_IGNORES_CHILDREN)) signal(SIGCHLD, SIG_IGN);
    if (has(options, DV_MEMBER_REAPS_ALL)) pthread_create(&thread, NULL, reap_all, NULL);
    if (has(options, DV_MEMBER_CLOSED_STDIO))
        for (int fd = 0; fd <= STDERR_FILENO; fd++) close(fd);
    if (has(options, DV_MEMBER_LITTLE_MEMORY)) setrlimit(RLIMIT_AS, &(struct rlimit){1 << 29, 1 << 29});
}

static int hold(int i, const divvy_client_config *config, const char *path) {
    divvy_lock_config lock_config = DIVVY_LOCK_CONFIG_INIT;
    int error = divvy_client_open(&clients[i], config);
    lock_config.path = path;
    lock_config.identifier = "member";
    if (!error) error = divvy_lock_create(&locks[i], clients[i], &lock_config);
    return error ? error : divvy_lock_acquire(locks[i], PATIENCE_MS);
}

static void begin(char **argv) {
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    char other[256];
    const char *path = argv[3], *options = argv[5];
    config.hosts = argv[2];
    config.session_timeout_ms = atoi(argv[4]);
    config.ensemble_tick_ms = DV_MEMBER_TICK_MS;
    config.death_watch = 1;
    if (has(options, DV_MEMBER_CREDENTIALS)) {
        config.auth_scheme = "digest";
        config.auth = DV_MEMBER_AUTH;
    }
    prepare(options);
    int error = hold(0, &config, path);
    snprintf(other, sizeof other, "%s-2", path);
    if (!error && has(options, DV_MEMBER_TWO_CLIENTS)) error = hold(1, &config, other);
    if (error) say("failed: %s", divvy_client_error(clients[0]));
    else say("held %" PRIx64, (uint64_t)divvy_client_session_id(clients[0]));
}

/* ---- orders ---- */

static void close_one(int i) {
    divvy_lock_destroy(locks[i]);
    divvy_client_close(clients[i]);
    locks[i] = NULL;
    clients[i] = NULL;
}

static void close_all(void) {
    for (int i = 0; i < CLIENTS; i++) close_one(i);
    say("closed");
}

static void close_first(void) {
    close_one(0);
    say("closed");
}

static void die_by_kill(void) {
    raise(SIGKILL);
}

static void die_by_segmentation(void) {
    signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
}

static void die_by_abort(void) {
    abort();
}

static void die_by_exit(void) {
    _exit(3);
}

static void become_another(void) {
    execl("/bin/sleep", "sleep", "1000", (char *)NULL);
    _exit(2);
}

static void *become_another_in_thread(void *context) {
    become_another();
    return context;
}

static void become_another_by_thread(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, become_another_in_thread, NULL);
    pause();
}

static void leave_child(void) {
    pid_t child = fork();
    if (child == 0)
        for (;;) pause();
    say("%d", (int)child);
}

static void tell_children(void) {
    say("%s", waitpid(-1, NULL, WNOHANG | __WALL) < 0 && errno == ECHILD ? "none" : "some");
}

static void close_inherited(void) {
    say("%s", close(DV_MEMBER_PIPE_FD) == 0 ? "closed" : "not open");
}

static int keep_text(void *user, const char *text, size_t bytes) {
    char *all = user;
    size_t used = strlen(all), room = DV_MEMBER_METRICS_MAX - 1 - used;
    strncat(all, text, bytes < room ? bytes : room);
    return 0;
}

static void tell_metric(void) {
    static char all[DV_MEMBER_METRICS_MAX];
    all[0] = '\0';
    int value = -1;
    if (divvy_metrics_write(clients[0], keep_text, all) == 0) {
        const char *line = strstr(all, "\ndivvy_death_watch ");
        if (line) sscanf(line, "\ndivvy_death_watch %d", &value);
    }
    say("%d", value);
}

static void tell_held(void) {
    say("%s", divvy_lock_held(locks[0]) ? "held" : "not held");
}

/* After the loss of a session. */
static void hold_again(void) {
    int error;
    do error = divvy_lock_acquire(locks[0], PATIENCE_MS);
    while (error == DIVVY_ELOST || error == DIVVY_ECONNECTION);
    if (error) say("failed: %s", divvy_client_error(clients[0]));
    else say("held %" PRIx64, (uint64_t)divvy_client_session_id(clients[0]));
}

static void *take_orders(void *context);

static void end_first_thread(void) {
    static char answers;
    pthread_t thread;
    pthread_create(&thread, NULL, take_orders, &answers);
    pthread_exit(NULL);
}

static void (*const orders[256])(void) = {
    [DV_ORDER_KILL] = die_by_kill,
    [DV_ORDER_SEGMENTATION] = die_by_segmentation,
    [DV_ORDER_ABORT] = die_by_abort,
    [DV_ORDER_EXIT] = die_by_exit,
    [DV_ORDER_EXEC] = become_another,
    [DV_ORDER_EXEC_BY_THREAD] = become_another_by_thread,
    [DV_ORDER_END_FIRST_THREAD] = end_first_thread,
    [DV_ORDER_FORK] = leave_child,
    [DV_ORDER_CLOSE] = close_all,
    [DV_ORDER_CLOSE_FIRST] = close_first,
    [DV_ORDER_CHILDREN] = tell_children,
    [DV_ORDER_CLOSE_PIPE] = close_inherited,
    [DV_ORDER_METRIC] = tell_metric,
    [DV_ORDER_HELD] = tell_held,
    [DV_ORDER_HOLD_AGAIN] = hold_again,
};

/* `context` is not NULL in another thread than the first. */
static void *take_orders(void *context) {
    unsigned char order;
    if (context) say("another");
    while (recv(control_fd, &order, 1, 0) == 1)
        if (orders[order]) orders[order]();
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 6) return 2;
    control_fd = atoi(argv[1]);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    begin(argv);
    take_orders(NULL);
    return 0;
}
