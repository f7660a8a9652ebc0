/* A pool's plan, as far as it tells of members more than their nodes do. SPDX-License-Identifier: Apache-2.0 */
#include "status_plan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <divvy/divvy.h>

#include "pool/whom.h"
#include "pool/wishes.h"
#include "status_rules.h"
#include "table.h"
#include "znode/path.h"

const dv_plan *dv_status_plan(const dv_status *status) {
    const dv_plan_memory *memory = status->plan ? &status->plan->memory : NULL;
    bool good = memory && memory->standing == DV_PLAN_GOOD && memory->plan->header.generation > 0;
    return good ? memory->plan : NULL;
}

void dv_status_plan_clear(dv_status *status) {
    free(status->entries);
    status->entries = NULL;
    status->entry_count = 0;
    dv_pool_rules_clear(&status->rules);
}

/* ---- who is who ---- */

static bool came_later(const dv_status_member *a, const dv_status_member *b) {
    return dv_plan_came_later(&(dv_plan_node){.node = a->node, .czxid = a->czxid, .first_czxid = a->first_czxid},
                              &(dv_plan_node){.node = b->node, .czxid = b->czxid, .first_czxid = b->first_czxid});
}

/* Returns the live member that the entry is (D12): by the node's name; of a static one by the identifier, that of the
 * last process. */
static size_t find_live(const dv_status *status, const dv_plan_member *entry) {
    size_t found = DV_NO_MEMBER;
    for (size_t i = 0; i < status->member_count; i++) {
        const dv_status_member *m = &status->members[i];
        /* A member that came back without its rejoin_delay is a new one, whatever its identifier. */
        if (!m->follows || m->is_static != entry->is_static) continue;
        if (strcmp(entry->is_static ? m->identifier : m->node, entry->key) != 0) continue;
        if (found == DV_NO_MEMBER || came_later(m, &status->members[found])) found = i;
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

const dv_plan_member *dv_status_plan_owner(const dv_plan *plan, const char *item) {
    size_t number = dv_pool_item(plan, item);
    return number == SIZE_MAX ? NULL : dv_plan_member_at(plan, plan->owners[number]);
}

/* Returns the entry that the plan gives the item to, or NULL. */
static const dv_status_entry *planned_owner(const dv_status *status, const dv_plan *plan, const char *item) {
    const dv_plan_member *owner = dv_status_plan_owner(plan, item);
    return owner ? &status->entries[owner - plan->members] : NULL;
}

/* Notes what the plan has for each item, and what members hold beyond that. */
static void plan_items(dv_status *status, const dv_plan *plan) {
    for (size_t i = 0; i < status->item_count && status->in_force; i++) {
        dv_status_item *item = &status->items[i];
        item->planned = planned_owner(status, plan, item->name);
        if (item->member == DV_NO_MEMBER) continue;
        if (!item->planned || item->planned->member != item->member) status->members[item->member].releasing++;
    }
}

int dv_status_plan_match(dv_status *status) {
    const dv_plan *plan = dv_status_plan(status);
    status->in_force = plan && status->member_count > 0;
    for (size_t i = 0; i < status->member_count; i++) status->in_force = status->in_force && status->members[i].follows;
    if (!plan) return 0;
    int error = dv_pool_rules_make(&status->rules, plan);
    if (error) return error;
    status->entries = calloc(plan->member_count + 1, sizeof *status->entries);
    if (!status->entries) return DIVVY_ENOMEM;
    for (; status->entry_count < plan->member_count; status->entry_count++) {
        const dv_plan_member *entry = &plan->members[status->entry_count];
        size_t live = find_live(status, entry);
        status->entries[status->entry_count] = (dv_status_entry){.entry = entry, .member = live};
        if (live != DV_NO_MEMBER) status->members[live].entry = &status->entries[status->entry_count];
    }
    count_items(status, plan);
    plan_items(status, plan);
    for (size_t i = 0; i < status->member_count; i++) {
        dv_status_member *m = &status->members[i];
        m->fenced = !m->entry && m->follows && is_fenced(status, m);
    }
    return 0;
}

/* Returns whether its place is kept while it is away (D13). */
static bool is_kept(const dv_plan_member *entry) {
    return entry->is_static && entry->rejoin_delay_ms > 0;
}

const char *dv_status_plan_state(const dv_plan_member *entry, const dv_status_member *member) {
    if (!entry && !member) return "";
    if (!entry) return member->fenced ? "fenced" : member->follows ? "new" : "";
    if (entry->leaving[0]) return member ? "leaving" : "left";
    if (!member) return is_kept(entry) ? "absent" : "gone";
    return entry->weight == 0 ? "drained" : "";
}

void dv_status_plan_describe(const dv_status_entry *entry, const dv_status_member *member, char *out, size_t bytes) {
    const char *word = dv_status_plan_state(entry ? entry->entry : NULL, member);
    char age[DV_AGE_BYTES];
    if (strcmp(word, "absent") == 0)
        snprintf(out, bytes, "absent, %zu kept for it up to %s", entry->item_count,
                 dv_age_text(entry->entry->rejoin_delay_ms, age));
    else if (member && member->releasing > 0)
        snprintf(out, bytes, "%s%sreleasing %zu", word, *word ? ", " : "", member->releasing);
    else snprintf(out, bytes, "%s", word);
}

bool dv_status_plan_has_left(const dv_status_entry *entry) {
    return entry->member == DV_NO_MEMBER && entry->entry->leaving[0] && entry->item_count == 0;
}

bool dv_status_plan_shows(const dv_status *status, const dv_status_entry *entry) {
    return entry->member == DV_NO_MEMBER && !dv_status_plan_has_left(entry) &&
           (status->member_count > 0 || is_kept(entry->entry));
}

/* ---- telling ---- */

typedef struct {
    size_t drained, absent, gone, leaving, releasing;
} state_counts;

static state_counts count_states(const dv_status *status) {
    state_counts t = {0};
    for (size_t n = 0; n < status->entry_count; n++) {
        const dv_status_entry *e = &status->entries[n];
        bool away = e->member == DV_NO_MEMBER, kept = is_kept(e->entry);
        t.drained += e->entry->weight == 0;
        t.leaving += e->entry->leaving[0] && !away;
        t.absent += away && kept;
        t.gone += away && !kept && !dv_status_plan_has_left(e);
    }
    for (size_t i = 0; i < status->member_count; i++) t.releasing += status->members[i].releasing;
    return t;
}

static int compare_name(const void *name, const void *item) {
    return strcmp(name, ((const dv_status_item *)item)->name);
}

/* Counts the items that the plan has moved, and that their owners do not have yet. Items come in the plan's order. */
static size_t count_moving(const dv_status *status, const dv_plan *plan) {
    size_t moving = 0;
    for (size_t i = 0; i < plan->moved_count; i++) {
        const char *name = plan->set->names[plan->moved[i]];
        const dv_status_item *item = status->item_count == 0 ? NULL
                                                             : bsearch(name, status->items, status->item_count,
                                                                       sizeof *status->items, compare_name);
        bool arrived = item && item->head && item->planned && item->member == item->planned->member &&
                       item->member != DV_NO_MEMBER;
        bool nobodys = status->in_force && plan->owners[plan->moved[i]] == DV_PLAN_NO_SLOT && !(item && item->head);
        moving += !arrived && !nobodys;
    }
    return moving;
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
    fprintf(to, "plan %" PRIu64 ", %s%s", plan->header.generation, dv_plan_reason_text(plan->header.reason),
            status->in_force ? "" : ", not in force");
    /* The places of members and items count only while somebody follows the plan. */
    state_counts t = status->member_count > 0 ? count_states(status) : (state_counts){0};
    bool first = true;
    if (status->member_count == 0) fputs(": nobody is in the pool", to);
    else print_count(to, &first, count_moving(status, plan), "on their way");
    print_count(to, &first, t.releasing, "to be released");
    print_count(to, &first, t.drained, "drained");
    print_count(to, &first, t.absent, "absent");
    print_count(to, &first, t.gone, "gone");
    print_count(to, &first, t.leaving, "leaving");
    print_count(to, &first, status->rules.pinned, "pinned");
    print_count(to, &first, status->rules.moved, "moved by hand");
    print_count(to, &first, status->rules.paused, "paused");
    print_count(to, &first, status->rules.needs, status->rules.needs == 1 ? "need of a tag" : "needs of tags");
    fputs("\n", to);
    dv_status_rules_print(status, to);
}

static bool put_entry(cJSON *array, const dv_status *status, const dv_status_entry *e) {
    cJSON *json = dv_json_add_object(array);
    const dv_plan_member *m = e->entry;
    const dv_status_member *live = e->member == DV_NO_MEMBER ? NULL : &status->members[e->member];
    return json && dv_json_text(json, "identifier", dv_whom_identifier(m)) &&
           dv_json_text_or_null(json, "node", live ? live->node : NULL) && dv_json_bool(json, "static", m->is_static) &&
           dv_json_number(json, "weight", (int64_t)m->weight) && dv_json_text_or_null(json, "zone", m->zone) &&
           dv_json_number(json, "items", (int64_t)e->item_count) &&
           dv_json_number_or_null(json, "rejoin_delay_ms", m->is_static ? m->rejoin_delay_ms : 0) &&
           dv_json_number(json, "releasing", live ? (int64_t)live->releasing : 0) &&
           dv_json_text_or_null(json, "state", dv_status_plan_state(m, live)) &&
           dv_status_rules_json_member(json, status, e);
}

static bool put_plan(cJSON *json, const dv_status *status, const dv_plan *plan) {
    bool good = dv_json_number(json, "generation", (int64_t)plan->header.generation) &&
                dv_json_text(json, "reason", dv_plan_reason_text(plan->header.reason)) &&
                dv_json_bool(json, "in_force", status->in_force) &&
                dv_json_number(json, "items", (int64_t)plan->set->count) &&
                dv_json_number(json, "max_moves", (int64_t)plan->header.options.max_moves) &&
                dv_json_number(json, "moving", (int64_t)count_moving(status, plan));
    cJSON *members = good ? cJSON_AddArrayToObject(json, "members") : NULL;
    good = members;
    for (size_t n = 0; good && n < status->entry_count; n++) good = put_entry(members, status, &status->entries[n]);
    return good && dv_status_rules_json(json, status);
}

bool dv_status_plan_json(cJSON *json, const dv_status *status) {
    const dv_plan *plan = dv_status_plan(status);
    const char *standing = status->plan ? standing_text(status) : NULL;
    if (!plan && !standing) return cJSON_AddNullToObject(json, "plan") != NULL;
    cJSON *object = cJSON_AddObjectToObject(json, "plan");
    if (!object) return false;
    return plan ? put_plan(object, status, plan) : dv_json_text(object, "unusable", standing);
}
