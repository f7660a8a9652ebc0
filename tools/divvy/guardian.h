/* Guardians: processes that run a command, and end it in time whatever becomes of us. SPDX-License-Identifier:
 * Apache-2.0
 *
 * Rules G2 to G10 of docs/protocol.md.
 *
 * A guardian is the parent of one command. It has one thread, waits for nothing but its orders, its children and its
 * clock, and knows until when the command may run: the deadline, which we move forward as long as the session proves to
 * be alive. So the command ends before its lock does (docs/protocol.md, C1) also when we are stopped, hang, or are
 * killed:
 *
 *  1. SIGTERM `grace_ms` before, SIGKILL so long before the deadline that nothing is left at it. A guardian that was
 *     itself stopped meanwhile does what is due as soon as it runs again.
 *  2. When our end of its socket closes, which the kernel sees to: SIGTERM, and SIGKILL half a second later.
 *  3. When it is killed itself, the kernel kills the command (PR_SET_PDEATHSIG), and dv_guardian_read() its group.
 *
 * What is ended: the command's process group and all its other descendants. The guardian is a subreaper, so that
 * descendants whose parents have gone become its children and are found, daemons in sessions of their own too. Only
 * when the command has exited by itself are such daemons left alone: a command may start a service under a lock.
 * Processes that it has left behind in our session, in the background for example, may finish for half a second, and
 * are ended then.
 *
 * Guardians are forked from one process, the forker, which is itself forked before we have any thread or connection: it
 * is small, and no descriptor of ours can leak through it. Descriptors 0 to 2, and those that our caller passed on,
 * such as bash's <(...), are the command's too.
 *
 * Everything here is called on one thread, and nothing waits but where said.
 */
#ifndef DV_GUARDIAN_H
#define DV_GUARDIAN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The forker, and the deadline that all its guardians keep. */
typedef struct dv_guardians dv_guardians;

/* One command with its guardian. */
typedef struct dv_guardian dv_guardian;

/* Forks the forker. Call it while this process has one thread, after dv_dispositions_remember(), and before any
 * descriptor is opened that a command is not to have. No deadline has been set then: nothing can be started yet.
 * Returns 0, or -1 with errno set. Release *out with dv_guardians_close(). */
int dv_guardians_open(dv_guardians **out);

/* Returns our end of the socket to the forker, which is a death watch too (G10), for dv_client_open_watched(). -1:
 * there is none, as the kernel has no pidfds. */
int dv_guardians_watch_fd(const dv_guardians *guardians);

/* Returns whether the process is one of our forkers. */
bool dv_guardians_have(pid_t process);

/* Until when commands may run, in ms of CLOCK_BOOTTIME: divvy_client_time_left_ms() added to a time that was read
 * before. Set it again at least after each divvy_client_process(). 0: nothing may run, nothing is started. An earlier
 * deadline than the last one counts when the last one would have made a guardian look again; so after a loss call
 * dv_guardian_end() too. Costs nothing: one store to memory that is shared with the guardians. */
void dv_guardians_set_deadline(dv_guardians *guardians, int64_t deadline_ms);

/* The clock of deadlines. */
int64_t dv_guardians_now_ms(void);

/* Ends the forker. Commands that still run are ended as in 2. above; free their dv_guardian first. NULL is allowed. */
void dv_guardians_close(dv_guardians *guardians);

typedef struct {
    const char *program;            /* what to execute: a path, as dv_program_find() gives it */
    const char *const *arguments;   /* argv, with a NULL at the end */
    const char *const *environment; /* what differs from ours: NAME=VALUE, or NAME to be removed; NULL at the end */
    /* Instead of a program: a function of ours. `program` and `arguments` are not used. Returns the exit status. */
    int (*function)(void);
    int64_t grace_ms; /* from SIGTERM to SIGKILL, where the deadline makes it end, or what it left behind is ended */
    int64_t kill_ms;  /* from SIGKILL to the deadline: for the kernel to end it, and for us to be scheduled late */
    /* A descriptor that the command inherits besides those of our caller, and whose number it has in DIVVY_START_FD;
     * 0: none. It stays ours. */
    int start_fd;
    bool no_input;   /* standard input is /dev/null */
    bool terminal;   /* job control: the command has the terminal's foreground while we would, see lock.c */
    bool foreground; /* with `terminal`: from the start; else once it asks for it by SIGTTIN or SIGTTOU */
    bool only;       /* there will be no other: the forker itself becomes the guardian, which saves a process */
} dv_guardian_config;

/*
 * Starts a command, in a process group of its own. How that went is told by dv_guardian_read().
 *
 * Ownership: `config` is copied. Release *out with dv_guardian_free().
 * Returns 0, or -1 with errno set; then *out is NULL, and nothing was started.
 */
int dv_guardian_start(dv_guardian **out, dv_guardians *guardians, const dv_guardian_config *config);

typedef enum {
    DV_GUARDIAN_STARTED,   /* it runs; `value`: its process, which is the number of its group too */
    DV_GUARDIAN_REFUSED,   /* it cannot be run; `value`: errno, ETIME when the deadline was too near. The last event */
    DV_GUARDIAN_STOPPED,   /* with `terminal`: by signal `value`. We have the foreground again if it had it */
    DV_GUARDIAN_CONTINUED, /* with `terminal` */
    DV_GUARDIAN_ENDING,    /* the deadline is near, and SIGTERM was sent */
    DV_GUARDIAN_EXITED,    /* `value`: its status as of waitpid(2). Others of its processes may be there still */
    DV_GUARDIAN_GONE,      /* nothing of it is left; `value` as before, and `why`. The last event */
    DV_GUARDIAN_DIED       /* the guardian was killed, and so was all that it guarded. The last event */
} dv_guardian_kind;

typedef enum {
    DV_ENDED_BY_ITSELF,  /* signals that were passed on to it included */
    DV_ENDED_BY_ORDER,   /* dv_guardian_end() came first */
    DV_ENDED_BY_DEADLINE /* the deadline did */
} dv_guardian_why;

typedef struct {
    dv_guardian_kind kind;
    int value;
    dv_guardian_why why; /* of DV_GUARDIAN_GONE */
    pid_t guardian;      /* of DV_GUARDIAN_STARTED: its process */
    uint64_t cpu_us;     /* of DV_GUARDIAN_GONE: the processor time of the command, and of all that came from it */
} dv_guardian_event;

/* For poll(2): readable when there is an event. */
int dv_guardian_fd(const dv_guardian *guardian);

/* The next event: 1, or 0 when there is none now, and after the last one. */
int dv_guardian_read(dv_guardian *guardian, dv_guardian_event *out);

/* Sends signal `number` to the command's group. Where it has not started yet, as soon as it has. */
void dv_guardian_signal(dv_guardian *guardian, int number);

/* Ends the command and all its descendants: SIGTERM now, SIGKILL after grace_ms (0: at once) or before the deadline,
 * whichever is first. May be repeated, to give less time. DV_GUARDIAN_GONE follows when that is done. */
void dv_guardian_end(dv_guardian *guardian, int64_t grace_ms);

/* With `terminal`: lets the group go on after a stop, in the foreground if our own group has it now. */
void dv_guardian_continue(dv_guardian *guardian);

/* Lets go of it: a command that still runs is ended as in 2. above. NULL is allowed. */
void dv_guardian_free(dv_guardian *guardian);

#endif
