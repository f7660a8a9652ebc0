/* Threads of ours take no signal of the host program. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_SIGNALS_H
#define DV_SIGNALS_H

#include <pthread.h>
#include <signal.h>

/* Blocks all signals of this thread: a thread that it starts now begins with all of them blocked. */
static inline void dv_signals_block(sigset_t *old_set) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, old_set);
}

static inline void dv_signals_restore(const sigset_t *old_set) {
    pthread_sigmask(SIG_SETMASK, old_set, NULL);
}

#endif
