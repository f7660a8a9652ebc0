/* Tests of divvy/semaphore.h on a scripted backend, where it matters which answer comes when.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "divvy/divvy.h"
#include "lib/fake_znode.h"
#include "lib/test.h"

#define PLACE "/s-__lock__/" DV_FAKE_GUID "1__lock__0000000000"
#define NEXT_PLACE "/s-__lock__/" DV_FAKE_GUID "3__lock__0000000001"
#define READ_BOTH "get! /s, children! /s"

enum { NEVER = 1000, POOL_CZXID = 5 };

static dv_fake *fake;
static divvy_semaphore *semaphore;
static int result;

static void on_done(divvy_semaphore *s, int told, void *user) {
    (void)user;
    assert_ptr_equal(s, semaphore);
    result = told;
}

static void assert_pending(const char *text) {
    assert_string_equal(dv_fake_pending(fake), text);
}

/* Answers the oldest request, a read of the pool: its limit, and how often it was set. */
static void answer_limit(const char *limit, int32_t version) {
    dv_fake_answer(fake, &(dv_reply){.data = limit,
                                     .data_bytes = strlen(limit),
                                     .stat = &(dv_stat){.czxid = POOL_CZXID, .version = version}});
}

/* Answers the oldest request, a list. */
static void answer_list(const char *name, int32_t version) {
    dv_fake_answer(fake, &(dv_reply){.children = &name,
                                     .child_count = name ? 1 : 0,
                                     .stat = &(dv_stat){.czxid = POOL_CZXID, .version = version}});
}

static int set_up(void **state) {
    (void)state;
    fake = dv_fake_open(NULL);
    dv_fake_session(fake, DIVVY_CONNECTED);
    divvy_semaphore_config config = DIVVY_SEMAPHORE_CONFIG_INIT;
    config.path = "/s";
    config.limit = 2;
    result = NEVER;
    assert_int_equal(divvy_semaphore_create(&semaphore, dv_fake_client(fake), &config), 0);
    assert_int_equal(divvy_semaphore_acquire_async(semaphore, -1, on_done, NULL), 0);
    dv_fake_run(fake);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    divvy_semaphore_destroy(semaphore);
    dv_fake_run(fake);
    dv_fake_session(fake, DIVVY_LOST);
    dv_fake_close(fake);
    return 0;
}

/* First in the queue, with a pool that was set `version` times. The list of it is of `list_version`. */
static void come_first(int32_t version, int32_t list_version) {
    assert_pending("get /s, sequential /s-__lock__/#1__lock__, children /s-__lock__, children /s");
    answer_limit("2", version);
    dv_fake_answer(fake, &(dv_reply){.path = PLACE, .stat = &(dv_stat){.czxid = 6}});
    answer_list(strrchr(PLACE, '/') + 1, 0);
    assert_pending("children /s");
    answer_list(NULL, list_version);
}

/* E4: a list of the pool counts only beside the limit of the same version; else both are read again, however often. */
TEST(test_list_of_another_version) {
    come_first(1, 0);
    for (int32_t version = 1; version < 4; version++) {
        assert_pending(READ_BOTH);
        answer_limit("2", version);
        answer_list(NULL, version - 1);
    }
    assert_pending(READ_BOTH);
    answer_limit("2", 4);
    answer_list(NULL, 4);
    assert_non_null(strstr(dv_fake_pending(fake), "multi [set /s; ephemeral /s/#"));
}

/* E6: where the answer to the admission says too little, the lease is looked at. Where somebody has
 * deleted it, the place in the queue has gone as well, and all begins again. */
TEST(test_lease_deleted_at_once) {
    come_first(0, 0);
    assert_non_null(strstr(dv_fake_pending(fake), "multi [set /s; ephemeral /s/#"));
    dv_fake_answer_multi(fake, 0, (dv_reply[3]){{0}});
    assert_non_null(strstr(dv_fake_pending(fake), "exists /s/#"));
    dv_fake_answer(fake, &(dv_reply){.error = DIVVY_ENOENT});
    assert_pending("exists /s, exists /s-__lock__");
    assert_int_equal(result, NEVER);
}

/* E7: one that waits reads the list again when that has changed, and nothing else, and is admitted by it. */
TEST(test_admitted_by_the_list_alone) {
    assert_pending("get /s, sequential /s-__lock__/#1__lock__, children /s-__lock__, children /s");
    answer_limit("2", 0);
    dv_fake_answer(fake, &(dv_reply){.path = PLACE, .stat = &(dv_stat){.czxid = 6}});
    answer_list(strrchr(PLACE, '/') + 1, 0);
    answer_list("a,n=0,c=2", 0);
    assert_pending(READ_BOTH);
    answer_limit("2", 0);
    answer_list("a,n=0,c=2", 0);
    assert_pending("");
    assert_true(dv_fake_has_timers(fake)); /* E2: full for long */
    assert_true(dv_fake_fire(fake, "/s", DV_WATCH_CHILDREN, true));
    assert_pending("children /s");
    answer_list(NULL, 0);
    assert_non_null(strstr(dv_fake_pending(fake), "multi [set /s; ephemeral /s/#"));
    dv_stat stat = {.mzxid = 7, .czxid = POOL_CZXID};
    dv_fake_answer_multi(fake, 0, (dv_reply[3]){{.stat = &stat}});
    assert_int_equal(result, 0);
    assert_true(divvy_semaphore_held(semaphore));
    assert_int_equal(dv_fake_client(fake)->watched.used_bytes, 0); /* E7: nobody else watches the pool */
}

static void answer_holders(const char *const *names, size_t count) {
    dv_fake_answer(fake, &(dv_reply){.children = names, .child_count = count, .stat = &(dv_stat){.czxid = POOL_CZXID}});
}

/* K4: a try waits for slots of its own that are on their way out. Here the node of the slot is looked for (K6) as it is
 * given back, so that the delete goes behind the list. */
TEST(test_try_waits_for_own) {
    const char *const before[] = {"a,n=1,c=1", DV_FAKE_GUID "2,n=0,c=1"}, *const after[] = {"a,n=1,c=1"};
    come_first(0, 0);
    dv_fake_answer_multi(fake, 0, (dv_reply[3]){{.stat = &(dv_stat){.mzxid = 7, .czxid = POOL_CZXID}}});
    assert_int_equal(result, 0);
    dv_fake_advance(fake, dv_fake_client(fake)->timeout_ms / 2);
    assert_pending("exists /s/#2,n=0,c=1");
    assert_int_equal(divvy_semaphore_release(semaphore), 0);
    result = NEVER;
    assert_int_equal(divvy_semaphore_acquire_async(semaphore, 0, on_done, NULL), 0);
    dv_fake_run(fake);
    assert_pending(
        "exists /s/#2,n=0,c=1, get /s, sequential /s-__lock__/#3__lock__, children /s-__lock__, children /s");
    dv_fake_answer(fake, &(dv_reply){.stat = &(dv_stat){.czxid = 7}});
    answer_limit("2", 0);
    dv_fake_answer(fake, &(dv_reply){.path = NEXT_PLACE, .stat = &(dv_stat){.czxid = 8}});
    answer_list(strrchr(NEXT_PLACE, '/') + 1, 0);
    answer_holders(before, 2);
    assert_int_equal(result, NEVER);
    assert_pending("delete /s/#2,n=0,c=1, get! /s, children! /s");
    dv_fake_answer(fake, &(dv_reply){0});
    answer_limit("2", 0);
    answer_holders(after, 1);
    assert_non_null(strstr(dv_fake_pending(fake), "multi [set /s; ephemeral /s/#"));
    dv_fake_answer_multi(fake, 0, (dv_reply[3]){{.stat = &(dv_stat){.mzxid = 9, .czxid = POOL_CZXID}}});
    assert_int_equal(result, 0);
}

/* E3: a pool that cannot be read ends the acquire at once. */
TEST(test_pool_refused) {
    dv_fake_answer(fake, &(dv_reply){.error = DIVVY_EACCES});
    assert_int_equal(result, DIVVY_EACCES);
}

/* So does one whose leases cannot be listed. */
TEST(test_list_refused) {
    come_first(1, 0);
    assert_pending(READ_BOTH);
    answer_limit("2", 1);
    dv_fake_answer(fake, &(dv_reply){.error = DIVVY_EACCES});
    assert_int_equal(result, DIVVY_EACCES);
}

/* Where an answer tells the end of the session, and then the session does, nothing is watched any longer. */
TEST(test_session_over) {
    come_first(1, 0);
    assert_pending(READ_BOTH);
    answer_limit("2", 1);
    assert_true(dv_fake_is_watched(fake, "/s"));
    dv_fake_answer(fake, &(dv_reply){.error = DIVVY_ELOST});
    dv_fake_session(fake, DIVVY_LOST);
    assert_false(dv_fake_is_watched(fake, "/s"));
}

TEST_EACH(set_up, tear_down);
