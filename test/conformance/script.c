/* The commands of a trace, drawn from a seed. SPDX-License-Identifier: Apache-2.0
 *
 * Most of them are about few paths, so that commands meet one another's nodes. For that the script remembers names
 * that the servers have made, and the versions that they told. */
#include <stdlib.h>
#include <string.h>

#include "conformance.h"

script *script_learning;

int64_t script_between(script *s, int64_t min, int64_t max) {
    return dv_mem_prng_between(&s->prng, min, max);
}

bool script_chance(script *s, int percent) {
    return script_between(s, 0, 99) < percent;
}

void script_begin(script *s, uint64_t seed) {
    *s = (script){.block_count = 0};
    dv_mem_prng_seed(&s->prng, seed);
    snprintf(s->root, sizeof s->root, "/c%llu", (unsigned long long)seed);
    for (size_t i = 0; i < KNOWN; i++) snprintf(s->known[i].path, PATH_BYTES, "%s", s->root);
}

void script_learn(const char *path, int32_t version) {
    script *s = script_learning;
    if (!s || strlen(path) >= PATH_BYTES) return;
    for (size_t i = 0; i < KNOWN; i++) {
        if (strcmp(s->known[i].path, path) != 0) continue;
        s->known[i].version = version;
        return;
    }
    size_t at = s->known_next++ % KNOWN;
    snprintf(s->known[at].path, PATH_BYTES, "%s", path);
    s->known[at].version = version;
}

void script_free_round(script *s) {
    while (s->block_count > 0) free(s->blocks[--s->block_count]);
}

static void *keep(script *s, void *block) {
    if (!block || s->block_count == BLOCKS_MAX) abort();
    return s->blocks[s->block_count++] = block;
}

/* ---- paths ---- */

static const char *invalid_path(script *s) {
    static const char *const paths[] = {"",    "a",     "/a//b",   "/a/",        "/zookeeper/q", "/a/.",
                                        "/..", "/\x01", "/a/\xff", "/zookeeper", "//",           "/a\xef\xbf\xbf"};
    return paths[script_between(s, 0, (int64_t)(sizeof paths / sizeof *paths) - 1)];
}

static void few(script *s, char path[PATH_BYTES]) {
    size_t at = (size_t)snprintf(path, PATH_BYTES, "%s", s->root);
    for (int64_t depth = script_between(s, script_chance(s, 10) ? 0 : 1, 3); depth > 0; depth--)
        at += (size_t)snprintf(path + at, PATH_BYTES - at, "/%c", (char)('a' + script_between(s, 0, 2)));
}

/* Returns the path of a node that may be there. */
static const char *some_path(script *s) {
    char path[PATH_BYTES];
    if (script_chance(s, 1)) return invalid_path(s);
    if (script_chance(s, 3)) return "/";
    if (script_chance(s, 60)) snprintf(path, sizeof path, "%s", s->known[script_between(s, 0, KNOWN - 1)].path);
    else few(s, path);
    return keep(s, strdup(path));
}

/* Returns the path of a node to be made, below one that may be there. */
static const char *new_path(script *s, bool sequential) {
    static const char *const names[] = {"n-", "a", "q\xc3\xa9-", "b__lock__"};
    char path[PATH_BYTES];
    const char *parent = some_path(s);
    if (script_chance(s, 30) || strlen(parent) > PATH_BYTES - 24 || parent[0] != '/') return parent;
    if (strcmp(parent, "/") == 0 && !script_chance(s, 10)) parent = s->root;
    if (strcmp(parent, "/") == 0) parent = "";
    if (sequential) snprintf(path, sizeof path, "%.60s/%s", parent, names[script_between(s, 0, 3)]);
    else snprintf(path, sizeof path, "%.60s/%c", parent, (char)('a' + script_between(s, 0, 2)));
    return keep(s, strdup(path));
}

static int32_t some_version(script *s, const char *path) {
    if (script_chance(s, 50)) return -1;
    if (script_chance(s, 5)) return (int32_t)script_between(s, -3, INT32_MAX);
    for (size_t i = 0; i < KNOWN; i++)
        if (strcmp(s->known[i].path, path) == 0 && script_chance(s, 75)) return s->known[i].version;
    return (int32_t)script_between(s, 0, 2);
}

static void some_data(script *s, dv_op *op) {
    int64_t bytes = script_between(s, 0, 12);
    if (script_chance(s, 2)) bytes = script_between(s, 1000, 5000);
    if (script_between(s, 0, 1999) == 0) bytes = 1000001; /* more than a request may have */
    char *data = keep(s, malloc((size_t)bytes + 1));
    for (int64_t i = 0; i < bytes; i++) data[i] = (char)('a' + (i < 12 ? script_between(s, 0, 25) : i % 26));
    op->data = bytes ? data : NULL;
    op->data_bytes = (size_t)bytes;
}

/* ---- commands ---- */

static dv_op some_write(script *s, bool in_multi) {
    static const dv_kind kinds[] = {DV_CREATE, DV_CREATE, DV_CREATE, DV_CREATE, DV_SET,
                                    DV_SET,    DV_DELETE, DV_DELETE, DV_CHECK,  DV_CHECK};
    dv_op op = {.kind = kinds[script_between(s, 0, in_multi ? 9 : 7)], .version = -1};
    if (op.kind == DV_CREATE) {
        op.mode = (script_chance(s, 35) ? DV_EPHEMERAL : 0) | (script_chance(s, 45) ? DV_SEQUENTIAL : 0);
        op.path = new_path(s, op.mode & DV_SEQUENTIAL);
    } else {
        op.path = some_path(s);
        op.version = some_version(s, op.path);
    }
    if (op.kind == DV_CREATE || op.kind == DV_SET) some_data(s, &op);
    return op;
}

/* Half of all multis are of nodes of their own, so that enough of them succeed; the rest as it comes. */
static void some_multi(script *s, command *c) {
    c->is_multi = true;
    c->count = (size_t)script_between(s, 1, script_chance(s, 10) ? OPS_MAX : 5);
    bool own = script_chance(s, 50);
    for (size_t i = 0; i < c->count; i++) {
        dv_op *op = &c->ops[i];
        *op = some_write(s, true);
        if (!own) continue;
        if (op->kind == DV_CREATE && !(op->mode & DV_SEQUENTIAL)) op->mode |= DV_SEQUENTIAL;
        if (op->kind == DV_SET || op->kind == DV_CHECK) {
            op->path = s->root;
            op->version = -1;
        }
        if (op->kind == DV_CREATE || op->kind == DV_DELETE) {
            /* Made by this very multi, and deleted again by a later one of its operations. */
            char path[PATH_BYTES];
            snprintf(path, sizeof path, "%s/%c%lld", s->root, op->kind == DV_CREATE ? 'm' : 'o',
                     (long long)script_between(s, 0, 3));
            if (op->kind == DV_CREATE) op->path = keep(s, strdup(path));
            else if (script_chance(s, 50)) *op = (dv_op){.kind = DV_CHECK, .path = s->root, .version = -1};
        }
    }
    if (own && c->count >= 3 && script_chance(s, 40)) {
        char *path = keep(s, malloc(PATH_BYTES));
        snprintf(path, PATH_BYTES, "%s/once", s->root);
        c->ops[0] = (dv_op){.kind = DV_CREATE, .path = path, .mode = script_chance(s, 50) ? DV_EPHEMERAL : 0};
        c->ops[1] = (dv_op){.kind = DV_SET, .path = path, .data = "once", .data_bytes = 4, .version = 0};
        c->ops[c->count - 1] = (dv_op){.kind = DV_DELETE, .path = path, .version = 1};
    }
}

static void some_read(script *s, int seat_number, command *c) {
    static const dv_kind kinds[] = {DV_GET, DV_EXISTS, DV_CHILDREN};
    c->count = 1;
    c->ops[0] = (dv_op){.kind = kinds[script_between(s, 0, 2)], .path = some_path(s)};
    if (strcmp(c->ops[0].path, "/") == 0 && c->ops[0].kind == DV_CHILDREN) c->ops[0].kind = DV_EXISTS;
    if (script_chance(s, 60)) c->watch = s->watch_next[seat_number]++ % WATCHES;
}

void script_command(script *s, int seat_number, command *c, bool reads_only) {
    *c = (command){.watch = -1};
    int64_t what = script_between(s, 0, 99);
    if (reads_only || what < 45) {
        some_read(s, seat_number, c);
    } else if (what < 80) {
        c->count = 1;
        c->ops[0] = some_write(s, false);
    } else {
        some_multi(s, c);
    }
}
