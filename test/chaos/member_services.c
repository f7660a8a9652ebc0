/* Users of a registry and of a party: one service of a common role, a candidate for a unique one, lookups, a live view,
 * and who is there. SPDX-License-Identifier: Apache-2.0 */
#include "member.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

enum { LOOKUP_MS = 150, CLAIM_MS = CHAOS_TTL_S * 1000 / 3, LIST_BYTES = 512, LIST_MOST = 32 };

static const char *text_of(const cJSON *entry, const char *field) {
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(entry, field);
    return cJSON_IsString(value) ? value->valuestring : "-";
}

static double number_of(const cJSON *entry, const char *field) {
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(entry, field);
    return cJSON_IsNumber(value) ? value->valuedouble : 0;
}

static divvy_registry *open_registry(chaos_member *m, int heartbeat) {
    divvy_registry_config config = DIVVY_REGISTRY_CONFIG_INIT;
    divvy_registry *registry;
    config.path = CHAOS_ROOT "/services";
    config.host = m->name;
    config.heartbeat = heartbeat;
    while (divvy_registry_open(&registry, m->client, &config)) {
        if (m->stopping) return NULL;
        chaos_sleep_ms(100);
    }
    return registry;
}

/* ---- what is announced ---- */

static bool announce(chaos_member *m, divvy_registry *registry) {
    cJSON *status = cJSON_CreateObject();
    cJSON_AddStringToObject(status, "role", CHAOS_ROLE);
    cJSON_AddStringToObject(status, "id", m->name);
    cJSON_AddNumberToObject(status, "load", chaos_random(10));
    cJSON_AddNumberToObject(status, "ttl", CHAOS_TTL_S);
    int64_t asked_ms = chaos_now_ms();
    int result = divvy_registry_heartbeat(registry, status, NULL, CHAOS_CALL_MS);
    chaos_log_call("heartbeat", asked_ms, CHAOS_CALL_MS, result);
    cJSON_Delete(status);
    return result == 0;
}

/* Notes that the role is ours: we take it for ours for a ttl from when we asked. */
static void claim(chaos_member *m, divvy_registry *registry) {
    cJSON *candidate = cJSON_CreateObject(), *entry = NULL;
    cJSON_AddNumberToObject(candidate, "ttl", CHAOS_TTL_S);
    int64_t session = divvy_client_session_id(m->client), asked_ms = chaos_now_ms();
    int result = divvy_registry_unique_service(registry, CHAOS_UNIQUE, candidate, &entry, CHAOS_CALL_MS);
    int64_t told_ms = chaos_now_ms();
    chaos_log_call("unique_service", asked_ms, CHAOS_CALL_MS, result);
    bool ours = result == 0 && entry && divvy_registry_is_ours(registry, entry);
    if (ours && divvy_client_session_id(m->client) == session)
        chaos_log("C %lld %lld %llx %d %s %s %s", (long long)asked_ms, (long long)told_ms, (unsigned long long)session,
                  CHAOS_TTL_S * 1000, CHAOS_UNIQUE, text_of(entry, "nonce"), text_of(entry, "attempt"));
    cJSON_Delete(entry);
    cJSON_Delete(candidate);
}

void *chaos_services_run(void *argument) {
    chaos_member *m = argument;
    divvy_registry *registry = open_registry(m, 1);
    bool announced = false;
    while (registry && !m->stopping) {
        if (!announced) announced = announce(m, registry);
        claim(m, registry);
        int64_t until_ms = chaos_now_ms() + CLAIM_MS;
        while (chaos_now_ms() < until_ms && !m->stopping) chaos_sleep_ms(CHAOS_POLL_MS);
    }
    chaos_log("D %lld %s", (long long)chaos_now_ms(), CHAOS_UNIQUE);
    divvy_registry_close(registry);
    return NULL;
}

/* ---- what is found ---- */

static void look_up(divvy_registry *registry) {
    cJSON *entries = NULL;
    const cJSON *entry;
    int64_t asked_ms = chaos_now_ms();
    int result = divvy_registry_healthy_services(registry, CHAOS_ROLE, &entries, CHAOS_CALL_MS);
    int64_t told_ms = chaos_now_ms();
    chaos_log_call("healthy_services", asked_ms, CHAOS_CALL_MS, result);
    cJSON_ArrayForEach(entry, entries) {
        chaos_log("R %lld %lld %lld %s %s %s", (long long)asked_ms, (long long)told_ms,
                  (long long)(number_of(entry, "ttl") * 1000), text_of(entry, "role"), text_of(entry, "id"),
                  text_of(entry, "attempt"));
    }
    cJSON_Delete(entries);
}

static void list(char kind, size_t count, const char *(*name)(const void *of, size_t i), const void *of) {
    char line[LIST_BYTES] = "";
    size_t used = 0;
    for (size_t i = 0; i < count && i < LIST_MOST && used + 32 < sizeof line; i++)
        used += (size_t)snprintf(line + used, sizeof line - used, " %.30s", name(of, i));
    chaos_log("%c %lld %zu%s", kind, (long long)chaos_now_ms(), count, line);
}

static const char *entry_name(const void *array, size_t i) {
    return text_of(cJSON_GetArrayItem(array, (int)i), "id");
}

static void look_at_view(divvy_registry *registry) {
    cJSON *entries = NULL;
    if (divvy_registry_healthy_services(registry, CHAOS_ROLE, &entries, CHAOS_CALL_MS) == 0)
        list('W', (size_t)cJSON_GetArraySize(entries), entry_name, entries);
    cJSON_Delete(entries);
}

void *chaos_lookup_run(void *argument) {
    chaos_member *m = argument;
    divvy_registry *plain = open_registry(m, 0), *viewing = open_registry(m, 0);
    bool watched = false;
    for (unsigned round = 0; plain && viewing && !m->stopping; round++) {
        if (!watched) watched = divvy_registry_watch(viewing, CHAOS_ROLE, NULL, NULL) == 0;
        look_up(plain);
        if (watched && round % 3 == 0) look_at_view(viewing);
        chaos_sleep_ms(LOOKUP_MS);
    }
    divvy_registry_close(plain);
    divvy_registry_close(viewing);
    return NULL;
}

/* ---- who is there ---- */

static const char *member_name(const void *strings, size_t i) {
    return divvy_strings_get(strings, i);
}

void *chaos_party_run(void *argument) {
    chaos_member *m = argument;
    divvy_party *party = NULL;
    while (!m->stopping) {
        divvy_strings *members = NULL;
        int64_t asked_ms = chaos_now_ms();
        if (!party && divvy_party_join(&party, m->client, CHAOS_ROOT "/party", m->name, DIVVY_SHALLOW_PARTY))
            party = NULL;
        int result = party ? divvy_party_members(party, &members, CHAOS_CALL_MS) : DIVVY_ENOMEM;
        chaos_log_call("party_members", asked_ms, CHAOS_CALL_MS, result);
        if (result == 0) list('P', divvy_strings_count(members), member_name, members);
        divvy_strings_free(members);
        for (int i = 0; i < 20 && !m->stopping; i++) chaos_sleep_ms(20);
    }
    if (party) divvy_party_leave(party, CHAOS_CALL_MS);
    divvy_party_destroy(party);
    return NULL;
}
