/* Objects destroyed by a callback that runs inside a waiting call on them. SPDX-License-Identifier: Apache-2.0
 *
 * In manual mode a waiting call drives the loop and its callbacks; one of those may destroy what is waited on. Meant
 * for AddressSanitizer too. */
#include <stdio.h>

#include "divvy/divvy.h"
#include "divvy/testing.h"
#include "lib/test.h"

static divvy_testing_ensemble *ensemble;
static divvy_client *client;
static divvy_partitioner *partitioner;
static divvy_party *party;
static divvy_partition_state destroy_on;

static void on_session(divvy_client *c, divvy_session_state state, void *user) {
    (void)c, (void)user;
    if (state != DIVVY_CONNECTED || !party) return;
    divvy_party_destroy(party);
    party = NULL;
}

static void on_state(divvy_partitioner *p, divvy_partition_state from, divvy_partition_state to, void *user) {
    (void)from, (void)user;
    if (to != destroy_on || !partitioner) return;
    partitioner = NULL;
    divvy_partitioner_destroy(p);
}

static int set_up(void **state) {
    (void)state;
    divvy_testing_config config = DIVVY_TESTING_CONFIG_INIT;
    divvy_client_config client_config = DIVVY_CLIENT_CONFIG_INIT;
    client_config.manual = 1;
    client_config.on_session = on_session;
    if (divvy_testing_ensemble_create(&ensemble, &config) != 0) return -1;
    return divvy_testing_client_open(&client, ensemble, &client_config);
}

static int tear_down(void **state) {
    (void)state;
    divvy_client_close(client);
    divvy_testing_ensemble_destroy(ensemble);
    return 0;
}

static divvy_partitioner *join(void) {
    static const char *const items[] = {"a", "b"};
    divvy_partitioner_config config = DIVVY_PARTITIONER_CONFIG_INIT;
    config.path = "/pool";
    config.items = items;
    config.item_count = 2;
    config.on_state = on_state;
    assert_int_equal(divvy_partitioner_create(&partitioner, client, &config), 0);
    return partitioner;
}

/* A wait for a change ends with the change that destroyed the partitioner. */
TEST(test_wait_change) {
    destroy_on = DIVVY_ACQUIRED;
    assert_int_equal(divvy_partitioner_wait_change(join(), 1, 60000), 0);
    assert_null(partitioner);
}

/* So does a wait until all is acquired; by then the partitioner is in FAILURE. */
TEST(test_wait_for_acquire) {
    destroy_on = DIVVY_ACQUIRED;
    int error = divvy_partitioner_wait_for_acquire(join(), 60000);
    assert_true(error == 0 || error == DIVVY_ESTATE);
    assert_null(partitioner);
}

/* A finish whose own FAILURE destroys the partitioner goes on until its nodes are gone. */
TEST(test_finish) {
    destroy_on = DIVVY_FAILURE;
    divvy_partitioner *p = join();
    assert_int_equal(divvy_partitioner_wait_for_acquire(p, 60000), 0);
    assert_int_equal(divvy_partitioner_finish(p, 60000), 0);
    assert_null(partitioner);
    divvy_strings *members = divvy_testing_children(ensemble, "/pool/party");
    assert_int_equal(divvy_strings_count(members), 0);
    divvy_strings_free(members);
}

/* A list of a party, and a leave, that wait for the connection whose coming destroys the party. */
TEST(test_party) {
    for (int leaving = 0; leaving <= 1; leaving++) {
        if (leaving) tear_down(state), set_up(state);
        divvy_strings *members = NULL;
        assert_int_equal(divvy_party_join(&party, client, "/party", "me", DIVVY_PARTY), 0);
        divvy_party *p = party;
        int error = leaving ? divvy_party_leave(p, 60000) : divvy_party_members(p, &members, 60000);
        assert_true(leaving ? error == 0 || party != NULL : error != 0 || members != NULL);
        divvy_strings_free(members);
        if (party) divvy_party_destroy(party);
        party = NULL;
    }
}

TEST_EACH(set_up, tear_down);
