/* Tests of recipe/contender.h, on a scripted backend. SPDX-License-Identifier: Apache-2.0 */
#include "contender_fixture.h"

static void answer_data(void) {
    dv_fake_answer(fake, &(dv_reply){.data = "", .stat = &(dv_stat){.czxid = 1}});
}

/* --- entering and waiting, answer by answer --------------------------------------------------------------------- */

/* The create and the list are both under way before either is answered, in this order, and a free queue is held. */
TEST(test_create_and_list_go_back_to_back) {
    owner o;
    enter(&o);
    assert_string_equal(dv_fake_pending(fake), "sequential /q/#1__lock__, children /q");
    const dv_op *create = dv_fake_oldest(fake)->ops;
    assert_int_equal(create->mode, DV_EPHEMERAL | DV_SEQUENTIAL);
    assert_int_equal(create->data_bytes, 2);
    assert_memory_equal(create->data, "me", 2);
    answer_created(OURS(7), 55);
    assert_int_equal(o.held, 0);
    ANSWER_CHILDREN(OWN_NAME(7));
    assert_int_equal(o.held, 1);
    assert_int_equal(dv_contender_token(o.contender), 55);
    assert_string_equal(dv_contender_path(o.contender), OURS(7));
    assert_string_equal(dv_fake_pending(fake), "");
    leave(&o);
    assert_string_equal(dv_fake_pending(fake), "delete /q/#1__lock__0000000007");
    assert_int_equal(o.gone, 0);
    answer_error(0);
    assert_int_equal(o.gone, 1);
}

/* Creates of one turn go as one multi and the lists right behind it, and a list that comes before the token is known
 * leads to the same end. */
TEST(test_many_enter_in_one_turn) {
    owner a, b;
    dv_tree_put(tree, "/r", DV_PERSISTENT, 0);
    a = b = (owner){.contender = NULL};
    divvy_client *client = dv_fake_client(fake);
    dv_client_lock(client);
    assert_int_equal(dv_contender_enter(&a.contender, client, QUEUE, &dv_exclusive_queue, "me", &events, &a), 0);
    assert_int_equal(dv_contender_enter(&b.contender, client, "/r", &dv_exclusive_queue, "me", &events, &b), 0);
    assert_string_equal(dv_fake_pending(fake), ""); /* Not before the turn ends. */
    dv_client_unlock(client);
    assert_string_equal(dv_fake_pending(fake),
                        "multi [sequential /q/#1__lock__; sequential /r/#2__lock__], children /q, children /r");
    for (int answered = 0; answered < 4; answered++) assert_true(dv_tree_serve(tree));
    assert_string_equal(dv_fake_pending(fake),
                        ""); /* The fourth was an exists, for the token. Nothing is listed again. */
    assert_int_equal(a.held + b.held, 2);
    assert_int_equal(dv_contender_token(a.contender), dv_contender_token(b.contender));
    leave(&a);
    leave(&b);
    dv_tree_serve_all(tree);
    assert_int_equal(a.gone + b.gone, 2);
    assert_int_equal(dv_tree_owned(tree, NULL), 0);
}

/* A contender watches, by get, the nearest of those before it; foreign names, other markers and younger ones do not
 * count. */
TEST(test_watches_its_predecessor_only) {
    owner o;
    enter(&o);
    answer_created(OURS(7), 55);
    ANSWER_CHILDREN("x__lock__0000000003", OWN_NAME(7), "kazoo__lock__0000000005", "y__rlock__0000000006",
                    "__lock__0000000004", "zz__lock__0000000008", "a__lock__6", "junk", "b__lock__00000000006",
                    "-0000000006", "c__lock__-000000006");
    assert_int_equal(o.held, 0);
    assert_string_equal(dv_fake_pending(fake), "get! /q/kazoo__lock__0000000005");
    answer_data();
    assert_string_equal(dv_fake_pending(fake), "");
    leave(&o);
    answer_error(0);
    assert_int_equal(o.gone, 1);
    assert_false(dv_fake_is_watched(fake, "/q/kazoo__lock__0000000005"));
}

/* Only its predecessor's node wakes it: a change of that node's data makes it look and wait again, its deletion hold.
 */
TEST(test_woken_by_its_predecessor) {
    owner o;
    const char *before = "/q/x__lock__0000000003";
    enter(&o);
    answer_created(OURS(7), 55);
    ANSWER_CHILDREN("x__lock__0000000003", OWN_NAME(7));
    answer_data();
    assert_false(dv_fake_fire(fake, QUEUE, DV_WATCH_CHILDREN, true));
    assert_true(dv_fake_fire(fake, before, DV_WATCH_CHANGED, true));
    assert_string_equal(dv_fake_pending(fake), "children /q");
    ANSWER_CHILDREN("x__lock__0000000003", OWN_NAME(7));
    assert_string_equal(dv_fake_pending(fake), "get! /q/x__lock__0000000003");
    answer_data();
    assert_int_equal(o.held, 0);
    assert_true(dv_fake_fire(fake, before, DV_WATCH_DELETED, true));
    assert_string_equal(dv_fake_pending(fake), "children /q");
    ANSWER_CHILDREN(OWN_NAME(7));
    assert_int_equal(o.held, 1);
    assert_string_equal(dv_fake_pending(fake), "");
    leave(&o);
    answer_error(0);
}

/* When the one before the predecessor goes, or the predecessor itself when others stand before it, it waits on. */
TEST(test_waits_for_all_before_it) {
    owner o;
    enter(&o);
    answer_created(OURS(7), 55);
    ANSWER_CHILDREN("x__lock__0000000003", "y__lock__0000000004", OWN_NAME(7));
    answer_data();
    assert_false(dv_fake_fire(fake, "/q/x__lock__0000000003", DV_WATCH_DELETED, false));
    assert_true(dv_fake_fire(fake, "/q/y__lock__0000000004", DV_WATCH_DELETED, true));
    ANSWER_CHILDREN("x__lock__0000000003", OWN_NAME(7));
    assert_int_equal(o.held, 0);
    assert_string_equal(dv_fake_pending(fake), "get! /q/x__lock__0000000003");
    answer_data();
    leave(&o);
    answer_error(0);
}

/* A predecessor that goes between the list and the get is not waited for. */
TEST(test_predecessor_gone_before_the_get) {
    owner o;
    enter(&o);
    answer_created(OURS(7), 55);
    ANSWER_CHILDREN("x__lock__0000000003", OWN_NAME(7));
    answer_error(DIVVY_ENOENT);
    assert_string_equal(dv_fake_pending(fake), "children /q");
    ANSWER_CHILDREN(OWN_NAME(7));
    assert_int_equal(o.held, 1);
    leave(&o);
    answer_error(0);
}

/* A watch that fires before the get's own answer is not forgotten. */
TEST(test_watch_fires_before_the_answer) {
    owner o;
    enter(&o);
    answer_created(OURS(7), 55);
    ANSWER_CHILDREN("x__lock__0000000003", OWN_NAME(7));
    assert_true(dv_fake_fire(fake, "/q/x__lock__0000000003", DV_WATCH_DELETED, false));
    assert_string_equal(dv_fake_pending(fake), "get! /q/x__lock__0000000003");
    answer_data();
    assert_string_equal(dv_fake_pending(fake), "children /q");
    ANSWER_CHILDREN(OWN_NAME(7));
    assert_int_equal(o.held, 1);
    leave(&o);
    answer_error(0);
}

/* Its own node is found missing while the predecessor is read: it looks when the answer has come, and fails. */
TEST(test_own_node_missing_before_the_answer) {
    owner o;
    enter(&o);
    answer_created(OURS(7), 55);
    ANSWER_CHILDREN("x__lock__0000000003", OWN_NAME(7));
    dv_own_node *own = dv_fake_client(fake)->own_nodes;
    own->missing(own, 0);
    assert_string_equal(dv_fake_pending(fake), "get! /q/x__lock__0000000003");
    answer_data();
    assert_string_equal(dv_fake_pending(fake), "children /q");
    ANSWER_CHILDREN("x__lock__0000000003");
    assert_int_equal(o.failed, 1);
    assert_int_equal(o.error, DIVVY_ENOENT);
}

/* A missed watch is made good for on the next connection. */
TEST(test_looks_again_when_connected_again) {
    owner o;
    dv_tree_put(tree, "/q/x__lock__", DV_EPHEMERAL | DV_SEQUENTIAL, NOBODY);
    enter(&o);
    dv_tree_serve_all(tree);
    assert_int_equal(o.held, 0);
    assert_true(dv_fake_is_watched(fake, "/q/x__lock__0000000000"));
    dv_fake_session(fake, DIVVY_SUSPENDED);
    dv_tree_remove(tree, "/q/x__lock__0000000000");
    assert_int_equal(o.held, 0);
    dv_fake_session(fake, DIVVY_CONNECTED);
    dv_tree_serve_all(tree);
    assert_int_equal(o.held, 1);
    assert_int_equal(dv_tree_made(tree), 1);
    leave(&o);
    dv_tree_serve_all(tree);
    assert_int_equal(o.gone, 1);
}

/* --- a new queue ------------------------------------------------------------------------------------------------- */

/* Q9: in a directory that was just made the number 0 is held without a list. */
TEST(test_first_of_all) {
    owner o;
    assert_int_equal(enter_as(&o, QUEUE, &dv_fresh_queue), 0);
    assert_string_equal(dv_fake_pending(fake), "sequential /q/#1__lock__");
    answer_created(OURS(0), 55);
    assert_int_equal(o.held, 1);
    assert_int_equal(dv_contender_token(o.contender), 55);
    assert_string_equal(dv_fake_pending(fake), "");
    leave(&o);
    answer_error(0);
    assert_int_equal(o.gone, 1);
}

/* Q9: any other number says that somebody was there before, so the queue is listed, and waited in. */
TEST(test_second_in_a_new_queue) {
    owner o;
    assert_int_equal(enter_as(&o, QUEUE, &dv_fresh_queue), 0);
    answer_created(OURS(1), 55);
    assert_int_equal(o.held, 0);
    assert_string_equal(dv_fake_pending(fake), "children /q");
    ANSWER_CHILDREN(OWN_NAME(1), "x__lock__0000000000");
    assert_int_equal(o.held, 0);
    assert_string_equal(dv_fake_pending(fake), "get! /q/x__lock__0000000000");
    answer_error(DIVVY_ENOENT);
    ANSWER_CHILDREN(OWN_NAME(1));
    assert_int_equal(o.held, 1);
    leave(&o);
    answer_error(0);
}

/* Q11: its directory is made again with it, so it is the first; the czxid comes with the same answer. */
TEST(test_renewed) {
    owner o;
    dv_reply replies[5] = {{.stat = &(dv_stat){.mzxid = 55}}};
    assert_int_equal(enter_as(&o, QUEUE, &dv_renewed_queue), 0);
    assert_string_equal(dv_fake_pending(fake),
                        "multi [set /q; check /q; delete /q; create /q; sequential /q/#1__lock__]");
    replies[4].path = OURS(0);
    dv_fake_answer_multi(fake, 0, replies);
    assert_int_equal(o.held, 1);
    assert_int_equal(dv_contender_token(o.contender), 55);
    assert_string_equal(dv_fake_pending(fake), "");
    leave(&o);
    answer_error(0);
    assert_int_equal(o.gone, 1);
}

/* Q11: where somebody stands in the queue it stays as it is, and is listed. */
TEST(test_not_renewed) {
    owner o;
    assert_int_equal(enter_as(&o, QUEUE, &dv_renewed_queue), 0);
    dv_fake_answer_multi(fake, DIVVY_ENOTEMPTY, NULL);
    assert_string_equal(dv_fake_pending(fake), "sequential /q/#1__lock__");
    answer_created(OURS(4), 56);
    assert_int_equal(o.held, 0);
    assert_string_equal(dv_fake_pending(fake), "children /q");
    ANSWER_CHILDREN(OWN_NAME(4), "x__lock__0000000003");
    assert_int_equal(o.held, 0);
    assert_string_equal(dv_fake_pending(fake), "get! /q/x__lock__0000000003");
    answer_error(DIVVY_ENOENT);
    ANSWER_CHILDREN(OWN_NAME(4));
    assert_int_equal(o.held, 1);
    leave(&o);
    answer_error(0);
}

/* R1 and Q11: the answer to a renewal that was carried out is lost; the place is found, and its number decides. */
TEST(test_renewal_lost) {
    owner o;
    assert_int_equal(enter_as(&o, QUEUE, &dv_renewed_queue), 0);
    dv_fake_session(fake, DIVVY_SUSPENDED);
    dv_tree_put(tree, "/q/" DV_FAKE_GUID "1__lock__", DV_EPHEMERAL | DV_SEQUENTIAL, DV_FAKE_SESSION);
    dv_fake_session(fake, DIVVY_CONNECTED);
    dv_tree_serve_all(tree);
    assert_int_equal(o.held, 1);
    assert_int_equal(dv_tree_made(tree), 0);
    leave(&o);
    dv_tree_serve_all(tree);
    assert_int_equal(o.gone, 1);
}

/* --- failures --------------------------------------------------------------------------------------------------- */

/* The directory is not there: failed, gone, and nothing more is sent. */
TEST(test_no_directory) {
    owner o;
    enter(&o);
    answer_error(DIVVY_ENOENT);
    assert_int_equal(o.failed, 1);
    assert_int_equal(o.error, DIVVY_ENOENT);
    answer_error(DIVVY_ENOENT);
    assert_int_equal(o.gone, 1);
    assert_string_equal(dv_fake_pending(fake), "");
}

/* Our node has gone from the list, for somebody has deleted it: failed with DIVVY_ENOENT, then gone. */
TEST(test_own_node_vanished) {
    owner o;
    enter(&o);
    answer_created(OURS(7), 55);
    ANSWER_CHILDREN("x__lock__0000000003");
    assert_int_equal(o.failed, 1);
    assert_int_equal(o.error, DIVVY_ENOENT);
    assert_int_equal(o.gone, 1);
    assert_string_equal(dv_fake_pending(fake), "");
}

/* Access denied to the create is told as it is; there is nothing to delete. */
TEST(test_create_denied) {
    owner o;
    enter(&o);
    answer_error(DIVVY_EACCES);
    assert_int_equal(o.error, DIVVY_EACCES);
    answer_error(DIVVY_EACCES);
    assert_int_equal(o.gone, 1);
    assert_string_equal(dv_fake_pending(fake), "");
}

/* Access denied to the list, when our node is there already: failed, and the node is deleted. */
TEST(test_list_denied) {
    owner o;
    enter(&o);
    answer_created(OURS(7), 55);
    answer_error(DIVVY_EACCES);
    assert_int_equal(o.failed, 1);
    assert_int_equal(o.error, DIVVY_EACCES);
    assert_string_equal(dv_fake_pending(fake), "delete /q/#1__lock__0000000007");
    answer_error(0);
    assert_int_equal(o.gone, 1);
}

/* A predecessor that may not be read could not be waited for: failed, and our node is deleted. */
TEST(test_predecessor_denied) {
    owner o;
    enter(&o);
    answer_created(OURS(7), 55);
    ANSWER_CHILDREN("x__lock__0000000003", OWN_NAME(7));
    answer_error(DIVVY_EACCES);
    assert_int_equal(o.failed, 1);
    assert_int_equal(o.error, DIVVY_EACCES);
    assert_int_equal(o.gone, 0);
    assert_string_equal(dv_fake_pending(fake), "delete /q/#1__lock__0000000007");
    answer_error(0);
    assert_int_equal(o.gone, 1);
}

/* Numbers close to the end of the server's count are given up again, and so are negative ones. */
TEST(test_end_of_the_numbers) {
    static const char *const paths[] = {QUEUE "/" DV_FAKE_GUID "1__lock__2146435071",
                                        QUEUE "/" DV_FAKE_GUID "2__lock__2147483647",
                                        QUEUE "/" DV_FAKE_GUID "3__lock__-2147483648"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        owner o;
        enter(&o);
        answer_created(paths[i], 55);
        assert_int_equal(o.failed, 1);
        assert_int_equal(o.error, DIVVY_EEXHAUSTED);
        answer_error(0); /* the list */
        assert_string_equal(dv_fake_oldest(fake)->ops->path, paths[i]);
        assert_int_equal(dv_fake_oldest(fake)->ops->kind, DV_DELETE);
        answer_error(0);
        assert_int_equal(o.gone, 1);
    }
}

/* The number right below the limit is still a place like any other. */
TEST(test_last_number) {
    owner o;
    enter(&o);
    answer_created(QUEUE "/" DV_FAKE_GUID "1__lock__2146435070", 55);
    ANSWER_CHILDREN(DV_FAKE_GUID "1__lock__2146435070", "x__lock__-2147483648", "y__lock__2147483647");
    assert_int_equal(o.held, 1); /* A node behind it in the server's count is not before it. */
    leave(&o);
    answer_error(0);
}

/* A node that may not be deleted is no reason to try for ever. */
TEST(test_delete_denied) {
    owner o;
    enter(&o);
    answer_created(OURS(7), 55);
    ANSWER_CHILDREN(OWN_NAME(7));
    leave(&o);
    answer_error(DIVVY_EACCES);
    assert_int_equal(o.gone, 1);
    assert_int_equal(o.failed, 0);
    assert_string_equal(dv_fake_pending(fake), "");
}

/* Budgets: no room for the node is DIVVY_ELIMIT at once, none for the watch DIVVY_EBUSY until some is given back. */
TEST(test_budgets) {
    owner a, b, c, d;
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    tear_down(state);
    config.ephemeral_path_bytes = 150;
    config.watch_path_bytes = 100;
    fake = dv_fake_open(&config);
    tree = dv_tree_new(fake);
    dv_tree_put(tree, QUEUE, DV_PERSISTENT, 0);
    dv_fake_session(fake, DIVVY_CONNECTED);
    enter(&a); /* "/q/" + 23 + 8 + 11 for the number + 4 = 49 bytes of each */
    enter(&b);
    assert_int_equal(enter_at(&c, QUEUE), DIVVY_EBUSY);
    assert_null(c.contender);
    dv_tree_serve_all(tree);
    assert_int_equal(a.held, 1); /* and no longer needs a watch */
    enter(&c);
    assert_int_equal(enter_at(&d, QUEUE), DIVVY_ELIMIT);
    assert_null(d.contender);
    dv_tree_serve_all(tree);
    leave(&c);
    leave(&a);
    leave(&b);
    dv_tree_serve_all(tree);
    assert_int_equal(a.gone + b.gone + c.gone, 3);
    enter(&d);
    leave(&d);
    dv_tree_serve_all(tree);
    assert_int_equal(d.gone, 1);
}

/* One of several contenders holds at a time, each in turn of its number, and a release wakes one only. */
TEST(test_a_queue) {
    enum { CONTENDERS = 8 };
    owner o[CONTENDERS];
    for (int i = 0; i < CONTENDERS; i++) {
        enter(&o[i]);
        if (i % 3) dv_tree_serve_all(tree);
    }
    dv_tree_serve_all(tree);
    int64_t token = 0;
    for (int i = 0; i < CONTENDERS; i++) {
        for (int j = 0; j < CONTENDERS; j++) assert_int_equal(o[j].held, j <= i);
        assert_true(dv_contender_token(o[i].contender) > token);
        token = dv_contender_token(o[i].contender);
        leave(&o[i]);
        assert_true(dv_tree_serve(tree));
        /* The next one lists; nobody else has anything to ask. */
        if (i + 1 < CONTENDERS) assert_string_equal(dv_fake_pending(fake), "children /q");
        dv_tree_serve_all(tree);
        assert_int_equal(o[i].gone, 1);
    }
}

TEST_EACH(set_up_connected, tear_down);
