/* See step_code.h. SPDX-License-Identifier: Apache-2.0 */
#include "cases/step_code.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cases/check.h"
#include "plan/step.h"

enum { SETS = 1 << STEP_ITEMS };

static const char *const ITEMS[STEP_ITEMS] = {"i0", "i1", "i2", "i3", "i4"};
static const char *const NODES[STEP_NODES] = {"n0-a", "n1-b", "n2-c", "n3-a", "n4-d", "n5-e", "n6-f"};
static const char *const IDENTIFIERS[STEP_MEMBERS] = {"a", "b", "c", "a", "d"};
static const char *const ZONES[] = {"", "x", "y"}, *const TAGS[] = {"", "t", "u", "t,u"};
static const char *const UNITS[] = {"load", "cpu"};
static dv_plan_set *sets[SETS];

static unsigned number_of(uint8_t set, unsigned item) {
    return (unsigned)__builtin_popcount(set & ((1u << item) - 1));
}

void step_begin(void) {
    for (unsigned set = 1; set < SETS; set++) {
        const char *names[STEP_ITEMS];
        size_t count = 0;
        for (unsigned i = 0; i < STEP_ITEMS; i++)
            if (set >> i & 1) names[count++] = ITEMS[i];
        sets[set] = dv_plan_set_make(names, count);
        CHECK(sets[set] != NULL);
    }
}

void step_end(void) {
    for (unsigned set = 1; set < SETS; set++) dv_plan_set_unref(sets[set]);
}

static uint8_t set_of(uint32_t crc) {
    unsigned set = 1;
    while (set < SETS && sets[set]->crc != crc) set++;
    CHECK(set < SETS);
    return (uint8_t)set;
}

static char *text(const char *constant) {
    return (char *)(uintptr_t)constant; /* is copied */
}

static const char *key_of(const step_plan *plan, unsigned member) {
    return plan->members[member].is_static ? IDENTIFIERS[member] : NODES[member];
}

/* ---- wishes ---- */

static void wish(dv_wishes **wishes, dv_wish_kind kind, const char *name, const char *value) {
    dv_wishes *next;
    const dv_wish_event event = {.wish = {kind, name, value, "me", "", 1}};
    CHECK(dv_wishes_change(&next, *wishes, &event) == 0);
    dv_wishes_unref(*wishes);
    *wishes = next;
}

static void undo(dv_wishes **wishes, dv_wish_kind kind, const char *name) {
    dv_wishes *next;
    const dv_wish_event event = {.wish = {kind, name, "", "", "", 1}, .undo = true};
    CHECK(dv_wishes_change(&next, *wishes, &event) == 0);
    dv_wishes_unref(*wishes);
    *wishes = next;
}

static dv_wishes *make_wishes(const step_plan *plan) {
    const step_wishes *w = &plan->wishes;
    dv_wishes *wishes = NULL;
    char number[16];
    if (!w->are_there) return NULL;
    wish(&wishes, DV_WISH_OPTION, "none", "1");
    undo(&wishes, DV_WISH_OPTION, "none");
    for (unsigned i = 0; i < STEP_ITEMS; i++) {
        unsigned whom = w->whom[i], had = w->had[i];
        if (w->place[i] == STEP_MOVE) wish(&wishes, DV_WISH_MOVE, ITEMS[i], key_of(plan, whom));
        if (w->place[i] == STEP_PIN) wish(&wishes, DV_WISH_PIN, ITEMS[i], IDENTIFIERS[whom]);
        if (w->paused[i]) wish(&wishes, DV_WISH_PAUSE, ITEMS[i], had == STEP_NOBODY ? "" : key_of(plan, had));
        if (w->need[i]) wish(&wishes, DV_WISH_NEED, ITEMS[i], TAGS[w->need[i]]);
    }
    if (w->all_need) wish(&wishes, DV_WISH_NEED, "i*", TAGS[w->all_need]);
    snprintf(number, sizeof number, "%u", w->max_moves);
    if (w->has_max_moves) wish(&wishes, DV_WISH_OPTION, "max-moves", number);
    snprintf(number, sizeof number, "%u.%02u", w->imbalance_percent / 100, w->imbalance_percent % 100);
    if (w->imbalance_percent > 0) wish(&wishes, DV_WISH_OPTION, "imbalance-max", number);
    return wishes;
}

static uint8_t find(const char *const *texts, unsigned count, const char *wanted) {
    unsigned n = 0;
    while (n < count && strcmp(texts[n], wanted) != 0) n++;
    CHECK(n < count);
    return (uint8_t)n;
}

/* Returns the member with that key; STEP_NOBODY for "". */
static uint8_t find_key(const step_plan *plan, const char *key) {
    for (unsigned i = 0; i < STEP_MEMBERS; i++)
        if (strcmp(key_of(plan, i), key) == 0) return (uint8_t)i;
    CHECK(key[0] == '\0');
    return STEP_NOBODY;
}

static void fill_in_need(step_wishes *to, const dv_wish *w) {
    uint8_t tag = find(TAGS, 3, w->value);
    if (strcmp(w->name, "i*") == 0) to->all_need = tag;
    else to->need[find(ITEMS, STEP_ITEMS, w->name)] = tag;
}

static void fill_in_option(step_wishes *to, const dv_wish *w) {
    bool is_moves = strcmp(w->name, "max-moves") == 0;
    if (is_moves) to->max_moves = (uint32_t)strtoul(w->value, NULL, 10);
    else to->imbalance_percent = (uint32_t)(strtod(w->value, NULL) * 100 + 0.5);
    to->has_max_moves = to->has_max_moves || is_moves;
}

static void fill_in_wishes(step_plan *plan, const dv_wishes *wishes) {
    step_wishes *to = &plan->wishes;
    to->are_there = wishes != NULL;
    for (size_t n = 0; wishes != NULL && n < wishes->count; n++) {
        const dv_wish *w = &wishes->list[n];
        bool has_item = w->kind != DV_WISH_NEED && w->kind != DV_WISH_OPTION;
        uint8_t i = has_item ? find(ITEMS, STEP_ITEMS, w->name) : 0;
        switch (w->kind) {
        case DV_WISH_MOVE:
        case DV_WISH_PIN:
            CHECK(to->place[i] == 0);
            to->place[i] = w->kind == DV_WISH_MOVE ? STEP_MOVE : STEP_PIN;
            to->whom[i] =
                w->kind == DV_WISH_MOVE ? find_key(plan, w->value) : find(IDENTIFIERS, STEP_MEMBERS, w->value);
            break;
        case DV_WISH_PAUSE:
            to->paused[i] = true;
            to->had[i] = find_key(plan, w->value);
            break;
        case DV_WISH_NEED: fill_in_need(to, w); break;
        default: fill_in_option(to, w);
        }
    }
}

/* ---- loads ---- */

static dv_loads *make_loads(const step_loads *from, uint8_t set, bool has_givers) {
    if (!from->are_there) return NULL;
    dv_loads *loads = dv_loads_make(UNITS[from->unit], sets[set]->count);
    CHECK(loads != NULL);
    for (unsigned i = 0; i < STEP_ITEMS; i++)
        if (set >> i & 1) loads->classes[number_of(set, i)] = from->classes[i];
    for (unsigned m = 0; has_givers && m < STEP_MEMBERS; m++) {
        uint32_t items[STEP_ITEMS];
        size_t count = 0;
        for (unsigned i = 0; i < STEP_ITEMS; i++)
            if ((set >> i & 1) && from->giver[i] == m) items[count++] = number_of(set, i);
        if (count > 0) CHECK(dv_loads_add_giver(loads, IDENTIFIERS[m], from->permille[m], items, count));
    }
    return loads;
}

static void fill_in_loads(step_plan *plan, const dv_loads *loads) {
    step_loads *to = &plan->loads;
    to->are_there = loads != NULL;
    for (unsigned i = 0; i < STEP_ITEMS; i++) {
        bool is_known = loads != NULL && (plan->set >> i & 1);
        to->giver[i] = STEP_NOBODY;
        to->classes[i] = is_known ? loads->classes[number_of(plan->set, i)] : STEP_NO_LOAD;
    }
    if (loads == NULL) return;
    to->unit = find(UNITS, 2, loads->unit);
    for (size_t g = 0; g < loads->giver_count; g++) {
        const dv_load_giver *giver = &loads->givers[g];
        uint8_t m = find(IDENTIFIERS, STEP_MEMBERS, giver->from);
        to->permille[m] = giver->permille;
        for (size_t n = 0; n < giver->count; n++)
            for (unsigned i = 0; i < STEP_ITEMS; i++)
                if ((plan->set >> i & 1) && number_of(plan->set, i) == giver->items[n]) to->giver[i] = m;
    }
}

/* ---- the plan ---- */

static const char *mark_of(const step_member *m) {
    return m->leaving == 0 ? "" : m->leaving == STEP_GONE_NODE ? "before" : NODES[m->leaving - 1];
}

static void add_member(dv_plan *plan, const step_plan *from, uint32_t i) {
    const step_member *m = &from->members[i];
    dv_plan_member member = {.slot = m->slot,
                             .is_static = m->is_static,
                             .key = text(key_of(from, i)),
                             .weight = m->weight,
                             .zone = text(ZONES[m->zone]),
                             .tags = text(TAGS[m->tags]),
                             .cap = m->cap,
                             .rejoin_delay_ms = m->rejoin_delay_ms,
                             .absent = m->absent,
                             .leaving = text(mark_of(m)),
                             .says_configured = m->says_configured,
                             .configured = m->configured};
    CHECK(dv_plan_add_member(plan, &member));
}

static dv_plan *make_plan(const step_plan *from) {
    if (!from->is_there) return NULL;
    dv_plan *plan = dv_plan_make(dv_plan_set_ref(sets[from->set]));
    CHECK(plan != NULL);
    plan->header = (dv_plan_header){.generation = from->is_empty ? 0 : 5,
                                    .guid = "g",
                                    .epoch = "e",
                                    .pzxid = from->pzxid,
                                    .tag = sets[from->tag]->crc,
                                    .asked = from->asked,
                                    .is_balanced = from->is_balanced,
                                    .options = {.max_moves = from->max_moves}};
    plan->mzxid = from->mzxid;
    for (uint32_t slot = 0; slot < STEP_MEMBERS; slot++)
        for (uint32_t i = 0; i < STEP_MEMBERS; i++)
            if (from->members[i].is_there && from->members[i].slot == slot) add_member(plan, from, i);
    plan->moved = malloc(STEP_ITEMS * sizeof *plan->moved);
    CHECK(plan->moved != NULL);
    for (uint32_t i = 0; i < STEP_ITEMS; i++) {
        uint8_t owner = from->owners[i];
        if (!(from->set >> i & 1)) continue;
        plan->owners[number_of(from->set, i)] = owner == STEP_NOBODY ? DV_PLAN_NO_SLOT : from->members[owner].slot;
        if (from->moved >> i & 1) plan->moved[plan->moved_count++] = number_of(from->set, i);
    }
    plan->wishes = make_wishes(from);
    plan->loads = make_loads(&from->loads, from->set, true);
    return plan;
}

static int index_of(const dv_plan_member *m) {
    for (int i = 0; i < STEP_MEMBERS; i++)
        if (strcmp(m->key, m->is_static ? IDENTIFIERS[i] : NODES[i]) == 0) return i;
    return -1;
}

static uint8_t leaving_of(const dv_plan_member *m) {
    if (m->leaving[0] == '\0') return 0;
    return strcmp(m->leaving, "before") == 0 ? STEP_GONE_NODE : (uint8_t)(find(NODES, STEP_NODES, m->leaving) + 1);
}

static void fill_in_members(step_plan *to, const dv_plan *plan, uint8_t *by_slot) {
    for (size_t n = 0; n < plan->member_count; n++) {
        const dv_plan_member *m = &plan->members[n];
        int i = index_of(m);
        CHECK(i >= 0 && !to->members[i].is_there && m->slot < STEP_MEMBERS);
        by_slot[m->slot] = (uint8_t)i;
        to->members[i] = (step_member){.is_static = m->is_static,
                                       .is_there = true,
                                       .slot = m->slot,
                                       .weight = m->weight,
                                       .says_configured = m->says_configured,
                                       .configured = m->configured,
                                       .absent = m->absent,
                                       .rejoin_delay_ms = m->rejoin_delay_ms,
                                       .leaving = leaving_of(m),
                                       .zone = find(ZONES, 3, m->zone),
                                       .tags = find(TAGS, 4, m->tags),
                                       .cap = m->cap};
    }
}

static void fill_in(step_plan *to, const dv_plan *plan, const step_plan *before) {
    uint8_t by_slot[STEP_MEMBERS] = {0};
    *to = (step_plan){.is_there = true,
                      .pzxid = plan->header.pzxid,
                      .set = set_of(plan->set->crc),
                      .tag = set_of(plan->header.tag),
                      .asked = plan->header.asked,
                      .max_moves = plan->header.options.max_moves,
                      .is_balanced = plan->header.is_balanced,
                      .reason = plan->header.reason,
                      .tells = plan->told[0] != '\0'};
    for (int i = 0; i < STEP_MEMBERS; i++) to->members[i].is_static = before->members[i].is_static;
    fill_in_members(to, plan, by_slot);
    for (unsigned i = 0; i < STEP_ITEMS; i++) {
        uint32_t slot = to->set >> i & 1 ? plan->owners[number_of(to->set, i)] : DV_PLAN_NO_SLOT;
        to->owners[i] = slot == DV_PLAN_NO_SLOT ? STEP_NOBODY : by_slot[slot];
    }
    for (size_t n = 0; n < plan->moved_count; n++)
        for (unsigned i = 0; i < STEP_ITEMS; i++)
            if ((to->set >> i & 1) && number_of(to->set, i) == plan->moved[n])
                to->moved = (uint8_t)(to->moved | 1u << i);
    fill_in_wishes(to, plan->wishes);
    fill_in_loads(to, plan->loads);
}

/* ---- what comes ---- */

typedef struct {
    dv_plan_node nodes[STEP_NODES];
    int of[STEP_NODES]; /* which node it is */
    uint32_t owners[STEP_ITEMS];
    dv_plan_party party;
} party_made;

static void make_party(party_made *made, const step_plan *plan, const step_party *from) {
    dv_plan_party *party = &made->party;
    int at[STEP_NODES];
    *party = (dv_plan_party){.pzxid = from->pzxid, .nodes = made->nodes, .set = from->set ? sets[from->set] : NULL};
    party->options.max_moves = from->max_moves;
    for (int i = 0; i < STEP_NODES; i++) {
        const step_node *n = &from->nodes[i];
        if (!n->is_there) continue;
        bool is_static = plan->members[n->member].is_static;
        at[i] = (int)party->count;
        made->of[party->count] = i;
        made->nodes[party->count++] = (dv_plan_node){.node = NODES[i],
                                                     .identifier = IDENTIFIERS[n->member],
                                                     .tag = sets[n->set]->crc,
                                                     .known = !n->is_unread,
                                                     .is_ghost = n->is_ghost,
                                                     .is_static = is_static && !n->is_unread,
                                                     .weight = n->weight,
                                                     .weight_unknown = n->weight_unknown,
                                                     .zone = ZONES[n->zone],
                                                     .tags = n->tags ? TAGS[n->tags] : NULL,
                                                     .cap = n->cap,
                                                     .has_options = n->has_options,
                                                     .options = {.max_moves = n->max_moves},
                                                     .can_balance = !n->is_older,
                                                     .rejoin_delay_ms = n->rejoin_delay_ms,
                                                     .czxid = n->czxid,
                                                     .first_czxid = n->first_czxid};
    }
    for (unsigned i = 0; i < STEP_ITEMS; i++) {
        uint8_t owner = from->owners[i];
        bool has = owner != STEP_NOBODY && from->nodes[owner].is_there;
        if (from->set >> i & 1) made->owners[number_of(from->set, i)] = has ? (uint32_t)at[owner] : UINT32_MAX;
    }
    party->owners = made->owners;
}

step_who step_who_is(const step_plan *plan, const step_party *party) {
    party_made there;
    dv_plan *before = make_plan(plan);
    step_who who = {{0}, 0};
    make_party(&there, plan, party);
    memset(who.members, STEP_NOBODY, sizeof who.members);
    for (size_t n = 0; n < there.party.count; n++) {
        const dv_plan_member *m = dv_plan_member_of(before, &there.party, n);
        if (m != NULL) who.members[there.of[n]] = (uint8_t)index_of(m);
        who.fenced |= (unsigned)dv_plan_fenced(&there.party, n) << there.of[n];
    }
    dv_plan_free(before);
    return who;
}

typedef struct {
    dv_plan_expiry expiry;
    dv_wish_event wish;
    char number[16];
    dv_plan_events events;
} events_made;

static void make_wish(events_made *made, const step_plan *plan, const step_events *from) {
    dv_wish *w = &made->wish.wish;
    const char *name = from->item == STEP_NOBODY ? "i*" : ITEMS[from->item];
    *w = (dv_wish){(dv_wish_kind)(from->wish - 1), name, "", "me", "", 2};
    made->wish.undo = from->undo;
    snprintf(made->number, sizeof made->number, "%u", from->whom);
    switch (from->wish) {
    case STEP_MOVE: w->value = key_of(plan, from->whom); break;
    case STEP_PIN: w->value = IDENTIFIERS[from->whom]; break;
    case STEP_NEED: w->value = TAGS[from->whom]; break;
    case STEP_OPTION:
        w->value = made->number;
        w->name = "max-moves";
        break;
    default: break;
    }
    made->events.wishes = &made->wish;
    made->events.wish_count = 1;
    made->events.told = "somebody asks for something";
}

static void make_events(events_made *made, const step_plan *plan, const step_party *party, const step_events *from) {
    dv_plan_events *told = &made->events;
    *told = (dv_plan_events){0};
    if (from->expired >= 0) {
        made->expiry = (dv_plan_expiry){key_of(plan, (unsigned)from->expired), plan->members[from->expired].absent};
        told->expired = &made->expiry;
        told->expired_count = 1;
    }
    if (from->weighed >= 0) told->weight = (dv_plan_weight){key_of(plan, (unsigned)from->weighed), from->weight};
    if (from->leaving >= 0) told->leaving = NODES[from->leaving];
    if (from->round_over || from->other_round_over) told->round_over = from->round_over ? "g" : "other";
    if (from->set) told->set = sets[from->set];
    if (from->wish) make_wish(made, plan, from);
    uint8_t set = plan->is_there ? plan->set : party->set;
    told->loads = make_loads(&from->loads, set, false);
    told->loads_of = told->loads != NULL ? sets[set] : NULL;
}

step_result step_of(const step_plan *plan, const step_party *party, const step_events *events, step_plan *next,
                    unsigned *asks) {
    party_made there;
    events_made told;
    bool asked[STEP_NODES];
    dv_plan *before = make_plan(plan), *after, *again;
    make_party(&there, plan, party);
    make_events(&told, plan, party, events);
    *asks = 0;
    int count = dv_plan_ask(before, &there.party, asked);
    for (size_t n = 0; n < there.party.count; n++) *asks |= (unsigned)asked[n] << there.of[n];
    int result = dv_plan_step(&after, before, &there.party, &told.events);
    CHECK(count >= 0 && (result == DV_PLAN_NEXT) == (after != NULL));
    CHECK(result == DV_PLAN_NEXT || result == DV_PLAN_NOTHING || result == DV_PLAN_ASK);
    if (result == DV_PLAN_NEXT) {
        fill_in(next, after, plan);
        uint64_t generation = before != NULL ? before->header.generation + 1 : 1;
        CHECK(after->header.generation == generation && after->header.pzxid == party->pzxid);
        after->mzxid = party->pzxid + 1;
        strcpy(after->header.guid, "h");
        next->is_at_rest = dv_plan_step(&again, after, &there.party, NULL) != DV_PLAN_NEXT;
        dv_plan_free(again);
        dv_plan_free(after);
    }
    dv_plan_free(before);
    dv_loads_unref(told.events.loads);
    return result == DV_PLAN_NEXT ? STEP_NEXT : result == DV_PLAN_ASK ? STEP_ASK : STEP_NOTHING;
}
