/* Runs many histories in child processes, and one at a time. SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_RUNNER_H
#define SIM_RUNNER_H

#include "sim.h"

enum { SIM_JOBS_MAX = 16, SIM_FOUND_MAX = 64 };

typedef struct {
    uint64_t seed, count;             /* seeds `seed` to `seed` + `count` - 1 */
    uint64_t fresh_seed, fresh_count; /* likewise, after those */
    sim_kazoo_share kazoo;
    sim_theme theme;
    bool old_servers; /* which lack create2 and containers (B8) */
    bool odd_answers; /* answers.c */
    bool death_watch; /* watches.c */
    bool rolls;       /* check_rolls.c */
    unsigned jobs;
    int64_t limit_ms; /* of real time; 0: none */
    bool stop_at_first, quiet;
} sim_run_config;

typedef struct {
    uint64_t seed;
    sim_violation violation;
} sim_found;

typedef struct {
    sim_coverage coverage;
    uint64_t violations;
    sim_found found[SIM_FOUND_MAX]; /* the first of them */
    size_t found_count;
    double seconds;
} sim_run_result;

/* Histories one after the other, in `jobs` processes: an assertion that fails, or a history without end, takes one of
 * them down, counts as a violation, and another one goes on. */
void sim_run(const sim_run_config *config, sim_run_result *out);
/* One history in a process of its own. */
bool sim_run_one(const sim_script *script, const bool *omit, sim_violation *out);
/* Takes events out of a script for as long as the violation stays; prints what is left. */
void sim_shrink(const sim_script *script);
double sim_seconds(void);

#endif
