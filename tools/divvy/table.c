/* A table for people. SPDX-License-Identifier: Apache-2.0 */
#include "table.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "columns.h"
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

enum { COLUMNS_MAX = 16, GAP = 2 };

/* How a table is printed: how wide each column is, and which are left out. */
typedef struct {
    const dv_table *table;
    const dv_fit *fits;
    bool marks;
    size_t columns; /* of the screen */
    size_t widths[COLUMNS_MAX];
    bool hidden[COLUMNS_MAX];
} layout;

static void measure(layout *l) {
    const dv_table *table = l->table;
    for (size_t i = 0; i < table->column_count; i++) {
        l->widths[i] = dv_text_width(table->columns[i].head);
        for (size_t k = 0; k < table->count; k++) {
            size_t width = dv_text_width(table->rows[k].cells[i]);
            if (width > l->widths[i]) l->widths[i] = width;
        }
    }
}

static bool fit(const layout *l) {
    size_t width = l->marks ? GAP : 0, shown = 0;
    for (size_t i = 0; i < l->table->column_count; i++) {
        if (l->hidden[i]) continue;
        width += l->widths[i] + (shown ? GAP : 0);
        shown++;
    }
    return l->columns == DV_COLUMNS_ALL || width <= l->columns;
}

/* Returns whether the column says in no row more than is to be expected. */
static bool is_dull(const layout *l, size_t i) {
    if (!l->fits[i].dull) return false;
    for (size_t k = 0; k < l->table->count; k++) {
        if (strcmp(l->table->rows[k].cells[i], l->fits[i].dull) != 0) return false;
    }
    return true;
}

/* Narrows columns until the lines fit, the widest first, and none to less than `least`. */
static bool narrow(layout *l, bool names_only, size_t least) {
    while (!fit(l)) {
        size_t widest = COLUMNS_MAX;
        for (size_t i = 0; i < l->table->column_count; i++) {
            bool eligible = !l->hidden[i] && (l->fits[i].name || !names_only) && l->widths[i] > least;
            if (eligible && (widest == COLUMNS_MAX || l->widths[i] > l->widths[widest])) widest = i;
        }
        if (widest == COLUMNS_MAX) return false;
        l->widths[widest]--;
    }
    return true;
}

/* Hides the column that goes first of those that may. Returns false when there is none. */
static bool hide_next(layout *l) {
    size_t next = COLUMNS_MAX;
    for (size_t i = 0; i < l->table->column_count; i++) {
        if (l->hidden[i] || l->fits[i].hide == 0) continue;
        if (next == COLUMNS_MAX || l->fits[i].hide < l->fits[next].hide) next = i;
    }
    if (next < COLUMNS_MAX) l->hidden[next] = true;
    return next < COLUMNS_MAX;
}

/* Makes the lines fit: without columns that say nothing, then with shorter names, then without more columns. */
static void lay_out(layout *l) {
    enum { READABLE = 16, SHORT = 8, SHORTEST = 3 };
    measure(l);
    for (size_t i = 0; i < l->table->column_count && !fit(l); i++) l->hidden[i] = l->fits[i].rare && is_dull(l, i);
    for (size_t i = 0; i < l->table->column_count && !fit(l); i++) l->hidden[i] = l->hidden[i] || is_dull(l, i);
    while (!narrow(l, true, READABLE)) {
        bool fewer = hide_next(l);
        if (!fewer && (narrow(l, true, SHORT) || narrow(l, false, SHORTEST))) return;
        if (!fewer) return;
        measure(l);
    }
}

static void print_cells(const layout *l, const char *const *cells, FILE *to) {
    size_t last = l->table->column_count;
    while (last > 0 && l->hidden[last - 1]) last--;
    for (size_t i = 0; i < last; i++) {
        if (l->hidden[i]) continue;
        char *text = (l->fits && l->fits[i].sentence ? dv_text_clip : dv_text_shorten)(cells[i], l->widths[i]);
        const char *shown = text ? text : "?";
        int gap = (int)(l->widths[i] - dv_text_width(shown));
        if (l->table->columns[i].right) fprintf(to, "%*s%s", gap, "", shown);
        else fprintf(to, "%s%*s", shown, i + 1 == last ? 0 : gap, "");
        fputs(i + 1 == last ? "\n" : "  ", to);
        free(text);
    }
}

static bool is_whole(const layout *before, const layout *l) {
    for (size_t i = 0; i < l->table->column_count; i++) {
        if (l->hidden[i] || l->widths[i] < before->widths[i]) return false;
    }
    return true;
}

bool dv_table_print_within(const dv_table *table, const dv_fit *fits, bool marks, size_t columns, FILE *to) {
    layout l = {.table = table, .fits = fits, .marks = marks, .columns = columns}, whole = l;
    const char *heads[COLUMNS_MAX];
    if (table->count == 0 || table->column_count > COLUMNS_MAX) return true;
    measure(&whole);
    lay_out(&l);
    for (size_t i = 0; i < table->column_count; i++) heads[i] = table->columns[i].head;
    if (marks) fputs("  ", to);
    print_cells(&l, heads, to);
    for (size_t k = 0; k < table->count; k++) {
        if (marks) fprintf(to, "%c ", table->rows[k].mark);
        print_cells(&l, (const char *const *)table->rows[k].cells, to);
    }
    return is_whole(&whole, &l);
}

void dv_table_print(const dv_table *table, bool marks, FILE *to) {
    static const dv_fit fits[COLUMNS_MAX];
    dv_table_print_within(table, fits, marks, DV_COLUMNS_ALL, to);
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
