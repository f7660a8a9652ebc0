/* The number that the server appends to the name of a sequential node. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_SEQUENCE_H
#define DV_SEQUENCE_H

#include <stdbool.h>
#include <stdint.h>

/* Returns whether `name` ends in `marker` (such as "__lock__"; not empty) and directly after it a number exactly as the
 * server writes it (docs/protocol.md, rule N6). Then *sequence is set; else it is left alone. Nothing need stand before
 * the marker, and a marker further to the left has no meaning. */
bool dv_sequence_parse(const char *name, const char *marker, int32_t *sequence);

/* Compares two contenders' numbers: < 0 if `a` came first, > 0 if `b` did. The server's counter is a signed int.
 * What it hands out past 2147483647 begins at -2147483648, so negative numbers come after all others, and ascend
 * too. Returns 0 if they are equal, which at 2147483647 two contenders can be, for 3.8.0 hands that number out
 * again and again. Then the numbers do not say who came first (rule N6), and no other part of the name may be taken
 * to say it. */
int dv_sequence_compare(int32_t a, int32_t b);

#endif
