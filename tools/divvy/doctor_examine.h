/* An examination, as `divvy doctor` and the page make it. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_DOCTOR_EXAMINE_H
#define DV_DOCTOR_EXAMINE_H

#include "doctor_findings.h"
#include "doctor_pool.h"

/* Returns the tick of the environment, which members are told too; 0 where it has none. */
int64_t dv_doctor_environment_tick_ms(void);

/* Asks the servers of options->connect, then reads by a session of its own to those that serve, so that no other one
 * delays it. `doctor` has the question. `plan` is empty, or what the last examination of this pool has left in it; it
 * outlives the findings. `stop_fd` is as for dv_look_open().
 *
 * Returns 0, or the exit code when it was told on stderr what is wrong. Release with dv_doctor_clear(). */
int dv_doctor_examine(dv_doctor *doctor, const dv_look_options *options, dv_pool_plan *plan, const char *command,
                      int stop_fd);
/* Makes findings of what was read. */
void dv_doctor_judge(const dv_doctor *doctor, dv_findings *findings);

#endif
