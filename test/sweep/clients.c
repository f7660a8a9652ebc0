/* The client: open, connect, a chroot to make, a session to lose, close; on a host's handle; and batches.
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <unistd.h>

#include "divvy/zookeeper.h"
#include "scenarios.h"

typedef struct {
    int sessions, warnings, lines;
} heard;

static void on_session(divvy_client *client, divvy_session_state state, void *user) {
    (void)client, (void)state;
    ((heard *)user)->sessions++;
}

static void on_warning(divvy_client *client, int code, const char *message, void *user) {
    (void)client, (void)code, (void)message;
    ((heard *)user)->warnings++;
}

static void on_log(int level, const char *message, void *user) {
    (void)level, (void)message;
    ((heard *)user)->lines++;
}

static divvy_client_config config_of(heard *h) {
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.manual = 1;
    config.session_timeout_ms = SWEEP_TIMEOUT_MS;
    config.ensemble_tick_ms = 1000;
    config.on_session = on_session;
    config.on_warning = on_warning;
    config.on_log = on_log;
    config.user = h;
    return config;
}

void sweep_client_chroot(sweep *s) {
    heard h = {0};
    divvy_client_config config = config_of(&h);
    config.hosts = "any:1/a/b/c";
    sweep_begin(s);
    SWEEP_DO(s, divvy_testing_client_open(&s->clients[0], s->ensemble, &config));
    sweep_seam_put(s, s->clients[0]);
    SWEEP_DO(s, divvy_client_wait_connected(s->clients[0], SWEEP_WAIT_MS));
    SWEEP_CHECK(s, divvy_testing_exists(s->ensemble, "/a/b/c"));
    divvy_stats stats;
    SWEEP_CHECK(s, divvy_client_stats(s->clients[0], &stats, sizeof stats) == 0 && stats.connects > 0);
    int64_t before = divvy_client_session_id(s->clients[0]);
    divvy_testing_expire(s->ensemble, s->clients[0]);
    sweep_pass(s, 2 * SWEEP_TIMEOUT_MS);
    SWEEP_DO(s, divvy_client_wait_connected(s->clients[0], SWEEP_WAIT_MS));
    SWEEP_CHECK(s, divvy_client_session_id(s->clients[0]) != before && divvy_client_time_left_ms(s->clients[0]) > 0);
    sweep_end(s);
}

/* ---- the native client, where nobody answers ---- */

static const char nobody[] = "127.0.0.1:1,[::1]:1/a";

void sweep_native_open(sweep *s) {
    heard h = {0};
    divvy_client_config config = config_of(&h);
    divvy_client *client = NULL;
    config.hosts = nobody;
    config.auth_scheme = "digest";
    config.auth = "me:secret";
    sweep_begin(s);
    SWEEP_DO(s, divvy_client_open(&client, &config));
    SWEEP_CHECK(s, divvy_client_process(client, 0) >= 0);
    SWEEP_CHECK(s, divvy_client_wait_connected(client, 0) == DIVVY_ETIMEDOUT);
    divvy_client_close(client);
    config.manual = 0;
    SWEEP_DO(s, divvy_client_open(&client, &config));
    divvy_client_close(client);
    sweep_allocations_disarm();
}

static void ignore(zhandle_t *handle, int type, int state, const char *path, void *context) {
    (void)handle, (void)type, (void)state, (void)path, (void)context;
}

void sweep_native_attach(sweep *s) {
    heard h = {0};
    divvy_client_config config = config_of(&h);
    divvy_client *client = NULL, *second = NULL;
    divvy_lock *lock = NULL;
    divvy_lock_config lock_config = DIVVY_LOCK_CONFIG_INIT;
    zoo_set_debug_level((ZooLogLevel)0); /* It would tell of each attempt. */
    zhandle_t *handle = zookeeper_init("127.0.0.1:1", ignore, SWEEP_TIMEOUT_MS, NULL, NULL, 0);
    if (!handle) sweep_fail(s, "zookeeper_init: %s", strerror(errno));
    lock_config.path = "/l";
    sweep_begin(s);
    SWEEP_DO(s, divvy_client_attach(&client, handle, &config));
    SWEEP_DO(s, divvy_client_attach(&second, handle, &config));
    SWEEP_DO(s, divvy_lock_create(&lock, client, &lock_config));
    SWEEP_CHECK(s, divvy_client_process(client, 0) >= 0);
    divvy_lock_destroy(lock);
    divvy_client_close(client);
    divvy_client_close(second);
    sweep_allocations_disarm();
    zookeeper_close(handle);
    sweep_allocations_forget(); /* A handle's record stays until its address turns up again: docs/decisions.md. */
}

/* ---- batches ---- */

enum { NODES = 230 }; /* more than one multi */

typedef struct {
    char path[24];
    int error; /* 1: not answered yet */
} node;

typedef struct {
    node nodes[NODES];
    size_t answered, listed;
} batch;

static batch all;

static void on_node(void *context, const dv_reply *reply, int64_t now) {
    node *n = context;
    (void)now;
    if (n->error != 1) abort(); /* Each is answered once. */
    n->error = reply->error;
    all.answered++;
}

static void on_list(void *context, const dv_reply *reply, int64_t now) {
    (void)context, (void)now;
    all.listed = reply->error ? SIZE_MAX : reply->child_count;
    all.answered++;
}

static bool is_answered(sweep *s, void *user) {
    (void)s;
    return all.answered == *(size_t *)user;
}

/* Asks for all nodes that are not as wanted yet. How many had no good answer. */
static size_t ask(sweep *s, bool create) {
    divvy_client *client = s->clients[0];
    size_t asked = 0;
    all.answered = 0;
    dv_client_lock(client);
    for (size_t i = 0; i < NODES; i++) {
        node *n = &all.nodes[i];
        int good = create ? DIVVY_EEXIST : DIVVY_ENOENT;
        if (n->error == 0 || n->error == good) continue;
        n->error = 1;
        int error = create ? dv_batch_create(client->znode, n->path, "", 0, DV_EPHEMERAL, on_node, n)
                           : dv_batch_delete(client->znode, n->path, on_node, n);
        if (error) n->error = error;
        else asked++;
    }
    if (dv_batch_children(client->znode, "/", on_list, NULL) == 0) asked++;
    dv_client_unlock(client);
    sweep_until(s, is_answered, &asked, SWEEP_WAIT_MS, "a batch");
    size_t bad = 0;
    for (size_t i = 0; i < NODES; i++) {
        int error = all.nodes[i].error;
        bool good = error == 0 || error == (create ? DIVVY_EEXIST : DIVVY_ENOENT);
        bad += !good;
        if (!good && !dv_outcome_unknown(error)) sweep_fail(s, "a node of a batch: %s", divvy_errname(error));
    }
    return bad;
}

static void ask_until_good(sweep *s, bool create) {
    for (size_t i = 0; i < NODES; i++) all.nodes[i].error = DIVVY_ENOMEM;
    for (int tries = 0; ask(s, create) > 0; tries++) {
        if (tries == 100) sweep_fail(s, "a batch has no good end");
        sweep_pass(s, 20);
    }
}

void sweep_client_batch(sweep *s) {
    for (size_t i = 0; i < NODES; i++) snprintf(all.nodes[i].path, sizeof all.nodes[i].path, "/n%zu", i);
    sweep_open(s, 0);
    sweep_begin(s);
    ask_until_good(s, true);
    SWEEP_CHECK(s, sweep_children(s, "/") >= NODES);
    ask_until_good(s, false);
    SWEEP_CHECK(s, sweep_children(s, "/") < NODES);
    sweep_end(s);
}
