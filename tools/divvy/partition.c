/* divvy partition: one member of a pool, told line by line. SPDX-License-Identifier: Apache-2.0
 *
 * Everything happens on one thread: the client is in manual mode, and signals come through a descriptor. So a line is
 * written completely before the next thing happens, and what it says comes before what follows from it: an item is told
 * as revoked before its lock is given back.
 *
 * With a command the order of things is: it is looked up; the process that guardians are forked from is forked,
 * while we have no connection; we join. Each round tells the guardians until when the session is certainly alive.
 * Revoked items are released when all that had to end has ended. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <divvy/divvy.h>

#include "command.h"
#include "connection.h"
#include "guardian.h"
#include "ledger.h"
#include "log.h"
#include "output.h"
#include "partition_items.h"
#include "partition_load.h"
#include "partition_options.h"
#include "program.h"
#include "quarantine.h"
#include "supervise.h"

enum { FINISH_TIMEOUT_MS = 5000, REASON_BYTES = DV_SESSION_REASON_BYTES };

typedef struct {
    dv_partition_options options;
    dv_output output;
    dv_ledger ledger;
    dv_partition_items items;
    dv_partition_load load;
    dv_quarantine quarantine;
    dv_session session; /* its `ending`, where that is not the partitioner's own failure, is told in FAILURE too */
    divvy_partitioner *p;
    char *program; /* of the command */
    dv_guardians *guardians;
    dv_supervisor *supervisor; /* NULL: there is no command */
    int64_t session_id;        /* under which commands were started */
    bool session_over;         /* and some still run */
    bool to_release;           /* DIVVY_RELEASE was told, and not answered */
    int signal_fd;             /* what asks us to end */
    int hangup_fd;             /* SIGHUP, where it asks for the items to be read again; -1: it does not */
    int signals;               /* how many asked us to end */
    bool leaving;              /* nothing is handed over from now on */
    bool on_terminal;          /* at the beginning */
} member;

/* ---- what is owned ---- */

/* Answers DIVVY_RELEASE as soon as our commands have stopped. Work of the reader of our lines is not ours to wait for.
 * Where it could not be written, the process ends anyway. DIVVY_ESTATE: the state has moved on meanwhile, and is told
 * next. */
static void release_if_clear(member *m) {
    if (!m->to_release || (m->supervisor && !dv_supervisor_is_clear(m->supervisor))) return;
    m->to_release = false;
    divvy_partitioner_release_set(m->p);
}

/* Tells the guardians until when commands may run. After a loss the client soon has another session, which is of no use
 * to commands that run under the old one. */
static void tell_deadline(member *m) {
    assert(m->supervisor && m->guardians);
    int64_t now_ms = dv_guardians_now_ms(), id = divvy_client_session_id(m->session.client);
    bool runs = dv_supervisor_running(m->supervisor) > 0;
    if (runs && id != m->session_id) m->session_over = true;
    if (!runs) m->session_over = false;
    m->session_id = id;
    int64_t left_ms = m->session_over ? 0 : divvy_client_time_left_ms(m->session.client);
    assert(left_ms >= 0);
    dv_supervisor_set_time_left(m->supervisor, now_ms, left_ms);
}

/* ---- what the library tells ---- */

static void supervise_items(member *m, const divvy_items_event *event) {
    assert(m->supervisor);
    /* After --allocate-timeout the locks are there until we finish: time to drain. */
    if (event->reason == DIVVY_REASON_TIMEOUT) dv_supervisor_revoke(m->supervisor, event->lost, event->lost_count);
    else dv_supervisor_lose(m->supervisor, event->lost, event->lost_count);
    dv_supervisor_gain(m->supervisor, event->gained, event->gained_tokens, event->gained_count);
    dv_supervisor_revoke(m->supervisor, event->revoked, event->revoked_count);
    if (event->reason == DIVVY_REASON_SESSION) dv_supervisor_dismiss(m->supervisor);
    if (m->options.standby) dv_supervisor_prepare(m->supervisor, event->prepare, event->prepare_count);
    if (event->reason == DIVVY_REASON_SESSION && dv_supervisor_running(m->supervisor) > 0) m->session_over = true;
}

static void on_items(divvy_partitioner *p, const divvy_items_event *event, void *user) {
    (void)p;
    member *m = user;
    /* Commands first: the reader of the line may let us wait. */
    if (m->supervisor) supervise_items(m, event);
    dv_ledger_items(&m->ledger, event);
}

static void on_state(divvy_partitioner *p, divvy_partition_state from, divvy_partition_state to, void *user) {
    (void)from;
    member *m = user;
    char reason[REASON_BYTES] = "";
    if (to == DIVVY_FAILURE && divvy_partitioner_failure(p, reason, sizeof reason) == DIVVY_ECANCELED &&
        *m->session.ending)
        snprintf(reason, sizeof reason, "%s", m->session.ending);
    dv_ledger_state(&m->ledger, to, to == DIVVY_FAILURE ? reason : NULL);
    m->to_release = to == DIVVY_RELEASE;
    release_if_clear(m);
}

static bool is_owned(const char *item, void *user) {
    return divvy_partitioner_owns(((member *)user)->p, item);
}

static void on_ready(const char *item, void *user) {
    divvy_partitioner_prepared(((member *)user)->p, item);
}

static void on_child(const dv_child_event *event, void *user) {
    member *m = user;
    dv_partition_load_child(&m->load, event);
    dv_ledger_child(&m->ledger, event);
    dv_quarantine_child(&m->quarantine, event);
}

/* ---- the first connection ---- */

/* Returns 0 while the session stands or may come about, else the exit code, with the reason told. */
static int check_connection(member *m) {
    return divvy_partitioner_failure(m->p, NULL, 0) != 0 ? 0 : dv_session_check(&m->session);
}

/* ---- the loop ---- */

static void take_signals(member *m) {
    struct signalfd_siginfo info;
    while (read(m->signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
        if (++m->signals < 2) continue;
        /* A user who asks twice does not want to wait: for commands first of all, */
        if (m->signals == 2 && m->supervisor && dv_supervisor_running(m->supervisor) > 0) {
            dv_supervisor_end(m->supervisor, 0);
            continue;
        }
        if (!m->leaving) continue; /* for other members, */
        /* else for the servers. They delete our nodes when the session times out, and guardians end what still runs. */
        sigset_t one;
        sigemptyset(&one);
        sigaddset(&one, (int)info.ssi_signo);
        signal((int)info.ssi_signo, SIG_DFL);
        raise((int)info.ssi_signo);
        sigprocmask(SIG_UNBLOCK, &one, NULL);
    }
}

static bool has_terminal(void) {
    int fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (fd >= 0) close(fd);
    return fd >= 0;
}

/* SIGHUP asks for the items to be read again, as it does of other services, unless it tells that our terminal has
 * gone. */
static void take_hangups(member *m) {
    struct signalfd_siginfo info;
    unsigned count = 0;
    while (read(m->hangup_fd, &info, sizeof info) == (ssize_t)sizeof info) count++;
    if (count == 0 || m->signals > 0) return;
    if (m->on_terminal && !has_terminal()) m->signals++;
    else dv_partition_items_read_again(&m->items);
}

/* One round: waits for something, at most limit_ms (-1: for ever), and does what is due. */
static void step(member *m, int64_t limit_ms) {
    int64_t wait_ms = dv_session_sooner(limit_ms, divvy_client_next_deadline(m->session.client));
    wait_ms = dv_session_sooner(wait_ms, dv_session_until_metrics_ms(&m->session));
    if (m->supervisor) wait_ms = dv_session_sooner(wait_ms, dv_supervisor_next_ms(m->supervisor));
    wait_ms = dv_session_sooner(wait_ms, dv_items_feed_next_ms(&m->items.feed));
    wait_ms = dv_session_sooner(wait_ms, dv_partition_load_next_ms(&m->load));
    wait_ms = dv_session_sooner(wait_ms, dv_quarantine_next_ms(&m->quarantine));
    struct pollfd fds[] = {{.fd = divvy_client_fd(m->session.client), .events = POLLIN},
                           {.fd = m->signal_fd, .events = POLLIN},
                           {.fd = dv_output_fd(&m->output)},
                           {.fd = m->supervisor ? dv_supervisor_fd(m->supervisor) : -1, .events = POLLIN},
                           {.fd = m->hangup_fd, .events = POLLIN},
                           {.fd = dv_items_feed_fd(&m->items.feed), .events = POLLIN},
                           {.fd = dv_partition_load_fd(&m->load), .events = POLLIN}};
    if (poll(fds, 7, wait_ms > INT_MAX ? INT_MAX : (int)wait_ms) < 0) return; /* EINTR: a debugger, or SIGCONT */
    if (fds[1].revents) take_signals(m);
    if (fds[4].revents) take_hangups(m);
    dv_output_heard(&m->output, fds[2].revents);
    divvy_client_process(m->session.client, 0);
    if (m->signals == 0) dv_partition_items_step(&m->items);
    if (m->supervisor) {
        tell_deadline(m);
        dv_supervisor_process(m->supervisor);
        release_if_clear(m);
    }
    dv_partition_load_step(&m->load);
    dv_quarantine_step(&m->quarantine);
    dv_session_write_metrics(&m->session);
}

/* The reader of our lines is whom we work for, unless commands do the work, and the lines are just a log. */
static bool reader_has_gone(const member *m) {
    return m->output.ended && (!m->supervisor || m->options.events);
}

static bool must_end(const member *m) {
    return reader_has_gone(m) || m->ledger.out_of_memory || m->ledger.state == DIVVY_FAILURE ||
           (m->supervisor && dv_supervisor_error(m->supervisor));
}

/* With --replace: a process that was started later has the identifier, and all that was ours. */
static bool is_replaced(const member *m) {
    bool idle = m->ledger.owned_count == 0 && m->ledger.state != DIVVY_RELEASE &&
                (!m->supervisor || dv_supervisor_running(m->supervisor) == 0);
    return m->options.replace && idle && divvy_partitioner_is_replaced(m->p);
}

static bool should_end(const member *m) {
    return m->signals > 0 || must_end(m) || is_replaced(m);
}

static int take_part(member *m) {
    int code = 0;
    dv_ledger_state(&m->ledger, DIVVY_ALLOCATING, NULL);
    while (!should_end(m) && (code = check_connection(m)) == 0) step(m, dv_session_until_check_ms(&m->session));
    return code;
}

/* ---- the end ---- */

/* Returns why the loop ended, as an exit code, and tells the reason if it is none to be proud of. */
static int judge(member *m) {
    if (m->output.error && reader_has_gone(m))
        return dv_session_end(&m->session, DV_EXIT_FAILED, "cannot write to %s: %s",
                              m->output.instead_fd ? m->options.events : "standard output", strerror(m->output.error));
    if (m->supervisor && dv_supervisor_error(m->supervisor))
        return dv_session_end(&m->session, DV_EXIT_FAILED, "no more commands can be started: %s",
                              strerror(dv_supervisor_error(m->supervisor)));
    if (m->ledger.out_of_memory) return dv_session_end(&m->session, DV_EXIT_FAILED, "out of memory");
    if (m->ledger.state != DIVVY_FAILURE) return DV_EXIT_DONE;
    char reason[REASON_BYTES] = "";
    int error = divvy_partitioner_failure(m->p, reason, sizeof reason);
    return dv_session_end(&m->session, DV_EXIT_FAILED, "FAILURE: %s (%s)", reason, divvy_strerror(error));
}

/* A static member comes back, and its items wait for it. Without a connection there is nobody to hand over to. */
static bool can_hand_over(const member *m) {
    const dv_partition_options *o = &m->options;
    return o->handover_timeout_ms > 0 && o->mode == DIVVY_INCREMENTAL && o->assign == DIVVY_ASSIGN_AUTO &&
           o->rejoin_delay_ms == 0 && divvy_client_state(m->session.client) == DIVVY_CONNECTED;
}

/* Stays until others have all that is ours, until a second signal, or until no server answers. */
static void hand_over(member *m) {
    assert(m->signals == 1 && !m->leaving);
    divvy_partitioner_leave(m->p, DIVVY_LEAVE_WORKING, 0);
    while (m->signals == 1 && !must_end(m) && divvy_client_state(m->session.client) == DIVVY_CONNECTED) step(m, -1);
}

/* Ends all commands. Meanwhile we stay a member, with all that is owned. */
static void drain(member *m) {
    if (m->supervisor) dv_supervisor_end(m->supervisor, m->signals > 1 ? 0 : m->options.drain_ms);
    while (m->supervisor && dv_supervisor_running(m->supervisor) > 0) step(m, -1);
}

/* Leaves the pool, for which there is time while servers answer. A second signal ends it, see take_signals(). */
static void leave(member *m) {
    assert(!m->leaving);
    m->leaving = true;
    drain(m);
    assert(!m->supervisor || dv_supervisor_running(m->supervisor) == 0);
    int64_t deadline_ms = dv_session_now_ms() + FINISH_TIMEOUT_MS, left_ms = FINISH_TIMEOUT_MS;
    /* Items that are given back must have been told as revoked before. */
    dv_ledger_revoke_all(&m->ledger);
    int error;
    while ((error = divvy_partitioner_finish(m->p, 0)) == DIVVY_ETIMEDOUT && left_ms > 0) {
        step(m, left_ms);
        left_ms = deadline_ms - dv_session_now_ms();
    }
    /* FAILURE may still have to be told. */
    while (m->ledger.state != DIVVY_FAILURE && divvy_client_process(m->session.client, 0) > 0) continue;
    if (m->ledger.state != DIVVY_FAILURE)
        dv_ledger_state(&m->ledger, DIVVY_FAILURE, *m->session.ending ? m->session.ending : DV_LEDGER_FINISHED);
    if (error == DIVVY_ETIMEDOUT)
        dv_command_say("warning: no server has confirmed within %d s that this member has left; the servers delete "
                       "its nodes when its session times out",
                       FINISH_TIMEOUT_MS / 1000);
}

/* ---- the beginning ---- */

/* Returns -1 when it cannot be had, with errno set. */
static int receive(const sigset_t *signals) {
    return sigprocmask(SIG_BLOCK, signals, NULL) == 0 ? signalfd(-1, signals, SFD_CLOEXEC | SFD_NONBLOCK) : -1;
}

/* Returns the exit code, with the reason told. */
static int open_signals(member *m) {
    sigset_t ends, hangups;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    sigemptyset(&hangups);
    /* nohup(1) has it ignored, and means it. */
    struct sigaction hangup;
    if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN)
        sigaddset(dv_partition_items_can_be_read_again(&m->options) ? &hangups : &ends, SIGHUP);
    m->on_terminal = has_terminal();
    m->signal_fd = m->output.stop_fd = receive(&ends);
    m->hangup_fd = m->signal_fd >= 0 ? receive(&hangups) : -1;
    if (m->hangup_fd >= 0) return 0;
    dv_command_say("cannot receive signals: %s", strerror(errno));
    return DV_EXIT_FAILED;
}

static int join(member *m) {
    const dv_partition_options *o = &m->options;
    divvy_partitioner_config config = DIVVY_PARTITIONER_CONFIG_INIT;
    dv_partition_options_fill(o, &config);
    config.items = dv_partition_items_list(&m->items)->names;
    config.item_count = dv_partition_items_list(&m->items)->count;
    config.on_session_loss = m->ledger.rejoins ? DIVVY_REJOIN : DIVVY_FAIL;
    config.on_state = on_state;
    config.on_items = on_items;
    config.user = m;
    int error = divvy_partitioner_create(&m->p, m->session.client, &config);
    m->items.p = m->load.p = m->quarantine.p = m->p;
    return error ? dv_session_refused(&m->session, error) : 0;
}

/* Waits for the first list of what is followed. Returns 0, with no list once we are asked to end, or the exit code. */
static int wait_for_items(member *m) {
    int code = 0;
    while (dv_partition_items_list(&m->items)->count == 0 && m->signals == 0 &&
           (code = dv_session_check(&m->session)) == 0) {
        if (m->items.feed.failed) return DV_EXIT_FAILED;
        step(m, dv_session_until_check_ms(&m->session));
    }
    return code;
}

/* Looks the command up, and prepares to start it; before there is any descriptor that it is not to have. Returns 0, or
 * the exit code with the reason told. */
static int prepare_command(member *m) {
    const dv_partition_options *o = &m->options;
    if (!o->arguments) return 0;
    int code = dv_program_find(o->arguments[0], &m->program);
    if (code != 0) {
        dv_command_say("%s: %s", o->arguments[0], errno == ENOENT ? "command not found" : strerror(errno));
        return code;
    }
    dv_supervise_config config = {.program = m->program,
                                  .arguments = o->arguments,
                                  .restart = (dv_restart)o->restart,
                                  .session_timeout_ms = o->session.session_timeout_ms,
                                  .drain_ms = o->drain_ms,
                                  .standby = o->standby,
                                  .is_owned = is_owned,
                                  .on_child = on_child,
                                  .on_ready = on_ready,
                                  .user = m};
    if (dv_guardians_open(&m->guardians) == 0 && dv_supervisor_open(&m->supervisor, &config, m->guardians) == 0)
        return 0;
    dv_command_say("cannot prepare to run commands: %s", strerror(errno));
    return DV_EXIT_FAILED;
}

/* Where the lines go: commands have standard output for themselves, unless it is asked for. Returns the exit code. */
static int open_output(member *m) {
    const char *events = m->options.events;
    if (!events && m->supervisor) m->output.instead_fd = STDERR_FILENO;
    if (!events || strcmp(events, "-") == 0) return 0;
    m->output.instead_fd = open(events, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (m->output.instead_fd >= 0) return 0;
    dv_command_say("%s: %s", events, strerror(errno));
    m->output.instead_fd = 0;
    return DV_EXIT_USAGE;
}

static int run_member(member *m) {
    int code = prepare_command(m);
    if (code == 0) code = open_output(m);
    if (code != 0) return code;
    dv_ledger_init(&m->ledger, &m->output);
    m->ledger.json = m->options.json;
    m->ledger.fields = m->output.instead_fd == STDERR_FILENO && dv_log_has_fields();
    m->ledger.timestamps = m->options.timestamps;
    m->ledger.rejoins = m->supervisor || m->options.rejoin;
    code = open_signals(m);
    if (code != 0) return code;
    m->session.watched_by = m->guardians; /* NULL: what reads our lines works on when we have died. */
    code = dv_session_open(&m->session);
    if (code == 0) dv_partition_load_open(&m->load, m->session.client);
    if (code == 0) dv_quarantine_open(&m->quarantine, m->session.client);
    if (code == 0) code = dv_partition_items_open(&m->items);
    if (code == 0) code = wait_for_items(m);
    if (code == 0 && dv_partition_items_list(&m->items)->count == 0) return code;
    if (code == 0) code = join(m);
    if (code != 0) return code;
    code = take_part(m);
    if (code == 0 && m->ledger.state != DIVVY_FAILURE && is_replaced(m))
        dv_command_tell(DIVVY_LOG_INFO,
                        "a process that was started later has the identifier %s, and has taken over; this one ends",
                        m->options.identifier);
    if (code == 0) code = judge(m);
    if (code == 0 && m->signals == 1 && can_hand_over(m)) hand_over(m);
    leave(m);
    return code;
}

static int run(int argc, char **argv) {
    member m = {.signal_fd = -1, .hangup_fd = -1};
    m.session = (dv_session){.command = "partition",
                             .what_ends = "ownership",
                             .failed = DV_EXIT_FAILED,
                             .unreachable = DV_EXIT_UNREACHABLE,
                             .options = &m.options.session};
    m.items = (dv_partition_items){.options = &m.options, .session = &m.session};
    m.load = (dv_partition_load){.options = &m.options, .ledger = &m.ledger};
    m.quarantine = (dv_quarantine){.options = &m.options};
    int code = DV_EXIT_USAGE;
    int outcome = dv_partition_options_parse(&m.options, argc, argv);
    if (outcome == DV_OPTIONS_HELP) {
        dv_partition_print_help();
        code = dv_command_printed();
    } else if (outcome == DV_OPTIONS_PARSED) {
        dv_log_field("pool", m.options.path);
        if (m.options.identifier) dv_log_field("member", m.options.identifier);
        code = run_member(&m);
    }
    dv_metrics_file_end(&m.session.metrics, m.session.client); /* while the pool is among them */
    dv_quarantine_close(&m.quarantine);
    divvy_partitioner_destroy(m.p);
    dv_session_close(&m.session);
    dv_partition_items_close(&m.items);
    dv_partition_load_close(&m.load);
    dv_supervisor_close(m.supervisor);
    dv_guardians_close(m.guardians);
    free(m.program);
    if (m.signal_fd >= 0) close(m.signal_fd);
    if (m.hangup_fd >= 0) close(m.hangup_fd);
    if (m.output.instead_fd > STDERR_FILENO) close(m.output.instead_fd);
    dv_ledger_free(&m.ledger);
    dv_partition_options_free(&m.options);
    return code;
}

const dv_command dv_partition_command = {
    .name = "partition",
    .summary = "join a pool; print which items are this member's, or run a command for each",
    .run = run,
    .print_help = dv_partition_print_help,
};
