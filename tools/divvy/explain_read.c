/* One item of a pool, as it stands. SPDX-License-Identifier: Apache-2.0 */
#include "explain_read.h"

#include <stdlib.h>
#include <string.h>

#include <divvy/divvy.h>

#include "deaths_read.h"
#include "handover/note.h"
#include "status_plan.h"
#include "znode/path.h"
#include "znode/sequence.h"

/* PLACES_MAX: more are not named. */
enum { PLACES_MAX = 100, NAME_BYTES_MAX = 4096 };

typedef struct {
    dv_explanation *e;
    char *root; /* at the servers */
    const char *note_nodes[2];
    dv_explain_note *notes[2];
    size_t note_count;
    uint32_t index; /* of the item in the plan */
} survey;

static const dv_status_item *find_item(const dv_status *status) {
    for (size_t i = 0; i < status->item_count; i++) {
        if (strcmp(status->items[i].name, status->expected->names[0]) == 0) return &status->items[i];
    }
    return NULL;
}

/* ---- the queue ---- */

static char *queue_path(void *context, size_t i) {
    (void)i;
    return strdup(((const survey *)context)->e->queue);
}

static int compare_places(const void *a, const void *b) {
    return dv_sequence_compare(((const dv_explain_place *)a)->sequence, ((const dv_explain_place *)b)->sequence);
}

static int take_queue(void *context, size_t i, const dv_reply *reply) {
    dv_explanation *e = ((survey *)context)->e;
    (void)i;
    if (reply->error == DIVVY_ENOENT) return 0;
    if (reply->error) return reply->error;
    e->places = calloc(reply->child_count + 1, sizeof *e->places);
    if (!e->places) return DIVVY_ENOMEM;
    for (size_t k = 0; k < reply->child_count; k++) {
        int32_t sequence;
        if (!dv_sequence_parse(reply->children[k], "__lock__", &sequence)) continue;
        char *node = strdup(reply->children[k]);
        if (!node) return DIVVY_ENOMEM;
        e->places[e->place_count++] = (dv_explain_place){.node = node, .sequence = sequence, .member = DV_NO_MEMBER};
    }
    if (e->place_count) qsort(e->places, e->place_count, sizeof *e->places, compare_places);
    return 0;
}

static char *place_path(void *context, size_t i) {
    const survey *s = context;
    return dv_path_join(s->e->queue, s->e->places[i].node);
}

static int take_place(void *context, size_t i, const dv_reply *reply) {
    dv_explain_place *place = &((survey *)context)->e->places[i];
    if (reply->error == DIVVY_ENOENT) return 0; /* It has just gone; without a name it is dropped. */
    if (reply->error) return reply->error;
    place->token = reply->stat->czxid;
    place->made_ms = reply->stat->ctime_ms;
    place->session = reply->stat->ephemeral_owner;
    size_t bytes = reply->data_bytes < NAME_BYTES_MAX ? reply->data_bytes : NAME_BYTES_MAX;
    place->name = strndup(bytes ? reply->data : "", bytes);
    return place->name ? 0 : DIVVY_ENOMEM;
}

static int read_queue(dv_look *look, survey *s) {
    dv_explanation *e = s->e;
    dv_reads queue = {DV_CHILDREN, 1, queue_path, take_queue, s};
    int error = dv_look_read(look, &queue);
    for (; !error && e->place_count > PLACES_MAX; e->place_count--) free(e->places[e->place_count - 1].node);
    dv_reads places = {DV_GET, e->place_count, place_path, take_place, s};
    if (!error) error = dv_look_read(look, &places);
    size_t kept = 0;
    for (size_t i = 0; !error && i < e->place_count; i++) {
        dv_explain_place *place = &e->places[i];
        if (!place->name) {
            free(place->node);
            place->node = NULL;
            continue;
        }
        error = dv_status_name_owner(e->status, place->session, &place->name, &place->member);
        dv_explain_place named = *place;
        *place = (dv_explain_place){.node = NULL};
        e->places[kept++] = named;
    }
    if (!error) e->place_count = kept;
    return error;
}

/* ---- the plan and the notes ---- */

static char *plan_path(void *context, size_t i) {
    (void)i;
    return dv_path_join(((const survey *)context)->root, "plan");
}

static int take_plan(void *context, size_t i, const dv_reply *reply) {
    (void)i;
    if (reply->error == 0) ((survey *)context)->e->planned_ms = reply->stat->mtime_ms;
    return 0;
}

static char *note_path(void *context, size_t i) {
    const survey *s = context;
    return dv_look_deep_path(s->root, "notes", s->note_nodes[i]);
}

static int take_note(void *context, size_t i, const dv_reply *reply) {
    const survey *s = context;
    const dv_plan *plan = dv_status_plan(s->e->status);
    dv_note note;
    if (reply->error || !plan) return 0; /* A member that has none, or hides it, takes part in no handover. */
    int error = dv_note_parse(&note, reply->data, reply->data_bytes, NULL);
    if (error) return error == DIVVY_ENOMEM ? error : 0;
    bool counts = dv_note_is_of(&note, plan->set);
    *s->notes[i] = (dv_explain_note){.there = counts,
                                     .leaving = counts && dv_note_is_leaving(&note, s->index),
                                     .ready = counts && dv_note_is_ready(&note, s->index),
                                     .written_ms = reply->stat->mtime_ms};
    dv_note_clear(&note);
    return 0;
}

/* Finds the item in the plan. */
static bool is_in_plan(survey *s, const dv_plan *plan, const char *name) {
    for (size_t i = 0; i < plan->set->count; i++) {
        s->index = (uint32_t)i;
        if (strcmp(plan->set->names[i], name) == 0) return true;
    }
    return false;
}

static int read_plan(dv_look *look, survey *s) {
    dv_explanation *e = s->e;
    const dv_status_item *item = e->item;
    const dv_plan *plan = dv_status_plan(e->status);
    if (!plan || !item) return 0;
    e->is_planned = is_in_plan(s, plan, item->name);
    size_t owner = e->place_count ? e->places[0].member : DV_NO_MEMBER;
    size_t next = item->planned ? item->planned->member : DV_NO_MEMBER;
    if (owner != DV_NO_MEMBER) {
        s->note_nodes[s->note_count] = e->status->members[owner].node;
        s->notes[s->note_count++] = &e->of_owner;
    }
    if (next != DV_NO_MEMBER && next != owner) {
        s->note_nodes[s->note_count] = e->status->members[next].node;
        s->notes[s->note_count++] = &e->of_next;
    }
    dv_reads when = {DV_EXISTS, 1, plan_path, take_plan, s};
    int error = dv_look_read(look, &when);
    dv_reads notes = {DV_GET, e->is_planned ? s->note_count : 0, note_path, take_note, s};
    return error ? error : dv_look_read(look, &notes);
}

/* ---- the whole ---- */

int dv_explain_read(dv_look *look, void *context) {
    dv_explanation *e = context;
    dv_explain_clear(e);
    int error = dv_status_pool_read(look, e->status);
    if (!error) e->item = find_item(e->status);
    if (!e->item) return error;
    survey s = {.e = e, .root = dv_look_path(look, e->status->path)};
    e->queue = s.root ? dv_look_deep_path(s.root, "locks", e->item->node) : NULL;
    error = e->queue ? read_queue(look, &s) : DIVVY_ENOMEM;
    if (!error) error = read_plan(look, &s);
    if (!error) error = dv_deaths_read(look, s.root, &e->deaths);
    free(s.root);
    return error;
}

void dv_explain_clear(dv_explanation *e) {
    for (size_t i = 0; i < e->place_count; i++) {
        free(e->places[i].node);
        free(e->places[i].name);
    }
    free(e->places);
    free(e->queue);
    *e = (dv_explanation){.status = e->status};
}
