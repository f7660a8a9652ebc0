/* divvy drain: gives a member another weight in its pool's plan. SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <divvy/divvy.h>

#include "client/client.h"
#include "command.h"
#include "drain.h"
#include "log.h"
#include "text.h"
#include "znode/path.h"

static const char command[] = "drain";

static const dv_option table[] = {
    {.name = "path",
     .argument = "PATH",
     .kind = DV_OPTION_TEXT,
     .offset = offsetof(dv_drain_options, path),
     .help = "the pool, an absolute znode path such as /work_queues; required"},
    {.name = "undo",
     .kind = DV_OPTION_FLAG,
     .offset = offsetof(dv_drain_options, undo),
     .help = "give the member the weight that it was started with, and so its items"},
    {.name = "weight",
     .argument = "N",
     .kind = DV_OPTION_NUMBER,
     .offset = offsetof(dv_drain_options, weight),
     .help = "set the weight to N instead of 0; a member weighs 1000 by default",
     .min = 0,
     .max = UINT32_MAX},
    {.name = "wait",
     .kind = DV_OPTION_FLAG,
     .offset = offsetof(dv_drain_options, wait),
     .help = "return only when other members hold all its items"},
    {.name = "wait-timeout",
     .argument = "DURATION",
     .kind = DV_OPTION_DURATION,
     .offset = offsetof(dv_drain_options, wait_timeout_ms),
     .help = "how long to wait at most (implies --wait)",
     .min_ms = 1,
     .max_ms = INT64_C(365) * 24 * 3600 * 1000},
    DV_LOOK_OPTIONS(dv_drain_options, look),
    DV_SESSION_OPTION_ACL(dv_drain_options, look),
    {.name = NULL},
};

static void print_help(void) {
    printf("usage: divvy drain --path PATH [OPTION ...] MEMBER\n"
           "\n"
           "Takes all items from the member with the identifier MEMBER, and gives it none until\n"
           "--undo: its weight in the pool's plan becomes 0. Its items move as at any other change,\n"
           "in rounds if the plan limits moves. All members follow the plan by themselves. MEMBER\n"
           "keeps running, with nothing to do. A static member stays drained when it restarts; any\n"
           "other member is drained until it ends. The pool must follow a plan: none of its members\n"
           "uses kazoo or a release of divvy without plans.\n"
           "\n");
    dv_options_print(table);
    printf("\n"
           "A DURATION is 300ms, 4s, 1.5m or 1h; a bare number is seconds.\n"
           "\n"
           "Exit codes: 0 the plan has the new weight, and with --wait other members hold the items;\n"
           "1 divvy failed, and standard error says why: no member or several have that identifier,\n"
           "the pool follows no plan, divvy may not write it, no other member can take the items;\n"
           "2 wrong usage; 3 no server answered within --timeout; 4 --wait-timeout has passed.\n");
}

/* ---- options ---- */

static const char *missing(const dv_drain_options *o) {
    if (!o->path) return "--path is missing; it names the pool, such as /work_queues";
    if (*o->path != '/') return "--path must begin with a slash, such as /work_queues";
    if (!o->member) return "the member is missing; give its identifier";
    if (!*o->member) return "the member's identifier is empty";
    if (o->undo && o->weight >= 0) return "give --undo or --weight, not both";
    if (o->wait && (o->undo || o->weight > 0)) return "--wait is for a drain: give neither --undo nor a --weight";
    if ((o->look.acl == DIVVY_ACL_CREATOR || o->look.acl == DIVVY_ACL_READABLE) && !o->look.auth_file &&
        !dv_tls_options_given(&o->look.tls))
        return "--acl creator and readable need credentials; give --auth-file, or use TLS or SASL";
    return NULL;
}

static int parse(dv_drain_options *o, int argc, char **argv) {
    int rest = argc;
    const char *reason = NULL;
    int outcome = dv_options_parse_among(command, table, o, argc, argv, &rest);
    if (outcome != DV_OPTIONS_PARSED) return outcome;
    o->member = rest < argc ? argv[rest] : NULL;
    o->wait = o->wait || o->wait_timeout_ms > 0;
    const char *wrong = missing(o);
    if (wrong) dv_command_misused(command, "%s", wrong);
    else if (rest + 1 < argc) dv_command_misused(command, "\"%.100s\" is one member too many", argv[rest + 1]);
    else if (dv_path_check(o->path, &reason) != 0)
        dv_command_misused(command, "--path: the path \"%.100s\" %s", o->path, reason);
    if (wrong || rest + 1 < argc || reason || dv_look_options_finish(&o->look, command) != 0) return DV_OPTIONS_WRONG;
    return DV_OPTIONS_PARSED;
}

/* ---- doing it ---- */

static int prepare(dv_drain *d) {
    d->root = dv_look_path(d->look, d->options->path);
    d->party_path = d->root ? dv_path_join(d->root, "party") : NULL;
    d->locks = d->root ? dv_path_join(d->root, "locks") : NULL;
    int error = dv_pool_plan_init(&d->plan, d->look, d->options->path);
    if (!error && d->party_path && d->locks) return 0;
    dv_command_say("out of memory");
    return DV_EXIT_FAILED;
}

static int print_result(const dv_drain *d) {
    const dv_plan *plan = d->plan.memory.plan;
    const dv_plan_member *m = dv_drain_member(d);
    char *name = dv_text_readable(d->options->member);
    if (m && name && m->weight == d->weight_before)
        printf("%s: weight %" PRIu32 " already; %zu items by plan %" PRIu64 "\n", name, m->weight, dv_drain_load(d),
               plan->header.generation);
    else if (m && name)
        printf("%s: weight %" PRIu32 " (before: %" PRIu32 "); %zu items by plan %" PRIu64 " (before: %zu)\n", name,
               m->weight, d->weight_before, dv_drain_load(d), plan->header.generation, d->items_before);
    free(name);
    return dv_command_printed();
}

static int weigh(dv_drain *d) {
    int error = dv_look_at(d->look, dv_drain_write, d);
    if (d->code) return d->code;
    if (error == DIVVY_ETIMEDOUT && *d->waits_for) {
        dv_command_say("%s, after %" PRId64 " ms", d->waits_for, d->options->look.timeout_ms);
        return DV_EXIT_FAILED;
    }
    return error ? dv_look_failed(d->look, error) : print_result(d);
}

static void free_drain(dv_drain *d) {
    dv_pool_plan_free(&d->plan);
    dv_drain_free_names(d->nodes, d->node_count);
    dv_drain_free_names(d->items, d->item_count);
    free(d->key);
    free(d->root);
    free(d->party_path);
    free(d->locks);
}

static int run_drain(const dv_drain_options *o) {
    dv_drain d = {.options = o};
    int code = dv_look_open(&d.look, &o->look, command, -1);
    if (code == 0) code = prepare(&d);
    if (code == 0) code = weigh(&d);
    if (code == 0 && o->wait) code = dv_drain_wait(&d);
    dv_look_close(d.look);
    dv_roster_free(d.members);
    free_drain(&d);
    return code;
}

static int run(int argc, char **argv) {
    dv_drain_options o = {.look = {.timeout_ms = DV_LOOK_TIMEOUT_MS}, .weight = -1};
    int code = DV_EXIT_USAGE;
    int outcome = parse(&o, argc, argv);
    if (outcome == DV_OPTIONS_HELP) {
        print_help();
        code = dv_command_printed();
    } else if (outcome == DV_OPTIONS_PARSED) {
        dv_log_field("pool", o.path);
        code = run_drain(&o);
    }
    dv_look_options_free(&o.look);
    return code;
}

const dv_command dv_drain_command = {
    .name = command,
    .summary = "take all items from a member of a pool, or give it some again",
    .run = run,
    .print_help = print_help,
};
