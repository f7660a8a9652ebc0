/* One ephemeral node of ours whose data we change. SPDX-License-Identifier: Apache-2.0
 *
 * docs/protocol.md, T0, T5: our note; D46: our report of loads. Each write is at the version that the one before it
 * leaves, so nobody else's is taken for ours, and none is applied behind one that failed. */
#ifndef DV_OWN_NOTE_H
#define DV_OWN_NOTE_H

#include "client/client.h"

typedef struct dv_own_note dv_own_note;

enum { DV_OWN_NOTE_WRITES = 8 /* so many may be under way, one behind the other */ };

/* Heard from the loop, and inside dv_own_note_leave(). */
typedef struct {
    /* It is there, or cannot be had. Once, unless gone() comes first. */
    void (*settled)(void *owner, dv_own_note *note, int64_t now);
    /* The first write that was under way has ended: 0; or an error, and it did nothing, nor the deletes with it; then
     * all behind it end with errors, too. */
    void (*wrote)(void *owner, dv_own_note *note, int error, int64_t now);
    /* Nothing of it is left: the last call. */
    void (*gone)(void *owner, dv_own_note *note, int64_t now);
    const char *without; /* completes "it cannot be made, so ..." */
} dv_own_note_events;

/* Makes the node `directory`/`name`, with `text`, and the directory if it is missing. Takes over the text; `directory`
 * lives until gone(). Returns 0, or DIVVY_ELIMIT, DIVVY_ENOMEM; then *out is NULL and nothing happens. */
int dv_own_note_make(dv_own_note **out, divvy_client *client, const char *directory, const char *name, char *text,
                     const dv_own_note_events *events, void *owner);
/* Returns whether it is there, so that others can read it. */
bool dv_own_note_stands(const dv_own_note *own);
/* Returns whether it can be written now, and no write is under way. */
bool dv_own_note_is_free(const dv_own_note *own);
/* Returns whether it can be written now, behind what is under way. */
bool dv_own_note_has_room(const dv_own_note *own);
/* Returns the zxid of the last answered write (0: none), and its servers' time; -1: a later one failed or was lost. */
int64_t dv_own_note_written(const dv_own_note *own, int64_t *written_ms);
/* Writes it, while it has room, and deletes these nodes, all or nothing. Takes over the text; the paths live until
 * wrote(). Returns 0, or DIVVY_ENOMEM and nothing happens. */
int dv_own_note_write(dv_own_note *own, char *text, const char *const *deletes, size_t count);
/* Deletes it. gone() follows, after wrote() of what is under way; which comes in this call if nothing of it is sent. A
 * second call does nothing. */
void dv_own_note_leave(dv_own_note *own, int64_t now);

#endif
