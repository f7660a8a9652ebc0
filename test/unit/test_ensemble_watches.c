/* Watches of the in-memory ensemble: one-shot, told before the change is seen, silent while disconnected.
 * SPDX-License-Identifier: Apache-2.0 */
#include "test_ensemble.h"

static divvy_testing_ensemble *e;
static divvy_client *c, *other;
static outcome o;
static seen_watch w;

static int set_up(void **state) {
    (void)state;
    e = open_ensemble(NULL);
    c = open_client(e, 10000, a_follower(e));
    other = open_client(e, 10000, divvy_testing_leader(e));
    watch_init(e, &w);
    assert_int_equal(do_create(c, "/a", DV_PERSISTENT), 0);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    divvy_client_close(c);
    divvy_client_close(other);
    divvy_testing_ensemble_destroy(e);
    return 0;
}

static int read_watched(dv_kind kind, const char *path) {
    ask_op(c, &o, op_of(kind, path), &w);
    return await(&o);
}

static void expect(dv_watch_kind kind) {
    divvy_testing_run(e, 10);
    assert_int_equal(w.fired, 1);
    assert_int_equal(w.kind, kind);
    assert_null(w.watch.link);
    watch_init(e, &w);
}

/* Each kind of read watches for what ZooKeeper watches for, and is told once. */
TEST(test_kinds) {
    assert_int_equal(read_watched(DV_EXISTS, "/a/b"), DIVVY_ENOENT);
    do_create(other, "/a/b", DV_PERSISTENT);
    expect(DV_WATCH_CREATED);
    assert_int_equal(read_watched(DV_EXISTS, "/a/b"), 0);
    do_op(other, &o, op_set("/a/b", "x", -1));
    do_op(other, &o, op_set("/a/b", "y", -1));
    expect(DV_WATCH_CHANGED);
    assert_int_equal(read_watched(DV_CHILDREN, "/a"), 0);
    do_op(other, &o, op_set("/a", "x", -1));
    do_create(other, "/a/c", DV_PERSISTENT);
    expect(DV_WATCH_CHILDREN);
    assert_int_equal(read_watched(DV_CHILDREN, "/a"), 0);
    do_op(other, &o, op_of(DV_DELETE, "/a/c"));
    expect(DV_WATCH_CHILDREN);
    assert_int_equal(read_watched(DV_GET, "/a/b"), 0);
    do_op(other, &o, op_of(DV_DELETE, "/a/b"));
    expect(DV_WATCH_DELETED);
    assert_int_equal(read_watched(DV_CHILDREN, "/a"), 0);
    do_op(other, &o, op_of(DV_DELETE, "/a"));
    expect(DV_WATCH_DELETED);
}

/* A read that fails leaves no watch, but for an exists that finds nothing. */
TEST(test_failed_reads) {
    assert_int_equal(read_watched(DV_GET, "/a/b"), DIVVY_ENOENT);
    assert_null(w.watch.link);
    do_create(other, "/a/b", DV_PERSISTENT);
    divvy_testing_run(e, 100);
    assert_int_equal(w.fired, 0);
}

/* The watch is told before the answer that shows the change, be it of a read, or of one's own write. */
TEST(test_before_the_answer) {
    assert_int_equal(read_watched(DV_CHILDREN, "/a"), 0);
    outcome made, listed;
    ask_op(c, &made, op_create("/a/b", "", DV_PERSISTENT), NULL);
    ask_op(c, &listed, op_of(DV_CHILDREN, "/a"), NULL);
    while (made.error == NOT_YET) {
        assert_int_equal(listed.error, NOT_YET);
        assert_true(divvy_testing_step(e, e->now + 1000) == 1);
        if (made.error != NOT_YET) assert_int_equal(w.fired, 1);
    }
    assert_int_equal(await(&listed), 0);
    assert_int_equal(listed.count, 1);
}

/* A watch that is taken back is silent, though the server still tells of it. */
TEST(test_unwatch) {
    assert_int_equal(read_watched(DV_GET, "/a"), 0);
    dv_client_lock(c);
    dv_znode_unwatch(c->znode, &w.watch);
    dv_client_unlock(c);
    do_op(other, &o, op_set("/a", "x", -1));
    divvy_testing_run(e, 100);
    assert_int_equal(w.fired, 0);
}

/* Two who watch the same are both told, each once. */
TEST(test_two_watchers) {
    seen_watch second;
    watch_init(e, &second);
    assert_int_equal(read_watched(DV_CHILDREN, "/a"), 0);
    ask_op(c, &o, op_of(DV_GET, "/a"), &second);
    assert_int_equal(await(&o), 0);
    do_op(other, &o, op_of(DV_DELETE, "/a"));
    divvy_testing_run(e, 100);
    assert_int_equal(w.fired, 1);
    assert_int_equal(second.fired, 1);
    assert_int_equal(second.kind, DV_WATCH_DELETED);
}

static void cut(void) {
    assert_int_equal(divvy_testing_link_client(e, c, DIVVY_TESTING_LINK_DOWN), 0);
    assert_int_equal(divvy_testing_disconnect(e, c, DIVVY_TESTING_APPLIED, 0), 0);
    divvy_testing_run(e, 500);
    assert_int_equal(divvy_client_state(c), DIVVY_SUSPENDED);
}

static void mend(void) {
    assert_int_equal(w.fired, 0); /* nothing is told meanwhile */
    assert_int_equal(divvy_testing_link_client(e, c, DIVVY_TESTING_LINK_UP), 0);
    assert_int_equal(divvy_testing_disconnect(e, c, DIVVY_TESTING_APPLIED, 0), 0); /* the attempt that got stuck */
    divvy_testing_run(e, 1000);
    assert_int_equal(divvy_client_state(c), DIVVY_CONNECTED);
}

/* A change during a lost connection is told when the connection is back; another server tells it as well. */
TEST(test_missed_changes) {
    static const struct {
        dv_kind read;
        const char *path;
        dv_op change;
        dv_watch_kind told;
    } cases[] = {
        {DV_GET, "/a", {.kind = DV_SET, .path = "/a", .version = -1}, DV_WATCH_CHANGED},
        {DV_CHILDREN, "/a", {.kind = DV_CREATE, .path = "/a/b"}, DV_WATCH_CHILDREN},
        {DV_GET, "/a/b", {.kind = DV_DELETE, .path = "/a/b", .version = -1}, DV_WATCH_DELETED},
        {DV_EXISTS, "/a/b", {.kind = DV_CREATE, .path = "/a/b"}, DV_WATCH_CREATED},
        {DV_CHILDREN, "/a/b", {.kind = DV_DELETE, .path = "/a/b", .version = -1}, DV_WATCH_DELETED},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(read_watched(cases[i].read, cases[i].path), i == 3 ? DIVVY_ENOENT : 0);
        cut();
        divvy_testing_prefer(e, c, i % 2 ? a_follower(e) : other_follower(e));
        assert_int_equal(do_op(other, &o, cases[i].change), 0);
        mend();
        expect(cases[i].told);
    }
}

/* A node that was made and deleted while nobody listened was never there for an exists watch, which stays set; session
 * events consume no watch either. */
TEST(test_missed_for_good) {
    assert_int_equal(read_watched(DV_EXISTS, "/a/b"), DIVVY_ENOENT);
    cut();
    do_create(other, "/a/b", DV_PERSISTENT);
    do_op(other, &o, op_of(DV_DELETE, "/a/b"));
    mend();
    assert_int_equal(w.fired, 0);
    for (int i = 0; i < 3; i++) cut(), mend();
    do_create(other, "/a/b", DV_PERSISTENT);
    expect(DV_WATCH_CREATED);
}

/* A read whose answer was lost leaves no watch here, whatever the server has. */
TEST(test_lost_read) {
    divvy_testing_link_client(e, c, DIVVY_TESTING_LINK_NO_REPLIES);
    ask_op(c, &o, op_of(DV_GET, "/a"), &w);
    divvy_testing_run(e, 1);
    divvy_testing_disconnect(e, c, DIVVY_TESTING_APPLIED, 0);
    assert_int_equal(await(&o), DIVVY_ECONNECTION);
    assert_null(w.watch.link);
}

/* With the session go its watches, and none of them is told. */
TEST(test_session_end) {
    assert_int_equal(read_watched(DV_GET, "/a"), 0);
    assert_int_equal(divvy_testing_expire(e, c), 0);
    divvy_testing_run(e, 100);
    assert_null(w.watch.link);
    do_op(other, &o, op_set("/a", "x", -1));
    divvy_testing_run(e, 100);
    assert_int_equal(w.fired, 0);
}

static divvy_client *open_as_anna(void) {
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.auth_scheme = "digest";
    config.auth = "anna:secret";
    config.acl = DIVVY_ACL_CREATOR;
    return open_client_with(e, config, -1);
}

/* A client that may not read a node is told nothing of it, though it can watch for the node's existence; the watch
 * is used up. */
TEST(test_unreadable) {
    divvy_client *owner = open_as_anna();
    seen_watch hers, second;
    watch_init(e, &hers);
    watch_init(e, &second);
    assert_int_equal(read_watched(DV_EXISTS, "/hers"), DIVVY_ENOENT);
    ask_op(owner, &o, op_of(DV_EXISTS, "/hers"), &hers);
    assert_int_equal(await(&o), DIVVY_ENOENT);
    assert_int_equal(do_create(owner, "/hers", DV_PERSISTENT), 0);
    divvy_testing_run(e, 100);
    assert_int_equal(hers.fired, 1);
    assert_int_equal(w.fired, 0);
    assert_int_equal(do_op(owner, &o, op_of(DV_DELETE, "/hers")), 0);
    assert_int_equal(do_create(other, "/hers", DV_PERSISTENT), 0); /* readable now, but nobody watches it */
    divvy_testing_run(e, 100);
    assert_int_equal(w.fired, 0);
    ask_op(c, &o, op_of(DV_GET, "/hers"), &second);
    assert_int_equal(await(&o), 0);
    assert_int_equal(do_op(other, &o, op_set("/hers", "x", -1)), 0);
    divvy_testing_run(e, 100);
    assert_int_equal(second.fired, 1);
    divvy_client_close(owner);
}

TEST_EACH(set_up, tear_down);
