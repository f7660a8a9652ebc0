/* A command under a lock: its guardian, its signals, its terminal. SPDX-License-Identifier: Apache-2.0
 *
 * Job control, as our shell sees it: we are the job. The command has a process group of its own, which gets the
 * terminal's foreground while we would have it, so that the keyboard's signals reach it, once, and not us. When it is
 * stopped we get the foreground back and stop too, so that the shell notices; when the shell lets us go on, so does
 * the command, in the foreground if we are. Our heartbeats stop with us: who is stopped for long loses the lock. */
#include "run.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"
#include "dispositions.h"
#include "program.h"

static const int handled[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH, SIGTSTP, SIGCONT};

/* Rule G3: for SIGKILL to take effect before the deadline, a twentieth of the session's timeout, within these; and the
 * longest grace by default. */
enum { KILL_LEAST_MS = 25, KILL_MOST_MS = 500, GRACE_MAX_MS = 3000 };

enum { HANDLED_COUNT = sizeof handled / sizeof *handled };

static int open_signals(void) {
    sigset_t signals;
    sigemptyset(&signals);
    for (size_t i = 0; i < HANDLED_COUNT; i++) {
        if (!dv_dispositions_ignored(handled[i])) sigaddset(&signals, handled[i]);
    }
    /* No matter who is told of a stop otherwise: SIGCONT tells. */
    sigaddset(&signals, SIGCONT);
    return dv_dispositions_receive(&signals);
}

int dv_run_open(dv_run *run) {
    *run = (dv_run){.signal_fd = -1, .end_grace_ms = -1};
    if (dv_guardians_open(&run->guardians) == 0) run->signal_fd = open_signals();
    if (run->signal_fd >= 0) return 0;
    dv_command_say("cannot prepare to run a command: %s", strerror(errno));
    return -1;
}

void dv_run_close(dv_run *run) {
    dv_guardian_free(run->guardian);
    dv_guardians_close(run->guardians);
    if (run->signal_fd >= 0) close(run->signal_fd);
    *run = (dv_run){.signal_fd = -1};
}

/* Returns whether the command gets the foreground from the start: where we are a job of an interactive shell, alone
 * with the terminal. In a pipeline others may read from it, a pager for example; in a script the shell is to hear of ^C
 * too. There the command gets it when it reads, see guardian.h. */
static bool is_foreground_job(void) {
    return getpgrp() == getpid() && tcgetpgrp(STDIN_FILENO) == getpgrp() && tcgetpgrp(STDOUT_FILENO) == getpgrp();
}

int dv_run_check_grace(const char *command, int64_t session_timeout_ms, int64_t *grace_ms) {
    int64_t fifth_ms = session_timeout_ms / 5, most_ms = session_timeout_ms / 3;
    if (*grace_ms < 0) *grace_ms = fifth_ms < GRACE_MAX_MS ? fifth_ms : GRACE_MAX_MS;
    if (*grace_ms <= most_ms) return 0;
    return dv_command_misused(command, "--grace may be at most a third of --session-timeout, that is %" PRId64 " ms",
                              most_ms);
}

/* Servers may have granted a shorter session than was asked for: SIGTERM comes no earlier than when half of what is
 * left now is over. */
void dv_run_set_times(dv_guardian_config *config, int64_t session_timeout_ms, int64_t grace_ms, int64_t left_ms) {
    assert(left_ms >= 0 && grace_ms >= 0);
    int64_t half_ms = left_ms / 2, kill_ms = session_timeout_ms / 20;
    if (kill_ms > KILL_MOST_MS) kill_ms = KILL_MOST_MS;
    if (kill_ms < KILL_LEAST_MS) kill_ms = KILL_LEAST_MS;
    if (kill_ms > half_ms / 4) kill_ms = half_ms / 4;
    config->grace_ms = grace_ms < half_ms - kill_ms ? grace_ms : half_ms - kill_ms;
    config->kill_ms = kill_ms;
    assert(config->kill_ms >= 0 && config->grace_ms >= 0 && config->grace_ms + config->kill_ms <= half_ms);
}

void dv_run_again(dv_run *run) {
    assert(run->again);
    assert(run->guardian && run->over);
    dv_guardian_free(run->guardian);
    run->guardian = NULL;
    run->over = run->guardian_died = false;
    run->refused = run->status = run->typed = 0;
    run->told = 0;
    run->why = DV_ENDED_BY_ITSELF;
}

int dv_run_start(dv_run *run, dv_guardian_config *config) {
    assert(run->guardians && !run->guardian && !run->over);
    config->terminal = true;
    config->foreground = is_foreground_job();
    config->only = !run->again;
    return dv_guardian_start(&run->guardian, run->guardians, config);
}

int dv_run_signal_fd(const dv_run *run) {
    return run->signal_fd;
}

int dv_run_guardian_fd(const dv_run *run) {
    return run->guardian && !run->over ? dv_guardian_fd(run->guardian) : -1;
}

/* Stops this process by `number`, as if we had not blocked it. Returns when it goes on; at once where nobody would ever
 * let it go on (orphaned process groups). */
static void stop(int number) {
    assert(number > 0 && number < NSIG);
    sigset_t one, before;
    sigemptyset(&one);
    sigaddset(&one, number);
    struct sigaction by_default = {.sa_handler = SIG_DFL}, old;
    sigemptyset(&by_default.sa_mask);
    sigaction(number, &by_default, &old);
    raise(number);
    sigprocmask(SIG_UNBLOCK, &one, &before);
    sigprocmask(SIG_SETMASK, &before, NULL);
    sigaction(number, &old, NULL);
}

static bool asks_for_end(int number) {
    return number == SIGTERM || number == SIGINT || number == SIGHUP || number == SIGQUIT;
}

static void take_signal_alone(dv_run *run, int number) {
    assert(!run->guardian || run->over);
    if (number == SIGTSTP) stop(number);
    if (asks_for_end(number)) run->asked = number;
}

/* Returns whether the signal ends the command, with some time, instead of being passed on. */
static bool ends(const dv_run *run, int number) {
    if (run->end_grace_ms < 0) return false;
    return number == SIGTERM || number == SIGHUP || (run->holds && asks_for_end(number));
}

static void take_signal(dv_run *run, int number) {
    if (!run->guardian || run->over) {
        take_signal_alone(run, number);
    } else if (number == SIGCONT) {
        dv_guardian_continue(run->guardian);
    } else if (ends(run, number)) {
        run->asked = number;
        dv_guardian_end(run->guardian, run->end_grace_ms);
    } else if (!run->holds || number == SIGTSTP) {
        if (asks_for_end(number)) run->told |= dv_run_bit(number);
        dv_guardian_signal(run->guardian, number);
        /* Without a terminal the guardian tells of no stop. An orphaned process group obeys only SIGSTOP. */
        if (number == SIGTSTP && !dv_command_has_terminal()) stop(SIGSTOP);
    }
}

static void take_info(dv_run *run, const struct signalfd_siginfo *info) {
    int number = (int)info->ssi_signo;
    assert(number > 0 && number < NSIG);
    if (info->ssi_code == SI_KERNEL && (number == SIGINT || number == SIGQUIT)) run->typed = number;
    take_signal(run, number);
}

int dv_run_code(const dv_run *run, const char *name) {
    assert(run->over);
    if (run->refused) {
        dv_command_say("cannot execute \"%s\": %s", name, strerror(run->refused));
        return dv_program_code(run->refused);
    }
    if (run->guardian_died) {
        dv_command_say("the process that guards the command was killed, and the command with it");
        return DV_EXIT_TROUBLE;
    }
    return WIFSIGNALED(run->status) ? DV_EXIT_SIGNAL + WTERMSIG(run->status) : WEXITSTATUS(run->status);
}

void dv_run_die_if_typed(int typed, int code) {
    /* A process that leads a process group is a job of its own: its shell looks at the status only. */
    if (!typed || code != 128 + typed || getpgrp() == getpid()) return;
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, typed);
    signal(typed, SIG_DFL);
    raise(typed);
    sigprocmask(SIG_UNBLOCK, &one, NULL);
}

static void take_event(dv_run *run, const dv_guardian_event *event) {
    assert(run->guardian && !run->over);
    switch (event->kind) {
    case DV_GUARDIAN_STOPPED:
        stop(event->value);
        dv_guardian_continue(run->guardian);
        break;
    case DV_GUARDIAN_REFUSED: run->refused = event->value; break;
    case DV_GUARDIAN_DIED: run->guardian_died = true; break;
    case DV_GUARDIAN_GONE:
        run->status = event->value;
        run->why = event->why;
        break;
    default: break;
    }
    run->over =
        event->kind == DV_GUARDIAN_GONE || event->kind == DV_GUARDIAN_REFUSED || event->kind == DV_GUARDIAN_DIED;
}

void dv_run_step(dv_run *run) {
    struct signalfd_siginfo info;
    dv_guardian_event event;
    while (read(run->signal_fd, &info, sizeof info) == (ssize_t)sizeof info) take_info(run, &info);
    while (run->guardian && !run->over && dv_guardian_read(run->guardian, &event)) take_event(run, &event);
}
