/* How full sessions are, as status and doctor say it. SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "divvy/status_room.h"
#include "lib/test.h"

/* 2 members of one process, and one of another; all have the same place names. */
enum { MEMBERS = 3 };
static dv_status_member members[MEMBERS];
static dv_status_entry entries[MEMBERS];
static dv_status status = {.members = members, .member_count = MEMBERS};

static void begin(size_t held, size_t planned) {
    static char here[] = "here", there[] = "there";
    for (size_t i = 0; i < MEMBERS; i++) {
        entries[i] = (dv_status_entry){.member = i, .item_count = planned};
        members[i] =
            (dv_status_member){.identifier = "m", .host = i < 2 ? here : there, .pid = 7, .entry = &entries[i]};
    }
    members[0].item_count = held;
}

/* Returns the line about the pool, to be freed. */
static char *line(void) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *to = open_memstream(&text, &bytes);
    dv_status_room_print(&status, to);
    fclose(to);
    return text;
}

/* The path of each place counts, with its 4 bytes and one for a sign; what nobody owns, or a stranger, does not. */
TEST(test_count) {
    static char node[] = "item", head[] = "0123456789__lock__0000000000";
    dv_status_item items[] = {{.node = node, .head = head, .member = 0},
                              {.node = node, .head = head, .member = 2},
                              {.node = node, .head = head, .member = 0},
                              {.node = node, .head = NULL, .member = DV_NO_MEMBER},
                              {.node = node, .head = head, .member = DV_NO_MEMBER}};
    begin(2, 2);
    status.items = items;
    status.item_count = 5;
    dv_status_room_count(&status, strlen("/chroot/q"));
    size_t each = strlen("/chroot/q/locks/item/0123456789__lock__0000000000") + 5;
    assert_int_equal(members[0].path_bytes, 2 * each);
    assert_int_equal(members[1].path_bytes, 0);
    assert_int_equal(members[2].path_bytes, each);
    dv_status_room_count(&status, strlen("/chroot/q"));
    assert_int_equal(members[0].path_bytes, 2 * each);
    status.item_count = 0;
}

/* A session is full when it lacks items of its share, and has no room for the next one. */
TEST(test_short) {
    begin(13320, 20000);
    members[0].path_bytes = 1048400;
    assert_int_equal(dv_status_room_short(&members[0]), 6680);
    members[0].path_bytes = 900000; /* it has room: something else is why */
    assert_int_equal(dv_status_room_short(&members[0]), 0);
    begin(13320, 13320);
    members[0].path_bytes = 1048400;
    assert_int_equal(dv_status_room_short(&members[0]), 0);
    members[0].entry = NULL; /* no plan */
    assert_int_equal(dv_status_room_short(&members[0]), 0);
    begin(0, 5); /* no session could hold such names */
    assert_int_equal(dv_status_room_short(&members[0]), 0);
}

/* The line says what helps. A process that has two sessions already is told twice as many as its share takes. */
TEST(test_line) {
    begin(13000, 13000);
    char *nothing = line();
    assert_string_equal(nothing, "");
    free(nothing);
    begin(13320, 20000);
    members[0].path_bytes = 1048400;
    assert_int_equal(dv_status_room_sessions(&status, &members[0]), 4);
    char *one = line();
    assert_non_null(strstr(one, "full: the session of m holds 13320 of the 20000 items of its share"));
    assert_non_null(strstr(one, "--sessions 4;"));
    assert_null(strstr(one, "in all"));
    free(one);
    members[2].item_count = 10000;
    members[2].path_bytes = 1048400;
    assert_int_equal(dv_status_room_sessions(&status, &members[2]), 2);
    char *two = line();
    assert_non_null(strstr(two, "so it is with 2 members and 16680 items in all"));
    free(two);
    members[0].pid = members[1].pid = 0; /* not told */
    assert_int_equal(dv_status_room_sessions(&status, &members[0]), 2);
}
