/* divvy plan: a live pool, by the plan that its members follow. SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <divvy/divvy.h>

#include "base/utf8.h"
#include "command.h"
#include "plan/member_name.h"
#include "plan_call.h"
#include "pool/whom.h"
#include "rehearsal.h"
#include "status_plan.h"
#include "znode/path.h"

enum { LISTED_MAX = 10 };

struct dv_plan_pool {
    const dv_plan_call *call;
    dv_pool_plan plan;
    dv_status status;
    dv_rehearsal rehearsal;
    dv_plan *before; /* what the plan leads to without the change */
};

/* ---- what is there ---- */

static int read_pool(dv_plan_pool *p) {
    dv_look *look = NULL;
    int code = dv_look_open(&look, &p->call->look, "plan", -1);
    if (code == 0 && dv_pool_plan_init(&p->plan, look, p->call->path) != 0) code = dv_command_out_of_memory();
    int error = code ? 0 : dv_look_at(look, dv_status_pool_read, &p->status);
    if (error) code = dv_look_failed(look, error);
    dv_look_close(look);
    return code;
}

/* Returns 0 where all members follow a plan that was read, else the exit code. */
static int check_pool(const dv_plan_pool *p) {
    const char *path = p->call->path;
    const dv_status *s = &p->status;
    if (!s->found) return dv_command_failed("there is no pool at %s: it has neither members nor locks", path);
    if (s->member_count == 0)
        return dv_command_failed("nobody is in the pool %s: there is nobody who follows a plan", path);
    for (size_t m = 0; m < s->member_count; m++) {
        const dv_status_member *own = &s->members[m];
        if (own->kazoo)
            return dv_command_failed("the pool %s follows no plan: its member %s is kazoo's", path, own->identifier);
        if (!own->follows)
            return dv_command_failed(
                "the pool %s follows no plan: its member %s is of an earlier release, or has a rule of its own", path,
                own->identifier);
    }
    switch (p->plan.memory.standing) {
    case DV_PLAN_NEWER:
        return dv_command_failed("a later release of divvy wrote the plan of %s; use the divvy of that release", path);
    case DV_PLAN_BROKEN: return dv_command_failed("the plan of %s is broken", path);
    case DV_PLAN_UNREAD: return dv_command_failed("the plan of %s may not be read", path);
    default: break;
    }
    return dv_status_plan(s) ? 0 : dv_command_failed("the members of %s have no plan yet", path);
}

/* D31: other names cannot stand in a plan. */
static bool can_stand_in_plan(const char *node) {
    return strlen(node) <= DV_PLAN_KEY_BYTES_MAX && dv_is_utf8(node);
}

static int add_live(dv_rehearsal *r, const dv_status_member *m) {
    if (!can_stand_in_plan(m->node)) return 0;
    char *copy = strdup(m->node);
    if (!copy) return DIVVY_ENOMEM;
    dv_member parsed = dv_member_parse(copy);
    dv_plan_node node = {.node = m->node,
                         .identifier = parsed.identifier,
                         .tag = parsed.set,
                         .known = true,
                         .is_static = m->is_static && *parsed.identifier,
                         .weight = m->weight,
                         .zone = m->zone,
                         .rejoin_delay_ms = m->rejoin_delay_ms,
                         .tags = m->tags,
                         .cap = m->cap,
                         .can_balance = m->can_balance,
                         .czxid = m->czxid,
                         .first_czxid = m->first_czxid,
                         .has_options = parsed.max_moves >= 0 && parsed.round_timeout_ms >= 0};
    if (node.has_options) node.options = (dv_plan_options){(uint32_t)parsed.max_moves, parsed.round_timeout_ms};
    int error = dv_rehearsal_add(r, &node);
    free(copy);
    return error;
}

/* Carries the plan to where it leads without any change. */
static int settle(dv_plan_pool *p, dv_forecast *f) {
    dv_rehearsal *r = &p->rehearsal;
    r->plan = dv_plan_copy(dv_status_plan(&p->status));
    if (!r->plan) return DIVVY_ENOMEM;
    r->plan->mzxid = 0;
    r->pzxid = r->plan->header.pzxid;
    f->path = p->call->path;
    f->generation = r->plan->header.generation;
    int error = 0;
    for (size_t m = 0; !error && m < p->status.member_count; m++) error = add_live(r, &p->status.members[m]);
    if (!error) error = dv_rehearsal_run(r);
    if (error) return error;
    f->unsettled = r->step_count > 0;
    f->max_moves = r->plan->header.options.max_moves;
    p->before = dv_plan_copy(r->plan);
    return p->before ? 0 : DIVVY_ENOMEM;
}

/* ---- who is meant ---- */

static int by_name(const void *left, const void *right) {
    const dv_forecast_member *a = left, *b = right;
    int order = strcmp(a->name, b->name);
    return order ? order : strcmp(a->key, b->key);
}

static bool is_taken(const dv_forecast *f, const char *name) {
    for (size_t m = 0; m < f->member_count; m++) {
        const dv_forecast_member *own = &f->members[m];
        if ((own->name && strcmp(own->name, name) == 0) || (own->key && strcmp(own->key, name) == 0)) return true;
    }
    return false;
}

/* Names that nobody has yet. */
static int name_new(const dv_plan_pool *p, dv_forecast *f, size_t old) {
    for (size_t m = old, number = 1; m < f->member_count; number++) {
        char *name = NULL;
        if (asprintf(&name, "new-%zu", number) < 0) return DIVVY_ENOMEM;
        if (is_taken(f, name)) {
            free(name);
            continue;
        }
        dv_forecast_member *own = &f->members[m++];
        own->name = name;
        own->key = strdup(name);
        own->zone = strdup(p->call->zone ? p->call->zone : "");
        own->is_static = own->joins = true;
        own->weight_after = DV_WEIGHT;
        if (!own->key || !own->zone) return DIVVY_ENOMEM;
    }
    return 0;
}

/* Those of the plan, as `divvy status` calls and sorts them, then those that join. */
static int make_members(const dv_plan_pool *p, dv_forecast *f) {
    const dv_plan *plan = p->before;
    size_t old = 0, at = 0;
    for (size_t n = 0; n < plan->member_count; n++) old += plan->members[n].leaving[0] == '\0';
    int error = dv_forecast_init(f, old + (size_t)p->call->join, plan->set->names, plan->set->count);
    for (size_t n = 0; !error && n < plan->member_count; n++) {
        const dv_plan_member *from = &plan->members[n];
        if (from->leaving[0]) continue;
        dv_forecast_member *own = &f->members[at++];
        own->name = strdup(dv_whom_identifier(from));
        own->key = strdup(from->key);
        own->is_static = from->is_static;
        own->weight_before = own->weight_after = from->weight;
        if (!own->name || !own->key) error = DIVVY_ENOMEM;
    }
    if (!error && old > 0) qsort(f->members, old, sizeof *f->members, by_name);
    return error ? error : name_new(p, f, old);
}

/* As many names as fit a line: all of them, or the keys of those who have this one. */
static void list_members(const dv_forecast *f, const char *name, char *text, size_t bytes) {
    size_t listed = 0;
    for (size_t m = 0; m < f->member_count && listed <= LISTED_MAX; m++) {
        const dv_forecast_member *own = &f->members[m];
        if (name ? strcmp(own->name, name) != 0 : own->joins) continue;
        size_t at = strlen(text);
        snprintf(text + at, bytes - at, "%s%s", listed ? ", " : "",
                 listed == LISTED_MAX ? "..."
                 : name               ? own->key
                                      : own->name);
        listed++;
    }
}

/* Returns the member by its name, or by its key as a whole; NULL: it was told why not. */
static dv_forecast_member *find(const dv_plan_pool *p, const dv_forecast *f, const char *name) {
    dv_forecast_member *found = NULL;
    char names[1024] = "";
    size_t count = 0;
    for (size_t m = 0; m < f->member_count; m++) {
        dv_forecast_member *own = &f->members[m];
        if (!own->is_static && strcmp(own->key, name) == 0) return own;
        if (strcmp(own->name, name) != 0) continue;
        found = own;
        count++;
    }
    if (count == 1) return found;
    list_members(f, count ? name : NULL, names, sizeof names);
    if (count == 0) dv_command_say("the pool %s has no member %s; there are: %s", p->call->path, name, names);
    else dv_command_say("several members of the pool %s are %s; say which by its node: %s", p->call->path, name, names);
    return NULL;
}

/* Takes up --leave, --drain and --weight. Returns 0, or the exit code. */
static int choose(const dv_plan_pool *p, dv_forecast *f) {
    const dv_plan_call *o = p->call;
    for (size_t n = 0; n < o->leave.count; n++) {
        dv_forecast_member *own = find(p, f, o->leave.texts[n]);
        if (!own) return DV_EXIT_FAILED;
        if (own->joins) return dv_command_failed("--leave: %s only joins by --join", own->name);
        if (own->leaves) return dv_command_failed("--leave: %s is named twice", own->name);
        own->leaves = true;
    }
    for (size_t n = 0; n < o->wish_count; n++) {
        dv_forecast_member *own = find(p, f, o->wishes[n].member);
        if (!own) return DV_EXIT_FAILED;
        if (own->leaves) return dv_command_failed("--%s: %s leaves by --leave", o->wishes[n].option, own->name);
        own->weight_after = o->wishes[n].weight;
    }
    return 0;
}

/* Looks whether somebody is left: the absent take nothing over. Returns 0, or the exit code. */
static int check_rest(const dv_plan_pool *p, const dv_forecast *f) {
    size_t left = 0;
    bool changed = false;
    uint64_t total = 0;
    for (size_t m = 0; m < f->member_count; m++) {
        const dv_forecast_member *own = &f->members[m];
        const dv_plan_member *entry = own->joins ? NULL : dv_plan_find(p->before, own->is_static, own->key);
        changed = changed || own->leaves || own->joins || own->weight_after != own->weight_before;
        if (own->leaves || (entry && entry->absent)) continue;
        left++;
        total += own->weight_after;
    }
    if (!changed || total > 0) return 0;
    if (left == 0) return dv_command_failed("nobody would be left in the pool %s to own the items", p->call->path);
    return dv_command_failed("nobody would be left in the pool %s that weighs more than 0; divvy drain refuses that",
                             p->call->path);
}

/* Warns where that matters: a zone has as many items as any other, also that of members without one. */
static void warn_of_zones(const dv_plan_pool *p, const dv_forecast *f) {
    bool zones = false;
    for (size_t n = 0; n < p->before->member_count; n++) zones = zones || p->before->members[n].zone[0];
    if (zones && p->call->join && !p->call->zone)
        dv_command_say("warning: the members of %s have zones, and those that join have none; give --zone", f->path);
}

/* ---- the change ---- */

static int change(dv_plan_pool *p, const dv_forecast *f) {
    dv_rehearsal *r = &p->rehearsal;
    const dv_plan_options options = p->before->header.options;
    int error = 0;
    for (size_t m = 0; !error && m < f->member_count; m++) {
        const dv_forecast_member *own = &f->members[m];
        if (own->leaves) error = dv_rehearsal_leave(r, own->is_static, own->key);
        else if (own->joins)
            error = dv_rehearsal_add(r, &(dv_plan_node){.node = own->key,
                                                        .identifier = own->key,
                                                        .tag = p->before->header.tag,
                                                        .known = true,
                                                        .is_static = true,
                                                        .weight = own->weight_after,
                                                        .zone = own->zone,
                                                        .tags = p->call->tags_made,
                                                        .cap = p->call->cap > 0 ? (uint32_t)p->call->cap : 0,
                                                        .can_balance = true,
                                                        .czxid = 1,
                                                        .has_options = true,
                                                        .options = options});
        else if (own->weight_after != own->weight_before)
            dv_rehearsal_weigh(r, own->is_static, own->key, own->weight_after);
    }
    return error ? error : dv_rehearsal_run(r);
}

/* Returns 0, or the exit code. */
static int tell_error(int error) {
    if (!error) return 0;
    return dv_command_failed("%s", error == DIVVY_ELIMIT
                                       ? "there would be more members than a plan can have, which is 10000"
                                       : divvy_strerror(error));
}

static int forecast(dv_plan_pool *p, dv_forecast *f) {
    f->assign = "plan";
    int code = tell_error(settle(p, f));
    if (!code) code = tell_error(make_members(p, f));
    if (!code) code = choose(p, f);
    if (!code) code = check_rest(p, f);
    if (code) return code;
    warn_of_zones(p, f);
    int error = change(p, f);
    f->rounds = p->rehearsal.rounds;
    if (!error) error = dv_rehearsal_tell(f, p->before, p->rehearsal.plan);
    if (!error) error = dv_forecast_count(f);
    return tell_error(error);
}

int dv_plan_pool_forecast(const dv_plan_call *call, dv_plan_pool **out, dv_forecast *f) {
    dv_plan_pool *p = *out = calloc(1, sizeof *p);
    if (!p) return dv_command_out_of_memory();
    p->call = call;
    p->status = (dv_status){.path = call->path, .only_expected = true, .plan = &p->plan};
    int code = read_pool(p);
    if (!code) code = check_pool(p);
    return code ? code : forecast(p, f);
}

void dv_plan_pool_free(dv_plan_pool *p) {
    if (!p) return;
    dv_plan_free(p->before);
    dv_rehearsal_free(&p->rehearsal);
    dv_status_pool_clear(&p->status);
    dv_pool_plan_free(&p->plan);
    free(p);
}
