/* Waiting until items are held by those whom the plan gives them to. SPDX-License-Identifier: Apache-2.0 */
#include "held_wait.h"

#include <stdlib.h>
#include <string.h>

#include <divvy/divvy.h>

#include "base/texts.h"
#include "plan/tags.h"
#include "plan/wish.h"
#include "pool/wishes.h"
#include "recipe/queue.h"
#include "status_plan.h"
#include "znode/path.h"

enum { CLIENT_PREFIX_BYTES = 22 /* N5: session and client */ };

int dv_held_wait_init(dv_held_wait *w, dv_look *look, const char *path) {
    *w = (dv_held_wait){.look = look};
    char *root = dv_look_path(look, path);
    w->party_path = root ? dv_path_join(root, "party") : NULL;
    w->locks = root ? dv_path_join(root, "locks") : NULL;
    free(root);
    int error = dv_pool_plan_init(&w->plan, look, path);
    return w->party_path && w->locks ? error : DIVVY_ENOMEM;
}

void dv_held_wait_free(dv_held_wait *w) {
    dv_pool_plan_free(&w->plan);
    for (size_t i = 0; i < w->item_count; i++) free(w->items[i]);
    free(w->items);
    free(w->nodes);
    free(w->party_path);
    free(w->locks);
}

int dv_held_wait_add(dv_held_wait *w, const char *item) {
    if (w->item_count == w->item_room) {
        size_t room = 2 * w->item_room + 64;
        char **items = realloc(w->items, room * sizeof *items);
        if (!items) return DIVVY_ENOMEM;
        w->items = items;
        w->item_room = room;
    }
    w->items[w->item_count] = strdup(item);
    return w->items[w->item_count] && ++w->item_count ? 0 : DIVVY_ENOMEM;
}

bool dv_held_wait_known(const dv_held_wait *w) {
    return w->plan.memory.standing == DV_PLAN_GOOD;
}

/* ---- the party ---- */

static char *party_path(void *context, size_t i) {
    (void)i;
    return strdup(((dv_held_wait *)context)->party_path);
}

static int take_party(void *context, size_t i, const dv_reply *reply) {
    dv_held_wait *w = context;
    (void)i;
    if (reply->error == DIVVY_EACCES) return reply->error;
    char **nodes = dv_texts_copy(reply->children, reply->child_count);
    if (!nodes) return DIVVY_ENOMEM;
    free(w->nodes);
    w->nodes = nodes;
    w->node_count = reply->child_count;
    return 0;
}

/* ---- who holds an item ---- */

/* Returns whether a place is one of the member's, by its node. An absent member has none left. */
static bool is_of(const dv_held_wait *w, bool is_static, const char *key, const char *place) {
    for (size_t i = 0; i < w->node_count; i++) {
        const char *node = w->nodes[i], *dash = strchr(node, '-');
        bool own = is_static ? dash && strcmp(dash + 1, key) == 0 : strcmp(node, key) == 0;
        if (own && strncmp(place, node, CLIENT_PREFIX_BYTES) == 0) return true;
    }
    return false;
}

/* `holder` NULL: nobody holds the item. */
static bool is_wanted_so(const dv_held_wait *w, const char *item, const char *holder) {
    if (w->away_from) return holder ? !is_of(w, w->is_static, w->away_from, holder) : w->lets_go;
    const dv_plan *plan = w->plan.memory.plan;
    const dv_plan_member *owner = dv_status_plan_owner(plan, item);
    const char *tag = dv_wishes_tag(plan->wishes, item);
    bool placed = dv_wishes_find(plan->wishes, DV_WISH_PIN, item) || dv_wishes_find(plan->wishes, DV_WISH_MOVE, item);
    if (owner && tag && !placed && !dv_tags_has(owner->tags, tag)) return false; /* A later round moves it. */
    return owner && holder ? is_of(w, owner->is_static, owner->key, holder) : !owner && !holder;
}

static char *queue_path(void *context, size_t i) {
    const dv_held_wait *w = context;
    char *node = dv_look_node_of(w->items[i]);
    char *path = node ? dv_path_join(w->locks, node) : NULL;
    free(node);
    return path;
}

static int take_queue(void *context, size_t i, const dv_reply *reply) {
    dv_held_wait *w = context;
    if (reply->error == DIVVY_EACCES) return reply->error;
    const char **queue = (const char **)(uintptr_t)malloc((reply->child_count + 1) * sizeof *queue);
    if (!queue) return DIVVY_ENOMEM;
    bool held = dv_queue_contenders(reply->children, reply->child_count, queue) > 0;
    if (is_wanted_so(w, w->items[i], held ? queue[0] : NULL)) {
        free(w->items[i]);
        w->items[i] = NULL;
    }
    free((void *)queue);
    return 0;
}

/* ---- looks ---- */

static void sift(dv_held_wait *w) {
    size_t kept = 0;
    for (size_t i = 0; i < w->item_count; i++) {
        if (w->items[i]) w->items[kept++] = w->items[i];
    }
    w->item_count = kept;
}

/* Those that are no longer dealt are nobody's. */
static void drop_undealt(dv_held_wait *w) {
    for (size_t i = 0; i < w->item_count; i++) {
        if (dv_pool_item(w->plan.memory.plan, w->items[i]) != SIZE_MAX) continue;
        free(w->items[i]);
        w->items[i] = NULL;
    }
    sift(w);
}

int dv_held_wait_look(dv_look *look, void *wait) {
    dv_held_wait *w = wait;
    int error = dv_pool_plan_read(&w->plan);
    if (error || !dv_held_wait_known(w)) return error;
    const dv_reads party = {DV_CHILDREN, 1, party_path, take_party, w};
    error = dv_look_read(look, &party);
    if (error) return error;
    drop_undealt(w);
    const dv_reads queues = {DV_CHILDREN, w->item_count, queue_path, take_queue, w};
    error = dv_look_read(look, &queues);
    sift(w);
    return error;
}
