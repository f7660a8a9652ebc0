/* A join in the in-memory ensemble, told line by line: who waits for whom. SPDX-License-Identifier: Apache-2.0
 *
 * A message takes exactly a millisecond and computing nothing, so that half of the time is the number of round trips.
 * Lines on stdout, each with the clock in ms: requests and their answers. join_path.py draws them. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/client.h"
#include "divvy/divvy.h"
#include "divvy/testing.h"

enum { MEMBERS_MAX = 100, ITEMS_MAX = 1000000, ITEM_BYTES = 16, BOUNDARY_MS = 500, PATIENCE_MS = 60000 };

typedef struct {
    unsigned index;
    divvy_client *client;
    divvy_partitioner *partitioner;
    size_t owned;
    bool acquired;
} member;

static divvy_testing_ensemble *ensemble;
static member members[MEMBERS_MAX + 1];
static unsigned running;
static bool telling;

_Noreturn static void die(const char *why) {
    fprintf(stderr, "bench_join_chain: %s\n", why);
    exit(1);
}

/* ---- the seam, with an ear at it ---- */

typedef struct {
    const member *of;
    unsigned number;
    dv_reply_fn done;
    dv_multi_fn multi_done;
    void *context;
} request;

static const dv_znode_backend *original;

static const member *member_of(const dv_znode *znode) {
    for (unsigned i = 0; i < running; i++) {
        if (members[i].client->znode == znode) return &members[i];
    }
    die("a request of nobody");
}

static request *tell(const dv_znode *znode, const dv_op *ops, size_t count, bool watches, const request *asked) {
    static const char *const kinds[] = {"create", "delete", "set", "check", "get", "exists", "children", "acl"};
    static unsigned numbers;
    request *r = malloc(sizeof *r);
    if (!r) die("out of memory");
    *r = *asked;
    r->of = member_of(znode);
    r->number = ++numbers;
    if (!telling) return r;
    printf("%" PRId64 " %u request %u: ", divvy_testing_now_ms(ensemble), r->of->index, r->number);
    if (count > 1) printf("all of %zu: ", count);
    for (size_t i = 0; i < count && i < 2; i++) printf("%s%s %s", i > 0 ? "; " : "", kinds[ops[i].kind], ops[i].path);
    puts(watches ? ", with a watch" : "");
    return r;
}

static request end(request *r) {
    request ended = *r;
    if (telling) printf("%" PRId64 " %u answer %u: done\n", divvy_testing_now_ms(ensemble), r->of->index, r->number);
    free(r);
    return ended;
}

static void on_reply(void *context, const dv_reply *reply, int64_t now) {
    request r = end(context);
    r.done(r.context, reply, now);
}

static void on_multi_reply(void *context, int error, const dv_reply *replies, size_t count, int64_t now) {
    request r = end(context);
    r.multi_done(r.context, error, replies, count, now);
}

static int submit(dv_znode *znode, const dv_op *op, dv_watch *watch, dv_reply_fn done, void *context) {
    request *r = tell(znode, op, 1, watch != NULL, &(request){.done = done, .context = context});
    return original->submit(znode, op, watch, on_reply, r);
}

static int multi(dv_znode *znode, const dv_op *ops, size_t count, dv_multi_fn done, void *context) {
    request *r = tell(znode, ops, count, false, &(request){.multi_done = done, .context = context});
    return original->multi(znode, ops, count, on_multi_reply, r);
}

static void listen_at(divvy_client *client) {
    static dv_znode_backend ear;
    if (!original) {
        original = client->znode->backend;
        ear = *original;
        ear.submit = submit;
        ear.multi = multi;
    }
    client->znode->backend = &ear;
}

/* ---- members ---- */

static void on_items(divvy_partitioner *p, const divvy_items_event *event, void *user) {
    member *m = user;
    (void)p;
    m->owned += event->gained_count;
    m->owned -= event->lost_count;
    if (telling) printf("%" PRId64 " %u owns %zu\n", divvy_testing_now_ms(ensemble), m->index, m->owned);
}

/* A user without work: what is revoked is released at once. */
static void on_state(divvy_partitioner *p, divvy_partition_state from, divvy_partition_state to, void *user) {
    (void)from;
    ((member *)user)->acquired = to == DIVVY_ACQUIRED;
    if (to == DIVVY_RELEASE) divvy_partitioner_release_set(p);
}

static void start(const char *const *items, size_t count) {
    member *m = &members[running];
    m->index = running;
    char identifier[16];
    snprintf(identifier, sizeof identifier, "w%u", running++);
    divvy_client_config client_config = DIVVY_CLIENT_CONFIG_INIT;
    client_config.manual = 1;
    client_config.ensemble_tick_ms = 2000;
    if (divvy_testing_client_open(&m->client, ensemble, &client_config) != 0) die(divvy_client_error(NULL));
    listen_at(m->client);
    divvy_partitioner_config config = DIVVY_PARTITIONER_CONFIG_INIT;
    config.path = "/pool";
    config.items = items;
    config.item_count = count;
    config.identifier = identifier;
    config.assign = DIVVY_ASSIGN_STICKY;
    config.time_boundary_ms = BOUNDARY_MS;
    config.on_state = on_state;
    config.on_items = on_items;
    config.user = m;
    if (divvy_partitioner_create(&m->partitioner, m->client, &config) != 0) die(divvy_client_error(m->client));
}

static void settle(size_t count) {
    int64_t until = divvy_testing_now_ms(ensemble) + PATIENCE_MS;
    for (bool settled = false; !settled;) {
        if (divvy_testing_run(ensemble, 1) < 0 || divvy_testing_now_ms(ensemble) > until) die("it does not settle");
        size_t owned = 0;
        settled = true;
        for (unsigned i = 0; i < running; i++) {
            settled &= members[i].acquired;
            owned += members[i].owned;
        }
        settled &= owned == count;
    }
}

static const char **make_items(size_t count) {
    char(*names)[ITEM_BYTES] = calloc(count, sizeof *names);
    const char **items = (const char **)calloc(count, sizeof *items);
    if (!names || !items) die("out of memory");
    for (size_t i = 0; i < count; i++) {
        snprintf(names[i], sizeof names[i], "item-%06u", (unsigned)i % ITEMS_MAX);
        items[i] = names[i];
    }
    return items;
}

int main(int argc, char **argv) {
    long old = argc == 3 ? strtol(argv[1], NULL, 10) : 0, count = argc == 3 ? strtol(argv[2], NULL, 10) : 0;
    if (old < 1 || old > MEMBERS_MAX || count < 1 || count > ITEMS_MAX) {
        fputs("usage: bench_join_chain MEMBERS ITEMS\n", stderr);
        return 2;
    }
    divvy_testing_config config = DIVVY_TESTING_CONFIG_INIT;
    config.servers = 1;
    config.client_delay_min_ms = config.client_delay_max_ms = 1;
    config.server_delay_min_ms = config.server_delay_max_ms = 0;
    if (divvy_testing_ensemble_create(&ensemble, &config) != 0) die("no ensemble");
    const char **items = make_items((size_t)count);
    for (long i = 0; i < old; i++) start(items, (size_t)count);
    settle((size_t)count);
    divvy_testing_run(ensemble, 2 * BOUNDARY_MS);
    telling = true;
    printf("%" PRId64 " start\n", divvy_testing_now_ms(ensemble));
    start(items, (size_t)count);
    settle((size_t)count);
    printf("%" PRId64 " settled\n", divvy_testing_now_ms(ensemble));
    return 0; /* with all that is in memory */
}
