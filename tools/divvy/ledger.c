/* The ledger of what one member owns, by the events that it was told. SPDX-License-Identifier: Apache-2.0 */
#include "ledger.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "line.h"
#include "line_log.h"

void dv_ledger_init(dv_ledger *ledger, dv_output *output) {
    *ledger = (dv_ledger){.output = output, .state = DIVVY_ALLOCATING};
}

void dv_ledger_free(dv_ledger *ledger) {
    for (size_t i = 0; i < ledger->owned_count; i++) free(ledger->owned[i].name);
    free(ledger->owned);
    *ledger = (dv_ledger){0};
}

/* ---- what is owned ---- */

static int compare_owned(const void *a, const void *b) {
    return strcmp(((const dv_owned *)a)->name, ((const dv_owned *)b)->name);
}

/* Among the first `count`, which are sorted. */
static dv_owned *find(const dv_ledger *ledger, const char *name, size_t count) {
    const dv_owned key = {.name = (char *)(uintptr_t)name};
    return count ? bsearch(&key, ledger->owned, count, sizeof key, compare_owned) : NULL;
}

const dv_owned *dv_ledger_find(const dv_ledger *ledger, const char *name) {
    return find(ledger, name, ledger->owned_count);
}

static void take_out(dv_ledger *ledger, const char *const *names, size_t count) {
    for (size_t i = 0; i < count; i++) {
        dv_owned *owned = find(ledger, names[i], ledger->owned_count);
        if (owned) owned->over = true;
    }
    size_t kept = 0;
    for (size_t i = 0; count && i < ledger->owned_count; i++) {
        if (ledger->owned[i].over) free(ledger->owned[i].name);
        else ledger->owned[kept++] = ledger->owned[i];
    }
    if (count) ledger->owned_count = kept;
}

static bool reserve(dv_ledger *ledger, size_t count) {
    if (count <= ledger->owned_room) return true;
    size_t room = count + ledger->owned_room / 2 + 16;
    dv_owned *grown = realloc(ledger->owned, room * sizeof *grown);
    if (!grown) return false;
    ledger->owned = grown;
    ledger->owned_room = room;
    return true;
}

static void put_in(dv_ledger *ledger, const char *const *names, const int64_t *tokens, size_t count) {
    if (count == 0) return;
    size_t sorted = ledger->owned_count;
    if (!reserve(ledger, sorted + count)) {
        ledger->out_of_memory = true;
        return;
    }
    for (size_t i = 0; i < count && !ledger->out_of_memory; i++) {
        dv_owned *owned = find(ledger, names[i], sorted);
        if (owned) {
            owned->token = tokens[i];
            continue;
        }
        char *name = strdup(names[i]);
        if (name) ledger->owned[ledger->owned_count++] = (dv_owned){.name = name, .token = tokens[i]};
        else ledger->out_of_memory = true;
    }
    qsort(ledger->owned, ledger->owned_count, sizeof *ledger->owned, compare_owned);
}

/* ---- lines ---- */

/* `text` is freed; NULL: it could not be made. */
static void write_out(dv_ledger *ledger, char *text) {
    if (text) dv_output_write(ledger->output, text, strlen(text));
    else ledger->out_of_memory = true;
    free(text);
}

static void print(dv_ledger *ledger, const dv_line *line) {
    if (ledger->output->ended) return;
    write_out(ledger, ledger->json     ? dv_line_json(ledger, line)
                      : ledger->fields ? dv_line_log(ledger, line)
                                       : dv_line_readable(ledger, line));
}

void dv_ledger_child(dv_ledger *ledger, const dv_child_event *event) {
    if (ledger->output->ended) return;
    write_out(ledger, ledger->json     ? dv_line_child_json(ledger, event)
                      : ledger->fields ? dv_line_child_log(event)
                                       : dv_line_child_readable(ledger, event));
}

/* Returns whether a plan is why items are lost: those were to be prepared, and are not needed after all. */
static bool is_of_plan(int reason) {
    return reason == DIVVY_REASON_MEMBERS || reason == DIVVY_REASON_JOIN || reason == DIVVY_REASON_LEAVE ||
           reason == DIVVY_REASON_LOSS || reason == DIVVY_REASON_WEIGHT || reason == DIVVY_REASON_SET ||
           reason == DIVVY_REASON_DRAIN || reason == DIVVY_REASON_OPERATOR || reason == DIVVY_REASON_LOAD;
}

/* The state to which a change of items belongs. It is told before its state is; and what is lost otherwise than by
 * our release is lost with everything else, but for an item whose node somebody has deleted. */
static divvy_partition_state state_of(const dv_ledger *ledger, const divvy_items_event *event) {
    if (event->revoked_count > 0) return DIVVY_RELEASE;
    if (event->lost_count == 0 || event->reason == DIVVY_REASON_RELEASED || event->reason == DIVVY_REASON_FOREIGN)
        return ledger->state;
    if (is_of_plan(event->reason)) return ledger->state;
    return event->reason == DIVVY_REASON_SESSION && ledger->rejoins ? DIVVY_RELEASE : DIVVY_FAILURE;
}

void dv_ledger_items(dv_ledger *ledger, const divvy_items_event *event) {
    take_out(ledger, event->lost, event->lost_count);
    put_in(ledger, event->gained, event->gained_tokens, event->gained_count);
    take_out(ledger, event->revoked, event->revoked_count);
    ledger->state = state_of(ledger, event);
    ledger->generation = event->generation;
    dv_line line = {
        .event = "items",
        .gained = {event->gained, event->gained_count},
        .revoked = {event->revoked, event->revoked_count},
        .lost = {event->lost, event->lost_count},
        .leaving = {event->leaving, event->leaving_count},
        .staying = {event->staying, event->staying_count},
        .prepare = {event->prepare, event->prepare_count},
    };
    print(ledger, &line);
}

void dv_ledger_state(dv_ledger *ledger, divvy_partition_state state, const char *reason) {
    ledger->state = state;
    dv_line line = {.event = "state", .reason = reason};
    print(ledger, &line);
}

void dv_ledger_revoke_all(dv_ledger *ledger) {
    size_t count = ledger->owned_count;
    if (count == 0) return;
    const char **revoked = (const char **)(uintptr_t)calloc(count, sizeof *revoked);
    if (!revoked) {
        ledger->out_of_memory = true;
        return;
    }
    for (size_t i = 0; i < count; i++) revoked[i] = ledger->owned[i].name;
    ledger->owned_count = 0;
    dv_line line = {.event = "items", .revoked = {revoked, count}};
    print(ledger, &line);
    ledger->owned_count = count;
    take_out(ledger, revoked, count);
    free((void *)(uintptr_t)revoked);
}
