/* Steps: records of what was sent, answered, committed and believed of locks, semaphores and items.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A record is a line: `<ms> <who> <object> <kind> key=value ...`. `who` is a session. `object` is a lock, a semaphore's
 * pool or its queue, an item, n for a note, or * for all. test/replay holds them against the rules of a model. */
#ifndef SIM_STEPS_H
#define SIM_STEPS_H

#include <stdio.h>

#include "sim.h"

/* Records go there from now on. */
void sim_steps_to(FILE *file);
void sim_steps_begin(const sim_world *w);
/* An invariant has failed: what follows is no part of the history. */
void sim_steps_violated(const sim_world *w);
/* The history has come to its end. */
void sim_steps_over(const sim_world *w);
/* The process that wrote the last history has ended within it: its last line may be a part of one. */
void sim_steps_cut_off(void);
/* What the member sends and is answered from now on is recorded. */
void sim_steps_open(sim_member *m);
void sim_steps_transaction(sim_world *w, const divvy_testing_transaction *t);
/* Records the beliefs that have begun or ended. */
void sim_steps_beliefs(const sim_world *w);

/* ---- steps_items.c: what becomes of a pool's items ---- */
/* Records go there from now on; a history begins. */
void sim_steps_items_begin(FILE *file);
void sim_steps_items_open(sim_member *m);
void sim_steps_items_transaction(const sim_world *w, const divvy_testing_transaction *t);
/* Records what the member follows and owns, where that has changed. Others see no more of it than it commits, so that
 * it is looked at with its own requests and answers, and with each transaction. */
void sim_steps_items_look(const sim_member *m);

/* ---- steps_member.c: what becomes of members' states and of their items ---- */
/* Records go there from now on; a history begins. */
void sim_steps_member_begin(FILE *file, const sim_world *w);
void sim_steps_member_end(void);
/* Records that nothing is left half done. */
void sim_steps_member_rests(const sim_member *m);

#endif
