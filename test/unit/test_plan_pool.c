/* Pools that follow the sticky plan: what moves, and what does not. SPDX-License-Identifier: Apache-2.0 */
#include "plan_pool.h"

enum { ITEMS = 1000 };

/* A first plan gives each of four an equal share, by one write (after one that makes room for its chunks); then nothing
 * more is written. */
TEST(test_first_plan) {
    pool l;
    pool_open(&l, ITEMS);
    for (size_t n = 0; n < 4; n++) add(&l, n, NULL);
    settle(&l);
    owners o = look(&l);
    for (size_t n = 0; n < 4; n++) assert_int_equal(o.loads[n], ITEMS / 4);
    owners_free(&o);
    assert_true(divvy_testing_exists(l.ensemble, "/pool/plan"));
    assert_int_equal(l.plan_writes, 2);
    assert_at_rest(&l);
    pool_close(&l);
}

/* Q9: where each member makes the directories of its items, no queue is listed. */
TEST(test_first_allocation_reads_nothing) {
    pool l;
    pool_open(&l, ITEMS);
    for (size_t n = 0; n < 4; n++) add(&l, n, NULL);
    settle(&l);
    for (size_t n = 0; n < 4; n++) {
        divvy_stats stats;
        assert_int_equal(divvy_client_stats(l.members[n].client, &stats, sizeof stats), 0);
        assert_true(stats.creates > ITEMS / 4);
        assert_true(stats.children < 40);
    }
    pool_close(&l);
}

/* How long two members take from nothing to their shares. */
static int64_t time_of_first_plan(bool used) {
    pool l;
    pool_open(&l, 10);
    static const char *const paths[] = {"/pool", "/pool/locks", "/pool/locks/old"};
    for (size_t i = 0; used && i < 3; i++)
        assert_int_equal(divvy_testing_put(l.ensemble, paths[i], "", 0, DIVVY_TESTING_PERSISTENT), 0);
    divvy_testing_run(l.ensemble, 10);
    if (used) assert_int_equal(divvy_testing_remove(l.ensemble, paths[2]), 0);
    divvy_testing_run(l.ensemble, 10);
    for (size_t n = 0; n < 2; n++) add(&l, n, NULL);
    int64_t ms = settle(&l);
    pool_close(&l);
    return ms;
}

/* D37: where no item ever had a directory nobody can know of owners, and the first plan is written at once. */
TEST(test_first_plan_of_a_new_pool) {
    int64_t new_ms = time_of_first_plan(false), used_ms = time_of_first_plan(true);
    assert_true(used_ms >= new_ms + 350); /* of the 400; looks are 10 ms apart */
    assert_true(used_ms <= new_ms + 450);
}

/* A join to 4 moves exactly a fifth, told as a join; a leave, or a loss, only what the one had who is gone. Each is one
 * write of the plan, and nobody but the old owners is interrupted. */
TEST(test_join_and_leave) {
    pool l;
    pool_open(&l, ITEMS);
    for (size_t n = 0; n < 4; n++) add(&l, n, NULL);
    settle(&l);
    owners before = look(&l);
    l.plan_writes = 0;
    add(&l, 4, NULL);
    settle(&l);
    owners joined = look(&l);
    assert_int_equal(moved(&l, &before, &joined), ITEMS / 5);
    assert_int_equal(joined.loads[4], ITEMS / 5);
    assert_int_equal(l.members[4].gained[DIVVY_REASON_JOIN], ITEMS / 5);
    size_t revoked = 0;
    for (size_t n = 0; n < 4; n++) revoked += l.members[n].revoked[DIVVY_REASON_JOIN];
    assert_int_equal(revoked, ITEMS / 5);
    assert_int_equal(l.plan_writes, 1);

    finish(&l, 2);
    settle(&l);
    owners left = look(&l);
    assert_int_equal(moved(&l, &joined, &left), joined.loads[2]);
    assert_int_equal(l.plan_writes, 2);

    crash(&l, 0);
    settle(&l);
    owners lost = look(&l);
    assert_int_equal(moved(&l, &left, &lost), left.loads[0]);
    assert_int_equal(l.plan_writes, 3);
    for (size_t n = 1; n < 5; n++) {
        if (n != 2) assert_true(l.members[n].gained[DIVVY_REASON_LOSS] > 0);
    }
    assert_at_rest(&l);
    owners_free(&before);
    owners_free(&joined);
    owners_free(&left);
    owners_free(&lost);
    pool_close(&l);
}

static void add_four(pool *l, size_t items) {
    pool_open(l, items);
    for (size_t n = 0; n < 4; n++) add(l, n, NULL);
    settle(l);
}

/* Steps through what happens, so that no two own one item at any time, and none is lost to a member that keeps it. */
static void settle_watched(pool *l) {
    for (int i = 0; i < 200; i++) {
        divvy_testing_run(l->ensemble, 5);
        owners o = look(l);
        owners_free(&o);
    }
    settle(l);
}

/* A member that goes by names makes all go by names; when it has left, all go by the plan again, which nobody has
 * written meanwhile, but for the owners of a member that came. No item is lost, nobody has to start again. */
TEST(test_change_over) {
    pool l;
    add_four(&l, ITEMS);
    owners before = look(&l);
    l.plan_writes = 0;
    divvy_partitioner_config config;
    member_config(&l, &config);
    config.assign = DIVVY_ASSIGN_RENDEZVOUS;
    add(&l, 4, &config);
    settle_watched(&l);
    owners mixed = look(&l);
    for (size_t n = 0; n < 5; n++) assert_int_equal(mixed.loads[n], ITEMS / 5);
    assert_int_equal(l.plan_writes, 0);
    finish(&l, 4);
    settle_watched(&l);
    owners after = look(&l);
    assert_int_equal(differences(&l, &before, &after), 0);
    assert_int_equal(l.plan_writes, 0);

    divvy_partitioner_config kazoo = DIVVY_PARTITIONER_CONFIG_KAZOO;
    kazoo.path = config.path;
    kazoo.items = config.items;
    kazoo.item_count = config.item_count;
    kazoo.time_boundary_ms = 100;
    add(&l, 5, &kazoo);
    settle_watched(&l);
    add(&l, 6, NULL);
    settle_watched(&l);
    owners six = look(&l);
    for (size_t n = 0; n < 7; n++) assert_true(n == 4 || six.loads[n] == 166 || six.loads[n] == 167);
    finish(&l, 5);
    settle_watched(&l);
    assert_int_equal(l.plan_writes, 1);
    assert_at_rest(&l);
    owners_free(&before);
    owners_free(&mixed);
    owners_free(&after);
    owners_free(&six);
    pool_close(&l);
}

/* When the last member that goes by names leaves a pool, the first plan begins with what that rule gave: only its own
 * items move. */
TEST(test_first_plan_keeps_owners) {
    pool l;
    pool_open(&l, ITEMS);
    divvy_partitioner_config config;
    member_config(&l, &config);
    config.assign = DIVVY_ASSIGN_RENDEZVOUS;
    add(&l, 4, &config);
    for (size_t n = 0; n < 4; n++) add(&l, n, NULL);
    settle(&l);
    owners before = look(&l);
    assert_false(divvy_testing_exists(l.ensemble, "/pool/plan"));
    finish(&l, 4);
    settle_watched(&l);
    owners after = look(&l);
    assert_true(divvy_testing_exists(l.ensemble, "/pool/plan"));
    assert_int_equal(moved(&l, &before, &after), before.loads[4]);
    for (size_t n = 0; n < 4; n++) assert_int_equal(l.members[n].states[DIVVY_RELEASE], 0);
    owners_free(&before);
    owners_free(&after);
    pool_close(&l);
}

static void remove_tree(pool *l, const char *path) {
    divvy_strings *children = divvy_testing_children(l->ensemble, path);
    for (size_t i = 0; i < divvy_strings_count(children); i++) {
        char child[300];
        snprintf(child, sizeof child, "%s/%s", path, divvy_strings_get(children, i));
        assert_int_equal(divvy_testing_remove(l->ensemble, child), 0);
    }
    divvy_strings_free(children);
    assert_int_equal(divvy_testing_remove(l->ensemble, path), 0);
}

/* A plan that somebody deletes is written again from memory: nothing moves. */
TEST(test_deleted) {
    pool l;
    add_four(&l, ITEMS);
    owners before = look(&l);
    remove_tree(&l, "/pool/plan");
    divvy_testing_run(l.ensemble, 5000);
    assert_true(divvy_testing_exists(l.ensemble, "/pool/plan"));
    settle(&l);
    owners after = look(&l);
    assert_int_equal(moved(&l, &before, &after), 0);
    add(&l, 4, NULL);
    settle(&l);
    owners joined = look(&l);
    assert_int_equal(moved(&l, &after, &joined), ITEMS / 5);
    assert_at_rest(&l);
    owners_free(&before);
    owners_free(&after);
    owners_free(&joined);
    pool_close(&l);
}

/* A plan that nobody can read costs no item: all go by names until it is written again, which happens at once. */
TEST(test_broken) {
    static const char *const texts[] = {"", "nonsense", "{\"v\":1}", "{\"v\":1,\"generation\":4}"};
    pool l;
    add_four(&l, ITEMS);
    for (size_t t = 0; t < sizeof texts / sizeof *texts; t++) {
        assert_int_equal(divvy_testing_put(l.ensemble, "/pool/plan", texts[t], strlen(texts[t]), 0), 0);
        settle_watched(&l);
    }
    for (size_t n = 0; n < 4; n++) assert_true(l.members[n].warnings[DIVVY_WARN_PLAN] > 0);
    owners before = look(&l);
    finish(&l, 1);
    settle(&l);
    owners after = look(&l);
    assert_int_equal(moved(&l, &before, &after), before.loads[1]);
    assert_at_rest(&l);
    owners_free(&before);
    owners_free(&after);
    pool_close(&l);
}

/* A plan of a later release: nobody owns anything by a rule that may be another than that one's, until it has turned
 * out that nobody follows it. */
TEST(test_newer) {
    pool l;
    add_four(&l, ITEMS);
    const char text[] = "{\"v\":2,\"something\":[]}";
    assert_int_equal(divvy_testing_put(l.ensemble, "/pool/plan", text, sizeof text - 1, 0), 0);
    divvy_testing_run(l.ensemble, 20000);
    owners none = look(&l);
    assert_int_equal(none.owned, 0);
    assert_false(all_acquired(&l));
    assert_int_equal(divvy_partitioner_state(l.members[0].partitioner), DIVVY_ALLOCATING);
    settle(&l); /* a minute later */
    assert_at_rest(&l);
    owners_free(&none);
    pool_close(&l);
}

/* Members in eager mode follow plans, too: each change is one RELEASE, of everything. */
TEST(test_eager) {
    pool l;
    pool_open(&l, 100);
    divvy_partitioner_config config;
    member_config(&l, &config);
    config.mode = DIVVY_EAGER;
    for (size_t n = 0; n < 3; n++) add(&l, n, &config);
    settle(&l);
    unsigned releases[3];
    for (size_t n = 0; n < 3; n++) releases[n] = l.members[n].states[DIVVY_RELEASE];
    owners before = look(&l);
    add(&l, 3, &config);
    settle(&l);
    for (size_t n = 0; n < 3; n++) assert_int_equal(l.members[n].states[DIVVY_RELEASE], releases[n] + 1);
    owners after = look(&l);
    assert_int_equal(differences(&l, &before, &after), 25);
    assert_int_equal(divvy_partitioner_set_weight(l.members[0].partitioner, 0), 0);
    settle(&l);
    assert_int_equal(l.members[0].states[DIVVY_RELEASE], releases[0] + 2);
    owners drained = look(&l);
    assert_int_equal(differences(&l, &after, &drained), 25);
    assert_at_rest(&l);
    owners_free(&before);
    owners_free(&after);
    owners_free(&drained);
    pool_close(&l);
}

/* Somebody deletes a member's node: it comes back under another name, the next plan has that, and no work stops. */
TEST(test_node_deleted) {
    pool l;
    add_four(&l, 100);
    divvy_strings *nodes = divvy_testing_children(l.ensemble, "/pool/party");
    assert_int_equal(divvy_strings_count(nodes), 4);
    char path[300];
    snprintf(path, sizeof path, "/pool/party/%s", divvy_strings_get(nodes, 2));
    divvy_strings_free(nodes);
    assert_int_equal(divvy_testing_remove(l.ensemble, path), 0);
    owners before = look(&l);
    unsigned plan_writes = l.plan_writes;
    divvy_testing_run(l.ensemble, 3000);
    settle(&l);
    assert_true(l.plan_writes > plan_writes);
    owners after = look(&l);
    assert_int_equal(moved(&l, &before, &after), 0);
    for (size_t n = 0; n < 4; n++) assert_int_equal(l.members[n].states[DIVVY_RELEASE], 0);
    assert_at_rest(&l);
    owners_free(&before);
    owners_free(&after);
    pool_close(&l);
}
