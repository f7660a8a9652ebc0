/* Tests of znode/ensure.h on a scripted backend, where others delete on the way. SPDX-License-Identifier: Apache-2.0 */
#include "znode/ensure.h"

#include "divvy/divvy.h"
#include "lib/fake_znode.h"
#include "lib/test.h"

#define CREATES "create /a, create /a/b, create /a/b/c"

enum { NOT_YET = 1000, LOOKS = 5 };

static dv_fake *fake;
static int result;

static void on_done(void *context, int error, int64_t now) {
    (void)context, (void)now;
    assert_int_equal(result, NOT_YET);
    result = error;
}

static void answer(int error) {
    dv_fake_answer(fake, &(dv_reply){.error = error});
}

/* Nothing is there, and the creates are answered so. */
static void look_and_make(int first, int second, int third) {
    assert_string_equal(dv_fake_pending(fake), "exists /a/b/c");
    answer(DIVVY_ENOENT);
    assert_string_equal(dv_fake_pending(fake), CREATES);
    answer(first);
    answer(second);
    assert_int_equal(result, NOT_YET);
    answer(third);
}

static int set_up(void **state) {
    (void)state;
    fake = dv_fake_open(NULL);
    dv_fake_session(fake, DIVVY_CONNECTED);
    divvy_client *client = dv_fake_client(fake);
    result = NOT_YET;
    dv_client_lock(client);
    assert_int_equal(dv_ensure_path(client->znode, "/a/b/c", DV_PERSISTENT, on_done, NULL), 0);
    dv_client_unlock(client);
    dv_fake_run(fake);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    assert_string_equal(dv_fake_pending(fake), "");
    dv_fake_session(fake, DIVVY_LOST);
    dv_fake_close(fake);
    return 0;
}

/* What is deleted right after it was made is made again. */
TEST(test_deleted_on_the_way) {
    look_and_make(0, DIVVY_ENOENT, DIVVY_ENOENT);
    look_and_make(0, 0, DIVVY_ENOENT);
    look_and_make(DIVVY_EEXIST, 0, 0);
    assert_int_equal(result, 0);
}

/* Not without end. */
TEST(test_deleted_again_and_again) {
    for (int i = 0; i < LOOKS; i++) look_and_make(0, 0, DIVVY_ENOENT);
    assert_int_equal(result, DIVVY_ENOENT);
}

/* Another error says why there is none, also where it comes later. */
TEST(test_refused) {
    look_and_make(DIVVY_ENOENT, DIVVY_EACCES, DIVVY_ENOENT);
    assert_int_equal(result, DIVVY_EACCES);
}

TEST_EACH(set_up, tear_down);
