/* Members that tell loads, have tags and caps, or are of an older release; and the reports at P/loads (D46, D47).
 * SPDX-License-Identifier: Apache-2.0
 *
 * Excused from the end of rounds (D47): pools where a load_floor, or a report in another unit, may hold readings up. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "operator.h"

enum { HALF_LIFE_MS = 60000, REST_MS = 3 * HALF_LIFE_MS, DRIFT_PARTS = 100, EPOCH_MS = 100000 };

static const char loads_path[] = "/pool/loads/";
static const char *const units[SIM_UNITS] = {"load", "bytes"};

static struct sim_operator *operator_of(const sim_world *w) {
    return w->plans_truth->hand;
}

/* ---- members ---- */

void sim_loads_configure(sim_member *m, sim_random random) {
    static const char *const tags[] = {"gpu", "ssd", "ssd,gpu", "gpu,other"};
    const sim_script *s = m->world->script;
    divvy_partitioner_config *c = &m->config;
    sim_random *r = &random;
    bool follows = c->assign == DIVVY_ASSIGN_AUTO || c->assign == DIVVY_ASSIGN_STICKY;
    if (!s->operated || !follows) return;
    m->is_older = s->older && sim_chance(r, 25);
    if (m->is_older) return;
    if (s->tags && sim_chance(r, 60)) c->tags = tags[sim_below(r, sizeof tags / sizeof *tags)];
    if (s->caps && sim_chance(r, 50)) c->item_cap = (size_t)sim_between(r, 1, (int64_t)s->items);
    if (!s->loads) return;
    m->tells_loads = sim_chance(r, 85);
    c->load_interval_ms = SIM_ONE_OF(r, 1000, 2000, 5000);
    if (sim_chance(r, 4)) c->load_unit = units[1];
    if (sim_chance(r, 4)) c->load_floor = 1;
}

/* Before its node is made: the library keeps the suffix, and reads it then. */
void sim_loads_begin(sim_member *m) {
    divvy_partitioner *p = m->partitioner;
    char *level = m->is_older ? strstr(p->member_suffix, "a=3") : NULL;
    if (!level) return;
    level[2] = p->ability[0] = '0' + DV_LEVEL_PLAN;
}

/* ---- loads ---- */

/* Some items are a thousand times as much as others. While faults go on loads change, and some readings are noise. */
static double load_of(const sim_world *w, size_t item, sim_random *r) {
    sim_random of_item = sim_random_of(w->script->seed * SIM_ITEMS_MAX + item, 24);
    int64_t epoch = w->healed ? 0 : (w->now_ms - w->began_ms) / EPOCH_MS;
    double load = (double)(1u << sim_below(&of_item, 10)) / 16;
    for (int64_t n = 0; n < epoch; n++) sim_draw(&of_item);
    if (sim_chance(&of_item, 30)) load *= (double)sim_between(&of_item, 0, 8) / 2;
    if (!w->healed && sim_chance(r, 30)) load *= (double)sim_between(r, 70, 130) / 100;
    return load;
}

void sim_loads_tell(sim_member *m) {
    enum { PERIOD_MS = 5000 };
    sim_world *w = m->world;
    if (!m->tells_loads || w->now_ms < m->loads_at) return;
    m->loads_at = w->now_ms + PERIOD_MS;
    for (size_t i = 0; i < w->script->items; i++) {
        if (!m->items[i].works) continue;
        divvy_partitioner_set_load(m->partitioner, w->items[i], load_of(w, i, &m->user.random));
    }
}

/* ---- reports ---- */

static sim_load_node *report_at(struct sim_operator *o, const char *node) {
    for (size_t i = 0; i < o->report_count; i++) {
        if (strcmp(o->reports[i].node, node) == 0) return &o->reports[i];
    }
    return NULL;
}

static const dv_plan_set *set_of(const sim_world *w, const dv_load_report *report) {
    const struct sim_plans_truth *t = w->plans_truth;
    for (size_t i = t->count; i-- > 0;) {
        const dv_plan *plan = t->versions[i].plan;
        if (plan && dv_load_report_is_of(report, plan->set)) return plan->set;
    }
    for (size_t i = 0; i < w->script->slots; i++) {
        const divvy_partitioner *p = w->members[i].phase != SIM_ABSENT ? w->members[i].partitioner : NULL;
        if (p && p->dealt && dv_load_report_is_of(report, p->dealt)) return p->dealt;
        if (p && p->configured && dv_load_report_is_of(report, p->configured)) return p->configured;
    }
    return NULL;
}

static size_t number_of(const char *name) {
    return (size_t)atoi(name + 5);
}

/* D46: an item that is listed came to this session two minutes ago or more. */
static void check_listed(sim_world *w, const sim_load_node *n, size_t item, int64_t at_ms) {
    const sim_queue *q = &w->truth.queues[item];
    const sim_owner *owner = NULL;
    for (size_t i = 0; i < q->owner_count; i++) {
        if (q->owners[i].session == n->session) owner = &q->owners[i];
    }
    if (!owner) {
        sim_violate(w, "D46", "%s tells a load of %s, which its session never owned", n->node, w->items[item]);
        return;
    }
    int64_t had_ms = at_ms - owner->at_ms;
    if (had_ms + had_ms / DRIFT_PARTS + 1 < 2 * HALF_LIFE_MS)
        sim_violate(w, "D46", "%s tells a load of %s, which it has had for %lld ms", n->node, w->items[item],
                    (long long)had_ms);
}

static size_t unit_of(const char *unit) {
    return strcmp(unit, units[0]) == 0 ? 0 : 1;
}

static void note_text(sim_world *w, sim_load_node *n, const dv_mem_step *step, int64_t at_ms) {
    struct sim_operator *o = operator_of(w);
    dv_load_report report;
    dv_plan_fault fault = {.why = "?"};
    free(n->text);
    n->bytes = step->data ? step->data->bytes : 0;
    n->text = malloc(n->bytes + 1);
    if (!n->text) abort();
    if (n->bytes) memcpy(n->text, step->data->data, n->bytes);
    if (dv_load_report_parse(&report, n->text, n->bytes, &fault) != 0) {
        sim_violate(w, "D46", "%s has a report that %s", n->node, fault.why);
        return;
    }
    w->coverage->plan_meetings[SIM_MET_REPORTED]++;
    const dv_plan_set *set = set_of(w, &report);
    for (size_t i = 0; set && i < report.count; i++) {
        size_t item = number_of(set->names[report.items[i].item]);
        o->told[unit_of(report.unit)][item][report.items[i].class] = true;
        check_listed(w, n, item, at_ms);
    }
    dv_load_report_clear(&report);
}

void sim_loads_transaction(sim_world *w, const divvy_testing_transaction *tx) {
    struct sim_operator *o = operator_of(w);
    if (strncmp(tx->path, loads_path, sizeof loads_path - 1) != 0) return;
    const char *node = tx->path + sizeof loads_path - 1;
    sim_load_node *n = report_at(o, node);
    if (tx->kind == DIVVY_TESTING_DELETE) {
        if (!n) return;
        free(n->text);
        *n = o->reports[--o->report_count];
        return;
    }
    bool created = tx->kind == DIVVY_TESTING_CREATE;
    if (created) {
        o->reports = sim_plans_grown(o->reports, o->report_count, &o->report_room, sizeof *o->reports);
        n = &o->reports[o->report_count++];
        *n = (sim_load_node){.session = tx->ephemeral_owner};
        snprintf(n->node, sizeof n->node, "%s", node);
    }
    const dv_mem_step *step = sim_plan_step_of(w, tx->path, created ? DV_MEM_TXN_CREATE : DV_MEM_TXN_SET);
    if (n && step) note_text(w, n, step, tx->at_ms);
}

size_t sim_loads_count(const sim_world *w, int64_t session) {
    const struct sim_operator *o = operator_of(w);
    size_t count = 0;
    for (size_t i = 0; i < o->report_count; i++) count += o->reports[i].session == session;
    return count;
}

bool sim_loads_well(const sim_world *w, char *text, size_t bytes) {
    const struct sim_operator *o = operator_of(w);
    for (size_t i = 0; i < o->report_count; i++) {
        const sim_load_node *n = &o->reports[i];
        const sim_party_node *p = sim_party_node_named(w, n->node);
        if (p && p->gone_zxid == 0 && p->session == n->session) continue;
        snprintf(text, bytes, "the report %s is there, and its member is not", n->node);
        return false;
    }
    return true;
}

/* ---- the end ---- */

/* Joins what the reports say, as a reader does. Returns NULL: there is nothing, or something is in the way. */
static dv_loads *gather(const sim_world *w, const dv_plan *plan) {
    const struct sim_operator *o = operator_of(w);
    dv_loads *loads = dv_loads_make(plan->loads->unit, plan->set->count);
    bool good = loads && o->report_count > 0;
    for (size_t i = 0; good && i < o->report_count; i++) {
        dv_load_report report;
        if (dv_load_report_parse(&report, o->reports[i].text, o->reports[i].bytes, NULL) != 0) continue;
        good = strcmp(report.unit, plan->loads->unit) == 0 && dv_load_report_is_of(&report, plan->set);
        for (size_t k = 0; good && k < report.count; k++) {
            uint8_t *known = &loads->classes[report.items[k].item], class = report.items[k].class;
            if (*known == DV_CLASS_NONE || class > *known) *known = class;
        }
        dv_load_report_clear(&report);
    }
    for (size_t i = 0; good && i < w->script->slots; i++) {
        const sim_member *m = &w->members[i];
        good = m->phase == SIM_ABSENT || !m->partitioner || m->config.load_floor == 0;
    }
    if (good) return loads;
    dv_loads_unref(loads);
    return NULL;
}

/* D47, D50: by what the reports say nothing is to be written. */
static void check_nothing_left(sim_world *w, const dv_plan *plan) {
    char text[200];
    dv_loads *loads = gather(w, plan);
    if (!loads) return;
    dv_plan_events events = {.loads = loads, .loads_of = plan->set};
    w->coverage->plan_meetings[SIM_MET_LOADS_AT_REST]++;
    if (!sim_plan_nothing_to_write(w, plan, &events, text, sizeof text))
        sim_violate(w, "D47", "loads have stood still, and %s", text);
    dv_loads_unref(loads);
}

bool sim_loads_at_rest(sim_world *w) {
    enum { SLACK_MS = 20000, MOST_MS = 3600000 };
    const sim_plan_version *v = sim_plan_now(w);
    if (!w->script->loads || !sim_plan_in_force(w) || !v || !v->plan || !v->plan->loads) return true;
    if (!v->plan->header.is_balanced) return true;
    if (w->loads_since == 0) w->loads_since = w->now_ms;
    int64_t since_ms = v->at_ms > w->loads_since ? v->at_ms : w->loads_since;
    w->quiet_since = w->now_ms;
    if (w->now_ms > w->loads_since + MOST_MS) {
        sim_violate(w, "D47", "loads have stood still for %lld ms, and plans are still written for %s",
                    (long long)(w->now_ms - w->loads_since), dv_plan_reason_text(v->plan->header.reason));
        return true;
    }
    if (w->now_ms < since_ms + REST_MS + REST_MS / DRIFT_PARTS + SLACK_MS) return false;
    check_nothing_left(w, v->plan);
    return true;
}
