/* What becomes of a session, and what its clients may do. SPDX-License-Identifier: Apache-2.0 */
#include "test_client_witness.h"

#include "lib/expire.h"
#include "lib/proxy.h"
#include "lib/server.h"
#include "lib/zk.h"

#define TICK_MS 100

static dv_test_server *server;
static dv_test_zk *truth;

static const char *hosts(void) {
    return dv_test_server_connect(server);
}

static divvy_party *join(divvy_client *client, const char *path) {
    divvy_party *party;
    divvy_strings *members;
    assert_int_equal(divvy_party_join(&party, client, path, "me", DIVVY_PARTY), 0);
    assert_int_equal(divvy_party_members(party, &members, PATIENCE_MS), 0);
    divvy_strings_free(members);
    return party;
}

/* --- loss ------------------------------------------------------------------------------------------------------- */

/* A link that breaks and comes back in time costs nothing: the same session, its node still there, and the states told
 * in order; a link that stays away ends it, with no server having said so, a third of the timeout later. */
static void test_suspended_connected_lost(void **state) {
    (void)state;
    enum { TIMEOUT_MS = 9000 };
    witness w;
    divvy_strings *members;
    dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(server, 1));
    divvy_client_config config = witness_config(&w, dv_test_proxy_address(proxy));
    config.session_timeout_ms = TIMEOUT_MS;
    divvy_client *client = open_connected(&config);
    divvy_party *party = join(client, "/sequence");
    int64_t session = divvy_client_session_id(client);
    dv_test_proxy_cut(proxy);
    assert_true(DV_WAIT(witness_told(&w, "CS"), PATIENCE_MS));
    assert_in_range(divvy_client_time_left_ms(client), 0, TIMEOUT_MS / 3);
    dv_test_proxy_restore(proxy);
    assert_true(DV_WAIT(witness_told(&w, "CSC"), PATIENCE_MS));
    assert_int_equal(divvy_client_session_id(client), session);
    assert_int_equal(divvy_client_time_left_ms(client), TIMEOUT_MS / 3);
    assert_int_equal(divvy_party_members(party, &members, PATIENCE_MS), 0);
    assert_int_equal(divvy_strings_count(members), 1);
    divvy_strings_free(members);

    dv_test_proxy_cut(proxy);
    int64_t last_ms = TIMEOUT_MS;
    while (divvy_client_state(client) != DIVVY_LOST) { /* The time left only shrinks. */
        bool is_down = divvy_client_state(client) == DIVVY_SUSPENDED;
        int64_t left_ms = divvy_client_time_left_ms(client);
        assert_true(left_ms <= last_ms);
        if (is_down) last_ms = left_ms;
        dv_test_sleep_ms(5);
    }
    assert_int_equal(divvy_client_time_left_ms(client), 0);
    assert_true(DV_WAIT(witness_told(&w, "CSCSL"), PATIENCE_MS));
    int64_t held_ms = w.state_at_ms[4] - w.state_at_ms[3];
    assert_in_range(held_ms, TIMEOUT_MS / 3 - 200, TIMEOUT_MS / 3 + 10000); /* no sooner; callbacks may come late */
    assert_true(witness_logged(&w, "no server could be reached"));

    dv_test_proxy_restore(proxy); /* Final: nothing revives it. */
    ASSERT_FAILS(divvy_client_wait_connected(client, 500), DIVVY_ELOST, client, "deadline");
    ASSERT_FAILS(divvy_party_members(party, &members, 500), DIVVY_ELOST, client, "/sequence");
    ASSERT_FAILS(divvy_party_leave(party, 500), DIVVY_ELOST, client, "/sequence");
    divvy_party *another;
    ASSERT_FAILS(divvy_party_join(&another, client, "/sequence", NULL, DIVVY_PARTY), DIVVY_ELOST, client, "");
    assert_null(another);
    divvy_partitioner *p;
    divvy_partitioner_config p_config = DIVVY_PARTITIONER_CONFIG_INIT;
    ASSERT_FAILS(divvy_partitioner_create(&p, client, &p_config), DIVVY_ELOST, client, "");
    assert_null(p);
    size_t left = 1;
    assert_true(DV_WAIT((dv_test_zk_free_names(dv_test_zk_children(truth, "/sequence", &left)), left == 0),
                        PATIENCE_MS)); /* The server expires what the client has given up. */
    divvy_party_destroy(party);
    assert_true(DV_WAIT(witness_told(&w, "CSCSL"), PATIENCE_MS));
    divvy_client_close(client);
    witness_end(&w);
    dv_test_proxy_stop(proxy);
}

/* A server that falls silent, with the link up, is noticed too: suspended, then lost, without a word of any server. */
static void test_silence_is_loss(void **state) {
    (void)state;
    enum { TIMEOUT_MS = 3000 };
    witness w;
    dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(server, 1));
    divvy_client_config config = witness_config(&w, dv_test_proxy_address(proxy));
    config.session_timeout_ms = TIMEOUT_MS;
    divvy_client *client = open_connected(&config);
    divvy_party *party = join(client, "/silence");
    int64_t frozen_ms = dv_test_now_ms();
    dv_test_proxy_freeze(proxy);
    assert_true(DV_WAIT(divvy_client_state(client) == DIVVY_LOST, PATIENCE_MS));
    assert_int_equal(divvy_client_time_left_ms(client), 0);
    assert_true(DV_WAIT(witness_told(&w, "CSL"), PATIENCE_MS));
    assert_true(dv_test_now_ms() - frozen_ms >= TIMEOUT_MS / 3);
    divvy_party_destroy(party);
    divvy_client_close(client);
    witness_end(&w);
    dv_test_proxy_stop(proxy);
}

/* An expiry that a server tells of is a loss too, with that reason. */
static void test_expired_by_the_server(void **state) {
    (void)state;
    witness w;
    divvy_strings *members;
    dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(server, 1));
    divvy_client_config config = witness_config(&w, dv_test_proxy_address(proxy));
    config.session_timeout_ms = 60000;
    divvy_client *client = open_connected(&config);
    divvy_party *party = join(client, "/expired");
    dv_test_proxy_cut(proxy);
    assert_true(dv_test_expire(hosts(), divvy_client_session_id(client), NULL));
    dv_test_proxy_restore(proxy);
    assert_true(DV_WAIT(divvy_client_state(client) == DIVVY_LOST, PATIENCE_MS));
    assert_int_equal(divvy_client_time_left_ms(client), 0);
    ASSERT_FAILS(divvy_client_wait_connected(client, 0), DIVVY_ELOST, client, "expired");
    ASSERT_FAILS(divvy_party_members(party, &members, 0), DIVVY_ELOST, client, "/expired");
    divvy_party_destroy(party);
    assert_true(DV_WAIT(witness_told(&w, "CSL"), PATIENCE_MS)); /* before the close, which drops what is queued */
    divvy_client_close(client);
    assert_non_null(strstr(w.log, "the servers have expired it"));
    witness_end(&w);
    dv_test_proxy_stop(proxy);
}

/* A server that is killed and started again with its data serves the same session, with its node. */
static void test_restart_keeps_the_session(void **state) {
    (void)state;
    witness w;
    divvy_strings *members;
    divvy_client_config config = witness_config(&w, hosts());
    config.session_timeout_ms = 60000;
    divvy_client *client = open_connected(&config);
    divvy_party *party = join(client, "/restart");
    int64_t session = divvy_client_session_id(client);
    dv_test_server_kill(server, 1);
    assert_true(DV_WAIT(divvy_client_state(client) == DIVVY_SUSPENDED, PATIENCE_MS));
    ASSERT_FAILS(divvy_party_members(party, &members, 100), DIVVY_ETIMEDOUT, client, "/restart");
    ASSERT_FAILS(divvy_client_wait_connected(client, 100), DIVVY_ETIMEDOUT, client, hosts());
    dv_test_server_restart(server, 1);
    assert_int_equal(divvy_client_wait_connected(client, PATIENCE_MS), 0);
    assert_int_equal(divvy_client_session_id(client), session);
    assert_int_equal(divvy_party_members(party, &members, PATIENCE_MS), 0);
    assert_int_equal(divvy_strings_count(members), 1);
    divvy_strings_free(members);
    divvy_party_destroy(party);
    assert_true(DV_WAIT(witness_told(&w, "CSC"), PATIENCE_MS));
    divvy_client_close(client);
    witness_end(&w);
}

/* --- who may do what -------------------------------------------------------------------------------------------- */

/* "scheme:permissions " of each entry, and in the world's its id. */
static const char *access_of(const char *path) {
    static char text[256];
    struct ACL_vector list;
    struct Stat stat;
    text[0] = '\0';
    assert_int_equal(zoo_get_acl(dv_test_zk_handle(truth), path, &list, &stat), ZOK);
    for (int i = 0; i < list.count; i++) {
        const struct ACL *entry = &list.data[i];
        bool world = strcmp(entry->id.scheme, "world") == 0;
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s%s:%d ", entry->id.scheme, world ? ":" : "",
                 world ? entry->id.id : "", entry->perms);
    }
    deallocate_ACL_vector(&list);
    return text;
}

static void check_access(const char *path, const char *expected) {
    assert_string_equal(access_of(path), expected);
    size_t count;
    char **names = dv_test_zk_children(truth, path, &count);
    for (size_t i = 0; i < count; i++) {
        char child[512];
        snprintf(child, sizeof child, "%s/%s", path, names[i]);
        check_access(child, expected);
    }
    dv_test_zk_free_names(names);
}

static divvy_client_config with_credentials(witness *w, const char *list, const char *auth) {
    divvy_client_config config = witness_config(w, list);
    config.auth_scheme = "digest";
    config.auth = auth;
    return config;
}

/* Whatever a client creates, chroot, parents, party, locks, singly and in multis, has the access list that was
 * chosen. */
static void test_access_lists(void **state) {
    (void)state;
    static const char *const items[] = {"a", "b", "c"};
    static const struct {
        int acl;
        bool credentials;
        const char *expected;
    } cases[] = {
        {DIVVY_ACL_AUTO, false, "world:anyone:31 "},
        {DIVVY_ACL_AUTO, true, "digest:31 "},
        {DIVVY_ACL_OPEN, true, "world:anyone:31 "},
        {DIVVY_ACL_CREATOR, true, "digest:31 "},
        {DIVVY_ACL_READABLE, true, "digest:31 world:anyone:1 "},
    };
    /* A new session, as the old one may not have outlived what was done to the server before. It may look into what only
     * the creator may read. */
    dv_test_zk_close(truth);
    truth = dv_test_zk_open(hosts());
    assert_int_equal(zoo_add_auth(dv_test_zk_handle(truth), "digest", "u:sesame", 8, NULL, NULL), ZOK);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        witness w;
        char list[128], root[64];
        divvy_partitioner *p;
        snprintf(root, sizeof root, "/acl-%zu", i);
        snprintf(list, sizeof list, "%s%s/sub", hosts(), root);
        divvy_client_config config = witness_config(&w, list);
        if (cases[i].credentials) config = with_credentials(&w, list, "u:sesame");
        config.acl = cases[i].acl;
        divvy_client *client = open_connected(&config);
        divvy_party *party = join(client, "/party/of/mine");
        divvy_partitioner_config p_config = DIVVY_PARTITIONER_CONFIG_INIT;
        p_config.path = "/pool";
        p_config.items = items;
        p_config.item_count = 3;
        p_config.time_boundary_ms = 0;
        assert_int_equal(divvy_partitioner_create(&p, client, &p_config), 0);
        assert_int_equal(divvy_partitioner_wait_for_acquire(p, PATIENCE_MS), 0);
        check_access(root, cases[i].expected);
        divvy_partitioner_destroy(p);
        divvy_party_destroy(party);
        divvy_client_close(client);
        witness_end(&w);
    }
}

/* With other credentials than those that made the nodes, or none, the server denies, and party and partitioner say so,
 * naming the path. */
static void test_denied(void **state) {
    (void)state;
    static const char *const items[] = {"a"};
    static const char *const auths[] = {"u:wrong", "x:sesame", NULL};
    witness w;
    divvy_client_config config = with_credentials(&w, hosts(), "u:sesame");
    divvy_client *client = open_connected(&config);
    divvy_party *party = join(client, "/denied/party");
    divvy_party_destroy(party);
    divvy_client_close(client);
    witness_end(&w);
    for (size_t i = 0; i < sizeof auths / sizeof auths[0]; i++) {
        divvy_strings *members;
        divvy_partitioner *p;
        char message[256];
        config = auths[i] ? with_credentials(&w, hosts(), auths[i]) : witness_config(&w, hosts());
        client = open_connected(&config);
        for (int kind = DIVVY_PARTY; kind <= DIVVY_SHALLOW_PARTY; kind++) {
            for (int parent = 0; parent <= 1; parent++) {
                const char *path = parent ? "/denied/other/deep" : "/denied/party";
                assert_int_equal(divvy_party_join(&party, client, path, "me", kind), 0);
                ASSERT_FAILS(divvy_party_members(party, &members, PATIENCE_MS), DIVVY_EACCES, client, path);
                assert_null(members);
                assert_int_equal(divvy_party_leave(party, PATIENCE_MS), 0);
                divvy_party_destroy(party);
            }
        }
        divvy_partitioner_config p_config = DIVVY_PARTITIONER_CONFIG_INIT;
        p_config.path = "/denied/pool";
        p_config.items = items;
        p_config.item_count = 1;
        assert_int_equal(divvy_partitioner_create(&p, client, &p_config), 0);
        ASSERT_FAILS(divvy_partitioner_wait_for_acquire(p, PATIENCE_MS), DIVVY_ESTATE, client, "/denied/pool");
        assert_int_equal(divvy_partitioner_state(p), DIVVY_FAILURE);
        assert_int_equal(divvy_partitioner_failure(p, message, sizeof message), DIVVY_EACCES);
        assert_non_null(strstr(message, "/denied/pool"));
        divvy_partitioner_destroy(p);
        assert_int_equal(divvy_client_state(client), DIVVY_CONNECTED); /* Nothing else is harmed. */
        divvy_client_close(client);
        assert_non_null(strstr(w.log, "/denied/"));
        assert_null(strstr(w.log, "wrong"));
        witness_end(&w);
    }
    size_t count;
    dv_test_zk_free_names(dv_test_zk_children(truth, "/denied", &count));
    assert_int_equal(count, 1);
}

/* --- chroot ----------------------------------------------------------------------------------------------------- */

/* A chroot that is missing is made, with its parents and empty data; one that is there is left as it is; and all paths
 * stand below it, at the server and nowhere else. */
static void test_chroot(void **state) {
    (void)state;
    static const char *const chroots[] = {"/chroot", "/chroot/nested/twice", "/chroot", "/chroot/nested"};
    for (size_t i = 0; i < sizeof chroots / sizeof chroots[0]; i++) {
        witness w;
        char list[128], path[128];
        int bytes = -2;
        snprintf(list, sizeof list, "%s%s", hosts(), chroots[i]);
        divvy_client_config config = witness_config(&w, list);
        divvy_client *client = open_connected(&config);
        free(dv_test_zk_get(truth, chroots[i], &bytes, NULL));
        assert_int_equal(bytes, 0);
        divvy_party *party = join(client, "/in/it");
        snprintf(path, sizeof path, "%s/in/it", chroots[i]);
        size_t count;
        dv_test_zk_free_names(dv_test_zk_children(truth, path, &count));
        assert_int_equal(count, 1);
        assert_false(dv_test_zk_exists(truth, "/in", NULL));
        divvy_party_destroy(party);
        divvy_client_close(client);
        witness_end(&w);
    }
}

/* Each of many clients that come at once to a missing chroot gets it. */
static void test_chroot_race(void **state) {
    (void)state;
    enum { CLIENTS = 8 };
    static witness w[CLIENTS];
    divvy_client *clients[CLIENTS];
    char list[128];
    snprintf(list, sizeof list, "%s/race/to/the/root", hosts());
    for (int i = 0; i < CLIENTS; i++) {
        divvy_client_config config = witness_config(&w[i], list);
        clients[i] = open_with(&config);
    }
    for (int i = 0; i < CLIENTS; i++) assert_int_equal(divvy_client_wait_connected(clients[i], PATIENCE_MS), 0);
    for (int i = 0; i < CLIENTS; i++) {
        divvy_client_close(clients[i]);
        witness_end(&w[i]);
    }
}

/* A chroot that may not be made: wait_connected says DIVVY_EACCES and names it, at once, and so do objects that were
 * made before. */
static void test_chroot_denied(void **state) {
    (void)state;
    static const char *const items[] = {"a"};
    witness w;
    char list[128], message[256];
    divvy_party *party;
    divvy_partitioner *p;
    divvy_strings *members;
    assert_int_equal(zoo_create(dv_test_zk_handle(truth), "/closed", NULL, -1, &ZOO_READ_ACL_UNSAFE, 0, NULL, 0), ZOK);
    snprintf(list, sizeof list, "%s/closed/to/us", hosts());
    divvy_client_config config = witness_config(&w, list);
    divvy_client *client = open_with(&config);
    divvy_partitioner_config p_config = DIVVY_PARTITIONER_CONFIG_INIT;
    p_config.path = "/pool";
    p_config.items = items;
    p_config.item_count = 1;
    assert_int_equal(divvy_party_join(&party, client, "/party", "me", DIVVY_PARTY), 0);
    assert_int_equal(divvy_partitioner_create(&p, client, &p_config), 0);
    ASSERT_FAILS(divvy_client_wait_connected(client, PATIENCE_MS), DIVVY_EACCES, client, "/closed/to/us");
    ASSERT_FAILS(divvy_client_wait_connected(client, -1), DIVVY_EACCES, client, "/closed/to/us");
    assert_int_equal(divvy_party_members(party, &members, PATIENCE_MS), DIVVY_EACCES);
    assert_int_equal(divvy_partitioner_wait_for_acquire(p, PATIENCE_MS), DIVVY_ESTATE);
    assert_int_equal(divvy_partitioner_failure(p, message, sizeof message), DIVVY_EACCES);
    assert_non_null(strstr(message, "/closed/to/us"));
    divvy_partitioner_destroy(p);
    divvy_party_destroy(party);
    divvy_client_close(client);
    witness_end(&w);
    /* One that is there already needs no right to make anything. */
    snprintf(list, sizeof list, "%s/closed", hosts());
    config = witness_config(&w, list);
    client = open_connected(&config);
    divvy_client_close(client);
    witness_end(&w);
}

static int set_up(void **state) {
    (void)state;
    server = dv_test_server_start(1, TICK_MS);
    truth = dv_test_zk_open(hosts());
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    dv_test_zk_close(truth);
    dv_test_server_stop(server);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_suspended_connected_lost),
        cmocka_unit_test(test_silence_is_loss),
        cmocka_unit_test(test_expired_by_the_server),
        cmocka_unit_test(test_restart_keeps_the_session),
        cmocka_unit_test(test_access_lists),
        cmocka_unit_test(test_denied),
        cmocka_unit_test(test_chroot),
        cmocka_unit_test(test_chroot_race),
        cmocka_unit_test(test_chroot_denied),

    };
    return cmocka_run_group_tests_name("client_session", tests, set_up, tear_down);
}
