/* Takes a lock on the in-memory ZooKeeper, by the package's libraries. SPDX-License-Identifier: Apache-2.0 */
#include <divvy/divvy.h>
#include <divvy/testing.h>
#include <divvy/zookeeper.h>
#include <stdio.h>

int main(void) {
    divvy_testing_ensemble *ensemble;
    divvy_client *client;
    divvy_lock *lock;
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    divvy_lock_config lock_config = DIVVY_LOCK_CONFIG_INIT;
    config.manual = 1;
    config.ensemble_tick_ms = 2000;
    lock_config.path = "/lock";
    if (divvy_testing_ensemble_create(&ensemble, NULL) != 0) return 1;
    if (divvy_testing_client_open(&client, ensemble, &config) != 0) return 1;
    if (divvy_lock_create(&lock, client, &lock_config) != 0 || divvy_lock_acquire(lock, 30000) != 0) return 1;
    divvy_lock_destroy(lock);
    divvy_client_close(client);
    divvy_testing_ensemble_destroy(ensemble);
    puts(divvy_version());
    return 0;
}
