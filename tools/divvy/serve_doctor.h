/* The findings of a pool for the page, as `divvy doctor` makes them. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_SERVE_DOCTOR_H
#define DV_SERVE_DOCTOR_H

#include "look.h"
#include "pool_plan.h"
#include "serve_options.h"

struct dv_serve;

typedef struct {
    struct dv_serve *serve;
    const dv_look_options *options;
    int stop_fd;                             /* as for dv_look_open() */
    dv_pool_plan *plans[DV_SERVE_POOLS_MAX]; /* as they were read last; NULL: not yet */
} dv_serve_doctor;

/* Examines a pool: asks the servers, and reads by a session of its own what the main thread does not follow. Returns
 * the findings as one line of JSON, malloc'ed; NULL when it was told on stderr what is wrong. */
char *dv_serve_doctor_examine(dv_serve_doctor *doctor, size_t pool, const char *path);
/* Frees the plans, which the next examination reads again. */
void dv_serve_doctor_forget(dv_serve_doctor *doctor);

#endif
