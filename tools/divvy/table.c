/* A table for people. SPDX-License-Identifier: Apache-2.0 */
#include "table.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

typedef struct {
    char *key;
    char **cells;
    char mark; /* ' ', '+', '*' or '-' */
} row;

struct dv_table {
    const dv_column *columns;
    size_t column_count;
    row *rows;
    size_t count, room;
};

dv_table *dv_table_new(const dv_column *columns, size_t count) {
    dv_table *table = calloc(1, sizeof *table);
    if (table) *table = (dv_table){.columns = columns, .column_count = count};
    return table;
}

static void free_row(const dv_table *table, row *r) {
    for (size_t i = 0; r->cells && i < table->column_count; i++) free(r->cells[i]);
    free(r->cells);
    free(r->key);
}

void dv_table_free(dv_table *table) {
    if (!table) return;
    for (size_t i = 0; i < table->count; i++) free_row(table, &table->rows[i]);
    free(table->rows);
    free(table);
}

/* ---- rows ---- */

static bool fill(const dv_table *table, row *r, const char *key, const char *const *cells) {
    *r = (row){.key = strdup(key), .cells = calloc(table->column_count, sizeof *r->cells), .mark = ' '};
    for (size_t i = 0; r->cells && i < table->column_count; i++) {
        r->cells[i] = dv_text_readable(cells[i] && *cells[i] ? cells[i] : "-");
        if (!r->cells[i]) return false;
    }
    return r->key && r->cells;
}

int dv_table_add(dv_table *table, const char *key, const char *const *cells) {
    if (table->count == table->room) {
        size_t room = table->room ? 2 * table->room : 32;
        row *grown = realloc(table->rows, room * sizeof *grown);
        if (!grown) return -1;
        table->rows = grown;
        table->room = room;
    }
    row *r = &table->rows[table->count];
    if (fill(table, r, key, cells)) {
        table->count++;
        return 0;
    }
    free_row(table, r);
    return -1;
}

static int compare_keys(const void *a, const void *b) {
    return strcmp((*(const row *const *)a)->key, (*(const row *const *)b)->key);
}

/* The rows sorted by their keys. Returns NULL when an allocation fails. */
static const row **by_key(const dv_table *table) {
    const row **sorted = calloc(table->count + 1, sizeof *sorted);
    for (size_t i = 0; sorted && i < table->count; i++) sorted[i] = &table->rows[i];
    if (sorted) qsort((void *)(uintptr_t)sorted, table->count, sizeof *sorted, compare_keys);
    return sorted;
}

static const row *find(const row **sorted, size_t count, const row *like) {
    const row **found =
        (const row **)(uintptr_t)bsearch(&like, (const void *)(uintptr_t)sorted, count, sizeof *sorted, compare_keys);
    return found ? *found : NULL;
}

static bool differ(const dv_table *table, const row *one, const row *two) {
    for (size_t i = 0; i < table->column_count; i++) {
        if (!table->columns[i].moving && strcmp(one->cells[i], two->cells[i]) != 0) return true;
    }
    return false;
}

int dv_table_compare(dv_table *table, const dv_table *before) {
    size_t count = table->count; /* without those that are gone */
    const row **old = by_key(before), **new = by_key(table);
    bool complete = old && new;
    char *gone = complete ? calloc(before->count + 1, 1) : NULL;
    for (size_t i = 0; gone && i < count; i++) {
        const row *same = find(old, before->count, &table->rows[i]);
        if (!same || same->mark == '-') table->rows[i].mark = '+';
        else if (differ(table, same, &table->rows[i])) table->rows[i].mark = '*';
    }
    for (size_t i = 0; gone && i < before->count; i++)
        gone[i] = before->rows[i].mark != '-' && !find(new, count, &before->rows[i]);
    for (size_t i = 0; gone && complete && i < before->count; i++) {
        const row *r = &before->rows[i];
        if (!gone[i]) continue;
        complete = dv_table_add(table, r->key, (const char *const *)r->cells) == 0;
        if (complete) table->rows[table->count - 1].mark = '-';
    }
    complete = complete && gone;
    free(gone);
    free((void *)(uintptr_t)old);
    free((void *)(uintptr_t) new);
    return complete ? 0 : -1;
}

/* ---- printing ---- */

/* Returns whether terminals give the character two columns: the blocks of East Asian scripts and of pictures. */
static bool is_wide(const char *character, size_t bytes) {
    const unsigned char *b = (const unsigned char *)character;
    if (bytes == 4) return b[0] == 0xf0 && (b[1] >= 0xa0 || (b[1] == 0x9f && b[2] >= 0x8c && b[2] <= 0xab));
    if (bytes != 3) return false;
    unsigned code = (b[0] & 15u) << 12 | (b[1] & 63u) << 6 | (b[2] & 63u);
    return (code >= 0x1100 && code <= 0x115f) || (code >= 0x2e80 && code <= 0xa4cf) ||
           (code >= 0xac00 && code <= 0xd7a3) || (code >= 0xf900 && code <= 0xfaff) ||
           (code >= 0xfe30 && code <= 0xfe6f) || (code >= 0xff00 && code <= 0xff60);
}

size_t dv_character_width(const char *character, size_t bytes) {
    return is_wide(character, bytes) ? 2 : 1;
}

static size_t width_of(const char *text) {
    size_t width = 0;
    for (size_t bytes; (bytes = dv_text_character_bytes(text)) > 0; text += bytes)
        width += dv_character_width(text, bytes);
    return width;
}

static void print_cells(const dv_table *table, const char *const *cells, const size_t *widths, FILE *to) {
    for (size_t i = 0; i < table->column_count; i++) {
        int gap = (int)(widths[i] - width_of(cells[i]));
        bool last = i + 1 == table->column_count;
        if (table->columns[i].right) fprintf(to, "%*s%s", gap, "", cells[i]);
        else fprintf(to, "%s%*s", cells[i], last ? 0 : gap, "");
        fputs(last ? "\n" : "  ", to);
    }
}

void dv_table_print(const dv_table *table, bool marks, FILE *to) {
    size_t widths[16] = {0};
    const char *heads[16];
    if (table->count == 0 || table->column_count > 16) return;
    for (size_t i = 0; i < table->column_count; i++) {
        heads[i] = table->columns[i].head;
        widths[i] = width_of(heads[i]);
        for (size_t k = 0; k < table->count; k++) {
            size_t width = width_of(table->rows[k].cells[i]);
            if (width > widths[i]) widths[i] = width;
        }
    }
    if (marks) fputs("  ", to);
    print_cells(table, heads, widths, to);
    for (size_t k = 0; k < table->count; k++) {
        if (marks) fprintf(to, "%c ", table->rows[k].mark);
        print_cells(table, (const char *const *)table->rows[k].cells, widths, to);
    }
}

const char *dv_age_text(int64_t ms, char out[DV_AGE_BYTES]) {
    int64_t s = ms > 0 ? ms / 1000 : 0;
    if (s < 60) snprintf(out, DV_AGE_BYTES, "%" PRId64 "s", s);
    else if (s < 3600) snprintf(out, DV_AGE_BYTES, "%" PRId64 "m%02" PRId64 "s", s / 60, s % 60);
    else if (s < 86400) snprintf(out, DV_AGE_BYTES, "%" PRId64 "h%02" PRId64 "m", s / 3600, s / 60 % 60);
    else snprintf(out, DV_AGE_BYTES, "%" PRId64 "d%02" PRId64 "h", s / 86400, s / 3600 % 24);
    return out;
}

const char *dv_duration_text(int64_t ms, char out[DV_AGE_BYTES]) {
    if (ms < 1000) snprintf(out, DV_AGE_BYTES, "%" PRId64 "ms", ms);
    else if (ms < 60000) snprintf(out, DV_AGE_BYTES, "%" PRId64 ".%" PRId64 "s", ms / 1000, ms % 1000 / 100);
    else return dv_age_text(ms, out);
    return out;
}
