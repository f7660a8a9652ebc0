/* With the real clock: a thread runs what is due, and one mutex guards all. SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "testing/ensemble.h"

int64_t dv_mem_clock_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Takes no mutex, as with real servers, unless the clock was bent: threads that ask do not wait for one another. */
int64_t dv_mem_real_now_ms(const dv_znode *znode) {
    dv_mem_client *client = (dv_mem_client *)(uintptr_t)znode;
    int64_t ahead_ms = atomic_load(&client->clock_ahead_ms);
    if (ahead_ms != DV_MEM_BENT) return dv_mem_clock_ms() + ahead_ms;
    dv_mem_lock(client->mem);
    int64_t now = dv_mem_client_now(client);
    dv_mem_unlock(client->mem);
    return now;
}

void dv_mem_lock(dv_mem *mem) {
    if (!mem->real) return;
    pthread_mutex_lock(&mem->mutex);
    mem->now = dv_mem_clock_ms();
}

void dv_mem_unlock(dv_mem *mem) {
    if (mem->real) pthread_mutex_unlock(&mem->mutex);
}

/* The clock of the condition may stand still while the machine sleeps: never for longer than this. */
static void wait_for_next(dv_mem *mem) {
    enum { SLICE_MS = 500 };
    int64_t left_ms = mem->heap_count ? mem->heap[0].at - mem->now : SLICE_MS;
    if (left_ms > SLICE_MS) left_ms = SLICE_MS;
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += left_ms / 1000;
    until.tv_nsec += left_ms % 1000 * 1000000;
    if (until.tv_nsec >= 1000000000) until.tv_sec++, until.tv_nsec -= 1000000000;
    pthread_cond_timedwait(&mem->earlier, &mem->mutex, &until);
}

static void *run(void *context) {
    dv_mem *mem = context;
    dv_mem_lock(mem);
    while (!mem->stopping) {
        while (!mem->stopping && mem->heap_count && mem->heap[0].at <= mem->now) dv_mem_event_run_first(mem);
        if (!mem->stopping) wait_for_next(mem);
        mem->now = dv_mem_clock_ms();
    }
    dv_mem_unlock(mem);
    return NULL;
}

int dv_mem_thread_start(dv_mem *mem) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&mem->thread, NULL, run, mem);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed) mem->real = false;
    return failed ? DIVVY_ESYSTEM : 0;
}

void dv_mem_thread_stop(dv_mem *mem) {
    dv_mem_lock(mem);
    mem->stopping = true;
    pthread_cond_signal(&mem->earlier);
    dv_mem_unlock(mem);
    pthread_join(mem->thread, NULL);
}
