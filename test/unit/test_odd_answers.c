/* Tests of client/odd_answers.h on a scripted backend: what a warning of a quota tells. SPDX-License-Identifier:
 * Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "divvy/divvy.h"
#include "lib/fake_znode.h"
#include "lib/test.h"
#include "recipe/request.h"

static dv_fake *fake;
static int warnings;
static char said[512];

static void on_warning(divvy_client *client, int code, const char *message, void *user) {
    (void)client, (void)user;
    if (code != DIVVY_WARN_QUOTA) return;
    warnings++;
    snprintf(said, sizeof said, "%s", message);
}

static int set_up(void **state) {
    (void)state;
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.on_warning = on_warning;
    warnings = 0;
    fake = dv_fake_open(&config);
    dv_fake_session(fake, DIVVY_CONNECTED);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    dv_fake_session(fake, DIVVY_LOST);
    dv_fake_close(fake);
    return 0;
}

/* A write of the path was refused by a quota. */
static void refuse(const char *path) {
    divvy_client *client = dv_fake_client(fake);
    const dv_op op = {.kind = DV_CREATE, .path = path};
    const dv_odd_answer answer = {.meaning = {.error = DIVVY_EQUOTA}, .op = &op};
    dv_client_lock(client);
    client->znode->again.tell(client->znode->again.context, &answer, dv_fake_now(fake));
    dv_client_unlock(client);
    dv_fake_run(fake);
}

static void answer_limits(const char *limits, size_t bytes) {
    dv_fake_answer(fake, &(dv_reply){.data = limits, .data_bytes = bytes, .stat = &(dv_stat){0}});
}

/* The nearest quota above is named, with its limits. What is no visible character of them is shown as a question mark,
 * and what is too long is cut. */
TEST(test_limits) {
    refuse("/a/l");
    assert_string_equal(dv_fake_pending(fake), "get /zookeeper/quota/a/l/zookeeper_limits");
    dv_fake_answer(fake, &(dv_reply){.error = DIVVY_ENOENT});
    assert_string_equal(dv_fake_pending(fake), "get /zookeeper/quota/a/zookeeper_limits");
    assert_int_equal(warnings, 0);
    static const char limits[] = "count=1\x1f \x7f\x80~!";
    answer_limits(limits, sizeof limits - 1);
    dv_fake_run(fake);
    assert_int_equal(warnings, 1);
    if (!strstr(said, "quota of /a (count=1????~!)")) fail_msg("%s", said);
}

/* Limits are cut to one byte less than there is room for. */
TEST(test_long_limits) {
    char limits[DV_QUOTA_TEXT_BYTES], shown[DV_QUOTA_TEXT_BYTES + 4];
    memset(limits, 'x', sizeof limits);
    snprintf(shown, sizeof shown, " (%.*s) ", DV_QUOTA_TEXT_BYTES - 1, limits);
    refuse("/a");
    answer_limits(limits, sizeof limits);
    dv_fake_run(fake);
    if (!strstr(said, shown)) fail_msg("%s", said);
}

/* A known quota is told of once, and again after a minute; that of another node is looked for at once. */
TEST(test_told_once) {
    refuse("/a/l");
    answer_limits("1", 1);
    dv_fake_run(fake);
    assert_int_equal(warnings, 1);
    assert_non_null(strstr(said, "quota of /a/l (1)"));
    refuse("/a/l/m");
    refuse("/a/l");
    dv_fake_advance(fake, 59999);
    refuse("/a/l");
    assert_string_equal(dv_fake_pending(fake), "");
    dv_fake_advance(fake, 1);
    refuse("/a/l");
    assert_string_equal(dv_fake_pending(fake), "get /zookeeper/quota/a/l/zookeeper_limits");
    answer_limits("1", 1);
    dv_fake_run(fake);
    assert_int_equal(warnings, 2);
    refuse("/a/lm");
    assert_string_equal(dv_fake_pending(fake), "get /zookeeper/quota/a/lm/zookeeper_limits");
}

/* While it is looked for whose quota is used up, any below or above the refused path may be; then those below it. */
TEST(test_whose_quota) {
    const divvy_client *client = dv_fake_client(fake);
    refuse("/a");
    answer_limits("1", 1);
    assert_true(dv_client_quota_refuses(client, "/a/l", 0));
    refuse("/b/c");
    assert_true(dv_client_quota_refuses(client, "/b", 0));
    assert_true(dv_client_quota_refuses(client, "/b/c/d", 0));
    assert_false(dv_client_quota_refuses(client, "/a", 0));
    answer_limits("1", 1);
    assert_false(dv_client_quota_refuses(client, "/b", 0));
    assert_true(dv_client_quota_refuses(client, "/b/c/d", 0));
}

/* What is put off is sent at the earliest time that was asked for. */
TEST(test_earliest) {
    divvy_client *client = dv_fake_client(fake);
    const dv_again *again = &client->znode->again;
    int64_t now = dv_fake_now(fake);
    dv_client_lock(client);
    again->wake(again->context, now + 2000);
    again->wake(again->context, now + 500);
    again->wake(again->context, now + 1000);
    assert_int_equal(client->odd.timer.at, now + 500);
    dv_client_unlock(client);
    dv_fake_advance(fake, 500);
    assert_null(client->odd.timer.link);
}

static int refuse_by_quota(void *context, dv_deadline deadline) {
    (void)context, (void)deadline;
    return DIVVY_EQUOTA;
}

/* A call that asks again and again is late when its time is over, whatever has refused it last. */
TEST(test_late) {
    divvy_client *client = dv_fake_client(fake);
    dv_client_lock(client);
    int error = dv_request_until_answered(client, dv_deadline_in(client, 0), refuse_by_quota, NULL);
    dv_client_unlock(client);
    assert_int_equal(error, DIVVY_ETIMEDOUT);
}

TEST_EACH(set_up, tear_down);
