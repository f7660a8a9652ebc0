/* The target, agreed by all from names alone: docs/protocol.md, P2, P3. SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "assign/assign_internal.h"
#include "base/guid.h"
#include "divvy/assign.h"
#include "partitioner/partitioner.h"
#include "znode/path.h"

bool dv_target_has_kazoo(const dv_members *party) {
    for (size_t i = 0; i < party->count; i++) {
        if (party->members[i].kind == DV_KAZOO) return true;
    }
    return false;
}

/* ---- the order of members: bytewise; equal ones untagged first, then by node name ---- */

static int compare_members(const void *a, const void *b) {
    const dv_member *x = *(const dv_member *const *)a, *y = *(const dv_member *const *)b;
    int order = strcmp(x->identifier, y->identifier);
    if (order) return order;
    if ((x->kind == DV_KAZOO) != (y->kind == DV_KAZOO)) return x->kind == DV_KAZOO ? -1 : 1;
    return strcmp(x->node, y->node);
}

typedef struct {
    const dv_member **members; /* in order; strays only beside a member of kazoo's */
    size_t count, own;
    bool present; /* own is valid */
    bool has_kazoo;
    int level; /* the least of all */
} pool;

/* P3: kazoo divides among all children of the party, so beside it strays count, too. */
static bool make_pool(pool *out, const dv_members *party, const char *own_node) {
    *out = (pool){.members = calloc(party->count + 1, sizeof *out->members),
                  .has_kazoo = dv_target_has_kazoo(party),
                  .level = DV_LEVEL_PLAN};
    if (!out->members) return false;
    for (size_t i = 0; i < party->count; i++) {
        const dv_member *m = &party->members[i];
        if (m->kind == DV_STRAY && !out->has_kazoo) continue;
        out->members[out->count++] = m;
        int level = m->kind != DV_DIVVY || m->level == DV_LEVEL_OWN ? DV_LEVEL_KAZOO : m->level;
        if (level < out->level) out->level = level;
    }
    qsort(out->members, out->count, sizeof *out->members, compare_members);
    for (size_t i = 0; i < out->count; i++) {
        if (strcmp(out->members[i]->node, own_node) != 0) continue;
        out->own = i;
        out->present = true;
    }
    return true;
}

/* ---- what is told of a party ---- */

static void warn_of_differences(divvy_partitioner *p, const pool *all) {
    const dv_member *other_set = NULL, *other_ability = NULL;
    bool by_names = all->level < DV_LEVEL_PLAN; /* else the plan says what is what */
    for (size_t i = 0; by_names && i < all->count; i++) {
        const dv_member *m = all->members[i];
        if (m->kind != DV_DIVVY) continue;
        if (m->has_set && m->set != p->configured->crc && !other_set) other_set = m;
        bool same = m->ability_bytes == strlen(p->ability) && strncmp(m->ability, p->ability, m->ability_bytes) == 0;
        if (!same && !other_ability) other_ability = m;
    }
    if (other_set)
        dv_report_warn_once(p, DIVVY_WARN_ITEMS_DIFFER,
                            "%s: member %s was configured with other items than %s; items that only some members know "
                            "may stay unowned",
                            p->path, other_set->identifier, p->identifier);
    if (other_ability)
        dv_report_warn_once(p, DIVVY_WARN_ASSIGN_DIFFERS,
                            "%s: member %s assigns by %.*s and %s by %s (0 round robin, 1 rendezvous, 2 plans, f... an "
                            "own function); the pool uses the least of them",
                            p->path, other_ability->identifier, (int)other_ability->ability_bytes,
                            other_ability->ability, p->identifier, p->ability);
}

/* A client whose session was lost has a node of that too, until the servers end it: ours, or another's. */
static bool are_of_one_client(const dv_member *a, const dv_member *b) {
    return a->kind == DV_DIVVY && b->kind == DV_DIVVY && dv_guid_is_of_former_session(a->node, b->node);
}

/* P3: a plan that decides knows which of them are static: of those only one gets a share (D38). */
static bool both_get_shares(const divvy_partitioner *p, const pool *all, const dv_member *a, const dv_member *b) {
    if (strcmp(a->identifier, b->identifier) != 0 || are_of_one_client(a, b)) return false;
    if (a->kind == DV_STRAY || b->kind == DV_STRAY) return false;
    return all->level < DV_LEVEL_PLAN || dv_follow_is_dynamic(p->follower, a->node) ||
           dv_follow_is_dynamic(p->follower, b->node);
}

static void warn_of_namesakes(divvy_partitioner *p, const pool *all) {
    for (size_t i = 1; i < all->count; i++) {
        if (!both_get_shares(p, all, all->members[i - 1], all->members[i])) continue;
        dv_report_warn_once(p, DIVVY_WARN_IDENTIFIER,
                            "%s: two live members go by the identifier \"%s\": both get a share, and logs cannot tell "
                            "them apart. Give each an identifier of its own",
                            p->path, all->members[i]->identifier);
        return;
    }
}

void dv_target_warn_of_namesakes(divvy_partitioner *p, const dv_members *party, const char *own_node) {
    pool all;
    if (!make_pool(&all, party, own_node)) return;
    if (all.present) warn_of_namesakes(p, &all);
    free(all.members);
}

/* Returns whether all items are numbers, in another order than their bytes: kazoo sorts integers as numbers. */
static bool numbers_out_of_order(const dv_plan_set *set) {
    bool out_of_order = false;
    for (size_t i = 0; i < set->count; i++) {
        if (!dv_assign_is_number(set->names[i])) return false;
        out_of_order |= i > 0 && dv_assign_compare_numbers(set->names[i - 1], set->names[i]) > 0;
    }
    return out_of_order;
}

/* P3: whose round robin deals the items out in another order waits for us, and we for them, for ever. */
static void warn_of_orders(divvy_partitioner *p, const pool *all) {
    bool numeric = p->config.items_order == DIVVY_ORDER_NUMERIC;
    if (all->level != DV_LEVEL_KAZOO || p->config.assign == DIVVY_ASSIGN_FUNC) return;
    for (size_t i = 0; i < all->count; i++) {
        const dv_member *m = all->members[i];
        if (m->kind != DV_DIVVY || m->numeric == numeric) continue;
        dv_report_warn_once(p, DIVVY_WARN_ASSIGN_DIFFERS,
                            "%s: round robin deals items out %s here and %s in member %s, so members wait for one "
                            "another; give all the same items_order",
                            p->path, numeric ? "by number" : "by bytes", numeric ? "by bytes" : "by number",
                            m->identifier);
        break;
    }
    if (all->has_kazoo && !numeric && numbers_out_of_order(p->configured))
        dv_report_warn_once(
            p, DIVVY_WARN_ITEMS_DIFFER,
            "%s: a kazoo member is in the pool, and all items are numbers. If they are integers "
            "there, such as range(12), kazoo sorts them by number, and %s by bytes, so members wait for "
            "one another; set items_order to numeric. If they are strings, nothing is wrong",
            p->path, p->identifier);
}

void dv_target_warn_of_strays(divvy_partitioner *p, const dv_members *party) {
    for (size_t i = 0; i < party->count; i++) {
        if (party->members[i].kind != DV_STRAY) continue;
        dv_report_warn_once(p, DIVVY_WARN_STRAY,
                            dv_target_has_kazoo(party)
                                ? "%s/%s is no member, but kazoo members give it a share, which has no owner: delete it"
                                : "%s/%s is no member and gets no share; kazoo members would count it: delete it",
                            p->party_path, party->members[i].node);
        return;
    }
}

void dv_target_warn(divvy_partitioner *p, const dv_members *party, const char *own_node) {
    pool all;
    if (!make_pool(&all, party, own_node)) return;
    if (all.present) {
        warn_of_differences(p, &all);
        warn_of_namesakes(p, &all);
        warn_of_orders(p, &all);
        dv_target_warn_of_strays(p, party);
    }
    free(all.members);
}

/* ---- the assignments ---- */

/* Takes `owners` over. */
static void remember(divvy_partitioner *p, const pool *all, uint32_t *owners) {
    const char **nodes = (const char **)(uintptr_t)malloc(all->count * sizeof *nodes);
    for (size_t i = 0; nodes && i < all->count; i++) nodes[i] = all->members[i]->node;
    if (nodes) dv_follow_remember(p->follower, nodes, all->count, owners, p->dealt);
    else free(owners);
    free(nodes);
}

static int assign(divvy_partitioner *p, const pool *all, uint8_t *mine) {
    size_t count = p->dealt->count;
    const char *const *items = p->dealt->names;
    divvy_member *members = calloc(all->count, sizeof *members);
    uint32_t *owners = calloc(count, sizeof *owners);
    int error = DIVVY_ENOMEM;
    if (members && owners) {
        for (size_t i = 0; i < all->count; i++) members[i] = (divvy_member){all->members[i]->identifier, 1000, NULL};
        if (all->level >= DV_LEVEL_RENDEZVOUS)
            error = divvy_assign_rendezvous(members, all->count, items, count, owners);
        else error = divvy_assign_round_robin_ordered(members, all->count, items, count, p->config.items_order, owners);
        for (size_t i = 0; !error && i < count; i++) mine[i] = owners[i] == all->own;
    }
    free(members);
    if (error) free(owners);
    else remember(p, all, owners);
    return error;
}

static int ask_function(divvy_partitioner *p, const pool *all, uint8_t *mine) {
    const char **identifiers = (const char **)(uintptr_t)calloc(all->count, sizeof *identifiers);
    if (!identifiers) return DIVVY_ENOMEM;
    for (size_t i = 0; i < all->count; i++) identifiers[i] = all->members[i]->identifier;
    int error =
        p->config.func(p->identifier, identifiers, all->count, p->dealt->names, p->dealt->count, mine, p->config.user);
    free(identifiers);
    return error ? DIVVY_EPROTO : 0;
}

/* kazoo writes item names raw, and would nest or crash on what must be encoded. */
static void refuse_encoded(divvy_partitioner *p, uint8_t *mine) {
    for (size_t i = 0; p->has_encoded && i < p->dealt->count; i++) {
        if (dv_name_is_plain(p->dealt->names[i])) continue;
        mine[i] = 0;
        dv_report_warn_once(p, DIVVY_WARN_ITEM_NAME,
                            "%s: the item \"%.100s\" cannot be shared with kazoo members, which write names raw; it "
                            "stays unowned while one is present",
                            p->path, p->dealt->names[i]);
    }
}

int dv_target_compute(divvy_partitioner *p, const dv_members *party, const char *own_node, uint8_t *mine) {
    pool all;
    if (!make_pool(&all, party, own_node)) return DIVVY_ENOMEM;
    int error = DIVVY_ENOENT;
    if (all.present) {
        error = p->config.assign == DIVVY_ASSIGN_FUNC ? ask_function(p, &all, mine) : assign(p, &all, mine);
        if (!error && all.has_kazoo) refuse_encoded(p, mine);
    }
    free(all.members);
    return error;
}
