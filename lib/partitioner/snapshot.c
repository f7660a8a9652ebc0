/* Snapshots: what was owned at one moment. SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdlib.h>

#include "partitioner/partitioner.h"

typedef struct {
    const char *name;
    int64_t token;
    bool revoked, leaving;
} snapshot_entry;

struct divvy_partition {
    atomic_uint refs;
    dv_names *names; /* keeps the entries' names alive */
    uint64_t generation;
    bool is_short;
    size_t count;
    snapshot_entry entries[];
};

void dv_snapshot_changed(divvy_partitioner *p) {
    p->generation++;
    divvy_partition_unref(p->snapshot);
    p->snapshot = NULL;
    dv_client_changed(p->object.client);
}

static bool is_preparing(const dv_item *item) {
    return item->life.stage == DV_STAGE_PREPARING;
}

/* Makes a list of the items for which `has` says yes, `count` of them. */
static divvy_partition *make(const divvy_partitioner *p, bool (*has)(const dv_item *), size_t count, bool is_short) {
    divvy_partition *s = calloc(1, sizeof *s + count * sizeof(snapshot_entry));
    if (!s) return NULL;
    atomic_init(&s->refs, 1);
    s->names = dv_items_of(p)->names;
    atomic_fetch_add(&s->names->refs, 1);
    s->generation = p->generation;
    s->is_short = is_short;
    for (size_t i = 0; i < dv_item_count(p) && s->count < count; i++) {
        const dv_item *item = dv_item_at(p, i);
        if (!has(item)) continue;
        int64_t token = dv_item_shown(item) ? item->life.token : 0;
        s->entries[s->count++] = (snapshot_entry){dv_item_name(p, i), token, item->life.stage == DV_STAGE_REVOKED,
                                                  item->life.stage == DV_STAGE_LEAVING};
    }
    assert(s->count == count);
    return s;
}

divvy_partition *dv_snapshot_take(divvy_partitioner *p) {
    /* Past the deadline nothing is owned, though no event may have said so yet. */
    if (p->totals.shown && !dv_client_alive_at(p->object.client, dv_client_now(p->object.client)))
        return make(p, dv_item_shown, 0, p->is_short);
    if (!p->snapshot) p->snapshot = make(p, dv_item_shown, p->totals.shown, p->is_short);
    if (p->snapshot) atomic_fetch_add(&p->snapshot->refs, 1);
    return p->snapshot;
}

divvy_partition *dv_snapshot_take_prepare(divvy_partitioner *p) {
    size_t count = 0;
    for (size_t i = 0; i < dv_item_count(p); i++) count += is_preparing(dv_item_at(p, i));
    return make(p, is_preparing, count, false);
}

void divvy_partition_unref(divvy_partition *s) {
    if (!s || atomic_fetch_sub(&s->refs, 1) != 1) return;
    dv_names_unref(s->names);
    free(s);
}

size_t divvy_partition_count(const divvy_partition *s) {
    return s ? s->count : 0;
}

const char *divvy_partition_item(const divvy_partition *s, size_t i) {
    return s && i < s->count ? s->entries[i].name : NULL;
}

int64_t divvy_partition_token(const divvy_partition *s, size_t i) {
    return s && i < s->count ? s->entries[i].token : 0;
}

int divvy_partition_revoked(const divvy_partition *s, size_t i) {
    return s && i < s->count && s->entries[i].revoked;
}

int divvy_partition_leaving(const divvy_partition *s, size_t i) {
    return s && i < s->count && s->entries[i].leaving;
}

uint64_t divvy_partition_generation(const divvy_partition *s) {
    return s ? s->generation : 0;
}

int divvy_partition_short(const divvy_partition *s) {
    return s && s->is_short;
}
