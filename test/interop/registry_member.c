/* A process with a registry, led by JSON lines, for test_registry.py. SPDX-License-Identifier: Apache-2.0
 *
 * usage: registry_member HOSTS PATH SESSION_TIMEOUT_MS
 *
 * Says {"ready":true} and then answers each line with one line: {"do":"list","role":"web"} with {"result":0,
 * "entries":[...]}, and so on for each of `verbs`; with {"result":-3,"error":"..."} where the call failed.
 * "persistent": true chooses a registry whose entries outlive the session. Watched changes are told by lines of
 * their own: {"event":"added","before":null,"after":{...}}. */
#include <cjson/cJSON.h>
#include <divvy/divvy.h>
#include <divvy/registry.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATIENCE_MS = 60000 };

typedef struct {
    divvy_client *client;
    divvy_registry *registry;
    const cJSON *line;
    cJSON *answer;
} request;

static pthread_mutex_t output = PTHREAD_MUTEX_INITIALIZER;

/* Takes `object`. From two threads: this program's own, and that of the callbacks. */
static void say(cJSON *object) {
    char *text = cJSON_PrintUnformatted(object);
    if (!text) abort();
    pthread_mutex_lock(&output);
    puts(text);
    fflush(stdout);
    pthread_mutex_unlock(&output);
    cJSON_free(text);
    cJSON_Delete(object);
}

static const cJSON *field(const request *r, const char *name) {
    return cJSON_GetObjectItemCaseSensitive(r->line, name);
}

/* NULL where it is left out, or null. */
static const char *text(const request *r, const char *name) {
    return cJSON_GetStringValue(field(r, name));
}

static void add_entry(cJSON *object, const char *name, const cJSON *entry) {
    cJSON_AddItemToObject(object, name, entry ? cJSON_Duplicate(entry, 1) : cJSON_CreateNull());
}

static void on_change(divvy_registry *registry, int change, const cJSON *before, const cJSON *after, void *user) {
    static const char *const names[] = {"?", "added", "changed", "removed", "stale"};
    (void)registry, (void)user;
    cJSON *event = cJSON_CreateObject();
    cJSON_AddStringToObject(event, "event", names[change]);
    add_entry(event, "before", before);
    add_entry(event, "after", after);
    say(event);
}

static void on_warning(divvy_client *client, int code, const char *message, void *user) {
    (void)client, (void)user;
    fprintf(stderr, "warning %d: %s\n", code, message);
}

/* ---- what the lines ask for: each returns the result of the call ---- */

static int heartbeat(request *r) {
    cJSON *entry = NULL;
    int result = divvy_registry_heartbeat(r->registry, field(r, "status"), &entry, PATIENCE_MS);
    cJSON_AddItemToObject(r->answer, "entry", entry ? entry : cJSON_CreateNull());
    return result;
}

static int list(request *r) {
    cJSON *entries = NULL;
    int result = divvy_registry_healthy_services(r->registry, text(r, "role"), &entries, PATIENCE_MS);
    cJSON_AddItemToObject(r->answer, "entries", entries ? entries : cJSON_CreateNull());
    return result;
}

static int pick(request *r) {
    cJSON *entry = NULL;
    int result = divvy_registry_healthy_service(r->registry, text(r, "role"), &entry, PATIENCE_MS);
    cJSON_AddItemToObject(r->answer, "entry", entry ? entry : cJSON_CreateNull());
    return result;
}

static int unregister(request *r) {
    return divvy_registry_unregister(r->registry, text(r, "role"), text(r, "id"), PATIENCE_MS);
}

static int unique(request *r) {
    cJSON *entry = NULL;
    int result =
        divvy_registry_unique_service(r->registry, text(r, "role"), field(r, "candidate"), &entry, PATIENCE_MS);
    cJSON_AddBoolToObject(r->answer, "ours", divvy_registry_is_ours(r->registry, entry));
    cJSON_AddItemToObject(r->answer, "entry", entry ? entry : cJSON_CreateNull());
    return result;
}

static int purge(request *r) {
    size_t purged = 0;
    int result =
        divvy_registry_purge_stale_services(r->registry, cJSON_GetNumberValue(field(r, "ttls")), &purged, PATIENCE_MS);
    cJSON_AddNumberToObject(r->answer, "purged", (double)purged);
    return result;
}

static int watch(request *r) {
    return divvy_registry_watch(r->registry, text(r, "role"), on_change, NULL);
}

static int unwatch(request *r) {
    return divvy_registry_unwatch(r->registry, text(r, "role"));
}

static int malformed(request *r) {
    cJSON_AddNumberToObject(r->answer, "count", (double)divvy_registry_malformed(r->registry));
    return 0;
}

static int session(request *r) {
    char id[24];
    snprintf(id, sizeof id, "%lld", (long long)divvy_client_session_id(r->client)); /* more digits than a double has */
    cJSON_AddStringToObject(r->answer, "session", id);
    return 0;
}

static const struct {
    const char *name;
    int (*call)(request *r);
} verbs[] = {{"heartbeat", heartbeat}, {"list", list},       {"pick", pick},   {"unregister", unregister},
             {"unique", unique},       {"purge", purge},     {"watch", watch}, {"unwatch", unwatch},
             {"malformed", malformed}, {"session", session}, {NULL, NULL}};

static void answer(divvy_client *client, divvy_registry *const registries[2], const cJSON *line) {
    request r = {client, NULL, line, cJSON_CreateObject()};
    const char *verb = text(&r, "do");
    int i = 0;
    r.registry = registries[cJSON_IsTrue(field(&r, "persistent"))];
    while (verbs[i].name && (!verb || strcmp(verbs[i].name, verb) != 0)) i++;
    int result = verbs[i].name ? verbs[i].call(&r) : DIVVY_EINVAL;
    cJSON_AddNumberToObject(r.answer, "result", result);
    if (result != 0) {
        const char *why = divvy_client_error(client);
        cJSON_AddStringToObject(r.answer, "error", *why ? why : divvy_strerror(result));
    }
    say(r.answer);
}

/* Until the input ends. */
static void answer_all(divvy_client *client, divvy_registry *const registries[2]) {
    char *buffer = NULL;
    size_t bytes = 0;
    while (getline(&buffer, &bytes, stdin) > 0) {
        cJSON *line = cJSON_Parse(buffer);
        answer(client, registries, line);
        cJSON_Delete(line);
    }
    free(buffer);
}

static int fail(int error, const char *what) {
    fprintf(stderr, "registry_member: %s: %s: %s\n", what, divvy_strerror(error), divvy_client_error(NULL));
    return 1;
}

int main(int argc, char **argv) {
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    divvy_registry_config registry_config = DIVVY_REGISTRY_CONFIG_INIT;
    divvy_registry *registries[2];
    divvy_client *client;
    if (argc != 4) {
        fputs("usage: registry_member HOSTS PATH SESSION_TIMEOUT_MS\n", stderr);
        return 2;
    }
    config.hosts = argv[1];
    config.ensemble_tick_ms = 100;
    config.session_timeout_ms = strtol(argv[3], NULL, 10);
    config.on_warning = on_warning;
    int error = divvy_client_open(&client, &config);
    if (error) return fail(error, "open");
    for (int persistent = 0; persistent < 2; persistent++) {
        registry_config.path = argv[2];
        registry_config.persistent = persistent;
        error = divvy_registry_open(&registries[persistent], client, &registry_config);
        if (error) return fail(error, "registry");
    }
    error = divvy_client_wait_connected(client, PATIENCE_MS);
    if (error) return fail(error, "connect");
    say(cJSON_Parse("{\"ready\":true}"));
    answer_all(client, registries);
    for (int persistent = 0; persistent < 2; persistent++) divvy_registry_close(registries[persistent]);
    divvy_client_close(client);
    return 0;
}
