/* Tests of the log of a client's steps, on the in-memory ensemble. SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "divvy/divvy.h"
#include "divvy/testing.h"
#include "lib/fake_znode.h"
#include "lib/test.h"

enum { LINES_MAX = 400, LINE_BYTES = 1200, TIMEOUT_MS = 5000, MEMBERS = 2 };

/* A client with a lock, and its lines of steps. */
typedef struct {
    divvy_client *client;
    divvy_lock *lock;
    bool granted;
    int count, session_lines;
    char lines[LINES_MAX][LINE_BYTES];
} member;

static divvy_testing_ensemble *ensemble;
static member members[MEMBERS];

static void on_log(int level, const char *message, void *user) {
    member *m = user;
    long long ms;
    unsigned long long session;
    int at = 0;
    if (strncmp(message, "step ", 5) != 0 || m->count == LINES_MAX) return;
    assert_int_equal(level, DIVVY_LOG_DEBUG);
    assert_int_equal(sscanf(message, "step %lld %llx %n", &ms, &session, &at), 2);
    snprintf(m->lines[m->count++], LINE_BYTES, "%s", message + at);
    m->session_lines += session == (unsigned long long)divvy_client_session_id(m->client);
}

static void on_granted(divvy_lock *lock, int result, void *user) {
    (void)lock;
    ((member *)user)->granted = result == 0;
}

static void open_member(member *m, int log_steps) {
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    divvy_lock_config lock = DIVVY_LOCK_CONFIG_INIT;
    *m = (member){.count = 0};
    config.manual = 1;
    config.ensemble_tick_ms = 200;
    config.on_log = on_log;
    config.log_steps = log_steps;
    config.user = m;
    assert_int_equal(divvy_testing_client_open(&m->client, ensemble, &config), 0);
    assert_int_equal(divvy_client_wait_connected(m->client, TIMEOUT_MS), 0);
    lock.path = "/lock";
    assert_int_equal(divvy_lock_create(&m->lock, m->client, &lock), 0);
}

static int set_up(void **state) {
    (void)state;
    divvy_testing_config world = DIVVY_TESTING_CONFIG_INIT;
    world.tick_ms = 200;
    return divvy_testing_ensemble_create(&ensemble, &world);
}

static int tear_down(void **state) {
    (void)state;
    for (int i = 0; i < MEMBERS; i++) {
        if (members[i].lock) divvy_lock_destroy(members[i].lock);
        if (members[i].client) divvy_client_close(members[i].client);
        members[i] = (member){.count = 0};
    }
    divvy_testing_ensemble_destroy(ensemble);
    return 0;
}

/* Returns the number of the first line from `from` on that has both texts, or fails. */
static int find(const member *m, int from, const char *start, const char *part) {
    for (int i = from; i < m->count; i++) {
        if (strncmp(m->lines[i], start, strlen(start)) == 0 && strstr(m->lines[i], part)) return i;
    }
    for (int i = 0; i < m->count; i++) printf("%s\n", m->lines[i]);
    fail_msg("no line \"%s\" with \"%s\"", start, part);
    return -1;
}

static void run(int64_t ms) {
    assert_true(divvy_testing_run(ensemble, ms) >= 0);
}

/* The lines tell what a lock asks, is answered, believes, holds and deletes, in this order. */
TEST(test_order) {
    member *m = &members[0];
    open_member(m, 1);
    assert_int_equal(divvy_lock_acquire(m->lock, TIMEOUT_MS), 0);
    char token[40];
    snprintf(token, sizeof token, " token=%lld", (long long)divvy_lock_token(m->lock));
    assert_int_equal(divvy_lock_release(m->lock), 0);
    run(1000);
    int believes = find(m, 0, "believes until=", "");
    int asks = find(m, believes, "ask-create /lock/", "__lock__");
    find(m, asks, "create /lock/", " answer=none"); /* K2 */
    asks = find(m, find(m, asks, "ask-create /lock", ""), "ask-create /lock/", "__lock__");
    int lists = find(m, asks, "ask-children /lock", "");
    int made = find(m, lists, "create /lock/", " answer=done made=/lock/");
    int listed = find(m, made, "children /lock answer=done names=", "__lock__0000000000");
    int holds = find(m, listed, "holds /lock", token);
    int ends = find(m, holds, "ends /lock", token);
    int deletes = find(m, ends, "ask-delete /lock/", "__lock__0000000000");
    find(m, deletes, "delete /lock/", "__lock__0000000000 answer=done");
    find(m, find(m, find(m, 0, "ask-", ""), "ask-barrier /", ""), "barrier /", " answer=done");
    const char *belief = "";
    for (int i = 0; i < m->count; i++) { /* One that stays as it is is told once. */
        if (strncmp(m->lines[i], "believes", 8) != 0) continue;
        assert_string_not_equal(m->lines[i], belief);
        belief = m->lines[i];
    }
    assert_int_equal(m->session_lines, m->count);
}

/* A contender that waits says whom it watches; what a broken connection takes is "lost". */
TEST(test_wait_and_loss) {
    member *m = &members[1];
    for (int i = 0; i < MEMBERS; i++) open_member(&members[i], 1);
    assert_int_equal(divvy_lock_acquire(members[0].lock, TIMEOUT_MS), 0);
    assert_int_equal(divvy_lock_acquire_async(m->lock, -1, on_granted, m), 0);
    run(1000);
    const char *names =
        strstr(m->lines[find(m, 0, "children /lock answer=done names=", "__lock__0000000001")], "names=");
    assert_non_null(strstr(names, "__lock__0000000000"));
    assert_ptr_equal(strchr(names, ','), strrchr(names, ',')); /* one between two names */
    assert_true(names[strlen("names=")] != ',' && strchr(names, ','));
    int watches = find(m, 0, "ask-get /lock/", "__lock__0000000000 watch=1");
    find(m, watches, "get /lock/", "__lock__0000000000 answer=done");
    assert_int_equal(divvy_lock_release(members[0].lock), 0);
    run(1000);
    assert_true(m->granted);
    int holds = find(m, watches, "holds /lock", " token=");
    assert_int_equal(divvy_testing_link_client(ensemble, m->client, DIVVY_TESTING_LINK_DOWN), 0);
    run(60000);
    find(m, find(m, holds, "check /lock/", " answer=lost"), "ends /lock", " token=");
}

/* A list that no line has room for ends with "...". */
TEST(test_long_list) {
    enum { LOCKS = 30 };
    member *m = &members[0];
    divvy_lock *locks[LOCKS];
    divvy_lock_config config = DIVVY_LOCK_CONFIG_INIT;
    config.path = "/lock";
    open_member(m, 1);
    for (int i = 0; i < LOCKS; i++) {
        assert_int_equal(divvy_lock_create(&locks[i], m->client, &config), 0);
        assert_int_equal(divvy_lock_acquire_async(locks[i], -1, on_granted, m), 0);
    }
    run(1000);
    const char *line = m->lines[find(m, 0, "children /lock answer=done names=", "...")];
    assert_string_equal(line + strlen(line) - 3, "...");
    for (int i = 0; i < LOCKS; i++) divvy_lock_destroy(locks[i]);
}

static void on_any_log(int level, const char *message, void *user) {
    (void)level, (void)message, (void)user;
}

static int submit_nothing(dv_znode *znode, const dv_op *op, dv_watch *w, dv_reply_fn done, void *context) {
    (void)znode, (void)op, (void)w, (void)done, (void)context;
    return DIVVY_ENOMEM;
}

static int multi_nothing(dv_znode *znode, const dv_op *ops, size_t count, dv_multi_fn done, void *context) {
    (void)znode, (void)ops, (void)count, (void)done, (void)context;
    return DIVVY_ENOMEM;
}

/* A request for which there is no memory fails as it does without the option: nobody waits for its answer. */
TEST(test_no_memory) {
    dv_fake *fake = dv_fake_open(NULL);
    divvy_client *client = dv_fake_client(fake);
    dv_znode_backend scarce = *client->znode->backend;
    const dv_op op = {.kind = DV_GET, .path = "/a"};
    scarce.submit = submit_nothing;
    scarce.multi = multi_nothing;
    client->znode->backend = &scarce;
    client->config.on_log = on_any_log;
    client->config.log_steps = 1;
    dv_client_lock(client);
    assert_int_equal(dv_steps_begin(client), 0);
    assert_int_equal(dv_znode_submit(client->znode, &op, NULL, NULL, NULL), DIVVY_ENOMEM);
    assert_int_equal(dv_znode_multi(client->znode, &op, 1, NULL, NULL), DIVVY_ENOMEM);
    dv_client_unlock(client);
    dv_fake_session(fake, DIVVY_LOST);
    dv_fake_close(fake);
}

/* Without the option there is no such line. */
TEST(test_off) {
    open_member(&members[0], 0);
    assert_int_equal(divvy_lock_acquire(members[0].lock, TIMEOUT_MS), 0);
    assert_int_equal(members[0].count, 0);
}

TEST_EACH(set_up, tear_down);
