/* The floor of the registry: its least requests, by the native client alone. SPDX-License-Identifier: Apache-2.0
 *
 * usage: bench_raw_registry HOSTS, and commands as in registry_peer.h. A heartbeat is a set, a look at all services the
 * roles' children and then a get of each, pipelined throughout. Nothing is parsed, compared, ordered or repeated: a
 * registry does all of that besides. A watcher has a watch on the one entry that changes, and reads it again when that
 * fires. */
#include <zookeeper/zookeeper.h>

#include "../registry_peer.h"
#include "../server_counters.h"

static const char *error_text(int error) {
    return error < 0 ? zerror(error) : "failed";
}

enum { PATH_BYTES = 64, ENTRY_BYTES = 1024 };

static const char *hosts;
static zhandle_t *zh;
static int services;
static char paths[SERVICES_MAX][PATH_BYTES];
static zhandle_t *watchers[WATCHERS_MAX];
static int watcher_count;

static void on_session(zhandle_t *handle, int type, int state, const char *path, void *context) {
    (void)handle, (void)path, (void)context;
    if (type == ZOO_SESSION_EVENT && state == ZOO_CONNECTED_STATE) count_one();
}

static zhandle_t *open_session(void) {
    zhandle_t *handle = zookeeper_init(hosts, on_session, SESSION_TIMEOUT_MS, NULL, NULL, 0);
    check(handle ? 0 : 1, "zookeeper_init");
    wait_count(1);
    return handle;
}

/* An entry as divvy writes it, so that as many bytes are carried. */
static int entry(char *out, int service, int beat) {
    return snprintf(
        out, ENTRY_BYTES,
        "{\"name\":\"role-%d\",\"id\":\"service-%04d\",\"address\":\"127.0.0.1\",\"port\":%d,\"sslPort\":null,"
        "\"payload\":null,\"registrationTimeUTC\":1700000000000,\"serviceType\":\"DYNAMIC\",\"uriSpec\":null,"
        "\"role\":\"role-%d\",\"load\":%d,\"ttl\":%d,\"host\":\"localhost\",\"pid\":12345,"
        "\"first_heartbeat\":\"2023-11-14T22:13:20.000Z\",\"last_heartbeat\":\"2023-11-14T22:13:20.000Z\","
        "\"nonce\":\"0123456789abcdef0123456789abcdef\",\"attempt\":\"0123456789abcdefghijklm\"}",
        service % ROLES, service, 1024 + service, service % ROLES, beat, TTL_S);
}

/* ---- answers ---- */

static void on_created(int rc, const char *path, const void *data) {
    (void)path, (void)data;
    check(rc, "a create");
    count_one();
}

static void on_set(int rc, const struct Stat *stat, const void *data) {
    (void)stat, (void)data;
    check(rc, "a set");
    count_one();
}

static void on_data(int rc, const char *value, int bytes, const struct Stat *stat, const void *data) {
    (void)value, (void)bytes, (void)stat, (void)data;
    check(rc, "a get");
    count_one();
}

static void on_names(int rc, const struct String_vector *names, const void *data) {
    (void)data;
    check(rc, "children");
    char path[PATH_BYTES];
    for (int i = 0; i < names->count; i++) {
        snprintf(path, sizeof path, "/bench-raw/role-%d/%s", (int)(intptr_t)data, names->data[i]);
        check(zoo_aget(zh, path, 0, on_data, NULL), "zoo_aget");
    }
}

/* ---- commands ---- */

static void make(const char *path) {
    int rc = zoo_create(zh, path, "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0);
    check(rc == ZNODEEXISTS ? ZOK : rc, path);
}

static void fill(int count) {
    char data[ENTRY_BYTES], role[PATH_BYTES];
    double start_s = now_s();
    make("/bench-raw");
    for (int i = 0; i < ROLES; i++) {
        snprintf(role, sizeof role, "/bench-raw/role-%d", i);
        make(role);
    }
    for (services = 0; services < count; services++) {
        snprintf(paths[services], PATH_BYTES, "/bench-raw/role-%d/service-%04d", services % ROLES, services);
        check(zoo_acreate(zh, paths[services], data, entry(data, services, 0), &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL,
                          on_created, NULL),
              "zoo_acreate");
    }
    wait_count(count);
    printf("{\"count\": %d, \"seconds\": %.6f, \"bytes\": %d}\n", count, now_s() - start_s, entry(data, 0, 0));
}

static void heartbeats(int ms) {
    char data[ENTRY_BYTES];
    int beats = 0, count = 0;
    double start_s = now_s();
    for (; now_s() - start_s < ms / 1e3; count += services) {
        beats++;
        for (int i = 0; i < services; i++)
            check(zoo_aset(zh, paths[i], data, entry(data, i, beats), -1, on_set, NULL), "zoo_aset");
        wait_count(services);
    }
    print_rate(count, now_s() - start_s);
}

static void read_all(int ms) {
    char role[PATH_BYTES];
    int count = 0;
    double start_s = now_s();
    for (; now_s() - start_s < ms / 1e3; count += services) {
        for (int i = 0; i < ROLES; i++) {
            snprintf(role, sizeof role, "/bench-raw/role-%d", i);
            check(zoo_aget_children(zh, role, 0, on_names, (void *)(intptr_t)i), "zoo_aget_children");
        }
        wait_count(services);
    }
    print_rate(count, now_s() - start_s);
}

/* ---- watchers ---- */

static void on_change(zhandle_t *handle, int type, int state, const char *path, void *context) {
    (void)state, (void)path;
    if (type != ZOO_SESSION_EVENT) check(zoo_awget(handle, paths[0], on_change, context, on_data, NULL), "zoo_awget");
}

static void watch(int count) {
    for (; watcher_count < count; watcher_count++) {
        watchers[watcher_count] = open_session();
        check(zoo_awget(watchers[watcher_count], paths[0], on_change, NULL, on_data, NULL), "zoo_awget");
        wait_count(1);
    }
    print_rate(count, 0);
}

static void change(int count) {
    char data[ENTRY_BYTES];
    double us[CHANGES_MAX];
    server_counters before, after;
    check(count <= CHANGES_MAX ? 0 : 1, "too many changes");
    check(server_counters_read(&before, hosts), "srvr");
    for (int i = 0; i < count; i++) {
        double start_s = now_s();
        check(zoo_aset(zh, paths[0], data, entry(data, 0, i + 1), -1, on_set, NULL), "zoo_aset");
        wait_count(1 + watcher_count);
        us[i] = (now_s() - start_s) * 1e6;
    }
    check(server_counters_read(&after, hosts), "srvr");
    print_changes(us, count, (long long)(after.packets - before.packets));
}

static void unwatch(void) {
    while (watcher_count > 0) check(zookeeper_close(watchers[--watcher_count]), "zookeeper_close");
    print_rate(1, 0);
}

static bool run(const char *verb, int number) {
    if (strcmp(verb, "fill") == 0 && number <= SERVICES_MAX) fill(number);
    else if (strcmp(verb, "heartbeats") == 0) heartbeats(number);
    else if (strcmp(verb, "read") == 0) read_all(number);
    else if (strcmp(verb, "watch") == 0 && number <= WATCHERS_MAX) watch(number);
    else if (strcmp(verb, "change") == 0) change(number);
    else if (strcmp(verb, "unwatch") == 0) unwatch();
    else return false;
    return true;
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: bench_raw_registry HOSTS     and commands on the standard input\n");
        return 2;
    }
    hosts = argv[1];
    zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
    zh = open_session();
    serve_commands(run);
    return zookeeper_close(zh) == ZOK ? 0 : 1;
}
