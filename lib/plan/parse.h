/* Shared by the parsers of the root, its parts, and notes (handover/note.h). SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_PLAN_PARSE_H
#define DV_PLAN_PARSE_H

#include "plan/json.h"
#include "plan/text.h"

/* The reader's error; the fault is filled if there is one. */
int dv_plan_fault_tell(const dv_plan_json *j, dv_plan_fault *fault);
/* A string of so many hex digits; 0: as few as it takes. */
uint64_t dv_plan_take_hex(dv_plan_json *j, size_t digits);
int64_t dv_plan_take_zxid(dv_plan_json *j);
/* D3: what a text says of a set, whose count is in range then. */
void dv_plan_take_set(dv_plan_json *j, size_t *count, uint32_t *crc, uint64_t *hash);
/* D3: the version is what every release reads first, and the first thing there. Returns whether it is above this one;
 * takes nothing. */
bool dv_plan_is_newer(dv_plan_json *j, int64_t version);
/* Returns an array with room for one more element, its room being the next power of two. NULL: an allocation failed. */
void *dv_plan_with_room(dv_plan_json *j, void *array, size_t count, size_t element_bytes);

#endif
