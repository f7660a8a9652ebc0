/* The step's deal, by count or by load: docs/protocol.md, D18, D19, D48, D50. SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "assign/balance.h"
#include "divvy/assign.h"
#include "divvy/error.h"
#include "plan/step_internal.h"
#include "plan/table.h"

enum { ROUND_PART = 20 }; /* D50: a round by load moves one in so many items at most, where nothing else is said */

static const double imbalance_usual = 0.2;

/* A member that is gone or leaves owns nothing. */
void dv_step_orphan_items(dv_plan *plan) {
    bool owns[DV_PLAN_SLOTS] = {0};
    for (size_t m = 0; m < plan->member_count; m++) {
        owns[plan->members[m].slot] = plan->members[m].leaving[0] == '\0';
    }
    for (size_t i = 0; i < plan->set->count; i++) {
        if (plan->owners[i] != DV_PLAN_NO_SLOT && !owns[plan->owners[i]]) plan->owners[i] = DV_PLAN_NO_SLOT;
    }
}

/* D19: leaves in the list the items of the round before that are still on their way. With wishes and loads a round by
 * load is listed though no max_moves limits it, and what goes to nobody ends with its round. */
static void keep_moved(const dv_step *s) {
    dv_plan *plan = s->next;
    bool over = s->events->round_over != NULL && s->previous != NULL &&
                strcmp(s->events->round_over, s->previous->header.guid) == 0;
    bool balanced = plan->header.is_balanced;
    if (over || (plan->header.options.max_moves == 0 && !balanced)) plan->moved_count = 0;
    size_t kept = 0;
    for (size_t n = 0; n < plan->moved_count; n++) {
        if (balanced || plan->owners[plan->moved[n]] != DV_PLAN_NO_SLOT) plan->moved[kept++] = plan->moved[n];
    }
    assert(kept <= plan->moved_count);
    plan->moved_count = kept;
}

/* ---- one deal ---- */

typedef struct {
    dv_plan *plan;
    uint8_t *holds;     /* by item */
    uint32_t *before;   /* by item: its owner before the deal, pins and pauses done */
    bool by_load;       /* the plan has loads */
    bool is_open;       /* a round is under way: nothing is taken from anybody */
    bool begins;        /* A10: members or weights have changed */
    uint32_t max_moves; /* 0: no limit */
    dv_balance_result result;
} deal;

static bool has_changed(const dv_step *s) {
    uint32_t changes = UINT32_C(1) << DV_PLAN_JOIN | UINT32_C(1) << DV_PLAN_DRAIN | UINT32_C(1) << DV_PLAN_WEIGHT;
    return (s->reasons & changes) != 0;
}

/* Returns whether A6 to A8 alone can deal: items are counted, and each may go to anybody. */
static bool is_plain(const deal *d) {
    const dv_plan *plan = d->plan;
    if (!plan->header.is_balanced) return true;
    bool plain = !d->by_load && !dv_wishes_need_tags(plan->wishes);
    for (size_t n = 0; plain && n < plan->member_count; n++) plain = plan->members[n].cap == 0;
    return plain;
}

static int assign_plainly(const deal *d, dv_plan_table *t) {
    divvy_sticky_options options = DIVVY_STICKY_OPTIONS_INIT;
    options.max_moves = d->max_moves;
    options.spread_zones = 1;
    options.keep_all = d->is_open;
    int error =
        divvy_assign_sticky(t->members, t->member_count, t->items, t->item_count, t->owners, &options, t->owners);
    assert(error == 0 || error == DIVVY_ENOMEM);
    return error;
}

/* D50: returns how many items a deal may take from members, 0: as many as it takes. */
static uint32_t moves_allowed(const deal *d, bool begins) {
    uint32_t set = d->plan->header.options.max_moves;
    if (set > 0 || !d->by_load || begins) return set;
    size_t part = d->plan->set->count / ROUND_PART;
    return part > DV_PLAN_MOVED_MAX ? DV_PLAN_MOVED_MAX : part > 0 ? (uint32_t)part : 1;
}

/* Deals what lies there, and lays the outcome there for a deal after it. */
static int deal_balanced(deal *d, dv_plan_table *t, dv_plan_balance *b, bool begins) {
    const dv_balance_options options = {
        .by_count = !d->by_load,
        .keep_all = d->is_open,
        .begins = begins,
        .max_moves = d->max_moves,
        .imbalance = dv_wishes_number(d->plan->wishes, "imbalance-max", imbalance_usual, 100),
    };
    int error = dv_balance_deal(b->members, t->member_count, b->items, t->item_count, &options, t->owners, &d->result);
    for (size_t n = 0; error == 0 && n < t->item_count; n++) b->items[n].owner = t->owners[n];
    return error;
}

/* D20: a deal may leave to the next one what the items that it gave out have made possible. That one is taken at once,
 * so that the step has nothing more to do in its own result, unless what it took is a round. */
static int assign_balanced(deal *d, dv_plan_table *t) {
    enum { DEALS_MOST = 4 };
    dv_plan_balance b;
    int error = dv_plan_balance_lay(&b, t, d->plan, d->holds) ? deal_balanced(d, t, &b, d->begins) : DIVVY_ENOMEM;
    bool is_round = d->is_open || (d->max_moves > 0 && d->result.moves > 0);
    size_t by_load = d->result.moves_by_load;
    for (int deals = 1; error == 0 && !is_round && deals < DEALS_MOST; deals++) {
        uint32_t most = d->max_moves;
        d->max_moves = moves_allowed(d, false);
        error = deal_balanced(d, t, &b, false);
        is_round = d->max_moves > 0 && d->result.moves > 0;
        if (!is_round) d->max_moves = most;
        by_load += d->result.moves_by_load;
        if (d->result.moves == 0) break;
    }
    d->result.moves_by_load = by_load;
    dv_plan_balance_free(&b);
    return error;
}

/* Deals once, and leaves the outcome in the table. */
static int deal_into(deal *d, dv_plan_table *t, bool absent_too) {
    bool plain = is_plain(d);
    if (!dv_plan_table_lay(t, d->plan, absent_too, d->holds, plain)) return DIVVY_ENOMEM;
    return plain ? assign_plainly(d, t) : assign_balanced(d, t);
}

/* D18: returns in *balanced whether no item would move were the absent here. Without them the shares of the others may
 * round otherwise, so that restarts would move items. */
static int balanced_with_absent(const deal *d, bool *balanced) {
    deal rehearsal = *d;
    rehearsal.max_moves = 0;
    rehearsal.is_open = false;
    dv_plan_table t;
    int error = deal_into(&rehearsal, &t, true);
    *balanced = error == 0 && !dv_plan_table_differs(&t, d->plan);
    dv_plan_table_free(&t);
    return error;
}

/* D19: lists in the plan the items that are about to get another owner. */
static int list_moved(const dv_plan_table *t, dv_plan *plan) {
    uint32_t *moved = malloc(DV_PLAN_MOVED_MAX * sizeof *moved);
    if (moved == NULL) return DIVVY_ENOMEM;
    free(plan->moved);
    plan->moved = moved;
    assert(plan->moved_count == 0);
    for (size_t n = 0; n < t->item_count && plan->moved_count < DV_PLAN_MOVED_MAX; n++) {
        uint32_t before = plan->owners[t->places[n]];
        if (before != DV_PLAN_NO_SLOT && before != dv_plan_table_owner(t, n)) moved[plan->moved_count++] = t->places[n];
    }
    return 0;
}

/* Gives items new owners where it must; while the plan lists moved items, only those that have none. */
static int deal_out(deal *d) {
    dv_plan *plan = d->plan;
    bool any_takes_part = false, any_is_absent = false;
    for (size_t m = 0; m < plan->member_count; m++) {
        any_takes_part |= dv_step_takes_part(&plan->members[m], false);
        any_is_absent |= plan->members[m].absent != 0;
    }
    if (!any_takes_part) return 0; /* what has no owner waits */
    d->max_moves = moves_allowed(d, d->begins);
    if (any_is_absent) {
        bool balanced;
        int error = balanced_with_absent(d, &balanced);
        if (error != 0 || balanced) return error;
    }
    dv_plan_table t;
    int error = deal_into(d, &t, false);
    if (error == 0 && !d->is_open && d->max_moves > 0) error = list_moved(&t, plan);
    for (size_t n = 0; error == 0 && n < t.item_count; n++) plan->owners[t.places[n]] = dv_plan_table_owner(&t, n);
    dv_plan_table_free(&t);
    return error;
}

/* ---- D50: loads that come ---- */

/* Returns the plan's loads with what a report brings, not shared yet; or NULL. Another unit takes the place of all. */
static dv_loads *merge(const dv_loads *known, const dv_loads *report) {
    dv_loads *merged = dv_loads_make(report->unit, report->count);
    if (merged == NULL) return NULL;
    bool same_unit = known != NULL && strcmp(known->unit, report->unit) == 0;
    assert(!same_unit || known->count == report->count);
    for (size_t i = 0; i < report->count; i++) {
        merged->classes[i] = report->classes[i];
        if (same_unit && report->classes[i] == DV_CLASS_NONE) merged->classes[i] = known->classes[i];
    }
    for (size_t g = 0; same_unit && g < known->giver_count; g++) {
        const dv_load_giver *giver = &known->givers[g];
        if (dv_loads_add_giver(merged, giver->from, giver->permille, giver->items, giver->count)) continue;
        dv_loads_unref(merged);
        return NULL;
    }
    return merged;
}

/* Returns in *differs whether a member's load by these loads is another than by the plan's, by more than the tenth of a
 * share. */
static int drifts(const deal *d, dv_loads *loads, bool *differs) {
    dv_plan *plan = d->plan;
    dv_loads *own = plan->loads;
    double *now = dv_plan_shares(plan), *then = NULL;
    plan->loads = loads;
    then = dv_plan_shares(plan);
    plan->loads = own;
    *differs = false;
    for (size_t n = 0; now != NULL && then != NULL && n < plan->member_count; n++) {
        double difference = now[n] - then[n];
        *differs = *differs || difference > 0.1 || difference < -0.1;
    }
    int error = now != NULL && then != NULL ? 0 : DIVVY_ENOMEM;
    free(now);
    free(then);
    return error;
}

/* Takes over the loads of the events. Returns in *before those of the plan, for the caller to release. */
static int take_loads(dv_step *s, deal *d, dv_loads **before) {
    dv_plan *plan = s->next;
    dv_loads *report = s->events->loads;
    *before = dv_loads_ref(plan->loads);
    bool taken = report != NULL && plan->header.is_balanced && !d->is_open && report->count == plan->set->count;
    if (s->events->loads_of != NULL) taken = taken && dv_plan_set_equal(s->events->loads_of, plan->set);
    if (!taken) return 0;
    dv_loads *merged = merge(plan->loads, report);
    if (merged == NULL) return DIVVY_ENOMEM;
    dv_loads_unref(plan->loads);
    plan->loads = merged;
    return 0;
}

/* Returns whether a twentieth of the items, or more, has loads that were not known before. */
static bool knows_more(const dv_loads *before, const dv_loads *now) {
    size_t count = 0;
    for (size_t i = 0; i < now->count; i++)
        count += before->classes[i] == DV_CLASS_NONE && now->classes[i] != DV_CLASS_NONE;
    return count > 0 && count * 20 >= now->count;
}

/* Loads alone are worth a plan if items move for them, if they are the first, if many are, or if they drift. */
static int judge_loads(dv_step *s, deal *d, dv_loads *before) {
    dv_plan *plan = s->next;
    if (plan->loads == before || memcmp(d->before, plan->owners, plan->set->count * sizeof *d->before) != 0) {
        if (plan->loads != before) dv_step_note(s, DV_PLAN_LOAD);
        return 0;
    }
    bool worth = before == NULL || strcmp(before->unit, plan->loads->unit) != 0 || s->reasons != 0 ||
                 knows_more(before, plan->loads);
    int error = worth ? 0 : drifts(d, before, &worth);
    if (error != 0) return error;
    if (worth) {
        dv_step_note(s, DV_PLAN_LOAD);
        return 0;
    }
    dv_loads_unref(plan->loads);
    plan->loads = dv_loads_ref(before);
    return 0;
}

/* ---- what moved for load ---- */

/* A copy of the plan's loads without givers, not shared. */
static dv_loads *loads_alone(const dv_loads *loads) {
    dv_loads *copy = dv_loads_make(loads->unit, loads->count);
    if (copy != NULL) memcpy(copy->classes, loads->classes, loads->count);
    return copy;
}

/* The items that moved away from members, by slot. */
typedef struct {
    uint32_t *items;
    size_t *first; /* where a slot's items begin; one more, their end */
} gifts;

static bool gave(const deal *d, size_t i) {
    uint32_t owner = d->plan->owners[i];
    return d->before[i] != DV_PLAN_NO_SLOT && owner != DV_PLAN_NO_SLOT && owner != d->before[i];
}

/* Counted one place further on, each sum is where the items of a slot begin. Putting them there moves it to their
 * end. */
static bool find_gifts(const deal *d, gifts *g) {
    size_t count = d->plan->set->count;
    *g = (gifts){.items = malloc((count + 1) * sizeof *g->items), .first = calloc(DV_PLAN_SLOTS + 2, sizeof *g->first)};
    if (g->items == NULL || g->first == NULL) return false;
    for (size_t i = 0; i < count; i++) {
        if (gave(d, i)) g->first[d->before[i] + 2]++;
    }
    for (size_t slot = 0; slot < DV_PLAN_SLOTS; slot++) g->first[slot + 2] += g->first[slot + 1];
    for (size_t i = 0; i < count; i++) {
        if (gave(d, i)) g->items[g->first[d->before[i] + 1]++] = (uint32_t)i;
    }
    return true;
}

/* Returns the member that had the least of its share among those that got items, or NULL. */
static const dv_plan_member *find_emptiest(const deal *d, const double *shares, double *share) {
    const dv_plan *plan = d->plan;
    const dv_plan_member *emptiest = NULL;
    for (size_t i = 0; i < plan->set->count; i++) {
        if (!gave(d, i)) continue;
        const dv_plan_member *m = dv_plan_member_at(plan, plan->owners[i]);
        if (emptiest != NULL && shares[m - plan->members] >= *share) continue;
        emptiest = m;
        *share = shares[m - plan->members];
    }
    return emptiest;
}

/* Adds those who gave for load, by their shares before, and tells of the fullest. Returns false: out of memory. */
static bool add_givers(deal *d, dv_loads *loads, const gifts *g, const double *shares) {
    dv_plan *plan = d->plan;
    const dv_plan_member *fullest = NULL;
    size_t moved = 0;
    double worst = 0;
    for (size_t n = 0; n < plan->member_count; n++) {
        const dv_plan_member *m = &plan->members[n];
        size_t count = g->first[m->slot + 1] - g->first[m->slot];
        if (count == 0 || !dv_step_takes_part(m, false) || m->weight == 0) continue;
        double permille = shares[n] * 1000 < DV_LOAD_PERMILLE_MAX ? shares[n] * 1000 : DV_LOAD_PERMILLE_MAX;
        const uint32_t *items = g->items + g->first[m->slot];
        if (!dv_loads_add_giver(loads, dv_plan_identifier(m), (uint32_t)permille, items, count)) return false;
        moved += count;
        if (fullest == NULL || shares[n] > worst) fullest = m;
        if (fullest == m) worst = shares[n];
    }
    bool names_fullest = fullest == NULL || worst > 1 + imbalance_usual; /* else an empty member is why */
    const dv_plan_member *emptiest = names_fullest ? NULL : find_emptiest(d, shares, &worst);
    if (emptiest != NULL) fullest = emptiest;
    if (fullest != NULL && plan->told[0] == '\0')
        snprintf(plan->told, sizeof plan->told, "%zu item%s moved for load: %.100s was at %.2f of its share", moved,
                 moved == 1 ? "" : "s", dv_plan_identifier(fullest), worst);
    return true;
}

/* D49: notes who gave items for load. */
static int tell_givers(deal *d, const double *shares) {
    gifts g;
    dv_loads *loads = loads_alone(d->plan->loads);
    bool complete = find_gifts(d, &g) && loads != NULL && add_givers(d, loads, &g, shares);
    free(g.items);
    free(g.first);
    if (!complete) {
        dv_loads_unref(loads);
        return DIVVY_ENOMEM;
    }
    dv_loads_unref(d->plan->loads);
    d->plan->loads = loads;
    return 0;
}

static int run(dv_step *s, deal *d) {
    dv_plan *plan = s->next;
    dv_loads *before;
    double *shares = NULL;
    int error = take_loads(s, d, &before);
    d->by_load = plan->header.is_balanced && plan->loads != NULL;
    if (error == 0 && d->by_load && !d->begins && (shares = dv_plan_shares(plan)) == NULL) error = DIVVY_ENOMEM;
    if (error == 0) error = deal_out(d);
    if (error == 0) error = judge_loads(s, d, before);
    if (error == 0 && shares != NULL && d->result.moves_by_load > 0) error = tell_givers(d, shares);
    free(shares);
    dv_loads_unref(before);
    return error;
}

int dv_step_deal(dv_step *s) {
    dv_plan *plan = s->next;
    size_t count = plan->set->count;
    deal d = {.plan = plan, .begins = has_changed(s)};
    d.holds = calloc(count + 1, sizeof *d.holds);
    d.before = malloc((count + 1) * sizeof *d.before);
    int error = d.holds != NULL && d.before != NULL ? 0 : DIVVY_ENOMEM;
    if (error == 0 && plan->header.is_balanced) dv_step_place(plan, d.holds);
    keep_moved(s);
    d.is_open = plan->moved_count > 0;
    if (error == 0) memcpy(d.before, plan->owners, count * sizeof *d.before);
    if (error == 0) error = run(s, &d);
    plan->header.is_balanced = plan->header.is_balanced && dv_step_needs_balance(plan);
    free(d.holds);
    free(d.before);
    return error;
}

int dv_step_replace_loads(dv_plan *plan, const dv_plan_set *set) {
    const dv_loads *old = plan->loads;
    if (old == NULL) return 0;
    dv_loads *loads = dv_loads_make(old->unit, set->count);
    if (loads == NULL) return DIVVY_ENOMEM;
    size_t at = 0;
    for (size_t i = 0; i < set->count; i++) {
        int order = 1;
        while (at < plan->set->count && (order = strcmp(plan->set->names[at], set->names[i])) < 0) at++;
        if (at < plan->set->count && order == 0) loads->classes[i] = old->classes[at];
    }
    dv_loads_unref(plan->loads);
    plan->loads = loads;
    return 0;
}
