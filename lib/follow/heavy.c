/* The warning of items that are more work than a fair share: docs/protocol.md, D47. SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "assign/balance.h"
#include "base/crc32.h"
#include "follow/follower.h"

enum { NAMES_TOLD = 3, NAMES_BYTES = 200 };

/* The deal as the plan has it, with what is reported. */
typedef struct {
    dv_balance_member *members;
    dv_balance_item *items;
    double *shares;
} sizes;

static void free_sizes(sizes *s) {
    free(s->members);
    free(s->items);
    free(s->shares);
}

static uint8_t class_of(const dv_plan *plan, const dv_loads *reported, size_t i) {
    uint8_t class = reported->classes[i];
    bool known = plan->loads && strcmp(plan->loads->unit, reported->unit) == 0;
    return class == DV_CLASS_NONE && known ? plan->loads->classes[i] : class;
}

/* Returns the fair share of the members that have items; below 0 when an allocation fails. */
static double fair_share(sizes *s, const dv_plan *plan, const dv_loads *reported) {
    size_t count = 0;
    s->members = calloc(plan->member_count + 1, sizeof *s->members);
    s->items = calloc(plan->set->count + 1, sizeof *s->items);
    s->shares = calloc(plan->member_count + 1, sizeof *s->shares);
    if (!s->members || !s->items || !s->shares) return -1;
    for (size_t m = 0; m < plan->member_count; m++) {
        const dv_plan_member *member = &plan->members[m];
        if (member->leaving[0] == '\0' && member->absent == 0 && member->weight > 0)
            s->members[count++] = (dv_balance_member){.identifier = member->key, .zone = "", .weight = member->weight};
    }
    for (size_t i = 0; i < plan->set->count; i++)
        s->items[i] = (dv_balance_item){.name = plan->set->names[i],
                                        .size = dv_class_size(class_of(plan, reported, i)),
                                        .owner = UINT32_MAX,
                                        .tag = DV_NO_TAG};
    if (plan->set->count <= count) return 0; /* One item each is all that a deal can do. */
    return count > 0 ? dv_balance_loads(s->members, count, s->items, plan->set->count, s->shares) : 0;
}

/* Returns where an item is remembered as told, by a few bits of its name: one that is not told is better than one that
 * is told in each interval. */
static bool is_new(dv_follow_heavy *h, const char *name) {
    uint32_t at = dv_crc32(0, name, strlen(name)) % (8 * sizeof h->told);
    uint8_t bit = (uint8_t)(1u << at % 8);
    bool known = h->told[at / 8] & bit;
    h->told[at / 8] |= bit;
    return !known;
}

void dv_follow_tell_heavy(dv_follower *f, const dv_loads *reported) {
    const dv_plan *plan = dv_follow_plan(f);
    char names[NAMES_BYTES] = "";
    size_t heavy = 0, used = 0;
    sizes s = {.members = NULL};
    double fair = fair_share(&s, plan, reported), total = 0;
    for (size_t i = 0; fair > 0 && i < plan->set->count; i++) total += s.items[i].size > 0 ? s.items[i].size : 0;
    for (size_t i = 0; fair > 0 && i < plan->set->count; i++) {
        if (!(s.items[i].size > fair) || !is_new(&f->heavy, plan->set->names[i]) || heavy++ >= NAMES_TOLD) continue;
        int bytes = snprintf(names + used, sizeof names - used, "%s\"%.40s\" (%.0f %%)", heavy > 1 ? ", " : "",
                             plan->set->names[i], 100 * s.items[i].size / total);
        if (bytes > 0 && used + (size_t)bytes < sizeof names) used += (size_t)bytes;
    }
    if (heavy > 0)
        dv_follow_warn(
            f, DIVVY_WARN_HEAVY,
            "%s: %zu item%s more work than a member is to have beside them: of all load %s%s. No deal can even "
            "that out: an owner of one has as little else as possible; split the item, if that can be done",
            f->config.path, heavy, heavy == 1 ? " is" : "s are each", names, heavy > NAMES_TOLD ? ", ..." : "");
    free_sizes(&s);
}
