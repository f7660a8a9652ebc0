/* The cost of the registry, as a peer of bench/registry.sh. SPDX-License-Identifier: Apache-2.0
 *
 * usage: bench_registry HOSTS, and commands as in registry_peer.h. All services are of one process and one session;
 * those that read and those that announce share it too. The view is on a session of its own. The requests of cached_one
 * are all that it sent meanwhile, but for the session's own heartbeats. */
#include <cjson/cJSON.h>
#include <divvy/client.h>
#include <divvy/registry.h>
#include <stdatomic.h>

#include "registry_peer.h"
#include "server_counters.h"

enum { TEXT_BYTES = 64, WATCH_BYTES = 500000 /* enough for 10,000 services */ };

typedef struct {
    divvy_client *client;
    divvy_registry *registry;
} watcher;

static const char *hosts;
static divvy_client *client;
static divvy_registry *registry;
static cJSON *statuses[SERVICES_MAX];
static int services;
static watcher viewer; /* none: NULLs */
static watcher watchers[WATCHERS_MAX];
static int watcher_count;

static const char *error_text(int error) {
    return error < 0 ? divvy_strerror(error) : "failed";
}

static void open_registry(divvy_client **client_out, divvy_registry **registry_out) {
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    divvy_registry_config registry_config = DIVVY_REGISTRY_CONFIG_INIT;
    config.hosts = hosts;
    config.session_timeout_ms = SESSION_TIMEOUT_MS;
    registry_config.path = "/bench-divvy";
    registry_config.watch_bytes = WATCH_BYTES;
    check(divvy_client_open(client_out, &config), "open");
    check(divvy_registry_open(registry_out, *client_out, &registry_config), "registry");
    check(divvy_client_wait_connected(*client_out, SESSION_TIMEOUT_MS), "connect");
}

/* Requests that the view's client has sent: all but the session's heartbeats, which are all the checks there are. */
static uint64_t requests(void) {
    divvy_stats stats;
    check(divvy_client_stats(viewer.client, &stats, sizeof stats), "stats");
    return stats.requests - stats.checks;
}

/* ---- announcing ---- */

static void on_stored(divvy_registry *r, int result, const cJSON *stored, void *user) {
    (void)r, (void)stored, (void)user;
    check(result, "a heartbeat");
    count_one();
}

static cJSON *make_status(int service) {
    char role[TEXT_BYTES], id[TEXT_BYTES];
    cJSON *status = cJSON_CreateObject();
    snprintf(role, sizeof role, "role-%d", service % ROLES);
    snprintf(id, sizeof id, "service-%04d", service);
    cJSON_AddStringToObject(status, "role", role);
    cJSON_AddStringToObject(status, "id", id);
    cJSON_AddStringToObject(status, "address", "127.0.0.1");
    cJSON_AddNumberToObject(status, "port", 1024 + service);
    cJSON_AddNumberToObject(status, "load", 0);
    cJSON_AddNumberToObject(status, "ttl", TTL_S);
    return status;
}

static void beat(int service, int load) {
    cJSON_SetNumberValue(cJSON_GetObjectItem(statuses[service], "load"), load);
    check(divvy_registry_heartbeat_async(registry, statuses[service], -1, on_stored, NULL), "heartbeat_async");
}

static void fill(int count) {
    cJSON *stored;
    double start_s = now_s();
    for (services = 0; services < count; services++) {
        statuses[services] = make_status(services);
        beat(services, 0);
    }
    wait_count(count);
    double seconds = now_s() - start_s;
    check(divvy_registry_heartbeat(registry, statuses[0], &stored, -1), "heartbeat");
    char *text = cJSON_PrintUnformatted(stored);
    printf("{\"count\": %d, \"seconds\": %.6f, \"bytes\": %zu}\n", count, seconds, strlen(text));
    cJSON_free(text);
    cJSON_Delete(stored);
}

static void heartbeats(int ms) {
    int beats = 0, count = 0;
    double start_s = now_s();
    for (; now_s() - start_s < ms / 1e3; count += services) {
        beats++;
        for (int i = 0; i < services; i++) beat(i, beats);
        wait_count(services);
    }
    print_rate(count, now_s() - start_s);
}

/* ---- looking ---- */

static int look_at_all(void) {
    cJSON *array;
    check(divvy_registry_healthy_services(registry, NULL, &array, -1), "healthy_services");
    int count = cJSON_GetArraySize(array);
    cJSON_Delete(array);
    check(count == services ? 0 : 1, "not all services are healthy");
    return count;
}

static divvy_services *list_of(const char *role) {
    divvy_services *list;
    check(divvy_registry_services(viewer.registry, role, &list, -1), "services");
    return list;
}

/* Takes the list as for one request, and looks at its first entry. */
static void look_at_one(const char *role) {
    divvy_services *list = list_of(role);
    const cJSON *entry = divvy_services_entry(list, 0);
    check(entry && entry->child ? 0 : 1, "no service is healthy");
    divvy_services_unref(list);
}

static void copy_one(const char *role) {
    cJSON *entry;
    check(divvy_registry_healthy_service(viewer.registry, role, &entry, -1), "healthy_service");
    check(entry ? 0 : 1, "no service is healthy");
    cJSON_Delete(entry);
}

/* Looks at each entry of a role. */
static int look_at_each(const char *role) {
    int found = 0;
    divvy_services *list = list_of(role);
    for (size_t i = 0; i < divvy_services_count(list); i++) found += divvy_services_entry(list, i)->child != NULL;
    divvy_services_unref(list);
    return found;
}

static void read_all(int ms) {
    int count = 0;
    double start_s = now_s();
    while (now_s() - start_s < ms / 1e3) count += look_at_all();
    print_rate(count, now_s() - start_s);
}

/* Opens the view, on a client of its own, and returns when looking no longer sends requests. */
static void view(void) {
    uint64_t before;
    if (viewer.client) return;
    open_registry(&viewer.client, &viewer.registry);
    check(divvy_registry_watch(viewer.registry, NULL, NULL, NULL), "watch");
    do {
        before = requests();
        divvy_services_unref(list_of(NULL));
    } while (requests() != before);
}

/* Ends it before entries are written or read, as these need not pay for it. */
static void end_view(void) {
    divvy_registry_close(viewer.registry);
    divvy_client_close(viewer.client);
    viewer = (watcher){NULL, NULL};
}

static void cached_one(int ms, void (*look)(const char *role)) {
    char names[ROLES][TEXT_BYTES];
    int count = 0;
    for (int i = 0; i < ROLES; i++) snprintf(names[i], sizeof names[i], "role-%d", i);
    view();
    uint64_t before = requests();
    double start_s = now_s();
    for (; now_s() - start_s < ms / 1e3; count++) look(names[count % ROLES]);
    double seconds = now_s() - start_s;
    printf("{\"count\": %d, \"seconds\": %.6f, \"requests\": %llu}\n", count, seconds,
           (unsigned long long)(requests() - before));
}

static void cached_all(int ms) {
    char names[ROLES][TEXT_BYTES];
    int count = 0;
    for (int i = 0; i < ROLES; i++) snprintf(names[i], sizeof names[i], "role-%d", i);
    view();
    double start_s = now_s();
    while (now_s() - start_s < ms / 1e3) {
        for (int i = 0; i < ROLES; i++) count += look_at_each(names[i]);
    }
    print_rate(count, now_s() - start_s);
}

static atomic_bool beating;

static void on_busy(divvy_registry *r, int result, const cJSON *stored, void *user) {
    on_stored(r, result, stored, user);
    atomic_store(&beating, false);
}

/* Looks at role-0, and has one heartbeat of it under way at any time. */
static void cached_busy(int ms) {
    int count = 0, beats = 0;
    view();
    double start_s = now_s();
    for (; now_s() - start_s < ms / 1e3; count++) {
        look_at_one("role-0");
        if (atomic_load(&beating)) continue;
        atomic_store(&beating, true);
        int service = beats * ROLES % services;
        cJSON_SetNumberValue(cJSON_GetObjectItem(statuses[service], "load"), ++beats);
        check(divvy_registry_heartbeat_async(registry, statuses[service], -1, on_busy, NULL), "heartbeat_async");
    }
    double seconds = now_s() - start_s;
    wait_count(beats);
    printf("{\"count\": %d, \"seconds\": %.6f, \"beats\": %d}\n", count, seconds, beats);
}

/* ---- watchers ---- */

static void on_change(divvy_registry *r, int change, const cJSON *before, const cJSON *after, void *user) {
    (void)r, (void)change, (void)before, (void)after, (void)user;
    count_one();
}

static void watch(int count) {
    for (; watcher_count < count; watcher_count++) {
        watcher *w = &watchers[watcher_count];
        open_registry(&w->client, &w->registry);
        check(divvy_registry_watch(w->registry, "role-0", on_change, NULL), "watch");
        wait_count(services / ROLES); /* one for each service that is there */
    }
    print_rate(count, 0);
}

static void change(int count) {
    double us[CHANGES_MAX];
    server_counters before, after;
    check(count <= CHANGES_MAX ? 0 : 1, "too many changes");
    check(server_counters_read(&before, hosts), "srvr");
    for (int i = 0; i < count; i++) {
        double start_s = now_s();
        beat(0, i + 1);
        wait_count(1 + watcher_count);
        us[i] = (now_s() - start_s) * 1e6;
    }
    check(server_counters_read(&after, hosts), "srvr");
    print_changes(us, count, (long long)(after.packets - before.packets));
}

static void unwatch(void) {
    while (watcher_count > 0) {
        watcher *w = &watchers[--watcher_count];
        divvy_registry_close(w->registry);
        divvy_client_close(w->client);
    }
    print_rate(1, 0);
}

static bool run(const char *verb, int number) {
    if (strncmp(verb, "cached", strlen("cached")) != 0) end_view();
    if (strcmp(verb, "fill") == 0 && number <= SERVICES_MAX) fill(number);
    else if (strcmp(verb, "heartbeats") == 0) heartbeats(number);
    else if (strcmp(verb, "read") == 0) read_all(number);
    else if (strcmp(verb, "cached_one") == 0) cached_one(number, look_at_one);
    else if (strcmp(verb, "cached_copy") == 0) cached_one(number, copy_one);
    else if (strcmp(verb, "cached_busy") == 0) cached_busy(number);
    else if (strcmp(verb, "cached_all") == 0) cached_all(number);
    else if (strcmp(verb, "watch") == 0 && number <= WATCHERS_MAX) watch(number);
    else if (strcmp(verb, "change") == 0) change(number);
    else if (strcmp(verb, "unwatch") == 0) unwatch();
    else return false;
    return true;
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: bench_registry HOSTS     and commands on the standard input\n");
        return 2;
    }
    hosts = argv[1];
    open_registry(&client, &registry);
    serve_commands(run);
    end_view();
    divvy_registry_close(registry);
    divvy_client_close(client);
    for (int i = 0; i < services; i++) cJSON_Delete(statuses[i]);
    return 0;
}
