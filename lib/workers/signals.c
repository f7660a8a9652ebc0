/* SIGTERM and SIGINT, for all runs of the process. SPDX-License-Identifier: Apache-2.0
 *
 * A first signal asks each run to end, a second one to stop at once. Then the actions that were there before are back,
 * so a third one does what it did before.
 *
 * The handler may run in any thread, at any time, and goes through the list without a lock. Who takes something out of
 * the list waits until no handler runs: one that has found it before is done with it then. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include "workers/workers.h"

enum { SIGNALS = 2 };
static const int numbers[SIGNALS] = {SIGTERM, SIGINT};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* for those who take and give back */
static _Atomic(divvy_workers *) first;
static struct sigaction before[SIGNALS];
static atomic_bool taken[SIGNALS];
static atomic_int count, handling;
static atomic_int owner; /* the process that has taken them: a child has the handler as well */

static void on_signal(int number);

/* Gives back what nobody else has changed since. */
static void put_back(void) {
    for (int i = 0; i < SIGNALS; i++) {
        struct sigaction now;
        if (!atomic_exchange(&taken[i], false)) continue;
        if (sigaction(numbers[i], NULL, &now) == 0 && now.sa_handler == on_signal)
            sigaction(numbers[i], &before[i], NULL);
    }
}

static void on_signal(int number) {
    int error = errno;
    if (atomic_load(&owner) != (int)getpid()) { /* The child of a fork, which has not called exec yet. */
        put_back();
        raise(number); /* It comes when this handler returns. */
        errno = error;
        return;
    }
    atomic_fetch_add(&handling, 1);
    if (atomic_fetch_add(&count, 1) > 0) put_back();
    for (divvy_workers *w = atomic_load(&first); w; w = atomic_load(&w->next_asked)) divvy_workers_stop(w);
    atomic_fetch_sub(&handling, 1);
    errno = error;
}

static void take(int i, int choice) {
    struct sigaction action = {.sa_flags = SA_RESTART};
    if (atomic_load(&taken[i]) || sigaction(numbers[i], NULL, &before[i]) != 0) return;
    bool is_default = !(before[i].sa_flags & SA_SIGINFO) && before[i].sa_handler == SIG_DFL;
    if (choice == DIVVY_SIGNALS_UNHANDLED && !is_default) return;
    action.sa_handler = on_signal;
    sigemptyset(&action.sa_mask);
    for (int k = 0; k < SIGNALS; k++) sigaddset(&action.sa_mask, numbers[k]);
    atomic_store(&taken[i], true);
    sigaction(numbers[i], &action, NULL);
}

/* In the child of a fork: the runs of its parent, and handlers that were at work there, are not here. */
static void forget_parent(void) {
    if (atomic_load(&owner) == (int)getpid()) return;
    atomic_store(&first, NULL);
    atomic_store(&handling, 0);
    put_back();
}

void dv_workers_take_signals(divvy_workers *w) {
    if (w->config.signals == DIVVY_SIGNALS_LEAVE) return;
    pthread_mutex_lock(&mutex);
    forget_parent();
    if (!atomic_load(&first)) atomic_store(&count, 0);
    atomic_store(&owner, (int)getpid());
    atomic_store(&w->next_asked, atomic_load(&first));
    atomic_store(&first, w);
    for (int i = 0; i < SIGNALS; i++) take(i, w->config.signals);
    pthread_mutex_unlock(&mutex);
}

void dv_workers_give_signals_back(divvy_workers *w) {
    if (w->config.signals == DIVVY_SIGNALS_LEAVE) return;
    pthread_mutex_lock(&mutex);
    _Atomic(divvy_workers *) *at = &first;
    while (atomic_load(at) != w) at = &atomic_load(at)->next_asked;
    atomic_store(at, atomic_load(&w->next_asked));
    if (!atomic_load(&first)) put_back();
    while (atomic_load(&handling) > 0) sched_yield();
    pthread_mutex_unlock(&mutex);
}
