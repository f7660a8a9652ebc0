/* The init functions of public config structs, for other languages. SPDX-License-Identifier: Apache-2.0 */
#include "base/config.h"

#include "divvy/divvy.h"

void divvy_client_config_init(divvy_client_config *config, size_t size) {
    static const divvy_client_config defaults = DIVVY_CLIENT_CONFIG_INIT;
    dv_config_init(config, size, &defaults, sizeof defaults);
}

void divvy_partitioner_config_init(divvy_partitioner_config *config, size_t size) {
    static const divvy_partitioner_config defaults = DIVVY_PARTITIONER_CONFIG_INIT;
    dv_config_init(config, size, &defaults, sizeof defaults);
}

void divvy_partitioner_config_init_kazoo(divvy_partitioner_config *config, size_t size) {
    static const divvy_partitioner_config defaults = DIVVY_PARTITIONER_CONFIG_KAZOO;
    dv_config_init(config, size, &defaults, sizeof defaults);
}

void divvy_workers_config_init(divvy_workers_config *config, size_t size) {
    static const divvy_workers_config defaults = DIVVY_WORKERS_CONFIG_INIT;
    dv_config_init(config, size, &defaults, sizeof defaults);
}

void divvy_lock_config_init(divvy_lock_config *config, size_t size) {
    static const divvy_lock_config defaults = DIVVY_LOCK_CONFIG_INIT;
    dv_config_init(config, size, &defaults, sizeof defaults);
}

void divvy_election_config_init(divvy_election_config *config, size_t size) {
    static const divvy_election_config defaults = DIVVY_ELECTION_CONFIG_INIT;
    dv_config_init(config, size, &defaults, sizeof defaults);
}

void divvy_semaphore_config_init(divvy_semaphore_config *config, size_t size) {
    static const divvy_semaphore_config defaults = DIVVY_SEMAPHORE_CONFIG_INIT;
    dv_config_init(config, size, &defaults, sizeof defaults);
}

void divvy_registry_config_init(divvy_registry_config *config, size_t size) {
    static const divvy_registry_config defaults = DIVVY_REGISTRY_CONFIG_INIT;
    dv_config_init(config, size, &defaults, sizeof defaults);
}

void divvy_sticky_options_init(divvy_sticky_options *options, size_t size) {
    static const divvy_sticky_options defaults = DIVVY_STICKY_OPTIONS_INIT;
    dv_config_init(options, size, &defaults, sizeof defaults);
}
