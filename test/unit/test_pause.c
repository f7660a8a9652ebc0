/* Tests of znode/apache/pause.h. SPDX-License-Identifier: Apache-2.0 */
#include "znode/apache/pause.h"

#include <stdatomic.h>

#include "lib/test.h"
#include "lib/wait.h"

enum { SERVERS = 3, MAX_MS = 2500, PATIENCE_MS = 60000 };

static dv_pause pause_;

static int set_up(void **state) {
    (void)state;
    dv_pause_init(&pause_, 4 * MAX_MS);
    dv_pause_start(&pause_, SERVERS);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    dv_pause_destroy(&pause_);
    return 0;
}

static void close_all(void) {
    for (int i = 0; i < SERVERS; i++) assert_int_equal(dv_pause_count(&pause_), 0);
}

/* Each server of the list gets a try at once. Then pauses double, from 100 ms to a quarter of the session timeout; up
 * to a quarter of each is left to chance. */
TEST(test_doubles) {
    close_all();
    for (int expected_ms = 100, i = 0; i < 100; i++) {
        int ms = dv_pause_count(&pause_);
        assert_true(ms >= expected_ms * 3 / 4 && ms <= expected_ms);
        expected_ms = expected_ms * 2 < MAX_MS ? expected_ms * 2 : MAX_MS;
    }
}

/* An answer begins all again, and so do other addresses. */
TEST(test_begins_again) {
    close_all();
    assert_true(dv_pause_count(&pause_) > 0);
    dv_pause_answered(&pause_);
    close_all();
    assert_true(dv_pause_count(&pause_) > 0);
    dv_pause_start(&pause_, 1);
    assert_int_equal(dv_pause_count(&pause_), 0);
    assert_true(dv_pause_count(&pause_) > 0);
}

/* What the native client says of a connection that was closed counts, in a TLS handshake too; what it says of one that
 * was refused or is silent does not. */
TEST(test_what_is_a_close) {
    assert_true(dv_pause_is_close("Socket 127.0.0.1:1 zk retcode=-4, errno=104(Connection reset by peer): failed while "
                                  "receiving a server response"));
    assert_true(dv_pause_is_close("Socket 127.0.0.1:1 zk retcode=-15, errno=32(Broken pipe): error in ssl connect"));
    assert_false(dv_pause_is_close("Socket 127.0.0.1:1 zk retcode=-4, errno=111(Connection refused): server refused to "
                                   "accept the client"));
    assert_false(dv_pause_is_close("Socket 127.0.0.1:1 zk retcode=-7, errno=110(Connection timed out): connection to "
                                   "127.0.0.1:1 timed out (exceeded timeout by 3ms)"));
}

static void *wait_long(void *waiting) {
    atomic_store((atomic_bool *)waiting, true);
    dv_pause_wait(&pause_, 1000 * PATIENCE_MS);
    atomic_store((atomic_bool *)waiting, false);
    return NULL;
}

static void check_ends(void (*end)(dv_pause *pause)) {
    pthread_t thread;
    atomic_bool waiting = false;
    close_all();
    dv_pause_count(&pause_);
    assert_int_equal(pthread_create(&thread, NULL, wait_long, &waiting), 0);
    assert_true(DV_WAIT(atomic_load(&waiting), PATIENCE_MS));
    assert_true(DV_WAIT((end(&pause_), !atomic_load(&waiting)), PATIENCE_MS));
    pthread_join(thread, NULL);
}

static void start_again(dv_pause *pause) {
    dv_pause_start(pause, SERVERS);
}

/* A close of the client ends a pause, and nothing pauses after it. Other addresses end one, too. */
TEST(test_ends) {
    check_ends(start_again);
    check_ends(dv_pause_stop);
    assert_int_equal(dv_pause_count(&pause_), 0);
}

/* The native client's line, and no other. */
TEST(test_line) {
    assert_true(dv_pause_is_close("2026-11-25 10:03:46,448:17319(0x7f5c9769d6c0):ZOO_ERROR@check_events@3011: Socket "
                                  "127.0.0.1:21599 zk retcode=-4, errno=112(Host is down): failed while receiving a "
                                  "server response"));
    assert_false(dv_pause_is_close("2026-11-25 10:03:46,448:17319(0x7f5c9769d6c0):ZOO_ERROR@check_events@2966: Socket "
                                   "127.0.0.1:1 zk retcode=-4, errno=111(Connection refused): server refused to accept "
                                   "the client"));
}

TEST_EACH(set_up, tear_down);
