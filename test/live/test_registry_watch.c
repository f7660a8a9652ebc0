/* Live views of a registry on a real server. SPDX-License-Identifier: Apache-2.0
 *
 * DIVVY_TEST_SEED=n makes the same choices again.
 *
 * Shows views under churn while a real server restarts, and that lookups send nothing. */
#include <cjson/cJSON.h>

#include "lib/expire.h"
#include "lib/seed.h"
#include "registry_fixture.h"

enum { ROLES = 4, IDS = 100, RAW_FROM = 80, CHURNERS = 2, OPS = 300 };

static unsigned seed;

static unsigned below(unsigned n) {
    static unsigned state;
    if (!state) state = seed;
    state = state * 1103515245u + 12345u;
    return (state >> 16) % n;
}

/* Its session ends at the server; it comes back with a new one. */
static void expire(party *p) {
    int64_t session = divvy_client_session_id(p->client);
    dv_test_proxy_cut(p->proxy);
    assert_true(dv_test_expire(hosts(), session, NULL));
    dv_test_proxy_restore(p->proxy);
    assert_true(
        DV_WAIT(divvy_client_session_id(p->client) != session && divvy_client_state(p->client) == DIVVY_CONNECTED,
                PATIENCE_MS));
}

/* ---- what was told ---- */

static struct {
    pthread_mutex_t lock;
    cJSON *known[IDS]; /* `after` of the newest call of each; NULL: it is not there */
    unsigned calls, wrong;
} view = {.lock = PTHREAD_MUTEX_INITIALIZER};

static double load_of(const cJSON *entry) {
    return entry ? cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(entry, "load")) : -1;
}

static int index_of(const cJSON *entry) {
    const char *id = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(entry, "id"));
    return id ? atoi(id + 1) : -1;
}

/* Added and removed take turns, and before is what after was. */
static void on_change(divvy_registry *registry, int change, const cJSON *before, const cJSON *after, void *user) {
    (void)registry, (void)user;
    pthread_mutex_lock(&view.lock);
    int i = index_of(after ? after : before);
    bool right = i >= 0 && i < IDS && (before || after);
    if (right) {
        right = before ? view.known[i] && cJSON_Compare(before, view.known[i], 1) : !view.known[i];
        right = right && (change == DIVVY_REGISTRY_ADDED) == !before && (change == DIVVY_REGISTRY_REMOVED) == !after;
        if (before && after) right = right && change == DIVVY_REGISTRY_CHANGED && !cJSON_Compare(before, after, 1);
        cJSON_Delete(view.known[i]);
        view.known[i] = after ? cJSON_Duplicate(after, 1) : NULL;
    }
    view.wrong += !right;
    view.calls++;
    pthread_mutex_unlock(&view.lock);
}

static bool is_known_as(int i, const char *text) {
    cJSON *json = text ? cJSON_Parse(text) : NULL;
    pthread_mutex_lock(&view.lock);
    bool same = view.known[i] ? json && cJSON_Compare(json, view.known[i], 1) : !json;
    pthread_mutex_unlock(&view.lock);
    cJSON_Delete(json);
    return same;
}

static void path_of(int i, char *out, size_t out_bytes) {
    snprintf(out, out_bytes, SERVICES "/role%d/s%02d", i % ROLES, i);
}

/* Returns whether the view is what a fresh read says, and in *count how many entries there are. */
static bool is_true_view(size_t *count) {
    *count = 0;
    for (int i = 0; i < IDS; i++) {
        char path[64];
        path_of(i, path, sizeof path);
        char *text = dv_test_zk_get(truth, path, NULL, NULL);
        bool same = is_known_as(i, text);
        *count += text != NULL;
        free(text);
        if (!same) return false;
    }
    return true;
}

static size_t count_healthy(divvy_registry *registry) {
    cJSON *array = NULL;
    assert_int_equal(divvy_registry_healthy_services(registry, NULL, &array, PATIENCE_MS), 0);
    size_t count = (size_t)cJSON_GetArraySize(array);
    cJSON_Delete(array);
    return count;
}

static void expect_rest(party *watcher, const char *after_what) {
    size_t count = 0;
    /* Heartbeats that nobody waited for may change what is there between two looks. */
    if (!DV_WAIT(is_true_view(&count) && count_healthy(watcher->registry) == count, PATIENCE_MS))
        fail_msg("after %s the view is not what is there; seed %u", after_what, seed);
    pthread_mutex_lock(&view.lock);
    unsigned wrong = view.wrong;
    pthread_mutex_unlock(&view.lock);
    if (wrong) fail_msg("after %s %u calls did not follow from those before; seed %u", after_what, wrong, seed);
}

/* ---- churn ---- */

/* No two are equal: a node that is replaced by an equal one is told as changed, too. */
static cJSON *make_status(int i) {
    static int number;
    char role[16], id[16];
    snprintf(role, sizeof role, "role%d", i % ROLES);
    snprintf(id, sizeof id, "s%02d", i);
    cJSON *status = cJSON_CreateObject();
    cJSON_AddStringToObject(status, "role", role);
    cJSON_AddStringToObject(status, "id", id);
    cJSON_AddNumberToObject(status, "load", below(1000));
    cJSON_AddNumberToObject(status, "number", ++number);
    cJSON_AddNumberToObject(status, "ttl", 1000);
    return status;
}

/* Changes services of a registry. A change that fails while a server is away is not tried again. */
static void churn_announced(party *churners, int i) {
    divvy_registry *registry = churners[i % CHURNERS].registry;
    cJSON *status = make_status(i);
    if (below(3)) {
        assert_int_equal(divvy_registry_heartbeat_async(registry, status, PATIENCE_MS, NULL, NULL), 0);
    } else {
        const char *role = cJSON_GetStringValue(cJSON_GetObjectItem(status, "role"));
        divvy_registry_unregister(registry, role, cJSON_GetStringValue(cJSON_GetObjectItem(status, "id")), 20);
    }
    cJSON_Delete(status);
}

/* Changes services of others, as Curator writes them, or as somebody does who writes nonsense; replaces as Curator
 * does. */
static void churn_raw(int i) {
    char path[64];
    path_of(i, path, sizeof path);
    cJSON *status = make_status(i);
    char *text = cJSON_PrintUnformatted(status);
    if (!below(8)) {
        dv_test_zk_set(truth, path, "{nonsense");
        dv_test_zk_set(truth, path, text);
    } else if (below(2)) {
        dv_test_zk_set(truth, path, text);
    } else {
        dv_test_zk_delete(truth, path);
        if (below(2)) dv_test_zk_create(truth, path, text, 0, NULL);
    }
    cJSON_free(text);
    cJSON_Delete(status);
}

static void churn(party *churners, int ops) {
    for (int n = 0; n < ops; n++) {
        int i = (int)below(IDS);
        if (i < RAW_FROM) churn_announced(churners, i);
        else churn_raw(i);
    }
}

static void announce_all(party *churners) {
    for (int i = 0; i < RAW_FROM; i++) {
        cJSON *status = make_status(i);
        assert_int_equal(divvy_registry_heartbeat(churners[i % CHURNERS].registry, status, NULL, PATIENCE_MS), 0);
        cJSON_Delete(status);
    }
    for (int i = RAW_FROM; i < IDS; i++) {
        char path[64];
        path_of(i, path, sizeof path);
        cJSON *status = make_status(i);
        char *text = cJSON_PrintUnformatted(status);
        assert_int_equal(dv_test_zk_create(truth, path, text, 0, NULL), ZOK);
        cJSON_free(text);
        cJSON_Delete(status);
    }
}

/* 100 entries that others change at random, while sessions end and the server starts again: at rest the view is what a
 * fresh read says, and what was told led there step by step. */
TEST(test_churn) {
    party watcher, churners[CHURNERS];
    for (int i = 0; i < CHURNERS; i++) enter(&churners[i], NULL);
    enter(&watcher, NULL);
    assert_int_equal(divvy_registry_watch(watcher.registry, NULL, on_change, NULL), 0);
    announce_all(churners);
    expect_rest(&watcher, "the announcements");
    churn(churners, OPS);
    expect_rest(&watcher, "churn");
    churn(churners, OPS / 4);
    expire(&watcher);
    churn(churners, OPS / 4);
    expect_rest(&watcher, "the watcher's expiry");
    dv_test_proxy_cut(watcher.proxy);
    churn(churners, OPS / 4);
    dv_test_proxy_restore(watcher.proxy);
    churn(churners, OPS / 4);
    expect_rest(&watcher, "a cut of the watcher's link");
    expire(&churners[0]);
    churn(churners, OPS / 4);
    expect_rest(&watcher, "the expiry of a session with services");
    dv_test_server_kill(server, 1);
    dv_test_server_restart(server, 1);
    churn(churners, OPS / 4);
    expect_rest(&watcher, "a restart of the server");
    expire(&watcher);
    expire(&churners[1]);
    churn(churners, OPS / 4);
    expect_rest(&watcher, "two expiries");
    leave(&watcher);
    for (int i = 0; i < CHURNERS; i++) leave(&churners[i]);
    for (int i = 0; i < IDS; i++) cJSON_Delete(view.known[i]);
    dv_test_zk_delete_all(truth, "/divvy");
}

/* Returns whether a lookup of all sends no request. */
static bool looks_for_free(party *p, size_t count) {
    divvy_stats before, after;
    divvy_client_stats(p->client, &before, sizeof before);
    assert_int_equal(count_healthy(p->registry), count);
    divvy_client_stats(p->client, &after, sizeof after);
    return after.requests == before.requests;
}

/* A lookup in a view sends no request: 10,000 of them read nothing. */
TEST(test_lookups_read_nothing) {
    party watcher, churner;
    enter(&churner, NULL);
    enter(&watcher, NULL);
    for (int i = 0; i < 40; i++) {
        cJSON *status = make_status(i);
        assert_int_equal(divvy_registry_heartbeat(churner.registry, status, NULL, PATIENCE_MS), 0);
        cJSON_Delete(status);
    }
    assert_int_equal(divvy_registry_watch(watcher.registry, NULL, NULL, NULL), 0);
    assert_true(DV_WAIT(looks_for_free(&watcher, 40), PATIENCE_MS)); /* then the view is complete */
    divvy_stats before, after;
    divvy_client_stats(watcher.client, &before, sizeof before);
    for (int i = 0; i < 10000; i++) {
        char role[16];
        snprintf(role, sizeof role, "role%d", i % ROLES);
        cJSON *found = NULL;
        assert_int_equal(divvy_registry_healthy_service(watcher.registry, role, &found, 0), 0);
        assert_non_null(found);
        cJSON_Delete(found);
    }
    divvy_client_stats(watcher.client, &after, sizeof after);
    assert_int_equal(after.reads, before.reads);
    leave(&watcher);
    leave(&churner);
    dv_test_zk_delete_all(truth, "/divvy");
}

/* ---- lists in other threads ---- */

enum { READERS = 3, HELD = 8 };

typedef struct {
    divvy_registry *registry;
    atomic_bool *over;
    unsigned lists, wrong;
} reader;

/* Returns the sum of the loads of a list, or -1 where they are out of order. */
static double sum_of(const divvy_services *list) {
    double sum = 0, before = 0;
    for (size_t i = 0; i < divvy_services_count(list); i++) {
        double load = load_of(divvy_services_entry(list, i));
        if (load < before) return -1;
        before = load;
        sum += load;
    }
    return sum;
}

/* Takes one list after the other, and keeps the last few. */
static void *read_lists(void *context) {
    reader *r = context;
    divvy_services *held[HELD] = {NULL}, *last = NULL;
    double sums[HELD] = {0};
    while (!atomic_load(r->over)) {
        divvy_services *list = NULL;
        r->wrong += divvy_registry_services(r->registry, NULL, &list, PATIENCE_MS) != 0;
        if (list == last) {
            divvy_services_unref(list);
            continue;
        }
        unsigned at = r->lists++ % HELD;
        r->wrong += sum_of(held[at]) != sums[at]; /* It is as it was when it was taken. */
        divvy_services_unref(held[at]);
        held[at] = last = list;
        sums[at] = sum_of(list);
        r->wrong += sums[at] < 0;
    }
    for (int i = 0; i < HELD; i++) divvy_services_unref(held[i]);
    return NULL;
}

/* Threads read lists, each ordered and unchanged for as long as it is kept, while the loop changes the view. */
TEST(test_lists_in_threads) {
    party watcher, churner;
    atomic_bool over = false;
    pthread_t threads[READERS];
    reader readers[READERS];
    enter(&churner, NULL);
    enter(&watcher, NULL);
    assert_int_equal(divvy_registry_watch(watcher.registry, NULL, NULL, NULL), 0);
    for (int i = 0; i < READERS; i++) {
        readers[i] = (reader){watcher.registry, &over, 0, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, read_lists, &readers[i]), 0);
    }
    for (int i = 0; i < 4 * OPS; i++) {
        cJSON *status = make_status((int)below(IDS));
        cJSON_SetNumberValue(cJSON_GetObjectItem(status, "load"), below(100));
        assert_int_equal(divvy_registry_heartbeat(churner.registry, status, NULL, PATIENCE_MS), 0);
        cJSON_Delete(status);
    }
    atomic_store(&over, true);
    for (int i = 0; i < READERS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(readers[i].wrong, 0);
        assert_true(readers[i].lists > 1);
    }
    leave(&watcher);
    leave(&churner);
    dv_test_zk_delete_all(truth, "/divvy");
}

/* ---- a slow user ---- */

static struct {
    atomic_bool may_return;
    atomic_int calls;
    double loads[4][2]; /* before and after */
} slow;

static void on_change_slowly(divvy_registry *registry, int change, const cJSON *before, const cJSON *after,
                             void *user) {
    (void)registry, (void)change, (void)user;
    int n = atomic_load(&slow.calls);
    if (n < 4) {
        slow.loads[n][0] = load_of(before);
        slow.loads[n][1] = load_of(after);
    }
    atomic_store(&slow.calls, n + 1);
    DV_WAIT(atomic_load(&slow.may_return), PATIENCE_MS);
}

static double best_load(divvy_registry *registry) {
    cJSON *found = NULL;
    assert_int_equal(divvy_registry_healthy_service(registry, "role0", &found, PATIENCE_MS), 0);
    double load = load_of(found);
    cJSON_Delete(found);
    return load;
}

static void announce_load(party *p, double load) {
    cJSON *status = make_status(0);
    cJSON_SetNumberValue(cJSON_GetObjectItem(status, "load"), load);
    assert_int_equal(divvy_registry_heartbeat(p->registry, status, NULL, PATIENCE_MS), 0);
    cJSON_Delete(status);
}

/* While a callback runs the view goes on, and all that happened to an entry meanwhile is one call. */
TEST(test_slow_user) {
    enum { BEATS = 50 };
    party watcher, churner;
    enter(&churner, NULL);
    enter(&watcher, NULL);
    assert_int_equal(divvy_registry_watch(watcher.registry, "role0", on_change_slowly, NULL), 0);
    announce_load(&churner, 1);
    assert_true(DV_WAIT(atomic_load(&slow.calls) == 1, PATIENCE_MS));
    for (int i = 2; i <= BEATS; i++) announce_load(&churner, i);
    assert_true(DV_WAIT(best_load(watcher.registry) == BEATS, PATIENCE_MS));
    atomic_store(&slow.may_return, true);
    assert_true(DV_WAIT(atomic_load(&slow.calls) >= 2, PATIENCE_MS));
    assert_int_equal(divvy_registry_unwatch(watcher.registry, "role0"), 0);
    assert_int_equal(atomic_load(&slow.calls), 2);
    assert_true(slow.loads[0][0] == -1 && slow.loads[0][1] == 1);
    assert_true(slow.loads[1][0] == 1 && slow.loads[1][1] == BEATS);
    leave(&watcher);
    leave(&churner);
    dv_test_zk_delete_all(truth, "/divvy");
}

static int set_up(void **state) {
    seed = (unsigned)dv_test_seed("live_registry_watch");
    return start_server(state);
}

TEST_GROUP(set_up, stop_server);
