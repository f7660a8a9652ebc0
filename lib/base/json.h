/* JSON: the text of a value, and whether a text is one, without memory. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_JSON_H
#define DV_JSON_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

/* Returns whether the text is JSON. If cJSON refuses such a text, an allocation has failed. cJSON may also take a text
 * that this function refuses, since it is less strict. Values nested deeper than 64 are refused here. */
bool dv_json_is_valid(const char *text, size_t bytes);

/* Prints `json` into memory of malloc()'s, which the caller frees with free(). The library prints nowhere else: cJSON
 * takes its memory from the host program, if that has called cJSON_InitHooks().
 * Returns NULL when an allocation failed, or when `json` is NULL. */
char *dv_json_print(const cJSON *json);

#endif
