/* Tests of what a client keeps beside its clock: budgets, timers, listeners, chroot, identifiers.
 * SPDX-License-Identifier: Apache-2.0 */
#include <poll.h>

#include "client_clock_fixture.h"
#include "recipe/request.h"

/* --- budgets: B6 ------------------------------------------------------------------------------------------------ */

/* Room is given until the budget is full, refused then, and that some was given back is told once, to those who were
 * refused only. */
TEST(test_budgets) {
    dv_client_lock(client);
    assert_int_equal(dv_reserve_node(client, 60, 0), 0);
    assert_int_equal(dv_reserve_node(client, 41, 0), DIVVY_ELIMIT);
    assert_int_equal(dv_reserve_node(client, 40, 51), DIVVY_ELIMIT); /* such a watch never fits */
    assert_int_equal(dv_reserve_node(client, 20, 50), 0);
    assert_false(dv_reserve_watch(client, 1)); /* it does not wait */
    assert_int_equal(dv_reserve_node(client, 20, 51), DIVVY_ELIMIT);
    assert_int_equal(dv_reserve_node(client, 10, 50), 0);
    assert_int_equal(dv_reserve_node(client, 10, 1), DIVVY_EBUSY);
    assert_int_equal(dv_reserve_node(client, 10, 0), 0);
    assert_int_equal(client->ephemeral_count, 4);
    dv_client_unlock(client);
    assert_string_equal(heard, "");
    dv_client_lock(client);
    dv_release_watch(client, 50);
    dv_release_ephemeral(client, 20);
    assert_true(client->something_changed); /* A closing client, which waits for the last one, looks again. */
    dv_client_unlock(client);
    assert_string_equal(heard, "R");
    dv_client_lock(client);
    dv_release_watch(client, 50); /* Nobody has asked since. */
    dv_release_ephemeral(client, 10);
    dv_release_ephemeral(client, 10);
    dv_release_ephemeral(client, 60);
    dv_client_unlock(client);
    assert_string_equal(heard, "R");
    assert_int_equal(client->ephemeral_count, 0);
    assert_int_equal(dv_path_cost("/a/b"), 8);
}

/* What waits for room gets it, also where watches that stand for good have their half: it may ask for no more than the
 * other half. */
TEST(test_room_comes) {
    dv_client_lock(client);
    assert_int_equal(dv_reserve_node(client, 1, 30), 0);
    assert_false(dv_reserve_watch(client, 21));
    assert_true(dv_reserve_watch(client, 20));
    assert_int_equal(dv_reserve_node(client, 1, 50), 0);
    dv_release_watch(client, 30);
    assert_int_equal(dv_reserve_node(client, 1, 50), DIVVY_EBUSY);
    dv_release_watch(client, 50);
    assert_true(dv_reserve_watch(client, 30));
    assert_int_equal(dv_reserve_node(client, 1, 50), 0);
    for (int i = 0; i < 3; i++) dv_release_ephemeral(client, 1);
    dv_release_watch(client, 100);
    dv_client_unlock(client);
}

/* --- the end of the loop ---------------------------------------------------------------------------------------- */

/* A loop that took in the wake of close() before it sleeps does not sleep: no other wake would come. Without a
 * connection there is no timer that ends the sleep either, so this test would hang. */
TEST(test_no_sleep_at_the_end) {
    assert_null(client->timers.first);
    client->life = DV_CLIENT_STOPPING;
    dv_client_wake(client);
    assert_int_equal(dv_loop_run_due(client), 0);
    dv_loop_sleep(client, -1);
    client->life = DV_CLIENT_OPEN; /* for tear_down() */
}

static void do_nothing(dv_callback *callback) {
    (void)callback;
}

static dv_callback idle[300]; /* more than the loop calls in one run */

static void queue_callbacks(size_t count) {
    dv_client_lock(client);
    for (size_t i = 0; i < count; i++) {
        idle[i] = (dv_callback){.call = do_nothing, .release = do_nothing};
        dv_callback_queue(client, &idle[i]);
    }
    dv_client_unlock(client);
}

static bool is_woken(void) {
    struct pollfd descriptor = {.fd = client->wake_fd, .events = POLLIN};
    bool woken = poll(&descriptor, 1, 0) == 1;
    dv_client_clear_wake(client);
    return woken;
}

/* In manual mode a callback that is due wakes the one who waits for the descriptor, but not a loop that runs already.
 * What that leaves for its next run wakes it, too. */
TEST(test_callbacks_wake) {
    const dv_znode_backend *own = client->znode->backend;
    dv_znode_backend backend = *own;
    backend.sleep = NULL; /* The descriptor is waited for. */
    client->znode->backend = &backend;
    dv_client_clear_wake(client);
    queue_callbacks(1);
    bool woken = is_woken();
    client->processing = client->in_process = true;
    dv_loop_run_due(client);
    queue_callbacks(1);
    bool woken_inside = is_woken();
    dv_loop_run_due(client);
    queue_callbacks(sizeof idle / sizeof *idle);
    dv_loop_run_due(client);
    bool left = client->callbacks, woken_for_rest = is_woken();
    dv_loop_run_due(client);
    bool woken_for_none = is_woken();
    client->processing = client->in_process = false;
    client->znode->backend = own;
    assert_true(woken && left && woken_for_rest);
    assert_false(woken_inside || woken_for_none || client->callbacks);
}

static void run_nothing(dv_event *event, int64_t now) {
    (void)event, (void)now;
}

/* In manual mode process() is due at once for a call to the user alone, and for an event alone. */
TEST(test_due_at_once) {
    dv_event event = {.run = run_nothing};
    assert_int_equal(divvy_client_next_deadline(client), -1);
    queue_callbacks(1);
    assert_int_equal(divvy_client_next_deadline(client), 0);
    dv_fake_run(fake);
    assert_int_equal(divvy_client_next_deadline(client), -1);
    dv_client_post(client, &event);
    assert_int_equal(divvy_client_next_deadline(client), 0);
    dv_fake_run(fake);
    assert_int_equal(divvy_client_next_deadline(client), -1);
}

/* One that waits in vain for a server says so, and which servers there are. */
TEST(test_wait_connected_in_vain) {
    assert_int_equal(divvy_client_wait_connected(client, 0), DIVVY_ETIMEDOUT);
    assert_string_equal(divvy_client_error(client), "wait_connected: no ZooKeeper server answered at fake in 0 ms");
}

/* A waiting call has what is left until its deadline, and then nothing. */
TEST(test_deadline) {
    dv_deadline deadline = dv_deadline_in(client, 2);
    for (int64_t left_ms = 2; left_ms >= 0; left_ms--) {
        assert_int_equal(dv_deadline_left_ms(client, deadline), left_ms);
        dv_fake_advance(fake, 1);
    }
    assert_int_equal(dv_deadline_left_ms(client, deadline), 0);
    assert_int_equal(dv_deadline_left_ms(client, dv_deadline_in(client, -1)), -1);
}

/* --- timers and listeners --------------------------------------------------------------------------------------- */

enum { TIMERS = 5 };
static dv_timer timers[TIMERS];
static char fired[32];
static int64_t fired_at[TIMERS];

static void on_timer(dv_timer *timer, int64_t now) {
    note(fired, (char)('a' + (timer - timers)));
    fired_at[timer - timers] = now - start;
    if (timer == &timers[0]) dv_timer_set(client, &timers[1], now); /* due now: in the same turn */
    if (timer == &timers[1]) dv_timer_cancel(&timers[2]);
}

static void set(size_t i, int64_t at) {
    dv_timer_set(client, &timers[i], start + at);
}

/* Timers fire once, at their time, those of one time in the order in which they were set; they may be set again and
 * taken back, within other timers too. */
TEST(test_timers) {
    memset(fired, 0, sizeof fired);
    for (size_t i = 0; i < TIMERS; i++) timers[i].fire = on_timer;
    set(3, 500);
    set(4, 300);
    set(0, 300);
    set(2, 300);
    set(3, 200); /* again */
    assert_int_equal(divvy_client_next_deadline(client), 200);
    dv_fake_advance(fake, 199);
    assert_string_equal(fired, "");
    assert_int_equal(divvy_client_next_deadline(client), 1);
    dv_fake_advance(fake, 1);
    assert_string_equal(fired, "d");
    dv_fake_advance(fake, 1000);
    assert_string_equal(fired, "deacb"); /* c was before b, which is set at its own time, and so too late to stop it */
    assert_int_equal(fired_at[3], 200);
    assert_int_equal(fired_at[0], 300);
    assert_int_equal(divvy_client_next_deadline(client), -1);
    memset(fired, 0, sizeof fired);
    set(1, 2000);
    set(2, 2000);
    set(4, 2001);
    dv_timer_cancel(&timers[4]);
    dv_timer_cancel(&timers[4]);
    dv_fake_advance(fake, 3000);
    assert_string_equal(fired, "b");
}

static dv_listener a_listener, b_listener, c_listener;

static void hear_and_leave(dv_listener *l, dv_session_event event, int64_t now) {
    (void)event, (void)now;
    note(fired, l == &a_listener ? 'a' : l == &b_listener ? 'b' : 'c');
    if (l != &b_listener) return;
    dv_unlisten(client, &b_listener); /* itself */
    dv_unlisten(client, &c_listener); /* and the next one */
    dv_unlisten(client, &c_listener);
}

/* Listeners may go while they are told, themselves and others. */
TEST(test_listeners) {
    memset(fired, 0, sizeof fired);
    dv_listener *all[] = {&a_listener, &b_listener, &c_listener};
    for (size_t i = 0; i < 3; i++) {
        *all[i] = (dv_listener){.hear = hear_and_leave};
    }
    dv_fake_session(fake, DIVVY_CONNECTED);
    dv_fake_session(fake, DIVVY_SUSPENDED);
    for (size_t i = 0; i < 3; i++) dv_listen(client, all[i]);
    dv_fake_session(fake, DIVVY_CONNECTED);
    assert_string_equal(fired, "ab");
    dv_listen(client, &b_listener);
    dv_fake_session(fake, DIVVY_SUSPENDED);
    assert_string_equal(fired, "abab");
    dv_unlisten(client, &a_listener);
    assert_string_equal(heard, "PCSCS");
}

/* --- the chroot: H4 --------------------------------------------------------------------------------------------- */

static void set_chroot(const char *chroot) {
    free(client->chroot);
    client->chroot = strdup(chroot);
    assert_non_null(client->chroot);
}

/* Recipes and users hear of a connection only when the chroot is there; whatever number of answers the link breaks
 * after, and whether what was under way was carried out or not, it is made in the end. */
TEST(test_chroot) {
    for (int at = 0; at <= 4; at++) {
        for (int applied = 0; applied <= 2; applied++) {
            tear_down(state);
            set_up(state);
            dv_tree *tree = dv_tree_new(fake);
            set_chroot("/a/b");
            dv_fake_session(fake, DIVVY_CONNECTED);
            for (int step = 0; step < 20; step++) {
                bool rooted = divvy_client_state(client) != DIVVY_CONNECTING;
                if (rooted) assert_true(dv_tree_has(tree, "/a/b"));
                else assert_string_equal(heard, "");
                if (step == at) {
                    dv_tree_cut(tree, (size_t)applied, false);
                    dv_fake_session(fake, DIVVY_CONNECTED);
                }
                if (!dv_tree_serve(tree) && step > at) break;
            }
            assert_int_equal(divvy_client_state(client), DIVVY_CONNECTED);
            assert_true(alive());
            assert_int_equal(heard[0], 'P');
            char *path = dv_client_path(client, "/x");
            assert_string_equal(path, "/a/b/x");
            free(path);
            path = dv_client_path(client, "/");
            assert_string_equal(path, "/a/b");
            free(path);
            dv_unlisten(client, &listener);
            dv_fake_close(fake);
            dv_tree_free(tree);
            set_up(state);
        }
    }
}

static int submit_nothing(dv_znode *znode, const dv_op *op, dv_watch *watch, dv_reply_fn done, void *context) {
    (void)znode, (void)op, (void)watch, (void)done, (void)context;
    return DIVVY_ENOMEM;
}

/* Where there is no memory to request it, it is requested again after a moment, and only then. */
TEST(test_chroot_without_memory) {
    set_chroot("/a/b");
    const dv_znode_backend *own = client->znode->backend;
    dv_znode_backend backend = *own;
    backend.submit = submit_nothing;
    client->znode->backend = &backend;
    dv_fake_session(fake, DIVVY_CONNECTED);
    client->znode->backend = own;
    assert_string_equal(dv_fake_pending(fake), "");
    dv_fake_advance(fake, 1000);
    assert_string_not_equal(dv_fake_pending(fake), "");
    assert_null(client->again_timer.link);
}

static void answer(int error) {
    dv_fake_answer(fake, &(dv_reply){.error = error});
}

/* An answer that comes before the news of a break leads to requests which go by the next connection already, where that
 * is there as quickly. They are enough: the chroot is not asked for again, and the connection is told once. If they
 * fail, it is asked for again on that connection. */
TEST(test_chroot_over_a_reconnect) {
    for (int fails = 0; fails <= 1; fails++) {
        tear_down(state);
        set_up(state);
        set_chroot("/a/b");
        dv_fake_session(fake, DIVVY_CONNECTED);
        answer(DIVVY_ENOENT);
        assert_string_equal(dv_fake_pending(fake), "create /a, create /a/b");
        dv_fake_session(fake, DIVVY_CONNECTED);
        assert_string_equal(dv_fake_pending(fake), "create /a, create /a/b");
        answer(fails ? DIVVY_ECONNECTION : 0);
        answer(fails ? DIVVY_ECONNECTION : 0);
        if (fails) {
            assert_int_equal(divvy_client_state(client), DIVVY_CONNECTING);
            dv_fake_advance(fake, 1000);
            assert_string_equal(dv_fake_pending(fake), "exists /a/b");
            answer(0);
        }
        assert_string_equal(dv_fake_pending(fake), "");
        assert_int_equal(divvy_client_state(client), DIVVY_CONNECTED);
        assert_int_equal(strspn(heard, "PC"), strlen(heard));
        assert_ptr_equal(strchr(heard, 'C'), strrchr(heard, 'C'));
    }
}

/* A chroot that may not be made ends the client, with the reason and the path. */
TEST(test_chroot_denied) {
    set_chroot("/a/b");
    dv_fake_session(fake, DIVVY_CONNECTED);
    dv_fake_answer(fake, &(dv_reply){.error = DIVVY_ENOENT});
    dv_fake_answer(fake, &(dv_reply){.error = DIVVY_EACCES});
    dv_fake_answer(fake, &(dv_reply){.error = DIVVY_ENOENT});
    assert_int_equal(dv_client_end_error(client), DIVVY_EACCES);
    assert_int_equal(divvy_client_wait_connected(client, 0), DIVVY_EACCES);
    assert_non_null(strstr(divvy_client_error(client), "/a/b"));
    assert_false(alive());
    assert_string_equal(heard, "LO");
}

/* Identifiers that nobody chose are never the same twice in a process. */
TEST(test_default_identifiers) {
    char *a = dv_client_default_identifier(), *b = dv_client_default_identifier();
    assert_string_not_equal(a, b);
    free(a);
    free(b);
}

TEST_EACH(set_up, tear_down);
