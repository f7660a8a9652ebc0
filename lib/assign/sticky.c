/* The least movement: all keep what their share allows. SPDX-License-Identifier: Apache-2.0
 *
 * First how many items each member is to have, its quota (A6, A7); then which items leave whom, and for whom (A8).
 *
 * The quotas alone say how many items move: a member gives what it has above its quota, and no more. So the least
 * movement is a matter of choosing quotas, among those that A6 allows. Inside a zone an extra item saves one move at a
 * member whose load is above its quota without it, and none at any other, wherever the other extras go. So giving the
 * extras to such members first is the best that the zone can do. Its cost with one item more or less does not depend on
 * the other zones; so giving those extras where they save most is the best for all.
 *
 * A round of n moves leaves n fewer for the next, whatever quotas that one chooses: with the same quotas it is as many,
 * and were it even less, both together would be less than the least. */
#include "divvy/assign.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "assign/assign_internal.h"
#include "base/config.h"

#define NO_MEMBER UINT32_MAX

typedef struct {
    size_t index; /* in the caller's array */
    size_t place; /* A1: in the bytewise order of identifiers */
    const char *zone;
    uint64_t weight;
    uint64_t tie; /* A7: decides between equal shares */
    size_t load;  /* how many items it has */
    size_t quota; /* how many it is to have */
    uint64_t remainder;
    size_t off;  /* the difference of load and quota */
    size_t gone; /* how many of its items have left it */
} share;

/* Members of one zone, not all of weight 0. */
typedef struct {
    share *shares;
    size_t count;
    uint64_t weight; /* of all of them */
    uint64_t tie;    /* A7: decides between equal zones */
    int64_t saving;  /* how many moves fewer an extra item makes */
} zone;

typedef struct {
    uint64_t key;
    const char *name;
    size_t index; /* in the caller's array */
} item;

typedef struct {
    size_t member_count, item_count;
    size_t moves_max;
    share *shares; /* by zone, then by place */
    zone *zones;
    size_t zone_count;
    item *items;    /* by owner, those without one at the end */
    size_t *first;  /* where each owner's items begin, in the caller's order; then those without one, and the end */
    share **listed; /* room for all members */
} dealing;

/* ---- what there is ---- */

static int by_zone(const void *left, const void *right) {
    const share *a = left;
    const share *b = right;
    int order = strcmp(a->zone, b->zone);
    return order != 0 ? order : (a->place > b->place) - (a->place < b->place);
}

/* A6: all weights 0 count as all equal, and then nothing moves from one to another. */
static bool shares_take(dealing *d, const divvy_member *members, bool spread_zones) {
    dv_assign_name *order = dv_assign_order_members(members, d->member_count);
    if (order == NULL) return false;
    uint64_t total = 0;
    for (size_t m = 0; m < d->member_count; m++) total += members[m].weight;
    if (total == 0) d->moves_max = 0;
    for (size_t p = 0; p < d->member_count; p++) {
        const divvy_member *member = &members[order[p].index];
        d->shares[p] = (share){
            .index = order[p].index,
            .place = p,
            .zone = spread_zones && member->zone != NULL ? member->zone : "",
            .weight = total == 0 ? 1 : member->weight,
            .load = d->first[order[p].index + 1] - d->first[order[p].index],
        };
    }
    free(order);
    qsort(d->shares, d->member_count, sizeof *d->shares, by_zone);
    return true;
}

static size_t owner_of(const dealing *d, const uint32_t *previous, size_t i) {
    return previous == NULL || previous[i] == NO_MEMBER ? d->member_count : previous[i];
}

static void items_take(dealing *d, const char *const *items, const uint32_t *previous) {
    /* Counted one place further on, each sum is where the items of an owner begin; put there, they move it to its end,
     * where those of the next begin. */
    for (size_t i = 0; i < d->item_count; i++) d->first[owner_of(d, previous, i) + 2]++;
    for (size_t m = 0; m <= d->member_count; m++) d->first[m + 2] += d->first[m + 1];
    for (size_t i = 0; i < d->item_count; i++) {
        size_t at = d->first[owner_of(d, previous, i) + 1]++;
        d->items[at] = (item){.key = dv_assign_key('i', items[i], 0), .name = items[i], .index = i};
    }
}

/* A7: other items give other ties, so that those of many small pools do not all fall to one of their members. */
static void ties_make(dealing *d, const divvy_member *members) {
    uint64_t all = 0;
    for (size_t i = 0; i < d->item_count; i++) all += d->items[i].key;
    for (size_t m = 0; m < d->member_count; m++) {
        share *s = &d->shares[m];
        s->tie = dv_assign_mix(dv_assign_key('m', members[s->index].identifier, 0) ^ all);
    }
    for (size_t z = 0; z < d->zone_count; z++) {
        d->zones[z].tie = dv_assign_mix(dv_assign_key('z', d->zones[z].shares[0].zone, 0) ^ all);
    }
}

static void zones_find(dealing *d) {
    for (size_t from = 0, to; from < d->member_count; from = to) {
        zone z = {.shares = &d->shares[from]};
        for (to = from; to < d->member_count && strcmp(d->shares[to].zone, z.shares->zone) == 0; to++) {
            z.weight += d->shares[to].weight;
        }
        z.count = to - from;
        if (z.weight > 0) d->zones[d->zone_count++] = z;
    }
}

/* ---- how many each is to have ---- */

/* A6: a zone's items are divided, rounded down. Returns how many are left over. */
static size_t divide(const zone *z, size_t items) {
    size_t left = items;
    for (size_t m = 0; m < z->count; m++) {
        share *s = &z->shares[m];
        uint64_t product = (uint64_t)items * s->weight; /* both are below 2^32 */
        s->quota = (size_t)(product / z->weight);
        s->remainder = product % z->weight;
        left -= s->quota;
    }
    return left;
}

/* Returns how many items must leave a zone's members if the zone is to have so many. */
static size_t cost(const zone *z, size_t items) {
    size_t left = divide(z, items);
    size_t above = 0, may_keep = 0;
    for (size_t m = 0; m < z->count; m++) {
        const share *s = &z->shares[m];
        if (s->load <= s->quota) continue;
        above += s->load - s->quota;
        may_keep += s->remainder > 0;
    }
    return above - (left < may_keep ? left : may_keep);
}

/* The last word of every order of members. */
static int by_tie(const share *a, const share *b) {
    if (a->tie != b->tie) return a->tie > b->tie ? -1 : 1;
    return (a->place > b->place) - (a->place < b->place);
}

/* A7: who saves a move, then who is owed most. */
static int by_claim(const void *left, const void *right) {
    const share *a = *(const share *const *)left;
    const share *b = *(const share *const *)right;
    bool a_saves = a->load > a->quota, b_saves = b->load > b->quota;
    if (a_saves != b_saves) return a_saves ? -1 : 1;
    if (a->remainder != b->remainder) return a->remainder > b->remainder ? -1 : 1;
    return by_tie(a, b);
}

/* A7: what is left over goes to those whose share was rounded down. */
static void give_quotas(dealing *d, const zone *z, size_t items) {
    size_t left = divide(z, items), count = 0;
    for (size_t m = 0; m < z->count; m++) {
        if (z->shares[m].remainder > 0) d->listed[count++] = &z->shares[m];
    }
    assert(left <= count);
    qsort(d->listed, count, sizeof(share *), by_claim);
    for (size_t n = 0; n < left; n++) d->listed[n]->quota++;
}

/* A7: which zones save most, then which are the strongest. */
static int by_saving(const void *left, const void *right) {
    const zone *a = left;
    const zone *b = right;
    if (a->saving != b->saving) return a->saving > b->saving ? -1 : 1;
    if (a->weight != b->weight) return a->weight > b->weight ? -1 : 1;
    if (a->tie != b->tie) return a->tie > b->tie ? -1 : 1;
    return (a->shares > b->shares) - (a->shares < b->shares);
}

/* A6: zones share alike, members inside them by weight. */
static void quotas_make(dealing *d) {
    if (d->zone_count == 0) return; /* cannot be, since somebody weighs something */
    size_t room = d->item_count / d->zone_count;
    size_t extras = d->item_count % d->zone_count;
    for (size_t z = 0; extras > 0 && z < d->zone_count; z++) {
        d->zones[z].saving = (int64_t)cost(&d->zones[z], room) - (int64_t)cost(&d->zones[z], room + 1);
    }
    qsort(d->zones, d->zone_count, sizeof *d->zones, by_saving);
    for (size_t z = 0; z < d->zone_count; z++) give_quotas(d, &d->zones[z], room + (z < extras));
    for (size_t m = 0; m < d->member_count; m++) {
        share *s = &d->shares[m];
        s->off = s->load > s->quota ? s->load - s->quota : s->quota - s->load;
    }
}

/* ---- which items go where ---- */

/* A8: of several members off their quota the one that is farthest off is always the next. */
typedef struct {
    share **members; /* the farthest first */
    size_t count;
    size_t level, at; /* the next is the one here if it is off by so much or more, else the first, at the next level */
    size_t left;      /* turns */
} turns;

static bool receives(const share *s) {
    return s->load < s->quota;
}

static bool is_drained(const share *s) {
    return s->load > s->quota && s->weight == 0;
}

static bool gives(const share *s) {
    return s->load > s->quota && s->weight > 0;
}

static int by_distance(const void *left, const void *right) {
    const share *a = *(const share *const *)left;
    const share *b = *(const share *const *)right;
    if (a->off != b->off) return a->off > b->off ? -1 : 1;
    return by_tie(a, b);
}

/* The turns of those for whom `takes_part` says so, listed at `room`. */
static turns turns_of(dealing *d, share **room, bool (*takes_part)(const share *)) {
    turns t = {.members = room};
    for (size_t m = 0; m < d->member_count; m++) {
        if (!takes_part(&d->shares[m])) continue;
        room[t.count++] = &d->shares[m];
        t.left += d->shares[m].off;
    }
    qsort(room, t.count, sizeof(share *), by_distance);
    if (t.count > 0) t.level = room[0]->off;
    return t;
}

static share *next_turn(turns *t) {
    assert(t->left > 0);
    if (t->at == t->count || t->members[t->at]->off < t->level) {
        t->level--;
        t->at = 0;
    }
    t->left--;
    return t->members[t->at++];
}

/* A8: a mixed order, so that items of like names, which are often of like load, do not go together. */
static int by_key(const void *left, const void *right) {
    const item *a = left;
    const item *b = right;
    if (a->key != b->key) return a->key < b->key ? -1 : 1;
    int order = strcmp(a->name, b->name);
    return order != 0 ? order : (a->index > b->index) - (a->index < b->index);
}

static void sort_items_of(dealing *d, size_t owner) {
    qsort(d->items + d->first[owner], d->first[owner + 1] - d->first[owner], sizeof *d->items, by_key);
}

/* A8: those without an owner first and all of them, then from drained members, then from the others. */
static void deal(dealing *d, uint32_t *owners) {
    turns receivers = turns_of(d, d->listed, receives);
    turns drained = turns_of(d, receivers.members + receivers.count, is_drained);
    turns givers = turns_of(d, drained.members + drained.count, gives);
    sort_items_of(d, d->member_count);
    for (size_t i = d->first[d->member_count]; i < d->item_count; i++) {
        owners[d->items[i].index] = (uint32_t)next_turn(&receivers)->index;
    }
    for (size_t moves = 0; moves < d->moves_max && drained.left + givers.left > 0; moves++) {
        share *from = next_turn(drained.left > 0 ? &drained : &givers);
        if (from->gone == 0) sort_items_of(d, from->index);
        const item *leaving = &d->items[d->first[from->index] + from->gone++];
        owners[leaving->index] = (uint32_t)next_turn(&receivers)->index;
    }
}

/* ---- the call ---- */

static int check(const divvy_member *members, size_t member_count, const char *const *items, size_t item_count,
                 const uint32_t *previous, const uint32_t *owners) {
    int error = dv_assign_check(members, member_count, items, item_count, owners);
    if (error != 0) return error;
    if (item_count >= UINT32_MAX) return DIVVY_EINVAL; /* a number of items times a weight must fit 64 bits */
    for (size_t i = 0; previous != NULL && i < item_count; i++) {
        if (previous[i] != NO_MEMBER && previous[i] >= member_count) return DIVVY_EINVAL;
    }
    return 0;
}

static void dealing_free(dealing *d) {
    free(d->shares);
    free(d->zones);
    free(d->items);
    free(d->first);
    free((void *)d->listed);
}

static bool dealing_init(dealing *d, size_t member_count, size_t item_count, const divvy_sticky_options *options) {
    *d = (dealing){
        .member_count = member_count,
        .item_count = item_count,
        .moves_max = options->keep_all         ? 0
                     : options->max_moves == 0 ? SIZE_MAX
                                               : options->max_moves,
        .shares = calloc(member_count, sizeof *d->shares),
        .zones = calloc(member_count, sizeof *d->zones),
        .items = calloc(item_count, sizeof *d->items),
        .first = calloc(member_count + 3, sizeof *d->first),
        .listed = (share **)calloc(member_count, sizeof(share *)),
    };
    return d->shares != NULL && d->zones != NULL && d->items != NULL && d->first != NULL && d->listed != NULL;
}

int divvy_assign_sticky(const divvy_member *members, size_t member_count, const char *const *items, size_t item_count,
                        const uint32_t *previous, const divvy_sticky_options *options, uint32_t *owners) {
    static const divvy_sticky_options defaults = DIVVY_STICKY_OPTIONS_INIT;
    divvy_sticky_options o;
    int error = check(members, member_count, items, item_count, previous, owners);
    if (error == 0) error = dv_config_copy(&o, sizeof o, &defaults, options != NULL ? options : &defaults);
    if (error != 0 || item_count == 0) return error;

    dealing d;
    bool ready = dealing_init(&d, member_count, item_count, &o);
    if (ready) {
        items_take(&d, items, previous);
        ready = shares_take(&d, members, o.spread_zones != 0);
    }
    if (ready) {
        zones_find(&d);
        ties_make(&d, members);
        quotas_make(&d);
        if (previous != NULL && owners != previous) memcpy(owners, previous, item_count * sizeof *owners);
        deal(&d, owners);
    }
    dealing_free(&d);
    return ready ? 0 : DIVVY_ENOMEM;
}
