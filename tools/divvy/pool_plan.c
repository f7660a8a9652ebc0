/* A pool's plan, for subcommands that show it. SPDX-License-Identifier: Apache-2.0 */
#include "pool_plan.h"

#include <stdlib.h>

#include <divvy/divvy.h>

#include "client/client.h"
#include "znode/path.h"

int dv_pool_plan_init(dv_pool_plan *plan, dv_look *look, const char *path) {
    *plan = (dv_pool_plan){.look = look};
    char *root = dv_look_path(look, path);
    plan->path = root ? dv_path_join(root, "plan") : NULL;
    free(root);
    return plan->path ? 0 : DIVVY_ENOMEM;
}

void dv_pool_plan_free(dv_pool_plan *plan) {
    dv_plan_memory_clear(&plan->memory);
    free(plan->path);
    *plan = (dv_pool_plan){.look = NULL};
}

/* ---- reading ---- */

static void on_changed(void *owner, int64_t now) {
    (void)now;
    ((dv_pool_plan *)owner)->read = true;
}

static void on_failed(void *owner, int error, int64_t now) {
    (void)now;
    ((dv_pool_plan *)owner)->read_error = error;
}

static void on_reader_gone(void *owner, int64_t now) {
    dv_pool_plan *plan = owner;
    (void)now;
    plan->reader = NULL;
    if (!plan->read_error) plan->read_error = DIVVY_ELOST; /* The session is over; there will be another one. */
}

static int begin_reading(dv_pool_plan *plan) {
    static const dv_plan_reader_events events = {on_changed, on_failed, on_reader_gone};
    divvy_client *client = dv_look_client(plan->look);
    int error = dv_client_enter(client);
    if (error) return error;
    plan->read = false;
    plan->read_error = 0;
    if (!plan->reader) plan->reader = dv_plan_reader_start(client, plan->path, &plan->memory, NULL, &events, plan);
    if (plan->reader) dv_plan_reader_look(plan->reader, dv_client_now(client));
    dv_client_unlock(client);
    return plan->reader ? 0 : DIVVY_ENOMEM;
}

int dv_pool_plan_read(dv_pool_plan *plan) {
    int error = begin_reading(plan);
    while (!error && !plan->read && !plan->read_error) error = dv_look_step(plan->look);
    if (error || plan->read) return error;
    dv_look_blame(plan->look, plan->path);
    return plan->read_error;
}
