/* The doctor of the page judges a copy of what is followed. SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <divvy/divvy.h>

#include "divvy/serve_snapshot.h"
#include "lib/test.h"

enum { MEMBERS = 1000, ITEMS = 100000 };

static char *numbered(const char *kind, int number) {
    char *text = NULL;
    assert_true(asprintf(&text, "%s-%06d", kind, number) > 0);
    return text;
}

static void add_member(dv_status *status, const char *identifier, int number) {
    dv_status_member *m = &status->members[status->member_count++];
    *m = (dv_status_member){.node = NULL,
                            .host = numbered("host", number),
                            .pid = 100 + number,
                            .since = strdup("2026-01-31T12:00:00Z"),
                            .session = 0x1000 + number,
                            .made_ms = 5000 + number,
                            .czxid = 70 + number,
                            .first_czxid = 60 + number,
                            .follows = number % 2,
                            .is_static = number % 3 == 0};
    assert_true(asprintf(&m->node, "%022d1,a=2,s=00000000-%s", number, identifier) > 0);
    m->identifier = strchr(m->node, '-') + 1;
}

static dv_status_item *add_item(dv_status *status, char *name, const char *owner, size_t member) {
    dv_status_item *item = &status->items[status->item_count++];
    *item = (dv_status_item){.name = name,
                             .node = dv_look_node_of(name),
                             .there = true,
                             .head = owner ? strdup("00000000000000000000001__lock__0000000000") : NULL,
                             .owner = owner ? strdup(owner) : NULL,
                             .member = member,
                             .token = 9,
                             .made_ms = 8000,
                             .session = member == DV_NO_MEMBER ? 0x77 : status->members[member].session,
                             .pzxid = 3};
    return item;
}

static dv_status make(size_t members, size_t items) {
    dv_status status = {.path = "/p", .found = true, .read_at_ms = 1000000};
    status.members = calloc(members + 1, sizeof *status.members);
    status.items = calloc(items + 1, sizeof *status.items);
    assert_non_null(status.members);
    assert_non_null(status.items);
    return status;
}

/* A pool that has read the status. */
static void follow(dv_serve_pool *pool, const dv_status *status) {
    assert_int_equal(dv_serve_pool_init(pool, "/p"), 0);
    assert_int_equal(dv_serve_pool_apply(pool, status, true, 0), 0);
}

static void assert_same_member(const dv_status_member *a, const dv_status_member *b) {
    assert_string_equal(a->node, b->node);
    assert_string_equal(a->identifier, b->identifier);
    assert_string_equal(a->host, b->host);
    assert_string_equal(a->since, b->since);
    assert_true(a->pid == b->pid && a->session == b->session && a->made_ms == b->made_ms);
    assert_true(a->czxid == b->czxid && a->first_czxid == b->first_czxid);
    assert_true(a->follows == b->follows && a->is_static == b->is_static && a->kazoo == b->kazoo);
}

static void assert_same_item(const dv_status_item *a, const dv_status_item *b) {
    assert_string_equal(a->name, b->name);
    assert_string_equal(a->node, b->node);
    assert_true(a->there == b->there && a->member == b->member && a->waiting == b->waiting);
    assert_true(!a->head == !b->head && !a->owner == !b->owner);
    if (!a->head) return;
    assert_string_equal(a->owner, b->owner);
    assert_int_equal(strlen(a->head), strlen(b->head));
    assert_true(a->session == b->session);
    if (a->session == 0) assert_string_equal(a->head, b->head);
}

/* Members and items are told as they were read: owned, of nobody, of strangers, of a place that no session ends, in a
 * directory that kazoo has named. So is how many each has. */
TEST(test_same) {
    dv_status read = make(3, 6), told = {.path = "/p"};
    dv_serve_pool pool;
    dv_serve_snapshot snapshot;
    for (int i = 0; i < 3; i++) add_member(&read, i == 0 ? "a" : i == 1 ? "b" : "c", i + 1);
    add_item(&read, strdup("i1"), "a", 0)->waiting = 4;
    add_item(&read, strdup("i2"), NULL, DV_NO_MEMBER);
    add_item(&read, strdup("i3"), "old", DV_NO_MEMBER);
    add_item(&read, strdup("i4"), "restored", DV_NO_MEMBER)->session = 0;
    dv_status_item *nested = add_item(&read, strdup("i5/x"), "c", 2);
    free(nested->node);
    nested->node = strdup("i5/x");
    add_item(&read, strdup("i6"), "c", 2);
    read.stray_count = 2;
    read.stray = strdup("README");
    follow(&pool, &read);
    assert_int_equal(dv_serve_snapshot_take(&snapshot, &pool), 0);
    assert_int_equal(dv_serve_snapshot_status(&snapshot, &told), 0);
    assert_true(told.found);
    assert_int_equal(told.stray_count, 2);
    assert_string_equal(told.stray, "README");
    assert_int_equal(told.member_count, 3);
    for (size_t i = 0; i < 3; i++) assert_same_member(&told.members[i], &read.members[i]);
    assert_int_equal(told.item_count, 6);
    for (size_t i = 0; i < 6; i++) assert_same_item(&told.items[i], &read.items[i]);
    assert_int_equal(told.members[2].item_count, 2);
    assert_int_equal(told.most_load, 2);
    assert_int_equal(told.least_load, 0);
    dv_serve_snapshot_free(&snapshot);
    dv_serve_pool_free(&pool);
    dv_status_pool_clear(&told);
    dv_status_pool_clear(&read);
}

/* An item whose directory has gone is no longer told, nor is a member that has left: its items are a stranger's. */
TEST(test_gone) {
    dv_status read = make(2, 2), next = make(1, 0), told = {.path = "/p"};
    dv_serve_pool pool;
    dv_serve_snapshot snapshot;
    add_member(&read, "a", 1);
    add_member(&read, "b", 2);
    add_item(&read, strdup("i1"), "a", 0);
    add_item(&read, strdup("i2"), "b", 1);
    follow(&pool, &read);
    add_member(&next, "b", 2);
    assert_int_equal(dv_serve_pool_apply(&pool, &next, false, 0), 0);
    assert_int_equal(dv_serve_snapshot_take(&snapshot, &pool), 0);
    assert_int_equal(dv_serve_snapshot_status(&snapshot, &told), 0);
    assert_int_equal(told.member_count, 1);
    assert_int_equal(told.items[0].member, DV_NO_MEMBER);
    assert_string_equal(told.items[0].owner, "a");
    assert_int_equal(told.items[0].session, 0x1001);
    assert_int_equal(told.items[1].member, 0);
    dv_serve_snapshot_free(&snapshot);
    pool.items[0].pzxid = 0; /* As of one that only the plan has. */
    assert_int_equal(dv_serve_snapshot_take(&snapshot, &pool), 0);
    assert_int_equal(dv_serve_snapshot_status(&snapshot, &told), 0);
    assert_int_equal(told.item_count, 1);
    assert_string_equal(told.items[0].name, "i2");
    dv_serve_snapshot_free(&snapshot);
    assert_int_equal(dv_serve_pool_apply(&pool, &next, true, 0), 0);
    assert_int_equal(dv_serve_snapshot_take(&snapshot, &pool), 0);
    assert_int_equal(dv_serve_snapshot_status(&snapshot, &told), 0);
    assert_int_equal(told.item_count, 0);
    dv_serve_snapshot_free(&snapshot);
    dv_serve_pool_free(&pool);
    dv_status_pool_clear(&told);
    dv_status_pool_clear(&next);
    dv_status_pool_clear(&read);
}

/* A large pool is whole, too. The time is printed for which the lock of divvy serve is held. */
TEST(test_large) {
    dv_status read = make(MEMBERS, ITEMS), told = {.path = "/p"};
    dv_serve_pool pool;
    dv_serve_snapshot snapshot;
    for (int i = 0; i < MEMBERS; i++) {
        char *identifier = numbered("member", i);
        add_member(&read, identifier, i);
        free(identifier);
    }
    for (int i = 0; i < ITEMS; i++) {
        size_t member = (size_t)i % MEMBERS;
        add_item(&read, numbered("item", i), read.members[member].identifier, member);
    }
    follow(&pool, &read);
    struct timespec began, taken, made;
    clock_gettime(CLOCK_MONOTONIC, &began);
    assert_int_equal(dv_serve_snapshot_take(&snapshot, &pool), 0);
    clock_gettime(CLOCK_MONOTONIC, &taken);
    assert_int_equal(dv_serve_snapshot_status(&snapshot, &told), 0);
    clock_gettime(CLOCK_MONOTONIC, &made);
    print_message("%d items, %d members: %.1f ms with the lock, %.1f ms without\n", ITEMS, MEMBERS,
                  1e3 * (double)(taken.tv_sec - began.tv_sec) + 1e-6 * (double)(taken.tv_nsec - began.tv_nsec),
                  1e3 * (double)(made.tv_sec - taken.tv_sec) + 1e-6 * (double)(made.tv_nsec - taken.tv_nsec));
    assert_int_equal(told.item_count, ITEMS);
    for (size_t i = 0; i < ITEMS; i += 997) assert_same_item(&told.items[i], &read.items[i]);
    for (size_t i = 0; i < MEMBERS; i++) assert_int_equal(told.members[i].item_count, ITEMS / MEMBERS);
    dv_serve_snapshot_free(&snapshot);
    dv_serve_pool_free(&pool);
    dv_status_pool_clear(&told);
    dv_status_pool_clear(&read);
}
