/* One row of a table of divvy serve's page, as JSON. SPDX-License-Identifier: Apache-2.0 */
#include "serve_rows.h"

#include <stdio.h>
#include <stdlib.h>

#include "services_read.h"

bool dv_serve_row_item(cJSON *array, const dv_serve_item *item) {
    cJSON *json = dv_json_add_object(array);
    bool good = json && dv_json_text(json, "item", item->name) &&
                dv_json_text_or_null(json, "owner", dv_serve_item_owner(item)) &&
                dv_json_text(json, "state", dv_serve_item_state(item));
    if (good && item->held) good = dv_json_token(json, item->token);
    if (good && item->next && item->next != item->owner) good = dv_json_text(json, "next", item->next->identifier);
    if (good && item->since_ms) good = dv_json_number(json, "since_ms", item->since_ms);
    if (good && item->seen) good = dv_json_bool(json, "seen", true);
    if (good && item->rule) good = dv_json_text(json, "rule", item->rule) && dv_json_text(json, "why", item->why);
    return good && dv_json_number(json, "waiting", (int64_t)item->waiting);
}

bool dv_serve_row_past(cJSON *array, const dv_serve_past_item *item) {
    cJSON *json = dv_json_add_object(array);
    bool good = json && dv_json_text(json, "item", item->name) && dv_json_text_or_null(json, "owner", item->owner) &&
                dv_json_text(json, "state", dv_serve_past_state(item));
    return good && (!item->since_ms || dv_json_number(json, "since_ms", item->since_ms));
}

bool dv_serve_row_member(cJSON *array, const dv_serve_member *m) {
    cJSON *json = dv_json_add_object(array);
    bool good = json && dv_json_text(json, "node", m->node) && dv_json_text(json, "member", m->identifier) &&
                dv_json_text(json, "kind", m->kazoo ? "kazoo" : "divvy") && dv_json_bool(json, "live", m->live) &&
                dv_json_text_or_null(json, "host", m->host) && dv_json_number_or_null(json, "pid", m->pid) &&
                dv_json_text_or_null(json, "since", m->since) && dv_json_text(json, "state", m->state) &&
                dv_json_number(json, "items", (int64_t)m->items);
    if (good && m->in_plan)
        good = dv_json_number(json, "planned", (int64_t)m->planned) &&
               dv_json_number(json, "weight", (int64_t)m->weight) && dv_json_text_or_null(json, "zone", m->zone);
    if (good && m->share >= 0) good = cJSON_AddNumberToObject(json, "share", m->share);
    if (good && m->tags && *m->tags) good = dv_json_text(json, "tags", m->tags);
    return good && (m->cap == 0 || dv_json_number(json, "cap", m->cap));
}

bool dv_serve_row_holdup(cJSON *array, const dv_serve_holdup *holdup) {
    cJSON *json = dv_json_add_object(array);
    return json && dv_json_text(json, "holder", holdup->holder) &&
           dv_json_text_or_null(json, "waiter", holdup->waiter) &&
           dv_json_number(json, "items", (int64_t)holdup->items) && dv_json_text(json, "first", holdup->first->name) &&
           dv_json_number(json, "since_ms", holdup->since_ms);
}

bool dv_serve_row_event(cJSON *array, const dv_serve_event *event) {
    static const char *const kinds[] = {"item", "joined", "left", "plan", "restarted", "died"};
    cJSON *json = dv_json_add_object(array);
    bool good = json && dv_json_number(json, "number", (int64_t)event->number) &&
                dv_json_number(json, "ms", event->ms) && dv_json_text(json, "kind", kinds[event->kind]) &&
                dv_json_text(json, "what", event->what);
    if (good && event->from) good = dv_json_text(json, "from", event->from);
    if (good && event->to) good = dv_json_text(json, "to", event->to);
    return good;
}

bool dv_serve_row_sample(cJSON *array, const dv_serve_sample *sample) {
    const double numbers[] = {(double)sample->ms, (double)sample->items, (double)sample->unowned,
                              (double)sample->moving, (double)sample->members};
    cJSON *json = cJSON_CreateDoubleArray(numbers, sizeof numbers / sizeof *numbers);
    if (json && cJSON_AddItemToArray(array, json)) return true;
    cJSON_Delete(json);
    return false;
}

/* ---- locks ---- */

/* Names the first few holders that could be read. */
static bool add_holders(cJSON *json, const dv_lock_entry *e) {
    enum { SHOWN_MAX = 5 };
    cJSON *array = cJSON_AddArrayToObject(json, "holders");
    size_t shown = 0;
    int64_t since_ms = 0;
    for (size_t i = 0; array && i < e->place_count && shown < SHOWN_MAX; i++) {
        const dv_place *p = &e->places[i];
        if (!p->holds || !(p->there || p->hidden)) continue;
        cJSON *holder = dv_json_add_object(array);
        if (!holder || !dv_json_text(holder, "who", p->understood ? p->record.identifier : "(unreadable)"))
            return false;
        if (p->understood && !dv_json_text_or_null(holder, "host", p->record.host)) return false;
        if (p->there && p->session == 0 && !dv_json_bool(holder, "persistent", true)) return false;
        if (since_ms == 0) since_ms = p->made_ms;
        shown++;
    }
    return array && dv_json_number_or_null(json, "since_ms", since_ms);
}

bool dv_serve_row_lock(cJSON *array, const dv_lock_entry *e) {
    cJSON *json = dv_json_add_object(array);
    bool good = json && dv_json_text(json, "name", e->name) &&
                dv_json_text(json, "kind", e->is_semaphore ? "semaphore" : "lock") &&
                dv_json_number(json, "held", (int64_t)e->held) && dv_json_number(json, "waiting", (int64_t)e->waiting);
    if (good && e->is_semaphore && e->limit_state == DV_LIMIT_SET) good = dv_json_number(json, "limit", e->limit);
    return good && add_holders(json, e);
}

/* ---- the registry ---- */

bool dv_serve_row_service(cJSON *array, const dv_services *services, const dv_entry *entry) {
    char *address = dv_services_address(entry);
    cJSON *json = address ? dv_json_add_object(array) : NULL;
    bool good = json && dv_json_text(json, "role", entry->role) && dv_json_text(json, "id", entry->id) &&
                dv_json_text(json, "health", dv_services_health(services, entry)) &&
                dv_json_text_or_null(json, "address", address) && cJSON_AddNumberToObject(json, "load", entry->load) &&
                dv_json_number(json, "beat_ms", entry->stat.mtime_ms);
    if (good && (entry->flags & DV_ENTRY_HAS_TTL)) good = cJSON_AddNumberToObject(json, "ttl_s", entry->ttl_s);
    free(address);
    return good;
}
