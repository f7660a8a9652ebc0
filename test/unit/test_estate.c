/* Tests of znode/apache/estate.h: the nodes that a client may leave on a host's session (H6).
 * SPDX-License-Identifier: Apache-2.0 */
#include "znode/apache/estate.h"

#include "lib/test.h"

static dv_apache apache;

static int set_up(void **state) {
    (void)state;
    apache = (dv_apache){.znode.attached = true};
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    dv_estate_forget(&apache);
    return 0;
}

static const dv_op place = {
    .kind = DV_CREATE, .path = "/q/guid__lock__", .data = "", .mode = DV_EPHEMERAL | DV_SEQUENTIAL};

/* Returns whether a create that ends so leaves something to look for. Of the session's end only this side may know, by
 * its clock or for a reason of its own, while the host's session goes on. */
static bool leaves(int error) {
    dv_estate_note_create(&apache, &place, error, NULL);
    bool noted = apache.left_behind != NULL;
    dv_estate_forget(&apache);
    return noted;
}

TEST(test_unanswered) {
    static const int open[] = {DIVVY_ECONNECTION, DIVVY_ENOMEM, DIVVY_ECANCELED, DIVVY_ELOST, DIVVY_EAUTH};
    for (size_t i = 0; i < sizeof open / sizeof open[0]; i++) assert_true(leaves(open[i]));
    assert_true(leaves(dv_answer_error(ZRUNTIMEINCONSISTENCY)));
    assert_true(leaves(dv_answer_error(-4711)));
}

/* What a server has refused does not stand: a client that a quota keeps waiting does not collect its attempts. */
TEST(test_refused) {
    static const int refused[] = {DIVVY_ENOENT, DIVVY_EACCES, DIVVY_EROLLEDBACK, DIVVY_E2BIG};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) assert_false(leaves(refused[i]));
    assert_false(leaves(dv_answer_error(-125))); /* QUOTAEXCEEDED */
    assert_false(leaves(dv_answer_error(-127))); /* THROTTLEDOP */
    assert_false(leaves(dv_answer_error(-120))); /* EPHEMERALONLOCALSESSION */
}

/* A place that is deleted is forgotten, with the attempt whose answer had not come. */
TEST(test_deleted) {
    dv_estate_note_create(&apache, &place, DIVVY_ECONNECTION, NULL);
    dv_estate_note_create(&apache, &place, 0, "/q/guid__lock__0000000007");
    dv_estate_note_delete(&apache, "/q/guid__lock__0000000007", DIVVY_ECONNECTION);
    assert_non_null(apache.left_behind);
    dv_estate_note_delete(&apache, "/q/guid__lock__0000000007", DIVVY_ENOENT);
    assert_null(apache.left_behind);
}

TEST_EACH(set_up, tear_down);
