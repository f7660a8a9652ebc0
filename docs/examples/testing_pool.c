/* A test of one's own pool, without a server. SPDX-License-Identifier: Apache-2.0
 *
 * Three workers run on an in-memory ensemble with a virtual clock: 6 s of a session timeout pass in no time, and each
 * run is the same, step by step. One of them crashes; what must hold all the while is checked after every single step:
 * no item has two owners. And in the end each has one again.
 *
 *     testing_pool [seed]
 *
 * Link with -ldivvy_testing -ldivvy, or divvy::divvy_testing.
 */
#include <divvy/divvy.h>
#include <divvy/testing.h>
#include <stdio.h>
#include <stdlib.h>

enum { WORKERS = 3, ITEMS = 6 };
static const char *const items[ITEMS] = {"alpha", "beta", "gamma", "delta", "epsilon", "zeta"};

/* ---- the program under test: a worker, as it would run on a real ZooKeeper ---- */

typedef struct {
    divvy_client *client;
    divvy_partitioner *partitioner;
} worker;

static void on_state(divvy_partitioner *p, divvy_partition_state from, divvy_partition_state state, void *user) {
    (void)from, (void)user;
    /* A real worker stops its work on what divvy_partitioner_partition() calls revoked, and then says so. */
    if (state == DIVVY_RELEASE) divvy_partitioner_release_set(p);
}

static int worker_start(worker *w, divvy_client *client, const char *name) {
    divvy_partitioner_config config = DIVVY_PARTITIONER_CONFIG_INIT;
    config.path = "/jobs";
    config.items = items;
    config.item_count = ITEMS;
    config.identifier = name;
    config.time_boundary_ms = 500;
    config.on_state = on_state;
    w->client = client;
    return divvy_partitioner_create(&w->partitioner, client, &config);
}

static int worker_owns(const worker *w, const char *item) {
    return w->partitioner && divvy_partitioner_owns(w->partitioner, item) == 1;
}

static void worker_stop(worker *w) {
    divvy_partitioner_destroy(w->partitioner);
    divvy_client_close(w->client);
    *w = (worker){.client = NULL};
}

/* ---- the test ---- */

static divvy_testing_ensemble *ensemble;
static worker workers[WORKERS];

static void fail(const char *what) {
    fprintf(stderr, "testing_pool: %s\n", what);
    exit(1);
}

static void join(int i) {
    static const char *const names[WORKERS] = {"anna", "bert", "carla"};
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.manual = 1; /* as the virtual clock demands: the ensemble gives the client its turns */
    config.session_timeout_ms = 6000;
    config.ensemble_tick_ms = 2000;
    divvy_client *client;
    if (divvy_testing_client_open(&client, ensemble, &config) != 0) fail(divvy_client_error(NULL));
    if (worker_start(&workers[i], client, names[i]) != 0) fail(divvy_client_error(client));
}

static int owners_of(const char *item) {
    int owners = 0;
    for (int i = 0; i < WORKERS; i++) owners += worker_owns(&workers[i], item);
    return owners;
}

/* Lets time go on, one thing after the other, and looks after each. */
static void run(int64_t ms) {
    int64_t until = divvy_testing_now_ms(ensemble) + ms;
    while (divvy_testing_step(ensemble, until) == 1) {
        for (int k = 0; k < ITEMS; k++)
            if (owners_of(items[k]) > 1) fail("an item has two owners");
    }
}

static void report(const char *when) {
    printf("%s:", when);
    for (int k = 0; k < ITEMS; k++) {
        int owner = 0;
        while (owner < WORKERS && !worker_owns(&workers[owner], items[k])) owner++;
        if (owner == WORKERS) printf(" %s=nobody", items[k]);
        else printf(" %s=%d", items[k], owner);
    }
    printf("\n");
}

static void expect_one_owner_each(const char *when) {
    report(when);
    for (int k = 0; k < ITEMS; k++)
        if (owners_of(items[k]) != 1) fail("an item has no owner");
}

int main(int argc, char **argv) {
    divvy_testing_config config = DIVVY_TESTING_CONFIG_INIT; /* three servers */
    if (argc > 1) config.seed = strtoull(argv[1], NULL, 10);
    if (divvy_testing_ensemble_create(&ensemble, &config) != 0) fail("no ensemble");

    join(0);
    join(1);
    run(5000);
    expect_one_owner_each("two have joined");

    join(2);
    run(5000);
    expect_one_owner_each("three have joined");

    /* Its session lives on for a while, and nobody may take what was its own before that is over. */
    divvy_testing_crash_client(ensemble, workers[0].client);
    worker_stop(&workers[0]);
    run(2000);
    report("one has crashed");
    run(13000);
    expect_one_owner_each("its session has expired");

    /* The loss of a leader moves nothing: sessions go on at the servers that are left. */
    divvy_testing_kill_server(ensemble, (unsigned)divvy_testing_leader(ensemble));
    run(5000);
    expect_one_owner_each("the leader was lost");

    for (int i = 1; i < WORKERS; i++) worker_stop(&workers[i]);
    divvy_testing_ensemble_destroy(ensemble);
    return 0;
}
