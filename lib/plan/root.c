/* The plan's root, read as hostile input: docs/protocol.md, D2, D3, D7, D8. SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32.h"
#include "base/padded.h"
#include "divvy/error.h"
#include "plan/json.h"
#include "plan/text.h"
#include "znode/path.h"

enum { CHUNK_NUMBER_DIGITS = 4, GENERATION_DIGITS = 16 };

static void take_guid(dv_plan_json *j, char out[DV_GUID_BYTES], bool may_be_empty) {
    size_t bytes;
    const char *text = dv_plan_json_plain(j, DV_GUID_BYTES - 1, &bytes);
    if (text == NULL) return;
    bool good = bytes > 0 || may_be_empty;
    for (size_t i = 0; i < bytes; i++) good &= dv_is_alphanumeric(text[i]);
    if (!good) {
        dv_plan_json_fail(j, "has something else where a guid should be");
        return;
    }
    memcpy(out, text, bytes);
    out[bytes] = '\0';
}

/* ---- chunks ---- */

/* Decimal digits, no zero before others. How many; 0: none. */
static size_t number_take(const char *text, size_t digits_max, uint64_t *value) {
    size_t digits = 0;
    *value = 0;
    for (; digits < digits_max && dv_is_digit(text[digits]); digits++)
        *value = *value * 10 + (uint64_t)(text[digits] - '0');
    return digits > 1 && text[0] == '0' ? 0 : digits;
}

bool dv_plan_chunk_parse(const char *name, uint64_t *generation) {
    size_t digits = number_take(name, GENERATION_DIGITS, generation);
    if (digits == 0 || name[digits] != '-') return false;
    const char *guid = name + digits + 1;
    size_t guid_bytes = 0;
    while (dv_is_alphanumeric(guid[guid_bytes])) guid_bytes++;
    if (guid_bytes == 0 || guid_bytes >= DV_GUID_BYTES || guid[guid_bytes] != '-') return false;
    const char *number = guid + guid_bytes + 1;
    uint64_t value;
    digits = number_take(number, CHUNK_NUMBER_DIGITS, &value);
    return digits > 0 && number[digits] == '\0';
}

bool dv_plan_chunk_matches(const dv_plan_chunk *chunk, const char *bytes, size_t count) {
    return chunk->bytes == count && chunk->crc == dv_crc32(0, bytes, count);
}

static void take_chunk(dv_plan_json *j, dv_plan_chunk *chunk) {
    bool begun = false;
    size_t bytes;
    uint64_t generation;
    *chunk = (dv_plan_chunk){0};
    dv_plan_json_element(j, &begun);
    const char *name = dv_plan_json_plain(j, sizeof chunk->name - 1, &bytes);
    if (name != NULL) memcpy(chunk->name, name, bytes);
    if (!dv_plan_chunk_parse(chunk->name, &generation)) dv_plan_json_fail(j, "names a chunk that is none");
    if (!dv_plan_json_element(j, &begun)) dv_plan_json_fail(j, "does not tell a chunk's length");
    chunk->bytes = (uint32_t)dv_plan_json_integer(j, 1, DV_PLAN_CHUNK_BYTES);
    if (!dv_plan_json_element(j, &begun)) dv_plan_json_fail(j, "does not tell a chunk's crc");
    chunk->crc = (uint32_t)dv_plan_take_hex(j, 8);
    if (dv_plan_json_element(j, &begun)) dv_plan_json_fail(j, "tells too much of a chunk");
}

static void take_chunks(dv_plan_json *j, dv_plan_part *part) {
    for (bool begun = false; dv_plan_json_element(j, &begun);) {
        void *chunks = dv_plan_with_room(j, part->chunks, part->chunk_count, sizeof *part->chunks);
        if (chunks == NULL) return;
        part->chunks = chunks;
        dv_plan_chunk *chunk = &part->chunks[part->chunk_count++];
        take_chunk(j, chunk);
        part->bytes += chunk->bytes;
        if (part->chunk_count > DV_PLAN_CHUNKS_MAX || part->bytes > DV_PLAN_PART_BYTES_MAX) {
            dv_plan_json_fail(j, "has a part that is too large");
        }
    }
    if (part->chunk_count == 0) dv_plan_json_fail(j, "has a part of no chunks");
}

static void take_inline(dv_plan_json *j, dv_plan_part *part) {
    const char *text = dv_plan_json_value(j);
    if (text == NULL) return;
    part->bytes = (size_t)(j->at - text);
    part->text = dv_padded_copy(text, part->bytes);
    if (part->text == NULL) dv_plan_json_fail_memory(j);
}

/* An object with one key, which says where the text is. */
static void take_part(dv_plan_json *j, dv_plan_part *part) {
    static const char *const inline_name[] = {"inline"}, *const chunks_name[] = {"chunks"};
    static const char inline_begin[] = "{\"inline\":";
    size_t begin_bytes = sizeof inline_begin - 1;
    bool is_inline = (size_t)(j->end - j->at) > begin_bytes && memcmp(j->at, inline_begin, begin_bytes) == 0;
    dv_plan_json_fields fields = {.names = is_inline ? inline_name : chunks_name, .count = 1};
    while (dv_plan_json_field(j, &fields) == 0) {
        if (is_inline) take_inline(j, part);
        else take_chunks(j, part);
    }
}

static void take_deltas(dv_plan_json *j, dv_plan_root *root) {
    for (bool begun = false; dv_plan_json_element(j, &begun);) {
        if (root->delta_count == DV_PLAN_DELTAS_MAX) dv_plan_json_fail(j, "has too many deltas");
        void *deltas = dv_plan_with_room(j, root->deltas, root->delta_count, sizeof *root->deltas);
        if (deltas == NULL) return;
        root->deltas = deltas;
        dv_plan_delta *delta = &root->deltas[root->delta_count++];
        *delta = (dv_plan_delta){0};
        bool inner = false;
        dv_plan_json_element(j, &inner);
        take_guid(j, delta->guid, false);
        if (!dv_plan_json_element(j, &inner)) dv_plan_json_fail(j, "has a delta without its text");
        take_part(j, &delta->part);
        if (dv_plan_json_element(j, &inner)) dv_plan_json_fail(j, "tells too much of a delta");
    }
}

/* ---- the root ---- */

static void take_options(dv_plan_json *j, dv_plan_options *options, int64_t *algorithm) {
    static const char *const names[] = {"algorithm", "max_moves", "round_timeout_ms"};
    dv_plan_json_fields fields = {.names = names, .count = 3};
    for (int field; (field = dv_plan_json_field(j, &fields)) >= 0;) {
        if (field == 0) *algorithm = dv_plan_json_integer(j, 1, INT32_MAX);
        else if (field == 1) options->max_moves = (uint32_t)dv_plan_json_integer(j, 0, UINT32_MAX);
        else options->round_timeout_ms = dv_plan_json_integer(j, 0, DV_PLAN_INTEGER_MAX);
    }
}

static dv_plan_reason take_reason(dv_plan_json *j) {
    size_t bytes;
    const char *text = dv_plan_json_plain(j, 16, &bytes);
    for (int reason = 0; reason < DV_PLAN_REASONS; reason++) {
        const char *known = dv_plan_reason_text((dv_plan_reason)reason);
        if (strlen(known) == bytes && memcmp(known, text, bytes) == 0) return (dv_plan_reason)reason;
    }
    return DV_PLAN_ROUND; /* D3: what a later release may add is as good as none */
}

static void take_moved(dv_plan_json *j, dv_plan_root *root) {
    int64_t last = -1;
    for (bool begun = false; dv_plan_json_element(j, &begun);) {
        int64_t item = dv_plan_json_integer(j, 0, DV_PLAN_ITEMS_MAX - 1);
        if (item <= last) dv_plan_json_fail(j, "has moved items that are not in order");
        if (root->moved_count == DV_PLAN_MOVED_MAX) dv_plan_json_fail(j, "has too many moved items");
        void *moved = j->error == 0 ? dv_plan_with_room(j, root->moved, root->moved_count, sizeof *root->moved) : NULL;
        if (moved == NULL) return;
        root->moved = moved;
        root->moved[root->moved_count++] = (uint32_t)item;
        last = item;
    }
}

static void take_field(dv_plan_json *j, dv_plan_root *root, int64_t *algorithm, int field) {
    dv_plan_header *h = &root->header;
    switch (field) {
    case 0: dv_plan_json_integer(j, DV_PLAN_VERSION, DV_PLAN_VERSION); break;
    case 1: h->generation = (uint64_t)dv_plan_json_integer(j, 0, DV_PLAN_INTEGER_MAX); break;
    case 2: take_guid(j, h->guid, false); break;
    case 3: take_guid(j, h->after, true); break;
    case 4: take_guid(j, h->epoch, false); break;
    case 5: h->pzxid = dv_plan_take_zxid(j); break;
    case 6: h->reason = take_reason(j); break;
    case 7: take_options(j, &h->options, algorithm); break;
    case 8: h->tag = (uint32_t)dv_plan_take_hex(j, 8); break;
    case 9: dv_plan_take_set(j, &root->set_count, &root->set_crc, &root->set_hash); break;
    case 10: take_part(j, &root->items); break;
    case 11: take_part(j, &root->base); break;
    case 12: take_guid(j, root->base_guid, false); break;
    case 13: take_deltas(j, root); break;
    case 14: take_moved(j, root); break;
    case 15: root->sum = (uint32_t)dv_plan_take_hex(j, 8); break;
    case 16: h->asked = dv_plan_take_zxid(j); break;
    case 17: take_part(j, &root->loads); break;
    default: take_part(j, &root->wishes); break;
    }
}

/* Checks what several fields say together. */
static void check(dv_plan_json *j, const dv_plan_root *root) {
    if (root->moved_count > 0 && root->moved[root->moved_count - 1] >= root->set_count) {
        dv_plan_json_fail(j, "has moved items that are none");
    }
    const char *newest = root->delta_count > 0 ? root->deltas[root->delta_count - 1].guid : root->base_guid;
    if (strcmp(newest, root->header.guid) != 0) dv_plan_json_fail(j, "does not lead to the plan that it is");
}

int dv_plan_root_parse(dv_plan_root *out, const char *text, size_t bytes, dv_plan_fault *fault) {
    static const char *const names[] = {"v",       "generation", "guid",  "after", "epoch", "pzxid",     "reason",
                                        "options", "tag",        "set",   "items", "base",  "base_guid", "deltas",
                                        "moved",   "sum",        "asked", "loads", "wishes"};
    enum { COUNT = sizeof names / sizeof names[0] };
    dv_plan_json_fields fields = {.names = names, .count = COUNT, .optional = UINT32_C(7) << (COUNT - 3)};
    int64_t algorithm = DV_PLAN_BY_COUNT;
    dv_plan_json j;
    dv_plan_json_begin(&j, text, bytes);
    *out = (dv_plan_root){0};
    if (dv_plan_is_newer(&j, DV_PLAN_VERSION)) return DIVVY_EUNSUPPORTED;
    if (bytes > DV_PLAN_ROOT_BYTES_MAX) dv_plan_json_fail(&j, "is too long");
    for (int field; (field = dv_plan_json_field(&j, &fields)) >= 0;) take_field(&j, out, &algorithm, field);
    if (dv_plan_json_end(&j)) check(&j, out);
    out->header.is_balanced = algorithm == DV_PLAN_BALANCED;
    bool newer = j.error == 0 && algorithm > DV_PLAN_BALANCED;
    if (j.error != 0 || newer) dv_plan_root_clear(out);
    return newer ? DIVVY_EUNSUPPORTED : dv_plan_fault_tell(&j, fault);
}

bool dv_plan_root_has_set(const dv_plan_root *root, const dv_plan_set *set) {
    return root->set_count == set->count && root->set_crc == set->crc && root->set_hash == set->hash;
}
