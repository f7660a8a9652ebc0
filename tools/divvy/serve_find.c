/* Finding pools below a path. SPDX-License-Identifier: Apache-2.0
 *
 * Level by level, so that what lies near the path is found first. Nodes are asked for their Stat before they are
 * listed: the list of a million children would be megabytes. */
#include "serve_find.h"

#include <stdlib.h>
#include <string.h>

#include <divvy/divvy.h>

#include "znode/path.h"

/* The nodes of one level. */
typedef struct {
    char **paths;
    size_t count, room;
} level;

typedef struct {
    dv_look *look;
    dv_serve_found *found;
    level now, next;
    bool *is_pool, *is_wide;
    size_t *parents; /* those of `now` that have children; later those that are listed */
    size_t parent_count, nodes;
    bool last; /* the children of this level are not looked at */
} search;

static int add_path(level *l, char *path) {
    if (!path) return DIVVY_ENOMEM;
    if (l->count == l->room) {
        size_t room = l->room ? 2 * l->room : 64;
        char **grown = realloc(l->paths, room * sizeof *grown);
        if (!grown) {
            free(path);
            return DIVVY_ENOMEM;
        }
        l->paths = grown;
        l->room = room;
    }
    l->paths[l->count++] = path;
    return 0;
}

static void clear_level(level *l) {
    for (size_t i = 0; i < l->count; i++) free(l->paths[i]);
    free(l->paths);
    *l = (level){.paths = NULL};
}

/* ---- which nodes ---- */

bool dv_serve_find_enters(const char *parent, const char *name, const char *root) {
    static const char *const ours[] = {"locks", "semaphores", "services"};
    if (strcmp(parent, "/") == 0 && strcmp(name, "zookeeper") == 0) return false;
    for (size_t i = 0; strcmp(parent, root) == 0 && i < sizeof ours / sizeof *ours; i++) {
        if (strcmp(name, ours[i]) == 0) return false;
    }
    return true;
}

/* Keeps the first one, to be told. */
static int note(char **place, const char *path) {
    if (*place) return 0;
    *place = strdup(path);
    return *place ? 0 : DIVVY_ENOMEM;
}

/* ---- questions ---- */

static char *node_path(void *context, size_t i) {
    const search *s = context;
    return dv_look_path(s->look, s->now.paths[i]);
}

static int take_node(void *context, size_t i, const dv_reply *reply) {
    search *s = context;
    if (reply->error == DIVVY_EACCES) return note(&s->found->denied, s->now.paths[i]);
    if (reply->error || reply->stat->children == 0) return 0; /* It has just gone, or is no pool and leads to none. */
    s->is_wide[i] = reply->stat->children > DV_FIND_CHILDREN_MAX;
    s->parents[s->parent_count++] = i;
    return 0;
}

static char *party_path(void *context, size_t i) {
    const search *s = context;
    char *path = dv_look_path(s->look, s->now.paths[s->parents[i]]);
    char *party = path ? dv_path_join(path, "party") : NULL;
    free(path);
    return party;
}

static int take_party(void *context, size_t i, const dv_reply *reply) {
    search *s = context;
    if (reply->error == DIVVY_EACCES) return note(&s->found->denied, s->now.paths[s->parents[i]]);
    s->is_pool[s->parents[i]] = reply->error == 0;
    return 0;
}

static char *list_path(void *context, size_t i) {
    const search *s = context;
    return dv_look_path(s->look, s->now.paths[s->parents[i]]);
}

static int take_list(void *context, size_t i, const dv_reply *reply) {
    search *s = context;
    const char *path = s->now.paths[s->parents[i]];
    int error = 0;
    if (reply->error == DIVVY_EACCES) return note(&s->found->denied, path);
    if (reply->error) return 0;
    for (size_t k = 0; !error && k < reply->child_count; k++) {
        if (!dv_serve_find_enters(path, reply->children[k], s->found->root)) continue;
        if (s->nodes == DV_FIND_NODES_MAX) {
            s->found->cut = true;
            return 0;
        }
        s->nodes++;
        error = add_path(&s->next, dv_path_join(path, reply->children[k]));
    }
    return error;
}

/* ---- levels ---- */

/* Chooses the parents to be listed: what is in a pool is no pool. */
static int choose_listed(search *s) {
    size_t kept = 0;
    int error = 0;
    for (size_t i = 0; !error && i < s->parent_count; i++) {
        size_t at = s->parents[i];
        if (s->is_pool[at] || s->last) continue;
        if (s->is_wide[at]) error = note(&s->found->wide, s->now.paths[at]);
        else s->parents[kept++] = at;
    }
    s->parent_count = kept;
    return error;
}

static int keep_pools(search *s) {
    level pools = {s->found->pools, s->found->pool_count, s->found->pool_count};
    int error = 0;
    for (size_t i = 0; !error && i < s->now.count; i++) {
        if (s->is_pool[i]) error = add_path(&pools, strdup(s->now.paths[i]));
    }
    s->found->pools = pools.paths;
    s->found->pool_count = pools.count;
    return error;
}

static int look_at_level(search *s) {
    s->parent_count = 0;
    if (!s->is_pool || !s->is_wide || !s->parents) return DIVVY_ENOMEM;
    dv_reads nodes = {DV_EXISTS, s->now.count, node_path, take_node, s};
    int error = dv_look_read(s->look, &nodes);
    dv_reads parties = {DV_EXISTS, s->parent_count, party_path, take_party, s};
    if (!error && s->parent_count) error = dv_look_read(s->look, &parties);
    s->found->reads += s->now.count + s->parent_count;
    if (!error) error = choose_listed(s);
    dv_reads lists = {DV_CHILDREN, s->parent_count, list_path, take_list, s};
    if (!error && s->parent_count) error = dv_look_read(s->look, &lists);
    s->found->reads += s->parent_count;
    return error ? error : keep_pools(s);
}

static int look_below(search *s, const char *path) {
    int error = add_path(&s->now, strdup(path));
    for (int depth = 0; !error && depth <= DV_FIND_LEVELS_MAX && s->now.count; depth++) {
        s->last = depth == DV_FIND_LEVELS_MAX;
        s->is_pool = calloc(s->now.count, sizeof *s->is_pool);
        s->is_wide = calloc(s->now.count, sizeof *s->is_wide);
        s->parents = calloc(s->now.count, sizeof *s->parents);
        error = look_at_level(s);
        free(s->is_pool);
        free(s->is_wide);
        free(s->parents);
        clear_level(&s->now);
        s->now = s->next;
        s->next = (level){.paths = NULL};
    }
    clear_level(&s->now);
    return error;
}

/* ---- the whole ---- */

static void sort_pools(dv_serve_found *f) {
    size_t kept = 0;
    if (f->pool_count) qsort(f->pools, f->pool_count, sizeof *f->pools, dv_name_compare);
    for (size_t i = 0; i < f->pool_count; i++) {
        if (kept && strcmp(f->pools[kept - 1], f->pools[i]) == 0) free(f->pools[i]);
        else f->pools[kept++] = f->pools[i];
    }
    f->pool_count = kept;
}

int dv_serve_find(dv_look *look, void *context) {
    dv_serve_found *found = context;
    search s = {.look = look, .found = found};
    int error = 0;
    dv_serve_found_clear(found);
    for (size_t i = 0; !error && i < found->below->count; i++) error = look_below(&s, found->below->texts[i]);
    sort_pools(found);
    return error;
}

void dv_serve_found_clear(dv_serve_found *found) {
    for (size_t i = 0; i < found->pool_count; i++) free(found->pools[i]);
    free(found->pools);
    free(found->denied);
    free(found->wide);
    *found = (dv_serve_found){.below = found->below, .root = found->root};
}
