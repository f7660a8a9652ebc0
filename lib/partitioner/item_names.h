/* Names: the items of a table, as other threads look at them. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_ITEM_NAMES_H
#define DV_ITEM_NAMES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Sorted bytewise; the names never change. Snapshots share it, because a snapshot may outlive the partitioner. */
typedef struct {
    atomic_uint refs;
    size_t count;
    const char **names; /* into one block of memory behind them: before each name stands a token */
} dv_names;

/* A copy with tokens of 0. Returns NULL without memory. */
dv_names *dv_names_copy(const char *const *from, size_t count);
void dv_names_unref(dv_names *names); /* NULL is fine */

typedef _Atomic(int64_t) dv_token;

/* The token under which the item of that name is owned; 0: it is not. */
static inline dv_token *dv_name_token(const char *name) {
    return (dv_token *)(uintptr_t)name - 1;
}

/* Says whether `name`, of so many bytes and a NUL, equals `ours`, which stands in a dv_names. */
bool dv_name_same(const char *ours, const char *name, size_t bytes);

/* Finds names by their hash. */
typedef struct dv_name_index dv_name_index;

/* Returns NULL without memory. `names` outlives it. */
dv_name_index *dv_name_index_new(const dv_names *names);
void dv_name_index_free(dv_name_index *index); /* NULL is fine */
/* Returns the name as it stands in `names`, or NULL. */
const char *dv_name_index_find(const dv_name_index *index, const char *name);

#endif
