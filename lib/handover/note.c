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

/* Returns whether it stands before the first entry of the item at q. */
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
    const dv_note_given *found = from < note->given_count ? &note->by_item[from] : NULL;
    return found && found->item == item && found->sequence == q ? found->seen : 0;
}

bool dv_note_gives(const dv_note *note, uint32_t item, int32_t sequence, int64_t czxid) {
    if (sequence < 1 || czxid < 1) return false;
    return czxid <= seen_at(note, item, sequence - 1);
}

void dv_note_clear(dv_note *note) {
    free(note->leaving);
    free(note->ready);
    free(note->given);
    free(note->by_item);
    *note = (dv_note){0};
}
