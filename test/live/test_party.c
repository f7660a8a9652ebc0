/* Party: kazoo's Party and ShallowParty on a real server. SPDX-License-Identifier: Apache-2.0 */
#include "test_client_witness.h"

#include "lib/proxy.h"
#include "lib/seed.h"
#include "lib/server.h"
#include "lib/zk.h"

#define TICK_MS 100
#define GONE_MS 300 /* for calls that are to run out of time */

static dv_test_server *server;
static dv_test_zk *truth;

/* A client with a party, for as long as a test wants it. */
typedef struct {
    witness witness;
    divvy_client *client;
    divvy_party *party;
} member;

static const char *hosts(void) {
    return dv_test_server_connect(server);
}

static void enter_on(member *m, const char *list, const char *path, const char *identifier, int kind) {
    divvy_client_config config = witness_config(&m->witness, list);
    m->client = open_with(&config);
    int error = divvy_party_join(&m->party, m->client, path, identifier, kind);
    if (error) fail_msg("join: %s", divvy_client_error(m->client));
}

static void enter(member *m, const char *path, const char *identifier, int kind) {
    enter_on(m, hosts(), path, identifier, kind);
}

static void leave(member *m) {
    divvy_party_destroy(m->party);
    divvy_client_close(m->client);
    witness_end(&m->witness);
}

/* The identifiers, each followed by a space; in the order of the node names, or sorted, as these are random. */
static const char *listed(divvy_party *party) {
    static char text[1024];
    divvy_strings *members = NULL;
    const char *names[32];
    int error = divvy_party_members(party, &members, PATIENCE_MS);
    if (error) {
        snprintf(text, sizeof text, "%s", divvy_errname(error));
        return text;
    }
    size_t count = divvy_strings_count(members);
    assert_true(count <= 32);
    for (size_t i = 0; i < count; i++) names[i] = divvy_strings_get(members, i);
    for (size_t i = 0; i < count; i++) {
        for (size_t j = i + 1; j < count; j++) {
            if (strcmp(names[j], names[i]) >= 0) continue;
            const char *swap = names[i];
            names[i] = names[j];
            names[j] = swap;
        }
    }
    text[0] = '\0';
    for (size_t i = 0; i < count; i++) sprintf(text + strlen(text), "%s ", names[i]);
    assert_null(divvy_strings_get(members, count));
    divvy_strings_free(members);
    return text;
}

static size_t nodes(const char *path) {
    size_t count;
    dv_test_zk_free_names(dv_test_zk_children(truth, path, &count));
    return count;
}

/* The only node below `path`; its name, malloc'ed. */
static char *only_node(const char *path) {
    size_t count;
    char **names = dv_test_zk_children(truth, path, &count);
    assert_int_equal(count, 1);
    char *name = strdup(names[0]);
    dv_test_zk_free_names(names);
    return name;
}

/* --- coming and going ------------------------------------------------------------------------------------------- */

/* Two members see each other, in either kind, until one leaves; it leaves once however often it is told to. */
static void test_two_members(void **state) {
    (void)state;
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
static void test_equal_and_default_identifiers(void **state) {
    (void)state;
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
static void test_several_on_one_client(void **state) {
    (void)state;
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

/* What both kinds write is what kazoo writes: the node's name, its data, and that it is ephemeral and ours. */
static void test_as_kazoo_writes_it(void **state) {
    (void)state;
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

/* What kazoo members wrote is listed: by its marker and its data in a Party, by its name in a ShallowParty; the rest
 * counts as kazoo counts it. */
static void test_reads_what_kazoo_wrote(void **state) {
    (void)state;
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
static void test_identifiers(void **state) {
    (void)state;
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

/* A member that crashes has gone with its session. */
static void test_crash(void **state) {
    (void)state;
    member m, doomed;
    dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(server, 1));
    enter(&m, "/party/crash", "stays", DIVVY_PARTY);
    divvy_client_config config = witness_config(&doomed.witness, dv_test_proxy_address(proxy));
    config.session_timeout_ms = 3000;
    doomed.client = open_with(&config);
    assert_int_equal(divvy_party_join(&doomed.party, doomed.client, "/party/crash", "goes", DIVVY_PARTY), 0);
    assert_string_not_equal(listed(doomed.party), "");
    assert_true(DV_WAIT(strcmp(listed(m.party), "goes stays ") == 0, PATIENCE_MS));
    dv_test_proxy_cut(proxy); /* For the server this is what a crash looks like. */
    assert_true(DV_WAIT(strcmp(listed(m.party), "stays ") == 0, PATIENCE_MS));
    leave(&doomed);
    leave(&m);
    dv_test_proxy_stop(proxy);
}

/* --- trouble ---------------------------------------------------------------------------------------------------- */

/* Joined before there is a server, a member is made when there is one; until then its calls run out of time. */
static void test_before_connected(void **state) {
    (void)state;
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
static void test_left_before_connected(void **state) {
    (void)state;
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

/* Deleted by somebody else, a member joins again under another name, with a warning; also with the directory gone, and
 * also when it could not see the deletion. */
static void test_foreign_deletion(void **state) {
    (void)state;
    for (int round = 0; round < 3; round++) {
        member m;
        char path[512];
        dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(server, 1));
        enter_on(&m, dv_test_proxy_address(proxy), "/party/foreign", "me", round % 2);
        assert_string_equal(listed(m.party), "me ");
        char *name = only_node("/party/foreign");
        snprintf(path, sizeof path, "/party/foreign/%s", name);
        if (round == 2) {
            dv_test_proxy_cut(proxy);
            assert_true(DV_WAIT(divvy_client_state(m.client) == DIVVY_SUSPENDED, PATIENCE_MS));
        }
        assert_int_equal(dv_test_zk_delete(truth, path), ZOK);
        if (round == 1) (void)dv_test_zk_delete(truth, "/party/foreign"); /* it may be too late for that */
        if (round == 2) dv_test_proxy_restore(proxy);
        assert_true(DV_WAIT(witness_warned(&m.witness) == DIVVY_WARN_NODE_GONE, PATIENCE_MS));
        assert_non_null(strstr(m.witness.warning_text, path));
        assert_true(DV_WAIT(nodes("/party/foreign") == 1, PATIENCE_MS));
        char *again = only_node("/party/foreign");
        assert_string_not_equal(again, name);
        assert_true(DV_WAIT(strcmp(listed(m.party), "me ") == 0, PATIENCE_MS));
        free(name);
        free(again);
        leave(&m);
        assert_int_equal(nodes("/party/foreign"), 0);
        dv_test_proxy_stop(proxy);
    }
}

/* A write to a member's own node is no deletion: nothing is warned of, and the watch lives on. */
static void test_foreign_write(void **state) {
    (void)state;
    member m;
    char path[512];
    enter(&m, "/party/written", "me", DIVVY_PARTY);
    assert_string_equal(listed(m.party), "me ");
    char *name = only_node("/party/written");
    snprintf(path, sizeof path, "/party/written/%s", name);
    free(name);
    for (int i = 0; i < 3; i++) assert_int_equal(dv_test_zk_set(truth, path, "other"), ZOK);
    assert_true(DV_WAIT(strcmp(listed(m.party), "other ") == 0, PATIENCE_MS));
    assert_int_equal(witness_warned(&m.witness), 0);
    assert_int_equal(dv_test_zk_delete(truth, path), ZOK);
    assert_true(DV_WAIT(witness_warned(&m.witness) == DIVVY_WARN_NODE_GONE, PATIENCE_MS));
    assert_true(DV_WAIT(strcmp(listed(m.party), "me ") == 0, PATIENCE_MS));
    leave(&m);
}

/* The create's answer is lost: found again, or made again, there is exactly one node in the end. */
static void test_lost_create(void **state) {
    (void)state;
    dv_test_zk_create(truth, "/party", "", 0, NULL);
    dv_test_zk_create(truth, "/party/lost", "", 0, NULL);
    for (int round = 0; round < 4; round++) {
        member m;
        witness *w = &m.witness;
        dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(server, 1));
        divvy_client_config config = witness_config(w, dv_test_proxy_address(proxy));
        m.client = open_connected(&config);
        /* Even rounds: the create is carried out and its answer lost. Odd ones: it may not even have been sent, for the
         * answer to the read before it was lost. */
        if (round % 2) dv_test_proxy_freeze(proxy);
        else dv_test_proxy_drop_replies(proxy, false);
        assert_int_equal(divvy_party_join(&m.party, m.client, "/party/lost", "me", DIVVY_PARTY), 0);
        if (round % 2 == 0) {
            /* The read that sees to the path is answered or lost, as it comes; then all answers are. */
            dv_test_proxy_drop_replies(proxy, true);
            DV_WAIT(nodes("/party/lost") == 1, 300);
        }
        dv_test_proxy_cut(proxy);
        assert_true(DV_WAIT(divvy_client_state(m.client) == DIVVY_SUSPENDED, PATIENCE_MS));
        dv_test_proxy_restore(proxy);
        assert_string_equal(listed(m.party), "me ");
        assert_int_equal(nodes("/party/lost"), 1);
        dv_test_proxy_cut(proxy);
        dv_test_proxy_restore(proxy);
        assert_string_equal(listed(m.party), "me ");
        assert_int_equal(nodes("/party/lost"), 1);
        leave(&m);
        assert_int_equal(nodes("/party/lost"), 0);
        dv_test_proxy_stop(proxy);
    }
}

/* The delete's answer is lost: leaving goes on with the next connection, and ends. */
static void test_lost_leave(void **state) {
    (void)state;
    for (int applied = 0; applied <= 1; applied++) {
        member m;
        dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(server, 1));
        enter_on(&m, dv_test_proxy_address(proxy), "/party/lost-leave", "me", DIVVY_PARTY);
        assert_string_equal(listed(m.party), "me ");
        if (applied) dv_test_proxy_drop_replies(proxy, true);
        else dv_test_proxy_freeze(proxy);
        ASSERT_FAILS(divvy_party_leave(m.party, GONE_MS), DIVVY_ETIMEDOUT, m.client, "/party/lost-leave");
        if (applied) assert_true(DV_WAIT(nodes("/party/lost-leave") == 0, PATIENCE_MS));
        dv_test_proxy_cut(proxy);
        dv_test_proxy_restore(proxy);
        assert_int_equal(divvy_party_leave(m.party, PATIENCE_MS), 0);
        assert_int_equal(nodes("/party/lost-leave"), 0);
        leave(&m);
        dv_test_proxy_stop(proxy);
    }
}

/* A list whose answer is lost is asked for again within the call's time. */
static void test_lost_list(void **state) {
    (void)state;
    member m;
    dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(server, 1));
    enter_on(&m, dv_test_proxy_address(proxy), "/party/lost-list", "me", DIVVY_PARTY);
    assert_string_equal(listed(m.party), "me ");
    divvy_strings *members;
    dv_test_proxy_drop_replies(proxy, true);
    ASSERT_FAILS(divvy_party_members(m.party, &members, GONE_MS), DIVVY_ETIMEDOUT, m.client, "");
    dv_test_proxy_drop_replies(proxy, false); /* closes the connection */
    assert_string_equal(listed(m.party), "me ");
    leave(&m);
    dv_test_proxy_stop(proxy);
}

/* --- lifetimes -------------------------------------------------------------------------------------------------- */

/* Parties and clients end in any order, at any stage, and nothing of them is left. */
static void test_any_order(void **state) {
    (void)state;
    for (int order = 0; order < 12; order++) {
        member m;
        divvy_party *another;
        enter(&m, "/party/order", "a", DIVVY_PARTY);
        if (order % 2) assert_string_equal(listed(m.party), "a ");
        assert_int_equal(divvy_party_join(&another, m.client, "/party/order", "b", DIVVY_SHALLOW_PARTY), 0);
        switch (order / 2) {
        case 0:
            divvy_party_destroy(m.party);
            divvy_party_destroy(another);
            divvy_client_close(m.client);
            break;
        case 1:
            divvy_party_destroy(another);
            divvy_client_close(m.client);
            divvy_party_destroy(m.party);
            break;
        case 2:
            divvy_client_close(m.client);
            divvy_party_destroy(m.party);
            divvy_party_destroy(another);
            break;
        case 3:
            (void)divvy_party_leave(m.party, 0);
            divvy_client_close(m.client);
            divvy_party_destroy(another);
            divvy_party_destroy(m.party);
            break;
        case 4:
            (void)divvy_party_leave(m.party, 0);
            divvy_party_destroy(m.party);
            divvy_client_close(m.client);
            divvy_party_destroy(another);
            break;
        default:
            assert_int_equal(divvy_party_leave(m.party, PATIENCE_MS), 0);
            divvy_client_close(m.client);
            divvy_party_destroy(m.party);
            divvy_party_destroy(another);
        }
        witness_end(&m.witness);
        assert_int_equal(nodes("/party/order"), 0);
    }
}

/* After the client was closed each call on its party says DIVVY_ECLOSED. */
static void test_after_close(void **state) {
    (void)state;
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

typedef struct {
    divvy_party *party;
    atomic_int result, begun;
} call;

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
static void test_endings_end_waiting_calls(void **state) {
    (void)state;
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

static void *list_once(void *argument) {
    call *c = argument;
    divvy_strings *members = NULL;
    atomic_store(&c->begun, 1);
    int result = divvy_party_members(c->party, &members, -1);
    size_t count = divvy_strings_count(members);
    divvy_strings_free(members);
    atomic_store(&c->result, result ? result : (int)count);
    return NULL;
}

/* --- the loss of a session -------------------------------------------------------------------------------------- */

/* A member on a link that a test can cut, with a party of each kind, on a session that is soon lost then. */
static divvy_party *enter_both(member *m, dv_test_proxy *proxy, const char *path) {
    char shallow_path[64];
    divvy_party *shallow;
    divvy_client_config config = witness_config(&m->witness, dv_test_proxy_address(proxy));
    config.session_timeout_ms = 4000;
    config.ensemble_tick_ms = TICK_MS;
    m->client = open_connected(&config);
    snprintf(shallow_path, sizeof shallow_path, "%s-shallow", path);
    assert_int_equal(divvy_party_join(&m->party, m->client, path, "me", DIVVY_PARTY), 0);
    assert_int_equal(divvy_party_join(&shallow, m->client, shallow_path, "me", DIVVY_SHALLOW_PARTY), 0);
    assert_string_equal(listed(m->party), "me ");
    assert_string_equal(listed(shallow), "me ");
    return shallow;
}

/* A call that waits without end is not ended by the loss of the session, nor does it fail: it is answered on the next
 * one. */
static void test_loss_does_not_end_waiting_calls(void **state) {
    (void)state;
    member m;
    pthread_t thread;
    dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(server, 1));
    divvy_party *shallow = enter_both(&m, proxy, "/party/waiting");
    dv_test_proxy_cut(proxy);
    assert_true(DV_WAIT(divvy_client_state(m.client) == DIVVY_SUSPENDED, PATIENCE_MS));
    call c = {.party = m.party, .result = -99};
    assert_int_equal(pthread_create(&thread, NULL, list_once, &c), 0);
    assert_true(DV_WAIT(atomic_load(&c.begun), PATIENCE_MS));
    assert_true(DV_WAIT(witness_told(&m.witness, "CSLN"), PATIENCE_MS));
    assert_true(DV_WAIT(nodes("/party/waiting") == 0, PATIENCE_MS));
    assert_int_equal(atomic_load(&c.result), -99);
    dv_test_proxy_restore(proxy);
    pthread_join(thread, NULL);
    assert_int_equal(atomic_load(&c.result), 1);
    divvy_party_destroy(shallow);
    leave(&m);
    dv_test_proxy_stop(proxy);
}

/* Lost with its session, a member of either kind joins again by itself on the next one, under another name and without
 * a warning, as nobody else has deleted it; others see it go and come back. */
static void test_joins_again_after_a_loss(void **state) {
    (void)state;
    member m, other;
    divvy_stats stats;
    dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(server, 1));
    enter(&other, "/party/again", "other", DIVVY_PARTY);
    assert_string_equal(listed(other.party), "other ");
    divvy_party *shallow = enter_both(&m, proxy, "/party/again-me");
    divvy_party *third;
    assert_int_equal(divvy_party_join(&third, m.client, "/party/again", "third", DIVVY_PARTY), 0);
    assert_string_equal(listed(third), "other third ");
    char *deep_name = only_node("/party/again-me"), *shallow_name = only_node("/party/again-me-shallow");
    int64_t session = divvy_client_session_id(m.client);
    dv_test_proxy_cut(proxy);
    assert_true(DV_WAIT(witness_told(&m.witness, "CSLN"), PATIENCE_MS));
    assert_true(DV_WAIT(strcmp(listed(other.party), "other ") == 0, PATIENCE_MS));
    dv_test_proxy_restore(proxy);
    assert_string_equal(listed(m.party), "me ");
    assert_string_equal(listed(shallow), "me ");
    assert_string_equal(listed(third), "other third ");
    assert_string_equal(listed(other.party), "other third ");
    assert_int_not_equal(divvy_client_session_id(m.client), session);
    char *deep_again = only_node("/party/again-me"), *shallow_again = only_node("/party/again-me-shallow");
    assert_string_not_equal(deep_name, deep_again);
    assert_string_not_equal(shallow_name, shallow_again);
    assert_int_equal(divvy_client_stats(m.client, &stats), 0);
    assert_int_equal(stats.ephemerals, 3);
    assert_int_equal(witness_warned(&m.witness), 0);
    /* And it is kept there as it was: somebody else's deletion is made up for. */
    char path[512];
    snprintf(path, sizeof path, "/party/again-me/%s", deep_again);
    assert_int_equal(dv_test_zk_delete(truth, path), ZOK);
    assert_true(DV_WAIT(witness_warned(&m.witness) == DIVVY_WARN_NODE_GONE, PATIENCE_MS));
    assert_true(DV_WAIT(nodes("/party/again-me") == 1, PATIENCE_MS));
    free(deep_name);
    free(deep_again);
    free(shallow_name);
    free(shallow_again);
    divvy_party_destroy(third);
    divvy_party_destroy(shallow);
    leave(&m);
    assert_string_equal(listed(other.party), "other ");
    leave(&other);
    dv_test_proxy_stop(proxy);
}

/* A member that leaves or is destroyed between two sessions is not made again, and one whose leaving was under way when
 * the session was lost has left. */
static void test_left_between_sessions(void **state) {
    (void)state;
    member m;
    divvy_stats stats;
    dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(server, 1));
    divvy_party *shallow = enter_both(&m, proxy, "/party/between");
    divvy_party *leaving;
    assert_int_equal(divvy_party_join(&leaving, m.client, "/party/between-leaving", "me", DIVVY_PARTY), 0);
    assert_string_equal(listed(leaving), "me ");
    dv_test_proxy_cut(proxy);
    assert_true(DV_WAIT(divvy_client_state(m.client) == DIVVY_SUSPENDED, PATIENCE_MS));
    ASSERT_FAILS(divvy_party_leave(leaving, 0), DIVVY_ETIMEDOUT, m.client, "/party/between-leaving");
    assert_true(DV_WAIT(witness_told(&m.witness, "CSLN"), PATIENCE_MS));
    assert_int_equal(divvy_party_leave(leaving, PATIENCE_MS), 0);
    assert_int_equal(divvy_party_leave(m.party, PATIENCE_MS), 0);
    divvy_party_destroy(shallow);
    assert_true(DV_WAIT(divvy_client_stats(m.client, &stats) == 0 && stats.ephemerals == 0, PATIENCE_MS));
    assert_int_equal(stats.ephemeral_path_bytes, 0);
    dv_test_proxy_restore(proxy);
    assert_int_equal(divvy_client_wait_connected(m.client, PATIENCE_MS), 0);
    divvy_party *marker; /* Joined last, it is there last. */
    assert_int_equal(divvy_party_join(&marker, m.client, "/party/between-marker", "me", DIVVY_PARTY), 0);
    assert_string_equal(listed(marker), "me ");
    assert_true(DV_WAIT(
        nodes("/party/between") + nodes("/party/between-shallow") + nodes("/party/between-leaving") == 0, PATIENCE_MS));
    divvy_party_destroy(marker);
    divvy_party_destroy(leaving);
    leave(&m);
    dv_test_proxy_stop(proxy);
}

/* --- a storm ---------------------------------------------------------------------------------------------------- */

enum { STORM_THREADS = 4, STORM_MS = 4000 };

typedef struct {
    divvy_client *client;
    atomic_bool *over;
    unsigned seed;
    int joined, listed, wrong;
    pthread_t thread;
} guest;

static bool expected(int error) {
    return error == 0 || error == DIVVY_ETIMEDOUT || error == DIVVY_ESTATE;
}

/* Comes and goes, and lists in between, with calls of any length. */
static void *visit(void *argument) {
    guest *g = argument;
    while (!atomic_load(g->over)) {
        divvy_party *party;
        if (divvy_party_join(&party, g->client, "/party/storm", NULL, rand_r(&g->seed) % 2) != 0) {
            g->wrong++;
            continue;
        }
        g->joined++;
        for (unsigned i = rand_r(&g->seed) % 4; i > 0; i--) {
            divvy_strings *members;
            int error = divvy_party_members(party, &members, rand_r(&g->seed) % 300);
            if (!expected(error) || (error == 0) != (members != NULL)) g->wrong++;
            if (error == 0 && divvy_strings_count(members) > 0) g->listed++;
            divvy_strings_free(members);
        }
        unsigned way = rand_r(&g->seed) % 3;
        if (way && !expected(divvy_party_leave(party, way == 1 ? 0 : 200))) g->wrong++;
        divvy_party_destroy(party);
    }
    return NULL;
}

/* Several threads join, list, leave and destroy on one client while the link breaks, falls silent and loses answers,
 * and somebody else deletes nodes: in the end there is not one node left. DIVVY_TEST_SEED replays the choices. */
static void test_storm(void **state) {
    (void)state;
    witness w;
    guest guests[STORM_THREADS];
    atomic_bool over = false;
    unsigned seed = (unsigned)dv_test_seed("live_party");
    dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(server, 1));
    divvy_client_config config = witness_config(&w, dv_test_proxy_address(proxy));
    config.session_timeout_ms = 20000;
    divvy_client *client = open_connected(&config);
    for (int i = 0; i < STORM_THREADS; i++) {
        guests[i] = (guest){.client = client, .over = &over, .seed = seed + (unsigned)i};
        assert_int_equal(pthread_create(&guests[i].thread, NULL, visit, &guests[i]), 0);
    }
    for (int64_t until_ms = dv_test_now_ms() + STORM_MS; dv_test_now_ms() < until_ms;) {
        unsigned what = rand_r(&seed) % 4;
        if (what == 0) dv_test_proxy_cut(proxy);
        if (what == 1) dv_test_proxy_drop_replies(proxy, true);
        if (what == 2) dv_test_proxy_freeze(proxy);
        if (what == 3) {
            size_t count;
            char **names = dv_test_zk_children(truth, "/party/storm", &count), path[512];
            if (count) snprintf(path, sizeof path, "/party/storm/%s", names[rand_r(&seed) % count]);
            if (count) (void)dv_test_zk_delete(truth, path);
            dv_test_zk_free_names(names);
        }
        dv_test_sleep_ms((int)(rand_r(&seed) % 60));
        if (what == 1) dv_test_proxy_drop_replies(proxy, false);
        dv_test_proxy_restore(proxy);
        dv_test_sleep_ms((int)(rand_r(&seed) % 300));
    }
    atomic_store(&over, true);
    int joined = 0, heard = 0;
    for (int i = 0; i < STORM_THREADS; i++) {
        pthread_join(guests[i].thread, NULL);
        assert_int_equal(guests[i].wrong, 0);
        joined += guests[i].joined;
        heard += guests[i].listed;
    }
    assert_true(joined > STORM_THREADS && heard > 0);
    divvy_stats stats;
    assert_true(DV_WAIT(divvy_client_stats(client, &stats) == 0 && stats.ephemerals == 0, PATIENCE_MS));
    assert_int_equal(stats.ephemeral_path_bytes, 0);
    assert_int_equal(divvy_client_wait_connected(client, PATIENCE_MS), 0);
    assert_int_equal(nodes("/party/storm"), 0);
    divvy_client_close(client);
    witness_end(&w);
    dv_test_proxy_stop(proxy);
}

/* --- bad input -------------------------------------------------------------------------------------------------- */

/* What is wrong with a call is said, with the reason, and nothing is made. */
static void test_bad_arguments(void **state) {
    (void)state;
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
static void test_budget(void **state) {
    (void)state;
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
        cmocka_unit_test(test_two_members),
        cmocka_unit_test(test_equal_and_default_identifiers),
        cmocka_unit_test(test_several_on_one_client),
        cmocka_unit_test(test_as_kazoo_writes_it),
        cmocka_unit_test(test_reads_what_kazoo_wrote),
        cmocka_unit_test(test_identifiers),
        cmocka_unit_test(test_crash),
        cmocka_unit_test(test_before_connected),
        cmocka_unit_test(test_left_before_connected),
        cmocka_unit_test(test_foreign_deletion),
        cmocka_unit_test(test_foreign_write),
        cmocka_unit_test(test_lost_create),
        cmocka_unit_test(test_lost_leave),
        cmocka_unit_test(test_lost_list),
        cmocka_unit_test(test_any_order),
        cmocka_unit_test(test_after_close),
        cmocka_unit_test(test_endings_end_waiting_calls),
        cmocka_unit_test(test_loss_does_not_end_waiting_calls),
        cmocka_unit_test(test_joins_again_after_a_loss),
        cmocka_unit_test(test_left_between_sessions),
        cmocka_unit_test(test_storm),
        cmocka_unit_test(test_bad_arguments),
        cmocka_unit_test(test_budget),
    };
    return cmocka_run_group_tests_name("party", tests, set_up, tear_down);
}
