/* Paths of moves through members that are full. SPDX-License-Identifier: Apache-2.0 */
#include "assign/balance_path.h"

#include <stdlib.h>
#include <string.h>

/* ---- the items of each member ---- */

static void attach(dv_paths *p, size_t i) {
    uint32_t owner = p->d->owners[i];
    if (owner == DV_NO_MEMBER) return;
    uint32_t first = p->head[owner];
    p->next[i] = first;
    p->previous[i] = DV_NO_ITEM;
    if (first != DV_NO_ITEM) p->previous[first] = (uint32_t)i;
    p->head[owner] = (uint32_t)i;
}

static void detach(dv_paths *p, size_t i) {
    uint32_t owner = p->d->owners[i];
    if (owner == DV_NO_MEMBER) return;
    if (p->next[i] != DV_NO_ITEM) p->previous[p->next[i]] = p->previous[i];
    if (p->previous[i] != DV_NO_ITEM) p->next[p->previous[i]] = p->next[i];
    else p->head[owner] = p->next[i];
}

void dv_paths_free(dv_paths *p) {
    free(p->head);
    free(p->next);
    free(p->previous);
    free(p->via);
    free(p->choice);
    free(p->chosen);
    free(p->is_reached);
    free(p->is_spread);
    free(p->slots);
    free(p->reached);
}

/* Returns how many tags items need, "none" among them if some need none. Leaves `is_spread` as it was. */
static size_t count_slots(dv_paths *p) {
    size_t count = 0;
    for (size_t i = 0; i < p->d->item_count; i++) {
        bool *is_seen = &p->is_spread[p->d->tag_slots[i]];
        count += !*is_seen;
        *is_seen = true;
    }
    memset(p->is_spread, 0, p->d->tag_count * sizeof *p->is_spread);
    return count;
}

bool dv_paths_make(dv_paths *p, dv_deal *d) {
    *p = (dv_paths){
        .d = d,
        .head = malloc(d->member_count * sizeof *p->head),
        .next = malloc(d->item_count * sizeof *p->next),
        .previous = malloc(d->item_count * sizeof *p->previous),
        .via = malloc(d->member_count * sizeof *p->via),
        .choice = malloc(d->tag_count * sizeof *p->choice),
        .chosen = malloc(d->tag_count * sizeof *p->chosen),
        .is_reached = calloc(d->member_count, sizeof *p->is_reached),
        .is_spread = calloc(d->tag_count, sizeof *p->is_spread),
        .slots = malloc(d->tag_count * sizeof *p->slots),
        .reached = malloc(d->member_count * sizeof *p->reached),
    };
    if (p->head == NULL || p->next == NULL || p->previous == NULL || p->via == NULL || p->choice == NULL ||
        p->chosen == NULL || p->is_reached == NULL || p->is_spread == NULL || p->slots == NULL || p->reached == NULL)
        return false;
    memset(p->head, 0xff, d->member_count * sizeof *p->head);
    memset(p->choice, 0xff, d->tag_count * sizeof *p->choice);
    for (size_t i = d->item_count; i > 0; i--) attach(p, i - 1);
    p->slots_used = count_slots(p);
    return true;
}

/* ---- the search ---- */

void dv_paths_drop(dv_paths *p) {
    while (p->reached_count > p->reached_before) p->is_reached[p->reached[--p->reached_count]] = false;
    while (p->slot_count > p->slots_before) p->is_spread[p->slots[--p->slot_count]] = false;
}

static void begin(dv_paths *p) {
    p->reached_before = p->reached_count;
    p->slots_before = p->slot_count;
}

/* Reaches all members that may have the item, if there were room. */
static void spread(dv_paths *p, size_t i) {
    const dv_deal *d = p->d;
    uint32_t slot = d->tag_slots[i];
    if (p->is_spread[slot]) return;
    p->is_spread[slot] = true;
    p->slots[p->slot_count++] = slot;
    for (size_t m = 0; m < d->member_count; m++) {
        if (p->is_reached[m] || d->bins[m].weight <= 0 || !dv_balance_has_tag(d, m, d->tags[slot])) continue;
        p->is_reached[m] = true;
        p->via[m] = (uint32_t)i;
        p->reached[p->reached_count++] = (uint32_t)m;
    }
}

/* An item that has moved already is a better choice: it is no move more. Then names decide. */
static bool is_better(const dv_deal *d, uint32_t i, uint32_t than) {
    bool is_free = d->owners[i] != d->items[i].owner, other_is = d->owners[than] != d->items[than].owner;
    if (is_free != other_is) return is_free;
    if (d->keys[i] != d->keys[than]) return d->keys[i] < d->keys[than];
    return i < than;
}

/* Goes one step on from a member, by one item of each tag. */
static void go_on(dv_paths *p, uint32_t m) {
    const dv_deal *d = p->d;
    size_t count = 0;
    for (uint32_t i = p->head[m]; i != DV_NO_ITEM; i = p->next[i]) {
        uint32_t slot = d->tag_slots[i];
        if (p->is_spread[slot] || !dv_balance_may_leave(d, i)) continue;
        if (p->choice[slot] == DV_NO_ITEM) p->chosen[count++] = slot;
        if (p->choice[slot] == DV_NO_ITEM || is_better(d, i, p->choice[slot])) p->choice[slot] = i;
    }
    for (size_t n = 0; n < count; n++) {
        spread(p, p->choice[p->chosen[n]]);
        p->choice[p->chosen[n]] = DV_NO_ITEM;
    }
}

static void search(dv_paths *p) {
    for (size_t n = p->reached_before; n < p->reached_count && p->slot_count < p->slots_used; n++) {
        go_on(p, p->reached[n]);
    }
}

void dv_paths_from_member(dv_paths *p, uint32_t a) {
    begin(p);
    p->is_reached[a] = true;
    p->via[a] = DV_NO_ITEM;
    p->reached[p->reached_count++] = a;
    search(p);
}

void dv_paths_from_item(dv_paths *p, size_t i) {
    begin(p);
    spread(p, i);
    search(p);
}

/* ---- a path ---- */

size_t dv_paths_cost(const dv_paths *p, uint32_t to) {
    const dv_deal *d = p->d;
    size_t cost = 0;
    for (uint32_t m = to, i; m != DV_NO_MEMBER && (i = p->via[m]) != DV_NO_ITEM; m = d->owners[i]) {
        cost += d->owners[i] != DV_NO_MEMBER && d->owners[i] == d->items[i].owner;
    }
    return cost;
}

void dv_paths_take(dv_paths *p, uint32_t to) {
    dv_deal *d = p->d;
    for (uint32_t m = to, i; m != DV_NO_MEMBER && (i = p->via[m]) != DV_NO_ITEM;) {
        uint32_t from = d->owners[i];
        detach(p, i);
        dv_balance_put(d, i, m);
        attach(p, i);
        m = from;
    }
}
