/* Death watch: when something fails besides the process. SPDX-License-Identifier: Apache-2.0
 *
 * Shows servers and links that go, sessions that end before, and a watch that is killed (C10). */
#include "death_watch_fixture.h"

/* --- the watch -------------------------------------------------------------------------------------------------- */

/* A program whose watch is killed goes on, and its metric says so. When it dies later, its session takes its time, as
 * without a watch. */
TEST(test_watch_is_killed) {
    member m = start_member(hosts(), "/killed", SHORT_MS, "");
    pid_t watch = watch_of(&m);
    heir next = next_owner("/killed");
    assert_string_equal(ask(&m, DV_ORDER_METRIC), "1");
    kill(watch, SIGKILL);
    status_of(watch);
    assert_true(DV_WAIT(strcmp(ask(&m, DV_ORDER_METRIC), "0") == 0, PATIENCE_MS));
    assert_string_equal(ask(&m, DV_ORDER_HELD), "held");
    order(&m, DV_ORDER_KILL);
    check_by_timeout(&next, SHORT_MS);
    leave(&next);
    end_member(&m);
}

/* A watch that is stopped when its program dies, and goes on later, acts then. */
TEST(test_watch_is_late) {
    member m = start_member(hosts(), "/late", LONG_MS, "");
    pid_t watch = watch_of(&m);
    heir next = next_owner("/late");
    kill(watch, SIGSTOP);
    order(&m, DV_ORDER_KILL);
    status_of(m.pid);
    assert_int_equal(divvy_lock_try_acquire(next.lock), DIVVY_EBUSY);
    kill(watch, SIGCONT);
    check_soon(&next, LONG_MS);
    check_watch_goes(watch);
    leave(&next);
    close(m.control_fd);
    close(m.pipe_fd);
}

/* --- the session ------------------------------------------------------------------------------------------------ */

/* When the servers have expired a session, the watch is told of the next one, and ends that. */
TEST(test_next_session) {
    dv_test_proxy *proxy = dv_test_proxy_start(hosts());
    member m = begin_member(dv_test_proxy_address(proxy), "/next", LONG_MS, "");
    int64_t first = check_held(hear(&m));
    pid_t watch = watch_of(&m);
    dv_test_proxy_cut(proxy);
    assert_true(dv_test_expire(hosts(), first, NULL));
    dv_test_proxy_restore(proxy);
    assert_true(DV_WAIT(strcmp(ask(&m, DV_ORDER_HELD), "held") != 0, PATIENCE_MS));
    int64_t second = check_held(ask(&m, DV_ORDER_HOLD_AGAIN));
    assert_true(first != second);
    heir next = next_owner("/next");
    order(&m, DV_ORDER_KILL);
    check_soon(&next, LONG_MS);
    check_watch_goes(watch);
    leave(&next);
    end_member(&m);
    dv_test_proxy_stop(proxy);
}

/* A client that is closed without a connection leaves its session to the servers, and its watch waits on: when the
 * process ends, so does the session. */
TEST(test_closed_without_connection) {
    dv_test_proxy *proxy = dv_test_proxy_start(hosts());
    member m = start_member(dv_test_proxy_address(proxy), "/unconnected", LONG_MS, "");
    pid_t watch = watch_of(&m);
    heir next = next_owner("/unconnected");
    dv_test_proxy_cut(proxy);
    assert_true(DV_WAIT(dv_test_proxy_count(proxy).open == 0, PATIENCE_MS));
    assert_true(DV_WAIT(dv_test_proxy_count(proxy).refused > 0, PATIENCE_MS)); /* It has noticed. */
    assert_string_equal(ask(&m, DV_ORDER_CLOSE), "closed");
    dv_test_proxy_restore(proxy);
    assert_int_equal(divvy_lock_try_acquire(next.lock), DIVVY_EBUSY);
    assert_true(lives(watch));
    order(&m, DV_ORDER_KILL);
    check_soon(&next, LONG_MS);
    check_watch_goes(watch);
    leave(&next);
    end_member(&m);
    dv_test_proxy_stop(proxy);
}

/* Names of servers with a chroot, and credentials, are the watch's as well. */
TEST(test_chroot_and_credentials) {
    char list[128];
    snprintf(list, sizeof list, "%s/roots/of/all", hosts());
    member m = start_member(list, "/rooted", LONG_MS, (char[]){DV_MEMBER_CREDENTIALS, '\0'});
    pid_t watch = watch_of(&m);
    heir next = next_owner_with(list, "/rooted", DV_MEMBER_AUTH);
    assert_int_equal(divvy_lock_try_acquire(next.lock), DIVVY_EBUSY);
    order(&m, DV_ORDER_KILL);
    check_soon(&next, LONG_MS);
    check_watch_goes(watch);
    leave(&next);
    end_member(&m);
}

/* --- the servers ------------------------------------------------------------------------------------------------ */

/* Where no server can be reached, the watch tries again, and ends the session when one is back. */
TEST(test_server_comes_back) {
    dv_test_proxy *proxy = dv_test_proxy_start(hosts());
    member m = start_member(dv_test_proxy_address(proxy), "/back", LONG_MS, "");
    pid_t watch = watch_of(&m);
    heir next = next_owner("/back");
    dv_test_proxy_cut(proxy);
    unsigned refused = dv_test_proxy_count(proxy).refused;
    order(&m, DV_ORDER_KILL);
    status_of(m.pid);
    assert_true(DV_WAIT(dv_test_proxy_count(proxy).refused >= refused + 2, PATIENCE_MS)); /* It alone is left. */
    assert_int_equal(divvy_lock_try_acquire(next.lock), DIVVY_EBUSY);
    dv_test_proxy_restore(proxy);
    check_soon(&next, LONG_MS);
    check_watch_goes(watch);
    leave(&next);
    close(m.control_fd);
    close(m.pipe_fd);
    dv_test_proxy_stop(proxy);
}

/* It tries until the session must have ended, and goes. */
TEST(test_server_stays_away) {
    dv_test_proxy *proxy = dv_test_proxy_start(hosts());
    member m = start_member(dv_test_proxy_address(proxy), "/away", SHORT_MS, "");
    pid_t watch = watch_of(&m);
    dv_test_proxy_cut(proxy);
    int64_t from_ms = dv_test_now_ms();
    order(&m, DV_ORDER_KILL);
    check_watch_goes(watch);
    assert_true(dv_test_now_ms() - from_ms >= 2 * SHORT_MS);
    heir next = next_owner("/away");
    assert_int_equal(divvy_lock_try_acquire(next.lock), 0);
    leave(&next);
    end_member(&m);
    dv_test_proxy_stop(proxy);
}

/* A server may take a connection and never answer on it: it does so when it begins to listen. The watch makes another
 * connection before the native client would, which waits for two thirds of the timeout. */
TEST(test_server_is_silent) {
    enum { TIMEOUT_MS = 60000 };
    dv_test_proxy *proxy = dv_test_proxy_start(hosts());
    member m = start_member(dv_test_proxy_address(proxy), "/silent", TIMEOUT_MS, "");
    pid_t watch = watch_of(&m);
    heir next = next_owner("/silent");
    dv_test_proxy_freeze(proxy);
    unsigned accepted = dv_test_proxy_count(proxy).accepted;
    order(&m, DV_ORDER_KILL);
    status_of(m.pid);
    assert_true(DV_WAIT(dv_test_proxy_count(proxy).accepted > accepted, PATIENCE_MS));
    dv_test_proxy_half_open(proxy);
    dv_test_proxy_thaw(proxy);
    check_soon(&next, TIMEOUT_MS);
    check_watch_goes(watch);
    leave(&next);
    close(m.control_fd);
    close(m.pipe_fd);
    dv_test_proxy_stop(proxy);
}

/* A server that is killed, and starts again with the session that it knows, is asked as soon as it serves. */
TEST(test_server_is_killed) {
    member m = start_member(hosts(), "/restart", LONG_MS, "");
    pid_t watch = watch_of(&m);
    heir next = next_owner("/restart");
    dv_test_server_kill(server, 1);
    order(&m, DV_ORDER_KILL);
    status_of(m.pid);
    dv_test_server_restart(server, 1);
    assert_int_equal(divvy_client_wait_connected(next.client, PATIENCE_MS), 0);
    check_soon(&next, LONG_MS);
    check_watch_goes(watch);
    leave(&next);
    close(m.control_fd);
    close(m.pipe_fd);
}

TEST_EACH(NULL, end_children);
TEST_GROUP(set_up_watched, stop_server);
