/* What one member owns by the events it was told of. SPDX-License-Identifier: Apache-2.0 */
#include "ledger.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "line.h"

int dv_ledger_init(dv_ledger *ledger, const dv_item_list *items, dv_output *output) {
    *ledger = (dv_ledger){.items = items, .output = output, .state = DIVVY_ALLOCATING};
    ledger->owned = calloc(items->count, sizeof *ledger->owned);
    ledger->tokens = calloc(items->count, sizeof *ledger->tokens);
    return ledger->owned && ledger->tokens ? 0 : -1;
}

void dv_ledger_free(dv_ledger *ledger) {
    free(ledger->owned);
    free(ledger->tokens);
    *ledger = (dv_ledger){0};
}

static int compare_names(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static size_t find(const dv_ledger *ledger, const char *name) {
    const char **names = ledger->items->names;
    const char **found =
        (const char **)(uintptr_t)bsearch(&name, names, ledger->items->count, sizeof *names, compare_names);
    return found ? (size_t)(found - names) : ledger->items->count;
}

static void set_owned(dv_ledger *ledger, const char *const *names, size_t count, const int64_t *tokens) {
    for (size_t i = 0; i < count; i++) {
        size_t at = find(ledger, names[i]);
        if (at == ledger->items->count) continue;
        ledger->owned[at] = tokens != NULL;
        if (tokens) ledger->tokens[at] = tokens[i];
    }
}

/* `text` is freed; NULL: it could not be made. */
static void write_out(dv_ledger *ledger, char *text) {
    if (text) dv_output_write(ledger->output, text, strlen(text));
    else ledger->out_of_memory = true;
    free(text);
}

static void print(dv_ledger *ledger, const dv_line *line) {
    if (ledger->output->ended) return;
    write_out(ledger, ledger->json ? dv_line_json(ledger, line) : dv_line_readable(ledger, line));
}

void dv_ledger_child(dv_ledger *ledger, const dv_child_event *event) {
    if (ledger->output->ended) return;
    write_out(ledger, ledger->json ? dv_line_child_json(event, ledger->timestamps)
                                   : dv_line_child_readable(event, ledger->timestamps));
}

/* The state to which a change of items belongs. It is told before its state is; and what is lost otherwise than by
 * our release is lost with everything else, but for an item whose node somebody has deleted. */
static divvy_partition_state state_of(const dv_ledger *ledger, const divvy_items_event *event) {
    if (event->revoked_count > 0) return DIVVY_RELEASE;
    if (event->lost_count == 0 || event->reason == DIVVY_REASON_RELEASED || event->reason == DIVVY_REASON_FOREIGN)
        return ledger->state;
    return event->reason == DIVVY_REASON_SESSION && ledger->rejoins ? DIVVY_RELEASE : DIVVY_FAILURE;
}

void dv_ledger_items(dv_ledger *ledger, const divvy_items_event *event) {
    set_owned(ledger, event->lost, event->lost_count, NULL);
    set_owned(ledger, event->gained, event->gained_count, event->gained_tokens);
    set_owned(ledger, event->revoked, event->revoked_count, NULL);
    ledger->state = state_of(ledger, event);
    ledger->generation = event->generation;
    dv_line line = {
        .event = "items",
        .gained = {event->gained, event->gained_count},
        .revoked = {event->revoked, event->revoked_count},
        .lost = {event->lost, event->lost_count},
    };
    print(ledger, &line);
}

void dv_ledger_state(dv_ledger *ledger, divvy_partition_state state, const char *reason) {
    ledger->state = state;
    dv_line line = {.event = "state", .reason = reason};
    print(ledger, &line);
}

void dv_ledger_revoke_all(dv_ledger *ledger) {
    const char **revoked = (const char **)(uintptr_t)calloc(ledger->items->count, sizeof *revoked);
    size_t count = 0;
    for (size_t i = 0; i < ledger->items->count; i++) {
        if (!ledger->owned[i]) continue;
        ledger->owned[i] = 0;
        if (revoked) revoked[count++] = ledger->items->names[i];
    }
    if (!revoked) ledger->out_of_memory = true;
    dv_line line = {.event = "items", .revoked = {revoked, count}};
    if (count > 0) print(ledger, &line);
    free((void *)(uintptr_t)revoked);
}
