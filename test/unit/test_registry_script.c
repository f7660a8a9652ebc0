/* Tests of divvy/registry.h by the requests that it sends, answered one by one. SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "divvy/registry.h"
#include "fake_znode.h"
#include "lib/test.h"
#include <cjson/cJSON.h>

#define NODE "/divvy/services/web/a"
#define PROBE "multi [create /divvy/#1; set /divvy/#1; delete /divvy/#1]"
#define MTIME INT64_C(1767225600000)

static dv_fake *fake;
static divvy_registry *registry;
static int told, result;

static int set_up(void **state) {
    (void)state;
    fake = dv_fake_open(NULL);
    dv_fake_session(fake, DIVVY_CONNECTED);
    assert_int_equal(divvy_registry_open(&registry, dv_fake_client(fake), NULL), 0);
    told = 0;
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    divvy_client *client = dv_fake_client(fake);
    divvy_registry_close(registry);
    dv_fake_session(fake, DIVVY_LOST);
    dv_fake_run(fake);
    bool clean = client->ephemeral_count == 0 && client->ephemerals.used_bytes == 0 && client->lasting_count == 0;
    dv_fake_close(fake);
    return clean ? 0 : -1;
}

static void on_done(divvy_registry *r, int error, const cJSON *stored, void *user) {
    (void)r, (void)user;
    told++;
    result = error;
    assert_int_equal(stored != NULL, error == 0);
}

static void beat(void) {
    cJSON *status = cJSON_Parse("{\"role\":\"web\",\"id\":\"a\",\"load\":1,\"ttl\":60}");
    assert_int_equal(divvy_registry_heartbeat_async(registry, status, -1, on_done, NULL), 0);
    cJSON_Delete(status);
    dv_fake_run(fake);
}

static void answer_error(int error) {
    dv_fake_answer(fake, &(dv_reply){.error = error});
}

static void answer_probe(void) {
    dv_stat stat = {.mtime_ms = MTIME, .version = 1};
    assert_string_equal(dv_fake_pending(fake), PROBE);
    dv_fake_answer_multi(fake, 0, (dv_reply[]){{.path = "/divvy/x"}, {.stat = &stat}, {.error = 0}});
}

static void answer_stat(int32_t version, int64_t owner) {
    dv_fake_answer(
        fake,
        &(dv_reply){.path = NODE, .stat = &(dv_stat){.mtime_ms = MTIME, .version = version, .ephemeral_owner = owner}});
}

/* The data of the oldest request, which is a single one. */
static char *sent_data(void) {
    const dv_op *op = dv_fake_oldest(fake)->ops;
    return strndup(op->data, op->data_bytes);
}

static void stored_once(void) {
    beat();
    answer_probe();
    assert_string_equal(dv_fake_pending(fake), "ephemeral " NODE);
    answer_stat(0, DV_FAKE_SESSION);
    assert_int_equal(told, 1);
    assert_int_equal(result, 0);
}

/* The time is asked for once; the first heartbeat is a create, and each later one a set at the version we left. */
TEST(test_requests) {
    stored_once();
    for (int32_t version = 0; version < 3; version++) {
        beat();
        assert_string_equal(dv_fake_pending(fake), "set " NODE);
        assert_int_equal(dv_fake_oldest(fake)->ops->version, version);
        answer_stat(version + 1, DV_FAKE_SESSION);
        assert_int_equal(result, 0);
    }
    assert_int_equal(told, 4);
    assert_string_equal(dv_fake_pending(fake), "");
}

/* Where nothing is there yet, the root is made for the probe to stand beside, and the role's node when it is
 * missing. */
TEST(test_nothing_there) {
    beat();
    assert_string_equal(dv_fake_pending(fake), PROBE);
    dv_fake_answer_multi(fake, DIVVY_ENOENT, NULL);
    assert_string_equal(dv_fake_pending(fake), "exists /divvy/services");
    answer_error(DIVVY_ENOENT);
    assert_string_equal(dv_fake_pending(fake), "container /divvy, container /divvy/services");
    answer_error(0);
    answer_error(0);
    dv_stat stat = {.mtime_ms = MTIME};
    dv_fake_answer_multi(fake, 0, (dv_reply[]){{.path = "/divvy/x"}, {.stat = &stat}, {.error = 0}});
    assert_string_equal(dv_fake_pending(fake), "ephemeral " NODE);
    answer_error(DIVVY_ENOENT);
    assert_string_equal(dv_fake_pending(fake), "exists /divvy/services/web");
    answer_error(0);
    assert_string_equal(dv_fake_pending(fake), "ephemeral " NODE);
    answer_stat(0, DV_FAKE_SESSION);
    assert_int_equal(told, 1);
    assert_int_equal(result, 0);
}

/* A lost reply: first a barrier on the next connection, then a look. An entry with our attempt in it was stored,
 * and is not stored again; what has not is. */
TEST(test_lost_reply) {
    for (int applied = 0; applied < 2; applied++) {
        if (applied == 0) stored_once();
        else beat(), answer_stat(1, DV_FAKE_SESSION);
        told = 0;
        beat();
        assert_string_equal(dv_fake_pending(fake), "set " NODE);
        char *data = sent_data();
        dv_fake_session(fake, DIVVY_SUSPENDED);
        dv_fake_session(fake, DIVVY_CONNECTED);
        assert_string_equal(dv_fake_pending(fake), "check /");
        dv_fake_answer_multi(fake, 0, (dv_reply[]){{.error = 0}});
        assert_string_equal(dv_fake_pending(fake), "get " NODE);
        dv_stat stat = {.version = 5, .ephemeral_owner = DV_FAKE_SESSION};
        dv_reply there = {.data = applied ? data : "{}", .data_bytes = applied ? strlen(data) : 2, .stat = &stat};
        dv_fake_answer(fake, &there);
        free(data);
        assert_int_equal(told, applied);
        if (applied) break;
        assert_string_equal(dv_fake_pending(fake), "set " NODE);
        assert_int_equal(dv_fake_oldest(fake)->ops->version, 5);
        answer_stat(0, DV_FAKE_SESSION);
        assert_int_equal(told, 1);
    }
    beat();
    assert_int_equal(dv_fake_oldest(fake)->ops->version, 5); /* what the look has shown */
}

/* A set that went into a node of another session is not left at that: the node is replaced by one of ours. */
TEST(test_foreign_node) {
    stored_once();
    beat();
    answer_stat(1, 99);
    assert_string_equal(dv_fake_pending(fake), "get " NODE);
    dv_fake_answer(fake, &(dv_reply){.data = "", .stat = &(dv_stat){.version = 3, .ephemeral_owner = 99}});
    assert_string_equal(dv_fake_pending(fake), "multi [delete " NODE "; ephemeral " NODE "]");
    assert_int_equal(dv_fake_oldest(fake)->ops->version, 3);
    dv_fake_answer_multi(fake, DIVVY_EVERSION, NULL);
    assert_string_equal(dv_fake_pending(fake), "get " NODE);
    answer_error(DIVVY_ENOENT);
    assert_string_equal(dv_fake_pending(fake), "ephemeral " NODE);
    answer_stat(0, DV_FAKE_SESSION);
    assert_int_equal(told, 2);
    assert_int_equal(result, 0);
}

/* A heartbeat that fights over a node for ever is told so. */
TEST(test_no_end) {
    stored_once();
    beat();
    for (int i = 0; i < 1000 && told == 1; i++) {
        if (dv_fake_oldest(fake)->ops->kind == DV_GET)
            dv_fake_answer(fake, &(dv_reply){.data = "", .stat = &(dv_stat){.ephemeral_owner = DV_FAKE_SESSION}});
        else answer_error(DIVVY_EVERSION);
    }
    assert_int_equal(told, 2);
    assert_int_equal(result, DIVVY_EBUSY);
}

/* Closing deletes what is still ours, at the version that was read, and nothing else. */
TEST(test_close) {
    for (int ours = 0; ours < 2; ours++) {
        stored_once();
        divvy_registry_close(registry);
        dv_fake_run(fake);
        assert_string_equal(dv_fake_pending(fake), "get " NODE);
        int64_t owner = ours ? DV_FAKE_SESSION : 99;
        dv_fake_answer(fake,
                       &(dv_reply){.data = "", .stat = &(dv_stat){.czxid = 7, .version = 4, .ephemeral_owner = owner}});
        if (ours) {
            assert_string_equal(dv_fake_pending(fake), "delete " NODE);
            assert_int_equal(dv_fake_oldest(fake)->ops->version, 4);
            answer_error(0);
        }
        assert_string_equal(dv_fake_pending(fake), "");
        assert_int_equal(dv_fake_client(fake)->ephemeral_count, 0);
        registry = NULL;
        if (ours) break;
        tear_down(NULL);
        set_up(NULL);
    }
}

TEST_EACH(set_up, tear_down);
