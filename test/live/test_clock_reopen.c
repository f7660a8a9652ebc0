/* A client outlives its session: it opens another, and a partitioner goes on with it if it was told to.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Shows loops of programs that go on over real expiries, with threads and in manual mode. */
#include "test_client_witness.h"

#include "lib/expire.h"
#include "lib/proxy.h"
#include "lib/server.h"
#include "lib/zk.h"

enum { TICK_MS = 100, TIMEOUT_MS = 4000, ITEMS = 3, LOG_BYTES = 1024 };

static const char *const items[ITEMS] = {"a", "b", "c"};
static dv_test_server *server;
static dv_test_zk *truth;

/* One pool with the client under test as its only member, and what that was told. */
typedef struct {
    pthread_mutex_t lock;
    char log[LOG_BYTES]; /* states by their names, "gained a a b b", "lost session a", blanks between */
    int64_t tokens[ITEMS];
    bool owned[ITEMS]; /* by what on_items said */
    char path[32];
    divvy_partitioner *partitioner;
} pool;

/* The client and the proxy to which it speaks. Tests have it, and pools, as statics: after an assertion that fails the
 * client's threads go on. */
typedef struct {
    witness w;
    dv_test_proxy *proxy;
    divvy_client *client;
    int64_t session;
} host;

static int setup(void **state) {
    (void)state;
    server = dv_test_server_start(1, TICK_MS);
    truth = dv_test_zk_open(dv_test_server_connect(server));
    return 0;
}

static int teardown(void **state) {
    (void)state;
    dv_test_zk_close(truth);
    dv_test_server_stop(server);
    return 0;
}

/* ---- a pool ---- */

static void note(pool *p, const char *text) {
    size_t used = strlen(p->log);
    snprintf(p->log + used, sizeof p->log - used, "%s%s", used ? " " : "", text);
}

static void on_state(divvy_partitioner *partitioner, divvy_partition_state from, divvy_partition_state to, void *user) {
    pool *p = user;
    (void)partitioner;
    (void)from;
    pthread_mutex_lock(&p->lock);
    note(p, divvy_partition_state_name(to));
    pthread_mutex_unlock(&p->lock);
}

static size_t item_of(const char *name) {
    size_t i = 0;
    while (strcmp(items[i], name) != 0) i++;
    return i;
}

static void on_items(divvy_partitioner *partitioner, const divvy_items_event *event, void *user) {
    pool *p = user;
    (void)partitioner;
    pthread_mutex_lock(&p->lock);
    for (size_t i = 0; i < event->lost_count; i++) {
        char text[64];
        snprintf(text, sizeof text, "lost:%s%s", event->lost[i], event->reason == DIVVY_REASON_SESSION ? "!" : "");
        note(p, text);
        p->owned[item_of(event->lost[i])] = false;
    }
    for (size_t i = 0; i < event->gained_count; i++) {
        size_t item = item_of(event->gained[i]);
        p->owned[item] = true;
        p->tokens[item] = event->gained_tokens[i];
    }
    pthread_mutex_unlock(&p->lock);
}

/* Returns what was told since its last call. Static memory. */
static const char *told(pool *p) {
    static char text[LOG_BYTES];
    pthread_mutex_lock(&p->lock);
    memcpy(text, p->log, sizeof text);
    p->log[0] = '\0';
    pthread_mutex_unlock(&p->lock);
    return text;
}

static bool was_told(pool *p, const char *word) {
    pthread_mutex_lock(&p->lock);
    bool found = strstr(p->log, word) != NULL;
    pthread_mutex_unlock(&p->lock);
    return found;
}

static size_t owned(pool *p) {
    size_t count = 0;
    for (size_t i = 0; i < ITEMS; i++) count += divvy_partitioner_owns(p->partitioner, items[i]) == 1;
    return count;
}

static divvy_partition_state state_of(pool *p) {
    return divvy_partitioner_state(p->partitioner);
}

/* Nodes below the pool that belong to a session. */
static size_t nodes_of(pool *p, int64_t session) {
    char path[512];
    size_t count = 0, found = 0;
    for (size_t i = 0; i <= ITEMS; i++) {
        if (i < ITEMS) snprintf(path, sizeof path, "%s/locks/%s", p->path, items[i]);
        else snprintf(path, sizeof path, "%s/party", p->path);
        size_t length = strlen(path);
        char **names = dv_test_zk_children(truth, path, &count);
        for (size_t j = 0; names && j < count; j++) {
            struct Stat stat;
            snprintf(path + length, sizeof path - length, "/%s", names[j]);
            found += dv_test_zk_exists(truth, path, &stat) && stat.ephemeralOwner == session;
        }
        dv_test_zk_free_names(names);
    }
    return found;
}

static void pool_open(pool *p, divvy_client *client, int on_session_loss) {
    static unsigned made;
    *p = (pool){.lock = PTHREAD_MUTEX_INITIALIZER};
    snprintf(p->path, sizeof p->path, "/reopen-%u", ++made);
    divvy_partitioner_config config = dv_test_partitioner_config(p->path, items, ITEMS, 0);
    config.on_session_loss = on_session_loss;
    config.on_state = on_state;
    config.on_items = on_items;
    config.user = p;
    assert_int_equal(divvy_partitioner_create(&p->partitioner, client, &config), 0);
    assert_int_equal(divvy_partitioner_wait_for_acquire(p->partitioner, PATIENCE_MS), 0);
    assert_true(DV_WAIT(was_told(p, "ACQUIRED"), PATIENCE_MS));
    told(p);
}

/* ---- the client ---- */

static void host_open(host *h) {
    h->proxy = dv_test_proxy_start(dv_test_server_address(server, 1));
    divvy_client_config config = witness_config(&h->w, dv_test_proxy_address(h->proxy));
    config.session_timeout_ms = TIMEOUT_MS;
    config.ensemble_tick_ms = TICK_MS;
    h->client = open_connected(&config);
    h->session = divvy_client_session_id(h->client);
}

static void host_close(host *h) {
    divvy_client_close(h->client);
    witness_end(&h->w);
    dv_test_proxy_stop(h->proxy);
}

static void expire(host *h) {
    dv_test_proxy_cut(h->proxy);
    assert_true(dv_test_expire(dv_test_server_connect(server), h->session, NULL));
    dv_test_proxy_restore(h->proxy);
}

/* The session goes by its deadline, unheard of by any server. */
static void outlast(host *h) {
    dv_test_proxy_freeze(h->proxy);
    assert_true(DV_WAIT(strchr(witness_states(&h->w), 'L'), PATIENCE_MS));
    dv_test_proxy_cut(h->proxy);
    dv_test_proxy_restore(h->proxy);
}

/* Returns whether CONNECTED was told after LOST. */
static bool was_reopened(witness *w) {
    const char *lost = strchr(witness_states(w), 'L');
    return lost && strchr(lost, 'C');
}

/* Waits for another session, and checks that its coming was told after the loss of the last one. */
static void check_reopened(host *h) {
    int64_t old = h->session;
    assert_true(DV_WAIT(was_reopened(&h->w), PATIENCE_MS));
    assert_int_equal(divvy_client_wait_connected(h->client, PATIENCE_MS), 0);
    h->session = divvy_client_session_id(h->client);
    assert_int_not_equal(h->session, 0);
    assert_int_not_equal(h->session, old);
    assert_true(DV_WAIT(divvy_client_time_left_ms(h->client) > 0, PATIENCE_MS));
}

/* Forgets the states so far, for another loss comes next. */
static void forget_states(host *h) {
    pthread_mutex_lock(&h->w.lock);
    h->w.state_count = 0;
    pthread_mutex_unlock(&h->w.lock);
}

/* ---- a partitioner that goes on ---- */

/* The loss was told: RELEASE with everything lost, and nothing of the member's is on the new session. */
static void check_lost(pool *p, host *h, uint64_t id_before) {
    assert_true(DV_WAIT(was_told(p, "RELEASE") && was_told(p, "lost:c"), PATIENCE_MS));
    assert_int_equal(state_of(p), DIVVY_RELEASE);
    assert_true(divvy_partitioner_state_id(p->partitioner) > id_before);
    assert_int_equal(owned(p), 0);
    divvy_partition *mine = divvy_partitioner_partition(p->partitioner);
    assert_int_equal(divvy_partition_count(mine), 0);
    divvy_partition_unref(mine);
    for (size_t i = 0; i < ITEMS; i++) assert_false(p->owned[i]);
    check_reopened(h);
    for (int i = 0; i < 20; i++) { /* Not before the user has released. */
        assert_int_equal(nodes_of(p, h->session), 0);
        assert_int_equal(state_of(p), DIVVY_RELEASE);
        dv_test_sleep_ms(10);
    }
}

/* All is owned again, on the session that the client has by then: a machine that stood still costs it one more. Where
 * the servers still keep the old session, its member gets a share until it has expired. */
static void check_regained(pool *p, host *h, const int64_t *tokens_before) {
    assert_int_equal(divvy_partitioner_wait_for_acquire(p->partitioner, PATIENCE_MS), 0);
    assert_true(DV_WAIT(owned(p) == ITEMS && state_of(p) == DIVVY_ACQUIRED, PATIENCE_MS));
    h->session = divvy_client_session_id(h->client);
    assert_int_equal(nodes_of(p, h->session), ITEMS + 1);
    assert_true(DV_WAIT(was_told(p, "ACQUIRED"), PATIENCE_MS));
    for (size_t i = 0; i < ITEMS; i++) {
        assert_true(p->owned[i]);
        assert_true(p->tokens[i] > tokens_before[i]);
    }
}

static void check_rejoin(void (*lose)(host *h)) {
    static host h;
    static pool p;
    host_open(&h);
    pool_open(&p, h.client, DIVVY_REJOIN);
    for (int round = 0; round < 2; round++) {
        int64_t tokens[ITEMS];
        memcpy(tokens, p.tokens, sizeof tokens);
        uint64_t id = divvy_partitioner_state_id(p.partitioner);
        lose(&h);
        check_lost(&p, &h, id);
        assert_int_equal(divvy_partitioner_release_set(p.partitioner), 0);
        check_regained(&p, &h, tokens);
        const char *states = told(&p);
        if (!strstr(states, "lost:a! lost:b! lost:c!")) fail_msg("told %s", states);
        const char *release = strstr(states, "RELEASE"), *allocating = strstr(states, "ALLOCATING");
        if (!release || !allocating || release > allocating || strstr(states, "FAILURE")) fail_msg("told %s", states);
        forget_states(&h);
    }
    divvy_partitioner_destroy(p.partitioner);
    host_close(&h);
}

/* Expired by the servers, the member goes RELEASE, ALLOCATING, ACQUIRED, with larger tokens, on the client's new
 * session, one object all along; and again. */
TEST(test_rejoin_after_expiry) {
    check_rejoin(expire);
}

/* The same when no server has said a word and the deadline has passed; the nodes of the old session are still there
 * then, and have to go first. */
TEST(test_rejoin_after_deadline) {
    check_rejoin(outlast);
}

/* One loop, of those that stand in the docs, takes a member through losses without knowing of them. */
TEST(test_same_loop) {
    static host h;
    static pool p;
    host_open(&h);
    pool_open(&p, h.client, DIVVY_REJOIN);
    for (int round = 0; round < 2; round++) {
        bool released = false;
        int64_t deadline_ms = dv_test_now_ms() + PATIENCE_MS;
        expire(&h);
        for (uint64_t id = 0; !(released && state_of(&p) == DIVVY_ACQUIRED);) {
            if (dv_test_now_ms() > deadline_ms) fail_msg("told %s", told(&p));
            switch (state_of(&p)) {
            case DIVVY_FAILURE: fail_msg("told %s", told(&p)); break;
            case DIVVY_RELEASE: released = divvy_partitioner_release_set(p.partitioner) == 0; break;
            default: divvy_partitioner_wait_change(p.partitioner, id, 100);
            }
            id = divvy_partitioner_state_id(p.partitioner);
        }
        assert_int_equal(owned(&p), ITEMS);
        h.session = divvy_client_session_id(h.client);
        assert_int_equal(nodes_of(&p, h.session), ITEMS + 1);
    }
    divvy_partitioner_destroy(p.partitioner);
    host_close(&h);
}

/* A RELEASE that was entered before the loss is not the one to answer after it. */
TEST(test_loss_in_release) {
    static host h;
    static pool p;
    host_open(&h);
    pool_open(&p, h.client, DIVVY_REJOIN);
    expire(&h);
    assert_true(DV_WAIT(state_of(&p) == DIVVY_RELEASE, PATIENCE_MS));
    uint64_t first = divvy_partitioner_state_id(p.partitioner);
    check_reopened(&h);
    forget_states(&h);
    expire(&h);
    assert_true(DV_WAIT(divvy_partitioner_state_id(p.partitioner) != first, PATIENCE_MS));
    assert_int_equal(state_of(&p), DIVVY_RELEASE);
    assert_int_equal(divvy_partitioner_release_set_id(p.partitioner, first), DIVVY_ESTATE);
    assert_int_equal(divvy_partitioner_release_set(p.partitioner), 0);
    assert_int_equal(divvy_partitioner_wait_for_acquire(p.partitioner, PATIENCE_MS), 0);
    assert_int_equal(owned(&p), ITEMS);
    divvy_partitioner_destroy(p.partitioner);
    host_close(&h);
}

/* ---- one that does not ---- */

/* With DIVVY_FAIL the loss is the end of a partitioner, not of its client: the next one on it works, and so does
 * another that rejoins, on the same client all along. */
TEST(test_fail_beside_rejoin) {
    static host h;
    static pool fails, rejoins, next;
    host_open(&h);
    pool_open(&fails, h.client, DIVVY_FAIL);
    pool_open(&rejoins, h.client, DIVVY_REJOIN);
    expire(&h);
    assert_true(DV_WAIT(state_of(&fails) == DIVVY_FAILURE, PATIENCE_MS));
    assert_int_equal(divvy_partitioner_failure(fails.partitioner, NULL, 0), DIVVY_ELOST);
    assert_int_equal(owned(&fails), 0);
    check_reopened(&h);
    assert_int_equal(state_of(&fails), DIVVY_FAILURE);
    pool_open(&next, h.client, DIVVY_FAIL);
    assert_int_equal(nodes_of(&next, h.session), ITEMS + 1);
    assert_int_equal(nodes_of(&fails, h.session), 0);
    assert_true(DV_WAIT(state_of(&rejoins) == DIVVY_RELEASE, PATIENCE_MS));
    assert_int_equal(divvy_partitioner_release_set(rejoins.partitioner), 0);
    assert_int_equal(divvy_partitioner_wait_for_acquire(rejoins.partitioner, PATIENCE_MS), 0);
    assert_int_equal(state_of(&fails), DIVVY_FAILURE);
    divvy_partitioner_destroy(fails.partitioner);
    divvy_partitioner_destroy(rejoins.partitioner);
    divvy_partitioner_destroy(next.partitioner);
    host_close(&h);
}

TEST_GROUP(setup, teardown);
