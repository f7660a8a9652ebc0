/* The operator, who asks for pins, moves, pauses and the like by a client of its own.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Several requests may be under way at a time. Their connection breaks in writes, and they are given up after a while,
 * as a call is that times out.
 *
 * Excused: requests that wait for a member whose name only a persistent node has (P2), until they time out. */
#include "operator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct sim_operator *operator_of(const sim_world *w) {
    return w->plans_truth->hand;
}

void sim_operator_new(sim_world *w) {
    struct sim_operator *o = calloc(1, sizeof *o);
    if (!o) abort();
    o->random = sim_random_of(w->script->seed, 23);
    w->plans_truth->hand = o;
}

void sim_operator_free(sim_world *w) {
    struct sim_operator *o = operator_of(w);
    for (size_t i = 0; i < o->report_count; i++) free(o->reports[i].text);
    free(o->reports);
    free(o);
}

static void note_session(struct sim_operator *o) {
    int64_t id = divvy_client_session_id(o->client);
    bool known = o->session_count > 0 && o->sessions[o->session_count - 1] == id;
    if (!known && o->session_count < SIM_OPERATOR_SESSIONS) o->sessions[o->session_count++] = id;
}

bool sim_is_operator(const sim_world *w, int64_t session) {
    const struct sim_operator *o = operator_of(w);
    for (size_t i = 0; i < o->session_count; i++) {
        if (o->sessions[i] == session) return true;
    }
    return false;
}

static bool open_client(sim_world *w, struct sim_operator *o) {
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.manual = 1;
    config.session_timeout_ms = w->script->timeout_ms;
    config.ensemble_tick_ms = w->script->tick_ms;
    if (!o->client && divvy_testing_client_open(&o->client, w->ensemble, &config) != 0) o->client = NULL;
    return o->client != NULL;
}

static void drop(const struct sim_operator *o, sim_ask *ask) {
    dv_client_lock(o->client);
    dv_errand_drop(ask->errand);
    dv_client_unlock(o->client);
    ask->errand = NULL;
}

void sim_operator_close(sim_world *w) {
    struct sim_operator *o = operator_of(w);
    for (size_t i = 0; i < o->ask_count; i++) {
        if (o->asks[i].errand) drop(o, &o->asks[i]);
    }
    if (o->client) divvy_client_close(o->client);
    o->client = NULL;
}

/* ---- what is asked ---- */

static const char *some_item(const sim_world *w, uint32_t choice) {
    return w->items[choice % w->script->items];
}

/* An identifier, or the node of one; mostly of somebody who is there. */
static const char *some_member(const sim_world *w, uint32_t choice) {
    for (size_t i = 0; i < w->script->slots; i++) {
        const sim_member *m = &w->members[(choice + i) % w->script->slots];
        if (m->phase == SIM_RUNS && m->partitioner) return m->name;
    }
    return "nobody";
}

static void choose_option(sim_world *w, sim_ask *ask, uint32_t choice) {
    static const char *const names[] = {"max-moves", "round-timeout", "imbalance-max"};
    static const char *const values[][3] = {{"0", "1", "3"}, {"2000", "5000", "60000"}, {"0.1", "0.2", "1.5"}};
    size_t option = choice % 3;
    snprintf(ask->name, sizeof ask->name, "%s", names[option]);
    snprintf(ask->value, sizeof ask->value, "%s", values[option][(choice >> 4) % 3]);
    size_t moves = option == 0 ? (size_t)atoi(ask->value) : 0;
    if (!ask->ask.undo && moves > 0 && (w->least_moves == 0 || moves < w->least_moves)) w->least_moves = moves;
}

/* Whom to forget: a static member that the plan has as absent. */
static const char *some_absent(const sim_world *w) {
    const sim_plan_version *v = sim_plan_now(w);
    for (size_t m = 0; v && v->plan && m < v->plan->member_count; m++) {
        if (v->plan->members[m].absent) return v->plan->members[m].key;
    }
    return "nobody";
}

static void choose(sim_world *w, sim_ask *ask, const sim_event *e) {
    static const dv_ask_kind kinds[] = {DV_ASK_PIN,   DV_ASK_PIN,  DV_ASK_MOVE,   DV_ASK_MOVE,   DV_ASK_PAUSE,
                                        DV_ASK_PAUSE, DV_ASK_NEED, DV_ASK_OPTION, DV_ASK_FORGET, DV_ASK_WEIGHT};
    static const char *const tags[] = {"gpu", "gpu", "ssd", "rare"};
    ask->ask.kind = kinds[e->a % (sizeof kinds / sizeof *kinds)];
    ask->ask.undo = (e->a >> 8) % 5 < 2;
    snprintf(ask->name, sizeof ask->name, "%s", some_item(w, e->b));
    if (w->script->tags && ask->ask.kind == DV_ASK_PIN && (e->a >> 16) % 2) ask->ask.kind = DV_ASK_NEED;
    switch (ask->ask.kind) {
    case DV_ASK_FORGET: snprintf(ask->name, sizeof ask->name, "%s", some_absent(w)); break;
    case DV_ASK_WEIGHT: snprintf(ask->name, sizeof ask->name, "%s", some_member(w, e->c)); break;
    case DV_ASK_OPTION: choose_option(w, ask, e->b); break;
    case DV_ASK_NEED:
        snprintf(ask->value, sizeof ask->value, "%s", tags[e->c % (sizeof tags / sizeof *tags)]);
        if (e->d % 4 == 0) snprintf(ask->name, sizeof ask->name, "item-00*");
        break;
    case DV_ASK_PIN:
    case DV_ASK_MOVE: snprintf(ask->value, sizeof ask->value, "%s", some_member(w, e->c)); break;
    default: break;
    }
    if (ask->ask.kind == DV_ASK_FORGET || ask->ask.kind == DV_ASK_WEIGHT) ask->ask.undo = false;
    if (ask->ask.kind == DV_ASK_MOVE && ask->ask.undo) ask->ask.kind = DV_ASK_PIN; /* as divvy_pool_unpin() does */
}

static void on_done(void *owner, int64_t now) {
    (void)now;
    ((sim_ask *)owner)->is_done = true;
}

static const char *kind_text(dv_ask_kind kind) {
    static const char *const texts[DV_ASK_KINDS] = {"weight", "forget", "move", "need", "option", "pause", "pin"};
    return texts[kind];
}

void sim_operator_ask(sim_world *w, const sim_event *e) {
    enum { PATIENCE_MS = 10000 };
    static const uint32_t weights[] = {0, 500, 1000, 2000};
    struct sim_operator *o = operator_of(w);
    if (o->ask_count == SIM_ASKS_MAX || !open_client(w, o)) return;
    sim_ask *ask = &o->asks[o->ask_count];
    *ask = (sim_ask){.give_up_ms = w->now_ms + PATIENCE_MS};
    choose(w, ask, e);
    if (ask->ask.kind == DV_ASK_WEIGHT && !w->script->weights) return;
    snprintf(ask->by, sizeof ask->by, "%zu", o->ask_count++);
    dv_ask *what = &ask->ask;
    what->name = ask->name;
    what->value = ask->value;
    what->by = ask->by;
    what->weight = weights[e->d % 4];
    what->at_ms = w->now_ms;
    if (what->kind == DV_ASK_WEIGHT) sim_plan_note_weight_request(w, ask->name, (uint32_t)what->weight);
    sim_trace(w, "the operator asks (%s): %s%s of %s: %s", ask->by, what->undo ? "no " : "", kind_text(what->kind),
              ask->name, ask->value);
    dv_client_lock(o->client);
    ask->errand = dv_errand_start(o->client, "/pool", "/pool", what, on_done, ask);
    dv_client_unlock(o->client);
    if (!ask->errand) abort();
    o->trap_set |= sim_chance(&o->random, 30);
    o->trap_fate = (divvy_testing_fate)SIM_ONE_OF(&o->random, DIVVY_TESTING_NOT_APPLIED, DIVVY_TESTING_APPLIED,
                                                  DIVVY_TESTING_APPLIED_LATE);
}

/* ---- what came of it ---- */

static dv_wish_kind wish_kind(dv_ask_kind kind) {
    static const dv_wish_kind kinds[DV_ASK_KINDS] = {
        [DV_ASK_MOVE] = DV_WISH_MOVE,   [DV_ASK_NEED] = DV_WISH_NEED, [DV_ASK_OPTION] = DV_WISH_OPTION,
        [DV_ASK_PAUSE] = DV_WISH_PAUSE, [DV_ASK_PIN] = DV_WISH_PIN,
    };
    return kinds[kind];
}

/* D51: it is done when the plan says so, and that plan stood there. */
static void check_answer(sim_world *w, const sim_ask *ask) {
    const dv_errand_result *r = &ask->errand->result;
    const sim_plan_version *v = sim_plan_at(w, r->after->mzxid);
    if (!v || (!v->plan && !w->plans_truth->chunks_spoiled)) {
        sim_violate(w, "D51", "the operator is told that the plan of 0x%llx says so, which never stood there",
                    (unsigned long long)r->after->mzxid);
        return;
    }
    if (ask->ask.kind == DV_ASK_WEIGHT || ask->ask.kind == DV_ASK_FORGET) return;
    bool stands = dv_wishes_find(r->after->wishes, wish_kind(ask->ask.kind), ask->name) != NULL;
    if (ask->ask.kind == DV_ASK_PIN && ask->ask.undo)
        stands |= dv_wishes_find(r->after->wishes, DV_WISH_MOVE, ask->name) != NULL;
    if (stands == ask->ask.undo)
        sim_violate(w, "D51", "the operator is told that its wish %s is there, and the plan of 0x%llx is %s it",
                    ask->by, (unsigned long long)v->mzxid, stands ? "with" : "without");
    if (v->plan && !sim_plan_is_followed(v, r->after))
        sim_violate(w, "D51", "the operator is told of a plan of 0x%llx that is another than stood there",
                    (unsigned long long)v->mzxid);
}

static void judge(sim_world *w, sim_ask *ask) {
    const dv_errand_result *r = &ask->errand->result;
    uint64_t *met = w->coverage->plan_meetings;
    sim_trace(w, "the operator is told (%s): %s %s", ask->by, divvy_strerror(r->error), r->text);
    ask->ended = r->error == 0;
    met[SIM_MET_ASK_DONE] += ask->ended;
    met[SIM_MET_ASK_REFUSED] += !ask->ended;
    if (ask->ended) check_answer(w, ask);
    drop(operator_of(w), ask);
    w->quiet_since = w->now_ms;
}

/* Breaks the connection when a write is under way. */
static void snap(sim_world *w, struct sim_operator *o) {
    divvy_stats stats;
    for (size_t i = 0; i < o->ask_count; i++) {
        const dv_errand *e = o->asks[i].errand;
        if (!e || !e->writer || divvy_client_stats(o->client, &stats, sizeof stats) != 0 || stats.in_flight == 0)
            continue;
        if (!sim_chance(&o->random, 20)) return; /* one of the next steps */
        o->trap_set = false;
        sim_trace(w, "the operator's connection breaks, fate %d", (int)o->trap_fate);
        w->coverage->plan_meetings[SIM_MET_ASK_LOST]++;
        divvy_testing_disconnect(w->ensemble, o->client, o->trap_fate, w->script->timeout_ms / 8);
        return;
    }
}

void sim_operator_step(sim_world *w) {
    struct sim_operator *o = operator_of(w);
    if (!o->client) return;
    note_session(o);
    if (o->trap_set && !w->healed) snap(w, o);
    for (size_t i = 0; i < o->ask_count; i++) {
        sim_ask *ask = &o->asks[i];
        if (!ask->errand) continue;
        if (ask->is_done) {
            judge(w, ask);
        } else if (w->now_ms >= ask->give_up_ms && !w->healed) {
            sim_trace(w, "the operator gives up (%s)", ask->by);
            drop(o, ask);
        }
    }
}

bool sim_operator_waits(const sim_world *w) {
    const struct sim_operator *o = operator_of(w);
    for (size_t i = 0; i < o->ask_count; i++) {
        const dv_errand *e = o->asks[i].errand;
        if (e && !(w->strays > 0 && *e->result.waits_for)) return true;
    }
    return false;
}

bool sim_operator_forgets(const sim_world *w, const char *key) {
    const struct sim_operator *o = operator_of(w);
    for (size_t i = 0; i < o->ask_count; i++) {
        if (o->asks[i].ask.kind == DV_ASK_FORGET && strcmp(o->asks[i].name, key) == 0) return true;
    }
    return false;
}

/* ---- an older release ---- */

/* D48: what it writes has algorithm 1, and neither part. */
void sim_older_root(sim_world *w) {
    const sim_plan_version *v = sim_plan_now(w);
    bool there = false;
    dv_plan_root root;
    dv_plan_text text;
    for (size_t i = 0; i < w->script->slots; i++) {
        const sim_member *m = &w->members[i];
        there |= m->phase == SIM_RUNS && m->partitioner && m->is_older;
    }
    if (!there || !v || !v->plan || dv_plan_root_parse(&root, v->text, v->bytes, NULL) != 0) return;
    dv_plan_part_clear(&root.loads);
    dv_plan_part_clear(&root.wishes);
    root.header.is_balanced = false;
    if (dv_plan_print_root(&text, &root) == 0) {
        sim_trace(w, "an older release writes the plan");
        sim_plans_replace_root(w, text.bytes, text.count);
        free(text.bytes);
    }
    dv_plan_root_clear(&root);
}
