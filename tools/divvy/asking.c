/* Asking a pool for something, on a look: the errand of a command. SPDX-License-Identifier: Apache-2.0 */
#include "asking.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <divvy/divvy.h>

#include "client/client.h"
#include "command.h"
#include "nearest.h"
#include "pool/whom.h"
#include "pool/wishes.h"

typedef struct {
    const char *path;
    char *root; /* at the servers */
    const dv_ask *ask;
    dv_errand *errand;
    bool done;
} asking;

static void on_done(void *owner, int64_t now) {
    (void)now;
    ((asking *)owner)->done = true;
}

static int begin(asking *a, const dv_look *look) {
    divvy_client *client = dv_look_client(look);
    int error = a->errand ? 0 : dv_client_enter(client);
    if (error || a->errand) return error;
    a->errand = dv_errand_start(client, a->path, a->root, a->ask, on_done, a);
    dv_client_unlock(client);
    return a->errand ? 0 : DIVVY_ENOMEM;
}

/* The errand begins again by itself when the connection breaks. */
static int carry_out(dv_look *look, void *context) {
    asking *a = context;
    int error = begin(a, look);
    while (!error && !a->done) error = dv_look_step(look);
    return error ? error : a->errand->result.error;
}

void dv_asking_drop(dv_errand *errand, const dv_look *look) {
    if (!errand || dv_client_enter(dv_look_client(look)) != 0) return;
    dv_errand_drop(errand);
    dv_client_unlock(dv_look_client(look));
}

static bool has_member(const dv_plan *plan, const char *name) {
    bool found = false;
    for (size_t n = 0; !found && n < plan->member_count; n++)
        found = strcmp(dv_whom_identifier(&plan->members[n]), name) == 0;
    return found;
}

/* Returns a hint where there is no item of that name: what it is instead, or which item is near. */
static const char *hint(const dv_errand *e, dv_nearest *nearest) {
    const dv_plan *plan = e->memory.plan;
    const char *name = e->ask.name;
    bool of_item = e->rule->of_wishes && e->ask.kind != DV_ASK_OPTION && e->result.error == DIVVY_ENOENT;
    if (!of_item || !plan || !*name || dv_pool_item(plan, name) != SIZE_MAX) return "";
    if (name[strlen(name) - 1] == '*') return "; only divvy need takes a prefix and *: name the items one by one";
    if (has_member(plan, name)) return "; that is a member: the item comes first, then the member";
    *nearest = dv_nearest_to(name, strlen(name));
    for (size_t i = 0; i < plan->set->count; i++) dv_nearest_try(nearest, plan->set->names[i]);
    return dv_nearest_question(nearest, "");
}

static int tell_failure(const asking *a, const dv_look *look, const dv_look_options *options, int error) {
    const dv_errand_result *r = a->errand ? &a->errand->result : NULL;
    if (r && *r->text) dv_command_say("%s%s", r->text, hint(a->errand, &(dv_nearest){0}));
    else if (r && error == DIVVY_ETIMEDOUT && *r->waits_for)
        dv_command_say("%s, after %" PRId64 " ms", r->waits_for, options->timeout_ms);
    else return dv_look_failed(look, error);
    return DV_EXIT_FAILED;
}

int dv_asking_run(dv_errand **out, dv_look *look, const dv_look_options *options, const char *path, const dv_ask *ask) {
    asking a = {.path = path, .root = dv_look_path(look, path), .ask = ask};
    int error = a.root ? dv_look_at(look, carry_out, &a) : DIVVY_ENOMEM;
    int code = error ? tell_failure(&a, look, options, error) : 0;
    free(a.root);
    *out = error ? NULL : a.errand;
    if (error) dv_asking_drop(a.errand, look);
    return code;
}
