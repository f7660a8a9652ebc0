/* A member's items, as lines of the log. SPDX-License-Identifier: Apache-2.0 */
#include "line_log.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"

static void put_number(FILE *to, const char *key, int64_t number) {
    fprintf(to, " %s=%" PRId64, key, number);
}

static char *close_lines(FILE *to, char **text) {
    bool complete = to && !ferror(to);
    if (to && fclose(to) != 0) complete = false;
    if (complete) return *text;
    free(*text);
    return NULL;
}

/* ---- what is owned ---- */

static void put_items(FILE *to, const dv_ledger *ledger, const char *event, dv_names_view view, bool with_tokens) {
    for (size_t i = 0; i < view.count && dv_log_takes(DIVVY_LOG_INFO); i++) {
        const dv_owned *owned = with_tokens ? dv_ledger_find(ledger, view.names[i]) : NULL;
        dv_log_begin(to, DIVVY_LOG_INFO);
        dv_log_put(to, "event", event);
        dv_log_put(to, "item", view.names[i]);
        if (owned) put_number(to, "token", owned->token);
        put_number(to, "generation", (int64_t)ledger->generation);
        fputc('\n', to);
    }
}

static void put_state(FILE *to, const dv_ledger *ledger, const dv_line *line) {
    int level = line->reason && strcmp(line->reason, DV_LEDGER_FINISHED) != 0 ? DIVVY_LOG_ERROR : DIVVY_LOG_INFO;
    if (!dv_log_takes(level)) return;
    dv_log_begin(to, level);
    dv_log_put(to, "event", line->event);
    dv_log_put(to, "state", divvy_partition_state_name(ledger->state));
    put_number(to, "owned", (int64_t)ledger->owned_count);
    put_number(to, "generation", (int64_t)ledger->generation);
    if (line->reason) dv_log_put(to, "reason", line->reason);
    fputc('\n', to);
}

char *dv_line_log(const dv_ledger *ledger, const dv_line *line) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *to = open_memstream(&text, &bytes);
    if (!to) return NULL;
    if (strcmp(line->event, "state") == 0) put_state(to, ledger, line);
    put_items(to, ledger, "lost", line->lost, false);
    put_items(to, ledger, "gained", line->gained, true);
    put_items(to, ledger, "revoked", line->revoked, false);
    put_items(to, ledger, "leaving", line->leaving, false);
    put_items(to, ledger, "staying", line->staying, false);
    put_items(to, ledger, "prepare", line->prepare, false);
    return close_lines(to, &text);
}

/* ---- commands ---- */

/* A command that ended by itself with a failure, or could not be started, is worth a look. */
static int level_of(const dv_child_event *event) {
    bool failed = event->kind == DV_CHILD_FAILED || (event->kind == DV_CHILD_EXITED && event->status != 0);
    return failed ? DIVVY_LOG_WARN : DIVVY_LOG_INFO;
}

char *dv_line_child_log(const dv_child_event *event) {
    char *text = NULL;
    size_t bytes = 0;
    int level = level_of(event);
    FILE *to = open_memstream(&text, &bytes);
    if (!to) return NULL;
    if (dv_log_takes(level)) {
        dv_log_begin(to, level);
        dv_log_put(to, "event", dv_line_child_word(event));
        dv_log_put(to, "item", event->item);
        if (event->token) put_number(to, "token", event->token);
        if (event->pid) put_number(to, "pid", event->pid);
        if (dv_line_child_has_status(event)) put_number(to, "status", event->status);
        if (event->restart_ms >= 0) put_number(to, "restart_ms", event->restart_ms);
        if (event->reason) dv_log_put(to, "reason", event->reason);
        fputc('\n', to);
    }
    return close_lines(to, &text);
}
