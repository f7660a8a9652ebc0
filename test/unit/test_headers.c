/* The promises of the public headers. SPDX-License-Identifier: Apache-2.0
 *
 * Compiled as C11, and as C++17 by test_headers.cmake: hence without cmocka, and with nothing that only one of the
 * two languages has. */
#include <divvy/divvy.h>
#include <stdio.h>
#include <string.h>

static int failures;

#define CHECK(condition)                                                                   \
    do {                                                                                   \
        if (!(condition)) {                                                                \
            failures++;                                                                    \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition); \
        }                                                                                  \
    } while (0)

/* The client's INIT macro sets each field to the default that its comment names, so it fits the order of the fields. */
static void test_client_config(void) {
    divvy_client_config c = DIVVY_CLIENT_CONFIG_INIT;
    CHECK(c.size == sizeof c);
    CHECK(c.hosts == NULL && c.session_timeout_ms == 10000 && c.ensemble_tick_ms == 0 && c.manual == 0);
    CHECK(c.auth_scheme == NULL && c.auth == NULL && c.acl == DIVVY_ACL_AUTO);
    CHECK(c.ephemeral_path_bytes == 0 && c.watch_path_bytes == 0);
    CHECK(c.on_session == NULL && c.on_warning == NULL && c.on_log == NULL && c.user == NULL);
    CHECK(c.log_requests == 0 && c.log_steps == 0 && c.tokens_checked == 0 && c.interrupted == NULL);
}

/* Checks the fields that the two partitioner configs share. */
static void check_common(const divvy_partitioner_config *c) {
    CHECK(c->size == sizeof *c);
    CHECK(c->path == NULL && c->items == NULL && c->item_count == 0 && c->identifier == NULL && c->func == NULL);
    CHECK(c->leave_boundary_ms == -1 && c->settle_max_ms == 0 && c->allocate_timeout_ms == 0);
    CHECK(c->release_warn_ms == 10000 && c->on_session_loss == DIVVY_FAIL && c->weight == 1000 && c->zone == NULL);
    CHECK(c->max_moves == 0 && c->rejoin_delay_ms == 0 && c->static_membership == 0);
    CHECK(c->on_state == NULL && c->on_items == NULL && c->on_destroyed == NULL && c->user == NULL);
    CHECK(c->func_name == NULL && c->items_order == DIVVY_ORDER_BYTES && c->round_timeout_ms == 60000);
    CHECK(c->assign == DIVVY_ASSIGN_AUTO || c->assign == DIVVY_ASSIGN_ROUND_ROBIN);
}

/* The partitioner's INIT macro: incremental, a boundary of one second. */
static void test_partitioner_config(void) {
    divvy_partitioner_config c = DIVVY_PARTITIONER_CONFIG_INIT;
    check_common(&c);
    CHECK(c.mode == DIVVY_INCREMENTAL && c.assign == DIVVY_ASSIGN_AUTO && c.on_suspend == DIVVY_HOLD);
    CHECK(c.time_boundary_ms == 1000);
}

/* kazoo's preset: eager, round robin, everything released on session events, a boundary of 30 seconds. */
static void test_kazoo_config(void) {
    divvy_partitioner_config c = DIVVY_PARTITIONER_CONFIG_KAZOO;
    check_common(&c);
    CHECK(c.mode == DIVVY_EAGER && c.assign == DIVVY_ASSIGN_ROUND_ROBIN && c.on_suspend == DIVVY_RELEASE_ON_SUSPEND);
    CHECK(c.time_boundary_ms == 30000);
}

/* The init functions give what the macros have, in both languages; unit.config compares them byte by byte. */
static void test_init_functions(void) {
    divvy_client_config client;
    divvy_partitioner_config partitioner;
    divvy_lock_config lock;
    divvy_semaphore_config semaphore;
    divvy_registry_config registry;
    divvy_workers_config workers;
    divvy_sticky_options options;
    divvy_client_config_init(&client, sizeof client);
    CHECK(client.size == sizeof client && client.session_timeout_ms == 10000 && client.log_requests == 0);
    divvy_partitioner_config_init(&partitioner, sizeof partitioner);
    check_common(&partitioner);
    CHECK(partitioner.time_boundary_ms == 1000 && partitioner.round_timeout_ms == 60000);
    divvy_partitioner_config_init_kazoo(&partitioner, sizeof partitioner);
    check_common(&partitioner);
    CHECK(partitioner.time_boundary_ms == 30000 && partitioner.mode == DIVVY_EAGER);
    divvy_lock_config_init(&lock, sizeof lock);
    CHECK(lock.size == sizeof lock && lock.mode == DIVVY_EXCLUSIVE && lock.container == 0);
    divvy_semaphore_config_init(&semaphore, sizeof semaphore);
    CHECK(semaphore.size == sizeof semaphore && semaphore.limit == 1 && semaphore.count == 1);
    divvy_registry_config_init(&registry, sizeof registry);
    CHECK(registry.size == sizeof registry && registry.heartbeat_jitter > 0.09 && registry.heartbeat_jitter < 0.11);
    divvy_workers_config_init(&workers, sizeof workers);
    CHECK(workers.size == sizeof workers && workers.hand_over == 1 && workers.max_threads == 1000);
    divvy_sticky_options_init(&options, sizeof options);
    CHECK(options.size == sizeof options && options.max_moves == 0);
}

/* The version is said four times; all four agree, and the library is of the version of its headers. */
static void test_version(void) {
    char text[32];
    snprintf(text, sizeof text, "%d.%d.%d", DIVVY_VERSION_MAJOR, DIVVY_VERSION_MINOR, DIVVY_VERSION_PATCH);
    CHECK(strcmp(text, DIVVY_VERSION) == 0);
    CHECK(strcmp(divvy_version(), DIVVY_VERSION) == 0);
}

/* One function of each header links and runs from this language. */
static void test_linkage(void) {
    const divvy_member members[] = {{"one", 1000, NULL}, {"two", 1000, NULL}};
    const char *const items[] = {"a", "b", "c"};
    uint32_t owners[3] = {9, 9, 9};
    CHECK(divvy_assign_round_robin(members, 2, items, 3, owners) == 0);
    CHECK(owners[0] == 0 && owners[1] == 1 && owners[2] == 0);
    divvy_sticky_options options = DIVVY_STICKY_OPTIONS_INIT;
    CHECK(options.size == sizeof options && options.max_moves == 0);
    CHECK(options.spread_zones == 0 && options.keep_all == 0);
    CHECK(divvy_assign_sticky(members, 2, items, 3, owners, &options, owners) == 0);
    CHECK(owners[0] == 0 && owners[1] == 1 && owners[2] == 0);
    CHECK(strcmp(divvy_errname(DIVVY_EINVAL), "DIVVY_EINVAL") == 0);
    CHECK(divvy_client_state(NULL) == DIVVY_CLOSED);
    CHECK(divvy_partitioner_state(NULL) == DIVVY_FAILURE);
    CHECK(divvy_party_leave(NULL, 0) == DIVVY_EINVAL);
    CHECK(strcmp(divvy_session_state_name(DIVVY_CONNECTED), "CONNECTED") == 0);
    CHECK(strcmp(divvy_partition_state_name(DIVVY_ACQUIRED), "ACQUIRED") == 0);
    CHECK(strcmp(divvy_reason_name(DIVVY_REASON_JOIN), "JOIN") == 0);
    CHECK(strcmp(divvy_warning_name(DIVVY_WARN_ENTRY), "ENTRY") == 0);
}

int main(void) {
    test_client_config();
    test_partitioner_config();
    test_kazoo_config();
    test_init_functions();
    test_version();
    test_linkage();
    return failures == 0 ? 0 : 1;
}
