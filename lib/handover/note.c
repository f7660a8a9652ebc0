/* The note of a member, in memory. SPDX-License-Identifier: Apache-2.0 */
#include "handover/note.h"

#include <stdlib.h>

bool dv_note_is_of(const dv_note *note, const dv_plan_set *set) {
    return note->set_count == set->count && note->set_crc == set->crc && note->set_hash == set->hash;
}

static bool is_in(const uint32_t *items, size_t count, uint32_t item) {
    size_t from = 0;
    while (from < count) {
        size_t middle = from + (count - from) / 2;
        if (items[middle] == item) return true;
        if (items[middle] < item) from = middle + 1;
        else count = middle;
    }
    return false;
}

bool dv_note_is_leaving(const dv_note *note, uint32_t item) {
    return is_in(note->leaving, note->leaving_count, item);
}

bool dv_note_is_ready(const dv_note *note, uint32_t item) {
    return is_in(note->ready, note->ready_count, item);
}

/* ---- what was given ---- */

static bool is_it(const dv_note_given *given, uint32_t item, int32_t q) {
    return given->item == item && given->sequence == q;
}

static bool is_before(const dv_note_given *given, uint32_t item, int32_t q) {
    return given->item != item ? given->item < item : given->sequence < q;
}

/* Returns the highest r with which the item was given up at q; 0: it was not. */
static int64_t seen_at(const dv_note *note, uint32_t item, int32_t q) {
    size_t from = 0, to = note->given_count;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (is_before(&note->by_item[middle], item, q)) from = middle + 1;
        else to = middle;
    }
    return from < note->given_count && is_it(&note->by_item[from], item, q) ? note->by_item[from].seen : 0;
}

/* Does the same for a note that has no `by_item`. */
static int64_t seen_anywhere(const dv_note *note, uint32_t item, int32_t q) {
    int64_t seen = 0;
    for (size_t i = 0; i < note->given_count; i++) {
        if (is_it(&note->given[i], item, q) && note->given[i].seen > seen) seen = note->given[i].seen;
    }
    return seen;
}

bool dv_note_gives(const dv_note *note, uint32_t item, int32_t sequence, int64_t czxid) {
    if (sequence < 1 || czxid < 1) return false;
    int32_t q = sequence - 1;
    int64_t seen = note->by_item != NULL ? seen_at(note, item, q) : seen_anywhere(note, item, q);
    return czxid <= seen;
}

void dv_note_clear(dv_note *note) {
    free(note->leaving);
    free(note->ready);
    free(note->given);
    free(note->by_item);
    *note = (dv_note){0};
}
