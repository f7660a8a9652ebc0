/* Whether a text is JSON, without memory. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_JSON_H
#define DV_JSON_H

#include <stdbool.h>
#include <stddef.h>

/* Whether cJSON, given memory, would take this text: where it did not, memory was out. A text of which this says no may
 * still be taken: cJSON is less strict. What is nested deeper than 64 is none here. */
bool dv_json_is_valid(const char *text, size_t bytes);

#endif
