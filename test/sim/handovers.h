/* Handovers, as the parts of the simulator see them. SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_HANDOVERS_H
#define SIM_HANDOVERS_H

#include "handover/note.h"
#include "plans.h"

/* The note of a member: the items are those of the history, whatever set it counts them by. */
typedef struct {
    char node[SIM_NODE_BYTES];
    int64_t session, mzxid;
    uint64_t life;     /* of its partitioner; 0: not known */
    uint64_t set_hash; /* of the items that it counts */
    bool stands;
    bool leaving[SIM_ITEMS_MAX], ready[SIM_ITEMS_MAX];
    int64_t leaving_ms[SIM_ITEMS_MAX], ready_ms[SIM_ITEMS_MAX]; /* when that changed last; ready: or was said again */
} sim_note;

/* An item that a note gave. */
typedef struct {
    size_t item;
    int32_t sequence; /* q */
    int64_t seen;     /* r */
} sim_given;

/* A version of a note that says that an item is ready. */
typedef struct {
    int64_t mzxid, session;
    size_t item;
} sim_ready;

/* A member, as the checkers follow it. */
typedef struct {
    uint64_t life, generation, state_id;
    int64_t plan_mzxid, plan_ms, looked_ms;
    bool self_known;  /* what our own node in the party says, by which a plan may give us something */
    int64_t awake_ms; /* since when it runs and is connected; 0: it does not, or is not */
    bool plan_decided, answer_due;
    bool unseen;        /* steps were not looked at */
    bool skipped;       /* its plan did not come right after the one that it had before */
    int64_t skipped_ms; /* when that was the last time */
    size_t parked_count;
    int64_t parked[SIM_ITEMS_MAX];  /* the czxid of its place that waits for a note; 0: none */
    int64_t by_list[SIM_ITEMS_MAX]; /* of one that waited so before it looked */
    int64_t away_ms[SIM_ITEMS_MAX]; /* since when its plans give away what it shows; 0: they do not */
    bool was_away[SIM_ITEMS_MAX];   /* the same, before the last change */
    bool left[SIM_ITEMS_MAX];       /* it was leaving when looked at last */
    int64_t stale_ms[SIM_ITEMS_MAX], idle_ms[SIM_ITEMS_MAX];    /* since when: L7 */
    int64_t absent_ms[SIM_ITEMS_MAX], untold_ms[SIM_ITEMS_MAX]; /* L8 */
} sim_hand;

struct sim_handovers {
    sim_note *notes;
    size_t note_count, note_room;
    sim_given *given;
    size_t given_count, given_room;
    sim_ready *ready;
    size_t ready_count, ready_room;
    int64_t *touched; /* sessions of whose nodes somebody else has deleted one */
    size_t touched_count, touched_room;
    int64_t calm_ms; /* since when no fault goes on */
    sim_hand hands[SIM_SLOTS_MAX];
};

/* ---- truth_notes.c ---- */
void sim_handovers_free(struct sim_handovers *h);
/* S15, S19: each transaction, before truth.c has it. */
void sim_notes_transaction(sim_world *w, const divvy_testing_transaction *t);
/* Returns the note of a party node that is or was there, or NULL. */
const sim_note *sim_note_of_node(const sim_world *w, const char *node);
/* Returns the set whose numbering that note of the session has, or NULL: nobody knows it now. */
const dv_plan_set *sim_note_set(sim_world *w, const dv_note *note, int64_t session);
/* T6: returns whether some note has ever given the item to such a place. */
bool sim_given_to(const sim_world *w, size_t item, int32_t sequence, int64_t czxid);
/* Returns whether some note has said so since then. */
bool sim_is_ready_lately(const sim_world *w, size_t item, int64_t since_ms);
sim_member *sim_member_of_session(sim_world *w, int64_t session);
size_t sim_item_of_name(const char *name);
/* Returns whether somebody else has deleted a node of that session. */
bool sim_session_touched(const sim_world *w, int64_t session);

/* ---- check_handovers.c ---- */
/* `is_fenced`: a plan is in force, and another node has taken the member's place (T9). */
void sim_handovers_check_step(sim_member *m, bool is_fenced);
/* At each step, and when a fault begins: it may end before the next step. */
void sim_handovers_note_faults(sim_world *w);
/* Steps may have been made inside a call, though no time has gone on: messages without a delay take none. */
void sim_handovers_check_call(sim_world *w);
/* Time has gone on inside a call, and steps in it were not looked at. */
void sim_handovers_check_anew(sim_world *w);

/* ---- steps_items.c ---- */
/* Records a note that was written, if records are wanted. `set` is NULL: nobody knows its items. */
void sim_steps_note(const sim_world *w, const sim_note *n, const dv_note *note, const dv_plan_set *set);

#endif
