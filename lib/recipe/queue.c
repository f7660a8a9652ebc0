/* Queue: who stands in a directory of sequential nodes, and who waits for whom. SPDX-License-Identifier: Apache-2.0 */
#include "recipe/queue.h"

#include <stdlib.h>
#include <string.h>

#include "znode/sequence.h"

static const char *const lock_marker[] = {"__lock__", NULL};
static const char *const both_markers[] = {"__lock__", "__rlock__", NULL};

const dv_queue_kind dv_exclusive_queue = {"__lock__", lock_marker, false, false};
const dv_queue_kind dv_fresh_queue = {"__lock__", lock_marker, false, true};
const dv_queue_kind dv_lock_queue = {"__lock__", lock_marker, true, false};
const dv_queue_kind dv_write_queue = {"__lock__", both_markers, true, false};
const dv_queue_kind dv_read_queue = {"__rlock__", lock_marker, true, false};

static bool has_marker(const char *name, const char *const *markers, int32_t *sequence) {
    for (; *markers; markers++) {
        if (dv_sequence_parse(name, *markers, sequence)) return true;
    }
    return false;
}

const char *dv_queue_before(const dv_queue_kind *kind, const char *const *names, size_t count, const char *own,
                            int32_t own_sequence) {
    const char *nearest = NULL;
    int32_t nearest_sequence = 0;
    for (size_t i = 0; i < count; i++) {
        int32_t sequence;
        if (strcmp(names[i], own) == 0 || !has_marker(names[i], kind->blocked_by, &sequence)) continue;
        bool before = dv_sequence_compare(sequence, own_sequence) < 0;
        if (!before || (nearest && dv_sequence_compare(sequence, nearest_sequence) <= 0)) continue;
        nearest = names[i];
        nearest_sequence = sequence;
    }
    return nearest;
}

const char *dv_queue_find(const char *const *names, size_t count, const char *prefix) {
    size_t prefix_bytes = strlen(prefix);
    for (size_t i = 0; i < count; i++) {
        if (strncmp(names[i], prefix, prefix_bytes) == 0) return names[i];
    }
    return NULL;
}

static int compare_places(const void *a, const void *b) {
    const char *one = *(const char *const *)a, *other = *(const char *const *)b;
    int32_t one_sequence = 0, other_sequence = 0;
    has_marker(one, both_markers, &one_sequence);
    has_marker(other, both_markers, &other_sequence);
    int order = dv_sequence_compare(one_sequence, other_sequence);
    return order ? order : strcmp(one, other);
}

size_t dv_queue_contenders(const char *const *names, size_t count, const char **out) {
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        int32_t sequence;
        if (has_marker(names[i], both_markers, &sequence)) out[found++] = names[i];
    }
    qsort(out, found, sizeof *out, compare_places);
    return found;
}
