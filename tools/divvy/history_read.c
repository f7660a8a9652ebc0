/* The history of a pool's plan, as it stands. SPDX-License-Identifier: Apache-2.0
 *
 * docs/protocol.md, D44. Root, epoch child, root again: so that child is the one beside this very plan. */
#include "history_read.h"

#include <stdlib.h>
#include <string.h>

#include <divvy/divvy.h>

#include "deaths_read.h"
#include "handover/note.h"
#include "znode/path.h"

enum { TRIES = 5 };

typedef struct {
    dv_pool_history *h;
    char *root; /* P, at the servers */
    int64_t plan_mzxid;
    dv_stat epoch;
    char **notes;
    size_t note_count;
    int64_t last_note_ms;
} survey;

const dv_plan *dv_pool_history_plan(const dv_pool_history *h) {
    const dv_plan_memory *memory = &h->plan->memory;
    bool good = memory->standing == DV_PLAN_GOOD && memory->plan->header.generation > 0;
    return good ? memory->plan : NULL;
}

/* ---- is there a pool ---- */

static char *party_path(void *context, size_t i) {
    return dv_path_join(((const survey *)context)->root, i == 0 ? "party" : "locks");
}

static int take_party(void *context, size_t i, const dv_reply *reply) {
    (void)i;
    if (reply->error != DIVVY_ENOENT) ((survey *)context)->h->found = true;
    return 0;
}

/* ---- the epoch child, and the root ---- */

static char *epoch_path(void *context, size_t i) {
    const survey *s = context;
    (void)i;
    return dv_path_join(s->h->plan->path, s->h->plan->memory.root.header.epoch);
}

/* Whatever is wrong with it, the plan itself can be told. */
static int take_epoch(void *context, size_t i, const dv_reply *reply) {
    survey *s = context;
    dv_pool_history *h = s->h;
    (void)i;
    h->told.count = 0;
    h->unreadable = reply->error == DIVVY_EACCES;
    if (reply->error) return 0;
    s->epoch = *reply->stat;
    int error = dv_plan_history_parse(&h->told, reply->data, reply->data_bytes, NULL);
    if (error == DIVVY_ENOMEM) return error;
    h->unreadable = error && reply->data_bytes > 0;
    return 0;
}

static char *plan_path(void *context, size_t i) {
    (void)i;
    return strdup(((const survey *)context)->h->plan->path);
}

static int take_plan(void *context, size_t i, const dv_reply *reply) {
    survey *s = context;
    (void)i;
    s->plan_mzxid = reply->error ? 0 : reply->stat->mzxid;
    if (!reply->error) s->h->planned_ms = reply->stat->mtime_ms;
    return 0;
}

/* ---- the notes: how long the newest change took ---- */

static char *notes_path(void *context, size_t i) {
    (void)i;
    return dv_path_join(((const survey *)context)->root, "notes");
}

static int take_notes(void *context, size_t i, const dv_reply *reply) {
    survey *s = context;
    (void)i;
    if (reply->error) return 0; /* Nobody hands anything over, or we may not see it. */
    s->notes = calloc(reply->child_count + 1, sizeof *s->notes);
    for (; s->notes && s->note_count < reply->child_count; s->note_count++) {
        s->notes[s->note_count] = strdup(reply->children[s->note_count]);
        if (!s->notes[s->note_count]) return DIVVY_ENOMEM;
    }
    return s->notes ? 0 : DIVVY_ENOMEM;
}

static char *note_path(void *context, size_t i) {
    const survey *s = context;
    return dv_look_deep_path(s->root, "notes", s->notes[i]);
}

static int take_note(void *context, size_t i, const dv_reply *reply) {
    survey *s = context;
    dv_note note;
    (void)i;
    if (reply->error) return 0;
    int error = dv_note_parse(&note, reply->data, reply->data_bytes, NULL);
    if (error) return error == DIVVY_ENOMEM ? error : 0;
    bool counts = dv_note_is_of(&note, dv_pool_history_plan(s->h)->set);
    const dv_stat *stat = reply->stat;
    bool gave = counts && note.given_count > 0 && stat->version > 0 && stat->mzxid > s->plan_mzxid;
    if (counts && note.leaving_count > 0) s->h->under_way = true;
    if (gave && stat->mtime_ms > s->last_note_ms) s->last_note_ms = stat->mtime_ms;
    dv_note_clear(&note);
    return 0;
}

static int read_notes(dv_look *look, survey *s) {
    dv_pool_history *h = s->h;
    const dv_reads list = {DV_CHILDREN, 1, notes_path, take_notes, s};
    int error = dv_look_read(look, &list);
    const dv_reads each = {DV_GET, s->note_count, note_path, take_note, s};
    if (!error) error = dv_look_read(look, &each);
    if (h->under_way || s->last_note_ms == 0) return error;
    h->took_ms = s->last_note_ms > h->planned_ms ? s->last_note_ms - h->planned_ms : 0;
    return error;
}

/* ---- the whole ---- */

static int read_texts(dv_look *look, survey *s) {
    const dv_reads epoch = {DV_GET, 1, epoch_path, take_epoch, s}, again = {DV_EXISTS, 1, plan_path, take_plan, s};
    int error = 0;
    for (int n = 0; !error && n < TRIES; n++) {
        error = dv_pool_plan_read(s->h->plan);
        const dv_plan *plan = error ? NULL : dv_pool_history_plan(s->h);
        if (!plan) return error;
        error = dv_look_read(look, &epoch);
        if (!error) error = dv_look_read(look, &again);
        if (!error && s->plan_mzxid == plan->mzxid) return 0;
    }
    return error ? error : DIVVY_EVERSION;
}

static void complete(dv_pool_history *h, const survey *s) {
    const dv_plan *plan = dv_pool_history_plan(h);
    dv_plan_change *newest = h->told.count > 0 ? &h->told.changes[h->told.count - 1] : NULL;
    if (!newest) return;
    if (newest->at_ms == 0) newest->at_ms = s->epoch.mtime_ms;
    h->ends_with_it = newest->generation == plan->header.generation && s->epoch.mzxid == plan->mzxid;
    if (h->ends_with_it) newest->took_ms = h->took_ms;
}

int dv_pool_history_read(dv_look *look, void *context) {
    dv_pool_history *h = context;
    *h = (dv_pool_history){.path = h->path, .plan = h->plan, .took_ms = -1};
    survey s = {.h = h, .root = dv_look_path(look, h->path)};
    const dv_reads pool = {DV_EXISTS, 2, party_path, take_party, &s};
    int error = s.root ? dv_look_read(look, &pool) : DIVVY_ENOMEM;
    if (!error && h->found) error = read_texts(look, &s);
    const dv_plan *plan = error || !h->found ? NULL : dv_pool_history_plan(h);
    if (plan) error = read_notes(look, &s);
    if (plan && !error) error = dv_deaths_read(look, s.root, &h->deaths);
    if (plan && !error) complete(h, &s);
    h->read_at_ms = dv_look_wall_ms();
    for (size_t i = 0; i < s.note_count; i++) free(s.notes[i]);
    free(s.notes);
    free(s.root);
    return error;
}
