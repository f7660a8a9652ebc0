/* Tests of client/death_watch.h: the pools that a death watch is told of. SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/death_watch.h"
#include "test.h"

static const char password[DV_SESSION_PASSWORD_BYTES] = "0123456789abcdef";

static dv_death_watch *watch;
static int ends[2];
static char message[DV_WILL_BYTES_MAX];
static dv_will will;

static int begin(void **state) {
    (void)state;
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.hosts = "h1:2181,h2:2181/chroot";
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    return dv_death_watch_use(&watch, &config, ends[0]);
}

static int end(void **state) {
    (void)state;
    dv_death_watch_free(watch);
    close(ends[0]);
    return close(ends[1]);
}

/* Takes all that was told up to now. Returns how many messages that were. */
static int listen_now(void) {
    int count = 0;
    for (ssize_t bytes; (bytes = recv(ends[1], message, sizeof message, MSG_DONTWAIT)) > 0; count++)
        assert_int_equal(dv_will_parse(&will, message, (size_t)bytes), 0);
    return count;
}

static void tell_session(int64_t id) {
    dv_death_watch_tell(watch, id, 10000, password);
}

/* Each pool that is joined or left makes a will, which has all of them beside the session. One that is joined twice is
 * one, and one that was never joined cannot be left. */
TEST_IN(test_join_and_leave, begin, end) {
    tell_session(7);
    dv_death_watch_joined(watch, "/chroot/q", "anna");
    dv_death_watch_joined(watch, "/chroot/q", "bert");
    dv_death_watch_joined(watch, "/chroot/q", "anna");
    dv_death_watch_joined(watch, "/chroot/r", "anna");
    assert_int_equal(listen_now(), 4);
    assert_int_equal(will.session_id, 7);
    assert_memory_equal(will.password, password, sizeof password);
    assert_string_equal(will.texts[DV_WILL_HOSTS], "h1:2181,h2:2181");
    assert_int_equal(will.pool_count, 3);
    assert_string_equal(will.pools[1].path, "/chroot/q");
    assert_string_equal(will.pools[1].member, "bert");
    dv_death_watch_left(watch, "/chroot/q", "anna");
    dv_death_watch_left(watch, "/chroot/q", "anna");
    assert_int_equal(listen_now(), 1);
    assert_int_equal(will.pool_count, 2);
    for (size_t i = 0; i < 2; i++) {
        bool of_q = strcmp(will.pools[i].path, "/chroot/q") == 0;
        assert_string_equal(will.pools[i].member, of_q ? "bert" : "anna");
    }
}

/* Where no session is told, as after a close, a pool makes no will; the next session's has it. */
TEST_IN(test_without_session, begin, end) {
    dv_death_watch_joined(watch, "/q", "anna");
    assert_int_equal(listen_now(), 0);
    tell_session(7);
    assert_int_equal(listen_now(), 1);
    assert_int_equal(will.pool_count, 1);
    dv_death_watch_forget(watch);
    assert_int_equal(listen_now(), 1);
    assert_int_equal(will.session_id, 0);
    dv_death_watch_left(watch, "/q", "anna");
    assert_int_equal(listen_now(), 0);
    tell_session(8);
    assert_int_equal(listen_now(), 1);
    assert_int_equal(will.pool_count, 0);
}

/* A will has room for 64 pools, and 64 KiB of text. What is too much is left out, and the session is told all the
 * same. */
TEST_IN(test_too_many, begin, end) {
    static char path[DV_WILL_BYTES_MAX];
    tell_session(7);
    for (int i = 0; i < DV_WILL_POOLS_MAX + 1; i++) {
        sprintf(path, "/q%d", i);
        dv_death_watch_joined(watch, path, "anna");
        assert_int_equal(listen_now(), i == 0 ? 2 : i < DV_WILL_POOLS_MAX);
    }
    assert_int_equal(will.pool_count, DV_WILL_POOLS_MAX);
    dv_death_watch_left(watch, "/q3", "anna");
    memset(path + 1, 'p', sizeof path - 2);
    dv_death_watch_joined(watch, path, "anna");
    assert_int_equal(listen_now(), 1);
    tell_session(8);
    assert_int_equal(listen_now(), 1);
    assert_int_equal(will.session_id, 8);
    assert_int_equal(will.pool_count, DV_WILL_POOLS_MAX - 1);
}

/* Where there is no watch, nothing happens. */
TEST(test_no_watch) {
    dv_death_watch_joined(NULL, "/q", "anna");
    dv_death_watch_left(NULL, "/q", "anna");
    assert_false(dv_death_watch_lives(NULL));
}
