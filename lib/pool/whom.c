/* Whom an errand is about: the member that an operator names. SPDX-License-Identifier: Apache-2.0 */
#include "pool/whom.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "znode/path.h"

enum { LISTED_MAX = 10 };

const char *dv_whom_identifier(const dv_plan_member *m) {
    return m->is_static ? m->key : dv_identifier_of(m->key);
}

const dv_plan_member *dv_whom_member(const dv_errand *e) {
    const dv_errand_result *r = &e->result;
    return e->memory.plan && r->key ? dv_plan_find(e->memory.plan, r->is_static, r->key) : NULL;
}

size_t dv_whom_load_of(const dv_plan *plan, bool is_static, const char *key) {
    const dv_plan_member *m = dv_plan_find(plan, is_static, key);
    size_t load = 0;
    for (size_t i = 0; m && i < plan->set->count; i++) load += plan->owners[i] == m->slot;
    return load;
}

size_t dv_whom_load(const dv_errand *e, const dv_plan *plan) {
    return e->result.key ? dv_whom_load_of(plan, e->result.is_static, e->result.key) : 0;
}

bool dv_whom_is_last(const dv_plan *plan, bool is_static, const char *key) {
    const dv_plan_member *own = dv_plan_find(plan, is_static, key);
    for (size_t n = 0; n < plan->member_count; n++) {
        const dv_plan_member *m = &plan->members[n];
        if (m != own && m->weight > 0 && m->absent == 0 && m->leaving[0] == '\0') return false;
    }
    return true;
}

/* ---- messages ---- */

/* Adds one name to the text, where there is room. */
static void list(char *text, size_t bytes, size_t *listed, const char *name) {
    size_t at = strlen(text);
    if (*listed < LISTED_MAX) snprintf(text + at, bytes - at, "%s%s", *listed ? ", " : "", name);
    else if (*listed == LISTED_MAX) snprintf(text + at, bytes - at, ", ...");
    ++*listed;
}

/* Lists, sorted, the identifiers of all members, or the keys of those who have this one. */
static void list_members(const dv_plan *plan, const char *identifier, char *text, size_t bytes) {
    const char **names = (const char **)calloc(plan->member_count + 1, sizeof *names);
    size_t count = 0, listed = 0;
    for (size_t n = 0; names && n < plan->member_count; n++) {
        const dv_plan_member *m = &plan->members[n];
        const char *own = dv_whom_identifier(m);
        if (!identifier) names[count++] = own;
        else if (strcmp(own, identifier) == 0) names[count++] = m->key;
    }
    if (count > 0) qsort((void *)names, count, sizeof *names, dv_name_compare);
    for (size_t n = 0; n < count; n++) list(text, bytes, &listed, names[n]);
    free((void *)names);
}

void dv_whom_list(const dv_plan *plan, char *text, size_t bytes) {
    text[0] = '\0';
    list_members(plan, NULL, text, bytes);
}

static void refuse_none(dv_errand *e, const char *name) {
    char names[1024];
    dv_whom_list(e->memory.plan, names, sizeof names);
    dv_errand_refuse(e, DIVVY_ENOENT, "the pool %s has no member %s; there are: %s", e->path, name, names);
}

static void refuse_several(dv_errand *e, const char *name) {
    char names[1024] = "";
    list_members(e->memory.plan, name, names, sizeof names);
    dv_errand_refuse(e, DIVVY_EINVAL, "several members of the pool %s are %s; say which by its node: %s", e->path, name,
                     names);
}

/* ---- finding ---- */

/* Returns a member of that name, and how many there are. */
static const dv_plan_member *find(const dv_plan *plan, const char *name, size_t *count) {
    const dv_plan_member *found = NULL;
    *count = 0;
    for (size_t n = 0; n < plan->member_count; n++) {
        const dv_plan_member *m = &plan->members[n];
        bool exact = strcmp(m->key, name) == 0;
        if (!exact && strcmp(dv_whom_identifier(m), name) != 0) continue;
        found = m;
        ++*count;
        if (!exact || m->is_static) continue;
        *count = 1; /* Nobody else has this very node. */
        break;
    }
    return found;
}

static int note(dv_errand *e, const dv_plan_member *m) {
    dv_errand_result *r = &e->result;
    if (dv_whom_member(e)) return 0; /* The first time counts, until that member goes, and another has the name. */
    char *key = strdup(m->key);
    if (!key) return DIVVY_ENOMEM;
    free(r->key);
    r->key = key;
    r->is_static = m->is_static;
    r->weight_before = m->weight;
    r->items_before = dv_whom_load(e, e->memory.plan);
    return 0;
}

int dv_whom_find(dv_errand *e, const char *name, bool must) {
    size_t count;
    const dv_plan_member *found = find(e->memory.plan, name, &count);
    if (count == 1) return note(e, found);
    if (count > 1) refuse_several(e, name);
    else if (dv_gathering_has(&e->party, name))
        dv_errand_wait_for(e, "the plan of %s does not have the member %s yet", e->path, name);
    else if (must) refuse_none(e, name);
    return 0;
}
