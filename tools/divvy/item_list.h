/* The items a subcommand was given: from a file, the command line, or names. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_ITEM_LIST_H
#define DV_ITEM_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "options.h"

/* Sorted bytewise, without duplicates. */
typedef struct {
    const char **names; /* for divvy_partitioner_config.items; free by dv_item_list_free() */
    size_t count;
} dv_item_list;

/*
 * From the file `path`, "-" being stdin: one item a line. Skipped are empty lines, lines of nothing but spaces and
 * tabs, and lines that begin with '#'. Removed are a CR before the end of a line, and a byte order mark at the start.
 * Everything else is the item, spaces at its ends included; of those it warns on stderr.
 *
 * Returns 0; or the exit code when it was told on stderr, with the line's number, what is wrong: unreadable, no items,
 * an item that is given twice, a NUL byte, or more than there may be; or no memory.
 */
int dv_item_list_read(dv_item_list *list, const char *path);

/* The same from a file that is open; `shown` is what messages call it. */
int dv_item_list_parse(dv_item_list *list, FILE *file, const char *shown);

/* From names. Returns 0; or the exit code when it was told on stderr what is wrong: none, an empty item, one given
 * twice, or no memory. */
int dv_item_list_of(dv_item_list *list, const char *const *names, size_t count, const char *shown);

/* The same from the command line. */
int dv_item_list_copy(dv_item_list *list, const dv_texts *texts);

bool dv_item_list_equal(const dv_item_list *a, const dv_item_list *b);

void dv_item_list_free(dv_item_list *list);

#endif
