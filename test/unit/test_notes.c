/* Tests of handover/notes.h, on a scripted backend. SPDX-License-Identifier: Apache-2.0 */
#include "handover/notes.h"

#include "lib/fake_znode.h"
#include "lib/test.h"

static dv_fake *fake;
static dv_notes *notes;
static int told;

static void changed(void *owner, dv_note_view *view, int64_t now) {
    (void)view, (void)now;
    assert_ptr_equal(owner, &told);
    told++;
}

/* Room for one watch, in the half of the budget that notes may use. */
static int set_up(void **state) {
    (void)state;
    fake = dv_fake_open(NULL);
    dv_fake_session(fake, DIVVY_CONNECTED);
    divvy_client *client = dv_fake_client(fake);
    client->watched.limit_bytes = 2 * dv_path_cost("/notes/a");
    told = 0;
    notes = dv_notes_new(client, "/notes", changed, &told);
    assert_non_null(notes);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    divvy_client *client = dv_fake_client(fake);
    dv_client_lock(client);
    dv_notes_free(notes);
    dv_client_unlock(client);
    dv_fake_session(fake, DIVVY_SUSPENDED); /* The answers that are under way are lost, which frees what waits. */
    assert_int_equal(client->watched.used_bytes, 0);
    dv_fake_close(fake);
    return 0;
}

static dv_note_view *want(const char *node) {
    dv_client_lock(dv_fake_client(fake));
    dv_note_view *view = dv_notes_want(notes, node);
    dv_client_unlock(dv_fake_client(fake));
    assert_non_null(view);
    return view;
}

static void connect_again(void) {
    dv_fake_session(fake, DIVVY_SUSPENDED);
    dv_fake_session(fake, DIVVY_CONNECTED);
    dv_client_lock(dv_fake_client(fake));
    dv_notes_connected(notes);
    dv_client_unlock(dv_fake_client(fake));
}

static void answer_absent(void) {
    dv_fake_answer(fake, &(dv_reply){.error = DIVVY_ENOENT});
}

/* A read that fails leaves no watch: a note that is absent keeps no room from others. */
TEST(test_absent_keeps_no_room) {
    dv_note_view *a = want("a");
    assert_string_equal(dv_fake_pending(fake), "get! /notes/a");
    answer_absent();
    assert_int_equal(a->standing, DV_NOTE_ABSENT);
    assert_int_equal(told, 1);
    assert_int_equal(dv_fake_client(fake)->watched.used_bytes, 0);
    assert_int_equal(want("b")->standing, DV_NOTE_UNREAD);
    assert_string_equal(dv_fake_pending(fake), "get! /notes/b");
}

/* What cannot be parsed was read all the same, and its watch tells of a better one. */
TEST(test_unreadable_keeps_its_room) {
    dv_note_view *a = want("a");
    dv_fake_answer(fake, &(dv_reply){.data = "?", .data_bytes = 1, .stat = &(dv_stat){.mzxid = 7}});
    assert_int_equal(a->standing, DV_NOTE_ABSENT);
    assert_int_equal(dv_fake_client(fake)->watched.used_bytes, dv_path_cost("/notes/a"));
    assert_true(dv_fake_fire(fake, "/notes/a", DV_WATCH_CHANGED, true));
    assert_string_equal(dv_fake_pending(fake), "get! /notes/a");
}

/* D44: a note is as old as its last write. What stands in one that was only made may have been given before. */
TEST(test_written) {
    static const char text[] = "{\"v\":1,\"set\":{\"count\":1,\"crc\":\"00000000\",\"hash\":\"0000000000000000\"},"
                               "\"leaving\":[],\"ready\":[],\"given\":[]}";
    dv_note_view *a = want("a");
    for (int version = 0; version < 3; version++) {
        const dv_stat stat = {.mzxid = 7 + version, .version = version, .mtime_ms = 1000 + version};
        dv_fake_answer(fake, &(dv_reply){.data = text, .data_bytes = sizeof text - 1, .stat = &stat});
        assert_int_equal(a->standing, DV_NOTE_THERE);
        assert_int_equal(a->written_ms, version > 0 ? 1000 + version : 0);
        assert_true(dv_fake_fire(fake, "/notes/a", DV_WATCH_CHANGED, true));
    }
}

/* Without room a note counts as absent, and is read on the next connection, if there is room by then. */
TEST(test_room_at_last) {
    want("a");
    dv_note_view *b = want("b");
    assert_int_equal(b->standing, DV_NOTE_ABSENT);
    assert_string_equal(dv_fake_pending(fake), "get! /notes/a");
    connect_again();
    assert_string_equal(dv_fake_pending(fake), "get! /notes/a");
    answer_absent();
    connect_again();
    assert_int_equal(dv_fake_client(fake)->watched.used_bytes, dv_path_cost("/notes/b"));
}

TEST_EACH(set_up, tear_down);
