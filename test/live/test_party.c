/* Party: kazoo's Party and ShallowParty on a real server. SPDX-License-Identifier: Apache-2.0
 *
 * Shows kazoo's nodes byte for byte, and calls that run out of time without a server. */
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

TEST_GROUP(set_up, stop_server);
