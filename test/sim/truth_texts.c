/* The plan as it stands, read by its texts alone. SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "plan/loads.h"
#include "plan/wish.h"
#include "plans.h"

static char *gather(struct sim_plans_truth *t, const dv_plan_part *part, size_t *bytes) {
    char *text = malloc(part->bytes + 1);
    if (!text) abort();
    *bytes = 0;
    if (part->text) {
        memcpy(text, part->text, part->bytes);
        *bytes = part->bytes;
        return text;
    }
    for (size_t c = 0; c < part->chunk_count; c++) {
        const sim_plan_child *child = sim_plan_child_of(t, part->chunks[c].name);
        if (!child || !dv_plan_chunk_matches(&part->chunks[c], child->data, child->bytes)) {
            free(text);
            return NULL;
        }
        memcpy(text + *bytes, child->data, child->bytes);
        *bytes += child->bytes;
    }
    return text;
}

static int take_base(struct sim_plans_truth *t, const dv_plan_root *root, dv_plan **out, dv_plan_fault *fault) {
    size_t items_bytes, base_bytes;
    char *items = gather(t, &root->items, &items_bytes), *base = gather(t, &root->base, &base_bytes);
    dv_plan_set *set = NULL;
    fault->why = "lacks a chunk";
    int error = items && base ? dv_plan_items_parse(&set, root, items, items_bytes, fault) : DIVVY_EPROTO;
    if (!error) error = dv_plan_from_base(out, set, base, base_bytes, fault);
    dv_plan_set_unref(set);
    free(items);
    free(base);
    return error;
}

/* Loads and wishes, where the root has them. */
static int take_parts(struct sim_plans_truth *t, const dv_plan_root *root, dv_plan *plan, dv_plan_fault *fault) {
    size_t bytes;
    int error = 0;
    if (dv_plan_part_is_there(&root->loads)) {
        char *text = gather(t, &root->loads, &bytes);
        fault->why = "lacks a chunk of the loads";
        error = text ? dv_loads_parse(&plan->loads, root->set_count, text, bytes, fault) : DIVVY_EPROTO;
        free(text);
    }
    if (!error && dv_plan_part_is_there(&root->wishes)) {
        char *text = gather(t, &root->wishes, &bytes);
        fault->why = "lacks a chunk of the wishes";
        error = text ? dv_wishes_parse(&plan->wishes, text, bytes, fault) : DIVVY_EPROTO;
        free(text);
    }
    return error;
}

/* D28: a text leads to the plan whose guid the root names beside it. So who has that plan does not read the text. */
static int check_step(const struct sim_plans_truth *t, const char *guid, const dv_plan *plan, dv_plan_fault *fault) {
    uint32_t sum = 0, known = 0;
    for (size_t i = 0; i < t->count; i++) {
        const sim_plan_version *v = &t->versions[i];
        if (!v->plan || v->foreign || strcmp(v->header.guid, guid) != 0) continue;
        if (dv_plan_sum(&sum, plan) != 0 || dv_plan_sum(&known, v->plan) != 0) abort();
        fault->why = "has a text that leads to another plan than the root names";
        return sum == known ? 0 : DIVVY_EPROTO;
    }
    return 0;
}

int sim_plan_read(struct sim_plans_truth *t, const char *text, size_t bytes, dv_plan **out, dv_plan_fault *fault) {
    dv_plan_root root;
    *out = NULL;
    int error = dv_plan_root_parse(&root, text, bytes, fault);
    if (error) return error;
    error = take_base(t, &root, out, fault);
    if (!error) error = check_step(t, root.base_guid, *out, fault);
    for (size_t d = 0; !error && d < root.delta_count; d++) {
        size_t delta_bytes;
        char *delta = gather(t, &root.deltas[d].part, &delta_bytes);
        fault->why = "lacks a chunk of a delta";
        error = delta ? dv_plan_apply(*out, delta, delta_bytes, fault) : DIVVY_EPROTO;
        free(delta);
        if (!error) error = check_step(t, root.deltas[d].guid, *out, fault);
    }
    if (!error) error = take_parts(t, &root, *out, fault);
    if (!error) error = dv_plan_complete(*out, &root, fault);
    dv_plan_root_clear(&root);
    if (error) {
        dv_plan_free(*out);
        *out = NULL;
    }
    return error;
}
