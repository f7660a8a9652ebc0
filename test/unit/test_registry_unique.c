/* Tests of unique services and purges. SPDX-License-Identifier: Apache-2.0 */
#include "registry_ensemble_fixture.h"

#include "testing/ensemble.h"

/* ---- unique_service ---- */

#define CANDIDATE(host) json("{'ttl':3,'host':'%s'}", host)

/* "checks if there is already a unique healthy instance, and if not, sets `candidate`": the first one holds the role,
 * of the others each is given its entry; only ttl is required; who only looks changes nothing. */
TEST(test_unique_claim) {
    divvy_registry *a = open_registry(&w, 0, NULL), *b = open_registry(&w, 1, NULL);
    assert_string_equal(holder(b, "leader", NULL), "");
    cJSON *bad = json("{'load':1}"), *found;
    assert_int_equal(divvy_registry_unique_service(a, "leader", bad, &found, WAIT_MS), DIVVY_EINVAL);
    assert_non_null(strstr(divvy_client_error(w.clients[0]), "\"ttl\""));
    cJSON_Delete(bad);
    assert_false(divvy_testing_exists(w.ensemble, ROOT "/leader/leader"));
    cJSON *mine = unique(a, "leader", CANDIDATE("a"));
    assert_string_equal(text_of(mine, "id"), "leader");
    assert_string_equal(text_of(mine, "role"), "leader");
    assert_int_equal(divvy_registry_is_ours(a, mine), 1);
    assert_int_equal(divvy_registry_is_ours(b, mine), 0);
    assert_string_equal(holder(b, "leader", CANDIDATE("b")), "a");
    assert_string_equal(holder(b, "leader", NULL), "a");
    assert_string_equal(holder(a, "leader", NULL), "a");
    assert_int_equal(divvy_testing_owner(w.ensemble, ROOT "/leader/leader"), divvy_client_session_id(w.clients[0]));
    cJSON_Delete(mine);
}

/* A path that cannot be made, as below a chroot that is not there, ends a claim: the task does not go on for ever. */
TEST(test_unique_without_chroot) {
    enum { NONODE = -101, MANY = 1000000 };
    divvy_registry *a = open_registry(&w, 0, NULL);
    assert_int_equal(divvy_testing_answer(w.ensemble, w.clients[0], NONODE, 0, 0, MANY), 0);
    cJSON *candidate = CANDIDATE("a"), *found;
    assert_int_equal(divvy_registry_unique_service(a, "leader", candidate, &found, -1), DIVVY_ENOENT);
    assert_int_equal(divvy_testing_answer(w.ensemble, w.clients[0], NONODE, 0, 0, 0), 0);
    cJSON_Delete(candidate);
    cJSON_Delete(unique(a, "leader", CANDIDATE("a")));
}

/* "If it is, updates 'last_heartbeat'", "don't touch first_heartbeat"; and volatile fields do no harm: nothing
 * flaps. */
TEST(test_unique_keep) {
    divvy_registry *a = open_registry(&w, 0, NULL), *b = open_registry(&w, 1, NULL);
    cJSON *first = unique(a, "leader", CANDIDATE("a"));
    for (int i = 0; i < 10; i++) {
        run(&w, 2000);
        cJSON *again = unique(a, "leader", json("{'ttl':3,'host':'a','load':%d,'mood':'%d'}", i, i));
        assert_string_equal(text_of(first, "first_heartbeat"), text_of(again, "first_heartbeat"));
        assert_true(strcmp(text_of(first, "last_heartbeat"), text_of(again, "last_heartbeat")) < 0);
        assert_int_equal(divvy_registry_is_ours(a, again), 1);
        cJSON_Delete(again);
        assert_string_equal(holder(b, "leader", CANDIDATE("b")), "a");
    }
    cJSON_Delete(first);
}

/* The role is taken over once the holder's ttl has passed, not before, though its session lives: the node is then an
 * ephemeral of the new holder's session, and the old one is a candidate like others. Nobody healthy is nobody. */
TEST(test_unique_take_over) {
    divvy_registry *a = open_registry(&w, 0, NULL), *b = open_registry(&w, 1, NULL), *c = open_registry(&w, 2, NULL);
    cJSON *first = unique(a, "leader", CANDIDATE("a"));
    run(&w, 2900);
    assert_string_equal(holder(b, "leader", CANDIDATE("b")), "a");
    run(&w, 150);
    assert_string_equal(holder(c, "leader", NULL), "");
    cJSON *second = unique(b, "leader", CANDIDATE("b"));
    assert_string_equal(text_of(second, "host"), "b");
    assert_true(strcmp(text_of(first, "first_heartbeat"), text_of(second, "first_heartbeat")) < 0);
    assert_int_equal(divvy_testing_owner(w.ensemble, ROOT "/leader/leader"), divvy_client_session_id(w.clients[1]));
    cJSON *told = unique(a, "leader", CANDIDATE("a"));
    assert_string_equal(text_of(told, "host"), "b");
    assert_int_equal(divvy_registry_is_ours(a, told), 0);
    assert_int_equal(divvy_registry_is_ours(a, first), 0);
    assert_int_equal(divvy_registry_is_ours(b, second), 1);
    /* The old holder's end takes nothing of the new one's along. */
    divvy_testing_crash_client(w.ensemble, w.clients[0]);
    run(&w, 2000);
    assert_string_equal(holder(b, "leader", CANDIDATE("b")), "b");
    run(&w, 2900);
    assert_string_equal(holder(c, "leader", NULL), "b");
    cJSON_Delete(first);
    cJSON_Delete(second);
    cJSON_Delete(told);
}

/* Version numbers of nodes start again with each holder; an old holder whose node had the same version as the new one's
 * does not write over it. */
TEST(test_unique_same_version) {
    divvy_registry *a = open_registry(&w, 0, NULL), *b = open_registry(&w, 1, NULL);
    assert_string_equal(holder(a, "leader", CANDIDATE("a")), "a"); /* version 0 */
    run(&w, 3100);
    assert_string_equal(holder(b, "leader", CANDIDATE("b")), "b"); /* version 0 again */
    assert_string_equal(holder(a, "leader", CANDIDATE("a")), "b");
    assert_string_equal(holder(b, "leader", NULL), "b");
    assert_int_equal(divvy_testing_owner(w.ensemble, ROOT "/leader/leader"), divvy_client_session_id(w.clients[1]));
}

/* The holder's session is replaced: the node of the old one may still stand. It goes on to hold the role, with its
 * first_heartbeat, in a node of the new session. */
TEST(test_unique_new_session) {
    divvy_registry *a = open_registry(&w, 0, NULL), *b = open_registry(&w, 1, NULL);
    cJSON *first = unique(a, "leader", CANDIDATE("a"));
    /* Another client of the same process and identity stands for the new session, while the old one still lives. */
    divvy_registry_config config = DIVVY_REGISTRY_CONFIG_INIT;
    config.nonce = "nonce-0";
    divvy_registry *a2 = open_registry(&w, 2, &config);
    cJSON *again = unique(a2, "leader", json("{'ttl':3,'host':'a','pid':%d}", (int)number_of(first, "pid")));
    assert_string_equal(text_of(again, "first_heartbeat"), text_of(first, "first_heartbeat"));
    assert_int_equal(divvy_testing_owner(w.ensemble, ROOT "/leader/leader"), divvy_client_session_id(w.clients[2]));
    divvy_testing_expire(w.ensemble, w.clients[0]);
    run(&w, 1000);
    assert_string_equal(holder(b, "leader", CANDIDATE("b")), "a");
    /* And where the node has gone with the session, nobody holds the role until somebody claims it. */
    divvy_testing_expire(w.ensemble, w.clients[2]);
    run(&w, 2000);
    assert_string_equal(holder(b, "leader", NULL), "");
    assert_string_equal(holder(a2, "leader", CANDIDATE("a")), "a");
    assert_int_equal(divvy_testing_owner(w.ensemble, ROOT "/leader/leader"), divvy_client_session_id(w.clients[2]));
    cJSON_Delete(first);
    cJSON_Delete(again);
}

/* A node without an entry stands for nobody: it is skipped with a warning, and replaced by a claim. */
TEST(test_unique_malformed) {
    divvy_registry *a = open_registry(&w, 0, NULL);
    static const char *const parents[] = {"/divvy", ROOT, ROOT "/leader"};
    for (size_t i = 0; i < 3; i++) divvy_testing_put(w.ensemble, parents[i], "", 0, DIVVY_TESTING_PERSISTENT);
    divvy_testing_put(w.ensemble, ROOT "/leader/leader", "junk", 4, DIVVY_TESTING_PERSISTENT);
    run(&w, 100);
    assert_string_equal(holder(a, "leader", NULL), "");
    assert_string_equal(holder(a, "leader", CANDIDATE("a")), "a");
    assert_int_equal(divvy_registry_malformed(a), 1);
    run(&w, 10);
    assert_int_equal(count_warnings(&w, DIVVY_WARN_ENTRY), 1);
}

static const dv_mem_blob *role_data(void) {
    const dv_mem *mem = w.ensemble;
    return dv_mem_path_find(mem, ROOT "/leader")->places[mem->truth_server].node->data;
}

/* V11: a claim sets the role's node to what stands there already, however much that is. What fits no transaction is
 * left alone, and nobody holds the role. */
TEST(test_unique_role_data) {
    static char data[300000];
    static const size_t sizes[] = {1, 1025, 100000, sizeof data};
    divvy_registry *a = open_registry(&w, 0, NULL);
    memset(data, 'x', sizeof data);
    divvy_testing_put(w.ensemble, "/divvy", "", 0, DIVVY_TESTING_PERSISTENT);
    divvy_testing_put(w.ensemble, ROOT, "", 0, DIVVY_TESTING_PERSISTENT);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        bool fits = sizes[i] < sizeof data;
        divvy_testing_put(w.ensemble, ROOT "/leader", data, sizes[i], DIVVY_TESTING_PERSISTENT);
        run(&w, 100);
        cJSON *candidate = CANDIDATE("a"), *entry;
        int expected = fits ? 0 : DIVVY_E2BIG;
        assert_int_equal(divvy_registry_unique_service(a, "leader", candidate, &entry, WAIT_MS), expected);
        cJSON_Delete(candidate);
        cJSON_Delete(entry);
        assert_non_null(role_data());
        assert_int_equal(role_data()->bytes, sizes[i]);
        assert_memory_equal(role_data()->data, data, sizes[i]);
        if (fits) assert_int_equal(divvy_registry_unregister(a, "leader", "leader", WAIT_MS), 0);
    }
}

/* Exactly one of the candidates that come at once holds the role, and all are told so. */
TEST(test_unique_race) {
    for (int round = 0; round < 20; round++) {
        char role[32], first[256];
        snprintf(role, sizeof role, "leader%d", round);
        for (int i = 0; i < 4; i++) {
            if (!w.registries[i]) open_registry(&w, i, NULL);
        }
        /* Each sends its look, in turn, before any of them is answered: the calls wait for 0 ms. */
        for (int i = 0; i < 4; i++) {
            cJSON *candidate = json("{'ttl':3,'host':'h%d'}", i), *entry;
            int error = divvy_registry_unique_service(w.registries[i], role, candidate, &entry, round % 4);
            assert_true(error == 0 || error == DIVVY_ETIMEDOUT);
            cJSON_Delete(candidate);
            cJSON_Delete(entry);
        }
        run(&w, 200);
        snprintf(first, sizeof first, "%s", holder(w.registries[0], role, CANDIDATE("h0")));
        assert_true(first[0] == 'h');
        for (int i = 1; i < 4; i++)
            assert_string_equal(holder(w.registries[i], role, json("{'ttl':3,'host':'h%d'}", i)), first);
    }
}

/* ---- purge_stale_services ---- */

/* "last_heartbeat ... gt ttl * ttls_until_deletion": strictly older, by default twice its ttl; the count is returned;
 * what heartbeats again stands again; what has no ttl stays. */
TEST(test_purge) {
    divvy_registry_config config = DIVVY_REGISTRY_CONFIG_INIT;
    config.persistent = 1;
    divvy_registry *r = open_registry(&w, 0, &config), *other = open_registry(&w, 1, NULL);
    size_t purged = 99;
    assert_int_equal(divvy_registry_purge_stale_services(other, 2, &purged, WAIT_MS), 0);
    assert_int_equal(purged, 0);
    for (int i = 0; i < 5; i++) beat_only(r, json("{'id':'%d','role':'web','load':1,'ttl':1}", i));
    beat_only(r, json("{'id':'x','role':'db','load':1,'ttl':60}"));
    static const char curators[] = "{\"name\":\"db\",\"id\":\"c\"}";
    divvy_testing_put(w.ensemble, ROOT "/db/c", curators, sizeof curators - 1, DIVVY_TESTING_PERSISTENT);
    run(&w, 1900);
    assert_int_equal(divvy_registry_purge_stale_services(other, 2, &purged, WAIT_MS), 0);
    assert_int_equal(purged, 0);
    beat_only(r, json("{'id':'3','role':'web','load':1,'ttl':1}"));
    run(&w, 300);
    assert_int_equal(divvy_registry_purge_stale_services(other, 2, &purged, WAIT_MS), 0);
    assert_int_equal(purged, 4);
    assert_string_equal(healthy(r, NULL), "c 3 x");
    beat_only(r, json("{'id':'0','role':'web','load':1,'ttl':1}"));
    assert_int_equal(nodes(ROOT "/web"), 2);
    assert_int_equal(divvy_registry_purge_stale_services(other, -1, &purged, WAIT_MS), DIVVY_EINVAL);
    assert_int_equal(divvy_registry_purge_stale_services(other, 0.0 / 0.0, &purged, WAIT_MS), DIVVY_EINVAL);
    run(&w, 10);
    assert_int_equal(divvy_registry_purge_stale_services(other, 0, NULL, WAIT_MS), 0);
    assert_string_equal(healthy(r, NULL), "c");
}

TEST_EACH(setup, teardown);
