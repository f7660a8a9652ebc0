/* divvy lock: runs a command while a lock is held. SPDX-License-Identifier: Apache-2.0
 *
 * Everything happens on one thread, as in partition.c. The order of things: the command is looked up; the process that
 * will guard it is forked, while we have no connection; the lock is waited for; the command runs, and each round tells
 * the guardian until when the session is certainly alive; when all of the command has gone, the lock is given back. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <divvy/divvy.h>

#include "claim.h"
#include "command.h"
#include "connection.h"
#include "hold.h"
#include "lock_options.h"
#include "log.h"
#include "program.h"
#include "run.h"

/* The time left to a command whose lock was lost, and may have another owner already: rule G4. */
enum { LOST_GRACE_MS = 100 };

typedef struct {
    dv_lock_options options;
    dv_session session;
    dv_claim claim;
    dv_run run;
    char *program;
    bool claiming;             /* the acquire was begun */
    bool input_ended;          /* with --hold: the caller has gone */
    bool lost;                 /* and the command was told to end for that */
    bool overran;              /* likewise */
    int64_t grace_ms, kill_ms; /* in use */
    int64_t overrun_at;        /* INT64_MAX: never */
    int64_t held_since_ms;
    int64_t deadline_ms; /* 0: nothing may run */
} locker;

/* ---- the loop ---- */

/* Until when the command may run: as long as the lock is held by the session clock, and for a moment after a loss that
 * came earlier. After a loss the client has a new session, which is of no use to a command of the old one. */
static void tell_deadline(locker *l) {
    int64_t now_ms = dv_guardians_now_ms();
    int64_t left_ms = divvy_client_time_left_ms(l->session.client);
    int64_t moment_ms = now_ms + LOST_GRACE_MS + l->kill_ms;
    if (!l->claim.lost && dv_claim_is_held(&l->claim)) l->deadline_ms = now_ms + left_ms;
    else if (moment_ms < l->deadline_ms) l->deadline_ms = moment_ms;
    assert(l->deadline_ms >= 0 && left_ms >= 0);
    dv_guardians_set_deadline(l->run.guardians, l->deadline_ms);
}

/* One round: waits for something, at most limit_ms (-1: for ever), and does what is due. */
static void step(locker *l, int64_t limit_ms) {
    dv_session_keep(&l->session, dv_run_works(&l->run));
    int64_t wait_ms = dv_session_sooner(limit_ms, divvy_client_next_deadline(l->session.client));
    wait_ms = dv_session_sooner(wait_ms, dv_session_until_metrics_ms(&l->session));
    /* Before there is a command that has it, the input is ours. */
    bool listen = l->options.hold && !l->run.guardian && !l->input_ended;
    struct pollfd fds[] = {{.fd = divvy_client_fd(l->session.client), .events = POLLIN},
                           {.fd = dv_run_signal_fd(&l->run), .events = POLLIN},
                           {.fd = dv_run_guardian_fd(&l->run), .events = POLLIN},
                           {.fd = listen ? STDIN_FILENO : -1, .events = POLLIN}};
    poll(fds, 4, wait_ms > INT_MAX ? INT_MAX : (int)wait_ms);
    char byte;
    if (fds[3].revents && read(STDIN_FILENO, &byte, 1) <= 0) l->input_ended = true;
    divvy_client_process(l->session.client, 0);
    tell_deadline(l);
    dv_run_step(&l->run);
    dv_session_write_metrics(&l->session);
}

/* ---- the lock ---- */

static int not_held(locker *l) {
    const dv_lock_options *o = &l->options;
    int result = l->claim.result;
    if (result == DIVVY_EBUSY) {
        if (o->session.verbose) dv_command_tell(DIVVY_LOG_INFO, "somebody else has the lock \"%s\"", o->name);
        return (int)o->not_held_as;
    }
    /* Without a server nobody knows whether somebody else has it. */
    if (result == DIVVY_ETIMEDOUT && (o->no_wait || l->session.suspended)) {
        dv_command_say("the servers at %s do not answer", o->session.connect);
        return DV_EXIT_UNREACHABLE;
    }
    if (result == DIVVY_ETIMEDOUT) {
        dv_command_say("the lock \"%s\" was not to be had within %" PRId64 " ms", o->name, o->timeout_ms);
        return (int)o->not_held_as;
    }
    dv_command_say("%s", l->claim.reason);
    return DV_EXIT_TROUBLE;
}

/* As soon as there is a connection: a try would not wait for one for long. */
static int begin_claim(locker *l) {
    if (l->claiming || !l->session.connected) return 0;
    assert(!l->claim.ended && !l->run.guardian);
    int64_t waited_ms = dv_session_now_ms() - l->session.started_ms, timeout_ms = l->options.timeout_ms;
    if (timeout_ms >= 0) timeout_ms = waited_ms < timeout_ms ? timeout_ms - waited_ms : 1;
    int error = dv_claim_acquire(&l->claim, l->options.no_wait ? 0 : timeout_ms);
    l->claiming = true;
    return error ? dv_session_refused(&l->session, error) : 0;
}

/* Returns whether the lock is held, else *code is the exit code. */
static bool wait_for_lock(locker *l, int *code) {
    while (!l->claim.ended && !l->run.asked && !l->input_ended) {
        *code = dv_session_check(&l->session);
        if (*code == 0) *code = begin_claim(l);
        if (*code != 0) return false;
        step(l, dv_session_until_check_ms(&l->session));
    }
    bool held = false;
    if (l->run.asked) *code = DV_EXIT_SIGNAL + l->run.asked;
    else if (l->claim.ended && l->claim.result != 0) *code = not_held(l);
    else if (l->input_ended) *code = (int)l->options.not_held_as;
    else held = true;
    return held;
}

/* ---- the command ---- */

typedef struct {
    char *name, token[64], slot[64];
    const char *list[4];
} environment;

static int make_environment(const locker *l, environment *e) {
    if (asprintf(&e->name, "DIVVY_LOCK_NAME=%s", l->options.name) < 0) {
        e->name = NULL;
        errno = ENOMEM;
        return -1;
    }
    snprintf(e->token, sizeof e->token, "DIVVY_LOCK_TOKEN=%" PRId64, dv_claim_token(&l->claim));
    int slot = dv_claim_slot(&l->claim);
    if (slot >= 0) snprintf(e->slot, sizeof e->slot, "DIVVY_LOCK_SLOT=%d", slot);
    else snprintf(e->slot, sizeof e->slot, "DIVVY_LOCK_SLOT"); /* One that we have inherited is of another lock. */
    e->list[0] = e->name;
    e->list[1] = e->token;
    e->list[2] = e->slot;
    e->list[3] = NULL;
    return 0;
}

static int start(locker *l) {
    environment e = {.name = NULL};
    assert(l->claim.ended && l->claim.result == 0); /* The lock was given to us. */
    assert(l->program || l->options.hold);
    dv_guardian_config config = {
        .program = l->program, .arguments = l->options.arguments, .function = l->options.hold ? dv_hold : NULL};
    dv_run_set_times(&config, l->options.session.session_timeout_ms, l->options.grace_ms,
                     divvy_client_time_left_ms(l->session.client));
    l->grace_ms = config.grace_ms;
    l->kill_ms = config.kill_ms;
    int outcome = make_environment(l, &e);
    config.environment = e.list;
    if (l->options.hold) l->run.end_grace_ms = l->grace_ms;
    l->run.holds = l->options.hold;
    if (outcome == 0) outcome = dv_run_start(&l->run, &config);
    if (outcome != 0) dv_command_say("cannot start the command: %s", strerror(errno));
    free(e.name);
    l->overrun_at = l->options.max_run_ms ? dv_session_now_ms() + l->options.max_run_ms : INT64_MAX;
    return outcome == 0 ? 0 : DV_EXIT_TROUBLE;
}

static void end_if_due(locker *l) {
    assert(l->run.guardian && !l->run.over);
    /* Also when the node was deleted by somebody, or the session ended: long before the deadline. */
    if (!l->lost && (l->claim.lost || !dv_claim_is_held(&l->claim))) {
        l->lost = true;
        dv_guardian_end(l->run.guardian, LOST_GRACE_MS);
    }
    if (!l->overran && dv_session_now_ms() >= l->overrun_at) {
        l->overran = true;
        dv_guardian_end(l->run.guardian, l->grace_ms);
    }
}

static int64_t until_overrun_ms(const locker *l) {
    if (l->overran || l->overrun_at == INT64_MAX) return -1;
    int64_t left_ms = l->overrun_at - dv_session_now_ms();
    return left_ms > 0 ? left_ms : 0;
}

/* ---- the end ---- */

static int judge(const locker *l) {
    const dv_run *run = &l->run;
    assert(run->over);
    if (run->refused == ETIME) {
        dv_command_say("the lock \"%s\" was lost before the command could be started", l->options.name);
        return DV_EXIT_LOST;
    }
    const char *name = l->options.hold ? "--hold" : l->options.arguments[0];
    if (run->refused || run->guardian_died) return dv_run_code(run, name);
    bool late = run->why == DV_ENDED_BY_DEADLINE; /* While the command was ending the lock may have been lost, too. */
    if (late || l->lost) {
        dv_command_say("the lock \"%s\" %s; the command was ended", l->options.name,
                       late ? "could not be kept: no server has confirmed it in time" : "is lost");
        return DV_EXIT_LOST;
    }
    if (run->why == DV_ENDED_BY_ORDER && run->asked) return DV_EXIT_SIGNAL + run->asked;
    if (run->why == DV_ENDED_BY_ORDER) {
        dv_command_say("the command has run for %" PRId64 " ms, and was ended", l->options.max_run_ms);
        return DV_EXIT_OVERRUN;
    }
    return dv_run_code(run, name);
}

/* With --at-least. A signal ends it, also one that the command has had. A command that could not be started may be
 * started elsewhere. */
static void keep(locker *l) {
    assert(l->run.over);
    if (l->lost || l->run.refused || l->run.why == DV_ENDED_BY_DEADLINE || l->run.told) return;
    int64_t until_ms = l->held_since_ms + l->options.at_least_ms, left_ms;
    while (!l->run.asked && (left_ms = until_ms - dv_session_now_ms()) > 0) {
        if (l->claim.lost || !dv_claim_is_held(&l->claim)) {
            dv_command_say("the command has ended, and the lock \"%s\" is lost, %" PRId64
                           " ms before --at-least is over",
                           l->options.name, left_ms);
            return;
        }
        step(l, left_ms);
    }
}

/* ---- the whole ---- */

static int run_under_lock(locker *l) {
    /* With --hold the work is in our caller, which no guardian ends. */
    if (!l->options.hold) l->session.watched_by = l->run.guardians;
    int code = dv_session_open(&l->session);
    if (code != 0) return code;
    int error = dv_claim_create(&l->claim, l->session.client, &l->options);
    if (error) return dv_session_refused(&l->session, error);
    if (!wait_for_lock(l, &code)) return code;
    l->session.what_ends = "the lock";
    l->held_since_ms = dv_session_now_ms();
    tell_deadline(l);
    code = start(l);
    if (code != 0) return code;
    while (!l->run.over) {
        end_if_due(l);
        step(l, until_overrun_ms(l));
    }
    code = judge(l);
    if (l->options.at_least_ms) keep(l);
    return code;
}

static int prepare_and_run(locker *l) {
    int code = l->options.hold ? 0 : dv_program_find(l->options.arguments[0], &l->program);
    if (code != 0) return code;
    if (dv_run_open(&l->run) != 0) return DV_EXIT_TROUBLE;
    return run_under_lock(l);
}

static int run(int argc, char **argv) {
    locker l = {.run = {.signal_fd = -1}};
    l.session = (dv_session){.command = "lock",
                             .failed = DV_EXIT_TROUBLE,
                             .unreachable = DV_EXIT_UNREACHABLE,
                             .options = &l.options.session};
    int code = dv_lock_options_parse(&l.options, argc, argv);
    if (code == DV_EXIT_FAILED) code = l.session.failed;
    if (code == 0) {
        dv_log_field("lock", l.options.name);
        code = prepare_and_run(&l);
    }
    dv_claim_destroy(&l.claim);
    dv_session_close(&l.session);
    int typed = l.run.typed;
    dv_run_close(&l.run);
    free(l.program);
    dv_lock_options_free(&l.options);
    dv_run_die_if_typed(typed, code);
    return code;
}

const dv_command dv_lock_command = {
    .name = "lock",
    .summary = "run a command while a lock is held",
    .run = run,
    .print_help = dv_lock_print_help,
    .needs_no_output = true,
};
