/* A table for people. SPDX-License-Identifier: Apache-2.0
 *
 * Cells are encoded as dv_text_readable() does, so that no name can break a line or steer a terminal. */
#ifndef DV_TABLE_H
#define DV_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct {
    const char *head;
    bool right;  /* aligned to the right, as numbers are */
    bool moving; /* changes by itself, as an age does: that is no change of its row */
} dv_column;

typedef struct dv_table dv_table;

/* `columns` outlives the table. Returns NULL when an allocation fails. */
dv_table *dv_table_new(const dv_column *columns, size_t count);
void dv_table_free(dv_table *table);

/* A row, with a cell for each column; a NULL or empty one is shown as "-". `key` tells rows apart, and which are the
 * same in another table. 0, or -1 when an allocation fails. */
int dv_table_add(dv_table *table, const char *key, const char *const *cells);

/* Marks rows that `before` has not with '+', those that differ with '*'; those that are only in `before` are added at
 * the end, and marked with '-'. 0, or -1 when an allocation fails. */
int dv_table_compare(dv_table *table, const dv_table *before);

/* Prints heads and rows, with a column for the marks in front if `marks`. Nothing when there are no rows. */
void dv_table_print(const dv_table *table, bool marks, FILE *to);

/* How a column gives way where lines are too long: in this order. */
typedef struct {
    const char *dull; /* a column that has this in all rows is left out; NULL: none is dull */
    bool name;        /* cells are shortened in their middle */
    bool sentence;    /* rather at their ends */
    bool rare;        /* where it is dull, it is the first to go */
    int hide;         /* the column is left out, the lowest number first; 0: never */
} dv_fit;

/* The same with lines of at most `columns` columns (columns.h); `fits` has one for each column. Returns whether all was
 * printed as it is. */
bool dv_table_print_within(const dv_table *table, const dv_fit *fits, bool marks, size_t columns, FILE *to);

/* "12s", "3m12s", "5h07m", "2d04h"; "0s" for what is negative, as clocks differ. */
enum { DV_AGE_BYTES = 32 };
const char *dv_age_text(int64_t ms, char out[DV_AGE_BYTES]);
/* "40ms", "1.2s", then as an age. */
const char *dv_duration_text(int64_t ms, char out[DV_AGE_BYTES]);

#endif
