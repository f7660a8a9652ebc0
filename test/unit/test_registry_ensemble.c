/* Tests of divvy/registry.h on an in-memory ensemble, in virtual time: the rules of doublethink's docstring, each by
 * its words, and what ZooKeeper adds to them. SPDX-License-Identifier: Apache-2.0 */
#include "registry_ensemble_fixture.h"

static void assert_refused(divvy_registry *registry, const char *named, cJSON *status) {
    cJSON *stored = status;
    assert_int_equal(divvy_registry_heartbeat(registry, status, &stored, 1000), DIVVY_EINVAL);
    assert_null(stored);
    if (!strstr(divvy_client_error(w.clients[0]), named)) fail_msg("%s", divvy_client_error(w.clients[0]));
    cJSON_Delete(status);
}

/* ---- "`status_info` ... must have at least the fields 'role', 'load', and 'ttl'" ---- */

/* The error names the field that is missing or wrong, and nothing is stored. */
TEST(test_required_fields) {
    divvy_registry *r = open_registry(&w, 0, NULL);
    assert_refused(r, "\"role\"", json("{'load':1,'ttl':1}"));
    assert_refused(r, "\"load\"", json("{'role':'web','ttl':1}"));
    assert_refused(r, "\"ttl\"", json("{'role':'web','load':1}"));
    assert_refused(r, "\"ttl\"", json("{'role':'web','load':1,'ttl':0}"));
    assert_refused(r, "\"ttl\"", json("{'role':'web','load':1,'ttl':'60'}"));
    assert_refused(r, "object", NULL);
    run(&w, 1000);
    assert_false(divvy_testing_exists(w.ensemble, ROOT));
    beat_only(r, json("{'role':'web','load':1,'ttl':0.5}"));
    assert_int_equal(nodes(ROOT "/web"), 1);
}

/* "let rethinkdb generate a random one": an id is made, returned, and names the same service when it is supplied. */
TEST(test_generated_id) {
    divvy_registry *r = open_registry(&w, 0, NULL);
    cJSON *first = beat(r, json("{'role':'web','load':1,'ttl':60}"));
    assert_int_equal(strlen(text_of(first, "id")), 36);
    cJSON *second = beat(r, cJSON_Duplicate(first, 1));
    assert_string_equal(text_of(first, "id"), text_of(second, "id"));
    assert_int_equal(nodes(ROOT "/web"), 1);
    cJSON *third = beat(r, json("{'role':'web','load':1,'ttl':60}"));
    assert_string_not_equal(text_of(first, "id"), text_of(third, "id"));
    assert_int_equal(nodes(ROOT "/web"), 2);
    cJSON_Delete(first);
    cJSON_Delete(second);
    cJSON_Delete(third);
}

/* "Services can supply their own 'id'", such as role:host:port, with any characters in it; roles likewise. */
TEST(test_own_id) {
    divvy_registry *r = open_registry(&w, 0, NULL);
    beat_only(r, json("{'id':'web/1:%%41:80','role':'a/b','load':1,'ttl':60}"));
    assert_true(divvy_testing_exists(w.ensemble, ROOT "/a%2Fb/web%2F1:%2541:80"));
    assert_string_equal(least(r, "a/b"), "web/1:%41:80");
    assert_int_equal(divvy_registry_unregister(r, "a/b", "web/1:%41:80", WAIT_MS), 0);
    assert_string_equal(least(r, "a/b"), "");
}

/* "'host' ... 'pid' ... set in svcreg.heartbeat() as a fallback", and kept where they are given. */
TEST(test_fallbacks) {
    divvy_registry_config config = DIVVY_REGISTRY_CONFIG_INIT;
    config.host = "host.example";
    config.pid = 77;
    divvy_registry *r = open_registry(&w, 0, &config);
    cJSON *e = beat(r, json("{'role':'web','load':1,'ttl':60}"));
    assert_string_equal(text_of(e, "host"), "host.example");
    assert_true(number_of(e, "pid") == 77);
    cJSON_Delete(e);
    e = beat(r, json("{'role':'web','load':1,'ttl':60,'host':'h','pid':5}"));
    assert_string_equal(text_of(e, "host"), "h");
    assert_true(number_of(e, "pid") == 5);
    cJSON_Delete(e);
}

/* "'first_heartbeat' ... 'last_heartbeat' set in svcreg.heartbeat()": the first one stays, the last one is now, both by
 * the servers' clock to the millisecond or two, whatever this machine's shows (the ensemble's is of 2026). */
TEST(test_heartbeat_times) {
    divvy_registry *r = open_registry(&w, 0, NULL);
    char expected[DV_ISO_BYTES];
    cJSON *first = beat(r, json("{'id':'a','role':'web','load':1,'ttl':60}"));
    dv_iso_print(divvy_testing_wall_clock_ms(w.ensemble), expected);
    assert_memory_equal(text_of(first, "first_heartbeat"), expected, strlen("2026-01-01T00:16:40"));
    assert_true(strcmp(text_of(first, "first_heartbeat"), text_of(first, "last_heartbeat")) <= 0);
    double early_ms = (double)divvy_testing_wall_clock_ms(w.ensemble) - number_of(first, "registrationTimeUTC");
    assert_true(early_ms >= -2 && early_ms < 50);
    run(&w, 5000);
    cJSON *second = beat(r, json("{'id':'a','role':'web','load':1,'ttl':60}"));
    assert_string_equal(text_of(first, "first_heartbeat"), text_of(second, "first_heartbeat"));
    assert_true(number_of(first, "registrationTimeUTC") == number_of(second, "registrationTimeUTC"));
    assert_true(strcmp(text_of(first, "last_heartbeat"), text_of(second, "last_heartbeat")) < 0);
    cJSON *given = beat(r, json("{'id':'a','role':'web','load':1,'ttl':60,'first_heartbeat':'long ago'}"));
    assert_string_equal(text_of(given, "first_heartbeat"), "long ago");
    cJSON_Delete(first);
    cJSON_Delete(second);
    cJSON_Delete(given);
}

/* "services may set arbitrary other fields", and each heartbeat replaces the record: what is left out is gone, also of
 * what another has written under the id. */
TEST(test_replaced) {
    divvy_registry *r = open_registry(&w, 0, NULL), *other = open_registry(&w, 1, NULL);
    beat_only(other, json("{'id':'a','role':'web','load':9,'ttl':60,'old':1}"));
    cJSON *e = beat(r, json("{'id':'a','role':'web','load':1,'ttl':60,'x':{'y':[1,2,'z']},'w':null}")), *found = NULL;
    assert_int_equal(divvy_registry_healthy_service(r, "web", &found, WAIT_MS), 0);
    assert_true(cJSON_Compare(e, found, 1));
    assert_null(cJSON_GetObjectItem(found, "old"));
    assert_true(cJSON_IsArray(cJSON_GetObjectItem(cJSON_GetObjectItem(found, "x"), "y")));
    assert_int_equal(divvy_testing_owner(w.ensemble, ROOT "/web/a"), divvy_client_session_id(w.clients[0]));
    cJSON_Delete(found);
    cJSON_Delete(e);
    e = beat(r, json("{'id':'a','role':'web','load':1,'ttl':60}"));
    assert_null(cJSON_GetObjectItem(e, "x"));
    cJSON_Delete(e);
    /* The node is ours now: the other's session does not take it along. */
    divvy_registry_close(w.registries[1]);
    w.registries[1] = NULL;
    divvy_client_close(w.clients[1]);
    w.clients[1] = NULL;
    run(&w, 6000);
    assert_string_equal(healthy(r, "web"), "a");
}

/* A heartbeat of an entry that stands is one request, and of many services they are under way together. */
TEST(test_one_request) {
    divvy_registry *r = open_registry(&w, 0, NULL);
    divvy_stats before, after;
    for (int i = 0; i < 3; i++) beat_only(r, json("{'id':'a','role':'web','load':1,'ttl':60}"));
    assert_int_equal(divvy_client_stats(w.clients[0], &before, sizeof before), 0);
    beat_only(r, json("{'id':'a','role':'web','load':1,'ttl':60}"));
    assert_int_equal(divvy_client_stats(w.clients[0], &after, sizeof after), 0);
    assert_int_equal(after.sets - before.sets, 1);
    assert_int_equal(after.reads - before.reads, 0);
    assert_int_equal(after.creates - before.creates, 0);
}

/* Where doublethink hands the status back, the caller is told that it was not stored. */
TEST(test_failure_is_told) {
    divvy_registry *r = open_registry(&w, 0, NULL);
    beat_only(r, json("{'id':'a','role':'web','load':1,'ttl':60}"));
    divvy_testing_link_client(w.ensemble, w.clients[0], DIVVY_TESTING_LINK_DOWN);
    cJSON *status = json("{'id':'a','role':'web','load':2,'ttl':60}"), *stored = status;
    assert_int_equal(divvy_registry_heartbeat(r, status, &stored, 500), DIVVY_ETIMEDOUT);
    assert_null(stored);
    cJSON_Delete(status);
    divvy_testing_link_client(w.ensemble, w.clients[0], DIVVY_TESTING_LINK_UP);
    cJSON *array = NULL;
    assert_int_equal(divvy_registry_healthy_services(r, NULL, &array, WAIT_MS), 0);
    assert_int_equal(cJSON_GetArraySize(array), 1);
    cJSON_Delete(array);
}

/* ---- "`healthy_services()` and `healthy_service()` never return entries ... considered 'down'" ---- */

/* "more than 'ttl' seconds ago, it is considered to be down": strictly younger than ttl, by the servers' clock, for a
 * reader that has never written as well. */
TEST(test_ttl) {
    divvy_registry *r = open_registry(&w, 0, NULL), *reader = open_registry(&w, 1, NULL);
    beat_only(r, json("{'id':'short','role':'web','load':1,'ttl':2}"));
    beat_only(r, json("{'id':'long','role':'web','load':2,'ttl':20}"));
    assert_string_equal(healthy(reader, "web"), "short long");
    run(&w, 1900);
    assert_string_equal(healthy(reader, "web"), "short long");
    run(&w, 100);
    assert_string_equal(healthy(reader, "web"), "long");
    assert_string_equal(least(reader, "web"), "long");
    beat_only(r, json("{'id':'short','role':'web','load':1,'ttl':2}"));
    assert_string_equal(healthy(reader, "web"), "short long");
    run(&w, 21000);
    assert_string_equal(healthy(reader, "web"), "");
    assert_string_equal(healthy(reader, NULL), "");
    assert_string_equal(least(reader, "web"), "");
}

/* "`healthy_service(role)` returns the service with the lowest load", healthy_services in that order; of a role, or of
 * all; "may return an empty list". */
TEST(test_load_order) {
    divvy_registry *r = open_registry(&w, 0, NULL);
    assert_string_equal(healthy(r, "web"), "");
    assert_string_equal(healthy(r, NULL), "");
    assert_string_equal(least(r, "web"), "");
    beat_only(r, json("{'id':'c','role':'web','load':3,'ttl':60}"));
    beat_only(r, json("{'id':'a','role':'web','load':0.5,'ttl':60}"));
    beat_only(r, json("{'id':'d','role':'db','load':1,'ttl':60}"));
    beat_only(r, json("{'id':'b','role':'web','load':0.5,'ttl':60}"));
    assert_string_equal(healthy(r, "web"), "a b c");
    assert_string_equal(healthy(r, NULL), "a b d c");
    assert_string_equal(least(r, "web"), "a");
    assert_string_equal(healthy(r, "no such role"), "");
    beat_only(r, json("{'id':'a','role':'web','load':9,'ttl':60}"));
    assert_string_equal(healthy(r, "web"), "b c a");
}

/* No clock of any server or client matters but the one by which nodes are stamped: an hour ahead, an hour behind, and
 * when it is set while services live. */
TEST(test_wrong_clocks) {
    divvy_registry *r = open_registry(&w, 0, NULL), *reader = open_registry(&w, 1, NULL);
    const int64_t hours[] = {3600000, -3600000};
    for (size_t i = 0; i < 2; i++) {
        for (unsigned s = 0; s < 3; s++) divvy_testing_set_wall_clock(w.ensemble, s, hours[i]);
        beat_only(r, json("{'id':'a','role':'web','load':1,'ttl':40}"));
        run(&w, 31000); /* the reader's knowledge is old by then */
        beat_only(r, json("{'id':'a','role':'web','load':1,'ttl':40}"));
        assert_string_equal(healthy(r, "web"), "a");
        assert_string_equal(healthy(reader, "web"), "a");
        run(&w, 40000);
        assert_string_equal(healthy(reader, "web"), "");
    }
}

/* ---- unregister ---- */

/* "Remove the service with id `id`": of a role, or wherever it is, one's own or another's; DIVVY_ENOENT and a warning
 * where there is none. */
TEST(test_unregister) {
    divvy_registry *r = open_registry(&w, 0, NULL), *other = open_registry(&w, 1, NULL);
    assert_int_equal(divvy_registry_unregister(r, "web", "a", WAIT_MS), DIVVY_ENOENT);
    assert_int_equal(divvy_registry_unregister(r, NULL, "a", WAIT_MS), DIVVY_ENOENT);
    run(&w, 10);
    assert_int_equal(count_warnings(&w, DIVVY_WARN_NO_SERVICE), 2);
    beat_only(r, json("{'id':'a','role':'web','load':1,'ttl':60}"));
    beat_only(other, json("{'id':'b','role':'db','load':1,'ttl':60}"));
    beat_only(other, json("{'id':'c','role':'db','load':1,'ttl':60}"));
    assert_int_equal(divvy_registry_unregister(r, "db", "a", WAIT_MS), DIVVY_ENOENT);
    assert_int_equal(divvy_registry_unregister(r, "web", "a", WAIT_MS), 0);
    assert_int_equal(divvy_registry_unregister(r, "web", "a", WAIT_MS), DIVVY_ENOENT);
    assert_int_equal(divvy_registry_unregister(r, "db", "b", WAIT_MS), 0);
    assert_int_equal(divvy_registry_unregister(r, NULL, "c", WAIT_MS), 0);
    assert_string_equal(healthy(r, NULL), "");
    assert_int_equal(divvy_registry_unregister(r, "", "c", WAIT_MS), DIVVY_EINVAL);
    assert_int_equal(divvy_registry_unregister(r, "db", NULL, WAIT_MS), DIVVY_EINVAL);
    /* An unregistered service is not put back on a new session. */
    divvy_testing_expire(w.ensemble, w.clients[0]);
    run(&w, 5000);
    assert_string_equal(healthy(r, NULL), "");
}

/* ---- ephemeral and persistent ---- */

/* Ephemeral entries go with the registry, the client or the session; persistent ones outlive them all. */
TEST(test_persistence) {
    divvy_registry_config config = DIVVY_REGISTRY_CONFIG_INIT;
    config.persistent = 1;
    divvy_registry *ephemeral = open_registry(&w, 0, NULL), *persistent = open_registry(&w, 1, &config);
    divvy_registry *reader = open_registry(&w, 2, NULL);
    beat_only(ephemeral, json("{'id':'e','role':'web','load':1,'ttl':600}"));
    beat_only(persistent, json("{'id':'p','role':'web','load':2,'ttl':600}"));
    assert_string_equal(healthy(reader, NULL), "e p");
    divvy_registry_close(ephemeral);
    divvy_registry_close(persistent);
    w.registries[0] = w.registries[1] = NULL;
    run(&w, 500);
    assert_string_equal(healthy(reader, NULL), "p");
    divvy_stats stats;
    assert_int_equal(divvy_client_stats(w.clients[0], &stats, sizeof stats), 0);
    assert_int_equal(stats.ephemerals, 0);
    beat_only(open_registry(&w, 0, NULL), json("{'id':'e','role':'web','load':1,'ttl':600}"));
    beat_only(open_registry(&w, 1, &config), json("{'id':'q','role':'web','load':3,'ttl':600}"));
    for (int i = 0; i < 2; i++) {
        divvy_client_close(w.clients[i]);
        divvy_registry_close(w.registries[i]);
        w.clients[i] = NULL;
        w.registries[i] = NULL;
    }
    run(&w, 500);
    assert_string_equal(healthy(reader, NULL), "p q");
    /* A heartbeat turns a persistent entry into an ephemeral one, and back. */
    beat_only(reader, json("{'id':'p','role':'web','load':1,'ttl':600}"));
    assert_int_equal(divvy_testing_owner(w.ensemble, ROOT "/web/p"), divvy_client_session_id(w.clients[2]));
    beat_only(open_registry(&w, 1, &config), json("{'id':'p','role':'web','load':1,'ttl':600}"));
    assert_int_equal(divvy_testing_owner(w.ensemble, ROOT "/web/p"), 0);
}

/* An entry stands again on the next session by itself, while its ttl lasts; one whose ttl has passed does not. */
TEST(test_new_session) {
    divvy_registry *r = open_registry(&w, 0, NULL), *reader = open_registry(&w, 1, NULL);
    cJSON *e = beat(r, json("{'id':'a','role':'web','load':1,'ttl':60,'x':1}")), *found = NULL;
    beat_only(r, json("{'id':'b','role':'web','load':1,'ttl':1}"));
    run(&w, 2000);
    divvy_testing_expire(w.ensemble, w.clients[0]);
    run(&w, 5000);
    assert_string_equal(healthy(reader, NULL), "a");
    assert_int_equal(nodes(ROOT "/web"), 1);
    assert_int_equal(divvy_testing_owner(w.ensemble, ROOT "/web/a"), divvy_client_session_id(w.clients[0]));
    assert_int_equal(divvy_registry_healthy_service(r, "web", &found, WAIT_MS), 0);
    assert_string_equal(text_of(found, "first_heartbeat"), text_of(e, "first_heartbeat"));
    assert_true(number_of(found, "x") == 1);
    cJSON_Delete(found);
    cJSON_Delete(e);
    beat_only(r, json("{'id':'b','role':'web','load':1,'ttl':1}"));
    assert_int_equal(nodes(ROOT "/web"), 2);
}

/* A service within the budget of ephemeral nodes is announced, one beyond it is refused at once; one that goes
 * makes room. */
TEST(test_budget) {
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.manual = 1;
    config.ephemeral_path_bytes = 100;
    assert_int_equal(divvy_testing_client_open(&w.clients[0], w.ensemble, &config), 0);
    divvy_registry *r = open_registry(&w, 0, NULL);
    for (int i = 0; i < 4; i++) beat_only(r, json("{'id':'%d','role':'w','load':1,'ttl':60}", i)); /* 23 bytes each */
    cJSON *status = json("{'id':'4','role':'w','load':1,'ttl':60}");
    assert_int_equal(divvy_registry_heartbeat(r, status, NULL, WAIT_MS), DIVVY_ELIMIT);
    beat_only(r, json("{'id':'3','role':'w','load':1,'ttl':60}"));
    assert_int_equal(divvy_registry_unregister(r, "w", "0", WAIT_MS), 0);
    beat_only(r, status);
    assert_string_equal(healthy(r, "w"), "1 2 3 4");
}

/* ---- heartbeats by themselves ---- */

static int asked;
static double on_load(divvy_registry *registry, const char *role, const char *id, double load, void *user) {
    assert_ptr_equal(user, &asked);
    assert_string_equal(role, "web");
    assert_string_equal(id, "a");
    assert_int_equal(divvy_registry_unregister(registry, role, id, WAIT_MS), DIVVY_EDEADLK);
    asked++;
    return load + 1;
}

/* They keep a service healthy, every ttl/3, with the load that the callback tells; until it is unregistered. */
TEST(test_automatic) {
    divvy_registry_config config = DIVVY_REGISTRY_CONFIG_INIT;
    config.heartbeat = 1;
    config.on_load = on_load;
    config.user = &asked;
    asked = 0;
    divvy_registry *r = open_registry(&w, 0, &config), *reader = open_registry(&w, 1, NULL);
    beat_only(r, json("{'id':'a','role':'web','load':10,'ttl':3}"));
    for (int i = 0; i < 60; i++) {
        run(&w, 500);
        assert_string_equal(healthy(reader, "web"), "a");
    }
    assert_true(asked >= 25 && asked <= 35);
    cJSON *found = NULL;
    assert_int_equal(divvy_registry_healthy_service(reader, "web", &found, WAIT_MS), 0);
    assert_true(number_of(found, "load") == 10 + asked);
    cJSON_Delete(found);
    divvy_testing_expire(w.ensemble, w.clients[0]);
    run(&w, 3000);
    assert_string_equal(healthy(reader, "web"), "a");
    assert_int_equal(divvy_registry_unregister(r, "web", "a", WAIT_MS), 0);
    int before = asked;
    run(&w, 10000);
    assert_int_equal(asked, before);
    assert_string_equal(healthy(reader, "web"), "");
    assert_int_equal(count_warnings(&w, DIVVY_WARN_HEARTBEAT), 0);
}

/* ---- asynchronous heartbeats ---- */

static int done_count, done_error;
static void on_done(divvy_registry *registry, int result, const cJSON *stored, void *user) {
    (void)registry;
    assert_ptr_equal(user, &done_count);
    assert_int_equal(result == 0, stored != NULL);
    done_count++;
    if (result) done_error = result;
}

/* Any number may be under way, each is told once, and those of one service are stored in order. */
TEST(test_async) {
    divvy_registry *r = open_registry(&w, 0, NULL);
    done_count = done_error = 0;
    for (int i = 0; i < 100; i++) {
        cJSON *status = json("{'id':'%d','role':'web','load':%d,'ttl':60}", i % 10, i);
        assert_int_equal(divvy_registry_heartbeat_async(r, status, -1, on_done, &done_count), 0);
        cJSON_Delete(status);
    }
    assert_int_equal(done_count, 0);
    run(&w, 1000);
    assert_int_equal(done_count, 100);
    assert_int_equal(done_error, 0);
    cJSON *array = NULL;
    assert_int_equal(divvy_registry_healthy_services(r, "web", &array, WAIT_MS), 0);
    assert_int_equal(cJSON_GetArraySize(array), 10);
    for (int i = 0; i < 10; i++) assert_true(number_of(cJSON_GetArrayItem(array, i), "load") == 90 + i);
    cJSON_Delete(array);
    /* Those that a closed registry has left are told so. */
    for (int i = 0; i < 5; i++) {
        cJSON *status = json("{'id':'%d','role':'web','load':%d,'ttl':60}", i, i);
        assert_int_equal(divvy_registry_heartbeat_async(r, status, -1, on_done, &done_count), 0);
        cJSON_Delete(status);
    }
    divvy_registry_close(r);
    w.registries[0] = NULL;
    assert_int_equal(done_count, 105);
    assert_int_equal(done_error, DIVVY_ECANCELED);
    run(&w, 1000);
    assert_int_equal(nodes(ROOT "/web"), 0);
    /* Without a connection the time passes. */
    r = open_registry(&w, 0, NULL);
    divvy_testing_link_client(w.ensemble, w.clients[0], DIVVY_TESTING_LINK_DOWN);
    cJSON *status = json("{'id':'t','role':'web','load':1,'ttl':60}");
    assert_int_equal(divvy_registry_heartbeat_async(r, status, 300, on_done, &done_count), 0);
    run(&w, 400);
    assert_int_equal(done_count, 106);
    assert_int_equal(done_error, DIVVY_ETIMEDOUT);
    cJSON_Delete(status);
}

/* B12: what a quota refuses is stored when the quota is raised, however long that takes. */
TEST(test_quota) {
    divvy_registry *r = open_registry(&w, 0, NULL);
    beat_only(r, json("{'id':'a','role':'web','load':1,'ttl':60}"));
    done_count = done_error = 0;
    assert_int_equal(divvy_testing_quota(w.ensemble, ROOT, 2), 0);
    run(&w, 1000);
    for (int i = 0; i < 2; i++) { /* another node of the role, and one of another role */
        cJSON *status = json("{'id':'b','role':'%s','load':1,'ttl':60}", i ? "api" : "web");
        assert_int_equal(divvy_registry_heartbeat_async(r, status, -1, on_done, &done_count), 0);
        cJSON_Delete(status);
    }
    run(&w, 400000);
    assert_int_equal(done_count, 0);
    assert_int_equal(divvy_testing_quota(w.ensemble, ROOT, -1), 0);
    run(&w, 10000);
    assert_int_equal(done_count, 2);
    assert_int_equal(done_error, 0);
    assert_int_equal(nodes(ROOT "/web") + nodes(ROOT "/api"), 3);
}

/* ---- what a caller may get wrong ---- */

TEST(test_arguments) {
    open_client(&w, 0);
    divvy_client *c = w.clients[0];
    divvy_registry *r = (divvy_registry *)&w;
    divvy_registry_config config = DIVVY_REGISTRY_CONFIG_INIT;
    assert_int_equal(divvy_registry_open(NULL, c, NULL), DIVVY_EINVAL);
    assert_int_equal(divvy_registry_open(&r, NULL, NULL), DIVVY_EINVAL);
    assert_null(r);
    config.path = "relative";
    assert_int_equal(divvy_registry_open(&r, c, &config), DIVVY_EINVAL);
    config.path = "/";
    assert_int_equal(divvy_registry_open(&r, c, &config), DIVVY_EINVAL);
    config = (divvy_registry_config)DIVVY_REGISTRY_CONFIG_INIT;
    config.heartbeat_jitter = 0.6;
    assert_int_equal(divvy_registry_open(&r, c, &config), DIVVY_EINVAL);
    config = (divvy_registry_config)DIVVY_REGISTRY_CONFIG_INIT;
    config.host = "";
    assert_int_equal(divvy_registry_open(&r, c, &config), DIVVY_EINVAL);
    config = (divvy_registry_config)DIVVY_REGISTRY_CONFIG_INIT;
    config.size = 3;
    assert_int_equal(divvy_registry_open(&r, c, &config), DIVVY_EINVAL);
    cJSON *out, *status = json("{'role':'web','load':1,'ttl':1}");
    assert_int_equal(divvy_registry_heartbeat(NULL, status, &out, 0), DIVVY_EINVAL);
    assert_int_equal(divvy_registry_healthy_service(NULL, "x", &out, 0), DIVVY_EINVAL);
    r = open_registry(&w, 0, NULL);
    assert_int_equal(divvy_registry_healthy_service(r, NULL, &out, 0), DIVVY_EINVAL);
    assert_int_equal(divvy_registry_healthy_service(r, "", &out, 0), DIVVY_EINVAL);
    assert_int_equal(divvy_registry_healthy_service(r, "x", NULL, 0), DIVVY_EINVAL);
    assert_int_equal(divvy_registry_healthy_services(r, "x", &out, -2), DIVVY_EINVAL);
    assert_int_equal(divvy_registry_heartbeat(r, status, &out, -2), DIVVY_EINVAL);
    assert_int_equal(divvy_registry_unique_service(r, NULL, status, &out, 0), DIVVY_EINVAL);
    assert_int_equal(divvy_registry_is_ours(NULL, status), 0);
    assert_int_equal(divvy_registry_is_ours(r, NULL), 0);
    char *big = calloc(1, 200000);
    memset(big, 'x', 5000);
    assert_int_equal(divvy_registry_healthy_service(r, big, &out, 0), DIVVY_E2BIG);
    memset(big, 'x', 199999);
    cJSON_AddStringToObject(status, "big", big);
    assert_int_equal(divvy_registry_heartbeat(r, status, &out, WAIT_MS), DIVVY_E2BIG);
    free(big);
    divvy_client_close(c);
    w.clients[0] = NULL;
    assert_int_equal(divvy_registry_heartbeat(r, status, &out, 0), DIVVY_ECLOSED);
    assert_int_equal(divvy_registry_healthy_services(r, NULL, &out, 0), DIVVY_ECLOSED);
    assert_int_equal(divvy_registry_unregister(r, "x", "y", 0), DIVVY_ECLOSED);
    assert_int_equal(divvy_registry_purge_stale_services(r, 2, NULL, 0), DIVVY_ECLOSED);
    cJSON_Delete(status);
    divvy_registry_close(NULL);
}

TEST_EACH(setup, teardown);
