/* The state of divvy serve, as JSON for its page. SPDX-License-Identifier: Apache-2.0 */
#include "serve_show.h"

#include <stdlib.h>
#include <string.h>

#include "serve_overview.h"
#include "serve_rows.h"

/* CHANGED_MAX: of a change with more rows the page is told how many, and asks for those that it shows. */
enum { CHANGED_MAX = 100 };

/* ---- figures ---- */

typedef struct {
    const char *key;
    size_t offset;
} figure;

static const figure figures[] = {
    {"members", offsetof(dv_serve_counts, live)},    {"away", offsetof(dv_serve_counts, away)},
    {"strays", offsetof(dv_serve_counts, strays)},   {"items", offsetof(dv_serve_counts, items)},
    {"owned", offsetof(dv_serve_counts, owned)},     {"unowned", offsetof(dv_serve_counts, unowned)},
    {"moving", offsetof(dv_serve_counts, moving)},   {"strangers", offsetof(dv_serve_counts, strangers)},
    {"waiting", offsetof(dv_serve_counts, waiting)}, {"least", offsetof(dv_serve_counts, least)},
    {"most", offsetof(dv_serve_counts, most)},       {"paused", offsetof(dv_serve_counts, paused)},
    {"pinned", offsetof(dv_serve_counts, pinned)},
};

static size_t figure_of(const dv_serve_counts *c, const figure *f) {
    return *(const size_t *)(const void *)((const char *)c + f->offset);
}

static bool put_plan(cJSON *json, const dv_serve_counts *c) {
    bool good = dv_json_bool(json, "found", c->found) && dv_json_number(json, "generation", (int64_t)c->generation) &&
                dv_json_text(json, "reason", c->reason) && dv_json_bool(json, "in_force", c->in_force) &&
                dv_json_number_or_null(json, "planned_ms", c->planned_ms);
    return good && dv_json_text_or_null(json, "unusable", c->unusable);
}

/* Adds the figures that differ from those before; NULL: all. */
static bool put_figures(cJSON *json, const dv_serve_counts *c, const dv_serve_counts *before) {
    bool good = true;
    for (size_t i = 0; good && i < sizeof figures / sizeof *figures; i++) {
        if (before && figure_of(c, &figures[i]) == figure_of(before, &figures[i])) continue;
        good = dv_json_number(json, figures[i].key, (int64_t)figure_of(c, &figures[i]));
    }
    bool same = before && c->generation == before->generation && c->in_force == before->in_force &&
                c->found == before->found && c->planned_ms == before->planned_ms && c->unusable == before->unusable;
    return good && (same || put_plan(json, c));
}

static size_t unhealthy(const dv_serve *serve) {
    size_t count = 0;
    for (size_t i = 0; i < serve->services.entry_count; i++)
        count += !dv_entry_is_healthy(serve->services.entries[i], serve->services.server_ms);
    return count;
}

static bool put_rest(cJSON *json, const dv_serve *serve) {
    return dv_json_number(json, "locks", (int64_t)serve->locks.entry_count) &&
           dv_json_number(json, "hidden", (int64_t)(serve->locks.hidden + serve->services.hidden)) &&
           dv_json_number(json, "services", (int64_t)serve->services.entry_count) &&
           dv_json_number(json, "unhealthy", (int64_t)unhealthy(serve)) &&
           dv_json_number(json, "malformed", (int64_t)serve->services.malformed_count) &&
           dv_json_text_or_null(json, "trouble", serve->trouble);
}

static bool put_pool(cJSON *array, const dv_serve_pool *pool, const char *trouble) {
    cJSON *json = dv_json_add_object(array);
    return json && dv_json_text(json, "path", pool->path) && dv_json_bool(json, "read", pool->read_at_ms > 0) &&
           dv_json_text_or_null(json, "trouble", pool->trouble) &&
           dv_json_text(json, "state", dv_serve_pool_state(pool, trouble)) && put_figures(json, &pool->counts, NULL);
}

char *dv_serve_show_state(const dv_serve *serve) {
    cJSON *json = cJSON_CreateObject();
    bool good = json && dv_json_number(json, "sequence", (int64_t)dv_serve_stream_last(serve->stream)) &&
                dv_json_number(json, "now_ms", dv_look_wall_ms()) && dv_json_text(json, "root", serve->options->root) &&
                dv_json_number(json, "started_ms", serve->started_ms) && put_rest(json, serve);
    good = good && dv_json_number(json, "more_pools", (int64_t)serve->more_pools);
    cJSON *pools = good ? cJSON_AddArrayToObject(json, "pools") : NULL;
    good = pools;
    for (size_t i = 0; good && i < serve->pool_count; i++) good = put_pool(pools, &serve->pools[i], serve->trouble);
    return dv_json_line(json, good);
}

char *dv_serve_show_samples(const dv_serve *serve, size_t pool, int64_t from_ms, int64_t to_ms) {
    dv_serve_sample samples[DV_SERVE_POINTS_MAX];
    size_t count = dv_serve_samples_between(&serve->pools[pool].samples, from_ms, to_ms, samples);
    cJSON *json = cJSON_CreateObject(), *array = json ? cJSON_AddArrayToObject(json, "samples") : NULL;
    bool good = array;
    for (size_t i = 0; good && i < count; i++) good = dv_serve_row_sample(array, &samples[i]);
    return dv_json_line(json, good && dv_json_number(json, "sequence", (int64_t)dv_serve_stream_last(serve->stream)));
}

/* ---- tables ---- */

/* Returns whether the query asks for a name. */
static bool fits(const dv_serve_query *q, const char *name, const char *other) {
    if (q->exact && strcmp(name, q->exact) != 0) return false;
    return !q->text || strstr(name, q->text) || (other && strstr(other, q->text));
}

typedef struct {
    const dv_serve_query *query;
    cJSON *rows;
    size_t matched;
    bool good;
} page;

/* Counts a row that matches; returns whether it is to be shown. */
static bool takes(page *p) {
    size_t at = p->matched++;
    return p->good && at >= p->query->offset && at - p->query->offset < p->query->limit;
}

static int compare_newest(const void *a, const void *b) {
    const dv_serve_item *x = *(const dv_serve_item *const *)a, *y = *(const dv_serve_item *const *)b;
    if (x->since_ms != y->since_ms) return x->since_ms > y->since_ms ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* Returns whether the query asks for an item. `owner` may be NULL. */
static bool item_fits(const dv_serve_query *q, const char *name, const char *owner, const char *state) {
    if (q->state && strcmp(state, q->state) != 0) return false;
    if (q->owner && (!owner || strcmp(owner, q->owner) != 0)) return false;
    return fits(q, name, owner);
}

static void put_items(page *p, const dv_serve_pool *pool) {
    const dv_serve_item **found = calloc(pool->item_count + 1, sizeof *found);
    size_t count = 0;
    p->good = p->good && found;
    for (size_t i = 0; p->good && i < pool->item_count; i++) {
        const dv_serve_item *item = &pool->items[i];
        if (item_fits(p->query, item->name, dv_serve_item_owner(item), dv_serve_item_state(item)))
            found[count++] = item;
    }
    if (p->query->newest && count > 0) qsort((void *)found, count, sizeof *found, compare_newest);
    for (size_t i = 0; i < count; i++) {
        if (takes(p)) p->good = dv_serve_row_item(p->rows, found[i]);
    }
    free((void *)found);
}

static int compare_newest_past(const void *a, const void *b) {
    const dv_serve_past_item *x = a, *y = b;
    if (x->since_ms != y->since_ms) return x->since_ms > y->since_ms ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* Puts the items as they were at a moment. Returns how many there were. */
static size_t put_past(page *p, const dv_serve_pool *pool) {
    const dv_serve_query *q = p->query;
    dv_serve_past past;
    p->good = p->good && dv_serve_past_init(&past, pool, q->at_ms) == 0;
    if (!p->good) return 0;
    if (q->newest && past.count > 0) qsort(past.items, past.count, sizeof *past.items, compare_newest_past);
    for (size_t i = 0; i < past.count; i++) {
        const dv_serve_past_item *item = &past.items[i];
        if (item_fits(q, item->name, item->owner, dv_serve_past_state(item)) && takes(p))
            p->good = dv_serve_row_past(p->rows, item);
    }
    size_t total = past.count;
    dv_serve_past_free(&past);
    return total;
}

static void put_members(page *p, const dv_serve_pool *pool) {
    for (size_t i = 0; i < pool->member_count; i++) {
        const dv_serve_member *m = pool->members[i];
        if (fits(p->query, m->identifier, m->host) && takes(p)) p->good = dv_serve_row_member(p->rows, m);
    }
}

/* The newest first. */
static void put_events(page *p, const dv_serve_pool *pool) {
    for (size_t i = pool->history.count; i > 0; i--) {
        const dv_serve_event *event = dv_serve_history_event(&pool->history, i - 1);
        if (event->ms < p->query->from_ms || event->ms > p->query->to_ms) continue;
        bool fit = fits(p->query, event->what, event->from) ||
                   (p->query->text && event->to && !p->query->exact && strstr(event->to, p->query->text));
        if (fit && takes(p)) p->good = dv_serve_row_event(p->rows, event);
    }
}

/* The worst first. */
static void put_pools(page *p, const dv_serve *serve) {
    size_t order[DV_SERVE_POOLS_MAX];
    dv_serve_overview_order(serve, order);
    for (size_t i = 0; i < serve->pool_count; i++) {
        if (fits(p->query, serve->pools[order[i]].path, NULL) && takes(p))
            p->good = dv_serve_overview_row(p->rows, serve, order[i]);
    }
}

static size_t put_holdups(page *p, const dv_serve_pool *pool) {
    dv_serve_holdup *list;
    size_t count;
    p->good = dv_serve_holdups(pool, &list, &count) == 0;
    for (size_t i = 0; i < count; i++) {
        if (fits(p->query, list[i].holder, list[i].waiter) && takes(p))
            p->good = dv_serve_row_holdup(p->rows, &list[i]);
    }
    free(list);
    return count;
}

static size_t put_table(page *p, const dv_serve *serve) {
    const dv_serve_pool *pool = &serve->pools[p->query->pool];
    const dv_services *services = &serve->services;
    switch (p->query->table) {
    case DV_SERVE_ITEMS:
        if (p->query->at_ms) return put_past(p, pool);
        put_items(p, pool);
        return pool->item_count;
    case DV_SERVE_MEMBERS: put_members(p, pool); return pool->member_count;
    case DV_SERVE_TIMELINE: put_events(p, pool); return pool->history.count;
    case DV_SERVE_HOLDUPS: return put_holdups(p, pool);
    case DV_SERVE_POOLS: put_pools(p, serve); return serve->pool_count;
    case DV_SERVE_LOCKS:
        for (size_t i = 0; i < serve->locks.entry_count; i++) {
            const dv_lock_entry *e = &serve->locks.entries[i];
            if (fits(p->query, e->name, NULL) && takes(p)) p->good = dv_serve_row_lock(p->rows, e);
        }
        return serve->locks.entry_count;
    case DV_SERVE_SERVICES:
        for (size_t i = 0; i < services->entry_count; i++) {
            const dv_entry *e = services->entries[i];
            if (fits(p->query, e->id, e->role) && takes(p)) p->good = dv_serve_row_service(p->rows, services, e);
        }
        return services->entry_count;
    }
    return 0;
}

char *dv_serve_show_rows(const dv_serve *serve, const dv_serve_query *query) {
    cJSON *json = cJSON_CreateObject();
    page p = {.query = query, .rows = json ? cJSON_AddArrayToObject(json, "rows") : NULL};
    p.good = p.rows;
    size_t total = p.good ? put_table(&p, serve) : 0;
    if (p.good && query->at_ms && query->table == DV_SERVE_ITEMS)
        p.good = dv_json_number_or_null(json, "oldest_ms", dv_serve_past_oldest_ms(&serve->pools[query->pool]));
    p.good = p.good && dv_json_number(json, "total", (int64_t)total) &&
             dv_json_number(json, "matched", (int64_t)p.matched) &&
             dv_json_number(json, "sequence", (int64_t)dv_serve_stream_last(serve->stream));
    return dv_json_line(json, p.good);
}

/* ---- changes ---- */

static bool put_changed_items(cJSON *json, const dv_serve_pool *pool) {
    cJSON *array = NULL;
    size_t count = 0;
    for (size_t i = 0; i < pool->item_count; i++) {
        if (!pool->items[i].changed || ++count > CHANGED_MAX) continue;
        if (!array && !(array = cJSON_AddArrayToObject(json, "items"))) return false;
        if (!dv_serve_row_item(array, &pool->items[i])) return false;
    }
    return count <= CHANGED_MAX || dv_json_number(json, "items_changed", (int64_t)count);
}

static bool put_changed_members(cJSON *json, const dv_serve_pool *pool) {
    cJSON *array = NULL;
    size_t count = 0;
    for (size_t i = 0; i < pool->member_count; i++) {
        if (!pool->members[i]->changed || ++count > CHANGED_MAX) continue;
        if (!array && !(array = cJSON_AddArrayToObject(json, "members_changed"))) return false;
        if (!dv_serve_row_member(array, pool->members[i])) return false;
    }
    return true;
}

/* Tells the events since; of many the newest. */
static bool put_new_events(cJSON *json, const dv_serve_history *history, uint64_t told) {
    uint64_t fresh = history->last_number - told;
    if (fresh > history->count) fresh = history->count;
    if (fresh > CHANGED_MAX) fresh = CHANGED_MAX;
    cJSON *array = fresh ? cJSON_AddArrayToObject(json, "events") : NULL;
    bool good = array || !fresh;
    for (size_t i = history->count - (size_t)fresh; good && i < history->count; i++)
        good = dv_serve_row_event(array, dv_serve_history_event(history, i));
    return good;
}

static bool put_new_state(cJSON *json, const dv_serve_pool *pool, const char *trouble) {
    const char *state = dv_serve_pool_state(pool, trouble);
    return strcmp(pool->told_state, state) == 0 || dv_json_text(json, "state", state);
}

char *dv_serve_show_changes(const dv_serve *serve, size_t pool, const dv_serve_counts *before, uint64_t told) {
    const dv_serve_pool *p = &serve->pools[pool];
    cJSON *json = cJSON_CreateObject();
    bool good = json && dv_json_number(json, "pool", (int64_t)pool) && dv_json_number(json, "ms", p->read_at_ms);
    cJSON *counts = good ? cJSON_AddObjectToObject(json, "figures") : NULL;
    good = counts && put_new_state(counts, p, serve->trouble) && put_figures(counts, &p->counts, before) &&
           (!p->gone || dv_json_bool(json, "gone", true)) && put_changed_items(json, p) &&
           put_changed_members(json, p) && put_new_events(json, &p->history, told);
    return dv_json_line(json, good);
}

char *dv_serve_show_pool_state(const dv_serve *serve, size_t pool) {
    const dv_serve_pool *p = &serve->pools[pool];
    cJSON *json = cJSON_CreateObject();
    bool good = json && dv_json_number(json, "pool", (int64_t)pool) && dv_json_number(json, "ms", p->read_at_ms);
    cJSON *changed = good ? cJSON_AddObjectToObject(json, "figures") : NULL;
    return dv_json_line(json, changed && dv_json_text(changed, "state", dv_serve_pool_state(p, serve->trouble)));
}

char *dv_serve_show_rest(const dv_serve *serve) {
    cJSON *json = cJSON_CreateObject();
    return dv_json_line(json, json && put_rest(json, serve));
}

char *dv_serve_show_pools(const dv_serve *serve) {
    cJSON *json = cJSON_CreateObject();
    return dv_json_line(json, json && dv_json_number(json, "pool_count", (int64_t)serve->pool_count) &&
                                  dv_json_number(json, "more_pools", (int64_t)serve->more_pools));
}
