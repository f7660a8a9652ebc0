/* A pool that steps from plan to plan, watched at every step. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_TEST_PLAN_WORLD_H
#define DV_TEST_PLAN_WORLD_H

#include "plan_fixture.h"

enum { NODES_MAX = 24, WORLD_NAME_BYTES = 24 };

/* The live nodes, and the plan that they have. Nodes keep their order, the younger the higher. */
typedef struct {
    struct {
        char node[WORLD_NAME_BYTES], identifier[WORLD_NAME_BYTES];
        dv_plan_node says;
    } live[NODES_MAX];
    size_t count;
    int64_t zxid; /* the party's pzxid */
    unsigned made;
    dv_plan_set *set; /* that of the writer, whose tag all carry who come from now on */
    dv_plan_options options;
    dv_plan *plan, *before; /* the newest, and the one that it was made from */
} world;

static inline void world_begin(world *w, size_t item_count) {
    *w = (world){.zxid = 100, .set = numbered_set("i", item_count)};
}

static inline void world_end(world *w) {
    dv_plan_free(w->plan);
    dv_plan_free(w->before);
    dv_plan_set_unref(w->set);
}

/* A node joins; `identifier` NULL: one of its own. Returns its name. */
static inline const char *join(world *w, const char *identifier, int64_t rejoin_delay_ms) {
    assert_true(w->count < NODES_MAX);
    size_t n = w->count++;
    w->zxid += 2;
    snprintf(w->live[n].node, WORLD_NAME_BYTES, "n%04u", ++w->made);
    if (identifier != NULL) strcpy(w->live[n].identifier, identifier);
    else memcpy(w->live[n].identifier, w->live[n].node, WORLD_NAME_BYTES);
    w->live[n].says = (dv_plan_node){.tag = w->set->crc,
                                     .known = true,
                                     .is_static = rejoin_delay_ms >= 0,
                                     .weight = 1000,
                                     .zone = "",
                                     .can_balance = true,
                                     .rejoin_delay_ms = rejoin_delay_ms >= 0 ? rejoin_delay_ms : 0,
                                     .czxid = w->zxid};
    return w->live[n].node;
}

static inline const char *join_dynamic(world *w) {
    return join(w, NULL, -1);
}

static inline void die(world *w, size_t n) {
    assert_true(n < w->count);
    w->zxid += 2;
    memmove(&w->live[n], &w->live[n + 1], (w->count - n - 1) * sizeof w->live[0]);
    w->count--;
}

/* The newest node of an identifier. */
static inline size_t node_of(const world *w, const char *identifier) {
    size_t n = w->count;
    while (n > 0 && strcmp(w->live[n - 1].identifier, identifier) != 0) n--;
    assert_true(n > 0);
    return n - 1;
}

/* The party as it is; `turned`: the same in another order. */
static inline dv_plan_party party_of(world *w, dv_plan_node nodes[NODES_MAX], bool turned) {
    for (size_t n = 0; n < w->count; n++) {
        size_t from = turned ? w->count - 1 - n : n;
        nodes[n] = w->live[from].says;
        nodes[n].node = w->live[from].node;
        nodes[n].identifier = w->live[from].identifier;
    }
    return (dv_plan_party){.pzxid = w->zxid, .nodes = nodes, .count = w->count, .set = w->set, .options = w->options};
}

/* Adds what the writer adds to a plan before it writes the plan. */
static inline void seal(world *w, dv_plan *plan) {
    static unsigned guids;
    sprintf(plan->header.guid, "g%u", ++guids);
    if (plan->header.epoch[0] == '\0') strcpy(plan->header.epoch, "e1");
    plan->mzxid = ++w->zxid;
    w->zxid++;
}

/* A member that is there and does not leave. */
static inline bool works(const dv_plan_member *m) {
    return m->absent == 0 && m->leaving[0] == '\0';
}

static inline size_t load_of(const dv_plan *plan, uint32_t slot) {
    size_t load = 0;
    for (size_t i = 0; i < plan->set->count; i++) load += plan->owners[i] == slot;
    return load;
}

/* Asserts what holds of every plan that a step makes, whatever plan the step began with. */
static inline void assert_sound(const dv_plan *plan) {
    size_t workers = 0;
    for (size_t m = 0; m < plan->member_count; m++) {
        const dv_plan_member *member = &plan->members[m];
        if (m > 0) assert_true(plan->members[m - 1].slot < member->slot);
        if (member->leaving[0] != '\0') assert_int_equal(load_of(plan, member->slot), 0);
        assert_true(member->absent == 0 || member->is_static);
        assert_ptr_equal(dv_plan_find(plan, member->is_static, member->key), member);
        workers += works(member);
    }
    for (size_t i = 0; i < plan->set->count; i++) {
        if (plan->owners[i] == NONE) assert_true(workers == 0 || plan->header.is_balanced);
        else assert_non_null(dv_plan_member_at(plan, plan->owners[i]));
    }
    for (size_t n = 0; n < plan->moved_count; n++) assert_true(plan->moved[n] < plan->set->count);
}

/* One step of a writer. Its result is the same for every member that computes it, has nothing more to do in it, and
 * is read as it was written; what it makes becomes the plan, and *before the plan of before. */
static inline int step(world *w, const dv_plan_events *events) {
    dv_plan_node nodes[NODES_MAX], turned[NODES_MAX];
    dv_plan_party party = party_of(w, nodes, false), same = party_of(w, turned, true);
    dv_plan *next, *other, *read;
    int result = dv_plan_step(&next, w->plan, &party, events);
    assert_int_equal(dv_plan_step(&other, w->plan, &same, events), result);
    if (result != DV_PLAN_NEXT) {
        assert_null(next);
        return result;
    }
    assert_true(states_equal(next, other));
    dv_plan_free(other);
    assert_sound(next);
    assert_int_equal(next->header.generation, w->plan != NULL ? w->plan->header.generation + 1 : 1);
    assert_int_equal(next->header.pzxid, party.pzxid);
    assert_string_equal(next->header.after, w->plan != NULL ? w->plan->header.guid : "");
    seal(w, next);
    assert_int_equal(dv_plan_step(&other, next, &party, NULL), DV_PLAN_NOTHING); /* f(f(p)) = f(p) */
    dv_plan_text text;
    print_whole(&text, next);
    assert_int_equal(read_whole(&read, text.bytes, text.count, NULL), 0);
    assert_plans_equal(read, next);
    free(text.bytes);
    dv_plan_free(read);
    dv_plan_free(w->before);
    w->before = w->plan;
    w->plan = next;
    return result;
}

static inline const dv_plan_member *member_named(const dv_plan *plan, const char *key) {
    for (size_t m = 0; m < plan->member_count; m++) {
        if (strcmp(plan->members[m].key, key) == 0) return &plan->members[m];
    }
    return NULL;
}

/* Returns how many items left an owner that still works. Both plans have the same set. */
static inline size_t moves_of(const dv_plan *before, const dv_plan *after) {
    size_t moves = 0;
    for (size_t i = 0; i < after->set->count; i++) {
        if (before->owners[i] == NONE) continue;
        const dv_plan_member *old = dv_plan_member_at(before, before->owners[i]);
        const dv_plan_member *now = dv_plan_find(after, old->is_static, old->key);
        moves += now != NULL && now->leaving[0] == '\0' && now->slot != after->owners[i];
    }
    return moves;
}

static inline size_t load_named(const dv_plan *plan, const char *key) {
    const dv_plan_member *m = member_named(plan, key);
    assert_non_null(m);
    return load_of(plan, m->slot);
}

/* Loads of those who work are within one of each other. */
static inline void assert_even(const dv_plan *plan) {
    size_t least = SIZE_MAX, most = 0;
    for (size_t m = 0; m < plan->member_count; m++) {
        if (!works(&plan->members[m])) continue;
        size_t load = load_of(plan, plan->members[m].slot);
        if (load < least) least = load;
        if (load > most) most = load;
    }
    assert_true(most <= least + 1 || least == SIZE_MAX);
}

#endif
