/* See fake_tree.h. SPDX-License-Identifier: Apache-2.0 */
#include "fake_tree.h"

#include "wait.h"

#include <string.h>

#define CHILDREN_MAX 256
#define PATH_BYTES 512
#define SERVED_MAX 10000

typedef struct node {
    struct node *next;
    char path[PATH_BYTES];
    dv_stat stat;
    int32_t sequence;
} node;

/* A write that was under way when the link broke. */
typedef struct late_write {
    struct late_write *next;
    bool is_multi;
    size_t count;
    dv_op *ops; /* with paths of their own */
} late_write;

typedef struct {
    int error;
    dv_stat stat;
    char path[PATH_BYTES];
    const char *children[CHILDREN_MAX];
    size_t child_count;
} outcome;

struct dv_tree {
    dv_fake *fake;
    node *nodes;
    late_write *late;
    int64_t zxid;
    size_t made;
    char put[PATH_BYTES];
};

static void *must(void *memory) {
    if (!memory) dv_test_die("no memory");
    return memory;
}

static node *find(const dv_tree *tree, const char *path) {
    for (node *n = tree->nodes; n; n = n->next) {
        if (strcmp(n->path, path) == 0) return n;
    }
    return NULL;
}

static node *parent_of(const dv_tree *tree, const char *path) {
    char parent[PATH_BYTES];
    size_t bytes = (size_t)(strrchr(path, '/') - path);
    snprintf(parent, sizeof parent, "%.*s", bytes ? (int)bytes : 1, path);
    return find(tree, parent);
}

static void fire(dv_tree *tree, const char *path, dv_watch_kind kind) {
    while (dv_fake_fire(tree->fake, path, kind, true)) continue;
}

static node *add(dv_tree *tree, const char *path) {
    node *n = must(calloc(1, sizeof *n));
    snprintf(n->path, sizeof n->path, "%s", path);
    n->stat.czxid = n->stat.mzxid = n->stat.pzxid = ++tree->zxid;
    n->next = tree->nodes;
    tree->nodes = n;
    return n;
}

static int make(dv_tree *tree, const char *path, int mode, int64_t owner, char made[PATH_BYTES]) {
    node *parent = parent_of(tree, path);
    if (!parent) return DIVVY_ENOENT;
    if (mode & DV_SEQUENTIAL) snprintf(made, PATH_BYTES, "%s%010d", path, parent->sequence);
    else snprintf(made, PATH_BYTES, "%s", path);
    if (find(tree, made)) return DIVVY_EEXIST;
    parent->sequence++;
    node *n = add(tree, made);
    if (mode & DV_EPHEMERAL) n->stat.ephemeral_owner = owner;
    parent->stat.pzxid = tree->zxid;
    fire(tree, made, DV_WATCH_CREATED);
    fire(tree, parent->path, DV_WATCH_CHILDREN);
    return 0;
}

static int discard(dv_tree *tree, const char *path) {
    for (node **at = &tree->nodes; *at; at = &(*at)->next) {
        node *n = *at;
        if (strcmp(n->path, path) != 0) continue;
        *at = n->next;
        node *parent = parent_of(tree, n->path);
        parent->stat.pzxid = ++tree->zxid;
        fire(tree, n->path, DV_WATCH_DELETED);
        fire(tree, parent->path, DV_WATCH_CHILDREN);
        free(n);
        return 0;
    }
    return DIVVY_ENOENT;
}

static void list(const dv_tree *tree, const char *path, outcome *out) {
    size_t bytes = strcmp(path, "/") == 0 ? 0 : strlen(path);
    for (node *n = tree->nodes; n; n = n->next) {
        bool below = strncmp(n->path, path, bytes) == 0 && n->path[bytes] == '/' && n->path[bytes + 1];
        if (!below || strchr(n->path + bytes + 1, '/')) continue;
        if (out->child_count == CHILDREN_MAX) dv_test_die("tree: too many children");
        out->children[out->child_count++] = n->path + bytes + 1;
    }
}

static void apply_one(dv_tree *tree, const dv_op *op, outcome *out) {
    *out = (outcome){.error = 0};
    if (op->kind == DV_CREATE) {
        out->error = make(tree, op->path, op->mode, DV_FAKE_SESSION, out->path);
        tree->made += out->error == 0;
    } else if (op->kind == DV_DELETE) {
        out->error = discard(tree, op->path);
    } else if (!find(tree, op->path)) {
        out->error = DIVVY_ENOENT;
    } else if (op->kind == DV_CHILDREN) {
        list(tree, op->path, out);
    }
    const node *n = find(tree, op->kind == DV_CREATE ? out->path : op->path);
    if (n && !out->error) out->stat = n->stat;
}

/* A multi is carried out as a whole or not at all. */
static int apply(dv_tree *tree, bool is_multi, const dv_op *ops, size_t count, outcome *out) {
    for (size_t i = 0; is_multi && i < count; i++) {
        const dv_op *op = &ops[i];
        bool possible = op->kind == DV_CREATE ? parent_of(tree, op->path) != NULL : find(tree, op->path) != NULL;
        if (!possible) return DIVVY_ENOENT;
        if (op->kind == DV_CREATE && !(op->mode & DV_SEQUENTIAL) && find(tree, op->path)) return DIVVY_EEXIST;
    }
    for (size_t i = 0; i < count; i++) apply_one(tree, &ops[i], &out[i]);
    return is_multi ? 0 : out->error;
}

/* --- answers ---------------------------------------------------------------------------------------------------- */

static bool is_write(const dv_fake_request *q) {
    return q->is_multi || q->ops->kind <= DV_CHECK;
}

static void free_late(late_write *w) {
    for (size_t i = 0; i < w->count; i++) free((char *)(uintptr_t)w->ops[i].path);
    free(w->ops);
    free(w);
}

static void apply_late(dv_tree *tree) {
    for (late_write *w; (w = tree->late);) {
        tree->late = w->next;
        outcome *unheard = must(calloc(w->count, sizeof *unheard));
        apply(tree, w->is_multi, w->ops, w->count, unheard);
        free(unheard);
        free_late(w);
    }
}

bool dv_tree_serve(dv_tree *tree) {
    const dv_fake_request *q = dv_fake_oldest(tree->fake);
    if (!q) return false;
    if (is_write(q)) apply_late(tree);
    outcome *out = must(calloc(q->count, sizeof *out));
    dv_reply *replies = must(calloc(q->count, sizeof *replies));
    int error = apply(tree, q->is_multi, q->ops, q->count, out);
    for (size_t i = 0; i < q->count; i++) {
        bool created = q->ops[i].kind == DV_CREATE;
        replies[i] = (dv_reply){.error = out[i].error,
                                .path = created ? out[i].path : NULL,
                                .stat = q->is_multi || out[i].error ? NULL : &out[i].stat,
                                .data = "",
                                .children = out[i].children,
                                .child_count = out[i].child_count};
    }
    if (q->is_multi) dv_fake_answer_multi(tree->fake, error, replies);
    else dv_fake_answer(tree->fake, replies);
    free(replies);
    free(out);
    return true;
}

void dv_tree_serve_all(dv_tree *tree) {
    for (int served = 0; dv_tree_serve(tree); served++) {
        if (served == SERVED_MAX) dv_test_die("tree: asked without end; under way: %s", dv_fake_pending(tree->fake));
    }
}

static late_write *keep(const dv_fake_request *q) {
    late_write *w = must(calloc(1, sizeof *w));
    *w = (late_write){NULL, q->is_multi, q->count, must(calloc(q->count, sizeof *w->ops))};
    for (size_t i = 0; i < q->count; i++) {
        w->ops[i] = q->ops[i];
        w->ops[i].path = must(strdup(q->ops[i].path));
    }
    return w;
}

void dv_tree_cut(dv_tree *tree, size_t applied, bool late) {
    late_write **end = &tree->late;
    while (*end) end = &(*end)->next;
    for (const dv_fake_request *q = dv_fake_oldest(tree->fake); q; q = q->next) {
        outcome *unheard = must(calloc(q->count, sizeof *unheard));
        if (applied > 0) {
            applied--;
            apply(tree, q->is_multi, q->ops, q->count, unheard);
        } else if (late && is_write(q)) {
            *end = keep(q);
            end = &(*end)->next;
        }
        free(unheard);
    }
    dv_fake_session(tree->fake, DIVVY_SUSPENDED);
}

void dv_tree_expire(dv_tree *tree) {
    const char *one;
    for (late_write *w; (w = tree->late); free_late(w)) tree->late = w->next;
    dv_fake_session(tree->fake, DIVVY_LOST);
    while (dv_tree_owned(tree, &one)) discard(tree, one);
}

/* --- somebody else's doing -------------------------------------------------------------------------------------- */

const char *dv_tree_put(dv_tree *tree, const char *path, int mode, int64_t owner) {
    if (make(tree, path, mode, owner, tree->put)) dv_test_die("tree: cannot put %s", path);
    return tree->put;
}

void dv_tree_remove(dv_tree *tree, const char *path) {
    if (discard(tree, path)) dv_test_die("tree: there is no %s", path);
}

bool dv_tree_has(const dv_tree *tree, const char *path) {
    return find(tree, path) != NULL;
}

size_t dv_tree_owned(const dv_tree *tree, const char **one) {
    size_t count = 0;
    if (one) *one = NULL;
    for (const node *n = tree->nodes; n; n = n->next) {
        if (n->stat.ephemeral_owner != DV_FAKE_SESSION) continue;
        count++;
        if (one) *one = n->path;
    }
    return count;
}

size_t dv_tree_made(const dv_tree *tree) {
    return tree->made;
}

dv_tree *dv_tree_new(dv_fake *fake) {
    dv_tree *tree = must(calloc(1, sizeof *tree));
    tree->fake = fake;
    add(tree, "/");
    return tree;
}

void dv_tree_free(dv_tree *tree) {
    for (node *n; (n = tree->nodes); free(n)) tree->nodes = n->next;
    for (late_write *w; (w = tree->late); free_late(w)) tree->late = w->next;
    free(tree);
}
