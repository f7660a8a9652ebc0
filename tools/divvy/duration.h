/* Durations as people write them. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_DURATION_H
#define DV_DURATION_H

#include <stdint.h>

/* The forms that dv_duration_parse() reads, for messages. */
#define DV_DURATION_FORMS "a number with ms, s, m or h behind it, such as 300ms, 4s or 1.5m"

/* The longest duration there is: 1000 hours. */
#define DV_DURATION_MAX_MS (INT64_C(1000) * 3600 * 1000)

/*
 * `300ms`, `4s`, `2m`, `1h`; a bare number is seconds. Decimals may be given: `1.5m`. Parts of a millisecond are
 * rounded up, so that nothing but zero becomes zero. The locale plays no part.
 *
 * Returns 0; -1 when the text is none of this; -2 when it is longer than DV_DURATION_MAX_MS.
 */
int dv_duration_parse(const char *text, int64_t *out_ms);

#endif
