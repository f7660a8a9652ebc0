/* divvy inside a program that uses ZooKeeper's own C client: attach, guard, reattach. SPDX-License-Identifier:
 * Apache-2.0
 *
 * Try it: run this in two or three terminals, with the same path and the same items, then stop one with Ctrl-C.
 *
 *     native_host 127.0.0.1:2181 /example alpha beta gamma delta
 *
 * Without arguments it takes the servers from $DIVVY_CONNECT and ends by itself after a few seconds.
 *
 * The program opens, watches and closes its own handle, as it would without divvy; the partitioner lives on the same
 * session. For each item that is its own it counts up a node, PATH/done/ITEM, in a transaction with a guard: were the
 * item another member's by the time the servers carry it out, they would refuse the whole, however late we learn it.
 */
#include <divvy/divvy.h>
#include <divvy/zookeeper.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t stopping;
static atomic_int expired;

static int fail(const char *what, const char *why) {
    fprintf(stderr, "native_host: %s: %s\n", what, why);
    return 1;
}

static void on_signal(int number) {
    (void)number;
    stopping = 1;
}

/* The program's own watcher: it is called for each event as if divvy were not there. */
static void on_event(zhandle_t *handle, int type, int state, const char *path, void *context) {
    (void)handle, (void)path, (void)context;
    if (type == ZOO_SESSION_EVENT && state == ZOO_EXPIRED_SESSION_STATE) atomic_store(&expired, 1);
}

static zhandle_t *open_handle(const char *hosts) {
    return zookeeper_init(hosts, on_event, 10000, NULL, NULL, 0);
}

/* Makes the nodes that we count in, if they are missing. */
static void make_node(zhandle_t *handle, const char *path, const char *node) {
    char parent[1024];
    snprintf(parent, sizeof parent, "%s/done", path);
    zoo_create(handle, parent, "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0);
    zoo_create(handle, node, "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0);
}

/* One count more, if the item is ours at the very moment when the servers carry it out. */
static void count_up(zhandle_t *handle, divvy_partitioner *p, const char *path, const char *item) {
    char node[1024], text[32];
    int bytes = sizeof text - 1;
    struct Stat stat;
    zoo_op_t ops[2];
    zoo_op_result_t results[2];
    snprintf(node, sizeof node, "%s/done/%s", path, item);
    int rc = zoo_get(handle, node, 0, text, &bytes, &stat);
    if (rc == ZNONODE) make_node(handle, path, node);
    if (rc != ZOK) return; /* In the next round, then. */
    text[bytes > 0 ? bytes : 0] = '\0';
    bytes = snprintf(text, sizeof text, "%ld", strtol(text, NULL, 10) + 1);
    if (divvy_partitioner_guard(p, item, &ops[0]) != 0) return; /* It is no longer ours: that is no error. */
    zoo_set_op_init(&ops[1], node, text, bytes, stat.version, NULL);
    rc = zoo_multi(handle, 2, ops, results);
    if (rc != ZOK && rc != ZNONODE && rc != ZCONNECTIONLOSS) fprintf(stderr, "native_host: %s: %s\n", node, zerror(rc));
    divvy_guard_end(&ops[0]);
}

static void print_owned(const divvy_partition *mine) {
    printf("owned:");
    for (size_t i = 0; i < divvy_partition_count(mine); i++)
        if (!divvy_partition_revoked(mine, i)) printf(" %s", divvy_partition_item(mine, i));
    printf("\n");
}

/* The session is over. The program opens a new handle, as it had to without divvy, and the client moves there. */
static int replace_handle(zhandle_t **handle, const char *hosts, divvy_client *client) {
    zhandle_t *fresh = open_handle(hosts);
    if (!fresh) return fail(hosts, strerror(errno));
    while (divvy_client_state(client) != DIVVY_LOST) usleep(1000); /* It hears of it by a thread of its own. */
    int error = divvy_client_reattach(client, fresh);
    zookeeper_close(*handle);
    *handle = fresh;
    return error ? fail("cannot go on", divvy_client_error(client)) : 0;
}

/* 0 when we were asked to stop, 1 when the partitioner has failed. */
static int run(zhandle_t **handle, const char *hosts, divvy_client *client, divvy_partitioner *p, const char *path) {
    uint64_t printed_generation = 0;
    char reason[512];
    while (!stopping) {
        uint64_t state_id = divvy_partitioner_state_id(p);
        if (divvy_partitioner_failure(p, reason, sizeof reason) != 0) return fail("failed", reason);
        divvy_partition *mine = divvy_partitioner_partition(p);
        if (divvy_partition_generation(mine) != printed_generation) print_owned(mine);
        printed_generation = divvy_partition_generation(mine);
        if (divvy_partitioner_state(p) == DIVVY_RELEASE) divvy_partitioner_release_set_id(p, state_id);
        for (size_t i = 0; i < divvy_partition_count(mine); i++) {
            const char *item = divvy_partition_item(mine, i);
            if (divvy_partitioner_owns(p, item)) count_up(*handle, p, path, item);
        }
        divvy_partition_unref(mine);
        if (atomic_exchange(&expired, 0) && replace_handle(handle, hosts, client) != 0) return 1;
        divvy_partitioner_wait_change(p, state_id, 100);
    }
    return 0;
}

static int take_part(zhandle_t **handle, const char *hosts, divvy_client *client, const char *path,
                     const char *const *items, int item_count) {
    divvy_partitioner_config config = DIVVY_PARTITIONER_CONFIG_INIT;
    config.path = path;
    config.items = items;
    config.item_count = (size_t)item_count;
    config.on_session_loss = DIVVY_REJOIN; /* The same object goes on on the next session. */
    divvy_partitioner *p;
    if (divvy_client_wait_connected(client, 10000) != 0) return fail(hosts, divvy_client_error(client));
    /* From here on there is something to leave in an orderly way. Before, a signal could simply end us. */
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    if (divvy_partitioner_create(&p, client, &config) != 0)
        return fail("cannot join the pool", divvy_client_error(client));
    int status = run(handle, hosts, client, p, path);
    if (status == 0 && divvy_partitioner_finish(p, 5000) != 0)
        status = fail("could not leave in an orderly way", divvy_client_error(client));
    divvy_partitioner_destroy(p);
    return status;
}

int main(int argc, char **argv) {
    static const char *const some_items[] = {"alpha", "beta", "gamma", "delta"};
    const char *hosts = argc > 1 ? argv[1] : getenv("DIVVY_CONNECT");
    if (argc == 2 || argc == 3 || !hosts) {
        fprintf(stderr, "usage: native_host HOSTS PATH ITEM...\n");
        return 2;
    }
    signal(SIGALRM, on_signal);
    if (argc == 1) alarm(5);
    setvbuf(stdout, NULL, _IOLBF, 0);

    zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR); /* The native client's log is the program's business, as ever. */
    zhandle_t *handle = open_handle(hosts);
    if (!handle) return fail(hosts, strerror(errno));
    /* Those of a client of divvy's own that are about the session have no meaning here; the tick of the servers has:
     * an attached client owns nothing before it is proven that the session lives, which takes about half a tick. */
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.ensemble_tick_ms = 2000;
    divvy_client *client;
    int status = 1;
    if (divvy_client_attach(&client, handle, &config) != 0) {
        fail("cannot attach", divvy_client_error(NULL));
    } else {
        const char *const *items = argc > 3 ? (const char *const *)&argv[3] : some_items;
        status = take_part(&handle, hosts, client, argc > 3 ? argv[2] : "/example", items, argc > 3 ? argc - 3 : 4);
        divvy_client_close(client); /* before the handle */
    }
    zookeeper_close(handle);
    return status;
}
