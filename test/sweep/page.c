/* What `divvy serve` shows on its page and to Prometheus. SPDX-License-Identifier: Apache-2.0
 *
 * Whatever fails, it shows a whole line of JSON or nothing, and shows it when it is asked again. */
#include "command_world.h"
#include "scenarios.h"

#ifdef SWEEP_PAGE

#include "../../tools/divvy/serve_metrics.h"
#include "../../tools/divvy/serve_overview.h"
#include "../../tools/divvy/serve_pools.h"
#include "../../tools/divvy/serve_show.h"
#include "../../tools/divvy/serve_snapshot.h"

enum { TRIES = 60 };

typedef struct {
    dv_look *look;
    dv_serve serve;
    dv_serve_pools pools;
} page;

static void take(sweep *s, char *text, const char *what) {
    size_t bytes = strlen(text);
    if (text[0] != '{' || text[bytes - 2] != '}') sweep_fail(s, "%s: %s", what, text);
    sweep_free(text);
}

/* Asks again while there is no memory. */
#define SHOW(call)                                                                \
    do {                                                                          \
        char *show_text = NULL;                                                   \
        for (int show_i = 0; show_i < TRIES && !show_text; show_i++) {            \
            show_text = (call);                                                   \
            if (!show_text && !sweep_allocations_refused()) sweep_fail(s, #call); \
        }                                                                         \
        if (!show_text) sweep_fail(s, "shows nothing: %s", #call);                \
        take(s, show_text, #call);                                                \
    } while (0)

static void read_all(sweep *s, page *p) {
    dv_services services = {.path = "/divvy/services"};
    dv_locks locks = {.root = "/divvy", .holders = true};
    SWEEP_DO(s, dv_serve_pools_look(&p->pools));
    SWEEP_DO(s, dv_look_at(p->look, dv_locks_read, &locks));
    SWEEP_DO(s, dv_look_at(p->look, dv_services_read, &services));
    p->serve.locks = locks;
    p->serve.services = services;
    SWEEP_CHECK(s, p->serve.pool_count == 1 && p->serve.pools[0].item_count == 5);
    SWEEP_CHECK(s, locks.entry_count == 1 && services.entry_count == 1);
}

static void show_tables(sweep *s, const dv_serve *serve) {
    dv_serve_query query = {.limit = DV_SERVE_ROWS_MAX, .to_ms = INT64_MAX};
    for (int table = DV_SERVE_ITEMS; table <= DV_SERVE_HOLDUPS; table++) {
        query.table = (dv_serve_table)table;
        SHOW(dv_serve_show_rows(serve, &query));
    }
    query.table = DV_SERVE_ITEMS;
    query.newest = true;
    SHOW(dv_serve_show_rows(serve, &query));
    query.at_ms = serve->pools[0].read_at_ms;
    SHOW(dv_serve_show_rows(serve, &query));
}

static void show_all(sweep *s, const dv_serve *serve) {
    dv_serve_counts before = {.least = 1};
    SHOW(dv_serve_show_state(serve));
    SHOW(dv_serve_show_samples(serve, 0, 0, INT64_MAX));
    SHOW(dv_serve_show_changes(serve, 0, &before, 0));
    SHOW(dv_serve_show_pool_state(serve, 0));
    SHOW(dv_serve_show_rest(serve));
    SHOW(dv_serve_show_pools(serve));
    SHOW(dv_serve_show_heat(serve, 0));
    show_tables(s, serve);
}

/* What the page's doctor judges. */
static void copy(sweep *s, const dv_serve *serve) {
    dv_serve_snapshot snapshot;
    dv_status status = {.path = SWEEP_COMMAND_POOL};
    int error = DIVVY_ENOMEM;
    for (int i = 0; i < TRIES && error; i++) {
        error = dv_serve_snapshot_take(&snapshot, &serve->pools[0]);
        if (!error) error = dv_serve_snapshot_status(&snapshot, &status);
        dv_serve_snapshot_free(&snapshot);
        if (error) dv_status_pool_clear(&status);
        if (error) SWEEP_CHECK(s, sweep_excuses(s, error));
    }
    SWEEP_CHECK(s, !error && status.item_count == 5);
    dv_status_pool_clear(&status);
}

void sweep_command_page(sweep *s) {
    static const char *paths[] = {SWEEP_COMMAND_POOL};
    const dv_serve_options options = {.look = {.connect = "127.0.0.1:1", .timeout_ms = SWEEP_WAIT_MS},
                                      .paths = {.texts = paths, .count = 1},
                                      .root = "/divvy"};
    sweep_command_found found = {.registry = NULL};
    page p = {.serve = {.options = &options}};
    sweep_command_begin(s, &found);
    pthread_mutex_init(&p.serve.lock, NULL);
    SWEEP_CHECK(s, dv_look_open(&p.look, &options.look, "serve", -1) == 0);
    p.serve.stream = dv_serve_stream_new();
    SWEEP_CHECK(s, p.serve.stream && dv_serve_pools_init(&p.pools, &p.serve, p.look) == 0);
    sweep_begin(s);
    read_all(s, &p);
    show_all(s, &p.serve);
    copy(s, &p.serve);
    char *metrics = NULL;
    for (int i = 0; i < TRIES && !metrics; i++) metrics = dv_serve_metrics(&p.serve, DV_METRICS_OPENMETRICS);
    SWEEP_CHECK(s, metrics && strstr(metrics, SWEEP_COMMAND_POOL) && strstr(metrics, "# EOF"));
    sweep_free(metrics);
    s->armed = false;
    sweep_allocations_disarm();
    dv_look_close(p.look);
    dv_serve_pools_free(&p.pools);
    dv_locks_clear(&p.serve.locks);
    dv_services_clear(&p.serve.services);
    dv_serve_stream_free(p.serve.stream);
    pthread_mutex_destroy(&p.serve.lock);
    sweep_command_end(s, &found);
}

#else

void sweep_command_page(sweep *s) {
    (void)s;
}

#endif
