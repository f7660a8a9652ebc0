/* Slots: what the names in a semaphore's pool say, and what is free in it. SPDX-License-Identifier: Apache-2.0 */
#include "recipe/slots.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/ascii.h"

enum { KAZOO_GUID_DIGITS = 32 };

/* ---- names ---- */

static const char *skip(const char *at, const char *text) {
    size_t bytes = strlen(text);
    return at && strncmp(at, text, bytes) == 0 ? at + bytes : NULL;
}

size_t dv_slots_print(const dv_slots *slots, char out[DV_SLOT_TAGS_BYTES]) {
    assert(slots->run_count > 0 && slots->run_count <= DV_RUNS_MAX);
    int bytes = snprintf(out, DV_SLOT_TAGS_BYTES, ",n=%u,c=%u", slots->runs[0].first, slots->count);
    for (size_t i = 1; i < slots->run_count; i++)
        bytes += snprintf(out + bytes, DV_SLOT_TAGS_BYTES - (size_t)bytes, "%s%u+%u", i == 1 ? ",x=" : ".",
                          slots->runs[i].first, slots->runs[i].count - 1);
    assert(bytes > 0 && bytes < DV_SLOT_TAGS_BYTES);
    return (size_t)bytes;
}

/* The runs behind the first, which is what is left of the count. */
static bool parse_more_runs(const char *at, dv_slots *slots) {
    uint64_t others = 0;
    while (at) {
        if (slots->run_count == DV_RUNS_MAX) return false;
        dv_slot_run *run = &slots->runs[slots->run_count++];
        uint32_t more;
        at = dv_read_number(at, &run->first);
        at = at ? skip(at, "+") : NULL;
        at = at ? dv_read_number(at, &more) : NULL;
        if (!at || more == INT32_MAX) return false;
        run->count = more + 1;
        others += run->count;
        if (*at == '\0') break;
        at = skip(at, ".");
    }
    if (!at || others >= slots->count) return false;
    slots->runs[0].count = slots->count - (uint32_t)others;
    return true;
}

/* From the lowest up and apart from each other, within the largest limit. */
static bool runs_are_sound(const dv_slots *slots) {
    uint64_t end = 0;
    for (size_t i = 0; i < slots->run_count; i++) {
        const dv_slot_run *run = &slots->runs[i];
        if (i > 0 && run->first <= end) return false;
        end = (uint64_t)run->first + run->count;
        if (end > INT32_MAX) return false;
    }
    return true;
}

bool dv_slots_parse(const char *name, dv_slots *slots) {
    const char *at = name;
    *slots = (dv_slots){.run_count = 1};
    while (dv_is_alphanumeric(*at)) at++;
    if (at == name) return false;
    at = skip(at, ",n=");
    at = at ? dv_read_number(at, &slots->runs[0].first) : NULL;
    at = skip(at, ",c=");
    at = at ? dv_read_number(at, &slots->count) : NULL;
    if (!at || slots->count == 0) return false;
    slots->runs[0].count = slots->count;
    if (*at != '\0' && !parse_more_runs(skip(at, ",x="), slots)) return false;
    return runs_are_sound(slots);
}

int dv_slots_at(const dv_slots *slots, uint32_t i) {
    for (size_t r = 0; r < slots->run_count; r++) {
        if (i < slots->runs[r].count) return (int)(slots->runs[r].first + i);
        i -= slots->runs[r].count;
    }
    return -1;
}

/* ---- what is free ---- */

typedef struct {
    dv_slot_run *runs; /* that are taken, by their first slot */
    size_t count;
    uint64_t taken; /* slots, those without a number included */
} occupancy;

static int compare_runs(const void *a, const void *b) {
    uint32_t x = ((const dv_slot_run *)a)->first, y = ((const dv_slot_run *)b)->first;
    return (x > y) - (x < y);
}

static bool look_at(const char *const *names, size_t count, occupancy *out) {
    size_t room = count + 1;
    *out = (occupancy){.runs = malloc(room * sizeof *out->runs)};
    for (size_t i = 0; out->runs && i < count; i++) {
        dv_slots slots;
        if (!dv_slots_parse(names[i], &slots)) {
            out->taken++; /* E2: a foreign lease takes one slot. */
            continue;
        }
        out->taken += slots.count;
        if (out->count + slots.run_count > room) {
            room = 2 * room + DV_RUNS_MAX;
            dv_slot_run *runs = realloc(out->runs, room * sizeof *runs);
            if (!runs) free(out->runs);
            out->runs = runs;
        }
        for (size_t r = 0; out->runs && r < slots.run_count; r++) out->runs[out->count++] = slots.runs[r];
    }
    if (out->runs) qsort(out->runs, out->count, sizeof *out->runs, compare_runs);
    return out->runs != NULL;
}

static void add_run(dv_slots *slots, uint32_t first, uint32_t count) {
    assert(slots->run_count < DV_RUNS_MAX && count > 0);
    slots->runs[slots->run_count++] = (dv_slot_run){first, count};
    slots->count += count;
}

/* One walk over the gaps: the first that is long enough is taken whole; on the way the lowest free slots are kept. */
static bool find_free(const occupancy *taken, uint32_t limit, uint32_t count, dv_slots *out) {
    dv_slots scattered = {.count = 0};
    uint64_t at = 0;
    for (size_t i = 0; i <= taken->count && at < limit; i++) {
        bool last = i == taken->count;
        uint64_t end = last || taken->runs[i].first > limit ? limit : taken->runs[i].first;
        uint64_t gap = end > at ? end - at : 0;
        if (gap >= count) {
            *out = (dv_slots){.count = 0};
            add_run(out, (uint32_t)at, count);
            return true;
        }
        uint32_t lacking = count - scattered.count;
        if (gap > 0 && lacking > 0 && scattered.run_count < DV_RUNS_MAX)
            add_run(&scattered, (uint32_t)at, gap < lacking ? (uint32_t)gap : lacking);
        uint64_t next = last ? limit : (uint64_t)taken->runs[i].first + taken->runs[i].count;
        if (next > at) at = next;
    }
    *out = scattered;
    return scattered.count == count;
}

dv_pool_state dv_slots_choose(const char *const *names, size_t name_count, uint32_t limit, uint32_t count,
                              dv_slots *out) {
    assert(count > 0);
    occupancy taken;
    if (!look_at(names, name_count, &taken)) return DV_POOL_OUT_OF_MEMORY;
    bool room = taken.taken + count <= limit && find_free(&taken, limit, count, out);
    free(taken.runs);
    return room ? DV_POOL_ROOM : DV_POOL_FULL;
}

static bool overlap(const dv_slots *a, const dv_slots *b) {
    for (size_t i = 0; i < a->run_count; i++) {
        for (size_t k = 0; k < b->run_count; k++) {
            const dv_slot_run *one = &a->runs[i], *other = &b->runs[k];
            if (one->first < (uint64_t)other->first + other->count && other->first < (uint64_t)one->first + one->count)
                return true;
        }
    }
    return false;
}

/* Several slots are none to kazoo, which counts a lease as one. */
bool dv_slots_fit(const dv_slots *slots, const char *const *names, size_t count, uint32_t limit) {
    uint64_t taken = slots->count;
    assert(slots->run_count > 0);
    const dv_slot_run *last = &slots->runs[slots->run_count - 1];
    for (size_t i = 0; i < count; i++) {
        dv_slots other;
        bool is_ours = dv_slots_parse(names[i], &other);
        if (is_ours ? overlap(slots, &other) : slots->count > 1) return false;
        taken += is_ours ? other.count : 1;
    }
    return taken <= limit && (uint64_t)last->first + last->count <= limit;
}

/* ---- kazoo ---- */

bool dv_pool_has_kazoo(const char *const *names, size_t count) {
    dv_slots unused;
    for (size_t i = 0; i < count; i++) {
        if (!dv_slots_parse(names[i], &unused)) return true;
    }
    return false;
}

static bool is_kazoo_contender(const char *name) {
    size_t digits = strspn(name, "0123456789abcdef");
    return digits == KAZOO_GUID_DIGITS && strncmp(name + digits, "__lock__", strlen("__lock__")) == 0;
}

bool dv_queue_has_kazoo(const char *const *names, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (is_kazoo_contender(names[i])) return true;
    }
    return false;
}

/* ---- the limit ---- */

static bool is_space(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* White space around the number is what kazoo's int() takes, too: a limit written by hand often ends in a newline. */
dv_limit_state dv_limit_parse(const char *data, size_t data_bytes, uint32_t *limit) {
    const char *end = data + data_bytes;
    while (data < end && is_space(*data)) data++;
    while (data < end && is_space(end[-1])) end--;
    if (data_bytes == 0) return DV_LIMIT_UNSET;
    uint64_t value = 0;
    for (const char *at = data; at < end; at++) {
        if (!dv_is_digit(*at)) return DV_LIMIT_BAD;
        value = value * 10 + (uint64_t)(*at - '0');
        if (value > INT32_MAX) return DV_LIMIT_BAD;
    }
    if (data == end) return DV_LIMIT_BAD;
    *limit = (uint32_t)value;
    return DV_LIMIT_SET;
}
