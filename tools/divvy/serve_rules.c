/* The rules of a pool, as divvy serve remembers them: loads, tags, caps, operators' wishes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "serve_rules.h"

#include <stdlib.h>
#include <string.h>

#include <divvy/divvy.h>

#include "status_rules.h"

void dv_serve_rules_forget(dv_serve_item *item) {
    if (item->rule) item->changed = true;
    free(item->why);
    item->why = NULL;
    item->rule = NULL;
}

int dv_serve_rules_item(dv_serve_item *item, const dv_pool_rules *rules, size_t number) {
    char text[DV_RULE_BYTES];
    const char *rule = dv_pool_rules_why(rules, number, text);
    if (!rule) {
        dv_serve_rules_forget(item);
        return 0;
    }
    if (item->rule && strcmp(item->rule, rule) == 0 && strcmp(item->why, text) == 0) return 0;
    char *why = strdup(text);
    if (!why) return DIVVY_ENOMEM;
    free(item->why);
    item->why = why;
    item->rule = rule;
    item->changed = true;
    return 0;
}

int dv_serve_rules_member(dv_serve_member *m, const dv_pool_rules *rules, const dv_plan_member *entry) {
    enum { DIGITS = 100 };
    const char *tags = entry ? entry->tags : "";
    uint32_t cap = entry ? entry->cap : 0;
    double share = -1;
    if (entry && rules->shares)
        share = (double)(int64_t)(rules->shares[entry - rules->plan->members] * DIGITS + 0.5) / DIGITS;
    bool same_tags = m->tags && strcmp(m->tags, tags) == 0,
         same_share = share - m->share < 0.001 && m->share - share < 0.001;
    m->changed = m->changed || !same_tags || m->cap != cap || !same_share;
    m->cap = cap;
    m->share = share;
    if (same_tags) return 0;
    char *copy = strdup(tags);
    if (!copy) return DIVVY_ENOMEM;
    free(m->tags);
    m->tags = copy;
    return 0;
}
