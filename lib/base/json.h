/* JSON: the text of a value, and whether a text is one, without memory. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_JSON_H
#define DV_JSON_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

/* Returns whether the text is JSON, nested at most 64 deep. cJSON, which is less strict, does not tell a text that it
 * refuses from a failed allocation: if it refuses one that passes here, an allocation has failed. */
bool dv_json_is_valid(const char *text, size_t bytes);

/* Prints `json` into memory for free(); cJSON's may be of another heap, by cJSON_InitHooks() of the host program. The
 * library prints nowhere else. Returns NULL when an allocation failed, or when `json` is NULL. */
char *dv_json_print(const cJSON *json);

#endif
