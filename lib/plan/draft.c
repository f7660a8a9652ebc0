/* The root and the chunks of a plan to be written: docs/protocol.md, D7, D28. SPDX-License-Identifier: Apache-2.0 */
#include "plan/draft.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "divvy/error.h"
#include "plan/loads.h"
#include "plan/wish.h"
#include "znode/path.h"

enum { DELTAS_MOST = 16 }; /* D28: a joiner reads them all */

void dv_plan_draft_clear(dv_plan_draft *draft) {
    dv_plan_root_clear(&draft->root);
    free(draft->text.bytes);
    for (size_t n = 0; n < draft->part_count; n++) free(draft->parts[n].text.bytes);
    *draft = (dv_plan_draft){0};
}

/* The sources of a draft. */
typedef struct {
    const dv_plan *plan, *from;    /* `from`, which it replaces, may be NULL */
    const dv_plan_root *root;      /* of `from`; NULL: there is none */
    const dv_plan_root *from_root; /* likewise, where both have the same items */
    size_t chunk_bytes;
    dv_plan_text delta; /* from that plan, where both have the same items */
} drafting;

/* Makes a draft whose parts `fill` fills. */
static int make(dv_plan_draft *out, drafting *d, int (*fill)(dv_plan_draft *out, drafting *d)) {
    *out = (dv_plan_draft){0};
    int error = dv_plan_root_describe(&out->root, d->plan);
    memcpy(out->root.base_guid, d->plan->header.guid, sizeof out->root.base_guid);
    if (error == 0) error = fill(out, d);
    if (error == 0) error = dv_plan_print_root(&out->text, &out->root);
    if (error != 0) dv_plan_draft_clear(out);
    return error;
}

/* ---- loads and wishes, where there ever were any (D48, D49) ---- */

/* Makes a part of a text, which it takes over. */
typedef int put_part_fn(dv_plan_draft *out, dv_plan_part *part, dv_plan_text *text, const drafting *d);

static int put_optional(dv_plan_draft *out, const drafting *d, put_part_fn *put) {
    dv_plan_text text = {0};
    const dv_plan *plan = d->plan;
    int error = plan->loads != NULL ? dv_loads_print(&text, plan->loads) : 0;
    if (error == 0 && plan->loads != NULL) error = put(out, &out->root.loads, &text, d);
    if (error == 0 && plan->wishes != NULL) error = dv_wishes_print(&text, plan->wishes);
    if (error == 0 && plan->wishes != NULL) error = put(out, &out->root.wishes, &text, d);
    return error;
}

/* ---- all in the root ---- */

static int part_inline(dv_plan_draft *out, dv_plan_part *part, dv_plan_text *text, const drafting *d) {
    (void)out;
    (void)d;
    dv_plan_part_inline(part, text);
    return 0;
}

static int fill_inline(dv_plan_draft *out, drafting *d) {
    dv_plan_text items, base = {0};
    int error = dv_plan_print_items(&items, d->plan->set);
    if (error == 0) error = dv_plan_print_base(&base, d->plan);
    dv_plan_part_inline(&out->root.items, &items);
    dv_plan_part_inline(&out->root.base, &base);
    return error == 0 ? put_optional(out, d, part_inline) : error;
}

/* At least so many bytes do items and base take; an item's name is never shorter in its text. */
static size_t parts_bytes(const dv_plan *plan) {
    return plan->set->block_bytes + plan->set->count + (plan->loads != NULL ? 2 * plan->loads->count : 0);
}

/* D7: drafts a plan in the root alone. Returns DIVVY_E2BIG where that is longer. */
static int make_inline(dv_plan_draft *out, drafting *d, size_t root_bytes_max) {
    if (parts_bytes(d->plan) > root_bytes_max) return DIVVY_E2BIG;
    int error = make(out, d, fill_inline);
    if (error != 0 || out->text.count <= root_bytes_max) return error;
    dv_plan_draft_clear(out);
    return DIVVY_E2BIG;
}

int dv_plan_draft_place(dv_plan_text *out, const dv_plan_header *header, const char *guid) {
    *out = (dv_plan_text){0};
    dv_plan *place = dv_plan_make(dv_plan_set_make(NULL, 0));
    if (place == NULL) return DIVVY_ENOMEM;
    place->header = *header;
    place->header.generation = 0;
    place->header.after[0] = '\0';
    place->header.reason = DV_PLAN_CREATE;
    memcpy(place->header.guid, guid, sizeof place->header.guid);
    dv_plan_draft draft;
    int error = make(&draft, &(drafting){.plan = place}, fill_inline);
    *out = draft.text;
    draft.text = (dv_plan_text){0};
    dv_plan_draft_clear(&draft);
    dv_plan_free(place);
    return error;
}

/* ---- chunks: a base, or one delta more ---- */

/* Cuts a part's text, which the draft takes over, into chunks that are to be made. */
static int cut(dv_plan_draft *out, dv_plan_part *part, dv_plan_text *text, const drafting *d) {
    uint32_t number = (uint32_t)out->chunk_count;
    dv_plan_draft_part *made = &out->parts[out->part_count++];
    assert(out->part_count <= DV_PLAN_DRAFT_PARTS);
    *made = (dv_plan_draft_part){.part = part, .text = *text};
    *text = (dv_plan_text){0};
    const dv_plan_header *header = &out->root.header;
    int error = dv_plan_part_cut(part, &made->text, d->chunk_bytes, header->generation, header->guid, &number);
    out->chunk_count += part->chunk_count;
    return error;
}

dv_plan_draft_chunk dv_plan_draft_chunk_at(const dv_plan_draft *draft, size_t n) {
    assert(n < draft->chunk_count);
    const dv_plan_draft_part *p = draft->parts;
    while (n >= p->part->chunk_count) n -= p++->part->chunk_count;
    const dv_plan_chunk *chunks = p->part->chunks;
    return (dv_plan_draft_chunk){chunks[n].name, p->text.bytes + n * chunks[0].bytes, chunks[n].bytes};
}

/* Takes over the chunks of the root before, where they say the same; else cuts new ones. */
static int part_in_chunks(dv_plan_draft *out, dv_plan_part *part, dv_plan_text *text, const drafting *d) {
    bool is_loads = part == &out->root.loads;
    const dv_plan_part *old = d->root == NULL ? NULL : is_loads ? &d->root->loads : &d->root->wishes;
    bool same =
        old != NULL && old->chunk_count > 0 &&
        (is_loads ? dv_loads_equal(d->plan->loads, d->from->loads) : dv_wishes_equal(d->plan->wishes, d->from->wishes));
    if (!same) return cut(out, part, text, d);
    free(text->bytes);
    return dv_plan_part_copy(part, old);
}

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

/* Copies the deltas of a root, NULL: none, and leaves room for one more. */
static int copy_deltas(dv_plan_root *root, const dv_plan_root *from) {
    size_t count = from != NULL ? from->delta_count : 0;
    assert(root->deltas == NULL && root->delta_count == 0);
    root->deltas = calloc(count + 1, sizeof *root->deltas);
    int error = root->deltas != NULL ? 0 : DIVVY_ENOMEM;
    for (size_t n = 0; error == 0 && n < count; n++) {
        dv_plan_delta *copy = &root->deltas[root->delta_count++];
        memcpy(copy->guid, from->deltas[n].guid, sizeof copy->guid);
        error = dv_plan_part_copy(&copy->part, &from->deltas[n].part);
    }
    return error;
}

/* Adds the delta that leads to the plan, where room was left for it. */
static int add_delta(dv_plan_draft *out, drafting *d) {
    dv_plan_root *root = &out->root;
    dv_plan_delta *last = &root->deltas[root->delta_count++];
    memcpy(last->guid, root->header.guid, sizeof last->guid);
    return cut(out, &last->part, &d->delta, d);
}

static int fill_with_delta(dv_plan_draft *out, drafting *d) {
    dv_plan_root *root = &out->root;
    const dv_plan_root *from = d->from_root;
    int error = dv_plan_part_copy(&root->items, &from->items);
    if (error == 0) error = dv_plan_part_copy(&root->base, &from->base);
    memcpy(root->base_guid, from->base_guid, sizeof root->base_guid);
    if (error == 0) error = copy_deltas(root, from);
    if (error == 0) error = add_delta(out, d);
    return error == 0 ? put_optional(out, d, part_in_chunks) : error;
}

/* Drafts one delta more. Returns DIVVY_E2BIG where D28 has none. */
static int make_delta(dv_plan_draft *out, drafting *d) {
    const dv_plan_root *root = d->from_root;
    if (root == NULL || root->delta_count == DELTAS_MOST || !in_chunks(root)) return DIVVY_E2BIG;
    return delta_pays(root, d->delta.count) ? make(out, d, fill_with_delta) : DIVVY_E2BIG;
}

/* D28: the plan before is the base, and this step its delta: members that have that plan read the delta alone. Without
 * such a plan, or where the delta is too long, the base is the plan itself. */
static int put_base(dv_plan_draft *out, drafting *d) {
    dv_plan_text text = {0};
    bool builds_on = d->from_root != NULL;
    int error = dv_plan_print_base(&text, builds_on ? d->from : d->plan);
    if (error == 0 && builds_on && d->delta.count > text.count / 2) {
        builds_on = false;
        free(text.bytes);
        error = dv_plan_print_base(&text, d->plan);
    }
    if (error == 0) error = cut(out, &out->root.base, &text, d);
    if (error != 0 || !builds_on) return error;
    memcpy(out->root.base_guid, d->from->header.guid, sizeof out->root.base_guid);
    error = copy_deltas(&out->root, NULL);
    return error == 0 ? add_delta(out, d) : error;
}

static int fill_with_base(dv_plan_draft *out, drafting *d) {
    dv_plan_text text = {0};
    bool same_items = d->from_root != NULL && d->from_root->items.text == NULL;
    int error = same_items ? dv_plan_part_copy(&out->root.items, &d->from_root->items)
                           : dv_plan_print_items(&text, d->plan->set);
    if (error == 0 && !same_items) error = cut(out, &out->root.items, &text, d);
    if (error == 0) error = put_base(out, d);
    return error == 0 ? put_optional(out, d, part_in_chunks) : error;
}

int dv_plan_draft_make(dv_plan_draft *out, const dv_plan *plan, const dv_plan *from, const dv_plan_root *from_root,
                       const dv_plan_sizes *sizes) {
    static const dv_plan_sizes standard = {DV_PLAN_INLINE_ROOT_BYTES, DV_PLAN_CHUNK_BYTES};
    if (sizes == NULL) sizes = &standard;
    bool same_set = from != NULL && dv_plan_set_equal(from->set, plan->set);
    drafting d = {.plan = plan,
                  .from = from,
                  .root = from != NULL ? from_root : NULL,
                  .from_root = same_set ? from_root : NULL,
                  .chunk_bytes = sizes->chunk_bytes};
    *out = (dv_plan_draft){0};
    int error = make_inline(out, &d, sizes->inline_root_bytes);
    if (error != DIVVY_E2BIG) return error;
    error = same_set ? dv_plan_print_delta(&d.delta, from, plan) : 0;
    if (error == 0) error = make_delta(out, &d);
    if (error == DIVVY_E2BIG) error = make(out, &d, fill_with_base);
    free(d.delta.bytes);
    return error;
}

/* ---- what a root names ---- */

size_t dv_plan_root_chunk_count(const dv_plan_root *root) {
    size_t count =
        root->items.chunk_count + root->base.chunk_count + root->loads.chunk_count + root->wishes.chunk_count;
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
    count = list_chunks(names, count, &root->loads);
    count = list_chunks(names, count, &root->wishes);
    qsort((void *)names, count, sizeof *names, dv_name_compare);
    return names;
}
