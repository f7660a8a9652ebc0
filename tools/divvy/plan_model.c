/* divvy plan: members that are made up, by any rule. SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <divvy/divvy.h>

#include "command.h"
#include "plan/member_data.h"
#include "plan_call.h"
#include "rehearsal.h"

static const char command[] = "plan";

/* ---- who there is ---- */

/* The first ones leave, and new ones come after the last. */
static int make_members(const dv_plan_call *o, dv_forecast *f) {
    size_t old = (size_t)o->members, all = old + (size_t)o->join;
    int error = dv_forecast_init(f, all, o->list.names, o->list.count);
    for (size_t m = 0; !error && m < all; m++) {
        dv_forecast_member *own = &f->members[m];
        own->joins = m >= old;
        own->leaves = m < (size_t)o->leave_count;
        own->is_static = true;
        own->weight_before = own->weight_after = DV_WEIGHT;
        if (asprintf(&own->name, "member-%zu", m + 1) < 0) own->name = NULL;
        own->key = own->name ? strdup(own->name) : NULL;
        if (!own->key) error = DIVVY_ENOMEM;
    }
    return error;
}

static dv_forecast_member *find_member(const dv_forecast *f, const char *name) {
    for (size_t m = 0; m < f->member_count; m++) {
        if (strcmp(f->members[m].name, name) == 0) return &f->members[m];
    }
    return NULL;
}

/* Returns 0, or the exit code when it was told what is wrong. */
static int set_weights(const dv_plan_call *o, dv_forecast *f) {
    uint64_t total = 0;
    for (size_t n = 0; n < o->wish_count; n++) {
        const dv_plan_wish *wish = &o->wishes[n];
        dv_forecast_member *own = find_member(f, wish->member);
        if (!own)
            return dv_command_misused(command, "--%s: there is no member \"%.100s\"; there are member-1 to %s",
                                      wish->option, wish->member, f->members[f->member_count - 1].name);
        if (own->leaves) return dv_command_misused(command, "--%s: %s leaves by --leave", wish->option, own->name);
        own->weight_after = wish->weight;
    }
    for (size_t m = 0; m < f->member_count; m++) total += f->members[m].leaves ? 0 : f->members[m].weight_after;
    if (total > 0) return 0;
    return dv_command_misused(command, "nobody would be left that weighs more than 0, to own the items");
}

/* ---- by the plan ---- */

static int add_node(dv_rehearsal *r, const dv_forecast_member *m) {
    return dv_rehearsal_add(r, &(dv_plan_node){.node = m->key,
                                               .identifier = m->key,
                                               .known = true,
                                               .is_static = true,
                                               .weight = m->joins ? m->weight_after : m->weight_before,
                                               .zone = "",
                                               .can_balance = true,
                                               .has_options = true,
                                               .options = r->options});
}

static int begin(dv_rehearsal *r, const dv_forecast *f) {
    int error = (r->set = dv_plan_set_make(f->items, f->item_count)) ? 0 : DIVVY_ENOMEM;
    for (size_t m = 0; !error && m < f->member_count; m++) {
        if (!f->members[m].joins) error = add_node(r, &f->members[m]);
    }
    return error ? error : dv_rehearsal_run(r);
}

/* Tells the members' loads, and lets them even out. */
static int load(dv_rehearsal *r, const dv_plan_call *o) {
    if (!o->loads) return 0;
    r->loads = dv_loads_make("load", o->list.count);
    if (!r->loads) return DIVVY_ENOMEM;
    for (size_t i = 0; i < o->list.count; i++) r->loads->classes[i] = dv_class_of(o->loads[i]);
    return dv_rehearsal_run(r);
}

static int change(dv_rehearsal *r, const dv_forecast *f) {
    int error = 0;
    for (size_t m = 0; !error && m < f->member_count; m++) {
        const dv_forecast_member *own = &f->members[m];
        if (own->joins) error = add_node(r, own);
        else if (own->leaves) error = dv_rehearsal_leave(r, true, own->key);
        else if (own->weight_after != own->weight_before) dv_rehearsal_weigh(r, true, own->key, own->weight_after);
    }
    return error ? error : dv_rehearsal_run(r);
}

static int by_plan(const dv_plan_call *o, dv_forecast *f) {
    f->max_moves = o->max_moves > 0 ? (uint32_t)o->max_moves : 0;
    dv_rehearsal r = {.options = {.max_moves = f->max_moves}};
    dv_plan *before = NULL;
    int error = begin(&r, f);
    if (!error) error = load(&r, o);
    if (!error) error = (before = dv_plan_copy(r.plan)) ? 0 : DIVVY_ENOMEM;
    if (!error) error = change(&r, f);
    if (!error) error = dv_rehearsal_tell(f, before, r.plan);
    f->rounds = r.rounds;
    dv_plan_free(before);
    dv_rehearsal_free(&r);
    return error;
}

/* ---- by the other rules ---- */

/* `previous` is what each item's owner was, of these members; UINT32_MAX: none. Items come in their order (A1). */
typedef int (*rule_fn)(const divvy_member *members, size_t member_count, const dv_forecast *f, const uint32_t *previous,
                       int items_order, uint32_t *owners);

static int by_rendezvous(const divvy_member *members, size_t member_count, const dv_forecast *f,
                         const uint32_t *previous, int items_order, uint32_t *owners) {
    (void)previous, (void)items_order;
    return divvy_assign_rendezvous(members, member_count, f->items, f->item_count, owners);
}

static int by_round_robin(const divvy_member *members, size_t member_count, const dv_forecast *f,
                          const uint32_t *previous, int items_order, uint32_t *owners) {
    (void)previous;
    return divvy_assign_round_robin_ordered(members, member_count, f->items, f->item_count, items_order, owners);
}

static int by_sticky(const divvy_member *members, size_t member_count, const dv_forecast *f, const uint32_t *previous,
                     int items_order, uint32_t *owners) {
    (void)items_order;
    return divvy_assign_sticky(members, member_count, f->items, f->item_count, previous, NULL, owners);
}

static const rule_fn rules[DV_BY_RULES] = {NULL, by_rendezvous, by_round_robin, by_sticky};
static const char *const names[DV_BY_RULES] = {"plan", "rendezvous", "round_robin", "sticky"};

/* Both assignments; indices of owners are among all members, as the first of those after the change is not the first of
 * all. */
static int by_rule(const dv_plan_call *o, dv_forecast *f) {
    size_t leave = (size_t)o->leave_count, old = (size_t)o->members;
    int order = o->items_order >= 0 ? o->items_order : DIVVY_ORDER_BYTES;
    divvy_member *members = calloc(f->member_count + 1, sizeof *members);
    uint32_t *previous = calloc(f->item_count + 1, sizeof *previous);
    int error = members && previous ? 0 : DIVVY_ENOMEM;
    for (size_t m = 0; !error && m < f->member_count; m++)
        members[m] = (divvy_member){.identifier = f->members[m].name, .weight = f->members[m].weight_before};
    if (!error) error = rules[o->assign](members, old, f, NULL, order, f->before);
    for (size_t i = 0; !error && i < f->item_count; i++)
        previous[i] = f->before[i] < leave ? UINT32_MAX : f->before[i] - (uint32_t)leave;
    for (size_t m = 0; !error && m < f->member_count; m++) members[m].weight = f->members[m].weight_after;
    if (!error) error = rules[o->assign](members + leave, f->member_count - leave, f, previous, order, f->after);
    for (size_t i = 0; !error && i < f->item_count; i++) f->after[i] += (uint32_t)leave;
    for (size_t i = 0; !error && i < f->item_count; i++) f->rounds |= f->before[i] != f->after[i];
    free(members);
    free(previous);
    return error;
}

/* ---- both ---- */

static int tell_error(const dv_plan_call *o, int error) {
    const char *why = divvy_strerror(error);
    if (error == DIVVY_EINVAL && o->items_order == DIVVY_ORDER_NUMERIC)
        why = "--items-order numeric: not all items are decimal numbers";
    if (error == DIVVY_ELIMIT) why = "there would be more members than a plan can have, which is 10000";
    return dv_command_failed("%s", why);
}

int dv_plan_model(const dv_plan_call *o, dv_forecast *f) {
    f->assign = names[o->assign];
    int error = make_members(o, f);
    if (error) return tell_error(o, error);
    int code = set_weights(o, f);
    if (code) return code;
    error = rules[o->assign] ? by_rule(o, f) : by_plan(o, f);
    if (!error) error = dv_forecast_count(f);
    return error ? tell_error(o, error) : 0;
}
