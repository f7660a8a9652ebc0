/* The members and items of a plan as a deal takes them. SPDX-License-Identifier: Apache-2.0 */
#include "plan/table.h"

#include <stdlib.h>
#include <string.h>

#include "plan/step_internal.h"
#include "plan/tags.h"

enum { OUTSIDE = UINT32_MAX - 1, NOBODY = UINT32_MAX };

void dv_plan_table_free(dv_plan_table *t) {
    free(t->members);
    free(t->slots);
    free((void *)t->items);
    free(t->places);
    free(t->owners);
}

static bool is_left_out(const uint8_t *holds, size_t item, bool without_pinned) {
    if (holds == NULL) return false;
    return holds[item] == DV_ITEM_PAUSED || (without_pinned && holds[item] == DV_ITEM_PINNED);
}

bool dv_plan_table_lay(dv_plan_table *t, const dv_plan *plan, bool absent_too, const uint8_t *holds,
                       bool without_pinned) {
    uint32_t index_of[DV_PLAN_SLOTS];
    size_t members = plan->member_count + 1, items = plan->set->count + 1;
    *t = (dv_plan_table){.members = calloc(members, sizeof *t->members),
                         .slots = calloc(members, sizeof *t->slots),
                         .items = (const char **)calloc(items, sizeof *t->items),
                         .places = calloc(items, sizeof *t->places),
                         .owners = calloc(items, sizeof *t->owners)};
    if (!t->members || !t->slots || !t->items || !t->places || !t->owners) return false;
    for (size_t n = 0; n < DV_PLAN_SLOTS; n++) index_of[n] = OUTSIDE;
    for (size_t n = 0; n < plan->member_count; n++) {
        const dv_plan_member *m = &plan->members[n];
        if (!dv_step_takes_part(m, absent_too)) continue;
        index_of[m->slot] = (uint32_t)t->member_count;
        t->slots[t->member_count] = m->slot;
        t->members[t->member_count++] = (divvy_member){m->key, m->weight, m->zone};
    }
    for (size_t i = 0; i < plan->set->count; i++) {
        uint32_t slot = plan->owners[i];
        uint32_t owner = slot == DV_PLAN_NO_SLOT ? NOBODY : index_of[slot];
        if (owner == OUTSIDE || is_left_out(holds, i, without_pinned)) continue;
        t->items[t->item_count] = plan->set->names[i];
        t->places[t->item_count] = (uint32_t)i;
        t->owners[t->item_count++] = owner;
    }
    return true;
}

uint32_t dv_plan_table_owner(const dv_plan_table *t, size_t item) {
    return t->owners[item] == NOBODY ? DV_PLAN_NO_SLOT : t->slots[t->owners[item]];
}

bool dv_plan_table_differs(const dv_plan_table *t, const dv_plan *plan) {
    for (size_t n = 0; n < t->item_count; n++) {
        if (dv_plan_table_owner(t, n) != plan->owners[t->places[n]]) return true;
    }
    return false;
}

/* P2: the identifier of a node's name follows its first '-'. */
const char *dv_plan_identifier(const dv_plan_member *m) {
    const char *dash = m->is_static ? NULL : strchr(m->key, '-');
    return dash != NULL && dash[1] != '\0' ? dash + 1 : m->key;
}

/* ---- tags, caps and sizes ---- */

void dv_plan_balance_free(dv_plan_balance *b) {
    free(b->members);
    free(b->items);
    free((void *)b->tags);
    free(b->has);
}

/* Returns the number of a tag, which is a new one where no item needed it before. */
static uint32_t number_of(dv_plan_balance *b, const char *tag) {
    if (tag == NULL) return DV_NO_TAG;
    size_t n = 0;
    while (n < b->tag_count && strcmp(b->tags[n], tag) != 0) n++;
    if (n == b->tag_count) b->tags[b->tag_count++] = tag;
    return (uint32_t)n;
}

static bool lay_tags(dv_plan_balance *b, const dv_plan_table *t, const dv_plan *plan) {
    b->has = calloc(t->member_count * b->tag_count + 1, sizeof *b->has);
    if (b->has == NULL) return false;
    for (size_t m = 0; m < t->member_count; m++) {
        bool *has = b->has + m * b->tag_count;
        const dv_plan_member *member = dv_plan_member_at(plan, t->slots[m]);
        for (size_t n = 0; n < b->tag_count; n++) has[n] = dv_tags_has(member->tags, b->tags[n]);
        b->members[m] = (dv_balance_member){.identifier = member->key,
                                            .zone = member->zone,
                                            .weight = member->weight,
                                            .cap = member->cap,
                                            .has_tag = has};
    }
    return true;
}

/* The members of a table by identifier, which several may have. */
typedef struct {
    const char *identifier;
    size_t member;
} named;

static int by_identifier(const void *left, const void *right) {
    const named *a = left, *b = right;
    int order = strcmp(a->identifier, b->identifier);
    return order != 0 ? order : (a->member > b->member) - (a->member < b->member);
}

static named *sort_members(const dv_plan_table *t, const dv_plan *plan) {
    named *sorted = calloc(t->member_count + 1, sizeof *sorted);
    if (sorted == NULL) return NULL;
    for (size_t m = 0; m < t->member_count; m++)
        sorted[m] = (named){dv_plan_identifier(dv_plan_member_at(plan, t->slots[m])), m};
    qsort(sorted, t->member_count, sizeof *sorted, by_identifier);
    return sorted;
}

/* Returns the first member of the identifier from `begin` on, or `count`. */
static size_t find_from(const named *sorted, size_t count, const char *identifier, size_t begin) {
    const named key = {identifier, begin};
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (by_identifier(&sorted[middle], &key) < 0) low = middle + 1;
        else high = middle;
    }
    return low < count && strcmp(sorted[low].identifier, identifier) == 0 ? sorted[low].member : count;
}

/* A10: notes from whom the last step by load took items. Givers stand in the order of members, so that each of several
 * of one identifier is found in its turn. Returns false when an allocation fails. */
static bool lay_givers(dv_plan_balance *b, const dv_plan_table *t, const dv_plan *plan) {
    size_t giver_count = plan->loads != NULL ? plan->loads->giver_count : 0, begin = 0;
    named *sorted = giver_count > 0 ? sort_members(t, plan) : NULL;
    if (giver_count > 0 && sorted == NULL) return false;
    for (size_t g = 0; g < giver_count; g++) {
        const dv_load_giver *giver = &plan->loads->givers[g];
        size_t from = find_from(sorted, t->member_count, giver->from, begin), n = 0;
        if (from == t->member_count) from = find_from(sorted, t->member_count, giver->from, 0);
        if (from == t->member_count) continue;
        begin = from + 1;
        for (size_t i = 0; i < giver->count; i++) {
            while (n < t->item_count && t->places[n] < giver->items[i]) n++;
            if (n < t->item_count && t->places[n] == giver->items[i]) b->items[n].came_from = (uint32_t)from + 1;
        }
    }
    free(sorted);
    return true;
}

bool dv_plan_balance_lay(dv_plan_balance *b, const dv_plan_table *t, const dv_plan *plan, const uint8_t *holds) {
    bool need_tags = dv_wishes_need_tags(plan->wishes);
    size_t tags_most = need_tags ? plan->wishes->count : 0;
    *b = (dv_plan_balance){.members = calloc(t->member_count + 1, sizeof *b->members),
                           .items = calloc(t->item_count + 1, sizeof *b->items),
                           .tags = (const char **)calloc(tags_most + 1, sizeof *b->tags)};
    if (b->members == NULL || b->items == NULL || b->tags == NULL) return false;
    for (size_t n = 0; n < t->item_count; n++) {
        uint32_t place = t->places[n];
        b->items[n] = (dv_balance_item){
            .name = t->items[n],
            .size = plan->loads != NULL ? dv_class_size(plan->loads->classes[place]) : -1,
            .owner = t->owners[n],
            .tag = number_of(b, need_tags ? dv_wishes_tag(plan->wishes, t->items[n]) : NULL),
            .is_fixed = holds != NULL && holds[place] == DV_ITEM_PINNED,
        };
    }
    return lay_givers(b, t, plan) && lay_tags(b, t, plan);
}

/* ---- shares ---- */

/* Fills in the shares by the table's members. Returns false when an allocation fails. */
static bool measure(double *shares, const dv_plan *plan, const dv_plan_table *t, const dv_plan_balance *b) {
    double *loads = calloc(t->member_count + 1, sizeof *loads);
    bool measured = loads != NULL && dv_balance_loads(b->members, t->member_count, b->items, t->item_count, loads) >= 0;
    for (size_t m = 0; measured && m < t->member_count; m++) {
        shares[dv_plan_member_at(plan, t->slots[m]) - plan->members] = loads[m];
    }
    free(loads);
    return measured;
}

static void hold_paused(const dv_plan *plan, uint8_t *holds) {
    for (size_t i = 0; plan->wishes != NULL && i < plan->set->count; i++) {
        if (dv_wishes_find(plan->wishes, DV_WISH_PAUSE, plan->set->names[i]) != NULL) holds[i] = DV_ITEM_PAUSED;
    }
}

double *dv_plan_shares(const dv_plan *plan) {
    dv_plan_table t = {0};
    dv_plan_balance b = {0};
    double *shares = calloc(plan->member_count + 1, sizeof *shares);
    uint8_t *holds = calloc(plan->set->count + 1, sizeof *holds);
    bool complete = shares != NULL && holds != NULL;
    if (complete) hold_paused(plan, holds);
    complete = complete && dv_plan_table_lay(&t, plan, false, holds, false) &&
               dv_plan_balance_lay(&b, &t, plan, NULL) && measure(shares, plan, &t, &b);
    dv_plan_balance_free(&b);
    dv_plan_table_free(&t);
    free(holds);
    if (complete) return shares;
    free(shares);
    return NULL;
}
