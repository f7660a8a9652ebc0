/* Pool: the calls of an operator's program, which wait for an errand. SPDX-License-Identifier: Apache-2.0 */
#include "divvy/pool.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/config.h"
#include "base/utf8.h"
#include "client/client.h"
#include "plan/tags.h"
#include "pool/changes.h"
#include "pool/errand.h"
#include "pool/whom.h"
#include "pool/wishes.h"
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

static int check_text(divvy_client *client, const char *what, const char *text, size_t bytes_max) {
    if (!text) return dv_fail(client, DIVVY_EINVAL, "pool: the %s is NULL", what);
    if (!dv_is_utf8(text)) return dv_fail(client, DIVVY_EINVAL, "pool: the %s is not UTF-8", what);
    return dv_client_check_text(client, "pool", what, text, bytes_max);
}

static int check_member(divvy_client *client, const char *member) {
    return check_text(client, "member", member, DV_PLAN_KEY_BYTES_MAX);
}

static int check_tag(divvy_client *client, const char *tag) {
    if (dv_is_tag(tag, strlen(tag))) return 0;
    return dv_fail(client, DIVVY_EINVAL,
                   "pool: \"%.100s\" is no tag: one has 1 to 64 of A-Z, a-z, 0-9, \"_\", \".\", \"-\"", tag);
}

static int check_option(divvy_client *client, const dv_ask *ask) {
    int error = check_text(client, "option", ask->name, DV_WISH_NAME_BYTES_MAX);
    const char *wrong = error ? NULL : dv_pool_option_check(ask->name, ask->value);
    return wrong ? dv_fail(client, DIVVY_EINVAL, "pool: the option \"%.100s\" %s", ask->name, wrong) : error;
}

static int check_names(divvy_client *client, const dv_ask *ask) {
    if (ask->kind == DV_ASK_OPTION) return check_option(client, ask);
    if (ask->kind == DV_ASK_WEIGHT || ask->kind == DV_ASK_FORGET) return check_member(client, ask->name);
    int error = check_text(client, "item", ask->name, DV_WISH_NAME_BYTES_MAX);
    if (error || ask->undo || ask->kind == DV_ASK_PAUSE) return error;
    return ask->kind == DV_ASK_NEED ? check_tag(client, ask->value) : check_member(client, ask->value);
}

static int check_note(divvy_client *client, const char *what, const char *text, size_t bytes_max) {
    if (!text || (dv_is_utf8(text) && strlen(text) <= bytes_max)) return 0;
    return dv_fail(client, DIVVY_EINVAL, "pool: `%s` is not UTF-8, or has more than %zu bytes", what, bytes_max);
}

static int check(divvy_client *client, const char *path, const dv_ask *ask) {
    if (dv_client_end_error(client)) return dv_fail_plainly(client, dv_client_end_error(client));
    int error = dv_client_check_directory(client, "pool", path);
    if (!error) error = check_names(client, ask);
    if (!error) error = check_note(client, "by", ask->by, DV_WISH_BY_BYTES_MAX);
    if (!error) error = check_note(client, "why", ask->why, DV_WISH_WHY_BYTES_MAX);
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
    result.absent = r->absent;
    memcpy(to, &result, bytes);
}

static void tell_failure(divvy_client *client, const char *path, const dv_errand *e, int error) {
    const dv_errand_result *r = &e->result;
    if (*r->text && strstr(r->text, path)) dv_fail(client, error, "%s", r->text); /* It names the pool itself. */
    else if (*r->text) dv_fail(client, error, "pool %s: %s", path, r->text);
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

static int64_t wall_clock_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Asks in the name of the process, where the user says nothing. */
static int ask_as(divvy_client *client, const char *path, dv_ask *ask, const divvy_pool_request *request) {
    char *own = ask->by ? NULL : dv_client_default_identifier();
    if (!ask->by && !own) return dv_fail_plainly(client, DIVVY_ENOMEM);
    if (own && strlen(own) > DV_WISH_BY_BYTES_MAX) own[DV_WISH_BY_BYTES_MAX] = '\0';
    if (own) ask->by = own;
    ask->at_ms = wall_clock_ms();
    int error = carry_out(client, path, ask, request);
    free(own);
    return error;
}

static int ask_pool(divvy_client *client, const char *path, dv_ask *ask, const divvy_pool_request *from) {
    divvy_pool_request request;
    int error = dv_client_enter(client);
    if (error) return error;
    dv_client_ref(client);
    error = read_request(client, &request, from);
    if (!error) {
        ask->by = request.by;
        ask->why = request.why;
        ask->dry_run = request.dry_run != 0;
        error = check(client, path, ask);
    }
    if (!error && dv_client_in_callback(client)) error = dv_fail_plainly(client, DIVVY_EDEADLK);
    if (!error) error = ask_as(client, path, ask, &request);
    dv_client_unlock(client);
    dv_client_unref(client);
    return error;
}

/* ---- the calls ---- */

int divvy_pool_set_weight(divvy_client *client, const char *path, const char *member, int64_t weight,
                          const divvy_pool_request *request) {
    dv_ask ask = {.kind = DV_ASK_WEIGHT, .name = member, .weight = weight};
    return ask_pool(client, path, &ask, request);
}

int divvy_pool_forget(divvy_client *client, const char *path, const char *member, const divvy_pool_request *request) {
    dv_ask ask = {.kind = DV_ASK_FORGET, .name = member};
    return ask_pool(client, path, &ask, request);
}

int divvy_pool_pin(divvy_client *client, const char *path, const char *item, const char *member,
                   const divvy_pool_request *request) {
    dv_ask ask = {.kind = DV_ASK_PIN, .name = item, .value = member};
    return ask_pool(client, path, &ask, request);
}

int divvy_pool_unpin(divvy_client *client, const char *path, const char *item, const divvy_pool_request *request) {
    dv_ask ask = {.kind = DV_ASK_PIN, .name = item, .undo = true};
    return ask_pool(client, path, &ask, request);
}

int divvy_pool_move(divvy_client *client, const char *path, const char *item, const char *member,
                    const divvy_pool_request *request) {
    dv_ask ask = {.kind = DV_ASK_MOVE, .name = item, .value = member};
    return ask_pool(client, path, &ask, request);
}

int divvy_pool_pause(divvy_client *client, const char *path, const char *item, const divvy_pool_request *request) {
    dv_ask ask = {.kind = DV_ASK_PAUSE, .name = item};
    return ask_pool(client, path, &ask, request);
}

int divvy_pool_resume(divvy_client *client, const char *path, const char *item, const divvy_pool_request *request) {
    dv_ask ask = {.kind = DV_ASK_PAUSE, .name = item, .undo = true};
    return ask_pool(client, path, &ask, request);
}

int divvy_pool_need(divvy_client *client, const char *path, const char *item, const char *tag,
                    const divvy_pool_request *request) {
    dv_ask ask = {.kind = DV_ASK_NEED, .name = item, .value = tag, .undo = tag == NULL};
    return ask_pool(client, path, &ask, request);
}

int divvy_pool_set_option(divvy_client *client, const char *path, const char *name, const char *value,
                          const divvy_pool_request *request) {
    dv_ask ask = {.kind = DV_ASK_OPTION, .name = name, .value = value, .undo = value == NULL};
    return ask_pool(client, path, &ask, request);
}
