/* The note of a member, read as hostile input: docs/protocol.md, D2, D3, T0. SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "divvy/error.h"
#include "handover/note.h"
#include "plan/json.h"

static uint32_t take_item(dv_plan_json *j) {
    return (uint32_t)dv_plan_json_integer(j, 0, DV_PLAN_ITEMS_MAX - 1);
}

static void take_items(dv_plan_json *j, uint32_t **items, size_t *count) {
    for (bool begun = false; dv_plan_json_element(j, &begun);) {
        uint32_t item = take_item(j);
        if (*count > 0 && item <= (*items)[*count - 1]) dv_plan_json_fail(j, "has items that are not in order");
        void *larger = j->error == 0 ? dv_plan_with_room(j, *items, *count, sizeof **items) : NULL;
        if (larger == NULL) return;
        *items = larger;
        (*items)[(*count)++] = item;
    }
}

/* ---- what was given ---- */

static void add_given(dv_plan_json *j, dv_note *note, const dv_note_given *given) {
    void *larger = j->error == 0 ? dv_plan_with_room(j, note->given, note->given_count, sizeof *given) : NULL;
    if (larger == NULL) return;
    note->given = larger;
    note->given[note->given_count++] = *given;
}

/* Takes the list of pairs, an item and its q, that have one r. */
static void take_pairs(dv_plan_json *j, dv_note *note, int64_t seen) {
    bool begun = false;
    size_t before = note->given_count;
    while (dv_plan_json_element(j, &begun)) {
        dv_note_given given = {.item = take_item(j), .seen = seen};
        if (!dv_plan_json_element(j, &begun)) dv_plan_json_fail(j, "gives an item without its number");
        given.sequence = (int32_t)dv_plan_json_integer(j, 0, INT32_MAX);
        add_given(j, note, &given);
    }
    if (note->given_count == before) dv_plan_json_fail(j, "has a group that gives nothing");
}

static void take_given(dv_plan_json *j, dv_note *note) {
    for (bool begun = false; dv_plan_json_element(j, &begun);) {
        bool inner = false;
        dv_plan_json_element(j, &inner);
        int64_t seen = dv_plan_take_zxid(j);
        if (seen == 0) dv_plan_json_fail(j, "gives items for no note");
        if (!dv_plan_json_element(j, &inner)) dv_plan_json_fail(j, "has a group without its items");
        take_pairs(j, note, seen);
        if (dv_plan_json_element(j, &inner)) dv_plan_json_fail(j, "tells too much of a group");
    }
}

static int by_item(const void *left, const void *right) {
    const dv_note_given *a = left;
    const dv_note_given *b = right;
    if (a->item != b->item) return a->item < b->item ? -1 : 1;
    if (a->sequence != b->sequence) return a->sequence < b->sequence ? -1 : 1;
    return (a->seen < b->seen) - (a->seen > b->seen);
}

static void sort_given(dv_plan_json *j, dv_note *note) {
    if (j->error != 0 || note->given_count == 0) return;
    size_t bytes = note->given_count * sizeof *note->given;
    note->by_item = malloc(bytes);
    if (note->by_item == NULL) {
        dv_plan_json_fail_memory(j);
        return;
    }
    memcpy(note->by_item, note->given, bytes);
    qsort(note->by_item, note->given_count, sizeof *note->by_item, by_item);
}

/* ---- the note ---- */

/* Checks that all items are in the set, which may come last in the text. */
static void check_items(dv_plan_json *j, const dv_note *note) {
    const uint32_t *leaving = note->leaving;
    const uint32_t *ready = note->ready;
    bool good = note->leaving_count == 0 || leaving[note->leaving_count - 1] < note->set_count;
    good &= note->ready_count == 0 || ready[note->ready_count - 1] < note->set_count;
    for (size_t i = 0; i < note->given_count; i++) good &= note->given[i].item < note->set_count;
    if (!good) dv_plan_json_fail(j, "has items that are none");
}

static void take_field(dv_plan_json *j, dv_note *note, int field) {
    switch (field) {
    case 0: dv_plan_json_integer(j, DV_NOTE_VERSION, DV_NOTE_VERSION); break;
    case 1: dv_plan_take_set(j, &note->set_count, &note->set_crc, &note->set_hash); break;
    case 2: take_items(j, &note->leaving, &note->leaving_count); break;
    case 3: take_items(j, &note->ready, &note->ready_count); break;
    default: take_given(j, note); break;
    }
}

int dv_note_parse(dv_note *out, const char *text, size_t bytes, dv_plan_fault *fault) {
    static const char *const names[] = {"v", "set", "leaving", "ready", "given"};
    dv_plan_json_fields fields = {.names = names, .count = sizeof names / sizeof names[0]};
    dv_plan_json j;
    dv_plan_json_begin(&j, text, bytes);
    *out = (dv_note){0};
    if (bytes > DV_NOTE_BYTES_MAX) dv_plan_json_fail(&j, "is too long");
    else if (dv_plan_is_newer(&j, DV_NOTE_VERSION)) dv_plan_json_fail(&j, "is of a later release");
    for (int field; (field = dv_plan_json_field(&j, &fields)) >= 0;) take_field(&j, out, field);
    if (dv_plan_json_end(&j)) check_items(&j, out);
    sort_given(&j, out);
    if (j.error != 0) dv_note_clear(out);
    return dv_plan_fault_tell(&j, fault);
}
