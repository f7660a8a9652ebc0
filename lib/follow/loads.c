/* The reading of what members report of their loads: docs/protocol.md, D47. SPDX-License-Identifier: Apache-2.0
 *
 * The first of the row lists P/loads in each interval, and reads what is there. What comes of it is an event of the
 * step, which decides whether anything is to be written. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "follow/follower.h"
#include "plan/load_report.h"
#include "recipe/fetch.h"
#include "znode/path.h"

enum {
    HALF_LIFE_MS = 60000,
    REST_MS = 3 * HALF_LIFE_MS, /* after a plan that moved items for load */
    WINDOW = 8                  /* answers of 64 KiB at a time */
};

bool dv_follow_init_loads(dv_follower *f) {
    f->loads.directory = dv_path_join(f->config.path, "loads");
    return f->loads.directory != NULL;
}

/* ---- the event ---- */

static void drop_event(dv_follow_loads *l) {
    dv_loads_unref(l->event);
    l->event = NULL;
}

/* A plan of other items is no longer what it was made for; nor is one that has loads what a member asked for. */
static void forget_outdated(dv_follower *f) {
    dv_follow_loads *l = &f->loads;
    const dv_plan *plan = dv_follow_plan(f);
    if (!l->event || !plan) return;
    if (!dv_plan_set_equal(plan->set, l->set) || (l->event_asks && plan->loads)) drop_event(l);
}

/* Takes over `event`, of this set, and has it written if the step finds that it is worth a plan. */
static void offer(dv_follower *f, dv_loads *event, dv_plan_set *set, bool asks, int64_t now) {
    dv_follow_loads *l = &f->loads;
    drop_event(l);
    dv_plan_set_ref(set);
    dv_plan_set_unref(l->set);
    l->set = set;
    l->event = event;
    l->event_asks = asks;
    dv_follow_restart_rank(f);
    f->look(f, DV_LOOK_WRITES, now);
}

void dv_follow_used_loads(dv_follower *f, const dv_follow_changes *changes) {
    if (changes->events.loads && changes->events.loads == f->loads.event) drop_event(&f->loads);
}

/* D47: a pool knows by its plan that loads are reported. Without this nobody would look for them. */
static void ask_for_loads(dv_follower *f, int64_t now) {
    const dv_plan *plan = dv_follow_plan(f);
    if (!f->loads.reports || f->loads.event || !f->party.in_force || f->memory.standing != DV_PLAN_GOOD || !plan)
        return;
    if (plan->loads || !dv_plan_all_balance(dv_roster_party(f->roster))) return;
    dv_loads *nothing = dv_loads_make(f->config.load_unit, plan->set->count);
    if (nothing) offer(f, nothing, plan->set, true, now);
    else dv_client_again(f->config.client);
}

void dv_follow_report_loads(dv_follower *f, int64_t now) {
    if (!f) return;
    f->loads.reports = true;
    if (!f->is_stopped) ask_for_loads(f, now);
}

/* ---- one reading ---- */

/* Reports as they come in. */
typedef struct dv_load_reading {
    dv_follower *f;
    dv_plan_set *set;
    dv_loads *loads;                             /* in the pool's unit */
    char other_unit[DV_LOAD_UNIT_BYTES_MAX + 1]; /* the first other one */
    size_t taken, others;                        /* reports in the pool's unit, and in others */
    double total;
    char odd[96]; /* the identifier of a member whose report is passed over, and why */
    const char *why;
} reading;

static void free_reading(reading *r) {
    dv_plan_set_unref(r->set);
    dv_loads_unref(r->loads);
    free(r);
}

static void note_odd(reading *r, size_t node, const char *why) {
    if (r->why) return;
    snprintf(r->odd, sizeof r->odd, "%s", dv_roster_party(r->f->roster)->nodes[node].identifier);
    r->why = why;
}

static void take_report(reading *r, const dv_load_report *report, size_t node) {
    if (strcmp(report->unit, r->loads->unit) != 0) {
        if (r->others++ == 0) memcpy(r->other_unit, report->unit, sizeof r->other_unit);
        note_odd(r, node, "another unit");
        return;
    }
    r->taken++;
    r->total += dv_class_size(report->total);
    if (!dv_load_report_is_of(report, r->set)) return; /* It follows soon, when that member has read the plan. */
    for (size_t i = 0; i < report->count; i++) {
        uint8_t *known = &r->loads->classes[report->items[i].item], class = report->items[i].class;
        if (*known == DV_CLASS_NONE || class > *known) *known = class;
    }
}

static int on_report(void *context, const char *path, const dv_reply *reply, int64_t now) {
    (void)now;
    reading *r = context;
    dv_load_report report;
    size_t node = dv_roster_find(r->f->roster, dv_path_last(path));
    if (reply->error == DIVVY_ENOENT || node == SIZE_MAX) return 0;
    if (reply->error == DIVVY_EACCES) note_odd(r, node, "may not be read");
    if (reply->error) return reply->error == DIVVY_EACCES ? 0 : reply->error;
    int error = dv_load_report_parse(&report, reply->data, reply->data_bytes, NULL);
    if (error == DIVVY_EPROTO) note_odd(r, node, "broken, or of a later release");
    if (error) return error == DIVVY_EPROTO ? 0 : error;
    take_report(r, &report, node);
    dv_load_report_clear(&report);
    return 0;
}

/* ---- what it comes to ---- */

static void warn_of_odd(dv_follower *f, const reading *r) {
    if (!r->why) return;
    dv_follow_warn(f, DIVVY_WARN_LOAD_UNIT,
                   "%s: the loads that member %s tells are passed over: %s (the pool's loads are in \"%s\"%s%s%s); "
                   "give all members the same load_unit",
                   f->loads.directory, r->odd, r->why, r->loads->unit,
                   r->others ? ", and others tell theirs in \"" : "", r->other_unit, r->others ? "\"" : "");
}

static size_t count_live(const dv_follower *f) {
    const dv_plan_party *party = dv_roster_party(f->roster);
    size_t count = 0;
    for (size_t n = 0; n < party->count; n++) count += !party->nodes[n].is_ghost;
    return count;
}

/* Returns whether they say the same as those that were looked at last, of the same plan. */
static bool is_known(const dv_follower *f, const dv_loads *loads) {
    const dv_follow_loads *l = &f->loads;
    return l->last && l->last_mzxid == f->memory.mzxid && dv_loads_equal(l->last, loads);
}

/* Members who all tell another unit than the plan's have been changed over: theirs counts from the next reading on. */
static void choose_unit(dv_follow_loads *l, const reading *r) {
    if (r->taken == 0 && r->others > 0) memcpy(l->unit, r->other_unit, sizeof l->unit);
    else l->unit[0] = '\0';
}

static void judge(dv_follower *f, reading *r, int64_t now) {
    dv_follow_loads *l = &f->loads;
    const dv_plan *plan = dv_follow_plan(f);
    warn_of_odd(f, r);
    choose_unit(l, r);
    if (!plan || !dv_plan_set_equal(plan->set, r->set) || r->taken == 0) return;
    if (r->total < f->config.load_floor * (double)count_live(f) || is_known(f, r->loads)) return;
    dv_loads_unref(l->last);
    l->last = dv_loads_ref(r->loads);
    l->last_mzxid = f->memory.mzxid;
    dv_follow_tell_heavy(f, r->loads);
    offer(f, dv_loads_ref(r->loads), r->set, false, now);
}

/* ---- reading ---- */

static void set_timer(dv_follower *f, int64_t now) {
    dv_timer_set(f->config.client, &f->loads.timer, now + f->config.load_interval_ms);
}

static void end_reading(dv_follower *f, int error, int64_t now) {
    dv_follow_loads *l = &f->loads;
    reading *r = l->reading;
    l->reading = NULL;
    if (!f->is_stopped && l->timer.link) {
        if (error == 0) judge(f, r, now);
        if (error == DIVVY_EACCES)
            dv_follow_warn(f, DIVVY_WARN_LOAD_UNIT,
                           "%s may not be read by member %s, the first of the pool: nothing is moved for load until "
                           "another one is the first",
                           l->directory, f->config.identifier);
    }
    free_reading(r);
    dv_follow_end(f, now);
}

static void on_read(void *context, int error, int64_t now) {
    end_reading(((const reading *)context)->f, error, now);
}

static void on_listed(void *context, const dv_reply *reply, int64_t now) {
    static const dv_fetch_kind kind = {DV_GET, WINDOW, on_report, on_read};
    reading *r = context;
    dv_follower *f = r->f;
    dv_fetch *fetch;
    size_t count = 0;
    const char **names = (const char **)(uintptr_t)malloc((reply->child_count + 1) * sizeof *names);
    for (size_t i = 0; names && reply->error == 0 && i < reply->child_count; i++) {
        if (dv_roster_find(f->roster, reply->children[i]) != SIZE_MAX) names[count++] = reply->children[i];
    }
    int error = names ? reply->error : DIVVY_ENOMEM;
    if (error == 0 && count > 0)
        error = dv_fetch_start(&fetch, f->config.client, &kind, f->loads.directory, names, count, r);
    free((void *)names);
    if (error || count == 0) end_reading(f, error, now);
}

static void start_reading(dv_follower *f) {
    const dv_plan *plan = dv_follow_plan(f);
    const char *unit = f->loads.unit[0] ? f->loads.unit : plan->loads->unit;
    reading *r = calloc(1, sizeof *r);
    if (r) *r = (reading){.f = f, .set = dv_plan_set_ref(plan->set), .loads = dv_loads_make(unit, plan->set->count)};
    if (r && r->loads && dv_znode_children(f->config.client->znode, f->loads.directory, NULL, on_listed, r) == 0) {
        f->loads.reading = r;
        dv_follow_begin(f);
    } else if (r) {
        free_reading(r);
    }
}

/* D47: returns whether that is ours to do. */
static bool is_reader(const dv_follower *f) {
    const dv_plan *plan = dv_follow_plan(f);
    return f->party.in_force && !f->fence.is_unknown && f->memory.standing == DV_PLAN_GOOD && plan && plan->loads &&
           plan->header.is_balanced && dv_follow_is_first(f);
}

/* D47: what was moved shows in what is reported only after a while. */
static bool rests(const dv_follower *f, int64_t now) {
    const dv_plan *plan = dv_follow_plan(f);
    bool is_round = plan->moved_count > 0 && strcmp(f->round.over, plan->header.guid) != 0;
    return is_round || now < f->loads.rest_until;
}

static void on_timer(dv_timer *timer, int64_t now) {
    dv_follower *f = DV_CONTAINER(timer, dv_follower, loads.timer);
    if (!is_reader(f)) return;
    set_timer(f, now);
    if (!rests(f, now) && !f->loads.reading && dv_client_connected(f->config.client)) start_reading(f);
}

/* A member whose loads are of no use is told so itself, not only the first of the row. */
static void warn_of_own_unit(dv_follower *f, const dv_plan *plan) {
    dv_follow_loads *l = &f->loads;
    bool differs = l->reports && plan->loads && strcmp(plan->loads->unit, f->config.load_unit) != 0;
    if (differs && !l->unit_told)
        dv_follow_warn(
            f, DIVVY_WARN_LOAD_UNIT,
            "%s: the pool's loads are in \"%s\", and those of member %s are in \"%s\", so they do not count: "
            "give all members the same unit, and the same way to measure",
            l->directory, plan->loads->unit, f->config.identifier, f->config.load_unit);
    l->unit_told = differs;
}

/* D47: notes a plan that moved items for load. */
static void note_plan(dv_follower *f, int64_t now) {
    dv_follow_loads *l = &f->loads;
    const dv_plan *plan = dv_follow_plan(f);
    if (!plan || l->seen_mzxid == f->memory.mzxid) return;
    l->seen_mzxid = f->memory.mzxid;
    const dv_loads *before = f->memory.before ? f->memory.before->loads : NULL;
    bool moved = plan->loads && plan->loads->giver_count > 0 && !dv_loads_same_givers(plan->loads, before);
    if (moved) l->rest_until = now + REST_MS; /* by a round, too */
    warn_of_own_unit(f, plan);
}

void dv_follow_watch_loads(dv_follower *f, int64_t now) {
    note_plan(f, now);
    forget_outdated(f);
    f->loads.timer.fire = on_timer;
    if (!is_reader(f)) dv_timer_cancel(&f->loads.timer);
    else if (!f->loads.timer.link) set_timer(f, now);
    ask_for_loads(f, now);
}

void dv_follow_stop_loads(dv_follower *f) {
    dv_timer_cancel(&f->loads.timer);
    drop_event(&f->loads);
}

void dv_follow_free_loads(dv_follower *f) {
    dv_follow_loads *l = &f->loads;
    assert(!l->reading && !l->event);
    dv_loads_unref(l->last);
    dv_plan_set_unref(l->set);
    free(l->directory);
}
