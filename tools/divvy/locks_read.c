/* Locks and semaphores as they stand. SPDX-License-Identifier: Apache-2.0 */
#include "locks_read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <divvy/divvy.h>

#include "base/padded.h"
#include "recipe/queue.h"
#include "znode/path.h"
#include "znode/sequence.h"

static const char queue_suffix[] = "-__lock__"; /* docs/protocol.md, E1: a semaphore's queue stands beside it */

/* A directory to be listed. */
typedef struct {
    dv_lock_entry *entry;
    bool is_queue; /* the queue of a semaphore */
} directory;

/* A node to be read. */
typedef struct {
    dv_lock_entry *entry;
    dv_place *place;
} visit;

typedef struct {
    dv_locks *locks;
    char *parents[2]; /* of locks, of semaphores; at the servers */
    directory *directories;
    size_t directory_count;
    visit *visits;
    size_t visit_count;
} survey;

/* ---- which there are ---- */

static bool ends_in_queue_suffix(const char *node) {
    size_t bytes = strlen(node), suffix = sizeof queue_suffix - 1;
    return bytes >= suffix && strcmp(node + bytes - suffix, queue_suffix) == 0;
}

/* docs/protocol.md, G1: a semaphore whose name is like that of another's queue stands elsewhere. */
static char *node_of(const char *name, bool is_semaphore) {
    char *node = dv_look_node_of(name), *other = NULL;
    size_t suffix = sizeof queue_suffix - 1;
    if (!node || !is_semaphore || !ends_in_queue_suffix(node)) return node;
    if (asprintf(&other, "%.*s%%2D%s", (int)(strlen(node) - suffix), node, queue_suffix + 1) < 0) other = NULL;
    free(node);
    return other;
}

static char *name_of(const char *node, bool is_semaphore) {
    size_t bytes = dv_name_decode(node, NULL, 0) + 1;
    char *name = malloc(bytes), *back = NULL;
    if (name) dv_name_decode(node, name, bytes);
    if (name) back = node_of(name, is_semaphore);
    bool ours = back && strcmp(back, node) == 0;
    free(back);
    if (ours) return name;
    free(name);
    return dv_look_name_of(node);
}

static int add_entry(dv_locks *locks, const char *name, const char *node, bool is_semaphore) {
    dv_lock_entry *grown = realloc(locks->entries, (locks->entry_count + 1) * sizeof *grown);
    if (!grown) return DIVVY_ENOMEM;
    locks->entries = grown;
    dv_lock_entry *e = &grown[locks->entry_count++];
    *e = (dv_lock_entry){.name = name ? strdup(name) : name_of(node, is_semaphore),
                         .node = node ? strdup(node) : node_of(name, is_semaphore),
                         .is_semaphore = is_semaphore,
                         .limit_state = DV_LIMIT_UNSET};
    return e->name && e->node ? 0 : DIVVY_ENOMEM;
}

static bool is_in(const dv_reply *reply, const char *name, size_t bytes) {
    for (size_t i = 0; i < reply->child_count; i++) {
        if (strncmp(reply->children[i], name, bytes) == 0 && reply->children[i][bytes] == '\0') return true;
    }
    return false;
}

/* Returns whether it is the queue of a semaphore that stands beside it. */
static bool is_queue(const dv_reply *reply, const char *node) {
    return ends_in_queue_suffix(node) && is_in(reply, node, strlen(node) - (sizeof queue_suffix - 1));
}

static char *parent_path(void *context, size_t i) {
    return strdup(((const survey *)context)->parents[i]);
}

static int take_parent(void *context, size_t i, const dv_reply *reply) {
    const survey *s = context;
    int error = reply->error == DIVVY_ENOENT ? 0 : reply->error;
    for (size_t k = 0; !error && reply->error == 0 && k < reply->child_count; k++) {
        if (i == 1 && is_queue(reply, reply->children[k])) continue;
        error = add_entry(s->locks, NULL, reply->children[k], i == 1);
    }
    return error;
}

static int compare_entries(const void *a, const void *b) {
    const dv_lock_entry *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order ? order : x->is_semaphore - y->is_semaphore;
}

/* ---- who is there, by the names of nodes alone ---- */

static char *directory_path(void *context, size_t i) {
    const survey *s = context;
    const directory *d = &s->directories[i];
    char *path = dv_path_join(s->parents[d->entry->is_semaphore], d->entry->node);
    if (!path || !d->is_queue) return path;
    char *longer = realloc(path, strlen(path) + sizeof queue_suffix);
    if (!longer) free(path);
    else strcat(longer, queue_suffix);
    return longer;
}

static dv_place *add_places(dv_lock_entry *e, size_t count) {
    dv_place *grown = realloc(e->places, (e->place_count + count + 1) * sizeof *grown);
    if (!grown) return NULL;
    e->places = grown;
    dv_place *added = grown + e->place_count;
    for (size_t i = 0; i < count; i++) added[i] = (dv_place){.slots = {.count = 0}};
    return added;
}

/* E2: every child of the pool is a lease. */
static int take_leases(dv_lock_entry *e, const dv_reply *reply) {
    dv_place *places = add_places(e, reply->child_count);
    if (!places) return DIVVY_ENOMEM;
    for (size_t i = 0; i < reply->child_count; i++) {
        dv_place *p = &places[i];
        p->node = strdup(reply->children[i]);
        if (!p->node) return DIVVY_ENOMEM;
        e->place_count++;
        p->holds = true;
        if (!dv_slots_parse(p->node, &p->slots)) p->slots = (dv_slots){.count = 0};
        e->held += p->slots.count ? p->slots.count : 1;
    }
    return 0;
}

/* Q3: writers hold when nobody is before them, readers when no writer is. */
static int take_queue(dv_lock_entry *e, const dv_reply *reply) {
    const char **names = (const char **)(uintptr_t)calloc(reply->child_count + 1, sizeof *names);
    dv_place *places = add_places(e, reply->child_count);
    int error = names && places ? 0 : DIVVY_ENOMEM;
    size_t count = error ? 0 : dv_queue_contenders(reply->children, reply->child_count, names);
    bool writer_before = false;
    for (size_t i = 0; !error && i < count; i++) {
        dv_place *p = &places[i];
        int32_t sequence;
        p->node = strdup(names[i]);
        if (!p->node) error = DIVVY_ENOMEM;
        else e->place_count++;
        p->shared = dv_sequence_parse(names[i], "__rlock__", &sequence);
        p->in_queue = e->is_semaphore;
        p->holds = !e->is_semaphore && (i == 0 || (p->shared && !writer_before));
        writer_before = writer_before || !p->shared;
        if (p->holds) e->held++;
        else e->waiting++;
    }
    free((void *)(uintptr_t)names);
    return error;
}

static int take_directory(void *context, size_t i, const dv_reply *reply) {
    const directory *d = &((const survey *)context)->directories[i];
    if (reply->error) return reply->error == DIVVY_ENOENT ? 0 : reply->error;
    if (!d->is_queue) d->entry->there = true;
    return d->entry->is_semaphore && !d->is_queue ? take_leases(d->entry, reply) : take_queue(d->entry, reply);
}

static int list_directories(survey *s) {
    s->directories = calloc(2 * s->locks->entry_count + 1, sizeof *s->directories);
    if (!s->directories) return DIVVY_ENOMEM;
    /* The queue of a semaphore comes behind its pool, so that its places do too. */
    for (size_t i = 0; i < s->locks->entry_count; i++) {
        dv_lock_entry *e = &s->locks->entries[i];
        s->directories[s->directory_count++] = (directory){e, false};
        if (e->is_semaphore) s->directories[s->directory_count++] = (directory){e, true};
    }
    return 0;
}

/* ---- what they say ---- */

/* E2: which children of a semaphore are leases is seen by a look at them. */
static bool is_visited(const dv_locks *locks, const dv_lock_entry *e, const dv_place *p) {
    return locks->name || (p->holds && (locks->holders || e->is_semaphore));
}

static int add_visits(survey *s) {
    size_t count = 0;
    for (size_t i = 0; i < s->locks->entry_count; i++) count += 1 + s->locks->entries[i].place_count;
    s->visits = calloc(count + 1, sizeof *s->visits);
    if (!s->visits) return DIVVY_ENOMEM;
    for (size_t i = 0; i < s->locks->entry_count; i++) {
        dv_lock_entry *e = &s->locks->entries[i];
        if (e->is_semaphore) s->visits[s->visit_count++] = (visit){e, NULL};
        for (size_t k = 0; k < e->place_count; k++) {
            if (!is_visited(s->locks, e, &e->places[k])) continue;
            e->places[k].hidden = true; /* until its answer is taken */
            s->visits[s->visit_count++] = (visit){e, &e->places[k]};
        }
    }
    return 0;
}

static char *visit_path(void *context, size_t i) {
    const survey *s = context;
    const visit *v = &s->visits[i];
    directory d = {v->entry, v->place && v->place->in_queue};
    survey alone = {.parents = {s->parents[0], s->parents[1]}, .directories = &d};
    char *path = directory_path(&alone, 0);
    char *deeper = path && v->place ? dv_path_join(path, v->place->node) : NULL;
    if (!v->place) return path;
    free(path);
    return deeper;
}

/* E11: what divvy wrote about a semaphore is JSON; all else is an identifier. */
static int take_place(const dv_lock_entry *e, dv_place *p, const dv_reply *reply) {
    if (e->is_semaphore && p->holds && reply->stat->ephemeral_owner == 0) return 0; /* E2: it is no lease. */
    char *data = dv_padded_copy(reply->data, reply->data_bytes);
    if (!data) return DIVVY_ENOMEM;
    bool json = e->is_semaphore && (p->in_queue ? *data == '{' : p->slots.count > 0);
    p->there = true;
    p->token = reply->stat->czxid;
    p->made_ms = reply->stat->ctime_ms;
    p->session = reply->stat->ephemeral_owner;
    dv_record_state state = dv_record_parse(data, reply->data_bytes, json, &p->record);
    free(data);
    p->understood = state == DV_RECORD_GOOD;
    if (p->understood && p->slots.count) p->record.count = p->slots.count; /* The name counts, whatever is said. */
    return state == DV_RECORD_OUT_OF_MEMORY ? DIVVY_ENOMEM : 0;
}

static int take_visit(void *context, size_t i, const dv_reply *reply) {
    const visit *v = &((const survey *)context)->visits[i];
    if (v->place) v->place->hidden = false;
    if (reply->error) return reply->error == DIVVY_ENOENT ? 0 : reply->error;
    if (v->place) return take_place(v->entry, v->place, reply);
    v->entry->limit_state = dv_limit_parse(reply->data_bytes ? reply->data : "", reply->data_bytes, &v->entry->limit);
    return 0;
}

/* ---- the whole ---- */

static void free_place(dv_place *p) {
    if (p->understood) dv_record_free(&p->record);
    free(p->node);
}

/* Compares places by token. Contenders that left while we read are left out. Holders of a semaphore stand in no
 * order until their tokens are known. */
static int compare_places(const void *a, const void *b) {
    const dv_place *x = a, *y = b;
    return (x->token > y->token) - (x->token < y->token);
}

static void sift(const dv_locks *locks, dv_lock_entry *e) {
    size_t kept = 0, holders = 0;
    for (size_t i = 0; i < e->place_count; i++) {
        dv_place *p = &e->places[i];
        if (p->there || p->hidden || !is_visited(locks, e, p)) {
            holders += p->holds;
            e->places[kept++] = *p;
            continue;
        }
        if (p->holds) e->held -= p->slots.count ? p->slots.count : 1;
        else e->waiting--;
        free_place(p);
    }
    e->place_count = kept;
    if (e->is_semaphore && holders) qsort(e->places, holders, sizeof *e->places, compare_places);
}

static void free_entry(dv_lock_entry *e) {
    for (size_t k = 0; k < e->place_count; k++) free_place(&e->places[k]);
    free(e->places);
    free(e->name);
    free(e->node);
}

/* Those that may not be listed, or have gone. */
static void drop_absent(dv_locks *locks) {
    size_t kept = 0;
    for (size_t i = 0; i < locks->entry_count; i++) {
        if (locks->entries[i].there) locks->entries[kept++] = locks->entries[i];
        else free_entry(&locks->entries[i]);
    }
    locks->entry_count = kept;
}

static int list_entries(dv_look *look, survey *s) {
    dv_locks *locks = s->locks;
    if (locks->name) {
        int error = add_entry(locks, locks->name, NULL, false);
        return error ? error : add_entry(locks, locks->name, NULL, true);
    }
    dv_reads parents = {DV_CHILDREN, 2, parent_path, take_parent, s};
    int error = dv_look_read_shown(look, &parents, &locks->hidden);
    if (!error && locks->entry_count > 0)
        qsort(locks->entries, locks->entry_count, sizeof *locks->entries, compare_entries);
    return error;
}

static int survey_locks(dv_look *look, survey *s) {
    int error = list_entries(look, s);
    if (!error) error = list_directories(s);
    size_t *hidden = s->locks->name ? NULL : &s->locks->hidden;
    dv_reads directories = {DV_CHILDREN, s->directory_count, directory_path, take_directory, s};
    if (!error) error = dv_look_read_shown(look, &directories, hidden);
    if (!error) error = add_visits(s);
    dv_reads visits = {DV_GET, s->visit_count, visit_path, take_visit, s};
    if (!error) error = dv_look_read_shown(look, &visits, hidden);
    for (size_t i = 0; !error && i < s->locks->entry_count; i++) sift(s->locks, &s->locks->entries[i]);
    if (!error && !s->locks->name) drop_absent(s->locks);
    s->locks->read_at_ms = dv_look_wall_ms();
    return error;
}

int dv_locks_read(dv_look *look, void *context) {
    dv_locks *locks = context;
    dv_locks_clear(locks);
    survey s = {.locks = locks};
    char *root = dv_look_path(look, locks->root);
    if (root) s.parents[0] = dv_path_join(root, "locks");
    if (root) s.parents[1] = dv_path_join(root, "semaphores");
    int error = s.parents[0] && s.parents[1] ? survey_locks(look, &s) : DIVVY_ENOMEM;
    free(root);
    free(s.parents[0]);
    free(s.parents[1]);
    free(s.directories);
    free(s.visits);
    return error;
}

void dv_locks_clear(dv_locks *locks) {
    for (size_t i = 0; i < locks->entry_count; i++) free_entry(&locks->entries[i]);
    free(locks->entries);
    *locks = (dv_locks){.root = locks->root, .name = locks->name, .holders = locks->holders};
}
