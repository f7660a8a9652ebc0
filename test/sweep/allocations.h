/* The allocations of the library, counted, and one of them refused. SPDX-License-Identifier: Apache-2.0
 *
 * The library that the sweeps are linked with calls these functions instead of malloc() and its kin (symbols.txt);
 * cJSON is made to by its hooks, whose blocks free() does not know: text that cJSON printed is released by
 * cJSON_free(), or the sweep aborts. The ensemble, the scenarios and the native client go on with the C library's own.
 */
#ifndef DV_SWEEP_ALLOCATIONS_H
#define DV_SWEEP_ALLOCATIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void *sweep_malloc(size_t bytes);
void *sweep_calloc(size_t count, size_t bytes);
void *sweep_realloc(void *old, size_t bytes);
char *sweep_strdup(const char *text);
char *sweep_strndup(const char *text, size_t bytes);
void sweep_free(void *memory);

/* Returns whether a call of the system is to fail, with errno set to `error`; calls.c. */
bool sweep_call_fails(void *site, int error);
/* Returns whether a stream in memory has no room, with errno set. */
bool sweep_stream_fails(void *site);
/* From now on calls of the system are counted and refused, and not allocations. */
void sweep_allocations_count_calls(void);

/* Count from now on, and refuse the first-th allocation and those behind it, `length` in all; first 0: none. */
void sweep_allocations_arm(size_t first, size_t length);
void sweep_allocations_disarm(void);
/* Nothing is counted or refused between a pause and its end: for what a scenario itself makes with the library. */
void sweep_allocations_pause(bool paused);
/* Sets how to find that the time for refusing is over, though fewer than `length` were refused. `over` is asked
 * once one was. NULL: the time is never over. */
void sweep_allocations_until(bool (*over)(void *user), void *user);
/* Return how many allocations there were while armed, and how many of them were refused. */
size_t sweep_allocations_seen(void);
size_t sweep_allocations_refused(void);
/* Returns how many places of the library have asked for memory while armed, since the program began. */
size_t sweep_allocation_sites(void);
/* Returns how many allocations were not freed yet. */
size_t sweep_allocations_outstanding(void);
/* While `now`, keeps the callers of each that is counted. */
void sweep_allocations_keep_callers(bool now);
/* Returns a number of the callers of the at-th, from 1, that was counted last: of who called, and who called them. */
uint64_t sweep_allocation_callers(size_t at);
/* Keep in mind, from now on, who asks for what; that takes time. */
void sweep_allocations_note_all(void);
/* Prints to stderr the caller of the first refused allocation, or, with `leaked`, of the oldest outstanding one. */
void sweep_allocations_explain(bool leaked);
void sweep_allocations_forget(void);

#endif
