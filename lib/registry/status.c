/* Status: a program's description of its service, and the entry made of it. SPDX-License-Identifier: Apache-2.0 */
#include "registry/status.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/utf8.h"
#include "divvy/error.h"
#include "recipe/record.h"
#include "registry/entry.h"
#include "registry/server_time.h"

static const cJSON *field(const cJSON *status, const char *name) {
    return cJSON_GetObjectItemCaseSensitive(status, name);
}

const char *dv_status_text(const cJSON *entry, const char *name) {
    const cJSON *item = field(entry, name);
    return cJSON_IsString(item) ? item->valuestring : NULL;
}

double dv_status_number(const cJSON *entry, const char *name) {
    const cJSON *item = field(entry, name);
    return cJSON_IsNumber(item) ? item->valuedouble : 0;
}

/* ---- checks: each returns a text that completes "the field ...", or NULL ---- */

static const char *check_text(const cJSON *item) {
    return cJSON_IsString(item) && item->valuestring[0] ? NULL : "must be a string that is not empty";
}

static const char *check_number(const cJSON *item) {
    return cJSON_IsNumber(item) && isfinite(item->valuedouble) ? NULL : "must be a number";
}

static const char *check_ttl(const cJSON *item) {
    return !check_number(item) && item->valuedouble > 0 ? NULL : "must be a number > 0";
}

static const char *check_integer(const cJSON *item) {
    bool good = !check_number(item) && fabs(item->valuedouble) < 9e15 &&
                (double)(int64_t)item->valuedouble == item->valuedouble;
    return good ? NULL : "must be an integer";
}

static const char *check_port(const cJSON *item) {
    if (cJSON_IsNull(item)) return NULL;
    return !check_integer(item) && fabs(item->valuedouble) <= INT32_MAX ? NULL : "must be null or a 32-bit integer";
}

static const char *check_address(const cJSON *item) {
    return cJSON_IsNull(item) || cJSON_IsString(item) ? NULL : "must be null or a string";
}

static const char *check_payload(const cJSON *item) {
    if (cJSON_IsNull(item) || cJSON_IsString(item)) return NULL;
    return cJSON_IsObject(item) && cJSON_IsString(field(item, "@class"))
               ? NULL
               : "must be null, a string, or an object with \"@class\", else no Curator can read the role";
}

static const char *check_type(const cJSON *item) {
    static const char *const types[] = {"DYNAMIC", "STATIC", "PERMANENT", "DYNAMIC_SEQUENTIAL"};
    for (size_t i = 0; cJSON_IsString(item) && i < sizeof types / sizeof types[0]; i++) {
        if (strcmp(item->valuestring, types[i]) == 0) return NULL;
    }
    return "must be DYNAMIC, STATIC, PERMANENT or DYNAMIC_SEQUENTIAL";
}

static const char *check_uri_spec(const cJSON *item) {
    static const char shape[] = "must be null or {\"parts\": [{\"value\": string, \"variable\": boolean}]}";
    if (cJSON_IsNull(item)) return NULL;
    const cJSON *parts = field(item, "parts"), *part;
    if (!cJSON_IsObject(item) || !cJSON_IsArray(parts)) return shape;
    cJSON_ArrayForEach(part, parts) {
        if (!cJSON_IsString(field(part, "value")) || !cJSON_IsBool(field(part, "variable"))) return shape;
    }
    return NULL;
}

static const char *check_bool(const cJSON *item) {
    return cJSON_IsBool(item) ? NULL : "must be true or false";
}

static const char *check_string(const cJSON *item) {
    return cJSON_IsString(item) ? NULL : "must be a string";
}

static const char *check_class(const cJSON *item) {
    (void)item;
    return "is a Java class to Curator, which could then not read the role";
}

typedef struct {
    const char *name;
    const char *(*check)(const cJSON *item);
} rule;

static const rule rules[] = {
    {"role", check_text},
    {"ttl", check_ttl},
    {"load", check_number},
    {"id", check_text},
    {"host", check_text},
    {"pid", check_integer},
    {"address", check_address},
    {"port", check_port},
    {"sslPort", check_port},
    {"payload", check_payload},
    {"serviceType", check_type},
    {"uriSpec", check_uri_spec},
    {"enabled", check_bool},
    {"@class", check_class},
    {"first_heartbeat", check_string},
    {"registrationTimeUTC", check_integer},
};
enum { RULES = sizeof rules / sizeof rules[0] };

/* Returns whether it is shallow, and looks no deeper. The bound on an entry's text is exact (entry.h). */
static bool is_shallow(const cJSON *json) {
    const cJSON *at[DV_ENTRY_DEPTH_MAX] = {json->child};
    size_t depth = 0;
    while (at[depth] || depth > 0) {
        if (!at[depth]) {
            depth--;
        } else if (cJSON_IsObject(at[depth]) || cJSON_IsArray(at[depth])) {
            if (depth + 1 == DV_ENTRY_DEPTH_MAX) return false;
            at[depth + 1] = at[depth]->child;
            depth++;
            continue;
        }
        at[depth] = at[depth]->next;
    }
    return true;
}

static int refuse(char reason[DV_STATUS_REASON_BYTES], const char *name, const char *why) {
    snprintf(reason, DV_STATUS_REASON_BYTES, "\"%s\" %s", name, why);
    return DIVVY_EINVAL;
}

static bool is_set_by_us(const dv_status_defaults *d, const char *name) {
    return d->unique_role && (strcmp(name, "role") == 0 || strcmp(name, "id") == 0);
}

static int check(const cJSON *status, const dv_status_defaults *d, char reason[DV_STATUS_REASON_BYTES]) {
    static const char *const required[] = {"role", "ttl", "load"};
    if (!cJSON_IsObject(status)) {
        snprintf(reason, DV_STATUS_REASON_BYTES, "the status must be a JSON object");
        return DIVVY_EINVAL;
    }
    for (size_t i = 0; i < sizeof required / sizeof required[0]; i++) {
        bool needed = !d->unique_role || strcmp(required[i], "ttl") == 0;
        if (needed && !field(status, required[i])) return refuse(reason, required[i], "is required and missing");
    }
    for (size_t i = 0; i < RULES; i++) {
        const cJSON *item = field(status, rules[i].name);
        const char *why = item && !is_set_by_us(d, rules[i].name) ? rules[i].check(item) : NULL;
        if (why) return refuse(reason, rules[i].name, why);
    }
    const cJSON *name = field(status, "name"), *role = field(status, "role");
    bool same = !name || d->unique_role || (cJSON_IsString(name) && strcmp(name->valuestring, role->valuestring) == 0);
    if (!same) return refuse(reason, "name", "is Curator's word for the role, and must be the same");
    if (!is_shallow(status)) {
        snprintf(reason, DV_STATUS_REASON_BYTES, "it is nested deeper than %d levels", DV_ENTRY_DEPTH_MAX);
        return DIVVY_EINVAL;
    }
    return 0;
}

/* ---- the entry: V3 ---- */

/* The fields that have a place; all others of a status follow. */
static const char *const placed[] = {
    "name", "id",   "address", "port", "sslPort", "payload",         "registrationTimeUTC", "serviceType", "uriSpec",
    "role", "load", "ttl",     "host", "pid",     "first_heartbeat", "last_heartbeat",      "nonce",       "attempt"};

static bool add(cJSON *entry, const char *name, cJSON *item) {
    if (item && cJSON_AddItemToObject(entry, name, item)) return true;
    cJSON_Delete(item);
    return false;
}

static const char *service_type(const cJSON *status, bool persistent) {
    const cJSON *type = field(status, "serviceType");
    if (!persistent) return "DYNAMIC";
    return type && strcmp(type->valuestring, "STATIC") == 0 ? "STATIC" : "PERMANENT";
}

/* Returns the value of a placed field: texts of ours in any case, the others where the status has none of its own. */
static cJSON *value_of(const cJSON *status, const dv_status_defaults *d, const char *name) {
    const cJSON *own = field(status, name);
    const char *role = d->unique_role ? d->unique_role : dv_status_text(status, "role");
    const char *host = dv_status_text(status, "host");
    const struct {
        const char *name, *ours, *other;
    } texts[] = {{"name", role, NULL},
                 {"id", d->unique_role, d->new_id},
                 {"address", NULL, host ? host : d->host},
                 {"serviceType", service_type(status, d->persistent), NULL},
                 {"role", role, NULL},
                 {"host", NULL, d->host},
                 {"first_heartbeat", NULL, ""},
                 {"last_heartbeat", "", NULL},
                 {"nonce", d->nonce, NULL},
                 {"attempt", "", NULL}};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const char *text = texts[i].ours || own ? texts[i].ours : texts[i].other;
        if (text && strcmp(name, texts[i].name) == 0) return cJSON_CreateString(text);
    }
    if (own) return cJSON_Duplicate(own, 1);
    return strcmp(name, "pid") == 0 ? cJSON_CreateNumber((double)d->pid) : cJSON_CreateNull();
}

static bool add_placed(cJSON *entry, const cJSON *status, const dv_status_defaults *d) {
    for (size_t i = 0; i < sizeof placed / sizeof placed[0]; i++) {
        bool left_out = strcmp(placed[i], "load") == 0 && !field(status, "load");
        if (!left_out && !add(entry, placed[i], value_of(status, d, placed[i]))) return false;
    }
    return true;
}

static bool has_place(const char *name) {
    for (size_t i = 0; i < sizeof placed / sizeof placed[0]; i++) {
        if (strcmp(name, placed[i]) == 0) return true;
    }
    return false;
}

static bool add_others(cJSON *entry, const cJSON *status) {
    for (const cJSON *item = status->child; item; item = item->next) {
        if (!item->string || has_place(item->string)) continue;
        if (!add(entry, item->string, cJSON_Duplicate(item, 1))) return false;
    }
    return true;
}

int dv_status_compose(cJSON **out, const cJSON *status, const dv_status_defaults *d,
                      char reason[DV_STATUS_REASON_BYTES]) {
    *out = NULL;
    int error = check(status, d, reason);
    if (error) return error;
    cJSON *entry = cJSON_CreateObject();
    bool whole = entry && add_placed(entry, status, d) && add_others(entry, status);
    if (whole) *out = entry;
    else cJSON_Delete(entry);
    return whole ? 0 : DIVVY_ENOMEM;
}

/* ---- later ---- */

/* The new item takes the old one's name: cJSON before 1.7.17 copies it on replacing, and ignores that this failed. */
static bool replace(cJSON *entry, const char *name, cJSON *fresh) {
    cJSON *old = cJSON_GetObjectItemCaseSensitive(entry, name);
    if (!fresh || !old) {
        cJSON_Delete(fresh);
        return false;
    }
    if (!fresh->string) { /* One that was copied has its name already. */
        fresh->string = old->string;
        fresh->type |= old->type & cJSON_StringIsConst;
        old->string = NULL;
    }
    return cJSON_ReplaceItemViaPointer(entry, old, fresh);
}

bool dv_status_stamp(cJSON *entry, int64_t unix_ms, const char *attempt) {
    char time[DV_ISO_BYTES];
    dv_iso_print(unix_ms, time);
    bool first = field(entry, "first_heartbeat")->valuestring[0] == '\0';
    if (first && !replace(entry, "first_heartbeat", cJSON_CreateString(time))) return false;
    bool registered = cJSON_IsNumber(field(entry, "registrationTimeUTC"));
    if (!registered && !replace(entry, "registrationTimeUTC", cJSON_CreateNumber((double)unix_ms))) return false;
    return replace(entry, "last_heartbeat", cJSON_CreateString(time)) &&
           replace(entry, "attempt", cJSON_CreateString(attempt));
}

bool dv_status_keep_first(cJSON *entry, const cJSON *earlier, bool force) {
    const cJSON *first = field(earlier, "first_heartbeat"), *registered = field(earlier, "registrationTimeUTC");
    bool take_first = force || field(entry, "first_heartbeat")->valuestring[0] == '\0';
    bool take_registered = force || cJSON_IsNull(field(entry, "registrationTimeUTC"));
    if (take_first && !check_string(first) && !replace(entry, "first_heartbeat", cJSON_Duplicate(first, 1)))
        return false;
    return !take_registered || check_integer(registered) ||
           replace(entry, "registrationTimeUTC", cJSON_Duplicate(registered, 1));
}

bool dv_status_same_identity(const cJSON *a, const cJSON *b) {
    static const char *const names[] = {"id", "host", "pid", "nonce"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (!cJSON_Compare(field(a, names[i]), field(b, names[i]), 1)) return false;
    }
    return true;
}

int dv_status_print(char **out, const cJSON *entry, const char **reason) {
    *reason = NULL;
    *out = dv_json_print(entry);
    if (!*out) return DIVVY_ENOMEM;
    int error = 0;
    if (!dv_entry_within_bounds(*out, strlen(*out), reason)) error = DIVVY_E2BIG;
    else if (!dv_is_utf8(*out)) *reason = "is not valid UTF-8", error = DIVVY_EINVAL;
    if (!error) return 0;
    free(*out);
    *out = NULL;
    return error;
}
