/* Threads of ours take no signal of the host program. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_SIGNALS_H
#define DV_SIGNALS_H

#include <pthread.h>
#include <signal.h>
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

#endif
