/* A partitioner whose set of items is replaced while it works. SPDX-License-Identifier: Apache-2.0 */
#include "items_set_fixture.h"

/* Kept items keep token and node, added ones are locked, removed ones are revoked, and stay ours until they are
 * released. */
TEST(test_replaced) {
    member m;
    join_plainly(&m, "m", "b c");
    int64_t token_b = heard(&m, "b")->token;
    assert_int_equal(deal(&m, "a b d", "a b d"), 0);
    run(1000);
    assert_int_equal(divvy_partitioner_state(m.p), DIVVY_RELEASE);
    assert_snapshot(&m, "a b c* d");
    assert_table(&m, "a b c d");
    assert_int_equal(places("c"), 1);
    assert_int_equal(heard(&m, "c")->revoked_reason, DIVVY_REASON_FOREIGN);
    assert_int_equal(heard(&m, "a")->gained_reason, DIVVY_REASON_FOREIGN);

    release(&m);
    assert_snapshot(&m, "a b d");
    assert_table(&m, "a b d");
    assert_false(divvy_testing_exists(ensemble, "/pool/locks/c")); /* P15: its owner deletes the empty directory */
    assert_int_equal(heard(&m, "c")->lost_reason, DIVVY_REASON_RELEASED);
    assert_int_equal(heard(&m, "b")->token, token_b);
    assert_int_equal(m.releases, 1);
    leave(&m);
}

/* A set that only grows stops nothing: there is no RELEASE. One of the same items is no change at all. */
TEST(test_grown) {
    member m;
    join_plainly(&m, "m", "b");
    assert_int_equal(deal(&m, "a b c", "a b c"), 0);
    assert_int_equal(divvy_partitioner_state(m.p), DIVVY_ALLOCATING);
    assert_int_equal(divvy_partitioner_wait_for_acquire(m.p, PATIENCE_MS), 0);
    run(1);
    assert_snapshot(&m, "a b c");
    uint64_t state_id = divvy_partitioner_state_id(m.p);
    const dv_item_table *table = dv_items_of(m.p);
    assert_int_equal(deal(&m, "c b a", "a b c"), 0);
    assert_int_equal(divvy_partitioner_state_id(m.p), state_id);
    assert_ptr_equal(dv_items_of(m.p), table);
    assert_int_equal(m.releases, 0);
    leave(&m);
}

/* An item that was removed and is dealt to us again before it was released keeps its node and token. */
TEST(test_back_again) {
    member m;
    join_plainly(&m, "m", "a b");
    int64_t token = heard(&m, "b")->token;
    assert_int_equal(deal(&m, "a", "a"), 0);
    run(1000);
    assert_snapshot(&m, "a b*");
    assert_int_equal(deal(&m, "a b", "a b"), 0);
    run(1000);
    assert_snapshot(&m, "a b*");
    release(&m);
    assert_snapshot(&m, "a b");
    assert_int_equal(heard(&m, "b")->token, token);
    leave(&m);
}

/* Removed, released, and dealt again while its place is still on its way out: the item is entered again, and has a new
 * token. */
TEST(test_back_after_release) {
    member m;
    join_plainly(&m, "m", "a b");
    int64_t token = heard(&m, "b")->token;
    assert_int_equal(deal(&m, "a", "a"), 0);
    run(1);
    assert_int_equal(divvy_partitioner_state(m.p), DIVVY_RELEASE);
    assert_int_equal(divvy_partitioner_release_set(m.p), 0);
    assert_int_equal(deal(&m, "a b c", "a b c"), 0);
    assert_int_equal(divvy_partitioner_wait_for_acquire(m.p, PATIENCE_MS), 0);
    run(1);
    assert_snapshot(&m, "a b c");
    assert_true(heard(&m, "b")->token > token);
    assert_int_equal(places("b"), 1);
    leave(&m);
}

/* More is removed while the first has not been released: one RELEASE after the other, each with what it was told of. */
TEST(test_removed_one_after_another) {
    member m;
    join_plainly(&m, "m", "a b c");
    assert_int_equal(deal(&m, "a b", "a b"), 0);
    run(10);
    assert_snapshot(&m, "a b c*");
    assert_int_equal(deal(&m, "a", "a"), 0);
    run(10);
    assert_snapshot(&m, "a b c*");
    assert_int_equal(divvy_partitioner_release_set(m.p), 0);
    run(10);
    assert_int_equal(divvy_partitioner_state(m.p), DIVVY_RELEASE);
    assert_snapshot(&m, "a b*");
    assert_table(&m, "a b");
    release(&m);
    assert_snapshot(&m, "a");
    assert_table(&m, "a");
    assert_int_equal(m.releases, 2);
    leave(&m);
}

/* A place in the queue of a removed item that somebody else holds is left without asking the user; so is an item whose
 * queue is not made yet. */
TEST(test_unshown) {
    member m;
    join_plainly(&m, "m", "w");
    divvy_lock *holder;
    divvy_lock_config config = DIVVY_LOCK_CONFIG_INIT;
    config.path = "/pool/locks/x";
    divvy_client *other = open_client(NULL);
    assert_int_equal(divvy_lock_create(&holder, other, &config), 0);
    assert_int_equal(divvy_lock_acquire(holder, PATIENCE_MS), 0);
    assert_int_equal(deal(&m, "a w x y", "a x y"), 0);
    run(1);
    assert_int_equal(divvy_partitioner_state(m.p), DIVVY_RELEASE);
    assert_int_equal(divvy_partitioner_release_set(m.p), 0);
    run(1000);
    assert_int_equal(divvy_partitioner_state(m.p), DIVVY_ALLOCATING);
    assert_int_equal(places("x"), 2);
    assert_int_equal(deal(&m, "a z", "a z"), 0);
    assert_int_equal(deal(&m, "a", "a"), 0); /* z was not even asked for */
    run(1000);
    assert_int_equal(places("x"), 1);
    assert_table(&m, "a y");
    assert_snapshot(&m, "a y*");
    release(&m);
    assert_snapshot(&m, "a");
    assert_table(&m, "a");
    leave(&m);
    divvy_lock_destroy(holder);
    divvy_client_close(other);
}

/* The directory of a removed item goes with its last place (P15), and the item's later owner makes it again,
 * also when it goes in the very moment in which it is needed. */
TEST(test_directory) {
    member m;
    join_plainly(&m, "m", "a b");
    for (int64_t delay_ms = 0; delay_ms < 16; delay_ms++) {
        assert_int_equal(deal(&m, "a", "a"), 0);
        run(100);
        assert_int_equal(divvy_partitioner_release_set(m.p), 0);
        run(delay_ms);
        assert_int_equal(deal(&m, "a b", "a b"), 0);
        assert_int_equal(divvy_partitioner_wait_for_acquire(m.p, PATIENCE_MS), 0);
        run(1000);
        assert_snapshot(&m, "a b");
        assert_int_equal(places("b"), 1);
    }
    assert_int_equal(deal(&m, "a", "a"), 0);
    run(100);
    assert_int_equal(divvy_partitioner_release_set(m.p), 0);
    run(1000);
    assert_false(divvy_testing_exists(ensemble, "/pool/locks/b"));
    leave(&m);
}

/* Nothing in common: all that was there is revoked, all that comes is taken at once. */
TEST(test_all_new) {
    member m;
    join_plainly(&m, "m", "a b c");
    assert_int_equal(deal(&m, "d e f", "d e f"), 0);
    run(1000);
    assert_snapshot(&m, "a* b* c* d e f");
    release(&m);
    assert_snapshot(&m, "d e f");
    assert_table(&m, "d e f");
    leave(&m);
}

/* A snapshot of before the change still has its items, and outlives the partitioner. */
TEST(test_old_snapshot) {
    member m;
    join_plainly(&m, "m", "a b");
    divvy_partition *before = divvy_partitioner_partition(m.p);
    assert_int_equal(deal(&m, "c", "c"), 0);
    run(10);
    assert_snapshot(&m, "a* b* c");
    assert_int_equal(divvy_partitioner_release_set(m.p), 0);
    run(1000);
    leave(&m);
    assert_int_equal(divvy_partition_count(before), 2);
    assert_string_equal(divvy_partition_item(before, 0), "a");
    assert_string_equal(divvy_partition_item(before, 1), "b");
    assert_false(divvy_partition_revoked(before, 1));
    divvy_partition_unref(before);
}

/* In eager mode everything is revoked for one removed item, and the new share is shown as a whole (P5). */
TEST(test_eager) {
    member m;
    divvy_partitioner_config config = DIVVY_PARTITIONER_CONFIG_INIT;
    config.mode = DIVVY_EAGER;
    join(&m, "m", "a b", config);
    int64_t token = heard(&m, "a")->token;
    assert_int_equal(deal(&m, "a c", "a c"), 0);
    run(1000);
    assert_snapshot(&m, "a* b*");
    release(&m);
    assert_snapshot(&m, "a c");
    assert_true(heard(&m, "a")->token > token);
    assert_table(&m, "a c");
    leave(&m);
}

/* finish() with a removed item that was not released: its place is left too, and its directory removed (P12). */
TEST(test_finish) {
    member m;
    join_plainly(&m, "m", "a b");
    assert_int_equal(deal(&m, "a", "a"), 0);
    run(1000);
    assert_int_equal(divvy_partitioner_finish(m.p, PATIENCE_MS), 0);
    run(1);
    assert_false(heard(&m, "b")->shown);
    assert_int_equal(heard(&m, "b")->lost_reason, DIVVY_REASON_FINISH);
    assert_false(divvy_testing_exists(ensemble, "/pool/locks/a"));
    assert_false(divvy_testing_exists(ensemble, "/pool/locks/b"));
    leave(&m);
}

/* The session ends with a removed item pending. With DIVVY_FAIL all is over; */
TEST(test_lost_for_good) {
    member m;
    join_plainly(&m, "m", "a b");
    assert_int_equal(deal(&m, "a", "a"), 0);
    run(10);
    assert_int_equal(divvy_testing_expire(ensemble, m.client), 0);
    run(PATIENCE_MS);
    assert_int_equal(divvy_partitioner_state(m.p), DIVVY_FAILURE);
    assert_false(heard(&m, "a")->shown);
    assert_false(heard(&m, "b")->shown);
    assert_int_equal(divvy_partitioner_owns(m.p, "a"), 0);
    leave(&m);
}

/* with DIVVY_REJOIN it goes on with the set that is dealt. */
TEST(test_lost_and_rejoined) {
    member m;
    divvy_partitioner_config config = DIVVY_PARTITIONER_CONFIG_INIT;
    config.on_session_loss = DIVVY_REJOIN;
    join(&m, "m", "a b", config);
    assert_int_equal(deal(&m, "a c", "a c"), 0);
    run(10);
    assert_snapshot(&m, "a b* c");
    assert_int_equal(divvy_testing_expire(ensemble, m.client), 0);
    run(PATIENCE_MS);
    assert_int_equal(divvy_partitioner_state(m.p), DIVVY_RELEASE);
    assert_snapshot(&m, "");
    release(&m);
    assert_int_equal(dv_item_count(m.p), 2); /* without what was removed, and lost with the session */
    divvy_partition *snapshot = divvy_partitioner_partition(m.p);
    assert_int_equal(divvy_partition_count(snapshot), 2);
    divvy_partition_unref(snapshot);
    leave(&m);
}

/* With kazoo's suspend policy a break of the link revokes everything, the removed item stays with the rest. */
TEST(test_suspended) {
    member m;
    divvy_partitioner_config config = DIVVY_PARTITIONER_CONFIG_INIT;
    config.on_suspend = DIVVY_RELEASE_ON_SUSPEND;
    join(&m, "m", "a b", config);
    assert_int_equal(deal(&m, "a", "a"), 0);
    run(10);
    assert_snapshot(&m, "a b*");
    assert_int_equal(divvy_testing_disconnect(ensemble, m.client, DIVVY_TESTING_NOT_APPLIED, 0), 0);
    run(1000);
    assert_int_equal(divvy_partitioner_release_set(m.p), 0);
    run(10);
    assert_snapshot(&m, "a*");
    release(&m);
    assert_snapshot(&m, "a");
    assert_table(&m, "a");
    leave(&m);
}

/* Somebody deletes the place of a removed item before it is released: it is lost at once (P13), and not entered
 * again. */
TEST(test_place_deleted) {
    member m;
    join_plainly(&m, "m", "a b");
    assert_int_equal(deal(&m, "a", "a"), 0);
    run(10);
    divvy_strings *names = divvy_testing_children(ensemble, "/pool/locks/b");
    char path[160];
    snprintf(path, sizeof path, "/pool/locks/b/%s", divvy_strings_get(names, 0));
    divvy_strings_free(names);
    assert_int_equal(divvy_testing_remove(ensemble, path), 0);
    run(61000); /* until the audit */
    assert_false(heard(&m, "b")->shown);
    assert_int_equal(heard(&m, "b")->lost_reason, DIVVY_REASON_FOREIGN);
    assert_table(&m, "a");
    assert_int_equal(divvy_partitioner_state(m.p), DIVVY_RELEASE);
    assert_int_equal(divvy_partitioner_release_set(m.p), 0);
    assert_int_equal(divvy_partitioner_wait_for_acquire(m.p, PATIENCE_MS), 0);
    assert_int_equal(places("b"), 0);
    leave(&m);
}

/* A set is replaced while an audit's answers, creates and directories of the one before are under way: each is for its
 * own item, wherever that stands by now. All moments of it, millisecond by millisecond. */
TEST(test_replaced_under_way) {
    for (int64_t delay_ms = 0; delay_ms < 24; delay_ms++) {
        member m;
        join_plainly(&m, "m", "k p");
        assert_int_equal(deal(&m, "a b k p", "a b k p"), 0);
        assert_int_equal(divvy_testing_disconnect(ensemble, m.client, DIVVY_TESTING_APPLIED, 0), 0);
        run(delay_ms); /* a reconnect begins with an audit (P13) */
        assert_int_equal(deal(&m, "c k", "c k"), 0);
        run(delay_ms);
        assert_int_equal(deal(&m, "d k z", "k z"), 0);
        run(1000);
        while (divvy_partitioner_state(m.p) == DIVVY_RELEASE) assert_int_equal(divvy_partitioner_release_set(m.p), 0);
        assert_int_equal(divvy_partitioner_wait_for_acquire(m.p, PATIENCE_MS), 0);
        run(1);
        assert_snapshot(&m, "k z");
        assert_table(&m, "k z");
        assert_int_equal(places("a") + places("b") + places("c") + places("d") + places("p"), 0);
        leave(&m);
        run(PATIENCE_MS);
    }
}

/* An item of somebody else's set that no lock can have stays unowned, and is told; the rest is taken. */
TEST(test_too_long) {
    member m;
    join_plainly(&m, "m", "a");
    char *name = malloc(70000);
    assert_non_null(name);
    memset(name, 'n', 69999);
    name[69999] = '\0';
    const char *const names[] = {"a", "b", name};
    const uint8_t mine[] = {1, 1, 1};
    dv_client_lock(m.client);
    dv_plan_set *set;
    assert_int_equal(dv_items_make_set(&set, m.client, "test", m.p->locks_path, names, 3), DIVVY_E2BIG);
    assert_null(set);
    set = dv_plan_set_make(names, 3);
    assert_int_equal(dv_items_use(m.p, set), 0);
    assert_int_equal(dv_items_need(m.p, mine), 0);
    dv_state_target_settled(m.p, mine, DIVVY_REASON_MEMBERS, dv_client_now(m.client));
    dv_plan_set_unref(set);
    dv_client_unlock(m.client);
    assert_int_equal(divvy_partitioner_wait_for_acquire(m.p, PATIENCE_MS), 0);
    run(1);
    assert_snapshot(&m, "a b");
    assert_int_equal(divvy_partitioner_owns(m.p, name), 0);
    assert_int_equal(m.warnings[DIVVY_WARN_ITEM_NAME], 1);
    free(name);
    leave(&m);
}

static size_t replaced(const member *m) {
    size_t count = 0;
    for (const dv_item_table *t = m->p->aging; t; t = t->older) count++;
    for (const dv_item_table *t = m->p->retired; t; t = t->older) count++;
    return count;
}

/* A table that a thread still looks into is kept. It is freed soon after that thread has left, though others look all
 * the time, and no further set comes. */
TEST(test_reader_keeps_table) {
    member m;
    join_plainly(&m, "m", "a");
    atomic_uint *first = dv_readers_enter(m.p->readers); /* as divvy_partitioner_owns() does while it looks */
    const dv_item_table *table = dv_items_of(m.p);
    assert_int_equal(deal(&m, "a b", "a b"), 0);
    assert_int_equal(deal(&m, "a b c", "a b c"), 0);
    run(1000);
    assert_int_equal(replaced(&m), 4); /* each time by another set, then with a new item */
    assert_string_equal(table->names->names[0], "a");
    atomic_uint *second = dv_readers_enter(m.p->readers);
    dv_readers_leave(first);
    run(100);
    assert_int_equal(replaced(&m), 3); /* the first has gone, and not those that the second may look into */
    atomic_uint *third = dv_readers_enter(m.p->readers);
    dv_readers_leave(second);
    run(100);
    assert_int_equal(replaced(&m), 0);
    dv_readers_leave(third);
    leave(&m);
}

TEST_EACH(set_up, tear_down);
