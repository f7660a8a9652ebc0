/* JSON as the looking subcommands print it. SPDX-License-Identifier: Apache-2.0 */
#include "table_json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

cJSON *dv_json_add_object(cJSON *array) {
    cJSON *object = cJSON_CreateObject();
    if (object && cJSON_AddItemToArray(array, object)) return object;
    cJSON_Delete(object);
    return NULL;
}

bool dv_json_text(cJSON *to, const char *key, const char *text) {
    char *plain = dv_text_plain(text);
    bool added = plain && cJSON_AddStringToObject(to, key, plain);
    free(plain);
    return added;
}

bool dv_json_text_or_null(cJSON *to, const char *key, const char *text) {
    return text && *text ? dv_json_text(to, key, text) : cJSON_AddNullToObject(to, key) != NULL;
}

bool dv_json_number(cJSON *to, const char *key, int64_t number) {
    return cJSON_AddNumberToObject(to, key, (double)number);
}

bool dv_json_number_or_null(cJSON *to, const char *key, int64_t number) {
    return number ? dv_json_number(to, key, number) : cJSON_AddNullToObject(to, key) != NULL;
}

bool dv_json_bool(cJSON *to, const char *key, bool value) {
    return cJSON_AddBoolToObject(to, key, value);
}

bool dv_json_token(cJSON *to, int64_t token) {
    char digits[32];
    snprintf(digits, sizeof digits, "%" PRId64, token);
    return cJSON_AddStringToObject(to, "token", digits);
}

bool dv_json_session(cJSON *to, int64_t session) {
    char digits[32];
    if (session == 0) return cJSON_AddNullToObject(to, "session") != NULL; /* a persistent node */
    snprintf(digits, sizeof digits, "0x%" PRIx64, (uint64_t)session);
    return cJSON_AddStringToObject(to, "session", digits);
}

bool dv_json_age(cJSON *to, int64_t ms) {
    return dv_json_number(to, "age_ms", ms > 0 ? ms : 0);
}

char *dv_json_line(cJSON *json, bool complete) {
    char *text = complete ? cJSON_PrintUnformatted(json) : NULL;
    cJSON_Delete(json);
    char *line = text ? dv_text_json_line(text) : NULL;
    cJSON_free(text);
    return line;
}
