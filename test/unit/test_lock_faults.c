/* Tests of divvy/lock.h under faults, on a scripted backend. SPDX-License-Identifier: Apache-2.0 */
#include "unit/lock_fixture.h"

/* --- faults ----------------------------------------------------------------------------------------------------- */

/* The reply to the create is lost: carried out, not carried out, or only later, the lock is had with one node. No
 * orphan is left for its own client to wait for (kazoo #732, #760). */
TEST(test_lost_create) {
    for (int variant = 0; variant < 4; variant++) {
        holder h;
        make(&h, DIVVY_EXCLUSIVE);
        ask(&h, -1);
        dv_tree_cut(tree, variant < 3 ? (size_t)variant : 0, variant == 3);
        assert_int_equal(h.result, NEVER);
        dv_fake_session(fake, DIVVY_CONNECTED);
        serve();
        assert_int_equal(h.result, 0);
        assert_int_equal(owned(), 1);
        divvy_lock_release(h.lock);
        serve();
        assert_int_equal(owned(), 0);
        destroy(&h);
    }
}

/* A release whose delete is lost is over for its caller at once; the delete is sent until it is certain (Curator #1193,
 * #1006). */
TEST(test_lost_delete) {
    for (int variant = 0; variant < 3; variant++) {
        holder h;
        make(&h, DIVVY_EXCLUSIVE);
        hold(&h);
        assert_int_equal(divvy_lock_release(h.lock), 0);
        dv_tree_cut(tree, variant == 0, variant == 2);
        assert_false(divvy_lock_held(h.lock));
        ask(&h, -1);
        dv_fake_session(fake, DIVVY_CONNECTED);
        serve();
        assert_int_equal(h.result, 0);
        assert_int_equal(owned(), 1);
        destroy(&h);
        serve();
        assert_int_equal(owned(), 0);
        assert_int_equal(h.lost, 0);
    }
}

/* A connection that goes and comes back changes nothing for who holds; who waits looks again, and gets what was
 * released meanwhile (kazoo #282). */
TEST(test_reconnect) {
    holder h, other;
    make(&h, DIVVY_EXCLUSIVE);
    make(&other, DIVVY_EXCLUSIVE);
    hold(&h);
    ask(&other, -1);
    serve();
    int64_t token = divvy_lock_token(h.lock);
    dv_tree_cut(tree, 0, false);
    dv_fake_advance(fake, 1000);
    assert_int_equal(divvy_lock_token(h.lock), token);
    dv_fake_session(fake, DIVVY_CONNECTED);
    serve();
    assert_int_equal(divvy_lock_token(h.lock), token);
    dv_tree_cut(tree, 0, false);
    divvy_lock_release(h.lock);
    dv_fake_session(fake, DIVVY_CONNECTED);
    serve();
    assert_true(divvy_lock_held(other.lock));
    destroy(&h);
    destroy(&other);
    assert_int_equal(h.lost + other.lost, 0);
}

/* A lock looks again after a reconnect: the one before it may have gone when no watch could tell. */
TEST(test_missed_watch) {
    holder h;
    char theirs[64];
    make(&h, DIVVY_EXCLUSIVE);
    strcpy(theirs, dv_tree_put(tree, PATH "/x__lock__", DV_EPHEMERAL | DV_SEQUENTIAL, NOBODY));
    ask(&h, -1);
    serve();
    dv_tree_cut(tree, 0, false);
    dv_tree_remove(tree, theirs);
    dv_fake_session(fake, DIVVY_CONNECTED);
    serve();
    assert_int_equal(h.result, 0);
    destroy(&h);
}

/* Somebody deletes the node of the holder: told once, by the heartbeat or the lock's own look, and not held from then
 * on; the lock can be had again, in on_lost already. */
TEST(test_node_deleted_while_held) {
    for (int again = 0; again < 2; again++) {
        holder h;
        make(&h, DIVVY_EXCLUSIVE);
        hold(&h);
        h.acquires_when_lost = again;
        dv_tree_remove(tree, dv_lock_path(h.lock));
        for (int i = 0; i < 20 && !h.lost; i++) {
            dv_fake_advance(fake, 250);
            serve();
        }
        assert_int_equal(h.lost, 1);
        serve();
        assert_int_equal(divvy_lock_release(h.lock), again ? 0 : DIVVY_ENOTHELD);
        if (!again) hold(&h);
        else assert_int_equal(h.said_when_lost, 0);
        dv_fake_advance(fake, 3000);
        serve();
        assert_int_equal(h.lost, 1);
        assert_int_equal(h.done, 2);
        destroy(&h);
    }
}

/* on_lost may destroy its own lock, with an acquire of its own under way: that is told ECANCELED afterwards. */
TEST(test_destroyed_in_on_lost) {
    holder h;
    make(&h, DIVVY_EXCLUSIVE);
    hold(&h);
    h.acquires_when_lost = h.destroys_when_lost = true;
    dv_tree_remove(tree, dv_lock_path(h.lock));
    for (int i = 0; i < 20 && !h.lost; i++) {
        dv_fake_advance(fake, 250);
        serve();
    }
    assert_int_equal(h.lost, 1);
    assert_int_equal(h.said_when_lost, 0);
    assert_int_equal(h.done, 2);
    assert_int_equal(h.result, DIVVY_ECANCELED);
    assert_int_equal(owned(), 0);
}

/* Released in the moment in which the loss is found: no on_lost comes after a release that succeeded. */
TEST(test_no_on_lost_after_release) {
    holder h;
    make(&h, DIVVY_EXCLUSIVE);
    hold(&h);
    dv_tree_remove(tree, dv_lock_path(h.lock));
    assert_int_equal(divvy_lock_release(h.lock), 0);
    dv_fake_advance(fake, 6000);
    serve();
    dv_tree_expire(tree);
    assert_int_equal(h.lost, 0);
    destroy(&h);
}

/* The node of one who waits is deleted, or the whole directory: it enters again and gets the lock. */
TEST(test_node_deleted_while_waiting) {
    holder h, other;
    make(&h, DIVVY_EXCLUSIVE);
    make(&other, DIVVY_EXCLUSIVE);
    hold(&h);
    ask(&other, -1);
    serve();
    dv_tree_remove(tree, OURS(2, 1));
    divvy_lock_release(h.lock);
    serve();
    assert_true(divvy_lock_held(other.lock));
    assert_int_equal(other.done, 1);
    destroy(&h);
    destroy(&other);
}

/* --- the session ------------------------------------------------------------------------------------------------ */

/* Held while the session is lost: on_lost once, no belief, nothing to release. The one who waited hears ELOST, once,
 * from a client that gets no new session. */
TEST(test_session_lost) {
    holder h, other, creating;
    make(&h, DIVVY_EXCLUSIVE);
    make(&other, DIVVY_EXCLUSIVE);
    make(&creating, DIVVY_EXCLUSIVE);
    hold(&h);
    ask(&other, -1);
    serve();
    ask(&creating, -1);
    dv_tree_expire(tree);
    assert_int_equal(h.lost, 1);
    assert_false(divvy_lock_held(h.lock));
    assert_int_equal(divvy_lock_release(h.lock), DIVVY_ENOTHELD);
    assert_int_equal(other.result, DIVVY_ELOST);
    assert_int_equal(creating.result, DIVVY_ELOST);
    assert_int_equal(other.done + creating.done, 2);
    assert_int_equal(divvy_lock_acquire(h.lock, -1), DIVVY_ELOST);
    destroy(&h);
    destroy(&other);
    destroy(&creating);
    assert_int_equal(other.lost + creating.lost, 0);
}

/* The deadline of the session clock: yes until right before it, no from then on, asked or told. */
TEST(test_deadline) {
    holder h;
    make(&h, DIVVY_EXCLUSIVE);
    hold(&h);
    dv_tree_cut(tree, 0, false);
    int64_t left_ms = divvy_client_time_left_ms(dv_fake_client(fake));
    assert_true(left_ms > 1000);
    dv_fake_advance(fake, left_ms - 1);
    assert_true(divvy_lock_held(h.lock));
    assert_int_equal(h.lost, 0);
    dv_fake_advance(fake, 1);
    assert_int_equal(divvy_lock_held(h.lock) + divvy_lock_token(h.lock), 0);
    assert_int_equal(h.lost, 1);
    destroy(&h);
}

/* On a host's session that lives on after its deadline: what was held and who waited are over, their nodes are deleted,
 * at once or when there is a link, and then the same objects acquire again on the same session. */
TEST(test_host_session_lives_on) {
    for (int linked = 0; linked < 2; linked++) {
        holder h, other;
        make(&h, DIVVY_EXCLUSIVE);
        make(&other, DIVVY_EXCLUSIVE);
        dv_fake_client(fake)->znode->attached = true;
        hold(&h);
        ask(&other, -1);
        serve();
        int64_t token = divvy_lock_token(h.lock);
        if (linked) dv_fake_hold_beats(fake, true);
        else dv_tree_cut(tree, 0, false);
        dv_fake_advance(fake, divvy_client_time_left_ms(dv_fake_client(fake)));
        assert_int_equal(h.lost, 1);
        assert_int_equal(other.result, DIVVY_ELOST);
        assert_int_equal(divvy_lock_acquire_async(h.lock, -1, on_done, &h), DIVVY_ELOST);
        assert_int_equal(owned(), 2);
        dv_fake_hold_beats(fake, false);
        if (!linked) dv_fake_session(fake, DIVVY_CONNECTED);
        serve();
        assert_int_equal(owned(), 0);
        assert_int_equal(divvy_client_state(dv_fake_client(fake)), DIVVY_CONNECTED);
        ask(&other, -1);
        for (int i = 0; i < 60 && other.result == NEVER; i++) {
            serve();
            dv_fake_advance(fake, 100);
        }
        assert_int_equal(other.result, 0);
        assert_true(divvy_lock_token(other.lock) > token);
        destroy(&h);
        destroy(&other);
        serve();
        dv_fake_client(fake)->znode->attached = false;
    }
}

/* First in the queue, but nothing has proven yet that the session lives: the acquire ends with the proof, or in its
 * time, leaving nothing. */
TEST(test_not_before_the_first_proof) {
    holder h;
    make(&h, DIVVY_EXCLUSIVE);
    dv_fake_hold_beats(fake, true);
    atomic_store(&dv_fake_client(fake)->alive_until, 0);
    dv_fake_client(fake)->clock.proven_at = 0;
    dv_fake_client(fake)->clock.unproven_count = 0;
    ask(&h, 0);
    serve();
    assert_int_equal(owned(), 1);
    assert_false(divvy_lock_held(h.lock));
    dv_fake_advance(fake, 900);
    assert_int_equal(h.result, DIVVY_ETIMEDOUT);
    serve();
    assert_int_equal(owned(), 0);
    ask(&h, -1);
    serve();
    assert_int_equal(h.result, NEVER);
    for (int i = 0; i < 60 && h.result == NEVER; i++) {
        assert_false(divvy_lock_held(h.lock));
        dv_fake_advance(fake, 100);
        serve();
    }
    assert_int_equal(h.result, 0);
    assert_true(divvy_lock_held(h.lock));
    destroy(&h);
}

static holder doomed;

static void on_done_first(divvy_lock *lock, int result, void *user) {
    on_done(lock, result, user);
    assert_true(divvy_lock_held(doomed.lock)); /* granted, and not told yet */
    divvy_lock_destroy(doomed.lock);
    assert_int_equal(doomed.done, 0);
}

/* Granted, but destroyed in the callback of another lock before it was told: told ECANCELED, for it is not held. */
TEST(test_granted_and_destroyed) {
    holder h;
    dv_tree_put(tree, "/m", DV_PERSISTENT, 0);
    make(&h, DIVVY_EXCLUSIVE);
    assert_int_equal(create(&doomed, "/m", DIVVY_EXCLUSIVE), 0);
    dv_fake_hold_beats(fake, true);
    atomic_store(&dv_fake_client(fake)->alive_until, 0);
    dv_fake_client(fake)->clock.proven_at = 0;
    dv_fake_client(fake)->clock.unproven_count = 0;
    assert_int_equal(divvy_lock_acquire_async(h.lock, -1, on_done_first, &h), 0);
    ask(&doomed, -1);
    serve();
    for (int i = 0; i < 60 && h.result == NEVER; i++) {
        dv_fake_advance(fake, 100);
        serve();
    }
    assert_int_equal(h.result, 0);
    assert_int_equal(doomed.done, 1);
    assert_int_equal(doomed.result, DIVVY_ECANCELED);
    destroy(&h);
}

/* The client is closed: who waits hears ECANCELED, what was granted and not told too, and nothing is lost but given up.
 */
TEST_IN(test_close, set_up, NULL) {
    holder h, other;
    make(&h, DIVVY_EXCLUSIVE);
    make(&other, DIVVY_EXCLUSIVE);
    hold(&h);
    ask(&other, -1);
    serve();
    divvy_client *client = dv_fake_client(fake);
    dv_client_ref(client);
    dv_fake_close(fake);
    assert_int_equal(other.done, 1);
    assert_int_equal(other.result, DIVVY_ECANCELED);
    assert_int_equal(h.lost, 0);
    assert_false(divvy_lock_held(h.lock));
    assert_int_equal(divvy_lock_acquire(h.lock, -1), DIVVY_ECLOSED);
    assert_int_equal(divvy_lock_acquire_async(h.lock, -1, on_done, &h), DIVVY_ECLOSED);
    divvy_lock_destroy(h.lock);
    divvy_lock_destroy(other.lock);
    assert_int_equal(client->ephemeral_count, 0);
    assert_null(client->listeners);
    dv_client_unref(client);
    dv_tree_free(tree);
}

TEST_EACH(set_up, tear_down);
