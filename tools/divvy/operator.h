/* The operator's commands, drain among them: what they share. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_OPERATOR_H
#define DV_OPERATOR_H

#include "asking.h"
#include "operator_rounds.h"

enum { DV_OPERATOR_BY_BYTES = 129, DV_OPERATOR_BETWEEN_LOOKS_MS = 300 };

typedef struct {
    dv_look_options look;
    const char *path, *reason;
    int undo, wait, json, dry_run;
    int64_t wait_timeout_ms; /* 0: none */
    int64_t weight;          /* of divvy drain; below 0: not given */
} dv_operator_options;

#define DV_OPERATOR_DEFAULTS \
    { .look = {.timeout_ms = DV_LOOK_TIMEOUT_MS}, .weight = -1 }

/* Lines of their tables of options: the first, and the last but for the look's. `what` is what --wait waits for. */
#define DV_OPERATOR_OPTION_PATH                                                                                    \
    {                                                                                                              \
        .name = "path", .argument = "PATH", .kind = DV_OPTION_TEXT, .offset = offsetof(dv_operator_options, path), \
        .help = "the pool, an absolute znode path such as /work_queues; required"                                  \
    }
#define DV_OPERATOR_OPTION_UNDO(text) \
    { .name = "undo", .kind = DV_OPTION_FLAG, .offset = offsetof(dv_operator_options, undo), .help = text }
#define DV_OPERATOR_OPTIONS(what)                                                                          \
    {.name = "wait", .kind = DV_OPTION_FLAG, .offset = offsetof(dv_operator_options, wait), .help = what}, \
        {.name = "wait-timeout",                                                                           \
         .argument = "DURATION",                                                                           \
         .kind = DV_OPTION_DURATION,                                                                       \
         .offset = offsetof(dv_operator_options, wait_timeout_ms),                                         \
         .help = "how long to wait at most (implies --wait)",                                              \
         .min_ms = 1,                                                                                      \
         .max_ms = INT64_C(365) * 24 * 3600 * 1000},                                                       \
        {.name = "dry-run",                                                                                \
         .kind = DV_OPTION_FLAG,                                                                           \
         .offset = offsetof(dv_operator_options, dry_run),                                                 \
         .help = "write nothing, and print which items would move"},                                       \
        {.name = "reason",                                                                                 \
         .argument = "TEXT",                                                                               \
         .kind = DV_OPTION_TEXT,                                                                           \
         .offset = offsetof(dv_operator_options, reason),                                                  \
         .help = "why, for those who look: at most 512 bytes"},                                            \
        {.name = "json",                                                                                   \
         .kind = DV_OPTION_FLAG,                                                                           \
         .offset = offsetof(dv_operator_options, json),                                                    \
         .help = "print one JSON object on one line"},                                                     \
        DV_LOOK_OPTIONS(dv_operator_options, look), DV_SESSION_OPTION_ACL(dv_operator_options, look)

/* ---- operator_options.c ---- */

/* Parses; *rest is the index of the words that are no options. Checks all that the commands have in common. Returns
 * as dv_options_parse(). */
int dv_operator_parse(const char *command, const dv_option *table, dv_operator_options *options, int argc, char **argv,
                      int *rest);
/* Fills in who asks, when, why, and whether it is a dry run. `by` lives as long as the ask. */
void dv_operator_sign(dv_ask *ask, const dv_operator_options *options, char by[DV_OPERATOR_BY_BYTES]);

/* ---- operator_print.c ---- */

/* Returns what was done, and what it comes to, as a line or as JSON; with a dry run the moves besides. malloc'ed; NULL
 * when an allocation failed. */
char *dv_operator_text(const char *command, const dv_errand *errand, const dv_outcome *outcome,
                       const dv_operator_options *options);
/* Tells on stderr what the operator may not have meant. */
void dv_operator_warn(const dv_errand *errand, const dv_outcome *outcome);

#endif
