/* The number that the server appends to the name of a sequential node. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_SEQUENCE_H
#define DV_SEQUENCE_H

#include <stdbool.h>
#include <stdint.h>

/* Returns whether `name` ends in `marker` (not empty) and a number as N6 has it. Sets *sequence only then. */
bool dv_sequence_parse(const char *name, const char *marker, int32_t *sequence);

/* Returns < 0 if the contender of `a` came first, > 0 if that of `b` did, 0 if they are equal (N6). */
int dv_sequence_compare(int32_t a, int32_t b);

#endif
