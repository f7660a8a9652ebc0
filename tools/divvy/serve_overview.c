/* Many pools of divvy serve at once, and all members of one, as JSON. SPDX-License-Identifier: Apache-2.0 */
#include "serve_overview.h"

#include <stdlib.h>
#include <string.h>

#include "text.h"

/* WEIGHT_OF_ONE: a member's weight where it has chosen none; also where there is no plan to say it. */
enum { WEIGHT_OF_ONE = 1000 };

/* ---- states ---- */

const char *dv_serve_pool_state(const dv_serve_pool *pool, const char *trouble) {
    if (trouble || pool->trouble) return "trouble";
    if (!pool->read_at_ms) return "reading";
    if (!pool->counts.found) return "absent";
    if (pool->counts.unowned) return "unowned";
    return pool->counts.moving ? "moving" : "well";
}

static const char *state_of(const dv_serve *serve, size_t pool) {
    return dv_serve_pool_state(&serve->pools[pool], serve->trouble);
}

/* Returns how bad a state is; 0 is the worst. */
static size_t rank_of(const char *state) {
    static const char *const words[] = {"trouble", "unowned", "absent", "moving", "reading", "well"};
    size_t rank = 0;
    while (rank < sizeof words / sizeof *words && strcmp(words[rank], state) != 0) rank++;
    return rank;
}

/* ---- the order of pools ---- */

/* Returns whether the pool `a` stands before `b`. */
static bool is_before(const dv_serve *serve, size_t a, size_t b) {
    const dv_serve_counts *x = &serve->pools[a].counts, *y = &serve->pools[b].counts;
    size_t rank = rank_of(state_of(serve, a)), other = rank_of(state_of(serve, b));
    if (rank != other) return rank < other;
    if (x->unowned != y->unowned) return x->unowned > y->unowned;
    if (x->moving != y->moving) return x->moving > y->moving;
    return strcmp(serve->pools[a].path, serve->pools[b].path) < 0;
}

void dv_serve_overview_order(const dv_serve *serve, size_t *order) {
    for (size_t i = 0; i < serve->pool_count; i++) {
        size_t at = i;
        for (; at > 0 && is_before(serve, i, order[at - 1]); at--) order[at] = order[at - 1];
        order[at] = i;
    }
}

static int64_t changed_ms(const dv_serve_history *history) {
    return history->count ? dv_serve_history_event(history, history->count - 1)->ms : 0;
}

bool dv_serve_overview_row(cJSON *array, const dv_serve *serve, size_t pool) {
    const dv_serve_pool *p = &serve->pools[pool];
    cJSON *json = dv_json_add_object(array);
    return json && dv_json_number(json, "pool", (int64_t)pool) && dv_json_text(json, "path", p->path) &&
           dv_json_text(json, "state", state_of(serve, pool)) &&
           dv_json_text_or_null(json, "trouble", p->trouble ? p->trouble : serve->trouble) &&
           dv_json_number(json, "members", (int64_t)p->counts.live) &&
           dv_json_number(json, "items", (int64_t)p->counts.items) &&
           dv_json_number(json, "unowned", (int64_t)p->counts.unowned) &&
           dv_json_number(json, "moving", (int64_t)p->counts.moving) &&
           dv_json_number_or_null(json, "changed_ms", changed_ms(&p->history)) &&
           dv_json_bool(json, "found", p->counts.found) && dv_json_bool(json, "read", p->read_at_ms > 0);
}

/* ---- all members of one ---- */

static uint32_t weight_of(const dv_serve_member *m) {
    return m->in_plan ? m->weight : WEIGHT_OF_ONE;
}

/* Returns the fair share of a live member of mean weight. A member of twice that weight has twice the share. */
static double fair_share(const dv_serve_pool *pool) {
    return pool->counts.live ? (double)pool->item_count / (double)pool->counts.live : 0;
}

static bool append(cJSON *array, cJSON *value) {
    if (value && cJSON_AddItemToArray(array, value)) return true;
    cJSON_Delete(value);
    return false;
}

static bool append_text(cJSON *array, const char *text) {
    char *plain = dv_text_plain(text);
    bool good = plain && append(array, cJSON_CreateString(plain));
    free(plain);
    return good;
}

static bool put_member(cJSON *members, const dv_serve_member *m) {
    cJSON *row = cJSON_CreateArray();
    if (!append(members, row)) return false;
    return append_text(row, m->identifier) && append(row, cJSON_CreateNumber((double)m->items)) &&
           append(row, m->in_plan ? cJSON_CreateNumber((double)m->planned) : cJSON_CreateNull()) &&
           append_text(row, m->state) && append(row, cJSON_CreateNumber(weight_of(m))) &&
           append_text(row, m->zone ? m->zone : "") && (m->share < 0 || append(row, cJSON_CreateNumber(m->share)));
}

char *dv_serve_show_heat(const dv_serve *serve, size_t pool) {
    const dv_serve_pool *p = &serve->pools[pool];
    size_t shown = p->member_count < DV_SERVE_HEAT_MAX ? p->member_count : DV_SERVE_HEAT_MAX;
    cJSON *json = cJSON_CreateObject();
    bool good = json && cJSON_AddNumberToObject(json, "fair", fair_share(p));
    cJSON *members = good ? cJSON_AddArrayToObject(json, "members") : NULL;
    good = members;
    for (size_t i = 0; good && i < shown; i++) good = put_member(members, p->members[i]);
    if (good && shown < p->member_count) good = dv_json_number(json, "more", (int64_t)(p->member_count - shown));
    return dv_json_line(json, good);
}
