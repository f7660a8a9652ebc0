/* Tests of recipe/contender.h, on a scripted backend. SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/fake_tree.h"
#include "recipe/contender.h"

#define QUEUE "/q"
#define OURS(sequence) QUEUE "/" DV_FAKE_GUID "1__lock__000000000" #sequence
#define NOBODY 77 /* a session of somebody else */

static dv_fake *fake;
static dv_tree *tree;

/* What a contender's owner has heard. */
typedef struct {
    dv_contender *contender; /* NULL once gone */
    int held, failed, gone, error;
    bool held_after_loss, is_lost;
} owner;

static void on_held(void *context, dv_contender *contender, int64_t now) {
    owner *o = context;
    (void)now;
    assert_ptr_equal(contender, o->contender);
    assert_int_equal(o->failed + o->gone, 0);
    if (o->is_lost) o->held_after_loss = true;
    o->held++;
}

static void on_failed(void *context, dv_contender *contender, int error, int64_t now) {
    owner *o = context;
    (void)now;
    assert_ptr_equal(contender, o->contender);
    assert_int_equal(o->failed + o->gone, 0);
    o->failed++;
    o->error = error;
}

static void on_gone(void *context, dv_contender *contender, int64_t now) {
    owner *o = context;
    (void)now;
    assert_ptr_equal(contender, o->contender);
    o->gone++;
    o->contender = NULL;
}

static const dv_contender_events events = {on_held, on_failed, on_gone};

static int enter_at(owner *o, const char *directory) {
    *o = (owner){.contender = NULL};
    dv_turn_begin(dv_fake_client(fake));
    int error =
        dv_contender_enter(&o->contender, dv_fake_client(fake), directory, &dv_exclusive_queue, "me", &events, o);
    dv_turn_end(dv_fake_client(fake));
    return error;
}

static void enter(owner *o) {
    assert_int_equal(enter_at(o, QUEUE), 0);
}

static void leave(owner *o) {
    dv_turn_begin(dv_fake_client(fake));
    dv_contender_leave(o->contender);
    dv_turn_end(dv_fake_client(fake));
    dv_fake_run(fake);
}

static int set_up(void **state) {
    (void)state;
    fake = dv_fake_open(NULL);
    tree = dv_tree_new(fake);
    dv_tree_put(tree, QUEUE, DV_PERSISTENT, 0);
    return 0;
}

static int set_up_connected(void **state) {
    set_up(state);
    dv_fake_session(fake, DIVVY_CONNECTED);
    return 0;
}

/* Nothing of any contender may be left: no room that it took, no listener, no timer. */
static int tear_down(void **state) {
    (void)state;
    divvy_client *client = dv_fake_client(fake);
    bool clean = client->ephemeral_count == 0 && client->ephemerals.used_bytes == 0 &&
                 client->watched.used_bytes == 0 && !client->listeners;
    dv_fake_close(fake);
    dv_tree_free(tree);
    return clean ? 0 : -1;
}

static void answer_created(const char *path, int64_t czxid) {
    dv_fake_answer(fake, &(dv_reply){.path = path, .stat = &(dv_stat){.czxid = czxid}});
}

static void answer_children(const char *const *names, size_t count) {
    dv_fake_answer(fake, &(dv_reply){.children = names, .child_count = count, .stat = &(dv_stat){.pzxid = 1}});
}

static void answer_error(int error) {
    dv_fake_answer(fake, &(dv_reply){.error = error});
}

static void answer_data(void) {
    dv_fake_answer(fake, &(dv_reply){.data = "", .stat = &(dv_stat){.czxid = 1}});
}

#define ANSWER_CHILDREN(...)                                       \
    do {                                                           \
        const char *const names_[] = {__VA_ARGS__};                \
        answer_children(names_, sizeof names_ / sizeof names_[0]); \
    } while (0)
#define OWN_NAME(sequence) DV_FAKE_GUID "1__lock__000000000" #sequence

/* --- entering and waiting, answer by answer --------------------------------------------------------------------- */

/* The create and the list are both under way before either is answered, in this order, and a free queue is held. */
static void test_create_and_list_go_back_to_back(void **state) {
    (void)state;
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
static void test_many_enter_in_one_turn(void **state) {
    (void)state;
    owner a, b;
    dv_tree_put(tree, "/r", DV_PERSISTENT, 0);
    a = b = (owner){.contender = NULL};
    divvy_client *client = dv_fake_client(fake);
    dv_turn_begin(client);
    assert_int_equal(dv_contender_enter(&a.contender, client, QUEUE, &dv_exclusive_queue, "me", &events, &a), 0);
    assert_int_equal(dv_contender_enter(&b.contender, client, "/r", &dv_exclusive_queue, "me", &events, &b), 0);
    assert_string_equal(dv_fake_pending(fake), ""); /* Not before the turn ends. */
    dv_turn_end(client);
    assert_string_equal(dv_fake_pending(fake),
                        "multi [sequential /q/#1__lock__; sequential /r/#2__lock__], children /q, children /r");
    dv_tree_serve_all(tree);
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
static void test_watches_its_predecessor_only(void **state) {
    (void)state;
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
static void test_woken_by_its_predecessor(void **state) {
    (void)state;
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
static void test_waits_for_all_before_it(void **state) {
    (void)state;
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
static void test_predecessor_gone_before_the_get(void **state) {
    (void)state;
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
static void test_watch_fires_before_the_answer(void **state) {
    (void)state;
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

/* A missed watch is made good for on the next connection. */
static void test_looks_again_when_connected_again(void **state) {
    (void)state;
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

/* --- failures --------------------------------------------------------------------------------------------------- */

/* The directory is not there: failed, gone, and nothing more is sent. */
static void test_no_directory(void **state) {
    (void)state;
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
static void test_own_node_vanished(void **state) {
    (void)state;
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
static void test_create_denied(void **state) {
    (void)state;
    owner o;
    enter(&o);
    answer_error(DIVVY_EACCES);
    assert_int_equal(o.error, DIVVY_EACCES);
    answer_error(DIVVY_EACCES);
    assert_int_equal(o.gone, 1);
    assert_string_equal(dv_fake_pending(fake), "");
}

/* Access denied to the list, when our node is there already: failed, and the node is deleted. */
static void test_list_denied(void **state) {
    (void)state;
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
static void test_predecessor_denied(void **state) {
    (void)state;
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
static void test_end_of_the_numbers(void **state) {
    (void)state;
    static const char *const paths[] = {QUEUE "/" DV_FAKE_GUID "1__lock__2146435071",
                                        QUEUE "/" DV_FAKE_GUID "2__lock__2147483647",
                                        QUEUE "/" DV_FAKE_GUID "3__lock__-2147483648"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        owner o;
        enter(&o);
        answer_created(paths[i], 55);
        assert_int_equal(o.failed, 1);
        assert_int_equal(o.error, DIVVY_ELIMIT);
        answer_error(0); /* the list */
        assert_string_equal(dv_fake_oldest(fake)->ops->path, paths[i]);
        assert_int_equal(dv_fake_oldest(fake)->ops->kind, DV_DELETE);
        answer_error(0);
        assert_int_equal(o.gone, 1);
    }
}

/* The number right below the limit is still a place like any other. */
static void test_last_number(void **state) {
    (void)state;
    owner o;
    enter(&o);
    answer_created(QUEUE "/" DV_FAKE_GUID "1__lock__2146435070", 55);
    ANSWER_CHILDREN(DV_FAKE_GUID "1__lock__2146435070", "x__lock__-2147483648", "y__lock__2147483647");
    assert_int_equal(o.held, 1); /* What comes behind it in the server's count is not before it. */
    leave(&o);
    answer_error(0);
}

/* A node that may not be deleted is no reason to try for ever. */
static void test_delete_denied(void **state) {
    (void)state;
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
static void test_budgets(void **state) {
    (void)state;
    owner a, b;
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    tear_down(state);
    config.ephemeral_path_bytes = 120;
    config.watch_path_bytes = 60;
    fake = dv_fake_open(&config);
    tree = dv_tree_new(fake);
    dv_tree_put(tree, QUEUE, DV_PERSISTENT, 0);
    dv_fake_session(fake, DIVVY_CONNECTED);
    enter(&a); /* "/q/" + 23 + 8 + 11 for the number + 4 = 49 bytes of each */
    assert_int_equal(enter_at(&b, QUEUE), DIVVY_EBUSY);
    assert_null(b.contender);
    dv_tree_serve_all(tree);
    assert_int_equal(a.held, 1); /* and no longer needs a watch */
    enter(&b);
    owner c;
    assert_int_equal(enter_at(&c, QUEUE), DIVVY_ELIMIT);
    assert_null(c.contender);
    dv_tree_serve_all(tree);
    leave(&a);
    leave(&b);
    dv_tree_serve_all(tree);
    assert_int_equal(a.gone + b.gone, 2);
    enter(&c);
    leave(&c);
    dv_tree_serve_all(tree);
    assert_int_equal(c.gone, 1);
}

/* --- lost replies ----------------------------------------------------------------------------------------------- */

/* A lost answer to the create is resolved by a barrier, answered before anything is read; a node that is not there
 * then never will be, and the new attempt has a new name. */
static void test_lost_create_not_applied(void **state) {
    (void)state;
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
static void test_lost_create_applied(void **state) {
    (void)state;
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
static void test_barrier_refused_and_lost(void **state) {
    (void)state;
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
static void test_lost_create_of_another_owner(void **state) {
    (void)state;
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
static void test_lost_delete(void **state) {
    (void)state;
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
static void test_leave_while_creating(void **state) {
    (void)state;
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
static void test_leave_offline(void **state) {
    (void)state;
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
static void test_leave_while_resolving(void **state) {
    (void)state;
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
    }
}

/* Once it was told to leave, it tells no failure. */
static void test_fails_while_leaving(void **state) {
    (void)state;
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
static void test_abandoned(void **state) {
    for (int stage = 0; stage < 6; stage++) {
        owner o;
        if (stage) set_up_connected(state);
        if (stage % 2) dv_tree_put(tree, "/q/x__lock__", DV_EPHEMERAL | DV_SEQUENTIAL, NOBODY);
        enter(&o);
        for (int i = 0; i < stage; i++) dv_tree_serve(tree);
        if (stage == 5) leave(&o);
        bool under_way = dv_fake_oldest(fake) != NULL;
        divvy_client *client = dv_fake_client(fake);
        dv_turn_begin(client);
        client->znode->backend->abandon(client->znode, DIVVY_ECANCELED, dv_fake_now(fake));
        dv_turn_end(client);
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
    dv_turn_begin(dv_fake_client(fake));
    dv_contender_verify(o->contender);
    dv_turn_end(dv_fake_client(fake));
    dv_fake_run(fake);
}

/* A holder that is asked to looks for its node: nothing is told while that is there, or the answer is lost; that it has
 * gone is told as DIVVY_ENOENT, and nothing is deleted then. */
static void test_verify(void **state) {
    (void)state;
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
static void test_leave_while_verifying(void **state) {
    (void)state;
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

/* Whatever happens after whatever number of answers, it is gone exactly once, holds nothing after its session ended,
 * and leaves no node behind; links that break between the steps and writes that arrive late included. */
static void test_faults_in_every_stage(void **state) {
    (void)state;
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
static void test_two_faults_in_every_stage(void **state) {
    (void)state;
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
static void test_names_are_never_reused(void **state) {
    (void)state;
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
        if (!dv_fake_oldest(fake)) { /* A late write was found: that place is taken; take another one. */
            leave(&o);
            dv_tree_serve_all(tree);
            enter(&o);
        }
    }
    leave(&o);
    dv_tree_serve_all(tree);
    assert_int_equal(dv_tree_owned(tree, NULL), 0);
}

/* Of several contenders one holds at a time, each in turn of its number, and a release wakes one only. */
static void test_a_queue(void **state) {
    (void)state;
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

int main(void) {
#define CONNECTED(test) cmocka_unit_test_setup_teardown(test, set_up_connected, tear_down)
    const struct CMUnitTest tests[] = {
        CONNECTED(test_create_and_list_go_back_to_back),
        CONNECTED(test_many_enter_in_one_turn),
        CONNECTED(test_watches_its_predecessor_only),
        CONNECTED(test_woken_by_its_predecessor),
        CONNECTED(test_waits_for_all_before_it),
        CONNECTED(test_predecessor_gone_before_the_get),
        CONNECTED(test_watch_fires_before_the_answer),
        CONNECTED(test_looks_again_when_connected_again),
        CONNECTED(test_no_directory),
        CONNECTED(test_own_node_vanished),
        CONNECTED(test_create_denied),
        CONNECTED(test_list_denied),
        CONNECTED(test_predecessor_denied),
        CONNECTED(test_end_of_the_numbers),
        CONNECTED(test_last_number),
        CONNECTED(test_delete_denied),
        CONNECTED(test_budgets),
        CONNECTED(test_lost_create_not_applied),
        CONNECTED(test_lost_create_applied),
        CONNECTED(test_barrier_refused_and_lost),
        CONNECTED(test_lost_create_of_another_owner),
        CONNECTED(test_lost_delete),
        CONNECTED(test_leave_while_creating),
        CONNECTED(test_leave_offline),
        CONNECTED(test_leave_while_resolving),
        CONNECTED(test_fails_while_leaving),
        CONNECTED(test_abandoned),
        CONNECTED(test_verify),
        CONNECTED(test_leave_while_verifying),
        cmocka_unit_test(test_faults_in_every_stage),
        cmocka_unit_test(test_two_faults_in_every_stage),
        CONNECTED(test_names_are_never_reused),
        CONNECTED(test_a_queue),
    };
    return cmocka_run_group_tests_name("contender", tests, NULL, NULL);
}
