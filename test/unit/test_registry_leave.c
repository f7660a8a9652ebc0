/* Tests of how services leave a registry, each of a fault that random histories found. On an in-memory ensemble in
 * virtual time. SPDX-License-Identifier: Apache-2.0 */
#include "registry_fixture.h"

#define ENTRY "/divvy/services/web/a"

static cJSON *status(void) {
    return json("{'role': 'web', 'id': 'a', 'load': 1, 'ttl': 60}");
}

static unsigned long long ephemerals(const world *w) {
    divvy_stats stats;
    assert_int_equal(divvy_client_stats(w->clients[0], &stats, sizeof stats), 0);
    return stats.ephemerals;
}

/* Unregistering what somebody else has deleted finds nothing, and keeps nothing: no room in the session's budget, and
 * no announcement on the next session. */
static void unregister_what_is_gone(const char *role) {
    world w;
    open_world(&w, NULL, 1);
    divvy_registry *registry = open_registry(&w, 0, NULL);
    beat_only(registry, status());
    assert_int_equal(ephemerals(&w), 1);
    assert_int_equal(divvy_testing_remove(w.ensemble, ENTRY), 0);
    run(&w, 1000);
    assert_int_equal(divvy_registry_unregister(registry, role, "a", WAIT_MS), DIVVY_ENOENT);
    assert_int_equal(ephemerals(&w), 0);
    assert_int_equal(divvy_testing_expire(w.ensemble, w.clients[0]), 0);
    run(&w, 10000);
    assert_false(divvy_testing_exists(w.ensemble, ENTRY));
    close_world(&w);
}

TEST(test_unregister_what_is_gone) {
    unregister_what_is_gone("web");
}

/* Likewise in all roles, when no role has it. */
TEST(test_unregister_what_is_gone_in_all_roles) {
    unregister_what_is_gone(NULL);
}

/* In all roles, a service of our own is removed even when the time passes before anything can be read. */
TEST(test_unregister_in_no_time) {
    world w;
    open_world(&w, NULL, 1);
    divvy_registry *registry = open_registry(&w, 0, NULL);
    beat_only(registry, status());
    divvy_testing_link_client(w.ensemble, w.clients[0], DIVVY_TESTING_LINK_DOWN);
    assert_int_equal(divvy_registry_unregister(registry, NULL, "a", 50), DIVVY_ETIMEDOUT);
    divvy_testing_link_client(w.ensemble, w.clients[0], DIVVY_TESTING_LINK_UP);
    run(&w, 15000);
    assert_false(divvy_testing_exists(w.ensemble, ENTRY));
    close_world(&w);
}

/* Two registries on one session store an entry under one name, one after the other: when the first is closed the
 * second's entry stays. */
TEST(test_close_leaves_anothers) {
    world w;
    divvy_registry *second;
    divvy_registry_config config = DIVVY_REGISTRY_CONFIG_INIT;
    config.nonce = "second";
    open_world(&w, NULL, 1);
    divvy_registry *first = open_registry(&w, 0, NULL);
    assert_int_equal(divvy_registry_open(&second, w.clients[0], &config), 0);
    beat_only(first, status());
    beat_only(second, status());
    divvy_registry_close(first);
    w.registries[0] = NULL;
    run(&w, 5000);
    assert_true(divvy_testing_exists(w.ensemble, ENTRY));
    divvy_registry_close(second);
    run(&w, 1000);
    assert_false(divvy_testing_exists(w.ensemble, ENTRY));
    close_world(&w);
}

/* A claim that waits for the servers' clock when its registry is closed is not carried out afterwards. */
static void count_creates(const divvy_testing_transaction *t, void *user) {
    world *w = user;
    if (t->kind == DIVVY_TESTING_CREATE && strcmp(t->path, "/divvy/services/leader/leader") == 0) w->warnings++;
}

TEST(test_no_claim_after_close) {
    world w;
    open_world(&w, count_creates, 1);
    divvy_registry *registry = open_registry(&w, 0, NULL);
    beat_only(registry, status()); /* The path stands. */
    divvy_registry *second;
    assert_int_equal(divvy_registry_open(&second, w.clients[0], NULL), 0);
    divvy_testing_link_client(w.ensemble, w.clients[0], DIVVY_TESTING_LINK_DOWN);
    cJSON *candidate = json("{'ttl': 60}");
    assert_int_equal(divvy_registry_unique_service(second, "leader", candidate, NULL, 50), DIVVY_ETIMEDOUT);
    cJSON_Delete(candidate);
    divvy_registry_close(second);
    w.warnings = 0;
    divvy_testing_link_client(w.ensemble, w.clients[0], DIVVY_TESTING_LINK_UP);
    run(&w, 15000);
    assert_int_equal(w.warnings, 0);
    close_world(&w);
}

/* Nor is it when the session is lost after that, and the client ends as it has just got another one. */
TEST(test_no_claim_after_loss) {
    world w;
    open_world(&w, count_creates, 1);
    divvy_registry *registry = open_registry(&w, 0, NULL);
    beat_only(registry, status());
    divvy_registry *second;
    assert_int_equal(divvy_registry_open(&second, w.clients[0], NULL), 0);
    divvy_testing_link_client(w.ensemble, w.clients[0], DIVVY_TESTING_LINK_NO_REPLIES);
    cJSON *candidate = json("{'ttl': 60}");
    assert_int_equal(divvy_registry_unique_service(second, "leader", candidate, NULL, 50), DIVVY_ETIMEDOUT);
    cJSON_Delete(candidate);
    divvy_registry_close(second);
    divvy_testing_expire(w.ensemble, w.clients[0]);
    run(&w, 60000); /* Its clock gives the session up, and no server can be heard to give another. */
    w.warnings = 0;
    divvy_testing_link_client(w.ensemble, w.clients[0], DIVVY_TESTING_LINK_UP);
    while (divvy_client_state(w.clients[0]) != DIVVY_CONNECTED)
        assert_in_range(divvy_testing_step(w.ensemble, divvy_testing_now_ms(w.ensemble) + 1000), 0, 1);
    divvy_testing_crash_client(w.ensemble, w.clients[0]);
    close_world(&w);
    assert_int_equal(w.warnings, 0);
}
