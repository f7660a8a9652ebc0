/* The notes of other members: read, with a watch, while an item needs them. SPDX-License-Identifier: Apache-2.0 */
#include "handover/notes.h"

#include <assert.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "znode/path.h"

struct dv_notes {
    divvy_client *client;
    const char *directory;
    dv_notes_changed_fn changed;
    void *owner;
    dv_note_view *views;
    void *by_name; /* the same: tsearch() */
    size_t under_way;
    bool freed; /* by its owner: the last answer frees it */
};

static void read_note(dv_note_view *v);

/* ---- views ---- */

static int compare(const void *a, const void *b) {
    return strcmp(((const dv_note_view *)a)->name, ((const dv_note_view *)b)->name);
}

static bool take_room(dv_note_view *v) {
    size_t cost = dv_path_cost(v->path);
    if (!v->cost && dv_reserve_watch(v->of->client, cost)) v->cost = cost;
    return v->cost;
}

static void give_room(dv_note_view *v) {
    dv_znode_unwatch(v->of->client->znode, &v->watch);
    if (v->cost) dv_release_watch(v->of->client, v->cost);
    v->cost = 0;
}

static void free_view(dv_note_view *v) {
    assert(!v->reading);
    give_room(v);
    dv_note_clear(&v->note);
    free(v->path);
    free(v);
}

/* One whose answer is still to come is freed by that. */
static void drop(dv_note_view **link) {
    dv_note_view *v = *link;
    *link = v->next;
    tdelete(v, &v->of->by_name, compare);
    v->dropped = true;
    if (!v->reading) free_view(v);
}

/* ---- reading ---- */

static void stand(dv_note_view *v, dv_note_standing standing) {
    assert(standing != DV_NOTE_UNREAD);
    if (standing == DV_NOTE_ABSENT) dv_note_clear(&v->note);
    v->was_there |= standing == DV_NOTE_THERE;
    v->standing = standing;
}

/* Returns whether it says something else than before. */
static bool take(dv_note_view *v, const dv_reply *reply) {
    dv_note note;
    if (reply->error == 0 && v->standing == DV_NOTE_THERE && v->mzxid == reply->stat->mzxid) return false;
    int error = reply->error ? reply->error : dv_note_parse(&note, reply->data, reply->data_bytes, NULL);
    if (error == DIVVY_ENOMEM) dv_client_again(v->of->client);
    if (dv_outcome_unknown(error) || dv_session_over(error)) return false;
    if (error) {
        bool was_absent = v->standing == DV_NOTE_ABSENT;
        stand(v, DV_NOTE_ABSENT);
        return !was_absent;
    }
    dv_note_clear(&v->note);
    v->note = note;
    v->mzxid = reply->stat->mzxid;
    v->written_ms = reply->stat->version > 0 ? reply->stat->mtime_ms : 0; /* It may be made with what was given. */
    stand(v, DV_NOTE_THERE);
    return true;
}

static void on_read(void *context, const dv_reply *reply, int64_t now) {
    dv_note_view *v = context;
    dv_notes *notes = v->of;
    assert(v->reading && notes->under_way > 0);
    v->reading = false;
    notes->under_way--;
    if (v->dropped) {
        free_view(v);
        if (notes->freed && notes->under_way == 0) free(notes);
        return;
    }
    bool changed = take(v, reply);
    if (v->look_again) read_note(v);
    else if (v->standing == DV_NOTE_ABSENT && reply->error) give_room(v); /* A read that fails leaves no watch. */
    if (changed) notes->changed(notes->owner, v, now);
}

static void on_fired(dv_watch *watch, dv_watch_kind kind, int64_t now) {
    (void)kind;
    (void)now;
    read_note(DV_CONTAINER(watch, dv_note_view, watch));
}

static void read_note(dv_note_view *v) {
    divvy_client *client = v->of->client;
    v->look_again = v->reading;
    if (v->reading || !dv_client_connected(client)) return;
    v->watch.fired = on_fired;
    if (dv_znode_get(client->znode, v->path, &v->watch, on_read, v) != 0) {
        dv_client_again(client);
        return;
    }
    v->reading = true;
    v->of->under_way++;
}

/* ---- wanting ---- */

dv_note_view *dv_notes_keep(dv_note_view *v) {
    if (v) v->wanted = true;
    return v;
}

static dv_note_view *make_view(dv_notes *notes, const char *node) {
    dv_note_view *v = calloc(1, sizeof *v);
    if (!v) return NULL;
    *v = (dv_note_view){.of = notes, .path = dv_path_join(notes->directory, node)};
    v->name = v->path ? dv_path_last(v->path) : NULL;
    if (!v->name || !tsearch(v, &notes->by_name, compare)) {
        free(v->path);
        free(v);
        return NULL;
    }
    v->next = notes->views;
    notes->views = v;
    if (take_room(v)) read_note(v);
    else v->standing = DV_NOTE_ABSENT; /* Without room for a watch its member is treated as one without a note. */
    return v;
}

dv_note_view *dv_notes_want(dv_notes *notes, const char *node) {
    dv_note_view key = {.name = node};
    dv_note_view **found = (dv_note_view **)tfind(&key, &notes->by_name, compare);
    return dv_notes_keep(found ? *found : make_view(notes, node));
}

void dv_notes_sweep(dv_notes *notes) {
    for (dv_note_view **link = &notes->views; *link;) {
        dv_note_view *v = *link;
        bool wanted = v->wanted;
        v->wanted = false;
        if (wanted) link = &v->next;
        else drop(link);
    }
}

const dv_note_view *dv_notes_first(const dv_notes *notes) {
    return notes->views;
}

/* ---- its life ---- */

void dv_notes_connected(dv_notes *notes) {
    for (dv_note_view *v = notes->views; v; v = v->next) {
        if (!v->reading && take_room(v)) read_note(v);
    }
}

dv_notes *dv_notes_new(divvy_client *client, const char *directory, dv_notes_changed_fn changed, void *owner) {
    dv_notes *notes = calloc(1, sizeof *notes);
    if (notes) *notes = (dv_notes){.client = client, .directory = directory, .changed = changed, .owner = owner};
    return notes;
}

void dv_notes_free(dv_notes *notes) {
    if (!notes) return;
    while (notes->views) drop(&notes->views);
    notes->freed = true;
    if (notes->under_way == 0) free(notes);
}
