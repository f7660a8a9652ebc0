/* Party: kazoo's Party and ShallowParty on a real server. SPDX-License-Identifier: Apache-2.0 */
#include "party_fixture.h"

/* --- coming and going ------------------------------------------------------------------------------------------- */

/* Two members see each other, in either kind, until one leaves; it leaves once however often it is told to. */
TEST(test_two_members) {
    for (int kind = DIVVY_PARTY; kind <= DIVVY_SHALLOW_PARTY; kind++) {
        const char *path = kind == DIVVY_PARTY ? "/party/deep" : "/party/shallow";
        member a, b;
        divvy_strings *members;
        enter(&a, path, "a", kind);
        assert_string_equal(listed(a.party), "a ");
        enter(&b, path, "b", kind);
        assert_string_equal(listed(b.party), "a b ");
        assert_string_equal(listed(a.party), "a b ");
        assert_int_equal(divvy_party_leave(a.party, PATIENCE_MS), 0);
        assert_string_equal(listed(b.party), "b ");
        assert_int_equal(nodes(path), 1);
        assert_int_equal(divvy_party_leave(a.party, PATIENCE_MS), 0);
        assert_int_equal(divvy_party_leave(a.party, 0), 0);
        ASSERT_FAILS(divvy_party_members(a.party, &members, PATIENCE_MS), DIVVY_ESTATE, a.client, path);
        assert_null(members);
        leave(&a);
        leave(&b);
        assert_int_equal(nodes(path), 0);
        int bytes;
        free(dv_test_zk_get(truth, path, &bytes, NULL));
        assert_int_equal(bytes, 0); /* parents have empty data, not none, on which kazoo raises */
    }
}

/* Equal identifiers are all listed, as are those of a member without one, each with a name of its own. */
TEST(test_equal_and_default_identifiers) {
    member a, b, c, d;
    enter(&a, "/party/equal", "same", DIVVY_PARTY);
    enter(&b, "/party/equal", "same", DIVVY_PARTY);
    assert_string_equal(listed(a.party)[0] ? listed(b.party) : "", "same same ");
    leave(&a);
    leave(&b);
    enter(&c, "/party/default", NULL, DIVVY_SHALLOW_PARTY);
    enter(&d, "/party/default", NULL, DIVVY_SHALLOW_PARTY);
    assert_true(strlen(listed(c.party)) > 1);
    divvy_strings *members;
    assert_true(DV_WAIT(nodes("/party/default") == 2, PATIENCE_MS));
    assert_int_equal(divvy_party_members(d.party, &members, PATIENCE_MS), 0);
    assert_int_equal(divvy_strings_count(members), 2);
    assert_string_not_equal(divvy_strings_get(members, 0), divvy_strings_get(members, 1));
    divvy_strings_free(members);
    leave(&c);
    leave(&d);
}

/* Several parties on one client, on one path and on others, are told apart. */
TEST(test_several_on_one_client) {
    enum { PARTIES = 6 };
    witness w;
    divvy_party *parties[PARTIES];
    divvy_client_config config = witness_config(&w, hosts());
    divvy_client *client = open_connected(&config);
    for (int i = 0; i < PARTIES; i++) {
        char identifier[8];
        sprintf(identifier, "m%d", i);
        assert_int_equal(divvy_party_join(&parties[i], client, "/party/several", identifier, i % 2), 0);
        memset(identifier, 'x', sizeof identifier); /* copied */
    }
    for (int i = 0; i < PARTIES; i++) assert_non_null(listed(parties[i]));
    assert_int_equal(nodes("/party/several"), PARTIES);
    for (int i = 0; i < PARTIES; i++) {
        int j = (i * 5 + 3) % PARTIES; /* in another order than they came */
        divvy_party_destroy(parties[j]);
        assert_true(DV_WAIT(nodes("/party/several") == (size_t)(PARTIES - 1 - i), PATIENCE_MS));
    }
    divvy_client_close(client);
    witness_end(&w);
}

/* Both kinds of party write what kazoo writes: the node's name, its data, and that it is ephemeral and ours. */
TEST(test_as_kazoo_writes_it) {
    member m;
    struct Stat stat;
    char path[512];
    int bytes;
    enter(&m, "/party/kazoo-deep", "host-1", DIVVY_PARTY);
    assert_string_equal(listed(m.party), "host-1 ");
    char *name = only_node("/party/kazoo-deep");
    assert_non_null(strstr(name, "__party__"));
    assert_string_equal(strstr(name, "__party__"), "__party__");
    snprintf(path, sizeof path, "/party/kazoo-deep/%s", name);
    char *data = dv_test_zk_get(truth, path, &bytes, &stat);
    assert_string_equal(data, "host-1");
    assert_int_equal(bytes, 6);
    assert_int_equal(stat.ephemeralOwner, divvy_client_session_id(m.client));
    free(data);
    free(name);
    leave(&m);
    enter(&m, "/party/kazoo-shallow", "host-1", DIVVY_SHALLOW_PARTY);
    assert_string_equal(listed(m.party), "host-1 ");
    name = only_node("/party/kazoo-shallow");
    assert_string_equal(strchr(name, '-'), "-host-1"); /* the first '-' ends the guid */
    snprintf(path, sizeof path, "/party/kazoo-shallow/%s", name);
    data = dv_test_zk_get(truth, path, NULL, &stat);
    assert_string_equal(data, "host-1");
    assert_int_equal(stat.ephemeralOwner, divvy_client_session_id(m.client));
    free(data);
    free(name);
    leave(&m);
}

/* Kazoo's members are listed: by marker and data in a Party, by name in a ShallowParty; the rest counts as kazoo
 * counts it. */
TEST(test_reads_what_kazoo_wrote) {
    member m;
    assert_int_equal(dv_test_zk_create(truth, "/party", "", 0, NULL) % ZNODEEXISTS, 0);
    assert_int_equal(dv_test_zk_create(truth, "/party/mixed", "", 0, NULL), ZOK);
    assert_int_equal(dv_test_zk_create(truth, "/party/mixed/0123__party__", "kazoo-1", ZOO_EPHEMERAL, NULL), ZOK);
    assert_int_equal(dv_test_zk_create(truth, "/party/mixed/stray", "no member", 0, NULL), ZOK);
    enter(&m, "/party/mixed", "me", DIVVY_PARTY);
    assert_string_equal(listed(m.party), "kazoo-1 me ");
    leave(&m);
    enter(&m, "/party/mixed", "me", DIVVY_SHALLOW_PARTY);
    assert_string_equal(listed(m.party), "0123__party__ me stray ");
    leave(&m);
    assert_int_equal(dv_test_zk_delete_all(truth, "/party/mixed"), ZOK);
}

/* In a Party identifiers are any bytes, and long ones; in a ShallowParty all that may stand in a node's name. */
TEST(test_identifiers) {
    static const char *const odd[] = {"with space", "-", "a/b", "..", "\xff\xfe\x01\n", "\xf0\x9f\x98\x80", "%2F"};
    static const char *const plain[] = {"with space", "-", "a-b-c", "\xc3\xa9", "50%", "x__party__"};
    char text[64];
    member m;
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        enter(&m, "/party/odd", odd[i], DIVVY_PARTY);
        snprintf(text, sizeof text, "%s ", odd[i]);
        assert_string_equal(listed(m.party), text);
        leave(&m);
    }
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++) {
        enter(&m, "/party/plain", plain[i], DIVVY_SHALLOW_PARTY);
        snprintf(text, sizeof text, "%s ", plain[i]);
        assert_string_equal(listed(m.party), text);
        leave(&m);
    }
    char *longest = calloc(1, 65537);
    memset(longest, 'i', 65536);
    divvy_strings *members;
    enter(&m, "/party/long", longest, DIVVY_PARTY);
    assert_int_equal(divvy_party_members(m.party, &members, PATIENCE_MS), 0);
    assert_string_equal(divvy_strings_get(members, 0), longest);
    divvy_strings_free(members);
    leave(&m);
    longest[512] = '\0';
    enter(&m, "/party/long", longest, DIVVY_SHALLOW_PARTY);
    assert_int_equal(divvy_party_members(m.party, &members, PATIENCE_MS), 0);
    assert_string_equal(divvy_strings_get(members, 0), longest);
    divvy_strings_free(members);
    leave(&m);
    free(longest);
}

/* --- trouble ---------------------------------------------------------------------------------------------------- */

/* Joined before there is a server, a member is made when there is one; until then its calls run out of time. */
TEST(test_before_connected) {
    member m;
    divvy_strings *members = (divvy_strings *)(void *)&m;
    dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(server, 1));
    dv_test_proxy_cut(proxy);
    enter_on(&m, dv_test_proxy_address(proxy), "/party/early", "me", DIVVY_PARTY);
    int64_t before_ms = dv_test_now_ms();
    ASSERT_FAILS(divvy_party_members(m.party, &members, GONE_MS), DIVVY_ETIMEDOUT, m.client, "/party/early");
    assert_in_range(dv_test_now_ms() - before_ms, GONE_MS, GONE_MS + PATIENCE_MS);
    assert_null(members);
    ASSERT_FAILS(divvy_party_members(m.party, &members, 0), DIVVY_ETIMEDOUT, m.client, "/party/early");
    dv_test_proxy_restore(proxy);
    assert_string_equal(listed(m.party), "me ");
    leave(&m);
    dv_test_proxy_stop(proxy);
}

/* Left before there was a server, nothing is ever made. */
TEST(test_left_before_connected) {
    member m;
    dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(server, 1));
    dv_test_proxy_cut(proxy);
    enter_on(&m, dv_test_proxy_address(proxy), "/party/never", "me", DIVVY_PARTY);
    assert_int_equal(divvy_party_leave(m.party, PATIENCE_MS), 0);
    dv_test_proxy_restore(proxy);
    assert_int_equal(divvy_client_wait_connected(m.client, PATIENCE_MS), 0);
    leave(&m);
    assert_false(dv_test_zk_exists(truth, "/party/never", NULL));
    dv_test_proxy_stop(proxy);
}

/* After the client was closed each call on its party says DIVVY_ECLOSED. */
TEST(test_after_close) {
    for (int connected = 0; connected <= 1; connected++) {
        member m;
        divvy_strings *members = (divvy_strings *)(void *)&m;
        enter(&m, "/party/closed", "me", DIVVY_PARTY);
        if (connected) assert_string_equal(listed(m.party), "me ");
        divvy_client_close(m.client);
        assert_int_equal(divvy_party_members(m.party, &members, PATIENCE_MS), DIVVY_ECLOSED);
        assert_null(members);
        assert_int_equal(divvy_party_members(m.party, &members, 0), DIVVY_ECLOSED);
        assert_int_equal(divvy_party_leave(m.party, PATIENCE_MS), DIVVY_ECLOSED);
        assert_int_equal(divvy_party_leave(m.party, 0), DIVVY_ECLOSED);
        assert_true(strlen(divvy_client_error(m.client)) > 0);
        divvy_party_destroy(m.party);
        witness_end(&m.witness);
    }
}

static void *list_for_ever(void *argument) {
    call *c = argument;
    divvy_strings *members;
    atomic_store(&c->begun, 1);
    int result;
    do {
        result = divvy_party_members(c->party, &members, -1);
        divvy_strings_free(members);
    } while (result == 0);
    atomic_store(&c->result, result);
    return NULL;
}

/* A call that waits without end is ended by close and by leaving, each with its own error. */
TEST(test_endings_end_waiting_calls) {
    static const int expected[] = {DIVVY_ECLOSED, DIVVY_ESTATE};
    for (int ending = 0; ending < 2; ending++) {
        member m;
        pthread_t thread;
        enter(&m, "/party/ended", "me", DIVVY_PARTY);
        call c = {.party = m.party};
        assert_int_equal(pthread_create(&thread, NULL, list_for_ever, &c), 0);
        assert_true(DV_WAIT(atomic_load(&c.begun), PATIENCE_MS));
        if (ending == 1) assert_int_equal(divvy_party_leave(m.party, PATIENCE_MS), 0);
        else divvy_client_close(m.client);
        pthread_join(thread, NULL);
        assert_int_equal(atomic_load(&c.result), expected[ending]);
        divvy_party_destroy(m.party);
        if (ending) divvy_client_close(m.client);
        witness_end(&m.witness);
    }
}

/* --- bad input -------------------------------------------------------------------------------------------------- */

/* A wrong call is refused with the reason, and nothing is made. */
TEST(test_bad_arguments) {
    static const char *const paths[] = {
        NULL,     "",      "relative", "/",     "/a/",        "//",           "/a//b",
        "/a/./b", "/a/..", "/a\x01",   "/\xff", "/zookeeper", "/zookeeper/a", "/\xf0\x9f\x98\x80"};
    static const char *const names[] = {"", "a/b", ".\x01", "\xff", "\xf0\x9f\x98\x80", "\x7f", "%41"};
    witness w;
    divvy_party *party;
    divvy_strings *members;
    char *long_name = calloc(1, 65538);
    memset(long_name, 'x', 65537);
    divvy_client_config config = witness_config(&w, hosts());
    divvy_client *client = open_connected(&config);
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        if (paths[i] && strcmp(paths[i], "/") == 0) continue; /* the root is a path */
        party = (divvy_party *)(void *)&w;
        ASSERT_FAILS(divvy_party_join(&party, client, paths[i], "me", DIVVY_PARTY), DIVVY_EINVAL, client, "path");
        assert_null(party);
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        ASSERT_FAILS(divvy_party_join(&party, client, "/bad", names[i], DIVVY_SHALLOW_PARTY), DIVVY_EINVAL, client,
                     "identifier");
        assert_null(party);
    }
    ASSERT_FAILS(divvy_party_join(&party, client, "/bad", "", DIVVY_PARTY), DIVVY_EINVAL, client, "empty");
    ASSERT_FAILS(divvy_party_join(&party, client, "/bad", "me", 2), DIVVY_EINVAL, client, "kind");
    ASSERT_FAILS(divvy_party_join(&party, client, "/bad", "me", -1), DIVVY_EINVAL, client, "kind");
    ASSERT_FAILS(divvy_party_join(&party, client, "/bad", long_name, DIVVY_PARTY), DIVVY_E2BIG, client, "65537");
    long_name[513] = '\0';
    ASSERT_FAILS(divvy_party_join(&party, client, "/bad", long_name, DIVVY_SHALLOW_PARTY), DIVVY_E2BIG, client, "513");
    ASSERT_FAILS(divvy_party_join(&party, NULL, "/bad", "me", DIVVY_PARTY), DIVVY_EINVAL, NULL, "");
    ASSERT_FAILS(divvy_party_join(NULL, client, "/bad", "me", DIVVY_PARTY), DIVVY_EINVAL, client, "out");
    ASSERT_FAILS(divvy_party_members(NULL, &members, 0), DIVVY_EINVAL, NULL, "");
    assert_null(members);
    ASSERT_FAILS(divvy_party_leave(NULL, 0), DIVVY_EINVAL, NULL, "");
    divvy_party_destroy(NULL);
    assert_false(dv_test_zk_exists(truth, "/bad", NULL));
    assert_int_equal(divvy_party_join(&party, client, "/good", "me", DIVVY_PARTY), 0);
    ASSERT_FAILS(divvy_party_members(party, NULL, 0), DIVVY_EINVAL, client, "");
    ASSERT_FAILS(divvy_party_members(party, &members, -2), DIVVY_EINVAL, client, "");
    ASSERT_FAILS(divvy_party_leave(party, -2), DIVVY_EINVAL, client, "");
    assert_string_equal(listed(party), "me "); /* Refused, it has not left. */
    divvy_party_destroy(party);
    divvy_client_close(client);
    witness_end(&w);
    free(long_name);
}

/* A budget that is used up is said, and given back by leaving. */
TEST(test_budget) {
    witness w;
    divvy_party *a, *b;
    divvy_client_config config = witness_config(&w, hosts());
    config.ephemeral_path_bytes = 80;
    divvy_client *client = open_connected(&config);
    assert_int_equal(divvy_party_join(&a, client, "/party/budget", "me", DIVVY_PARTY), 0);
    assert_string_equal(listed(a), "me ");
    ASSERT_FAILS(divvy_party_join(&b, client, "/party/budget", "me", DIVVY_PARTY), DIVVY_ELIMIT, client,
                 "/party/budget");
    assert_null(b);
    assert_int_equal(divvy_party_leave(a, PATIENCE_MS), 0);
    assert_int_equal(divvy_party_join(&b, client, "/party/budget", "me", DIVVY_PARTY), 0);
    assert_string_equal(listed(b), "me ");
    divvy_party_destroy(a);
    divvy_party_destroy(b);
    divvy_client_close(client);
    witness_end(&w);
}

TEST_GROUP(set_up, stop_server);
