/* Names: one block of memory, and a hash table over it. SPDX-License-Identifier: Apache-2.0 */
#include "partitioner/item_names.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* ---- the block ---- */

/* A token and a name with its NUL, up to the next token. */
static size_t place_bytes(const char *name) {
    size_t bytes = sizeof(dv_token) + strlen(name) + 1;
    return (bytes + sizeof(dv_token) - 1) / sizeof(dv_token) * sizeof(dv_token);
}

dv_names *dv_names_copy(const char *const *from, size_t count) {
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) bytes += place_bytes(from[i]);
    dv_names *names = calloc(1, sizeof *names + count * sizeof *names->names + bytes);
    if (!names) return NULL;
    atomic_init(&names->refs, 1);
    names->count = count;
    names->names = (const char **)(void *)(names + 1);
    char *to = (char *)(void *)(names->names + count);
    for (size_t i = 0; i < count; i++) {
        char *name = to + sizeof(dv_token);
        strcpy(name, from[i]);
        atomic_init(dv_name_token(name), 0);
        names->names[i] = name;
        to += place_bytes(from[i]);
    }
    return names;
}

void dv_names_unref(dv_names *names) {
    if (names && atomic_fetch_sub(&names->refs, 1) == 1) free(names);
}

/* ---- the index ---- */

/* Where a name stands in the block, and half of its hash: a lookup touches two lines of memory, this and the name's. */
typedef struct {
    uint32_t hash;
    uint32_t place; /* from the beginning of the block, in tokens; 0 is no name's, but the first token's: empty */
} slot;

struct dv_name_index {
    const char *block;
    uint64_t seed;
    size_t mask; /* a power of two less 1; at most two thirds of the slots are full */
    slot slots[];
};

static uint64_t eight_bytes(const char *at) {
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

static uint64_t four_bytes(const char *at) {
    uint32_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

/* Puts less than eight bytes into a word, by pieces that overlap: each byte is in it, without a loop or a call. */
static uint64_t last_bytes(const char *at, size_t bytes) {
    if (bytes >= 4) return four_bytes(at) | four_bytes(at + bytes - 4) << 32;
    if (bytes == 0) return 0;
    uint64_t first = (unsigned char)at[0], middle = (unsigned char)at[bytes / 2], last = (unsigned char)at[bytes - 1];
    return first | middle << 8 | last << 16;
}

/* Eight bytes at a time. A user that chooses names does not know the seed, and so cannot choose many that collide. */
static inline uint64_t hash_of(const char *name, size_t bytes, uint64_t seed) {
    uint64_t h = seed;
    size_t left = bytes;
    for (; left >= 8; left -= 8, name += 8) {
        h = (h ^ eight_bytes(name)) * 0x9e3779b97f4a7c15;
        h ^= h >> 32;
    }
    h = (h ^ last_bytes(name, left)) * 0x9e3779b97f4a7c15;
    return (h ^ h >> 32 ^ bytes) * 0xbf58476d1ce4e5b9;
}

/* Never reads past the place of `ours`, a multiple of eight bytes: while both were equal no NUL has come in it. */
bool dv_name_same(const char *ours, const char *name, size_t bytes) {
    for (; bytes >= 8; bytes -= 8, ours += 8, name += 8) {
        if (eight_bytes(ours) != eight_bytes(name)) return false;
    }
    return last_bytes(ours, bytes) == last_bytes(name, bytes) && ours[bytes] == '\0';
}

static size_t slots_for(size_t count) {
    size_t slots = 8;
    while (slots < count + count / 2 + 1) slots *= 2;
    return slots;
}

static void add(dv_name_index *index, const char *name) {
    uint64_t hash = hash_of(name, strlen(name), index->seed);
    size_t i = (size_t)(hash >> 32) & index->mask;
    while (index->slots[i].place) i = (i + 1) & index->mask;
    index->slots[i] = (slot){(uint32_t)hash, (uint32_t)((size_t)(name - index->block) / sizeof(dv_token))};
}

static uint64_t random_seed(const void *otherwise) {
    uint64_t seed;
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) != sizeof seed) seed = (uint64_t)(uintptr_t)otherwise;
    return seed;
}

dv_name_index *dv_name_index_new(const dv_names *names) {
    const char *block = (const char *)(const void *)(names->names + names->count);
    size_t slots = slots_for(names->count);
    const char *last = names->count ? names->names[names->count - 1] : block;
    if ((size_t)(last - block) / sizeof(dv_token) > UINT32_MAX) return NULL;
    dv_name_index *index = calloc(1, sizeof *index + slots * sizeof(slot));
    if (!index) return NULL;
    index->block = block;
    index->seed = random_seed(index);
    index->mask = slots - 1;
    for (size_t i = 0; i < names->count; i++) add(index, names->names[i]);
    return index;
}

void dv_name_index_free(dv_name_index *index) {
    free(index);
}

const char *dv_name_index_find(const dv_name_index *index, const char *name) {
    size_t bytes = strlen(name);
    uint64_t hash = hash_of(name, bytes, index->seed);
    for (size_t i = (size_t)(hash >> 32) & index->mask; index->slots[i].place; i = (i + 1) & index->mask) {
        if (index->slots[i].hash != (uint32_t)hash) continue;
        const char *found = index->block + index->slots[i].place * sizeof(dv_token);
        if (dv_name_same(found, name, bytes)) return found;
    }
    return NULL;
}
