/* A member's description of itself, in its node's data: docs/protocol.md, D31. SPDX-License-Identifier: Apache-2.0 */
#include "plan/member_data.h"

#include <assert.h>
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/padded.h"
#include "base/utf8.h"
#include "client/client.h"
#include "plan/text.h"
#include "recipe/record.h"

enum { ZXID_DIGITS = 16 };

static const char digits[] = "0123456789abcdef";

/* ---- writing ---- */

static bool add_first(cJSON *json, int64_t first_czxid) {
    char text[ZXID_DIGITS + 1];
    snprintf(text, sizeof text, "%016" PRIx64, (uint64_t)first_czxid);
    return first_czxid == 0 || cJSON_AddStringToObject(json, "first_czxid", text);
}

static bool add_tags(cJSON *json, const char *tags) {
    if (tags[0] == '\0') return true;
    cJSON *array = cJSON_AddArrayToObject(json, "tags");
    for (const char *at = tags; array != NULL && *at != '\0';) {
        char tag[DV_TAG_BYTES_MAX + 1];
        size_t bytes = strcspn(at, ",");
        assert(bytes < sizeof tag);
        memcpy(tag, at, bytes);
        tag[bytes] = '\0';
        cJSON *text = cJSON_CreateString(tag);
        if (text == NULL || !cJSON_AddItemToArray(array, text)) return false;
        at += bytes + (at[bytes] == ',');
    }
    return array != NULL;
}

static bool add_facts(cJSON *json, const dv_member_facts *f) {
    return (!f->is_static || cJSON_AddTrueToObject(json, "static")) &&
           (f->weight == DV_WEIGHT || cJSON_AddNumberToObject(json, "weight", f->weight)) &&
           (f->zone[0] == '\0' || cJSON_AddStringToObject(json, "zone", f->zone)) &&
           (f->rejoin_delay_ms == 0 || cJSON_AddNumberToObject(json, "rejoin_delay_ms", (double)f->rejoin_delay_ms)) &&
           add_tags(json, f->tags) && (f->cap == 0 || cJSON_AddNumberToObject(json, "cap", f->cap)) &&
           add_first(json, f->first_czxid);
}

/* No string has these bytes in it, since its own quotes are escaped. */
void dv_member_data_set_first(char *text, int64_t first_czxid) {
    static const char key[] = "\"first_czxid\":\"";
    char *at = strstr(text, key);
    if (at == NULL) return;
    at += sizeof key - 1;
    for (int n = ZXID_DIGITS; n-- > 0; first_czxid >>= 4) at[n] = digits[first_czxid & 0xf];
}

char *dv_member_data_print(const char *identifier, const dv_member_facts *facts) {
    cJSON *json = cJSON_CreateObject();
    bool complete = json != NULL && dv_record_add_process(json, identifier) && add_facts(json, facts);
    char *text = complete ? dv_json_print(json) : NULL;
    cJSON_Delete(json);
    return text;
}

/* ---- reading ---- */

enum { STATIC, WEIGHT, ZONE, REJOIN_DELAY, FIRST_CZXID, TAGS, CAP, FACTS };

/* Returns false when an allocation fails. *out is NULL where there is nothing that could be read. */
static bool parse_text(cJSON **out, const char *data, size_t data_bytes) {
    *out = NULL;
    if (data_bytes == 0 || data_bytes > DV_MEMBER_DATA_BYTES_MAX || memchr(data, '\0', data_bytes) != NULL ||
        !dv_is_shallow(data, data_bytes, DV_MEMBER_DATA_DEPTH_MAX))
        return true;
    char *text = dv_padded_copy(data, data_bytes);
    if (text == NULL) return false;
    /* An escaped NUL ends a string for the parser, so that it would be read as another than it is. */
    bool readable = strstr(text, "\\u0000") == NULL;
    if (readable) *out = cJSON_ParseWithLength(text, data_bytes);
    bool out_of_memory = readable && *out == NULL && dv_json_is_valid(text, data_bytes);
    free(text);
    return !out_of_memory;
}

/* The values of those that are there; false where one is there twice, as readers could disagree about which counts. */
static bool find_facts(const cJSON *json, const cJSON *facts[FACTS]) {
    static const char *const names[FACTS] = {"static",      "weight", "zone", "rejoin_delay_ms",
                                             "first_czxid", "tags",   "cap"};
    for (const cJSON *item = json->child; item != NULL; item = item->next) {
        for (size_t f = 0; f < FACTS; f++) {
            if (strcmp(item->string, names[f]) != 0) continue;
            if (facts[f] != NULL) return false;
            facts[f] = item;
        }
    }
    return true;
}

static int64_t integer_of(const cJSON *item, int64_t most, int64_t otherwise) {
    if (item == NULL || !cJSON_IsNumber(item) || !(item->valuedouble >= 0 && item->valuedouble <= (double)most))
        return otherwise;
    int64_t integer = (int64_t)item->valuedouble;
    return (double)integer == item->valuedouble ? integer : otherwise;
}

/* Returns whether a plan can name this zone too (D5, D9): else one odd member would make a plan that nobody takes. */
static bool is_zone(const cJSON *item) {
    return item != NULL && cJSON_IsString(item) && strlen(item->valuestring) <= DV_PLAN_ZONE_BYTES_MAX &&
           dv_is_utf8(item->valuestring);
}

/* One tag that is none, or one too many, and none of them counts. */
static void take_tags(char tags[DV_TAGS_BYTES], const cJSON *array) {
    tags[0] = '\0';
    if (array == NULL || !cJSON_IsArray(array)) return;
    for (const cJSON *item = array->child; item != NULL; item = item->next) {
        if (cJSON_IsString(item) && dv_tags_add(tags, item->valuestring, strlen(item->valuestring)) == NULL) continue;
        tags[0] = '\0';
        return;
    }
}

static int64_t zxid_of(const cJSON *item) {
    if (item == NULL || !cJSON_IsString(item) || strlen(item->valuestring) != ZXID_DIGITS) return 0;
    if (strspn(item->valuestring, digits) != ZXID_DIGITS || item->valuestring[0] > '7') return 0;
    return (int64_t)strtoull(item->valuestring, NULL, 16);
}

bool dv_member_data_parse(const char *data, size_t data_bytes, dv_member_facts *out) {
    cJSON *json;
    const cJSON *facts[FACTS] = {NULL};
    if (!parse_text(&json, data, data_bytes)) return false;
    if (json == NULL || !cJSON_IsObject(json) || !find_facts(json, facts)) memset((void *)facts, 0, sizeof facts);
    *out = (dv_member_facts){.is_static = cJSON_IsTrue(facts[STATIC]),
                             .weight = (uint32_t)integer_of(facts[WEIGHT], UINT32_MAX, DV_WEIGHT),
                             .zone = strdup(is_zone(facts[ZONE]) ? facts[ZONE]->valuestring : ""),
                             .rejoin_delay_ms = integer_of(facts[REJOIN_DELAY], DV_TIME_MAX_MS, 0),
                             .cap = (uint32_t)integer_of(facts[CAP], UINT32_MAX, 0),
                             .first_czxid = zxid_of(facts[FIRST_CZXID])};
    take_tags(out->tags, facts[TAGS]);
    cJSON_Delete(json);
    return out->zone != NULL;
}
