/* Directories that are containers: they go by themselves, and are made again. SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "divvy/divvy.h"
#include "divvy/testing.h"
#include "lib/fake_znode.h"
#include "lib/test.h"
#include "znode/ensure.h"
#include <cjson/cJSON.h>

enum { LEVELS_GO_MS = 400000 }; /* one level each minute */

static divvy_testing_ensemble *ensemble;
static divvy_client *client;

static int set_up(void **state) {
    (void)state;
    divvy_testing_config config = DIVVY_TESTING_CONFIG_INIT;
    assert_int_equal(divvy_testing_ensemble_create(&ensemble, &config), 0);
    divvy_client_config client_config = DIVVY_CLIENT_CONFIG_INIT;
    client_config.manual = 1;
    assert_int_equal(divvy_testing_client_open(&client, ensemble, &client_config), 0);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    divvy_client_close(client);
    divvy_testing_ensemble_destroy(ensemble);
    return 0;
}

static bool is_there(const char *path) {
    return divvy_testing_exists(ensemble, path) == 1;
}

/* A lock's path goes when nobody is left in it, with all that was made for it, and the next acquire makes it again.
 * Without the choice it stays. */
TEST_IN(test_lock, set_up, tear_down) {
    for (int container = 0; container <= 1; container++) {
        divvy_lock_config config = DIVVY_LOCK_CONFIG_INIT;
        config.path = container ? "/own/locks/l" : "/app/locks/l";
        config.container = container;
        divvy_lock *lock;
        assert_int_equal(divvy_lock_create(&lock, client, &config), 0);
        for (int times = 0; times < 2; times++) {
            assert_int_equal(divvy_lock_acquire(lock, 5000), 0);
            divvy_testing_run(ensemble, LEVELS_GO_MS);
            assert_true(divvy_lock_held(lock));
            assert_int_equal(divvy_lock_release(lock), 0);
            divvy_testing_run(ensemble, LEVELS_GO_MS);
            assert_int_equal(is_there(config.path), !container);
            assert_int_equal(is_there(container ? "/own" : "/app"), !container);
        }
        divvy_lock_destroy(lock);
    }
}

TEST_IN(test_semaphore, set_up, tear_down) {
    divvy_semaphore_config config = DIVVY_SEMAPHORE_CONFIG_INIT;
    config.path = "/own/semaphores/s";
    config.limit = 2;
    config.container = 1;
    divvy_semaphore *semaphore;
    assert_int_equal(divvy_semaphore_create(&semaphore, client, &config), 0);
    for (int times = 0; times < 2; times++) {
        assert_int_equal(divvy_semaphore_acquire(semaphore, 5000), 0);
        divvy_testing_run(ensemble, LEVELS_GO_MS);
        assert_true(divvy_semaphore_held(semaphore));
        assert_true(is_there("/own/semaphores/s"));
        assert_int_equal(divvy_semaphore_release(semaphore), 0);
        divvy_testing_run(ensemble, LEVELS_GO_MS);
        assert_false(is_there("/own"));
    }
    divvy_semaphore_destroy(semaphore);
}

/* A registry's roles and its directory go with the last service, and a heartbeat makes them again. */
TEST_IN(test_registry, set_up, tear_down) {
    divvy_registry *registry;
    divvy_registry_config config = DIVVY_REGISTRY_CONFIG_INIT;
    assert_int_equal(divvy_registry_open(&registry, client, &config), 0);
    for (int times = 0; times < 2; times++) {
        cJSON *status = cJSON_Parse("{\"id\":\"s1\",\"role\":\"web\",\"load\":1,\"ttl\":60}");
        assert_int_equal(divvy_registry_heartbeat(registry, status, NULL, 5000), 0);
        cJSON_Delete(status);
        assert_true(is_there("/divvy/services/web/s1"));
        assert_int_equal(divvy_registry_unregister(registry, "web", "s1", 5000), 0);
        divvy_testing_run(ensemble, LEVELS_GO_MS);
        assert_false(is_there("/divvy"));
    }
    divvy_registry_close(registry);
}

/* ---- servers that have no containers ---- */

static int told;

static void on_ensured(void *context, int error, int64_t now) {
    (void)context, (void)now;
    told = error;
}

/* Servers that refuse containers are given persistent nodes; another refusal is told. */
TEST(test_old_servers) {
    static const int answers[] = {0, DIVVY_EEXIST, DIVVY_EACCES};
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        dv_fake *fake = dv_fake_open(NULL);
        dv_fake_session(fake, DIVVY_CONNECTED);
        divvy_client *of_fake = dv_fake_client(fake);
        told = 1;
        dv_client_lock(of_fake);
        assert_int_equal(dv_ensure_path(of_fake->znode, "/a/b", DV_CONTAINER, on_ensured, NULL), 0);
        dv_client_unlock(of_fake);
        assert_string_equal(dv_fake_pending(fake), "exists /a/b");
        dv_fake_answer(fake, &(dv_reply){.error = DIVVY_ENOENT});
        assert_string_equal(dv_fake_pending(fake), "container /a, container /a/b");
        dv_fake_answer(fake, &(dv_reply){.error = DIVVY_EUNSUPPORTED});
        dv_fake_answer(fake, &(dv_reply){.error = DIVVY_EUNSUPPORTED});
        assert_int_equal(told, 1);
        assert_string_equal(dv_fake_pending(fake), "create /a, create /a/b");
        dv_fake_answer(fake, &(dv_reply){.error = DIVVY_EEXIST});
        dv_fake_answer(fake, &(dv_reply){.error = answers[i]});
        assert_int_equal(told, answers[i] == DIVVY_EACCES ? DIVVY_EACCES : 0);
        dv_fake_session(fake, DIVVY_SUSPENDED);
        dv_fake_close(fake);
    }
}
