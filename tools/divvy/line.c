/* One line of output. SPDX-License-Identifier: Apache-2.0 */
#include "line.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "text.h"

static struct timespec wall_clock(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return now;
}

/* ---- JSON ---- */

/* Adds `node`, which is NULL when an allocation failed; then it returns false. */
static bool add(cJSON *to, const char *key, cJSON *node) {
    if (node && (key ? cJSON_AddItemToObject(to, key, node) : cJSON_AddItemToArray(to, node))) return true;
    cJSON_Delete(node);
    return false;
}

static bool add_name(cJSON *array, const char *name) {
    char *plain = dv_text_plain(name);
    bool added = plain && add(array, NULL, cJSON_CreateString(plain));
    free(plain);
    return added;
}

static bool add_names(cJSON *to, const char *key, dv_names_view view) {
    cJSON *array = cJSON_AddArrayToObject(to, key);
    bool complete = array != NULL;
    for (size_t i = 0; i < view.count && complete; i++) complete = add_name(array, view.names[i]);
    return complete;
}

static bool add_token(cJSON *tokens, const char *name, int64_t token) {
    /* A string: as a number it would lose its last digits in many a reader of JSON. */
    char digits[32];
    snprintf(digits, sizeof digits, "%" PRId64, token);
    char *plain = dv_text_plain(name);
    bool added = plain && add(tokens, plain, cJSON_CreateString(digits));
    free(plain);
    return added;
}

static bool add_owned(cJSON *to, const dv_ledger *ledger) {
    cJSON *owned = cJSON_AddArrayToObject(to, "owned");
    cJSON *tokens = cJSON_AddObjectToObject(to, "tokens");
    bool complete = owned && tokens;
    for (size_t i = 0; i < ledger->owned_count && complete; i++) {
        const dv_owned *item = &ledger->owned[i];
        complete = add_name(owned, item->name) && add_token(tokens, item->name, item->token);
    }
    return complete;
}

static bool add_text(cJSON *to, const char *key, const char *text) {
    char *plain = dv_text_plain(text);
    bool added = plain && add(to, key, cJSON_CreateString(plain));
    free(plain);
    return added;
}

static bool add_time(cJSON *to) {
    struct timespec now = wall_clock();
    int64_t time_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    return add(to, "time_ms", cJSON_CreateNumber((double)time_ms));
}

/* Adds what only members that hand over are told. Empty lists are left out. */
static bool add_handover(cJSON *to, const dv_line *line) {
    return (line->leaving.count == 0 || add_names(to, "leaving", line->leaving)) &&
           (line->staying.count == 0 || add_names(to, "staying", line->staying)) &&
           (line->prepare.count == 0 || add_names(to, "prepare", line->prepare));
}

/* Adds the end that all lines have. */
static bool add_end(cJSON *to, const dv_ledger *ledger) {
    return (!ledger->timestamps || add_time(to)) && (!ledger->member || add_text(to, "member", ledger->member));
}

static bool fill(cJSON *json, const dv_ledger *ledger, const dv_line *line) {
    return add(json, "event", cJSON_CreateString(line->event)) &&
           add(json, "state", cJSON_CreateString(divvy_partition_state_name(ledger->state))) &&
           add(json, "generation", cJSON_CreateNumber((double)ledger->generation)) &&
           add_names(json, "gained", line->gained) && add_names(json, "revoked", line->revoked) &&
           add_names(json, "lost", line->lost) && add_owned(json, ledger) && add_handover(json, line) &&
           (!line->reason || add_text(json, "reason", line->reason)) && add_end(json, ledger);
}

/* `json` with a newline; it is deleted. */
static char *print_json(cJSON *json, bool complete) {
    char *text = complete ? cJSON_PrintUnformatted(json) : NULL;
    cJSON_Delete(json);
    char *line = text ? dv_text_json_line(text) : NULL;
    cJSON_free(text);
    return line;
}

char *dv_line_json(const dv_ledger *ledger, const dv_line *line) {
    cJSON *json = cJSON_CreateObject();
    return print_json(json, json && fill(json, ledger, line));
}

static const char *const child_words[] = {
    [DV_CHILD_STARTED] = "started", [DV_CHILD_STANDBY] = "standby", [DV_CHILD_READY] = "ready",
    [DV_CHILD_BEGUN] = "begun",     [DV_CHILD_EXITED] = "exited",   [DV_CHILD_FINISHED] = "finished",
    [DV_CHILD_ENDED] = "ended",     [DV_CHILD_FAILED] = "failed"};

const char *dv_line_child_word(const dv_child_event *event) {
    return child_words[event->kind];
}

bool dv_line_child_has_status(const dv_child_event *event) {
    return event->kind == DV_CHILD_EXITED || event->kind == DV_CHILD_FINISHED || event->kind == DV_CHILD_ENDED;
}

static bool fill_child(cJSON *json, const dv_ledger *ledger, const dv_child_event *event) {
    char token[32];
    snprintf(token, sizeof token, "%" PRId64, event->token);
    return add(json, "event", cJSON_CreateString("child")) &&
           add(json, "child", cJSON_CreateString(child_words[event->kind])) && add_text(json, "item", event->item) &&
           (!event->token || add(json, "token", cJSON_CreateString(token))) &&
           (!event->pid || add(json, "pid", cJSON_CreateNumber(event->pid))) &&
           (!dv_line_child_has_status(event) || add(json, "status", cJSON_CreateNumber(event->status))) &&
           (!event->reason || add_text(json, "reason", event->reason)) &&
           (event->restart_ms < 0 || add(json, "restart_ms", cJSON_CreateNumber((double)event->restart_ms))) &&
           add_end(json, ledger);
}

char *dv_line_child_json(const dv_ledger *ledger, const dv_child_event *event) {
    cJSON *json = cJSON_CreateObject();
    return print_json(json, json && fill_child(json, ledger, event));
}

/* ---- for people ---- */

static bool print_names(FILE *to, const char *word, dv_names_view view) {
    fprintf(to, "  %s %zu", word, view.count);
    for (size_t i = 0; i < view.count; i++) {
        char *readable = dv_text_readable(view.names[i]);
        if (!readable) return false;
        fprintf(to, "%s%s", i ? ", " : ": ", readable);
        free(readable);
    }
    return true;
}

static bool print_changes(FILE *to, const dv_line *line) {
    const struct {
        const char *word;
        dv_names_view view;
    } changes[] = {{"gained", line->gained},   {"revoked", line->revoked}, {"lost", line->lost},
                   {"leaving", line->leaving}, {"staying", line->staying}, {"prepare", line->prepare}};
    bool complete = true;
    for (size_t i = 0; i < sizeof changes / sizeof *changes && complete; i++)
        complete = changes[i].view.count == 0 || print_names(to, changes[i].word, changes[i].view);
    return complete;
}

static bool print_owned(FILE *to, const dv_ledger *ledger) {
    size_t count = ledger->owned_count;
    const char **owned = (const char **)(uintptr_t)calloc(count + 1, sizeof *owned);
    for (size_t i = 0; i < count && owned; i++) owned[i] = ledger->owned[i].name;
    bool complete = owned && print_names(to, "owned", (dv_names_view){owned, count});
    free((void *)(uintptr_t)owned);
    return complete;
}

static void print_time(FILE *to) {
    struct timespec now = wall_clock();
    struct tm local;
    char text[32];
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", localtime_r(&now.tv_sec, &local));
    fprintf(to, "%s.%03ld  ", text, now.tv_nsec / 1000000);
}

/* Begins a line: the time and the member, where these are shown. Returns false when an allocation fails. */
static bool print_head(FILE *to, const dv_ledger *ledger) {
    if (ledger->timestamps) print_time(to);
    if (!ledger->member) return true;
    char *member = dv_text_readable(ledger->member);
    bool printed = member && fprintf(to, "%s  ", member) > 0;
    free(member);
    return printed;
}

/* Returns whether a member has ended in good order. Its state is kazoo's FAILURE, which people would misread. */
static bool has_finished(const dv_line *line) {
    return line->reason && strcmp(line->reason, "finished") == 0;
}

static bool print_reason(FILE *to, const dv_line *line) {
    if (!line->reason || has_finished(line)) return true;
    char *reason = dv_text_readable(line->reason);
    bool printed = reason && fprintf(to, "  (%s)", reason) > 0;
    free(reason);
    return printed;
}

char *dv_line_readable(const dv_ledger *ledger, const dv_line *line) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *to = open_memstream(&text, &bytes);
    if (!to) return NULL;
    bool complete = print_head(to, ledger);
    fprintf(to, "%-10s", has_finished(line) ? "FINISHED" : divvy_partition_state_name(ledger->state));
    complete = complete && print_changes(to, line) && print_owned(to, ledger) && print_reason(to, line);
    fprintf(to, "\n");
    complete = !ferror(to) && complete;
    if (fclose(to) != 0 || !complete) {
        free(text);
        return NULL;
    }
    return text;
}

char *dv_line_child_readable(const dv_ledger *ledger, const dv_child_event *event) {
    char *text = NULL, *item = dv_text_readable(event->item);
    size_t bytes = 0;
    FILE *to = item ? open_memstream(&text, &bytes) : NULL;
    bool complete = false;
    if (to) {
        complete = print_head(to, ledger);
        fprintf(to, "%-10s  %s", child_words[event->kind], item);
        if (event->token) fprintf(to, "  token %" PRId64, event->token);
        if (event->pid) fprintf(to, "  pid %d", (int)event->pid);
        if (dv_line_child_has_status(event)) fprintf(to, "  status %d", event->status);
        if (event->restart_ms >= 0) fprintf(to, "  next start in %" PRId64 " ms", event->restart_ms);
        if (event->reason) fprintf(to, "  (%s)", event->reason);
        fprintf(to, "\n");
    }
    free(item);
    if (!to) return NULL;
    complete = complete && !ferror(to);
    if (fclose(to) == 0 && complete) return text;
    free(text);
    return NULL;
}
