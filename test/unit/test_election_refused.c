/* Tests of elections where servers refuse a request to step down, or the leader its reading. SPDX-License-Identifier:
 * Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "divvy/divvy.h"
#include "divvy/testing.h"
#include "lib/test.h"
#include "recipe/election.h"

enum { NOAUTH = -102, CLIENTS = 3 };

static divvy_testing_ensemble *ensemble;
static divvy_client *clients[CLIENTS];
static divvy_election *elections[CLIENTS];
static int asked[CLIENTS], unasked, unheard, unread;

static void on_step_down(divvy_election *election, const char *who, size_t who_bytes, void *user) {
    (void)election, (void)who, (void)who_bytes;
    ++*(int *)user;
}

static void on_leader(divvy_election *election, const divvy_leader *leader, void *user) {
    (void)election, (void)leader, (void)user;
}

static void on_log(int level, const char *message, void *user) {
    (void)user;
    if (level == DIVVY_LOG_WARN && strstr(message, "cannot be asked to step down")) unasked++;
    if (level == DIVVY_LOG_WARN && strstr(message, "are not heard")) unheard++;
    if (level == DIVVY_LOG_WARN && strstr(message, "who leads at /election cannot be read")) unread++;
}

static int set_up(void **state) {
    (void)state;
    unasked = unheard = unread = 0;
    memset(clients, 0, sizeof clients);
    memset(elections, 0, sizeof elections);
    memset(asked, 0, sizeof asked);
    assert_int_equal(divvy_testing_ensemble_create(&ensemble, NULL), 0);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    for (int i = 0; i < CLIENTS; i++) {
        divvy_election_destroy(elections[i]);
        divvy_client_close(clients[i]);
    }
    divvy_testing_ensemble_destroy(ensemble);
    return 0;
}

static void open_client(int i, const char *auth, int acl) {
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.manual = 1;
    config.on_log = on_log;
    config.auth_scheme = auth ? "digest" : NULL;
    config.auth = auth;
    config.acl = acl;
    assert_int_equal(divvy_testing_client_open(&clients[i], ensemble, &config), 0);
    assert_int_equal(divvy_client_wait_connected(clients[i], 30000), 0);
}

static divvy_election *make(int i, int preference) {
    divvy_election_config config = DIVVY_ELECTION_CONFIG_INIT;
    config.path = "/election";
    config.preference = preference;
    config.on_step_down = on_step_down;
    config.on_leader = on_leader;
    config.user = &asked[i];
    assert_int_equal(divvy_election_create(&elections[i], clients[i], &config), 0);
    return elections[i];
}

/* Who may read the election and not write to it finds the leader, and is told that it may not ask it to step down. The
 * leader hears nothing of it. */
TEST_IN(test_may_not_ask, set_up, tear_down) {
    divvy_leader *leader = NULL;
    open_client(0, "anna:secret", DIVVY_ACL_READABLE);
    open_client(1, NULL, DIVVY_ACL_OPEN);
    assert_int_equal(divvy_election_stand(make(0, 0)), 0);
    divvy_testing_run(ensemble, 1000);
    assert_true(divvy_election_leads(elections[0]));
    assert_int_equal(divvy_election_leader(make(1, 0), &leader, 10000), 0);
    assert_int_equal(leader->token, divvy_election_token(elections[0]));
    divvy_leader_free(leader);
    elections[1]->request_error = DIVVY_EACCES; /* of a request of another thread, which has not taken it yet */
    assert_int_equal(divvy_election_leader(elections[1], &leader, 10000), 0);
    divvy_leader_free(leader);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(divvy_election_ask_step_down(elections[1], 10000), DIVVY_EACCES);
        assert_non_null(strstr(divvy_client_error(clients[1]), "/election"));
    }
    divvy_testing_run(ensemble, 5000);
    assert_int_equal(asked[0], 0);
    assert_true(divvy_election_leads(elections[0]));
}

/* Credentials make an election private where the config says nothing else. Who may not read it says so once, however
 * often it looks. */
TEST_IN(test_may_not_read, set_up, tear_down) {
    divvy_leader *leader = NULL;
    open_client(0, "anna:secret", DIVVY_ACL_AUTO);
    open_client(1, NULL, DIVVY_ACL_AUTO);
    assert_int_equal(divvy_election_stand(make(0, 0)), 0);
    divvy_testing_run(ensemble, 1000);
    assert_true(divvy_election_leads(elections[0]));
    make(1, 0);
    divvy_testing_run(ensemble, 200000);
    assert_int_equal(unread, 1);
    assert_int_equal(divvy_election_leader(elections[1], &leader, 10000), DIVVY_EACCES);
}

/* Runs a leader and one that is preferred, to one of whom the answer to one request is a refusal. */
static void refuse_one(int whom, unsigned skip) {
    open_client(0, NULL, DIVVY_ACL_OPEN);
    open_client(1, NULL, DIVVY_ACL_OPEN);
    if (whom == 0) assert_int_equal(divvy_testing_answer(ensemble, clients[0], NOAUTH, 0, skip, 1), 0);
    assert_int_equal(divvy_election_stand(make(0, 0)), 0);
    divvy_testing_run(ensemble, 1000);
    if (whom == 1) assert_int_equal(divvy_testing_answer(ensemble, clients[1], NOAUTH, 0, skip, 1), 0);
    assert_int_equal(divvy_election_stand(make(1, 1)), 0);
    divvy_testing_run(ensemble, 10000);
}

static int count_requests(void) {
    divvy_strings *names = divvy_testing_children(ensemble, "/election");
    int count = 0;
    for (size_t i = 0; i < divvy_strings_count(names); i++)
        count += strstr(divvy_strings_get(names, i), ",down=") != NULL;
    divvy_strings_free(names);
    return count;
}

/* A preferred candidate whose request is refused says so once, leaves no request behind, and does not ask this leader
 * again: it leads on, unasked. */
TEST(test_request_refused) {
    int refused = 0;
    for (unsigned skip = 0; skip < 30; skip++) {
        set_up(NULL);
        refuse_one(1, skip);
        if (unasked) {
            refused++;
            assert_int_equal(unasked, 1);
            assert_int_equal(asked[0], 0);
            assert_int_equal(count_requests(), 0);
            assert_true(divvy_election_leads(elections[0]));
        }
        tear_down(NULL);
    }
    assert_int_equal(refused, 1); /* of all of its requests: there is one that asks */
}

/* A leader that may not read its election says that it hears no requests, once, and leads on. */
TEST(test_hearing_refused) {
    int refused = 0;
    for (unsigned skip = 0; skip < 30; skip++) {
        set_up(NULL);
        refuse_one(0, skip);
        if (unheard) {
            refused++;
            assert_int_equal(unheard, 1);
            assert_int_equal(asked[0], 0);
            assert_true(divvy_election_leads(elections[0]));
        }
        tear_down(NULL);
    }
    assert_true(refused > 0);
}
