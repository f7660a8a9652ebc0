/* The allocations of the library, counted, and one of them refused. SPDX-License-Identifier: Apache-2.0 */
#include "allocations.h"

#include <errno.h>
#include <execinfo.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <link.h>

enum { BUCKETS = 4096, FRAMES = 12, SITES_MAX = 4096 };

typedef struct block {
    struct block *next;
    void *memory;
    size_t order;
    int frame_count;
    void *frames[FRAMES];
} block;

/* The native client has threads of its own, on which the library allocates. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static block *blocks[BUCKETS];
static size_t block_count, orders;
static bool armed, paused, notes_all, counts_calls;
static bool (*is_over)(void *user);
static void *is_over_user;
static size_t first, length, seen, refused;
static block refusal;
static void *sites[SITES_MAX];
static size_t site_count;
static bool keeps_callers;
static uint64_t *callers; /* of each that is counted, in order */
static size_t callers_room;

static block **place_of(void *memory) {
    block **place = &blocks[((uintptr_t)memory >> 4) % BUCKETS];
    while (*place && (*place)->memory != memory) place = &(*place)->next;
    return place;
}

static void note_site(void *site) {
    for (size_t i = 0; i < site_count; i++)
        if (sites[i] == site) return;
    if (site_count < SITES_MAX) sites[site_count++] = site;
}

/* Returns a number of the caller at `site` and of its callers: FNV-1a of their addresses. */
static uint64_t callers_of(const void *site) {
    enum { OWN_FRAMES = 6, DEPTH = 4 };
    void *frames[OWN_FRAMES + DEPTH];
    int count = backtrace(frames, OWN_FRAMES + DEPTH), own = 0;
    uint64_t number = 1469598103934665603u;
    while (own < count && frames[own] != site) own++;
    for (int i = own; i < count && i < own + DEPTH; i++) number = (number ^ (uintptr_t)frames[i]) * 1099511628211u;
    return number;
}

/* Keeps the callers of the one that was counted last. */
static void keep_callers(const void *site) {
    if (seen > callers_room) {
        callers_room = 2 * seen;
        callers = realloc(callers, callers_room * sizeof *callers);
        if (!callers) abort();
    }
    callers[seen - 1] = callers_of(site);
}

/* Returns whether this one, of those that are counted, is to be refused. */
static bool refuse_counted(void *site) {
    if (!armed || paused) return false;
    seen++;
    note_site(site);
    if (keeps_callers) keep_callers(site);
    if (!first || seen < first || seen >= first + length) return false;
    if (refused && is_over && is_over(is_over_user)) return false;
    if (refused++ == 0 && notes_all) refusal.frame_count = backtrace(refusal.frames, FRAMES);
    errno = ENOMEM;
    return true;
}

static bool refuse(void *site) {
    return !counts_calls && refuse_counted(site);
}

bool sweep_call_fails(void *site, int error) {
    pthread_mutex_lock(&mutex);
    bool fails = counts_calls && refuse_counted(site);
    pthread_mutex_unlock(&mutex);
    if (fails) errno = error;
    return fails;
}

bool sweep_stream_fails(void *site) {
    pthread_mutex_lock(&mutex);
    bool fails = refuse(site);
    pthread_mutex_unlock(&mutex);
    return fails;
}

static void keep(void *memory) {
    if (!memory) return;
    block *b = calloc(1, sizeof *b);
    if (!b) abort();
    b->memory = memory;
    b->order = ++orders;
    if (notes_all) b->frame_count = backtrace(b->frames, FRAMES);
    block **place = place_of(memory);
    b->next = *place;
    *place = b;
    block_count++;
}

static bool let_go(void *memory) {
    block **place = place_of(memory), *gone = *place;
    if (!gone) return false;
    *place = gone->next;
    free(gone);
    block_count--;
    return true;
}

void *sweep_malloc(size_t bytes) {
    pthread_mutex_lock(&mutex);
    void *memory = refuse(__builtin_return_address(0)) ? NULL : malloc(bytes);
    keep(memory);
    pthread_mutex_unlock(&mutex);
    return memory;
}

void *sweep_calloc(size_t count, size_t bytes) {
    pthread_mutex_lock(&mutex);
    void *memory = refuse(__builtin_return_address(0)) ? NULL : calloc(count, bytes);
    keep(memory);
    pthread_mutex_unlock(&mutex);
    return memory;
}

void *sweep_realloc(void *old, size_t bytes) {
    pthread_mutex_lock(&mutex);
    void *memory = NULL;
    if (!refuse(__builtin_return_address(0))) {
        if (old) let_go(old);
        memory = realloc(old, bytes);
        keep(memory);
    }
    pthread_mutex_unlock(&mutex);
    return memory;
}

static void *copy(void *site, const char *text, size_t bytes) {
    pthread_mutex_lock(&mutex);
    char *memory = refuse(site) ? NULL : malloc(bytes + 1);
    if (memory) {
        memcpy(memory, text, bytes);
        memory[bytes] = '\0';
    }
    keep(memory);
    pthread_mutex_unlock(&mutex);
    return memory;
}

char *sweep_strdup(const char *text) {
    return copy(__builtin_return_address(0), text, strlen(text));
}

char *sweep_strndup(const char *text, size_t bytes) {
    return copy(__builtin_return_address(0), text, strnlen(text, bytes));
}

__attribute__((format(printf, 3, 0))) static int print(void *site, char **out, const char *format, va_list arguments) {
    pthread_mutex_lock(&mutex);
    int count = refuse(site) ? -1 : vasprintf(out, format, arguments);
    if (count >= 0) keep(*out);
    else *out = (char *)(uintptr_t)0x5eed; /* what it is then is undefined */
    pthread_mutex_unlock(&mutex);
    return count;
}

/* The library's calls arrive here under these names, which nobody else uses. */
int sweep_vasprintf(char **out, const char *format, va_list arguments) __attribute__((format(printf, 2, 0)));
int sweep_vasprintf(char **out, const char *format, va_list arguments) {
    return print(__builtin_return_address(0), out, format, arguments);
}

int sweep_vasprintf_chk(char **out, int flag, const char *format, va_list arguments)
    __attribute__((format(printf, 3, 0)));
int sweep_vasprintf_chk(char **out, int flag, const char *format, va_list arguments) {
    (void)flag;
    return print(__builtin_return_address(0), out, format, arguments);
}

int sweep_asprintf(char **out, const char *format, ...) __attribute__((format(printf, 2, 3)));
int sweep_asprintf(char **out, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int count = print(__builtin_return_address(0), out, format, arguments);
    va_end(arguments);
    return count;
}

int sweep_asprintf_chk(char **out, int flag, const char *format, ...) __attribute__((format(printf, 3, 4)));
int sweep_asprintf_chk(char **out, int flag, const char *format, ...) {
    va_list arguments;
    (void)flag;
    va_start(arguments, format);
    int count = print(__builtin_return_address(0), out, format, arguments);
    va_end(arguments);
    return count;
}

void sweep_free(void *memory) {
    if (!memory) return;
    pthread_mutex_lock(&mutex);
    let_go(memory);
    pthread_mutex_unlock(&mutex);
    free(memory);
}

void sweep_allocations_arm(size_t from, size_t count) {
    pthread_mutex_lock(&mutex);
    armed = true;
    first = from;
    length = count;
    seen = refused = 0;
    pthread_mutex_unlock(&mutex);
}

void sweep_allocations_disarm(void) {
    pthread_mutex_lock(&mutex);
    armed = false;
    pthread_mutex_unlock(&mutex);
}

void sweep_allocations_note_all(void) {
    notes_all = true;
}

void sweep_allocations_count_calls(void) {
    counts_calls = true;
}

void sweep_allocations_pause(bool now) {
    paused = now;
}

void sweep_allocations_until(bool (*over)(void *user), void *user) {
    is_over = over;
    is_over_user = user;
}

void sweep_allocations_keep_callers(bool now) {
    keeps_callers = now;
}

uint64_t sweep_allocation_callers(size_t at) {
    return callers[at - 1];
}

size_t sweep_allocations_seen(void) {
    return seen;
}

size_t sweep_allocations_refused(void) {
    return refused;
}

size_t sweep_allocation_sites(void) {
    return site_count;
}

size_t sweep_allocations_outstanding(void) {
    return block_count;
}

void sweep_allocations_forget(void) {
    for (size_t i = 0; i < BUCKETS; i++) {
        for (block *b = blocks[i], *next; b; b = next) {
            next = b->next;
            free(b);
        }
        blocks[i] = NULL;
    }
    block_count = 0;
}

/* Names of functions and lines, where addr2line is installed; else addresses of the program's file. */
static void print_frames(const block *b) {
    char command[1024];
    uintptr_t base = _r_debug.r_map ? (uintptr_t)_r_debug.r_map->l_addr : 0;
    int bytes = snprintf(command, sizeof command, "addr2line -fips -e /proc/%d/exe", (int)getpid());
    for (int i = 1; i < b->frame_count; i++)
        bytes += snprintf(command + bytes, sizeof command - (size_t)bytes, " %#lx",
                          (unsigned long)((uintptr_t)b->frames[i] - base - 1));
    fprintf(stderr, "    %s\n", command);
    fflush(stderr);
    if (system(strcat(command, " 1>&2")) != 0) fprintf(stderr, "    (no addr2line)\n");
}

void sweep_allocations_explain(bool leaked) {
    const block *oldest = NULL;
    for (size_t i = 0; leaked && i < BUCKETS; i++)
        for (const block *b = blocks[i]; b; b = b->next)
            if (!oldest || b->order < oldest->order) oldest = b;
    if (leaked && oldest) print_frames(oldest);
    if (!leaked && refused) print_frames(&refusal);
}
