/* Workers: what the files of this room share. SPDX-License-Identifier: Apache-2.0
 *
 * The thread that is inside divvy_workers_run(), the *runner*, decides everything. Callbacks, workers and signal
 * handlers note what they have to say in something atomic, or below the mutex, and wake it by dv_workers_wake().
 *
 * The room stands on the public functions of client.h and partitioner.h. It knows nothing of what is behind them, but
 * how a message comes to divvy_client_error(). */
#ifndef DV_WORKERS_H
#define DV_WORKERS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "divvy/workers.h"
#include "workers/failures.h"

enum { DV_WORKERS_WHY_BYTES = 512 };

struct divvy_job {
    divvy_workers *workers;
    int64_t token;
    void *prepared;
    const char *item;
    atomic_bool told_to_stop;
    pthread_mutex_t mutex; /* for divvy_job_wait() */
    pthread_cond_t stopped;
};

/* All that is known of one item: its job, what was prepared for it, and when its worker is called again. Only the
 * runner touches it, but for `job`, `ended`, `result`, `was_told` and `prepared`, which a thread has while it runs,
 * and `was_lost`. */
typedef struct dv_place {
    divvy_job job;
    pthread_t thread;
    atomic_bool ended;        /* the thread has only to be joined */
    bool was_told;            /* to stop, when it returned; it may have seen the item go before the runner did */
    int result;               /* what it has returned */
    bool at_work, preparing;  /* the thread's work, if there is one */
    int64_t begun_ms;         /* when the job began, or `prepare` */
    int64_t token;            /* of the last job */
    int64_t start_ms;         /* not before that; INT64_MAX: never under this token */
    int64_t pause_ms;         /* before the next start, if the worker returns, or `prepare` fails */
    bool comes;               /* the item, for which `prepare` runs */
    bool was_prepared;        /* `prepare` has succeeded */
    bool awaited;             /* `prepare` was called for the item, and is again when it fails */
    bool was_lost;            /* a callback has said so; below the mutex */
    void *prepared;           /* by a `prepare` that has ended */
    bool is_mine, is_revoked; /* by the snapshot that was looked at last */
    int64_t mine_token;       /* likewise */
    bool is_to_prepare;       /* likewise */
    char item[];
} dv_place;

typedef enum {
    DV_WORKERS_NEW,
    DV_WORKERS_WORKING,
    DV_WORKERS_HANDING_OVER, /* it was asked to end, and works until others have its items */
    DV_WORKERS_STOPPING      /* all workers have to return */
} dv_workers_phase;

struct divvy_workers {
    divvy_client *client;
    divvy_partitioner *partitioner;
    divvy_workers_config config;
    divvy_partitioner_config pool; /* the user's callbacks, and whether it is static; its strings are not ours */
    char *path;                    /* the pool's */
    pid_t pid;
    int wake_fd;      /* an eventfd */
    atomic_int asked; /* how often it was asked to end */

    pthread_mutex_t mutex; /* for the table of places, as callbacks see it, and the life of the run */
    pthread_cond_t ended;
    pthread_t runner;
    bool running, has_run, destroy_after;
    void (*gone)(void *user); /* of divvy_workers_destroy_async() */
    void *gone_user;

    dv_place **places; /* sorted bytewise */
    size_t place_count;
    dv_workers_phase phase;
    int answered;   /* how many of `asked` */
    size_t threads; /* that have not been joined */
    bool scarce;    /* memory was short in this step: the next one comes soon */
    bool drives;    /* manual mode: the runner calls divvy_client_process() */
    dv_failures failures;
    struct dv_pausing *pausing; /* quarantine.c: the items that are to be paused */
    int error;                  /* why it ends */
    char why[DV_WORKERS_WHY_BYTES];

    _Atomic(struct divvy_workers *) next_asked; /* signals.c: the next one that signals ask to end */
};

/* Wakes the runner. Async-signal-safe. */
void dv_workers_wake(const divvy_workers *w);

/* ---- places.c ---- */

/* Merges the table with the places that items of a snapshot lack. An item that there is no memory for is left out.
 * Returns whether there are new ones. */
bool dv_places_make(divvy_workers *w, const divvy_partition *snapshot);
/* Notes in the places what is ours, and makes those that are missing. */
void dv_places_take(divvy_workers *w, const divvy_partition *mine);
/* Notes in the places which items to prepare. An item without one is passed over. */
void dv_places_take_to_prepare(divvy_workers *w, const divvy_partition *coming);
/* Notes that nothing is ours any longer. */
void dv_places_take_none(divvy_workers *w);
/* Notes, in a callback, that items do not come or are gone. */
void dv_places_note_lost(divvy_workers *w, const char *const *items, size_t count);
/* Returns whether that was noted since the last call. */
bool dv_place_was_lost(divvy_workers *w, dv_place *place);
/* Removes the places that have nothing to remember. */
void dv_places_forget(divvy_workers *w);
void dv_places_free(divvy_workers *w);

/* ---- job.c ---- */

/* Starts a thread for the worker, or for `prepare`. Returns 0, DIVVY_ELIMIT or DIVVY_ESYSTEM. */
int dv_place_start_job(dv_place *place);
int dv_place_start_preparing(dv_place *place);
void dv_place_tell_stop(dv_place *place);
void dv_place_init(dv_place *place, divvy_workers *w);
void dv_place_destroy(dv_place *place);

/* ---- quarantine.c ---- */

/* Notes that the worker of an item has failed. Has the item paused where that is once too often. */
void dv_workers_note_failure(divvy_workers *w, const char *item, int result);
/* Tells what has come of pauses. */
void dv_workers_take_pauses(divvy_workers *w);
/* Waits for pauses that are under way, and forgets all. */
void dv_workers_end_quarantine(divvy_workers *w);

/* ---- signals.c ---- */

/* Has SIGTERM and SIGINT ask these workers to end, as their configuration says, and gives them back. */
void dv_workers_take_signals(divvy_workers *w);
void dv_workers_give_signals_back(divvy_workers *w);

#endif
