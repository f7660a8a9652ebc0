/* The next text of our note, what we gave, and when the note may be written. SPDX-License-Identifier: Apache-2.0 */
#include "handover/draft.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    GIVEN_MAX = 4096,   /* more than a note can hold */
    WRITE_GAP_MS = 100, /* or a millisecond for each member */
    BURST = 5,          /* so many may follow one another after a quiet time */
    CUT_GAP_MS = 1000,  /* where not all fits, and more may fit by then */
};

bool dv_note_draft_init(dv_note_draft *d) {
    *d = (dv_note_draft){.given = malloc(GIVEN_MAX * sizeof *d->given)};
    return d->given != NULL;
}

void dv_note_draft_free(dv_note_draft *d) {
    dv_plan_set_unref(d->set);
    free(d->given);
}

bool dv_note_draft_may_begin(const dv_note_draft *d, const dv_plan_set *set) {
    return d->giving == 0 || dv_plan_set_equal(d->set, set);
}

/* The numbers are those of one set. Old entries may be dropped at any time (T5). */
void dv_note_draft_begin(dv_note_draft *d, dv_plan_set *set) {
    assert(dv_note_draft_may_begin(d, set) && d->giving + DV_NOTE_GIVES_MAX <= GIVEN_MAX);
    if (d->set && !dv_plan_set_equal(d->set, set)) d->given_count = 0;
    dv_plan_set_ref(set);
    dv_plan_set_unref(d->set);
    d->set = set;
    if (d->given_count + DV_NOTE_GIVES_MAX <= GIVEN_MAX) return;
    size_t dropped = d->given_count + DV_NOTE_GIVES_MAX - GIVEN_MAX;
    d->given_count -= dropped;
    memmove(d->given, d->given + dropped, d->given_count * sizeof *d->given);
}

void dv_note_draft_give(dv_note_draft *d, uint32_t item, int32_t sequence, int64_t seen) {
    assert(d->given_count < GIVEN_MAX && item < d->set->count);
    d->given[d->given_count++] = (dv_note_given){item, sequence, seen};
    d->giving++;
}

/* ---- the text ---- */

static size_t list_marked(uint32_t *out, const uint8_t *marks, size_t count, unsigned mark) {
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        if (marks[i] & mark) out[found++] = (uint32_t)i;
    }
    return found;
}

char *dv_note_draft_print(dv_note_draft *d, uint8_t *marks) {
    size_t count = d->set->count, leaving, ready, given;
    uint32_t *items = malloc((2 * count + 1) * sizeof *items);
    if (!items) return NULL;
    dv_note note = {.set_count = count,
                    .set_crc = d->set->crc,
                    .set_hash = d->set->hash,
                    .leaving = items,
                    .ready = items + count,
                    .given = d->given,
                    .given_count = d->given_count};
    note.leaving_count = list_marked(note.leaving, marks, count, DV_NOTE_LEAVING);
    note.ready_count = list_marked(note.ready, marks, count, DV_NOTE_READY);
    char *text = dv_note_print(&note, &leaving, &ready, &given);
    d->is_cut = leaving < note.leaving_count || ready < note.ready_count;
    while (leaving < note.leaving_count) marks[note.leaving[leaving++]] &= DV_NOTE_READY;
    while (ready < note.ready_count) marks[note.ready[ready++]] &= DV_NOTE_LEAVING;
    free(items);
    return text;
}

/* ---- its time ---- */

/* T0: the places of one plan come in several multis, so its news is rarely whole in the first note. */
static int64_t next_write_at(const dv_note_draft *d, size_t members, int64_t now) {
    int64_t gap_ms = (int64_t)members > WRITE_GAP_MS ? (int64_t)members : WRITE_GAP_MS;
    if (d->is_cut && gap_ms < CUT_GAP_MS) return now + CUT_GAP_MS;
    int64_t quiet = now - (BURST - 1) * gap_ms, from = d->write_at > quiet ? d->write_at : quiet;
    return (from < now ? from : now) + gap_ms;
}

void dv_note_draft_sent(dv_note_draft *d, size_t members, int64_t now) {
    d->write_at = next_write_at(d, members, now);
}

void dv_note_draft_take_back(dv_note_draft *d, size_t gives) {
    assert(gives <= d->giving && d->giving <= d->given_count);
    d->given_count -= gives;
    d->giving -= gives;
}

void dv_note_draft_ended(dv_note_draft *d, size_t gives, int error, int64_t now) {
    if (error) { /* Writes behind it fail as well. What one of them gives all the same is as good as left out. */
        d->given_count -= d->giving;
        d->giving = 0;
        return;
    }
    if (gives > 0) d->gave_at = now;
    d->giving -= gives < d->giving ? gives : d->giving;
}
