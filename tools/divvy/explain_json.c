/* An item's explanation as JSON, for `divvy explain` and for the page. SPDX-License-Identifier: Apache-2.0 */
#include "explain_json.h"

#include <stdio.h>

#include "pool/whom.h"
#include "status_plan.h"
#include "table_json.h"

static bool put_place(cJSON *array, const dv_explanation *e, const dv_explain_place *place) {
    cJSON *json = dv_json_add_object(array);
    return json && dv_json_text(json, "member", place->name) &&
           dv_json_bool(json, "in_party", place->member != DV_NO_MEMBER) && dv_json_session(json, place->session) &&
           dv_json_token(json, place->token) && dv_json_age(json, e->status->read_at_ms - place->made_ms);
}

static bool put_plan(cJSON *json, const dv_explanation *e) {
    const dv_plan *plan = dv_status_plan(e->status);
    if (!plan) return cJSON_AddNullToObject(json, "plan") != NULL;
    const dv_status_entry *next = e->item->planned;
    cJSON *object = cJSON_AddObjectToObject(json, "plan");
    return object && dv_json_number(object, "generation", (int64_t)plan->header.generation) &&
           dv_json_text(object, "reason", dv_plan_reason_text(plan->header.reason)) &&
           dv_json_bool(object, "in_force", e->status->in_force) &&
           dv_json_age(object, e->status->read_at_ms - e->planned_ms) &&
           dv_json_text_or_null(object, "owner", next ? dv_whom_identifier(next->entry) : NULL);
}

/* Only where the plan knows it. */
static bool put_load(cJSON *json, const dv_explanation *e) {
    const dv_pool_rules *r = &e->status->rules;
    size_t item = r->any ? dv_pool_rules_find(r, e->item->name) : SIZE_MAX;
    double load, part;
    if (item == SIZE_MAX || !dv_pool_rules_load(r, item, &load, &part)) return true;
    cJSON *object = cJSON_AddObjectToObject(json, "load");
    return object && cJSON_AddNumberToObject(object, "value", load) && cJSON_AddNumberToObject(object, "part", part) &&
           dv_json_text(object, "unit", r->plan->loads->unit);
}

cJSON *dv_explain_json(const dv_explanation *e) {
    cJSON *json = cJSON_CreateObject();
    dv_explain_verdict verdict = dv_explain_judge(e);
    bool good = json && dv_json_text(json, "path", e->status->path) && dv_json_text(json, "item", e->item->name) &&
                dv_json_text(json, "state", verdict.state) &&
                dv_json_text_or_null(json, "owner", e->place_count ? e->places[0].name : NULL);
    cJSON *queue = good ? cJSON_AddArrayToObject(json, "queue") : NULL;
    good = queue;
    for (size_t i = 0; good && i < e->place_count; i++) good = put_place(queue, e, &e->places[i]);
    good = good && put_plan(json, e) && put_load(json, e) && dv_json_text_or_null(json, "now", verdict.now) &&
           dv_json_text_or_null(json, "next", verdict.next) &&
           (!verdict.rule || (dv_json_text(json, "rule", verdict.rule) && dv_json_text(json, "why", verdict.why)));
    if (good) return json;
    cJSON_Delete(json);
    return NULL;
}

bool dv_explain_refuses(const dv_explanation *e, const char *item, char why[DV_EXPLAIN_BYTES]) {
    const dv_status *status = e->status;
    if (!status->found) {
        snprintf(why, DV_EXPLAIN_BYTES, "there is no pool at %.400s: it has neither members nor locks", status->path);
        return true;
    }
    /* A name that neither the plan has, if it can be read, nor anybody ever asked for. */
    dv_plan_standing standing = status->plan->memory.standing;
    bool unreadable = standing == DV_PLAN_BROKEN || standing == DV_PLAN_NEWER;
    if (unreadable || e->is_planned || e->place_count > 0 || e->item->there) return false;
    snprintf(why, DV_EXPLAIN_BYTES, "the pool at %.400s has no item \"%.200s\"", status->path, item);
    return true;
}
