/* The sticky plan as text: docs/protocol.md, D2 to D8. SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32.h"
#include "base/padded.h"
#include "divvy/error.h"
#include "plan/deaths.h"
#include "plan/growing.h"
#include "plan/text.h"
#include "znode/path.h"

/* ---- items ---- */

int dv_plan_print_items(dv_plan_text *out, const dv_plan_set *set) {
    dv_growing g = {0};
    dv_grow_room(&g, set->block_bytes + 3 * set->count + 2);
    dv_grow(&g, "[", 1);
    for (size_t i = 0; i < set->count; i++) {
        if (i > 0) dv_grow(&g, ",", 1);
        dv_grow_item(&g, set->names[i]);
    }
    dv_grow(&g, "]", 1);
    return dv_grown(out, &g);
}

/* ---- base and delta ---- */

static void write_owner(char *to, size_t width, uint32_t slot) {
    static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    for (size_t n = width; n-- > 0;) {
        to[n] = digits[slot == DV_PLAN_NO_SLOT ? DV_PLAN_DIGITS - 1 : slot % DV_PLAN_DIGITS];
        if (slot != DV_PLAN_NO_SLOT) slot /= DV_PLAN_DIGITS;
    }
}

/* `whole`: with what older releases do not know, which is not in the sum (D8). */
static void put_member(dv_growing *g, const dv_plan_member *m, bool whole) {
    dv_grow_format(g, "{\"slot\":%" PRIu32 ",\"key\":", m->slot);
    dv_grow_string(g, m->key);
    dv_grow_format(g, ",\"static\":%d,\"weight\":%" PRIu32 ",\"zone\":", m->is_static, m->weight);
    dv_grow_string(g, m->zone);
    dv_grow_format(g, ",\"rejoin_delay_ms\":%" PRId64 ",\"absent\":\"%" PRIx64 "\",\"leaving\":", m->rejoin_delay_ms,
                   (uint64_t)m->absent);
    dv_grow_string(g, m->leaving);
    if (whole && m->says_configured) dv_grow_format(g, ",\"configured\":%" PRIu32, m->configured);
    if (whole && m->tags[0] != '\0') dv_grow_text(g, ",\"tags\":");
    if (whole && m->tags[0] != '\0') dv_grow_string(g, m->tags);
    if (whole && m->cap != 0) dv_grow_format(g, ",\"cap\":%" PRIu32, m->cap);
    dv_grow(g, "}", 1);
}

static void put_owners(dv_growing *g, const dv_plan *plan, size_t width) {
    char *to = dv_grow_room(g, plan->set->count * width);
    if (to == NULL) return;
    for (size_t i = 0; i < plan->set->count; i++, to += width) write_owner(to, width, plan->owners[i]);
    g->count += plan->set->count * width;
}

static void put_base(dv_growing *g, const dv_plan *plan, bool whole) {
    dv_grow_text(g, "{\"members\":[");
    for (size_t m = 0; m < plan->member_count; m++) {
        if (m > 0) dv_grow(g, ",", 1);
        put_member(g, &plan->members[m], whole);
    }
    size_t width = dv_plan_owner_width(plan);
    dv_grow_format(g, "],\"width\":%zu,\"owners\":\"", width);
    put_owners(g, plan, width);
    dv_grow_text(g, "\"}");
}

int dv_plan_print_base(dv_plan_text *out, const dv_plan *plan) {
    dv_growing g = {0};
    put_base(&g, plan, true);
    return dv_grown(out, &g);
}

int dv_plan_sum(uint32_t *sum, const dv_plan *plan) {
    dv_growing g = {0};
    put_base(&g, plan, false);
    *sum = g.failed ? 0 : dv_crc32(0, g.bytes, g.count);
    free(g.bytes);
    return g.failed ? DIVVY_ENOMEM : 0;
}

static void put_changed_members(dv_growing *g, const dv_plan *from, const dv_plan *to) {
    bool first = true;
    dv_grow_text(g, "{\"members\":[");
    for (size_t m = 0; m < to->member_count; m++) {
        const dv_plan_member *before = dv_plan_member_at(from, to->members[m].slot);
        if (before != NULL && dv_plan_member_equal(before, &to->members[m])) continue;
        if (!first) dv_grow(g, ",", 1);
        first = false;
        put_member(g, &to->members[m], true);
    }
    first = true;
    dv_grow_text(g, "],\"gone\":[");
    for (size_t m = 0; m < from->member_count; m++) {
        uint32_t slot = from->members[m].slot;
        if (dv_plan_member_at(to, slot) != NULL) continue;
        dv_grow_format(g, "%s%" PRIu32, first ? "" : ",", slot);
        first = false;
    }
}

typedef struct {
    uint32_t slot, item;
} move;

/* By slot, those without an owner first; then by item. */
static int by_slot(const void *left, const void *right) {
    const move *a = left;
    const move *b = right;
    uint32_t a_slot = a->slot + 1, b_slot = b->slot + 1; /* DV_PLAN_NO_SLOT becomes 0 */
    if (a_slot != b_slot) return a_slot < b_slot ? -1 : 1;
    return (a->item > b->item) - (a->item < b->item);
}

static void put_moves(dv_growing *g, const dv_plan *from, const dv_plan *to) {
    size_t count = 0;
    for (size_t i = 0; i < to->set->count; i++) count += from->owners[i] != to->owners[i];
    move *moves = calloc(count + 1, sizeof *moves);
    if (moves == NULL) {
        g->failed = true;
        return;
    }
    count = 0;
    for (size_t i = 0; i < to->set->count; i++) {
        if (from->owners[i] != to->owners[i]) moves[count++] = (move){to->owners[i], (uint32_t)i};
    }
    qsort(moves, count, sizeof *moves, by_slot);
    dv_grow_text(g, "],\"moves\":[");
    for (size_t n = 0; n < count; n++) {
        if (n == 0 || moves[n].slot != moves[n - 1].slot) {
            dv_grow_text(g, n > 0 ? "],[" : "[");
            if (moves[n].slot == DV_PLAN_NO_SLOT) dv_grow_text(g, "-1");
            else dv_grow_format(g, "%" PRIu32, moves[n].slot);
        }
        dv_grow_format(g, ",%" PRIu32, moves[n].item);
    }
    dv_grow_text(g, count > 0 ? "]]}" : "]}");
    free(moves);
}

int dv_plan_print_delta(dv_plan_text *out, const dv_plan *from, const dv_plan *to) {
    assert(dv_plan_set_equal(from->set, to->set));
    dv_growing g = {0};
    put_changed_members(&g, from, to);
    put_moves(&g, from, to);
    return dv_grown(out, &g);
}

/* ---- parts and the root ---- */

void dv_plan_part_inline(dv_plan_part *part, dv_plan_text *text) {
    *part = (dv_plan_part){.text = text->bytes, .bytes = text->count};
    *text = (dv_plan_text){0};
}

int dv_plan_part_cut(dv_plan_part *part, const dv_plan_text *text, size_t chunk_bytes, uint64_t generation,
                     const char *guid, uint32_t *number) {
    *part = (dv_plan_part){.bytes = text->count};
    if (text->count > DV_PLAN_PART_BYTES_MAX) return DIVVY_E2BIG;
    part->chunk_count = (text->count + chunk_bytes - 1) / chunk_bytes;
    part->chunks = calloc(part->chunk_count + 1, sizeof *part->chunks);
    if (part->chunks == NULL) {
        part->chunk_count = 0;
        return DIVVY_ENOMEM;
    }
    for (size_t n = 0; n < part->chunk_count; n++) {
        dv_plan_chunk *chunk = &part->chunks[n];
        size_t from = n * chunk_bytes;
        size_t bytes = text->count - from < chunk_bytes ? text->count - from : chunk_bytes;
        snprintf(chunk->name, sizeof chunk->name, "%" PRIu64 "-%s-%" PRIu32, generation, guid, (*number)++);
        chunk->bytes = (uint32_t)bytes;
        chunk->crc = dv_crc32(0, text->bytes + from, bytes);
    }
    return 0;
}

int dv_plan_root_describe(dv_plan_root *root, const dv_plan *plan) {
    *root = (dv_plan_root){
        .header = plan->header, .set_count = plan->set->count, .set_crc = plan->set->crc, .set_hash = plan->set->hash};
    root->moved = (void *)dv_padded_copy(plan->moved, plan->moved_count * sizeof *root->moved);
    if (root->moved == NULL || dv_plan_sum(&root->sum, plan) != 0) {
        dv_plan_root_clear(root);
        return DIVVY_ENOMEM;
    }
    root->moved_count = plan->moved_count;
    return 0;
}

static void put_part(dv_growing *g, const dv_plan_part *part) {
    if (part->text != NULL) {
        dv_grow_text(g, "{\"inline\":");
        dv_grow(g, part->text, part->bytes);
        dv_grow(g, "}", 1);
        return;
    }
    dv_grow_text(g, "{\"chunks\":[");
    for (size_t n = 0; n < part->chunk_count; n++) {
        const dv_plan_chunk *chunk = &part->chunks[n];
        dv_grow_format(g, "%s[\"%s\",%" PRIu32 ",\"%08" PRIx32 "\"]", n > 0 ? "," : "", chunk->name, chunk->bytes,
                       chunk->crc);
    }
    dv_grow_text(g, "]}");
}

/* D48, D49: only where there ever was one. */
static void put_optional(dv_growing *g, const char *name, const dv_plan_part *part) {
    if (!dv_plan_part_is_there(part)) return;
    dv_grow_format(g, ",\"%s\":", name);
    put_part(g, part);
}

static void put_header(dv_growing *g, const dv_plan_root *root) {
    const dv_plan_header *h = &root->header;
    dv_grow_format(g, "{\"v\":%d,\"generation\":%" PRIu64 ",\"guid\":\"%s\",\"after\":\"%s\",", DV_PLAN_VERSION,
                   h->generation, h->guid, h->after);
    dv_grow_format(g, "\"epoch\":\"%s\",\"pzxid\":\"%" PRIx64 "\",\"reason\":\"%s\",", h->epoch, (uint64_t)h->pzxid,
                   dv_plan_reason_text(h->reason));
    dv_grow_format(
        g,
        "\"options\":{\"algorithm\":%d,\"max_moves\":%" PRIu32 ",\"spread_zones\":1,\"round_timeout_ms\":%" PRId64 "},",
        h->is_balanced ? DV_PLAN_BALANCED : DV_PLAN_BY_COUNT, h->options.max_moves, h->options.round_timeout_ms);
    dv_grow_format(g, "\"tag\":\"%08" PRIx32 "\",", h->tag);
    if (h->asked != 0) dv_grow_format(g, "\"asked\":\"%" PRIx64 "\",", (uint64_t)h->asked);
    dv_grow_format(g, "\"set\":{\"count\":%zu,\"crc\":\"%08" PRIx32 "\",\"hash\":\"%016" PRIx64 "\"},", root->set_count,
                   root->set_crc, root->set_hash);
}

int dv_plan_print_root(dv_plan_text *out, const dv_plan_root *root) {
    dv_growing g = {0};
    put_header(&g, root);
    dv_grow_text(&g, "\"items\":");
    put_part(&g, &root->items);
    dv_grow_text(&g, ",\"base\":");
    put_part(&g, &root->base);
    dv_grow_format(&g, ",\"base_guid\":\"%s\",\"deltas\":[", root->base_guid);
    for (size_t d = 0; d < root->delta_count; d++) {
        dv_grow_format(&g, "%s[\"%s\",", d > 0 ? "," : "", root->deltas[d].guid);
        put_part(&g, &root->deltas[d].part);
        dv_grow(&g, "]", 1);
    }
    dv_grow_text(&g, "],\"moved\":[");
    for (size_t n = 0; n < root->moved_count; n++) dv_grow_format(&g, "%s%" PRIu32, n > 0 ? "," : "", root->moved[n]);
    dv_grow_format(&g, "],\"sum\":\"%08" PRIx32 "\"", root->sum);
    put_optional(&g, "loads", &root->loads);
    put_optional(&g, "wishes", &root->wishes);
    dv_grow(&g, "}", 1);
    if (!g.failed && g.count > DV_PLAN_ROOT_BYTES_MAX) {
        free(g.bytes);
        *out = (dv_plan_text){0};
        return DIVVY_E2BIG;
    }
    return dv_grown(out, &g);
}

/* ---- the history ---- */

static void put_named(dv_growing *g, const dv_plan_named *who, bool with_names) {
    dv_grow_format(g, "{\"count\":%" PRIu32 ",\"names\":[", who->count);
    for (size_t n = 0; with_names && n < who->named; n++) {
        if (n > 0) dv_grow(g, ",", 1);
        dv_grow_string(g, who->names[n]);
    }
    dv_grow_text(g, "]}");
}

static void put_change(dv_growing *g, const dv_plan_change *c, bool with_names) {
    dv_grow_format(g, "{\"generation\":%" PRIu64 ",\"reason\":\"%s\",\"at_ms\":%" PRId64 ",\"took_ms\":%" PRId64,
                   c->generation, c->reason, c->at_ms, c->took_ms);
    dv_grow_format(g, ",\"moved\":%" PRIu32 ",\"joined\":", c->moved);
    put_named(g, &c->joined, with_names);
    dv_grow_text(g, ",\"left\":");
    put_named(g, &c->left, with_names);
    if (with_names && c->told[0] != '\0') dv_grow_text(g, ",\"told\":");
    if (with_names && c->told[0] != '\0') dv_grow_string(g, c->told);
    dv_grow(g, "}", 1);
}

/* Changes before `named` do without names. */
static void put_history(dv_growing *g, const dv_plan_history *history, size_t named) {
    g->count = 0;
    dv_grow_text(g, "{\"changes\":[");
    for (size_t n = 0; n < history->count; n++) {
        if (n > 0) dv_grow(g, ",", 1);
        put_change(g, &history->changes[n], n >= named);
    }
    dv_grow_text(g, "]}");
}

int dv_plan_print_history(dv_plan_text *out, const dv_plan_history *history) {
    dv_growing g = {0};
    size_t named = 0;
    do put_history(&g, history, named);
    while (!g.failed && g.count > DV_PLAN_HISTORY_BYTES_MAX && named++ < history->count);
    assert(g.failed || g.count <= DV_PLAN_HISTORY_BYTES_MAX);
    return dv_grown(out, &g);
}

/* ---- deaths ---- */

static void put_death(dv_growing *g, const dv_plan_death *death) {
    dv_grow_text(g, "{\"name\":");
    dv_grow_string(g, death->name);
    dv_grow_format(g, ",\"session\":\"%" PRIx64 "\",\"at_ms\":%" PRId64 ",\"seen_ms\":%" PRId64 "}",
                   (uint64_t)death->session, death->at_ms, death->seen_ms);
}

int dv_plan_print_deaths(dv_plan_text *out, const dv_plan_deaths *deaths) {
    dv_growing g = {0};
    size_t from = 0;
    do {
        g.count = 0;
        dv_grow_text(&g, "{\"deaths\":[");
        for (size_t n = from; n < deaths->count; n++) {
            if (n > from) dv_grow(&g, ",", 1);
            put_death(&g, &deaths->deaths[n]);
        }
        dv_grow_text(&g, "]}");
    } while (!g.failed && g.count > DV_PLAN_DEATHS_BYTES_MAX && from++ < deaths->count);
    return dv_grown(out, &g);
}
