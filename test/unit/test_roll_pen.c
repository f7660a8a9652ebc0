/* Who writes the roll of a party, and when: docs/protocol.md, W19. SPDX-License-Identifier: Apache-2.0 */
#include "roll_watch_fixture.h"

static bool is_scarce;

void *__real_realloc(void *block, size_t bytes);
void *__wrap_realloc(void *block, size_t bytes);
void *__wrap_realloc(void *block, size_t bytes) {
    return is_scarce ? NULL : __real_realloc(block, bytes);
}

/* The member has settled on a new party. */
static void becomes(const char *text, int64_t pzxid, int64_t mzxid) {
    int settled = told.settled;
    assert_true(dv_fake_fire(fake, PARTY, DV_WATCH_CHILDREN, true));
    list_comes(strlen(text), pzxid, mzxid);
    answer_list(text, pzxid, mzxid);
    assert_int_equal(told.settled, settled + 1);
}

static void answer_set(int error, int64_t mzxid) {
    assert_pending("set " PARTY);
    dv_stat stat = {.mzxid = mzxid};
    dv_fake_answer(fake, &(dv_reply){.error = error, .stat = error ? NULL : &stat});
}

/* A lookout that has settled first, and written its party, at mzxid 20. */
static void write_first(char letter, const char *text) {
    settle_first(letter, text);
    assert_pending("get " PARTY);
    answer_get("", 0, 10, 5);
    answer_set(0, 20);
    assert_pending("");
}

static void assert_written(int64_t pzxid, size_t steps, int64_t first) {
    dv_roll roll = written();
    assert_int_equal(roll.pzxid, pzxid);
    assert_int_equal(roll.step_count, steps);
    if (steps) assert_int_equal(roll.steps[0].from, first);
    dv_roll_clear(&roll);
}

/* A lookout writes a missing roll, without a step, at the version that it read. */
TEST_IN(test_first, set_up, tear_down) {
    settle_first('a', "abcd");
    answer_get("", 0, 10, 5);
    assert_written(10, 0, 0);
    assert_int_equal(dv_fake_oldest(fake)->ops[0].version, 5);
    answer_set(0, 20);
}

/* It adds the step to each party that settles. */
TEST_IN(test_step, set_up, tear_down) {
    write_first('a', "abcd");
    becomes("abce", 30, 20);
    assert_pending("get " PARTY);
    answer_roll(NULL, 0, "abcd", 10, 0, 30, 20);
    assert_written(30, 1, 10);
    answer_set(0, 31);
    becomes("abcef", 40, 31);
    answer_roll("abcd", 10, "abce", 30, 0, 40, 31);
    assert_written(40, 2, 10);
    answer_set(0, 41);
    assert_pending("");
}

/* The second lookout looks 100 ms later, and leaves alone what the first one has written. */
TEST_IN(test_turn, set_up, tear_down) {
    dv_fake_client(fake)->lookouts = 2;
    settle_first('b', "abcd");
    dv_fake_advance(fake, 99);
    assert_pending("");
    dv_fake_advance(fake, 1);
    assert_pending("get " PARTY);
    answer_roll(NULL, 0, "abcd", 10, 0, 10, 20);
    assert_pending("");
    becomes("abce", 30, 31);
    dv_fake_advance(fake, 100);
    answer_roll("abcd", 10, "abcef", 40, 0, 40, 41); /* a later party */
    assert_pending("");
}

/* A party that becomes small is written once more, for those who listen. A small one is not. */
TEST_IN(test_roll_small, set_up, tear_down) {
    write_first('a', "abcd");
    becomes("abc", 30, 20);
    answer_roll(NULL, 0, "abcd", 10, 0, 30, 20);
    assert_written(30, 1, 10);
    answer_set(0, 31);
    becomes("ab", 40, 31);
    assert_pending("");
}

/* A write that is refused, since another was first, is decided again by what stands there now. */
TEST_IN(test_roll_refused, set_up, tear_down) {
    write_first('a', "abcd");
    becomes("abce", 30, 20);
    answer_roll(NULL, 0, "abcd", 10, 0, 30, 20);
    answer_set(DIVVY_EVERSION, 0);
    assert_pending("get " PARTY);
    answer_roll("abcd", 10, "abcdx", 25, 1, 30, 26);
    assert_written(30, 2, 10);
    answer_set(DIVVY_EVERSION, 0);
    answer_roll("abcd", 10, "abce", 30, 1, 30, 27);
    assert_pending("");
}

/* So is one whose answer was lost. */
TEST_IN(test_lost, set_up, tear_down) {
    write_first('a', "abcd");
    becomes("abce", 30, 20);
    answer_roll(NULL, 0, "abcd", 10, 0, 30, 20);
    assert_written(30, 1, 10);
    dv_fake_session(fake, DIVVY_SUSPENDED);
    dv_fake_session(fake, DIVVY_CONNECTED);
    answer_exists(4, 30, 20);
    dv_fake_advance(fake, 1000);
    while (strcmp(dv_fake_pending(fake), "get " PARTY) != 0) answer_exists(4, 30, 20);
    answer_roll(NULL, 0, "abcd", 10, 0, 30, 20);
    assert_written(30, 1, 10);
    answer_set(0, 31);
}

/* Another party settles while a write is under way: it is written next, with the step from what was written. */
TEST_IN(test_settles_meanwhile, set_up, tear_down) {
    write_first('a', "abcd");
    becomes("abce", 30, 20);
    answer_roll(NULL, 0, "abcd", 10, 0, 30, 20);
    assert_true(dv_fake_fire(fake, PARTY, DV_WATCH_CHILDREN, true));
    dv_fake_advance(fake, 250);
    assert_pending("set " PARTY ", exists " PARTY);
    dv_fake_answer(fake, &(dv_reply){.error = DIVVY_EVERSION});
    answer_exists(5, 40, 20);
    assert_pending("get " PARTY);
    answer_roll("abcd", 10, "abce", 30, 1, 40, 31);
    assert_pending("");
    list_comes(5, 40, 31);
    answer_list("abcef", 40, 31);
    answer_roll("abcd", 10, "abce", 30, 1, 40, 31);
    assert_written(40, 2, 10);
    answer_set(0, 41);
}

/* One that is no lookout any longer, while it reads, still tells the step from the party that it had written. */
TEST_IN(test_no_longer_lookout, set_up, tear_down) {
    write_first('b', "bcde");
    becomes("bcdf", 30, 20);
    assert_pending("get " PARTY);
    dv_fake_answer(fake, &(dv_reply){.error = DIVVY_ENOMEM});
    assert_true(dv_fake_fire(fake, PARTY, DV_WATCH_CHILDREN, true));
    while (told.settled < 3) {
        if (!dv_fake_oldest(fake)) dv_fake_advance(fake, 1);
        else if (dv_fake_oldest(fake)->ops[0].kind == DV_GET) dv_fake_answer(fake, &(dv_reply){.error = DIVVY_ENOMEM});
        else if (dv_fake_oldest(fake)->ops[0].kind == DV_EXISTS) answer_exists(5, 40, 20);
        else answer_list("abcdf", 40, 20);
    }
    assert_pending("get! " PARTY);
    dv_fake_advance(fake, 1000);
    assert_pending("get! " PARTY ", get " PARTY);
    answer_roll(NULL, 0, "bcde", 10, 0, 40, 20);
    answer_roll(NULL, 0, "bcde", 10, 0, 40, 20);
    assert_written(40, 1, 10);
    answer_set(0, 41);
}

/* One that does not know the party of the roll leaves the first turn to others, for 300 ms. */
TEST_IN(test_roll_stranger, set_up, tear_down) {
    settle_first('a', "abcd");
    answer_roll(NULL, 0, "bcd", 8, 0, 10, 9);
    dv_fake_advance(fake, 299);
    assert_pending("");
    dv_fake_advance(fake, 1);
    answer_roll(NULL, 0, "bcd", 8, 0, 10, 9);
    assert_written(10, 0, 0);
    answer_set(0, 20);
}

/* A denied write is no reason to insist: it is told in the log once, and others do it. */
TEST_IN(test_denied, set_up, tear_down) {
    settle_first('a', "abcd");
    answer_get("", 0, 10, 5);
    answer_set(DIVVY_EACCES, 0);
    assert_pending("");
    becomes("abce", 30, 5);
    answer_get("", 0, 30, 5);
    answer_set(DIVVY_EQUOTA, 0);
    dv_fake_advance(fake, 5000);
    assert_pending("");
}

/* Without memory for the text nothing is written, and what stands there is read again a second later. */
TEST_IN(test_roll_scarce, set_up, tear_down) {
    settle_first('a', "abcd");
    is_scarce = true;
    answer_get("", 0, 10, 5);
    is_scarce = false;
    assert_pending("");
    dv_fake_advance(fake, 999);
    assert_pending("");
    dv_fake_advance(fake, 1);
    answer_get("", 0, 10, 5);
    assert_written(10, 0, 0);
    answer_set(0, 20);
}

/* A roll of a later release stays. One that is ahead of the party is of another ensemble, and goes. */
TEST_IN(test_other_rolls, set_up, tear_down) {
    settle_first('a', "abcd");
    answer_get("{\"v\":2}", 7, 10, 5);
    assert_pending("");
    becomes("abce", 30, 5);
    answer_roll("abcd", 10, "abcz", 99, 0, 30, 5);
    assert_written(30, 1, 10);
    answer_set(0, 31);
}

/* A stop waits for the write that is under way. */
TEST_IN(test_stop, set_up, tear_down) {
    settle_first('a', "abcd");
    answer_get("", 0, 10, 5);
    run_in_turn(dv_roll_watch_stop);
    assert_int_equal(told.gone, 0);
    answer_set(0, 20);
    assert_int_equal(told.gone, 1);
}

/* One that waits for its turn to write is stopped at once, though the watch still waits for an answer. */
TEST_IN(test_stop_before_its_turn, set_up, tear_down) {
    dv_fake_client(fake)->lookouts = 2;
    settle_first('b', "abcd");
    dv_fake_session(fake, DIVVY_SUSPENDED);
    dv_fake_session(fake, DIVVY_CONNECTED);
    assert_pending("exists " PARTY);
    run_in_turn(dv_roll_watch_stop);
    dv_fake_advance(fake, 100);
    assert_pending("exists " PARTY);
    assert_int_equal(told.gone, 0);
    answer_exists(4, 10, 5);
    assert_int_equal(told.gone, 1);
}
