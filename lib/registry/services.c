/* Services: the healthy ones of a role, or of all, at one moment. SPDX-License-Identifier: Apache-2.0 */
#include "registry/services.h"

#include <stdlib.h>

struct divvy_services {
    atomic_uint refs;
    int64_t from_ms, until_ms; /* of the servers' clock: before and after these others are healthy */
    size_t count;
    dv_entry *entries[];
};

/* Takes the entry if it is healthy. Narrows the time for which that is so of the same entries. */
static void take(divvy_services *s, dv_entry *entry, int64_t server_now_ms) {
    bool healthy = dv_entry_is_healthy(entry, server_now_ms);
    bool ages = !(entry->flags & (DV_ENTRY_PRESERVED | DV_ENTRY_DISABLED));
    int64_t expiry_ms = dv_entry_expiry_ms(entry);
    if (ages && healthy && expiry_ms < s->until_ms) s->until_ms = expiry_ms;
    if (ages && !healthy && expiry_ms > s->from_ms) s->from_ms = expiry_ms;
    if (healthy) s->entries[s->count++] = entry;
}

divvy_services *dv_services_new(const dv_entries *entries, int64_t server_now_ms) {
    divvy_services *s = malloc(sizeof *s + entries->count * sizeof s->entries[0]);
    if (!s) return NULL;
    atomic_init(&s->refs, 1);
    s->from_ms = INT64_MIN;
    s->until_ms = INT64_MAX;
    s->count = 0;
    for (size_t i = 0; i < entries->count; i++) take(s, entries->list[i], server_now_ms);
    if (s->count) qsort(s->entries, s->count, sizeof s->entries[0], dv_entry_compare);
    for (size_t i = 0; i < s->count; i++) dv_entry_ref(s->entries[i]);
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

void divvy_services_unref(divvy_services *s) {
    if (!s || atomic_fetch_sub(&s->refs, 1) != 1) return;
    for (size_t i = 0; i < s->count; i++) dv_entry_free(s->entries[i]);
    free(s);
}

size_t divvy_services_count(const divvy_services *s) {
    return s ? s->count : 0;
}

const cJSON *divvy_services_entry(const divvy_services *s, size_t i) {
    return s && i < s->count ? s->entries[i]->json : NULL;
}
