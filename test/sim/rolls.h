/* Small pools where some members listen to the roll, and the checks of that. SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_ROLLS_H
#define SIM_ROLLS_H

#include "sim.h"

/* The parties of the pool, by the servers. */
struct sim_rolls_truth;

void sim_rolls_configure(const sim_member *m);
/* Somebody else writes what is no roll, or a false one. */
void sim_rolls_spoil(sim_world *w, uint32_t choice);
/* After the party's own truth. */
void sim_rolls_transaction(sim_world *w, const divvy_testing_transaction *t);
void sim_rolls_check_step(sim_member *m);
bool sim_rolls_well(const sim_world *w, char *text, size_t bytes);
int64_t sim_rolls_bound_ms(const sim_world *w);
void sim_rolls_truth_free(sim_world *w);

#endif
