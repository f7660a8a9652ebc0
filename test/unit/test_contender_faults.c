/* Tests of contenders: lost replies, leaving, and faults in every stage. SPDX-License-Identifier: Apache-2.0 */
#include "contender_fixture.h"

/* --- lost replies ----------------------------------------------------------------------------------------------- */

/* A lost answer to the create is resolved by a barrier, answered before anything is read; a node that is not there
 * then never will be, and the new attempt has a new name. */
TEST_IN(test_lost_create_not_applied, set_up_connected, tear_down) {
    owner o;
    enter(&o);
    dv_fake_session(fake, DIVVY_SUSPENDED);
    assert_string_equal(dv_fake_pending(fake), "");
    dv_fake_session(fake, DIVVY_CONNECTED);
    assert_string_equal(dv_fake_pending(fake), "check /");
    assert_true(dv_fake_oldest(fake)->is_multi);
    dv_fake_answer_multi(fake, 0, &(dv_reply){.error = 0});
    assert_string_equal(dv_fake_pending(fake), "children /q");
    ANSWER_CHILDREN("x__lock__0000000003");
    assert_string_equal(dv_fake_pending(fake), "sequential /q/#2__lock__, children /q");
    dv_tree_serve_all(tree);
    assert_int_equal(o.held, 1);
    leave(&o);
    dv_tree_serve_all(tree);
    assert_int_equal(o.gone, 1);
}

/* Found after the barrier, and our session owns it: it is our place, with its token; nothing is created again. */
TEST_IN(test_lost_create_applied, set_up_connected, tear_down) {
    owner o;
    enter(&o);
    dv_fake_session(fake, DIVVY_SUSPENDED);
    dv_fake_session(fake, DIVVY_CONNECTED);
    dv_fake_answer_multi(fake, 0, &(dv_reply){.error = 0});
    ANSWER_CHILDREN("x__lock__0000000003", OWN_NAME(9));
    assert_string_equal(dv_fake_pending(fake), "exists /q/#1__lock__0000000009");
    dv_fake_answer(fake, &(dv_reply){.stat = &(dv_stat){.czxid = 66, .ephemeral_owner = DV_FAKE_SESSION}});
    assert_string_equal(dv_fake_pending(fake), "children /q");
    ANSWER_CHILDREN(OWN_NAME(9));
    assert_int_equal(o.held, 1);
    assert_int_equal(dv_contender_token(o.contender), 66);
    leave(&o);
    answer_error(0);
    assert_int_equal(o.gone, 1);
}

/* A refused barrier is an answer of the quorum too; a barrier whose answer is lost is sent again on the next
 * connection. */
TEST_IN(test_barrier_refused_and_lost, set_up_connected, tear_down) {
    owner o;
    enter(&o);
    dv_fake_session(fake, DIVVY_SUSPENDED);
    dv_fake_session(fake, DIVVY_CONNECTED);
    assert_string_equal(dv_fake_pending(fake), "check /");
    dv_fake_session(fake, DIVVY_SUSPENDED);
    assert_string_equal(dv_fake_pending(fake), "");
    dv_fake_session(fake, DIVVY_CONNECTED);
    assert_string_equal(dv_fake_pending(fake), "check /");
    dv_fake_answer_multi(fake, DIVVY_EACCES, NULL);
    assert_string_equal(dv_fake_pending(fake), "children /q");
    dv_tree_serve_all(tree);
    assert_int_equal(o.held, 1);
    leave(&o);
    dv_tree_serve_all(tree);
}

/* A node of our name that another session owns is not ours, and one that went meanwhile was deleted by somebody. */
TEST_IN(test_lost_create_of_another_owner, set_up_connected, tear_down) {
    for (int gone = 0; gone <= 1; gone++) {
        owner o;
        char name[64];
        enter(&o);
        snprintf(name, sizeof name, "%s%d__lock__0000000009", DV_FAKE_GUID, gone + 1);
        dv_fake_session(fake, DIVVY_SUSPENDED);
        dv_fake_session(fake, DIVVY_CONNECTED);
        dv_fake_answer_multi(fake, 0, &(dv_reply){.error = 0});
        ANSWER_CHILDREN(name);
        if (gone) answer_error(DIVVY_ENOENT);
        else dv_fake_answer(fake, &(dv_reply){.stat = &(dv_stat){.ephemeral_owner = NOBODY}});
        assert_int_equal(o.failed, 1);
        assert_int_equal(o.error, DIVVY_ENOENT);
        assert_int_equal(o.gone, 1);
        assert_string_equal(dv_fake_pending(fake), "");
    }
}

/* A delete whose answer was lost is sent again, and "no such node" is success. */
TEST_IN(test_lost_delete, set_up_connected, tear_down) {
    owner o;
    enter(&o);
    answer_created(OURS(7), 55);
    ANSWER_CHILDREN(OWN_NAME(7));
    leave(&o);
    dv_fake_session(fake, DIVVY_SUSPENDED);
    assert_int_equal(o.gone, 0);
    dv_fake_session(fake, DIVVY_CONNECTED);
    assert_string_equal(dv_fake_pending(fake), "delete /q/#1__lock__0000000007");
    answer_error(DIVVY_ENOENT);
    assert_int_equal(o.gone, 1);
    assert_int_equal(o.failed, 0);
}

/* Told to leave while the create is under way, it deletes on the create's answer. */
TEST_IN(test_leave_while_creating, set_up_connected, tear_down) {
    owner o;
    enter(&o);
    leave(&o);
    assert_string_equal(dv_fake_pending(fake), "sequential /q/#1__lock__, children /q");
    answer_created(OURS(7), 55);
    ANSWER_CHILDREN(OWN_NAME(7));
    assert_string_equal(dv_fake_pending(fake), "delete /q/#1__lock__0000000007");
    answer_error(0);
    assert_int_equal(o.gone, 1);
    assert_int_equal(o.held + o.failed, 0);
}

/* Left before anything was sent, it goes without a request. */
TEST_IN(test_leave_offline, set_up_connected, tear_down) {
    owner o;
    dv_fake_session(fake, DIVVY_SUSPENDED);
    enter(&o);
    leave(&o);
    assert_int_equal(o.gone, 1);
    dv_fake_session(fake, DIVVY_CONNECTED);
    assert_string_equal(dv_fake_pending(fake), "");
}

/* Told to leave while a lost create is resolved: what is found is deleted, and when nothing is found nothing is
 * made. */
TEST_IN(test_leave_while_resolving, set_up_connected, tear_down) {
    for (int found = 0; found <= 1; found++) {
        owner o;
        char name[64];
        enter(&o);
        snprintf(name, sizeof name, "%s%d__lock__0000000009", DV_FAKE_GUID, found + 1);
        dv_fake_session(fake, DIVVY_SUSPENDED);
        dv_fake_session(fake, DIVVY_CONNECTED);
        leave(&o);
        dv_fake_answer_multi(fake, 0, &(dv_reply){.error = 0});
        assert_int_equal(o.gone, 0);
        answer_children(found ? (const char *const[]){name} : NULL, (size_t)found);
        if (found) {
            dv_fake_answer(fake, &(dv_reply){.stat = &(dv_stat){.ephemeral_owner = DV_FAKE_SESSION}});
            assert_int_equal(dv_fake_oldest(fake)->ops->kind, DV_DELETE);
            answer_error(0);
        }
        assert_string_equal(dv_fake_pending(fake), "");
        assert_int_equal(o.gone, 1);
        assert_int_equal(o.held + o.failed, 0);
        dv_fake_end_latecomers(fake);
    }
}

/* Once it was told to leave, it tells no failure. */
TEST_IN(test_fails_while_leaving, set_up_connected, tear_down) {
    static const int errors[] = {DIVVY_EACCES, DIVVY_ENOENT, DIVVY_EPROTO};
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        owner o;
        enter(&o);
        leave(&o);
        answer_error(errors[i]);
        answer_error(errors[i]);
        assert_int_equal(o.gone, 1);
        assert_int_equal(o.failed + o.held, 0);
        assert_string_equal(dv_fake_pending(fake), "");
    }
}

/* When the client gives up all requests, as it does at its end, it is over in every stage, without a failure. */
TEST_IN(test_abandoned, set_up_connected, tear_down) {
    for (int stage = 0; stage < 6; stage++) {
        owner o;
        if (stage) set_up_connected(state);
        if (stage % 2) dv_tree_put(tree, "/q/x__lock__", DV_EPHEMERAL | DV_SEQUENTIAL, NOBODY);
        enter(&o);
        for (int i = 0; i < stage; i++) dv_tree_serve(tree);
        if (stage == 5) leave(&o);
        bool under_way = dv_fake_oldest(fake) != NULL;
        divvy_client *client = dv_fake_client(fake);
        dv_client_lock(client);
        client->znode->backend->abandon(client->znode, DIVVY_ECANCELED, dv_fake_now(fake));
        dv_client_unlock(client);
        dv_fake_run(fake);
        assert_int_equal(o.gone, under_way);
        assert_int_equal(o.failed, 0);
        dv_client_ref(client);
        dv_fake_close(fake); /* which ends those that wait or hold */
        assert_int_equal(o.gone, 1);
        assert_int_equal(client->ephemeral_count, 0);
        dv_client_unref(client);
        dv_tree_free(tree);
    }
    set_up_connected(state);
}

/* --- verifying ---------------------------------------------------------------------------------------------------- */

static void verify(owner *o) {
    dv_client_lock(dv_fake_client(fake));
    dv_contender_verify(o->contender);
    dv_client_unlock(dv_fake_client(fake));
    dv_fake_run(fake);
}

/* A holder that is asked to looks for its node: nothing is told while that is there, or the answer is lost; that it has
 * gone is told as DIVVY_ENOENT, and nothing is deleted then. */
TEST_IN(test_verify, set_up_connected, tear_down) {
    owner o;
    enter(&o);
    verify(&o); /* It does not hold yet: nothing to look for. */
    answer_created(OURS(7), 55);
    ANSWER_CHILDREN(OWN_NAME(7));
    assert_string_equal(dv_fake_pending(fake), "");
    verify(&o);
    verify(&o); /* once is enough */
    assert_string_equal(dv_fake_pending(fake), "exists /q/#1__lock__0000000007");
    dv_fake_answer(fake, &(dv_reply){.stat = &(dv_stat){.ephemeral_owner = DV_FAKE_SESSION}});
    assert_int_equal(o.failed + o.gone, 0);
    verify(&o);
    dv_fake_session(fake, DIVVY_SUSPENDED);
    dv_fake_session(fake, DIVVY_CONNECTED);
    assert_int_equal(o.failed + o.gone, 0);
    verify(&o);
    answer_error(DIVVY_ENOENT);
    assert_int_equal(o.failed, 1);
    assert_int_equal(o.error, DIVVY_ENOENT);
    assert_int_equal(o.gone, 1);
    assert_string_equal(dv_fake_pending(fake), "");
}

/* Told to leave while it looks, it deletes when the answer has come, whatever that is. */
TEST_IN(test_leave_while_verifying, set_up_connected, tear_down) {
    static const int answers[] = {0, DIVVY_ENOENT};
    for (size_t i = 0; i < 2; i++) {
        owner o;
        enter(&o);
        dv_tree_serve_all(tree);
        assert_int_equal(o.held, 1);
        verify(&o);
        leave(&o);
        answer_error(answers[i]);
        assert_int_equal(dv_fake_oldest(fake)->ops->kind, DV_DELETE);
        dv_tree_serve_all(tree);
        assert_int_equal(o.gone, 1);
        assert_int_equal(o.failed, 0);
    }
}

/* --- every stage ------------------------------------------------------------------------------------------------ */

typedef enum {
    LEAVE,
    CUT_DROPPED,
    CUT_APPLIED,
    CUT_LATE,
    CUT_AND_LEAVE,
    EXPIRE,
    DEADLINE,
    TAKE_AWAY,
    VERIFY,
    FAULTS
} fault;

static void inject(owner *o, fault what) {
    const char *one;
    switch (what) {
    case LEAVE: leave(o); break;
    case CUT_DROPPED: dv_tree_cut(tree, 0, false); break;
    case CUT_APPLIED: dv_tree_cut(tree, 1, false); break;
    case CUT_LATE: dv_tree_cut(tree, 0, true); break;
    case CUT_AND_LEAVE:
        dv_tree_cut(tree, 0, true);
        leave(o);
        break;
    case EXPIRE:
        o->is_lost = true;
        dv_tree_expire(tree);
        break;
    case DEADLINE:
        dv_tree_cut(tree, 1, false);
        o->is_lost = true;
        dv_fake_advance(fake, dv_fake_client(fake)->config.session_timeout_ms);
        break;
    case VERIFY: verify(o); break;
    default:
        if (dv_tree_owned(tree, &one)) dv_tree_remove(tree, one);
    }
    if (!dv_fake_is_connected(fake) && !dv_client_end_error(dv_fake_client(fake)))
        dv_fake_session(fake, DIVVY_CONNECTED);
}

/* One life: enter behind somebody who leaves after `stay` requests, with a fault after `at` and, where it is not the
 * end of the session, another after `at2`; then leave. Returns whether the faults came in time to hit it. */
static bool live(bool behind, int stay, int at, fault what, int at2, fault what2) {
    owner o;
    void *state = NULL;
    set_up_connected(&state);
    if (behind) dv_tree_put(tree, "/q/x__lock__", DV_EPHEMERAL | DV_SEQUENTIAL, NOBODY);
    enter(&o);
    bool left = false;
    int step = 0;
    for (; step < 40; step++) {
        if (step == stay && behind) dv_tree_remove(tree, "/q/x__lock__0000000000");
        fault now = step == at ? what : step == at2 ? what2 : FAULTS;
        if (o.contender && now != FAULTS && !(left && (now == LEAVE || now == CUT_AND_LEAVE))) {
            left |= now == LEAVE || now == CUT_AND_LEAVE;
            inject(&o, now);
        }
        if (!o.gone && o.contender && o.held && !left && step > at2) {
            left = true;
            leave(&o);
        }
        if (!dv_tree_serve(tree) && step > at2 && step > stay) break;
    }
    dv_tree_serve_all(tree);
    if (!o.gone && !left) {
        leave(&o);
        dv_tree_serve_all(tree);
    }
    assert_int_equal(o.gone, 1);
    assert_false(o.held_after_loss);
    assert_true(o.held <= 1 && o.failed <= 1);
    bool lost = dv_client_end_error(dv_fake_client(fake)) != 0;
    if (!lost) assert_int_equal(dv_tree_owned(tree, NULL), 0);
    /* Without a thief it either holds or is told to leave or loses its session; it never fails. */
    if (what != TAKE_AWAY && what2 != TAKE_AWAY) assert_int_equal(o.failed, 0);
    assert_int_equal(tear_down(&state), 0);
    return step > at;
}

/* A contender is gone exactly once, holds nothing after its session ended, and leaves no node behind, whatever
 * happens after whatever number of answers. Links break between the steps, and writes arrive late, too. */
TEST(test_faults_in_every_stage) {
    int lives = 0;
    for (int behind = 0; behind <= 1; behind++) {
        for (int at = 0; at < 9; at++) {
            for (fault what = LEAVE; what < FAULTS; what++) {
                live(behind, 4, at, what, at, FAULTS);
                lives++;
            }
        }
    }
    assert_int_equal(lives, 2 * 9 * FAULTS);
}

/* The same with two faults, wherever they fall. */
TEST(test_two_faults_in_every_stage) {
    for (int behind = 0; behind <= 1; behind++) {
        for (int at = 0; at < 7; at++) {
            for (int at2 = at + 1; at2 < at + 6; at2++) {
                for (fault what = LEAVE; what < FAULTS; what++) {
                    for (fault what2 = LEAVE; what2 < FAULTS; what2++) live(behind, 3, at, what, at2, what2);
                }
            }
        }
    }
}

/* No two attempts have the same name, over lost replies, new contenders and a new client on the same session. */
TEST_IN(test_names_are_never_reused, set_up_connected, tear_down) {
    enum { ATTEMPTS = 20 };
    char names[ATTEMPTS][64];
    owner o;
    enter(&o);
    for (int i = 0; i < ATTEMPTS; i++) {
        const dv_fake_request *q = dv_fake_oldest(fake);
        assert_int_equal(q->ops->kind, DV_CREATE);
        snprintf(names[i], sizeof names[i], "%s", q->ops->path);
        for (int j = 0; j < i; j++) assert_string_not_equal(names[i], names[j]);
        dv_tree_cut(tree, 0, i % 2);
        dv_fake_session(fake, DIVVY_CONNECTED);
        while (dv_fake_oldest(fake) && dv_fake_oldest(fake)->ops->kind != DV_CREATE) dv_tree_serve(tree);
        if (!dv_fake_oldest(fake)) { /* A late write was found: that place is taken; take a new place. */
            leave(&o);
            dv_tree_serve_all(tree);
            enter(&o);
        }
    }
    leave(&o);
    dv_tree_serve_all(tree);
    assert_int_equal(dv_tree_owned(tree, NULL), 0);
}
