/* divvy partition: one member of a pool, told line by line. SPDX-License-Identifier: Apache-2.0
 *
 * Everything happens on one thread: the client is in manual mode, and signals come through a descriptor. So a line is
 * written completely before the next thing happens, and what it says comes before what follows from it: an item is
 * told as revoked before its lock is given back. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include <divvy/divvy.h>

#include "command.h"
#include "ledger.h"
#include "output.h"
#include "partition_options.h"

enum { CONNECT_NOTICE_MS = 5000, FINISH_TIMEOUT_MS = 5000, REASON_BYTES = 512 };

typedef struct {
    dv_partition_options options;
    dv_output output;
    dv_ledger ledger;
    divvy_client *client;
    divvy_partitioner *p;
    int signal_fd;
    int signals; /* how many asked us to end */
    int64_t started_ms;
    char ending[REASON_BYTES]; /* why we end, where that is not the partitioner's own failure; told in FAILURE */
    bool connected;            /* a server has answered at least once */
    bool wait_was_told;        /* that none has */
    bool suspended;            /* the connection is down; told */
} member;

static int64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- what the library tells ---- */

static void on_items(divvy_partitioner *p, const divvy_items_event *event, void *user) {
    (void)p;
    dv_ledger_items(&((member *)user)->ledger, event);
}

static void on_state(divvy_partitioner *p, divvy_partition_state from, divvy_partition_state to, void *user) {
    (void)from;
    member *m = user;
    char reason[REASON_BYTES] = "";
    if (to == DIVVY_FAILURE && divvy_partitioner_failure(p, reason, sizeof reason) == DIVVY_ECANCELED && *m->ending)
        snprintf(reason, sizeof reason, "%s", m->ending);
    dv_ledger_state(&m->ledger, to, to == DIVVY_FAILURE ? reason : NULL);
    /* Nobody works on items inside this process, so that the line was all there was to do. When it could not be
     * written, the process ends anyway. DIVVY_ESTATE: the state has moved on meanwhile, and is told next. */
    if (to == DIVVY_RELEASE) divvy_partitioner_release_set(p);
}

static void on_warning(divvy_client *client, int code, const char *message, void *user) {
    (void)client;
    (void)code;
    (void)user;
    dv_command_say("warning: %s", message);
}

static void on_log(int level, const char *message, void *user) {
    static const char *const names[] = {"", "error", "warn", "info", "debug"};
    (void)user;
    dv_command_say("log %s: %s", names[level >= DIVVY_LOG_ERROR && level <= DIVVY_LOG_DEBUG ? level : 0], message);
}

static void on_session(divvy_client *client, divvy_session_state state, void *user) {
    member *m = user;
    if (state == DIVVY_SUSPENDED) {
        dv_command_say("warning: the connection to %s is down; ownership ends in %" PRId64 " ms unless it comes back",
                       m->options.connect, divvy_client_time_left_ms(client));
        m->suspended = true;
    } else if (state == DIVVY_CONNECTED && m->suspended) {
        dv_command_say("the connection is back");
        m->suspended = false;
    }
}

/* ---- the first connection ---- */

/* Tells why we end, on stderr now and in the line of the state later. Returns `code`. */
__attribute__((format(printf, 3, 4))) static int end(member *m, int code, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(m->ending, sizeof m->ending, format, arguments);
    va_end(arguments);
    dv_command_say("%s", m->ending);
    return code;
}

/* Returns 0 while all is well or may become so, else the exit code, with the reason told. */
static int check_connection(member *m) {
    if (m->connected || divvy_partitioner_failure(m->p, NULL, 0) != 0) return 0;
    int error = divvy_client_wait_connected(m->client, 0);
    int64_t waited_ms = now_ms() - m->started_ms, limit_ms = m->options.connect_timeout_ms;
    if (error == 0) {
        m->connected = true;
        if (m->wait_was_told) dv_command_say("connected after %.1f s", (double)waited_ms / 1000);
        return 0;
    }
    if (error != DIVVY_ETIMEDOUT && error != DIVVY_ERESOLVE)
        return end(m, DV_EXIT_FAILED, "%s", divvy_client_error(m->client));
    const char *what =
        error == DIVVY_ERESOLVE ? "no host name could be resolved of" : "no ZooKeeper server answered at";
    if (limit_ms && waited_ms >= limit_ms)
        return end(m, DV_EXIT_UNREACHABLE, "%s %s within %" PRId64 " ms", what, m->options.connect, limit_ms);
    if (!m->wait_was_told && waited_ms >= CONNECT_NOTICE_MS) {
        dv_command_say("%s %s for %.1f s; still trying", what, m->options.connect, (double)waited_ms / 1000);
        m->wait_was_told = true;
    }
    return 0;
}

/* How long until check_connection() may have something to say by the clock alone; -1: no more. */
static int64_t until_check_ms(const member *m) {
    if (m->connected) return -1;
    int64_t at_ms = m->wait_was_told ? INT64_MAX : CONNECT_NOTICE_MS;
    if (m->options.connect_timeout_ms && m->options.connect_timeout_ms < at_ms) at_ms = m->options.connect_timeout_ms;
    if (at_ms == INT64_MAX) return -1;
    int64_t left_ms = m->started_ms + at_ms - now_ms();
    return left_ms > 0 ? left_ms : 0;
}

/* ---- the loop ---- */

static int64_t earlier(int64_t a_ms, int64_t b_ms) {
    return a_ms < 0 || (b_ms >= 0 && b_ms < a_ms) ? b_ms : a_ms;
}

static void take_signals(member *m) {
    struct signalfd_siginfo info;
    while (read(m->signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
        if (++m->signals < 2) continue;
        /* Whoever asks twice does not want to wait. The servers delete our nodes when the session times out. */
        sigset_t one;
        sigemptyset(&one);
        sigaddset(&one, (int)info.ssi_signo);
        signal((int)info.ssi_signo, SIG_DFL);
        raise((int)info.ssi_signo);
        sigprocmask(SIG_UNBLOCK, &one, NULL);
    }
}

/* One round: waits for something, at most limit_ms (-1: for ever), and does what is due. */
static void step(member *m, int64_t limit_ms) {
    int64_t wait_ms = earlier(limit_ms, divvy_client_next_deadline(m->client));
    struct pollfd fds[] = {{.fd = divvy_client_fd(m->client), .events = POLLIN},
                           {.fd = m->signal_fd, .events = POLLIN},
                           {.fd = dv_output_fd(&m->output)}};
    if (poll(fds, 3, wait_ms > INT_MAX ? INT_MAX : (int)wait_ms) < 0) return; /* EINTR: a debugger, or SIGCONT */
    if (fds[1].revents) take_signals(m);
    dv_output_heard(&m->output, fds[2].revents);
    divvy_client_process(m->client, 0);
}

static bool should_end(const member *m) {
    return m->signals > 0 || m->output.ended || m->ledger.out_of_memory || m->ledger.state == DIVVY_FAILURE;
}

static int take_part(member *m) {
    int code = 0;
    dv_ledger_state(&m->ledger, DIVVY_ALLOCATING, NULL);
    while (!should_end(m) && (code = check_connection(m)) == 0) step(m, until_check_ms(m));
    return code;
}

/* ---- the end ---- */

/* Why the loop ended, as an exit code, with the reason told if it is none to be proud of. */
static int judge(member *m) {
    if (m->output.error)
        return end(m, DV_EXIT_FAILED, "cannot write to standard output: %s", strerror(m->output.error));
    if (m->ledger.out_of_memory) return end(m, DV_EXIT_FAILED, "out of memory");
    if (m->ledger.state != DIVVY_FAILURE) return DV_EXIT_DONE;
    char reason[REASON_BYTES] = "";
    int error = divvy_partitioner_failure(m->p, reason, sizeof reason);
    return end(m, DV_EXIT_FAILED, "FAILURE: %s (%s)", reason, divvy_strerror(error));
}

/* Leaves the pool, for which there is time while servers answer. A second signal ends it, see take_signals(). */
static void leave(member *m) {
    int64_t deadline_ms = now_ms() + FINISH_TIMEOUT_MS, left_ms = FINISH_TIMEOUT_MS;
    /* What is given back must have been told as revoked before. */
    dv_ledger_revoke_all(&m->ledger);
    int error;
    while ((error = divvy_partitioner_finish(m->p, 0)) == DIVVY_ETIMEDOUT && left_ms > 0) {
        step(m, left_ms);
        left_ms = deadline_ms - now_ms();
    }
    /* FAILURE may still have to be told. */
    while (m->ledger.state != DIVVY_FAILURE && divvy_client_process(m->client, 0) > 0) continue;
    if (m->ledger.state != DIVVY_FAILURE)
        dv_ledger_state(&m->ledger, DIVVY_FAILURE, *m->ending ? m->ending : "finished");
    if (error == DIVVY_ETIMEDOUT)
        dv_command_say("warning: no server has confirmed within %d s that this member has left; the servers delete "
                       "its nodes when its session times out",
                       FINISH_TIMEOUT_MS / 1000);
}

/* ---- the beginning ---- */

static int open_signals(void) {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    /* nohup(1) has it ignored, and means it. */
    struct sigaction hangup;
    if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN) sigaddset(&signals, SIGHUP);
    if (sigprocmask(SIG_BLOCK, &signals, NULL) != 0) return -1;
    return signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* The library's message, or the plain text of the error where it left none. */
static int refused(const divvy_client *client, int error) {
    const char *message = divvy_client_error(client);
    if (!*message) message = divvy_strerror(error);
    if (error == DIVVY_EINVAL || error == DIVVY_E2BIG || error == DIVVY_EUNSUPPORTED)
        return dv_command_misused("partition", "%s", message);
    dv_command_say("%s", message);
    return DV_EXIT_FAILED;
}

static int open_client(member *m) {
    const dv_partition_options *o = &m->options;
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.hosts = o->connect;
    config.session_timeout_ms = o->session_timeout_ms;
    config.ensemble_tick_ms = o->ensemble_tick_ms;
    config.manual = 1;
    config.auth_scheme = o->auth ? "digest" : NULL;
    config.auth = o->auth;
    config.acl = o->acl;
    config.on_session = on_session;
    config.on_warning = on_warning;
    config.on_log = o->verbose ? on_log : NULL;
    config.user = m;
    m->started_ms = now_ms();
    int error = divvy_client_open(&m->client, &config);
    return error ? refused(NULL, error) : 0;
}

static int join(member *m) {
    const dv_partition_options *o = &m->options;
    divvy_partitioner_config config = DIVVY_PARTITIONER_CONFIG_INIT;
    config.path = o->path;
    config.items = o->list.names;
    config.item_count = o->list.count;
    config.identifier = o->identifier;
    config.mode = o->mode;
    config.assign = o->assign;
    config.time_boundary_ms = o->time_boundary_ms;
    config.leave_boundary_ms = o->leave_boundary_ms;
    config.allocate_timeout_ms = o->allocate_timeout_ms;
    config.on_state = on_state;
    config.on_items = on_items;
    config.user = m;
    int error = divvy_partitioner_create(&m->p, m->client, &config);
    return error ? refused(m->client, error) : 0;
}

static int run_member(member *m) {
    if (dv_ledger_init(&m->ledger, &m->options.list, &m->output) != 0) {
        dv_command_say("out of memory");
        return DV_EXIT_FAILED;
    }
    m->ledger.json = m->options.json;
    m->ledger.timestamps = m->options.timestamps;
    m->signal_fd = m->output.stop_fd = open_signals();
    if (m->signal_fd < 0) {
        dv_command_say("cannot receive signals: %s", strerror(errno));
        return DV_EXIT_FAILED;
    }
    int code = open_client(m);
    if (code == 0) code = join(m);
    if (code != 0) return code;
    code = take_part(m);
    if (code == 0) code = judge(m);
    leave(m);
    return code;
}

static int run(int argc, char **argv) {
    member m = {.signal_fd = -1};
    int code = DV_EXIT_USAGE;
    int outcome = dv_partition_options_parse(&m.options, argc, argv);
    if (outcome == DV_OPTIONS_HELP) {
        dv_partition_print_help();
        code = dv_command_printed();
    } else if (outcome == DV_OPTIONS_PARSED) {
        code = run_member(&m);
    }
    divvy_partitioner_destroy(m.p);
    divvy_client_close(m.client);
    if (m.signal_fd >= 0) close(m.signal_fd);
    dv_ledger_free(&m.ledger);
    dv_partition_options_free(&m.options);
    return code;
}

const dv_command dv_partition_command = {
    .name = "partition",
    .summary = "join a pool and print which items are this member's",
    .run = run,
    .print_help = dv_partition_print_help,
};
