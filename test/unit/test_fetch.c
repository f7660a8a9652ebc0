/* Tests of recipe/fetch.h, on a scripted backend. SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "lib/fake_znode.h"
#include "lib/test.h"
#include "recipe/fetch.h"

enum { UNDER_WAY = -1 };

static dv_fake *fake;
static dv_fetch *fetch;
static const char *const names[] = {"a", "b", "c"};

/* The results that the owner was told. */
static char taken[64];
static int result, refuses;
static bool holds;

static int take(void *owner, const char *path, const dv_reply *reply, int64_t now) {
    (void)reply, (void)now;
    assert_ptr_equal(owner, &result);
    assert_int_equal(result, UNDER_WAY);
    strcat(taken, path);
    if (holds) dv_fetch_hold(fetch);
    return refuses;
}

static void done(void *owner, int error, int64_t now) {
    (void)now;
    assert_ptr_equal(owner, &result);
    assert_int_equal(result, UNDER_WAY);
    result = error;
    fetch = NULL;
}

static const dv_fetch_kind kind = {DV_EXISTS, 2, take, done};

static int set_up(void **state) {
    (void)state;
    fake = dv_fake_open(NULL);
    dv_fake_session(fake, DIVVY_CONNECTED);
    taken[0] = '\0';
    result = UNDER_WAY;
    refuses = 0;
    holds = false;
    dv_client_lock(dv_fake_client(fake));
    assert_int_equal(dv_fetch_start(&fetch, dv_fake_client(fake), &kind, "/y", names, 3, &result), 0);
    dv_client_unlock(dv_fake_client(fake));
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    dv_fake_close(fake);
    return 0;
}

static void answer(void) {
    dv_fake_answer(fake, &(dv_reply){.stat = &(dv_stat){.version = 1}});
}

static void release(void) {
    dv_client_lock(dv_fake_client(fake));
    dv_fetch_release(fetch, dv_fake_now(fake));
    dv_client_unlock(dv_fake_client(fake));
}

/* No more are under way than the window allows, and done() comes after the last answer. */
TEST(test_window) {
    assert_string_equal(dv_fake_pending(fake), "exists /y/a, exists /y/b");
    answer();
    assert_string_equal(dv_fake_pending(fake), "exists /y/b, exists /y/c");
    answer();
    assert_int_equal(result, UNDER_WAY);
    answer();
    assert_int_equal(result, 0);
    assert_string_equal(taken, "/y/a/y/b/y/c");
}

/* After an error nothing is sent, and what is under way is still heard. The first error is the result. */
TEST(test_error) {
    refuses = DIVVY_EPROTO;
    answer();
    assert_string_equal(dv_fake_pending(fake), "exists /y/b");
    refuses = DIVVY_EACCES;
    answer();
    assert_int_equal(result, DIVVY_EPROTO);
    assert_string_equal(taken, "/y/a/y/b");
}

/* An owner that stops it hears the answers that are under way, and its own error. */
TEST(test_stop) {
    dv_fetch_stop(fetch, DIVVY_ECANCELED);
    answer();
    assert_string_equal(dv_fake_pending(fake), "exists /y/b");
    answer();
    assert_int_equal(result, DIVVY_ECANCELED);
    assert_string_equal(taken, "/y/a/y/b");
}

/* An owner that has gone hears nothing. */
TEST(test_abandon) {
    answer();
    dv_fetch_abandon(fetch);
    answer();
    answer();
    assert_string_equal(dv_fake_pending(fake), "");
    assert_int_equal(result, UNDER_WAY);
    assert_string_equal(taken, "/y/a");
}

/* A request that an answer led to takes that answer's place in the window, and keeps done() away. */
TEST(test_hold) {
    holds = true;
    answer();
    assert_string_equal(dv_fake_pending(fake), "exists /y/b");
    release();
    assert_string_equal(dv_fake_pending(fake), "exists /y/b, exists /y/c");
    answer();
    answer();
    release();
    assert_int_equal(result, UNDER_WAY);
    release();
    assert_int_equal(result, 0);
}

TEST_EACH(set_up, tear_down);
