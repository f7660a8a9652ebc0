/* The sticky plan over long histories by chance, beside a model that knows nothing of its code; size.
 * SPDX-License-Identifier: Apache-2.0 */
#include "plan_world.h"

static world w;

/* --- the model: who should be in the plan, and as what --- */

enum { ENTRIES_MAX = 2 * NODES_MAX, SET_MAX = 40 };

typedef struct {
    char key[WORLD_NAME_BYTES], leaving[WORLD_NAME_BYTES];
    bool is_static;
    uint32_t weight, configured; /* the plan's, and what the node came with that a plan had last */
    int64_t delay, absent;
} entry;

static entry entries[ENTRIES_MAX];
static size_t entry_count;

/* The events beside the party in one step. */
typedef struct {
    char expired_key[WORLD_NAME_BYTES], weight_key[WORLD_NAME_BYTES], leaving[WORLD_NAME_BYTES];
    char round_over[DV_GUID_BYTES];
    dv_plan_expiry expiry;
    dv_plan_events events;
} happening;

static entry *entry_find(bool is_static, const char *key) {
    for (size_t n = 0; n < entry_count; n++) {
        if (entries[n].is_static == is_static && strcmp(entries[n].key, key) == 0) return &entries[n];
    }
    return NULL;
}

/* The newest live node of an entry, or -1. */
static int live_node(const entry *e) {
    int found = -1;
    for (size_t n = 0; n < w.count; n++) {
        if (w.live[n].says.is_static != e->is_static) continue;
        const char *key = e->is_static ? w.live[n].identifier : w.live[n].node;
        if (strcmp(key, e->key) == 0 && (found < 0 || w.live[n].says.czxid > w.live[found].says.czxid)) found = (int)n;
    }
    return found;
}

/* Makes each entry's next state by the rules D12 to D15, as they are said there. */
static void model_step(const happening *h, int64_t pzxid) {
    size_t kept = 0;
    for (size_t n = 0; n < entry_count; n++) {
        entry *e = &entries[n];
        int live = live_node(e);
        if (live >= 0) {
            e->absent = 0;
            if (e->leaving[0] != '\0' && strcmp(e->leaving, w.live[live].node) != 0) {
                e->leaving[0] = '\0';
                e->weight = w.live[live].says.weight;
            }
            if (e->is_static) e->delay = w.live[live].says.rejoin_delay_ms;
            if (e->is_static && e->configured != w.live[live].says.weight) e->weight = w.live[live].says.weight;
            e->configured = w.live[live].says.weight;
        } else {
            bool expired = h->events.expired_count > 0 && h->expiry.absent == e->absent && e->absent != 0 &&
                           strcmp(h->expiry.key, e->key) == 0;
            if (e->leaving[0] != '\0' || !e->is_static || e->delay == 0 || expired) continue;
            if (e->absent == 0) e->absent = pzxid;
        }
        entry kept_entry = *e;
        entries[kept++] = kept_entry;
    }
    entry_count = kept;
    for (size_t n = 0; n < w.count; n++) {
        bool is_static = w.live[n].says.is_static;
        const char *key = is_static ? w.live[n].identifier : w.live[n].node;
        if (entry_find(is_static, key) != NULL) continue;
        assert_true(entry_count < ENTRIES_MAX);
        entry *e = &entries[entry_count++];
        *e = (entry){.is_static = is_static};
        strcpy(e->key, key);
        int newest = live_node(e);
        e->weight = e->configured = w.live[newest].says.weight;
        e->delay = is_static ? w.live[newest].says.rejoin_delay_ms : 0;
    }
    for (size_t n = 0; n < entry_count; n++) {
        entry *e = &entries[n];
        const dv_plan_weight *weight = &h->events.weight;
        if (weight->key != NULL && strcmp(e->key, weight->key) == 0) e->weight = weight->weight;
        int live = live_node(e);
        if (h->events.leaving != NULL && live >= 0 && strcmp(w.live[live].node, h->leaving) == 0) {
            strcpy(e->leaving, h->leaving);
        }
    }
}

/* The plan has the model's entries and no others. An empty entry whose node has gone may still stand in a plan that
 * nothing else changed. */
static void assert_as_modelled(const dv_plan *plan, bool written) {
    size_t found = 0;
    for (size_t m = 0; m < plan->member_count; m++) {
        const dv_plan_member *member = &plan->members[m];
        const entry *e = entry_find(member->is_static, member->key);
        if (e == NULL && !written && member->leaving[0] != '\0') continue;
        assert_non_null(e);
        found++;
        assert_int_equal(member->weight, e->weight);
        assert_int_equal(member->absent, e->absent);
        assert_int_equal(member->rejoin_delay_ms, e->delay);
        assert_string_equal(member->leaving, e->leaving);
    }
    assert_int_equal(found, entry_count);
}

/* --- the bounds --- */

/* Said plainly, without zones: all who work have their share of what those who are absent do not have, rounded up or
 * down; or all have, those who are absent counted in. */
static bool balanced(const dv_plan *plan, bool absent_too) {
    uint64_t weight = 0, items = 0;
    for (size_t m = 0; m < plan->member_count; m++) {
        const dv_plan_member *member = &plan->members[m];
        if (member->leaving[0] != '\0' || (member->absent != 0 && !absent_too)) continue;
        weight += member->weight;
        items += load_of(plan, member->slot);
    }
    for (size_t m = 0; m < plan->member_count; m++) {
        const dv_plan_member *member = &plan->members[m];
        if (member->leaving[0] != '\0' || (member->absent != 0 && !absent_too) || weight == 0) continue;
        uint64_t share = items * member->weight, load = load_of(plan, member->slot);
        if (load < share / weight || load > share / weight + (share % weight != 0)) return false;
    }
    return true;
}

static const char *owner_key(const dv_plan *plan, size_t i) {
    return plan->owners[i] == NONE ? "" : dv_plan_member_at(plan, plan->owners[i])->key;
}

/* A member that is absent before and after keeps its items and gets none; moves are within max_moves, and listed. */
static void assert_bounds(const dv_plan *before, const dv_plan *after) {
    uint32_t max_moves = after->header.options.max_moves;
    size_t moves = 0, at = 0;
    for (size_t i = 0; i < after->set->count; i++) {
        while (at < before->set->count && strcmp(before->set->names[at], after->set->names[i]) < 0) at++;
        bool old_item = at < before->set->count && strcmp(before->set->names[at], after->set->names[i]) == 0;
        const char *from = old_item ? owner_key(before, at) : "", *to = owner_key(after, i);
        const dv_plan_member *loser = member_named(after, from), *winner = member_named(after, to);
        if (strcmp(from, to) == 0) continue;
        if (loser != NULL) assert_int_equal(loser->absent, 0);
        if (winner != NULL) assert_int_equal(winner->absent, 0);
        moves += loser != NULL && works(loser);
    }
    if (max_moves > 0) assert_true(moves <= max_moves);
    if (max_moves > 0 && moves > 0) assert_int_equal(after->moved_count, moves);
    if (max_moves == 0) assert_int_equal(after->moved_count, 0);
    bool zoned = false;
    for (size_t m = 0; m < after->member_count; m++) zoned |= after->members[m].zone[0] != '\0';
    if (after->moved_count == 0 && !zoned) assert_true(balanced(after, false) || balanced(after, true));
}

/* --- what happens --- */

static void change_party(bool zoned) {
    static const uint32_t weights[] = {1000, 1000, 1000, 0, 500, 3000};
    size_t what = chance(10);
    if (w.count < 2 || (what < 3 && w.count + 2 < NODES_MAX / 2)) {
        join_dynamic(&w);
    } else if (what < 6 && w.count + 2 < NODES_MAX) {
        char name[] = {'s', (char)('0' + chance(6)), '\0'};
        join(&w, name, chance(8) ? 30000 : 0);
    } else if (what < 9) {
        die(&w, chance(w.count));
    } else {
        size_t n = chance(w.count);
        char name[WORLD_NAME_BYTES];
        strcpy(name, w.live[n].identifier);
        bool is_static = w.live[n].says.is_static;
        die(&w, n);
        join(&w, is_static ? name : NULL, is_static ? 30000 : -1);
    }
    if (w.live[w.count - 1].says.czxid == w.zxid) { /* somebody came */
        w.live[w.count - 1].says.weight = weights[chance(COUNT(weights))];
        if (zoned) w.live[w.count - 1].says.zone = (const char *[]){"", "a", "b"}[chance(3)];
    }
}

static dv_plan_set *set_by_chance(void) {
    char names[SET_MAX][8];
    const char *list[SET_MAX];
    size_t count = 0;
    for (unsigned i = 0; i < SET_MAX; i++) {
        if (chance(3) == 0) continue;
        sprintf(names[count], "i%02u", i);
        list[count] = names[count];
        count++;
    }
    return dv_plan_set_make(list, count);
}

static void add_events(happening *h) {
    const dv_plan *plan = w.plan;
    dv_plan_events *e = &h->events;
    if (chance(3) == 0 && plan->member_count > 0) {
        const dv_plan_member *m = &plan->members[chance(plan->member_count)];
        strcpy(h->expired_key, m->key);
        h->expiry = (dv_plan_expiry){h->expired_key, chance(4) ? m->absent : (int64_t)chance(1000)};
        e->expired = &h->expiry;
        e->expired_count = 1;
    }
    if (chance(6) == 0 && plan->member_count > 0) {
        strcpy(h->weight_key, plan->members[chance(plan->member_count)].key);
        e->weight = (dv_plan_weight){h->weight_key, (uint32_t[]){0, 1000, 2500}[chance(3)]};
    }
    if (chance(6) == 0 && w.count > 0) {
        strcpy(h->leaving, w.live[chance(w.count)].node);
        e->leaving = h->leaving;
    }
    if (chance(12) == 0) w.plan->header.options.max_moves = (uint32_t)chance(2) * (uint32_t)chance(6);
    if (chance(3) == 0) {
        strcpy(h->round_over, chance(4) ? plan->header.guid : plan->header.after);
        e->round_over = h->round_over;
    }
    if (chance(12) == 0) e->set = set_by_chance();
}

/* A new configuration: carried by some, or by all. */
static void deploy(void) {
    dv_plan_set_unref(w.set);
    w.set = set_by_chance();
    size_t percent = chance(2) ? 100 : 50;
    for (size_t n = 0; n < w.count; n++) {
        if (chance(100) < percent) w.live[n].says.tag = w.set->crc;
    }
}

static bool all_carry_own(void) {
    for (size_t n = 0; n < w.count; n++) {
        if (w.live[n].says.tag != w.set->crc) return false;
    }
    return w.count > 0;
}

/* Thousands of changes of all kinds, the latter half with zones: the plan is what the model says, within the bounds, at
 * every step. */
TEST(test_histories) {
    chance_begin();
    size_t written = 0, steps = 4000;
    entry_count = 0;
    world_begin(&w, 20);
    join_dynamic(&w);
    for (size_t n = 0; n < steps; n++) {
        happening h = {0};
        if (w.plan == NULL || chance(4)) change_party(n > steps / 2);
        if (chance(20) == 0) deploy();
        if (w.plan != NULL) add_events(&h);
        model_step(&h, w.zxid);
        const dv_plan *old = w.plan;
        uint32_t old_tag = old != NULL ? old->header.tag : 0;
        int result = step(&w, &h.events);
        assert_true(result == DV_PLAN_NEXT || result == DV_PLAN_NOTHING);
        assert_as_modelled(w.plan, result == DV_PLAN_NEXT);
        if (result == DV_PLAN_NEXT && w.before != NULL) assert_bounds(w.before, w.plan);
        bool adopted = old != NULL && all_carry_own() && old_tag != w.set->crc;
        if (adopted) assert_int_equal(w.plan->header.tag, w.set->crc);
        else if (old != NULL) assert_int_equal(w.plan->header.tag, old_tag);
        if (h.events.set != NULL) assert_true(dv_plan_set_equal(w.plan->set, h.events.set));
        else if (adopted) assert_true(dv_plan_set_equal(w.plan->set, w.set));
        dv_plan_set_unref(h.events.set);
        written += result == DV_PLAN_NEXT;
    }
    print_message("%zu of %zu steps wrote a plan\n", written, steps);
    assert_true(written > steps / 2);
    world_end(&w);
}

/* Joins and losses by turns, weights equal: each moves exactly what it must, over the whole history, and each plan is
 * reached by a delta from the one before. */
TEST(test_exact_histories) {
    chance_begin();
    world_begin(&w, 97);
    for (size_t n = 0; n < 2000; n++) {
        bool joins = w.count < 2 || (w.count < NODES_MAX && chance(2));
        if (joins) join_dynamic(&w);
        else die(&w, chance(w.count));
        assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
        assert_even(w.plan);
        if (w.before == NULL) continue;
        assert_int_equal(moves_of(w.before, w.plan), joins ? 97 / w.count : 0);
        dv_plan *follower = dv_plan_copy(w.before);
        assert_non_null(follower);
        dv_plan_text delta;
        dv_plan_root root;
        assert_int_equal(dv_plan_print_delta(&delta, w.before, w.plan), 0);
        assert_int_equal(dv_plan_root_describe(&root, w.plan), 0);
        assert_int_equal(dv_plan_apply(follower, delta.bytes, delta.count, NULL), 0);
        assert_int_equal(dv_plan_complete(follower, &root, NULL), 0);
        assert_plans_equal(follower, w.plan);
        dv_plan_free(follower);
        dv_plan_root_clear(&root);
        free(delta.bytes);
    }
    world_end(&w);
}

/* --- size --- */

enum { LARGE_ITEMS = 100000, LARGE_MEMBERS = 1000 };

static dv_plan *timed_step(const dv_plan *previous, dv_plan_party *party, const char *what) {
    dv_plan *next;
    double from = now_ms();
    assert_int_equal(dv_plan_step(&next, previous, party, NULL), DV_PLAN_NEXT);
    print_message("%s: %.1f ms\n", what, now_ms() - from);
    dv_plan *none;
    from = now_ms();
    assert_int_equal(dv_plan_step(&none, next, party, NULL), DV_PLAN_NOTHING);
    print_message("  nothing to do: %.1f ms\n", now_ms() - from);
    party->pzxid++;
    return next;
}

/* The largest pool that the library is meant for takes its steps within some tens of milliseconds, on a small stack. */
TEST(test_large) {
    static dv_plan_node nodes[LARGE_MEMBERS + 1];
    static char names[LARGE_MEMBERS + 1][WORLD_NAME_BYTES];
    dv_plan_set *set = numbered_set("item-", LARGE_ITEMS);
    for (unsigned n = 0; n <= LARGE_MEMBERS; n++) {
        snprintf(names[n], WORLD_NAME_BYTES, "member-%06u", n * 7919 % 100003);
        nodes[n] = (dv_plan_node){.node = names[n],
                                  .identifier = names[n],
                                  .tag = set->crc,
                                  .known = true,
                                  .is_static = n % 2,
                                  .weight = 1000,
                                  .zone = "",
                                  .rejoin_delay_ms = 30000,
                                  .czxid = 5};
    }
    dv_plan_party party = {.pzxid = 10, .nodes = nodes, .count = LARGE_MEMBERS, .set = set};
    dv_plan *first = timed_step(NULL, &party, "first plan");
    party.count++;
    dv_plan *joined = timed_step(first, &party, "join");
    assert_int_equal(moves_of(first, joined), LARGE_ITEMS / (LARGE_MEMBERS + 1));
    party.nodes++;
    party.count--;
    dv_plan *lost = timed_step(joined, &party, "loss"); /* the first is not static */
    assert_int_equal(moves_of(joined, lost), 0);
    party.nodes++;
    party.count--;
    dv_plan *absent = timed_step(lost, &party, "absence");
    assert_int_equal(moves_of(lost, absent), 0);
    dv_plan_free(first);
    dv_plan_free(joined);
    dv_plan_free(lost);
    dv_plan_free(absent);
    dv_plan_set_unref(set);
}
