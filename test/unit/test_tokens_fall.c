/* Clients of an ensemble whose data are wiped: docs/protocol.md, C9. SPDX-License-Identifier: Apache-2.0 */
#include "lib/fake_znode.h"
#include "plan_pool.h"
#include "recipe/membership.h"
#include "testing/ensemble.h"

enum { ITEMS = 1000, MEMBERS = 3, LOST_MS = 60000, TRANSACTIONS = 3000 };

/* Stops all servers, until all clients have given up their sessions, and starts them with empty folders. */
static void wipe(divvy_testing_ensemble *ensemble) {
    for (int i = 0; i < ensemble->server_count; i++)
        assert_int_equal(divvy_testing_kill_server(ensemble, (unsigned)i), 0);
    divvy_testing_run(ensemble, LOST_MS);
    for (int i = 0; i < ensemble->server_count; i++) {
        dv_mem_server *server = &ensemble->servers[i];
        for (size_t n = 0; n < ensemble->session_count; n++)
            ensemble->sessions[n]->seats[i].exists = ensemble->sessions[n]->seats[i].tracked = false;
        dv_mem_log_truncate(server);
        dv_mem_tree_free(ensemble, i);
        dv_mem_tree_init(ensemble, i);
        server->applied = server->logged = ensemble->truth_index;
        server->epoch = server->accepted = server->counter = server->applied_zxid = server->logged_zxid = 0;
        assert_int_equal(divvy_testing_start_server(ensemble, (unsigned)i), 0);
    }
}

static void run(divvy_testing_ensemble *ensemble) {
    assert_true(divvy_testing_run(ensemble, 20000) >= 0);
}

/* A pool of many items whose data are wiped, twice: its members take everything again, under lower tokens, and each
 * warns once each time. A lost session alone is no reason to warn. */
TEST(test_pool) {
    pool l;
    pool_open(&l, ITEMS);
    divvy_partitioner_config config;
    member_config(&l, &config);
    config.on_session_loss = DIVVY_REJOIN;
    for (size_t n = 0; n < MEMBERS; n++) add(&l, n, &config);
    settle(&l);
    for (size_t n = 0; n < MEMBERS; n++) assert_int_equal(divvy_testing_expire(l.ensemble, l.members[n].client), 0);
    run(l.ensemble);
    settle(&l);
    for (unsigned falls = 1; falls <= 2; falls++) {
        owners before = look(&l);
        for (size_t n = 0; n < MEMBERS; n++) assert_int_equal(l.members[n].warnings[DIVVY_WARN_TOKENS], falls - 1);
        for (int i = 0; i < TRANSACTIONS; i++) assert_int_equal(divvy_testing_put(l.ensemble, "/x", "", 0, 0), 0);
        wipe(l.ensemble);
        run(l.ensemble);
        settle(&l);
        owners after = look(&l);
        for (size_t i = 0; falls == 1 && i < ITEMS; i++) assert_true(after.tokens[i] < before.tokens[i]);
        for (size_t n = 0; n < MEMBERS; n++) assert_int_equal(l.members[n].warnings[DIVVY_WARN_TOKENS], falls);
        owners_free(&before);
        owners_free(&after);
    }
    pool_close(&l);
}

typedef struct {
    unsigned warnings;
    char text[600];
    int64_t token;
} told;

static void on_told(divvy_client *client, int code, const char *message, void *user) {
    told *t = user;
    (void)client;
    if (code != DIVVY_WARN_TOKENS) return;
    t->warnings++;
    snprintf(t->text, sizeof t->text, "%s", message);
}

static divvy_client *open_client(divvy_testing_ensemble *ensemble, told *t) {
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    divvy_client *client;
    config.manual = 1;
    config.on_warning = on_told;
    config.user = t;
    *t = (told){.warnings = 0};
    assert_int_equal(divvy_testing_client_open(&client, ensemble, &config), 0);
    return client;
}

static int64_t lock_once(divvy_client *client) {
    divvy_lock_config config = DIVVY_LOCK_CONFIG_INIT;
    divvy_lock *lock;
    config.path = "/lock";
    assert_int_equal(divvy_lock_create(&lock, client, &config), 0);
    assert_int_equal(divvy_lock_acquire(lock, 60000), 0);
    int64_t token = divvy_lock_token(lock);
    divvy_lock_destroy(lock);
    return token;
}

static int64_t take_slot(divvy_client *client) {
    divvy_semaphore_config config = DIVVY_SEMAPHORE_CONFIG_INIT;
    divvy_semaphore *semaphore;
    config.path = "/semaphore";
    config.limit = 2;
    assert_int_equal(divvy_semaphore_create(&semaphore, client, &config), 0);
    assert_int_equal(divvy_semaphore_acquire(semaphore, 60000), 0);
    int64_t token = divvy_semaphore_token(semaphore);
    divvy_semaphore_destroy(semaphore);
    return token;
}

static int64_t lead(divvy_client *client) {
    divvy_election_config config = DIVVY_ELECTION_CONFIG_INIT;
    divvy_election *election;
    config.path = "/election";
    assert_int_equal(divvy_election_create(&election, client, &config), 0);
    assert_int_equal(divvy_election_stand(election), 0);
    for (int i = 0; i < 600 && !divvy_election_token(election); i++) divvy_client_process(client, 100);
    int64_t token = divvy_election_token(election);
    divvy_election_destroy(election);
    return token;
}

/* Locks, semaphores and elections warn as items do, each by itself: which node it was, and where it stands what to
 * do. */
TEST(test_recipes) {
    int64_t (*const recipes[])(divvy_client * client) = {lock_once, take_slot, lead};
    const char *const paths[] = {"/lock/", "/semaphore", "/election/"};
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++) {
        divvy_testing_ensemble *ensemble;
        divvy_testing_config world = DIVVY_TESTING_CONFIG_INIT;
        assert_int_equal(divvy_testing_ensemble_create(&ensemble, &world), 0);
        told t;
        divvy_client *client = open_client(ensemble, &t);
        for (int k = 0; k < 100; k++) assert_int_equal(divvy_testing_put(ensemble, "/x", "", 0, 0), 0);
        int64_t before = recipes[i](client);
        run(ensemble);
        assert_int_equal(t.warnings, 0);
        wipe(ensemble);
        int64_t after = recipes[i](client), again = recipes[i](client);
        run(ensemble);
        assert_true(after > 0 && after < before && again > after);
        assert_int_equal(t.warnings, 1);
        assert_non_null(strstr(t.text, paths[i]));
        assert_non_null(strstr(t.text, "docs/fencing.md"));
        divvy_client_close(client);
        divvy_testing_ensemble_destroy(ensemble);
    }
}

static void on_joined(void *owner, int64_t now) {
    (void)now;
    ++*(int *)owner;
}

static void on_failed(void *owner, int error, const char *path, int64_t now) {
    (void)owner, (void)path, (void)now;
    fail_msg("%s", divvy_errname(error));
}

static void on_gone(void *owner, int64_t now) {
    (void)owner, (void)now;
}

/* Joins, and is told that its node has this czxid. */
static void join_by(dv_fake *fake, int64_t czxid) {
    static const dv_membership_events events = {.joined = on_joined, .failed = on_failed, .gone = on_gone};
    dv_membership *membership;
    int joined = 0;
    dv_client_lock(dv_fake_client(fake));
    assert_int_equal(dv_membership_join(&membership, dv_fake_client(fake), "/p", "", "", &events, &joined), 0);
    dv_client_unlock(dv_fake_client(fake));
    dv_fake_run(fake);
    const dv_stat stat = {.czxid = czxid};
    while (dv_fake_oldest(fake)) dv_fake_answer(fake, &(dv_reply){.path = "/p/x", .data = "", .stat = &stat});
    assert_int_equal(joined, 1);
    dv_client_lock(dv_fake_client(fake));
    dv_membership_leave(membership);
    dv_client_unlock(dv_fake_client(fake));
    dv_fake_run(fake);
    while (dv_fake_oldest(fake)) dv_fake_answer(fake, &(dv_reply){.error = 0});
}

/* A node of a transaction that was seen before is a fall, and one of the next transaction is none. */
TEST(test_same_number) {
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    told t = {.warnings = 0};
    config.on_warning = on_told;
    config.user = &t;
    dv_fake *fake = dv_fake_open(&config);
    dv_fake_session(fake, DIVVY_CONNECTED);
    join_by(fake, 7);
    join_by(fake, 8);
    assert_int_equal(t.warnings, 0);
    join_by(fake, 8);
    assert_int_equal(t.warnings, 1);
    dv_fake_close(fake);
}
