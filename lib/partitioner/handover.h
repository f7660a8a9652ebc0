/* Handovers, as the rooms of the partitioner share them. SPDX-License-Identifier: Apache-2.0
 *
 * handover.c has our note, and the places that leave with a write of it; give.c what we give away, take.c what we are
 * to take. docs/protocol.md, rules T0 to T6, T8, T9. */
#ifndef DV_HANDOVER_H
#define DV_HANDOVER_H

#include "handover/draft.h"
#include "handover/notes.h"
#include "handover/own_note.h"
#include "partitioner/partitioner.h"

/* A place that leaves together with a write of our note. */
typedef struct dv_departure {
    struct dv_departure *next;
    dv_item *item; /* lives at least as long as the place */
    dv_contender *place;
    uint8_t marks; /* DV_NOTE_LEAVING, DV_NOTE_READY: it stands so in our note */
    int64_t seen;  /* T5: gives the item; the mzxid of the note that was acted on. 0: it is only left */
} dv_departure;

/* A write of our note that is under way. */
typedef struct dv_note_departures {
    struct dv_note_departures *next; /* of the write behind it */
    dv_departure *first;
    size_t gives; /* so many of them give their items */
} dv_note_departures;

struct dv_handover {
    divvy_partitioner *p;
    char *directory;   /* P/notes */
    dv_own_note *note; /* of our node in the party; NULL: none */
    unsigned notes;    /* ours that are not gone: this one, and those of our earlier nodes */
    dv_notes *others;
    dv_note_view **namesakes; /* T9: of the other live nodes of our identifier */
    size_t namesake_count;
    int64_t plan_mzxid; /* of the plan that is in force */
    dv_note_draft draft;
    dv_departure *waiting, **waiting_end;
    dv_note_departures *writes; /* of this note, or of an earlier one, that are under way, in their order */
    bool dirty;                 /* our note says something else than is true, but for more ready items */
    int64_t ready_since;        /* since when it lacks a ready item; 0: it has all */
    bool is_entering;           /* places that were asked for are not there yet */
    dv_event go;                /* posted while there may be something to write */
    dv_timer timer;
};

/* ---- handover.c ---- */
/* Makes none (NULL) if the member hands nothing over: the calls below do nothing then. Returns 0 or DIVVY_ENOMEM. */
int dv_handover_init(divvy_partitioner *p, divvy_client *client);
void dv_handover_free(divvy_partitioner *p);
/* Our node in the party is about to be made: first its note. dv_membership_go_on() follows in any case. */
void dv_handover_named(void *partitioner, const char *node, int64_t now);
/* Deletes the note of our party node, which is gone; a moment later if the member ends, and has just given. */
void dv_handover_ended(divvy_partitioner *p, int64_t now);
void dv_handover_connected(divvy_partitioner *p);
/* Returns whether all notes of ours are gone. */
bool dv_handover_at_rest(const divvy_partitioner *p);
/* Takes the owners by the plan in force; NULL: none is. mine[i]: it gives us item i of p->dealt, which is its set. */
void dv_handover_plan(divvy_partitioner *p, const uint8_t *mine, const dv_follow_owners *owners, int64_t now);
/* Something of it may be another now: looks at all again, in an event of its own, and writes what has changed. */
void dv_handover_changed(divvy_partitioner *p);
/* Our note says something else than is true now; it is written when it may be. */
void dv_handover_note_differs(divvy_partitioner *p);
/* Returns whether our note can be written now, behind what is under way. */
bool dv_handover_may_write(const struct dv_handover *h);
/* The note lacks an item that is ready. It is written when no more of them are to come soon. */
void dv_handover_is_ready(divvy_partitioner *p, int64_t now);
/* The place leaves its queue, with a write of our note if that says something of it. */
void dv_handover_leave(dv_item *item, dv_contender *place);
/* Nothing is handed over from now on: places leave by themselves. */
void dv_handover_stop(divvy_partitioner *p);
/* Returns whether our note can be read by others. */
bool dv_handover_can(const divvy_partitioner *p);

/* ---- give.c ---- */
/* T1: a plan gives it to the member of this node, as dv_follow_owners.now says. */
void dv_give_to(dv_item *item, const char *owner, bool party_is_older, int64_t now);
void dv_give_forget(dv_item *item);
/* Sets which of the shown items outside the target are kept for their next owners (T1, T3, T4). */
void dv_give_update(divvy_partitioner *p, int64_t now);
/* Returns whether the note says that we give it away. */
bool dv_give_lists(const dv_item *item);
/* T5: the mzxid of the note by which the next owner is ready now, or 0. */
int64_t dv_give_seen(const dv_item *item);
/* Answers dv_follow_questions.handed_over_ms(), by our note and those that we read (D44). */
int64_t dv_give_ended_ms(void *partitioner, int64_t mzxid);
/* Returns whether it is kept now, revoked or not. */
bool dv_give_keeps(const dv_item *item, int64_t now);
/* When the first of them may be overdue; INT64_MAX: none. */
int64_t dv_give_due(const divvy_partitioner *p);

/* ---- take.c ---- */
/* T2: a plan gives it to us; before that it gave it to the member of this node. NULL, or dv_nobody: to no live one. */
void dv_take_expect(dv_item *item, const char *before, int64_t now);
void dv_take_forget(dv_item *item);
void dv_take_arrived(dv_item *item);
/* The user has prepared for it; NULL: for all that he knows of. */
void dv_take_prepared(divvy_partitioner *p, dv_item *one);
/* The user has seen a list of the items to prepare, which counts as told. */
void dv_take_seen(divvy_partitioner *p);
/* T2: returns whether it may be asked for now. */
bool dv_take_may_enter(const dv_item *item, int64_t now);
/* T2: returns whether the one who has it says so, so that no list is needed. */
bool dv_take_is_awaited(const dv_item *item);
/* Q11: returns whether its queue is most likely empty, as nobody had it who is still there. */
bool dv_take_is_from_nobody(const dv_item *item);
/* Its place is there, or waits behind somebody. */
void dv_take_behind(void *context, int64_t now);
/* T6: places that wait for a note are looked at. NULL: for any. */
void dv_take_judge(divvy_partitioner *p, const dv_note_view *view, int64_t now);
/* Returns whether the note says that we stand ready for it. */
bool dv_take_lists(const dv_item *item);
/* T2: the user is told to prepare for what is to come, and no longer for what is not. */
void dv_take_update(divvy_partitioner *p, int64_t now);
/* P10: the session clock has proven something for the first time. */
void dv_take_proven(divvy_partitioner *p);
int64_t dv_take_due(const divvy_partitioner *p, int64_t now);

#endif
