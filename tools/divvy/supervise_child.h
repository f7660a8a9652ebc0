/* The command of one item: when it is started, ended, started again. SPDX-License-Identifier: Apache-2.0
 *
 * An item's owner wants its command to run; who is about to lose it, or has, does not. Whatever is wanted meanwhile,
 * one command's processes are gone to the last one before the next command of the item is started, and before the item
 * is given back. With `standby` a command may be started before the item is owned: it stands by, and is told to begin
 * when the item is. A command that was never told to begin has no part in the item. Knows nothing of ZooKeeper: until
 * when something may run is told from outside, by a deadline. */
#ifndef DV_SUPERVISE_CHILD_H
#define DV_SUPERVISE_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "guardian.h"
#include "standby.h"

/* After how long a command that has exited is started again: the first, doubled each time up to the last; again from
 * the first when it has run for so long. They are promised in the help text and the man page. */
enum { DV_CHILD_BACKOFF_MS = 100, DV_CHILD_BACKOFF_MAX_MS = 30000, DV_CHILD_STEADY_MS = 5000 };

/* Stands for the item's name in the words of a command, but for the first. */
#define DV_CHILD_PLACEHOLDER "{item}"

/* The action when a command exits by itself. */
typedef enum { DV_RESTART_ALWAYS, DV_RESTART_ON_FAILURE, DV_RESTART_NEVER } dv_restart;

typedef enum {
    DV_CHILD_STARTED,
    DV_CHILD_STANDBY,  /* started, and not told to begin */
    DV_CHILD_READY,    /* it stands by, and says that it is ready */
    DV_CHILD_BEGUN,    /* it stood by, and was told to begin */
    DV_CHILD_EXITED,   /* by itself, and is started again after restart_ms */
    DV_CHILD_FINISHED, /* by itself, and is not started again as long as the item stays */
    DV_CHILD_ENDED,    /* it was, because of `reason`; where the item stays it is started again, after restart_ms */
    DV_CHILD_FAILED    /* it could not be started, or told to begin, because of `reason`; the next follows likewise */
} dv_child_kind;

typedef struct {
    dv_child_kind kind;
    const char *item;
    int64_t token;      /* 0: it was not told to begin */
    pid_t pid;          /* 0 where it could not be started */
    int status;         /* as shells tell it: 128 and the signal's number where one ended it */
    int signal;         /* that ended it; 0: none did */
    pid_t guardian;     /* the parent of all its processes; 0 where it could not be started */
    uint64_t cpu_us;    /* where it is over: the processor time of all its processes, as far as it is known */
    int64_t restart_ms; /* -1: there is no next start to be told of */
    const char *reason; /* NULL: none */
} dv_child_event;

/* The settings that all commands share. */
typedef struct {
    const char *program;          /* a path, as dv_program_find() gives it */
    const char *const *arguments; /* argv, with a NULL at the end; it may have DV_CHILD_PLACEHOLDER */
    dv_restart restart;
    int64_t session_timeout_ms;
    int64_t drain_ms; /* from SIGTERM to SIGKILL, when the item is revoked */
    bool standby;     /* commands know how to stand by: standby.h */
    /* Asked right before a start: whether the item is owned at this moment, whatever has not been told yet. */
    bool (*is_owned)(const char *item, void *user);
    void (*on_child)(const dv_child_event *event, void *user);
    /* With `standby`: the item is not owned yet, and its command is ready to begin. */
    void (*on_ready)(const char *item, void *user);
    void *user;
} dv_supervise_config;

/* The times that a command has to end when the session may be over soon. */
typedef struct {
    int64_t grace_ms, kill_ms; /* see dv_guardian_config */
} dv_child_times;

typedef struct {
    const dv_supervise_config *config;
    const char *item;
    int64_t token; /* of the newest ownership */
    bool wanted;
    bool owned;            /* false while it is wanted: it is to stand by */
    bool begun;            /* what runs may work on the item; with `standby` it was told to begin */
    int64_t start_at_ms;   /* when it is wanted and does not run, or has not begun; INT64_MAX: it has finished */
    int64_t backoff_ms;    /* the next one */
    dv_guardian *guardian; /* NULL: nothing runs */
    dv_standby standby;    /* of what runs */
    int64_t running_token; /* what it began with; 0: it has not */
    pid_t pid;             /* 0: not known yet */
    pid_t guardian_pid;    /* likewise */
    uint64_t cpu_us;       /* it has used so much; 0: that is not known yet */
    int64_t started_ms;
    const char *end_reason; /* it was told to end; NULL: it was not */
    int64_t
        swept_at_ms; /* its guardian was killed: by when the kernel and the forker have killed the rest; 0: not so */
    size_t slot;     /* for the supervisor */
} dv_child;

/* Its item is owned, by `token`: it is to be started, at once or when what still runs has gone; or to begin, if it
 * stands by. */
void dv_child_want(dv_child *child, int64_t token, int64_t now_ms);

/* Its item is not owned yet, but likely soon: it is to be started as a standby. */
void dv_child_stand_by(dv_child *child, int64_t now_ms);

/* The item must be given back, or is lost: SIGTERM, and SIGKILL after grace_ms. An earlier call counts on where its
 * times are sooner. `reason` is a constant. */
void dv_child_unwant(dv_child *child, int64_t grace_ms, const char *reason);

/* Starts it, or tells it to begin: what it awaits. Returns 0, or -1 with errno set: then there is nobody left who could
 * start anything. */
int dv_child_start(dv_child *child, dv_guardians *guardians, const dv_child_times *times, int64_t now_ms);

/* Takes notice of what its guardian tells, and of what it says itself. */
void dv_child_read(dv_child *child, int64_t now_ms);

/* When there is something to do by the clock: dv_child_start(), or dv_child_read(); INT64_MAX: never. */
int64_t dv_child_next_ms(const dv_child *child);

/* Returns whether anything of it may be running. */
bool dv_child_runs(const dv_child *child);

/* Returns whether it awaits dv_child_start(). */
bool dv_child_awaits_start(const dv_child *child);

/* Returns whether it runs, and began to work on the item. */
bool dv_child_works(const dv_child *child);

/* Returns whether it runs, began to work on the item, and is to end. */
bool dv_child_holds_item(const dv_child *child);

/* Frees the guardian, which ends what runs, and closes what it stands by with. */
void dv_child_let_go(dv_child *child);

#endif
