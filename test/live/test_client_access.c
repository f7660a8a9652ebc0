/* Tests of access lists and of the chroot. SPDX-License-Identifier: Apache-2.0
 *
 * Shows real access lists and credentials, over TLS too, and a chroot that several clients make at once. */
#include "client_session_fixture.h"

/* --- who may do what -------------------------------------------------------------------------------------------- */

static divvy_client_config with_credentials(witness *w, const char *list, const char *auth) {
    divvy_client_config config = witness_config(w, list);
    config.auth_scheme = "digest";
    config.auth = auth;
    return config;
}

/* Over TLS, gives the client a certificate of another identity than the one it has by the environment. */
static void with_another_certificate(divvy_client_config *config) {
    static char certificate[512], key[512];
    const char *folder = getenv("DIVVY_TEST_TLS");
    if (!folder) return;
    snprintf(certificate, sizeof certificate, "%s/next.pem", folder);
    snprintf(key, sizeof key, "%s/next.key", folder);
    config->tls_ca_file = getenv("DIVVY_TLS_CA_FILE");
    config->tls_certificate_file = certificate;
    config->tls_key_file = key;
}

/* All that a client creates, chroot, parents, party, locks, singly and in multis, has the access list that was
 * chosen. */
TEST(test_access_lists) {
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
    /* A new session, as the old one may not have outlived what was done to the server before. */
    dv_test_zk_close(truth);
    open_truth();
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
        divvy_partitioner_config p_config = dv_test_partitioner_config("/pool", items, 3, 0);
        assert_int_equal(divvy_partitioner_create(&p, client, &p_config), 0);
        assert_int_equal(divvy_partitioner_wait_for_acquire(p, PATIENCE_MS), 0);
        check_access(root, cases[i].expected);
        divvy_partitioner_destroy(p);
        divvy_party_destroy(party);
        divvy_client_close(client);
        witness_end(&w);
    }
}

/* With other credentials than those that made the nodes (over TLS another certificate too), or none, the server
 * denies, and party and partitioner say so, naming the path. */
TEST(test_denied) {
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
        with_another_certificate(&config);
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
    assert_int_equal(dv_test_zk_count(truth, "/denied"), 1);
}

/* --- chroot ----------------------------------------------------------------------------------------------------- */

/* A chroot that is missing is made, with its parents and empty data; one that is there is left as it is; and all paths
 * stand below it, at the server and nowhere else. */
TEST(test_chroot) {
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
        assert_int_equal(dv_test_zk_count(truth, path), 1);
        assert_false(dv_test_zk_exists(truth, "/in", NULL));
        divvy_party_destroy(party);
        divvy_client_close(client);
        witness_end(&w);
    }
}

/* Each of many clients that come at once to a missing chroot gets it. */
TEST(test_chroot_race) {
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
TEST(test_chroot_denied) {
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
    assert_int_equal(divvy_client_state(client), DIVVY_AUTH_FAILED);
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

TEST_GROUP(set_up_trusted, stop_server);
