/* One history: the ensemble, its members, and the loop that executes a script on them. SPDX-License-Identifier:
 * Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "operator.h"
#include "rolls.h"
#include "steps.h"
#include "watches.h"

enum { STEPS_MAX = 20000000 };

/* ---- what is said of it ---- */

void sim_violate(sim_world *w, const char *what, const char *format, ...) {
    if (w->violation.set || w->over) return;
    sim_violation *v = &w->violation;
    v->set = true;
    v->at_ms = divvy_testing_now_ms(w->ensemble) - w->began_ms;
    snprintf(v->what, sizeof v->what, "%s", what);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(v->text, sizeof v->text, format, arguments);
    va_end(arguments);
    sim_trace(w, "VIOLATION %s: %s", v->what, v->text);
}

void sim_trace(sim_world *w, const char *format, ...) {
    if (!w->trace || w->over || !w->ensemble) return;
    va_list arguments;
    va_start(arguments, format);
    printf("%9lld  ", (long long)(divvy_testing_now_ms(w->ensemble) - w->began_ms));
    vprintf(format, arguments);
    putchar('\n');
    va_end(arguments);
}

static void trace_member(sim_world *w, const sim_member *m) {
    char items[300] = "";
    size_t used = 0;
    for (size_t i = 0; i < w->script->items && used < sizeof items - 20; i++) {
        const sim_holding *h = &m->items[i];
        if (!h->shown && !h->works) continue;
        used += (size_t)snprintf(items + used, sizeof items - used, " %zu%s%s%s", i, h->shown ? "" : "(hidden)",
                                 h->works ? "" : "(idle)", h->knows_revoked ? "(revoked)" : "");
    }
    char text[80] = "";
    if (m->kazoo) sim_kazoo_describe(m->kazoo, text, sizeof text);
    if (m->kazoo_claim) sim_kazoo_claim_describe(m->kazoo_claim, text, sizeof text);
    sim_trace(w, "     %s: session 0x%llx, server %d, %s%s%s, %lld ms left, items:%s", m->name,
              (unsigned long long)divvy_client_session_id(m->client), divvy_testing_server_of(w->ensemble, m->client),
              m->partitioner ? divvy_partition_state_name(m->partitioner->state) : "no partitioner ", text,
              m->paused ? ", stopped" : "",
              (long long)(atomic_load(&m->client->alive_until) - dv_client_now(m->client)), items);
}

void sim_trace_members(sim_world *w) {
    if (!w->trace) return;
    for (size_t i = 0; i < w->script->slots; i++) {
        if (w->members[i].phase != SIM_ABSENT) trace_member(w, &w->members[i]);
    }
}

/* ---- what the ensemble tells ---- */

static void trace_transaction(sim_world *w, const divvy_testing_transaction *t) {
    static const char *const kinds[] = {"create", "delete", "set", "session begins", "session ends"};
    sim_trace(w, "     zxid 0x%llx: %s %s, session 0x%llx%s", (unsigned long long)t->zxid, kinds[t->kind],
              t->path ? t->path : "", (unsigned long long)t->session_id, t->expired ? ", expired" : "");
}

static void on_transaction(const divvy_testing_transaction *t, void *user) {
    sim_world *w = user;
    if (w->trace) trace_transaction(w, t);
    sim_steps_transaction(w, t); /* also of the end, where members still ask and take answers */
    if (!w->over) sim_check_transaction(w, t);
}

static void on_trace(int64_t at_ms, const char *line, void *user) {
    (void)at_ms;
    sim_trace(user, "       %s", line);
}

/* ---- life ---- */

/* D37: where P/locks had a child some time, a first plan may wait for those who know an older one. */
static bool begin_used_pool(sim_world *w) {
    static const char *const paths[] = {"/pool", "/pool/locks", "/pool/locks/item-000"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        if (divvy_testing_put(w->ensemble, paths[i], "", 0, DIVVY_TESTING_PERSISTENT) != 0) return false;
        divvy_testing_run(w->ensemble, 10);
    }
    int error = divvy_testing_remove(w->ensemble, "/pool/locks/item-000");
    divvy_testing_run(w->ensemble, 10);
    return error == 0;
}

static bool begin(sim_world *w) {
    const sim_script *s = w->script;
    divvy_testing_config config = DIVVY_TESTING_CONFIG_INIT;
    config.servers = s->servers;
    config.tick_ms = s->tick_ms;
    if (s->timeout_ms < 2 * s->tick_ms) config.min_session_timeout_ms = s->timeout_ms;
    config.sync_limit_ticks = s->sync_limit_ticks;
    config.seed = s->seed;
    if (s->old_servers) config.release = DIVVY_TESTING_3_4;
    config.client_delay_max_ms = s->client_delay_max_ms;
    config.server_delay_max_ms = s->server_delay_max_ms;
    config.election_min_ms = s->election_max_ms / 2;
    config.election_max_ms = s->election_max_ms;
    config.on_transaction = on_transaction;
    config.on_trace = w->trace ? on_trace : NULL;
    config.user = w;
    for (size_t i = 0; i < s->items; i++) {
        snprintf(w->item_names[i], sizeof w->item_names[i], "item-%03zu", i);
        w->items[i] = w->item_names[i];
    }
    memcpy((void *)w->deployed, w->items, sizeof w->deployed);
    w->deployed_count = s->items;
    w->deployed_moves = s->max_moves;
    w->deployed_round_timeout_ms = s->round_timeout_ms;
    for (size_t i = 0; i < s->slots; i++) w->members[i].act_at = INT64_MAX;
    sim_claims_truth_new(w);
    sim_services_truth_new(w);
    sim_plans_truth_new(w);
    if (divvy_testing_ensemble_create(&w->ensemble, &config) != 0) return false;
    if (s->seed % 2 == 0 && !begin_used_pool(w)) return false;
    w->began_ms = w->now_ms = divvy_testing_now_ms(w->ensemble);
    return sim_admin_open(w);
}

static void end(sim_world *w) {
    w->over = true;
    sim_heal(w);
    for (size_t i = 0; i < w->script->slots; i++) {
        if (w->members[i].phase != SIM_ABSENT) sim_member_close(&w->members[i]);
    }
    sim_watches_free(w);
    sim_operator_close(w);
    sim_admin_close(w);
    divvy_testing_ensemble_destroy(w->ensemble);
    sim_truth_free(&w->truth);
    sim_claims_truth_free(w);
    sim_services_truth_free(w);
    sim_plans_truth_free(w);
    sim_rolls_truth_free(w);
}

/* ---- the loop ---- */

static int64_t next_act(const sim_world *w) {
    int64_t next = INT64_MAX;
    for (size_t i = 0; i < w->script->slots; i++) {
        const sim_member *m = &w->members[i];
        if (m->phase != SIM_ABSENT && !m->paused && m->act_at < next) next = m->act_at;
    }
    return next;
}

static void act_due(sim_world *w) {
    for (size_t i = 0; i < w->script->slots; i++) {
        sim_member *m = &w->members[i];
        if (m->phase != SIM_ABSENT && !m->paused && m->act_at <= w->now_ms) sim_member_act(m);
    }
}

void sim_step(sim_world *w, int64_t until_ms) {
    int64_t undo_ms = sim_next_undo(w), act_ms = next_act(w), watch_ms = sim_watches_next(w);
    if (undo_ms < until_ms) until_ms = undo_ms;
    if (act_ms < until_ms) until_ms = act_ms;
    if (watch_ms < until_ms) until_ms = watch_ms;
    if (until_ms > w->now_ms) {
        int happened = divvy_testing_step(w->ensemble, until_ms);
        if (happened < 0) sim_violate(w, "step", "the ensemble cannot go on: %s", divvy_strerror(happened));
        w->now_ms = divvy_testing_now_ms(w->ensemble);
    }
    if (++w->steps > STEPS_MAX) sim_violate(w, "end", "the history does not end");
    sim_check_step(w);
    sim_traps(w);
    sim_operator_step(w);
    sim_watches_step(w);
    if (w->now_ms >= undo_ms) sim_undo_due(w);
    if (w->now_ms >= act_ms) {
        act_due(w);
        sim_check_step(w);
    }
}

static void execute(sim_world *w, const bool *omit) {
    const sim_script *s = w->script;
    for (size_t i = 0; i < s->count && !w->violation.set; i++) {
        if (omit && omit[i]) continue;
        int64_t at_ms = w->began_ms + s->events[i].at_ms;
        while (w->now_ms < at_ms && !w->violation.set) sim_step(w, at_ms);
        if (w->violation.set) return;
        sim_trace_members(w);
        sim_apply(w, &s->events[i]);
        sim_answers_draw(w);
        sim_check_step(w);
    }
}

/* A pool needs somebody. */
void sim_need_a_member(sim_world *w) {
    static const sim_event join = {0, SIM_JOIN, 0, 0, 1, 1};
    sim_member *room = NULL;
    for (size_t i = 0; i < w->script->slots; i++) {
        sim_member *m = &w->members[i];
        if (m->phase == SIM_RUNS || m->phase == SIM_ENDING) return;
        if (!room || m->phase == SIM_ABSENT) room = m;
    }
    if (room->phase == SIM_IDLE) sim_member_close(room);
    sim_member_start(w, (size_t)(room - w->members), &join);
}

bool sim_history(const sim_script *script, const bool *omit, bool trace, sim_coverage *coverage, sim_violation *out) {
    sim_world *w = calloc(1, sizeof *w);
    if (!w) abort();
    w->script = script;
    w->coverage = coverage;
    w->trace = trace;
    sim_answers_begin(w);
    sim_steps_begin(w);
    if (!begin(w)) sim_violate(w, "begin", "no ensemble");
    if (!w->violation.set) execute(w, omit);
    if (!w->violation.set) {
        sim_trace(w, "-- the faults stop");
        w->healed = true;
        sim_heal(w);
        sim_claims_heal(w);
        for (size_t i = 0; i < script->slots; i++) {
            if (w->members[i].phase != SIM_ABSENT) w->members[i].act_at = w->now_ms;
        }
        sim_check_end(w);
        sim_trace_members(w);
    }
    coverage->histories++;
    coverage->watched += script->death_watch;
    coverage->rolled += script->rolls;
    coverage->steps += w->steps;
    coverage->simulated_ms += w->now_ms - w->began_ms;
    *out = w->violation;
    bool well = !w->violation.set;
    if (!well) sim_steps_violated(w);
    end(w);
    sim_steps_over(w);
    free(w);
    return well;
}
