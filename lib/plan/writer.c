/* The writer of the sticky plan: one attempt to write the next one. SPDX-License-Identifier: Apache-2.0
 *
 * docs/protocol.md, rules D25 to D28, D30, D44. The steps stand in the order in which they are taken; each begins when
 * all that the one before has requested is answered. */
#include "plan/writer.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "plan/draft.h"
#include "plan/step.h"
#include "znode/path.h"
#include "znode/request.h"

enum { CHUNKS_IN_FLIGHT = 4, READINGS_MOST = 4, COMMIT_OPS_MAX = 4, DELETES_MOST = 500 };

/* The root at P/plan. */
typedef struct {
    bool is_there;
    int64_t mzxid;
    int32_t version;
    char epoch[DV_GUID_BYTES]; /* what one that cannot be followed says; "": nothing */
    uint64_t generation;       /* likewise */
} found_root;

struct dv_plan_writer {
    dv_event starting; /* first */
    divvy_client *client;
    dv_listener listener;
    dv_plan_writer_config config;
    const dv_plan_writer_events *events;
    void *owner;

    void (*step)(dv_plan_writer *a, int64_t now); /* next, when nothing is under way */
    unsigned under_way;
    int error;    /* the first one of this step */
    bool cut;     /* the connection that the attempt was made on has gone */
    bool stopped; /* by its owner */
    bool over;    /* its outcome was told */

    unsigned readings;
    int64_t party_pzxid;
    found_root found;
    char epoch[DV_GUID_BYTES];
    bool epoch_missing; /* there is no such child, though the root says so */
    bool epoch_made;    /* by this attempt, for a root that is there */
    char *epoch_path;
    dv_plan *next;
    dv_plan_draft draft;
    size_t chunks_sent;
    bool past_read; /* the memory has what stood in the epoch child */
    dv_plan_text past;
    dv_stat stat;   /* of the root as set */
    char **garbage; /* paths of the chunks to delete */
    size_t garbage_count, deleted;
};

static void read_all(dv_plan_writer *a, int64_t now);

/* ---- the end ---- */

static void drop_past(dv_plan_writer *a) {
    free(a->past.bytes);
    a->past = (dv_plan_text){0};
}

static void drop_texts(dv_plan_writer *a) {
    a->chunks_sent = 0;
    dv_plan_draft_clear(&a->draft);
    drop_past(a);
    dv_plan_free(a->next);
    a->next = NULL;
    free(a->epoch_path);
    a->epoch_path = NULL;
}

static void leave(dv_plan_writer *a, int64_t now) {
    assert(a->under_way == 0);
    dv_unlisten(a->client, &a->listener);
    a->events->gone(a->owner, now);
    drop_texts(a);
    for (size_t n = 0; n < a->garbage_count; n++) free(a->garbage[n]);
    free(a->garbage);
    free(a);
}

/* Its owner may stop it inside. */
static void tell(dv_plan_writer *a, dv_plan_outcome outcome, int error, int64_t now) {
    assert(!a->over && !a->stopped);
    a->over = true;
    a->under_way++;
    a->events->done(a->owner, outcome, error, now);
    a->under_way--;
}

static void finish(dv_plan_writer *a, dv_plan_outcome outcome, int error, int64_t now) {
    tell(a, outcome, error, now);
    leave(a, now);
}

/* ---- steps ---- */

static void note(dv_plan_writer *a, int error) {
    if (a->error == 0) a->error = error;
}

/* Notes that something was requested, or could not be. */
static void requested(dv_plan_writer *a, int error) {
    assert(!a->stopped);
    if (error == 0) a->under_way++;
    else note(a, error);
}

static void proceed(dv_plan_writer *a, int64_t now) {
    if (a->under_way > 0) return;
    if (a->stopped) leave(a, now);
    else a->step(a, now);
}

/* Begins a step: requests from here on are answered before `step` comes. */
static void begin(dv_plan_writer *a, void (*step)(dv_plan_writer *a, int64_t now)) {
    assert(a->under_way == 0 && !a->stopped);
    a->step = step;
    a->error = 0;
}

/* Takes the answer to one request of a step. */
static void answered(dv_plan_writer *a, int error, int64_t now) {
    assert(a->under_way > 0);
    a->under_way--;
    note(a, error);
    proceed(a, now);
}

static void on_reply(void *context, const dv_reply *reply, int64_t now) {
    answered(context, reply->error, now);
}

/* D25: returns whether an error or a lost connection ends the attempt. Other errors were taken out before. */
static bool has_failed(dv_plan_writer *a, int64_t now) {
    if (a->error == 0 && !a->cut) return false;
    finish(a, DV_PLAN_FAILED, a->error != 0 ? a->error : DIVVY_ECONNECTION, now);
    return true;
}

/* ---- D25: a barrier, the root, the party ---- */

/* A refused write is as good as an accepted one: both pass through the quorum. */
static void on_barrier(void *context, int error, const dv_reply *replies, size_t count, int64_t now) {
    (void)replies;
    (void)count;
    answered(context, dv_outcome_unknown(error) || dv_session_over(error) ? error : 0, now);
}

/* Looks into a root that cannot be followed: it may tell at least its epoch and its generation. */
static void look_into_root(dv_plan_writer *a, const dv_reply *reply) {
    dv_plan_root root;
    int error = dv_plan_root_parse(&root, reply->data, reply->data_bytes, NULL);
    if (error == DIVVY_ENOMEM) note(a, error);
    if (error != 0) return;
    memcpy(a->found.epoch, root.header.epoch, sizeof a->found.epoch);
    a->found.generation = root.header.generation;
    dv_plan_root_clear(&root);
}

static void on_root(void *context, const dv_reply *reply, int64_t now) {
    dv_plan_writer *a = context;
    a->found = (found_root){0};
    if (reply->error == 0) {
        a->found = (found_root){.is_there = true, .mzxid = reply->stat->mzxid, .version = reply->stat->version};
        if (a->config.memory->standing != DV_PLAN_GOOD) look_into_root(a, reply);
    }
    answered(a, reply->error != DIVVY_ENOENT ? reply->error : 0, now);
}

/* Without P/party no party can have settled, and its watcher will say so. */
static void on_party(void *context, const dv_reply *reply, int64_t now) {
    dv_plan_writer *a = context;
    bool missing = reply->error == DIVVY_ENOENT;
    if (reply->error == 0 || missing) a->party_pzxid = missing ? 0 : reply->stat->pzxid;
    answered(a, missing ? 0 : reply->error, now);
}

/* D44: whatever stands in its way leaves the history as it is, and never keeps a plan from being written. */
static void on_past(void *context, const dv_reply *reply, int64_t now) {
    dv_plan_writer *a = context;
    if (reply->error == 0) note(a, dv_plan_memory_take_past(a->config.memory, a->epoch, reply));
    a->past_read = reply->error == 0;
    answered(a, 0, now); /* A connection that broke is seen without it. */
}

static void request_past(dv_plan_writer *a) {
    const dv_plan_memory *memory = a->config.memory;
    a->past_read = false;
    if (memory->standing != DV_PLAN_GOOD || dv_plan_memory_has_past(memory) || a->epoch_made || a->epoch_missing)
        return;
    memcpy(a->epoch, memory->root.header.epoch, sizeof a->epoch);
    a->epoch_path = dv_path_join(a->config.path, a->epoch);
    requested(a,
              a->epoch_path != NULL ? dv_znode_get(a->client->znode, a->epoch_path, NULL, on_past, a) : DIVVY_ENOMEM);
}

/* Returns whether it is known what the epoch child says, or that it is new. */
static bool may_tell_past(const dv_plan_writer *a) {
    const dv_plan_memory *memory = a->config.memory;
    if (!a->found.is_there || a->epoch_made) return true;
    return (a->past_read || dv_plan_memory_has_past(memory)) && strcmp(memory->past.epoch, a->epoch) == 0;
}

/* ---- D27: the epoch ---- */

static void after_epoch(dv_plan_writer *a, int64_t now) {
    if (a->error == DIVVY_ENOENT) {
        finish(a, DV_PLAN_BEHIND, 0, now); /* The root has gone. */
    } else if (!has_failed(a, now)) {
        a->epoch_made = true;
        read_all(a, now); /* Only now is it known to stand under the root that will be read. */
    }
}

static void make_epoch(dv_plan_writer *a, int64_t now) {
    assert(a->found.is_there && !a->epoch_made);
    begin(a, after_epoch);
    free(a->epoch_path);
    dv_client_guid(a->client, a->epoch);
    a->epoch_path = dv_path_join(a->config.path, a->epoch);
    int error = DIVVY_ENOMEM;
    if (a->epoch_path != NULL) {
        error = dv_znode_create(a->client->znode, a->epoch_path, "", 0, DV_PERSISTENT, on_reply, a);
    }
    requested(a, error);
    proceed(a, now);
}

/* Chooses the child that is checked when the root is written. Returns whether there is one. */
static bool choose_epoch(dv_plan_writer *a) {
    const dv_plan_memory *memory = a->config.memory;
    if (a->epoch_made) return true;
    if (!a->found.is_there) dv_client_guid(a->client, a->epoch);
    else if (a->epoch_missing) a->epoch[0] = '\0';
    else if (memory->standing == DV_PLAN_GOOD) memcpy(a->epoch, memory->root.header.epoch, sizeof a->epoch);
    else memcpy(a->epoch, a->found.epoch, sizeof a->epoch);
    return a->epoch[0] != '\0';
}

/* ---- D26: the next plan ---- */

/* Makes the next plan; D26: the memory's as it is, where no root says anything. Returns as dv_plan_step(). */
static int compose(dv_plan_writer *a) {
    const dv_plan *previous = a->config.memory->plan;
    const dv_plan_party *party = dv_roster_party(a->config.roster);
    if (dv_plan_members_return(previous, party)) return DV_PLAN_NOTHING;
    int result = dv_plan_step(&a->next, previous, party, a->config.events);
    bool says_something = previous != NULL && previous->header.generation > 0;
    if (result != DV_PLAN_NOTHING || dv_plan_memory_is_whole(a->config.memory) || !says_something) return result;
    a->next = dv_plan_copy(previous);
    if (a->next == NULL) return DIVVY_ENOMEM;
    dv_plan_follows(a->next, previous, party, DV_PLAN_CREATE);
    return DV_PLAN_NEXT;
}

static void complete_header(dv_plan_writer *a) {
    dv_plan_header *header = &a->next->header;
    if (a->found.generation >= header->generation) header->generation = a->found.generation + 1;
    if (header->generation > DV_PLAN_INTEGER_MAX) header->generation = 1;
    dv_client_guid(a->client, header->guid);
    memcpy(header->epoch, a->epoch, sizeof header->epoch);
}

static int write_texts(dv_plan_writer *a) {
    const dv_plan_memory *memory = a->config.memory;
    assert(a->epoch[0] != '\0' && a->chunks_sent == 0);
    bool builds_on = dv_plan_memory_is_whole(memory);
    int error = dv_plan_draft_make(&a->draft, a->next, builds_on ? memory->plan : NULL,
                                   builds_on ? &memory->root : NULL, a->config.sizes);
    if (error == 0 && may_tell_past(a)) error = dv_plan_history_next(&a->past, memory, a->next, a->config.handed);
    free(a->epoch_path);
    a->epoch_path = dv_path_join(a->config.path, a->epoch);
    return a->epoch_path != NULL ? error : DIVVY_ENOMEM;
}

/* Returns whether the root is the one that the memory knows of. */
static bool knows_root(const dv_plan_writer *a) {
    const dv_plan_memory *memory = a->config.memory;
    if (memory->standing == DV_PLAN_UNREAD) return false;
    if (!a->found.is_there) return memory->standing == DV_PLAN_MISSING && memory->mzxid == 0;
    return memory->mzxid == a->found.mzxid && memory->version == a->found.version;
}

/* D25: returns whether what was read is what is known, which may be more by now. Else the attempt is over. */
static bool is_current(dv_plan_writer *a, int64_t now) {
    bool knows = knows_root(a), settled = dv_roster_party(a->config.roster)->pzxid == a->party_pzxid;
    if (!knows) finish(a, DV_PLAN_BEHIND, 0, now);
    else if (!settled) finish(a, DV_PLAN_UNSETTLED, 0, now);
    return knows && settled;
}

static void send_chunks(dv_plan_writer *a, int64_t now);
static void hold_place(dv_plan_writer *a, int64_t now);

static void compute(dv_plan_writer *a, int64_t now) {
    if (a->error == DIVVY_ENOENT || a->error == DIVVY_ECANCELED) {
        finish(a, DV_PLAN_UNSETTLED, 0, now); /* A node of the party has gone, or another party has settled. */
        return;
    }
    if (has_failed(a, now) || !is_current(a, now)) return;
    int result = compose(a);
    assert(result != DV_PLAN_ASK);
    if (result == DV_PLAN_NOTHING) {
        finish(a, DV_PLAN_NEEDLESS, 0, now);
        return;
    }
    if (result == DV_PLAN_NEXT) {
        complete_header(a);
        result = write_texts(a);
    }
    if (result != 0) finish(a, DV_PLAN_FAILED, result < 0 ? result : DIVVY_EPROTO, now);
    else if (!a->found.is_there && a->draft.chunk_count > 0) hold_place(a, now);
    else send_chunks(a, now);
}

static void on_roster(void *context, int error, int64_t now) {
    answered(context, error, now);
}

static void after_reading(dv_plan_writer *a, int64_t now) {
    if (has_failed(a, now) || !is_current(a, now)) return;
    const dv_plan_memory *memory = a->config.memory;
    if (memory->standing == DV_PLAN_NEWER && !a->config.over_newer) {
        finish(a, DV_PLAN_NEEDLESS, 0, now);
    } else if (!choose_epoch(a)) {
        make_epoch(a, now);
    } else {
        begin(a, compute);
        int reads = dv_roster_ask(a->config.roster, memory->plan, DV_ROSTER_ALL, on_roster, a);
        if (reads != 0) requested(a, reads > 0 ? 0 : reads);
        proceed(a, now);
    }
}

static void read_all(dv_plan_writer *a, int64_t now) {
    dv_znode *znode = a->client->znode;
    assert(a->readings <= READINGS_MOST);
    begin(a, after_reading);
    if (++a->readings > READINGS_MOST) {
        finish(a, DV_PLAN_BEHIND, 0, now); /* Somebody deletes under our hands. */
        return;
    }
    drop_texts(a);
    dv_op barrier = {.kind = DV_CHECK, .path = "/", .version = -1};
    requested(a, dv_znode_multi(znode, &barrier, 1, on_barrier, a));
    requested(a, dv_znode_get(znode, a->config.path, NULL, on_root, a));
    requested(a, dv_znode_children(znode, a->config.party_path, NULL, on_party, a));
    request_past(a);
    proceed(a, now);
}

/* ---- D28: the first chunks need a parent ---- */

static void on_multi(void *context, int error, const dv_reply *replies, size_t count, int64_t now) {
    dv_plan_writer *a = context;
    if (error == 0) a->stat = *replies[count - 1].stat; /* The set is the last one. */
    answered(a, error, now);
}

/* D28: whether the plan is one chunk and the root, which are made together: the root is there by now. */
static bool is_at_once(const dv_plan_writer *a) {
    return a->draft.chunk_count == 1;
}

/* Adds the chunk that is made with the root. Returns its path, NULL: an allocation failed. */
static char *add_chunk(const dv_plan_writer *a, dv_op *op) {
    dv_plan_draft_chunk c = dv_plan_draft_chunk_at(&a->draft, 0);
    char *path = dv_path_join(a->config.path, c.name);
    *op = (dv_op){.kind = DV_CREATE, .path = path, .data = c.bytes, .data_bytes = c.count, .mode = DV_PERSISTENT};
    return path;
}

/* D27: makes root and epoch, or sets the root beside its epoch. `past`, the data of that, stays if it has no bytes. */
static void send_root(dv_plan_writer *a, const dv_plan_text *text, const dv_plan_text *past, bool with_chunk) {
    const char *path = a->config.path;
    bool creates = !a->found.is_there;
    dv_op ops[COMMIT_OPS_MAX] = {{.kind = DV_CREATE, .path = path, .data = ""}}, *op = ops + creates;
    *op = (dv_op){.kind = DV_CHECK, .path = a->epoch_path, .data = "", .version = -1};
    if (creates) op->kind = DV_CREATE;
    else if (past->bytes != NULL) op->kind = DV_SET;
    if (past->bytes != NULL) op->data = past->bytes;
    op->data_bytes = past->count;
    char *chunk = with_chunk ? add_chunk(a, ++op) : NULL;
    *++op = (dv_op){.kind = DV_SET, .path = path, .data = text->bytes, .data_bytes = text->count};
    op->version = a->found.version;
    bool complete = !with_chunk || chunk != NULL;
    size_t count = (size_t)(op - ops) + 1;
    requested(a, complete ? dv_znode_multi(a->client->znode, ops, count, on_multi, a) : DIVVY_ENOMEM);
    free(chunk);
}

static void after_place(dv_plan_writer *a, int64_t now) {
    assert(!a->found.is_there && a->draft.chunk_count > 0);
    if (a->error == DIVVY_EEXIST || a->error == DIVVY_ENOENT) {
        finish(a, DV_PLAN_BEHIND, 0, now);
    } else if (!has_failed(a, now)) {
        a->found.is_there = true;
        a->found.version = a->stat.version;
        send_chunks(a, now);
    }
}

static void hold_place(dv_plan_writer *a, int64_t now) {
    char guid[DV_GUID_BYTES];
    dv_plan_text place;
    begin(a, after_place);
    dv_client_guid(a->client, guid);
    int error = dv_plan_draft_place(&place, &a->next->header, guid);
    if (error == 0) send_root(a, &place, &(dv_plan_text){0}, false);
    else note(a, error);
    free(place.bytes);
    proceed(a, now);
}

/* ---- D28: the chunks, and the root last ---- */

static void after_commit(dv_plan_writer *a, int64_t now);

static void commit(dv_plan_writer *a, int64_t now) {
    assert(a->chunks_sent == a->draft.chunk_count);
    begin(a, after_commit);
    send_root(a, &a->draft.text, &a->past, is_at_once(a));
    proceed(a, now);
}

static void after_chunks(dv_plan_writer *a, int64_t now) {
    if (a->error == DIVVY_ENOENT) {
        finish(a, DV_PLAN_BEHIND, 0, now); /* The root has gone. */
    } else if (!has_failed(a, now)) {
        commit(a, now);
    }
}

typedef struct {
    dv_plan_writer *of;
    char *path;
} chunk_create;

static void send_more(dv_plan_writer *a);

static void free_create(chunk_create *c) {
    free(c->path);
    free(c);
}

static void on_chunk(void *context, const dv_reply *reply, int64_t now) {
    dv_plan_writer *a = ((chunk_create *)context)->of;
    assert(a->under_way > 0 && a->under_way <= CHUNKS_IN_FLIGHT);
    a->under_way--;
    note(a, reply->error);
    free_create(context);
    send_more(a);
    proceed(a, now);
}

/* Its path lives until it is answered, as znode.h wants it. */
static int create_chunk(dv_plan_writer *a, const dv_plan_draft_chunk *chunk) {
    chunk_create *c = malloc(sizeof *c);
    if (c == NULL) return DIVVY_ENOMEM;
    *c = (chunk_create){a, dv_path_join(a->config.path, chunk->name)};
    int error = DIVVY_ENOMEM;
    if (c->path != NULL) {
        error = dv_znode_create(a->client->znode, c->path, chunk->bytes, chunk->count, DV_PERSISTENT, on_chunk, c);
    }
    if (error != 0) free_create(c);
    return error;
}

static void send_more(dv_plan_writer *a) {
    while (a->error == 0 && !a->cut && !a->stopped && a->under_way < CHUNKS_IN_FLIGHT &&
           a->chunks_sent < a->draft.chunk_count) {
        dv_plan_draft_chunk c = dv_plan_draft_chunk_at(&a->draft, a->chunks_sent++);
        requested(a, create_chunk(a, &c));
    }
}

static void send_chunks(dv_plan_writer *a, int64_t now) {
    assert(a->chunks_sent == 0 && (a->found.is_there || a->draft.chunk_count == 0));
    begin(a, after_chunks);
    if (is_at_once(a)) a->chunks_sent = 1;
    send_more(a);
    proceed(a, now);
}

/* ---- D30: garbage, once the plan is written ---- */

static void on_deleted(void *context, int error, const dv_reply *replies, size_t count, int64_t now) {
    (void)replies;
    (void)count;
    answered(context, error, now);
}

/* Deletes some chunks by one multi within the limits. */
static void delete_some(dv_plan_writer *a, int64_t now) {
    dv_op *ops = a->error == 0 && a->deleted < a->garbage_count ? calloc(DELETES_MOST + 2, sizeof *ops) : NULL;
    if (ops == NULL) {
        leave(a, now);
        return;
    }
    begin(a, delete_some);
    ops[0] = (dv_op){.kind = DV_CHECK, .path = a->config.path, .version = a->stat.version};
    ops[1] = (dv_op){.kind = DV_CHECK, .path = a->epoch_path, .version = -1};
    size_t count = 2, bytes = dv_op_bytes(&ops[0]) + dv_op_bytes(&ops[1]);
    while (a->deleted < a->garbage_count && count < DELETES_MOST + 2) {
        dv_op op = {.kind = DV_DELETE, .path = a->garbage[a->deleted], .version = -1};
        bytes += dv_op_bytes(&op);
        if (count > 2 && bytes > DV_MULTI_BYTES_MAX) break;
        ops[count++] = op;
        a->deleted++;
    }
    requested(a, dv_znode_multi(a->client->znode, ops, count, on_deleted, a));
    free(ops);
    proceed(a, now);
}

/* D30: lists the chunks to delete. The memory may have a later root than ours: then our deletes are refused. */
static int gather(dv_plan_writer *a, const dv_reply *list) {
    assert(a->garbage == NULL && a->deleted == 0);
    const dv_plan_root *root = &a->config.memory->root;
    const char **named = dv_plan_root_chunk_names(root);
    a->garbage = calloc(list->child_count + 1, sizeof *a->garbage);
    bool complete = named != NULL && a->garbage != NULL;
    for (size_t n = 0; complete && n < list->child_count; n++) {
        const char **name = (const char **)&list->children[n];
        uint64_t generation;
        if (!dv_plan_chunk_parse(*name, &generation) || generation > root->header.generation) continue;
        if (bsearch(name, named, dv_plan_root_chunk_count(root), sizeof *named, dv_name_compare)) continue;
        a->garbage[a->garbage_count] = dv_path_join(a->config.path, *name);
        complete = a->garbage[a->garbage_count] != NULL;
        a->garbage_count += complete;
    }
    free((void *)named);
    return complete ? 0 : DIVVY_ENOMEM;
}

static void on_children(void *context, const dv_reply *reply, int64_t now) {
    dv_plan_writer *a = context;
    if (reply->error == 0 && !a->stopped) note(a, gather(a, reply));
    answered(a, reply->error, now);
}

/* There is garbage where there are more children than the root names, and the epoch. */
static void collect(dv_plan_writer *a, int64_t now) {
    size_t named = dv_plan_root_chunk_count(&a->config.memory->root);
    begin(a, delete_some);
    if (a->stat.children < 0 || (size_t)a->stat.children > named + 1)
        requested(a, dv_znode_children(a->client->znode, a->config.path, NULL, on_children, a));
    proceed(a, now);
}

/* ---- written, or not ---- */

static void have_written(dv_plan_writer *a, int64_t now) {
    assert(a->chunks_sent == a->draft.chunk_count);
    a->next->mzxid = a->stat.mzxid;
    if (a->past.bytes != NULL) dv_plan_memory_recall(a->config.memory, a->epoch, &a->past, &a->stat);
    dv_plan_memory_take(a->config.memory, a->next, &a->draft.root, a->stat.version);
    a->next = NULL;
    tell(a, DV_PLAN_WRITTEN, 0, now);
    if (a->stopped) leave(a, now);
    else collect(a, now);
}

static void after_commit(dv_plan_writer *a, int64_t now) {
    if (a->error == 0) {
        have_written(a, now);
    } else if (a->error == DIVVY_EACCES && a->found.is_there && a->past.bytes != NULL) {
        drop_past(a);
        commit(a, now); /* D44: then without it */
    } else if (a->error == DIVVY_ENOENT && a->found.is_there && !a->cut) {
        a->epoch_missing = true; /* If it is not the root that has gone, which the next reading tells. */
        a->epoch_made = false;
        read_all(a, now);
    } else if (a->error == DIVVY_EVERSION || a->error == DIVVY_EEXIST || a->error == DIVVY_ENOENT) {
        finish(a, DV_PLAN_BEHIND, 0, now);
    } else {
        finish(a, DV_PLAN_FAILED, a->error, now);
    }
}

/* ---- from outside ---- */

static void hear(dv_listener *listener, dv_session_event event, int64_t now) {
    dv_plan_writer *a = DV_CONTAINER(listener, dv_plan_writer, listener);
    (void)now;
    if (event == DV_SESSION_SUSPENDED || event == DV_SESSION_LOST || event == DV_SESSION_CLOSED) a->cut = true;
}

static void on_starting(dv_event *event, int64_t now) {
    answered((dv_plan_writer *)(void *)event, 0, now);
}

static void start(dv_plan_writer *a, int64_t now) {
    if (!dv_client_connected(a->client)) a->cut = true;
    if (!has_failed(a, now)) read_all(a, now);
}

dv_plan_writer *dv_plan_writer_start(divvy_client *client, const dv_plan_writer_config *config,
                                     const dv_plan_writer_events *events, void *owner) {
    dv_plan_writer *a = calloc(1, sizeof *a);
    if (a == NULL) return NULL;
    *a = (dv_plan_writer){.starting.run = on_starting,
                          .client = client,
                          .config = *config,
                          .events = events,
                          .owner = owner,
                          .step = start,
                          .under_way = 1,
                          .listener = {.hear = hear}};
    dv_listen(client, &a->listener);
    dv_client_post(client, &a->starting);
    return a;
}

void dv_plan_writer_stop(dv_plan_writer *a) {
    a->stopped = true;
}
