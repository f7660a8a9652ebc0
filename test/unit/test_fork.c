/* Tests of a client in a process that was forked. SPDX-License-Identifier: Apache-2.0 */
#include <sys/wait.h>
#include <unistd.h>

#include "divvy/divvy.h"
#include "divvy/testing.h"
#include "lib/test.h"

/* A client belongs to the process that has opened it: a child of that process is refused, and the parent goes on. */
TEST(test_belongs_to_the_parent) {
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    divvy_testing_ensemble *ensemble;
    divvy_client *client;
    int status;
    config.manual = 1;
    assert_int_equal(divvy_testing_ensemble_create(&ensemble, NULL), 0);
    assert_int_equal(divvy_testing_client_open(&client, ensemble, &config), 0);
    assert_int_equal(divvy_client_wait_connected(client, 30000), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int error = divvy_client_wait_connected(client, 30000);
        _exit(error == DIVVY_EFORK && divvy_client_state(client) == DIVVY_CLOSED ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(divvy_client_wait_connected(client, 30000), 0);
    assert_int_equal(divvy_client_state(client), DIVVY_CONNECTED);
    divvy_client_close(client);
    divvy_testing_ensemble_destroy(ensemble);
}
