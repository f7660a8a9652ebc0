/* The number that the server appends to the name of a sequential node. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_SEQUENCE_H
#define DV_SEQUENCE_H

#include <stdbool.h>
#include <stdint.h>

/* Returns whether `name` ends in `marker` (such as "__lock__"; not empty) and directly after it a number exactly as the
 * server writes it (docs/protocol.md, rule N6). Then *sequence is set; else it is left alone. Nothing need stand before
 * the marker, and a marker further to the left has no meaning. */
bool dv_sequence_parse(const char *name, const char *marker, int32_t *sequence);

/* Compares two contenders' numbers: < 0 if `a` came first, > 0 if `b` did. Returns 0 if they are equal; then no part of
 * the names says who came first (N6). */
int dv_sequence_compare(int32_t a, int32_t b);

#endif
