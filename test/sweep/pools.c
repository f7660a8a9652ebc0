/* Requests to a pool: a drain, a dry run, a pin, a pause, a member to forget. SPDX-License-Identifier: Apache-2.0 */
#include "scenarios.h"

#define PATH "/pool/p"

enum { ITEMS = 4, MEMBERS = 2 };

static const char *const items[ITEMS] = {"a", "b", "c", "d"};

typedef struct {
    divvy_partitioner *members[MEMBERS];
    divvy_partitioner_config config;
} pool;

static void create(sweep *s, pool *p, int m) {
    char identifier[] = {'m', (char)('0' + m), '\0'};
    p->config.identifier = identifier;
    SWEEP_DO(s, divvy_partitioner_create(&p->members[m], s->clients[m], &p->config));
}

static size_t load(const pool *p, int m) {
    size_t owned = 0;
    for (size_t i = 0; i < ITEMS; i++) owned += divvy_partitioner_owns(p->members[m], items[i]) != 0;
    return owned;
}

/* Releases what it is to give. A member that failed for what the sweep refused begins again. */
static void act(sweep *s, pool *p, int m) {
    divvy_partition_state state = divvy_partitioner_state(p->members[m]);
    if (state == DIVVY_RELEASE) SWEEP_DO(s, divvy_partitioner_release_set(p->members[m]));
    if (state != DIVVY_FAILURE) return;
    if (!sweep_excuses(s, divvy_partitioner_failure(p->members[m], NULL, 0))) sweep_fail(s, "member %d failed", m);
    divvy_partitioner_destroy(p->members[m]);
    p->members[m] = NULL;
    create(s, p, m);
}

/* Lets time go on until the first member has so many items, and the other one the rest. */
static void settle(sweep *s, pool *p, size_t wanted) {
    int64_t end = divvy_testing_now_ms(s->ensemble) + 4 * SWEEP_WAIT_MS;
    while (load(p, 0) != wanted || load(p, 1) != ITEMS - wanted) {
        for (int m = 0; m < MEMBERS; m++) act(s, p, m);
        if (divvy_testing_now_ms(s->ensemble) >= end) sweep_fail(s, "hangs: %zu and %zu items", load(p, 0), load(p, 1));
        sweep_pass(s, 20);
    }
}

void sweep_pool_asked(sweep *s) {
    pool p = {.config = DIVVY_PARTITIONER_CONFIG_INIT};
    divvy_pool_result result = DIVVY_POOL_RESULT_INIT;
    divvy_pool_request request = DIVVY_POOL_REQUEST_INIT;
    p.config.path = PATH;
    p.config.items = items;
    p.config.item_count = ITEMS;
    p.config.time_boundary_ms = 100;
    p.config.static_membership = 1;
    p.config.rejoin_delay_ms = 100 * SWEEP_WAIT_MS;
    request.timeout_ms = SWEEP_WAIT_MS;
    request.result = &result;
    for (int n = 0; n <= MEMBERS; n++) sweep_open(s, n);
    for (int m = 0; m < MEMBERS; m++) create(s, &p, m);
    settle(s, &p, ITEMS / 2);
    sweep_begin(s);

    divvy_client *client = s->clients[MEMBERS];
    SWEEP_DO(s, divvy_pool_set_weight(client, PATH, "m0", 0, &request));
    SWEEP_CHECK(s, result.items == 0 && result.weight == 0);
    settle(s, &p, 0);
    request.dry_run = 1;
    SWEEP_DO(s, divvy_pool_set_weight(client, PATH, "m0", DIVVY_POOL_CONFIGURED_WEIGHT, &request));
    SWEEP_CHECK(s, result.items == ITEMS / 2 && result.changed == 1);
    request.dry_run = 0;
    SWEEP_DO(s, divvy_pool_set_weight(client, PATH, "m0", DIVVY_POOL_CONFIGURED_WEIGHT, &request));
    SWEEP_CHECK(s, result.items == ITEMS / 2);
    settle(s, &p, ITEMS / 2);
    SWEEP_DO(s, divvy_pool_pin(client, PATH, "a", "m0", &request));
    SWEEP_DO(s, divvy_pool_pause(client, PATH, "d", &request));
    SWEEP_DO(s, divvy_pool_resume(client, PATH, "d", &request));
    SWEEP_DO(s, divvy_pool_unpin(client, PATH, "a", &request));
    SWEEP_DO_AS(s, DIVVY_ENOENT, divvy_pool_move(client, PATH, "a", "m9", &request));
    settle(s, &p, ITEMS / 2);
    int error =
        divvy_pool_forget(client, PATH, "m1", &request); /* It is there, unless what was refused has ended it. */
    SWEEP_CHECK(s, error == DIVVY_ESTATE || sweep_excuses(s, error) || (error == 0 && s->failures > 0));
    for (int m = 0; m < MEMBERS; m++) divvy_partitioner_destroy(p.members[m]);
    sweep_end(s);
}
