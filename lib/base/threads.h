/* Threads: their signals, their clock, their mutexes and conditions. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_THREADS_H
#define DV_THREADS_H

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* Blocks all signals of this thread: a thread that it starts now begins with all of them blocked. */
static inline void dv_signals_block(sigset_t *old_set) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, old_set);
}

static inline void dv_signals_restore(const sigset_t *old_set) {
    pthread_sigmask(SIG_SETMASK, old_set, NULL);
}

/* The same, without the SIGPIPE that this thread has been given since, if it was blocked before or not. */
static inline void dv_signals_restore_but_pipe(const sigset_t *old_set) {
    static const struct timespec now;
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    if (!sigismember(old_set, SIGPIPE)) sigtimedwait(&pipe, NULL, &now);
    dv_signals_restore(old_set);
}

/* Starts a thread that takes no signal of the host program. Returns false when none could be had. */
static inline bool dv_thread_start(pthread_t *out, void *(*run)(void *context), void *context) {
    sigset_t signals;
    dv_signals_block(&signals);
    bool started = pthread_create(out, NULL, run, context) == 0;
    dv_signals_restore(&signals);
    return started;
}

/* Waits for the end of another thread. */
static inline void dv_thread_join(pthread_t thread) {
    int error = pthread_join(thread, NULL);
    assert(error == 0);
    (void)error;
}

static inline int64_t dv_clock_ms(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Returns the time by which threads wait. It stands still while the machine sleeps. */
static inline int64_t dv_monotonic_ms(void) {
    return dv_clock_ms(CLOCK_MONOTONIC);
}

/* Makes a mutex that knows who holds it. To lock it twice, or to unlock it without holding it, is an error. */
static inline void dv_mutex_init(pthread_mutex_t *mutex) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
}

static inline void dv_mutex_lock(pthread_mutex_t *mutex) {
    int error = pthread_mutex_lock(mutex);
    assert(error == 0);
    (void)error;
}

static inline void dv_mutex_unlock(pthread_mutex_t *mutex) {
    int error = pthread_mutex_unlock(mutex);
    assert(error == 0);
    (void)error;
}

/* Makes a condition for dv_condition_wait(). */
static inline void dv_condition_init(pthread_cond_t *condition) {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

/* Waits until the condition is signalled, or dv_monotonic_ms() has come to `until_ms`. Returns false in that case. */
static inline bool dv_condition_wait(pthread_cond_t *condition, pthread_mutex_t *mutex, int64_t until_ms) {
    struct timespec until = {.tv_sec = until_ms / 1000, .tv_nsec = until_ms % 1000 * 1000000};
    return pthread_cond_timedwait(condition, mutex, &until) == 0;
}

#endif
