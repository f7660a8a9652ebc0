/* JSON as the looking subcommands print it. SPDX-License-Identifier: Apache-2.0
 *
 * Everything returns whether there was memory for it. Texts that are not UTF-8 are encoded as dv_text_plain() does. */
#ifndef DV_TABLE_JSON_H
#define DV_TABLE_JSON_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

cJSON *dv_json_add_object(cJSON *array);
bool dv_json_text(cJSON *to, const char *key, const char *text);
bool dv_json_text_or_null(cJSON *to, const char *key, const char *text); /* null for NULL and "" */
bool dv_json_number(cJSON *to, const char *key, int64_t number);
bool dv_json_number_or_null(cJSON *to, const char *key, int64_t number); /* null for 0 */
bool dv_json_bool(cJSON *to, const char *key, bool value);
bool dv_json_token(cJSON *to, int64_t token);     /* "token", as a string: numbers lose digits in many a reader */
bool dv_json_session(cJSON *to, int64_t session); /* "session", as 0x and hexadecimal digits */
bool dv_json_age(cJSON *to, int64_t ms);          /* "age_ms", not below 0 */

/* The text of `json`, with a newline, if `complete`, and NULL otherwise. Deletes `json`, which may be NULL. */
char *dv_json_line(cJSON *json, bool complete);

#endif
