/* The next text of our note, what we gave, and when the note may be written. SPDX-License-Identifier: Apache-2.0
 *
 * docs/protocol.md, T0, T5. No I/O, no clock. Each write: begin, give, print, sent, and always ended, in that order. */
#ifndef DV_NOTE_DRAFT_H
#define DV_NOTE_DRAFT_H

#include "handover/note.h"

/* Marks: the note says so of an item. */
enum { DV_NOTE_LEAVING = 1, DV_NOTE_READY = 2 };

enum { DV_NOTE_GIVES_MAX = 199 /* by one write: with the note, one multi deletes their places */ };

/* Read by its owner, written by draft.c alone. */
typedef struct {
    dv_plan_set *set;     /* whose numbering the note has, and `given`; NULL: there was none yet */
    dv_note_given *given; /* the oldest first */
    size_t given_count;
    size_t giving;    /* by the writes under way: the last ones of `given` */
    bool is_cut;      /* not all that it has to say has fitted */
    int64_t write_at; /* from then on it may be written for what it says alone */
    int64_t gave_at;  /* something by it, last; 0: never */
} dv_note_draft;

/* Returns false when an allocation fails. */
bool dv_note_draft_init(dv_note_draft *draft);
void dv_note_draft_free(dv_note_draft *draft);
/* Returns whether no write under way gives anything in the numbering of another set. */
bool dv_note_draft_may_begin(const dv_note_draft *draft, const dv_plan_set *set);
/* Goes over to the numbering of this set, if it may. What was given in another's is forgotten. */
void dv_note_draft_begin(dv_note_draft *draft, dv_plan_set *set);
/* Adds an item that this write gives, DV_NOTE_GIVES_MAX at most. */
void dv_note_draft_give(dv_note_draft *draft, uint32_t item, int32_t sequence, int64_t seen);
/* Prints what marks[i] say of item i; takes off those that do not fit. Returns malloc'ed text, or NULL: no memory. */
char *dv_note_draft_print(dv_note_draft *draft, uint8_t *marks);
/* It is on its way, to a party of so many. */
void dv_note_draft_sent(dv_note_draft *draft, size_t members, int64_t now);
/* The write that was begun last is not sent, and gives nothing. */
void dv_note_draft_take_back(dv_note_draft *draft, size_t gives);
/* The first write that was under way has ended, which gives so many items. With an error it gave nothing
 * (T5), nor do those behind it. */
void dv_note_draft_ended(dv_note_draft *draft, size_t gives, int error, int64_t now);

#endif
