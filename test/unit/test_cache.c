/* Tests of registry/cache.h, request by request, on a scripted backend. SPDX-License-Identifier: Apache-2.0 */
#include "cache_script.h"

/* Role a with entries x and y is in the view, and nothing is under way. */
static void begin_with_two(void) {
    begin("a");
    answer_names("xy");
    answer_data("1");
    answer_data("2");
    expect_told("+a/x=1 +a/y=2 ");
    expect_asked("");
    assert_true(is_primed("a"));
    dv_fake_advance(fake, 1000);
}

/* --- reading ---------------------------------------------------------------------------------------------------- */

/* A role costs one list, and one read for each entry, back to back; it is primed with the last answer. */
TEST(test_primes) {
    begin("a");
    expect_asked("children! /r/a");
    answer_names("xy");
    expect_asked("get! /r/a/x, get! /r/a/y");
    assert_false(is_primed("a"));
    answer_data("1");
    assert_false(is_primed("a"));
    answer_error(DIVVY_ENOENT); /* It went in between: nobody ever hears of it. */
    assert_true(is_primed("a"));
    expect_told("+a/x=1 ");
    assert_false(is_primed(NULL));
    assert_false(is_primed("b"));
}

/* A view of all roles reads R first, then each role. It is primed with the last answer, and a role that comes later
 * does not take that back. */
TEST(test_primes_all) {
    begin(NULL);
    expect_asked("children! /r");
    answer_names("ab");
    expect_asked("children! /r/a, children! /r/b");
    answer_names("x");
    answer_names("");
    assert_true(is_primed("b"));
    assert_false(is_primed(NULL));
    answer_data("1");
    assert_true(is_primed(NULL));
    assert_true(is_primed("c")); /* There is no such role: that is known. */
    dv_fake_advance(fake, 100);
    fire("/r", DV_WATCH_CHILDREN);
    answer_names("abc");
    expect_asked("children! /r/c");
    assert_true(is_primed(NULL));
    assert_false(is_primed("c"));
    answer_names("z");
    answer_data("3");
    assert_true(is_primed("c"));
    expect_told("+a/x=1 +c/z=3 ");
}

/* A change of one entry costs one read of it. */
TEST(test_one_change_one_read) {
    begin_with_two();
    fire("/r/a/y", DV_WATCH_CHANGED);
    expect_asked("get! /r/a/y");
    answer_data("3");
    expect_told("a/y=2>3 ");
    expect_asked("");
}

/* A deletion is told at once, by the entry's own watch, and costs the list that the role's watch asks for, no more. */
TEST(test_deletion) {
    begin_with_two();
    fire("/r/a/x", DV_WATCH_DELETED);
    expect_told("-a/x=1 ");
    fire("/r/a", DV_WATCH_CHILDREN);
    expect_asked("children! /r/a");
    answer_names("y");
    expect_asked("");
    expect_told("");
}

/* An entry has come, and the list no longer has it when its read is answered: the read decides. */
TEST(test_read_decides_over_older_list) {
    begin_with_two();
    fire("/r/a", DV_WATCH_CHILDREN);
    answer_names("xyz");
    expect_asked("get! /r/a/z");
    fire("/r/a", DV_WATCH_CHILDREN);
    dv_fake_advance(fake, DV_CACHE_LIST_INTERVAL_MS);
    expect_asked("get! /r/a/z, children! /r/a");
    answer_error(DIVVY_ENOENT);
    answer_names("xy");
    expect_told("");
    expect_asked("");
}

/* However many children events come, lists are read one at a time, and one each interval at most: 1,000 changes in a
 * second make 20 lists. */
TEST(test_burst_of_changes) {
    begin_with_two();
    unsigned lists = 0;
    for (int i = 0; i < 1000; i++) {
        if (dv_fake_is_watched(fake, "/r/a")) dv_fake_fire(fake, "/r/a", DV_WATCH_CHILDREN, true);
        if (dv_fake_oldest(fake)) {
            expect_asked("children! /r/a");
            lists++;
            answer_names("xy");
        }
        dv_fake_advance(fake, 1);
    }
    assert_in_range(lists, 10, 1000 / DV_CACHE_LIST_INTERVAL_MS + 1);
    expect_told("");
}

/* A watch that fires while a list or a read is under way is not forgotten. */
TEST(test_fires_while_reading) {
    begin_with_two();
    dv_fake_advance(fake, DV_CACHE_AUDIT_MS); /* an audit: everything is read though nothing fired */
    expect_asked("children! /r/a");
    assert_true(dv_fake_fire(fake, "/r/a", DV_WATCH_CHILDREN, false));
    answer_names("xy");
    expect_asked("children! /r/a, get! /r/a/x, get! /r/a/y");
    answer_names("xy");
    assert_true(dv_fake_fire(fake, "/r/a/x", DV_WATCH_CHANGED, false));
    answer_data_at("1", 1, 102);
    answer_data_at("2", 1, 103);
    expect_asked("get! /r/a/x");
    answer_data("3");
    expect_told("a/x=1>3 ");
    expect_asked("");
}

/* A version of an entry is told once, however often it is read. */
TEST(test_audit_tells_nothing_twice) {
    begin_with_two();
    size_t parsed = told.parsed;
    dv_fake_advance(fake, DV_CACHE_AUDIT_MS);
    answer_names("xy");
    answer_data_at("1", 1, 102);
    answer_data_at("2", 1, 103);
    expect_told("");
    assert_int_equal(told.parsed, parsed);
    dv_fake_advance(fake, DV_CACHE_AUDIT_MS); /* A change whose event was lost. */
    answer_names("xy");
    answer_data_at("9", 1, 109);
    answer_data_at("2", 1, 103);
    expect_told("a/x=1>9 ");
}

/* A view reads so many of 1,000 entries at a time, and the others as answers come. */
TEST(test_reads_are_bounded) {
    enum { ENTRIES = 1000 };
    static const char *names[ENTRIES];
    static char texts[ENTRIES][8];
    for (int i = 0; i < ENTRIES; i++) {
        snprintf(texts[i], sizeof texts[i], "e%d", i);
        names[i] = texts[i];
    }
    begin("a");
    told.quiet = true;
    dv_fake_answer(fake, &(dv_reply){.children = names, .child_count = ENTRIES, .stat = &(dv_stat){.pzxid = 5}});
    unsigned answered = 0, most = 0;
    while (dv_fake_oldest(fake)) {
        unsigned under_way = 0;
        for (const dv_fake_request *r = dv_fake_oldest(fake); r; r = r->next) under_way++;
        if (under_way > most) most = under_way;
        assert_false(is_primed("a"));
        answer_data("1");
        answered++;
    }
    assert_int_equal(answered, ENTRIES);
    assert_int_equal(most, DV_CACHE_IN_FLIGHT_MAX);
    assert_int_equal(told.shown, ENTRIES);
    assert_true(is_primed("a"));
}

/* --- what is read ----------------------------------------------------------------------------------------------- */

/* A node that holds no entry is passed over, and does not hold the others up; once it is written well it comes. */
TEST(test_malformed) {
    begin("a");
    answer_names("xy");
    answer_data("bad");
    answer_data("2");
    expect_told("+a/y=2 ");
    assert_true(is_primed("a"));
    fire("/r/a/x", DV_WATCH_CHANGED);
    answer_data("1");
    expect_told("+a/x=1 ");
    fire("/r/a/x", DV_WATCH_CHANGED);
    answer_data("bad again");
    expect_told("-a/x=1 ");
    fire("/r/a/x", DV_WATCH_DELETED);
    expect_told("");
}

/* A node that may not be read is not in the view, and is tried again with the next audit. */
TEST(test_no_access) {
    begin("a");
    answer_names("x");
    answer_error(DIVVY_EACCES);
    assert_true(is_primed("a"));
    expect_asked("");
    dv_fake_advance(fake, DV_CACHE_AUDIT_MS);
    answer_names("x");
    expect_asked("get! /r/a/x");
    answer_data("1");
    expect_told("+a/x=1 ");
}

/* A node that may not be read for a while leaves the view, and comes back though nobody has written it since. */
TEST(test_access_comes_back) {
    begin_with_two();
    dv_fake_advance(fake, DV_CACHE_AUDIT_MS);
    answer_names("xy");
    answer_error(DIVVY_EACCES);
    answer_data_at("2", 1, 103);
    expect_told("-a/x=1 ");
    dv_fake_advance(fake, DV_CACHE_AUDIT_MS);
    answer_names("xy");
    answer_data_at("1", 1, 102);
    expect_told("+a/x=1 ");
}

/* What there was no memory for is asked for again after a moment, and nothing else before. */
TEST(test_memory_is_short) {
    begin("a");
    answer_error(DIVVY_ENOMEM);
    expect_asked("");
    dv_fake_advance(fake, DV_CACHE_RETRY_MS);
    answer_names("xy");
    answer_error(DIVVY_ENOMEM);
    answer_data("2");
    expect_told("+a/y=2 ");
    fire("/r/a/y", DV_WATCH_CHANGED);
    expect_asked("");
    dv_fake_advance(fake, DV_CACHE_RETRY_MS);
    expect_asked("get! /r/a/x, get! /r/a/y");
    answer_data("1");
    answer_data("3");
    expect_told("+a/x=1 a/y=2>3 ");
    assert_true(is_primed("a"));
}

/* A role that may not be listed is never primed, and is tried again at intervals. */
TEST(test_role_without_access) {
    begin("a");
    answer_error(DIVVY_EACCES);
    assert_false(is_primed("a"));
    expect_asked("");
    dv_fake_advance(fake, usual_options.poll_ms);
    expect_asked("children! /r/a");
    answer_names("");
    assert_true(is_primed("a"));
}

/* A role that is missing is primed and empty; its creation is watched, and its going and coming back too. */
TEST(test_role_comes_and_goes) {
    begin("a");
    answer_error(DIVVY_ENOENT);
    assert_true(is_primed("a"));
    expect_asked("exists! /r/a");
    answer_error(DIVVY_ENOENT);
    expect_asked("");
    dv_fake_advance(fake, 1000);
    fire("/r/a", DV_WATCH_CREATED);
    expect_asked("children! /r/a");
    answer_names("x");
    answer_data("1");
    expect_told("+a/x=1 ");
    dv_fake_advance(fake, 1000);
    fire("/r/a/x", DV_WATCH_DELETED);
    fire("/r/a", DV_WATCH_DELETED);
    answer_error(DIVVY_ENOENT);
    expect_asked("exists! /r/a");
    dv_fake_answer(fake, &(dv_reply){.stat = &(dv_stat){.czxid = 200}}); /* It is there again. */
    expect_asked("children! /r/a");
    answer_names("x");
    answer_data("2");
    expect_told("-a/x=1 +a/x=2 ");
    assert_true(is_primed("a"));
}

/* R itself may be missing. */
TEST(test_root_comes) {
    begin(NULL);
    answer_error(DIVVY_ENOENT);
    expect_asked("exists! /r");
    assert_true(is_primed(NULL));
    answer_error(DIVVY_ENOENT);
    dv_fake_advance(fake, 1000);
    fire("/r", DV_WATCH_CREATED);
    answer_names("a");
    answer_names("x");
    answer_data("1");
    expect_told("+a/x=1 ");
}

/* With all of them watched a role that goes takes its entries along, also where its own watch says nothing; the role
 * is not asked about again until R lists it. */
TEST(test_role_gone_from_root) {
    begin(NULL);
    answer_names("a");
    answer_names("x");
    answer_data("1");
    dv_fake_advance(fake, 1000);
    fire("/r/a", DV_WATCH_DELETED);
    answer_error(DIVVY_ENOENT);
    expect_told("+a/x=1 -a/x=1 ");
    dv_fake_advance(fake, 1000);
    expect_asked("");
    fire("/r", DV_WATCH_CHILDREN);
    answer_names("");
    assert_int_equal(client->watched.used_bytes, dv_path_cost("/r"));
    dv_fake_advance(fake, 1000);
    fire("/r", DV_WATCH_CHILDREN);
    answer_names("a");
    answer_names("x");
    answer_data("2");
    expect_told("+a/x=2 ");
}

/* --- sessions --------------------------------------------------------------------------------------------------- */

/* On the same session lists are read again, entries only where a read was cut off. */
TEST(test_reconnect) {
    begin_with_two();
    fire("/r/a/x", DV_WATCH_CHANGED);
    dv_fake_session(fake, DIVVY_SUSPENDED);
    assert_true(is_primed("a"));
    dv_fake_session(fake, DIVVY_CONNECTED);
    answer_names("xy");
    expect_asked("get! /r/a/x");
    answer_data("3");
    expect_told("a/x=1>3 ");
    expect_asked("");
}

/* After a loss the view stays as it was, and is not primed; nothing is sent before there is a connection. */
TEST(test_loss) {
    begin_with_two();
    fire("/r/a/x", DV_WATCH_CHANGED);
    dv_fake_session(fake, DIVVY_LOST);
    while (dv_fake_oldest(fake)) answer_error(DIVVY_ELOST);
    assert_false(is_primed("a"));
    expect_told("");
    assert_int_equal(told.shown, 2);
    assert_int_equal(dv_cache_follow(told.cache, "b", NULL), 0);
    dv_fake_advance(fake, DV_CACHE_AUDIT_MS);
    expect_asked("");
}

/* --- the end ---------------------------------------------------------------------------------------------------- */

/* A role that is wanted no more is silent, whatever is under way, and gives its watches back. */
TEST(test_unwant) {
    begin_with_two();
    fire("/r/a/x", DV_WATCH_CHANGED);
    dv_client_lock(client);
    dv_cache_unfollow(told.cache, "a");
    dv_client_unlock(client);
    assert_int_equal(client->watched.used_bytes, 0);
    answer_data("3");
    expect_told("");
    assert_false(is_primed("a"));
    dv_client_lock(client);
    assert_int_equal(dv_cache_follow(told.cache, "a", NULL), 0); /* and may be wanted again */
    dv_client_unlock(client);
    dv_fake_run(fake);
    answer_names("x");
    answer_data("4");
    expect_told("+a/x=4 ");
}

/* A role that is wanted for itself and with all others stays while either wants it. */
TEST(test_wanted_twice) {
    begin("a");
    answer_names("x");
    answer_data("1");
    dv_client_lock(client);
    assert_int_equal(dv_cache_follow(told.cache, NULL, NULL), 0);
    dv_client_unlock(client);
    dv_fake_run(fake);
    answer_names("a");
    expect_asked(""); /* It is watched already. */
    assert_true(is_primed(NULL));
    dv_client_lock(client);
    dv_cache_unfollow(told.cache, "a");
    dv_client_unlock(client);
    assert_true(is_primed("a"));
    fire("/r/a/x", DV_WATCH_CHANGED);
    answer_data("2");
    expect_told("+a/x=1 a/x=1>2 ");
    dv_client_lock(client);
    dv_cache_unfollow(told.cache, NULL);
    dv_client_unlock(client);
    assert_false(is_primed("a"));
    assert_int_equal(client->watched.used_bytes, 0);
}

/* It goes with the last answer, and nothing is told after the stop. */
TEST(test_stop_while_reading) {
    begin("a");
    answer_names("xy");
    end_cache(client);
    assert_int_equal(told.gone, 0);
    assert_int_equal(client->watched.used_bytes, 0);
    answer_data("1");
    assert_int_equal(told.gone, 0);
    answer_data("2");
    assert_int_equal(told.gone, 1);
    expect_told("");
}

TEST_EACH(set_up_script, tear_down_script);
