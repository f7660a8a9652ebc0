/* Record: what a lease, or a contender for one, says of its owner. SPDX-License-Identifier: Apache-2.0 */
#include "recipe/record.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/ascii.h"
#include "base/json.h"
#include "base/padded.h"
#include "base/utf8.h"

/* ---- writing ---- */

bool dv_record_add_process(cJSON *json, const char *identifier) {
    char host[256] = "", since[32];
    gethostname(host, sizeof host - 1);
    if (!dv_is_utf8(host)) host[0] = '\0';
    time_t now = time(NULL);
    struct tm utc;
    strftime(since, sizeof since, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    return cJSON_AddStringToObject(json, "id", identifier) && cJSON_AddStringToObject(json, "host", host) &&
           cJSON_AddNumberToObject(json, "pid", getpid()) && cJSON_AddStringToObject(json, "since", since);
}

char *dv_record_print(const char *identifier, uint32_t count) {
    cJSON *json = cJSON_CreateObject();
    bool complete = json && dv_record_add_process(json, identifier) && cJSON_AddNumberToObject(json, "count", count);
    char *text = complete ? dv_json_print(json) : NULL;
    cJSON_Delete(json);
    return text;
}

/* ---- text ---- */

/* E11: undoes, in place, what Python's repr() makes of bytes, "b'worker'". Any other text stays as it is. */
static void undo_python_bytes(char *text) {
    size_t bytes = strlen(text);
    if (bytes < 3 || text[0] != 'b' || (text[1] != '\'' && text[1] != '"') || text[bytes - 1] != text[1]) return;
    char *to = text;
    const char *end = text + bytes - 1;
    for (const char *at = text + 2; at < end; at++) {
        if (*at != '\\' || at + 1 >= end) {
            *to++ = *at;
            continue;
        }
        char escaped = *++at;
        int byte = escaped == 'x' && at + 2 < end ? dv_hex_byte(at + 1) : -1;
        if (byte > 0) {
            *to++ = (char)byte;
            at += 2;
        } else {
            *to++ = (char)(escaped == 'n' ? '\n' : escaped == 't' ? '\t' : escaped == 'r' ? '\r' : escaped);
        }
    }
    *to = '\0';
}

/* ---- reading ---- */

static char *text_of(const cJSON *json, const char *name) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, name);
    return strdup(cJSON_IsString(item) ? item->valuestring : "");
}

static double number_of(const cJSON *json, const char *name, double least, double most, double otherwise) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, name);
    bool good = cJSON_IsNumber(item) && item->valuedouble >= least && item->valuedouble <= most;
    return good ? item->valuedouble : otherwise;
}

static dv_record_state keep_or_free(dv_record *record) {
    if (record->identifier && record->host && record->time) return DV_RECORD_GOOD;
    dv_record_free(record);
    return DV_RECORD_OUT_OF_MEMORY;
}

/* NULL: it is none, or, with *out_of_memory, there was no memory to tell. */
static cJSON *parse_text(const char *data, size_t data_bytes, bool *out_of_memory) {
    char *text = dv_padded_copy(data, data_bytes);
    cJSON *json = text ? cJSON_ParseWithLength(text, data_bytes) : NULL;
    *out_of_memory = !text || (!json && dv_json_is_valid(text, data_bytes));
    free(text);
    return json;
}

static dv_record_state parse_json(const char *data, size_t data_bytes, dv_record *out) {
    if (!dv_is_shallow(data, data_bytes, DV_RECORD_DEPTH_MAX)) return DV_RECORD_BAD;
    bool out_of_memory;
    cJSON *json = parse_text(data, data_bytes, &out_of_memory);
    if (out_of_memory) return DV_RECORD_OUT_OF_MEMORY;
    bool good = cJSON_IsObject(json) && cJSON_IsString(cJSON_GetObjectItemCaseSensitive(json, "id"));
    if (good) {
        *out = (dv_record){.identifier = text_of(json, "id"),
                           .host = text_of(json, "host"),
                           .time = text_of(json, "since"),
                           .pid = (int64_t)number_of(json, "pid", 1, INT32_MAX, 0),
                           .count = (uint32_t)number_of(json, "count", 1, INT32_MAX, 1)};
    }
    cJSON_Delete(json);
    return good ? keep_or_free(out) : DV_RECORD_BAD;
}

static dv_record_state parse_identifier(const char *data, size_t data_bytes, dv_record *out) {
    if (memchr(data, '\0', data_bytes)) return DV_RECORD_BAD;
    *out = (dv_record){
        .identifier = strndup(data, data_bytes), .host = strdup(""), .time = strdup(""), .pid = 0, .count = 1};
    dv_record_state state = keep_or_free(out);
    if (state != DV_RECORD_GOOD) return state;
    undo_python_bytes(out->identifier);
    if (dv_is_utf8(out->identifier)) return DV_RECORD_GOOD;
    dv_record_free(out);
    return DV_RECORD_BAD;
}

dv_record_state dv_record_parse(const char *data, size_t data_bytes, bool ours, dv_record *out) {
    *out = (dv_record){.count = 1};
    if (data_bytes > DV_RECORD_BYTES_MAX) return DV_RECORD_BAD;
    if (ours) return parse_json(data, data_bytes, out);
    return parse_identifier(data_bytes ? data : "", data_bytes, out);
}

void dv_record_free(dv_record *record) {
    free(record->identifier);
    free(record->host);
    free(record->time);
    *record = (dv_record){.count = 1};
}
