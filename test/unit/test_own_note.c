/* Tests of handover/own_note.h, on a scripted backend. SPDX-License-Identifier: Apache-2.0 */
#include "handover/own_note.h"

#include "lib/fake_znode.h"
#include "lib/test.h"

enum { WRITES_MOST = 16 };

static dv_fake *fake;
static dv_own_note *note;
static int settled, gone, told, outcomes[WRITES_MOST];

static void on_settled(void *owner, dv_own_note *which, int64_t now) {
    (void)owner, (void)which, (void)now;
    settled++;
}

static void on_ended(void *owner, dv_own_note *which, int error, int64_t now) {
    (void)owner, (void)which, (void)now;
    assert_true(told < WRITES_MOST);
    outcomes[told++] = error;
}

static void on_gone(void *owner, dv_own_note *which, int64_t now) {
    (void)owner, (void)which, (void)now;
    gone++;
}

static const dv_own_note_events events = {on_settled, on_ended, on_gone, "nothing is written"};

static int set_up(void **state) {
    (void)state;
    fake = dv_fake_open(NULL);
    dv_fake_session(fake, DIVVY_CONNECTED);
    divvy_client *client = dv_fake_client(fake);
    settled = gone = told = 0;
    dv_client_lock(client);
    assert_int_equal(dv_own_note_make(&note, client, "/notes", "n", strdup("0"), &events, &told), 0);
    dv_client_unlock(client);
    dv_fake_run(fake);
    assert_string_equal(dv_fake_pending(fake), "ephemeral /notes/n");
    dv_fake_answer(fake, &(dv_reply){.path = "/notes/n", .stat = &(dv_stat){.czxid = 5}});
    assert_int_equal(settled, 1);
    return 0;
}

static void leave(void) {
    dv_client_lock(dv_fake_client(fake));
    dv_own_note_leave(note, dv_fake_now(fake));
    dv_client_unlock(dv_fake_client(fake));
    dv_fake_run(fake);
}

static int tear_down(void **state) {
    (void)state;
    if (gone == 0) leave();
    for (int most = 20; gone == 0 && dv_fake_oldest(fake) && most > 0; most--) {
        if (dv_fake_oldest(fake)->is_multi) dv_fake_answer_multi(fake, DIVVY_EVERSION, NULL);
        else dv_fake_answer(fake, &(dv_reply){.error = 0});
    }
    assert_int_equal(gone, 1);
    dv_fake_close(fake);
    return 0;
}

static void write(const char *text, const char *path) {
    dv_client_lock(dv_fake_client(fake));
    assert_true(dv_own_note_has_room(note));
    assert_int_equal(dv_own_note_write(note, strdup(text), &path, 1), 0);
    dv_client_unlock(dv_fake_client(fake));
    dv_fake_run(fake);
}

static void write_three(void) {
    write("1", "/a");
    write("2", "/b");
    write("3", "/c");
}

/* Asserts that the oldest request writes that text at that version. */
static void assert_oldest(const char *text, int32_t version) {
    const dv_fake_request *r = dv_fake_oldest(fake);
    assert_non_null(r);
    assert_true(r->is_multi && r->ops[0].kind == DV_SET && r->count == 2);
    assert_int_equal(r->ops[0].version, version);
    assert_memory_equal(r->ops[0].data, text, 1);
}

/* Answers the oldest request: the write was applied. */
static void apply(const char *text, int32_t version, int64_t mzxid) {
    assert_oldest(text, version);
    const dv_reply replies[2] = {{.stat = &(dv_stat){.mzxid = mzxid, .version = version + 1, .mtime_ms = mzxid}}, {0}};
    dv_fake_answer_multi(fake, 0, replies);
}

/* Answers the oldest request: the note was refused with one error, or the node with another. */
static void refuse(const char *text, int32_t version, int of_note, int of_node) {
    assert_oldest(text, version);
    const dv_reply replies[2] = {{.error = of_note}, {.error = of_node}};
    dv_fake_answer_multi(fake, of_note ? of_note : of_node, replies);
}

/* Writes are sent at once, each at the version that the one before leaves, and end in their order. */
TEST(test_line) {
    assert_true(dv_own_note_is_free(note));
    write_three();
    assert_false(dv_own_note_is_free(note));
    apply("1", 0, 10);
    apply("2", 1, 11);
    assert_int_equal(told, 2);
    write("4", "/d");
    apply("3", 2, 12);
    apply("4", 3, 13);
    assert_int_equal(told, 4);
    for (int n = 0; n < told; n++) assert_int_equal(outcomes[n], 0);
    int64_t at_ms;
    assert_int_equal(dv_own_note_written(note, &at_ms), 13);
    assert_int_equal(at_ms, 13);
}

/* No more than a few are under way. */
TEST(test_room) {
    for (int n = 0; n < DV_OWN_NOTE_WRITES; n++) write("1", "/a");
    assert_false(dv_own_note_has_room(note));
    apply("1", 0, 10);
    assert_true(dv_own_note_has_room(note));
}

/* T5: one that failed takes those behind it along: none of them was applied, for the version was never theirs. The next
 * write is made at the version that stands. Mutant note_line_goes_on. */
TEST(test_failure_in_a_line) {
    write_three();
    apply("1", 0, 10);
    refuse("2", 1, 0, DIVVY_ENOENT);
    assert_int_equal(told, 2);
    assert_false(dv_own_note_has_room(note));
    refuse("3", 2, DIVVY_EVERSION, 0);
    assert_int_equal(told, 3);
    assert_int_equal(outcomes[0], 0);
    assert_int_equal(outcomes[1], DIVVY_ENOENT);
    assert_int_equal(outcomes[2], DIVVY_EVERSION);
    assert_true(dv_own_note_is_free(note)); /* The version was ours all the time. */
    write("4", "/d");
    apply("4", 1, 12);
    assert_int_equal(outcomes[3], 0);
}

/* An answer that leaves it open: the write is made again, and what stands behind it waits. A refusal of that, at a
 * version that never came, proves nothing. Mutant note_version_is_proof. */
TEST(test_refused_behind_an_open_one) {
    write_three();
    refuse("1", 0, DIVVY_ENOMEM, DIVVY_ENOMEM);
    assert_false(dv_own_note_has_room(note));
    refuse("2", 1, DIVVY_EVERSION, 0);
    refuse("3", 2, DIVVY_EVERSION, 0);
    assert_int_equal(told, 0);
    apply("1", 0, 10);
    assert_int_equal(told, 1);
    apply("2", 1, 11); /* one at a time */
    assert_int_equal(told, 2);
    apply("3", 2, 12);
    assert_int_equal(told, 3);
    for (int n = 0; n < told; n++) assert_int_equal(outcomes[n], 0);
}

/* All answers are lost with the connection. Writes are sent again one at a time; another version says that one was
 * applied, as only we write. */
TEST(test_lost_answers) {
    write_three();
    dv_fake_session(fake, DIVVY_SUSPENDED);
    assert_false(dv_own_note_has_room(note));
    dv_fake_session(fake, DIVVY_CONNECTED);
    refuse("1", 0, DIVVY_EVERSION, 0); /* It was applied, and so was the second, but not the third. */
    refuse("2", 1, DIVVY_EVERSION, 0);
    apply("3", 2, 12);
    assert_int_equal(told, 3);
    for (int n = 0; n < told; n++) assert_int_equal(outcomes[n], 0);
    write("4", "/d");
    apply("4", 3, 13);
}

/* The first was never applied, and cannot be: then nothing behind it is sent again. */
TEST(test_lost_then_refused) {
    write_three();
    dv_fake_session(fake, DIVVY_SUSPENDED);
    dv_fake_session(fake, DIVVY_CONNECTED);
    refuse("1", 0, 0, DIVVY_ENOENT);
    assert_int_equal(told, 3);
    for (int n = 0; n < told; n++) assert_int_equal(outcomes[n], DIVVY_ENOENT);
    assert_true(dv_own_note_is_free(note));
    write("4", "/d");
    apply("4", 0, 13);
}

/* Somebody else has written it: it is written no more. */
TEST(test_foreign_write) {
    write_three();
    refuse("1", 0, DIVVY_EVERSION, 0);
    refuse("2", 1, DIVVY_EVERSION, 0);
    assert_false(dv_own_note_stands(note));
    refuse("3", 2, DIVVY_EVERSION, 0);
    assert_int_equal(told, 3);
    for (int n = 0; n < told; n++) assert_int_equal(outcomes[n], DIVVY_EVERSION);
}

/* B12: a first attempt that is refused for now has ended, and so have those behind it. */
TEST(test_quota) {
    write_three();
    refuse("1", 0, DIVVY_EQUOTA, DIVVY_EQUOTA);
    assert_int_equal(told, 1);
    refuse("2", 1, DIVVY_EVERSION, 0);
    refuse("3", 2, DIVVY_EVERSION, 0);
    assert_int_equal(told, 3);
    assert_true(dv_own_note_is_free(note));
}

/* A member that leaves in between: all writes end before the note has gone. */
TEST(test_leave) {
    write_three();
    dv_fake_session(fake, DIVVY_SUSPENDED);
    assert_int_equal(told, 0);
    leave();
    assert_int_equal(told, 3);
    for (int n = 0; n < told; n++) assert_int_equal(outcomes[n], DIVVY_ECANCELED);
    assert_int_equal(gone, 0);
    dv_fake_session(fake, DIVVY_CONNECTED);
}

static void make_other(dv_own_note **other) {
    dv_client_lock(dv_fake_client(fake));
    assert_int_equal(dv_own_note_make(other, dv_fake_client(fake), "/notes", "o", strdup("0"), &events, &told), 0);
    dv_client_unlock(dv_fake_client(fake));
    dv_fake_run(fake);
}

static void leave_other(dv_own_note *other) {
    dv_client_lock(dv_fake_client(fake));
    dv_own_note_leave(other, dv_fake_now(fake));
    dv_client_unlock(dv_fake_client(fake));
    dv_fake_run(fake);
}

/* One that is begun without a connection is made with the next one. Until then nothing is tried. */
TEST(test_made_later) {
    dv_own_note *other;
    dv_fake_session(fake, DIVVY_SUSPENDED);
    assert_false(dv_fake_has_timers(fake));
    make_other(&other);
    assert_false(dv_fake_has_timers(fake));
    dv_fake_session(fake, DIVVY_CONNECTED);
    assert_string_equal(dv_fake_pending(fake), "ephemeral /notes/o");
    leave_other(other);
    dv_fake_answer(fake, &(dv_reply){.path = "/notes/o", .stat = &(dv_stat){.czxid = 6}});
    dv_fake_answer(fake, &(dv_reply){0});
    assert_int_equal(gone, 1);
    gone = 0;
}

/* The answer to its create is lost, and it is not there behind the barrier. */
static void lose_create(void) {
    assert_string_equal(dv_fake_pending(fake), "ephemeral /notes/o");
    dv_fake_session(fake, DIVVY_SUSPENDED);
    dv_fake_session(fake, DIVVY_CONNECTED);
    assert_string_equal(dv_fake_pending(fake), "check /");
    dv_fake_answer_multi(fake, 0, &(dv_reply){.error = 0});
    assert_string_equal(dv_fake_pending(fake), "exists /notes/o");
    dv_fake_answer(fake, &(dv_reply){.error = DIVVY_ENOENT});
}

/* Returns whether the next connection looks for what comes late, and deletes it. */
static bool looks_for_late(void) {
    dv_fake_session(fake, DIVVY_SUSPENDED);
    dv_fake_session(fake, DIVVY_CONNECTED);
    if (!dv_fake_oldest(fake)) return false;
    dv_fake_answer_multi(fake, 0, &(dv_reply){.error = 0});
    dv_fake_answer(fake, &(dv_reply){.stat = &(dv_stat){.ephemeral_owner = DV_FAKE_SESSION}});
    assert_string_equal(dv_fake_pending(fake), "delete /notes/o");
    dv_fake_answer(fake, &(dv_reply){0});
    return true;
}

/* R3: what comes late has the name of the note that was made instead. So it is looked for once that has left. */
TEST(test_comes_late) {
    dv_own_note *other;
    make_other(&other);
    lose_create();
    assert_string_equal(dv_fake_pending(fake), "ephemeral /notes/o");
    dv_fake_answer(fake, &(dv_reply){.path = "/notes/o", .stat = &(dv_stat){.czxid = 6}});
    assert_false(looks_for_late());
    leave_other(other);
    dv_fake_answer(fake, &(dv_reply){0});
    assert_true(looks_for_late());
    gone = 0;
}

/* The same where its owner leaves before another is made, and where what came late stands in the way of another. */
TEST(test_left_in_doubt) {
    for (int in_the_way = 0; in_the_way <= 1; in_the_way++) {
        dv_own_note *other;
        make_other(&other);
        if (!in_the_way) leave_other(other);
        lose_create();
        if (in_the_way) dv_fake_answer(fake, &(dv_reply){.error = DIVVY_EEXIST});
        assert_int_equal(gone, 1);
        assert_true(looks_for_late());
        assert_false(looks_for_late());
        gone = 0;
    }
}

/* The session ends. */
TEST(test_session_lost) {
    write_three();
    dv_fake_session(fake, DIVVY_SUSPENDED);
    dv_fake_session(fake, DIVVY_LOST);
    assert_int_equal(told, 3);
    for (int n = 0; n < told; n++) assert_true(outcomes[n] < 0);
}

TEST_EACH(set_up, tear_down);
