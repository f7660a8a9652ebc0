/* The display of locks and semaphores. SPDX-License-Identifier: Apache-2.0 */
#include "locks_print.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "table.h"
#include "table_json.h"
#include "text.h"

static const dv_column list_columns[] = {
    {"NAME", false, false}, {"KIND", false, false},   {"LIMIT", true, false},
    {"HELD", true, false},  {"WAITING", true, false},
};

static const dv_column lock_columns[] = {
    {"", false, false},     {"IDENTIFIER", false, false}, {"KIND", false, false},
    {"TOKEN", true, false}, {"AGE", true, true},
};

static const dv_column semaphore_columns[] = {
    {"", false, false},     {"IDENTIFIER", false, false}, {"SLOTS", false, false}, {"COUNT", true, false},
    {"HOST", false, false}, {"PID", true, false},         {"TOKEN", true, false},  {"AGE", true, true},
};

enum { LIST_COLUMNS = 5, LOCK_COLUMNS = 5, SEMAPHORE_COLUMNS = 8 };

/* "0-2,9"; what does not fit is left out. */
static void print_slots(const dv_slots *slots, char *out, size_t out_bytes) {
    size_t used = 0;
    *out = '\0';
    for (size_t i = 0; slots->count && i < slots->run_count && used < out_bytes; i++) {
        const dv_slot_run *run = &slots->runs[i];
        int bytes = snprintf(out + used, out_bytes - used, "%s%u", i ? "," : "", run->first);
        if (bytes > 0) used += (size_t)bytes;
        if (run->count < 2 || used >= out_bytes) continue;
        bytes = snprintf(out + used, out_bytes - used, "-%u", run->first + run->count - 1);
        if (bytes > 0) used += (size_t)bytes;
    }
}

/* ---- for people ---- */

static int add_entry(dv_table *table, const dv_lock_entry *e) {
    char limit[32] = "", held[32], waiting[32];
    if (e->is_semaphore && e->limit_state == DV_LIMIT_SET) snprintf(limit, sizeof limit, "%u", e->limit);
    snprintf(held, sizeof held, "%" PRIu64, e->held);
    snprintf(waiting, sizeof waiting, "%zu", e->waiting);
    const char *cells[LIST_COLUMNS] = {e->name, e->is_semaphore ? "semaphore" : "lock", limit, held, waiting};
    char *key = NULL;
    if (asprintf(&key, "%d/%s", e->is_semaphore, e->node) < 0) return -1;
    int error = dv_table_add(table, key, cells);
    free(key);
    return error;
}

static int add_place(dv_table *table, const dv_locks *locks, const dv_lock_entry *e, const dv_place *p) {
    char slots[DV_SLOT_TAGS_BYTES], count[32], pid[32] = "", token[32], age[DV_AGE_BYTES];
    print_slots(&p->slots, slots, sizeof slots);
    snprintf(count, sizeof count, "%u", p->understood ? p->record.count : 1);
    if (p->understood && p->record.pid) snprintf(pid, sizeof pid, "%" PRId64, p->record.pid);
    snprintf(token, sizeof token, "%" PRId64, p->token);
    dv_age_text(locks->read_at_ms - p->made_ms, age);
    const char *state = p->holds ? "holds" : "waits";
    const char *who = p->understood ? p->record.identifier : "(unreadable)";
    const char *host = p->understood ? p->record.host : "";
    if (e->is_semaphore)
        return dv_table_add(table, p->node,
                            (const char *const[SEMAPHORE_COLUMNS]){state, who, slots, count, host, pid, token, age});
    const char *kind = p->shared ? "shared" : "exclusive";
    return dv_table_add(table, p->node, (const char *const[LOCK_COLUMNS]){state, who, kind, token, age});
}

static void print_summary(const dv_locks *locks, const dv_lock_entry *e, FILE *to) {
    char *name = dv_text_readable(e->name);
    fprintf(to, "%s %s: ", e->is_semaphore ? "semaphore" : "lock", name ? name : "?");
    free(name);
    if (e->is_semaphore && e->limit_state == DV_LIMIT_SET)
        fprintf(to, "%" PRIu64 " of %u slots held", e->held, e->limit);
    else if (e->is_semaphore)
        fprintf(to, "%" PRIu64 " slots held, %s", e->held,
                e->limit_state == DV_LIMIT_BAD ? "its limit is no number" : "no limit yet");
    else if (e->held) fprintf(to, "held by %" PRIu64, e->held);
    else fputs("free", to);
    fprintf(to, ", %zu waiting\n", e->waiting);
    (void)locks;
}

/* A node without a session: some tool has put it there, as from a backup. */
static void print_persistent(const dv_locks *locks, const dv_lock_entry *e, const dv_place *p, FILE *to) {
    char *path = NULL;
    if (p->session != 0) return;
    int bytes = asprintf(&path, "%s/%s/%s%s/%s", locks->root, e->is_semaphore ? "semaphores" : "locks", e->node,
                         e->is_semaphore ? "-__lock__" : "", p->node);
    char *readable = bytes < 0 ? NULL : dv_text_readable(path);
    fprintf(to, "persistent, goes only when somebody deletes it: %s\n", readable ? readable : "?");
    free(readable);
    if (bytes >= 0) free(path);
}

static int print_entry(const dv_locks *locks, const dv_lock_entry *e, FILE *to) {
    dv_table *table =
        e->is_semaphore ? dv_table_new(semaphore_columns, SEMAPHORE_COLUMNS) : dv_table_new(lock_columns, LOCK_COLUMNS);
    int error = table ? 0 : -1;
    for (size_t i = 0; !error && i < e->place_count; i++) error = add_place(table, locks, e, &e->places[i]);
    if (!error) {
        print_summary(locks, e, to);
        dv_table_print(table, false, to);
        for (size_t i = 0; i < e->place_count; i++) print_persistent(locks, e, &e->places[i], to);
    }
    dv_table_free(table);
    return error;
}

static int print_named(const dv_locks *locks, FILE *to) {
    int error = 0;
    bool some = false;
    for (size_t i = 0; !error && i < locks->entry_count; i++) {
        if (!locks->entries[i].there) continue;
        if (some) fputs("\n", to);
        some = true;
        error = print_entry(locks, &locks->entries[i], to);
    }
    return error;
}

static int print_list(const dv_locks *locks, FILE *to) {
    dv_table *table = dv_table_new(list_columns, LIST_COLUMNS);
    int error = table ? 0 : -1;
    for (size_t i = 0; !error && i < locks->entry_count; i++) error = add_entry(table, &locks->entries[i]);
    char *root = dv_text_readable(locks->root);
    if (!error && locks->entry_count) dv_table_print(table, false, to);
    else if (!error) fprintf(to, "there are no locks and no semaphores below %s\n", root ? root : "?");
    free(root);
    dv_table_free(table);
    return error;
}

char *dv_locks_print(const dv_locks *locks) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *to = open_memstream(&text, &bytes);
    if (!to) return NULL;
    int error = locks->name ? print_named(locks, to) : print_list(locks, to);
    if (ferror(to)) error = -1;
    if (fclose(to) == 0 && !error) return text;
    free(text);
    return NULL;
}

/* ---- JSON ---- */

static bool put_slots(cJSON *json, const dv_slots *slots) {
    cJSON *array = cJSON_AddArrayToObject(json, "slots");
    bool good = array;
    for (size_t i = 0; good && slots->count && i < slots->run_count; i++) {
        cJSON *run = dv_json_add_object(array);
        good = run && dv_json_number(run, "first", slots->runs[i].first) &&
               dv_json_number(run, "count", slots->runs[i].count);
    }
    return good;
}

static bool put_place(cJSON *json, const dv_locks *locks, const dv_lock_entry *e, const dv_place *p) {
    bool good = json && dv_json_text_or_null(json, "identifier", p->understood ? p->record.identifier : NULL);
    if (good && e->is_semaphore) {
        good = dv_json_text_or_null(json, "host", p->understood ? p->record.host : NULL) &&
               dv_json_number_or_null(json, "pid", p->understood ? p->record.pid : 0) &&
               dv_json_text_or_null(json, "since", p->understood ? p->record.time : NULL) &&
               dv_json_number(json, "count", p->understood ? p->record.count : 1) &&
               (p->in_queue || put_slots(json, &p->slots));
    } else if (good) {
        good = dv_json_text(json, "kind", p->shared ? "shared" : "exclusive");
    }
    return good && dv_json_session(json, p->session) && dv_json_token(json, p->token) &&
           dv_json_age(json, locks->read_at_ms - p->made_ms);
}

static bool put_places(cJSON *json, const char *key, const dv_locks *locks, const dv_lock_entry *e, bool holders) {
    cJSON *array = cJSON_AddArrayToObject(json, key);
    bool good = array;
    for (size_t i = 0; good && i < e->place_count; i++)
        good = e->places[i].holds != holders || put_place(dv_json_add_object(array), locks, e, &e->places[i]);
    return good;
}

/* The numbers that both lists and pages have. */
static bool put_numbers(cJSON *json, const dv_lock_entry *e) {
    bool limited = e->limit_state == DV_LIMIT_SET;
    return (!e->is_semaphore || dv_json_number_or_null(json, "limit", limited ? e->limit : 0)) &&
           dv_json_number(json, "held", (int64_t)e->held) && dv_json_number(json, "waiting", (int64_t)e->waiting);
}

static bool put_named(cJSON *json, const dv_locks *locks) {
    bool good = dv_json_text(json, "name", locks->name);
    for (size_t i = 0; good && i < locks->entry_count; i++) {
        const dv_lock_entry *e = &locks->entries[i];
        const char *key = e->is_semaphore ? "semaphore" : "lock";
        cJSON *entry = e->there ? cJSON_AddObjectToObject(json, key) : NULL;
        if (e->there)
            good = entry && put_numbers(entry, e) && put_places(entry, "holders", locks, e, true) &&
                   put_places(entry, "queue", locks, e, false);
        else good = cJSON_AddNullToObject(json, key);
    }
    return good;
}

static bool put_list(cJSON *json, const dv_locks *locks, const char *key, bool semaphores) {
    cJSON *array = cJSON_AddArrayToObject(json, key);
    bool good = array;
    for (size_t i = 0; good && i < locks->entry_count; i++) {
        const dv_lock_entry *e = &locks->entries[i];
        if (e->is_semaphore != semaphores) continue;
        cJSON *entry = dv_json_add_object(array);
        good = entry && dv_json_text(entry, "name", e->name) && put_numbers(entry, e);
    }
    return good;
}

char *dv_locks_json(const dv_locks *locks) {
    cJSON *json = cJSON_CreateObject();
    bool good = json && dv_json_text(json, "root", locks->root) && dv_json_number(json, "time_ms", locks->read_at_ms);
    if (good && locks->name) good = put_named(json, locks);
    else if (good) good = put_list(json, locks, "locks", false) && put_list(json, locks, "semaphores", true);
    return dv_json_line(json, good);
}

/* ---- by a template ---- */

static const char *const lock_fields[] = {"name", "kind", "limit", "held", "waiting", NULL};
static const char *const place_fields[] = {"state", "identifier", "kind",  "host",   "pid", "since",
                                           "count", "session",    "token", "age_ms", NULL};
const dv_format_kind dv_locks_formats[] = {{"locks", lock_fields}, {NULL, NULL}};
const dv_format_kind dv_lock_formats[] = {{"places in a queue", place_fields}, {NULL, NULL}};

static bool put_lock_row(cJSON *rows, const dv_lock_entry *e) {
    cJSON *row = dv_json_add_object(rows);
    return row && dv_json_text(row, "name", e->name) &&
           dv_json_text(row, "kind", e->is_semaphore ? "semaphore" : "lock") && put_numbers(row, e);
}

static bool put_place_rows(cJSON *rows, const dv_locks *locks, const dv_lock_entry *e) {
    bool good = true;
    for (size_t i = 0; good && i < e->place_count; i++) {
        cJSON *row = dv_json_add_object(rows);
        good = put_place(row, locks, e, &e->places[i]) &&
               dv_json_text(row, "state", e->places[i].holds ? "holds" : "waits");
    }
    return good;
}

char *dv_locks_format(const dv_locks *locks, const dv_format *format) {
    cJSON *rows = cJSON_CreateArray();
    bool good = rows;
    for (size_t i = 0; good && i < locks->entry_count; i++) {
        const dv_lock_entry *e = &locks->entries[i];
        if (e->there) good = locks->name ? put_place_rows(rows, locks, e) : put_lock_row(rows, e);
    }
    char *text = good ? dv_format_print(format, rows) : NULL;
    cJSON_Delete(rows);
    return text;
}
