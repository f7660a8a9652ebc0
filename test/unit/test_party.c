/* Party: what its calls refuse, and what they take. SPDX-License-Identifier: Apache-2.0 */
#include "input_fixture.h"

/* A client with a party, for as long as a test wants it. */
typedef struct {
    divvy_client *client;
    divvy_party *party;
} member;

static void enter(member *m, const char *path, const char *identifier, int kind) {
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    m->client = open_client(&config);
    int error = divvy_party_join(&m->party, m->client, path, identifier, kind);
    if (error) fail_msg("join: %s", divvy_client_error(m->client));
}

static void leave(member *m) {
    divvy_party_destroy(m->party);
    divvy_client_close(m->client);
}

/* The identifiers, each followed by a space. */
static const char *listed(divvy_party *party) {
    static char text[256];
    divvy_strings *members = NULL;
    int error = divvy_party_members(party, &members, PATIENCE_MS);
    if (error) return divvy_errname(error);
    text[0] = '\0';
    for (size_t i = 0; i < divvy_strings_count(members); i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s ", divvy_strings_get(members, i));
    divvy_strings_free(members);
    return text;
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
    }
}

/* A wrong call is refused with the reason, and nothing is made. */
TEST(test_bad_arguments) {
    static const char *const paths[] = {
        NULL,     "",      "relative", "/",     "/a/",        "//",           "/a//b",
        "/a/./b", "/a/..", "/a\x01",   "/\xff", "/zookeeper", "/zookeeper/a", "/\xf0\x9f\x98\x80"};
    static const char *const names[] = {"", "a/b", ".\x01", "\xff", "\xf0\x9f\x98\x80", "\x7f", "%41"};
    divvy_party *party;
    divvy_strings *members;
    char *long_name = calloc(1, 65538);
    memset(long_name, 'x', 65537);
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        if (paths[i] && strcmp(paths[i], "/") == 0) continue; /* the root is a path */
        party = (divvy_party *)(void *)&ensemble;
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
    assert_int_equal(divvy_testing_exists(ensemble, "/bad"), 0);
    assert_int_equal(divvy_party_join(&party, client, "/good", "me", DIVVY_PARTY), 0);
    ASSERT_FAILS(divvy_party_members(party, NULL, 0), DIVVY_EINVAL, client, "");
    ASSERT_FAILS(divvy_party_members(party, &members, -2), DIVVY_EINVAL, client, "");
    ASSERT_FAILS(divvy_party_leave(party, -2), DIVVY_EINVAL, client, "");
    assert_string_equal(listed(party), "me "); /* Refused, it has not left. */
    divvy_party_destroy(party);
    free(long_name);
}

/* A budget that is used up is said, and given back by leaving. */
TEST(test_budget) {
    divvy_party *a, *b;
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.ephemeral_path_bytes = 80;
    divvy_client *small = open_client(&config);
    assert_int_equal(divvy_party_join(&a, small, "/party/budget", "me", DIVVY_PARTY), 0);
    assert_string_equal(listed(a), "me ");
    ASSERT_FAILS(divvy_party_join(&b, small, "/party/budget", "me", DIVVY_PARTY), DIVVY_ELIMIT, small,
                 "/party/budget cannot be joined: no room");
    assert_null(b);
    assert_int_equal(divvy_party_leave(a, PATIENCE_MS), 0);
    assert_int_equal(divvy_party_join(&b, small, "/party/budget", "me", DIVVY_PARTY), 0);
    assert_string_equal(listed(b), "me ");
    divvy_party_destroy(a);
    divvy_party_destroy(b);
    divvy_client_close(small);
}

static bool is_under(const divvy_party *party, const char *path) {
    char now[128];
    divvy_party_node(party, now, sizeof now);
    return strcmp(now, path) == 0;
}

/* B6, M2: many memberships of one client watch what half of the room for watches takes, and places have the rest. A
 * node that is not watched is made again, too, when somebody has deleted it: a heartbeat finds that. */
TEST(test_many_of_one_client) {
    enum { PARTIES = 40, WATCH_BYTES = 2000, PATH_BYTES = 128 };
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.watch_path_bytes = WATCH_BYTES;
    divvy_client *small = open_client(&config);
    divvy_party *parties[PARTIES];
    for (size_t i = 0; i < PARTIES; i++)
        assert_int_equal(divvy_party_join(&parties[i], small, "/party/many", "me", DIVVY_PARTY), 0);
    divvy_strings *members;
    assert_int_equal(divvy_party_members(parties[PARTIES - 1], &members, PATIENCE_MS), 0);
    assert_int_equal(divvy_strings_count(members), PARTIES);
    divvy_strings_free(members);
    divvy_testing_run(ensemble, 1000);
    divvy_stats stats;
    assert_int_equal(divvy_client_stats(small, &stats, sizeof stats), 0);
    assert_in_range(stats.watch_path_bytes, WATCH_BYTES / 2 - PATH_BYTES, WATCH_BYTES / 2);
    char path[PATH_BYTES];
    assert_in_range(divvy_party_node(parties[PARTIES - 1], path, sizeof path), 1, sizeof path - 1);
    assert_int_equal(divvy_testing_remove(ensemble, path), 0);
    int64_t deadline = divvy_testing_now_ms(ensemble) + 60 * PATIENCE_MS;
    while (is_under(parties[PARTIES - 1], path) || !divvy_party_joined(parties[PARTIES - 1])) {
        if (divvy_testing_now_ms(ensemble) > deadline) fail_msg("%s is not made again", path);
        divvy_testing_run(ensemble, 1000);
    }
    for (size_t i = 0; i < PARTIES; i++) divvy_party_destroy(parties[i]);
    divvy_client_close(small);
}

/* A leave that gets no answer says so, and is carried out when there is one. */
TEST(test_leave_too_late) {
    member m;
    enter(&m, "/party/late", "me", DIVVY_PARTY);
    assert_string_equal(listed(m.party), "me ");
    divvy_testing_link_client(ensemble, m.client, DIVVY_TESTING_LINK_DOWN);
    ASSERT_FAILS(divvy_party_leave(m.party, 0), DIVVY_ETIMEDOUT, m.client, "/party/late");
    divvy_testing_link_client(ensemble, m.client, DIVVY_TESTING_LINK_UP);
    assert_int_equal(divvy_party_leave(m.party, PATIENCE_MS), 0);
    leave(&m);
}

/* A list that its session did not outlive waits for the next one. */
TEST(test_list_of_a_lost_session) {
    member m;
    divvy_strings *members;
    enter(&m, "/party/listed", "me", DIVVY_PARTY);
    assert_string_equal(listed(m.party), "me ");
    divvy_testing_link_client(ensemble, m.client, DIVVY_TESTING_LINK_DOWN);
    ASSERT_FAILS(divvy_party_members(m.party, &members, PATIENCE_MS), DIVVY_ETIMEDOUT, m.client, "/party/listed");
    divvy_testing_link_client(ensemble, m.client, DIVVY_TESTING_LINK_UP);
    assert_string_equal(listed(m.party), "me ");
    leave(&m);
}

/* A node that went with its session was not deleted: the servers see to that when the session's time has passed. */
TEST(test_leave_of_a_lost_session) {
    member m;
    enter(&m, "/party/lost", "me", DIVVY_PARTY);
    assert_string_equal(listed(m.party), "me ");
    divvy_testing_link_client(ensemble, m.client, DIVVY_TESTING_LINK_DOWN);
    for (int timeout_ms = -1; timeout_ms <= 0; timeout_ms++)
        ASSERT_FAILS(divvy_party_leave(m.party, timeout_ms), DIVVY_ELOST, m.client, "/party/lost");
    divvy_testing_link_client(ensemble, m.client, DIVVY_TESTING_LINK_UP);
    leave(&m);
}

TEST_GROUP(set_up, tear_down);
