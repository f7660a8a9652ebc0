/* A strict reader of JSON for plans: nothing is believed, nothing built up. SPDX-License-Identifier: Apache-2.0
 *
 * It reads from the front to the end, and what it reads is told at once; so a hostile text costs no more memory than
 * the caller puts aside for what it has seen. docs/protocol.md, D2: no white space, integers only, bounded depth. */
#ifndef DV_PLAN_JSON_H
#define DV_PLAN_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plan/text.h"

enum { DV_PLAN_JSON_DEPTH_MAX = 8 };

/* After the first fault everything reads as empty or 0, and all loops end: it has to be asked for only at the end. */
typedef struct {
    const char *begin, *at, *end;
    const char *why; /* static, completes "the text ..."; NULL: no fault so far */
    int error;       /* DIVVY_EPROTO or DIVVY_ENOMEM; 0: no fault so far */
} dv_plan_json;

void dv_plan_json_begin(dv_plan_json *j, const char *text, size_t bytes);
/* Notes a fault, unless there is one already. Always false. */
bool dv_plan_json_fail(dv_plan_json *j, const char *why);
void dv_plan_json_fail_memory(dv_plan_json *j); /* likewise */
/* Takes the end: nothing may follow. Returns whether there was no fault. */
bool dv_plan_json_end(dv_plan_json *j);

int64_t dv_plan_json_integer(dv_plan_json *j, int64_t least, int64_t most);
/* A string that is to have no escapes in it: the bytes between its quotes, at most so many. */
const char *dv_plan_json_plain(dv_plan_json *j, size_t bytes_max, size_t *bytes);
/* A string, malloc'ed, of `least` to `most` bytes of UTF-8 without NUL. NULL: a fault. */
char *dv_plan_json_string(dv_plan_json *j, size_t least, size_t most);
/* A string, into `out`, with a NUL: never more bytes than it takes in the text. Its length; UTF-8 is not looked at. */
size_t dv_plan_json_copy(dv_plan_json *j, char *out);
/* Passes over any value, up to j->at. Returns where it begins; NULL: a fault. */
const char *dv_plan_json_value(dv_plan_json *j);

/* for (bool begun = false; dv_plan_json_element(j, &begun);) read one element, or fail at the end of the text; */
bool dv_plan_json_element(dv_plan_json *j, bool *begun);

/* D2: the keys of an object, in any order, each once unless it is optional; others are passed over. */
typedef struct {
    const char *const *names;
    size_t count;      /* at most 32 */
    uint32_t optional; /* a bit for each name that may be missing */
    uint32_t seen;
    bool begun;
} dv_plan_json_fields;

/* Returns which of the names is next, its value to be read; -1: the object has ended, or a fault. */
int dv_plan_json_field(dv_plan_json *j, dv_plan_json_fields *fields);

/* ---- what the texts of plans and notes share ---- */

/* The reader's error; the fault is filled if there is one. */
int dv_plan_fault_tell(const dv_plan_json *j, dv_plan_fault *fault);
/* A string of so many hex digits; 0: as few as it takes. */
uint64_t dv_plan_take_hex(dv_plan_json *j, size_t digits);
int64_t dv_plan_take_zxid(dv_plan_json *j);
/* D3: what a text says of a set, whose count is in range then. */
void dv_plan_take_set(dv_plan_json *j, size_t *count, uint32_t *crc, uint64_t *hash);
/* D3: returns whether the version, which stands first, is above this one. Takes nothing. */
bool dv_plan_is_newer(dv_plan_json *j, int64_t version);
/* Returns an array with room for one more element, its room being the next power of two. NULL: an allocation failed. */
void *dv_plan_with_room(dv_plan_json *j, void *array, size_t count, size_t element_bytes);

#endif
