/**
 * @file workers.h
 * Workers: a member of a pool with a thread for each item that is ours. SPDX-License-Identifier: Apache-2.0
 *
 * The whole program of a member, above the partitioner (partitioner.h):
 *
 *     static int work(divvy_job *job, void *user) {            // runs in a thread for each item that is ours
 *         while (divvy_job_owns(job)) do one piece of work on divvy_job_item(job);
 *         return 0;
 *     }
 *
 *     divvy_workers_config config = DIVVY_WORKERS_CONFIG_INIT;
 *     config.pool = &pool;                                     // a divvy_partitioner_config: path, items, ...
 *     config.worker = work;
 *     error = divvy_workers_create(&workers, client, &config);
 *     if (!error) error = divvy_workers_run(workers);          // until SIGTERM; hands over
 *     divvy_workers_destroy(workers);
 *
 * A *job* is one call of the worker, under the token that the item had then. Nothing interrupts it: it is told to stop,
 * and returns soon. These are the promises:
 *   - An item is given to its next owner when its worker has returned, and not before.
 *   - Where an item is lost, as with the session, its job is told to stop. Before it has returned nothing is confirmed,
 *     and the item has no new job. The new job has a new token.
 *   - A worker that returns before it was told to is called again after a pause: see `restart`.
 *   - A graceful end hands over: workers go on until others are ready for their items.
 * A worker that tells divvy_job_set_load() has the pool deal by load.
 * docs/examples/workers.c is a program. Workers that are processes: `divvy partition`. For a loop of your own, without
 * a thread for each item, partitioner.h has the rules.
 *
 * Lifetime: rules 1 to 7 of client.h, and
 *  1. Workers are made by divvy_workers_create(), run once, and end with divvy_workers_destroy(), called once.
 *  2. A job lives until its worker returns.
 */
#ifndef DIVVY_WORKERS_H
#define DIVVY_WORKERS_H

#include "divvy/client.h"
#include "divvy/partitioner.h"

DIVVY_EXTERN_C_BEGIN

/** One member's part in a pool, and its threads. Opaque. */
typedef struct divvy_workers divvy_workers;

/** One call of a worker. Opaque. */
typedef struct divvy_job divvy_job;

/** The behaviour when a worker returns before it was told to: as `divvy partition --restart`. */
enum {
    DIVVY_RESTART_ALWAYS,     /**< it is called again after a pause */
    DIVVY_RESTART_ON_FAILURE, /**< so is one that has failed. One that returned 0 is finished with the item, until that
                                   leaves and comes back */
    DIVVY_RESTART_NEVER       /**< each is finished with the item */
};

/** The signals SIGTERM and SIGINT, while divvy_workers_run() runs. */
enum {
    DIVVY_SIGNALS_UNHANDLED, /**< each is taken if it has its default action; a handler of the program's stays */
    DIVVY_SIGNALS_TAKE,      /**< both are taken */
    DIVVY_SIGNALS_LEAVE      /**< neither: the program calls divvy_workers_stop() */
};

/** The end of a call of the worker, or a failure of `prepare`. The struct and its item live during on_end. */
typedef struct {
    const char *item;
    int64_t token;      /**< of the job; 0: it was `prepare` */
    int result;         /**< what it returned; DIVVY_ESYSTEM: no thread could be had; DIVVY_ELIMIT: max_threads run;
                             DIVVY_ECANCELED: its thread was ended by pthread_exit() or pthread_cancel() */
    int told_to_stop;   /**< 1 or 0; 1 also when the item had gone by the time when it returned */
    int64_t restart_ms; /**< the pause before the next call on this item; -1: none is due */
} divvy_job_end;

/** The configuration of workers. Initialise with DIVVY_WORKERS_CONFIG_INIT, then set what differs. Copied. */
typedef struct {
    size_t size;                          /**< sizeof of this struct, set by the INIT macro */
    const divvy_partitioner_config *pool; /**< what the member divides with others; its callbacks are called, too */
    /** Works on divvy_job_item(job), and returns soon after it is told to stop. Runs in a thread of its own.
     * @return 0, or another number when it has failed; positive ones are never taken for an error of divvy's */
    int (*worker)(divvy_job *job, void *user);
    /** Gets ready for an item that will soon be ours, while its present owner works. Needs prepare_timeout_ms of the
     * pool, and runs in a thread of its own. NULL: nothing is prepared.
     * @param prepared [out] is what divvy_job_prepared() gives to the next job; NULL before the call. `discard` has it
     *                 where the item does not come after all, or this function fails
     * @return 0 when it is ready. Another number when it has failed: it is called again after the pauses of a worker,
     *         as `restart` says. The present owner works on, and the item comes when prepare_timeout_ms is over */
    int (*prepare)(void **prepared, const char *item, void *user);
    /** Releases what was prepared for an item that does not come, or by a `prepare` that has failed. NULL is never
     * handed to it. Runs in the thread of divvy_workers_run(). */
    void (*discard)(void *prepared, const char *item, void *user);
    /** Tells that a worker has returned, or that `prepare` has failed. Runs in the thread of divvy_workers_run(). */
    void (*on_end)(divvy_workers *workers, const divvy_job_end *end, void *user);
    void *user;       /**< handed to the functions above; those of `pool` get its own */
    int restart;      /**< DIVVY_RESTART_ALWAYS (default), _ON_FAILURE, _NEVER */
    int failure_ends; /**< 1: when a worker fails before it was told to stop, all stop, and divvy_workers_run() returns
                           what that one returned */
    int64_t backoff_ms;     /**< the first pause before a worker is called again; default 100. It doubles each time,
                                 and begins again after a run of 5 s, or under another token */
    int64_t backoff_max_ms; /**< the longest pause; default 30000 */
    int hand_over; /**< 1, the default: at a stop workers go on until others are ready for their items. 0: all are told
                        to stop at once, as static members always do, since their items wait for them */
    int signals;   /**< DIVVY_SIGNALS_UNHANDLED (default), _TAKE, _LEAVE. The first signal stops as
                        divvy_workers_stop() does, a second one tells all workers to stop at once, and a third one does
                        what it did before */
    size_t max_threads; /**< the most threads at a time; 0: 1000, the default. A pool with more items is refused, as one
                             member may come to own them all */
    int64_t finish_timeout_ms; /**< for how long the end waits for the servers' word that all is given back, as
                                    divvy_partitioner_finish(); default 5000 */
    /* The next three keep a poisonous item from failing at one member after the other. Not with failure_ends. */
    /** An item whose worker fails so often within quarantine_window_ms is paused, as by divvy_pool_pause(): nobody
     * works on it until divvy_pool_resume(). A worker fails when it returns another number than 0 before it was told to
     * stop. 1 to 1000; 0, the default: no item is paused. */
    size_t quarantine_failures;
    int64_t quarantine_window_ms; /**< 0: 600000, ten minutes, the default */
    /** Tells that an item is paused, with the reason: `error` is 0. Else why it could not be: `error` is that of
     * divvy_pool_pause(), which is called again at the next failure. Runs in the thread of divvy_workers_run(). */
    void (*on_quarantine)(divvy_workers *workers, const char *item, int error, const char *why, void *user);
} divvy_workers_config;

#define DIVVY_WORKERS_CONFIG_INIT                                                                                 \
    {                                                                                                             \
        sizeof(divvy_workers_config), NULL, NULL, NULL, NULL, NULL, NULL, DIVVY_RESTART_ALWAYS, 0, 100, 30000, 1, \
            DIVVY_SIGNALS_UNHANDLED, 1000, 5000, 0, 600000, NULL                                                  \
    }

/**
 * Writes the defaults of DIVVY_WORKERS_CONFIG_INIT to *config, for languages that cannot use the macro.
 *
 * Writes `size` bytes: fields that only the caller knows become zero, fields that only the library knows are left out.
 * Ownership: keeps nothing. Thread: any.
 * @param config [out] caller's memory; NULL: does nothing
 * @param size   sizeof *config, as the caller knows it; less than a size_t has: does nothing
 */
DIVVY_API void divvy_workers_config_init(divvy_workers_config *config, size_t size);

/**
 * Joins the pool, by divvy_partitioner_create(). Work begins with divvy_workers_run(), so call that soon: until then
 * items that come to this member have an owner and no worker.
 *
 * Ownership: `config` and all it points to are copied. On success release *out with divvy_workers_destroy(). On error
 *   *out is NULL and there is nothing to release.
 * Thread: any. No callback runs inside this call.
 * @param out    [out] the workers
 * @param client need not be connected yet
 * @return 0, or
 *   DIVVY_EINVAL   a NULL pointer, no pool or no worker, an unknown choice, a negative time or one over ten years,
 *                  failure_ends or hand_over neither 0 nor 1, `prepare` without prepare_timeout_ms of the pool,
 *                  `discard` without `prepare`, quarantine_failures over 1000 or with failure_ends, a
 *                  config without its INIT macro
 *   DIVVY_E2BIG    the pool has more items than max_threads
 *   DIVVY_ESYSTEM  no descriptor could be had
 *   DIVVY_ENOMEM   an allocation failed
 *   and what divvy_partitioner_create() returns
 */
DIVVY_API int divvy_workers_create(divvy_workers **out, divvy_client *client, const divvy_workers_config *config);

/**
 * Works: calls the worker for each item that is ours, in a thread of its own. Ends by divvy_workers_stop(), a signal,
 * or a failure. When it returns, all workers have returned, and the member has left the pool.
 *
 * With DIVVY_REJOIN (on_session_loss of the pool) a lost session ends all jobs, and the member takes part again when
 * they have returned. A worker that does not return keeps its item; DIVVY_WARN_SLOW_RELEASE says so. A session that is
 * lost after the run was asked to end is no failure, as nothing is left to be given back.
 *
 * `interrupted` of the client's config is asked when it begins and while it leaves, and not while workers work.
 *
 * Thread: any, but not inside a callback; once. Threads of workers begin with its signal mask. In manual mode it drives
 *   the loop itself: then no other thread calls divvy_client_process(), and a slow on_end holds the session up.
 * Source: the loop of partitioner.h.
 * @return 0 when it was stopped, or
 *   another number   with failure_ends: what a worker has returned
 *   DIVVY_ETIMEDOUT  it was stopped, and all workers have returned. No server has confirmed within finish_timeout_ms
 *                    that all is given back: the servers free it when the session times out
 *   DIVVY_EINTERRUPTED  the client's `interrupted` said so; when it began, nothing has changed
 *   DIVVY_ELOST, DIVVY_ECLOSED, DIVVY_EAUTH, DIVVY_EACCES and others: the member has failed, as
 *                    divvy_partitioner_failure() tells
 *   DIVVY_ESTATE     it runs already, or has run
 *   DIVVY_EDEADLK    called inside a callback
 *   DIVVY_EFORK      called in the child of a fork
 *   DIVVY_EINVAL     workers is NULL
 */
DIVVY_API int divvy_workers_run(divvy_workers *workers);

/**
 * Asks divvy_workers_run() to end. The first call has it hand over: each worker goes on until another member is ready
 * for its item, for handover_timeout_ms of the pool at most. A second call tells all workers to stop at once, as the
 * first does with hand_over 0, by a static member, and without a connection. Calls before the run count.
 *
 * Thread: any, callbacks, workers and signal handlers included: it is async-signal-safe. So it leaves
 *   divvy_client_error() as it is.
 * @return 0, or DIVVY_EINVAL (workers is NULL), DIVVY_EFORK
 */
DIVVY_API int divvy_workers_stop(divvy_workers *workers);

/**
 * Returns the partitioner, for divvy_partitioner_set_weight(), _set_items() and all that looks. Do not release, finish
 * or destroy it. Items beyond max_threads wait: each is tried again after a pause, as a worker that has failed.
 * Ownership: lives as long as the workers. Thread: any.
 * @return NULL for NULL
 */
DIVVY_API divvy_partitioner *divvy_workers_partitioner(const divvy_workers *workers);

/**
 * Releases the workers, and leaves the pool if they have not run. A run that goes on is stopped at once and waited for;
 * in the thread that runs, as in on_end, it is not: then the workers go when the run returns.
 * Thread: any but a worker's, which would wait for itself. Rule 6 of client.h. @param workers NULL is allowed
 */
DIVVY_API void divvy_workers_destroy(divvy_workers *workers);

/** Does so without waiting, as divvy_lock_destroy_async() of lock.h. It may be called by a worker, too: the workers go
 * when the run has returned. `gone` comes after the pool's on_destroyed. */
DIVVY_API void divvy_workers_destroy_async(divvy_workers *workers, void (*gone)(void *user), void *user);

/** Returns the item. Ownership: lives as long as the job. Thread: any. @return NULL for NULL */
DIVVY_API const char *divvy_job_item(const divvy_job *job);

/** Returns the job's fencing token, greater than that of every earlier owner of the item: show it to what is worked on.
 * Thread: any. @return 0 for NULL */
DIVVY_API int64_t divvy_job_token(const divvy_job *job);

/**
 * Returns what `prepare` has made for the item. The worker owns it, and releases it, whether it has asked or not. So
 * the next job on the item gets NULL, and has to make its own.
 * Thread: any.
 * @return NULL for NULL, where nothing was prepared, and in later jobs on the item
 */
DIVVY_API void *divvy_job_prepared(const divvy_job *job);

/**
 * Returns whether the item is ours under the job's token, and the worker was not told to stop: the check before each
 * piece of work. After the first 0 it is 0 for good. A connection that is lost changes nothing before the session's
 * deadline, but with DIVVY_RELEASE_ON_SUSPEND. Sends nothing, takes no lock. Thread: any.
 * @return 1 or 0; 0 for NULL, and in the child of a fork
 */
DIVVY_API int divvy_job_owns(const divvy_job *job);

/** Returns whether the worker was told to stop, or the item is not ours any longer: it then returns soon. It is the
 * opposite of divvy_job_owns(). Thread: any. @return 1 or 0; 1 for NULL, and in the child of a fork */
DIVVY_API int divvy_job_should_stop(const divvy_job *job);

/**
 * Waits until the worker is told to stop, or the time is over: for pauses between pieces of work.
 * Thread: any but a callback.
 * @param timeout_ms -1: for ever; 0: only look
 * @return 1 when it was told to stop, 0 when the time is over, or DIVVY_EINVAL: job is NULL, or timeout_ms below -1
 */
DIVVY_API int divvy_job_wait(divvy_job *job, int64_t timeout_ms);

/**
 * Tells how much work the job's item is now, so that the pool can deal by load: divvy_partitioner_set_load() for a
 * worker, with all that is said there. The unit is load_unit of the pool's config. It is passed over, and 0 returned,
 * when the item is not ours any longer.
 * Thread: any.
 * @param load a finite number >= 0
 * @return 0, or
 *   DIVVY_EINVAL  job is NULL; a load that is negative, infinite or not a number; or a member with an assignment that
 *                 is no plan (see assign of the pool's config)
 *   DIVVY_ENOENT  the pool no longer has the item, as after divvy_partitioner_set_items()
 *   DIVVY_ENOMEM  allocation failed; the load is as it was
 *   DIVVY_ECLOSED, DIVVY_EFORK
 */
DIVVY_API int divvy_job_set_load(const divvy_job *job, double load);

DIVVY_EXTERN_C_END

#endif
