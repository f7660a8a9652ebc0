/* The acts of users and administrators on plans. SPDX-License-Identifier: Apache-2.0 */
#include "plans.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 160, SETS_MAX = 60, EPOCH_PREFIX_BYTES = 4 };

/* ---- members ---- */

/* Some of all items, at least one. */
static size_t draw_set(const sim_world *w, sim_random *r, const char **items) {
    size_t count = 0;
    unsigned percent = (unsigned)SIM_ONE_OF(r, 30, 60, 90, 100);
    for (size_t i = 0; i < w->script->items; i++) {
        if (sim_chance(r, percent)) items[count++] = w->items[i];
    }
    if (count == 0) items[count++] = w->items[sim_below(r, (uint32_t)w->script->items)];
    return count;
}

static void draw_identity(sim_member *m, sim_random *r) {
    const sim_script *s = m->world->script;
    divvy_partitioner_config *c = &m->config;
    if (!s->statics || !sim_chance(r, 65)) return;
    if (sim_chance(r, 8)) snprintf(m->name, sizeof m->name, "twin");
    else snprintf(m->name, sizeof m->name, "s%zu", m->slot);
    c->static_membership = 1;
    c->rejoin_delay_ms = sim_chance(r, 15) ? 0 : sim_between(r, s->rejoin_delay_max_ms / 8, s->rejoin_delay_max_ms);
}

void sim_plans_name(sim_member *m, sim_random random) {
    const sim_script *s = m->world->script;
    divvy_partitioner_config *c = &m->config;
    sim_random *r = &random;
    bool can = s->namesakes > 0 && (c->assign == DIVVY_ASSIGN_AUTO || c->assign == DIVVY_ASSIGN_STICKY);
    if (!can || !sim_chance(r, 80)) return;
    snprintf(m->name, sizeof m->name, "n%u", sim_below(r, (uint32_t)s->namesakes));
    c->static_membership = 1;
    c->rejoin_delay_ms = sim_chance(r, 15) ? 0 : sim_between(r, s->rejoin_delay_max_ms / 8, s->rejoin_delay_max_ms);
    if (sim_chance(r, 80)) c->on_session_loss = DIVVY_REJOIN;
    m->user.replaces = sim_chance(r, 40);
}

void sim_plans_configure(sim_member *m, sim_random *r) {
    const sim_script *s = m->world->script;
    divvy_partitioner_config *c = &m->config;
    if (s->theme != SIM_OF_PLANS) return;
    bool by_names = s->lower && sim_chance(r, 30);
    if (c->mode == DIVVY_EAGER && c->on_suspend == DIVVY_RELEASE_ON_SUSPEND && by_names) return; /* kazoo's preset */
    if (by_names) {
        c->assign = sim_chance(r, 50) ? DIVVY_ASSIGN_RENDEZVOUS : DIVVY_ASSIGN_ROUND_ROBIN;
        return;
    }
    c->assign = sim_chance(r, 50) ? DIVVY_ASSIGN_AUTO : DIVVY_ASSIGN_STICKY;
    draw_identity(m, r);
    if (s->weights && sim_chance(r, 50)) c->weight = (uint32_t)SIM_ONE_OF(r, 0, 1, 500, 2000, 3000);
    if (s->zones && sim_chance(r, 80)) c->zone = sim_chance(r, 50) ? "za" : "zb";
    sim_world *w = m->world;
    c->max_moves = sim_chance(r, 90) ? w->deployed_moves : sim_below(r, 4);
    c->round_timeout_ms = w->deployed_round_timeout_ms;
    if (c->max_moves && (w->least_moves == 0 || c->max_moves < w->least_moves)) w->least_moves = c->max_moves;
    c->items = m->world->deployed;
    c->item_count = m->world->deployed_count;
}

void sim_plans_set_items(sim_member *m, const sim_event *e) {
    const char *items[SIM_ITEMS_MAX];
    sim_random random = sim_random_of((uint64_t)e->b << 32 | e->c, 5);
    if (!m->partitioner) return;
    size_t count = draw_set(m->world, &random, items);
    int error = divvy_partitioner_set_items(m->partitioner, items, count);
    sim_trace(m->world, "%s asks for %zu items: %s", m->name, count, divvy_strerror(error));
}

void sim_plans_set_weight(sim_member *m, const sim_event *e) {
    static const uint32_t weights[] = {0, 1, 500, 1000, 1000, 2000, 3000};
    uint32_t weight = weights[e->b % (sizeof weights / sizeof *weights)];
    if (!m->partitioner || !m->world->script->weights) return;
    int error = divvy_partitioner_set_weight(m->partitioner, weight);
    sim_trace(m->world, "%s asks for a weight of %u: %s", m->name, weight, divvy_strerror(error));
}

/* Those who are started from now on have another set of items, or other options: as a new release of the program
 * has. */
void sim_plans_deploy(sim_world *w, const sim_event *e) {
    sim_random random = sim_random_of((uint64_t)e->b << 32 | e->c, 6);
    if (!w->script->deploys) return;
    if (sim_chance(&random, 30)) {
        w->deployed_moves = sim_below(&random, 4);
        w->deployed_round_timeout_ms = SIM_ONE_OF(&random, 2000, 5000, 60000);
    }
    if (sim_chance(&random, 60)) w->deployed_count = draw_set(w, &random, w->deployed);
    sim_trace(w, "from now on members are made with %zu items, max_moves %zu, round_timeout_ms %lld", w->deployed_count,
              w->deployed_moves, (long long)w->deployed_round_timeout_ms);
}

/* ---- somebody else ---- */

static void on_reply(void *context, const dv_reply *reply, int64_t now) {
    (void)reply, (void)now;
    free(context);
}

static void ask_at(sim_world *w, dv_kind kind, const char *path, const char *data, size_t bytes, int32_t version) {
    char *kept = malloc(strlen(path) + bytes + 2); /* lives until it is answered */
    if (!kept) abort();
    strcpy(kept, path);
    char *text = kept + strlen(path) + 1;
    if (bytes) memcpy(text, data, bytes);
    dv_client_lock(w->admin);
    if (dv_client_connected(w->admin)) {
        dv_op op = {.kind = kind, .path = kept, .data = text, .data_bytes = bytes, .version = version};
        sim_admin_note_session(w);
        if (dv_znode_submit(w->admin->znode, &op, NULL, on_reply, kept) != 0) abort();
    } else {
        free(kept);
    }
    dv_client_unlock(w->admin);
}

static void ask(sim_world *w, dv_kind kind, const char *path, const char *data, size_t bytes) {
    ask_at(w, kind, path, data, bytes, -1);
}

void sim_plans_put_root(sim_world *w, const char *text, size_t bytes) {
    ask(w, DV_SET, SIM_PLAN_PATH, text, bytes);
}

void sim_plans_replace_root(sim_world *w, const char *text, size_t bytes) {
    ask_at(w, DV_SET, SIM_PLAN_PATH, text, bytes, w->plans_truth->root_version);
}

/* It is made again at once, with another epoch and at the version that it had: as if it had always stood there. */
static void make_plan_again(sim_world *w, const sim_plan_version *v, int32_t version) {
    static const char key[] = "\"epoch\":\"";
    struct sim_plans_truth *t = w->plans_truth;
    char path[PATH_BYTES], prefix[EPOCH_PREFIX_BYTES + 1];
    const char *at = memmem(v->text, v->bytes, key, sizeof key - 1);
    char *text = malloc(v->bytes + 1);
    if (!text || !at) abort();
    memcpy(text, v->text, v->bytes);
    char *epoch = text + (at - v->text) + sizeof key - 1;
    size_t bytes = strlen(v->header.epoch);
    snprintf(prefix, sizeof prefix, "%04u", t->remade++ % 10000); /* The name of an epoch is never used again. */
    snprintf(path, sizeof path, SIM_PLAN_PATH "/%s%.*s", prefix, (int)bytes - EPOCH_PREFIX_BYTES,
             v->header.epoch + EPOCH_PREFIX_BYTES);
    memcpy(epoch, prefix, EPOCH_PREFIX_BYTES);
    ask(w, DV_CREATE, SIM_PLAN_PATH, text, v->bytes);
    ask(w, DV_CREATE, path, "", 0);
    for (size_t i = 0; i < t->child_count; i++) {
        uint64_t generation;
        if (!dv_plan_chunk_parse(t->children[i].name, &generation)) continue;
        snprintf(path, sizeof path, SIM_PLAN_PATH "/%s", t->children[i].name);
        ask(w, DV_CREATE, path, t->children[i].data, t->children[i].bytes);
    }
    for (int32_t n = 0; n < version; n++) ask(w, DV_SET, SIM_PLAN_PATH, text, v->bytes);
    free(text);
}

/* All of it, one node after the other: members may write meanwhile, so that the root stays after all. */
void sim_admin_delete_plan(sim_world *w, bool again) {
    const struct sim_plans_truth *t = w->plans_truth;
    const sim_plan_version *v = sim_plan_now(w);
    char path[PATH_BYTES];
    if (!v) return;
    sim_trace(w, "somebody deletes the plan");
    for (size_t i = 0; i < t->child_count; i++) {
        snprintf(path, sizeof path, SIM_PLAN_PATH "/%s", t->children[i].name);
        ask(w, DV_DELETE, path, "", 0);
    }
    ask(w, DV_DELETE, SIM_PLAN_PATH, "", 0);
    if (again && v->plan && t->root_version < SETS_MAX) make_plan_again(w, v, t->root_version);
    w->plans_truth->spoiled_at = w->foreign_at = w->now_ms;
    w->plans_truth->chunks_spoiled |= t->child_count > 1;
}

static void delete_chunk(sim_world *w, uint32_t choice) {
    const struct sim_plans_truth *t = w->plans_truth;
    char path[PATH_BYTES];
    if (t->child_count == 0) return;
    snprintf(path, sizeof path, SIM_PLAN_PATH "/%s", t->children[choice % t->child_count].name);
    sim_trace(w, "somebody deletes %s", path);
    ask(w, DV_DELETE, path, "", 0);
}

/* The history (D44), which nobody but the next writer reads. */
static void spoil_history(sim_world *w, const sim_plan_version *v, uint32_t choice) {
    const sim_plan_child *child = sim_plan_child_of(w->plans_truth, v->header.epoch);
    char path[PATH_BYTES];
    if (!child) return;
    snprintf(path, sizeof path, SIM_PLAN_PATH "/%s", child->name);
    sim_trace(w, "somebody spoils the history");
    ask(w, DV_SET, path, child->data, child->bytes > 0 ? choice % child->bytes : 0);
}

void sim_admin_spoil_plan(sim_world *w, const sim_event *e) {
    struct sim_plans_truth *t = w->plans_truth;
    const sim_plan_version *v = sim_plan_now(w);
    if (!v) return;
    t->spoiled_at = w->now_ms;
    if (e->b % 4 == 3) {
        spoil_history(w, v, e->c);
        return;
    }
    if (e->b % 4 == 0) {
        t->chunks_spoiled = true;
        w->foreign_at = w->now_ms;
        delete_chunk(w, e->c);
        return;
    }
    sim_trace(w, "somebody spoils the plan");
    sim_plans_put_root(w, v->text, e->b % 4 == 1 ? 0 : e->c % (v->bytes + 1));
}

/* A deletion, or a later release's plan, that waits for somebody to be about to write. */
void sim_plans_trap(sim_world *w) {
    if ((!w->plan_trap && !w->newer_trap) || !w->admin) return;
    for (size_t i = 0; i < w->script->slots; i++) {
        const sim_member *m = &w->members[i];
        const dv_follower *f = m->phase != SIM_ABSENT && m->partitioner ? m->partitioner->follower : NULL;
        if (!f || !f->attempt.writer || f->attempt.is_done) continue;
        if (w->plan_trap) sim_admin_delete_plan(w, true);
        else sim_admin_newer_plan(w);
        w->plan_trap = w->newer_trap = false;
        return;
    }
}

/* Restores an earlier root, as it was or as another ensemble would have written it. */
void sim_admin_restore_plan(sim_world *w, const sim_event *e) {
    static const char key[] = "\"pzxid\":\"", far[] = "6fffffff00000000";
    const struct sim_plans_truth *t = w->plans_truth;
    if (!t->present || t->count == 0) return;
    const sim_plan_version *v = &t->versions[e->b % t->count];
    const char *at = v->bytes ? memmem(v->text, v->bytes, key, sizeof key - 1) : NULL;
    if (!v->plan || !at) return;
    w->plans_truth->spoiled_at = w->foreign_at = w->now_ms;
    w->plans_truth->chunks_spoiled = true; /* Its chunks may have been collected. */
    sim_trace(w, "somebody restores generation %llu", (unsigned long long)v->plan->header.generation);
    if (e->c % 2) {
        sim_plans_put_root(w, v->text, v->bytes);
        return;
    }
    const char *value = at + sizeof key - 1, *rest = memchr(value, '"', (size_t)(v->text + v->bytes - value));
    size_t head = (size_t)(value - v->text), tail = (size_t)(v->text + v->bytes - rest);
    char *text = malloc(head + sizeof far + tail);
    if (!text) abort();
    memcpy(text, v->text, head);
    memcpy(text + head, far, sizeof far - 1);
    memcpy(text + head + sizeof far - 1, rest, tail);
    sim_plans_put_root(w, text, head + sizeof far - 1 + tail);
    free(text);
}

void sim_admin_newer_plan(sim_world *w) {
    static const char text[] = "{\"v\":2,\"what\":\"comes\"}";
    if (!sim_plan_now(w)) return;
    sim_trace(w, "a later release writes a plan");
    w->plans_truth->spoiled_at = w->now_ms;
    sim_plans_put_root(w, text, sizeof text - 1);
}

bool sim_plans_last_blow(sim_world *w) {
    sim_random random = sim_random_of(w->script->seed, 9);
    sim_event e = {.b = 1 + sim_below(&random, 2), .c = sim_below(&random, 1000)};
    if (w->last_blow || !w->script->spoils || !sim_plan_now(w)) return false;
    w->last_blow = true;
    uint32_t choice = sim_below(&random, 3);
    if (choice == 0) sim_admin_delete_plan(w, false);
    else if (choice == 1) sim_admin_spoil_plan(w, &e);
    else sim_admin_restore_plan(w, &e);
    return true;
}
