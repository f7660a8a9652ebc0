/* Tests of registry/cache_budget.c: what is watched, and what is polled. SPDX-License-Identifier: Apache-2.0 */
#include "cache_script.h"

/* A list of /r/a counts 8 bytes, an entry of one letter 10. */
enum { ROLE_BYTES = 8, ENTRY_BYTES = 10 };

static void begin_within(size_t watch_bytes) {
    dv_cache_options options = usual_options;
    options.watch_bytes = watch_bytes;
    begin_cache(client, &options, "a");
    dv_fake_run(fake);
}

/* To the byte: what fits is watched, and counted in the client's budget. */
TEST(test_fits) {
    begin_within(ROLE_BYTES + 2 * ENTRY_BYTES);
    answer_names("xy");
    expect_asked("get! /r/a/x, get! /r/a/y");
    assert_int_equal(client->watched.used_bytes, ROLE_BYTES + 2 * ENTRY_BYTES);
    assert_int_equal(warned.count, 0);
    answer_data("1");
    answer_error(DIVVY_ENOENT);
    assert_int_equal(client->watched.used_bytes, ROLE_BYTES + ENTRY_BYTES);
}

/* A role that no longer fits has no watch at all: it is read at intervals as a whole, which is warned of once,
 * and is primed by that as well. */
TEST(test_polled) {
    begin_within(ROLE_BYTES + 2 * ENTRY_BYTES - 1);
    answer_names("xy");
    assert_int_equal(client->watched.used_bytes, 0);
    expect_asked("get /r/a/x, get /r/a/y");
    answer_data_at("1", 1, 101);
    answer_data_at("2", 1, 102);
    assert_true(is_primed("a"));
    assert_int_equal(warned.count, 1);
    assert_int_equal(warned.code, DIVVY_WARN_POLLED);
    assert_non_null(strstr(warned.text, "/r/a"));
    advance(usual_options.poll_ms - 1);
    expect_asked("");
    advance(1);
    expect_asked("children /r/a");
    answer_names("yz");
    expect_asked("get /r/a/y, get /r/a/z");
    answer_data_at("2", 1, 102);
    answer_data_at("3", 1, 103);
    expect_told("+a/x=1 +a/y=2 -a/x=1 +a/z=3 ");
    assert_int_equal(warned.count, 1);
    assert_int_equal(client->watched.used_bytes, 0);
}

/* A watched role that grows beyond the budget gives all its watches back. */
TEST(test_grows_out) {
    begin_within(ROLE_BYTES + 2 * ENTRY_BYTES);
    answer_names("xy");
    answer_data_at("1", 1, 101);
    answer_data_at("2", 1, 102);
    advance(1000);
    fire("/r/a", DV_WATCH_CHILDREN);
    answer_names("xyz");
    assert_int_equal(client->watched.used_bytes, 0);
    assert_int_equal(warned.count, 1);
    assert_false(dv_fake_is_watched(fake, "/r/a"));
    assert_false(dv_fake_is_watched(fake, "/r/a/x"));
    expect_asked("get /r/a/z");
    answer_data("3");
    expect_told("+a/x=1 +a/y=2 +a/z=3 ");
    advance(usual_options.poll_ms);
    answer_names("xyz");
    expect_asked("get /r/a/x, get /r/a/y, get /r/a/z");
}

/* It is watched again once all of it fits with an eighth to spare; everything is read again then, with watches. */
TEST(test_fits_again) {
    begin_within(ROLE_BYTES + 3 * ENTRY_BYTES);
    answer_names("wxyz");
    for (const char *text = "1234"; *text; text++) answer_data_at((char[]){*text, '\0'}, 1, 100 + *text);
    advance(usual_options.poll_ms);
    answer_names("xyz"); /* 38 of 38 bytes: not enough room to spare */
    for (const char *text = "234"; *text; text++) answer_data_at((char[]){*text, '\0'}, 1, 100 + *text);
    advance(usual_options.poll_ms);
    expect_asked("children /r/a");
    answer_names("xy");
    for (const char *text = "23"; *text; text++) answer_data_at((char[]){*text, '\0'}, 1, 100 + *text);
    told.log[0] = '\0';
    advance(usual_options.poll_ms);
    expect_asked("children! /r/a");
    answer_names("xy");
    expect_asked("get! /r/a/x, get! /r/a/y");
    answer_data_at("5", 1, 300); /* A write from before the watch was set is told, too. */
    answer_data_at("3", 1, 100 + '3');
    expect_told("a/x=2>5 ");
    fire("/r/a/y", DV_WATCH_CHANGED);
    answer_data("6");
    expect_told("a/y=3>6 ");
    advance(usual_options.poll_ms);
    expect_asked("");
    assert_int_equal(warned.count, 1);
}

/* Where another role fits it is watched all the same. */
TEST(test_some_watched_some_polled) {
    begin_within(ROLE_BYTES + 2 * ENTRY_BYTES);
    answer_names("xyz");
    while (dv_fake_oldest(fake)) answer_data("1");
    dv_client_lock(client);
    assert_int_equal(dv_cache_follow(told.cache, "b", NULL), 0);
    dv_client_unlock(client);
    dv_fake_run(fake);
    expect_asked("children! /r/b");
    answer_names("q");
    expect_asked("get! /r/b/q");
    assert_int_equal(client->watched.used_bytes, ROLE_BYTES + ENTRY_BYTES);
}

/* A warning names the first of several roles that do not fit; the next warning comes only after all have fitted
 * again. */
TEST(test_warned_once) {
    begin_within(1);
    dv_client_lock(client);
    assert_int_equal(dv_cache_follow(told.cache, "b", NULL), 0);
    dv_client_unlock(client);
    dv_fake_run(fake);
    expect_asked("children /r/a, children /r/b");
    assert_int_equal(warned.count, 1);
    assert_non_null(strstr(warned.text, "/r/a"));
}

/* A view cannot have the part of the client's budget that others hold. Room that others give back does not wake it:
 * it looks when it polls. */
TEST(test_client_budget) {
    tear_down_script(state);
    open_script(2 * (ROLE_BYTES + ENTRY_BYTES) + 50);
    assert_int_equal(dv_reserve_node(client, 1, 26), 0);
    begin_within(1000);
    expect_asked("children! /r/a");
    answer_names("x");
    expect_asked("get /r/a/x");
    assert_int_equal(client->watched.used_bytes, 26);
    answer_data_at("1", 1, 101);
    dv_client_lock(client);
    dv_release_ephemeral(client, 1);
    dv_release_watch(client, 26);
    dv_client_unlock(client);
    advance(usual_options.poll_ms);
    expect_asked("children! /r/a");
    answer_names("x");
    expect_asked("get! /r/a/x");
}

/* Where not even a list of R fits, R is polled. */
TEST(test_root_polled) {
    dv_cache_options options = usual_options;
    options.watch_bytes = 1;
    begin_cache(client, &options, NULL);
    dv_fake_run(fake);
    expect_asked("children /r");
    answer_names("a");
    expect_asked("children /r/a");
    answer_names("x");
    answer_data("1");
    expect_told("+a/x=1 ");
    assert_true(is_primed(NULL));
    advance(usual_options.poll_ms);
    expect_asked("children /r, children /r/a");
    answer_names("");
    answer_error(DIVVY_ENOENT);
    expect_told("-a/x=1 ");
    advance(usual_options.poll_ms);
    expect_asked("children /r");
}

TEST_EACH(set_up_script, tear_down_script);
