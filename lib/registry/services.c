/* Services: the healthy ones of a role, or of all, at one moment. SPDX-License-Identifier: Apache-2.0
 *
 * A list is made of runs of entries. A list that differs by one entry shares all other runs, so that a change costs
 * little, however long the list is. */
#include "registry/services.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    RUN_MOST = 64,
    RUN_MADE = 48, /* as many as a run of a new list has, so that there is room for others */
};

typedef struct {
    dv_entry *entry;
    const cJSON *json; /* the entry's: who reads a long list need not look into each entry for it */
} item;

/* Neighbours in the order of lookups, one at least. Shared by lists. */
typedef struct {
    atomic_uint refs;
    size_t count;
    item items[RUN_MOST];
} run;

typedef struct {
    run *run;
    size_t before; /* the entries in all runs before it */
} place;

struct divvy_services {
    atomic_uint refs;
    int64_t from_ms, until_ms; /* of the servers' clock: before and after these others may be healthy */
    size_t count, run_count, room;
    place places[];
};

/* ---- runs ---- */

static item item_of(dv_entry *entry) {
    return (item){dv_entry_ref(entry), entry->json};
}

static run *make_run(void) {
    run *made = malloc(sizeof *made);
    if (!made) return NULL;
    atomic_init(&made->refs, 1);
    made->count = 0;
    return made;
}

/* Makes a run that shares the entries of another, from one on; NULL: no memory. */
static run *copy_run(const run *r, size_t from) {
    run *made = make_run();
    for (size_t i = from; made && i < r->count; i++) made->items[made->count++] = item_of(r->items[i].entry);
    return made;
}

static void unref_run(run *r) {
    if (atomic_fetch_sub(&r->refs, 1) != 1) return;
    for (size_t i = 0; i < r->count; i++) dv_entry_free(r->items[i].entry);
    free(r);
}

/* Returns how many of its entries come before this one. */
static size_t rank_in(const run *r, const dv_entry *entry) {
    size_t low = 0, high = r->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (dv_entry_compare(&r->items[middle].entry, &entry) < 0) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* ---- lists ---- */

static divvy_services *make_list(size_t room) {
    divvy_services *s = malloc(sizeof *s + room * sizeof s->places[0]);
    if (!s) return NULL;
    *s = (divvy_services){.from_ms = INT64_MIN, .until_ms = INT64_MAX, .room = room};
    atomic_init(&s->refs, 1);
    return s;
}

/* Counts the entries before each run, from the i-th run on. */
static void count_from(divvy_services *s, size_t i) {
    size_t before = i ? s->places[i - 1].before + s->places[i - 1].run->count : 0;
    for (; i < s->run_count; i++) {
        s->places[i].before = before;
        before += s->places[i].run->count;
    }
    s->count = before;
}

/* Returns whether it is healthy. If it ages, narrows the time for which that, and so the list, is so. */
static bool judge(divvy_services *s, const dv_entry *entry, int64_t server_now_ms) {
    bool healthy = dv_entry_is_healthy(entry, server_now_ms);
    if (entry->flags & (DV_ENTRY_PRESERVED | DV_ENTRY_DISABLED)) return healthy;
    int64_t expiry_ms = dv_entry_expiry_ms(entry);
    if (healthy && expiry_ms < s->until_ms) s->until_ms = expiry_ms;
    if (!healthy && expiry_ms > s->from_ms) s->from_ms = expiry_ms;
    return healthy;
}

/* Adds sorted entries to a list that has room for them and none yet. Returns false when an allocation fails. */
static bool add_sorted(divvy_services *s, dv_entry *const *entries, size_t count) {
    for (size_t i = 0; i < count;) {
        run *made = make_run();
        if (!made) return false;
        while (i < count && made->count < RUN_MADE) made->items[made->count++] = item_of(entries[i++]);
        assert(s->run_count < s->room);
        s->places[s->run_count++].run = made;
    }
    count_from(s, 0);
    return true;
}

divvy_services *dv_services_new(const dv_entries *entries, int64_t server_now_ms) {
    size_t count = 0;
    dv_entry **healthy = malloc((entries->count + 1) * sizeof(dv_entry *));
    divvy_services *s = healthy ? make_list(entries->count / RUN_MADE + 1) : NULL;
    for (size_t i = 0; s && i < entries->count; i++) {
        if (judge(s, entries->list[i], server_now_ms)) healthy[count++] = entries->list[i];
    }
    if (count) qsort(healthy, count, sizeof(dv_entry *), dv_entry_compare);
    if (s && !add_sorted(s, healthy, count)) {
        divvy_services_unref(s);
        s = NULL;
    }
    free(healthy);
    return s;
}

divvy_services *dv_services_ref(divvy_services *s) {
    atomic_fetch_add(&s->refs, 1);
    return s;
}

bool dv_services_hold_at(const divvy_services *s, int64_t server_now_ms) {
    /* At until_ms itself the first of these has expired; at from_ms the last of the others had. */
    return server_now_ms >= s->from_ms && server_now_ms < s->until_ms;
}

/* ---- changes ---- */

/* Makes the list one that nobody else has, with room for one more run. Returns false when an allocation fails. */
static bool own_list(divvy_services **list) {
    divvy_services *s = *list;
    bool alone = atomic_load(&s->refs) == 1;
    if (alone && s->run_count < s->room) return true;
    divvy_services *made = make_list(s->run_count + s->run_count / 4 + 1);
    if (!made) return false;
    made->from_ms = s->from_ms;
    made->until_ms = s->until_ms;
    made->count = s->count;
    made->run_count = s->run_count;
    for (size_t i = 0; i < s->run_count; i++) {
        made->places[i] = s->places[i];
        atomic_fetch_add(&s->places[i].run->refs, 1);
    }
    divvy_services_unref(s);
    *list = made;
    return true;
}

/* Makes the i-th run one that no other list has. Returns NULL when an allocation fails. */
static run *own_run(divvy_services *s, size_t i) {
    run *shared = s->places[i].run;
    if (atomic_load(&shared->refs) == 1) return shared;
    run *made = copy_run(shared, 0);
    if (!made) return NULL;
    unref_run(shared);
    s->places[i].run = made;
    return made;
}

/* Returns the last run that does not begin behind the entry, or the first one. */
static size_t find_run(const divvy_services *s, const dv_entry *entry) {
    size_t low = 0, high = s->run_count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (dv_entry_compare(&s->places[middle].run->items[0].entry, &entry) <= 0) low = middle;
        else high = middle;
    }
    return low;
}

/* Takes an entry out, if it is there. Returns false when an allocation fails. */
static bool take_out(divvy_services *s, dv_entry *entry) {
    if (!s->run_count) return true;
    size_t i = find_run(s, entry), at = rank_in(s->places[i].run, entry);
    if (at == s->places[i].run->count || s->places[i].run->items[at].entry != entry) return true;
    run *r = own_run(s, i);
    if (!r) return false;
    r->count--;
    memmove(&r->items[at], &r->items[at + 1], (r->count - at) * sizeof r->items[0]);
    dv_entry_free(entry);
    if (r->count == 0) {
        unref_run(r);
        s->run_count--;
        memmove(&s->places[i], &s->places[i + 1], (s->run_count - i) * sizeof s->places[0]);
    }
    count_from(s, i);
    return true;
}

/* Moves the upper half of a full run to a run of its own, behind it. Returns false when an allocation fails. */
static bool split(divvy_services *s, size_t i) {
    run *lower = s->places[i].run;
    run *upper = copy_run(lower, RUN_MOST / 2);
    if (!upper) return false;
    while (lower->count > RUN_MOST / 2) dv_entry_free(lower->items[--lower->count].entry);
    assert(s->run_count < s->room);
    memmove(&s->places[i + 2], &s->places[i + 1], (s->run_count - i - 1) * sizeof s->places[0]);
    s->places[i + 1].run = upper;
    s->run_count++;
    return true;
}

/* Puts an entry in its place. Returns false when an allocation fails. */
static bool put_in(divvy_services *s, dv_entry *entry) {
    if (!s->run_count) return add_sorted(s, &entry, 1);
    size_t i = find_run(s, entry);
    run *r = own_run(s, i);
    if (r && r->count == RUN_MOST) r = split(s, i) ? s->places[find_run(s, entry)].run : NULL;
    if (!r) return false;
    size_t at = rank_in(r, entry);
    memmove(&r->items[at + 1], &r->items[at], (r->count - at) * sizeof r->items[0]);
    r->items[at] = item_of(entry);
    r->count++;
    count_from(s, i);
    return true;
}

bool dv_services_change(divvy_services **list, dv_entry *before, dv_entry *after, int64_t server_now_ms) {
    assert(dv_services_hold_at(*list, server_now_ms));
    if (!own_list(list)) return false;
    if (before && !take_out(*list, before)) return false;
    return !after || !judge(*list, after, server_now_ms) || put_in(*list, after);
}

/* ---- public ---- */

void divvy_services_unref(divvy_services *s) {
    if (!s || atomic_fetch_sub(&s->refs, 1) != 1) return;
    for (size_t i = 0; i < s->run_count; i++) unref_run(s->places[i].run);
    free(s);
}

size_t divvy_services_count(const divvy_services *s) {
    return s ? s->count : 0;
}

const cJSON *divvy_services_entry(const divvy_services *s, size_t i) {
    if (!s || i >= s->count) return NULL;
    size_t low = 0, high = s->run_count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (s->places[middle].before <= i) low = middle;
        else high = middle;
    }
    const run *r = s->places[low].run;
    assert(i - s->places[low].before < r->count);
    return r->items[i - s->places[low].before].json;
}
