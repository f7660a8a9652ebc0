/* Death watches of members. SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_WATCHES_H
#define SIM_WATCHES_H

#include "sim.h"

/* A member's client has been opened, and not yet connected. */
void sim_watch_begin(sim_member *m, sim_random random);
/* The member's process ends: by a crash, which its client has not been told of; or after it has closed its client. */
void sim_watch_crash(sim_member *m);
void sim_watch_closed(sim_member *m, int64_t session);
void sim_watches_step(sim_world *w);
int64_t sim_watches_next(const sim_world *w);
void sim_watches_free(sim_world *w);
/* S24: a session ends. */
void sim_watches_check_end(sim_world *w, const divvy_testing_transaction *t);
/* S2: a member believes in an item from now on. */
void sim_watches_check_alone(const sim_member *m, size_t item);

#endif
