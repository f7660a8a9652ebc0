/* divvy partition: a member of a pool, told line by line. SPDX-License-Identifier: Apache-2.0
 *
 * Everything happens on one thread: the clients are in manual mode, and signals come through a descriptor. So a line is
 * written completely before the next thing happens, and what it says comes before what follows from it: an item is told
 * as revoked before its lock is given back.
 *
 * With a command the order of things is: it is looked up; the processes that guardians are forked from are forked,
 * while we have no connection; we join. Each round tells the guardians until when the session is certainly alive.
 * Revoked items are released when all that had to end has ended.
 *
 * With --sessions there are several members, each with a session, guardians and commands of its own
 * (partition_member.c). They end together: a pool that sees a part of a process fail had better see all of it go. */
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
#include "dispositions.h"
#include "log.h"
#include "output.h"
#include "partition_items.h"
#include "partition_member.h"
#include "partition_options.h"
#include "partition_sessions.h"
#include "program.h"

enum { FINISH_TIMEOUT_MS = 5000 };

typedef struct {
    dv_partition_options options;
    dv_output output;
    dv_partition_items items;
    dv_partition_member *members;
    size_t count;
    char *program;    /* of the command */
    int signal_fd;    /* what asks us to end */
    int hangup_fd;    /* SIGHUP, where it asks for the items to be read again; -1: it does not */
    int signals;      /* how many asked us to end */
    bool leaving;     /* nothing is handed over from now on */
    bool on_terminal; /* at the beginning */
} process;

/* ---- all members ---- */

static size_t running(const process *all) {
    size_t count = 0;
    for (size_t i = 0; i < all->count; i++) count += dv_partition_member_running(&all->members[i]);
    return count;
}

static void end_commands(process *all, bool at_once) {
    for (size_t i = 0; i < all->count; i++) dv_partition_member_end_commands(&all->members[i], at_once);
}

/* Returns 0 while all sessions stand or may come about, else the exit code, with the reason told. */
static int check_connections(process *all) {
    int code = 0;
    for (size_t i = 0; i < all->count && code == 0; i++) code = dv_partition_member_check(&all->members[i]);
    return code;
}

static int64_t until_check_ms(const process *all) {
    int64_t wait_ms = -1;
    for (size_t i = 0; i < all->count; i++)
        wait_ms = dv_session_sooner(wait_ms, dv_session_until_check_ms(&all->members[i].session));
    return wait_ms;
}

/* ---- the loop ---- */

static void take_signals(process *all) {
    struct signalfd_siginfo info;
    while (read(all->signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
        if (++all->signals < 2) continue;
        /* A user who asks twice does not want to wait: for commands first of all, */
        if (all->signals == 2 && running(all) > 0) {
            end_commands(all, true);
            continue;
        }
        if (!all->leaving) continue; /* for other members, */
        /* else for the servers. They delete our nodes when the session times out, and guardians end what still runs. */
        sigset_t one;
        sigemptyset(&one);
        sigaddset(&one, (int)info.ssi_signo);
        signal((int)info.ssi_signo, SIG_DFL);
        raise((int)info.ssi_signo);
        sigprocmask(SIG_UNBLOCK, &one, NULL);
    }
}

/* SIGHUP asks for the items to be read again, as it does of other services, unless it tells that our terminal has
 * gone. */
static void take_hangups(process *all) {
    struct signalfd_siginfo info;
    unsigned count = 0;
    while (read(all->hangup_fd, &info, sizeof info) == (ssize_t)sizeof info) count++;
    if (count == 0 || all->signals > 0) return;
    if (all->on_terminal && !dv_command_has_terminal()) all->signals++;
    else dv_partition_items_read_again(&all->items);
}

/* One round: waits for something, at most limit_ms (-1: for ever), and does what is due. */
static void step(process *all, int64_t limit_ms) {
    enum { OURS = 4 };
    bool reads = all->signals == 0; /* A member that leaves takes no other items. */
    struct pollfd fds[OURS + DV_SESSIONS_MAX * DV_PARTITION_MEMBER_FDS] = {
        {.fd = all->signal_fd, .events = POLLIN},
        {.fd = dv_output_fd(&all->output)},
        {.fd = all->hangup_fd, .events = POLLIN},
        {.fd = reads ? dv_items_feed_fd(&all->items.feed) : -1, .events = POLLIN}};
    int64_t wait_ms = dv_session_sooner(limit_ms, reads ? dv_items_feed_next_ms(&all->items.feed) : -1);
    for (size_t i = 0; i < all->count; i++) {
        dv_partition_member_poll(&all->members[i], &fds[OURS + i * DV_PARTITION_MEMBER_FDS]);
        wait_ms = dv_session_sooner(wait_ms, dv_partition_member_next_ms(&all->members[i]));
    }
    nfds_t count = OURS + all->count * DV_PARTITION_MEMBER_FDS;
    if (poll(fds, count, wait_ms > INT_MAX ? INT_MAX : (int)wait_ms) < 0) return; /* EINTR: a debugger, or SIGCONT */
    if (fds[0].revents) take_signals(all);
    if (fds[2].revents) take_hangups(all);
    dv_output_heard(&all->output, fds[1].revents);
    for (size_t i = 0; i < all->count; i++) dv_partition_member_step(&all->members[i]);
    if (all->signals == 0) dv_partition_items_step(&all->items);
}

/* The reader of our lines is whom we work for, unless commands do the work, and the lines are just a log. */
static bool reader_has_gone(const process *all) {
    return all->output.ended && (!all->options.arguments || all->options.events);
}

static bool must_end(const process *all) {
    bool must = reader_has_gone(all);
    for (size_t i = 0; i < all->count && !must; i++) must = dv_partition_member_must_end(&all->members[i]);
    return must;
}

static bool is_replaced(const process *all) {
    size_t replaced = 0;
    while (replaced < all->count && dv_partition_member_is_replaced(&all->members[replaced])) replaced++;
    return replaced == all->count;
}

static int take_part(process *all) {
    int code = 0;
    while (all->signals == 0 && !must_end(all) && !is_replaced(all) && (code = check_connections(all)) == 0)
        step(all, until_check_ms(all));
    return code;
}

/* ---- the end ---- */

/* Returns why the loop ended, as an exit code, and tells the reason if it is none to be proud of. */
static int judge(process *all) {
    int code = 0;
    if (all->output.error && reader_has_gone(all))
        return dv_session_end(&all->members[0].session, DV_EXIT_FAILED, "cannot write to %s: %s",
                              all->output.instead_fd ? all->options.events : "standard output",
                              strerror(all->output.error));
    for (size_t i = 0; i < all->count && code == 0; i++) code = dv_partition_member_judge(&all->members[i]);
    return code;
}

/* After a failure of one member: the others say that this is why they end. */
static void tell_others(process *all) {
    for (size_t i = 0; i < all->count; i++) {
        char *ending = all->members[i].session.ending;
        if (!*ending) snprintf(ending, DV_SESSION_REASON_BYTES, "another session of this process has failed");
    }
}

/* Stays until others have all that is ours, until a second signal, or until no server answers. */
static void hand_over(process *all) {
    assert(all->signals == 1 && !all->leaving);
    for (size_t i = 0; i < all->count; i++) dv_partition_member_hand_over(&all->members[i]);
    for (bool goes_on = true; goes_on && all->signals == 1 && !reader_has_gone(all);) {
        goes_on = false;
        for (size_t i = 0; i < all->count; i++)
            goes_on = goes_on || dv_partition_member_is_handing_over(&all->members[i]);
        if (goes_on) step(all, -1);
    }
}

/* Ends all commands. Meanwhile we stay in the pool, with all that is owned. */
static void drain(process *all) {
    end_commands(all, all->signals > 1);
    while (running(all) > 0) step(all, -1);
}

/* Returns how many members no server has confirmed yet to have left. */
static size_t finish(process *all) {
    size_t left = 0;
    for (size_t i = 0; i < all->count; i++)
        if (divvy_partitioner_finish(all->members[i].p, 0) == DIVVY_ETIMEDOUT) left++;
    return left;
}

/* Leaves the pool, for which there is time while servers answer. A second signal ends it, see take_signals(). */
static void leave(process *all) {
    assert(!all->leaving);
    all->leaving = true;
    drain(all);
    int64_t deadline_ms = dv_session_now_ms() + FINISH_TIMEOUT_MS, left_ms = FINISH_TIMEOUT_MS;
    /* Items that are given back must have been told as revoked before. */
    for (size_t i = 0; i < all->count; i++) dv_ledger_revoke_all(&all->members[i].ledger);
    size_t unconfirmed;
    while ((unconfirmed = finish(all)) > 0 && left_ms > 0) {
        step(all, left_ms);
        left_ms = deadline_ms - dv_session_now_ms();
    }
    for (size_t i = 0; i < all->count; i++) dv_partition_member_tell_end(&all->members[i]);
    if (unconfirmed)
        dv_command_say("warning: no server has confirmed within %d s that this member has left; the servers delete "
                       "its nodes when its session times out",
                       FINISH_TIMEOUT_MS / 1000);
}

/* ---- the beginning ---- */

/* Returns the exit code, with the reason told. */
static int open_signals(process *all) {
    sigset_t ends, hangups;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    sigemptyset(&hangups);
    /* nohup(1) has it ignored, and means it. */
    struct sigaction hangup;
    if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN)
        sigaddset(dv_partition_items_can_be_read_again(&all->options) ? &hangups : &ends, SIGHUP);
    all->on_terminal = dv_command_has_terminal();
    all->signal_fd = all->output.stop_fd = dv_dispositions_receive(&ends);
    all->hangup_fd = all->signal_fd >= 0 ? dv_dispositions_receive(&hangups) : -1;
    if (all->hangup_fd >= 0) return 0;
    return dv_command_failed("cannot receive signals: %s", strerror(errno));
}

/* Waits for the first list of what is followed. Returns 0, with no list once we are asked to end, or the exit code. */
static int wait_for_items(process *all) {
    int code = 0;
    while (dv_partition_items_list(&all->items)->count == 0 && all->signals == 0 &&
           (code = check_connections(all)) == 0) {
        if (all->items.feed.failed) return DV_EXIT_FAILED;
        step(all, until_check_ms(all));
    }
    return code;
}

/* Looks the command up, and prepares to start it; before there is any descriptor that it is not to have. Returns 0, or
 * the exit code with the reason told. */
static int prepare_command(process *all) {
    const dv_partition_options *o = &all->options;
    if (!o->arguments) return 0;
    int code = dv_program_find(o->arguments[0], &all->program);
    if (code != 0) return code;
    int error = 0;
    dv_dispositions_open_more(); /* Each item takes a descriptor, three with --standby. */
    for (size_t i = 0; i < all->count && !error; i++) error = dv_guardians_open(&all->members[i].guardians);
    for (size_t i = 0; i < all->count && !error; i++)
        error = dv_partition_member_prepare(&all->members[i], all->program);
    if (!error) return 0;
    return dv_command_failed("cannot prepare to run commands: %s", strerror(errno));
}

/* Where the lines go: commands have standard output for themselves, unless it is asked for. Returns the exit code. */
static int open_output(process *all) {
    const char *events = all->options.events;
    if (!events && all->options.arguments) all->output.instead_fd = STDERR_FILENO;
    if (!events || strcmp(events, "-") == 0) return 0;
    all->output.instead_fd = open(events, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (all->output.instead_fd >= 0) return 0;
    dv_command_say("%s: %s", events, strerror(errno));
    all->output.instead_fd = 0;
    return DV_EXIT_USAGE;
}

static void open_ledgers(process *all) {
    const dv_partition_options *o = &all->options;
    for (size_t i = 0; i < all->count; i++) {
        dv_ledger *ledger = &all->members[i].ledger;
        dv_ledger_init(ledger, &all->output);
        ledger->json = o->json;
        ledger->fields = all->output.instead_fd == STDERR_FILENO && dv_log_has_fields();
        ledger->timestamps = o->timestamps;
        ledger->rejoins = o->arguments || o->rejoin;
        ledger->member = all->members[i].session.member;
    }
}

/* Opens the sessions, and joins. Returns 0, with no member once we are asked to end, or the exit code. */
static int join(process *all) {
    int code = 0;
    for (size_t i = 0; i < all->count && code == 0; i++) code = dv_partition_member_open(&all->members[i]);
    all->items.session = &all->members[0].session;
    if (code == 0) code = dv_partition_items_open(&all->items);
    if (code == 0) code = wait_for_items(all);
    const dv_item_list *list = dv_partition_items_list(&all->items);
    for (size_t i = 0; i < all->count && code == 0 && list->count > 0; i++)
        code = dv_partition_member_join(&all->members[i], list->names, list->count);
    all->items.p = all->members[0].p;
    return code;
}

static int run_members(process *all) {
    int code = prepare_command(all);
    if (code == 0) code = open_output(all);
    if (code != 0) return code;
    open_ledgers(all);
    code = open_signals(all);
    if (code == 0) code = join(all);
    if (code != 0 || !all->items.p) return code;
    code = take_part(all);
    if (code == 0 && !must_end(all) && is_replaced(all))
        dv_command_tell(DIVVY_LOG_INFO,
                        "a process that was started later has the identifier %s, and has taken over; this one ends",
                        all->options.identifier);
    if (code == 0) code = judge(all);
    if (code != 0) tell_others(all);
    if (code == 0 && all->signals == 1) hand_over(all);
    leave(all);
    return code;
}

/* Makes the members, one for each session. Returns 0, or the exit code with the reason told. */
static int make_members(process *all) {
    size_t count = (size_t)all->options.sessions;
    all->members = calloc(count, sizeof *all->members);
    bool made = all->members != NULL;
    for (; all->members && all->count < count && made; all->count++) {
        dv_partition_member *m = &all->members[all->count];
        made = dv_partition_sessions_divide(&all->options, all->count, &m->options) == 0;
        dv_partition_member_init(m);
    }
    return made ? 0 : dv_command_out_of_memory();
}

static void close_all(process *all) {
    for (size_t i = 0; i < all->count; i++) dv_partition_member_close(&all->members[i]);
    dv_partition_items_close(&all->items);
    for (size_t i = 0; i < all->count; i++) {
        dv_partition_member_free(&all->members[i]);
        dv_partition_sessions_free(&all->members[i].options);
    }
    free(all->members);
    free(all->program);
    if (all->signal_fd >= 0) close(all->signal_fd);
    if (all->hangup_fd >= 0) close(all->hangup_fd);
    if (all->output.instead_fd > STDERR_FILENO) close(all->output.instead_fd);
    dv_partition_options_free(&all->options);
}

static int run(int argc, char **argv) {
    process all = {.signal_fd = -1, .hangup_fd = -1};
    all.items = (dv_partition_items){.options = &all.options};
    int code = dv_partition_options_parse(&all.options, argc, argv);
    if (code == 0) {
        dv_log_field("pool", all.options.path);
        if (all.options.identifier && all.options.sessions == 1) dv_log_field("member", all.options.identifier);
        code = make_members(&all);
        if (code == 0) code = run_members(&all);
    }
    close_all(&all);
    return code;
}

const dv_command dv_partition_command = {
    .name = "partition",
    .summary = "join a pool; print which items are this member's, or run a command for each",
    .run = run,
    .print_help = dv_partition_print_help,
};
