/* The findings of a pool for the page. SPDX-License-Identifier: Apache-2.0 */
#include "serve_doctor.h"

#include <stdlib.h>
#include <string.h>

#include <divvy/divvy.h>

#include "doctor_examine.h"
#include "serve.h"
#include "serve_snapshot.h"
#include "status_plan.h"
#include "table_json.h"

/* As `divvy doctor` has them, but that nobody waits for a silent server. */
enum { SESSION_TIMEOUT_MS = 10000, SERVER_TIMEOUT_MS = 1000 };

/* One pool of the doctor. */
typedef struct {
    dv_serve *serve;
    size_t pool;
} patient;

/* ---- the pool, as it is followed ---- */

/* Copies the pool, if the last look at it did not fail. 0 or DIVVY_ENOMEM. */
static int take_snapshot(const patient *p, dv_serve_snapshot *snapshot, bool *taken) {
    pthread_mutex_lock(&p->serve->lock);
    const dv_serve_pool *pool = &p->serve->pools[p->pool];
    *taken = pool->read_at_ms && !pool->trouble && !p->serve->trouble;
    int error = *taken ? dv_serve_snapshot_take(snapshot, pool) : 0;
    pthread_mutex_unlock(&p->serve->lock);
    return error;
}

/* The plan is read here. It is what the main thread has, or is about to read; and it is in memory but for changes. */
static int follow(dv_look *look, dv_doctor *d) {
    dv_serve_snapshot snapshot = {.members = NULL};
    (void)look;
    int error = take_snapshot(d->follower, &snapshot, &d->is_followed);
    if (!error && d->is_followed) error = dv_serve_snapshot_status(&snapshot, &d->status);
    dv_serve_snapshot_free(&snapshot);
    if (error || !d->is_followed) return error;
    error = dv_pool_plan_read(d->status.plan);
    if (error && error != DIVVY_EACCES) return error; /* A plan that may not be read is passed over. */
    return dv_status_plan_match(&d->status);
}

/* ---- the whole ---- */

static dv_pool_plan *plan_of(dv_serve_doctor *doctor, size_t pool) {
    if (!doctor->plans[pool]) doctor->plans[pool] = calloc(1, sizeof *doctor->plans[pool]);
    return doctor->plans[pool];
}

void dv_serve_doctor_forget(dv_serve_doctor *doctor) {
    for (size_t i = 0; i < DV_SERVE_POOLS_MAX; i++) {
        if (doctor->plans[i]) dv_pool_plan_free(doctor->plans[i]);
        free(doctor->plans[i]);
        doctor->plans[i] = NULL;
    }
}

static char *print(const dv_doctor *d, size_t pool, int64_t read_at_ms) {
    dv_findings findings = {.list = NULL};
    dv_doctor_judge(d, &findings);
    cJSON *json = cJSON_CreateObject();
    bool good = json && dv_json_number(json, "pool", (int64_t)pool) && dv_json_number(json, "read_at_ms", read_at_ms) &&
                dv_json_number(json, "notes", (int64_t)dv_findings_of(&findings, DV_DOCTOR_NOTE)) &&
                dv_findings_put(json, &findings);
    dv_findings_clear(&findings);
    return dv_json_line(json, good);
}

char *dv_serve_doctor_examine(dv_serve_doctor *doctor, size_t pool, const char *path) {
    const dv_look_options *options = doctor->options;
    patient p = {doctor->serve, pool};
    char *user = options->auth ? strndup(options->auth, strcspn(options->auth, ":")) : NULL;
    dv_pool_plan *plan = plan_of(doctor, pool);
    dv_doctor d = {.path = path,
                   .user = user,
                   .session_timeout_ms = SESSION_TIMEOUT_MS,
                   .tick_ms = dv_doctor_environment_tick_ms(),
                   .server_timeout_ms = SERVER_TIMEOUT_MS,
                   .follow = follow,
                   .follower = &p};
    bool good =
        plan && (user || !options->auth) && dv_doctor_examine(&d, options, plan, dv_serve_name, doctor->stop_fd) == 0;
    char *text = good ? print(&d, pool, dv_look_wall_ms()) : NULL;
    dv_doctor_clear(&d);
    free(user);
    return text;
}
