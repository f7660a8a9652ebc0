/* Batches on a real server: many creates and deletes as few requests. SPDX-License-Identifier: Apache-2.0
 *
 * Shows the limits and the order of real multis, and what the native client answers when a link breaks under them. */
#include "one_server.h"
#include "test_client_witness.h"

#include "client/client.h"
#include "lib/proxy.h"

#define ITEMS_MAX 5000
#define PATH_BYTES 96

/* One operation and its answer. */
typedef struct {
    char path[PATH_BYTES], made[PATH_BYTES];
    atomic_int answers;
    int error, order;
    int64_t czxid;
    size_t child_count;
} item;

static item items[ITEMS_MAX];
static atomic_int answered;

/* On the client's loop. */
static void on_reply(void *context, const dv_reply *reply, int64_t now) {
    item *i = context;
    (void)now;
    i->error = reply->error;
    i->czxid = reply->error == 0 && reply->stat ? reply->stat->czxid : 0;
    if (reply->path) snprintf(i->made, sizeof i->made, "%s", reply->path);
    i->child_count = reply->child_count;
    i->order = atomic_load(&answered);
    atomic_fetch_add(&i->answers, 1);
    atomic_fetch_add(&answered, 1);
}

static void forget(void) {
    memset(items, 0, sizeof items);
    atomic_store(&answered, 0);
}

static void create_with(divvy_client *client, size_t i, const void *data, size_t data_bytes, int mode) {
    assert_int_equal(dv_batch_create(client->znode, items[i].path, data, data_bytes, mode, on_reply, &items[i]), 0);
}

static void create(divvy_client *client, size_t i) {
    create_with(client, i, "", 0, DV_EPHEMERAL);
}

static void delete (divvy_client *client, size_t i) {
    assert_int_equal(dv_batch_delete(client->znode, items[i].path, on_reply, &items[i]), 0);
}

static void children(divvy_client *client, size_t i) {
    assert_int_equal(dv_batch_children(client->znode, items[i].path, on_reply, &items[i]), 0);
}

static void name_items(const char *directory, size_t count) {
    forget();
    for (size_t i = 0; i < count; i++) snprintf(items[i].path, PATH_BYTES, "%s/n%05zu", directory, i);
}

/* All answers are here, one for each. */
static void await(size_t count) {
    assert_true(DV_WAIT(atomic_load(&answered) >= (int)count, PATIENCE_MS));
    for (size_t i = 0; i < count; i++) assert_int_equal(atomic_load(&items[i].answers), 1);
}

static divvy_stats stats_of(divvy_client *client) {
    divvy_stats stats;
    assert_int_equal(divvy_client_stats(client, &stats, sizeof stats), 0);
    return stats;
}

static size_t nodes(const char *path) {
    return dv_test_zk_count(truth, path);
}

static void directory(const char *path) {
    assert_int_equal(dv_test_zk_create(truth, path, "", 0, NULL), ZOK);
}

static divvy_client *connected(const char *list) {
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.hosts = list;
    config.ensemble_tick_ms = TICK_MS;
    config.session_timeout_ms = 15000; /* The native client waits a sixtieth of it before it connects again. */
    return open_connected(&config);
}

/* --- what is done ----------------------------------------------------------------------------------------------- */

/* Five thousand creates and as many deletes, each asked for in one turn: all are carried out, in order, by some fifty
 * requests, and the czxid told for each is that of its node. */
TEST(test_many) {
    divvy_client *client = connected(hosts());
    directory("/many");
    name_items("/many", ITEMS_MAX);
    divvy_stats before = stats_of(client);
    dv_client_lock(client);
    for (size_t i = 0; i < ITEMS_MAX; i++) create(client, i);
    dv_client_unlock(client);
    await(ITEMS_MAX);
    divvy_stats after = stats_of(client);
    assert_int_equal(after.creates - before.creates, ITEMS_MAX);
    assert_in_range(after.multis - before.multis, ITEMS_MAX / DV_MULTI_OPS_MAX, ITEMS_MAX / 50);
    assert_true(after.requests - before.requests <= 2 * (after.multis - before.multis));
    assert_int_equal(nodes("/many"), ITEMS_MAX);
    for (size_t i = 0; i < ITEMS_MAX; i++) {
        assert_int_equal(items[i].error, 0);
        assert_string_equal(items[i].made, items[i].path);
        if (i) assert_true(items[i].czxid >= items[i - 1].czxid && items[i].order > items[i - 1].order);
    }
    for (size_t i = 0; i < ITEMS_MAX; i += 17) {
        struct Stat stat;
        assert_true(dv_test_zk_exists(truth, items[i].path, &stat));
        assert_int_equal(stat.czxid, items[i].czxid);
        assert_int_equal(stat.ephemeralOwner, divvy_client_session_id(client));
    }
    name_items("/many", ITEMS_MAX);
    dv_client_lock(client);
    for (size_t i = 0; i < ITEMS_MAX; i++) delete (client, i);
    dv_client_unlock(client);
    await(ITEMS_MAX);
    for (size_t i = 0; i < ITEMS_MAX; i++) assert_int_equal(items[i].error, 0);
    assert_int_equal(nodes("/many"), 0);
    divvy_stats last = stats_of(client);
    assert_true(last.requests - after.requests <= ITEMS_MAX / 50);
    divvy_client_close(client);
}

/* Writes of one turn are carried out in the order in which they were asked for, multis and single ones alike, and a
 * list that was asked for before them shows all of them. */
TEST(test_order) {
    static const char script[] = "cccdddcccdddcdcdccc"; /* each letter is the next node's, round robin over three */
    enum { WRITES = sizeof script - 1 };
    divvy_client *client = connected(hosts());
    directory("/order");
    name_items("/order", WRITES + 1);
    snprintf(items[WRITES].path, PATH_BYTES, "/order");
    size_t made = 0, gone = 0;
    dv_client_lock(client);
    children(client, WRITES);
    for (size_t i = 0; i < WRITES; i++) {
        size_t node = script[i] == 'c' ? made++ : gone++;
        snprintf(items[i].path, PATH_BYTES, "/order/%zu", node % 3);
        if (script[i] == 'c') create(client, i);
        else delete (client, i);
    }
    dv_client_unlock(client);
    await(WRITES + 1);
    for (size_t i = 0; i < WRITES; i++) assert_int_equal(items[i].error, 0);
    assert_int_equal(items[WRITES].error, 0);
    assert_int_equal(items[WRITES].child_count, made - gone);
    assert_int_equal(nodes("/order"), made - gone);
    divvy_client_close(client);
    assert_int_equal(nodes("/order"), 0);
}

/* Sequential ephemeral nodes in a multi have names made by the server, each its own, and one czxid. */
TEST(test_sequential) {
    enum { COUNT = 50 };
    divvy_client *client = connected(hosts());
    directory("/sequential");
    forget();
    dv_client_lock(client);
    for (size_t i = 0; i < COUNT; i++) {
        snprintf(items[i].path, PATH_BYTES, "/sequential/x__lock__");
        create_with(client, i, "me", 2, DV_EPHEMERAL | DV_SEQUENTIAL);
    }
    dv_client_unlock(client);
    await(COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        char expected[PATH_BYTES];
        struct Stat stat;
        snprintf(expected, sizeof expected, "/sequential/x__lock__%010zu", i);
        assert_string_equal(items[i].made, expected);
        char *data = dv_test_zk_get(truth, expected, NULL, &stat);
        assert_string_equal(data, "me");
        assert_int_equal(stat.czxid, items[i].czxid);
        free(data);
    }
    divvy_client_close(client);
}

enum { RENEWED = 300 };
static char directories[RENEWED][PATH_BYTES];

static void name_directories(const char *parent, size_t count) {
    directory(parent);
    for (size_t i = 0; i < count; i++) {
        snprintf(directories[i], PATH_BYTES, "%s/d%05zu", parent, i);
        directory(directories[i]);
    }
}

/* Creates a node in each of `count` directories, and asks for the directory to be renewed with it. */
static void renew(divvy_client *client, size_t count) {
    forget();
    dv_client_lock(client);
    for (size_t i = 0; i < count; i++) {
        snprintf(items[i].path, PATH_BYTES, "%.60s/x__lock__", directories[i]);
        assert_int_equal(dv_batch_create_renewing(client->znode, directories[i], items[i].path, "me", 2,
                                                  DV_EPHEMERAL | DV_SEQUENTIAL, on_reply, &items[i]),
                         0);
    }
    dv_client_unlock(client);
    await(count);
}

static void delete_made(size_t i) {
    assert_int_equal(items[i].error, 0);
    assert_int_equal(dv_test_zk_delete(truth, items[i].made), ZOK);
}

static void check_made(size_t i, int number, bool is_renewed) {
    struct Stat stat;
    char made[PATH_BYTES];
    snprintf(made, sizeof made, "%.60s/x__lock__%010d", directories[i], number);
    assert_int_equal(items[i].error, 0);
    assert_string_equal(items[i].made, made);
    assert_true(dv_test_zk_exists(truth, made, &stat));
    assert_int_equal(stat.czxid, items[i].czxid);
    assert_true(dv_test_zk_exists(truth, directories[i], &stat));
    assert_int_equal(stat.czxid == items[i].czxid, is_renewed);
}

/* Q11: empty directories are made again in the transaction of their nodes. So all have the number 0, again and again,
 * and the czxid told is that of all; 200 take one request. */
TEST(test_renewed) {
    divvy_client *client = connected(hosts());
    name_directories("/renewed", RENEWED);
    for (int round = 0; round < 2; round++) {
        divvy_stats before = stats_of(client);
        renew(client, RENEWED);
        divvy_stats after = stats_of(client);
        assert_int_equal(after.sets - before.sets, 2); /* one in each of these multis, and in no heartbeat */
        assert_int_equal(after.creates - before.creates, 2 * RENEWED);
        assert_int_equal(after.exists - before.exists, 0);
        for (size_t i = 0; i < RENEWED; i++) check_made(i, 0, true);
        for (size_t i = 0; i < RENEWED; i++) delete_made(i);
    }
    divvy_client_close(client);
}

/* Q11: where a node stands in one of the directories, or its data were set, or it is not there, all stay as they are,
 * and count on. */
TEST(test_not_renewed) {
    enum { STANDS, DATA, MISSING, CASES, COUNT = 3, ODD = 1 };
    divvy_client *client = connected(hosts());
    for (int why = 0; why < CASES; why++) {
        char parent[PATH_BYTES];
        snprintf(parent, sizeof parent, "/not-renewed-%d", why);
        name_directories(parent, COUNT);
        renew(client, COUNT);
        for (size_t i = 0; i < COUNT; i++) {
            if (why != STANDS || i != ODD) delete_made(i);
        }
        if (why == DATA) assert_int_equal(dv_test_zk_set(truth, directories[ODD], "mine"), ZOK);
        if (why == MISSING) assert_int_equal(dv_test_zk_delete(truth, directories[ODD]), ZOK);
        renew(client, COUNT);
        for (size_t i = 0; i < COUNT; i++) {
            if (why == MISSING && i == ODD) assert_int_equal(items[i].error, DIVVY_ENOENT);
            else check_made(i, 1, false);
        }
    }
    divvy_client_close(client);
}

/* One bad item spoils nothing: the others of its multi are carried out one by one, and it alone gets its error. */
TEST(test_fallback) {
    enum { COUNT = 300 };
    divvy_client *client = connected(hosts());
    directory("/fallback");
    name_items("/fallback", COUNT);
    assert_int_equal(dv_test_zk_create(truth, items[7].path, "", 0, NULL), ZOK);
    snprintf(items[9].path, PATH_BYTES, "/fallback/no/parent");
    snprintf(items[11].path, PATH_BYTES, "/fallback/\x01");
    snprintf(items[250].path, PATH_BYTES, "/fallback//x");
    dv_client_lock(client);
    for (size_t i = 0; i < COUNT; i++) create(client, i);
    dv_client_unlock(client);
    await(COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        int expected = i == 7 ? DIVVY_EEXIST : i == 9 ? DIVVY_ENOENT : i == 11 || i == 250 ? DIVVY_EINVAL : 0;
        struct Stat stat;
        assert_int_equal(items[i].error, expected);
        if (expected) continue;
        assert_true(dv_test_zk_exists(truth, items[i].path, &stat));
        assert_int_equal(stat.czxid, items[i].czxid);
    }
    name_items("/fallback", COUNT);
    dv_client_lock(client);
    for (size_t i = 0; i < COUNT; i++) delete (client, i);
    dv_client_unlock(client);
    await(COUNT);
    for (size_t i = 0; i < COUNT; i++)
        assert_int_equal(items[i].error, i == 9 || i == 11 || i == 250 ? DIVVY_ENOENT : 0);
    assert_int_equal(nodes("/fallback"), 0);
    divvy_client_close(client);
}

/* Large items are split over requests that the server takes, and one that no request could hold is refused alone. */
TEST(test_sizes) {
    enum { COUNT = 40, LARGE = 100 * 1024, LARGEST = 999000, TOO_LARGE = 1000000 };
    divvy_client *client = connected(hosts());
    char *data = calloc(1, TOO_LARGE);
    assert_non_null(data);
    memset(data, 'd', TOO_LARGE);
    directory("/sizes");
    name_items("/sizes", COUNT);
    dv_client_lock(client);
    for (size_t i = 0; i < COUNT; i++)
        create_with(client, i, data, i == 13 ? TOO_LARGE : i == 29 ? LARGEST : LARGE, DV_EPHEMERAL);
    dv_client_unlock(client);
    await(COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        struct Stat stat;
        assert_int_equal(items[i].error, i == 13 ? DIVVY_E2BIG : 0);
        if (i == 13) continue;
        assert_true(dv_test_zk_exists(truth, items[i].path, &stat));
        assert_int_equal(stat.dataLength, i == 29 ? LARGEST : LARGE);
        assert_int_equal(stat.czxid, items[i].czxid);
    }
    assert_int_equal(divvy_client_state(client), DIVVY_CONNECTED);
    assert_int_equal(stats_of(client).connects, 1); /* The server has hung up on nothing. */
    divvy_client_close(client);
    free(data);
}

/* More reads than may be under way at once are all answered. */
TEST(test_more_than_may_be_under_way) {
    enum { COUNT = 3 * DV_IN_FLIGHT_MAX };
    divvy_client *client = connected(hosts());
    name_items("/", COUNT);
    dv_client_lock(client);
    for (size_t i = 0; i < COUNT; i++) {
        snprintf(items[i].path, PATH_BYTES, i % 2 ? "/" : "/none%zu", i);
        children(client, i);
    }
    dv_client_unlock(client);
    await(COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(items[i].error, i % 2 ? 0 : DIVVY_ENOENT);
        assert_int_equal(items[i].order, (int)i);
    }
    assert_true(DV_WAIT(stats_of(client).in_flight == 0, 15000)); /* a heartbeat may be */
    divvy_client_close(client);
}

/* --- what is lost ----------------------------------------------------------------------------------------------- */

/* The link breaks with multis under way: each operation is answered once, as unknown, and none is repeated, whether
 * the server has carried it out or not. */
TEST(test_cut) {
    enum { COUNT = 1000 };
    directory("/cut");
    for (int applied = 0; applied <= 1; applied++) {
        dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(server, 1));
        divvy_client *client = connected(dv_test_proxy_address(proxy));
        name_items("/cut", COUNT);
        if (applied) dv_test_proxy_drop_replies(proxy, true);
        else dv_test_proxy_freeze(proxy);
        dv_client_lock(client);
        for (size_t i = 0; i < COUNT; i++) create(client, i);
        dv_client_unlock(client);
        if (applied) assert_true(DV_WAIT(nodes("/cut") == COUNT, PATIENCE_MS));
        dv_test_proxy_cut(proxy);
        await(COUNT);
        for (size_t i = 0; i < COUNT; i++) assert_int_equal(items[i].error, DIVVY_ECONNECTION);
        divvy_stats before = stats_of(client);
        assert_true(before.failed > 0);
        dv_test_proxy_restore(proxy);
        assert_int_equal(divvy_client_wait_connected(client, PATIENCE_MS), 0);
        snprintf(items[0].path, PATH_BYTES, "/");
        dv_client_lock(client);
        children(client, 0); /* Whatever had been sent before is answered before this. */
        dv_client_unlock(client);
        assert_true(DV_WAIT(atomic_load(&items[0].answers) == 2, PATIENCE_MS));
        assert_int_equal(stats_of(client).creates, before.creates);
        assert_int_equal(nodes("/cut"), applied ? COUNT : 0);
        divvy_client_close(client);
        assert_int_equal(nodes("/cut"), 0);
        dv_test_proxy_stop(proxy);
    }
}

/* The answer that tells the czxid is lost though the creates were answered: unknown too, and nothing is repeated. */
TEST(test_cut_again_and_again) {
    enum { COUNT = 400, ROUNDS = 20 };
    directory("/again");
    dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(server, 1));
    divvy_client *client = connected(dv_test_proxy_address(proxy));
    for (int round = 0; round < ROUNDS; round++) {
        size_t known = 0;
        char path[32];
        snprintf(path, sizeof path, "/again/%d", round);
        directory(path);
        name_items(path, COUNT);
        dv_client_lock(client);
        for (size_t i = 0; i < COUNT; i++) create(client, i);
        dv_client_unlock(client);
        DV_WAIT(atomic_load(&answered) > 0, round % 5); /* Any moment will do. */
        dv_test_proxy_drop_replies(proxy, true);
        dv_test_sleep_ms(round % 7);
        dv_test_proxy_drop_replies(proxy, false); /* closes the connection, if it has lost an answer */
        await(COUNT);
        assert_int_equal(divvy_client_wait_connected(client, PATIENCE_MS), 0);
        for (size_t i = 0; i < COUNT; i++) {
            assert_true(items[i].error == 0 || items[i].error == DIVVY_ECONNECTION);
            known += items[i].error == 0;
            if (items[i].error == 0 && i % 50 == 0) {
                struct Stat stat;
                assert_true(dv_test_zk_exists(truth, items[i].path, &stat));
                assert_int_equal(stat.czxid, items[i].czxid);
            }
        }
        assert_true(nodes(path) >= known);
    }
    divvy_client_close(client);
    dv_test_proxy_stop(proxy);
}

/* Closed with thousands under way and held back, each is answered once. */
TEST(test_close) {
    enum { COUNT = 4000 };
    dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(server, 1));
    divvy_client *client = connected(dv_test_proxy_address(proxy));
    directory("/close");
    name_items("/close", COUNT);
    dv_test_proxy_freeze(proxy);
    dv_client_lock(client);
    for (size_t i = 0; i < COUNT / 2; i++) create(client, i);
    for (size_t i = COUNT / 2; i < COUNT; i++) children(client, i);
    dv_client_unlock(client);
    assert_true(stats_of(client).in_flight > DV_IN_FLIGHT_MAX);
    divvy_client_close(client);
    await(COUNT);
    for (size_t i = 0; i < COUNT; i++) assert_int_equal(items[i].error, DIVVY_ECANCELED);
    dv_test_proxy_stop(proxy);
}

TEST_GROUP(start_server, stop_server);
