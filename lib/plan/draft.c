/* The texts of a plan that is to be written: its root, and the chunks that go before. SPDX-License-Identifier:
 * Apache-2.0
 *
 * docs/protocol.md, D7 and D28. */
#include "plan/draft.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "divvy/error.h"
#include "znode/path.h"

enum { DELTAS_MOST = 16 }; /* D28: a joiner reads them all */

static void clear_text(dv_plan_text *text) {
    free(text->bytes);
    *text = (dv_plan_text){0};
}

void dv_plan_draft_clear(dv_plan_draft *draft) {
    dv_plan_root_clear(&draft->root);
    clear_text(&draft->text);
    for (size_t n = 0; n < draft->chunk_count; n++) free(draft->chunks[n].path);
    free(draft->chunks);
    for (size_t n = 0; n < DV_PLAN_DRAFT_TEXTS; n++) clear_text(&draft->texts[n]);
    *draft = (dv_plan_draft){0};
}

/* ---- all in the root ---- */

static int make_inline(dv_plan_draft *out, const dv_plan *plan) {
    dv_plan_text items = {0}, base = {0};
    *out = (dv_plan_draft){0};
    int error = dv_plan_root_describe(&out->root, plan);
    if (error == 0) error = dv_plan_print_items(&items, plan->set);
    if (error == 0) error = dv_plan_print_base(&base, plan);
    dv_plan_part_inline(&out->root.items, &items);
    dv_plan_part_inline(&out->root.base, &base);
    memcpy(out->root.base_guid, plan->header.guid, sizeof out->root.base_guid);
    if (error == 0) error = dv_plan_print_root(&out->text, &out->root);
    if (error != 0) dv_plan_draft_clear(out);
    return error;
}

int dv_plan_draft_make_place(dv_plan_draft *out, const dv_plan_header *header, const char *guid) {
    dv_plan *place = dv_plan_make(dv_plan_set_make(NULL, 0));
    if (place == NULL) return DIVVY_ENOMEM;
    place->header = *header;
    place->header.generation = 0;
    place->header.after[0] = '\0';
    place->header.reason = DV_PLAN_CREATE;
    memcpy(place->header.guid, guid, sizeof place->header.guid);
    int error = make_inline(out, place);
    dv_plan_free(place);
    return error;
}

/* At least so many bytes do items and base take; an item's name is never shorter in its text. */
static size_t parts_bytes(const dv_plan *plan) {
    return plan->set->block_bytes + plan->set->count;
}

/* Drafts a small plan in the root alone; *made says whether it did. D7: small plans have neither chunks nor deltas. */
static int try_inline(dv_plan_draft *out, const dv_plan *plan, size_t root_bytes_max, bool *made) {
    *made = false;
    if (parts_bytes(plan) > root_bytes_max) return 0;
    int error = make_inline(out, plan);
    *made = error == 0 && out->text.count <= root_bytes_max;
    if (error == 0 && !*made) dv_plan_draft_clear(out);
    return error == DIVVY_E2BIG ? 0 : error;
}

/* ---- chunks ---- */

typedef struct {
    const char *path; /* of the root, under which chunks stand */
    size_t chunk_bytes;
} cutting;

/* Adds a part's chunks to those that are to be made. */
static int cut(dv_plan_draft *draft, dv_plan_part *part, const dv_plan_text *text, const cutting *how) {
    uint32_t number = (uint32_t)draft->chunk_count;
    const dv_plan_header *header = &draft->root.header;
    int error = dv_plan_part_cut(part, text, how->chunk_bytes, header->generation, header->guid, &number);
    if (error != 0) return error;
    dv_plan_draft_chunk *chunks = realloc(draft->chunks, (draft->chunk_count + part->chunk_count) * sizeof *chunks);
    if (chunks == NULL) return DIVVY_ENOMEM;
    draft->chunks = chunks;
    const char *bytes = text->bytes;
    for (size_t n = 0; n < part->chunk_count; n++) {
        const dv_plan_chunk *chunk = &part->chunks[n];
        char *path = dv_path_join(how->path, chunk->name);
        if (path == NULL) return DIVVY_ENOMEM;
        draft->chunks[draft->chunk_count++] = (dv_plan_draft_chunk){path, bytes, chunk->bytes};
        bytes += chunk->bytes;
    }
    assert(bytes == text->bytes + text->count);
    return 0;
}

static int copy_part(dv_plan_part *to, const dv_plan_part *from) {
    return dv_plan_part_copy(to, from) ? 0 : DIVVY_ENOMEM;
}

/* ---- a base, or one delta more ---- */

static bool in_chunks(const dv_plan_root *root) {
    bool all = root->items.text == NULL && root->base.text == NULL;
    for (size_t d = 0; all && d < root->delta_count; d++) all = root->deltas[d].part.text == NULL;
    return all;
}

/* D28: whether a delta of so many bytes is to be added to these. */
static bool delta_pays(const dv_plan_root *root, size_t bytes) {
    for (size_t d = 0; d < root->delta_count; d++) bytes += root->deltas[d].part.bytes;
    return bytes <= root->base.bytes / 2;
}

static int fill_with_delta(dv_plan_draft *out, const dv_plan_root *from_root, const dv_plan_text *delta,
                           const cutting *how) {
    dv_plan_root *root = &out->root;
    int error = copy_part(&root->items, &from_root->items);
    if (error == 0) error = copy_part(&root->base, &from_root->base);
    memcpy(root->base_guid, from_root->base_guid, sizeof root->base_guid);
    root->deltas = calloc(from_root->delta_count + 1, sizeof *root->deltas);
    if (root->deltas == NULL) return DIVVY_ENOMEM;
    for (size_t d = 0; error == 0 && d < from_root->delta_count; d++) {
        dv_plan_delta *copy = &root->deltas[root->delta_count++];
        memcpy(copy->guid, from_root->deltas[d].guid, sizeof copy->guid);
        error = copy_part(&copy->part, &from_root->deltas[d].part);
    }
    if (error != 0) return error;
    assert(root->delta_count == from_root->delta_count);
    dv_plan_delta *last = &root->deltas[root->delta_count++];
    memcpy(last->guid, root->header.guid, sizeof last->guid);
    return cut(out, &last->part, delta, how);
}

/* Drafts a delta, where D28 wants one; *made says whether it did. */
static int try_delta(dv_plan_draft *out, const dv_plan *plan, const dv_plan *from, const dv_plan_root *from_root,
                     const cutting *how, bool *made) {
    *made = false;
    if (from_root->delta_count == DELTAS_MOST || !in_chunks(from_root)) return 0;
    dv_plan_text *delta = &out->texts[0];
    int error = dv_plan_print_delta(delta, from, plan);
    if (error == 0 && delta_pays(from_root, delta->count)) {
        error = dv_plan_root_describe(&out->root, plan);
        if (error == 0) error = fill_with_delta(out, from_root, delta, how);
        if (error == 0) error = dv_plan_print_root(&out->text, &out->root);
        *made = error == 0;
    }
    if (!*made) dv_plan_draft_clear(out);
    return error == DIVVY_E2BIG ? 0 : error;
}

static int make_base(dv_plan_draft *out, const dv_plan *plan, const dv_plan_part *items, const cutting *how) {
    dv_plan_text *items_text = &out->texts[0], *base = &out->texts[1];
    int error = dv_plan_root_describe(&out->root, plan);
    if (error == 0) error = dv_plan_print_base(base, plan);
    if (error == 0 && items == NULL) error = dv_plan_print_items(items_text, plan->set);
    if (error == 0) error = items ? copy_part(&out->root.items, items) : cut(out, &out->root.items, items_text, how);
    if (error == 0) error = cut(out, &out->root.base, base, how);
    memcpy(out->root.base_guid, plan->header.guid, sizeof out->root.base_guid);
    if (error == 0) error = dv_plan_print_root(&out->text, &out->root);
    if (error != 0) dv_plan_draft_clear(out);
    return error;
}

int dv_plan_draft_make(dv_plan_draft *out, const char *path, const dv_plan *plan, const dv_plan *from,
                       const dv_plan_root *from_root, const dv_plan_sizes *sizes) {
    static const dv_plan_sizes standard = {DV_PLAN_INLINE_ROOT_BYTES, DV_PLAN_CHUNK_BYTES};
    if (sizes == NULL) sizes = &standard;
    *out = (dv_plan_draft){0};
    const cutting how = {path, sizes->chunk_bytes};
    bool made, same_set = from != NULL && dv_plan_set_equal(from->set, plan->set);
    int error = try_inline(out, plan, sizes->inline_root_bytes, &made);
    if (error == 0 && !made && same_set) error = try_delta(out, plan, from, from_root, &how, &made);
    if (error != 0 || made) return error;
    return make_base(out, plan, same_set && from_root->items.text == NULL ? &from_root->items : NULL, &how);
}

/* ---- what is written ---- */

/* The root and its epoch come into being together, and nobody sees the root empty. */
size_t dv_plan_commit_create(dv_op *ops, const dv_plan_commit *commit) {
    const dv_plan_text *text = commit->text, *past = commit->past;
    ops[0] = (dv_op){.kind = DV_CREATE, .path = commit->path, .data = ""};
    ops[1] = (dv_op){.kind = DV_CREATE, .path = commit->epoch_path, .data = ""};
    if (past != NULL) ops[1].data = past->bytes;
    if (past != NULL) ops[1].data_bytes = past->count;
    ops[2] = (dv_op){.kind = DV_SET, .path = commit->path, .data = text->bytes, .data_bytes = text->count};
    return 3;
}

/* A set checks the epoch, too: it fails where that is not there. */
size_t dv_plan_commit_set(dv_op *ops, const dv_plan_commit *commit, int32_t version) {
    const dv_plan_text *text = commit->text, *past = commit->past;
    ops[0] = (dv_op){.kind = DV_CHECK, .path = commit->epoch_path, .version = -1};
    if (past != NULL) {
        ops[0].kind = DV_SET;
        ops[0].data = past->bytes;
        ops[0].data_bytes = past->count;
    }
    ops[1] = (dv_op){
        .kind = DV_SET, .path = commit->path, .data = text->bytes, .data_bytes = text->count, .version = version};
    return 2;
}

/* ---- what a root names ---- */

size_t dv_plan_root_chunk_count(const dv_plan_root *root) {
    size_t count = root->items.chunk_count + root->base.chunk_count;
    for (size_t d = 0; d < root->delta_count; d++) count += root->deltas[d].part.chunk_count;
    return count;
}

static size_t list_chunks(const char **names, size_t count, const dv_plan_part *part) {
    for (size_t n = 0; n < part->chunk_count; n++) names[count++] = part->chunks[n].name;
    return count;
}

const char **dv_plan_root_chunk_names(const dv_plan_root *root) {
    const char **names = malloc((dv_plan_root_chunk_count(root) + 1) * sizeof *names);
    if (names == NULL) return NULL;
    size_t count = list_chunks(names, 0, &root->items);
    count = list_chunks(names, count, &root->base);
    for (size_t d = 0; d < root->delta_count; d++) count = list_chunks(names, count, &root->deltas[d].part);
    qsort((void *)names, count, sizeof *names, dv_name_compare);
    return names;
}
