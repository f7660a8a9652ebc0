/* Tests of znode/again.h and client/odd_answers.c on the in-memory ensemble: what servers throttle, refuse for now, or
 * answer by codes that say nothing. SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "divvy/divvy.h"
#include "test_ensemble.h"

enum { THROTTLED = -127, QUOTA = -125, SYSTEM = -1, NOBODY_KNOWS = -999, SESSION_MS = 10000 };

static divvy_testing_ensemble *ensemble;
static char last_warning[512];
static int warnings[DIVVY_WARN_ANSWER + 1], failures;

static void on_warning(divvy_client *client, int code, const char *message, void *user) {
    (void)client, (void)user;
    if (code <= DIVVY_WARN_ANSWER) warnings[code]++;
    snprintf(last_warning, sizeof last_warning, "%s", message);
}

static divvy_client *open_warned(void) {
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.session_timeout_ms = SESSION_MS;
    config.ensemble_tick_ms = 2000;
    config.on_warning = on_warning;
    return open_client_with(ensemble, config, -1);
}

static int set_up(void **state) {
    (void)state;
    ensemble = open_ensemble(NULL);
    memset(warnings, 0, sizeof warnings);
    failures = 0;
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    close_ensemble(ensemble);
    return 0;
}

/* As recipes send it. */
static void ask(divvy_client *client, outcome *o, dv_op op, seen_watch *watch) {
    *o = (outcome){.error = NOT_YET, .ensemble = ensemble};
    dv_client_lock(client);
    assert_int_equal(dv_znode_submit(client->znode, &op, watch ? &watch->watch : NULL, on_reply, o), 0);
    dv_client_unlock(client);
}

static void answer(divvy_client *client, int code, int executed, unsigned count) {
    assert_int_equal(divvy_testing_answer(ensemble, client, code, executed, 0, count), 0);
}

/* The table has each code of KeeperException.Code; a code that it does not have leaves open what came of a write. */
TEST(test_table) {
    static const int codes[] = {0,    -1,   -2,   -3,   -4,   -5,   -6,   -7,   -8,   -12,  -13,
                                -14,  -100, -101, -102, -103, -108, -110, -111, -112, -113, -114,
                                -115, -118, -119, -120, -121, -122, -123, -124, -125, -127};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        dv_answer_meaning meaning = dv_answer_of(codes[i]);
        assert_non_null(meaning.name);
        assert_int_equal(meaning.code, codes[i]);
        int error = dv_answer_error(codes[i]);
        assert_int_equal(dv_answer_is_raw(error), meaning.verdict >= DV_VERDICT_AGAIN);
        if (dv_answer_is_raw(error)) assert_int_equal(dv_answer_code(error), codes[i]);
        else assert_int_equal(error, meaning.error);
    }
    static const int foreign[] = {-9999, -126, -128, 1, 7, 1000000};
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
        assert_int_equal(dv_answer_of(foreign[i]).verdict, DV_VERDICT_MAYBE);
        assert_null(dv_answer_of(foreign[i]).name);
        assert_int_equal(dv_answer_code(dv_answer_error(foreign[i])), foreign[i]);
    }
    assert_false(dv_answer_is_raw(DIVVY_EQUOTA));
}

/* A write that was throttled is sent again, longer apart each time, and its recipe hears of nothing but its end. The
 * user is warned once. */
TEST(test_throttled_write) {
    divvy_client *client = open_warned();
    outcome o;
    int64_t began = divvy_testing_now_ms(ensemble);
    answer(client, THROTTLED, 0, 6);
    ask(client, &o, op_create("/a", "", 0), NULL);
    assert_int_equal(await(&o), 0);
    assert_string_equal(o.path, "/a");
    assert_in_range(o.at - began, 20 + 40 + 80 + 160, 5000);
    assert_int_equal(warnings[DIVVY_WARN_ANSWER], 1);
    assert_non_null(strstr(last_warning, "create /a (THROTTLEDOP, -127)"));
    divvy_client_close(client);
}

/* The caller may free path and data as soon as it has asked: what is sent again has copies. */
TEST(test_owns_what_it_sends) {
    divvy_client *client = open_warned();
    outcome o;
    char path[] = "/a", data[] = "data";
    answer(client, THROTTLED, 0, 1);
    ask(client, &o, op_create(path, data, 0), NULL);
    strcpy(path, "/b");
    strcpy(data, "lost");
    assert_int_equal(await(&o), 0);
    assert_string_equal(o.path, "/a");
    ask(client, &o, op_of(DV_GET, "/a"), NULL);
    assert_int_equal(await(&o), 0);
    assert_string_equal(o.data, "data");
    divvy_client_close(client);
}

/* B11: what was sent behind a throttled write, and changed nothing, is answered behind it: the list has the node. So is
 * what is asked for while the write waits. */
TEST(test_order) {
    divvy_client *client = open_warned();
    outcome made, listed, later, refused;
    answer(client, THROTTLED, 0, 1);
    ask(client, &made, op_create("/a", "", 0), NULL);
    ask(client, &listed, op_of(DV_CHILDREN, "/"), NULL);
    ask(client, &refused, op_create("/a/b", "", 0), NULL);
    divvy_testing_run(ensemble, 5);
    assert_int_equal(made.error, NOT_YET);
    assert_int_equal(listed.error, NOT_YET);
    ask(client, &later, op_of(DV_EXISTS, "/a"), NULL);
    assert_int_equal(await(&listed), 0);
    assert_int_equal(made.error, 0);
    assert_int_equal(listed.count, 2);
    assert_int_equal(await(&refused), 0); /* First it was refused, as /a was not there. */
    assert_int_equal(await(&later), 0);
    divvy_client_close(client);
}

/* The client's backend, which lacks the memory for some requests. */
static const dv_znode_backend *backend;
static int refusals;

static int submit_or_refuse(dv_znode *znode, const dv_op *op, dv_watch *watch, dv_reply_fn done, void *context) {
    if (refusals > 0 && refusals--) return DIVVY_ENOMEM;
    return backend->submit(znode, op, watch, done, context);
}

/* B11: a write that cannot be sent again while memory is short keeps its place before what waits behind it. */
TEST(test_order_without_memory) {
    divvy_client *client = open_warned();
    outcome first, second;
    backend = client->znode->backend;
    dv_znode_backend refusing = *backend;
    refusing.submit = submit_or_refuse;
    answer(client, THROTTLED, 0, 1);
    ask(client, &first, op_create("/a", "", 0), NULL);
    divvy_testing_run(ensemble, 5);
    ask(client, &second, op_create("/b", "", 0), NULL);
    client->znode->backend = &refusing;
    refusals = 1;
    assert_int_equal(await(&first), 0);
    assert_int_equal(refusals, 0);
    assert_int_equal(await(&second), 0);
    assert_true(first.stat.czxid < second.stat.czxid);
    client->znode->backend = backend;
    divvy_client_close(client);
}

/* An answer that says nothing is a lost answer to a write, whether it was carried out or not, and none to a read. */
TEST(test_unknown_answer) {
    divvy_client *client = open_warned();
    outcome o;
    for (int executed = 0; executed < 2; executed++) {
        int64_t began = divvy_testing_now_ms(ensemble);
        answer(client, executed ? SYSTEM : NOBODY_KNOWS, executed, 1);
        ask(client, &o, op_create("/a", "", 0), NULL);
        assert_int_equal(await(&o), DIVVY_ECONNECTION);
        assert_in_range(o.at - began, 250, 1000); /* after a while, lest anybody asks at once */
        assert_int_equal(divvy_testing_exists(ensemble, "/a"), executed);
        assert_int_equal(warnings[DIVVY_WARN_ANSWER], executed + 1);
        assert_non_null(strstr(last_warning, executed ? "-1 (SYSTEMERROR)" : "-999 (a code that divvy does not know)"));
    }
    answer(client, NOBODY_KNOWS, 0, 3);
    ask(client, &o, op_of(DV_EXISTS, "/a"), NULL);
    assert_int_equal(await(&o), 0);
    answer(client, NOBODY_KNOWS, 0, 100); /* for good: its recipe hears of it, and decides */
    ask(client, &o, op_of(DV_EXISTS, "/a"), NULL);
    assert_int_equal(await(&o), DIVVY_ECONNECTION);
    assert_int_equal(warnings[DIVVY_WARN_ANSWER], 2); /* once a minute at the most */
    divvy_client_close(client);
}

/* What waits to be sent again ends with the connection, and with the client, which closes in time. */
TEST(test_ends) {
    divvy_client *client = open_warned();
    outcome o;
    answer(client, THROTTLED, 0, 1000000);
    ask(client, &o, op_create("/a", "", 0), NULL);
    divvy_testing_run(ensemble, 1000);
    assert_int_equal(o.error, NOT_YET);
    assert_int_equal(divvy_testing_disconnect(ensemble, client, DIVVY_TESTING_APPLIED, 0), 0);
    assert_int_equal(await(&o), DIVVY_ECONNECTION);
    assert_int_equal(divvy_client_wait_connected(client, 60000), 0);
    ask(client, &o, op_create("/a", "", 0), NULL);
    divvy_testing_run(ensemble, 1000);
    assert_int_equal(o.error, NOT_YET);
    int64_t began = divvy_testing_now_ms(ensemble);
    divvy_client_close(client);
    assert_int_equal(o.error, DIVVY_ECANCELED);
    assert_in_range(divvy_testing_now_ms(ensemble) - began, 0, 3000);
}

/* A throttled session lives: heartbeats are sent again, too. */
TEST(test_throttled_session_lives) {
    divvy_client *client = open_warned();
    outcome o;
    assert_int_equal(do_create(client, "/mine", DV_EPHEMERAL), 0);
    int64_t session = divvy_client_session_id(client);
    for (int i = 0; i < 30; i++) { /* each second request or so, for longer than the session's timeout */
        answer(client, THROTTLED, 0, 2);
        divvy_testing_run(ensemble, 1000);
    }
    assert_int_equal(divvy_client_session_id(client), session);
    ask(client, &o, op_of(DV_EXISTS, "/mine"), NULL);
    assert_int_equal(await(&o), 0);
    divvy_client_close(client);
}

/* A watch that is taken back while its read waits to be sent again is not set. One that stays is. */
TEST(test_watch) {
    divvy_client *client = open_warned();
    outcome o;
    for (int stays = 0; stays < 2; stays++) {
        seen_watch watch;
        watch_init(ensemble, &watch);
        answer(client, THROTTLED, 0, 2);
        ask(client, &o, op_of(DV_EXISTS, "/a"), &watch);
        divvy_testing_run(ensemble, 5);
        dv_client_lock(client);
        if (!stays) dv_znode_unwatch(client->znode, &watch.watch);
        dv_client_unlock(client);
        assert_int_equal(await(&o), DIVVY_ENOENT);
        assert_int_equal(!watch.watch.link, !stays);
        assert_int_equal(do_create(client, "/a", 0), 0);
        divvy_testing_run(ensemble, 100);
        assert_int_equal(watch.fired, stays);
        assert_int_equal(do_op(client, &o, op_of(DV_DELETE, "/a")), 0);
    }
    divvy_client_close(client);
}

/* A watch that is armed, and was given to another read that waits behind a throttled write, is taken back from both. */
TEST(test_armed_watch) {
    divvy_client *client = open_warned();
    outcome first, made, second;
    seen_watch watch;
    watch_init(ensemble, &watch);
    ask(client, &first, op_of(DV_EXISTS, "/a"), &watch);
    assert_int_equal(await(&first), DIVVY_ENOENT);
    answer(client, THROTTLED, 0, 1);
    ask(client, &made, op_create("/b", "", 0), NULL);
    divvy_testing_run(ensemble, 5);
    ask(client, &second, op_of(DV_EXISTS, "/a"), &watch);
    dv_client_lock(client);
    dv_znode_unwatch(client->znode, &watch.watch);
    dv_client_unlock(client);
    assert_int_equal(await(&second), DIVVY_ENOENT);
    assert_null(watch.watch.link);
    divvy_client_close(client);
}

static divvy_client *watcher;

static void take_back(dv_watch *watch, dv_watch_kind kind, int64_t now) {
    on_watch(watch, kind, now);
    dv_znode_unwatch(watcher->znode, watch);
}

/* A watch that fires while a read with it is under way, and is taken back then, is not armed when that read is sent
 * again. */
TEST(test_fired_watch) {
    divvy_client *client = watcher = open_warned();
    outcome first, set, second;
    seen_watch watch;
    watch_init(ensemble, &watch);
    assert_int_equal(do_create(client, "/a", 0), 0);
    watch.watch.fired = take_back;
    ask(client, &first, op_of(DV_EXISTS, "/a"), &watch);
    assert_int_equal(await(&first), 0);
    assert_int_equal(divvy_testing_answer(ensemble, client, THROTTLED, 0, 1, 1), 0);
    ask(client, &set, op_set("/a", "new", -1), NULL);
    ask(client, &second, op_of(DV_GET, "/a"), &watch);
    assert_int_equal(await(&second), 0);
    assert_int_equal(watch.fired, 1);
    assert_null(watch.watch.link);
    divvy_client_close(client);
}

/* No orphans: a lock whose release was throttled leaves nothing. */
TEST(test_throttled_release) {
    divvy_client *client = open_warned();
    divvy_lock_config config = DIVVY_LOCK_CONFIG_INIT;
    config.path = "/lock";
    divvy_lock *lock;
    assert_int_equal(divvy_lock_create(&lock, client, &config), 0);
    assert_int_equal(divvy_lock_acquire(lock, 10000), 0);
    answer(client, THROTTLED, 0, 3);
    assert_int_equal(divvy_lock_release(lock), 0);
    divvy_testing_run(ensemble, 3000);
    divvy_strings *names = divvy_testing_children(ensemble, "/lock");
    assert_int_equal(divvy_strings_count(names), 0);
    divvy_strings_free(names);
    divvy_lock_destroy(lock);
    divvy_client_close(client);
}

/* B12: a quota keeps a lock from being taken until it is raised. Who did not wait so long is told that it was that. */
TEST(test_quota_of_a_lock) {
    divvy_client *client = open_warned();
    divvy_lock_config config = DIVVY_LOCK_CONFIG_INIT;
    config.path = "/a/lock";
    divvy_lock *lock;
    assert_int_equal(do_create(client, "/a", 0), 0);
    assert_int_equal(do_create(client, "/a/lock", 0), 0);
    assert_int_equal(divvy_testing_quota(ensemble, "/a", 1), 0);
    divvy_testing_run(ensemble, 100);
    assert_int_equal(divvy_lock_create(&lock, client, &config), 0);
    assert_int_equal(divvy_lock_acquire(lock, 5000), DIVVY_EQUOTA);
    assert_string_equal(divvy_client_error(client), "lock /a/lock: a quota of the servers is used up");
    assert_int_equal(warnings[DIVVY_WARN_QUOTA], 1);
    assert_non_null(strstr(last_warning, "the quota of /a (count=-1,bytes=-1=;byteHardLimit=-1;countHardLimit=1) is "
                                         "used up: the servers refuse to create /a/lock/"));
    assert_int_equal(divvy_testing_quota(ensemble, "/a", 2), 0);
    assert_int_equal(divvy_lock_acquire(lock, 10000), 0);
    divvy_lock_destroy(lock);
    divvy_client_close(client);
}

/* ---- a pool ---- */

static const char *const items[] = {"i0", "i1", "i2", "i3", "i4", "i5"};
enum { ITEMS = sizeof items / sizeof *items };

static void on_state(divvy_partitioner *p, divvy_partition_state from, divvy_partition_state to, void *user) {
    (void)p, (void)from, (void)user;
    failures += to == DIVVY_FAILURE;
}

static divvy_partitioner *join(divvy_client *client, const char *identifier) {
    divvy_partitioner_config config = DIVVY_PARTITIONER_CONFIG_INIT;
    divvy_partitioner *p;
    config.path = "/pool";
    config.items = items;
    config.item_count = ITEMS;
    config.identifier = identifier;
    config.time_boundary_ms = 100;
    config.on_state = on_state;
    assert_int_equal(divvy_partitioner_create(&p, client, &config), 0);
    return p;
}

static size_t owned(divvy_partitioner *p) {
    size_t count = 0;
    for (size_t i = 0; i < ITEMS; i++) count += divvy_partitioner_owns(p, items[i]) != 0;
    return count;
}

static size_t count_below(const char *path) {
    divvy_strings *names = divvy_testing_children(ensemble, path);
    size_t count = divvy_strings_count(names);
    char child[256];
    for (size_t i = 0, own = count; i < own; i++) {
        snprintf(child, sizeof child, "%s/%s", path, divvy_strings_get(names, i));
        count += count_below(child);
    }
    divvy_strings_free(names);
    return count;
}

/* B12: a pool that comes to its quota keeps what it owns, fails nowhere, and has all of its items when the quota is
 * raised. */
TEST(test_quota_of_a_pool) {
    divvy_client *client = open_warned(), *other = open_warned();
    assert_int_equal(do_create(client, "/pool", 0), 0);
    divvy_partitioner *p = join(client, "first"), *q = join(other, "second");
    for (int i = 0; i < 200 && count_below("/pool/locks") < 3; i++) divvy_testing_run(ensemble, 1);
    assert_int_equal(divvy_testing_quota(ensemble, "/pool", (int64_t)count_below("/pool")), 0);
    divvy_testing_run(ensemble, 60000);
    size_t had = owned(p) + owned(q);
    assert_true(had < ITEMS);
    assert_int_equal(failures, 0);
    assert_true(warnings[DIVVY_WARN_QUOTA] >= 1);
    assert_int_equal(divvy_testing_quota(ensemble, "/pool", -1), 0);
    divvy_testing_run(ensemble, 15000);
    assert_int_equal(owned(p) + owned(q), ITEMS);
    assert_int_equal(divvy_partitioner_state(p), DIVVY_ACQUIRED);
    assert_int_equal(failures, 0);
    divvy_partitioner_destroy(p);
    divvy_partitioner_destroy(q);
    divvy_client_close(client);
    divvy_client_close(other);
}

TEST_EACH(set_up, tear_down);
