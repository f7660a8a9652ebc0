/* Tests of znode/batch.h, on a scripted backend. SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/fake_znode.h"
#include "lib/test.h"
#include "znode/request.h"

#define ITEMS_MAX 600

static dv_fake *fake;

/* An operation's answers: which came, and in which order. */
typedef struct {
    char path[32];
    int answers, error, order;
    int64_t czxid;
    char made[64];
} item;

static item items[ITEMS_MAX];
static int answered;

static void on_reply(void *context, const dv_reply *reply, int64_t now) {
    item *i = context;
    (void)now;
    i->answers++;
    i->error = reply->error;
    i->order = answered++;
    i->czxid = reply->error == 0 && reply->stat ? reply->stat->czxid : 0;
    if (reply->path) snprintf(i->made, sizeof i->made, "%s", reply->path);
}

static dv_znode *znode(void) {
    return dv_fake_client(fake)->znode;
}

static void create(int i) {
    assert_int_equal(dv_batch_create(znode(), items[i].path, "d", 1, DV_EPHEMERAL, on_reply, &items[i]), 0);
}

static void delete (int i) {
    assert_int_equal(dv_batch_delete(znode(), items[i].path, on_reply, &items[i]), 0);
}

static void children(int i) {
    assert_int_equal(dv_batch_children(znode(), items[i].path, on_reply, &items[i]), 0);
}

static void begin(void) {
    dv_client_lock(dv_fake_client(fake));
}

static void end(void) {
    dv_client_unlock(dv_fake_client(fake));
    dv_fake_run(fake);
}

static int set_up(void **state) {
    (void)state;
    fake = dv_fake_open(NULL);
    dv_fake_session(fake, DIVVY_CONNECTED);
    memset(items, 0, sizeof items);
    for (int i = 0; i < ITEMS_MAX; i++) snprintf(items[i].path, sizeof items[i].path, "/n%d", i);
    answered = 0;
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    dv_fake_close(fake);
    return 0;
}

/* A multi of `count` creates is answered: each made its own path. */
static void answer_creates(size_t count) {
    dv_reply replies[ITEMS_MAX] = {{.error = 0}};
    const dv_fake_request *q = dv_fake_oldest(fake);
    assert_true(q->is_multi);
    assert_int_equal(q->count, count);
    for (size_t i = 0; i < count; i++) replies[i].path = q->ops[i].path;
    dv_fake_answer_multi(fake, 0, replies);
}

static void answer_stat(int64_t czxid) {
    dv_fake_answer(fake, &(dv_reply){.stat = &(dv_stat){.czxid = czxid}});
}

/* Nothing is sent before the turn ends; then neighbours of one kind are one multi, writes keep their order, and reads
 * come last, each by itself. */
TEST(test_order) {
    begin();
    children(0);
    create(1);
    create(2);
    delete (3);
    create(4);
    delete (5);
    delete (6);
    children(7);
    assert_string_equal(dv_fake_pending(fake), "");
    end();
    assert_string_equal(dv_fake_pending(fake), "multi [ephemeral /n1; ephemeral /n2], delete /n3, ephemeral /n4, "
                                               "multi [delete /n5; delete /n6], children /n0, children /n7");
}

/* A single write is answered as it is, and its reply is the caller's. */
TEST(test_single) {
    begin();
    create(0);
    delete (1);
    end();
    dv_fake_answer(fake, &(dv_reply){.path = "/made", .stat = &(dv_stat){.czxid = 9}});
    dv_fake_answer(fake, &(dv_reply){.error = DIVVY_ENOENT});
    assert_int_equal(items[0].czxid, 9);
    assert_string_equal(items[0].made, "/made");
    assert_int_equal(items[1].error, DIVVY_ENOENT);
    assert_int_equal(answered, 2);
}

/* Creates of a multi are told when the czxid of one of them is known, which is that of all. */
TEST(test_czxid_by_one_read) {
    begin();
    for (int i = 0; i < 5; i++) create(i);
    end();
    answer_creates(5);
    assert_int_equal(answered, 0);
    assert_string_equal(dv_fake_pending(fake), "exists /n0");
    answer_stat(1234);
    assert_int_equal(answered, 5);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(items[i].order, i);
        assert_int_equal(items[i].error, 0);
        assert_int_equal(items[i].czxid, 1234);
        assert_string_equal(items[i].made, items[i].path);
    }
    assert_string_equal(dv_fake_pending(fake), "");
}

/* Where the node that was asked has been deleted already, the next one is asked. */
TEST(test_czxid_of_the_next) {
    begin();
    for (int i = 0; i < 3; i++) create(i);
    end();
    answer_creates(3);
    dv_fake_answer(fake, &(dv_reply){.error = DIVVY_ENOENT});
    assert_string_equal(dv_fake_pending(fake), "exists /n1");
    dv_fake_answer(fake, &(dv_reply){.error = DIVVY_ENOENT});
    assert_string_equal(dv_fake_pending(fake), "exists /n2");
    answer_stat(77);
    for (int i = 0; i < 3; i++) assert_int_equal(items[i].czxid, 77);
}

/* B1: a place is asked, and never a directory, which somebody else may have deleted and made again since. */
TEST(test_czxid_of_a_place) {
    begin();
    for (int i = 0; i < 5; i++) {
        int mode = i % 2 ? DV_EPHEMERAL | DV_SEQUENTIAL : DV_PERSISTENT;
        assert_int_equal(dv_batch_create(znode(), items[i].path, "", 0, mode, on_reply, &items[i]), 0);
    }
    end();
    answer_creates(5);
    assert_string_equal(dv_fake_pending(fake), "exists /n1");
    dv_fake_answer(fake, &(dv_reply){.error = DIVVY_ENOENT});
    assert_string_equal(dv_fake_pending(fake), "exists /n3");
    dv_fake_answer(fake, &(dv_reply){.error = DIVVY_ENOENT});
    for (int i = 0; i < 5; i++) assert_int_equal(items[i].error, DIVVY_ECONNECTION);
    assert_string_equal(dv_fake_pending(fake), "");
}

/* Where nobody is left to be asked, or the answer is lost, the outcome counts as unknown, and the recipe looks. */
TEST(test_czxid_unknown) {
    begin();
    create(0);
    create(1);
    end();
    answer_creates(2);
    dv_fake_answer(fake, &(dv_reply){.error = DIVVY_ENOENT});
    dv_fake_answer(fake, &(dv_reply){.error = DIVVY_ENOENT});
    assert_int_equal(answered, 2);
    assert_int_equal(items[0].error, DIVVY_ECONNECTION);
    begin();
    create(2);
    create(3);
    end();
    answer_creates(2);
    dv_fake_session(fake, DIVVY_SUSPENDED);
    assert_int_equal(answered, 4);
    assert_int_equal(items[2].error, DIVVY_ECONNECTION);
    assert_int_equal(items[3].error, DIVVY_ECONNECTION);
}

/* A multi that failed as a whole is sent again one by one, so that one bad item spoils nothing. */
TEST_IN(test_fallback, NULL, tear_down) {
    static const int errors[] = {DIVVY_ENOENT, DIVVY_EEXIST, DIVVY_EACCES,
                                 DIVVY_EINVAL, DIVVY_E2BIG,  DIVVY_EROLLEDBACK};
    for (size_t e = 0; e < sizeof errors / sizeof errors[0]; e++) {
        set_up(state);
        begin();
        for (int i = 0; i < 3; i++) create(i);
        delete (3);
        delete (4);
        end();
        dv_fake_answer_multi(fake, errors[e], NULL);
        assert_int_equal(answered, 0);
        assert_string_equal(dv_fake_pending(fake), "multi [delete /n3; delete /n4], ephemeral /n0, ephemeral /n1, "
                                                   "ephemeral /n2");
        dv_fake_answer_multi(fake, errors[e], NULL);
        dv_fake_answer(fake, &(dv_reply){.path = "/n0", .stat = &(dv_stat){.czxid = 10}});
        dv_fake_answer(fake, &(dv_reply){.error = errors[e]});
        dv_fake_answer(fake, &(dv_reply){.path = "/n2", .stat = &(dv_stat){.czxid = 12}});
        assert_int_equal(items[0].czxid, 10);
        assert_int_equal(items[1].error, errors[e]);
        assert_int_equal(items[2].czxid, 12);
        assert_string_equal(dv_fake_pending(fake), "delete /n3, delete /n4");
        dv_fake_answer(fake, &(dv_reply){.error = 0});
        dv_fake_answer(fake, &(dv_reply){.error = DIVVY_ENOENT});
        assert_int_equal(items[3].error, 0);
        assert_int_equal(items[4].error, DIVVY_ENOENT);
        for (int i = 0; i < 5; i++) assert_int_equal(items[i].answers, 1);
        if (e + 1 < sizeof errors / sizeof errors[0]) tear_down(state);
    }
}

/* --- renewed directories: Q11 ------------------------------------------------------------------------------------ */

#define PLACE(n) "/d" #n "/p__lock__"

static void renew(int i, const char *directory, const char *place) {
    assert_int_equal(
        dv_batch_create_renewing(znode(), directory, place, "d", 1, DV_EPHEMERAL | DV_SEQUENTIAL, on_reply, &items[i]),
        0);
}

static void renew_two(void) {
    begin();
    renew(0, "/d0", PLACE(0));
    renew(1, "/d1", PLACE(1));
    end();
    assert_string_equal(dv_fake_pending(fake),
                        "multi [set /d0; check /d0; delete /d0; create /d0; sequential /d0/p__lock__; "
                        "check /d1; delete /d1; create /d1; sequential /d1/p__lock__]");
    const dv_fake_request *q = dv_fake_oldest(fake);
    assert_int_equal(q->ops[0].version, 0);
    for (size_t i = 1; i <= 2; i++) assert_int_equal(q->ops[i].version, 1);
    for (size_t i = 5; i <= 6; i++) assert_int_equal(q->ops[i].version, 0);
}

/* Q11: directories are deleted and made again in the transaction that makes the nodes, whose czxid the set tells. */
TEST(test_renewed) {
    dv_reply replies[9] = {{.stat = &(dv_stat){.czxid = 3, .mzxid = 66}}};
    renew_two();
    replies[4].path = PLACE(0) "0000000000";
    replies[8].path = PLACE(1) "0000000000";
    dv_fake_answer_multi(fake, 0, replies);
    assert_int_equal(answered, 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(items[i].error, 0);
        assert_int_equal(items[i].czxid, 66);
    }
    assert_string_equal(items[0].made, PLACE(0) "0000000000");
    assert_string_equal(items[1].made, PLACE(1) "0000000000");
    assert_string_equal(dv_fake_pending(fake), "");
}

/* Q11: where one of them cannot be renewed none is, and the nodes are made in them as they are. */
TEST_IN(test_not_renewed, NULL, tear_down) {
    static const int errors[] = {DIVVY_ENOTEMPTY, DIVVY_EVERSION, DIVVY_ENOENT, DIVVY_EACCES, DIVVY_EQUOTA};
    for (size_t e = 0; e < sizeof errors / sizeof errors[0]; e++) {
        set_up(state);
        renew_two();
        dv_fake_answer_multi(fake, errors[e], NULL);
        assert_int_equal(answered, 0);
        assert_string_equal(dv_fake_pending(fake), "multi [sequential " PLACE(0) "; sequential " PLACE(1) "]");
        dv_fake_answer_multi(fake, errors[e], NULL);
        assert_string_equal(dv_fake_pending(fake), "sequential " PLACE(0) ", sequential " PLACE(1));
        dv_fake_answer(fake, &(dv_reply){.path = PLACE(0) "0000000007", .stat = &(dv_stat){.czxid = 10}});
        dv_fake_answer(fake, &(dv_reply){.error = errors[e]});
        assert_int_equal(items[0].czxid, 10);
        assert_int_equal(items[1].error, errors[e]);
        if (e + 1 < sizeof errors / sizeof errors[0]) tear_down(state);
    }
}

/* Q11: one alone goes the same way, and never together with what renews nothing. */
TEST(test_one_renewed) {
    begin();
    create(0);
    renew(1, "/d1", PLACE(1));
    create(2);
    end();
    assert_string_equal(dv_fake_pending(fake), "ephemeral /n0, multi [set /d1; check /d1; delete /d1; create /d1; "
                                               "sequential " PLACE(1) "], ephemeral /n2");
    dv_fake_answer(fake, &(dv_reply){.path = "/n0", .stat = &(dv_stat){.czxid = 9}});
    dv_fake_answer_multi(fake, DIVVY_ENOTEMPTY, NULL);
    assert_string_equal(dv_fake_pending(fake), "ephemeral /n2, sequential " PLACE(1));
    assert_int_equal(answered, 1);
}

/* Q11: a lost answer is one to each node, and nothing is repeated. */
TEST(test_renewal_lost) {
    renew_two();
    dv_fake_session(fake, DIVVY_SUSPENDED);
    for (int i = 0; i < 2; i++) assert_int_equal(items[i].error, DIVVY_ECONNECTION);
    dv_fake_session(fake, DIVVY_CONNECTED);
    assert_string_equal(dv_fake_pending(fake), "");
}

/* Q11: a multi of renewals has the nodes of 200 at most, and its operations stay below the limits. */
TEST(test_renewals_split) {
    begin();
    for (int i = 0; i < ITEMS_MAX; i++) renew(i, "/d", "/d/p");
    end();
    size_t places = 0;
    for (const dv_fake_request *q = dv_fake_oldest(fake); q; q = q->next) {
        size_t bytes = 0;
        assert_true(q->is_multi);
        assert_int_equal(q->count, 4 * 200 + 1);
        for (size_t i = 0; i < q->count; i++) bytes += dv_op_bytes(&q->ops[i]);
        assert_true(bytes <= DV_MULTI_BYTES_MAX);
        places += (q->count - 1) / 4;
    }
    assert_int_equal(places, ITEMS_MAX);
}

/* A multi whose answer was lost is a lost answer to each of its operations, and nothing is repeated. */
TEST(test_unknown_outcome) {
    begin();
    for (int i = 0; i < 4; i++) create(i);
    delete (4);
    end();
    dv_fake_session(fake, DIVVY_SUSPENDED);
    assert_int_equal(answered, 5);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(items[i].answers, 1);
        assert_int_equal(items[i].error, DIVVY_ECONNECTION);
    }
    dv_fake_session(fake, DIVVY_CONNECTED);
    assert_string_equal(dv_fake_pending(fake), "");
}

/* Nor is anything repeated on the same connection: neither what is unknown nor what the session's end has cut off. */
TEST(test_nothing_is_repeated) {
    static const int errors[] = {DIVVY_ECONNECTION, DIVVY_ENOMEM, DIVVY_ELOST, DIVVY_ECANCELED, DIVVY_EAUTH};
    for (size_t e = 0; e < sizeof errors / sizeof errors[0]; e++) {
        begin();
        for (int i = 0; i < 3; i++) create(i);
        delete (3);
        delete (4);
        end();
        dv_fake_answer_multi(fake, errors[e], NULL);
        dv_fake_answer_multi(fake, errors[e], NULL);
        assert_string_equal(dv_fake_pending(fake), "");
        for (int i = 0; i < 5; i++) {
            assert_int_equal(items[i].answers, (int)e + 1);
            assert_int_equal(items[i].error, errors[e]);
        }
    }
}

/* The session's end answers all, once, and so does closing; what comes after that is answered too. */
TEST(test_session_over) {
    begin();
    for (int i = 0; i < 4; i++) create(i);
    end();
    dv_fake_session(fake, DIVVY_LOST);
    begin();
    for (int i = 4; i < 8; i++) create(i);
    end();
    for (int i = 0; i < 8; i++) {
        assert_int_equal(items[i].answers, 1);
        assert_int_equal(items[i].error, DIVVY_ELOST);
    }
}

/* A request without a connection is answered as unknown, and not inside the call. */
TEST(test_not_connected) {
    dv_fake_session(fake, DIVVY_SUSPENDED);
    begin();
    create(0);
    create(1);
    children(2);
    dv_client_unlock(dv_fake_client(fake));
    assert_int_equal(answered, 0);
    dv_fake_run(fake);
    for (int i = 0; i < 3; i++) assert_int_equal(items[i].error, DIVVY_ECONNECTION);
}

/* Multis stay below a bound of operations, and lose none of them. */
TEST(test_split_by_count) {
    begin();
    for (int i = 0; i < ITEMS_MAX; i++) delete (i);
    end();
    size_t sent = 0, requests = 0;
    for (const dv_fake_request *q = dv_fake_oldest(fake); q; q = q->next) {
        assert_true(q->count <= DV_MULTI_OPS_MAX);
        for (size_t i = 0; i < q->count; i++) assert_string_equal(q->ops[i].path, items[sent++].path);
        requests++;
    }
    assert_int_equal(sent, ITEMS_MAX);
    assert_true(requests >= 1 && requests < ITEMS_MAX / 50);
}

/* Multis stay below 256 KiB; an operation that is too large for one goes by itself, between its neighbours. */
TEST(test_split_by_size) {
    enum { SMALL = 60 * 1024, LARGE = 300 * 1024 };
    char *data = calloc(1, LARGE);
    assert_non_null(data);
    begin();
    for (int i = 0; i < 20; i++) {
        size_t bytes = i == 7 ? LARGE : SMALL;
        assert_int_equal(dv_batch_create(znode(), items[i].path, data, bytes, 0, on_reply, &items[i]), 0);
    }
    end();
    size_t sent = 0;
    for (const dv_fake_request *q = dv_fake_oldest(fake); q; q = q->next) {
        size_t bytes = 0;
        for (size_t i = 0; i < q->count; i++) {
            assert_string_equal(q->ops[i].path, items[sent++].path);
            bytes += dv_op_bytes(&q->ops[i]);
            assert_true(dv_op_bytes(&q->ops[i]) > q->ops[i].data_bytes + strlen(q->ops[i].path));
        }
        if (q->is_multi) assert_true(bytes <= DV_MULTI_BYTES_MAX);
        if (q->is_multi) assert_true(q->count > 1);
        if (sent == 8) assert_false(q->is_multi);
    }
    assert_int_equal(sent, 20);
    free(data);
}

TEST_EACH(set_up, tear_down);
