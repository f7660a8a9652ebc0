/* The fixture that parts servers from one another: what the tests of the session clock build on.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Shows that the faults between real servers are what the clock's tests take them for. */
#include "lib/wait.h"
#include "lib/zk.h"

#include <stdatomic.h>
#include <string.h>

#include "lib/test.h"

enum { TICK_MS = 100, SYNC_TICKS = 40, PATIENCE_MS = 40000 };
enum { BEARS_MS = (SYNC_TICKS - 5) * TICK_MS }; /* so long a follower serves without its leader, at least */

#include "quorum_fixture.h"

static int other_than(int one, int other) {
    for (int number = 1;; number++) {
        if (number != one && number != other) return number;
    }
}

static void on_written(int rc, const struct Stat *stat, const void *data) {
    (void)stat;
    atomic_int *result = (atomic_int *)(uintptr_t)data;
    atomic_store(result, rc);
}

/* Sends a write whose outcome comes to *result, which is 1 until then. */
static void write_to(dv_test_zk *zk, atomic_int *result) {
    atomic_store(result, 1);
    assert_int_equal(zoo_aset(dv_test_zk_handle(zk), "/", "x", 1, -1, on_written, result), ZOK);
}

static void check_writes(dv_test_zk *zk) {
    atomic_int result;
    write_to(zk, &result);
    assert_true(DV_WAIT(atomic_load(&result) <= 0, PATIENCE_MS));
    assert_int_equal(atomic_load(&result), ZOK);
}

/* Returns whether the server that `zk` is connected to answers a read at once, from what it has. */
static bool reads(dv_test_zk *zk) {
    struct Stat stat;
    return zoo_exists(dv_test_zk_handle(zk), "/", 0, &stat) == ZOK;
}

/* A follower whose link to the leader is held, in one direction or both, goes on to answer reads, and no write of
 * its clients is answered, nor a read that the same session sent after it; the rest of the ensemble works. Requests
 * that were held come through in the end. */
static void check_parted(int follower_to_leader, int leader_to_follower) {
    int first = dv_test_server_await_leader(server), cut = first % DV_TEST_QUORUM_SERVERS + 1;
    dv_test_zk *inside = dv_test_zk_open(dv_test_server_address(server, cut));
    dv_test_zk *reader = dv_test_zk_open(dv_test_server_address(server, cut));
    dv_test_zk *outside = dv_test_zk_open(dv_test_server_address(server, other_than(first, cut)));
    check_writes(inside);
    check_writes(outside);
    int64_t since_ms = dv_test_now_ms();
    if (follower_to_leader) dv_test_quorum_hold(quorum, cut, first);
    if (leader_to_follower) dv_test_quorum_hold(quorum, first, cut);
    atomic_int result;
    write_to(inside, &result);
    for (int i = 0; i < 5; i++) { /* for a fifth of that time; a machine that is slower has seen less */
        bool answers = reads(reader);
        assert_true(answers || dv_test_now_ms() - since_ms > BEARS_MS);
        check_writes(outside);
        dv_test_sleep_ms(SYNC_TICKS * TICK_MS / 25);
    }
    int outcome = atomic_load(&result);
    assert_true(outcome == 1 || dv_test_now_ms() - since_ms > BEARS_MS);
    dv_test_quorum_heal(quorum);
    assert_true(DV_WAIT(atomic_load(&result) <= 0, PATIENCE_MS));
    dv_test_zk_close(inside);
    dv_test_zk_close(reader);
    dv_test_zk_close(outside);
}

TEST(test_follower_parted) {
    check_parted(1, 1);
}

TEST(test_follower_unheard) {
    check_parted(1, 0);
}

TEST(test_follower_deaf) {
    check_parted(0, 1);
}

/* A leader that is cut off from both others goes on to answer reads, while they elect another and take writes. Healed,
 * the three are one ensemble again, each server on each link: the old leader follows. */
TEST(test_leader_isolated) {
    for (int round = 0; round < 3; round++) { /* another leader each time, so that the links of all are used */
        int old = dv_test_server_await_leader(server), one = old % DV_TEST_QUORUM_SERVERS + 1,
            other = other_than(old, one);
        dv_test_zk *inside = dv_test_zk_open(dv_test_server_address(server, old));
        dv_test_quorum_isolate(quorum, old);
        assert_true(reads(inside));
        assert_true(DV_WAIT(dv_test_server_is(server, one, "leader") || dv_test_server_is(server, other, "leader"),
                            PATIENCE_MS));
        dv_test_zk *outside = dv_test_zk_open(dv_test_server_address(server, one));
        check_writes(outside);
        assert_false(dv_test_server_is(server, old, "follower"));
        dv_test_quorum_heal(quorum);
        assert_true(DV_WAIT(dv_test_server_is(server, old, "follower"), PATIENCE_MS));
        dv_test_server_await_leader(server);
        dv_test_zk_close(inside);
        dv_test_zk_close(outside);
    }
}

TEST_EACH(NULL, heal);
TEST_GROUP(start_quorum, stop_quorum);
