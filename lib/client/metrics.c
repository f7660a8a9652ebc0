/* Metrics: the text of what a client and its objects have done, and have now. SPDX-License-Identifier: Apache-2.0 */
#include "client/metrics.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "client/client.h"
#include "divvy/divvy.h"

void dv_metrics_source_add(divvy_client *client, dv_metrics_source *source) {
    assert(!source->link && source->gather);
    source->next = client->metrics_sources;
    source->link = &client->metrics_sources;
    if (source->next) source->next->link = &source->next;
    client->metrics_sources = source;
}

void dv_metrics_source_remove(dv_metrics_source *source) {
    if (!source->link) return;
    *source->link = source->next;
    if (source->next) source->next->link = source->link;
    source->link = NULL;
}

dv_pool_metrics *dv_metrics_pool(dv_metrics *metrics, const char *path) {
    for (size_t i = 0; i < metrics->pool_count; i++) {
        if (strcmp(metrics->pools[i].path, path) == 0) return &metrics->pools[i];
    }
    assert(metrics->pool_count < metrics->pool_room);
    dv_pool_metrics *pool = &metrics->pools[metrics->pool_count];
    *pool = (dv_pool_metrics){.path = strdup(path)};
    if (!pool->path) {
        metrics->error = DIVVY_ENOMEM;
        return NULL;
    }
    metrics->pool_count++;
    return pool;
}

static void fill_stats(const divvy_client *client, divvy_stats *out) {
    client->znode->backend->stats(client->znode, out);
    out->session_events = client->session_events;
    out->events = client->event_count;
    out->ephemerals = client->ephemeral_count - client->latecomer_count;
    out->ephemeral_path_bytes = client->ephemerals.used_bytes;
}

int divvy_client_stats(const divvy_client *c, divvy_stats *out, size_t size) {
    divvy_client *client = (divvy_client *)(uintptr_t)c;
    if (!out) return dv_fail(client, DIVVY_EINVAL, "stats: out is NULL");
    if (size == 0) return dv_fail(client, DIVVY_EINVAL, "stats: size is 0, and not sizeof(divvy_stats)");
    int error = dv_client_enter(client);
    if (error) return error;
    divvy_stats stats;
    fill_stats(client, &stats);
    dv_client_unlock(client);
    memset(out, 0, size);
    memcpy(out, &stats, size < sizeof stats ? size : sizeof stats);
    return 0;
}

static void gather_session(dv_metrics *metrics, divvy_client *client, int64_t now) {
    metrics->state = client->state;
    metrics->time_left_ms = dv_client_time_left_ms(client, now);
    metrics->timeout_ms = atomic_load(&client->timeout_ms);
    fill_stats(client, &metrics->stats);
    metrics->round_trips = client->znode->round_trips;
    metrics->put_off = client->znode->again.put_off;
    metrics->ephemeral_bytes = client->ephemerals.used_bytes;
    metrics->ephemeral_limit_bytes = client->ephemerals.limit_bytes;
    metrics->watched_bytes = client->watched.used_bytes;
    metrics->watched_limit_bytes = client->watched.limit_bytes;
    metrics->counted = client->metrics;
    metrics->watched = dv_death_watch_lives(client->death_watch);
}

static int gather(dv_metrics *metrics, divvy_client *client) {
    int64_t now = dv_client_now(client);
    *metrics = (dv_metrics){.error = 0};
    gather_session(metrics, client, now);
    for (const dv_metrics_source *s = client->metrics_sources; s; s = s->next) metrics->pool_room++;
    metrics->pools = calloc(metrics->pool_room + 1, sizeof *metrics->pools);
    if (!metrics->pools) return metrics->error = DIVVY_ENOMEM;
    for (dv_metrics_source *s = client->metrics_sources; s && !metrics->error; s = s->next) s->gather(s, metrics, now);
    return metrics->error;
}

static void clear(dv_metrics *metrics) {
    for (size_t i = 0; i < metrics->pool_count; i++) free(metrics->pools[i].path);
    free(metrics->pools);
}

/* ---- text ---- */

/* Name, type, unit and help of what is shown next. */
#define FAMILY(writer, name, type, unit, help) \
    dv_metrics_family((writer), &(const dv_metric_family){(name), DV_METRIC_##type, (unit), (help)})

enum { NAME_BYTES = 32 };

/* Writes a constant's name as the value of a label: "auth_failed". */
static const char *lower(char out[NAME_BYTES], const char *name) {
    size_t i = 0;
    for (; i < NAME_BYTES - 1 && name[i]; i++) out[i] = (char)tolower((unsigned char)name[i]);
    out[i] = '\0';
    return out;
}

static void put(dv_metrics_writer *w, uint64_t value) {
    dv_metrics_put(w, NULL, 0, value);
}

static void put_ms(dv_metrics_writer *w, int64_t value_ms) {
    dv_metrics_put_us(w, NULL, 0, value_ms > 0 ? 1000 * (uint64_t)value_ms : 0);
}

static void put_labelled(dv_metrics_writer *w, const char *name, const char *value, uint64_t number) {
    dv_metrics_put(w, &(dv_metric_label){name, value}, 1, number);
}

/* ---- the session ---- */

static void put_session(dv_metrics_writer *w, const dv_metrics *m) {
    char name[NAME_BYTES];
    FAMILY(w, "divvy_build_info", GAUGE, NULL, "Always 1; the label is the version of the library.");
    put_labelled(w, "version", DIVVY_VERSION, 1);
    FAMILY(w, "divvy_session_state", GAUGE, NULL, "1 for the state that the session is in, 0 for the others.");
    for (int s = 0; s < DV_SESSION_STATES; s++)
        put_labelled(w, "state", lower(name, divvy_session_state_name((divvy_session_state)s)), (int)m->state == s);
    FAMILY(w, "divvy_session_time_left_seconds", GAUGE, "seconds",
           "For how long the session is certainly alive; 0: nothing is owned.");
    put_ms(w, m->time_left_ms);
    FAMILY(w, "divvy_session_timeout_seconds", GAUGE, "seconds", "The session timeout that the servers gave.");
    put_ms(w, m->timeout_ms);
    FAMILY(w, "divvy_death_watch", GAUGE, NULL,
           "1 while a death watch lives, which ends the session when this process has ended; else 0.");
    put(w, m->watched);
    FAMILY(w, "divvy_sessions_lost", COUNTER, NULL, "Sessions that ended before the client was closed.");
    put(w, m->counted.losses);
    FAMILY(w, "divvy_connections", COUNTER, NULL, "Connections to a server that were established.");
    put(w, m->stats.connects);
}

static void put_requests(dv_metrics_writer *w, const dv_metrics *m) {
    const divvy_stats *s = &m->stats;
    const struct {
        const char *kind;
        uint64_t count;
    } kinds[] = {{"create", s->creates}, {"delete", s->deletes}, {"set", s->sets},         {"check", s->checks},
                 {"exists", s->exists},  {"get", s->gets},       {"children", s->children}};
    FAMILY(w, "divvy_requests", COUNTER, NULL, "Requests sent to the servers; a transaction is one.");
    put(w, s->requests);
    FAMILY(w, "divvy_requests_failed", COUNTER, NULL, "Requests that ended without an answer of a server.");
    put(w, s->failed);
    FAMILY(w, "divvy_requests_put_off", COUNTER, NULL, "Times that a request was put off, to be sent again later.");
    put(w, m->put_off);
    FAMILY(w, "divvy_requests_in_flight", GAUGE, NULL, "Requests that wait for their answers.");
    put(w, s->in_flight);
    FAMILY(w, "divvy_operations", COUNTER, NULL, "Operations sent, those of a transaction one by one, by kind.");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) put_labelled(w, "kind", kinds[i].kind, kinds[i].count);
    FAMILY(w, "divvy_round_trip_seconds", HISTOGRAM, "seconds", "From sending a request to its answer.");
    dv_metrics_put_histogram(w, NULL, 0, &m->round_trips);
    FAMILY(w, "divvy_sent_bytes", COUNTER, "bytes", "Paths and data in requests, without the framing.");
    put(w, s->bytes_sent);
    FAMILY(w, "divvy_received_bytes", COUNTER, "bytes", "Names and data in answers, without the framing.");
    put(w, s->bytes_received);
}

static void put_budgets(dv_metrics_writer *w, const dv_metrics *m) {
    FAMILY(w, "divvy_watches", GAUGE, NULL, "Armed watches.");
    put(w, m->stats.watches);
    FAMILY(w, "divvy_watch_events", COUNTER, NULL, "Watches that fired while something waited for them.");
    put(w, m->stats.watch_events);
    FAMILY(w, "divvy_ephemerals", GAUGE, NULL, "Ephemeral nodes that the session has, or may have.");
    put(w, m->stats.ephemerals);
    FAMILY(w, "divvy_budget_used_bytes", GAUGE, "bytes", "Bytes of paths in use, or reserved, by budget.");
    put_labelled(w, "budget", "ephemerals", m->ephemeral_bytes);
    put_labelled(w, "budget", "watches", m->watched_bytes);
    FAMILY(w, "divvy_budget_limit_bytes", GAUGE, "bytes", "Bytes of paths that a session may have, by budget.");
    put_labelled(w, "budget", "ephemerals", m->ephemeral_limit_bytes);
    put_labelled(w, "budget", "watches", m->watched_limit_bytes);
}

/* ---- pools ---- */

static void put_pool_states(dv_metrics_writer *w, const dv_metrics *m) {
    char name[NAME_BYTES];
    FAMILY(w, "divvy_pool_state", GAUGE, NULL, "How many partitioners of this process are in the state.");
    for (size_t i = 0; i < m->pool_count; i++) {
        for (int s = 0; s < DV_PARTITION_STATES; s++) {
            const char *state = lower(name, divvy_partition_state_name((divvy_partition_state)s));
            dv_metric_label labels[] = {{"pool", m->pools[i].path}, {"state", state}};
            dv_metrics_put(w, labels, 2, m->pools[i].states[s]);
        }
        dv_metrics_put(w, (dv_metric_label[]){{"pool", m->pools[i].path}, {"state", "finished"}}, 2,
                       m->pools[i].finished);
    }
}

#define PUT_POOLS(w, m, name, help, field)                                      \
    do {                                                                        \
        FAMILY((w), (name), GAUGE, NULL, (help));                               \
        for (size_t i = 0; i < (m)->pool_count; i++)                            \
            put_labelled((w), "pool", (m)->pools[i].path, (m)->pools[i].field); \
    } while (0)

#define PUT_POOL_HISTOGRAMS(w, m, name, help, field)                                                                \
    do {                                                                                                            \
        FAMILY((w), (name), HISTOGRAM, "seconds", (help));                                                          \
        for (size_t i = 0; i < (m)->pool_count; i++)                                                                \
            dv_metrics_put_histogram((w), &(dv_metric_label){"pool", (m)->pools[i].path}, 1, &(m)->pools[i].field); \
    } while (0)

static void put_pool_items(dv_metrics_writer *w, const dv_metrics *m) {
    PUT_POOLS(w, m, "divvy_pool_items", "Items that the pool divides, as far as this member knows.", items);
    PUT_POOLS(w, m, "divvy_pool_owned_items", "Items that this member owns.", owned);
    PUT_POOLS(w, m, "divvy_pool_leaving_items", "Owned items that stay until their next owner is ready.", leaving);
    PUT_POOLS(w, m, "divvy_pool_revoked_items", "Items that are owned no longer and wait for this program's release.",
              revoked);
    PUT_POOLS(w, m, "divvy_pool_waiting_items", "Items of this member's share that it does not own yet.", waiting);
    PUT_POOLS(w, m, "divvy_pool_preparing_items", "Waiting items that this program is to prepare for.", preparing);
    PUT_POOLS(w, m, "divvy_pool_unfit_items", "Items of the share that do not fit the session's budget.", unfit);
}

/* The reasons for which a share changes. The rest of divvy_reason is about single items, or an end. */
static void put_rebalances(dv_metrics_writer *w, const dv_metrics *m) {
    static const int reasons[] = {DIVVY_REASON_MEMBERS, DIVVY_REASON_JOIN,     DIVVY_REASON_LEAVE,
                                  DIVVY_REASON_LOSS,    DIVVY_REASON_WEIGHT,   DIVVY_REASON_DRAIN,
                                  DIVVY_REASON_SET,     DIVVY_REASON_SUSPEND,  DIVVY_REASON_SESSION,
                                  DIVVY_REASON_FOREIGN, DIVVY_REASON_OPERATOR, DIVVY_REASON_LOAD};
    char name[NAME_BYTES];
    FAMILY(w, "divvy_pool_rebalances", COUNTER, NULL, "Changes of this member's share, by reason.");
    for (size_t i = 0; i < m->pool_count; i++) {
        for (size_t r = 0; r < sizeof reasons / sizeof *reasons; r++) {
            dv_metric_label labels[] = {{"pool", m->pools[i].path},
                                        {"reason", lower(name, divvy_reason_name(reasons[r]))}};
            dv_metrics_put(w, labels, 2, m->pools[i].rebalances[reasons[r]]);
        }
    }
}

static void put_plans(dv_metrics_writer *w, const dv_metrics *m) {
    FAMILY(w, "divvy_pool_plan_generation", GAUGE, NULL, "The number of the plan that this member goes by.");
    for (size_t i = 0; i < m->pool_count; i++) {
        if (m->pools[i].generation) put_labelled(w, "pool", m->pools[i].path, m->pools[i].generation);
    }
    FAMILY(w, "divvy_pool_plan_age_seconds", GAUGE, "seconds", "Since this member took up the plan that it goes by.");
    for (size_t i = 0; i < m->pool_count; i++) {
        int64_t age_ms = m->pools[i].plan_age_ms;
        if (m->pools[i].generation)
            dv_metrics_put_us(w, &(dv_metric_label){"pool", m->pools[i].path}, 1,
                              age_ms > 0 ? 1000 * (uint64_t)age_ms : 0);
    }
}

static void put_pools(dv_metrics_writer *w, const dv_metrics *m) {
    put_pool_states(w, m);
    put_pool_items(w, m);
    put_rebalances(w, m);
    PUT_POOL_HISTOGRAMS(w, m, "divvy_pool_rebalance_seconds",
                        "From a change of the share until the member has it and nothing else.", durations);
    PUT_POOL_HISTOGRAMS(w, m, "divvy_pool_item_wait_seconds",
                        "From when an item came into the share until this member owned it.", waits);
    PUT_POOL_HISTOGRAMS(w, m, "divvy_pool_item_unowned_seconds",
                        "From when this member owned an item no longer until its lock was gone.", unowned);
    put_plans(w, m);
}

/* ---- locks, semaphores, registries ---- */

static const char *const recipe_names[DV_RECIPES] = {[DV_RECIPE_LOCK] = "lock",
                                                     [DV_RECIPE_READ_LOCK] = "read_lock",
                                                     [DV_RECIPE_WRITE_LOCK] = "write_lock",
                                                     [DV_RECIPE_SEMAPHORE] = "semaphore",
                                                     [DV_RECIPE_ELECTION] = "election"};

/* Writes one metric of each recipe that was used. */
#define PUT_RECIPES(w, m, put_one, field)                                                                  \
    for (size_t i = 0; i < DV_RECIPES; i++) {                                                              \
        if ((m)->counted.recipes[i].used)                                                                  \
            put_one((w), &(dv_metric_label){"recipe", recipe_names[i]}, 1, (m)->counted.recipes[i].field); \
    }

static void put_recipe_histogram(dv_metrics_writer *w, const dv_metric_label *labels, size_t label_count,
                                 dv_histogram histogram) {
    dv_metrics_put_histogram(w, labels, label_count, &histogram);
}

static void put_recipes(dv_metrics_writer *w, const dv_metrics *m) {
    FAMILY(w, "divvy_lock_waiting", GAUGE, NULL, "Acquires that wait.");
    PUT_RECIPES(w, m, dv_metrics_put, waiting)
    FAMILY(w, "divvy_lock_held", GAUGE, NULL, "Locks, or acquires of a semaphore, that are held.");
    PUT_RECIPES(w, m, dv_metrics_put, held)
    FAMILY(w, "divvy_lock_failures", COUNTER, NULL, "Acquires that ended with nothing: in time-outs, for example.");
    PUT_RECIPES(w, m, dv_metrics_put, failed)
    FAMILY(w, "divvy_lock_losses", COUNTER, NULL, "Holds that ended by a loss, not by a release.");
    PUT_RECIPES(w, m, dv_metrics_put, lost)
    FAMILY(w, "divvy_lock_wait_seconds", HISTOGRAM, "seconds", "From an acquire until what it asked for was held.");
    PUT_RECIPES(w, m, put_recipe_histogram, waits)
    FAMILY(w, "divvy_lock_hold_seconds", HISTOGRAM, "seconds", "From then until the release, or the loss.");
    PUT_RECIPES(w, m, put_recipe_histogram, holds)
}

static void put_registries(dv_metrics_writer *w, const dv_metrics *m) {
    if (!m->counted.registry_used) return;
    FAMILY(w, "divvy_registry_announced_services", GAUGE, NULL, "Services that this client keeps announced.");
    put(w, m->announced);
    FAMILY(w, "divvy_registry_entries", GAUGE, NULL, "Entries in the live views of this client.");
    put(w, m->entries);
    FAMILY(w, "divvy_registry_skipped_entries", COUNTER, NULL, "Entries that were met and are none, or unreadable.");
    put(w, m->counted.skipped_entries);
}

/* ---- the call ---- */

int dv_client_write_metrics(divvy_client *client, dv_metrics_format format, const dv_metric_label *common,
                            dv_metrics_write_fn write, void *user) {
    if (client && !write) return dv_fail(client, DIVVY_EINVAL, "metrics: write is NULL");
    int error = dv_client_enter(client);
    if (error) return error;
    assert(client);
    dv_metrics metrics;
    error = gather(&metrics, client);
    dv_client_unlock(client);
    if (error) {
        dv_fail_plainly(client, error);
    } else {
        dv_metrics_writer writer;
        dv_metrics_begin(&writer, format, write, user);
        if (common) dv_metrics_label_all(&writer, common);
        put_session(&writer, &metrics);
        put_requests(&writer, &metrics);
        put_budgets(&writer, &metrics);
        put_pools(&writer, &metrics);
        put_recipes(&writer, &metrics);
        put_registries(&writer, &metrics);
        error = dv_metrics_end(&writer);
    }
    clear(&metrics);
    return error;
}

int divvy_metrics_write(divvy_client *client, int (*write)(void *user, const char *text, size_t bytes), void *user) {
    return dv_client_write_metrics(client, DV_METRICS_OPENMETRICS, NULL, write, user);
}

int divvy_metrics_write_prometheus(divvy_client *client, int (*write)(void *user, const char *text, size_t bytes),
                                   void *user) {
    return dv_client_write_metrics(client, DV_METRICS_PROMETHEUS, NULL, write, user);
}
