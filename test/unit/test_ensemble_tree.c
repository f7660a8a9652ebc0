/* The in-memory ensemble's tree: operations, multis, sequence numbers, access, limits.
 * SPDX-License-Identifier: Apache-2.0 */
#include "ensemble_client_fixture.h"

static outcome o;

/* Each operation does what ZooKeeper's does, with its Stat. */
TEST(test_operations) {
    assert_int_equal(do_op(c, &o, op_create("/a", "one", DV_PERSISTENT)), 0);
    assert_string_equal(o.path, "/a");
    int64_t czxid = o.stat.czxid;
    assert_int_equal(o.stat.data_bytes, 3);
    assert_int_equal(do_create(c, "/a/b", DV_EPHEMERAL), 0);
    assert_int_equal(do_create(c, "/a/c", DV_PERSISTENT), 0);
    assert_int_equal(do_op(c, &o, op_set("/a", "three", 0)), 0);
    assert_int_equal(o.stat.version, 1);
    assert_int_equal(do_op(c, &o, op_of(DV_GET, "/a")), 0);
    assert_string_equal(o.data, "three");
    assert_int_equal(o.stat.czxid, czxid);
    assert_true(o.stat.mzxid > o.stat.pzxid && o.stat.pzxid > czxid);
    assert_int_equal(o.stat.children, 2);
    assert_int_equal(o.stat.data_bytes, 5);
    assert_int_equal(do_op(c, &o, op_of(DV_CHILDREN, "/a")), 0);
    assert_int_equal(o.count, 2);
    assert_string_equal(o.paths[0], "c"); /* no promised order, and surely not the one of creation */
    assert_int_equal(do_op(c, &o, op_of(DV_EXISTS, "/a/b")), 0);
    assert_int_equal(o.stat.ephemeral_owner, divvy_client_session_id(c));
    assert_int_equal(divvy_testing_owner(e, "/a/b"), divvy_client_session_id(c));
    int64_t pzxid = o.stat.czxid;
    assert_int_equal(do_op(c, &o, op_of(DV_DELETE, "/a/b")), 0);
    assert_int_equal(do_op(c, &o, op_of(DV_GET, "/a")), 0);
    assert_true(o.stat.pzxid > pzxid); /* a delete counts too */
    assert_int_equal(o.stat.children, 1);
    divvy_strings *children = divvy_testing_children(e, "/");
    assert_int_equal(divvy_strings_count(children), 2);
    assert_string_equal(divvy_strings_get(children, 0), "a");
    assert_string_equal(divvy_strings_get(children, 1), "zookeeper");
    divvy_strings_free(children);
    assert_null(divvy_testing_children(e, "/none"));
}

/* A node's times are the wall clock of the leader that ordered the transaction: creation and the last set. */
TEST(test_times) {
    int64_t before_ms = divvy_testing_wall_clock_ms(e);
    assert_int_equal(do_op(c, &o, op_create("/timed", "one", DV_PERSISTENT)), 0);
    assert_true(o.stat.ctime_ms >= before_ms && o.stat.ctime_ms <= divvy_testing_wall_clock_ms(e));
    assert_int_equal(o.stat.mtime_ms, o.stat.ctime_ms);
    int64_t created_ms = o.stat.ctime_ms;
    assert_int_equal(divvy_testing_set_wall_clock(e, (unsigned)divvy_testing_leader(e), -3600000), 0);
    assert_int_equal(do_op(c, &o, op_set("/timed", "two", -1)), 0);
    assert_int_equal(o.stat.ctime_ms, created_ms);
    assert_in_range(divvy_testing_wall_clock_ms(e) - o.stat.mtime_ms, 3600000, 3600100);
    int64_t set_ms = o.stat.mtime_ms;
    assert_int_equal(do_op(c, &o, op_of(DV_GET, "/timed")), 0);
    assert_int_equal(o.stat.mtime_ms, set_ms); /* every server has the leader's, not its own */
    assert_int_equal(divvy_testing_set_wall_clock(e, 9, 0), DIVVY_EINVAL);
}

/* Each refusal is the one that ZooKeeper gives, and changes nothing. */
TEST(test_refusals) {
    assert_int_equal(do_create(c, "/a", DV_PERSISTENT), 0);
    assert_int_equal(do_create(c, "/a/b", DV_EPHEMERAL), 0);
    int64_t count = e->servers[0].root->child_count;
    assert_int_equal(do_create(c, "/a", DV_PERSISTENT), DIVVY_EEXIST);
    assert_int_equal(do_create(c, "/none/a", DV_PERSISTENT), DIVVY_ENOENT);
    assert_int_equal(do_create(c, "/a/b/c", DV_PERSISTENT), DIVVY_EINVAL);
    assert_int_equal(do_op(c, &o, op_of(DV_DELETE, "/a")), DIVVY_ENOTEMPTY);
    assert_int_equal(do_op(c, &o, op_of(DV_DELETE, "/none")), DIVVY_ENOENT);
    assert_int_equal(do_op(c, &o, op_of(DV_DELETE, "/")), DIVVY_EINVAL);
    assert_int_equal(do_op(c, &o, op_set("/a", "x", 7)), DIVVY_EVERSION);
    assert_int_equal(do_op(c, &o, (dv_op){.kind = DV_DELETE, .path = "/a/b", .version = 1}), DIVVY_EVERSION);
    assert_int_equal(do_op(c, &o, op_set("/none", "x", -1)), DIVVY_ENOENT);
    assert_int_equal(do_op(c, &o, op_of(DV_GET, "/none")), DIVVY_ENOENT);
    assert_int_equal(do_op(c, &o, op_of(DV_CHILDREN, "/none")), DIVVY_ENOENT);
    assert_int_equal(do_op(c, &o, op_of(DV_EXISTS, "/none")), DIVVY_ENOENT);
    assert_int_equal(do_create(c, "no/slash", DV_PERSISTENT), DIVVY_EINVAL);
    assert_int_equal(e->servers[0].root->child_count, count);
    assert_int_equal(do_op(c, &o, op_of(DV_GET, "/a")), 0);
    assert_int_equal(o.stat.version, 0);
}

/* Two requests sent back to back: the second is judged by what the first will have done. */
TEST(test_pipelined) {
    outcome made, below, again, gone, after;
    ask_op(c, &made, op_create("/a", "", DV_PERSISTENT), NULL);
    ask_op(c, &below, op_create("/a/b", "", DV_PERSISTENT), NULL);
    ask_op(c, &again, op_create("/a/b", "", DV_PERSISTENT), NULL);
    ask_op(c, &gone, op_of(DV_DELETE, "/a/b"), NULL);
    ask_op(c, &after, op_set("/a/b", "x", -1), NULL);
    assert_int_equal(await(&after), DIVVY_ENOENT);
    assert_int_equal(made.error + below.error + gone.error, 0);
    assert_int_equal(again.error, DIVVY_EEXIST);
}

/* A sequence number counts the creates under the parent, of all kinds, and no deletes; it starts again with the
 * parent. */
TEST(test_sequences) {
    for (int round = 0; round < 2; round++) {
        assert_int_equal(do_create(c, "/q", DV_PERSISTENT), 0);
        assert_int_equal(do_op(c, &o, op_create("/q/x-", "", DV_SEQUENTIAL | DV_EPHEMERAL)), 0);
        assert_string_equal(o.path, "/q/x-0000000000");
        assert_int_equal(do_create(c, "/q/plain", DV_PERSISTENT), 0);
        assert_int_equal(do_op(c, &o, op_of(DV_DELETE, "/q/plain")), 0);
        assert_int_equal(do_op(c, &o, op_of(DV_DELETE, "/q/x-0000000000")), 0);
        assert_int_equal(do_op(c, &o, op_create("/q/y-", "", DV_SEQUENTIAL)), 0);
        assert_string_equal(o.path, "/q/y-0000000002");
        assert_int_equal(do_op(c, &o, op_of(DV_DELETE, "/q/y-0000000002")), 0);
        assert_int_equal(do_op(c, &o, op_of(DV_DELETE, "/q")), 0);
    }
}

/* "/" with a number behind it is a child of "/", in a multi too; without one it is there already. */
TEST(test_sequence_at_the_root) {
    assert_int_equal(do_create(c, "/", DV_PERSISTENT), DIVVY_EEXIST);
    assert_int_equal(do_op(c, &o, op_create("/", "", DV_SEQUENTIAL | DV_EPHEMERAL)), 0);
    assert_string_equal(o.path, "/0000000000");
    assert_true(divvy_testing_exists(e, "/0000000000"));
    dv_op op = op_create("/", "", DV_SEQUENTIAL);
    ask_multi(c, &o, &op, 1);
    assert_int_equal(await(&o), 0);
    assert_string_equal(o.paths[0], "/0000000001");
}

static void create_two(const char *a, const char *b) {
    outcome first, second;
    ask_op(c, &first, op_create("/q/x-", "", DV_SEQUENTIAL), NULL);
    ask_op(c, &second, op_create("/q/y-", "", DV_SEQUENTIAL), NULL);
    assert_int_equal(await(&second), 0);
    assert_string_equal(first.path, a);
    assert_string_equal(second.path, b);
}

/* At its end the counter stays, as with ZooKeeper 3.8, but for what is under way together. */
TEST(test_sequence_sticks) {
    assert_int_equal(do_create(c, "/q", DV_PERSISTENT), 0);
    assert_int_equal(divvy_testing_set_sequence(e, "/none", 7), DIVVY_ENOENT);
    assert_int_equal(divvy_testing_set_sequence(e, "/q", 2147483646), 0);
    create_two("/q/x-2147483646", "/q/y-2147483647");
    create_two("/q/x-2147483647", "/q/y--2147483648");
    assert_int_equal(do_op(c, &o, op_create("/q/z-", "", DV_SEQUENTIAL)), 0);
    assert_string_equal(o.path, "/q/z-2147483647");
}

/* If so configured it goes on below zero. */
TEST(test_sequence_wraps) {
    tear_down(state);
    divvy_testing_config config = DIVVY_TESTING_CONFIG_INIT;
    config.sequences_wrap = 1;
    e = open_ensemble(&config);
    c = open_client(e, 10000, -1);
    assert_int_equal(do_create(c, "/q", DV_PERSISTENT), 0);
    assert_int_equal(divvy_testing_set_sequence(e, "/q", 2147483647), 0);
    assert_int_equal(do_op(c, &o, op_create("/q/x-", "", DV_SEQUENTIAL)), 0);
    assert_string_equal(o.path, "/q/x-2147483647");
    assert_int_equal(do_op(c, &o, op_create("/q/x-", "", DV_SEQUENTIAL)), 0);
    assert_string_equal(o.path, "/q/x--2147483648");
    assert_int_equal(divvy_testing_set_sequence(e, "/q", -1), 0);
    assert_int_equal(do_op(c, &o, op_create("/q/x-", "", DV_SEQUENTIAL)), 0);
    assert_string_equal(o.path, "/q/x--000000001");
    assert_int_equal(do_op(c, &o, op_create("/q/x-", "", DV_SEQUENTIAL)), 0);
    assert_string_equal(o.path, "/q/x-0000000000");
}

/* A multi is one transaction; its operations see those before them. */
TEST(test_multi) {
    dv_op ops[] = {op_create("/m", "", DV_PERSISTENT), op_create("/m/x-", "", DV_SEQUENTIAL | DV_EPHEMERAL),
                   op_create("/m/x-", "", DV_SEQUENTIAL), op_set("/m", "data", 0), op_of(DV_CHECK, "/m/x-0000000001")};
    ask_multi(c, &o, ops, 5);
    assert_int_equal(await(&o), 0);
    assert_int_equal(o.stat.version, 1); /* a set tells its Stat in a multi too */
    assert_int_equal(o.stat.mzxid, o.stat.czxid);
    assert_string_equal(o.paths[1], "/m/x-0000000000");
    assert_string_equal(o.paths[2], "/m/x-0000000001");
    outcome a, b;
    do_op(c, &a, op_of(DV_EXISTS, "/m"));
    do_op(c, &b, op_of(DV_EXISTS, "/m/x-0000000000"));
    assert_int_equal(a.stat.czxid, b.stat.czxid);
    assert_int_equal(a.stat.version, 1);
}

/* A set tells the node's Stat as it left it, though a later operation of the multi deletes the node. */
TEST(test_multi_set_and_delete) {
    int64_t before_ms = divvy_testing_wall_clock_ms(e);
    dv_op ops[] = {op_create("/m", "", DV_PERSISTENT), op_set("/m", "data", 0), op_of(DV_DELETE, "/m")};
    ask_multi(c, &o, ops, 3);
    assert_int_equal(await(&o), 0);
    assert_int_equal(o.stat.version, 1);
    assert_int_equal(o.stat.data_bytes, 4);
    assert_true(o.stat.mtime_ms >= before_ms);
    assert_int_equal(do_op(c, &o, op_of(DV_EXISTS, "/m")), DIVVY_ENOENT);
}

/* If one operation of a multi fails, none is done, not even the counting; it has its error, all others are undone. */
TEST(test_multi_fails) {
    assert_int_equal(do_create(c, "/m", DV_PERSISTENT), 0);
    dv_op ops[] = {op_create("/m/x-", "", DV_SEQUENTIAL), op_set("/m", "data", 0), op_of(DV_CHECK, "/none"),
                   op_of(DV_DELETE, "/m")};
    outcome behind;
    ask_multi(c, &o, ops, 4);
    ask_op(c, &behind, op_create("/m/y-", "", DV_SEQUENTIAL), NULL); /* judged before the multi is applied */
    assert_int_equal(await(&o), DIVVY_ENOENT);
    assert_int_equal(o.errors[0], DIVVY_EROLLEDBACK);
    assert_int_equal(o.errors[1], DIVVY_EROLLEDBACK);
    assert_int_equal(o.errors[2], DIVVY_ENOENT);
    assert_int_equal(o.errors[3], DIVVY_EROLLEDBACK);
    assert_int_equal(await(&behind), 0);
    assert_string_equal(behind.path, "/m/y-0000000000");
    assert_int_equal(do_op(c, &o, op_of(DV_GET, "/m")), 0);
    assert_int_equal(o.stat.version, 0);
    assert_int_equal(o.stat.children, 1);
}

static divvy_client *open_as(const char *auth, int acl) {
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.auth_scheme = auth ? "digest" : NULL;
    config.auth = auth;
    config.acl = acl;
    return open_client_with(e, config, -1);
}

/* Access lists: the creator may do anything, others read what is readable, and with 3.8 anybody may see that a node
 * exists. */
TEST(test_access) {
    divvy_client *owner = open_as("anna:secret", DIVVY_ACL_CREATOR), *same = open_as("anna:secret", DIVVY_ACL_AUTO);
    divvy_client *shows = open_as("bert:secret", DIVVY_ACL_READABLE);
    assert_int_equal(do_create(owner, "/hers", DV_PERSISTENT), 0);
    assert_int_equal(do_create(owner, "/hers/child", DV_PERSISTENT), 0);
    assert_int_equal(do_create(shows, "/his", DV_PERSISTENT), 0);
    assert_int_equal(do_op(c, &o, op_of(DV_GET, "/hers")), DIVVY_EACCES);
    assert_int_equal(do_op(c, &o, op_of(DV_CHILDREN, "/hers")), DIVVY_EACCES);
    assert_int_equal(do_op(c, &o, op_of(DV_EXISTS, "/hers")), 0);
    assert_int_equal(do_op(c, &o, op_set("/hers", "x", -1)), DIVVY_EACCES);
    assert_int_equal(do_create(c, "/hers/mine", DV_PERSISTENT), DIVVY_EACCES);
    assert_int_equal(do_op(c, &o, op_of(DV_DELETE, "/hers/child")), DIVVY_EACCES);
    assert_int_equal(do_op(c, &o, op_of(DV_DELETE, "/hers/none")), DIVVY_EACCES); /* not even that it is not there */
    assert_int_equal(do_op(c, &o, op_of(DV_DELETE, "/hers/none/x")), DIVVY_ENOENT);
    assert_int_equal(do_op(c, &o, op_of(DV_GET, "/his")), 0);
    assert_int_equal(do_op(c, &o, op_set("/his", "x", -1)), DIVVY_EACCES);
    assert_int_equal(do_op(shows, &o, op_set("/hers", "x", -1)), DIVVY_EACCES);
    assert_int_equal(do_op(same, &o, op_set("/hers", "x", -1)), 0);
    assert_int_equal(do_op(same, &o, op_of(DV_DELETE, "/hers/child")), 0);
    dv_op checks[] = {op_of(DV_CHECK, "/his"), op_of(DV_CHECK, "/hers")};
    ask_multi(c, &o, checks, 2);
    assert_int_equal(await(&o), DIVVY_EACCES);
    assert_int_equal(o.errors[1], DIVVY_EACCES);
    assert_int_equal(do_op(c, &o, op_of(DV_DELETE, "/hers")), 0); /* that is its parent's matter */
    divvy_client_close(owner);
    divvy_client_close(same);
    divvy_client_close(shows);
}

/* ZooKeeper 3.9 does not tell everybody that a node exists. A missing one is no secret, and can be watched. */
TEST(test_exists_of_release) {
    static const int releases[] = {0, DIVVY_TESTING_3_8, DIVVY_TESTING_3_9, DIVVY_TESTING_3_9_6};
    for (size_t i = 0; i < sizeof releases / sizeof *releases; i++) {
        tear_down(state);
        divvy_testing_config config = DIVVY_TESTING_CONFIG_INIT;
        assert_int_equal(config.release, DIVVY_TESTING_3_8);
        config.release = releases[i];
        config.servers = 1; /* Nobody reads what is behind. */
        e = open_ensemble(&config);
        c = open_client(e, 10000, -1);
        divvy_client *owner = open_as("anna:secret", DIVVY_ACL_CREATOR);
        divvy_client *shows = open_as("bert:secret", DIVVY_ACL_READABLE);
        static seen_watch refused, missing; /* closing the client looks at those that were not fired */
        watch_init(e, &refused);
        watch_init(e, &missing);
        assert_int_equal(do_create(owner, "/hers", DV_PERSISTENT), 0);
        assert_int_equal(do_create(shows, "/his", DV_PERSISTENT), 0);
        assert_int_equal(do_op(owner, &o, op_of(DV_EXISTS, "/hers")), 0);
        assert_int_equal(do_op(c, &o, op_of(DV_EXISTS, "/his")), 0);
        ask_op(c, &o, op_of(DV_EXISTS, "/hers"), &refused);
        bool is_secret = releases[i] >= DIVVY_TESTING_3_9;
        assert_int_equal(await(&o), is_secret ? DIVVY_EACCES : 0);
        assert_int_equal(refused.watch.link != NULL, !is_secret);
        ask_op(c, &o, op_of(DV_EXISTS, "/none"), &missing);
        assert_int_equal(await(&o), DIVVY_ENOENT);
        assert_int_equal(do_create(shows, "/none", DV_PERSISTENT), 0);
        divvy_testing_run(e, 100);
        assert_int_equal(missing.fired, 1);
        divvy_client_close(owner);
        divvy_client_close(shows);
    }
}

/* A client that was away is told what it has missed of a node that is hidden from it, but not by ZooKeeper 3.9.6. */
TEST(test_missed_of_release) {
    static const int releases[] = {DIVVY_TESTING_3_8, DIVVY_TESTING_3_9, DIVVY_TESTING_3_9_6};
    for (size_t i = 0; i < sizeof releases / sizeof *releases; i++) {
        tear_down(state);
        divvy_testing_config config = DIVVY_TESTING_CONFIG_INIT;
        config.release = releases[i];
        config.servers = 1;
        e = open_ensemble(&config);
        c = open_client(e, 10000, -1);
        divvy_client *owner = open_as("anna:secret", DIVVY_ACL_CREATOR);
        static const char *const paths[] = {"/created", "/changed", "/children", "/shown"};
        static const dv_kind kinds[] = {DV_EXISTS, DV_GET, DV_CHILDREN, DV_EXISTS};
        static seen_watch seen[4];
        assert_int_equal(do_create(c, "/changed", DV_PERSISTENT), 0);
        assert_int_equal(do_create(c, "/children", DV_PERSISTENT), 0);
        for (size_t k = 0; k < 4; k++) {
            watch_init(e, &seen[k]);
            ask_op(c, &o, op_of(kinds[k], paths[k]), &seen[k]);
            assert_int_equal(await(&o), kinds[k] == DV_EXISTS ? DIVVY_ENOENT : 0);
        }
        assert_int_equal(divvy_testing_link_client(e, c, DIVVY_TESTING_LINK_DOWN), 0);
        assert_int_equal(do_op(owner, &o, op_of(DV_DELETE, "/changed")), 0);
        assert_int_equal(do_op(owner, &o, op_of(DV_DELETE, "/children")), 0);
        for (size_t k = 0; k < 3; k++) assert_int_equal(do_create(owner, paths[k], DV_PERSISTENT), 0);
        assert_int_equal(divvy_testing_put(e, "/shown", NULL, 0, DIVVY_TESTING_PERSISTENT), 0);
        assert_int_equal(divvy_testing_disconnect(e, c, DIVVY_TESTING_APPLIED, 0), 0);
        assert_int_equal(divvy_testing_link_client(e, c, DIVVY_TESTING_LINK_UP), 0);
        divvy_testing_run(e, 2000);
        assert_int_equal(divvy_client_state(c), DIVVY_CONNECTED);
        for (size_t k = 0; k < 3; k++) assert_int_equal(seen[k].fired, releases[i] < DIVVY_TESTING_3_9_6);
        assert_int_equal(seen[3].fired, 1);
        divvy_client_close(owner);
    }
}

/* Refused credentials end the client. */
TEST(test_refused_credentials) {
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.auth_scheme = "digest";
    config.auth = "anna:wrong";
    config.manual = 1;
    divvy_client *refused;
    assert_int_equal(divvy_testing_client_open(&refused, e, &config), 0);
    divvy_testing_refuse_auth(e, refused, 1);
    divvy_testing_run(e, 1000);
    assert_int_equal(divvy_client_state(refused), DIVVY_AUTH_FAILED);
    divvy_client_close(refused);
}

/* A request beyond the seam's limit is not sent; one beyond a server's limit ends the connection. */
TEST(test_sizes) {
    char *large = calloc(1, DV_REQUEST_BYTES_MAX + 1);
    dv_op op = {.kind = DV_CREATE, .path = "/large", .data = large, .data_bytes = DV_REQUEST_BYTES_MAX};
    assert_int_equal(do_op(c, &o, op), DIVVY_E2BIG);
    op.data_bytes = DV_REQUEST_BYTES_MAX - 200;
    assert_int_equal(do_op(c, &o, op), 0);
    assert_int_equal(o.stat.data_bytes, DV_REQUEST_BYTES_MAX - 200);
    free(large);
    dv_mem_client *client = (dv_mem_client *)(void *)c->znode;
    dv_mem_request *request = dv_mem_request_new(DV_MEM_PING, client->conn, 0);
    request->bytes = DV_MEM_REQUEST_BYTES_MAX + 1;
    uint64_t connects = client->stats.connects;
    dv_mem_client_send(client, request);
    divvy_testing_run(e, 1000);
    assert_int_equal(client->stats.connects, connects + 1);
}

/* An administrator's nodes, and containers, which go a minute after their last child, but never before the first. */
TEST(test_containers) {
    assert_int_equal(divvy_testing_put(e, "/box", "", 0, DIVVY_TESTING_CONTAINER), 0);
    assert_int_equal(divvy_testing_put(e, "/unused", "", 0, DIVVY_TESTING_CONTAINER), 0);
    assert_int_equal(divvy_testing_put(e, "/none/x", "", 0, DIVVY_TESTING_PERSISTENT), DIVVY_ENOENT);
    assert_int_equal(divvy_testing_put(e, "bad", "", 0, DIVVY_TESTING_PERSISTENT), DIVVY_EINVAL);
    assert_int_equal(do_create(c, "/box/child", DV_EPHEMERAL), 0);
    divvy_testing_run(e, 130000);
    assert_true(divvy_testing_exists(e, "/box"));
    assert_int_equal(divvy_testing_remove(e, "/box"), DIVVY_ENOTEMPTY);
    assert_int_equal(divvy_testing_remove(e, "/none"), DIVVY_ENOENT);
    assert_int_equal(divvy_testing_remove(e, "/box/child"), 0);
    divvy_testing_run(e, 61000);
    assert_false(divvy_testing_exists(e, "/box"));
    assert_true(divvy_testing_exists(e, "/unused"));
    assert_int_equal(divvy_testing_put(e, "/unused", "data", 4, DIVVY_TESTING_PERSISTENT), 0);
    divvy_testing_run(e, 10);
    assert_int_equal(do_op(c, &o, op_of(DV_GET, "/unused")), 0);
    assert_string_equal(o.data, "data");
}

/* A chroot is made, and stands before the paths of recipes. */
TEST(test_chroot) {
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.hosts = "/a/b";
    divvy_client *below = open_client_with(e, config, -1);
    assert_true(divvy_testing_exists(e, "/a/b"));
    char *path = dv_client_path(below, "/x");
    assert_string_equal(path, "/a/b/x");
    free(path);
    divvy_client_close(below);
    config.hosts = "/a//b";
    config.manual = 1;
    assert_int_equal(divvy_testing_client_open(&below, e, &config), DIVVY_EINVAL);
}

/* An impossible configuration is refused when an ensemble, or a client on it, is made. */
TEST(test_configs) {
    divvy_testing_config config = DIVVY_TESTING_CONFIG_INIT;
    divvy_testing_ensemble *none;
    config.servers = 10;
    assert_int_equal(divvy_testing_ensemble_create(&none, &config), DIVVY_EINVAL);
    assert_null(none);
    config.servers = 0;
    assert_int_equal(divvy_testing_ensemble_create(&none, &config), DIVVY_EINVAL);
    config.servers = 3;
    static const int unknown[] = {-1, 1, 309, 30700, 30901, 31000};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        config.release = unknown[i];
        assert_int_equal(divvy_testing_ensemble_create(&none, &config), DIVVY_EINVAL);
        assert_null(none);
    }
    config.release = DIVVY_TESTING_3_9;
    config.client_delay_min_ms = 2;
    assert_int_equal(divvy_testing_ensemble_create(&none, &config), DIVVY_EINVAL);
    assert_int_equal(divvy_testing_ensemble_create(NULL, NULL), DIVVY_EINVAL);
    divvy_client_config threaded = DIVVY_CLIENT_CONFIG_INIT;
    divvy_client *client;
    assert_int_equal(divvy_testing_client_open(&client, e, &threaded), DIVVY_EINVAL);
    assert_null(client);
    divvy_testing_ensemble_destroy(NULL);
}

TEST_EACH(set_up, tear_down);
