/* Pool: the calls of an operator's program, which wait for an errand. SPDX-License-Identifier: Apache-2.0 */
#include "divvy/pool.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "base/utf8.h"
#include "client/client.h"
#include "pool/changes.h"
#include "pool/errand.h"
#include "pool/whom.h"
#include "recipe/request.h"

static const divvy_pool_request defaults = DIVVY_POOL_REQUEST_INIT;
static const divvy_pool_result nothing = DIVVY_POOL_RESULT_INIT;

void divvy_pool_request_init(divvy_pool_request *request, size_t size) {
    dv_config_init(request, size, &defaults, sizeof defaults);
}

void divvy_pool_result_init(divvy_pool_result *result, size_t size) {
    dv_config_init(result, size, &nothing, sizeof nothing);
}

/* ---- what is asked, checked ---- */

static int read_request(divvy_client *client, divvy_pool_request *to, const divvy_pool_request *from) {
    divvy_pool_result result;
    if (dv_config_copy(to, sizeof *to, &defaults, from ? from : &defaults) != 0)
        return dv_fail(client, DIVVY_EINVAL, "pool: the request was not initialised by DIVVY_POOL_REQUEST_INIT");
    if (to->result && dv_config_copy(&result, sizeof result, &nothing, to->result) != 0)
        return dv_fail(client, DIVVY_EINVAL, "pool: the result was not initialised by DIVVY_POOL_RESULT_INIT");
    if (to->timeout_ms < -1) return dv_fail(client, DIVVY_EINVAL, "pool: timeout_ms is below -1");
    return 0;
}

static int check(divvy_client *client, const char *path, const dv_ask *ask) {
    if (dv_client_end_error(client)) return dv_fail_plainly(client, dv_client_end_error(client));
    int error = dv_client_check_directory(client, "pool", path);
    if (!error && !ask->name) error = dv_fail(client, DIVVY_EINVAL, "pool: the member is NULL");
    if (!error) error = dv_client_check_text(client, "pool", "member", ask->name, DV_PLAN_KEY_BYTES_MAX);
    if (!error && ask->kind == DV_ASK_WEIGHT && (ask->weight < DV_ASK_CONFIGURED_WEIGHT || ask->weight > UINT32_MAX))
        error = dv_fail(client, DIVVY_EINVAL, "pool: the weight %" PRId64 " is out of range", ask->weight);
    return error;
}

/* ---- what came of it ---- */

/* Fills in as much as the caller's struct has. */
static void fill(divvy_pool_result *to, const dv_errand *e) {
    const dv_errand_result *r = &e->result;
    divvy_pool_result result = nothing;
    size_t bytes = to->size < sizeof result ? to->size : sizeof result;
    const dv_plan_member *after = r->key ? dv_plan_find(r->after, r->is_static, r->key) : NULL;
    result.size = to->size;
    result.changed = r->after != r->before;
    result.generation = r->after->header.generation;
    result.moves = dv_changes_count(r->before, r->after);
    result.items = dv_whom_load(e, r->after);
    result.items_before = r->items_before;
    result.weight = after ? after->weight : 0;
    result.weight_before = r->weight_before;
    memcpy(to, &result, bytes);
}

static void tell_failure(divvy_client *client, const char *path, const dv_errand *e, int error) {
    const dv_errand_result *r = &e->result;
    if (*r->text) dv_fail(client, error, "pool %s: %s", path, r->text);
    else if (error == DIVVY_ETIMEDOUT && *r->waits_for) dv_fail(client, error, "pool %s: %s", path, r->waits_for);
    else dv_fail(client, error, "pool %s: %s", path, dv_client_why(client, error));
}

/* ---- waiting ---- */

typedef struct {
    divvy_client *client;
    bool done;
} waiter;

static void on_done(void *owner, int64_t now) {
    waiter *w = owner;
    (void)now;
    w->done = true;
    dv_client_changed(w->client);
}

static bool is_done(void *context) {
    return ((const waiter *)context)->done;
}

static int carry_out(divvy_client *client, const char *path, const dv_ask *ask, const divvy_pool_request *request) {
    waiter w = {.client = client};
    char *root = dv_client_path(client, path);
    dv_errand *e = root ? dv_errand_start(client, path, root, ask, on_done, &w) : NULL;
    free(root);
    if (!e) return dv_fail_plainly(client, DIVVY_ENOMEM);
    int64_t timeout_ms = request->timeout_ms > DV_TIME_MAX_MS ? DV_TIME_MAX_MS : request->timeout_ms;
    int error = dv_client_wait(client, timeout_ms, is_done, &w);
    if (w.done) error = e->result.error;
    if (error) tell_failure(client, path, e, error);
    else if (request->result) fill(request->result, e);
    dv_errand_drop(e);
    return error;
}

static int ask_pool(divvy_client *client, const char *path, dv_ask *ask, const divvy_pool_request *from) {
    divvy_pool_request request;
    int error = dv_client_enter(client);
    if (error) return error;
    dv_client_ref(client);
    error = read_request(client, &request, from);
    if (!error) error = check(client, path, ask);
    if (!error && dv_client_in_callback(client)) error = dv_fail_plainly(client, DIVVY_EDEADLK);
    if (!error) {
        ask->dry_run = request.dry_run != 0;
        error = carry_out(client, path, ask, &request);
    }
    dv_client_unlock(client);
    dv_client_unref(client);
    return error;
}

int divvy_pool_set_weight(divvy_client *client, const char *path, const char *member, int64_t weight,
                          const divvy_pool_request *request) {
    return ask_pool(client, path, &(dv_ask){.kind = DV_ASK_WEIGHT, .name = member, .weight = weight}, request);
}

int divvy_pool_forget(divvy_client *client, const char *path, const char *member, const divvy_pool_request *request) {
    return ask_pool(client, path, &(dv_ask){.kind = DV_ASK_FORGET, .name = member}, request);
}
