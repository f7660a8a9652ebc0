/* The faults of servers, a session and a pool. SPDX-License-Identifier: Apache-2.0
 *
 * Pure: of what was read they make findings. */
#ifndef DV_DOCTOR_JUDGE_H
#define DV_DOCTOR_JUDGE_H

#include "doctor_findings.h"
#include "doctor_pool.h"

/* The servers, the session, the tick, clocks. */
void dv_doctor_judge_servers(const dv_doctor *doctor, dv_findings *findings);
/* The pool's nodes: access lists, the plan, limits, what is left over. Only where there is a pool. */
void dv_doctor_judge_pool(const dv_doctor *doctor, dv_findings *findings);
/* Its members: strays, ghosts, namesakes, those that are silent, and their settings. Likewise. */
void dv_doctor_judge_members(const dv_doctor *doctor, dv_findings *findings);
/* Its items: those that are not released, or that nobody owns. Likewise. */
void dv_doctor_judge_items(const dv_doctor *doctor, dv_findings *findings);
/* Its rules: loads, tags, caps, and operators' wishes. Likewise. */
void dv_doctor_judge_rules(const dv_doctor *doctor, dv_findings *findings);
/* Returns whether these findings, or an operator, say why the plan gives an item to nobody. */
bool dv_doctor_rules_tell(const dv_doctor *doctor, size_t item);

/* Returns by how much the servers' wall clock is ahead of ours, as far as it is certain; 0: it may be right. */
int64_t dv_doctor_skew_ms(const dv_doctor *doctor);
/* Returns the age of something that a server has dated. */
int64_t dv_doctor_age_ms(const dv_doctor *doctor, int64_t since_ms);
/* Returns the age of the plan; 0: there is none. */
int64_t dv_doctor_plan_age_ms(const dv_doctor *doctor);
/* Returns the level of what may be on its way: a note at first, a warning once it has lasted. */
dv_doctor_level dv_doctor_level_of(int64_t age_ms);
/* Returns what stands in front of the names below the pool: its path, or "" where that is the root. */
const char *dv_doctor_root(const dv_doctor *doctor);
/* Returns the connection of a session, or NULL. */
const dv_word_connection *dv_doctor_connection(const dv_doctor *doctor, int64_t session);

#endif
