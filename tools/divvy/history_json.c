/* The history of a pool as JSON, for `divvy history` and for the page. SPDX-License-Identifier: Apache-2.0 */
#include "history_json.h"

#include <stdio.h>
#include <stdlib.h>

#include "table_json.h"

bool dv_history_hole(const dv_pool_history *h, size_t i, uint64_t *from, uint64_t *to) {
    bool is_plan = i == h->told.count;
    if (i == 0 && h->told.count == DV_PLAN_CHANGES_MAX) return false;
    *from = i > 0 ? h->told.changes[i - 1].generation + 1 : 1;
    *to = (is_plan ? dv_pool_history_plan(h)->header.generation : h->told.changes[i].generation) - 1;
    return *from <= *to;
}

const dv_plan_death *dv_history_death(const dv_pool_history *h, const dv_plan_change *c, const char *name) {
    return dv_plan_deaths_behind(&h->deaths, &h->told, (size_t)(c - h->told.changes), name);
}

/* ---- JSON ---- */

static bool put_named(cJSON *to, const char *key, const dv_plan_named *who) {
    cJSON *json = cJSON_AddObjectToObject(to, key);
    bool good = json && dv_json_number(json, "count", who->count);
    cJSON *names = good ? cJSON_AddArrayToObject(json, "names") : NULL;
    for (size_t n = 0; names && n < who->named; n++) {
        cJSON *name = cJSON_CreateString(who->names[n]);
        if (!name || !cJSON_AddItemToArray(names, name)) {
            cJSON_Delete(name);
            return false;
        }
    }
    return names;
}

/* Tells which of those that left have died. */
static bool put_deaths(cJSON *to, const dv_pool_history *h, const dv_plan_change *c) {
    cJSON *died = cJSON_AddArrayToObject(cJSON_GetObjectItemCaseSensitive(to, "left"), "died");
    for (size_t n = 0; died && n < c->left.named; n++) {
        const dv_plan_death *death = dv_history_death(h, c, c->left.names[n]);
        cJSON *json = death ? dv_json_add_object(died) : NULL;
        if (death && !(json && dv_json_text(json, "name", death->name) &&
                       dv_json_number(json, "seen_ms", death->seen_ms) && dv_json_session(json, death->session)))
            return false;
    }
    return died;
}

static bool put_when(cJSON *to, const dv_pool_history *h, int64_t at_ms) {
    char when[DV_UTC_BYTES];
    return dv_json_text_or_null(to, "at", dv_look_utc(at_ms, when)) &&
           (at_ms ? dv_json_age(to, h->read_at_ms - at_ms) : cJSON_AddNullToObject(to, "age_ms") != NULL);
}

static bool put_took(cJSON *to, const dv_pool_history *h, bool is_plan, int64_t ms) {
    bool under_way = is_plan && h->under_way, known = !under_way && ms >= 0;
    return dv_json_bool(to, "under_way", under_way) &&
           (known ? dv_json_number(to, "took_ms", ms) : cJSON_AddNullToObject(to, "took_ms") != NULL);
}

static bool put_change(cJSON *array, const dv_pool_history *h, const dv_plan_change *c, bool is_plan) {
    cJSON *json = dv_json_add_object(array);
    return json && dv_json_number(json, "generation", (int64_t)c->generation) &&
           dv_json_text(json, "reason", c->reason) && put_when(json, h, c->at_ms) &&
           put_took(json, h, is_plan, c->took_ms) && dv_json_number(json, "moved", c->moved) &&
           put_named(json, "joined", &c->joined) && put_named(json, "left", &c->left) && put_deaths(json, h, c) &&
           (!*c->told || dv_json_text(json, "told", c->told));
}

static bool put_plan(cJSON *array, const dv_pool_history *h) {
    const dv_plan_header *header = &dv_pool_history_plan(h)->header;
    cJSON *json = dv_json_add_object(array);
    return json && dv_json_number(json, "generation", (int64_t)header->generation) &&
           dv_json_text(json, "reason", dv_plan_reason_text(header->reason)) && put_when(json, h, h->planned_ms) &&
           put_took(json, h, true, h->took_ms) && cJSON_AddNullToObject(json, "moved") &&
           cJSON_AddNullToObject(json, "joined") && cJSON_AddNullToObject(json, "left");
}

static bool put_hole(cJSON *array, const dv_pool_history *h, size_t i) {
    uint64_t first, last;
    if (!dv_history_hole(h, i, &first, &last)) return true;
    cJSON *json = dv_json_add_object(array);
    return json && dv_json_number(json, "from", (int64_t)first) && dv_json_number(json, "to", (int64_t)last);
}

cJSON *dv_history_json(const dv_pool_history *h) {
    cJSON *json = cJSON_CreateObject();
    bool good = json && dv_json_text(json, "path", h->path) && dv_json_bool(json, "readable", !h->unreadable);
    cJSON *changes = good ? cJSON_AddArrayToObject(json, "changes") : NULL;
    cJSON *missing = changes ? cJSON_AddArrayToObject(json, "missing") : NULL;
    good = missing;
    for (size_t i = 0; good && i < h->told.count; i++) {
        bool is_plan = h->ends_with_it && i + 1 == h->told.count;
        good = put_hole(missing, h, i) && put_change(changes, h, &h->told.changes[i], is_plan);
    }
    if (!h->ends_with_it) good = good && put_hole(missing, h, h->told.count) && put_plan(changes, h);
    if (good) return json;
    cJSON_Delete(json);
    return NULL;
}

bool dv_history_refuses(const dv_pool_history *h, char why[DV_HISTORY_BYTES]) {
    dv_plan_standing standing = h->plan->memory.standing;
    const char *before = "the pool at ", *behind = NULL;
    if (!h->found) {
        before = "there is no pool at ";
        behind = ": it has neither members nor locks";
    } else if (standing == DV_PLAN_BROKEN) {
        before = "the plan of the pool at ";
        behind = " is broken, and does not say where its history is: look again when a member has written the next one";
    } else if (standing == DV_PLAN_NEWER) {
        before = "a later release of divvy wrote the plan of the pool at ";
        behind = ": use its command";
    } else if (!dv_pool_history_plan(h)) {
        behind = " has no plan, and only plans have a history: its members are kazoo's, or divide the items by names";
    }
    if (behind) snprintf(why, DV_HISTORY_BYTES, "%s%.600s%s", before, h->path, behind);
    return behind;
}
