/* A member that takes part again while its old node is still there. SPDX-License-Identifier: Apache-2.0 */

#include "divvy/divvy.h"
#include "divvy/testing.h"
#include "lib/test.h"

static const char *const items[] = {"one", "two", "three"};
enum { ITEMS = sizeof items / sizeof *items };

static unsigned identifier_warnings, releases, both_there;
static divvy_testing_ensemble *ensemble;

static void on_warning(divvy_client *client, int code, const char *message, void *user) {
    (void)client;
    (void)message;
    (void)user;
    identifier_warnings += code == DIVVY_WARN_IDENTIFIER;
}

static void on_state(divvy_partitioner *p, divvy_partition_state from, divvy_partition_state to, void *user) {
    (void)from;
    (void)user;
    if (to == DIVVY_RELEASE && divvy_partitioner_release_set(p) == 0) releases++;
}

static divvy_client *open_client(void) {
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    divvy_client *client;
    config.manual = 1;
    config.on_warning = on_warning;
    assert_int_equal(divvy_testing_client_open(&client, ensemble, &config), 0);
    return client;
}

static divvy_partitioner *join(divvy_client *client, const char *identifier) {
    divvy_partitioner_config config = DIVVY_PARTITIONER_CONFIG_INIT;
    divvy_partitioner *p;
    config.path = "/pool";
    config.items = items;
    config.item_count = ITEMS;
    config.identifier = identifier;
    config.time_boundary_ms = 100;
    config.on_session_loss = DIVVY_REJOIN;
    config.on_state = on_state;
    assert_int_equal(divvy_partitioner_create(&p, client, &config), 0);
    return p;
}

static size_t members(void) {
    divvy_strings *names = divvy_testing_children(ensemble, "/pool/party");
    size_t count = divvy_strings_count(names);
    divvy_strings_free(names);
    return count;
}

/* Its old node is not taken for another member of its name: neither by it, nor by another. A namesake is told of. */
TEST(test_own_old_node) {
    divvy_testing_config config = DIVVY_TESTING_CONFIG_INIT;
    assert_int_equal(divvy_testing_ensemble_create(&ensemble, &config), 0);
    divvy_client *client = open_client();
    divvy_partitioner *p = join(client, "m");
    divvy_client *onlooker = open_client();
    divvy_partitioner *looking = join(onlooker, "onlooker");
    assert_int_equal(divvy_partitioner_wait_for_acquire(p, 30000), 0);

    /* Requests arrive and their answers do not: the servers keep a session that its owner has to give up. */
    assert_int_equal(divvy_testing_link_client(ensemble, client, DIVVY_TESTING_LINK_NO_REPLIES), 0);
    for (int i = 0; i < 600 && releases == 0; i++) divvy_testing_run(ensemble, 100);
    assert_int_equal(releases, 1);
    assert_int_equal(divvy_testing_link_client(ensemble, client, DIVVY_TESTING_LINK_UP), 0);
    for (int i = 0; i < 600; i++) {
        divvy_testing_run(ensemble, 50);
        both_there += members() == 3;
    }
    assert_true(both_there > 10); /* longer than it takes to settle, so that it had to be judged */
    assert_int_equal(divvy_partitioner_wait_for_acquire(p, 60000), 0);
    assert_int_equal(identifier_warnings, 0);

    divvy_client *other = open_client();
    divvy_partitioner *namesake = join(other, "m");
    assert_int_equal(divvy_partitioner_wait_for_acquire(namesake, 30000), 0);
    divvy_testing_run(ensemble, 1000);
    assert_true(identifier_warnings > 0);

    divvy_partitioner_destroy(looking);
    divvy_client_close(onlooker);
    divvy_partitioner_destroy(namesake);
    divvy_client_close(other);
    divvy_partitioner_destroy(p);
    divvy_client_close(client);
    divvy_testing_ensemble_destroy(ensemble);
}
