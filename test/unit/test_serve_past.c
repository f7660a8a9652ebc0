/* What divvy serve says of a pool's items: their states now, and who owned what at a moment.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "divvy/serve_overview.h"
#include "divvy/serve_past.h"
#include "lib/test.h"

enum { START_MS = 1000000 };

static dv_serve_pool pool;

static int set_up(void **state) {
    (void)state;
    return dv_serve_pool_init(&pool, "/pool");
}

static int tear_down(void **state) {
    (void)state;
    dv_serve_pool_free(&pool);
    return 0;
}

static char *text(const char *constant) {
    return (char *)(uintptr_t)constant; /* Nobody writes it. */
}

/* Has the pool read as "item=owner" words; "item=" is an item that nobody owns, "item=owner!" one that its owner has
 * taken again. Owners are strangers, but for the static member `restarted`, which has a node of that number. */
static void read_pool(int64_t ms, const char *words, int restarted) {
    static int64_t token, pzxid;
    char *copy = strdup(words), *rest = copy, node[32];
    dv_status_item items[8];
    size_t count = 0;
    snprintf(node, sizeof node, "node-%d", restarted);
    dv_status_member member = {
        .node = node, .identifier = "m", .host = text("h"), .since = text(""), .pid = restarted, .is_static = true};
    for (char *word = strtok_r(rest, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        char *owner = strchr(word, '=');
        *owner++ = '\0';
        items[count] = (dv_status_item){
            .name = word, .node = word, .there = true, .member = DV_NO_MEMBER, .made_ms = 77, .pzxid = ++pzxid};
        if (*owner) {
            items[count].head = items[count].owner = owner;
            items[count].session = 1;
            items[count].token = strcmp(owner, "m") == 0 ? ++token : 1;
            if (strcmp(owner, "m") == 0) items[count].member = 0;
        }
        count++;
    }
    dv_status status = {.path = "/pool",
                        .found = true,
                        .items = items,
                        .item_count = count,
                        .members = &member,
                        .member_count = restarted ? 1 : 0,
                        .read_at_ms = ms};
    assert_int_equal(dv_serve_pool_apply(&pool, &status, true, 0), 0);
    dv_serve_pool_settle(&pool);
    free(copy);
}

/* Asserts who owned what at a moment, as words of "item=owner". */
static void assert_was(int64_t at_ms, const char *words) {
    char told[200] = "";
    dv_serve_past past;
    assert_int_equal(dv_serve_past_init(&past, &pool, at_ms), 0);
    for (size_t i = 0; i < past.count; i++) {
        const dv_serve_past_item *item = &past.items[i];
        size_t used = strlen(told);
        snprintf(told + used, sizeof told - used, "%s%s=%s", used ? " " : "", item->name,
                 item->owner ? item->owner : "");
        assert_string_equal(dv_serve_past_state(item), item->owner ? "owned" : "unowned");
    }
    assert_string_equal(told, words);
    dv_serve_past_free(&past);
}

static int64_t since_of(int64_t at_ms, const char *name) {
    dv_serve_past past;
    int64_t since_ms = -1;
    assert_int_equal(dv_serve_past_init(&past, &pool, at_ms), 0);
    for (size_t i = 0; i < past.count; i++) {
        if (strcmp(past.items[i].name, name) == 0) since_ms = past.items[i].since_ms;
    }
    dv_serve_past_free(&past);
    return since_ms;
}

/* ---- the past ---- */

/* Each moment since the first look is known, up to now and beyond. Of one before it the first is told. */
TEST_IN(test_moments, set_up, tear_down) {
    assert_int_equal(dv_serve_past_oldest_ms(&pool), 0);
    assert_was(START_MS, "");
    read_pool(START_MS, "x=a y=b z=", 0);
    read_pool(START_MS + 10, "x= y=b z=", 0);
    read_pool(START_MS + 20, "x=b y=b z=c", 0);
    read_pool(START_MS + 30, "x=b y=a z=", 0);
    assert_int_equal(dv_serve_past_oldest_ms(&pool), START_MS);
    assert_was(START_MS - 1, "x=a y=b z=");
    assert_was(START_MS, "x=a y=b z=");
    assert_was(START_MS + 9, "x=a y=b z=");
    assert_was(START_MS + 10, "x= y=b z=");
    assert_was(START_MS + 20, "x=b y=b z=c");
    assert_was(START_MS + 29, "x=b y=b z=c");
    assert_was(START_MS + 30, "x=b y=a z=");
    assert_was(INT64_MAX, "x=b y=a z=");
    /* Since when it was so is known where the change before is, or where none came since. */
    assert_int_equal(since_of(START_MS + 15, "x"), START_MS + 10);
    assert_int_equal(since_of(START_MS + 25, "x"), START_MS + 20);
    assert_int_equal(since_of(START_MS + 5, "x"), 0);
    read_pool(START_MS + 40, "x=b y=a z=", 0);
    assert_int_equal(since_of(START_MS + 45, "y"), START_MS + 30);
}

/* An item that came since was not there, and one that went since was; owned or not, and each as often as it came. */
TEST_IN(test_came_and_went, set_up, tear_down) {
    read_pool(START_MS, "a=m1 free=", 0);
    read_pool(START_MS + 10, "a=m1 free= new=", 0);
    read_pool(START_MS + 20, "new=m1", 0);
    read_pool(START_MS + 30, "a=m2 new=m1", 0);
    read_pool(START_MS + 40, "new=m1", 0);
    assert_was(START_MS, "a=m1 free=");
    assert_was(START_MS + 10, "a=m1 free= new=");
    assert_was(START_MS + 20, "new=m1");
    assert_was(START_MS + 30, "a=m2 new=m1");
    assert_was(START_MS + 40, "new=m1");
}

/* A static member that restarts has its items before and after; that it took an item again changes nothing either. */
TEST_IN(test_restarts, set_up, tear_down) {
    read_pool(START_MS, "x=m y=", 1);
    read_pool(START_MS + 10, "x=m y=m", 1);
    read_pool(START_MS + 20, "x=m y=", 2);
    bool restarted = false;
    for (size_t i = 0; i < pool.history.count; i++) {
        const dv_serve_event *e = dv_serve_history_event(&pool.history, i);
        restarted = restarted || (e->kind == DV_SERVE_RESTARTED && e->from && strcmp(e->from, e->to) == 0);
    }
    assert_true(restarted);
    read_pool(START_MS + 30, "x=b y=", 2);
    assert_int_equal(since_of(START_MS + 25, "x"), START_MS + 20);
    assert_was(START_MS, "x=m y=");
    assert_was(START_MS + 10, "x=m y=m");
    assert_was(START_MS + 20, "x=m y=");
    assert_was(START_MS + 30, "x=b y=");
}

/* Names of members are no items: an item of the name of a member that came is as it was. */
TEST_IN(test_names_of_members, set_up, tear_down) {
    read_pool(START_MS, "m=a", 0);
    read_pool(START_MS + 10, "m=a", 1);
    read_pool(START_MS + 20, "m=a", 2);
    assert_true(pool.history.count > 0);
    assert_was(START_MS, "m=a");
}

/* What the events no longer tell is not known; from the last one that went on all is, and that is told instead. */
TEST_IN(test_dropped_events, set_up, tear_down) {
    char words[32];
    for (int i = 0; i <= DV_SERVE_EVENTS_MAX + 5; i++) {
        snprintf(words, sizeof words, "x=o%d", i);
        read_pool(START_MS + i, words, 0);
    }
    /* The first look is no event, so 5 of them went. */
    assert_int_equal(dv_serve_past_oldest_ms(&pool), START_MS + 5);
    assert_was(START_MS + 4, "x=o5");
    assert_was(START_MS + 5, "x=o5");
    assert_was(START_MS + 6, "x=o6");
    assert_was(START_MS + 19999, "x=o19999");
}

/* ---- states ---- */

/* An item has one state: whether somebody holds it comes first. */
TEST(test_item_states) {
    dv_serve_member live = {.live = true}, other = {.live = true}, away = {.live = false};
    const struct {
        bool held;
        dv_serve_member *owner, *next;
        const char *state;
        bool moving;
    } cases[] = {
        {false, NULL, NULL, "unowned", false},  {false, NULL, &live, "unowned", false},
        {false, NULL, &away, "kept", false},    {true, &live, NULL, "owned", false},
        {true, &live, &live, "owned", false},   {true, &live, &away, "owned", false},
        {true, &live, &other, "moving", true},  {true, NULL, &other, "moving", true},
        {true, NULL, &away, "stranger", false}, {true, NULL, NULL, "stranger", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        dv_serve_item item = {.held = cases[i].held, .owner = cases[i].owner, .next = cases[i].next};
        assert_string_equal(dv_serve_item_state(&item), cases[i].state);
        assert_int_equal(dv_serve_item_is_moving(&item), cases[i].moving);
    }
}

/* A pool's state is the first of these that holds. */
TEST(test_pool_states) {
    dv_serve_pool some = {.counts = {.found = false}};
    assert_string_equal(dv_serve_pool_state(&some, NULL), "reading");
    some.read_at_ms = START_MS;
    assert_string_equal(dv_serve_pool_state(&some, NULL), "absent");
    some.counts.found = true;
    assert_string_equal(dv_serve_pool_state(&some, NULL), "well");
    some.counts.moving = 1;
    assert_string_equal(dv_serve_pool_state(&some, NULL), "moving");
    some.counts.unowned = 1;
    assert_string_equal(dv_serve_pool_state(&some, NULL), "unowned");
    assert_string_equal(dv_serve_pool_state(&some, "why"), "trouble");
    some.trouble = "why";
    assert_string_equal(dv_serve_pool_state(&some, NULL), "trouble");
}
