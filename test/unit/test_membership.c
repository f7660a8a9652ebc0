/* Tests of recipe/membership.h, on a scripted backend. SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "divvy/party.h"
#include "lib/fake_tree.h"
#include "lib/test.h"
#include "recipe/membership.h"
#include "znode/path.h"

#define PARTY "/y/party"

static dv_fake *fake;
static dv_tree *tree;

/* The events that a membership's owner was told. */
typedef struct {
    dv_membership *membership; /* NULL once gone */
    int joined, failed, gone, error;
    char failed_path[128];
} owner;

static owner o;
static int gone_warnings;

static void on_warning(divvy_client *client, int code, const char *message, void *user) {
    (void)client, (void)message, (void)user;
    gone_warnings += code == DIVVY_WARN_NODE_GONE;
}

static void on_joined(void *context, int64_t now) {
    (void)now;
    assert_ptr_equal(context, &o);
    assert_int_equal(o.failed + o.gone, 0);
    o.joined++;
}

static void on_failed(void *context, int error, const char *path, int64_t now) {
    (void)context, (void)now;
    assert_int_equal(o.failed + o.gone, 0);
    o.failed++;
    o.error = error;
    snprintf(o.failed_path, sizeof o.failed_path, "%s", path);
}

static void on_gone(void *context, int64_t now) {
    (void)context, (void)now;
    o.gone++;
    o.membership = NULL;
}

static void join(void) {
    static const dv_membership_events events = {.joined = on_joined, .failed = on_failed, .gone = on_gone};
    o = (owner){.membership = NULL};
    dv_client_lock(dv_fake_client(fake));
    assert_int_equal(dv_membership_join(&o.membership, dv_fake_client(fake), PARTY, "-me", "data", &events, &o), 0);
    dv_client_unlock(dv_fake_client(fake));
    dv_fake_run(fake);
}

static void leave(void) {
    dv_client_lock(dv_fake_client(fake));
    dv_membership_leave(o.membership);
    dv_client_unlock(dv_fake_client(fake));
    dv_fake_run(fake);
}

static void answer_error(int error) {
    dv_fake_answer(fake, &(dv_reply){.error = error});
}

static void answer_created(const char *path) {
    dv_fake_answer(fake, &(dv_reply){.path = path, .stat = &(dv_stat){.czxid = 5}});
}

/* Returns what its path costs in a budget. */
static size_t cost(void) {
    return strlen(PARTY "/") + strlen(dv_membership_name(o.membership)) + 4;
}

static int set_up(void **state) {
    (void)state;
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.on_warning = on_warning;
    gone_warnings = 0;
    fake = dv_fake_open(&config);
    tree = dv_tree_new(fake);
    dv_fake_session(fake, DIVVY_CONNECTED);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    divvy_client *client = dv_fake_client(fake);
    dv_fake_end_latecomers(fake);
    bool unused = client->ephemerals.used_bytes == 0 && client->watched.used_bytes == 0;
    bool clean = client->ephemeral_count == 0 && unused && !client->listeners;
    dv_fake_close(fake);
    dv_tree_free(tree);
    return clean ? 0 : -1;
}

/* One read when the directory is there; then the node, and a watch on it. */
TEST_IN(test_join, set_up, tear_down) {
    join();
    assert_string_equal(dv_fake_pending(fake), "exists /y/party");
    answer_error(0);
    assert_string_equal(dv_fake_pending(fake), "ephemeral /y/party/#2-me"); /* each attempt has a name of its own */
    assert_int_equal(dv_fake_oldest(fake)->ops->mode, DV_EPHEMERAL);
    assert_memory_equal(dv_fake_oldest(fake)->ops->data, "data", 4);
    assert_int_equal(o.joined, 0);
    answer_created(PARTY "/x");
    assert_int_equal(o.joined, 1);
    assert_true(dv_membership_joined(o.membership));
    assert_string_equal(dv_fake_pending(fake), "get! /y/party/#2-me");
    dv_fake_answer(fake, &(dv_reply){.data = "data", .stat = &(dv_stat){.czxid = 5}});
    assert_string_equal(dv_fake_pending(fake), "");
    assert_int_equal(dv_fake_client(fake)->watched.used_bytes, cost()); /* B6 */
    leave();
    assert_int_equal(dv_fake_client(fake)->watched.used_bytes, 0);
    assert_string_equal(dv_fake_pending(fake), "delete /y/party/#2-me");
    answer_error(0);
    assert_int_equal(o.gone, 1);
}

/* Missing parents are made, all at once; that somebody else made them meanwhile does not matter, nor that we may not
 * make those above, as long as the directory itself is there in the end. */
TEST_IN(test_parents, set_up, tear_down) {
    static const int answers[][2] = {{0, 0}, {DIVVY_EEXIST, 0}, {DIVVY_EEXIST, DIVVY_EEXIST}, {DIVVY_EACCES, 0}};
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        join();
        answer_error(DIVVY_ENOENT);
        assert_string_equal(dv_fake_pending(fake), "create /y, create /y/party");
        assert_int_equal(dv_fake_oldest(fake)->ops->data_bytes, 0);
        answer_error(answers[i][0]);
        answer_error(answers[i][1]);
        assert_int_equal(dv_fake_oldest(fake)->ops->mode, DV_EPHEMERAL);
        leave();
        answer_error(DIVVY_EEXIST); /* whatever the reason: not made */
        assert_int_equal(o.gone, 1);
    }
}

/* A membership that cannot be made fails, with the reason and the path, and is gone; nothing more is sent. */
TEST_IN(test_fails, set_up, tear_down) {
    join();
    answer_error(DIVVY_ENOENT);
    answer_error(DIVVY_EACCES);
    answer_error(DIVVY_ENOENT);
    assert_int_equal(o.failed, 1);
    assert_int_equal(o.error, DIVVY_EACCES); /* the first thing that stood in the way */
    assert_int_equal(o.gone, 1);
    join();
    answer_error(0);
    answer_error(DIVVY_EACCES);
    assert_int_equal(o.failed, 1);
    assert_int_equal(o.error, DIVVY_EACCES);
    assert_int_equal(strncmp(o.failed_path, PARTY, strlen(PARTY)), 0);
    assert_int_equal(o.gone, 1);
    assert_string_equal(dv_fake_pending(fake), "");
}

/* The directory went between the read and the create: all starts again. */
TEST_IN(test_directory_goes, set_up, tear_down) {
    join();
    answer_error(0);
    answer_error(DIVVY_ENOENT);
    assert_string_equal(dv_fake_pending(fake), "exists /y/party");
    dv_tree_serve_all(tree);
    assert_int_equal(o.joined, 1);
    leave();
    dv_tree_serve_all(tree);
}

/* A lost create is resolved behind a barrier: ours is kept, one that is not there is made under another name, one of
 * another session's is none of ours. */
TEST_IN(test_lost_create, set_up, tear_down) {
    join(); /* so that the servers are known to have creates (B8) */
    dv_tree_serve_all(tree);
    leave();
    dv_tree_serve_all(tree);
    for (int outcome = 0; outcome < 3; outcome++) {
        join();
        answer_error(0);
        char made[64];
        snprintf(made, sizeof made, "%s", dv_fake_oldest(fake)->ops->path);
        dv_fake_session(fake, DIVVY_SUSPENDED);
        dv_fake_session(fake, DIVVY_CONNECTED);
        assert_string_equal(dv_fake_pending(fake), "check /");
        dv_fake_answer_multi(fake, 0, &(dv_reply){.error = 0});
        assert_int_equal(dv_fake_oldest(fake)->ops->kind, DV_EXISTS);
        assert_string_equal(dv_fake_oldest(fake)->ops->path, made);
        if (outcome == 0) dv_fake_answer(fake, &(dv_reply){.stat = &(dv_stat){.ephemeral_owner = DV_FAKE_SESSION}});
        if (outcome == 1) answer_error(DIVVY_ENOENT);
        if (outcome == 2) dv_fake_answer(fake, &(dv_reply){.stat = &(dv_stat){.ephemeral_owner = 99}});
        assert_int_equal(o.joined, outcome == 0);
        if (outcome) {
            assert_string_equal(dv_fake_pending(fake), "exists /y/party");
            answer_error(0);
            assert_string_not_equal(dv_fake_oldest(fake)->ops->path, made);
            answer_created("any");
            assert_int_equal(o.joined, 1);
        }
        answer_error(0); /* the watch's read */
        leave();
        answer_error(0);
        assert_int_equal(o.gone, 1);
        dv_fake_end_latecomers(fake);
    }
}

/* Our node is deleted by somebody else: made again under another name, with a warning each time. */
TEST_IN(test_kept, set_up, tear_down) {
    join();
    dv_tree_serve_all(tree);
    const char *one;
    char before[128];
    for (int round = 1; round <= 3; round++) {
        assert_int_equal(dv_tree_owned(tree, &one), 1);
        snprintf(before, sizeof before, "%s", one);
        dv_tree_remove(tree, before);
        dv_tree_serve_all(tree);
        assert_int_equal(dv_tree_owned(tree, &one), 1);
        assert_string_not_equal(one, before);
        assert_string_equal(dv_path_last(one), dv_membership_name(o.membership));
        assert_int_equal(o.joined, 1 + round);
        assert_int_equal(gone_warnings, round);
    }
    leave();
    dv_tree_serve_all(tree);
    assert_int_equal(dv_tree_owned(tree, NULL), 0);
}

/* A deletion that is told of before the watch's own read is answered is not overlooked. */
TEST_IN(test_watch_fires_before_the_answer, set_up, tear_down) {
    join();
    answer_error(0);
    answer_created("any");
    char path[128];
    snprintf(path, sizeof path, "%s", dv_fake_oldest(fake)->ops->path);
    assert_true(dv_fake_fire(fake, path, DV_WATCH_DELETED, false));
    dv_fake_answer(fake, &(dv_reply){.data = "data", .stat = &(dv_stat){.czxid = 5}});
    assert_int_equal(dv_fake_oldest(fake)->ops->kind, DV_GET);
    answer_error(DIVVY_ENOENT);
    dv_tree_serve_all(tree);
    assert_int_equal(o.joined, 2);
    leave();
    dv_tree_serve_all(tree);
    assert_int_equal(o.gone, 1);
}

/* B6: a watch that does not fit half of the room is not set, nor room reserved for it. Each new connection reads the
 * node, and sets the watch if there is room by then, which is reserved once. */
TEST_IN(test_no_room_to_watch, set_up, tear_down) {
    dv_budget *watched = &dv_fake_client(fake)->watched;
    join();
    answer_error(0);
    watched->limit_bytes = 2 * cost() - 1;
    answer_created("any");
    for (int room = 0; room <= 2; room++) {
        watched->limit_bytes = room ? 2 * cost() : 2 * cost() - 1;
        if (room) dv_fake_session(fake, DIVVY_SUSPENDED);
        if (room) dv_fake_session(fake, DIVVY_CONNECTED);
        assert_string_equal(dv_fake_pending(fake), room ? "get! /y/party/#2-me" : "get /y/party/#2-me");
        dv_fake_answer(fake, &(dv_reply){.data = "data", .stat = &(dv_stat){.czxid = 5}});
        assert_int_equal(watched->used_bytes, room ? cost() : 0);
    }
    leave();
    dv_tree_serve_all(tree);
    assert_int_equal(watched->used_bytes, 0);
}

typedef enum { LEAVE, CUT_DROPPED, CUT_APPLIED, CUT_LATE, CUT_AND_LEAVE, EXPIRE, DEADLINE, TAKE_AWAY, FAULTS } fault;

static bool inject(fault what) {
    const char *one;
    bool left = what == LEAVE || what == CUT_AND_LEAVE;
    if (what == CUT_DROPPED) dv_tree_cut(tree, 0, false);
    if (what == CUT_APPLIED) dv_tree_cut(tree, 1, false);
    if (what == CUT_LATE || what == CUT_AND_LEAVE) dv_tree_cut(tree, 0, true);
    if (what == EXPIRE) dv_tree_expire(tree);
    if (what == DEADLINE) {
        dv_tree_cut(tree, 1, false);
        dv_fake_advance(fake, dv_fake_client(fake)->config.session_timeout_ms);
    }
    if (what == TAKE_AWAY && dv_tree_owned(tree, &one)) dv_tree_remove(tree, one);
    if (left && o.membership) leave();
    if (!dv_fake_is_connected(fake) && !dv_client_end_error(dv_fake_client(fake)))
        dv_fake_session(fake, DIVVY_CONNECTED);
    return left;
}

/* One life with two faults, after `at` and `at2` answers. Until it leaves it has exactly one node whenever all is
 * quiet, afterwards none; it is gone exactly once. */
static void live(int at, fault what, int at2, fault what2) {
    void *state = NULL;
    set_up(&state);
    join();
    bool left = false;
    for (int step = 0; step < 40; step++) {
        fault now = step == at ? what : step == at2 ? what2 : FAULTS;
        if (o.membership && now != FAULTS) left |= inject(now);
        if (!dv_tree_serve(tree) && step > at2) break;
    }
    dv_tree_serve_all(tree);
    bool lost = dv_client_end_error(dv_fake_client(fake)) != 0;
    if (!left && !lost) {
        assert_true(o.membership && dv_membership_joined(o.membership));
        assert_int_equal(dv_tree_owned(tree, NULL), 1);
        assert_true(o.joined >= 1);
        leave();
        dv_tree_serve_all(tree);
    }
    assert_int_equal(o.gone, 1);
    assert_int_equal(o.failed, 0);
    if (!lost) assert_int_equal(dv_tree_owned(tree, NULL), 0);
    assert_int_equal(tear_down(&state), 0);
}

/* A membership has one node of ours, or none once we have left, whatever happens after whatever number of answers. */
TEST(test_faults_in_every_stage) {
    for (int at = 0; at < 8; at++) {
        for (fault what = LEAVE; what < FAULTS; what++) {
            live(at, what, at, FAULTS);
            for (int at2 = at + 1; at2 < at + 9; at2++) {
                for (fault what2 = LEAVE; what2 < FAULTS; what2++) live(at, what, at2, what2);
            }
        }
    }
}

/* A member of a party waits for no other session while its host's is lost: there may be none. */
TEST_IN(test_members_of_a_lost_host, set_up, tear_down) {
    divvy_client *client = dv_fake_client(fake);
    divvy_party *party;
    divvy_strings *members;
    client->znode->attached = true;
    assert_int_equal(divvy_party_join(&party, client, PARTY, "me", DIVVY_PARTY), 0);
    dv_fake_session(fake, DIVVY_LOST);
    assert_int_equal(divvy_party_members(party, &members, 0), DIVVY_ELOST);
    assert_null(members);
    divvy_party_destroy(party);
    dv_fake_run(fake);
    client->znode->attached = false;
}

/* A closing client takes its memberships along: the delete is sent before the session is closed. */
TEST_IN(test_client_closes, set_up, tear_down) {
    join();
    dv_tree_serve_all(tree);
    dv_client_lock(dv_fake_client(fake));
    dv_tell_listeners(dv_fake_client(fake), DV_SESSION_CLOSING, dv_fake_now(fake));
    dv_client_unlock(dv_fake_client(fake));
    assert_int_equal(dv_fake_oldest(fake)->ops->kind, DV_DELETE);
    dv_tree_serve_all(tree);
    assert_int_equal(o.gone, 1);
    assert_int_equal(tear_down(state), 0);
    set_up(state);
    join(); /* and one that was not made yet */
    dv_client_ref(dv_fake_client(fake));
    divvy_client *client = dv_fake_client(fake);
    dv_fake_close(fake);
    assert_int_equal(o.gone, 1);
    dv_client_unref(client);
    dv_tree_free(tree);
    set_up(state);
}
