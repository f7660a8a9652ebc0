/* Plans of pools with an operator, loads, tags and caps: D48 to D50, A9, A10, D47's rest.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Each plan is held against the one that it was made from, be it a member's or the operator's.
 *
 * Excused:
 *  - Plans of whose party one node's member is not known, and plans that were made from one that nobody can read.
 *  - Wishes and loads after somebody has deleted chunks: members may know what nobody else can read.
 *  - Wishes and loads after a root without them, as an older release writes it: each member keeps those that it read
 *    last, which others may have changed since, and a new one knows none.
 *  - The rest of a reader that has not seen the plan which moved items for load (D47): only plans of one writer count.
 *  - Items without an owner while somebody is absent (D18), or all weights are 0 (A6). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "operator.h"
#include "znode/path.h"

enum { DRIFT_PARTS = 100, REST_MS = 180000 };

/* ---- what members may know ---- */

void sim_wishes_note(sim_plan_version *v, const sim_plan_version *before, bool is_spoiled) {
    const dv_plan *plan = v->plan;
    v->wishes = plan && plan->wishes ? plan->wishes : before ? before->wishes : NULL;
    v->loads = plan && plan->loads ? plan->loads : before ? before->loads : NULL;
    bool has_items = plan && plan->set->count > 0; /* Nobody follows a generation 0: members keep theirs. */
    if (v->loads && has_items && v->loads->count != plan->set->count) v->loads = NULL;
    v->is_vague = is_spoiled || !plan || plan->wishes != v->wishes || plan->loads != v->loads;
}

bool sim_plan_is_followed(const sim_plan_version *v, const dv_plan *plan) {
    const dv_plan *stood = v->plan;
    dv_plan like = *plan;
    bool wishes = dv_wishes_equal(plan->wishes, stood->wishes) || (v->is_vague && !stood->wishes);
    bool loads = dv_loads_equal(plan->loads, stood->loads) || (v->is_vague && !stood->loads);
    like.wishes = stood->wishes;
    like.loads = stood->loads;
    return wishes && loads && sim_plans_equal(&like, stood);
}

/* ---- members and items ---- */

static bool is_there(const dv_plan_member *m) {
    return m && m->leaving[0] == '\0' && m->absent == 0;
}

static const char *identifier_of(const dv_plan_member *m) {
    const char *dash = m->is_static ? NULL : strchr(m->key, '-');
    return dash ? dash + 1 : m->key;
}

static size_t find_item(const dv_plan *plan, const char *name) {
    const char **at =
        plan->set->count ? bsearch(&name, plan->set->names, plan->set->count, sizeof *plan->set->names, dv_name_compare)
                         : NULL;
    return at ? (size_t)(at - plan->set->names) : SIZE_MAX;
}

static const dv_plan_member *owner_of(const dv_plan *plan, const char *name) {
    size_t item = find_item(plan, name);
    uint32_t slot = item == SIZE_MAX ? DV_PLAN_NO_SLOT : plan->owners[item];
    return slot == DV_PLAN_NO_SLOT ? NULL : dv_plan_member_at(plan, slot);
}

static bool has_tag(const dv_plan_member *m, const char *tag) {
    char list[DV_TAGS_BYTES + 2], one[DV_TAG_BYTES_MAX + 3];
    snprintf(list, sizeof list, ",%s,", m->tags);
    snprintf(one, sizeof one, ",%s,", tag);
    return strstr(list, one) != NULL;
}

static bool has_wish(const dv_plan *plan, dv_wish_kind kind, const char *name) {
    return plan->header.is_balanced && dv_wishes_find(plan->wishes, kind, name);
}

bool sim_is_paused(const dv_plan *plan, const char *name) {
    return has_wish(plan, DV_WISH_PAUSE, name);
}

bool sim_is_placed(const dv_plan *before, const dv_plan *after, const char *name) {
    return has_wish(after, DV_WISH_PIN, name) || has_wish(after, DV_WISH_MOVE, name) || sim_is_paused(after, name) ||
           sim_is_paused(before, name);
}

/* ---- D48: which wishes there are ---- */

static const sim_ask *ask_of(const sim_world *w, const dv_wish *wish) {
    static const dv_ask_kind kinds[DV_WISH_KINDS] = {DV_ASK_MOVE, DV_ASK_NEED, DV_ASK_OPTION, DV_ASK_PAUSE, DV_ASK_PIN};
    const struct sim_operator *o = w->plans_truth->hand;
    size_t number = (size_t)atoi(wish->by);
    const sim_ask *ask = number < o->ask_count ? &o->asks[number] : NULL;
    bool same = ask && ask->ask.kind == kinds[wish->kind] && !ask->ask.undo && strcmp(ask->name, wish->name) == 0;
    return same ? ask : NULL;
}

/* Returns whether somebody has asked for its end, and not yet got it. */
static bool may_end(const sim_world *w, const dv_wish *wish) {
    static const dv_ask_kind kinds[DV_WISH_KINDS] = {DV_ASK_PIN, DV_ASK_NEED, DV_ASK_OPTION, DV_ASK_PAUSE, DV_ASK_PIN};
    const struct sim_operator *o = w->plans_truth->hand;
    for (size_t i = 0; i < o->ask_count; i++) {
        const sim_ask *ask = &o->asks[i];
        bool undoes = ask->ask.undo && ask->ask.kind == kinds[wish->kind];
        bool replaces = wish->kind == DV_WISH_MOVE && ask->ask.kind == DV_ASK_PIN;
        if ((undoes || replaces) && !ask->ended && strcmp(ask->name, wish->name) == 0) return true;
    }
    return false;
}

static void check_pause(sim_world *w, const dv_plan *from, const dv_plan *plan, const dv_wish *wish) {
    const dv_plan_member *had = owner_of(from, wish->name);
    bool stays = had && dv_plan_find(plan, had->is_static, had->key);
    const char *key = stays ? had->key : "";
    if (had && !stays && strcmp(wish->value, had->key) == 0) return; /* It was there when the wish came. */
    if (strcmp(wish->value, key) != 0)
        sim_violate(w, "D48", "%s is paused, and remembers %s, and was with %s", wish->name, wish->value, key);
}

static bool is_new(const dv_wishes *base, const dv_wish *wish) {
    const dv_wish *was = dv_wishes_find(base, wish->kind, wish->name);
    return !was || strcmp(was->by, wish->by) != 0 || strcmp(was->value, wish->value) != 0;
}

/* Returns NULL, or what is wrong with the way from these wishes to the plan's. */
static const dv_wish *find_wrong(sim_world *w, const dv_wishes *base, const dv_plan *plan) {
    for (size_t i = 0; plan->wishes && i < plan->wishes->count; i++) {
        const dv_wish *wish = &plan->wishes->list[i];
        const sim_ask *ask = ask_of(w, wish);
        if (is_new(base, wish) && (!ask || ask->ended)) return wish;
    }
    for (size_t i = 0; base && i < base->count; i++) {
        const dv_wish *was = &base->list[i];
        bool stands = dv_wishes_find(plan->wishes, was->kind, was->name) != NULL;
        bool replaced = (was->kind == DV_WISH_PIN && dv_wishes_find(plan->wishes, DV_WISH_MOVE, was->name)) ||
                        (was->kind == DV_WISH_MOVE && dv_wishes_find(plan->wishes, DV_WISH_PIN, was->name));
        const dv_plan_member *m = dv_plan_find(plan, true, was->value);
        if (!m) m = dv_plan_find(plan, false, was->value);
        bool over = was->kind == DV_WISH_MOVE && (!m || m->leaving[0]);
        if (!stands && !replaced && !over && !may_end(w, was)) return was;
    }
    return NULL;
}

/* A wish comes only if the operator asks for it, and none goes by itself but a move with its member. */
static void check_wishes(sim_world *w, const sim_plan_version *from, const sim_plan_version *v) {
    const dv_plan *plan = v->plan;
    const dv_wish *wrong = find_wrong(w, from->wishes, plan);
    if (wrong)
        sim_violate(w, "D48", "the wish %s (%s of %s) %s, and nobody asked for that", wrong->by,
                    dv_wish_kind_text(wrong->kind), wrong->name,
                    dv_wishes_find(plan->wishes, wrong->kind, wrong->name) ? "came" : "went");
    for (size_t i = 0; plan->wishes && i < plan->wishes->count; i++) {
        const dv_wish *wish = &plan->wishes->list[i];
        if (wish->kind == DV_WISH_PAUSE && !dv_wishes_find(from->wishes, DV_WISH_PAUSE, wish->name))
            check_pause(w, from->plan, plan, wish);
        if (wish->kind == DV_WISH_MOVE) {
            const dv_plan_member *m = dv_plan_find(plan, true, wish->value);
            if (!m) m = dv_plan_find(plan, false, wish->value);
            if (!m || m->leaving[0])
                sim_violate(w, "D48", "%s is moved to %s, which has gone", wish->name, wish->value);
        }
    }
}

/* ---- D48: whether they are in force ---- */

static bool all_know(const sim_world *w, int64_t pzxid) {
    const struct sim_plans_truth *t = w->plans_truth;
    for (size_t i = 0; i < t->party_count; i++) {
        const sim_party_node *p = &t->party[i];
        if (p->is_member && sim_party_node_lived(p, pzxid) && p->level < DV_LEVEL_BALANCE) return false;
    }
    return true;
}

static bool has_rules(const dv_plan *plan) {
    bool any = plan->loads || (plan->wishes && plan->wishes->count > 0);
    for (size_t m = 0; m < plan->member_count; m++) any |= plan->members[m].tags[0] || plan->members[m].cap;
    return any;
}

static void check_algorithm(sim_world *w, const dv_plan *from, const dv_plan *plan) {
    bool know = all_know(w, plan->header.pzxid), rules = has_rules(plan);
    uint64_t *met = w->coverage->plan_meetings;
    if (plan->header.is_balanced != (know && rules))
        sim_violate(w, "D48", "wishes and loads are %sin force, and %s know them all, and there are %s",
                    plan->header.is_balanced ? "" : "not ", know ? "members" : "not all members",
                    rules ? "some" : "none");
    met[SIM_MET_SUSPENDED] += from && from->header.is_balanced && rules && !know;
    met[SIM_MET_IN_FORCE_AGAIN] += from && !from->header.is_balanced && has_rules(from) && plan->header.is_balanced;
}

/* ---- D48: where items are ---- */

static void check_pinned(sim_world *w, const dv_plan *plan, const dv_wish *wish) {
    const dv_plan_member *owner = owner_of(plan, wish->name);
    bool is_pin = wish->kind == DV_WISH_PIN, waits = true;
    if (find_item(plan, wish->name) == SIZE_MAX || dv_wishes_find(plan->wishes, DV_WISH_PAUSE, wish->name)) return;
    for (size_t m = 0; m < plan->member_count; m++) {
        const dv_plan_member *one = &plan->members[m];
        waits &= !is_there(one) || strcmp(is_pin ? identifier_of(one) : one->key, wish->value) != 0;
    }
    if (waits) return;
    w->coverage->plan_meetings[is_pin ? SIM_MET_PINNED : SIM_MET_MOVED]++;
    if (!owner || strcmp(is_pin ? identifier_of(owner) : owner->key, wish->value) != 0)
        sim_violate(w, "D48", "%s is to be with %s, and is with %s", wish->name, wish->value,
                    owner ? owner->key : "nobody");
}

static void check_places(sim_world *w, const dv_plan *plan) {
    for (size_t i = 0; plan->wishes && i < plan->wishes->count; i++) {
        const dv_wish *wish = &plan->wishes->list[i];
        if (wish->kind == DV_WISH_PIN || wish->kind == DV_WISH_MOVE) check_pinned(w, plan, wish);
        if (wish->kind != DV_WISH_PAUSE) continue;
        w->coverage->plan_meetings[SIM_MET_PAUSED]++;
        if (owner_of(plan, wish->name))
            sim_violate(w, "D48", "%s is paused, and is with %s", wish->name, owner_of(plan, wish->name)->key);
    }
}

/* It is back with who had it; unless a pin, a tag or a cap has a say. */
static void check_resumed(sim_world *w, const dv_plan *from, const dv_plan *plan) {
    for (size_t i = 0; from->wishes && i < from->wishes->count; i++) {
        const dv_wish *was = &from->wishes->list[i];
        if (was->kind != DV_WISH_PAUSE || dv_wishes_find(plan->wishes, DV_WISH_PAUSE, was->name)) continue;
        const dv_plan_member *owner = owner_of(plan, was->name);
        w->coverage->plan_meetings[SIM_MET_RESUMED] += owner && strcmp(owner->key, was->value) == 0;
    }
}

/* ---- A9 ---- */

static size_t load_of(const dv_plan *plan, const dv_plan_member *m) {
    size_t load = 0;
    for (size_t i = 0; i < plan->set->count; i++) load += plan->owners[i] == m->slot;
    return load;
}

static bool may_take(const dv_plan *plan, const dv_plan_member *m, const char *tag) {
    bool fits = is_there(m) && m->weight > 0 && (!tag || has_tag(m, tag));
    return fits && (m->cap == 0 || load_of(plan, m) < m->cap);
}

/* An item is given only to a member that may take it. */
static void check_given(sim_world *w, const dv_plan *plan, const char *item, const dv_plan_member *owner) {
    const char *tag = dv_wishes_tag(plan->wishes, item);
    if (tag && !has_tag(owner, tag))
        sim_violate(w, "A9", "%s needs the tag %s, and was given to %s, which lacks it", item, tag, owner->key);
    if (owner->cap && load_of(plan, owner) > owner->cap)
        sim_violate(w, "A9", "%s was given to %s, which has %zu items then, and takes %u", item, owner->key,
                    load_of(plan, owner), owner->cap);
}

static bool all_weigh_nothing(const dv_plan *plan) {
    bool any = false;
    for (size_t m = 0; m < plan->member_count; m++) any |= is_there(&plan->members[m]) && plan->members[m].weight > 0;
    return !any;
}

static bool somebody_is_absent(const dv_plan *plan) {
    for (size_t m = 0; m < plan->member_count; m++) {
        if (plan->members[m].absent) return true;
    }
    return false;
}

static void check_ownerless(sim_world *w, const dv_plan *plan, const char *item) {
    const char *tag = dv_wishes_tag(plan->wishes, item);
    if (dv_wishes_find(plan->wishes, DV_WISH_PAUSE, item) || somebody_is_absent(plan)) return;
    w->coverage->plan_meetings[SIM_MET_NO_TAKER]++;
    for (size_t m = 0; m < plan->member_count; m++) {
        if (may_take(plan, &plan->members[m], tag))
            sim_violate(w, "A9", "%s has no owner, and %s may take it", item, plan->members[m].key);
    }
}

static void check_rules(sim_world *w, const dv_plan *from, const dv_plan *plan) {
    if (all_weigh_nothing(plan)) return;
    for (size_t i = 0; i < plan->set->count; i++) {
        const char *item = plan->set->names[i];
        const dv_plan_member *owner = owner_of(plan, item), *had = from ? owner_of(from, item) : NULL;
        bool kept = owner && had && had->is_static == owner->is_static && strcmp(had->key, owner->key) == 0;
        if (!owner) check_ownerless(w, plan, item);
        else if (from && !kept && !sim_is_placed(from, plan, item)) check_given(w, plan, item, owner);
    }
}

/* ---- D49, D50: loads ---- */

/* Returns the class that an item had; DV_CLASS_NONE: none. */
static uint8_t class_in(const dv_loads *loads, const dv_plan_set *set, const char *name, const char *unit) {
    const char **at = loads && set->count && strcmp(loads->unit, unit) == 0
                          ? bsearch(&name, set->names, set->count, sizeof *set->names, dv_name_compare)
                          : NULL;
    return at ? loads->classes[at - set->names] : DV_CLASS_NONE;
}

static void check_classes(sim_world *w, const sim_plan_version *from, const dv_plan *plan) {
    const struct sim_operator *o = w->plans_truth->hand;
    const dv_loads *loads = plan->loads;
    if (!loads) {
        if (from && from->plan->loads)
            sim_violate(w, "D49", "generation %llu has lost the loads", (unsigned long long)plan->header.generation);
        return;
    }
    size_t unit = strcmp(loads->unit, "load") == 0 ? 0 : 1;
    for (size_t i = 0; i < loads->count; i++) {
        const char *name = plan->set->names[i];
        uint8_t was = from ? class_in(from->loads, from->plan->set, name, loads->unit) : DV_CLASS_NONE;
        bool told = loads->classes[i] == DV_CLASS_NONE || o->told[unit][atoi(name + 5)][loads->classes[i]];
        bool same = loads->classes[i] == was;
        bool lost = !same && was != DV_CLASS_NONE && loads->classes[i] == DV_CLASS_NONE && from->plan->loads;
        if ((same || told) && !lost) continue;
        sim_violate(w, "D50", "%s has the class %u, and had %u, and no report says so", name, loads->classes[i], was);
        return;
    }
}

static bool is_given(const dv_loads *loads, uint32_t item) {
    for (size_t g = 0; g < loads->giver_count; g++) {
        for (size_t i = 0; i < loads->givers[g].count; i++) {
            if (loads->givers[g].items[i] == item) return true;
        }
    }
    return false;
}

/* Returns whether it took items for load. What hard rules took is not among what was given for it. */
static bool was_moved(const dv_plan *plan) {
    if (plan->header.reason != DV_PLAN_LOAD || !plan->loads) return false;
    for (size_t n = 0; n < plan->moved_count; n++) {
        if (is_given(plan->loads, plan->moved[n])) return true;
    }
    return false;
}

/* D47: by one writer, three half-lives lie between two steps for load that move items. */
static void check_rest(sim_world *w, const sim_plan_version *v) {
    const struct sim_plans_truth *t = w->plans_truth;
    if (!was_moved(v->plan)) return;
    w->coverage->plan_meetings[SIM_MET_LOAD_MOVED]++;
    for (size_t i = t->count; i-- > 0;) {
        const sim_plan_version *last = &t->versions[i];
        if (last->foreign) return;
        if (!last->plan || !was_moved(last->plan)) continue;
        int64_t waited_ms = v->at_ms - last->at_ms;
        bool same = last->writer != 0 && last->writer == v->writer;
        if (same && waited_ms + waited_ms / DRIFT_PARTS + 1 < REST_MS)
            sim_violate(w, "D47", "items moved for load twice within %lld ms", (long long)waited_ms);
        w->coverage->plan_meetings[SIM_MET_LOAD_MOVED_AGAIN] += same;
        return;
    }
}

/* D50: a step for load alone moves no more than one in twenty, where nothing else is said. */
static void check_load_moves(sim_world *w, const dv_plan *from, const dv_plan *plan) {
    enum { PART = 20 };
    size_t most = plan->set->count / PART > 1 ? plan->set->count / PART : 1, moves = 0;
    if (plan->header.reason != DV_PLAN_LOAD || plan->header.options.max_moves > 0) return;
    for (size_t i = 0; i < plan->set->count; i++) {
        const char *name = plan->set->names[i];
        const dv_plan_member *had = owner_of(from, name), *has = owner_of(plan, name);
        moves += had && had != has && (!has || strcmp(had->key, has->key) != 0) && !sim_is_placed(from, plan, name);
    }
    if (moves > most) sim_violate(w, "D50", "%zu items moved for load at once, and %zu may", moves, most);
}

/* ---- all ---- */

void sim_wishes_check(sim_world *w, const sim_plan_version *from, const sim_plan_version *v) {
    const dv_plan *plan = v->plan, *old = from ? from->plan : NULL;
    uint64_t *met = w->coverage->plan_meetings;
    bool known = !w->plans_truth->chunks_spoiled && !(from && from->is_vague);
    if (from && known) check_wishes(w, from, v);
    if (known) check_classes(w, from, plan);
    check_algorithm(w, old, plan);
    met[SIM_MET_KEPT_PARTS] +=
        from && ((!old->wishes && plan->wishes && plan->wishes->count) || (!old->loads && from->loads && plan->loads));
    met[SIM_MET_LOADS] += plan->loads && plan->header.reason == DV_PLAN_LOAD;
    check_rest(w, v);
    if (!plan->header.is_balanced) return;
    check_places(w, plan);
    check_rules(w, old, plan);
    if (old) check_resumed(w, old, plan);
    if (old) check_load_moves(w, old, plan);
}
