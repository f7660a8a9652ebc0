/* Creates on servers that lack some of the requests for them: docs/protocol.md, B8. SPDX-License-Identifier:
 * Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "divvy/divvy.h"
#include "divvy/testing.h"
#include "lib/fake_znode.h"
#include "lib/test.h"

static dv_fake *fake;

static struct {
    int replies, error;
    int64_t czxid;
    char path[64];
} told;

static int set_up(void **state) {
    (void)state;
    fake = dv_fake_open(NULL);
    dv_fake_session(fake, DIVVY_CONNECTED);
    memset(&told, 0, sizeof told);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    dv_fake_session(fake, DIVVY_SUSPENDED);
    dv_fake_close(fake);
    return 0;
}

static void on_created(void *context, const dv_reply *reply, int64_t now) {
    (void)context, (void)now;
    told.replies++;
    told.error = reply->error;
    told.czxid = reply->stat ? reply->stat->czxid : 0;
    snprintf(told.path, sizeof told.path, "%s", reply->path ? reply->path : "");
}

static void create(int mode) {
    divvy_client *client = dv_fake_client(fake);
    dv_client_lock(client);
    assert_int_equal(dv_znode_create(client->znode, "/n", "", 0, mode, on_created, NULL), 0);
    dv_client_unlock(client);
}

/* The fake writes a multi of one as if it were a request by itself. */
static bool is_pending(const char *text, bool is_multi) {
    return strcmp(dv_fake_pending(fake), text) == 0 && dv_fake_oldest(fake)->is_multi == is_multi;
}

static void make(const char *path) {
    dv_fake_answer_multi(fake, 0, &(dv_reply){.path = path});
}

/* A refused create is sent again as a multi, and the node's Stat is read; later creates are multis from the start. */
TEST_IN(test_refused, set_up, tear_down) {
    for (int i = 1; i <= 2; i++) {
        create(DV_EPHEMERAL);
        if (i == 1) {
            assert_true(is_pending("ephemeral /n", false));
            dv_fake_answer(fake, &(dv_reply){.error = DIVVY_EUNSUPPORTED});
        }
        assert_true(is_pending("ephemeral /n", true));
        make("/n");
        assert_string_equal(dv_fake_pending(fake), "exists /n");
        assert_int_equal(told.replies, i - 1);
        dv_fake_answer(fake, &(dv_reply){.stat = &(dv_stat){.czxid = 40 + i}});
        assert_int_equal(told.replies, i);
        assert_int_equal(told.error, 0);
        assert_int_equal(told.czxid, 40 + i);
        assert_string_equal(told.path, "/n");
    }
}

/* A node that is gone before it was read is as good as a lost reply. What a multi is refused for is told. */
TEST_IN(test_gone_or_refused_in_a_multi, set_up, tear_down) {
    create(DV_EPHEMERAL);
    dv_fake_answer(fake, &(dv_reply){.error = DIVVY_EUNSUPPORTED});
    make("/n");
    dv_fake_answer(fake, &(dv_reply){.error = DIVVY_ENOENT});
    assert_int_equal(told.error, DIVVY_ECONNECTION);
    create(DV_EPHEMERAL);
    dv_fake_answer_multi(fake, DIVVY_EEXIST, &(dv_reply){.error = DIVVY_EEXIST});
    assert_int_equal(told.error, DIVVY_EEXIST);
    assert_string_equal(dv_fake_pending(fake), "");
}

static void lose_connection(void) {
    dv_fake_session(fake, DIVVY_SUSPENDED);
    dv_fake_session(fake, DIVVY_CONNECTED);
}

/* Two connections that end while a create is under way are a refusal. Two creates on one connection are not. */
TEST_IN(test_deaths, set_up, tear_down) {
    create(0);
    create(0);
    lose_connection();
    assert_int_equal(told.replies, 2);
    assert_int_equal(told.error, DIVVY_ECONNECTION);
    create(0);
    assert_true(is_pending("create /n", false));
    lose_connection();
    create(0);
    assert_true(is_pending("create /n", true));
}

/* Once a server has answered a create, no end of a connection is a refusal. */
TEST_IN(test_deaths_after_an_answer, set_up, tear_down) {
    static const int answers[] = {0, DIVVY_EEXIST, DIVVY_ENOENT, DIVVY_EACCES};
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        if (i) set_up(NULL);
        create(0);
        dv_fake_answer(fake, &(dv_reply){.error = answers[i], .path = "/n", .stat = &(dv_stat){.czxid = 1}});
        for (int times = 0; times < 5; times++) {
            create(0);
            assert_true(is_pending("create /n", false));
            lose_connection();
        }
        if (i < 3) tear_down(NULL);
    }
}

/* A container becomes a persistent node, which may need the other fallback too. */
TEST_IN(test_container, set_up, tear_down) {
    create(DV_CONTAINER);
    assert_true(is_pending("container /n", false));
    dv_fake_answer(fake, &(dv_reply){.error = DIVVY_EUNSUPPORTED});
    assert_true(is_pending("create /n", false));
    dv_fake_answer(fake, &(dv_reply){.error = DIVVY_EUNSUPPORTED});
    assert_true(is_pending("create /n", true));
    make("/n");
    dv_fake_answer(fake, &(dv_reply){.stat = &(dv_stat){.czxid = 7}});
    assert_int_equal(told.error, 0);
    create(DV_CONTAINER);
    assert_true(is_pending("create /n", true));
}

/* ---- on servers that refuse, and close the connection ---- */

static bool is_there(divvy_testing_ensemble *ensemble, const char *path) {
    return divvy_testing_exists(ensemble, path) == 1;
}

/* A client goes on without what such servers lack, after one refusal of each, for its whole life; its session stays. */
TEST(test_old_servers) {
    divvy_testing_ensemble *ensemble;
    divvy_testing_config config = DIVVY_TESTING_CONFIG_INIT;
    config.release = DIVVY_TESTING_3_4;
    assert_int_equal(divvy_testing_ensemble_create(&ensemble, &config), 0);
    divvy_client *client;
    divvy_client_config client_config = DIVVY_CLIENT_CONFIG_INIT;
    client_config.manual = 1;
    assert_int_equal(divvy_testing_client_open(&client, ensemble, &client_config), 0);
    divvy_lock_config lock_config = DIVVY_LOCK_CONFIG_INIT;
    lock_config.path = "/own/locks/l";
    lock_config.container = 1;
    divvy_lock *lock;
    assert_int_equal(divvy_lock_create(&lock, client, &lock_config), 0);
    int64_t token = 0;
    for (int times = 0; times < 3; times++) {
        assert_int_equal(divvy_lock_acquire(lock, 60000), 0);
        assert_true(divvy_lock_token(lock) > token);
        token = divvy_lock_token(lock);
        assert_int_equal(divvy_lock_release(lock), 0);
        divvy_testing_run(ensemble, 400000);
    }
    assert_true(is_there(ensemble, lock_config.path)); /* It is no container, which would have gone. */
    divvy_stats stats;
    divvy_client_stats(client, &stats, sizeof stats);
    assert_int_equal(stats.connects, 3);
    divvy_lock_destroy(lock);
    divvy_client_close(client);
    divvy_testing_ensemble_destroy(ensemble);
}
