/* Tests of plan/writer.h on the in-memory ensemble: what comes between its steps. Each story is told once
 * for every moment at which it can happen. SPDX-License-Identifier: Apache-2.0 */
#include "plan_writers.h"

enum { MOMENTS_MAX = 400 };

/* The plan that is about to be written, in several requests. */
typedef enum { FIRST, SMALL, DELTA, BASE, KINDS } kind;

static const char *const kind_texts[KINDS] = {"first plan", "plan in one node", "delta", "base"};

/* User 0 is about to write a plan of that kind; users 0 and 1 know what stands there. A fourth node has joined. */
static void get_ready(kind what) {
    restore_sizes(NULL);
    if (what != SMALL) use_chunks(what == DELTA ? 1000 : 200);
    open_pool(what == DELTA ? 2000 : 60, 3);
    if (what != FIRST) {
        assert_int_equal(attempt(&users[0]), DV_PLAN_WRITTEN);
        refresh(&users[1]);
    }
    if (what == DELTA) {
        static char key[64];
        snprintf(key, sizeof key, "%s", users[0].memory.plan->members[0].key);
        users[0].events = (dv_plan_events){.weight = {key, 1010}};
    } else if (what != FIRST) {
        join(member(4), "{}");
    }
    for (unsigned n = 0; n < USERS_MAX; n++) settle(&users[n]);
}

/* Begins the attempt of user 0, and lets so many events pass. Returns whether it is still under way. */
static bool begin_and_step(unsigned moment) {
    begin_attempt(&users[0]);
    for (unsigned n = 0; n < moment && users[0].attempt; n++) step_once();
    return users[0].attempt != NULL;
}

/* In the end: user 1 brings the plan to where it should be, all of it can be read, and garbage goes with the next
 * base. */
static void assert_recovers(void) {
    users[0].events = (dv_plan_events){0};
    refresh(&users[1]);
    write_all(&users[1]);
    assert_int_equal(users[1].memory.standing, DV_PLAN_GOOD);
    assert_int_equal(users[1].memory.plan->header.pzxid <= stat_of(PARTY).pzxid, 1);
    assert_reads_as(&users[1].memory);
    dv_plan_set *set = numbered_set("other-", 50);
    users[1].events = (dv_plan_events){.set = set};
    assert_int_equal(attempt(&users[1]), DV_PLAN_WRITTEN);
    users[1].events = (dv_plan_events){0};
    dv_plan_set_unref(set);
    assert_reads_as(&users[1].memory);
    assert_int_equal(garbage_count(&users[1].memory), 0);
}

/* Stopped at any moment it says nothing more, goes when what is under way is answered, and leaves nothing that
 * matters. */
TEST(test_stop_at_every_moment) {
    for (kind what = FIRST; what < KINDS; what++) {
        unsigned moment = 0;
        for (bool more = true; more; moment++) {
            assert_true(moment < MOMENTS_MAX);
            get_ready(what);
            more = begin_and_step(moment);
            int done = users[0].done;
            stop_attempt(&users[0]);
            assert_int_equal(users[0].gone, !more);
            STEP_UNTIL(users[0].gone);
            assert_int_equal(users[0].done, done);
            assert_recovers();
            close_pool();
        }
        print_message("%s: stopped at %u moments\n", kind_texts[what], moment);
        assert_true(moment > 5);
    }
}

/* It may be stopped by the very call that tells its outcome. */
TEST(test_stop_when_done) {
    for (kind what = FIRST; what < KINDS; what++) {
        get_ready(what);
        users[0].stop_when_done = true;
        assert_int_equal(attempt(&users[0]), DV_PLAN_WRITTEN);
        assert_int_equal(users[0].memory.plan->mzxid, stat_of(ROOT).mzxid);
        assert_recovers();
        close_pool();
    }
}

/* The connection breaks at any moment, and what was under way is applied, or not, or later. The attempt is over, or had
 * come to its end before; a read tells by the guid which; and what arrives late does no harm. */
TEST(test_disconnect_at_every_moment) {
    static const divvy_testing_fate fates[] = {DIVVY_TESTING_NOT_APPLIED, DIVVY_TESTING_APPLIED,
                                               DIVVY_TESTING_APPLIED_LATE, DIVVY_TESTING_APPLIED_BEHIND};
    for (kind what = FIRST; what < KINDS; what++) {
        unsigned applied = 0, refused = 0;
        for (size_t fate = 0; fate < COUNT(fates); fate++) {
            bool more = true;
            for (unsigned moment = 0; more; moment++) {
                assert_true(moment < MOMENTS_MAX);
                get_ready(what);
                more = begin_and_step(moment);
                int told = users[0].outcome;
                assert_int_equal(divvy_testing_disconnect(ensemble, users[0].client, fates[fate], 500), 0);
                STEP_UNTIL(users[0].gone);
                if (told == NOT_DONE) {
                    assert_true(users[0].outcome == DV_PLAN_WRITTEN || users[0].error == DIVVY_ECONNECTION);
                } else {
                    assert_int_equal(users[0].outcome, told);
                }
                int64_t mzxid = users[0].memory.mzxid;
                refresh(&users[0]);
                if (users[0].outcome == DV_PLAN_FAILED) *(users[0].memory.mzxid != mzxid ? &applied : &refused) += 1;
                assert_recovers();
                divvy_testing_run(ensemble, 1000);
                assert_reads_as(&users[1].memory);
                close_pool();
            }
        }
        print_message("%s: %u lost replies of what was applied, %u others\n", kind_texts[what], applied, refused);
        assert_true(applied > 0 && refused > 0);
    }
}

/* The session ends at any moment. */
TEST(test_expire_at_every_moment) {
    for (kind what = FIRST; what < KINDS; what++) {
        bool more = true;
        for (unsigned moment = 0; more; moment += 3) {
            get_ready(what);
            more = begin_and_step(moment);
            int told = users[0].outcome;
            assert_int_equal(divvy_testing_expire(ensemble, users[0].client), 0);
            STEP_UNTIL(users[0].gone);
            if (told == NOT_DONE && users[0].outcome != DV_PLAN_WRITTEN) {
                assert_true(users[0].error == DIVVY_ECONNECTION || users[0].error == DIVVY_ELOST);
            }
            assert_recovers();
            close_pool();
        }
    }
}

/* Two at once: of those who read the same root, one writes; the other one has to read first. Nothing of it is left for
 * good. */
TEST(test_two_at_once) {
    unsigned both = 0, clashes = 0;
    for (kind what = FIRST; what < KINDS; what++) {
        for (unsigned moment = 0; moment < 30; moment++) {
            get_ready(what);
            users[1].events = users[0].events;
            begin_and_step(moment);
            begin_attempt(&users[1]);
            STEP_UNTIL(users[0].gone && users[1].gone);
            int first = users[0].outcome, second = users[1].outcome;
            unsigned written = (first == DV_PLAN_WRITTEN) + (second == DV_PLAN_WRITTEN);
            assert_int_equal(written, 1);
            assert_true(first == DV_PLAN_WRITTEN || first == DV_PLAN_BEHIND);
            assert_true(second == DV_PLAN_WRITTEN || second == DV_PLAN_BEHIND);
            user *winner = &users[second == DV_PLAN_WRITTEN];
            assert_int_equal(winner->memory.mzxid, stat_of(ROOT).mzxid);
            both += second == DV_PLAN_WRITTEN;
            clashes += garbage_count(&winner->memory) > 0;
            assert_recovers();
            users[1].events = (dv_plan_events){0};
            close_pool();
        }
    }
    print_message("%u times the later one won, %u times the loser left chunks\n", both, clashes);
    assert_true(clashes > 0);
}

/* The plan is deleted at any moment; what was computed from it is not written over nothing. */
TEST(test_root_deleted_at_every_moment) {
    for (kind what = SMALL; what < KINDS; what++) {
        bool more = true;
        for (unsigned moment = 0; more; moment++) {
            get_ready(what);
            more = begin_and_step(moment);
            assert_int_equal(divvy_testing_pause_client(ensemble, users[0].client, 1), 0);
            divvy_testing_run(ensemble, 20);
            int64_t mzxid = stat_of(ROOT).mzxid;
            bool written = mzxid != users[0].memory.mzxid || users[0].outcome == DV_PLAN_WRITTEN;
            remove_plan();
            assert_int_equal(divvy_testing_pause_client(ensemble, users[0].client, 0), 0);
            STEP_UNTIL(users[0].gone);
            assert_int_equal(users[0].outcome, written ? DV_PLAN_WRITTEN : DV_PLAN_BEHIND);
            assert_false(is_there(ROOT));
            assert_recovers();
            close_pool();
        }
    }
}

/* The plan is deleted and made again, up to the very version that it had: what was computed from the old one is not
 * written over the new one (its epoch is another). */
TEST(test_recreated_at_every_moment) {
    unsigned same_version = 0;
    for (kind what = SMALL; what < KINDS; what++) {
        bool more = true;
        for (unsigned moment = 0; more; moment++) {
            get_ready(what);
            more = begin_and_step(moment);
            assert_int_equal(divvy_testing_pause_client(ensemble, users[0].client, 1), 0);
            divvy_testing_run(ensemble, 20);
            int32_t version = stat_of(ROOT).version;
            bool written = stat_of(ROOT).mzxid != users[0].memory.mzxid || users[0].outcome == DV_PLAN_WRITTEN;
            remove_plan();
            refresh(&users[1]);
            assert_int_equal(attempt(&users[1]), DV_PLAN_WRITTEN);
            for (uint32_t n = 0; users[1].memory.version < version; n++) {
                assert_int_equal(write_weight(&users[1], 300 + n), DV_PLAN_WRITTEN);
            }
            same_version += users[1].memory.version == version;
            int64_t mzxid = stat_of(ROOT).mzxid;
            assert_int_equal(divvy_testing_pause_client(ensemble, users[0].client, 0), 0);
            STEP_UNTIL(users[0].gone);
            assert_int_equal(users[0].outcome, written ? DV_PLAN_WRITTEN : DV_PLAN_BEHIND);
            assert_int_equal(stat_of(ROOT).mzxid, mzxid);
            assert_reads_as(&users[1].memory);
            assert_recovers();
            close_pool();
        }
    }
    assert_true(same_version > 0);
}

/* Another party settles in the middle: its asking is called off, and nothing is written. */
TEST(test_party_settles_at_every_moment) {
    bool more = true;
    unsigned unsettled = 0;
    for (unsigned moment = 0; more; moment++) {
        get_ready(BASE);
        char path[256];
        more = begin_and_step(moment);
        snprintf(path, sizeof path, PARTY "/%s", member(5));
        put_text(path, "{}"); /* sooner than a client could */
        settle(&users[0]);
        STEP_UNTIL(users[0].gone);
        unsettled += users[0].outcome == DV_PLAN_UNSETTLED;
        assert_true(users[0].outcome == DV_PLAN_UNSETTLED || users[0].outcome == DV_PLAN_WRITTEN);
        assert_recovers();
        close_pool();
    }
    assert_true(unsettled > 0);
}

/* Chunks are deleted only while the plan that does without them stands: another one, written meanwhile, stays whole. */
TEST(test_garbage_left_to_the_next) {
    unsigned overtaken = 0;
    bool more = true;
    for (unsigned moment = 0; more; moment++) {
        get_ready(BASE);
        for (unsigned n = 0; n < 1100; n++) {
            char path[256];
            snprintf(path, sizeof path, ROOT "/1-00000000002000000000031-%u", n);
            assert_int_equal(divvy_testing_put(ensemble, path, "x", 1, DIVVY_TESTING_PERSISTENT), 0);
        }
        divvy_testing_run(ensemble, 10);
        begin_attempt(&users[0]);
        STEP_UNTIL(users[0].done);
        assert_int_equal(users[0].outcome, DV_PLAN_WRITTEN);
        for (unsigned n = 0; n < moment && users[0].attempt; n++) step_once();
        more = users[0].attempt != NULL;
        assert_int_equal(divvy_testing_pause_client(ensemble, users[0].client, 1), 0);
        refresh(&users[1]);
        join(member(5), "{}");
        settle(&users[1]);
        begin_attempt(&users[1]);
        STEP_UNTIL(users[1].done);
        assert_int_equal(users[1].outcome, DV_PLAN_WRITTEN);
        assert_int_equal(divvy_testing_pause_client(ensemble, users[0].client, 0), 0);
        STEP_UNTIL(users[0].gone && users[1].gone);
        overtaken += more;
        assert_reads_as(&users[1].memory);
        assert_recovers();
        close_pool();
    }
    assert_true(overtaken > 3);
}

TEST_EACH(NULL, restore_sizes);
