/* Tests of divvy/election.h on a scripted backend, where it matters which answer comes when.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "divvy/divvy.h"
#include "lib/fake_znode.h"
#include "lib/test.h"

#define FIRST "x__lock__0000000003"
#define NEXT "y__lock__0000000004"

static dv_fake *fake;
static divvy_election *election;
static int told;
static int64_t token;

static void on_leader(divvy_election *e, const divvy_leader *leader, void *user) {
    (void)e, (void)user;
    told++;
    token = leader ? leader->token : 0;
}

static void assert_pending(const char *text) {
    assert_string_equal(dv_fake_pending(fake), text);
}

static void answer_list(const char *first) {
    dv_fake_answer(fake, &(dv_reply){.children = &first, .child_count = 1, .stat = &(dv_stat){.czxid = 1}});
}

static void answer_data(int64_t czxid) {
    dv_fake_answer(fake, &(dv_reply){.data = "", .stat = &(dv_stat){.czxid = czxid}});
}

/* Somebody who follows the leader, and does not stand. */
static int set_up(void **state) {
    (void)state;
    divvy_election_config config = DIVVY_ELECTION_CONFIG_INIT;
    fake = dv_fake_open(NULL);
    dv_fake_session(fake, DIVVY_CONNECTED);
    config.path = "/e";
    config.on_leader = on_leader;
    told = 0;
    assert_int_equal(divvy_election_create(&election, dv_fake_client(fake), &config), 0);
    dv_fake_run(fake);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    divvy_election_destroy(election);
    dv_fake_run(fake);
    dv_fake_session(fake, DIVVY_LOST);
    dv_fake_close(fake);
    return 0;
}

/* J3: a leader that goes while it is read is told to nobody: the list is read again, and the next one told. */
TEST(test_leader_goes_while_read) {
    assert_pending("children /e");
    answer_list(FIRST);
    assert_pending("get! /e/" FIRST);
    assert_true(dv_fake_fire(fake, "/e/" FIRST, DV_WATCH_DELETED, false));
    answer_data(5);
    assert_pending("children /e");
    assert_int_equal(told, 0);
    answer_list(NEXT);
    answer_data(6);
    assert_pending("");
    assert_int_equal(told, 1);
    assert_int_equal(token, 6);
}

TEST_EACH(set_up, tear_down);
