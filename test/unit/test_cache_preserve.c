/* Tests of registry/cache_preserve.c: self-preservation, on a virtual clock. SPDX-License-Identifier: Apache-2.0 */
#include "cache_script.h"

enum { SETTLE_MS = 4000, MAX_MS = 60000 };

/* Role a with one entry for each letter is in the view; each one's data are its name. */
static void begin_preserving(double share, const char *letters) {
    dv_cache_options options = usual_options;
    options.preserve_share = share;
    options.preserve_settle_ms = SETTLE_MS;
    options.preserve_max_ms = MAX_MS;
    begin_cache(client, &options, "a");
    dv_fake_run(fake);
    answer_names(letters);
    for (const char *c = letters; *c; c++) answer_data((char[]){*c, '\0'});
    advance(1000);
    told.log[0] = '\0';
}

static void vanish(const char *letters) {
    for (const char *c = letters; *c; c++) {
        char path[] = "/r/a/?";
        path[sizeof path - 2] = *c;
        fire(path, DV_WATCH_DELETED);
    }
}

/* The role is listed again, with these; those who come are read. */
static void list(const char *letters) {
    fire("/r/a", DV_WATCH_CHILDREN);
    if (!dv_fake_oldest(fake)) advance(DV_CACHE_LIST_INTERVAL_MS);
    answer_names(letters);
}

/* A deleted entry stays in the view as long as others may follow, and then is gone. */
TEST(test_one_goes) {
    begin_preserving(0.3, "abc");
    vanish("a");
    expect_told("~a/a=a ");
    list("bc");
    advance(SETTLE_MS - 1);
    expect_told("");
    advance(1);
    expect_told("-a/a~a ");
    assert_int_equal(warned.count, 0);
}

/* Exactly the share is not more than it: gone after the settle time, all of them. */
TEST(test_exactly_the_share) {
    begin_preserving(0.5, "abcd");
    vanish("ab");
    expect_told("~a/a=a ~a/b=b ");
    advance(SETTLE_MS);
    expect_told("-a/b~b -a/a~a ");
    assert_int_equal(warned.count, 0);
}

/* More than the share within the settle time: they are kept, one warning says so, and after the longest time they
 * go. */
TEST(test_mass) {
    begin_preserving(0.5, "abcd");
    vanish("a");
    advance(SETTLE_MS - 1);
    vanish("bc");
    advance(1);
    expect_told("~a/a=a ~a/b=b ~a/c=c ");
    assert_int_equal(warned.count, 1);
    assert_int_equal(warned.code, DIVVY_WARN_PRESERVED);
    assert_non_null(strstr(warned.text, "3 of the 4 entries of /r/a"));
    list("d");
    advance(MAX_MS - SETTLE_MS - 2 * DV_CACHE_LIST_INTERVAL_MS);
    expect_told("");
    assert_int_equal(told.shown, 4);
    while (dv_fake_oldest(fake)) answer_error(DIVVY_ECONNECTION);
    advance(2 * DV_CACHE_LIST_INTERVAL_MS);
    expect_told("-a/c~c -a/b~b -a/a~a ");
    assert_int_equal(warned.count, 1);
}

/* More than the share, but one at a time with the settle time in between, is no mass. */
TEST(test_trickle) {
    begin_preserving(0.3, "abcd");
    vanish("a");
    advance(SETTLE_MS);
    vanish("b");
    advance(SETTLE_MS);
    vanish("c");
    advance(SETTLE_MS);
    expect_told("~a/a=a -a/a~a ~a/b=b -a/b~b ~a/c=c -a/c~c ");
}

/* An entry that comes back is a change, whatever its node is now. With the last one that the share needs, the rest
 * goes. */
TEST(test_share_recovers) {
    begin_preserving(0.5, "abcd");
    vanish("abc");
    advance(SETTLE_MS);
    told.log[0] = '\0';
    list("bd");
    answer_data_at("B", 900, 900);
    expect_told("a/b~b>B -a/c~c -a/a~a ");
    list("bcd");
    answer_data("C");
    expect_told("+a/c=C ");
}

/* Others that come in their place count as much: where the share stands by the end of the settle time nothing is
 * kept. */
TEST(test_replaced_by_others) {
    begin_preserving(0.5, "abcd");
    vanish("abc");
    told.log[0] = '\0';
    list("def");
    answer_data("e");
    answer_data("f");
    advance(SETTLE_MS);
    expect_told("+a/e=e +a/f=f -a/c~c -a/b~b -a/a~a ");
    assert_int_equal(warned.count, 0);
}

/* An entry that comes back within the settle time is a change, and counts as never gone. */
TEST(test_back_at_once) {
    begin_preserving(0.5, "abcd");
    vanish("abc");
    list("abcd");
    answer_data_at("A", 900, 901);
    answer_data_at("B", 900, 902);
    answer_data_at("C", 900, 903);
    told.log[0] = '\0';
    advance(SETTLE_MS);
    expect_told("");
    assert_int_equal(warned.count, 0);
    assert_int_equal(told.shown, 4);
}

/* An entry that was no longer healthy is not kept, and does not count, before or after. */
TEST(test_unhealthy_do_not_count) {
    begin_preserving(0.5, "ab");
    list("abxyz");
    for (int i = 0; i < 3; i++) answer_data("sick");
    told.log[0] = '\0';
    vanish("xyz");
    expect_told("-a/x=sick -a/y=sick -a/z=sick ");
    vanish("ab");
    advance(SETTLE_MS);
    expect_told("~a/a=a ~a/b=b ");
    assert_non_null(strstr(warned.text, "2 of the 2"));
}

/* The last of a role that goes is kept while others may follow only. */
TEST(test_last_one) {
    begin_preserving(0.5, "a");
    vanish("a");
    advance(SETTLE_MS);
    expect_told("~a/a=a -a/a~a ");
    assert_int_equal(warned.count, 0);
}

/* A role whose directory vanishes with all that is in it is kept, too, and gone for good after the longest time. */
TEST(test_role_vanishes) {
    begin_preserving(0.5, "ab");
    vanish("ab");
    fire("/r/a", DV_WATCH_DELETED);
    answer_error(DIVVY_ENOENT);
    answer_error(DIVVY_ENOENT); /* it is not there yet again */
    advance(SETTLE_MS);
    assert_int_equal(told.shown, 2);
    advance(MAX_MS);
    assert_int_equal(told.shown, 0);
}

/* An entry that goes during a lost connection is judged when that is seen, like any other; the episode goes on over
 * a reconnect. */
TEST(test_over_a_reconnect) {
    begin_preserving(0.5, "abcd");
    dv_fake_session(fake, DIVVY_SUSPENDED);
    dv_fake_session(fake, DIVVY_CONNECTED);
    answer_names("d");
    expect_told("~a/c=c ~a/b=b ~a/a=a ");
    dv_fake_session(fake, DIVVY_SUSPENDED);
    advance(SETTLE_MS);
    assert_int_equal(warned.count, 1);
    assert_int_equal(told.shown, 4);
    dv_fake_session(fake, DIVVY_CONNECTED);
    answer_names("abcd");
    for (int i = 0; i < 3; i++) answer_data("again");
    assert_int_equal(told.shown, 4);
    advance(MAX_MS - 2 * SETTLE_MS);
    assert_int_equal(told.shown, 4);
}

/* A role that is wanted no more keeps nothing. */
TEST(test_unwant) {
    begin_preserving(0.5, "abcd");
    vanish("abc");
    advance(SETTLE_MS);
    dv_client_lock(client);
    dv_cache_unfollow(told.cache, "a");
    dv_client_unlock(client);
    advance(MAX_MS);
    assert_int_equal(client->watched.used_bytes, 0);
}

TEST_EACH(set_up_script, tear_down_script);
