/* Registries: heartbeats, healthy services, a unique role, purge, views. SPDX-License-Identifier: Apache-2.0 */
#include <cjson/cJSON.h>

#include "scenarios.h"

#define ROOT "/divvy/services"

enum { NEVER = 1000, TTL_S = 600 };

typedef struct {
    divvy_registry *a, *b;
    cJSON *web, *api, *boss; /* what is announced */
    int done, result;
    int added, removed, shown;
} world;

static void on_done(divvy_registry *registry, int result, const cJSON *stored, void *context) {
    world *w = context;
    (void)registry, (void)stored;
    w->done++;
    w->result = result;
}

static bool is_done(sweep *s, void *context) {
    (void)s;
    return ((world *)context)->done == 1;
}

static void on_change(divvy_registry *registry, int change, const cJSON *before, const cJSON *after, void *context) {
    world *w = context;
    (void)registry;
    w->added += change == DIVVY_REGISTRY_ADDED;
    w->removed += change == DIVVY_REGISTRY_REMOVED;
    w->shown += !before - !after;
}

static cJSON *status(const char *role, const char *id, double ttl) {
    sweep_allocations_pause(true);
    cJSON *status = cJSON_CreateObject();
    cJSON_AddStringToObject(status, "role", role);
    if (id) cJSON_AddStringToObject(status, "id", id);
    cJSON_AddNumberToObject(status, "load", 1);
    cJSON_AddNumberToObject(status, "ttl", ttl);
    sweep_allocations_pause(false);
    return status;
}

static double on_load(divvy_registry *registry, const char *role, const char *id, double load, void *user) {
    (void)registry, (void)role, (void)id, (void)user;
    return load + 1;
}

static void open_registries(sweep *s, world *w, divvy_registry_config config) {
    *w = (world){.web = status("web", "w1", TTL_S), .api = status("web", NULL, TTL_S), .boss = status("boss", NULL, 5)};
    sweep_open(s, 0);
    sweep_open(s, 1);
    sweep_begin(s);
    config.nonce = "a";
    config.host = "ha";
    SWEEP_DO(s, divvy_registry_open(&w->a, s->clients[0], &config));
    config.nonce = "b";
    config.host = NULL;
    SWEEP_DO(s, divvy_registry_open(&w->b, s->clients[1], &config));
}

static void close_registries(sweep *s, world *w) {
    divvy_registry_close(w->a);
    divvy_registry_close(w->b);
    sweep_end(s);
    cJSON_Delete(w->web);
    cJSON_Delete(w->api);
    cJSON_Delete(w->boss);
}

static void beat(sweep *s, divvy_registry *registry, const cJSON *announced) {
    cJSON *stored = NULL;
    SWEEP_DO(s, divvy_registry_heartbeat(registry, announced, &stored, SWEEP_WAIT_MS));
    SWEEP_CHECK(s, stored != NULL);
    cJSON_Delete(stored);
}

static void beat_async(sweep *s, world *w, const cJSON *announced) {
    do {
        w->done = 0;
        w->result = NEVER;
        SWEEP_DO(s, divvy_registry_heartbeat_async(w->a, announced, SWEEP_WAIT_MS, on_done, w));
        sweep_until(s, is_done, w, SWEEP_WAIT_MS, "heartbeat_async");
    } while (sweep_excuses(s, w->result));
    SWEEP_CHECK(s, w->result == 0);
}

static void look(sweep *s, divvy_registry *registry, int wanted) {
    cJSON *array = NULL, *entry = NULL;
    divvy_services *list = NULL;
    sweep_pass(s, 10); /* until the server that is asked has heard of it */
    SWEEP_DO(s, divvy_registry_services(registry, "web", &list, SWEEP_WAIT_MS));
    if (divvy_services_count(list) != (size_t)wanted) sweep_fail(s, "listed: %zu", divvy_services_count(list));
    divvy_services_unref(list);
    SWEEP_DO(s, divvy_registry_healthy_services(registry, "web", &array, SWEEP_WAIT_MS));
    if (cJSON_GetArraySize(array) != wanted) sweep_fail(s, "healthy: %d", cJSON_GetArraySize(array));
    cJSON_Delete(array);
    SWEEP_DO(s, divvy_registry_healthy_service(registry, "web", &entry, SWEEP_WAIT_MS));
    SWEEP_CHECK(s, (entry != NULL) == (wanted > 0));
    cJSON_Delete(entry);
}

/* Unregisters in one role after the other. An entry that a call removed before it failed is gone when the next call
 * comes. */
static void unregister_everywhere(sweep *s, divvy_registry *registry, const char *id) {
    int error = divvy_registry_unregister(registry, NULL, id, SWEEP_WAIT_MS);
    bool again = sweep_excuses(s, error);
    for (int i = 0; i < 60 && sweep_excuses(s, error); i++)
        error = divvy_registry_unregister(registry, NULL, id, SWEEP_WAIT_MS);
    if (error && !(again && error == DIVVY_ENOENT)) sweep_fail(s, "unregister: %s", divvy_errname(error));
}

/* Several entries of one heartbeat without an id would be several services: those are made by calls that failed. */
void sweep_registry_heartbeats(sweep *s) {
    world w;
    divvy_registry_config config = DIVVY_REGISTRY_CONFIG_INIT;
    open_registries(s, &w, config);
    beat(s, w.a, w.web);
    beat_async(s, &w, w.web);
    cJSON *other = status("web", "w2", TTL_S);
    beat(s, w.b, other);
    look(s, w.b, 2);
    look(s, w.a, 2);
    SWEEP_DO(s, divvy_registry_unregister(w.b, "web", "w2", SWEEP_WAIT_MS));
    look(s, w.a, 1);
    unregister_everywhere(s, w.a, "w1");
    look(s, w.a, 0);
    cJSON_Delete(other);
    s->empty_paths[0] = ROOT "/web";
    close_registries(s, &w);
}

/* By themselves, and over the loss of a session. */
void sweep_registry_automatic(sweep *s) {
    world w;
    divvy_registry_config config = DIVVY_REGISTRY_CONFIG_INIT;
    config.heartbeat = 1;
    config.heartbeat_jitter = 0;
    config.on_load = on_load;
    open_registries(s, &w, config);
    cJSON *brief = status("web", "w3", 6);
    beat(s, w.a, brief);
    sweep_pass(s, 7000);
    look(s, w.b, 1);
    divvy_testing_expire(s->ensemble, s->clients[0]);
    sweep_pass(s, 3 * SWEEP_TIMEOUT_MS);
    look(s, w.b, 1);
    cJSON_Delete(brief);
    s->empty_paths[0] = ROOT "/web";
    close_registries(s, &w);
}

static bool claim(sweep *s, divvy_registry *registry, const cJSON *candidate) {
    cJSON *entry = NULL;
    SWEEP_DO(s, divvy_registry_unique_service(registry, "boss", candidate, &entry, SWEEP_WAIT_MS));
    bool ours = divvy_registry_is_ours(registry, entry);
    cJSON_Delete(entry);
    return ours;
}

void sweep_registry_unique(sweep *s) {
    world w;
    divvy_registry_config config = DIVVY_REGISTRY_CONFIG_INIT;
    config.persistent = 1;
    open_registries(s, &w, config);
    SWEEP_CHECK(s, claim(s, w.a, w.boss));
    SWEEP_CHECK(s, !claim(s, w.b, w.boss));
    SWEEP_CHECK(s, claim(s, w.a, w.boss));
    sweep_pass(s, 6000); /* its ttl */
    SWEEP_CHECK(s, claim(s, w.b, w.boss));
    SWEEP_CHECK(s, !claim(s, w.a, w.boss));
    sweep_pass(s, 12000);
    size_t purged = 0;
    SWEEP_DO(s, divvy_registry_purge_stale_services(w.a, 1, &purged, SWEEP_WAIT_MS));
    s->empty_paths[0] = ROOT "/boss";
    close_registries(s, &w);
}

static bool shows_one(sweep *s, void *context) {
    (void)s;
    return ((world *)context)->shown == 1;
}

static bool shows_two(sweep *s, void *context) {
    (void)s;
    return ((world *)context)->shown == 2;
}

static void view(sweep *s, const char *role, double preserve_share) {
    world w;
    divvy_registry_config config = DIVVY_REGISTRY_CONFIG_INIT;
    config.preserve_share = preserve_share;
    open_registries(s, &w, config);
    beat(s, w.a, w.web);
    SWEEP_DO(s, divvy_registry_watch(w.b, role, on_change, &w));
    sweep_until(s, shows_one, &w, SWEEP_WAIT_MS, "the view's beginning");
    cJSON *other = status("web", "w2", TTL_S);
    beat(s, w.a, other);
    sweep_until(s, shows_two, &w, SWEEP_WAIT_MS, "the view's addition");
    look(s, w.b, 2);
    beat(s, w.a, other);
    divvy_testing_expire(s->ensemble, s->clients[1]);
    sweep_pass(s, 2 * SWEEP_TIMEOUT_MS);
    SWEEP_DO(s, divvy_registry_unregister(w.a, "web", "w2", SWEEP_WAIT_MS));
    sweep_until(s, shows_one, &w, SWEEP_WAIT_MS, "the view's removal");
    look(s, w.b, 1);
    SWEEP_DO(s, divvy_registry_unregister(w.a, "web", "w1", SWEEP_WAIT_MS));
    SWEEP_DO(s, divvy_registry_unwatch(w.b, role));
    cJSON_Delete(other);
    s->empty_paths[0] = ROOT "/web";
    close_registries(s, &w);
}

void sweep_registry_view(sweep *s) {
    view(s, "web", 0);
}

void sweep_registry_view_of_all(sweep *s) {
    view(s, NULL, 0.5);
}
