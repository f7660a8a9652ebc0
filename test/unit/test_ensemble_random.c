/* The in-memory ensemble under random operations and faults: what a client may rely on holds all the time.
 * SPDX-License-Identifier: Apache-2.0
 *
 * DIVVY_TEST_SEED=n replays one run; with DIVVY_TEST_RUNS=m it begins there, and does so many. */
#include "test_ensemble.h"

#include "lib/seed.h"

enum { USERS = 4, RUNS = 60, FRESH = 20, STEPS = 4000, NODES = 6, OPS_MAX = 24 };

/* ---- what is asked, and what must be true of the answers ---- */

typedef struct user user;

typedef struct {
    dv_watch watch; /* first */
    user *by;
    int64_t mzxid; /* that the read which set it has shown */
    bool set;
} counter_watch;

typedef struct {
    user *by;
    uint64_t number;
    dv_kind kind;
    bool busy, is_multi;
    char path[64];
    counter_watch *watch;
} asked;

struct user {
    divvy_client *client;
    bool crashed;
    uint64_t sent, answered;
    int64_t session_id, counter_mzxid; /* the newest that a read has shown to this session */
    asked ops[OPS_MAX];
    counter_watch watch;
};

static divvy_testing_ensemble *ensemble;
static user users[USERS];
static dv_mem_prng prng;
static uint64_t answers, fires, fingerprint;

static int64_t below(int64_t n) {
    return dv_mem_prng_between(&prng, 0, n - 1);
}

static void mix(uint64_t value) {
    fingerprint = (fingerprint ^ value) * UINT64_C(0x9fb21c651e98df25);
}

static void on_counter(dv_watch *watch, dv_watch_kind kind, int64_t now) {
    counter_watch *w = (counter_watch *)(void *)watch;
    (void)now;
    assert_true(w->set);
    assert_true(kind == DV_WATCH_CHANGED || kind == DV_WATCH_DELETED);
    w->set = false;
    fires++;
}

/* Answers come in the order of the requests. */
static void finish(asked *a, int error) {
    user *u = a->by;
    assert_true(a->busy);
    assert_int_equal(a->number, ++u->answered);
    a->busy = false;
    answers++;
    mix((uint64_t)(uint32_t)error + a->number * 64 + (uint64_t)ensemble->now * 65536);
}

/* A session's reads never go back; and before a read shows a change, the watch on it has fired. */
static void check_counter(user *u, const asked *a, const dv_reply *reply) {
    if (reply->error || strcmp(a->path, "/counter") != 0 || a->kind != DV_GET) return;
    int64_t session_id = divvy_client_session_id(u->client);
    if (session_id != u->session_id) u->watch.set = false, u->counter_mzxid = 0; /* it has got a new one */
    u->session_id = session_id;
    assert_true(reply->stat->mzxid >= u->counter_mzxid);
    u->counter_mzxid = reply->stat->mzxid;
    if (u->watch.set && !a->watch) assert_int_equal(reply->stat->mzxid, u->watch.mzxid);
    if (a->watch) {
        u->watch.set = true;
        u->watch.mzxid = reply->stat->mzxid;
    }
}

static void on_single(void *context, const dv_reply *reply, int64_t now) {
    asked *a = context;
    (void)now;
    finish(a, reply->error);
    check_counter(a->by, a, reply);
    if (reply->error == 0 && a->kind == DV_CREATE) assert_int_equal(strncmp(reply->path, a->path, strlen(a->path)), 0);
}

static void on_several(void *context, int error, const dv_reply *replies, size_t count, int64_t now) {
    (void)now;
    finish(context, error);
    for (size_t i = 0; i < count; i++) assert_true((replies[i].error == 0) == (error == 0));
}

/* ---- users ---- */

static asked *free_slot(user *u) {
    for (int i = 0; i < OPS_MAX; i++)
        if (!u->ops[i].busy) return &u->ops[i];
    return NULL;
}

static void ask_something(user *u) {
    static const int modes[] = {DV_PERSISTENT, DV_EPHEMERAL, DV_EPHEMERAL | DV_SEQUENTIAL, DV_SEQUENTIAL};
    asked *a = free_slot(u);
    if (!a) return;
    *a = (asked){.by = u, .number = ++u->sent, .busy = true};
    snprintf(a->path, sizeof a->path, "/n%d", (int)below(NODES));
    if (below(3) == 0) strcat(a->path, "/x");
    dv_op op = {.version = -1, .path = a->path, .data = "data", .data_bytes = (size_t)below(5)};
    op.kind = a->kind = (dv_kind)below(DV_KINDS);
    op.mode = modes[below(4)];
    if (below(3) == 0) strcpy(a->path, "/counter");
    if (strcmp(a->path, "/counter") == 0 && op.kind != DV_GET) op.kind = a->kind = DV_SET;
    dv_znode *znode = u->client->znode;
    dv_client_lock(u->client);
    if (op.kind == DV_CHECK || below(6) == 0) {
        dv_op ops[2] = {op, {.kind = DV_CHECK, .path = "/n1", .version = -1}};
        if (ops[0].kind >= DV_CHECK) ops[0] = (dv_op){.kind = DV_SET, .path = "/counter", .version = -1};
        a->is_multi = true;
        assert_int_equal(dv_znode_multi(znode, ops, 2, on_several, a), 0);
    } else {
        bool watches = op.kind == DV_GET && strcmp(a->path, "/counter") == 0 && !u->watch.set && !u->watch.watch.link;
        a->watch = watches ? &u->watch : NULL;
        assert_int_equal(znode->backend->submit(znode, &op, watches ? &u->watch.watch : NULL, on_single, a), 0);
    }
    dv_client_unlock(u->client);
}

static void end_user(user *u) {
    if (!u->client) return;
    divvy_client_close(u->client);
    assert_int_equal(u->sent, u->answered); /* each exactly once */
    u->client = NULL;
}

static void begin_user(user *u) {
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.session_timeout_ms = 4000 + below(8) * 1000;
    config.manual = 1;
    *u = (user){.watch.watch.fired = on_counter, .watch.by = u};
    assert_int_equal(divvy_testing_client_open(&u->client, ensemble, &config), 0);
}

/* ---- faults ---- */

static void harm_client(user *u) {
    switch (below(7)) {
    case 0: divvy_testing_link_client(ensemble, u->client, (divvy_testing_link)below(4)); break;
    case 1: divvy_testing_disconnect(ensemble, u->client, (divvy_testing_fate)below(3), below(3000)); break;
    case 2: divvy_testing_pause_client(ensemble, u->client, (int)below(2)); break;
    case 3: divvy_testing_link_client(ensemble, u->client, DIVVY_TESTING_LINK_UP); break;
    case 4: divvy_testing_drift_client(ensemble, u->client, (int)below(20001) - 10000); break;
    case 5:
        if (below(3) == 0) divvy_testing_expire(ensemble, u->client);
        break;
    default:
        if (below(4) == 0) divvy_testing_crash_client(ensemble, u->client);
    }
}

static void harm_servers(void) {
    unsigned count = (unsigned)ensemble->server_count;
    unsigned a = (unsigned)below(count), b = (a + 1 + (unsigned)below(count > 2 ? count - 1 : 1)) % count;
    switch (below(7)) {
    case 0: divvy_testing_kill_server(ensemble, a); break;
    case 1: divvy_testing_start_server(ensemble, a); break;
    case 2: divvy_testing_pause_server(ensemble, a, (int)below(2)); break;
    case 3: divvy_testing_link_servers(ensemble, a, b, (divvy_testing_link)below(4)); break;
    case 4: divvy_testing_link_servers(ensemble, a, b, DIVVY_TESTING_LINK_UP); break;
    case 5: divvy_testing_lag_server(ensemble, a, below(500)); break;
    default: divvy_testing_heal(ensemble);
    }
}

/* ---- the truth ---- */

typedef struct {
    char path[64];
    int64_t owner, czxid;
} shadow_node;
static shadow_node shadow[4096];
static size_t shadow_count;
static int64_t last_zxid;

static void on_transaction(const divvy_testing_transaction *t, void *context) {
    (void)context;
    assert_true(t->zxid >= last_zxid);
    last_zxid = t->zxid;
    mix((uint64_t)t->zxid + (uint64_t)t->kind);
    size_t at = 0;
    while (t->path && at < shadow_count && strcmp(shadow[at].path, t->path) != 0) at++;
    if (t->kind == DIVVY_TESTING_CREATE) {
        assert_int_equal(at, shadow_count);
        assert_int_equal(t->czxid, t->zxid);
        assert_in_range(shadow_count, 0, 4095);
        snprintf(shadow[shadow_count].path, sizeof shadow->path, "%s", t->path);
        shadow[shadow_count].owner = t->ephemeral_owner;
        shadow[shadow_count++].czxid = t->czxid;
    } else if (t->path) {
        assert_true(at < shadow_count);
        assert_int_equal(t->czxid, shadow[at].czxid);
        assert_int_equal(t->ephemeral_owner, shadow[at].owner);
        if (t->kind == DIVVY_TESTING_DELETE) shadow[at] = shadow[--shadow_count];
    }
    if (t->kind != DIVVY_TESTING_SESSION_END) return;
    for (size_t i = 0; i < shadow_count; i++) assert_int_not_equal(shadow[i].owner, t->session_id);
}

/* Checks that the trees of all servers are as the transactions said. */
static void check_trees(void) {
    for (size_t i = 0; i < shadow_count; i++) {
        assert_true(divvy_testing_exists(ensemble, shadow[i].path));
        const dv_mem_path *path = dv_mem_path_find(ensemble, shadow[i].path);
        for (int s = 0; s < ensemble->server_count; s++) {
            assert_true(ensemble->servers[s].serving);
            const dv_mem_node *node = path->places[s].node;
            assert_non_null(node);
            assert_int_equal(node->czxid, shadow[i].czxid);
            assert_int_equal(node->owner ? node->owner->id : 0, shadow[i].owner);
            assert_int_equal(node->version, path->places[0].node->version);
            assert_int_equal(node->pzxid, path->places[0].node->pzxid);
            assert_int_equal(node->cversion, path->places[0].node->cversion);
        }
    }
    for (int s = 0; s < ensemble->server_count; s++)
        assert_int_equal(ensemble->servers[s].applied, ensemble->truth_index);
}

/* ---- runs ---- */

static void on_trace(int64_t at_ms, const char *line, void *context) {
    (void)context;
    printf("%lld %s\n", (long long)at_ms, line);
}

static void one_run(uint64_t seed) {
    divvy_testing_config config = DIVVY_TESTING_CONFIG_INIT;
    static const unsigned sizes[] = {3, 3, 5, 1, 3, 2};
    config.servers = sizes[seed % 6];
    config.tick_ms = seed % 5 == 0 ? 500 : 2000;
    config.seed = seed;
    config.on_transaction = on_transaction;
    if (getenv("DIVVY_TEST_TRACE")) config.on_trace = on_trace;
    config.client_delay_max_ms = (int64_t)(seed % 5);
    config.server_delay_max_ms = (int64_t)(seed % 7) * 3;
    dv_mem_prng_seed(&prng, seed * 31 + 7);
    shadow_count = 0;
    last_zxid = 0;
    fingerprint = 0;
    assert_int_equal(divvy_testing_ensemble_create(&ensemble, &config), 0);
    divvy_testing_put(ensemble, "/counter", "", 0, DIVVY_TESTING_PERSISTENT);
    for (int i = 0; i < USERS; i++) begin_user(&users[i]);
    for (int step = 0; step < STEPS; step++) {
        user *u = &users[below(USERS)];
        if (below(4) == 0) ask_something(u);
        if (below(60) == 0) harm_client(u);
        if (below(200) == 0) harm_servers();
        divvy_session_state state = divvy_client_state(u->client);
        bool dead = ((dv_mem_client *)(void *)u->client->znode)->crashed;
        if (dead || state == DIVVY_LOST ? below(20) == 0 : below(3000) == 0) {
            end_user(u);
            begin_user(u);
        }
        if (below(100) == 0) divvy_testing_run(ensemble, below(8000));
        else divvy_testing_step(ensemble, ensemble->now + 50);
    }
    divvy_testing_heal(ensemble);
    divvy_testing_run(ensemble, 60000);
    assert_true(divvy_testing_leader(ensemble) >= 0);
    for (int i = 0; i < USERS; i++) end_user(&users[i]);
    divvy_testing_run(ensemble, 60000);
    for (size_t i = 0; i < shadow_count; i++) assert_int_equal(shadow[i].owner, 0); /* no session, no ephemeral */
    check_trees();
    divvy_testing_ensemble_destroy(ensemble);
}

/* Every request is answered once and in order, reads never go back, a watch fires before the change is seen, no
 * ephemeral outlives its session, and in the end all servers agree with what was told. */
TEST(test_random) {
    const char *given = getenv("DIVVY_TEST_SEED");
    const char *runs = getenv("DIVVY_TEST_RUNS");
    uint64_t first = given ? strtoull(given, NULL, 10) : 0;
    uint64_t count = runs ? strtoull(runs, NULL, 10) : given ? 1 : RUNS + FRESH;
    answers = fires = 0;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t seed = given ? first + i : dv_test_seed_of_run(i, RUNS, "unit_ensemble_random");
        printf("seed %llu\n", (unsigned long long)seed);
        fflush(stdout);
        one_run(seed);
    }
    printf("%llu answers, %llu watches fired\n", (unsigned long long)answers, (unsigned long long)fires);
    if (!given) assert_true(answers > 10000 && fires > 100);
}

/* One seed gives one run, to the last millisecond. */
TEST(test_replay) {
    one_run(4711);
    uint64_t once = fingerprint;
    one_run(4711);
    assert_true(once == fingerprint);
    one_run(4712);
    assert_true(once != fingerprint);
}
