/* Tests of lib/registry/status.h alone: each field of a status, and memory that runs out under the JSON.
 * SPDX-License-Identifier: Apache-2.0 */
#include "registry/status.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "divvy/error.h"
#include "lib/test.h"

static const dv_status_defaults defaults = {
    .new_id = "an-id", .host = "a-host", .pid = 7, .nonce = "a-nonce", .persistent = false};

/* ---- fields ---- */

typedef struct {
    const char *name;
    const char *good, *bad; /* texts of JSON, a space between two */
    const char *why;
} field;

static const char spec[] = "must be null or {\"parts\": [{\"value\": string, \"variable\": boolean}]}",
                  payload[] = "must be null, a string, or an object with \"@class\", else no Curator can read the role";

static const field fields[] = {
    {"id", "\"x\"", "\"\" null 1 {}", "must be a string that is not empty"},
    {"host", "\"x\"", "\"\" null 1 []", "must be a string that is not empty"},
    {"ttl", "1 0.001 1e300", "0 -1 null \"1\" true 1e999", "must be a number > 0"},
    {"load", "0 -1 1e300", "null \"1\" 1e999", "must be a number"},
    {"pid", "0 -1 4503599627370496 1e3", "0.5 null \"1\" 1e16 1e999", "must be an integer"},
    {"registrationTimeUTC", "0 1700000000000", "0.5 null \"x\"", "must be an integer"},
    {"port", "null 0 2147483647 -2147483647", "2147483648 1.5 \"1\" true", "must be null or a 32-bit integer"},
    {"sslPort", "null 443", "4294967296 {}", "must be null or a 32-bit integer"},
    {"address", "null \"\" \"10.0.0.1\"", "1 false {}", "must be null or a string"},
    {"payload", "null \"\" \"x\" {\"@class\":\"a.B\"}", "1 [] {} {\"@class\":1}", payload},
    {"serviceType", "\"DYNAMIC\" \"STATIC\" \"PERMANENT\" \"DYNAMIC_SEQUENTIAL\"", "\"dynamic\" \"\" null 1",
     "must be DYNAMIC, STATIC, PERMANENT or DYNAMIC_SEQUENTIAL"},
    {"uriSpec",
     "null {\"parts\":[]} {\"parts\":[{\"value\":\"a\",\"variable\":true},{\"value\":\"\",\"variable\":false}]}",
     "1 [] {} {\"parts\":{}} {\"parts\":[1]} {\"parts\":[{\"value\":1,\"variable\":true}]} "
     "{\"parts\":[{\"value\":\"a\",\"variable\":1}]} {\"parts\":[{\"value\":\"a\",\"variable\":true},{}]}",
     spec},
    {"enabled", "true false", "null 1 \"true\"", "must be true or false"},
    {"first_heartbeat", "\"\" \"2026-01-01T00:00:00\"", "null 1", "must be a string"},
    {"@class", "", "null \"a.B\" 1", "is a Java class to Curator, which could then not read the role"},
};

/* Composes an entry with that field. Returns what dv_status_compose() does. */
static int compose(const char *name, const char *json, cJSON **entry, char reason[DV_STATUS_REASON_BYTES]) {
    cJSON *status = cJSON_Parse("{\"role\":\"r\",\"ttl\":10,\"load\":1}");
    cJSON *item = cJSON_Parse(json);
    assert_non_null(item);
    cJSON_DeleteItemFromObjectCaseSensitive(status, name);
    cJSON_AddItemToObject(status, name, item);
    reason[0] = '\0';
    int error = dv_status_compose(entry, status, &defaults, reason);
    cJSON_Delete(status);
    return error;
}

/* A field is taken with each value that it may have, and refused with each that it may not: by its name, with the
 * cause. */
TEST(test_each_field) {
    char reason[DV_STATUS_REASON_BYTES], wanted[DV_STATUS_REASON_BYTES], texts[512];
    cJSON *entry;
    for (size_t f = 0; f < sizeof fields / sizeof fields[0]; f++) {
        const field *is = &fields[f];
        snprintf(wanted, sizeof wanted, "\"%s\" %s", is->name, is->why);
        for (int bad = 0; bad < 2; bad++) {
            snprintf(texts, sizeof texts, "%s", bad ? is->bad : is->good);
            char *left, *json = strtok_r(texts, " ", &left);
            for (; json; json = strtok_r(NULL, " ", &left)) {
                int error = compose(is->name, json, &entry, reason);
                if (error != (bad ? DIVVY_EINVAL : 0)) fail_msg("%s: %s: %s", is->name, json, reason);
                if (bad) assert_string_equal(reason, wanted);
                if (bad) assert_null(entry);
                cJSON_Delete(entry);
            }
        }
    }
}

/* Curator's word for the role may stand beside it, and says the same. */
TEST(test_name) {
    char reason[DV_STATUS_REASON_BYTES];
    cJSON *entry;
    assert_int_equal(compose("name", "\"r\"", &entry, reason), 0);
    cJSON_Delete(entry);
    assert_int_equal(compose("name", "\"s\"", &entry, reason), DIVVY_EINVAL);
    assert_int_equal(compose("name", "1", &entry, reason), DIVVY_EINVAL);
    assert_string_equal(reason, "\"name\" is Curator's word for the role, and must be the same");
}

/* ---- memory ---- */

static long cjson_after = -1;

static void *scarce_malloc(size_t bytes) {
    return cjson_after >= 0 && cjson_after-- == 0 ? NULL : malloc(bytes);
}

static int begin_scarce(void **state) {
    (void)state;
    cJSON_InitHooks(&(cJSON_Hooks){.malloc_fn = scarce_malloc, .free_fn = free});
    return 0;
}

static int end_scarce(void **state) {
    (void)state;
    cjson_after = -1;
    cJSON_InitHooks(NULL);
    return 0;
}

/* Where an allocation fails an entry is made whole or not at all, and a stamp says that it is not complete. */
TEST_IN(test_scarce, begin_scarce, end_scarce) {
    cJSON *status = cJSON_Parse("{\"role\":\"r\",\"ttl\":10,\"load\":1,\"zone\":{\"a\":[1,\"b\"]},\"host\":\"h\"}");
    char reason[DV_STATUS_REASON_BYTES];
    cJSON *entry = NULL, *right = NULL;
    assert_int_equal(dv_status_compose(&right, status, &defaults, reason), 0);
    int failures = 0;
    for (int error = DIVVY_ENOMEM; error; failures++) {
        cjson_after = failures;
        error = dv_status_compose(&entry, status, &defaults, reason);
        cjson_after = -1;
        if (error) assert_int_equal(error, DIVVY_ENOMEM);
        if (error) assert_null(entry);
    }
    assert_true(failures > 20);
    assert_true(cJSON_Compare(entry, right, 1));
    failures = 0;
    for (bool whole = false; !whole; failures++) {
        cjson_after = failures;
        whole = dv_status_stamp(entry, 1700000000000, "attempt-1");
        cjson_after = -1;
    }
    assert_true(failures > 4);
    assert_string_equal(dv_status_text(entry, "first_heartbeat"), "2023-11-14T22:13:20.000Z");
    assert_string_equal(dv_status_text(entry, "last_heartbeat"), "2023-11-14T22:13:20.000Z");
    assert_string_equal(dv_status_text(entry, "attempt"), "attempt-1");
    failures = 0;
    for (bool whole = false; !whole; failures++) {
        cjson_after = failures;
        whole = dv_status_keep_first(right, entry, true);
        cjson_after = -1;
    }
    assert_true(failures > 1);
    assert_string_equal(dv_status_text(right, "first_heartbeat"), "2023-11-14T22:13:20.000Z");
    cJSON_Delete(entry);
    cJSON_Delete(right);
    cJSON_Delete(status);
}
