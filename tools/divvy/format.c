/* A template of --format. SPDX-License-Identifier: Apache-2.0 */
#include "format.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "nearest.h"
#include "text.h"

typedef struct {
    char *text; /* as it is printed, or the name of a field */
    bool is_field;
} piece;

struct dv_format {
    const dv_format_kind *kind;
    piece *pieces;
    size_t count;
    bool ends_line;
};

void dv_format_free(dv_format *format) {
    if (!format) return;
    for (size_t i = 0; i < format->count; i++) free(format->pieces[i].text);
    free(format->pieces);
    free(format);
}

const dv_format_kind *dv_format_kind_of(const dv_format *format) {
    return format->kind;
}

/* ---- parsing ---- */

static bool add_piece(dv_format *format, const char *text, size_t bytes, bool is_field) {
    piece *grown = realloc(format->pieces, (format->count + 1) * sizeof *grown);
    if (!grown) return false;
    format->pieces = grown;
    grown[format->count] = (piece){strndup(text, bytes), is_field};
    if (!grown[format->count].text) return false;
    format->count++;
    format->ends_line = !is_field && bytes > 0 && text[bytes - 1] == '\n';
    return true;
}

/* Reads one character that is not a field's into *out. Returns how many bytes of the template it took; 0: it is wrong.
 */
static size_t read_character(const char *text, char *out) {
    static const char letters[] = "tn\\", meant[] = "\t\n\\";
    const char *letter = *text == '\\' && text[1] ? strchr(letters, text[1]) : NULL;
    bool doubled = (*text == '{' || *text == '}') && text[1] == *text;
    *out = letter ? meant[letter - letters] : *text;
    if (letter || doubled) return 2;
    return *text == '\\' || *text == '{' || *text == '}' ? 0 : 1;
}

/* Adds what stands before the next field, and moves *text there. Returns 0, or the exit code when it was told what is
 * wrong. */
static int take_text(dv_format *format, const char *command, const char **text) {
    const char *at = *text;
    char *plain = malloc(strlen(at) + 1);
    size_t bytes = 0, taken = 1;
    bool complete = plain;
    while (complete && *at && !(*at == '{' && at[1] != '{') && taken) {
        taken = read_character(at, &plain[bytes]);
        bytes += taken > 0;
        at += taken;
    }
    if (complete && taken && bytes) complete = add_piece(format, plain, bytes, false);
    free(plain);
    *text = at;
    if (!complete) return dv_command_out_of_memory();
    if (taken) return 0;
    return dv_command_misused(command,
                              "--format: \"%.20s\" is neither a field, as {owner}, nor \\t, \\n, \\\\, {{ or }}", at);
}

/* Likewise with a field, whose brace *text begins with. */
static int take_field(dv_format *format, const char *command, const char **text) {
    const char *name = *text + 1;
    size_t bytes = strcspn(name, "{}");
    if (name[bytes] != '}' || bytes == 0)
        return dv_command_misused(command, "--format: \"%.20s\" is no field; write it as {owner}, and a brace as {{",
                                  *text);
    *text = name + bytes + 1;
    return add_piece(format, name, bytes, true) ? 0 : dv_command_out_of_memory();
}

/* ---- fields ---- */

static bool has_field(const dv_format_kind *kind, const char *name) {
    for (size_t i = 0; kind->fields[i]; i++) {
        size_t bytes = strlen(kind->fields[i]);
        bool open = kind->fields[i][bytes - 1] == '.';
        if (open ? strncmp(name, kind->fields[i], bytes) == 0 && name[bytes] : strcmp(name, kind->fields[i]) == 0)
            return true;
    }
    return false;
}

/* Returns the first field that the kind does not have, or NULL. */
static const char *missing_in(const dv_format *format, const dv_format_kind *kind) {
    for (size_t i = 0; i < format->count; i++) {
        const piece *p = &format->pieces[i];
        if (p->is_field && !has_field(kind, p->text)) return p->text;
    }
    return NULL;
}

static int complain_of_unknown(const char *command, const char *name, const dv_format_kind *kinds) {
    char known[512] = "";
    dv_nearest nearest = dv_nearest_to(name, strlen(name));
    for (const dv_format_kind *kind = kinds; kind->rows; kind++) {
        for (size_t i = 0; kind->fields[i]; i++) {
            size_t used = strlen(known);
            dv_nearest_try(&nearest, kind->fields[i]);
            snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "", kind->fields[i]);
        }
    }
    return dv_command_misused(command, "--format: there is no field {%.60s}, there are: %s%s", name, known,
                              dv_nearest_question(&nearest, ""));
}

/* Returns the first field that no kind has, or NULL. */
static const char *unknown_field(const dv_format *format, const dv_format_kind *kinds) {
    for (size_t i = 0; i < format->count; i++) {
        const piece *p = &format->pieces[i];
        const dv_format_kind *kind = kinds;
        while (p->is_field && kind->rows && !has_field(kind, p->text)) kind++;
        if (p->is_field && !kind->rows) return p->text;
    }
    return NULL;
}

/* Returns 0, or the exit code when it was told that no kind has all fields. */
static int choose_kind(dv_format *format, const char *command, const dv_format_kind *kinds) {
    const char *unknown = unknown_field(format, kinds);
    for (const dv_format_kind *kind = kinds; !unknown && kind->rows && !format->kind; kind++)
        if (!missing_in(format, kind)) format->kind = kind;
    if (unknown) return complain_of_unknown(command, unknown, kinds);
    if (format->kind) return 0;
    return dv_command_misused(command, "--format: {%.60s} is no field of %s, and others are of them only",
                              missing_in(format, kinds), kinds->rows);
}

/* Returns 0, or the exit code when it was told what is wrong with `text`. */
static int parse(dv_format *format, const char *command, const char *text, const dv_format_kind *kinds) {
    int code = 0;
    while (code == 0 && *text) {
        bool field = *text == '{' && text[1] != '{';
        code = field ? take_field(format, command, &text) : take_text(format, command, &text);
    }
    return code ? code : choose_kind(format, command, kinds);
}

int dv_format_parse(dv_format **out, const char *command, const char *text, bool json, const dv_format_kind *kinds) {
    *out = NULL;
    if (!text) return 0;
    if (json) return dv_command_misused(command, "give --json or --format, not both");
    dv_format *format = calloc(1, sizeof *format);
    int code = format ? parse(format, command, text, kinds) : dv_command_out_of_memory();
    if (code == 0) *out = format;
    else dv_format_free(format);
    return code;
}

/* ---- printing ---- */

/* Returns the value of {plan.owner}: that of the key "owner" in the object "plan". */
static const cJSON *find_value(const cJSON *row, const char *name) {
    const char *dot = strchr(name, '.');
    if (!dot) return cJSON_GetObjectItemCaseSensitive(row, name);
    char *outer = strndup(name, (size_t)(dot - name));
    const cJSON *object = outer ? cJSON_GetObjectItemCaseSensitive(row, outer) : NULL;
    free(outer);
    return cJSON_IsObject(object) ? find_value(object, dot + 1) : NULL;
}

static bool put_text(FILE *to, const char *text) {
    char *readable = dv_text_readable(text);
    if (!readable) return false;
    fputs(*readable ? readable : "-", to);
    free(readable);
    return true;
}

static bool put_number(FILE *to, double number) {
    bool whole = number == floor(number) && fabs(number) < 9e15;
    fprintf(to, whole ? "%.0f" : "%.15g", number);
    return true;
}

/* Prints a value that has parts, as JSON. */
static bool put_parts(FILE *to, const cJSON *value) {
    char *text = cJSON_PrintUnformatted(value);
    bool put = text && put_text(to, text);
    cJSON_free(text);
    return put;
}

static bool put_value(FILE *to, const cJSON *value) {
    if (!value || cJSON_IsNull(value)) return put_text(to, "");
    if (cJSON_IsString(value)) return put_text(to, value->valuestring);
    if (cJSON_IsNumber(value)) return put_number(to, value->valuedouble);
    if (cJSON_IsBool(value)) return put_text(to, cJSON_IsTrue(value) ? "true" : "false");
    return put_parts(to, value);
}

static bool put_row(const dv_format *format, const cJSON *row, FILE *to) {
    bool complete = true;
    for (size_t i = 0; complete && i < format->count; i++) {
        const piece *p = &format->pieces[i];
        if (p->is_field) complete = put_value(to, find_value(row, p->text));
        else fputs(p->text, to);
    }
    if (!format->ends_line) fputc('\n', to);
    return complete;
}

char *dv_format_print(const dv_format *format, const cJSON *rows) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *to = rows ? open_memstream(&text, &bytes) : NULL;
    if (!to) return NULL;
    bool complete = true;
    const cJSON *row = cJSON_IsArray(rows) ? rows->child : rows;
    for (; complete && row; row = cJSON_IsArray(rows) ? row->next : NULL) complete = put_row(format, row, to);
    complete = complete && !ferror(to);
    if (fclose(to) == 0 && complete) return text;
    free(text);
    return NULL;
}
