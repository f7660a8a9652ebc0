/* Tests of R3: a node that was taken for never made comes after all. SPDX-License-Identifier: Apache-2.0 */
#include "lib/scarce.h"
#include "recipe/latecomer.h"
#include "unit/contender_fixture.h"

enum { WINDOW_MS = 60000 };

static void reconnect(void) {
    dv_fake_session(fake, DIVVY_SUSPENDED);
    dv_fake_session(fake, DIVVY_CONNECTED);
}

/* The answer to the create is lost, and a list behind the barrier lacks it: it is never made, as it seems. */
static void lose_create(owner *o) {
    enter(o);
    reconnect();
    leave(o);
    dv_fake_answer_multi(fake, 0, &(dv_reply){.error = 0});
    ANSWER_CHILDREN("");
    assert_int_equal(o->gone, 1);
    assert_string_equal(dv_fake_pending(fake), "");
}

/* Answers the look of a new connection. */
static void look(bool found) {
    assert_string_equal(dv_fake_pending(fake), "check /");
    dv_fake_answer_multi(fake, 0, &(dv_reply){.error = 0});
    assert_string_equal(dv_fake_pending(fake), "children /q");
    if (found) ANSWER_CHILDREN(OWN_NAME(7));
    else ANSWER_CHILDREN("");
    if (!found) return;
    assert_string_equal(dv_fake_pending(fake), "exists /q/#1__lock__0000000007");
    dv_fake_answer(fake, &(dv_reply){.stat = &(dv_stat){.czxid = 55, .ephemeral_owner = DV_FAKE_SESSION}});
}

static uint64_t latecomers(void) {
    return dv_fake_client(fake)->latecomer_count;
}

/* Deletes what is found, again where the answer is lost, and then looks no more. */
TEST_IN(test_found, set_up_connected, tear_down) {
    owner o;
    lose_create(&o);
    reconnect();
    look(true);
    assert_string_equal(dv_fake_pending(fake), "delete /q/#1__lock__0000000007");
    reconnect();
    assert_string_equal(dv_fake_pending(fake), "delete /q/#1__lock__0000000007");
    answer_error(0);
    assert_int_equal(latecomers(), 0);
    reconnect();
    assert_string_equal(dv_fake_pending(fake), "");
}

/* It is looked for on each connection of the time, and behind a barrier of that connection. */
TEST_IN(test_looked_for_again, set_up_connected, tear_down) {
    owner o;
    lose_create(&o);
    for (int i = 0; i < 3; i++) {
        reconnect();
        look(false);
        assert_string_equal(dv_fake_pending(fake), "");
    }
    reconnect();
    dv_fake_answer_multi(fake, 0, &(dv_reply){.error = 0});
    reconnect();
    look(true);
    answer_error(0);
    assert_int_equal(latecomers(), 0);
}

/* A node with its name that somebody has deleted is not looked for again. */
TEST_IN(test_deleted_by_somebody, set_up_connected, tear_down) {
    owner o;
    lose_create(&o);
    reconnect();
    dv_fake_answer_multi(fake, 0, &(dv_reply){.error = 0});
    ANSWER_CHILDREN(OWN_NAME(7));
    answer_error(DIVVY_ENOENT);
    assert_int_equal(latecomers(), 0);
}

/* After the time nothing is looked for, but once where there was no connection when it ended. */
TEST_IN(test_time, set_up_connected, tear_down) {
    owner o;
    int64_t window_ms = dv_fake_client(fake)->config.session_timeout_ms + WINDOW_MS;
    lose_create(&o);
    dv_fake_advance(fake, window_ms - 1);
    assert_int_equal(latecomers(), 1);
    dv_fake_advance(fake, 1);
    assert_int_equal(latecomers(), 0);
    lose_create(&o);
    dv_fake_advance(fake, window_ms - 1);
    dv_fake_session(fake, DIVVY_SUSPENDED);
    dv_fake_advance(fake, 2);
    assert_int_equal(latecomers(), 1);
    dv_fake_session(fake, DIVVY_CONNECTED);
    look(false);
    assert_int_equal(latecomers(), 0);
}

/* It goes with the session, and with the client. */
TEST_IN(test_ends, set_up_connected, tear_down) {
    owner o;
    lose_create(&o);
    dv_tell_listeners(dv_fake_client(fake), DV_SESSION_CLOSING, dv_fake_now(fake));
    dv_fake_run(fake);
    assert_int_equal(latecomers(), 0);
    lose_create(&o);
    assert_int_equal(latecomers(), 1);
    dv_fake_session(fake, DIVVY_LOST);
    assert_int_equal(latecomers(), 0);
}

/* It is no node of ours in what operators are shown, until there is proof. */
TEST_IN(test_uncounted, set_up_connected, tear_down) {
    owner o;
    divvy_stats stats;
    lose_create(&o);
    assert_int_equal(divvy_client_stats(dv_fake_client(fake), &stats, sizeof stats), 0);
    assert_int_equal(stats.ephemerals, 0);
}

/* Without memory, and without a session, nothing is looked for. */
TEST_IN(test_scarce, set_up_connected, tear_down) {
    char path[] = OURS(7);
    dv_node node = {.client = dv_fake_client(fake), .directory = QUEUE, .own.path = path};
    for (scarce_after = 0; scarce_after <= 1; scarce_after++) {
        long after = scarce_after;
        dv_latecomer_expect(&node, dv_fake_now(fake));
        assert_int_equal(scarce_after, -1);
        assert_int_equal(latecomers(), 0);
        scarce_after = after;
    }
    scarce_after = -1;
    dv_latecomer_expect(&node, dv_fake_now(fake));
    assert_int_equal(latecomers(), 1);
    dv_fake_session(fake, DIVVY_LOST);
    dv_latecomer_expect(&node, dv_fake_now(fake));
    assert_int_equal(latecomers(), 0);
}
