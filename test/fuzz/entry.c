/* Fuzzes a registry's entries: names of nodes and JSON of others. SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "fuzz.h"
#include "registry/entry.h"
#include "registry/status.h"

/* Returns whether it is an owner's, who has all fields and no number beyond a double: that differs from itself. */
static bool has_identity(const cJSON *json) {
    cJSON *copy = cJSON_Duplicate(json, 1);
    bool same = dv_status_same_identity(copy, json);
    cJSON_Delete(copy);
    return same;
}

/* Checks that the owner of an entry that was parsed can store it again, and that it stays the same. */
static void check_again(const dv_entry *entry) {
    char *text = NULL;
    const char *reason = NULL;
    int error = dv_status_print(&text, entry->json, &reason);
    FUZZ_CHECK(error != DIVVY_ENOMEM && (error == 0 || reason));
    if (error) return;
    dv_entry *again = NULL;
    error = dv_entry_parse(&again, entry->role_node, entry->id_node, text, strlen(text), &entry->stat, &reason);
    FUZZ_CHECK(error != DIVVY_ENOMEM);
    if (error == 0) {
        FUZZ_CHECK(strcmp(again->role, entry->role) == 0 && strcmp(again->id, entry->id) == 0);
        FUZZ_CHECK(again->flags == entry->flags);
        FUZZ_CHECK(!has_identity(entry->json) || dv_status_same_identity(again->json, entry->json));
        dv_entry_free(again);
    }
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    fuzz_input in = fuzz_begin(data, bytes);
    char *role = fuzz_text(&in, '\n'), *id = fuzz_text(&in, '\n');
    dv_stat stat = {.mtime_ms = 1767225600000, .version = (int32_t)fuzz_byte(&in), .ephemeral_owner = 1};
    size_t json_bytes = (size_t)(in.end - in.at);
    char *json = fuzz_copy(in.at, json_bytes);
    dv_entry *entry = NULL;
    const char *reason = NULL;
    int error = dv_entry_parse(&entry, role, id, json, json_bytes, &stat, &reason);
    FUZZ_CHECK(error == 0 || (error == DIVVY_EPROTO && reason && !entry)); /* memory is not out here */
    if (error == 0) {
        FUZZ_CHECK(entry->json && entry->role && entry->id && !isnan(entry->load));
        if (entry->flags & DV_ENTRY_HAS_TTL) FUZZ_CHECK(entry->ttl_s > 0);
        for (int64_t now = stat.mtime_ms - 1000; now < stat.mtime_ms + 100000; now += 33333) {
            bool healthy = dv_entry_is_healthy(entry, now), expired = dv_entry_has_expired(entry, now);
            FUZZ_CHECK(!(healthy && expired));
            if (dv_entry_is_older(entry, 2, now)) FUZZ_CHECK(expired);
        }
        const dv_entry *same = entry;
        FUZZ_CHECK(dv_entry_compare(&same, &same) == 0);
        check_again(entry);
        dv_entry_free(entry);
    }
    free(json);
    free(role);
    free(id);
    return 0;
}
