/* Who lists a party, and who listens to its roll: W18, W20, W21. SPDX-License-Identifier: Apache-2.0 */
#include "roll_watch_fixture.h"

/* --- who listens ------------------------------------------------------------------------------------------------ */

/* A member that is no lookout listens once a roll names the party that it has settled on. */
TEST_IN(test_listens, set_up, tear_down) {
    listen_first('b', "abcd");
    assert_false(dv_fake_fire(fake, PARTY, DV_WATCH_CHILDREN, false)); /* Only the roll's data are watched. */
    assert_string_equal(told.names, "abcd");
}

/* A lookout lists by its watch, and so does a member of a party that is too small, one that is not in the row, and one
 * for which names matter. */
TEST_IN(test_lists, set_up, tear_down) {
    settle_first('a', "abcd");
    assert_false(dv_roll_watch_listens(watch));
    assert_true(dv_fake_is_watched(fake, PARTY));
}
TEST_IN(test_lists_small, set_up, tear_down) {
    settle_first('b', "abc");
    assert_pending("");
    assert_true(dv_fake_is_watched(fake, PARTY));
}
TEST_IN(test_lists_outside, set_up, tear_down) {
    settle_first('x', "abcd");
    assert_pending("");
}
TEST_IN(test_lists_for_names, set_up, tear_down) {
    begin_as('b');
    may_listen = false;
    list_comes(4, 10, 5);
    answer_list("abcd", 10, 5);
    assert_pending("");
}

/* While there is no roll, or one of a later release, or one that is ahead of the party, the member lists. */
TEST_IN(test_roll_no_roll, set_up, tear_down) {
    settle_first('b', "abcd");
    answer_get("", 0, 10, 5);
    assert_false(dv_roll_watch_listens(watch));
    roll_changes();
    answer_get("{\"v\":2}", 7, 10, 6);
    assert_false(dv_roll_watch_listens(watch));
    roll_changes();
    answer_roll("abcd", 10, "abcde", 11, 0, 10, 7);
    assert_false(dv_roll_watch_listens(watch));
    assert_int_equal(told.settled, 1);
    assert_true(dv_fake_fire(fake, PARTY, DV_WATCH_CHILDREN, false) || dv_fake_is_watched(fake, PARTY));
}

static void look(void) {
    dv_client_lock(dv_fake_client(fake));
    dv_roll_watch_look(watch, dv_fake_now(fake));
    dv_client_unlock(dv_fake_client(fake));
    dv_fake_run(fake);
}

/* Names begin to matter: the member lists, and goes by the watch of the children. It reads the roll again once they
 * matter no longer, and not where nothing has changed. */
TEST_IN(test_names_matter, set_up, tear_down) {
    listen_first('b', "abcd");
    look();
    assert_pending("");
    may_listen = false;
    look();
    assert_pending("children! " PARTY);
    assert_false(dv_roll_watch_listens(watch));
    may_listen = true;
    look();
    assert_pending("children! " PARTY ", get! " PARTY);
}

/* --- settling by the roll --------------------------------------------------------------------------------------- */

/* A roll that leads from the party that is known settles at once, without a list. */
TEST_IN(test_settles_by_roll, set_up, tear_down) {
    listen_first('b', "abcd");
    roll_changes();
    answer_roll("abcd", 10, "abde", 30, 0, 30, 31);
    assert_int_equal(told.settled, 2);
    assert_int_equal(told.changed, 1);
    assert_string_equal(told.names, "abde");
    assert_int_equal(told.pzxid, 30);
    assert_true(dv_roll_watch_listens(watch));
    assert_pending("");
}

/* A change costs one read, and only the answers to audits beside it. */
TEST_IN(test_cost, set_up, tear_down) {
    listen_first('b', "abcd");
    for (int i = 1; i <= 5; i++) {
        int64_t from = i == 1 ? 10 : 100 * (i - 1);
        roll_changes();
        answer_roll(i % 2 ? "abcd" : "abc", from, i % 2 ? "abcde" : "abcd", 100 * i, 0, 100 * i, 100 * i + 1);
        assert_int_equal(told.settled, i % 2 ? i + 1 : i);
        if (i % 2 == 0) break;
    }
    assert_pending("");
}

/* A roll that changes once more before the answer about it is taken is read again (znode.h, rule 4). */
TEST_IN(test_roll_changes_while_read, set_up, tear_down) {
    listen_first('b', "abcd");
    roll_changes();
    assert_true(dv_fake_fire(fake, PARTY, DV_WATCH_CHANGED, false));
    answer_roll("abcd", 10, "abde", 30, 0, 30, 31);
    assert_string_equal(told.names, "abde");
    assert_pending("get! " PARTY);
    answer_roll("abde", 30, "abe", 40, 0, 40, 41);
    assert_string_equal(told.names, "abe");
}

/* A member that becomes a lookout lists. */
TEST_IN(test_roll_becomes_lookout, set_up, tear_down) {
    listen_first('b', "abcde");
    roll_changes();
    answer_roll("abcde", 10, "bcde", 30, 0, 30, 31);
    assert_string_equal(told.names, "bcde");
    assert_false(dv_roll_watch_listens(watch));
    assert_pending("get " PARTY ", children! " PARTY); /* It would write the roll, too, if nobody had. */
    answer_roll("abcde", 10, "bcde", 30, 0, 30, 31);
    answer_list("bcde", 30, 31);
    assert_pending("");
}

/* In a party that has become small, each member lists, and reads no roll, even if that has changed once more. */
TEST_IN(test_becomes_small, set_up, tear_down) {
    listen_first('b', "abcd");
    roll_changes();
    assert_true(dv_fake_fire(fake, PARTY, DV_WATCH_CHANGED, false));
    answer_roll("abcd", 10, "abd", 30, 0, 30, 31);
    assert_string_equal(told.names, "abd");
    assert_pending("children! " PARTY);
    answer_list("abd", 30, 31);
    assert_pending("");
    assert_int_equal(told.settled, 2);
}

/* A party that has changed again when the roll came: it settles, and the next roll is waited for. */
TEST_IN(test_change_under_way, set_up, tear_down) {
    listen_first('b', "abcd");
    roll_changes();
    answer_roll("abcd", 10, "abcde", 30, 0, 40, 31);
    assert_int_equal(told.settled, 2);
    assert_int_equal(told.changed, 2);
    assert_true(dv_roll_watch_listens(watch));
    roll_changes();
    answer_roll("abcde", 30, "abce", 40, 0, 40, 41);
    assert_int_equal(told.settled, 3);
    assert_string_equal(told.names, "abce");
}

/* A roll that does not lead from the party that is known has the member list, once, and the party settles at once. */
TEST_IN(test_no_step, set_up, tear_down) {
    listen_first('b', "abcd");
    roll_changes();
    answer_roll("abc", 25, "abcde", 30, 0, 30, 31);
    assert_int_equal(told.settled, 1);
    dv_fake_advance(fake, 2); /* spread by its place */
    assert_pending("children! " PARTY);
    answer_list("abcde", 30, 31);
    assert_int_equal(told.settled, 2);
    assert_pending("get! " PARTY);
    answer_roll("abc", 25, "abcde", 30, 0, 30, 31);
    assert_true(dv_roll_watch_listens(watch));
}

/* So does one whose steps lead to other names than it was made from; but a party that has changed since waits. */
TEST_IN(test_roll_wrong_sum, set_up, tear_down) {
    listen_first('b', "abcd");
    roll_changes();
    answer_roll("abdx", 10, "abdex", 30, 0, 30, 31);
    dv_fake_advance(fake, 2);
    assert_string_equal(logged, PARTY ": its roll does not lead to the names that it was made from");
    answer_list("abcde", 40, 31);
    assert_int_equal(told.settled, 1);
    dv_fake_advance(fake, BOUNDARY_MS);
    assert_pending("children! " PARTY);
    answer_list("abcde", 40, 31);
    assert_int_equal(told.settled, 2);
    assert_string_equal(told.names, "abcde");
}

/* --- audits and waits ------------------------------------------------------------------------------------------- */

/* It asks for the party's Stat once in 8 to 12 s, and for the roll only if that has changed. */
TEST_IN(test_audit, set_up, tear_down) {
    listen_first('b', "abcd");
    for (int i = 0; i < 3; i++) {
        dv_fake_advance(fake, 7999);
        assert_pending("");
        dv_fake_advance(fake, 4001);
        assert_pending("exists " PARTY);
        answer_exists(4, 10, 20);
        assert_pending("");
    }
    dv_fake_advance(fake, 12000);
    answer_exists(5, 30, 31);
    assert_pending("get! " PARTY);
    answer_roll("abcd", 10, "abcde", 30, 0, 30, 31);
    assert_int_equal(told.settled, 2);
}

/* It asks on each new connection, too. */
TEST_IN(test_reconnect, set_up, tear_down) {
    listen_first('b', "abcd");
    dv_fake_session(fake, DIVVY_SUSPENDED);
    dv_fake_session(fake, DIVVY_CONNECTED);
    assert_pending("exists " PARTY);
    answer_exists(4, 10, 20);
    assert_pending("");
}

/* A read of the roll that was lost is made again. */
TEST_IN(test_read_lost, set_up, tear_down) {
    listen_first('b', "abcd");
    roll_changes();
    dv_fake_session(fake, DIVVY_SUSPENDED);
    dv_fake_session(fake, DIVVY_CONNECTED);
    answer_exists(5, 30, 31);
    assert_pending("get! " PARTY);
    answer_roll("abcd", 10, "abcde", 30, 0, 30, 31);
    assert_int_equal(told.settled, 2);
}

/* So is one that would have found the roll as it was read before: it would have left a watch. */
TEST_IN(test_read_of_the_same_lost, set_up, tear_down) {
    listen_first('b', "abcd");
    may_listen = false;
    look();
    answer_list("abcd", 10, 20);
    may_listen = true;
    look();
    assert_pending("get! " PARTY);
    dv_fake_session(fake, DIVVY_SUSPENDED);
    dv_fake_session(fake, DIVVY_CONNECTED);
    answer_exists(4, 10, 20);
    assert_pending("get! " PARTY);
    answer_roll(NULL, 0, "abcd", 10, 0, 10, 20);
    assert_true(dv_roll_watch_listens(watch));
}

static void wait_in_vain(char letter, size_t place) {
    listen_first(letter, "abcde");
    dv_fake_advance(fake, 12000);
    int64_t from = elapsed();
    answer_exists(4, 30, 20);
    assert_pending("");
    dv_fake_advance(fake, BOUNDARY_MS + WAIT_MS + 20 * (int64_t)place - 1);
    assert_pending("");
    dv_fake_advance(fake, 1);
    assert_pending("exists " PARTY);
    answer_exists(4, 30, 20);
    assert_pending("children! " PARTY);
    assert_int_equal(elapsed() - from, BOUNDARY_MS + WAIT_MS + 20 * (int64_t)place);
}

/* A roll that does not come is waited for, 20 ms longer for each place. Then the member lists, settles at once, and
 * writes the roll. */
TEST_IN(test_roll_waits_in_vain, set_up, tear_down) {
    wait_in_vain('c', 2);
    answer_list("bcde", 30, 20);
    assert_int_equal(told.settled, 2);
    assert_string_equal(told.names, "bcde");
    assert_pending("get " PARTY ", get! " PARTY);
    answer_roll(NULL, 0, "abcde", 10, 0, 30, 20);
    answer_roll(NULL, 0, "abcde", 10, 0, 30, 20);
    assert_pending("set " PARTY);
    dv_roll roll = written();
    assert_int_equal(roll.place, 1);
    assert_int_equal(roll.pzxid, 30);
    assert_int_equal(roll.step_count, 1);
    assert_int_equal(roll.steps[0].from, 10);
    dv_roll_clear(&roll);
    dv_fake_answer(fake, &(dv_reply){.stat = &(dv_stat){.pzxid = 30, .mzxid = 31}});
}

/* One that has waited in vain lists until a lookout writes: so a pool whose lookouts do not write waits once. */
TEST_IN(test_roll_stands_in, set_up, tear_down) {
    test_roll_waits_in_vain(state);
    roll_changes();
    answer_roll("abcde", 10, "bcde", 30, 1, 30, 31); /* its own */
    assert_false(dv_roll_watch_listens(watch));
    assert_true(dv_fake_fire(fake, PARTY, DV_WATCH_CHILDREN, true));
    list_comes(5, 40, 31);
    answer_list("bcdef", 40, 31);
    assert_int_equal(told.settled, 3);
    assert_pending("get! " PARTY);
    answer_roll("bcde", 30, "bcdef", 40, 0, 40, 41);
    assert_true(dv_roll_watch_listens(watch));
}

/* Each change that is seen begins the wait again, but not for longer than settle_max. */
TEST_IN(test_wait_has_an_end, set_up, tear_down) {
    listen_first('b', "abcde");
    dv_fake_advance(fake, 12000);
    int64_t from = elapsed(), pzxid = 30;
    answer_exists(4, pzxid, 20);
    while (strcmp(dv_fake_pending(fake), "children! " PARTY) != 0) {
        dv_fake_advance(fake, 1);
        if (*dv_fake_pending(fake)) answer_exists(4, ++pzxid, 20);
        assert_true(elapsed() - from <= 13000 + SETTLE_MAX_MS + WAIT_MS);
    }
    assert_true(elapsed() - from >= SETTLE_MAX_MS + WAIT_MS + 20);
}

/* --- its end ---------------------------------------------------------------------------------------------------- */

/* The party has gone: the owner is told so. */
TEST_IN(test_party_gone, set_up, tear_down) {
    listen_first('b', "abcd");
    assert_true(dv_fake_fire(fake, PARTY, DV_WATCH_DELETED, true));
    assert_pending("get! " PARTY);
    dv_fake_answer(fake, &(dv_reply){.error = DIVVY_ENOENT});
    assert_pending("children! " PARTY);
    dv_fake_answer(fake, &(dv_reply){.error = DIVVY_ENOENT});
    assert_int_equal(told.failed, 1);
    assert_int_equal(told.error, DIVVY_ENOENT);
    assert_int_equal(told.gone, 1);
}

/* A stop waits for what is under way, and tells nothing more. */
TEST_IN(test_stop, set_up, tear_down) {
    listen_first('b', "abcd");
    roll_changes();
    run_in_turn(dv_roll_watch_stop);
    assert_int_equal(told.gone, 0);
    answer_roll("abcd", 10, "abcde", 30, 0, 30, 31);
    assert_int_equal(told.settled, 1);
    assert_int_equal(told.gone, 1);
}

/* The owner may stop it when it hears of a party, by a list or by the roll. */
TEST_IN(test_stop_inside, set_up, tear_down) {
    listen_first('b', "abcd");
    roll_changes();
    told.stop_when_settled = true;
    answer_roll("abcd", 10, "abcde", 30, 0, 30, 31);
    assert_int_equal(told.settled, 2);
    assert_int_equal(told.gone, 1);
}
TEST_IN(test_stop_inside_list, set_up, tear_down) {
    begin_as('b');
    told.stop_when_settled = true;
    list_comes(4, 10, 5);
    answer_list("abcd", 10, 5);
    assert_int_equal(told.gone, 1);
}

/* The session's end ends it. */
TEST_IN(test_session_lost, set_up, tear_down) {
    listen_first('b', "abcd");
    roll_changes();
    dv_fake_session(fake, DIVVY_LOST);
    assert_int_equal(told.gone, 1);
    assert_int_equal(told.failed, 0);
}
