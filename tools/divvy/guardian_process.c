/* A guardian: starts one command, and ends it in time. SPDX-License-Identifier: Apache-2.0
 *
 * A command goes through these phases, and never back: it runs; SIGTERM was sent to it (ending); SIGKILL is (killing).
 * In each of them it may exit. When it does so while it runs, ending is for what it has left behind, and begins a
 * moment later. When nothing is left that is to be ended, the guardian says so and exits. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "descendants.h"
#include "dispositions.h"
#include "guardian_internal.h"
#include "program.h"
#include "tls_options.h"

enum {
    ORPHAN_GRACE_MS = 500, /* G4: from SIGTERM to SIGKILL when the parent has died */
    LINGER_MS = 500,       /* G8: that what a command left behind has to finish, before SIGTERM */
    SWEEP_MS = 10,         /* between two looks at who is alive, at first; */
    SWEEP_MAX_MS = 200     /* and at last */
};

typedef enum { RUNNING, ENDING, KILLING } phase;

typedef struct {
    const dv_guardian_config *config;
    dv_guardian_page *page;
    int orders_fd; /* -1: the parent has gone */
    int signal_fd, timer_fd;
    int exec_fd;     /* tells how execve(2) went; -1: it has told */
    int terminal_fd; /* -1: no job control */
    struct termios modes;
    pid_t home_group; /* of the parent */
    pid_t command;
    bool exited; /* and its status is known; its number may be another's by now */
    int status;
    bool stopped;
    phase phase;     /* enter() alone writes it */
    bool everything; /* daemons are ended too: it has not exited by itself */
    dv_guardian_why why;
    int64_t end_at;  /* SIGTERM; INT64_MAX: only the deadline says */
    int64_t kill_at; /* SIGKILL, likewise */
    int64_t sweep_at, sweep_ms;
} guardian;

/* Returns whether the parent may be told that now. */
static bool may_tell(const guardian *g, dv_guardian_kind kind) {
    switch (kind) {
    case DV_GUARDIAN_STARTED: return g->command > 1 && g->exec_fd < 0 && !g->exited;
    case DV_GUARDIAN_REFUSED: return !g->exited && (g->command <= 0 || g->exec_fd < 0);
    case DV_GUARDIAN_STOPPED:
    case DV_GUARDIAN_CONTINUED: return g->terminal_fd >= 0 && !g->exited;
    case DV_GUARDIAN_ENDING: return g->phase == ENDING;
    case DV_GUARDIAN_EXITED:
    case DV_GUARDIAN_GONE: return g->exited && g->exec_fd < 0;
    case DV_GUARDIAN_DIED: return false; /* The forker tells, or the parent finds out. */
    }
    return false;
}

static uint64_t microseconds(const struct timeval *time) {
    return (uint64_t)time->tv_sec * 1000000 + (uint64_t)time->tv_usec;
}

/* Returns the processor time of all that we have waited for: we are a subreaper, so nothing of a command is missing. */
static uint64_t used_by_children(void) {
    struct rusage used;
    if (getrusage(RUSAGE_CHILDREN, &used) != 0) return 0;
    return microseconds(&used.ru_utime) + microseconds(&used.ru_stime);
}

static void tell(const guardian *g, dv_guardian_kind kind, int value) {
    assert(may_tell(g, kind));
    (void)may_tell;
    dv_guardian_event event = {.kind = kind, .value = value, .why = g->why, .guardian = getpid()};
    if (kind == DV_GUARDIAN_GONE) event.cpu_us = used_by_children();
    if (g->orders_fd >= 0) send(g->orders_fd, &event, sizeof event, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* ---- the terminal ---- */

/* The command gets the foreground, if our home has it. */
static void give_terminal(const guardian *g) {
    assert(g->command > 1 && !g->exited);
    if (g->terminal_fd >= 0 && tcgetpgrp(g->terminal_fd) == g->home_group) tcsetpgrp(g->terminal_fd, g->command);
}

/* Our home gets it back, if the command has it; and the modes, if the command could not restore them. */
static void take_terminal(const guardian *g, bool restore) {
    if (g->terminal_fd < 0 || tcgetpgrp(g->terminal_fd) != g->command) return;
    if (restore) tcsetattr(g->terminal_fd, TCSANOW, &g->modes);
    tcsetpgrp(g->terminal_fd, g->home_group);
}

static void open_terminal(guardian *g) {
    if (!g->config->terminal) return;
    g->terminal_fd = open("/dev/tty", O_RDWR | O_CLOEXEC);
    if (g->terminal_fd >= 0) tcgetattr(g->terminal_fd, &g->modes);
}

/* ---- whom signals go to ---- */

/* Group 0 would be our own, and -1 all processes. A number that was reaped may be another's. */
static void signal_group(const guardian *g, int number) {
    assert(g->command > 1);
    assert(!g->exited);
    kill(-g->command, number);
}

/* Daemons in sessions of their own are meant only where the command has not exited by itself: rules G7, G8. */
static dv_descent to_be_ended(const guardian *g) {
    return (dv_descent){.ours_only = !g->everything};
}

/* Sends `number` to all that is to be ended. */
static void signal_all(const guardian *g, int number) {
    if (!g->exited) signal_group(g, number);
    dv_processes list;
    dv_descent which = to_be_ended(g);
    if (dv_descendants_find(&list, &which) != 0) return;
    for (size_t i = 0; i < list.count; i++) {
        bool has_it = !g->exited && list.all[i].group == g->command;
        if (!has_it) dv_process_signal(&list.all[i], number);
    }
    free(list.all);
}

/* ---- the end ---- */

/* Every change of phase passes here. */
static void enter(guardian *g, phase to) {
    assert(to == g->phase + 1);
    assert(g->command > 1);
    assert(g->kill_at < INT64_MAX);
    g->phase = to;
}

static void begin_end(guardian *g, dv_guardian_why why, int64_t kill_at) {
    if (kill_at < g->kill_at) g->kill_at = kill_at;
    if (g->phase != RUNNING) return;
    enter(g, ENDING);
    if (!g->exited) {
        g->everything = true;
        g->why = why;
    }
    signal_all(g, SIGTERM);
    /* A stopped process does not act on SIGTERM before it goes on. */
    signal_all(g, SIGCONT);
    if (why == DV_ENDED_BY_DEADLINE) tell(g, DV_GUARDIAN_ENDING, 0);
}

static int64_t last_kill_ms(const guardian *g) {
    return atomic_load(&g->page->deadline_ms) - g->config->kill_ms;
}

/* Does what is due by the clock: rule G3. */
static void act(guardian *g, int64_t now) {
    int64_t last_ms = last_kill_ms(g);
    if (g->phase == RUNNING && now >= last_ms - g->config->grace_ms) begin_end(g, DV_ENDED_BY_DEADLINE, last_ms);
    if (g->phase == RUNNING && now >= g->end_at) begin_end(g, DV_ENDED_BY_ITSELF, now + g->config->grace_ms);
    if (g->phase == ENDING && (now >= g->kill_at || now >= last_ms)) {
        enter(g, KILLING);
        g->sweep_at = now;
        g->sweep_ms = SWEEP_MS;
    }
    if (g->phase != KILLING || now < g->sweep_at) return;
    assert(g->sweep_ms >= SWEEP_MS && g->sweep_ms < 2 * SWEEP_MAX_MS);
    signal_all(g, SIGKILL);
    g->sweep_at = now + g->sweep_ms;
    if (g->sweep_ms < SWEEP_MAX_MS) g->sweep_ms *= 2;
}

/* When act() has something to do next. */
static int64_t next_act_ms(const guardian *g) {
    if (g->phase == KILLING) return g->sweep_at;
    int64_t last_ms = last_kill_ms(g);
    if (g->phase == ENDING) return g->kill_at < last_ms ? g->kill_at : last_ms;
    return g->end_at < last_ms - g->config->grace_ms ? g->end_at : last_ms - g->config->grace_ms;
}

/* ---- children ---- */

static void take_stop(guardian *g, int number) {
    assert(!g->exited);
    if (g->terminal_fd < 0 || g->phase != RUNNING) return;
    /* It wants the terminal that our home has: it is a foreground job that has been started in the background. */
    if ((number == SIGTTIN || number == SIGTTOU) && tcgetpgrp(g->terminal_fd) == g->home_group) {
        give_terminal(g);
        signal_group(g, SIGCONT);
        return;
    }
    /* A stop that is not the terminal's, by a debugger for example, is its sender's affair. */
    bool foreground = tcgetpgrp(g->terminal_fd) == g->command;
    if (number == SIGSTOP && !foreground) return;
    take_terminal(g, false);
    g->stopped = true;
    tell(g, DV_GUARDIAN_STOPPED, number);
}

static void take_status(guardian *g, int status) {
    assert(!g->exited);
    if (WIFSTOPPED(status)) {
        take_stop(g, WSTOPSIG(status));
    } else if (WIFCONTINUED(status)) {
        if (g->stopped) tell(g, DV_GUARDIAN_CONTINUED, 0);
        g->stopped = false;
    } else {
        assert(WIFEXITED(status) || WIFSIGNALED(status));
        assert(g->exec_fd < 0); /* The end is told after the start. */
        take_terminal(g, WIFSIGNALED(status));
        g->exited = true;
        g->status = status;
        tell(g, DV_GUARDIAN_EXITED, status);
    }
}

/* Takes the result of execve(2). Ends this process when it failed. */
static void take_exec(guardian *g) {
    assert(g->exec_fd >= 0);
    assert(!g->exited);
    int error = 0;
    ssize_t bytes = read(g->exec_fd, &error, sizeof error);
    close(g->exec_fd);
    g->exec_fd = -1;
    if (bytes != (ssize_t)sizeof error) {
        tell(g, DV_GUARDIAN_STARTED, g->command);
        return;
    }
    take_terminal(g, false);
    waitpid(g->command, NULL, 0);
    tell(g, DV_GUARDIAN_REFUSED, error);
    _exit(0);
}

/* Takes notice of all that has happened to our children. Returns whether there are any left. */
static bool reap(guardian *g) {
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED)) > 0) {
        if (pid != g->command || g->exited) continue;
        if (g->exec_fd >= 0 && !WIFSTOPPED(status) && !WIFCONTINUED(status)) take_exec(g);
        take_status(g, status);
    }
    return pid == 0;
}

/* Returns whether nothing is left that is to be ended: rules G7, G8. */
static bool is_gone(guardian *g, int64_t now) {
    dv_descent which = to_be_ended(g);
    if (!reap(g)) return g->exited;
    if (!g->exited || g->everything) return false;
    assert(which.ours_only); /* Rule G8: daemons may stay. */
    if (dv_descendants_are_gone(&which)) return true;
    int64_t wait_ms = g->config->grace_ms < LINGER_MS ? g->config->grace_ms : LINGER_MS;
    if (g->end_at == INT64_MAX) g->end_at = now + wait_ms;
    return false;
}

/* ---- orders ---- */

static void take_order(guardian *g, const dv_order *order, int64_t now) {
    switch (order->kind) {
    case DV_ORDER_SIGNAL:
        assert(order->value > 0 && order->value < NSIG);
        if (!g->exited) signal_group(g, (int)order->value);
        break;
    case DV_ORDER_END:
        assert(order->value >= 0);
        begin_end(g, DV_ENDED_BY_ORDER, now + order->value);
        break;
    case DV_ORDER_CONTINUE:
        if (g->exited) break;
        give_terminal(g);
        signal_group(g, SIGCONT);
        break;
    }
}

static void take_orders(guardian *g, int64_t now) {
    assert(g->orders_fd >= 0);
    dv_order order;
    ssize_t bytes;
    while ((bytes = recv(g->orders_fd, &order, sizeof order, MSG_DONTWAIT)) == (ssize_t)sizeof order)
        take_order(g, &order, now);
    if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) return;
    close(g->orders_fd);
    g->orders_fd = -1;
    begin_end(g, DV_ENDED_BY_ORDER, now + ORPHAN_GRACE_MS);
}

/* ---- the beginning ---- */

static void set_environment(const char *const *environment) {
    environ = dv_tls_options_environment();
    for (; *environment; environment++) {
        if (strchr(*environment, '=')) putenv((char *)(uintptr_t)*environment);
        else unsetenv(*environment);
    }
}

/* Passes start_fd on, by the lowest number that the command has no use for: shells redirect from one digit best. */
static void pass_start(int start_fd, int error_fd) {
    assert(start_fd >= 0 && start_fd != error_fd);
    char number[16];
    int fd = STDERR_FILENO + 1;
    for (int flags; fd == error_fd || ((flags = fcntl(fd, F_GETFD)) >= 0 && !(flags & FD_CLOEXEC));) fd++;
    if (fd == start_fd) fcntl(fd, F_SETFD, 0);
    else dup2(start_fd, fd);
    snprintf(number, sizeof number, "%d", fd);
    setenv("DIVVY_START_FD", number, 1);
}

/* The child, up to execve(2). `error_fd` closes with that. */
static _Noreturn void be_command(const guardian *g, pid_t parent, int error_fd) {
    setpgid(0, 0);
    if (g->config->foreground && g->terminal_fd >= 0 && tcgetpgrp(g->terminal_fd) == g->home_group)
        tcsetpgrp(g->terminal_fd, getpid());
    /* Rule G4. When the guardian is killed, the kernel kills us; it may have been before that was asked for. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    int input = g->config->no_input ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -1;
    if (input >= 0) dup2(input, STDIN_FILENO);
    set_environment(g->config->environment);
    if (g->config->start_fd) pass_start(g->config->start_fd, error_fd);
    dv_dispositions_restore();
    if (g->config->function) {
        close(error_fd);
        close(g->orders_fd);
        _exit(g->config->function());
    }
    dv_program_execute(g->config->program, g->config->arguments);
    int error = errno;
    if (write(error_fd, &error, sizeof error) < 0) _exit(126);
    _exit(127);
}

static int start(guardian *g) {
    int ends[2];
    assert(g->command == 0 && g->phase == RUNNING);
    assert(g->config->grace_ms >= 0 && g->config->kill_ms >= 0);
    if (dv_guardians_now_ms() >= last_kill_ms(g) - g->config->grace_ms) {
        errno = ETIME;
        return -1;
    }
    if (pipe2(ends, O_CLOEXEC) != 0) return -1;
    pid_t self = getpid();
    g->command = fork();
    if (g->command == 0) be_command(g, self, ends[1]);
    close(ends[1]);
    if (g->config->start_fd) close(g->config->start_fd);
    g->exec_fd = ends[0];
    if (g->command < 0) return -1;
    assert(g->command > 1 && g->command != self);
    /* Both do it, so that it is done before either goes on. */
    setpgid(g->command, g->command);
    return 0;
}

static int open_sources(guardian *g) {
    sigset_t children;
    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    g->signal_fd = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
    /* It goes on while the machine sleeps, and is due at once when that has taken too long. */
    g->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    return g->signal_fd < 0 || g->timer_fd < 0 ? -1 : 0;
}

static void wait_for_something(guardian *g) {
    int64_t at_ms = next_act_ms(g);
    if (at_ms < 1) at_ms = 1; /* 0 would mean never. */
    struct itimerspec at = {.it_value = {.tv_sec = at_ms / 1000, .tv_nsec = at_ms % 1000 * 1000000}};
    timerfd_settime(g->timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
    struct pollfd fds[] = {{.fd = g->orders_fd, .events = POLLIN},
                           {.fd = g->signal_fd, .events = POLLIN},
                           {.fd = g->timer_fd, .events = POLLIN},
                           {.fd = g->exec_fd, .events = POLLIN}};
    poll(fds, 4, -1);
    struct signalfd_siginfo info;
    while (read(g->signal_fd, &info, sizeof info) == (ssize_t)sizeof info) continue;
    if (fds[3].revents) take_exec(g);
    if (fds[0].revents) take_orders(g, dv_guardians_now_ms());
}

void dv_guardian_run(int socket, const dv_guardian_home *home, const dv_guardian_config *config) {
    guardian g = {.config = config,
                  .page = home->page,
                  .orders_fd = socket,
                  .signal_fd = -1,
                  .timer_fd = -1,
                  .exec_fd = -1,
                  .terminal_fd = -1,
                  .home_group = home->home_group,
                  .end_at = INT64_MAX,
                  .kill_at = INT64_MAX};
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* Not inherited from the forker. */
    open_terminal(&g);
    if (open_sources(&g) != 0 || start(&g) != 0) {
        tell(&g, DV_GUARDIAN_REFUSED, errno);
        _exit(0);
    }
    do {
        wait_for_something(&g);
        /* Before anything else, so that no signal goes to a number that is free. */
        reap(&g);
        act(&g, dv_guardians_now_ms());
    } while (!is_gone(&g, dv_guardians_now_ms()));
    tell(&g, DV_GUARDIAN_GONE, g.status);
    dv_guardian_keep_watch(home->watcher);
    _exit(0);
}
