/* One holder of one item, and a look at its node from elsewhere: for the tests of the session clock.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A run is: a holder is made, a fault begins, and from then on two threads look. The watcher asks a server on the side
 * of the majority whether the holder's node is there, one read after another. The test's own thread asks the holder
 * whether it owns the item. When the watcher sees the node gone it asks the holder at once: an answer of yes after that
 * is a violation whatever the machine's load, for one follows from the other. */
#ifndef DV_TEST_CLOCK_H
#define DV_TEST_CLOCK_H

#include "test_client_witness.h"

#include "lib/seed.h"
#include "lib/server.h"
#include "lib/zk.h"

#define CLOCK_ITEM "item"
#define CLOCK_RUNS_MAX 1000

typedef struct {
    witness w;
    divvy_client *client;
    divvy_partitioner *partitioner;
    int64_t session;
    char node[256]; /* of its lock */
} holder;

/* The moments of one run, all by one clock in milliseconds; 0: not yet. */
typedef struct {
    int64_t fault_ms;     /* the fault was in force */
    int64_t no_ms;        /* the first no of owns(), when it was there */
    int64_t told_ms;      /* on_session had LOST */
    int64_t there_ms;     /* the last question to which the majority's answer was that the node is there */
    int64_t gone_ms;      /* the first answer that it is not */
    int64_t stale_ms;     /* the last answer of the holder's own server that it is there */
    int64_t stall_ms;     /* the longest that the test's own thread did not get to run */
    bool owned_when_gone; /* owns() after gone_ms: the violation */
    bool left_when_gone;  /* time_left likewise */
    bool early;           /* the session was lost before the fault */
} clock_run;

typedef struct {
    holder *h;
    dv_test_zk *zk;
    bool is_stale; /* looks at the holder's own server, not at the majority */
    pthread_t thread;
    pthread_mutex_t lock;
    bool stopping;
    clock_run seen;
} watcher;

static inline int clock_runs(int argc, char **argv, int otherwise) {
    int runs = argc > 1 ? atoi(argv[1]) : otherwise;
    return runs >= 1 && runs <= CLOCK_RUNS_MAX ? runs : otherwise;
}

/* A number below `below`, of a sequence that a test prints the seed of. */
static inline int64_t clock_random(int64_t below) {
    static uint64_t state;
    if (!state) {
        state = dv_test_seed("live_clock_*");
    }
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (int64_t)((state >> 33) % (uint64_t)below);
}

/* ---- the holder ---- */

static inline bool holder_owns(holder *h) {
    return divvy_partitioner_owns(h->partitioner, CLOCK_ITEM) == 1;
}

/* The path of the holder's lock, as `truth` sees it. */
static inline bool holder_find_node(holder *h, dv_test_zk *truth, const char *pool) {
    char queue[200];
    size_t count = 0;
    snprintf(queue, sizeof queue, "%s/locks/" CLOCK_ITEM, pool);
    char **names = dv_test_zk_children(truth, queue, &count);
    if (count == 1) snprintf(h->node, sizeof h->node, "%s/%s", queue, names[0]);
    dv_test_zk_free_names(names);
    return count == 1;
}

static inline void holder_close(holder *h) {
    divvy_partitioner_destroy(h->partitioner);
    divvy_client_close(h->client);
    witness_end(&h->w);
}

/* Returns false, with nothing left open, when the session was lost before it owned anything. */
static inline bool holder_try(holder *h, const divvy_client_config *base, dv_test_zk *truth) {
    static unsigned made;
    static const char *const items[] = {CLOCK_ITEM};
    char pool[64];
    snprintf(pool, sizeof pool, "/clock-%d-%u", (int)getpid(), ++made);
    divvy_client_config config = witness_config(&h->w, base->hosts);
    config.session_timeout_ms = base->session_timeout_ms;
    config.ensemble_tick_ms = base->ensemble_tick_ms;
    h->client = open_connected(&config);
    h->session = divvy_client_session_id(h->client);
    divvy_partitioner_config pool_config = dv_test_partitioner_config(pool, items, 1, 0);
    assert_int_equal(divvy_partitioner_create(&h->partitioner, h->client, &pool_config), 0);
    int rc = divvy_partitioner_wait_for_acquire(h->partitioner, PATIENCE_MS);
    if (rc == DIVVY_ESTATE) {
        holder_close(h);
        return false;
    }
    assert_int_equal(rc, 0);
    assert_true(DV_WAIT(holder_owns(h), PATIENCE_MS));
    assert_true(DV_WAIT(holder_find_node(h, truth, pool), PATIENCE_MS));
    return true;
}

/* A pool of its own with one item, which this client owns when the call returns. */
static inline void holder_open(holder *h, const divvy_client_config *base, dv_test_zk *truth) {
    assert_true(DV_WAIT(holder_try(h, base, truth), PATIENCE_MS));
}

/* When on_session had LOST first; 0: not yet. */
static inline int64_t holder_told_ms(holder *h) {
    int64_t at_ms = 0;
    pthread_mutex_lock(&h->w.lock);
    for (size_t i = 0; i < h->w.state_count && !at_ms; i++) {
        if (h->w.states[i] == DIVVY_LOST) at_ms = h->w.state_at_ms[i];
    }
    pthread_mutex_unlock(&h->w.lock);
    return at_ms;
}

/* Returns whether the holder says that time is left for the session of the beginning, not for one opened since. */
static inline bool holder_has_time(holder *h) {
    int64_t left_ms = divvy_client_time_left_ms(h->client);
    return left_ms > 0 && divvy_client_session_id(h->client) == h->session;
}

/* Waits for the moment of a fault: any, in a young session or in an old one; or, in every other run, that just after a
 * write was answered, when the leader may not have heard yet that the session lives, and a bold clock believes so.
 * Returns false when the session was lost before, as on a machine that keeps client or servers from running. */
static inline bool holder_await_fault(holder *h) {
    static unsigned asked;
    dv_test_sleep_ms((int)clock_random(1000));
    bool after_write = ++asked % 2 == 0;
    int64_t last_ms = divvy_client_time_left_ms(h->client), left_ms;
    while (after_write && (left_ms = divvy_client_time_left_ms(h->client)) > 0 && left_ms <= last_ms) {
        last_ms = left_ms;
        nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    }
    return holder_has_time(h);
}

/* ---- the watcher ---- */

/* One read of the server that `zk` is connected to, which answers from what it has. */
static inline void watcher_look(watcher *watch) {
    struct Stat stat;
    int64_t asked_ms = dv_test_now_ms();
    int rc = zoo_exists(dv_test_zk_handle(watch->zk), watch->h->node, 0, &stat);
    int64_t answered_ms = dv_test_now_ms();
    bool is_news = rc == ZNONODE && !watch->seen.gone_ms && !watch->is_stale;
    bool owned = is_news && holder_owns(watch->h), had_time = is_news && holder_has_time(watch->h);
    pthread_mutex_lock(&watch->lock);
    if (rc == ZOK && watch->is_stale) watch->seen.stale_ms = answered_ms;
    if (rc == ZOK && !watch->is_stale) watch->seen.there_ms = asked_ms;
    if (is_news) {
        watch->seen.gone_ms = answered_ms;
        watch->seen.owned_when_gone = owned;
        watch->seen.left_when_gone = had_time;
    }
    pthread_mutex_unlock(&watch->lock);
    dv_test_sleep_ms(1);
}

static inline void *watcher_run(void *argument) {
    watcher *watch = argument;
    for (bool stopping = false; !stopping;) {
        watcher_look(watch);
        pthread_mutex_lock(&watch->lock);
        stopping = watch->stopping;
        pthread_mutex_unlock(&watch->lock);
    }
    return NULL;
}

static inline void watcher_start(watcher *watch, holder *h, const char *address, bool is_stale) {
    *watch = (watcher){.h = h, .is_stale = is_stale, .lock = PTHREAD_MUTEX_INITIALIZER};
    watch->zk = dv_test_zk_open(address);
    assert_int_equal(pthread_create(&watch->thread, NULL, watcher_run, watch), 0);
}

static inline clock_run watcher_seen(watcher *watch) {
    pthread_mutex_lock(&watch->lock);
    clock_run seen = watch->seen;
    pthread_mutex_unlock(&watch->lock);
    return seen;
}

static inline void watcher_stop(watcher *watch) {
    pthread_mutex_lock(&watch->lock);
    watch->stopping = true;
    pthread_mutex_unlock(&watch->lock);
    pthread_join(watch->thread, NULL);
    dv_test_zk_close(watch->zk);
}

/* ---- a run ---- */

/* Opens a holder whose client knows one server, and a watcher of another. */
static inline void clock_begin(holder *h, watcher *outside, const dv_test_server *server, int number, int observed,
                               int64_t timeout_ms, int64_t tick_ms) {
    const char *address = dv_test_server_address(server, observed);
    dv_test_zk *truth = dv_test_zk_open(address);
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.hosts = dv_test_server_address(server, number);
    config.session_timeout_ms = timeout_ms;
    config.ensemble_tick_ms = tick_ms;
    holder_open(h, &config, truth);
    dv_test_zk_close(truth);
    watcher_start(outside, h, address, false);
}

static inline void clock_end(holder *h, watcher *outside) {
    watcher_stop(outside);
    holder_close(h);
}

/* Ends a run whose session was lost before the fault. It says nothing of the fault, but that loss must be safe too. */
static inline clock_run clock_end_early(holder *h, watcher *outside) {
    clock_end(h, outside);
    assert_false(outside->seen.owned_when_gone);
    assert_false(outside->seen.left_when_gone);
    return (clock_run){.early = true};
}

/* Returns whether a run is to be made again. `count` counts those. */
static inline bool clock_again(const clock_run *run, int *count) {
    enum { EARLY_MAX = 10 };
    if (!run->early) return false;
    print_message("lost before the fault: once more\n");
    if (++*count > EARLY_MAX) fail_msg("lost before the fault in %d runs", *count);
    return true;
}

/* Looks at the holder, from the fault on, until the majority has dropped its node and the loss was told; or, where the
 * session may survive, until it has been owned for so long that it has, for then gone_ms is 0. */
static inline clock_run clock_observe(holder *h, watcher *outside, int64_t fault_ms, int64_t survives_ms) {
    clock_run run;
    int64_t no_ms = 0, deadline_ms = fault_ms + PATIENCE_MS, last_ms = fault_ms, stall_ms = 0;
    do {
        bool owned = holder_owns(h);
        int64_t now_ms = dv_test_now_ms();
        if (!owned && !no_ms) no_ms = now_ms;
        if (owned && no_ms) fail_msg("owned again %lld ms after it said no", (long long)(now_ms - no_ms));
        if (now_ms - last_ms > stall_ms) stall_ms = now_ms - last_ms;
        last_ms = now_ms;
        run = watcher_seen(outside);
        if (survives_ms && owned && now_ms > fault_ms + survives_ms) return (clock_run){.fault_ms = fault_ms};
        if (now_ms > deadline_ms)
            fail_msg("in vain: no_ms %lld, gone_ms %lld", (long long)no_ms, (long long)run.gone_ms);
        dv_test_sleep_ms(1);
    } while (!run.gone_ms || !no_ms || !holder_told_ms(h));
    run.fault_ms = fault_ms;
    run.no_ms = no_ms;
    run.told_ms = holder_told_ms(h);
    run.stall_ms = stall_ms;
    return run;
}

/* Checks that a holder is told of the loss before the servers have dropped the node. owns() is right however late
 * it is asked; the callback comes by two threads, and on a machine that does not let us run it may be as late as
 * they are. */
static inline void clock_check(const clock_run *run) {
    if (!run->gone_ms) return;
    assert_false(run->owned_when_gone);
    assert_false(run->left_when_gone);
    assert_true(run->no_ms <= run->gone_ms + run->stall_ms);
    assert_true(run->told_ms <= run->gone_ms + 2 * run->stall_ms);
}

/* Where the session can end by expiry only, as its client has no way to close it: the whole margin of the clock is
 * left, for it is there for clocks that differ in speed, which ours do not. */
static inline void clock_check_margin(const clock_run *run, int64_t timeout_ms) {
    assert_true(run->gone_ms - run->no_ms >= timeout_ms / 100 + 20 - run->stall_ms);
}

static inline int clock_compare(const void *left, const void *right) {
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

/* Prints how far ahead of the servers we were: from the later of the first no and LOST to the last moment at which
 * the node was still there for certain. */
static inline void clock_print(const char *scenario, const clock_run *runs, int count) {
    int64_t ahead_ms[CLOCK_RUNS_MAX], lost_ms[CLOCK_RUNS_MAX], gone_ms[CLOCK_RUNS_MAX], stale_ms = 0;
    int lost = 0;
    for (int i = 0; i < count; i++) {
        const clock_run *run = &runs[i];
        if (!run->gone_ms) continue;
        int64_t last_ms = run->no_ms > run->told_ms ? run->no_ms : run->told_ms;
        ahead_ms[lost] = run->there_ms - last_ms;
        lost_ms[lost] = last_ms - run->fault_ms;
        gone_ms[lost++] = run->gone_ms - run->fault_ms;
        if (run->stale_ms - run->gone_ms > stale_ms) stale_ms = run->stale_ms - run->gone_ms;
    }
    if (lost == 0) {
        print_message("%s: %d runs, all survived\n", scenario, count);
        return;
    }
    qsort(ahead_ms, (size_t)lost, sizeof *ahead_ms, clock_compare);
    qsort(lost_ms, (size_t)lost, sizeof *lost_ms, clock_compare);
    qsort(gone_ms, (size_t)lost, sizeof *gone_ms, clock_compare);
    print_message(
        "%s: %d runs, %d survived; ahead of the servers by %lld ms at least, %lld in the median; lost after %lld ms, "
        "gone after %lld (medians); read as there up to %lld ms later\n",
        scenario, count, count - lost, (long long)ahead_ms[0], (long long)ahead_ms[lost / 2],
        (long long)lost_ms[lost / 2], (long long)gone_ms[lost / 2], (long long)stale_ms);
}

#endif
