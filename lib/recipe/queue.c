/* Queue: who stands in a directory of sequential nodes, and who waits for whom. SPDX-License-Identifier: Apache-2.0 */
#include "recipe/queue.h"

#include <stdlib.h>
#include <string.h>

#include "base/ascii.h"
#include "znode/sequence.h"

static const char *const lock_marker[] = {"__lock__", NULL};
static const char *const both_markers[] = {"__lock__", "__rlock__", NULL};
const char *const dv_election_markers[] = {"__lock__", "__rlock__", "latch-", NULL};

const dv_queue_kind dv_exclusive_queue = {.marker = "__lock__", .blocked_by = lock_marker};
const dv_queue_kind dv_fresh_queue = {.marker = "__lock__", .blocked_by = lock_marker, .fresh = true};
const dv_queue_kind dv_renewed_queue = {.marker = "__lock__", .blocked_by = lock_marker, .fresh = true, .renews = true};
const dv_queue_kind dv_parked_queue = {.marker = "__lock__", .blocked_by = lock_marker, .fresh = true, .parks = true};
const dv_queue_kind dv_lock_queue = {.marker = "__lock__", .blocked_by = lock_marker, .alone = true};
const dv_queue_kind dv_write_queue = {.marker = "__lock__", .blocked_by = both_markers, .alone = true};
const dv_queue_kind dv_read_queue = {.marker = "__rlock__", .blocked_by = lock_marker, .alone = true};

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

bool dv_queue_is_empty(const dv_queue_kind *kind, const char *const *names, size_t count) {
    int32_t unused;
    for (size_t i = 0; i < count; i++) {
        if (has_marker(names[i], kind->blocked_by, &unused)) return false;
    }
    return true;
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
    has_marker(one, dv_election_markers, &one_sequence);
    has_marker(other, dv_election_markers, &other_sequence);
    int order = dv_sequence_compare(one_sequence, other_sequence);
    return order ? order : strcmp(one, other);
}

static size_t choose(const char *const *names, size_t count, const char *const *markers, const char **out) {
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        int32_t sequence;
        if (has_marker(names[i], markers, &sequence)) out[found++] = names[i];
    }
    qsort(out, found, sizeof *out, compare_places);
    return found;
}

size_t dv_queue_contenders(const char *const *names, size_t count, const char **out) {
    return choose(names, count, both_markers, out);
}

/* ---- elections ---- */

size_t dv_queue_candidates(const char *const *names, size_t count, const char **out) {
    return choose(names, count, dv_election_markers, out);
}

const char *dv_queue_first(const char *const *names, size_t count) {
    const char *first = NULL;
    for (size_t i = 0; i < count; i++) {
        int32_t sequence;
        if (!has_marker(names[i], dv_election_markers, &sequence)) continue;
        if (!first || compare_places(&names[i], &first) < 0) first = names[i];
    }
    return first;
}

/* The tag stands directly before the marker: "<guid>,p=7__lock__0000000012". Others may write anything there. */
int dv_queue_preference(const char *name) {
    static const char tag[] = ",p=";
    const char *at = strstr(name, tag);
    uint32_t preference = 0;
    const char *end = at ? dv_read_number(at + sizeof tag - 1, &preference) : NULL;
    bool marked = end && (strncmp(end, "__lock__", 8) == 0 || strncmp(end, "-latch-", 7) == 0);
    return marked && preference <= DV_PREFERENCE_MAX ? (int)preference : 0;
}

bool dv_queue_outranked(const char *const *names, size_t count, const char *own, int32_t own_sequence) {
    int own_preference = dv_queue_preference(own);
    for (size_t i = 0; i < count; i++) {
        int32_t sequence;
        if (!has_marker(names[i], dv_election_markers, &sequence)) continue;
        if (dv_sequence_compare(sequence, own_sequence) > 0 && dv_queue_preference(names[i]) > own_preference)
            return true;
    }
    return false;
}
