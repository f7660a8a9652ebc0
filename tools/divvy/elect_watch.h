/* divvy elect --watch and --step-down, which do not stand. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_ELECT_WATCH_H
#define DV_ELECT_WATCH_H

#include "elect_options.h"

/* Each returns the exit code. The session is open. */
int dv_elect_watch(const dv_elect_options *options, dv_session *session);
int dv_elect_step_down(const dv_elect_options *options, dv_session *session);

/* Begins a config with what all users of the command's elections have alike. */
divvy_election_config dv_elect_config(const dv_elect_options *options);

#endif
