/* The audit of the places that we hold: docs/protocol.md, P13. SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdlib.h>

#include "base/container.h"
#include "partitioner/partitioner.h"

enum { AUDIT_INTERVAL_MS = 60000, GROUP_MAX = 200 };

/* Held places that are checked by one multi. */
typedef struct {
    divvy_partitioner *p;
    size_t count;
    dv_item *items[GROUP_MAX];
} audit_group;

static void free_group(audit_group *g) {
    for (size_t i = 0; i < g->count; i++) dv_item_unref(g->items[i]);
    free(g);
}

static void on_checked(void *context, int error, const dv_reply *replies, size_t count, int64_t now) {
    (void)replies;
    (void)count;
    audit_group *g = context;
    divvy_partitioner *p = g->p;
    /* A multi tells of its first failure only, so each place is asked for by itself then. */
    for (size_t i = 0; error == DIVVY_ENOENT && i < g->count; i++) {
        const dv_item *item = g->items[i];
        if (item->life.is_first) dv_contender_verify(item->life.contender);
    }
    free_group(g);
    dv_op_end(p, now);
}

static void send_group(audit_group *g) {
    dv_op ops[GROUP_MAX];
    for (size_t i = 0; i < g->count; i++) {
        const char *path = dv_contender_path(g->items[i]->life.contender);
        ops[i] = (dv_op){.kind = DV_CHECK, .path = path, .version = -1};
    }
    divvy_partitioner *p = g->p;
    if (dv_znode_multi(p->object.client->znode, ops, g->count, on_checked, g) == 0) dv_op_begin(p);
    else free_group(g);
}

static void on_timer(dv_timer *timer, int64_t now);

void dv_audit_now(divvy_partitioner *p, int64_t now) {
    p->audit_timer.fire = on_timer;
    dv_timer_set(p->object.client, &p->audit_timer, now + AUDIT_INTERVAL_MS);
    if (p->state == DIVVY_FAILURE || !dv_client_connected(p->object.client)) return;
    audit_group *g = NULL;
    for (size_t i = 0; i < dv_item_count(p); i++) {
        if (!dv_item_at(p, i)->life.is_first) continue;
        if (!g && (g = calloc(1, sizeof *g)) != NULL) g->p = p;
        if (!g) return; /* Without memory now; the next audit is a minute away. */
        g->items[g->count++] = dv_item_ref(dv_item_at(p, i));
        if (g->count < GROUP_MAX) continue;
        send_group(g);
        g = NULL;
    }
    if (g) send_group(g);
    dv_items_sweep(p);
}

static void on_timer(dv_timer *timer, int64_t now) {
    dv_audit_now(DV_CONTAINER(timer, divvy_partitioner, audit_timer), now);
}
