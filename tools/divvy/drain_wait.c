/* divvy drain: waiting until others hold what the member had. SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <divvy/divvy.h>

#include "client/client.h"
#include "command.h"
#include "drain.h"
#include "recipe/queue.h"
#include "znode/path.h"

enum { BETWEEN_LOOKS_MS = 300, CLIENT_PREFIX_BYTES = 22 /* N5: session and client */ };

/* ---- who holds an item ---- */

/* Returns whether a place is one of the member's, by its node. An absent member has none left. */
static bool is_its(const dv_drain *d, const char *place) {
    for (size_t i = 0; i < d->node_count; i++) {
        const char *node = d->nodes[i], *dash = strchr(node, '-');
        bool own = d->is_static ? dash && strcmp(dash + 1, d->key) == 0 : strcmp(node, d->key) == 0;
        if (own && strncmp(place, node, CLIENT_PREFIX_BYTES) == 0) return true;
    }
    return false;
}

static char *queue_path(void *context, size_t i) {
    const dv_drain *d = context;
    char *node = dv_look_node_of(d->items[i]);
    char *path = node ? dv_path_join(d->locks, node) : NULL;
    free(node);
    return path;
}

/* An item that another holds is done with: its name goes. Of the items that it should no longer have, those go that it
 * does not hold. */
static int take_queue(void *context, size_t i, const dv_reply *reply) {
    dv_drain *d = context;
    if (reply->error == DIVVY_EACCES) return reply->error;
    const char **queue = (const char **)(uintptr_t)malloc((reply->child_count + 1) * sizeof *queue);
    if (!queue) return DIVVY_ENOMEM;
    bool held = dv_queue_contenders(reply->children, reply->child_count, queue) > 0;
    if (held ? !is_its(d, queue[0]) : d->items_before == 0) {
        free(d->items[i]);
        d->items[i] = NULL;
    }
    free(queue);
    return 0;
}

static void sift(dv_drain *d) {
    size_t kept = 0;
    for (size_t i = 0; i < d->item_count; i++) {
        if (d->items[i]) d->items[kept++] = d->items[i];
    }
    d->item_count = kept;
}

static bool is_dealt(const dv_plan *plan, const char *item) {
    return bsearch(&item, plan->set->names, plan->set->count, sizeof item, dv_name_compare) != NULL;
}

/* Those that are no longer dealt are nobody's. */
static void drop_undealt(dv_drain *d) {
    const dv_plan *plan = d->plan.memory.plan;
    for (size_t i = 0; i < d->item_count; i++) {
        if (plan->set->count > 0 && is_dealt(plan, d->items[i])) continue;
        free(d->items[i]);
        d->items[i] = NULL;
    }
    sift(d);
}

/* ---- looks ---- */

/* Notes the items that the member has by the plan. If the plan gives it none, it may still hold any item. */
int dv_drain_note_items(dv_drain *d) {
    const dv_plan *plan = d->plan.memory.plan;
    d->items = calloc(plan->set->count + 1, sizeof *d->items);
    if (!d->items) return DIVVY_ENOMEM;
    const dv_plan_member *m = dv_drain_member(d);
    for (size_t i = 0; i < plan->set->count; i++) {
        if (d->items_before > 0 && m && plan->owners[i] != m->slot) continue;
        d->items[d->item_count] = strdup(plan->set->names[i]);
        if (!d->items[d->item_count]) return DIVVY_ENOMEM;
        d->item_count++;
    }
    return 0;
}

static int look_once(dv_look *look, void *context) {
    dv_drain *d = context;
    int error = dv_pool_plan_read(&d->plan);
    if (!error && d->plan.memory.standing != DV_PLAN_GOOD) return 0; /* It comes back. */
    if (!error) error = dv_drain_read_party(d);
    if (error) return error;
    drop_undealt(d);
    const dv_reads reads = {DV_CHILDREN, d->item_count, queue_path, take_queue, d};
    error = dv_look_read(look, &reads);
    sift(d);
    return error;
}

/* Gives the member its weight back, since it keeps its items: those that were to take them have gone. Returns the exit
 * code. */
static int give_back(dv_drain *d) {
    d->restores = true;
    int error = d->weight_before > 0 ? dv_look_at(d->look, dv_drain_write, d) : 0;
    if (d->code) return d->code;
    bool restored = !error && d->weight_before > 0;
    dv_command_say("%s keeps its %zu items: no member is left that weighs more than 0%s", d->options->member,
                   dv_drain_load(d), restored ? "; its weight is what it was" : "");
    return DV_EXIT_FAILED;
}

static bool has_items(const dv_drain *d) {
    return d->item_count > 0 || dv_drain_load(d) > 0;
}

int dv_drain_wait(dv_drain *d) {
    int64_t until_ms = dv_session_now_ms() + d->options->wait_timeout_ms;
    for (;;) {
        int error = dv_look_at(d->look, look_once, d);
        if (error && !dv_look_may_recover(error)) return dv_look_failed(d->look, error);
        bool known = !error && d->plan.memory.standing == DV_PLAN_GOOD;
        if (known && !has_items(d)) return 0;
        if (known && dv_drain_is_last(d)) return give_back(d);
        if (d->options->wait_timeout_ms > 0 && dv_session_now_ms() >= until_ms) {
            dv_command_say("others do not hold all items of %s within %" PRId64 " ms: by the plan it has %zu, and %zu "
                           "wait for their owners",
                           d->options->member, d->options->wait_timeout_ms, dv_drain_load(d), d->item_count);
            return DV_EXIT_TIMED_OUT;
        }
        dv_look_pause(d->look, BETWEEN_LOOKS_MS, NULL);
    }
}
