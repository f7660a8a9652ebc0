/* The service registry on a real server: threads, sessions, what others see. SPDX-License-Identifier: Apache-2.0
 *
 * Shows threads, wall clocks and sessions of real servers, and what a plain client reads of entries. */
#include <cjson/cJSON.h>

#include "lib/expire.h"
#include "registry_fixture.h"
#include "test_attach_host.h"

static cJSON *status(const char *role, const char *id, double load, double ttl) {
    cJSON *s = cJSON_CreateObject();
    if (role) cJSON_AddStringToObject(s, "role", role);
    if (id) cJSON_AddStringToObject(s, "id", id);
    cJSON_AddNumberToObject(s, "load", load);
    cJSON_AddNumberToObject(s, "ttl", ttl);
    return s;
}

static void beat(party *p, cJSON *s) {
    cJSON *stored = NULL;
    int error = divvy_registry_heartbeat(p->registry, s, &stored, PATIENCE_MS);
    if (error) fail_msg("heartbeat: %s", divvy_client_error(p->client));
    cJSON_Delete(stored);
    cJSON_Delete(s);
}

static int count_healthy(party *p, const char *role) {
    cJSON *array = NULL;
    int error = divvy_registry_healthy_services(p->registry, role, &array, PATIENCE_MS);
    if (error) fail_msg("healthy_services: %s", divvy_client_error(p->client));
    int count = cJSON_GetArraySize(array);
    cJSON_Delete(array);
    return count;
}

static bool is_healthy(party *p, const char *role, const char *id) {
    cJSON *entry = NULL;
    if (divvy_registry_healthy_service(p->registry, role, &entry, PATIENCE_MS) != 0) return false;
    const cJSON *found = cJSON_GetObjectItemCaseSensitive(entry, "id");
    bool same = cJSON_IsString(found) && strcmp(found->valuestring, id) == 0;
    cJSON_Delete(entry);
    return same;
}

static void clear(void) {
    dv_test_zk_delete_all(truth, "/divvy");
}

/* ---- tests ---- */

/* A plain client reads what was stored, in a node of our session under parents without data. A reader that has
 * never written learns the time by a write that leaves nothing behind. Both hold in threads and in manual mode. */
TEST(test_stored) {
    for (int manual = 0; manual < 2; manual++) {
        party p, reader;
        enter_as(&p, NULL, manual);
        enter(&reader, NULL);
        cJSON *s = status("web", "a", 0.5, 60), *stored = NULL;
        assert_int_equal(divvy_registry_heartbeat(p.registry, s, &stored, PATIENCE_MS), 0);
        struct Stat stat;
        char *data = dv_test_zk_get(truth, SERVICES "/web/a", NULL, &stat);
        cJSON *there = cJSON_Parse(data);
        assert_true(cJSON_Compare(there, stored, 1));
        assert_int_equal(strncmp(data, "{\"name\":\"web\",\"id\":\"a\",\"address\":", 33), 0);
        assert_int_equal(stat.ephemeralOwner, divvy_client_session_id(p.client));
        double told_ms = cJSON_GetObjectItem(stored, "registrationTimeUTC")->valuedouble;
        assert_true(told_ms > (double)stat.ctime - 20000 && told_ms < (double)stat.ctime + 20000);
        assert_true(is_healthy(&reader, "web", "a"));
        char **names = dv_test_zk_children(truth, "/divvy", NULL);
        assert_string_equal(names[0], "services");
        assert_null(names[1]);
        dv_test_zk_free_names(names);
        int bytes;
        free(dv_test_zk_get(truth, SERVICES, &bytes, NULL));
        assert_int_equal(bytes, 0);
        free(data);
        cJSON_Delete(there);
        cJSON_Delete(stored);
        cJSON_Delete(s);
        leave(&p);
        assert_true(DV_WAIT(count_healthy(&reader, NULL) == 0, PATIENCE_MS));
        leave(&reader);
        clear();
    }
}

/* A session that ends at the server takes its entries along, and they stand again on the next one by themselves. */
TEST(test_new_session) {
    party p, reader;
    enter(&p, NULL);
    enter(&reader, NULL);
    beat(&p, status("web", "a", 1, 600));
    int64_t session = divvy_client_session_id(p.client);
    dv_test_proxy_cut(p.proxy);
    assert_true(dv_test_expire(hosts(), session, NULL));
    assert_int_equal(count_healthy(&reader, "web"), 0);
    dv_test_proxy_restore(p.proxy);
    assert_true(DV_WAIT(is_healthy(&reader, "web", "a"), PATIENCE_MS));
    struct Stat stat;
    assert_true(dv_test_zk_exists(truth, SERVICES "/web/a", &stat));
    assert_int_equal(stat.ephemeralOwner, divvy_client_session_id(p.client));
    assert_int_not_equal(stat.ephemeralOwner, session);
    leave(&p);
    leave(&reader);
    clear();
}

/* Heartbeats by themselves keep an entry younger than its ttl, and end with the registry. */
TEST(test_automatic) {
    divvy_registry_config config = DIVVY_REGISTRY_CONFIG_INIT;
    config.heartbeat = 1;
    party p;
    enter(&p, &config);
    beat(&p, status("web", "a", 1, 1.5));
    struct Stat stat;
    assert_true(DV_WAIT(dv_test_zk_exists(truth, SERVICES "/web/a", &stat) && stat.version >= 4, PATIENCE_MS));
    leave(&p);
    assert_false(dv_test_zk_exists(truth, SERVICES "/web/a", NULL));
    clear();
}

/* A callback that does not return stops no heartbeats. */
static atomic_int stuck;
static double stick(divvy_registry *registry, const char *role, const char *id, double load, void *user) {
    (void)registry, (void)role, (void)id, (void)user;
    atomic_fetch_add(&stuck, 1);
    if (!DV_WAIT(atomic_load(&stuck) > 1000, PATIENCE_MS)) abort();
    return load + 100;
}

TEST(test_slow_callback) {
    divvy_registry_config config = DIVVY_REGISTRY_CONFIG_INIT;
    config.heartbeat = 1;
    config.on_load = stick;
    atomic_store(&stuck, 0);
    party p;
    enter(&p, &config);
    beat(&p, status("web", "a", 1, 0.6));
    struct Stat stat;
    assert_true(DV_WAIT(dv_test_zk_exists(truth, SERVICES "/web/a", &stat) && stat.version >= 4, PATIENCE_MS));
    assert_int_equal(atomic_load(&stuck), 1);
    atomic_store(&stuck, 2000);
    assert_true(DV_WAIT(dv_test_zk_exists(truth, SERVICES "/web/a", &stat) && atomic_load(&stuck) > 2003, PATIENCE_MS));
    leave(&p);
    clear();
}

/* Threads that heartbeat, look, purge and unregister at once on one registry get along. */
typedef struct {
    party *party;
    int number;
    atomic_int *wrong, *told;
} worker;

static void on_done(divvy_registry *registry, int result, const cJSON *stored, void *user) {
    worker *w = user;
    cJSON *entry = NULL;
    if (result != 0 || !stored) atomic_fetch_add(w->wrong, 1);
    if (divvy_registry_healthy_service(registry, "web", &entry, 0) != DIVVY_EDEADLK || entry)
        atomic_fetch_add(w->wrong, 1);
    atomic_fetch_add(w->told, 1);
}

static void *work(void *context) {
    worker *w = context;
    char id[16];
    for (int i = 0; i < 50; i++) {
        snprintf(id, sizeof id, "%d-%d", w->number, i % 5);
        cJSON *s = status("web", id, i, 60), *out = NULL;
        int error = 0;
        if (i % 4 == 0) error = divvy_registry_heartbeat(w->party->registry, s, &out, PATIENCE_MS);
        else if (i % 4 == 1) error = divvy_registry_healthy_services(w->party->registry, "web", &out, PATIENCE_MS);
        else if (i % 4 == 2) error = divvy_registry_purge_stale_services(w->party->registry, 2, NULL, PATIENCE_MS);
        else error = divvy_registry_unique_service(w->party->registry, "boss", s, &out, PATIENCE_MS);
        if (error) atomic_fetch_add(w->wrong, 1);
        cJSON_Delete(out);
        if (divvy_registry_heartbeat_async(w->party->registry, s, -1, on_done, w) != 0) atomic_fetch_add(w->wrong, 1);
        cJSON_Delete(s);
    }
    return NULL;
}

TEST(test_threads) {
    enum { THREADS = 4 };
    party p;
    enter(&p, NULL);
    pthread_t threads[THREADS];
    worker workers[THREADS];
    atomic_int wrong = 0, told = 0;
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (worker){&p, i, &wrong, &told};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    assert_true(DV_WAIT(atomic_load(&told) == THREADS * 50, PATIENCE_MS));
    assert_int_equal(atomic_load(&wrong), 0);
    assert_int_equal(count_healthy(&p, "web"), THREADS * 5);
    assert_int_equal(count_healthy(&p, "boss"), 1);
    for (int i = 0; i < THREADS * 5; i++) {
        char id[16];
        snprintf(id, sizeof id, "%d-%d", i / 5, i % 5);
        assert_int_equal(divvy_registry_unregister(p.registry, NULL, id, PATIENCE_MS), 0);
    }
    assert_int_equal(count_healthy(&p, NULL), 1);
    leave(&p);
    clear();
}

/* A registry that is closed, and a client that is, while calls wait in other threads: they end, and say so. */
static void *wait_for_entry(void *context) {
    party *p = context;
    cJSON *s = status("web", "a", 1, 60);
    int error = divvy_registry_heartbeat(p->registry, s, NULL, -1);
    cJSON_Delete(s);
    return (void *)(intptr_t)error;
}

TEST(test_closed_meanwhile) {
    party p;
    enter(&p, NULL);
    dv_test_proxy_cut(p.proxy);
    assert_true(DV_WAIT(divvy_client_state(p.client) != DIVVY_CONNECTED, PATIENCE_MS));
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, wait_for_entry, &p), 0);
    divvy_stats stats;
    assert_true(DV_WAIT(divvy_client_stats(p.client, &stats, sizeof stats) == 0 && stats.ephemerals == 1, PATIENCE_MS));
    divvy_client_close(p.client);
    void *result;
    pthread_join(thread, &result);
    assert_int_equal((intptr_t)result, DIVVY_ECLOSED);
    divvy_registry_close(p.registry);
    dv_test_proxy_stop(p.proxy);
    witness_end(&p.witness);
    clear();
}

/* 1,000 entries in ten roles are read with as many requests as they are, and a heartbeat of each is one request. */
TEST(test_many) {
    enum { SERVICES_COUNT = 1000, ROLES = 10 };
    party p, reader;
    enter(&p, NULL);
    enter(&reader, NULL);
    atomic_int wrong = 0, told = 0;
    worker w = {&p, 0, &wrong, &told};
    for (int round = 0; round < 2; round++) {
        divvy_stats before, after;
        assert_int_equal(divvy_client_stats(p.client, &before, sizeof before), 0);
        atomic_store(&told, 0);
        for (int i = 0; i < SERVICES_COUNT; i++) {
            char role[16], id[16];
            snprintf(role, sizeof role, "role%d", i % ROLES);
            snprintf(id, sizeof id, "%d", i);
            cJSON *s = status(role, id, i, 600);
            assert_int_equal(divvy_registry_heartbeat_async(p.registry, s, -1, on_done, &w), 0);
            cJSON_Delete(s);
        }
        assert_true(DV_WAIT(atomic_load(&told) == SERVICES_COUNT, PATIENCE_MS));
        assert_int_equal(divvy_client_stats(p.client, &after, sizeof after), 0);
        if (round) assert_int_equal(after.sets - before.sets, SERVICES_COUNT);
        if (round) assert_int_equal(after.reads + after.creates - before.reads - before.creates, 0);
    }
    assert_int_equal(atomic_load(&wrong), 0);
    assert_int_equal(count_healthy(&reader, "role3"), SERVICES_COUNT / ROLES);
    divvy_stats before, after;
    assert_int_equal(divvy_client_stats(reader.client, &before, sizeof before), 0);
    assert_int_equal(count_healthy(&reader, NULL), SERVICES_COUNT);
    assert_int_equal(divvy_client_stats(reader.client, &after, sizeof after), 0);
    assert_int_equal(after.gets - before.gets, SERVICES_COUNT);
    assert_int_equal(after.children - before.children, ROLES + 1);
    leave(&p);
    assert_int_equal(count_healthy(&reader, NULL), 0);
    leave(&reader);
    clear();
}

/* On a host's session: the entry is of that session, goes when the registry is closed and the host's handle is not, and
 * stands again by itself on the next handle when the session was lost. */
TEST(test_attached) {
    witness w;
    host h, next;
    party reader;
    enter(&reader, NULL);
    dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(server, 1));
    host_open(&h, dv_test_proxy_address(proxy), HOST_TIMEOUT_MS);
    divvy_client_config config = witness_config(&w, NULL);
    divvy_client *client = attach_connected(&h, &config);
    party p = {.client = client};
    assert_int_equal(divvy_registry_open(&p.registry, client, NULL), 0);
    beat(&p, status("web", "a", 1, 600));
    struct Stat stat;
    assert_true(dv_test_zk_exists(truth, SERVICES "/web/a", &stat));
    assert_int_equal(stat.ephemeralOwner, host_session(&h));
    dv_test_proxy_cut(proxy);
    assert_true(dv_test_expire(hosts(), host_session(&h), zoo_client_id(h.handle)->passwd));
    dv_test_proxy_restore(proxy);
    assert_true(DV_WAIT(divvy_client_state(client) == DIVVY_LOST, PATIENCE_MS));
    cJSON *s = status("web", "a", 1, 600);
    assert_int_equal(divvy_registry_heartbeat(p.registry, s, NULL, PATIENCE_MS), DIVVY_ELOST);
    cJSON_Delete(s);
    assert_int_equal(count_healthy(&reader, NULL), 0);
    host_close(&h);
    host_begin(&next, dv_test_proxy_address(proxy), HOST_TIMEOUT_MS);
    assert_int_equal(divvy_client_reattach(client, next.handle), 0);
    assert_true(DV_WAIT(is_healthy(&reader, "web", "a"), PATIENCE_MS));
    assert_true(dv_test_zk_exists(truth, SERVICES "/web/a", &stat));
    assert_int_equal(stat.ephemeralOwner, host_session(&next));
    divvy_registry_close(p.registry);
    assert_true(DV_WAIT(count_healthy(&reader, NULL) == 0, PATIENCE_MS));
    divvy_client_close(client);
    witness_end(&w);
    assert_int_equal(zoo_state(next.handle), ZOO_CONNECTED_STATE);
    host_close(&next);
    dv_test_proxy_stop(proxy);
    leave(&reader);
    clear();
}

static void make_readable(const char *path, const char *data) {
    assert_int_equal(
        zoo_create(dv_test_zk_handle(truth), path, data, (int)strlen(data), &ZOO_READ_ACL_UNSAFE, 0, NULL, 0), ZOK);
}

/* Where nothing may be written, that is told, with the path; entries that no clock is needed for are found all the
 * same.
 */
TEST(test_denied) {
    divvy_registry_config config = DIVVY_REGISTRY_CONFIG_INIT;
    party p;
    assert_int_equal(dv_test_zk_create(truth, "/open", "", 0, NULL), ZOK);
    assert_int_equal(dv_test_zk_create(truth, "/open/locked", "", 0, NULL), ZOK);
    assert_int_equal(dv_test_zk_create(truth, "/open/locked/r", "", 0, NULL), ZOK);
    assert_int_equal(dv_test_zk_create(truth, "/open/locked/r/web", "", 0, NULL), ZOK);
    make_readable("/open/locked/r/web/curators", "{\"name\":\"web\",\"id\":\"curators\"}");
    struct ACL nothing = {ZOO_PERM_ADMIN, ZOO_ANYONE_ID_UNSAFE};
    const struct ACL_vector *readable = &ZOO_READ_ACL_UNSAFE, hidden = {1, &nothing};
    static const char *const hide[] = {"/open/locked/r/web/hidden", "/open/locked/r/hidden"};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(dv_test_zk_create(truth, hide[i], "", 0, NULL), ZOK);
        assert_int_equal(zoo_set_acl(dv_test_zk_handle(truth), hide[i], -1, &hidden), ZOK);
    }
    static const char *const locked[] = {"/open/locked/r/web", "/open/locked/r", "/open/locked"};
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(zoo_set_acl(dv_test_zk_handle(truth), locked[i], -1, readable), ZOK);
    config.path = "/open/locked/r";
    enter(&p, &config);
    cJSON *s = status("web", "a", 1, 60), *entry = NULL;
    assert_int_equal(divvy_registry_heartbeat(p.registry, s, &entry, PATIENCE_MS), DIVVY_EACCES);
    assert_non_null(strstr(divvy_client_error(p.client), "/open/locked/r"));
    assert_int_equal(divvy_registry_unique_service(p.registry, "web", s, &entry, PATIENCE_MS), DIVVY_EACCES);
    assert_true(is_healthy(&p, "web", "curators"));
    assert_int_equal(count_healthy(&p, NULL), 1); /* A hidden node hides nothing else. */
    assert_int_equal(divvy_registry_malformed(p.registry), 2);
    assert_int_equal(divvy_registry_healthy_services(p.registry, "hidden", &entry, PATIENCE_MS), DIVVY_EACCES);
    divvy_stats stats;
    assert_int_equal(divvy_client_stats(p.client, &stats, sizeof stats), 0);
    assert_int_equal(stats.ephemerals, 0);
    cJSON_Delete(s);
    leave(&p);
}

TEST_GROUP(start_server, stop_server);
