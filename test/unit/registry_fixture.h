/* Shared by the tests of the registry on an in-memory ensemble, in virtual time. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_REGISTRY_FIXTURE_H
#define DV_REGISTRY_FIXTURE_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "divvy/divvy.h"
#include "divvy/testing.h"
#include "lib/test.h"
#include "registry/server_time.h"
#include <cjson/cJSON.h>

#define WAIT_MS 60000

enum { WARNINGS = 64, CLIENTS_MOST = 8 };

typedef struct {
    divvy_testing_ensemble *ensemble;
    divvy_client *clients[CLIENTS_MOST];
    divvy_registry *registries[CLIENTS_MOST];
    int warning_codes[WARNINGS];
    int warnings;
} world;

static inline void on_warning(divvy_client *client, int code, const char *message, void *user) {
    world *w = user;
    (void)client;
    assert_true(strlen(message) > 10);
    if (code != DIVVY_WARN_SESSION && w->warnings < WARNINGS) w->warning_codes[w->warnings++] = code;
}

static inline int count_warnings(const world *w, int code) {
    int count = 0;
    for (int i = 0; i < w->warnings; i++) count += w->warning_codes[i] == code;
    return count;
}

static inline void open_world(world *w, void (*on_transaction)(const divvy_testing_transaction *, void *),
                              uint64_t seed) {
    divvy_testing_config config = DIVVY_TESTING_CONFIG_INIT;
    *w = (world){.ensemble = NULL};
    config.tick_ms = 500;
    config.seed = seed;
    config.on_transaction = on_transaction;
    config.user = w;
    assert_int_equal(divvy_testing_ensemble_create(&w->ensemble, &config), 0);
}

static inline void open_client(world *w, int n) {
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.manual = 1;
    config.session_timeout_ms = 4000;
    config.ensemble_tick_ms = 500;
    config.on_warning = on_warning;
    config.user = w;
    assert_int_equal(divvy_testing_client_open(&w->clients[n], w->ensemble, &config), 0);
}

/* A client, and a registry on it; `config` NULL: all defaults, and a nonce of its own, as a process of its own has. */
static inline divvy_registry *open_registry(world *w, int n, const divvy_registry_config *config) {
    divvy_registry_config own = DIVVY_REGISTRY_CONFIG_INIT;
    char nonce[16];
    snprintf(nonce, sizeof nonce, "nonce-%d", n);
    if (config) own = *config;
    if (!own.nonce) own.nonce = nonce;
    if (!w->clients[n]) open_client(w, n);
    if (divvy_registry_open(&w->registries[n], w->clients[n], &own) != 0)
        fail_msg("%s", divvy_client_error(w->clients[n]));
    return w->registries[n];
}

static inline void close_world(world *w) {
    for (int i = 0; i < CLIENTS_MOST; i++) {
        divvy_registry_close(w->registries[i]);
        if (w->clients[i]) divvy_client_close(w->clients[i]);
    }
    divvy_testing_ensemble_destroy(w->ensemble);
}

static inline void run(world *w, int64_t ms) {
    assert_true(divvy_testing_run(w->ensemble, ms) >= 0);
}

/* ---- JSON ---- */

static inline const char *text_of(const cJSON *entry, const char *name) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(entry, name);
    return cJSON_IsString(item) ? item->valuestring : "";
}

static inline double number_of(const cJSON *entry, const char *name) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(entry, name);
    return cJSON_IsNumber(item) ? item->valuedouble : -12345;
}

/* Parses what `format` prints as JSON, with ' for ". */
__attribute__((format(printf, 1, 2))) static inline cJSON *json(const char *format, ...) {
    char text[4096];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    for (char *c = text; *c; c++) {
        if (*c == '\'') *c = '"';
    }
    cJSON *parsed = cJSON_Parse(text);
    if (!parsed) fail_msg("no JSON: %s", text);
    return parsed;
}

/* A heartbeat that is stored; the entry as it is then. Takes `status`. */
static inline cJSON *beat(divvy_registry *registry, cJSON *status) {
    cJSON *stored = NULL;
    int error = divvy_registry_heartbeat(registry, status, &stored, WAIT_MS);
    if (error) fail_msg("heartbeat: %s", divvy_strerror(error));
    cJSON_Delete(status);
    assert_non_null(stored);
    return stored;
}

static inline void beat_only(divvy_registry *registry, cJSON *status) {
    cJSON_Delete(beat(registry, status));
}

/* The ids of the healthy services of a role, in order, with a space between: good until next asked. */
static inline const char *healthy(divvy_registry *registry, const char *role) {
    static char ids[4096];
    cJSON *array = NULL;
    const cJSON *entry;
    int error = divvy_registry_healthy_services(registry, role, &array, WAIT_MS);
    if (error) fail_msg("healthy_services: %s", divvy_strerror(error));
    ids[0] = '\0';
    cJSON_ArrayForEach(entry, array) {
        if (ids[0]) strcat(ids, " ");
        strcat(ids, text_of(entry, "id"));
    }
    cJSON_Delete(array);
    return ids;
}

/* The entry's id; "" when there is none. */
static inline const char *least(divvy_registry *registry, const char *role) {
    static char id[256];
    cJSON *entry = NULL;
    int error = divvy_registry_healthy_service(registry, role, &entry, WAIT_MS);
    if (error) fail_msg("healthy_service: %s", divvy_strerror(error));
    snprintf(id, sizeof id, "%s", text_of(entry, "id"));
    cJSON_Delete(entry);
    return id;
}

/* Takes `candidate`. NULL: nobody is healthy. */
static inline cJSON *unique(divvy_registry *registry, const char *role, cJSON *candidate) {
    cJSON *entry = NULL;
    int error = divvy_registry_unique_service(registry, role, candidate, &entry, WAIT_MS);
    if (error) fail_msg("unique_service: %s", divvy_strerror(error));
    cJSON_Delete(candidate);
    return entry;
}

/* The host of the holder; "" when there is none. Takes `candidate`. */
static inline const char *holder(divvy_registry *registry, const char *role, cJSON *candidate) {
    static char host[256];
    cJSON *entry = unique(registry, role, candidate);
    snprintf(host, sizeof host, "%s", text_of(entry, "host"));
    cJSON_Delete(entry);
    return host;
}

#endif
