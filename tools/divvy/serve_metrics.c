/* Whole pools as metrics for Prometheus. SPDX-License-Identifier: Apache-2.0
 *
 * The only labels are the pool, which the command line names or which was found, and words of ours. So what stands in
 * ZooKeeper makes no series but those of DV_SERVE_POOLS_MAX pools. */
#include "serve_metrics.h"

#include <stdio.h>
#include <stdlib.h>

#define POOL "divvy_serve_pool_"

/* A gauge that each pool has, of its counts; two families of the same name stand next to each other. */
typedef struct {
    dv_metric_family family;
    const char *label, *value; /* besides the pool; NULL: none */
    size_t offset;
} pool_gauge;

static const char members_help[] = "Members of the pool: live ones, and those that are away while the plan keeps their "
                                   "items.";
static const char items_help[] = "Items of the pool, with an owner, without one, as kept ones are, and paused.";

#define GAUGE(name_text, help_text, field) \
    { {POOL name_text, DV_METRIC_GAUGE, NULL, help_text}, NULL, NULL, offsetof(dv_serve_counts, field) }
#define STATE(name_text, help_text, state, field) \
    { {POOL name_text, DV_METRIC_GAUGE, NULL, help_text}, "state", state, offsetof(dv_serve_counts, field) }

static const pool_gauge gauges[] = {
    STATE("members", members_help, "live", live),
    STATE("members", members_help, "absent", absent),
    GAUGE("strays", "Children of the party that are no members.", strays),
    STATE("items", items_help, "owned", owned),
    STATE("items", items_help, "unowned", unowned),
    STATE("items", items_help, "paused", paused),
    GAUGE("items_pinned", "Items that an operator has pinned to a member.", pinned),
    GAUGE("moves_in_progress", "Items that have an owner, and that the plan gives to another live member.", moving),
    GAUGE("items_of_strangers", "Items that are owned by a session which is not in the party, moving ones too.",
          strangers),
    GAUGE("waiters", "Places in the items' queues behind the owners'.", waiting),
    GAUGE("items_least", "Items of the live member that owns the fewest.", least),
    GAUGE("items_most", "Items of the live member that owns the most.", most),
};
enum { GAUGE_COUNT = sizeof gauges / sizeof *gauges };

static size_t number_at(const dv_serve_counts *c, size_t offset) {
    return *(const size_t *)(const void *)((const char *)c + offset);
}

static void put_gauges(dv_metrics_writer *w, const dv_serve *serve) {
    for (size_t i = 0; i < GAUGE_COUNT; i++) {
        bool same = i > 0 && gauges[i].label && gauges[i].family.help == gauges[i - 1].family.help;
        if (!same) dv_metrics_family(w, &gauges[i].family);
        for (size_t k = 0; k < serve->pool_count; k++) {
            const dv_serve_pool *pool = &serve->pools[k];
            const dv_metric_label labels[] = {{"pool", pool->path}, {gauges[i].label, gauges[i].value}};
            if (pool->read_at_ms)
                dv_metrics_put(w, labels, gauges[i].label ? 2 : 1, number_at(&pool->counts, gauges[i].offset));
        }
    }
}

/* ---- the rest of a pool ---- */

static uint64_t age_us(int64_t now_ms, int64_t then_ms) {
    return now_ms > then_ms ? (uint64_t)(now_ms - then_ms) * 1000 : 0;
}

/* Writes one family that each pool has; `measure` returns false where a pool has none. */
static void put_each(dv_metrics_writer *w, const dv_serve *serve, const dv_metric_family *family, bool seconds,
                     bool (*measure)(const dv_serve_pool *pool, int64_t now_ms, uint64_t *out)) {
    int64_t now_ms = dv_look_wall_ms();
    dv_metrics_family(w, family);
    for (size_t k = 0; k < serve->pool_count; k++) {
        const dv_metric_label labels[] = {{"pool", serve->pools[k].path}};
        uint64_t number;
        if (!measure(&serve->pools[k], now_ms, &number)) continue;
        if (seconds) dv_metrics_put_us(w, labels, 1, number);
        else dv_metrics_put(w, labels, 1, number);
    }
}

static void put_up(dv_metrics_writer *w, const dv_serve *serve) {
    static const dv_metric_family family = {POOL "up", DV_METRIC_GAUGE, NULL,
                                            "1 while there is a pool at the path, and it can be read."};
    dv_metrics_family(w, &family);
    for (size_t k = 0; k < serve->pool_count; k++) {
        const dv_serve_pool *pool = &serve->pools[k];
        bool up = pool->read_at_ms && pool->counts.found && !pool->trouble && !serve->trouble;
        dv_metrics_put(w, &(dv_metric_label){"pool", pool->path}, 1, up);
    }
}

static bool generation(const dv_serve_pool *pool, int64_t now_ms, uint64_t *out) {
    (void)now_ms;
    *out = pool->counts.generation;
    return pool->read_at_ms > 0;
}

static bool in_force(const dv_serve_pool *pool, int64_t now_ms, uint64_t *out) {
    (void)now_ms;
    *out = pool->counts.in_force;
    return pool->read_at_ms > 0;
}

static bool plan_age(const dv_serve_pool *pool, int64_t now_ms, uint64_t *out) {
    *out = age_us(now_ms, pool->counts.planned_ms);
    return pool->counts.generation > 0 && pool->counts.planned_ms > 0;
}

static bool moves(const dv_serve_pool *pool, int64_t now_ms, uint64_t *out) {
    (void)now_ms;
    *out = pool->moves;
    return true;
}

/* In millionths. */
static bool most_share(const dv_serve_pool *pool, int64_t now_ms, uint64_t *out) {
    (void)now_ms;
    bool known = pool->read_at_ms > 0 && pool->counts.most_share >= 0;
    *out = known ? (uint64_t)(pool->counts.most_share * 1e6 + 0.5) : 0;
    return known;
}

static void put_pools(dv_metrics_writer *w, const dv_serve *serve) {
    static const dv_metric_family families[] = {
        {POOL "plan_generation", DV_METRIC_GAUGE, NULL, "Number of the pool's plan; 0: there is none."},
        {POOL "plan_in_force", DV_METRIC_GAUGE, NULL, "1 while all members follow the plan."},
        {POOL "plan_age_seconds", DV_METRIC_GAUGE, "seconds", "Time since the plan was written."},
        {POOL "ownership_changes", DV_METRIC_COUNTER, NULL,
         "Items that were seen to get an owner, to change it or to lose it."},
        {POOL "load_share_most", DV_METRIC_GAUGE, NULL,
         "Load of the fullest member, as a part of its fair share: 1 is even; only where the plan has loads."},
    };
    put_up(w, serve);
    put_gauges(w, serve);
    put_each(w, serve, &families[0], false, generation);
    put_each(w, serve, &families[1], false, in_force);
    put_each(w, serve, &families[2], true, plan_age);
    put_each(w, serve, &families[3], false, moves);
    put_each(w, serve, &families[4], true, most_share);
}

/* ---- locks and the registry ---- */

/* Writes one family with a sample for each word of a label. */
static void put_words(dv_metrics_writer *w, const dv_metric_family *family, const char *label, const char *const *words,
                      const uint64_t *numbers, size_t count) {
    dv_metrics_family(w, family);
    for (size_t i = 0; i < count; i++) dv_metrics_put(w, &(dv_metric_label){label, words[i]}, 1, numbers[i]);
}

static void put_locks(dv_metrics_writer *w, const dv_serve *serve) {
    static const dv_metric_family families[] = {
        {"divvy_serve_locks", DV_METRIC_GAUGE, NULL, "Locks and semaphores that there are."},
        {"divvy_serve_lock_holders", DV_METRIC_GAUGE, NULL, "Places that hold one; of semaphores, slots."},
        {"divvy_serve_lock_waiters", DV_METRIC_GAUGE, NULL, "Places that wait for one."},
    };
    static const char *const kinds[] = {"lock", "semaphore"};
    uint64_t count[2] = {0}, held[2] = {0}, waiting[2] = {0};
    for (size_t i = 0; i < serve->locks.entry_count; i++) {
        const dv_lock_entry *e = &serve->locks.entries[i];
        count[e->is_semaphore]++;
        held[e->is_semaphore] += e->held;
        waiting[e->is_semaphore] += e->waiting;
    }
    put_words(w, &families[0], "kind", kinds, count, 2);
    put_words(w, &families[1], "kind", kinds, held, 2);
    put_words(w, &families[2], "kind", kinds, waiting, 2);
}

static void put_registry(dv_metrics_writer *w, const dv_serve *serve) {
    static const dv_metric_family families[] = {
        {"divvy_serve_registry_entries", DV_METRIC_GAUGE, NULL, "Services in the registry."},
        {"divvy_serve_registry_malformed", DV_METRIC_GAUGE, NULL, "Nodes in the registry that are no entries."},
    };
    static const char *const words[] = {"healthy", "stale", "disabled"};
    uint64_t count[3] = {0};
    for (size_t i = 0; i < serve->services.entry_count; i++) {
        const dv_entry *e = serve->services.entries[i];
        bool healthy = dv_entry_is_healthy(e, serve->services.server_ms);
        count[e->flags & DV_ENTRY_DISABLED ? 2 : healthy ? 0 : 1]++;
    }
    put_words(w, &families[0], "health", words, count, 3);
    dv_metrics_family(w, &families[1]);
    dv_metrics_put(w, NULL, 0, serve->services.malformed_count);
}

/* ---- divvy serve itself ---- */

static void put_own(dv_metrics_writer *w, const dv_serve *serve) {
    static const dv_metric_family families[] = {
        {"divvy_serve_looks", DV_METRIC_COUNTER, NULL, "Looks at the pools, locks and registry."},
        {"divvy_serve_failed_looks", DV_METRIC_COUNTER, NULL, "Looks that failed: what is shown is of before."},
        {"divvy_serve_item_reads", DV_METRIC_COUNTER, NULL, "Items that ZooKeeper was asked about."},
        {"divvy_serve_pages_open", DV_METRIC_GAUGE, NULL, "Pages that hear of changes."},
        {"divvy_serve_sent_bytes", DV_METRIC_COUNTER, "bytes", "Bytes of changes that were sent to pages."},
    };
    const uint64_t numbers[] = {serve->looks, serve->failed_looks, serve->reads,
                                dv_serve_stream_listeners(serve->stream), dv_serve_stream_bytes(serve->stream)};
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        dv_metrics_family(w, &families[i]);
        dv_metrics_put(w, NULL, 0, numbers[i]);
    }
}

static int write_to(void *user, const char *text, size_t bytes) {
    return fwrite(text, 1, bytes, user) == bytes ? 0 : -1;
}

char *dv_serve_metrics(const dv_serve *serve, dv_metrics_format format) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *to = open_memstream(&text, &bytes);
    dv_metrics_writer writer;
    if (!to) return NULL;
    dv_metrics_begin(&writer, format, write_to, to);
    put_pools(&writer, serve);
    put_locks(&writer, serve);
    put_registry(&writer, serve);
    put_own(&writer, serve);
    int error = dv_metrics_end(&writer);
    if (fclose(to) == 0 && !error) return text;
    free(text);
    return NULL;
}
