/* The findings of `divvy doctor`, and how they are printed. SPDX-License-Identifier: Apache-2.0 */
#include "doctor_findings.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "table_json.h"
#include "text.h"

static const char *const levels[DV_DOCTOR_LEVELS] = {"ok", "note", "warning", "error"};

/* ---- the list ---- */

dv_finding *dv_findings_add(dv_findings *f, dv_doctor_level level, const char *check, const char *where) {
    if (f->count == f->room) {
        size_t room = f->room ? 2 * f->room : 32;
        dv_finding *grown = realloc(f->list, room * sizeof *grown);
        if (grown) {
            f->list = grown;
            f->room = room;
        }
    }
    if (f->count == f->room) f->incomplete = true;
    dv_finding *added = f->count == f->room ? &f->spare : &f->list[f->count++];
    *added = (dv_finding){.level = level, .check = check};
    snprintf(added->where, sizeof added->where, "%s", where);
    return added;
}

__attribute__((format(printf, 2, 0))) static void write_text(char *out, const char *format, va_list arguments) {
    vsnprintf(out, DV_FINDING_BYTES, format, arguments);
}

void dv_finding_what(dv_finding *finding, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    write_text(finding->what, format, arguments);
    va_end(arguments);
}

void dv_finding_why(dv_finding *finding, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    write_text(finding->why, format, arguments);
    va_end(arguments);
}

void dv_finding_todo(dv_finding *finding, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    write_text(finding->todo, format, arguments);
    va_end(arguments);
}

void dv_findings_clear(dv_findings *findings) {
    free(findings->list);
    *findings = (dv_findings){.list = NULL};
}

size_t dv_findings_of(const dv_findings *findings, dv_doctor_level level) {
    size_t count = 0;
    for (size_t i = 0; i < findings->count; i++) count += findings->list[i].level == level;
    return count;
}

/* ---- for people ---- */

static void print_line(FILE *to, const char *level, const char *check, const char *where, const char *text) {
    char *readable_where = dv_text_readable(where), *readable = dv_text_readable(text);
    fprintf(to, "%-8s %-11s %s%s%s\n", level, check, readable_where ? readable_where : "?", *where ? ": " : "",
            readable ? readable : "?");
    free(readable_where);
    free(readable);
}

static void print_finding(FILE *to, const dv_finding *finding) {
    print_line(to, levels[finding->level], finding->check, finding->where, finding->what);
    if (*finding->why) print_line(to, "", "  why", "", finding->why);
    if (*finding->todo) print_line(to, "", "  do", "", finding->todo);
}

static void print_count(FILE *to, size_t count, const char *what, const char *end) {
    fprintf(to, "%zu %s%s%s", count, what, count == 1 ? "" : "s", end);
}

char *dv_findings_page(const dv_findings *findings) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *to = findings->incomplete ? NULL : open_memstream(&text, &bytes);
    if (!to) return NULL;
    for (int level = DV_DOCTOR_LEVELS - 1; level >= 0; level--) {
        for (size_t i = 0; i < findings->count; i++) {
            if ((int)findings->list[i].level == level) print_finding(to, &findings->list[i]);
        }
    }
    print_count(to, dv_findings_of(findings, DV_DOCTOR_ERROR), "error", ", ");
    print_count(to, dv_findings_of(findings, DV_DOCTOR_WARNING), "warning", ", ");
    print_count(to, dv_findings_of(findings, DV_DOCTOR_NOTE), "note", "\n");
    bool complete = !ferror(to);
    if (fclose(to) == 0 && complete) return text;
    free(text);
    return NULL;
}

/* ---- JSON ---- */

static bool put_finding(cJSON *array, const dv_finding *finding) {
    cJSON *json = dv_json_add_object(array);
    return json && dv_json_text(json, "level", levels[finding->level]) && dv_json_text(json, "check", finding->check) &&
           dv_json_text_or_null(json, "where", finding->where) && dv_json_text(json, "what", finding->what) &&
           dv_json_text_or_null(json, "why", finding->why) && dv_json_text_or_null(json, "do", finding->todo);
}

bool dv_findings_put(cJSON *json, const dv_findings *findings) {
    bool good = !findings->incomplete &&
                dv_json_number(json, "errors", (int64_t)dv_findings_of(findings, DV_DOCTOR_ERROR)) &&
                dv_json_number(json, "warnings", (int64_t)dv_findings_of(findings, DV_DOCTOR_WARNING));
    cJSON *array = good ? cJSON_AddArrayToObject(json, "findings") : NULL;
    good = array;
    for (int level = DV_DOCTOR_LEVELS - 1; level >= 0; level--) {
        for (size_t i = 0; good && i < findings->count; i++) {
            if ((int)findings->list[i].level == level) good = put_finding(array, &findings->list[i]);
        }
    }
    return good;
}

char *dv_findings_json(const dv_findings *findings, const char *path) {
    cJSON *json = cJSON_CreateObject();
    return dv_json_line(json, json && dv_json_text_or_null(json, "path", path) && dv_findings_put(json, findings));
}
