/* Tests of divvy/lock.h, on a scripted backend. SPDX-License-Identifier: Apache-2.0 */
#include "unit/lock_fixture.h"

/* --- one contender ---------------------------------------------------------------------------------------------- */

/* A free lock takes one round trip: create and list go out together, and nothing else is sent. The release deletes. */
TEST(test_lock_one) {
    holder h;
    make(&h, DIVVY_EXCLUSIVE);
    assert_string_equal(dv_fake_pending(fake), "");
    assert_int_equal(divvy_lock_held(h.lock) + divvy_lock_token(h.lock), 0);
    ask(&h, -1);
    assert_string_equal(dv_fake_pending(fake), "sequential /l/#1__lock__, children /l");
    assert_memory_equal(dv_fake_oldest(fake)->ops->data, "me", 2);
    assert_false(divvy_lock_held(h.lock));
    serve();
    assert_int_equal(h.result, 0);
    assert_int_equal(h.done, 1);
    assert_true(divvy_lock_held(h.lock));
    assert_true(divvy_lock_token(h.lock) > 0);
    assert_int_equal(divvy_lock_release(h.lock), 0);
    assert_int_equal(divvy_lock_held(h.lock) + divvy_lock_token(h.lock), 0);
    assert_string_equal(dv_fake_pending(fake), "delete " PATH "/#1__lock__0000000000");
    serve();
    assert_int_equal(owned(), 0);
    destroy(&h);
    assert_int_equal(h.lost, 0);
}

/* Held: a second acquire says EALREADY at once. While another waits it says EINPROGRESS. Not held: release says
 * ENOTHELD. */
TEST(test_not_reentrant) {
    holder h, other;
    make(&h, DIVVY_EXCLUSIVE);
    make(&other, DIVVY_EXCLUSIVE);
    assert_int_equal(divvy_lock_release(h.lock), DIVVY_ENOTHELD);
    hold(&h);
    assert_int_equal(divvy_lock_acquire(h.lock, -1), DIVVY_EALREADY);
    assert_int_equal(divvy_lock_try_acquire(h.lock), DIVVY_EALREADY);
    ask(&other, -1);
    serve();
    assert_int_equal(other.result, NEVER);
    assert_int_equal(divvy_lock_acquire(other.lock, -1), DIVVY_EINPROGRESS);
    assert_int_equal(divvy_lock_acquire_async(other.lock, -1, on_done, &other), DIVVY_EINPROGRESS);
    assert_int_equal(divvy_lock_release(other.lock), DIVVY_ENOTHELD);
    assert_int_equal(divvy_lock_release(h.lock), 0);
    assert_int_equal(divvy_lock_release(h.lock), DIVVY_ENOTHELD);
    serve();
    assert_int_equal(other.result, 0);
    destroy(&h);
    destroy(&other);
    assert_int_equal(h.done + other.done, 2);
}

/* A missing directory is made, with its parents, when the create has found it missing; and again if it vanishes between
 * that and the next create (kazoo #563). */
TEST(test_missing_directory) {
    holder h;
    assert_int_equal(create(&h, "/a/b", DIVVY_EXCLUSIVE), 0);
    ask(&h, -1);
    assert_string_equal(dv_fake_pending(fake), "sequential /a/b/#1__lock__, children /a/b");
    for (int i = 0; i < 5; i++) dv_tree_serve(tree); /* both, the look, and two creates */
    assert_string_equal(dv_fake_pending(fake), "sequential /a/b/#2__lock__, children /a/b");
    dv_tree_remove(tree, "/a/b");
    serve();
    assert_int_equal(h.result, 0);
    assert_int_equal(owned(), 1);
    destroy(&h);
}

/* An acquire that comes while the directory is being made for a canceled one waits for that, and makes none itself. */
TEST(test_canceled_while_directory_is_made) {
    holder h;
    assert_int_equal(create(&h, "/a/b", DIVVY_EXCLUSIVE), 0);
    ask(&h, -1);
    for (int i = 0; i < 2; i++) dv_tree_serve(tree);
    assert_string_equal(dv_fake_pending(fake), "exists /a/b");
    divvy_lock_cancel(h.lock, 0);
    dv_fake_run(fake);
    assert_int_equal(h.result, DIVVY_ECANCELED);
    ask(&h, -1);
    assert_string_equal(dv_fake_pending(fake), "exists /a/b");
    serve();
    assert_int_equal(h.result, 0);
    assert_int_equal(owned(), 1);
    destroy(&h);
}

/* The same object is acquired again and again, also before the delete of the time before was answered. Tokens grow. */
TEST(test_reacquire) {
    holder h;
    int64_t token = 0;
    make(&h, DIVVY_EXCLUSIVE);
    for (int i = 0; i < 10; i++) {
        hold(&h);
        assert_true(divvy_lock_token(h.lock) > token);
        token = divvy_lock_token(h.lock);
        assert_int_equal(owned(), 1);
        assert_int_equal(divvy_lock_release(h.lock), 0);
    }
    serve();
    assert_int_equal(owned(), 0);
    assert_int_equal(h.done, 10);
    destroy(&h);
}

/* A try with nobody but our own last place before it, whose delete was lost, waits for that to go. */
TEST(test_try_behind_own_place) {
    holder h;
    make(&h, DIVVY_EXCLUSIVE);
    ask(&h, -1);
    divvy_lock_cancel(h.lock, 0); /* while the create is under way */
    dv_fake_run(fake);
    assert_int_equal(h.result, DIVVY_ECANCELED);
    ask(&h, 0);
    dv_tree_serve(tree); /* the create of the first */
    serve();
    assert_int_equal(h.result, 0);
    assert_int_equal(owned(), 1);
    destroy(&h);
}

/* --- giving up -------------------------------------------------------------------------------------------------- */

/* A try behind somebody ends at once, sets no watch, and leaves no contender; the lock can be had later. */
TEST(test_try_busy) {
    holder h;
    make(&h, DIVVY_EXCLUSIVE);
    char theirs[64];
    strcpy(theirs, dv_tree_put(tree, PATH "/x__lock__", DV_EPHEMERAL | DV_SEQUENTIAL, NOBODY));
    ask(&h, 0);
    dv_tree_serve(tree);
    dv_tree_serve(tree);
    assert_int_equal(h.result, DIVVY_EBUSY);
    assert_false(dv_fake_is_watched(fake, theirs));
    assert_string_equal(dv_fake_pending(fake), "delete " PATH "/#1__lock__0000000001");
    serve();
    assert_int_equal(owned(), 0);
    dv_tree_remove(tree, theirs);
    ask(&h, 0);
    serve();
    assert_int_equal(h.result, 0);
    destroy(&h);
    assert_int_equal(h.done, 2);
}

/* The timeout is total: woken again and again it still ends at its time, without a node or a watch (kazoo's restarts
 * on each wake-up). */
TEST(test_timeout_is_total) {
    holder h;
    char theirs[5][64];
    make(&h, DIVVY_EXCLUSIVE);
    for (int i = 0; i < 5; i++)
        strcpy(theirs[i], dv_tree_put(tree, PATH "/x__lock__", DV_EPHEMERAL | DV_SEQUENTIAL, NOBODY));
    ask(&h, 1000);
    for (int i = 4; i > 0; i--) {
        serve();
        dv_fake_advance(fake, 240);
        assert_true(dv_fake_is_watched(fake, theirs[i]));
        dv_tree_remove(tree, theirs[i]);
    }
    serve();
    dv_fake_advance(fake, 39);
    assert_int_equal(h.result, NEVER);
    dv_fake_advance(fake, 1);
    assert_int_equal(h.result, DIVVY_ETIMEDOUT);
    serve();
    assert_int_equal(owned(), 0);
    assert_false(dv_fake_is_watched(fake, theirs[0]));
    dv_tree_remove(tree, theirs[0]);
    hold(&h);
    destroy(&h);
}

/* A try and a timeout end in their time when no server is there, too; what was asked for meanwhile is taken back. */
TEST_IN(test_no_connection, set_up_offline, tear_down) {
    holder h;
    make(&h, DIVVY_EXCLUSIVE);
    ask(&h, 0);
    dv_fake_advance(fake, 899);
    assert_int_equal(h.result, NEVER);
    dv_fake_advance(fake, 1);
    assert_int_equal(h.result, DIVVY_ETIMEDOUT);
    ask(&h, 500);
    dv_fake_advance(fake, 500);
    assert_int_equal(h.result, DIVVY_ETIMEDOUT);
    dv_fake_session(fake, DIVVY_CONNECTED);
    serve();
    assert_int_equal(dv_tree_made(tree), 0);
    ask(&h, 500);
    dv_tree_cut(tree, 1, false); /* the create was carried out */
    dv_fake_advance(fake, 500);
    assert_int_equal(h.result, DIVVY_ETIMEDOUT);
    assert_int_equal(owned(), 1);
    dv_fake_session(fake, DIVVY_CONNECTED);
    serve();
    assert_int_equal(owned(), 0);
    destroy(&h);
}

/* Cancel ends a wait; on an idle lock it does nothing, and the next acquire knows nothing of it; nor of what is
 * held. */
TEST(test_cancel) {
    holder h, other;
    make(&h, DIVVY_EXCLUSIVE);
    make(&other, DIVVY_EXCLUSIVE);
    assert_int_equal(divvy_lock_cancel(h.lock, 0), 0);
    hold(&h);
    assert_int_equal(divvy_lock_cancel(h.lock, 0), 0);
    assert_true(divvy_lock_held(h.lock));
    ask(&other, -1);
    serve();
    assert_int_equal(divvy_lock_cancel(other.lock, 0), 0);
    assert_int_equal(divvy_lock_cancel(other.lock, 0), 0);
    dv_fake_run(fake);
    assert_int_equal(other.result, DIVVY_ECANCELED);
    assert_int_equal(other.done, 1);
    serve();
    assert_int_equal(owned(), 1);
    assert_false(dv_fake_is_watched(fake, OURS(1, 0)));
    assert_int_equal(divvy_lock_release(h.lock), 0);
    hold(&other);
    destroy(&h);
    destroy(&other);
}

/* Destroying ends an acquire with ECANCELED, told before the call returns, and leaves nothing; so for what was granted
 * and not told yet. */
TEST(test_destroy_while_waiting) {
    holder h, other;
    make(&h, DIVVY_EXCLUSIVE);
    make(&other, DIVVY_EXCLUSIVE);
    hold(&h);
    ask(&other, -1);
    serve();
    divvy_lock_destroy(other.lock);
    assert_int_equal(other.done, 1);
    assert_int_equal(other.result, DIVVY_ECANCELED);
    divvy_lock_release(h.lock);
    serve();
    assert_int_equal(owned(), 0);
    h.destroys_when_done = true;
    ask(&h, -1);
    serve();
    assert_int_equal(h.done, 2);
    assert_int_equal(h.result, 0);
    assert_null(h.lock);
    serve();
    assert_int_equal(owned(), 0);
}

/* --- several contenders ----------------------------------------------------------------------------------------- */

/* Six contenders get it in the order in which they came, each by one event, one list, and one delete; each waits by a
 * watch on the one before it. */
TEST(test_fair_hand_over) {
    enum { COUNT = 6 };
    holder h[COUNT];
    int64_t token = 0;
    for (int i = 0; i < COUNT; i++) {
        make(&h[i], DIVVY_EXCLUSIVE);
        ask(&h[i], -1);
        serve();
    }
    for (int i = 0; i < COUNT; i++) {
        char path[64], expected[200];
        for (int j = 0; j < COUNT; j++) assert_int_equal(divvy_lock_held(h[j].lock), i == j);
        assert_true(divvy_lock_token(h[i].lock) > token);
        token = divvy_lock_token(h[i].lock);
        snprintf(path, sizeof path, "%s", dv_lock_path(h[i].lock));
        assert_int_equal(dv_fake_is_watched(fake, path), i + 1 < COUNT);
        assert_int_equal(divvy_lock_release(h[i].lock), 0);
        snprintf(expected, sizeof expected, "delete " PATH "/#%d__lock__000000000%d", i + 1, i);
        assert_string_equal(dv_fake_pending(fake), expected);
        dv_tree_serve(tree);
        assert_string_equal(dv_fake_pending(fake), i + 1 < COUNT ? "children " PATH : "");
        serve();
    }
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(h[i].done, 1);
        destroy(&h[i]);
    }
}

/* Readers share, and a writer waits for all before it; a reader behind the writer waits for it alone. Readers that are
 * woken do not wait for a writer behind them (kazoo #649). W-R-W: in order. */
TEST(test_readers_and_writers) {
    enum { W1, R1, R2, W2, R3, COUNT };
    static const int modes[] = {DIVVY_WRITE, DIVVY_READ, DIVVY_READ, DIVVY_WRITE, DIVVY_READ};
    static const unsigned held_after[] = {1 << W1, 1 << R1 | 1 << R2, 1 << R2, 1 << W2, 1 << R3};
    holder h[COUNT];
    for (int i = 0; i < COUNT; i++) {
        make(&h[i], modes[i]);
        ask(&h[i], -1);
        serve();
    }
    for (int i = 0; i < COUNT; i++) {
        for (unsigned j = 0; j < COUNT; j++) assert_int_equal(divvy_lock_held(h[j].lock), held_after[i] >> j & 1);
        if (i == R1) assert_string_equal(strrchr(dv_lock_path(h[R1].lock), '_'), "_0000000001");
        assert_int_equal(divvy_lock_release(h[i].lock), 0);
        serve();
    }
    for (int i = 0; i < COUNT; i++) destroy(&h[i]);
}

/* The nodes of the kinds are kazoo's; names that are no contenders are passed over, and never deleted. */
TEST(test_foreign_names) {
    static const char *const foreign[] = {PATH "/a__lock__", PATH "/a__lock__123", PATH "/a__rlock__0000000x00",
                                          PATH "/lock-0000000000", PATH "/a__rlock__0000000000"};
    holder h;
    for (size_t i = 0; i < 5; i++) dv_tree_put(tree, foreign[i], DV_PERSISTENT, 0);
    make(&h, DIVVY_READ);
    ask(&h, 0);
    assert_string_equal(dv_fake_pending(fake), "sequential /l/#1__rlock__, children /l");
    serve();
    assert_int_equal(h.result, 0);
    destroy(&h);
    make(&h, DIVVY_WRITE); /* waits for a reader of others */
    ask(&h, 0);
    assert_string_equal(dv_fake_pending(fake),
                        "delete /l/#1__rlock__0000000005, sequential /l/#2__lock__, children /l");
    serve();
    assert_int_equal(h.result, DIVVY_EBUSY);
    destroy(&h);
    for (size_t i = 0; i < 5; i++) assert_true(dv_tree_has(tree, foreign[i]));
}

/* Close to the end of the sequence numbers nobody contends (kazoo #606, #730): told, and nothing is left. */
TEST(test_sequence_wrap) {
    static const int32_t sequences[] = {INT32_MAX - (1 << 20), INT32_MAX, -1, INT32_MIN};
    for (size_t i = 0; i < 4; i++) {
        holder h;
        char made[80];
        make(&h, DIVVY_EXCLUSIVE);
        ask(&h, -1);
        snprintf(made, sizeof made, "%s%010d", dv_fake_oldest(fake)->ops->path, sequences[i]);
        dv_fake_answer(fake, &(dv_reply){.path = made, .stat = &(dv_stat){.czxid = 9}});
        assert_int_equal(h.result, DIVVY_EEXHAUSTED);
        serve(); /* the list, then the delete */
        destroy(&h);
        assert_string_equal(dv_fake_pending(fake), "");
    }
}

/* --- errors ----------------------------------------------------------------------------------------------------- */

/* A wrong argument is refused before anything is sent. */
TEST(test_arguments) {
    static const char *const bad_paths[] = {NULL, "", "l", "/l/", "/l//m", "/l/../m", "/zookeeper/l", "/"};
    divvy_client *client = dv_fake_client(fake);
    holder h;
    for (size_t i = 0; i < 8; i++) {
        assert_int_equal(create(&h, bad_paths[i], DIVVY_READ), DIVVY_EINVAL);
        assert_null(h.lock);
    }
    assert_non_null(strstr(divvy_client_error(client), "lock: the path is \"/\""));
    assert_int_equal(create(&h, PATH, 3), DIVVY_EINVAL);
    assert_int_equal(create(&h, PATH, -1), DIVVY_EINVAL);
    divvy_lock_config config = DIVVY_LOCK_CONFIG_INIT;
    config.path = PATH;
    assert_int_equal(divvy_lock_create(NULL, client, &config), DIVVY_EINVAL);
    assert_int_equal(divvy_lock_create(&h.lock, NULL, &config), DIVVY_EINVAL);
    assert_int_equal(divvy_lock_create(&h.lock, client, NULL), DIVVY_EINVAL);
    config.identifier = "";
    assert_int_equal(divvy_lock_create(&h.lock, client, &config), DIVVY_EINVAL);
    char *longest = malloc(65538);
    memset(longest, 'x', 65537);
    longest[65537] = '\0';
    config.identifier = longest;
    assert_int_equal(divvy_lock_create(&h.lock, client, &config), DIVVY_E2BIG);
    longest[65536] = '\0';
    assert_int_equal(divvy_lock_create(&h.lock, client, &config), 0);
    free(longest);
    assert_int_equal(divvy_lock_acquire(h.lock, -2), DIVVY_EINVAL);
    assert_int_equal(divvy_lock_acquire_async(h.lock, -2, on_done, &h), DIVVY_EINVAL);
    assert_int_equal(divvy_lock_acquire_async(h.lock, 0, NULL, &h), DIVVY_EINVAL);
    assert_int_equal(divvy_lock_contenders(h.lock, NULL, 0), DIVVY_EINVAL);
    destroy(&h);
    divvy_strings *strings;
    assert_int_equal(divvy_lock_acquire(NULL, 0), DIVVY_EINVAL);
    assert_int_equal(divvy_lock_acquire_async(NULL, 0, on_done, NULL), DIVVY_EINVAL);
    assert_int_equal(divvy_lock_release(NULL), DIVVY_EINVAL);
    assert_int_equal(divvy_lock_cancel(NULL, 0), DIVVY_EINVAL);
    assert_int_equal(divvy_lock_held(NULL) + divvy_lock_token(NULL), 0);
    assert_int_equal(divvy_lock_contenders(NULL, &strings, 0), DIVVY_EINVAL);
    divvy_lock_destroy(NULL);
    assert_string_equal(dv_fake_pending(fake), "");
}

/* An error of the server ends the acquire; the next one is as if nothing had been. */
TEST(test_denied) {
    holder h;
    make(&h, DIVVY_EXCLUSIVE);
    ask(&h, -1);
    answer_error(DIVVY_EACCES);
    assert_int_equal(h.result, DIVVY_EACCES);
    serve();
    hold(&h);
    destroy(&h);
    make(&h, DIVVY_EXCLUSIVE); /* the list is refused: the node must go */
    ask(&h, -1);
    dv_tree_serve(tree);
    dv_tree_serve(tree);
    answer_error(DIVVY_EACCES);
    assert_int_equal(h.result, DIVVY_EACCES);
    serve();
    assert_int_equal(owned(), 0);
    destroy(&h);
    assert_int_equal(create(&h, "/a/b", DIVVY_EXCLUSIVE), 0); /* the directory may not be made */
    ask(&h, -1);
    for (int i = 0; i < 3; i++) dv_tree_serve(tree);
    answer_error(DIVVY_EACCES);
    answer_error(DIVVY_ENOENT);
    assert_int_equal(h.result, DIVVY_EACCES);
    destroy(&h);
}

/* No room for one more node: ELIMIT at once. No room for one more watch: a try says ELIMIT, others wait for room. */
TEST(test_no_room) {
    divvy_client *client = dv_fake_client(fake);
    holder h, other;
    make(&h, DIVVY_EXCLUSIVE);
    make(&other, DIVVY_EXCLUSIVE);
    size_t limit = client->ephemerals.limit_bytes;
    client->ephemerals.limit_bytes = 10;
    assert_int_equal(divvy_lock_acquire_async(h.lock, -1, on_done, &h), DIVVY_ELIMIT);
    client->ephemerals.limit_bytes = limit;
    client->watched.limit_bytes = 120;
    assert_true(dv_reserve_watch(client, 60)); /* by another of this client */
    ask(&h, -1);
    assert_int_equal(divvy_lock_acquire_async(other.lock, 0, on_done, &other), DIVVY_ELIMIT);
    ask(&other, -1);
    assert_string_equal(dv_fake_pending(fake), "sequential /l/#2__lock__, children /l");
    serve();
    assert_int_equal(h.result, 0); /* which no longer needs a watch, so that the other waits in the queue now */
    assert_int_equal(owned(), 2);
    divvy_lock_release(h.lock);
    serve();
    assert_int_equal(other.result, 0);
    destroy(&h);
    destroy(&other);
    assert_int_equal(h.done + other.done, 2);
    dv_release_watch(client, 60);
}

/* A directory that is deleted again each time that it was made ends the acquire some time, without a busy loop. */
TEST(test_directory_never_stays) {
    holder h;
    make(&h, DIVVY_EXCLUSIVE);
    ask(&h, -1);
    int asked = 0;
    while (dv_fake_oldest(fake)) {
        bool look = dv_fake_oldest(fake)->ops->kind == DV_EXISTS;
        dv_fake_answer(fake, look ? &(dv_reply){.stat = &(dv_stat){.czxid = 1}} : &(dv_reply){.error = DIVVY_ENOENT});
        assert_true(++asked < 1000);
    }
    assert_int_equal(h.result, DIVVY_ENOENT);
    destroy(&h);
}

/* K6: as long as it holds, its node is looked for each half of the session timeout. */
TEST(test_audits) {
    holder h;
    make(&h, DIVVY_EXCLUSIVE);
    hold(&h);
    int64_t interval_ms = atomic_load(&dv_fake_client(fake)->timeout_ms) / 2;
    for (int i = 0; i < 3; i++) {
        dv_fake_advance(fake, interval_ms - 1);
        assert_string_equal(dv_fake_pending(fake), "");
        dv_fake_advance(fake, 1);
        assert_string_equal(dv_fake_pending(fake), "exists /l/#1__lock__0000000000");
        serve();
        assert_true(divvy_lock_held(h.lock));
    }
    destroy(&h);
}

TEST_EACH(set_up, tear_down);
