/* The note of a member: what it gives away, is ready to take, and has given. SPDX-License-Identifier: Apache-2.0
 *
 * docs/protocol.md, rules T0 to T6. Pure: no I/O, no clock. What comes from ZooKeeper is hostile until it is parsed. */
#ifndef DV_NOTE_H
#define DV_NOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plan/text.h"

enum { DV_NOTE_VERSION = 1, DV_NOTE_BYTES_MAX = 64 * 1024 };

/* One item that was given away (T5). */
typedef struct {
    uint32_t item;    /* its index in the set */
    int32_t sequence; /* q: of the place that was given up */
    int64_t seen;     /* r: the mzxid of the new owner's note that was acted on */
} dv_note_given;

/* Indices of items are in the numbering of one set. The first two lists are ascending, without doubles; the third is
 * in the order of giving, the oldest first, and may name an item more than once. */
typedef struct {
    size_t set_count;
    uint32_t set_crc;
    uint64_t set_hash;
    uint32_t *leaving, *ready;
    size_t leaving_count, ready_count;
    dv_note_given *given;
    size_t given_count;
    dv_note_given *by_item; /* a copy of `given` that the parser makes: by item, by q, and by r, the highest first */
} dv_note;

/* Returns whether its numbering is that of the set. */
bool dv_note_is_of(const dv_note *note, const dv_plan_set *set);
bool dv_note_is_leaving(const dv_note *note, uint32_t item);
bool dv_note_is_ready(const dv_note *note, uint32_t item);
/* T6: returns whether a note that was read gives the item to the place of that number and czxid, both above 0. */
bool dv_note_gives(const dv_note *note, uint32_t item, int32_t sequence, int64_t czxid);

/* Prints it within DV_NOTE_BYTES_MAX, cut as T0 says. Tells how many stand in the text: of `leaving` and `ready` from
 * the front, of `given` the newest. Returns a malloc'ed text with a NUL, or NULL when an allocation fails. */
char *dv_note_print(const dv_note *note, size_t *leaving, size_t *ready, size_t *given);
/* Takes a text, which need not end in a NUL. Returns 0; DIVVY_EPROTO, with *fault (may be NULL) filled, for a later
 * version too; DIVVY_ENOMEM. On an error *out is empty. Allocates in proportion to the text. */
int dv_note_parse(dv_note *out, const char *text, size_t bytes, dv_plan_fault *fault);
/* Frees the lists, and empties it. */
void dv_note_clear(dv_note *note);

#endif
