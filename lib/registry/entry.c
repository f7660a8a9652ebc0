/* Entry: one service as it stands in ZooKeeper. SPDX-License-Identifier: Apache-2.0 */
#include "registry/entry.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/padded.h"
#include "base/utf8.h"
#include "divvy/error.h"
#include "recipe/record.h"
#include "znode/path.h"

/* ---- bounds: V2 ---- */

/* The running totals of a scan of the bytes, before anything is made of them. */
typedef struct {
    size_t depth, values;
    bool in_string;
    const char *fault;
} entry_scan;

static void scan_string(entry_scan *s, const char **at, const char *end) {
    if (**at == '"') s->in_string = false;
    if (**at != '\\') return;
    /* A NUL, even escaped, ends a string for the parser, so that it would be read as another than it is. */
    if (end - *at > 5 && memcmp(*at, "\\u0000", 6) == 0) s->fault = "has a NUL in a string";
    if (*at + 1 < end) ++*at;
}

static void scan_byte(entry_scan *s, char byte) {
    switch (byte) {
    case '"': s->in_string = true; break;
    case '{':
    case '[':
        s->values++;
        if (++s->depth > DV_ENTRY_DEPTH_MAX) s->fault = "is nested too deep";
        break;
    case '}':
    case ']':
        if (s->depth > 0) s->depth--;
        break;
    case ',': s->values++; break;
    case '\0': s->fault = "has a NUL in it"; break;
    default: break;
    }
    if (s->values > DV_ENTRY_VALUES_MAX) s->fault = "has too many values";
}

bool dv_entry_within_bounds(const char *data, size_t data_bytes, const char **reason) {
    entry_scan s = {.depth = 0};
    if (data_bytes == 0) s.fault = "has no data";
    if (data_bytes > DV_ENTRY_BYTES_MAX) s.fault = "is too large";
    const char *end = data + data_bytes;
    for (const char *at = data; at < end && !s.fault; at++) {
        if (s.in_string) scan_string(&s, &at, end);
        else scan_byte(&s, *at);
    }
    *reason = s.fault;
    return !s.fault;
}

/* ---- parsing ---- */

/* Fields that we, or Curator, go by: the first would count for us, the last for Curator, so there must not be two. */
static const char *const known_fields[] = {
    "name", "id",    "role",    "load", "ttl",     "enabled", "serviceType", "registrationTimeUTC", "host",
    "pid",  "nonce", "address", "port", "payload", "attempt", "uriSpec",     "first_heartbeat",     "sslPort"};
enum { KNOWN_FIELDS = sizeof known_fields / sizeof known_fields[0] };

static bool has_twins(const cJSON *json) {
    bool seen[KNOWN_FIELDS] = {false};
    for (const cJSON *item = json->child; item; item = item->next) {
        for (size_t i = 0; i < KNOWN_FIELDS; i++) {
            if (strcmp(item->string, known_fields[i]) != 0) continue;
            if (seen[i]) return true;
            seen[i] = true;
        }
    }
    return false;
}

/* Curator puts names into the path as they are, divvy encodes them where it must. */
static bool stands_for(const char *node, const char *name) {
    if (strcmp(node, name) == 0) return true;
    char decoded[DV_ENTRY_NAME_BYTES_MAX + 1];
    return dv_name_decode(node, decoded, sizeof decoded) < sizeof decoded && strcmp(decoded, name) == 0;
}

/* Curator's DYNAMIC_SEQUENTIAL nodes are called by the id and a number of ten digits. */
static bool is_numbered(const cJSON *json, const char *node, const char *id) {
    enum { DIGITS = 10 };
    const cJSON *type = cJSON_GetObjectItemCaseSensitive(json, "serviceType");
    size_t id_bytes = strlen(id);
    if (!cJSON_IsString(type) || strcmp(type->valuestring, "DYNAMIC_SEQUENTIAL") != 0) return false;
    if (strlen(node) != id_bytes + DIGITS || strncmp(node, id, id_bytes) != 0) return false;
    for (const char *digit = node + id_bytes; *digit; digit++) {
        if (!dv_is_digit(*digit)) return false;
    }
    return true;
}

/* A role is told by Curator's name, by doublethink's role, or by both. */
static const char *find_names(dv_entry *e) {
    const cJSON *name = cJSON_GetObjectItemCaseSensitive(e->json, "name");
    const cJSON *role = cJSON_GetObjectItemCaseSensitive(e->json, "role");
    const cJSON *id = cJSON_GetObjectItemCaseSensitive(e->json, "id");
    if (!cJSON_IsString(id)) return "has no \"id\" that is a string";
    if (!name && !role) return "has neither a \"name\" nor a \"role\"";
    if ((name && !cJSON_IsString(name)) || (role && !cJSON_IsString(role)))
        return "has a \"name\" or \"role\" that is no string";
    if (name && role && strcmp(name->valuestring, role->valuestring) != 0) return "has a \"role\" that is not its name";
    e->role = (name ? name : role)->valuestring;
    e->id = id->valuestring;
    if (!stands_for(e->role_node, e->role)) return "is of another role than its path says";
    if (!stands_for(e->id_node, e->id) && !is_numbered(e->json, e->id_node, e->id))
        return "is of another id than its path says";
    return NULL;
}

static const char *find_values(dv_entry *e) {
    const cJSON *load = cJSON_GetObjectItemCaseSensitive(e->json, "load");
    const cJSON *ttl = cJSON_GetObjectItemCaseSensitive(e->json, "ttl");
    const cJSON *enabled = cJSON_GetObjectItemCaseSensitive(e->json, "enabled");
    if (load && !(cJSON_IsNumber(load) && isfinite(load->valuedouble))) return "has a \"load\" that is no number";
    if (ttl && !(cJSON_IsNumber(ttl) && isfinite(ttl->valuedouble) && ttl->valuedouble > 0))
        return "has a \"ttl\" that is no number > 0";
    if (enabled && !cJSON_IsBool(enabled)) return "has an \"enabled\" that is neither true nor false";
    if (load) e->load = load->valuedouble;
    if (ttl) e->ttl_s = ttl->valuedouble;
    if (ttl) e->flags |= DV_ENTRY_HAS_TTL;
    if (cJSON_IsFalse(enabled)) e->flags |= DV_ENTRY_DISABLED;
    return NULL;
}

static cJSON *parse_text(const char *data, size_t data_bytes, const char **reason) {
    char *text = dv_padded_copy(data, data_bytes);
    if (!text) return NULL;
    cJSON *json = NULL;
    if (!dv_is_utf8(text)) *reason = "is not valid UTF-8";
    else if (!(json = cJSON_ParseWithLengthOpts(text, data_bytes + 1, NULL, 1)))
        *reason = dv_json_is_valid(text, data_bytes) ? NULL : "is no JSON"; /* or an allocation failed */
    else if (!cJSON_IsObject(json)) *reason = "is no JSON object";
    else if (has_twins(json)) *reason = "has a field twice";
    free(text);
    return json;
}

static const char *fill(dv_entry *e, const char *data, size_t data_bytes) {
    const char *reason = NULL;
    if (!dv_entry_within_bounds(data, data_bytes, &reason)) return reason;
    e->json = parse_text(data, data_bytes, &reason);
    if (!reason && e->json) reason = find_names(e);
    if (!reason && e->json) reason = find_values(e);
    return reason;
}

int dv_entry_parse(dv_entry **out, const char *role_node, const char *id_node, const void *data, size_t data_bytes,
                   const dv_stat *stat, const char **reason) {
    *out = NULL;
    *reason = NULL;
    dv_entry *e = calloc(1, sizeof *e);
    if (!e) return DIVVY_ENOMEM;
    atomic_init(&e->refs, 1);
    e->stat = *stat;
    e->role_node = strdup(role_node);
    e->id_node = strdup(id_node);
    bool named = e->role_node && e->id_node;
    if (named) *reason = fill(e, data ? data : "", data ? data_bytes : 0);
    if (named && !*reason && e->json) {
        *out = e;
        return 0;
    }
    dv_entry_free(e);
    return *reason ? DIVVY_EPROTO : DIVVY_ENOMEM;
}

dv_entry *dv_entry_ref(dv_entry *e) {
    atomic_fetch_add_explicit(&e->refs, 1, memory_order_relaxed);
    return e;
}

void dv_entry_free(dv_entry *e) {
    if (!e || atomic_fetch_sub_explicit(&e->refs, 1, memory_order_acq_rel) != 1) return;
    cJSON_Delete(e->json);
    free(e->role_node);
    free(e->id_node);
    free(e);
}

bool dv_entries_add(dv_entries *entries, dv_entry *entry) {
    if (entries->count == entries->room) {
        size_t room = entries->room ? entries->room * 2 : 64;
        dv_entry **grown = realloc(entries->list, room * sizeof(dv_entry *));
        if (!grown) return false;
        entries->list = grown;
        entries->room = room;
    }
    entries->list[entries->count++] = entry;
    return true;
}

void dv_entries_free(dv_entries *entries) {
    for (size_t i = 0; i < entries->count; i++) dv_entry_free(entries->list[i]);
    free(entries->list);
    *entries = (dv_entries){NULL, 0, 0};
}

/* ---- health and order: V4, V5 ---- */

static double age_s(const dv_entry *e, int64_t server_now_ms) {
    return (double)(server_now_ms - e->stat.mtime_ms) / 1000.0;
}

/* In whole milliseconds, as the clock shows them: the first at which the age in seconds is the ttl, or more. */
int64_t dv_entry_expiry_ms(const dv_entry *e) {
    const double most_ms = 9e15; /* integers below it are exact */
    if (!(e->flags & DV_ENTRY_HAS_TTL) || !(e->ttl_s * 1000 < most_ms)) return INT64_MAX;
    int64_t ms = (int64_t)(e->ttl_s * 1000); /* A ttl is positive. */
    if ((double)ms / 1000 < e->ttl_s) ms++;
    if ((double)(ms - 1) / 1000 >= e->ttl_s) ms--; /* The product was rounded up, as 2.007 * 1000 is. */
    return e->stat.mtime_ms < INT64_MAX - ms ? e->stat.mtime_ms + ms : INT64_MAX;
}

bool dv_entry_has_expired(const dv_entry *e, int64_t server_now_ms) {
    return (e->flags & DV_ENTRY_HAS_TTL) && server_now_ms >= dv_entry_expiry_ms(e);
}

bool dv_entry_is_healthy(const dv_entry *e, int64_t server_now_ms) {
    if (e->flags & DV_ENTRY_PRESERVED) return true;
    return !(e->flags & DV_ENTRY_DISABLED) && !dv_entry_has_expired(e, server_now_ms);
}

bool dv_entry_is_older(const dv_entry *e, double ttls, int64_t server_now_ms) {
    return (e->flags & DV_ENTRY_HAS_TTL) && age_s(e, server_now_ms) > ttls * e->ttl_s;
}

int dv_entry_compare(const void *a, const void *b) {
    const dv_entry *x = *(dv_entry *const *)a, *y = *(dv_entry *const *)b;
    unsigned preserved = (x->flags ^ y->flags) & DV_ENTRY_PRESERVED;
    if (preserved) return x->flags & preserved ? 1 : -1;
    if (x->load != y->load) return x->load < y->load ? -1 : 1;
    if (x->stat.czxid != y->stat.czxid) return x->stat.czxid < y->stat.czxid ? -1 : 1;
    int by_role = strcmp(x->role_node, y->role_node);
    return by_role ? by_role : strcmp(x->id_node, y->id_node);
}
