/* What a pool's plan says of its members, beside what they do. SPDX-License-Identifier: Apache-2.0 */
#include "status_plan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <divvy/divvy.h>

const dv_plan *dv_status_plan(const dv_status *status) {
    const dv_plan_memory *memory = status->plan ? &status->plan->memory : NULL;
    bool good = memory && memory->standing == DV_PLAN_GOOD && memory->plan->header.generation > 0;
    return good ? memory->plan : NULL;
}

void dv_status_plan_clear(dv_status *status) {
    free(status->entries);
    status->entries = NULL;
    status->entry_count = 0;
}

/* ---- who is who ---- */

/* D12: by the node's name; of nodes of a static member by the identifier, the newest. */
static size_t find_live(const dv_status *status, const dv_plan_member *entry) {
    size_t found = DV_NO_MEMBER;
    for (size_t i = 0; i < status->member_count; i++) {
        const dv_status_member *m = &status->members[i];
        if (!m->follows || strcmp(entry->is_static ? m->identifier : m->node, entry->key) != 0) continue;
        if (found == DV_NO_MEMBER || m->czxid > status->members[found].czxid) found = i;
    }
    return found;
}

/* Another live node of its identifier is the plan's static member. */
static bool is_fenced(const dv_status *status, const dv_status_member *m) {
    for (size_t n = 0; n < status->entry_count; n++) {
        const dv_status_entry *e = &status->entries[n];
        if (e->member == DV_NO_MEMBER || !e->entry->is_static) continue;
        if (m->is_static && strcmp(e->entry->key, m->identifier) == 0) return true;
    }
    return false;
}

static void count_items(dv_status *status, const dv_plan *plan) {
    for (size_t i = 0; i < plan->set->count; i++) {
        if (plan->owners[i] == DV_PLAN_NO_SLOT) continue;
        const dv_plan_member *owner = dv_plan_member_at(plan, plan->owners[i]);
        if (owner) status->entries[owner - plan->members].item_count++;
    }
}

int dv_status_plan_match(dv_status *status) {
    const dv_plan *plan = dv_status_plan(status);
    status->in_force = plan && status->member_count > 0;
    for (size_t i = 0; i < status->member_count; i++) status->in_force = status->in_force && status->members[i].follows;
    if (!plan) return 0;
    status->entries = calloc(plan->member_count + 1, sizeof *status->entries);
    if (!status->entries) return DIVVY_ENOMEM;
    for (; status->entry_count < plan->member_count; status->entry_count++) {
        const dv_plan_member *entry = &plan->members[status->entry_count];
        size_t live = find_live(status, entry);
        status->entries[status->entry_count] = (dv_status_entry){.entry = entry, .member = live};
        if (live != DV_NO_MEMBER) status->members[live].entry = &status->entries[status->entry_count];
    }
    count_items(status, plan);
    for (size_t i = 0; i < status->member_count; i++) {
        dv_status_member *m = &status->members[i];
        m->fenced = !m->entry && m->follows && is_fenced(status, m);
    }
    return 0;
}

const char *dv_status_plan_state(const dv_plan_member *entry, const dv_status_member *member) {
    if (!entry) return member->fenced ? "fenced" : member->follows ? "new" : "";
    if (entry->leaving[0]) return "leaving";
    if (!member) return "absent";
    return entry->weight == 0 ? "drained" : "";
}

/* ---- telling ---- */

typedef struct {
    size_t drained, absent, leaving;
} tally;

static tally count_states(const dv_status *status) {
    tally t = {0};
    for (size_t n = 0; n < status->entry_count; n++) {
        const dv_status_entry *e = &status->entries[n];
        t.drained += e->entry->weight == 0;
        t.absent += e->member == DV_NO_MEMBER;
        t.leaving += e->entry->leaving[0] != '\0';
    }
    return t;
}

static const char *standing_text(const dv_status *status) {
    switch (status->plan->memory.standing) {
    case DV_PLAN_BROKEN: return "broken";
    case DV_PLAN_NEWER: return "of a later release";
    default: return NULL;
    }
}

static void print_count(FILE *to, bool *first, size_t count, const char *what) {
    if (count == 0) return;
    fprintf(to, "%s%zu %s", *first ? ": " : ", ", count, what);
    *first = false;
}

void dv_status_plan_print(const dv_status *status, FILE *to) {
    const dv_plan *plan = dv_status_plan(status);
    const char *standing = status->plan ? standing_text(status) : NULL;
    if (standing) fprintf(to, "plan: %s\n", standing);
    if (!plan) return;
    tally t = count_states(status);
    bool first = true;
    fprintf(to, "plan %" PRIu64 ", %s%s", plan->header.generation, dv_plan_reason_text(plan->header.reason),
            status->in_force ? "" : ", not in force");
    print_count(to, &first, plan->moved_count, "on their way");
    print_count(to, &first, t.drained, "drained");
    print_count(to, &first, t.absent, "absent");
    print_count(to, &first, t.leaving, "leaving");
    fputs("\n", to);
}

static bool put_entry(cJSON *array, const dv_status *status, const dv_status_entry *e) {
    cJSON *json = dv_json_add_object(array);
    const dv_plan_member *m = e->entry;
    const dv_status_member *live = e->member == DV_NO_MEMBER ? NULL : &status->members[e->member];
    const char *dash = m->is_static ? NULL : strchr(m->key, '-');
    return json && dv_json_text(json, "identifier", dash ? dash + 1 : m->key) &&
           dv_json_text_or_null(json, "node", live ? live->node : NULL) && dv_json_bool(json, "static", m->is_static) &&
           dv_json_number(json, "weight", (int64_t)m->weight) && dv_json_text_or_null(json, "zone", m->zone) &&
           dv_json_number(json, "items", (int64_t)e->item_count) &&
           dv_json_text_or_null(json, "state", dv_status_plan_state(m, live));
}

static bool put_plan(cJSON *json, const dv_status *status, const dv_plan *plan) {
    bool good = dv_json_number(json, "generation", (int64_t)plan->header.generation) &&
                dv_json_text(json, "reason", dv_plan_reason_text(plan->header.reason)) &&
                dv_json_bool(json, "in_force", status->in_force) &&
                dv_json_number(json, "items", (int64_t)plan->set->count) &&
                dv_json_number(json, "max_moves", (int64_t)plan->header.options.max_moves) &&
                dv_json_number(json, "moving", (int64_t)plan->moved_count);
    cJSON *members = good ? cJSON_AddArrayToObject(json, "members") : NULL;
    good = members;
    for (size_t n = 0; good && n < status->entry_count; n++) good = put_entry(members, status, &status->entries[n]);
    return good;
}

bool dv_status_plan_json(cJSON *json, const dv_status *status) {
    const dv_plan *plan = dv_status_plan(status);
    const char *standing = status->plan ? standing_text(status) : NULL;
    if (!plan && !standing) return cJSON_AddNullToObject(json, "plan") != NULL;
    cJSON *object = cJSON_AddObjectToObject(json, "plan");
    if (!object) return false;
    return plan ? put_plan(object, status, plan) : dv_json_text(object, "unusable", standing);
}
