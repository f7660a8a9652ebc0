/* Paths, data, sessions and identities: what trees and messages share. SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "testing/ensemble.h"

void *dv_mem_alloc(size_t bytes) {
    void *memory = calloc(1, bytes);
    if (memory) return memory;
    fputs("divvy_testing: out of memory\n", stderr);
    abort();
}

void *dv_mem_grow(void *array, size_t count, size_t *room, size_t item_bytes) {
    if (count < *room) return array;
    *room = *room ? *room * 2 : 4;
    void *grown = dv_mem_alloc(*room * item_bytes);
    if (count) memcpy(grown, array, count * item_bytes);
    free(array);
    return grown;
}

/* ---- paths ---- */

static uint64_t hash_of(const char *text, size_t bytes) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    while (bytes >= 8) {
        uint64_t word;
        memcpy(&word, text, 8);
        hash = (hash ^ word) * UINT64_C(0x9fb21c651e98df25);
        hash ^= hash >> 29;
        text += 8;
        bytes -= 8;
    }
    for (; bytes; bytes--, text++) hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return hash ^ (hash >> 32);
}

static dv_mem_path *find_hashed(const dv_mem *mem, const char *text, size_t bytes, uint64_t hash) {
    if (!mem->path_room) return NULL;
    for (dv_mem_path *p = mem->paths[hash & (mem->path_room - 1)]; p; p = p->next) {
        if (p->hash == hash && p->bytes == bytes && memcmp(p->text, text, bytes) == 0) return p;
    }
    return NULL;
}

static void grow_paths(dv_mem *mem) {
    size_t room = mem->path_room ? mem->path_room * 2 : 64;
    dv_mem_path **chains = dv_mem_alloc(room * sizeof(dv_mem_path *));
    for (size_t i = 0; i < mem->path_room; i++) {
        for (dv_mem_path *p = mem->paths[i], *next; p; p = next) {
            next = p->next;
            p->next = chains[p->hash & (room - 1)];
            chains[p->hash & (room - 1)] = p;
        }
    }
    free(mem->paths);
    mem->paths = chains;
    mem->path_room = room;
}

static dv_mem_path *add_path(dv_mem *mem, const char *text, size_t bytes, uint64_t hash) {
    if (mem->path_count >= mem->path_room) grow_paths(mem);
    size_t places_bytes = (size_t)mem->server_count * sizeof(dv_mem_place);
    dv_mem_path *p = dv_mem_alloc(sizeof *p + places_bytes + bytes + 1);
    p->hash = hash;
    p->refs = 1;
    p->bytes = (uint32_t)bytes;
    p->text = (char *)p + sizeof *p + places_bytes;
    memcpy(p->text, text, bytes);
    dv_mem_path **chain = &mem->paths[hash & (mem->path_room - 1)];
    p->next = *chain;
    *chain = p;
    mem->path_count++;
    return p;
}

/* The parent of "/a/b" is "/a", that of "/a" is "/", which has none. */
static size_t parent_bytes(const char *text, size_t bytes) {
    size_t slash = bytes - 1;
    while (slash > 0 && text[slash] != '/') slash--;
    return slash ? slash : 1;
}

dv_mem_path *dv_mem_path_get(dv_mem *mem, const char *text, size_t bytes) {
    uint64_t hash = hash_of(text, bytes);
    dv_mem_path *found = find_hashed(mem, text, bytes, hash);
    if (found) return dv_mem_path_ref(found);
    dv_mem_path *made = add_path(mem, text, bytes, hash);
    /* With all that lies above it, up to what is there. */
    for (dv_mem_path *p = made; p->bytes > 1;) {
        size_t above_bytes = parent_bytes(text, p->bytes);
        hash = hash_of(text, above_bytes);
        found = find_hashed(mem, text, above_bytes, hash);
        p->parent = found ? dv_mem_path_ref(found) : add_path(mem, text, above_bytes, hash);
        if (found) break;
        p = p->parent;
    }
    return made;
}

dv_mem_path *dv_mem_path_find(const dv_mem *mem, const char *text) {
    size_t bytes = strlen(text);
    return find_hashed(mem, text, bytes, hash_of(text, bytes));
}

void dv_mem_path_unref(dv_mem *mem, dv_mem_path *path) {
    while (path && --path->refs == 0) {
        dv_mem_path **place = &mem->paths[path->hash & (mem->path_room - 1)];
        while (*place != path) place = &(*place)->next;
        *place = path->next;
        mem->path_count--;
        dv_mem_path *parent = path->parent;
        free(path);
        path = parent;
    }
}

const char *dv_mem_path_name(const dv_mem_path *path) {
    return strrchr(path->text, '/') + 1;
}

/* ---- data ---- */

dv_mem_blob *dv_mem_blob_new(const void *data, size_t bytes) {
    if (!bytes) return NULL;
    dv_mem_blob *blob = dv_mem_alloc(sizeof *blob + bytes + 1);
    blob->refs = 1;
    blob->bytes = bytes;
    memcpy(blob->data, data, bytes);
    return blob;
}

dv_mem_blob *dv_mem_blob_ref(dv_mem_blob *blob) {
    if (blob) blob->refs++;
    return blob;
}

void dv_mem_blob_unref(dv_mem_blob *blob) {
    if (blob && --blob->refs == 0) free(blob);
}

/* Returns the same number to all that authenticate with the same credentials. */
uint32_t dv_mem_identity(dv_mem *mem, const char *auth) {
    for (uint32_t i = 0; i < mem->identity_count; i++) {
        if (strcmp(mem->identities[i], auth) == 0) return i + 1;
    }
    mem->identities = dv_mem_grow(mem->identities, mem->identity_count, &mem->identity_room, sizeof(char *));
    mem->identities[mem->identity_count] = dv_mem_alloc(strlen(auth) + 1);
    strcpy(mem->identities[mem->identity_count], auth);
    return ++mem->identity_count;
}

/* Keeps it until the end: sessions are few and small. */
dv_mem_session *dv_mem_session_new(dv_mem *mem, int server, int64_t timeout_ms) {
    dv_mem_session *s = dv_mem_alloc(sizeof *s + (size_t)mem->server_count * sizeof(dv_mem_seat));
    mem->sessions = dv_mem_grow(mem->sessions, mem->session_count, &mem->session_room, sizeof(dv_mem_session *));
    mem->sessions[mem->session_count++] = s;
    s->id = (int64_t)((uint64_t)(server + 1) << 56 | mem->session_count);
    s->timeout_ms = timeout_ms;
    for (int i = 0; i < mem->server_count; i++) s->seats[i].owner = -1;
    return s;
}

dv_mem_session *dv_mem_session_find(const dv_mem *mem, int64_t id) {
    uint64_t number = (uint64_t)id & UINT64_MAX >> 8;
    dv_mem_session *s = number > 0 && number <= mem->session_count ? mem->sessions[number - 1] : NULL;
    return s && s->id == id ? s : NULL;
}
