/* divvy elect: runs a command while this candidate leads. SPDX-License-Identifier: Apache-2.0
 *
 * Everything happens on one thread, as in lock.c, and the command is guarded in the same way. What differs: when the
 * command has ended, or leadership was lost, the candidate stands again, at the end of the queue; and the command is
 * ended, and the candidate resigns, when somebody asks it to step down (docs/protocol.md, J5). */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <divvy/divvy.h>

#include "command.h"
#include "connection.h"
#include "elect_options.h"
#include "elect_watch.h"
#include "log.h"
#include "program.h"
#include "run.h"

/* The time left to a command whose leadership was lost, and may have another leader already: rule G4. A command that
 * ends at once is not started more often than this. */
enum { LOST_GRACE_MS = 100, AGAIN_MS = 1000 };

typedef struct {
    dv_elect_options options;
    dv_session session;
    divvy_election *election;
    dv_run run;
    char *program;
    int64_t token;       /* of the leadership; 0: it does not lead */
    bool lost, ending;   /* leadership, and the command was told to end for that */
    bool asked, leaving; /* to step down, and the same */
    int failure;         /* it can stand no longer */
    int64_t kill_ms, deadline_ms, started_ms;
} elector;

/* ---- what the library tells ---- */

static void on_elected(divvy_election *election, int64_t token, void *user) {
    elector *l = user;
    (void)election;
    assert(token > 0 && l->token == 0);
    l->token = token;
}

/* It stands again when the command has ended, and not before. */
static void on_lost(divvy_election *election, void *user) {
    elector *l = user;
    assert(l->token > 0);
    l->lost = true;
    divvy_election_resign(election);
}

static void on_step_down(divvy_election *election, const char *who, size_t who_bytes, void *user) {
    elector *l = user;
    (void)election, (void)who_bytes;
    dv_command_tell(DIVVY_LOG_INFO, "%.200s asks the leader of \"%s\" to step down", who, l->options.name);
    l->asked = true;
}

static void on_failed(divvy_election *election, int error, void *user) {
    (void)election;
    ((elector *)user)->failure = error;
}

/* ---- the loop ---- */

/* As in lock.c: until when the command may run. */
static void tell_deadline(elector *l) {
    int64_t now_ms = dv_guardians_now_ms(), moment_ms = now_ms + LOST_GRACE_MS + l->kill_ms;
    if (!l->lost && divvy_election_leads(l->election))
        l->deadline_ms = now_ms + divvy_client_time_left_ms(l->session.client);
    else if (moment_ms < l->deadline_ms) l->deadline_ms = moment_ms;
    assert(l->deadline_ms >= 0);
    dv_guardians_set_deadline(l->run.guardians, l->deadline_ms);
}

static void step(elector *l, int64_t limit_ms) {
    dv_session_keep(&l->session, dv_run_works(&l->run));
    int64_t wait_ms = dv_session_sooner(limit_ms, divvy_client_next_deadline(l->session.client));
    wait_ms = dv_session_sooner(wait_ms, dv_session_until_metrics_ms(&l->session));
    struct pollfd fds[] = {{.fd = divvy_client_fd(l->session.client), .events = POLLIN},
                           {.fd = dv_run_signal_fd(&l->run), .events = POLLIN},
                           {.fd = dv_run_guardian_fd(&l->run), .events = POLLIN}};
    poll(fds, 3, wait_ms > INT_MAX ? INT_MAX : (int)wait_ms);
    divvy_client_process(l->session.client, 0);
    tell_deadline(l);
    dv_run_step(&l->run);
    dv_session_write_metrics(&l->session);
}

/* One that was asked to step down stands without its preference, once: it would be next again. */
static int create(elector *l) {
    divvy_election_config config = dv_elect_config(&l->options);
    divvy_election_destroy(l->election);
    l->election = NULL;
    config.preference = l->asked ? 0 : (int)l->options.preference;
    config.on_elected = on_elected;
    config.on_lost = on_lost;
    config.on_step_down = on_step_down;
    config.on_failed = on_failed;
    config.user = l;
    return divvy_election_create(&l->election, l->session.client, &config);
}

/* Returns whether it leads, else *code is the exit code. */
static bool wait_for_election(elector *l, int *code) {
    assert(!l->run.guardian);
    int error = create(l);
    l->token = 0;
    l->lost = l->ending = l->asked = l->leaving = false;
    if (!error) error = divvy_election_stand(l->election);
    if (error) *code = dv_session_refused(&l->session, error);
    while (*code == 0 && !l->token && !l->run.asked && !l->failure) {
        *code = dv_session_check(&l->session);
        if (*code == 0) step(l, dv_session_until_check_ms(&l->session));
    }
    if (l->failure) {
        dv_command_say("the election \"%s\": %s", l->options.name, dv_session_why(l->session.client, l->failure));
        *code = DV_EXIT_TROUBLE;
    }
    return *code == 0 && !l->run.asked;
}

/* ---- the command ---- */

static int start(elector *l) {
    char *name = NULL, token[64];
    assert(l->token > 0 && l->election); /* It was elected. */
    const char *environment[3] = {NULL, token, NULL};
    dv_guardian_config config = {.program = l->program, .arguments = l->options.arguments, .environment = environment};
    dv_run_set_times(&config, l->options.session.session_timeout_ms, l->options.grace_ms,
                     divvy_client_time_left_ms(l->session.client));
    l->kill_ms = config.kill_ms;
    snprintf(token, sizeof token, "DIVVY_ELECTION_TOKEN=%" PRId64, l->token);
    if (asprintf(&name, "DIVVY_ELECTION_NAME=%s", l->options.name) < 0) name = NULL;
    environment[0] = name;
    errno = ENOMEM;
    int outcome = name ? dv_run_start(&l->run, &config) : -1;
    if (outcome != 0) dv_command_say("cannot start the command: %s", strerror(errno));
    free(name);
    l->started_ms = dv_session_now_ms();
    return outcome == 0 ? 0 : DV_EXIT_TROUBLE;
}

static void end_if_due(elector *l) {
    assert(l->run.guardian && !l->run.over);
    bool gone = l->lost || !divvy_election_leads(l->election);
    if (gone) l->lost = true;
    if (gone && !l->ending) dv_guardian_end(l->run.guardian, LOST_GRACE_MS);
    else if (l->asked && !l->ending && !l->leaving) dv_guardian_end(l->run.guardian, l->options.grace_ms);
    l->ending = gone;
    l->leaving = l->asked;
}

/* Tells how it ended. Returns the exit code of --once. */
static int judge(elector *l) {
    const dv_run *run = &l->run;
    assert(run->over);
    if (run->refused == ETIME) return DV_EXIT_LOST;
    if (run->refused || run->guardian_died) return dv_run_code(run, l->options.arguments[0]);
    bool late = run->why == DV_ENDED_BY_DEADLINE;
    if (late || l->lost) {
        dv_command_say("leadership of \"%s\" %s; the command was ended", l->options.name,
                       late ? "could not be kept: no server has confirmed it in time" : "is lost");
        return DV_EXIT_LOST;
    }
    return dv_run_code(run, l->options.arguments[0]);
}

/* Returns whether somebody has ended it. ^C in a terminal is the command's, and meant for all. */
static bool is_asked(const dv_run *run) {
    bool typed = WIFSIGNALED(run->status) && (WTERMSIG(run->status) == SIGINT || WTERMSIG(run->status) == SIGQUIT);
    return run->asked || (run->told & dv_run_bit(SIGINT)) || typed;
}

/* Returns whether it does not stand again. A command may exit with any code, so none says that. */
static bool is_final(const elector *l) {
    const dv_run *run = &l->run;
    bool no_command = !run->over || run->guardian_died || (run->refused && run->refused != ETIME);
    return l->options.once || is_asked(run) || no_command;
}

static int lead(elector *l) {
    tell_deadline(l);
    int code = start(l);
    if (code) return code;
    while (!l->run.over) {
        end_if_due(l);
        step(l, -1);
    }
    code = judge(l);
    divvy_election_resign(l->election);
    return code;
}

/* Others lead first, and a command that ends at once is not started in a circle. */
static void pause_before_next(elector *l) {
    int64_t until_ms = l->started_ms + AGAIN_MS, left_ms;
    while (!l->run.asked && (left_ms = until_ms - dv_session_now_ms()) > 0) step(l, left_ms);
}

static int stand_and_lead(elector *l) {
    for (int code = 0;;) {
        if (!wait_for_election(l, &code)) return code;
        l->session.what_ends = "leadership";
        code = lead(l);
        l->session.what_ends = NULL;
        if (is_final(l)) return l->run.asked || (!l->options.once && is_asked(&l->run)) ? 0 : code;
        dv_run_again(&l->run);
        pause_before_next(l);
        code = 0;
    }
}

/* ---- the whole ---- */

static int run_candidate(elector *l) {
    int code = dv_program_find(l->options.arguments[0], &l->program);
    if (code != 0) return code;
    if (dv_run_open(&l->run) != 0) return DV_EXIT_TROUBLE;
    l->run.again = !l->options.once;
    l->run.end_grace_ms = l->options.grace_ms;
    l->session.watched_by = l->run.guardians;
    code = dv_session_open(&l->session);
    return code ? code : stand_and_lead(l);
}

static int run_observer(elector *l) {
    int code = dv_session_open(&l->session);
    if (code != 0) return code;
    return l->options.watch ? dv_elect_watch(&l->options, &l->session) : dv_elect_step_down(&l->options, &l->session);
}

static int run(int argc, char **argv) {
    elector l = {.run = {.signal_fd = -1}};
    l.session = (dv_session){.command = "elect",
                             .failed = DV_EXIT_TROUBLE,
                             .unreachable = DV_EXIT_UNREACHABLE,
                             .options = &l.options.session};
    int code = dv_elect_options_parse(&l.options, argc, argv);
    if (code == DV_EXIT_FAILED) code = l.session.failed;
    if (code == 0) {
        dv_log_field("election", l.options.name);
        code = l.options.watch || l.options.step_down ? run_observer(&l) : run_candidate(&l);
    }
    divvy_election_destroy(l.election);
    dv_session_close(&l.session);
    dv_run_close(&l.run);
    free(l.program);
    dv_elect_options_free(&l.options);
    return code;
}

const dv_command dv_elect_command = {
    .name = "elect",
    .summary = "run a command while this candidate leads",
    .run = run,
    .print_help = dv_elect_print_help,
    .needs_no_output = true,
};
